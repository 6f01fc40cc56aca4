/* SPDX-License-Identifier: Apache-2.0
 * The td errors of an epoch's new transitions on sm_90a, for priorities: three forward passes over
 * all of them, nothing kept but |td|. The pieces and their sums are those of an update
 * (fused_forward.cuh), so a transition's error is the one an update with the same weights finds.
 * One block a multiprocessor walks over tiles of 128 rows of all lanes; two warpgroups compute, one
 * warp streams weights, two gather. The tile of s' is free after the second pass and that of s is
 * wanted in the third only, so a single buffer of each keeps the gather out of the way. */
#include "kernels/cuda/device.h"
#include "kernels/cuda/fused_forward.cuh"

enum {
    TD_THREADS = 384,
    TD_CONSUMERS = 256,
    TD_GATHERERS = 64,
    TD_SLOTS = 4,

    /* shared memory, bytes from its start */
    TD_X = TD_SLOTS * FUSED_STAGE,                   /* s', then s: 128 rows each */
    TD_STASH = TD_X + 2 * X_TILE,                    /* target outputs [24][256] floats */
    TD_BIAS = TD_STASH + FUSED_Q * TD_CONSUMERS * 4, /* [2 tiles][2 nets] */
    TD_ROW = TD_BIAS + 2 * 2 * FUSED_BIASES * 4,     /* [2 tiles][128] */
    TD_BARRIERS = TD_ROW + 2 * HO_FUSED_ROWS * (int)sizeof(fused_row),
    TD_BYTES = TD_BARRIERS + 128,
};

#if FUSED_CODE

/* Addresses of the barriers beside the weight ring's. */
typedef struct td_barriers {
    uint32_t full, empty;           /* of weight stages */
    uint32_t next_ready, next_free; /* the tile of s' */
    uint32_t now_ready, now_free;   /* the tile of s */
    uint32_t tile_done;
} td_barriers;

/* Tiles of one lane in the grid's numbering; those past its transitions are skipped. */
static __device__ __forceinline__ int tiles_of_lane(const ho_learn_view &v)
{
    return (v.new_rows + HO_FUSED_ROWS - 1) / HO_FUSED_ROWS;
}

/* Transitions of a lane this epoch; 0 for a lane that does not run. */
static __device__ __forceinline__ int new_transitions(const ho_learn_view &v, int k)
{
    const ho_lane_device *lane = &v.lane[k];
    return lane->active && lane->guard == 0 ? lane->stored : 0;
}

/* The producer warp of weights: target, online, online. */
static __device__ void td_weights(const ho_learn_view &v, uint32_t base, const td_barriers &b)
{
    const int tiles_lane = tiles_of_lane(v), tiles = v.lanes * tiles_lane;
    int slot = 0, phase = 0;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int k = tile / tiles_lane;
        if (tile % tiles_lane * HO_FUSED_ROWS >= new_transitions(v, k)) {
            continue;
        }
        const uint8_t *online = v.fused_weights + (size_t)k * 2 * HO_FUSED_WEIGHT_BYTES;
        for (int s = 0; s < HO_PASSES * FUSED_FORWARD_STAGES; s++) {
            const uint8_t *from;
            const uint32_t bytes =
                weight_stage(s < FUSED_FORWARD_STAGES ? online + HO_FUSED_WEIGHT_BYTES : online,
                             NULL, s % FUSED_FORWARD_STAGES, false, &from);
            barrier_wait(b.empty + 8 * slot, phase ^ 1);
            if (threadIdx.x % 32 == 0) {
                barrier_expect(b.full + 8 * slot, bytes);
                bulk_load(base + slot * FUSED_STAGE, from, bytes, b.full + 8 * slot);
            }
            __syncwarp();
            if (++slot == TD_SLOTS) {
                slot = 0;
                phase ^= 1;
            }
        }
    }
}

