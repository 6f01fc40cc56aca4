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

static inline HO_HD int32_t ho_portfolio_width(int32_t state_form)
{
    return state_form == HO_STATE_FULL ? HO_PORTFOLIO_FEATURES : HO_SEED54_FEATURES;
}

static inline HO_HD float ho_portfolio_clip(double x)
{
    return (float)ho_clip(x, -HO_PORTFOLIO_CLIP, HO_PORTFOLIO_CLIP);
}

/* Distance from the close to a barrier as a share of the distance from the entry: 1 at the entry,
 * 0 at the barrier; 0 when the entry lies on it. */
static inline HO_HD float ho_barrier_distance(double close, double entry, double level)
{
    return entry != level ? ho_portfolio_clip((close - level) / (entry - level)) : 0.0f;
}

/* The original three columns. */
static inline HO_HD void ho_portfolio_seed54(const ho_env_lane *lane, const ho_env *e, double close,
                                             float *p)
{
    const ho_env_config *c = &lane->config;
    const ho_account *a = &e->account;
    double open_pnl = (close - a->entry) * (double)a->lots * c->lot * c->multiplier;
    p[0] = (float)(e->equity / c->initial_capital - 1.0);
    p[1] = (float)((double)a->lots / (double)c->max_lots);
    p[2] = e->equity > 0.0 ? (float)(open_pnl / e->equity) : 0.0f;
}

/* p: [9] or [3], ho_portfolio_width(state_form). The state at the close of e->t. */
static inline HO_HD void ho_env_portfolio(const ho_env_lane *lane, const ho_market_view *m,
                                          const ho_env *e, float *p)
{
    const ho_env_config *c = &lane->config;
    const ho_account *a = &e->account;
    double close = m->bars[(int64_t)e->t * HO_BAR_COLUMNS + HO_CLOSE];
    if (c->state_form == HO_STATE_SEED54) {
        ho_portfolio_seed54(lane, e, close, p);
        return;
    }
    double sigma = lane->sigma[e->t];
    p[0] = ho_portfolio_clip((e->equity / e->anchor - 1.0) * lane->equity_scale);
    p[1] = (float)((double)a->lots / (double)c->max_lots);
    p[2] = p[3] = p[4] = p[5] = 0.0f;
    if (a->lots != 0) {
        double side = a->lots > 0 ? 1.0 : -1.0;
        double held = (double)(e->t - a->opened) * lane->holding_scale;
        if (a->entry != 0.0 && sigma > 0.0) {
            p[2] = ho_portfolio_clip(side * (close - a->entry) / fabs(a->entry) /
                                     (sigma * HO_SQRT_60));
        }
        p[3] = (float)(held < 1.0 ? held : 1.0);
        p[4] = a->has & HO_HAS_STOP ? ho_barrier_distance(close, a->entry, a->stop) : 0.0f;
        p[5] = a->has & HO_HAS_TARGET ? ho_barrier_distance(close, a->entry, a->target) : 0.0f;
    }
    p[6] = c->diversity_penalty != 0.0 ? (float)(ho_entropy(e, m->n_log2_n) / HO_LOG2_3) : 0.0f;
    p[7] = (float)(e->size / (double)c->max_lots);
    p[8] = c->reward_base == HO_REWARD_DSR ? ho_portfolio_clip(ho_dsr_ratio(e)) : 0.0f;
}

#endif
