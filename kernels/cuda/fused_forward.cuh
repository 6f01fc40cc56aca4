/* SPDX-License-Identifier: Apache-2.0
 * Pieces of the fused forward and backward pass (fused_forward.cu): one warpgroup carries 64 rows
 * of a batch through the whole network in registers. The accumulators of a layer become, packed to
 * bf16, the A operand of the next: activations never pass through shared memory. Weights stream
 * through a ring of 32 KB stages in shared memory that a producer warp fills.
 *
 * A thread of a warpgroup holds rows `8 h + g` (h = 0, 1) of its warp's 16 and, of every 8 columns,
 * numbers 2 t and 2 t + 1, with g = lane / 4 and t = lane % 4: the fragment layout of wgmma. */
#ifndef HO_CUDA_FUSED_FORWARD_CUH
#define HO_CUDA_FUSED_FORWARD_CUH

#include "kernels/agents/value.h"
#include "kernels/cuda/fused_layout.h"
#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/learn.h"
#include "kernels/cuda/wgmma.cuh"

enum {
    FUSED_STAGE = 32768,       /* bytes of a weight stage */
    FUSED_W4_BYTES = 24576,    /* of the last layer's only stage */
    FUSED_FORWARD_STAGES = 10, /* W1, 4 x W2, 4 x W3, W4 */
    FUSED_BACKWARD_STAGES = 9, /* W4, 4 x W3, 4 x W2 */
    FUSED_BIASES = 816,        /* 3 x 256 + 48 */
    FUSED_BIAS4 = 768,
    FUSED_ACTIONS = 45,
    FUSED_SIGN_WORDS = 12, /* a thread's leaky-ReLU masks: 4 a layer */
    FUSED_Q = 24,          /* outputs a thread holds */
    X_TILE = HO_FUSED_ROWS * HO_FUSED_X_ROW,
};

#define FUSED_SLOPE 0.01f

/* A gathered row's scalars, in shared memory. */
typedef struct fused_row {
    int32_t bar, next_bar, action;
    float reward, discount;
    float weight; /* of its loss; 1 with uniform replay */
    int32_t pad[2];
} fused_row;

/* The consumer's end of the weight ring. */
typedef struct weight_ring {
    uint32_t base, full, empty; /* stages; barriers, 8 bytes each */
    int slots, slot, phase;
} weight_ring;

static __device__ __forceinline__ uint32_t ring_wait(const weight_ring &r)
{
    barrier_wait(r.full + 8 * r.slot, r.phase);
    return r.base + r.slot * FUSED_STAGE;
}

static __device__ __forceinline__ void ring_advance(weight_ring &r)
{
    if (++r.slot == r.slots) {
        r.slot = 0;
        r.phase ^= 1;
    }
}

/* The warp is done with a stage. */
static __device__ __forceinline__ void ring_release(const weight_ring &r, int slot)
{
    if (threadIdx.x % 32 == 0) {
        barrier_arrive(r.empty + 8 * slot);
    }
}

/* Two warpgroups take turns on the tensor cores: one multiplies while the other's epilogue runs.
 * TURNS false: one warpgroup alone. */
enum { TURN_BARRIER = 3 };

template <bool TURNS> static __device__ __forceinline__ void turn_take(int warpgroup)
{
    if (TURNS) {
        named_sync(TURN_BARRIER + warpgroup, 256);
    }
}

template <bool TURNS> static __device__ __forceinline__ void turn_pass(int warpgroup)
{
    if (TURNS) {
        named_arrive(TURN_BARRIER + (warpgroup ^ 1), 256);
    }
}

/* acc = X W1^T: 64 rows of the state tile at `x` (8 cores a row group). */
template <bool TURNS>
static __device__ __forceinline__ void first_layer(float (&acc)[128], uint32_t x, weight_ring &ring,
                                                   int warpgroup)
{
    turn_take<TURNS>(warpgroup);
    const uint64_t a = matrix_descriptor(x, 128, 1024);
    const uint64_t b = matrix_descriptor(ring_wait(ring), 4096, 128);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 4; k++) {
        wgmma_ss<0, 0>(acc, a + descriptor_offset(k * 256), b + descriptor_offset(k * 8192), k);
    }
    wgmma_commit();
    turn_pass<TURNS>(warpgroup);
    wgmma_wait<0>();
    ring_release(ring, ring.slot);
    ring_advance(ring);
}

