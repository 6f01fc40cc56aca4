/* SPDX-License-Identifier: Apache-2.0
 * See setup.h. */
#include "coordinator/setup.h"

#include <cjson/cJSON.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "market/study_data.h"
#include "study/sha256.h"
#include "study/text.h"

ho_status ho_setup_override(ho_settings *settings, const ho_option_list *set, ho_err *err)
{
    for (int i = 0; set && i < set->count; i++) {
        char name[128];
        const char *equals = strchr(set->item[i], '=');
        size_t length = equals ? (size_t)(equals - set->item[i]) : 0;
        if (!equals || length == 0 || length >= sizeof name) {
            return ho_err_set(err, HO_EUSAGE, "--set %s: expected KEY=VALUE", set->item[i]);
        }
        memcpy(name, set->item[i], length);
        name[length] = '\0';
        ho_key key = ho_setting_find(name);
        if (key == HO_KEY_COUNT) {
            ho_key near = ho_setting_nearest(name);
            return ho_err_set(err, HO_EUSAGE, "--set %s: there is no key \"%s\"%s%s", set->item[i],
                              name, near == HO_KEY_COUNT ? "" : "; did you mean ",
                              near == HO_KEY_COUNT ? "" : ho_setting(near)->name);
        }
        if (ho_settings_set_text(settings, key, equals + 1, err) != HO_OK) {
            (void)ho_err_prefix(err, "--set");
            return err ? err->code = HO_EUSAGE : HO_EUSAGE;
        }
    }
    return HO_OK;
}

static ho_status find_files(ho_setup *s, ho_err *err)
{
    int count = ho_settings_list_count(s->study->settings, HO_KEY_DATA_PATH);
    ho_status rc = HO_OK;

    if (count > HO_WIRE_FILES_MAX) {
        return ho_err_set(err, HO_ECONFIG, "data.path: more than %d files", HO_WIRE_FILES_MAX);
    }
    if (!(s->file = (ho_data_file *)calloc((size_t)count + 1, sizeof *s->file))) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    for (int i = 0; i < count && rc == HO_OK; i++) {
        ho_data_file *f = &s->file[i];
        char path[HO_WIRE_PATH], absolute[PATH_MAX];
        const char *written = ho_settings_list_str(s->study->settings, HO_KEY_DATA_PATH, i);
        if ((rc = ho_study_path(s->study, written, path, sizeof path, err)) != HO_OK ||
            (rc = ho_sha256_file(path, f->sha256, &f->size, err)) != HO_OK) {
            (void)ho_err_prefix(err, "%s: data.path", s->study->source);
            return rc == HO_EIO ? HO_EDATA : rc;
        }
        (void)snprintf(f->path, sizeof f->path, "%s", realpath(path, absolute) ? absolute : path);
        s->file_count++;
    }
    return rc;
}

static ho_status load_market(ho_setup *s, ho_err *err)
{
    ho_features features = {0};
    const char **path = (const char **)calloc(2 * ((size_t)s->file_count + 1), sizeof *path);
    ho_fold_spec spec = ho_study_fold_spec(s->study);
    ho_status rc = HO_OK;

    if (!path) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    const char **sha256 = path + s->file_count + 1;
    for (int i = 0; i < s->file_count; i++) {
        path[i] = s->file[i].path;
        sha256[i] = s->file[i].sha256;
    }
    if ((rc = ho_study_bars_cached(s->study->settings, path, sha256, s->file_count, &s->bars,
                                   &s->report, err)) != HO_OK ||
        (rc = ho_study_features(s->study->settings, &s->bars, &features, err)) != HO_OK) {
        goto out;
    }
    s->warmup = features.warmup;
    s->columns = features.F;
    rc = ho_folds_plan(&spec, features.warmup, s->bars.count, s->bars.session, features.split,
                       &s->folds, err);
    if (rc != HO_OK) {
        (void)ho_err_prefix(err, "%s", s->study->source);
    }
out:
    ho_features_free(&features);
    free(path);
    return rc;
}

/* --set, which may not touch what is searched and has to fit the rest of the study. */
static ho_status override(ho_study *study, const ho_option_list *set, ho_err *err)
{
    ho_status rc = ho_setup_override(study->settings, set, err);
    for (int i = 0; rc == HO_OK && set && i < set->count; i++) {
        char name[128];
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(set->item[i], "="), set->item[i]);
        if (ho_space_find(&study->space, name) >= 0) {
            rc = ho_err_set(err, HO_EUSAGE,
                            "--set %s: the study searches it; take it out of [search] to fix it",
                            name);
        }
    }
    return rc == HO_OK && set && set->count > 0 ? ho_study_check(study, err) : rc;
}

static ho_status load_rest(ho_setup *out, const ho_option_list *set, ho_setup_adjust *adjust,
                           void *user, ho_err *err)
{
    ho_status rc = HO_OK;
    if ((rc = override(out->study, set, err)) == HO_OK &&
        (!adjust || (rc = adjust(out->study->settings, user, err)) == HO_OK) &&
        !out->study->command && (rc = find_files(out, err)) == HO_OK) {
        rc = load_market(out, err);
    }
    if (rc != HO_OK) {
        ho_setup_free(out);
    }
    return rc;
}

