/* SPDX-License-Identifier: Apache-2.0
 * Rows of the settings table: market data, instrument, features, folds.
 * See settings_table.h for the columns. */
#ifndef HO_STUDY_SETTINGS_MARKET_H
#define HO_STUDY_SETTINGS_MARKET_H

#define HO_SETTINGS_DATA(X)                                                                        \
    X(DATA_PATH, "data.path", STRINGS, FIXED, PATH, 1, 4096, NONE, "", "",                         \
      "CSV of any known dialect, .dbn, .dbn.zst; a list is concatenated")                          \
    X(DATA_SYMBOL, "data.symbol", STRING, FIXED, 0, 0, 0, NONE, "", "",                            \
      "instrument to take from a file that holds several")                                         \
    X(DATA_START, "data.start", DATE, FIXED, 0, 0, 0, NONE, "", "",                                \
      "first day or moment used; absent: the file's first")                                        \
    X(DATA_END, "data.end", DATE, FIXED, 0, 0, 0, NONE, "", "",                                    \
      "last day or moment used, inclusive; absent: the file's last")                               \
    X(DATA_BAR, "data.bar", DURATION, FIXED, 0, 1, 31536000, NONE, "", "s",                        \
      "resample to bars of this length; absent: as in the file")                                   \
    X(DATA_PUBLISHER, "data.publisher", INT, FIXED, 0, 0, 65535, "0", "", "",                      \
      "DBN publisher to take; 0: any")                                                             \
    X(DATA_TIMEZONE, "data.timezone", STRING, FIXED, 0, 0, 0, NONE, "", "",                        \
      "IANA zone of stamps without one; absent: UTC")                                              \
    X(DATA_SESSION_TIMEZONE, "data.session_timezone", STRING, FIXED, 0, 0, 0, NONE, "", "",        \
      "IANA zone of the session calendar; absent: timezone, or the venue's")                       \
    X(DATA_SESSION_START, "data.session_start", STRING, FIXED, 0, 0, 0, NONE, "", "",              \
      "local time at which a trading day begins, e.g. \"17:00\"; absent: found from the gaps")     \
    X(DATA_SESSION_END, "data.session_end", STRING, FIXED, 0, 0, 0, NONE, "", "",                  \
      "local time at which it ends, e.g. \"16:00\"; bars outside are dropped")                     \
    X(DATA_LABEL, "data.label", CHOICE, FIXED, 0, 0, 0, "auto", "auto|open|close", "",             \
      "a bar's stamp is the time of its open or of its close")                                     \
    X(DATA_DST, "data.dst", CHOICE, FIXED, 0, 0, 0, "order", "order|first|second|refuse", "",      \
      "stamps in a repeated hour: by the order of rows, or always the first or second")            \
    X(DATA_DATE_ORDER, "data.date_order", CHOICE, FIXED, 0, 0, 0, "auto", "auto|ymd|dmy|mdy", "",  \
      "order of year, month and day in stamps")                                                    \
    X(DATA_EPOCH_UNIT, "data.epoch_unit", CHOICE, FIXED, 0, 0, 0, "auto", "auto|s|ms|us|ns", "",   \
      "unit of epoch stamps")                                                                      \
    X(DATA_SEPARATOR, "data.separator", STRING, FIXED, 0, 0, 0, NONE, "", "",                      \
      "column separator: \",\", \";\", \"|\" or \"tab\"; absent: found")                           \
    X(DATA_DECIMAL, "data.decimal", STRING, FIXED, 0, 0, 0, NONE, "", "",                          \
      "decimal mark: \".\" or \",\"; absent: found")                                               \
    X(DATA_HEADER, "data.header", CHOICE, FIXED, 0, 0, 0, "auto", "auto|yes|no", "",               \
      "whether the first row names the columns")                                                   \
    X(DATA_COLUMNS, "data.columns", STRING, FIXED, 0, 0, 0, NONE, "", "",                          \
      "columns by position, e.g. \"time,open,close,low,high,volume,-\"; \"-\" skips one")          \
    X(DATA_PRICE_SCALE, "data.price_scale", FLOAT, FIXED, AUTO, 1e-12, 1e12, "auto", "", "",       \
      "prices in the file are multiplied by this; auto: found for fixed-point dialects")           \
    X(DATA_VOLUME, "data.volume", CHOICE, FIXED, 0, 0, 0, "auto", "auto|base|quote|ticks|none",    \
      "", "what the volume column counts; auto: base, or ticks where base is empty")               \
    X(DATA_QUOTE, "data.quote", CHOICE, FIXED, 0, 0, 0, "mid", "mid|bid|ask", "",                  \
      "prices of a file with bid and ask")                                                         \
    X(DATA_ADJUSTED, "data.adjusted", BOOL, FIXED, 0, 0, 0, "false", "", "",                       \
      "use the adjusted prices (Adj Close)")                                                       \
    X(DATA_CLOSE_ONLY, "data.close_only", BOOL, FIXED, 0, 0, 0, "false", "", "",                   \
      "accept a file with one price a bar: open = high = low = close")                             \
    X(DATA_CONTRACT_COLUMN, "data.contract_column", STRING, FIXED, 0, 0, 0, NONE, "", "",          \
      "column that names the futures contract; a change of it is a roll")                          \
    X(DATA_FUNDING_COLUMN, "data.funding_column", STRING, FIXED, 0, 0, 0, NONE, "", "",            \
      "column with the funding rate on notional at a bar's close")                                 \
    X(DATA_SORT, "data.sort", BOOL, FIXED, 0, 0, 0, "false", "", "",                               \
      "put rows that are out of order into order")                                                 \
    X(DATA_DUPLICATES, "data.duplicates", CHOICE, FIXED, 0, 0, 0, "refuse",                        \
      "refuse|first|last|merge", "",                                                               \
      "rows of one stamp with other values (identical rows are dropped and counted)")              \
    X(DATA_EMPTY_ROWS, "data.empty_rows", CHOICE, FIXED, 0, 0, 0, "auto", "auto|refuse|drop|keep", \
      "", "rows without prices; auto: drop")                                                       \
    X(DATA_CONTRADICTIONS, "data.contradictions", CHOICE, FIXED, 0, 0, 0, "auto",                  \
      "auto|refuse|drop|keep", "",                                                                 \
      "high or low on the wrong side, negative volume; auto: keep, refuse above 5 % of the rows")  \
    X(DATA_NON_POSITIVE, "data.non_positive", CHOICE, FIXED, 0, 0, 0, "auto",                      \
      "auto|refuse|drop|keep", "", "prices at or below zero; auto: keep")                          \
    X(DATA_ZERO_VOLUME, "data.zero_volume", CHOICE, FIXED, 0, 0, 0, "auto",                        \
      "auto|refuse|drop|keep", "", "bars without volume; auto: keep, nothing fills in them")       \
    X(DATA_SPIKES, "data.spikes", CHOICE, FIXED, 0, 0, 0, "auto", "auto|refuse|drop|keep", "",     \
      "jumps that the next bar takes back; auto: keep")                                            \
    X(DATA_SPIKE_MAD, "data.spike_mad", FLOAT, FIXED, 0, 1, 1e9, "50", "", "deviations",           \
      "a spike is a return beyond this many median absolute deviations")                           \
    X(DATA_OFF_TICK, "data.off_tick", CHOICE, FIXED, 0, 0, 0, "auto", "auto|refuse|drop|keep", "", \
      "prices off the tick grid; auto: keep")                                                      \
    X(DATA_GAPS, "data.gaps", CHOICE, FIXED, 0, 0, 0, "keep", "keep|fill|split", "",               \
      "missing bars: keep as they are, fill flat, or let nothing cross them")                      \
    X(DATA_MAX_GAP, "data.max_gap", DURATION, FIXED, AUTO, 1, 3e8, "auto", "", "s",                \
      "longer than this is a hole: never filled, split with gaps = \"split\"")                     \
    X(DATA_ADJUST, "data.adjust", CHOICE, FIXED, 0, 0, 0, "none", "none|back|ratio", "",           \
      "continuous futures: how prices before a roll are adjusted")                                 \
    X(DATA_ROLLS, "data.rolls", STRINGS, FIXED, 0, 0, 4096, "", "", "",                            \
      "stamps of the first bar of each new contract; absent: found")

