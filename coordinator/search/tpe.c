/* SPDX-License-Identifier: Apache-2.0
 * `tpe`, the default: tree-structured Parzen estimator (Bergstra et al., NeurIPS 2011). Candidates
 * are drawn from the density l of the good trials; the one with the largest l / g wins, where g is
 * the density of the rest, pending trials among them (constant liar). What differs from the paper,
 * each measured in docs/search.md:
 *   - joint over all parameters, bandwidth by the neighbour rule (spec/search.md 3.1 item 7);
 *   - the best 20 % are good, at most 40, weighted by rank as (log((m + 1/2) / rank))^2;
 *   - kernels may be twice as narrow;
 *   - a choice is explored: softened kernels, and now and then a uniform draw;
 *   - a numeric parameter is sometimes taken from another good trial (crossover);
 *   - a branch (set of active parameters) is drawn first, in proportion to its share of the best
 *     quarter of all trials; then trials of that branch alone are split and modelled.
 *
 * All state follows from the order of asks and tells: sets are updated in `asked` and `told`, and
 * `propose` only reads them, so a resumed study proposes what the unbroken one would have. */
#include "coordinator/search/kind.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/search/branch.h"
#include "coordinator/search/parzen.h"
#include "coordinator/search/told_rank.h"

enum {
    STARTUP = 10,    /* told trials before the model speaks */
    CANDIDATES = 24, /* draws of a proposal */
    CANDIDATES_MAX = 1024,
    GOOD_MAX = 40,    /* kernels of l */
    BRANCH_LEAST = 4, /* told trials before a branch has a model of its own */
    DRAW_TRIES = 50,  /* for a candidate that stays in its branch and meets `require` */
    COST_ROWS = 500,  /* newest finished trials that predict the cost */
};
static const double GOOD_SHARE = 0.2;
static const double SHARPNESS = 2.0;      /* l: narrowest kernel 1 / (2 (K + 1)) */
static const double CHOICE_PRIOR = 6.0;   /* K good trials weigh like K / 6 on a choice */
static const double CHOICE_RANDOM = 0.25; /* share of choices drawn uniformly */
static const double CHOICE_CROSS = 0.1;   /* ... drawn from another kernel than the rest */
static const double NUMERIC_CROSS = 0.3;
static const double COST_WIDTH = 0.2; /* kernel of the cost regression, on [0, 1] */

typedef enum side { SIDE_NONE, SIDE_REST, SIDE_GOOD } side;

/* The trials of one branch; group 0 holds all of them. */
typedef struct group {
    uint64_t *mask; /* [words] bit p: parameter p is active */
    ho_told_rank rank;
    int64_t good_count;
    uint8_t *side; /* [row_room] where each row is in this group */
    ho_parzen good, rest;
} group;

typedef struct tpe_sampler {
    const ho_search_context *context;
    int params, words, candidates;
    int64_t startup;
    bool conditional;
    group *group;
    int group_count, group_room;
    int *row_group; /* [row_room] the branch of each row */
    int64_t row_room;
    uint64_t *mask;               /* [words] scratch */
    double *drawn;                /* [P] scratch */
    double *unit;                 /* [P, candidates] scratch */
    double *log_good, *log_rest;  /* [candidates] scratch */
    int64_t *origin;              /* [candidates] scratch: row of the kernel, -1 the prior */
    double weight[GOOD_MAX];      /* by slot of l */
    double rank_weight[GOOD_MAX]; /* by rank */
} tpe_sampler;

static ho_status no_memory(ho_err *err)
{
    return ho_err_set(err, HO_ENOMEM, "out of memory for the TPE sampler");
}

static void mask_of(const tpe_sampler *s, const double *config, uint64_t *mask)
{
    memset(mask, 0, (size_t)s->words * sizeof *mask);
    for (int p = 0; p < s->params; p++) {
        if (!isnan(config[p])) {
            mask[p / 64] |= 1ull << (p % 64);
        }
    }
}

static bool same_mask(const tpe_sampler *s, const uint64_t *a, const uint64_t *b)
{
    return memcmp(a, b, (size_t)s->words * sizeof *a) == 0;
}

/* The branch of a configuration, or -1. */
static int find_group(const tpe_sampler *s, const uint64_t *mask)
{
    for (int g = 1; g < s->group_count; g++) {
        if (same_mask(s, s->group[g].mask, mask)) {
            return g;
        }
    }
    return -1;
}

