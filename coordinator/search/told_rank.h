/* SPDX-License-Identifier: Apache-2.0
 * Told trials from best to worst, as every learning sampler sees them: feasible complete ones by
 * value (several objectives: by non-domination rank, then by crowding distance), then feasible
 * pruned ones by epochs done and value, then infeasible ones by violation, failed ones last
 * (spec/search.md 3.1 item 3). */
#ifndef HO_COORDINATOR_SEARCH_TOLD_RANK_H
#define HO_COORDINATOR_SEARCH_TOLD_RANK_H

#include "coordinator/search/history.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_told_rank {
    int64_t *row; /* [count] history rows, best first */
    int64_t count, room;
    int64_t scored; /* of them not failed; they come first */
} ho_told_rank;

void ho_told_rank_free(ho_told_rank *rank);

/* Adds a told row. One objective: O(log n + n moves). Several: everything is ranked again. */
ho_status ho_told_rank_insert(ho_told_rank *rank, const ho_history *history, int64_t row,
                              ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
