/* SPDX-License-Identifier: Apache-2.0
 * Sampling from a policy inside an experience or backtest block. */
#ifndef HO_CUDA_SAMPLE_BLOCK_CUH
#define HO_CUDA_SAMPLE_BLOCK_CUH

#include "kernels/agents/branches.h"
#include "kernels/agents/real.h"
#include "kernels/env/rng.h"

/* Counter of one decision's draws. */
typedef struct sample_at {
    const uint32_t *key;
    uint32_t step, slot, epoch;
    ho_rng_purpose purpose;
} sample_at;

/* Draws one choice of every branch from the softmax of its scores and returns the composed action,
 * on the first thread of a group of S (a power of two); `wanted` is the same in a group. weight:
 * room for exp(score - best), may be the scores' own. The first thread sums in output order, so
 * that the bits do not depend on S. All threads of the warp take part. */
template <int S>
static __device__ __forceinline__ int group_sample(const ho_branches &b, const sample_at &at,
                                                   const float *score, float *weight, bool wanted)
{
    const int sub = (int)threadIdx.x % S;
    int32_t choice[HO_BRANCHES_MAX] = {0, 0, 0};
#pragma unroll
    for (int d = 0; d < HO_BRANCHES_MAX; d++) { /* unrolled: choice stays in registers */
        if (d >= b.count) {
            break;
        }
        const float *x = score + b.first[d];
        float *w = weight + b.first[d], top = -INFINITY;
        for (int i = sub; i < b.size[d]; i += S) {
            top = fmaxf(top, x[i]);
        }
#pragma unroll
        for (int step = S / 2; step > 0; step >>= 1) {
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, step));
        }
        for (int i = sub; i < b.size[d]; i += S) {
            w[i] = ho_real_exp(x[i] - top);
        }
        __syncwarp();
        if (wanted && sub == 0) {
            const ho_rng4 r = ho_rng(at.key, at.step, at.slot, at.epoch, at.purpose, (uint32_t)d);
            double total = 0.0, below = 0.0;
            for (int i = 0; i < b.size[d]; i++) {
                total += (double)w[i];
            }
            total *= ho_rng_double(r.v[0], r.v[1]);
            int i = 0;
            for (; i < b.size[d] - 1; i++) {
                below += (double)w[i];
                if (total < below) {
                    break;
                }
            }
            choice[d] = i;
        }
    }
    __syncwarp(); /* the weights' place may be used again */
    return ho_branches_action(&b, choice);
}

#endif
