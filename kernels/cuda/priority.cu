/* SPDX-License-Identifier: Apache-2.0
 * Priorities: sums, draws, the sort by rank, new priorities. Contract: priority.h, learn.h. */
#include "kernels/agents/priority.h"

#include "kernels/agents/agent_check.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/learn.h"
#include "kernels/cuda/priority.cuh"
#include "kernels/cuda/sampling.cuh"

enum {
    THREADS = 256,
    WARPS = THREADS / 32,
    OWNED = HO_PRIORITY_BLOCKS_MAX / THREADS, /* neighbouring words of a scan a thread owns */
    WARP_DRAWS = HO_PRIORITY_DRAWS / WARPS,
    LEAVES_THREAD = 8, /* a warp looks at 256 leaves at a time */
    RADIX_BITS = 8,
    RADIX_PASSES = 4,
    TILE_ROUNDS = HO_RANK_TILE / THREADS,
};

ho_priority_shape ho_priority_shape_of(const ho_cohort_key *key)
{
    const int prioritised = key->algorithm == HO_DQN && key->replay != HO_REPLAY_UNIFORM;
    ho_priority_shape s = {prioritised ? key->replay : HO_REPLAY_UNIFORM, 0, 0, 0, 0, 0, 0};
    if (!prioritised) {
        return s;
    }
    const int64_t capacity = key->replay_capacity;
    s.block = HO_PRIORITY_BLOCK_MIN;
    while ((capacity + s.block - 1) / s.block > HO_PRIORITY_BLOCKS_MAX) {
        s.block *= 2;
    }
    s.blocks = (int32_t)((capacity + s.block - 1) / s.block);
    s.leaves = s.blocks * s.block;
    s.tiles = (int32_t)((capacity + HO_RANK_TILE - 1) / HO_RANK_TILE);
    s.draw_parts = (key->batch + HO_PRIORITY_DRAWS - 1) / HO_PRIORITY_DRAWS;
    s.mass_room = (int32_t)((capacity + 2) / 2 * 2);
    return s;
}

int32_t ho_epoch_new_rows(const ho_cohort_key *key)
{
    const int64_t made = (int64_t)ho_epoch_steps(key) * key->episodes;
    return (int32_t)(made < key->replay_capacity ? made : key->replay_capacity);
}

static __device__ __forceinline__ uint64_t warp_scan(uint64_t x)
{
    for (int step = 1; step < 32; step <<= 1) {
        const uint64_t y = __shfl_up_sync(0xffffffffu, x, step);
        x += (int)threadIdx.x % 32 >= step ? y : 0;
    }
    return x;
}

/* The sum of all earlier threads' x; *all: of every thread's. Two barriers. */
static __device__ uint64_t block_scan(uint64_t x, uint64_t *all)
{
    __shared__ uint64_t warp_sum[WARPS];
    const int warp = (int)threadIdx.x / 32;
    const uint64_t upto = warp_scan(x);
    __syncthreads(); /* an earlier scan's sums have been read */
    if (threadIdx.x % 32 == 31) {
        warp_sum[warp] = upto;
    }
    __syncthreads();
    uint64_t before = 0, sum = 0;
    for (int w = 0; w < WARPS; w++) {
        before += w < warp ? warp_sum[w] : 0;
        sum += warp_sum[w];
    }
    *all = sum;
    return before + upto - x;
}

/* ---- proportional ---- */

/* The sum of each block of leaves; a warp each; grid (blocks / 8, lanes) */
static __global__ void __launch_bounds__(THREADS)
    priority_sums(const __grid_constant__ ho_learn_view v)
{
    const ho_priority_shape s = v.priority.shape;
    const int k = (int)blockIdx.y, block = (int)(blockIdx.x * WARPS + threadIdx.x / 32);
    if (block >= s.blocks || !ho_lane_takes_part(v, k)) {
        return;
    }
    const uint32_t *leaf = v.priority.leaf + (size_t)k * s.leaves + (size_t)block * s.block;
    uint64_t sum = 0;
    for (int i = (int)threadIdx.x % 32; i < s.block; i += 32) {
        sum += leaf[i];
    }
    for (int step = 16; step > 0; step >>= 1) {
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    }
    if (threadIdx.x % 32 == 0) {
        v.priority.sum[(size_t)k * s.blocks + block] = sum;
    }
}