/* acc = A W^T (FORWARD) or A W of a 256 x 256 layer, four stages of 64 summed units. */
template <bool FORWARD, bool TURNS>
static __device__ __forceinline__ void square_layer(float (&acc)[128], const uint32_t (&a)[64],
                                                    weight_ring &ring, int warpgroup)
{
    int previous = 0;
    turn_take<TURNS>(warpgroup);
#pragma unroll
    for (int stage = 0; stage < 4; stage++) {
        const uint32_t at = ring_wait(ring);
        const uint64_t b =
            FORWARD ? matrix_descriptor(at, 4096, 128) : matrix_descriptor(at, 128, 1024);
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const int i = (stage * 4 + k) * 4;
            wgmma_rs<FORWARD ? 0 : 1>(acc, a[i], a[i + 1], a[i + 2], a[i + 3],
                                      b + descriptor_offset(FORWARD ? k * 8192 : k * 256),
                                      stage | k);
        }
        wgmma_commit();
        if (stage == 3) {
            turn_pass<TURNS>(warpgroup);
        }
        if (stage > 0) {
            wgmma_wait<1>();
            ring_release(ring, previous);
        }
        previous = ring.slot;
        ring_advance(ring);
    }
    wgmma_wait<0>();
    ring_release(ring, previous);
}

/* q = A W4^T + b: 48 outputs; bias: shared address of b. */
template <bool TURNS>
static __device__ __forceinline__ void output_layer(float (&q)[FUSED_Q], const uint32_t (&a)[64],
                                                    weight_ring &ring, uint32_t bias, int warpgroup)
{
    turn_take<TURNS>(warpgroup);
    const uint64_t b = matrix_descriptor(ring_wait(ring), 768, 128);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 16; k++) {
        wgmma_rs<0>(q, a[4 * k], a[4 * k + 1], a[4 * k + 2], a[4 * k + 3],
                    b + descriptor_offset(k * 1536), k);
    }
    wgmma_commit();
    turn_pass<TURNS>(warpgroup);
    wgmma_wait<0>();
    ring_release(ring, ring.slot);
    ring_advance(ring);
    const int t = threadIdx.x % 4;
#pragma unroll
    for (int n = 0; n < 6; n++) {
        const float2 add = shared_load2(bias + (n * 8 + 2 * t) * 4);
        q[n * 4] += add.x;
        q[n * 4 + 1] += add.y;
        q[n * 4 + 2] += add.x;
        q[n * 4 + 3] += add.y;
    }
}

/* acc = dQ W4: the first step back, 48 summed outputs. */
template <bool TURNS>
static __device__ __forceinline__ void
output_layer_backward(float (&acc)[128], const uint32_t (&dq)[12], weight_ring &ring, int warpgroup)
{
    turn_take<TURNS>(warpgroup);
    const uint64_t b = matrix_descriptor(ring_wait(ring), 128, 768);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 3; k++) {
        wgmma_rs<1>(acc, dq[4 * k], dq[4 * k + 1], dq[4 * k + 2], dq[4 * k + 3],
                    b + descriptor_offset(k * 256), k);
    }
    wgmma_commit();
    turn_pass<TURNS>(warpgroup);
    wgmma_wait<0>();
    ring_release(ring, ring.slot);
    ring_advance(ring);
}

static __device__ __forceinline__ float fused_leaky(float x)
{
    return fmaxf(x, FUSED_SLOPE * x);
}

/* a = leaky(acc + bias), packed as the next layer's A operand. */
static __device__ __forceinline__ void activate(const float (&acc)[128], uint32_t (&a)[64],
                                                uint32_t bias)
{
    const int t = threadIdx.x % 4;
#pragma unroll
    for (int n = 0; n < 32; n++) {
        const float2 b = shared_load2(bias + (n * 8 + 2 * t) * 4);
        a[n * 2] = pack_bf16(fused_leaky(acc[n * 4] + b.x), fused_leaky(acc[n * 4 + 1] + b.y));
        a[n * 2 + 1] =
            pack_bf16(fused_leaky(acc[n * 4 + 2] + b.x), fused_leaky(acc[n * 4 + 3] + b.y));
    }
}

