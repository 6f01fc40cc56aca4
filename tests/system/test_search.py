# SPDX-License-Identifier: Apache-2.0
"""The search as a user meets it: folds that are raced, what is explained, what `check` warns of."""
import re
import signal
import sys

import harness
from harness import study_text

FOLDS = 8


def raced_text(trials=12, race=1, more="", study="", epochs=2, folds=FOLDS):
    """Noisy folds: agents that hardly learn, on a real market; what a trade costs tells them apart."""
    race = f"race_folds = {race}\n" if race else ""
    text = study_text(trials=trials, epochs=epochs, more=more,
                      study=race + 'allow_searching_facts = true\nobjective = ["total_return"]\n'
                      'aggregate = "mean"\n' + study,
                      search='"env.spread_bps" = { choice = [0.0, 8.0, 16.0, 32.0, 64.0] }')
    return text.replace("count = 2", f"count = {folds}").replace(
        "[workers]", "[workers]\nin_flight = 2", 1)


class Racing(harness.SystemTest):
    def folds_of(self, db):
        return dict(self.query("SELECT trial, count(*) FROM fold_result WHERE fold >= 0 GROUP BY trial", db))

    def returns(self, db):
        return {(t, f): r for t, f, r in self.query(
            "SELECT trial, fold, hex(returns) FROM fold_result WHERE fold >= 0", db)}

    def test_the_best_is_found_with_at_most_half_of_the_folds(self):
        """The same trials with all folds and raced: a raced fold gives the very bits."""
        trials, count = 30, 16
        speaks = ('kind = "none"', 'kind = "none"\np_threshold = 0.15')  # after three folds
        self.write(raced_text(trials, race=0, folds=count, epochs=1), "whole.toml")
        self.write(raced_text(trials, folds=count, epochs=1).replace(*speaks), "raced.toml")
        self.hyperopt("run", "whole.toml", "--database", "whole.db")
        self.hyperopt("run", "raced.toml", "--database", "raced.db")
        self.assertEqual(self.query("SELECT trial, param, value FROM param ORDER BY 1, 2", "whole.db"),
                         self.query("SELECT trial, param, value FROM param ORDER BY 1, 2", "raced.db"))
        whole, raced = self.returns("whole.db"), self.returns("raced.db")
        self.assertEqual(len(whole), trials * count)
        for place, bits in raced.items():
            self.assertEqual(bits, whole[place], place)
        # four in five trials pay a spread; those that pay none are alike, and who of them is first is chance
        best = self.one("SELECT trial FROM best_trial", "raced.db")
        rank, value = self.query(f"SELECT rank, value FROM leaderboard WHERE trial = {best}", "whole.db")[0]
        self.assertLessEqual(rank, 3)
        self.assertAlmostEqual(self.one("SELECT value FROM best_trial", "raced.db"), value, places=9)
        self.assertLessEqual(2 * len(raced), trials * count)
        states = self.states("raced.db")
        self.assertEqual(states["COMPLETE"] + states["PRUNED"], trials)
        folds = self.folds_of("raced.db")
        for trial, state, reason in self.query("SELECT number, state, fail_reason FROM trial", "raced.db"):
            if state == "COMPLETE":
                self.assertEqual(folds[trial], count)
            else:
                self.assertLess(folds[trial], count)
                self.assertRegex(reason, r"race: \d+ of 16 folds, against trial \d+ on \d+ common folds worse by "
                                         r"[\d.]+ on average, p = [\d.]+ \(limit 0.15\): dropped")
        self.assertEqual(self.query("SELECT trial FROM fold_result WHERE fold = -1 AND trial NOT IN (SELECT number "
                                    "FROM trial WHERE state = 'COMPLETE')", "raced.db"), [])  # joined: all folds
        self.explained(next(t for t, n in folds.items() if n < count))
        # every lease is one attempt, each of them ended by the result of its folds
        self.assertEqual(self.query("SELECT t.number, t.attempt FROM trial t WHERE t.attempt <> "
                                    "(SELECT count(*) FROM race r WHERE r.trial = t.number)", "raced.db"), [])
        self.assertEqual(self.one("SELECT count(*) FROM race WHERE result IS NOT NULL", "raced.db"), 0)
        self.assertIn("verified", self.hyperopt("verify", "raced.db", best).stdout)
        self.assertIn("reproduced", self.hyperopt("reproduce", "raced.db", best).stdout)
        dropped = next(t for t, n in folds.items() if n < count)  # what it ran can be looked into as well
        self.assertIn("verified", self.hyperopt("verify", "raced.db", dropped).stdout)
        self.assertIn("reproduced", self.hyperopt("reproduce", "raced.db", dropped).stdout)
        self.assertIn("the same", self.hyperopt("replay", "raced.db").stdout)
        print(f"racing: {len(raced)} of {trials * count} folds, {states['PRUNED']} of {trials} trials dropped",
              file=sys.stderr)

    def explained(self, trial):
        shown = self.hyperopt("show", "raced.db", trial, "--why").stdout
        self.assertRegex(shown, r"PRUNED")
        rounds = re.findall(r"^round (\d+): (race: .*)$", shown, re.M)
        self.assertEqual([int(n) for n, _ in rounds], list(range(len(rounds))))
        self.assertRegex(rounds[-1][1], r"against trial \d+ on \d+ common folds .* p = .* \(limit 0.15\): dropped$")
        self.assertIn("Rounds of folds:", shown)

    def test_a_race_goes_on_after_a_kill(self):
        """Coordinator and workers die in the middle of rounds: nothing is run twice, nothing is lost."""
        self.write(raced_text(14, race=2, study="deterministic = true\nparallel = 2\n", epochs=3), "t.toml")
        self.hyperopt("run", "t.toml", "--database", "whole.db")
        for rounds in (3, 9, 16):
            run = self.start("run", "t.toml", "--workers", 2)
            self.until(lambda n=rounds: run.poll() is not None or self.one("SELECT count(*) FROM race") >= n,
                       "rounds", None)
            run.send_signal(signal.SIGKILL)
            run.wait()
            self.assertIntact()
        self.hyperopt("run", "t.toml", "--workers", 2)
        for sql in ("SELECT trial, round, folds, epochs, against, common, p, mean_gap, verdict FROM race "
                    "ORDER BY 1, 2",
                    "SELECT number, state FROM trial ORDER BY 1",
                    "SELECT trial, value FROM trial_value ORDER BY 1",
                    "SELECT trial, fold, sharpe, hex(returns) FROM fold_result ORDER BY 1, 2"):
            self.assertEqual(self.query(sql), self.query(sql, "whole.db"), sql)
        self.assertEqual(self.one("SELECT count(*) FROM race WHERE result IS NOT NULL"), 0)
        self.assertIn("PRUNED", self.states())

    def test_folds_are_raced_beside_a_pruner_and_a_retest(self):
        pruner = '[pruner]\nkind = "asha"\nmin_epochs = 1\nreduction = 2\npromote = true\n'
        text = raced_text(24, race=2, epochs=3, study="final_retest = 2\nretest_seeds = 2\n")
        self.write(text.replace('[pruner]\nkind = "none"\n', pruner))
        more = []
        for _ in range(10):  # who is promoted depends on who came first; test_run shows a promotion
            self.hyperopt("run", "t.toml", "--workers", 2, *more)
            self.assertEqual(set(self.states()), {"COMPLETE", "PRUNED"})
            if self.one("SELECT count(*) FROM event WHERE kind = 'promote'"):
                break
            more = ["--trials", 12]
        self.assertGreater(self.one("SELECT count(*) FROM race WHERE verdict = 'end'"), 0)
        # epochs count over the rounds, in reports as in the trial
        self.assertEqual(self.one("SELECT max(epochs) FROM trial WHERE source <> 'retest'"), 3 * 4)
        self.assertEqual(self.one("SELECT max(step) FROM report r JOIN trial t ON t.number = r.trial "
                                  "WHERE t.source <> 'retest'"), 3 * 4)
        self.assertEqual(self.query(
            "SELECT t.number FROM trial t WHERE t.source = 'retest' AND (t.state <> 'COMPLETE' OR 8 <> "
            "(SELECT count(*) FROM fold_result f WHERE f.trial = t.number AND f.fold >= 0))"), [])
        self.assertGreaterEqual(self.one("SELECT count(*) FROM trial WHERE source = 'retest'"), 4)
        self.assertIn("proposals", self.hyperopt("replay", "t.db").stdout)

    def test_wilcoxon_compares_the_folds_of_a_round(self):
        text = raced_text(16, race=4, epochs=3)
        self.write(text.replace('[pruner]\nkind = "none"', '[pruner]\nkind = "wilcoxon"\nmin_epochs = 1'))
        self.hyperopt("run", "t.toml")
        self.assertEqual(set(self.states()), {"COMPLETE", "PRUNED"})
        self.assertGreater(self.one("SELECT count(*) FROM report WHERE why LIKE 'wilcoxon: against trial % on 4 "
                                    "common folds%' AND verdict = 'prune'"), 0)


