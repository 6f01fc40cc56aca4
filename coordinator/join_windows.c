/* SPDX-License-Identifier: Apache-2.0
 * See join_windows.h. */
#include "coordinator/join_windows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/metrics/metrics.h"

static const double ns_per_year = 365.25 * 86400e9;

static double value_of(const ho_scored_window *w, ho_metric m)
{
    return w->result.metrics.value[m];
}

/* Sum over folds; NaN when it is undefined everywhere. */
static double sum_of(const ho_scored_window *const *w, int n, ho_metric m)
{
    double sum = 0.0;
    int defined = 0;
    for (int i = 0; i < n; i++) {
        if (isfinite(value_of(w[i], m))) {
            sum += value_of(w[i], m);
            defined++;
        }
    }
    return defined ? sum : NAN;
}

static double largest_of(const ho_scored_window *const *w, int n, ho_metric m, double sign)
{
    double best = NAN;
    for (int i = 0; i < n; i++) {
        double v = value_of(w[i], m);
        if (isfinite(v) && !(sign * v <= sign * best)) {
            best = v;
        }
    }
    return best;
}

/* Mean weighted by trades, sessions or bars. */
static double weighted(const ho_scored_window *const *w, int n, ho_metric m, const double *weight)
{
    double sum = 0.0, total = 0.0;
    for (int i = 0; i < n; i++) {
        if (isfinite(value_of(w[i], m)) && weight[i] > 0.0) {
            sum += weight[i] * value_of(w[i], m);
            total += weight[i];
        }
    }
    return total > 0.0 ? sum / total : NAN;
}

static void set(ho_metric_set *out, ho_metric m, double value, ho_metric_reason reason)
{
    out->value[m] = value;
    out->reason[m] = (unsigned char)(isfinite(value) ? HO_REASON_DEFINED : reason);
}

/* What trades and positions give, from the folds' own figures. */
static void join_trades(const ho_scored_window *const *w, int n, ho_metric_set *out)
{
    double trades[HO_FOLDS_MAX], sessions[HO_FOLDS_MAX], bars[HO_FOLDS_MAX];
    for (int i = 0; i < n; i++) {
        trades[i] = value_of(w[i], HO_METRIC_TRADES);
        sessions[i] = (double)w[i]->result.sessions;
        bars[i] = (double)w[i]->result.steps;
    }
    set(out, HO_METRIC_TRADES, sum_of(w, n, HO_METRIC_TRADES), HO_REASON_NO_DATA);
    set(out, HO_METRIC_AMBIGUOUS_BARS, sum_of(w, n, HO_METRIC_AMBIGUOUS_BARS), HO_REASON_NO_DATA);
    set(out, HO_METRIC_TOTAL_PNL, sum_of(w, n, HO_METRIC_TOTAL_PNL), HO_REASON_NO_DATA);
    set(out, HO_METRIC_WIN_RATE, weighted(w, n, HO_METRIC_WIN_RATE, trades), HO_REASON_NO_TRADES);
    set(out, HO_METRIC_AVG_TRADE, weighted(w, n, HO_METRIC_AVG_TRADE, trades), HO_REASON_NO_TRADES);
    set(out, HO_METRIC_AVG_TRADE_RETURN, weighted(w, n, HO_METRIC_AVG_TRADE_RETURN, trades),
        HO_REASON_NO_TRADES);
    set(out, HO_METRIC_TURNOVER, weighted(w, n, HO_METRIC_TURNOVER, sessions), HO_REASON_NO_DATA);
    set(out, HO_METRIC_EXPOSURE, weighted(w, n, HO_METRIC_EXPOSURE, bars), HO_REASON_NO_DATA);
    set(out, HO_METRIC_LONGEST_FLAT, largest_of(w, n, HO_METRIC_LONGEST_FLAT, 1.0),
        HO_REASON_NO_DATA);
}

