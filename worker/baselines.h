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

/* Begins all baselines on n windows, window i under env[i], side by side. "random" draws from
 * ho_rng_key(study_seed, a trial number that no trial has, fold i, policy). */
ho_status ho_baselines_begin(ho_market *market, const ho_env_config *env, const ho_window *window,
                             int n, uint64_t study_seed, ho_backtest_job **out, ho_err *err);
/* Waits and ends the job. out: [n, HO_BASELINE_COUNT] with session returns; of "random" the policy
 * whose total return is the median of HO_BASELINE_RANDOM_POLICIES that hold a position half of the
 * time and change it every eighth bar (as an exploring agent does). Free each. */
ho_status ho_baselines_collect(ho_backtest_job **job, int n, ho_backtest_result *out, ho_err *err);

/* What an agent did on a window. */
typedef struct ho_played {
    const ho_env_config *env;
    ho_window window;
    int fold;                        /* of the study */
    const ho_backtest_result *agent; /* with actions */
} ho_played;

/* Begins HO_BASELINE_RANDOM_POLICIES with each agent's own turnover and exposure on its window;
 * *out stays NULL when none of them has any. */
ho_status ho_percentiles_begin(ho_market *market, const ho_played *played, int n,
                               uint64_t study_seed, ho_backtest_job **out, ho_err *err);
/* Waits and ends the job (NULL: nothing was begun). out: [n] the share that made less on the window
 * than the agent did (equal ones count half); NaN where that is not defined. The agents' results
 * are as at the begin. */
ho_status ho_percentiles_collect(ho_backtest_job **job, const ho_played *played, int n, double *out,
                                 ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
