/* SPDX-License-Identifier: Apache-2.0
 * The market as the environment step sees it: pointers into arrays that all lanes share, on the
 * host or on the device. Filled by kernels/env/market_host.c or from a device copy of its tables.
 * Read only. Everything at index t is known at the close of bar t. */
#ifndef HO_KERNELS_ENV_MARKET_VIEW_H
#define HO_KERNELS_ENV_MARKET_VIEW_H

#include <stdint.h>

#include "kernels/env/config.h"
#include "kernels/shapes.h"

enum {
    HO_BAR_SESSION_END = 1, /* the next bar belongs to another session */
    HO_BAR_SPLIT_NEXT = 2,  /* nothing may cross from this bar to the next; also the last bar */
};

typedef struct ho_market_view {
    int64_t T;
    int32_t F;
    const double *bars;        /* [T, 5] */
    const float *features;     /* [T, F] */
    const double *mean_volume; /* [T] mean of the 20 volumes to t (fewer at the start) */
    const uint8_t *bar_flags;  /* [T] HO_BAR_* */
    const double *roll_jump;   /* [T], or NULL */
    const double *funding;     /* [T], or NULL */
    const double *n_log2_n;    /* [HO_DIVERSITY_MAX + 1] n * log2(n), 0 at 0 */
} ho_market_view;

#endif
