/* SPDX-License-Identifier: Apache-2.0
 * See resample.h. */
#include "market/resample.h"

#include "kernels/shapes.h"
#include "market/clean.h"
#include "market/rows.h"

static const int64_t SECOND_NS = 1000000000LL;
static const int64_t DAY_NS = 86400LL * 1000000000LL;

/* Which bar of the result a bar belongs to, and when that one begins. */
typedef struct bucket {
    int64_t number, start_ns;
} bucket;

typedef struct resampler {
    const ho_calendar *calendar;
    ho_bars *bars;
    int64_t target_ns;
    int64_t anchor_ns; /* offset of the zone at the present session's first bar */
} resampler;

static bucket bucket_of(const resampler *s, int64_t t)
{
    const ho_bars *bars = s->bars;
    int64_t ns = bars->open_ns[t];
    if (s->target_ns >= 7 * DAY_NS) {
        int64_t day = ho_calendar_day(s->calendar, ns) + 3; /* weeks begin on Monday */
        return (bucket){ho_floor_div(day, s->target_ns / DAY_NS), ns};
    }
    if (s->target_ns >= DAY_NS) {
        return (bucket){bars->session[t] / (s->target_ns / DAY_NS), ns};
    }
    int64_t number = ho_floor_div(ns + s->anchor_ns, s->target_ns);
    return (bucket){number, number * s->target_ns - s->anchor_ns};
}

static void begin_bar(ho_bars *bars, int64_t to, int64_t from, int64_t start_ns)
{
    int E = bars->extra_count;
    /* after a change of anchor two bars may share a start: the later one begins at its own */
    bool later = to == 0 || start_ns > bars->open_ns[to - 1];
    bars->open_ns[to] = later ? start_ns : bars->open_ns[from];
    for (int k = 0; k < HO_BAR_COLUMNS; ++k) {
        bars->ohlcv[HO_BAR_COLUMNS * to + k] = bars->ohlcv[HO_BAR_COLUMNS * from + k];
    }
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

static void extend_bar(ho_bars *bars, int64_t to, int64_t from)
{
    double *a = bars->ohlcv + HO_BAR_COLUMNS * to;
    const double *b = bars->ohlcv + HO_BAR_COLUMNS * from;
    int E = bars->extra_count;
    if (bars->roll_jump && bars->roll_jump[from] != 0.0) {
        for (int k = HO_OPEN; k <= HO_CLOSE; ++k) {
            a[k] += bars->roll_jump[from]; /* the whole bar in terms of the new contract */
        }
        bars->roll_jump[to] += bars->roll_jump[from];
    }
    a[HO_HIGH] = b[HO_HIGH] > a[HO_HIGH] ? b[HO_HIGH] : a[HO_HIGH];
    a[HO_LOW] = b[HO_LOW] < a[HO_LOW] ? b[HO_LOW] : a[HO_LOW];
    a[HO_CLOSE] = b[HO_CLOSE];
    a[HO_VOLUME] += b[HO_VOLUME];
    if (bars->funding) {
        bars->funding[to] += bars->funding[from];
    }
    for (int e = 0; e < E; ++e) {
        bars->extra[to * E + e] = bars->extra[from * E + e];
    }
}

/* Seconds behind the session's start at which bar t opens. */
static int64_t into_session_s(const resampler *s, int64_t ns)
{
    int64_t utc_s = ho_floor_div(ns, SECOND_NS);
    int64_t local = utc_s + ho_zone_offset(s->calendar->zone, utc_s) - s->calendar->start_s;
    return local - ho_floor_div(local, 86400) * 86400;
}

/* True if the last bar is over: the source reaches its end, or (a day) the end of the session
 * before it. last_ns: opening of the last source bar; end_s: of the last bar of the session before.
 */
static bool is_over(const resampler *s, int64_t start_ns, int64_t last_ns, int64_t source_ns,
                    int64_t session_end_s)
{
    if (s->target_ns < DAY_NS) {
        return last_ns + source_ns >= start_ns + s->target_ns;
    }
    if (s->target_ns > DAY_NS) {
        return false; /* whether a week is over shows only in the next */
    }
    return session_end_s >= 0 && into_session_s(s, last_ns) >= session_end_s;
}

static ho_status check_target(const ho_data_options *options, const ho_bars *bars, int64_t ns,
                              ho_err *err)
{
    int64_t source = bars->interval_ns;
    if (ns < source) {
        return ho_err_set(err, HO_EDATA,
                          "data.bar = \"%s\" is shorter than the file's bars of %g s", options->bar,
                          (double)source / 1e9);
    }
    if (source > 1 && (ns < DAY_NS ? ns % source != 0 : source > DAY_NS && ns % source != 0)) {
        return ho_err_set(err, HO_EDATA,
                          "data.bar = \"%s\" is not a multiple of the file's bars of %g s",
                          options->bar, (double)source / 1e9);
    }
    if (ns < DAY_NS ? DAY_NS % ns != 0
                    : ns % DAY_NS != 0 || (ns > 7 * DAY_NS && ns % (7 * DAY_NS))) {
        return ho_err_set(err, HO_EINVAL,
                          "data.bar = \"%s\" must divide a day, or be days or weeks", options->bar);
    }
    return HO_OK;
}

ho_status ho_resample(const ho_data_options *options, const ho_calendar *calendar, ho_bars *bars,
                      ho_data_report *report, ho_err *err)
{
    resampler s = {.calendar = calendar, .bars = bars};
    int64_t to = -1, source_ns = bars->interval_ns, session_end_s = -1, last_ns = 0;
    bucket now = {0, 0};
    if (!options->bar[0]) {
        return HO_OK;
    }
    ho_status rc = ho_span_ns_parse("data.bar", options->bar, &s.target_ns, err);
    if (rc != HO_OK || s.target_ns == source_ns ||
        (rc = check_target(options, bars, s.target_ns, err)) != HO_OK) {
        return rc;
    }
    int32_t session = -1;
    for (int64_t t = 0; t < bars->count; ++t) {
        bool new_session = t == 0 || bars->session[t] != session;
        if (new_session) {
            int64_t utc_s = ho_floor_div(bars->open_ns[t], SECOND_NS);
            s.anchor_ns = (int64_t)ho_zone_offset(calendar->zone, utc_s) * SECOND_NS;
            session_end_s = t > 0 ? into_session_s(&s, last_ns) : -1;
            session = bars->session[t];
        }
        bucket next = bucket_of(&s, t);
        last_ns = bars->open_ns[t];
        if (t == 0 || next.number != now.number || (new_session && s.target_ns < DAY_NS)) {
            begin_bar(bars, ++to, t, next.start_ns);
            bars->session[to] = s.target_ns < DAY_NS ? session : (int32_t)to;
            now = next;
        } else {
            extend_bar(bars, to, t);
        }
    }
    bars->count = to + 1;
    bars->interval_ns = s.target_ns;
    if (!is_over(&s, bars->open_ns[to], last_ns, source_ns, session_end_s)) {
        --bars->count;
        ho_report_note(report, false, "the last bar of %s is left out: it is not over in the file",
                       options->bar);
    }
    if (bars->count == 0) {
        return ho_err_set(err, HO_EDATA, "%s: is shorter than one bar of data.bar = \"%s\"",
                          options->path[0], options->bar);
    }
    return HO_OK;
}
