/* SPDX-License-Identifier: Apache-2.0
 * Fills, costs and barriers on markets small enough to follow by hand, and public bug reports of
 * other tools that the step must not share. */
#include <stdlib.h>

#include "check.h"
#include "kernels/cases.h"
#include "kernels/env/step.h"

enum { SHORT_ALL = 2, FLAT = 20, LONG_HALF = 29, LONG = 38 }; /* market, aggressive */

static int limit_order(int action)
{
    return action - 2 + 3 * HO_ORDER_LIMIT + 2;
}

static int ioc_order(int action)
{
    return action - 2 + 3 * HO_ORDER_IOC + 2;
}

/* No costs, one lot, bars at 100. */
static test_market *quiet_market(int64_t T)
{
    test_market *m = test_market_new(T);
    m->config.max_lots = 1;
    m->config.spread_bps = 0.0;
    m->config.fee_bps[0] = m->config.fee_bps[1] = m->config.fee_bps[2] = 0.0;
    for (int64_t t = 0; t < T; t++) {
        test_market_bar(m, t, 100, 100, 100, 100, 1000);
        m->actions[t] = FLAT;
    }
    return m;
}

static ho_backtest_result run(test_market *m)
{
    test_market_load(m);
    return test_market_run(m);
}

/* ---- worked examples of spec/metrics.md 1.8 -------------------------------------------------- */

static void es_round_trip_costs_what_the_spec_says(void **state)
{
    (void)state;
    ho_env_config c = ho_env_config_defaults();
    ho_account a = {0};
    ho_ledger ledger = {0};
    ho_step_out out = {0};
    c.multiplier = 50.0;
    c.fee_bps[0] = 0.5;
    c.has_volume = 1;
    c.impact_coef = 0.5;
    const ho_quote q = {.sigma = 5e-4, .mean_volume = 400.0};
    const ho_liquidity liquidity = ho_quote_liquidity(&c, &q);
    ho_desk d = {.c = &c, .a = &a, .ledger = &ledger, .out = &out, .q = &q, .bar = 1};
    c.spread_bps = 0.25 / 4500.0 * 1e4;
    double buy = ho_crossing_price(&c, &liquidity, 4500.0, +1, 1, &ledger);
    CHECK_CLOSE(buy, 4500.18125, 1e-14);
    ho_apply(&d, 1, buy, HO_FEE_TAKER, HO_EXIT_SIGNAL);
    c.spread_bps = 0.25 / 4503.0 * 1e4;
    ho_leave(&d, 4503.0, HO_EXIT_SIGNAL);
    assert_int_equal(ledger.closed_count, 1);
    CHECK_CLOSE(ledger.closed[0].exit_price, 4502.8187125, 1e-14);
    CHECK_CLOSE(ledger.realised, 131.873125, 1e-12);
    CHECK_CLOSE(ledger.fees, 22.50749990625, 1e-12);
    CHECK_CLOSE(a.cash, 109.36562509378827, 1e-12);
    CHECK_CLOSE(150.0 - ledger.spread - ledger.impact, 131.873125, 1e-12);
    CHECK_NEAR(ledger.slippage - ledger.spread - ledger.impact, 0.0, 1e-9); /* no tick */
}

static void a_reversal_is_two_trades_with_the_fee_split(void **state)
{
    (void)state;
    test_market *m = quiet_market(6);
    m->config.fee_bps[0] = 10.0;
    test_market_bar(m, 2, 110, 110, 110, 110, 1000);
    test_market_bar(m, 3, 105, 105, 105, 105, 1000);
    m->actions[0] = LONG;
    m->actions[1] = SHORT_ALL;
    ho_backtest_result r = run(m);
    CHECK_CLOSE(r.fees, 0.425, 1e-12);
    CHECK_CLOSE(r.realised, 15.0, 1e-12);
    CHECK_CLOSE(r.metrics.value[HO_METRIC_TOTAL_PNL], 14.575, 1e-9);
    assert_int_equal(r.trade_count, 2);
    CHECK_CLOSE(r.trades[0].fees, 0.1 + 0.11, 1e-12);
    CHECK_CLOSE(r.trades[1].fees, 0.11 + 0.105, 1e-12);
    assert_int_equal(r.trades[1].side, -1);
    ho_backtest_free(&r);
    test_market_free(m);
}

