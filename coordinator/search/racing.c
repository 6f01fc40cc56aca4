/* SPDX-License-Identifier: Apache-2.0
 * Racing and retesting. */
#include "coordinator/search/racing.h"

#include <math.h>
#include <stdlib.h>

#include "coordinator/search/draw.h"
#include "coordinator/search/signed_rank.h"

void ho_race_order(uint64_t seed, int folds, int *order)
{
    ho_draw draw = ho_draw_start(seed, 0, HO_DRAW_RACE, 0);

    for (int i = 0; i < folds; i++) {
        order[i] = i;
    }
    for (int i = folds - 1; i > 0; i--) { /* Fisher and Yates */
        int j = (int)ho_draw_below(&draw, i + 1), kept = order[i];

        order[i] = order[j];
        order[j] = kept;
    }
}

int ho_race_first(double p, int folds)
{
    int n = 1;

    while (n < folds && !(ldexp(1.0, -n) < p)) {
        n++;
    }
    return n;
}

ho_race_verdict ho_race_decide(const double *own, const double *best, int folds, int direction,
                               double p)
{
    ho_race_verdict verdict = {.p = NAN, .mean_gap = NAN};
    double *worse = malloc((size_t)(folds > 0 ? folds : 1) * sizeof *worse), sum = 0.0;

    for (int f = 0; worse && f < folds; f++) {
        if (isnan(own[f]) || isnan(best[f])) {
            continue;
        }
        worse[verdict.common] = direction * (best[f] - own[f]);
        sum += worse[verdict.common++];
    }
    if (verdict.common > 0 && isfinite(sum)) {
        verdict.p = ho_signed_rank_p(worse, verdict.common);
        verdict.mean_gap = -direction * sum / verdict.common;
        verdict.drop = verdict.p < p && sum > 0.0;
    }
    free(worse);
    return verdict;
}

int ho_retest_pick(const double *value, int64_t n, int direction, int k, int64_t *chosen)
{
    int count = 0;

    for (int64_t i = 0; i < n; i++) {
        int place = count;

        if (isnan(value[i])) {
            continue;
        }
        while (place > 0 && direction * value[i] > direction * value[chosen[place - 1]]) {
            place--;
        }
        if (place >= k) {
            continue;
        }
        for (int j = count < k ? count : k - 1; j > place; j--) {
            chosen[j] = chosen[j - 1];
        }
        chosen[place] = i;
        count += count < k;
    }
    return count;
}

ho_retest ho_retest_judge(const double *first, const double *fresh, int k, int replicates,
                          int direction)
{
    ho_retest out = {.winner = -1, .deviation = NAN};
    double best = -INFINITY, square = 0.0;
    int scored = 0, freedom = 0;

    for (int i = 0; i < k; i++) {
        const double *x = &fresh[i * replicates];
        double mean = 0.0;
        int n = 0;

        for (int r = 0; r < replicates; r++) {
            if (isnan(x[r])) {
                continue;
            }
            mean += x[r];
            n++;
        }
        if (n == 0) {
            continue;
        }
        mean /= n;
        for (int r = 0; r < replicates; r++) {
            if (!isnan(x[r])) {
                square += (x[r] - mean) * (x[r] - mean);
            }
        }
        freedom += n - 1;
        scored++;
        out.first += first[i];
        out.fresh += mean;
        if (out.winner < 0 || direction * mean > best) {
            best = direction * mean;
            out.winner = i;
        }
    }
    if (scored > 0) {
        out.first /= scored;
        out.fresh /= scored;
        out.shrinkage = direction * (out.first - out.fresh);
    }
    if (freedom > 0) {
        out.deviation = sqrt(square / freedom);
    }
    return out;
}
