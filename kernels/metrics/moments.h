/* SPDX-License-Identifier: Apache-2.0
 * Running mean and variance, compensated sums. The order of the additions is the order of the
 * calls, so a result does not depend on threads. */
#ifndef HO_KERNELS_METRICS_MOMENTS_H
#define HO_KERNELS_METRICS_MOMENTS_H

#include <math.h>
#include <stdint.h>

#include "kernels/hd.h"

/* Welford (1962). Start from all zeros. */
typedef struct ho_moments {
    int64_t n;
    double mean;
    double m2; /* sum of squared distances from the mean */
} ho_moments;

static inline HO_HD void ho_moments_add(ho_moments *m, double x)
{
    double delta = x - m->mean;
    m->n++;
    m->mean += ho_quotient(delta, (double)m->n);
    m->m2 += delta * (x - m->mean);
}

/* Chan, Golub and LeVeque (1979). */
static inline HO_HD void ho_moments_merge(ho_moments *into, const ho_moments *from)
{
    if (from->n > 0) {
        int64_t n = into->n + from->n;
        double delta = from->mean - into->mean;
        into->mean += delta * (double)from->n / (double)n;
        into->m2 += from->m2 + delta * delta * (double)into->n * (double)from->n / (double)n;
        into->n = n;
    }
}

/* Deviation with ddof 1; n >= 2. */
static inline HO_HD double ho_moments_deviation(const ho_moments *m)
{
    return sqrt(m->m2 / (double)(m->n - 1));
}

/* Neumaier (1974): the sum is sum + lost. Start from all zeros. */
typedef struct ho_sum {
    double sum, lost;
} ho_sum;

static inline HO_HD void ho_sum_add(ho_sum *s, double x)
{
    double t = s->sum + x;
    s->lost += fabs(s->sum) >= fabs(x) ? (s->sum - t) + x : (x - t) + s->sum;
    s->sum = t;
}

static inline HO_HD double ho_sum_value(const ho_sum *s)
{
    return s->sum + s->lost;
}

#endif
