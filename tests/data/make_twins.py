#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the files of tests/data/twins: the same made-up bars in every dialect of CSV that the
reader knows. tests/market/test_csv.c loads each and demands the same bars, bit for bit.

usage: tests/data/make_twins.py (from the top of the repository)
"""
import datetime as dt
import pathlib
import random

OUT = pathlib.Path("tests/data/twins")
UTC = dt.timezone.utc
EASTERN = dt.timezone(dt.timedelta(hours=-5))


def bars(first, step, n):
    rng = random.Random(7)
    close, rows = 4512.25, []
    for i in range(n):
        o = close + 0.25 * rng.randint(-2, 2)
        close = o + 0.25 * rng.randint(-8, 8)
        h = max(o, close) + 0.25 * rng.randint(0, 4)
        l = min(o, close) - 0.25 * rng.randint(0, 4)
        rows.append((first + i * step, o, h, l, close, rng.randint(1, 5000)))
    return rows


MINUTES = bars(dt.datetime(2024, 1, 2, 14, 30, tzinfo=UTC), dt.timedelta(minutes=1), 40)
DAYS = [b for b in bars(dt.datetime(2024, 1, 2, tzinfo=UTC), dt.timedelta(days=1), 40)
        if b[0].weekday() < 5]


def write(name, lines, end="\n", bom=False):
    data = ("\ufeff" if bom else "") + end.join(lines) + end
    (OUT / name).write_bytes(data.encode("utf-8"))


def epoch(t, scale):
    return str(int(t.timestamp()) * scale)


def p(x):
    return f"{x:.2f}"


def ohlcv(b, sep=","):
    return sep.join([p(b[1]), p(b[2]), p(b[3]), p(b[4]), str(b[5])])


def table(name, stamp, header="time,open,high,low,close,volume", sep=",", rows=MINUTES, **kw):
    lines = [header.replace(",", sep)] if header else []
    write(name, lines + [stamp(b[0]) + sep + ohlcv(b, sep) for b in rows], **kw)


def klines(b, scale, sep=","):
    t = int(b[0].timestamp()) * scale
    return sep.join([str(t), p(b[1]), p(b[2]), p(b[3]), p(b[4]), str(b[5]),
                     str(t + 60 * scale - 1), p(b[4] * b[5]), "12", "1.0", "2.0", "0"])


def comma(x):
    return p(x).replace(".", ",")


def thousands(x):
    return f'"{x:,.2f}"'


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    iso = lambda t: t.strftime("%Y-%m-%dT%H:%M:%SZ")
    plain = lambda t: t.strftime("%Y-%m-%d %H:%M:%S")
    eastern = lambda t: t.astimezone(EASTERN).strftime("%Y-%m-%d %H:%M:%S")
    day = lambda t: t.strftime("%Y-%m-%d")
    table("plain.csv", iso)
    table("days.csv", day, rows=DAYS)
    for unit, scale in (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)):
        table(f"epoch-{unit}.csv", lambda t, k=scale: epoch(t, k))
    table("bom-crlf.csv", iso, end="\r\n", bom=True)
    table("semicolon.csv", plain, sep=";", header="Date Time,Open,High,Low,Close,Vol")
    table("no-final-newline.csv", iso)
    data = (OUT / "no-final-newline.csv").read_bytes()
    (OUT / "no-final-newline.csv").write_bytes(data[:-1])
    table("ninjatrader.txt", lambda t: t.strftime("%Y%m%d %H%M%S"), header=None, sep=";")
    table("two-spaces.csv", lambda t: t.strftime("%Y%m%d  %H:%M:%S"))
    table("firstrate.txt", eastern, header=None)
    table("compact.csv", lambda t: t.strftime("%Y%m%d%H%M%S"), header=None)
    table("offset.csv", lambda t: t.astimezone(EASTERN).isoformat())
    table("utc-word.csv", lambda t: plain(t) + " UTC")
    table("plus-zero.csv", lambda t: plain(t) + "+00:00", header="open_time,open,high,low,close,volume")
    table("fraction.csv", lambda t: plain(t) + ".000000000", header="timestamp_utc,Open,High,Low,Close,Volume")
    table("dukascopy.csv", lambda t: t.strftime("%d.%m.%Y %H:%M:%S.000"), rows=MINUTES)
    table("unnamed-index.csv", plain, header=",Open,High,Low,Close,Volume")
    table("am-pm.csv", lambda t: t.strftime("%Y-%m-%d %I:%M:%S %p"))
    table("us-dates.csv", lambda t: t.strftime("%m/%d/%Y"), rows=DAYS)
    table("eu-dates.csv", lambda t: t.strftime("%d/%m/%Y"), rows=DAYS)
    table("tab.tsv", iso, sep="\t")
    table("shouting.csv", iso, header="TIMESTAMP,OPEN,HIGH,LOW,CLOSE,VOL")
    table("descending.csv", iso, rows=MINUTES[::-1])
    table("trailing-comma.csv", iso, header="time,open,high,low,close,volume,")
    write("trailing-comma.csv", ["time,open,high,low,close,volume,"] +
          [iso(b[0]) + "," + ohlcv(b) + "," for b in MINUTES])
    write("histdata-mt.csv", [b[0].strftime("%Y.%m.%d,%H:%M,") + ohlcv(b) for b in MINUTES])
    write("tslab.txt", [b[0].strftime("%m/%d/%Y;%H:%M;") + ohlcv(b, ";") + ";" for b in MINUTES])
    write("metatrader5.tsv", ["<DATE>\t<TIME>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\t<TICKVOL>\t<VOL>\t<SPREAD>"] +
          [b[0].strftime("%Y.%m.%d\t%H:%M:%S\t") + ohlcv(b, "\t") + "\t0\t3" for b in MINUTES])
    write("finam.txt", ["<TICKER>,<PER>,<DATE>,<TIME>,<OPEN>,<HIGH>,<LOW>,<CLOSE>,<VOL>"] +
          [b[0].strftime("ES,1,%Y%m%d,%H%M%S,") + ohlcv(b) for b in MINUTES])
    write("header-one-short.csv", ["Date,Open,High,Low,Close,Volume,OpenInterest"] +
          [b[0].strftime("%Y-%m-%d,%H:%M:%S,") + ohlcv(b) + ",0" for b in MINUTES])
    write("row-number.csv", ["time,open,high,low,close,volume"] +
          [f"{i},{iso(b[0])}," + ohlcv(b) for i, b in enumerate(MINUTES)])
    write("binance-ms.csv", [klines(b, 10**3) for b in MINUTES])
    write("binance-us.csv", [klines(b, 10**6) for b in MINUTES])
    write("binance-unit-change.csv", [klines(b, 10**3 if i < 20 else 10**6) for i, b in enumerate(MINUTES)])
    write("pipe.csv", [klines(b, 10**3, "|") for b in MINUTES])
    write("kraken.csv", [epoch(b[0], 1) + "," + ohlcv(b) + ",7" for b in MINUTES])
    lines = ["Timestamp,Open,High,Low,Close,Volume_(BTC),Volume_(Currency),Weighted_Price"]
    for i, b in enumerate(MINUTES):
        lines.append(f"{epoch(b[0], 1)}.0,{ohlcv(b)},{p(b[4] * b[5])},{p(b[4])}")
    empty = MINUTES[-1][0] + dt.timedelta(minutes=1)
    lines.append(f"{epoch(empty, 1)}.0,NaN,NaN,NaN,NaN,NaN,NaN,NaN")
    write("kaggle-btc.csv", lines)
    write("tradingview.csv", ["time,open,high,low,close,Volume,MA,RSI"] +
          [f"{epoch(b[0], 1)},{ohlcv(b)},{'NaN' if i < 9 else p(b[4])},{'' if i < 14 else '51.2'}"
           for i, b in enumerate(MINUTES)])
    write("databento-fixed.csv", ["ts_event,rtype,publisher_id,instrument_id,open,high,low,close,volume"] +
          [",".join([epoch(b[0], 10**9), "33", "1", "42"] +
                    [str(int(round(x * 4)) * 250000000) for x in b[1:5]] + [str(b[5])]) for b in MINUTES])
    write("databento-pretty.csv", ["ts_event,rtype,publisher_id,instrument_id,open,high,low,close,volume,symbol"] +
          [b[0].strftime("%Y-%m-%dT%H:%M:%S.000000000Z") + ",33,1,42," +
           ",".join(f"{x:.9f}" for x in b[1:5]) + f",{b[5]},ESH4" for b in MINUTES])
    write("quoted-thousands.csv", ["Date,Open,High,Low,Close,Volume"] +
          [f'"{plain(b[0])}",' + ",".join(thousands(x) for x in b[1:5]) + f',"{b[5]:,}"' for b in MINUTES])
    write("decimal-comma.csv", ["Date;Open;High;Low;Close;Volume"] +
          [plain(b[0]) + ";" + ";".join(comma(x) for x in b[1:5]) + f";{b[5]}" for b in MINUTES])
    write("comments.csv", ["# made for a test", "# two lines", "time,open,high,low,close,volume"] +
          [iso(b[0]) + "," + ohlcv(b) for b in MINUTES[:20]] + ["# in the middle", ""] +
          [iso(b[0]) + "," + ohlcv(b) for b in MINUTES[20:]] + ["", ""])
    write("banner.csv", ["Timestamps are UTC,https://example.org", "time,open,high,low,close,volume"] +
          [iso(b[0]) + "," + ohlcv(b) for b in MINUTES])
    write("excel-sep.csv", ["sep=;", "time;open;high;low;close;volume"] +
          [iso(b[0]) + ";" + ohlcv(b, ";") for b in MINUTES])
    write("close-first.csv", ["time,open,close,low,high,volume"] +
          [",".join([iso(b[0]), p(b[1]), p(b[4]), p(b[3]), p(b[2]), str(b[5])]) for b in MINUTES])
    write("oclh-no-header.csv",
          [",".join([epoch(b[0], 1), p(b[1]), p(b[4]), p(b[3]), p(b[2]), str(b[5]), "9"]) for b in MINUTES])
    write("wide.csv", [",ES:open,ES:high,ES:low,ES:close,ES:volume,NQ:open,NQ:high,NQ:low,NQ:close,NQ:volume"] +
          [iso(b[0]) + "," + ohlcv(b) + ",1,2,1,2,3" for b in MINUTES])
    long = []
    for b in MINUTES:
        long.append(f"{iso(b[0])},ES,{ohlcv(b)}")
        long.append(f"{iso(b[0])},NQ,1,2,1,2,3")
    write("long-symbols.csv", ["time,symbol,open,high,low,close,volume"] + long)
    write("bid-ask.csv", ["time,bidopen,bidhigh,bidlow,bidclose,askopen,askhigh,asklow,askclose,volume"] +
          [iso(b[0]) + "," + ",".join(p(x - 0.25) for x in b[1:5]) + "," +
           ",".join(p(x + 0.25) for x in b[1:5]) + f",{b[5]}" for b in MINUTES])
    write("lean-scaled.csv", [b[0].strftime("%Y%m%d %H:%M,") +
                              ",".join(str(int(round(x * 10000))) for x in b[1:5]) + f",{b[5]}" for b in MINUTES])
    write("list.json", ["[" + ",".join("[" + epoch(b[0], 1000) + "," + ohlcv(b) + "]" for b in MINUTES) + "]"])
    write("strings.json", ["[" + ", ".join("[" + epoch(b[0], 1000) + ', "' +
                                           ohlcv(b).replace(",", '", "') + '"]' for b in MINUTES) + "]"])
    write("yahoo.csv", ["Date,Open,High,Low,Close,Adj Close,Volume"] +
          [day(b[0]) + "," + ",".join(p(x) for x in b[1:5]) + f",{p(b[4] / 2)},{b[5]}" for b in DAYS] +
          ["2024-02-12,null,null,null,null,null,null"])
    write("yfinance.csv", ["Price,Close,High,Low,Open,Volume", "Ticker,ES,ES,ES,ES,ES", "Date,,,,,"] +
          [",".join([day(b[0]), p(b[4]), p(b[2]), p(b[3]), p(b[1]), str(b[5])]) for b in DAYS])
    write("yfinance-several.csv", ["Price,Close,Close,High,High,Low,Low,Open,Open,Volume,Volume",
                                   "Ticker" + ",ES,NQ" * 5, "Date" + "," * 10] +
          [",".join([day(b[0]), p(b[4]), "2", p(b[2]), "2", p(b[3]), "1", p(b[1]), "1", str(b[5]), "3"])
           for b in DAYS])
    write("nasdaq.csv", ["Date,Close/Last,Volume,Open,High,Low"] +
          [b[0].strftime("%m/%d/%Y") + f",${p(b[4])},{b[5]},${p(b[1])},${p(b[2])},${p(b[3])}" for b in DAYS[::-1]])
    write("barchart.csv", ["Time,Open,High,Low,Last,Change,%Chg,Volume"] +
          [day(b[0]) + "," + ",".join(p(x) for x in b[1:5]) + f",0.25,+0.01%,{b[5]}" for b in DAYS] +
          ['"Downloaded from Barchart.com as of 02-10-2024 10:00am CST"'])
    write("polygon.csv", ["ticker,volume,open,close,high,low,window_start,transactions"] +
          [f"ES,{b[5]},{p(b[1])},{p(b[4])},{p(b[2])},{p(b[3])},{epoch(b[0], 10**9)},9" for b in MINUTES])
    write("investing.csv", ['"Date","Price","Open","High","Low","Vol.","Change %"'] +
          ['"' + b[0].strftime("%b %d, %Y") + '",' + ",".join(thousands(x) for x in (b[4], b[1], b[2], b[3])) +
           f',"{b[5] / 1000:.3f}K","0.12%"' for b in DAYS[::-1]])


if __name__ == "__main__":
    main()
