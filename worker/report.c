/* SPDX-License-Identifier: Apache-2.0
 * See report.h. */
#include "worker/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>
#include <zstd.h>

#include "study/objective.h"
#include "worker/baselines.h"
#include "worker/model.h"

static ho_message message_of(ho_message_type type, const ho_trial_run *run)
{
    ho_message m = ho_message_make(type);
    m.trial = run->plan->number;
    m.attempt = run->plan->attempt;
    return m;
}

ho_status ho_report_epoch(ho_link *link, const ho_trial_run *run, const ho_trial_epoch *row,
                          int64_t parent, const double *config, int parameters, ho_err *err)
{
    /* the lists are borrowed: the message is not cleared */
    ho_message m = message_of(HO_MSG_REPORT, run);
    m.report.parent = parent;
    m.report.config_count = config ? parameters : 0;
    m.report.config = (double *)(uintptr_t)config;
    m.report.epoch = row->epoch;
    m.report.scored = row->scored;
    m.report.stat = row->stat;
    m.report.value_count = run->plan->objectives;
    memcpy(m.report.value, row->value, (size_t)run->plan->objectives * sizeof *row->value);
    double by_fold[HO_FOLDS_MAX];
    if (row->scored) {
        m.report.fold_count = run->plan->agent_folds;
        m.report.fold_value = row->fold_value;
    }
    if (row->scored && run->plan->folds < run->plan->study_folds) { /* raced: NaN where not run */
        m.report.fold_count = run->plan->study_folds;
        m.report.fold_value = by_fold;
        for (int f = 0; f < run->plan->study_folds; f++) {
            by_fold[f] = NAN;
        }
        for (int f = 0; f < run->plan->folds; f++) {
            by_fold[run->plan->fold[f]] = row->fold_value[f];
        }
    }
    return ho_link_send(link, &m, err);
}

/* ---- files --------------------------------------------------------------------------------- */

ho_status ho_report_file(ho_link *link, ho_chunk_kind kind, int64_t trial, int32_t attempt,
                         const char *name, const void *data, size_t size, ho_err *err)
{
    unsigned char digest[crypto_hash_sha256_BYTES];
    ho_message m = ho_message_make(HO_MSG_CHUNK);
    m.trial = trial;
    m.attempt = attempt;
    m.chunk.kind = kind;
    m.chunk.total = size;
    snprintf(m.chunk.name, sizeof m.chunk.name, "%s", name);
    crypto_hash_sha256(digest, data, size);
    sodium_bin2hex(m.chunk.sha256, sizeof m.chunk.sha256, digest, sizeof digest);
    uint8_t *part = malloc(HO_WIRE_CHUNK);
    ho_status rc = part ? HO_OK : ho_err_set(err, HO_ENOMEM, "out of memory for %s", name);
    for (size_t at = 0; rc == HO_OK && at < size; at += m.chunk.count) {
        m.chunk.offset = at;
        m.chunk.count = size - at < HO_WIRE_CHUNK ? size - at : HO_WIRE_CHUNK;
        memcpy(part, (const uint8_t *)data + at, m.chunk.count);
        m.chunk.bytes = part;
        rc = ho_link_send(link, &m, err);
    }
    free(part);
    return rc;
}

/* The actions of one test window, for `verify`: one byte an action, zstd. */
static ho_status send_actions(ho_link *link, const ho_trial_run *run, int fold, int seed,
                              const ho_backtest_result *result, ho_err *err)
{
    char name[HO_WIRE_NAME];
    size_t room = ZSTD_compressBound((size_t)result->bars);
    void *packed = malloc(room);
    if (!packed) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for the actions");
    }
    size_t size = ZSTD_compress(packed, room, result->actions, (size_t)result->bars, 3);
    ho_status rc = HO_OK;
    if (ZSTD_isError(size)) {
        rc = ho_err_set(err, HO_ENOMEM, "actions: %s", ZSTD_getErrorName(size));
    } else {
        snprintf(name, sizeof name, "fold-%d-seed-%d.actions.zst", fold, seed);
        rc = ho_report_file(link, HO_CHUNK_ARTIFACT, run->plan->number, run->plan->attempt, name,
                            packed, size, err);
    }
    free(packed);
    return rc;
}

