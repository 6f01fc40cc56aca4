/* SPDX-License-Identifier: Apache-2.0
 * What the two halves of a session share: session.c (device, loop, leaving) and session_study.c
 * (study, data, orders, what the pool says). */
#ifndef HO_WORKER_SESSION_INTERNAL_H
#define HO_WORKER_SESSION_INTERNAL_H

#include "worker/checkpoints.h"
#include "worker/cohort_pool.h"
#include "worker/commands.h"
#include "worker/evolution.h"
#include "worker/loaded_study.h"
#include "worker/session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum leaving { STAYS, DRAINS, LEAVES } leaving;

struct ho_session {
    const ho_worker_options *options;
    ho_backend *backend;
    ho_device_info device;
    ho_msg_hello hello;
    ho_data_cache *cache;
    ho_link *link; /* borrowed while running */
    ho_loaded_study *loaded;
    ho_pool *pool;               /* NULL until the study's market is open */
    ho_checkpoints *checkpoints; /* lives with the pool */
    ho_evolution *evolution;     /* likewise; NULL without [population] */
    ho_commands *commands;       /* in place of the pool, of a [command] study */
    ho_message *order;           /* `trials` that came before the market was open */
    int order_count;
    int64_t gate_at_ms;    /* a population that is not complete starts then */
    int64_t want_at_ms;    /* when to look for data again; 0: nothing is wanted */
    int64_t want_pause_ms; /* without a chunk, before it asks again: longer each time */
    leaving leaving;
    bool baselines_due;             /* not begun since the market was opened */
    ho_backtest_job *baselines;     /* being scored, to be sent; or NULL */
    bool say_ready;                 /* whatever the figures are */
    ho_msg_ready said;              /* the last ready, without keys */
    int64_t load_at_ms, load_steps; /* since when, experiences since then */
    int64_t reading_ns;             /* bars, features, the market's way to the device */
    int64_t opened_ns;              /* when the market was open */
    int64_t saving_ns;              /* checkpoints */
    int exit_code;
    ho_err *err;
};

int64_t ho_session_now_ms(void);
int64_t ho_session_now_ns(void);

/* Ends the loop with this exit code; why may be NULL. */
void ho_session_leave(ho_session *session, int exit_code, const ho_err *why);

/* Frees study, pool and what goes with them. */
void ho_session_close_study(ho_session *session);

void ho_session_take_study(ho_session *session, ho_message *message);
void ho_session_take_trials(ho_session *session, ho_message *message);
void ho_session_take_chunk(ho_session *session, const ho_message *message);
/* prune or drop */
void ho_session_take_end(ho_session *session, const ho_message *message);
/* Stops a trial so that it can go on elsewhere, and hands it back. */
void ho_session_take_pause(ho_session *session, const ho_message *message);
/* Data that was asked for and did not come, checkpoints that came. Between two steps. */
void ho_session_look_for_data(ho_session *session);
void ho_session_start_resumed(ho_session *session);
void ho_session_begin_baselines(ho_session *session);
/* Those of the market that was opened: when they are there, or with `wait`. */
void ho_session_send_baselines(ho_session *session, bool wait);
/* Orders that came before the study was open, given back. */
void ho_session_hand_back_orders(ho_session *session, const char *reason);

/* The same for a [command] study. HO_EUSAGE: this worker does not run commands. */
ho_status ho_session_open_commands(ho_session *session, ho_err *err);
void ho_session_start_commands(ho_session *session, const ho_msg_trials *trials);
void ho_session_hand_back_commands(ho_session *session, const char *reason, bool all);
void ho_session_say_ready_for_commands(ho_session *session);
bool ho_session_step_commands(ho_session *session);
/* Population: the members that wait for each other start. */
void ho_session_open_gate(ho_session *session);
int ho_session_queued(const ho_session *session); /* orders that wait */
/* Population: exploit and explore. */
void ho_session_evolve(ho_session *session);

#ifdef __cplusplus
}
#endif
#endif
