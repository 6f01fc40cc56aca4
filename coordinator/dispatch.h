/* SPDX-License-Identifier: Apache-2.0
 * Dispatch: which trial exists, who has it, and what happens when somebody is silent, late or
 * wrong. Knows no sockets and no clock: the server hands in what arrived and the time, and sends
 * what the callbacks say; so the tests drive it with a fake clock and no network.
 *
 *                propose            lease                 result
 *     (sampler) ---------> WAITING --------> RUNNING ------------------> COMPLETE | PRUNED | FAILED
 *                             ^                 | lost, crash, preempted
 *                             +-----------------+ attempt + 1, after a pause
 *                             ^                 | a round of folds, still in the running
 *                             +-----------------+ attempt + 1
 *
 * Invariants:
 * 1. A trial is leased to at most one worker; `attempt` grows by one with every lease, and only
 *    messages that carry the newest attempt count (fencing). Older ones become events.
 * 2. A trial ends exactly once. An ack is sent only when its end is committed.
 * 3. At most `trials` trials are ever proposed, whatever the number of workers.
 * 4. While the store is paused nothing new is leased.
 * All times are monotonic nanoseconds unless the name says unix. One thread. */
#ifndef HO_COORDINATOR_DISPATCH_H
#define HO_COORDINATOR_DISPATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/search/pruner.h"
#include "coordinator/search/sampler.h"
#include "coordinator/store.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_dispatch ho_dispatch;

/* Why an attempt ended without a result. Names as in trial.fail_class; each has its own policy. */
typedef enum ho_cause {
    HO_CAUSE_LOST,      /* worker silent: requeued at once */
    HO_CAUSE_CRASH,     /* worker died: requeued with backoff; before its last try, alone */
    HO_CAUSE_OOM,       /* requeued once, with backoff */
    HO_CAUSE_DIVERGED,  /* the same bits would diverge again: failed */
    HO_CAUSE_TIMEOUT,   /* failed */
    HO_CAUSE_DATA,      /* this worker cannot use the data: requeued for another one */
    HO_CAUSE_CONFIG,    /* failed */
    HO_CAUSE_METRIC,    /* failed */
    HO_CAUSE_COMMAND,   /* the user's command failed: failed */
    HO_CAUSE_PREEMPTED, /* handed back by a draining worker: requeued at once, not counted */
    HO_CAUSE_COUNT
} ho_cause;

const char *ho_cause_name(ho_cause cause);
/* HO_CAUSE_COUNT for an unknown name. */
ho_cause ho_cause_find(const char *name);

typedef struct ho_dispatch_config {
    int64_t trials;     /* to propose in all */
    int64_t timeout_ns; /* of this run; 0: none */
    int64_t patience;   /* trials without a new best; 0: never */
    int max_attempts;   /* counted per cause that is the worker's fault */
    int64_t heartbeat_timeout_ns;
    int64_t adopt_ns;   /* after a restart: how long a running trial waits for its worker */
    int64_t backoff_ns; /* first pause after a crash; doubles, at most 64 times this */
    int64_t in_flight;  /* pending at once; 0: max(workers, trials / 10) */
    bool deterministic;
    int64_t parallel;     /* with deterministic */
    int replicates;       /* trials of one configuration */
    int seeds;            /* agents a fold */
    int64_t retest;       /* the best trials to run again at the end */
    int64_t retest_times; /* how often each */
    bool no_epochs;       /* store.epochs = "none": no per-epoch rows */
    int64_t enqueued;     /* configurations the sampler was given to try first */
    int race_folds;       /* folds a trial runs at a time; 0: all at once */
    int folds;            /* of the study */
    double race_p;        /* a trial is dropped below this p-value */
    uint64_t seed;        /* of the study: order of the raced folds */
    const char *metric;   /* first objective; with race_folds */
    int objectives;
    int direction[HO_OBJECTIVES_MAX];
} ho_dispatch_config;

/* One message, one trial; a leased trial's parameters stay valid during the call. */
typedef struct ho_lease {
    int64_t number, attempt;
    int seeds;
    const double *config; /* [P] */
    int folds;            /* to run; 0: all */
    const int *fold;      /* [folds] ascending */
} ho_lease;

/* What the server sends. `worker` is the id given by ho_dispatch_join. */
typedef struct ho_dispatch_io {
    void *user;
    void (*lease)(void *user, int64_t worker, const ho_lease *lease);
    void (*prune)(void *user, int64_t worker, int64_t number, int64_t attempt);
    /* stop it after its report of `epoch`, send its checkpoint and hand it back (preempted) */
    void (*pause)(void *user, int64_t worker, int64_t number, int64_t attempt, int64_t epoch);
    void (*verdict)(void *user, int64_t worker, int64_t number, int64_t attempt, bool keep);
    void (*ack)(void *user, int64_t worker, int64_t number, int64_t attempt);
    void (*finished)(void *user, const ho_trial_result *result); /* for progress; may be NULL */
    int64_t (*unix_ns)(void *user);
    void (*round_over)(void *user, int64_t number); /* its checkpoints are void; may be NULL */
} ho_dispatch_io;

/* Borrows the store, sampler, pruner and space; they must outlive it. */
ho_status ho_dispatch_create(ho_dispatch **out, const ho_dispatch_config *config,
                             const ho_dispatch_io *io, ho_store *store, ho_sampler *sampler,
                             ho_pruner *pruner, const ho_space *space, int64_t now_ns, ho_err *err);
void ho_dispatch_destroy(ho_dispatch **dispatch);

/* Loads the trials of the store and retells them to sampler and pruner in the recorded order.
 * Trials that were running wait for adopt_ns to be adopted by a worker's hello. */
ho_status ho_dispatch_resume(ho_dispatch *dispatch, int64_t now_ns, ho_err *err);

