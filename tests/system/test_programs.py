# SPDX-License-Identifier: Apache-2.0
"""Studies over a user's own program ([command]), through both real programs."""
import json
import os
import signal
import sys
import time

from harness import HOST, HYPEROPT, WORKER, SystemTest, main

PROGRAM = """
import json, os, sys, time
lr, kind = float(sys.argv[1]), sys.argv[2]
print("starting", os.environ["HYPEROPT_TRIAL"])
if kind == "bad":
    print("this kind cannot be trained", file=sys.stderr)
    sys.exit(2)
for epoch in range(1, {epochs} + 1):
    time.sleep({pause})
    print(json.dumps({{"epoch": epoch, "value": (lr - 0.3) ** 2 + 1 / epoch}}), flush=True)
print(json.dumps({{"result": (lr - 0.3) ** 2}}))
"""

STUDY = """
[study]
name = "t"
seed = 3
trials = {trials}
objective = ["loss"]
[command]
run = ["{python}", "train.py", "{{lr}}", "{{kind}}"]
direction = ["minimize"]
[search]
lr = {{ float = [0.01, 1.0], log = true }}
kind = {{ choice = {kinds} }}
[sampler]
kind = "random"
[pruner]
kind = "{pruner}"
[workers]
gpus = 0
lanes = 2
in_flight = 2
"""


class Command(SystemTest):
    def make(self, trials=8, epochs=3, pause=0.0, kinds=("good",), pruner="none"):
        self.write(PROGRAM.format(epochs=epochs, pause=pause), "train.py")
        return self.write(STUDY.format(trials=trials, python=sys.executable, kinds=json.dumps(list(kinds)),
                                       pruner=pruner))

    def test_reports_and_results_reach_the_store(self):
        self.hyperopt("run", self.make())
        self.assertEqual(self.states(), {"COMPLETE": 8})
        rows = self.query("SELECT v.value, p.value FROM trial_value v JOIN param p ON p.trial = v.trial"
                          " JOIN param_space s ON s.id = p.param WHERE s.name = 'lr'")
        self.assertEqual(len(rows), 8)
        for value, lr in rows:
            self.assertAlmostEqual(value, (lr - 0.3) ** 2, places=12)
        self.assertEqual(self.one("SELECT count(*) FROM report"), 24)
        self.assertIntact()

    def test_a_program_that_fails_is_a_failed_trial_with_its_words(self):
        self.hyperopt("run", self.make(trials=10, kinds=("good", "bad")), code=None)
        states = self.states()
        self.assertEqual(sum(states.values()), 10)
        self.assertGreater(states.get("FAILED", 0), 0)
        self.assertGreater(states.get("COMPLETE", 0), 0)
        for (reason,) in self.query("SELECT fail_reason FROM trial WHERE state = 'FAILED'"):
            self.assertIn("this kind cannot be trained", reason)

    def test_a_pruner_ends_programs(self):
        self.hyperopt("run", self.make(trials=16, epochs=12, pause=0.02, pruner="median"))
        states = self.states()
        self.assertEqual(sum(states.values()), 16)
        self.assertGreater(states.get("PRUNED", 0), 0)

    def test_an_interruption_leaves_no_program_behind(self):
        path = self.make(trials=4, epochs=4000, pause=0.05)
        run = self.start("run", path)
        self.until(lambda: self.one("SELECT count(*) FROM report") > 0, "a report comes", run)
        workers = self.children(run)
        programs = [int(pid) for worker in workers
                    for pid in open(f"/proc/{worker}/task/{worker}/children").read().split()]
        self.assertGreater(len(programs), 0)
        run.send_signal(signal.SIGINT)
        time.sleep(0.3)
        run.send_signal(signal.SIGINT)
        self.wait(run, 130)
        self.assertNoWorkers(workers + programs)
        self.assertIntact()

    def test_a_killed_worker_takes_its_programs_along(self):
        path = self.make(trials=2, epochs=40, pause=0.05)
        run = self.start("run", path)
        self.until(lambda: self.one("SELECT count(*) FROM report") > 0, "a report comes", run)
        worker = self.children(run)[0]
        programs = [int(pid) for pid in open(f"/proc/{worker}/task/{worker}/children").read().split()]
        os.kill(worker, signal.SIGKILL)
        self.assertNoWorkers(programs)
        self.wait(run)
        self.assertEqual(self.states(), {"COMPLETE": 2})

    def test_a_remote_worker_runs_commands_only_when_allowed(self):
        path = self.make(trials=2)
        run = self.start("run", path, "--no-local", "--listen", f"tcp://{HOST}:*", "--log-level", "info")
        self.until(lambda: "listening endpoint=" in self.log(0), "it listens", run)
        endpoint = self.log(0).split("listening endpoint=", 1)[1].split()[0]
        refused = self.start("--connect", endpoint, "--cpu", program=WORKER)
        self.wait(refused, 1)
        self.assertIn("--allow-command", self.log(1))
        allowed = self.start("--connect", endpoint, "--cpu", "--allow-command", program=WORKER)
        self.wait(run)
        self.wait(allowed)
        self.assertEqual(self.states(), {"COMPLETE": 2})


if __name__ == "__main__":
    main()
