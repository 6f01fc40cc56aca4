# SPDX-License-Identifier: Apache-2.0
"""Remote workers over tcp: joining, leaving, CURVE, data by content, broken connections, restarts."""
import os
import re
import signal
import socket
import threading
import time

import harness
from harness import HOST, WORKER, study_text


class Proxy:
    """A TCP proxy of the tests' own between worker and coordinator: it can delay and cut."""

    def __init__(self, target):
        self.target = target
        self.delay = 0.0
        self.open = True
        self.pairs = []
        self.ends = []
        self.listener = socket.create_server((HOST, 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            if not self.open:
                near.close()
                continue
            try:
                far = socket.create_connection((HOST, self.target))
            except OSError:
                near.close()
                continue
            self.pairs.append((near, far))
            self.ends += [near, far]
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=self.pump, args=(a, b), daemon=True).start()

    def pump(self, source, sink):
        try:
            while True:
                data = source.recv(65536)
                if not data:
                    break
                time.sleep(self.delay)
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        self.open = False
        for pair in self.pairs:
            for end in pair:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
        self.pairs.clear()

    def mend(self):
        self.open = True

    def close(self):
        self.cut()
        self.listener.close()
        for end in self.ends:
            end.close()


class Remote(harness.SystemTest):
    def coordinator(self, *args, listen=f"tcp://{HOST}:*", env=None):
        run = self.start("run", "t.toml", "--no-local", "--listen", listen, "--log-level", "info", *args, env=env)
        number = len(self.started) - 1
        found = []

        def port():
            match = re.search(r"listening endpoint=\S+:(\d+)", self.log(number))
            if match:
                found.append(int(match.group(1)))
            return bool(match)
        self.until(port, "listening", run)
        return run, found[-1]

    def worker(self, port, *args):
        return self.start("--connect", f"tcp://{HOST}:{port}", "--cpu", "--threads", 1, "--cache",
                          self.dir / "cache", *args, program=WORKER)

    def assertRan(self, run, trials):
        self.wait(run)
        self.assertEqual(self.states(), {"COMPLETE": trials})
        self.assertIntact()

    def test_remote_workers_join_and_leave_at_any_time(self):
        self.write(study_text(trials=24, epochs=60))
        run, port = self.coordinator()
        first = self.worker(port)
        self.until(lambda: self.one("SELECT count(*) FROM trial WHERE state = 'COMPLETE'") >= 2, "two trials", run)
        others = [self.worker(port), self.worker(port)]
        self.until(lambda: self.one("SELECT count(*) FROM worker") >= 3 or run.poll() is not None, "three workers")
        first.send_signal(signal.SIGTERM)
        self.wait(first)
        self.assertRan(run, 24)
        joined = {row[0] for row in self.query("SELECT pid FROM worker")}
        for worker in others:
            if worker.pid in joined:  # one that came too late waits for a coordinator for ever
                self.wait(worker)
        self.assertEqual(self.one("SELECT count(*) FROM worker WHERE left_ns IS NULL"), 0)

    def test_open_to_the_network_without_curve_needs_insecure(self):
        self.write(study_text(trials=1))
        done = self.hyperopt("run", "t.toml", "--no-local", "--listen", "tcp://0.0.0.0:*", code=1)
        self.assertIn("--insecure", done.stderr)
        self.assertIn("keygen", done.stderr)
        self.hyperopt("run", "t.toml", "--no-local", "--listen", "ipc:///tmp/x", code=1)
        self.hyperopt("run", "t.toml", "--no-local", code=1)
        run, port = self.coordinator("--insecure", listen="tcp://0.0.0.0:*")
        self.assertIn("INSECURE", self.log())
        self.worker(port)
        self.assertRan(run, 1)

    def test_curve_lets_in_the_right_key_and_no_other(self):
        self.write(study_text(trials=3))
        self.hyperopt("keygen", "keys")
        self.hyperopt("keygen", "other")
        self.assertEqual((self.dir / "keys/coordinator.key").stat().st_mode & 0o077, 0)
        run, port = self.coordinator("--curve", "keys")
        server = ["--server-key", self.dir / "keys/coordinator.pub"]
        without = self.worker(port)
        stranger = self.worker(port, "--key", self.dir / "other/worker.key", *server)
        self.until(lambda: "refused: unknown key=" in self.log(), "the stranger is refused and logged", run)
        self.assertEqual(self.one("SELECT count(*) FROM worker"), 0)
        self.worker(port, "--key", self.dir / "keys/worker.key", *server)
        self.assertRan(run, 3)
        self.assertEqual(self.one("SELECT count(*) FROM worker"), 1)
        self.assertEqual(self.one("SELECT length(curve_key) FROM worker"), 40)
        self.assertIsNone(without.poll())
        self.assertIsNone(stranger.poll())

    def test_keygen_keeps_existing_keys_and_adds_workers(self):
        self.hyperopt("keygen", "keys")
        before = (self.dir / "keys/coordinator.key").read_text()
        self.hyperopt("keygen", "keys", "--worker", "gpu7")
        self.assertEqual((self.dir / "keys/coordinator.key").read_text(), before)
        self.assertTrue((self.dir / "keys/allowed/gpu7.pub").exists())
        self.assertNotIn("secret-key", (self.dir / "keys/allowed/gpu7.pub").read_text())
        self.hyperopt("keygen", "keys", "--worker", "../evil", code=1)

    def test_a_worker_that_loses_the_coordinator_trains_on_and_delivers(self):
        self.write(study_text(trials=6, epochs=60, ping=0.2, silence=60))
        run, port = self.coordinator()
        proxy = Proxy(port)
        self.worker(proxy.port, "--log-level", "info")
        self.until(lambda: self.one("SELECT count(*) FROM report") >= 3, "reports", run)
        for _ in range(3):
            proxy.cut()
            time.sleep(0.5)
            proxy.mend()
            before = self.one("SELECT count(*) FROM report")
            self.until(lambda: run.poll() is not None or self.one("SELECT count(*) FROM report") > before, "it goes on")
        self.assertRan(run, 6)
        # only a lease that was on its way into the cut may have been given again
        self.assertEqual(self.query("SELECT text FROM event WHERE kind IN ('requeue', 'late', 'lost') "
                                    "AND text NOT LIKE '%came back without it'"), [])
        proxy.close()

    def test_latency_changes_nothing(self):
        self.write(study_text(trials=4, epochs=3))
        run, port = self.coordinator()
        proxy = Proxy(port)
        proxy.delay = 0.05
        self.worker(proxy.port)
        self.assertRan(run, 4)
        proxy.close()

    def test_a_restarted_coordinator_adopts_the_running_trials_of_its_workers(self):
        self.write(study_text(trials=3, epochs=150, ping=0.2, silence=30))
        run, port = self.coordinator()
        worker = self.worker(port, "--log-level", "info")
        self.until(lambda: self.one("SELECT count(*) FROM report") >= 3, "reports", run)
        run.kill()
        run.wait()
        self.assertIsNone(worker.poll())
        again, _ = self.coordinator(listen=f"tcp://{HOST}:{port}")
        self.assertRan(again, 3)
        self.assertEqual(self.one("SELECT max(attempt) FROM trial"), 1, self.all_logs())
        self.assertGreaterEqual(self.one("SELECT count(*) FROM event WHERE kind = 'adopt'"), 1)

    def test_workers_that_stayed_take_a_changed_study_and_forget_the_old_one(self):
        self.write(study_text(trials=3, epochs=2000))
        run, port = self.coordinator()
        self.worker(port, "--log-level", "info")
        self.until(lambda: self.one("SELECT count(*) FROM report") >= 3, "reports", run)
        run.kill()
        run.wait()
        self.write(study_text(trials=3, epochs=2))
        again, _ = self.coordinator("--allow-change", listen=f"tcp://{HOST}:{port}")
        self.assertRan(again, 3)
        self.assertIn("trials are forgotten", self.log(1))
        self.assertEqual(self.query("SELECT DISTINCT epochs FROM trial"), [(2,)])
        self.assertEqual(self.one("SELECT count(*) FROM event WHERE kind = 'adopt'"), 0)

    def test_a_worker_that_holds_trials_of_another_study_delivers_none_of_them(self):
        self.write(study_text(trials=3, epochs=2000))
        run, port = self.coordinator()
        self.worker(port, "--log-level", "info")
        self.until(lambda: self.one("SELECT count(*) FROM report") >= 3, "reports", run)
        run.kill()
        run.wait()
        os.rename(self.dir / "t.db", self.dir / "first.db")
        for rest in self.dir.glob("t.db-*"):
            rest.unlink()
        self.write(study_text(trials=3, epochs=2))  # trials of the same numbers, on the same port
        again, _ = self.coordinator(listen=f"tcp://{HOST}:{port}")
        self.assertRan(again, 3)
        self.assertIn("holds", self.log(2))
        self.assertEqual(self.query("SELECT DISTINCT epochs, attempt FROM trial"), [(2, 1)])

    def test_a_half_open_connection_is_noticed(self):
        self.write(study_text(trials=6, epochs=30, ping=0.2, silence=2, attempts=100))
        run, port = self.coordinator()
        proxy = Proxy(port)
        self.worker(proxy.port)
        self.until(lambda: self.one("SELECT count(*) FROM report") >= 2, "reports", run)
        proxy.delay = 10_000.0  # nothing arrives any more, and nothing is closed
        self.until(lambda: self.one("SELECT count(*) FROM event WHERE kind = 'lost'") >= 1, "it is given up", run)
        self.worker(port)
        self.assertRan(run, 6)
        proxy.close()

    def hidden_data(self, padding):
        """A data file (padded with empty lines) that a worker started by `script` cannot see."""
        if os.geteuid() != 0 or os.system("unshare -m true 2>/dev/null") != 0:
            self.skipTest("needs a mount namespace of its own (root)")
        data = self.dir / "data"
        data.mkdir()
        (data / "bars.csv").write_text(harness.DATA.read_text() + "\n" * padding)
        self.write(study_text(trials=2, data="data/bars.csv"))
        return data

    def blind_worker(self, data, port):
        script = (f"mount -t tmpfs none {data} && exec {WORKER} --connect tcp://{HOST}:{port} --cpu --threads 1 "
                  f"--cache {self.dir}/cache --log-level info")
        return self.start("-m", "sh", "-c", script, program="unshare")

    def test_a_worker_without_the_file_gets_it_by_content(self):
        data = self.hidden_data(1_500_000)  # larger than one chunk
        run, port = self.coordinator()
        self.blind_worker(data, port)
        self.assertRan(run, 2)
        self.assertIn("file sent", self.log())
        cached = [p for p in (self.dir / "cache").iterdir() if p.suffix == ""]
        self.assertEqual(cached[0].read_bytes(), (data / "bars.csv").read_bytes())
        # and a second worker finds it in the cache
        os.unlink(self.dir / "t.db")
        run, port = self.coordinator()
        self.blind_worker(data, port)
        self.assertRan(run, 2)
        self.assertNotIn("file sent", self.log(2))

    def test_a_broken_transfer_goes_on_where_it_stopped(self):
        data = self.hidden_data(12_000_000)
        run, port = self.coordinator()
        proxy = Proxy(port)
        proxy.delay = 0.02
        self.blind_worker(data, proxy.port)
        self.until(lambda: any(p.stat().st_size > 1_000_000 for p in (self.dir / "cache").glob("*.part")), "a part", run)
        proxy.cut()
        proxy.delay = 0.0
        proxy.mend()
        self.assertRan(run, 2)
        offsets = [int(n) for n in re.findall(r"file wanted .*offset=(\d+)", self.log())]
        self.assertEqual(offsets[0], 0)
        self.assertGreater(max(offsets), 500_000)
        proxy.close()

    def namespaces(self):
        """Two network namespaces joined by a cable: returns their names, or skips."""
        a, b = f"hoa{os.getpid()}", f"hob{os.getpid()}"
        script = (f"ip netns add {a} && ip netns add {b} && "
                  f"ip link add {a} type veth peer name {b} && ip link set {a} netns {a} && ip link set {b} netns {b} && "
                  f"ip -n {a} addr add 10.77.0.1/24 dev {a} && ip -n {b} addr add 10.77.0.2/24 dev {b} && "
                  f"ip -n {a} link set {a} up && ip -n {b} link set {b} up && ip -n {a} link set lo up")
        self.addCleanup(lambda: os.system(f"ip netns del {a} 2>/dev/null; ip netns del {b} 2>/dev/null"))
        if os.geteuid() != 0 or os.system(f"({script}) 2>/dev/null") != 0:
            self.skipTest("cannot make network namespaces")
        return a, b

    def test_a_network_partition_is_survived(self):
        a, b = self.namespaces()
        self.write(study_text(trials=8, epochs=40, ping=0.2, silence=1.5, attempts=100))
        run = self.start("netns", "exec", a, harness.HYPEROPT, "run", "t.toml", "--no-local", "--listen",
                         "tcp://10.77.0.1:5555", "--insecure", "--log-level", "info", program="ip")
        self.until(lambda: "listening" in self.log(), "listening", run)
        self.start("netns", "exec", b, WORKER, "--connect", "tcp://10.77.0.1:5555", "--cpu", "--threads", 1, "--cache",
                   self.dir / "cache", program="ip")
        for cut in range(2):
            before = self.one("SELECT count(*) FROM report")
            self.until(lambda: self.one("SELECT count(*) FROM report") > before or run.poll() is not None, "reports")
            if run.poll() is not None:
                break
            os.system(f"ip -n {a} link set {a} down")
            self.until(lambda: self.one("SELECT count(*) FROM event WHERE kind = 'lost'") > cut, "it is given up", run)
            os.system(f"ip -n {a} link set {a} up")
        self.assertRan(run, 8)

    # optuna 820: 32 processes start at once
    def test_32_workers_that_start_at_once_share_the_trials(self):
        self.write(study_text(trials=40, epochs=1, silence=60)
                   .replace("[workers]\n", "[workers]\nin_flight = 32\n"))
        run, port = self.coordinator()
        for _ in range(32):
            self.worker(port)
        self.assertRan(run, 40)
        self.assertEqual(self.one("SELECT max(attempt) FROM trial"), 1)


if __name__ == "__main__":
    harness.main()
