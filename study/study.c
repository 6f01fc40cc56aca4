/* SPDX-License-Identifier: Apache-2.0
 * See study.h: reading the file, walking its sections, and what a loaded study answers. [search] is
 * in study_space.c, checks across keys are in study_check.c. */
#include "study/study.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "study/study_internal.h"
#include "study/text.h"

/* ---- places --------------------------------------------------------------------------------- */

__attribute__((format(printf, 4, 0))) static ho_status
complain(const ho_loader *l, int line, int column, const char *format, va_list args)
{
    char text[HO_ERR_TEXT];
    (void)vsnprintf(text, sizeof text, format, args);
    if (line <= 0) {
        return ho_err_set(l->err, HO_ECONFIG, "%s: %s", l->study->source, text);
    }
    return ho_err_set(l->err, HO_ECONFIG, "%s:%d:%d: %s", l->study->source, line, column, text);
}

ho_status ho_loader_at(const ho_loader *l, const ho_toml *node, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    ho_status rc = complain(l, node->line, node->column, format, args);
    va_end(args);
    return rc;
}

ho_status ho_loader_at_key(const ho_loader *l, const ho_toml *node, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    ho_status rc = complain(l, node->key_line, node->key_column, format, args);
    va_end(args);
    return rc;
}

ho_status ho_loader_at_setting(const ho_loader *l, ho_key key, const char *format, ...)
{
    va_list args;
    int line = 0, column = 0;
    ho_settings_place(l->study->settings, key, &line, &column);
    va_start(args, format);
    ho_status rc = complain(l, line, column, format, args);
    va_end(args);
    return rc;
}

ho_status ho_loader_place(const ho_loader *l, const ho_toml *node, ho_status rc)
{
    if (rc == HO_OK || rc == HO_ENOMEM) {
        return rc;
    }
    char text[HO_ERR_TEXT];
    (void)snprintf(text, sizeof text, "%s", l->err ? l->err->text : "");
    return ho_loader_at(l, node, "%s", text);
}

ho_status ho_loader_warn(ho_loader *l, int line, int column, const char *format, ...)
{
    char text[HO_ERR_TEXT], *copy;
    va_list args;
    int n = line > 0 ? snprintf(text, sizeof text, "%.300s:%d:%d: ", l->study->source, line, column)
                     : snprintf(text, sizeof text, "%.300s: ", l->study->source);
    va_start(args, format);
    (void)vsnprintf(text + n, sizeof text - (size_t)n, format, args);
    va_end(args);
    for (int i = 0; i < l->study->warning_count; i++) {
        if (strcmp(l->study->warning[i], text) == 0) {
            return HO_OK; /* said already */
        }
    }
    char **grown = (char **)realloc(l->study->warning, (size_t)(l->study->warning_count + 1) *
                                                           sizeof *l->study->warning);
    if (grown) {
        l->study->warning = grown;
    }
    copy = grown ? ho_text_copy(text) : NULL;
    if (!copy) {
        return ho_err_set(l->err, HO_ENOMEM, "out of memory");
    }
    grown[l->study->warning_count++] = copy;
    return HO_OK;
}

bool ho_loader_join(const char *prefix, const char *key, char *out, size_t room)
{
    int n = snprintf(out, room, "%s%s%s", prefix, prefix[0] ? "." : "", key);
    return n >= 0 && (size_t)n < room;
}

/* ---- one value ------------------------------------------------------------------------------ */

static ho_status wrong_type(const ho_loader *l, const ho_setting_row *row, const ho_toml *node)
{
    static const char *const wants[] = {"true or false",
                                        "a whole number",
                                        "a number",
                                        "a string",
                                        "a string",
                                        "a list of strings",
                                        "a time such as \"8h\"",
                                        "a date such as 2018-01-31",
                                        "a length such as 20000, \"20d\", \"15%\"",
                                        "a string or a list of strings"};
    return ho_err_set(l->err, HO_EINVAL, "%s wants %s%s, not %s", row->name, wants[row->type],
                      row->flags & HO_SETTING_AUTO ? " or \"auto\"" : "",
                      ho_toml_type_name(node->type));
}

