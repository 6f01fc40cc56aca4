# SPDX-License-Identifier: Apache-2.0
"""[command] studies: trials that are the user's own program, with the same store, leases and pruners."""
import re
import sys

import harness

PROGRAM = """
import json, sys, time
lr = float(sys.argv[1].split("=")[1])
kind = sys.argv[2]
for epoch in range(1, 6):
    print(json.dumps({"epoch": epoch, "value": -abs(lr - 0.3) * 10 + epoch * 0.01}), flush=True)
if kind == "broken":
    sys.exit(3)
print(json.dumps({"result": -abs(lr - 0.3) * 10}), flush=True)
"""

STUDY = """
[study]
name = "t"
trials = {trials}
objective = ["accuracy"]
[command]
run = ["{python}", "{program}", "--lr={{lr}}", "{{kind}}"]
direction = ["maximize"]
[sampler]
kind = "random"
[pruner]
kind = "none"
[workers]
gpus = 0
[search]
lr = {{ float = [0.0, 1.0] }}
kind = {{ choice = [{kinds}] }}
"""


class Command(harness.SystemTest):
    def study(self, trials, kinds):
        program = self.write(PROGRAM, "train.py")
        self.write(STUDY.format(trials=trials, kinds=kinds, python=sys.executable, program=program))

    def test_a_users_program_is_tuned(self):
        self.study(8, '"good"')
        done = self.hyperopt("run", "t.toml")
        self.assertEqual(self.states(), {"COMPLETE": 8})
        self.assertIn("trial", done.stdout)
        best = self.query("SELECT trial, value FROM leaderboard WHERE rank = 1")[0]
        lr = self.one(f"SELECT lr FROM trial_wide WHERE trial = {best[0]}")
        self.assertAlmostEqual(best[1], -abs(lr - 0.3) * 10)
        self.assertEqual(self.one("SELECT count(*) FROM report"), 40)
        self.hyperopt("check", "t.toml")
        self.assertIn("lr = ", self.hyperopt("best", "t.db").stdout)
        self.hyperopt("run", "t.toml", "--trials", 1)
        self.assertEqual(self.states(), {"COMPLETE": 9})

    def test_what_is_printed_is_of_the_program_not_of_backtests(self):
        self.study(6, '"good"')
        shown = self.hyperopt("check", "t.toml").stdout
        self.assertIn("train.py --lr={lr} {kind}", shown)
        self.assertIn("accuracy, more is better", shown)
        self.assertIn("0 warnings", shown)
        done = self.hyperopt("run", "t.toml")
        self.assertIn("objective: accuracy", done.stdout)
        for page in (done.stdout, self.hyperopt("status", "t.db").stdout, self.hyperopt("best", "t.db").stdout):
            for word in ("harpe", "folds", "costs", "null-test", "holdout", "nan", "luck"):
                self.assertNotIn(word, page)

    def test_a_program_that_is_not_there_and_a_parameter_without_use_are_warned_of(self):
        self.study(2, '"good"')
        text = (self.dir / "t.toml").read_text()
        self.write(text.replace(sys.executable, "no-such-program").replace(', "{kind}"', ""))
        shown = self.hyperopt("check", "t.toml").stdout
        self.assertIn("no program no-such-program is found on this machine", shown)
        self.assertIn("kind is searched, but command.run does not use it", shown)
        self.hyperopt("run", "t.toml")
        self.assertIn("no-such-program: No such file", self.hyperopt("show", "t.db", 0).stdout)

    def test_several_objectives_end_in_a_front(self):
        program = self.write("import json, sys\nx = float(sys.argv[1].split('=')[1])\n"
                             "for e in range(1, 4):\n"
                             "    print(json.dumps({'epoch': e, 'values': [-x - 1 / e, x * x + 1 / e]}), flush=True)\n"
                             "print(json.dumps({'result': {'size': x * x, 'gain': -abs(x - 0.5)}}), flush=True)\n",
                             "two.py")
        text = STUDY.format(trials=16, kinds='"good"', python=sys.executable, program=program)
        text = text.replace('["accuracy"]', '["gain", "size"]').replace('["maximize"]', '["maximize", "minimize"]')
        self.write(text.replace('[pruner]\nkind = "none"', '[agent]\nepochs = 3\neval_every = 1\n'
                                '[pruner]\nkind = "hyperband"\nmin_epochs = 1'))
        done = self.hyperopt("run", "t.toml").stdout
        self.assertIn("objectives: gain, size", done)
        points = self.query("SELECT t.number, a.value, b.value FROM trial t JOIN trial_value a ON a.trial = t.number AND "
                            "a.objective = 0 JOIN trial_value b ON b.trial = t.number AND b.objective = 1 "
                            "WHERE t.state = 'COMPLETE'")
        front = [n for n, gain, size in points
                 if not any(g >= gain and s <= size and (g, s) != (gain, size) for _, g, s in points)]
        self.assertIn(f"The front: {len(front)} of {len(points)} trials", done)
        part = done.split("The front:")[1].split("Next:")[0]
        self.assertEqual({int(n) for n in re.findall(r"trial (\d+) ", part)}, set(front))
        self.assertEqual(self.one("SELECT count(*) FROM report_value"), self.one("SELECT count(*) FROM report"))
        self.assertIn("the same", self.hyperopt("replay", "t.db").stdout)

    def test_reports_by_fold_are_raced_by_wilcoxon(self):
        """A trial that is ended after some folds stands with their mean, and says why."""
        program = self.write("import json, random, sys\nx = float(sys.argv[1].split('=')[1])\n"
                             "v = [random.Random(f).gauss(0, 2) - 5 * abs(x - 0.3) + random.Random(f'{f}{x}').gauss(0, .1)"
                             " for f in range(12)]\n"
                             "for f in range(12):\n"
                             "    print(json.dumps({'epoch': f + 1, 'value': v[f]}), flush=True)\n"
                             "print(json.dumps({'result': sum(v) / 12}), flush=True)\n", "folds.py")
        text = STUDY.format(trials=24, kinds='"good"', python=sys.executable, program=program)
        self.write(text.replace('kind = "none"', 'kind = "wilcoxon"').replace(
            "[sampler]", "[workers]\nin_flight = 1\n[sampler]").replace("[workers]\ngpus = 0", "").replace(
            "in_flight = 1", "in_flight = 1\ngpus = 0"))
        self.hyperopt("run", "t.toml")
        self.assertEqual(set(self.states()), {"COMPLETE", "PRUNED"})
        pruned = self.query("SELECT t.number, v.value, (SELECT avg(r.value) FROM report r WHERE r.trial = t.number AND "
                            "r.step <= t.epochs) FROM trial t JOIN trial_value v ON v.trial = t.number "
                            "WHERE t.state = 'PRUNED'")
        for _, value, mean in pruned:
            self.assertAlmostEqual(value, mean, places=9)
        shown = self.hyperopt("show", "t.db", pruned[0][0], "--why").stdout
        self.assertRegex(shown, r"epoch \d+: wilcoxon: against trial \d+ on \d+ common folds, worse by .*: pruned")

    def test_a_program_that_fails_is_a_failed_row_with_a_reason(self):
        self.study(6, '"good", "broken"')
        self.hyperopt("run", "t.toml")
        states = self.states()
        self.assertEqual(sum(states.values()), 6)
        broken = self.one("SELECT count(*) FROM trial_wide WHERE kind = 'broken'")
        self.assertEqual(states.get("FAILED", 0), broken)
        if broken:
            self.assertEqual(self.one("SELECT fail_class FROM trial WHERE state = 'FAILED' LIMIT 1"), "command")


if __name__ == "__main__":
    harness.main()
