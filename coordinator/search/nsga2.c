/* SPDX-License-Identifier: Apache-2.0
 * `nsga2` (Deb et al., IEEE TEVC 2002), steady state: the parents are the `population` best of all
 * told trials by non-domination rank, then crowding distance (constrained domination: feasible
 * first, then by violation), so no proposal waits for a generation to close. Binary tournaments,
 * uniform crossover, and mutation of each parameter with probability 1 / P: half of the time a new
 * draw, half of the time a step to a neighbour. */
#include "coordinator/search/kind.h"

#include <math.h>
#include <stdlib.h>

#include "coordinator/search/told_rank.h"

enum { POPULATION = 50 };
static const double SWAP = 0.5;       /* a parameter comes from the second parent */
static const double NEIGHBOUR = 0.05; /* deviation of a small step, on [0, 1] */

typedef struct nsga2_sampler {
    const ho_search_context *context;
    ho_told_rank rank;
    int64_t population;
    double crossover, mutation;
} nsga2_sampler;

static void nsga2_destroy(void *self)
{
    nsga2_sampler *s = self;

    if (!s) {
        return;
    }
    ho_told_rank_free(&s->rank);
    free(s);
}

static ho_status nsga2_create(void **self, const ho_search_context *context, ho_err *err)
{
    const ho_sampler_options *o = &context->options;
    nsga2_sampler *s = calloc(1, sizeof *s);

    *self = s;
    if (!s) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for the NSGA-II sampler");
    }
    s->context = context;
    s->population = o->population >= 0 ? o->population : POPULATION;
    s->crossover = o->crossover;
    s->mutation = o->mutation >= 0.0 ? o->mutation : 1.0 / fmax(context->space->count, 1.0);
    if (s->population < 2) {
        return ho_err_set(err, HO_ECONFIG, "sampler.population: at least 2 for nsga2, not %lld",
                          (long long)s->population);
    }
    return HO_OK;
}

static ho_status nsga2_told(void *self, int64_t row, ho_err *err)
{
    nsga2_sampler *s = self;
    const ho_history *h = s->context->history;

    if (h->row[row].state == HO_TOLD_CANCELLED) {
        return HO_OK;
    }
    return ho_told_rank_insert(&s->rank, h, row, err);
}

/* The better of two of the n parents; rows are ranked, so the smaller place wins. */
static int64_t tournament(const nsga2_sampler *s, int64_t n, ho_draw *draw)
{
    int64_t a = ho_draw_below(draw, n), b = ho_draw_below(draw, n);

    return s->rank.row[a < b ? a : b];
}

static double mutate(const ho_dim *dim, double value, ho_draw *draw)
{
    double width =
        dim->stepped ? fmax(NEIGHBOUR, 1.0 / (double)ho_param_cardinality(dim->param)) : NEIGHBOUR;
    double unit;

    if (dim->choices > 0 || isnan(value) || ho_draw_unit(draw) < 0.5) {
        return ho_dim_random(dim, draw);
    }
    unit = ho_dim_unit(dim, value) + width * ho_draw_normal(draw);
    return ho_dim_from_unit(dim, fmin(fmax(unit, 0.0), 1.0));
}

static ho_status nsga2_propose(void *self, int64_t number, int attempt, double *config, ho_why *why,
                               ho_err *err)
{
    const nsga2_sampler *s = self;
    const ho_search_context *c = s->context;
    ho_draw draw = ho_draw_start(c->options.seed, number, HO_DRAW_PROPOSE, attempt);
    int64_t n = s->rank.scored < s->population ? s->rank.scored : s->population, mother, father;
    int64_t startup = c->options.startup >= 0 ? c->options.startup : s->population;
    const double *a, *b;

    (void)err;
    for (int p = 0; p < c->space->count; p++) {
        config[p] = NAN;
    }
    if (s->rank.count < startup || n < 2) {
        ho_dim_fill(c->space, c->dim, &draw, config);
        ho_why_add(why, "nsga2: random, %lld of the first %lld trials told",
                   (long long)s->rank.count, (long long)startup);
        return HO_OK;
    }
    mother = tournament(s, n, &draw);
    father = ho_draw_unit(&draw) < s->crossover ? tournament(s, n, &draw) : mother;
    a = ho_history_config(c->history, mother);
    b = ho_history_config(c->history, father);
    for (int p = 0; p < c->space->count; p++) {
        const double *from = ho_draw_unit(&draw) < SWAP ? b : a;

        if (!ho_space_active(c->space, config, p)) {
            continue;
        }
        config[p] = isnan(from[p]) ? (isnan(a[p]) ? b[p] : a[p]) : from[p];
        if (ho_draw_unit(&draw) < s->mutation) {
            config[p] = mutate(&c->dim[p], config[p], &draw);
        }
        if (isnan(config[p])) {
            config[p] = ho_dim_random(&c->dim[p], &draw);
        }
    }
    ho_why_add(why, "nsga2: child of trials %lld and %lld, the best %lld of %lld are parents",
               (long long)c->history->row[mother].number, (long long)c->history->row[father].number,
               (long long)n, (long long)s->rank.count);
    return HO_OK;
}

const ho_sampler_kind ho_kind_nsga2 = {
    .name = "nsga2",
    .help = "evolution towards the front of several objectives",
    .create = nsga2_create,
    .destroy = nsga2_destroy,
    .propose = nsga2_propose,
    .told = nsga2_told,
};
