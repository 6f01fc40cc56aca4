# SPDX-License-Identifier: Apache-2.0
"""Writes Databento files (DBN version 1) of hourly bars with the definition of their instrument, as
spec/data-formats.md describes them: a twin made from the bars of a CSV file."""
import calendar
import csv
import struct
import time

HOUR, DAY = 3600, 86400
UNSET = 2**63 - 1


def _text(text, width):
    return text.encode().ljust(width, b"\0")


def _date(seconds):
    return int(time.strftime("%Y%m%d", time.gmtime(seconds)))


def _header(length, rtype, seconds):
    return struct.pack("<BBHIQ", length // 4, rtype, 1, 42, seconds * 10**9)


def write_twin(path, source, scale, tick, multiplier):
    """The bars of source, prices times scale on the grid of tick, of one future worth multiplier a point."""
    with open(source, newline="") as file:
        rows = [(calendar.timegm(time.strptime(row["time"], "%Y-%m-%dT%H:%M:%SZ")),
                 [round(float(row[name]) * scale / tick) * tick for name in ("open", "high", "low", "close")],
                 int(float(row["volume"]) / 1e4)) for row in csv.DictReader(file)]
    first, last = rows[0][0], rows[-1][0]
    fixed = _text("GLBX.MDP3", 16) + struct.pack("<HQQQQBBB", 0xffff, first * 10**9, (last + HOUR) * 10**9, 0,
                                                 2**64 - 1, 1, 0, 0)
    metadata = fixed.ljust(100, b"\0") + struct.pack("<II", 0, 1) + _text("ESH7", 22) + struct.pack("<III", 0, 0, 1)
    metadata += _text("ESH7", 22) + struct.pack("<III", 1, _date(first), _date(last + DAY)) + _text("42", 22)
    with open(path, "wb") as file:
        file.write(b"DBN\1" + struct.pack("<I", len(metadata)) + metadata)
        definition = _header(360, 0x13, first) + struct.pack("<Qq", first * 10**9, int(tick * 1e9))
        definition += struct.pack("<q", UNSET) * 7 + struct.pack("<qq", int(multiplier * 1e9), int(tick * multiplier * 1e9))
        file.write(definition.ljust(360, b"\0"))
        for seconds, prices, volume in rows:
            file.write(_header(56, 0x22, seconds) + struct.pack("<4qQ", *(int(p * 1e9) for p in prices), volume))
