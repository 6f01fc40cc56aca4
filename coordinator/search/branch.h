/* SPDX-License-Identifier: Apache-2.0
 * Branches of a conditional space: sets of parameters that are active together. The best trials
 * vote for the branch to work in next, and a uniform draw has a few votes of its own, so that a
 * branch that looked bad at first is seen again. */
#ifndef HO_COORDINATOR_SEARCH_BRANCH_H
#define HO_COORDINATOR_SEARCH_BRANCH_H

#include "coordinator/search/draw.h"
#include "coordinator/search/told_rank.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Draws once: the history row whose branch has won, or -1: that of a random configuration. */
int64_t ho_branch_vote(const ho_told_rank *told, ho_draw *draw);

/* Whether two configurations [P] have the same active parameters. */
bool ho_branch_same(const double *a, const double *b, int params);

#ifdef __cplusplus
}
#endif
#endif
