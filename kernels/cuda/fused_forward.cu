/* SPDX-License-Identifier: Apache-2.0
 * The fused first half of an update on sm_90a: draw and gather the batch, three forward passes, td
 * errors, backward through the activations. Leaves X, H1..H3, D1..D3, dQ (fused_layout.h) for the
 * weight gradients, and the loss parts of each 16 rows. Two launch forms with equal bits:
 *   forward_backward_stream  one block a multiprocessor walks over tiles of 128 rows of all lanes;
 *                            two warpgroups compute, one warp streams weights, three gather the
 * next tile. For many lanes. forward_backward_split   a cluster of three blocks takes 64 rows, one
 * forward pass each. For few lanes, where a round is bound by the chain of layers. Follows the
 * prototype's measurements in docs/gpu.md. */
#include "kernels/cuda/device.h"
#include "kernels/cuda/early_launch.cuh"
#include "kernels/cuda/fused_forward.cuh"
#include "kernels/cuda/priority.cuh"

enum {
    /* stream */
    STREAM_THREADS = 384,
    STREAM_CONSUMERS = 256,
    STREAM_SLOTS = 4,
    STREAM_GATHERERS = 96,
    /* split */
    SPLIT_THREADS = 160,
    SPLIT_CONSUMERS = 128,
    SPLIT_ROWS = 64,
    SPLIT_SLOTS = 5,
};

/* Shared memory, bytes from its start. */
enum {
    STREAM_X = STREAM_SLOTS * FUSED_STAGE, /* s', then s: 128 rows each */
    STREAM_STASH = STREAM_X + 2 * X_TILE,  /* target outputs [24][256] floats */
    STREAM_SIGNS = STREAM_STASH + FUSED_Q * STREAM_CONSUMERS * 4,
    STREAM_BIAS = STREAM_SIGNS + FUSED_SIGN_WORDS * STREAM_CONSUMERS * 4, /* [2 tiles][2 nets] */
    STREAM_ROW = STREAM_BIAS + 2 * 2 * FUSED_BIASES * 4,                  /* [2 tiles][128] */
    STREAM_BARRIERS = STREAM_ROW + 2 * HO_FUSED_ROWS * (int)sizeof(fused_row),
    STREAM_BYTES = STREAM_BARRIERS + 128,

    SPLIT_X = SPLIT_SLOTS * FUSED_STAGE,
    SPLIT_STASH = SPLIT_X + SPLIT_ROWS * HO_FUSED_X_ROW, /* target, then online s' outputs */
    SPLIT_SIGNS = SPLIT_STASH + 2 * FUSED_Q * SPLIT_CONSUMERS * 4,
    SPLIT_BIAS = SPLIT_SIGNS + FUSED_SIGN_WORDS * SPLIT_CONSUMERS * 4,
    SPLIT_ROW = SPLIT_BIAS + FUSED_BIASES * 4,
    SPLIT_BARRIERS = SPLIT_ROW + SPLIT_ROWS * (int)sizeof(fused_row),
    SPLIT_BYTES = SPLIT_BARRIERS + 128,
};

#if FUSED_CODE

static __device__ __forceinline__ bool lane_learns(const ho_learn_view &v, int k)
{
    return v.lane[k].learning && v.lane[k].guard == 0;
}

static __device__ __forceinline__ const ho_replay_record *sampled_record(const ho_learn_view &v,
                                                                         int k, int update, int row)
{
    return &v.replay[(size_t)k * v.replay_capacity + ho_row_slot(v, k, update, row)];
}

static __device__ __forceinline__ void fill_row(fused_row *to, const ho_learn_view &v, int k,
                                                int row, const ho_replay_record *record)
{
    to->bar = record->bar;
    to->next_bar = record->next_bar;
    to->action = record->action;
    to->reward = record->reward;
    to->discount = record->discount;
    to->weight = ho_row_weight_alone(v, k, row);
}

