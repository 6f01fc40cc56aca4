# SPDX-License-Identifier: Apache-2.0
"""hyperopt replay: the proposals of a stored study come out again, bit for bit."""
import sqlite3
import sys

import harness

PROGRAM = """
import json, sys
lr, units, kind = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
if kind == "broken" and units % 7 == 0:
    sys.exit(3)
loss = abs(lr - 0.3) + abs(units - 40) / 100
for epoch in range(1, 5):
    print(json.dumps({"epoch": epoch, "value": -loss * (1 + 1 / epoch)}), flush=True)
print(json.dumps({"result": -loss}), flush=True)
"""

STUDY = """
[study]
name = "t"
seed = 7
trials = {trials}
objective = ["accuracy"]
[command]
run = ["{python}", "{program}", "{{lr}}", "{{units}}", "{{kind}}"]
direction = ["maximize"]
[sampler]
kind = "{sampler}"
startup = 5
[pruner]
kind = "median"
[workers]
gpus = 0
in_flight = 3
[search]
lr = {{ float = [1e-3, 1.0], log = true }}
units = {{ int = [8, 64] }}
kind = {{ choice = ["good", "broken"] }}
[[enqueue]]
lr = 0.5
"""


class Replay(harness.SystemTest):
    def study(self, sampler, trials):
        program = self.write(PROGRAM, "train.py")
        self.write(STUDY.format(sampler=sampler, trials=trials, python=sys.executable,
                                program=program))

    def test_a_resumed_parallel_study_replays(self):
        self.study("tpe", 14)
        self.hyperopt("run", "t.toml")
        self.hyperopt("run", "t.toml", "--trials", 24)  # so many more
        done = self.hyperopt("replay", "t.db")
        self.assertIn("All 38 proposals are the same", done.stdout)

    def test_a_changed_parameter_is_found(self):
        self.study("cmaes", 12)
        self.hyperopt("run", "t.toml")
        self.assertIn("All 12", self.hyperopt("replay", "t.db").stdout)
        number = self.one("SELECT max(number) FROM trial")
        db = sqlite3.connect(self.dir / "t.db")
        db.execute("UPDATE param SET value = 9 WHERE trial = ? AND param ="
                   " (SELECT id FROM param_space WHERE name = 'units')", (number,))
        db.commit()
        db.close()
        done = self.hyperopt("replay", "t.db", code=5)
        self.assertIn(f"Trial {number} differs", done.stdout)
        self.assertIn("units", done.stdout)


if __name__ == "__main__":
    harness.main()