static bool type_fits(const ho_setting_row *row, const ho_toml *node)
{
    bool number = node->type == HO_TOML_INT || node->type == HO_TOML_FLOAT;
    bool string = node->type == HO_TOML_STRING;
    if (string && (row->flags & HO_SETTING_AUTO) && strcmp(node->text, "auto") == 0) {
        return true;
    }
    switch (row->type) {
    case HO_TYPE_BOOL:
        return node->type == HO_TOML_BOOL;
    case HO_TYPE_INT:
        return node->type == HO_TOML_INT;
    case HO_TYPE_FLOAT:
        return number;
    case HO_TYPE_DURATION:
        return number || string;
    case HO_TYPE_DATE:
        return string || node->type == HO_TOML_DATE;
    case HO_TYPE_SPAN:
        return string || node->type == HO_TOML_INT;
    case HO_TYPE_CHOICE: /* auto|yes|no keys take true and false, too */
        return string || (node->type == HO_TOML_BOOL && ho_setting_choice_find(row, "yes") >= 0);
    default:
        return string;
    }
}

static ho_status set_list(const ho_loader *l, ho_settings *settings, ho_key key,
                          const ho_toml *node)
{
    ho_status rc = HO_OK;
    int count = node->type == HO_TOML_ARRAY ? node->count : 1;
    const ho_toml *item = node->type == HO_TOML_ARRAY ? node->child : node;
    char(*text)[HO_TEXT_NUMBER] = (char(*)[HO_TEXT_NUMBER])calloc((size_t)count + 1, sizeof *text);
    const char **list = (const char **)calloc((size_t)count + 1, sizeof *list);
    if (!text || !list) {
        rc = ho_err_set(l->err, HO_ENOMEM, "out of memory");
        goto out;
    }
    for (int i = 0; i < count && rc == HO_OK; i++) {
        bool number = item[i].type == HO_TOML_INT && node->type == HO_TOML_ARRAY;
        if (item[i].type == HO_TOML_STRING || item[i].type == HO_TOML_DATE) {
            list[i] = item[i].text;
        } else if (number && (key == HO_KEY_WORKERS_GPUS || key == HO_KEY_COMMAND_RUN)) {
            (void)ho_toml_print(&item[i], text[i], sizeof text[i]);
            list[i] = text[i];
        } else {
            rc = wrong_type(l, ho_setting(key), &item[i]);
        }
    }
    if (rc == HO_OK) {
        rc = ho_settings_set_list(settings, key, list, count, l->err);
    }
out:
    free(list);
    free(text);
    return rc;
}

/* workers.gpus: "all", a list, or 0 for the CPU backend, which is kept as an empty list. */
static ho_status set_gpus(const ho_loader *l, ho_settings *settings, const ho_toml *node)
{
    if (node->type == HO_TOML_INT && node->integer == 0) {
        return ho_settings_set_list(settings, HO_KEY_WORKERS_GPUS, NULL, 0, l->err);
    }
    if (node->type == HO_TOML_INT) {
        return ho_err_set(l->err, HO_EINVAL,
                          "workers.gpus is \"all\", a list such as [0, 2], or 0 for the CPU "
                          "backend, not %lld",
                          (long long)node->integer);
    }
    return set_list(l, settings, HO_KEY_WORKERS_GPUS, node);
}

ho_status ho_loader_set(const ho_loader *l, ho_settings *settings, ho_key key, const ho_toml *node)
{
    const ho_setting_row *row = ho_setting(key);
    char text[HO_TEXT_NUMBER];
    if (key == HO_KEY_WORKERS_GPUS) {
        return set_gpus(l, settings, node);
    }
    if (row->type == HO_TYPE_STRINGS || row->type == HO_TYPE_FLAGS) {
        return set_list(l, settings, key, node);
    }
    if (!type_fits(row, node)) {
        return wrong_type(l, row, node);
    }
    if (node->type == HO_TOML_STRING || node->type == HO_TOML_DATE) {
        return ho_settings_set_text(settings, key, node->text, l->err);
    }
    if (node->type == HO_TOML_BOOL && row->type == HO_TYPE_CHOICE) {
        return ho_settings_set_text(settings, key, node->boolean ? "yes" : "no", l->err);
    }
    (void)ho_toml_print(node, text, sizeof text);
    return ho_settings_set_text(settings, key, text, l->err);
}

/* ---- sections ------------------------------------------------------------------------------- */

/* Whether some key lies below this name. */
static bool is_section(const char *name)
{
    size_t n = strlen(name);
    for (int i = 0; i < HO_KEY_COUNT; i++) {
        const char *key = ho_setting((ho_key)i)->name;
        if (strncmp(key, name, n) == 0 && key[n] == '.') {
            return true;
        }
    }
    return false;
}

