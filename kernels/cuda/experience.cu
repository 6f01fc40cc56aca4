/* SPDX-License-Identifier: Apache-2.0
 * N x L environment steps of all lanes in one launch: network, choice, fills, barriers, diversity,
 * reward, record. A block carries E episode slots of one lane through the whole epoch; nothing
 * leaves the multiprocessor between steps but the trace.
 *
 * All threads share the network (policy_block.cuh). Of a slot's group of threads the first owns
 * the environment; the others help with the argmax and the portfolio columns, and with helping
 * warps, where the group is a warp, all make the step alike (warp_number). A slot's numbers
 * depend on its own state and counters alone, and the network's sums on nothing but the layer, so
 * the bits do not depend on E or on what shares the GPU. Compiled without contraction
 * (--fmad=false): money has the CPU backend's bits. */
#include "kernels/cuda/experience.h"

#include <cuda_bf16.h>

#include "kernels/agents/explore.h"
#include "kernels/cuda/curiosity_block.cuh"
#include "kernels/cpu/init.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/helpers.cuh"
#include "kernels/cuda/policy_block.cuh"
#include "kernels/cuda/quote_block.cuh"
#include "kernels/cuda/sample_block.cuh"
#include "kernels/env/step.h"

enum {
    HELPED_SLOTS = (HELPED_THREADS - POLICY_THREADS) / 16, /* of a block, two a warp */
    HELPER_REGISTERS = 88,                                 /* of a helping thread */
};

/* Quotients a slot's group takes at once: the portfolio's, then the step's. */
enum { RATIOS = HO_PORTFOLIO_FEATURES + HO_STEP_RATIOS };

/* A step whose reward and record are still to be made. */
typedef struct open_step {
    ho_reward_in reward;
    double quotient[HO_STEP_RATIOS];
    ho_step_out out;
    ho_trace_step *trace; /* NULL: none */
    int32_t bar, action;
} open_step;

/* What a block keeps in its extra shared memory. HELPED: helping warps work out offers and finish
 * the records, and quotes come a step ahead. */
template <int E, bool HELPED> struct experience_block {
    ho_env_lane env;
    ho_slot_device slot[E];
    ho_quote quote[HELPED ? 2 : 1][E]; /* of the step under way; of the next one */
    int32_t bar[E];                    /* row of the features of each slot's state; -1: idle */
    int32_t begun[E];                  /* step that began its episode, whose bars are not there */
    ho_portfolio_terms terms[E <= 16 ? E : 1];
    ho_offer offer[HELPED ? E : 1];
    open_step open[2][HELPED ? E : 1]; /* of this step, of the last one */
};

/* What chance says about one branch in one step of a slot. */
typedef struct chance {
    int32_t choice; /* -1: take the best */
    int32_t hold;   /* steps the choice is held after this one */
} chance;

/* Numbers are drawn by counter, so a group's threads draw for a step each, S steps at a time. */
static __device__ __forceinline__ chance draw_chance(const ho_lane_device *lane, int branch,
                                                     int choices, uint32_t step, uint32_t slot)
{
    chance c = {-1, 0};
    const double epsilon = lane->epsilon;
    if (epsilon > 0.0) {
        const uint32_t *key = lane->env.key;
        const uint32_t epoch = (uint32_t)lane->epoch;
        const ho_rng4 r = ho_rng(key, step, slot, epoch, HO_RNG_EPSILON, (uint32_t)branch);
        if (ho_rng_double(r.v[0], r.v[1]) < epsilon) {
            const ho_rng4 a = ho_rng(key, step, slot, epoch, HO_RNG_ACTION, (uint32_t)branch);
            c.choice = (int32_t)ho_rng_below(a.v[0], (uint32_t)choices);
            c.hold = ho_hold_length(lane->agent.explore_hold, ho_rng_double(r.v[2], r.v[3])) - 1;
        }
    }
    return c;
}

/* The choice of one branch: held, random and then held, or the best. */
static __device__ __forceinline__ int choose(ho_slot_device *s, int branch, chance c, int best)
{
    if (s->hold_left[branch] > 0) {
        s->hold_left[branch]--;
        return s->hold_choice[branch];
    }
    if (c.choice >= 0) {
        s->hold_choice[branch] = c.choice;
        s->hold_left[branch] = c.hold;
        return c.choice;
    }
    return best;
}

