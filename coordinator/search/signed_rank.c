/* SPDX-License-Identifier: Apache-2.0
 * Wilcoxon's signed-rank test. */
#include "coordinator/search/signed_rank.h"

#include <math.h>
#include <stdlib.h>

#include "coordinator/search/gauss.h"

enum { EXACT_MAX = 60 };

static int by_size(const void *a, const void *b)
{
    double x = fabs(*(const double *)a), y = fabs(*(const double *)b);

    return x < y ? -1 : x > y;
}

/* share[s] = probability that the doubled ranks with a + sign sum to s. */
static double exact_tail(const int64_t *doubled, int64_t n, int64_t observed, double *share,
                         int64_t total)
{
    double tail = 0.0;

    for (int64_t s = 0; s <= total; s++) {
        share[s] = s == 0 ? 1.0 : 0.0;
    }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t s = total; s >= 0; s--) {
            share[s] = 0.5 * (share[s] + (s >= doubled[i] ? share[s - doubled[i]] : 0.0));
        }
    }
    for (int64_t s = observed; s <= total; s++) {
        tail += share[s];
    }
    return fmin(tail, 1.0);
}

double ho_signed_rank_p(const double *difference, int64_t n)
{
    double p = NAN, *sorted = malloc((size_t)(n + 1) * sizeof *sorted), *share = NULL;
    int64_t *doubled = malloc((size_t)(n + 1) * sizeof *doubled);
    int64_t kept = 0, total = 0, observed = 0;
    double square = 0.0;

    if (!sorted || !doubled) {
        goto out;
    }
    for (int64_t i = 0; i < n; i++) {
        if (isnan(difference[i])) {
            goto out;
        }
        sorted[i] = difference[i];
    }
    if (n > 0) {
        qsort(sorted, (size_t)n, sizeof *sorted, by_size);
    }
    for (int64_t begin = 0, end; begin < n; begin = end) {
        for (end = begin + 1; end < n && fabs(sorted[end]) == fabs(sorted[begin]); end++) {}
        for (int64_t i = begin; i < end && sorted[begin] != 0.0; i++) {
            int64_t rank = begin + 1 + end; /* twice the mid-rank of begin + 1 ... end */

            doubled[kept++] = rank;
            total += rank;
            observed += sorted[i] > 0.0 ? rank : 0;
            square += (double)rank * (double)rank;
        }
    }
    if (kept == 0) {
        p = 1.0;
    } else if (kept <= EXACT_MAX) {
        if (!(share = malloc((size_t)(total + 1) * sizeof *share))) {
            goto out;
        }
        p = exact_tail(doubled, kept, observed, share, total);
    } else {
        p = ho_gauss_cdf(-((double)observed - 0.5 * (double)total - 0.5) / sqrt(0.25 * square));
    }
out:
    free(sorted);
    free(doubled);
    free(share);
    return p;
}
