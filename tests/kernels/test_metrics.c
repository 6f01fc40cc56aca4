/* SPDX-License-Identifier: Apache-2.0
 * The metrics against the fixtures and third-party anchors of spec/metrics.md, its edge table, and
 * public bug reports of other tools. */
#include <stdlib.h>

#include "check.h"
#include "kernels/env/rng.h"
#include "kernels/fixtures.h"
#include "kernels/series.h"

/* ---- fixtures -------------------------------------------------------------------------------- */

static void fixture_a_holds(void **state)
{
    (void)state;
    ho_metric_set m = series_metrics(fixture_a, 10, 252.0, 10.0 / 252.0);
    CHECK_NEAR(m.value[HO_METRIC_SHARPE], 2.858841194080737, 1e-12);
    CHECK_NEAR(m.value[HO_METRIC_BAR_SHARPE], 0.18009006755629925, 1e-13);
    CHECK_NEAR(m.value[HO_METRIC_SORTINO], 5.184592558726288, 1e-12);
    CHECK_NEAR(m.value[HO_METRIC_CAGR], 1.5871308733706493, 1e-12);
    CHECK_NEAR(m.value[HO_METRIC_MAX_DRAWDOWN], -0.039894, 1e-12);
    CHECK_NEAR(m.value[HO_METRIC_CALMAR], 39.78369863565072, 1e-10);
    CHECK_NEAR(m.value[HO_METRIC_VAR95], -0.0255, 1e-15);
    CHECK_NEAR(m.value[HO_METRIC_CVAR95], -0.03, 1e-15);
    CHECK_NEAR(ho_downside_deviation(fixture_a, 10, 0.0), 0.004 / 0.3265986323710904, 1e-12);
    assert_true(m.flags & HO_FLAG_SHORT_SAMPLE);
    assert_true(m.flags & HO_FLAG_TAIL_TOO_SMALL);
}

static void fixture_a_with_a_rate_and_a_target(void **state)
{
    (void)state;
    ho_bar_stats bars;
    ho_metric_set m;
    ho_metrics_input in = ho_metrics_input_defaults();
    ho_bar_stats_begin(&bars, 100.0);
    in.initial_capital = 100.0;
    in.bars = &bars;
    in.sessions = fixture_a;
    in.session_count = 10;
    in.risk_free = 0.05;
    in.target = 0.001;
    assert_int_equal(ho_metrics_compute(&in, &m), HO_OK);
    CHECK_NEAR(m.value[HO_METRIC_SHARPE], 2.7204514769460793, 1e-12);
    CHECK_NEAR(m.value[HO_METRIC_SORTINO], 3.7131164865316566, 1e-12);
}

/* R PerformanceAnalytics 2.1.0 */
static void fixture_b_agrees_with_performance_analytics(void **state)
{
    (void)state;
    ho_metric_set m = series_metrics(fixture_b, 24, 12.0, 2.0);
    CHECK_NEAR(m.value[HO_METRIC_VOLATILITY], 0.13700015867969229, 1e-12);
    CHECK_NEAR(m.value[HO_METRIC_CAGR], 0.10367828972980941, 1e-12);
    CHECK_NEAR(m.value[HO_METRIC_SHARPE], 0.7883202548144859, 1e-12);
    CHECK_NEAR(m.value[HO_METRIC_SORTINO], 1.3592165786838633, 1e-12);
    CHECK_NEAR(m.value[HO_METRIC_MAX_DRAWDOWN], -0.144672955739218, 1e-12);
    CHECK_NEAR(m.value[HO_METRIC_CALMAR], 0.7166390511623746, 1e-12);
    CHECK_NEAR(m.value[HO_METRIC_VAR95], -0.0592, 1e-12);
    assert_true(m.flags & HO_FLAG_CENSORED);
    CHECK_NEAR(m.value[HO_METRIC_DRAWDOWN_DURATION], 24 - 13, 0.0);
    CHECK_NEAR(m.value[HO_METRIC_RECOVERY_TIME], 24 - 18, 0.0);
}

