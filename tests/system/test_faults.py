# SPDX-License-Identifier: Apache-2.0
"""kill -9 of workers and of the coordinator at random moments; stopped and continued workers.

Every trial ends exactly once, no process is left behind, the database is whole. With HO_LONG=1 (ctest
label long) 100 kills of each kind in a study of 200 trials; without it a few.
"""
import os
import random
import signal
import time

import harness
from harness import study_text

LONG = os.environ.get("HO_LONG") == "1"
KILLS = 100 if LONG else 6
TRIALS = 200 if LONG else 30
EPOCHS = 120 if LONG else 6  # long enough for all kills to find a running study
QUICK = "HYPEROPT_TEST_QUICK" in os.environ  # where a sanitizer makes each epoch slow


class Faults(harness.SystemTest):
    def setUp(self):
        super().setUp()
        self.random = random.Random(20260131)

    def assertEveryTrialEndedOnce(self, trials):
        self.assertEqual(self.states(), {"COMPLETE": trials})
        self.assertEqual(self.one("SELECT count(*) FROM trial_value WHERE value IS NOT NULL"), trials)
        self.assertEqual(self.one("SELECT count(*) FROM fold_result WHERE fold >= 0"), 2 * trials)
        self.assertEqual(self.query("SELECT told_order FROM trial ORDER BY told_order"),
                         [(n + 1,) for n in range(trials)])
        self.assertIntact()

    def kill(self, pid, number=signal.SIGKILL):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass

    def test_workers_killed_at_random_moments_lose_nothing(self):
        self.write(study_text(trials=TRIALS, epochs=EPOCHS, attempts=1000, more="[checkpoint]\nevery = 0"))
        run = self.start("run", "t.toml", "--workers", 2)
        seen = set()
        kills = 0
        while run.poll() is None and kills < KILLS:
            time.sleep(self.random.uniform(0.05, 0.4))
            workers = self.children(run)
            seen.update(workers)
            if workers:
                self.kill(self.random.choice(workers))
                kills += 1
        seen.update(self.children(run))
        self.wait(run)
        self.assertEqual(kills, KILLS) if LONG else self.assertGreater(kills, 0)
        self.assertEveryTrialEndedOnce(TRIALS)
        self.assertNoWorkers(seen)

    def test_a_coordinator_killed_at_random_moments_loses_nothing(self):
        self.write(study_text(trials=TRIALS, epochs=3 * EPOCHS if LONG else 2 * EPOCHS))
        seen = set()
        kills = 0
        while kills < KILLS:
            run = self.start("run", "t.toml", "--workers", 2, log="log")
            time.sleep(self.random.uniform(0.1, 0.7))
            seen.update(self.children(run))
            if run.poll() is not None:
                self.assertEqual(run.returncode, 0)
                break
            self.kill(run.pid)
            run.wait()
            kills += 1
        self.assertEqual(kills, KILLS) if LONG else self.assertGreater(kills, 0)
        self.hyperopt("run", "t.toml")
        self.assertEveryTrialEndedOnce(TRIALS)
        self.assertNoWorkers(seen)

    # optuna 485, katib 845, 4234: silence beyond the lease, then the late result
    def test_a_worker_stopped_beyond_its_lease_and_continued_does_no_harm(self):
        self.write(study_text(trials=12, epochs=40, ping=0.2, silence=1, attempts=100))
        run = self.start("run", "t.toml", "--workers", 2, "--log-level", "info")
        self.until(lambda: self.one("SELECT count(*) FROM trial WHERE state = 'RUNNING'") >= 1, "a lease", run)
        victim = self.children(run)[0]
        os.kill(victim, signal.SIGSTOP)
        self.until(lambda: self.one("SELECT count(*) FROM event WHERE kind = 'lost'") >= 1
                   or run.poll() is not None, "the worker is given up")
        self.kill(victim, signal.SIGCONT)
        self.wait(run)
        self.assertEveryTrialEndedOnce(12)
        self.assertNoWorkers([victim])

    # optuna 3478: reports do not slow training down, since nothing waits for them
    def test_a_stopped_coordinator_does_not_hold_up_training(self):
        self.write(study_text(trials=1, epochs=100).replace("episodes = 4", "episodes = 16"))
        run = self.start("run", "t.toml", "--log-level", "info")
        self.until(lambda: self.one("SELECT count(*) FROM report") >= 1, "a report", run)
        self.kill(run.pid, signal.SIGSTOP)
        stored = self.one("SELECT count(*) FROM report")
        self.until(lambda: "finished trial=0" in self.log(), "the worker trains to the end")
        self.assertEqual(self.one("SELECT count(*) FROM report"), stored)  # it was stopped all the while
        self.kill(run.pid, signal.SIGCONT)
        self.wait(run)
        self.assertEveryTrialEndedOnce(1)
        self.assertEqual(self.query("SELECT count(*), min(epoch), max(epoch) FROM epoch_stat"), [(100, 1, 100)])
        self.assertEqual(self.one("SELECT attempt FROM trial"), 1)

    # optuna 820: many processes at once do not find the database locked
    def test_readers_at_any_time_never_hold_up_the_run(self):
        self.write(study_text(trials=10, epochs=6))
        run = self.start("run", "t.toml")
        self.until(lambda: (self.dir / "t.db").exists() and self.one("SELECT count(*) FROM study") == 1, "the file", run)
        while run.poll() is None:
            readers = [self.start("sql", "t.db", "SELECT count(*) FROM trial_wide", log="reader") for _ in range(8)]
            for reader in readers:
                self.assertEqual(reader.wait(harness.HANG), 0)
        self.wait(run)
        self.assertEveryTrialEndedOnce(10)

    def test_a_worker_that_gets_sigterm_hands_back_and_exits_cleanly(self):
        self.write(study_text(trials=8, epochs=100 if QUICK else 300))
        run = self.start("run", "t.toml", "--workers", 2)
        self.until(lambda: self.one("SELECT count(*) FROM report") >= 1, "a report", run)
        victim = self.children(run)[0]
        self.kill(victim, signal.SIGTERM)
        self.assertNoWorkers([victim])
        self.wait(run)
        self.assertEveryTrialEndedOnce(8)
        self.assertEqual(self.one("SELECT count(*) FROM trial WHERE fail_class IS NOT NULL"), 0)

    def test_a_handed_back_trial_goes_on_from_its_checkpoint_to_the_same_bits(self):
        self.write(study_text(trials=2, epochs=24 if QUICK else 60, more="[checkpoint]\nreplay = true",
                              study="deterministic = true\nparallel = 1").replace("episodes = 4", "episodes = 64"))
        self.hyperopt("run", "t.toml", "--database", "calm.db")
        run = self.start("run", "t.toml", "--log-level", "info")
        self.until(lambda: self.one("SELECT count(*) FROM report") >= 5, "reports", run)
        self.kill(self.children(run)[0], signal.SIGTERM)
        self.wait(run)
        self.assertGreaterEqual(self.one("SELECT count(*) FROM artifact WHERE kind = 'checkpoint'"), 1, self.all_logs())
        self.assertIn("file sent", self.log())
        self.assertGreaterEqual(self.one("SELECT max(attempt) FROM trial"), 2)
        sql = "SELECT trial, fold, hex(returns) FROM fold_result ORDER BY 1, 2"
        self.assertEqual(self.query(sql), self.query(sql, "calm.db"))

    # a lost worker costs what came after the last checkpoint, which is taken at a stated interval
    def test_a_killed_workers_trial_goes_on_from_its_periodic_checkpoint(self):
        epochs, every = (60, 6) if QUICK else (200, 20)
        self.write(study_text(trials=1, epochs=epochs, attempts=9, study="deterministic = true\nparallel = 1",
                              more=f'[checkpoint]\nreplay = true\nevery = {every}\ninterval = "0s"').replace(
                                  "episodes = 4", "episodes = 64"))
        self.assertIn("checkpoints of a running trial every 0.0 s", self.hyperopt("check", "t.toml").stdout)
        self.hyperopt("run", "t.toml", "--database", "calm.db")
        for _ in range(20):  # until the kill comes before the end
            for old in self.dir.glob("t.db*"):
                old.unlink()
            run = self.start("run", "t.toml", "--log-level", "info", log="log")
            self.until(lambda: self.one("SELECT count(*) FROM artifact WHERE kind = 'checkpoint'") >= 1, "a checkpoint")
            for worker in self.children(run):
                self.kill(worker, signal.SIGKILL)
            self.wait(run)
            if self.one("SELECT attempt FROM trial") == 2:
                break
        self.assertEqual(self.one("SELECT attempt FROM trial"), 2)
        self.assertIn("goes on from a checkpoint", self.log())
        sql = "SELECT trial, fold, hex(returns) FROM fold_result ORDER BY 1, 2"
        self.assertEqual(self.query(sql), self.query(sql, "calm.db"))
        epochs = "SELECT epoch, loss, experiences FROM epoch_stat ORDER BY epoch"
        self.assertEqual(self.query(epochs), self.query(epochs, "calm.db"))


if __name__ == "__main__":
    harness.main()
