/* SPDX-License-Identifier: Apache-2.0
 * The state of a running trial as one blob: what is needed to go on in another worker process of
 * the same build and backend as if nothing had happened. Lanes in training carry the backend's own
 * blob (ho_lane_save), finished ones their scores and weights.
 *
 * Layout, little-endian, every part length-prefixed: magic, version, cohort key, counts; rows not
 * yet reported; lanes; SHA-256 of all before it. A torn or foreign blob is refused whole. */
#ifndef HO_WORKER_CHECKPOINT_H
#define HO_WORKER_CHECKPOINT_H

#include "worker/trial_run.h"

#ifdef __cplusplus
extern "C" {
#endif

/* cohort: of the running lanes; may be NULL when none runs. replay: include the replay ring, so
 * that resuming is bit-identical. *blob is malloc'ed, the caller's. */
ho_status ho_checkpoint_save(const ho_trial_run *run, ho_cohort *cohort, bool replay, void **blob,
                             size_t *size, ho_err *err);

/* Puts the state into a run that has not started: lanes in training wait with their blob, finished
 * ones are finished. HO_EINVAL: torn, of another version, or of a trial of another shape; the run
 * is as before. */
ho_status ho_checkpoint_load(ho_trial_run *run, const void *blob, size_t size, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
