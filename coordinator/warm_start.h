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

/* *tried: what those studies tried in all, their own warm starts included: the best of this study
 * is chosen from these, too. HO_ECONFIG: another study than named, or other objectives.
 * HO_ENOTFOUND, HO_ESTORE: the database. */
ho_status ho_warm_start_tell(ho_sampler *sampler, const ho_study *study, int64_t *tried,
                             ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
