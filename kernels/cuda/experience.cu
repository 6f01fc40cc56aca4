/* SPDX-License-Identifier: Apache-2.0
 * N x L environment steps of all lanes in one launch: network, choice, fills, barriers, diversity,
 * reward, record. A block carries E episode slots of one lane through the whole epoch; nothing
 * leaves the multiprocessor between steps but the trace.
 *
 * Thread `slot_thread(e)` owns slot e: it alone touches the slot's environment. All threads share
 * the network (policy_block.cuh). A slot's numbers depend on its own state and counters alone, and
 * the network's sums on nothing but the layer, so the bits do not depend on E or on what shares
 * the GPU. Compiled without contraction (--fmad=false): money has the CPU backend's bits. */
#include "kernels/cuda/experience.h"

#include <cuda_bf16.h>

#include "kernels/agents/explore.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/policy_block.cuh"
#include "kernels/env/step.h"

static __device__ __forceinline__ void put_column(float *to, float x)
{
    *to = x;
}

static __device__ __forceinline__ void put_column(__nv_bfloat16 *to, float x)
{
    *to = __float2bfloat16(x);
}

/* Issues a load whose value nobody waits for: the line is in L1 when the step reads it. */
static __device__ __forceinline__ void touch(const void *p)
{
    asm volatile("{\n.reg .u32 ignored;\nld.global.ca.u32 ignored, [%0];\n}" ::"l"(p));
}

static __device__ __forceinline__ void touch_bar(const ho_market_view &m, const double *sigma,
                                                 int32_t t)
{
    if (t + 1 < m.T) {
        touch(m.bars + (int64_t)(t + 1) * HO_BAR_COLUMNS);
        touch(m.bars + (int64_t)(t + 1) * HO_BAR_COLUMNS + HO_VOLUME);
        touch(m.mean_volume + t);
        touch(sigma + t + 1);
        touch(m.bar_flags + t + 1);
    }
}

/* What a block keeps in its extra shared memory. */
template <int E> struct experience_block {
    ho_env_lane env;
    ho_slot_device slot[E];
    int32_t bar[E]; /* row of the features of each slot's state; -1: idle */
};

/* The slot's portfolio columns into its state row. */
template <typename T>
static __device__ __forceinline__ void put_portfolio(T *row, int first, int columns,
                                                     const float (&p)[HO_PORTFOLIO_FEATURES])
{
#pragma unroll
    for (int i = 0; i < HO_PORTFOLIO_FEATURES; i++) {
        if (i < columns) {
            put_column(row + first + i, p[i]);
        }
    }
}

/* A whole market row by one thread: after a reset, when the row was not foreseen. */
template <typename T>
static __device__ __forceinline__ void put_market_row(T *row, const void *features, int32_t bar)
{
    const uint4 *from = (const uint4 *)((const T *)features + (int64_t)bar * HO_STATE_PAD);
#pragma unroll
    for (int i = 0; i < (int)(HO_STATE_PAD * sizeof(T) / 16); i++) {
        ((uint4 *)row)[i] = from[i];
    }
}

/* The composed action of an output, and back. */
static __device__ __forceinline__ int composed_action(int choice, int exposure5)
{
    return exposure5 ? ho_action_from_exposure(choice) : choice;
}

/* The output chosen: held, random and then held, or the best. */
static __device__ __forceinline__ int choose(const ho_lane_device *lane, ho_slot_device *s,
                                             const float *score, int actions, uint32_t step,
                                             uint32_t slot)
{
    if (s->hold_left > 0) {
        s->hold_left--;
        return s->hold_choice;
    }
    const double epsilon = lane->epsilon;
    if (epsilon > 0.0) {
        const uint32_t *key = lane->env.key;
        const uint32_t epoch = (uint32_t)lane->epoch;
        const ho_rng4 r = ho_rng(key, step, slot, epoch, HO_RNG_EPSILON, 0);
        if (ho_rng_double(r.v[0], r.v[1]) < epsilon) {
            const ho_rng4 a = ho_rng(key, step, slot, epoch, HO_RNG_ACTION, 0);
            s->hold_choice = (int32_t)ho_rng_below(a.v[0], (uint32_t)actions);
            s->hold_left =
                ho_hold_length(lane->agent.explore_hold, ho_rng_double(r.v[2], r.v[3])) - 1;
            return s->hold_choice;
        }
    }
    return policy_argmax(score, lane->has_bonus ? lane->bonus : NULL, actions);
}

