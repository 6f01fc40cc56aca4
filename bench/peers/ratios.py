#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ratios of bench_gpu's figures to the peers': ratios.py OUT.json OURS.json PEER.json...
A file that a time limit cut off counts as far as it goes; a missing one is said."""
import json
import sys


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


def seconds(figures):
    return {(f["name"], f["lanes"]): f["median_ms"] * 1e-3 for f in figures}


# our line, and how a peer's name begins; both are medians of the same work
SAME = [("collect, td error included", "collect"), ("learn, soft target", "learn"),
        ("backtest 8 x 100,000 bars", "backtest")]


def main():
    out, ours, peers = sys.argv[1], read(sys.argv[2]), sys.argv[3:]
    if ours is None:
        return 1
    mine, table = seconds(ours["figures"]), []
    print("%-28s %5s %-42s %12s %12s %8s" % ("", "K", "peer", "ours, ms", "peer, ms", "ratio"))
    for path in peers:
        peer = read(path)
        for f in peer["figures"] if peer else []:
            for name, begins in SAME:
                own = mine.get((name, f["lanes"]))
                if f["name"].startswith(begins) and own:
                    ratio = f["median_ms"] * 1e-3 / own
                    table.append({"name": name, "lanes": f["lanes"], "peer": peer["peer"],
                                  "peer_figure": f["name"], "ours_ms": own * 1e3,
                                  "peer_ms": f["median_ms"], "ratio": ratio})
                    print("%-28s %5d %-42s %12.3f %12.3f %8.1f" % (
                        name, f["lanes"], peer["peer"] + ": " + f["name"], own * 1e3,
                        f["median_ms"], ratio))
    with open(out, "w") as f:
        json.dump({"device": ours["device"], "ratios": table}, f, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
