/* SPDX-License-Identifier: Apache-2.0
 * What each order would meet at the next bar's open, and what the step does whatever is ordered,
 * worked out before an order is chosen: the costly part of a fill depends on the account, the quote
 * and the order's size alone. A step without an offer works out the one order it has; the numbers
 * are the same. */
#ifndef HO_KERNELS_ENV_OFFER_H
#define HO_KERNELS_ENV_OFFER_H

#include <stdint.h>

#include "kernels/env/diversity.h"
#include "kernels/env/lane.h"
#include "kernels/env/orders.h"
#include "kernels/env/quote.h"
#include "kernels/env/ratio.h"
#include "kernels/env/state.h"
#include "kernels/hd.h"
#include "kernels/shapes.h"

enum { HO_OFFER_ORDERS = HO_EXPOSURES * HO_URGENCIES };

/* What a step does whatever is ordered. */
typedef struct ho_ahead {
    double size;             /* lots at exposure 1 of the decision after it */
    double ruin;             /* an equity that ends the episode, and less */
    int32_t t, steps;        /* after it */
    int32_t end;             /* ho_episode_end, unless by ruin or a barrier */
    int32_t anchored;        /* its equity is an anchor */
    int32_t trades;          /* the bar fills orders */
    int32_t flattens;        /* an open position leaves at the bar's close */
    int32_t diverse, dsr;    /* diversity is on; the reward is the differential Sharpe ratio */
    int32_t plain;           /* a constant 1 in the step of a plain bar (kernels/env/fill.h) */
    int32_t wanted;          /* signed lots of the order, in a plain bar */
    ho_category_place place; /* with diversity */
} ho_ahead;

typedef struct ho_offer {
    ho_crossing order[HO_OFFER_ORDERS]; /* [exposure][urgency] as a market order; lots 0: none */
    ho_crossing stop;                   /* the whole position left at the open */
    HO_ALIGN16 ho_ahead ahead;
    double limit[2];  /* limit price of a seller, of a buyer */
    int32_t ioc_most; /* ho_ioc_most */
} ho_offer;

/* No step leads on from bar t of these flags: the window or an unsplit stretch of data ends there.
 */
static inline HO_HD int32_t ho_is_last(const ho_env_lane *lane, int32_t t, int32_t flags)
{
    return (t + 1 >= lane->end) | ((flags & HO_BAR_SPLIT_NEXT) != 0);
}

/* Lots at exposure 1; with volatility sizing they move only on a change of at least resize_band.
 * before: those in force, < 0: none; sigma: at the decision's bar; aim: target_vol / sigma. */
static inline HO_HD double ho_size_of(const ho_env_config *c, double before, double sigma,
                                      double aim)
{
    const int32_t aims = c->sizing == HO_SIZING_VOLATILITY, kelly = c->sizing == HO_SIZING_KELLY;
    const double share = sigma > 0.0 && aim < c->vol_cap ? aim : c->vol_cap;
    const double size = (double)c->max_lots * (kelly ? c->kelly_share : aims ? share : 1.0);
    const int32_t stays = (before >= 0.0) & (fabs(size - before) < c->resize_band * before);
    return aims & stays ? before : size;
}

static inline HO_HD double ho_size_at(const ho_env_config *c, double before, double sigma)
{
    const int32_t aims = c->sizing == HO_SIZING_VOLATILITY && sigma > 0.0;
    return ho_size_of(c, before, sigma, aims ? c->target_vol / sigma : 0.0);
}

/* What is the same in every bar. */
static inline HO_HD void ho_ahead_begin(const ho_env_config *c, ho_ahead *ahead)
{
    const ho_category_place nowhere = {0, 0, 0, 0, {0, 0, 0}};
    ahead->ruin = c->ruin_fraction * c->initial_capital;
    ahead->dsr = c->reward_base == HO_REWARD_DSR;
    ahead->diverse = ho_diversity_on(c);
    ahead->plain = ahead->wanted = 0;
    ahead->place = nowhere;
}

/* All else but the place, from the close of bar `begin`, `done` steps into the episode. size: lots
 * at exposure 1 of the decision after it; round: done + 1 is a multiple of the lane's length; q: of
 * bar begin + 1. */
static inline HO_HD void ho_ahead_bar(const ho_env_lane *lane, int32_t begin, int32_t done,
                                      int32_t round, double size, const ho_quote *q,
                                      ho_ahead *ahead)
{
    const ho_env_config *c = &lane->config;
    const int32_t t = begin + 1, steps = done + 1;
    ahead->t = t;
    ahead->steps = steps;
    ahead->size = size;
    const int32_t long_enough = (lane->evaluation == 0) & (steps >= lane->length);
    ahead->end = ho_is_last(lane, t, q->flags) ? HO_END_WINDOW
                 : long_enough                 ? HO_END_LENGTH
                                               : HO_END_NONE;
    ahead->anchored = (lane->evaluation != 0) & (round != 0);
    ahead->trades = !((c->has_volume != 0) & (q->volume == 0.0));
    ahead->flattens = (c->flat_at_session_end != 0) & ((q->flags & HO_BAR_SESSION_END) != 0);
}

