# SPDX-License-Identifier: Apache-2.0
"""Slurm for real: munged, slurmctld and four slurmd on this host (slurm_cluster.sh). Studies go in by
`hyperopt slurm --submit`; tasks are cancelled, a node is set down, jobs reach their time limit.
Needs root and the packages slurm-wlm and munge."""
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile

import harness
from harness import study_text

SCRIPT = harness.SOURCE / "tests/cluster/slurm_cluster.sh"


def missing():
    if os.geteuid() != 0:
        return "needs root"
    for program in ("munged", "slurmctld", "slurmd", "sbatch"):
        if not shutil.which(program):
            return f"no {program} (packages slurm-wlm, munge)"
    return None


class Slurm(harness.SystemTest):
    @classmethod
    def setUpClass(cls):
        cls.cluster = tempfile.mkdtemp(prefix="ho-slurm-")
        os.environ["SLURM_CONF"] = f"{cls.cluster}/c/slurm.conf"
        cls.addClassCleanup(cls.stop)
        subprocess.run(["bash", SCRIPT, "start", f"{cls.cluster}/c"], check=True)

    @classmethod
    def stop(cls):
        subprocess.run(["bash", SCRIPT, "stop", f"{cls.cluster}/c"], check=False)
        shutil.rmtree(cls.cluster, ignore_errors=True)

    def tearDown(self):
        self.slurm("scancel", "--user", "root")
        self.until(lambda: self.slurm("squeue", "-h") == "", "the queue empties")
        for node in self.slurm("sinfo", "-h", "-N", "-o", "%N", "-t", "down,drain").split():
            self.slurm("scontrol", "update", f"nodename={node}", "state=resume")
        super().tearDown()

    def slurm(self, *args):
        done = subprocess.run(args, capture_output=True, text=True, timeout=harness.HANG)
        return done.stdout.strip()

    def submit(self, *args):
        """Submits t.toml; returns the ids of the coordinator's job and of the workers' array."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        done = self.hyperopt("slurm", "t.toml", "-N", 4, "-c", 3, "-m", 1, "--port", port, "--dir", ".", "--submit", *args)
        coordinator = int(re.search(r"coordinator (\d+)", done.stdout).group(1))
        return coordinator, coordinator + 1

    def job(self, number):
        return dict(pair.split("=", 1) for pair in self.slurm("scontrol", "show", "job", str(number)).split() if "=" in pair)

    def count(self, sql):
        return self.one(f"SELECT count(*) FROM {sql}")

    def logs_text(self):
        return "\n".join(f"--- {path.name}\n{path.read_text()[-3000:]}" for path in sorted(self.dir.glob("*.log")))

    def assertFinishes(self, trials):
        self.until(lambda: (self.dir / "finished").exists() or (self.dir / "failed").exists(), "the study ends")
        self.assertFalse((self.dir / "failed").exists(), self.logs_text())
        self.until(lambda: self.slurm("squeue", "-h") == "", "every job leaves")
        self.assertEqual(self.states(), {"COMPLETE": trials}, self.logs_text())
        self.assertEqual(self.query("SELECT told_order FROM trial ORDER BY told_order"), [(n + 1,) for n in range(trials)])
        self.assertEqual(self.count("fold_result WHERE fold >= 0"), 2 * trials)
        self.assertIntact()

    def test_forty_trials_over_four_nodes_complete(self):
        self.write(study_text(trials=40, epochs=20, silence=60))
        self.submit()
        self.assertFinishes(40)
        nodes = {name.split("-")[1] for (name,) in self.query("SELECT name FROM worker")}
        self.assertEqual(nodes, {"n1", "n2", "n3", "n4"})
        self.assertEqual(self.one("SELECT max(attempt) FROM trial"), 1)

    def test_a_cancelled_task_and_a_node_set_down_lose_nothing(self):
        self.write(study_text(trials=40, epochs=600, silence=10, attempts=100))
        _, workers = self.submit()
        self.until(lambda: self.count("worker") == 4 and self.count("report") >= 8, "four workers train")
        on = dict(reversed(line.split()) for line in self.slurm("squeue", "-h", "-r", "-j", str(workers), "-o", "%K %N").splitlines())
        cancelled = next(on[node] for node in ("n1", "n2", "n4") if node in on)
        self.slurm("scancel", f"{workers}_{cancelled}")
        self.slurm("scontrol", "update", "nodename=n3", "state=down", "reason=test")
        self.until(lambda: self.count("worker WHERE left_ns IS NOT NULL") >= 2, "two workers are gone")
        self.assertFinishes(40)
        self.assertGreaterEqual(self.count("trial WHERE attempt > 1"), 1)

    def test_a_worker_and_a_coordinator_told_that_time_is_up_are_requeued_and_go_on(self):
        self.write(study_text(trials=16, epochs=1500, silence=60, attempts=100, more="[checkpoint]\nreplay = true"))
        coordinator, workers = self.submit()
        self.until(lambda: self.count("worker") == 4 and self.count("report") >= 8, "four workers train")
        self.slurm("scancel", "--batch", "--signal=USR1", f"{workers}_2")
        self.until(lambda: int(self.job(f"{workers}_2").get("Restarts", 0)) == 1, "the worker's task is requeued")
        self.until(lambda: self.count("artifact WHERE kind = 'checkpoint'") >= 1, "it left a checkpoint")
        self.slurm("scancel", "--batch", "--signal=USR1", str(coordinator))
        self.until(lambda: int(self.job(coordinator).get("Restarts", 0)) == 1, "the coordinator is requeued")
        self.assertFinishes(16)
        self.assertGreaterEqual(self.count("event WHERE kind = 'resume'"), 1)
        self.assertGreaterEqual(self.count("worker"), 6)
        log = (self.dir / "coordinator.log").read_text()
        self.assertIn("file sent", log)  # a checkpoint came back
        self.assertIn("stopping now", log)

    def test_the_time_limit_itself_checkpoints_and_goes_on(self):
        # the warnings come 90 s (workers) and 60 s (coordinator) before the limit
        self.write(study_text(trials=24, epochs=4000, silence=60, attempts=100, more="[checkpoint]\nreplay = true"))
        coordinator, workers = self.submit("--time", "2")
        self.until(lambda: any(int(self.job(f"{workers}_{i}").get("Restarts", 0)) >= 1 for i in range(4)),
                   "a worker reaches its limit")
        for i in range(4):  # the rest without one
            self.until(lambda: int(self.job(f"{workers}_{i}").get("Restarts", 0)) >= 1, "each worker is requeued")
            self.slurm("scontrol", "update", f"jobid={workers}_{i}", "TimeLimit=UNLIMITED")
        self.until(lambda: int(self.job(coordinator).get("Restarts", 0)) >= 1, "the coordinator reaches its limit")
        self.slurm("scontrol", "update", f"jobid={coordinator}", "TimeLimit=UNLIMITED")
        self.assertFinishes(24)
        log = (self.dir / "coordinator.log").read_text()
        self.assertIn("file sent", log)  # a checkpoint came back
        self.assertIn("stopping now", log)

    def test_a_study_that_cannot_run_ends_the_workers_too(self):
        self.write(study_text(trials=2))
        with socket.create_server(("0.0.0.0", 0)) as taken:
            self.hyperopt("slurm", "t.toml", "-N", 2, "-c", 1, "-m", 1, "--port", taken.getsockname()[1], "--dir", ".",
                          "--submit")
            self.until(lambda: (self.dir / "failed").exists(), "the coordinator fails")
            self.until(lambda: self.slurm("squeue", "-h") == "", "every job leaves")

    def test_the_printed_script_is_what_is_submitted(self):
        self.write(study_text(trials=3), "it's.toml")
        script = self.hyperopt("slurm", "it's.toml", "-N", 2, "-c", 1, "-m", 1, "--dir", ".", "--time", 10).stdout
        self.write(script, "submit.sh")
        self.assertEqual(subprocess.run(["bash", "-n", "submit.sh"], cwd=self.dir).returncode, 0)
        self.assertIn("--array=0-1", script)
        subprocess.run(["bash", "submit.sh"], cwd=self.dir, check=True)
        self.assertFinishes(3)


if __name__ == "__main__":
    reason = missing()
    if reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    harness.main()
