# SPDX-License-Identifier: Apache-2.0
"""hyperopt serve: studies of a folder in turns on the same workers."""
import os
import signal

import harness
from harness import HOST, study_text

# fewer trials where a sanitizer makes each of them slow
MANY, SOME = (16, 8) if "HYPEROPT_TEST_QUICK" in os.environ else (120, 50)


class Serve(harness.SystemTest):
    def setUp(self):
        super().setUp()
        (self.dir / "q").mkdir()

    def drop(self, name, **keys):
        text = study_text(**keys).replace('name = "t"', f'name = "{name}"')
        (self.dir / "q" / f".{name}").write_text(text)
        os.rename(self.dir / "q" / f".{name}", self.dir / "q" / f"{name}.toml")  # appears whole

    def span(self, name):
        return self.query("SELECT min(started_ns), max(finished_ns) FROM trial", f"q/{name}.db")[0]

    def test_studies_take_turns_and_all_end(self):
        # far more work than fits between two looks at the queue (0.2 s), on any machine
        self.drop("a", trials=MANY, epochs=40)
        self.drop("b", trials=MANY, epochs=40)
        (self.dir / "q" / "broken.toml").write_text("[study\n")
        done = self.hyperopt("serve", "q", "--once", "--slice", "0.5s", "--workers", 1)
        for name in "ab":
            self.assertEqual(self.states(f"q/{name}.db"), {"COMPLETE": MANY})
            self.assertIntact(f"q/{name}.db")
        a, b = self.span("a"), self.span("b")
        self.assertLess(b[0], a[1], "b waits for all of a\n" + done.stdout)
        self.assertLess(a[0], b[1])
        self.assertIn("another study's turn", done.stdout)
        self.assertIn("broken.toml", done.stderr)

    def test_priority_gives_a_larger_share(self):
        self.drop("low", trials=MANY, epochs=40)
        self.drop("high", trials=SOME, epochs=40, study="priority = 4")
        serve = self.start("serve", "q", "--slice", "0.5s", "--workers", 1)
        self.until(lambda: self.one("SELECT state FROM study", "q/high.db") == "finished", "the high one ends", serve)
        ended = self.span("high")[1]
        started_low = self.one(f"SELECT count(*) FROM trial WHERE finished_ns < {ended}", "q/low.db")
        self.assertLess(started_low, SOME, "the low one got as much as the high one")
        serve.send_signal(signal.SIGINT)
        self.wait(serve, 130)
        self.assertNotIn("RUNNING", self.states("q/low.db"))

    def serve_beside(self, name, **keys):
        """A long study `a` and another one, which is due next; what serve said."""
        self.drop("a", trials=MANY, epochs=40)
        self.drop(name, trials=2, epochs=2, **keys)
        done = self.hyperopt("serve", "q", "--once", "--slice", "0.5s", "--workers", 1, "--log-level", "info",
                             env={"HYPEROPT_FEATURE_CACHE": str(self.dir / "features")})
        self.assertEqual(self.states("q/a.db"), {"COMPLETE": MANY}, done.stderr)
        return done.stderr

    def test_the_next_studys_data_is_read_while_another_trains(self):
        log = self.serve_beside("b", more="[features]\nlong_window = 100")
        self.assertEqual(self.states("q/b.db"), {"COMPLETE": 2}, log)
        ahead, turn = log.index("read ahead study=q/b.toml"), log.index("slice begins study=q/b.toml")
        self.assertLess(ahead, turn, log)
        self.assertIn("cache hit", log[turn:].split("slice begins")[1], log)
        self.assertNotIn("cache miss", log[turn:].split("slice begins")[1], log)

    def test_data_that_cannot_be_read_ahead_harms_nobody(self):
        log = self.serve_beside("b", data="no-such-file.csv")
        self.assertIn("could not be read ahead", log)
        self.assertLess(log.index("could not be read ahead"), log.index("slice begins study=q/b.toml"), log)

    def test_remote_workers_stay_from_one_study_to_the_next(self):
        port = harness.free_port()
        self.drop("a", trials=MANY, epochs=40)
        self.drop("b", trials=4, epochs=40)
        self.drop("none", trials=1, data="no-such-file.csv")  # a study that cannot begin costs no worker
        serve = self.start("serve", "q", "--slice", "1s", "--once", "--no-local", "--listen",
                           f"tcp://{HOST}:{port}", "--log-level", "info")
        worker = self.start("--connect", f"tcp://{HOST}:{port}", "--cpu", "--threads", 1, "--cache",
                            self.dir / "cache", program=harness.WORKER)
        self.wait(serve)
        self.wait(worker)  # it is sent home after the last one
        for name, trials in (("a", MANY), ("b", 4)):
            self.assertEqual(self.states(f"q/{name}.db"), {"COMPLETE": trials}, self.all_logs())
            self.assertEqual({pid for pid, in self.query("SELECT DISTINCT pid FROM worker", f"q/{name}.db")}, {worker.pid})
            self.assertEqual(self.one("SELECT max(attempt) FROM trial", f"q/{name}.db"), 1)
        self.assertIn("another study's turn", self.log())

    def test_files_come_and_go_while_it_runs(self):
        serve = self.start("serve", "q", "--slice", "1s", "--workers", 1, "--log-level", "info")
        self.drop("first", trials=500, epochs=40)
        self.until(lambda: self.one("SELECT count(*) FROM trial WHERE state = 'COMPLETE'", "q/first.db") >= 1, "first", serve)
        self.drop("second", trials=2, epochs=2)
        self.until(lambda: self.one("SELECT state FROM study", "q/second.db") == "finished", "second ends", serve)
        os.unlink(self.dir / "q/first.toml")
        self.until(lambda: self.one("SELECT state FROM study", "q/first.db") == "interrupted"
                   and not self.children(serve), "first stops", serve)
        self.assertNotIn("RUNNING", self.states("q/first.db"))
        self.drop("third", trials=1)
        self.until(lambda: self.one("SELECT state FROM study", "q/third.db") == "finished", "third ends", serve)
        serve.send_signal(signal.SIGTERM)
        self.wait(serve, 130)


if __name__ == "__main__":
    harness.main()
