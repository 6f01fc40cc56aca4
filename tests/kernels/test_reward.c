/* SPDX-License-Identifier: Apache-2.0
 * Every term of the reward, both presets, diversity, the differential Sharpe ratio, sizing by
 * volatility and Kelly, and the portfolio columns. */
#include <stdlib.h>

#include "check.h"
#include "kernels/cases.h"
#include "kernels/env/market_host.h"
#include "kernels/env/step.h"

static ho_reward_in plain(double ret)
{
    return (ho_reward_in){.ret = ret, .entropy = 1.5, .judged = 1};
}

static ho_env_config settings(void)
{
    ho_env_config c = ho_env_config_defaults();
    c.sigma_ref = 0.001;
    return c;
}

static void a_return_counts_in_deviations(void **state)
{
    (void)state;
    ho_env_config c = settings();
    ho_reward_in in = plain(0.002);
    CHECK_NEAR(ho_reward(&c, &in), 2.0, 1e-15);
    c.reward_scale = 0.5;
    CHECK_NEAR(ho_reward(&c, &in), 1.0, 1e-15);
    in.ret = 1.0;
    CHECK_NEAR(ho_reward(&c, &in), 10.0, 0.0); /* clipped */
    in.ret = -1.0;
    CHECK_NEAR(ho_reward(&c, &in), -10.0, 0.0);
}

static void log_returns_and_total_loss(void **state)
{
    (void)state;
    ho_env_config c = settings();
    c.reward_base = HO_REWARD_LOG;
    ho_reward_in in = plain(0.002);
    CHECK_NEAR(ho_reward(&c, &in), log(1.002) / 0.001, 1e-12);
    in.ret = -1.0;
    CHECK_NEAR(ho_reward(&c, &in), -10.0, 0.0);
    in.ret = -1.5;
    CHECK_NEAR(ho_reward(&c, &in), -10.0, 0.0);
}

static void a_barrier_adds_to_gains_and_to_losses(void **state)
{
    (void)state;
    ho_env_config c = settings();
    c.barrier_scale = 0.5;
    ho_reward_in in = plain(0.002);
    in.label = 1;
    CHECK_NEAR(ho_reward(&c, &in), 3.0, 1e-15);
    in.ret = -0.002;
    in.label = -1;
    CHECK_NEAR(ho_reward(&c, &in), -3.0, 1e-15); /* a stop hurts more, not less */
}

static void risk_diversity_and_curiosity_terms(void **state)
{
    (void)state;
    ho_env_config c = settings();
    ho_reward_in in = plain(0.0);
    c.risk_weight = 0.5;
    in.load = 0.8;
    CHECK_NEAR(ho_reward(&c, &in), 0.0, 0.0); /* at the threshold */
    in.load = 1.0;
    CHECK_NEAR(ho_reward(&c, &in), -0.1, 1e-15);
    in.load = 0.0;
    c.diversity_penalty = 0.25;
    in.entropy = 0.99;
    CHECK_NEAR(ho_reward(&c, &in), -0.25, 0.0);
    in.entropy = 1.0;
    CHECK_NEAR(ho_reward(&c, &in), 0.0, 0.0);
    in.entropy = 0.0;
    in.judged = 0; /* warm-up */
    CHECK_NEAR(ho_reward(&c, &in), 0.0, 0.0);
    in.curiosity = 0.02;
    CHECK_NEAR(ho_reward(&c, &in), 0.0, 0.0); /* off by default */
    c.curiosity_weight = 2.0;
    CHECK_NEAR(ho_reward(&c, &in), 0.04, 1e-15);
    in.curiosity = 5.0;
    CHECK_NEAR(ho_reward(&c, &in), 0.1, 0.0); /* at most curiosity_max */
}

/* r = ret; r *= 1 + 0.5*label; if x > 0.8: r -= (x-0.8)*0.5; if entropy < 1: r -= 0.1;
 * r += min(mse, max) */