static void negative_crude_loses_47640_a_contract(void **state)
{
    (void)state;
    test_market *m = quiet_market(4);
    m->config.multiplier = 1000.0;
    for (int t = 0; t < 4; t++) {
        double price = t < 2 ? 10.01 : -37.63;
        test_market_bar(m, t, price, price, price, price, 1000);
    }
    m->actions[0] = LONG;
    ho_backtest_result r = run(m);
    CHECK_CLOSE(r.metrics.value[HO_METRIC_TOTAL_PNL], -47640.0, 1e-12);
    CHECK_CLOSE(r.trades[0].pnl, -47640.0, 1e-12);
    CHECK_CLOSE(r.bar_return[1], -0.4764, 1e-12); /* on equity; on the price it is meaningless */
    ho_backtest_free(&r);
    test_market_free(m);
}

/* While the price is negative nothing grows, costs fall on the absolute notional. */
static void at_negative_prices_positions_only_shrink(void **state)
{
    (void)state;
    test_market *m = quiet_market(6);
    m->config.fee_bps[0] = 10.0;
    for (int t = 0; t < 6; t++) {
        test_market_bar(m, t, -20, -20, -20, -20, 1000);
        m->actions[t] = LONG;
    }
    ho_backtest_result r = run(m);
    assert_int_equal(r.trade_count, 0);
    ho_backtest_free(&r);
    test_market_bar(m, 0, 20, 20, 20, 20, 1000);
    test_market_bar(m, 1, -20, -20, -20, -20, 1000);
    m->actions[1] = FLAT;
    r = run(m);
    assert_int_equal(r.trade_count, 1);
    CHECK_CLOSE(r.fees, 2 * 20.0 * 10e-4, 1e-12);
    ho_backtest_free(&r);
    test_market_free(m);
}

static void ticks_of_es_are_worth_their_money(void **state)
{
    (void)state;
    test_market *m = quiet_market(4);
    m->config.multiplier = 50.0;
    m->config.tick_size = 0.25;
    m->config.max_lots = 2;
    for (int t = 0; t < 4; t++) {
        double price = t < 2 ? 4500.0 : 4500.75;
        test_market_bar(m, t, price, price, price, price, 1000);
    }
    m->actions[0] = LONG;
    ho_backtest_result r = run(m);
    CHECK_CLOSE(r.metrics.value[HO_METRIC_TOTAL_PNL], 75.0, 1e-12);
    ho_backtest_free(&r);
    test_market_free(m);
}

static void a_spread_in_ticks_is_paid_on_both_sides(void **state)
{
    (void)state;
    test_market *m = quiet_market(4);
    m->config.tick_size = 0.25;
    m->config.spread_ticks = 2.0;
    m->actions[0] = LONG;
    ho_backtest_result r = run(m);
    CHECK_CLOSE(r.trades[0].entry_price, 100.25, 1e-14);
    CHECK_CLOSE(r.trades[0].exit_price, 99.75, 1e-14);
    CHECK_CLOSE(r.spread, 0.5, 1e-14);
    ho_backtest_free(&r);
    m->actions[0] = (uint8_t)limit_order(LONG); /* one half-spread behind the close */
    test_market_bar(m, 1, 100, 100, 99, 100, 1000);
    r = run(m);
    CHECK_CLOSE(r.trades[0].entry_price, 99.75, 1e-14);
    ho_backtest_free(&r);
    test_market_free(m);
}

/* ---- orders ---------------------------------------------------------------------------------- */

static void actions_decompose_as_the_spec_says(void **state)
{
    (void)state;
    for (int32_t action = 0; action < HO_ACTIONS; action++) {
        ho_order o = ho_order_from_action(action);
        CHECK_NEAR(o.exposure, -1.0 + 0.5 * (action / 9), 0.0);
        assert_int_equal(o.kind, action / 3 % 3);
        assert_int_equal(o.urgency, action % 3);
        assert_int_equal(o.category, action / 9 <= 1 ? 0 : action / 9 == 2 ? 1 : 2);
    }
    for (int32_t e = 0; e < HO_EXPOSURES; e++) {
        ho_order o = ho_order_from_action(ho_action_from_exposure(e));
        CHECK_NEAR(o.exposure, -1.0 + 0.5 * e, 0.0);
        assert_int_equal(o.kind, HO_ORDER_MARKET);
        assert_int_equal(o.urgency, 2);
    }
}

