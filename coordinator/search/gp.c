/* SPDX-License-Identifier: Apache-2.0
 * `gp`: Bayesian optimisation with the Gaussian process of gp_model.h and log expected improvement
 * (Ament et al., NeurIPS 2023). Pending trials are believed to come out at their posterior mean
 * (kriging believer: Ginsbourger et al. 2010). A conditional parameter has a column that says
 * whether it is active. At most DATA_MAX told trials are modelled: the better half of them by rank,
 * the rest the newest. Pruned trials take the loss of the worst modelled one, infeasible and
 * failed ones a worse loss, as spec/search.md 3.1 item 3 orders them. For spaces of up to some 20
 * parameters and 1,000 trials that each cost minutes. */
#include "coordinator/search/gp_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>

#include "coordinator/search/gauss.h"
#include "coordinator/search/kind.h"
#include "coordinator/search/told_rank.h"

enum {
    STARTUP = 10,
    DATA_MAX = 300,
    SCOUTS = 512,   /* random points */
    STARTS = 8,     /* of them refined, and as many of the best trials */
    REFINES = 60,   /* tries around each start */
    FIT_STEPS = 40, /* of the length scales */
};

typedef struct gp_sampler {
    const ho_search_context *context;
    ho_gp gp;
    bool *categorical; /* [D] */
    int columns;       /* D: one a parameter, one more a conditional one */
    int *flag_column;  /* [P] the column that says "active", or -1 */
    ho_told_rank rank;
    int64_t startup;
    int64_t next_fit; /* told trials at which the length scales are fitted again */
    double *x, *y;    /* [DATA_MAX + pending, D], [...] */
    int64_t *row;     /* [...] */
    int room;
    double *point, *config, *start, *scout, *best_config, *work; /* scratch */
} gp_sampler;

static ho_status no_memory(ho_err *err)
{
    return ho_err_set(err, HO_ENOMEM, "out of memory for the GP sampler");
}

static void gp_destroy(void *self)
{
    gp_sampler *s = self;

    if (!s) {
        return;
    }
    ho_gp_free(&s->gp);
    ho_told_rank_free(&s->rank);
    free(s->categorical);
    free(s->flag_column);
    free(s->x);
    free(s->y);
    free(s->row);
    free(s->point);
    free(s->config);
    free(s->start);
    free(s->scout);
    free(s->best_config);
    free(s->work);
    free(s);
}

static ho_status gp_create(void **self, const ho_search_context *context, ho_err *err)
{
    const ho_space *space = context->space;
    size_t n = (size_t)space->count + 1;
    gp_sampler *s = calloc(1, sizeof *s);

    *self = s;
    if (!s) {
        return no_memory(err);
    }
    s->context = context;
    if (context->options.objectives > 1) {
        return ho_err_set(err, HO_ECONFIG,
                          "sampler.kind = \"gp\" has one objective; take \"tpe\" "
                          "or \"nsga2\"");
    }
    s->categorical = calloc(2 * n, sizeof *s->categorical);
    s->flag_column = calloc(n, sizeof *s->flag_column);
    s->point = calloc(2 * n, sizeof *s->point);
    s->config = calloc(n, sizeof *s->config);
    s->start = calloc(n, sizeof *s->start);
    s->scout = calloc(n, sizeof *s->scout);
    s->best_config = calloc(n, sizeof *s->best_config);
    if (!s->categorical || !s->flag_column || !s->point || !s->config || !s->start || !s->scout ||
        !s->best_config) {
        return no_memory(err);
    }
    s->startup = s->next_fit = context->options.startup >= 0 ? context->options.startup : STARTUP;
    s->columns = space->count;
    for (int p = 0; p < space->count; p++) {
        s->categorical[p] = space->param[p].kind == HO_PARAM_CHOICE;
        s->flag_column[p] = space->param[p].when_count > 0 ? s->columns++ : -1;
        if (s->flag_column[p] >= 0) {
            s->categorical[s->flag_column[p]] = true;
        }
    }
    openblas_set_num_threads(1); /* the same bits on any number of cores, and no thread pool */
    return ho_gp_init(&s->gp, s->columns, s->categorical, err);
}

