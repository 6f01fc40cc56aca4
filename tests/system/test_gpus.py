# SPDX-License-Identifier: Apache-2.0
"""Several GPUs in one machine: gpus = "all", choice by UUID, one that fails for good.

In a build without CUDA the worker is the one of tests/emulator, whose two GPUs are emulated. With
CUDA it is the real one; tests that need two GPUs are skipped where there are fewer.
"""
import os
import re
import shutil
import subprocess
import sys
import unittest

import harness
from harness import HYPEROPT, SystemTest, study_text

EMULATED = harness.BIN / "hyperopt-worker-emulated"
WORKER = EMULATED if EMULATED.exists() else harness.WORKER
ENV = {"HYPEROPT_EMULATOR_DEVICES": "2", "OMP_WAIT_POLICY": "passive"} if EMULATED.exists() else {}


def uuids():
    done = subprocess.run([WORKER, "--devices"], capture_output=True, text=True, env={**os.environ, **ENV})
    return re.findall(r"^\d+ +(GPU-[0-9a-f-]+),", done.stdout, re.M)


GPUS = uuids()


def gpu_study(gpus, trials=4):
    return study_text(trials=trials, epochs=1).replace("gpus = 0", f"gpus = {gpus}")


class GpusTest(SystemTest):
    def setUp(self):
        super().setUp()
        self.bin = self.dir / "bin"
        self.bin.mkdir()
        shutil.copy(HYPEROPT, self.bin / "hyperopt")
        self.use_worker(f'exec {WORKER} "$@"')

    def use_worker(self, script):
        path = self.bin / "hyperopt-worker"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def run_study(self, text, name, code=0):
        self.write(text, f"{name}.toml")
        run = self.start("run", f"{name}.toml", "--database", f"{name}.db", program=str(self.bin / "hyperopt"),
                         env=ENV, log=f"{name}.log")
        self.wait(run, code)

    def results(self, name):
        columns = ", ".join(column for column, in self.query(
            "SELECT name FROM pragma_table_info('fold_result')", f"{name}.db"))
        return self.query(f"SELECT {columns} FROM fold_result ORDER BY 1, 2, 3", f"{name}.db")

    def workers(self, name):
        return [uuid for uuid, in self.query("SELECT device_uuid FROM worker ORDER BY id", f"{name}.db")]

    @unittest.skipIf(len(GPUS) < 2, "fewer than two GPUs")
    def test_all_gpus_get_a_worker_and_results_are_the_same_on_each(self):
        self.run_study(gpu_study('"all"'), "all")
        self.run_study(gpu_study("[0]"), "first")
        self.run_study(gpu_study(f'["{GPUS[1]}"]'), "second")
        for name in ("all", "first", "second"):
            self.assertEqual(self.states(f"{name}.db"), {"COMPLETE": 4}, name)
        self.assertLessEqual(set(self.workers("all")), set(GPUS))
        self.assertEqual(set(self.workers("first")), {GPUS[0]})
        self.assertEqual(set(self.workers("second")), {GPUS[1]})
        log = (self.dir / "all.log").read_text()
        self.assertTrue(self.results("first"))
        self.assertEqual(self.results("first"), self.results("second"))
        self.assertEqual(self.results("first"), self.results("all"), log)

    @unittest.skipIf(not GPUS, "no GPU")
    def test_an_unknown_uuid_is_said(self):
        self.run_study(gpu_study('["GPU-00000000-0000-0000-0000-0000000000ff"]', trials=1), "unknown", 3)
        self.assertIn("no GPU with UUID GPU-00000000-0000-0000-0000-0000000000ff", (self.dir / "unknown.log").read_text())

    # a sticky CUDA error: the process ends, its trials are requeued, a fresh process goes on
    @unittest.skipIf(not EMULATED.exists(), "needs the emulator, which can be told to fail")
    def test_a_failed_context_ends_its_worker_and_a_fresh_one_goes_on(self):
        self.run_study(gpu_study("[0]"), "well")
        self.use_worker('if [ "$1" != --devices ] && mkdir failed 2>/dev/null; then HYPEROPT_EMULATOR_FAULT=60; '
                        f'export HYPEROPT_EMULATOR_FAULT; fi\nexec {WORKER} "$@"')
        self.run_study(gpu_study("[0]"), "ill")
        self.assertEqual(self.states("ill.db"), {"COMPLETE": 4})
        log = (self.dir / "ill.log").read_text()
        self.assertIn("illegal memory access", log)
        self.assertIn("exit code 3", log)
        attempts = [attempt for attempt, in self.query("SELECT attempt FROM trial ORDER BY number", "ill.db")]
        self.assertEqual(max(attempts), 2)  # requeued once
        self.assertEqual(len(self.workers("ill")), 2)
        self.assertEqual(self.results("ill"), self.results("well"))


if __name__ == "__main__":
    if not GPUS:
        print("no GPU, none emulated: skipped")
        sys.exit(77)
    harness.main()
