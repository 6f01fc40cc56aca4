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

/* The bars after the next one on their way, by two warps while the steps are made, every second
 * pass each, this one's from `first` on: a pass's row of its bar number `number`, and the quote
 * that ends with it. */
template <typename T>
static __device__ __forceinline__ void fetch_bars(const backtest_view &v, backtest_block *block,
                                                  const pass_plan *plans, int first, int count,
                                                  int number, T *rows, int next)
{
    const int thread = thread_anew() % 32, own = first + 2 * thread;
    const bar_share share = block->share[thread];
    const ho_env_lane *finished = &plans[own < count ? own : 0].lane;
    const int32_t bar = finished->begin + number;
    const bool comes = own < count && bar < finished->end;
#pragma unroll 1
    for (int pass = first; pass < count; pass += 2) {
        const ho_env_lane *lane = &plans[pass].lane;
        const int32_t t = lane->begin + number;
        bar_fetch(share, v.market, lane->sigma, t, t, lane->end, rows + pass * STATE_PITCH,
                  &block->quote[next][pass], NULL);
    }
    copies_commit();
    const uint8_t flags = comes ? v.market.bar_flags[bar] : 0;
    copies_wait<0>();
    if (comes) {
        block->quote[next][own].bar = bar;
        block->quote[next][own].flags = flags;
    }
}

/* The rest of their offers, 4 threads a pass: what limit and IOC orders meet, and what the bar
 * changes by itself. bars: since the passes' begin, at the quotes' decision; called for each bar in
 * turn. */
