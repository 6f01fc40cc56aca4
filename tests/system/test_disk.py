# SPDX-License-Identifier: Apache-2.0
"""A full disk, a read-only folder, a clock that jumps: results are kept, and the run goes on or says why.

Needs root (mount), and is skipped without.
"""
import hashlib
import os
import signal
import subprocess

import harness
from harness import promoting, study_text


class Disk(harness.SystemTest):
    def setUp(self):
        super().setUp()
        self.mount = self.dir / "small"
        self.mount.mkdir()
        if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", self.mount],
                                               capture_output=True).returncode != 0:
            self.skipTest("cannot mount a small tmpfs")

    def tearDown(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.wait()
        subprocess.run(["umount", "-l", self.mount], capture_output=True)
        super().tearDown()

    # ray 23674: with a full disk no trial is marked done that is not stored
    def test_a_full_disk_pauses_the_run_and_loses_nothing(self):
        self.write(study_text(trials=12, epochs=4))
        run = self.start("run", "t.toml", "--database", "small/t.db", "--log-level", "info")
        self.until(lambda: self.one("SELECT count(*) FROM trial WHERE state = 'COMPLETE'", "small/t.db") >= 1, "a trial",
                   run)
        filler = self.fill()
        self.until(lambda: "paused, results are kept in memory" in self.log(), "the pause", run)
        self.assertIn("small/t.db", self.log())
        stored = self.one("SELECT count(*) FROM trial_value", "small/t.db")
        self.assertIsNone(run.poll())
        self.assertLess(stored, 12)
        filler.unlink()
        self.wait(run)
        self.assertIn("writing again", self.log())
        self.assertEqual(self.states("small/t.db"), {"COMPLETE": 12})
        self.assertEqual(self.one("SELECT count(*) FROM trial_value", "small/t.db"), 12)
        self.assertIntact("small/t.db")

    def fill(self):
        """Fills the small disk; removing the file it returns makes room again."""
        filler = os.open(self.mount / "filler", os.O_WRONLY | os.O_CREAT)
        try:
            while True:
                os.write(filler, b"x" * 4096)
        except OSError:
            pass
        os.close(filler)
        return self.mount / "filler"

    def assert_artifacts_whole(self):
        """Every artifact that is not deleted is there as it was sent."""
        rows = self.query("SELECT path, size, sha256 FROM artifact WHERE deleted_ns IS NULL")
        for path, size, sha256 in rows:
            data = (self.dir / "t.artifacts" / path).read_bytes()
            self.assertEqual((len(data), hashlib.sha256(data).hexdigest()), (size, sha256), path)
        return rows

    # agents whose files cannot be written stay at the worker, and their result with them
    def test_artifacts_wait_for_room_and_none_is_lost(self):
        (self.dir / "t.artifacts").symlink_to(self.mount)
        filler = self.fill()
        self.write(study_text(trials=6, epochs=2))
        run = self.start("run", "t.toml", "--log-level", "info")
        self.until(lambda: "wait at the workers" in self.log(), "the pause", run)
        self.assertIn("t.artifacts", self.log())
        self.assertEqual(self.one("SELECT count(*) FROM trial WHERE state = 'COMPLETE'"), 0)
        self.assertIsNone(run.poll())
        filler.unlink()
        self.wait(run)
        self.assertIn("artifacts are written again", self.log())
        self.assertEqual(self.states(), {"COMPLETE": 6})
        self.assertEqual(self.one("SELECT max(attempt) FROM trial"), 1)  # no trial ran twice
        rows = self.assert_artifacts_whole()
        self.assertEqual(sum(path.endswith(".actions.zst") for path, _, _ in rows), 6 * 2)
        kept = self.query("SELECT count(*) FROM artifact WHERE kind = 'weights' AND deleted_ns IS NULL "
                          "GROUP BY trial")
        self.assertTrue(kept and all(count == 2 for count, in kept), kept)
        self.assertIntact()

    def test_a_paused_trials_checkpoint_waits_for_room(self):
        (self.dir / "t.artifacts").symlink_to(self.mount)
        filler = self.fill()
        self.write(promoting(study_text(trials=12, epochs=4)))
        run = self.start("run", "t.toml", "--log-level", "info")
        self.until(lambda: "wait at the workers" in self.log(), "the pause", run)
        filler.unlink()
        self.wait(run)
        self.assertEqual(set(self.states()), {"COMPLETE", "PRUNED"})
        self.assertEqual(self.one("SELECT count(*) FROM artifact WHERE kind = 'checkpoint' AND deleted_ns IS NULL"), 0)
        self.assert_artifacts_whole()

    def test_a_worker_that_dies_with_its_artifacts_holds_nobody_up(self):
        (self.dir / "t.artifacts").symlink_to(self.mount)
        filler = self.fill()
        self.write(promoting(study_text(trials=12, epochs=4, attempts=9)))
        run = self.start("run", "t.toml", "--log-level", "info")
        self.until(lambda: "wait at the workers" in self.log(), "the pause", run)
        os.kill(self.children(run)[0], signal.SIGKILL)
        filler.unlink()
        self.wait(run)
        self.assertIn("artifacts are written again", self.log())
        self.assertLessEqual(set(self.states()), {"COMPLETE", "PRUNED"})
        self.assert_artifacts_whole()

    def test_a_read_only_folder_is_refused_by_run_and_read_by_sql(self):
        self.write(study_text(trials=1))
        self.hyperopt("run", "t.toml", "--database", "small/t.db")
        subprocess.run(["mount", "-o", "remount,ro", self.mount], check=True)
        done = self.hyperopt("run", "t.toml", "--database", "small/t.db", "--trials", 1, code=4)
        self.assertIn("small/t.db", done.stderr)
        done = self.hyperopt("run", "t.toml", "--database", "small/new.db", code=4)
        self.assertIn("small/new.db", done.stderr)
        rows = self.hyperopt("sql", "small/t.db", "SELECT count(*) FROM trial", "--format", "csv").stdout
        self.assertEqual(rows.split(), ["count(*)", "1"])
        self.assertIn("finished", self.hyperopt("status", "small/t.db").stdout)


if __name__ == "__main__":
    harness.main()
