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
#include "kernels/env/ratio.h"
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

/* What columns are made of. */
enum {
    HO_TERM_ZERO,
    HO_TERM_ONE,
    HO_TERM_CAPITAL,
    HO_TERM_MAX_LOTS,
    HO_TERM_EQUITY_SCALE,
    HO_TERM_HOLDING_SCALE,
    HO_TERM_LOG2_3,
    HO_TERM_OPEN_PNL, /* the first that a step changes */
    HO_TERM_EQUITY,   /* from here on in pairs that a GPU stores at once */
    HO_TERM_ANCHOR,
    HO_TERM_LOTS,
    HO_TERM_SIDE, /* of the position, -1 or 1 */
    HO_TERM_CLOSE,
    HO_TERM_ENTRY,
    HO_TERM_ENTRY_SIZE, /* its absolute value */
    HO_TERM_SIGMA_60,   /* sigma_t of 60 bars */
    HO_TERM_BARS_HELD,
    HO_TERM_STOP,
    HO_TERM_TARGET,
    HO_TERM_SIZE,
    HO_TERM_ENTROPY,    /* times the categories */
    HO_TERM_CATEGORIES, /* in the window */
    HO_TERM_DSR_MEAN,
    HO_TERM_DSR_DEVIATION,
    HO_TERMS
};

typedef struct ho_portfolio_terms {
    double value[HO_TERMS];
    uint32_t there;               /* bit c: column c has a value, else it is 0 */
    int32_t diverse, dsr, seed54; /* by the settings: which terms there are */
} ho_portfolio_terms;

/* How a column is made: (x - from) * scale / ((y - less) * unit), then clipped, each a term;
 * nothing is rounded where a term is 0 or 1. A byte each, so that a GPU's threads, a column each,
 * do the same things with other terms. */
