/* SPDX-License-Identifier: Apache-2.0
 * `gp`: Bayesian optimisation with the Gaussian process of gp_model.h and log expected improvement
 * (Ament et al., NeurIPS 2023). Pending trials are believed to come out at their posterior mean
 * (kriging believer: Ginsbourger et al. 2010). A conditional parameter has a column that says
 * whether it is active; the branch to propose from is voted for (branch.h), and has a model of its
 * own once it has some trials: one model for all, fitted mostly to the branch that leads, sees of
 * the others only how far behind they are, and stays where it is. At most DATA_MAX told trials are
 * modelled: the better half of them by rank, the rest the newest. Pruned trials take the loss of
 * the worst modelled one, infeasible and failed ones a worse loss, as spec/search.md 3.1 item 3
 * orders them. For spaces of up to some 20 parameters and 1,000 trials that each cost minutes. */
#include "coordinator/search/gp_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>

#include "coordinator/search/branch.h"
#include "coordinator/search/gauss.h"
#include "coordinator/search/kind.h"
#include "coordinator/search/told_rank.h"

enum {
    STARTUP = 10,
    DATA_MAX = 300,
    SCOUTS = 512,      /* random points */
    STARTS = 8,        /* of them refined, and as many of the best trials */
    REFINES = 60,      /* tries around each start */
    FIT_STEPS = 40,    /* of the length scales */
    BRANCH_LEAST = 4,  /* told trials before a branch has a model of its own */
    BRANCH_TRIES = 50, /* for a random configuration of a branch */
};

/* The trials of one branch; model 0 has all of them. */
typedef struct gp_model {
    ho_gp gp;
    double *branch;   /* [P] a configuration of it; NULL: all */
    int64_t told;     /* trials */
    int64_t next_fit; /* told trials at which the length scales are fitted again */
} gp_model;

typedef struct gp_sampler {
    const ho_search_context *context;
    gp_model *model; /* [models]; in a space without conditions there is only model 0 */
    int models, model_room;
    gp_model *now;     /* the one in use */
    bool *categorical; /* [D] */
    int columns;       /* D: one a parameter, one more a conditional one */
    int *flag_column;  /* [P] the column that says "active", or -1 */
    bool conditional;  /* some parameter is */
    ho_told_rank rank;
    int64_t startup;
    double *x, *y; /* [DATA_MAX + pending, D], [...] */
    int64_t *row;  /* [...] */
    int room;
    double *point, *config, *start, *scout, *best_config, *work; /* scratch */
    double *branch;         /* [P] a configuration of the branch to propose from */
    double mean, deviation; /* of the losses of the model in use, before they were standardised */
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
    for (int i = 0; i < s->models; i++) {
        ho_gp_free(&s->model[i].gp);
        free(s->model[i].branch);
    }
    free(s->model);
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
    free(s->branch);
    free(s->work);
    free(s);
}

/* Adds a model: of the branch of this configuration [P], or of all (NULL). */
static ho_status add_model(gp_sampler *s, const double *branch, ho_err *err)
{
    size_t bytes = (size_t)s->context->space->count * sizeof *branch;
    gp_model *m;

    if (s->models == s->model_room) {
        int room = s->model_room ? 2 * s->model_room : 4;
        gp_model *bigger = realloc(s->model, (size_t)room * sizeof *bigger);

        if (!bigger) {
            return no_memory(err);
        }
        s->model = bigger;
        s->model_room = room;
    }
    m = &s->model[s->models];
    memset(m, 0, sizeof *m);
    m->next_fit = branch ? BRANCH_LEAST : s->startup;
    if (branch && !(m->branch = malloc(bytes))) {
        return no_memory(err);
    }
    if (branch) {
        memcpy(m->branch, branch, bytes);
    }
    s->models++; /* destroy frees it from here on */
    return ho_gp_init(&m->gp, s->columns, s->categorical, err);
}

