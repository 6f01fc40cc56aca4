/* SPDX-License-Identifier: Apache-2.0
 * [search] of a study file becomes a ho_space. Conditions are in study_when.c.
 *
 * A parameter is a table with float, int or choice; any other table is a part of the dotted name,
 * so that "dqn.gamma" = {...}, dqn.gamma = {...} and [search.dqn] mean the same.
 * Parameters are read in the order of the file, their `when` is resolved when all are known, and
 * the array is then sorted so that parents come first. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "study/require.h"
#include "study/study_internal.h"
#include "study/text.h"

enum { PARAMS_MAX = 1024, CHOICES_MAX = 1024 };

static const char *const members[] = {"float", "int", "choice", "log", "step", "when"};
enum { MEMBERS = sizeof members / sizeof *members };

static bool is_param(const ho_toml *table)
{
    return ho_toml_get(table, "float") || ho_toml_get(table, "int") || ho_toml_get(table, "choice");
}

/* ---- one parameter -------------------------------------------------------------------------- */

static ho_status read_flag(const ho_loader *l, const ho_toml *spec, const char *name, bool *out)
{
    const ho_toml *node = ho_toml_get(spec, name);
    if (node && node->type != HO_TOML_BOOL) {
        return ho_loader_at(l, node, "%s is true or false, not %s", name,
                            ho_toml_type_name(node->type));
    }
    *out = node && node->boolean;
    return HO_OK;
}

static ho_status check_members(const ho_loader *l, const ho_toml *spec)
{
    for (int i = 0; i < spec->count; i++) {
        const char *key = spec->child[i].key;
        int near = 0, best = 1000;
        for (int m = 0; m < MEMBERS; m++) {
            int distance = ho_text_distance(key, members[m]);
            if (distance < best) {
                best = distance;
                near = m;
            }
        }
        if (best != 0) {
            return ho_loader_at_key(l, &spec->child[i],
                                    "a parameter takes float, int, choice, log, step and when, not "
                                    "\"%s\"%s%s%s",
                                    key, best <= 2 ? "; did you mean \"" : "",
                                    best <= 2 ? members[near] : "", best <= 2 ? "\"?" : "");
        }
    }
    return HO_OK;
}

/* [low, high], whose items are integers where whole is true. */
static ho_status read_range(const ho_loader *l, const ho_toml *node, bool whole, ho_param *out)
{
    double bound[2];
    if (node->type != HO_TOML_ARRAY || node->count != 2) {
        return ho_loader_at(l, node, "%s wants [low, high]", node->key);
    }
    for (int i = 0; i < 2; i++) {
        const ho_toml *item = &node->child[i];
        if (item->type != HO_TOML_INT && (whole || item->type != HO_TOML_FLOAT)) {
            return ho_loader_at(l, item, "a bound of %s is %s, not %s", node->key,
                                whole ? "a whole number" : "a number",
                                ho_toml_type_name(item->type));
        }
        bound[i] = item->real;
        if (!isfinite(bound[i])) {
            return ho_loader_at(l, item, "a bound must be finite");
        }
        if (whole && (item->integer > (INT64_C(1) << 53) || item->integer < -(INT64_C(1) << 53))) {
            return ho_loader_at(l, item, "a bound must lie within 2^53");
        }
    }
    if (bound[0] > bound[1]) {
        return ho_loader_at(l, node, "the low bound is above the high one");
    }
    if (bound[0] == bound[1]) {
        return ho_loader_at(l, node,
                            "low and high are equal: set the key in its section instead of "
                            "searching it");
    }
    out->low = bound[0];
    out->high = bound[1];
    return HO_OK;
}

static ho_status read_step(const ho_loader *l, const ho_toml *spec, ho_param *out)
{
    const ho_toml *node = ho_toml_get(spec, "step");
    bool whole = out->kind == HO_PARAM_INT;
    out->step = whole ? 1 : 0;
    if (!node) {
        return HO_OK;
    }
    if (node->type != HO_TOML_INT && (whole || node->type != HO_TOML_FLOAT)) {
        return ho_loader_at(l, node, "the step of %s is %s, not %s", whole ? "int" : "float",
                            whole ? "a whole number" : "a number", ho_toml_type_name(node->type));
    }
    if (!(node->real > 0) || !isfinite(node->real)) {
        return ho_loader_at(l, node, "a step is above 0");
    }
    if (out->log && !(whole && node->integer == 1)) {
        return ho_loader_at(l, node,
                            "log and step exclude one another: drop one, or list the "
                            "values as choice");
    }
    if (node->real > out->high - out->low) {
        return ho_loader_at(l, node, "the step is larger than the range");
    }
    out->step = node->real;
    return HO_OK;
}

