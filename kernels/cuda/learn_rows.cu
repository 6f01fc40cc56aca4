/* SPDX-License-Identifier: Apache-2.0
 * The row-wise ends of an update on the portable path: draw the batch and gather its states; DQN
 * targets, Huber loss and its gradient (formulas: kernels/agents/value.h). */
#include "kernels/agents/value.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/learn.h"
#include "kernels/cuda/priority.cuh"
#include "kernels/cuda/row_ops.cuh"

enum {
    GATHER_THREADS = 256,
    CHUNK = 8, /* columns a thread gathers */
    CHUNKS = HO_STATE_PAD / CHUNK,
    TD_WARPS = 8,
    TD_SLOTS = 2, /* outputs a thread of a warp holds: 64 in all */
};

/* One thread a (row, chunk of 8 columns); rows 0..B-1 are s, B..2B-1 are s'. */
template <typename T>
static __global__ void __launch_bounds__(GATHER_THREADS)
    gather_rows(const __grid_constant__ ho_learn_view v, int update)
{
    const int k = (int)blockIdx.y;
    const int item = (int)(blockIdx.x * GATHER_THREADS + threadIdx.x);
    const int row2 = item / CHUNKS, column0 = item % CHUNKS * CHUNK;
    if (row2 >= 2 * v.batch || !ho_lane_takes_part(v, k)) {
        return;
    }
    const int next = row2 >= v.batch, row = row2 - next * v.batch;
    const int64_t slot = ho_row_slot(v, k, update, row);
    const ho_replay_record *r = &v.replay[(size_t)k * v.replay_capacity + slot];
    const int64_t bar = next ? r->next_bar : r->bar;
    const float *portfolio = next ? r->next_portfolio : r->portfolio;
    T column[CHUNK];
    const uint4 *from = (const uint4 *)((const T *)v.features + bar * HO_STATE_PAD + column0);
    constexpr int words = (int)sizeof(column) / 16;
#pragma unroll
    for (int i = 0; i < words; i++) {
        ((uint4 *)column)[i] = from[i];
    }
    const int first = v.net.market, end = first + v.net.portfolio;
#pragma unroll
    for (int i = 0; i < CHUNK; i++) {
        if (column0 + i >= first && column0 + i < end) {
            put(&column[i], portfolio[column0 + i - first]);
        }
    }
    uint4 *to =
        (uint4 *)((T *)v.state + (((size_t)k * 2 + next) * v.batch + row) * HO_STATE_PAD + column0);
#pragma unroll
    for (int i = 0; i < words; i++) {
        to[i] = ((const uint4 *)column)[i];
    }
    if (!next && column0 == 0) {
        const ho_sample s = {r->action, r->reward, r->discount};
        v.sample[(size_t)k * v.batch + row] = s;
    }
}

static __device__ __forceinline__ bool in_branch(const ho_branches &b, int d, int output)
{
    return output >= b.first[d] && output < b.first[d] + b.size[d];
}

/* Q values of one row: thread l of the warp holds those of outputs l and l + 32, -inf beyond A. */
static __device__ __forceinline__ void row_values(float (&q)[TD_SLOTS], const float *out,
                                                  const ho_device_net &net)
{
    const int l = (int)threadIdx.x & 31;
#pragma unroll
    for (int s = 0; s < TD_SLOTS; s++) {
        q[s] = l + 32 * s < net.actions ? out[l + 32 * s] : -INFINITY;
    }
    for (int d = 0; d < net.branches.count && net.dueling; d++) {
        float sum = 0.0f;
#pragma unroll
        for (int s = 0; s < TD_SLOTS; s++) {
            sum += in_branch(net.branches, d, l + 32 * s) ? q[s] : 0.0f;
        }
        const float shift = out[net.values] - warp_sum(sum) / (float)net.branches.size[d];
#pragma unroll
        for (int s = 0; s < TD_SLOTS; s++) {
            q[s] += in_branch(net.branches, d, l + 32 * s) ? shift : 0.0f;
        }
    }
}

/* The output of branch d with the largest value, lowest index on ties, on every thread. */
static __device__ __forceinline__ int row_argmax(const float (&q)[TD_SLOTS], const ho_branches &b,
                                                 int d)
{
    const int l = (int)threadIdx.x & 31;
    float best = -INFINITY;
    int at = b.first[d] + b.size[d] - 1;
#pragma unroll
    for (int s = 0; s < TD_SLOTS; s++) {
        if (in_branch(b, d, l + 32 * s) && q[s] > best) {
            best = q[s];
            at = l + 32 * s;
        }
    }
    for (int step = 16; step > 0; step >>= 1) {
        const float other = __shfl_xor_sync(0xffffffffu, best, step);
        const int other_at = __shfl_xor_sync(0xffffffffu, at, step);
        if (other > best || (other == best && other_at < at)) {
            best = other;
            at = other_at;
        }
    }
    return at;
}

static __device__ __forceinline__ float row_pick(const float (&q)[TD_SLOTS], int action)
{
    return __shfl_sync(0xffffffffu, action >= 32 ? q[1] : q[0], action & 31);
}

