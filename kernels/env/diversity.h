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

/* What the next category meets, whatever it is. */
typedef struct ho_category_place {
    int32_t index, shift; /* of its bits in the ring */
    uint32_t word;        /* the ring's, those bits cleared */
    int32_t head;         /* the ring's next slot */
    int32_t count[3];     /* short, flat, long, after the oldest has left */
} ho_category_place;

static inline HO_HD ho_category_place ho_diversity_place(const ho_env_config *c, const ho_env *e,
                                                         ho_ring ring)
{
    ho_category_place p;
    p.index = e->ring_head / HO_RING_PER_WORD * ring.stride;
    p.shift = 2 * (e->ring_head % HO_RING_PER_WORD);
    const uint32_t word = ring.word[p.index];
    const int32_t full = ho_category_total(e) == c->diversity_window;
    const int32_t oldest = full ? (int32_t)((word >> p.shift) & 3u) : -1;
    for (int32_t i = 0; i < 3; i++) {
        p.count[i] = e->category_count[i] - (i == oldest);
    }
    p.word = word & ~(3u << p.shift);
    p.head = e->ring_head + 1 == c->diversity_window ? 0 : e->ring_head + 1;
    return p;
}

static inline HO_HD void ho_diversity_take(ho_env *e, ho_ring ring, const ho_category_place *p,
                                           int32_t category)
{
    ring.word[p->index] = p->word | ((uint32_t)category << p->shift);
    for (int32_t i = 0; i < 3; i++) {
        e->category_count[i] = p->count[i] + (i == category);
    }
    e->ring_head = p->head;
}

static inline HO_HD void ho_diversity_push(const ho_env_config *c, ho_env *e, ho_ring ring,
                                           int32_t category)
{
    const ho_category_place place = ho_diversity_place(c, e, ring);
    ho_diversity_take(e, ring, &place, category);
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
