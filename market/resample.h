/* SPDX-License-Identifier: Apache-2.0
 * Longer bars of shorter ones (data.bar). A bar of the result covers [open, open + interval) and
 * holds only bars that open inside; it stands at its open and may be used at its close like any
 * other bar. The last one is left out unless it is known to be over. Private to market/. */
#ifndef HO_MARKET_RESAMPLE_H
#define HO_MARKET_RESAMPLE_H

#include "market/calendar.h"
#include "market/load.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In place. Below a day the length must divide a day, and bars begin at its multiples behind
 * midnight of the session zone; "1d" is a session, "1w" the sessions of a week from Monday. No
 * bar holds two sessions (but for days and weeks). A roll inside is moved to the bar's start. */
ho_status ho_resample(const ho_data_options *options, const ho_calendar *calendar, ho_bars *bars,
                      ho_data_report *report, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
