/* SPDX-License-Identifier: Apache-2.0
 * The forward model inside an experience block: weights in shared memory, a slot's prediction by
 * its group of S threads. Every unit sums its inputs in order and one thread the squared errors, so
 * the bits depend on neither S nor the block, and are the CPU backend's where that has fused
 * multiply-adds. */
#ifndef HO_CUDA_CURIOSITY_BLOCK_CUH
#define HO_CUDA_CURIOSITY_BLOCK_CUH

#include "kernels/agents/curiosity_net.h"
#include "kernels/cuda/device_net.h"

/* In shared memory; inputs run first, so that neighbouring threads read neighbouring units. */
template <int E> struct curiosity_block {
    float w1[HO_CURIOSITY_IN][HO_CURIOSITY_HIDDEN];
    float b1[HO_CURIOSITY_HIDDEN];
    float w2[HO_CURIOSITY_HIDDEN][HO_CURIOSITY_OUT];
    float b2[HO_CURIOSITY_OUT];
    float hidden[E][HO_CURIOSITY_HIDDEN];
};

/* By all threads of the block; the caller has a barrier after it. */
template <int E>
static __device__ __forceinline__ void curiosity_load(curiosity_block<E> *c, const float *parameter)
{
    for (int i = (int)threadIdx.x; i < HO_CURIOSITY_SIZE; i += (int)blockDim.x) {
        const float x = parameter[i];
        if (i < HO_CURIOSITY_B1) {
            c->w1[i % HO_CURIOSITY_IN][i / HO_CURIOSITY_IN] = x;
        } else if (i < HO_CURIOSITY_W2) {
            c->b1[i - HO_CURIOSITY_B1] = x;
        } else if (i < HO_CURIOSITY_B2) {
            const int at = i - HO_CURIOSITY_W2;
            c->w2[at % HO_CURIOSITY_HIDDEN][at / HO_CURIOSITY_HIDDEN] = x;
        } else {
            c->b2[i - HO_CURIOSITY_B2] = x;
        }
    }
}

/* Mean squared error of the prediction for (state, category) against the next state, on the group's
 * first thread; 0 where `wanted` is 0, which is the same in a group. state, next: market rows.
 * error: HO_CURIOSITY_OUT floats of the group's own. All threads of the warp take part. */
template <int E, int S>
static __device__ __forceinline__ float group_surprise(curiosity_block<E> *c, int e,
                                                       const float *state, const float *next,
                                                       int category, float *error, bool wanted)
{
    const int sub = (int)threadIdx.x % S;
    float *hidden = c->hidden[e];
    for (int j = sub; wanted && j < HO_CURIOSITY_HIDDEN; j += S) {
        float y = 0.0f;
        for (int i = 0; i < HO_CURIOSITY_FEATURES; i++) {
            y = fmaf(state[i], c->w1[i][j], y);
        }
        y = y + c->w1[HO_CURIOSITY_FEATURES + category][j] + c->b1[j];
        hidden[j] = y > 0.0f ? y : y * 0.01f;
    }
    __syncwarp();
    for (int o = sub; wanted && o < HO_CURIOSITY_OUT; o += S) {
        float y = 0.0f;
        for (int j = 0; j < HO_CURIOSITY_HIDDEN; j++) {
            y = fmaf(hidden[j], c->w2[j][o], y);
        }
        error[o] = y + c->b2[o] - next[o];
    }
    __syncwarp();
    float sum = 0.0f;
    for (int o = 0; wanted && sub == 0 && o < HO_CURIOSITY_OUT; o++) {
        sum += error[o] * error[o];
    }
    __syncwarp(); /* the errors are read before their place is used again */
    return sum / HO_CURIOSITY_OUT;
}

#endif
