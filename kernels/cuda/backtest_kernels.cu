/* SPDX-License-Identifier: Apache-2.0
 * Backtest passes on the device. A network block carries up to 8 windows of one agent (or
 * ensemble) from their first bar to their last without leaving the multiprocessor: a warp a window
 * for the network, the choice and the step. While the network decides, three more warps work out
 * what each order would meet (kernels/env/offer.h); the third and a fourth keep the books of the
 * bar before, so that neither is in the chain from one bar to the next. A rule pass is one thread.
 * Compiled without contraction: money has the CPU backend's bits. */
#include "kernels/cuda/backtest_kernels.h"

#include <cuda_bf16.h>
#include <stddef.h>

#include "kernels/cuda/device.h"
#include "kernels/cuda/helpers.cuh"
#include "kernels/cuda/pass.cuh"
#include "kernels/cuda/policy_block.cuh"
#include "kernels/cuda/quote_block.cuh"
#include "kernels/cuda/sample_block.cuh"

enum {
    RULE_THREADS = 128, /* a warp a scheduler, as fast as one alone; the rest is an epoch's */
    OFFER_WARP = POLICY_WARPS, /* the first of two */
    BARS_WARP = OFFER_WARP + 2,
    TRADES_WARP = BARS_WARP + 1,
    PASS_THREADS = HELPED_THREADS,
    OFFER_THREADS = POLICY_THREADS + 96, /* those that meet when scores and offers are ready */
};

typedef struct backtest_block {
    pass_state state[PASSES_BLOCK];
    pass_note note[2][PASSES_BLOCK];          /* of this bar, of the last one */
    ho_quote quote[2][PASSES_BLOCK];          /* of this step, of the next one */
    alignas(8) uint8_t live[2][PASSES_BLOCK]; /* at the head of this bar, of the last one */
    ho_portfolio_terms terms[PASSES_BLOCK];
    /* a policy that may be sampled: its weights; C51's, which need the room, are not */
    float draw[PASSES_BLOCK][SCORE_PITCH];
    /* where there is room; else steps go without offers, and the rest is read where it is */
    pass_plan plan[PASSES_BLOCK];
    ho_offer offer[PASSES_BLOCK];          /* of this step */
    double n_log2_n[HO_DIVERSITY_MAX + 1]; /* the market's */
    uint32_t ring[PASSES_BLOCK][HO_RING_WORDS_MAX];
} backtest_block;

static_assert(PASSES_BLOCK == 8 && POLICY_WARPS == 8, "a pass a warp, a word of flags");

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

/* The portfolio columns of a pass at the close `close` into its state row: its warp's first thread
 * gathers their terms, then a thread a column. formula: this thread's column's. */
