/* SPDX-License-Identifier: Apache-2.0
 * dqn.batch = "auto": measured once per study by a local worker before the first trial, kept in the
 * study's row, and sent to every worker with the study. */
#ifndef HO_COORDINATOR_AUTO_BATCH_H
#define HO_COORDINATOR_AUTO_BATCH_H

#include "coordinator/setup.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fills setup->auto_batch where the study needs it: from the store, else by a measurement that the
 * store then keeps. local: a local worker may be started; cpu: on the CPU backend.
 * HO_ECONFIG: needed, not measured yet, and no local worker. Otherwise as ho_job_call. */
ho_status ho_auto_batch_find(ho_setup *setup, ho_store *store, const ho_store_info *info,
                             bool local, bool cpu, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
