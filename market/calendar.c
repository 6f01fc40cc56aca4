/* SPDX-License-Identifier: Apache-2.0
 * See calendar.h. */
#include "market/calendar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/shapes.h"
#include "market/clean.h"
#include "market/rows.h"

enum { DAY_S = 86400, HALF_HOUR_S = 1800 };

static const int64_t SECOND_NS = 1000000000LL;
static const int64_t DAY_NS = 86400LL * 1000000000LL;

static int64_t local_second(const ho_zone *zone, int64_t ns)
{
    int64_t s = ho_floor_div(ns, SECOND_NS);
    return s + ho_zone_offset(zone, s);
}

/* ---- finding the calendar -------------------------------------------------------------------- */

/* "17:00" to seconds. */
static ho_status parse_clock(const char *key, const char *text, int *out, ho_err *err)
{
    int h = 0, m = 0, used = 0;
    if (sscanf(text, "%2d:%2d%n", &h, &m, &used) != 2 || text[used] != '\0' || h < 0 || h > 24 ||
        m < 0 || m > 59 || h * 60 + m > 24 * 60) {
        return ho_err_set(err, HO_EINVAL, "data.%s = \"%s\" is not a time of day such as \"17:00\"",
                          key, text);
    }
    *out = h * 3600 + m * 60;
    return HO_OK;
}

/* Saturdays as busy as half a weekday; or, in less than a week, not one pause of half an hour in
 * a day or more. */
static bool trades_on_weekends(const ho_zone *zone, const int64_t *open_ns, int64_t T,
                               int64_t interval_ns)
{
    int64_t count[7] = {0}, longest = 0;
    for (int64_t t = 0; t < T; ++t) {
        ++count[ho_weekday(ho_floor_div(local_second(zone, open_ns[t]), DAY_S))];
        if (t > 0 && open_ns[t] - open_ns[t - 1] > longest) {
            longest = open_ns[t] - open_ns[t - 1];
        }
    }
    int64_t span = T > 0 ? open_ns[T - 1] - open_ns[0] + interval_ns : 0;
    if (span < 8 * DAY_NS && interval_ns < DAY_NS) {
        return span >= DAY_NS && longest <= interval_ns + HALF_HOUR_S * SECOND_NS;
    }
    double weekday = (double)(count[0] + count[1] + count[2] + count[3] + count[4]) / 5.0;
    return (double)count[5] >= 0.5 * weekday && count[5] > 0;
}

/* The time of day at which the market opens after its pauses: the minute with the most pauses
 * before it, long ones counting a little more (an open rather than the end of a lunch break), or
 * one up to an hour earlier with a tenth as many (daylight saving, seen from a zone without it). */
static int find_start(const ho_zone *zone, const int64_t *open_ns, int64_t T, int64_t interval_ns)
{
    enum { MINUTES = 1440 };
    double *weight = calloc(MINUTES, sizeof *weight);
    int best = 0;
    if (!weight) {
        return 0;
    }
    for (int64_t t = 1; t < T; ++t) {
        int64_t pause = open_ns[t] - open_ns[t - 1] - interval_ns;
        if (pause >= HALF_HOUR_S * SECOND_NS && pause < 5 * DAY_NS) { /* longer: a hole */
            int64_t local = local_second(zone, open_ns[t]);
            int minute = (int)((local - ho_floor_div(local, DAY_S) * DAY_S) / 60);
            weight[minute] +=
                1.0 + 0.24 * (double)(pause < DAY_NS ? pause : DAY_NS) / (double)DAY_NS;
        }
    }
    for (int m = 1; m < MINUTES; ++m) {
        best = weight[m] > weight[best] ? m : best;
    }
    for (int back = 60; back > 0; --back) {
        int m = (best - back + MINUTES) % MINUTES;
        if (weight[m] > 0.1 * weight[best]) {
            best = m;
            break;
        }
    }
    free(weight);
    return best * 60;
}

