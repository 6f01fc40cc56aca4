/* SPDX-License-Identifier: Apache-2.0
 * The store: one SQLite file of one study (sql/schema.sql). One writer, any number of readers.
 *
 * The writer never waits for the disk while it serves workers: writes are queued in memory by the
 * ho_store_put_* functions and carried out in order by ho_store_flush as one transaction (group
 * commit, 20 ms or 256 transitions). What is acknowledged to a worker waits for
 * ho_store_committed() to reach the number that ho_store_queued() had after the put.
 * When the disk is full or fails, the queue is kept, ho_store_paused() is true, and flushing is
 * tried again every second: nothing is lost while the process lives.
 *
 * One ho_store belongs to one thread. */
#ifndef HO_COORDINATOR_STORE_H
#define HO_COORDINATOR_STORE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels/metrics/metric_table.h"
#include "kernels/backend.h"
#include "study/folds.h"
#include "study/space.h"
#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_store ho_store;

enum { HO_STORE_VERSION = 3, HO_STORE_OBJECTIVES_MAX = 8 };

/* How the writer does, since it was opened. */
typedef struct ho_store_health {
    int64_t commits;
    double commit_s, commit_max_s; /* time in transactions: all, the longest */
} ho_store_health;
ho_store_health ho_store_get_health(const ho_store *store);

/* ---- open and close ------------------------------------------------------------------------- */

typedef struct ho_store_options {
    bool create;      /* make the file when it is absent */
    bool rollback;    /* journal instead of WAL, as on a network filesystem */
    int64_t group_ns; /* a queued write waits at most this long for company */
    int group_max;    /* transitions after which the queue is written at once */
    int64_t retry_ns; /* between attempts while paused */
} ho_store_options;

ho_store_options ho_store_defaults(void);

/* Opens for writing: takes the lock, checks integrity and version, migrates an older file after a
 * backup copy beside it.
 * HO_ELOCKED: another coordinator has it (err names its pid and host). HO_ENOTFOUND: no such file
 * and not create. HO_ESTORE: not a study, damaged, newer than this program, or not writable. */
ho_status ho_store_open(ho_store **out, const char *path, const ho_store_options *options,
                        ho_err *err);

/* Opens read-only: no statement can write (authorizer), while a run goes on or not. A file on a
 * read-only medium is opened with immutable=1. */
ho_status ho_store_open_read(ho_store **out, const char *path, ho_err *err);

/* Drops what is still queued: flush first. */
void ho_store_close(ho_store **store);

/* "file:" URI of a path for SQLite, with what is special in a URI escaped. query: "mode=ro".
 * HO_ESTORE: no room. */
ho_status ho_store_uri(const char *path, const char *query, char *out, size_t room);

/* The connection, for reading. A statement must be finalized before close. */
sqlite3 *ho_store_db(ho_store *store);
const char *ho_store_path(const ho_store *store);

/* WAL (false) or rollback journal because of a network filesystem (true). */
bool ho_store_is_rollback(const ho_store *store);

/* ---- the study ------------------------------------------------------------------------------ */

/* What a study is at its creation. Pointers are the caller's. */
typedef struct ho_store_study {
    const char *name, *uuid;
    uint64_t seed;
    int64_t trials;
    bool deterministic;
    const char *toml, *toml_path, *settings_json;
    const char *data_path, *data_sha256;
    int64_t bars, first_bar_ns, last_bar_ns;
    double sessions_per_year, initial_capital;
    int objectives;
    const char *metric[HO_STORE_OBJECTIVES_MAX];
    int direction[HO_STORE_OBJECTIVES_MAX];
    const char *aggregate;
    int constraints;
    const char *const *constraint;
    const ho_fold_plan *folds;
    const int64_t *open_ns; /* [bars] */
    const ho_space *space;
    int64_t now_ns;
} ho_store_study;

/* Whether the file holds a study already. */
bool ho_store_has_study(ho_store *store);