#define HO_FORMULA(x, from, scale, y, less, unit)                                                  \
    ((uint64_t)(HO_TERM_##x) | (uint64_t)(HO_TERM_##from) << 8 |                                   \
     (uint64_t)(HO_TERM_##scale) << 16 | (uint64_t)(HO_TERM_##y) << 24 |                           \
     (uint64_t)(HO_TERM_##less) << 32 | (uint64_t)(HO_TERM_##unit) << 40)

/* Of column [0, ho_portfolio_width). */
static inline HO_HD uint64_t ho_portfolio_formula(int32_t state_form, int32_t column)
{
    const int32_t seed54 = state_form == HO_STATE_SEED54;
    switch (column) {
    case 0:
        return seed54 ? HO_FORMULA(EQUITY, CAPITAL, ONE, CAPITAL, ZERO, ONE)
                      : HO_FORMULA(EQUITY, ANCHOR, EQUITY_SCALE, ANCHOR, ZERO, ONE);
    case 1:
        return HO_FORMULA(LOTS, ZERO, ONE, MAX_LOTS, ZERO, ONE);
    case 2:
        return seed54 ? HO_FORMULA(OPEN_PNL, ZERO, ONE, EQUITY, ZERO, ONE)
                      : HO_FORMULA(CLOSE, ENTRY, SIDE, ENTRY_SIZE, ZERO, SIGMA_60);
    case 3:
        return HO_FORMULA(BARS_HELD, ZERO, HOLDING_SCALE, ONE, ZERO, ONE);
    case 4:
        return HO_FORMULA(CLOSE, STOP, ONE, ENTRY, STOP, ONE);
    case 5:
        return HO_FORMULA(CLOSE, TARGET, ONE, ENTRY, TARGET, ONE);
    case 6:
        return HO_FORMULA(ENTROPY, ZERO, ONE, CATEGORIES, ZERO, LOG2_3);
    case 7:
        return HO_FORMULA(SIZE, ZERO, ONE, MAX_LOTS, ZERO, ONE);
    default:
        return HO_FORMULA(DSR_MEAN, ZERO, ONE, DSR_DEVIATION, ZERO, ONE);
    }
}

static inline HO_HD double ho_portfolio_limit(int32_t state_form, int32_t column)
{
    if (state_form == HO_STATE_SEED54 || column == 1 || column == 6 || column == 7) {
        return HO_NO_LIMIT;
    }
    return column == 3 ? 1.0 : HO_PORTFOLIO_CLIP;
}

/* The terms that stay as they are. */
static inline HO_HD void ho_portfolio_begin(const ho_env_lane *lane, ho_portfolio_terms *t)
{
    const ho_env_config *c = &lane->config;
    for (int32_t i = 0; i < HO_TERMS; i++) {
        t->value[i] = 0.0;
    }
    t->value[HO_TERM_ONE] = 1.0;
    t->value[HO_TERM_CAPITAL] = c->initial_capital;
    t->value[HO_TERM_MAX_LOTS] = (double)c->max_lots;
    t->value[HO_TERM_EQUITY_SCALE] = lane->equity_scale;
    t->value[HO_TERM_HOLDING_SCALE] = lane->holding_scale;
    t->value[HO_TERM_LOG2_3] = HO_LOG2_3;
    t->diverse = c->diversity_penalty != 0.0;
    t->dsr = c->reward_base == HO_REWARD_DSR;
    t->seed54 = c->state_form == HO_STATE_SEED54;
}

/* The entropy column of its categories alone. */
static inline HO_HD ho_ratio ho_entropy_ratio(const ho_env *e, const double *n_log2_n)
{
    const int32_t n = ho_category_total(e);
    return n > 0 ? ho_ratio_of(ho_entropy_times_n(e, n_log2_n), (double)n * HO_LOG2_3)
                 : ho_ratio_of(0.0, 1.0);
}

/* The others, at the close of e->t. close, sigma: at e->t; plain: a constant 1 where the settings
 * are (kernels/env/fill.h), else 0. */
static inline HO_HD void ho_portfolio_update(const ho_env_lane *lane, const double *n_log2_n,
                                             const ho_env *e, double close, double sigma,
                                             int32_t plain, ho_portfolio_terms *t)
{
    const ho_account *a = &e->account;
    const int32_t diverse = t->diverse, dsr = !plain && t->dsr, seed54 = !plain && t->seed54;
    const double equity = e->equity, anchor = e->anchor, size = e->size;
    const double entry = a->entry, stop = a->stop, target = a->target;
    const int32_t lots = a->lots, held = lots != 0, has = held ? a->has : 0;
    const int32_t bars_held = e->t - a->opened;
    uint32_t there = 1u << 0 | 1u << 1 | 1u << 7 | (uint32_t)held << 3;
    there |= (uint32_t)(held && entry != 0.0 && sigma > 0.0) << 2;
    there |= (uint32_t)((has & HO_HAS_STOP) && entry != stop) << 4;
    there |= (uint32_t)((has & HO_HAS_TARGET) && entry != target) << 5;
    t->value[HO_TERM_EQUITY] = equity;
    t->value[HO_TERM_ANCHOR] = anchor;
    t->value[HO_TERM_LOTS] = (double)lots;
    t->value[HO_TERM_SIDE] = lots > 0 ? 1.0 : -1.0;
    t->value[HO_TERM_CLOSE] = close;
    t->value[HO_TERM_ENTRY] = entry;
    t->value[HO_TERM_ENTRY_SIZE] = fabs(entry);
    t->value[HO_TERM_SIGMA_60] = sigma * HO_SQRT_60;
    t->value[HO_TERM_BARS_HELD] = (double)bars_held;
    t->value[HO_TERM_STOP] = stop;
    t->value[HO_TERM_TARGET] = target;
    t->value[HO_TERM_SIZE] = size;
    if (diverse) {
        const int32_t n = ho_category_total(e);
        t->value[HO_TERM_ENTROPY] = ho_entropy_times_n(e, n_log2_n);
        t->value[HO_TERM_CATEGORIES] = (double)n;
        there |= (uint32_t)(n > 0) << 6;
    }
    if (dsr) {
        const double variance = e->dsr_b - e->dsr_a * e->dsr_a;
        t->value[HO_TERM_DSR_MEAN] = e->dsr_a;
        t->value[HO_TERM_DSR_DEVIATION] = variance > 0.0 ? sqrt(variance) : 1.0;
        there |= (uint32_t)(variance > 0.0) << 8;
    }
    if (seed54) {
        const ho_env_config *c = &lane->config;
        t->value[HO_TERM_OPEN_PNL] = (close - entry) * (double)lots * c->lot * c->multiplier;
        there = 1u << 0 | 1u << 1 | (uint32_t)(equity > 0.0) << 2;
    }
    t->there = there;
}

/* A column from the terms. */
static inline HO_HD ho_ratio ho_portfolio_ratio(const ho_portfolio_terms *t, uint64_t formula,
                                                int32_t column)
{
    const double x = t->value[formula & 255], from = t->value[formula >> 8 & 255];
    const double scale = t->value[formula >> 16 & 255], y = t->value[formula >> 24 & 255];
    const double less = t->value[formula >> 32 & 255], unit = t->value[formula >> 40 & 255];
    const int32_t there = t->there >> column & 1;
    return ho_ratio_of(there ? (x - from) * scale : 0.0, there ? (y - less) * unit : 1.0);
}

/* Unrolled, so that the formulas are constants and the terms stay in registers. */
#ifdef __CUDACC__
#define HO_UNROLL_COLUMNS _Pragma("unroll")
#else
#define HO_UNROLL_COLUMNS _Pragma("GCC unroll 9")
#endif

/* All quotients by one thread: ratio [9] or [3]. */
static inline HO_HD void ho_env_portfolio_ratios(const ho_env_lane *lane, const double *n_log2_n,
                                                 const ho_env *e, double close, double sigma,
                                                 ho_ratio *ratio)
{
    ho_portfolio_terms t;
    ho_portfolio_begin(lane, &t);
    ho_portfolio_update(lane, n_log2_n, e, close, sigma, 0, &t);
    if (lane->config.state_form == HO_STATE_SEED54) {
        HO_UNROLL_COLUMNS
        for (int32_t i = 0; i < HO_SEED54_FEATURES; i++) {
            ratio[i] = ho_portfolio_ratio(&t, ho_portfolio_formula(HO_STATE_SEED54, i), i);
        }
    } else {
        HO_UNROLL_COLUMNS
        for (int32_t i = 0; i < HO_PORTFOLIO_FEATURES; i++) {
            ratio[i] = ho_portfolio_ratio(&t, ho_portfolio_formula(HO_STATE_FULL, i), i);
        }
    }
}

/* The columns' values: p [9] or [3], ho_portfolio_width(state_form). */
static inline HO_HD void ho_env_portfolio(const ho_env_lane *lane, const ho_market_view *m,
                                          const ho_env *e, float *p)
{
    const int32_t form = lane->config.state_form, width = ho_portfolio_width(form);
    ho_ratio ratio[HO_PORTFOLIO_FEATURES];
    ho_env_portfolio_ratios(lane, m->n_log2_n, e,
                            m->bars[(int64_t)e->t * HO_BAR_COLUMNS + HO_CLOSE], lane->sigma[e->t],
                            ratio);
    for (int32_t i = 0; i < width; i++) {
        p[i] = ho_ratio_value(&ratio[i], ho_portfolio_limit(form, i));
    }
}

#endif
