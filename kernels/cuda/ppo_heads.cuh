/* SPDX-License-Identifier: Apache-2.0
 * What PPO's kernels share. The policy and value heads of one row, by one warp: thread l holds the
 * outputs l and l + 32, in every row alike, so a row's sums have one order wherever it lies. All
 * threads of the warp call.
 */
#ifndef HO_CUDA_PPO_HEADS_CUH
#define HO_CUDA_PPO_HEADS_CUH

#include "kernels/agents/branches.h"
#include "kernels/agents/real.h"
#include "kernels/cuda/ppo.h"
#include "kernels/cuda/row_ops.cuh"
#include "kernels/cuda/sampling.cuh"

enum { PPO_SLOTS = 2 /* outputs a thread holds: 64 in all */ };

/* The first row of lane k in arrays of the rollout. */
static __device__ __forceinline__ size_t ppo_rollout_at(const ho_ppo_view &v, int k)
{
    return (size_t)k * v.experience.steps * v.experience.episodes;
}

/* Raw outputs of row `row` of lane k's batch. */
static __device__ __forceinline__ const float *ppo_row(const ho_learn_view &v, int k, int row)
{
    return v.output + ((size_t)k * v.batch + row) * v.net.layer[HO_DEVICE_LAYERS - 1].out;
}

static __device__ __forceinline__ float ppo_row_value(const ho_learn_view &v, int k, int row)
{
    return ppo_row(v, k, row)[v.net.actions];
}

static __device__ __forceinline__ bool ppo_in_branch(const ho_branches &b, int d, int output)
{
    return output >= b.first[d] && output < b.first[d] + b.size[d];
}

/* log p of the thread's outputs, each normalised over its branch; 0 beyond the policy's. */
static __device__ __forceinline__ void ppo_row_log_p(const ho_learn_view &v, int k, int row,
                                                     float (&log_p)[PPO_SLOTS], float *value)
{
    const int l = (int)threadIdx.x & 31;
    const float *out = ppo_row(v, k, row);
    const ho_branches &b = v.net.branches;
    float x[PPO_SLOTS];
#pragma unroll
    for (int s = 0; s < PPO_SLOTS; s++) {
        x[s] = l + 32 * s < v.net.actions ? out[l + 32 * s] : 0.0f;
        log_p[s] = 0.0f;
    }
    for (int d = 0; d < b.count; d++) {
        float top = -INFINITY, sum = 0.0f;
#pragma unroll
        for (int s = 0; s < PPO_SLOTS; s++) {
            top = ppo_in_branch(b, d, l + 32 * s) ? fmaxf(top, x[s]) : top;
        }
        top = warp_max(top);
#pragma unroll
        for (int s = 0; s < PPO_SLOTS; s++) {
            sum += ppo_in_branch(b, d, l + 32 * s) ? ho_real_exp(x[s] - top) : 0.0f;
        }
        const float shift = top + ho_real_log(warp_sum(sum));
#pragma unroll
        for (int s = 0; s < PPO_SLOTS; s++) {
            log_p[s] = ppo_in_branch(b, d, l + 32 * s) ? x[s] - shift : log_p[s];
        }
    }
    *value = out[v.net.actions];
}

/* log p of a composed action, summed over branches in order, on every thread. */
static __device__ __forceinline__ float ppo_row_taken(const ho_branches &b,
                                                      const float (&log_p)[PPO_SLOTS], int action)
{
    int32_t choice[HO_BRANCHES_MAX];
    ho_branches_choice(&b, action, choice);
    float sum = 0.0f;
    for (int d = 0; d < b.count; d++) {
        const int output = b.first[d] + choice[d];
        sum += __shfl_sync(0xffffffffu, output >= 32 ? log_p[1] : log_p[0], output & 31);
    }
    return sum;
}

#endif
