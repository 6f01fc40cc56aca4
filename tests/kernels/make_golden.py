#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes golden cases of the market step: random bars, settings and actions, and what an
independent reference (market_ref.py) makes of them.

usage: make_golden.py MARKET_REF.py FOLDER [FIRST_SEED COUNT [BARS]]
Writes seed-<n>.case.json and seed-<n>.want.json. Settings follow from the seed, so that every
feature of the step appears in some case.
"""
import importlib.util
import json
import math
import os
import random
import sys


def bars_of(rng, count, price, step, tick, zero_volume, negative):
    out, close = [], price

    def on_tick(x):
        return round(round(x / tick) * tick, 10) if tick else round(x, 6)

    for _ in range(count):
        gap = 6.0 if rng.random() < 0.02 else 0.2
        opening = on_tick(close + step * gap * rng.gauss(0, 1))
        close = on_tick(opening + step * rng.gauss(0, 1))
        high = on_tick(max(opening, close) + 0.5 * step * abs(rng.gauss(0, 1)))
        low = on_tick(min(opening, close) - 0.5 * step * abs(rng.gauss(0, 1)))
        if not negative and low <= step:
            shift = on_tick(10 * step)
            opening, high, low, close = opening + shift, high + shift, low + shift, close + shift
        volume = 0.0 if rng.random() < zero_volume else float(rng.randint(1, 500))
        out.append([opening, max(high, opening, close), min(low, opening, close), close, volume])
    return out


def case_of(seed, count):
    rng = random.Random(seed)
    tick = rng.choice([0.0, 0.01, 0.25, 0.1])
    price = rng.choice([30.0, 100.0, 4000.0, 42000.0])
    step = max(price * rng.choice([0.0005, 0.002, 0.01]), tick)
    negative = seed % 7 == 3
    if negative:
        price, tick, step = 1.5, 0.01, 0.6
    bars = bars_of(rng, count, price, step, tick, 0.05 if seed % 2 else 0.0, negative)
    multiplier = rng.choice([1.0, 1.0, 5.0, 50.0])
    max_lots = rng.choice([1, 3, 5, 40, 250])
    lot = rng.choice([1.0, 1.0, 0.001, 10.0])
    notional = max(abs(price), 5.0) * multiplier * lot * max_lots
    config = dict(
        tick=tick, multiplier=multiplier, max_lots=max_lots, lot=lot,
        initial_capital=max(round(notional * rng.choice([0.3, 1.0, 3.0]), 2), 1.0),
        max_leverage=rng.choice([1.0, 2.0, 10.0]), cash_reserve=rng.choice([0.0, 0.0, 0.2]),
        spread_bps=rng.choice([0.0, 1.0, 4.0]), fee_per_unit=rng.choice([0.0, 0.0, 0.02]),
        fee_bps=rng.choice([[1.5, 0.5, 1.0], [5.0, -0.5, 3.0], [0.0, 0.0, 0.0]]),
        limit_offset=rng.choice([0.0, 1.0, 3.0]), fill=rng.choice(["next_open", "next_open", "close"]),
        allow_short=rng.random() < 0.8, cooldown=rng.choice([0, 0, 3]),
        profit_target_bps=rng.choice([0.0, 20.0, 60.0]), stop_loss_bps=rng.choice([0.0, 15.0, 50.0]),
        max_holding=rng.choice([0, 0, 7, 30]), ioc_participation=rng.choice([0.1, 0.004]),
        urgency_fraction=rng.choice([[0.34, 0.67, 1.0], [0.1, 0.5, 0.9]]))
    if seed % 3 == 0:
        sigma = [0.0, 0.0]
        for t in range(2, count):
            r = [bars[i][3] / bars[i - 1][3] - 1 if bars[i - 1][3] > 0 else 0.0 for i in range(max(1, t - 19), t + 1)]
            mean = sum(r) / len(r)
            sigma.append(math.sqrt(sum((x - mean) ** 2 for x in r) / len(r)))
        config.update(sigma=sigma, impact_coef=0.5)
    if seed % 4 == 1:
        config["rolls"] = [[count // 3, round(step * 3, 2)], [2 * count // 3, round(-step * 2, 2)]]
    if seed % 5 == 2:
        config["funding"] = [0.0001 if t % 8 == 0 else 0.0 for t in range(count)]
    if seed % 4 == 2:
        config.update(session_end=[t % 40 == 39 and t + 1 < count for t in range(count)], flat_at_session_end=True)
    actions, action = [], 20
    for _ in range(count - 1):
        if rng.random() < 0.35:
            action = rng.randrange(45)
        actions.append(action)
    return dict(config=config, bars=bars, actions=actions)


def main():
    spec = importlib.util.spec_from_file_location("market_ref", sys.argv[1])
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    folder = sys.argv[2]
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    many = int(sys.argv[4]) if len(sys.argv) > 4 else 12
    count = int(sys.argv[5]) if len(sys.argv) > 5 else 120
    for seed in range(first, first + many):
        case = case_of(seed, count)
        for kind, content in (("case", case), ("want", reference.run(case))):
            with open(os.path.join(folder, f"seed-{seed}.{kind}.json"), "w") as file:
                json.dump(content, file, separators=(",", ":"))
                file.write("\n")


if __name__ == "__main__":
    main()
