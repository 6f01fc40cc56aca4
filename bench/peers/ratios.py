#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ratios of our figures to the peers': ratios.py OUT.json FILE.json...
Files, told apart by what they hold: bench_gpu's and the peers' cases; whole_study.json of
bench/whole_study.sh (configs/h200.toml) and optuna_torch.py's, compared in trials an hour. A file
that a time limit cut off counts as far as it goes; a missing one is said.

Trials are of full length, 8 agents x 40 epochs without pruning: our study's environment steps over
those of such a trial, Optuna's epochs over 40. A peer that has cases only is stated from its rates:
a trial's steps, updates and bars each over the rate at one K, nothing else counted."""
import json
import sys

# a trial of configs/h200.toml: agents x epochs x ...; validation every 5th epoch, test at the end
AGENTS, EPOCHS = 8, 40
STEPS, UPDATES = AGENTS * EPOCHS * 512 * 256, AGENTS * EPOCHS * 128
BARS = AGENTS * (EPOCHS // 5 * 25516 + 63852)
# our line, how a peer's name begins, and how much of it a trial has; both are medians of one work
SAME = [("collect, td error included", "collect", STEPS, 64000),
        ("learn, soft target", "learn", UPDATES, 341),
        ("backtest 8 x 100,000 bars", "backtest", BARS, 800000)]


def read(path):
    try:
        text = open(path).read().rstrip()
    except OSError as e:
        print("%s: %s" % (path, e.strerror))
        return None
    for end in ("", "\n]}"):
        try:
            return json.loads(text + end)
        except ValueError:
            continue
    print("%s: not readable" % path)
    return None


def cases(ours, peers):
    mine = {(f["name"], f["lanes"]): f["median_ms"] for f in ours["figures"]}
    print("%-28s %5s %-42s %12s %12s %8s" % ("", "K", "peer", "ours, ms", "peer, ms", "ratio"))
    for peer in peers:
        for f in peer["figures"]:
            for name, begins, _, _ in SAME:
                own = mine.get((name, f["lanes"]))
                if not f["name"].startswith(begins) or not own:
                    continue
                print("%-28s %5d %-42s %12.3f %12.3f %8.1f" % (
                    name, f["lanes"], peer["peer"] + ": " + f["name"], own, f["median_ms"],
                    f["median_ms"] / own))
                yield {"name": name, "lanes": f["lanes"], "peer": peer["peer"],
                       "peer_figure": f["name"], "ours_ms": own, "peer_ms": f["median_ms"],
                       "ratio": f["median_ms"] / own}


def from_rates(peer):
    """(trials an hour, K) at the K where they are most, of the eager or only kind."""
    best = None
    for k in sorted({f["lanes"] for f in peer["figures"]}):
        hours = 0.0
        for _, begins, amount, unit in SAME:
            ms = [f["median_ms"] for f in peer["figures"] if f["lanes"] == k and
                  f["name"].startswith(begins) and not f["name"].endswith("graph")]
            hours += amount / (unit * k) * ms[0] / 3.6e6 if ms else float("inf")
        if hours < float("inf") and (best is None or 1 / hours > best[0]):
            best = (1 / hours, k)
    return best


def trials(study, optuna, peers):
    rows = []
    if study:
        rate = study["experiences"] / STEPS / study["wall_s"] * 3600
        rows.append(("hyperopt, a whole study of %.0f s, %d trials ended" % (
            study["wall_s"], study["finished"]), rate))
    if optuna:
        rows.append(("%s, 1/%d of the work, scaled" % (optuna["peer"], optuna["share"]),
                     optuna["trials_an_hour"]))
    for peer in peers:
        best = from_rates(peer)
        if best:
            rows.append(("%s, from its rates at K = %d" % (peer["peer"], best[1]), best[0]))
    if rows:
        print("\n%-84s %12s %8s" % ("trials of full length an hour", "", "ratio"))
    for name, rate in rows:
        ratio = rows[0][1] / rate if study and rate > 0 else 0.0
        print("%-84s %12.2f %8.1f" % (name, rate, ratio))
        yield {"name": name, "trials_an_hour": rate, "ratio": ratio}


def main():
    files = [f for f in (read(path) for path in sys.argv[2:]) if f]
    ours = next((f for f in files if "device" in f), None)
    study = next((f for f in files if "experiences" in f), None)
    optuna = next((f for f in files if "share" in f), None)
    peers = [f for f in files if "peer" in f and "figures" in f]
    out = {"device": ours["device"] if ours else "", "ratios": list(cases(ours, peers) if ours else []),
           "studies": list(trials(study, optuna, peers))}
    with open(sys.argv[1], "w") as f:
        json.dump(out, f, indent=1)
    return 0 if ours else 1


if __name__ == "__main__":
    sys.exit(main())
