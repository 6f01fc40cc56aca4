/* SPDX-License-Identifier: Apache-2.0
 * When running trials are checkpointed to the coordinator, and the other way: trials that are to
 * go on from a checkpoint and wait until its chunks have come. */
#ifndef HO_WORKER_CHECKPOINTS_H
#define HO_WORKER_CHECKPOINTS_H

#include "worker/cohort_pool.h"
#include "worker/link.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_checkpoints ho_checkpoints;

/* every: epochs between checkpoints of a trial, 0: only ho_checkpoints_send_all; they are at least
 * interval_ms apart, so that short trials are not slowed down. replay: with the replay ring. */
ho_checkpoints *ho_checkpoints_create(int every, int64_t interval_ms, bool replay);
void ho_checkpoints_destroy(ho_checkpoints **checkpoints);

/* A trial has passed an epoch (called inside ho_pool_step: nothing is saved yet). */
void ho_checkpoints_note(ho_checkpoints *checkpoints, const ho_trial_run *run, int epoch);
/* Saves and sends one that is due, in turns, or none while the line is slow; call between two
 * steps, so that a device gets its next epochs before the next is saved. */
void ho_checkpoints_send_due(ho_checkpoints *checkpoints, ho_pool *pool, ho_link *link);
/* Saves and sends one trial, if it has started. */
void ho_checkpoints_send(const ho_checkpoints *checkpoints, ho_pool *pool, ho_link *link,
                         int64_t trial, int32_t attempt);
/* Saves and sends every started trial. */
void ho_checkpoints_send_all(ho_checkpoints *checkpoints, ho_pool *pool, ho_link *link);

/* The order waits for its checkpoint (order->resume). Takes the order's configuration. */
ho_status ho_checkpoints_expect(ho_checkpoints *checkpoints, ho_trial_order *order, ho_err *err);
/* A chunk of a checkpoint; those that nobody waits for are left out. */
void ho_checkpoints_chunk(ho_checkpoints *checkpoints, const ho_message *message);
/* Forgets a trial that waits (pruned or dropped); false: it does not wait here. */
bool ho_checkpoints_forget(ho_checkpoints *checkpoints, int64_t trial, int32_t attempt);
/* The next order that can start: *blob is its checkpoint, or NULL when it did not come within
 * patience_ms and the trial starts anew. The caller frees order->config and *blob. */
bool ho_checkpoints_next(ho_checkpoints *checkpoints, int64_t patience_ms, ho_trial_order *order,
                         void **blob, size_t *size);
int ho_checkpoints_waiting(const ho_checkpoints *checkpoints);

#ifdef __cplusplus
}
#endif
#endif
