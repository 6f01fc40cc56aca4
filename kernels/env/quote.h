/* SPDX-License-Identifier: Apache-2.0
 * What one step reads of the market, gathered: known when bar t + 1 has come, whatever is decided
 * at the close of t and whatever the account holds. A GPU fetches it while the network decides. */
#ifndef HO_KERNELS_ENV_QUOTE_H
#define HO_KERNELS_ENV_QUOTE_H

#include <stdint.h>

#include "kernels/env/market_view.h"
#include "kernels/hd.h"

typedef struct ho_quote {
    double open, high, low, close, volume; /* of bar t + 1, in the order of the market's columns */
    double before;                         /* close of bar t, as in the market's table */
    double mean_volume;                    /* of the 20 bars to t */
    double sigma, sigma_next;              /* sigma_t, sigma_(t + 1) */
    double jump, funding;                  /* of bar t + 1; 0: none */
    int32_t bar;                           /* t + 1 */
    int32_t flags;                         /* HO_BAR_* of bar t + 1 */
} ho_quote;

/* sigma: [T] of the lane. */
static inline HO_HD ho_quote ho_market_quote(const ho_market_view *m, const double *sigma,
                                             int32_t t)
{
    const double *bar = m->bars + ((int64_t)t + 1) * HO_BAR_COLUMNS;
    ho_quote q;
    q.open = bar[HO_OPEN];
    q.high = bar[HO_HIGH];
    q.low = bar[HO_LOW];
    q.close = bar[HO_CLOSE];
    q.volume = bar[HO_VOLUME];
    q.before = bar[HO_CLOSE - HO_BAR_COLUMNS];
    q.mean_volume = m->mean_volume[t];
    q.sigma = sigma[t];
    q.sigma_next = sigma[t + 1];
    q.jump = m->roll_jump ? m->roll_jump[t + 1] : 0.0;
    q.funding = m->funding ? m->funding[t + 1] : 0.0;
    q.bar = t + 1;
    q.flags = m->bar_flags[t + 1];
    return q;
}

#endif