/* Each seed's test windows as one series, into out [seeds]. */
static ho_status join_seeds(const ho_trial_run *run, const ho_bars *bars, ho_scored_window *out,
                            ho_err *err)
{
    static const double ns_per_year = 365.25 * 86400e9;
    const ho_trial_plan *plan = run->plan;
    const ho_backtest_result *window[HO_FOLDS_MAX];
    ho_stitch_input in = {.window = window,
                          .count = plan->folds,
                          .sessions_per_year = plan->lane[0].env.sessions_per_year,
                          .multiplier = plan->lane[0].env.multiplier};
    for (int f = 0; f < plan->folds; f++) {
        ho_window w = plan->test[f];
        in.years +=
            (double)(bars->open_ns[w.end - 1] + bars->interval_ns - bars->open_ns[w.begin]) /
            ns_per_year;
    }
    ho_status rc = HO_OK;
    for (int s = 0; s < plan->seeds && rc == HO_OK; s++) {
        for (int f = 0; f < plan->folds; f++) {
            window[f] = &run->test[f * plan->seeds + s];
        }
        out[s].fold = -1;
        out[s].seed = s;
        out[s].random_percentile = NAN;
        rc = ho_stitch(&in, &out[s].result, err);
    }
    return rc;
}

/* fold, seed: of the lane */
static ho_status send_model(ho_link *link, const ho_trial_run *run, int lane,
                            const ho_settings *trial, const ho_bars *bars,
                            const ho_features *features, ho_err *err)
{
    const ho_trial_plan *plan = run->plan;
    int fold = plan->fold[lane / plan->seeds], seed = lane % plan->seeds;
    ho_model_info info =
        ho_model_info_of(plan->number, fold, seed, bars->sha256, &plan->lane[lane].env);
    char name[HO_WIRE_NAME];
    void *bytes = NULL;
    size_t size = 0;
    ho_status rc =
        ho_model_encode(&info, trial, features, &run->lane[lane].weights, &bytes, &size, err);
    if (rc == HO_OK) {
        snprintf(name, sizeof name, "fold-%d-seed-%d.safetensors", fold, seed);
        rc = ho_report_file(link, HO_CHUNK_ARTIFACT, plan->number, plan->attempt, name, bytes, size,
                            err);
    }
    free(bytes);
    return rc;
}

ho_status ho_report_weights(ho_link *link, const ho_trial_run *run, const ho_study *study,
                            const ho_bars *bars, const ho_features *features, ho_err *err)
{
    const ho_trial_plan *plan = run->plan;
    ho_settings *trial = NULL;
    if (!plan->config || ho_settings_i64(study->settings, HO_KEY_STORE_KEEP_BEST) == 0) {
        return HO_OK;
    }
    ho_status rc = ho_study_trial_settings(study, plan->config, &trial, err);
    for (int i = 0; rc == HO_OK && i < plan->lanes; i++) {
        if (run->lane[i].weights.count > 0) {
            rc = send_model(link, run, i, trial, bars, features, err);
        }
    }
    ho_settings_destroy(&trial);
    return rc;
}

/* What only the joined series needed does not travel. */
static void drop_bars(ho_backtest_result *result)
{
    free(result->equity);
    free(result->bar_return);
    free(result->trades);
    result->equity = result->bar_return = NULL;
    result->trades = NULL;
    result->bars = result->trade_count = 0;
}

/* What every lane did on its test windows: [folds, seeds]; the caller's to free. NULL: no memory.
 */
static ho_played *played_of(const ho_trial_run *run)
{
    const ho_trial_plan *plan = run->plan;
    int n = plan->folds * plan->seeds;
    ho_played *played = calloc((size_t)n, sizeof *played);
    for (int i = 0; played && i < n; i++) {
        int fold = i / plan->seeds, seed = i % plan->seeds;
        int lane = plan->agent_folds == plan->folds ? i : seed;
        played[i] = (ho_played){.env = &plan->lane[lane].env,
                                .window = plan->test[fold],
                                .fold = plan->fold[fold],
                                .agent = &run->test[i]};
    }
    return played;
}

