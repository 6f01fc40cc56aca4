/* SPDX-License-Identifier: Apache-2.0
 * A step in parts, as a GPU takes it, against the step in one: with the order looked up in an offer
 * and the ledger kept from the step's bookings, every number has the same bits. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "kernels/cases.h"
#include "kernels/env/market_host.h"
#include "kernels/env/step.h"

enum { BARS = 3000, SESSION_BARS = 97 };

typedef struct walk {
    ho_market_host *host;
    ho_env_lane lane;
    test_market *m;
} walk;

/* A market with gaps, bars without trades, rolls and funding. */
static walk walk_of(const ho_env_config *config, uint64_t seed)
{
    static double roll_jump[BARS], funding[BARS];
    walk w = {.m = test_market_new(BARS)};
    ho_err err = {0};
    const double *sigma;
    test_market_walk(w.m, seed, 100.0, 0.8, config->tick_size);
    for (int32_t t = 0; t < BARS; t++) {
        w.m->session[t] = t / SESSION_BARS;
        roll_jump[t] = t % 211 == 210 ? 1.25 : 0.0;
        funding[t] = t % 50 == 49 ? 1e-4 : 0.0;
        if (t % 37 == 36) {
            w.m->bars[t * HO_BAR_COLUMNS + HO_VOLUME] = 0.0;
        }
    }
    ho_market_data data = {.T = BARS,
                           .bars = w.m->bars,
                           .open_ns = w.m->open_ns,
                           .interval_ns = 60000000000,
                           .session = w.m->session,
                           .roll_jump = roll_jump,
                           .funding = funding,
                           .has_volume = 1};
    const uint64_t key[2] = {seed, 7};
    CHECK_OK(ho_market_host_create(&data, &w.host, &err), &err);
    CHECK_OK(ho_market_host_sigma(w.host, config->sigma_window, &sigma, &err), &err);
    w.lane = ho_env_lane_make(config, (ho_window){0, BARS}, 500, 1, key, sigma);
    return w;
}

static void walk_free(walk *w)
{
    ho_market_host_destroy(&w->host);
    test_market_free(w->m);
}

static ho_crossing order_of_offer(const ho_env_config *c, const ho_env *e, const ho_quote *q,
                                  int32_t i)
{
    ho_offer_part part = ho_offer_part_of(c, i);
    return ho_offer_order(c, &part, &e->account, q, e->size, e->equity, i);
}

/* The rest of an offer from its quotients, as a GPU divides for it. */
static void check_quotients(const ho_env_config *c, const ho_env *e, const ho_quote *q,
                            const ho_offer *offer)
{
    double x[HO_RESTS], price[2];
    for (int32_t i = 0; i < HO_RESTS; i++) {
        const ho_ratio r = ho_rest_ratio(c, q, i);
        x[i] = r.num / r.den;
        if (i <= HO_REST_BUYER) {
            price[i] = c->tick_size > 0.0
                           ? ho_ticks_against(x[i], i == HO_REST_SELLER ? 1 : -1, c->tick_size)
                           : r.num;
        }
    }
    assert_memory_equal(price, offer->limit, sizeof price);
    assert_int_equal(ho_ioc_most_of(c, q->before + q->jump, x[HO_REST_BAND], x[HO_REST_LOTS]),
                     offer->ioc_most);
    assert_true(ho_size_of(c, e->size, q->sigma_next, x[HO_REST_SIZE]) == offer->ahead.size);
}

static ho_offer offer_of(const ho_env_lane *lane, const ho_env *e, ho_ring ring, const ho_quote *q)
{
    const ho_env_config *c = &lane->config;
    ho_offer offer;
    for (int32_t i = 0; i < HO_OFFER_ORDERS; i++) {
        offer.order[i] = order_of_offer(c, e, q, i);
    }
    offer.stop = order_of_offer(c, e, q, HO_OFFER_ORDERS);
    offer.limit[0] = ho_limit_price(c, q->before + q->jump, -1);
    offer.limit[1] = ho_limit_price(c, q->before + q->jump, 1);
    offer.ioc_most = ho_ioc_most(c, q);
    offer.ahead = ho_env_look_ahead(lane, e, ring, q);
    check_quotients(c, e, q, &offer);
    return offer;
}