static const char *const special[] = {"search", "enqueue", "warm_start"};

static const char *nearest_section(const char *name, char *out, size_t room)
{
    int best = 3;
    out[0] = '\0';
    for (int i = 0; i < HO_KEY_COUNT; i++) {
        char section[64];
        const char *key = ho_setting((ho_key)i)->name;
        (void)snprintf(section, sizeof section, "%.*s", (int)strcspn(key, "."), key);
        int distance = ho_text_distance(name, section);
        if (distance < best) {
            best = distance;
            (void)snprintf(out, room, "%s", section);
        }
    }
    for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
        int distance = ho_text_distance(name, special[i]);
        if (distance < best) {
            best = distance;
            (void)snprintf(out, room, "%s", special[i]);
        }
    }
    return out[0] ? out : NULL;
}

static ho_status unknown(const ho_loader *l, const char *name, const ho_toml *node)
{
    char near[64];
    ho_key key = ho_setting_nearest(name);
    if (!strchr(name, '.')) {
        const char *section = nearest_section(name, near, sizeof near);
        if (node->type != HO_TOML_TABLE && !section && key != HO_KEY_COUNT) {
            return ho_loader_at_key(l, node, "unknown key \"%s\"; did you mean \"%s\"?", name,
                                    ho_setting(key)->name);
        }
        return ho_loader_at_key(l, node, "unknown %s \"%s\"%s%s%s",
                                node->type == HO_TOML_TABLE ? "section" : "key", name,
                                section ? "; did you mean \"[" : "", section ? section : "",
                                section ? "]\"?" : "");
    }
    return ho_loader_at_key(
        l, node, "unknown key \"%s\"%s%s%s", name,
        key == HO_KEY_COUNT ? "; see hyperopt help settings" : "; did you mean \"",
        key == HO_KEY_COUNT ? "" : ho_setting(key)->name, key == HO_KEY_COUNT ? "" : "\"?");
}

static ho_status walk(ho_loader *l, const ho_toml *table, const char *prefix)
{
    for (int i = 0; i < table->count; i++) {
        const ho_toml *node = &table->child[i];
        char name[HO_PARAM_NAME_MAX];
        ho_status rc = HO_OK;
        if (!ho_loader_join(prefix, node->key, name, sizeof name)) {
            return ho_loader_at_key(l, node, "unknown key \"%.40s...\"", node->key);
        }
        ho_key key = ho_setting_find(name);
        if (strcmp(name, "search") == 0 || strcmp(name, "enqueue") == 0 ||
            strcmp(name, "warm_start") == 0) {
            continue;
        }
        if (key != HO_KEY_COUNT) {
            rc = ho_loader_place(l, node, ho_loader_set(l, l->study->settings, key, node));
            if (rc == HO_OK) {
                ho_settings_set_place(l->study->settings, key, node->line, node->column);
            }
        } else if (is_section(name)) {
            if (node->type != HO_TOML_TABLE) {
                return ho_loader_at_key(l, node, "\"%s\" is a section: write [%s], then its keys",
                                        name, name);
            }
            rc = walk(l, node, name);
        } else {
            rc = unknown(l, name, node);
        }
        if (rc != HO_OK) {
            return rc;
        }
    }
    return HO_OK;
}

static ho_status read_text(const ho_loader *l, const ho_toml *node, char *out, size_t room)
{
    if (node->type != HO_TOML_STRING) {
        return ho_loader_at(l, node, "%s wants a string, not %s", node->key,
                            ho_toml_type_name(node->type));
    }
    if (strlen(node->text) >= room) {
        return ho_loader_at(l, node, "%s has more than %zu characters", node->key, room - 1);
    }
    (void)snprintf(out, room, "%s", node->text);
    return HO_OK;
}

