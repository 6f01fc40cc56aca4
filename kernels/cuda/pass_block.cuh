/* SPDX-License-Identifier: Apache-2.0
 * What the warps of a backtest block share: the passes' states and what is worked out for them, and
 * where they meet. A bar: bar_begins -> the network decides, helping warps work out what its choice
 * may meet -> orders_known -> the steps, meanwhile books and the bars ahead. */
#ifndef HO_CUDA_PASS_BLOCK_CUH
#define HO_CUDA_PASS_BLOCK_CUH

#include "kernels/cuda/backtest_kernels.h"
#include "kernels/cuda/helpers.cuh"
#include "kernels/cuda/pass.cuh"
#include "kernels/cuda/policy_block.cuh"
#include "kernels/cuda/quote_block.cuh"

enum {
    PASS_THREADS = HELPED_THREADS,
    /* so many leave the helping warps time for quiet states, and instructions their way */
    FEW_PASSES = 4,
    FEW_BLOCKS = 64,
    CATEGORIES = 3,    /* of orders: short, flat, long */
    ENTROPY_COLUMN = 6 /* of a state's portfolio, by the categories alone */
};

/* The state after a bar in which nothing trades. */
typedef struct pass_quiet {
    pass_calm bar;
    float column[HO_PORTFOLIO_FEATURES];
    float entropy[CATEGORIES]; /* its entropy column after an order of this category */
} pass_quiet;

/* What offers' orders need of the settings, side by side: few loads bring it. */
typedef struct alignas(16) order_settings {
    int32_t cooldown, fill, has_volume, allow_short;
    double max_leverage, cash_reserve, multiplier, lot, margin_per_lot, impact_coef;
    double spread_bps, spread_ticks, tick_size, urgency_fraction[3];
} order_settings;

/* Takes them from settings or from others of these; `to` may be settings of which nothing else is
 * read. */
template <typename From, typename To>
static __device__ __forceinline__ void copy_order_settings(const From *from, To *to)
{
    to->cooldown = from->cooldown;
    to->fill = from->fill;
    to->has_volume = from->has_volume;
    to->allow_short = from->allow_short;
    to->max_leverage = from->max_leverage;
    to->cash_reserve = from->cash_reserve;
    to->multiplier = from->multiplier;
    to->lot = from->lot;
    to->margin_per_lot = from->margin_per_lot;
    to->impact_coef = from->impact_coef;
    to->spread_bps = from->spread_bps;
    to->spread_ticks = from->spread_ticks;
    to->tick_size = from->tick_size;
    to->urgency_fraction[0] = from->urgency_fraction[0];
    to->urgency_fraction[1] = from->urgency_fraction[1];
    to->urgency_fraction[2] = from->urgency_fraction[2];
}

/* The bar that comes, of a pass, as far as no account changes it. */
typedef struct pass_ahead {
    double size;  /* lots at exposure 1 at its decision */
    int32_t left; /* bars to an anchor, once it has passed */
} pass_ahead;

/* What a helping warp would have to keep from bar to bar lies here: what does not fit its registers
 * would be spilled to memory, which is much farther away. */
typedef struct backtest_block {
    pass_state state[PASSES_BLOCK];
    pass_note note[2][PASSES_BLOCK];             /* of this bar, of the last one */
    alignas(16) ho_quote quote[2][PASSES_BLOCK]; /* of this step, of the next one */
    alignas(8) uint8_t live[2][PASSES_BLOCK];    /* at the head of this bar, of the last one */
    alignas(16) ho_portfolio_terms terms[PASSES_BLOCK];
    uint64_t formula[HO_PORTFOLIO_FEATURES]; /* of the portfolio's columns */
    bar_share share[32];                     /* what each thread of a warp fetches of a bar */
    /* a policy that may be sampled: its weights; C51's, which need the room, are not */
    float draw[PASSES_BLOCK][SCORE_PITCH];
    /* where there is room; else steps go without offers, and the rest is read where it is */
    pass_plan plan[PASSES_BLOCK];
    ho_offer offer[2][PASSES_BLOCK]; /* of this step, of the next one */
    order_settings orders[PASSES_BLOCK];
    ho_offer_part part[PASSES_BLOCK][16]; /* of each order and of the stop */
    pass_ahead ahead[PASSES_BLOCK];
    int32_t plain[PASSES_BLOCK]; /* the settings are (kernels/env/fill.h) */
    pass_quiet quiet[PASSES_BLOCK];
    ho_portfolio_terms quiet_terms[PASSES_BLOCK];
    double n_log2_n[HO_DIVERSITY_MAX + 1]; /* the market's */
    uint32_t ring[PASSES_BLOCK][HO_RING_WORDS_MAX];
} backtest_block;

static_assert(PASSES_BLOCK == 8 && POLICY_WARPS == 8, "a pass a warp, a word of flags");

/* Rows of the states: of this bar, of the next one, whose portfolio columns the step writes, and of
 * the one after it, which is on its way. */
enum { STATE_ROWS = 3 };

/* The head of a bar: states, accounts, quotes and notes are there. Does any pass go on? One barrier
 * gives the order; racecheck sees it behind a second one (ho_cuda_racecheck). */
static __device__ __forceinline__ bool bar_begins(const backtest_block *block, int now, bool twice)
{
    __syncwarp();
    barrier_of_roles<PASS_THREADS, 2>();
    if (twice) {
        barrier_of_roles<PASS_THREADS, 4>();
    }
    return *(const uint64_t *)block->live[now] != 0; /* is any? */
}

/* Scores, offers and quiet states are there. FEW: the books' warp takes no part. */
template <bool FEW> static __device__ __forceinline__ void orders_known(void)
{
    __syncwarp();
    barrier_of_roles<FEW ? PASS_THREADS - 32 : PASS_THREADS, 3>();
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

#endif
