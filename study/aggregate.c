/* SPDX-License-Identifier: Apache-2.0
 * See objective.h: joining test windows to one series, and folding folds and seeds to values. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/metrics/metrics.h"
#include "kernels/metrics/trade_stats.h"
#include "study/folds.h"
#include "study/objective.h"

/* ---- the joined series ---------------------------------------------------------------------- */

typedef struct joint {
    const ho_stitch_input *in;
    ho_backtest_result *out;
    int used;               /* windows up to a ruined one */
    bool ids, bars, trades; /* every used window has them */
    ho_bar_stats bar;
    ho_trade_stats trade;

} joint;

static void add_sums(joint *j, const ho_backtest_result *w)
{
    ho_backtest_result *o = j->out;
    o->realised += w->realised;
    o->unrealised += w->unrealised;
    o->fees += w->fees;
    o->spread += w->spread;
    o->impact += w->impact;
    o->rounding += w->rounding;
    o->funding += w->funding;
    o->open_pnl += w->open_pnl;
    o->traded += w->traded;
    o->steps += w->steps;
    o->trades_closed += w->trades_closed;
    o->ambiguous_bars += w->ambiguous_bars;
    o->position_changes += w->position_changes;
    o->ruined |= w->ruined;
    for (int a = 0; a < HO_ACTIONS; a++) {
        o->action_count[a] += w->action_count[a];
    }
    for (int e = 0; e < HO_EXIT_REASONS; e++) {
        o->exit_count[e] += w->exit_count[e];
    }
}

/* Sessions one after the other; one that goes on in the next window is compounded. */
static ho_status join_sessions(joint *j, ho_err *err)
{
    ho_backtest_result *o = j->out;
    int64_t total = 0;
    for (int k = 0; k < j->used; k++) {
        total += j->in->window[k]->sessions;
    }
    o->session_return = (double *)calloc((size_t)total + 1, sizeof *o->session_return);
    o->session_id = j->ids ? (int32_t *)calloc((size_t)total + 1, sizeof *o->session_id) : NULL;
    if (!o->session_return || (j->ids && !o->session_id)) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for the joined series");
    }
    int64_t n = 0;
    for (int k = 0; k < j->used; k++) {
        const ho_backtest_result *w = j->in->window[k];
        for (int64_t i = 0; i < w->sessions; i++) {
            if (j->ids && i == 0 && n > 0 && o->session_id[n - 1] == w->session_id[0]) {
                o->session_return[n - 1] =
                    (1.0 + o->session_return[n - 1]) * (1.0 + w->session_return[0]) - 1.0;
                continue;
            }
            o->session_return[n] = w->session_return[i];
            if (j->ids) {
                o->session_id[n] = w->session_id[i];
            }
            n++;
        }
    }
    o->sessions = n;
    return HO_OK;
}

/* Compounds the bars' returns, or the sessions' where there are no bars. */
static void join_bars(joint *j)
{
    double equity = j->out->initial_capital;
    ho_bar_stats_begin(&j->bar, equity);
    for (int k = 0; k < j->used && j->bars; k++) {
        const ho_backtest_result *w = j->in->window[k];
        for (int64_t i = 0; i < w->bars; i++) {
            equity *= isnan(w->bar_return[i]) ? 1.0 : 1.0 + w->bar_return[i];
            ho_bar_stats_add(&j->bar, equity, w->bar_return[i], 0);
        }
    }
    for (int64_t i = 0; i < j->out->sessions && !j->bars; i++) {
        double r = j->out->session_return[i];
        equity *= isnan(r) ? 1.0 : 1.0 + r;
        ho_bar_stats_add(&j->bar, equity, r, 0);
    }
    j->out->final_equity = equity;
}

static void join_trades(joint *j)
{
    ho_trade_stats_begin(&j->trade);
    for (int k = 0; k < j->used && j->trades; k++) {
        const ho_backtest_result *w = j->in->window[k];
        for (int64_t i = 0; i < w->trade_count; i++) {
            ho_trade_stats_add(&j->trade, &w->trades[i], j->in->multiplier);
        }
    }
}

