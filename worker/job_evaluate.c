/* SPDX-License-Identifier: Apache-2.0
 * Job "evaluate": arguments to an evaluation, its runs to JSON, trades and equity to files.
 *
 * arguments  settings   object of ho_settings_to_json
 *            data       [path], files of the bars
 *            models     [path]           ensemble   "mean_q" | "vote" | "confidence"
 *            windows    [[train begin, end, test begin, end]] or a number of equal parts (0: the
 *                       stamps of signals or actions, else one)
 *            policies   [name]           momentum   bars
 *            signals    path or null     actions    path or null
 *            random     how many random policies to compare with; 0 none
 *            costs      [factor]
 *            trades, equity, played      paths to write, or null
 * reply      data, windows, runs, costs, random; see coordinator/evaluate_print.c, which shows it
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "market/series.h"
#include "worker/evaluation.h"
#include "worker/evaluation_files.h"
#include "worker/job.h"

enum { RANDOM_MAX = 10000, COSTS_MAX = 16 };

typedef struct evaluate_job {
    const cJSON *arguments;
    ho_evaluation evaluation;
    ho_settings *settings;
    uint8_t *actions; /* [T] of the file */
    float *targets;   /* [T] */
    cJSON *reply;
} evaluate_job;

static ho_status out_of_memory(ho_err *err)
{
    return ho_err_set(err, HO_ENOMEM, "out of memory for the evaluation");
}

/* ---- arguments ------------------------------------------------------------------------------- */

static const char *text_of(const cJSON *arguments, const char *name)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(arguments, name));
}

static double number_of(const cJSON *arguments, const char *name, double otherwise)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(arguments, name);
    return cJSON_IsNumber(item) ? item->valuedouble : otherwise;
}

/* Texts of a list; *out borrows them, the array is the caller's. */
static ho_status list_of(const cJSON *arguments, const char *name, int most, const char ***out,
                         int *count, ho_err *err)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(arguments, name), *item;
    *count = 0;
    *out = calloc((size_t)cJSON_GetArraySize(list) + 1, sizeof **out);
    if (!*out) {
        return out_of_memory(err);
    }
    cJSON_ArrayForEach(item, list)
    {
        if (!cJSON_IsString(item) || *count >= most) {
            return ho_err_set(err, HO_EPROTO, "evaluate: a bad list \"%s\"", name);
        }
        (*out)[(*count)++] = item->valuestring;
    }
    return HO_OK;
}

static ho_status windows_of(const cJSON *arguments, ho_evaluation_window *window, int *count,
                            bool *given, ho_err *err)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(arguments, "windows"), *item;
    *given = cJSON_IsArray(list);
    *count = cJSON_IsNumber(list) ? list->valueint : 0;
    cJSON_ArrayForEach(item, list)
    {
        int64_t bar[4];
        if (*count >= HO_EVALUATION_WINDOWS_MAX || cJSON_GetArraySize(item) != 4) {
            return ho_err_set(err, HO_EPROTO, "evaluate: bad windows");
        }
        for (int i = 0; i < 4; i++) {
            const cJSON *number = cJSON_GetArrayItem(item, i);
            if (!cJSON_IsNumber(number) || fabs(number->valuedouble) > 1e15) {
                return ho_err_set(err, HO_EPROTO, "evaluate: bad windows");
            }
            bar[i] = (int64_t)number->valuedouble;
        }
        window[(*count)++] =
            (ho_evaluation_window){.train = {bar[0], bar[1]}, .test = {bar[2], bar[3]}};
    }
    return HO_OK;
}

static ho_status open_evaluation(evaluate_job *j, ho_backend *backend, ho_err *err)
{
    const char **path = NULL, **model = NULL;
    ho_evaluation_window *window = calloc(HO_EVALUATION_WINDOWS_MAX, sizeof *window);
    ho_evaluation_options o = {.backend = backend};
    bool given = false;
    ho_status rc = window ? HO_OK : out_of_memory(err);
    if (rc == HO_OK) {
        rc = ho_settings_from_json(cJSON_GetObjectItemCaseSensitive(j->arguments, "settings"),
                                   &j->settings, err);
    }
    rc = rc == HO_OK ? list_of(j->arguments, "data", 4096, &path, &o.path_count, err) : rc;
    rc = rc == HO_OK ? list_of(j->arguments, "models", HO_EVALUATION_MODELS_MAX, &model,
                               &o.model_count, err)
                     : rc;
    rc = rc == HO_OK ? windows_of(j->arguments, window, &o.window_count, &given, err) : rc;
    if (rc == HO_OK) {
        o.settings = j->settings;
        o.path = path;
        o.model = model;
        o.window = given ? window : NULL;
        rc = ho_evaluation_open(&j->evaluation, &o, err);
    }
    free(path);
    free(model);
    free(window);
    return rc;
}

