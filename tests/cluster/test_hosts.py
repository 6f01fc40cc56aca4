# SPDX-License-Identifier: Apache-2.0
"""Several hosts, played by network namespaces on a bridge: tcp and CURVE as between machines, cables that
are pulled for longer than the heartbeat timeout, a line with latency and loss (tcp_proxy.py)."""
import os
import subprocess
import sys

import harness
from harness import WORKER, study_text

PROXY = harness.SOURCE / "tests/cluster/tcp_proxy.py"
HEAD = "10.78.0.1"


class Hosts(harness.SystemTest):
    def setUp(self):
        super().setUp()
        self.names = [f"ho{os.getpid()}h{i}" for i in range(4)]  # the head and three workers
        head = self.names[0]
        commands = [f"ip netns add {name}" for name in self.names]
        commands += [f"ip -n {head} link add br0 type bridge", f"ip -n {head} addr add {HEAD}/24 dev br0",
                     f"ip -n {head} link set br0 up", f"ip -n {head} link set lo up"]
        for i, name in enumerate(self.names[1:], 1):
            commands += [f"ip -n {head} link add w{i} type veth peer name eth0 netns {name}",
                         f"ip -n {head} link set w{i} master br0", f"ip -n {head} link set w{i} up",
                         f"ip -n {name} addr add 10.78.0.{i + 1}/24 dev eth0", f"ip -n {name} link set eth0 up"]
        self.addCleanup(lambda: [subprocess.run(["ip", "netns", "del", n], stderr=subprocess.DEVNULL) for n in self.names])
        if os.geteuid() != 0:
            self.skipTest("network namespaces need root")
        for command in commands:
            if subprocess.run(command.split(), stderr=subprocess.PIPE).returncode != 0:
                self.skipTest(f"cannot make the network: {command}")

    def on(self, host, *command, log=None):
        return self.start("netns", "exec", self.names[host], *command, program="ip", log=log)

    def coordinator(self):
        self.hyperopt("keygen", "keys")
        run = self.on(0, harness.HYPEROPT, "run", "t.toml", "--no-local", "--listen", "tcp://*:5555", "--curve", "keys",
                      "--log-level", "info", log="coordinator")
        self.until(lambda: "listening" in (self.dir / "coordinator").read_text(), "listening", run)
        return run

    def worker(self, host, to=f"{HEAD}:5555"):
        return self.on(host, WORKER, "--connect", f"tcp://{to}", "--key", "keys/worker.key", "--server-key",
                       "keys/coordinator.pub", "--cpu", "--threads", 1, "--name", f"host{host}", "--cache",
                       self.dir / f"cache{host}", log=f"worker{host}")

    def link(self, host, state):
        subprocess.run(["ip", "-n", self.names[0], "link", "set", f"w{host}", state], check=True)

    def count(self, sql):
        return self.one(f"SELECT count(*) FROM {sql}")

    def assertEachOnce(self, run, trials):
        self.wait(run)
        self.assertEqual(self.states(), {"COMPLETE": trials}, self.all_logs())
        self.assertEqual(self.query("SELECT told_order FROM trial ORDER BY told_order"), [(n + 1,) for n in range(trials)])
        self.assertEqual(self.count("fold_result WHERE fold >= 0"), 2 * trials)
        self.assertIntact()

    def test_cables_pulled_beyond_the_heartbeat_timeout_lose_nothing(self):
        self.write(study_text(trials=24, epochs=400, ping=0.2, silence=1.5, attempts=100))
        run = self.coordinator()
        workers = [self.worker(i) for i in (1, 2, 3)]
        self.until(lambda: self.count("worker") == 3 and self.count("report") >= 6, "three hosts train", run)
        for cut, host in enumerate((1, 2)):
            self.link(host, "down")
            self.until(lambda: self.count("event WHERE kind = 'lost'") > cut, "it is given up", run)
            before = self.count("worker")
            self.link(host, "up")
            self.until(lambda: run.poll() is not None or self.count("worker") > before
                       or (self.dir / "coordinator").read_text().count("joined name=host%d" % host) > 1, "it comes back")
        self.assertEachOnce(run, 24)
        self.assertGreaterEqual(self.one("SELECT max(attempt) FROM trial"), 2)
        for worker in workers:
            self.wait(worker)

    def test_all_cables_pulled_at_once_are_survived(self):
        self.write(study_text(trials=12, epochs=400, ping=0.2, silence=1.5, attempts=100))
        run = self.coordinator()
        for i in (1, 2, 3):
            self.worker(i)
        self.until(lambda: self.count("worker") == 3 and self.count("report") >= 6, "three hosts train", run)
        for i in (1, 2, 3):
            self.link(i, "down")
        self.until(lambda: self.count("event WHERE kind = 'lost'") >= 3, "all are given up", run)
        for i in (1, 2, 3):
            self.link(i, "up")
        self.assertEachOnce(run, 12)

    def test_latency_and_loss_change_no_result(self):
        self.write(study_text(trials=10, epochs=40, study="deterministic = true\nparallel = 3"))
        self.hyperopt("run", "t.toml", "--database", "calm.db", "--workers", 1)
        run = self.coordinator()
        self.on(0, sys.executable, PROXY, f"{HEAD}:5556", f"{HEAD}:5555", 40, 0.05, 0.01)
        for i in (1, 2, 3):
            self.worker(i, f"{HEAD}:5556")
        self.assertEachOnce(run, 10)
        sql = "SELECT trial, fold, hex(returns) FROM fold_result WHERE fold >= 0 ORDER BY 1, 2"
        self.assertEqual(self.query(sql), self.query(sql, "calm.db"))

    def test_hosts_without_the_data_file_get_it_over_the_wire(self):
        data = self.dir / "data"
        data.mkdir()
        (data / "bars.csv").write_bytes(harness.DATA.read_bytes())
        self.write(study_text(trials=9, data="data/bars.csv", epochs=40))
        run = self.coordinator()
        for i in (1, 2, 3):
            # a mount namespace of its own hides the folder, as on another machine
            script = (f"mount -t tmpfs none {data} && exec {WORKER} --connect tcp://{HEAD}:5555 --key keys/worker.key "
                      f"--server-key keys/coordinator.pub --cpu --threads 1 --cache {self.dir}/cache{i}")
            self.on(i, "unshare", "-m", "sh", "-c", script, log=f"worker{i}")
        self.assertEachOnce(run, 9)
        self.assertIn("file sent", (self.dir / "coordinator").read_text())


if __name__ == "__main__":
    harness.main()