/* The composed action of every branch's choice, on the owner where `wanted`. All threads of the
 * warp take part; bonus NULL: none. drawn: of the step whose thread in the group is `drawer`. */
template <int S, int BRANCHES>
static __device__ __forceinline__ int
group_choose(const ho_branches &b, ho_slot_device *s, const float *score, const float *bonus,
             bool wanted, const chance (&drawn)[BRANCHES], int drawer)
{
    int32_t choice[HO_BRANCHES_MAX] = {0};
    const int from = (int)threadIdx.x % 32 / S * S + drawer;
#pragma unroll
    for (int d = 0; d < BRANCHES; d++) { /* unrolled: choice stays in registers */
        if (d >= b.count) {
            break;
        }
        choice[d] =
            group_argmax<S>(score + b.first[d], bonus ? bonus + b.first[d] : NULL, b.size[d]);
        const chance c = {__shfl_sync(0xffffffffu, drawn[d].choice, from),
                          __shfl_sync(0xffffffffu, drawn[d].hold, from)};
        if (wanted) {
            choice[d] = choose(s, d, c, choice[d]);
        }
    }
    return wanted ? ho_branches_action(&b, choice) : 0;
}

static __device__ __forceinline__ void forget_held(ho_slot_device *s)
{
    for (int d = 0; d < HO_BRANCHES_MAX; d++) {
        s->hold_left[d] = 0;
        s->hold_choice[d] = 0;
    }
}

/* A slot's portfolio columns: its owner, or a group that is a warp, gathers their terms; where the
 * group has not a thread a column, the owner works out their quotients, which wait in the slot's
 * score row; the group's threads divide, each its columns sub, sub + S, ..., which it keeps in
 * `column` and puts into the state row. With STEP the owner has put the quotients of the step's
 * reward behind the columns in the score row; their values go to `value`, `stride` apart. All
 * threads of the warp take part; `wanted` is the same in a group. formula: of the thread's column,
 * if it has but one; close, sigma: at the state's bar. */
template <typename T, int S, bool STEP, int COLUMNS>
static __device__ __forceinline__ void
group_portfolio(const ho_experience_view &v, const ho_env_lane *env, const ho_slot_device *s,
                ho_portfolio_terms *terms, double close, double sigma, float *score, T *row,
                bool wanted, uint64_t formula, float (&column)[COLUMNS], double *value, int stride)
{
    constexpr bool APART = S >= RATIOS; /* a thread a column */
    const int sub = (int)threadIdx.x % S, form = env->config.state_form;
    ho_ratio *ratio = (ho_ratio *)score;
    if (APART && wanted && (S == 32 || sub == 0)) {
        ho_portfolio_update(env, v.market.n_log2_n, &s->env, close, sigma, 0, terms);
    }
    if (!APART && wanted && sub == 0) {
        ho_env_portfolio_ratios(env, v.market.n_log2_n, &s->env, close, sigma, ratio);
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < COLUMNS; i++) {
        const int c = sub + i * S;
        const bool is_column = c < v.state_columns;
        const bool is_step = STEP && c >= HO_PORTFOLIO_FEATURES && c < RATIOS;
        if (wanted && (is_column || is_step)) {
            const ho_ratio r =
                APART && is_column ? ho_portfolio_ratio(terms, formula, c) : ratio[c];
            const double q = ho_quotient(r.num, r.den);
            if (is_column) {
                const double limit = ho_portfolio_limit(form, c);
                column[i] = (float)ho_clip(q, -limit, limit);
                put_column(row + v.market_columns + c, column[i]);
            } else {
                value[(c - HO_PORTFOLIO_FEATURES) * stride] = q;
            }
        }
    }
    __syncwarp();
}

