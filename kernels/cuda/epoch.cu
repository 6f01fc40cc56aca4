/* SPDX-License-Identifier: Apache-2.0
 * The epoch round the experience and the updates: derived numbers at its start, n-step transitions
 * into the ring, statistics, the summary at its end. Sums run in slot order, as on the CPU. */
#include <math.h>
#include <stddef.h>

#include "kernels/agents/branches.h"
#include "kernels/agents/explore.h"
#include "kernels/agents/value.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/experience.h"

enum { EPOCH_THREADS = 128, STORE_THREADS = 256 };

static __device__ __forceinline__ bool lane_runs(const ho_experience_view &v, int k)
{
    return v.lane[k].active && v.lane[k].guard == 0;
}

/* One thread a lane. */
static __global__ void epoch_open(const __grid_constant__ ho_experience_view v)
{
    const int k = (int)blockIdx.x;
    ho_lane_device *lane = &v.lane[k];
    lane->learning = 0;
    const ho_update_sums none = {0, 0, 0, 0, 0, 0, 0, 0, INFINITY, -INFINITY, 0};
    lane->sums = none;
    if (!lane_runs(v, k)) {
        return;
    }
    const ho_agent_config *agent = &lane->agent;
    lane->epsilon = v.policy.noise_size ? 0.0
                                        : ho_epsilon(agent->eps_start, agent->eps_end,
                                                     agent->eps_share, lane->epoch, agent->epochs);
    lane->has_bonus = agent->count_bonus > 0.0;
    for (int i = 0; i < HO_ACTIONS; i++) {
        lane->bonus[i] = lane->has_bonus ? ho_count_bonus(agent->count_bonus, lane->count[i]) : 0;
    }
}

/* ---- transitions ---- */

/* Moves the ring's head past this epoch's transitions; one warp a lane. */
static __global__ void replay_advance(const __grid_constant__ ho_experience_view v)
{
    const int k = (int)blockIdx.x, l = (int)threadIdx.x;
    if (!lane_runs(v, k)) {
        return;
    }
    int32_t stored = 0;
    for (int n = l; n < v.episodes; n += 32) {
        stored += v.active_steps[(size_t)k * v.episodes + n];
    }
    for (int step = 16; step > 0; step >>= 1) {
        stored += __shfl_xor_sync(0xffffffffu, stored, step);
    }
    if (l == 0) {
        ho_lane_device *lane = &v.lane[k];
        const int64_t fill = (int64_t)lane->replay_fill + stored;
        lane->stored_before = lane->replay_head;
        lane->stored = stored < v.replay_capacity ? stored : v.replay_capacity;
        lane->replay_head = (int32_t)(((int64_t)lane->replay_head + stored) % v.replay_capacity);
        lane->replay_fill = (int32_t)(fill < v.replay_capacity ? fill : v.replay_capacity);
        lane->learning = lane->replay_fill > 0 && lane->replay_fill >= lane->agent.learn_start;
    }
}

/* How many transitions come before (step, n) in step-major order, and how many there are. Slots go
 * idle only at the end of an epoch, so a slot's steps are a prefix. */
static __device__ __forceinline__ int64_t transitions_before(const ho_experience_view &v, int k,
                                                             int step, int n, int64_t *all)
{
    const int32_t *active = v.active_steps + (size_t)k * v.episodes;
    int64_t before = 0, total = 0;
    for (int i = 0; i < v.episodes; i++) {
        const int32_t a = active[i];
        total += a;
        before += (a < step ? a : step) + (i < n && a > step);
    }
    *all = total;
    return before;
}

/* One thread a transition: the rewards up to n steps, the episode's end or the epoch's end,
 * whichever comes first. grid (transitions / 256, lanes) */