/* Walks all bars both ways with random actions. Returns the number of round trips. */
static int compare_steps(const ho_env_config *config, uint64_t seed)
{
    walk w = walk_of(config, seed);
    const ho_env_lane *lane = &w.lane;
    const ho_market_view *m = &w.host->view;
    static uint32_t ring[2][HO_RING_WORDS_MAX];
    ho_env whole, parts;
    ho_ledger ledger = {0}, later = {0};
    int trips = 0, plain = 0, again = 0, steps = 0;
    memset(ring, 0, sizeof ring);
    memset(&whole, 0, sizeof whole);
    ho_env_clear(&whole);
    ho_env_begin_at(lane, m, &whole, 0, 0.0, NULL);
    parts = whole;
    for (uint32_t step = 0; step + 1 < BARS; step++) {
        const uint32_t key[2] = {(uint32_t)seed, 3};
        const ho_rng4 r = ho_rng(key, step, 0, 0, HO_RNG_ACTION, 0);
        /* now and then a few bars of holding still, so that barriers are met */
        const int32_t action = r.v[1] % 4 == 0 ? (int32_t)ho_rng_below(r.v[0], HO_ACTIONS)
                                               : (int32_t)(r.v[2] % 2 ? 38 : 2);
        const ho_order order = ho_order_from_action(action);
        ho_step_out out[2];
        ho_env_step(lane, m, &whole, (ho_ring){ring[0], 1}, &order, 0.0f, &ledger, &out[0]);

        const ho_quote quote = ho_market_quote(m, lane->sigma, parts.t);
        const ho_offer offer = offer_of(lane, &parts, (ho_ring){ring[1], 1}, &quote);
        ho_bookings bookings;
        ho_reward_in in;
        ho_ratio ratio[HO_STEP_RATIOS];
        double quotient[HO_STEP_RATIOS];
        ho_env after = parts; /* as a GPU's warp steps: on a copy, which is then kept */
        ho_ahead ahead = offer.ahead;
        ahead.plain = ho_settings_are_plain(&lane->config) &&
                      ho_open_is_plain(&parts.account, &quote) &&
                      ho_order_is_plain(&order, &offer, offer.order[order.offer].lots);
        ahead.wanted = offer.order[order.offer].lots;
        if (!ho_env_step_open(lane, m->n_log2_n, &quote, &ahead, &offer, &after,
                              (ho_ring){ring[1], 1}, &order, NULL, &bookings, &out[1], &in,
                              ratio)) {
            assert_true(ahead.plain);
            after = parts;
            ahead.plain = 0;
            again++;
            assert_true(ho_env_step_open(lane, m->n_log2_n, &quote, &ahead, &offer, &after,
                                         (ho_ring){ring[1], 1}, &order, NULL, &bookings, &out[1],
                                         &in, ratio));
        }
        plain += ahead.plain;
        steps++;
        ho_env_keep(&ahead, &parts, &after);
        for (int32_t i = 0; i < HO_STEP_RATIOS; i++) {
            quotient[i] = ho_quotient(ratio[i].num, ratio[i].den);
        }
        ho_env_step_reward(&lane->config, &in, quotient, 0.0f, &out[1]);
        ho_ledger_enter_costs(&later, &lane->config, &bookings);
        ho_ledger_enter_fills(&later, &lane->config, parts.t, &bookings);

        assert_memory_equal(&whole, &parts, sizeof whole);
        assert_memory_equal(&out[0], &out[1], offsetof(ho_step_out, truncated));
        assert_int_equal(ledger.closed_count, later.closed_count);
        assert_memory_equal(ledger.closed, later.closed,
                            (size_t)ledger.closed_count * sizeof ledger.closed[0]);
        trips += ledger.closed_count;
        ledger.closed_count = later.closed_count = 0;
        assert_true(ledger.realised == later.realised && ledger.fees == later.fees);
        assert_true(ledger.spread == later.spread && ledger.impact == later.impact);
        assert_true(ledger.slippage == later.slippage && ledger.funding == later.funding);
        assert_true(ledger.traded == later.traded);
        if (out[0].end != HO_END_NONE) {
            break;
        }
    }
    walk_free(&w);
    if (ho_settings_are_plain(config)) { /* all kinds of bars were met */
        assert_true(plain > steps / 4 && again > 0 && plain + again < steps);
    } else {
        assert_int_equal(plain + again, 0);
    }
    return trips;
}

