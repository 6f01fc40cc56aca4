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

enum { WINDOW_REQUESTS = HO_BASELINE_RANDOM + N }; /* of all baselines on one window */

/* N random policies with the turnover and exposure of `request`. */
static void ask_random(const ho_backtest_request *request, uint64_t study_seed, int fold,
                       ho_backtest_request *out)
{
    for (int i = 0; i < N; i++) {
        out[i] = *request;
        ho_rng_key(study_seed, UINT64_MAX, (uint64_t)fold, (uint64_t)i, out[i].rng_key);
    }
}

static void free_results(ho_backtest_result *result, int n)
{
    for (int i = 0; result && i < n; i++) {
        ho_backtest_free(&result[i]);
    }
    free(result);
}

ho_status ho_baselines_begin(ho_market *market, const ho_env_config *env, const ho_window *window,
                             int n, uint64_t study_seed, ho_backtest_job **out, ho_err *err)
{
    *out = NULL;
    ho_backtest_request *ask = calloc((size_t)n * WINDOW_REQUESTS, sizeof *ask);
    if (!ask) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for the baselines");
    }
    for (int i = 0; i < n; i++) {
        ho_backtest_request *at = ask + (size_t)i * WINDOW_REQUESTS;
        for (int b = 0; b < HO_BASELINE_COUNT; b++) {
            ho_backtest_request request = {.policy = table[b].policy,
                                           .window = window[i],
                                           .env = &env[i],
                                           .random_turnover = 0.125,
                                           .random_exposure = 0.5,
                                           .want = HO_WANT_SESSIONS};
            if (b == HO_BASELINE_RANDOM) {
                ask_random(&request, study_seed, i, at + b);
            } else {
                at[b] = request;
            }
        }
    }
    ho_status rc = ho_backtest_begin(market, NULL, ask, n * WINDOW_REQUESTS, out, err);
    free(ask);
    return rc;
}

ho_status ho_baselines_collect(ho_backtest_job **job, int n, ho_backtest_result *out, ho_err *err)
{
    ho_backtest_result *all = calloc((size_t)n * WINDOW_REQUESTS, sizeof *all);
    ho_status rc = all ? ho_backtest_collect(job, all, err)
                       : ho_err_set(err, HO_ENOMEM, "out of memory for the baselines");
    ho_backtest_drop(job);
    for (int i = 0; i < n * HO_BASELINE_COUNT; i++) {
        out[i] = (ho_backtest_result){0};
    }
    for (int i = 0; rc == HO_OK && i < n; i++) {
        ho_backtest_result *at = all + (size_t)i * WINDOW_REQUESTS;
        for (int b = 0; b < HO_BASELINE_COUNT; b++) {
            int from = b == HO_BASELINE_RANDOM ? b + median_of(at + b, N) : b;
            out[i * HO_BASELINE_COUNT + b] = at[from];
            at[from] = (ho_backtest_result){0};
        }
    }
    free_results(all, n * WINDOW_REQUESTS);
    return rc;
}

/* ---- percentiles --------------------------------------------------------------------------- */

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

static bool has_percentile(const ho_backtest_result *agent)
{
    return agent->actions && agent->bars >= 2 &&
           isfinite(agent->metrics.value[HO_METRIC_TOTAL_RETURN]) &&
           isfinite(agent->metrics.value[HO_METRIC_EXPOSURE]);
}

ho_status ho_percentiles_begin(ho_market *market, const ho_played *played, int n,
                               uint64_t study_seed, ho_backtest_job **out, ho_err *err)
{
    int asked = 0;
    *out = NULL;
    ho_backtest_request *ask = calloc((size_t)n * N, sizeof *ask);
    if (!ask) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for random policies");
    }
    for (int i = 0; i < n; i++) {
        const ho_backtest_result *agent = played[i].agent;
        if (has_percentile(agent)) {
            ho_backtest_request request = {
                .policy = HO_POLICY_RANDOM,
                .window = played[i].window,
                .env = played[i].env,
                .random_turnover = turnover_of(agent),
                .random_exposure = agent->metrics.value[HO_METRIC_EXPOSURE],
            };
            ask_random(&request, study_seed, played[i].fold, ask + (size_t)asked++ * N);
        }
    }
    ho_status rc = asked > 0 ? ho_backtest_begin(market, NULL, ask, asked * N, out, err) : HO_OK;
    free(ask);
    return rc;
}

ho_status ho_percentiles_collect(ho_backtest_job **job, const ho_played *played, int n, double *out,
                                 ho_err *err)
{
    ho_backtest_result *all = NULL, *at = NULL;
    ho_status rc = HO_OK;
    for (int i = 0; i < n; i++) {
        out[i] = NAN;
    }
    if (!*job) {
        return HO_OK;
    }
    at = all = calloc((size_t)n * N, sizeof *all);
    rc = all ? ho_backtest_collect(job, all, err)
             : ho_err_set(err, HO_ENOMEM, "out of memory for random policies");
    ho_backtest_drop(job);
    for (int i = 0; rc == HO_OK && i < n; i++) {
        double mine = played[i].agent->metrics.value[HO_METRIC_TOTAL_RETURN], below = 0.0;
        if (!has_percentile(played[i].agent)) {
            continue;
        }
        for (int k = 0; k < N; k++, at++) {
            double other = at->metrics.value[HO_METRIC_TOTAL_RETURN];
            below += other < mine ? 1.0 : other == mine ? 0.5 : 0.0;
        }
        out[i] = below / N;
    }
    free_results(all, n * N);
    return rc;
}
