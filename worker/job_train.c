/* SPDX-License-Identifier: Apache-2.0
 * The job "train": one trial from its parameters and seed, as a run would train it, to its end.
 * Arguments: number, seed (texts), config [P] (texts; null inactive), and windows:
 *     "folds"    every fold, scored on its test window (reproduce)
 *     "holdout"  the last fold's agents, scored on the holdout (holdout)
 *     "refit"    agents of their own, trained on all bars before the holdout (holdout --refit)
 * The answer holds one scored window per (fold, seed); fold -1 is the holdout. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "study/text.h"
#include "worker/cohort_pool.h"
#include "worker/job.h"
#include "worker/lane_config.h"

typedef struct trained {
    ho_job_reply *reply;
    bool holdout, done;
    ho_status rc;
    ho_err *err;
} trained;

/* ---- arguments ------------------------------------------------------------------------------ */

static const char *text_of(const cJSON *arguments, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(arguments, name);
    return cJSON_IsString(item) ? item->valuestring : "";
}

static ho_status read_config(const cJSON *arguments, int count, double *config, ho_err *err)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(arguments, "config");
    if (cJSON_GetArraySize(list) != count) {
        return ho_err_set(err, HO_EINVAL, "job train: config has %d values, the space %d",
                          cJSON_GetArraySize(list), count);
    }
    for (int i = 0; i < count; i++) {
        const cJSON *item = cJSON_GetArrayItem(list, i);
        config[i] = NAN;
        if (!cJSON_IsNull(item) &&
            (!cJSON_IsString(item) || !ho_text_parse_f64(item->valuestring, &config[i]))) {
            return ho_err_set(err, HO_EINVAL, "job train: config[%d] is not a number", i);
        }
    }
    return HO_OK;
}

/* ---- the plan ------------------------------------------------------------------------------- */

/* Of a plan over all folds the last fold alone, scored on `test`. Takes *plan. */
static ho_status last_fold(ho_trial_plan **plan, ho_window test, ho_err *err)
{
    ho_trial_plan *all = *plan, *one = NULL;
    ho_status rc = ho_trial_plan_create(&one, 1, 1, all->seeds, err);
    if (rc == HO_OK) {
        ho_lane_config *lane = one->lane;
        ho_window *validation = one->validation, *tests = one->test;
        int32_t *fold = one->fold;
        int first = (all->agent_folds - 1) * all->seeds;
        memcpy(lane, all->lane + first, (size_t)all->seeds * sizeof *lane);
        validation[0] = all->validation[all->agent_folds - 1];
        tests[0] = test;
        fold[0] = all->fold[all->folds - 1];
        *one = *all;
        all->config = NULL; /* taken */
        one->lane = lane;
        one->validation = validation;
        one->test = tests;
        one->fold = fold;
        one->folds = one->agent_folds = 1;
        one->lanes = all->seeds;
    }
    ho_trial_plan_destroy(plan);
    *plan = one;
    return rc;
}

/* The folds of a refit: one, trained on all that lies before the holdout, with validation's share
 * of the last fold kept at its end. */
static ho_fold_plan refit_folds(const ho_fold_plan *folds)
{
    ho_fold_plan one = *folds;
    const ho_fold *last = &folds->fold[folds->count - 1];
    int64_t validation = last->validation.end - last->validation.begin;
    int64_t end = folds->holdout.begin - folds->purge;
    one.count = 1;
    one.fold[0] = (ho_fold){.train = {folds->first, end}, .test = folds->holdout};
    if (validation > 0) {
        one.fold[0].validation = (ho_window){end - validation, end};
        one.fold[0].train.end = end - validation - folds->purge;
    }
    return one;
}