static void the_original_preset_is_the_formula_to_the_letter(void **state)
{
    (void)state;
    ho_env_config c = settings();
    c.reward_preset = HO_PRESET_ORIGINAL;
    c.reward_scale = 7.0; /* none of these is part of it */
    c.risk_weight = 3.0;
    c.barrier_scale = 9.0;
    for (int label = -1; label <= 1; label++) {
        for (double x = 0.0; x <= 1.0; x += 0.25) {
            for (double entropy = 0.5; entropy < 1.6; entropy += 0.5) {
                for (double mse = 0.0; mse < 0.2; mse += 0.06) {
                    double r = -0.004;
                    r *= 1 + 0.5 * label;
                    if (x > 0.8) {
                        r -= (x - 0.8) * 0.5;
                    }
                    if (entropy < 1) {
                        r -= 0.1;
                    }
                    r += mse < 0.1 ? mse : 0.1;
                    ho_reward_in in = {.ret = -0.004,
                                       .label = label,
                                       .load = x,
                                       .entropy = entropy,
                                       .curiosity = mse};
                    CHECK_NEAR(ho_reward(&c, &in), r, 0.0);
                }
            }
        }
    }
}

/* ---- differential Sharpe ratio --------------------------------------------------------------- */

static void dsr_is_the_derivative_of_the_exponential_sharpe(void **state)
{
    (void)state;
    ho_env_config c = settings();
    ho_env e = {0};
    c.dsr_eta = 0.01;
    for (int t = 0; t < 400; t++) {
        double ret = 0.001 * sin(1.3 * t) + 0.0002;
        double before = ho_dsr_ratio(&e);
        ho_env small = e; /* the same step with a tiny eta: dS / d(eta) at 0 */
        ho_env_config tiny = c;
        tiny.dsr_eta = 1e-7;
        small.dsr_steps = 100000000;
        double value = ho_dsr_step(&tiny, &small, ret);
        double slope = (ho_dsr_ratio(&small) - before) / tiny.dsr_eta;
        double got = ho_dsr_step(&c, &e, ret);
        if (t < 100) {
            CHECK_NEAR(got, ret / c.sigma_ref, 0.0); /* warm-up of 1 / eta steps */
        } else {
            CHECK_CLOSE(got, value, 1e-12);
            CHECK_CLOSE(slope, value, 1e-4); /* a finite difference */
        }
    }
    assert_int_equal(e.dsr_steps, 100);
}

static void dsr_without_variance_is_zero(void **state)
{
    (void)state;
    ho_env_config c = settings();
    ho_env e = {.dsr_steps = 1000};
    CHECK_NEAR(ho_dsr_step(&c, &e, 0.0), 0.0, 0.0);
    CHECK_NEAR(ho_dsr_ratio(&e), 0.0, 0.0);
    ho_reward_in in = plain(0.5);
    in.dsr = 1.25;
    c.reward_base = HO_REWARD_DSR;
    CHECK_NEAR(ho_reward(&c, &in), 1.25, 0.0); /* not divided by sigma_ref */
}

/* ---- diversity ------------------------------------------------------------------------------- */

static double entropy_by_hand(const int *category, int from, int to)
{
    double n = to - from, h = 0.0;
    for (int k = 0; k < 3; k++) {
        int count = 0;
        for (int i = from; i < to; i++) {
            count += category[i] == k;
        }
        h -= count > 0 ? count / n * log2(count / n) : 0.0;
    }
    return h;
}

static void entropy_is_of_the_last_window_whatever_the_stride(void **state)
{
    (void)state;
    double table[HO_DIVERSITY_MAX + 1] = {0.0};
    int category[3000];
    const uint32_t key[2] = {1, 3};
    for (int n = 1; n <= HO_DIVERSITY_MAX; n++) {
        table[n] = n * log2(n);
    }
    const int windows[] = {1, 7, 16, 100, 1024};
    for (size_t w = 0; w < sizeof windows / sizeof windows[0]; w++) {
        ho_env_config c = settings();
        uint32_t words[3 * HO_RING_WORDS_MAX];
        ho_env a = {0}, b = {0};
        c.diversity_window = windows[w];
        memset(words, 0xa5, sizeof words); /* what was there before does not matter */
        ho_ring near = {words, 1}, wide = {words + HO_RING_WORDS_MAX, 2};
        ho_diversity_clear(&a);
        ho_diversity_clear(&b);
        CHECK_NEAR(ho_entropy(&a, table), 0.0, 0.0);
        for (int i = 0; i < 3000; i++) {
            category[i] =
                (int)ho_rng_below(ho_rng(key, (uint32_t)i, 0, 0, HO_RNG_ACTION, 0).v[0], 3);
            ho_diversity_push(&c, &a, near, category[i]);
            ho_diversity_push(&c, &b, wide, category[i]);
            int from = i + 1 > windows[w] ? i + 1 - windows[w] : 0;
            CHECK_NEAR(ho_entropy(&a, table), entropy_by_hand(category, from, i + 1), 1e-12);
            CHECK_NEAR(ho_entropy(&b, table), ho_entropy(&a, table), 0.0);
        }
    }
}

