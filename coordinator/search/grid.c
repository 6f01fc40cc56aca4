/* SPDX-License-Identifier: Apache-2.0
 * `grid`: every configuration once, the last parameter fastest; then the space is exhausted. */
#include "coordinator/search/kind.h"

#include <stdlib.h>

#include "coordinator/search/walk.h"

typedef struct grid_sampler {
    const ho_search_context *context;
    ho_walk walk; /* everything before its position has been asked */
} grid_sampler;

static void grid_destroy(void *self)
{
    grid_sampler *s = self;

    if (!s) {
        return;
    }
    ho_walk_free(&s->walk);
    free(s);
}

static ho_status grid_create(void **self, const ho_search_context *context, ho_err *err)
{
    const ho_space *space = context->space;
    grid_sampler *s;

    for (int p = 0; p < space->count; p++) {
        if (ho_param_cardinality(&space->param[p]) == 0) {
            return ho_err_set(err, HO_ECONFIG,
                              "sampler.kind = \"grid\" needs a finite space: give %s a `step`, or "
                              "choose another sampler",
                              space->param[p].name);
        }
    }
    *self = s = calloc(1, sizeof *s);
    if (!s) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for the grid sampler");
    }
    s->context = context;
    return ho_walk_init(&s->walk, space, context->dim, context->options.seed, false, err);
}

static ho_status grid_propose(void *self, int64_t number, int attempt, double *config, ho_why *why,
                              ho_err *err)
{
    grid_sampler *s = self;
    ho_status rc = ho_walk_next_unseen(&s->walk, s->context->history, config, err);

    (void)number;
    (void)attempt;
    if (rc == HO_OK) {
        ho_why_add(why, "grid: the next point in order");
    }
    return rc;
}

static ho_status grid_told(void *self, int64_t row, ho_err *err)
{
    grid_sampler *s = self;

    (void)err;
    if (s->context->history->row[row].state == HO_TOLD_CANCELLED) {
        ho_walk_restart(&s->walk);
    }
    return HO_OK;
}

const ho_sampler_kind ho_kind_grid = {
    .name = "grid",
    .help = "every configuration of a finite space once",
    .create = grid_create,
    .destroy = grid_destroy,
    .propose = grid_propose,
    .told = grid_told,
};