/* The same at the start of an episode, the market's row included. */
template <typename T, int S, int COLUMNS>
static __device__ __forceinline__ void
group_state(const ho_experience_view &v, const ho_env_lane *env, const ho_slot_device *s,
            ho_portfolio_terms *terms, float *score, T *row, bool wanted, uint64_t formula,
            float (&column)[COLUMNS])
{
    double close = 0.0, sigma = 0.0;
    if (wanted) {
        const int32_t bar = s->env.t;
        group_market_row<T, S>(row, v.features, bar);
        close = v.market.bars[(int64_t)bar * HO_BAR_COLUMNS + HO_CLOSE];
        sigma = env->sigma[bar];
    }
    __syncwarp();
    group_portfolio<T, S, false>(v, env, s, terms, close, sigma, score, row, wanted, formula,
                                 column, NULL, 0);
}

/* The owner's part of a step's record; the portfolio columns are the group's. */
static __device__ __forceinline__ void record_step(ho_trace_step *trace, int32_t bar, int action,
                                                   const ho_step_out *out)
{
    const uint32_t flags0 = (uint32_t)action | 1u << 16 | (uint32_t)out->end << 24;
    const uint32_t flags1 = (uint32_t)out->terminal | (uint32_t)out->exit_count << 8 |
                            (uint32_t)(out->exit_count > 0 ? out->exit_reason[0] : 0) << 16 |
                            (uint32_t)(out->exit_count > 1 ? out->exit_reason[1] : 0) << 24;
    const uint64_t ret = (uint64_t)__double_as_longlong(out->ret);
    *(uint4 *)trace = make_uint4((uint32_t)bar, __float_as_uint(out->reward), (uint32_t)ret,
                                 (uint32_t)(ret >> 32));
    *(uint2 *)((uint8_t *)trace + 16) = make_uint2(flags0, flags1);
}

/* Where a block meets, its helpers included. twice: see ho_cuda_racecheck. */
template <bool HELPED> static __device__ __forceinline__ void step_sync(bool twice)
{
    if (HELPED) {
        __syncwarp();
        barrier_of_roles<HELPED_THREADS, 2>();
        if (twice) {
            barrier_of_roles<HELPED_THREADS, 3>();
        }
    } else {
        __syncthreads();
    }
}

/* Rows of the states: of this step and the next one; with helpers also of the one after it. */
enum { STATE_ROWS = 2, HELPED_ROWS = 3 };

/* The bars of a helping warp's slots, two a warp, on their way: rows of bar + ahead, and the quotes
 * that end with it. begun: -1, or only of slots whose episode began with that step. */
template <typename T>
static __device__ __forceinline__ void help_fetch(const ho_experience_view &v,
                                                  experience_block<HELPED_SLOTS, true> *block,
                                                  const bar_share &share, const int32_t (&bar)[2],
                                                  int ahead, T *rows, int quote, int begun)
{
    const int first = ((int)threadIdx.x - POLICY_THREADS) / 32 * 2;
    uint8_t flags[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < 2; i++) {
        if (bar[i] >= 0 && (begun < 0 || block->begun[first + i] == begun)) {
            bar_fetch(share, v.market, block->env.sigma, bar[i] + ahead, bar[i] + ahead,
                      block->env.end, rows + (first + i) * STATE_PITCH,
                      &block->quote[quote][first + i], &flags[i]);
        }
    }
    copies_commit();
    copies_wait<0>();
#pragma unroll
    for (int i = 0; i < 2; i++) {
        if (bar[i] >= 0 && (begun < 0 || block->begun[first + i] == begun)) {
            bar_complete(&block->quote[quote][first + i], bar[i] + ahead, flags[i]);
        }
    }
}

/* The helping warps' loop, 16 threads a slot. While the network decides: offers of the step, and
 * the bars of an episode that has just begun. While the step is made: the reward and the record of
 * the one before, and the bars of the next one on their way. settings: the lane's, in global
 * memory: read before the block's own copy is there. */
