/* SPDX-License-Identifier: Apache-2.0
 * The job "verify": the recorded actions of a stored trial replayed in float64 on its test windows.
 * Arguments: number, seed (texts), config [P] (texts; null inactive) as job_train.c reads them, and
 * folder: where the trial's artifacts lie (fold-F-seed-S.actions.zst, one byte an action); costs:
 * factors by which spread, fees and impact are multiplied in further replays.
 * The answer holds one scored window per (fold, seed), with session returns, and in its body
 *     costs   [{factor, values: [a metric each], mean over the seeds' joined series; null
 * undefined}]
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <zstd.h>

#include "study/objective.h"
#include "study/text.h"
#include "worker/evaluation.h"
#include "worker/job.h"
#include "worker/lane_config.h"
#include "worker/model.h"

static const char *text_of(const cJSON *arguments, const char *name)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(arguments, name));
    return text ? text : "";
}

static ho_status make_plan(const ho_job_context *context, const cJSON *arguments,
                           ho_trial_plan **plan, ho_err *err)
{
    ho_lane_context lane = {.study = context->study,
                            .folds = context->folds,
                            .bars = context->bars,
                            .market_features = context->features->F,
                            .auto_batch = 512}; /* no shape is needed to replay */
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(arguments, "config"), *item;
    int count = context->study->space.count, i = 0;
    int64_t number = 0;
    uint64_t seed = 0;
    if (cJSON_GetArraySize(list) != count ||
        !ho_text_parse_i64(text_of(arguments, "number"), &number) ||
        !ho_text_parse_u64(text_of(arguments, "seed"), &seed)) {
        return ho_err_set(err, HO_EINVAL, "job verify: number, seed or config is not understood");
    }
    double *config = malloc(((size_t)count + 1) * sizeof *config);
    ho_status rc = config ? HO_OK : ho_err_set(err, HO_ENOMEM, "out of memory for a job");
    cJSON_ArrayForEach(item, list)
    {
        const char *text = cJSON_GetStringValue(item);
        if (rc == HO_OK) {
            config[i] = NAN;
            rc = cJSON_IsNull(item) || (text && ho_text_parse_f64(text, &config[i]))
                     ? HO_OK
                     : ho_err_set(err, HO_EINVAL, "job verify: config[%d] is not a number", i);
            i++;
        }
    }
    int32_t fold[HO_FOLDS_MAX];
    ho_lane_trial asked = {
        .number = number, .attempt = 1, .seed = seed, .config = config, .fold = fold};
    rc = rc == HO_OK ? ho_job_folds(arguments, fold, &asked.fold_count, err) : rc;
    rc = rc == HO_OK ? ho_lane_config_plan(&lane, &asked, plan, err) : rc;
    free(config);
    return rc;
}

/* Unpacks exactly `count` actions. */
static ho_status read_actions(const char *path, uint8_t *actions, size_t count, ho_err *err)
{
    size_t room = ZSTD_compressBound(count) + 1;
    void *packed = malloc(room);
    FILE *file = packed ? fopen(path, "rb") : NULL;
    if (!file) {
        ho_err_set(err, packed ? HO_ENOTFOUND : HO_ENOMEM,
                   "%s: %s; the actions of this trial are not kept", path, strerror(errno));
        free(packed);
        return packed ? HO_ENOTFOUND : HO_ENOMEM;
    }
    size_t size = fread(packed, 1, room, file);
    (void)fclose(file);
    size_t got = size < room ? ZSTD_decompress(actions, count, packed, size) : 0;
    free(packed);
    if (ZSTD_isError(got) || got != count) {
        return ho_err_set(err, HO_EDATA, "%s: not the %zu actions of its window", path, count);
    }
    return HO_OK;
}

/* With Kelly sizing the size is what training came to: it stands in the agent's file. */
static ho_status find_kelly(const char *folder, int fold, int seed, ho_env_config *env, ho_err *err)
{
    char path[HO_WIRE_PATH];
    ho_model model;
    if (env->sizing != HO_SIZING_KELLY) {
        return HO_OK;
    }
    snprintf(path, sizeof path, "%s/fold-%d-seed-%d.safetensors", folder, fold, seed);
    ho_status rc = ho_model_load(path, &model, err);
    if (rc == HO_OK) {
        env->kelly_share = model.info.kelly_share;
        ho_model_free(&model);
    } else if (rc == HO_EIO) {
        rc = ho_err_set(err, HO_ENOTFOUND,
                        "%s: the agents of this trial are not kept, and with Kelly sizing they "
                        "hold its size",
                        path);
    }
    return rc;
}

