/* SPDX-License-Identifier: Apache-2.0
 * What a person sees when a run ends, and in `status`: the best trials beside the baselines, how
 * many were tried, and what to do next. */
#ifndef HO_COORDINATOR_LEADERBOARD_H
#define HO_COORDINATOR_LEADERBOARD_H

#include <stdio.h>

#include "coordinator/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The best `count` trials and the baselines, one table. */
ho_status ho_leaderboard_print(FILE *out, ho_store *store, int count, ho_err *err);
/* Trials by state, time, the overfitting statistics where they are known. */
ho_status ho_summary_print(FILE *out, ho_store *store, ho_err *err);
/* The newest overfitting statistics with what they mean; nothing when there are none. */
void ho_overfit_print(FILE *out, ho_store *store);
/* The best trial beside the baselines, in a sentence; nothing when no trial is complete. */
ho_status ho_verdict_print(FILE *out, ho_store *store, ho_err *err);
/* Commands worth trying now, by what the study holds. study: its file, or NULL. */
void ho_next_commands_print(FILE *out, ho_store *store, const char *study);

#ifdef __cplusplus
}
#endif
#endif
