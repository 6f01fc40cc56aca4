/* SPDX-License-Identifier: Apache-2.0
 * The feature cache: tensors on disk, keyed by what they were made of, mapped into memory.
 *
 * A file is <data>-<key>.features, where <data> begins the sha256 of the data file and <key> is
 * the hash of everything that shapes the tensor: data, [data] settings, the bars themselves,
 * feature table version, columns, windows. It is written beside its place and renamed (so it is
 * whole or absent), and its checksums are verified at every load. Deleting files is always safe. */
#ifndef HO_MARKET_CACHE_H
#define HO_MARKET_CACHE_H

#include <stdbool.h>
#include <stddef.h>

#include "market/features.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ho_cache_result {
    HO_CACHE_OFF,    /* no folder */
    HO_CACHE_HIT,    /* mapped from the cache */
    HO_CACHE_STORED, /* computed, and stored */
    HO_CACHE_FAILED, /* computed, but could not be stored (logged) */
} ho_cache_result;

/* The user's folder: $HYPEROPT_FEATURE_CACHE, else $XDG_CACHE_HOME/hyperopt/features, else
 * ~/.cache/hyperopt/features. HYPEROPT_FEATURE_CACHE=off, or none of them: "" and false. */
bool ho_cache_folder(char *out, size_t size);

/* As ho_features_compute, but from the cache when it is there; else computed and stored. folder:
 * NULL for the user's, "" for none. A damaged file is logged and made again; a folder that cannot
 * be written costs a log line, never the result. Sets out->key; result may be NULL. */
ho_status ho_features_load(const ho_bars *bars, const ho_feature_options *options,
                           const char *folder, ho_features *out, ho_cache_result *result,
                           ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
