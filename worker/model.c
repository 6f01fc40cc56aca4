/* SPDX-License-Identifier: Apache-2.0
 * See model.h. Numbers are written so that they read back to the same bits. */
#include "worker/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "study/text.h"

static const char format_name[] = "hyperopt-agent-1";

ho_model_info ho_model_info_of(int64_t trial, int32_t fold, int32_t seed, const char *data_sha256,
                               const ho_env_config *env)
{
    ho_model_info info = {.trial = trial,
                          .fold = fold,
                          .seed = seed,
                          .lot = env->lot,
                          .sigma_ref = env->sigma_ref,
                          .target_vol = env->target_vol,
                          .kelly_share = env->kelly_share,
                          .max_lots = env->max_lots};
    snprintf(info.data_sha256, sizeof info.data_sha256, "%s", data_sha256);
    return info;
}

/* ---- writing --------------------------------------------------------------------------------- */

static ho_status add_i64(ho_safetensors *st, const char *key, int64_t value)
{
    char text[HO_TEXT_NUMBER];
    snprintf(text, sizeof text, "%" PRId64, value);
    return ho_safetensors_add_meta(st, key, text);
}

static ho_status add_f64(ho_safetensors *st, const char *key, double value)
{
    char text[HO_TEXT_NUMBER];
    ho_text_f64(value, text, sizeof text);
    return ho_safetensors_add_meta(st, key, text);
}

/* "a,b,c" of the columns in order; malloc'ed, or NULL */
static char *feature_list(const ho_features *features)
{
    size_t room = (size_t)features->F * (HO_FEATURE_NAME + 1) + 1, used = 0;
    char *text = calloc(room, 1);
    for (int i = 0; text && i < features->F; i++) {
        used +=
            (size_t)snprintf(text + used, room - used, "%s%s", i > 0 ? "," : "", features->name[i]);
    }
    return text;
}

static ho_status add_texts(ho_safetensors *st, const ho_settings *trial,
                           const ho_features *features)
{
    static const ho_key shown[] = {HO_KEY_AGENT_ALGORITHM, HO_KEY_ENV_STATE, HO_KEY_ENV_ACTIONS};
    cJSON *json = ho_settings_to_json(trial);
    char *settings = json ? cJSON_PrintUnformatted(json) : NULL;
    char *names = feature_list(features);
    ho_status rc = settings && names ? HO_OK : HO_ENOMEM;
    rc = rc == HO_OK ? ho_safetensors_add_meta(st, "format", format_name) : rc;
    rc = rc == HO_OK ? ho_safetensors_add_meta(st, "program", "hyperopt " HYPEROPT_VERSION) : rc;
    for (size_t i = 0; i < sizeof shown / sizeof shown[0] && rc == HO_OK; i++) {
        rc = ho_safetensors_add_meta(st, ho_setting(shown[i])->name,
                                     ho_settings_str(trial, shown[i]));
    }
    rc = rc == HO_OK ? ho_safetensors_add_meta(st, "features", names) : rc;
    rc = rc == HO_OK ? add_i64(st, "features_version", HO_FEATURES_VERSION) : rc;
    rc = rc == HO_OK ? ho_safetensors_add_meta(st, "settings", settings) : rc;
    cJSON_free(settings);
    cJSON_Delete(json);
    free(names);
    return rc;
}

ho_status ho_model_encode(const ho_model_info *info, const ho_settings *trial,
                          const ho_features *features, const ho_tensors *weights, void **bytes,
                          size_t *size, ho_err *err)
{
    ho_safetensors st = {0};
    *bytes = NULL;
    *size = 0;
    ho_status rc = add_texts(&st, trial, features);
    rc = rc == HO_OK ? ho_safetensors_add_meta(&st, "data_sha256", info->data_sha256) : rc;
    rc = rc == HO_OK ? add_i64(&st, "trial", info->trial) : rc;
    rc = rc == HO_OK ? add_i64(&st, "fold", info->fold) : rc;
    rc = rc == HO_OK ? add_i64(&st, "seed", info->seed) : rc;
    rc = rc == HO_OK ? add_f64(&st, "lot", info->lot) : rc;
    rc = rc == HO_OK ? add_i64(&st, "max_lots", info->max_lots) : rc;
    rc = rc == HO_OK ? add_f64(&st, "sigma_ref", info->sigma_ref) : rc;
    rc = rc == HO_OK ? add_f64(&st, "target_vol", info->target_vol) : rc;
    rc = rc == HO_OK ? add_f64(&st, "kelly_share", info->kelly_share) : rc;
    if (rc == HO_OK) {
        st.tensors = *weights; /* borrowed */
        rc = ho_safetensors_encode(&st, bytes, size, err);
        st.tensors = (ho_tensors){0};
    } else {
        ho_err_set(err, rc, "model: out of memory");
    }
    ho_safetensors_free(&st);
    return rc;
}

/* ---- reading --------------------------------------------------------------------------------- */

static ho_status missing(const char *path, const char *key, ho_err *err)
{
    return ho_err_set(err, HO_EDATA,
                      "%s: weights without a good \"%s\" in their metadata; not an agent that "
                      "hyperopt wrote",
                      path, key);
}

