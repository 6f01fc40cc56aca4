/* SPDX-License-Identifier: Apache-2.0
 * One pass of a policy over one window: the state between steps and what it collects. Used by
 * backtest.c, which decides who acts; a pass belongs to one thread at a time. */
#ifndef HO_KERNELS_CPU_PASS_H
#define HO_KERNELS_CPU_PASS_H

#include <stdint.h>

#include "kernels/backend.h"
#include "kernels/env/market_host.h"
#include "kernels/env/rules.h"
#include "kernels/env/step.h"
#include "kernels/metrics/metrics.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_cpu_pass {
    const ho_backtest_request *request;
    const ho_market_host *host;
    ho_backtest_result *result;
    ho_env_lane lane;
    ho_env env;
    ho_ledger ledger;
    ho_bar_stats bars;
    uint32_t ring[HO_RING_WORDS_MAX];
    int32_t state_width;
    int64_t steps_max; /* bars of the window - 1 */
    int64_t steps;
    int done;
    double before;        /* equity before the last step */
    double session_start; /* equity at the end of the session before */
    ho_rule rule;
    int64_t session_room, trade_room;
    double *session_return; /* grows; moves into the result when wanted */
    int32_t *session_id;
    ho_trade *trades;
} ho_cpu_pass;

/* env: checked settings; length: bars between anchors, 0 = the default episode. */
ho_status ho_cpu_pass_begin(ho_cpu_pass *p, ho_market_host *host,
                            const ho_backtest_request *request, const ho_env_config *env,
                            int32_t length, ho_backtest_result *result, ho_err *err);

/* The state the next decision is made in: market features, then portfolio columns. */
void ho_cpu_pass_state(const ho_cpu_pass *p, float *state);

/* What a rule policy orders next. *action: the composed index, or -1 where there is none. */
ho_order ho_cpu_pass_rule(ho_cpu_pass *p, int32_t *action);

/* action: recorded and counted when >= 0. Sets done at the window's end and on ruin. */
ho_status ho_cpu_pass_step(ho_cpu_pass *p, const ho_order *order, int32_t action);

/* After done: metrics and totals into the result. */
ho_status ho_cpu_pass_finish(ho_cpu_pass *p);

void ho_cpu_pass_free(ho_cpu_pass *p);

#ifdef __cplusplus
}
#endif
#endif