static void encode(const gp_sampler *s, const double *config, double *point)
{
    for (int p = 0; p < s->context->space->count; p++) {
        bool active = !isnan(config[p]);

        if (s->flag_column[p] >= 0) {
            point[s->flag_column[p]] = active;
        }
        if (s->context->dim[p].choices > 0) {
            point[p] = active ? config[p] : -1.0;
        } else {
            point[p] = active ? ho_dim_unit(&s->context->dim[p], config[p]) : 0.5;
        }
    }
}

static ho_status data_grow(gp_sampler *s, int n, ho_err *err)
{
    size_t room = (size_t)n + 64, d = (size_t)s->columns + 1;

    if (n <= s->room) {
        return HO_OK;
    }
    free(s->x);
    free(s->y);
    free(s->row);
    free(s->work);
    s->x = malloc(room * d * sizeof *s->x);
    s->y = malloc(room * sizeof *s->y);
    s->row = malloc(room * sizeof *s->row);
    s->work = malloc(room * sizeof *s->work);
    s->room = s->x && s->y && s->row && s->work ? (int)room : 0;
    return s->room > 0 ? HO_OK : no_memory(err);
}

static int by_row(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

/* The rows to model, oldest first, into s->row: all, or the best half and the newest. */
static int choose_rows(gp_sampler *s)
{
    const ho_told_rank *rank = &s->rank;
    int n = 0;

    if (rank->count <= DATA_MAX) {
        memcpy(s->row, rank->row, (size_t)rank->count * sizeof *s->row);
        n = (int)rank->count;
    } else {
        int64_t best = DATA_MAX / 2, newest;

        memcpy(s->row, rank->row, (size_t)best * sizeof *s->row);
        n = (int)best;
        qsort(s->row, (size_t)n, sizeof *s->row, by_row);
        for (newest = s->context->history->count - 1; newest >= 0 && n < DATA_MAX; newest--) {
            ho_told_state state = s->context->history->row[newest].state;

            if (state != HO_TOLD_PENDING && state != HO_TOLD_CANCELLED &&
                !bsearch(&newest, s->row, (size_t)best, sizeof newest, by_row)) {
                s->row[n++] = newest;
            }
        }
    }
    qsort(s->row, (size_t)n, sizeof *s->row, by_row);
    return n;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* What is worse than the median moves closer on a log scale, in units of the better half's spread:
 * a few very bad trials would else flatten everything of interest. Order is kept. work [n]. */
static void compress(double *y, int n, double *work)
{
    double median, spread;

    memcpy(work, y, (size_t)n * sizeof *y);
    qsort(work, (size_t)n, sizeof *work, by_value);
    median = work[n / 2];
    spread = median - work[0];
    for (int i = 0; i < n && spread > 0.0; i++) {
        if (y[i] > median) {
            y[i] = median + spread * log1p((y[i] - median) / spread);
        }
    }
}

/* Losses of the chosen rows into s->y: standardised; rows without a score behind the worst finite
 * complete one. */
static void losses(gp_sampler *s, int n)
{
    const ho_history *h = s->context->history;
    double worst = -INFINITY, best = INFINITY, mean = 0.0, square = 0.0;

    for (int i = 0; i < n; i++) {
        const ho_row *r = &h->row[s->row[i]];
        double loss = *ho_history_loss(h, s->row[i]);
        bool scored = r->state == HO_TOLD_COMPLETE && !(r->violation > 0.0) && isfinite(loss);

        s->y[i] = scored ? loss : loss == -INFINITY ? -INFINITY : NAN;
        if (scored) {
            worst = fmax(worst, loss);
            best = fmin(best, loss);
        }
    }
    for (int i = 0; i < n; i++) {
        const ho_row *r = &h->row[s->row[i]];
        double span = worst - best;

        if (isinf(worst)) { /* nothing was scored */
            s->y[i] = r->violation > 0.0 ? r->violation : r->state == HO_TOLD_FAILED;
        } else if (r->violation > 0.0) {
            s->y[i] = worst + fmin(r->violation, 1.0) * span;
        } else if (r->state == HO_TOLD_FAILED) {
            s->y[i] = worst + span;
        } else if (isnan(s->y[i])) {
            s->y[i] = worst;
        } else if (isinf(s->y[i])) {
            s->y[i] = best;
        }
        if (!isfinite(s->y[i])) {
            s->y[i] = 1.0;
        }
    }
    compress(s->y, n, s->work);
    for (int i = 0; i < n; i++) {
        mean += s->y[i] / n;
    }
    for (int i = 0; i < n; i++) {
        square += (s->y[i] - mean) * (s->y[i] - mean) / n;
    }
    for (int i = 0; i < n; i++) {
        s->y[i] = (s->y[i] - mean) / (square > 0.0 ? sqrt(square) : 1.0);
    }
}

/* Puts the told trials into the model. *incumbent: the least loss among them, standardised. */
static ho_status load_told(gp_sampler *s, double *incumbent, ho_err *err)
{
    const ho_history *h = s->context->history;
    ho_status rc = data_grow(s, DATA_MAX + (int)h->pending + 1, err);
    int n;

    if (rc != HO_OK) {
        return rc;
    }
    n = choose_rows(s);
    losses(s, n);
    *incumbent = INFINITY;
    for (int i = 0; i < n; i++) {
        encode(s, ho_history_config(h, s->row[i]), &s->x[i * s->columns]);
        *incumbent = fmin(*incumbent, s->y[i]);
    }
    return ho_gp_set(&s->gp, s->x, s->y, n, err);
}

/* Fits when the data has grown by a tenth: on tells only, so that a resumed study has the same
 * length scales. */
static ho_status gp_told(void *self, int64_t row, ho_err *err)
{
    gp_sampler *s = self;
    double incumbent;
    ho_status rc;

    if (s->context->history->row[row].state == HO_TOLD_CANCELLED) {
        return HO_OK;
    }
    rc = ho_told_rank_insert(&s->rank, s->context->history, row, err);
    if (rc != HO_OK || s->rank.count < s->next_fit || s->columns == 0) {
        return rc;
    }
    s->next_fit = s->rank.count + 1 + s->rank.count / 10;
    if ((rc = load_told(s, &incumbent, err)) != HO_OK) {
        return rc;
    }
    ho_gp_fit(&s->gp, FIT_STEPS);
    return HO_OK;
}

/* The told trials, then the pending ones at their posterior mean. */
static ho_status model(gp_sampler *s, double *incumbent, ho_err *err)
{
    const ho_history *h = s->context->history;
    int n, told;
    ho_status rc = load_told(s, incumbent, err);

    if (rc != HO_OK) {
        return rc;
    }
    if (ho_gp_factor(&s->gp) != HO_OK) {
        return HO_EINVAL;
    }
    told = n = s->gp.n;
    for (int64_t row = h->count - 1; row >= 0 && n - told < h->pending && n < s->room; row--) {
        double variance;

        if (h->row[row].state != HO_TOLD_PENDING) {
            continue;
        }
        encode(s, ho_history_config(h, row), &s->x[n * s->columns]);
        ho_gp_predict(&s->gp, &s->x[n * s->columns], s->work, &s->y[n], &variance);
        n++;
    }
    if (n == told) {
        return HO_OK;
    }
    if ((rc = ho_gp_set(&s->gp, s->x, s->y, n, err)) != HO_OK) {
        return rc;
    }
    return ho_gp_factor(&s->gp);
}

/* log EI of a configuration; -INFINITY where it is illegal. */
static double acquisition(gp_sampler *s, const double *config, double incumbent)
{
    double mean, variance, deviation;

    if (s->context->space->require && ho_space_check(s->context->space, config, NULL) != HO_OK) {
        return -INFINITY;
    }
    encode(s, config, s->point);
    ho_gp_predict(&s->gp, s->point, s->work, &mean, &variance);
    deviation = sqrt(variance);
    return ho_gauss_log_ei((incumbent - mean) / deviation) + log(deviation);
}

/* Moves one or two parameters of s->config, numbers by about `width`. */
static void nudge(gp_sampler *s, double width, ho_draw *draw)
{
    const ho_search_context *c = s->context;
    int moves = 1 + (int)ho_draw_below(draw, 2);

    for (int m = 0; m < moves; m++) {
        int p = (int)ho_draw_below(draw, c->space->count);
        const ho_dim *dim = &c->dim[p];
        double unit, cell = 0.0;

        if (isnan(s->config[p])) {
            continue;
        }
        if (dim->choices > 0) {
            s->config[p] = (double)ho_draw_below(draw, dim->choices);
            continue;
        }
        if (dim->stepped) {
            cell = 1.0 / (double)ho_param_cardinality(dim->param);
        }
        unit = ho_dim_unit(dim, s->config[p]) + fmax(width, cell) * ho_draw_normal(draw);
        s->config[p] = ho_dim_from_unit(dim, fmin(fmax(unit, 0.0), 1.0));
    }
    ho_space_canonical(c->space, s->config);
    ho_dim_fill(c->space, c->dim, draw, s->config);
}

/* Climbs from s->config by shrinking random steps; leaves the best in s->best_config. */
static void refine(gp_sampler *s, double value, double incumbent, double *best, ho_draw *draw)
{
    size_t bytes = (size_t)s->context->space->count * sizeof(double);
    double width = 0.1, at = value;

    memcpy(s->start, s->config, bytes);
    for (int i = 0; i < REFINES; i++) {
        double tried;

        memcpy(s->config, s->start, bytes);
        nudge(s, width, draw);
        tried = acquisition(s, s->config, incumbent);
        if (tried > at) {
            at = tried;
            memcpy(s->start, s->config, bytes);
        } else {
            width = fmax(0.93 * width, 1e-3);
        }
    }
    if (at > *best) {
        *best = at;
        memcpy(s->best_config, s->start, bytes);
    }
}

static ho_status gp_propose(void *self, int64_t number, int attempt, double *config, ho_why *why,
                            ho_err *err)
{
    gp_sampler *s = self;
    const ho_search_context *c = s->context;
    size_t bytes = (size_t)c->space->count * sizeof(double);
    ho_draw draw = ho_draw_start(c->options.seed, number, HO_DRAW_PROPOSE, attempt);
    double incumbent = 0.0, best = -INFINITY;
    ho_status rc = HO_OK;

    for (int p = 0; p < c->space->count; p++) {
        s->config[p] = s->best_config[p] = NAN;
    }
    ho_dim_fill(c->space, c->dim, &draw, s->best_config);
    if (s->rank.count >= s->startup && s->columns > 0) {
        rc = model(s, &incumbent, err);
    }
    if (rc != HO_OK && rc != HO_EINVAL) {
        return rc;
    }
    memcpy(config, s->best_config, bytes);
    if (rc == HO_EINVAL || s->rank.count < s->startup || s->columns == 0) {
        ho_why_add(why, "gp: random, %lld of %lld startup trials told%s", (long long)s->rank.count,
                   (long long)s->startup, rc == HO_EINVAL ? ", the kernel matrix is singular" : "");
        return HO_OK;
    }
    for (int start = 0; start < STARTS; start++) { /* the best of a share of the scouts each */
        double value = -INFINITY;

        for (int i = 0; i < SCOUTS / STARTS; i++) {
            double tried;

            for (int p = 0; p < c->space->count; p++) {
                s->config[p] = NAN;
            }
            ho_dim_fill(c->space, c->dim, &draw, s->config);
            tried = acquisition(s, s->config, incumbent);
            if (i == 0 || tried > value) {
                value = tried;
                memcpy(s->scout, s->config, bytes);
            }
        }
        memcpy(s->config, s->scout, bytes);
        refine(s, value, incumbent, &best, &draw);
    }
    for (int start = 0; start < STARTS && start < s->rank.scored; start++) {
        memcpy(s->config, ho_history_config(c->history, s->rank.row[start]), bytes);
        refine(s, acquisition(s, s->config, incumbent), incumbent, &best, &draw);
    }
    memcpy(config, s->best_config, bytes);
    ho_why_add(why, "gp: log expected improvement %.3f over %lld told and %lld pending trials",
               best, (long long)s->rank.count, (long long)c->history->pending);
    return HO_OK;
}

const ho_sampler_kind ho_kind_gp = {
    .name = "gp",
    .help = "Gaussian process: few, expensive trials in up to some 20 parameters",
    .create = gp_create,
    .destroy = gp_destroy,
    .propose = gp_propose,
    .told = gp_told,
};
