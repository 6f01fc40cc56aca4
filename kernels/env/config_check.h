/* SPDX-License-Identifier: Apache-2.0
 * Defaults of the environment settings and the ranges a step relies on. */
#ifndef HO_KERNELS_ENV_CONFIG_CHECK_H
#define HO_KERNELS_ENV_CONFIG_CHECK_H

#include "kernels/env/config.h"
#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The defaults of spec/environment.md; max_lots 1, sigma_ref 0.001 (both are resolved per lane by
 * env/sizing.h). */
ho_env_config ho_env_config_defaults(void);

/* HO_EINVAL: a number outside what ho_env_step is defined for; err names the study key. */
ho_status ho_env_config_check(const ho_env_config *config, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
