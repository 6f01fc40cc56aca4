/* SPDX-License-Identifier: Apache-2.0
 * Real files of the folder beside the repository, where there is one: bars, first and last bar,
 * warnings or the refusal of each. Expected values were taken from the files' text and from the
 * folder's own description, `steps` (places where the next row is more than a bar away) from the
 * latter alone. The committed twins of the dialects are in test_csv.c. */
#include "market/load_file.h"

#include <stdlib.h>
#include <sys/stat.h>

typedef struct expected {
    const char *file, *set;
    const char *refusal; /* part of the message, or NULL */
    int64_t bars, first_s, last_s;
    double interval_s;
    const char *label; /* "?": neither file nor key says so */
    double first[5], last[5];
    int64_t steps;        /* -1: not described */
    const char *warnings; /* all findings that are warnings, in the table's order */
} expected;

/* clang-format off */
static const expected table[] = {
    {.file = "long/filusdt-perp-1m-binance.csv.zst", .set = "",
     .bars = 902880, .first_s = 1675209600, .last_s = 1782863940, .interval_s = 60, .label = "open",
     .first = {5.233, 5.238, 5.229, 5.233, 35462.8}, .last = {0.718, 0.718, 0.717, 0.718, 12067.7}, .steps = 13,
     .warnings = "zero_volume=175 spikes=6 jumps=1 holes=13"},
    {.file = "medium/6eh4-eurofx-1m-2024-01.csv.gz", .set = "",
     .bars = 29996, .first_s = 1704150000, .last_s = 1706745480, .interval_s = 60, .label = "close",
     .first = {1.1076, 1.10785, 1.1076, 1.1078, 205}, .last = {1.08225, 1.0824, 1.08225, 1.0823, 36}, .steps = 375,
     .warnings = "gaps=353"},
    {.file = "medium/btc-perp-1m-2022-01.csv.gz", .set = "",
     .bars = 45031, .first_s = 1640991660, .last_s = 1643693460, .interval_s = 60, .label = "?",
     .first = {46319, 46385, 46319, 46377, 2300413.7295}, .last = {38525, 38546, 38525, 38544, 685906.9735}, .steps = 0,
     .warnings = "spikes=1"},
    {.file = "medium/btcusd-1h-coinbase-2017-2019.csv.gz", .set = "",
     .refusal = ":16901: the row is out of order (5 such steps)"},
    {.file = "medium/es-1m-2013-2020-lean-front.csv.gz", .set = "",
     .bars = 19083, .first_s = 1381096800, .last_s = 1578355140, .interval_s = 60, .label = "open",
     .first = {1676.75, 1677.25, 1673.5, 1675.25, 1884}, .last = {3241.75, 3242.5, 3241.75, 3242.5, 158}, .steps = -1,
     .warnings = "spikes=2 jumps=1 holes=5 gaps=217"},
    {.file = "medium/eurostoxx-1m-2006-backtrader.txt.gz", .set = "",
     .bars = 30889, .first_s = 1136192400, .last_s = 1141077540, .interval_s = 60, .label = "close",
     .first = {3602, 3603, 3597, 3599, 5699}, .last = {3840, 3840, 3838, 3838, 327}, .steps = 765,
     .warnings = "gaps=725"},
    {.file = "medium/eurusd-1h-2007-2018-lean-oanda-quotes.csv.zst", .set = "",
     .bars = 74439, .first_s = 1167685200, .last_s = 1546290000, .interval_s = 3600, .label = "?",
     .first = {1.31977, 1.32005, 1.3192, 1.31985, 0}, .last = {1.14567, 1.1468699999999998, 1.1456050000000002, 1.14657, 0}, .steps = 641,
     .warnings = "holes=1 gaps=4"},
    {.file = "medium/gbpusd-1m-2012-02-fxcm-bid.csv.gz", .set = "",
     .bars = 30117, .first_s = 1328054400, .last_s = 1330560000, .interval_s = 60, .label = "?",
     .first = {1.57597, 1.57606, 1.57576, 1.57576, 0}, .last = {1.59206, 1.59211, 1.59194, 1.59208, 0}, .steps = 111,
     .warnings = "gaps=104"},
    {.file = "medium/spy-1h-1998-2021-lean.csv.gz", .set = "",
     .bars = 40832, .first_s = 883731600, .last_s = 1617202800, .interval_s = 3600, .label = "?",
     .first = {97.31, 97.53, 97.03, 97.03, 384500}, .last = {397.24, 397.75, 396.05, 396.33, 42345824}, .steps = 5848,
     .warnings = "spikes=19 holes=1"},
    {.file = "medium/spy-1m-2011-03-ninjatrader.csv.gz", .set = "",
     .bars = 17577, .first_s = 1298970000, .last_s = 1301615880, .interval_s = 60, .label = "close",
     .first = {133.9, 134.01, 133.9, 133.98, 3778}, .last = {132.72, 132.72, 132.72, 132.72, 2900}, .steps = 1414,
     .warnings = "spikes=1 gaps=1392"},
    {.file = "dialects/6eh4-1m-semicolon.csv", .set = "",
     .bars = 9, .first_s = 1704150060, .last_s = 1704150540, .interval_s = 60, .label = "?",
     .first = {1.1076, 1.10785, 1.1076, 1.1078, 205}, .last = {1.10745, 1.1075, 1.1074, 1.10745, 84}, .steps = -1,
     .warnings = ""},
    {.file = "dialects/adabtc-1m-binance-pipe.csv", .set = "",
     .bars = 10, .first_s = 1637971200, .last_s = 1637971740, .interval_s = 60, .label = "open",
     .first = {2.853e-05, 2.854e-05, 2.851e-05, 2.854e-05, 36304.2}, .last = {2.863e-05, 2.865e-05, 2.863e-05, 2.865e-05, 8160.5}, .steps = -1,
     .warnings = ""},
    {.file = "dialects/adabtc-1m-binance-spot-ms.csv", .set = "",
     .bars = 1440, .first_s = 1638057600, .last_s = 1638143940, .interval_s = 60, .label = "open",
     .first = {2.82e-05, 2.821e-05, 2.817e-05, 2.818e-05, 85342.7}, .last = {2.784e-05, 2.785e-05, 2.781e-05, 2.784e-05, 19131.2}, .steps = -1,
     .warnings = ""},
    {.file = "dialects/btc-1d-ninjabot-header.csv", .set = "",
     .bars = 14, .first_s = 1619395200, .last_s = 1620518400, .interval_s = 86400, .label = "?",
     .first = {49066.76, 54356.62, 48753.44, 54001.39, 86310.8}, .last = {58866.53, 59300, 56235.66, 57479.24, 57209.7}, .steps = -1,
     .warnings = ""},
    {.file = "dialects/btc-eth-1d-wide-multi-asset.csv", .set = "",
     .refusal = ":1: the file has several instruments side by side"},
    {.file = "dialects/btcusd-30m-bitstamp-empty-adjclose.csv", .set = "",
     .bars = 1968, .first_s = 1403560800, .last_s = 1407106800, .interval_s = 1800, .label = "?",
     .first = {585.46, 588.5, 585.14, 586.54, 30.63408917}, .last = {588.27, 588.27, 584.73, 586.9, 3.92964846}, .steps = 1,
     .warnings = "gaps=1"},
    {.file = "dialects/btcusdt-1m-binance-spot-us.csv", .set = "",
     .bars = 4, .first_s = 1789430400, .last_s = 1789430580, .interval_s = 60, .label = "open",
     .first = {78189.2, 78200.23, 78176.65, 78199.66, 3.48107}, .last = {78221.02, 78221.02, 78206.21, 78218.5, 7.0293}, .steps = -1,
     .warnings = ""},
    {.file = "dialects/es-1m-20131218-lean-multi-contract.zip", .set = "",
     .refusal = "the zip holds 5 files and data.symbol = \"\" is in the name of 0"},
    {.file = "dialects/es-1m-databento-fixedpoint.csv", .set = "",
     .bars = 2, .first_s = 1609110000, .last_s = 1609110060, .interval_s = 60, .label = "?",
     .first = {368200, 368725, 367600, 368650, 2312}, .last = {368625, 368625, 368375, 368425, 496}, .steps = -1,
     .warnings = ""},
    {.file = "dialects/eurostoxx-1d-openinterest-crlf.txt", .set = "",
     .bars = 255, .first_s = 1136160000, .last_s = 1167350400, .interval_s = 86400, .label = "?",
     .first = {3602, 3624, 3596, 3617, 164794}, .last = {4157, 4167, 4145, 4157, 205816}, .steps = -1,
     .warnings = ""},
    {.file = "dialects/eurostoxx-5m-split-date-time.txt", .set = "",
     .bars = 2142, .first_s = 1136192400, .last_s = 1138641900, .interval_s = 300, .label = "close",
     .first = {3578.73, 3587.88, 3578.73, 3582.99, 0}, .last = {3679.29, 3679.4, 3676.31, 3677.52, 0}, .steps = -1,
     .warnings = ""},
    {.file = "dialects/eurusd-1h-dukascopy-dmy.csv", .set = "",
     .bars = 6225, .first_s = 1483308000, .last_s = 1514581200, .interval_s = 3600, .label = "?",
     .first = {1.05236, 1.05253, 1.05221, 1.05227, 143539993.3}, .last = {1.19984, 1.2013, 1.19931, 1.20075, 4885529785}, .steps = 52,
     .warnings = ""},
    {.file = "dialects/eurusd-1h-unnamed-index.csv", .set = "",
     .bars = 5000, .first_s = 1492592400, .last_s = 1518015600, .interval_s = 3600, .label = "?",
     .first = {1.0716, 1.0722, 1.07083, 1.07219, 1413}, .last = {1.23427, 1.23444, 1.22904, 1.22904, 6143}, .steps = 42,
     .warnings = ""},
    {.file = "dialects/ltcusdt-1m-2026-02-binance-futures-12col.csv.gz", .set = "",
     .bars = 40320, .first_s = 1769904000, .last_s = 1772323140, .interval_s = 60, .label = "open",
     .first = {59.49, 59.49, 59.42, 59.45, 1554.932}, .last = {54.35, 54.39, 54.34, 54.37, 1557.757}, .steps = 0,
     .warnings = ""},
    {.file = "dialects/orcl-1d-quandl-wiki.csv", .set = "",
     .bars = 252, .first_s = 946857600, .last_s = 978048000, .interval_s = 86400, .label = "?",
     .first = {122.7, 125, 111.6, 118.1, 24528700}, .last = {30.88, 31.31, 28.69, 29.06, 31702200}, .steps = -1,
     .warnings = "jumps=2"},
    {.file = "dialects/solusdt-1h.csv", .set = "",
     .bars = 1000, .first_s = 1726786800, .last_s = 1730383200, .interval_s = 3600, .label = "?",
     .first = {142.43, 142.93, 142.13, 142.89, 93441.788}, .last = {171.91, 172.05, 169.3, 170.42, 340323.352}, .steps = -1,
     .warnings = ""},
    {.file = "dialects/spy-1d-yahoo-descending.csv", .set = "",
     .bars = 252, .first_s = 1294012800, .last_s = 1325203200, .interval_s = 86400, .label = "?",
     .first = {126.71, 127.6, 125.7, 127.05, 138725200}, .last = {126.02, 126.33, 125.5, 125.5, 95599000}, .steps = -1,
     .warnings = ""},
    {.file = "dialects/spy-5m-interactivebrokers.csv", .set = "",
     .bars = 192, .first_s = 1340928000, .last_s = 1341014100, .interval_s = 300, .label = "?",
     .first = {132.68, 132.68, 132.62, 132.62, 329}, .last = {136.37, 136.38, 136.37, 136.38, 133}, .steps = -1,
     .warnings = "zero_volume=1"},
    {.file = "dialects/ticks-as-bars-iso-ms.csv", .set = "",
     .refusal = ":2: the stamps have no regular step: these are ticks or irregular bars"},
    {.file = "dialects/xrp-usdt-1h-freqtrade.feather", .set = "",
     .refusal = "is an Arrow (Feather) file"},
    {.file = "dialects/xrp-usdt-1h-freqtrade.json.gz", .set = "",
     .bars = 100, .first_s = 1637110800, .last_s = 1637467200, .interval_s = 3600, .label = "?",
     .first = {1.0801, 1.09758, 1.07654, 1.07925, 3153694.607359}, .last = {1.07685, 1.08229, 1.07552, 1.0765, 1153357.274076}, .steps = -1,
     .warnings = ""},
    {.file = "dialects/yhoo-1d-yahoo-adjclose-before-volume.txt", .set = "",
     .bars = 252, .first_s = 1388620800, .last_s = 1419984000, .interval_s = 86400, .label = "?",
     .first = {40.369999, 40.490002, 39.310001, 39.59, 21504200}, .last = {51.540001, 51.68, 50.459999, 50.509998, 9305000}, .steps = -1,
     .warnings = ""},
    {.file = "dirt/btc-1h-ninjabot-duplicates-oclh.csv", .set = "",
     .bars = 4309, .first_s = 1605571200, .last_s = 1621123200, .interval_s = 3600, .label = "?",
     .first = {16713.08, 16830, 16683.63, 16806.09, 2861.4}, .last = {46762.99, 47698, 46467, 47283.43, 5439.3}, .steps = 7,
     .warnings = "duplicate_rows=5 zero_volume=2 gaps=7"},
    {.file = "dirt/btcusdc-1m-binanceus-zero-volume.csv.gz", .set = "",
     .bars = 30240, .first_s = 1677628800, .last_s = 1679443140, .interval_s = 60, .label = "?",
     .first = {23143.82, 23152.65, 23140.02, 23152.65, 0.26395}, .last = {28188.67, 28188.67, 28181.27, 28181.27, 0.046}, .steps = -1,
     .warnings = "zero_volume=12971 spikes=12"},
    {.file = "dirt/btcusdc-1m-kraken-gaps.csv.gz", .set = "",
     .bars = 56717, .first_s = 1672531200, .last_s = 1680307140, .interval_s = 60, .label = "?",
     .first = {16535.97, 16535.97, 16522.66, 16522.66, 0.01429883}, .last = {28479.68, 28485.09, 28479.68, 28485.09, 0.05123725}, .steps = 26746,
     .warnings = "spikes=27 gaps=26746"},
    {.file = "dirt/ige-1d-flat-zero-volume-wrong-adjclose.csv", .set = "",
     .bars = 1504, .first_s = 1006732800, .last_s = 1194998400, .interval_s = 86400, .label = "?",
     .first = {91.01, 91.01, 91.01, 91.01, 0}, .last = {129.32, 129.58, 126.9, 127.64, 35900}, .steps = -1,
     .warnings = "zero_volume=55 jumps=1"},
    {.file = "dirt/wti-cl-1d-negative-price.csv", .set = "",
     .bars = 6427, .first_s = 966988800, .last_s = 1774828800, .interval_s = 86400, .label = "?",
     .first = {31.950000762939453, 32.79999923706055, 31.950000762939453, 32.04999923706055, 79385}, .last = {102.5999984741211, 105.36000061035156, 99.43000030517578, 102.87999725341797, 374075}, .steps = -1,
     .warnings = "contradictions=7 non_positive=2 zero_volume=12 spikes=1 jumps=2"},
    {.file = "dirt/wti-spot-1d-close-only.csv", .set = "",
     .refusal = ":1: the file has one price a row and no open, high and low"},
    {.file = "dbn/brent-ohlcv-1h.v3.dbn.zst", .set = "",
     .bars = 4, .first_s = 1705539600, .last_s = 1705550400, .interval_s = 3600, .label = "open",
     .first = {77.61, 77.88, 77.6, 77.68, 2926}, .last = {77.59, 77.7, 77.58, 77.66, 448}, .steps = -1,
     .warnings = ""},
    {.file = "dbn/dbeq-ohlcv-1m.v1.dbn.zst", .set = "",
     .bars = 4, .first_s = 1680003900, .last_s = 1680004740, .interval_s = 60, .label = "open",
     .first = {308.56, 308.56, 308.56, 308.56, 400}, .last = {308.53, 308.53, 308.53, 308.53, 100}, .steps = -1,
     .warnings = "gaps=3"},
    {.file = "dbn/es-live-mixed-schema.v3.dbn.zst", .set = "",
     .refusal = "the file has bars of several sizes (1s 1m )"},
    {.file = "dbn/es-nq-ohlcv-1m-two-instruments.v1.dbn.zst", .set = "",
     .refusal = "the file has several instruments"},
    {.file = "dbn/es-ohlcv-1d.v1.dbn.zst", .set = "",
     .bars = 1, .first_s = 1609113600, .last_s = 1609113600, .interval_s = 86400, .label = "open",
     .first = {3702.75, 3735, 3697.25, 3735, 718174}, .last = {3702.75, 3735, 3697.25, 3735, 718174}, .steps = -1,
     .warnings = ""},
    {.file = "dbn/es-ohlcv-1d.v2.dbn.zst", .set = "",
     .bars = 1, .first_s = 1609113600, .last_s = 1609113600, .interval_s = 86400, .label = "open",
     .first = {3702.75, 3735, 3697.25, 3735, 718174}, .last = {3702.75, 3735, 3697.25, 3735, 718174}, .steps = -1,
     .warnings = ""},
    {.file = "dbn/es-ohlcv-1d.v3.dbn.zst", .set = "",
     .bars = 1, .first_s = 1609113600, .last_s = 1609113600, .interval_s = 86400, .label = "open",
     .first = {3702.75, 3735, 3697.25, 3735, 718174}, .last = {3702.75, 3735, 3697.25, 3735, 718174}, .steps = -1,
     .warnings = ""},
    {.file = "dbn/es-ohlcv-1h.v1.dbn.zst", .set = "",
     .bars = 4, .first_s = 1609113600, .last_s = 1609124400, .interval_s = 3600, .label = "open",
     .first = {3702.75, 3707, 3697.25, 3705.75, 11891}, .last = {3715.25, 3719.75, 3715, 3717.75, 8651}, .steps = -1,
     .warnings = ""},
    {.file = "dbn/es-ohlcv-1h.v2.dbn.zst", .set = "",
     .bars = 4, .first_s = 1609113600, .last_s = 1609124400, .interval_s = 3600, .label = "open",
     .first = {3702.75, 3707, 3697.25, 3705.75, 11891}, .last = {3715.25, 3719.75, 3715, 3717.75, 8651}, .steps = -1,
     .warnings = ""},
    {.file = "dbn/es-ohlcv-1h.v3.dbn.zst", .set = "",
     .bars = 4, .first_s = 1609113600, .last_s = 1609124400, .interval_s = 3600, .label = "open",
     .first = {3702.75, 3707, 3697.25, 3705.75, 11891}, .last = {3715.25, 3719.75, 3715, 3717.75, 8651}, .steps = -1,
     .warnings = ""},
    {.file = "dbn/es-ohlcv-1m-2026-01-09.v1.dbn.zst", .set = "",
     .bars = 10, .first_s = 1767992100, .last_s = 1767992640, .interval_s = 60, .label = "open",
     .first = {7009.75, 7010, 7007.5, 7008, 6784}, .last = {7004.75, 7004.75, 7003.75, 7004, 1655}, .steps = -1,
     .warnings = ""},
    {.file = "dbn/es-ohlcv-1m-rtype-0x11.v1.dbn.zst", .set = "",
     .bars = 2, .first_s = 1609160400, .last_s = 1609160460, .interval_s = 60, .label = "open",
     .first = {3720.25, 3721.5, 3720.25, 3721, 353}, .last = {3721, 3721.5, 3721, 3721.5, 152}, .steps = -1,
     .warnings = ""},
    {.file = "dbn/es-ohlcv-1m.v1.dbn.zst", .set = "",
     .bars = 4, .first_s = 1609113600, .last_s = 1609113780, .interval_s = 60, .label = "open",
     .first = {3702.75, 3704.75, 3702.5, 3704.75, 306}, .last = {3704.5, 3704.5, 3703, 3703, 158}, .steps = -1,
     .warnings = ""},
    {.file = "dbn/es-ohlcv-1m.v2.dbn.zst", .set = "",
     .bars = 4, .first_s = 1609113600, .last_s = 1609113780, .interval_s = 60, .label = "open",
     .first = {3702.75, 3704.75, 3702.5, 3704.75, 306}, .last = {3704.5, 3704.5, 3703, 3703, 158}, .steps = -1,
     .warnings = ""},
    {.file = "dbn/es-ohlcv-1m.v3.dbn", .set = "",
     .bars = 4, .first_s = 1609113600, .last_s = 1609113780, .interval_s = 60, .label = "open",
     .first = {3702.75, 3704.75, 3702.5, 3704.75, 306}, .last = {3704.5, 3704.5, 3703, 3703, 158}, .steps = -1,
     .warnings = ""},
    {.file = "dbn/es-ohlcv-1m.v3.dbn.zst", .set = "",
     .bars = 4, .first_s = 1609113600, .last_s = 1609113780, .interval_s = 60, .label = "open",
     .first = {3702.75, 3704.75, 3702.5, 3704.75, 306}, .last = {3704.5, 3704.5, 3703, 3703, 158}, .steps = -1,
     .warnings = ""},
    {.file = "dbn/es-ohlcv-1s.v1.dbn.zst", .set = "",
     .bars = 4, .first_s = 1609113600, .last_s = 1609113607, .interval_s = 1, .label = "open",
     .first = {3702.75, 3702.75, 3702.5, 3702.5, 13}, .last = {3702.5, 3702.5, 3702.5, 3702.5, 3}, .steps = -1,
     .warnings = "gaps=1"},
    {.file = "dbn/es-ohlcv-1s.v3.dbn.zst", .set = "",
     .bars = 4, .first_s = 1609113600, .last_s = 1609113607, .interval_s = 1, .label = "open",
     .first = {3702.75, 3702.75, 3702.5, 3702.5, 13}, .last = {3702.5, 3702.5, 3702.5, 3702.5, 3}, .steps = -1,
     .warnings = "gaps=1"},
    {.file = "dbn/es-x100-ohlcv-1d.v2.dbn", .set = "",
     .refusal = "the DBN file is whole but has no bars"},
    {.file = "dbn/es-x100-ohlcv-1h.v2.dbn", .set = "",
     .bars = 2, .first_s = 1609160400, .last_s = 1609164000, .interval_s = 3600, .label = "open",
     .first = {372025, 372350, 372025, 372225, 9385}, .last = {372225, 372450, 371600, 371950, 112698}, .steps = -1,
     .warnings = ""},
    {.file = "dbn/es-x100-ohlcv-1m.v1.dbn", .set = "",
     .bars = 2, .first_s = 1609160400, .last_s = 1609160460, .interval_s = 60, .label = "open",
     .first = {372025, 372150, 372025, 372100, 353}, .last = {372100, 372150, 372100, 372150, 152}, .steps = -1,
     .warnings = ""},
    {.file = "dbn/es-x100-ohlcv-1m.v2.dbn", .set = "",
     .bars = 2, .first_s = 1609160400, .last_s = 1609160460, .interval_s = 60, .label = "open",
     .first = {372025, 372150, 372025, 372100, 353}, .last = {372100, 372150, 372100, 372150, 152}, .steps = -1,
     .warnings = ""},
    {.file = "dbn/es-x100-ohlcv-1s.v2.dbn", .set = "",
     .bars = 2, .first_s = 1609160400, .last_s = 1609160401, .interval_s = 1, .label = "open",
     .first = {372025, 372050, 372025, 372050, 57}, .last = {372050, 372050, 372050, 372050, 13}, .steps = -1,
     .warnings = ""},
    {.file = "dbn/headerless-definition.v3.dbn.frag", .set = "",
     .refusal = "is a fragment of DBN records without the header that says what they ar"},
    {.file = "dbn/legacy-dbz-named-ohlcv-1m.dbn.zst", .set = "",
     .refusal = "is a Databento DBZ file, the format before DBN"},
    {.file = "dbn/legacy-ohlcv-1m.dbz", .set = "",
     .refusal = "is a Databento DBZ file, the format before DBN"},
    {.file = "dbn/non-ohlcv-definition.v3.dbn.zst", .set = "",
     .refusal = "the DBN file holds definition records, not bars"},
    {.file = "dbn/non-ohlcv-mbo.v3.dbn", .set = "",
     .refusal = "the DBN file holds mbo records, not bars"},
    {.file = "dbn/non-ohlcv-mbp-1.v2.dbn.zst", .set = "",
     .refusal = "the DBN file holds mbp-1 records, not bars"},
    {.file = "dbn/non-ohlcv-trades.v1.dbn.zst", .set = "",
     .refusal = "the DBN file holds trades records, not bars"},
    {.file = "dbn/non-ohlcv-trades.v3.dbn.zst", .set = "",
     .refusal = "the DBN file holds trades records, not bars"},
    {.file = "dbn/opra-ohlcv-1m-same-timestamp.v3.dbn.zst", .set = "",
     .refusal = ":2: the same time as line 1 with other values"},
    {.file = "medium/btcusd-1h-coinbase-2017-2019.csv.gz", .set = "sort=true",
     .bars = 20111, .first_s = 1498906800, .last_s = 1571302800, .interval_s = 3600, .label = "?",
     .first = {2505.56, 2513.38, 2495.12, 2509.17, 114.6}, .last = {8051, 8056.83, 8021.23, 8035.88, 61.25}, .steps = -1,
     .warnings = "out_of_order=5 zero_volume=28 spikes=2"},
    {.file = "dialects/btc-eth-1d-wide-multi-asset.csv", .set = "symbol=BTC",
     .bars = 1862, .first_s = 1417392000, .last_s = 1579219200, .interval_s = 86400, .label = "?",
     .first = {300, 370, 300, 370, 0.05656}, .last = {8714.76, 8727.57, 8665.67, 8693.43, 421.38}, .steps = -1,
     .warnings = "zero_volume=38 spikes=1 jumps=2 holes=1"},
    {.file = "dialects/btc-eth-1d-wide-multi-asset.csv", .set = "symbol=ETH",
     .bars = 1319, .first_s = 1464307200, .last_s = 1579219200, .interval_s = 86400, .label = "?",
     .first = {11.98, 11.98, 10.25, 11.25, 13749.03}, .last = {163.93, 164.87, 162.01, 163.95, 3541.26}, .steps = -1,
     .warnings = "empty_rows=543 zero_volume=2 holes=1"},
    {.file = "dialects/es-1m-20131218-lean-multi-contract.zip", .set = "symbol=_201312",
     .bars = 1138, .first_s = 1387324800, .last_s = 1387411140, .interval_s = 60, .label = "?",
     .first = {1780.25, 1780.25, 1780, 1780, 24}, .last = {1811, 1811.25, 1811, 1811.25, 3}, .steps = -1,
     .warnings = "spikes=1 gaps=133"},
    {.file = "dialects/es-1m-20131218-lean-multi-contract.zip", .set = "symbol=_201403",
     .bars = 1348, .first_s = 1387324800, .last_s = 1387411140, .interval_s = 60, .label = "?",
     .first = {1773.75, 1773.75, 1773.5, 1773.75, 94}, .last = {1805, 1805, 1804.75, 1805, 56}, .steps = -1,
     .warnings = "spikes=1 gaps=30"},
    {.file = "dialects/es-1m-20131218-lean-multi-contract.zip", .set = "symbol=_201406",
     .bars = 154, .first_s = 1387325160, .last_s = 1387411080, .interval_s = 60, .label = "?",
     .first = {1767, 1767, 1767, 1767, 1}, .last = {1798, 1798, 1798, 1798, 5}, .steps = -1,
     .warnings = "gaps=73"},
    {.file = "dialects/es-1m-20131218-lean-multi-contract.zip", .set = "symbol=_201409",
     .refusal = ":1: the stamps have no regular step: these are ticks or irregular bars"},
    {.file = "dialects/es-1m-20131218-lean-multi-contract.zip", .set = "symbol=_201412",
     .refusal = ":1: the stamps have no regular step: these are ticks or irregular bars"},
    {.file = "dirt/wti-spot-1d-close-only.csv", .set = "close_only=true",
     .bars = 10226, .first_s = 505008000, .last_s = 1787011200, .interval_s = 86400, .label = "?",
     .first = {25.56, 25.56, 25.56, 25.56, 0}, .last = {86.48, 86.48, 86.48, 86.48, 0}, .steps = -1,
     .warnings = "non_positive=1 spikes=1 jumps=4"},
    {.file = "dbn/es-nq-ohlcv-1m-two-instruments.v1.dbn.zst", .set = "symbol=ESU4",
     .bars = 30, .first_s = 1719877200, .last_s = 1719878940, .interval_s = 60, .label = "open",
     .first = {5527.25, 5527.5, 5527, 5527.5, 180}, .last = {5528.5, 5528.75, 5528.5, 5528.5, 60}, .steps = -1,
     .warnings = ""},
    {.file = "dbn/es-nq-ohlcv-1m-two-instruments.v1.dbn.zst", .set = "symbol=NQU4",
     .bars = 30, .first_s = 1719877200, .last_s = 1719878940, .interval_s = 60, .label = "open",
     .first = {20014.25, 20016.25, 20013.5, 20016.25, 35}, .last = {20017.5, 20019.25, 20015.5, 20016.25, 69}, .steps = -1,
     .warnings = ""},
    {.file = "dbn/opra-ohlcv-1m-same-timestamp.v3.dbn.zst", .set = "duplicates=merge",
     .bars = 1, .first_s = 1740061800, .last_s = 1740061800, .interval_s = 60, .label = "open",
     .first = {0.25, 0.38, 0.19, 0.35, 189}, .last = {0.25, 0.38, 0.19, 0.35, 189}, .steps = -1,
     .warnings = "conflicting_rows=3"},
    {.file = "dbn/es-live-mixed-schema.v3.dbn.zst", .set = "bar=1m sort=true",
     .bars = 2, .first_s = 1700510400, .last_s = 1700510460, .interval_s = 60, .label = "open",
     .first = {4756, 4756, 4756, 4756, 2}, .last = {4756, 4756, 4756, 4756, 1}, .steps = -1,
     .warnings = ""},
    {.file = "dbn/es-live-mixed-schema.v3.dbn.zst", .set = "bar=1s sort=true",
     .bars = 2, .first_s = 1700510417, .last_s = 1700510495, .interval_s = 1, .label = "open",
     .first = {4756, 4756, 4756, 4756, 2}, .last = {4756, 4756, 4756, 4756, 1}, .steps = -1,
     .warnings = "gaps=1"},
};
/* clang-format on */

