/* SPDX-License-Identifier: Apache-2.0 */
#include <float.h>
#include <stdlib.h>

#include "check.h"
#include "kernels/metrics/metrics.h"
#include "study/objective.h"

static void undefined_ranks_last(void **state)
{
    (void)state;
    assert_int_equal(ho_value_compare(1, 2, 1), -1);
    assert_int_equal(ho_value_compare(1, 1, 2), 1);
    assert_int_equal(ho_value_compare(-1, 1, 2), -1);
    assert_int_equal(ho_value_compare(1, NAN, -INFINITY), 1);
    assert_int_equal(ho_value_compare(-1, INFINITY, NAN), -1);
    assert_int_equal(ho_value_compare(1, NAN, NAN), 0);
    assert_int_equal(ho_value_compare(1, INFINITY, INFINITY), 0);
    assert_int_equal(ho_value_compare(1, INFINITY, -INFINITY), -1);
    assert_int_equal(ho_value_compare(1, 0.0, -0.0), 0);
}

static void constraints_measure_by_how_much(void **state)
{
    (void)state;
    ho_err err;
    ho_constraint c;
    CHECK_OK(ho_constraint_parse("max_drawdown >= -0.25", &c, &err), &err);
    CHECK_NEAR(ho_constraint_violation(&c, -0.25), 0, 0);
    CHECK_NEAR(ho_constraint_violation(&c, -0.35), 0.10, 1e-15);
    assert_true(isinf(ho_constraint_violation(&c, NAN)));
    CHECK_OK(ho_constraint_parse("  trades>30 ", &c, &err), &err);
    assert_int_equal(c.metric, HO_METRIC_TRADES);
    assert_true(ho_constraint_violation(&c, 30) > 0);
    CHECK_NEAR(ho_constraint_violation(&c, 31), 0, 0);
    CHECK_OK(ho_constraint_parse("turnover <= 2e1", &c, &err), &err);
    CHECK_NEAR(ho_constraint_violation(&c, 25), 5, 0);
    CHECK_OK(ho_constraint_parse("exposure < 0.5", &c, &err), &err);
    assert_true(ho_constraint_violation(&c, 0.5) > 0);
    CHECK_STATUS(ho_constraint_parse("sharpe = 1", &c, &err), HO_EINVAL);
    CHECK_STATUS(ho_constraint_parse("sharpe >= nan", &c, &err), HO_EINVAL);
    CHECK_STATUS(ho_constraint_parse(">= 1", &c, &err), HO_EINVAL);
    CHECK_STATUS(ho_constraint_parse("max_drawdown < -1", &c, &err), HO_EINVAL);
    CHECK_CONTAINS(err.text, "can never be satisfied: max_drawdown is -1 to 0");
}

static void folds_are_folded_against_the_better_direction(void **state)
{
    (void)state;
    const double v[] = {3, 1, 2, 6};
    CHECK_NEAR(ho_aggregate_folds(HO_AGGREGATE_MEAN, v, 4, 1), 3, 1e-15);
    CHECK_NEAR(ho_aggregate_folds(HO_AGGREGATE_MEDIAN, v, 4, 1), 2.5, 0);
    CHECK_NEAR(ho_aggregate_folds(HO_AGGREGATE_MEDIAN, v, 3, 1), 2, 0);
    CHECK_NEAR(ho_aggregate_folds(HO_AGGREGATE_MIN, v, 4, 1), 1, 0);
    CHECK_NEAR(ho_aggregate_folds(HO_AGGREGATE_MIN, v, 4, -1), 6, 0);
    double sd = sqrt((0 + 4 + 1 + 9) / 3.0);
    CHECK_NEAR(ho_aggregate_folds(HO_AGGREGATE_MEAN_MINUS_STD, v, 4, 1), 3 - sd, 1e-14);
    CHECK_NEAR(ho_aggregate_folds(HO_AGGREGATE_MEAN_MINUS_STD, v, 4, -1), 3 + sd, 1e-14);
    CHECK_NEAR(ho_aggregate_folds(HO_AGGREGATE_MEAN_MINUS_STD, v, 1, 1), 3, 0);
    CHECK_NEAR(ho_aggregate_folds(HO_AGGREGATE_STITCHED, v, 1, 1), 3, 0);
    const double holes[] = {3, NAN};
    CHECK_NAN(ho_aggregate_folds(HO_AGGREGATE_MIN, holes, 2, 1));
    CHECK_NAN(ho_aggregate_folds(HO_AGGREGATE_MEAN, holes, 2, 1));
}

/* ---- joined windows ------------------------------------------------------------------------- */

/* Fixture A of spec/metrics.md, and its values there (daily, x sqrt(252), rf 0). */
static const double fixture_a[] = {0.02, -0.01, 0.03, -0.02, 0.01, 0.00, -0.03, 0.04, 0.01, -0.01};

