/* SPDX-License-Identifier: Apache-2.0
 * Metric formulas and the host entry that fills a ho_metric_set. Definitions, conventions and
 * worked values: spec/metrics.md section 1. Float64, sums in a fixed order. An undefined value is
 * NaN with a reason, never 0 or infinity. */
#ifndef HO_KERNELS_METRICS_METRICS_H
#define HO_KERNELS_METRICS_METRICS_H

#include <math.h>
#include <stdint.h>

#include "kernels/hd.h"
#include "kernels/metrics/bar_stats.h"
#include "kernels/metrics/metric_table.h"
#include "kernels/metrics/moments.h"
#include "kernels/metrics/trade_stats.h"
#include "kernels/trade.h"
#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- formulas on series without NaN ---------------------------------------------------------- */

/* No variation beyond rounding: 250 x 0.001 has a deviation of 6.5e-19, not a Sharpe of 1e16. */
static inline HO_HD int ho_is_flat(const ho_moments *m, double min, double max)
{
    double scale = fabs(m->mean) > 1e-300 ? fabs(m->mean) : 1e-300;
    return min == max || ho_moments_deviation(m) <= 1e-12 * scale;
}

/* sqrt(sum of min(r - target, 0)^2 / n), n of all returns */
static inline HO_HD double ho_downside_deviation(const double *r, int64_t n, double target)
{
    ho_sum square = {0.0, 0.0};
    for (int64_t i = 0; i < n; i++) {
        double below = r[i] - target;
        if (below < 0.0) {
            ho_sum_add(&square, below * below);
        }
    }
    return sqrt(ho_sum_value(&square) / (double)n);
}

/* Quantile type 7 (linear between order statistics) of an ascending series, n >= 1. */
static inline HO_HD double ho_quantile7(const double *sorted, int64_t n, double alpha)
{
    double place = (double)(n - 1) * alpha;
    int64_t below = (int64_t)floor(place);
    int64_t above = below + 1 < n ? below + 1 : below;
    return sorted[below] + (place - (double)below) * (sorted[above] - sorted[below]);
}

/* Mean of the worst alpha share, the boundary value with the part of its weight that belongs
 * (Rockafellar and Uryasev 2002), of an ascending series, n >= 1. */
static inline HO_HD double ho_cvar(const double *sorted, int64_t n, double alpha)
{
    double weight = (double)n * alpha;
    int64_t whole = (int64_t)floor(weight + 1e-9);
    ho_sum sum = {0.0, 0.0};
    if (weight < 1.0) {
        return sorted[0];
    }
    for (int64_t i = 0; i < whole; i++) {
        ho_sum_add(&sum, sorted[i]);
    }
    if (whole < n && weight > (double)whole) {
        ho_sum_add(&sum, (weight - (double)whole) * sorted[whole]);
    }
    return ho_sum_value(&sum) / weight;
}

/* (1 + annual)^(1 / periods) - 1 */
static inline HO_HD double ho_rate_per_period(double annual, double periods_per_year)
{
    return pow(1.0 + annual, 1.0 / periods_per_year) - 1.0;
}

/* Kelly's fraction of a bet that wins `win` with probability p and loses `loss` otherwise, both as
 * fractions of the stake: p / loss - (1 - p) / win; with loss 1 the classic p - q / b. */
static inline HO_HD double ho_kelly_two_outcomes(double p, double win, double loss)
{
    return p / loss - (1.0 - p) / win;
}

/* ---- host entry ------------------------------------------------------------------------------ */

typedef struct ho_metrics_input {
    double initial_capital;   /* > 0 */
    const ho_bar_stats *bars; /* of the whole pass */
    const double *sessions;   /* [session_count] simple returns; NaN is dropped and flagged */
    int64_t session_count;
    double sessions_per_year;
    double years;           /* calendar, first open to last close; 0: unknown */
    double risk_free;       /* a year; Sharpe */
    double target;          /* minimum acceptable return a session; Sortino */
    const ho_trade *trades; /* [trade_count] */
    int64_t trade_count;
    const ho_trade_stats *trade_stats; /* of the trade_count trades, when they were not kept; NULL:
                                          summed from `trades` */
    double multiplier; /* money per price unit per unit, for returns on entry notional */
    double traded;     /* notional of all fills, money */
    int64_t ambiguous_bars;
    int has_trades;    /* 0: a bare series; everything about trades and positions is undefined */
    int open_position; /* at the last bar, before the forced exit */
    int ruined;        /* equity reached zero: the series ends there */
} ho_metrics_input;

ho_metrics_input ho_metrics_input_defaults(void);

/* Fills every value, reason and flag. HO_ENOMEM. */
ho_status ho_metrics_compute(const ho_metrics_input *in, ho_metric_set *out);

#ifdef __cplusplus
}
#endif
#endif
