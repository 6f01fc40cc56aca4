/* SPDX-License-Identifier: Apache-2.0
 * What the metrics need from the round trips of one pass, kept while it runs: a few words of state,
 * so that a kernel carries it along instead of storing every trade. spec/metrics.md 1.7. */
#ifndef HO_KERNELS_METRICS_TRADE_STATS_H
#define HO_KERNELS_METRICS_TRADE_STATS_H

#include <math.h>
#include <stdint.h>

#include "kernels/hd.h"
#include "kernels/metrics/moments.h"
#include "kernels/trade.h"

typedef struct ho_trade_stats {
    int64_t wins, losses;
    ho_sum won, lost, on_notional; /* lost <= 0 */
    ho_moments net;                /* its n counts the trades */
    double net_min, net_max;
} ho_trade_stats;

static inline HO_HD void ho_trade_stats_begin(ho_trade_stats *s)
{
    s->wins = s->losses = 0;
    s->won.sum = s->won.lost = s->lost.sum = s->lost.lost = 0.0;
    s->on_notional.sum = s->on_notional.lost = 0.0;
    s->net.n = 0;
    s->net.mean = s->net.m2 = 0.0;
    s->net_min = s->net_max = 0.0;
}

/* multiplier: money per price unit per unit. */
static inline HO_HD void ho_trade_stats_add(ho_trade_stats *s, const ho_trade *t, double multiplier)
{
    double notional = fabs(t->entry_price) * t->quantity * multiplier;
    const int32_t wins = t->net > 0.0, loses = t->net < 0.0;
    s->wins += wins;
    s->losses += loses;
    if (wins | loses) {
        ho_sum_add(wins ? &s->won : &s->lost, t->net);
    }
    ho_sum_add(&s->on_notional, notional > 0.0 ? t->net / notional : 0.0);
    ho_moments_add(&s->net, t->net);
    s->net_min = s->net.n == 1 || t->net < s->net_min ? t->net : s->net_min;
    s->net_max = s->net.n == 1 || t->net > s->net_max ? t->net : s->net_max;
}

#endif
