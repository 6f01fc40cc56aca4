/* SPDX-License-Identifier: Apache-2.0
 * What a worker has to say and has not been believed yet, and which trials it holds.
 *
 * Items leave in the order in which they came. Kept items (reports, artifacts, results and
 * failures) stay after sending until their trial is forgotten, and are sent again after a rewind;
 * others leave with their sending, and a rewind drops them. One thread. */
#ifndef HO_WORKER_OUTBOX_H
#define HO_WORKER_OUTBOX_H

#include <czmq.h>

#include "study/wire.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_outbox ho_outbox;

ho_outbox *ho_outbox_create(void);
void ho_outbox_destroy(ho_outbox **outbox);

/* What the outbox needs of a message. */
typedef struct ho_outbox_label {
    ho_message_type type;
    int64_t trial;
    int32_t attempt;
    int32_t epoch;   /* of a report, else 0 */
    uint64_t ticket; /* of a chunk, else 0 */
    bool keep;       /* until its trial is forgotten */
    bool lasting;    /* not kept, but a rewind does not drop it */
} ho_outbox_label;

/* The label of a message by the protocol's rules. */
ho_outbox_label ho_outbox_label_of(const ho_message *message);

/* Takes *bytes. A kept item of a trial that is not held (pruned or dropped meanwhile) is dropped.
 */
void ho_outbox_add(ho_outbox *outbox, const ho_outbox_label *label, zmsg_t **bytes);

/* The next item to send, borrowed; NULL: none. ho_outbox_sent tells that it is on its way. */
zmsg_t *ho_outbox_next(ho_outbox *outbox);
/* Its ticket if it is a chunk, else 0. */
uint64_t ho_outbox_next_ticket(const ho_outbox *outbox);
void ho_outbox_sent(ho_outbox *outbox);

/* The connection was lost: every kept item is unsent again. */
void ho_outbox_rewind(ho_outbox *outbox);
/* Artifacts, result and failure of this trial are unsent again and leave last, in their order. */
void ho_outbox_again(ho_outbox *outbox, int64_t trial, int32_t attempt);
bool ho_outbox_idle(const ho_outbox *outbox); /* nothing to send */
/* Parts of checkpoints that are not sent. */
int ho_outbox_checkpoint_parts(const ho_outbox *outbox);

/* false: it is held, or was forgotten lately, with this or a newer attempt: a repeated or stale
 * order. */
bool ho_outbox_hold(ho_outbox *outbox, int64_t trial, int32_t attempt);
/* Drops the trial and its items; false: not held with this attempt. */
bool ho_outbox_forget(ho_outbox *outbox, int64_t trial, int32_t attempt);
/* Drops all trials and items, and which orders came: another study begins. */
void ho_outbox_forget_all(ho_outbox *outbox);
/* The trials held, oldest first, malloc'ed; returns their number. */
int ho_outbox_held(const ho_outbox *outbox, ho_held_trial **out);
int ho_outbox_held_count(const ho_outbox *outbox);

#ifdef __cplusplus
}
#endif
#endif