template <typename T, int NT, bool HELD>
static __global__ void __launch_bounds__(POLICY_THREADS, 1)
    experience(const __grid_constant__ ho_experience_view v,
               const __grid_constant__ policy_plan plan)
{
    constexpr int E = 8 * NT, SLOTS_WARP = E / POLICY_WARPS;
    extern __shared__ __align__(128) uint8_t shared[];
    const int groups = (v.episodes + E - 1) / E;
    const int k = (int)blockIdx.x / groups, first = (int)blockIdx.x % groups * E;
    const ho_lane_device *lane = &v.lane[k];
    if (!lane->active || lane->guard != 0) {
        return;
    }
    experience_block<E> *block = (experience_block<E> *)(shared + plan.extra);
    const uint8_t *packed = v.packed + (size_t)k * v.policy.bytes;
    policy_held held;
    if (threadIdx.x == 0) {
        block->env = lane->env;
    }
    for (int i = (int)threadIdx.x; i < 2 * E * STATE_PITCH; i += POLICY_THREADS) {
        const int half = i / (E * STATE_PITCH);
        put_column((T *)(shared + plan.state[half]) + i % (E * STATE_PITCH), 0.0f);
    }
    if (threadIdx.x < E) {
        block->bar[threadIdx.x] = -1;
    }
    policy_load<T, HELD>(v.policy, plan, packed, shared, held); /* ends with a barrier */

    const int warp = (int)threadIdx.x / 32, l = (int)threadIdx.x % 32;
    const int e = warp * SLOTS_WARP + l; /* the slot this thread owns, if any */
    const int n = first + e;
    const bool owner = l < SLOTS_WARP && n < v.episodes;
    ho_slot_device *s = &block->slot[owner ? e : 0];
    const size_t at = (size_t)k * v.episodes + (owner ? n : 0);
    const bool kelly = block->env.config.sizing == HO_SIZING_KELLY;
    ho_ledger *ledger = kelly ? &v.ledger[at] : NULL;
    const ho_ring ring = {v.ring + (size_t)k * v.ring_words * v.episodes + (owner ? n : 0),
                          v.episodes};
    const uint32_t epoch = (uint32_t)lane->epoch;
    const double *sigma = block->env.sigma;
    float p[HO_PORTFOLIO_FEATURES] = {0};
    int active_steps = 0;
    if (owner) {
        for (int i = 0; i < (int)(sizeof *s / 4); i++) {
            ((int32_t *)s)[i] = 0; /* padding, too: checkpoints compare bytes */
        }
        *s = v.slot[at];
        ho_env_epoch_begin(&block->env, &v.market, &s->env, (uint32_t)n, epoch, ledger);
        if (s->env.steps == 0) {
            s->hold_left = 0;
            s->hold_choice = 0;
        }
        ho_env_portfolio(&block->env, &v.market, &s->env, p);
        T *row = (T *)(shared + plan.state[0]) + e * STATE_PITCH;
        put_market_row(row, v.features, s->env.t);
        put_portfolio(row, v.market_columns, v.state_columns, p);
        block->bar[e] = s->env.t;
        touch_bar(v.market, sigma, s->env.t);
    }
    for (int step = 0; step < v.steps; step++) {
        const int now = step & 1, next = now ^ 1;
        __syncthreads(); /* states and bars of this step */
        constexpr int row_chunks = (int)(HO_STATE_PAD * sizeof(T) / 16);
        for (int i = (int)threadIdx.x; i < E * row_chunks; i += POLICY_THREADS) {
            const int row = i / row_chunks, chunk = i % row_chunks;
            const int32_t bar = block->bar[row];
            if (bar >= 0) { /* the next bar's row, which a step without reset needs */
                const uint32_t to =
                    policy_shared((T *)(shared + plan.state[next]) + row * STATE_PITCH) +
                    chunk * 16;
                const T *from = (const T *)v.features + ((int64_t)bar + 1) * HO_STATE_PAD;
                asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to),
                             "l"((const uint8_t *)from + chunk * 16)
                             : "memory");
            }
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        if (owner && s->env.active) {
            touch_bar(v.market, sigma, s->env.t + 1);
        }
        policy_scores<T, NT, HELD>(v.policy, plan, packed, shared, held, now);
        asm volatile("cp.async.wait_group 0;" ::: "memory");
        __syncthreads(); /* scores, and the next rows of all threads */
        if (!owner) {
            continue;
        }
        ho_trace_step *trace = &v.trace[((size_t)k * v.steps + step) * v.episodes + n];
        if (!s->env.active) {
            trace->valid = 0;
            continue;
        }
        const float *score = (const float *)(shared + plan.score) + e * SCORE_PITCH;
        ho_trace_step record;
        record.bar = s->env.t;
        const int choice = choose(lane, s, score, v.policy.actions, (uint32_t)step, (uint32_t)n);
        const int action = composed_action(choice, v.exposure5);
        const ho_order order = ho_order_from_action(action);
        ho_step_out out;
        ho_env_step(&block->env, &v.market, &s->env, ring, &order, 0.0f, ledger, &out);
        record.reward = out.reward;
        record.ret = out.ret;
        record.action = (uint8_t)action;
        record.choice = (uint8_t)choice;
        record.valid = 1;
        record.end = (uint8_t)out.end;
        record.terminal = (uint8_t)out.terminal;
        record.exit_count = (uint8_t)out.exit_count;
        record.exit_reason[0] = (uint8_t)(out.exit_count > 0 ? out.exit_reason[0] : 0);
        record.exit_reason[1] = (uint8_t)(out.exit_count > 1 ? out.exit_reason[1] : 0);
#pragma unroll
        for (int i = 0; i < HO_PORTFOLIO_FEATURES; i++) {
            record.before[i] = p[i];
        }
        ho_env_portfolio(&block->env, &v.market, &s->env, p);
#pragma unroll
        for (int i = 0; i < HO_PORTFOLIO_FEATURES; i++) {
            record.after[i] = p[i];
        }
#pragma unroll
        for (int i = 0; i < (int)(sizeof record / 16); i++) {
            ((uint4 *)trace)[i] = ((const uint4 *)&record)[i];
        }
        active_steps++;
        if (kelly) {
            ho_moments_add_closed(&block->env.config, &v.moments[at], ledger);
        }
        T *row = (T *)(shared + plan.state[next]) + e * STATE_PITCH;
        if (out.end != HO_END_NONE) {
            s->hold_left = 0;
            s->hold_choice = 0;
            ho_env_next(&block->env, &v.market, &s->env, &out, (uint32_t)step + 1, (uint32_t)n,
                        epoch, ledger);
            if (s->env.active) {
                ho_env_portfolio(&block->env, &v.market, &s->env, p);
                put_market_row(row, v.features, s->env.t);
                touch_bar(v.market, sigma, s->env.t);
            }
        }
        put_portfolio(row, v.market_columns, v.state_columns, p);
        block->bar[e] = s->env.active ? s->env.t : -1;
    }
    if (owner) {
        v.slot[at] = *s;
        v.active_steps[at] = active_steps;
    }
}

