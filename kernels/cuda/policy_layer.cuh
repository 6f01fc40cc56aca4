/* SPDX-License-Identifier: Apache-2.0
 * Layers of the acting network on the tensor cores, by a block's first 256 threads
 * (policy_block.cuh says how they make up the network): of any size, of a known one, and of a known
 * one for 8 states, where latency is all. Their sums and the order of these are the same. */
#ifndef HO_CUDA_POLICY_LAYER_CUH
#define HO_CUDA_POLICY_LAYER_CUH

#include <cuda_bf16.h>
#include <stdint.h>

#include "kernels/agents/e4m3.h"
#include "kernels/cuda/policy.h"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/short_float.cuh"

enum {
    POLICY_THREADS = 256,
    POLICY_WARPS = 8,
    EARLY_PAIRS = 5,  /* of the second layer's steps, in which weights of the third are read */
    SCORE_PITCH = 56, /* floats a state; a row is reused for 12 ho_ratio */
    STATE_PITCH = 72, /* elements a state row: 16 bytes of skew for ldmatrix */
};

static __device__ __forceinline__ float policy_leaky(float x)
{
    return x > 0.0f ? x : 0.01f * x;
}

/* An element of a state or a hidden layer with fp8. */
typedef struct policy_e4m3 {
    __nv_bfloat16 carried;
} policy_e4m3;

/* x rounded to bf16, and on. */
static __device__ __forceinline__ float policy_round_e4m3(float x)
{
    return ho_e4m3_of(__bfloat162float(__float2bfloat16(x)), HO_E4M3_ACTIVATION);
}

/* Registers of the second layer: 2 tiles of 16 outputs a warp, 16 steps. */
typedef uint4 policy_held[2][16];

/* What of a layer is there before the barrier that its inputs need: the first weights, the biases;
 * of the first layer who reads which states, too. */
typedef struct policy_ahead {
    uint4 word[8];
    float2 bias[2];
    uint32_t thread, row;
} policy_ahead;

/* Reads weight word `word` (of 16 bytes) of a layer. */
template <bool SHARED>
static __device__ __forceinline__ uint4 policy_weight(const uint4 *weights, uint32_t shared,
                                                      int word)
{
    if (SHARED) {
        return shared_load16(shared + word * 16);
    }
    return __ldg(weights + word);
}

static __device__ __forceinline__ void policy_put_pair(__nv_bfloat16 *to, float y0, float y1)
{
    *(__nv_bfloat162 *)to = shorts_of(y0, y1);
}

static __device__ __forceinline__ void policy_put_pair(policy_e4m3 *to, float y0, float y1)
{
    *(__nv_bfloat162 *)to = shorts_of(policy_round_e4m3(y0), policy_round_e4m3(y1));
}

static __device__ __forceinline__ void policy_put_pair(float *to, float y0, float y1)
{
    to[0] = y0; /* float32 networks take other layers */
    to[1] = y1;
}

/* Stores a state's outputs `unit` and `unit + 1`. */
template <typename T, bool FINAL>
static __device__ __forceinline__ void policy_put(void *out, int state, int unit, float y0,
                                                  float y1, int pitch, int actions)
{
    if (!FINAL) {
        policy_put_pair((T *)out + state * pitch + unit, policy_leaky(y0), policy_leaky(y1));
        return;
    }
    float *to = (float *)out + state * pitch + unit;
    if (unit < actions) {
        to[0] = y0;
    }
    if (unit + 1 < actions) {
        to[1] = y1;
    }
}

/* One layer of any size for all states. Tiles warp, warp + 8, ... two at a time.
 * FINAL: floats to `out` (scores), else leaky-ReLU as T to `out` (hidden). */
