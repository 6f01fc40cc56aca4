/* SPDX-License-Identifier: Apache-2.0
 * Counter-based random numbers: Philox4x32-10 (Salmon et al. 2011, the constants of Random123).
 * Written out so that a .cu file needs no third-party header; tests compare it with Random123's
 * header and its known answers. The same counter and key give the same 128 bits everywhere.
 *
 * Key: two words of splitmix64 over (study seed, trial, fold, seed index).
 * Counter: (step in epoch, episode slot, epoch, purpose << 24 | draw). */
#ifndef HO_KERNELS_ENV_RNG_H
#define HO_KERNELS_ENV_RNG_H

#include <math.h>
#include <stdint.h>

#include "kernels/hd.h"

/* Never renumber: the values are part of every stored trial's numbers. */
typedef enum ho_rng_purpose {
    HO_RNG_START_BAR = 1,
    HO_RNG_START_EXPOSURE = 2,
    HO_RNG_EPSILON = 3,
    HO_RNG_ACTION = 4,
    HO_RNG_NOISE = 5,
    HO_RNG_REPLAY = 6,
    HO_RNG_INIT = 7,
    HO_RNG_SHUFFLE = 8,
    HO_RNG_POLICY = 9, /* HO_POLICY_RANDOM of a backtest */
} ho_rng_purpose;

typedef struct ho_rng4 {
    uint32_t v[4];
} ho_rng4;

static inline HO_HD uint64_t ho_splitmix64(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* The key of a lane. Philox takes the low 32 bits of each word. */
static inline HO_HD void ho_rng_key(uint64_t study_seed, uint64_t trial, uint64_t fold,
                                    uint64_t seed_index, uint64_t key[2])
{
    uint64_t h = ho_splitmix64(study_seed);
    h = ho_splitmix64(h ^ trial);
    h = ho_splitmix64(h ^ fold);
    h = ho_splitmix64(h ^ seed_index);
    key[0] = ho_splitmix64(h);
    key[1] = ho_splitmix64(key[0]);
}

static inline HO_HD ho_rng4 ho_philox(uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3,
                                      uint32_t k0, uint32_t k1)
{
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0;
        uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    ho_rng4 r;
    r.v[0] = c0;
    r.v[1] = c1;
    r.v[2] = c2;
    r.v[3] = c3;
    return r;
}

/* draw < 2^24 */
static inline HO_HD ho_rng4 ho_rng(const uint32_t key[2], uint32_t step, uint32_t slot,
                                   uint32_t epoch, ho_rng_purpose purpose, uint32_t draw)
{
    return ho_philox(step, slot, epoch, ((uint32_t)purpose << 24) | draw, key[0], key[1]);
}

/* [0, 1), 24 bits */
static inline HO_HD float ho_rng_float(uint32_t word)
{
    return (float)(word >> 8) * (1.0f / 16777216.0f);
}

/* [0, 1), 53 bits */
static inline HO_HD double ho_rng_double(uint32_t high, uint32_t low)
{
    return ((double)(high >> 5) * 67108864.0 + (double)(low >> 6)) * (1.0 / 9007199254740992.0);
}

/* [0, n); bias below n / 2^32 */
static inline HO_HD uint32_t ho_rng_below(uint32_t word, uint32_t n)
{
    return (uint32_t)(((uint64_t)word * n) >> 32);
}

/* Standard normal (Box-Muller) of two words. The logarithm and cosine are the library's: equal
 * bits on one backend, not across backends. */
static inline HO_HD float ho_rng_normal(uint32_t a, uint32_t b)
{
    float u = ((float)(a >> 8) + 1.0f) * (1.0f / 16777216.0f); /* (0, 1] */
    return sqrtf(-2.0f * logf(u)) * cosf(6.28318530718f * ho_rng_float(b));
}

#endif
