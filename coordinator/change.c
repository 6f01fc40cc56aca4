/* SPDX-License-Identifier: Apache-2.0
 * See change.h. */
#include "coordinator/change.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRY_MAX = 700, SHOWN_MAX = 120 };

static ho_status add_line(ho_change *change, const char *name, const char *before,
                          const char *after, ho_err *err)
{
    char line[ENTRY_MAX];
    int n = snprintf(line, sizeof line, "  %s: %.*s -> %.*s\n", name, SHOWN_MAX, before, SHOWN_MAX,
                     after);
    size_t used = change->text ? strlen(change->text) : 0;
    char *longer = (char *)realloc(change->text, used + (size_t)n + 1);
    if (!longer) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    memcpy(longer + used, line, (size_t)n + 1);
    change->text = longer;
    change->any++;
    return HO_OK;
}

/* Values in the file are of these: with another one they would be compared with what they are not,
 * and no trial of the old kind fits. */
static bool is_meaning(ho_key key)
{
    return key == HO_KEY_STUDY_OBJECTIVE || key == HO_KEY_STUDY_AGGREGATE ||
           key == HO_KEY_STUDY_CONSTRAINTS || key == HO_KEY_COMMAND_DIRECTION;
}

static ho_status compare_settings(ho_change *change, const ho_settings *before,
                                  const ho_settings *after, ho_err *err)
{
    ho_key key[HO_KEY_COUNT];
    int count = ho_settings_diff(before, after, key, HO_KEY_COUNT);
    ho_status rc = HO_OK;
    for (int i = 0; i < count && i < HO_KEY_COUNT && rc == HO_OK; i++) {
        char was[ENTRY_MAX], is[ENTRY_MAX];
        (void)ho_settings_print(before, key[i], was, sizeof was);
        (void)ho_settings_print(after, key[i], is, sizeof is);
        change->weighty += !(ho_setting(key[i])->flags & (HO_SETTING_RESUME | HO_SETTING_PATH));
        if (!change->barred && is_meaning(key[i])) {
            change->barred = ho_setting(key[i])->name;
        }
        rc = add_line(change, ho_setting(key[i])->name, was, is, err);
    }
    return rc;
}

/* A parameter's distribution as one line. */
static void describe(const ho_space *space, const ho_param *p, char *out, size_t room)
{
    char value[ENTRY_MAX];
    size_t n = 0;
    if (p->kind == HO_PARAM_CHOICE) {
        n += (size_t)snprintf(out, room, "choice [");
        for (int i = 0; i < p->choice_count && n < room; i++) {
            (void)ho_param_print(p, i, value, sizeof value);
            n += (size_t)snprintf(out + n, room - n, "%s%s", i ? ", " : "", value);
        }
        n += n < room ? (size_t)snprintf(out + n, room - n, "]") : 0;
    } else {
        n += (size_t)snprintf(out, room, "%s [%.17g, %.17g]",
                              p->kind == HO_PARAM_INT ? "int" : "float", p->low, p->high);
        if (p->step > 0.0 && n < room) {
            n += (size_t)snprintf(out + n, room - n, " step %.17g", p->step);
        }
        if (p->log && n < room) {
            n += (size_t)snprintf(out + n, room - n, " log");
        }
    }
    for (int w = 0; w < p->when_count && n < room; w++) {
        n += (size_t)snprintf(out + n, room - n, " when %s in %llx",
                              space->param[p->when[w].param].name,
                              (unsigned long long)p->when[w].mask);
    }
}

static ho_status compare_spaces(ho_change *change, const ho_space *before, const ho_space *after,
                                ho_err *err)
{
    char was[ENTRY_MAX], is[ENTRY_MAX];
    ho_status rc = HO_OK;
    for (int i = 0; i < before->count && rc == HO_OK; i++) {
        const ho_param *p = &before->param[i];
        int at = ho_space_find(after, p->name);
        describe(before, p, was, sizeof was);
        if (at >= 0) {
            describe(after, &after->param[at], is, sizeof is);
        } else {
            (void)snprintf(is, sizeof is, "(not searched)");
        }
        if (strcmp(was, is) != 0) {
            change->weighty++;
            rc = add_line(change, p->name, was, is, err);
        }
    }
    for (int i = 0; i < after->count && rc == HO_OK; i++) {
        if (ho_space_find(before, after->param[i].name) < 0) {
            describe(after, &after->param[i], is, sizeof is);
            change->weighty++;
            rc = add_line(change, after->param[i].name, "(not searched)", is, err);
        }
    }
    return rc;
}

ho_status ho_change_find(const ho_setup *setup, const ho_store_info *info, ho_change *out,
                         ho_err *err)
{
    ho_study *before = NULL;
    ho_settings *settings = NULL;
    cJSON *json = cJSON_Parse(info->settings_json);
    ho_status rc = HO_OK;

    memset(out, 0, sizeof *out);
    if (!json || (rc = ho_settings_from_json(json, &settings, err)) != HO_OK ||
        (rc = ho_study_parse(info->toml, strlen(info->toml), info->toml_path, ".", &before, err)) !=
            HO_OK) {
        if (!json) {
            (void)ho_err_set(err, HO_ESTORE, "the stored settings are not JSON");
        }
        (void)ho_err_prefix(err, "the study in the database");
        rc = HO_ESTORE;
        goto out;
    }
    out->trials = ho_settings_i64(settings, HO_KEY_STUDY_TRIALS);
    if ((rc = compare_settings(out, settings, setup->study->settings, err)) != HO_OK ||
        (rc = compare_spaces(out, &before->space, &setup->study->space, err)) != HO_OK) {
        goto out;
    }
    if (strcmp(info->data_sha256, setup->bars.sha256) != 0) {
        out->weighty++;
        rc = add_line(out, "data (sha256)", info->data_sha256, setup->bars.sha256, err);
    }
    if (rc == HO_OK && !out->text && !(out->text = strdup(""))) {
        rc = ho_err_set(err, HO_ENOMEM, "out of memory");
    }
out:
    cJSON_Delete(json);
    ho_settings_destroy(&settings);
    ho_study_free(&before);
    if (rc != HO_OK) {
        ho_change_free(out);
    }
    return rc;
}

void ho_change_free(ho_change *change)
{
    free(change->text);
    memset(change, 0, sizeof *change);
}