static __global__ void __launch_bounds__(STORE_THREADS)
    replay_store(const __grid_constant__ ho_experience_view v)
{
    const int k = (int)blockIdx.y;
    const int64_t item = (int64_t)blockIdx.x * STORE_THREADS + threadIdx.x;
    if (!lane_runs(v, k) || item >= (int64_t)v.steps * v.episodes) {
        return;
    }
    const int step = (int)(item / v.episodes), n = (int)(item % v.episodes);
    const ho_lane_device *lane = &v.lane[k];
    const ho_trace_step *trace = v.trace + (size_t)k * v.steps * v.episodes;
    const ho_trace_step *first = &trace[item];
    if (!first->valid) {
        return;
    }
    int64_t all = (int64_t)v.steps * v.episodes, before = item;
    if (!lane->env.config.recycle) {
        before = transitions_before(v, k, step, n, &all);
    }
    if (before + v.replay_capacity < all) {
        return; /* a later one takes this place in the same epoch */
    }
    ho_nstep sum = {0.0, 1.0};
    const ho_trace_step *at = first;
    int m = 1;
    for (;; m++) {
        ho_nstep_push(&sum, (double)at->reward, lane->agent.gamma);
        if (at->end != HO_END_NONE || m == lane->agent.n_step || step + m == v.steps) {
            break;
        }
        at += v.episodes;
    }
    ho_replay_record r;
    r.bar = first->bar;
    r.next_bar = at->bar + 1;
    r.action = first->action;
    r.reward = (float)sum.reward;
    r.discount = at->terminal ? 0.0f : (float)sum.discount;
    r.later = 0;
    if (at->end == HO_END_NONE && step + m < v.steps) {
        r.later = lane->env.config.recycle
                      ? m * v.episodes
                      : (int32_t)(transitions_before(v, k, step + m, n, &all) - before);
    }
    for (int i = 0; i < HO_PORTFOLIO_FEATURES; i++) {
        r.portfolio[i] = first->before[i];
        r.next_portfolio[i] = at->after[i];
    }
    const int64_t slot = (lane->stored_before + before) % v.replay_capacity;
    uint4 *to = (uint4 *)&v.replay[(size_t)k * v.replay_capacity + slot];
    for (int i = 0; i < (int)(sizeof r / 16); i++) {
        to[i] = ((const uint4 *)&r)[i];
    }
}

/* ---- statistics ---- */

/* The sums of a slot, in step order: one thread walks its steps; grid (slots / 128, lanes) */
static __global__ void __launch_bounds__(EPOCH_THREADS)
    slot_sums(const __grid_constant__ ho_experience_view v)
{
    const int k = (int)blockIdx.y, n = (int)(blockIdx.x * EPOCH_THREADS + threadIdx.x);
    if (n >= v.episodes || !lane_runs(v, k)) {
        return;
    }
    const ho_trace_step *t = v.trace + (size_t)k * v.steps * v.episodes + n;
    const int steps = v.active_steps[(size_t)k * v.episodes + n];
    double reward = 0, reward_square = 0, ret_sum = 0, ret_square = 0, low = 0, high = 0;
#pragma unroll 8
    for (int step = 0; step < steps; step++) {
        const uint4 head = *(const uint4 *)&t[(size_t)step * v.episodes]; /* bar, reward, ret */
        const double r = (double)__uint_as_float(head.y);
        const double ret = __hiloint2double((int)head.w, (int)head.z);
        low = step == 0 || r < low ? r : low;
        high = step == 0 || r > high ? r : high;
        reward += r;
        reward_square += r * r;
        ret_sum += ret;
        ret_square += ret * ret;
    }
    ho_slot_stat *s = &v.slot_stat[(size_t)k * v.episodes + n];
    s->steps = (double)steps;
    s->reward = reward;
    s->reward_square = reward_square;
    s->ret = ret_sum;
    s->ret_square = ret_square;
    s->reward_min = low;
    s->reward_max = high;
}

/* The counts of a slot: one block; integer counters, so the order does not matter.
 * grid (slots, lanes) */
static __global__ void __launch_bounds__(EPOCH_THREADS)
    slot_counts(const __grid_constant__ ho_experience_view v)
{
    enum {
        FIRST = offsetof(ho_slot_stat, exposure) / sizeof(double),
        END = offsetof(ho_slot_stat, reward_min) / sizeof(double),
        ORDER = offsetof(ho_slot_stat, order) / sizeof(double) - FIRST,
        URGENCY = offsetof(ho_slot_stat, urgency) / sizeof(double) - FIRST,
        ENDED = offsetof(ho_slot_stat, ended) / sizeof(double) - FIRST,
        EXITS = offsetof(ho_slot_stat, exits) / sizeof(double) - FIRST,
        COUNT = offsetof(ho_slot_stat, count) / sizeof(double) - FIRST,
    };
    __shared__ int counter[END - FIRST];
    const int k = (int)blockIdx.y, n = (int)blockIdx.x;
    if (!lane_runs(v, k)) {
        return;
    }
    for (int i = (int)threadIdx.x; i < END - FIRST; i += EPOCH_THREADS) {
        counter[i] = 0;
    }
    __syncthreads();
    const ho_trace_step *t = v.trace + (size_t)k * v.steps * v.episodes + n;
    const int steps = v.active_steps[(size_t)k * v.episodes + n];
    for (int step = (int)threadIdx.x; step < steps; step += EPOCH_THREADS) {
        const ho_trace_step *at = &t[(size_t)step * v.episodes];
        const int action = at->action;
        atomicAdd(&counter[action / 9], 1);
        atomicAdd(&counter[ORDER + action / 3 % 3], 1);
        atomicAdd(&counter[URGENCY + action % 3], 1);
        atomicAdd(&counter[ENDED + at->end], 1);
        int32_t choice[HO_BRANCHES_MAX];
        ho_branches_choice(&v.policy.branches, action, choice);
        for (int d = 0; d < v.policy.branches.count; d++) {
            atomicAdd(&counter[COUNT + v.policy.branches.first[d] + choice[d]], 1);
        }
        for (int i = 0; i < at->exit_count; i++) {
            atomicAdd(&counter[EXITS + at->exit_reason[i]], 1);
        }
    }
    __syncthreads();
    double *to = (double *)&v.slot_stat[(size_t)k * v.episodes + n] + FIRST;
    for (int i = (int)threadIdx.x; i < END - FIRST; i += EPOCH_THREADS) {
        to[i] = (double)counter[i];
    }
}

