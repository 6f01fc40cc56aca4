/* SPDX-License-Identifier: Apache-2.0
 * What one trial trains and where it is scored: everything a study, a configuration and a market
 * decide, resolved to numbers. Made by lane_config.h, run by cohort_pool.h; the lanes of a plan
 * are numbered fold by fold: lane = agent_fold * seeds + seed. */
#ifndef HO_WORKER_TRIAL_PLAN_H
#define HO_WORKER_TRIAL_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HO_PLAN_OBJECTIVES = 4 };

/* Invariants: lanes = agent_folds * seeds; agent_folds is folds, or 1 where one agent is scored on
 * every test window (folds.refit = "once"); 1 <= eval_every. */
typedef struct ho_trial_plan {
    int64_t number;                        /* of the trial */
    int32_t attempt;                       /* fencing number, from 1 */
    int32_t parameters;                    /* P */
    double *config;                        /* [P] what it was made from; owned, or NULL */
    ho_cohort_key key;                     /* shape */
    int32_t folds, agent_folds;            /* test windows; agents' folds */
    int32_t study_folds;                   /* of the study: more than folds where they are raced */
    int32_t *fold;                         /* [folds] which of the study's; owned, ascending */
    int32_t seeds, lanes;                  /* agents a fold; agents in all */
    ho_lane_config *lane;                  /* [lanes] owned */
    ho_window *validation;                 /* [agent_folds] owned; begin == end: none */
    ho_window *test;                       /* [folds] owned */
    int32_t epochs, eval_every;            /* of training; between validation reports */
    bool select_best;                      /* select = "best_validation" */
    bool may_pause;                        /* pruner.promote: see ho_trial_run_tell_again */
    int32_t objectives;                    /* 1 .. HO_PLAN_OBJECTIVES */
    int32_t objective[HO_PLAN_OBJECTIVES]; /* ho_metric */
} ho_trial_plan;

/* Allocates the arrays for these counts, all zero; the folds are the study's. HO_EINVAL: a count
 * below 1. HO_ENOMEM. */
ho_status ho_trial_plan_create(ho_trial_plan **out, int folds, int agent_folds, int seeds,
                               ho_err *err);
void ho_trial_plan_destroy(ho_trial_plan **plan);

/* Test windows that lane scores: its own fold, or all of them when one agent serves all folds. */
int ho_trial_plan_first_test(const ho_trial_plan *plan, int lane);
int ho_trial_plan_test_count(const ho_trial_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
