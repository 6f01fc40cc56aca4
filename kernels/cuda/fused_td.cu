/* SPDX-License-Identifier: Apache-2.0
 * The td errors of an epoch's new transitions on sm_90a, for priorities. The pieces and their sums
 * are those of an update (fused_forward.cuh). Two launches over all rows of all lanes:
 *   VALUES  the online network at s: Q of the taken action, the greedy action;
 *   ERRORS  the target network at s', which needs the greedy action there. The next state of most
 *           transitions is the state of a later one, whose greedy action VALUES left; a tile with a
 *           row that has none gets a pass of the online network at s', too.
 * One block a multiprocessor walks over tiles of 128 rows; two warpgroups compute, one warp streams
 * weights, three gather the next tile into the other of two buffers. */
#include "kernels/cuda/device.h"
#include "kernels/cuda/fused_forward.cuh"

enum {
    TD_THREADS = 384,
    TD_CONSUMERS = 256,
    TD_GATHERERS = 96,
    TD_SLOTS = 4,
    TD_ROW_BYTES = 32,

    /* shared memory, bytes from its start */
    TD_X = TD_SLOTS * FUSED_STAGE,                        /* [2 tiles] of 128 states */
    TD_BIAS = TD_X + 2 * X_TILE,                          /* [2 tiles][2 nets] */
    TD_ROW = TD_BIAS + 2 * 2 * FUSED_BIASES * 4,          /* [2 tiles][128] */
    TD_NEEDS = TD_ROW + 2 * HO_FUSED_ROWS * TD_ROW_BYTES, /* [2 tiles][gathering warps] */
    TD_BARRIERS = TD_NEEDS + 32,
    TD_BYTES = TD_BARRIERS + 128,
};

typedef enum td_phase { TD_VALUES, TD_ERRORS } td_phase;

#if FUSED_CODE

/* What a consumer needs of a row. */
typedef struct td_row {
    int32_t bar;            /* of the state */
    int32_t action;         /* VALUES: taken; ERRORS: greedy at s', -1: not known */
    float reward, discount; /* ERRORS */
    float taken;            /* ERRORS: Q of the taken action */
    int32_t to;             /* where its result goes; -1: past the lane's transitions */
    int32_t double_q;
    int32_t pad;
} td_row;
static_assert(sizeof(td_row) == TD_ROW_BYTES, "td_row");

