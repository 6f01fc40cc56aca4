/* SPDX-License-Identifier: Apache-2.0
 * The Gaussian process behind `gp`. */
#include "coordinator/search/gp_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <lapacke.h>

static const double LEAST_NOISE = 1e-6;
static const double SQRT5 = 2.23606797749978969641;

ho_status ho_gp_init(ho_gp *gp, int columns, const bool *categorical, ho_err *err)
{
    memset(gp, 0, sizeof *gp);
    gp->columns = columns;
    gp->categorical = categorical;
    gp->theta = calloc((size_t)columns + 2, sizeof *gp->theta);
    if (!gp->theta) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for the Gaussian process");
    }
    for (int d = 0; d < columns; d++) {
        gp->theta[d] = 0.0;
    }
    gp->theta[columns] = 0.0;
    gp->theta[columns + 1] = log(1e-2);
    return HO_OK;
}

void ho_gp_free(ho_gp *gp)
{
    free(gp->x);
    free(gp->y);
    free(gp->theta);
    free(gp->chol);
    free(gp->alpha);
    free(gp->work);
    memset(gp, 0, sizeof *gp);
}

ho_status ho_gp_set(ho_gp *gp, const double *x, const double *y, int n, ho_err *err)
{
    size_t d = (size_t)gp->columns;

    if (n > gp->room) {
        size_t room = (size_t)n + (size_t)n / 2 + 16;

        free(gp->x);
        free(gp->y);
        free(gp->chol);
        free(gp->alpha);
        free(gp->work);
        gp->x = malloc(room * (d + 1) * sizeof *gp->x);
        gp->y = malloc(room * sizeof *gp->y);
        gp->chol = malloc(room * room * sizeof *gp->chol);
        gp->alpha = malloc(room * sizeof *gp->alpha);
        gp->work = malloc(2 * room * room * sizeof *gp->work);
        gp->room = gp->x && gp->y && gp->chol && gp->alpha && gp->work ? (int)room : 0;
        if (gp->room == 0) {
            gp->n = 0;
            return ho_err_set(err, HO_ENOMEM, "out of memory for the Gaussian process");
        }
    }
    gp->n = n;
    memcpy(gp->x, x, (size_t)n * d * sizeof *x);
    memcpy(gp->y, y, (size_t)n * sizeof *y);
    return HO_OK;
}

static double column_gap(const ho_gp *gp, int d, const double *a, const double *b)
{
    double gap = a[d] - b[d];

    return gp->categorical[d] ? (gap != 0.0) : gap * gap;
}

static double scaled_square(const ho_gp *gp, const double *a, const double *b)
{
    double sum = 0.0;

    for (int d = 0; d < gp->columns; d++) {
        sum += exp(gp->theta[d]) * column_gap(gp, d, a, b);
    }
    return sum;
}

static double matern(double square)
{
    double r = SQRT5 * sqrt(square);

    return (1.0 + r + r * r / 3.0) * exp(-r);
}

/* d matern / d square = -(5/6) (1 + sqrt(5) r) exp(-sqrt(5) r) */
static double matern_slope(double square)
{
    double r = SQRT5 * sqrt(square);

    return -5.0 / 6.0 * (1.0 + r) * exp(-r);
}

ho_status ho_gp_factor(ho_gp *gp)
{
    int n = gp->n;
    double scale = exp(gp->theta[gp->columns]);
    double noise = exp(gp->theta[gp->columns + 1]) + LEAST_NOISE;

    for (int i = 0; i < n; i++) {
        for (int j = 0; j <= i; j++) {
            gp->chol[i * n + j] =
                scale * matern(scaled_square(gp, &gp->x[i * gp->columns], &gp->x[j * gp->columns]));
        }
        gp->chol[i * n + i] += noise;
    }
    /* row-major lower is column-major upper: no transposition */
    if (LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'U', n, gp->chol, n) != 0) {
        return HO_EINVAL;
    }
    memcpy(gp->alpha, gp->y, (size_t)n * sizeof *gp->alpha);
    return LAPACKE_dpotrs(LAPACK_COL_MAJOR, 'U', n, 1, gp->chol, n, gp->alpha, n) == 0 ? HO_OK
                                                                                       : HO_EINVAL;
}

/* Log posterior at theta and its gradient [D + 2]. -INFINITY where the matrix cannot be factored.
 */