static ho_env_config busy_settings(void)
{
    ho_env_config c = ho_env_config_defaults();
    c.max_lots = 7;
    c.initial_capital = 1e6;
    c.stop_loss = 150.0;
    c.profit_target = 120.0;
    c.max_holding = 20;
    c.diversity_penalty = 0.1;
    return c;
}

static void an_offer_and_a_later_ledger_change_no_bit(void **state)
{
    (void)state;
    ho_env_config c = busy_settings();
    assert_true(compare_steps(&c, 1) > 100);
    c.tick_size = 0.25;
    c.spread_ticks = 2.0;
    c.limit_offset = 3.0;
    c.cooldown = 5;
    assert_true(compare_steps(&c, 2) > 100);
    c = busy_settings();
    c.fill = HO_FILL_CLOSE;
    c.flat_at_session_end = 1;
    c.ioc_band = 0.002;
    c.ioc_participation = 0.004; /* a few lots */
    assert_true(compare_steps(&c, 3) > 100);
    c = busy_settings();
    c.allow_short = 0;
    c.barrier_unit = HO_BARRIER_SIGMA;
    c.stop_loss = c.profit_target = 1.5;
    c.sizing = HO_SIZING_VOLATILITY;
    c.reward_base = HO_REWARD_DSR;
    assert_true(compare_steps(&c, 4) > 100);
    c = busy_settings();
    c.initial_capital = 400.0; /* room for some lots only */
    c.max_leverage = 1.0;
    c.ruin_fraction = 0.0;
    assert_true(compare_steps(&c, 5) > 10);
    c.margin_per_lot = 90.0;
    assert_true(compare_steps(&c, 6) > 10);
}

/* The division that ho_room spares never decides otherwise. */
static void room_is_the_quotient_s_floor(void **state)
{
    (void)state;
    ho_env_config c = ho_env_config_defaults();
    ho_account a = {0};
    const uint32_t key[2] = {9, 9};
    c.cash_reserve = 0.1;
    for (uint32_t i = 0; i < 20000; i++) {
        const ho_rng4 r = ho_rng(key, i, 0, 0, HO_RNG_NOISE, 0);
        const double close = 0.01 + 1000.0 * ho_rng_double(r.v[0], r.v[1]);
        const int32_t wanted = 1 + (int32_t)(r.v[2] % 50);
        /* half of them at or next to the border */
        double equity = close * wanted / (c.max_leverage * 0.9);
        equity = r.v[3] % 2 ? equity * 2.0 * ho_rng_double(r.v[3], r.v[2])
                            : nextafter(equity, r.v[3] % 4 ? 0.0 : 1e9);
        const double money = c.max_leverage * equity * (1.0 - c.cash_reserve);
        const int32_t exact = ho_floor_lots(money / (close * c.multiplier * c.lot));
        const int32_t room = ho_room(&c, &a, close, equity, 0, wanted);
        assert_true(room == exact || (room == wanted && exact > wanted));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_offer_and_a_later_ledger_change_no_bit),
        cmocka_unit_test(room_is_the_quotient_s_floor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