/* e: before the step; q: of bar e->t + 1; size: lots at exposure 1 of the decision after it. */
static inline HO_HD ho_ahead ho_env_look_ahead_of(const ho_env_lane *lane, const ho_env *e,
                                                  ho_ring ring, const ho_quote *q, double size)
{
    ho_ahead ahead;
    ho_ahead_begin(&lane->config, &ahead);
    ho_ahead_bar(lane, e->t, e->steps, (e->steps + 1) % lane->length == 0, size, q, &ahead);
    if (ahead.diverse) {
        ahead.place = ho_diversity_place(&lane->config, e, ring);
    }
    return ahead;
}

static inline HO_HD ho_ahead ho_env_look_ahead(const ho_env_lane *lane, const ho_env *e,
                                               ho_ring ring, const ho_quote *q)
{
    return ho_env_look_ahead_of(lane, e, ring, q,
                                ho_size_at(&lane->config, e->size, q->sigma_next));
}

/* The price that an order of the next bar pays the spread on. */
static inline HO_HD double ho_order_reference(const ho_env_config *c, const ho_quote *q)
{
    return c->fill == HO_FILL_NEXT_OPEN ? q->open : q->before + q->jump;
}

static inline HO_HD ho_liquidity ho_quote_liquidity(const ho_env_config *c, const ho_quote *q)
{
    ho_liquidity l;
    const double scale = c->impact_coef * q->sigma; /* loads that wait for nothing */
    l.impact_scale = c->has_volume ? scale : 0.0;
    l.mean_volume = q->mean_volume;
    return l;
}

/* Most lots that an IOC order fills: 0 outside of its band, INT32_MAX without volume. close: what
 * the band is about; of_close: the order's reference / close; lots: ioc_participation of the bar's
 * volume. */
static inline HO_HD int32_t ho_ioc_most_of(const ho_env_config *c, double close, double of_close,
                                           double lots)
{
    const int32_t outside = (close == 0.0) | (fabs(of_close - 1.0) > c->ioc_band);
    const int32_t most = ho_floor_lots(lots);
    return outside ? 0 : c->has_volume ? most : INT32_MAX;
}

static inline HO_HD int32_t ho_ioc_most(const ho_env_config *c, const ho_quote *q)
{
    const double close = q->before + q->jump;
    return ho_ioc_most_of(c, close, close != 0.0 ? ho_order_reference(c, q) / close : 0.0,
                          c->ioc_participation * q->volume / c->lot);
}

/* The quotients of an offer's rest, so that a GPU can divide for all at once. */
enum { HO_REST_SELLER, HO_REST_BUYER, HO_REST_BAND, HO_REST_LOTS, HO_REST_SIZE, HO_RESTS };

/* Quotient number i: a limit price in ticks (num: the price), ho_ioc_most_of's of_close and lots,
 * ho_size_of's aim. 1 stands for a divisor that is not there, whose quotient nobody uses. All of it
 * is worked out whatever i is: a GPU's threads do not part for it. */
static inline HO_HD ho_ratio ho_rest_ratio(const ho_env_config *c, const ho_quote *q, int32_t i)
{
    const double close = q->before + q->jump, reference = ho_order_reference(c, q);
    const double limit = ho_limit_behind(c, close, i == HO_REST_SELLER ? -1 : 1);
    const double lots = c->ioc_participation * q->volume;
    const double num = i == HO_REST_SIZE   ? c->target_vol
                       : i == HO_REST_LOTS ? lots
                       : i == HO_REST_BAND ? reference
                                           : limit;
    const double den = i == HO_REST_SIZE   ? q->sigma_next
                       : i == HO_REST_LOTS ? c->lot
                       : i == HO_REST_BAND ? close
                                           : c->tick_size;
    return ho_ratio_of(num, den != 0.0 ? den : 1.0);
}

/* Crossing with signed lots; all zero for none. */
static inline HO_HD ho_crossing ho_offer_cross(const ho_env_config *c, const ho_quote *q,
                                               double reference, int32_t lots)
{
    ho_crossing x = {0.0, 0.0, 0.0, 0.0, 0};
    if (lots != 0) {
        ho_liquidity l = ho_quote_liquidity(c, q);
        x = ho_cross(c, &l, reference, lots > 0 ? 1 : -1, lots < 0 ? -lots : lots);
    }
    return x;
}

/* Of an order of an offer, what bars of one size share. */
typedef struct ho_offer_part {
    double share;   /* see ho_lots_towards */
    double size;    /* lots at exposure 1 that `target` is for; 0: none yet */
    int32_t target; /* signed lots */
} ho_offer_part;

/* Order i of an offer; i = HO_OFFER_ORDERS: its stop. */
static inline HO_HD ho_offer_part ho_offer_part_of(const ho_env_config *c, int32_t i)
{
    ho_offer_part part;
    part.share = ho_urgency_share(c, i % HO_URGENCIES);
    part.size = 0.0;
    part.target = 0;
    return part;
}

/* size: lots at exposure 1. */
static inline HO_HD ho_crossing ho_offer_order(const ho_env_config *c, ho_offer_part *part,
                                               const ho_account *a, const ho_quote *q, double size,
                                               double equity, int32_t i)
{
    int32_t lots = -a->lots;
    double reference = q->open;
    if (part->size != size) {
        const double exposure = 0.5 * (double)(i / HO_URGENCIES - 2);
        part->size = size;
        part->target = ho_target_lots(ho_allowed_exposure(c, exposure), size);
    }
    if (i < HO_OFFER_ORDERS) {
        lots =
            ho_lots_towards(c, a, part->target, part->share, q->before + q->jump, equity, q->bar);
        reference = ho_order_reference(c, q);
    }
    return ho_offer_cross(c, q, reference, lots);
}

#endif
