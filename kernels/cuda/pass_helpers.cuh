/* SPDX-License-Identifier: Apache-2.0
 * The four helping warps of a backtest block. What they work out changes how long a bar takes, none
 * of its bits: a step without them works out the same (kernels/env/offer.h), and a quiet state is
 * taken only where the step would have led there. */
#ifndef HO_CUDA_PASS_HELPERS_CUH
#define HO_CUDA_PASS_HELPERS_CUH

#include "kernels/cuda/pass_block.cuh"
#include "kernels/cuda/quote_block.cuh"

/* Where the states of the bar after the next one come, `row` being this bar's. */
template <typename T>
static __device__ __forceinline__ T *rows_to_come(const policy_plan &plan, uint8_t *shared, int row)
{
    const int next = policy_next_row<STATE_ROWS>(row);
    return (T *)(shared + policy_state(plan, policy_next_row<STATE_ROWS>(next)));
}

/* Some of a block's passes, which a warp serves: every `stride`th from `first` on. */
typedef struct some_passes {
    int first, stride, count; /* of the block's */
} some_passes;

/* The bars after the next one on their way: a pass's row of its bar number `number`, and the quote
 * that ends with it. Returns its flags, on the pass's thread. */
template <typename T>
static __device__ __forceinline__ uint8_t bars_begin(const backtest_view &v, backtest_block *block,
                                                     const pass_plan *plans,
                                                     const some_passes &some, int number, T *rows,
                                                     int next)
{
    const int thread = thread_anew() % 32, own = some.first + some.stride * thread;
    const bar_share share = block->share[thread];
    const ho_env_lane *finished = &plans[own < some.count ? own : 0].lane;
    const int32_t bar = finished->begin + number;
#pragma unroll 1
    for (int pass = some.first; pass < some.count; pass += some.stride) {
        const ho_env_lane *lane = &plans[pass].lane;
        const int32_t t = lane->begin + number;
        bar_fetch(share, v.market, lane->sigma, t, t, lane->end, rows + pass * STATE_PITCH,
                  &block->quote[next][pass], NULL);
    }
    copies_commit();
    return own < some.count && bar < finished->end ? v.market.bar_flags[bar] : 0;
}

/* They are there. */
static __device__ __forceinline__ void bars_end(backtest_block *block, const pass_plan *plans,
                                                const some_passes &some, int number, int next,
                                                uint8_t flags)
{
    const int own = some.first + some.stride * (thread_anew() % 32);
    const ho_env_lane *finished = &plans[own < some.count ? own : 0].lane;
    const int32_t bar = finished->begin + number;
    copies_wait<0>();
    if (own < some.count && bar < finished->end) {
        block->quote[next][own].bar = bar;
        block->quote[next][own].flags = flags;
    }
    __syncwarp();
}

/* Before the first bar. */
template <typename T>
static __device__ __forceinline__ void rests_begin(const backtest_view &v, backtest_block *block,
                                                   const pass_block &group, const some_passes &some,
                                                   bool roomy)
{
    const int thread = (int)threadIdx.x % 32, pass = some.first + some.stride * thread;
    if (some.first == 0) { /* of several such warps the first, for all */
        block->share[thread] = bar_share_of<T>(v.market, v.features);
    }
    if (roomy && pass < some.count) {
        const ho_env_lane *lane = &v.plan[group.first + pass].lane;
        block->ahead[pass] = {ho_size_at(&lane->config, -1.0, lane->sigma[lane->begin]),
                              lane->length};
    }
    __syncwarp();
}

/* What orders.h and offer.h ask of the settings for an offer's rest. */
static __device__ __forceinline__ void copy_rest_settings(const ho_env_config *from,
                                                          ho_env_config *to)
{
    to->spread_ticks = from->spread_ticks;
    to->spread_bps = from->spread_bps;
    to->limit_offset = from->limit_offset;
    to->tick_size = from->tick_size;
    to->fill = from->fill;
    to->ioc_participation = from->ioc_participation;
    to->ioc_band = from->ioc_band;
    to->lot = from->lot;
    to->has_volume = from->has_volume;
    to->target_vol = from->target_vol;
    to->max_lots = from->max_lots;
    to->sizing = from->sizing;
    to->kelly_share = from->kelly_share;
    to->vol_cap = from->vol_cap;
    to->resize_band = from->resize_band;
}