/* ---- signals and actions from files ------------------------------------------------------------
 */

/* The bar of each row: by its stamp (a bar's open), or in order from the first window's begin. */
static ho_status place_rows(const evaluate_job *j, const char *path, const ho_series *s,
                            int64_t *bar, ho_err *err)
{
    const ho_bars *bars = &j->evaluation.bars;
    int64_t begin = j->evaluation.window[0].test.begin, at = 0;
    if (!s->time_ns && s->count > bars->count - begin) {
        return ho_err_set(err, HO_EDATA, "%s: %lld rows for %lld bars", path, (long long)s->count,
                          (long long)(bars->count - begin));
    }
    for (int64_t i = 0; i < s->count; i++) {
        if (!s->time_ns) {
            bar[i] = begin + i;
            continue;
        }
        while (at < bars->count && bars->open_ns[at] < s->time_ns[i]) {
            at++;
        }
        if (at == bars->count || bars->open_ns[at] != s->time_ns[i]) {
            return ho_err_set(err, HO_EDATA,
                              "%s: the stamp of row %lld is not the open of a bar of the data",
                              path, (long long)(i + 1));
        }
        bar[i] = at;
    }
    return HO_OK;
}

/* Without windows of their own, rows with stamps say what is scored: from the first to the bar
 * after the last, in which it fills. */
static ho_status follow_rows(evaluate_job *j, const ho_series *s, const int64_t *bar, ho_err *err)
{
    const cJSON *windows = cJSON_GetObjectItemCaseSensitive(j->arguments, "windows");
    if (!s->time_ns || cJSON_IsArray(windows) ||
        (cJSON_IsNumber(windows) && windows->valueint > 0)) {
        return HO_OK;
    }
    int64_t end = bar[s->count - 1] + 2, T = j->evaluation.bars.count;
    return ho_evaluation_restrict(&j->evaluation, j->settings,
                                  (ho_window){bar[0], end < T ? end : T}, err);
}

static ho_status read_series(evaluate_job *j, const char *path, const char *const *names,
                             ho_series *s, int64_t **bar, ho_err *err)
{
    ho_status rc = ho_series_read(path, NULL, names, s, err);
    *bar = rc == HO_OK ? calloc((size_t)s->count + 1, sizeof **bar) : NULL;
    if (rc == HO_OK && !*bar) {
        rc = out_of_memory(err);
    }
    rc = rc == HO_OK ? place_rows(j, path, s, *bar, err) : rc;
    return rc == HO_OK ? follow_rows(j, s, *bar, err) : rc;
}

/* Target exposures; bars without a row keep the last one, flat before the first. */
static ho_status read_signals(evaluate_job *j, const char *path, ho_err *err)
{
    static const char *const names[] = {"signal", "target",   "exposure", "position",
                                        "weight", "forecast", NULL};
    ho_series s = {0};
    int64_t *bar = NULL, T = j->evaluation.bars.count;
    ho_status rc = read_series(j, path, names, &s, &bar, err);
    j->targets = rc == HO_OK ? malloc((size_t)T * sizeof *j->targets) : NULL;
    for (int64_t t = 0; j->targets && t < T; t++) {
        j->targets[t] = NAN;
    }
    for (int64_t i = 0; j->targets && i < s.count && rc == HO_OK; i++) {
        if (!(fabs(s.value[i]) <= 1.0)) {
            rc = ho_err_set(err, HO_EDATA, "%s: row %lld: %g; exposures are -1 to 1", path,
                            (long long)(i + 1), s.value[i]);
        }
        j->targets[bar[i]] = (float)s.value[i];
    }
    float last = 0.0f;
    for (int64_t t = 0; j->targets && t < T; t++) {
        last = isnan(j->targets[t]) ? last : j->targets[t];
        j->targets[t] = last;
    }
    rc = rc == HO_OK && !j->targets ? out_of_memory(err) : rc;
    free(bar);
    ho_series_free(&s);
    return rc;
}

