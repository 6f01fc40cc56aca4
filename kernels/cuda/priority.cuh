/* SPDX-License-Identifier: Apache-2.0
 * What kernels that compute td errors need of prioritised replay: the leaf a td error becomes, and
 * the weight of a drawn row. */
#ifndef HO_CUDA_PRIORITY_CUH
#define HO_CUDA_PRIORITY_CUH

#include "kernels/agents/priority.h"
#include "kernels/cuda/learn.h"
#include "kernels/cuda/sampling.cuh"

static __device__ __forceinline__ uint32_t ho_leaf_of(const ho_lane_device *lane, int kind,
                                                      float td)
{
    return kind == HO_REPLAY_PER ? ho_priority_leaf((double)td, lane->agent.per_alpha)
                                 : __float_as_uint(fabsf(td));
}

/* The largest weight of a lane's batch, on every thread of the warp; 1 with uniform replay. */
static __device__ __forceinline__ float ho_largest_weight(const ho_learn_view &v, int k)
{
    if (v.priority.shape.kind == HO_REPLAY_UNIFORM || v.first_new >= 0) {
        return 1.0f;
    }
    const int parts = v.priority.shape.draw_parts;
    float largest = 0.0f;
    for (int i = (int)threadIdx.x % 32; i < parts; i += 32) {
        largest = fmaxf(largest, v.priority.weight_part[(size_t)k * parts + i]);
    }
    for (int step = 16; step > 0; step >>= 1) {
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, step));
    }
    return largest;
}

/* The weight of a row's loss, by a thread alone. */
static __device__ __forceinline__ float ho_row_weight_alone(const ho_learn_view &v, int k, int row)
{
    if (v.priority.shape.kind == HO_REPLAY_UNIFORM) {
        return 1.0f;
    }
    const int parts = v.priority.shape.draw_parts;
    float largest = 0.0f;
    for (int i = 0; i < parts; i++) {
        largest = fmaxf(largest, v.priority.weight_part[(size_t)k * parts + i]);
    }
    return v.priority.weight[(size_t)k * v.batch + row] / largest;
}

/* The weight of a row's loss. */
static __device__ __forceinline__ float ho_row_weight(const ho_learn_view &v, int k, int row,
                                                      float largest)
{
    return v.priority.shape.kind == HO_REPLAY_UNIFORM || v.first_new >= 0
               ? 1.0f
               : v.priority.weight[(size_t)k * v.batch + row] / largest;
}

/* Keeps a row's td error: of an update for ho_priority_write, of new experience as its leaf. */
static __device__ __forceinline__ void ho_keep_td(const ho_learn_view &v, int k, int row, float td)
{
    const ho_priority_shape &s = v.priority.shape;
    const ho_lane_device *lane = &v.lane[k];
    if (s.kind == HO_REPLAY_UNIFORM) {
        return;
    }
    if (v.first_new < 0) {
        v.priority.td[(size_t)k * v.batch + row] = td;
    } else if (v.first_new + row < lane->stored) {
        const int32_t slot = ho_new_slot(lane, v.first_new + row, v.replay_capacity);
        v.priority.leaf[(size_t)k * s.leaves + slot] = ho_leaf_of(lane, s.kind, td);
    }
}

#endif
