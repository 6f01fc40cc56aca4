/* SPDX-License-Identifier: Apache-2.0
 * Random numbers of the search: Philox4x32-10 (Salmon et al., SC 2011; Random123), counter based.
 * A stream is named by (study seed, trial number, purpose), so that a proposal never depends on
 * what other trials drew, on threads or on the order of calls. */
#ifndef HO_COORDINATOR_SEARCH_DRAW_H
#define HO_COORDINATOR_SEARCH_DRAW_H

#include <math.h>
#include <stdint.h>

#include <Random123/philox.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ho_draw_purpose {
    HO_DRAW_PROPOSE = 1,  /* a sampler's proposal; attempts are added in the high half */
    HO_DRAW_FILL = 2,     /* parameters that a proposal left open */
    HO_DRAW_LATENT = 3,   /* CMA-ES: the normal vector behind a proposal */
    HO_DRAW_SCRAMBLE = 4, /* Sobol scrambling, fixed per study */
    HO_DRAW_SPACE = 5,    /* order in which a finite space is walked */
    HO_DRAW_BRACKET = 6,  /* Hyperband: trial to bracket */
    HO_DRAW_FIT = 7,      /* gp, cmaes: starts and restarts */
    HO_DRAW_RACE = 8,     /* order of the folds */
    HO_DRAW_PERMUTE = 8,  /* null-test: order of the blocks of bars */
} ho_draw_purpose;

typedef struct ho_draw {
    philox4x32_key_t key;
    philox4x32_ctr_t counter;
    philox4x32_ctr_t block;
    int left; /* unread words of block */
} ho_draw;

static inline uint64_t ho_draw_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ull; /* splitmix64 (Steele, Lea, Flood 2014) */
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

static inline ho_draw ho_draw_start(uint64_t seed, int64_t number, ho_draw_purpose purpose,
                                    int attempt)
{
    ho_draw d;
    uint64_t key = ho_draw_mix(seed), n = (uint64_t)number;

    d.key.v[0] = (uint32_t)key;
    d.key.v[1] = (uint32_t)(key >> 32);
    d.counter.v[0] = 0;
    d.counter.v[1] = (uint32_t)purpose + ((uint32_t)attempt << 8);
    d.counter.v[2] = (uint32_t)n;
    d.counter.v[3] = (uint32_t)(n >> 32);
    d.block = d.counter;
    d.left = 0;
    return d;
}

static inline uint32_t ho_draw_u32(ho_draw *d)
{
    if (d->left == 0) {
        d->block = philox4x32(d->counter, d->key);
        d->counter.v[0]++;
        d->left = 4;
    }
    return d->block.v[4 - d->left--];
}

/* [0, 1), 53 bits */
static inline double ho_draw_unit(ho_draw *d)
{
    uint64_t high = ho_draw_u32(d) >> 5, low = ho_draw_u32(d) >> 6;

    return (double)(high * 67108864u + low) * 0x1p-53;
}

/* (0, 1) */
static inline double ho_draw_open(ho_draw *d)
{
    return ho_draw_unit(d) + 0x1p-54;
}

/* 0 ... n - 1; n >= 1. The bias of at most n / 2^53 is far below what a search can notice. */
static inline int64_t ho_draw_below(ho_draw *d, int64_t n)
{
    int64_t k = (int64_t)(ho_draw_unit(d) * (double)n);

    return k < n ? k : n - 1;
}

/* Standard normal by Box and Muller (1958), the cosine half. */
static inline double ho_draw_normal(ho_draw *d)
{
    double radius = sqrt(-2.0 * log(ho_draw_open(d)));

    return radius * cos(6.283185307179586 * ho_draw_unit(d));
}

#ifdef __cplusplus
}
#endif
#endif