/* The backward half for a warpgroup whose online pass over s left q and the saved signs. */
template <bool TURNS>
static __device__ __forceinline__ void
backward_pass(const ho_learn_view &v, int k, float (&acc)[128], uint32_t (&a)[64],
              const float (&q)[FUSED_Q], const float (&y)[2], const fused_row *rows,
              int row_in_tile, int row_group, uint32_t signs, int sign_stride, weight_ring &ring,
              int warpgroup)
{
    const int l = threadIdx.x % 32, batch = v.batch;
    uint8_t *lane = v.fused_activations + (size_t)k * ho_fused_activation_bytes(batch);
    const int64_t half = (int64_t)batch * HO_FUSED_HALF_ROW;
    uint32_t dq[12];
    ho_loss_part part;
    const float delta = (float)v.lane[k].agent.huber_delta, inv_batch = 1.0f / (float)batch;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const float td =
            fused_td(q, y[h], h, rows[row_in_tile + h * 8], delta, inv_batch, dq, &part);
        if (v.priority.td && l % 4 == 0) {
            v.priority.td[(size_t)k * batch + (row_group + h) * 8 + l / 4] = td;
        }
    }
    part = quad_parts_sum(part);
    if (l == 0) {
        v.loss_part[(size_t)k * v.loss_parts + row_group / 2] = part;
    }
    store_dq(lane + ho_fused_dq_at(batch) + thread_place(row_group, 1024), dq);
    output_layer_backward<TURNS>(acc, dq, ring, warpgroup);
    const int64_t place = thread_place(row_group, 2048);
    activate_backward(acc, a, signs + 8 * sign_stride, sign_stride);
    store_rows(lane + ho_fused_d_at(2, batch) + place, a, half);
    square_layer<false, TURNS>(acc, a, ring, warpgroup);
    activate_backward(acc, a, signs + 4 * sign_stride, sign_stride);
    store_rows(lane + ho_fused_d_at(1, batch) + place, a, half);
    square_layer<false, TURNS>(acc, a, ring, warpgroup);
    activate_backward(acc, a, signs, sign_stride);
    store_rows(lane + ho_fused_d_at(0, batch) + place, a, half);
}

/* ---- stream ---- */

/* The producer warp of weights: 3 x 10 forward stages (target, online, online), 9 backward. */
static __device__ void stream_weights(const ho_learn_view &v, uint32_t base, uint32_t full,
                                      uint32_t empty)
{
    const int tiles_lane = v.batch / HO_FUSED_ROWS, tiles = v.lanes * tiles_lane;
    int slot = 0, phase = 0;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int k = tile / tiles_lane;
        if (!lane_learns(v, k)) {
            continue;
        }
        const uint8_t *online = v.fused_weights + (size_t)k * 2 * HO_FUSED_WEIGHT_BYTES;
        const uint8_t *backward = v.fused_backward + (size_t)k * HO_FUSED_BACKWARD_BYTES;
        for (int s = 0; s < 3 * FUSED_FORWARD_STAGES + FUSED_BACKWARD_STAGES; s++) {
            const bool is_backward = s >= 3 * FUSED_FORWARD_STAGES;
            const int stage = is_backward ? s - 3 * FUSED_FORWARD_STAGES : s % FUSED_FORWARD_STAGES;
            const uint8_t *from;
            const uint32_t bytes =
                weight_stage(s < FUSED_FORWARD_STAGES ? online + HO_FUSED_WEIGHT_BYTES : online,
                             backward, stage, is_backward, &from);
            barrier_wait(empty + 8 * slot, phase ^ 1);
            if (threadIdx.x % 32 == 0) {
                barrier_expect(full + 8 * slot, bytes);
                bulk_load(base + slot * FUSED_STAGE, from, bytes, full + 8 * slot);
            }
            __syncwarp();
            if (++slot == STREAM_SLOTS) {
                slot = 0;
                phase ^= 1;
            }
        }
    }
}

/* Addresses of the barriers. Halves of the two tiles of states: 0 s', 1 s. */
typedef struct stream_barriers {
    uint32_t full, empty; /* of weight stages, 8 bytes each */
    uint32_t ready, free; /* of the two tiles of states, 8 bytes each */
    uint32_t tile_done;
} stream_barriers;