template <typename T>
static __device__ __forceinline__ void warp_portfolio(const backtest_view &v, const pass_plan *p,
                                                      const pass_state *s, const double *n_log2_n,
                                                      double close, double sigma, uint64_t formula,
                                                      ho_portfolio_terms *terms, T *row)
{
    const int l = (int)threadIdx.x % 32;
    if (l == 0) {
        ho_portfolio_update(&p->lane, n_log2_n, &s->env, close, sigma, terms);
    }
    __syncwarp();
    if (l < v.state_columns) {
        const ho_ratio r = ho_portfolio_ratio(terms, formula, l);
        put_column(row + v.market_columns + l,
                   ho_ratio_value(&r, ho_portfolio_limit(p->lane.config.state_form, l)));
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

/* Rows of the states: of this bar, of the next one, whose portfolio columns the step writes, and of
 * the one after it, which is on its way. */
enum { STATE_ROWS = 3 };

/* The head of a bar: states, accounts, quotes and notes are there. Does any pass go on? One barrier
 * gives the order; racecheck sees it behind a second one (docs/gpu.md). */
template <bool HELD>
static __device__ __forceinline__ bool bar_begins(const backtest_block *block, int now)
{
    __syncwarp();
    barrier_of_roles<PASS_THREADS, 2>();
    if (!HELD) {
        barrier_of_roles<PASS_THREADS, 4>();
    }
    return *(const uint64_t *)block->live[now] != 0; /* is any? */
}

/* Scores and offers are there. */
static __device__ __forceinline__ void orders_known(void)
{
    __syncwarp();
    barrier_of_roles<OFFER_THREADS, 3>();
}

static __device__ __forceinline__ void books_complete(void)
{
    __syncwarp();
    barrier_of_roles<PASS_THREADS, 2>();
}

/* The plans of a block's passes. */
static __device__ __forceinline__ const pass_plan *
plans_of(const backtest_view &v, const backtest_block *block, const pass_block &group, bool roomy)
{
    return roomy ? block->plan : v.plan + group.first;
}

/* The bars after the next one on their way, by the offers' warps while the steps are made: a pass's
 * row of bar t + 2, and the quote that ends with it. */
template <typename T>
static __device__ __forceinline__ void fetch_bars(const backtest_view &v, const bar_share &share,
                                                  backtest_block *block, const pass_plan *plans,
                                                  int count, const int32_t *bar, T *rows, int next)
{
    const int warp = (int)threadIdx.x / 32 - OFFER_WARP;
    uint8_t flags[PASSES_BLOCK / 2] = {0};
#pragma unroll
    for (int i = 0; i < PASSES_BLOCK / 2; i++) {
        const int pass = warp + 2 * i;
        if (pass < count) {
            const ho_env_lane *lane = &plans[pass].lane;
            bar_fetch(share, v.market, lane->sigma, bar[i], bar[i], lane->end,
                      rows + pass * STATE_PITCH, &block->quote[next][pass], &flags[i]);
        }
    }
    copies_commit();
    copies_wait<0>();
#pragma unroll
    for (int i = 0; i < PASSES_BLOCK / 2; i++) {
        const int pass = warp + 2 * i;
        if (pass < count) {
            bar_complete(&block->quote[next][pass], bar[i], flags[i]);
        }
    }
}

/* The first two helping warps: what each order of the coming step would meet, `lanes` threads a
 * pass; then bars are fetched. */
template <typename T, bool HELD>
static __device__ void make_offers(const backtest_view &v, const policy_plan &plan, uint8_t *shared,
                                   backtest_block *block, const pass_block &group, bool roomy)
{
    const pass_plan *plans = plans_of(v, block, group, roomy);
    const int count = group.count;
    const bar_share share = bar_share_of<T>(v.market, v.features);
    const int lanes = count <= 4 ? 16 : 8, warp = (int)threadIdx.x / 32 - OFFER_WARP;
    const int thread = (int)threadIdx.x - OFFER_WARP * 32;
    const int w = thread / lanes, first = thread % lanes;
    const ho_env_config c = v.plan[group.first + (w < count ? w : 0)].lane.config; /* a copy */
    const pass_state *s = &block->state[w < count ? w : 0];
    for (int now = 0, row = 0; bar_begins<HELD>(block, now);
         now ^= 1, row = policy_next_row<STATE_ROWS>(row)) {
        int32_t bar[PASSES_BLOCK / 2];
#pragma unroll
        for (int i = 0; i < PASSES_BLOCK / 2; i++) {
            const int pass = warp + 2 * i;
            bar[i] = block->state[pass < count ? pass : 0].env.t + 2;
        }
        if (roomy && w < count && !s->done) {
            offer_orders(&c, &s->env, &block->quote[now][w], first, lanes, &block->offer[w]);
        }
        orders_known();
        fetch_bars<T>(v, share, block, plans, count, bar,
                      (T *)(shared + policy_state(plan, policy_next_row<STATE_ROWS>(
                                                            policy_next_row<STATE_ROWS>(row)))),
                      now ^ 1);
    }
    books_complete();
}

/* The third, 4 threads a pass: the rest of the offers, then the bars' books, a bar behind the
 * steps. */
template <bool HELD>
static __device__ void keep_bars(backtest_block *block, const pass_plan *plans, int count,
                                 bool roomy)
{
    const int w = (int)threadIdx.x % 32 / 4, i = (int)threadIdx.x % 4;
    const pass_plan *p = &plans[w < count ? w : 0];
    pass_state *s = &block->state[w < count ? w : 0];
    const ho_ring ring = {block->ring[w < count ? w : 0], 1};
    int32_t booked = -1;
    for (int now = 0;; now ^= 1) {
        const bool live = bar_begins<HELD>(block, now);
        const pass_note *note = &block->note[now ^ 1][w];
        if (live) {
            if (roomy && w < count && !s->done) {
                offer_rest(&p->lane, &s->env, ring, &block->quote[now][w], i, &block->offer[w]);
            }
            orders_known();
        }
        if (w < count && i == 0 && note->bar > booked) {
            pass_book_bar(s, p, note);
            booked = note->bar;
        }
        if (!live) {
            break;
        }
    }
    books_complete();
}

/* The fourth: ledgers and trades, a bar behind the steps. */
template <bool HELD>
static __device__ void keep_trades(backtest_block *block, const pass_plan *plans, int count)
{
    const int w = threadIdx.x % 4 == 0 ? (int)threadIdx.x % 32 / 4 : PASSES_BLOCK;
    int32_t booked = -1;
    for (int now = 0;; now ^= 1) {
        const bool live = bar_begins<HELD>(block, now);
        if (w < count && block->note[now ^ 1][w].bar > booked) {
            pass_book_trades(&block->state[w], &plans[w], &block->note[now ^ 1][w]);
            booked = block->note[now ^ 1][w].bar;
        }
        if (!live) {
            break;
        }
    }
    books_complete();
}

template <typename T, bool HELD, bool ENSEMBLE>
static __global__ void __launch_bounds__(PASS_THREADS, 1)
    network_passes(const __grid_constant__ backtest_view v,
                   const __grid_constant__ policy_plan plan)
{
    extern __shared__ __align__(128) uint8_t shared[];
    const pass_block group = v.block[blockIdx.x];
    backtest_block *block = (backtest_block *)(shared + plan.extra);
    const uint8_t *packed = v.packed + (size_t)group.slots[0] * v.policy.bytes;
    const int warp = (int)threadIdx.x / 32;
    const bool roomy = HELD || v.roomy;
    const pass_plan *plans = plans_of(v, block, group, roomy);
    if (warp >= POLICY_WARPS) {
        registers_for_helpers<HELD>();
        if (warp == TRADES_WARP) {
            keep_trades<HELD>(block, plans, group.count);
        } else if (warp == BARS_WARP) {
            keep_bars<HELD>(block, plans, group.count, roomy);
        } else {
            make_offers<T, HELD>(v, plan, shared, block, group, roomy);
        }
        return;
    }
    registers_for_network<HELD>();
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
    for (int i = (int)threadIdx.x; roomy && i <= HO_DIVERSITY_MAX; i += POLICY_THREADS) {
        block->n_log2_n[i] = v.market.n_log2_n[i];
    }
    const double *n_log2_n = roomy ? block->n_log2_n : v.market.n_log2_n;
    const ho_offer *offer = roomy ? offer_there(&block->offer[warp]) : NULL;
    policy_load<T, HELD>(v.policy, plan, packed, shared, held); /* ends with a barrier */
    uint32_t *ring = roomy ? block->ring[warp] : p->ring;
    const uint64_t formula = ho_portfolio_formula(p->lane.config.state_form, (int)threadIdx.x % 32);
    if (exists) {
        const int32_t begin = p->lane.begin;
        if (owner) {
            pass_begin(s, p, &v.market, ring);
            ho_portfolio_begin(&p->lane, &block->terms[warp]);
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
        warp_portfolio(v, p, s, n_log2_n, block->quote[0][warp].before, block->quote[0][warp].sigma,
                       formula, &block->terms[warp], rows);
    }
    ensemble_vote vote;
    const ho_branches *branches = &v.policy.branches;
    const int candidates = branches->count > 1 ? (int)HO_ACTIONS : branches->outputs;
    const float v_max = (float)v.lane[group.slots[0]].agent.v_max;
    for (int now = 0, row = 0;; now ^= 1, row = policy_next_row<STATE_ROWS>(row)) {
        const bool live = exists && !s->done;
        if (threadIdx.x % 32 == 0) {
            block->live[now][warp] = live;
        }
        policy_begin<T, 1, HELD>(v.policy, plan, shared, ahead);
        if (!bar_begins<HELD>(block, now)) {
            break;
        }
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
        orders_known();
        if (!live) {
            continue;
        }
        const ho_quote *q = &block->quote[now][warp];
        const ho_lane_device *lane = &v.lane[group.slots[0]];
        int32_t action = 0;
        if (HELD) {
            action = group_argmax<32>(score, NULL, HO_ACTIONS);
        } else if (!ENSEMBLE) {
            action = agent_action(branches, lane, v.samples && lane->agent.ppo_sample_eval,
                                  decision_of(s, p), score, block->draw[warp]);
        }
        __syncwarp(); /* scores are read before the owner's step writes there */
        if (owner) {
            if (ENSEMBLE) {
                const int32_t choice = vote_decide(&vote, group.policy, candidates);
                action = branches->count > 1 ? choice : ho_branches_action(branches, &choice);
            }
            const ho_order order = ho_order_from_action(action);
            pass_advance(s, p, n_log2_n, q, offer, ring, &order, action, &block->note[now][warp]);
        }
        __syncwarp();
        if (!s->done) {
            warp_portfolio(v, p, s, n_log2_n, q->close, q->sigma_next, formula, &block->terms[warp],
                           rows + policy_next_row<STATE_ROWS>(row) * row_elements);
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
        pass_advance(s, p, v.market.n_log2_n, &q, NULL, p->ring, &order, action, &note);
        pass_book_bar(s, p, &note);
        pass_book_trades(s, p, &note);
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
    const network_kernel kernel = kernel_of(v->policy.bf16, plan.held, v->ensemble);
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
