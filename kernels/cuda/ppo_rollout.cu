/* SPDX-License-Identifier: Apache-2.0
 * What PPO adds to a rollout: V and log p of every step in the precision of the updates, V of the
 * states where an episode or the epoch ends, advantages, and the statistics over all rows.
 * The values are passes over the finished rollout, B rows at a time, since nothing in the rollout
 * depends on them; so acting needs no value head. Compiled without contraction: from equal values
 * the advantages are the CPU backend's to the bit. */
#include "kernels/agents/ppo.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/ppo.h"
#include "kernels/cuda/ppo_heads.cuh"
#include "kernels/cuda/row_block.cuh"
#include "kernels/cuda/trace_rows.h"

enum {
    GATHER_THREADS = 256,
    CHUNK = 8, /* columns a thread gathers */
    CHUNKS = HO_STATE_PAD / CHUNK,
    RECORD_WARPS = 8,
    SLOT_THREADS = 128,
};

static __device__ __forceinline__ const ho_trace_step *trace_of(const ho_ppo_view &v, int k)
{
    return v.experience.trace + ppo_rollout_at(v, k);
}

/* ---- states ---- */

/* One thread a (row, chunk of 8 columns); grid (chunks / 256, lanes) */
template <typename T>
static __global__ void __launch_bounds__(GATHER_THREADS)
    ppo_gather(const __grid_constant__ ho_ppo_view v, const int32_t *__restrict__ list,
               int64_t list_stride, const int32_t *count, int from, int next)
{
    const int k = (int)blockIdx.y;
    const int item = (int)(blockIdx.x * GATHER_THREADS + threadIdx.x);
    const int row = item / CHUNKS, column0 = item % CHUNKS * CHUNK;
    const ho_learn_view &l = v.learn;
    if (row >= l.batch || !ho_lane_takes_part(v.learn, k)) {
        return;
    }
    const int left = count[k] - from;
    if (item == 0 && count != v.rows) { /* a minibatch's are set */
        v.rows[k] = left < 0 ? 0 : left < l.batch ? left : l.batch;
    }
    __align__(16) T column[CHUNK];
    constexpr int words = (int)sizeof(column) / 16;
    if (row < left) {
        const ho_trace_step *t = &trace_of(v, k)[list[(size_t)k * list_stride + from + row]];
        const int64_t bar = (int64_t)t->bar + next;
        const float *portfolio = next ? t->after : t->before;
        const uint4 *market = (const uint4 *)((const T *)l.features + bar * HO_STATE_PAD + column0);
#pragma unroll
        for (int i = 0; i < words; i++) {
            ((uint4 *)column)[i] = market[i];
        }
        const int first = l.net.market, end = first + l.net.portfolio;
#pragma unroll
        for (int i = 0; i < CHUNK; i++) {
            if (column0 + i >= first && column0 + i < end) {
                put(&column[i], portfolio[column0 + i - first]);
            }
        }
    } else {
#pragma unroll
        for (int i = 0; i < CHUNK; i++) {
            put(&column[i], 0.0f);
        }
    }
    uint4 *to = (uint4 *)((T *)l.state + ((size_t)k * l.batch + row) * HO_STATE_PAD + column0);
#pragma unroll
    for (int i = 0; i < words; i++) {
        to[i] = ((const uint4 *)column)[i];
    }
}

ho_status ho_ppo_gather(const ho_ppo_view *v, const int32_t *list, int64_t list_stride,
                        const int32_t *count, int from, int next, cudaStream_t stream)
{
    const int items = v->learn.batch * CHUNKS;
    const dim3 grid((unsigned)((items + GATHER_THREADS - 1) / GATHER_THREADS),
                    (unsigned)v->learn.lanes);
    if (v->learn.bf16) {
        ppo_gather<__nv_bfloat16>
            <<<grid, GATHER_THREADS, 0, stream>>>(*v, list, list_stride, count, from, next);
    } else {
        ppo_gather<float>
            <<<grid, GATHER_THREADS, 0, stream>>>(*v, list, list_stride, count, from, next);
    }
    return ho_cuda_status(cudaGetLastError(), "ppo_gather");
}