static ho_status add_group(tpe_sampler *s, const uint64_t *mask, int *out, ho_err *err)
{
    ho_status rc;
    group *g;

    if (s->group_count == s->group_room) {
        int room = s->group_room ? 2 * s->group_room : 4;
        group *grown = realloc(s->group, (size_t)room * sizeof *grown);

        if (!grown) {
            return no_memory(err);
        }
        s->group = grown;
        s->group_room = room;
    }
    *out = s->group_count++;
    g = &s->group[*out];
    memset(g, 0, sizeof *g);
    if (!(g->mask = malloc((size_t)s->words * sizeof *mask))) {
        return no_memory(err);
    }
    memcpy(g->mask, mask, (size_t)s->words * sizeof *mask);
    if (s->row_room > 0 && !(g->side = calloc((size_t)s->row_room, 1))) {
        return no_memory(err);
    }
    rc = ho_parzen_init(&g->good, s->params, s->context->dim, SHARPNESS, CHOICE_PRIOR, err);
    if (rc != HO_OK) {
        return rc;
    }
    return ho_parzen_init(&g->rest, s->params, s->context->dim, 1.0, CHOICE_PRIOR, err);
}

static void tpe_destroy(void *self)
{
    tpe_sampler *s = self;

    if (!s) {
        return;
    }
    for (int g = 0; g < s->group_count; g++) {
        free(s->group[g].mask);
        free(s->group[g].side);
        ho_told_rank_free(&s->group[g].rank);
        ho_parzen_free(&s->group[g].good);
        ho_parzen_free(&s->group[g].rest);
    }
    free(s->group);
    free(s->row_group);
    free(s->mask);
    free(s->drawn);
    free(s->unit);
    free(s->log_good);
    free(s->log_rest);
    free(s->origin);
    free(s);
}

static ho_status tpe_create(void **self, const ho_search_context *context, ho_err *err)
{
    const ho_sampler_options *o = &context->options;
    tpe_sampler *s = calloc(1, sizeof *s);
    int all;

    *self = s;
    if (!s) {
        return no_memory(err);
    }
    s->context = context;
    s->params = context->space->count;
    s->words = s->params / 64 + 1;
    s->startup = o->startup >= 0 ? o->startup : STARTUP;
    s->candidates = o->candidates >= 0 ? o->candidates : CANDIDATES;
    if (s->candidates < 1 || s->candidates > CANDIDATES_MAX) {
        return ho_err_set(err, HO_ECONFIG, "sampler.candidates: 1 to %d, not %d", CANDIDATES_MAX,
                          s->candidates);
    }
    for (int p = 0; p < s->params; p++) {
        s->conditional = s->conditional || context->space->param[p].when_count > 0;
    }
    s->mask = calloc((size_t)s->words, sizeof *s->mask);
    s->drawn = calloc((size_t)s->params + 1, sizeof *s->drawn);
    s->unit = calloc((size_t)(s->params + 1) * (size_t)s->candidates, sizeof *s->unit);
    s->log_good = calloc((size_t)s->candidates, sizeof *s->log_good);
    s->log_rest = calloc((size_t)s->candidates, sizeof *s->log_rest);
    s->origin = calloc((size_t)s->candidates, sizeof *s->origin);
    if (!s->mask || !s->drawn || !s->unit || !s->log_good || !s->log_rest || !s->origin) {
        return no_memory(err);
    }
    return add_group(s, s->mask, &all, err);
}

/* Moves a row of a group to a side. */
static ho_status place(const tpe_sampler *s, group *g, int64_t row, side to, ho_err *err)
{
    const double *config = ho_history_config(s->context->history, row);
    side from = (side)g->side[row];

    if (from == to) {
        return HO_OK;
    }
    if (from == SIDE_REST) {
        ho_parzen_remove(&g->rest, row);
    }
    if (from == SIDE_GOOD) {
        ho_parzen_remove(&g->good, row);
    }
    g->side[row] = (uint8_t)to;
    if (to == SIDE_NONE) {
        return HO_OK;
    }
    return ho_parzen_add(to == SIDE_GOOD ? &g->good : &g->rest, row, config, err);
}

