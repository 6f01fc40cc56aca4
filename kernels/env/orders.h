/* SPDX-License-Identifier: Apache-2.0
 * From an action to a wanted trade, and the price of crossing the spread.
 * spec/environment.md "Action" and "One step"; the order of operations is market_ref.py's. */
#ifndef HO_KERNELS_ENV_ORDERS_H
#define HO_KERNELS_ENV_ORDERS_H

#include <math.h>
#include <stdint.h>

#include "kernels/env/config.h"
#include "kernels/env/state.h"
#include "kernels/hd.h"
#include "kernels/shapes.h"

#define HO_PRICE_EPS 1e-9 /* in ticks and lots: what a price or amount may miss by rounding */

typedef struct ho_order {
    double exposure;  /* share of size, [-1, 1] */
    int32_t kind;     /* HO_ORDER_* */
    int32_t urgency;  /* index of urgency_fraction */
    int32_t category; /* 0 short, 1 flat, 2 long */
    int32_t hold;     /* 1: keep the position as it is */
    int32_t offer;    /* index of its ho_offer.order, -1: none */
} ho_order;

static inline HO_HD int32_t ho_sign(double x)
{
    return (x > 0.0) - (x < 0.0);
}

/* side, +1 or -1, as a factor; without a conversion, which takes a GPU longer than a product. */
static inline HO_HD double ho_side_factor(int32_t side)
{
    return side > 0 ? 1.0 : -1.0;
}

static inline HO_HD ho_order ho_order_target(double exposure)
{
    ho_order o;
    o.exposure = exposure;
    o.kind = HO_ORDER_MARKET;
    o.urgency = 2;
    o.category = 1 + ho_sign(exposure);
    o.hold = 0;
    o.offer = -1;
    return o;
}

/* Composed action: exposure * 9 + order * 3 + urgency. */
static inline HO_HD ho_order ho_order_from_action(int32_t action)
{
    const int32_t step = action / 9 - 2; /* in halves */
    ho_order o;
    o.exposure = 0.5 * (double)step;
    o.kind = (action / 3) % 3;
    o.urgency = action % 3;
    o.category = 1 + (step > 0) - (step < 0);
    o.hold = 0;
    o.offer = action / 9 * HO_URGENCIES + o.urgency;
    return o;
}

/* The composed index of choice e of the exposure5 set: market, aggressive. */
static inline HO_HD int32_t ho_action_from_exposure(int32_t e)
{
    return e * 9 + 2;
}

static inline HO_HD double ho_round_half_away(double x)
{
    double r = floor(fabs(x) + 0.5);
    return x < 0.0 ? -r : r;
}

/* floor of x >= 0 with rounding forgiven, cut to what an int32 amount of lots may be */
static inline HO_HD int32_t ho_floor_lots(double x)
{
    double lots = x + HO_PRICE_EPS;
    return (int32_t)(lots < 2e9 ? lots : 2e9); /* which rounds down */
}

/* A price of so many ticks, on the tick that is worse for a trader of this side: up for a buyer,
 * down for a seller. */
static inline HO_HD double ho_ticks_against(double ticks, int32_t side, double tick)
{
    return (side > 0 ? ceil(ticks - HO_PRICE_EPS) : floor(ticks + HO_PRICE_EPS)) * tick;
}

static inline HO_HD double ho_tick_against(double price, int32_t side, double tick)
{
    return tick > 0.0 ? ho_ticks_against(price / tick, side, tick) : price;
}

/* What filling in bar b costs beside the fee: known when the bar begins. */
typedef struct ho_liquidity {
    double impact_scale; /* impact_coef * sigma[b - 1]; 0 = no impact */
    double mean_volume;  /* of the 20 bars to b - 1 */
} ho_liquidity;

/* What crossing with `lots` > 0 costs beside the half-spread, as a share of the reference. */
static inline HO_HD double ho_impact(const ho_env_config *c, const ho_liquidity *liquidity,
                                     int32_t lots)
{
    if (!(liquidity->impact_scale > 0.0)) {
        return 0.0;
    }
    const double depth = liquidity->mean_volume > c->lot ? liquidity->mean_volume : c->lot;
    return liquidity->impact_scale * sqrt((double)lots * c->lot / depth);
}

/* Crosses the spread with `lots` > 0 on a side: half-spread and impact against the trader, then the
 * tick. */
static inline HO_HD ho_crossing ho_cross_at(const ho_env_config *c, double reference, int32_t side,
                                            int32_t lots, double impact)
{
    double half, price;
    if (c->spread_ticks > 0.0) {
        half = c->spread_ticks * c->tick_size * 0.5;
        price = reference + ho_side_factor(side) * (half + fabs(reference) * impact);
    } else {
        half = c->spread_bps * 0.5e-4;
        price = reference + ho_side_factor(side) * fabs(reference) * (half + impact);
        half = fabs(reference) * half;
    }
    ho_crossing x;
    x.price = ho_tick_against(price, side, c->tick_size);
    x.reference = reference;
    x.half = half;
    x.impact = impact;
    x.lots = side * lots;
    return x;
}

static inline HO_HD ho_crossing ho_cross(const ho_env_config *c, const ho_liquidity *liquidity,
                                         double reference, int32_t side, int32_t lots)
{
    return ho_cross_at(c, reference, side, lots, ho_impact(c, liquidity, lots));
}

