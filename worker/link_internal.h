/* SPDX-License-Identifier: Apache-2.0
 * What the two halves of a link share: link.c (the compute thread's calls) and link_io.c (the I/O
 * thread). Only the I/O thread touches sockets and the outbox; `lock` guards what both threads see:
 * the inbox, the messages handed over, the load and a few flags. */
#ifndef HO_WORKER_LINK_INTERNAL_H
#define HO_WORKER_LINK_INTERNAL_H

#include <pthread.h>

#include <czmq.h>

#include "study/flow.h"
#include "worker/link.h"
#include "worker/outbox.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HO_LINK_BACKOFF_MIN_MS = 250, /* between two connections */
    HO_LINK_GREETING_MS = 5000,   /* patience with a hello that nobody answers; doubles up to the
                                   * timeout */
};

typedef enum ho_link_state { HO_LINK_CONNECTING, HO_LINK_GREETING, HO_LINK_JOINED } ho_link_state;

/* A message for the compute thread. */
typedef struct ho_parcel {
    struct ho_parcel *next;
    ho_message message;
    unsigned study; /* ho_link.study when it came */
} ho_parcel;

/* A message from the compute thread. */
typedef struct ho_letter {
    struct ho_letter *next;
    unsigned study; /* ho_link.study_taken when it was handed over */
    ho_outbox_label label;
    zmsg_t *bytes;
} ho_letter;

struct ho_link {
    zactor_t *actor;
    /* shared, under lock */
    pthread_mutex_t lock;
    pthread_cond_t arrived;
    ho_parcel *inbox, **inbox_tail;
    ho_letter *letters, **letters_tail;
    ho_link_load load;
    unsigned
        study_taken; /* `study` of what the compute thread has taken: what it says is of that */
    bool joined;
    bool idle;     /* everything handed over was sent, and every chunk has arrived */
    bool settled;  /* no trial is held */
    bool saving;   /* parts of a checkpoint are not sent */
    int64_t moved; /* messages sent and chunks that have arrived, ever */
    /* the I/O thread's own */
    char *endpoint;
    zcert_t *cert;
    char server_key[41];
    ho_msg_hello hello;
    unsigned study; /* counts the studies that came */
    int64_t parent;
    void (*abandon)(const char *reason);
    double interval_s, timeout_s;
    ho_outbox *outbox;
    ho_flow flow; /* chunks under way on this connection */
    zsock_t *socket, *monitor;
    ho_link_state state;
    int64_t heard_ms, greeted_ms, connect_at_ms, stop_by_ms;
    int backoff_ms, greeting_ms;
    bool refused;
    int64_t offences;
};

/* CLOCK_MONOTONIC */
int64_t ho_link_now_ms(void);
/* NULL: err says why. */
zmsg_t *ho_link_encode(const ho_message *message, ho_err *err);
/* The I/O thread; argument: the link. */
void ho_link_io(zsock_t *pipe, void *argument);

#ifdef __cplusplus
}
#endif
#endif