/* Addresses of the barriers beside the weight ring's; the last two: one a tile buffer. */
typedef struct td_barriers {
    uint32_t full, empty;       /* of weight stages */
    uint32_t ready, empty_tile; /* 8 bytes each */
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

/* Any row of the tile in buffer b lacks the greedy action at its next state. */
static __device__ __forceinline__ bool tile_needs(const uint8_t *shared, int b)
{
    const int32_t *needs = (const int32_t *)(shared + TD_NEEDS) + b * (TD_GATHERERS / 32);
    return (needs[0] | needs[1] | needs[2]) != 0;
}

/* The greedy action at the next state of transition i, if that is the state of a later one of this
 * epoch: equal bar and portfolio, hence equal values. Else -1. */
static __device__ __forceinline__ int32_t next_greedy(const ho_learn_view &v, int k,
                                                      const ho_replay_record *ring,
                                                      const ho_replay_record *record, int i,
                                                      int stored)
{
    const int64_t later = i + (int64_t)(record->next_bar - record->bar) * v.episodes;
    if (later <= i || later >= stored) {
        return -1;
    }
    const ho_replay_record *next =
        &ring[ho_new_slot(&v.lane[k], (int32_t)later, v.replay_capacity)];
    int32_t same = next->bar == record->next_bar;
    for (int c = 0; c < v.net.portfolio; c++) {
        same &= __float_as_int(next->portfolio[c]) == __float_as_int(record->next_portfolio[c]);
    }
    return same ? v.new_greedy[(size_t)k * v.new_rows + later] : -1;
}

/* The producer warp of weights. */
template <td_phase PHASE>
static __device__ void td_weights(const ho_learn_view &v, const uint8_t *shared,
                                  const td_barriers &b)
{
    const uint32_t base = shared_u32(shared);
    const int tiles_lane = tiles_of_lane(v), tiles = v.lanes * tiles_lane;
    int slot = 0, phase = 0, n = 0;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int k = tile / tiles_lane;
        if (tile % tiles_lane * HO_FUSED_ROWS >= new_transitions(v, k)) {
            continue;
        }
        const uint8_t *online = v.fused_weights + (size_t)k * 2 * HO_FUSED_WEIGHT_BYTES;
        bool needs = false;
        if (PHASE == TD_ERRORS) {
            barrier_wait(b.ready + 8 * (n % 2), n / 2 & 1);
            needs = tile_needs(shared, n % 2);
        }
        for (int s = needs ? 0 : FUSED_FORWARD_STAGES; s < 2 * FUSED_FORWARD_STAGES; s++) {
            const bool target = PHASE == TD_ERRORS && s >= FUSED_FORWARD_STAGES;
            const uint8_t *from;
            const uint32_t bytes = weight_stage(target ? online + HO_FUSED_WEIGHT_BYTES : online,
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
        n++;
    }
}

/* Three warps gather the next tile's rows while the present one is computed. Rows past the lane's
 * transitions repeat its last one. */
template <td_phase PHASE>
static __device__ void td_gather(const ho_learn_view &v, uint8_t *shared, const td_barriers &b)
{
    enum { GATHER_BARRIER = 2, CHUNKS = HO_FUSED_ROWS * 8 };
    const int id = (int)threadIdx.x - TD_CONSUMERS - 32;
    const int tiles_lane = tiles_of_lane(v), tiles = v.lanes * tiles_lane;
    int n = 0;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int k = tile / tiles_lane, row0 = tile % tiles_lane * HO_FUSED_ROWS;
        const int stored = new_transitions(v, k), buffer = n % 2;
        if (row0 >= stored) {
            continue;
        }
        const ho_lane_device *lane = &v.lane[k];
        const ho_replay_record *ring = v.replay + (size_t)k * v.replay_capacity;
        td_row *rows = (td_row *)(shared + TD_ROW) + buffer * HO_FUSED_ROWS;
        uint8_t *x = shared + TD_X + buffer * X_TILE;
        if (n >= 2) {
            barrier_wait(b.empty_tile + 8 * buffer, (n / 2 - 1) & 1);
        }
        bool unknown = false;
        for (int r = id; r < HO_FUSED_ROWS; r += TD_GATHERERS) {
            const int i = row0 + r < stored ? row0 + r : stored - 1;
            const ho_replay_record *record = &ring[ho_new_slot(lane, i, v.replay_capacity)];
            rows[r].bar = PHASE == TD_VALUES ? record->bar : record->next_bar;
            rows[r].to = row0 + r < stored ? k * v.new_rows + row0 + r : -1;
            rows[r].double_q = lane->agent.double_q;
            if (PHASE == TD_VALUES) {
                rows[r].action = record->action;
            } else {
                rows[r].action = next_greedy(v, k, ring, record, i, stored);
                rows[r].reward = record->reward;
                rows[r].discount = record->discount;
                rows[r].taken = v.new_td[(size_t)k * v.new_rows + i];
                unknown |= rows[r].action < 0;
            }
        }
        unknown = __any_sync(0xffffffffu, unknown && lane->agent.double_q);
        if (id % 32 == 0) {
            ((int32_t *)(shared + TD_NEEDS))[buffer * (TD_GATHERERS / 32) + id / 32] = unknown;
        }
        float *bias = (float *)(shared + TD_BIAS) + buffer * 2 * FUSED_BIASES;
        const size_t biases = (size_t)k * v.net.params + v.net.weights;
        for (int i = id; i < FUSED_BIASES; i += TD_GATHERERS) {
            bias[i] = v.online[biases + i];
            bias[FUSED_BIASES + i] = v.target[biases + i];
        }
        named_sync(GATHER_BARRIER, TD_GATHERERS);
#pragma unroll 4
        for (int item = id; item < CHUNKS; item += TD_GATHERERS) {
            const int chunk = item % 8, r = item / 8;
            copy16(shared_u32(x) + x_chunk_at(r, chunk), (const __nv_bfloat16 *)v.features +
                                                             (int64_t)rows[r].bar * HO_STATE_PAD +
                                                             chunk * 8);
        }
        copies_finish();
        named_sync(GATHER_BARRIER, TD_GATHERERS); /* all columns before the portfolio's */
        for (int r = id; r < HO_FUSED_ROWS; r += TD_GATHERERS) {
            const int i = row0 + r < stored ? row0 + r : stored - 1;
            const ho_replay_record *record = &ring[ho_new_slot(lane, i, v.replay_capacity)];
            patch_portfolio(v, x, r,
                            PHASE == TD_VALUES ? record->portfolio : record->next_portfolio);
        }
        proxy_fence();
        barrier_arrive(b.ready + 8 * buffer);
        n++;
    }
}

/* The action of the largest output of row half h, lowest index on ties; on every thread of the
 * quad. */
static __device__ __forceinline__ int fused_argmax(const float (&q)[FUSED_Q], int h)
{
    const int t = threadIdx.x % 4;
    float best = -INFINITY;
    int action = FUSED_ACTIONS;
#pragma unroll
    for (int n = 0; n < 6; n++) {
#pragma unroll
        for (int e = 0; e < 2; e++) {
            const int j = n * 4 + h * 2 + e, c = n * 8 + 2 * t + e;
            if (c < FUSED_ACTIONS && q[j] > best) {
                best = q[j];
                action = c;
            }
        }
    }
#pragma unroll
    for (int step = 1; step < 3; step <<= 1) {
        const float other = __shfl_xor_sync(0xffffffffu, best, step);
        const int other_action = __shfl_xor_sync(0xffffffffu, action, step);
        if (other > best || (other == best && other_action < action)) {
            best = other;
            action = other_action;
        }
    }
    return action;
}

/* The computing warpgroups. */
template <td_phase PHASE>
static __device__ void td_consume(const ho_learn_view &v, uint8_t *shared, const td_barriers &b)
{
    const uint32_t shared_at = shared_u32(shared);
    const int warpgroup = (int)threadIdx.x / 128, warp = (int)threadIdx.x / 32 % 4;
    const int g = (int)threadIdx.x % 32 / 4;
    const int tiles_lane = tiles_of_lane(v), tiles = v.lanes * tiles_lane;
    const int row_in_tile = warpgroup * 64 + warp * 16 + g;
    weight_ring ring = {shared_at, b.full, b.empty, TD_SLOTS, 0, 0};
    if (warpgroup == 1) {
        turn_pass<true>(1); /* warpgroup 0 begins */
    }
    int n = 0;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int buffer = n % 2;
        if (tile % tiles_lane * HO_FUSED_ROWS >= new_transitions(v, tile / tiles_lane)) {
            continue;
        }
        td_row *rows = (td_row *)(shared + TD_ROW) + buffer * HO_FUSED_ROWS;
        const uint32_t x = shared_at + TD_X + buffer * X_TILE + warpgroup * X_TILE / 2;
        const uint32_t bias = shared_at + TD_BIAS + buffer * 2 * FUSED_BIASES * 4;
        float acc[128], q[FUSED_Q];
        uint32_t a[64];
        barrier_wait(b.ready + 8 * buffer, n / 2 & 1);
        const bool needs = PHASE == TD_ERRORS && tile_needs(shared, buffer);
#pragma unroll 1
        for (int pass = needs ? 0 : 1; pass < 2; pass++) { /* online s', then s or target s' */
            const bool target = PHASE == TD_ERRORS && pass == 1;
            forward_pass<true>(acc, a, q, x, bias + (target ? FUSED_BIASES * 4 : 0), false, NULL, 0,
                               0, 0, 0, ring, warpgroup);
            if (PHASE == TD_ERRORS && pass == 0) {
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const int greedy = fused_argmax(q, h);
                    if (threadIdx.x % 4 == 0) {
                        rows[row_in_tile + h * 8].action = greedy;
                    }
                }
                __syncwarp();
            }
        }
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const td_row *r = &rows[row_in_tile + h * 8];
            const int greedy = fused_argmax(q, h);
            const bool by_target = PHASE == TD_ERRORS && !r->double_q;
            const float value = fused_taken(q, h, by_target ? greedy : r->action);
            if (threadIdx.x % 4 != 0 || r->to < 0) {
                continue;
            }
            if (PHASE == TD_VALUES) {
                v.new_td[r->to] = value;
                v.new_greedy[r->to] = (uint8_t)greedy;
            } else {
                v.new_td[r->to] = fabsf(r->taken - ho_td_target(r->reward, r->discount, value));
            }
        }
        __syncwarp(); /* the row has been read */
        if (threadIdx.x % 32 == 0) {
            barrier_arrive(b.empty_tile + 8 * buffer);
        }
        n++;
    }
    if (warpgroup == 0) {
        turn_take<true>(0); /* takes the turn that warpgroup 1 passed last */
    }
}

