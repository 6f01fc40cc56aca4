/* SPDX-License-Identifier: Apache-2.0
 * Fills a ho_metric_set group by group: returns, drawdowns, tails, trades, activity. */
#include "kernels/metrics/metrics.h"

#include <stdlib.h>
#include <string.h>

#define VAR_ALPHA 0.05
#define DAY_YEARS (1.0 / 365.25)
enum { TAIL_MIN = 5, SHORT_SAMPLE_DAYS = 30 };

ho_metrics_input ho_metrics_input_defaults(void)
{
    return (ho_metrics_input){.sessions_per_year = 252.0, .multiplier = 1.0};
}

static void set(ho_metric_set *out, ho_metric metric, double value)
{
    out->value[metric] = value;
    out->reason[metric] = HO_REASON_DEFINED;
}

static void undefined(ho_metric_set *out, ho_metric metric, ho_metric_reason reason)
{
    out->value[metric] = NAN;
    out->reason[metric] = (unsigned char)reason;
}

/* A value that needs its inputs to be defined; otherwise their reason. */
static void set_or(ho_metric_set *out, ho_metric metric, ho_metric_reason reason, double value)
{
    if (reason != HO_REASON_DEFINED) {
        undefined(out, metric, reason);
    } else {
        set(out, metric, value);
    }
}

static void returns_group(const ho_metrics_input *in, const double *r, int64_t n,
                          ho_metric_set *out)
{
    ho_moments m = {0, 0.0, 0.0};
    double min = INFINITY, max = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        ho_moments_add(&m, r[i]);
        min = r[i] < min ? r[i] : min;
        max = r[i] > max ? r[i] : max;
    }
    ho_metric_reason length = n == 0  ? HO_REASON_NO_DATA
                              : n < 2 ? HO_REASON_TOO_SHORT
                                      : HO_REASON_DEFINED;
    ho_metric_reason ratio = length != HO_REASON_DEFINED ? length
                             : in->ruined                ? HO_REASON_RUINED
                                                         : HO_REASON_DEFINED;
    double scale = sqrt(in->sessions_per_year);
    double deviation = n >= 2 ? ho_moments_deviation(&m) : NAN;
    int flat = n >= 2 && ho_is_flat(&m, min, max);
    double rate =
        in->risk_free != 0.0 ? ho_rate_per_period(in->risk_free, in->sessions_per_year) : 0.0;
    set_or(out, HO_METRIC_SHARPE, ratio == HO_REASON_DEFINED && flat ? HO_REASON_FLAT : ratio,
           (m.mean - rate) / deviation * scale);
    set_or(out, HO_METRIC_VOLATILITY, length, (flat ? 0.0 : deviation) * scale);

    double downside = n > 0 ? ho_downside_deviation(r, n, in->target) : NAN;
    ho_metric_reason sortino = ratio;
    if (ratio == HO_REASON_DEFINED && downside == 0.0) {
        sortino = flat && m.mean == in->target ? HO_REASON_FLAT : HO_REASON_NO_DOWNSIDE;
    }
    set_or(out, HO_METRIC_SORTINO, sortino, (m.mean - in->target) / downside * scale);
}

