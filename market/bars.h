/* SPDX-License-Identifier: Apache-2.0
 * Bars of one instrument in memory, as every reader delivers them and features and kernels take
 * them. Invariants of a loaded ho_bars: open_ns strictly ascending; every OHLC finite; session
 * non-decreasing. */
#ifndef HO_MARKET_BARS_H
#define HO_MARKET_BARS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Smallest normal double: adding it to a price or to money changes no bit, yet it is not 0, so a
 * back-adjusted roll pays its two fees and moves nothing. */
#define HO_ROLL_ADJUSTED 0x1p-1022

/* Facts of the instrument that a file may state; 0 where it does not. */
typedef struct ho_instrument {
    char symbol[72];
    double tick_size;
    double multiplier;
} ho_instrument;

/* What lies between a bar and the one before it. */
typedef enum ho_gap_kind {
    HO_GAP_NONE,
    HO_GAP_CLOSURE, /* night, weekend, break */
    HO_GAP_MISSING, /* bars absent inside a session */
    HO_GAP_HOLE,    /* longer than data.max_gap */
} ho_gap_kind;

typedef struct ho_bars {
    int64_t count;     /* T */
    int64_t *open_ns;  /* [T] UTC nanoseconds since 1970, start of the interval */
    double *ohlcv;     /* [T, 5] open, high, low, close, volume */
    int32_t *session;  /* [T] trading-day index from 0 */
    double *roll_jump; /* [T] price jump on entering bar t, 0 where no roll; NULL without rolls.
                        * HO_ROLL_ADJUSTED: a roll whose jump is already out of the prices */
    uint8_t *split;    /* [T] 1: nothing may cross from t-1 to t; NULL without splits */
    uint8_t *gap;      /* [T] ho_gap_kind between t-1 and t; NULL where there is none */
    double *funding;   /* [T] rate on notional at the close of t; NULL without */
    int extra_count;   /* the user's own columns (features.extra) */
    char (*extra_name)[64];
    double *extra;       /* [T, extra_count] */
    int64_t interval_ns; /* nominal bar length */
    bool has_volume;
    double sessions_per_year; /* 252, or 365 round the clock */
    char timezone[64];        /* IANA name of the session calendar */
    char sha256[65];          /* of the file's bytes, hex (files concatenated: of their hashes) */
    char settings[65];        /* hash of the [data] settings that shaped these bars */
    ho_instrument instrument;
} ho_bars;

/* Frees the arrays and clears the struct. Accepts NULL and half-built bars. */
void ho_bars_free(ho_bars *bars);

#ifdef __cplusplus
}
#endif
#endif