/* Three warps gather the next tile's rows while the present one is computed, each on its own: 32
 * rows of s' or s at a time, a thread a row. */
static __device__ void stream_gather(const ho_learn_view &v, int update, uint8_t *shared,
                                     const stream_barriers &b)
{
    enum { GROUP = 32, TILE_GROUPS = HO_FUSED_ROWS / GROUP, GROUP_BYTES = GROUP * HO_FUSED_X_ROW };
    const int id = (int)threadIdx.x - STREAM_CONSUMERS - 32, l = id % 32;
    const int tiles_lane = v.batch / HO_FUSED_ROWS, tiles = v.lanes * tiles_lane;
    int n = 0;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int k = tile / tiles_lane, row0 = tile % tiles_lane * HO_FUSED_ROWS;
        if (!lane_learns(v, k)) {
            continue;
        }
        fused_row *rows = (fused_row *)(shared + STREAM_ROW) + n % 2 * HO_FUSED_ROWS;
        if (n >= 2) {
            barrier_wait(b.tile_done, n & 1);
        }
        float *bias = (float *)(shared + STREAM_BIAS) + n % 2 * 2 * FUSED_BIASES;
        const size_t biases = (size_t)k * v.net.params + v.net.weights;
#pragma unroll 3
        for (int i = id; i < FUSED_BIASES; i += STREAM_GATHERERS) {
            bias[i] = v.online[biases + i];
            bias[FUSED_BIASES + i] = v.target[biases + i];
        }
#pragma unroll 1
        for (int group = id / 32; group < 2 * TILE_GROUPS; group += STREAM_GATHERERS / 32) {
            const bool next = group < TILE_GROUPS;
            const int half = next ? 0 : 1, first = group % TILE_GROUPS * GROUP, r = first + l;
            const ho_replay_record *record = sampled_record(v, k, update, row0 + r);
            const int32_t bar = next ? record->next_bar : record->bar;
            if (next) {
                fill_row(&rows[r], v, k, row0 + r, record);
            }
            if (n >= 1) {
                barrier_wait(b.free + 8 * half, (n - 1) & 1);
                if (!next && l == 0) {
                    bulk_store_wait_read();
                }
                __syncwarp();
            }
            uint8_t *x = shared + STREAM_X + half * X_TILE + first / 8 * 1024;
            gather_rows(v, x, bar, next ? record->next_portfolio : record->portfolio);
            barrier_arrive(b.ready + 8 * half);
            __syncwarp();
            if (!next && l == 0) {
                bulk_store(v.fused_activations + (size_t)k * ho_fused_activation_bytes(v.batch) +
                               (int64_t)(row0 + first) * HO_FUSED_X_ROW,
                           shared_u32(x), GROUP_BYTES);
            }
        }
        n++;
    }
    if (l == 0) {
        bulk_store_wait();
    }
}

