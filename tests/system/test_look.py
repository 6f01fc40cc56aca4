# SPDX-License-Identifier: Apache-2.0
"""What a person looks at while a study runs and after it: the full-screen view and the progress of a
run at several sizes, the metrics endpoint, and webhook notices."""
import http.server
import json
import re
import shutil
import subprocess
import threading
import time
import unittest
import urllib.request

import harness
from harness import BIN, HOST, HYPEROPT, free_port, study_text


class Screen:
    """A program in a detached tmux of a given size."""

    def __init__(self, test, size, command, env=""):
        self.socket = str(test.dir / f"tmux-{size}")
        width, height = size.split("x")
        self.tmux("new-session", "-d", "-x", width, "-y", height, "-s", "s",
                  f"cd {test.dir}; {env} {command}; echo left with $?; sleep 600")
        test.screens.append(self)  # closed before the folder with the socket goes

    def tmux(self, *args):
        return subprocess.run(["tmux", "-S", self.socket, "-f", "/dev/null", *args], capture_output=True, text=True)

    def text(self, *options):
        return self.tmux("capture-pane", "-p", "-t", "s", *options).stdout

    def until(self, pattern):
        end = time.monotonic() + harness.HANG
        while not re.search(pattern, self.text()):
            if time.monotonic() > end:
                raise AssertionError(f"never saw {pattern!r} in:\n{self.text()}")
            time.sleep(0.05)
        return self.text()

    def close(self):
        self.tmux("kill-server")


@unittest.skipUnless(shutil.which("tmux"), "no tmux")
class Terminal(harness.SystemTest):
    def setUp(self):
        super().setUp()
        self.screens = []

    def tearDown(self):
        for screen in self.screens:
            screen.close()
        super().tearDown()

    def made(self):
        self.write(study_text(trials=60))
        subprocess.run([BIN / "make_study", "t.toml", "t.db", "60"], cwd=self.dir, check=True)

    def test_watch_is_readable_at_every_size_and_q_leaves(self):
        self.made()
        for size, words in (("80x24", ["48 complete", "trial 54", "buy-and-hold", "made-2", "lost", "q quits"]),
                            ("40x10", ["48 ok", "trial 54", "q quits"]),
                            ("200x50", ["48 complete", "trial 54", "trial 21", "random", "made-1", "q quits"])):
            with self.subTest(size=size):
                screen = Screen(self, size, f"{HYPEROPT} status t.db --watch")
                text = screen.until("q quits")
                for word in words:
                    self.assertIn(word, text)
                width, height = map(int, size.split("x"))
                self.assertLessEqual(len(text.splitlines()), height)
                self.assertLessEqual(max(map(len, text.splitlines())), width)
                screen.tmux("send-keys", "-t", "s", "q")
                screen.until("left with 0")

    def test_watch_without_colour(self):
        self.made()
        screen = Screen(self, "80x24", f"{HYPEROPT} status t.db --watch", env="NO_COLOR=1")
        screen.until("q quits")
        self.assertNotRegex(screen.text("-e"), r"\x1b\[[0-9;]*3[0-7]m")
        coloured = Screen(self, "90x24", f"{HYPEROPT} status t.db --watch", env="NO_COLOR=")
        coloured.until("q quits")
        self.assertRegex(coloured.text("-e"), r"\x1b\[[0-9;]*3[0-7]m")

    def test_watch_follows_a_running_study(self):
        self.write(study_text(trials=500, epochs=4))
        run = self.start("run", "t.toml", "-q")
        self.until(lambda: self.one("SELECT count(*) FROM trial WHERE state = 'COMPLETE'") >= 1, "a trial", run)
        screen = Screen(self, "80x24", f"{HYPEROPT} status t.db --watch --every 0.2s")
        first = int(re.search(r"(\d+) of 500 trials", screen.until(r"\d+ of 500 trials: [1-9]")).group(1))
        self.assertIn("running", screen.text())
        end = time.monotonic() + harness.HANG
        while int(re.search(r"(\d+) of 500 trials", screen.text()).group(1)) <= first:
            self.assertLess(time.monotonic(), end, screen.text())
            time.sleep(0.1)
        run.terminate()
        screen.until("interrupted")
        self.wait(run, 130)

    def test_without_a_terminal_watch_says_what_to_do(self):
        self.made()
        done = self.hyperopt("status", "t.db", "--watch", code=1)
        self.assertIn("needs a terminal", done.stderr)
        self.assertIn("hyperopt status t.db", done.stderr)
        screen = Screen(self, "80x24", f"{HYPEROPT} status t.db --watch", env="TERM=dumb")
        screen.until("no full-screen view")

    def test_progress_of_a_run_fits_every_terminal(self):
        for size in ("80x24", "40x10", "200x50"):
            with self.subTest(size=size):
                self.write(study_text(trials=6))
                (self.dir / "t.db").unlink(missing_ok=True)
                screen = Screen(self, size, f"{HYPEROPT} run t.toml > out.txt")
                text = screen.until("left with 0")
                width = int(size.split("x")[0])
                line, = [line for line in text.splitlines() if re.search(r"\d+/6", line)]
                self.assertIn("6/6", line)
                self.assertLess(len(line), width)
                if width >= 80:
                    self.assertIn("[####", line)
                    self.assertIn("best sharpe", line)

    def test_progress_without_colour_or_into_a_pipe_has_no_control_characters(self):
        self.write(study_text(trials=3))
        screen = Screen(self, "80x24", f"{HYPEROPT} run t.toml > out.txt", env="NO_COLOR=1")
        screen.until("left with 0")
        self.assertNotIn("\x1b[32m", screen.text("-e"))
        done = self.hyperopt("run", "t.toml", "--trials", 2)
        self.assertNotIn("\x1b", done.stderr)
        self.assertNotIn("\r", done.stderr)
        self.assertIn("5/5", done.stderr)


