/* SPDX-License-Identifier: Apache-2.0
 * Properties of the backtest: no look-ahead, parts that sum, fees that only cost, policies,
 * threads, requests that are refused; and the market's host tables, settings and sizes. */
#include <stdlib.h>

#include "check.h"
#include "kernels/cases.h"
#include "kernels/env/market_host.h"
#include "kernels/env/rng.h"
#include "kernels/env/sizing.h"
#include "kernels/env/step.h"

enum { FLAT = 20, LONG = 38, SHORT_ALL = 2 };

/* Random bars and actions with everything switched on. */
static test_market *busy_market(uint64_t seed, int64_t T)
{
    test_market *m = test_market_new(T);
    m->config.max_lots = 20;
    m->config.impact_coef = 0.5;
    m->config.tick_size = 0.01;
    m->config.stop_loss = 60.0;
    m->config.profit_target = 80.0;
    m->config.max_holding = 40;
    m->roll_jump = calloc((size_t)T, sizeof(double));
    m->funding = calloc((size_t)T, sizeof(double));
    m->roll_jump[T / 2] = 1.5;
    for (int64_t t = 0; t < T; t++) {
        m->session[t] = (int32_t)(t / 60);
        m->funding[t] = t % 30 == 0 ? 1e-5 : 0.0;
    }
    test_market_walk(m, seed, 100.0, 0.3, 0.01);
    test_market_random_actions(m, seed);
    return m;
}

/* ---- properties ------------------------------------------------------------------------------ */

static void the_parts_of_pnl_sum(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        test_market *m = busy_market(seed, 1000);
        ho_backtest_result r = test_market_run(m);
        double total = r.final_equity - r.initial_capital, trades = 0.0, traded = 0.0;
        CHECK_CLOSE(r.realised + r.unrealised - r.fees - r.funding, total, 1e-9);
        CHECK_NEAR(r.unrealised, 0.0, 0.0);
        for (int64_t i = 0; i < r.trade_count; i++) {
            trades += r.trades[i].net;
            traded += r.trades[i].quantity * r.trades[i].entry_price;
            assert_true(r.trades[i].exit_bar >= r.trades[i].entry_bar);
        }
        CHECK_CLOSE(trades - r.funding, total, 1e-9);
        assert_true(r.traded > traded);
        CHECK_CLOSE(r.metrics.value[HO_METRIC_TOTAL_PNL], total, 1e-12);
        double chain = r.initial_capital, sessions = 1.0;
        for (int64_t i = 0; i < r.bars; i++) {
            chain *= 1.0 + r.bar_return[i];
        }
        for (int64_t i = 0; i < r.sessions; i++) {
            sessions *= 1.0 + r.session_return[i];
        }
        CHECK_CLOSE(chain, r.final_equity, 1e-9);
        CHECK_CLOSE(sessions * r.initial_capital, r.final_equity, 1e-9);
        assert_int_equal(r.sessions, r.session_id[r.sessions - 1] - r.session_id[0] + 1);
        ho_backtest_free(&r);
        test_market_free(m);
    }
}

/* freqtrade 7829: higher fees, higher profit */
static void profit_never_rises_with_a_fee(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) { /* long, short, mixed */
        for (uint64_t seed = 1; seed <= 10; seed++) {
            test_market *m = test_market_new(600);
            test_market_walk(m, seed, 100.0, 0.3, 0.0);
            test_market_random_actions(m, seed);
            for (int64_t i = 0; i < m->action_count; i++) {
                int order = m->actions[i] % 9, exposure = m->actions[i] / 9;
                exposure = kind == 0   ? (exposure < 2 ? 4 - exposure : exposure)
                           : kind == 1 ? (exposure > 2 ? 4 - exposure : exposure)
                                       : exposure;
                m->actions[i] = (uint8_t)(exposure * 9 + order);
            }
            double before = INFINITY;
            for (int fee = 0; fee <= 8; fee++) {
                for (int k = 0; k < 3; k++) {
                    m->config.fee_bps[k] = fee * 2.0;
                }
                m->config.fee_per_unit = fee * 0.01;
                ho_backtest_result r = test_market_run(m);
                double pnl = r.metrics.value[HO_METRIC_TOTAL_PNL];
                assert_true(pnl <= before);
                assert_false(r.ruined);
                before = pnl;
                ho_backtest_free(&r);
            }
            test_market_free(m);
        }
    }
}