/* Composed actions; every bar of every window but its last needs one. */
static ho_status read_actions(evaluate_job *j, const char *path, ho_err *err)
{
    static const char *const names[] = {"action", "actions", NULL};
    ho_series s = {0};
    int64_t *bar = NULL, T = j->evaluation.bars.count;
    ho_status rc = read_series(j, path, names, &s, &bar, err);
    j->actions = rc == HO_OK ? malloc((size_t)T) : NULL;
    if (j->actions) {
        memset(j->actions, HO_ACTIONS, (size_t)T); /* none */
    }
    for (int64_t i = 0; j->actions && i < s.count && rc == HO_OK; i++) {
        double a = s.value[i];
        if (!(a >= 0.0 && a < HO_ACTIONS && floor(a) == a)) {
            rc = ho_err_set(err, HO_EDATA, "%s: row %lld: %g; actions are 0 to %d", path,
                            (long long)(i + 1), a, HO_ACTIONS - 1);
        } else {
            j->actions[bar[i]] = (uint8_t)a;
        }
    }
    for (int w = 0; j->actions && w < j->evaluation.window_count && rc == HO_OK; w++) {
        ho_window test = j->evaluation.window[w].test;
        for (int64_t t = test.begin; t + 1 < test.end && rc == HO_OK; t++) {
            if (j->actions[t] == HO_ACTIONS) {
                rc = ho_err_set(err, HO_EDATA, "%s: no action for bar %lld of [%lld, %lld)", path,
                                (long long)t, (long long)test.begin, (long long)test.end);
            }
        }
    }
    rc = rc == HO_OK && !j->actions ? out_of_memory(err) : rc;
    free(bar);
    ho_series_free(&s);
    return rc;
}

/* ---- reply ----------------------------------------------------------------------------------- */

/* NaN travels as null. */
static bool add_number(cJSON *object, const char *name, double value)
{
    return isfinite(value) ? cJSON_AddNumberToObject(object, name, value) != NULL
                           : cJSON_AddNullToObject(object, name) != NULL;
}

static bool add_result(cJSON *object, const ho_backtest_result *r)
{
    cJSON *values = cJSON_AddArrayToObject(object, "values");
    cJSON *reasons = cJSON_AddArrayToObject(object, "reasons");
    bool good = values && reasons;
    for (int i = 0; good && i < HO_METRIC_COUNT; i++) {
        double v = r->metrics.value[i];
        good = cJSON_AddItemToArray(values,
                                    isfinite(v) ? cJSON_CreateNumber(v) : cJSON_CreateNull()) &&
               cJSON_AddItemToArray(reasons, cJSON_CreateNumber(r->metrics.reason[i]));
    }
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"flags", r->metrics.flags},
                   {"initial_capital", r->initial_capital},
                   {"final_equity", r->final_equity},
                   {"realised", r->realised},
                   {"unrealised", r->unrealised},
                   {"fees", r->fees},
                   {"spread", r->spread},
                   {"impact", r->impact},
                   {"rounding", r->rounding},
                   {"funding", r->funding},
                   {"open_pnl", r->open_pnl},
                   {"traded", r->traded},
                   {"steps", (double)r->steps},
                   {"position_changes", (double)r->position_changes}};
    for (size_t i = 0; good && i < sizeof numbers / sizeof numbers[0]; i++) {
        good = add_number(object, numbers[i].name, numbers[i].value);
    }
    cJSON *exits = good ? cJSON_AddArrayToObject(object, "exits") : NULL;
    for (int i = 0; exits && good && i < HO_EXIT_REASONS; i++) {
        good = cJSON_AddItemToArray(exits, cJSON_CreateNumber((double)r->exit_count[i]));
    }
    cJSON *actions = exits ? cJSON_AddArrayToObject(object, "actions") : NULL;
    for (int i = 0; actions && good && i < HO_ACTIONS; i++) {
        good = cJSON_AddItemToArray(actions, cJSON_CreateNumber((double)r->action_count[i]));
    }
    return good && actions;
}

