/* SPDX-License-Identifier: Apache-2.0
 * One bar of the market: decision at the close of t, fills inside bar t + 1.
 * spec/environment.md "One step", phases 0 to 5, in the order of reference/market_ref.py. */
#ifndef HO_KERNELS_ENV_FILL_H
#define HO_KERNELS_ENV_FILL_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/env/account.h"
#include "kernels/env/market_view.h"
#include "kernels/hd.h"

static inline HO_HD ho_desk ho_desk_at(const ho_env_config *c, const ho_market_view *m,
                                       const double *sigma, ho_account *a, int32_t bar,
                                       ho_ledger *ledger, ho_step_out *out)
{
    ho_desk d;
    d.c = c;
    d.a = a;
    d.ledger = ledger;
    d.out = out;
    d.bar = bar;
    d.sigma = sigma[bar - 1];
    d.liquidity.impact_scale = c->has_volume ? c->impact_coef * d.sigma : 0.0;
    d.liquidity.mean_volume = m->mean_volume[bar - 1];
    return d;
}

/* Phase 1b: the order as far as it fills at the open. Returns the signed lots that rest at *limit,
 * 0 for none. */
static inline HO_HD int32_t ho_fill_at_open(ho_desk *d, const ho_order *order, int32_t lots,
                                            double open, double close, double volume, double *limit)
{
    const ho_env_config *c = d->c;
    int32_t side = lots > 0 ? 1 : -1, lots_abs = side * lots;
    if (order->kind == HO_ORDER_LIMIT) {
        *limit = ho_limit_price(c, close, side);
        if (side > 0 ? open > *limit : open < *limit) {
            return lots;
        }
        double price = ho_crossing_price(c, &d->liquidity, open, side, lots_abs, NULL);
        if (side > 0 ? *limit < price : *limit > price) {
            price = *limit;
        }
        ho_apply(d, lots, price, HO_FEE_TAKER, HO_EXIT_SIGNAL);
        return 0;
    }
    double reference = c->fill == HO_FILL_NEXT_OPEN ? open : close;
    if (order->kind == HO_ORDER_IOC) {
        if (close == 0.0 || fabs(reference / close - 1.0) > c->ioc_band) {
            return 0;
        }
        if (c->has_volume) {
            int32_t most = ho_floor_lots(c->ioc_participation * volume / c->lot);
            lots_abs = lots_abs < most ? lots_abs : most;
        }
    }
    if (lots_abs > 0) {
        double price = ho_crossing_price(c, &d->liquidity, reference, side, lots_abs, d->ledger);
        ho_apply(d, side * lots_abs, price, order->kind == HO_ORDER_IOC ? HO_FEE_IOC : HO_FEE_TAKER,
                 HO_EXIT_SIGNAL);
    }
    return 0;
}

/* Phases 2 to 4: a resting order, the stop, the target and the time limit inside the bar. */
static inline HO_HD void ho_fill_inside(ho_desk *d, int32_t resting, double limit, double open,
                                        double high, double low, double close)
{
    ho_account *a = d->a;
    int32_t added = 0;
    if (resting != 0 && (resting > 0 ? low < limit : high > limit)) {
        int32_t side = resting > 0 ? 1 : -1, held = ho_sign((double)a->lots);
        int32_t fills = 1;
        if (held == -side && ho_stop_touched(a, low, high)) {
            d->out->ambiguous++;
            fills = fabs(open - limit) <= d->c->tick_size; /* else the stop came first */
        }
        if (fills) {
            ho_apply(d, resting, limit, HO_FEE_MAKER, HO_EXIT_SIGNAL);
            added = ho_sign((double)a->lots) == side;
        }
    }
    if (a->lots == 0) {
        return;
    }
    int32_t passed = !added && ho_target_passed(a, low, high);
    if (ho_stop_touched(a, low, high)) {
        d->out->ambiguous += passed;
        d->out->label = -1;
        ho_leave(d, a->stop, HO_EXIT_STOP);
        a->last_stop = d->bar;
        a->has |= HO_WAS_STOPPED;
    } else if (passed) {
        d->out->label = 1;
        ho_apply(d, -a->lots, a->target, HO_FEE_MAKER, HO_EXIT_PROFIT);
    } else if ((a->has & HO_HAS_EXPIRY) && d->bar >= a->expiry) {
        ho_leave(d, close, HO_EXIT_TIME);
    }
}

/* One step from the close of bar t: sets out->equity, ret, label, ambiguous and the exits (the
 * caller cleared out). equity: at the close of t. */
static inline HO_HD void ho_market_step(const ho_env_config *c, const ho_market_view *m,
                                        const double *sigma, ho_account *a, int32_t t,
                                        double equity, const ho_order *order, double size,
                                        ho_ledger *ledger, ho_step_out *out)
{
    int32_t b = t + 1;
    const double *bar = m->bars + (int64_t)b * HO_BAR_COLUMNS;
    double open = bar[HO_OPEN], high = bar[HO_HIGH], low = bar[HO_LOW];
    double close = bar[HO_CLOSE], volume = bar[HO_VOLUME];
    double before = bar[HO_CLOSE - HO_BAR_COLUMNS];
    ho_desk d = ho_desk_at(c, m, sigma, a, b, ledger, out);

    double jump = m->roll_jump ? m->roll_jump[b] : 0.0;
    if (jump != 0.0) {
        before += jump;
        if (a->lots != 0) {
            ho_roll(&d, jump, before);
        }
    }
    if (!(c->has_volume && volume == 0.0)) { /* a bar without trades fills nothing */
        int32_t resting = 0;
        double limit = 0.0;
        if (ho_stop_touched(a, open, open)) {
            out->label = -1;
            ho_leave(&d, open, HO_EXIT_STOP);
            a->last_stop = b;
            a->has |= HO_WAS_STOPPED;
        } else {
            int32_t lots = ho_wanted_trade(c, a, order, size, before, equity, b);
            if (lots != 0) {
                resting = ho_fill_at_open(&d, order, lots, open, before, volume, &limit);
            }
        }
        ho_fill_inside(&d, resting, limit, open, high, low, close);
    }
    if (a->lots != 0 && c->flat_at_session_end && (m->bar_flags[b] & HO_BAR_SESSION_END)) {
        ho_leave(&d, close, HO_EXIT_SESSION);
    }
    if (a->lots != 0 && m->funding) {
        double paid = (double)a->lots * c->lot * close * c->multiplier * m->funding[b];
        a->cash -= paid;
        if (ledger) {
            ledger->funding += paid;
        }
    }
    out->equity = a->cash + (double)a->lots * c->lot * close * c->multiplier;
    out->ret = (out->equity - equity) / equity;
}

/* The window's end: an open position leaves at the crossing price of bar b's close. Changes
 * out->equity and out->ret of the last step; before: the equity one step earlier. */
static inline HO_HD void ho_market_finish(const ho_env_config *c, const ho_market_view *m,
                                          const double *sigma, ho_account *a, int32_t b,
                                          double before, ho_ledger *ledger, ho_step_out *out)
{
    if (a->lots != 0) {
        ho_desk d = ho_desk_at(c, m, sigma, a, b, ledger, out);
        ho_leave(&d, m->bars[(int64_t)b * HO_BAR_COLUMNS + HO_CLOSE], HO_EXIT_END);
        out->equity = a->cash;
        out->ret = (a->cash - before) / before;
    }
}

#endif