template <typename T>
static __device__ __forceinline__ void
help(const ho_experience_view &v, const policy_plan &plan, uint8_t *shared,
     experience_block<HELPED_SLOTS, true> *block, const ho_env_config *settings, int slots,
     uint32_t *rings)
{
    const int thread = (int)threadIdx.x - POLICY_THREADS, e = thread / 16, i = thread % 16;
    /* few slots leave warps idle, which work out the rest of their offers, but not at the start of
     * an episode, whose quote the slot's own warp fetches */
    const bool few = slots <= HELPED_SLOTS / 2, spare = few && e >= HELPED_SLOTS / 2;
    const int rest = spare ? e - HELPED_SLOTS / 2 : e;
    const ho_ring ring = {rings + rest, v.episodes};
    const bar_share share = bar_share_of<T>(v.market, v.features);
    ho_offer_part part = ho_offer_part_of(settings, i);
    for (int step = 0, row = 0; step <= v.steps; step++, row = policy_next_row<HELPED_ROWS>(row)) {
        const int now = step & 1, next = policy_next_row<HELPED_ROWS>(row);
        step_sync<true>(v.racecheck); /* states, accounts, quotes */
        const int32_t bar[2] = {block->bar[e & ~1], block->bar[e | 1]};
        if (step < v.steps) {
            if (block->begun[e & ~1] == step || block->begun[e | 1] == step) {
                help_fetch<T>(v, block, share, bar, 1, (T *)(shared + policy_state(plan, next)),
                              now, step);
                __syncwarp();
            }
            if (block->bar[e] >= 0) {
                offer_orders(&block->env.config, &part, &block->slot[e].env, &block->quote[now][e],
                             i, 16, &block->offer[e]);
            }
            const bool rests =
                block->bar[rest] >= 0 && (!few || spare == (block->begun[rest] != step));
            if (__any_sync(0xffffffffu, rests)) {
                const int slot = rests ? rest : e; /* another's may be on its way */
                const ho_env *env = &block->slot[slot].env;
                const ho_quote *q = &block->quote[now][slot];
                ho_offer *offer = &block->offer[slot];
                const double size = offer_rest(&block->env.config, q, i, rests, env->size, offer);
                if (rests && i == HO_REST_SIZE) {
                    offer->ahead = ho_env_look_ahead_of(&block->env, env, ring, q, size);
                }
            }
            step_sync<true>(v.racecheck); /* scores, offers */
        }
        open_step *open = &block->open[now ^ 1][e];
        if (i == 0 && open->trace) {
            ho_env_step_reward(&block->env.config, &open->reward, open->quotient, 0.0f, &open->out);
            record_step(open->trace, open->bar, open->action, &open->out);
            open->trace = NULL;
        }
        if (step < v.steps) {
            help_fetch<T>(v, block, share, bar, 2,
                          (T *)(shared + policy_state(plan, policy_next_row<HELPED_ROWS>(next))),
                          now ^ 1, -1);
        }
    }
}

/* Which lanes a launch takes. */
typedef enum lane_choice { ALL_LANES, LANES_WITHOUT_LEDGER, LANES_WITH_LEDGER } lane_choice;

/* PLAIN: a greedy policy, no curiosity, no lane that keeps a ledger (Kelly): code that is not there
 * needs no registers and no room among the instructions. HELPED: four more warps, see help; plain
 * kernels of 8 states. slots: of a block, <= E. */
