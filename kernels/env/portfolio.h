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

/* Distance from the close to a barrier as a share of the distance from the entry: 1 at the entry,
 * 0 at the barrier; 0 when the entry lies on it. */
static inline HO_HD ho_ratio ho_barrier_distance(int32_t has, double close, double entry,
                                                 double level)
{
    return has && entry != level ? ho_ratio_of(close - level, entry - level)
                                 : ho_ratio_of(0.0, 1.0);
}

/* The original three columns. */
static inline HO_HD void ho_portfolio_seed54(const ho_env_lane *lane, const ho_env *e, double close,
                                             ho_ratio *p)
{
    const ho_env_config *c = &lane->config;
    const ho_account *a = &e->account;
    double open_pnl = (close - a->entry) * (double)a->lots * c->lot * c->multiplier;
    p[0] = ho_ratio_of(e->equity - c->initial_capital, c->initial_capital);
    p[1] = ho_ratio_of((double)a->lots, (double)c->max_lots);
    p[2] = e->equity > 0.0 ? ho_ratio_of(open_pnl, e->equity) : ho_ratio_of(0.0, 1.0);
}

/* p: [9] or [3], ho_portfolio_width(state_form): the columns of the state at the close of e->t.
 * close, sigma: at e->t. */
static inline HO_HD void ho_env_portfolio_ratios(const ho_env_lane *lane, const double *n_log2_n,
                                                 const ho_env *e, double close, double sigma,
                                                 ho_ratio *p)
{
    const ho_env_config *c = &lane->config;
    const ho_account *a = &e->account;
    if (c->state_form == HO_STATE_SEED54) {
        ho_portfolio_seed54(lane, e, close, p);
        return;
    }
    int32_t held = a->lots != 0, n = ho_category_total(e);
    double side = a->lots > 0 ? 1.0 : -1.0;
    double share = held ? (double)(e->t - a->opened) * lane->holding_scale : 0.0;
    double variance = e->dsr_b - e->dsr_a * e->dsr_a;
    p[0] = ho_ratio_of((e->equity - e->anchor) * lane->equity_scale, e->anchor);
    p[1] = ho_ratio_of((double)a->lots, (double)c->max_lots);
    p[2] = held && a->entry != 0.0 && sigma > 0.0
               ? ho_ratio_of(side * (close - a->entry), fabs(a->entry) * (sigma * HO_SQRT_60))
               : ho_ratio_of(0.0, 1.0);
    p[3] = ho_ratio_of(share, 1.0);
    p[4] = ho_barrier_distance(held && (a->has & HO_HAS_STOP), close, a->entry, a->stop);
    p[5] = ho_barrier_distance(held && (a->has & HO_HAS_TARGET), close, a->entry, a->target);
    p[6] = c->diversity_penalty != 0.0 && n > 0
               ? ho_ratio_of(ho_entropy_times_n(e, n_log2_n), (double)n * HO_LOG2_3)
               : ho_ratio_of(0.0, 1.0);
    p[7] = ho_ratio_of(e->size, (double)c->max_lots);
    p[8] = c->reward_base == HO_REWARD_DSR && variance > 0.0 ? ho_ratio_of(e->dsr_a, sqrt(variance))
                                                             : ho_ratio_of(0.0, 1.0);
}

/* The columns' values: p [9] or [3]. */
static inline HO_HD void ho_env_portfolio(const ho_env_lane *lane, const ho_market_view *m,
                                          const ho_env *e, float *p)
{
    ho_ratio ratio[HO_PORTFOLIO_FEATURES];
    const int32_t width = ho_portfolio_width(lane->config.state_form);
    ho_env_portfolio_ratios(lane, m->n_log2_n, e,
                            m->bars[(int64_t)e->t * HO_BAR_COLUMNS + HO_CLOSE], lane->sigma[e->t],
                            ratio);
    for (int32_t i = 0; i < width; i++) {
        p[i] = ho_ratio_value(&ratio[i], ho_portfolio_limit(lane->config.state_form, i));
    }
}

#endif
