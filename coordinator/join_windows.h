/* SPDX-License-Identifier: Apache-2.0
 * A seed's test windows as one out-of-sample series. */
#ifndef HO_COORDINATOR_JOIN_WINDOWS_H
#define HO_COORDINATOR_JOIN_WINDOWS_H

#include "market/bars.h"
#include "study/folds.h"
#include "study/wire.h"

#ifdef __cplusplus
extern "C" {
#endif

/* window: [plan->count] in the order of folds, each with session returns.
 * Returns compound over the folds' sessions; the drawdown is the deeper of each fold's own (per
 * bar) and the one across folds (per session); counts and money are sums, shares are weighted. What
 * needs the single trades (SQN) is undefined. HO_EPROTO: a window without session returns. */
ho_status ho_join_windows(const ho_bars *bars, const ho_fold_plan *plan,
                          const ho_scored_window *const *window, ho_metric_set *out, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
