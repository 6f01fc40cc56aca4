/* SPDX-License-Identifier: Apache-2.0
 * Population-based training at work: the decisions of population.h carried out on the lanes of the
 * pool between two epochs, and told to the coordinator (lineage). */
#ifndef HO_WORKER_EVOLUTION_H
#define HO_WORKER_EVOLUTION_H

#include "worker/cohort_pool.h"
#include "worker/lane_config.h"
#include "worker/population.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_evolution ho_evolution;

/* *out is NULL without [population]. The study outlives it. */
ho_status ho_evolution_create(ho_evolution **out, const ho_study *study, ho_err *err);
void ho_evolution_destroy(ho_evolution **evolution);

/* Members that train side by side; 0 for NULL. */
int ho_evolution_size(const ho_evolution *evolution);

/* All accept a NULL evolution and do nothing. */

/* A trial was added to the pool with its configuration [P]. */
ho_status ho_evolution_join(ho_evolution *evolution, const ho_lane_context *context, int64_t trial,
                            const double *config, ho_err *err);
/* It left: finished, failed, pruned or dropped. */
void ho_evolution_leave(ho_evolution *evolution, int64_t trial);
/* A row of it is complete. */
void ho_evolution_note(ho_evolution *evolution, const ho_trial_run *run, const ho_trial_epoch *row);
/* Carries out what is due; call between two steps of the pool. */
void ho_evolution_turn(ho_evolution *evolution, ho_pool *pool, const ho_lane_context *context);
/* Where the trial's agents came from: true once after each copy. config [P] is borrowed until the
 * next turn. */
bool ho_evolution_origin(ho_evolution *evolution, int64_t trial, int64_t *parent,
                         const double **config);

#ifdef __cplusplus
}
#endif
#endif
