/* SPDX-License-Identifier: Apache-2.0
 * What the metrics need from the bars of one pass, kept while it runs: drawdowns, the moments of
 * the bars' returns, time in and out of the market. A few words of state per pass, so that a
 * kernel carries it along instead of storing every bar. spec/metrics.md 1.5. */
#ifndef HO_KERNELS_METRICS_BAR_STATS_H
#define HO_KERNELS_METRICS_BAR_STATS_H

#include <math.h>
#include <stdint.h>

#include "kernels/hd.h"
#include "kernels/metrics/moments.h"

/* Indices count equity values: 0 is the initial capital, i the close of the i-th bar. A drawdown
 * runs from its peak (the last bar at the running maximum) over its trough to the first bar back
 * at the peak; reaching the peak is recovery. */
typedef struct ho_drawdown {
    double depth; /* E / peak - 1 at the trough, <= 0; below -1 for negative equity */
    int64_t peak, trough;
    int64_t recovery; /* -1: not recovered */
} ho_drawdown;

typedef struct ho_bar_stats {
    int64_t bars;
    double equity; /* last */
    double peak;   /* running maximum */
    int64_t peak_index;
    ho_drawdown deepest; /* depth 0: none */
    int64_t longest;     /* bars from a peak to recovery, of those recovered */
    double deepest_cash; /* largest fall from a peak, money */
    ho_moments ret;
    double ret_min, ret_max;
    int64_t nan_count; /* bars whose return is NaN: left out, equity carried */
    int64_t held;      /* bars with a position at their close */
    int64_t flat_run, longest_flat;
} ho_bar_stats;

static inline HO_HD void ho_bar_stats_begin(ho_bar_stats *s, double initial_capital)
{
    s->bars = 0;
    s->equity = s->peak = initial_capital;
    s->peak_index = 0;
    s->deepest.depth = 0.0;
    s->deepest.peak = s->deepest.trough = 0;
    s->deepest.recovery = -1;
    s->longest = 0;
    s->deepest_cash = 0.0;
    s->ret.n = 0;
    s->ret.mean = s->ret.m2 = 0.0;
    s->ret_min = s->ret_max = 0.0;
    s->nan_count = 0;
    s->held = s->flat_run = s->longest_flat = 0;
}

static inline HO_HD void ho_bar_stats_drawdown(ho_bar_stats *s, double equity)
{
    int64_t i = s->bars;
    if (equity >= s->peak) {
        if (i - s->peak_index > 1) { /* there was at least one bar below */
            if (s->deepest.peak == s->peak_index && s->deepest.depth < 0.0) {
                s->deepest.recovery = i;
            }
            s->longest = i - s->peak_index > s->longest ? i - s->peak_index : s->longest;
        }
        s->peak = equity;
        s->peak_index = i;
        return;
    }
    double cash = s->peak - equity;
    s->deepest_cash = cash > s->deepest_cash ? cash : s->deepest_cash;
    if (cash < -s->deepest.depth * s->peak * (1.0 - 1e-9)) {
        return; /* surely not deeper: spares the division */
    }
    double depth = equity / s->peak - 1.0;
    if (depth < s->deepest.depth) {
        s->deepest.depth = depth;
        s->deepest.peak = s->peak_index;
        s->deepest.trough = i;
        s->deepest.recovery = -1;
    }
}

/* One bar: the equity at its close, its return, whether a position was held at its close. */
static inline HO_HD void ho_bar_stats_add(ho_bar_stats *s, double equity, double ret, int32_t held)
{
    s->bars++;
    if (isnan(ret)) {
        s->nan_count++;
        equity = s->equity;
    } else {
        ho_moments_add(&s->ret, ret);
        s->ret_min = s->ret.n == 1 || ret < s->ret_min ? ret : s->ret_min;
        s->ret_max = s->ret.n == 1 || ret > s->ret_max ? ret : s->ret_max;
    }
    s->equity = equity;
    ho_bar_stats_drawdown(s, equity);
    s->held += held;
    s->flat_run = held ? 0 : s->flat_run + 1;
    s->longest_flat = s->flat_run > s->longest_flat ? s->flat_run : s->longest_flat;
}

/* Bars from the deepest drawdown's peak to its recovery, or to the last bar. */
static inline HO_HD int64_t ho_drawdown_duration(const ho_bar_stats *s)
{
    int64_t end = s->deepest.recovery >= 0 ? s->deepest.recovery : s->bars;
    return s->deepest.depth < 0.0 ? end - s->deepest.peak : 0;
}

static inline HO_HD int64_t ho_drawdown_recovery(const ho_bar_stats *s)
{
    int64_t end = s->deepest.recovery >= 0 ? s->deepest.recovery : s->bars;
    return s->deepest.depth < 0.0 ? end - s->deepest.trough : 0;
}

/* Longest drawdown, the one under way included. */
static inline HO_HD int64_t ho_drawdown_longest(const ho_bar_stats *s)
{
    int64_t open = s->equity < s->peak ? s->bars - s->peak_index : 0;
    return open > s->longest ? open : s->longest;
}

#endif
