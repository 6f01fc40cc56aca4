# SPDX-License-Identifier: Apache-2.0
"""What the system tests share: the two real programs, small studies, a fresh folder for each test.

The build folder comes in HO_BINARY_DIR, the source folder in HO_SOURCE_DIR (ctest sets both).
Nothing here asserts on time; waits are bounded only so that a hung program fails the test.
"""
import os
import pathlib
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE = pathlib.Path(os.environ["HO_SOURCE_DIR"])
BIN = pathlib.Path(os.environ["HO_BINARY_DIR"]) / "bin"
HYPEROPT = str(BIN / "hyperopt")
WORKER = str(BIN / "hyperopt-worker")
DATA = SOURCE / "configs/data/eurusd-1h-2017.csv"
HANG = float(os.environ.get("HO_HANG", 600))  # seconds after which a program counts as hung

# A loopback address of this process alone. While a test's coordinator is away, its port is free: on an
# address for all, the coordinator of a test beside it would take it, and the workers that wait for it.
HOST = f"127.{1 + (os.getpid() >> 16)}.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"

BASE = """
[study]
name = "t"
seed = 7
trials = {trials}
{study}
[data]
path = "{data}"
[folds]
count = 2
[env]
episodes = 4
episode_length = 32
[agent]
hidden1 = 16
hidden2 = 16
head = 8
epochs = {epochs}
eval_every = 1
[dqn]
replay_capacity = 1024
batch = 32
learn_start = 64
[sampler]
kind = "random"
[pruner]
kind = "none"
[workers]
gpus = 0
threads = 1
[coordinator]
heartbeat_interval = "{ping}s"
heartbeat_timeout = "{silence}s"
max_attempts = {attempts}
{more}
[search]
"dqn.learning_rate" = {{ float = [1e-5, 3e-3], log = true }}
"barriers.stop_loss" = {{ float = [10, 80] }}
{search}
"""


def study_text(trials=6, epochs=2, study="", more="", search="", data=DATA, ping=1, silence=30, attempts=3):
    return BASE.format(trials=trials, epochs=epochs, study=study, more=more, search=search, data=data,
                       ping=ping, silence=silence, attempts=attempts)


def promoting(text, first=1, reduction=3):
    """The study with pauses: one in `reduction` goes on at each rung, the others may later."""
    return text.replace('kind = "none"',
                        f'kind = "asha"\nmin_epochs = {first}\nreduction = {reduction}\npromote = true')


def free_port():
    """A tcp port of HOST that nobody uses."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


class SystemTest(unittest.TestCase):
    def setUp(self):
        self.begun = time.monotonic()
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="ho-", dir=os.environ.get("HO_TEST_DIR")))
        self.started = []
        self.logs = []

    def tearDown(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.wait()
        print(f"{time.monotonic() - self.begun:.1f} s", end=" ", file=sys.stderr, flush=True)
        # failed tests leave their folder for a look
        if not self.failed():
            shutil.rmtree(self.dir, ignore_errors=True)

    def failed(self):
        outcome = self._outcome
        result = getattr(outcome, "result", None)
        bad = list(getattr(result, "failures", [])) + list(getattr(result, "errors", []))
        return any(test is self for test, _ in bad)

    def write(self, text, name="t.toml"):
        path = self.dir / name
        path.write_text(text)
        return path

    def hyperopt(self, *args, code=0, env=None, timeout=HANG):
        """Runs hyperopt to its end; checks the exit code (None: any)."""
        done = subprocess.run([HYPEROPT, *map(str, args)], cwd=self.dir, capture_output=True, text=True,
                              timeout=timeout, env={**os.environ, **(env or {})})
        if code is not None:
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def start(self, *args, program=HYPEROPT, env=None, log=None):
        """Starts a program and leaves it running; its output goes to a file."""
        path = self.dir / (log or f"log{len(self.started)}")
        self.logs.append(path)
        out = open(path, "a")
        process = subprocess.Popen([program, *map(str, args)], cwd=self.dir, stdout=out, stderr=subprocess.STDOUT,
                                   env={**os.environ, **(env or {})})
        out.close()
        self.started.append(process)
        return process

    def log(self, number=0):
        return self.logs[number].read_text()

    def all_logs(self):
        return "\n".join(f"--- {path.name}\n{path.read_text()}" for path in dict.fromkeys(self.logs))

    def query(self, sql, db="t.db"):
        """All rows of a query on the study's file, read-only."""
        connection = sqlite3.connect(f"file:{self.dir / db}?mode=ro", uri=True, timeout=30)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()

    def one(self, sql, db="t.db"):
        return self.query(sql, db)[0][0]

    def states(self, db="t.db"):
        return dict(self.query("SELECT state, count(*) FROM trial GROUP BY state", db))

    def until(self, condition, what, process=None):
        """Waits until condition() is true; a program that ends meanwhile fails the test."""
        end = time.monotonic() + HANG
        while time.monotonic() < end:
            try:
                if condition():
                    return
            except (sqlite3.Error, IndexError, FileNotFoundError):
                pass
            if process is not None and process.poll() is not None:
                self.fail(f"{what}: the program ended with {process.returncode}\n" + self.all_logs())
            time.sleep(0.02)
        self.fail(f"{what}: still waiting\n" + self.all_logs())

    def wait(self, process, code=0):
        try:
            process.wait(HANG)
        except subprocess.TimeoutExpired:
            self.fail(f"still running: {process.args}\n" + self.all_logs())
        self.assertEqual(process.returncode, code, self.all_logs())

    def children(self, process):
        """Process ids of the children of a process."""
        path = f"/proc/{process.pid}/task/{process.pid}/children"
        try:
            return [int(pid) for pid in pathlib.Path(path).read_text().split()]
        except FileNotFoundError:
            return []

    def assertNoWorkers(self, pids):
        """None of these processes is left (a zombie of another parent does not count)."""
        def alive(pid):
            try:
                return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
            except (FileNotFoundError, ProcessLookupError):
                return False
        self.until(lambda: not any(alive(pid) for pid in pids), "workers end")

    def assertIntact(self, db="t.db"):
        self.assertEqual(self.query("PRAGMA integrity_check", db), [("ok",)])
        self.assertEqual(self.query("PRAGMA foreign_key_check", db), [])


def main():
    if not (os.access(HYPEROPT, os.X_OK) and os.access(WORKER, os.X_OK)):
        print(f"skipped: {HYPEROPT} and {WORKER} are not built")
        sys.exit(77)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unittest.main(verbosity=2)
