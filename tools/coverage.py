#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sums gcov's line and branch counts over translation units, file by file.

usage: coverage.py LIST_OF_GCDA_FILES
Inline functions of a header are compiled once per unit; counts of the same branch are added.
Prints one line a file and the untaken branches' lines; exit 1 under 95 % of branches.
"""
import collections
import gzip
import json
import os
import subprocess
import sys
import tempfile

ROOMS = ("kernels/env/", "kernels/metrics/")
WANTED = 0.95


def reports(path):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["gcov", "--json-format", "--branch-probabilities", os.path.abspath(path)],
                       cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        for name in os.listdir(folder):
            with gzip.open(os.path.join(folder, name), "rt") as file:
                yield json.load(file)


def main():
    root = os.getcwd()
    lines = collections.defaultdict(lambda: collections.defaultdict(int))
    branches = collections.defaultdict(lambda: collections.defaultdict(dict))
    with open(sys.argv[1]) as listing:
        for path in listing.read().split():
            for report in reports(path):
                for source in report["files"]:
                    name = os.path.relpath(os.path.join(report["current_working_directory"], source["file"]), root)
                    if not name.startswith(ROOMS):
                        continue
                    for line in source["lines"]:
                        number = line["line_number"]
                        lines[name][number] += line["count"]
                        for i, branch in enumerate(line["branches"]):
                            taken = branches[name][number]
                            taken[i] = taken.get(i, 0) + branch["count"]
    total = taken_total = 0
    print(f"{'file':34} {'lines':>12} {'branches':>14}  lines with an untaken branch")
    for name in sorted(lines):
        hit = sum(1 for count in lines[name].values() if count)
        flat = [(number, count) for number, of in branches[name].items() for count in of.values()]
        taken = sum(1 for _, count in flat if count)
        missed = sorted({number for number, count in flat if not count})
        total += len(flat)
        taken_total += taken
        share = f"{taken}/{len(flat)}" if flat else "-"
        print(f"{name:34} {hit:>5}/{len(lines[name]):<6} {share:>14}  {' '.join(map(str, missed))}")
    ratio = taken_total / total if total else 0.0
    print(f"branches of kernels/env and kernels/metrics: {taken_total} of {total} = {100 * ratio:.1f} %")
    return 0 if ratio >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
