/* SPDX-License-Identifier: Apache-2.0
 * Episodes in training: starts, ends, recycling, what persists between epochs, and the invariants
 * that replay and advantage estimates rely on. */
#include <stdlib.h>

#include "check.h"
#include "kernels/cases.h"
#include "kernels/env/market_host.h"
#include "kernels/env/step.h"

enum { SLOTS = 8, LENGTH = 50 };

/* One lane with its slots on a random market. */
typedef struct lane_test {
    test_market *m;
    ho_market_host *host;
    ho_env_lane lane;
    ho_env env[SLOTS];
    uint32_t ring[SLOTS][HO_RING_WORDS_MAX];
    ho_ledger ledger[SLOTS];
} lane_test;

static lane_test *lane_create(const ho_env_config *config, int64_t T, ho_window window)
{
    lane_test *l = calloc(1, sizeof *l);
    ho_err err = {0};
    const uint64_t key[2] = {11, 12};
    const double *sigma;
    l->m = test_market_new(T);
    test_market_walk(l->m, 3, 100.0, 0.3, 0.0);
    ho_market_data data = {.T = T,
                           .bars = l->m->bars,
                           .open_ns = l->m->open_ns,
                           .interval_ns = 60000000000,
                           .session = l->m->session,
                           .has_volume = 1};
    CHECK_OK(ho_market_host_create(&data, &l->host, &err), &err);
    CHECK_OK(ho_market_host_sigma(l->host, config->sigma_window, &sigma, &err), &err);
    l->lane = ho_env_lane_make(config, window, LENGTH, 0, key, sigma);
    for (int i = 0; i < SLOTS; i++) {
        ho_env_clear(&l->env[i]);
    }
    return l;
}

static void lane_free(lane_test *l)
{
    ho_market_host_destroy(&l->host);
    test_market_free(l->m);
    free(l);
}

static ho_env_config lane_settings(void)
{
    ho_env_config c = ho_env_config_defaults();
    c.max_lots = 100;
    c.impact_coef = 0.0;
    return c;
}

/* A random action of the lane. */
static ho_order random_order(const ho_env_lane *lane, uint32_t step, uint32_t slot, uint32_t epoch)
{
    ho_rng4 r = ho_rng(lane->key, step, slot, epoch, HO_RNG_ACTION, 0);
    return ho_order_from_action((int32_t)ho_rng_below(r.v[0], HO_ACTIONS));
}

static void begin_epoch(lane_test *l, uint32_t epoch)
{
    for (uint32_t i = 0; i < SLOTS; i++) {
        ho_env_epoch_begin(&l->lane, &l->host->view, &l->env[i], i, epoch, &l->ledger[i]);
    }
}

static ho_step_out step_slot(lane_test *l, uint32_t step, uint32_t slot, uint32_t epoch)
{
    ho_step_out out;
    ho_ring ring = {l->ring[slot], 1};
    ho_order order = random_order(&l->lane, step, slot, epoch);
    l->ledger[slot].closed_count = 0;
    ho_env_step(&l->lane, &l->host->view, &l->env[slot], ring, &order, 0.0f, &l->ledger[slot],
                &out);
    return out;
}

/* flashbax 3, stable-baselines3 934 */
static void the_next_state_never_comes_from_another_episode(void **state)
{
    (void)state;
    ho_env_config c = lane_settings();
    lane_test *l = lane_create(&c, 400, (ho_window){30, 390});
    for (uint32_t epoch = 0; epoch < 20; epoch++) {
        begin_epoch(l, epoch);
        for (uint32_t s = 0; s < LENGTH; s++) {
            for (uint32_t i = 0; i < SLOTS; i++) {
                int32_t t = l->env[i].t, steps = l->env[i].steps;
                ho_step_out out = step_slot(l, s, i, epoch);
                /* after the step, before any reset: the bar that follows, the same episode */
                assert_int_equal(l->env[i].t, t + 1);
                assert_int_equal(l->env[i].steps, steps + 1);
                assert_true(l->env[i].t < 390);
                if (out.end) {
                    ho_env_next(&l->lane, &l->host->view, &l->env[i], &out, s + 1, i, epoch,
                                &l->ledger[i]);
                    assert_int_equal(l->env[i].steps, 0);
                    assert_in_range(l->env[i].t, 30, 388);
                }
            }
        }
    }
    lane_free(l);
}

static void a_pass_over_a_window_stores_bars_minus_one_transitions(void **state)
{
    (void)state;
    ho_env_config c = lane_settings();
    lane_test *l = lane_create(&c, 300, (ho_window){20, 120});
    const uint64_t key[2] = {1, 1};
    ho_env_lane lane = ho_env_lane_make(&c, (ho_window){20, 120}, LENGTH, 1, key, l->lane.sigma);
    ho_step_out out = {0};
    int64_t transitions = 0;
    l->lane = lane;
    ho_env_begin_at(&lane, &l->host->view, &l->env[0], 20, 0.0, NULL);
    while (!out.end) {
        out = step_slot(l, (uint32_t)transitions, 0, 0);
        transitions++;
    }
    assert_int_equal(transitions, 120 - 20 - 1);
    assert_int_equal(out.end, HO_END_WINDOW);
    lane_free(l);
}