static void bars_group(const ho_metrics_input *in, ho_metric_set *out)
{
    const ho_bar_stats *b = in->bars;
    ho_metric_reason any = b->bars == 0 ? HO_REASON_NO_DATA : HO_REASON_DEFINED;
    ho_metric_reason sharpe = any;
    if (any == HO_REASON_DEFINED && b->ret.n < 2) {
        sharpe = HO_REASON_TOO_SHORT;
    } else if (any == HO_REASON_DEFINED && in->ruined) {
        sharpe = HO_REASON_RUINED;
    } else if (any == HO_REASON_DEFINED && ho_is_flat(&b->ret, b->ret_min, b->ret_max)) {
        sharpe = HO_REASON_FLAT;
    }
    double deviation = b->ret.n >= 2 ? ho_moments_deviation(&b->ret) : NAN;
    set_or(out, HO_METRIC_BAR_SHARPE, sharpe, b->ret.mean / deviation);

    double end = b->equity, total = end / in->initial_capital - 1.0, depth = b->deepest.depth;
    set(out, HO_METRIC_TOTAL_PNL, end - in->initial_capital);
    set(out, HO_METRIC_TOTAL_RETURN, total);
    set_or(out, HO_METRIC_MAX_DRAWDOWN, any, depth);
    set_or(out, HO_METRIC_MAX_DRAWDOWN_CASH, any, b->deepest_cash);
    set_or(out, HO_METRIC_DRAWDOWN_DURATION, any, (double)ho_drawdown_duration(b));
    set_or(out, HO_METRIC_RECOVERY_TIME, any, (double)ho_drawdown_recovery(b));
    set_or(out, HO_METRIC_LONGEST_DRAWDOWN, any, (double)ho_drawdown_longest(b));

    ho_metric_reason time = any != HO_REASON_DEFINED ? any
                            : in->years > 0.0        ? HO_REASON_DEFINED
                                                     : HO_REASON_NO_TIME;
    double cagr = end > 0.0 ? pow(end / in->initial_capital, 1.0 / in->years) - 1.0 : -1.0;
    set_or(out, HO_METRIC_CAGR, time, cagr);
    ho_metric_reason ratio = any != HO_REASON_DEFINED ? any
                             : in->ruined             ? HO_REASON_RUINED
                             : b->ret.n < 2           ? HO_REASON_TOO_SHORT
                             : depth == 0.0           ? HO_REASON_NO_DRAWDOWN
                                                      : HO_REASON_DEFINED;
    set_or(out, HO_METRIC_RETURN_OVER_MAXDD, ratio, total / -depth);
    set_or(out, HO_METRIC_CALMAR, ratio != HO_REASON_DEFINED ? ratio : time, cagr / -depth);
    if (depth < 0.0 && b->deepest.recovery < 0) {
        out->flags |= HO_FLAG_CENSORED;
    }
    if (in->years > 0.0 && in->years < SHORT_SAMPLE_DAYS * DAY_YEARS) {
        out->flags |= HO_FLAG_SHORT_SAMPLE;
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Puts the `count` smallest values first, in any order (Hoare's selection, middle pivot). */
static void select_smallest(double *r, int64_t n, int64_t count)
{
    int64_t low = 0, high = n - 1;
    while (low < high) {
        double pivot = r[low + (high - low) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (r[i] < pivot) {
                i++;
            }
            while (r[j] > pivot) {
                j--;
            }
            if (i <= j) {
                double swap = r[i];
                r[i++] = r[j];
                r[j--] = swap;
            }
        }
        if (count - 1 <= j) {
            high = j;
        } else if (count - 1 >= i) {
            low = i;
        } else {
            return;
        }
    }
}

/* Reorders r. */
static void tail_group(double *r, int64_t n, ho_metric_set *out)
{
    if (n == 0) {
        undefined(out, HO_METRIC_VAR95, HO_REASON_NO_DATA);
        undefined(out, HO_METRIC_CVAR95, HO_REASON_NO_DATA);
        return;
    }
    int64_t tail = (int64_t)floor((double)n * VAR_ALPHA) + 2; /* what the two read */
    tail = tail < n ? tail : n;
    select_smallest(r, n, tail);
    qsort(r, (size_t)tail, sizeof *r, ascending);
    double var = ho_quantile7(r, n, VAR_ALPHA), cvar = ho_cvar(r, n, VAR_ALPHA);
    set(out, HO_METRIC_VAR95, var);
    set(out, HO_METRIC_CVAR95,
        cvar < var ? cvar : var); /* equal returns: rounding must not part them */
    if ((int64_t)floor((double)n * VAR_ALPHA) < TAIL_MIN) {
        out->flags |= HO_FLAG_TAIL_TOO_SMALL;
    }
}

static ho_trade_stats sum_trades(const ho_metrics_input *in)
{
    if (in->trade_stats) {
        return *in->trade_stats;
    }
    ho_trade_stats s;
    ho_trade_stats_begin(&s);
    for (int64_t i = 0; i < in->trade_count; i++) {
        ho_trade_stats_add(&s, &in->trades[i], in->multiplier);
    }
    return s;
}

static void trades_group(const ho_metrics_input *in, ho_metric_set *out)
{
    ho_trade_stats s = sum_trades(in);
    double n = (double)in->trade_count;
    double won = ho_sum_value(&s.won), lost = -ho_sum_value(&s.lost);
    double mean = (won - lost) / n, mean_loss = lost / (double)s.losses;
    ho_metric_reason any = !in->has_trades        ? HO_REASON_NO_DATA
                           : in->trade_count == 0 ? HO_REASON_NO_TRADES
                                                  : HO_REASON_DEFINED;
    ho_metric_reason losses = any != HO_REASON_DEFINED ? any
                              : s.losses == 0          ? HO_REASON_NO_LOSSES
                                                       : HO_REASON_DEFINED;
    ho_metric_reason payoff =
        losses == HO_REASON_DEFINED && s.wins == 0 ? HO_REASON_NO_WINS : losses;
    ho_metric_reason sqn = any;
    if (any == HO_REASON_DEFINED && in->trade_count < 2) {
        sqn = HO_REASON_TOO_SHORT;
    } else if (any == HO_REASON_DEFINED && ho_is_flat(&s.net, s.net_min, s.net_max)) {
        sqn = HO_REASON_FLAT;
    }
    double deviation = in->trade_count >= 2 ? ho_moments_deviation(&s.net) : NAN;
    set_or(out, HO_METRIC_WIN_RATE, any, (double)s.wins / n);
    set_or(out, HO_METRIC_AVG_TRADE, any, mean);
    set_or(out, HO_METRIC_AVG_TRADE_RETURN, any, ho_sum_value(&s.on_notional) / n);
    set_or(out, HO_METRIC_PROFIT_FACTOR, losses, won / lost);
    set_or(out, HO_METRIC_PAYOFF, payoff, won / (double)s.wins / mean_loss);
    set_or(out, HO_METRIC_EXPECTANCY, losses, mean / mean_loss);
    set_or(out, HO_METRIC_SQN, sqn, sqrt(n) * mean / deviation);
}

static void activity_group(const ho_metrics_input *in, ho_metric_set *out)
{
    const ho_bar_stats *b = in->bars;
    ho_metric_reason known = in->has_trades ? HO_REASON_DEFINED : HO_REASON_NO_DATA;
    ho_metric_reason bars = b->bars > 0 ? known : HO_REASON_NO_DATA;
    ho_metric_reason sessions = in->session_count > 0 ? known : HO_REASON_NO_DATA;
    set_or(out, HO_METRIC_TRADES, known, (double)in->trade_count);
    set_or(out, HO_METRIC_AMBIGUOUS_BARS, known, (double)in->ambiguous_bars);
    set_or(out, HO_METRIC_LONGEST_FLAT, bars, (double)b->longest_flat);
    set_or(out, HO_METRIC_EXPOSURE, bars, (double)b->held / (double)b->bars);
    set_or(out, HO_METRIC_TURNOVER, sessions,
           in->traded / in->initial_capital / (double)in->session_count);
}

ho_status ho_metrics_compute(const ho_metrics_input *in, ho_metric_set *out)
{
    memset(out, 0, sizeof *out);
    int64_t n = 0;
    double *r = malloc((size_t)(in->session_count > 0 ? in->session_count : 1) * sizeof *r);
    if (!r) {
        return HO_ENOMEM;
    }
    for (int64_t i = 0; i < in->session_count; i++) {
        if (!isnan(in->sessions[i])) {
            r[n++] = in->sessions[i];
        }
    }
    if (n < in->session_count || in->bars->nan_count > 0) {
        out->flags |= HO_FLAG_NAN_DROPPED;
    }
    out->flags |= in->ruined ? HO_FLAG_RUINED : 0;
    out->flags |= in->open_position ? HO_FLAG_OPEN_POSITION : 0;
    returns_group(in, r, n, out);
    bars_group(in, out);
    tail_group(r, n, out);
    trades_group(in, out);
    activity_group(in, out);
    free(r);
    return HO_OK;
}