static void check_row(const expected *want)
{
    char path[512], warnings[512] = "";
    (void)snprintf(path, sizeof path, "%s/data/%s", HO_SHARED_DIR, want->file);
    loaded l = load_file(path, want->set);
    if (want->refusal) {
        assert_int_not_equal(l.rc, HO_OK);
        CHECK_CONTAINS(l.err.text, want->refusal);
        return;
    }
    if (l.rc != HO_OK) {
        fail_msg("%s", l.err.text);
    }
    if (l.bars.count != want->bars) {
        fail_msg("%s: %lld bars, want %lld", want->file, (long long)l.bars.count,
                 (long long)want->bars);
    }
    int64_t last = l.bars.count - 1;
    CHECK_NEAR(open_s(&l, 0), (double)want->first_s, 0.0);
    CHECK_NEAR(open_s(&l, last), (double)want->last_s, 0.0);
    CHECK_NEAR((double)l.bars.interval_ns / 1e9, want->interval_s, 0.0);
    for (int k = 0; k < 5; ++k) {
        CHECK_NEAR(l.bars.ohlcv[k], want->first[k], 0.0);
        CHECK_NEAR(l.bars.ohlcv[5 * last + k], want->last[k], 0.0);
    }
    assert_string_equal(l.report.label_assumed ? "?" : l.report.label, want->label);
    if (want->steps >= 0) {
        assert_int_equal(found(&l, HO_DIRT_GAP) + found(&l, HO_DIRT_CLOSURE) +
                             found(&l, HO_DIRT_HOLE),
                         want->steps);
    }
    for (int kind = 0; kind < HO_DIRT_COUNT; ++kind) {
        if (ho_dirt_is_warning((ho_dirt)kind) && found(&l, (ho_dirt)kind)) {
            size_t used = strlen(warnings);
            (void)snprintf(warnings + used, sizeof warnings - used, "%s%s=%lld", used ? " " : "",
                           ho_dirt_name((ho_dirt)kind), (long long)found(&l, (ho_dirt)kind));
        }
    }
    if (strcmp(warnings, want->warnings) != 0) {
        fail_msg("%s: warnings \"%s\", want \"%s\"", want->file, warnings, want->warnings);
    }
    for (int64_t t = 1; t < l.bars.count; ++t) { /* the invariants of bars.h */
        assert_true(l.bars.open_ns[t] > l.bars.open_ns[t - 1]);
        assert_true(l.bars.session[t] >= l.bars.session[t - 1]);
    }
    loaded_free(&l);
}