/* Writes the study with its folds, space and views, at once. HO_ESTORE: there is one already. */
ho_status ho_store_create_study(ho_store *store, const ho_store_study *study, ho_err *err);

/* Keeps the measured batch of dqn.batch = "auto". At once. */
ho_status ho_store_put_auto_batch(ho_store *store, int64_t batch, ho_err *err);

/* Accepts a changed study file: text, settings, space (changed distributions become new rows), and
 * the target. At once, with an event that holds `difference`. restart: the change matters for
 * results, so unfinished trials lose all that they have told; give a new uuid then. */
ho_status ho_store_change_study(ho_store *store, const ho_store_study *study,
                                const char *difference, bool restart, ho_err *err);

/* Makes the views anew: those of sql/views.sql and the per-study ones. At once. */
ho_status ho_store_make_views(ho_store *store, ho_err *err);

/* What a resuming run needs of the study row. Texts are malloc'ed; free with the second. */
typedef struct ho_store_info {
    char *name, *uuid, *state, *reason, *toml, *toml_path, *settings_json, *data_path, *data_sha256;
    int64_t trials, created_ns, changed_ns, revision;
    int64_t auto_batch; /* measured for dqn.batch = "auto"; 0: not measured */
    uint64_t seed;
    double spent_s; /* sum of the trials' device seconds */
} ho_store_info;
ho_status ho_store_read_info(ho_store *store, ho_store_info *out, ho_err *err);
void ho_store_info_free(ho_store_info *info);

/* ---- trials, read back ---------------------------------------------------------------------- */

typedef enum ho_trial_state {
    HO_TRIAL_WAITING,
    HO_TRIAL_RUNNING,
    HO_TRIAL_INTERRUPTED,
    HO_TRIAL_COMPLETE,
    HO_TRIAL_PRUNED,
    HO_TRIAL_FAILED,
} ho_trial_state;

const char *ho_trial_state_name(ho_trial_state state); /* "WAITING", as in the file */

typedef enum ho_trial_source {
    HO_SOURCE_SAMPLER,
    HO_SOURCE_ENQUEUE,
    HO_SOURCE_REPLICATE,
    HO_SOURCE_RETEST,
    HO_SOURCE_POPULATION,
} ho_trial_source;

const char *ho_trial_source_name(ho_trial_source source);

typedef struct ho_stored_trial {
    int64_t number, attempt, asked_after, told_order /* 0: not told */, parent /* -1 */;
    int64_t created_ns, started_ns, finished_ns, epochs;
    int seeds;
    ho_trial_state state;
    ho_trial_source source;
    double value[HO_STORE_OBJECTIVES_MAX]; /* NaN: undefined */
    double violation, train_s;             /* NaN: none */
    bool fits;                             /* the configuration is legal in the given space */
    const double *config;                  /* [P] in the given space; valid during the visit */
} ho_stored_trial;

/* Visits all trials by number. visit returns HO_OK to go on. */
ho_status ho_store_each_trial(ho_store *store, const ho_space *space,
                              ho_status (*visit)(const ho_stored_trial *trial, void *user),
                              void *user, ho_err *err);

typedef struct ho_stored_report {
    int64_t trial, step, at_ns;
    double value[HO_STORE_OBJECTIVES_MAX]; /* NaN: undefined, or no such objective */
    int folds;                             /* 0: not known by fold */
    const double *fold_value;              /* [folds] first objective; valid during the visit */
} ho_stored_report;

/* Visits all reports in the order they arrived. */
ho_status ho_store_each_report(ho_store *store,
                               ho_status (*visit)(const ho_stored_report *report, void *user),
                               void *user, ho_err *err);

/* A round of a raced trial (table race). */
typedef struct ho_race_row {
    int64_t number, round, attempt, now_ns, folds, epochs;
    int64_t against; /* -1: none */
    int64_t common;  /* with `against`, as the rest */
    double p, threshold, mean_gap;
    const char *verdict, *why;
    const void *result; /* the round's message; NULL: not kept, or the trial has ended */
    size_t result_size;
} ho_race_row;