static ho_status read_number(const ho_loader *l, const ho_toml *spec, const ho_toml *range,
                             ho_param *out)
{
    out->kind = strcmp(range->key, "int") == 0 ? HO_PARAM_INT : HO_PARAM_FLOAT;
    ho_status rc = read_range(l, range, out->kind == HO_PARAM_INT, out);
    if (rc == HO_OK) {
        rc = read_flag(l, spec, "log", &out->log);
    }
    if (rc == HO_OK && out->log && out->low <= 0) {
        rc = ho_loader_at(l, range, "log = true needs a low bound above 0");
    }
    if (rc == HO_OK) {
        rc = read_step(l, spec, out);
    }
    if (rc == HO_OK && out->step > 0) {
        int a = ho_text_decimals(out->low), b = ho_text_decimals(out->step);
        out->step_decimals = a > b ? a : b;
        out->high = ho_param_grid_value(out, ho_param_cardinality(out) - 1);
    }
    return rc;
}

static bool same_choice(const ho_choice *a, const ho_choice *b)
{
    if (a->type != b->type) {
        return false;
    }
    switch (a->type) {
    case HO_CHOICE_BOOL:
        return a->boolean == b->boolean;
    case HO_CHOICE_INT:
        return a->integer == b->integer;
    case HO_CHOICE_FLOAT:
        return a->real == b->real;
    default:
        return strcmp(a->text, b->text) == 0;
    }
}

static ho_status read_choice(const ho_loader *l, const ho_toml *item, ho_choice *out)
{
    char text[HO_TEXT_NUMBER];
    switch (item->type) {
    case HO_TOML_BOOL:
        out->type = HO_CHOICE_BOOL;
        break;
    case HO_TOML_INT:
        out->type = HO_CHOICE_INT;
        break;
    case HO_TOML_FLOAT:
        out->type = HO_CHOICE_FLOAT;
        if (!isfinite(item->real)) {
            return ho_loader_at(l, item, "%s cannot be a choice",
                                isnan(item->real) ? "nan" : "inf");
        }
        break;
    case HO_TOML_STRING:
        out->type = HO_CHOICE_STRING;
        break;
    default:
        return ho_loader_at(l, item, "a choice is a number, a string or a boolean, not %s",
                            ho_toml_type_name(item->type));
    }
    out->boolean = item->boolean;
    out->integer = item->integer;
    out->real = item->real;
    if (item->type != HO_TOML_STRING) {
        (void)ho_toml_print(item, text, sizeof text);
    }
    out->text = ho_text_copy(item->type == HO_TOML_STRING ? item->text : text);
    return out->text ? HO_OK : ho_err_set(l->err, HO_ENOMEM, "out of memory");
}

static ho_status read_choices(const ho_loader *l, const ho_toml *spec, const ho_toml *list,
                              ho_param *out)
{
    out->kind = HO_PARAM_CHOICE;
    if (list->type != HO_TOML_ARRAY || list->count == 0) {
        return ho_loader_at(l, list, "choice wants a list of at least one value");
    }
    if (list->count > CHOICES_MAX) {
        return ho_loader_at(l, list, "more than %d choices", CHOICES_MAX);
    }
    if (ho_toml_get(spec, "log") || ho_toml_get(spec, "step")) {
        return ho_loader_at(l, list, "log and step have no meaning for a choice");
    }
    out->choice = (ho_choice *)calloc((size_t)list->count, sizeof *out->choice);
    if (!out->choice) {
        return ho_err_set(l->err, HO_ENOMEM, "out of memory");
    }
    for (int i = 0; i < list->count; i++) {
        ho_status rc = read_choice(l, &list->child[i], &out->choice[i]);
        if (rc != HO_OK) {
            return rc;
        }
        out->choice_count = i + 1;
        for (int k = 0; k < i; k++) {
            if (same_choice(&out->choice[k], &out->choice[i])) {
                return ho_loader_at(l, &list->child[i], "this choice stands in the list twice");
            }
        }
    }
    out->low = 0;
    out->high = list->count - 1;
    return HO_OK;
}