template <typename T, int NT, bool HELD, bool PLAIN, bool HELPED>
static __global__ void __launch_bounds__(HELPED ? HELPED_THREADS : POLICY_THREADS, 1)
    experience(const __grid_constant__ ho_experience_view v,
               const __grid_constant__ policy_plan plan, lane_choice choice, int slots)
{
    constexpr int E = 8 * NT, SLOTS_WARP = E / POLICY_WARPS, S = 32 / SLOTS_WARP;
    constexpr int COLUMNS = (RATIOS + S - 1) / S, ROWS = HELPED ? HELPED_ROWS : STATE_ROWS;
    extern __shared__ __align__(128) uint8_t shared[];
    const int groups = (v.episodes + slots - 1) / slots;
    const int k = (int)blockIdx.x / groups, first = (int)blockIdx.x % groups * slots;
    const ho_lane_device *lane = &v.lane[k];
    if (!lane->active || lane->guard != 0) {
        return;
    }
    const bool kelly = lane->env.config.sizing == HO_SIZING_KELLY;
    if (choice != ALL_LANES && kelly != (choice == LANES_WITH_LEDGER)) {
        return;
    }
    typedef experience_block<E, HELPED> block_type;
    block_type *block = (block_type *)(shared + plan.extra);
    if (HELPED) {
        if (threadIdx.x >= POLICY_THREADS) {
            registers_for_helpers<HELD, HELPER_REGISTERS>();
            help<T>(v, plan, shared, (experience_block<HELPED_SLOTS, true> *)block,
                    &lane->env.config, slots,
                    v.ring + (size_t)k * v.ring_words * v.episodes + first);
            return;
        }
        registers_for_network<HELD, HELPER_REGISTERS>();
    }
    const uint8_t *packed = v.packed + (size_t)k * v.policy.bytes;
    policy_held held;
    policy_ahead ahead;
    if (threadIdx.x == 0) {
        block->env = lane->env;
    }
    const bool curious = !PLAIN && v.curiosity &&
                         (lane->env.config.curiosity_weight != 0.0 ||
                          lane->env.config.reward_preset == HO_PRESET_ORIGINAL);
    curiosity_block<E> *curiosity = (curiosity_block<E> *)(block + 1);
    if (curious) {
        curiosity_load<E>(curiosity, v.curiosity + (size_t)k * HO_CURIOSITY_STATE);
    }
    for (int i = (int)threadIdx.x; i < ROWS * E * STATE_PITCH; i += POLICY_THREADS) {
        put_column((T *)(shared + plan.state) + i, 0.0f);
    }
    policy_load<T, HELD>(v.policy, plan, packed, shared, held); /* ends with a barrier */

    /* Thread group e carries slot n; its first thread owns the slot's environment. */
    const int e = S == 32 ? warp_number() : (int)threadIdx.x / S;
    const int sub = (int)threadIdx.x % S, n = first + e;
    const bool exists = e < slots && n < v.episodes, owner = exists && sub == 0;
    ho_slot_device *s = &block->slot[e];
    ho_portfolio_terms *terms = &block->terms[E <= 16 ? e : 0];
    const size_t at = (size_t)k * v.episodes + (exists ? n : 0);
    ho_ledger *ledger = !PLAIN && kelly ? &v.ledger[at] : NULL;
    const ho_ring ring = {v.ring + (size_t)k * v.ring_words * v.episodes + (exists ? n : 0),
                          v.episodes};
    const uint32_t epoch = (uint32_t)lane->epoch;
    const float *bonus = lane->has_bonus ? lane->bonus : NULL;
    const double *sigma = block->env.sigma;
    float *noise = !HELD && v.policy.noise_size > 0 ? (float *)(shared + plan.noise) : NULL;
    const float v_max = (float)lane->agent.v_max;
    float *score = (float *)(shared + plan.score) + e * SCORE_PITCH;
    T *const rows = (T *)(shared + plan.state) + e * STATE_PITCH;
    float before[COLUMNS] = {0}, after[COLUMNS] = {0};
    const uint64_t formula =
        S >= RATIOS ? ho_portfolio_formula(lane->env.config.state_form, sub) : 0;
    int active_steps = 0;
    if (sub == 0) {
        block->bar[e] = -1;
        block->begun[e] = -1;
        if (S >= RATIOS) {
            ho_portfolio_begin(&block->env, terms);
        }
        for (int i = 0; i < 2 && HELPED; i++) {
            ho_quote *quote = &block->quote[HELPED ? i : 0][e];
            quote->jump = quote->funding = 0.0; /* tables the market has not are not fetched */
            block->open[i][HELPED ? e : 0].trace = NULL;
        }
        for (int i = 0; i < (int)(sizeof *s / 4); i++) {
            ((int32_t *)s)[i] = 0; /* padding, too: checkpoints compare bytes */
        }
    }
    if (owner) {
        *s = v.slot[at];
        ho_env_epoch_begin(&block->env, &v.market, &s->env, (uint32_t)n, epoch, ledger);
        if (s->env.steps == 0) {
            forget_held(s);
        }
        block->bar[e] = s->env.t;
        block->begun[e] = 0;
    }
    __syncwarp();
    group_state<T, S>(v, &block->env, s, terms, score, rows, exists, formula, before);
    constexpr int BRANCHES = HELD ? 1 : HO_BRANCHES_MAX; /* the held shape has one of 45 */
    chance drawn[BRANCHES];
    for (int step = 0, row = 0; step < v.steps; step++, row = policy_next_row<ROWS>(row)) {
        if (step % S == 0) {
#pragma unroll
            for (int d = 0; d < BRANCHES && d < v.policy.branches.count; d++) {
                drawn[d] = draw_chance(lane, d, v.policy.branches.size[d], (uint32_t)(step + sub),
                                       (uint32_t)n);
            }
        }
        const int now = step & 1;
        T *const next_row = rows + policy_next_row<ROWS>(row) * (E * STATE_PITCH);
        const ho_quote *quote = &block->quote[HELPED ? now : 0][e];
        policy_begin<T, NT, HELD>(v.policy, plan, shared, row, ahead);
        step_sync<HELPED>(v.racecheck); /* states and bars of this step */
        const bool active = block->bar[e] >= 0;
        constexpr int row_chunks = (int)(HO_STATE_PAD * sizeof(T) / 16);
        uint8_t flags = 0;
        if (!HELPED && active) { /* the next bar's row, and this step's quote */
            const uint8_t *from = (const uint8_t *)((const T *)v.features +
                                                    ((int64_t)block->bar[e] + 1) * HO_STATE_PAD);
            for (int i = sub; i < row_chunks; i += S) {
                copy16_async((uint8_t *)next_row + i * 16, from + i * 16);
            }
            flags = quote_fetch<S>(&block->quote[0][e], v.market, sigma, block->bar[e]);
        }
        copies_commit();
        if (noise) {
            policy_noise(v.policy, noise, lane->env.key, (uint32_t)step, epoch, HO_NOISE_ACT);
        }
        policy_scores<T, NT, HELD>(v.policy, plan, packed, shared, held, ahead, row, noise, v_max);
        if (!HELPED) {
            copies_wait<0>();
            quote_complete<S>(&block->quote[0][e], block->bar[e], flags);
        }
        step_sync<HELPED>(v.racecheck); /* scores */
        int action = 0;                 /* of the owner */
        if (!PLAIN && v.samples) {
            const sample_at draw = {block->env.key, (uint32_t)step, (uint32_t)n, epoch,
                                    HO_RNG_ACTION};
            action = group_sample<S>(v.policy.branches, draw, score, score, active);
        } else {
            action = group_choose<S>(v.policy.branches, s, score, bonus, owner && active, drawn,
                                     step % S);
        }
        float surprise = 0.0f;
        if (curious) {
            const int of_owner = (int)threadIdx.x % 32 / S * S;
            const int category =
                ho_order_from_action(__shfl_sync(0xffffffffu, action, of_owner)).category;
            const float *market =
                v.features_f32 + (int64_t)(active ? block->bar[e] : 0) * HO_STATE_PAD;
            surprise = group_surprise<E, S>(curiosity, e, market, market + HO_STATE_PAD, category,
                                            score, active);
        }
        ho_trace_step *trace = &v.trace[((size_t)k * v.steps + step) * v.episodes + n];
        ho_ratio *step_ratio = (ho_ratio *)score + HO_PORTFOLIO_FEATURES;
        open_step *open = &block->open[HELPED ? now : 0][HELPED ? e : 0];
        int32_t bar = 0;
        ho_step_out out;
        ho_reward_in reward;
        out.end = HO_END_NONE;
        if (HELPED) { /* a slot's warp makes its step, every thread the same on a copy */
            action = __shfl_sync(0xffffffffu, action, 0);
        }
        __syncwarp(); /* scores are read before the owner's step writes there */
        if ((HELPED || owner) && active) {
            ho_env copy = s->env, *env = HELPED ? &copy : &s->env;
            const ho_offer *offer =
                HELPED ? offer_there(&block->offer[HELPED ? e : 0]) : (const ho_offer *)NULL;
            const ho_ahead ahead =
                offer ? offer->ahead : ho_env_look_ahead(&block->env, env, ring, quote);
            const ho_order order = ho_order_from_action(action);
            bar = env->t;
            ho_env_step_open(&block->env, v.market.n_log2_n, quote, &ahead, offer, env, ring,
                             &order, ledger, NULL, &out, &reward, step_ratio);
            active_steps++;
            if (HELPED) {
                __syncwarp(); /* all have read */
            }
            if (HELPED && owner) {
                s->env = copy;
            }
            if (ledger) {
                ho_moments_add_closed(&block->env.config, &v.moments[at], ledger);
            }
        } else if (owner) {
            trace->valid = 0;
        }
        __syncwarp();
        group_portfolio<T, S, true>(v, &block->env, s, terms, quote->close, quote->sigma_next,
                                    score, next_row, active, formula, after,
                                    HELPED ? open->quotient : &step_ratio->num, HELPED ? 1 : 2);
        if (HELPED && owner && active) {
            open->reward = reward;
            open->out = out;
            open->trace = trace;
            open->bar = bar;
            open->action = action;
        }
        if (!HELPED && owner && active) {
            const double quotient[HO_STEP_RATIOS] = {step_ratio[HO_RATIO_RET].num,
                                                     step_ratio[HO_RATIO_LOAD].num,
                                                     step_ratio[HO_RATIO_ENTROPY].num};
            ho_env_step_reward(&block->env.config, &reward, quotient, surprise, &out);
            record_step(trace, bar, action, &out);
        }
        if (active) {
#pragma unroll
            for (int i = 0; i < COLUMNS; i++) {
                if (sub + i * S < HO_PORTFOLIO_FEATURES) {
                    trace->before[sub + i * S] = before[i];
                    trace->after[sub + i * S] = after[i];
                }
            }
        }
#pragma unroll
        for (int i = 0; i < COLUMNS; i++) {
            before[i] = after[i];
        }
        if (owner && active && out.end != HO_END_NONE) {
            forget_held(s);
            ho_env_next(&block->env, &v.market, &s->env, &out, (uint32_t)step + 1, (uint32_t)n,
                        epoch, ledger);
        }
        if (owner && active) {
            block->bar[e] = s->env.active ? s->env.t : -1;
        }
        __syncwarp(); /* the owner's bar */
        const bool ended =
            __shfl_sync(0xffffffffu, out.end, (int)threadIdx.x % 32 / S * S) != HO_END_NONE;
        if (__any_sync(0xffffffffu, ended)) { /* a new episode: its state was not foreseen */
            const bool begun = ended && block->bar[e] >= 0;
            group_state<T, S>(v, &block->env, s, terms, score, next_row, begun, formula, before);
            if (begun && sub == 0) {
                block->begun[e] = step + 1;
            }
        }
    }
    if (HELPED) {
        step_sync<HELPED>(v.racecheck); /* the last step's record can be made */
    }
    if (owner) {
        v.slot[at] = *s;
        v.active_steps[at] = active_steps;
    }
}

