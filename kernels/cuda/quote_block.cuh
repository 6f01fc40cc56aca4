/* SPDX-License-Identifier: Apache-2.0
 * A quote (kernels/env/quote.h) into shared memory while the network decides, by a group of S
 * neighbouring threads. quote_fetch starts copies, which the caller's next group takes along;
 * after they have come, quote_complete adds what is no multiple of 8 bytes.
 * bar_share: the same and the features' row, of one bar after the other, by a helping warp. */
#ifndef HO_CUDA_QUOTE_BLOCK_CUH
#define HO_CUDA_QUOTE_BLOCK_CUH

#include <stddef.h>
#include <stdint.h>

#include "kernels/cuda/ptx.cuh"
#include "kernels/env/quote.h"
#include "kernels/shapes.h"

/* Starts on the quote of the step from bar t; t + 1 must be a bar. Returns bar t + 1's flags on the
 * group's first thread. */
template <int S>
static __device__ __forceinline__ uint8_t quote_fetch(ho_quote *q, const ho_market_view &m,
                                                      const double *sigma, int32_t t)
{
    const double *bar = m.bars + ((int64_t)t + 1) * HO_BAR_COLUMNS;
    const int sub = (int)threadIdx.x % S;
    for (int i = sub; i < 11; i += S) {
        const double *from = i < HO_BAR_COLUMNS ? bar + i
                             : i == 5           ? bar + HO_CLOSE - HO_BAR_COLUMNS
                             : i == 6           ? m.mean_volume + t
                             : i < 9            ? sigma + t + i - 7
                             : i == 9           ? m.roll_jump
                                                : m.funding;
        double *to = &q->open + i;
        if (i < 9) {
            copy8_async(to, from);
        } else if (from) {
            copy8_async(to, from + t + 1);
        } else {
            *to = 0.0;
        }
    }
    return sub == 0 ? m.bar_flags[t + 1] : 0;
}

template <int S>
static __device__ __forceinline__ void quote_complete(ho_quote *q, int32_t t, uint8_t flags)
{
    if ((int)threadIdx.x % S == 0) {
        q->bar = t + 1;
        q->flags = flags;
    }
}

/* What one thread of a warp copies of every bar: a chunk of the features' row or a number of the
 * quote; the last thread the flags. */
typedef struct bar_share {
    const uint8_t *from; /* bar 0's; NULL: nothing, or of a table that the market has not */
    int32_t stride;      /* bytes a bar */
    int32_t to;          /* bytes into the row or the quote */
    int32_t row;         /* 1: of the row */
    int32_t sigma;       /* 1: `from` is to be counted from the state's table of volatilities */
} bar_share;

/* features: [T, HO_STATE_PAD] of T */
template <typename T>
static __device__ __forceinline__ bar_share bar_share_of(const ho_market_view &m,
                                                         const void *features)
{
    constexpr int CHUNKS = (int)(HO_STATE_PAD * sizeof(T) / 16);
    const int thread = (int)threadIdx.x % 32, number = thread - CHUNKS;
    bar_share s = {NULL, (int32_t)sizeof(double), number * (int32_t)sizeof(double), 0, 0};
    if (number < 0) {
        s.from = (const uint8_t *)features + thread * 16;
        s.stride = HO_STATE_PAD * sizeof(T);
        s.to = thread * 16;
        s.row = 1;
    } else if (number <= HO_BAR_COLUMNS) { /* the bar, then the close before it */
        const int column = number < HO_BAR_COLUMNS ? number : HO_CLOSE - HO_BAR_COLUMNS;
        s.from = (const uint8_t *)(m.bars + column);
        s.stride = HO_BAR_COLUMNS * sizeof(double);
    } else if (number == 6) {
        s.from = (const uint8_t *)(m.mean_volume - 1);
    } else if (number < 9) {
        s.from = (const uint8_t *)(ptrdiff_t)((number - 8) * (int)sizeof(double));
        s.sigma = 1;
    } else if (number < 11) {
        s.from = (const uint8_t *)(number == 9 ? m.roll_jump : m.funding);
    }
    return s;
}

/* Starts on the row of bar row_bar and the quote that ends with bar quote_bar, as far as [.., end)
 * has them. sigma: of the state's lane. flags: gets the quote's on the warp's last thread; nothing
 * may look at it before it has to be there (bar_complete), or it waits for memory. NULL: somebody
 * else reads them. */
static __device__ __forceinline__ void bar_fetch(const bar_share &s, const ho_market_view &m,
                                                 const double *sigma, int32_t row_bar,
                                                 int32_t quote_bar, int32_t end, void *row,
                                                 ho_quote *q, uint8_t *flags)
{
    const uint8_t *table = s.sigma ? (const uint8_t *)sigma + (ptrdiff_t)s.from : s.from;
    const uint8_t *from = table + (int64_t)(s.row ? row_bar : quote_bar) * s.stride;
    const bool there = quote_bar < end;
    if (s.row && row_bar < end) {
        copy16_async((uint8_t *)row + s.to, from);
    }
    if (!s.row && table && there) {
        copy8_async((uint8_t *)&q->open + s.to, from);
    }
    if (flags && threadIdx.x % 32 == 31 && there) {
        *flags = m.bar_flags[quote_bar];
    }
}

/* The numbers of the quote that are no copies, after they have come, by the warp. */
static __device__ __forceinline__ void bar_complete(ho_quote *q, int32_t quote_bar, uint8_t flags)
{
    if (threadIdx.x % 32 == 31) {
        q->bar = quote_bar;
        q->flags = flags;
    }
}

#endif