/* Books spread, impact and slippage (rounding is their remainder). */
static inline HO_HD void ho_ledger_cross(ho_ledger *ledger, const ho_env_config *c,
                                         const ho_crossing *x)
{
    int32_t side = x->lots < 0 ? -1 : 1;
    double unit = (double)(side * x->lots) * c->lot * c->multiplier;
    double spread = x->half * unit, impact = fabs(x->reference) * x->impact * unit;
    double slippage = ho_side_factor(side) * (x->price - x->reference) * unit;
    ledger->spread += spread;
    ledger->impact += impact;
    ledger->slippage += slippage;
}

/* The price of ho_cross, booked where there is a ledger. */
static inline HO_HD double ho_crossing_price(const ho_env_config *c, const ho_liquidity *liquidity,
                                             double reference, int32_t side, int32_t lots,
                                             ho_ledger *ledger)
{
    ho_crossing x = ho_cross(c, liquidity, reference, side, lots);
    if (ledger) {
        ho_ledger_cross(ledger, c, &x);
    }
    return x.price;
}

/* A limit price before it is put on a tick: limit_offset half-spreads behind the close. */
static inline HO_HD double ho_limit_behind(const ho_env_config *c, double close, int32_t side)
{
    const int32_t ticks = c->spread_ticks > 0.0;
    const double spread = ticks ? c->spread_ticks * c->tick_size * 0.5 : c->spread_bps;
    return close - ho_side_factor(side) * (ticks ? 1.0 : fabs(close)) * c->limit_offset * spread *
                       (ticks ? 1.0 : 0.5e-4);
}

/* A limit price, on the tick away from the market. */
static inline HO_HD double ho_limit_price(const ho_env_config *c, double close, int32_t side)
{
    return ho_tick_against(ho_limit_behind(c, close, side), -side, c->tick_size);
}

/* Most lots that may be held after a trade in `bar` that grows or flips the position; `wanted` > 0
 * where there is room for so many and more. */
static inline HO_HD int32_t ho_room(const ho_env_config *c, const ho_account *a, double close,
                                    double equity, int32_t bar, int32_t wanted)
{
    if (c->cooldown > 0 && (a->has & HO_WAS_STOPPED) && bar <= a->last_stop + c->cooldown) {
        return 0;
    }
    if (close <= 0.0) {
        return 0;
    }
    const int32_t margin = c->margin_per_lot > 0.0;
    const double money = (margin ? equity : c->max_leverage * equity) * (1.0 - c->cash_reserve);
    const double per_lot = margin ? c->margin_per_lot : close * c->multiplier * c->lot;
    if ((double)wanted * per_lot < money) { /* so the quotient is not below it, spares it */
        return wanted;
    }
    return ho_floor_lots((money > 0.0 ? money : 0.0) / per_lot);
}

/* The exposure an order may ask for. */
static inline HO_HD double ho_allowed_exposure(const ho_env_config *c, double exposure)
{
    return !c->allow_short && exposure < 0.0 ? 0.0 : exposure;
}

/* The share of what is missing that an order trades at once. */
static inline HO_HD double ho_urgency_share(const ho_env_config *c, int32_t urgency)
{
    const double *f = c->urgency_fraction;
    /* no index, so that a GPU may keep the settings in registers */
    return urgency == 0 ? f[0] : urgency == 1 ? f[1] : f[2];
}

/* Signed lots of an allowed exposure; size: lots at exposure 1. */
static inline HO_HD int32_t ho_target_lots(double exposure, double size)
{
    return (int32_t)ho_round_half_away(exposure * size);
}

/* Signed lots on the way to a position, after urgency and limits; 0 for none. close: of the
 * decision bar. */
static inline HO_HD int32_t ho_lots_towards(const ho_env_config *c, const ho_account *a,
                                            int32_t target, double share, double close,
                                            double equity, int32_t bar)
{
    int32_t have = a->lots;
    int32_t delta = target - have;
    if (delta == 0) {
        return 0;
    }
    int32_t side = delta > 0 ? 1 : -1;
    int32_t lots = ho_floor_lots(share * (double)(side * delta));
    int32_t after = have + side * (lots > 1 ? lots : 1);
    int32_t have_abs = have < 0 ? -have : have;
    int32_t after_abs = after < 0 ? -after : after;
    int32_t after_side = ho_sign((double)after);
    int32_t flips = have != 0 && after_side == -ho_sign((double)have);
    if (after_abs > have_abs || flips) {
        int32_t room = ho_room(c, a, close, equity, bar, after_abs);
        if (!flips && room < have_abs) {
            room = have_abs; /* never forces a reduction */
        }
        if (after_abs > room) {
            after = after_side * room;
        }
    }
    return after - have;
}

/* Signed lots the order asks for: see ho_lots_towards. size: lots at exposure 1. */
static inline HO_HD int32_t ho_wanted_trade(const ho_env_config *c, const ho_account *a,
                                            const ho_order *order, double size, double close,
                                            double equity, int32_t bar)
{
    const double exposure = ho_allowed_exposure(c, order->exposure);
    return order->hold ? 0
                       : ho_lots_towards(c, a, ho_target_lots(exposure, size),
                                         ho_urgency_share(c, order->urgency), close, equity, bar);
}

#endif