/* ---- values and log-probabilities ---- */

/* One thread a lane, after the lists are made. */
static __global__ void ppo_open(const __grid_constant__ ho_ppo_view v)
{
    const int k = (int)blockIdx.x;
    const ho_ppo_lane none = {};
    v.lane[k] = none;
    v.rows[k] = 0;
    v.learn.lane[k].learning = v.row_count[k] > 0;
}

/* One warp a row of the batch: V and log p of the taken action; grid (rows / 8, lanes) */
static __global__ void __launch_bounds__(RECORD_WARPS * 32)
    ppo_record(const __grid_constant__ ho_ppo_view v, int from)
{
    const int k = (int)blockIdx.y, row = (int)(blockIdx.x * RECORD_WARPS + threadIdx.x / 32);
    if (!ho_lane_takes_part(v.learn, k) || row >= v.rows[k]) {
        return;
    }
    const size_t first = ppo_rollout_at(v, k);
    const int at = v.row[first + from + row];
    float log_p[PPO_SLOTS], value;
    ppo_row_log_p(v.learn, k, row, log_p, &value);
    const float taken = ppo_row_taken(v.learn.net.branches, log_p, trace_of(v, k)[at].action);
    if (threadIdx.x % 32 == 0) {
        v.value[first + at] = value;
        v.log_p[first + at] = taken;
    }
}

/* One thread a row of the batch. */
static __global__ void __launch_bounds__(GATHER_THREADS)
    ppo_record_next(const __grid_constant__ ho_ppo_view v, int from)
{
    const int k = (int)blockIdx.y, row = (int)(blockIdx.x * GATHER_THREADS + threadIdx.x);
    if (!ho_lane_takes_part(v.learn, k) || row >= v.rows[k]) {
        return;
    }
    const size_t first = ppo_rollout_at(v, k);
    v.next[first + v.ended[first + from + row]] = ppo_row_value(v.learn, k, row);
}

/* ---- advantages ---- */

/* One thread walks a slot's steps backwards; grid (slots / 128, lanes) */
static __global__ void __launch_bounds__(SLOT_THREADS)
    ppo_advantage(const __grid_constant__ ho_ppo_view v)
{
    const int k = (int)blockIdx.y, n = (int)(blockIdx.x * SLOT_THREADS + threadIdx.x);
    const int N = v.experience.episodes;
    if (!ho_lane_takes_part(v.learn, k) || n >= N) {
        return;
    }
    const size_t first = ppo_rollout_at(v, k);
    const ho_trace_step *trace = trace_of(v, k);
    const float gamma = (float)v.learn.lane[k].agent.gamma;
    const float lambda = (float)v.learn.lane[k].agent.gae_lambda;
    const int steps = v.experience.active_steps[(size_t)k * N + n];
    float advantage = 0.0f;
    for (int step = steps - 1; step >= 0; step--) {
        const size_t at = (size_t)step * N + n;
        const ho_trace_step *t = &trace[at];
        const bool end = t->end != HO_END_NONE;
        const float next =
            end || step + 1 == v.experience.steps ? v.next[first + at] : v.value[first + at + N];
        advantage = ho_gae_step(t->reward, v.value[first + at], next, t->terminal, end, advantage,
                                gamma, lambda);
        v.advantage[first + at] = advantage;
    }
}

