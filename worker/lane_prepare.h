/* SPDX-License-Identifier: Apache-2.0
 * Initial weights made ahead, by threads of their own: orthogonal ones take a processor tens of
 * milliseconds a lane, which a device would spend idle if the pool made them when a slot is free
 * (128 lanes: four seconds). The weights are those that ho_lane_start would make. */
#ifndef HO_WORKER_LANE_PREPARE_H
#define HO_WORKER_LANE_PREPARE_H

#include "kernels/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_preparer ho_preparer;
typedef struct ho_prepared ho_prepared; /* weights of one lane: waiting, being made, or there */

/* threads start with the first lane. */
ho_status ho_preparer_create(ho_preparer **out, int threads, ho_err *err);
/* After every ho_prepared of it was dropped. */
void ho_preparer_destroy(ho_preparer **preparer);

/* Puts a lane last in line; copies key and config. NULL: out of memory, the lane then makes its
 * weights when it starts. */
ho_prepared *ho_preparer_add(ho_preparer *preparer, const ho_cohort_key *key,
                             const ho_lane_config *config);

/* The weights, when they are there; makes them at once when no thread has begun. NULL: they cannot
 * be made, and ho_lane_start will say why. They live until the drop. */
const float *ho_prepared_wait(ho_prepared *prepared);

/* NULL is fine. */
void ho_prepared_drop(ho_prepared **prepared);

#ifdef __cplusplus
}
#endif
#endif