/* The last of n entries of a rising array, from its first, that is <= x. */
static __device__ __forceinline__ int last_below(const uint64_t *rising, int n, uint64_t x)
{
    int low = 0, high = n;
    while (high - low > 1) {
        const int mid = low + (high - low) / 2;
        if (rising[mid] <= x) {
            low = mid;
        } else {
            high = mid;
        }
    }
    return low;
}

/* The leaf of a block in which the running sum passes `mass`, by a warp; *share: its priority. */
static __device__ int find_leaf(const uint32_t *leaf, int n, uint64_t mass, uint32_t *share)
{
    const int l = (int)threadIdx.x % 32;
    for (int first = 0; first < n; first += 32 * LEAVES_THREAD) {
        const uint4 *from = (const uint4 *)(leaf + first) + 2 * l;
        const uint4 a = from[0], b = from[1];
        const uint32_t own[LEAVES_THREAD] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
        uint64_t sum = 0;
#pragma unroll
        for (int i = 0; i < LEAVES_THREAD; i++) {
            sum += own[i];
        }
        const uint64_t upto = warp_scan(sum);
        const unsigned passed = __ballot_sync(0xffffffffu, upto > mass);
        if (!passed) {
            mass -= __shfl_sync(0xffffffffu, upto, 31);
            continue;
        }
        const int owner = __ffs((int)passed) - 1;
        uint64_t before = upto - sum;
        int at = 0;
        uint32_t priority = own[0];
#pragma unroll
        for (int i = 0; i < LEAVES_THREAD - 1; i++) { /* past those that do not reach the mass */
            if (at == i && before + own[i] <= mass) {
                before += own[i];
                at = i + 1;
                priority = own[i + 1];
            }
        }
        *share = __shfl_sync(0xffffffffu, priority, owner);
        return first + owner * LEAVES_THREAD + __shfl_sync(0xffffffffu, at, owner);
    }
    *share = 1; /* not reached: mass is below the block's sum */
    return n - 1;
}

static __device__ double lane_beta(const ho_lane_device *lane)
{
    return ho_priority_beta(lane->agent.per_beta_start, lane->agent.per_beta_end, lane->updates,
                            lane->total_updates);
}

static __device__ __forceinline__ uint64_t draw_mass(const ho_lane_device *lane, uint64_t total,
                                                     int update, int row, int batch)
{
    const ho_rng4 r = ho_rng(lane->env.key, (uint32_t)update, (uint32_t)row, (uint32_t)lane->epoch,
                             HO_RNG_REPLAY, 0);
    return ho_priority_draw(total, row, batch, (uint64_t)r.v[0] << 32 | r.v[1]);
}

/* Stores a draw; leaves the block's largest weight. All threads take part; row < 0: no draw. */
static __device__ void store_draw(const ho_learn_view &v, int k, int row, int slot, uint64_t share,
                                  uint64_t total, int n)
{
    __shared__ float warp_largest[WARPS];
    float weight = 0.0f;
    if (row >= 0) {
        const double probability = (double)share / (double)total;
        weight = (float)ho_priority_weight(probability, n, lane_beta(&v.lane[k]));
        v.priority.index[(size_t)k * v.batch + row] = slot;
        v.priority.weight[(size_t)k * v.batch + row] = weight;
    }
    for (int step = 16; step > 0; step >>= 1) {
        weight = fmaxf(weight, __shfl_xor_sync(0xffffffffu, weight, step));
    }
    if (threadIdx.x % 32 == 0) {
        warp_largest[threadIdx.x / 32] = weight;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < WARPS; w++) {
            weight = fmaxf(weight, warp_largest[w]);
        }
        v.priority.weight_part[(size_t)k * v.priority.shape.draw_parts + blockIdx.x] = weight;
    }
}

