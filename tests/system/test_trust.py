# SPDX-License-Identifier: Apache-2.0
"""What lets a result be trusted: the tries of earlier studies count, a trial is reproduced bit for
bit, a look at the holdout is recorded, and the same search on permuted bars is a yardstick."""
import shutil
import sqlite3

import harness
from harness import study_text


class Trust(harness.SystemTest):
    def test_tries_of_the_study_that_warmed_this_one_count(self):
        self.write(study_text(trials=4), "first.toml")
        self.hyperopt("run", "first.toml", "-d", "first.db", "-q")
        warm = '[[warm_start]]\ndatabase = "{}"\n'
        self.write(study_text(trials=3, search=warm.format("first.db")), "second.toml")
        self.hyperopt("run", "second.toml", "-d", "second.db", "-q")
        self.assertEqual(self.query("SELECT prior_trials FROM study", "second.db"), [(4,)])
        self.assertEqual(self.query("SELECT trials FROM overfitting", "second.db"), [(7,)])
        self.write(study_text(trials=2, search=warm.format("second.db")), "third.toml")
        self.hyperopt("run", "third.toml", "-d", "third.db", "-q")
        self.assertEqual(self.query("SELECT trials FROM overfitting", "third.db"), [(9,)])
        self.assertIn("After 9 tries", self.hyperopt("status", "third.db").stdout)

    def test_importance_is_written_when_a_run_ends(self):
        self.write(study_text(trials=12))
        self.hyperopt("run", "t.toml", "-q")
        rows = self.query("SELECT s.name, i.method, i.value, i.trials FROM importance i JOIN param_space s ON"
                          " s.id = i.param ORDER BY 1, 2")
        self.assertEqual([row[:2] for row in rows],
                         [(name, method) for name in ("barriers.stop_loss", "dqn.learning_rate")
                          for method in ("kendall", "ped_anova", "spearman")])
        self.assertAlmostEqual(sum(row[2] for row in rows if row[1] == "ped_anova"), 1)
        self.assertTrue(all(-1 <= row[2] <= 1 and row[3] == 12 for row in rows), rows)
        # Spearman's correlation without ties: 1 - 6 sum d^2 / (n (n^2 - 1))
        pairs = self.query("SELECT p.value, v.value FROM param p JOIN param_space s ON s.id = p.param AND s.name ="
                           " 'barriers.stop_loss' JOIN trial_value v ON v.trial = p.trial")
        ranks = [[sorted(column).index(x) for x in column] for column in zip(*pairs)]
        if len(set(pairs)) == 12 and all(len(set(column)) == 12 for column in zip(*pairs)):
            want = 1 - 6 * sum((a - b) ** 2 for a, b in zip(*ranks)) / (12 * 143)
            self.assertAlmostEqual(rows[2][2], want)
        self.hyperopt("run", "t.toml", "-q", "--trials", 1)  # made anew, not added
        self.assertEqual(self.query("SELECT DISTINCT trials, count(*) FROM importance"), [(13, 6)])

    def test_a_trial_is_reproduced_and_a_changed_result_is_told(self):
        self.write(study_text(trials=3))
        self.hyperopt("run", "t.toml", "-q")
        (self.dir / "t.toml").unlink()  # from the database alone
        done = self.hyperopt("reproduce", "t.db", 1)
        self.assertEqual(done.stdout.count("the same bits"), 2, done.stdout)
        self.assertIn("Trial 1 is reproduced.", done.stdout)
        before = (self.dir / "t.db").read_bytes()
        self.hyperopt("reproduce", "t.db", 0)
        self.assertEqual((self.dir / "t.db").read_bytes(), before, "reproduce only reads")
        db = sqlite3.connect(self.dir / "t.db")
        blob = bytearray(db.execute("SELECT returns FROM fold_result WHERE trial = 1 AND fold = 1").fetchone()[0])
        blob[0] ^= 1  # the last bit of one return
        db.execute("UPDATE fold_result SET returns = ? WHERE trial = 1 AND fold = 1", (bytes(blob),))
        db.commit()
        db.close()
        done = self.hyperopt("reproduce", "t.db", 1, code=5)
        self.assertEqual((done.stdout.count("the same bits"), done.stdout.count("DIFFER")), (1, 1), done.stdout)
        self.assertIn("not reproduced", done.stdout)
        self.assertIn("there is no trial 99", self.hyperopt("reproduce", "t.db", 99, code=None).stderr)
        self.hyperopt("reproduce", "t.db", "x", code=1)

    def test_a_trial_in_bf16_is_reproduced_and_verified(self):
        text = study_text(trials=2).replace("head = 8", 'head = 8\nprecision = "bf16"')
        self.write(text)
        self.assertIn("bf16        on this machine's CPU: ", self.hyperopt("check", "t.toml").stdout)
        self.hyperopt("run", "t.toml", "-q")
        done = self.hyperopt("reproduce", "t.db", 1)
        self.assertIn("Trial 1 is reproduced.", done.stdout)
        self.hyperopt("verify", "t.db", 1)
        # the same study in f32 is another one: other bits
        self.write(text.replace('"bf16"', '"f32"'), "f.toml")
        self.assertNotIn("bf16", self.hyperopt("check", "f.toml").stdout)
        self.hyperopt("run", "f.toml", "-d", "f.db", "-q")
        returns = "SELECT returns FROM fold_result WHERE trial = 1 ORDER BY fold"
        self.assertNotEqual(self.query(returns, "t.db"), self.query(returns, "f.db"))
        # and so is the one that acts in fp8, which is reproduced likewise
        self.write(text.replace('"bf16"', '"fp8"'), "e.toml")
        self.assertIn("fp8         of acting in training", self.hyperopt("check", "e.toml").stdout)
        self.hyperopt("run", "e.toml", "-d", "e.db", "-q")
        self.assertNotEqual(self.query(returns, "t.db"), self.query(returns, "e.db"))
        self.assertIn("Trial 1 is reproduced.", self.hyperopt("reproduce", "e.db", 1).stdout)

    def test_other_market_data_cannot_reproduce(self):
        data = self.dir / "bars.csv"
        shutil.copy(harness.DATA, data)
        self.write(study_text(trials=2, data=data))
        self.hyperopt("run", "t.toml", "-q")
        lines = data.read_text().splitlines(keepends=True)
        data.write_text("".join(lines[:-1]))
        done = self.hyperopt("reproduce", "t.db", 0, code=None)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("bars.csv", done.stderr)

    def test_a_look_at_the_holdout_is_recorded_and_a_second_one_says_so(self):
        text = study_text(trials=2).replace("count = 2", 'count = 2\nholdout = "15%"')
        self.write(text)
        self.hyperopt("run", "t.toml", "-q")
        first = self.hyperopt("holdout", "t.db", 1)
        self.assertIn("first look", first.stdout)
        again = self.hyperopt("holdout", "t.db", 1)
        self.assertIn("look number 2", again.stdout)
        refit = self.hyperopt("holdout", "t.db", 0, "--refit")
        self.assertIn("look number 3", refit.stdout)
        looks = self.query("SELECT trial, refit, seed, at_ns > 0, length(user) > 0, sharpe, length(returns) "
                           "FROM holdout_look ORDER BY id")
        self.assertEqual([look[:5] for look in looks], [(1, 0, 0, 1, 1), (1, 0, 0, 1, 1), (0, 1, 0, 1, 1)])
        self.assertEqual(looks[0][5:], looks[1][5:], "the same agents on the same bars")
        self.assertGreater(looks[0][6], 0)
        self.assertIntact()
        self.hyperopt("holdout", "t.db", 77, code=None)
        self.assertEqual(self.one("SELECT count(*) FROM holdout_look"), 3)

    def test_without_a_holdout_there_is_nothing_to_look_at(self):
        self.write(study_text(trials=1).replace("count = 2", "count = 2\nholdout = 0"))
        self.hyperopt("run", "t.toml", "-q")
        done = self.hyperopt("holdout", "t.db", 0, code=None)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("holdout", done.stderr)
        self.assertEqual(self.one("SELECT count(*) FROM holdout_look"), 0)

    def test_the_null_test_stores_its_share_with_the_real_study(self):
        self.write(study_text(trials=3))
        self.hyperopt("run", "t.toml", "-q")
        before = self.query("SELECT psr, dsr, pbo, trials FROM overfitting")
        done = self.hyperopt("null-test", "t.toml", "--studies", 3, "--trials", 3, "--compare", "t.db",
                             env={"TMPDIR": str(self.dir)})
        self.assertEqual(done.stdout.count("permuted study"), 3)
        found = [float(line.split("best ")[1].split(",")[0]) for line in done.stdout.splitlines()
                 if line.startswith("permuted study")]
        real = self.one("SELECT value FROM leaderboard WHERE rank = 1")
        p = self.one("SELECT null_p FROM overfitting")
        self.assertAlmostEqual(p, (1 + sum(x >= float(f"{real:.4g}") for x in found)) / 4)
        self.assertEqual(self.query("SELECT psr, dsr, pbo, trials FROM overfitting"), before)
        best = self.one("SELECT trial FROM overfitting")
        self.hyperopt("run", "t.toml", "-q", "--trials", 3)  # newer statistics keep what the test said
        self.assertEqual(self.one("SELECT trials FROM overfitting"), before[0][3] + 3)
        self.assertEqual(self.one("SELECT null_p FROM overfitting"), p)
        self.assertEqual("earlier best" in (self.one("SELECT notes FROM overfitting") or ""),
                         self.one("SELECT trial FROM overfitting") != best)
        self.assertEqual([path.name for path in self.dir.glob("hyperopt-null-*")], [], "nothing is left behind")
        repeated = self.hyperopt("null-test", "t.toml", "--studies", 3, "--trials", 3)
        self.assertEqual([line for line in repeated.stdout.splitlines() if "permuted study" in line],
                         [line for line in done.stdout.splitlines() if "permuted study" in line])
        other = self.hyperopt("null-test", "t.toml", "--studies", 1, "--trials", 3, "--seed", 2)
        self.assertNotIn(done.stdout.splitlines()[0], other.stdout)


if __name__ == "__main__":
    harness.main()
