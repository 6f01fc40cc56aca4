/* SPDX-License-Identifier: Apache-2.0
 * Importance of the parameters of a whole study, from what its file holds, into the table
 * `importance` (coordinator/search/importance.h has the methods). */
#ifndef HO_COORDINATOR_IMPORTANCE_STUDY_H
#define HO_COORDINATOR_IMPORTANCE_STUDY_H

#include "coordinator/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reads the complete trials (retests are left out) and queues the rows for the first objective.
 * HO_OK also when too few trials are complete: then there are no rows. */
ho_status ho_importance_study(ho_store *store, const ho_space *space, int direction, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
