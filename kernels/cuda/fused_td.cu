/* SPDX-License-Identifier: Apache-2.0
 * The td errors of an epoch's new transitions on sm_90a, for priorities. The pieces and their sums
 * are those of an update (fused_forward.cuh). Two launches over all rows of all lanes:
 *   VALUES  the online network at s: Q of the taken action, the greedy action. Lists the rows whose
 *           greedy action at s' this does not give;
 *   ERRORS  the target network at s'. The next state of most transitions is the state of a later
 *           one, whose greedy action VALUES left. Listed rows come in tiles of their own, which
 *           get a pass of the online network at s', too.
 * One block a multiprocessor walks over tiles of 128 rows; two warpgroups compute, one warp streams
 * weights, three gather up to three tiles ahead. The list's order is that of arrival: a row's
 * results do not depend on its place in a tile. */
#include "kernels/cuda/device.h"
#include "kernels/cuda/fused_forward.cuh"

enum {
    TD_THREADS = 384,
    TD_CONSUMERS = 256,
    TD_GATHERERS = 96,
    TD_BUFFERS = 3, /* of tiles */
    TD_SLOTS = 4,
    TD_ROW_BYTES = 32,

    /* shared memory, bytes from its start */
    TD_X = TD_SLOTS * FUSED_STAGE,                                /* [buffers] of 128 states */
    TD_BIAS = TD_X + TD_BUFFERS * X_TILE,                         /* [buffers][2 nets] */
    TD_ROW = TD_BIAS + TD_BUFFERS * 2 * FUSED_BIASES * 4,         /* [buffers][128] */
    TD_KIND = TD_ROW + TD_BUFFERS * HO_FUSED_ROWS * TD_ROW_BYTES, /* [buffers] td_kind */
    TD_BARRIERS = TD_KIND + 16,
    TD_BYTES = TD_BARRIERS + 128,
};

typedef enum td_phase { TD_VALUES, TD_ERRORS } td_phase;

#if FUSED_CODE

/* What a tile's rows are; TD_END: there is none, nor any after it. */
typedef enum td_kind { TD_ROWS, TD_LISTED, TD_END } td_kind;

/* What a consumer needs of a row. */
typedef struct td_row {
    int32_t bar;            /* of the state */
    int32_t action;         /* VALUES: taken; ERRORS: greedy at s' */
    float reward, discount; /* ERRORS */
    float taken;            /* ERRORS: Q of the taken action */
    int32_t to;             /* where its result goes; -1: nowhere */
    int32_t double_q;
    int32_t pad;
} td_row;
static_assert(sizeof(td_row) == TD_ROW_BYTES, "td_row");

/* Addresses of the barriers; the last two: one a tile buffer. */
typedef struct td_barriers {
    uint32_t full, empty;       /* of weight stages */
    uint32_t ready, empty_tile; /* 8 bytes each */
} td_barriers;

/* A place in the tiles of all lanes: a lane's rows, then (ERRORS) its listed rows. */
typedef struct td_cursor {
    int k, tile;        /* of the lane */
    int stored, listed; /* rows of the lane */
    int row_tiles, tiles;
    int oldest, double_q; /* its first transition's slot, maybe below 0 */
} td_cursor;

/* A lane's list and its length. */
static __device__ __forceinline__ int32_t *new_listed(const ho_learn_view &v, int k)
{
    return v.new_list + (size_t)k * ho_new_list_room(v.new_rows);
}

static __device__ __forceinline__ int32_t *new_list(const ho_learn_view &v, int k)
{
    return new_listed(v, k) + 1;
}

static __device__ __forceinline__ int tiles_of(int rows)
{
    return (rows + HO_FUSED_ROWS - 1) / HO_FUSED_ROWS;
}

/* Moves on by `tiles`; false: past the last one. Begin with {-1}. */
template <td_phase PHASE>
static __device__ __forceinline__ bool cursor_move(const ho_learn_view &v, td_cursor &c, int tiles)
{
    c.tile += tiles;
    while (c.tile >= c.tiles) {
        c.tile -= c.tiles;
        if (++c.k >= v.lanes) {
            return false;
        }
        const ho_lane_device *lane = &v.lane[c.k];
        c.stored = lane->active && lane->guard == 0 ? lane->stored : 0;
        c.listed = PHASE == TD_ERRORS && c.stored > 0 ? *new_listed(v, c.k) : 0;
        c.row_tiles = tiles_of(c.stored);
        c.oldest = lane->replay_head - c.stored;
        c.double_q = lane->agent.double_q;
        c.tiles = c.row_tiles + tiles_of(c.listed);
    }
    return true;
}