#define HO_SETTINGS_INSTRUMENT(X)                                                                  \
    X(INSTRUMENT_TICK_SIZE, "instrument.tick_size", FLOAT, FACT, 0, 0, 1e12, "0", "",              \
      "price units", "smallest price step; 0: none")                                               \
    X(INSTRUMENT_LOT, "instrument.lot", FLOAT, FACT, AUTO, 1e-12, 1e12, "auto", "", "units",       \
      "smallest quantity; auto: 1 if multiplier > 1, else a power of ten <= 1/100 of the largest " \
      "position")                                                                                  \
    X(INSTRUMENT_MULTIPLIER, "instrument.multiplier", FLOAT, FACT, 0, 1e-12, 1e12, "1", "",        \
      "money", "money per price unit and unit of position; 50 for ES")                             \
    X(INSTRUMENT_ALLOW_SHORT, "instrument.allow_short", BOOL, FACT, 0, 0, 0, "true", "", "",       \
      "short positions exist")                                                                     \
    X(INSTRUMENT_SESSIONS_PER_YEAR, "instrument.sessions_per_year", FLOAT, FACT, AUTO, 1, 366,     \
      "auto", "", "sessions", "for annual figures; auto: 252, or 365 round the clock")             \
    X(INSTRUMENT_FUNDING_BPS_PER_DAY, "instrument.funding_bps_per_day", FLOAT, FACT, 0, -1e4, 1e4, \
      "0", "", "bps", "paid by a long position a day, on its notional")

