/* SPDX-License-Identifier: Apache-2.0
 * The table of settings: every key of a study file is one row here, and nowhere else.
 * Parsing, ranges, help, docs/settings.md and the wire walk it. A row is
 *
 *   X(ID, "dotted.name", TYPE, ROLE, FLAGS, low, high, "default", "choices", "unit", "help")
 *
 * TYPE, ROLE and FLAGS are explained in settings.h. low and high are inclusive and count for
 * numbers (durations in seconds). The default is text as it would stand in the study file, a list
 * with commas; NONE: the key has no value until it is set. Choices are split by '|' and stand in
 * the order of the enum that they become (kernels/env/config.h, kernels/agent_config.h). */
#ifndef HO_STUDY_SETTINGS_TABLE_H
#define HO_STUDY_SETTINGS_TABLE_H

#include "study/settings_agent.h"
#include "study/settings_env.h"
#include "study/settings_market.h"
#include "study/settings_run.h"

#define HO_SETTINGS(X)                                                                             \
    HO_SETTINGS_STUDY(X)                                                                           \
    HO_SETTINGS_DATA(X)                                                                            \
    HO_SETTINGS_INSTRUMENT(X)                                                                      \
    HO_SETTINGS_FEATURES(X)                                                                        \
    HO_SETTINGS_FOLDS(X)                                                                           \
    HO_SETTINGS_ENV(X)                                                                             \
    HO_SETTINGS_REWARD(X)                                                                          \
    HO_SETTINGS_AGENT(X)                                                                           \
    HO_SETTINGS_DQN(X)                                                                             \
    HO_SETTINGS_PPO(X)                                                                             \
    HO_SETTINGS_GUARD(X)                                                                           \
    HO_SETTINGS_SEARCH(X)                                                                          \
    HO_SETTINGS_PROCESS(X)

#endif