/* qlib 61: amounts that never reach zero */
static void a_patient_trader_reaches_the_wanted_position(void **state)
{
    (void)state;
    test_market *m = quiet_market(40);
    m->config.max_lots = 100;
    for (int t = 0; t < 39; t++) {
        m->actions[t] = t < 18 ? LONG - 2 : FLAT - 2; /* patient: 0.34 of what is missing */
    }
    ho_backtest_result r = run(m);
    assert_int_equal(r.trade_count, 1);
    CHECK_CLOSE(r.trades[0].max_quantity, 100.0, 1e-12);
    assert_int_equal(r.trades[0].reason, HO_EXIT_SIGNAL); /* closed by itself, not by the end */
    ho_backtest_free(&r);
    test_market_free(m);
}

static void half_lots_round_away_from_zero(void **state)
{
    (void)state;
    CHECK_NEAR(ho_round_half_away(0.5), 1.0, 0.0);
    CHECK_NEAR(ho_round_half_away(-0.5), -1.0, 0.0);
    CHECK_NEAR(ho_round_half_away(-2.49), -2.0, 0.0);
    test_market *m = quiet_market(4);
    m->actions[0] = LONG_HALF; /* half of one lot is one lot */
    ho_backtest_result r = run(m);
    CHECK_CLOSE(r.trades[0].quantity, 1.0, 1e-12);
    ho_backtest_free(&r);
    test_market_free(m);
}

static void without_shorts_a_short_is_flat(void **state)
{
    (void)state;
    test_market *m = quiet_market(5);
    m->config.allow_short = 0;
    m->actions[0] = LONG;
    m->actions[1] = SHORT_ALL;
    ho_backtest_result r = run(m);
    assert_int_equal(r.trade_count, 1);
    assert_int_equal(r.trades[0].exit_bar, 2);
    ho_backtest_free(&r);
    test_market_free(m);
}

static void leverage_and_margin_limit_growth_only(void **state)
{
    (void)state;
    test_market *m = quiet_market(5);
    m->config.max_lots = 1000;
    m->config.initial_capital = 10000.0;
    m->config.max_leverage = 2.0;
    m->config.cash_reserve = 0.25;
    m->actions[0] = m->actions[1] = LONG;
    ho_backtest_result r = run(m);
    CHECK_CLOSE(r.trades[0].max_quantity, 150.0, 1e-12); /* 2 * 10000 * 0.75 / 100 */
    ho_backtest_free(&r);
    m->config.margin_per_lot = 500.0;
    r = run(m);
    CHECK_CLOSE(r.trades[0].max_quantity, 15.0, 1e-12); /* 10000 * 0.75 / 500 */
    ho_backtest_free(&r);
    /* a position above the limit after a loss is kept, and may be reduced */
    m->config.margin_per_lot = 0.0;
    test_market_bar(m, 2, 60, 60, 60, 60, 1000);
    test_market_bar(m, 3, 60, 60, 60, 60, 1000);
    m->actions[2] = m->actions[3] = LONG_HALF;
    r = run(m);
    CHECK_CLOSE(r.trades[0].max_quantity, 150.0, 1e-12);
    assert_int_equal(r.trade_count, 1);
    assert_int_equal(r.trades[0].reason, HO_EXIT_END);
    ho_backtest_free(&r);
    test_market_free(m);
}

static void ioc_orders_respect_band_and_participation(void **state)
{
    (void)state;
    test_market *m = quiet_market(5);
    m->config.max_lots = 500;
    m->config.ioc_participation = 0.1;
    m->actions[0] = (uint8_t)ioc_order(LONG);
    ho_backtest_result r = run(m);
    CHECK_CLOSE(r.trades[0].max_quantity, 100.0, 1e-12); /* a tenth of 1000; the rest cancelled */
    ho_backtest_free(&r);
    test_market_bar(m, 1, 101, 101, 101, 101, 1000); /* 1 % away: beyond the band */
    r = run(m);
    assert_int_equal(r.trade_count, 0);
    ho_backtest_free(&r);
    test_market_bar(m, 1, 100, 100, 100, 100, 9); /* a tenth of 9 is no lot */
    r = run(m);
    assert_int_equal(r.trade_count, 0);
    ho_backtest_free(&r);
    m->config.has_volume = 0;
    r = run(m);
    CHECK_CLOSE(r.trades[0].max_quantity, 500.0, 1e-12);
    ho_backtest_free(&r);
    test_market_bar(m, 0, 0, 0, 0, 0, 1000); /* a reference of zero has no band */
    r = run(m);
    assert_int_equal(r.trade_count, 0);
    ho_backtest_free(&r);
    test_market_free(m);
}