/* ---- launcher -------------------------------------------------------------------------------- */

typedef void (*experience_kernel)(ho_experience_view, policy_plan);

static int block_extra(int states)
{
    return states == 8    ? (int)sizeof(experience_block<8>)
           : states == 16 ? (int)sizeof(experience_block<16>)
           : states == 32 ? (int)sizeof(experience_block<32>)
                          : (int)sizeof(experience_block<64>);
}

static experience_kernel kernel_of(int bf16, int held, int states)
{
    if (!bf16) {
        return states == 8    ? experience<float, 1, false>
               : states == 16 ? experience<float, 2, false>
               : states == 32 ? experience<float, 4, false>
                              : NULL;
    }
    if (held) {
        return states == 8    ? experience<__nv_bfloat16, 1, true>
               : states == 16 ? experience<__nv_bfloat16, 2, true>
               : states == 32 ? experience<__nv_bfloat16, 4, true>
                              : experience<__nv_bfloat16, 8, true>;
    }
    return states == 8    ? experience<__nv_bfloat16, 1, false>
           : states == 16 ? experience<__nv_bfloat16, 2, false>
           : states == 32 ? experience<__nv_bfloat16, 4, false>
                          : experience<__nv_bfloat16, 8, false>;
}

/* The fewest slots a block that lets all blocks run at once, as far as the network's activations
 * fit; 0: not even 8 do. A pure choice of speed: results do not depend on it. */
static int choose_states(const ho_experience_view *v, policy_plan *plan)
{
    int chosen = 0;
    for (int states = 8; states <= 64; states *= 2) {
        const policy_plan p =
            policy_plan_make(&v->policy, states, 1, block_extra(states), v->shared_limit);
        if (p.bytes > v->shared_limit || !kernel_of(v->policy.bf16, p.held, states)) {
            break;
        }
        chosen = states;
        *plan = p;
        if ((v->episodes + states - 1) / states * v->lanes <= v->processors) {
            break;
        }
    }
    return chosen;
}

ho_status ho_experience_check(const ho_experience_view *v, ho_err *err)
{
    policy_plan plan;
    if (choose_states(v, &plan) == 0) {
        return ho_err_set(err, HO_EUNSUPPORTED,
                          "a network of width %d does not fit this GPU's shared memory; "
                          "make agent.hidden1, hidden2 or head smaller",
                          (int)v->policy.hidden_max);
    }
    return HO_OK;
}

ho_status ho_experience_prepare(int shared_limit)
{
    ho_status rc = HO_OK;
    for (int form = 0; form < 3; form++) {
        for (int states = 8; states <= 64 && rc == HO_OK; states *= 2) {
            const experience_kernel kernel = kernel_of(form > 0, form > 1, states);
            if (kernel) {
                rc = ho_cuda_status(
                    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         shared_limit),
                    "shared memory of the experience kernel");
            }
        }
    }
    return rc;
}

ho_status ho_experience_run(const ho_experience_view *v, cudaStream_t stream)
{
    policy_plan plan;
    const int states = choose_states(v, &plan);
    if (states == 0) {
        return HO_EINVAL;
    }
    const unsigned blocks = (unsigned)((v->episodes + states - 1) / states * v->lanes);
    kernel_of(v->policy.bf16, plan.held,
              states)<<<blocks, POLICY_THREADS, plan.bytes, stream>>>(*v, plan);
    return ho_cuda_status(cudaGetLastError(), "experience");
}
