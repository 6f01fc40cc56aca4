/* SPDX-License-Identifier: Apache-2.0
 * `hyperopt metrics FILE`: every metric of a series that a user brings, with its convention. The
 * formulas are those of studies (kernels/metrics). Rows of one UTC day are one session; without
 * stamps each row is one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "coordinator/commands.h"
#include "coordinator/json_out.h"
#include "coordinator/metrics_print.h"
#include "kernels/metrics/metrics.h"
#include "kernels/metrics/overfit.h"
#include "market/series.h"

#define NS_A_DAY  INT64_C(86400000000000)
#define NS_A_YEAR (365.25 * (double)NS_A_DAY)

enum { KIND_AUTO, KIND_RETURNS, KIND_EQUITY };

static const char *const returns_names[] = {"returns",      "return",        "ret", "pct_change",
                                            "daily_return", "simple_return", "r",   NULL};
static const char *const equity_names[] = {"equity",  "nav",   "value", "portfolio_value",
                                           "balance", "total", NULL};
static const char *const trade_names[] = {"net", "net_pnl", "pnl", "profit", "pl", NULL};

typedef struct metrics_options {
    const char *path, *column, *trades, *trades_column;
    int kind;
    double periods; /* 0: by the calendar */
    double risk_free, target, initial, benchmark, trial_variance;
    int64_t trials;
    bool json;
} metrics_options;

/* The series as bars and as sessions. */
typedef struct metrics_series {
    ho_bar_stats bars;
    double initial;
    double *session; /* [session_count] */
    int64_t session_count;
    double years;
    double periods, observed; /* a year; observed 0: no stamps */
    const char *origin;       /* "option", "calendar", "assumed" */
    int ruined;
} metrics_series;