static void a_limit_order_fills_only_when_passed(void **state)
{
    (void)state;
    test_market *m = quiet_market(4);
    m->config.spread_bps = 100.0; /* limit at 99.5 */
    m->config.fee_bps[HO_FEE_MAKER] = -1.0;
    m->actions[0] = (uint8_t)limit_order(LONG);
    test_market_bar(m, 1, 100, 100, 99.5, 100, 1000); /* touched, not passed */
    ho_backtest_result r = run(m);
    assert_int_equal(r.trade_count, 0);
    ho_backtest_free(&r);
    test_market_bar(m, 1, 100, 100, 99.4, 100, 1000);
    r = run(m);
    CHECK_CLOSE(r.trades[0].entry_price, 99.5, 1e-14);     /* its own price, no improvement */
    assert_true(r.trades[0].fees < 0.5 && r.fees < 0.015); /* rebate in, taker fee out is 0 */
    ho_backtest_free(&r);
    test_market_bar(m, 1, 98, 98, 98, 98, 1000); /* marketable at the open: it takes */
    r = run(m);
    CHECK_CLOSE(r.trades[0].entry_price, 98.0 * 1.005, 1e-14);
    ho_backtest_free(&r);
    test_market_bar(m, 1, 99.4, 99.4, 99.4, 99.4, 1000); /* crossing would cost more: the limit */
    r = run(m);
    CHECK_CLOSE(r.trades[0].entry_price, 99.5, 1e-14);
    ho_backtest_free(&r);
    m->actions[0] = (uint8_t)limit_order(SHORT_ALL);
    test_market_bar(m, 1, 102, 102, 102, 102, 1000);
    r = run(m);
    CHECK_CLOSE(r.trades[0].entry_price, 102.0 * 0.995, 1e-14);
    ho_backtest_free(&r);
    test_market_free(m);
}

static void a_bar_without_volume_fills_nothing(void **state)
{
    (void)state;
    test_market *m = quiet_market(6);
    m->config.stop_loss = 100.0;
    m->config.max_holding = 1;
    m->actions[0] = m->actions[1] = LONG;
    test_market_bar(m, 1, 100, 100, 100, 100, 0); /* the order dies */
    test_market_bar(m, 3, 90, 90, 90, 90, 0);     /* stop and expiry wait */
    test_market_bar(m, 4, 90, 90, 90, 90, 1000);
    ho_backtest_result r = run(m);
    assert_int_equal(r.trades[0].entry_bar, 2);
    assert_int_equal(r.trades[0].exit_bar, 4);
    assert_int_equal(r.trades[0].reason, HO_EXIT_STOP);
    ho_backtest_free(&r);
    test_market_free(m);
}

/* ---- barriers -------------------------------------------------------------------------------- */

static void the_first_touch_of_three_barriers_counts(void **state)
{
    (void)state;
    test_market *m = quiet_market(7);
    const double close[] = {100, 100, 101, 100.5, 102.2, 100, 100};
    for (int t = 0; t < 7; t++) {
        test_market_bar(m, t, close[t], close[t], close[t], close[t], 1000);
    }
    m->config.profit_target = 200.0;
    m->config.stop_loss = 100.0;
    m->actions[0] = m->actions[1] = m->actions[2] = m->actions[3] = LONG;
    ho_backtest_result r = run(m);
    assert_int_equal(r.trades[0].reason, HO_EXIT_PROFIT);
    assert_int_equal(r.trades[0].exit_bar, 4); /* the third bar after entry */
    CHECK_CLOSE(r.trades[0].exit_price, 102.0, 1e-14);
    assert_int_equal(r.exit_count[HO_EXIT_PROFIT], 1);
    ho_backtest_free(&r);
    m->config.max_holding = 2;
    r = run(m);
    assert_int_equal(r.trades[0].reason, HO_EXIT_TIME);
    assert_int_equal(r.trades[0].exit_bar, 3);
    ho_backtest_free(&r);
    test_market_free(m);
}

