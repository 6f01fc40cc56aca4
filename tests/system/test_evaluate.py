# SPDX-License-Identifier: Apache-2.0
"""hyperopt evaluate and hyperopt verify: golden cases through the command line, agents, ensembles,
signals, rule policies, cost sensitivity, replayed trials."""
import csv
import datetime
import json
import os
import pathlib
import sqlite3
import struct

import harness
from harness import DATA, SOURCE, study_text

GOLDEN = SOURCE / "tests/data/golden"
SHARED = SOURCE / "../shared/reference/golden"
DEFAULTS = dict(initial_capital=100000.0, max_lots=5, lot=1.0, tick=0.0, multiplier=1.0, allow_short=True,
                spread_bps=1.0, fee_bps=[1.5, 0.5, 1.0], fee_per_unit=0.0, urgency_fraction=[0.34, 0.67, 1.0],
                max_leverage=10.0, cash_reserve=0.0, limit_offset=1.0, ioc_band=0.005, ioc_participation=0.1,
                fill="next_open", profit_target_bps=0.0, stop_loss_bps=0.0, max_holding=0, cooldown=0,
                flat_at_session_end=False)


def settings_of(config):
    """A reference case's settings as --set options."""
    c = dict(DEFAULTS, **{k: v for k, v in config.items() if k in DEFAULTS})
    taker, maker, ioc = c["fee_bps"]
    patient, normal, aggressive = c["urgency_fraction"]
    keys = {
        "env.initial_capital": c["initial_capital"], "instrument.lot": c["lot"],
        "env.max_position": c["max_lots"] * c["lot"], "instrument.tick_size": c["tick"],
        "instrument.multiplier": c["multiplier"], "instrument.allow_short": str(c["allow_short"]).lower(),
        "env.spread_bps": c["spread_bps"], "env.fee_bps.taker": taker, "env.fee_bps.maker": maker,
        "env.fee_bps.ioc": ioc, "env.fee_per_unit": c["fee_per_unit"], "env.urgency_fraction.patient": patient,
        "env.urgency_fraction.normal": normal, "env.urgency_fraction.aggressive": aggressive,
        "env.max_leverage": c["max_leverage"], "env.cash_reserve": c["cash_reserve"],
        "env.limit_offset": c["limit_offset"], "env.ioc_band": c["ioc_band"],
        "env.ioc_participation": c["ioc_participation"], "env.fill": c["fill"], "env.cooldown": c["cooldown"],
        "env.flat_at_session_end": str(c["flat_at_session_end"]).lower(), "env.impact_coef": 0.0,
        "barriers.unit": "bps", "barriers.profit_target": c["profit_target_bps"],
        "barriers.stop_loss": c["stop_loss_bps"], "barriers.max_holding": c["max_holding"]}
    out = []
    for key, value in keys.items():
        out += ["--set", f"{key}={value}"]
    return out


def stamps_of(config, count):
    """A minute apart; a new weekday begins where a session ends."""
    ends = config.get("session_end") or [False] * count
    day, minute, out = datetime.datetime(2024, 1, 1), 0, []
    for t in range(count):
        out.append((day + datetime.timedelta(minutes=minute)).strftime("%Y-%m-%dT%H:%M:%SZ"))
        minute += 1
        if ends[t]:
            day, minute = day + datetime.timedelta(days=3 if day.weekday() == 4 else 1), 0
    return out


class Tools(harness.SystemTest):
    def evaluate(self, *args, **kwargs):
        done = self.hyperopt("evaluate", *args, "--json", **kwargs)
        return json.loads(done.stdout)

    def rows(self, name):
        with open(self.dir / name, newline="") as file:
            return list(csv.DictReader(file))