/* Whether a configuration is one of the model's. */
static bool belongs(const gp_sampler *s, const gp_model *m, const double *config)
{
    return !m->branch || ho_branch_same(m->branch, config, s->context->space->count);
}

/* The model of the configuration's branch, or NULL. */
static gp_model *model_of(const gp_sampler *s, const double *config)
{
    for (int i = 1; i < s->models; i++) {
        if (belongs(s, &s->model[i], config)) {
            return &s->model[i];
        }
    }
    return NULL;
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
    s->branch = calloc(n, sizeof *s->branch);
    if (!s->categorical || !s->flag_column || !s->point || !s->config || !s->start || !s->scout ||
        !s->best_config || !s->branch) {
        return no_memory(err);
    }
    s->startup = context->options.startup >= 0 ? context->options.startup : STARTUP;
    s->columns = space->count;
    for (int p = 0; p < space->count; p++) {
        s->categorical[p] = space->param[p].kind == HO_PARAM_CHOICE;
        s->flag_column[p] = space->param[p].when_count > 0 ? s->columns++ : -1;
        if (s->flag_column[p] >= 0) {
            s->categorical[s->flag_column[p]] = true;
            s->conditional = true;
        }
    }
    openblas_set_num_threads(1); /* the same bits on any number of cores, and no thread pool */
    return add_model(s, NULL, err);
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

/* The model's rows, oldest first, into s->row: all, or the best half and the newest. */
static int choose_rows(gp_sampler *s)
{
    const ho_told_rank *rank = &s->rank;
    const ho_history *h = s->context->history;
    int most = s->now->told <= DATA_MAX ? DATA_MAX : DATA_MAX / 2, n = 0, best;

    for (int64_t i = 0; i < rank->count && n < most; i++) {
        if (belongs(s, s->now, ho_history_config(h, rank->row[i]))) {
            s->row[n++] = rank->row[i];
        }
    }
    best = n;
    if (most < DATA_MAX) {
        qsort(s->row, (size_t)n, sizeof *s->row, by_row);
        for (int64_t newest = h->count - 1; newest >= 0 && n < DATA_MAX; newest--) {
            ho_told_state state = h->row[newest].state;

            if (state != HO_TOLD_PENDING && state != HO_TOLD_CANCELLED &&
                belongs(s, s->now, ho_history_config(h, newest)) &&
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
    s->mean = mean;
    s->deviation = square > 0.0 ? sqrt(square) : 1.0;
    for (int i = 0; i < n; i++) {
        s->y[i] = (s->y[i] - s->mean) / s->deviation;
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
    return ho_gp_set(&s->now->gp, s->x, s->y, n, err);
}

/* Fits when the data has grown by a tenth: on tells only, so that a resumed study has the same
 * length scales. */
static ho_status fit(gp_sampler *s, gp_model *m, ho_err *err)
{
    double incumbent;
    ho_status rc;

    m->told++;
    if (m->told < m->next_fit || s->columns == 0) {
        return HO_OK;
    }
    m->next_fit = m->told + 1 + m->told / 10;
    s->now = m;
    if ((rc = load_told(s, &incumbent, err)) != HO_OK) {
        return rc;
    }
    ho_gp_fit(&m->gp, FIT_STEPS);
    return HO_OK;
}

static ho_status gp_told(void *self, int64_t row, ho_err *err)
{
    gp_sampler *s = self;
    const double *config = ho_history_config(s->context->history, row);
    ho_status rc;

    if (s->context->history->row[row].state == HO_TOLD_CANCELLED) {
        return HO_OK;
    }
    rc = ho_told_rank_insert(&s->rank, s->context->history, row, err);
    if (rc == HO_OK && s->conditional && !model_of(s, config)) {
        rc = add_model(s, config, err);
    }
    if (rc == HO_OK && s->conditional) {
        rc = fit(s, model_of(s, config), err);
    }
    return rc == HO_OK ? fit(s, &s->model[0], err) : rc;
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
    if (ho_gp_factor(&s->now->gp) != HO_OK) {
        return HO_EINVAL;
    }
    told = n = s->now->gp.n;
    for (int64_t row = h->count - 1; row >= 0 && n - told < h->pending && n < s->room; row--) {
        double variance;

        if (h->row[row].state != HO_TOLD_PENDING ||
            !belongs(s, s->now, ho_history_config(h, row))) {
            continue;
        }
        encode(s, ho_history_config(h, row), &s->x[n * s->columns]);
        ho_gp_predict(&s->now->gp, &s->x[n * s->columns], s->work, &s->y[n], &variance);
        n++;
    }
    if (n == told) {
        return HO_OK;
    }
    if ((rc = ho_gp_set(&s->now->gp, s->x, s->y, n, err)) != HO_OK) {
        return rc;
    }
    return ho_gp_factor(&s->now->gp);
}

/* log EI of a configuration; -INFINITY where it is illegal or of another branch. */
static double acquisition(gp_sampler *s, const double *config, double incumbent)
{
    double mean, variance, deviation;

    if (s->conditional && !ho_branch_same(config, s->branch, s->context->space->count)) {
        return -INFINITY;
    }

    if (s->context->space->require && ho_space_check(s->context->space, config, NULL) != HO_OK) {
        return -INFINITY;
    }
    encode(s, config, s->point);
    ho_gp_predict(&s->now->gp, s->point, s->work, &mean, &variance);
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

static void random_config(const gp_sampler *s, ho_draw *draw, double *config)
{
    for (int p = 0; p < s->context->space->count; p++) {
        config[p] = NAN;
    }
    ho_dim_fill(s->context->space, s->context->dim, draw, config);
}

/* A random configuration of the branch into s->config; of any when the tries are spent. */
static void random_in_branch(gp_sampler *s, ho_draw *draw)
{
    int tries = s->conditional ? BRANCH_TRIES : 1;

    do {
        random_config(s, draw, s->config);
    } while (--tries > 0 && !ho_branch_same(s->config, s->branch, s->context->space->count));
}

/* The best told trials of the branch, into row [STARTS]; how many. */
static int best_of_branch(const gp_sampler *s, int64_t *row)
{
    const ho_history *h = s->context->history;
    int n = 0;

    for (int64_t i = 0; i < s->rank.scored && n < STARTS; i++) {
        if (!s->conditional || ho_branch_same(ho_history_config(h, s->rank.row[i]), s->branch,
                                              s->context->space->count)) {
            row[n++] = s->rank.row[i];
        }
    }
    return n;
}

/* The greatest log EI over the model in use, found from random points and from its best trials; its
 * configuration into s->best_config. -INFINITY: none legal, s->best_config is left. */
static double search(gp_sampler *s, double incumbent, ho_draw *draw)
{
    const ho_search_context *c = s->context;
    size_t bytes = (size_t)c->space->count * sizeof(double);
    double best = -INFINITY;
    int64_t row[STARTS];
    int starts;

    for (int start = 0; start < STARTS; start++) { /* the best of a share of the scouts each */
        double value = -INFINITY;

        for (int i = 0; i < SCOUTS / STARTS; i++) {
            double tried;

            random_in_branch(s, draw);
            tried = acquisition(s, s->config, incumbent);
            if (i == 0 || tried > value) {
                value = tried;
                memcpy(s->scout, s->config, bytes);
            }
        }
        memcpy(s->config, s->scout, bytes);
        refine(s, value, incumbent, &best, draw);
    }
    starts = best_of_branch(s, row);
    for (int start = 0; start < starts; start++) {
        memcpy(s->config, ho_history_config(c->history, row[start]), bytes);
        refine(s, acquisition(s, s->config, incumbent), incumbent, &best, draw);
    }
    return best;
}

/* The least feasible loss of all, on the scale of the model in use: below its median, where that
 * scale is linear. */
static double least_of_all(const gp_sampler *s, double incumbent)
{
    const ho_history *h = s->context->history;
    const ho_row *r = &h->row[s->rank.row[0]];
    double loss = *ho_history_loss(h, s->rank.row[0]);

    if (r->state != HO_TOLD_COMPLETE || r->violation > 0.0 || !isfinite(loss)) {
        return incumbent;
    }
    return fmin(incumbent, (loss - s->mean) / s->deviation);
}

/* The best proposal of every branch that has a model, and of them the one that promises most below
 * the least loss of all. *best: its log EI in the objective's unit; -INFINITY: no branch has one.
 */
static ho_status search_branches(gp_sampler *s, ho_draw *draw, double *config, double *best,
                                 ho_err *err)
{
    size_t bytes = (size_t)s->context->space->count * sizeof *config;
    gp_model *chosen = s->model;

    *best = -INFINITY;
    for (int i = 1; i < s->models; i++) {
        double incumbent, value;
        ho_status rc;

        s->now = &s->model[i];
        if (s->now->told < BRANCH_LEAST) {
            continue;
        }
        memcpy(s->branch, s->now->branch, bytes);
        rc = model(s, &incumbent, err);
        if (rc == HO_EINVAL) {
            continue; /* its kernel matrix is singular */
        }
        if (rc != HO_OK) {
            return rc;
        }
        value = search(s, least_of_all(s, incumbent), draw) + log(s->deviation);
        if (value > *best) {
            *best = value;
            chosen = s->now;
            memcpy(config, s->best_config, bytes);
        }
    }
    s->now = chosen;
    return HO_OK;
}

/* Within the branch of s->branch, by its own model if it has one, below its own least loss. */
static ho_status search_branch(gp_sampler *s, ho_draw *draw, double *config, double *best,
                               ho_err *err)
{
    size_t bytes = (size_t)s->context->space->count * sizeof *config;
    double incumbent;
    ho_status rc;

    s->now = s->conditional ? model_of(s, s->branch) : NULL;
    if (!s->now || s->now->told < BRANCH_LEAST) {
        s->now = s->model;
    }
    if ((rc = model(s, &incumbent, err)) == HO_OK) {
        *best = search(s, incumbent, draw);
        memcpy(config, s->best_config, bytes);
    }
    return rc;
}

static ho_status gp_propose(void *self, int64_t number, int attempt, double *config, ho_why *why,
                            ho_err *err)
{
    gp_sampler *s = self;
    const ho_search_context *c = s->context;
    ho_draw draw = ho_draw_start(c->options.seed, number, HO_DRAW_PROPOSE, attempt);
    double best = -INFINITY;
    int64_t voter = 0;
    ho_status rc = HO_OK;

    random_config(s, &draw, s->best_config);
    memcpy(config, s->best_config, (size_t)c->space->count * sizeof *config);
    if (s->rank.count < s->startup || s->columns == 0) {
        ho_why_add(why, "gp: random, %lld of %lld startup trials told", (long long)s->rank.count,
                   (long long)s->startup);
        return HO_OK;
    }
    if (s->conditional && (voter = ho_branch_vote(&s->rank, &draw)) >= 0) {
        rc = search_branches(s, &draw, config, &best, err);
    } else if (s->conditional) {
        random_config(s, &draw, s->branch);
    }
    if (rc == HO_OK && isinf(best)) {
        rc = search_branch(s, &draw, config, &best, err);
    }
    if (rc == HO_EINVAL) {
        ho_why_add(why, "gp: random, the kernel matrix is singular");
        return HO_OK;
    }
    if (rc != HO_OK) {
        return rc;
    }
    ho_why_add(why, "gp: log expected improvement %.3f over %lld told and %lld pending trials",
               best, (long long)s->now->told, (long long)c->history->pending);
    if (s->conditional) {
        ho_why_add(why, "; %s%s", s->now == s->model ? "all branches" : "its branch alone",
                   voter < 0 ? ", branch drawn at random" : "");
    }
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
