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
/* Commands worth trying now. */
void ho_next_commands_print(FILE *out, const char *study, const char *database, bool any_complete);

#ifdef __cplusplus
}
#endif
#endif
