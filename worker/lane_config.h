/* SPDX-License-Identifier: Apache-2.0
 * From a study to numbers a backend takes: the settings of one trial (the study's with the trial's
 * parameters applied), the folds and the market give a ho_trial_plan. All "auto" values that
 * depend on the train window or on other settings are resolved here. */
#ifndef HO_WORKER_LANE_CONFIG_H
#define HO_WORKER_LANE_CONFIG_H

#include "market/bars.h"
#include "study/folds.h"
#include "study/study.h"
#include "worker/trial_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What all trials of a study share. All borrowed; they outlive the plans' making. */
typedef struct ho_lane_context {
    const ho_study *study;
    const ho_fold_plan *folds;
    const ho_bars *bars;
    int32_t market_features; /* F of the loaded market */
    int32_t auto_batch;      /* measured for dqn.batch = "auto"; 0: not measured */
} ho_lane_context;

/* Shape of the trial's agents. HO_ECONFIG: err names the keys that do not go together. */
ho_status ho_lane_config_key(const ho_settings *trial, int32_t market_features, int32_t auto_batch,
                             ho_cohort_key *out, ho_err *err);

/* The agent's numbers; key as made above. */
ho_status ho_lane_config_agent(const ho_settings *trial, const ho_cohort_key *key,
                               ho_agent_config *out, ho_err *err);

/* The environment over one train window: size, sigma_ref and target_vol from its bars.
 * HO_ECONFIG: the capital buys no lot, or the window has no variation. */
ho_status ho_lane_config_env(const ho_settings *trial, const ho_bars *bars, ho_window train,
                             ho_env_config *out, ho_err *err);

/* What is asked of one trial. Borrowed. */
typedef struct ho_lane_trial {
    int64_t number;
    int32_t attempt;
    uint64_t seed;        /* of the study */
    const double *config; /* [P] */
    int32_t fold_count;   /* folds to run; 0: all */
    const int32_t *fold;  /* [fold_count] ascending */
} ho_lane_trial;

/* The whole plan of a trial. Lane (fold f of the study, seed s) draws from ho_rng_key(seed, number,
 * f, s), whichever folds run beside it. HO_ECONFIG, HO_EINVAL or HO_EDATA: this configuration
 * cannot run on this market, err says why. */
ho_status ho_lane_config_plan(const ho_lane_context *context, const ho_lane_trial *asked,
                              ho_trial_plan **out, ho_err *err);

/* may_change [P]: the parameters of a configuration that a running agent can take (numbers of its
 * learning), because neither shape, environment nor length of the trial follow from them. */
ho_status ho_lane_config_may_change(const ho_lane_context *context, const double *config,
                                    bool *may_change, ho_err *err);

/* The agent's numbers under a configuration. */
ho_status ho_lane_config_agent_of(const ho_lane_context *context, const double *config,
                                  ho_agent_config *out, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
