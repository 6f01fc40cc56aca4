/* SPDX-License-Identifier: Apache-2.0
 * The lists of an evaluation as CSV files: trades, equity by bar, actions. Numbers read back to the
 * same bits. A file appears whole or not at all. */
#ifndef HO_WORKER_EVALUATION_FILES_H
#define HO_WORKER_EVALUATION_FILES_H

#include "worker/evaluation.h"

#ifdef __cplusplus
extern "C" {
#endif

ho_status ho_evaluation_write_trades(const ho_evaluation *evaluation, const ho_evaluation_run *run,
                                     const char *path, ho_err *err);
ho_status ho_evaluation_write_equity(const ho_evaluation *evaluation, const ho_evaluation_run *run,
                                     const char *path, ho_err *err);
/* HO_EUNSUPPORTED: the run has no actions (signals). */
ho_status ho_evaluation_write_actions(const ho_evaluation *evaluation, const ho_evaluation_run *run,
                                      const char *path, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