static ho_status warm_start(ho_loader *l, const ho_toml *list)
{
    if (list->type != HO_TOML_ARRAY) {
        return ho_loader_at_key(l, list, "warm_start is a list: write [[warm_start]]");
    }
    for (int i = 0; i < list->count; i++) {
        const ho_toml *item = &list->child[i];
        ho_status rc = HO_OK;
        if (i == HO_WARM_STARTS_MAX) {
            return ho_loader_at(l, item, "at most %d [[warm_start]]", HO_WARM_STARTS_MAX);
        }
        if (item->type != HO_TOML_TABLE || !ho_toml_get(item, "database")) {
            return ho_loader_at(l, item, "[[warm_start]] needs database = \"FILE.db\"");
        }
        ho_warm_start *out = &l->study->warm_start[i];
        for (int k = 0; k < item->count && rc == HO_OK; k++) {
            const ho_toml *node = &item->child[k];
            if (strcmp(node->key, "database") == 0) {
                rc = read_text(l, node, out->database, sizeof out->database);
            } else if (strcmp(node->key, "study") == 0) {
                rc = read_text(l, node, out->study, sizeof out->study);
            } else if (strcmp(node->key, "best") == 0) {
                if (node->type != HO_TOML_INT || node->integer < 0 || node->integer > 1000000) {
                    return ho_loader_at(l, node, "best is a whole number from 0 to 1000000");
                }
                out->best = (int)node->integer;
            } else {
                rc = ho_loader_at_key(l, node,
                                      "unknown key \"%s\"; [[warm_start]] takes database, study, "
                                      "best",
                                      node->key);
            }
        }
        if (rc != HO_OK) {
            return rc;
        }
        l->study->warm_start_count = i + 1;
    }
    return HO_OK;
}

/* ---- load and free -------------------------------------------------------------------------- */

/* study.name, or the file's name without folder and ending. */
static char *study_name(const ho_study *study)
{
    if (ho_settings_has(study->settings, HO_KEY_STUDY_NAME)) {
        return ho_text_copy(ho_settings_str(study->settings, HO_KEY_STUDY_NAME));
    }
    const char *slash = strrchr(study->source, '/');
    char *name = ho_text_copy(slash ? slash + 1 : study->source);
    char *dot = name ? strrchr(name, '.') : NULL;
    if (dot && dot != name) {
        *dot = '\0';
    }
    return name;
}

static ho_status build(ho_loader *l)
{
    ho_study *study = l->study;
    const ho_toml *search = ho_toml_get(l->root, "search");
    const ho_toml *enqueue = ho_toml_get(l->root, "enqueue");
    const ho_toml *warm = ho_toml_get(l->root, "warm_start");
    ho_status rc = walk(l, l->root, "");
    if (rc == HO_OK) {
        study->command = ho_settings_list_count(study->settings, HO_KEY_COMMAND_RUN) > 0;
        study->name = study_name(study);
        rc = study->name ? HO_OK : ho_err_set(l->err, HO_ENOMEM, "out of memory");
    }
    if (rc == HO_OK) {
        rc = ho_loader_search(l, search);
    }
    if (rc == HO_OK && enqueue) {
        rc = ho_loader_enqueue(l, enqueue);
    }
    if (rc == HO_OK && warm) {
        rc = warm_start(l, warm);
    }
    return rc == HO_OK ? ho_loader_check(l) : rc;
}

ho_status ho_study_parse(const char *text, size_t size, const char *source, const char *folder,
                         ho_study **out, ho_err *err)
{
    ho_toml *root = NULL;
    ho_err scratch; /* places are put before texts, so there must be one */
    ho_loader l = {NULL, err ? err : &scratch, NULL};
    *out = NULL;
    ho_status rc = ho_toml_parse(text, size, source, &root, l.err);
    if (rc != HO_OK) {
        return rc;
    }
    ho_study *study = l.study = (ho_study *)calloc(1, sizeof *study);
    if (study) {
        study->source = ho_text_copy(source);
        study->folder = ho_text_copy(folder);
        study->settings = ho_settings_create();
        study->text = (char *)malloc(size + 1);
    }
    if (!study || !study->source || !study->folder || !study->settings || !study->text) {
        rc = ho_err_set(l.err, HO_ENOMEM, "out of memory");
        goto out;
    }
    memcpy(study->text, text, size);
    study->text[size] = '\0';
    study->size = size;
    l.root = root;
    rc = build(&l);
out:
    ho_toml_free(&root);
    if (rc != HO_OK) {
        ho_study_free(&study);
    }
    *out = study;
    return rc;
}

