/* SPDX-License-Identifier: Apache-2.0
 * The acting network inside one block: advantages of E states, E = 8 * NT, from shared memory to
 * shared memory. The block's first 256 threads; barrier 1 separates the layers.
 *
 * bf16 (mma.sync): outputs are the M rows of the product, states its N columns, so that 8 states
 * already fill a tile. Every output sums even and odd steps of 16 inputs in two chains, added at
 * the end: the same bits for every NT, hence for any number of states in a block.
 * Weights lie in shared memory as far as it reaches (policy_plan), else they are read through L2;
 * with HELD the second layer of a 256 x 256 trunk stays in registers over all steps, and few states
 * have a layer's first weights read before the barrier that its inputs need.
 * fp8: the same products of E4M3 inputs carried as bf16 (kernels/agents/e4m3.h): weights are packed
 * rounded, states and hidden outputs are rounded as they are written.
 * float32: each thread owns outputs and sums inputs in order.
 * Noisy layers: in float32 whatever the precision, w + sigma * out * in as on the CPU.
 * C51: the last layer's outputs go to `raw`, and from there the atoms' means to the scores. */
#ifndef HO_CUDA_POLICY_BLOCK_CUH
#define HO_CUDA_POLICY_BLOCK_CUH

#include <stdint.h>

#include "kernels/agents/value.h"
#include "kernels/cuda/noise.cuh"
#include "kernels/cuda/policy_layer.cuh"

/* Where things lie in a block's dynamic shared memory. Made on the host. */
typedef struct policy_plan {
    int32_t weights;                    /* bytes of resident weights, from the start */
    int32_t resident[HO_DEVICE_LAYERS]; /* byte offset, -1: read from global memory */
    int32_t bias;                       /* all biases */
    int32_t state;                      /* [rows][E][STATE_PITCH] of T, of steps in turn */
    int32_t state_bytes;                /* of one step */
    int32_t hidden[2];                  /* [E][hidden_pitch] of T */
    int32_t hidden_pitch;               /* elements */
    int32_t score;                      /* [E][SCORE_PITCH] floats */
    int32_t noise;                      /* [noise_size] floats */
    int32_t raw, raw_pitch;             /* C51: [E][raw_pitch] floats, outputs and shifts */
    int32_t extra;                      /* the caller's */
    int32_t bytes;
    int32_t held; /* second layer in registers, the others resident */
} policy_plan;

/* Elements between two states' hidden outputs: 16 bytes of skew for ldmatrix. */
static constexpr int policy_pitch(int width)
{
    return (width + 31) / 32 * 32 + 8;
}

/* Of the plan of a held network with 8 states: known, so that its layers share registers of
 * addresses. */
enum {
    HELD_PITCH = policy_pitch(256),
    HELD_HIDDEN_BYTES = 8 * HELD_PITCH * 2, /* from hidden[0] to hidden[1] */
    HELD_BIAS_1 = 256,                      /* floats before each layer's biases */
    HELD_BIAS_2 = HELD_BIAS_1 + 256,
    HELD_BIAS_3 = HELD_BIAS_2 + 128,
};

/* A barrier of the network's threads; a block may have more. */
static __device__ __forceinline__ void policy_sync(void)
{
    barrier_of_first<POLICY_THREADS, 1>();
}

/* The row after `row` of ROWS that are used in turn. */
template <int ROWS> static __device__ __forceinline__ int policy_next_row(int row)
{
    return row + 1 == ROWS ? 0 : row + 1;
}

/* Where row `now` of the states lies. */
static __device__ __forceinline__ int policy_state(const policy_plan &plan, int now)
{
    return plan.state + now * plan.state_bytes;
}

/* ---- float32 ---- */