/* fold: of the plan */
static ho_status replay(const ho_job_context *context, const ho_trial_plan *plan,
                        const char *folder, int fold, int seed, double cost_factor, unsigned want,
                        ho_backtest_result *out, ho_err *err)
{
    char path[HO_WIRE_PATH];
    ho_window test = plan->test[fold];
    size_t count = (size_t)(test.end - test.begin - 1);
    int agent_fold = plan->agent_folds == 1 ? 0 : fold;
    ho_env_config env = plan->lane[agent_fold * plan->seeds + seed].env;
    uint8_t *actions = malloc(count + 1);
    snprintf(path, sizeof path, "%s/fold-%d-seed-%d.actions.zst", folder, plan->fold[fold], seed);
    ho_status rc = actions ? read_actions(path, actions, count, err)
                           : ho_err_set(err, HO_ENOMEM, "out of memory for a job");
    rc = rc == HO_OK ? find_kelly(folder, plan->fold[agent_fold], seed, &env, err) : rc;
    if (rc == HO_OK) {
        ho_evaluation_scale_costs(&env, cost_factor);
        ho_backtest_request request = {.policy = HO_POLICY_ACTIONS,
                                       .window = test,
                                       .env = &env,
                                       .actions = actions,
                                       .want = want};
        rc = ho_backtest(context->market, NULL, &request, 1, out, err);
    }
    free(actions);
    return rc;
}

/* One seed's windows at other costs, joined. */
static ho_status replay_seed(const ho_job_context *context, const ho_trial_plan *plan,
                             const char *folder, int seed, double factor, ho_backtest_result *out,
                             ho_err *err)
{
    ho_backtest_result *result = calloc((size_t)plan->folds, sizeof *result);
    const ho_backtest_result *window[HO_FOLDS_MAX];
    ho_status rc = result ? HO_OK : ho_err_set(err, HO_ENOMEM, "out of memory for a job");
    int64_t ns = 0;
    for (int f = 0; f < plan->folds && rc == HO_OK; f++) {
        ho_window test = plan->test[f];
        rc = replay(context, plan, folder, f, seed, factor,
                    HO_WANT_SESSIONS | HO_WANT_BARS | HO_WANT_TRADES, &result[f], err);
        window[f] = &result[f];
        ns += context->bars->open_ns[test.end - 1] + context->bars->interval_ns -
              context->bars->open_ns[test.begin + 1];
    }
    if (rc == HO_OK) {
        ho_stitch_input in = {.window = window,
                              .count = plan->folds,
                              .sessions_per_year = context->bars->sessions_per_year,
                              .years = (double)ns / (365.25 * 86400e9),
                              .multiplier = plan->lane[0].env.multiplier};
        rc = ho_stitch(&in, out, err);
    }
    for (int f = 0; result && f < plan->folds; f++) {
        ho_backtest_free(&result[f]);
    }
    free(result);
    return rc;
}

static ho_status add_cost(const ho_job_context *context, const ho_trial_plan *plan,
                          const char *folder, double factor, cJSON *rows, ho_err *err)
{
    double mean[HO_METRIC_COUNT] = {0.0};
    ho_status rc = HO_OK;
    if (!(factor >= 0.0 && factor <= 1000.0)) {
        return ho_err_set(err, HO_EUSAGE, "cost factors are 0 to 1000");
    }
    for (int s = 0; s < plan->seeds && rc == HO_OK; s++) {
        ho_backtest_result joined = {0};
        rc = replay_seed(context, plan, folder, s, factor, &joined, err);
        for (int i = 0; i < HO_METRIC_COUNT && rc == HO_OK; i++) {
            mean[i] += joined.metrics.value[i] / plan->seeds;
        }
        ho_backtest_free(&joined);
    }
    cJSON *row = rc == HO_OK ? cJSON_CreateObject() : NULL;
    bool good =
        row && cJSON_AddItemToArray(rows, row) && cJSON_AddNumberToObject(row, "factor", factor);
    cJSON *values = good ? cJSON_AddArrayToObject(row, "values") : NULL;
    for (int i = 0; i < HO_METRIC_COUNT && values; i++) {
        good = good && cJSON_AddItemToArray(values, isfinite(mean[i]) ? cJSON_CreateNumber(mean[i])
                                                                      : cJSON_CreateNull());
    }
    return rc != HO_OK ? rc : good ? HO_OK : ho_err_set(err, HO_ENOMEM, "out of memory for a job");
}