/* ---- what workers do ------------------------------------------------------------------------ */

typedef struct ho_hello {
    const char *name, *host, *device, *device_uuid, *backend, *version, *curve_key;
    int64_t pid;
    int lanes; /* agents it trains at once */
    bool local;
    int held; /* trials it has, running or with an unacknowledged result */
    const int64_t *held_number, *held_attempt;
} ho_hello;

/* A worker appears. Answers each held trial with verdict(keep) or verdict(drop). *worker: its id.
 */
ho_status ho_dispatch_join(ho_dispatch *dispatch, const ho_hello *hello, int64_t now_ns,
                           int64_t *worker, ho_err *err);
/* It would take so many trials more, and trains so many agents at once. */
void ho_dispatch_ready(ho_dispatch *dispatch, int64_t worker, int slots, int lanes, int64_t now_ns);
/* Anything came from it. */
void ho_dispatch_heard(ho_dispatch *dispatch, int64_t worker, int64_t now_ns);
/* It is gone: its trials are requeued by the cause. reason: for people. */
void ho_dispatch_leave(ho_dispatch *dispatch, int64_t worker, ho_cause cause, const char *reason,
                       int64_t now_ns);

typedef struct ho_report_in {
    int64_t number, attempt, step;
    double value[HO_OBJECTIVES_MAX]; /* NaN: undefined */
    bool scored;                     /* false: statistics only */
    int folds;
    const double *fold_value;  /* [folds] first objective */
    const ho_epoch_stat *stat; /* all lanes merged, or NULL */
    int64_t parent;            /* population: whose agents it took over since; -1 */
    const double *config;      /* [P] what it trains on with; with a parent */
} ho_report_in;

/* HO_EINVAL: a number never leased to it (an offence). Late reports are dropped quietly. */
ho_status ho_dispatch_report(ho_dispatch *dispatch, int64_t worker, const ho_report_in *report,
                             int64_t now_ns, ho_err *err);

/* A result as computed from the worker's windows; told_order, worker and finished_ns are filled
 * here. Repeated or late ones are acknowledged again and change nothing. */
ho_status ho_dispatch_result(ho_dispatch *dispatch, int64_t worker, ho_trial_result *result,
                             int64_t now_ns, ho_err *err);

/* Whether results of this trial are rounds: it is raced over folds. */
bool ho_dispatch_races(ho_dispatch *dispatch, int64_t number);

/* A round of a raced trial. */
typedef struct ho_round_in {
    ho_trial_result *result;  /* of all folds run so far, this round's with them */
    int folds;                /* run so far */
    const double *fold_value; /* [folds of the study] first objective; NaN: not run, undefined */
    const void *message;      /* kept in the store while the trial is unfinished */
    size_t message_size;
} ho_round_in;

/* As ho_dispatch_result. Decides whether the trial goes on with further folds, ends as pruned, or
 * is complete. HO_EINVAL: also when the folds are not those that were leased. */
ho_status ho_dispatch_round(ho_dispatch *dispatch, int64_t worker, const ho_round_in *round,
                            bool *goes_on, int64_t now_ns, ho_err *err);

/* A paused trial that is handed back (HO_CAUSE_PREEMPTED) may be given out from then on. */
ho_status ho_dispatch_fail(ho_dispatch *dispatch, int64_t worker, int64_t number, int64_t attempt,
                           ho_cause cause, const char *reason, int64_t now_ns, ho_err *err);

/* Whether this worker has a seat (has not been given up). */
bool ho_dispatch_is_here(ho_dispatch *dispatch, int64_t worker);
/* Whether the newest lease of this trial is this one, and the worker's. */
bool ho_dispatch_holds(ho_dispatch *dispatch, int64_t worker, int64_t number, int64_t attempt);

/* ---- time ----------------------------------------------------------------------------------- */

/* Expires leases, proposes, leases, flushes the store, sends due acks. HO_OK, or a failure that
 * ends the run (store refused a row, sampler failed). */
ho_status ho_dispatch_tick(ho_dispatch *dispatch, int64_t now_ns, ho_err *err);
/* When the next tick is due at the latest. */
int64_t ho_dispatch_next_ns(const ho_dispatch *dispatch, int64_t now_ns);

/* Nothing new is proposed and leased until this is called with NULL. reason: for people, copied. */
void ho_dispatch_hold(ho_dispatch *dispatch, const char *reason);
/* No more proposals and leases; running trials end. */
void ho_dispatch_drain(ho_dispatch *dispatch, const char *reason);
/* Marks every unfinished trial INTERRUPTED, every worker as left, and writes everything: the last
 * call before destroy. */
ho_status ho_dispatch_interrupt(ho_dispatch *dispatch, const char *reason, int64_t now_ns,
                                ho_err *err);

/* Commits what is queued and sends what waited for that; trials stay as they are. */
ho_status ho_dispatch_flush(ho_dispatch *dispatch, int64_t now_ns, ho_err *err);

/* All that was to run has ended and is committed. */
bool ho_dispatch_done(const ho_dispatch *dispatch);
/* "trials", "timeout", "patience", "exhausted" or drain's reason; NULL while it runs. */
const char *ho_dispatch_reason(const ho_dispatch *dispatch);

typedef struct ho_dispatch_view {
    int64_t target, proposed, waiting, running, complete, pruned, failed;
    int64_t workers, ready_workers;
    int64_t best_number; /* -1: none */
    double best_value;
    int64_t finished_here; /* trials ended in this run */
    bool draining;
    const char *paused; /* the store's reason, or that of a hold, or NULL */
} ho_dispatch_view;
void ho_dispatch_look(const ho_dispatch *dispatch, ho_dispatch_view *out);

#ifdef __cplusplus
}
#endif
#endif