/* Each thread takes outputs id, id + 256, ...; inputs in order. */
template <int NT, bool FINAL>
static __device__ __forceinline__ void
policy_layer_f32(const ho_policy_layer &layer, const float *weights, const float *in, int in_pitch,
                 const float *bias, float *out, int out_pitch, int actions)
{
    constexpr int E = 8 * NT;
    for (int unit = (int)threadIdx.x; unit < layer.out; unit += POLICY_THREADS) {
#pragma unroll 1
        for (int e0 = 0; e0 < E; e0 += 8) {
            float acc[8];
#pragma unroll
            for (int e = 0; e < 8; e++) {
                acc[e] = bias[unit];
            }
            for (int i = 0; i < layer.in; i++) {
                const float w = __ldg(weights + (size_t)i * layer.out + unit);
#pragma unroll
                for (int e = 0; e < 8; e++) {
                    acc[e] = fmaf(w, in[(e0 + e) * in_pitch + i], acc[e]);
                }
            }
#pragma unroll
            for (int e = 0; e < 8; e++) {
                if (!FINAL) {
                    out[(e0 + e) * out_pitch + unit] = policy_leaky(acc[e]);
                } else if (unit < actions) {
                    out[(e0 + e) * out_pitch + unit] = acc[e];
                }
            }
        }
    }
}

/* ---- noise ---- */

/* One draw of noise into `noise`, by all threads. */
static __device__ __forceinline__ void policy_noise(const ho_policy_net &p, float *noise,
                                                    const uint32_t key[2], uint32_t step,
                                                    uint32_t epoch, uint32_t user)
{
    for (int i = (int)threadIdx.x; i < p.noise_size; i += POLICY_THREADS) {
        noise[i] = noise_entry(p.net, key, step, epoch, user, i);
    }
}

static __device__ __forceinline__ float policy_float(float x)
{
    return x;
}

static __device__ __forceinline__ float policy_float(__nv_bfloat16 x)
{
    return float_of(x);
}

static __device__ __forceinline__ float policy_float(policy_e4m3 x)
{
    return float_of(x.carried);
}

static __device__ __forceinline__ void policy_hidden(float *to, float x)
{
    *to = policy_leaky(x);
}

static __device__ __forceinline__ void policy_hidden(__nv_bfloat16 *to, float x)
{
    *to = short_of(policy_leaky(x));
}

static __device__ __forceinline__ void policy_hidden(policy_e4m3 *to, float x)
{
    to->carried = short_of(policy_round_e4m3(policy_leaky(x)));
}

/* Layer 2 or 3 of a noisy network; noise NULL: the mean weights. Inputs and hidden outputs of type
 * T, final outputs floats. */
template <typename T, int NT, bool FINAL>
static __device__ __forceinline__ void
policy_layer_noisy(const ho_policy_net &p, const uint8_t *packed, const float *bias,
                   const float *sigma_bias, const float *noise, const T *in, int in_pitch,
                   void *out, int out_pitch)
{
    constexpr int L = FINAL ? 3 : 2;
    const ho_policy_layer &layer = p.layer[L];
    const float *weight = (const float *)(packed + layer.matrix);
    const float *sigma = (const float *)(packed + layer.sigma);
    for (int item = (int)threadIdx.x; item < layer.out * NT; item += POLICY_THREADS) {
        const int unit = item % layer.out, e0 = item / layer.out * 8;
        const float factor = noise ? noise_out(p.net, noise, L, unit) : 0.0f;
        float acc[8];
#pragma unroll
        for (int e = 0; e < 8; e++) {
            acc[e] = bias[unit] + sigma_bias[unit] * factor;
        }
        for (int i = 0; i < layer.in; i++) {
            const size_t at = (size_t)i * layer.out + unit;
            float w = __ldg(weight + at);
            if (noise) {
                w = fmaf(__ldg(sigma + at) * factor, noise_in(p.net, noise, L, unit, i), w);
            }
#pragma unroll
            for (int e = 0; e < 8; e++) {
                acc[e] = fmaf(w, policy_float(in[(e0 + e) * in_pitch + i]), acc[e]);
            }
        }
#pragma unroll
        for (int e = 0; e < 8; e++) {
            if (!FINAL) {
                policy_hidden((T *)out + (e0 + e) * out_pitch + unit, acc[e]);
            } else if (unit < p.outputs) {
                ((float *)out)[(e0 + e) * out_pitch + unit] = acc[e];
            }
        }
    }
}

