/* SPDX-License-Identifier: Apache-2.0
 * PED-ANOVA and rank correlations. */
#include "coordinator/search/importance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/search/dim.h"

enum { BINS = 32, LEAST_TRIALS = 4 };

typedef struct pair {
    double x;
    int64_t index;
} pair;

static int by_x(const void *a, const void *b)
{
    const pair *p = a, *q = b;

    if (p->x != q->x) {
        return p->x < q->x ? -1 : 1;
    }
    return p->index < q->index ? -1 : p->index > q->index;
}

/* rank [n] of x [n] from 1, ties at their middle. false on lack of memory. */
static bool mid_ranks(const double *x, int64_t n, double *rank)
{
    pair *sorted = malloc((size_t)(n > 0 ? n : 1) * sizeof *sorted);

    if (!sorted) {
        return false;
    }
    for (int64_t i = 0; i < n; i++) {
        sorted[i].x = x[i];
        sorted[i].index = i;
    }
    qsort(sorted, (size_t)n, sizeof *sorted, by_x);
    for (int64_t begin = 0, end; begin < n; begin = end) {
        for (end = begin + 1; end < n && sorted[end].x == sorted[begin].x; end++) {}
        for (int64_t i = begin; i < end; i++) {
            rank[sorted[i].index] = 0.5 * (double)(begin + 1 + end);
        }
    }
    free(sorted);
    return true;
}

double ho_rank_spearman(const double *x, const double *y, int64_t n)
{
    double *rank = malloc((size_t)(2 * n + 1) * sizeof *rank), result = NAN;
    double middle = 0.5 * (double)(n + 1), xy = 0.0, xx = 0.0, yy = 0.0;

    if (!rank || n < 3 || !mid_ranks(x, n, rank) || !mid_ranks(y, n, rank + n)) {
        goto out;
    }
    for (int64_t i = 0; i < n; i++) {
        double a = rank[i] - middle, b = rank[n + i] - middle;

        xy += a * b;
        xx += a * a;
        yy += b * b;
    }
    if (xx > 0.0 && yy > 0.0) {
        result = xy / sqrt(xx * yy);
    }
out:
    free(rank);
    return result;
}

double ho_rank_kendall(const double *x, const double *y, int64_t n)
{
    double balance = 0.0, untied_x = 0.0, untied_y = 0.0;

    if (n < 3) {
        return NAN;
    }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < i; j++) {
            int a = (x[i] > x[j]) - (x[i] < x[j]), b = (y[i] > y[j]) - (y[i] < y[j]);

            balance += a * b;
            untied_x += a != 0;
            untied_y += b != 0;
        }
    }
    return untied_x > 0.0 && untied_y > 0.0 ? balance / sqrt(untied_x * untied_y) : NAN;
}

/* Density over bins of the unit positions x [n]: choices by count, numbers by a normal kernel with
 * Scott's bandwidth; each bin gets one n-th of a uniform trial, so that none is empty. */
static void density(const ho_dim *dim, const double *x, int64_t n, int bins, double *out)
{
    double mean = 0.0, square = 0.0, width, total = 0.0;

    for (int64_t i = 0; i < n; i++) {
        mean += x[i] / (double)n;
    }
    for (int64_t i = 0; i < n; i++) {
        square += (x[i] - mean) * (x[i] - mean) / (double)n;
    }
    width = fmax(1.06 * sqrt(square) * pow((double)n, -0.2), 0.5 / bins);
    for (int b = 0; b < bins; b++) {
        out[b] = 1.0 / bins;
    }
    for (int64_t i = 0; i < n; i++) {
        double sum = 0.0, kernel[BINS];

        if (dim->choices > 0) {
            int b = (int)(x[i] * bins);

            out[b < bins ? b : bins - 1] += 1.0;
            continue;
        }
        for (int b = 0; b < bins; b++) {
            double gap = ((b + 0.5) / bins - x[i]) / width;

            kernel[b] = exp(-0.5 * gap * gap);
            sum += kernel[b];
        }
        for (int b = 0; b < bins; b++) {
            out[b] += kernel[b] / sum;
        }
    }
    for (int b = 0; b < bins; b++) {
        total += out[b];
    }
    for (int b = 0; b < bins; b++) {
        out[b] /= total;
    }
}

/* One parameter: unit positions x [n] and losses [n], n >= LEAST_TRIALS. -1 on lack of memory. */
static double divergence(const ho_dim *dim, const double *x, const double *loss, int64_t n,
                         double good)
{
    int bins = dim->choices > 0 && dim->choices < BINS ? dim->choices : BINS;
    int64_t top = (int64_t)ceil(good * (double)n);
    double best[BINS], all[BINS], sum = 0.0;
    pair *order = malloc((size_t)n * sizeof *order);
    double *chosen = malloc((size_t)n * sizeof *chosen);

    if (!order || !chosen) {
        sum = -1.0;
        goto out;
    }
    for (int64_t i = 0; i < n; i++) {
        order[i].x = loss[i];
        order[i].index = i;
    }
    qsort(order, (size_t)n, sizeof *order, by_x);
    if (top < 2) {
        top = 2;
    }
    while (top < n && order[top].x == order[top - 1].x) {
        top++;
    } /* ties are equally good */
    for (int64_t i = 0; i < top; i++) {
        chosen[i] = x[order[i].index];
    }
    density(dim, chosen, top, bins, best);
    density(dim, x, n, bins, all);
    for (int b = 0; b < bins; b++) {
        double ratio = best[b] / all[b] - 1.0;

        sum += all[b] * ratio * ratio;
    }
    if (top == n) {
        sum = 0.0;
    }
out:
    free(order);
    free(chosen);
    return sum;
}

ho_status ho_importance_compute(const ho_space *space, const double *config, const double *value,
                                int64_t n, int direction, double good, ho_importance *out,
                                ho_err *err)
{
    ho_status rc = HO_ENOMEM;
    double *x = malloc((size_t)(n + 1) * sizeof *x), *loss = malloc((size_t)(n + 1) * sizeof *loss);
    double total = 0.0;

    if (!x || !loss) {
        goto out;
    }
    for (int p = 0; p < space->count; p++) {
        ho_dim dim = ho_dim_of(&space->param[p]);
        int64_t kept = 0;

        memset(&out[p], 0, sizeof out[p]);
        out[p].spearman = out[p].kendall = NAN;
        for (int64_t i = 0; i < n; i++) {
            if (isnan(value[i]) || isnan(config[i * space->count + p])) {
                continue;
            }
            x[kept] = ho_dim_unit(&dim, config[i * space->count + p]);
            loss[kept++] = -direction * value[i];
        }
        out[p].trials = kept;
        if (kept < LEAST_TRIALS) {
            continue;
        }
        if ((out[p].share = divergence(&dim, x, loss, kept, good)) < 0.0) {
            goto out;
        }
        total += out[p].share;
        if (dim.choices > 0) {
            continue;
        }
        out[p].spearman = -ho_rank_spearman(x, loss, kept);
        out[p].kendall = -ho_rank_kendall(x, loss, kept);
    }
    for (int p = 0; p < space->count && total > 0.0; p++) {
        out[p].share /= total;
    }
    rc = HO_OK;
out:
    free(x);
    free(loss);
    return rc == HO_OK ? rc : ho_err_set(err, rc, "out of memory for the importance");
}