ho_status ho_calendar_find(const ho_data_options *options, const ho_zone *zone,
                           const int64_t *open_ns, int64_t T, int64_t interval_ns, ho_calendar *out,
                           ho_err *err)
{
    ho_status rc = HO_OK;
    *out = (ho_calendar){.zone = zone, .end_s = -1};
    out->round_the_clock = trades_on_weekends(zone, open_ns, T, interval_ns);
    out->max_gap_ns = (out->round_the_clock ? 1 : 5) * DAY_NS;
    if (interval_ns >= DAY_NS) {
        out->max_gap_ns = 5 * interval_ns;
    }
    if (options->max_gap[0] &&
        (rc = ho_span_ns_parse("data.max_gap", options->max_gap, &out->max_gap_ns, err)) != HO_OK) {
        return rc;
    }
    if (options->session_end[0] && !options->session_start[0]) {
        return ho_err_set(err, HO_EINVAL, "data.session_end needs data.session_start");
    }
    if (options->session_start[0]) {
        rc = parse_clock("session_start", options->session_start, &out->start_s, err);
        if (rc == HO_OK && options->session_end[0]) {
            rc = parse_clock("session_end", options->session_end, &out->end_s, err);
        }
    } else if (!out->round_the_clock && interval_ns < DAY_NS) {
        out->start_s = find_start(zone, open_ns, T, interval_ns);
    }
    return rc;
}

int64_t ho_calendar_day(const ho_calendar *calendar, int64_t ns)
{
    int64_t local = local_second(calendar->zone, ns) - calendar->start_s;
    int64_t day = ho_floor_div(local, DAY_S) + (calendar->start_s > DAY_S / 2);
    if (!calendar->round_the_clock) {
        int weekday = ho_weekday(day);
        day += weekday == 5 ? 2 : weekday == 6;
    }
    return day;
}

bool ho_calendar_is_inside(const ho_calendar *calendar, int64_t ns)
{
    int64_t local = local_second(calendar->zone, ns);
    int of_day = (int)(local - ho_floor_div(local, DAY_S) * DAY_S);
    int start = calendar->start_s, end = calendar->end_s;
    if (end < 0) {
        return true;
    }
    return start < end ? of_day >= start && of_day < end : of_day >= start || of_day < end;
}

/* ---- sessions -------------------------------------------------------------------------------- */

ho_status ho_calendar_sessions(const ho_calendar *calendar, ho_bars *bars, ho_err *err)
{
    int64_t previous = 0;
    int32_t session = -1;
    if (!(bars->session = malloc((size_t)bars->count * sizeof *bars->session))) {
        return ho_err_set(err, HO_ENOMEM, "no memory for the sessions");
    }
    for (int64_t t = 0; t < bars->count; ++t) {
        int64_t day = bars->interval_ns >= DAY_NS ? t : ho_calendar_day(calendar, bars->open_ns[t]);
        if (t == 0 || day != previous) {
            ++session;
            previous = day;
        }
        bars->session[t] = session;
    }
    return HO_OK;
}

