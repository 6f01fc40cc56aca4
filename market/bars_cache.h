/* SPDX-License-Identifier: Apache-2.0
 * Cleaned bars on disk beside the features: the coordinator, which parses a file to check it,
 * leaves them for the workers of its machine. Files are keyed by what shaped the bars, written
 * beside their place and renamed, and believed only with their checksum. */
#ifndef HO_MARKET_BARS_CACHE_H
#define HO_MARKET_BARS_CACHE_H

#include "market/bars.h"

#ifdef __cplusplus
extern "C" {
#endif

/* folder: as ho_features_load takes it. False: not there, or damaged (logged); *out is empty. */
bool ho_bars_cache_get(const char *folder, const char *key, ho_bars *out);
/* Unless it is there already. A failure is a line in the log. */
void ho_bars_cache_put(const char *folder, const char *key, const ho_bars *bars);

#ifdef __cplusplus
}
#endif
#endif
