/* SPDX-License-Identifier: Apache-2.0
 * hyperopt evaluate: saved agents, an outside model's signals, a list of actions or rule policies,
 * scored on any bars by the backtest of studies. A local worker computes (coordinator/job.h); this
 * turns options into its arguments. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "coordinator/commands.h"
#include "coordinator/evaluate_print.h"
#include "coordinator/job.h"
#include "coordinator/setup.h"
#include "study/safetensors.h"
#include "study/text.h"

enum { COSTS_MAX = 16 };

typedef struct evaluate_options {
    const char *study, *signals, *actions, *costs, *trades, *equity, *played;
    ho_option_list set, policy;
    int ensemble;
    int64_t momentum, windows, random;
    bool json, cpu;
    int model_count, data_count;
    const char *model[HO_OPTION_LIST_MAX], *data[HO_OPTION_LIST_MAX];
} evaluate_options;

static ho_status out_of_memory(ho_err *err)
{
    return ho_err_set(err, HO_ENOMEM, "evaluate: out of memory");
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* Positional arguments: agents are safetensors files, everything else is data. */
static ho_status sort_arguments(const ho_arguments *arguments, evaluate_options *o, ho_err *err)
{
    for (int i = 0; i < arguments->count; i++) {
        bool model = ends_with(arguments->item[i], ".safetensors");
        int *count = model ? &o->model_count : &o->data_count;
        if (*count >= HO_OPTION_LIST_MAX) {
            return ho_err_set(err, HO_EUSAGE, "more than %d files", HO_OPTION_LIST_MAX);
        }
        (model ? o->model : o->data)[(*count)++] = arguments->item[i];
    }
    if (o->data_count == 0 && !o->study) {
        return ho_err_set(err, HO_EUSAGE, "evaluate needs bars: a data file, or --study");
    }
    if ((o->model_count > 0) + (o->signals != NULL) + (o->actions != NULL) > 1) {
        return ho_err_set(err, HO_EUSAGE, "agents, --signals and --actions exclude each other");
    }
    return HO_OK;
}

/* ---- settings and windows -------------------------------------------------------------------- */

static bool is_data_key(const char *name)
{
    return strncmp(name, "data.", 5) == 0;
}

/* The settings an agent was trained with, its data left out. */
static ho_status settings_of_model(const char *path, ho_settings **out, ho_err *err)
{
    ho_safetensors st;
    ho_status rc = ho_safetensors_read(path, &st, err);
    if (rc != HO_OK) {
        return rc == HO_EIO ? ho_err_set(err, HO_EUSAGE, "%s: cannot be read", path) : rc;
    }
    const char *text = ho_safetensors_meta(&st, "settings");
    cJSON *json = text ? cJSON_Parse(text) : NULL;
    rc = json ? ho_settings_from_json(json, out, err)
              : ho_err_set(err, HO_EDATA, "%s: no agent that hyperopt wrote", path);
    for (int key = 0; rc == HO_OK && key < HO_KEY_COUNT; key++) {
        if (is_data_key(ho_setting((ho_key)key)->name)) {
            ho_settings_reset(*out, (ho_key)key);
        }
    }
    cJSON_Delete(json);
    ho_safetensors_free(&st);
    return rc;
}

/* Puts the data keys of `from` in place of those of `into`; both as ho_settings_to_json. */
static bool replace_data_keys(cJSON *into, const cJSON *from)
{
    cJSON *values = cJSON_GetObjectItemCaseSensitive(into, "values");
    cJSON *set = cJSON_GetObjectItemCaseSensitive(into, "set");
    const cJSON *item;
    bool good = cJSON_IsObject(values) && cJSON_IsArray(set);
    for (int i = good ? cJSON_GetArraySize(set) - 1 : -1; i >= 0; i--) {
        const char *name = cJSON_GetStringValue(cJSON_GetArrayItem(set, i));
        if (name && is_data_key(name)) {
            cJSON_DeleteItemFromArray(set, i);
        }
    }
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(from, "values"))
    {
        if (good && is_data_key(item->string)) {
            cJSON *copy = cJSON_Duplicate(item, true);
            cJSON_DeleteItemFromObjectCaseSensitive(values, item->string);
            good = copy && cJSON_AddItemToObject(values, item->string, copy);
        }
    }
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(from, "set"))
    {
        const char *name = cJSON_GetStringValue(item);
        if (good && name && is_data_key(name)) {
            good = cJSON_AddItemToArray(set, cJSON_CreateString(name));
        }
    }
    return good;
}