static void free_result(ho_backtest_result *r)
{
    free(r->session_return);
    free(r->session_id);
    free(r->bar_return);
    free(r->trades);
}

/* A window of one bar a session over returns[begin, end), with trades of net[0..trades). */
static ho_backtest_result window_of(const double *returns, int begin, int end, const double *net,
                                    int trades)
{
    ho_backtest_result r = {.initial_capital = 100, .final_equity = 100};
    ho_bar_stats bars;
    ho_metrics_input in = ho_metrics_input_defaults();
    r.sessions = r.bars = r.steps = end - begin;
    r.session_return = (double *)calloc((size_t)r.sessions + 1, sizeof(double));
    r.session_id = (int32_t *)calloc((size_t)r.sessions + 1, sizeof(int32_t));
    r.bar_return = (double *)calloc((size_t)r.sessions + 1, sizeof(double));
    r.trades = (ho_trade *)calloc((size_t)trades + 1, sizeof(ho_trade));
    ho_bar_stats_begin(&bars, 100);
    for (int i = begin; i < end; i++) {
        r.session_return[i - begin] = r.bar_return[i - begin] = returns[i];
        r.session_id[i - begin] = i;
        r.final_equity *= 1 + returns[i];
        ho_bar_stats_add(&bars, r.final_equity, returns[i], i % 2);
    }
    for (int i = 0; i < trades; i++) {
        r.trades[i] = (ho_trade){.entry_price = 10, .quantity = 1, .net = net[i]};
    }
    r.trade_count = r.trades_closed = trades;
    r.traded = 50;
    r.fees = 2;
    in.initial_capital = 100;
    in.bars = &bars;
    in.sessions = r.session_return;
    in.session_count = r.sessions;
    in.sessions_per_year = 252;
    in.trades = r.trades;
    in.trade_count = trades;
    in.multiplier = 1;
    in.traded = r.traded;
    in.has_trades = 1;
    assert_int_equal(ho_metrics_compute(&in, &r.metrics), HO_OK);
    return r;
}

static const double nets[] = {120, -80, 200, -50, 0, -100, 60}; /* fixture T */

static ho_backtest_result stitch(const ho_backtest_result *a, const ho_backtest_result *b)
{
    ho_err err;
    ho_backtest_result out;
    const ho_backtest_result *const windows[] = {a, b};
    ho_stitch_input in = {windows, 2, 252, 10.0 / 252, 1};
    CHECK_OK(ho_stitch(&in, &out, &err), &err);
    return out;
}

static void check_same(const ho_metric_set *got, const ho_metric_set *want, ho_metric metric)
{
    if (got->reason[metric] != want->reason[metric]) {
        fail_msg("%s: %s, want %s", ho_metric_name(metric),
                 ho_metric_reason_name(got->reason[metric]),
                 ho_metric_reason_name(want->reason[metric]));
    }
    if (want->reason[metric] == HO_REASON_DEFINED) {
        CHECK_CLOSE(got->value[metric], want->value[metric], 1e-12);
    }
}

static void two_halves_joined_are_the_whole(void **state)
{
    (void)state;
    ho_backtest_result whole = window_of(fixture_a, 0, 10, nets, 7);
    for (int cut = 1; cut < 10; cut++) {
        ho_backtest_result a = window_of(fixture_a, 0, cut, nets, 3);
        ho_backtest_result b = window_of(fixture_a, cut, 10, nets + 3, 4);
        ho_backtest_result joined = stitch(&a, &b);
        static const ho_metric same[] = {
            HO_METRIC_SHARPE,        HO_METRIC_BAR_SHARPE,       HO_METRIC_SORTINO,
            HO_METRIC_TOTAL_RETURN,  HO_METRIC_VOLATILITY,       HO_METRIC_MAX_DRAWDOWN,
            HO_METRIC_RECOVERY_TIME, HO_METRIC_LONGEST_DRAWDOWN, HO_METRIC_DRAWDOWN_DURATION,
            HO_METRIC_VAR95,         HO_METRIC_CVAR95,           HO_METRIC_WIN_RATE,
            HO_METRIC_AVG_TRADE,     HO_METRIC_AVG_TRADE_RETURN, HO_METRIC_PROFIT_FACTOR,
            HO_METRIC_PAYOFF,        HO_METRIC_EXPECTANCY,       HO_METRIC_SQN,
            HO_METRIC_TRADES,        HO_METRIC_RETURN_OVER_MAXDD};
        for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
            check_same(&joined.metrics, &whole.metrics, same[i]);
        }
        CHECK_NEAR(joined.metrics.value[HO_METRIC_SHARPE], 2.858841194080737, 1e-12);
        CHECK_NEAR(joined.metrics.value[HO_METRIC_MAX_DRAWDOWN], -0.039894, 1e-12);
        CHECK_NEAR(joined.metrics.value[HO_METRIC_CAGR], 1.5871308733706493, 1e-9);
        CHECK_NEAR(joined.metrics.value[HO_METRIC_EXPOSURE], 0.5, 1e-15);
        CHECK_NEAR(joined.metrics.value[HO_METRIC_TURNOVER], 100.0 / 100 / 10, 1e-15);
        CHECK_NEAR(joined.metrics.value[HO_METRIC_TOTAL_PNL], a.final_equity + b.final_equity - 200,
                   1e-12);
        CHECK_NEAR(joined.fees, 4, 0);
        CHECK_NEAR(joined.final_equity, 103.844066, 1e-6);
        assert_int_equal(joined.sessions, 10);
        free_result(&a);
        free_result(&b);
        free_result(&joined);
    }
    free_result(&whole);
}