static ho_status get_i64(const ho_model *m, const char *path, const char *key, int64_t low,
                         int64_t high, int64_t *out, ho_err *err)
{
    const char *text = ho_safetensors_meta(&m->file, key);
    if (!text || !ho_text_parse_i64(text, out) || *out < low || *out > high) {
        return missing(path, key, err);
    }
    return HO_OK;
}

static ho_status get_f64(const ho_model *m, const char *path, const char *key, double *out,
                         ho_err *err)
{
    const char *text = ho_safetensors_meta(&m->file, key);
    if (!text || !ho_text_parse_f64(text, out) || !(*out >= 0.0 && *out < 1e12)) {
        return missing(path, key, err);
    }
    return HO_OK;
}

static ho_status read_info(ho_model *m, const char *path, ho_err *err)
{
    ho_model_info *info = &m->info;
    const char *sha = ho_safetensors_meta(&m->file, "data_sha256");
    int64_t fold = 0, seed = 0, lots = 0;
    ho_status rc = get_i64(m, path, "trial", 0, INT64_MAX, &info->trial, err);
    rc = rc == HO_OK ? get_i64(m, path, "fold", -1, INT32_MAX, &fold, err) : rc;
    rc = rc == HO_OK ? get_i64(m, path, "seed", 0, INT32_MAX, &seed, err) : rc;
    rc = rc == HO_OK ? get_i64(m, path, "max_lots", 1, 1000000000, &lots, err) : rc;
    rc = rc == HO_OK ? get_f64(m, path, "lot", &info->lot, err) : rc;
    rc = rc == HO_OK ? get_f64(m, path, "sigma_ref", &info->sigma_ref, err) : rc;
    rc = rc == HO_OK ? get_f64(m, path, "target_vol", &info->target_vol, err) : rc;
    rc = rc == HO_OK ? get_f64(m, path, "kelly_share", &info->kelly_share, err) : rc;
    if (rc == HO_OK && (info->kelly_share > 1.0 || !(info->sigma_ref > 0.0))) {
        rc = missing(path, "sigma_ref", err);
    }
    if (rc == HO_OK && (!sha || strlen(sha) >= sizeof info->data_sha256)) {
        rc = missing(path, "data_sha256", err);
    }
    if (rc == HO_OK) {
        info->fold = (int32_t)fold;
        info->seed = (int32_t)seed;
        info->max_lots = (int32_t)lots;
        snprintf(info->data_sha256, sizeof info->data_sha256, "%s", sha);
    }
    return rc;
}

ho_status ho_model_load(const char *path, ho_model *out, ho_err *err)
{
    *out = (ho_model){0};
    ho_status rc = ho_safetensors_read(path, &out->file, err);
    if (rc != HO_OK) {
        return rc;
    }
    const char *format = ho_safetensors_meta(&out->file, "format");
    const char *settings = ho_safetensors_meta(&out->file, "settings");
    cJSON *json = settings ? cJSON_Parse(settings) : NULL;
    if (!format || strcmp(format, format_name) != 0) {
        rc = missing(path, "format", err);
    } else if (!json || !ho_safetensors_meta(&out->file, "features")) {
        rc = missing(path, json ? "features" : "settings", err);
    } else if (ho_settings_from_json(json, &out->settings, err) != HO_OK) {
        ho_err_prefix(err, "%s: its settings are not of this version: ", path);
        rc = HO_EDATA;
    } else {
        rc = read_info(out, path, err);
    }
    cJSON_Delete(json);
    if (rc != HO_OK) {
        ho_model_free(out);
    }
    return rc;
}

void ho_model_free(ho_model *model)
{
    ho_settings_destroy(&model->settings);
    ho_safetensors_free(&model->file);
    *model = (ho_model){0};
}

ho_status ho_model_check_features(const ho_model *model, const ho_features *features, ho_err *err)
{
    const char *wanted = ho_safetensors_meta(&model->file, "features");
    const char *version = ho_safetensors_meta(&model->file, "features_version");
    char current[HO_TEXT_NUMBER];
    snprintf(current, sizeof current, "%d", HO_FEATURES_VERSION);
    if (!version || strcmp(version, current) != 0) {
        return ho_err_set(err, HO_ECONFIG,
                          "the agent was trained on version %s of the features, this program makes "
                          "version %s",
                          version ? version : "?", current);
    }
    char *names = feature_list(features);
    if (!names) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    ho_status rc = HO_OK;
    if (strcmp(names, wanted) != 0) {
        rc = ho_err_set(err, HO_ECONFIG,
                        "the agent was trained on other features; set features.use and "
                        "features.extra as in its study. Its features: %.600s",
                        wanted);
    }
    free(names);
    return rc;
}

void ho_model_apply(const ho_model *model, ho_env_config *env)
{
    env->sigma_ref = model->info.sigma_ref;
    env->target_vol = model->info.target_vol > 0.0 ? model->info.target_vol : env->target_vol;
    env->kelly_share = model->info.kelly_share;
}
