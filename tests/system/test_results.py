# SPDX-License-Identifier: Apache-2.0
"""Views, example queries, exports and overfitting statistics of a made database, whose every number
follows from the formulas in tests/coordinator/make_study.c, computed here a second time. With
HO_LONG=1: the same of 100,000 trials, with the time that each command takes."""
import csv
import io
import itertools
import json
import math
import os
import re
import sqlite3
import statistics
import subprocess
import time
import unittest

import harness
from harness import BIN, SOURCE, study_text

LONG = os.environ.get("HO_LONG") == "1"
SPACE = '"agent.algorithm" = { choice = ["dqn", "ppo"] }\n"ppo.clip" = { float = [0.1, 0.3] }\n' \
        '"dqn.n_step" = { int = [1, 8] }\n'
SESSIONS = 40


def value(n):
    return n * 37 % 1000 / 500 - 1


def state(n):
    return {7: "PRUNED", 9: "FAILED"}.get(n % 10, "COMPLETE")


def ranking(trials):
    """Complete trials, feasible first, then by value, then by number."""
    return sorted((n for n in range(trials) if state(n) == "COMPLETE"), key=lambda n: (n % 10 == 3, -value(n), n))


def returns(n):
    return [(value(n) + 2 * math.sin((n + 1) * (i + 1))) / 1000 for i in range(2 * SESSIONS)]


def normal(x):
    return statistics.NormalDist().cdf(x)


def moments(x):
    """Mean over deviation (ddof 1), skewness and kurtosis (of the population), length."""
    n, mean = len(x), statistics.fmean(x)
    m2, m3, m4 = (sum((v - mean) ** k for v in x) / n for k in (2, 3, 4))
    return mean / statistics.stdev(x), m3 / m2 ** 1.5, m4 / m2 ** 2, n


