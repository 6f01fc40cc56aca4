/* SPDX-License-Identifier: Apache-2.0
 * A quote (kernels/env/quote.h) into shared memory while the network decides, by a group of S
 * neighbouring threads. quote_fetch starts copies, which the caller's next group takes along;
 * after they have come, quote_complete adds what is no multiple of 8 bytes. */
#ifndef HO_CUDA_QUOTE_BLOCK_CUH
#define HO_CUDA_QUOTE_BLOCK_CUH

#include <stddef.h>
#include <stdint.h>

#include "kernels/cuda/ptx.cuh"
#include "kernels/env/quote.h"

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

#endif
