/* SPDX-License-Identifier: Apache-2.0
 * A random permutation of [0, n) as a function of the place: no list, no order in which it must be
 * made, so both backends evaluate it where they need it. A balanced Feistel network of 8 rounds
 * (Luby and Rackoff 1988) over the smallest 4^b >= n, whose round keys are counter-based random
 * numbers; places that fall outside [0, n) are walked on (cycle walking, Black and Rogaway 2002,
 * section 3), at most 4 times on average. */
#ifndef HO_KERNELS_AGENTS_PERMUTATION_H
#define HO_KERNELS_AGENTS_PERMUTATION_H

#include <stdint.h>

#include "kernels/env/rng.h"
#include "kernels/hd.h"

enum { HO_PERMUTATION_ROUNDS = 8 };

typedef struct ho_permutation {
    uint32_t key[HO_PERMUTATION_ROUNDS];
    uint32_t n;
    uint32_t bits; /* of half a place */
} ho_permutation;

/* The shuffle of PPO's pass `pass` over the n rows of an epoch's rollout; 1 <= n <= 2^28. */
static inline HO_HD ho_permutation ho_permutation_of(const uint32_t key[2], uint32_t pass,
                                                     uint32_t epoch, uint32_t n)
{
    ho_permutation p;
    const ho_rng4 a = ho_rng(key, 0, pass, epoch, HO_RNG_SHUFFLE, 0);
    const ho_rng4 b = ho_rng(key, 1, pass, epoch, HO_RNG_SHUFFLE, 0);
    for (int i = 0; i < 4; i++) {
        p.key[i] = a.v[i];
        p.key[i + 4] = b.v[i];
    }
    p.n = n;
    p.bits = 1;
    while ((1u << (2 * p.bits)) < n) {
        p.bits++;
    }
    return p;
}

/* A mixer of 32 bits (the constants of Wellons' "lowbias32"). */
static inline HO_HD uint32_t ho_permutation_mix(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ x >> 16;
}

/* Where place i goes; i < n. */
static inline HO_HD uint32_t ho_permutation_at(const ho_permutation *p, uint32_t i)
{
    const uint32_t mask = (1u << p->bits) - 1;
    do {
        uint32_t left = i >> p->bits, right = i & mask;
        for (int r = 0; r < HO_PERMUTATION_ROUNDS; r++) {
            const uint32_t mixed = left ^ (ho_permutation_mix(right ^ p->key[r]) & mask);
            left = right;
            right = mixed;
        }
        i = left << p->bits | right;
    } while (i >= p->n);
    return i;
}

#endif
