# SPDX-License-Identifier: Apache-2.0
"""The lifecycle that the Kubernetes manifests describe, played with real processes: the commands come
from the manifests themselves, a folder is the coordinator's volume, a loop replaces pods as a Job does."""
import json
import pathlib
import re
import shutil
import signal
import subprocess
import threading
import urllib.error
import urllib.request

import harness
from harness import HOST, WORKER, free_port, study_text

K8S = harness.SOURCE / "k8s"
GRACE_S = 90  # terminationGracePeriodSeconds of the workers


def args_of(manifest):
    """The args list of the first container of a manifest."""
    lines = (K8S / manifest).read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.strip() == "args:")
    out = []
    for line in lines[start + 1:]:
        if not line.strip().startswith("- "):
            return out
        out.append(line.strip()[2:].strip('"'))
    return out


class Lifecycle(harness.SystemTest):
    def setUp(self):
        super().setUp()
        self.port, self.metrics = free_port(), free_port()
        self.hyperopt("keygen", "keys")
        self.pods = []
        self.over = False

    def tearDown(self):
        self.over = True
        for pod in self.pods:
            pod.join()
        super().tearDown()

    def study(self, more="", **keys):
        self.write(study_text(more=f'metrics = "{HOST}:{self.metrics}"\n{more}', **keys))

    def coordinator(self, **kwargs):
        """The coordinator's pod, started as the StatefulSet does."""
        put = {"/etc/hyperopt/study.toml": "t.toml", "tcp://*:5555": f"tcp://{HOST}:{self.port}", "/keys": "keys"}
        return self.start(*[put.get(a, a) for a in args_of("base/coordinator.yaml")], log="coordinator", **kwargs)

    def worker_args(self, name):
        put = {"tcp://hyperopt-coordinator:5555": f"tcp://{HOST}:{self.port}", "/keys/worker.key": "keys/worker.key",
               "/keys/coordinator.pub": "keys/coordinator.pub", "/data/.cache": self.dir / "cache", "$(POD_NAME)": name}
        return [put.get(a, a) for a in args_of("workers-job/workers.yaml")] + ["--cpu", "--threads", 1]

    def pod(self, name):
        return self.start(*self.worker_args(name), program=WORKER, log=name)

    def job_index(self, index):
        """One index of the indexed Job: a pod, replaced until one leaves with 0."""
        codes = []
        current = []

        def loop():
            while not self.over:
                process = self.pod(f"worker-{index}-{len(codes)}")
                current[:] = [process]
                process.wait()
                codes.append(process.returncode)
                if process.returncode == 0:
                    return
        thread = threading.Thread(target=loop)
        self.pods.append(thread)
        thread.start()
        return codes, current, thread

    def get(self, path):
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self.metrics}{path}", timeout=10) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def healthcheck(self):
        return subprocess.run([harness.SOURCE / "tools/hyperopt-healthcheck", HOST, str(self.metrics)],
                              stderr=subprocess.DEVNULL).returncode

    def count(self, sql):
        return self.one(f"SELECT count(*) FROM {sql}")

    def assertEachOnce(self, trials):
        self.assertEqual(self.states(), {"COMPLETE": trials})
        self.assertEqual(self.query("SELECT told_order FROM trial ORDER BY told_order"), [(n + 1,) for n in range(trials)])
        self.assertEqual(self.count("fold_result WHERE fold >= 0"), 2 * trials)
        self.assertIntact()

    def finished(self, process):
        self.until(lambda: self.one("SELECT state FROM study") == "finished", "the study ends", process)

    def replaced_coordinator(self, ending, code):
        self.study(trials=8, epochs=150, ping=0.2, silence=10)
        run = self.coordinator()
        self.until(lambda: self.get("/livez")[0] == 200, "startup probe", run)
        workers = [self.pod("worker-0"), self.pod("worker-1")]
        self.until(lambda: self.get("/readyz")[0] == 200, "readiness probe", run)
        before = self.count("report")
        self.until(lambda: self.count("report") >= before + 4, "reports", run)
        run.send_signal(ending)
        self.wait(run, code)
        self.assertEqual([w.poll() for w in workers], [None, None])  # they train on
        run = self.coordinator()
        self.until(lambda: self.get("/readyz")[0] == 200, "the next pod is ready", run)
        self.finished(run)
        for worker in workers:
            self.wait(worker)
        self.assertEachOnce(8)
        return run

    def test_a_killed_coordinator_pod_is_replaced_on_the_same_volume(self):
        run = self.replaced_coordinator(signal.SIGKILL, -signal.SIGKILL)
        # only a lease that was on its way may have been given again
        self.assertEqual(self.query("SELECT text FROM event WHERE kind IN ('requeue', 'late', 'lost') "
                                    "AND text NOT LIKE '%came back with%'"), [])
        run.send_signal(signal.SIGTERM)
        self.wait(run)

    def test_an_evicted_coordinator_pod_is_replaced_and_no_trial_begins_anew(self):
        run = self.replaced_coordinator(signal.SIGTERM, 130)
        self.assertEqual(self.one("SELECT max(attempt) FROM trial"), 1, self.all_logs())
        # the end: probes go on, a pod that comes late goes home with 0, SIGTERM ends it with 0
        self.assertEqual(self.get("/livez")[0], 200)
        self.wait(self.pod("late"))
        run.send_signal(signal.SIGTERM)
        self.wait(run)
        self.assertEqual(self.get("/livez")[0], 0)
        # and so does a pod that is started on a finished study
        run = self.coordinator()
        self.until(lambda: self.get("/livez")[0] == 200, "it answers", run)
        self.wait(self.pod("later"))
        run.send_signal(signal.SIGTERM)
        self.wait(run)
        self.assertEachOnce(8)

    def test_replaced_and_preempted_worker_pods_lose_nothing(self):
        self.study(trials=8, epochs=80, ping=0.2, silence=10, attempts=100, more="[checkpoint]\nreplay = true")
        run = self.coordinator()
        indices = [self.job_index(i) for i in range(3)]
        for ending in (signal.SIGTERM, signal.SIGKILL, signal.SIGUSR1):
            before = self.count("report") if (self.dir / "t.db").exists() else 0
            self.until(lambda: self.count("report") >= before + 4, "reports", run)
            codes, current, _ = indices[[signal.SIGTERM, signal.SIGKILL, signal.SIGUSR1].index(ending)]
            ended = len(codes)
            victim = current[0]
            victim.send_signal(ending)
            victim.wait(GRACE_S)  # the kubelet would kill it then
            self.until(lambda: len(codes) > ended, "the pod ends")
            self.assertEqual(codes[ended], -signal.SIGKILL if ending == signal.SIGKILL else 75, self.all_logs())
        self.finished(run)
        for codes, _, thread in indices:
            thread.join(harness.HANG)
            self.assertEqual(codes[-1], 0)
            self.assertEqual(len(codes), 2)  # the Job is complete: each index was replaced once
        self.assertIn("file sent", (self.dir / "coordinator").read_text())  # a checkpoint went to another pod
        self.assertGreaterEqual(self.one("SELECT max(attempt) FROM trial"), 2)
        self.assertEachOnce(8)
        run.send_signal(signal.SIGTERM)
        self.wait(run)

    def test_healthcheck_answers_while_the_coordinator_lives(self):
        self.study(trials=2)
        self.assertNotEqual(self.healthcheck(), 0)
        run = self.coordinator()
        self.until(lambda: self.healthcheck() == 0, "healthy", run)
        run.send_signal(signal.SIGSTOP)
        self.until(lambda: pathlib.Path(f"/proc/{run.pid}/stat").read_text().split()[2] == "T", "it stands still")
        self.assertEqual(self.get("/livez")[0], 0)
        run.send_signal(signal.SIGCONT)
        self.until(lambda: self.healthcheck() == 0, "healthy again", run)
        run.send_signal(signal.SIGTERM)
        self.wait(run, 130)

    def test_sigusr1_stops_now_and_the_study_resumes(self):
        self.study(trials=4, epochs=100)
        run = self.start("run", "t.toml", "--workers", 2)
        self.until(lambda: self.count("report") >= 3, "reports", run)
        run.send_signal(signal.SIGUSR1)
        self.wait(run, 130)
        self.assertIn("INTERRUPTED", self.states())
        self.hyperopt("run", "t.toml", "--workers", 2)
        self.assertEachOnce(4)

    def test_features_made_by_the_job_are_what_the_workers_look_up(self):
        cache = self.dir / "features"
        env = {"HYPEROPT_FEATURE_CACHE": str(cache)}
        self.study(trials=2)
        text = (K8S / "base/feature-cache.yaml").read_text()
        args = [a.strip() for a in re.search(r"args: \[(.*)\]", text).group(1).split(",")]
        put = {"/etc/hyperopt/study.toml": "t.toml", "/data/features": cache}
        self.hyperopt(*[put.get(a, a) for a in args])
        files = sorted(p.name for p in cache.iterdir())
        self.assertTrue(files)
        run = self.coordinator(env=env)
        worker = self.start(*self.worker_args("w"), program=WORKER, log="worker", env=env)
        self.wait(worker)
        run.send_signal(signal.SIGTERM)
        self.wait(run)
        lines = [json.loads(line) for log in ("coordinator", "worker") for line in (self.dir / log).read_text().splitlines()
                 if line.startswith("{")]
        told = [line for line in lines if "cache" in json.dumps(line)]
        self.assertTrue(any("cache hit" in json.dumps(line) for line in told), told)
        self.assertFalse(any("cache miss" in json.dumps(line) for line in told), told)
        bars = sorted(p.name for p in cache.glob("*.bars"))
        self.assertLessEqual(len(bars), 1, bars)  # the bars that coordinator and worker share
        self.assertEqual(sorted(p.name for p in cache.iterdir()), sorted(files + bars))
        # another study's features: a miss that names both keys
        shutil.rmtree(cache)
        self.hyperopt(*[put.get(a, a) for a in args], "--set", "features.long_window=500")
        again = self.hyperopt("run", "t.toml", "--trials", 1, "--log-level", "info", env=env)
        self.assertRegex(again.stderr, r"cache miss key=[0-9a-f]{64}.*[0-9a-f]{64}")


if __name__ == "__main__":
    harness.main()
