/* SPDX-License-Identifier: Apache-2.0
 * Which transitions an update draws: uniform over the ring, counter-based, so that a lane draws the
 * same rows whatever shares the GPU and on either backend. */
#ifndef HO_CUDA_SAMPLING_CUH
#define HO_CUDA_SAMPLING_CUH

#include "kernels/cuda/lane_device.h"
#include "kernels/env/rng.h"

/* Ring slot of row `row` of update `update` (within the epoch). */
static __device__ __forceinline__ int64_t ho_sample_slot(const ho_lane_device *lane, int update,
                                                         int row)
{
    const ho_rng4 r = ho_rng(lane->env.key, (uint32_t)update, (uint32_t)row, (uint32_t)lane->epoch,
                             HO_RNG_REPLAY, 0);
    return ho_rng_below(r.v[0], (uint32_t)lane->replay_fill);
}

#endif
