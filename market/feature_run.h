/* SPDX-License-Identifier: Apache-2.0
 * Private to features.c and feature_columns.c: what the column functions share while a tensor is
 * computed. Series are whole [T] arrays made once; columns are made block by block. */
#ifndef HO_MARKET_FEATURE_RUN_H
#define HO_MARKET_FEATURE_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "market/bars.h"
#include "market/features.h"
#include "market/zone.h"

enum { FEATURE_BLOCK = 4096, FEATURE_LEAD = 64, FEATURE_CARRY = 12 };

struct ho_feature_run {
    const ho_bars *bars;
    ho_zone *zone;
    int64_t W;
    int64_t first;      /* first bar of the present segment: nothing before it exists */
    const double *raw;  /* [T, 5] as in the bars */
    const double *diff; /* [T, 5] less the jumps of the rolls so far: for differences */
    double *diff_owned; /* diff's memory, or NULL when it is raw */
    double *jumped;     /* [T] sum of the jumps so far, or NULL without rolls */
    double *r;          /* [T] log return */
    double *mean60;     /* [T] of r */
    double *sd60;       /* [T] of r */
    double *sd_long;    /* [T] of r over W */
    double *atr;        /* [T] Wilder, 14 */
    double *range;      /* [T] log((h - l) / c), standing where it does not exist */
    double *atr_share;  /* [T] ATR / c, standing where c <= 0 */
    double *log_volume; /* [T] log(1 + v) */
    double *width;      /* [T] sd_20(c) / mean_20(c) */
    double *carry;      /* [FEATURE_CARRY] of the column being made; 0 at a segment's first block */
    double a[FEATURE_BLOCK + FEATURE_LEAD]; /* scratch of one column's block */
    double b[FEATURE_BLOCK + FEATURE_LEAD];
    double c[FEATURE_BLOCK + FEATURE_LEAD];
    double d[FEATURE_BLOCK + FEATURE_LEAD];
};

/* x / y, 0 where y is 0. */
static inline double ho_feature_ratio(double x, double y)
{
    return y != 0.0 ? x / y : 0.0;
}

ho_feature_fn ho_col_ret, ho_col_body, ho_col_wick, ho_col_range_z, ho_col_gap, ho_col_vol,
    ho_col_estimator, ho_col_atr, ho_col_rsi, ho_col_stoch_k, ho_col_stoch_d, ho_col_macd,
    ho_col_boll_pos, ho_col_boll_width, ho_col_ema, ho_col_cci, ho_col_adx, ho_col_high, ho_col_low,
    ho_col_drawdown, ho_col_autocorr, ho_col_skew, ho_col_kurt, ho_col_volume_z,
    ho_col_volume_trend, ho_col_vwap, ho_col_mfi, ho_col_time_of_day, ho_col_weekday;

#endif
