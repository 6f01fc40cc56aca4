/* SPDX-License-Identifier: Apache-2.0
 * From the settings of a study to bars and features: which key becomes which option. Both programs
 * load a study's market through this, so that they see the same bars. */
#ifndef HO_MARKET_STUDY_DATA_H
#define HO_MARKET_STUDY_DATA_H

#include "market/cache.h"
#include "market/features.h"
#include "market/load.h"
#include "study/settings.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Loads the bars of [data] and [instrument] from these files (paths as fopen takes them, one for
 * each item of data.path). A fixed funding_bps_per_day becomes bars->funding where the file has
 * none. Fails as ho_bars_load does. */
ho_status ho_study_bars_load(const ho_settings *settings, const char *const *path, int path_count,
                             ho_bars *out, ho_data_report *report, ho_err *err);

/* The same of files whose sha256 [path_count] is known, by the user's cache of bars: taken from
 * there when no report is wanted, else put there. One file only; several are read. */
ho_status ho_study_bars_cached(const ho_settings *settings, const char *const *path,
                               const char *const *sha256, int path_count, ho_bars *out,
                               ho_data_report *report, ho_err *err);

/* The instrument's facts: what the study file says, else what the data say (DBN definitions), else
 * the setting's default. */
double ho_study_tick_size(const ho_settings *settings, const ho_bars *bars);
double ho_study_multiplier(const ho_settings *settings, const ho_bars *bars);

/* [features] on these bars, by the user's feature cache. Fails as ho_features_compute does. */
ho_status ho_study_features(const ho_settings *settings, const ho_bars *bars, ho_features *out,
                            ho_err *err);

/* The same by a cache folder (NULL: the user's; "": none), saying whether it was hit. */
ho_status ho_study_features_cached(const ho_settings *settings, const ho_bars *bars,
                                   const char *folder, ho_features *out, ho_cache_result *result,
                                   ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
