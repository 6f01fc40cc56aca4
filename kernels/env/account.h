/* SPDX-License-Identifier: Apache-2.0
 * Booking trades: cash, position, average entry, fees, and the round trips of the ledger.
 * Money is float64 and the order of operations is market_ref.py's; compile without contraction. */
#ifndef HO_KERNELS_ENV_ACCOUNT_H
#define HO_KERNELS_ENV_ACCOUNT_H

#include <math.h>
#include <stdint.h>

#include "kernels/env/barriers.h"
#include "kernels/env/config.h"
#include "kernels/env/offer.h"
#include "kernels/env/orders.h"
#include "kernels/env/quote.h"
#include "kernels/env/state.h"
#include "kernels/hd.h"

/* What every booking in one bar needs. */
typedef struct ho_desk {
    const ho_env_config *c;
    ho_account *a;
    ho_ledger *ledger;     /* or NULL */
    ho_bookings *bookings; /* NULL, or what a ledger kept later needs */
    ho_step_out *out;
    const ho_quote *q;        /* of the filling bar */
    double roll_fee;          /* of this bar */
    int32_t bar;              /* the filling bar */
    int32_t crossings, fills; /* bookings so far */
} ho_desk;

static inline HO_HD double ho_fee(const ho_env_config *c, double amount, double price, int32_t kind)
{
    return amount * fabs(price) * c->multiplier * c->fee_bps[kind] * 1e-4 +
           amount * c->fee_per_unit;
}

static inline HO_HD void ho_ledger_close(ho_ledger *ledger, const ho_open_trade *open, int32_t bar,
                                         double price, int32_t reason)
{
    ho_trade *t = &ledger->closed[ledger->closed_count++];
    t->entry_bar = open->entry_bar;
    t->exit_bar = bar;
    t->entry_price = open->entry_price;
    t->exit_price = price;
    t->side = open->side;
    t->reason = reason;
    t->quantity = open->quantity;
    t->max_quantity = open->max_quantity;
    t->pnl = open->pnl;
    t->fees = open->fees;
    t->net = open->pnl - open->fees;
}

static inline HO_HD void ho_open_trade_begin(ho_open_trade *open, int32_t bar, double price,
                                             int32_t side, double fees, double quantity)
{
    open->entry_bar = bar;
    open->entry_price = price;
    open->side = side;
    open->pnl = 0.0;
    open->fees = fees;
    open->quantity = quantity;
    open->max_quantity = quantity;
}

/* A round trip closed in this step. The loop has constant indices, so that a GPU keeps `out` in
 * registers. */
static inline HO_HD void ho_step_out_exit(ho_step_out *out, int32_t reason)
{
    for (int32_t i = 0; i < HO_CLOSED_MAX; i++) {
        if (i == out->exit_count) {
            out->exit_reason[i] = reason;
        }
    }
    out->exit_count++;
}

/* Enters a booking of `bar`. */
static inline HO_HD void ho_ledger_fill(ho_ledger *ledger, const ho_env_config *c, int32_t bar,
                                        const ho_fill_note *fill)
{
    const ho_fill_note f = *fill; /* and the open trade: no store holds up a load */
    ho_open_trade open = ledger->open;
    int32_t lots = f.lots, old = f.held, now = old + lots;
    int32_t lots_abs = lots < 0 ? -lots : lots, old_abs = old < 0 ? -old : old;
    int32_t now_abs = now < 0 ? -now : now;
    int32_t lots_side = lots < 0 ? -1 : 1, old_side = ho_sign((double)old);
    int32_t against = old != 0 && lots_side != old_side;
    int32_t opened = now != 0 && (old == 0 || ho_sign((double)now) != old_side);
    int32_t closed_trade = old != 0 && (now == 0 || opened);
    int32_t closed = !against ? 0 : lots_abs < old_abs ? lots_abs : old_abs;
    double amount = (double)lots_abs * c->lot, traded = amount * fabs(f.price) * c->multiplier;
    double close_fee = ho_quotient(f.fee * (double)closed, (double)lots_abs);
    ledger->fees += f.fee;
    ledger->traded += traded;
    if (closed > 0) {
        double pnl = (f.price - f.entry_before) * (double)closed * c->lot *
                     ho_side_factor(old_side) * c->multiplier;
        ledger->realised += pnl;
        open.pnl += pnl;
        open.fees += close_fee;
    }
    if (closed_trade) {
        ho_ledger_close(ledger, &open, bar, f.price, f.reason);
    }
    if (opened) {
        ho_open_trade_begin(&open, bar, f.price, ho_sign((double)now), f.fee - close_fee,
                            (double)now_abs * c->lot);
    } else if (now != 0 && !against) {
        double held = (double)now_abs * c->lot;
        open.fees += f.fee;
        open.quantity += amount;
        open.max_quantity = held > open.max_quantity ? held : open.max_quantity;
        open.entry_price = f.entry;
    }
    ledger->open = open;
}

