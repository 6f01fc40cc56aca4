/* SPDX-License-Identifier: Apache-2.0
 * [[warm_start]]: the finished trials of other studies are told to the sampler before its first
 * proposal. */
#ifndef HO_COORDINATOR_WARM_START_H
#define HO_COORDINATOR_WARM_START_H

#include "coordinator/search/sampler.h"
#include "study/study.h"

#ifdef __cplusplus
extern "C" {
#endif

/* *told: trials that fitted into this study's space, of all its warm starts. HO_ECONFIG: another
 * study than named, or other objectives. HO_ENOTFOUND, HO_ESTORE: the database. */
ho_status ho_warm_start_tell(ho_sampler *sampler, const ho_study *study, int64_t *told,
                             ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