/* nautilus 2397: a stop filled at its price through a gap */
static void a_stop_behind_a_gap_fills_at_the_open(void **state)
{
    (void)state;
    for (int side = -1; side <= 1; side += 2) {
        test_market *m = quiet_market(5);
        m->config.stop_loss = 100.0;
        m->actions[0] = m->actions[1] = side > 0 ? LONG : SHORT_ALL;
        double open = 100.0 - 5.0 * side;
        test_market_bar(m, 2, open, open, open, open, 1000);
        ho_backtest_result r = run(m);
        assert_int_equal(r.trades[0].reason, HO_EXIT_STOP);
        CHECK_CLOSE(r.trades[0].exit_price, open, 1e-14);
        assert_int_equal(r.exit_count[HO_EXIT_STOP],
                         1); /* and the order of that bar is cancelled */
        assert_int_equal(r.trades[0].exit_bar, 2);
        ho_backtest_free(&r);
        test_market_free(m);
    }
}

/* backtesting.py 119 */
static void stop_and_target_in_one_bar_is_the_stop(void **state)
{
    (void)state;
    for (int side = -1; side <= 1; side += 2) {
        test_market *m = quiet_market(5);
        m->config.stop_loss = 100.0;
        m->config.profit_target = 100.0;
        m->actions[0] = side > 0 ? LONG : SHORT_ALL;
        m->actions[1] = m->actions[0];
        test_market_bar(m, 2, 100, 103, 97, 100, 1000);
        ho_backtest_result r = run(m);
        assert_int_equal(r.trades[0].reason, HO_EXIT_STOP);
        CHECK_CLOSE(r.trades[0].exit_price, 100.0 - side, 1e-14);
        assert_int_equal(r.ambiguous_bars, 1);
        CHECK_NEAR(r.metrics.value[HO_METRIC_AMBIGUOUS_BARS], 1.0, 0.0);
        ho_backtest_free(&r);
        test_market_free(m);
    }
}

static void a_target_only_touched_does_not_fill(void **state)
{
    (void)state;
    test_market *m = quiet_market(5);
    m->config.profit_target = 100.0;
    m->actions[0] = m->actions[1] = m->actions[2] = LONG;
    test_market_bar(m, 2, 100, 101, 100, 100, 1000);
    ho_backtest_result r = run(m);
    assert_int_equal(r.exit_count[HO_EXIT_PROFIT], 0);
    ho_backtest_free(&r);
    test_market_free(m);
}

static void a_resting_exit_and_the_stop_in_one_bar_is_the_stop(void **state)
{
    (void)state;
    test_market *m = quiet_market(5);
    m->config.spread_bps = 100.0; /* a sell limit at 100.5 */
    m->config.stop_loss = 100.0;
    m->actions[0] = LONG;
    m->actions[1] = (uint8_t)limit_order(FLAT);
    test_market_bar(m, 2, 100, 101, 98, 100, 1000);
    ho_backtest_result r = run(m);
    assert_int_equal(r.trades[0].reason, HO_EXIT_STOP);
    assert_int_equal(r.ambiguous_bars, 1);
    ho_backtest_free(&r);
    m->config.tick_size = 0.5; /* opened within a tick of the limit: the order came first */
    r = run(m);
    assert_int_equal(r.trades[0].reason, HO_EXIT_SIGNAL);
    assert_int_equal(r.ambiguous_bars, 1);
    ho_backtest_free(&r);
    test_market_free(m);
}

static void barriers_in_sigma_follow_the_volatility(void **state)
{
    (void)state;
    test_market *m = quiet_market(5);
    m->sigma = calloc(5, sizeof(double));
    m->sigma[0] = 0.02;
    m->config.barrier_unit = HO_BARRIER_SIGMA;
    m->config.stop_loss = 1.0;
    m->config.profit_target = 2.0;
    m->actions[0] = m->actions[1] = LONG;
    test_market_bar(m, 2, 100, 100, 97, 100, 1000);
    ho_backtest_result r = run(m);
    CHECK_CLOSE(r.trades[0].exit_price, 98.0, 1e-14);
    ho_backtest_free(&r);
    m->sigma[0] = 0.0; /* no volatility, no barrier */
    r = run(m);
    assert_int_equal(r.exit_count[HO_EXIT_STOP], 0);
    ho_backtest_free(&r);
    test_market_free(m);
}