static ho_status rows_grow(tpe_sampler *s, int64_t row, ho_err *err)
{
    int64_t room = s->row_room ? s->row_room : 64;
    int *row_group;

    if (row < s->row_room) {
        return HO_OK;
    }
    while (room <= row) {
        room *= 2;
    }
    if (!(row_group = realloc(s->row_group, (size_t)room * sizeof *row_group))) {
        return no_memory(err);
    }
    s->row_group = row_group;
    for (int g = 0; g < s->group_count; g++) {
        uint8_t *grown = realloc(s->group[g].side, (size_t)room);

        if (!grown) {
            return no_memory(err);
        }
        memset(grown + s->row_room, SIDE_NONE, (size_t)(room - s->row_room));
        s->group[g].side = grown;
    }
    s->row_room = room;
    return HO_OK;
}

static ho_status tpe_asked(void *self, int64_t row, ho_err *err)
{
    tpe_sampler *s = self;
    ho_status rc;
    int g = 0;

    if ((rc = rows_grow(s, row, err)) != HO_OK) {
        return rc;
    }
    if (s->conditional) {
        mask_of(s, ho_history_config(s->context->history, row), s->mask);
        g = find_group(s, s->mask);
        if (g < 0 && (rc = add_group(s, s->mask, &g, err)) != HO_OK) {
            return rc;
        }
        if ((rc = place(s, &s->group[g], row, SIDE_REST, err)) != HO_OK) {
            return rc;
        }
    }
    s->row_group[row] = g;
    return place(s, &s->group[0], row, SIDE_REST, err);
}

/* Ranks a told row within a group and moves what crosses the border between good and rest. */
static ho_status settle(const tpe_sampler *s, group *g, int64_t row, ho_err *err)
{
    int64_t good, until;
    ho_status rc = ho_told_rank_insert(&g->rank, s->context->history, row, err);

    if (rc != HO_OK) {
        return rc;
    }
    good = (int64_t)ceil(GOOD_SHARE * (double)g->rank.scored);
    if (good > GOOD_MAX) {
        good = GOOD_MAX;
    }
    /* one objective: only ranks up to the old border can have moved */
    until = s->context->history->objectives > 1 ? g->rank.count : good + 1;
    if (until > g->rank.count) {
        until = g->rank.count;
    }
    g->good_count = good;
    for (int64_t i = until - 1; i >= 0; i--) { /* from the worst, so that l never exceeds its cap */
        rc = place(s, g, g->rank.row[i], i < good ? SIDE_GOOD : SIDE_REST, err);
        if (rc != HO_OK) {
            return rc;
        }
    }
    return HO_OK;
}

static ho_status tpe_told(void *self, int64_t row, ho_err *err)
{
    tpe_sampler *s = self;
    const ho_row *r = &s->context->history->row[row];
    ho_status rc;

    if (r->number < 0 && (rc = tpe_asked(self, row, err)) != HO_OK) {
        return rc;
    }
    for (int pass = 0; pass < (s->conditional ? 2 : 1); pass++) {
        group *g = &s->group[pass == 0 ? 0 : s->row_group[row]];

        rc = r->state == HO_TOLD_CANCELLED ? place(s, g, row, SIDE_NONE, err)
                                           : settle(s, g, row, err);
        if (rc != HO_OK) {
            return rc;
        }
    }
    return HO_OK;
}

/* A slot of l by rank weight, or -1 for the prior, which weighs as much as the average kernel. */
static int64_t draw_kernel(const tpe_sampler *s, const group *g, ho_draw *draw)
{
    double u = ho_draw_unit(draw) * ((double)g->good.count + 1.0);

    for (int64_t k = 0; k < g->good.count; k++) {
        if (u < s->weight[k]) {
            return k;
        }
        u -= s->weight[k];
    }
    return -1;
}

/* Brings both densities up to date; the weights of l sum to its count. */
static void refresh(tpe_sampler *s, group *g)
{
    double total = 0.0, middle = (double)g->good_count + 0.5;

    for (int64_t i = 0; i < g->good_count; i++) {
        double x = log(middle / (double)(i + 1));

        s->rank_weight[i] = x * x;
        total += s->rank_weight[i];
    }
    for (int64_t i = 0; i < g->good_count; i++) {
        int64_t slot = 0;

        while (g->good.row[slot] != g->rank.row[i]) {
            slot++;
        }
        s->weight[slot] = s->rank_weight[i] * (double)g->good_count / total;
    }
    ho_parzen_refresh(&g->good, s->weight);
    ho_parzen_refresh(&g->rest, NULL);
}

static void random_config(const tpe_sampler *s, ho_draw *draw, double *config)
{
    for (int p = 0; p < s->params; p++) {
        config[p] = NAN;
    }
    ho_dim_fill(s->context->space, s->context->dim, draw, config);
}

