# SPDX-License-Identifier: Apache-2.0
"""A worker whose device does not wait for its host (the emulated GPU), with the real coordinator: what
trials report and score is the same whatever ran beside them, and after an interruption."""
import os
import pathlib
import shutil
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "system"))
import harness  # noqa: E402
from harness import study_text  # noqa: E402

QUICK = "HYPEROPT_TEST_QUICK" in os.environ  # where a sanitizer makes each epoch slow
TRIALS, EPOCHS, EVERY = 4, 4 if QUICK else 8, 2
TABLES = ("SELECT trial, value FROM trial_value ORDER BY trial",
          "SELECT trial, step, value FROM report ORDER BY trial, step",
          "SELECT trial, epoch, loss, reward_mean, experiences, validation FROM epoch_stat ORDER BY trial, epoch",
          "SELECT trial, fold, seed, returns, random_percentile FROM fold_result ORDER BY trial, fold, seed",
          "SELECT fold, policy, returns FROM baseline ORDER BY fold, policy")


class Worker(harness.SystemTest):
    def setUp(self):
        super().setUp()
        (self.dir / "bin").mkdir()
        shutil.copy(harness.HYPEROPT, self.dir / "bin/hyperopt")  # which starts the worker beside it
        shutil.copy(harness.BIN / "hyperopt-worker-emulated", self.dir / "bin/hyperopt-worker")
        self.write(study_text(trials=TRIALS, epochs=EPOCHS).replace("eval_every = 1", f"eval_every = {EVERY}"))

    def begin(self, *more, database="t.db"):
        return self.start("run", "t.toml", "--database", database, "--set", "workers.gpus=all", "--log-level", "info",
                          *more, program=str(self.dir / "bin/hyperopt"), log=database + ".log")

    def run_whole(self, *more, database):
        self.wait(self.begin(*more, database=database))
        self.assertEqual(self.states(database), {"COMPLETE": TRIALS})

    def narrow(self):
        """narrow.db: one trial, one agent at a time."""
        kept = self.dir.parent / "narrow.db"
        if kept.exists():
            shutil.copy(kept, self.dir)
        else:
            self.run_whole("--set", "workers.in_flight=1", "--set", "workers.lanes=1", database="narrow.db")
            shutil.copy(self.dir / "narrow.db", kept)

    def assertSame(self, one, other):
        for sql in TABLES:
            rows = self.query(sql, one)
            self.assertEqual(rows, self.query(sql, other), sql)
            self.assertTrue(rows, sql)

    def test_in_flight_and_lanes_change_no_row(self):
        self.run_whole("--set", "workers.in_flight=4", database="wide.db")
        self.assertIn("CPU emulation", self.log())
        self.assertRegex(self.log(), r"worker: time study=\d+\.\d device_busy=\d")
        self.assertEqual(self.query("SELECT trial, count(*) FROM epoch_stat GROUP BY trial", "wide.db"),
                         [(n, EPOCHS) for n in range(TRIALS)])
        self.narrow()
        self.assertSame("wide.db", "narrow.db")

    def test_a_killed_workers_trials_go_on_as_if_nothing_had_been(self):
        self.narrow()
        run = self.begin("--set", "workers.in_flight=4", "--set", "checkpoint.interval=0s", "--set",
                         "checkpoint.replay=true")
        self.until(lambda: self.one("SELECT count(*) FROM artifact WHERE kind = 'checkpoint'") >= 2, "checkpoints", run)
        for pid in self.children(run):
            os.kill(pid, signal.SIGKILL)
        self.wait(run)
        self.assertIn("goes on from a checkpoint", self.all_logs())
        self.assertSame("t.db", "narrow.db")

    def test_stopped_at_once_and_run_again(self):
        self.narrow()
        more = ("--set", "workers.in_flight=4", "--set", "checkpoint.replay=true")
        run = self.begin(*more)
        self.until(lambda: self.one("SELECT count(*) FROM epoch_stat") >= 1, "epochs", run)
        run.send_signal(signal.SIGINT)
        run.send_signal(signal.SIGINT)
        self.wait(run, 130)
        self.assertNotIn("RUNNING", self.states())
        self.wait(self.begin(*more))
        self.assertSame("t.db", "narrow.db")


def main():
    if not (harness.BIN / "hyperopt-worker-emulated").exists():
        print("skipped: hyperopt-worker-emulated is not built")
        sys.exit(77)
    kept = pathlib.Path(os.environ["HO_TEST_DIR"]) / "narrow.db"
    kept.unlink(missing_ok=True)  # of an earlier run of this program
    harness.main()


if __name__ == "__main__":
    main()
