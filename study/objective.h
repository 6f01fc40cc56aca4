/* SPDX-License-Identifier: Apache-2.0
 * From the windows that a trial was scored on to its objective values and constraints.
 *
 * Windows are (fold, seed). "stitched" takes a seed's test windows as one series, in the order of
 * folds; the other aggregates take one metric value per fold. Either way the objective is the mean
 * over seeds, and a constraint is that of the worst seed on the stitched series. A value that is
 * undefined anywhere makes the result undefined (NaN, with the first reason): it ranks last. */
#ifndef HO_STUDY_OBJECTIVE_H
#define HO_STUDY_OBJECTIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/backend.h"
#include "kernels/metrics/metric_table.h"
#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_objective {
    char name[64];
    int metric;    /* ho_metric; -1: a value that [command] reports under this name */
    int direction; /* +1 more is better, -1 less is better */
} ho_objective;

typedef enum ho_compare { HO_AT_LEAST, HO_MORE_THAN, HO_AT_MOST, HO_LESS_THAN } ho_compare;

/* "max_drawdown >= -0.25" */
typedef struct ho_constraint {
    char text[96];
    int metric; /* ho_metric */
    ho_compare compare;
    double bound;
} ho_constraint;

typedef enum ho_aggregate {
    HO_AGGREGATE_STITCHED,
    HO_AGGREGATE_MEAN,
    HO_AGGREGATE_MEDIAN,
    HO_AGGREGATE_MIN,            /* the worst fold */
    HO_AGGREGATE_MEAN_MINUS_STD, /* ddof 1, against the better direction */
} ho_aggregate;

/* HO_EINVAL: no such metric (err names the nearest), or one without a better direction. */
ho_status ho_objective_parse(const char *name, ho_objective *out, ho_err *err);

/* HO_EINVAL: not METRIC >=|>|<=|< NUMBER, no such metric, a constraint that no value can violate or
 * none can satisfy. */
ho_status ho_constraint_parse(const char *text, ho_constraint *out, ho_err *err);

/* By how much a value violates it, in the metric's unit: 0 when it holds. An undefined value
 * violates every constraint, by infinity. A strict one is violated at its bound by the smallest
 * double. */
double ho_constraint_violation(const ho_constraint *constraint, double value);

/* -1: a is better, +1: b is better, 0: neither. NaN ranks behind every number. */
int ho_value_compare(int direction, double a, double b);

/* ---- from windows to values ----------------------------------------------------------------- */

typedef struct ho_stitch_input {
    const ho_backtest_result *const *window; /* [count] test windows of one seed, in time order */
    int count;
    double sessions_per_year;
    double years;      /* calendar time of all windows; 0: unknown, CAGR is then undefined */
    double multiplier; /* of the instrument, for returns on notional */
} ho_stitch_input;

/* Joins windows to one series that compounds from the first window's capital: a session cut by a
 * fold's border is one session, a ruined window ends the series, trades and costs add up. Metrics
 * of bars and of trades need bar_return and trades in every window. Without bar_return drawdowns
 * are those of the sessions or of the worst window, their lengths those of the longest, and
 * bar_sharpe is undefined; without trades profit_factor, payoff, expectancy and sqn are.
 * total_pnl is the sum of the windows' own, as trades and costs are. Fills metrics, sums and the
 * joined session_return (and session_id when every window has it); free the result as any.
 * HO_EINVAL: no window, or one without session_return. */
ho_status ho_stitch(const ho_stitch_input *in, ho_backtest_result *out, ho_err *err);

/* One value from one per fold: the mean, the median, the worst, or the mean less a deviation of
 * ddof 1 against the better direction (0 with one fold). For STITCHED, n is 1. A NaN makes it NaN.
 * n in 1 .. HO_FOLDS_MAX. */
double ho_aggregate_folds(ho_aggregate how, const double *value, int n, int direction);

#ifdef __cplusplus
}
#endif
#endif