ho_status ho_setup_load_adjusted(ho_setup *out, const char *path, const ho_option_list *set,
                                 ho_setup_adjust *adjust, void *user, ho_err *err)
{
    memset(out, 0, sizeof *out);
    ho_status rc = ho_study_load(path, &out->study, err);
    if (rc == HO_EIO) {
        rc = HO_EUSAGE; /* for the exit code: the command names a file that is not there */
    }
    return rc == HO_OK ? load_rest(out, set, adjust, user, err) : rc;
}

ho_status ho_setup_load(ho_setup *out, const char *path, const ho_option_list *set, ho_err *err)
{
    return ho_setup_load_adjusted(out, path, set, NULL, NULL, err);
}

/* The folder that a study file's relative paths begin in. */
static void folder_of(const char *source, char *folder, size_t room)
{
    (void)snprintf(folder, room, "%s", source);
    char *slash = strrchr(folder, '/');
    if (slash) {
        *(slash == folder ? slash + 1 : slash) = '\0';
    } else {
        (void)snprintf(folder, room, ".");
    }
}

ho_status ho_setup_parse(ho_setup *out, const char *text, const char *source,
                         const ho_option_list *set, ho_err *err)
{
    char folder[PATH_MAX];
    memset(out, 0, sizeof *out);
    folder_of(source, folder, sizeof folder);
    ho_status rc = ho_study_parse(text, strlen(text), source, folder, &out->study, err);
    return rc == HO_OK ? load_rest(out, set, NULL, NULL, err) : rc;
}

ho_status ho_setup_stored_study(ho_study **out, const ho_store_info *info, ho_err *err)
{
    char folder[PATH_MAX];
    ho_settings *settings = NULL;
    ho_status rc = HO_OK;

    *out = NULL;
    folder_of(info->toml_path, folder, sizeof folder);
    if ((rc = ho_study_parse(info->toml, strlen(info->toml), info->toml_path, folder, out, err)) !=
        HO_OK) {
        return rc;
    }
    cJSON *json = cJSON_Parse(info->settings_json);
    rc = json ? ho_settings_from_json(json, &settings, err)
              : ho_err_set(err, HO_ESTORE, "study.settings is not JSON");
    cJSON_Delete(json);
    if (rc != HO_OK) {
        ho_study_free(out);
        return rc;
    }
    ho_settings_destroy(&(*out)->settings);
    (*out)->settings = settings;
    return HO_OK;
}

ho_status ho_setup_stored(ho_setup *out, const ho_store_info *info, ho_err *err)
{
    ho_status rc = HO_OK;

    memset(out, 0, sizeof *out);
    out->auto_batch = (int32_t)info->auto_batch;
    if ((rc = ho_setup_stored_study(&out->study, info, err)) != HO_OK) {
        return rc;
    }
    if ((rc = load_rest(out, NULL, NULL, NULL, err)) != HO_OK) {
        return rc;
    }
    if (strcmp(out->bars.sha256, info->data_sha256) != 0) {
        return ho_err_set(err, HO_EDATA,
                          "%s is not the data that the study was made with (sha256 %.16s..., then "
                          "%.16s...)",
                          info->data_path, out->bars.sha256, info->data_sha256);
    }
    return HO_OK;
}

void ho_setup_free(ho_setup *setup)
{
    ho_study_free(&setup->study);
    free(setup->file);
    setup->file = NULL;
    setup->file_count = 0;
    ho_bars_free(&setup->bars);
}

ho_status ho_setup_message(const ho_setup *setup, const char *uuid, ho_message *out, ho_err *err)
{
    const ho_study *study = setup->study;
    *out = ho_message_make(HO_MSG_STUDY);
    ho_msg_study *m = &out->study;

    (void)snprintf(m->uuid, sizeof m->uuid, "%s", uuid);
    (void)snprintf(m->name, sizeof m->name, "%s", study->name);
    (void)snprintf(m->source, sizeof m->source, "%s", study->source);
    m->seed = (uint64_t)ho_settings_i64(study->settings, HO_KEY_STUDY_SEED);
    m->auto_batch = setup->auto_batch;
    m->size = study->size;
    m->text = (char *)malloc(study->size + 1);
    m->settings = ho_settings_copy(study->settings);
    m->folds = (ho_fold_plan *)malloc(sizeof *m->folds);
    m->file = (ho_data_file *)calloc((size_t)setup->file_count + 1, sizeof *m->file);
    if (!m->text || !m->settings || !m->folds || !m->file) {
        ho_message_clear(out);
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    memcpy(m->text, study->text, study->size);
    m->text[study->size] = '\0';
    *m->folds = setup->folds;
    m->file_count = setup->file_count;
    if (setup->file_count > 0) { /* a study over a command has none */
        memcpy(m->file, setup->file, (size_t)setup->file_count * sizeof *m->file);
    }
    return HO_OK;
}

ho_status ho_setup_database(const ho_setup *setup, char *out, size_t room, ho_err *err)
{
    const ho_settings *s = setup->study->settings;
    int n = ho_settings_is_auto(s, HO_KEY_STUDY_DATABASE)
                ? snprintf(out, room, "%s.db", setup->study->name)
                : snprintf(out, room, "%s", ho_settings_str(s, HO_KEY_STUDY_DATABASE));
    return n < (int)room ? HO_OK
                         : ho_err_set(err, HO_ECONFIG, "study.database: the path is too long");
}

char *ho_setup_settings_text(const ho_settings *settings)
{
    cJSON *json = ho_settings_to_json(settings);
    char *text = json ? cJSON_PrintUnformatted(json) : NULL;
    cJSON_Delete(json);
    return text;
}
