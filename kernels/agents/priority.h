/* SPDX-License-Identifier: Apache-2.0
 * Prioritised replay (Schaul 2016). Priorities are fixed-point integers: a sum of them is exact and
 * does not depend on the order, so a sum tree never drifts and the CPU and the GPU draw alike. */
#ifndef HO_KERNELS_AGENTS_PRIORITY_H
#define HO_KERNELS_AGENTS_PRIORITY_H

#include <math.h>
#include <stdint.h>

#include "kernels/hd.h"

enum {
    HO_PRIORITY_BITS = 20,   /* binary places of a leaf */
    HO_RANK_SORT_EVERY = 64, /* updates between sorts of rank-based replay */
};

/* (|td| + 1e-3)^alpha as a leaf of the tree, at least 1 so that everything can be drawn. */
static inline HO_HD uint32_t ho_priority_leaf(double td, double alpha)
{
    const double p = pow(fabs(td) + 1e-3, alpha) * (double)(1 << HO_PRIORITY_BITS);
    return p < 1.0 ? 1u : (p < 4294967295.0 ? (uint32_t)p : 4294967295u);
}

/* Mass of rank `rank` (from 0) under P ~ 1 / (rank + 1)^alpha, fixed-point. */
static inline HO_HD uint64_t ho_priority_rank_mass(int64_t rank, double alpha)
{
    const double p = pow((double)(rank + 1), -alpha) * 4294967296.0;
    return p < 1.0 ? 1u : (uint64_t)p;
}

/* floor(a * b / 2^64) */
static inline HO_HD uint64_t ho_mul_high(uint64_t a, uint64_t b)
{
    const uint64_t a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
    const uint64_t mid = a1 * b0 + (a0 * b0 >> 32);
    return a1 * b1 + (mid >> 32) + (((mid & 0xffffffffu) + a0 * b1) >> 32);
}

/* The mass drawn by sample i of `batch` from its own segment of [0, total): stratified, and below
 * total by construction. random: 64 random bits. total < 2^50, batch < 2^14. */
static inline HO_HD uint64_t ho_priority_draw(uint64_t total, int32_t i, int32_t batch,
                                              uint64_t random)
{
    const uint64_t low = total * (uint64_t)i / (uint64_t)batch;
    const uint64_t high = total * (uint64_t)(i + 1) / (uint64_t)batch;
    return high > low ? low + ho_mul_high(random, high - low) : low;
}

/* (N * P)^-beta; the caller divides by the largest of its batch. */
static inline HO_HD double ho_priority_weight(double probability, int64_t n, double beta)
{
    return pow((double)n * probability, -beta);
}

/* beta rises linearly over the trial's updates. */
static inline HO_HD double ho_priority_beta(double start, double end, int64_t update, int64_t total)
{
    const double x = total > 0 ? (double)update / (double)total : 1.0;
    return start + (end - start) * (x > 1.0 ? 1.0 : x);
}

#endif