static void fixture_b_peak_and_trough(void **state)
{
    (void)state;
    ho_bar_stats s;
    double equity = 1.0;
    ho_bar_stats_begin(&s, 1.0);
    for (int i = 0; i < 24; i++) {
        equity *= 1.0 + fixture_b[i];
        ho_bar_stats_add(&s, equity, fixture_b[i], 0);
    }
    assert_int_equal(s.deepest.peak, 13);
    assert_int_equal(s.deepest.trough, 18);
    assert_int_equal(s.deepest.recovery, -1);
}

static void fixture_c_quantiles_and_tails(void **state)
{
    (void)state;
    CHECK_NEAR(ho_quantile7(fixture_c, 20, 0.05), -0.04145, 1e-15);
    CHECK_NEAR(ho_quantile7(fixture_c, 20, 0.10), -0.0338, 1e-15);
    CHECK_NEAR(ho_cvar(fixture_c, 20, 0.05), -0.05, 1e-15);
    CHECK_NEAR(ho_cvar(fixture_c, 20, 0.10), -0.0455, 1e-15);
    /* the test that tells Rockafellar-Uryasev from the mean below VaR */
    const double a[10] = {-.03, -.02, -.01, -.01, 0, .01, .01, .02, .03, .04};
    CHECK_NEAR(ho_cvar(a, 10, 0.25), -0.022, 1e-15);
    CHECK_NEAR(ho_quantile7(a, 10, 0.10), -0.021, 1e-15);
    const double two[2] = {1, 2}, six[6] = {1, 81, 82, 83, 84, 85}; /* empyrical's */
    CHECK_NEAR(ho_quantile7(two, 2, 0.3), 1.3, 1e-15);
    CHECK_NEAR(ho_quantile7(six, 6, 0.1), 41.0, 1e-12);
    CHECK_NEAR(ho_quantile7(six, 6, 0.2), 81.0, 1e-12);
    CHECK_NEAR(ho_quantile7(six, 6, 0.3), 81.5, 1e-12);
    CHECK_NEAR(ho_quantile7(six, 6, 1.0), 85.0, 0.0);
}

static ho_bar_stats equity_stats(const double *equity, int n)
{
    ho_bar_stats s;
    ho_bar_stats_begin(&s, equity[0]);
    for (int i = 1; i < n; i++) {
        ho_bar_stats_add(&s, equity[i], equity[i] / equity[i - 1] - 1.0, 0);
    }
    return s;
}

static void fixture_e_drawdowns(void **state)
{
    (void)state;
    ho_bar_stats s = equity_stats(fixture_e, 10);
    CHECK_NEAR(s.deepest.depth, -0.13, 1e-15);
    assert_int_equal(s.deepest.peak, 4);
    assert_int_equal(s.deepest.trough, 6);
    assert_int_equal(s.deepest.recovery, 8);
    assert_int_equal(ho_drawdown_duration(&s), 4);
    assert_int_equal(ho_drawdown_recovery(&s), 2);
    assert_int_equal(ho_drawdown_longest(&s), 4);
    CHECK_NEAR(s.deepest_cash, 15.015, 1e-12);
    s = equity_stats(fixture_e, 4); /* the first one, before it recovers */
    CHECK_NEAR(s.deepest.depth, -0.10, 1e-15);
    assert_int_equal(s.deepest.recovery, -1);
    assert_int_equal(ho_drawdown_longest(&s), 2);
    s = equity_stats(fixture_e, 5);
    assert_int_equal(s.deepest.recovery, 4);
    assert_int_equal(s.deepest.peak, 1);
}

static void the_longest_drawdown_need_not_be_the_deepest(void **state)
{
    (void)state;
    const double equity[] = {100, 80, 100, 99, 99, 99, 99, 100, 101};
    ho_bar_stats s = equity_stats(equity, 9);
    assert_int_equal(ho_drawdown_duration(&s), 2);
    assert_int_equal(ho_drawdown_longest(&s), 5);
}

