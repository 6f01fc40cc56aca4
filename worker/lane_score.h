/* SPDX-License-Identifier: Apache-2.0
 * Scores lanes of a cohort on windows of the market: validation between epochs, the test windows
 * once at a trial's end. All windows of one call go to the backend together, as a job that runs
 * beside the epochs that follow. */
#ifndef HO_WORKER_LANE_SCORE_H
#define HO_WORKER_LANE_SCORE_H

#include "worker/trial_run.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_lane_ref {
    ho_trial_run *run; /* NULL: it ended meanwhile */
    int lane;          /* running in a slot of the cohort when the score begins */
} ho_lane_ref;

/* Windows of lanes that are being scored. */
typedef struct ho_score {
    ho_backtest_job *job;
    bool tests;       /* all test windows of each lane, else its validation window */
    int n, total;     /* lanes; windows of all */
    ho_lane_ref *ref; /* [n] */
    int32_t *epoch;   /* [n] after which the lane is scored */
    int32_t *windows; /* [n] of each lane */
} ho_score;

/* Takes the lanes as they are now, between two epochs. A validation epoch has been noted with
 * ho_trial_run_await before. Test windows come with sessions, bars, trades and recorded actions. */
ho_status ho_score_begin(ho_market *market, ho_cohort *cohort, const ho_lane_ref *ref, int n,
                         bool tests, ho_score **out, ho_err *err);
bool ho_score_ready(const ho_score *score);
/* Lanes of this run are no longer asked for. */
void ho_score_forget(ho_score *score, const ho_trial_run *run);
/* Waits; gives the values to the runs (ho_trial_run_value), or the results to run->test[] and
 * counts the lanes as finished. On failure the runs are as before. Once; then drop it. */
ho_status ho_score_collect(ho_score *score, ho_err *err);
void ho_score_drop(ho_score **score);

#ifdef __cplusplus
}
#endif
#endif