/* ---- C51 ---- */

/* The mean of each choice's distribution: raw outputs -> scores. The states' groups of threads; the
 * caller has a barrier before and after it. */
template <int NT>
static __device__ __forceinline__ void policy_atoms(const ho_policy_net &p, float *raw,
                                                    int raw_pitch, float *score, float v_max)
{
    constexpr int S = POLICY_THREADS / (8 * NT); /* threads a state */
    const int e = (int)threadIdx.x / S, sub = (int)threadIdx.x % S, atoms = p.atoms;
    float *x = raw + e * raw_pitch, *shift = x + p.net.outputs;
    for (int i = sub; i < p.branches.count * atoms; i += S) { /* value - mean, by branch, atom */
        const int d = i / atoms, atom = i % atoms;
        float sum = 0.0f;
        for (int a = 0; a < p.branches.size[d]; a++) {
            sum += x[(p.branches.first[d] + a) * atoms + atom];
        }
        shift[i] = p.net.dueling ? x[p.net.values + atom] - sum / (float)p.branches.size[d] : 0.0f;
    }
    __syncwarp();
    const float delta = ho_c51_delta(v_max, atoms);
    for (int a = sub; a < p.actions; a += S) {
        const int d = p.branches.count == 1 || a < p.branches.first[1] ? 0
                      : a < p.branches.first[2]                        ? 1
                                                                       : 2;
        const float *logit = x + a * atoms, *by = shift + d * atoms;
        float top = logit[0] + by[0], sum = 0.0f, mean = 0.0f;
        for (int i = 1; i < atoms; i++) {
            top = fmaxf(top, logit[i] + by[i]);
        }
        for (int i = 0; i < atoms; i++) {
            const float y = expf(logit[i] + by[i] - top);
            sum += y;
            mean += y * (-v_max + delta * (float)i);
        }
        score[e * SCORE_PITCH + a] = mean / sum;
    }
}

/* ---- the whole network ---- */

/* Loads resident weights, held registers and biases. Ends with a barrier. */
template <typename T, bool HELD>
static __device__ __forceinline__ void policy_load(const ho_policy_net &p, const policy_plan &plan,
                                                   const uint8_t *packed, uint8_t *shared,
                                                   policy_held &held)
{
    for (int l = 0; l < HO_DEVICE_LAYERS; l++) {
        if (plan.resident[l] >= 0) {
            const uint4 *from = (const uint4 *)(packed + p.layer[l].matrix);
            uint4 *to = (uint4 *)(shared + plan.resident[l]);
            for (int i = (int)threadIdx.x; i < p.layer[l].matrix_bytes / 16; i += POLICY_THREADS) {
                to[i] = from[i];
            }
        }
    }
    for (int i = (int)threadIdx.x; i < p.bias_bytes / 4; i += POLICY_THREADS) {
        ((float *)(shared + plan.bias))[i] = ((const float *)(packed + p.bias_at))[i];
    }
    if (HELD) {
        const uint4 *from = (const uint4 *)(packed + p.layer[1].matrix);
        const int warp = (int)threadIdx.x / 32, l = (int)threadIdx.x % 32;
#pragma unroll
        for (int j = 0; j < 2; j++) {
#pragma unroll
            for (int step = 0; step < 16; step++) {
                held[j][step] = from[((warp + j * POLICY_WARPS) * 16 + step) * 32 + l];
            }
        }
    }
    policy_sync();
}

static __device__ __forceinline__ const float *
policy_bias(const ho_policy_net &p, const policy_plan &plan, const uint8_t *shared, int l)
{
    return (const float *)(shared + plan.bias + p.layer[l].bias - p.bias_at);
}

