/* SPDX-License-Identifier: Apache-2.0
 * What leaves a study's file in other forms. Each function writes a whole file or none. */
#ifndef HO_COORDINATOR_EXPORT_H
#define HO_COORDINATOR_EXPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "coordinator/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One row a trial: state, objectives, parameters, metrics of the joined out-of-sample series (means
 * over seeds). RFC 4180; NULL is empty; times are ISO 8601 UTC; one type a column, so that Parquet
 * writers take it as it is. */
ho_status ho_export_csv(ho_store *store, FILE *out, ho_err *err);

/* A study file in which the trial's parameters stand as settings, without a search. */
ho_status ho_export_config(ho_store *store, int64_t trial, FILE *out, ho_err *err);

/* A SQLite file of Optuna's tables (rollback journal), for its browser dashboard. An existing file
 * is replaced. HO_EIO, HO_ESTORE. */
ho_status ho_export_optuna(const char *db_path, const char *path, ho_err *err);

/* Copies the weights that are kept of a trial into a folder, which is made; as ONNX models
 * (study/onnx.h) when `onnx`. HO_ENOTFOUND: none are kept. */
ho_status ho_export_model(ho_store *store, int64_t trial, const char *folder, bool onnx,
                          int *copied, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