static __device__ __forceinline__ void make_rests(backtest_block *block, int first, int count,
                                                  int32_t bars, int quotes)
{
    const int thread = thread_anew() % 32, pass = first + 2 * (thread / 4), i = thread % 4;
    ho_offer *offer = &block->offer[quotes][pass < count ? pass : 0];
    const ho_quote *q = &block->quote[quotes][pass < count ? pass : 0];
    const ho_env_lane *lane = &block->plan[pass < count ? pass : 0].lane;
    if (pass < count && i < 3) {
        offer_limits(&lane->config, q, i, offer);
    } else if (pass < count) {
        pass_ahead *ahead = &block->ahead[pass];
        const int32_t left = ahead->left == 1 ? lane->length : ahead->left - 1;
        ho_ahead_bar(lane, lane->begin + bars, bars, left == lane->length, ahead->size, q,
                     &offer->ahead);
        ahead->left = left;
        ahead->size = offer->ahead.size;
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
    if (fetches) {
        const int thread = (int)threadIdx.x % 32, pass = helper + 2 * thread;
        block->share[thread] = bar_share_of<T>(v.market, v.features); /* by both warps, alike */
        if (roomy && pass < count) {
            const ho_env_lane *lane = &v.plan[group.first + pass].lane;
            block->ahead[pass] = {ho_size_at(&lane->config, -1.0, lane->sigma[lane->begin]),
                                  lane->length};
        }
        __syncwarp();
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
                make_rests(block, helper, count, 0, now);
            }
            orders_known<false>();
            if (fetches) {
                fetch_bars<T>(v, block, plans, helper, count, round + 2,
                              rows_to_come<T>(plan, shared, row), now ^ 1);
                __syncwarp();
                if (roomy) {
                    make_rests(block, helper, count, round + 1, now ^ 1);
                }
            }
        }
        if (!fetches) {
            const int thread = thread_anew() % 32, own = thread / 4;
            const pass_note *note = &block->note[now ^ 1][own];
            if (thread % 4 == 0 && own < count && note->bar > booked) {
                if (helper == 2) {
                    pass_book_bar(&block->state[own], &plans[own], note);
                } else {
                    pass_book_trades(&block->state[own], &plans[own], note);
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

/* ---- few passes: a warp each for orders, the rest of the offers, quiet states, and the books with
 * the fetching of bars ---- */

/* Threads of a helping warp that serve one pass of few. */
static __device__ __forceinline__ int threads_a_pass(int count)
{
    return count <= 2 ? 16 : 8;
}

/* What a choice of each category would make of the entropy column, by 3 threads. */
static __device__ __forceinline__ void make_entropies(const pass_plan *p, const ho_env *e,
                                                      ho_ring ring, const double *n_log2_n, int sub,
                                                      float *entropy)
{
    if (sub < CATEGORIES && p->lane.config.diversity_penalty != 0.0) {
        const ho_category_place place = ho_diversity_place(&p->lane.config, e, ring);
        ho_env then;
#pragma unroll
        for (int i = 0; i < CATEGORIES; i++) {
            then.category_count[i] = place.count[i] + (i == sub);
        }
        const ho_ratio r = ho_entropy_ratio(&then, n_log2_n);
        entropy[sub] = ho_ratio_value(&r, HO_NO_LIMIT);
    }
}

/* What each order would meet, and the entropies to come. */
static __device__ void make_few_orders(const backtest_view &v, backtest_block *block,
                                       const pass_block &group, bool twice)
{
    const int count = group.count, threads = threads_a_pass(count);
    const int number = (int)threadIdx.x % 32 / threads, sub = (int)threadIdx.x % threads;
    const int w = number < count ? number : 0;
    ho_offer_part part = ho_offer_part_of(&v.plan[group.first + w].lane.config, sub);
    const ho_ring ring = {block->ring[w], 1};
    const pass_state *s = &block->state[w];
    for (int now = 0; bar_begins(block, now, twice); now ^= 1) {
        if (number < count && !s->done) {
            ho_env_config c = {};
            copy_order_settings(&block->orders[w], &c);
            offer_orders(&c, &part, &s->env, &block->quote[now][w], sub, threads,
                         &block->offer[0][w]);
            make_entropies(&block->plan[w], &s->env, ring, block->n_log2_n, sub,
                           block->quiet[w].entropy);
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
    const bar_share share = bar_share_of<T>(v.market, v.features);
    const int w = (int)threadIdx.x % 32;
    const pass_plan *p = &block->plan[w < count ? w : 0];
    pass_state *s = &block->state[w < count ? w : 0];
    int32_t booked = -1;
    for (int now = 0, row = 0, round = 0;;
         now ^= 1, row = policy_next_row<STATE_ROWS>(row), round++) {
        const bool live = bar_begins(block, now, twice);
        T *rows = rows_to_come<T>(plan, shared, row);
        const int32_t bar = p->lane.begin + round + 2; /* all passes go on together */
        const bool comes = live && w < count && bar < p->lane.end;
#pragma unroll 1
        for (int pass = 0; live && pass < count; pass++) {
            const ho_env_lane *lane = &block->plan[pass].lane;
            const int32_t t = __shfl_sync(0xffffffffu, bar, pass);
            bar_fetch(share, v.market, lane->sigma, t, t, lane->end, rows + pass * STATE_PITCH,
                      &block->quote[now ^ 1][pass], NULL);
        }
        copies_commit();
        const uint8_t flags = comes ? v.market.bar_flags[bar] : 0;
        const pass_note *note = &block->note[now ^ 1][w < count ? w : 0];
        if (w < count && note->bar > booked) {
            pass_book_bar(s, p, note);
            pass_book_trades(s, p, note);
            booked = note->bar;
        }
        if (!live) {
            break;
        }
        copies_wait<0>();
        if (comes) {
            block->quote[now ^ 1][w].bar = bar;
            block->quote[now ^ 1][w].flags = flags;
        }
    }
    books_complete();
}

/* The rest of the offers. */
static __device__ void make_few_rests(backtest_block *block, int count, bool twice)
{
    const int w = (int)threadIdx.x % 32 / 8, i = (int)threadIdx.x % 8, pass = w < count ? w : 0;
    const ho_ring ring = {block->ring[pass], 1};
    for (int now = 0; bar_begins(block, now, twice); now ^= 1) {
        if (w < count && !block->state[w].done) {
            offer_rest(&block->plan[w].lane, &block->state[w].env, ring, &block->quote[now][w], i,
                       &block->offer[0][w]);
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
        make_few_rests(block, group.count, twice);
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