#endif

template <td_phase PHASE>
static __global__ void __launch_bounds__(TD_THREADS, 1)
    new_td(const __grid_constant__ ho_learn_view v)
{
#if FUSED_CODE
    extern __shared__ __align__(1024) uint8_t shared[];
    const uint32_t first = shared_u32(shared) + TD_BARRIERS;
    const td_barriers b = {first, first + 8 * TD_SLOTS, first + 16 * TD_SLOTS,
                           first + 16 * TD_SLOTS + 16};
    if (threadIdx.x == 0) {
        for (int i = 0; i < TD_SLOTS; i++) {
            barrier_init(b.full + 8 * i, 1);
            barrier_init(b.empty + 8 * i, TD_CONSUMERS / 32);
        }
        for (int i = 0; i < 2; i++) {
            barrier_init(b.ready + 8 * i, TD_GATHERERS);
            barrier_init(b.empty_tile + 8 * i, TD_CONSUMERS / 32);
        }
        barrier_init_fence();
    }
    __syncthreads();
    if (threadIdx.x >= TD_CONSUMERS) {
        registers_give<40>();
        if (threadIdx.x < TD_CONSUMERS + 32) {
            td_weights<PHASE>(v, shared, b);
        } else {
            td_gather<PHASE>(v, shared, b);
        }
    } else {
        registers_take<232>();
        td_consume<PHASE>(v, shared, b);
    }
#endif
}

ho_status ho_fused_new_td(const ho_learn_view *v, cudaStream_t stream)
{
    const int tiles = v->lanes * ((v->new_rows + HO_FUSED_ROWS - 1) / HO_FUSED_ROWS);
    const unsigned blocks = (unsigned)(tiles < v->processors ? tiles : v->processors);
    new_td<TD_VALUES><<<blocks, TD_THREADS, TD_BYTES, stream>>>(*v);
    const ho_status rc = ho_cuda_status(cudaGetLastError(), "new_td, values");
    if (rc != HO_OK) {
        return rc;
    }
    new_td<TD_ERRORS><<<blocks, TD_THREADS, TD_BYTES, stream>>>(*v);
    return ho_cuda_status(cudaGetLastError(), "new_td, errors");
}

ho_status ho_fused_new_td_prepare(void)
{
    const cudaFuncAttribute attribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
    const ho_status rc = ho_cuda_status(
        cudaFuncSetAttribute(new_td<TD_VALUES>, attribute, TD_BYTES), "shared memory of new_td");
    return rc == HO_OK
               ? ho_cuda_status(cudaFuncSetAttribute(new_td<TD_ERRORS>, attribute, TD_BYTES),
                                "shared memory of new_td")
               : rc;
}
