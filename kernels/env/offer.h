/* SPDX-License-Identifier: Apache-2.0
 * What each order would meet at the next bar's open, worked out before one of them is chosen: the
 * costly part of a fill depends on the account, the quote and the order's size alone. A step
 * without an offer works out the one order it has; the numbers are the same. */
#ifndef HO_KERNELS_ENV_OFFER_H
#define HO_KERNELS_ENV_OFFER_H

#include <stdint.h>

#include "kernels/env/orders.h"
#include "kernels/env/quote.h"
#include "kernels/hd.h"
#include "kernels/shapes.h"

enum { HO_OFFER_ORDERS = HO_EXPOSURES * HO_URGENCIES };

typedef struct ho_offer {
    ho_crossing order[HO_OFFER_ORDERS]; /* [exposure][urgency] as a market order; lots 0: none */
    ho_crossing stop;                   /* the whole position left at the open */
    double limit[2];                    /* limit price of a seller, of a buyer */
    int32_t ioc_most;                   /* ho_ioc_most */
} ho_offer;

/* The price that an order of the next bar pays the spread on. */
static inline HO_HD double ho_order_reference(const ho_env_config *c, const ho_quote *q)
{
    return c->fill == HO_FILL_NEXT_OPEN ? q->open : q->before + q->jump;
}

static inline HO_HD ho_liquidity ho_quote_liquidity(const ho_env_config *c, const ho_quote *q)
{
    ho_liquidity l;
    l.impact_scale = c->has_volume ? c->impact_coef * q->sigma : 0.0;
    l.mean_volume = q->mean_volume;
    return l;
}

/* Most lots that an IOC order fills: 0 outside of its band, INT32_MAX without volume. */
static inline HO_HD int32_t ho_ioc_most(const ho_env_config *c, const ho_quote *q)
{
    double close = q->before + q->jump;
    if (close == 0.0 || fabs(ho_order_reference(c, q) / close - 1.0) > c->ioc_band) {
        return 0;
    }
    return c->has_volume ? ho_floor_lots(c->ioc_participation * q->volume / c->lot) : INT32_MAX;
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

/* Order i of an offer; i = HO_OFFER_ORDERS: its stop. size, equity: see ho_wanted_trade. */
static inline HO_HD ho_crossing ho_offer_order(const ho_env_config *c, const ho_account *a,
                                               const ho_quote *q, double size, double equity,
                                               int32_t i)
{
    int32_t lots = -a->lots;
    double reference = q->open;
    if (i < HO_OFFER_ORDERS) {
        ho_order order = ho_order_target(0.5 * (double)(i / HO_URGENCIES - 2));
        order.urgency = i % HO_URGENCIES;
        lots = ho_wanted_trade(c, a, &order, size, q->before + q->jump, equity, q->bar);
        reference = ho_order_reference(c, q);
    }
    return ho_offer_cross(c, q, reference, lots);
}

#endif