/* grid (draw parts, lanes) */
static __global__ void __launch_bounds__(THREADS)
    draw_proportional(const __grid_constant__ ho_learn_view v, int update)
{
    __shared__ uint64_t before[HO_PRIORITY_BLOCKS_MAX]; /* sums of all earlier blocks of leaves */
    const ho_priority_shape s = v.priority.shape;
    const int k = (int)blockIdx.y, warp = (int)threadIdx.x / 32, l = (int)threadIdx.x % 32;
    if (!ho_lane_takes_part(v, k)) {
        return;
    }
    const uint64_t *sums = v.priority.sum + (size_t)k * s.blocks;
    uint64_t own[OWNED], sum = 0, total;
#pragma unroll
    for (int i = 0; i < OWNED; i++) {
        const int at = (int)threadIdx.x * OWNED + i;
        own[i] = at < s.blocks ? sums[at] : 0;
        sum += own[i];
    }
    uint64_t upto = block_scan(sum, &total);
#pragma unroll
    for (int i = 0; i < OWNED; i++) {
        before[(int)threadIdx.x * OWNED + i] = upto;
        upto += own[i];
    }
    __syncthreads();
    const int first = (int)blockIdx.x * HO_PRIORITY_DRAWS + warp * WARP_DRAWS;
    const int row = l < WARP_DRAWS && first + l < v.batch ? first + l : -1;
    const uint64_t mass = row >= 0 ? draw_mass(&v.lane[k], total, update, row, v.batch) : 0;
    const int block = last_below(before, s.blocks, mass);
    const uint64_t rest = mass - before[block];
    int slot = 0;
    uint32_t share = 1;
    for (int d = 0; d < WARP_DRAWS; d++) {
        uint32_t found_share;
        const int in = __shfl_sync(0xffffffffu, block, d);
        const int found = find_leaf(v.priority.leaf + (size_t)k * s.leaves + (size_t)in * s.block,
                                    s.block, __shfl_sync(0xffffffffu, rest, d), &found_share);
        if (l == d) {
            slot = in * s.block + found;
            share = found_share;
        }
    }
    store_draw(v, k, row, slot, share, total, v.lane[k].replay_fill);
}

/* ---- rank-based ---- */

/* Key of the sort: the larger |td|, the smaller. The first pass reads the leaves themselves. */
static __device__ __forceinline__ uint32_t rank_key(const ho_learn_view &v, int k, int pass, int i)
{
    return pass == 0 ? ~v.priority.leaf[(size_t)k * v.priority.shape.leaves + i]
                     : v.priority.rank_key[(pass + 1) % 2][(size_t)k * v.replay_capacity + i];
}

/* How often each digit occurs in a tile; grid (tiles, lanes) */
static __global__ void __launch_bounds__(THREADS)
    rank_count(const __grid_constant__ ho_learn_view v, int pass)
{
    __shared__ uint32_t count[HO_RANK_DIGITS];
    const int k = (int)blockIdx.y, tiles = v.priority.shape.tiles;
    if (!ho_lane_takes_part(v, k)) {
        return;
    }
    const int n = v.lane[k].replay_fill;
    count[threadIdx.x] = 0;
    __syncthreads();
    for (int round = 0; round < TILE_ROUNDS; round++) {
        const int i = (int)blockIdx.x * HO_RANK_TILE + round * THREADS + (int)threadIdx.x;
        if (i < n) {
            atomicAdd(&count[rank_key(v, k, pass, i) >> pass * RADIX_BITS & 255u], 1u);
        }
    }
    __syncthreads();
    v.priority.rank_count[((size_t)k * HO_RANK_DIGITS + threadIdx.x) * tiles + blockIdx.x] =
        count[threadIdx.x];
}

/* Counts -> first places; a thread a digit; one block a lane. */
static __global__ void __launch_bounds__(THREADS)
    rank_places(const __grid_constant__ ho_learn_view v)
{
    const int k = (int)blockIdx.x, tiles = v.priority.shape.tiles;
    if (!ho_lane_takes_part(v, k)) {
        return;
    }
    uint32_t *count = v.priority.rank_count + ((size_t)k * HO_RANK_DIGITS + threadIdx.x) * tiles;
    uint64_t sum = 0, all;
    for (int t = 0; t < tiles; t++) {
        sum += count[t];
    }
    uint32_t place = (uint32_t)block_scan(sum, &all);
    for (int t = 0; t < tiles; t++) {
        const uint32_t c = count[t];
        count[t] = place;
        place += c;
    }
}

