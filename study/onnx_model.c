/* SPDX-License-Identifier: Apache-2.0 */
#include <cjson/cJSON.h>
#include <string.h>

#include "kernels/agents/agent_check.h"
#include "study/onnx.h"
#include "study/settings.h"

static int32_t count_names(const char *list)
{
    int32_t n = *list != '\0';
    for (; *list; list++) {
        n += *list == ',';
    }
    return n;
}

/* The network's part of the cohort key; the rest does not matter to it. */
static ho_cohort_key shape_of(const ho_settings *s, int32_t market_features)
{
    ho_cohort_key key = ho_cohort_key_defaults(HO_DQN);
    key.algorithm = ho_settings_choice(s, HO_KEY_AGENT_ALGORITHM);
    key.hidden1 = (int32_t)ho_settings_i64(s, HO_KEY_AGENT_HIDDEN1);
    key.hidden2 = (int32_t)ho_settings_i64(s, HO_KEY_AGENT_HIDDEN2);
    key.head = (int32_t)ho_settings_i64(s, HO_KEY_AGENT_HEAD);
    key.state_form = ho_settings_choice(s, HO_KEY_ENV_STATE);
    key.action_set = ho_settings_choice(s, HO_KEY_ENV_ACTIONS);
    key.market_features = market_features;
    key.dueling = ho_settings_bool(s, HO_KEY_DQN_DUELING);
    key.branching = ho_settings_bool(s, HO_KEY_DQN_BRANCHING);
    key.noisy = ho_settings_bool(s, HO_KEY_DQN_NOISY);
    key.atoms = ho_settings_bool(s, HO_KEY_DQN_DISTRIBUTIONAL)
                    ? (int32_t)ho_settings_i64(s, HO_KEY_DQN_ATOMS)
                    : 0;
    key.ppo_factored = ho_settings_bool(s, HO_KEY_PPO_FACTORED);
    key.ppo_separate = ho_settings_bool(s, HO_KEY_PPO_SEPARATE);
    return key;
}

ho_status ho_onnx_from_model(const ho_safetensors *model, void **bytes, size_t *size, ho_err *err)
{
    const char *features = ho_safetensors_meta(model, "features");
    const char *text = ho_safetensors_meta(model, "settings");
    const char *meta[HO_SAFETENSORS_META_MAX][2];
    cJSON *json = text ? cJSON_Parse(text) : NULL;
    ho_settings *s = NULL;
    ho_status rc = HO_OK;
    *bytes = NULL;
    *size = 0;
    if (!features || !json) {
        rc = ho_err_set(err, HO_EDATA, "not an agent: no %s in its metadata",
                        features ? "settings" : "features");
        goto out;
    }
    if ((rc = ho_settings_from_json(json, &s, err)) != HO_OK) {
        goto out;
    }
    for (int i = 0; i < model->meta_count; i++) {
        meta[i][0] = model->key[i];
        meta[i][1] = model->value[i];
    }
    const ho_cohort_key key = shape_of(s, count_names(features));
    const double v_max = ho_settings_is_auto(s, HO_KEY_DQN_V_MAX)
                             ? ho_default_v_max(ho_settings_f64(s, HO_KEY_DQN_GAMMA))
                             : ho_settings_f64(s, HO_KEY_DQN_V_MAX);
    if ((rc = ho_cohort_key_check(&key, err)) == HO_OK) {
        rc = ho_onnx_encode(&key, v_max, &model->tensors, (const char *const(*)[2])meta,
                            model->meta_count, bytes, size, err);
    }
out:
    ho_settings_destroy(&s);
    cJSON_Delete(json);
    return rc;
}