/* One layer of any network. */
template <typename T, int NT, bool FINAL>
static __device__ __forceinline__ void
policy_layer_bf16(const ho_policy_net &p, const policy_plan &plan, const uint8_t *packed,
                  uint8_t *shared, int l, int in, int in_pitch, void *out, int out_pitch)
{
    const uint32_t at = shared_address(shared);
    const uint4 *weights = (const uint4 *)(packed + p.layer[l].matrix);
    const float *bias = policy_bias(p, plan, shared, l);
    if (plan.resident[l] >= 0) {
        policy_layer<T, NT, true, FINAL>(p.layer[l], weights, at + plan.resident[l], at + in,
                                         in_pitch, bias, out, out_pitch, p.outputs);
    } else {
        policy_layer<T, NT, false, FINAL>(p.layer[l], weights, 0, at + in, in_pitch, bias, out,
                                          out_pitch, p.outputs);
    }
}

/* Before the barrier that policy_scores needs: what can be read without the states in row `now` of
 * plan.state. */
template <typename T, int NT, bool HELD>
static __device__ __forceinline__ void policy_begin(const ho_policy_net &p, const policy_plan &plan,
                                                    const uint8_t *shared, int now,
                                                    policy_ahead &ahead)
{
    if (HELD && NT == 1) {
        const uint32_t at = shared_address(shared);
        const uint32_t thread = thread_anew(); /* what hangs on it would be spilled over a bar */
        policy_read_biases<2, POLICY_WARPS>(thread, policy_bias(p, plan, shared, 0), ahead);
        policy_read_words<4, 2, POLICY_WARPS>(
            thread, policy_words<4>(thread, at + plan.resident[0]), 0, 8, ahead);
        ahead.thread = thread;
        ahead.row = policy_row(thread, at + policy_state(plan, now), STATE_PITCH);
        asm volatile("" : "+r"(ahead.row)); /* or the compiler puts it off */
    }
}

/* The reference network for 8 states, its second layer held in registers, the others in shared
 * memory, which the second leaves some time to read the third one's weights. The last warps make
 * the last layer: the first ones have most to do after it. */
template <typename T>
static __device__ __forceinline__ void
policy_scores_few(const ho_policy_net &p, const policy_plan &plan, uint8_t *shared,
                  const policy_held &held, policy_ahead &ahead, float *score)
{
    constexpr int pitch = HELD_PITCH, ALL = POLICY_WARPS, LAST = 3; /* warps */
    const uint32_t thread = ahead.thread, last = thread - (ALL - LAST) * 32;
    const uint32_t at = shared_address(shared);
    const uint32_t h0 = policy_row(thread, at + plan.hidden[0], pitch);
    const uint32_t h1 = h0 + HELD_HIDDEN_BYTES;
    void *const to0 = shared + plan.hidden[0];
    void *const to1 = shared + plan.hidden[0] + HELD_HIDDEN_BYTES;
    const float *bias = (const float *)(shared + plan.bias);
    uint32_t words = policy_words<16>(thread, at + plan.resident[2]);
    asm volatile("" : "+r"(words)); /* once */
    const auto nothing = [](int) {};
    const auto early = [&](int i) {
        policy_read_words<16, 1, ALL>(thread, words, i, i + 1, ahead);
        __syncwarp(); /* or the compiler puts it off */
    };
    policy_layer_few<T, 4, 2, ALL, false, false>(thread, 0, held, ahead, ahead.row, to0, pitch, 0,
                                                 nothing);
    policy_read_biases<2, ALL>(thread, bias + HELD_BIAS_1, ahead);
    policy_sync();
    policy_layer_few<T, 16, 2, ALL, true, false>(thread, 0, held, ahead, h0, to1, pitch, 0, early);
    policy_read_biases<1, ALL>(thread, bias + HELD_BIAS_2, ahead);
    policy_read_words<16, 1, ALL>(thread, words, EARLY_PAIRS, 8, ahead);
    policy_sync();
    policy_layer_few<T, 16, 1, ALL, false, false>(thread, words, held, ahead, h1, to0, pitch, 0,
                                                  nothing);
    policy_read_biases<1, LAST>(last, bias + HELD_BIAS_3, ahead);
    policy_read_words<8, 1, LAST>(last, policy_words<8>(last, at + plan.resident[3]), 0, 8, ahead);
    policy_sync();
    policy_layer_few<T, 8, 1, LAST, false, true>(last, 0, held, ahead, h0, score, SCORE_PITCH,
                                                 p.outputs, nothing);
}