static __device__ void merge_kelly(const ho_experience_view &v, int k)
{
    ho_lane_device *lane = &v.lane[k];
    ho_env_config *c = &lane->env.config;
    if (c->sizing != HO_SIZING_KELLY) {
        return;
    }
    const ho_moments none = {0, 0.0, 0.0};
    if (c->reset_flags & HO_RESET_KELLY) {
        lane->kelly = none;
    }
    for (int n = 0; n < v.episodes; n++) {
        ho_moments *m = &v.moments[(size_t)k * v.episodes + n];
        ho_moments_merge(&lane->kelly, m);
        *m = none;
    }
    c->kelly_share = ho_kelly_share(c, &lane->kelly);
}

static __device__ void fill_experience(const ho_slot_stat *sum, ho_epoch_stat *out)
{
    const double n = sum->steps > 0 ? sum->steps : 1.0;
    const double variance = sum->reward_square / n - sum->reward / n * (sum->reward / n);
    const double ret_variance = sum->ret_square / n - sum->ret / n * (sum->ret / n);
    out->experiences = (int64_t)sum->steps;
    out->reward_mean = sum->reward / n;
    out->reward_std = variance > 0.0 ? sqrt(variance) : 0.0;
    out->reward_min = sum->reward_min;
    out->reward_max = sum->reward_max;
    out->sharpe = ret_variance > 0.0 ? sum->ret / n / sqrt(ret_variance) : 0.0;
    for (int i = 0; i < HO_EXPOSURES; i++) {
        out->exposure_count[i] = (int64_t)sum->exposure[i];
    }
    for (int i = 0; i < HO_ORDERS; i++) {
        out->order_count[i] = (int64_t)sum->order[i];
    }
    for (int i = 0; i < HO_URGENCIES; i++) {
        out->urgency_count[i] = (int64_t)sum->urgency[i];
    }
    out->ended_ruin = (int64_t)sum->ended[HO_END_RUIN];
    out->ended_barrier = (int64_t)sum->ended[HO_END_BARRIER];
    out->ended_window = (int64_t)sum->ended[HO_END_WINDOW];
    out->ended_length = (int64_t)sum->ended[HO_END_LENGTH];
    out->exit_signal = (int64_t)sum->exits[HO_EXIT_SIGNAL];
    out->exit_stop = (int64_t)sum->exits[HO_EXIT_STOP];
    out->exit_profit = (int64_t)sum->exits[HO_EXIT_PROFIT];
    out->exit_time = (int64_t)sum->exits[HO_EXIT_TIME];
    out->exit_session = (int64_t)sum->exits[HO_EXIT_SESSION];
}

static __device__ void fill_updates(const ho_lane_device *lane, int batch_rows, ho_epoch_stat *out)
{
    const ho_update_sums *s = &lane->sums;
    out->updates = s->updates;
    out->loss_last = s->loss_last;
    out->grad_norm = s->grad_norm;
    out->learning_rate = s->learning_rate;
    if (s->rows > 0) {
        const double n = (double)s->rows, mean = s->q / n;
        const double variance = s->q_square / n - mean * mean;
        out->loss_mean = s->loss / (n / batch_rows);
        out->td_error_mean = s->td_abs / n;
        out->q_mean = mean;
        out->q_std = variance > 0.0 ? sqrt(variance) : 0.0;
        out->q_min = s->q_min;
        out->q_max = s->q_max;
    }
}