static ho_status make_plan(const ho_job_context *context, const cJSON *arguments, bool *holdout,
                           ho_trial_plan **plan, ho_err *err)
{
    const char *windows = text_of(arguments, "windows");
    ho_fold_plan folds = *context->folds;
    ho_lane_context lane = {.study = context->study,
                            .folds = &folds,
                            .bars = context->bars,
                            .market_features = context->features->F,
                            .auto_batch = context->auto_batch};
    int count = context->study->space.count;
    int64_t number = 0;
    uint64_t seed = 0;
    double *config = NULL;
    ho_status rc = HO_OK;

    *holdout = strcmp(windows, "folds") != 0;
    if ((*holdout && strcmp(windows, "holdout") != 0 && strcmp(windows, "refit") != 0) ||
        !ho_text_parse_i64(text_of(arguments, "number"), &number) ||
        !ho_text_parse_u64(text_of(arguments, "seed"), &seed)) {
        return ho_err_set(err, HO_EINVAL, "job train: number, seed or windows is not understood");
    }
    if (*holdout && folds.holdout.end <= folds.holdout.begin) {
        return ho_err_set(err, HO_ECONFIG, "this study keeps no holdout (folds.holdout = \"0\")");
    }
    if (strcmp(windows, "refit") == 0) {
        folds = refit_folds(context->folds);
    }
    config = (double *)malloc(((size_t)count + 1) * sizeof *config);
    if (!config) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for a job");
    }
    int32_t fold[HO_FOLDS_MAX];
    ho_lane_trial asked = {
        .number = number, .attempt = 1, .seed = seed, .config = config, .fold = fold};
    if ((*holdout || (rc = ho_job_folds(arguments, fold, &asked.fold_count, err)) == HO_OK) &&
        (rc = read_config(arguments, count, config, err)) == HO_OK &&
        (rc = ho_lane_config_plan(&lane, &asked, plan, err)) == HO_OK && *holdout) {
        rc = last_fold(plan, folds.holdout, err);
    }
    free(config);
    return rc;
}

/* ---- training ------------------------------------------------------------------------------- */

static void note_epoch(void *user, const ho_trial_run *run, const ho_trial_epoch *row)
{
    (void)user;
    (void)run;
    (void)row;
}

static void note_finished(void *user, ho_trial_run *run)
{
    trained *t = (trained *)user;
    const ho_trial_plan *plan = run->plan;
    int n = plan->folds * plan->seeds;

    t->done = true;
    t->reply->window = (ho_scored_window *)calloc((size_t)n, sizeof *t->reply->window);
    if (!t->reply->window) {
        t->rc = ho_err_set(t->err, HO_ENOMEM, "out of memory for a job");
        return;
    }
    t->reply->window_count = n;
    for (int i = 0; i < n; i++) {
        ho_scored_window *w = &t->reply->window[i];
        w->fold = t->holdout ? -1 : plan->fold[i / plan->seeds];
        w->seed = i % plan->seeds;
        w->random_percentile = NAN;
        w->result = run->test[i]; /* taken */
        run->test[i] = (ho_backtest_result){0};
        ho_trade *trades = w->result.trades; /* sessions and numbers travel, nothing larger */
        free(trades);
        free(w->result.equity);
        free(w->result.bar_return);
        free(w->result.actions);
        w->result.trades = NULL;
        w->result.equity = w->result.bar_return = NULL;
        w->result.actions = NULL;
        w->result.trade_count = w->result.bars = 0;
    }
}

static void note_failed(void *user, const ho_trial_run *run, const ho_trial_failure *failure)
{
    trained *t = (trained *)user;
    (void)run;
    t->done = true;
    t->rc = ho_err_set(t->err,
                       failure->kind == HO_FAILURE_DIVERGED ? HO_EDIVERGED
                       : failure->kind == HO_FAILURE_OOM    ? HO_ENOMEM
                       : failure->kind == HO_FAILURE_DEVICE ? HO_EGPU
                                                            : HO_ECONFIG,
                       "%s", failure->reason);
}

ho_status ho_job_train(const ho_job_context *context, const cJSON *arguments, ho_job_reply *reply,
                       ho_err *err)
{
    trained t = {.reply = reply, .rc = HO_OK, .err = err};
    ho_trial_plan *plan = NULL;
    ho_pool *pool = NULL;
    bool worked = true;
    ho_status rc = HO_OK;

    if (!context->market) {
        return ho_err_set(err, HO_EINVAL, "job train: it needs a study");
    }
    ho_pool_options options = {
        .backend = context->backend,
        .market = context->market,
        .sink = {.user = &t, .epoch = note_epoch, .finished = note_finished, .failed = note_failed},
    };
    if ((rc = make_plan(context, arguments, &t.holdout, &plan, err)) == HO_OK &&
        (rc = ho_pool_create(&pool, &options, err)) == HO_OK) {
        rc = ho_pool_add(pool, &plan, err);
    }
    while (rc == HO_OK && !t.done && worked) {
        rc = ho_pool_step(pool, &worked, err);
    }
    if (rc == HO_OK) {
        rc = t.rc;
    }
    if (rc == HO_OK && !t.done) {
        rc = ho_err_set(err, HO_ECONFIG, "job train: the trial did not start");
    }
    ho_trial_plan_destroy(&plan);
    ho_pool_destroy(&pool);
    return rc;
}