/* The key must take every value that the parameter can have. */
static ho_status check_key(const ho_loader *l, const ho_toml *spec, const ho_param *param)
{
    const ho_setting_row *row = ho_setting((ho_key)param->key);
    const ho_toml *list = ho_toml_get(spec, "choice");
    ho_settings *scratch = ho_settings_copy(l->study->settings);
    ho_status rc = scratch ? HO_OK : ho_err_set(l->err, HO_ENOMEM, "out of memory");
    for (int i = 0; list && i < list->count && rc == HO_OK; i++) {
        rc = ho_loader_place(l, &list->child[i],
                             ho_loader_set(l, scratch, row->key, &list->child[i]));
    }
    if (!list && rc == HO_OK) {
        const ho_toml *range = ho_toml_get(spec, "int");
        if (!range && row->type == HO_TYPE_INT) {
            rc = ho_loader_at(l, ho_toml_get(spec, "float"),
                              "%s is a whole number: write int = [low, high]", row->name);
        }
        range = range ? range : ho_toml_get(spec, "float");
        for (int i = 0; i < 2 && rc == HO_OK; i++) {
            double bound = i == 0 ? param->low : param->high;
            rc = ho_loader_place(l, &range->child[i],
                                 ho_settings_set_f64(scratch, row->key, bound, l->err));
        }
    }
    ho_settings_destroy(&scratch);
    return rc;
}

static ho_status check_role(const ho_loader *l, const ho_toml *spec, const char *name,
                            ho_param *out)
{
    ho_key key = ho_setting_find(name);
    const ho_settings *s = l->study->settings;
    if (key == HO_KEY_COUNT) {
        ho_key near = ho_setting_nearest(name);
        if (l->study->command) {
            out->key = -1;
            return HO_OK;
        }
        return ho_loader_at_key(l, spec, "unknown key \"%s\"%s%s%s", name,
                                near == HO_KEY_COUNT ? "" : "; did you mean \"",
                                near == HO_KEY_COUNT ? "" : ho_setting(near)->name,
                                near == HO_KEY_COUNT ? "" : "\"?");
    }
    const ho_setting_row *row = ho_setting(key);
    out->key = (int)key;
    if (row->role == HO_ROLE_FIXED) {
        return ho_loader_at_key(l, spec, "%s cannot be searched", name);
    }
    if (row->role == HO_ROLE_FACT && !ho_settings_bool(s, HO_KEY_STUDY_ALLOW_SEARCHING_FACTS)) {
        return ho_loader_at_key(l, spec,
                                "%s is a fact of the market: searching it would only learn to "
                                "trade for free (study.allow_searching_facts = true allows it)",
                                name);
    }
    if (ho_settings_is_set(s, key)) {
        int line = 0, column = 0;
        ho_settings_place(s, key, &line, &column);
        return ho_loader_at_key(l, spec, "%s is set in line %d and searched here: remove one", name,
                                line);
    }
    return HO_OK;
}

static ho_status read_param(ho_loader *l, const ho_toml *spec, const char *name)
{
    ho_space *space = &l->study->space;
    const ho_toml *range = ho_toml_get(spec, "float"), *whole = ho_toml_get(spec, "int");
    const ho_toml *choice = ho_toml_get(spec, "choice");
    if (space->count == PARAMS_MAX) {
        return ho_loader_at_key(l, spec, "more than %d parameters", PARAMS_MAX);
    }
    if (ho_space_find(space, name) >= 0) {
        return ho_loader_at_key(l, spec, "%s is searched twice", name);
    }
    ho_param *param = &space->param[space->count];
    (void)snprintf(param->name, sizeof param->name, "%s", name);
    param->line = spec->key_line;
    param->column = spec->key_column;
    ho_status rc = check_role(l, spec, name, param);
    if (rc == HO_OK) {
        rc = check_members(l, spec);
    }
    if (rc == HO_OK && !!range + !!whole + !!choice != 1) {
        rc = ho_loader_at_key(l, spec, "%s has more than one of float, int and choice", name);
    }
    if (rc != HO_OK) {
        return rc;
    }
    space->count++; /* from here on ho_space_free frees its choices */
    rc = choice ? read_choices(l, spec, choice, param)
                : read_number(l, spec, range ? range : whole, param);
    return rc == HO_OK && param->key >= 0 ? check_key(l, spec, param) : rc;
}

static bool reserved(const char *prefix, const char *key)
{
    return prefix[0] == '\0' &&
           (strcmp(key, "require") == 0 || strcmp(key, "allow_searching_facts") == 0);
}