#define HO_SETTINGS_FEATURES(X)                                                                    \
    X(FEATURES_USE, "features.use", STRINGS, FIXED, 0, 0, 64, "", "", "",                          \
      "names of the features used; absent: all 51")                                                \
    X(FEATURES_EXTRA, "features.extra", STRINGS, FIXED, 0, 0, 64, "", "", "",                      \
      "the user's own columns of the file, used as features")                                      \
    X(FEATURES_EXTRA_DELAY, "features.extra_delay", INT, FIXED, 0, 0, 100000, "1", "", "bars",     \
      "bars by which extra columns are delayed; 0: as stamped, causality is your word")            \
    X(FEATURES_LONG_WINDOW, "features.long_window", INT, FIXED, AUTO, 60, 1000000, "auto", "",     \
      "bars", "longest rolling window; auto: 1440 for bars shorter than an hour, else 240")

#define HO_SETTINGS_FOLDS(X)                                                                       \
    X(FOLDS_SCHEME, "folds.scheme", CHOICE, FIXED, 0, 0, 0, "rolling", "rolling|anchored", "",     \
      "train windows move along, or all begin at the first bar")                                   \
    X(FOLDS_COUNT, "folds.count", INT, FIXED, 0, 1, 256, "4", "", "folds",                         \
      "walk-forward folds; the last test window ends where the holdout begins")                    \
    X(FOLDS_TEST, "folds.test", SPAN, FIXED, AUTO, 0, 0, "auto", "", "",                           \
      "test window: bars, days (\"20d\") or a share (\"5%\"); auto: usable / (count + 4)")         \
    X(FOLDS_TRAIN, "folds.train", SPAN, FIXED, AUTO, 0, 0, "auto", "", "",                         \
      "train window, validation included; auto: 4 x test")                                         \
    X(FOLDS_STEP, "folds.step", SPAN, FIXED, AUTO, 0, 0, "auto", "", "",                           \
      "distance of two folds; auto: test")                                                         \
    X(FOLDS_PURGE, "folds.purge", SPAN, FIXED, AUTO, 0, 0, "auto", "", "",                         \
      "gap between windows; auto: largest searchable max_holding + n_step")                        \
    X(FOLDS_VALIDATION, "folds.validation", SPAN, FIXED, 0, 0, 0, "15%", "", "",                   \
      "tail of each train window that only pruners and early stopping see; 0: none")               \
    X(FOLDS_HOLDOUT, "folds.holdout", SPAN, FIXED, 0, 0, 0, "15%", "", "",                         \
      "the data's end, never touched by run; 0: none")                                             \
    X(FOLDS_REFIT, "folds.refit", CHOICE, FIXED, 0, 0, 0, "per_fold", "per_fold|once", "",         \
      "an agent per fold, or one agent before the first test")                                     \
    X(FOLDS_PRUNE_ON_TEST, "folds.prune_on_test", BOOL, FIXED, 0, 0, 0, "false", "", "",           \
      "with validation = \"0\": prune on the test window; every report then says so")

#endif
