/* SPDX-License-Identifier: Apache-2.0
 * Backtest passes on the device. A network block carries up to 8 windows of one agent (or
 * ensemble) from their first bar to their last without leaving the multiprocessor: a warp a window
 * for the network, the choice and the step, and four that help them (pass_helpers.cuh). A rule pass
 * is one thread.
 * Compiled without contraction: money has the CPU backend's bits. */
#include "kernels/cuda/backtest_kernels.h"

#include <cuda_bf16.h>
#include <stddef.h>

#include "kernels/cuda/device.h"
#include "kernels/cuda/pass_helpers.cuh"
#include "kernels/cuda/sample_block.cuh"

enum { RULE_THREADS = 128 /* a warp a scheduler, as fast as one alone; the rest is an epoch's */ };

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

/* best: the member's best choice; voted: the one it takes, another one when it samples. */
static __device__ void vote_add(ensemble_vote *v, const float *score, int best, int voted,
                                int actions)
{
    const double confidence = confidence_of(score, actions);
    for (int a = 0; a < actions; a++) {
        v->total[a] += score[a];
    }
    v->votes[voted]++;
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

/* Branching: the scores of the 45 composed actions, each the sum of its choices', in place of those
 * of the choices; by a pass's warp. */
static __device__ void compose_scores(const ho_branches *b, float *score)
{
    float sum[2] = {0.0f, 0.0f};
    for (int i = 0; i < 2; i++) {
        const int action = (int)threadIdx.x % 32 + 32 * i;
        int32_t choice[HO_BRANCHES_MAX];
        ho_branches_choice(b, action < HO_ACTIONS ? action : 0, choice);
        for (int d = 0; d < b->count; d++) {
            sum[i] += score[b->first[d] + choice[d]];
        }
    }
    __syncwarp();
    for (int i = 0; i < 2; i++) {
        const int action = (int)threadIdx.x % 32 + 32 * i;
        if (action < HO_ACTIONS) {
            score[action] = sum[i];
        }
    }
    __syncwarp();
}

/* The greedy composed action of a pass's scores, on every thread of its warp. */
static __device__ __forceinline__ int32_t greedy_action(const ho_branches *b, const float *score)
{
    int32_t choice[HO_BRANCHES_MAX] = {0};
#pragma unroll
    for (int d = 0; d < HO_BRANCHES_MAX; d++) {
        if (d < b->count) {
            choice[d] = group_argmax<32>(score + b->first[d], NULL, b->size[d]);
        }
    }
    return ho_branches_action(b, choice);
}

/* Index of a pass's next decision; its books, steps included, are a bar behind. */
static __device__ __forceinline__ int64_t decision_of(const pass_state *s, const pass_plan *p)
{
    return (int64_t)s->env.t - p->lane.begin;
}

/* What one agent does in a pass's state: the composed action, on the warp's first thread. sampled:
 * drawn from its policy with the counter `step`, weights in `draw`. */
static __device__ __forceinline__ int32_t agent_action(const ho_branches *b,
                                                       const ho_lane_device *lane, bool sampled,
                                                       int64_t step, const float *score,
                                                       float *draw)
{
    if (!sampled) {
        return greedy_action(b, score);
    }
    const sample_at at = {lane->env.key, (uint32_t)step, 0, 0, HO_RNG_POLICY};
    return group_sample<32>(*b, at, score, draw, true);
}

/* The portfolio columns of a pass at the close `close` into its state row: its warp gathers
 * their terms, then a thread has a column. formulas: of each column; PLAIN: the settings are. */
template <typename T, bool PLAIN>
static __device__ __forceinline__ void
warp_portfolio(const backtest_view &v, const pass_plan *p, const ho_env *e, const double *n_log2_n,
               double close, double sigma, const uint64_t *formulas, ho_portfolio_terms *terms,
               T *row)
{
    const int l = (int)threadIdx.x % 32;
    const uint64_t formula = formulas[l < HO_PORTFOLIO_FEATURES ? l : 0];
    ho_portfolio_update(&p->lane, n_log2_n, e, close, sigma, PLAIN, aligned16(terms));
    __syncwarp();
    if (l < v.state_columns) {
        const ho_ratio r = ho_portfolio_ratio(terms, formula, l);
        put_column(row + v.market_columns + l,
                   ho_ratio_value(&r, ho_portfolio_limit(p->lane.config.state_form, l)));
    }
}

/* A pass before its step. */
typedef struct pass_start {
    ho_env env;
    bool plain; /* the settings and the bar's open are (kernels/env/fill.h) */
    ho_category_place place;
} pass_start;

/* plain: the settings are. */
template <bool HELD>
static __device__ __forceinline__ pass_start start_of(const pass_state *s, const pass_plan *p,
                                                      const ho_quote *q, uint32_t *ring,
                                                      int32_t plain)
{
    pass_start start;
    start.env = *aligned16(&s->env);
    start.plain = HELD && (plain & ho_open_is_plain(&start.env.account, q));
    start.place = ho_diversity_place(&p->lane.config, &start.env, {ring, 1});
    return start;
}

/* What a pass's warp has at hand for its steps. */
typedef struct pass_tools {
    pass_state *state;
    const pass_plan *plan;
    const double *n_log2_n;
    uint32_t *ring;
    const uint64_t *formulas;
    ho_portfolio_terms *terms;
} pass_tools;

/* One bar of a pass and, if it goes on, the columns of the state after it, by its warp. */
template <typename T, bool PLAIN>
static __device__ __forceinline__ pass_step warp_step(const backtest_view &v,
                                                      const pass_tools &tools, const ho_quote *q,
                                                      const ho_offer *offer, const ho_env *from,
                                                      const ho_category_place *place,
                                                      const ho_order *order, int32_t wanted,
                                                      int32_t action, pass_note *note, T *next)
{
    ho_env env;
    const pass_step step =
        pass_advance<true, PLAIN>(tools.state, tools.plan, tools.n_log2_n, q, offer, from, place,
                                  tools.ring, order, wanted, action, note, &env);
    __syncwarp();
    if (step == PASS_GOES_ON) {
        warp_portfolio<T, PLAIN>(v, tools.plan, &env, tools.n_log2_n, q->close, q->sigma_next,
                                 tools.formulas, tools.terms, next);
    }
    return step;
}

/* The columns of a bar in which nothing traded. category: of its order, -1: without an entropy. */
template <typename T>
static __device__ __forceinline__ void put_quiet(const backtest_view &v, const pass_quiet *quiet,
                                                 int category, T *row)
{
    const int l = (int)threadIdx.x % 32;
    if (l < v.state_columns) {
        put_column(row + v.market_columns + l, l == ENTROPY_COLUMN && category >= 0
                                                   ? quiet->entropy[category]
                                                   : quiet->column[l]);
    }
}

/* The market row of bar t into a state row, by a pass's warp. */
template <typename T>
static __device__ __forceinline__ void warp_fetch(const backtest_view &v, const pass_plan *p,
                                                  T *row, int32_t t)
{
    const int chunk = (int)threadIdx.x % 32;
    if (chunk < (int)(HO_STATE_PAD * sizeof(T) / 16) && t < p->lane.end) {
        const uint8_t *from = (const uint8_t *)((const T *)v.features + (int64_t)t * HO_STATE_PAD);
        copy16_async((uint8_t *)row + chunk * 16, from + chunk * 16);
    }
}

/* FEW: blocks of few passes; of kernels that are not HELD each block decides. */
template <typename T, bool HELD, bool ENSEMBLE, bool FEW>
static __global__ void __launch_bounds__(PASS_THREADS, 1)
    network_passes(const __grid_constant__ backtest_view v,
                   const __grid_constant__ policy_plan plan)
{
    constexpr int HELPER_REGISTERS = FEW ? 88 : 72; /* what either takes without spilling */
    extern __shared__ __align__(128) uint8_t shared[];
    const pass_block group = v.block[blockIdx.x];
    backtest_block *block = (backtest_block *)(shared + plan.extra);
    const uint8_t *packed = v.packed + (size_t)group.slots[0] * v.policy.bytes;
    const int warp = warp_number();
    const bool roomy = HELD || v.roomy;
    const bool few = HELD ? FEW : v.few && group.count <= FEW_PASSES;
    const bool twice = !HELD || v.racecheck;
    const pass_plan *plans = plans_of(v, block, group, roomy);
    if (warp >= POLICY_WARPS) {
        registers_for_helpers<HELD, HELPER_REGISTERS>();
        help_passes<T>(v, plan, shared, block, group, roomy, few, twice);
        return;
    }
    registers_for_network<HELD, HELPER_REGISTERS>();
    const bool exists = warp < group.count, owner = exists && threadIdx.x % 32 == 0;
    const pass_plan *p = &plans[exists ? warp : 0];
    pass_state *s = &block->state[warp];
    float *score = (float *)(shared + plan.score) + warp * SCORE_PITCH;
    T *const rows = (T *)(shared + plan.state) + warp * STATE_PITCH;
    const int row_elements = PASSES_BLOCK * STATE_PITCH;
    policy_held held;
    policy_ahead ahead;
    for (int i = (int)threadIdx.x; i < STATE_ROWS * row_elements; i += POLICY_THREADS) {
        put_column((T *)(shared + plan.state) + i, 0.0f);
    }
    for (int i = (int)threadIdx.x; roomy && i < group.count * (int)(sizeof(pass_plan) / 8);
         i += POLICY_THREADS) {
        ((int64_t *)block->plan)[i] = ((const int64_t *)(v.plan + group.first))[i];
    }
    if ((int)threadIdx.x < HO_PORTFOLIO_FEATURES) {
        block->formula[threadIdx.x] =
            ho_portfolio_formula(v.plan[group.first].lane.config.state_form, (int)threadIdx.x);
    }
    for (int i = (int)threadIdx.x; i < (int)(sizeof block->state / 4); i += POLICY_THREADS) {
        ((int32_t *)block->state)[i] = 0; /* warps without a pass look at theirs, too */
    }
    if (roomy && (int)threadIdx.x < group.count) {
        copy_order_settings(&v.plan[group.first + threadIdx.x].lane.config,
                            &block->orders[threadIdx.x]);
    }
    for (int i = (int)threadIdx.x; roomy && i < HO_PORTFOLIO_FEATURES; i += POLICY_THREADS) {
        for (int pass = 0; pass < PASSES_BLOCK; pass++) {
            block->quiet[pass].column[i] = 0.0f;
        }
    }
    for (int i = (int)threadIdx.x; roomy && i <= HO_DIVERSITY_MAX; i += POLICY_THREADS) {
        block->n_log2_n[i] = v.market.n_log2_n[i];
    }
    const double *n_log2_n = roomy ? block->n_log2_n : v.market.n_log2_n;
    policy_load<T, HELD>(v.policy, plan, packed, shared, held); /* ends with a barrier */
    uint32_t *ring = roomy ? block->ring[warp] : p->ring;
    if (exists) {
        const int32_t begin = p->lane.begin;
        if (owner) {
            pass_begin(s, p, &v.market, ring);
            ho_portfolio_begin(&p->lane, &block->terms[warp]);
            for (int i = 0; roomy && i < 2; i++) {
                ho_ahead_begin(&p->lane.config, &block->offer[i][warp].ahead);
            }
            if (roomy) {
                ho_portfolio_begin(&p->lane, &block->quiet_terms[warp]);
                block->quiet_terms[warp].diverse = 0; /* the entropies are worked out apart */
            }
            block->note[0][warp].bar = block->note[1][warp].bar = -1;
        }
        warp_fetch(v, p, rows, begin);
        warp_fetch(v, p, rows + row_elements, begin + 1);
        quote_fetch<32>(&block->quote[0][warp], v.market, p->lane.sigma, begin);
        copies_commit();
        copies_wait<0>();
        quote_complete<32>(&block->quote[0][warp], begin, v.market.bar_flags[begin + 1]);
        if (owner) { /* tables that the market has not are not fetched */
            block->quote[1][warp].jump = block->quote[1][warp].funding = 0.0;
        }
        __syncwarp();
        warp_portfolio<T, false>(v, p, &s->env, n_log2_n, block->quote[0][warp].before,
                                 block->quote[0][warp].sigma, block->formula, &block->terms[warp],
                                 rows);
    }
    const pass_quiet *quiet = &block->quiet[warp];
    const bool diverse = p->lane.config.diversity_penalty != 0.0;
    if (HELD && threadIdx.x % 32 == 0) {
        block->plain[warp] = ho_settings_are_plain(&p->lane.config);
    }
    const pass_tools tools = {s, p, n_log2_n, ring, block->formula, &block->terms[warp]};
    ensemble_vote vote;
    const ho_branches *branches = &v.policy.branches;
    const int candidates = branches->count > 1 ? (int)HO_ACTIONS : branches->outputs;
    const float v_max = (float)v.lane[group.slots[0]].agent.v_max;
    for (int now = 0, row = 0;; now ^= 1, row = policy_next_row<STATE_ROWS>(row)) {
        const bool live = exists && !s->done;
        if (threadIdx.x % 32 == 0) {
            block->live[now][warp] = live;
        }
        policy_begin<T, 1, HELD>(v.policy, plan, shared, row, ahead);
        const bool goes_on = bar_begins(block, now, twice); /* asked later, which costs less */
        if (ENSEMBLE) {
            vote_clear(&vote);
            for (int k = 0; k < group.members; k++) {
                const uint8_t *member = v.packed + (size_t)group.slots[k] * v.policy.bytes;
                for (int i = (int)threadIdx.x; i < v.policy.bias_bytes / 4; i += POLICY_THREADS) {
                    ((float *)(shared + plan.bias))[i] =
                        ((const float *)(member + v.policy.bias_at))[i];
                }
                policy_sync();
                policy_scores<T, 1, false>(v.policy, plan, member, shared, held, ahead, row, NULL,
                                           (float)v.lane[group.slots[k]].agent.v_max);
                policy_sync();
                const ho_lane_device *lane = &v.lane[group.slots[k]];
                const bool sampled = v.samples && lane->agent.ppo_sample_eval;
                int32_t voted[HO_BRANCHES_MAX] = {0};
                if (sampled) {
                    voted[0] = agent_action(branches, lane, true, live ? decision_of(s, p) : 0,
                                            score, block->draw[warp]);
                }
                if (branches->count > 1) {
                    compose_scores(branches, score);
                } else {
                    ho_branches_choice(branches, voted[0], voted);
                }
                const int best = group_argmax<32>(score, NULL, candidates);
                if (owner && live) {
                    vote_add(&vote, score, best, sampled ? voted[0] : best, candidates);
                }
                policy_sync(); /* scores are read before the next member's */
            }
        } else {
            policy_scores<T, 1, HELD>(v.policy, plan, packed, shared, held, ahead, row, NULL,
                                      v_max);
        }
        const ho_quote *q = &block->quote[now][warp];
        pass_start start;
        if (FEW) { /* beside the last layer, which other warps work out */
            start = start_of<HELD>(s, p, q, ring, block->plain[warp]);
        }
        if (!ENSEMBLE) {
            policy_sync();
        }
        if (!FEW) { /* beside the choice, which waits a good deal */
            start = start_of<HELD>(s, p, q, ring, block->plain[warp]);
        }
        int32_t action = 0;
        if (HELD) {
            action = group_argmax<32>(score, NULL, HO_ACTIONS);
        } else if (!ENSEMBLE && live) {
            const ho_lane_device *lane = &v.lane[group.slots[0]];
            action = agent_action(branches, lane, v.samples && lane->agent.ppo_sample_eval,
                                  decision_of(s, p), score, block->draw[warp]);
        } else if (owner && live) {
            const int32_t choice = vote_decide(&vote, group.policy, candidates);
            action = branches->count > 1 ? choice : ho_branches_action(branches, &choice);
        }
        action = HELD ? action : __shfl_sync(0xffffffffu, action, 0);
        const ho_order order = ho_order_from_action(action);
        if (!goes_on) {
            break;
        }
        if (few) {
            orders_known<true>();
        } else {
            orders_known<false>();
        }
        if (!live) {
            continue;
        }
        const ho_offer *offer = roomy ? offer_there(&block->offer[now][warp]) : NULL;
        T *next = rows + policy_next_row<STATE_ROWS>(row) * row_elements;
        pass_note *note = &block->note[now][warp];
        if (few && quiet->bar.calm && offer->order[order.offer].lots == 0) {
            put_quiet(v, quiet, diverse ? order.category : -1, next);
            if (owner) {
                pass_stay(s, q, offer, &start.place, ring, quiet->bar.equity, order.category,
                          action, note);
            }
            continue;
        }
        pass_step step = PASS_NOT_PLAIN;
        const int32_t wanted = HELD ? offer->order[order.offer].lots : 0;
        if (start.plain && ho_order_is_plain(&order, offer, wanted)) {
            step = warp_step<T, HELD>(v, tools, q, offer, &start.env, &start.place, &order, wanted,
                                      action, note, next);
        }
        if (agreed<true>(step == PASS_GOES_ON)) {
            continue;
        }
        if (agreed<true>(step == PASS_NOT_PLAIN)) {
            step = warp_step<T, false>(v, tools, q, offer, aligned16(&s->env), &start.place, &order,
                                       0, action, note, next);
        }
        if (agreed<true>(step == PASS_ENDS)) {
            if (owner) {
                pass_close(s, p, q, note);
            }
        }
    }
    books_complete();
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
    pass_begin(s, p, &v.market, p->ring);
    while (!s->done) {
        int32_t action = -1;
        const ho_order order =
            ho_rule_order(&rule, &p->lane, &v.market, &s->env, s->steps, &action);
        const ho_quote q = ho_market_quote(&v.market, p->lane.sigma, s->env.t);
        pass_note note;
        ho_env env;
        pass_advance<false, false>(s, p, v.market.n_log2_n, &q, NULL, &s->env, NULL, p->ring,
                                   &order, 0, action, &note, &env);
        if (s->done) {
            pass_close(s, p, &q, &note);
        }
        pass_book_bar(s, p, &note);
        pass_book_actions(s, p, &note);
        pass_book_trades(s, p, &note);
    }
}

/* ---- launchers ---- */

typedef void (*network_kernel)(backtest_view, policy_plan);

static network_kernel kernel_of(int bf16, int held, int ensemble, int few)
{
    if (!bf16) {
        return ensemble ? network_passes<float, false, true, false>
                        : network_passes<float, false, false, false>;
    }
    if (ensemble) {
        return network_passes<__nv_bfloat16, false, true, false>;
    }
    if (!held) {
        return network_passes<__nv_bfloat16, false, false, false>;
    }
    return few ? network_passes<__nv_bfloat16, true, false, true>
               : network_passes<__nv_bfloat16, true, false, false>;
}

/* Extra shared memory of a block. */
static int extra_of(const ho_policy_net *policy, bool roomy)
{
    const size_t least =
        policy->atoms > 1 ? offsetof(backtest_block, draw) : offsetof(backtest_block, plan);
    return (int)(roomy ? sizeof(backtest_block) : least);
}

ho_status ho_cuda_backtest_check(const ho_policy_net *policy, int shared_limit, ho_err *err)
{
    const policy_plan plan = policy_plan_make(policy, PASSES_BLOCK, STATE_ROWS, 0,
                                              extra_of(policy, false), shared_limit);
    return plan.bytes > shared_limit ? ho_policy_too_large(policy, err) : HO_OK;
}

ho_status ho_cuda_backtest_networks(const backtest_view *v, cudaStream_t stream)
{
    if (v->blocks == 0) {
        return HO_OK;
    }
    policy_plan plan =
        policy_plan_make(&v->policy, PASSES_BLOCK, STATE_ROWS, !v->ensemble && !v->samples,
                         extra_of(&v->policy, true), v->shared_limit);
    backtest_view view = *v;
    view.roomy = plan.bytes <= v->shared_limit;
    view.few = view.roomy && v->blocks <= FEW_BLOCKS;
    if (!view.roomy) {
        plan = policy_plan_make(&v->policy, PASSES_BLOCK, STATE_ROWS, 0,
                                extra_of(&v->policy, false), v->shared_limit);
    }
    if (plan.bytes > v->shared_limit) {
        return HO_EUNSUPPORTED;
    }
    if (v->ensemble) { /* every member has its own weights: none are resident */
        for (int l = 0; l < HO_DEVICE_LAYERS; l++) {
            plan.resident[l] = -1;
        }
    }
    const network_kernel kernel =
        kernel_of(v->policy.bf16, plan.held, v->ensemble, view.few && v->most <= FEW_PASSES);
    const ho_status rc = ho_cuda_status(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, v->shared_limit),
        "shared memory of the backtest kernel");
    if (rc != HO_OK) {
        return rc;
    }
    kernel<<<(unsigned)v->blocks, PASS_THREADS, plan.bytes, stream>>>(view, plan);
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
