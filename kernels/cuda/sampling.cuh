/* SPDX-License-Identifier: Apache-2.0
 * Which lanes and which transitions a pass over a batch takes. Counter-based, so that a lane draws
 * the same rows whatever shares the GPU and on either backend. */
#ifndef HO_CUDA_SAMPLING_CUH
#define HO_CUDA_SAMPLING_CUH

#include "kernels/cuda/lane_device.h"
#include "kernels/cuda/learn.h"
#include "kernels/env/rng.h"

/* An update takes lanes that learn; the pass over new experience those that have some here. */
static __device__ __forceinline__ bool ho_lane_takes_part(const ho_learn_view &v, int k)
{
    const ho_lane_device *lane = &v.lane[k];
    return lane->guard == 0 &&
           (v.first_new < 0 ? lane->learning != 0 : lane->active && v.first_new < lane->stored);
}

/* Uniform replay: the ring slot of row `row` of update `update` (within the epoch). */
static __device__ __forceinline__ int64_t ho_sample_slot(const ho_lane_device *lane, int update,
                                                         int row)
{
    const ho_rng4 r = ho_rng(lane->env.key, (uint32_t)update, (uint32_t)row, (uint32_t)lane->epoch,
                             HO_RNG_REPLAY, 0);
    return ho_rng_below(r.v[0], (uint32_t)lane->replay_fill);
}

/* The ring slot of a row of the pass; rows past the last new transition repeat it. */
static __device__ __forceinline__ int64_t ho_row_slot(const ho_learn_view &v, int k, int update,
                                                      int row)
{
    const ho_lane_device *lane = &v.lane[k];
    if (v.first_new >= 0) {
        const int i = v.first_new + row;
        return ho_new_slot(lane, i < lane->stored ? i : lane->stored - 1, v.replay_capacity);
    }
    return v.priority.shape.kind == HO_REPLAY_UNIFORM ? ho_sample_slot(lane, update, row)
                                                      : v.priority.index[(size_t)k * v.batch + row];
}

#endif