/* ---- sizing ---------------------------------------------------------------------------------- */

static void kelly_is_full_until_there_are_trades_then_a_clipped_share(void **state)
{
    (void)state;
    ho_env_config c = settings();
    ho_moments m = {0, 0, 0};
    c.kelly_min_trades = 4;
    for (int i = 0; i < 3; i++) {
        ho_moments_add(&m, i % 2 ? -0.9 : 1.0);
        CHECK_NEAR(ho_kelly_share(&c, &m), 1.0, 0.0);
    }
    ho_moments_add(&m, -0.9);
    double variance = (2 * 0.95 * 0.95 + 2 * 0.95 * 0.95) / 3.0, mean = 0.05;
    CHECK_NEAR(ho_kelly_share(&c, &m), 0.5 * mean / variance, 1e-12);
    ho_moments win = {100, 0.01, 1e-4}, loss = {100, -0.01, 1e-2}, still = {100, 0.0, 0.0};
    CHECK_NEAR(ho_kelly_share(&c, &win), 1.0, 0.0);
    CHECK_NEAR(ho_kelly_share(&c, &loss), 0.0, 0.0);
    CHECK_NEAR(ho_kelly_share(&c, &still), 0.0, 0.0);
}

static void closed_trades_feed_kelly_once(void **state)
{
    (void)state;
    ho_env_config c = settings();
    ho_ledger ledger = {0};
    ho_moments m = {0, 0, 0};
    c.multiplier = 50.0;
    ledger.closed_count = 2;
    ledger.closed[0] = (ho_trade){.entry_price = -20.0, .quantity = 2.0, .net = 100.0};
    ledger.closed[1] = (ho_trade){.entry_price = 0.0, .quantity = 2.0, .net = 100.0};
    ho_moments_add_closed(&c, &m, &ledger);
    assert_int_equal(m.n, 2);
    CHECK_NEAR(m.mean, 0.5 * 100.0 / 2000.0, 1e-15); /* without a notional a trade counts as 0 */
    assert_int_equal(ledger.closed_count, 0);
}

static void volatility_sizing_moves_in_steps(void **state)
{
    (void)state;
    double sigma[4] = {0.002, 0.0021, 0.004, 0.0};
    ho_env_config c = settings();
    const uint64_t key[2] = {0, 0};
    ho_env e = {0};
    c.max_lots = 10;
    c.sizing = HO_SIZING_VOLATILITY;
    c.target_vol = 0.001;
    ho_env_lane lane = ho_env_lane_make(&c, (ho_window){0, 4}, 10, 1, key, sigma);
    ho_env_clear(&e);
    const double want[4] = {5.0, 5.0, 2.5, 10.0}; /* 5 % is inside the band; no sigma: the cap */
    for (e.t = 0; e.t < 4; e.t++) {
        ho_env_update_size(&lane, &e);
        CHECK_NEAR(e.size, want[e.t], 1e-12);
    }
    lane.config.sizing = HO_SIZING_KELLY;
    lane.config.kelly_share = 0.25;
    e.t = 0;
    ho_env_update_size(&lane, &e);
    CHECK_NEAR(e.size, 2.5, 0.0);
}

/* ---- portfolio columns ------------------------------------------------------------------------
 */

typedef struct portfolio_case {
    double bars[HO_BAR_COLUMNS * 2];
    double sigma[2];
    double table[HO_DIVERSITY_MAX + 1];
    ho_market_view view;
    ho_env_config config;
    ho_env env;
} portfolio_case;