/* The same for more states; with 64 the third layer may be left in L2. */
template <typename T, int NT>
static __device__ __forceinline__ void
policy_scores_held(const ho_policy_net &p, const policy_plan &plan, const uint8_t *packed,
                   uint8_t *shared, const policy_held &held, int now, float *score)
{
    const uint32_t at = shared_address(shared);
    const uint32_t h0 = at + plan.hidden[0], h1 = at + plan.hidden[1];
    void *const to0 = shared + plan.hidden[0], *const to1 = shared + plan.hidden[1];
    const int pitch = plan.hidden_pitch, actions = p.outputs;
    policy_layer_fast<T, NT, 4, 2, false, false>(16, at + plan.resident[0], held,
                                                 at + policy_state(plan, now), STATE_PITCH,
                                                 policy_bias(p, plan, shared, 0), to0, pitch, 0);
    policy_sync();
    policy_layer_fast<T, NT, 16, 2, true, false>(16, 0, held, h0, pitch,
                                                 policy_bias(p, plan, shared, 1), to1, pitch, 0);
    policy_sync();
    if (NT == 8 && plan.resident[2] < 0) {
        policy_layer_bf16<T, NT, false>(p, plan, packed, shared, 2, plan.hidden[1], pitch, to0,
                                        pitch);
    } else {
        policy_layer_fast<T, NT, 16, 1, false, false>(8, at + plan.resident[2], held, h1, pitch,
                                                      policy_bias(p, plan, shared, 2), to0, pitch,
                                                      0);
    }
    policy_sync();
    policy_layer_fast<T, NT, 8, 1, false, true>(3, at + plan.resident[3], held, h0, pitch,
                                                policy_bias(p, plan, shared, 3), score, SCORE_PITCH,
                                                actions);
}

/* The last two layers of a noisy network, with a barrier between them. */
template <typename T, int NT>
static __device__ __forceinline__ void
policy_noisy_heads(const ho_policy_net &p, const policy_plan &plan, const uint8_t *packed,
                   uint8_t *shared, const float *noise, float *out, int out_pitch)
{
    T *h0 = (T *)(shared + plan.hidden[0]), *h1 = (T *)(shared + plan.hidden[1]);
    const int pitch = plan.hidden_pitch;
    const float *bias2 = policy_bias(p, plan, shared, 2), *bias3 = policy_bias(p, plan, shared, 3);
    policy_layer_noisy<T, NT, false>(p, packed, bias2, bias2 + p.layer[2].out, noise, h1, pitch, h0,
                                     pitch);
    policy_sync();
    policy_layer_noisy<T, NT, true>(p, packed, bias3, bias3 + p.layer[3].out, noise, h0, pitch, out,
                                    out_pitch);
}

/* Scores of the E states in row `now` of plan.state. The caller has a barrier before and after it,
 * and policy_begin before the first. noise: this step's draw, or NULL for the mean weights; v_max:
 * C51's support. */