/* The threads of the warp that have this thread's digit; none for a thread without an item. */
static __device__ __forceinline__ unsigned same_digit(bool valid, uint32_t digit)
{
    unsigned same = __ballot_sync(0xffffffffu, valid);
    for (int bit = 0; bit < RADIX_BITS; bit++) {
        const bool set = digit >> bit & 1u;
        const unsigned with = __ballot_sync(0xffffffffu, set);
        same &= set ? with : ~with;
    }
    return valid ? same : 0u;
}

/* Moves the items of a tile to their places; a warp takes 256 neighbours, in order, so that equal
 * digits keep their order; grid (tiles, lanes) */
static __global__ void __launch_bounds__(THREADS)
    rank_move(const __grid_constant__ ho_learn_view v, int pass)
{
    __shared__ uint32_t place[WARPS][HO_RANK_DIGITS];
    const int k = (int)blockIdx.y, tiles = v.priority.shape.tiles;
    const int warp = (int)threadIdx.x / 32, l = (int)threadIdx.x % 32;
    if (!ho_lane_takes_part(v, k)) {
        return;
    }
    const int n = v.lane[k].replay_fill;
    const int first = (int)blockIdx.x * HO_RANK_TILE + warp * (HO_RANK_TILE / WARPS);
    const size_t base = (size_t)k * v.replay_capacity;
    for (int w = 0; w < WARPS; w++) {
        place[w][threadIdx.x] = 0;
    }
    __syncthreads();
    for (int round = 0; round < TILE_ROUNDS; round++) {
        const int i = first + round * 32 + l;
        const uint32_t digit = i < n ? rank_key(v, k, pass, i) >> pass * RADIX_BITS & 255u : 0u;
        const unsigned same = same_digit(i < n, digit);
        if (same && __ffs((int)same) - 1 == l) {
            place[warp][digit] += (uint32_t)__popc(same);
        }
        __syncwarp();
    }
    __syncthreads();
    uint32_t next =
        v.priority.rank_count[((size_t)k * HO_RANK_DIGITS + threadIdx.x) * tiles + blockIdx.x];
    for (int w = 0; w < WARPS; w++) {
        const uint32_t count = place[w][threadIdx.x];
        place[w][threadIdx.x] = next;
        next += count;
    }
    __syncthreads();
    for (int round = 0; round < TILE_ROUNDS; round++) {
        const int i = first + round * 32 + l;
        const uint32_t key = i < n ? rank_key(v, k, pass, i) : 0u;
        const uint32_t digit = key >> pass * RADIX_BITS & 255u;
        const unsigned same = same_digit(i < n, digit);
        if (same) {
            const uint32_t to = place[warp][digit] + (uint32_t)__popc(same & ((1u << l) - 1u));
            v.priority.rank_key[pass % 2][base + to] = key;
            v.priority.rank_slot[pass % 2][base + to] =
                pass == 0 ? i : v.priority.rank_slot[(pass + 1) % 2][base + i];
        }
        __syncwarp();
        if (same && __ffs((int)same) - 1 == l) {
            place[warp][digit] += (uint32_t)__popc(same);
        }
        __syncwarp();
    }
}

/* The masses of a thread's neighbouring ranks, from `rank` on; those past n are 0. */
static __device__ __forceinline__ uint64_t rank_masses(uint64_t (&mass)[TILE_ROUNDS], int rank,
                                                       int n, double alpha)
{
    uint64_t sum = 0;
    for (int i = 0; i < TILE_ROUNDS; i++) {
        mass[i] = rank + i < n ? ho_priority_rank_mass(rank + i, alpha) : 0;
        sum += mass[i];
    }
    return sum;
}

/* The mass of each tile of ranks; grid (tiles, lanes) */
static __global__ void __launch_bounds__(THREADS)
    rank_mass_sums(const __grid_constant__ ho_learn_view v)
{
    const int k = (int)blockIdx.y;
    if (!ho_lane_takes_part(v, k)) {
        return;
    }
    const ho_lane_device *lane = &v.lane[k];
    uint64_t mass[TILE_ROUNDS], all;
    const int rank = (int)blockIdx.x * HO_RANK_TILE + (int)threadIdx.x * TILE_ROUNDS;
    block_scan(rank_masses(mass, rank, lane->replay_fill, lane->agent.per_alpha), &all);
    if (threadIdx.x == 0) {
        v.priority.sum[(size_t)k * v.priority.shape.tiles + blockIdx.x] = all;
    }
}

