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

/* The bar stopped the position out. */
static inline HO_HD void ho_note_stop(ho_desk *d)
{
    d->out->label = -1;
    d->a->last_stop = d->bar;
    d->a->has |= HO_WAS_STOPPED;
}

/* Phase 1: the stop at the open, else the order as far as it fills there. Returns the signed lots
 * that rest at *limit, 0 for none. All ways lead to one booking, so that a GPU's threads meet. */
static inline HO_HD int32_t ho_fill_at_open(ho_desk *d, const ho_order *order, double size,
                                            double equity, double open, double close, double volume,
                                            double *limit)
{
    const ho_env_config *c = d->c;
    ho_account *a = d->a;
    int32_t stopped = ho_stop_touched(a, open, open), limited = 0;
    int32_t fee = HO_FEE_TAKER, lots;
    double reference = open;
    *limit = 0.0;
    if (stopped) {
        lots = -a->lots;
    } else {
        lots = ho_wanted_trade(c, a, order, size, close, equity, d->bar);
        if (lots == 0) {
            return 0;
        }
        int32_t side = lots > 0 ? 1 : -1;
        if (order->kind == HO_ORDER_LIMIT) {
            *limit = ho_limit_price(c, close, side);
            if (side > 0 ? open > *limit : open < *limit) {
                return lots;
            }
            limited = 1;
        } else {
            reference = c->fill == HO_FILL_NEXT_OPEN ? open : close;
        }
        if (order->kind == HO_ORDER_IOC) {
            fee = HO_FEE_IOC;
            if (close == 0.0 || fabs(reference / close - 1.0) > c->ioc_band) {
                return 0;
            }
            if (c->has_volume) {
                int32_t most = ho_floor_lots(c->ioc_participation * volume / c->lot);
                lots = side * (side * lots < most ? side * lots : most);
            }
        }
    }
    if (lots == 0) {
        return 0;
    }
    int32_t side = lots > 0 ? 1 : -1;
    double price = ho_crossing_price(c, &d->liquidity, reference, side, side * lots,
                                     limited ? NULL : d->ledger);
    if (limited && (side > 0 ? *limit < price : *limit > price)) {
        price = *limit;
    }
    ho_apply(d, lots, price, fee, stopped ? HO_EXIT_STOP : HO_EXIT_SIGNAL);
    if (stopped) {
        ho_note_stop(d);
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
    int32_t stopped = ho_stop_touched(a, low, high);
    int32_t passed = !added && ho_target_passed(a, low, high);
    int32_t expired = a->lots != 0 && (a->has & HO_HAS_EXPIRY) && d->bar >= a->expiry;
    if (!stopped && !passed && !expired) {
        return;
    }
    int32_t profit = passed && !stopped, lots = -a->lots, side = lots > 0 ? 1 : -1;
    double price = a->target;
    d->out->ambiguous += stopped && passed;
    if (!profit) {
        price = ho_crossing_price(d->c, &d->liquidity, stopped ? a->stop : close, side, side * lots,
                                  d->ledger);
    }
    ho_apply(d, lots, price, profit ? HO_FEE_MAKER : HO_FEE_TAKER,
             stopped  ? HO_EXIT_STOP
             : passed ? HO_EXIT_PROFIT
                      : HO_EXIT_TIME);
    if (stopped) {
        ho_note_stop(d);
    } else if (passed) {
        d->out->label = 1;
    }
}

/* One step from the close of bar t: sets out->equity, ret, label, ambiguous and the exits (the
 * caller cleared out). equity: at the close of t. */
static inline HO_HD void ho_market_step(const ho_env_config *c, const ho_market_view *m,
                                        const double *sigma, ho_account *account, int32_t t,
                                        double equity, const ho_order *order, double size,
                                        ho_ledger *ledger, ho_step_out *out)
{
    int32_t b = t + 1;
    ho_account copy = *account, *a = &copy; /* stores to it hold up no load of the settings */
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
        double limit;
        int32_t resting = ho_fill_at_open(&d, order, size, equity, open, before, volume, &limit);
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
    out->ret = ho_quotient(out->equity - equity, equity);
    *account = copy;
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