/* Copies the market rows of a tile and puts the portfolio columns in. */
static __device__ void td_gather_states(const ho_learn_view &v, const ho_lane_device *lane,
                                        const ho_replay_record *ring, const fused_row *rows,
                                        int row0, int stored, uint8_t *x, bool next)
{
    enum { GATHER_BARRIER = 2, CHUNKS = HO_FUSED_ROWS * 8 };
    const uint32_t x_at = shared_u32(x);
    const int id = (int)threadIdx.x - TD_CONSUMERS - 32;
#pragma unroll 8
    for (int i = 0; i < CHUNKS / TD_GATHERERS; i++) {
        const int item = i * TD_GATHERERS + id, chunk = item % 8, r = item / 8;
        const int64_t bar = next ? rows[r].next_bar : rows[r].bar;
        copy16(x_at + x_chunk_at(r, chunk),
               (const __nv_bfloat16 *)v.features + bar * HO_STATE_PAD + chunk * 8);
    }
    copies_finish();
    named_sync(GATHER_BARRIER, TD_GATHERERS); /* all columns before the portfolio's */
    for (int r = id; r < HO_FUSED_ROWS; r += TD_GATHERERS) {
        const int i = row0 + r < stored ? row0 + r : stored - 1;
        const ho_replay_record *record = &ring[ho_new_slot(lane, i, v.replay_capacity)];
        patch_portfolio(v, x, r, next ? record->next_portfolio : record->portfolio);
    }
    proxy_fence();
}

/* Two warps gather the next tile's rows while the present one is computed. Rows past the lane's
 * transitions repeat its last one. */
static __device__ void td_gather(const ho_learn_view &v, uint8_t *shared, const td_barriers &b)
{
    enum { GATHER_BARRIER = 2 };
    const int id = (int)threadIdx.x - TD_CONSUMERS - 32;
    const int tiles_lane = tiles_of_lane(v), tiles = v.lanes * tiles_lane;
    int n = 0;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int k = tile / tiles_lane, row0 = tile % tiles_lane * HO_FUSED_ROWS;
        const int stored = new_transitions(v, k);
        if (row0 >= stored) {
            continue;
        }
        const ho_lane_device *lane = &v.lane[k];
        const ho_replay_record *ring = v.replay + (size_t)k * v.replay_capacity;
        fused_row *rows = (fused_row *)(shared + TD_ROW) + n % 2 * HO_FUSED_ROWS;
        if (n >= 2) {
            barrier_wait(b.tile_done, n & 1);
        }
        for (int r = id; r < HO_FUSED_ROWS; r += TD_GATHERERS) {
            const int i = row0 + r < stored ? row0 + r : stored - 1;
            const ho_replay_record *record = &ring[ho_new_slot(lane, i, v.replay_capacity)];
            rows[r].bar = record->bar;
            rows[r].next_bar = record->next_bar;
            rows[r].action = record->action;
            rows[r].reward = record->reward;
            rows[r].discount = record->discount;
        }
        float *bias = (float *)(shared + TD_BIAS) + n % 2 * 2 * FUSED_BIASES;
        const size_t biases = (size_t)k * v.net.params + v.net.weights;
        for (int i = id; i < FUSED_BIASES; i += TD_GATHERERS) {
            bias[i] = v.online[biases + i];
            bias[FUSED_BIASES + i] = v.target[biases + i];
        }
        named_sync(GATHER_BARRIER, TD_GATHERERS);
        if (n >= 1) {
            barrier_wait(b.next_free, (n - 1) & 1);
        }
        td_gather_states(v, lane, ring, rows, row0, stored, shared + TD_X, true);
        barrier_arrive(b.next_ready);
        if (n >= 1) {
            barrier_wait(b.now_free, (n - 1) & 1);
        }
        td_gather_states(v, lane, ring, rows, row0, stored, shared + TD_X + X_TILE, false);
        barrier_arrive(b.now_ready);
        n++;
    }
}