static void join_drawdowns(const ho_scored_window *const *w, int n, ho_metric_set *out)
{
    double inside = largest_of(w, n, HO_METRIC_MAX_DRAWDOWN, -1.0);
    double cash = largest_of(w, n, HO_METRIC_MAX_DRAWDOWN_CASH, 1.0);
    double across = out->value[HO_METRIC_MAX_DRAWDOWN];
    if (isfinite(inside) && !(across <= inside)) {
        set(out, HO_METRIC_MAX_DRAWDOWN, inside, HO_REASON_NO_DATA);
        if (inside < 0.0) {
            set(out, HO_METRIC_RETURN_OVER_MAXDD, out->value[HO_METRIC_TOTAL_RETURN] / -inside,
                HO_REASON_NO_DATA);
            set(out, HO_METRIC_CALMAR, out->value[HO_METRIC_CAGR] / -inside, HO_REASON_NO_TIME);
        }
    }
    if (isfinite(cash) && !(out->value[HO_METRIC_MAX_DRAWDOWN_CASH] >= cash)) {
        set(out, HO_METRIC_MAX_DRAWDOWN_CASH, cash, HO_REASON_NO_DATA);
    }
    /* lengths are counted in bars, which cross no fold */
    set(out, HO_METRIC_DRAWDOWN_DURATION, largest_of(w, n, HO_METRIC_DRAWDOWN_DURATION, 1.0),
        HO_REASON_NO_DATA);
    set(out, HO_METRIC_RECOVERY_TIME, largest_of(w, n, HO_METRIC_RECOVERY_TIME, 1.0),
        HO_REASON_NO_DATA);
    set(out, HO_METRIC_LONGEST_DRAWDOWN, largest_of(w, n, HO_METRIC_LONGEST_DRAWDOWN, 1.0),
        HO_REASON_NO_DATA);
}

ho_status ho_join_windows(const ho_bars *bars, const ho_fold_plan *plan,
                          const ho_scored_window *const *window, ho_metric_set *out, ho_err *err)
{
    ho_metrics_input in = ho_metrics_input_defaults();
    ho_bar_stats stats;
    double *series = NULL, years = 0.0, capital = window[0]->result.initial_capital;
    int64_t count = 0;
    int n = plan->count;
    ho_status rc = HO_OK;

    memset(out, 0, sizeof *out);
    for (int i = 0; i < n; i++) {
        if (!window[i]->result.session_return || window[i]->result.sessions < 0 ||
            !(capital > 0.0)) {
            return ho_err_set(err, HO_EPROTO, "a window without session returns");
        }
        count += window[i]->result.sessions;
        years += (double)(bars->open_ns[plan->fold[i].test.end - 1] + bars->interval_ns -
                          bars->open_ns[plan->fold[i].test.begin]) /
                 ns_per_year;
    }
    if (!(series = (double *)malloc((size_t)(count + 1) * sizeof *series))) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    count = 0;
    ho_bar_stats_begin(&stats, capital);
    double equity = capital;
    for (int i = 0; i < n; i++) {
        for (int64_t s = 0; s < window[i]->result.sessions; s++) {
            double r = window[i]->result.session_return[s];
            equity *= isnan(r) ? 1.0 : 1.0 + r;
            series[count++] = r;
            ho_bar_stats_add(&stats, equity, r, 0);
        }
        in.ruined = in.ruined || window[i]->result.ruined;
    }
    in.initial_capital = capital;
    in.bars = &stats;
    in.sessions = series;
    in.session_count = count;
    in.sessions_per_year = bars->sessions_per_year;
    in.years = years;
    in.has_trades = 0;
    rc = ho_metrics_compute(&in, out);
    if (rc == HO_OK) {
        join_trades(window, n, out);
        join_drawdowns(window, n, out);
    } else {
        (void)ho_err_set(err, rc, "out of memory");
    }
    free(series);
    return rc;
}