/* One block a lane; a thread sums one field over the slots, in order. */
static __global__ void __launch_bounds__(EPOCH_THREADS)
    epoch_close(const __grid_constant__ ho_experience_view v)
{
    enum { FIELDS = sizeof(ho_slot_stat) / sizeof(double) };
    __shared__ ho_slot_stat sum;
    const int k = (int)blockIdx.x, field = (int)threadIdx.x;
    ho_lane_device *lane = &v.lane[k];
    ho_epoch_stat *out = &v.stat[k];
    for (int i = field; i < (int)(sizeof *out / 8); i += EPOCH_THREADS) {
        ((int64_t *)out)[i] = 0;
    }
    if (!lane->active) {
        if (field == 0) {
            out->state = HO_LANE_FREE;
        }
        return;
    }
    /* a lane that tripped in an earlier epoch took no steps in this one */
    const bool ran = lane->guard == 0 || lane->sums.rows > 0;
    const bool is_min = field == offsetof(ho_slot_stat, reward_min) / sizeof(double);
    const bool is_max = field == offsetof(ho_slot_stat, reward_max) / sizeof(double);
    if (ran && field < FIELDS) {
        double x = 0.0;
        bool any = false;
        for (int n = 0; n < v.episodes; n++) {
            const ho_slot_stat *s = &v.slot_stat[(size_t)k * v.episodes + n];
            const double y = ((const double *)s)[field];
            if (s->steps == 0.0) {
                continue;
            }
            x = is_min ? (!any || y < x ? y : x) : is_max ? (!any || y > x ? y : x) : x + y;
            any = true;
        }
        ((double *)&sum)[field] = x;
    }
    __syncthreads();
    if (field != 0) {
        return;
    }
    if (ran) {
        fill_experience(&sum, out);
        fill_updates(lane, v.batch, out);
        out->epsilon = lane->epsilon;
        for (int i = 0; i < HO_ACTIONS; i++) {
            lane->count[i] += (int64_t)sum.count[i];
        }
        merge_kelly(v, k);
        lane->epoch++;
    }
    out->kelly_share = lane->env.config.kelly_share;
    out->curiosity_loss = lane->curiosity_loss;
    out->replay_fill = lane->replay_fill;
    out->state = lane->guard != 0 ? HO_LANE_DIVERGED : HO_LANE_ACTIVE;
    out->guard = lane->guard;
    out->guard_update = lane->guard_update;
    out->epoch = lane->epoch;
}

/* ---- launchers ---- */

ho_status ho_epoch_open(const ho_experience_view *v, cudaStream_t stream)
{
    epoch_open<<<(unsigned)v->lanes, 1, 0, stream>>>(*v);
    return ho_cuda_status(cudaGetLastError(), "epoch_open");
}

ho_status ho_experience_store(const ho_experience_view *v, cudaStream_t stream)
{
    replay_advance<<<(unsigned)v->lanes, 32, 0, stream>>>(*v);
    const ho_status rc = ho_cuda_status(cudaGetLastError(), "replay_advance");
    if (rc != HO_OK) {
        return rc;
    }
    const int64_t items = (int64_t)v->steps * v->episodes;
    const dim3 grid((unsigned)((items + STORE_THREADS - 1) / STORE_THREADS), (unsigned)v->lanes);
    replay_store<<<grid, STORE_THREADS, 0, stream>>>(*v);
    return ho_cuda_status(cudaGetLastError(), "replay_store");
}

ho_status ho_experience_stats(const ho_experience_view *v, cudaStream_t stream)
{
    const dim3 grid((unsigned)((v->episodes + EPOCH_THREADS - 1) / EPOCH_THREADS),
                    (unsigned)v->lanes);
    slot_sums<<<grid, EPOCH_THREADS, 0, stream>>>(*v);
    const ho_status rc = ho_cuda_status(cudaGetLastError(), "slot_sums");
    if (rc != HO_OK) {
        return rc;
    }
    slot_counts<<<dim3((unsigned)v->episodes, (unsigned)v->lanes), EPOCH_THREADS, 0, stream>>>(*v);
    return ho_cuda_status(cudaGetLastError(), "slot_counts");
}

ho_status ho_epoch_close(const ho_experience_view *v, cudaStream_t stream)
{
    epoch_close<<<(unsigned)v->lanes, EPOCH_THREADS, 0, stream>>>(*v);
    return ho_cuda_status(cudaGetLastError(), "epoch_close");
}