static void after_a_stop_nothing_grows_for_the_cooldown(void **state)
{
    (void)state;
    test_market *m = quiet_market(9);
    m->config.stop_loss = 100.0;
    m->config.cooldown = 2;
    for (int t = 0; t < 8; t++) {
        m->actions[t] = LONG;
    }
    test_market_bar(m, 2, 100, 100, 98, 100, 1000);
    ho_backtest_result r = run(m);
    assert_int_equal(r.trade_count, 2);
    assert_int_equal(r.trades[0].exit_bar, 2);
    assert_int_equal(r.trades[1].entry_bar, 5); /* bars 3 and 4 are blocked */
    ho_backtest_free(&r);
    test_market_free(m);
}

static void sessions_rolls_and_funding_are_booked(void **state)
{
    (void)state;
    test_market *m = quiet_market(6);
    m->config.flat_at_session_end = 1;
    m->session[3] = m->session[4] = m->session[5] = 1;
    m->actions[0] = m->actions[1] = LONG;
    ho_backtest_result r = run(m);
    assert_int_equal(r.trades[0].reason, HO_EXIT_SESSION);
    assert_int_equal(r.trades[0].exit_bar, 2);
    assert_int_equal(r.sessions, 2);
    assert_int_equal(r.session_id[1], 1);
    ho_backtest_free(&r);
    /* a roll: the jump earns nothing, entry and barriers move, two fees are paid */
    m->config.flat_at_session_end = 0;
    m->config.fee_bps[0] = 10.0;
    m->config.stop_loss = 100.0;
    m->roll_jump = calloc(6, sizeof(double));
    m->roll_jump[2] = 50.0;
    for (int t = 2; t < 6; t++) {
        test_market_bar(m, t, 150, 150, 150, 150, 1000);
        m->actions[t] = LONG;
    }
    r = run(m);
    assert_int_equal(r.trade_count, 1);
    CHECK_NEAR(r.realised, 0.0, 1e-12);
    CHECK_CLOSE(r.fees, 0.1 + 2 * 0.15 + 0.15, 1e-12);
    ho_backtest_free(&r);
    m->funding = calloc(6, sizeof(double));
    m->funding[3] = 0.001;
    r = run(m);
    CHECK_CLOSE(r.funding, 0.15, 1e-12);
    CHECK_CLOSE(r.final_equity, 100000.0 - r.fees - 0.15, 1e-14);
    ho_backtest_free(&r);
    test_market_free(m);
}

/* ---- public reports -------------------------------------------------------------------------- */

/* backtesting.py 149 */
static void the_spread_is_charged_on_exit_too(void **state)
{
    (void)state;
    test_market *m = quiet_market(5);
    m->config.spread_bps = 20.0;
    m->actions[0] = LONG;
    ho_backtest_result r = run(m);
    CHECK_CLOSE(r.trades[0].entry_price, 100.1, 1e-14);
    CHECK_CLOSE(r.trades[0].exit_price, 99.9, 1e-14);
    CHECK_CLOSE(r.metrics.value[HO_METRIC_TOTAL_PNL], -0.2, 1e-9);
    CHECK_CLOSE(r.spread, 0.2, 1e-12);
    ho_backtest_free(&r);
    test_market_free(m);
}

/* backtesting.py 158 */
static void the_last_open_trade_is_listed_and_visible(void **state)
{
    (void)state;
    test_market *m = quiet_market(5);
    m->actions[2] = m->actions[3] = LONG;
    test_market_bar(m, 4, 100, 103, 100, 103, 1000);
    ho_backtest_result r = run(m);
    assert_int_equal(r.trade_count, 1);
    assert_int_equal(r.trades[0].reason, HO_EXIT_END);
    CHECK_CLOSE(r.trades[0].net, 3.0, 1e-12);
    CHECK_CLOSE(r.open_pnl, 3.0, 1e-12);
    assert_true(r.metrics.flags & HO_FLAG_OPEN_POSITION);
    CHECK_CLOSE(r.metrics.value[HO_METRIC_TOTAL_PNL], 3.0, 1e-9);
    ho_backtest_free(&r);
    test_market_free(m);
}

