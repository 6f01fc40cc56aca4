/* SPDX-License-Identifier: Apache-2.0
 * The worker's connection to its coordinator: every socket, in an I/O thread of its own, so that
 * pongs never wait for an epoch. The compute thread hands messages in and takes messages out.
 *
 *            +-------------------------------- silence, disconnect -----------+
 *            v                                                                |
 *   CONNECTING --- hello sent ---> GREETING --- study received ---> JOINED ---+
 *
 * At least once: what a trial has told (reports, artifacts, its result or failure) is kept until
 * the coordinator acks or drops the trial, and is sent again after every hello. While the
 * coordinator is away the compute thread works on; the link reconnects with backoff. The link knows
 * which trials this worker holds: from `trials` until ack, prune or drop. When the study is another
 * one it forgets them, and what the compute thread says before it has taken that study. */
#ifndef HO_WORKER_LINK_H
#define HO_WORKER_LINK_H

#include "study/wire.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_link ho_link;

typedef struct ho_link_options {
    const char *endpoint;
    const char *key, *server_key; /* CURVE certificate files; both or neither */
    const ho_msg_hello *hello;    /* without held trials; copied */
    int64_t parent;               /* pid whose end ends this process; 0: none */
    double heartbeat_interval_s;  /* until a study says otherwise */
    double heartbeat_timeout_s;   /* likewise */
    /* Called on the I/O thread when the process must end although the compute thread is busy: the
     * parent is gone, or `stop now` came. Does not return to the link. */
    void (*abandon)(const char *reason);
} ho_link_options;

/* What pongs say; see ho_msg_pong. */
typedef struct ho_link_load {
    int32_t active_lanes;
    double steps_per_s, memory_share;
} ho_link_load;

/* Starts the I/O thread, which connects in the background.
 * HO_EUSAGE: a key file cannot be read, or no such endpoint (err says why). */
ho_status ho_link_create(ho_link **out, const ho_link_options *options, ho_err *err);
/* Stops the thread; what the socket has taken is given some seconds to leave. */
void ho_link_destroy(ho_link **link);

/* Hands a message over; does not block. `ready`, `want`, `got` and checkpoint chunks are dropped
 * while the coordinator is away: they are stale by its return. A chunk is given its ticket here,
 * and leaves when the window (study/flow.h) is open. HO_EINVAL: it cannot be encoded. */
ho_status ho_link_send(ho_link *link, const ho_message *message, ho_err *err);

/* Takes the next message: study (again after every reconnect), trials, prune, pause, drop, fetch of
 * a checkpoint, job, chunk, stop, refuse. timeout_ms 0 only looks. false: none. *out is the
 * caller's to clear. The link has answered the chunks of a checkpoint, which is put together in
 * memory while an epoch may run; a chunk of a data file is the caller's to answer with `got` once
 * it is written, so that a slow disk slows the sender. */
bool ho_link_receive(ho_link *link, int timeout_ms, ho_message *out);

/* A study came over this connection, which still stands. */
bool ho_link_joined(ho_link *link);
void ho_link_set_load(ho_link *link, const ho_link_load *load);

/* No trial is held: every result and failure was acked. */
bool ho_link_settled(ho_link *link);

/* Parts of a checkpoint that was handed over wait for the line. */
bool ho_link_saving(ho_link *link);

/* Waits until all that was handed over is on its way and all chunks have arrived; gives up after
 * timeout_ms in which nothing moves. */
bool ho_link_flush(ho_link *link, int timeout_ms);

#ifdef __cplusplus
}
#endif
#endif