static void every_shared_file_loads_or_is_refused_as_described(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; ++i) {
        check_row(&table[i]);
    }
}

static void known_dirt_is_found_where_it_is(void **state)
{
    (void)state;
    static const int64_t contradictions[] = {159, 200, 266, 328, 374};
    static const int64_t duplicates[] = {501, 998, 2498, 2998, 3994};
    loaded wti = load_file(HO_SHARED_DIR "/data/dirt/wti-cl-1d-negative-price.csv", "");
    loaded btc = load_file(HO_SHARED_DIR "/data/dirt/btc-1h-ninjabot-duplicates-oclh.csv", "");
    CHECK_OK(wti.rc, &wti.err);
    CHECK_OK(btc.rc, &btc.err);
    for (int i = 0; i < 5; ++i) {
        assert_int_equal(wti.report.finding[HO_DIRT_CONTRADICTION].place[i].line,
                         contradictions[i]);
        assert_int_equal(btc.report.finding[HO_DIRT_DUPLICATE].place[i].line, duplicates[i]);
    }
    assert_int_equal(wti.report.finding[HO_DIRT_NON_POSITIVE].place[0].line, 4933);
    assert_int_equal(wti.report.finding[HO_DIRT_NON_POSITIVE].place[1].line, 4934);
    loaded_free(&wti);
    loaded_free(&btc);
}

int main(void)
{
    struct stat status;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shared_file_loads_or_is_refused_as_described),
        cmocka_unit_test(known_dirt_is_found_where_it_is),
    };
    if (stat(HO_SHARED_DIR "/data", &status) != 0) {
        (void)fprintf(stderr, "skipped: no folder %s/data\n", HO_SHARED_DIR);
        return HO_TEST_SKIPPED;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