static void knowing_the_bar_one_decides_on_gains_nothing_on_noise(void **state)
{
    (void)state;
    enum { RUNS = 40, T = 2000 };
    ho_moments past = {0, 0, 0}, future = {0, 0, 0};
    for (uint64_t seed = 0; seed < RUNS; seed++) {
        test_market *m = test_market_new(T);
        m->config.spread_bps = 0.0;
        m->config.fee_bps[0] = 0.0;
        test_market_walk(m, seed + 100, 1000.0, 0.3, 0.0);
        for (int look = 0; look < 2; look++) { /* the bar decided on; the bar it fills in */
            for (int64_t t = 0; t < T - 1; t++) {
                const double *bar = m->bars + (t + look) * HO_BAR_COLUMNS;
                m->actions[t] = bar[HO_CLOSE] > bar[HO_OPEN] ? LONG : SHORT_ALL;
            }
            ho_backtest_result r = test_market_run(m);
            ho_moments_add(look ? &future : &past, r.metrics.value[HO_METRIC_TOTAL_PNL]);
            ho_backtest_free(&r);
        }
        test_market_free(m);
    }
    double error = ho_moments_deviation(&past) / sqrt(RUNS);
    CHECK_NEAR(past.mean, 0.0, 4.0 * error);
    assert_true(future.mean > 100.0 * error); /* the test would see a look-ahead */
}

/* Tables and results up to bar k do not change when later bars do, nor when they are NaN. */
static void poisoned_future_bars_change_nothing_earlier(void **state)
{
    (void)state;
    enum { T = 500, K = 300 };
    test_market *m = busy_market(7, T);
    m->action_count = K - 1; /* a window of bars [0, K) */
    ho_backtest_result a = test_market_run(m);
    for (int64_t t = K; t < T; t++) {
        for (int c = 0; c < HO_BAR_COLUMNS; c++) {
            m->bars[t * HO_BAR_COLUMNS + c] *= c == HO_VOLUME ? 1000.0 : -7.0;
        }
    }
    test_market_load(m);
    ho_backtest_result b = test_market_run(m);
    assert_memory_equal(a.equity, b.equity, K * sizeof(double));
    assert_int_equal(a.trade_count, b.trade_count);
    assert_memory_equal(a.trades, b.trades, (size_t)a.trade_count * sizeof(ho_trade));
    ho_backtest_free(&a);
    ho_backtest_free(&b);

    ho_err err = {0};
    ho_market_host *clean, *poisoned;
    const double *sigma, *sigma_again;
    ho_market_data data = {.T = T,
                           .bars = m->bars,
                           .open_ns = m->open_ns,
                           .interval_ns = 1,
                           .session = m->session,
                           .has_volume = 1};
    CHECK_OK(ho_market_host_create(&data, &clean, &err), &err);
    CHECK_OK(ho_market_host_create(&data, &poisoned, &err), &err);
    for (int64_t i = K * HO_BAR_COLUMNS; i < T * HO_BAR_COLUMNS; i++) {
        poisoned->bars[i] = NAN; /* behind the loader's back */
    }
    CHECK_OK(ho_market_host_sigma(clean, 60, &sigma, &err), &err);
    CHECK_OK(ho_market_host_sigma(poisoned, 60, &sigma_again, &err), &err);
    assert_memory_equal(sigma, sigma_again, K * sizeof(double));
    const uint64_t key[2] = {1, 2};
    ho_market_host *host[2] = {clean, poisoned};
    const double *table[2] = {sigma, sigma_again};
    ho_env env[2];
    float state_row[2][K][9];
    for (int i = 0; i < 2; i++) {
        ho_env_lane lane = ho_env_lane_make(&m->config, (ho_window){0, T}, 500, 1, key, table[i]);
        uint32_t ring[HO_RING_WORDS_MAX];
        memset(&env[i], 0, sizeof env[i]);
        ho_env_clear(&env[i]);
        ho_env_begin_at(&lane, &host[i]->view, &env[i], 0, 0.0, NULL);
        for (int s = 0; s < K - 1; s++) {
            ho_step_out out;
            ho_order order = ho_order_from_action(m->actions[s]);
            ho_env_step(&lane, &host[i]->view, &env[i], (ho_ring){ring, 1}, &order, 0.0f, NULL,
                        &out);
            ho_env_portfolio(&lane, &host[i]->view, &env[i], state_row[i][s]);
        }
    }
    assert_memory_equal(&env[0], &env[1], sizeof env[0]);
    assert_memory_equal(state_row[0], state_row[1], (K - 1) * sizeof state_row[0][0]);
    ho_market_host_destroy(&clean);
    ho_market_host_destroy(&poisoned);
    test_market_free(m);
}

