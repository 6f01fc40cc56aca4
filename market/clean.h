/* SPDX-License-Identifier: Apache-2.0
 * From rows to bars: order, duplicates, dirt, bar length, label, resampling, sessions, gaps, rolls.
 * Each step is one function on ho_rows or ho_bars, called in this order by load.c. Private to
 * market/. */
#ifndef HO_MARKET_CLEAN_H
#define HO_MARKET_CLEAN_H

#include <stdbool.h>
#include <stdint.h>

#include "market/load.h"
#include "market/rows.h"
#include "market/zone.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What all steps share. */
typedef struct ho_clean {
    const ho_data_options *options;
    ho_rows *rows;
    ho_data_report *report;
    const ho_zone *session_zone;
    ho_err *err;
} ho_clean;

/* Ascending stamps: reverses a file that is newest first, sorts with data.sort, else refuses. */
ho_status ho_clean_order(ho_clean *s);

/* Identical rows dropped, conflicting ones by data.duplicates. Needs order. */
ho_status ho_clean_duplicates(ho_clean *s);

/* Nominal bar length from the stamps: rows->interval_ns, unless the format states it. */
ho_status ho_clean_interval(ho_clean *s);

/* Stamps that mark the close become stamps of the open. */
ho_status ho_clean_label(ho_clean *s);

/* Rows outside [data.start, data.end] leave. */
ho_status ho_clean_period(ho_clean *s);

/* Contradictions, prices <= 0, volume, spikes, ticks: counted; by policy. */
ho_status ho_clean_dirt(ho_clean *s);

/* A date or date and time in the zone (unless it has its own) as an instant; a date is its first
 * moment, or with `behind` the first one after it (a stamp: one nanosecond later). */
ho_status ho_moment_parse(const char *key, const char *text, const ho_zone *zone, bool behind,
                          int64_t *ns, ho_err *err);

/* "5m" in nanoseconds: s, m, h, d, w. HO_EINVAL names the key. */
ho_status ho_span_ns_parse(const char *key, const char *text, int64_t *ns, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
