/* SPDX-License-Identifier: Apache-2.0
 * The running coordinator: peers and their messages on one side, dispatch on the other, signals and
 * local workers beside them, in one event loop. Protocol: study/protocol.txt.
 *
 * Signals: the first SIGINT or SIGTERM drains (running trials end), the second stops now (they are
 * marked INTERRUPTED and can be resumed), the third kills. SIGUSR1 stops now at once: it is what
 * Slurm sends before a time limit. */
#ifndef HO_COORDINATOR_SERVER_H
#define HO_COORDINATOR_SERVER_H

#include "coordinator/dispatch.h"
#include "coordinator/hub.h"
#include "coordinator/local.h"
#include "coordinator/observe.h"
#include "coordinator/setup.h"
#include "coordinator/store.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_server ho_server;

typedef struct ho_server_options {
    const ho_setup *setup;
    const char *uuid; /* of the study */
    ho_store *store;
    ho_hub *hub;
    const char *artifacts; /* folder for checkpoints and weights */
    int64_t ping_ns;       /* between pings of a worker */
    int64_t greet_ns;      /* a connection that says no hello for so long is forgotten */
    bool want_baselines;   /* the store has none yet */
    bool leave_workers;    /* a signal ends this process and no worker: the same command follows */
    /* At the end: whether another study follows on the same address, for which remote workers stay.
     * NULL: none does. */
    bool (*keep_remote)(void *user);
    /* Called after each round with the state, and when a trial ended; may be NULL. */
    void (*progress)(const ho_dispatch_view *view, int64_t now_ns, void *user);
    void (*trial_ended)(const ho_trial_result *result, void *user);
    void *user;
} ho_server_options;

/* Blocks the signals that a server watches, in this thread and those it starts from now on; threads
 * that are there already pass them on to this one. Before anything else that a signal should end.
 */
void ho_server_block_signals(void);

ho_status ho_server_create(ho_server **out, const ho_server_options *options, ho_err *err);
void ho_server_destroy(ho_server **server);

/* The callbacks with which the dispatch is to be created, then the dispatch itself. */
ho_dispatch_io ho_server_io(ho_server *server);
void ho_server_set_dispatch(ho_server *server, ho_dispatch *dispatch);
/* The local workers; NULL: remote ones only. They are started after ho_server_create, which blocks
 * the signals it watches. */
void ho_server_set_local(ho_server *server, ho_local *local);

/* The artifact folder, for what is kept of ended trials. */
struct ho_artifacts *ho_server_artifacts(ho_server *server);

/* Serves until the dispatch is done or a second signal comes, then sends the workers home.
 * HO_OK: done. HO_ECANCELLED: interrupted, resumable. HO_ENOWORKER, HO_EDATA: no worker can go on
 * (err says why). HO_ESTORE: the database refuses. */
ho_status ho_server_run(ho_server *server, ho_err *err);

/* After ho_server_run: stays, answers progress calls, and sends workers that come late home, until
 * a signal comes. */
void ho_server_linger(ho_server *server);

/* Sums over the workers that are here, from their last messages. */
ho_worker_load ho_server_load(const ho_server *server);

/* Monotonic and UTC clocks, nanoseconds. */
int64_t ho_clock_ns(void);
int64_t ho_clock_unix_ns(void);

#ifdef __cplusplus
}
#endif
#endif
