/* SPDX-License-Identifier: Apache-2.0
 * From a study's [sampler], [pruner] and [study] keys to the options of coordinator/search. */
#ifndef HO_COORDINATOR_SEARCH_OPTIONS_H
#define HO_COORDINATOR_SEARCH_OPTIONS_H

#include "coordinator/search/pruner.h"
#include "coordinator/search/sampler.h"
#include "study/study.h"

#ifdef __cplusplus
extern "C" {
#endif

/* trials: the study's target. */
ho_sampler_options ho_search_sampler_options(const ho_study *study, int64_t trials);
ho_pruner_options ho_search_pruner_options(const ho_study *study, int64_t trials);

/* study.parallel; auto: trials / 10, from 1 to 16. */
int64_t ho_search_parallel(const ho_study *study, int64_t trials);

#ifdef __cplusplus
}
#endif
#endif
