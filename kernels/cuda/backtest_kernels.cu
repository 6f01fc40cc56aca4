/* SPDX-License-Identifier: Apache-2.0
 * Backtest passes on the device. A network block carries up to 8 windows of one agent (or
 * ensemble) from their first bar to their last without leaving the multiprocessor; a rule pass is
 * one thread. Compiled without contraction: money has the CPU backend's bits. */
#include "kernels/cuda/backtest_kernels.h"

#include <cuda_bf16.h>

#include "kernels/cuda/device.h"
#include "kernels/cuda/pass.cuh"
#include "kernels/cuda/policy_block.cuh"

enum { RULE_THREADS = 32 };

typedef struct backtest_block {
    pass_plan plan[PASSES_BLOCK];
    pass_state state[PASSES_BLOCK];
} backtest_block;

/* What an ensemble has said about one state so far. */
typedef struct ensemble_vote {
    double total[HO_ACTIONS]; /* scores summed over members */
    int32_t votes[HO_ACTIONS];
    int32_t surest; /* choice of the most confident member */
    double confidence;
} ensemble_vote;

static __device__ void vote_clear(ensemble_vote *v)
{
    for (int a = 0; a < HO_ACTIONS; a++) {
        v->total[a] = 0.0;
        v->votes[a] = 0;
    }
    v->surest = 0;
    v->confidence = -1.0;
}

/* How far the best score stands out: (best - mean) / deviation over the actions. */
static __device__ double confidence_of(const float *score, int actions)
{
    double sum = 0.0, square = 0.0, best = score[0];
    for (int a = 0; a < actions; a++) {
        sum += score[a];
        best = score[a] > best ? score[a] : best;
    }
    const double mean = sum / actions;
    for (int a = 0; a < actions; a++) {
        square += (score[a] - mean) * (score[a] - mean);
    }
    return square > 0.0 ? (best - mean) / sqrt(square / actions) : 0.0;
}

static __device__ void vote_add(ensemble_vote *v, const float *score, int actions)
{
    const int best = policy_argmax(score, NULL, actions);
    const double confidence = confidence_of(score, actions);
    for (int a = 0; a < actions; a++) {
        v->total[a] += score[a];
    }
    v->votes[best]++;
    if (confidence > v->confidence) {
        v->confidence = confidence;
        v->surest = best;
    }
}

/* A tie of votes goes to the action with the higher summed score, then to the lower index. */
static __device__ int vote_decide(const ensemble_vote *v, int policy, int actions)
{
    if (policy == HO_POLICY_CONFIDENCE) {
        return v->surest;
    }
    int best = 0;
    for (int a = 1; a < actions; a++) {
        const int more = policy == HO_POLICY_VOTE ? v->votes[a] - v->votes[best] : 0;
        best = more > 0 || (more == 0 && v->total[a] > v->total[best]) ? a : best;
    }
    return best;
}

static __device__ __forceinline__ void put_value(float *to, float x)
{
    *to = x;
}

static __device__ __forceinline__ void put_value(__nv_bfloat16 *to, float x)
{
    *to = __float2bfloat16(x);
}

/* The portfolio columns of a pass into its state row. */
template <typename T>
static __device__ __forceinline__ void put_state(const backtest_view &v, const pass_plan *p,
                                                 const pass_state *s, T *row)
{
    float columns[HO_PORTFOLIO_FEATURES];
    ho_env_portfolio(&p->lane, &v.market, &s->env, columns);
#pragma unroll
    for (int i = 0; i < HO_PORTFOLIO_FEATURES; i++) {
        if (i < v.state_columns) {
            put_value(row + v.market_columns + i, columns[i]);
        }
    }
}