/* Draws the branch to work in. Leaves its mask in s->mask. Returns the group that models it. */
static group *draw_branch(tpe_sampler *s, ho_draw *draw)
{
    int64_t voter = ho_branch_vote(&s->group[0].rank, draw);
    int g;

    if (!s->conditional) {
        return &s->group[0];
    }
    if (voter >= 0) {
        g = s->row_group[voter];
        memcpy(s->mask, s->group[g].mask, (size_t)s->words * sizeof *s->mask);
    } else {
        random_config(s, draw, s->drawn);
        mask_of(s, s->drawn, s->mask);
        g = find_group(s, s->mask);
    }
    return g > 0 && s->group[g].rank.count >= BRANCH_LEAST ? &s->group[g] : &s->group[0];
}

/* One parameter of a candidate whose kernel is `slot`. */
static double draw_param(const tpe_sampler *s, const group *g, int p, int64_t slot, ho_draw *draw)
{
    const ho_dim *dim = &s->context->dim[p];
    double u = ho_draw_unit(draw);

    if (dim->choices > 0 && u < CHOICE_RANDOM) {
        return (double)ho_draw_below(draw, dim->choices);
    }
    if (dim->choices > 0 ? u < CHOICE_RANDOM + CHOICE_CROSS : u < NUMERIC_CROSS) {
        slot = draw_kernel(s, g, draw);
    }
    u = ho_parzen_draw(&g->good, p, slot, draw);
    return dim->choices > 0 ? u : ho_dim_from_unit(dim, u);
}

/* Draws a legal candidate of the branch into s->drawn; false when the tries are spent. */
static bool draw_candidate(tpe_sampler *s, const group *g, int64_t slot, ho_draw *draw)
{
    const ho_space *space = s->context->space;
    uint64_t bits;

    for (int attempt = 0; attempt < DRAW_TRIES; attempt++) {
        bool same = true;

        for (int p = 0; p < s->params; p++) {
            bool active = ho_space_active(space, s->drawn, p);

            bits = s->mask[p / 64] >> (p % 64) & 1;
            s->drawn[p] = active ? draw_param(s, g, p, slot, draw) : NAN;
            if (s->conditional && active != (bits == 1)) {
                same = false;
                break;
            }
        }
        if (same && (!space->require || ho_space_check(space, s->drawn, NULL) == HO_OK)) {
            return true;
        }
    }
    return false;
}

/* log of the seconds a candidate is expected to take, relative to the mean of the log: kernel
 * regression (Nadaraya 1964) over the newest finished trials, shrunk to the mean by one trial. */
static double log_cost(const tpe_sampler *s, int candidate)
{
    const ho_history *h = s->context->history;
    double sum = 0.0, weights = 1.0, mean = 0.0;
    int64_t used = 0;

    for (int64_t row = h->count - 1; row >= 0 && used < COST_ROWS; row--) {
        if (h->row[row].seconds > 0.0) {
            mean += log(h->row[row].seconds);
            used++;
        }
    }
    if (used == 0) {
        return 0.0;
    }
    mean /= (double)used;
    for (int64_t row = h->count - 1, left = used; row >= 0 && left > 0; row--) {
        const double *config = ho_history_config(h, row);
        double square = 0.0, weight;

        if (!(h->row[row].seconds > 0.0)) {
            continue;
        }
        left--;
        for (int p = 0; p < s->params; p++) {
            const ho_dim *dim = &s->context->dim[p];
            double x = s->unit[p * s->candidates + candidate];

            if (isnan(x) != isnan(config[p])) {
                square += 4.0;
            } else if (!isnan(x) && dim->choices > 0) {
                square += x == config[p] ? 0.0 : 4.0;
            } else if (!isnan(x)) {
                double gap = (x - ho_dim_unit(dim, config[p])) / COST_WIDTH;

                square += gap * gap;
            }
        }
        weight = exp(-0.5 * square);
        sum += weight * (log(h->row[row].seconds) - mean);
        weights += weight;
    }
    return sum / weights;
}

/* The acquisition: log l / g; with costs, log of expected improvement (Bergstra et al. eq. 8, up to
 * a constant) per expected second. */
static double score(const tpe_sampler *s, int k)
{
    double ratio = s->log_good[k] - s->log_rest[k];

    if (!s->context->options.cost) {
        return ratio;
    }
    return -log(GOOD_SHARE + (1.0 - GOOD_SHARE) * exp(-ratio)) - log_cost(s, k);
}