/* The computing warpgroups. */
static __device__ void td_consume(const ho_learn_view &v, uint8_t *shared, const td_barriers &b)
{
    const uint32_t shared_at = shared_u32(shared);
    const int warpgroup = (int)threadIdx.x / 128, warp = (int)threadIdx.x / 32 % 4;
    const int g = (int)threadIdx.x % 32 / 4, stride = TD_CONSUMERS * 4;
    const int tiles_lane = tiles_of_lane(v), tiles = v.lanes * tiles_lane;
    const int row_in_tile = warpgroup * 64 + warp * 16 + g;
    const uint32_t stash = shared_at + TD_STASH + threadIdx.x * 4;
    weight_ring ring = {shared_at, b.full, b.empty, TD_SLOTS, 0, 0};
    if (warpgroup == 1) {
        turn_pass<true>(1); /* warpgroup 0 begins */
    }
    int n = 0;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int k = tile / tiles_lane, row0 = tile % tiles_lane * HO_FUSED_ROWS;
        const int stored = new_transitions(v, k);
        if (row0 >= stored) {
            continue;
        }
        const fused_row *rows = (const fused_row *)(shared + TD_ROW) + n % 2 * HO_FUSED_ROWS;
        const int double_q = v.lane[k].agent.double_q;
        float acc[128], q[FUSED_Q], y[2] = {0.0f, 0.0f};
        uint32_t a[64];
        barrier_wait(b.next_ready, n & 1);
#pragma unroll 1
        for (int pass = 0; pass < HO_PASSES; pass++) { /* target s', online s', online s */
            const bool now = pass == HO_PASSES - 1;
            const uint32_t bias =
                shared_at + TD_BIAS + (n % 2 * 2 + (pass == 0)) * FUSED_BIASES * 4;
            if (now) {
                barrier_wait(b.now_ready, n & 1);
            }
            forward_pass<true>(acc, a, q,
                               shared_at + TD_X + (now ? X_TILE : 0) + warpgroup * X_TILE / 2, bias,
                               false, NULL, 0, 0, 0,
                               now ? b.now_free : (pass == 1 ? b.next_free : 0), ring, warpgroup);
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
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int row = row_in_tile + h * 8;
            const float error = fused_taken(q, h, rows[row].action) - y[h];
            if (threadIdx.x % 4 == 0 && row0 + row < stored) {
                v.new_td[(size_t)k * v.new_rows + row0 + row] = fabsf(error);
            }
        }
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

static __global__ void __launch_bounds__(TD_THREADS, 1)
    new_td(const __grid_constant__ ho_learn_view v)
{
#if FUSED_CODE
    extern __shared__ __align__(1024) uint8_t shared[];
    const uint32_t first = shared_u32(shared) + TD_BARRIERS, after = first + 16 * TD_SLOTS;
    const td_barriers b = {first,      first + 8 * TD_SLOTS, after,     after + 8,
                           after + 16, after + 24,           after + 32};
    if (threadIdx.x == 0) {
        for (int i = 0; i < TD_SLOTS; i++) {
            barrier_init(b.full + 8 * i, 1);
            barrier_init(b.empty + 8 * i, TD_CONSUMERS / 32);
        }
        barrier_init(b.next_ready, TD_GATHERERS);
        barrier_init(b.next_free, TD_CONSUMERS / 32);
        barrier_init(b.now_ready, TD_GATHERERS);
        barrier_init(b.now_free, TD_CONSUMERS / 32);
        barrier_init(b.tile_done, TD_CONSUMERS / 32);
        barrier_init_fence();
    }
    __syncthreads();
    if (threadIdx.x >= TD_CONSUMERS) {
        registers_give<40>();
        if (threadIdx.x < TD_CONSUMERS + 32) {
            td_weights(v, shared_u32(shared), b);
        } else if (threadIdx.x < TD_CONSUMERS + 32 + TD_GATHERERS) {
            td_gather(v, shared, b);
        }
    } else {
        registers_take<232>();
        td_consume(v, shared, b);
    }
#endif
}

ho_status ho_fused_new_td(const ho_learn_view *v, cudaStream_t stream)
{
    const int tiles = v->lanes * ((v->new_rows + HO_FUSED_ROWS - 1) / HO_FUSED_ROWS);
    const unsigned blocks = (unsigned)(tiles < v->processors ? tiles : v->processors);
    new_td<<<blocks, TD_THREADS, TD_BYTES, stream>>>(*v);
    return ho_cuda_status(cudaGetLastError(), "new_td");
}

ho_status ho_fused_new_td_prepare(void)
{
    return ho_cuda_status(
        cudaFuncSetAttribute(new_td, cudaFuncAttributeMaxDynamicSharedMemorySize, TD_BYTES),
        "shared memory of new_td");
}