static void set(ho_metric_set *m, ho_metric metric, double value, ho_metric_reason reason)
{
    m->value[metric] = reason == HO_REASON_DEFINED ? value : NAN;
    m->reason[metric] = (unsigned char)reason;
}

/* Mean over the windows where the metric is defined, weighted. */
static void set_weighted(joint *j, ho_metric metric, bool by_trades)
{
    double sum = 0, weight = 0;
    for (int k = 0; k < j->used; k++) {
        const ho_backtest_result *w = j->in->window[k];
        double share = by_trades ? (double)w->trades_closed : (double)w->steps;
        if (w->metrics.reason[metric] == HO_REASON_DEFINED) {
            sum += share * w->metrics.value[metric];
            weight += share;
        }
    }
    ho_metric_reason none = by_trades ? HO_REASON_NO_TRADES : HO_REASON_NO_DATA;
    set(&j->out->metrics, metric, sum / weight, weight > 0 ? HO_REASON_DEFINED : none);
}

/* The largest (sign +1) or smallest (-1) of the windows, and of what stands there. */
static void set_extreme(joint *j, ho_metric metric, double sign)
{
    ho_metric_set *m = &j->out->metrics;
    for (int k = 0; k < j->used; k++) {
        const ho_metric_set *w = &j->in->window[k]->metrics;
        if (w->reason[metric] == HO_REASON_DEFINED &&
            (m->reason[metric] != HO_REASON_DEFINED ||
             sign * w->value[metric] > sign * m->value[metric])) {
            set(m, metric, w->value[metric], HO_REASON_DEFINED);
        }
    }
}

/* What a series of sessions cannot say is taken from the windows. */
static void patch_bars(joint *j)
{
    ho_metric_set *m = &j->out->metrics;
    set_extreme(j, HO_METRIC_MAX_DRAWDOWN, -1);
    set_extreme(j, HO_METRIC_MAX_DRAWDOWN_CASH, 1);
    double depth = m->value[HO_METRIC_MAX_DRAWDOWN];
    const ho_metric ratios[] = {HO_METRIC_CALMAR, HO_METRIC_RETURN_OVER_MAXDD};
    const ho_metric tops[] = {HO_METRIC_CAGR, HO_METRIC_TOTAL_RETURN};
    for (int i = 0; i < 2; i++) {
        ho_metric_reason reason = (ho_metric_reason)m->reason[ratios[i]];
        if (reason == HO_REASON_NO_DRAWDOWN) {
            reason = (ho_metric_reason)m->reason[tops[i]];
        }
        set(m, ratios[i], m->value[tops[i]] / -depth,
            reason == HO_REASON_DEFINED && depth == 0 ? HO_REASON_NO_DRAWDOWN : reason);
    }
    const ho_metric lengths[] = {HO_METRIC_DRAWDOWN_DURATION, HO_METRIC_RECOVERY_TIME,
                                 HO_METRIC_LONGEST_DRAWDOWN};
    for (int i = 0; i < 3; i++) {
        set(m, lengths[i], 0, HO_REASON_NO_DATA); /* they were counted in sessions */
        set_extreme(j, lengths[i], 1);
    }
    set(m, HO_METRIC_BAR_SHARPE, 0, HO_REASON_NO_DATA);
}

static void patch_trades(joint *j)
{
    const ho_metric unknown[] = {HO_METRIC_PROFIT_FACTOR, HO_METRIC_PAYOFF, HO_METRIC_EXPECTANCY,
                                 HO_METRIC_SQN};
    set_weighted(j, HO_METRIC_WIN_RATE, true);
    set_weighted(j, HO_METRIC_AVG_TRADE, true);
    set_weighted(j, HO_METRIC_AVG_TRADE_RETURN, true);
    for (int i = 0; i < 4; i++) {
        set(&j->out->metrics, unknown[i], 0,
            j->out->trades_closed > 0 ? HO_REASON_NO_DATA : HO_REASON_NO_TRADES);
    }
}