/* The settings of an agent's trial with the data keys of a study. */
static ho_status model_on_study(const char *path, const ho_settings *study, ho_settings **out,
                                ho_err *err)
{
    ho_settings *model = NULL;
    ho_status rc = settings_of_model(path, &model, err);
    cJSON *into = rc == HO_OK ? ho_settings_to_json(model) : NULL;
    cJSON *from = rc == HO_OK ? ho_settings_to_json(study) : NULL;
    if (rc == HO_OK) {
        rc = into && from && replace_data_keys(into, from) ? ho_settings_from_json(into, out, err)
                                                           : out_of_memory(err);
    }
    cJSON_Delete(into);
    cJSON_Delete(from);
    ho_settings_destroy(&model);
    return rc;
}

static bool add_texts(cJSON *object, const char *name, const char *const *text, int count)
{
    cJSON *list = cJSON_AddArrayToObject(object, name);
    for (int i = 0; list && i < count; i++) {
        char absolute[PATH_MAX];
        const char *path = realpath(text[i], absolute) ? absolute : text[i];
        if (!cJSON_AddItemToArray(list, cJSON_CreateString(path))) {
            return false;
        }
    }
    return list != NULL;
}

/* Windows of the study's folds: [train begin, end, test begin, end] each. */
static bool add_folds(cJSON *object, const ho_fold_plan *plan)
{
    cJSON *list = cJSON_AddArrayToObject(object, "windows");
    for (int i = 0; list && i < plan->count; i++) {
        const ho_fold *f = &plan->fold[i];
        const double bar[4] = {(double)f->train.begin, (double)f->train.end, (double)f->test.begin,
                               (double)f->test.end};
        cJSON *row = cJSON_CreateDoubleArray(bar, 4);
        if (!row || !cJSON_AddItemToArray(list, row)) {
            cJSON_Delete(row);
            return false;
        }
    }
    return list != NULL;
}

/* With a study: its settings, data (unless given) and folds. */
static ho_status add_study(const evaluate_options *o, cJSON *arguments, ho_settings **settings,
                           ho_err *err)
{
    ho_setup setup;
    ho_option_list set = o->set;
    char *path = NULL;
    char absolute[PATH_MAX];
    if (o->data_count > 1) {
        return ho_err_set(err, HO_EUSAGE, "with --study at most one data file");
    }
    if (o->data_count == 1) {
        const char *file = realpath(o->data[0], absolute) ? absolute : o->data[0];
        if (set.count >= HO_OPTION_LIST_MAX || asprintf(&path, "data.path=%s", file) < 0) {
            return out_of_memory(err);
        }
        set.item[set.count++] = path;
    }
    ho_status rc = ho_setup_load(&setup, o->study, &set, err);
    free(path);
    if (rc != HO_OK) {
        return rc;
    }
    const char *file[HO_OPTION_LIST_MAX];
    int files = setup.file_count < HO_OPTION_LIST_MAX ? setup.file_count : HO_OPTION_LIST_MAX;
    for (int i = 0; i < files; i++) {
        file[i] = setup.file[i].path;
    }
    if (o->model_count > 0) { /* an agent brings its trial's environment */
        rc = model_on_study(o->model[0], setup.study->settings, settings, err);
        rc = rc == HO_OK ? ho_setup_override(*settings, &o->set, err) : rc;
    } else {
        *settings = ho_settings_copy(setup.study->settings);
    }
    if (rc != HO_OK) {
        ho_setup_free(&setup);
        return rc;
    }
    bool good = *settings && add_texts(arguments, "data", file, files);
    good = good && (o->windows > 0
                        ? cJSON_AddNumberToObject(arguments, "windows", (double)o->windows) != NULL
                        : add_folds(arguments, &setup.folds));
    ho_setup_free(&setup);
    return good ? HO_OK : out_of_memory(err);
}

