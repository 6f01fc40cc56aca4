/* SPDX-License-Identifier: Apache-2.0
 * One trial as a person reads it: its state, its parameters as TOML, its folds beside the
 * baselines, its reports and events. */
#ifndef HO_COORDINATOR_TRIAL_PRINT_H
#define HO_COORDINATOR_TRIAL_PRINT_H

#include <stdio.h>

#include "coordinator/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The number of the best trial. HO_ENOTFOUND: none is complete. */
ho_status ho_trial_best(ho_store *store, int64_t *number, ho_err *err);

/* State, times, objective values. HO_ENOTFOUND: no such trial. */
ho_status ho_trial_print_head(FILE *out, ho_store *store, int64_t number, ho_err *err);
/* "dqn.learning_rate = 0.0003", grouped in TOML tables, ready to paste into a study file. */
ho_status ho_trial_print_toml(FILE *out, ho_store *store, int64_t number, ho_err *err);
/* Each fold and the joined series, beside the baselines. */
ho_status ho_trial_print_folds(FILE *out, ho_store *store, int64_t number, ho_err *err);
/* Reports with the pruner's decisions, artifacts, events. */
ho_status ho_trial_print_history(FILE *out, ho_store *store, int64_t number, ho_err *err);
/* How the sampler came to it. */
ho_status ho_trial_print_why(FILE *out, ho_store *store, int64_t number, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