/* The producer warp of weights. */
template <td_phase PHASE>
static __device__ void td_weights(const ho_learn_view &v, uint32_t base, const td_barriers &b)
{
    int slot = 0, phase = 0;
    td_cursor c = {-1, 0, 0, 0, 0, 0, 0, 0};
    for (int by = blockIdx.x; cursor_move<PHASE>(v, c, by); by = gridDim.x) {
        const uint8_t *online = v.fused_weights + (size_t)c.k * 2 * HO_FUSED_WEIGHT_BYTES;
        const bool listed = c.tile >= c.row_tiles;
        for (int s = listed ? 0 : FUSED_FORWARD_STAGES; s < 2 * FUSED_FORWARD_STAGES; s++) {
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
    }
}

/* Row r of a tile: which transition of the lane; past the last one, that one again. */
static __device__ __forceinline__ int transition_of(const ho_learn_view &v, const td_cursor &c,
                                                    int r, bool *own)
{
    const bool listed = c.tile >= c.row_tiles;
    const int rows = listed ? c.listed : c.stored;
    const int at = (listed ? c.tile - c.row_tiles : c.tile) * HO_FUSED_ROWS + r;
    *own = at < rows;
    const int i = *own ? at : rows - 1;
    return listed ? new_list(v, c.k)[i] : i;
}

/* What the consumers need of transition i; own: it is not a repetition of the tile's last. */
template <td_phase PHASE>
static __device__ __forceinline__ td_row td_row_of(const ho_learn_view &v, const td_cursor &c,
                                                   const ho_replay_record *record, int i, bool own)
{
    const int4 head = *(const int4 *)record; /* bar, next_bar, action, reward */
    const size_t at = (size_t)c.k * v.new_rows + i;
    const float discount = record->discount;
    const int later = record->later;
    const bool unknown = c.double_q && later == 0 && discount != 0.0f;
    td_row row = {head.x, head.z, 0.0f, 0.0f, 0.0f, (int32_t)at, c.double_q, 0};
    if (PHASE == TD_VALUES) {
        if (own && unknown) {
            new_list(v, c.k)[atomicAdd(new_listed(v, c.k), 1)] = i;
        }
    } else {
        row.bar = head.y;
        row.reward = __int_as_float(head.w);
        row.discount = discount;
        row.taken = v.new_td[at];
        row.action = later != 0 ? v.new_greedy[at + later] : 0;
        own = own && (c.tile >= c.row_tiles || !unknown);
    }
    row.to = own ? row.to : -1;
    return row;
}

/* Three warps gather tiles ahead of the consumers, each on its own: 32 rows at a time, a thread a
 * row. */
template <td_phase PHASE>
static __device__ void td_gather(const ho_learn_view &v, uint8_t *shared, const td_barriers &b)
{
    enum { GROUP = 32, GROUPS = HO_FUSED_ROWS / GROUP };
    const int id = (int)threadIdx.x - TD_CONSUMERS - 32, warp = id / 32, l = id % 32;
    td_cursor c = {-1, 0, 0, 0, 0, 0, 0, 0};
    int biases_of[TD_BUFFERS] = {-1, -1, -1}; /* lanes, from the next tile's buffer on */
    int buffer = 0, phase = 1, turn = warp;
    bool more = true;
    for (int by = blockIdx.x; more; by = gridDim.x) {
        td_row *rows = (td_row *)(shared + TD_ROW) + buffer * HO_FUSED_ROWS;
        more = cursor_move<PHASE>(v, c, by);
        bool free = false;
        /* 4 groups among 3 warps, another one taking two each time */
#pragma unroll 1
        for (int group = turn; group < GROUPS; group += TD_GATHERERS / 32) {
            const int r = group * GROUP + l;
            const ho_replay_record *record = NULL;
            td_row row;
            if (more) {
                bool own;
                const int i = transition_of(v, c, r, &own), slot = c.oldest + i;
                record = &v.replay[(size_t)c.k * v.replay_capacity + slot +
                                   (slot < 0 ? v.replay_capacity : 0)];
                row = td_row_of<PHASE>(v, c, record, i, own);
            }
            if (!free) {
                barrier_wait(b.empty_tile + 8 * buffer, phase);
                free = true;
                if (more && biases_of[0] != c.k) {
                    float *bias = (float *)(shared + TD_BIAS) + buffer * 2 * FUSED_BIASES;
                    const size_t from = (size_t)c.k * v.net.params + v.net.weights;
#pragma unroll 3
                    for (int at = id; at < FUSED_BIASES; at += TD_GATHERERS) {
                        bias[at] = v.online[from + at];
                        bias[FUSED_BIASES + at] = v.target[from + at];
                    }
                }
            }
            if (r == 0) {
                ((int32_t *)(shared + TD_KIND))[buffer] = !more                   ? TD_END
                                                          : c.tile >= c.row_tiles ? TD_LISTED
                                                                                  : TD_ROWS;
            }
            if (more) {
                rows[r] = row;
                gather_rows(v, shared + TD_X + buffer * X_TILE + group * GROUP / 8 * 1024, row.bar,
                            PHASE == TD_VALUES ? record->portfolio : record->next_portfolio);
            }
            barrier_arrive(b.ready + 8 * buffer);
        }
        biases_of[0] = biases_of[1];
        biases_of[1] = biases_of[2];
        biases_of[2] = c.k;
        turn = turn == 0 ? 2 : turn - 1;
        if (++buffer == TD_BUFFERS) {
            buffer = 0;
            phase ^= 1;
        }
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
    const int row_in_tile = warpgroup * 64 + warp * 16 + g;
    weight_ring ring = {shared_at, b.full, b.empty, TD_SLOTS, 0, 0};
    if (warpgroup == 1) {
        turn_pass<true>(1); /* warpgroup 0 begins */
    }
    int buffer = 0, phase = 0;
#pragma unroll 1
    for (;;) {
        td_row *rows = (td_row *)(shared + TD_ROW) + buffer * HO_FUSED_ROWS;
        const uint32_t x = shared_at + TD_X + buffer * X_TILE + warpgroup * X_TILE / 2;
        const uint32_t bias = shared_at + TD_BIAS + buffer * 2 * FUSED_BIASES * 4;
        float acc[128], q[FUSED_Q];
        uint32_t a[64];
        barrier_wait(b.ready + 8 * buffer, phase);
        const int32_t kind = ((const int32_t *)(shared + TD_KIND))[buffer];
        if (kind == TD_END) {
            break;
        }
#pragma unroll 1
        for (int pass = PHASE == TD_ERRORS && kind == TD_LISTED ? 0 : 1; pass < 2; pass++) {
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
        if (++buffer == TD_BUFFERS) {
            buffer = 0;
            phase ^= 1;
        }
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
                           first + 16 * TD_SLOTS + 8 * TD_BUFFERS};
    if (threadIdx.x == 0) {
        for (int i = 0; i < TD_SLOTS; i++) {
            barrier_init(b.full + 8 * i, 1);
            barrier_init(b.empty + 8 * i, TD_CONSUMERS / 32);
        }
        for (int i = 0; i < TD_BUFFERS; i++) {
            barrier_init(b.ready + 8 * i, HO_FUSED_ROWS);
            barrier_init(b.empty_tile + 8 * i, TD_CONSUMERS / 32);
        }
        barrier_init_fence();
    }
    __syncthreads();
    if (threadIdx.x >= TD_CONSUMERS) {
        registers_give<40>();
        if (threadIdx.x < TD_CONSUMERS + 32) {
            td_weights<PHASE>(v, shared_u32(shared), b);
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
    ho_status rc = ho_cuda_status(cudaMemset2DAsync(v->new_list,
                                                    ho_new_list_room(v->new_rows) * sizeof(int32_t),
                                                    0, sizeof(int32_t), (size_t)v->lanes, stream),
                                  "lists of new_td");
    if (rc != HO_OK) {
        return rc;
    }
    new_td<TD_VALUES><<<blocks, TD_THREADS, TD_BYTES, stream>>>(*v);
    rc = ho_cuda_status(cudaGetLastError(), "new_td, values");
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
