/* SPDX-License-Identifier: Apache-2.0
 * The market features of spec/features.md, in one table. Column t uses bars <= t only; values are
 * dimensionless, clipped to +-5, float32. HO_FEATURES_VERSION enters the cache key: raise it with
 * every change that can alter a value.
 *
 * Notation: r log return (across a roll: from the previous close plus the jump), c h l o v the
 * bar, mean_n and sd_n over the last n bars (sd divides by n), EMA_n exponential with span n, W =
 * features.long_window, z_n(x) = (x - mean_n) / sd_n. x / 0 = 0. A logarithm that does not exist
 * gives 0; inside a rolling window it stands at its last value. Price differences are taken on
 * prices with earlier roll jumps carried forward. A window starts anew behind a split. */
#ifndef HO_MARKET_FEATURES_H
#define HO_MARKET_FEATURES_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/shapes.h"
#include "market/bars.h"
#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HO_FEATURES_VERSION = 1, HO_FEATURE_NAME = 64 };

typedef struct ho_feature_run ho_feature_run; /* features.c: series shared by the columns */

/* Writes rows [begin, end) of one column: out[(t - begin) * stride]. Called block by block in
 * order; arg is the row's number (a window, or which of two twins). */
typedef void ho_feature_fn(ho_feature_run *run, int arg, int64_t begin, int64_t end, float *out,
                           int stride);

typedef struct ho_feature {
    const char *name;
    const char *formula;
    ho_feature_fn *fn;
    int arg;
    int window; /* bars before the first usable row; 0 stands for W */
} ho_feature;

/* The table, in column order. */
extern const ho_feature ho_feature_table[HO_MARKET_FEATURES];

typedef struct ho_feature_options {
    const char *const *use; /* features.use: names of the table; borrowed */
    int use_count;          /* 0: all, in table order */
    int extra_delay;        /* features.extra_delay: bars by which bars->extra columns lag */
    int64_t long_window;    /* features.long_window; 0: 1440 below an hour, else 240 */
} ho_feature_options;

/* All columns, extra_delay 1, long_window by bar length. */
void ho_feature_options_defaults(ho_feature_options *options);

typedef struct ho_features {
    int64_t T;
    int F;                         /* columns: those in use, then bars->extra */
    int64_t warmup;                /* rows [0, warmup) must not be traded */
    float *values;                 /* [T, F]; read-only when it came from the cache */
    char (*name)[HO_FEATURE_NAME]; /* [F] */
    uint8_t *split; /* [T] bars->split, widened over the warm-up behind each split, so that no
                     * window of two bars or more lies in it; NULL without splits. Give this one
                     * to the backend and to the folds. */
    char key[65];   /* of the cache: data, version and settings, hex */
    void *map;      /* the mapped cache file, or NULL; private */
    size_t map_bytes;
} ho_features;

/* Column of the name in the table, or -1. */
int ho_feature_find(const char *name);

/* Computes the tensor; O(T) for fixed windows. HO_EINVAL: unknown name (err gives the nearest),
 * long_window out of [2, 1000000], more than 64 - HO_PORTFOLIO_FEATURES columns. HO_EDATA: not
 * more bars than the warm-up. */
ho_status ho_features_compute(const ho_bars *bars, const ho_feature_options *options,
                              ho_features *out, ho_err *err);

/* Frees or unmaps, and clears. Accepts NULL and half-built ones. */
void ho_features_free(ho_features *features);

#ifdef __cplusplus
}
#endif
#endif