class Evaluate(Tools):
    def golden(self, folder, name):
        case = json.loads((folder / f"{name}.case.json").read_text())
        want = json.loads((folder / f"{name}.want.json").read_text())
        config, bars = case["config"], case["bars"]
        funding = config.get("funding") or []
        with open(self.dir / "bars.csv", "w") as file:
            file.write("time,open,high,low,close,volume,funding\n")
            for t, (stamp, bar) in enumerate(zip(stamps_of(config, len(bars)), bars)):
                file.write(f"{stamp},{','.join(map(repr, bar))},{funding[t] if funding else 0.0!r}\n")
        (self.dir / "actions.csv").write_text("action\n" + "\n".join(map(str, case["actions"])) + "\n")
        extra = ["--set", "data.funding_column=funding"] if funding else []
        answer = self.evaluate("bars.csv", "--actions", "actions.csv", "--equity", "equity.csv", "--trades",
                               "trades.csv", *settings_of(config), *extra)
        run = answer["runs"][0]
        self.assertEqual(run["name"], "actions")
        equity = [float(row["equity"]) for row in self.rows("equity.csv")]
        self.assertEqual(equity, [step["equity"] for step in want["steps"]])  # to the bit
        trades = self.rows("trades.csv")
        self.assertEqual(len(trades), len(want["trades"]))
        for got, expected in zip(trades, want["trades"]):
            self.assertEqual(got["reason"], expected["reason"])
            self.assertAlmostEqual(float(got["net"]), expected["net"], delta=1e-9 * max(1, abs(expected["net"])))
        self.assertEqual(run["total"]["metrics"]["ambiguous_bars"]["value"], want["ambiguous_bars"])
        for part in ("fees", "spread", "rounding", "funding", "realised"):
            self.assertAlmostEqual(run["total"][part], want[part], delta=1e-9 * max(1, abs(want[part])))

    def test_committed_golden_cases_through_the_command_line(self):
        done = 0
        for path in sorted(GOLDEN.glob("*.case.json")):
            config = json.loads(path.read_text())["config"]
            if config.get("sigma") or config.get("rolls") or min(
                    bar[2] for bar in json.loads(path.read_text())["bars"]) <= 0:
                continue  # not facts that a file of bars states; the backtest's own tests have them
            with self.subTest(path.name):
                self.golden(GOLDEN, path.name[:-len(".case.json")])
                done += 1
        self.assertGreaterEqual(done, 3)

    def test_shared_golden_cases_through_the_command_line(self):
        if not SHARED.is_dir():
            self.skipTest("no golden cases beside the checkout")
        for name in ("plain", "crypto_small_lot", "equity_session"):
            with self.subTest(name):
                self.golden(SHARED, name)

    def test_rule_policies_and_windows(self):
        answer = self.evaluate(DATA, "--policy", "flat", "--policy", "buy_and_hold", "--policy", "short", "--policy",
                               "momentum", "--windows", 4, "--equity", "e.csv")
        self.assertEqual([run["name"] for run in answer["runs"]], ["flat", "buy_and_hold", "short", "momentum"])
        flat = answer["runs"][0]["total"]["metrics"]
        self.assertIsNone(flat["sharpe"]["value"])
        self.assertEqual(flat["sharpe"]["reason"], "flat")
        for run in answer["runs"]:
            self.assertEqual(len(run["windows"]), 4)
            total = run["total"]
            parts = total["realised"] - total["fees"] - total["funding"]
            pnl = sum(w["final_equity"] - w["initial_capital"] for w in run["windows"])
            self.assertAlmostEqual(parts, pnl, delta=1e-9 * max(1, abs(pnl)))
        self.assertGreater(len(self.rows("e.csv")), 6000)
        self.assertNotIn("costs", answer)
        text = self.hyperopt("evaluate", DATA).stdout
        self.assertIn("buy_and_hold", text)
        self.assertIn("leverage", text)

    def test_signals_by_time_and_the_cost_of_trading(self):
        with open(DATA) as file:
            stamps = [line.split(",")[0] for line in file][1:]
        with open(self.dir / "signals.csv", "w") as file:
            file.write("time,signal\n")
            for i in range(0, len(stamps), 7):
                file.write(f"{stamps[i]},{(-1) ** (i // 7) * 0.8}\n")
        answer = self.evaluate(DATA, "--signals", "signals.csv", "--trades", "t.csv")
        self.assertEqual(answer["runs"][0]["name"], "signals")
        returns = [row["metrics"]["total_return"]["value"] for row in answer["costs"]]
        self.assertEqual([row["factor"] for row in answer["costs"]], [0, 0.5, 1, 2, 4])
        self.assertEqual(returns, sorted(returns, reverse=True))
        self.assertEqual(returns[2], answer["runs"][0]["total"]["metrics"]["total_return"]["value"])
        self.assertEqual(answer["random"]["count"], 100)
        self.assertGreater(answer["random"]["turnover"], 0.1)
        self.assertGreater(len(self.rows("t.csv")), 500)
        self.hyperopt("evaluate", DATA, "--signals", "signals.csv", "--write-actions", "a.csv", code=1)
        self.assertFalse((self.dir / "a.csv").exists())

    def test_what_is_wrong_is_said(self):
        def refused(code, text, *args):
            done = self.hyperopt("evaluate", *args, code=code)
            self.assertIn(text, done.stderr)
        refused(1, "needs bars")
        refused(1, "no policy", DATA, "--policy", "hodl")
        refused(1, "no key", DATA, "--set", "env.spred_bps=1")
        refused(1, "--costs", DATA, "--costs", "1;2")
        (self.dir / "s.csv").write_text("signal\n0.5\n1.5\n")
        refused(2, "row 2: 1.5", DATA, "--signals", "s.csv")
        (self.dir / "a.csv").write_text("action\n1\n45\n")
        refused(2, "row 2: 45", DATA, "--actions", "a.csv")
        (self.dir / "a.csv").write_text("action\n1\n2\n")
        refused(2, "no action for bar 2", DATA, "--actions", "a.csv")
        (self.dir / "a.csv").write_text("time,action\n2017-01-01T22:30:00Z,1\n")
        refused(2, "not the open of a bar", DATA, "--actions", "a.csv")
        refused(1, "exclude each other", DATA, "--actions", "a.csv", "--signals", "s.csv")
        (self.dir / "m.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0{}")
        refused(2, "m.safetensors", "m.safetensors", DATA)