static void fixture_t_trade_statistics(void **state)
{
    (void)state;
    ho_metric_set m = trade_metrics(fixture_t, 7);
    CHECK_NEAR(m.value[HO_METRIC_TRADES], 7, 0.0);
    CHECK_NEAR(m.value[HO_METRIC_WIN_RATE], 3.0 / 7.0, 1e-15);
    CHECK_NEAR(m.value[HO_METRIC_PROFIT_FACTOR], 1.6521739130434783, 1e-14);
    CHECK_NEAR(m.value[HO_METRIC_AVG_TRADE], 21.428571428571427, 1e-13);
    CHECK_NEAR(m.value[HO_METRIC_PAYOFF], 1.6521739130434783, 1e-14);
    CHECK_NEAR(m.value[HO_METRIC_SQN], 0.511594910512404, 1e-14);
    CHECK_NEAR(m.value[HO_METRIC_TOTAL_PNL], 150.0, 1e-9);
    CHECK_NEAR(m.value[HO_METRIC_EXPECTANCY], 21.428571428571427 / (230.0 / 3.0), 1e-14);
    CHECK_NEAR(m.value[HO_METRIC_AVG_TRADE_RETURN], 0.0021428571428571, 1e-15);
}

static void kelly_by_outcomes(void **state)
{
    (void)state;
    double payoff = 380.0 / 230.0;
    CHECK_NEAR(ho_kelly_two_outcomes(0.5, payoff, 1.0), 0.19736842105, 1e-11);
    CHECK_NEAR(ho_kelly_two_outcomes(0.6, 2.0, 1.0), 0.4, 1e-15);
    CHECK_NEAR(ho_kelly_two_outcomes(0.6, 0.02, 0.01), 40.0, 1e-12);
}

/* ---- properties ------------------------------------------------------------------------------ */

static void sharpe_of_simple_series(void **state)
{
    (void)state;
    const double zero[2] = {.01, -.01}, loss[3] = {-.01, -.02, -.005}, kept[3] = {.01, -.02, .03};
    const double holed[4] = {.01, NAN, -.02, .03}, five[5] = {.01, -.02, .015, -.005, .025};
    CHECK_NEAR(series_metrics(zero, 2, 1.0, 0).value[HO_METRIC_SHARPE], 0.0, 1e-15);
    ho_metric_set m = series_metrics(loss, 3, 1.0, 3.0 / 252.0);
    CHECK_NEAR(m.value[HO_METRIC_SHARPE], -1.5275252316519465, 1e-13);
    CHECK_NEAR(m.value[HO_METRIC_SORTINO], -0.8819171036881969, 1e-13);
    CHECK_NEAR(m.value[HO_METRIC_CAGR], -0.9483006018918115, 1e-13);
    CHECK_NEAR(m.value[HO_METRIC_MAX_DRAWDOWN], -0.034651, 1e-13);
    CHECK_NEAR(m.value[HO_METRIC_CALMAR], -27.367192920602836, 1e-10);
    m = series_metrics(holed, 4, 1.0, 0);
    CHECK_NEAR(m.value[HO_METRIC_SHARPE], 0.2649064714130087, 1e-14); /* dropped, not zero-filled */
    assert_true(m.flags & HO_FLAG_NAN_DROPPED);
    CHECK_NEAR(series_metrics(kept, 3, 1.0, 0).value[HO_METRIC_SHARPE], 0.2649064714130087, 1e-14);
    CHECK_NEAR(series_metrics(five, 5, 252.0, 0).value[HO_METRIC_SHARPE], 4.48998886412873, 1e-12);
}

static void permuting_returns_leaves_sharpe_and_sortino(void **state)
{
    (void)state;
    double r[200], p[200];
    const uint32_t key[2] = {9, 9};
    for (int i = 0; i < 200; i++) {
        r[i] = p[i] = 0.01 * ho_rng_normal(ho_rng(key, (uint32_t)i, 0, 0, HO_RNG_NOISE, 0).v[0],
                                           ho_rng(key, (uint32_t)i, 0, 0, HO_RNG_NOISE, 0).v[1]);
    }
    for (uint32_t i = 199; i > 0; i--) {
        uint32_t j = ho_rng_below(ho_rng(key, i, 0, 0, HO_RNG_SHUFFLE, 0).v[0], i + 1);
        double swap = p[i];
        p[i] = p[j];
        p[j] = swap;
    }
    ho_metric_set a = series_metrics(r, 200, 252.0, 1.0), b = series_metrics(p, 200, 252.0, 1.0);
    CHECK_CLOSE(a.value[HO_METRIC_SHARPE], b.value[HO_METRIC_SHARPE], 1e-12);
    CHECK_CLOSE(a.value[HO_METRIC_SORTINO], b.value[HO_METRIC_SORTINO], 1e-12);
    for (int i = 0; i < 200; i++) {
        p[i] = 10.0 * r[i];
    }
    b = series_metrics(p, 200, 252.0, 1.0);
    CHECK_CLOSE(a.value[HO_METRIC_SHARPE], b.value[HO_METRIC_SHARPE], 1e-12); /* scale */
}

