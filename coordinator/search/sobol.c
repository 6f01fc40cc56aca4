/* SPDX-License-Identifier: Apache-2.0
 * `sobol`: point n of Sobol's sequence for trial n, scrambled by the study's seed, so that any
 * prefix of the trials fills the space evenly and no proposal depends on what came back. Owen
 * scrambling by hashing (Burley, JCGT 9(4), 2020; hash of Laine and Karras). Parameters past the
 * table's dimensions, and repeats in a finite space, are drawn at random. */
#include "coordinator/search/kind.h"

#include <math.h>
#include <stdlib.h>

#include "coordinator/search/joe_kuo.h"

enum { BITS = 32 };

typedef struct sobol_sampler {
    const ho_search_context *context;
    int dimensions;
    uint32_t (*direction)[BITS]; /* [dimensions] */
    uint32_t *scramble;          /* [dimensions] */
} sobol_sampler;

static void sobol_destroy(void *self)
{
    sobol_sampler *s = self;

    if (!s) {
        return;
    }
    free(s->direction);
    free(s->scramble);
    free(s);
}

/* Direction numbers of dimension d: v_k = m_k 2^(32-k), continued by the recurrence of Bratley and
 * Fox (1988). */
static void directions(int d, uint32_t *v)
{
    const unsigned short *row = d > 0 ? HO_JOE_KUO[d - 1] : NULL;
    int degree = 0;

    if (!row) {
        for (int k = 0; k < BITS; k++) {
            v[k] = 1u << (BITS - 1 - k);
        }
        return;
    }
    while (row[0] >> (degree + 1)) {
        degree++;
    }
    for (int k = 0; k < BITS; k++) {
        if (k < degree) {
            v[k] = (uint32_t)row[1 + k] << (BITS - 1 - k);
            continue;
        }
        v[k] = v[k - degree] ^ (v[k - degree] >> degree);
        for (int i = 1; i < degree; i++) {
            if (row[0] >> (degree - i) & 1) {
                v[k] ^= v[k - i];
            }
        }
    }
}

static ho_status sobol_create(void **self, const ho_search_context *context, ho_err *err)
{
    sobol_sampler *s = calloc(1, sizeof *s);
    int n = context->space->count;

    *self = s;
    if (!s) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for the Sobol sampler");
    }
    s->context = context;
    s->dimensions = n < HO_JOE_KUO_DIMENSIONS ? n : HO_JOE_KUO_DIMENSIONS;
    s->direction = calloc((size_t)s->dimensions + 1, sizeof *s->direction);
    s->scramble = calloc((size_t)s->dimensions + 1, sizeof *s->scramble);
    if (!s->direction || !s->scramble) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for the Sobol sampler");
    }
    for (int d = 0; d < s->dimensions; d++) {
        ho_draw draw = ho_draw_start(context->options.seed, d, HO_DRAW_SCRAMBLE, 0);

        directions(d, s->direction[d]);
        s->scramble[d] = ho_draw_u32(&draw);
    }
    return HO_OK;
}

static uint32_t reverse_bits(uint32_t x)
{
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    x = (x >> 8 & 0x00ff00ffu) | (x & 0x00ff00ffu) << 8;
    return x >> 16 | x << 16;
}

/* A permutation in which each bit depends on itself and the higher ones of the reversed word. */
static uint32_t owen(uint32_t x, uint32_t seed)
{
    x = reverse_bits(x);
    x += seed;
    x ^= x * 0x6c50b47cu;
    x ^= x * 0xb82f1e52u;
    x ^= x * 0xc7afe638u;
    x ^= x * 0x8d22f6e6u;
    return reverse_bits(x);
}

static ho_status sobol_propose(void *self, int64_t number, int attempt, double *config, ho_why *why,
                               ho_err *err)
{
    const sobol_sampler *s = self;
    const ho_search_context *c = s->context;
    ho_draw draw = ho_draw_start(c->options.seed, number, HO_DRAW_PROPOSE, attempt);

    (void)err;
    for (int p = 0; p < c->space->count; p++) {
        uint32_t x = 0;

        config[p] = NAN;
        if (attempt > 0 || p >= s->dimensions) {
            continue;
        }
        for (int k = 0; k < BITS; k++) {
            if ((uint64_t)number >> k & 1) {
                x ^= s->direction[p][k];
            }
        }
        config[p] = ho_dim_from_unit(&c->dim[p], (owen(x, s->scramble[p]) + 0.5) * 0x1p-32);
    }
    ho_dim_fill(c->space, c->dim, &draw, config);
    ho_why_add(why, attempt > 0 ? "sobol: random in place of a repeat" : "sobol: point %lld",
               (long long)number);
    return HO_OK;
}

const ho_sampler_kind ho_kind_sobol = {
    .name = "sobol",
    .help = "a scrambled Sobol sequence: even cover, nothing learned",
    .create = sobol_create,
    .destroy = sobol_destroy,
    .propose = sobol_propose,
};