static void results_do_not_depend_on_threads_or_neighbours(void **state)
{
    (void)state;
    enum { N = 12 };
    test_market *m = busy_market(5, 700);
    ho_err err = {0};
    ho_backtest_request request[N];
    ho_backtest_result alone[N], together[N];
    for (int i = 0; i < N; i++) {
        request[i] = (ho_backtest_request){.policy = i % 2 ? HO_POLICY_RANDOM : HO_POLICY_ACTIONS,
                                           .window = {i * 10, 600},
                                           .env = &m->config,
                                           .actions = m->actions,
                                           .rng_key = {(uint64_t)i, 3},
                                           .random_turnover = 0.2,
                                           .random_exposure = 0.6,
                                           .want = HO_WANT_BARS};
        CHECK_OK(ho_backtest(m->market, NULL, &request[i], 1, &alone[i], &err), &err);
    }
    ho_backend *backend;
    ho_backend_options options = ho_backend_defaults();
    options.threads = 3;
    ho_backend *one = m->backend;
    CHECK_OK(ho_backend_open(&backend, &options, &err), &err);
    ho_market_unload(&m->market);
    m->backend = backend;
    test_market_load(m);
    CHECK_OK(ho_backtest(m->market, NULL, request, N, together, &err), &err);
    for (int i = 0; i < N; i++) {
        assert_memory_equal(alone[i].equity, together[i].equity,
                            (size_t)(alone[i].bars + 1) * sizeof(double));
        assert_memory_equal(&alone[i].metrics, &together[i].metrics, sizeof alone[i].metrics);
        ho_backtest_free(&alone[i]);
        ho_backtest_free(&together[i]);
    }
    ho_backend_close(&one);
    test_market_free(m);
}

static void ruin_ends_the_pass_and_is_said(void **state)
{
    (void)state;
    test_market *m = test_market_new(10);
    m->config.max_lots = 100;
    m->config.initial_capital = 1500.0;
    m->config.multiplier = 1.0;
    for (int64_t t = 0; t < 10; t++) {
        double price = t < 3 ? 100.0 : 80.0;
        test_market_bar(m, t, price, price, price, price, 1000);
        m->actions[t] = LONG;
        m->session[t] = (int32_t)(t / 2);
    }
    test_market_load(m);
    ho_backtest_result r = test_market_run(m);
    assert_true(r.ruined);
    assert_int_equal(r.bars, 3);
    assert_true(r.final_equity < 0.0);
    assert_int_equal(r.metrics.reason[HO_METRIC_SHARPE], HO_REASON_RUINED);
    assert_true(r.metrics.flags & HO_FLAG_RUINED);
    CHECK_NEAR(r.metrics.value[HO_METRIC_CAGR], -1.0, 0.0);
    assert_true(r.metrics.value[HO_METRIC_MAX_DRAWDOWN] < -1.0);
    ho_backtest_free(&r);
    test_market_free(m);
}

/* ---- policies -------------------------------------------------------------------------------- */

static void flat_never_trades_and_cannot_win(void **state)
{
    (void)state;
    test_market *m = busy_market(3, 400);
    ho_backtest_result r = test_market_policy(m, HO_POLICY_FLAT);
    assert_int_equal(r.trade_count, 0);
    CHECK_NEAR(r.final_equity, r.initial_capital, 0.0);
    assert_true(isnan(r.metrics.value[HO_METRIC_SHARPE]));
    assert_int_equal(r.metrics.reason[HO_METRIC_SHARPE], HO_REASON_FLAT);
    assert_int_equal(r.action_count[FLAT], 399);
    CHECK_NEAR(r.metrics.value[HO_METRIC_LONGEST_FLAT], 399.0, 0.0);
    CHECK_NEAR(r.metrics.value[HO_METRIC_EXPOSURE], 0.0, 0.0);
    ho_backtest_free(&r);
    test_market_free(m);
}