static portfolio_case long_at_101(void)
{
    portfolio_case p = {.sigma = {0.001, 0.002}};
    p.bars[HO_BAR_COLUMNS + HO_CLOSE] = 101.0;
    p.config = settings();
    p.config.max_lots = 10;
    p.env.account = (ho_account){.lots = 5,
                                 .entry = 100.0,
                                 .stop = 99.0,
                                 .target = 103.0,
                                 .opened = -29,
                                 .has = HO_HAS_STOP | HO_HAS_TARGET};
    p.env.equity = 100500.0;
    p.env.anchor = 100000.0;
    p.env.size = 7.5;
    p.env.t = 1;
    for (int n = 1; n <= HO_DIVERSITY_MAX; n++) {
        p.table[n] = n * log2(n);
    }
    return p;
}

static void columns_of(portfolio_case *p, float *out)
{
    const uint64_t key[2] = {0, 0};
    p->view = (ho_market_view){.T = 2, .bars = p->bars, .n_log2_n = p->table};
    ho_env_lane lane = ho_env_lane_make(&p->config, (ho_window){0, 2}, 100, 0, key, p->sigma);
    ho_env_portfolio(&lane, &p->view, &p->env, out);
}

static void full_portfolio_columns(void **state)
{
    (void)state;
    float f[9];
    portfolio_case p = long_at_101();
    columns_of(&p, f);
    CHECK_NEAR(f[0], 0.005 / (0.001 * 10.0), 1e-6);
    CHECK_NEAR(f[1], 0.5, 0.0);
    CHECK_NEAR(f[2], 0.01 / (0.002 * sqrt(60.0)), 1e-6);
    CHECK_NEAR(f[3], 30.0 / 240.0, 1e-7);
    CHECK_NEAR(f[4], 2.0, 1e-6);       /* (101 - 99) / (100 - 99) */
    CHECK_NEAR(f[5], 2.0 / 3.0, 1e-6); /* (103 - 101) / (103 - 100) */
    CHECK_NEAR(f[6], 0.0, 0.0);
    CHECK_NEAR(f[7], 0.75, 0.0);
    CHECK_NEAR(f[8], 0.0, 0.0);
    p.config.max_holding = 20;
    p.config.diversity_penalty = 0.1;
    p.config.reward_base = HO_REWARD_DSR;
    p.env.category_count[0] = p.env.category_count[1] = p.env.category_count[2] = 4;
    p.env.dsr_a = 0.0001;
    p.env.dsr_b = 1e-6;
    p.env.account.lots = -5; /* a short loses here */
    p.env.equity = 300000.0;
    columns_of(&p, f);
    CHECK_NEAR(f[0], 5.0, 0.0); /* clipped */
    CHECK_NEAR(f[1], -0.5, 0.0);
    CHECK_NEAR(f[2], -0.01 / (0.002 * sqrt(60.0)), 1e-6);
    CHECK_NEAR(f[3], 1.0, 0.0);
    CHECK_NEAR(f[6], 1.0, 1e-6);
    CHECK_NEAR(f[8], 0.0001 / sqrt(1e-6 - 1e-8), 1e-6);
}

static void columns_without_a_position_or_a_scale_are_zero(void **state)
{
    (void)state;
    float f[9];
    portfolio_case p = long_at_101();
    p.env.account = (ho_account){0};
    columns_of(&p, f);
    for (int i = 1; i < 6; i++) {
        CHECK_NEAR(f[i], 0.0, 0.0);
    }
    p = long_at_101();
    p.sigma[1] = 0.0;
    p.env.account.has = 0;
    columns_of(&p, f);
    CHECK_NEAR(f[2], 0.0, 0.0);
    CHECK_NEAR(f[4], 0.0, 0.0);
    CHECK_NEAR(f[5], 0.0, 0.0);
    p = long_at_101();
    p.env.account.entry = 99.0; /* averaged onto its stop */
    columns_of(&p, f);
    CHECK_NEAR(f[4], 0.0, 0.0);
    p.env.account.entry = 0.0;
    columns_of(&p, f);
    CHECK_NEAR(f[2], 0.0, 0.0);
}