static void moments_merge_as_if_added_in_one(void **state)
{
    (void)state;
    ho_moments all = {0, 0, 0}, a = {0, 0, 0}, b = {0, 0, 0}, none = {0, 0, 0};
    for (int i = 0; i < 24; i++) {
        ho_moments_add(&all, fixture_b[i]);
        ho_moments_add(i < 7 ? &a : &b, fixture_b[i]);
    }
    ho_moments_merge(&a, &b);
    ho_moments_merge(&a, &none);
    assert_int_equal(a.n, 24);
    CHECK_NEAR(a.mean, all.mean, 1e-16);
    CHECK_NEAR(a.m2, all.m2, 1e-16);
    ho_moments_merge(&none, &all);
    CHECK_NEAR(none.m2, all.m2, 1e-16);
}

/* TorchTrade 293: money in float32 stands still */
static void sums_do_not_lose_small_amounts(void **state)
{
    (void)state;
    ho_sum s = {1000000.0, 0.0};
    for (int i = 0; i < 1000000; i++) {
        ho_sum_add(&s, 0.01);
    }
    CHECK_NEAR(ho_sum_value(&s), 1010000.0, 1e-9);
    ho_sum cancel = {0, 0};
    ho_sum_add(&cancel, 1.0);
    ho_sum_add(&cancel, 1e100);
    ho_sum_add(&cancel, 1.0);
    ho_sum_add(&cancel, -1e100);
    CHECK_NEAR(ho_sum_value(&cancel), 2.0, 0.0);
}

/* ---- edge table ------------------------------------------------------------------------------ */

static void no_bars_at_all(void **state)
{
    (void)state;
    ho_metric_set m = series_metrics(NULL, 0, 252.0, 0);
    const ho_metric none[] = {HO_METRIC_SHARPE, HO_METRIC_SORTINO,       HO_METRIC_CALMAR,
                              HO_METRIC_VAR95,  HO_METRIC_MAX_DRAWDOWN,  HO_METRIC_WIN_RATE,
                              HO_METRIC_CVAR95, HO_METRIC_PROFIT_FACTOR, HO_METRIC_VOLATILITY,
                              HO_METRIC_CAGR,   HO_METRIC_BAR_SHARPE,    HO_METRIC_TURNOVER};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        CHECK_UNDEFINED(m, none[i], "no_data");
    }
    CHECK_NEAR(m.value[HO_METRIC_TOTAL_PNL], 0.0, 0.0);
}

static void one_bar(void **state)
{
    (void)state;
    const double r[1] = {-0.02};
    ho_metric_set m = series_metrics(r, 1, 252.0, 0.1);
    CHECK_UNDEFINED(m, HO_METRIC_SHARPE, "too_short");
    CHECK_UNDEFINED(m, HO_METRIC_SORTINO, "too_short");
    CHECK_UNDEFINED(m, HO_METRIC_CALMAR, "too_short");
    CHECK_NEAR(m.value[HO_METRIC_MAX_DRAWDOWN], -0.02, 1e-15);
    CHECK_NEAR(m.value[HO_METRIC_VAR95], -0.02, 0.0);
    CHECK_NEAR(m.value[HO_METRIC_CVAR95], -0.02, 0.0);
    CHECK_NEAR(m.value[HO_METRIC_TOTAL_PNL], -2.0, 1e-12);
}

