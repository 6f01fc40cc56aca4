/* SPDX-License-Identifier: Apache-2.0
 * Rule policies on the test windows; see baselines.h. */
#include "worker/baselines.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "kernels/env/rng.h"

static const struct {
    const char *name;
    ho_policy policy;
} table[] = {
#define ROW(id, name, policy) {name, policy},
    HO_BASELINE_MAP(ROW)
#undef ROW
};

const char *ho_baseline_name(ho_baseline baseline)
{
    return table[baseline].name;
}

/* Index of the result whose total return is the median; undefined ones rank lowest. */
static int median_of(const ho_backtest_result *result, int n)
{
    int best = 0;
    for (int i = 0; i < n; i++) {
        double mine = result[i].metrics.value[HO_METRIC_TOTAL_RETURN];
        int below = 0;
        for (int k = 0; k < n; k++) {
            double other = result[k].metrics.value[HO_METRIC_TOTAL_RETURN];
            bool less = isnan(other) ? !isnan(mine) : other < mine;
            bool same = isnan(other) ? isnan(mine) : other == mine;
            below += less || (same && k < i); /* ties in order, so that ranks are all different */
        }
        if (below == n / 2) {
            best = i;
        }
    }
    return best;
}

enum { N = HO_BASELINE_RANDOM_POLICIES };

/* Plays N random policies with the turnover and exposure of `request`; result [N] is the caller's
 * to free, on failure too. */
static ho_status play_random(ho_market *market, const ho_backtest_request *request,
                             uint64_t study_seed, int fold, ho_backtest_result *result, ho_err *err)
{
    ho_backtest_request *each = calloc(N, sizeof *each);
    ho_status rc = each ? HO_OK : ho_err_set(err, HO_ENOMEM, "out of memory");
    for (int i = 0; rc == HO_OK && i < N; i++) {
        each[i] = *request;
        ho_rng_key(study_seed, UINT64_MAX, (uint64_t)fold, (uint64_t)i, each[i].rng_key);
    }
    if (rc == HO_OK) {
        rc = ho_backtest(market, NULL, each, N, result, err);
    }
    free(each);
    return rc;
}

static void free_results(ho_backtest_result *result)
{
    for (int i = 0; result && i < N; i++) {
        ho_backtest_free(&result[i]);
    }
    free(result);
}

static ho_status score_random(ho_market *market, ho_backtest_request request, uint64_t study_seed,
                              int fold, ho_backtest_result *out, ho_err *err)
{
    ho_backtest_result *result = calloc(N, sizeof *result);
    ho_status rc = result ? HO_OK : ho_err_set(err, HO_ENOMEM, "out of memory");
    request.random_turnover = 0.125;
    request.random_exposure = 0.5;
    if (rc == HO_OK) {
        rc = play_random(market, &request, study_seed, fold, result, err);
    }
    if (rc == HO_OK) {
        int median = median_of(result, N);
        *out = result[median];
        result[median] = (ho_backtest_result){0};
    }
    free_results(result);
    return rc;
}

/* Share of bars at which the exposure asked for changes. */
static double turnover_of(const ho_backtest_result *agent)
{
    int64_t changes = 0;
    for (int64_t i = 1; i < agent->bars; i++) {
        changes += agent->actions[i] / (HO_ORDERS * HO_URGENCIES) !=
                   agent->actions[i - 1] / (HO_ORDERS * HO_URGENCIES);
    }
    return (double)changes / (double)(agent->bars - 1);
}

ho_status ho_baseline_percentile(ho_market *market, const ho_env_config *env, ho_window window,
                                 uint64_t study_seed, int fold, const ho_backtest_result *agent,
                                 double *out, ho_err *err)
{
    double mine = agent->metrics.value[HO_METRIC_TOTAL_RETURN], below = 0.0;
    double exposure = agent->metrics.value[HO_METRIC_EXPOSURE];
    *out = NAN;
    if (!agent->actions || agent->bars < 2 || !isfinite(mine) || !isfinite(exposure)) {
        return HO_OK;
    }
    ho_backtest_request request = {
        .policy = HO_POLICY_RANDOM,
        .window = window,
        .env = env,
        .random_turnover = turnover_of(agent),
        .random_exposure = exposure,
    };
    ho_backtest_result *result = calloc(N, sizeof *result);
    ho_status rc = result ? HO_OK : ho_err_set(err, HO_ENOMEM, "out of memory");
    if (rc == HO_OK) {
        rc = play_random(market, &request, study_seed, fold, result, err);
    }
    for (int i = 0; rc == HO_OK && i < N; i++) {
        double other = result[i].metrics.value[HO_METRIC_TOTAL_RETURN];
        below += other < mine ? 1.0 : other == mine ? 0.5 : 0.0;
    }
    *out = rc == HO_OK ? below / N : NAN;
    free_results(result);
    return rc;
}

ho_status ho_baseline_score(ho_market *market, ho_baseline baseline, const ho_env_config *env,
                            ho_window window, uint64_t study_seed, int fold,
                            ho_backtest_result *out, ho_err *err)
{
    *out = (ho_backtest_result){0};
    ho_backtest_request request = {
        .policy = table[baseline].policy,
        .window = window,
        .env = env,
        .want = HO_WANT_SESSIONS,
    };
    if (baseline == HO_BASELINE_RANDOM) {
        return score_random(market, request, study_seed, fold, out, err);
    }
    return ho_backtest(market, NULL, &request, 1, out, err);
}
