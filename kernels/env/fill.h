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
    d.q = q;
    d.bar = q->bar;
    d.roll_fee = 0.0;
    d.crossings = d.fills = 0;
    return d;
}

/* ---- plain bars ----
 * Bars in which nothing seldom happens: no roll of a position, no stop at the open, an order that
 * the offer has whole, nobody leaves, and settings that most studies have. A GPU that knows before
 * a step has the code of such bars by itself: jumping over what is not at hand takes it longer than
 * executing what is. */

static inline HO_HD int32_t ho_settings_are_plain(const ho_env_config *c)
{
    return c->fill == HO_FILL_NEXT_OPEN && c->reward_base != HO_REWARD_DSR &&
           c->state_form == HO_STATE_FULL;
}

/* The bar's open, whatever is ordered. Tests what it has loaded at once. */
static inline HO_HD int32_t ho_open_is_plain(const ho_account *a, const ho_quote *q)
{
    const int32_t lots = a->lots, stops = (a->has & HO_HAS_STOP) != 0, rolls = q->jump != 0.0;
    const int32_t below = q->open <= a->stop, above = q->open >= a->stop;
    return (lots == 0) | !(rolls | (stops & (lots > 0 ? below : above)));
}

/* The order; the settings are plain. wanted: its signed lots in the offer. */
static inline HO_HD int32_t ho_order_is_plain(const ho_order *order, const ho_offer *offer,
                                              int32_t wanted)
{
    const int32_t most = offer->ioc_most;
    return (order->kind != HO_ORDER_IOC) | ((wanted < 0 ? -wanted : wanted) <= most);
}

/* The bar stopped the position out. */
static inline HO_HD void ho_note_stop(ho_desk *d)
{
    d->out->label = -1;
    d->a->last_stop = d->bar;
    d->a->has |= HO_WAS_STOPPED;
}

/* The order's part of a bar: one fill at most. */
typedef struct ho_order_fill {
    double price;
    int32_t lots;    /* signed; 0: none */
    int32_t fee;     /* HO_FEE_* */
    int32_t stopped; /* the stop at the open, which cancels the order */
    int32_t rested;  /* at its limit, inside the bar */
} ho_order_fill;

/* A limit order that rests: fills at its limit if the bar trades through it, unless the stop came
 * first. */
static inline HO_HD void ho_fill_resting(ho_desk *d, const ho_quote *q, double limit,
                                         ho_order_fill *f)
{
    const ho_account *a = d->a;
    const int32_t side = f->lots > 0 ? 1 : -1;
    f->price = limit;
    f->fee = HO_FEE_MAKER;
    f->rested = 1;
    if (!(side > 0 ? q->low < limit : q->high > limit)) {
        f->lots = 0;
    } else if (ho_sign((double)a->lots) == -side && ho_stop_touched(a, q->low, q->high)) {
        d->out->ambiguous++;
        f->lots = fabs(q->open - limit) <= d->c->tick_size ? f->lots : 0;
    }
}

/* Phase 1 and the resting order of phase 2, up to their booking: the stop at the open, else the
 * order. offer: of this account and quote, or NULL. */
static inline HO_HD ho_order_fill ho_fill_order(ho_desk *d, const ho_order *order,
                                                const ho_quote *q, const ho_offer *offer,
                                                double size, double equity, const ho_ahead *ahead)
{
    const int32_t plain = ahead->plain;
    const ho_env_config *c = d->c;
    const ho_account *a = d->a;
    const double before = q->before + q->jump;
    ho_order_fill f = {0.0, 0, HO_FEE_TAKER, 0, 0};
    f.stopped = !plain && ho_stop_touched(a, q->open, q->open);
    f.lots = plain       ? ahead->wanted
             : f.stopped ? -a->lots
             : offer     ? offer->order[order->offer].lots
                         : ho_wanted_trade(c, a, order, size, before, equity, d->bar);
    if (f.lots == 0) {
        return f;
    }
    const int32_t side = f.lots > 0 ? 1 : -1;
    const int32_t limited = !f.stopped && order->kind == HO_ORDER_LIMIT;
    const double limit = offer     ? offer->limit[side > 0]
                         : limited ? ho_limit_price(c, before, side)
                                   : 0.0;
    if (limited && (side > 0 ? q->open > limit : q->open < limit)) {
        ho_fill_resting(d, q, limit, &f);
        return f;
    }
    /* an offer's prices are those of market orders */
    int32_t known = plain || (offer && !(limited && c->fill != HO_FILL_NEXT_OPEN));
    if (!f.stopped && order->kind == HO_ORDER_IOC) {
        const int32_t most = offer ? offer->ioc_most : ho_ioc_most(c, q);
        f.fee = HO_FEE_IOC;
        if (!plain && side * f.lots > most) {
            f.lots = side * most;
            known = 0;
            if (most == 0) {
                return f;
            }
        }
    }
    ho_crossing x;
    if (known) {
        x = *(f.stopped ? &offer->stop : &offer->order[order->offer]);
    } else {
        const ho_liquidity l = ho_quote_liquidity(c, q);
        x = ho_cross(c, &l, f.stopped || limited ? q->open : ho_order_reference(c, q), side,
                     side * f.lots);
    }
    if (limited) { /* no worse than its limit, and no spread is booked */
        f.price = (side > 0 ? limit < x.price : limit > x.price) ? limit : x.price;
    } else {
        f.price = ho_pay_spread(d, &x);
    }
    return f;
}

