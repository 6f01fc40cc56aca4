/* SPDX-License-Identifier: Apache-2.0
 * `cmaes`: covariance matrix adaptation (Hansen, arXiv:1604.00772) over the numeric parameters that
 * are always active, on [0, 1]^d. Choices and conditional parameters come from `tpe`, which is told
 * everything too. Told trials are collected whatever generation they come from and make an update
 * when a population is full, each limited in length as an injected solution (Hansen,
 * arXiv:1110.4181), so parallel, enqueued and pruned trials are all used. Steps on a grid get a
 * margin: no coordinate's deviation falls so low that its neighbours cannot be reached (after
 * Hamano et al., GECCO 2022). Restarts with a doubled population (Auger, Hansen 2005) from a random
 * mean. */
#include "coordinator/search/kind.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/search/gauss.h"
#include "coordinator/search/told_rank.h"

enum { POPULATION_CAP = 256, RESAMPLES = 20 };
static const double RESTART_SIGMA = 0.25;
static const double TOLERANCE = 1e-9; /* of the widest deviation, on [0, 1] */
static const double FLAT = 1e-12;     /* spread of losses in a population, relative */

typedef struct cma {
    int d, lambda, mu;
    double weight_sum_square; /* mu_eff is its inverse */
    double sigma;
    double *weight;     /* [lambda] positive for the first mu, 0 after */
    double *mean;       /* [d] */
    double *c;          /* [d, d] covariance */
    double *a;          /* [d, d] its lower Cholesky factor */
    double *path_c;     /* [d] */
    double *path_sigma; /* [d] */
    int64_t updates;
} cma;

typedef struct cmaes_sampler {
    const ho_search_context *context;
    int *param; /* [d] parameters that CMA moves */
    cma cma;
    void *fallback; /* a `tpe`, when there is anything else to propose */
    double *latent; /* [row_room, d] where each row was drawn */
    int64_t row_room;
    int64_t *batch; /* [lambda] told rows waiting for an update */
    int64_t batch_count;
    int restarts;
    double *x, *y, *z; /* [d] scratch */
} cmaes_sampler;

static ho_status no_memory(ho_err *err)
{
    return ho_err_set(err, HO_ENOMEM, "out of memory for the CMA-ES sampler");
}

static void cma_free(cma *m)
{
    free(m->weight);
    free(m->mean);
    free(m->c);
    free(m->a);
    free(m->path_c);
    free(m->path_sigma);
    memset(m, 0, sizeof *m);
}

static void cmaes_destroy(void *self)
{
    cmaes_sampler *s = self;

    if (!s) {
        return;
    }
    ho_kind_tpe.destroy(s->fallback);
    cma_free(&s->cma);
    free(s->param);
    free(s->latent);
    free(s->batch);
    free(s->x);
    free(s->y);
    free(s->z);
    free(s);
}

/* Lower Cholesky factor of c [d, d]; false when it is not positive definite. */
static bool factor(const double *c, int d, double *a)
{
    memset(a, 0, (size_t)d * (size_t)d * sizeof *a);
    for (int i = 0; i < d; i++) {
        for (int j = 0; j <= i; j++) {
            double sum = c[i * d + j];

            for (int k = 0; k < j; k++) {
                sum -= a[i * d + k] * a[j * d + k];
            }
            if (i == j && !(sum > 0.0)) {
                return false;
            }
            a[i * d + j] = i == j ? sqrt(sum) : sum / a[j * d + j];
        }
    }
    return true;
}

/* A population of lambda starts at s->x with the given sigma and a round covariance. */
static ho_status cma_start(cmaes_sampler *s, int d, int lambda, double sigma, ho_err *err)
{
    cma *m = &s->cma;
    size_t n = (size_t)d + 1;
    double total = 0.0;
    int64_t *batch = realloc(s->batch, (size_t)lambda * sizeof *batch);

    if (!batch) {
        return no_memory(err);
    }
    s->batch = batch;
    s->batch_count = 0;
    cma_free(m);
    m->d = d;
    m->lambda = lambda;
    m->mu = lambda / 2;
    m->sigma = sigma;
    m->weight = calloc((size_t)lambda, sizeof *m->weight);
    m->mean = calloc(n, sizeof *m->mean);
    m->c = calloc(n * n, sizeof *m->c);
    m->a = calloc(n * n, sizeof *m->a);
    m->path_c = calloc(n, sizeof *m->path_c);
    m->path_sigma = calloc(n, sizeof *m->path_sigma);
    if (!m->weight || !m->mean || !m->c || !m->a || !m->path_c || !m->path_sigma) {
        return no_memory(err);
    }
    memcpy(m->mean, s->x, (size_t)d * sizeof *m->mean);
    for (int i = 0; i < d; i++) {
        m->c[i * d + i] = m->a[i * d + i] = 1.0;
    }
    for (int i = 0; i < m->mu; i++) {
        m->weight[i] = log(0.5 * lambda + 0.5) - log(i + 1.0);
        total += m->weight[i];
    }
    for (int i = 0; i < m->mu; i++) {
        m->weight[i] /= total;
        m->weight_sum_square += m->weight[i] * m->weight[i];
    }
    return HO_OK;
}