static bool add_run(cJSON *runs, const char *name, const ho_evaluation_run *run)
{
    cJSON *object = cJSON_CreateObject();
    if (!object || !cJSON_AddItemToArray(runs, object)) {
        cJSON_Delete(object);
        return false;
    }
    bool good = cJSON_AddStringToObject(object, "name", name) != NULL;
    cJSON *total = good ? cJSON_AddObjectToObject(object, "total") : NULL;
    cJSON *windows =
        total && add_result(total, &run->total) ? cJSON_AddArrayToObject(object, "windows") : NULL;
    for (int i = 0; windows && i < run->count; i++) {
        cJSON *window = cJSON_CreateObject();
        good = window && cJSON_AddItemToArray(windows, window);
        if (!good) {
            cJSON_Delete(window);
            return false;
        }
        if (!add_result(window, &run->window[i])) {
            return false;
        }
    }
    return windows != NULL;
}

static bool add_data(evaluate_job *j)
{
    const ho_evaluation *e = &j->evaluation;
    cJSON *data = cJSON_AddObjectToObject(j->reply, "data");
    bool good = data && cJSON_AddStringToObject(data, "sha256", e->bars.sha256) &&
                add_number(data, "bars", (double)e->bars.count) &&
                add_number(data, "warmup", (double)e->features.warmup) &&
                add_number(data, "interval_s", (double)e->bars.interval_ns * 1e-9) &&
                add_number(data, "sessions_per_year", e->bars.sessions_per_year) &&
                cJSON_AddBoolToObject(data, "optimistic_fill", e->env[0].fill == HO_FILL_CLOSE);
    cJSON *windows = good ? cJSON_AddArrayToObject(j->reply, "windows") : NULL;
    for (int i = 0; windows && i < e->window_count; i++) {
        const ho_env_config *c = &e->env[i];
        ho_window w = e->window[i].test;
        cJSON *row = cJSON_CreateObject();
        if (!row || !cJSON_AddItemToArray(windows, row)) {
            cJSON_Delete(row);
            return false;
        }
        double quantity = c->max_lots * c->lot;
        double notional =
            fabs(e->bars.ohlcv[w.begin * HO_BAR_COLUMNS + HO_CLOSE]) * quantity * c->multiplier;
        good = add_number(row, "begin", (double)w.begin) && add_number(row, "end", (double)w.end) &&
               add_number(row, "begin_s", (double)e->bars.open_ns[w.begin] * 1e-9) &&
               add_number(row, "end_s", (double)e->bars.open_ns[w.end - 1] * 1e-9) &&
               add_number(row, "quantity", quantity) && add_number(row, "notional", notional) &&
               add_number(row, "leverage", notional / c->initial_capital);
        if (!good) {
            return false;
        }
    }
    return windows != NULL;
}

/* ---- the runs -------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    ho_policy policy;
} rules[] = {{"flat", HO_POLICY_FLAT},
             {"buy_and_hold", HO_POLICY_BUY_HOLD},
             {"short", HO_POLICY_SHORT},
             {"momentum", HO_POLICY_MOMENTUM}};

static ho_status find_rule(const char *name, ho_policy *out, ho_err *err)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (strcmp(rules[i].name, name) == 0) {
            *out = rules[i].policy;
            return HO_OK;
        }
    }
    return ho_err_set(err, HO_EUSAGE,
                      "no policy \"%s\"; there are flat, buy_and_hold, short, momentum", name);
}

/* What is evaluated: the agent, the signals or the actions; HO_EDONE when there is none. */
static ho_status subject_of(const evaluate_job *j, ho_evaluation_policy *out, const char **name,
                            ho_err *err)
{
    *out = (ho_evaluation_policy){.cost_factor = 1.0};
    if (j->targets) {
        out->policy = HO_POLICY_TARGETS;
        out->targets = j->targets;
        *name = "signals";
    } else if (j->actions) {
        out->policy = HO_POLICY_ACTIONS;
        out->actions = j->actions;
        *name = "actions";
    } else if (j->evaluation.model_count == 1) {
        out->policy = HO_POLICY_GREEDY;
        *name = "agent";
    } else if (j->evaluation.model_count > 1) {
        const char *how = text_of(j->arguments, "ensemble");
        *name = "ensemble";
        out->policy = !how || strcmp(how, "mean_q") == 0 ? HO_POLICY_MEAN_Q
                      : strcmp(how, "vote") == 0         ? HO_POLICY_VOTE
                                                         : HO_POLICY_CONFIDENCE;
        if (out->policy == HO_POLICY_CONFIDENCE && strcmp(how, "confidence") != 0) {
            return ho_err_set(err, HO_EUSAGE, "no ensemble \"%s\"", how);
        }
    } else {
        return HO_EDONE;
    }
    return HO_OK;
}

