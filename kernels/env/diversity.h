/* SPDX-License-Identifier: Apache-2.0
 * Shannon entropy of the last categories (short, flat, long) of an episode. The entropy comes from
 * counts and the market's table of n * log2(n), so both backends agree to the bit.
 * The ring holds 2 bits a category; its words lie `stride` apart so that a GPU can keep the rings
 * of neighbouring episodes side by side. */
#ifndef HO_KERNELS_ENV_DIVERSITY_H
#define HO_KERNELS_ENV_DIVERSITY_H

#include <stdint.h>

#include "kernels/env/config.h"
#include "kernels/env/market_view.h"
#include "kernels/env/state.h"
#include "kernels/hd.h"

enum { HO_RING_PER_WORD = 16, HO_RING_WORDS_MAX = HO_DIVERSITY_MAX / HO_RING_PER_WORD };

typedef struct ho_ring {
    uint32_t *word; /* word i at word[i * stride]; ho_ring_words(config) of them */
    int32_t stride;
} ho_ring;

static inline HO_HD int32_t ho_diversity_on(const ho_env_config *c)
{
    return c->diversity_penalty != 0.0 || c->reward_preset == HO_PRESET_ORIGINAL;
}

static inline HO_HD int32_t ho_ring_words(const ho_env_config *c)
{
    return (c->diversity_window + HO_RING_PER_WORD - 1) / HO_RING_PER_WORD;
}

static inline HO_HD int32_t ho_category_total(const ho_env *e)
{
    return e->category_count[0] + e->category_count[1] + e->category_count[2];
}

/* A new episode; the ring's words need no clearing. */
static inline HO_HD void ho_diversity_clear(ho_env *e)
{
    e->ring_head = 0;
    e->category_count[0] = 0;
    e->category_count[1] = 0;
    e->category_count[2] = 0;
}

static inline HO_HD void ho_diversity_push(const ho_env_config *c, ho_env *e, ho_ring ring,
                                           int32_t category)
{
    int32_t index = e->ring_head / HO_RING_PER_WORD * ring.stride;
    int32_t shift = 2 * (e->ring_head % HO_RING_PER_WORD);
    uint32_t word = ring.word[index];
    if (ho_category_total(e) == c->diversity_window) {
        e->category_count[(word >> shift) & 3u]--;
    }
    ring.word[index] = (word & ~(3u << shift)) | ((uint32_t)category << shift);
    e->category_count[category]++;
    e->ring_head = e->ring_head + 1 == c->diversity_window ? 0 : e->ring_head + 1;
}

/* n * H = n * log2(n) - sum(c * log2(c)) */
static inline HO_HD double ho_entropy_times_n(const ho_env *e, const double *n_log2_n)
{
    return n_log2_n[ho_category_total(e)] - n_log2_n[e->category_count[0]] -
           n_log2_n[e->category_count[1]] - n_log2_n[e->category_count[2]];
}

/* The entropy H in bits; 0 while empty */
static inline HO_HD double ho_entropy(const ho_env *e, const double *n_log2_n)
{
    int32_t n = ho_category_total(e);
    if (n == 0) {
        return 0.0;
    }
    return ho_quotient(ho_entropy_times_n(e, n_log2_n), (double)n);
}

#endif