class Summary(harness.SystemTest):
    """What stands on the terminal when a study has ended."""

    def test_the_summary_says_in_words_what_the_best_is_worth_and_what_to_do_next(self):
        self.write(study_text(trials=12).replace("count = 2", 'count = 2\nholdout = "10%"'))
        text = self.hyperopt("run", "t.toml").stdout
        best, made, sharpe = self.query("SELECT trial, total_return, sharpe FROM leaderboard WHERE rank = 1")[0]
        self.assertIn(f"Out of sample and after costs, trial {best} made {100 * made:+.2f} % (Sharpe {sharpe:.2f})", text)
        for policy, name in (("buy_and_hold", "buy-and-hold"), ("random", "random")):
            base, ratio = self.query(f"SELECT total_return, sharpe FROM baseline_total WHERE policy = '{policy}'")[0]
            self.assertIn(f"{name} {100 * base:+.2f} % ({ratio:.2f}, {'beaten' if sharpe > ratio else 'not beaten'})", text)
        self.assertIn("After 12 tries, the probability", text)
        for command in ("best t.db", "report t.db", "null-test t.toml --compare t.db", f"holdout t.db {best}"):
            self.assertIn(f"  hyperopt {command}", text)
        self.hyperopt("holdout", "t.db", best)
        self.assertNotIn("hyperopt holdout", self.hyperopt("run", "t.toml").stdout, "the look was taken")

    def test_a_study_with_failed_trials_points_at_the_causes(self):
        self.write(study_text(trials=60))
        subprocess.run([BIN / "make_study", "t.toml", "t.db", "60"], cwd=self.dir, check=True)
        text = self.hyperopt("run", "t.toml", "-d", "t.db", "--trials", 1, "--allow-change").stdout
        self.assertIn("hyperopt sql t.db @failures", text)