static double posterior(ho_gp *gp, double *gradient)
{
    int n = gp->n, columns = gp->columns;
    double scale = exp(gp->theta[columns]), noise = exp(gp->theta[columns + 1]), value = 0.0;
    double *inverse = gp->work;

    for (int k = 0; k < columns + 2; k++) {
        gradient[k] = 0.0;
    }
    if (ho_gp_factor(gp) != HO_OK) {
        return -INFINITY;
    }
    for (int i = 0; i < n; i++) {
        value -= 0.5 * gp->y[i] * gp->alpha[i] + log(gp->chol[i * n + i]);
    }
    memcpy(inverse, gp->chol, (size_t)n * (size_t)n * sizeof *inverse);
    if (LAPACKE_dpotri(LAPACK_COL_MAJOR, 'U', n, inverse, n) != 0) {
        return -INFINITY;
    }
    for (int i = 0; i < n; i++) { /* gradient: half the trace of (alpha alpha' - K^-1) dK */
        const double *a = &gp->x[i * columns];

        for (int j = 0; j < i; j++) {
            const double *b = &gp->x[j * columns];
            double weight = gp->alpha[i] * gp->alpha[j] - inverse[i * n + j];
            double square = scaled_square(gp, a, b);
            double slope = weight * scale * matern_slope(square);

            gradient[columns] += weight * scale * matern(square);
            for (int d = 0; d < columns; d++) {
                gradient[d] += slope * exp(gp->theta[d]) * column_gap(gp, d, a, b);
            }
        }
        gradient[columns] += 0.5 * (gp->alpha[i] * gp->alpha[i] - inverse[i * n + i]) * scale;
        gradient[columns + 1] += 0.5 * (gp->alpha[i] * gp->alpha[i] - inverse[i * n + i]) * noise;
    }
    for (int d = 0; d < columns; d++) { /* -0.1 / t - 0.1 t */
        double t = exp(gp->theta[d]);

        value -= 0.1 / t + 0.1 * t;
        gradient[d] += 0.1 / t - 0.1 * t;
    }
    value += gp->theta[columns] - scale; /* Gamma(2, 1) */
    gradient[columns] += 1.0 - scale;
    value += 0.1 * gp->theta[columns + 1] - 30.0 * noise; /* Gamma(1.1, 30) */
    gradient[columns + 1] += 0.1 - 30.0 * noise;
    return value;
}

void ho_gp_fit(ho_gp *gp, int steps)
{
    enum { PARTS_MAX = 4 };
    int count = gp->columns + 2;
    double *gradient = malloc((size_t)(count * PARTS_MAX) * sizeof *gradient);
    double *last, *size, *best, best_value = -INFINITY;

    if (!gradient) {
        return;
    } /* theta stays where it is */
    last = gradient + count;
    size = gradient + 2 * count;
    best = gradient + 3 * count;
    for (int k = 0; k < count; k++) {
        last[k] = 0.0;
        size[k] = 0.2;
        best[k] = gp->theta[k];
    }
    for (int step = 0; step < steps; step++) {
        double value = posterior(gp, gradient);

        if (value > best_value) {
            best_value = value;
            memcpy(best, gp->theta, (size_t)count * sizeof *best);
        } else if (isinf(value)) {
            break;
        }
        for (int k = 0; k < count; k++) {
            double turn = gradient[k] * last[k];

            if (turn > 0.0) {
                size[k] = fmin(1.2 * size[k], 1.0);
            }
            if (turn < 0.0) {
                size[k] = fmax(0.5 * size[k], 1e-4);
            }
            last[k] = turn < 0.0 ? 0.0 : gradient[k];
            gp->theta[k] += last[k] > 0.0 ? size[k] : last[k] < 0.0 ? -size[k] : 0.0;
            gp->theta[k] = fmin(fmax(gp->theta[k], -12.0), 9.0);
        }
    }
    memcpy(gp->theta, best, (size_t)count * sizeof *best);
    free(gradient);
}

void ho_gp_predict(const ho_gp *gp, const double *point, double *work, double *mean,
                   double *variance)
{
    int n = gp->n;
    double scale = exp(gp->theta[gp->columns]);

    *mean = 0.0;
    *variance = scale;
    for (int i = 0; i < n; i++) {
        double sum = scale * matern(scaled_square(gp, point, &gp->x[i * gp->columns]));
        const double *row = &gp->chol[i * n];

        *mean += sum * gp->alpha[i];
        for (int j = 0; j < i; j++) {
            sum -= row[j] * work[j];
        } /* L work = k */
        work[i] = sum / row[i];
        *variance -= work[i] * work[i];
    }
    *variance = fmax(*variance, 1e-12);
}