static ho_status join_metrics(joint *j, ho_err *err)
{
    const ho_stitch_input *in = j->in;
    ho_backtest_result *o = j->out;
    ho_metrics_input m = ho_metrics_input_defaults();
    m.initial_capital = o->initial_capital;
    m.bars = &j->bar;
    m.sessions = o->session_return;
    m.session_count = o->sessions;
    m.sessions_per_year = in->sessions_per_year;
    m.years = in->years;
    m.trade_stats = &j->trade;
    m.trade_count = j->trades ? j->trade.net.n : o->trades_closed;
    m.multiplier = in->multiplier;
    m.traded = o->traded;
    m.ambiguous_bars = o->ambiguous_bars;
    m.has_trades = 1;
    m.open_position = (in->window[j->used - 1]->metrics.flags & HO_FLAG_OPEN_POSITION) ? 1 : 0;
    m.ruined = o->ruined;
    if (ho_metrics_compute(&m, &o->metrics) != HO_OK) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for the joined metrics");
    }
    if (!j->bars) {
        patch_bars(j);
    }
    if (!j->trades) {
        patch_trades(j);
    }
    double pnl = 0;
    for (int k = 0; k < j->used; k++) {
        pnl += in->window[k]->final_equity - in->window[k]->initial_capital;
    }
    set(&o->metrics, HO_METRIC_TOTAL_PNL, pnl, HO_REASON_DEFINED);
    set_weighted(j, HO_METRIC_EXPOSURE, false);
    set(&o->metrics, HO_METRIC_LONGEST_FLAT, 0, HO_REASON_NO_DATA);
    set_extreme(j, HO_METRIC_LONGEST_FLAT, 1); /* flat at a border is not joined */
    return HO_OK;
}

ho_status ho_stitch(const ho_stitch_input *in, ho_backtest_result *out, ho_err *err)
{
    joint j = {.in = in, .out = out, .ids = true, .bars = true, .trades = true};
    memset(out, 0, sizeof *out);
    if (in->count < 1) {
        return ho_err_set(err, HO_EINVAL, "no window to join");
    }
    for (int k = 0; k < in->count && !out->ruined; k++) {
        const ho_backtest_result *w = in->window[k];
        if (w->sessions > 0 && !w->session_return) {
            return ho_err_set(err, HO_EINVAL, "window %d has no session returns", k);
        }
        j.ids = j.ids && (w->session_id || w->sessions == 0);
        j.bars = j.bars && w->bar_return;
        j.trades = j.trades && (w->trades || w->trades_closed == 0);
        add_sums(&j, w);
        j.used = k + 1;
    }
    out->initial_capital = in->window[0]->initial_capital;
    ho_status rc = join_sessions(&j, err);
    if (rc == HO_OK) {
        join_bars(&j);
        join_trades(&j);
        rc = join_metrics(&j, err);
    }
    if (rc != HO_OK) {
        free(out->session_return);
        free(out->session_id);
        memset(out, 0, sizeof *out);
    }
    return rc;
}

/* ---- folds --------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double ho_aggregate_folds(ho_aggregate how, const double *value, int n, int direction)
{
    double mean = 0, square = 0, v[HO_FOLDS_MAX];
    assert(n >= 1 && n <= HO_FOLDS_MAX);
    for (int i = 0; i < n; i++) {
        v[i] = value[i];
        mean += v[i] / n;
    }
    if (isnan(mean)) {
        return NAN;
    }
    qsort(v, (size_t)n, sizeof *v, ascending);
    switch (how) {
    case HO_AGGREGATE_MEDIAN:
        return n % 2 ? v[n / 2] : 0.5 * (v[n / 2 - 1] + v[n / 2]);
    case HO_AGGREGATE_MIN:
        return direction > 0 ? v[0] : v[n - 1];
    case HO_AGGREGATE_MEAN_MINUS_STD:
        for (int i = 0; i < n; i++) {
            square += (v[i] - mean) * (v[i] - mean);
        }
        return mean - direction * (n > 1 ? sqrt(square / (n - 1)) : 0);
    default:
        return mean;
    }
}
