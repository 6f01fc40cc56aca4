/* SPDX-License-Identifier: Apache-2.0
 * The coordinator's end of the wire in a test's hands: a ROUTER that says exactly what the test
 * wants, garbage included, and vanishes and comes back when told. */
#ifndef HO_TESTS_WORKER_FAKE_COORDINATOR_H
#define HO_TESTS_WORKER_FAKE_COORDINATOR_H

#include <czmq.h>

#include "study/wire.h"

typedef struct fake_coordinator {
    char endpoint[128];
    zsock_t *router;
    zframe_t *peer; /* routing id of the last sender */
    bool slow;      /* it does not answer chunks by itself */
} fake_coordinator;

/* Binds; endpoint is kept for a later start. Take ipc in the test's own folder: on a tcp port a
 * worker of another test may knock. */
void fake_start(fake_coordinator *fake, const char *endpoint);
/* The socket goes, with what it had queued. */
void fake_stop(fake_coordinator *fake);

/* The next message: any, one that is not a pong or ready, one of exactly this type. Fails the test
 * when nothing comes for some seconds. Clear it. */
ho_message fake_receive_any(fake_coordinator *fake);
ho_message fake_receive(fake_coordinator *fake);
ho_message fake_receive_type(fake_coordinator *fake, ho_message_type type);
/* Whether something comes within ms; it is dropped. */
bool fake_hears(fake_coordinator *fake, ho_message_type type, int ms);

void fake_send(fake_coordinator *fake, const ho_message *message);
void fake_send_bytes(fake_coordinator *fake, const void *bytes, size_t size);
/* Answers a chunk. */
void fake_send_got(fake_coordinator *fake, uint64_t ticket);
/* A message of this type about a trial. */
void fake_send_about(fake_coordinator *fake, ho_message_type type, int64_t trial, int32_t attempt);
/* A study named `name` whose heartbeat settings are these; text may be NULL. */
void fake_send_study(fake_coordinator *fake, const char *uuid, const char *text,
                     double heartbeat_timeout_s);

#endif