static ho_status add_market(const evaluate_options *o, cJSON *arguments, ho_err *err)
{
    ho_settings *settings = NULL;
    ho_status rc = HO_OK;
    if (o->study) {
        rc = add_study(o, arguments, &settings, err);
    } else if (o->model_count > 0) {
        rc = settings_of_model(o->model[0], &settings, err);
    } else {
        settings = ho_settings_create();
        rc = settings ? HO_OK : out_of_memory(err);
    }
    if (rc == HO_OK && !o->study) {
        rc = ho_setup_override(settings, &o->set, err);
    }
    if (rc == HO_OK && !o->study) {
        rc = ho_settings_set_list(settings, HO_KEY_DATA_PATH, o->data, o->data_count, err);
        if (rc == HO_OK && (!add_texts(arguments, "data", o->data, o->data_count) ||
                            !cJSON_AddNumberToObject(arguments, "windows", (double)o->windows))) {
            rc = out_of_memory(err);
        }
    }
    if (rc == HO_OK) {
        cJSON *json = ho_settings_to_json(settings);
        if (!json || !cJSON_AddItemToObject(arguments, "settings", json)) {
            cJSON_Delete(json);
            rc = out_of_memory(err);
        }
    }
    ho_settings_destroy(&settings);
    return rc;
}

/* ---- the other arguments --------------------------------------------------------------------- */

ho_status ho_costs_parse(const char *text, double *out, int room, int *count, ho_err *err)
{
    char copy[256];
    (void)snprintf(copy, sizeof copy, "%s", text);
    char *rest = copy;
    *count = 0;
    for (char *part = strsep(&rest, ","); part && *text; part = strsep(&rest, ",")) {
        double factor;
        if (!ho_text_parse_f64(part, &factor) || !(factor >= 0.0 && factor <= 1000.0) ||
            *count >= room) {
            return ho_err_set(err, HO_EUSAGE,
                              "--costs %s: at most %d numbers from 0 to 1000, "
                              "split by commas",
                              text, room);
        }
        out[(*count)++] = factor;
    }
    return HO_OK;
}

static ho_status add_costs(const char *text, cJSON *arguments, ho_err *err)
{
    double factor[COSTS_MAX];
    int count = 0;
    ho_status rc = ho_costs_parse(text, factor, COSTS_MAX, &count, err);
    if (rc == HO_OK) {
        cJSON *list = cJSON_CreateDoubleArray(factor, count);
        if (!list || !cJSON_AddItemToObject(arguments, "costs", list)) {
            cJSON_Delete(list);
            rc = out_of_memory(err);
        }
    }
    return rc;
}

/* A path that the worker, in the same folder or not, opens as this process would. */
static bool add_path(cJSON *arguments, const char *name, const char *path)
{
    char absolute[PATH_MAX + 1], cwd[PATH_MAX];
    if (!path) {
        return true;
    }
    if (path[0] == '/' || !getcwd(cwd, sizeof cwd)) {
        return cJSON_AddStringToObject(arguments, name, path) != NULL;
    }
    int n = snprintf(absolute, sizeof absolute, "%s/%s", cwd, path);
    return n < (int)sizeof absolute && cJSON_AddStringToObject(arguments, name, absolute) != NULL;
}

static ho_status make_arguments(const evaluate_options *o, cJSON *arguments, ho_err *err)
{
    static const char *const ensemble[] = {"mean_q", "vote", "confidence"};
    bool good =
        add_texts(arguments, "models", o->model, o->model_count) &&
        cJSON_AddStringToObject(arguments, "ensemble", ensemble[o->ensemble]) &&
        cJSON_AddNumberToObject(arguments, "momentum", (double)o->momentum) &&
        cJSON_AddNumberToObject(arguments, "random", (double)o->random) &&
        add_path(arguments, "signals", o->signals) && add_path(arguments, "actions", o->actions) &&
        add_path(arguments, "trades", o->trades) && add_path(arguments, "equity", o->equity) &&
        add_path(arguments, "played", o->played);
    cJSON *policies = good ? cJSON_AddArrayToObject(arguments, "policies") : NULL;
    for (int i = 0; policies && i < o->policy.count; i++) {
        good = good && cJSON_AddItemToArray(policies, cJSON_CreateString(o->policy.item[i]));
    }
    if (!policies || !good) {
        return out_of_memory(err);
    }
    ho_status rc = add_market(o, arguments, err);
    return rc == HO_OK ? add_costs(o->costs, arguments, err) : rc;
}

