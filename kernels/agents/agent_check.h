/* SPDX-License-Identifier: Apache-2.0
 * Defaults of an agent's shape and numbers (spec/agents.md), and the ranges both backends rely on.
 */
#ifndef HO_KERNELS_AGENTS_AGENT_CHECK_H
#define HO_KERNELS_AGENTS_AGENT_CHECK_H

#include "kernels/agent_config.h"
#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HO_WIDTH_MAX = 4096, HO_ATOMS_MAX = 255, HO_NSTEP_MAX = 255, HO_BATCH_MAX = 1 << 20 };

/* Updates follow from replay_ratio 1: episodes * episode_length / batch. */
ho_cohort_key ho_cohort_key_defaults(ho_algorithm algorithm);
ho_agent_config ho_agent_config_defaults(ho_algorithm algorithm);

/* C51's default support: 3 / sqrt(1 - gamma^2). */
double ho_default_v_max(double gamma);

/* HO_EINVAL; err names the field. */
ho_status ho_cohort_key_check(const ho_cohort_key *key, ho_err *err);
ho_status ho_agent_config_check(const ho_cohort_key *key, const ho_agent_config *agent,
                                ho_err *err);

/* Gradient steps of an epoch, and environment steps of each episode slot in it. */
int32_t ho_epoch_updates(const ho_cohort_key *key);
int32_t ho_epoch_steps(const ho_cohort_key *key);

#ifdef __cplusplus
}
#endif
#endif