ho_status ho_report_ending(ho_trial_run *run, ho_market *market, uint64_t study_seed, ho_err *err)
{
    int n = run->plan->folds * run->plan->seeds;
    int64_t steps = 0;
    for (int i = 0; i < n; i++) {
        steps += run->test[i].steps;
    }
    if (steps * HO_BASELINE_RANDOM_POLICIES > run->experiences) {
        return HO_OK;
    }
    ho_played *played = played_of(run);
    ho_status rc = played ? ho_percentiles_begin(market, played, n, study_seed, &run->after, err)
                          : ho_err_set(err, HO_ENOMEM, "out of memory for a result");
    free(played);
    return rc;
}

static ho_status percentiles(ho_trial_run *run, double *out, ho_err *err)
{
    ho_played *played = played_of(run);
    ho_status rc = played ? ho_percentiles_collect(&run->after, played,
                                                   run->plan->folds * run->plan->seeds, out, err)
                          : ho_err_set(err, HO_ENOMEM, "out of memory for a result");
    free(played);
    return rc;
}

static ho_status send_all_actions(ho_link *link, ho_trial_run *run, ho_err *err)
{
    const ho_trial_plan *plan = run->plan;
    ho_status rc = HO_OK;
    for (int i = 0; rc == HO_OK && i < plan->folds * plan->seeds; i++) {
        if (run->test[i].actions) {
            rc = send_actions(link, run, plan->fold[i / plan->seeds], i % plan->seeds,
                              &run->test[i], err);
            free(run->test[i].actions);
            run->test[i].actions = NULL;
        }
    }
    return rc;
}

ho_status ho_report_result(ho_link *link, ho_trial_run *run, const ho_bars *bars, ho_err *err)
{
    const ho_trial_plan *plan = run->plan;
    int n = plan->folds * plan->seeds;
    ho_message m = message_of(HO_MSG_RESULT, run);
    double *percentile = calloc((size_t)n, sizeof *percentile);
    m.result.window = calloc((size_t)(n + plan->seeds), sizeof *m.result.window);
    ho_status rc = percentile && m.result.window
                       ? HO_OK
                       : ho_err_set(err, HO_ENOMEM, "out of memory for a result");
    if (rc == HO_OK) {
        rc = percentiles(run, percentile, err);
    }
    if (rc == HO_OK) {
        rc = send_all_actions(link, run, err);
    }
    if (rc == HO_OK) {
        m.result.epochs = plan->epochs;
        m.result.experiences = run->experiences;
        m.result.updates = run->updates;
        m.result.train_s = (double)(run->ended_ns - run->started_ns) * 1e-9;
        m.result.window_count = n;
    }
    if (rc == HO_OK && plan->folds == plan->study_folds) {
        m.result.window_count += plan->seeds;
        rc = join_seeds(run, bars, m.result.window + n, err);
    }
    for (int i = 0; rc == HO_OK && i < n; i++) {
        drop_bars(&run->test[i]);
        m.result.window[i].fold = plan->fold[i / plan->seeds];
        m.result.window[i].seed = i % plan->seeds;
        m.result.window[i].random_percentile = percentile[i];
        m.result.window[i].result = run->test[i];
        run->test[i] = (ho_backtest_result){0};
    }
    rc = rc == HO_OK ? ho_link_send(link, &m, err) : rc;
    free(percentile);
    ho_message_clear(&m);
    return rc;
}

ho_status ho_report_command_epoch(ho_link *link, int64_t trial, int32_t attempt, int32_t epoch,
                                  const double *values, int count, ho_err *err)
{
    ho_message m = ho_message_make(HO_MSG_REPORT);
    m.trial = trial;
    m.attempt = attempt;
    m.report.parent = -1;
    m.report.epoch = epoch;
    m.report.scored = true;
    m.report.stat.epoch = epoch;
    m.report.stat.state = HO_LANE_ACTIVE;
    m.report.value_count = count;
    memcpy(m.report.value, values, (size_t)count * sizeof *values);
    return ho_link_send(link, &m, err);
}

ho_status ho_report_command_result(ho_link *link, int64_t trial, int32_t attempt, int32_t epochs,
                                   double seconds, const double *values, int count, ho_err *err)
{
    ho_message m = ho_message_make(HO_MSG_RESULT);
    m.trial = trial;
    m.attempt = attempt;
    m.result.epochs = epochs;
    m.result.train_s = seconds;
    m.result.value_count = count;
    memcpy(m.result.value, values, (size_t)count * sizeof *values);
    return ho_link_send(link, &m, err);
}

