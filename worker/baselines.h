/* SPDX-License-Identifier: Apache-2.0
 * What an agent must beat on the same test windows and with the same costs: always flat,
 * buy-and-hold, and random policies. Computed once per study. */
#ifndef HO_WORKER_BASELINES_H
#define HO_WORKER_BASELINES_H

#include "kernels/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HO_BASELINE_RANDOM_POLICIES = 100 };

/* Names as in the store and the protocol. */
#define HO_BASELINE_MAP(X)                                                                         \
    X(FLAT, "flat", HO_POLICY_FLAT)                                                                \
    X(BUY_HOLD, "buy_and_hold", HO_POLICY_BUY_HOLD)                                                \
    X(RANDOM, "random", HO_POLICY_RANDOM)

typedef enum ho_baseline {
#define HO_BASELINE_ENUM(id, name, policy) HO_BASELINE_##id,
    HO_BASELINE_MAP(HO_BASELINE_ENUM)
#undef HO_BASELINE_ENUM
        HO_BASELINE_COUNT
} ho_baseline;

const char *ho_baseline_name(ho_baseline baseline);

/* Scores one baseline on one window under env, with session returns. "random" gives the policy
 * whose total return is the median of HO_BASELINE_RANDOM_POLICIES that hold a position half of the
 * time and change it every eighth bar (as an exploring agent does); they draw from
 * ho_rng_key(study_seed, a trial number that no trial has, fold, policy). Free the result. */
ho_status ho_baseline_score(ho_market *market, ho_baseline baseline, const ho_env_config *env,
                            ho_window window, uint64_t study_seed, int fold,
                            ho_backtest_result *out, ho_err *err);

/* The share of HO_BASELINE_RANDOM_POLICIES with the agent's own turnover and exposure that made
 * less on the window than the agent did (equal ones count half). agent: its result there, with
 * actions. NaN when it is not defined. */
ho_status ho_baseline_percentile(ho_market *market, const ho_env_config *env, ho_window window,
                                 uint64_t study_seed, int fold, const ho_backtest_result *agent,
                                 double *out, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
