/* SPDX-License-Identifier: Apache-2.0
 * The portfolio columns of the state: p0..p8 of spec/environment.md, or p0..p2 in the original
 * scaling ("seed54"). Float64 inside, float32 out. */
#ifndef HO_KERNELS_ENV_PORTFOLIO_H
#define HO_KERNELS_ENV_PORTFOLIO_H

#include <math.h>
#include <stdint.h>

#include "kernels/env/diversity.h"
#include "kernels/env/lane.h"
#include "kernels/env/market_view.h"
#include "kernels/env/reward.h"
#include "kernels/env/state.h"
#include "kernels/hd.h"
#include "kernels/shapes.h"

#define HO_SQRT_60        7.745966692414834 /* p2 is in deviations of 60 bars */
#define HO_LOG2_3         1.584962500721156 /* largest entropy of three categories */
#define HO_PORTFOLIO_CLIP 5.0
#define HO_NO_LIMIT       1e300

static inline HO_HD int32_t ho_portfolio_width(int32_t state_form)
{
    return state_form == HO_STATE_FULL ? HO_PORTFOLIO_FEATURES : HO_SEED54_FEATURES;
}

/* A column as a quotient, so that a GPU can divide for all columns at once: the value is
 * clip(num / den, -limit, limit). */
typedef struct ho_ratio {
    double num, den;
} ho_ratio;

static inline HO_HD ho_ratio ho_ratio_of(double num, double den)
{
    ho_ratio r;
    r.num = num;
    r.den = den;
    return r;
}

static inline HO_HD double ho_portfolio_limit(int32_t state_form, int32_t column)
{
    if (state_form == HO_STATE_SEED54 || column == 1 || column == 6 || column == 7) {
        return HO_NO_LIMIT;
    }
    return column == 3 ? 1.0 : HO_PORTFOLIO_CLIP;
}

static inline HO_HD float ho_ratio_value(const ho_ratio *r, double limit)
{
    return (float)ho_clip(ho_quotient(r->num, r->den), -limit, limit);
}

/* One of the original three columns. */
static inline HO_HD ho_ratio ho_portfolio_seed54(const ho_env_lane *lane, const ho_env *e,
                                                 double close, int32_t column)
{
    const ho_env_config *c = &lane->config;
    const ho_account *a = &e->account;
    if (column == 0) {
        return ho_ratio_of(e->equity - c->initial_capital, c->initial_capital);
    }
    if (column == 1) {
        return ho_ratio_of((double)a->lots, (double)c->max_lots);
    }
    double open_pnl = (close - a->entry) * (double)a->lots * c->lot * c->multiplier;
    return e->equity > 0.0 ? ho_ratio_of(open_pnl, e->equity) : ho_ratio_of(0.0, 1.0);
}

/* Column [0, ho_portfolio_width) of the state at the close of e->t, as (x - from) * scale over
 * (y - less) * unit: selections instead of ways, so that a GPU's threads can take a column each.
 * Nothing is rounded where a term is left at 0 or 1. close, sigma: at e->t. */
static inline HO_HD ho_ratio ho_env_portfolio_ratio(const ho_env_lane *lane, const double *n_log2_n,
                                                    const ho_env *e, double close, double sigma,
                                                    int32_t column)
{
    const ho_env_config *c = &lane->config;
    const ho_account *a = &e->account;
    if (c->state_form == HO_STATE_SEED54) {
        return ho_portfolio_seed54(lane, e, close, column);
    }
    /* everything is read at once: none of the selections waits for its own */
    const double equity = e->equity, anchor = e->anchor, size = e->size, entry = a->entry;
    const double stop = a->stop, target = a->target, max_lots = (double)c->max_lots;
    const double equity_scale = lane->equity_scale, holding_scale = lane->holding_scale;
    const int32_t lots = a->lots, held = lots != 0, has = a->has, bars_held = e->t - a->opened;
    const double level = column == 4 ? stop : target;
    const int32_t barrier = column == 4 || column == 5;
    double x = column == 0   ? equity
               : column == 1 ? (double)lots
               : column == 3 ? (double)bars_held
               : column == 7 ? size
                             : close;
    double y = column == 0                  ? anchor
               : column == 1 || column == 7 ? max_lots
               : column == 2                ? fabs(entry)
               : barrier                    ? entry
                                            : 1.0;
    const double from = column == 0 ? anchor : column == 2 ? entry : barrier ? level : 0.0;
    const double less = barrier ? level : 0.0;
    const double scale = column == 0               ? equity_scale
                         : column == 3             ? holding_scale
                         : column == 2 && lots < 0 ? -1.0
                                                   : 1.0;
    double unit = column == 2 ? sigma * HO_SQRT_60 : 1.0;
    int32_t there =
        column == 2   ? held && entry != 0.0 && sigma > 0.0 /* else the column is 0 */
        : column == 3 ? held
        : barrier ? held && entry != level && (has & (column == 4 ? HO_HAS_STOP : HO_HAS_TARGET))
                  : column < 6 || column == 7;
    if (c->diversity_penalty != 0.0) { /* the same for all columns */
        const int32_t n = ho_category_total(e);
        const double entropy = ho_entropy_times_n(e, n_log2_n);
        x = column == 6 ? entropy : x;
        y = column == 6 ? (double)n : y;
        unit = column == 6 ? HO_LOG2_3 : unit;
        there = column == 6 ? n > 0 : there;
    }
    if (c->reward_base == HO_REWARD_DSR) {
        const double variance = e->dsr_b - e->dsr_a * e->dsr_a;
        const double deviation = sqrt(variance > 0.0 ? variance : 1.0);
        x = column == 8 ? e->dsr_a : x;
        y = column == 8 ? deviation : y;
        there = column == 8 ? variance > 0.0 : there;
    }
    return there ? ho_ratio_of((x - from) * scale, (y - less) * unit) : ho_ratio_of(0.0, 1.0);
}

/* The columns' values: p [9] or [3]. */
static inline HO_HD void ho_env_portfolio(const ho_env_lane *lane, const ho_market_view *m,
                                          const ho_env *e, float *p)
{
    const int32_t width = ho_portfolio_width(lane->config.state_form);
    const double close = m->bars[(int64_t)e->t * HO_BAR_COLUMNS + HO_CLOSE];
    const double sigma = lane->sigma[e->t];
    for (int32_t i = 0; i < width; i++) {
        const ho_ratio r = ho_env_portfolio_ratio(lane, m->n_log2_n, e, close, sigma, i);
        p[i] = ho_ratio_value(&r, ho_portfolio_limit(lane->config.state_form, i));
    }
}

#endif