static ho_status read_file(const char *path, char **out, size_t *size, ho_err *err)
{
    FILE *file = fopen(path, "rb");
    char *text = (char *)malloc(HO_TOML_BYTES_MAX + 1);
    ho_status rc = HO_OK;
    if (!file || !text) {
        rc = file ? ho_err_set(err, HO_ENOMEM, "out of memory")
                  : ho_err_set(err, HO_EIO, "%s: %s", path, strerror(errno));
        goto out;
    }
    *size = fread(text, 1, HO_TOML_BYTES_MAX + 1, file);
    if (ferror(file)) {
        rc = ho_err_set(err, HO_EIO, "%s: %s", path, strerror(errno));
    }
out:
    if (file) {
        (void)fclose(file);
    }
    if (rc != HO_OK) {
        free(text);
        text = NULL;
    }
    *out = text;
    return rc;
}

ho_status ho_study_load(const char *path, ho_study **out, ho_err *err)
{
    char *text = NULL, *folder = ho_text_copy(path);
    size_t size = 0;
    *out = NULL;
    ho_status rc =
        folder ? read_file(path, &text, &size, err) : ho_err_set(err, HO_ENOMEM, "out of memory");
    if (rc == HO_OK) {
        char *slash = strrchr(folder, '/');
        if (slash) {
            slash[slash == folder] = '\0'; /* "/a.toml" lies in "/" */
        }
        rc = ho_study_parse(text, size, path, slash ? folder : ".", out, err);
    }
    free(text);
    free(folder);
    return rc;
}

void ho_study_free(ho_study **study)
{
    if (study && *study) {
        ho_study *s = *study;
        ho_settings_destroy(&s->settings);
        ho_space_free(&s->space);
        for (int i = 0; i < s->warning_count; i++) {
            free(s->warning[i]);
        }
        free(s->warning);
        free(s->enqueue);
        free(s->name);
        free(s->source);
        free(s->folder);
        free(s->text);
        free(s);
        *study = NULL;
    }
}

/* ---- answers -------------------------------------------------------------------------------- */

ho_status ho_study_path(const ho_study *study, const char *written, char *out, size_t room,
                        ho_err *err)
{
    bool below = written[0] != '/' && strcmp(study->folder, ".") != 0;
    int n = snprintf(out, room, "%s%s%s", below ? study->folder : "",
                     below && strcmp(study->folder, "/") != 0 ? "/" : "", written);
    if (n < 0 || (size_t)n >= room) {
        return ho_err_set(err, HO_EINVAL, "%.100s...: the path is too long", written);
    }
    return HO_OK;
}

ho_status ho_study_trial_settings(const ho_study *study, const double *config, ho_settings **out,
                                  ho_err *err)
{
    *out = ho_settings_copy(study->settings);
    if (!*out) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    ho_status rc = ho_settings_apply(*out, &study->space, config, err);
    if (rc != HO_OK) {
        ho_settings_destroy(out);
    }
    return rc;
}

/* The largest value of an int key over the space. */
static int64_t largest(const ho_study *study, ho_key key)
{
    for (int i = 0; i < study->space.count; i++) {
        const ho_param *param = &study->space.param[i];
        double most = 0;
        if (param->key != (int)key) {
            continue;
        }
        for (int c = 0; c < param->choice_count; c++) {
            most = fmax(most, (double)param->choice[c].integer);
        }
        return (int64_t)(param->kind == HO_PARAM_CHOICE ? most : param->high);
    }
    return ho_settings_i64(study->settings, key);
}

ho_fold_spec ho_study_fold_spec(const ho_study *study)
{
    const ho_settings *s = study->settings;
    return (ho_fold_spec){
        .scheme = (ho_fold_scheme)ho_settings_choice(s, HO_KEY_FOLDS_SCHEME),
        .count = (int)ho_settings_i64(s, HO_KEY_FOLDS_COUNT),
        .test = ho_settings_span(s, HO_KEY_FOLDS_TEST),
        .train = ho_settings_span(s, HO_KEY_FOLDS_TRAIN),
        .step = ho_settings_span(s, HO_KEY_FOLDS_STEP),
        .purge = ho_settings_span(s, HO_KEY_FOLDS_PURGE),
        .validation = ho_settings_span(s, HO_KEY_FOLDS_VALIDATION),
        .holdout = ho_settings_span(s, HO_KEY_FOLDS_HOLDOUT),
        .refit_once = ho_settings_choice(s, HO_KEY_FOLDS_REFIT) == 1,
        .stitched = ho_settings_choice(s, HO_KEY_STUDY_AGGREGATE) == 0,
        .purge_auto =
            largest(study, HO_KEY_BARRIERS_MAX_HOLDING) + largest(study, HO_KEY_DQN_N_STEP),
    };
}