template <typename T, int NT, bool SHARED, bool FINAL>
static __device__ __forceinline__ void
policy_layer(const ho_policy_layer &layer, const uint4 *weights, uint32_t shared, uint32_t in,
             int in_pitch, const float *bias, void *out, int out_pitch, int actions)
{
    constexpr int G = NT < 4 ? NT : 4; /* groups of 8 states at a time */
    const int warp = (int)threadIdx.x / 32, l = (int)threadIdx.x % 32, g = l / 4, t = l % 4;
    const int steps = layer.in / 16, tiles = layer.out / 16;
    for (int tile0 = warp; tile0 < tiles; tile0 += 2 * POLICY_WARPS) {
        const bool both = tile0 + POLICY_WARPS < tiles;
        const int tile[2] = {tile0, both ? tile0 + POLICY_WARPS : tile0};
#pragma unroll 1
        for (int n0 = 0; n0 < NT; n0 += G) {
            float acc[2][G][2][4];
#pragma unroll
            for (int j = 0; j < 2; j++) {
                const float2 b = *(const float2 *)(bias + tile[j] * 16 + 2 * g);
#pragma unroll
                for (int n = 0; n < G; n++) {
                    acc[j][n][0][0] = acc[j][n][0][1] = b.x;
                    acc[j][n][0][2] = acc[j][n][0][3] = b.y;
#pragma unroll
                    for (int c = 0; c < 4; c++) {
                        acc[j][n][1][c] = 0.0f;
                    }
                }
            }
#pragma unroll 2
            for (int pair = 0; pair < (steps + 1) / 2; pair++) {
                uint32_t x[G][4];
#pragma unroll
                for (int n = 0; n < G; n++) {
                    load_matrix4(
                        x[n],
                        in + (((n0 + n) * 8 + (l & 7)) * in_pitch + pair * 32 + (l >> 3) * 8) * 2);
                }
#pragma unroll
                for (int s = 0; s < 2; s++) {
                    const int step = pair * 2 + s;
                    if (step >= steps) {
                        break;
                    }
#pragma unroll
                    for (int j = 0; j < 2; j++) {
                        if (j == 1 && !both) {
                            break;
                        }
                        const uint4 a = policy_weight<SHARED>(weights, shared,
                                                              (tile[j] * steps + step) * 32 + l);
#pragma unroll
                        for (int n = 0; n < G; n++) {
                            mma_16x8x16(acc[j][n][s], a, x[n][2 * s], x[n][2 * s + 1]);
                        }
                    }
                }
            }
#pragma unroll
            for (int j = 0; j < 2; j++) {
                if (j == 1 && !both) {
                    break;
                }
#pragma unroll
                for (int n = 0; n < G; n++) {
#pragma unroll
                    for (int c = 0; c < 2; c++) {
                        const float y0 = acc[j][n][0][c] + acc[j][n][1][c];
                        const float y1 = acc[j][n][0][2 + c] + acc[j][n][1][2 + c];
                        const int state = (n0 + n) * 8 + 2 * t + c, unit = tile[j] * 16 + 2 * g;
                        policy_put<T, FINAL>(out, state, unit, y0, y1, out_pitch, actions);
                    }
                }
            }
        }
    }
}

/* Where a thread's weights of a layer of STEPS steps begin, in shared memory. */
template <int STEPS>
static __device__ __forceinline__ uint32_t policy_words(uint32_t thread, uint32_t weights)
{
    return weights + (thread / 32 * STEPS * 32 + thread % 32) * 16;
}

/* Its word `step` of tile j, WARPS tiles after the one before. */
template <int STEPS, int WARPS>
static __device__ __forceinline__ uint4 policy_word(uint32_t words, int j, int step)
{
    return shared_load16(words + (j * WARPS * STEPS + step) * 32 * 16);
}

/* ---- layers of 8 states ----
 * TW tiles each of WARPS warps, whose threads are numbered from 0 on; other warps do nothing. */

template <int WARPS> static __device__ __forceinline__ bool policy_works(uint32_t thread)
{
    return WARPS == POLICY_WARPS || thread < WARPS * 32;
}

