/* SPDX-License-Identifier: Apache-2.0
 * A stored trial trained again from the database alone, by a local worker (worker/job_train.c). */
#ifndef HO_COORDINATOR_RERUN_H
#define HO_COORDINATOR_RERUN_H

#include "coordinator/job.h"
#include "coordinator/store.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ho_rerun_windows {
    HO_RERUN_FOLDS,   /* every fold on its test window */
    HO_RERUN_HOLDOUT, /* the last fold's agents on the holdout */
    HO_RERUN_REFIT,   /* agents trained on all bars before the holdout, on the holdout */
    HO_RERUN_ACTIONS, /* trains nothing: every fold's recorded actions (worker/job_verify.c) */
} ho_rerun_windows;

typedef struct ho_rerun_trial {
    int64_t number;
    ho_trial_state state;
    ho_trial_source source;
    int seeds;
    ho_fold_plan folds; /* of the study */
} ho_rerun_trial;

enum { HO_RERUN_COSTS_MAX = 16 };

/* Blocks while it trains; the elapsed time is shown on a terminal. out->window holds one window per
 * (fold, seed), fold -1 the holdout; free it with ho_job_answer_free.
 * HO_ENOTFOUND: no such trial. HO_EDATA: the data changed. HO_ECONFIG: it cannot be trained alone
 * (a population), or its parameters fit the study no more. Else as ho_job_call. */
ho_status ho_rerun(ho_store *store, int64_t number, ho_rerun_windows windows, bool cpu,
                   ho_rerun_trial *trial, ho_job_answer *out, ho_err *err);

/* HO_RERUN_ACTIONS on the CPU; the answer's body has the joined metrics at other costs, and the
 * first `trades` trades of seed 0 (worker/job_verify.c). costs: [count] factors, count at most
 * HO_RERUN_COSTS_MAX. */
ho_status ho_rerun_actions(ho_store *store, int64_t number, const double *costs, int count,
                           int trades, ho_rerun_trial *trial, ho_job_answer *out, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