static void buy_and_hold_buys_once_without_barriers(void **state)
{
    (void)state;
    test_market *m = busy_market(3, 400);
    ho_backtest_result r = test_market_policy(m, HO_POLICY_BUY_HOLD);
    assert_int_equal(r.trade_count, 1);
    assert_int_equal(r.trades[0].reason, HO_EXIT_END);
    assert_int_equal(r.trades[0].entry_bar, 1);
    CHECK_CLOSE(r.trades[0].quantity, 20.0, 1e-12);
    CHECK_NEAR(r.metrics.value[HO_METRIC_EXPOSURE], 1.0, 0.0);
    assert_int_equal(r.position_changes, 1);
    double change = m->bars[399 * 5 + HO_CLOSE] - m->bars[1 * 5 + HO_OPEN] - m->roll_jump[200];
    CHECK_NEAR(r.trades[0].pnl, 20.0 * change, 20.0 * 0.1); /* spread, impact, tick */
    ho_backtest_result s = test_market_policy(m, HO_POLICY_SHORT);
    assert_int_equal(s.trades[0].side, -1);
    CHECK_NEAR(s.trades[0].pnl, -20.0 * change, 20.0 * 0.1);
    ho_backtest_free(&r);
    ho_backtest_free(&s);
    /* day trading: bought again after each session's end */
    m->config.flat_at_session_end = 1;
    r = test_market_policy(m, HO_POLICY_BUY_HOLD);
    assert_int_equal(r.trade_count, 7);
    assert_int_equal(r.exit_count[HO_EXIT_SESSION], 6);
    ho_backtest_free(&r);
    test_market_free(m);
}

static void momentum_follows_the_sign_of_the_change(void **state)
{
    (void)state;
    test_market *m = busy_market(3, 400);
    ho_backtest_result r = test_market_policy(m, HO_POLICY_MOMENTUM);
    for (int64_t t = 0; t < r.bars; t++) {
        double change = t < 20 ? 0.0
                               : m->bars[t * 5 + HO_CLOSE] - m->bars[(t - 20) * 5 + HO_CLOSE] -
                                     (t >= 200 && t < 220 ? m->roll_jump[200] : 0.0);
        int want = change > 0.0 ? LONG : change < 0.0 ? SHORT_ALL : FLAT;
        assert_int_equal(r.actions[t], want);
    }
    ho_backtest_free(&r);
    test_market_free(m);
}

static void random_policies_have_the_wanted_turnover_and_exposure(void **state)
{
    (void)state;
    test_market *m = test_market_new(20001);
    ho_err err = {0};
    test_market_walk(m, 1, 100.0, 0.01, 0.0);
    const double want[][2] = {{0.1, 0.5}, {0.02, 0.9}, {0.3, 0.2}, {0.0, 0.0}};
    for (int shorts = 0; shorts < 2; shorts++) {
        m->config.allow_short = shorts;
        for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
            ho_backtest_request request = {.policy = HO_POLICY_RANDOM,
                                           .window = {0, 20001},
                                           .env = &m->config,
                                           .rng_key = {3, 4},
                                           .random_turnover = want[i][0],
                                           .random_exposure = want[i][1]};
            ho_backtest_result r;
            CHECK_OK(ho_backtest(m->market, NULL, &request, 1, &r, &err), &err);
            CHECK_NEAR((double)r.position_changes / 20000.0, want[i][0], 0.012);
            CHECK_NEAR(r.metrics.value[HO_METRIC_EXPOSURE], want[i][1], 0.05);
            ho_backtest_free(&r);
        }
    }
    test_market_free(m);
}

static void targets_are_any_exposure(void **state)
{
    (void)state;
    test_market *m = test_market_new(6);
    const float targets[5] = {0.3f, 0.3f, -0.75f, 0.0f, 0.0f};
    ho_err err = {0};
    ho_backtest_result r;
    m->config.max_lots = 100;
    for (int64_t t = 0; t < 6; t++) {
        test_market_bar(m, t, 100, 100, 100, 100, 1000);
    }
    test_market_load(m);
    ho_backtest_request request = {.policy = HO_POLICY_TARGETS,
                                   .window = {0, 6},
                                   .env = &m->config,
                                   .targets = targets,
                                   .want = HO_WANT_TRADES};
    CHECK_OK(ho_backtest(m->market, NULL, &request, 1, &r, &err), &err);
    assert_int_equal(r.trade_count, 2);
    CHECK_CLOSE(r.trades[0].quantity, 30.0, 1e-12);
    CHECK_CLOSE(r.trades[1].quantity, 75.0, 1e-12);
    assert_int_equal(r.trades[1].side, -1);
    ho_backtest_free(&r);
    test_market_free(m);
}

