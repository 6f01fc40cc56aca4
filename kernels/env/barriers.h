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
    return c->barrier_unit == HO_BARRIER_SIGMA ? width * sigma : width * 1e-4;
}

/* Sets the barriers of a position just opened or flipped in bar. Percent barriers need a positive
 * entry price (and, in sigma units, a volatility); the time limit does not. */
static inline HO_HD void ho_set_barriers(const ho_env_config *c, ho_account *a, int32_t bar,
                                         double sigma)
{
    int32_t s = a->lots > 0 ? 1 : -1;
    double e = a->entry;
    double up = ho_barrier_share(c, c->profit_target, sigma);
    double down = ho_barrier_share(c, c->stop_loss, sigma);
    a->opened = bar;
    a->has &= HO_WAS_STOPPED;
    if (e > 0.0 && up > 0.0) {
        a->target = ho_tick_against(e * (1.0 + (double)s * up), s, c->tick_size);
        a->has |= HO_HAS_TARGET;
    }
    if (e > 0.0 && down > 0.0) {
        a->stop = ho_tick_against(e * (1.0 - (double)s * down), -s, c->tick_size);
        a->has |= HO_HAS_STOP;
    }
    if (c->max_holding > 0) {
        a->expiry = bar + c->max_holding;
        a->has |= HO_HAS_EXPIRY;
    }
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