/* Whose settings make_rests wants of a thread. */
static __device__ __forceinline__ const ho_env_config *settings_of(const pass_plan *plans,
                                                                   const some_passes &some)
{
    const int pass = some.first + some.stride * (thread_anew() % 32 / 8);
    return &plans[pass < some.count ? pass : 0].lane.config;
}

/* The rest of their offers, 8 threads a pass: what limit and IOC orders meet, and what the bar
 * changes by itself. settings: a thread's pass's; bars: since the passes' begin, at the quotes'
 * decision; called for each bar in turn. */
static __device__ __forceinline__ void make_rests(backtest_block *block, const some_passes &some,
                                                  const ho_env_config *settings, int32_t bars,
                                                  int quotes)
{
    const int thread = thread_anew() % 32, pass = some.first + some.stride * (thread / 8);
    const bool there = pass < some.count;
    const int w = there ? pass : some.first, i = thread % 8; /* another's are being written */
    const ho_quote quote = *aligned16(&block->quote[quotes][w]);
    const ho_env_lane *lane = &block->plan[w].lane;
    ho_offer *offer = &block->offer[quotes][w];
    pass_ahead *ahead = &block->ahead[w];
    const double before = ahead->size, size = offer_rest(settings, &quote, i, there, before, offer);
    __syncwarp(); /* all have read what one stores now */
    if (there && i == HO_REST_SIZE) {
        const int32_t left = ahead->left == 1 ? lane->length : ahead->left - 1;
        ho_ahead_bar(lane, lane->begin + bars, bars, left == lane->length, size, &quote,
                     &offer->ahead);
        ahead->left = left;
        ahead->size = size;
    }
}

/* The helping warps of many passes. While the network decides: what each order of the coming step
 * would meet, two passes a warp. While the steps are made: the first two fetch bars and work out
 * the rest of their offers, the others keep the books of the bar before. */
template <typename T>
static __device__ void help_many(const backtest_view &v, const policy_plan &plan, uint8_t *shared,
                                 backtest_block *block, const pass_block &group, bool roomy,
                                 bool twice)
{
    const pass_plan *plans = plans_of(v, block, group, roomy);
    const int count = group.count, helper = warp_number() - POLICY_WARPS;
    const bool orders = roomy && helper * 2 < count, fetches = helper < 2;
    if (orders) {
        const int thread = (int)threadIdx.x % 32, w = helper * 2 + thread / 16;
        block->part[w][thread % 16] =
            ho_offer_part_of(&v.plan[group.first + (w < count ? w : 0)].lane.config, thread % 16);
    }
    const some_passes some = {helper, 2, count};
    if (fetches) {
        rests_begin<T>(v, block, group, some, roomy);
    }
    int32_t booked = -1;
    for (int now = 0, row = 0, round = 0;;
         now ^= 1, row = policy_next_row<STATE_ROWS>(row), round++) {
        const bool live = bar_begins(block, now, twice);
        if (live) {
            const int thread = thread_anew() % 32, w = helper * 2 + thread / 16;
            if (orders && w < count) {
                ho_env_config c = {};
                copy_order_settings(&block->orders[w], &c);
                offer_orders(&c, &block->part[w][thread % 16], &block->state[w].env,
                             &block->quote[now][w], thread % 16, 16, &block->offer[now][w]);
            }
            if (roomy && fetches && round == 0) {
                make_rests(block, some, settings_of(plans, some), 0, now);
            }
            orders_known<false>();
            if (fetches) {
                ho_env_config settings = {}; /* read before what it takes to wait for the bars */
                if (roomy) {
                    copy_rest_settings(settings_of(plans, some), &settings);
                }
                const uint8_t flags = bars_begin<T>(v, block, plans, some, round + 2,
                                                    rows_to_come<T>(plan, shared, row), now ^ 1);
                bars_end(block, plans, some, round + 2, now ^ 1, flags);
                if (roomy) {
                    make_rests(block, some, &settings, round + 1, now ^ 1);
                }
            }
        }
        if (!fetches) {
            const int thread = thread_anew() % 32, own = thread / 4;
            const bool keeps = thread % 4 == 0 && own < count;
            const pass_note *note = &block->note[now ^ 1][keeps ? own : 0];
            const bool comes = keeps && note->bar > booked, first = helper == 2;
            const bool trades = __any_sync(0xffffffffu, comes && pass_traded(note));
            if (comes) {
                if (first) {
                    pass_book_bar(&block->state[own], &plans[own], note);
                } else if (trades) {
                    pass_book_trades(&block->state[own], &plans[own], note);
                }
                if (first == trades) {
                    pass_book_actions(&block->state[own], &plans[own], note);
                }
                booked = note->bar;
            }
        }
        if (!live) {
            break;
        }
    }
    books_complete();
}