/* skrl 449: a time limit is not a terminal state */
static void length_and_window_truncate_and_only_ruin_terminates(void **state)
{
    (void)state;
    ho_env_config c = lane_settings();
    lane_test *l = lane_create(&c, 400, (ho_window){0, 400});
    int64_t ends[5] = {0};
    for (uint32_t epoch = 0; epoch < 40; epoch++) {
        begin_epoch(l, epoch);
        for (uint32_t s = 0; s < LENGTH; s++) {
            for (uint32_t i = 0; i < SLOTS; i++) {
                ho_step_out out = step_slot(l, s, i, epoch);
                ends[out.end]++;
                assert_int_equal(out.terminal, out.end == HO_END_RUIN);
                assert_int_equal(out.truncated,
                                 out.end == HO_END_WINDOW || out.end == HO_END_LENGTH);
                if (out.end == HO_END_LENGTH) {
                    assert_int_equal(l->env[i].steps, LENGTH);
                }
                if (out.end) {
                    ho_env_next(&l->lane, &l->host->view, &l->env[i], &out, s + 1, i, epoch, NULL);
                }
            }
        }
    }
    assert_true(ends[HO_END_LENGTH] > 100 && ends[HO_END_WINDOW] > 10);
    assert_int_equal(ends[HO_END_BARRIER], 0);
    lane_free(l);
}

static void ruin_is_terminal_at_the_fraction(void **state)
{
    (void)state;
    ho_env_config c = lane_settings();
    c.initial_capital = 2000.0; /* 100 units of 100: leverage 5 */
    c.ruin_fraction = 0.9;
    lane_test *l = lane_create(&c, 400, (ho_window){0, 400});
    int64_t ruins = 0;
    for (uint32_t epoch = 0; epoch < 20; epoch++) {
        begin_epoch(l, epoch);
        for (uint32_t s = 0; s < LENGTH; s++) {
            for (uint32_t i = 0; i < SLOTS; i++) {
                ho_step_out out = step_slot(l, s, i, epoch);
                assert_int_equal(out.end == HO_END_RUIN, out.equity <= 1800.0);
                ruins += out.terminal;
                if (out.end) {
                    ho_env_next(&l->lane, &l->host->view, &l->env[i], &out, s + 1, i, epoch, NULL);
                    CHECK_NEAR(l->env[i].equity, 2000.0, 0.0);
                }
            }
        }
    }
    assert_true(ruins > 5);
    lane_free(l);
}

static void barriers_end_an_episode_only_when_asked(void **state)
{
    (void)state;
    for (int mode = 0; mode < 3; mode++) {
        ho_env_config c = lane_settings();
        c.stop_loss = 20.0;
        c.profit_target = 20.0;
        c.max_holding = 3;
        c.end_on_barrier = mode > 0;
        c.barrier_terminal = mode > 1;
        lane_test *l = lane_create(&c, 400, (ho_window){0, 400});
        int64_t ended = 0, exits = 0;
        begin_epoch(l, 0);
        for (uint32_t s = 0; s < 300; s++) {
            ho_step_out out = step_slot(l, s, 0, 0);
            int barrier = 0;
            for (int k = 0; k < out.exit_count; k++) {
                barrier |= out.exit_reason[k] != HO_EXIT_SIGNAL;
            }
            exits += barrier;
            ended += out.end == HO_END_BARRIER;
            if (out.end == HO_END_BARRIER) {
                assert_true(barrier);
                assert_int_equal(out.terminal, mode == 2);
                assert_int_equal(out.truncated, mode == 1);
            }
            if (out.end) {
                ho_env_next(&l->lane, &l->host->view, &l->env[0], &out, s + 1, 0, 0, NULL);
            }
        }
        assert_true(exits > 20);
        assert_int_equal(ended, mode == 0 ? 0 : exits);
        lane_free(l);
    }
}

static void without_recycling_a_slot_waits_for_the_next_epoch(void **state)
{
    (void)state;
    ho_env_config c = lane_settings();
    c.recycle = 0;
    lane_test *l = lane_create(&c, 60, (ho_window){0, 60});
    ho_step_out out = {0};
    begin_epoch(l, 0);
    uint32_t s = 0;
    while (!out.end) {
        out = step_slot(l, s++, 0, 0);
    }
    ho_env_next(&l->lane, &l->host->view, &l->env[0], &out, s, 0, 0, NULL);
    assert_int_equal(l->env[0].active, 0);
    begin_epoch(l, 1);
    assert_int_equal(l->env[0].active, 1);
    assert_int_equal(l->env[0].steps, 0);
    lane_free(l);
}

