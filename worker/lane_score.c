/* SPDX-License-Identifier: Apache-2.0
 * Backtests of running lanes; see lane_score.h. */
#include "worker/lane_score.h"

#include <stdlib.h>
#include <string.h>

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

static void score_free(ho_score **score)
{
    if (*score) {
        free((*score)->ref);
        free((*score)->epoch);
        free((*score)->windows);
        free(*score);
        *score = NULL;
    }
}

static void fill_requests(const ho_score *score, ho_backtest_request *request)
{
    for (int i = 0; i < score->n; i++) {
        const ho_lane_ref *ref = &score->ref[i];
        const ho_trial_plan *plan = ref->run->plan;
        int first = ho_trial_plan_first_test(plan, ref->lane);
        for (int f = 0; f < score->windows[i]; f++) {
            *request++ =
                score->tests
                    ? greedy(ref, plan->test[first + f],
                             HO_WANT_SESSIONS | HO_WANT_BARS | HO_WANT_TRADES | HO_WANT_ACTIONS)
                    : greedy(ref, plan->validation[ref->lane / plan->seeds], 0);
        }
    }
}

static ho_score *score_new(const ho_lane_ref *ref, int n, bool tests)
{
    ho_score *score = calloc(1, sizeof *score);
    if (!score) {
        return NULL;
    }
    score->ref = calloc((size_t)n, sizeof *ref);
    score->epoch = calloc((size_t)n, sizeof *score->epoch);
    score->windows = calloc((size_t)n, sizeof *score->windows);
    if (!score->ref || !score->epoch || !score->windows) {
        score_free(&score);
        return NULL;
    }
    memcpy(score->ref, ref, (size_t)n * sizeof *ref);
    score->n = n;
    score->tests = tests;
    for (int i = 0; i < n; i++) {
        score->epoch[i] = ref[i].run->lane[ref[i].lane].epoch;
        score->windows[i] = tests ? ho_trial_plan_test_count(ref[i].run->plan) : 1;
        score->total += score->windows[i];
    }
    return score;
}

ho_status ho_score_begin(ho_market *market, ho_cohort *cohort, const ho_lane_ref *ref, int n,
                         bool tests, ho_score **out, ho_err *err)
{
    ho_score *score = score_new(ref, n, tests);
    ho_backtest_request *request = score ? calloc((size_t)score->total, sizeof *request) : NULL;
    ho_status rc = request ? HO_OK : ho_err_set(err, HO_ENOMEM, "out of memory for a score");
    if (rc == HO_OK) {
        fill_requests(score, request);
        rc = ho_backtest_begin(market, cohort, request, score->total, &score->job, err);
    }
    free(request);
    if (rc != HO_OK) {
        score_free(&score);
    }
    *out = score;
    return rc;
}

bool ho_score_ready(const ho_score *score)
{
    return ho_backtest_ready(score->job);
}

void ho_score_forget(ho_score *score, const ho_trial_run *run)
{
    for (int i = 0; i < score->n; i++) {
        if (score->ref[i].run == run) {
            score->ref[i].run = NULL;
        }
    }
}

static void give_value(const ho_lane_ref *ref, int epoch, const ho_backtest_result *result)
{
    double value[HO_PLAN_OBJECTIVES];
    const ho_trial_plan *plan = ref->run->plan;
    for (int k = 0; k < plan->objectives; k++) {
        value[k] = result->metrics.value[plan->objective[k]];
    }
    ho_trial_run_value(ref->run, ref->lane, epoch, value);
}

/* Takes the results of one lane's test windows. */
static void give_tests(const ho_lane_ref *ref, ho_backtest_result *result, int count)
{
    const ho_trial_plan *plan = ref->run->plan;
    int first = ho_trial_plan_first_test(plan, ref->lane);
    for (int f = 0; f < count; f++) {
        ref->run->test[(first + f) * plan->seeds + ref->lane % plan->seeds] = result[f];
        result[f] = (ho_backtest_result){0};
    }
    ref->run->finished++;
}

ho_status ho_score_collect(ho_score *score, ho_err *err)
{
    ho_backtest_result *result = calloc((size_t)score->total, sizeof *result), *at = result;
    ho_status rc = result ? ho_backtest_collect(&score->job, result, err)
                          : ho_err_set(err, HO_ENOMEM, "out of memory for a score");
    for (int i = 0; rc == HO_OK && i < score->n; at += score->windows[i++]) {
        if (score->ref[i].run && score->tests) {
            give_tests(&score->ref[i], at, score->windows[i]);
        } else if (score->ref[i].run) {
            give_value(&score->ref[i], score->epoch[i], at);
        }
    }
    for (int i = 0; result && i < score->total; i++) {
        ho_backtest_free(&result[i]); /* what nobody took */
    }
    free(result);
    return rc;
}

void ho_score_drop(ho_score **score)
{
    if (score && *score) {
        ho_backtest_drop(&(*score)->job);
        score_free(score);
    }
}
