/* SPDX-License-Identifier: Apache-2.0
 * The results of the rounds of trials that are raced over folds, from the first round to the
 * trial's end: in memory, and in the store as the messages they came in, so that a restarted
 * coordinator has them. Knows nothing of verdicts (dispatch_race.c). */
#ifndef HO_COORDINATOR_ROUNDS_H
#define HO_COORDINATOR_ROUNDS_H

#include "coordinator/store.h"
#include "study/wire.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_rounds ho_rounds;

/* Reads what the store has of unfinished trials. HO_ESTORE: a message that cannot be read. */
ho_status ho_rounds_create(ho_rounds **out, ho_store *store, ho_err *err);
void ho_rounds_destroy(ho_rounds **rounds);

/* All that the trial of this result has run: *out is the result with the windows of the earlier
 * rounds before its own, and the sums of all. The windows stay with their owners: free
 * out->result.window alone. */
ho_status ho_rounds_join(const ho_rounds *rounds, const ho_message *result, ho_message *out,
                         ho_err *err);

/* A result as bytes for the store. *bytes is malloc'ed, the caller's. */
ho_status ho_rounds_pack(const ho_message *result, uint8_t **bytes, size_t *size, ho_err *err);

/* Keeps a result, taking it (*result is empty then), or forgets all of a trial. */
ho_status ho_rounds_keep(ho_rounds *rounds, ho_message *result, ho_err *err);
void ho_rounds_forget(ho_rounds *rounds, int64_t trial);

#ifdef __cplusplus
}
#endif
#endif