class Check(harness.SystemTest):
    def test_the_original_reward_is_warned_of_where_it_may_come_up(self):
        choice = '"reward.preset" = { choice = ["default", "original"] }'
        for text, who in ((study_text(more='[reward]\npreset = "original"'), 'reward.preset = "original"'),
                          (study_text(search=choice), 'reward.preset can be "original"')):
            self.write(text)
            shown = self.hyperopt("check", "t.toml").stdout
            self.assertRegex(shown, re.escape(who) + r": its penalty of 0.1 is \d+ times the deviation of a bar")
            self.assertIn("halves the loss of a stop", shown)
        self.write(study_text(search='"reward.preset" = { choice = ["default"] }'))
        self.assertNotIn("reward.preset can be", self.hyperopt("check", "t.toml").stdout)

    def test_the_order_of_raced_folds_is_shown(self):
        self.write(raced_text(12, race=3))
        shown = self.hyperopt("check", "t.toml").stdout
        order = re.search(r"racing +folds (.*); dropped below p = 0.1", shown).group(1)
        self.assertEqual(sorted(int(n) for n in re.findall(r"\d", order)), list(range(FOLDS)))
        self.assertEqual(order.count("|"), 2)
        self.write(raced_text(12, race=3).replace("[pruner]", "[pruner]\np_threshold = 0.001"))
        self.assertIn("no trial will be dropped: after 6 of 8 folds", self.hyperopt("check", "t.toml").stdout)

    def test_check_prints_the_plan_of_memory(self):
        self.write(study_text(trials=20))
        shown = self.hyperopt("check", "t.toml", "--set", "dqn.replay_capacity=1000000").stdout
        # 96 bytes a transition; 2 agents a trial, a tenth of the trials in flight
        self.assertRegex(shown, r"on a GPU 9\d\.\d MB: networks 0\.\d, replay 96\.0, steps")
        self.assertRegex(shown, r"0\.\d\d GB for 4 agents in flight, 0\.00 GB for the bars")


if __name__ == "__main__":
    harness.main()
