/* SPDX-License-Identifier: Apache-2.0
 * What is kept of ended trials: the weights of the best store.keep_best, the per-epoch rows of all,
 * of those, or of none (store.epochs). The actions of every trial stay: they are small, and
 * `verify` needs them. */
#ifndef HO_COORDINATOR_KEEPER_H
#define HO_COORDINATOR_KEEPER_H

#include "coordinator/artifacts.h"
#include "coordinator/store.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_keeper ho_keeper;

/* best: how many; direction: of the first objective. Reads the best of the store. */
ho_status ho_keeper_create(ho_keeper **out, ho_store *store, ho_artifacts *artifacts, int64_t best,
                           int direction, bool drop_epochs, ho_err *err);
void ho_keeper_destroy(ho_keeper **keeper);

/* A trial ended: it, or the one it displaces, may lose its weights. */
void ho_keeper_note(ho_keeper *keeper, const ho_trial_result *result, int64_t unix_ns);

#ifdef __cplusplus
}
#endif
#endif