static void an_agent_that_never_trades_is_undefined(void **state)
{
    (void)state;
    const double r[5] = {0, 0, 0, 0, 0};
    ho_metric_set m = series_metrics(r, 5, 252.0, 0.1);
    CHECK_UNDEFINED(m, HO_METRIC_SHARPE, "flat");
    CHECK_UNDEFINED(m, HO_METRIC_SORTINO, "flat");
    CHECK_UNDEFINED(m, HO_METRIC_BAR_SHARPE, "flat");
    CHECK_UNDEFINED(m, HO_METRIC_CALMAR, "no_drawdown");
    CHECK_NEAR(m.value[HO_METRIC_MAX_DRAWDOWN], 0.0, 0.0);
    CHECK_NEAR(m.value[HO_METRIC_VAR95], 0.0, 0.0);
    CHECK_NEAR(m.value[HO_METRIC_VOLATILITY], 0.0, 0.0);
    CHECK_NEAR(m.value[HO_METRIC_DRAWDOWN_DURATION], 0.0, 0.0);
    m = trade_metrics(NULL, 0);
    CHECK_UNDEFINED(m, HO_METRIC_WIN_RATE, "no_trades");
    CHECK_UNDEFINED(m, HO_METRIC_PROFIT_FACTOR, "no_trades");
    CHECK_UNDEFINED(m, HO_METRIC_AVG_TRADE, "no_trades");
    CHECK_UNDEFINED(m, HO_METRIC_SQN, "no_trades");
    CHECK_NEAR(m.value[HO_METRIC_TRADES], 0.0, 0.0);
}

static void all_wins(void **state)
{
    (void)state;
    const double r[3] = {.01, .02, .03}, net[3] = {10, 20, 30};
    ho_metric_set m = series_metrics(r, 3, 252.0, 0.1);
    assert_true(m.value[HO_METRIC_SHARPE] > 0.0);
    CHECK_UNDEFINED(m, HO_METRIC_SORTINO, "no_downside");
    CHECK_UNDEFINED(m, HO_METRIC_CALMAR, "no_drawdown");
    CHECK_UNDEFINED(m, HO_METRIC_RETURN_OVER_MAXDD, "no_drawdown");
    m = trade_metrics(net, 3);
    CHECK_NEAR(m.value[HO_METRIC_WIN_RATE], 1.0, 0.0);
    CHECK_UNDEFINED(m, HO_METRIC_PROFIT_FACTOR, "no_losses");
    CHECK_UNDEFINED(m, HO_METRIC_PAYOFF, "no_losses");
    CHECK_UNDEFINED(m, HO_METRIC_EXPECTANCY, "no_losses");
}

static void all_losses_and_equal_trades(void **state)
{
    (void)state;
    const double net[3] = {-10, -10, -10}, one[1] = {-10};
    ho_metric_set m = trade_metrics(net, 3);
    CHECK_NEAR(m.value[HO_METRIC_WIN_RATE], 0.0, 0.0);
    CHECK_NEAR(m.value[HO_METRIC_PROFIT_FACTOR], 0.0, 0.0);
    CHECK_UNDEFINED(m, HO_METRIC_PAYOFF, "no_wins");
    CHECK_UNDEFINED(m, HO_METRIC_SQN, "flat");
    m = trade_metrics(one, 1);
    CHECK_UNDEFINED(m, HO_METRIC_SQN, "too_short");
}

static void a_missing_time_span_leaves_cagr_undefined(void **state)
{
    (void)state;
    ho_metric_set m = series_metrics(fixture_a, 10, 252.0, 0);
    CHECK_UNDEFINED(m, HO_METRIC_CAGR, "no_time");
    CHECK_UNDEFINED(m, HO_METRIC_CALMAR, "no_time");
    assert_true(m.value[HO_METRIC_RETURN_OVER_MAXDD] > 0.0);
    CHECK_UNDEFINED(m, HO_METRIC_TRADES, "no_data");
    CHECK_UNDEFINED(m, HO_METRIC_EXPOSURE, "no_data");
    CHECK_UNDEFINED(m, HO_METRIC_LONGEST_FLAT, "no_data");
}