static void reset_flags_decide_what_persists(void **state)
{
    (void)state;
    const uint32_t flags[] = {0, HO_RESET_PORTFOLIO, HO_RESET_DSR, HO_RESET_VOLATILITY,
                              HO_RESET_DIVERSITY};
    for (size_t f = 0; f < sizeof flags / sizeof flags[0]; f++) {
        ho_env_config c = lane_settings();
        c.reset_flags = flags[f];
        c.reward_base = HO_REWARD_DSR;
        c.diversity_penalty = 0.1;
        c.sizing = HO_SIZING_VOLATILITY;
        c.resize_band = 1000.0; /* the size in force would stay for ever */
        lane_test *l = lane_create(&c, 4000, (ho_window){100, 4000});
        begin_epoch(l, 0);
        for (uint32_t s = 0; s < 30; s++) {
            ho_step_out out = step_slot(l, s, 0, 0);
            assert_int_equal(out.end, HO_END_NONE);
        }
        ho_env before = l->env[0];
        ho_env_epoch_begin(&l->lane, &l->host->view, &l->env[0], 0, 1, NULL);
        const ho_env *after = &l->env[0];
        int portfolio = flags[f] == HO_RESET_PORTFOLIO;
        assert_int_equal(after->t == before.t && after->steps == before.steps, !portfolio);
        assert_int_equal(after->equity == before.equity, !portfolio);
        assert_int_equal(after->dsr_a == before.dsr_a && after->dsr_steps == before.dsr_steps,
                         flags[f] != HO_RESET_DSR);
        assert_int_equal(ho_category_total(after) == ho_category_total(&before),
                         !portfolio && flags[f] != HO_RESET_DIVERSITY);
        if (flags[f] == HO_RESET_VOLATILITY) {
            double share = c.target_vol / l->lane.sigma[after->t];
            CHECK_CLOSE(after->size, 100.0 * (share < c.vol_cap ? share : c.vol_cap), 1e-12);
        } else if (!portfolio) {
            CHECK_NEAR(after->size, before.size, 0.0);
        }
        lane_free(l);
    }
}

static void a_persisting_portfolio_goes_on_past_the_length(void **state)
{
    (void)state;
    ho_env_config c = lane_settings();
    c.reset_flags = 0;
    c.diversity_penalty = 0.1;
    lane_test *l = lane_create(&c, 4000, (ho_window){100, 4000});
    ho_step_out out = {0};
    begin_epoch(l, 0);
    uint32_t s = 0;
    while (!out.end) {
        out = step_slot(l, s++, 0, 0);
    }
    assert_int_equal(out.end, HO_END_LENGTH);
    assert_true(out.truncated);
    ho_env before = l->env[0];
    ho_env_next(&l->lane, &l->host->view, &l->env[0], &out, s, 0, 0, NULL);
    assert_int_equal(l->env[0].t, before.t);
    CHECK_NEAR(l->env[0].equity, before.equity, 0.0);
    CHECK_NEAR(l->env[0].anchor, before.equity, 0.0);
    assert_int_equal(l->env[0].account.lots, before.account.lots);
    assert_int_equal(l->env[0].steps, 0);
    assert_int_equal(ho_category_total(&l->env[0]), 0);
    lane_free(l);
}

static void starts_are_uniform_and_repeat(void **state)
{
    (void)state;
    ho_env_config c = lane_settings();
    c.random_start = 0.5;
    lane_test *l = lane_create(&c, 400, (ho_window){100, 300});
    int64_t count[4] = {0}, positions = 0;
    enum { N = 8000 };
    for (uint32_t i = 0; i < N; i++) {
        ho_env e, again;
        ho_env_clear(&e);
        ho_env_clear(&again);
        ho_env_begin(&l->lane, &l->host->view, &e, 3, i, 7, NULL);
        ho_env_begin(&l->lane, &l->host->view, &again, 3, i, 7, NULL);
        assert_in_range(e.t, 100, 298); /* the last bar starts nothing */
        assert_int_equal(e.t, again.t);
        assert_int_equal(e.account.lots, again.account.lots);
        count[(e.t - 100) / 50]++;
        positions += e.account.lots != 0;
        CHECK_NEAR(e.equity, c.initial_capital, 0.0);
        CHECK_CLOSE(e.account.cash + e.account.lots * l->m->bars[e.t * 5 + HO_CLOSE], e.equity,
                    1e-12);
    }
    for (int k = 0; k < 4; k++) {
        CHECK_NEAR((double)count[k] / N, 0.25, 0.025); /* five deviations */
    }
    CHECK_NEAR((double)positions / N, 0.5 * 4.0 / 5.0, 0.03);
    lane_free(l);
}