/* Running sums; grid (tiles, lanes) */
static __global__ void __launch_bounds__(THREADS)
    rank_mass_runs(const __grid_constant__ ho_learn_view v)
{
    const int k = (int)blockIdx.y;
    if (!ho_lane_takes_part(v, k)) {
        return;
    }
    const ho_lane_device *lane = &v.lane[k];
    const uint64_t *tile = v.priority.sum + (size_t)k * v.priority.shape.tiles;
    uint64_t *run = v.priority.mass + (size_t)k * v.priority.shape.mass_room;
    uint64_t mass[TILE_ROUNDS], earlier = 0, all;
    for (int t = (int)threadIdx.x; t < (int)blockIdx.x; t += THREADS) {
        earlier += tile[t];
    }
    block_scan(earlier, &all);
    const int rank = (int)blockIdx.x * HO_RANK_TILE + (int)threadIdx.x * TILE_ROUNDS;
    const int n = lane->replay_fill;
    const uint64_t own = rank_masses(mass, rank, n, lane->agent.per_alpha);
    uint64_t in_tile, at = all + block_scan(own, &in_tile);
    for (int i = 0; i < TILE_ROUNDS && rank + i < n; i++) {
        at += mass[i];
        run[rank + i + 1] = at;
    }
    if (rank == 0) {
        run[0] = 0;
    }
}

/* grid (draw parts, lanes) */
static __global__ void __launch_bounds__(THREADS)
    draw_ranked(const __grid_constant__ ho_learn_view v, int update)
{
    const int k = (int)blockIdx.y;
    if (!ho_lane_takes_part(v, k)) {
        return;
    }
    const int n = v.lane[k].replay_fill, in_part = (int)threadIdx.x;
    const uint64_t *mass = v.priority.mass + (size_t)k * v.priority.shape.mass_room;
    const int wanted = (int)blockIdx.x * HO_PRIORITY_DRAWS + in_part;
    const int row = in_part < HO_PRIORITY_DRAWS && wanted < v.batch ? wanted : -1;
    const uint64_t total = mass[n];
    const uint64_t at = row >= 0 ? draw_mass(&v.lane[k], total, update, row, v.batch) : 0;
    const int rank = last_below(mass, n, at);
    store_draw(v, k, row, v.priority.rank_slot[1][(size_t)k * v.replay_capacity + rank],
               mass[rank + 1] - mass[rank], total, n);
}

/* ---- new priorities ---- */

/* New experience whose td errors lie in new_td; grid (new rows / 256, lanes) */
static __global__ void __launch_bounds__(THREADS)
    priority_enter(const __grid_constant__ ho_learn_view v)
{
    const int k = (int)blockIdx.y, i = (int)(blockIdx.x * THREADS + threadIdx.x);
    const ho_lane_device *lane = &v.lane[k];
    if (!lane->active || lane->guard != 0 || i >= lane->stored) {
        return;
    }
    const ho_priority_shape &s = v.priority.shape;
    v.priority.leaf[(size_t)k * s.leaves + ho_new_slot(lane, i, v.replay_capacity)] =
        ho_leaf_of(lane, s.kind, v.new_td[(size_t)k * v.new_rows + i]);
}

/* After an update that was applied; a slot drawn twice has one td error, so the order of the two
 * writes does not matter; grid (rows / 256, lanes) */