/* Mean and deviation of V, and how much of the returns' variance it explains; a block a lane. */
static __global__ void __launch_bounds__(ROW_BLOCK)
    ppo_statistics(const __grid_constant__ ho_ppo_view v)
{
    const int k = (int)blockIdx.x;
    if (!ho_lane_takes_part(v.learn, k)) {
        return;
    }
    const size_t first = ppo_rollout_at(v, k);
    double value = 0, value_square = 0, target = 0, target_square = 0, left = 0, left_square = 0;
    for (int i = (int)threadIdx.x; i < v.row_count[k]; i += ROW_BLOCK) {
        const size_t at = first + v.row[first + i];
        const double x = (double)v.value[at], t = (double)(v.advantage[at] + v.value[at]);
        const double e = t - x;
        value += x;
        value_square += x * x;
        target += t;
        target_square += t * t;
        left += e;
        left_square += e * e;
    }
    const double n = (double)v.row_count[k];
    value = row_block_sum(value) / n;
    value_square = row_block_sum(value_square) / n;
    target = row_block_sum(target) / n;
    target_square = row_block_sum(target_square) / n;
    left = row_block_sum(left) / n;
    left_square = row_block_sum(left_square) / n;
    if (threadIdx.x == 0) {
        const double of_value = value_square - value * value;
        const double of_target = target_square - target * target;
        ho_ppo_lane *lane = &v.lane[k];
        lane->value_mean = value;
        lane->value_std = of_value > 0.0 ? sqrt(of_value) : 0.0;
        lane->explained_variance =
            of_target > 0.0 ? 1.0 - (left_square - left * left) / of_target : 0.0;
    }
}

/* ---- launchers ---- */

/* Passes over a list of the rollout's rows, B at a time. */
static ho_status run_list(const ho_ppo_view *v, const int32_t *list, const int32_t *count, int next,
                          cudaStream_t stream)
{
    const int64_t all = (int64_t)v->experience.steps * v->experience.episodes;
    const int B = v->learn.batch;
    const unsigned lanes = (unsigned)v->learn.lanes;
    ho_learn_view pass = v->learn;
    pass.rows = v->rows; /* blocks without rows leave at once */
    ho_status rc = HO_OK;
    for (int64_t from = 0; from < all && rc == HO_OK; from += B) {
        rc = ho_ppo_gather(v, list, all, count, (int)from, next, stream);
        rc = rc == HO_OK ? ho_learn_forward(&pass, stream) : rc;
        if (rc == HO_OK && next) {
            const unsigned blocks = (unsigned)((B + GATHER_THREADS - 1) / GATHER_THREADS);
            ppo_record_next<<<dim3(blocks, lanes), GATHER_THREADS, 0, stream>>>(*v, (int)from);
            rc = ho_cuda_status(cudaGetLastError(), "ppo_record_next");
        } else if (rc == HO_OK) {
            const unsigned blocks = (unsigned)((B + RECORD_WARPS - 1) / RECORD_WARPS);
            ppo_record<<<dim3(blocks, lanes), RECORD_WARPS * 32, 0, stream>>>(*v, (int)from);
            rc = ho_cuda_status(cudaGetLastError(), "ppo_record");
        }
    }
    return rc;
}

ho_status ho_ppo_rollout(const ho_ppo_view *v, cudaStream_t stream)
{
    const unsigned lanes = (unsigned)v->learn.lanes;
    ho_status rc = ho_trace_rows(&v->experience, HO_TRACE_VALID, v->row, v->row_count, stream);
    rc = rc == HO_OK
             ? ho_trace_rows(&v->experience, HO_TRACE_ENDED, v->ended, v->ended_count, stream)
             : rc;
    if (rc == HO_OK) {
        ppo_open<<<lanes, 1, 0, stream>>>(*v);
        rc = ho_cuda_status(cudaGetLastError(), "ppo_open");
    }
    rc = rc == HO_OK ? run_list(v, v->row, v->row_count, 0, stream) : rc;
    rc = rc == HO_OK ? run_list(v, v->ended, v->ended_count, 1, stream) : rc;
    if (rc == HO_OK) {
        const unsigned blocks =
            (unsigned)((v->experience.episodes + SLOT_THREADS - 1) / SLOT_THREADS);
        ppo_advantage<<<dim3(blocks, lanes), SLOT_THREADS, 0, stream>>>(*v);
        rc = ho_cuda_status(cudaGetLastError(), "ppo_advantage");
    }
    if (rc == HO_OK) {
        ppo_statistics<<<lanes, ROW_BLOCK, 0, stream>>>(*v);
        rc = ho_cuda_status(cudaGetLastError(), "ppo_statistics");
    }
    return rc;
}