static int compare_counts(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Median number of bars in a session. */
static ho_status median_session(const ho_bars *bars, double *out, ho_err *err)
{
    int64_t sessions = (int64_t)bars->session[bars->count - 1] + 1;
    int64_t *count = calloc((size_t)sessions, sizeof *count);
    if (!count) {
        return ho_err_set(err, HO_ENOMEM, "no memory for the sessions");
    }
    for (int64_t t = 0; t < bars->count; ++t) {
        ++count[bars->session[t]];
    }
    qsort(count, (size_t)sessions, sizeof *count, compare_counts);
    *out = (double)count[sessions / 2];
    free(count);
    return HO_OK;
}

ho_status ho_calendar_year(const ho_data_options *options, const ho_calendar *calendar,
                           ho_bars *bars, ho_data_report *report, ho_err *err)
{
    static const double year_ns = 365.25 * 86400e9;
    bars->sessions_per_year = options->sessions_per_year > 0.0 ? options->sessions_per_year
                              : bars->interval_ns > DAY_NS     ? year_ns / (double)bars->interval_ns
                              : calendar->round_the_clock      ? 365.0
                                                               : 252.0;
    ho_status rc = median_session(bars, &report->bars_per_session, err);
    report->bars_per_year = report->bars_per_session * bars->sessions_per_year;
    const char *zone = bars->timezone[0] ? bars->timezone : "UTC";
    if (bars->interval_ns >= DAY_NS) {
        (void)snprintf(report->session, sizeof report->session, "a bar is a session, %g a year",
                       bars->sessions_per_year);
    } else {
        (void)snprintf(report->session, sizeof report->session,
                       "%s, a day begins at %02d:%02d %.40s, %g a year",
                       calendar->round_the_clock ? "round the clock" : "with closures",
                       calendar->start_s / 3600, calendar->start_s / 60 % 60, zone,
                       bars->sessions_per_year);
    }
    return rc;
}

/* ---- gaps ------------------------------------------------------------------------------------ */

/* True if a whole Saturday or Sunday lies between bars t-1 and t. */
static bool spans_weekend(const ho_calendar *calendar, const ho_bars *bars, int64_t t)
{
    int64_t from = ho_floor_div(local_second(calendar->zone, bars->open_ns[t - 1]), DAY_S);
    int64_t to = ho_floor_div(local_second(calendar->zone, bars->open_ns[t]), DAY_S);
    for (int64_t day = from + 1; day < to && day < from + 8; ++day) {
        if (ho_weekday(day) >= 5) {
            return true;
        }
    }
    return false;
}

/* What lies between bars t-1 and t: HO_DIRT_COUNT for nothing. */
static ho_dirt classify(const ho_calendar *calendar, const ho_bars *bars, int64_t t)
{
    int64_t step = bars->open_ns[t] - bars->open_ns[t - 1];
    if (step <= bars->interval_ns) {
        return HO_DIRT_COUNT;
    }
    if (step > calendar->max_gap_ns) {
        return HO_DIRT_HOLE;
    }
    if (!calendar->round_the_clock &&
        (bars->interval_ns >= DAY_NS || bars->session[t] != bars->session[t - 1] ||
         spans_weekend(calendar, bars, t))) {
        return HO_DIRT_CLOSURE;
    }
    return HO_DIRT_GAP;
}

static int64_t missing_between(const ho_bars *bars, int64_t t)
{
    return (bars->open_ns[t] - bars->open_ns[t - 1] - 1) / bars->interval_ns;
}

static void move_bar(ho_bars *bars, int64_t to, int64_t from)
{
    int E = bars->extra_count;
    bars->open_ns[to] = bars->open_ns[from];
    bars->session[to] = bars->session[from];
    memmove(bars->ohlcv + HO_BAR_COLUMNS * to, bars->ohlcv + HO_BAR_COLUMNS * from,
            HO_BAR_COLUMNS * sizeof(double));
    if (bars->roll_jump) {
        bars->roll_jump[to] = bars->roll_jump[from];
    }
    if (bars->funding) {
        bars->funding[to] = bars->funding[from];
    }
    for (int e = 0; e < E; ++e) {
        bars->extra[to * E + e] = bars->extra[from * E + e];
    }
}

static bool widen(void **array, int64_t n, size_t size)
{
    void *grown = *array ? realloc(*array, (size_t)n * size) : NULL;
    if (grown) {
        *array = grown;
    }
    return grown || !*array;
}

/* Bars without trades for the minutes that are absent: all prices the last close, volume 0. From
 * the end backwards, in place. */
static ho_status fill_gaps(const ho_calendar *calendar, ho_bars *bars, int64_t added, ho_err *err)
{
    int64_t T = bars->count, n = T + added, to = n - 1;
    int E = bars->extra_count;
    if (!widen((void **)&bars->open_ns, n, sizeof(int64_t)) ||
        !widen((void **)&bars->ohlcv, n, HO_BAR_COLUMNS * sizeof(double)) ||
        !widen((void **)&bars->session, n, sizeof(int32_t)) ||
        !widen((void **)&bars->roll_jump, n, sizeof(double)) ||
        !widen((void **)&bars->funding, n, sizeof(double)) ||
        (E && !widen((void **)&bars->extra, n, (size_t)E * sizeof(double)))) {
        return ho_err_set(err, HO_ENOMEM, "no memory for %lld filled bars", (long long)added);
    }
    for (int64_t t = T - 1; t >= 0; --t) {
        bool gap = t > 0 && classify(calendar, bars, t) == HO_DIRT_GAP;
        int64_t missing = gap ? missing_between(bars, t) : 0;
        move_bar(bars, to--, t);
        for (int64_t m = missing; m > 0; --m, --to) {
            double close = bars->ohlcv[HO_BAR_COLUMNS * (t - 1) + HO_CLOSE];
            double *x = bars->ohlcv + HO_BAR_COLUMNS * to;
            bars->open_ns[to] = bars->open_ns[t - 1] + m * bars->interval_ns;
            x[HO_OPEN] = x[HO_HIGH] = x[HO_LOW] = x[HO_CLOSE] = close;
            x[HO_VOLUME] = 0.0;
            bars->session[to] = ho_calendar_day(calendar, bars->open_ns[to]) ==
                                        ho_calendar_day(calendar, bars->open_ns[to + 1])
                                    ? bars->session[to + 1]
                                    : bars->session[t - 1];
            if (bars->roll_jump) {
                bars->roll_jump[to] = 0.0;
            }
            if (bars->funding) {
                bars->funding[to] = 0.0;
            }
            for (int e = 0; e < E; ++e) {
                bars->extra[to * E + e] = bars->extra[(t - 1) * E + e];
            }
        }
    }
    bars->count = n;
    return HO_OK;
}

/* The table of what is left between bars, once gaps are filled. */
static ho_status mark_gaps(const ho_calendar *calendar, ho_bars *bars, ho_err *err)
{
    if (!(bars->gap = calloc((size_t)bars->count, 1))) {
        return ho_err_set(err, HO_ENOMEM, "no memory for the gaps");
    }
    for (int64_t t = 1; t < bars->count; ++t) {
        ho_dirt kind = classify(calendar, bars, t);
        bars->gap[t] = kind == HO_DIRT_CLOSURE ? HO_GAP_CLOSURE
                       : kind == HO_DIRT_GAP   ? HO_GAP_MISSING
                       : kind == HO_DIRT_HOLE  ? HO_GAP_HOLE
                                               : HO_GAP_NONE;
    }
    return HO_OK;
}

ho_status ho_calendar_gaps(const ho_data_options *options, const ho_calendar *calendar,
                           ho_bars *bars, ho_data_report *report, ho_err *err)
{
    ho_status rc = HO_OK;
    int64_t fillable = 0;
    report->segments = 1;
    if (options->gaps == HO_GAPS_SPLIT && !(bars->split = calloc((size_t)bars->count, 1))) {
        return ho_err_set(err, HO_ENOMEM, "no memory for the splits");
    }
    for (int64_t t = 1; t < bars->count; ++t) {
        ho_dirt kind = classify(calendar, bars, t);
        if (kind == HO_DIRT_COUNT) {
            continue;
        }
        int64_t step = bars->open_ns[t] - bars->open_ns[t - 1];
        ho_report_find(report, kind, 0, 0, bars->open_ns[t - 1]);
        if (step > report->longest_gap_ns) {
            report->longest_gap_ns = step;
            report->longest_gap_at_ns = bars->open_ns[t - 1];
        }
        if (kind == HO_DIRT_GAP) {
            fillable += missing_between(bars, t);
        }
        if (bars->split && kind == HO_DIRT_HOLE) {
            bars->split[t] = 1;
            ++report->segments;
        }
    }
    report->missing_bars = fillable;
    if (options->gaps == HO_GAPS_FILL && fillable > 0) {
        if (fillable > 20 * bars->count + 100000) {
            return ho_err_set(err, HO_EDATA,
                              "data.gaps = \"fill\" would add %lld bars to %lld; write a shorter "
                              "data.max_gap",
                              (long long)fillable, (long long)bars->count);
        }
        rc = fill_gaps(calendar, bars, fillable, err);
        report->filled = fillable;
    }
    if (rc == HO_OK && report->longest_gap_ns > 0) {
        rc = mark_gaps(calendar, bars, err);
    }
    return rc;
}