/* The subject's own decisions at other costs: recorded actions replayed, signals played again. */
static ho_status play_costs(evaluate_job *j, const ho_evaluation_policy *subject,
                            const ho_evaluation_run *run, ho_err *err)
{
    const cJSON *factors = cJSON_GetObjectItemCaseSensitive(j->arguments, "costs"), *factor;
    cJSON *rows = cJSON_AddArrayToObject(j->reply, "costs");
    ho_evaluation_policy p = *subject;
    uint8_t *recorded = NULL;
    ho_status rc = rows ? HO_OK : out_of_memory(err);
    if (rc == HO_OK && subject->policy <= HO_POLICY_CONFIDENCE) {
        recorded = calloc((size_t)j->evaluation.bars.count + 1, 1);
        rc = recorded ? HO_OK : out_of_memory(err);
        for (int i = 0; rc == HO_OK && i < run->count; i++) {
            memcpy(recorded + j->evaluation.window[i].test.begin, run->window[i].actions,
                   (size_t)run->window[i].bars);
        }
        p.policy = HO_POLICY_ACTIONS;
        p.actions = recorded;
    }
    int n = 0;
    cJSON_ArrayForEach(factor, factors)
    {
        ho_evaluation_run at;
        p.cost_factor = cJSON_IsNumber(factor) ? factor->valuedouble : -1.0;
        if (rc == HO_OK &&
            (!(p.cost_factor >= 0.0 && p.cost_factor <= 1000.0) || n++ >= COSTS_MAX)) {
            rc = ho_err_set(err, HO_EUSAGE, "cost factors are 0 to 1000, at most %d", COSTS_MAX);
        }
        rc = rc == HO_OK ? ho_evaluation_play(&j->evaluation, &p, &at, err) : rc;
        if (rc == HO_OK) {
            cJSON *row = cJSON_CreateObject();
            bool good = row && cJSON_AddItemToArray(rows, row);
            if (!good) {
                cJSON_Delete(row);
            }
            good = good && add_number(row, "factor", p.cost_factor) && add_result(row, &at.total);
            rc = good ? HO_OK : out_of_memory(err);
            ho_evaluation_run_free(&at);
        }
    }
    free(recorded);
    return rc;
}

static ho_status compare_random(evaluate_job *j, const ho_evaluation_run *run, ho_err *err)
{
    double asked = number_of(j->arguments, "random", 0.0), turnover = 0.0, exposure = 0.0;
    int n = asked >= 1.0 && asked <= RANDOM_MAX ? (int)asked : 0;
    double *returns = n > 0 ? calloc((size_t)n, sizeof *returns) : NULL;
    if (n == 0 || !returns) {
        return n == 0 ? HO_OK : out_of_memory(err);
    }
    ho_status rc = ho_evaluation_random(&j->evaluation, run, n, returns, &turnover, &exposure, err);
    if (rc == HO_OK) {
        double mine = run->total.metrics.value[HO_METRIC_TOTAL_RETURN], below = 0.0;
        for (int i = 0; i < n; i++) {
            below += returns[i] < mine ? 1.0 : returns[i] == mine ? 0.5 : 0.0;
        }
        cJSON *row = cJSON_AddObjectToObject(j->reply, "random");
        bool good = row && add_number(row, "count", n) && add_number(row, "turnover", turnover) &&
                    add_number(row, "exposure", exposure) &&
                    add_number(row, "percentile", below / n) &&
                    add_number(row, "total_return_min", returns[0]) &&
                    add_number(row, "total_return_median", returns[n / 2]) &&
                    add_number(row, "total_return_max", returns[n - 1]);
        rc = good ? HO_OK : out_of_memory(err);
    }
    free(returns);
    return rc;
}

