/* SPDX-License-Identifier: Apache-2.0
 * `random`: each parameter uniform over its latent range. The honest baseline. */
#include "coordinator/search/kind.h"

#include <math.h>
#include <stdlib.h>

typedef struct random_sampler {
    const ho_search_context *context;
} random_sampler;

static ho_status random_create(void **self, const ho_search_context *context, ho_err *err)
{
    random_sampler *s = calloc(1, sizeof *s);

    *self = s;
    if (!s) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for the random sampler");
    }
    s->context = context;
    return HO_OK;
}

static ho_status random_propose(void *self, int64_t number, int attempt, double *config,
                                ho_why *why, ho_err *err)
{
    const random_sampler *s = self;
    ho_draw draw = ho_draw_start(s->context->options.seed, number, HO_DRAW_PROPOSE, attempt);

    (void)err;
    for (int p = 0; p < s->context->space->count; p++) {
        config[p] = NAN;
    }
    ho_dim_fill(s->context->space, s->context->dim, &draw, config);
    ho_why_add(why, "random: uniform draw");
    return HO_OK;
}

const ho_sampler_kind ho_kind_random = {
    .name = "random",
    .help = "uniform draws, the baseline",
    .create = random_create,
    .destroy = free,
    .propose = random_propose,
};
