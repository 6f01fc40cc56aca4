/* SPDX-License-Identifier: Apache-2.0
 * One trial while it runs on this worker: where each lane stands, the epoch rows that are not yet
 * complete, the scores of the test windows. Scheduling is cohort_pool.h's business.
 *
 * A row of the trial (one epoch) is handed out only when every lane has passed that epoch, and is
 * summed in the order of lanes, so that what a trial reports does not depend on how many of its
 * lanes ran side by side. */
#ifndef HO_WORKER_TRIAL_RUN_H
#define HO_WORKER_TRIAL_RUN_H

#include "worker/lane_prepare.h"
#include "worker/trial_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A decision on a report is back before the trial is so many epochs further. */
enum { HO_ROWS_KEPT = 64 };

typedef enum ho_lane_phase { HO_LANE_WAITING, HO_LANE_RUNNING, HO_LANE_FINISHED } ho_lane_phase;

typedef struct ho_lane_run {
    ho_lane_phase phase;
    int slot;                /* in the cohort, while running */
    int32_t epoch;           /* epochs done */
    double best;             /* best validation value, NaN before the first defined one */
    int32_t best_epoch;      /* its epoch, 0 before */
    ho_tensors best_weights; /* with select = "best_validation" */
    ho_tensors weights;      /* what the test window was scored with; set when finished */
    void *blob;              /* to restore from instead of a fresh start, or NULL */
    size_t blob_size;
    ho_prepared
        *prepared; /* initial weights of a waiting lane without a blob; NULL: not asked for */
} ho_lane_run;

/* One epoch of all lanes, until the last lane has passed it. */
typedef struct ho_epoch_row {
    int32_t noted;       /* lanes */
    int32_t awaited;     /* lanes whose values are on their way */
    bool scored;         /* values hold something, or will */
    ho_epoch_stat *stat; /* [lanes] */
    double *value;       /* [lanes, objectives] NaN where not scored */
    double *fold_value;  /* [agent_folds] */
} ho_epoch_row;

/* A complete row: the epoch of all lanes. */
typedef struct ho_trial_epoch {
    int32_t epoch;
    ho_epoch_stat stat;               /* lanes merged, see ho_epoch_stat_merge */
    bool scored;                      /* a validation epoch */
    double value[HO_PLAN_OBJECTIVES]; /* mean over the lanes where it is defined; NaN: nowhere */
    double *fold_value;               /* [agent_folds] first objective, mean over seeds; NaN */
} ho_trial_epoch;

typedef struct ho_trial_run {
    ho_trial_plan *plan;      /* owned */
    ho_lane_run *lane;        /* [plan->lanes] */
    ho_epoch_row **row;       /* [plan->epochs] NULL: no lane there yet, or forgotten */
    int32_t rows_out;         /* rows handed out */
    ho_backtest_result *test; /* [folds, seeds], filled as lanes finish */
    int32_t finished;         /* lanes whose test windows are scored */
    int32_t awaited;          /* values on their way, of all rows */
    ho_backtest_job *after;   /* of the sink's `ending`: the trial ends when it is ready; or NULL */
    int64_t started_ns;       /* monotonic; 0 before the first lane starts */
    int64_t ended_ns;
    int64_t experiences, updates; /* over all lanes */
} ho_trial_run;

/* Takes the plan in every case. */
ho_status ho_trial_run_create(ho_trial_run **out, ho_trial_plan **plan, ho_err *err);
void ho_trial_run_destroy(ho_trial_run **run);

/* Notes the statistics of lane's next epoch; values: [objectives] of the validation window, or
 * NULL in an epoch without one. HO_ENOMEM. */
ho_status ho_trial_run_note(ho_trial_run *run, int lane, const ho_epoch_stat *stat,
                            const double *values, ho_err *err);

/* The same in an epoch whose validation window is being scored: the row waits for the values. */
ho_status ho_trial_run_await(ho_trial_run *run, int lane, const ho_epoch_stat *stat, ho_err *err);
/* They are there; epoch from 1. Also the best of the lane so far. */
void ho_trial_run_value(ho_trial_run *run, int lane, int epoch, const double *values);

/* Row of an epoch (from 0) with room for all lanes, made when there is none yet; NULL: no memory.
 */
ho_epoch_row *ho_trial_run_row(ho_trial_run *run, int epoch);

/* Drops all rows, handed out or not. */
void ho_trial_run_clear_rows(ho_trial_run *run);

/* Fills *out with the next complete row, which is told then; false when there is none. The arrays
 * of *out stay valid until the next call or destroy. */
bool ho_trial_run_next_row(ho_trial_run *run, ho_trial_epoch *out);

/* Rows behind `epoch` will be handed out once more, as far as they are kept: the newest
 * HO_ROWS_KEPT of a trial that may be paused. */
void ho_trial_run_tell_again(ho_trial_run *run, int epoch);

/* Merges n lanes' statistics in order: means of means, smallest minima, largest maxima, sums of
 * counts; the state of the first lane that is not active. */
void ho_epoch_stat_merge(ho_epoch_stat *out, const ho_epoch_stat *lane, int n);

/* Whether value is a better objective than best (NaN: none yet); false for a NaN value. */
bool ho_objective_better(int metric, double value, double best);

#ifdef __cplusplus
}
#endif
#endif