/* The computing warpgroups. */
static __device__ void stream_consume(const ho_learn_view &v, uint8_t *shared,
                                      const stream_barriers &b)
{
    const uint32_t shared_at = shared_u32(shared);
    const int warpgroup = (int)threadIdx.x / 128, warp = (int)threadIdx.x / 32 % 4;
    const int g = (int)threadIdx.x % 32 / 4;
    const int tiles_lane = v.batch / HO_FUSED_ROWS, tiles = v.lanes * tiles_lane;
    const int stride = STREAM_CONSUMERS * 4;
    const uint32_t stash = shared_at + STREAM_STASH + threadIdx.x * 4;
    const uint32_t signs = shared_at + STREAM_SIGNS + threadIdx.x * 4;
    weight_ring ring = {shared_at, b.full, b.empty, STREAM_SLOTS, 0, 0};
    if (warpgroup == 1) {
        turn_pass<true>(1); /* warpgroup 0 begins */
    }
    int n = 0;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int k = tile / tiles_lane, row0 = tile % tiles_lane * HO_FUSED_ROWS;
        if (!lane_learns(v, k)) {
            continue;
        }
        const fused_row *rows = (const fused_row *)(shared + STREAM_ROW) + n % 2 * HO_FUSED_ROWS;
        const int row_in_tile = warpgroup * 64 + warp * 16 + g;
        const int row_group = row0 / 8 + warpgroup * 8 + warp * 2;
        const int64_t layer_bytes = (int64_t)v.batch * HO_FUSED_H_ROW;
        uint8_t *h_place = v.fused_activations + (size_t)k * ho_fused_activation_bytes(v.batch) +
                           ho_fused_h_at(0, v.batch) + thread_place(row_group, 2048);
        const int double_q = v.lane[k].agent.double_q;
        float acc[128], q[FUSED_Q], y[2] = {0.0f, 0.0f};
        uint32_t a[64];
#pragma unroll 1
        for (int pass = 0; pass < HO_PASSES; pass++) { /* target s', online s', online s */
            const bool save = pass == HO_PASSES - 1;
            if (pass != 1) {
                barrier_wait(b.ready + 8 * save, n & 1);
            }
            const uint32_t bias =
                shared_at + STREAM_BIAS + (n % 2 * 2 + (pass == 0)) * FUSED_BIASES * 4;
            forward_pass<true>(acc, a, q,
                               shared_at + STREAM_X + (save ? X_TILE : 0) + warpgroup * X_TILE / 2,
                               bias, save, h_place, layer_bytes, signs, stride,
                               pass == 0 ? 0 : b.free + 8 * save, ring, warpgroup);
            if (pass == 0) {
#pragma unroll
                for (int j = 0; j < FUSED_Q; j++) {
                    shared_store(stash + j * stride, q[j]);
                }
            } else if (pass == 1) {
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    y[h] = fused_target(q, stash, stride, h, rows[row_in_tile + h * 8], double_q);
                }
            }
        }
        backward_pass<true>(v, k, acc, a, q, y, rows, row_in_tile, row_group, signs, stride, ring,
                            warpgroup);
        if (threadIdx.x % 32 == 0) {
            barrier_arrive(b.tile_done);
        }
        n++;
    }
    if (warpgroup == 0) {
        turn_take<true>(0); /* takes the turn that warpgroup 1 passed last */
    }
}

#endif

static __global__ void __launch_bounds__(STREAM_THREADS, 1)
    forward_backward_stream(const __grid_constant__ ho_learn_view v, int update)
{
#if FUSED_CODE
    extern __shared__ __align__(1024) uint8_t shared[];
    const uint32_t first = shared_u32(shared) + STREAM_BARRIERS, states = first + 16 * STREAM_SLOTS;
    const stream_barriers b = {first, first + 8 * STREAM_SLOTS, states, states + 16, states + 32};
    if (threadIdx.x == 0) {
        for (int i = 0; i < STREAM_SLOTS; i++) {
            barrier_init(b.full + 8 * i, 1);
            barrier_init(b.empty + 8 * i, STREAM_CONSUMERS / 32);
        }
        for (int i = 0; i < 2; i++) {
            barrier_init(b.ready + 8 * i, HO_FUSED_ROWS);
            barrier_init(b.free + 8 * i, STREAM_CONSUMERS / 32);
        }
        barrier_init(b.tile_done, STREAM_CONSUMERS / 32);
        barrier_init_fence();
    }
    __syncthreads();
    if (threadIdx.x >= STREAM_CONSUMERS) {
        registers_give<56>();
        if (threadIdx.x < STREAM_CONSUMERS + 32) {
            stream_weights(v, shared_u32(shared), b.full, b.empty);
        } else {
            stream_gather(v, update, shared, b);
        }
    } else {
        registers_take<224>();
        stream_consume(v, shared, b);
    }
#endif
}

/* ---- split ---- */