/* Why a whole position leaves inside or at the close of a bar. */
typedef struct ho_exit_due {
    int32_t stopped, passed, expired;
    int32_t any; /* these or the session's end */
} ho_exit_due;

/* added: a resting order has just increased the position. */
static inline HO_HD ho_exit_due ho_exit_of(const ho_account *a, const ho_quote *q,
                                           const ho_ahead *ahead, int32_t added)
{
    const int32_t trades = ahead->trades;
    ho_exit_due due = {0, 0, 0, 0};
    if (a->lots != 0) {
        due.stopped = trades && ho_stop_touched(a, q->low, q->high);
        due.passed = trades && !added && ho_target_passed(a, q->low, q->high);
        due.expired = trades && (a->has & HO_HAS_EXPIRY) && q->bar >= a->expiry;
        due.any = due.stopped | due.passed | due.expired | (ahead->flattens != 0);
    }
    return due;
}

/* The rest of phases 2 to 4, and the session's end: the whole position leaves, for one reason.
 * known: a crossing by which all of some position leaves in this bar, or NULL. */
static inline HO_HD void ho_fill_exit(ho_desk *d, const ho_quote *q, const ho_exit_due *due,
                                      const ho_crossing *known)
{
    const ho_env_config *c = d->c;
    ho_account *a = d->a;
    const int32_t stopped = due->stopped, passed = due->passed, expired = due->expired;
    const int32_t profit = passed && !stopped, lots = -a->lots, side = lots > 0 ? 1 : -1;
    double price = a->target;
    d->out->ambiguous += stopped && passed;
    if (!profit) {
        const ho_liquidity l = ho_quote_liquidity(c, q);
        const double impact =
            known && known->lots == lots ? known->impact : ho_impact(c, &l, side * lots);
        const ho_crossing x =
            ho_cross_at(c, stopped ? a->stop : q->close, side, side * lots, impact);
        price = ho_pay_spread(d, &x);
    }
    ho_apply(d, lots, price, profit ? HO_FEE_MAKER : HO_FEE_TAKER,
             stopped   ? HO_EXIT_STOP
             : passed  ? HO_EXIT_PROFIT
             : expired ? HO_EXIT_TIME
                       : HO_EXIT_SESSION);
    if (stopped) {
        ho_note_stop(d);
    } else if (passed) {
        d->out->label = 1;
    }
}

/* One step from the close of bar t: sets out->equity, lots, label, ambiguous and the exits (the
 * caller cleared out). equity, size: at the close of t. offer, ledger, bookings: or NULL. Returns
 * 1; 0 when a bar that was to be plain turns out not to be, and the step is to be made again. */
static inline HO_HD int32_t ho_market_step(const ho_env_config *c, const ho_quote *q,
                                           const ho_ahead *ahead, const ho_offer *offer,
                                           ho_account *account, double equity,
                                           const ho_order *order, double size, ho_ledger *ledger,
                                           ho_bookings *bookings, ho_step_out *out)
{
    ho_account copy = *account, *a = &copy; /* stores to it hold up no load of the settings */
    ho_desk d = ho_desk_at(c, q, a, ledger, bookings, out);
    int32_t added = 0;

    if (!ahead->plain && q->jump != 0.0 && a->lots != 0) {
        ho_roll(&d, q->jump, q->before + q->jump);
    }
    if (ahead->trades) {
        const ho_order_fill f = ho_fill_order(&d, order, q, offer, size, equity, ahead);
        if (f.lots != 0) {
            ho_apply(&d, f.lots, f.price, f.fee, f.stopped ? HO_EXIT_STOP : HO_EXIT_SIGNAL);
            added = f.rested && ho_sign((double)a->lots) == ho_sign((double)f.lots);
            if (f.stopped) {
                ho_note_stop(&d);
            }
        }
    }
    const ho_exit_due due = ho_exit_of(a, q, ahead, added);
    if (!ahead->plain && due.any) {
        ho_fill_exit(&d, q, &due, offer ? &offer->stop : NULL);
    }

    const double value = (double)a->lots * c->lot * q->close * c->multiplier;
    const double payment = value * q->funding;
    const double funding = a->lots != 0 && q->funding != 0.0 ? payment : 0.0;
    a->cash -= funding;
    out->equity = a->cash + value;
    out->lots = a->lots;
    if (ledger) {
        ledger->funding += funding;
    }
    if (bookings) {
        bookings->funding = funding;
        bookings->roll_fee = d.roll_fee;
        bookings->crossings = d.crossings;
        bookings->fills = d.fills;
    }
    *account = copy;
    return !(ahead->plain && due.any);
}

/* The window's end: an open position leaves at the crossing price of the last close; q: of the last
 * step. Changes out->equity and out->ret of that step; before: the equity one step earlier. */
static inline HO_HD void ho_market_finish(const ho_env_config *c, const ho_quote *q, ho_account *a,
                                          double before, ho_ledger *ledger, ho_bookings *bookings,
                                          ho_step_out *out)
{
    if (a->lots != 0) {
        ho_desk d = ho_desk_at(c, q, a, ledger, bookings, out);
        if (bookings) {
            d.crossings = bookings->crossings;
            d.fills = bookings->fills;
        }
        ho_leave(&d, q->close, HO_EXIT_END);
        if (bookings) {
            bookings->crossings = d.crossings;
            bookings->fills = d.fills;
        }
        out->equity = a->cash;
        out->ret = (a->cash - before) / before;
    }
}

#endif
