/* SPDX-License-Identifier: Apache-2.0
 * From a worker's result message to what the store and the sampler take: every window checked, each
 * seed's windows joined to one series, objective values, constraints. */
#ifndef HO_COORDINATOR_SCORING_H
#define HO_COORDINATOR_SCORING_H

#include "coordinator/setup.h"
#include "coordinator/store.h"
#include "study/wire.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Session returns are borrowed from the message. */
typedef struct ho_scored_trial {
    ho_trial_result result;
    ho_window_result *window; /* [result.windows]: the message's, then one joined a seed */
    double constraint[HO_CONSTRAINTS_MAX];
    int folds;                       /* scored */
    double fold_value[HO_FOLDS_MAX]; /* by fold of the study: first objective, mean over seeds; NaN:
                                        not run, undefined */
    char reason[160];
} ho_scored_trial;

/* Where trials are raced over folds (study.race_folds), the windows may be of some folds only, and
 * the joined series is made here, the same way for all trials. HO_EPROTO: the windows are not every
 * (fold, seed) of the study once, or not every seed of the folds there are. */
ho_status ho_score_trial(const ho_setup *setup, const ho_message *message, ho_scored_trial *out,
                         ho_err *err);
void ho_scored_trial_free(ho_scored_trial *scored);

/* Puts the baselines, each fold and joined. HO_EPROTO as above. */
ho_status ho_score_baselines(const ho_setup *setup, const ho_msg_baseline *message, ho_store *store,
                             ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
