/* SPDX-License-Identifier: Apache-2.0
 * Racing over folds, and the retest of the best. Pure functions that dispatch calls; they hold no
 * state and draw only from the study's seed.
 *
 * Racing: a trial's folds are run in one shuffled order for the whole study, a few first. After
 * each fold the signed-rank test against the best complete trial, on the folds both have, decides
 * whether the rest is worth running (F-race: Birattari et al. 2002; test: Wilcoxon 1945).
 * Retest: the best of many noisy values is partly luck (the winner's curse; optuna 433). The K best
 * run again with fresh seeds, and only the fresh values rank them. */
#ifndef HO_COORDINATOR_SEARCH_RACING_H
#define HO_COORDINATOR_SEARCH_RACING_H

#include <stdbool.h>
#include <stdint.h>

#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* order [folds] becomes the folds in the order all trials of the study run them. */
void ho_race_order(uint64_t seed, int folds, int *order);

/* How many folds a trial runs before the first verdict: the least n with 2^-n < p, since the test
 * cannot speak earlier, and at most `folds`. */
int ho_race_first(double p, int folds);

typedef struct ho_race_verdict {
    bool drop;       /* the remaining folds are not worth running */
    int common;      /* folds compared */
    double p;        /* of "not worse than the best"; NaN when nothing was compared */
    double mean_gap; /* own minus best in the user's direction, on the common folds */
} ho_race_verdict;

/* own, best [folds]: values by fold, NaN where not run. direction as in ho_sampler_options. An
 * infinite value on a common fold never drops a trial. */
ho_race_verdict ho_race_decide(const double *own, const double *best, int folds, int direction,
                               double p);

/* The K indices of value [n] that are best, best first, NaN left out; chosen [k]. Returns how many.
 */
int ho_retest_pick(const double *value, int64_t n, int direction, int k, int64_t *chosen);

typedef struct ho_retest {
    int winner;       /* position in the arrays: best fresh mean; -1: none was scored */
    double first;     /* mean first value of the retested */
    double fresh;     /* mean of their fresh values */
    double shrinkage; /* first - fresh in the user's direction: what of it was luck */
    double deviation; /* pooled standard deviation of a fresh value; NaN with one value each */
} ho_retest;

/* first [k]: values that chose them; fresh [k, replicates]: values with fresh seeds, NaN where
 * failed; those are left out. */
ho_retest ho_retest_judge(const double *first, const double *fresh, int k, int replicates,
                          int direction);

#ifdef __cplusplus
}
#endif
#endif
