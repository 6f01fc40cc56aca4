/* SPDX-License-Identifier: Apache-2.0
 * Metrics of a bare series, for tests: bars are sessions. */
#ifndef HO_TESTS_KERNELS_SERIES_H
#define HO_TESTS_KERNELS_SERIES_H

#include "check.h"
#include "kernels/metrics/metrics.h"

/* Metrics of n returns from an equity of 100; years as given (0: unknown). */
static inline ho_metric_set series_metrics(const double *r, int64_t n, double periods, double years)
{
    ho_bar_stats bars;
    ho_metric_set set;
    ho_metrics_input in = ho_metrics_input_defaults();
    double equity = 100.0;
    ho_bar_stats_begin(&bars, equity);
    for (int64_t i = 0; i < n; i++) {
        equity *= 1.0 + r[i];
        ho_bar_stats_add(&bars, equity, r[i], 0);
        equity = bars.equity;
    }
    in.initial_capital = 100.0;
    in.bars = &bars;
    in.sessions = r;
    in.session_count = n;
    in.sessions_per_year = periods;
    in.years = years;
    assert_int_equal(ho_metrics_compute(&in, &set), HO_OK);
    return set;
}

static inline ho_metric_set trade_metrics(const double *net, int64_t n)
{
    ho_bar_stats bars;
    ho_metric_set set;
    ho_metrics_input in = ho_metrics_input_defaults();
    ho_trade trades[64] = {{0}};
    ho_bar_stats_begin(&bars, 10000.0);
    double equity = 10000.0;
    for (int64_t i = 0; i < n; i++) {
        trades[i] = (ho_trade){.entry_price = 100.0, .quantity = 100.0, .net = net[i]};
        ho_bar_stats_add(&bars, equity + net[i], net[i] / equity, 1);
        equity += net[i];
    }
    in.initial_capital = 10000.0;
    in.bars = &bars;
    in.trades = trades;
    in.trade_count = n;
    in.has_trades = 1;
    assert_int_equal(ho_metrics_compute(&in, &set), HO_OK);
    return set;
}

#define CHECK_UNDEFINED(set, metric, why)                                                          \
    do {                                                                                           \
        CHECK_NAN((set).value[metric]);                                                            \
        assert_string_equal(ho_metric_reason_name((set).reason[metric]), why);                     \
    } while (0)

#endif