/* Reads the biases of a layer. */
template <int TW, int WARPS>
static __device__ __forceinline__ void policy_read_biases(uint32_t thread, const float *bias,
                                                          policy_ahead &ahead)
{
    if (policy_works<WARPS>(thread)) {
#pragma unroll
        for (int j = 0; j < TW; j++) {
            ahead.bias[j] =
                *(const float2 *)(bias + (thread / 32 + j * WARPS) * 16 + thread % 32 / 4 * 2);
        }
    }
}

/* Reads words [from, to) of the 8 first ones of a layer's weights, in the order of their use.
 * words: policy_words. */
template <int STEPS, int TW, int WARPS>
static __device__ __forceinline__ void policy_read_words(uint32_t thread, uint32_t words, int from,
                                                         int to, policy_ahead &ahead)
{
    if (policy_works<WARPS>(thread)) {
#pragma unroll
        for (int i = from; i < to; i++) {
            const int j = i % TW, step = i / TW;
            ahead.word[j * (8 / TW) + step] = policy_word<STEPS, WARPS>(words, j, step);
        }
    }
}

/* Where a thread reads the states that begin at `in`. */
static __device__ __forceinline__ uint32_t policy_row(uint32_t thread, uint32_t in, uint32_t pitch)
{
    const uint32_t l = thread % 32;
    return in + ((l & 7) * pitch + (l >> 3) * 8) * 2;
}

/* One whose first weights and biases are there: the chain from one step to the next is what it
 * takes, so inputs are read some steps before they are multiplied, and a weight's place is filled
 * again as soon as it was used. The sums and their order are policy_layer's. row: policy_row.
 * early(i): called in each of a HELD layer's first EARLY_PAIRS pairs of steps. */
template <typename T, int STEPS, int TW, int WARPS, bool HELD, bool FINAL, typename Early>
static __device__ __forceinline__ void
policy_layer_few(uint32_t thread, uint32_t words, const policy_held &held, policy_ahead &ahead,
                 uint32_t row, void *out, int out_pitch, int actions, const Early &early)
{
    constexpr int PAIRS = STEPS / 2, RING = 8 / TW;
    constexpr int DEPTH = HELD ? PAIRS - EARLY_PAIRS : PAIRS < 4 ? PAIRS : 4;
    if (!policy_works<WARPS>(thread)) {
        return;
    }
    uint32_t x[DEPTH][4];
#pragma unroll
    for (int i = 0; i < DEPTH; i++) {
        load_matrix4(x[i], row + i * 64);
    }
    float acc[TW][2][4];
#pragma unroll
    for (int j = 0; j < TW; j++) {
        acc[j][0][0] = acc[j][0][1] = ahead.bias[j].x;
        acc[j][0][2] = acc[j][0][3] = ahead.bias[j].y;
        acc[j][1][0] = acc[j][1][1] = acc[j][1][2] = acc[j][1][3] = 0.0f;
    }
#pragma unroll
    for (int step = 0; step < STEPS; step++) {
        const uint32_t *b = x[step / 2 % DEPTH] + step % 2 * 2;
#pragma unroll
        for (int j = 0; j < TW; j++) {
            uint4 &next = ahead.word[j * RING + step % RING];
            mma_16x8x16(acc[j][step % 2], HELD ? held[HELD ? j : 0][HELD ? step : 0] : next, b[0],
                        b[1]);
            if (!HELD && step + RING < STEPS) {
                next = policy_word<STEPS, WARPS>(words, j, step + RING);
            }
        }
        if (step % 2 == 1 && step / 2 + DEPTH < PAIRS) {
            load_matrix4(x[step / 2 % DEPTH], row + (step / 2 + DEPTH) * 64);
            if (HELD) {
                early(step / 2);
            }
        }
    }
    const int warp = (int)(thread / 32), g = (int)(thread % 32 / 4), t = (int)(thread % 4);
#pragma unroll
    for (int j = 0; j < TW; j++) {
#pragma unroll
        for (int c = 0; c < 2; c++) {
            policy_put<T, FINAL>(out, 2 * t + c, (warp + j * WARPS) * 16 + 2 * g,
                                 acc[j][0][c] + acc[j][1][c], acc[j][0][2 + c] + acc[j][1][2 + c],
                                 out_pitch, actions);
        }
    }
}