static void losing_everything_is_ruin_and_not_a_ratio(void **state)
{
    (void)state;
    ho_bar_stats bars;
    ho_metric_set m;
    ho_metrics_input in = ho_metrics_input_defaults();
    const double r[2] = {0.01, -1.0};
    ho_bar_stats_begin(&bars, 100.0);
    ho_bar_stats_add(&bars, 101.0, 0.01, 1);
    ho_bar_stats_add(&bars, 0.0, -1.0, 1);
    in.initial_capital = 100.0;
    in.bars = &bars;
    in.sessions = r;
    in.session_count = 2;
    in.years = 1.0;
    in.ruined = 1;
    assert_int_equal(ho_metrics_compute(&in, &m), HO_OK);
    CHECK_UNDEFINED(m, HO_METRIC_SHARPE, "ruined");
    CHECK_UNDEFINED(m, HO_METRIC_SORTINO, "ruined");
    CHECK_UNDEFINED(m, HO_METRIC_CALMAR, "ruined");
    CHECK_UNDEFINED(m, HO_METRIC_BAR_SHARPE, "ruined");
    CHECK_NEAR(m.value[HO_METRIC_MAX_DRAWDOWN], -1.0, 0.0);
    CHECK_NEAR(m.value[HO_METRIC_CAGR], -1.0, 0.0);
    CHECK_NEAR(m.value[HO_METRIC_TOTAL_PNL], -100.0, 0.0);
    CHECK_NEAR(m.value[HO_METRIC_CVAR95], -1.0, 0.0);
    assert_true(m.flags & HO_FLAG_RUINED);
}

/* ---- public reports -------------------------------------------------------------------------- */

/* quantstats 438, pyfolio 179 */
static void a_loss_in_the_first_bar_is_part_of_the_drawdown(void **state)
{
    (void)state;
    const double r[3] = {-.10, .05, .10}, nav[2] = {-.1, .75 / .9 - 1.0};
    CHECK_NEAR(series_metrics(r, 3, 252, 0).value[HO_METRIC_MAX_DRAWDOWN], -0.10, 1e-15);
    CHECK_NEAR(series_metrics(nav, 2, 252, 0).value[HO_METRIC_MAX_DRAWDOWN], -0.25, 1e-15);
}

/* ffn PR 346 */
static void constant_returns_have_no_sharpe(void **state)
{
    (void)state;
    double r[250];
    for (int i = 0; i < 250; i++) {
        r[i] = 0.001;
    }
    ho_metric_set m = series_metrics(r, 250, 252.0, 1.0);
    CHECK_UNDEFINED(m, HO_METRIC_SHARPE, "flat");
    CHECK_UNDEFINED(m, HO_METRIC_SORTINO, "no_downside");
    r[7] = 0.001 * (1.0 + 1e-15);
    CHECK_UNDEFINED(series_metrics(r, 250, 252.0, 1.0), HO_METRIC_SHARPE, "flat");
}

/* Vibe-Trading PR 958 */
static void negative_equity_keeps_its_sign(void **state)
{
    (void)state;
    const double equity[4] = {100, -20, -50, -100};
    ho_bar_stats s = equity_stats(equity, 2);
    CHECK_NEAR(s.deepest.depth, -1.2, 1e-15);
    s = equity_stats(equity, 3);
    CHECK_NEAR(s.deepest.depth, -1.5, 1e-15);
    s = equity_stats(equity, 4);
    CHECK_NEAR(s.deepest.depth, -2.0, 1e-15);
    ho_metric_set m;
    ho_metrics_input in = ho_metrics_input_defaults();
    in.initial_capital = 100.0;
    in.bars = &s;
    in.years = 1.0;
    in.ruined = 1;
    assert_int_equal(ho_metrics_compute(&in, &m), HO_OK);
    CHECK_NEAR(m.value[HO_METRIC_CAGR], -1.0, 0.0);
    CHECK_NEAR(m.value[HO_METRIC_TOTAL_RETURN], -2.0, 0.0);
}

/* backtesting.py 537; 1.1^(365.25 / 30) - 1 */
static void years_are_calendar_years_not_trading_days(void **state)
{
    (void)state;
    const double r[1] = {0.10};
    CHECK_NEAR(series_metrics(r, 1, 252, 30.0 / 365.25).value[HO_METRIC_CAGR], 2.19121409718457,
               1e-12);
}