template <typename T, int NT, bool HELD>
static __device__ __forceinline__ void
policy_scores(const ho_policy_net &p, const policy_plan &plan, const uint8_t *packed,
              uint8_t *shared, const policy_held &held, policy_ahead &ahead, int now,
              const float *noise, float v_max)
{
    float *score = (float *)(shared + plan.score);
    if (HELD && NT == 1) {
        policy_scores_few<T>(p, plan, shared, held, ahead, score);
        return;
    }
    if (HELD) {
        policy_scores_held<T, NT>(p, plan, packed, shared, held, now, score);
        return;
    }
    T *h0 = (T *)(shared + plan.hidden[0]), *h1 = (T *)(shared + plan.hidden[1]);
    const bool distributional = p.atoms > 1, noisy = p.noise_size > 0;
    float *out = distributional ? (float *)(shared + plan.raw) : score;
    const int pitch = plan.hidden_pitch, out_pitch = distributional ? plan.raw_pitch : SCORE_PITCH;
    if (sizeof(T) == 2) {
        policy_layer_bf16<T, NT, false>(p, plan, packed, shared, 0, policy_state(plan, now),
                                        STATE_PITCH, h0, pitch);
        policy_sync();
        policy_layer_bf16<T, NT, false>(p, plan, packed, shared, 1, plan.hidden[0], pitch, h1,
                                        pitch);
        policy_sync();
        if (!noisy) {
            policy_layer_bf16<T, NT, false>(p, plan, packed, shared, 2, plan.hidden[1], pitch, h0,
                                            pitch);
            policy_sync();
            policy_layer_bf16<T, NT, true>(p, plan, packed, shared, 3, plan.hidden[0], pitch, out,
                                           out_pitch);
        }
    } else {
        const float *w[HO_DEVICE_LAYERS];
        for (int l = 0; l < HO_DEVICE_LAYERS; l++) {
            w[l] = (const float *)(packed + p.layer[l].matrix);
        }
        float *f0 = (float *)h0, *f1 = (float *)h1;
        policy_layer_f32<NT, false>(p.layer[0], w[0],
                                    (const float *)(shared + policy_state(plan, now)), STATE_PITCH,
                                    policy_bias(p, plan, shared, 0), f0, pitch, 0);
        policy_sync();
        policy_layer_f32<NT, false>(p.layer[1], w[1], f0, pitch, policy_bias(p, plan, shared, 1),
                                    f1, pitch, 0);
        policy_sync();
        if (!noisy) {
            policy_layer_f32<NT, false>(p.layer[2], w[2], f1, pitch,
                                        policy_bias(p, plan, shared, 2), f0, pitch, 0);
            policy_sync();
            policy_layer_f32<NT, true>(p.layer[3], w[3], f0, pitch, policy_bias(p, plan, shared, 3),
                                       out, out_pitch, p.outputs);
        }
    }
    if (noisy) {
        policy_noisy_heads<T, NT>(p, plan, packed, shared, noise, out, out_pitch);
    }
    if (distributional) {
        policy_sync();
        policy_atoms<NT>(p, out, out_pitch, score, v_max);
    }
}

/* ---- a state's group of S neighbouring threads ---- */

/* A float's order as an unsigned integer; both zeros are one, NaN lies at an end. */
static __device__ __forceinline__ uint32_t ordered(float x)
{
    const int32_t bits = __float_as_int(x + 0.0f);
    return (uint32_t)(bits ^ ((bits >> 31) | INT32_MIN));
}

/* The best of `actions` scores plus a bonus (NULL: none), lowest index on ties; on every thread of
 * the group. All threads of the warp take part. */
template <int S>
static __device__ __forceinline__ int group_argmax(const float *score, const float *bonus,
                                                   int actions)
{
    if (S == 32) { /* two actions a thread at most, one comparison of the warp */
        const int first = (int)threadIdx.x % 32, second = first + 32;
        uint32_t key[2] = {0, 0};
        if (first < actions) {
            key[0] = ordered(score[first] + (bonus ? bonus[first] : 0.0f));
        }
        if (second < actions) {
            key[1] = ordered(score[second] + (bonus ? bonus[second] : 0.0f));
        }
        const uint32_t best = warp_max_u32(key[0] > key[1] ? key[0] : key[1]);
        const uint32_t low = __ballot_sync(0xffffffffu, first < actions && key[0] == best);
        const uint32_t high = __ballot_sync(0xffffffffu, second < actions && key[1] == best);
        return low ? __ffs((int)low) - 1 : __ffs((int)high) + 31;
    }
    float best = -INFINITY;
    int at = HO_ACTIONS;
    for (int a = (int)threadIdx.x % S; a < actions; a += S) {
        const float x = score[a] + (bonus ? bonus[a] : 0.0f);
        if (x > best || at == HO_ACTIONS) {
            best = x;
            at = a;
        }
    }
#pragma unroll
    for (int step = S / 2; step > 0; step >>= 1) {
        const float other = __shfl_xor_sync(0xffffffffu, best, step);
        const int other_at = __shfl_xor_sync(0xffffffffu, at, step);
        if (other > best || (other == best && other_at < at)) {
            best = other;
            at = other_at;
        }
    }
    return at;
}

