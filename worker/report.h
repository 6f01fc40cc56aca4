/* SPDX-License-Identifier: Apache-2.0
 * What the pool and the study give, as messages: epoch rows, results with their artifacts,
 * failures, baselines. */
#ifndef HO_WORKER_REPORT_H
#define HO_WORKER_REPORT_H

#include "market/bars.h"
#include "market/features.h"
#include "worker/cohort_pool.h"
#include "worker/lane_config.h"
#include "worker/link.h"

#ifdef __cplusplus
extern "C" {
#endif

/* parent: the trial whose agents this one has taken over since its last row, with the configuration
 * [parameters] that it trains on with; -1 and NULL: none. */
ho_status ho_report_epoch(ho_link *link, const ho_trial_run *run, const ho_trial_epoch *row,
                          int64_t parent, const double *config, int parameters, ho_err *err);

/* Sends the agents of a finished trial as files (worker/model.h), unless store.keep_best is 0 or
 * the plan has no configuration. Before ho_report_result. */
ho_status ho_report_weights(ho_link *link, const ho_trial_run *run, const ho_study *study,
                            const ho_bars *bars, const ho_features *features, ho_err *err);

/* All windows of a trial are scored: begins to compare it with random policies (run->after), where
 * that takes fewer steps than the training took. */
ho_status ho_report_ending(ho_trial_run *run, ho_market *market, uint64_t study_seed, ho_err *err);

/* Artifacts first (recorded actions of every test window), then the result:
 * every window and each seed's joined series (fold -1), for which bars and trades are used and then
 * dropped. Takes the arrays of run->test, and run->after, for which it waits. bars: of the market.
 */
ho_status ho_report_result(ho_link *link, ho_trial_run *run, const ho_bars *bars, ho_err *err);

/* The same two of a [command] study. */
ho_status ho_report_command_epoch(ho_link *link, int64_t trial, int32_t attempt, int32_t epoch,
                                  const double *values, int count, ho_err *err);
ho_status ho_report_command_result(ho_link *link, int64_t trial, int32_t attempt, int32_t epochs,
                                   double seconds, const double *values, int count, ho_err *err);

ho_status ho_report_failure(ho_link *link, int64_t trial, int32_t attempt,
                            const ho_trial_failure *failure, ho_err *err);

/* A failure of a trial that no pool has seen: its configuration, or it is handed back. */
ho_status ho_report_refusal(ho_link *link, int64_t trial, int32_t attempt, ho_fail_class class_id,
                            const char *reason, ho_err *err);

/* Sends a file in chunks. name: as ho_msg_chunk.name. */
ho_status ho_report_file(ho_link *link, ho_chunk_kind kind, int64_t trial, int32_t attempt,
                         const char *name, const void *data, size_t size, ho_err *err);

/* Begins to score the baselines on all test windows, under the study's settings without a
 * trial's. */
ho_status ho_report_baselines_begin(ho_market *market, const ho_lane_context *context,
                                    ho_backtest_job **out, ho_err *err);
/* Waits for them and sends them. Ends the job in every case. */
ho_status ho_report_baselines(ho_link *link, ho_backtest_job **job, int folds, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