static ho_status add_costs(const ho_job_context *context, const ho_trial_plan *plan,
                           const cJSON *arguments, ho_job_reply *reply, ho_err *err)
{
    const cJSON *factors = cJSON_GetObjectItemCaseSensitive(arguments, "costs"), *factor;
    reply->body = cJSON_CreateObject();
    cJSON *rows = cJSON_AddArrayToObject(reply->body, "costs");
    ho_status rc = rows ? HO_OK : ho_err_set(err, HO_ENOMEM, "out of memory for a job");
    cJSON_ArrayForEach(factor, factors)
    {
        if (rc == HO_OK) {
            rc = add_cost(context, plan, text_of(arguments, "folder"),
                          cJSON_IsNumber(factor) ? factor->valuedouble : -1.0, rows, err);
        }
    }
    return rc;
}

/* The first trades of seed 0 of every fold: fold, entry and exit (seconds since 1970), side,
 * quantity, prices, reason, net; and how many there are in all. */
static ho_status add_trades(const ho_job_context *context, const ho_trial_plan *plan,
                            const cJSON *arguments, cJSON *body, ho_err *err)
{
    const cJSON *asked = cJSON_GetObjectItemCaseSensitive(arguments, "trades");
    int64_t most = cJSON_IsNumber(asked) ? (int64_t)asked->valuedouble : 0, total = 0;
    if (most <= 0) {
        return HO_OK;
    }
    cJSON *rows = cJSON_AddArrayToObject(body, "trades");
    bool good = rows != NULL;
    ho_status rc = HO_OK;
    for (int f = 0; f < plan->folds && rc == HO_OK && good; f++) {
        ho_backtest_result r = {0};
        rc =
            replay(context, plan, text_of(arguments, "folder"), f, 0, 1.0, HO_WANT_TRADES, &r, err);
        for (int64_t i = 0; i < r.trade_count && rc == HO_OK && good; i++, total++) {
            const ho_trade *t = &r.trades[i];
            const double value[] = {plan->fold[f],
                                    (double)context->bars->open_ns[t->entry_bar] * 1e-9,
                                    (double)context->bars->open_ns[t->exit_bar] * 1e-9,
                                    t->side,
                                    t->max_quantity,
                                    t->entry_price,
                                    t->exit_price,
                                    t->reason,
                                    t->net};
            if (total < most) {
                good = cJSON_AddItemToArray(
                    rows, cJSON_CreateDoubleArray(value, sizeof value / sizeof value[0]));
            }
        }
        ho_backtest_free(&r);
    }
    good = good && cJSON_AddNumberToObject(body, "trade_total", (double)total);
    return rc != HO_OK ? rc : good ? HO_OK : ho_err_set(err, HO_ENOMEM, "out of memory for a job");
}

ho_status ho_job_verify(const ho_job_context *context, const cJSON *arguments, ho_job_reply *reply,
                        ho_err *err)
{
    ho_trial_plan *plan = NULL;
    if (!context->market) {
        return ho_err_set(err, HO_EINVAL, "job verify: it needs a study");
    }
    ho_status rc = make_plan(context, arguments, &plan, err);
    int n = rc == HO_OK ? plan->folds * plan->seeds : 0;
    reply->window = rc == HO_OK ? calloc((size_t)n + 1, sizeof *reply->window) : NULL;
    if (rc == HO_OK && !reply->window) {
        rc = ho_err_set(err, HO_ENOMEM, "out of memory for a job");
    }
    for (int i = 0; i < n && rc == HO_OK; i++) {
        ho_scored_window *w = &reply->window[i];
        w->fold = plan->fold[i / plan->seeds];
        w->seed = i % plan->seeds;
        w->random_percentile = NAN;
        reply->window_count++;
        rc = replay(context, plan, text_of(arguments, "folder"), i / plan->seeds, w->seed, 1.0,
                    HO_WANT_SESSIONS, &w->result, err);
    }
    rc = rc == HO_OK ? add_costs(context, plan, arguments, reply, err) : rc;
    rc = rc == HO_OK ? add_trades(context, plan, arguments, reply->body, err) : rc;
    ho_trial_plan_destroy(&plan);
    return rc;
}