/* ---- launcher -------------------------------------------------------------------------------- */

typedef void (*experience_kernel)(ho_experience_view, policy_plan, lane_choice, int);

template <int E, bool HELPED = false> static int extra_of(int curious)
{
    return (int)(sizeof(experience_block<E, HELPED>) + (curious ? sizeof(curiosity_block<E>) : 0));
}

static int block_extra(int states, int curious)
{
    return states == 8    ? extra_of<8>(curious)
           : states == 16 ? extra_of<16>(curious)
           : states == 32 ? extra_of<32>(curious)
                          : extra_of<64>(curious);
}

template <typename T> static experience_kernel half_kernel_of(int held, int states)
{
    if (held) {
        return states == 8    ? experience<T, 1, true, false, false>
               : states == 16 ? experience<T, 2, true, false, false>
               : states == 32 ? experience<T, 4, true, false, false>
                              : experience<T, 8, true, false, false>;
    }
    return states == 8    ? experience<T, 1, false, false, false>
           : states == 16 ? experience<T, 2, false, false, false>
           : states == 32 ? experience<T, 4, false, false, false>
                          : experience<T, 8, false, false, false>;
}

static experience_kernel kernel_of(const ho_policy_net *policy, int held, int states)
{
    if (!policy->bf16) {
        return states == 8    ? experience<float, 1, false, false, false>
               : states == 16 ? experience<float, 2, false, false, false>
               : states == 32 ? experience<float, 4, false, false, false>
                              : NULL;
    }
    return policy->fp8 ? half_kernel_of<policy_e4m3>(held, states)
                       : half_kernel_of<__nv_bfloat16>(held, states);
}

