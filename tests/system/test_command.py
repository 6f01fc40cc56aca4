# SPDX-License-Identifier: Apache-2.0
"""[command] studies: trials that are the user's own program, with the same store, leases and pruners."""
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
