/* SPDX-License-Identifier: Apache-2.0
 * Which parameters mattered, for the report and for SQL.
 *   PED-ANOVA (Watanabe, Bansal, Hutter, IJCAI 2023): for each parameter the Pearson divergence
 *   between its density among the best trials and among all trials, shares summing to 1. Local
 *   importance: what separates the good from the rest, not the global variance fANOVA explains.
 *   Spearman's and Kendall's (tau-b) rank correlation with the value, for numeric parameters. */
#ifndef HO_COORDINATOR_SEARCH_IMPORTANCE_H
#define HO_COORDINATOR_SEARCH_IMPORTANCE_H

#include "study/space.h"
#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_importance {
    double share;    /* PED-ANOVA, of 1; 0 when nothing separates */
    double spearman; /* positive: larger is better; NaN: a choice, too few trials or all alike */
    double kendall;
    int64_t trials; /* trials in which the parameter was active */
} ho_importance;

/* config [n, P], value [n] in the user's direction, NaN rows left out; good: the share of best
 * trials, e.g. 0.1. out [P]. A conditional parameter is judged among the trials that have it. */
ho_status ho_importance_compute(const ho_space *space, const double *config, const double *value,
                                int64_t n, int direction, double good, ho_importance *out,
                                ho_err *err);

/* Rank correlations of x [n] and y [n] with mid-ranks for ties. NaN for n < 3 or a constant. */
double ho_rank_spearman(const double *x, const double *y, int64_t n);
double ho_rank_kendall(const double *x, const double *y, int64_t n);

#ifdef __cplusplus
}
#endif
#endif
