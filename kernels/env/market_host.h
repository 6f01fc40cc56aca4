/* SPDX-License-Identifier: Apache-2.0
 * The market on the host: a copy of what the caller gave and the float64 tables computed from it
 * once, which both backends use unchanged, so that their bits agree. */
#ifndef HO_KERNELS_ENV_MARKET_HOST_H
#define HO_KERNELS_ENV_MARKET_HOST_H

#include <stdint.h>

#include "kernels/env/market_view.h"
#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ho_market_data;

enum { HO_SIGMA_MIN_RETURNS = 20, HO_IMPACT_VOLUME_BARS = 20 };

/* sigma_t of one window length. */
typedef struct ho_sigma_table {
    int32_t window;
    double *value; /* [T] */
} ho_sigma_table;

typedef struct ho_market_host {
    ho_market_view view; /* points into the arrays below */
    int64_t T;
    int32_t F;
    int64_t warmup;
    int64_t interval_ns;
    int has_volume;
    double *bars;        /* [T, 5] */
    float *features;     /* [T, F] */
    int64_t *open_ns;    /* [T] */
    int32_t *session;    /* [T] */
    double *roll_jump;   /* [T] or NULL */
    double *funding;     /* [T] or NULL */
    double *given_sigma; /* [T] or NULL */
    double *mean_volume; /* [T] */
    uint8_t *bar_flags;  /* [T] */
    int32_t
        *next_split;  /* [T] the first bar from t on that a split follows; the last one at most */
    double *n_log2_n; /* [HO_DIVERSITY_MAX + 1] */
    int sigma_count;
    ho_sigma_table *sigma; /* [sigma_count] */
} ho_market_host;

/* HO_EINVAL: T < 2 or beyond int32, NULL, NaN or inf in a bar or in a feature from `warmup` on (err
 * names bar and column), sessions that decrease. HO_ENOMEM. */
ho_status ho_market_host_create(const struct ho_market_data *data, ho_market_host **out,
                                ho_err *err);
void ho_market_host_destroy(ho_market_host **host);

/* sigma_t [T] of a window length: deviation (ddof 1) of the last `window` simple returns to t, from
 * 20 returns on; carried where a return is not defined; 0 before. Computed at the first call and
 * kept until the market goes. With a given sigma that one, whatever the window. Not thread safe. */
ho_status ho_market_host_sigma(ho_market_host *host, int32_t window, const double **out,
                               ho_err *err);

/* HO_EINVAL with `what` in the text: outside the market, shorter than 2 bars, or a split inside. */
ho_status ho_market_host_check_window(const ho_market_host *host, const char *what,
                                      ho_window window, int splits_allowed, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