/* The signs of packed activations, 4 words a layer; stride: bytes between a thread's words. */
static __device__ __forceinline__ void save_signs(const uint32_t (&a)[64], uint32_t to, int stride)
{
#pragma unroll
    for (int q = 0; q < 4; q++) {
        uint32_t signs = 0;
#pragma unroll
        for (int i = 0; i < 16; i++) {
            signs |= (a[q * 16 + i] & 0x80008000u) >> i;
        }
        shared_store_bits(to + q * stride, signs);
    }
}

/* a = acc times the slope of the leaky ReLU whose signs were saved. */
static __device__ __forceinline__ void activate_backward(const float (&acc)[128], uint32_t (&a)[64],
                                                         uint32_t from, int stride)
{
#pragma unroll
    for (int q = 0; q < 4; q++) {
        const uint32_t signs = shared_load_bits(from + q * stride);
#pragma unroll
        for (int i = 0; i < 16; i++) {
            const int j = q * 16 + i;
            const float low = signs & (0x8000u >> i) ? FUSED_SLOPE : 1.0f;
            const float high = signs & (0x80000000u >> i) ? FUSED_SLOPE : 1.0f;
            a[j] = pack_bf16(acc[2 * j] * low, acc[2 * j + 1] * high);
        }
    }
}

/* Stores packed 64 x 256 values to H or D; `to` is the thread's place, half: bytes of a half. */
static __device__ __forceinline__ void store_rows(uint8_t *to, const uint32_t (&a)[64],
                                                  int64_t half)
{
#pragma unroll
    for (int j = 0; j < 8; j++) {
        uint8_t *p = to + (j >> 2) * half + (j & 3) * 512;
        *(uint4 *)p = make_uint4(a[8 * j], a[8 * j + 2], a[8 * j + 4], a[8 * j + 6]);
        *(uint4 *)(p + 2048) = make_uint4(a[8 * j + 1], a[8 * j + 3], a[8 * j + 5], a[8 * j + 7]);
    }
}

/* The value column of a quad's row lies with thread t = 2. */
static __device__ __forceinline__ float quad_value(float x)
{
    return __shfl_sync(0xffffffffu, x, ((int)threadIdx.x & 31 & ~3) + 2);
}

/* The td target of row half h: double DQN picks the action by `online`, its value is the target
 * network's (stash: the thread's target outputs, stride apart). */
static __device__ __forceinline__ float fused_target(const float (&online)[FUSED_Q], uint32_t stash,
                                                     int stride, int h, const fused_row &row,
                                                     int double_q)
{
    const int t = threadIdx.x % 4;
    float best = -INFINITY, best_target = 0.0f, sum = 0.0f, value = 0.0f;
    int action = FUSED_ACTIONS;
#pragma unroll
    for (int n = 0; n < 6; n++) {
#pragma unroll
        for (int e = 0; e < 2; e++) {
            const int j = n * 4 + h * 2 + e, c = n * 8 + 2 * t + e;
            const float target = shared_load(stash + j * stride);
            const float score = double_q ? online[j] : target;
            if (c < FUSED_ACTIONS) {
                sum += target;
                if (score > best) {
                    best = score;
                    best_target = target;
                    action = c;
                }
            } else if (c == FUSED_ACTIONS) {
                value = target;
            }
        }
    }
#pragma unroll
    for (int step = 1; step < 3; step <<= 1) {
        const float other = __shfl_xor_sync(0xffffffffu, best, step);
        const float other_target = __shfl_xor_sync(0xffffffffu, best_target, step);
        const int other_action = __shfl_xor_sync(0xffffffffu, action, step);
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
        if (other > best || (other == best && other_action < action)) {
            best = other;
            best_target = other_target;
            action = other_action;
        }
    }
    const float next = quad_value(value) + best_target - sum * (1.0f / FUSED_ACTIONS);
    return ho_td_target(row.reward, row.discount, next);
}

