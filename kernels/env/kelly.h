/* SPDX-License-Identifier: Apache-2.0
 * Kelly sizing: mean and variance of the returns of a lane's closed trades. Every episode slot
 * keeps its own moments within an epoch; the lane merges them in slot order at the epoch's end
 * (Chan, Golub and LeVeque 1979), so the sum does not depend on threads. */
#ifndef HO_KERNELS_ENV_KELLY_H
#define HO_KERNELS_ENV_KELLY_H

#include <math.h>
#include <stdint.h>

#include "kernels/env/config.h"
#include "kernels/env/state.h"
#include "kernels/hd.h"
#include "kernels/metrics/moments.h"

/* Net P&L on the notional at entry; 0 when the entry price is 0. */
static inline HO_HD double ho_trade_return(const ho_env_config *c, const ho_trade *trade)
{
    double notional = fabs(trade->entry_price) * trade->quantity * c->multiplier;
    return notional > 0.0 ? trade->net / notional : 0.0;
}

/* Adds the round trips that a step closed, and empties the ledger's list. */
static inline HO_HD void ho_moments_add_closed(const ho_env_config *c, ho_moments *m,
                                               ho_ledger *ledger)
{
    for (int32_t i = 0; i < ledger->closed_count; i++) {
        ho_moments_add(m, ho_trade_return(c, &ledger->closed[i]));
    }
    ledger->closed_count = 0;
}

/* Share of size, [0, 1]: a fraction of mean / variance; full until there are enough trades, none
 * for a lane that loses or whose returns do not vary and do not gain. */
static inline HO_HD double ho_kelly_share(const ho_env_config *c, const ho_moments *m)
{
    if (m->n < c->kelly_min_trades) {
        return 1.0;
    }
    double variance = m->m2 / (double)(m->n - 1);
    double share = variance > 0.0 ? c->kelly_fraction * m->mean / variance : 0.0;
    return share < 0.0 ? 0.0 : share > 1.0 ? 1.0 : share;
}

#endif