/* Enters a bar's bookings, in two parts that share nothing. The first: spread, impact, slippage and
 * funding. */
static inline HO_HD void ho_ledger_enter_costs(ho_ledger *ledger, const ho_env_config *c,
                                               const ho_bookings *b)
{
    for (int32_t i = 0; i < b->crossings; i++) {
        ho_ledger_cross(ledger, c, &b->crossing[i]);
    }
    ledger->funding += b->funding;
}

/* The second: fees and round trips. */
static inline HO_HD void ho_ledger_enter_fills(ho_ledger *ledger, const ho_env_config *c,
                                               int32_t bar, const ho_bookings *b)
{
    ledger->fees += b->roll_fee;
    ledger->open.fees += b->roll_fee;
    for (int32_t i = 0; i < b->fills; i++) {
        ho_ledger_fill(ledger, c, bar, &b->fill[i]);
    }
}

/* Pays the spread: the price of a crossing, which is noted. */
static inline HO_HD double ho_pay_spread(ho_desk *d, const ho_crossing *x)
{
    if (d->ledger) {
        ho_ledger_cross(d->ledger, d->c, x);
    }
    if (d->bookings) {
        d->bookings->crossing[d->crossings++] = *x;
    }
    return x->price;
}

/* Books a signed trade in lots at a price. reason: of a round trip that it closes. */
static inline HO_HD void ho_apply(ho_desk *d, int32_t lots, double price, int32_t fee_kind,
                                  int32_t reason)
{
    const ho_env_config *c = d->c;
    ho_account *a = d->a;
    int32_t old = a->lots, now = old + lots;
    int32_t lots_abs = lots < 0 ? -lots : lots, old_abs = old < 0 ? -old : old;
    int32_t now_abs = now < 0 ? -now : now;
    int32_t lots_side = lots < 0 ? -1 : 1, old_side = ho_sign((double)old);
    double amount = (double)lots_abs * c->lot, entry = a->entry;
    double fee = ho_fee(c, amount, price, fee_kind);
    int32_t against = old != 0 && lots_side != old_side;
    int32_t opened = now != 0 && (old == 0 || ho_sign((double)now) != old_side);
    int32_t closed_trade = old != 0 && (now == 0 || opened);

    a->cash -= ho_side_factor(lots_side) * (double)lots_abs * c->lot * price * c->multiplier + fee;
    if (closed_trade) {
        ho_step_out_exit(d->out, reason);
    }
    if (opened) {
        a->entry = price;
    } else if (now != 0 && !against) {
        a->entry = (entry * (double)old_abs + price * (double)lots_abs) / (double)now_abs;
    }
    if (d->ledger || d->bookings) {
        ho_fill_note f;
        f.price = price;
        f.fee = fee;
        f.entry_before = entry;
        f.entry = a->entry;
        f.lots = lots;
        f.held = old;
        f.reason = reason;
        if (d->ledger) {
            ho_ledger_fill(d->ledger, c, d->bar, &f);
        }
        if (d->bookings) {
            d->bookings->fill[d->fills++] = f;
        }
    }
    a->lots = now;
    if (now == 0) {
        a->entry = 0.0;
        a->has &= HO_WAS_STOPPED;
    }
    if (opened) {
        ho_set_barriers(c, a, d->bar, d->q->sigma);
    }
}

/* Closes the whole position at the crossing price of a reference. */
static inline HO_HD void ho_leave(ho_desk *d, double reference, int32_t reason)
{
    int32_t lots = d->a->lots, side = lots > 0 ? -1 : 1;
    const ho_liquidity l = ho_quote_liquidity(d->c, d->q);
    ho_crossing x = ho_cross(d->c, &l, reference, side, lots < 0 ? -lots : lots);
    ho_apply(d, -lots, ho_pay_spread(d, &x), HO_FEE_TAKER, reason);
}

/* A contract roll: entry, stop and target move by the jump, equity does not; two taker fees. */
static inline HO_HD void ho_roll(ho_desk *d, double jump, double close)
{
    ho_account *a = d->a;
    double q = (double)a->lots * d->c->lot;
    a->cash -= q * jump * d->c->multiplier;
    double fee = 2.0 * ho_fee(d->c, fabs(q), close, HO_FEE_TAKER);
    a->cash -= fee;
    a->entry += jump;
    a->target += jump;
    a->stop += jump;
    if (d->ledger) {
        d->ledger->fees += fee;
        d->ledger->open.fees += fee;
    }
    d->roll_fee = fee;
}

#endif