static __device__ __forceinline__ void put_column(float *to, float x)
{
    *to = x;
}

static __device__ __forceinline__ void put_column(__nv_bfloat16 *to, float x)
{
    *to = short_of(x);
}

static __device__ __forceinline__ void put_column(policy_e4m3 *to, float x)
{
    to->carried = short_of(policy_round_e4m3(x));
}

/* A market row into a state row, by the group's threads. */
template <typename T, int S>
static __device__ __forceinline__ void group_market_row(T *row, const void *features, int32_t bar)
{
    const uint4 *from = (const uint4 *)((const T *)features + (int64_t)bar * HO_STATE_PAD);
    for (int i = (int)threadIdx.x % S; i < (int)(HO_STATE_PAD * sizeof(T) / 16); i += S) {
        ((uint4 *)row)[i] = from[i];
    }
}

/* ---- host: the plan ---- */

/* Places everything for E states; weights are made resident, in the order of their worth, while
 * they fit `limit` bytes. rows: of states, of so many steps; extra: bytes the caller wants.
 * bytes > limit: it does not fit. */
static inline policy_plan policy_plan_make(const ho_policy_net *p, int states, int rows, int held,
                                           int extra, int limit)
{
    policy_plan plan = {};
    const int element = p->bf16 ? 2 : 4;
    int at = 0;
    plan.held = held && p->bf16 && !p->noise_size && p->atoms == 1 && p->layer[0].out == 256 &&
                p->layer[1].out == 256 && p->layer[2].out == 128 && p->layer[3].out == 48;
    plan.hidden_pitch = policy_pitch(p->hidden_max);
    plan.bias = at;
    at += (p->bias_bytes + 15) / 16 * 16;
    plan.state = at;
    plan.state_bytes = states * STATE_PITCH * element;
    at += rows * plan.state_bytes;
    for (int i = 0; i < 2; i++) {
        plan.hidden[i] = at;
        at += states * plan.hidden_pitch * element;
    }
    plan.score = at;
    at += (states * SCORE_PITCH * 4 + 15) / 16 * 16;
    plan.noise = at;
    at += (p->noise_size * 4 + 15) / 16 * 16;
    if (p->atoms > 1) {
        plan.raw = at;
        plan.raw_pitch = p->outputs + p->branches.count * p->atoms + 1;
        at += (states * plan.raw_pitch * 4 + 15) / 16 * 16;
    }
    plan.extra = at;
    at += (extra + 15) / 16 * 16;
    static const int order[HO_DEVICE_LAYERS] = {3, 0, 2, 1};
    const int from = at;
    for (int i = 0; i < HO_DEVICE_LAYERS; i++) {
        const int l = order[i], bytes = p->layer[l].matrix_bytes;
        plan.resident[l] = -1;
        if (plan.held && at + bytes > limit && l != 1 && !(l == 2 && states == 64)) {
            plan.held = 0;
            plan.weights = 0;
            at = from;
            i = -1;
            continue;
        }
        if (!p->layer[l].floats && !(l == 1 && plan.held) && at + bytes <= limit) {
            plan.resident[l] = at;
            at += bytes;
            plan.weights += bytes;
        }
    }
    plan.bytes = at;
    return plan;
}

#endif
