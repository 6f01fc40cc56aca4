# SPDX-License-Identifier: Apache-2.0
"""A database on a network filesystem, played by a FUSE mount (bindfs), which counts as one: rollback
journal, one line that says so and names the mend, readers told why they must wait. Needs root, bindfs."""
import os
import shutil
import subprocess

import harness
from harness import study_text


class NetworkFilesystem(harness.SystemTest):
    def setUp(self):
        super().setUp()
        if os.geteuid() != 0 or not shutil.which("bindfs"):
            self.skipTest("needs root and bindfs")
        (self.dir / "real").mkdir()
        (self.dir / "home").mkdir()
        if subprocess.run(["bindfs", self.dir / "real", self.dir / "home"], stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("cannot mount FUSE")
        self.addCleanup(lambda: subprocess.run(["umount", "-l", self.dir / "home"], check=False))

    def tearDown(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.wait()
        subprocess.run(["umount", "-l", self.dir / "home"], check=False)
        super().tearDown()

    def test_a_run_says_so_and_uses_a_rollback_journal(self):
        self.write(study_text(trials=3))
        done = self.hyperopt("run", "t.toml", "--database", "home/t.db")
        self.assertRegex(done.stderr, r"network filesystem: rollback journal.*study\.database.*path=home/t\.db")
        self.assertFalse((self.dir / "real/t.db-wal").exists())
        self.assertFalse((self.dir / "real/t.db-shm").exists())
        header = (self.dir / "real/t.db").read_bytes()[18:20]
        self.assertEqual(header, b"\x01\x01", "the file's header says rollback journal, not WAL")
        self.assertEqual(self.states("home/t.db"), {"COMPLETE": 3})
        self.assertIntact("home/t.db")
        self.hyperopt("status", "home/t.db")

    def test_readers_are_told_why_they_must_wait(self):
        self.write(study_text(trials=500, epochs=50))
        run = self.start("run", "t.toml", "--database", "home/t.db", "--log-level", "info")
        self.until(lambda: "finished" in self.log() or "/500" in self.log(), "it runs", run)
        done = self.hyperopt("sql", "home/t.db", "SELECT count(*) FROM trial", code=4)
        self.assertIn("network filesystem", done.stderr)
        self.assertIn("study.database", done.stderr)

    def test_a_killed_run_resumes(self):
        self.write(study_text(trials=12, epochs=50))
        run = self.start("run", "t.toml", "--database", "home/t.db")
        self.until(lambda: "/12" in self.log(), "it runs", run)
        run.kill()
        run.wait()
        self.hyperopt("run", "t.toml", "--database", "home/t.db")
        self.assertEqual(self.states("home/t.db"), {"COMPLETE": 12})
        self.assertIntact("home/t.db")

    def test_a_local_file_keeps_wal(self):
        self.write(study_text(trials=1))
        done = self.hyperopt("run", "t.toml")
        self.assertNotIn("network filesystem", done.stderr)
        self.assertEqual((self.dir / "t.db").read_bytes()[18:20], b"\x02\x02")


if __name__ == "__main__":
    harness.main()