/* Block rank r of a cluster: 0 online s with td and backward, 1 online s', 2 target s'. */
static __global__ void CLUSTER_OF_THREE __launch_bounds__(SPLIT_THREADS, 1)
    forward_backward_split(const __grid_constant__ ho_learn_view v, int update)
{
#if FUSED_CODE
    extern __shared__ __align__(1024) uint8_t shared[];
    const uint32_t shared_at = shared_u32(shared);
    const uint32_t full = shared_at + SPLIT_BARRIERS, empty = full + 8 * SPLIT_SLOTS;
    const int role = blockIdx.x % 3, tile = (int)blockIdx.x / 3;
    const int tiles_lane = v.batch / SPLIT_ROWS;
    const int k = tile / tiles_lane, row0 = tile % tiles_lane * SPLIT_ROWS;
    const int id = (int)threadIdx.x;
    /* The rows of uniform replay do not depend on the update before. */
    const bool uniform = v.priority.shape.kind == HO_REPLAY_UNIFORM;
    if (!uniform) {
        grid_wait();
    }
    if (!v.lane[k].learning) {
        return; /* the whole cluster does */
    }
    if (id == 0) {
        for (int i = 0; i < SPLIT_SLOTS; i++) {
            barrier_init(full + 8 * i, 1);
            barrier_init(empty + 8 * i, SPLIT_CONSUMERS / 32);
        }
        barrier_init_fence();
    }
    fused_row *rows = (fused_row *)(shared + SPLIT_ROW);
    const ho_replay_record *record = NULL;
    if (id < SPLIT_ROWS) {
        record = sampled_record(v, k, update, row0 + id);
        fill_row(&rows[id], v, k, row0 + id, record);
    }
    __syncthreads();
    if (id < SPLIT_CONSUMERS) {
        for (int i = id; i < SPLIT_ROWS * 8; i += SPLIT_CONSUMERS) {
            const int r = i / 8, chunk = i % 8;
            const int64_t bar = role == 0 ? rows[r].bar : rows[r].next_bar;
            copy16(shared_at + SPLIT_X + x_chunk_at(r, chunk),
                   (const __nv_bfloat16 *)v.features + bar * HO_STATE_PAD + chunk * 8);
        }
    }
    if (uniform) {
        grid_wait();
    }
    grid_launch();
    if (v.lane[k].guard != 0) {
        copies_finish();
        return; /* the whole cluster does */
    }
    if (id < SPLIT_CONSUMERS) {
        const float *bias =
            (role == 2 ? v.target : v.online) + (size_t)k * v.net.params + v.net.weights;
        for (int i = id; i < FUSED_BIASES; i += SPLIT_CONSUMERS) {
            ((float *)(shared + SPLIT_BIAS))[i] = bias[i];
        }
        copies_finish();
    }
    __syncthreads();
    if (id < SPLIT_ROWS) {
        patch_portfolio(v, shared + SPLIT_X, id,
                        role == 0 ? record->portfolio : record->next_portfolio);
    }
    proxy_fence();
    cluster_arrive();
    cluster_wait();
    if (id >= SPLIT_CONSUMERS) {
        const uint8_t *online = v.fused_weights + (size_t)k * 2 * HO_FUSED_WEIGHT_BYTES;
        const uint8_t *backward = v.fused_backward + (size_t)k * HO_FUSED_BACKWARD_BYTES;
        const int stages = FUSED_FORWARD_STAGES + (role == 0 ? FUSED_BACKWARD_STAGES : 0);
        int slot = 0, phase = 0;
        for (int s = 0; s < stages; s++) {
            const bool is_backward = s >= FUSED_FORWARD_STAGES;
            const uint8_t *from;
            const uint32_t bytes =
                weight_stage(role == 2 ? online + HO_FUSED_WEIGHT_BYTES : online, backward,
                             is_backward ? s - FUSED_FORWARD_STAGES : s, is_backward, &from);
            barrier_wait(empty + 8 * slot, phase ^ 1);
            if (id % 32 == 0) {
                barrier_expect(full + 8 * slot, bytes);
                bulk_load(shared_at + slot * FUSED_STAGE, from, bytes, full + 8 * slot);
            }
            __syncwarp();
            /* The producer must not hold up the exchange: it arrives when all that leads to it is
             * on its way, and waits at the end. Not before: under compute-sanitizer arriving lasts
             * until everybody has. */
            if (s == FUSED_FORWARD_STAGES - 1) {
                cluster_arrive();
            }
            if (++slot == SPLIT_SLOTS) {
                slot = 0;
                phase ^= 1;
            }
        }
        cluster_wait();
        return;
    }
    const int warp = id / 32, g = id % 32 / 4, stride = SPLIT_CONSUMERS * 4;
    const int row_group = row0 / 8 + warp * 2;
    const uint32_t stash = shared_at + SPLIT_STASH + id * 4;
    const uint32_t signs = shared_at + SPLIT_SIGNS + id * 4;
    uint8_t *lane = v.fused_activations + (size_t)k * ho_fused_activation_bytes(v.batch);
    if (role == 0) {
        uint4 *x = (uint4 *)(lane + (int64_t)row0 * HO_FUSED_X_ROW);
        for (int i = id; i < SPLIT_ROWS * HO_FUSED_X_ROW / 16; i += SPLIT_CONSUMERS) {
            x[i] = ((const uint4 *)(shared + SPLIT_X))[i];
        }
    }
    weight_ring ring = {shared_at, full, empty, SPLIT_SLOTS, 0, 0};
    float acc[128], q[FUSED_Q];
    uint32_t a[64];
    forward_pass<false>(acc, a, q, shared_at + SPLIT_X, shared_at + SPLIT_BIAS, role == 0,
                        lane + ho_fused_h_at(0, v.batch) + thread_place(row_group, 2048),
                        (int64_t)v.batch * HO_FUSED_H_ROW, signs, stride, 0, ring, 0);
    if (role != 0) {
        const uint32_t to = cluster_address(stash + (role == 2 ? 0 : FUSED_Q * stride), 0);
#pragma unroll
        for (int j = 0; j < FUSED_Q; j++) {
            cluster_store(to + j * stride, q[j]);
        }
    }
    cluster_arrive();
    cluster_wait();
    if (role != 0) {
        return;
    }
    float next[FUSED_Q], y[2];
#pragma unroll
    for (int j = 0; j < FUSED_Q; j++) {
        next[j] = shared_load(stash + (FUSED_Q + j) * stride);
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
        y[h] = fused_target(next, stash, stride, h, rows[warp * 16 + g + h * 8],
                            v.lane[k].agent.double_q);
    }
    backward_pass<false>(v, k, acc, a, q, y, rows, warp * 16 + g, row_group, signs, stride, ring,
                         0);
#endif
}

