/* SPDX-License-Identifier: Apache-2.0
 * Profit target, stop loss and time limit of a position. spec/environment.md "One step". */
#ifndef HO_KERNELS_ENV_BARRIERS_H
#define HO_KERNELS_ENV_BARRIERS_H

#include "kernels/env/config.h"
#include "kernels/env/orders.h"
#include "kernels/env/state.h"
#include "kernels/hd.h"

/* Share of the entry price that a barrier of this width lies away. */
static inline HO_HD double ho_barrier_share(const ho_env_config *c, double width, double sigma)
{
    return width * (c->barrier_unit == HO_BARRIER_SIGMA ? sigma : 1e-4);
}

/* Sets the barriers of a position just opened or flipped in bar. Percent barriers need a positive
 * entry price (and, in sigma units, a volatility); the time limit does not. */
static inline HO_HD void ho_set_barriers(const ho_env_config *c, ho_account *a, int32_t bar,
                                         double sigma)
{
    const int32_t side = a->lots > 0 ? 1 : -1, timed = c->max_holding > 0;
    const double e = a->entry, s = ho_side_factor(side);
    const double up = ho_barrier_share(c, c->profit_target, sigma);
    const double down = ho_barrier_share(c, c->stop_loss, sigma);
    const int32_t targeted = e > 0.0 && up > 0.0, stopped = e > 0.0 && down > 0.0;
    a->target = targeted ? e * (1.0 + s * up) : a->target;
    a->stop = stopped ? e * (1.0 - s * down) : a->stop;
    if (c->tick_size > 0.0) { /* one jump over both roundings, see "plain bars" in fill.h */
        a->target = targeted ? ho_tick_against(a->target, side, c->tick_size) : a->target;
        a->stop = stopped ? ho_tick_against(a->stop, -side, c->tick_size) : a->stop;
    }
    a->opened = bar;
    a->expiry = timed ? bar + c->max_holding : a->expiry;
    a->has = (a->has & HO_WAS_STOPPED) | (targeted ? HO_HAS_TARGET : 0) |
             (stopped ? HO_HAS_STOP : 0) | (timed ? HO_HAS_EXPIRY : 0);
}

/* The bar reached the stop. */
static inline HO_HD int32_t ho_stop_touched(const ho_account *a, double low, double high)
{
    return a->lots != 0 && (a->has & HO_HAS_STOP) &&
           (a->lots > 0 ? low <= a->stop : high >= a->stop);
}

/* The bar traded strictly beyond the target. */
static inline HO_HD int32_t ho_target_passed(const ho_account *a, double low, double high)
{
    return a->lots != 0 && (a->has & HO_HAS_TARGET) &&
           (a->lots > 0 ? high > a->target : low < a->target);
}

#endif