/* Copies the market rows of bar `t + ahead` of every live pass into a state buffer. */
template <typename T>
static __device__ __forceinline__ void
fetch_rows(const backtest_view &v, const backtest_block *block, int count, T *state, int ahead)
{
    constexpr int chunks = (int)(HO_STATE_PAD * sizeof(T) / 16);
    for (int i = (int)threadIdx.x; i < count * chunks; i += POLICY_THREADS) {
        const int row = i / chunks, chunk = i % chunks;
        const pass_state *s = &block->state[row];
        const int64_t bar = (int64_t)s->env.t + ahead;
        if (!s->done && bar < block->plan[row].lane.end) {
            const uint8_t *from = (const uint8_t *)((const T *)v.features + bar * HO_STATE_PAD);
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                             policy_shared(state + row * STATE_PITCH) + chunk * 16),
                         "l"(from + chunk * 16)
                         : "memory");
        }
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
}

static __device__ __forceinline__ void touch_line(const void *p)
{
    asm volatile("{\n.reg .u32 ignored;\nld.global.ca.u32 ignored, [%0];\n}" ::"l"(p));
}

/* Brings what the next step reads of the market into L1 while the network runs. */
static __device__ __forceinline__ void touch_next(const ho_market_view &m, const pass_plan *p,
                                                  const pass_state *s)
{
    const int64_t t = (int64_t)s->env.t + 2;
    if (t < m.T) {
        touch_line(m.bars + t * HO_BAR_COLUMNS);
        touch_line(m.bars + t * HO_BAR_COLUMNS + HO_VOLUME);
        touch_line(m.mean_volume + t);
        touch_line(p->lane.sigma + t);
        touch_line(m.bar_flags + t);
    }
}

template <typename T, bool HELD, bool ENSEMBLE>
static __global__ void __launch_bounds__(POLICY_THREADS, 1)
    network_passes(const __grid_constant__ backtest_view v,
                   const __grid_constant__ policy_plan plan)
{
    extern __shared__ __align__(128) uint8_t shared[];
    const pass_block group = v.block[blockIdx.x];
    backtest_block *block = (backtest_block *)(shared + plan.extra);
    const uint8_t *packed = v.packed + (size_t)group.slots[0] * v.policy.bytes;
    const int warp = (int)threadIdx.x / 32;
    const bool owner = threadIdx.x % 32 == 0 && warp < group.count;
    pass_plan *p = &block->plan[warp];
    pass_state *s = &block->state[warp];
    policy_held held;
    for (int i = (int)threadIdx.x; i < 2 * PASSES_BLOCK * STATE_PITCH; i += POLICY_THREADS) {
        put_value((T *)(shared + plan.state[i / (PASSES_BLOCK * STATE_PITCH)]) +
                      i % (PASSES_BLOCK * STATE_PITCH),
                  0.0f);
    }
    for (int i = (int)threadIdx.x; i < group.count * (int)(sizeof(pass_plan) / 8);
         i += POLICY_THREADS) {
        ((int64_t *)block->plan)[i] = ((const int64_t *)(v.plan + group.first))[i];
    }
    policy_load<T, HELD>(v.policy, plan, packed, shared, held); /* ends with a barrier */
    if (owner) {
        pass_begin(s, p, &v.market);
    }
    __syncthreads();
    fetch_rows(v, block, group.count, (T *)(shared + plan.state[0]), 0);
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    if (owner) {
        put_state(v, p, s, (T *)(shared + plan.state[0]) + warp * STATE_PITCH);
    }
    ensemble_vote vote;
    for (int now = 0;; now ^= 1) {
        if (!__syncthreads_or(owner && !s->done)) {
            break;
        }
        T *next = (T *)(shared + plan.state[now ^ 1]);
        const float *score = (const float *)(shared + plan.score) + warp * SCORE_PITCH;
        fetch_rows(v, block, group.count, next, 1);
        if (owner && !s->done) {
            touch_next(v.market, p, s);
        }
        if (ENSEMBLE) {
            if (owner) {
                vote_clear(&vote);
            }
            for (int k = 0; k < group.members; k++) {
                const uint8_t *member = v.packed + (size_t)group.slots[k] * v.policy.bytes;
                for (int i = (int)threadIdx.x; i < v.policy.bias_bytes / 4; i += POLICY_THREADS) {
                    ((float *)(shared + plan.bias))[i] =
                        ((const float *)(member + v.policy.bias_at))[i];
                }
                __syncthreads();
                policy_scores<T, 1, false>(v.policy, plan, member, shared, held, now);
                __syncthreads();
                if (owner && !s->done) {
                    vote_add(&vote, score, v.policy.actions);
                }
                __syncthreads(); /* scores are read before the next member's */
            }
        } else {
            policy_scores<T, 1, HELD>(v.policy, plan, packed, shared, held, now);
        }
        asm volatile("cp.async.wait_group 0;" ::: "memory");
        __syncthreads();
        if (owner && !s->done) {
            const int choice = ENSEMBLE ? vote_decide(&vote, group.policy, v.policy.actions)
                                        : policy_argmax(score, NULL, v.policy.actions);
            const int action = v.exposure5 ? ho_action_from_exposure(choice) : choice;
            const ho_order order = ho_order_from_action(action);
            pass_step(s, p, &v.market, &order, action);
            if (!s->done) {
                put_state(v, p, s, next + warp * STATE_PITCH);
            }
        }
    }
    if (owner) {
        v.state[group.first + warp] = *s;
    }
}