/* One warp a row, HO_LOSS_ROWS rows a block; grid (loss parts, lanes) */
template <typename T>
static __global__ void __launch_bounds__(TD_WARPS * 32)
    td_rows(const __grid_constant__ ho_learn_view v)
{
    __shared__ ho_loss_part row_part[HO_LOSS_ROWS];
    const int k = (int)blockIdx.y;
    if (!ho_lane_takes_part(v, k)) {
        return;
    }
    const ho_lane_device *lane = &v.lane[k];
    const int width = v.net.layer[HO_DEVICE_LAYERS - 1].out, l = (int)threadIdx.x & 31;
    const size_t pass = (size_t)v.batch * width;
    const float *out = v.output + (size_t)k * HO_PASSES * pass;
    const ho_branches &branches = v.net.branches;
    const float delta = (float)lane->agent.huber_delta, largest = ho_largest_weight(v, k);
    const float share = 1.0f / (float)branches.count;
    for (int i = (int)threadIdx.x / 32; i < HO_LOSS_ROWS; i += TD_WARPS) {
        const int row = (int)blockIdx.x * HO_LOSS_ROWS + i;
        if (row >= v.batch) {
            break;
        }
        const float *at = out + (size_t)row * width;
        float now[TD_SLOTS], next[TD_SLOTS], next_target[TD_SLOTS], y_next = 0.0f;
        row_values(now, at, v.net);
        row_values(next, at + pass, v.net);
        row_values(next_target, at + 2 * pass, v.net);
        const ho_sample s = v.sample[(size_t)k * v.batch + row];
        for (int d = 0; d < branches.count; d++) {
            const int best = row_argmax(lane->agent.double_q ? next : next_target, branches, d);
            y_next += share * row_pick(next_target, best);
        }
        const float y = ho_td_target(s.reward, s.discount, y_next);
        const float weight = ho_row_weight(v, k, row, largest);
        float q = 0.0f, loss = 0.0f, td = 0.0f, value_slope = 0.0f, g[TD_SLOTS] = {0};
        int32_t choice[HO_BRANCHES_MAX];
        ho_branches_choice(&branches, s.action, choice);
#pragma unroll
        for (int d = 0; d < HO_BRANCHES_MAX; d++) {
            if (d >= branches.count) {
                continue;
            }
            const int taken = branches.first[d] + choice[d];
            const float taken_q = row_pick(now, taken), error = taken_q - y;
            const float slope = weight * share / (float)v.batch * ho_huber_slope(error, delta);
            const float shared = v.net.dueling ? slope / (float)branches.size[d] : 0.0f;
            q += share * taken_q;
            loss += share * ho_huber(error, delta);
            td += share * fabsf(error);
            value_slope += slope;
#pragma unroll
            for (int c = 0; c < TD_SLOTS; c++) {
                const int output = l + 32 * c;
                g[c] += (output == taken ? slope : 0.0f) -
                        (in_branch(branches, d, output) ? shared : 0.0f);
            }
        }
        if (l == 0) {
            const ho_loss_part p = {weight * loss, td, q, q * q, q, q, {0, 0}};
            row_part[i] = p;
            ho_keep_td(v, k, row, td);
        }
        T *d_row = (T *)v.d_output + ((size_t)k * v.batch + row) * width;
#pragma unroll
        for (int c = 0; c < TD_SLOTS; c++) {
            const int output = l + 32 * c;
            if (v.first_new < 0 && output < width) {
                put_delta(&d_row[output],
                          v.net.dueling && output == v.net.values ? value_slope : g[c]);
            }
        }
    }
    __syncthreads();
    if (threadIdx.x == 0 && v.first_new < 0) {
        ho_loss_part sum = row_part[0];
        for (int i = 1; i < HO_LOSS_ROWS && (int)blockIdx.x * HO_LOSS_ROWS + i < v.batch; i++) {
            ho_loss_part_add(&sum, &row_part[i]);
        }
        v.loss_part[(size_t)k * v.loss_parts + blockIdx.x] = sum;
    }
}

ho_status ho_learn_gather(const ho_learn_view *v, int update, cudaStream_t stream)
{
    const int items = 2 * v->batch * CHUNKS;
    const dim3 grid((unsigned)((items + GATHER_THREADS - 1) / GATHER_THREADS), (unsigned)v->lanes);
    if (v->bf16) {
        gather_rows<__nv_bfloat16><<<grid, GATHER_THREADS, 0, stream>>>(*v, update);
    } else {
        gather_rows<float><<<grid, GATHER_THREADS, 0, stream>>>(*v, update);
    }
    return ho_cuda_status(cudaGetLastError(), "gather_rows");
}

ho_status ho_learn_td(const ho_learn_view *v, cudaStream_t stream)
{
    const dim3 grid((unsigned)((v->batch + HO_LOSS_ROWS - 1) / HO_LOSS_ROWS), (unsigned)v->lanes);
    if (v->bf16) {
        td_rows<__nv_bfloat16><<<grid, TD_WARPS * 32, 0, stream>>>(*v);
    } else {
        td_rows<float><<<grid, TD_WARPS * 32, 0, stream>>>(*v);
    }
    return ho_cuda_status(cudaGetLastError(), "td_rows");
}