static bool is_among(const char *name, const char *const *names)
{
    for (int i = 0; names[i]; i++) {
        if (strcasecmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* By the column's name; else returns lie within [-1, 1] and have both signs, an equity is above 1.
 */
static ho_status find_kind(const metrics_options *o, const ho_series *series, int *kind,
                           ho_err *err)
{
    bool small = true, large = true, negative = false;
    *kind = o->kind != KIND_AUTO                      ? o->kind
            : is_among(series->column, returns_names) ? KIND_RETURNS
            : is_among(series->column, equity_names)  ? KIND_EQUITY
                                                      : KIND_AUTO;
    for (int64_t i = 0; i < series->count; i++) {
        double x = series->value[i];
        small &= isnan(x) || fabs(x) <= 1.0;
        large &= isnan(x) || x > 1.0;
        negative |= x < 0.0;
    }
    if (*kind == KIND_AUTO && small && negative) {
        *kind = KIND_RETURNS;
    } else if (*kind == KIND_AUTO && large) {
        *kind = KIND_EQUITY;
    }
    if (*kind == KIND_AUTO) {
        return ho_err_set(err, HO_EUSAGE,
                          "%s: returns or an equity curve? Say --kind returns or --kind equity",
                          o->path);
    }
    return HO_OK;
}

static bool new_session(const ho_series *s, int64_t i)
{
    return !s->time_ns || i + 1 == s->count ||
           s->time_ns[i] / NS_A_DAY != s->time_ns[i + 1] / NS_A_DAY;
}

/* Runs through the rows: equity, bars, sessions; stops where the equity is gone. */
static ho_status run_series(const metrics_options *o, const ho_series *s, int kind,
                            metrics_series *out, ho_err *err)
{
    int64_t first = kind == KIND_EQUITY ? 1 : 0;
    out->initial = kind == KIND_EQUITY ? s->value[0] : o->initial;
    if (!(out->initial > 0.0)) {
        return ho_err_set(err, HO_EDATA, "%s: the first equity is %g; it must be above 0", o->path,
                          out->initial);
    }
    out->session = malloc((size_t)s->count * sizeof(double));
    if (!out->session) {
        return ho_err_set(err, HO_ENOMEM, "%s: out of memory", o->path);
    }
    double equity = out->initial, start = equity;
    bool any = false; /* a value in this session */
    ho_bar_stats_begin(&out->bars, equity);
    for (int64_t i = first; i < s->count && !out->ruined; i++) {
        double x = s->value[i];
        double next = isnan(x) ? equity : kind == KIND_EQUITY ? x : equity * (1.0 + x);
        double ret = isnan(x) ? NAN : kind == KIND_EQUITY ? x / equity - 1.0 : x;
        ho_bar_stats_add(&out->bars, next, ret, 0);
        equity = next;
        any |= !isnan(x);
        out->ruined = equity <= 0.0;
        if (out->ruined || new_session(s, i)) {
            bool one = i == first || new_session(s, i - 1); /* of one row: its return as it is */
            out->session[out->session_count++] = !any ? NAN : one ? ret : equity / start - 1.0;
            start = equity;
            any = false;
        }
    }
    return HO_OK;
}

/* Years and sessions per year. Where more than 0.6 * 2/7 of the days are weekend days the series
 * trades round the clock. */
static void find_calendar(const metrics_options *o, const ho_series *s, int kind,
                          metrics_series *out)
{
    out->periods = o->periods > 0.0 ? o->periods : 252.0;
    out->origin = o->periods > 0.0 ? "option" : "assumed";
    if (!s->time_ns || s->count < 2) {
        return;
    }
    int64_t weekend = 0, days = 0;
    for (int64_t i = 0; i < s->count; i++) {
        if (new_session(s, i)) {
            int64_t weekday = ((s->time_ns[i] / NS_A_DAY) % 7 + 4) % 7; /* 1970 began on Thursday */
            weekend += weekday == 0 || weekday == 6;
            days++;
        }
    }
    double span = (double)(s->time_ns[s->count - 1] - s->time_ns[0]);
    /* a stamp ends its return: the first return began one step earlier */
    out->years = span / NS_A_YEAR;
    if (kind == KIND_RETURNS) {
        out->years *= (double)s->count / (double)(s->count - 1);
    }
    out->observed = out->years > 0.0 ? (double)out->session_count / out->years : 0.0;
    if (o->periods == 0.0) {
        out->periods = (double)weekend > 0.6 * 2.0 / 7.0 * (double)days ? 365.0 : 252.0;
        out->origin = "calendar";
    }
}

static ho_status read_trades(const metrics_options *o, ho_trade **out, int64_t *count, ho_err *err)
{
    ho_series net;
    ho_status rc = ho_series_read(o->trades, o->trades_column, trade_names, &net, err);
    if (rc != HO_OK) {
        return rc;
    }
    *out = calloc((size_t)net.count + 1, sizeof **out);
    for (int64_t i = 0; *out && i < net.count; i++) {
        if (!isnan(net.value[i])) {
            (*out)[(*count)++].net = net.value[i];
        }
    }
    ho_series_free(&net);
    return *out ? HO_OK : ho_err_set(err, HO_ENOMEM, "%s: out of memory", o->trades);
}

/* A list of net results says nothing about positions. */
static void forget_positions(ho_metric_set *set)
{
    static const ho_metric unknown[] = {HO_METRIC_AVG_TRADE_RETURN, HO_METRIC_TURNOVER,
                                        HO_METRIC_EXPOSURE, HO_METRIC_AMBIGUOUS_BARS,
                                        HO_METRIC_LONGEST_FLAT};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        set->value[unknown[i]] = NAN;
        set->reason[unknown[i]] = HO_REASON_NO_DATA;
    }
}

/* ---- output ---------------------------------------------------------------------------------- */

typedef struct metrics_luck {
    double psr, min_track_record, dsr; /* NaN where undefined */
} metrics_luck;

static metrics_luck find_luck(const metrics_options *o, const metrics_series *s)
{
    double rate = o->risk_free != 0.0 ? ho_rate_per_period(o->risk_free, s->periods) : 0.0;
    double benchmark = o->benchmark / sqrt(s->periods);
    int64_t n = 0;
    for (int64_t i = 0; i < s->session_count; i++) { /* NaN out, in place */
        if (!isnan(s->session[i])) {
            s->session[n++] = s->session[i];
        }
    }
    ho_sharpe_moments m = ho_sharpe_moments_of(s->session, n, rate);
    double record = ho_min_track_record(&m, benchmark, 0.95);
    return (metrics_luck){
        .psr = s->ruined ? NAN : ho_psr(&m, benchmark),
        .min_track_record = s->ruined || isinf(record) ? NAN : record,
        .dsr = o->trials > 0 && !s->ruined ? ho_dsr(&m, o->trials, o->trial_variance / s->periods)
                                           : NAN,
    };
}

static bool periods_doubtful(const metrics_series *s)
{
    return s->observed > 0.0 && fabs(s->periods / s->observed - 1.0) > 0.05;
}

static void print_luck(const char *name, double value, const char *unit, const char *text)
{
    char number[32] = "-";
    if (!isnan(value)) {
        (void)snprintf(number, sizeof number, "%.6g", value);
    }
    printf("%-18s %18s  %-13s %s\n", name, number, unit, text);
}

static void print_table(const metrics_options *o, const ho_series *series, int kind,
                        const metrics_series *s, const ho_metric_set *set, const metrics_luck *luck)
{
    printf("%s: %lld rows%s%s read as %s; %lld sessions; annualised with %g sessions a year (%s)\n",
           o->path, (long long)series->count, series->column[0] ? ", column " : "", series->column,
           kind == KIND_EQUITY ? "an equity curve" : "returns", (long long)s->session_count,
           s->periods, s->origin);
    if (o->risk_free != 0.0 || o->target != 0.0 || o->benchmark != 0.0) {
        printf("risk-free rate %g a year, target return %g a session, benchmark Sharpe ratio %g\n",
               o->risk_free, o->target, o->benchmark);
    }
    if (series->empty > 0) {
        printf("note: %lld rows without a value\n", (long long)series->empty);
    }
    if (periods_doubtful(s)) {
        printf("note: the stamps show %.1f sessions a year, more than 5 %% from %g; "
               "see --sessions-per-year\n",
               s->observed, s->periods);
    }
    ho_metrics_print_flags(stdout, set->flags);
    printf("\n");
    ho_metrics_print_table(stdout, set);
    printf("\n");
    print_luck("psr", luck->psr, "probability", "that the true Sharpe ratio exceeds the benchmark");
    print_luck("min_track_record", luck->min_track_record, "sessions",
               "needed to show that with 95 % confidence");
    if (o->trials > 0) {
        print_luck("dsr", luck->dsr, "probability", "the same against the best trial by luck");
    }
}

static void print_json(const metrics_options *o, const ho_series *series, int kind,
                       const metrics_series *s, const ho_metric_set *set, const metrics_luck *luck)
{
    ho_json_out out = {.file = stdout};
    ho_json_begin(&out, NULL, '{');
    ho_json_text(&out, "file", o->path);
    ho_json_text(&out, "column", series->column);
    ho_json_text(&out, "kind", kind == KIND_EQUITY ? "equity" : "returns");
    ho_json_integer(&out, "rows", series->count);
    ho_json_integer(&out, "n_nan", series->empty);
    ho_json_integer(&out, "bars", s->bars.bars);
    ho_json_integer(&out, "sessions", s->session_count);
    ho_json_begin(&out, "sessions_per_year", '{');
    ho_json_number(&out, "value", s->periods);
    ho_json_text(&out, "origin", s->origin);
    ho_json_number(&out, "observed", s->observed > 0.0 ? s->observed : NAN);
    ho_json_end(&out, '}');
    ho_json_number(&out, "years", s->years > 0.0 ? s->years : NAN);
    ho_json_number(&out, "risk_free", o->risk_free);
    ho_json_number(&out, "target", o->target);
    ho_metrics_json(&out, "metrics", set);
    ho_metrics_json_flags(&out, "flags", set->flags);
    ho_json_begin(&out, "luck", '{');
    ho_json_number(&out, "benchmark_sharpe", o->benchmark);
    ho_json_number(&out, "psr", luck->psr);
    ho_json_number(&out, "min_track_record", luck->min_track_record);
    ho_json_number(&out, "dsr", luck->dsr);
    ho_json_end(&out, '}');
    ho_json_end(&out, '}');
    printf("\n");
}

static ho_status run(const metrics_options *o, ho_err *err)
{
    ho_series series = {0};
    metrics_series s = {0};
    ho_trade *trades = NULL;
    ho_metric_set set;
    ho_metrics_input in = ho_metrics_input_defaults();
    const char *names[sizeof returns_names / sizeof returns_names[0] +
                      sizeof equity_names / sizeof equity_names[0]] = {NULL};
    int kind = o->kind, n = 0;
    for (int i = 0; o->kind != KIND_EQUITY && returns_names[i]; i++) {
        names[n++] = returns_names[i];
    }
    for (int i = 0; o->kind != KIND_RETURNS && equity_names[i]; i++) {
        names[n++] = equity_names[i];
    }
    ho_status rc = ho_series_read(o->path, o->column, names, &series, err);
    if (rc != HO_OK || (rc = find_kind(o, &series, &kind, err)) != HO_OK ||
        (rc = run_series(o, &series, kind, &s, err)) != HO_OK) {
        goto out;
    }
    find_calendar(o, &series, kind, &s);
    if (o->trades && (rc = read_trades(o, &trades, &in.trade_count, err)) != HO_OK) {
        goto out;
    }
    in.initial_capital = s.initial;
    in.bars = &s.bars;
    in.sessions = s.session;
    in.session_count = s.session_count;
    in.sessions_per_year = s.periods;
    in.years = s.years;
    in.risk_free = o->risk_free;
    in.target = o->target;
    in.trades = trades;
    in.has_trades = trades != NULL;
    in.ruined = s.ruined;
    rc = ho_metrics_compute(&in, &set);
    if (rc != HO_OK) {
        ho_err_set(err, rc, "%s: out of memory", o->path);
        goto out;
    }
    forget_positions(&set);
    metrics_luck luck = find_luck(o, &s);
    (o->json ? print_json : print_table)(o, &series, kind, &s, &set, &luck);
out:
    free(trades);
    free(s.session);
    ho_series_free(&series);
    return rc;
}

int ho_cmd_metrics(int argc, char **argv)
{
    metrics_options o = {.initial = 1.0};
    const ho_option option[] = {
        {.name = "column",
         .letter = 'c',
         .kind = HO_OPTION_STRING,
         .target = &o.column,
         .value = "NAME",
         .help = "the column, by name or number; found when there is only one"},
        {.name = "kind",
         .letter = 'k',
         .kind = HO_OPTION_CHOICE,
         .target = &o.kind,
         .value = "auto|returns|equity",
         .help = "what the column holds; auto: by its name or values"},
        {.name = "trades",
         .letter = 't',
         .kind = HO_OPTION_STRING,
         .target = &o.trades,
         .value = "FILE",
         .help = "net result of each closed trade, in money"},
        {.name = "trades-column",
         .kind = HO_OPTION_STRING,
         .target = &o.trades_column,
         .value = "NAME",
         .help = "the column of that file"},
        {.name = "sessions-per-year",
         .letter = 'p',
         .kind = HO_OPTION_NUMBER,
         .target = &o.periods,
         .value = "N",
         .help = "default: 252, or 365 when the stamps show weekends",
         .low = 1e-3,
         .high = 1e6},
        {.name = "risk-free",
         .kind = HO_OPTION_NUMBER,
         .target = &o.risk_free,
         .value = "RATE",
         .help = "a year, 0.03 for 3 %; taken off in Sharpe and PSR",
         .low = -0.99,
         .high = 10.0},
        {.name = "target",
         .kind = HO_OPTION_NUMBER,
         .target = &o.target,
         .value = "RETURN",
         .help = "minimum acceptable return a session, for Sortino",
         .low = -1.0,
         .high = 10.0},
        {.name = "initial",
         .kind = HO_OPTION_NUMBER,
         .target = &o.initial,
         .value = "MONEY",
         .help = "capital before the first return; default 1",
         .low = 1e-9,
         .high = 1e18},
        {.name = "benchmark",
         .kind = HO_OPTION_NUMBER,
         .target = &o.benchmark,
         .value = "SHARPE",
         .help = "annual Sharpe ratio that PSR compares with; default 0",
         .low = -100.0,
         .high = 100.0},
        {.name = "trials",
         .kind = HO_OPTION_INTEGER,
         .target = &o.trials,
         .value = "N",
         .help = "how many were tried to find this one: prints the deflated Sharpe ratio",
         .low = 1,
         .high = 1e12},
        {.name = "trial-variance",
         .kind = HO_OPTION_NUMBER,
         .target = &o.trial_variance,
         .value = "V",
         .help = "variance of the trials' annual Sharpe ratios, for --trials",
         .low = 0.0,
         .high = 1e6},
        {.name = "json", .kind = HO_OPTION_FLAG, .target = &o.json, .help = "print JSON"},
    };
    const ho_usage usage = {
        .name = "metrics",
        .arguments = "FILE",
        .about = "Prints every metric of a series of returns or of an equity curve (CSV, also\n"
                 "packed), each with its convention. Rows of one UTC day are one session; without\n"
                 "time stamps each row is one. An undefined value has a reason instead of a\n"
                 "number.\n",
        .examples = "  hyperopt metrics returns.csv\n"
                    "  hyperopt metrics equity.csv --column nav --trades trades.csv --json\n",
        .option = option,
        .option_count = sizeof option / sizeof option[0],
        .min_arguments = 1,
        .max_arguments = 1,
    };
    ho_arguments arguments;
    ho_err err = {0};
    switch (ho_usage_parse(&usage, argc, argv, &arguments)) {
    case HO_OK:
        break;
    case HO_EDONE:
        return HO_EXIT_OK;
    default:
        return HO_EXIT_USAGE;
    }
    o.path = arguments.item[0];
    if (o.trials > 0 && !(o.trial_variance > 0.0)) {
        ho_err_set(&err, HO_EUSAGE,
                   "--trials needs --trial-variance, the variance of their annual "
                   "Sharpe ratios");
        return ho_exit_report(&err);
    }
    return run(&o, &err) == HO_OK ? HO_EXIT_OK : ho_exit_report(&err);
}