/* Visits all rounds by trial, the earliest first; texts and result are valid during the visit. */
ho_status ho_store_each_round(ho_store *store,
                              ho_status (*visit)(const ho_race_row *round, void *user), void *user,
                              ho_err *err);

/* A metric by fold of a trial, mean over its seeds, into value [folds]; NaN: not run, undefined. */
ho_status ho_store_fold_values(ho_store *store, int64_t trial, const char *metric, int folds,
                               double *value, ho_err *err);

/* How often each trial was promoted after the pruner had paused it. */
ho_status ho_store_each_promoted(ho_store *store,
                                 ho_status (*visit)(int64_t trial, int64_t times, void *user),
                                 void *user, ho_err *err);

/* ---- queued writes -------------------------------------------------------------------------- */

typedef struct ho_trial_new {
    int64_t number, parent /* -1: none */, asked_after, now_ns;
    ho_trial_source source;
    int seeds;
    int bracket;          /* -1: none */
    const double *config; /* [P] of the study's space */
    const char *why;      /* or NULL */
} ho_trial_new;
ho_status ho_store_put_trial(ho_store *store, const ho_space *space, const ho_trial_new *trial);

/* A lease: RUNNING, attempt, worker, start. */
ho_status ho_store_put_lease(ho_store *store, int64_t number, int64_t attempt, int64_t worker,
                             int64_t now_ns);

/* Back to WAITING, or INTERRUPTED, with class and reason (or NULL) of the attempt that ended. */
ho_status ho_store_put_requeue(ho_store *store, int64_t number, ho_trial_state state,
                               const char *fail_class, const char *reason);

typedef struct ho_window_result {
    int fold, seed; /* fold -1: the joined series */
    ho_metric_set metrics;
    double random_percentile; /* NaN: not measured */
    int64_t sessions;
    const double *session_return; /* [sessions] or NULL */
} ho_window_result;

typedef struct ho_trial_result {
    int64_t number, attempt;
    ho_trial_state state; /* COMPLETE, PRUNED or FAILED */
    int objectives;
    double value[HO_STORE_OBJECTIVES_MAX]; /* NaN: undefined */
    const char *value_reason[HO_STORE_OBJECTIVES_MAX];
    int constraints;
    const double *constraint; /* [constraints] > 0: violated by that much */
    double violation;         /* NaN without constraints */
    int64_t told_order;       /* 0: not told */
    int64_t worker, finished_ns, epochs, experiences, updates;
    double train_s;
    const char *fail_class, *fail_reason; /* FAILED; or NULL */
    int windows;
    const ho_window_result *window; /* [windows] */
} ho_trial_result;
ho_status ho_store_put_result(ho_store *store, const ho_trial_result *result);
/* The windows alone, of a trial that goes on. */
ho_status ho_store_put_windows(ho_store *store, int64_t number, const ho_window_result *window,
                               int windows);

ho_status ho_store_put_race(ho_store *store, const ho_race_row *row);
/* The trial has ended: the messages of its rounds are dropped. */
ho_status ho_store_put_race_ended(ho_store *store, int64_t number);

/* One row of the overfit table; NaN: not known. */
typedef struct ho_overfit_row {
    int64_t now_ns, trial /* the best; -1: none */, configurations;
    double sharpe, sharpe_std, sharpe_zero; /* per session, not annualised */
    double psr, dsr, min_track_sessions, pbo, null_p;
    int64_t pbo_splits;
    char notes[400]; /* why something is not known */
} ho_overfit_row;
ho_status ho_store_put_overfit(ho_store *store, const ho_overfit_row *row);

/* Configurations that were tried in the studies this one was started from. */
ho_status ho_store_put_prior_trials(ho_store *store, int64_t trials);