class Outside(harness.SystemTest):
    """The metrics endpoint and the webhook, by the standard library."""

    def running(self, **more):
        self.port = free_port()
        self.write(study_text(trials=400, epochs=3, more=f'metrics = "{HOST}:{self.port}"', **more))
        run = self.start("run", "t.toml", "-q")
        self.until(lambda: self.one("SELECT count(*) FROM trial WHERE state = 'COMPLETE'") >= 2, "two trials", run)
        return run

    def get(self, path):
        with urllib.request.urlopen(f"http://{HOST}:{self.port}{path}", timeout=60) as answer:
            return answer.status, answer.headers, answer.read().decode()

    def scrape(self):
        status, headers, text = self.get("/metrics")
        self.assertEqual(status, 200)
        self.assertIn("text/plain; version=0.0.4", headers["Content-Type"])
        return text

    def test_metrics_are_prometheus_text_that_counts_the_trials(self):
        run = self.running()
        values = {}

        def counted():
            text = self.scrape()
            values.clear()
            for line in text.splitlines():
                if not line.startswith("#"):
                    name, value = re.fullmatch(r'(hyperopt_\w+\{[^}]*\}) (\S+)', line).groups()
                    self.assertNotIn(name, values, "a series twice")
                    values[name] = float(value)
            return values['hyperopt_trials{study="t",state="complete"}'] >= 2
        self.until(counted, "two complete trials in /metrics", run)
        self.assertEqual(values['hyperopt_trials_target{study="t"}'], 400)
        self.assertEqual(values['hyperopt_workers{study="t"}'], 1)
        self.assertGreater(values['hyperopt_experiences_total{study="t"}'], 0)
        self.assertGreater(values['hyperopt_database_commits_total{study="t"}'], 0)
        best = values['hyperopt_best_value{study="t",objective="sharpe"}']
        stored = [v for v, in self.query("SELECT value FROM trial_value WHERE value IS NOT NULL")]
        self.assertTrue(any(abs(best - v) < 1e-12 for v in stored), (best, stored))
        text = self.scrape()
        for name in {key.split("{")[0] for key in values}:
            self.assertEqual(text.count(f"# TYPE {name} "), 1)
            self.assertEqual(text.count(f"# HELP {name} "), 1)
        self.assertEqual(self.get("/readyz")[0], 200)
        self.assertEqual(self.get("/livez")[0], 200)
        with self.assertRaises(urllib.error.HTTPError) as missing:
            self.get("/other")
        missing.exception.close()
        self.assertEqual(missing.exception.code, 404)
        run.terminate()
        self.wait(run, 130)

    def test_the_dashboard_asks_only_for_metrics_that_exist(self):
        text = (harness.SOURCE / "docs/grafana.json").read_text()
        dashboard = json.loads(text)
        asked = set(re.findall(r"hyperopt_\w+", " ".join(
            target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", []))))
        source = (harness.SOURCE / "coordinator/observe.c").read_text()
        exported = {f"hyperopt_{name}" for name in re.findall(r'put_(?:one|head)\(&e, "(\w+)"', source)}
        self.assertGreater(len(asked), 10)
        self.assertEqual(asked - exported, set())

    def receive(self):
        """Starts a receiver of notices at self.url; the list that they come into, (content type, object)."""
        notices = []

        class Receiver(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                notices.append((self.headers["Content-Type"], json.loads(body)))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *args):
                pass
        server = http.server.ThreadingHTTPServer((HOST, 0), Receiver)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.url = f"http://{HOST}:{server.server_port}/hook"
        return notices

    def test_a_webhook_gets_new_bests_and_the_end(self):
        notices = self.receive()
        self.write(study_text(trials=5).replace("[search]", f'[notify]\nurl = "{self.url}"\n[search]'))
        self.hyperopt("run", "t.toml", "-q")
        self.assertTrue(all("json" in kind for kind, _ in notices), notices)
        events = [notice["event"] for _, notice in notices]
        self.assertEqual(events[-1], "study_end")
        self.assertEqual(events.count("study_end"), 1)
        bests = [notice for _, notice in notices if notice["event"] == "new_best"]
        self.assertTrue(bests)
        self.assertEqual(bests[-1]["trial"], self.one("SELECT trial FROM best_trial"))
        self.assertAlmostEqual(bests[-1]["value"], self.one("SELECT value FROM best_trial"))
        self.assertEqual(sorted(b["value"] for b in bests), [b["value"] for b in bests])
        self.assertTrue(all(notice["study"] == "t" and notice["text"] for _, notice in notices), notices)

    def test_a_webhook_hears_of_a_failed_trial(self):
        notices = self.receive()
        self.write(study_text(trials=2, more="[guard]\nloss_ceiling = 1e-9").replace(
            "[search]", f'[notify]\nurl = "{self.url}"\n[search]'))
        self.hyperopt("run", "t.toml", "-q", code=None)
        self.assertEqual(self.states(), {"FAILED": 2})
        failed = [notice for _, notice in notices if notice["event"] == "trial_failed"]
        self.assertEqual(sorted(notice["trial"] for notice in failed), [0, 1])
        for notice in failed:
            self.assertIn("diverged", notice["text"])
            self.assertEqual(notice["study"], "t")
            self.assertNotIn("value", {key for key, value in notice.items() if value is not None})
        self.assertEqual([notice["event"] for _, notice in notices][-1], "study_end")
        self.assertRegex(self.hyperopt("status", "t.db").stdout, r"diverged: 2; the first, trial [01]: .*loss")

    def test_a_webhook_that_nobody_hears_does_not_stop_a_study(self):
        self.write(study_text(trials=3).replace("[search]", f'[notify]\nurl = "http://{HOST}:{free_port()}/"\n[search]'))
        done = self.hyperopt("run", "t.toml", "-q")
        self.assertEqual(self.states(), {"COMPLETE": 3})
        self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    harness.main()
