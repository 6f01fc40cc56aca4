/* SPDX-License-Identifier: Apache-2.0
 * See rerun.h. */
#include "coordinator/rerun.h"

#include <cjson/cJSON.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coordinator/artifacts.h"
#include "study/text.h"

typedef struct lookup {
    ho_rerun_trial *trial;
    int count;
    double *config; /* [count] */
    bool found, fits;
} lookup;

static ho_status keep_trial(const ho_stored_trial *trial, void *user)
{
    lookup *l = (lookup *)user;
    if (trial->number == l->trial->number) {
        l->found = true;
        l->fits = trial->fits;
        l->trial->state = trial->state;
        l->trial->source = trial->source;
        l->trial->seeds = trial->seeds;
        memcpy(l->config, trial->config, (size_t)l->count * sizeof *l->config);
    }
    return HO_OK;
}

static cJSON *make_arguments(const ho_store *store, const lookup *l, const ho_settings *settings,
                             ho_rerun_windows windows)
{
    static const char *const name[] = {"folds", "holdout", "refit", "actions"};
    char text[64], folder[PATH_MAX], absolute[PATH_MAX], trial[PATH_MAX + 32];
    cJSON *arguments = cJSON_CreateObject();
    cJSON *config = cJSON_AddArrayToObject(arguments, "config");
    bool ok = config != NULL;

    (void)snprintf(text, sizeof text, "%lld", (long long)l->trial->number);
    ok = ok && cJSON_AddStringToObject(arguments, "number", text);
    (void)snprintf(text, sizeof text, "%llu",
                   (unsigned long long)ho_settings_i64(settings, HO_KEY_STUDY_SEED));
    ok = ok && cJSON_AddStringToObject(arguments, "seed", text) &&
         cJSON_AddStringToObject(arguments, "windows", name[windows]);
    ho_artifacts_folder(ho_store_path(store), folder, sizeof folder);
    (void)snprintf(trial, sizeof trial, "%s/trial-%06lld",
                   realpath(folder, absolute) ? absolute : folder, (long long)l->trial->number);
    ok = ok && cJSON_AddStringToObject(arguments, "folder", trial);
    for (int i = 0; ok && i < l->count; i++) {
        (void)ho_text_f64(l->config[i], text, sizeof text);
        cJSON *item = isnan(l->config[i]) ? cJSON_CreateNull() : cJSON_CreateString(text);
        ok = item && cJSON_AddItemToArray(config, item);
    }
    if (!ok) {
        cJSON_Delete(arguments);
        return NULL;
    }
    return arguments;
}

/* A trial that was raced and dropped has run some of the folds: those alone are run again. */
static ho_status add_folds(ho_store *store, int64_t number, int folds, cJSON *arguments,
                           ho_err *err)
{
    sqlite3_stmt *statement = NULL;
    cJSON *list = cJSON_CreateArray();
    bool ok = list && sqlite3_prepare_v2(ho_store_db(store),
                                         "SELECT DISTINCT fold FROM fold_result WHERE trial = ? "
                                         "AND fold >= 0 ORDER BY fold",
                                         -1, &statement, NULL) == SQLITE_OK;
    ok = ok && sqlite3_bind_int64(statement, 1, number) == SQLITE_OK;
    while (ok && sqlite3_step(statement) == SQLITE_ROW) {
        ok = cJSON_AddItemToArray(list, cJSON_CreateNumber(sqlite3_column_int(statement, 0)));
    }
    (void)sqlite3_finalize(statement);
    int count = cJSON_GetArraySize(list);
    if (ok && count > 0 && count < folds) {
        ok = cJSON_AddItemToObject(arguments, "fold", list);
        list = ok ? NULL : list;
    }
    cJSON_Delete(list);
    return ok ? HO_OK : ho_err_set(err, HO_ENOMEM, "out of memory");
}

static void show_waiting(double seconds, void *user)
{
    (void)user;
    if (isatty(STDERR_FILENO)) {
        (void)fprintf(stderr, "\rtraining, %.0f s ", seconds);
    }
}