static ho_status cmaes_create(void **self, const ho_search_context *context, ho_err *err)
{
    const ho_space *space = context->space;
    const ho_sampler_options *o = &context->options;
    cmaes_sampler *s = calloc(1, sizeof *s);
    size_t n = (size_t)space->count + 1;
    int d = 0, lambda;

    *self = s;
    if (!s) {
        return no_memory(err);
    }
    s->context = context;
    if (o->objectives > 1) {
        return ho_err_set(err, HO_ECONFIG,
                          "sampler.kind = \"cmaes\" has one objective; take "
                          "\"tpe\" or \"nsga2\"");
    }
    if (!(s->param = calloc(n, sizeof *s->param)) || !(s->x = calloc(n, sizeof *s->x)) ||
        !(s->y = calloc(n, sizeof *s->y)) || !(s->z = calloc(n, sizeof *s->z))) {
        return no_memory(err);
    }
    for (int p = 0; p < space->count; p++) {
        const ho_dim *dim = &context->dim[p];

        if (dim->choices == 0 && space->param[p].when_count == 0 && dim->high > dim->low) {
            s->x[d] = 0.5;
            s->param[d++] = p;
        }
    }
    if (d < space->count) {
        ho_status rc = ho_kind_tpe.create(&s->fallback, context, err);

        if (rc != HO_OK) {
            return rc;
        }
    }
    lambda = o->population >= 0 ? o->population : 4 + (int)(3.0 * log(d > 0 ? d : 1));
    if (lambda < 4) {
        lambda = 4;
    }
    return cma_start(s, d, lambda, o->sigma0, err);
}

/* How much wider than sigma sqrt(C_ii) coordinate i is drawn, so that on a grid the cells beside
 * the mean's own keep a probability of 1 / (lambda d). */
static double margin(const cmaes_sampler *s, int i)
{
    const cma *m = &s->cma;
    const ho_dim *dim = &s->context->dim[s->param[i]];
    double own = m->sigma * sqrt(m->c[i * m->d + i]), least, low, high;

    if (!dim->stepped) {
        return 1.0;
    }
    ho_dim_cell(dim, ho_dim_from_unit(dim, m->mean[i]), &low, &high);
    least = 0.5 * (high - low) / (dim->high - dim->low) /
            ho_gauss_quantile(1.0 - 0.5 / ((double)m->lambda * m->d));
    return fmax(least / own, 1.0);
}

/* Draws a point of [0, 1]^d into s->x: the same for the same state, number and attempt. */
static void draw_point(cmaes_sampler *s, int64_t number, int attempt)
{
    const cma *m = &s->cma;
    ho_draw draw = ho_draw_start(s->context->options.seed, number, HO_DRAW_LATENT, attempt);

    for (int resample = 0; resample <= RESAMPLES; resample++) {
        bool inside = true;

        for (int i = 0; i < m->d; i++) {
            s->z[i] = ho_draw_normal(&draw);
        }
        for (int i = 0; i < m->d; i++) {
            double sum = 0.0;

            for (int j = 0; j <= i; j++) {
                sum += m->a[i * m->d + j] * s->z[j];
            }
            s->x[i] = m->mean[i] + m->sigma * margin(s, i) * sum;
            inside = inside && s->x[i] >= 0.0 && s->x[i] <= 1.0;
        }
        if (inside) {
            return;
        }
    }
    for (int i = 0; i < m->d; i++) {
        s->x[i] = fmin(fmax(s->x[i], 0.0), 1.0);
    }
}