class Agents(Tools):
    """One small study, its agents and its recorded actions."""

    def setUp(self):
        super().setUp()
        self.write(study_text(trials=2, epochs=3, study="seeds = 2"))
        self.hyperopt("run", "t.toml")
        self.folder = self.dir / "t.artifacts/trial-000001"

    def model(self, fold, seed):
        return self.folder / f"fold-{fold}-seed-{seed}.safetensors"

    def test_an_agent_scores_on_its_fold_what_the_study_stored(self):
        for fold in range(2):
            answer = self.evaluate(self.model(fold, 1), "--study", "t.toml", "--write-actions", "a.csv")
            got = answer["runs"][0]["windows"][fold]["metrics"]
            stored = self.query(f"SELECT sharpe, total_pnl, trades, max_drawdown FROM fold_result "
                                f"WHERE trial = 1 AND fold = {fold} AND seed = 1")[0]
            self.assertEqual(stored, tuple(got[name]["value"] for name in ("sharpe", "total_pnl", "trades",
                                                                           "max_drawdown")))
        self.assertGreater(len(self.rows("a.csv")), 100)

    def test_written_actions_replay_to_the_same_equity(self):
        model = self.model(0, 0)
        first = self.evaluate(model, DATA, "--write-actions", "a.csv", "--equity", "e1.csv")
        self.assertGreater(first["windows"][0]["begin"], 0)  # features warm up first
        settings = self.settings_of_trial(1)
        again = self.evaluate(DATA, "--actions", "a.csv", "--equity", "e2.csv", *settings)
        self.assertEqual(first["windows"][0], again["windows"][0])
        self.assertEqual(self.rows("e1.csv"), self.rows("e2.csv"))

    def settings_of_trial(self, number):
        rows = self.query(f"SELECT name, value FROM param JOIN param_space ON param_space.id = param.param "
                          f"WHERE trial = {number} AND name LIKE 'barriers.%'")
        return [text for name, value in rows for text in ("--set", f"{name}={value!r}")]

    def test_a_sampling_policy_draws_as_it_did(self):
        self.write(study_text(trials=1, epochs=2, study='database = "ppo.db"', more='[ppo]\nsample_eval = true')
                   .replace("[agent]", '[agent]\nalgorithm = "ppo"').replace('"dqn.learning_rate"', '"ppo.learning_rate"'),
                   "ppo.toml")
        self.hyperopt("run", "ppo.toml")
        folder = self.dir / "ppo.artifacts/trial-000000"
        answer = self.evaluate(folder / "fold-1-seed-0.safetensors", "--study", "ppo.toml")
        stored = self.query("SELECT total_pnl FROM fold_result WHERE fold = 1 AND seed = 0", "ppo.db")[0][0]
        self.assertEqual(answer["runs"][0]["windows"][1]["metrics"]["total_pnl"]["value"], stored)

    def test_ensembles_decide_together(self):
        members = [self.model(0, 0), self.model(0, 1), self.model(1, 0)]
        totals = {}
        for how in ("mean_q", "vote", "confidence"):
            answer = self.evaluate(*members, DATA, "--ensemble", how, "--random", 0)
            self.assertEqual(answer["runs"][0]["name"], "ensemble")
            totals[how] = answer["runs"][0]["total"]["final_equity"]
            self.assertNotIn("random", answer)
        alone = self.evaluate(members[0], DATA)["runs"][0]["total"]["final_equity"]
        twice = self.evaluate(members[0], members[0], DATA)["runs"][0]["total"]["final_equity"]
        self.assertEqual(alone, twice)  # two of the same are one
        self.assertGreater(len(set(totals.values())), 1)

    def test_other_features_are_refused(self):
        done = self.hyperopt("evaluate", self.model(0, 0), self.cut_model(), DATA, code=None)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("features", done.stderr)

    def cut_model(self):
        """The same agent, said to be trained on one feature less."""
        data = self.model(0, 0).read_bytes()
        length = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:8 + length])
        header["__metadata__"]["features"] = header["__metadata__"]["features"].rsplit(",", 1)[0]
        text = json.dumps(header).encode()
        path = self.dir / "cut.safetensors"
        path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length:])
        return path

    def test_verify_replays_a_trial_bit_for_bit(self):
        done = self.hyperopt("verify", "t.db", 1)
        self.assertEqual(done.stdout.count("the same bits"), 4)
        self.assertIn("Trial 1 is verified.", done.stdout)
        costs = [line.split() for line in done.stdout.splitlines() if line.startswith("x ")]
        self.assertEqual([float(row[1]) for row in costs], [0, 0.5, 1, 2, 4])
        self.assertGreater(float(costs[0][2]), float(costs[4][2]))
        mean = self.one("SELECT avg(total_return) FROM fold_result WHERE trial = 1 AND fold = -1")
        self.assertAlmostEqual(float(costs[2][2]), mean, delta=1e-5 * abs(mean))
        self.assertNotIn("x ", self.hyperopt("verify", "t.db", 1, "--costs", "").stdout.split("verified")[1])

    def test_verify_finds_a_changed_result_and_a_changed_action(self):
        connection = sqlite3.connect(self.dir / "t.db")
        connection.execute("UPDATE fold_result SET total_pnl = total_pnl + 1 WHERE trial = 1 AND fold = 1 AND seed = 0")
        connection.commit()
        connection.close()
        done = self.hyperopt("verify", "t.db", 1, code=5)
        self.assertEqual(done.stdout.count("the same bits"), 3)
        self.assertIn("DIFFERS: total_pnl", done.stdout)
        other = self.dir / "t.artifacts/trial-000000"
        os.replace(other / "fold-0-seed-0.actions.zst", self.folder / "fold-0-seed-0.actions.zst")
        done = self.hyperopt("verify", "t.db", 1, code=5)
        self.assertIn("DIFFERS: session returns", done.stdout)
        done = self.hyperopt("verify", "t.db", 0, code=1)
        self.assertIn("are not kept", done.stderr)
        pathlib.Path(self.folder / "fold-0-seed-0.actions.zst").write_bytes(b"no zstd")
        done = self.hyperopt("verify", "t.db", 1, code=2)
        self.assertIn("not the", done.stderr)
        self.hyperopt("verify", "t.db", 99, code=1)
        self.hyperopt("verify", "t.db", "x", code=1)


if __name__ == "__main__":
    harness.main()