static ho_status write_files(const evaluate_job *j, const ho_evaluation_run *run, ho_err *err)
{
    const char *trades = text_of(j->arguments, "trades");
    const char *equity = text_of(j->arguments, "equity");
    const char *played = text_of(j->arguments, "played");
    ho_status rc = HO_OK;
    rc = trades ? ho_evaluation_write_trades(&j->evaluation, run, trades, err) : rc;
    rc = rc == HO_OK && equity ? ho_evaluation_write_equity(&j->evaluation, run, equity, err) : rc;
    rc = rc == HO_OK && played ? ho_evaluation_write_actions(&j->evaluation, run, played, err) : rc;
    return rc;
}

static ho_status play_subject(evaluate_job *j, cJSON *runs, ho_err *err)
{
    ho_evaluation_policy subject;
    const char *name = NULL;
    ho_evaluation_run run;
    ho_status rc = subject_of(j, &subject, &name, err);
    if (rc != HO_OK) {
        return rc == HO_EDONE ? HO_OK : rc;
    }
    rc = ho_evaluation_play(&j->evaluation, &subject, &run, err);
    if (rc != HO_OK) {
        return rc;
    }
    rc = add_run(runs, name, &run) ? HO_OK : out_of_memory(err);
    rc = rc == HO_OK ? write_files(j, &run, err) : rc;
    rc = rc == HO_OK ? play_costs(j, &subject, &run, err) : rc;
    rc = rc == HO_OK ? compare_random(j, &run, err) : rc;
    ho_evaluation_run_free(&run);
    return rc;
}

static ho_status play_rules(evaluate_job *j, cJSON *runs, bool files, ho_err *err)
{
    const char **name = NULL;
    int count = 0;
    ho_status rc = list_of(j->arguments, "policies", 16, &name, &count, err);
    for (int i = 0; i < count && rc == HO_OK; i++) {
        ho_evaluation_policy p = {.momentum_bars = (int)number_of(j->arguments, "momentum", 60.0),
                                  .cost_factor = 1.0};
        ho_evaluation_run run;
        rc = find_rule(name[i], &p.policy, err);
        rc = rc == HO_OK ? ho_evaluation_play(&j->evaluation, &p, &run, err) : rc;
        if (rc == HO_OK) {
            rc = add_run(runs, name[i], &run) ? HO_OK : out_of_memory(err);
            rc = rc == HO_OK && files && i == 0 ? write_files(j, &run, err) : rc;
            ho_evaluation_run_free(&run);
        }
    }
    free(name);
    return rc;
}

ho_status ho_job_evaluate(const ho_job_context *context, const cJSON *arguments,
                          ho_job_reply *reply, ho_err *err)
{
    evaluate_job j = {.arguments = arguments};
    const char *signals = text_of(arguments, "signals"), *actions = text_of(arguments, "actions");
    ho_status rc = open_evaluation(&j, context->backend, err);
    rc = rc == HO_OK && signals ? read_signals(&j, signals, err) : rc;
    rc = rc == HO_OK && actions ? read_actions(&j, actions, err) : rc;
    j.reply = rc == HO_OK ? cJSON_CreateObject() : NULL;
    cJSON *runs = j.reply ? cJSON_AddArrayToObject(j.reply, "runs") : NULL;
    if (rc == HO_OK && (!runs || !add_data(&j))) {
        rc = out_of_memory(err);
    }
    rc = rc == HO_OK ? play_subject(&j, runs, err) : rc;
    bool subject = rc == HO_OK && cJSON_GetArraySize(runs) > 0;
    rc = rc == HO_OK ? play_rules(&j, runs, !subject, err) : rc;
    reply->body = j.reply; /* the caller clears it on failure */
    free(j.actions);
    free(j.targets);
    ho_settings_destroy(&j.settings);
    ho_evaluation_close(&j.evaluation);
    return rc;
}