static ho_status cmaes_propose(void *self, int64_t number, int attempt, double *config, ho_why *why,
                               ho_err *err)
{
    cmaes_sampler *s = self;
    const cma *m = &s->cma;
    ho_status rc;

    for (int p = 0; p < s->context->space->count; p++) {
        config[p] = NAN;
    }
    if (s->fallback) {
        ho_why ignored = {.used = 0};

        rc = ho_kind_tpe.propose(s->fallback, number, attempt, config, &ignored, err);
        if (rc != HO_OK) {
            return rc;
        }
    }
    draw_point(s, number, attempt);
    for (int i = 0; i < m->d; i++) {
        config[s->param[i]] = ho_dim_from_unit(&s->context->dim[s->param[i]], s->x[i]);
    }
    ho_why_add(why, "cmaes: population %d, update %lld, restart %d, sigma %.3g, %lld of %d told",
               m->lambda, (long long)m->updates, s->restarts, m->sigma, (long long)s->batch_count,
               m->lambda);
    if (s->fallback) {
        ho_why_add(why, "; %d parameters from tpe", s->context->space->count - m->d);
    }
    return HO_OK;
}

static ho_status cmaes_asked(void *self, int64_t row, ho_err *err)
{
    cmaes_sampler *s = self;
    int d = s->cma.d;
    const double *config = ho_history_config(s->context->history, row);
    int64_t number = s->context->history->row[row].number;
    double *latent;

    if (row >= s->row_room) {
        int64_t room = s->row_room ? s->row_room : 64;

        while (room <= row) {
            room *= 2;
        }
        if (!(latent = realloc(s->latent, (size_t)(room * (d + 1)) * sizeof *latent))) {
            return no_memory(err);
        }
        s->latent = latent;
        s->row_room = room;
    }
    latent = &s->latent[row * d];
    if (number >= 0) {
        draw_point(s, number, 0);
    } /* the state is the one of the ask */
    for (int i = 0; i < d; i++) {
        const ho_dim *dim = &s->context->dim[s->param[i]];
        double value = config[s->param[i]];
        bool own = number >= 0 && dim->stepped && ho_dim_from_unit(dim, s->x[i]) == value;

        latent[i] = own ? s->x[i] : ho_dim_unit(dim, value); /* a grid value hides where in its
                                                                cell the point was */
    }
    return s->fallback ? ho_kind_tpe.asked(s->fallback, row, err) : HO_OK;
}

/* z = A^-1 y by forward substitution. */
static void whiten(const cma *m, const double *y, double *z)
{
    for (int i = 0; i < m->d; i++) {
        double sum = y[i];

        for (int j = 0; j < i; j++) {
            sum -= m->a[i * m->d + j] * z[j];
        }
        z[i] = sum / m->a[i * m->d + i];
    }
}

static double length(const double *x, int n)
{
    double sum = 0.0;

    for (int i = 0; i < n; i++) {
        sum += x[i] * x[i];
    }
    return sqrt(sum);
}

/* The step of a row from the mean in units of sigma, limited in length, into s->y. */
static void step_of(cmaes_sampler *s, int64_t row)
{
    const cma *m = &s->cma;
    double limit = sqrt(m->d) + 2.0 * m->d / (m->d + 2.0), size;

    for (int i = 0; i < m->d; i++) {
        s->y[i] = (s->latent[row * m->d + i] - m->mean[i]) / (m->sigma * margin(s, i));
    }
    whiten(m, s->y, s->z);
    size = length(s->z, m->d);
    for (int i = 0; i < m->d && size > limit; i++) {
        s->y[i] *= limit / size;
    }
}

