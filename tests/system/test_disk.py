# SPDX-License-Identifier: Apache-2.0
"""A full disk, a read-only folder, a clock that jumps: results are kept, and the run goes on or says why.

Needs root (mount), and is skipped without.
"""
import os
import subprocess

import harness
from harness import study_text


class Disk(harness.SystemTest):
    def setUp(self):
        super().setUp()
        self.mount = self.dir / "small"
        self.mount.mkdir()
        if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", self.mount],
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
        filler = os.open(self.mount / "filler", os.O_WRONLY | os.O_CREAT)
        try:
            while True:
                os.write(filler, b"x" * 4096)
        except OSError:
            pass
        os.close(filler)
        self.until(lambda: "paused, results are kept in memory" in self.log(), "the pause", run)
        self.assertIn("small/t.db", self.log())
        stored = self.one("SELECT count(*) FROM trial_value", "small/t.db")
        self.assertIsNone(run.poll())
        self.assertLess(stored, 12)
        os.unlink(self.mount / "filler")
        self.wait(run)
        self.assertIn("writing again", self.log())
        self.assertEqual(self.states("small/t.db"), {"COMPLETE": 12})
        self.assertEqual(self.one("SELECT count(*) FROM trial_value", "small/t.db"), 12)
        self.assertIntact("small/t.db")

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