static void a_random_start_carries_barriers_and_a_ledger(void **state)
{
    (void)state;
    ho_env_config c = lane_settings();
    c.stop_loss = 50.0;
    c.max_holding = 9;
    lane_test *l = lane_create(&c, 400, (ho_window){100, 300});
    ho_ledger ledger = {0};
    ho_env e;
    ho_env_clear(&e);
    ho_env_begin_at(&l->lane, &l->host->view, &e, 150, -1.0, &ledger);
    double close = l->m->bars[150 * 5 + HO_CLOSE];
    assert_int_equal(e.account.lots, -100);
    assert_int_equal(e.account.expiry, 159);
    CHECK_CLOSE(e.account.stop, close * 1.005, 1e-12);
    assert_int_equal(ledger.open.side, -1);
    CHECK_CLOSE(ledger.open.quantity, 100.0, 1e-12);
    CHECK_NEAR(ledger.fees, 0.0, 0.0);
    lane_free(l);
}

static void no_episode_crosses_a_split(void **state)
{
    (void)state;
    test_market *m = test_market_new(200);
    ho_env_config c = lane_settings();
    ho_err err = {0};
    ho_market_host *host;
    const double *sigma;
    const uint64_t key[2] = {1, 2};
    uint32_t ring[HO_RING_WORDS_MAX];
    m->split = calloc(200, 1);
    m->split[60] = m->split[61] = m->split[62] = m->split[120] = 1;
    test_market_walk(m, 4, 100.0, 0.3, 0.0);
    ho_market_data data = {.T = 200,
                           .bars = m->bars,
                           .open_ns = m->open_ns,
                           .interval_ns = 1,
                           .session = m->session,
                           .split = m->split};
    CHECK_OK(ho_market_host_create(&data, &host, &err), &err);
    CHECK_OK(ho_market_host_sigma(host, 60, &sigma, &err), &err);
    ho_env_lane lane = ho_env_lane_make(&c, (ho_window){0, 200}, 1000, 0, key, sigma);
    for (uint32_t i = 0; i < 300; i++) {
        ho_env e;
        ho_step_out out = {0};
        ho_env_clear(&e);
        ho_env_begin(&lane, &host->view, &e, 0, i, 0, NULL);
        int32_t first = e.t;
        ho_order flat = ho_order_target(0.0);
        while (!out.end) {
            ho_env_step(&lane, &host->view, &e, (ho_ring){ring, 1}, &flat, 0.0f, NULL, &out);
        }
        for (int32_t t = first + 1; t <= e.t; t++) {
            assert_int_equal(m->split[t], 0);
        }
        assert_int_equal(out.end, HO_END_WINDOW);
        assert_true(out.truncated);
    }
    ho_market_host_destroy(&host);
    test_market_free(m);
}

static void evaluation_anchors_anew_every_length(void **state)
{
    (void)state;
    ho_env_config c = lane_settings();
    c.random_start = 1.0;
    lane_test *l = lane_create(&c, 400, (ho_window){0, 400});
    const uint64_t key[2] = {1, 1};
    ho_env *e = &l->env[0];
    l->lane = ho_env_lane_make(&c, (ho_window){0, 400}, LENGTH, 1, key, l->lane.sigma);
    ho_env_begin_at(&l->lane, &l->host->view, e, 0, 0.0, NULL);
    for (uint32_t s = 0; s < 200; s++) {
        double anchor = e->anchor;
        ho_step_out out = step_slot(l, s, 0, 0);
        assert_int_equal(out.end, HO_END_NONE); /* the length does not end the pass */
        CHECK_NEAR(e->anchor, (s + 1) % LENGTH == 0 ? e->equity : anchor, 0.0);
        float p[9];
        ho_env_portfolio(&l->lane, &l->host->view, e, p);
        assert_true((s + 1) % LENGTH != 0 || p[0] == 0.0f);
    }
    lane_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_state_never_comes_from_another_episode),
        cmocka_unit_test(a_pass_over_a_window_stores_bars_minus_one_transitions),
        cmocka_unit_test(length_and_window_truncate_and_only_ruin_terminates),
        cmocka_unit_test(ruin_is_terminal_at_the_fraction),
        cmocka_unit_test(barriers_end_an_episode_only_when_asked),
        cmocka_unit_test(without_recycling_a_slot_waits_for_the_next_epoch),
        cmocka_unit_test(reset_flags_decide_what_persists),
        cmocka_unit_test(a_persisting_portfolio_goes_on_past_the_length),
        cmocka_unit_test(starts_are_uniform_and_repeat),
        cmocka_unit_test(a_random_start_carries_barriers_and_a_ledger),
        cmocka_unit_test(no_episode_crosses_a_split),
        cmocka_unit_test(evaluation_anchors_anew_every_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