/* Q of row half h's taken action; on every thread of the quad. */
static __device__ __forceinline__ float fused_taken(const float (&q)[FUSED_Q], int h, int action)
{
    const int t = threadIdx.x % 4;
    float sum = 0.0f, taken = 0.0f, value = 0.0f;
#pragma unroll
    for (int n = 0; n < 6; n++) {
#pragma unroll
        for (int e = 0; e < 2; e++) {
            const int j = n * 4 + h * 2 + e, c = n * 8 + 2 * t + e;
            if (c < FUSED_ACTIONS) {
                sum += q[j];
                taken = c == action ? q[j] : taken;
            } else if (c == FUSED_ACTIONS) {
                value = q[j];
            }
        }
    }
#pragma unroll
    for (int step = 1; step < 3; step <<= 1) {
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
        taken += __shfl_xor_sync(0xffffffffu, taken, step);
    }
    return taken + (quad_value(value) - sum * (1.0f / FUSED_ACTIONS));
}

/* |td| of row half h; packs its gradient into dq and adds the row to `part`. */
static __device__ __forceinline__ float fused_td(const float (&q)[FUSED_Q], float y, int h,
                                                 const fused_row &row, float delta, float inv_batch,
                                                 uint32_t (&dq)[12], ho_loss_part *part)
{
    const int t = threadIdx.x % 4;
    const float q_taken = fused_taken(q, h, row.action), error = q_taken - y;
    const float slope = ho_huber_slope(error, delta) * inv_batch * row.weight;
    const float others = -slope * (1.0f / FUSED_ACTIONS);
#pragma unroll
    for (int n = 0; n < 6; n++) {
        const int c = n * 8 + 2 * t;
        const float first = c < FUSED_ACTIONS ? (c == row.action ? slope + others : others) : 0.0f;
        const float second = c + 1 < FUSED_ACTIONS ? (c + 1 == row.action ? slope + others : others)
                                                   : (c + 1 == FUSED_ACTIONS ? slope : 0.0f);
        dq[n * 2 + h] = pack_bf16(first, second);
    }
    const ho_loss_part p = {ho_huber(error, delta) * row.weight,
                            fabsf(error),
                            q_taken,
                            q_taken * q_taken,
                            q_taken,
                            q_taken,
                            {0, 0}};
    if (h == 0) {
        *part = p;
    } else {
        ho_loss_part_add(part, &p);
    }
    return p.td_abs;
}

/* Adds the parts of a warp's 8 quads, in a fixed tree; every thread gets the sum. */
static __device__ __forceinline__ ho_loss_part quad_parts_sum(ho_loss_part p)
{
#pragma unroll
    for (int step = 4; step < 32; step <<= 1) {
        const ho_loss_part other = {__shfl_xor_sync(0xffffffffu, p.loss, step),
                                    __shfl_xor_sync(0xffffffffu, p.td_abs, step),
                                    __shfl_xor_sync(0xffffffffu, p.q, step),
                                    __shfl_xor_sync(0xffffffffu, p.q_square, step),
                                    __shfl_xor_sync(0xffffffffu, p.q_min, step),
                                    __shfl_xor_sync(0xffffffffu, p.q_max, step),
                                    {0, 0}};
        ho_loss_part_add(&p, &other);
    }
    return p;
}

/* Writes dQ of 16 rows of a warp; `to` is the thread's place. */
static __device__ __forceinline__ void store_dq(uint8_t *to, const uint32_t (&dq)[12])
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        *(uint4 *)(to + h * 1024) = make_uint4(dq[h], dq[2 + h], dq[4 + h], dq[6 + h]);
        *(uint4 *)(to + h * 1024 + 512) = make_uint4(dq[8 + h], dq[10 + h], 0, 0);
    }
}

/* Source and size of a weight stage: forward stages 0..9 of a network's weights, or backward stages
 * 0..8 (W4, then the backward copies of W3 and W2). */
static __device__ __forceinline__ uint32_t weight_stage(const uint8_t *weights,
                                                        const uint8_t *backward, int stage,
                                                        bool is_backward, const uint8_t **from)
{
    if (!is_backward) {
        *from = weights + stage * FUSED_STAGE;
        return stage == FUSED_FORWARD_STAGES - 1 ? FUSED_W4_BYTES : FUSED_STAGE;
    }
    if (stage == 0) {
        *from = weights + HO_FUSED_W4;
        return FUSED_W4_BYTES;
    }
    *from = backward + (stage < 5 ? 131072 + (stage - 1) * FUSED_STAGE : (stage - 5) * FUSED_STAGE);
    return FUSED_STAGE;
}

/* ---- states ---- */