/* nautilus 725 */
static void a_commission_is_charged_once_a_fill(void **state)
{
    (void)state;
    test_market *m = quiet_market(5);
    m->config.fee_per_unit = 2.5;
    m->actions[0] = LONG;
    ho_backtest_result r = run(m);
    CHECK_CLOSE(r.fees, 5.0, 1e-12);
    CHECK_CLOSE(r.trades[0].fees, 5.0, 1e-12);
    CHECK_CLOSE(r.final_equity, 100000.0 - 5.0, 1e-14);
    ho_backtest_free(&r);
    test_market_free(m);
}

/* Nunchi-trade 4: decides and fills on one close */
static void a_decision_at_a_close_fills_in_the_next_bar(void **state)
{
    (void)state;
    test_market *m = quiet_market(5);
    test_market_bar(m, 1, 100, 110, 100, 110, 1000); /* seen only at its close */
    test_market_bar(m, 2, 111, 111, 111, 111, 1000);
    m->actions[1] = LONG;
    ho_backtest_result r = run(m);
    assert_int_equal(r.trades[0].entry_bar, 2);
    CHECK_CLOSE(r.trades[0].entry_price, 111.0, 1e-14);
    ho_backtest_free(&r);
    m->config.fill = HO_FILL_CLOSE; /* the optimistic setting, only when asked for */
    r = run(m);
    assert_int_equal(r.trades[0].entry_bar, 2);
    CHECK_CLOSE(r.trades[0].entry_price, 110.0, 1e-14);
    ho_backtest_free(&r);
    test_market_free(m);
}

/* TorchTrade 293 */
static void money_is_not_float32(void **state)
{
    (void)state;
    test_market *m = quiet_market(5);
    m->config.initial_capital = 100000000.0; /* a cent is lost in float32 */
    m->config.fee_per_unit = 0.01;
    m->actions[0] = LONG;
    ho_backtest_result r = run(m);
    CHECK_NEAR(r.final_equity, 100000000.0 - 0.02, 1e-7);
    ho_backtest_free(&r);
    test_market_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(es_round_trip_costs_what_the_spec_says),
        cmocka_unit_test(a_reversal_is_two_trades_with_the_fee_split),
        cmocka_unit_test(negative_crude_loses_47640_a_contract),
        cmocka_unit_test(at_negative_prices_positions_only_shrink),
        cmocka_unit_test(ticks_of_es_are_worth_their_money),
        cmocka_unit_test(a_spread_in_ticks_is_paid_on_both_sides),
        cmocka_unit_test(actions_decompose_as_the_spec_says),
        cmocka_unit_test(a_patient_trader_reaches_the_wanted_position),
        cmocka_unit_test(half_lots_round_away_from_zero),
        cmocka_unit_test(without_shorts_a_short_is_flat),
        cmocka_unit_test(leverage_and_margin_limit_growth_only),
        cmocka_unit_test(ioc_orders_respect_band_and_participation),
        cmocka_unit_test(a_limit_order_fills_only_when_passed),
        cmocka_unit_test(a_bar_without_volume_fills_nothing),
        cmocka_unit_test(the_first_touch_of_three_barriers_counts),
        cmocka_unit_test(a_stop_behind_a_gap_fills_at_the_open),
        cmocka_unit_test(stop_and_target_in_one_bar_is_the_stop),
        cmocka_unit_test(a_target_only_touched_does_not_fill),
        cmocka_unit_test(a_resting_exit_and_the_stop_in_one_bar_is_the_stop),
        cmocka_unit_test(barriers_in_sigma_follow_the_volatility),
        cmocka_unit_test(after_a_stop_nothing_grows_for_the_cooldown),
        cmocka_unit_test(sessions_rolls_and_funding_are_booked),
        cmocka_unit_test(the_spread_is_charged_on_exit_too),
        cmocka_unit_test(the_last_open_trade_is_listed_and_visible),
        cmocka_unit_test(a_commission_is_charged_once_a_fill),
        cmocka_unit_test(a_decision_at_a_close_fills_in_the_next_bar),
        cmocka_unit_test(money_is_not_float32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