/* ---- failures ------------------------------------------------------------------------------ */

static ho_message fail_message(int64_t trial, int32_t attempt, ho_fail_class class_id,
                               const char *reason)
{
    ho_message m = ho_message_make(HO_MSG_FAIL);
    m.trial = trial;
    m.attempt = attempt;
    m.fail.class_id = class_id;
    m.fail.retryable = ho_fail_class_retryable(class_id);
    m.fail.lane = -1;
    m.fail.fold = -1;
    m.fail.seed = -1;
    m.fail.update = -1;
    snprintf(m.fail.reason, sizeof m.fail.reason, "%s", reason);
    return m;
}

ho_status ho_report_failure(ho_link *link, int64_t trial, int32_t attempt,
                            const ho_trial_failure *failure, ho_err *err)
{
    static const ho_fail_class class_of[] = {
        [HO_FAILURE_CONFIG] = HO_FAIL_CONFIG,     [HO_FAILURE_DIVERGED] = HO_FAIL_DIVERGED,
        [HO_FAILURE_OOM] = HO_FAIL_OOM,           [HO_FAILURE_DEVICE] = HO_FAIL_DEVICE,
        [HO_FAILURE_INTERNAL] = HO_FAIL_INTERNAL,
    };
    ho_message m = fail_message(trial, attempt, class_of[failure->kind], failure->reason);
    m.fail.lane = failure->lane;
    m.fail.fold = failure->fold;
    m.fail.seed = failure->seed;
    m.fail.epoch = failure->epoch;
    m.fail.update = failure->update;
    return ho_link_send(link, &m, err);
}

ho_status ho_report_refusal(ho_link *link, int64_t trial, int32_t attempt, ho_fail_class class_id,
                            const char *reason, ho_err *err)
{
    ho_message m = fail_message(trial, attempt, class_id, reason);
    return ho_link_send(link, &m, err);
}

/* ---- baselines ----------------------------------------------------------------------------- */

ho_status ho_report_baselines_begin(ho_market *market, const ho_lane_context *context,
                                    ho_backtest_job **out, ho_err *err)
{
    const ho_fold_plan *folds = context->folds;
    const ho_settings *settings = context->study->settings;
    uint64_t seed = (uint64_t)ho_settings_i64(settings, HO_KEY_STUDY_SEED);
    ho_env_config env[HO_FOLDS_MAX];
    ho_window test[HO_FOLDS_MAX];
    ho_status rc = HO_OK;
    *out = NULL;
    for (int f = 0; rc == HO_OK && f < folds->count; f++) {
        test[f] = folds->fold[f].test;
        rc = ho_lane_config_env(settings, context->bars, folds->fold[f].train, &env[f], err);
    }
    return rc == HO_OK ? ho_baselines_begin(market, env, test, folds->count, seed, out, err) : rc;
}

ho_status ho_report_baselines(ho_link *link, ho_backtest_job **job, int folds, ho_err *err)
{
    int count = folds * HO_BASELINE_COUNT;
    ho_message m = ho_message_make(HO_MSG_BASELINE);
    ho_backtest_result *result = calloc((size_t)count, sizeof *result);
    m.baseline.window = calloc((size_t)count, sizeof *m.baseline.window);
    ho_status rc = result && m.baseline.window
                       ? ho_baselines_collect(job, folds, result, err)
                       : ho_err_set(err, HO_ENOMEM, "out of memory for the baselines");
    for (int i = 0; rc == HO_OK && i < count; i++) {
        ho_scored_window *w = &m.baseline.window[m.baseline.window_count++];
        snprintf(w->policy, sizeof w->policy, "%s",
                 ho_baseline_name((ho_baseline)(i % HO_BASELINE_COUNT)));
        w->fold = i / HO_BASELINE_COUNT;
        w->seed = -1;
        w->random_percentile = NAN;
        w->result = result[i]; /* taken */
    }
    free(result);
    ho_backtest_drop(job);
    if (rc == HO_OK) {
        rc = ho_link_send(link, &m, err);
    }
    ho_message_clear(&m);
    return rc;
}
