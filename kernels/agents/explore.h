/* SPDX-License-Identifier: Apache-2.0
 * Exploration: the epsilon schedule, held random actions (temporally extended epsilon-greedy,
 * Dabney 2020), the count bonus, and the noise function of NoisyNet (Fortunato 2018). */
#ifndef HO_KERNELS_AGENTS_EXPLORE_H
#define HO_KERNELS_AGENTS_EXPLORE_H

#include <stdint.h>

#include "kernels/agents/real.h"
#include "kernels/hd.h"

/* Linear from start to end over the first `share` of the epochs; epoch counts from 0. */
static inline HO_HD double ho_epsilon(double start, double end, double share, int32_t epoch,
                                      int32_t epochs)
{
    const double span = share * (double)epochs;
    const double x = span > 0.0 ? (double)epoch / span : 1.0;
    return x >= 1.0 ? end : start + (end - start) * x;
}

/* Bars a random action is held: geometric on 1, 2, ... with the given mean; u in [0, 1).
 * The coin of probability epsilon is tossed only while nothing is held. */
static inline HO_HD int32_t ho_hold_length(double mean, double u)
{
    if (mean <= 1.0) {
        return 1;
    }
    const double k = floor(log(1.0 - u) / log(1.0 - 1.0 / mean));
    return k < 1e6 ? 1 + (int32_t)k : 1000001;
}

/* Added to the value of a choice when acting; n counts its uses in earlier epochs. */
static inline HO_HD ho_real ho_count_bonus(double weight, int64_t n)
{
    return (ho_real)(weight / sqrt(1.0 + (double)n));
}

/* f(x) = sgn(x) sqrt|x| of factorised noise. */
static inline HO_HD ho_real ho_noise_shape(ho_real x)
{
    return x < 0 ? -ho_real_sqrt(-x) : ho_real_sqrt(x);
}

#endif