static ho_status find_trial(ho_store *store, const ho_setup *setup, ho_rerun_windows windows,
                            lookup *l, ho_err *err)
{
    ho_status rc = ho_store_each_trial(store, &setup->study->space, keep_trial, l, err);
    if (rc != HO_OK) {
        return rc;
    }
    if (!l->found) {
        return ho_err_set(err, HO_ENOTFOUND, "%s: there is no trial %lld", ho_store_path(store),
                          (long long)l->trial->number);
    }
    if (windows != HO_RERUN_ACTIONS &&
        (l->trial->source == HO_SOURCE_POPULATION ||
         ho_settings_i64(setup->study->settings, HO_KEY_POPULATION_SIZE) > 0)) {
        return ho_err_set(err, HO_ECONFIG,
                          "trial %lld took weights over from other members of its population: it "
                          "cannot be trained alone",
                          (long long)l->trial->number);
    }
    if (!l->fits) {
        return ho_err_set(err, HO_ECONFIG,
                          "trial %lld was proposed by an earlier version of the study, whose "
                          "parameters do not fit the present one",
                          (long long)l->trial->number);
    }
    return ho_settings_set_i64(setup->study->settings, HO_KEY_STUDY_SEEDS, l->trial->seeds, err);
}

static ho_status rerun(ho_store *store, int64_t number, ho_rerun_windows windows, bool cpu,
                       const double *costs, int cost_count, int trades, ho_rerun_trial *trial,
                       ho_job_answer *out, ho_err *err)
{
    ho_store_info info = {0};
    ho_setup setup = {0};
    lookup l = {.trial = trial};
    cJSON *arguments = NULL;
    ho_status rc = HO_OK;

    memset(out, 0, sizeof *out);
    *trial = (ho_rerun_trial){.number = number};
    if ((rc = ho_store_read_info(store, &info, err)) != HO_OK ||
        (rc = ho_setup_stored(&setup, &info, err)) != HO_OK) {
        goto out;
    }
    trial->folds = setup.folds;
    l.count = setup.study->space.count;
    if (!(l.config = (double *)calloc((size_t)l.count + 1, sizeof *l.config))) {
        rc = ho_err_set(err, HO_ENOMEM, "out of memory");
        goto out;
    }
    if ((rc = find_trial(store, &setup, windows, &l, err)) != HO_OK) {
        goto out;
    }
    if (!(arguments = make_arguments(store, &l, setup.study->settings, windows))) {
        rc = ho_err_set(err, HO_ENOMEM, "out of memory");
        goto out;
    }
    if ((windows == HO_RERUN_FOLDS || windows == HO_RERUN_ACTIONS) &&
        (rc = add_folds(store, number, setup.folds.count, arguments, err)) != HO_OK) {
        goto out;
    }
    cJSON *factors = cJSON_CreateDoubleArray(costs, cost_count);
    if (!factors || !cJSON_AddItemToObject(arguments, "costs", factors) ||
        !cJSON_AddNumberToObject(arguments, "trades", trades)) {
        cJSON_Delete(factors);
        rc = ho_err_set(err, HO_ENOMEM, "out of memory");
        goto out;
    }
    ho_job_request request = {.command = windows == HO_RERUN_ACTIONS ? "verify" : "train",
                              .arguments = arguments,
                              .setup = &setup,
                              .cpu = cpu,
                              .waiting = show_waiting};
    rc = ho_job_call(&request, out, err);
    if (isatty(STDERR_FILENO)) {
        (void)fprintf(stderr, "\r                        \r");
    }
out:
    cJSON_Delete(arguments);
    free(l.config);
    ho_setup_free(&setup);
    ho_store_info_free(&info);
    return rc;
}

ho_status ho_rerun(ho_store *store, int64_t number, ho_rerun_windows windows, bool cpu,
                   ho_rerun_trial *trial, ho_job_answer *out, ho_err *err)
{
    const double none = 0.0;
    return rerun(store, number, windows, cpu, &none, 0, 0, trial, out, err);
}

ho_status ho_rerun_actions(ho_store *store, int64_t number, const double *costs, int count,
                           int trades, ho_rerun_trial *trial, ho_job_answer *out, ho_err *err)
{
    return rerun(store, number, HO_RERUN_ACTIONS, true, costs, count, trades, trial, out, err);
}