static void actions_are_counted_and_returned(void **state)
{
    (void)state;
    test_market *m = busy_market(2, 300);
    ho_backtest_result r = test_market_run(m);
    int64_t sum = 0;
    assert_memory_equal(r.actions, m->actions, 299);
    for (int a = 0; a < HO_ACTIONS; a++) {
        sum += r.action_count[a];
    }
    assert_int_equal(sum, 299);
    assert_int_equal(r.trades_closed, r.trade_count);
    ho_backtest_free(&r);
    test_market_free(m);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void bad_requests_are_refused_by_name(void **state)
{
    (void)state;
    test_market *m = busy_market(2, 100);
    ho_err err = {0};
    ho_backtest_result r[2];
    float targets[99] = {0};
    ho_backtest_request good = {.policy = HO_POLICY_FLAT, .window = {0, 100}, .env = &m->config};
#define REFUSED(part_, ...)                                                                        \
    do {                                                                                           \
        ho_backtest_request bad[2] = {good, good};                                                 \
        ho_backtest_request *b = &bad[1];                                                          \
        __VA_ARGS__;                                                                               \
        CHECK_STATUS(ho_backtest(m->market, NULL, bad, 2, r, &err), HO_EINVAL);                    \
        CHECK_CONTAINS(err.text, "backtest 1: ");                                                  \
        CHECK_CONTAINS(err.text, part_);                                                           \
    } while (0)
    REFUSED("no policy", b->policy = (ho_policy)99);
    REFUSED("no policy", b->policy = (ho_policy)-1);
    REFUSED("needs a cohort", b->policy = HO_POLICY_GREEDY);
    REFUSED("needs an environment", b->env = NULL);
    REFUSED("does not lie", b->window.end = 101);
    REFUSED("does not lie", b->window.begin = -1);
    REFUSED("does not lie", b->window.begin = 99);
    REFUSED("actions are missing", b->policy = HO_POLICY_ACTIONS);
    m->actions[7] = 45;
    REFUSED("action 7 is 45", b->policy = HO_POLICY_ACTIONS, b->actions = m->actions);
    REFUSED("targets are missing", b->policy = HO_POLICY_TARGETS);
    targets[3] = 1.5f;
    REFUSED("target 3 is 1.5", b->policy = HO_POLICY_TARGETS, b->targets = targets);
    targets[3] = NAN;
    REFUSED("target 3 is", b->policy = HO_POLICY_TARGETS, b->targets = targets);
    REFUSED("momentum over 0", b->policy = HO_POLICY_MOMENTUM);
    REFUSED("random policy", b->policy = HO_POLICY_RANDOM, b->random_turnover = NAN);
    REFUSED("random policy", b->policy = HO_POLICY_RANDOM, b->random_exposure = 2.0);
    ho_env_config config = m->config;
    config.max_lots = 0;
    REFUSED("env.max_position", b->env = &config);
    config = m->config;
    config.lot = NAN;
    REFUSED("instrument.lot", b->env = &config);
    config = m->config;
    config.reward_clip = 0.0;
    REFUSED("reward.clip = 0 is outside (0", b->env = &config);
    config = m->config;
    config.sigma_window = 1;
    REFUSED("env.sigma_window", b->env = &config);
#undef REFUSED
    m->split = calloc(100, 1);
    m->split[50] = 1;
    test_market_load(m);
    CHECK_STATUS(ho_backtest(m->market, NULL, &good, 1, r, &err), HO_EINVAL);
    CHECK_CONTAINS(err.text, "split before bar 50");
    test_market_free(m);
}

static void bad_markets_are_refused_by_bar(void **state)
{
    (void)state;
    test_market *m = busy_market(2, 100);
    ho_err err = {0};
    ho_market *market = NULL;
    double sigma[100] = {0};
    ho_market_data good = {.T = 100,
                           .bars = m->bars,
                           .open_ns = m->open_ns,
                           .interval_ns = 1,
                           .session = m->session,
                           .roll_jump = m->roll_jump,
                           .funding = m->funding,
                           .sigma = sigma,
                           .has_volume = 1};
    ho_market_data bad = good;
#define REFUSED(part_, ...)                                                                        \
    do {                                                                                           \
        bad = good;                                                                                \
        __VA_ARGS__;                                                                               \
        CHECK_STATUS(ho_market_load(m->backend, &bad, &market, &err), HO_EINVAL);                  \
        CHECK_CONTAINS(err.text, part_);                                                           \
        assert_null(market);                                                                       \
    } while (0)
    REFUSED("are needed", bad.bars = NULL);
    REFUSED("are needed", bad.open_ns = NULL);
    REFUSED("are needed", bad.session = NULL);
    REFUSED("are needed", bad.F = 3);
    REFUSED("at least 2", bad.T = 1);
    REFUSED("at least 2", bad.T = INT32_MAX);
    REFUSED("at least 2", bad.F = -1);
    REFUSED("warmup", bad.warmup = -1);
    REFUSED("warmup", bad.warmup = 100);
    REFUSED("interval", bad.interval_ns = 0);
    static float features[100 * 3];
    features[7 * 3 + 1] = NAN;
    REFUSED("feature 1 of bar 7", bad.F = 3; bad.features = features);
    features[7 * 3 + 1] = -INFINITY;
    REFUSED("feature 1 of bar 7", bad.F = 3; bad.features = features);
    bad.warmup = 8; /* nobody reads the rows before */
    CHECK_OK(ho_market_load(m->backend, &bad, &market, &err), &err);
    ho_market_unload(&market);
    m->bars[17 * 5 + HO_LOW] = NAN;
    REFUSED("bar 17 has a low", (void)0);
    m->bars[17 * 5 + HO_LOW] = 1.0;
    m->bars[18 * 5 + HO_VOLUME] = INFINITY;
    REFUSED("bar 18 has a volume", (void)0);
    m->bars[18 * 5 + HO_VOLUME] = -1.0;
    REFUSED("negative volume", (void)0);
    m->bars[18 * 5 + HO_VOLUME] = 1.0;
    m->funding[3] = NAN;
    REFUSED("bar 3", (void)0);
    m->funding[3] = 0.0;
    m->roll_jump[4] = NAN;
    REFUSED("bar 4", (void)0);
    m->roll_jump[4] = 0.0;
    sigma[5] = -1.0;
    REFUSED("bar 5", (void)0);
    sigma[5] = INFINITY;
    REFUSED("bar 5", (void)0);
    sigma[5] = 0.0;
    m->session[9] = 5;
    REFUSED("session of bar 10", (void)0);
#undef REFUSED
    test_market_free(m);
}

/* ---- host tables ----------------------------------------------------------------------------- */

static void volatility_is_rolling_carried_and_cached(void **state)
{
    (void)state;
    enum { T = 200 };
    test_market *m = test_market_new(T);
    ho_err err = {0};
    ho_market_host *h;
    const double *s60, *s5, *again;
    m->split = calloc(T, 1);
    m->split[150] = 1;
    test_market_walk(m, 2, 100.0, 0.3, 0.0);
    for (int64_t t = 100; t < 110; t++) { /* no return has meaning here */
        test_market_bar(m, t, -1, -1, -1, -1, 10);
    }
    ho_market_data data = {.T = T,
                           .bars = m->bars,
                           .open_ns = m->open_ns,
                           .interval_ns = 1,
                           .session = m->session,
                           .split = m->split};
    CHECK_OK(ho_market_host_create(&data, &h, &err), &err);
    CHECK_OK(ho_market_host_sigma(h, 60, &s60, &err), &err);
    CHECK_OK(ho_market_host_sigma(h, 5, &s5, &err), &err);
    CHECK_OK(ho_market_host_sigma(h, 60, &again, &err), &err);
    assert_ptr_equal(s60, again);
    assert_ptr_not_equal(s60, s5);
    for (int64_t t = 0; t < 20; t++) {
        CHECK_NEAR(s60[t], 0.0, 0.0); /* 20 returns are at bar 20 */
    }
    for (int64_t t = 20; t < 100; t++) {
        ho_moments all = {0, 0, 0};
        for (int64_t i = t >= 60 ? t - 59 : 1; i <= t; i++) {
            ho_moments_add(&all, m->bars[i * 5 + 3] / m->bars[(i - 1) * 5 + 3] - 1.0);
        }
        CHECK_CLOSE(s60[t], ho_moments_deviation(&all), 1e-12);
    }
    for (int64_t t = 105; t < 110; t++) {
        CHECK_NEAR(s5[t], s5[104], 0.0); /* carried while there are no returns */
    }
    assert_true(h->bar_flags[149] & HO_BAR_SPLIT_NEXT);
    assert_true(h->bar_flags[T - 1] & HO_BAR_SPLIT_NEXT);
    CHECK_STATUS(ho_market_host_sigma(h, 1, &again, &err), HO_EINVAL);
    ho_market_host_destroy(&h);
    ho_market_host_destroy(&h); /* NULL is accepted */
    test_market_free(m);
}

static void impact_grows_with_the_root_of_the_amount(void **state)
{
    (void)state;
    ho_env_config c = ho_env_config_defaults();
    ho_liquidity l = {.impact_scale = 0.01, .mean_volume = 400.0};
    ho_ledger ledger = {0};
    c.spread_bps = 0.0;
    CHECK_CLOSE(ho_crossing_price(&c, &l, 100.0, 1, 4, &ledger), 100.0 * (1 + 0.01 * 0.1), 1e-14);
    CHECK_CLOSE(ledger.impact, 100.0 * 0.001 * 4, 1e-12);
    CHECK_CLOSE(ho_crossing_price(&c, &l, 100.0, -1, 16, NULL), 100.0 * (1 - 0.01 * 0.2), 1e-14);
    l.mean_volume = 0.0; /* never divides by nothing: at least a lot */
    CHECK_CLOSE(ho_crossing_price(&c, &l, 100.0, 1, 4, NULL), 102.0, 1e-14);
    CHECK_CLOSE(ho_crossing_price(&c, &l, -100.0, 1, 4, NULL), -98.0, 1e-14);
    CHECK_CLOSE(ho_crossing_price(&c, &l, 0.0, 1, 4, NULL), 0.0, 0.0);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static void sizes_are_whole_lots_of_the_capital(void **state)
{
    (void)state;
    ho_err err = {0};
    ho_size s;
    ho_size_request r = {.capital = 1000000.0, .multiplier = 50.0, .max_exposure = 1.0};
    CHECK_OK(ho_size_resolve(&r, 4500.0, &s, &err), &err);
    assert_int_equal(s.max_lots, 4); /* 1e6 / 225000 */
    CHECK_NEAR(s.lot, 1.0, 0.0);
    CHECK_NEAR(s.notional, 900000.0, 1e-9);
    CHECK_NEAR(s.leverage, 0.9, 1e-12);
    r.max_exposure = 0.2; /* metrics.md 1.8: floor(0.2 * 1e6 / 225000) = 0 is reported */
    CHECK_STATUS(ho_size_resolve(&r, 4500.0, &s, &err), HO_ECONFIG);
    CHECK_CONTAINS(err.text, "capital 1000000 buys no lot of 1");
    r.multiplier = 5.0;
    r.lot = 1.0;
    CHECK_OK(ho_size_resolve(&r, 4500.0, &s, &err), &err);
    assert_int_equal(s.max_lots, 8);
    r = (ho_size_request){.capital = 10000.0, .multiplier = 1.0, .max_exposure = 1.0};
    CHECK_OK(ho_size_resolve(&r, 42000.0, &s, &err), &err); /* 0.238 coins: lots of 0.001 */
    CHECK_NEAR(s.lot, 0.001, 0.0);
    assert_int_equal(s.max_lots, 238);
    CHECK_OK(ho_size_resolve(&r, -0.5, &s, &err), &err); /* 20000 units: lots of 100 */
    CHECK_NEAR(s.lot, 100.0, 0.0);
    r.max_position = 7.0;
    r.lot = 2.0;
    CHECK_OK(ho_size_resolve(&r, 100.0, &s, &err), &err);
    assert_int_equal(s.max_lots, 3);
    CHECK_STATUS(ho_size_resolve(&r, 0.0, &s, &err), HO_ECONFIG);
    CHECK_STATUS(ho_size_resolve(&r, NAN, &s, &err), HO_ECONFIG);
    r.lot = 1e-12;
    CHECK_STATUS(ho_size_resolve(&r, 100.0, &s, &err), HO_ECONFIG);
    CHECK_CONTAINS(err.text, "instrument.lot");
}

static void sigma_ref_is_a_bars_deviation_at_full_size(void **state)
{
    (void)state;
    test_market *m = test_market_new(6);
    const double close[] = {100, 101, 99, 149, 150, 10};
    double sigma;
    ho_err err = {0};
    m->roll_jump = calloc(6, sizeof(double));
    m->split = calloc(6, 1);
    m->roll_jump[3] = 49.0;
    m->split[5] = 1;
    for (int64_t t = 0; t < 6; t++) {
        test_market_bar(m, t, close[t], close[t], close[t], close[t], 1);
    }
    CHECK_OK(ho_sigma_ref(m->bars, m->roll_jump, m->split, (ho_window){0, 6}, 2.0, 50.0, 10000.0,
                          &sigma, &err),
             &err);
    ho_moments want = {0, 0, 0};
    const double change[] = {1, -2, 1, 1};
    for (int i = 0; i < 4; i++) {
        ho_moments_add(&want, change[i] * 100.0 / 10000.0);
    }
    CHECK_NEAR(sigma, ho_moments_deviation(&want), 1e-15);
    ho_size size = {.lot = 0.5, .max_lots = 7};
    ho_size_apply(&size, sigma, &m->config);
    CHECK_NEAR(m->config.sigma_ref, sigma, 0.0);
    assert_int_equal(m->config.max_lots, 7);
    CHECK_STATUS(ho_sigma_ref(m->bars, NULL, NULL, (ho_window){0, 2}, 2, 50, 1e4, &sigma, &err),
                 HO_EDATA);
    CHECK_CONTAINS(err.text, "does not move");
    test_market_free(m);
}

/* ---- backend --------------------------------------------------------------------------------- */

static void the_cpu_backend_says_what_it_is(void **state)
{
    (void)state;
    ho_backend *backend;
    ho_device_info info;
    ho_err err = {0};
    ho_backend_options options = ho_backend_defaults();
    options.threads = 2;
    options.memory_limit = 1000;
    CHECK_OK(ho_backend_open(&backend, &options, &err), &err);
    CHECK_OK(ho_backend_info(backend, &info, &err), &err);
    assert_string_equal(info.uuid, "cpu");
    assert_in_range(info.processors, 1, 2); /* one under the thread sanitizer */
    assert_int_equal(info.memory_free, 1000);
    ho_backend_close(&backend);
    ho_backend_close(&backend);
    options.threads = -1;
    CHECK_STATUS(ho_backend_open(&backend, &options, &err), HO_EINVAL);
    ho_market *market = NULL;
    ho_market_unload(&market);
    if (ho_backend_gpu_count() == 0) {
        options = ho_backend_defaults();
        options.kind = HO_BACKEND_CUDA;
        ho_status rc = ho_backend_open(&backend, &options, &err);
        assert_true(rc == HO_EUNSUPPORTED || rc == HO_EGPU);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_parts_of_pnl_sum),
        cmocka_unit_test(profit_never_rises_with_a_fee),
        cmocka_unit_test(knowing_the_bar_one_decides_on_gains_nothing_on_noise),
        cmocka_unit_test(poisoned_future_bars_change_nothing_earlier),
        cmocka_unit_test(results_do_not_depend_on_threads_or_neighbours),
        cmocka_unit_test(ruin_ends_the_pass_and_is_said),
        cmocka_unit_test(flat_never_trades_and_cannot_win),
        cmocka_unit_test(buy_and_hold_buys_once_without_barriers),
        cmocka_unit_test(momentum_follows_the_sign_of_the_change),
        cmocka_unit_test(random_policies_have_the_wanted_turnover_and_exposure),
        cmocka_unit_test(targets_are_any_exposure),
        cmocka_unit_test(actions_are_counted_and_returned),
        cmocka_unit_test(bad_requests_are_refused_by_name),
        cmocka_unit_test(bad_markets_are_refused_by_bar),
        cmocka_unit_test(volatility_is_rolling_carried_and_cached),
        cmocka_unit_test(impact_grows_with_the_root_of_the_amount),
        cmocka_unit_test(sizes_are_whole_lots_of_the_capital),
        cmocka_unit_test(sigma_ref_is_a_bars_deviation_at_full_size),
        cmocka_unit_test(the_cpu_backend_says_what_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