/* Draws the candidates into unit, log densities and origins. Returns how many. */
static int draw_candidates(tpe_sampler *s, const group *g, ho_draw *draw)
{
    const ho_dim *dim = s->context->dim;
    int count = 0;

    for (int k = 0; k < s->candidates; k++) {
        int64_t slot = draw_kernel(s, g, draw);

        if (!draw_candidate(s, g, slot, draw)) {
            continue;
        }
        for (int p = 0; p < s->params; p++) {
            s->unit[p * s->candidates + count] =
                dim[p].choices > 0 ? s->drawn[p] : ho_dim_unit(&dim[p], s->drawn[p]);
        }
        s->origin[count++] = slot < 0 ? -1 : g->good.row[slot];
    }
    ho_parzen_log_density(&g->good, s->unit, s->candidates, count, s->log_good);
    ho_parzen_log_density(&g->rest, s->unit, s->candidates, count, s->log_rest);
    return count;
}

/* A random configuration of the branch in s->mask, or of any when tries are spent. */
static void random_in_branch(tpe_sampler *s, ho_draw *draw, double *config)
{
    const ho_space *space = s->context->space;

    for (int attempt = 0; attempt < 20 * DRAW_TRIES; attempt++) {
        bool same = true;

        random_config(s, draw, config);
        for (int p = 0; p < s->params && s->conditional; p++) {
            same = same && isnan(config[p]) == !(s->mask[p / 64] >> (p % 64) & 1);
        }
        if (same && (!space->require || ho_space_check(space, config, NULL) == HO_OK)) {
            return;
        }
    }
}

static void explain(const tpe_sampler *s, const group *g, int best, int count, ho_why *why)
{
    const ho_history *h = s->context->history;
    double second = -INFINITY;

    for (int k = 0; k < count; k++) {
        if (k != best && score(s, k) > second) {
            second = score(s, k);
        }
    }
    ho_why_add(why, "tpe: best of %d candidates, log l/g %.3f", count,
               s->log_good[best] - s->log_rest[best]);
    if (s->context->options.cost) {
        ho_why_add(why, ", log cost %+.2f, score %.3f", log_cost(s, best), score(s, best));
    }
    if (count > 1) {
        ho_why_add(why, " (next %.3f)", second);
    }
    if (s->origin[best] < 0) {
        ho_why_add(why, ", drawn from the prior");
    } else if (h->row[s->origin[best]].number < 0) {
        ho_why_add(why, ", drawn near a warm start");
    } else {
        ho_why_add(why, ", drawn near trial %lld", (long long)h->row[s->origin[best]].number);
    }
    ho_why_add(why, "; %lld good of %lld told, %lld pending", (long long)g->good_count,
               (long long)g->rank.count, (long long)h->pending);
    if (s->conditional) {
        ho_why_add(why, "; %s", g == s->group ? "all branches" : "its branch alone");
    }
}

static ho_status tpe_propose(void *self, int64_t number, int attempt, double *config, ho_why *why,
                             ho_err *err)
{
    tpe_sampler *s = self;
    const ho_search_context *c = s->context;
    ho_draw draw = ho_draw_start(c->options.seed, number, HO_DRAW_PROPOSE, attempt);
    int count, best = 0;
    group *g;

    (void)err;
    if (s->group[0].rank.count < s->startup) {
        random_config(s, &draw, config);
        ho_why_add(why, "tpe: random, %lld of %lld startup trials told",
                   (long long)s->group[0].rank.count, (long long)s->startup);
        return HO_OK;
    }
    g = draw_branch(s, &draw);
    refresh(s, g);
    count = draw_candidates(s, g, &draw);
    if (count == 0) {
        random_in_branch(s, &draw, config);
        ho_why_add(why, "tpe: random within a branch that has no trials to learn from");
        return HO_OK;
    }
    for (int k = 1; k < count; k++) {
        if (score(s, k) > score(s, best)) {
            best = k;
        }
    }
    for (int p = 0; p < s->params; p++) {
        double x = s->unit[p * s->candidates + best];

        config[p] = isnan(x) || c->dim[p].choices > 0 ? x : ho_dim_from_unit(&c->dim[p], x);
    }
    explain(s, g, best, count, why);
    return HO_OK;
}

const ho_sampler_kind ho_kind_tpe = {
    .name = "tpe",
    .help = "tree-structured Parzen estimator, the default: any space, noise, several objectives",
    .create = tpe_create,
    .destroy = tpe_destroy,
    .propose = tpe_propose,
    .asked = tpe_asked,
    .told = tpe_told,
};
