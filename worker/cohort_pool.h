/* SPDX-License-Identifier: Apache-2.0
 * Continuous batching (DESIGN.md, idea 2): trials enter as plans, their lanes take slots of cohorts
 * of their key, all active lanes of a cohort advance one epoch together, and at the epoch boundary
 * finished, pruned and diverged lanes leave and waiting ones enter.
 *
 * All lanes of a trial start together; a trial larger than its cohort starts fold by fold, one
 * larger than that lane by lane. First come, first served within a key. When memory is short a new
 * cohort evicts idle ones, then halves itself. One thread. */
#ifndef HO_WORKER_COHORT_POOL_H
#define HO_WORKER_COHORT_POOL_H

#include "worker/trial_run.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_pool ho_pool;

/* Why a trial ended without a result; each has its own policy of requeueing at the coordinator. */
typedef enum ho_failure_kind {
    HO_FAILURE_CONFIG,   /* this configuration can never run */
    HO_FAILURE_DIVERGED, /* the guard stopped a lane */
    HO_FAILURE_OOM,      /* not even one lane fits */
    HO_FAILURE_DEVICE,   /* the device context is gone */
    HO_FAILURE_INTERNAL, /* the backend failed otherwise */
} ho_failure_kind;

typedef struct ho_trial_failure {
    ho_failure_kind kind;
    int32_t lane, fold, seed; /* -1 where none is meant */
    int32_t epoch;            /* epochs done by that lane */
    int64_t update;           /* at which the guard tripped; -1 otherwise */
    const char *reason;       /* for people */
} ho_trial_failure;

/* Called from ho_pool_step. The run of `finished` is complete (tests, weights) and may be emptied
 * by the callee; the pool destroys it afterwards. */
typedef struct ho_pool_sink {
    void *user;
    void (*epoch)(void *user, const ho_trial_run *run, const ho_trial_epoch *row);
    void (*finished)(void *user, ho_trial_run *run);
    void (*failed)(void *user, const ho_trial_run *run, const ho_trial_failure *failure);
    /* all windows are scored; may leave a job in run->after, for which the trial waits. NULL: none
     */
    void (*ending)(void *user, ho_trial_run *run);
} ho_pool_sink;

typedef struct ho_pool_options {
    ho_backend *backend;
    ho_market *market; /* outlives the pool */
    int lanes;         /* agents trained at once on this device; 0: from free memory and gain */
    int together; /* with lanes 0: at least so many, which must train side by side (population) */
    bool overlap; /* on a GPU: see ho_pool_step */
    int64_t (*clock_ns)(void); /* with which the gain of more lanes is measured; NULL: monotonic */
    ho_pool_sink sink;
} ho_pool_options;

ho_status ho_pool_create(ho_pool **out, const ho_pool_options *options, ho_err *err);
void ho_pool_destroy(ho_pool **pool);

/* Takes the plan in every case. HO_EINVAL: the trial is here already with this attempt. */
ho_status ho_pool_add(ho_pool *pool, ho_trial_plan **plan, ho_err *err);

/* The same, going on from a checkpoint. A checkpoint that does not fit is logged and the trial
 * starts anew. */
ho_status ho_pool_resume(ho_pool *pool, ho_trial_plan **plan, const void *blob, size_t size,
                         ho_err *err);

/* A started trial as a blob (checkpoint.h). HO_ENOTFOUND: not here, or not started. HO_EAGAIN: an
 * epoch of it is under way, ho_pool_settle first; so too in the next two. */
ho_status ho_pool_checkpoint(ho_pool *pool, int64_t number, int32_t attempt, bool replay,
                             void **blob, size_t *size, ho_err *err);

/* A checkpoint with which another worker goes on as if the trial had not been paused after its
 * report of `epoch`: with the replay ring, and what was told since is told again there. */
ho_status ho_pool_pause(ho_pool *pool, int64_t number, int32_t attempt, int32_t epoch, void **blob,
                        size_t *size, ho_err *err);

/* Population: the lanes of trial dst take weights, moments and targets of the same lanes of trial
 * src, and dst trains on with these numbers; config [parameters] is noted in its plan. HO_EINVAL:
 * not both training in one cohort, or the numbers are refused (err says why); dst is as before
 * then. */
ho_status ho_pool_copy(ho_pool *pool, int64_t dst, int64_t src, const ho_agent_config *agent,
                       const double *config, ho_err *err);

/* Lanes stop now, between two epochs; the sink hears nothing. false: no such trial and attempt
 * (attempt 0: any). */
bool ho_pool_drop(ho_pool *pool, int64_t number, int32_t attempt);

/* Admits what fits, then runs one epoch of the next cohort that has active lanes. *worked is false
 * when there was nothing to run. HO_EGPU: the device is gone, every trial was reported as failed;
 * close and leave. Other failures of the backend are failures of the trials concerned.
 *
 * With `overlap` a GPU does not wait for the host: epochs of all cohorts are under way at once, the
 * next one behind them unless a lane enters or leaves, is scored or may be pruned first; windows
 * are scored beside the epochs that follow; what a step has learned is told while the next one's
 * epochs run. What a trial reports is the same, in the same order; only between trials the order
 * depends on time, so a population does without. */
ho_status ho_pool_step(ho_pool *pool, bool *worked, ho_err *err);

/* Ends and tells what is under way, so that every trial, or `trial` alone (-1: all), stands where
 * its last row says; other cohorts than that trial's train on. HO_EGPU as above. */
ho_status ho_pool_settle(ho_pool *pool, int64_t trial, ho_err *err);

/* Where the time went since the pool was made, in nanoseconds of this thread but for device_ns. */
typedef struct ho_pool_times {
    int64_t device_ns;           /* at least one epoch was under way */
    int64_t waiting_ns;          /* for an epoch's statistics */
    int64_t entering_ns;         /* lanes entered and left; cohorts were made */
    int64_t scoring_ns;          /* windows were begun and collected */
    int64_t telling_ns;          /* the sink was told */
    int64_t epochs, lane_epochs; /* of cohorts, and of their lanes */
} ho_pool_times;

ho_pool_times ho_pool_spent(const ho_pool *pool);

/* Trials held here, oldest first; the pointers stay valid until the pool changes. */
int ho_pool_trials(const ho_pool *pool, const ho_trial_run **run, int room);
/* Cohort keys held. */
int ho_pool_keys(const ho_pool *pool, const ho_cohort_key **key, int room);
int ho_pool_active_lanes(const ho_pool *pool);
/* Lanes of trials that no slot has taken yet. */
int ho_pool_waiting_lanes(const ho_pool *pool);
/* Lanes this device trains at once: the option, or what "auto" gave the last cohort; before the
 * first cohort what it would give for trials of trial_lanes. */
int ho_pool_lane_capacity(const ho_pool *pool, int trial_lanes);

#ifdef __cplusplus
}
#endif
#endif
