# SPDX-License-Identifier: Apache-2.0
"""Malformed study files: each is refused with exit code 1 (data: 2) and a message that names the place."""
import harness
from harness import study_text

GOOD = study_text()

# name, what to replace, by what, parts of the message (the line is checked where it is known)
CASES = [
    ("unknown key", "seed = 7", "sede = 7", ["sede", "seed"]),
    ("unknown table", "[folds]", "[flods]", ["flods"]),
    ("wrong type", "trials = 6", 'trials = "six"', ["trials"]),
    ("out of range", "trials = 6", "trials = 0", ["trials"]),
    ("not TOML", "trials = 6", "trials = = 6", []),
    ("unclosed string", 'name = "t"', 'name = "t', []),
    ("duplicate key", "seed = 7", "seed = 7\nseed = 8", ["seed"]),
    ("unknown choice", 'kind = "random"', 'kind = "randm"', ["randm", "random"]),
    ("unknown metric", "seed = 7", 'seed = 7\nobjective = ["sharp"]', ["sharp", "sharpe"]),
    ("constraint without a number", "seed = 7", 'seed = 7\nconstraints = ["trades >= many"]', ["trades"]),
    ("constraint that nothing can violate", "seed = 7", 'seed = 7\nconstraints = ["max_drawdown <= 0.5"]',
     ["max_drawdown"]),
    ("range upside down", "float = [10, 80]", "float = [80, 10]", ["low bound"]),
    ("log of zero", "float = [1e-5, 3e-3], log = true", "float = [0, 3e-3], log = true", ["log"]),
    ("searched key that does not exist", '"barriers.stop_loss"', '"barriers.stop_los"', ["stop_los", "stop_loss"]),
    ("fact in the search", '"barriers.stop_loss" = { float = [10, 80] }', '"env.spread_bps" = { float = [0, 2] }',
     ["spread_bps"]),
    ("step that is not positive", "float = [10, 80]", "float = [10, 80], step = -1", ["step"]),
    ("when without a parent", "float = [10, 80]", 'float = [10, 80], when = { "agent.algorithm" = "ppo" }',
     ["agent.algorithm"]),
    ("when that can never hold", "float = [10, 80] }",
     'float = [10, 80], when = { "agent.algorithm" = "sac" } }\n"agent.algorithm" = { choice = ["dqn", "ppo"] }',
     ["sac"]),
    ("empty choice", "float = [10, 80]", "choice = []", ["choice"]),
    ("enqueue outside the space", '"barriers.stop_loss" = { float = [10, 80] }',
     '"barriers.stop_loss" = { float = [10, 80] }\n[[enqueue]]\n"barriers.stop_loss" = 99.0', ["stop_loss", "99"]),
    ("enqueue of a fixed key", '"barriers.stop_loss" = { float = [10, 80] }',
     '"barriers.stop_loss" = { float = [10, 80] }\n[[enqueue]]\n"dqn.gamma" = 0.9', ["gamma"]),
    ("span of nonsense", "count = 2", 'count = 2\ntest = "many"', ["test"]),
    ("folds that do not fit", "count = 2", "count = 2\ntest = 5000\ntrain = 5000", ["bars"]),
    ("racing folds", "seed = 7", "seed = 7\nrace_folds = 2", ["race_folds", "folds.count"]),
    ("no data path", f'path = "{harness.DATA}"', "", ["data.path"]),
]


class Malformed(harness.SystemTest):
    pass


def add(name, old, new, parts):
    def test(self):
        self.assertIn(old, GOOD)
        self.write(GOOD.replace(old, new, 1))
        for command in ("check", "run"):
            done = self.hyperopt(command, "t.toml", code=1)
            self.assertIn("t.toml", done.stderr)
            for part in parts:
                self.assertIn(part, done.stderr)
            self.assertFalse((self.dir / "t.db").exists(), "a bad study must leave no database")
            if name != "folds that do not fit" and name != "no data path":
                self.assertRegex(done.stderr, r"t\.toml:\d+:\d+", "the place is missing")
    setattr(Malformed, "test_" + name.replace(" ", "_"), test)


for case in CASES:
    add(*case)


class BadOption(harness.SystemTest):
    """What --set changes has to fit the study, as if the file said so."""
    CASES = [("study.race_folds=2", ["race_folds", "folds.count"]),
             ("dqn.learn_start=99999999", ["dqn.learn_start", "dqn.replay_capacity"]),
             ("barriers.stop_loss=20", ["barriers.stop_loss", "[search]"]),
             ("coordinator.heartbeat_timeout=1s", ["heartbeat_timeout", "heartbeat_interval"])]

    def test(self):
        self.write(GOOD)
        for option, parts in self.CASES:
            with self.subTest(option=option):
                done = self.hyperopt("check", "t.toml", "--set", option, code=1)
                for part in parts:
                    self.assertIn(part, done.stderr)
        self.hyperopt("check", "t.toml", "--set", "study.trials=3")


class BadData(harness.SystemTest):
    def refuse(self, text, *parts):
        self.write(study_text(data="bars.csv"))
        if text is not None:
            self.write(text, "bars.csv")
        done = self.hyperopt("run", "t.toml", code=2)
        for part in parts:
            self.assertIn(part, done.stderr)

    def test_a_missing_file_is_named(self):
        self.write(study_text(data="nothing-here.csv"))
        done = self.hyperopt("run", "t.toml", code=2)
        self.assertIn("nothing-here.csv", done.stderr)

    def test_an_empty_file_is_refused(self):
        self.refuse("", "bars.csv")

    def test_a_torn_row_is_named_with_its_line(self):
        lines = harness.DATA.read_text().splitlines()
        lines[100] = lines[100].rsplit(",", 2)[0] + ",abc,1"
        self.refuse("\n".join(lines), "bars.csv", "101")

    def test_a_study_file_that_is_not_there(self):
        done = self.hyperopt("run", "nothing.toml", code=1)
        self.assertIn("nothing.toml", done.stderr)


if __name__ == "__main__":
    harness.main()