static __global__ void __launch_bounds__(THREADS)
    priority_update(const __grid_constant__ ho_learn_view v)
{
    const int k = (int)blockIdx.y, row = (int)(blockIdx.x * THREADS + threadIdx.x);
    if (row >= v.batch || !v.gate[k].apply) {
        return;
    }
    const ho_priority_shape s = v.priority.shape;
    const int slot = v.priority.index[(size_t)k * v.batch + row];
    const uint32_t leaf = ho_leaf_of(&v.lane[k], s.kind, v.priority.td[(size_t)k * v.batch + row]);
    uint32_t *at = &v.priority.leaf[(size_t)k * s.leaves + slot];
    if (s.kind == HO_REPLAY_PER_RANK) {
        *at = leaf;
        return;
    }
    const uint32_t before = atomicExch(at, leaf);
    if (before != leaf) { /* modulo 2^64: may stand for a fall */
        atomicAdd((unsigned long long *)&v.priority.sum[(size_t)k * s.blocks + slot / s.block],
                  (unsigned long long)leaf - (unsigned long long)before);
    }
}

/* ---- launchers ---- */

ho_status ho_priority_open(const ho_learn_view *v, cudaStream_t stream)
{
    const ho_priority_shape *s = &v->priority.shape;
    const unsigned lanes = (unsigned)v->lanes;
    ho_status rc = HO_OK;
    if (s->kind == HO_REPLAY_PER) {
        priority_sums<<<dim3((unsigned)((s->blocks + WARPS - 1) / WARPS), lanes), THREADS, 0,
                        stream>>>(*v);
        rc = ho_cuda_status(cudaGetLastError(), "priority_sums");
    } else if (s->kind == HO_REPLAY_PER_RANK) {
        rank_mass_sums<<<dim3((unsigned)s->tiles, lanes), THREADS, 0, stream>>>(*v);
        rc = ho_cuda_status(cudaGetLastError(), "rank_mass_sums");
        if (rc == HO_OK) {
            rank_mass_runs<<<dim3((unsigned)s->tiles, lanes), THREADS, 0, stream>>>(*v);
            rc = ho_cuda_status(cudaGetLastError(), "rank_mass_runs");
        }
    }
    return rc;
}

ho_status ho_priority_enter(const ho_learn_view *v, cudaStream_t stream)
{
    const dim3 grid((unsigned)((v->new_rows + THREADS - 1) / THREADS), (unsigned)v->lanes);
    priority_enter<<<grid, THREADS, 0, stream>>>(*v);
    return ho_cuda_status(cudaGetLastError(), "priority_enter");
}

static ho_status sort_ranks(const ho_learn_view *v, cudaStream_t stream)
{
    const dim3 grid((unsigned)v->priority.shape.tiles, (unsigned)v->lanes);
    ho_status rc = HO_OK;
    for (int pass = 0; pass < RADIX_PASSES && rc == HO_OK; pass++) {
        rank_count<<<grid, THREADS, 0, stream>>>(*v, pass);
        rank_places<<<(unsigned)v->lanes, THREADS, 0, stream>>>(*v);
        rank_move<<<grid, THREADS, 0, stream>>>(*v, pass);
        rc = ho_cuda_status(cudaGetLastError(), "sort by rank");
    }
    return rc;
}

ho_status ho_priority_draw_batch(const ho_learn_view *v, int update, cudaStream_t stream)
{
    const ho_priority_shape *s = &v->priority.shape;
    const dim3 grid((unsigned)s->draw_parts, (unsigned)v->lanes);
    if (s->kind == HO_REPLAY_UNIFORM) {
        return HO_OK;
    }
    if (s->kind == HO_REPLAY_PER) {
        draw_proportional<<<grid, THREADS, 0, stream>>>(*v, update);
        return ho_cuda_status(cudaGetLastError(), "draw_proportional");
    }
    const ho_status rc = update % HO_RANK_SORT_EVERY == 0 ? sort_ranks(v, stream) : HO_OK;
    if (rc != HO_OK) {
        return rc;
    }
    draw_ranked<<<grid, THREADS, 0, stream>>>(*v, update);
    return ho_cuda_status(cudaGetLastError(), "draw_ranked");
}

ho_status ho_priority_write(const ho_learn_view *v, cudaStream_t stream)
{
    if (v->priority.shape.kind == HO_REPLAY_UNIFORM) {
        return HO_OK;
    }
    const dim3 grid((unsigned)((v->batch + THREADS - 1) / THREADS), (unsigned)v->lanes);
    priority_update<<<grid, THREADS, 0, stream>>>(*v);
    return ho_cuda_status(cudaGetLastError(), "priority_update");
}