/* ---- few passes: a warp each for orders, the rest of the offers with the entropies to come,
 * quiet states, and the books with the fetching of bars ---- */

/* Threads of a helping warp that serve one pass of few. */
static __device__ __forceinline__ int threads_a_pass(int count)
{
    return count <= 2 ? 16 : 8;
}

/* What a choice of category `category` would make of the entropy column. */
static __device__ __forceinline__ ho_ratio entropy_to_come(const ho_env_config *c, const ho_env *e,
                                                           ho_ring ring, const double *n_log2_n,
                                                           int category)
{
    const ho_category_place place = ho_diversity_place(c, e, ring);
    ho_env then;
#pragma unroll
    for (int i = 0; i < CATEGORIES; i++) {
        then.category_count[i] = place.count[i] + (i == category);
    }
    return ho_entropy_ratio(&then, n_log2_n);
}

/* What each order would meet. */
static __device__ void make_few_orders(const backtest_view &v, backtest_block *block,
                                       const pass_block &group, bool twice)
{
    const int count = group.count, threads = threads_a_pass(count);
    const int number = (int)threadIdx.x % 32 / threads, sub = (int)threadIdx.x % threads;
    const int w = number < count ? number : 0;
    ho_offer_part part = ho_offer_part_of(&v.plan[group.first + w].lane.config, sub);
    const pass_state *s = &block->state[w];
    for (int now = 0; bar_begins(block, now, twice); now ^= 1) {
        if (number < count && !s->done) {
            ho_env_config c = {};
            copy_order_settings(&block->orders[w], &c);
            offer_orders(&c, &part, &s->env, &block->quote[now][w], sub, threads,
                         &block->offer[now][w]);
        }
        orders_known<true>();
    }
    books_complete();
}

/* The books of the bar before; meanwhile the bar after the next one comes. */
template <typename T>
static __device__ void keep_few_books(const backtest_view &v, const policy_plan &plan,
                                      uint8_t *shared, backtest_block *block, int count, bool twice)
{
    const some_passes all = {0, 1, count};
    const int w = (int)threadIdx.x % 32;
    const pass_plan *p = &block->plan[w < count ? w : 0];
    pass_state *s = &block->state[w < count ? w : 0];
    int32_t booked = -1;
    for (int now = 0, row = 0, round = 0;;
         now ^= 1, row = policy_next_row<STATE_ROWS>(row), round++) {
        const bool live = bar_begins(block, now, twice);
        uint8_t flags = 0;
        if (live) {
            flags = bars_begin<T>(v, block, block->plan, all, round + 2,
                                  rows_to_come<T>(plan, shared, row), now ^ 1);
        }
        const pass_note *note = &block->note[now ^ 1][w < count ? w : 0];
        if (w < count && note->bar > booked) {
            pass_book_bar(s, p, note);
            pass_book_actions(s, p, note);
            pass_book_trades(s, p, note);
            booked = note->bar;
        }
        if (!live) {
            break;
        }
        bars_end(block, block->plan, all, round + 2, now ^ 1, flags);
    }
    books_complete();
}

