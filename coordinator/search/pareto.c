/* SPDX-License-Identifier: Apache-2.0
 * Domination and what is built on it. */
#include "coordinator/search/pareto.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double clean(double x)
{
    return isnan(x) ? INFINITY : x;
}

bool ho_pareto_dominates(const double *a, const double *b, int objectives)
{
    bool better = false;

    for (int m = 0; m < objectives; m++) {
        double x = clean(a[m]), y = clean(b[m]);

        if (x > y) {
            return false;
        }
        better = better || x < y;
    }
    return better;
}

typedef struct point {
    const double *loss;
    int objectives;
    int64_t index;
} point;

static int by_loss(const void *a, const void *b)
{
    const point *x = a, *y = b;

    for (int m = 0; m < x->objectives; m++) {
        double p = clean(x->loss[m]), q = clean(y->loss[m]);

        if (p != q) {
            return p < q ? -1 : 1;
        }
    }
    return x->index < y->index ? -1 : 1;
}

static point *sorted_points(const double *loss, int64_t n, int objectives)
{
    point *points = malloc((size_t)(n > 0 ? n : 1) * sizeof *points);

    for (int64_t i = 0; points && i < n; i++) {
        points[i].loss = &loss[i * objectives];
        points[i].objectives = objectives;
        points[i].index = i;
    }
    if (points && n > 1) {
        qsort(points, (size_t)n, sizeof *points, by_loss);
    }
    return points;
}

/* Whether a member of the front (a chain through next) dominates the point; newest first. */
static bool front_dominates(const point *points, const int64_t *next, int64_t head,
                            const double *loss, int objectives)
{
    for (int64_t i = head; i >= 0; i = next[i]) {
        if (ho_pareto_dominates(points[i].loss, loss, objectives)) {
            return true;
        }
    }
    return false;
}

ho_status ho_pareto_rank(const double *loss, int64_t n, int objectives, int *rank)
{
    ho_status rc = HO_ENOMEM;
    point *points = sorted_points(loss, n, objectives);
    size_t room = (size_t)(n > 0 ? n : 1);
    int64_t *next = malloc(room * sizeof *next);
    int64_t *head = malloc(room * sizeof *head);
    int64_t fronts = 0;

    if (!points || !next || !head) {
        goto out;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t low = 0, high = fronts;

        while (low < high) { /* the first front that does not dominate point i */
            int64_t middle = (low + high) / 2;

            if (front_dominates(points, next, head[middle], points[i].loss, objectives)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if (low == fronts) {
            head[fronts++] = -1;
        }
        next[i] = head[low];
        head[low] = i;
        rank[points[i].index] = (int)low;
    }
    rc = HO_OK;
out:
    free(points);
    free(next);
    free(head);
    return rc;
}

ho_status ho_pareto_crowding(const double *loss, int64_t n, int objectives, double *crowding)
{
    double *column = malloc((size_t)(n > 0 ? n : 1) * sizeof *column);

    if (!column) {
        return HO_ENOMEM;
    }
    for (int64_t i = 0; i < n; i++) {
        crowding[i] = 0.0;
    }
    for (int m = 0; m < objectives; m++) {
        point *points;
        double span;

        for (int64_t i = 0; i < n; i++) {
            column[i] = loss[i * objectives + m];
        }
        if (!(points = sorted_points(column, n, 1))) {
            free(column);
            return HO_ENOMEM;
        }
        span = n > 0 ? *points[n - 1].loss - *points[0].loss : 0.0;
        for (int64_t i = 0; i < n; i++) {
            double gap =
                i == 0 || i == n - 1 ? INFINITY : *points[i + 1].loss - *points[i - 1].loss;

            if (isfinite(span) && span > 0.0) {
                crowding[points[i].index] += gap / span;
            } else if (isinf(gap)) {
                crowding[points[i].index] = INFINITY;
            }
        }
        free(points);
    }
    free(column);
    return HO_OK;
}

/* Points sorted by the first objective, all within the reference. */
static double sweep(const point *points, int64_t n, const double *reference)
{
    double volume = 0.0, floor_loss = reference[1];

    for (int64_t i = 0; i < n; i++) {
        if (points[i].loss[1] < floor_loss) {
            volume += (reference[0] - points[i].loss[0]) * (floor_loss - points[i].loss[1]);
            floor_loss = points[i].loss[1];
        }
    }
    return volume;
}

/* Sum over points of the box a point adds to those after it (WFG). points are sorted. */
static double slice(const double *loss, int64_t n, int objectives, const double *reference)
{
    double volume = 0.0;
    point *points = sorted_points(loss, n, objectives);
    double *limited = malloc((size_t)(n * objectives + 1) * sizeof *limited);

    if (!points || !limited) {
        volume = NAN;
        goto out;
    }
    if (objectives == 1) {
        volume = n > 0 ? reference[0] - points[0].loss[0] : 0.0;
    } else if (objectives == 2) {
        volume = sweep(points, n, reference);
    }
    for (int64_t i = 0; i < n && objectives > 2; i++) {
        double box = 1.0;
        int64_t kept = 0;

        for (int m = 0; m < objectives; m++) {
            box *= reference[m] - points[i].loss[m];
        }
        for (int64_t j = i + 1; j < n; j++) { /* what later points share with this box */
            double *to = &limited[kept * objectives];

            for (int m = 0; m < objectives; m++) {
                to[m] = fmax(points[i].loss[m], points[j].loss[m]);
            }
            kept++;
            for (int64_t k = 0; k < kept - 1; k++) {
                const double *other = &limited[k * objectives];

                if (ho_pareto_dominates(other, to, objectives) ||
                    memcmp(other, to, (size_t)objectives * sizeof *to) == 0) {
                    kept--;
                    break;
                }
            }
        }
        volume += box - slice(limited, kept, objectives, reference);
    }
out:
    free(points);
    free(limited);
    return volume;
}

double ho_pareto_hypervolume(const double *loss, int64_t n, int objectives, const double *reference)
{
    double *inside = malloc((size_t)(n * objectives + 1) * sizeof *inside);
    double volume;
    int64_t kept = 0;

    if (!inside) {
        return NAN;
    }
    for (int64_t i = 0; i < n; i++) {
        bool within = true;

        for (int m = 0; m < objectives; m++) {
            within = within && loss[i * objectives + m] < reference[m];
            inside[kept * objectives + m] = loss[i * objectives + m];
        }
        kept += within;
    }
    volume = slice(inside, kept, objectives, reference);
    free(inside);
    return volume;
}