static void without_bars_and_trades_the_rest_stays_exact(void **state)
{
    (void)state;
    ho_backtest_result whole = window_of(fixture_a, 0, 10, nets, 7);
    ho_backtest_result a = window_of(fixture_a, 0, 4, nets, 3);
    ho_backtest_result b = window_of(fixture_a, 4, 10, nets + 3, 4);
    free(a.bar_return);
    a.bar_return = NULL;
    free(b.trades);
    b.trades = NULL;
    ho_backtest_result joined = stitch(&a, &b);
    static const ho_metric same[] = {HO_METRIC_SHARPE,       HO_METRIC_SORTINO,
                                     HO_METRIC_TOTAL_RETURN, HO_METRIC_MAX_DRAWDOWN,
                                     HO_METRIC_VAR95,        HO_METRIC_WIN_RATE,
                                     HO_METRIC_AVG_TRADE,    HO_METRIC_AVG_TRADE_RETURN,
                                     HO_METRIC_TRADES,       HO_METRIC_RETURN_OVER_MAXDD};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        check_same(&joined.metrics, &whole.metrics, same[i]);
    }
    CHECK_NAN(joined.metrics.value[HO_METRIC_BAR_SHARPE]);
    CHECK_NAN(joined.metrics.value[HO_METRIC_PROFIT_FACTOR]);
    assert_int_equal(joined.metrics.reason[HO_METRIC_SQN], HO_REASON_NO_DATA);
    free_result(&a);
    free_result(&b);
    free_result(&joined);
    free_result(&whole);
}

static void a_session_cut_by_a_border_is_one(void **state)
{
    (void)state;
    const double returns[] = {0.01, 0.02, 0.03};
    ho_backtest_result a = window_of(returns, 0, 2, NULL, 0);
    ho_backtest_result b = window_of(returns, 2, 3, NULL, 0);
    b.session_id[0] = a.session_id[1];
    ho_backtest_result joined = stitch(&a, &b);
    assert_int_equal(joined.sessions, 2);
    CHECK_NEAR(joined.session_return[1], 1.02 * 1.03 - 1, 1e-15);
    assert_int_equal(joined.metrics.reason[HO_METRIC_WIN_RATE], HO_REASON_NO_TRADES);
    free_result(&a);
    free_result(&b);
    free_result(&joined);
}

static void ruin_ends_the_joined_series(void **state)
{
    (void)state;
    const double returns[] = {0.1, -1.0, 0.5, 0.5};
    ho_backtest_result a = window_of(returns, 0, 2, NULL, 0);
    ho_backtest_result b = window_of(returns, 2, 4, NULL, 0);
    a.ruined = 1;
    ho_backtest_result joined = stitch(&a, &b);
    assert_int_equal(joined.sessions, 2);
    assert_true(joined.ruined && (joined.metrics.flags & HO_FLAG_RUINED));
    CHECK_NEAR(joined.metrics.value[HO_METRIC_TOTAL_RETURN], -1, 0);
    CHECK_NAN(joined.metrics.value[HO_METRIC_SHARPE]);
    free_result(&a);
    free_result(&b);
    free_result(&joined);
}

static void windows_without_sessions_cannot_be_joined(void **state)
{
    (void)state;
    ho_err err;
    ho_backtest_result out, empty = {.sessions = 3, .initial_capital = 1};
    const ho_backtest_result *const windows[] = {&empty};
    ho_stitch_input in = {windows, 1, 252, 1, 1};
    CHECK_STATUS(ho_stitch(&in, &out, &err), HO_EINVAL);
    in.count = 0;
    CHECK_STATUS(ho_stitch(&in, &out, &err), HO_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(undefined_ranks_last),
        cmocka_unit_test(constraints_measure_by_how_much),
        cmocka_unit_test(folds_are_folded_against_the_better_direction),
        cmocka_unit_test(two_halves_joined_are_the_whole),
        cmocka_unit_test(without_bars_and_trades_the_rest_stays_exact),
        cmocka_unit_test(a_session_cut_by_a_border_is_one),
        cmocka_unit_test(ruin_ends_the_joined_series),
        cmocka_unit_test(windows_without_sessions_cannot_be_joined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