/* The rest of the offers, and the entropies to come. */
template <typename T>
static __device__ void make_few_rests(const backtest_view &v, backtest_block *block,
                                      const pass_block &group, bool twice)
{
    const some_passes all = {0, 1, group.count};
    const int number = (int)threadIdx.x % 32 / 8, category = (int)threadIdx.x % 8;
    const int w = number < all.count ? number : 0;
    const ho_ring ring = {block->ring[w], 1};
    const pass_state *s = &block->state[w];
    const ho_env_config *c = &block->plan[w].lane.config;
    ho_env_config settings = {};
    copy_rest_settings(&v.plan[group.first + w].lane.config, &settings);
    rests_begin<T>(v, block, group, all, true);
    for (int now = 0, round = 0; bar_begins(block, now, twice); now ^= 1, round++) {
        const ho_env env = s->env; /* read at once: later the network's loads are in the way */
        make_rests(block, all, &settings, round, now);
        if (number < all.count && category < CATEGORIES && !s->done && ho_diversity_on(c)) {
            const ho_ratio r = entropy_to_come(c, &env, ring, block->n_log2_n, category);
            block->quiet[w].entropy[category] = ho_ratio_value(&r, HO_NO_LIMIT);
        }
        orders_known<true>();
    }
    books_complete();
}

/* Column number i of those that depend on more than the orders' categories. */
static __device__ __forceinline__ int quiet_column(int i)
{
    return i < ENTROPY_COLUMN ? i : i + 1;
}

/* The states after a bar in which nothing trades. settings: of the block's passes, in global
 * memory: read before the block's own copies are there. */
static __device__ void make_quiet_states(backtest_block *block, const pass_plan *settings,
                                         int count, bool twice)
{
    const int threads = threads_a_pass(count), sub = (int)threadIdx.x % threads;
    const int number = (int)threadIdx.x % 32 / threads, w = number < count ? number : 0;
    const ho_env_lane *lane = &block->plan[w].lane;
    const int32_t form = settings[w].lane.config.state_form;
    const int columns =
        form == HO_STATE_SEED54 ? (int)HO_SEED54_FEATURES : HO_PORTFOLIO_FEATURES - 2;
    const int column = quiet_column(sub < columns ? sub : 0);
    const uint64_t formula = ho_portfolio_formula(form, column);
    const double limit = ho_portfolio_limit(form, column);
    ho_portfolio_terms *terms = &block->quiet_terms[w];
    pass_quiet *quiet = &block->quiet[w];
    for (int now = 0; bar_begins(block, now, twice); now ^= 1) {
        const pass_state *s = &block->state[w];
        const bool wanted = number < count && !s->done;
        if (wanted && sub == 0) {
            const ho_quote *q = &block->quote[now][w];
            const pass_calm calm = pass_is_calm(&block->plan[w], &s->env, q);
            ho_env then = s->env;
            then.t = q->bar;
            then.equity = calm.equity;
            then.size = ho_size_at(&lane->config, then.size, q->sigma_next);
            ho_portfolio_update(lane, NULL, &then, q->close, q->sigma_next, 0, terms);
            quiet->bar = calm;
        }
        __syncwarp();
        if (wanted && sub < columns) {
            const ho_ratio r = ho_portfolio_ratio(terms, formula, column);
            quiet->column[column] = ho_ratio_value(&r, limit);
        }
        orders_known<true>();
    }
    books_complete();
}

/* What a helping warp does from the first bar to the last. twice: see bar_begins. */
template <typename T>
static __device__ __forceinline__ void
help_passes(const backtest_view &v, const policy_plan &plan, uint8_t *shared, backtest_block *block,
            const pass_block &group, bool roomy, bool few, bool twice)
{
    if (!few) {
        help_many<T>(v, plan, shared, block, group, roomy, twice);
        return;
    }
    switch ((int)threadIdx.x / 32 - POLICY_WARPS) {
    case 0:
        make_few_orders(v, block, group, twice);
        break;
    case 1:
        make_few_rests<T>(v, block, group, twice);
        break;
    case 2:
        make_quiet_states(block, v.plan + group.first, group.count, twice);
        break;
    default:
        keep_few_books<T>(v, plan, shared, block, group.count, twice);
        break;
    }
}

#endif
