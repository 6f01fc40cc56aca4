/* SPDX-License-Identifier: Apache-2.0
 * The session calendar of bars: which trading day a bar belongs to, how many there are in a year,
 * and what a stretch without bars is: a closure (night, weekend), a gap inside a session, or a
 * hole. Private to market/. */
#ifndef HO_MARKET_CALENDAR_H
#define HO_MARKET_CALENDAR_H

#include <stdbool.h>
#include <stdint.h>

#include "market/load.h"
#include "market/zone.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_calendar {
    const ho_zone *zone;
    bool round_the_clock; /* trades on weekends too */
    int start_s;          /* local second of the day at which a trading day begins */
    int end_s;            /* local second of its end; -1 not given */
    int64_t max_gap_ns;
} ho_calendar;

/* Finds or takes from the keys: round_the_clock, start, end, max_gap. open_ns [T] ascends. */
ho_status ho_calendar_find(const ho_data_options *options, const ho_zone *zone,
                           const int64_t *open_ns, int64_t T, int64_t interval_ns, ho_calendar *out,
                           ho_err *err);

/* Days since 1970 of the trading day to which a bar opening at ns belongs. Without weekend trading
 * Saturday and Sunday belong to Monday. */
int64_t ho_calendar_day(const ho_calendar *calendar, int64_t ns);

/* True if a bar opening at ns lies in [start, end); always true without an end. */
bool ho_calendar_is_inside(const ho_calendar *calendar, int64_t ns);

/* Fills bars->session. */
ho_status ho_calendar_sessions(const ho_calendar *calendar, ho_bars *bars, ho_err *err);

/* Sets sessions_per_year and the session part of the report. */
ho_status ho_calendar_year(const ho_data_options *options, const ho_calendar *calendar,
                           ho_bars *bars, ho_data_report *report, ho_err *err);

/* Counts closures, gaps and holes; fills gaps or marks splits as data.gaps says. */
ho_status ho_calendar_gaps(const ho_data_options *options, const ho_calendar *calendar,
                           ho_bars *bars, ho_data_report *report, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