static void seed54_columns_have_the_original_scaling(void **state)
{
    (void)state;
    float f[HO_PORTFOLIO_FEATURES]; /* three are written; gcc 14 counts the other form, too */
    portfolio_case p = long_at_101();
    p.config.state_form = HO_STATE_SEED54;
    columns_of(&p, f);
    CHECK_NEAR(f[0], 0.005, 1e-9);
    CHECK_NEAR(f[1], 0.5, 0.0);
    CHECK_NEAR(f[2], 5.0 / 100500.0, 1e-10);
    assert_int_equal(ho_portfolio_width(HO_STATE_SEED54), 3);
    assert_int_equal(ho_portfolio_width(HO_STATE_FULL), 9);
    p.env.equity = 0.0;
    columns_of(&p, f);
    CHECK_NEAR(f[2], 0.0, 0.0);
}

/* ---- the step puts them together ---------------------------------------------------------------
 */

static void a_step_rewards_what_it_did(void **state)
{
    (void)state;
    test_market *m = test_market_new(300);
    ho_env_config c = settings();
    ho_err err = {0};
    const double *sigma;
    const uint64_t key[2] = {5, 6};
    ho_market_host *host;
    uint32_t ring[HO_RING_WORDS_MAX];
    test_market_walk(m, 9, 100.0, 0.3, 0.0);
    c.max_lots = 500;
    c.impact_coef = 0.0;
    c.risk_weight = 0.5;
    c.diversity_penalty = 0.2;
    c.diversity_warmup = 5;
    c.diversity_window = 10;
    c.curiosity_weight = 1.0;
    ho_market_data data = {.T = 300,
                           .bars = m->bars,
                           .open_ns = m->open_ns,
                           .interval_ns = 1,
                           .session = m->session,
                           .has_volume = 1};
    CHECK_OK(ho_market_host_create(&data, &host, &err), &err);
    CHECK_OK(ho_market_host_sigma(host, 60, &sigma, &err), &err);
    ho_env_lane lane = ho_env_lane_make(&c, (ho_window){0, 300}, 500, 0, key, sigma);
    ho_env e;
    ho_env_clear(&e);
    ho_env_begin_at(&lane, &host->view, &e, 0, 0.0, NULL);
    int penalised = 0, loaded = 0;
    for (int s = 0; s < 299; s++) {
        ho_step_out out;
        ho_order o = ho_order_from_action(s % 40 < 20 ? 38 : 2);
        ho_env_step(&lane, &host->view, &e, (ho_ring){ring, 1}, &o, 0.03f, NULL, &out);
        double z = out.ret / c.sigma_ref, load = fabs(e.account.lots / 500.0);
        z -= load > 0.8 ? (load - 0.8) * 0.5 : 0.0;
        z -= s + 1 >= 5 && out.entropy < 1.0 ? 0.2 : 0.0;
        z += (double)0.03f;
        z = z > 10.0 ? 10.0 : z < -10.0 ? -10.0 : z;
        CHECK_CLOSE(out.reward, z, 1e-6); /* rounded to float32 */
        penalised += s + 1 >= 5 && out.entropy < 1.0;
        loaded += load > 0.8;
    }
    assert_true(penalised > 100 && loaded > 100);
    ho_market_host_destroy(&host);
    test_market_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_return_counts_in_deviations),
        cmocka_unit_test(log_returns_and_total_loss),
        cmocka_unit_test(a_barrier_adds_to_gains_and_to_losses),
        cmocka_unit_test(risk_diversity_and_curiosity_terms),
        cmocka_unit_test(the_original_preset_is_the_formula_to_the_letter),
        cmocka_unit_test(dsr_is_the_derivative_of_the_exponential_sharpe),
        cmocka_unit_test(dsr_without_variance_is_zero),
        cmocka_unit_test(entropy_is_of_the_last_window_whatever_the_stride),
        cmocka_unit_test(kelly_is_full_until_there_are_trades_then_a_clipped_share),
        cmocka_unit_test(closed_trades_feed_kelly_once),
        cmocka_unit_test(volatility_sizing_moves_in_steps),
        cmocka_unit_test(full_portfolio_columns),
        cmocka_unit_test(columns_without_a_position_or_a_scale_are_zero),
        cmocka_unit_test(seed54_columns_have_the_original_scaling),
        cmocka_unit_test(a_step_rewards_what_it_did),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
