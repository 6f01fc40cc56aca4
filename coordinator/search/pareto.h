/* SPDX-License-Identifier: Apache-2.0
 * Several objectives: domination, ranks, crowding, hypervolume. All losses are minimised. */
#ifndef HO_COORDINATOR_SEARCH_PARETO_H
#define HO_COORDINATOR_SEARCH_PARETO_H

#include <stdbool.h>
#include <stdint.h>

#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* a is nowhere worse than b and somewhere better. NaN counts as +infinity. */
bool ho_pareto_dominates(const double *a, const double *b, int objectives);

/* rank [n] of loss [n, M]: 0 for the non-dominated, and so on by peeling fronts. Efficient
 * non-dominated sort with binary search (Zhang et al., IEEE TEVC 2015). HO_ENOMEM. */
ho_status ho_pareto_rank(const double *loss, int64_t n, int objectives, int *rank);

/* crowding [n]: distance of Deb et al. (NSGA-II, 2002) within the rows of one front. HO_ENOMEM. */
ho_status ho_pareto_crowding(const double *loss, int64_t n, int objectives, double *crowding);

/* Volume that loss [n, M] dominates up to reference [M]; points outside add nothing. M <= 2 by a
 * sweep, more by recursive slicing (WFG: While, Bradstreet, Barone 2012). NaN on lack of memory. */
double ho_pareto_hypervolume(const double *loss, int64_t n, int objectives,
                             const double *reference);

#ifdef __cplusplus
}
#endif
#endif