static ho_status evaluate(const evaluate_options *o, ho_err *err)
{
    cJSON *arguments = cJSON_CreateObject();
    ho_job_answer answer = {0};
    ho_status rc = arguments ? make_arguments(o, arguments, err) : out_of_memory(err);
    if (rc == HO_OK) {
        ho_job_request request = {.command = "evaluate", .arguments = arguments, .cpu = o->cpu};
        rc = ho_job_call(&request, &answer, err);
    }
    if (rc == HO_OK) {
        rc = (o->json ? ho_evaluate_print_json : ho_evaluate_print)(stdout, answer.body, err);
    }
    ho_job_answer_free(&answer);
    cJSON_Delete(arguments);
    return rc;
}

int ho_cmd_evaluate(int argc, char **argv)
{
    evaluate_options o = {.costs = "0,0.5,1,2,4", .momentum = 60, .random = 100};
    const ho_option option[] = {
        {"study", 's', HO_OPTION_STRING, &o.study, "FILE",
         "folds, bars (without DATA) and, without an agent, settings of this study", 0, 0},
        {"set", 0, HO_OPTION_LIST, &o.set, "KEY=VALUE", "a setting, as in a study file", 0, 0},
        {"policy", 'p', HO_OPTION_LIST, &o.policy, "NAME",
         "flat, buy_and_hold, short or momentum; default: the first two", 0, 0},
        {"momentum", 0, HO_OPTION_INTEGER, &o.momentum, "BARS", "of the momentum policy; 60", 1,
         1e9},
        {"ensemble", 'e', HO_OPTION_CHOICE, &o.ensemble, "mean_q|vote|confidence",
         "how several agents decide together", 0, 0},
        {"signals", 0, HO_OPTION_STRING, &o.signals, "FILE",
         "target exposures from -1 to 1 of any model, by time or in order", 0, 0},
        {"actions", 0, HO_OPTION_STRING, &o.actions, "FILE",
         "actions from 0 to 44, by time or in order", 0, 0},
        {"windows", 'w', HO_OPTION_INTEGER, &o.windows, "N",
         "equal parts to score one by one; default: the study's folds, else one", 1, 256},
        {"random", 0, HO_OPTION_INTEGER, &o.random, "N",
         "random policies to compare with; 100, 0 none", 0, 10000},
        {"costs", 0, HO_OPTION_STRING, &o.costs, "LIST",
         "cost factors for the sensitivity; 0,0.5,1,2,4", 0, 0},
        {"trades", 't', HO_OPTION_STRING, &o.trades, "FILE", "write the trades as CSV", 0, 0},
        {"equity", 0, HO_OPTION_STRING, &o.equity, "FILE", "write equity by bar as CSV", 0, 0},
        {"write-actions", 0, HO_OPTION_STRING, &o.played, "FILE", "write the actions as CSV", 0, 0},
        {"cpu", 0, HO_OPTION_FLAG, &o.cpu, NULL, "compute on the CPU", 0, 0},
        {"json", 0, HO_OPTION_FLAG, &o.json, NULL, "print JSON", 0, 0},
    };
    const ho_usage usage = {
        .name = "evaluate",
        .arguments = "[MODEL.safetensors ...] [DATA ...]",
        .about =
            "Backtests saved agents on any bars: one, or several as an ensemble. Without an agent\n"
            "it scores an outside model's signals, a list of actions, or rule policies, by the\n"
            "same backtest: same fills, same costs. Shows each window and all together, the same\n"
            "decisions at other costs, and the percentile among random policies that trade as\n"
            "much.\n",
        .examples = "  hyperopt evaluate agent.safetensors es-2024.csv\n"
                    "  hyperopt evaluate a.safetensors b.safetensors es.csv --ensemble vote\n"
                    "  hyperopt evaluate --signals forecasts.csv btc.csv --set env.spread_bps=2\n"
                    "  hyperopt evaluate --policy buy_and_hold --policy momentum --study es.toml\n",
        .option = option,
        .option_count = sizeof option / sizeof option[0],
        .min_arguments = 0,
        .max_arguments = 2 * HO_OPTION_LIST_MAX,
    };
    ho_arguments arguments;
    ho_err err = {0};
    ho_status rc = ho_usage_parse(&usage, argc, argv, &arguments);
    if (rc != HO_OK) {
        return ho_exit_code(rc);
    }
    if (o.policy.count == 0) {
        o.policy.item[o.policy.count++] = "flat";
        o.policy.item[o.policy.count++] = "buy_and_hold";
    }
    rc = sort_arguments(&arguments, &o, &err);
    rc = rc == HO_OK ? evaluate(&o, &err) : rc;
    return rc == HO_OK ? HO_EXIT_OK : ho_exit_report(&err);
}
