/* SPDX-License-Identifier: Apache-2.0
 * The worker's compute thread: takes what the link delivers, runs one epoch after the other, tells
 * what came of it. Owns the backend, the study and the pool. */
#ifndef HO_WORKER_SESSION_H
#define HO_WORKER_SESSION_H

#include "worker/link.h"
#include "worker/options.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HO_WORKER_EXIT_OK = 0,
    HO_WORKER_EXIT_USAGE = 1,  /* usage, or refused by the coordinator */
    HO_WORKER_EXIT_DATA = 2,   /* the study's data cannot be used here */
    HO_WORKER_EXIT_DEVICE = 3, /* no such device, or it failed */
};

typedef struct ho_session ho_session;

/* Opens the device. HO_EUSAGE: no such GPU; HO_EGPU, HO_EUNSUPPORTED: it cannot be opened. */
ho_status ho_session_create(ho_session **out, const ho_worker_options *options, ho_err *err);
void ho_session_destroy(ho_session **session);

/* This worker's hello; its lists belong to the session. */
const ho_msg_hello *ho_session_hello(const ho_session *session);

/* Serves until the coordinator stops or refuses the worker, or the device or the data fail, or
 * *hand_back becomes nonzero (a signal): then running trials are checkpointed and handed back.
 * Returns the exit code; err has text when it is not 0. */
int ho_session_run(ho_session *session, ho_link *link, const volatile int *hand_back, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
