# SPDX-License-Identifier: Apache-2.0
"""The Dockerfile: linted, and its steps carried out in clean Debian roots (dockerfile.py, debootstrap) up
to the two images, in which a small study then runs with the packages of the runtime stage only.
Needs root, debootstrap and a Debian mirror; HO_IMAGE_BASE may name a root that debootstrap made."""
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.request

import dockerfile

SOURCE = pathlib.Path(os.environ["HO_SOURCE_DIR"])
MIRROR = "http://deb.debian.org/debian"
# Of every root, or what the listed ones bring: gfortran's and the alternatives of BLAS.
BASE = {"libc6", "libgcc-s1", "libstdc++6", "zlib1g", "libtinfo6", "libgfortran5", "libblas3", "liblapack3"}
STUDY = """
[study]
name = "t"
trials = 4
[data]
path = "/data/eurusd-1h-2017.csv"
[folds]
count = 2
[env]
episodes = 4
episode_length = 32
[agent]
hidden1 = 16
hidden2 = 16
head = 8
epochs = 2
eval_every = 1
[dqn]
replay_capacity = 1024
batch = 32
learn_start = 64
[coordinator]
metrics = "127.0.0.1:{metrics}"
[search]
"dqn.learning_rate" = {{ float = [1e-5, 3e-3], log = true }}
"""


def missing():
    if os.geteuid() != 0:
        return "needs root"
    if not shutil.which("debootstrap") and not os.environ.get("HO_IMAGE_BASE"):
        return "no debootstrap"
    try:
        urllib.request.urlopen(f"{MIRROR}/dists/bookworm/Release", timeout=30).close()
    except OSError as error:
        return f"no Debian mirror: {error}"
    return None


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Image(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = pathlib.Path(tempfile.mkdtemp(prefix="ho-image-", dir=os.environ.get("HO_TEST_DIR")))
        cls.addClassCleanup(shutil.rmtree, cls.work, ignore_errors=True)
        base = os.environ.get("HO_IMAGE_BASE")
        if not base:
            base = cls.work / "base"
            subprocess.run(["debootstrap", "--variant=minbase", "bookworm", base, MIRROR], check=True,
                           stdout=subprocess.DEVNULL)
        stages = dockerfile.Build(base, SOURCE, cls.work, "worker", print).build()
        cls.coordinator, cls.worker = stages["coordinator"], stages["worker"]

    def inside(self, *argv, stage=None, mounts=(), code=0):
        done = subprocess.run((stage or self.coordinator).command(argv, mounts), capture_output=True, text=True,
                              timeout=600)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout

    def test_programs_run_as_a_user_without_rights(self):
        self.assertEqual(self.inside("id", "-u").strip(), "10001")
        self.assertIn("hyperopt", self.inside("hyperopt", "--version"))
        self.assertIn("cpu", self.inside("hyperopt-worker", "--devices"))

    def test_the_runtime_packages_are_what_the_programs_are_linked_with(self):
        root, linked = self.coordinator.root, set()
        for program in ("hyperopt", "hyperopt-worker"):
            self.assertNotIn("not found", self.inside("ldd", f"/usr/local/bin/{program}"))
            text = subprocess.run(["readelf", "-d", root / f"usr/local/bin/{program}"], check=True, capture_output=True,
                                  text=True).stdout
            linked.update(re.findall(r"NEEDED.*\[(.*)\]", text))
        self.assertIn("libsqlite3.so.0", linked)
        owners = set()
        for name in linked:
            done = subprocess.run(["chroot", root, "dpkg-query", "-S", f"*/{name}"], capture_output=True, text=True)
            owners.update(line.split(":")[0] for line in done.stdout.splitlines())
        listed = set()
        for line in (SOURCE / "tools/packages.txt").read_text().splitlines():
            if line.startswith("runtime: "):
                listed.update(line[9:].replace("|", " ").split())
        self.assertLessEqual(owners - BASE, listed)
        for name in ("gcc", "cmake", "git"):
            self.assertFalse((root / "usr/bin" / name).exists(), f"{name} is in the runtime image")

    def test_a_study_runs_and_the_healthcheck_answers(self):
        work, data = self.work / "volume", self.work / "data"
        data.mkdir()
        work.mkdir()
        shutil.copy(SOURCE / "configs/data/eurusd-1h-2017.csv", data)
        metrics, port = free_port(), free_port()
        (work / "t.toml").write_text(STUDY.format(metrics=metrics))
        subprocess.run(["chown", "-R", "10001:10001", work], check=True)
        mounts = ((work, "/work"), (data, "/data"))
        self.inside("hyperopt", "keygen", "keys", mounts=mounts)
        run = subprocess.Popen(self.coordinator.command(
            ["hyperopt", "run", "t.toml", "--no-local", "--linger", "--listen", f"tcp://127.0.0.1:{port}", "--curve",
             "keys"], mounts))
        try:
            self.inside("hyperopt-worker", "--connect", f"tcp://127.0.0.1:{port}", "--key", "keys/worker.key",
                        "--server-key", "keys/coordinator.pub", "--threads", "1", stage=self.worker, mounts=mounts)
            healthcheck = re.search(r'CMD \["([^"]+)"', self.coordinator.noted["HEALTHCHECK"]).group(1)
            self.inside(healthcheck, "127.0.0.1", str(metrics))
            self.assertIn("COMPLETE", self.inside("hyperopt", "sql", "t.db",
                                                  "SELECT state, count(*) FROM trial GROUP BY state", mounts=mounts))
        finally:
            run.terminate()
            run.wait()
        self.assertEqual(run.returncode, 0)
        self.inside(healthcheck, "127.0.0.1", str(metrics), code=1)


if __name__ == "__main__":
    reason = missing()
    if reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main(verbosity=2)