/* One update from s->batch, best first. arXiv:1604.00772, figure 6, with A^-1 for C^-1/2. */
static void update(cmaes_sampler *s)
{
    cma *m = &s->cma;
    int d = m->d;
    double n = d, mu_eff = 1.0 / m->weight_sum_square;
    double cc = (4.0 + mu_eff / n) / (n + 4.0 + 2.0 * mu_eff / n);
    double cs = (mu_eff + 2.0) / (n + mu_eff + 5.0);
    double c1 = 2.0 / ((n + 1.3) * (n + 1.3) + mu_eff);
    double cmu =
        fmin(1.0 - c1, 2.0 * (mu_eff - 2.0 + 1.0 / mu_eff) / ((n + 2.0) * (n + 2.0) + mu_eff));
    double damp = 1.0 + 2.0 * fmax(0.0, sqrt((mu_eff - 1.0) / (n + 1.0)) - 1.0) + cs;
    double expected = sqrt(n) * (1.0 - 1.0 / (4.0 * n) + 1.0 / (21.0 * n * n));
    double norm, stall;

    for (int i = 0; i < d * d; i++) {
        m->c[i] *= 1.0 - c1 - cmu;
    }
    for (int i = 0; i < d; i++) {
        s->x[i] = 0.0;
    } /* the weighted step */
    for (int k = 0; k < m->mu; k++) {
        step_of(s, s->batch[k]);
        for (int i = 0; i < d; i++) {
            s->x[i] += m->weight[k] * s->y[i];
            for (int j = 0; j < d; j++) {
                m->c[i * d + j] += cmu * m->weight[k] * s->y[i] * s->y[j];
            }
        }
    }
    whiten(m, s->x, s->z);
    for (int i = 0; i < d; i++) {
        m->path_sigma[i] = (1.0 - cs) * m->path_sigma[i] + sqrt(cs * (2.0 - cs) * mu_eff) * s->z[i];
    }
    norm = length(m->path_sigma, d);
    stall = norm / sqrt(1.0 - pow(1.0 - cs, 2.0 * (double)(m->updates + 1))) <
                    (1.4 + 2.0 / (n + 1.0)) * expected
                ? 1.0
                : 0.0;
    for (int i = 0; i < d; i++) {
        m->path_c[i] = (1.0 - cc) * m->path_c[i] + stall * sqrt(cc * (2.0 - cc) * mu_eff) * s->x[i];
        m->mean[i] = fmin(fmax(m->mean[i] + m->sigma * margin(s, i) * s->x[i], 0.0), 1.0);
    }
    for (int i = 0; i < d; i++) {
        for (int j = 0; j < d; j++) {
            m->c[i * d + j] += c1 * m->path_c[i] * m->path_c[j];
        }
    }
    m->sigma = fmin(m->sigma * exp(fmin(cs / damp * (norm / expected - 1.0), 1.0)), 1.0);
    m->updates++;
}

/* Whether this run has nothing left to find. */
static bool spent(const cmaes_sampler *s)
{
    const cma *m = &s->cma;
    const ho_history *h = s->context->history;
    double best = *ho_history_loss(h, s->batch[0]);
    double worst = *ho_history_loss(h, s->batch[m->mu]);
    double widest = 0.0;

    for (int i = 0; i < m->d; i++) {
        widest = fmax(widest, m->sigma * sqrt(m->c[i * m->d + i]));
    }
    return widest < TOLERANCE || (m->updates > 10 && worst - best <= FLAT * fabs(best));
}

static ho_status restart(cmaes_sampler *s, ho_err *err)
{
    ho_draw draw = ho_draw_start(s->context->options.seed, ++s->restarts, HO_DRAW_FIT, 0);
    int d = s->cma.d, lambda = 2 * s->cma.lambda;

    for (int i = 0; i < d; i++) {
        s->x[i] = ho_draw_unit(&draw);
    }
    return cma_start(s, d, lambda < POPULATION_CAP ? lambda : POPULATION_CAP, RESTART_SIGMA, err);
}

static ho_status cmaes_told(void *self, int64_t row, ho_err *err)
{
    cmaes_sampler *s = self;
    const ho_history *h = s->context->history;
    cma *m = &s->cma;
    ho_told_rank order = {.count = 0};
    ho_status rc = HO_OK;

    if (h->row[row].number < 0) { /* a warm start: seen for the first time */
        if ((rc = cmaes_asked(self, row, err)) != HO_OK) {
            return rc;
        }
    }
    if (s->fallback && (rc = ho_kind_tpe.told(s->fallback, row, err)) != HO_OK) {
        return rc;
    }
    if (h->row[row].state == HO_TOLD_CANCELLED || m->d == 0) {
        return HO_OK;
    }
    s->batch[s->batch_count++] = row;
    if (s->batch_count < m->lambda) {
        return HO_OK;
    }
    for (int k = 0; k < m->lambda && rc == HO_OK; k++) {
        rc = ho_told_rank_insert(&order, h, s->batch[k], err);
    }
    if (rc != HO_OK) {
        goto out;
    }
    memcpy(s->batch, order.row, (size_t)m->lambda * sizeof *s->batch);
    s->batch_count = 0;
    if (order.scored > m->mu) {
        update(s);
    } /* else mostly failures: nothing to learn from */
    if (spent(s) || !factor(m->c, m->d, m->a)) {
        rc = restart(s, err);
    }
out:
    ho_told_rank_free(&order);
    return rc;
}

const ho_sampler_kind ho_kind_cmaes = {
    .name = "cmaes",
    .help = "covariance matrix adaptation: smooth numeric spaces, some hundred trials",
    .create = cmaes_create,
    .destroy = cmaes_destroy,
    .propose = cmaes_propose,
    .asked = cmaes_asked,
    .told = cmaes_told,
};