template <typename T> static experience_kernel plain_half_kernel_of(int states)
{
    return states == 8    ? experience<T, 1, true, true, false>
           : states == 16 ? experience<T, 2, true, true, false>
           : states == 32 ? experience<T, 4, true, true, false>
                          : experience<T, 8, true, true, false>;
}

/* How an epoch is launched. A pure choice of speed: results do not depend on it. */
typedef struct experience_launch {
    policy_plan plan;
    int states; /* of the network's tile; 0: not even 8 fit */
    int slots;  /* of a block, <= states */
    int blocks, threads;
    experience_kernel kernel;
    experience_kernel plain; /* of lanes without a ledger; NULL: that is kernel's work, too */
} experience_launch;

static void choose_plain(const ho_experience_view *v, experience_launch *l)
{
    l->threads = POLICY_THREADS;
    if (!l->plan.held || v->samples || v->curiosity) {
        return;
    }
    if (l->states == HELPED_SLOTS && v->helpers && !v->policy.fp8) {
        const policy_plan plan = policy_plan_make(&v->policy, HELPED_SLOTS, HELPED_ROWS, 1,
                                                  extra_of<HELPED_SLOTS, true>(0), v->shared_limit);
        if (plan.held && plan.bytes <= v->shared_limit) {
            l->plan = plan;
            l->threads = HELPED_THREADS;
            l->plain = experience<__nv_bfloat16, 1, true, true, true>;
            return;
        }
    }
    l->plain = v->policy.fp8 ? plain_half_kernel_of<policy_e4m3>(l->states)
                             : plain_half_kernel_of<__nv_bfloat16>(l->states);
}

