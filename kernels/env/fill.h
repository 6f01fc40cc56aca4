/* SPDX-License-Identifier: Apache-2.0
 * One bar of the market: decision at the close of t, fills inside bar t + 1.
 * spec/environment.md "One step", phases 0 to 5, in the order of reference/market_ref.py. */
#ifndef HO_KERNELS_ENV_FILL_H
#define HO_KERNELS_ENV_FILL_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/env/account.h"
#include "kernels/env/offer.h"
#include "kernels/env/quote.h"
#include "kernels/hd.h"

static inline HO_HD ho_desk ho_desk_at(const ho_env_config *c, const ho_quote *q, ho_account *a,
                                       ho_ledger *ledger, ho_bookings *bookings, ho_step_out *out)
{
    ho_desk d;
    d.c = c;
    d.a = a;
    d.ledger = ledger;
    d.bookings = bookings;
    d.out = out;
    d.bar = q->bar;
    d.sigma = q->sigma;
    d.liquidity = ho_quote_liquidity(c, q);
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
 * that rest at *limit, 0 for none. All ways lead to one booking, so that a GPU's threads meet.
 * offer: of this account and quote, or NULL. */
static inline HO_HD int32_t ho_fill_at_open(ho_desk *d, const ho_order *order, const ho_quote *q,
                                            const ho_offer *offer, double size, double equity,
                                            double *limit)
{
    const ho_env_config *c = d->c;
    ho_account *a = d->a;
    int32_t stopped = ho_stop_touched(a, q->open, q->open), limited = 0, known = offer != NULL;
    int32_t fee = HO_FEE_TAKER, lots;
    double before = q->before + q->jump, reference = q->open;
    *limit = 0.0;
    if (stopped) {
        lots = -a->lots;
    } else {
        lots = offer ? offer->order[order->offer].lots
                     : ho_wanted_trade(c, a, order, size, before, equity, d->bar);
        if (lots == 0) {
            return 0;
        }
        int32_t side = lots > 0 ? 1 : -1;
        if (order->kind == HO_ORDER_LIMIT) {
            *limit = offer ? offer->limit[side > 0] : ho_limit_price(c, before, side);
            if (side > 0 ? q->open > *limit : q->open < *limit) {
                return lots;
            }
            limited = 1;
            known = known && c->fill == HO_FILL_NEXT_OPEN; /* offers are at market orders' */
        } else {
            reference = ho_order_reference(c, q);
        }
        if (order->kind == HO_ORDER_IOC) {
            int32_t most = offer ? offer->ioc_most : ho_ioc_most(c, q);
            fee = HO_FEE_IOC;
            if (side * lots > most) {
                lots = side * most;
                known = 0;
            }
        }
    }
    if (lots == 0) {
        return 0;
    }
    int32_t side = lots > 0 ? 1 : -1;
    ho_crossing x;
    if (known) {
        x = stopped ? offer->stop : offer->order[order->offer];
    } else {
        x = ho_cross(c, &d->liquidity, reference, side, side * lots);
    }
    double price = limited ? x.price : ho_pay_spread(d, &x);
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
static inline HO_HD void ho_fill_inside(ho_desk *d, int32_t resting, double limit,
                                        const ho_quote *q)
{
    ho_account *a = d->a;
    double high = q->high, low = q->low;
    int32_t added = 0;
    if (resting != 0 && (resting > 0 ? low < limit : high > limit)) {
        int32_t side = resting > 0 ? 1 : -1, held = ho_sign((double)a->lots);
        int32_t fills = 1;
        if (held == -side && ho_stop_touched(a, low, high)) {
            d->out->ambiguous++;
            fills = fabs(q->open - limit) <= d->c->tick_size; /* else the stop came first */
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
        ho_crossing x =
            ho_cross(d->c, &d->liquidity, stopped ? a->stop : q->close, side, side * lots);
        price = ho_pay_spread(d, &x);
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

/* One step from the close of bar t: sets out->equity, label, ambiguous and the exits (the caller
 * cleared out). equity, size: at the close of t. offer, ledger, bookings: or NULL. */
static inline HO_HD void ho_market_step(const ho_env_config *c, const ho_quote *q,
                                        const ho_offer *offer, ho_account *account, double equity,
                                        const ho_order *order, double size, ho_ledger *ledger,
                                        ho_bookings *bookings, ho_step_out *out)
{
    ho_account copy = *account, *a = &copy; /* stores to it hold up no load of the settings */
    ho_desk d = ho_desk_at(c, q, a, ledger, bookings, out);

    if (q->jump != 0.0 && a->lots != 0) {
        ho_roll(&d, q->jump, q->before + q->jump);
    }
    if (!(c->has_volume && q->volume == 0.0)) { /* a bar without trades fills nothing */
        double limit;
        int32_t resting = ho_fill_at_open(&d, order, q, offer, size, equity, &limit);
        ho_fill_inside(&d, resting, limit, q);
    }
    if (a->lots != 0 && c->flat_at_session_end && (q->flags & HO_BAR_SESSION_END)) {
        ho_leave(&d, q->close, HO_EXIT_SESSION);
    }
    if (a->lots != 0 && q->funding != 0.0) {
        double paid = (double)a->lots * c->lot * q->close * c->multiplier * q->funding;
        a->cash -= paid;
        if (ledger) {
            ledger->funding += paid;
        }
        if (bookings) {
            bookings->funding = paid;
        }
    }
    out->equity = a->cash + (double)a->lots * c->lot * q->close * c->multiplier;
    *account = copy;
}

/* The window's end: an open position leaves at the crossing price of the last close; q: of the last
 * step. Changes out->equity and out->ret of that step; before: the equity one step earlier. */
static inline HO_HD void ho_market_finish(const ho_env_config *c, const ho_quote *q, ho_account *a,
                                          double before, ho_ledger *ledger, ho_bookings *bookings,
                                          ho_step_out *out)
{
    if (a->lots != 0) {
        ho_desk d = ho_desk_at(c, q, a, ledger, bookings, out);
        ho_leave(&d, q->close, HO_EXIT_END);
        out->equity = a->cash;
        out->ret = (a->cash - before) / before;
    }
}

#endif
