/* SPDX-License-Identifier: Apache-2.0
 * Backtests of running lanes; see lane_score.h. */
#include "worker/lane_score.h"

#include <stdlib.h>

static ho_backtest_request greedy(const ho_lane_ref *ref, ho_window window, unsigned want)
{
    return (ho_backtest_request){
        .policy = HO_POLICY_GREEDY,
        .slots = {ref->run->lane[ref->lane].slot},
        .slot_count = 1,
        .window = window,
        .want = want,
    };
}

ho_status ho_score_validation(ho_market *market, ho_cohort *cohort, const ho_lane_ref *ref, int n,
                              double *value, ho_err *err)
{
    ho_backtest_request *request = calloc((size_t)n, sizeof *request);
    ho_backtest_result *result = calloc((size_t)n, sizeof *result);
    ho_status rc = request && result ? HO_OK : ho_err_set(err, HO_ENOMEM, "out of memory");
    for (int i = 0; rc == HO_OK && i < n; i++) {
        const ho_trial_plan *plan = ref[i].run->plan;
        request[i] = greedy(&ref[i], plan->validation[ref[i].lane / plan->seeds], 0);
    }
    if (rc == HO_OK) {
        rc = ho_backtest(market, cohort, request, n, result, err);
    }
    for (int i = 0; rc == HO_OK && i < n; i++) {
        const ho_trial_plan *plan = ref[i].run->plan;
        for (int k = 0; k < plan->objectives; k++) {
            value[i * HO_PLAN_OBJECTIVES + k] = result[i].metrics.value[plan->objective[k]];
        }
    }
    for (int i = 0; result && i < n; i++) {
        ho_backtest_free(&result[i]);
    }
    free(result);
    free(request);
    return rc;
}

ho_status ho_score_tests(ho_market *market, ho_cohort *cohort, const ho_lane_ref *ref, int n,
                         ho_err *err)
{
    size_t total = 0;
    for (int i = 0; i < n; i++) {
        total += (size_t)ho_trial_plan_test_count(ref[i].run->plan);
    }
    ho_backtest_request *request = calloc(total, sizeof *request);
    ho_backtest_result *result = calloc(total, sizeof *result);
    ho_backtest_result **place = calloc(total, sizeof *place);
    ho_status rc = request && result && place ? HO_OK : ho_err_set(err, HO_ENOMEM, "out of memory");
    size_t filled = 0;
    for (int i = 0; rc == HO_OK && i < n; i++) {
        const ho_trial_plan *plan = ref[i].run->plan;
        int first = ho_trial_plan_first_test(plan, ref[i].lane);
        for (int f = first; f < first + ho_trial_plan_test_count(plan); f++) {
            request[filled] =
                greedy(&ref[i], plan->test[f],
                       HO_WANT_SESSIONS | HO_WANT_BARS | HO_WANT_TRADES | HO_WANT_ACTIONS);
            place[filled++] = &ref[i].run->test[f * plan->seeds + ref[i].lane % plan->seeds];
        }
    }
    if (rc == HO_OK) {
        rc = ho_backtest(market, cohort, request, (int)total, result, err);
    }
    for (size_t i = 0; rc == HO_OK && i < total; i++) {
        *place[i] = result[i];
    }
    if (rc != HO_OK && result) {
        for (size_t i = 0; i < total; i++) {
            ho_backtest_free(&result[i]);
        }
    }
    free(place);
    free(result);
    free(request);
    return rc;
}