/* The fewest slots a block that let all blocks run at once, as far as the network's activations
 * fit. */
static experience_launch choose_launch(const ho_experience_view *v)
{
    experience_launch l = {};
    for (int states = 8; states <= 64; states *= 2) {
        const policy_plan p =
            policy_plan_make(&v->policy, states, STATE_ROWS, 1,
                             block_extra(states, v->curiosity != NULL), v->shared_limit);
        if (p.bytes > v->shared_limit || !kernel_of(&v->policy, p.held, states)) {
            break;
        }
        if (l.states > 0 && l.plan.held && !p.held) {
            break; /* weights on chip are worth more than fewer blocks */
        }
        l.states = states;
        l.plan = p;
        if ((v->episodes + states - 1) / states * v->lanes <= v->processors) {
            break;
        }
    }
    const int of_lane = v->lanes < v->processors ? v->processors / v->lanes : 1;
    l.slots = (v->episodes + of_lane - 1) / of_lane;
    l.slots = l.slots < l.states ? l.slots : l.states;
    if (l.states > 0) {
        l.blocks = (v->episodes + l.slots - 1) / l.slots * v->lanes;
        l.kernel = kernel_of(&v->policy, l.plan.held, l.states);
        choose_plain(v, &l);
    }
    return l;
}

ho_status ho_experience_prepare(const ho_experience_view *v, ho_err *err)
{
    const experience_launch l = choose_launch(v);
    if (l.states == 0) {
        return ho_policy_too_large(&v->policy, err);
    }
    const experience_kernel kernel[2] = {l.kernel, l.plain};
    ho_status rc = HO_OK;
    for (int i = 0; i < 2 && rc == HO_OK; i++) {
        rc = kernel[i]
                 ? ho_cuda_status(cudaFuncSetAttribute(kernel[i],
                                                       cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                       v->shared_limit),
                                  "shared memory of the experience kernel")
                 : rc;
    }
    return ho_cuda_err(rc, err);
}

ho_status ho_experience_run(const ho_experience_view *v, cudaStream_t stream)
{
    const experience_launch l = choose_launch(v);
    if (l.states == 0) {
        return HO_EINVAL;
    }
    const unsigned blocks = (unsigned)l.blocks, bytes = (unsigned)l.plan.bytes;
    const experience_kernel plain = l.plain, kernel = l.kernel;
    if (plain) { /* which lanes keep a ledger may change between epochs, the launches not */
        plain<<<blocks, (unsigned)l.threads, bytes, stream>>>(*v, l.plan, LANES_WITHOUT_LEDGER,
                                                              l.slots);
    }
    kernel<<<blocks, POLICY_THREADS, bytes, stream>>>(
        *v, l.plan, plain ? LANES_WITH_LEDGER : ALL_LANES, l.slots);
    return ho_cuda_status(cudaGetLastError(), "experience");
}