/* ---- launcher ---- */

ho_status ho_fused_forward_backward(const ho_learn_view *v, int update, cudaStream_t stream)
{
    if (v->lanes <= HO_FUSED_FEW) {
        const unsigned blocks = (unsigned)(3 * v->lanes * (v->batch / SPLIT_ROWS));
        /* not the first of an epoch: what it reads before grid_wait is written just before */
        const cudaError_t rc = launch_early(forward_backward_split, dim3(blocks), SPLIT_THREADS,
                                            SPLIT_BYTES, stream, update > 0, *v, update);
        return ho_cuda_status(rc, "forward_backward_split");
    }
    const int tiles = v->lanes * (v->batch / HO_FUSED_ROWS);
    const unsigned blocks = (unsigned)(tiles < v->processors ? tiles : v->processors);
    forward_backward_stream<<<blocks, STREAM_THREADS, STREAM_BYTES, stream>>>(*v, update);
    return ho_cuda_status(cudaGetLastError(), "forward_backward_stream");
}

ho_status ho_fused_forward_prepare(int lanes)
{
    const cudaFuncAttribute attribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
    return lanes <= HO_FUSED_FEW ? ho_cuda_status(cudaFuncSetAttribute(forward_backward_split,
                                                                       attribute, SPLIT_BYTES),
                                                  "shared memory of forward_backward_split")
                                 : ho_cuda_status(cudaFuncSetAttribute(forward_backward_stream,
                                                                       attribute, STREAM_BYTES),
                                                  "shared memory of forward_backward_stream");
}