/* quantstats 547 */
static void cvar_never_exceeds_var(void **state)
{
    (void)state;
    double r[300];
    const uint32_t key[2] = {5, 5};
    for (int n = 1; n <= 300; n++) {
        for (int i = 0; i < n; i++) {
            ho_rng4 u = ho_rng(key, (uint32_t)i, (uint32_t)n, 0, HO_RNG_NOISE, 0);
            r[i] = n % 3 ? 0.01 * ho_rng_normal(u.v[0], u.v[1]) : 0.1 * (u.v[0] % 2) + 0.1;
        }
        ho_metric_set m = series_metrics(r, n, 252, 0);
        assert_true(m.value[HO_METRIC_CVAR95] <= m.value[HO_METRIC_VAR95]);
    }
}

/* spec 1.1: the same equity by bar and by session */
static void session_and_bar_ratios_differ(void **state)
{
    (void)state;
    const double equity[7] = {100, 100.5, 100.2, 101.0, 100.8, 101.5, 101.2};
    double bar[6], session[2] = {0.01, 101.2 / 101.0 - 1.0};
    for (int i = 0; i < 6; i++) {
        bar[i] = equity[i + 1] / equity[i] - 1.0;
    }
    CHECK_NEAR(series_metrics(bar, 6, 756, 0).value[HO_METRIC_SHARPE], 10.6090, 5e-5);
    CHECK_NEAR(series_metrics(session, 2, 252, 0).value[HO_METRIC_SHARPE], 16.7682, 5e-5);
}

/* ---- table ----------------------------------------------------------------------------------- */

static void the_table_is_found_by_name(void **state)
{
    (void)state;
    for (int i = 0; i < HO_METRIC_COUNT; i++) {
        ho_metric metric = (ho_metric)i;
        assert_int_equal(ho_metric_find(ho_metric_name(metric)), i);
        assert_true(ho_metric_convention(metric)[0] && ho_metric_unit(metric)[0]);
        assert_in_range(ho_metric_direction(metric) + 1, 0, 2);
    }
    assert_int_equal(ho_metric_find("sharp"), -1);
    assert_string_equal(ho_metric_reason_name(HO_REASON_DEFINED), "");
    assert_string_equal(ho_metric_reason_name(250), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixture_a_holds),
        cmocka_unit_test(fixture_a_with_a_rate_and_a_target),
        cmocka_unit_test(fixture_b_agrees_with_performance_analytics),
        cmocka_unit_test(fixture_b_peak_and_trough),
        cmocka_unit_test(fixture_c_quantiles_and_tails),
        cmocka_unit_test(fixture_e_drawdowns),
        cmocka_unit_test(the_longest_drawdown_need_not_be_the_deepest),
        cmocka_unit_test(fixture_t_trade_statistics),
        cmocka_unit_test(kelly_by_outcomes),
        cmocka_unit_test(sharpe_of_simple_series),
        cmocka_unit_test(permuting_returns_leaves_sharpe_and_sortino),
        cmocka_unit_test(moments_merge_as_if_added_in_one),
        cmocka_unit_test(sums_do_not_lose_small_amounts),
        cmocka_unit_test(no_bars_at_all),
        cmocka_unit_test(one_bar),
        cmocka_unit_test(an_agent_that_never_trades_is_undefined),
        cmocka_unit_test(all_wins),
        cmocka_unit_test(all_losses_and_equal_trades),
        cmocka_unit_test(a_missing_time_span_leaves_cagr_undefined),
        cmocka_unit_test(losing_everything_is_ruin_and_not_a_ratio),
        cmocka_unit_test(a_loss_in_the_first_bar_is_part_of_the_drawdown),
        cmocka_unit_test(constant_returns_have_no_sharpe),
        cmocka_unit_test(negative_equity_keeps_its_sign),
        cmocka_unit_test(years_are_calendar_years_not_trading_days),
        cmocka_unit_test(cvar_never_exceeds_var),
        cmocka_unit_test(session_and_bar_ratios_differ),
        cmocka_unit_test(the_table_is_found_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