/* Byte of (row, 8-column chunk) in a tile of X. */
static __device__ __forceinline__ int x_chunk_at(int row, int chunk)
{
    return row / 8 * 1024 + chunk * 128 + row % 8 * 16;
}

/* Puts a row's portfolio columns into a gathered tile. */
static __device__ __forceinline__ void patch_portfolio(const ho_learn_view &v, uint8_t *x, int row,
                                                       const float *portfolio)
{
    for (int i = 0; i < v.net.portfolio; i++) {
        const int c = v.net.market + i;
        *(__nv_bfloat16 *)(x + x_chunk_at(row, c / 8) + c % 8 * 2) = __float2bfloat16(portfolio[i]);
    }
}

static __device__ __forceinline__ void copy16(uint32_t to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

static __device__ __forceinline__ void copies_finish(void)
{
    asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;" ::: "memory");
}

/* A warp gathers 32 rows of a tile of states to x, whole row groups; bar, from: of the thread's
 * row, and its portfolio. Ends with the rows visible to wgmma. */
static __device__ __forceinline__ void gather_rows(const ho_learn_view &v, uint8_t *x, int32_t bar,
                                                   const float *from)
{
    int l = (int)threadIdx.x % 32, market = v.net.market;
    asm volatile("" : "+r"(l), "+r"(market)); /* places worked out again are better than spilled */
#pragma unroll
    for (int i = 0; i < 8; i++) { /* 4 rows, a thread one of 8 chunks */
        const int row = i * 4 + l / 8;
        const int64_t at = __shfl_sync(0xffffffffu, bar, row);
        copy16(shared_u32(x) + x_chunk_at(row, l % 8),
               (const __nv_bfloat16 *)v.features + at * HO_STATE_PAD + l % 8 * 8);
    }
    float portfolio[HO_PORTFOLIO_FEATURES]; /* on their way with the columns */
#pragma unroll
    for (int i = 0; i < HO_PORTFOLIO_FEATURES; i++) {
        portfolio[i] = from[i];
    }
    copies_finish();
    __syncwarp(); /* all columns before the portfolio's */
#pragma unroll
    for (int i = 0; i < HO_PORTFOLIO_FEATURES; i++) {
        if (i < v.net.portfolio) {
            const int c = market + i;
            *(__nv_bfloat16 *)(x + x_chunk_at(l, c / 8) + c % 8 * 2) =
                __float2bfloat16(portfolio[i]);
        }
    }
    proxy_fence();
}

/* A thread's place in H or D of layer 0 for its warp's first row group. */
static __device__ __forceinline__ int64_t thread_place(int row_group, int row_group_bytes)
{
    const int l = threadIdx.x % 32;
    return (int64_t)row_group * row_group_bytes + l % 4 * 128 + l / 4 * 16;
}

/* ---- a pass ---- */

/* One forward pass; with `save`, H1..H3 and the signs are kept for the backward pass. x_free:
 * barrier to arrive on when the tile of states has been read, 0: none. */
template <bool TURNS>
static __device__ __forceinline__ void
forward_pass(float (&acc)[128], uint32_t (&a)[64], float (&q)[FUSED_Q], uint32_t x, uint32_t bias,
             bool save, uint8_t *h_place, int64_t layer_bytes, uint32_t signs, int sign_stride,
             uint32_t x_free, weight_ring &ring, int warpgroup)
{
    const int64_t half = layer_bytes / 2;
    first_layer<TURNS>(acc, x, ring, warpgroup);
    if (x_free && threadIdx.x % 32 == 0) {
        barrier_arrive(x_free);
    }
    activate(acc, a, bias);
    if (save) {
        save_signs(a, signs, sign_stride);
        store_rows(h_place, a, half);
    }
    square_layer<true, TURNS>(acc, a, ring, warpgroup);
    activate(acc, a, bias + 256 * 4);
    if (save) {
        save_signs(a, signs + 4 * sign_stride, sign_stride);
        store_rows(h_place + layer_bytes, a, half);
    }
    square_layer<true, TURNS>(acc, a, ring, warpgroup);
    activate(acc, a, bias + 512 * 4);
    if (save) {
        save_signs(a, signs + 8 * sign_stride, sign_stride);
        store_rows(h_place + 2 * layer_bytes, a, half);
    }
    output_layer<TURNS>(q, a, ring, bias + FUSED_BIAS4 * 4, warpgroup);
}

#endif