/* A look at the holdout, one row a seed. */
typedef struct ho_look_row {
    int64_t now_ns, trial;
    int seed;
    bool refit;
    const char *user;
    const ho_metric_set *metrics;
    const char *metrics_json;
    int64_t sessions;
    const double *session_return; /* [sessions] */
} ho_look_row;
ho_status ho_store_put_look(ho_store *store, const ho_look_row *row);

typedef struct ho_report_row {
    int64_t number, step, now_ns;
    int objectives;
    double value[HO_STORE_OBJECTIVES_MAX];
    int folds;                /* 0: not known by fold */
    const double *fold_value; /* [folds] */
    bool decided;             /* the rest holds */
    int rung;
    int64_t competitors;
    double threshold;
    const char *verdict, *why;
} ho_report_row;
ho_status ho_store_put_report(ho_store *store, const ho_report_row *row);

/* Population-based training: trial took over parent's agents and goes on with config [P]. */
ho_status ho_store_put_evolution(ho_store *store, int64_t trial, int64_t step, int64_t parent,
                                 const double *config, int params);

/* Importance of parameter `position` of the running space for the first objective. */
ho_status ho_store_put_importance(ho_store *store, int position, const char *method, double value,
                                  int64_t trials);

/* Drops the per-epoch rows of a trial that is not kept (store.epochs). */
ho_status ho_store_put_epochs_deleted(ho_store *store, int64_t trial);

/* fold, seed: -1 for all lanes merged. validation: NaN where the epoch had none. */
ho_status ho_store_put_epoch(ho_store *store, int64_t number, int fold, int seed,
                             const ho_epoch_stat *stat, double validation);

ho_status ho_store_put_baseline(ho_store *store, const char *policy,
                                const ho_window_result *window);

typedef struct ho_worker_row {
    int64_t id;
    const char *name, *host, *device, *device_uuid, *backend, *version, *curve_key;
    int64_t pid, lanes, now_ns;
    bool local;
} ho_worker_row;
ho_status ho_store_put_worker(ho_store *store, const ho_worker_row *row);
/* The number of agents it trains at once, known when it has the data. */
ho_status ho_store_put_worker_lanes(ho_store *store, int64_t id, int64_t lanes);
ho_status ho_store_put_worker_left(ho_store *store, int64_t id, const char *reason,
                                   int64_t finished, int64_t now_ns);

/* trial, worker: -1 for none. */
ho_status ho_store_put_event(ho_store *store, int64_t now_ns, const char *kind, int64_t trial,
                             int64_t attempt, int64_t worker, const char *text);

typedef struct ho_artifact_row {
    int64_t trial, attempt, size, now_ns;
    int fold, seed; /* -1: of the whole trial */
    const char *kind, *path, *sha256;
} ho_artifact_row;
ho_status ho_store_put_artifact(ho_store *store, const ho_artifact_row *row);
ho_status ho_store_put_artifact_deleted(ho_store *store, const char *path, int64_t now_ns);

ho_status ho_store_put_study_state(ho_store *store, const char *state, const char *reason,
                                   int64_t trials, int64_t now_ns);

/* Next free ids, counted in memory. */
int64_t ho_store_next_worker_id(ho_store *store);

/* ---- commit --------------------------------------------------------------------------------- */

/* Numbers of queued and of committed writes; the second reaches the first when all is on disk. */
int64_t ho_store_queued(const ho_store *store);
int64_t ho_store_committed(const ho_store *store);

/* Writes the queue when it is due, or now with force. HO_OK: written or not due. HO_EAGAIN: paused,
 * kept. HO_ESTORE: a row the schema refuses, which is a mistake of this program. now_ns: monotonic.
 */
ho_status ho_store_flush(ho_store *store, int64_t now_ns, bool force, ho_err *err);

/* Nanoseconds until the next flush is due; -1: nothing is queued. */
int64_t ho_store_due_in(const ho_store *store, int64_t now_ns);

/* Why writing is paused, naming the path; NULL: it is not. */
const char *ho_store_paused(const ho_store *store);

#ifdef __cplusplus
}
#endif
#endif
