/* SPDX-License-Identifier: Apache-2.0
 * Settings as JSON, for the wire and the store; see settings.h for the form. */
#include <string.h>

#include <cjson/cJSON.h>

#include "study/settings.h"

static cJSON *value_json(const ho_settings *s, ho_key key)
{
    ho_setting_type type = ho_setting(key)->type;
    if (type != HO_TYPE_STRINGS && type != HO_TYPE_FLAGS) {
        return cJSON_CreateString(ho_settings_str(s, key));
    }
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; list && i < ho_settings_list_count(s, key); i++) {
        if (!cJSON_AddItemToArray(list, cJSON_CreateString(ho_settings_list_str(s, key, i)))) {
            cJSON_Delete(list);
            return NULL;
        }
    }
    return list;
}

cJSON *ho_settings_to_json(const ho_settings *s)
{
    cJSON *json = cJSON_CreateObject();
    cJSON *values = cJSON_AddObjectToObject(json, "values");
    cJSON *set = cJSON_AddArrayToObject(json, "set");
    bool ok = values && set;
    for (int i = 0; ok && i < HO_KEY_COUNT; i++) {
        const char *name = ho_setting((ho_key)i)->name;
        if (ho_settings_has(s, (ho_key)i)) {
            cJSON *value = value_json(s, (ho_key)i);
            ok = cJSON_AddItemToObject(values, name, value);
            if (!ok) {
                cJSON_Delete(value);
            }
        }
        if (ok && ho_settings_is_set(s, (ho_key)i)) {
            ok = cJSON_AddItemToArray(set, cJSON_CreateString(name));
        }
    }
    if (!ok) {
        cJSON_Delete(json);
        return NULL;
    }
    return json;
}

static ho_status read_value(ho_settings *s, ho_key key, const cJSON *json, ho_err *err)
{
    enum { ITEMS = 4096 };
    const char *item[ITEMS];
    int count = 0;
    const cJSON *child = NULL;
    if (cJSON_IsString(json)) {
        return ho_settings_set_text(s, key, json->valuestring, err);
    }
    if (!cJSON_IsArray(json)) {
        return ho_err_set(err, HO_EPROTO, "%s is neither a text nor a list", json->string);
    }
    cJSON_ArrayForEach(child, json)
    {
        if (!cJSON_IsString(child) || count == ITEMS) {
            return ho_err_set(err, HO_EPROTO, "%s is no list of texts", json->string);
        }
        item[count++] = child->valuestring;
    }
    return ho_settings_set_list(s, key, item, count, err);
}

/* Values that "set" does not name were defaults when they were written: they keep their value and
 * count as not set. */
static bool listed(const cJSON *set, const char *name)
{
    const cJSON *child = NULL;
    cJSON_ArrayForEach(child, set)
    {
        if (cJSON_IsString(child) && strcmp(child->valuestring, name) == 0) {
            return true;
        }
    }
    return false;
}

ho_status ho_settings_from_json(const cJSON *json, ho_settings **out, ho_err *err)
{
    const cJSON *values = cJSON_GetObjectItemCaseSensitive(json, "values");
    const cJSON *set = cJSON_GetObjectItemCaseSensitive(json, "set");
    const cJSON *child = NULL;
    ho_status rc = HO_OK;
    *out = NULL;
    if (!cJSON_IsObject(values) || !cJSON_IsArray(set)) {
        return ho_err_set(err, HO_EPROTO, "settings without \"values\" and \"set\"");
    }
    if (cJSON_GetArraySize(values) > HO_KEY_COUNT || cJSON_GetArraySize(set) > HO_KEY_COUNT) {
        return ho_err_set(err, HO_EPROTO, "more settings than there are keys");
    }
    ho_settings *s = ho_settings_create();
    if (!s) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    cJSON_ArrayForEach(child, values)
    {
        ho_key key = ho_setting_find(child->string);
        if (key == HO_KEY_COUNT) {
            rc = ho_err_set(err, HO_EPROTO, "unknown setting \"%.100s\"", child->string);
            break;
        }
        rc = read_value(s, key, child, err);
        if (rc != HO_OK) {
            rc = rc == HO_ENOMEM ? rc : HO_EPROTO;
            break;
        }
        if (!listed(set, child->string)) {
            ho_settings_unmark(s, key);
        }
    }
    if (rc != HO_OK) {
        ho_settings_destroy(&s);
    }
    *out = s;
    return rc;
}