/* One thread a pass. */
static __global__ void __launch_bounds__(RULE_THREADS)
    rule_passes(const __grid_constant__ backtest_view v)
{
    const int i = (int)(blockIdx.x * RULE_THREADS + threadIdx.x);
    if (i >= v.rules) {
        return;
    }
    const pass_plan *p = &v.plan[v.rule_first + i];
    pass_state *s = &v.state[v.rule_first + i];
    ho_rule rule = p->rule;
    pass_begin(s, p, &v.market);
    while (!s->done) {
        int32_t action = -1;
        const ho_order order =
            ho_rule_order(&rule, &p->lane, &v.market, &s->env, s->steps, &action);
        pass_step(s, p, &v.market, &order, action);
    }
}

/* ---- launchers ---- */

typedef void (*network_kernel)(backtest_view, policy_plan);

static network_kernel kernel_of(int bf16, int held, int ensemble)
{
    if (!bf16) {
        return ensemble ? network_passes<float, false, true> : network_passes<float, false, false>;
    }
    if (ensemble) {
        return network_passes<__nv_bfloat16, false, true>;
    }
    return held ? network_passes<__nv_bfloat16, true, false>
                : network_passes<__nv_bfloat16, false, false>;
}

ho_status ho_cuda_backtest_prepare(int shared_limit)
{
    ho_status rc = HO_OK;
    for (int form = 0; form < 8 && rc == HO_OK; form++) {
        rc = ho_cuda_status(cudaFuncSetAttribute(kernel_of(form & 1, form & 2, form & 4),
                                                 cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                 shared_limit),
                            "shared memory of the backtest kernel");
    }
    return rc;
}

ho_status ho_cuda_backtest_networks(const backtest_view *v, cudaStream_t stream)
{
    if (v->blocks == 0) {
        return HO_OK;
    }
    policy_plan plan = policy_plan_make(&v->policy, PASSES_BLOCK, !v->ensemble,
                                        (int)sizeof(backtest_block), v->shared_limit);
    if (plan.bytes > v->shared_limit) {
        return HO_EUNSUPPORTED;
    }
    if (v->ensemble) { /* every member has its own weights: none are resident */
        for (int l = 0; l < HO_DEVICE_LAYERS; l++) {
            plan.resident[l] = -1;
        }
    }
    kernel_of(v->policy.bf16, plan.held,
              v->ensemble)<<<(unsigned)v->blocks, POLICY_THREADS, plan.bytes, stream>>>(*v, plan);
    return ho_cuda_status(cudaGetLastError(), "network_passes");
}

ho_status ho_cuda_backtest_rules(const backtest_view *v, cudaStream_t stream)
{
    if (v->rules == 0) {
        return HO_OK;
    }
    rule_passes<<<(unsigned)((v->rules + RULE_THREADS - 1) / RULE_THREADS), RULE_THREADS, 0,
                  stream>>>(*v);
    return ho_cuda_status(cudaGetLastError(), "rule_passes");
}