/* The same layer with everything known: STEPS steps of 16 inputs, TW tiles of every working warp
 * (warps beyond the tiles idle). Unrolled whole, so that loads run ahead of the products; the sums
 * and their order are policy_layer's. Weights: `held`, else in shared memory. */
template <typename T, int NT, int STEPS, int TW, bool HELD, bool FINAL>
static __device__ __forceinline__ void
policy_layer_fast(int tiles, uint32_t weights, const policy_held &held, uint32_t in, int in_pitch,
                  const float *bias, void *out, int out_pitch, int actions)
{
    constexpr int G = NT < 4 ? NT : (HELD ? 2 : 4); /* groups of 8 states at a time */
    const int warp = (int)threadIdx.x / 32, l = (int)threadIdx.x % 32, g = l / 4, t = l % 4;
    if (tiles < TW * POLICY_WARPS && warp >= tiles) {
        return;
    }
    const uint32_t row = in + ((l & 7) * in_pitch + (l >> 3) * 8) * 2;
    float2 b[TW];
#pragma unroll
    for (int j = 0; j < TW; j++) {
        b[j] = *(const float2 *)(bias + (warp + j * POLICY_WARPS) * 16 + 2 * g);
    }
#pragma unroll 1
    for (int n0 = 0; n0 < NT; n0 += G) {
        float acc[TW][G][2][4];
#pragma unroll
        for (int j = 0; j < TW; j++) {
#pragma unroll
            for (int n = 0; n < G; n++) {
                acc[j][n][0][0] = acc[j][n][0][1] = b[j].x;
                acc[j][n][0][2] = acc[j][n][0][3] = b[j].y;
#pragma unroll
                for (int c = 0; c < 4; c++) {
                    acc[j][n][1][c] = 0.0f;
                }
            }
        }
#pragma unroll
        for (int pair = 0; pair < STEPS / 2; pair++) {
            uint32_t x[G][4];
#pragma unroll
            for (int n = 0; n < G; n++) {
                load_matrix4(x[n], row + ((n0 + n) * 8 * in_pitch + pair * 32) * 2);
            }
#pragma unroll
            for (int s = 0; s < 2; s++) {
#pragma unroll
                for (int j = 0; j < TW; j++) {
                    const int step = pair * 2 + s;
                    /* policy_word's address; of unsigned numbers the compiler makes other code,
                     * which was not timed */
                    const uint4 a =
                        HELD ? held[HELD ? j : 0][HELD ? step : 0]
                             : shared_load16(weights +
                                             (((warp + j * POLICY_WARPS) * STEPS + step) * 32 + l) *
                                                 16);
#pragma unroll
                    for (int n = 0; n < G; n++) {
                        mma_16x8x16(acc[j][n][s], a, x[n][2 * s], x[n][2 * s + 1]);
                    }
                }
            }
        }
#pragma unroll
        for (int j = 0; j < TW; j++) {
#pragma unroll
            for (int n = 0; n < G; n++) {
#pragma unroll
                for (int c = 0; c < 2; c++) {
                    const float y0 = acc[j][n][0][c] + acc[j][n][1][c];
                    const float y1 = acc[j][n][0][2 + c] + acc[j][n][1][2 + c];
                    policy_put<T, FINAL>(out, (n0 + n) * 8 + 2 * t + c,
                                         (warp + j * POLICY_WARPS) * 16 + 2 * g, y0, y1, out_pitch,
                                         actions);
                }
            }
        }
    }
}

#endif
