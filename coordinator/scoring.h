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
    char reason[160];
} ho_scored_trial;

/* HO_EPROTO: the windows are not every (fold, seed) of the study once. */
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
