/* SPDX-License-Identifier: Apache-2.0
 * Scores lanes of a cohort on windows of the market: validation between epochs, the test windows
 * once at a trial's end. All windows of one call go to the backend together. */
#ifndef HO_WORKER_LANE_SCORE_H
#define HO_WORKER_LANE_SCORE_H

#include "worker/trial_run.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_lane_ref {
    ho_trial_run *run;
    int lane; /* running in a slot of the cohort */
} ho_lane_ref;

/* value: [n, HO_PLAN_OBJECTIVES], the plan's objectives on the lane's validation window. */
ho_status ho_score_validation(ho_market *market, ho_cohort *cohort, const ho_lane_ref *ref, int n,
                              double *value, ho_err *err);

/* Fills run->test[] of the lanes' test windows, with sessions, bars, trades and recorded actions.
 */
ho_status ho_score_tests(ho_market *market, ho_cohort *cohort, const ho_lane_ref *ref, int n,
                         ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
