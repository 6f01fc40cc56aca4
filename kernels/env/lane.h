/* SPDX-License-Identifier: Apache-2.0
 * What every episode of a lane (or every step of a backtest window) shares: settings, window,
 * random key, volatility table, and numbers derived from them once. */
#ifndef HO_KERNELS_ENV_LANE_H
#define HO_KERNELS_ENV_LANE_H

#include <math.h>
#include <stdint.h>

#include "kernels/env/config.h"
#include "kernels/hd.h"
#include "kernels/shapes.h"

typedef struct ho_env_lane {
    ho_env_config config;
    int32_t begin, end; /* bars [begin, end) */
    int32_t length;     /* L: steps of an episode; bars between anchors in evaluation */
    int32_t evaluation; /* one pass over the window */
    uint32_t key[2];
    const double *sigma;  /* [T] sigma_t of config.sigma_window */
    double equity_scale;  /* 1 / (sigma_ref * sqrt(L)), for p0 */
    double holding_scale; /* 1 / max_holding, or 1 / 240 when off, for p3 */
} ho_env_lane;

/* sigma: a host or device pointer, whichever the lane will be used with. evaluation: no ruin but at
 * equity 0, no random start, barriers never end the pass. */
static inline HO_HD ho_env_lane ho_env_lane_make(const ho_env_config *config, ho_window window,
                                                 int32_t length, int32_t evaluation,
                                                 const uint64_t rng_key[2], const double *sigma)
{
    ho_env_lane lane;
    lane.config = *config;
    if (evaluation) {
        lane.config.ruin_fraction = 0.0;
        lane.config.random_start = 0.0;
        lane.config.end_on_barrier = 0;
    }
    lane.begin = (int32_t)window.begin;
    lane.end = (int32_t)window.end;
    lane.length = length;
    lane.evaluation = evaluation;
    lane.key[0] = (uint32_t)rng_key[0];
    lane.key[1] = (uint32_t)rng_key[1];
    lane.sigma = sigma;
    lane.equity_scale = 1.0 / (config->sigma_ref * sqrt((double)length));
    lane.holding_scale = 1.0 / (double)(config->max_holding > 0 ? config->max_holding : 240);
    return lane;
}

#endif