static ho_status read_params(ho_loader *l, const ho_toml *table, const char *prefix)
{
    for (int i = 0; i < table->count; i++) {
        const ho_toml *node = &table->child[i];
        char name[HO_PARAM_NAME_MAX];
        ho_status rc = HO_OK;
        if (reserved(prefix, node->key)) {
            continue;
        }
        if (!ho_loader_join(prefix, node->key, name, sizeof name) || node->key[0] == '\0') {
            return ho_loader_at_key(l, node, "a parameter's name has 1 to %d characters",
                                    HO_PARAM_NAME_MAX - 1);
        }
        if (node->type != HO_TOML_TABLE) {
            return ho_loader_at(l, node,
                                "%s wants { float = [low, high] }, { int = [low, high] } or { "
                                "choice = [...] }, not %s",
                                name, ho_toml_type_name(node->type));
        }
        if (is_param(node)) {
            rc = read_param(l, node, name);
        } else if (node->count > 0 && node->child[0].type == HO_TOML_TABLE) {
            rc = read_params(l, node, name);
        } else {
            rc = check_members(l, node);
            rc = rc != HO_OK
                     ? rc
                     : ho_loader_at_key(l, node, "%s has none of float, int and choice", name);
        }
        if (rc != HO_OK) {
            return rc;
        }
    }
    return HO_OK;
}

/* ---- whole sections ------------------------------------------------------------------------- */

static const ho_toml *find_spec(const ho_toml *table, const char *prefix, const char *name)
{
    for (int i = 0; i < table->count; i++) {
        char joined[HO_PARAM_NAME_MAX];
        const ho_toml *node = &table->child[i];
        if (node->type != HO_TOML_TABLE ||
            !ho_loader_join(prefix, node->key, joined, sizeof joined)) {
            continue;
        }
        if (strcmp(joined, name) == 0 && is_param(node)) {
            return node;
        }
        const ho_toml *found = is_param(node) ? NULL : find_spec(node, joined, name);
        if (found) {
            return found;
        }
    }
    return NULL;
}

static ho_status add_requirements(ho_loader *l, const ho_toml *node)
{
    const ho_toml *item = node->type == HO_TOML_ARRAY ? node->child : node;
    int count = node->type == HO_TOML_ARRAY ? node->count : 1;
    for (int i = 0; i < count; i++) {
        if (item[i].type != HO_TOML_STRING) {
            return ho_loader_at(l, &item[i], "require wants a string such as \"a > b\", not %s",
                                ho_toml_type_name(item[i].type));
        }
        ho_status rc = ho_require_add(&l->study->space, l->study->settings, item[i].text, l->err);
        if (rc != HO_OK) {
            return ho_loader_place(l, &item[i], rc);
        }
    }
    return HO_OK;
}

ho_status ho_loader_search(ho_loader *l, const ho_toml *search)
{
    static const ho_toml nothing = {.type = HO_TOML_TABLE};
    ho_space *space = &l->study->space;
    const ho_toml *study = ho_toml_get(l->root, "study");
    ho_status rc = HO_OK;
    search = search ? search : &nothing;
    if (search->type != HO_TOML_TABLE) {
        return ho_loader_at_key(l, search, "[search] is a section");
    }
    const ho_toml *allow = ho_toml_get(search, "allow_searching_facts");
    if (allow) {
        rc = ho_loader_place(
            l, allow,
            ho_loader_set(l, l->study->settings, HO_KEY_STUDY_ALLOW_SEARCHING_FACTS, allow));
    }
    space->param = (ho_param *)calloc(PARAMS_MAX, sizeof *space->param);
    if (!space->param) {
        return ho_err_set(l->err, HO_ENOMEM, "out of memory");
    }
    rc = rc == HO_OK ? read_params(l, search, "") : rc;
    for (int i = 0; i < space->count && rc == HO_OK; i++) {
        const ho_toml *spec = find_spec(search, "", space->param[i].name);
        const ho_toml *when = spec ? ho_toml_get(spec, "when") : NULL;
        rc = ho_loader_when(l, when, &space->param[i]);
    }
    rc = rc == HO_OK ? ho_loader_order(l) : rc;
    const ho_toml *require = ho_toml_get(search, "require");
    if (rc == HO_OK && require) {
        rc = add_requirements(l, require);
    }
    require = ho_toml_get(study, "require");
    if (rc == HO_OK && require) {
        rc = add_requirements(l, require);
    }
    return rc;
}