class Made(harness.SystemTest):
    TRIALS = 60

    def make(self, trials=None):
        self.write(study_text(trials=self.TRIALS, search=SPACE))
        done = subprocess.run([BIN / "make_study", "t.toml", "t.db", str(trials or self.TRIALS)], cwd=self.dir,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def sql(self, query, db="t.db"):
        """Rows as the command prints them, JSON."""
        return json.loads(self.hyperopt("sql", db, query, "--format", "json").stdout)


@unittest.skipIf(LONG, "the short tests")
class Views(Made):
    def test_leaderboard_ranks_feasible_trials_first_then_by_value(self):
        self.make()
        rows = self.sql("SELECT * FROM leaderboard")
        want = ranking(self.TRIALS)
        self.assertEqual([row["trial"] for row in rows], want)
        self.assertEqual([row["rank"] for row in rows], list(range(1, len(want) + 1)))
        for row in rows:
            n = row["trial"]
            self.assertAlmostEqual(row["value"], value(n))
            self.assertAlmostEqual(row["sharpe"], value(n))
            self.assertAlmostEqual(row["total_return"], value(n) / 10)
            self.assertAlmostEqual(row["total_pnl"], value(n) * 1e4)
            self.assertAlmostEqual(row["max_drawdown"], -0.05 - 0.001 * (n % 7))
            self.assertEqual((row["trades"], row["feasible"], row["epochs"], row["train_s"]),
                             (20 + n % 5, int(n % 10 != 3), 3, 1.5))
        self.assertEqual(self.sql("SELECT * FROM best_trial"), [{"trial": want[0], "value": rows[0]["value"]}])

    def test_study_progress_counts_every_state(self):
        self.make()
        row, = self.sql("SELECT * FROM study_progress")
        count = {s: sum(state(n) == s for n in range(self.TRIALS)) for s in ("COMPLETE", "PRUNED", "FAILED")}
        self.assertEqual((row["proposed"], row["complete"], row["pruned"], row["failed"], row["running"],
                          row["waiting"], row["asked"], row["best_trial"], row["state"], row["reason"]),
                         (60, count["COMPLETE"], count["PRUNED"], count["FAILED"], 0, 0, 60,
                          ranking(60)[0], "finished", "trials"))
        self.assertAlmostEqual(row["train_s"], 90)
        self.assertEqual(row["last_finish_ns"] - row["first_start_ns"], 60 * 10 ** 9)

    def test_worker_load_tells_who_is_here_and_what_each_did(self):
        self.make()
        here, left = self.sql("SELECT * FROM worker_load")
        self.assertEqual((here["name"], here["here"], here["finished"], here["running"], here["leave_reason"]),
                         ("made-1", 1, 30, 0, None))
        self.assertEqual((left["name"], left["here"], left["finished"], left["leave_reason"]), ("made-2", 0, 30, "lost"))
        self.assertAlmostEqual(here["train_s"], 45)
        self.assertEqual(here["joined_utc"], "2023-11-14 22:13:20")
        self.assertEqual(left["left_utc"], "2023-11-14 22:14:20")

    def test_epoch_curve_has_each_epoch_of_a_trial(self):
        self.make()
        rows = self.sql("SELECT epoch, reward_mean, loss, validation FROM epoch_curve WHERE trial = 4 ORDER BY epoch")
        self.assertEqual(len(rows), 3)
        for e, row in enumerate(rows, 1):
            self.assertEqual((row["epoch"], row["reward_mean"]), (e, 4 + e))
            self.assertAlmostEqual(row["loss"], 1 / e)
            self.assertAlmostEqual(row["validation"], value(4) * e / 3)
        self.assertEqual(self.sql("SELECT count(DISTINCT trial) AS n FROM epoch_curve"), [{"n": 20}])

    def test_trial_wide_has_a_column_a_parameter_and_choices_by_name(self):
        self.make()
        rows = self.sql("SELECT * FROM trial_wide")
        self.assertEqual(len(rows), self.TRIALS)
        names = [name for name, in self.query("SELECT name FROM param_space ORDER BY position")]
        for row in rows:
            n = row["trial"]
            self.assertEqual(row["state"], state(n))
            for j, name in enumerate(names):
                u = math.fmod(n * 0.618033988749895 + 0.37 * j, 1)
                if name == "agent.algorithm":
                    self.assertEqual(row[name], ["dqn", "ppo"][int(u * 2)])
                elif name == "dqn.n_step" and row["agent.algorithm"] == "dqn":
                    self.assertEqual(row[name], math.floor(1 + u * 7 + 0.5))
                elif name == "barriers.stop_loss":
                    self.assertAlmostEqual(row[name], 10 + 70 * u)
                elif row["agent.algorithm"] == "dqn" and name == "ppo.clip" or \
                        row["agent.algorithm"] == "ppo" and name.startswith("dqn."):
                    self.assertIsNone(row[name], (n, name))

    def test_fold_wide_has_a_column_a_fold(self):
        self.make()
        rows = {row["trial"]: row for row in self.sql("SELECT * FROM fold_wide")}
        for n in (0, 8, 33):
            self.assertAlmostEqual(rows[n]["fold_0"], value(n) - 0.1)
            self.assertAlmostEqual(rows[n]["fold_1"], value(n) + 0.1)

    def test_param_effect_splits_numbers_in_quarters_and_choices_by_name(self):
        self.make()
        complete = [n for n in range(self.TRIALS) if state(n) == "COMPLETE"]
        stop = dict(self.query("SELECT p.trial, p.value FROM param p JOIN param_space s ON s.id = p.param AND "
                               "s.name = 'barriers.stop_loss'"))
        ordered = sorted(complete, key=lambda n: stop[n])
        rows = self.sql("SELECT * FROM param_effect WHERE name = 'barriers.stop_loss'")
        self.assertEqual([row["trials"] for row in rows], [12, 12, 12, 12])
        for i, row in enumerate(rows):
            part = ordered[12 * i:12 * i + 12]
            self.assertAlmostEqual(row["from_value"], stop[part[0]])
            self.assertAlmostEqual(row["to_value"], stop[part[-1]])
            self.assertAlmostEqual(row["mean_objective"], statistics.fmean(map(value, part)))
            self.assertAlmostEqual(row["best_objective"], max(map(value, part)))
        algorithm = {row["trial"]: row["agent.algorithm"] for row in self.sql("SELECT * FROM trial_wide")}
        for row in self.sql("SELECT * FROM param_effect WHERE name = 'agent.algorithm'"):
            part = [n for n in complete if algorithm[n] == row["choice"]]
            self.assertEqual(row["trials"], len(part))
            self.assertAlmostEqual(row["mean_objective"], statistics.fmean(map(value, part)))

    def test_baseline_total_is_the_mean_over_the_seeds_of_random(self):
        self.make()
        rows = {row["policy"]: row["sharpe"] for row in self.sql("SELECT * FROM baseline_total")}
        self.assertEqual(set(rows), {"buy_and_hold", "flat", "random"})
        self.assertAlmostEqual(rows["random"], -0.1)
        self.assertAlmostEqual(rows["buy_and_hold"], 0.5)

    def test_overfitting_statistics_are_those_of_the_formulas(self):
        """Bailey and Lopez de Prado 2012, 2014; Bailey, Borwein, Lopez de Prado, Zhu 2017."""
        self.make()
        self.hyperopt("run", "t.toml", "-d", "t.db", "-q", "--trials", 1, "--allow-change")
        row, = self.sql("SELECT * FROM overfitting")
        best = row["trial"]
        stored = {t: r for t, r in self.query("SELECT trial, sharpe FROM fold_result WHERE fold = -1")}
        x = returns(best) if best < 60 else None
        self.assertIsNotNone(x, "the trained trial became the best: choose another seed")
        sharpe, skew, kurtosis, n = moments(x)
        self.assertAlmostEqual(row["sharpe"], sharpe, 10)
        deviation = math.sqrt(1 - skew * sharpe + (kurtosis - 1) / 4 * sharpe ** 2)
        self.assertAlmostEqual(row["psr"], normal(sharpe * math.sqrt(n - 1) / deviation), 9)
        std = statistics.stdev(s / math.sqrt(252) for s in stored.values() if s is not None)
        self.assertAlmostEqual(row["sharpe_std"], std, 10)
        self.assertEqual(row["trials"], 61, "failed and pruned ones count")
        inverse, gamma = statistics.NormalDist().inv_cdf, 0.5772156649015329
        zero = std * ((1 - gamma) * inverse(1 - 1 / 61) + gamma * inverse(1 - 1 / (61 * math.e)))
        self.assertAlmostEqual(row["sharpe_zero"], zero, 9)
        self.assertAlmostEqual(row["dsr"], normal((sharpe - zero) * math.sqrt(n - 1) / deviation), 8)
        track = 1 + deviation ** 2 * (inverse(0.95) / sharpe) ** 2
        self.assertAlmostEqual(row["min_track_sessions"], track, 6)
        self.assertEqual(row["pbo_splits"], math.comb(16, 8))
        text = self.hyperopt("best", "t.db").stdout
        self.assertIn(f"trial {best}, 61 tries", text)
        for name, number in (("PSR", f"{row['psr']:.4f}"), ("DSR", f"{row['dsr']:.4f}"), ("PBO", f"{row['pbo']:.4f}"),
                             ("minimum track record", f"{row['min_track_sessions']:.0f}")):
            self.assertRegex(text, rf"  {name}.* {number}\n")
        self.assertAlmostEqual(row["pbo"], self.pbo([returns(n) for n in range(60) if state(n) == "COMPLETE"]), 12)

    def pbo(self, columns, blocks=16):
        """Share of the halvings in which the best on one half is below the median on the other."""
        size = len(columns[0]) // blocks
        sums = [[(sum(c[b * size:(b + 1) * size]), sum(v * v for v in c[b * size:(b + 1) * size]))
                 for b in range(blocks)] for c in columns]
        half = size * blocks // 2

        def ratios(chosen):
            out = []
            for s in sums:
                total, squares = sum(s[b][0] for b in chosen), sum(s[b][1] for b in chosen)
                mean = total / half
                out.append(mean / math.sqrt((squares - half * mean * mean) / (half - 1)))
            return out
        below = splits = 0
        for chosen in itertools.combinations(range(blocks), blocks // 2):
            inside, outside = ratios(chosen), ratios([b for b in range(blocks) if b not in chosen])
            at = inside.index(max(inside))
            rank = sum(v < outside[at] for v in outside) + (1 + sum(v == outside[at] for v in outside)) / 2
            below += rank / (len(columns) + 1) <= 0.5
            splits += 1
        return below / splits


@unittest.skipIf(LONG, "the short tests")
class Examples(Made):
    WANT = {  # rows, and what the first says
        "baselines": (12, {"policy": "buy_and_hold", "fold": -1}),
        "best-by-fold": (2, {"fold": 0, "trades": 20 + 54 % 5}),
        "events": (1, {"kind": "start", "text": "made"}),
        "failures": (1, {"cause": "oom", "trials": 6, "first": 9, "reason": "made"}),
        "fold-spread": (20, {}),
        "learning": (0, {}),
        "parameters": (None, {}),
        "pruned": (2, {"trial": 7, "step": 3, "why": "made", "threshold": 0.5}),
        "running": (0, {}),
        "tables": (None, {}),
        "workers": (2, {"name": "made-1"}),
    }

    def test_every_example_query_answers(self):
        self.make()
        names = sorted(path.stem for path in (SOURCE / "sql/examples").glob("*.sql"))
        listed = self.hyperopt("sql", "t.db").stdout
        for name in names:
            with self.subTest(example=name):
                self.assertIn(f"@{name}", listed)
                rows = self.sql(f"@{name}")
                count, first = self.WANT.get(name, (None, {}))
                if count is not None:
                    self.assertEqual(len(rows), count)
                for key, want in first.items():
                    self.assertEqual(rows[0][key], want)
        self.assertEqual(set(self.WANT) - set(names), set(), "an example was removed")

    def test_best_by_fold_stands_beside_the_baselines(self):
        self.make()
        best = ranking(60)[0]
        for row in self.sql("@best-by-fold"):
            self.assertAlmostEqual(row["sharpe"], value(best) + 0.1 * (2 * row["fold"] - 1))
            self.assertAlmostEqual(row["hold_return"], 0.05)
            self.assertAlmostEqual(row["random_return"], -0.01)

    def test_every_format_holds_the_same_rows(self):
        self.make()
        query = "SELECT trial, value FROM leaderboard WHERE rank <= 3"
        want = [(row["trial"], row["value"]) for row in self.sql(query)]
        rows = list(csv.reader(io.StringIO(self.hyperopt("sql", "t.db", query, "--format", "csv").stdout)))
        self.assertEqual(rows[0], ["trial", "value"])
        self.assertEqual([(int(t), float(v)) for t, v in rows[1:]], want)
        table = self.hyperopt("sql", "t.db", query, "--format", "markdown").stdout
        self.assertEqual(len(table.splitlines()), 5)
        self.assertIn(f"| {want[0][0]} |".replace(" ", ""), table.replace(" ", ""))

    def test_sql_cannot_write(self):
        self.make()
        before = (self.dir / "t.db").read_bytes()
        for query in ("DELETE FROM trial", "CREATE TABLE x (y)", "PRAGMA user_version = 9",
                      "ATTACH 'other.db' AS other", "UPDATE study SET name = 'x'", "VACUUM INTO 'copy.db'"):
            self.hyperopt("sql", "t.db", query, code=1)
        self.assertEqual((self.dir / "t.db").read_bytes(), before)
        self.assertFalse((self.dir / "other.db").exists() or (self.dir / "copy.db").exists())


@unittest.skipIf(LONG, "the short tests")
class Exports(Made):
    def test_csv_has_a_row_a_trial_and_every_digit(self):
        self.make()
        self.hyperopt("export", "t.db", "csv", "-o", "t.csv")
        with open(self.dir / "t.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([int(row["trial"]) for row in rows], list(range(60)))
        stop = dict(self.query("SELECT p.trial, p.value FROM param p JOIN param_space s ON s.id = p.param AND "
                               "s.name = 'barriers.stop_loss'"))
        for n, row in enumerate(rows):
            self.assertEqual(row["state"], state(n))
            self.assertEqual(float(row["barriers.stop_loss"]), stop[n], "to the bit")
            if state(n) == "COMPLETE":
                self.assertEqual(float(row["value_sharpe"]), value(n))
            self.assertRegex(row["finished"], r"^2023-11-14T22:\d\d:\d\dZ$")
        for column in rows[0]:  # one type a column, as Parquet writers want it
            kinds = {self.kind(row[column]) for row in rows} - {"empty"}
            self.assertLessEqual(len(kinds - {"int"}), 1, (column, kinds))

    def kind(self, text):
        for name, parse in (("int", int), ("float", float)):
            try:
                parse(text)
                return name
            except ValueError:
                pass
        return "text" if text else "empty"

    def test_config_is_a_study_that_check_accepts(self):
        self.make()
        best = ranking(60)[0]
        self.hyperopt("export", "t.db", "config", "-o", "best.toml")
        text = (self.dir / "best.toml").read_text()
        self.assertIn(f"# Trial {best} ", text)
        self.assertNotIn("[search]", text)
        done = self.hyperopt("check", "best.toml", "--settings")
        row, = self.sql(f"SELECT * FROM trial_wide WHERE trial = {best}")
        self.assertIn(row["agent.algorithm"], text)
        stop, = [line for line in text.splitlines() if line.startswith("stop_loss")]
        self.assertEqual(float(stop.split("=")[1]), row["barriers.stop_loss"], "to the bit")
        self.assertIn("barriers.stop_loss", done.stdout)
        other = self.hyperopt("export", "t.db", "config", "--trial", 5).stdout
        self.assertIn("# Trial 5 ", other)
        self.assertIn("there is no trial 999", self.hyperopt("export", "t.db", "config", "--trial", 999, code=None).stderr)

    def test_a_trained_study_exports_its_best_as_a_study_that_runs(self):
        self.write(study_text(trials=2))
        self.hyperopt("run", "t.toml", "-q")
        self.hyperopt("export", "t.db", "config", "-o", "best.toml")
        self.hyperopt("run", "best.toml", "-d", "again.db", "-q", "--trials", 1)
        self.assertEqual(self.states("again.db"), {"COMPLETE": 1})
        self.assertEqual(self.one("SELECT count(*) FROM param", "again.db"), 0)

    def test_optuna_file_holds_tables_of_the_same_rows(self):
        self.make()
        self.hyperopt("export", "t.db", "optuna", "-o", "o.db")
        connection = sqlite3.connect(self.dir / "o.db")
        kinds = dict(connection.execute("SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view')"))
        for name in ("studies", "trials", "trial_params", "trial_values", "trial_intermediate_values",
                     "study_directions", "version_info", "alembic_version"):
            self.assertEqual(kinds.get(name), "table", name)
            if name not in ("studies", "version_info", "alembic_version"):
                self.assertEqual(connection.execute(f"SELECT count(*) FROM {name}").fetchone(),
                                 self.query(f"SELECT count(*) FROM {name}")[0], name)
        self.assertEqual(connection.execute("SELECT count(*) FROM trials").fetchone(), (60,))
        connection.close()

    def test_model_without_kept_weights_says_so(self):
        self.make()
        done = self.hyperopt("export", "t.db", "model", "-o", "agents", code=None)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("no weights are kept", done.stderr)


@unittest.skipIf(LONG, "the short tests")
class Report(Made):
    """The data of the page; tests/system/test_browser.py looks at what is drawn."""

    def data(self, *options):
        self.hyperopt("report", "t.db", "-o", "t.html", *options)
        page = (self.dir / "t.html").read_text()
        return json.loads(re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', page, re.S).group(1))

    def test_the_page_holds_the_leaderboard_the_baselines_and_every_trial(self):
        self.make()
        d = self.data()
        self.assertEqual([row["trial"] for row in d["leaderboard"]], ranking(60)[:len(d["leaderboard"])])
        self.assertEqual(len(d["leaderboard"]), 20)
        self.assertEqual(d["trials"]["number"], list(range(60)))
        self.assertEqual(d["trials"]["state"], [state(n) for n in range(60)])
        best, steps = -math.inf, []
        for n in range(60):
            if state(n) == "COMPLETE" and n % 10 != 3 and value(n) > best:
                best = value(n)
                steps.append([n, best])
        self.assertEqual([step[0] for step in d["trials"]["best"]], [step[0] for step in steps])
        self.assertEqual(len(d["sharpes"]), 48)
        self.assertEqual(sum(len(w["span"]) for w in d["workers"]), 60)
        self.assertEqual(len(d["equity"]), 2)
        for fold, drawn in enumerate(d["equity"]):
            want = returns(ranking(60)[0])[SESSIONS * fold:SESSIONS * (fold + 1)]
            self.assertEqual(len(drawn["best"]), SESSIONS)
            for a, b in zip(drawn["best"], want):
                self.assertAlmostEqual(a, b, 5)
        self.assertEqual(len({p["name"] for p in d["params"]}), 5)

    def test_replay_needs_the_recorded_actions(self):
        self.make()
        done = self.hyperopt("report", "t.db", "--replay", code=None)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("actions", done.stderr)
        self.assertFalse((self.dir / "t.html").exists(), "no torn page")


@unittest.skipUnless(LONG, "HO_LONG=1")
class Large(Made):
    TRIALS = 100_000

    def test_every_command_copes_with_a_hundred_thousand_trials(self):
        self.make()
        commands = [("status", "t.db"), ("best", "t.db"), ("show", "t.db", "54"), ("export", "t.db", "csv", "-o", "x.csv"),
                    ("export", "t.db", "config", "-o", "x.toml"), ("export", "t.db", "optuna", "-o", "x.db"),
                    ("report", "t.db", "-o", "x.html")]
        commands += [("sql", "t.db", f"@{path.stem}") for path in sorted((SOURCE / "sql/examples").glob("*.sql"))]
        for view in ("leaderboard", "study_progress", "worker_load", "epoch_curve", "overfitting", "trials"):
            commands.append(("sql", "t.db", f"SELECT * FROM {view} LIMIT 100"))
        for command in commands:
            start = time.monotonic()
            self.hyperopt(*command)
            print(f"{time.monotonic() - start:7.2f} s  hyperopt {' '.join(command)}", flush=True)
        size = (self.dir / "x.html").stat().st_size
        print(f"{size / 1e6:7.2f} MB report of {self.TRIALS} trials")
        self.assertLess(size, 20e6)
        rows = self.sql("SELECT trial FROM leaderboard WHERE rank <= 100")
        self.assertEqual([row["trial"] for row in rows], ranking(self.TRIALS)[:100])
        self.assertIn(f"trial {rows[0]['trial']} ", self.hyperopt("status", "t.db").stdout)


if __name__ == "__main__":
    harness.main()
