/* SPDX-License-Identifier: Apache-2.0
 * [search] of a study file becomes a ho_space; [[enqueue]] becomes configurations of it.
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

enum { PARAMS_MAX = 1024, CHOICES_MAX = 1024, PARENT_CHOICES_MAX = 64 };

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

/* ---- when ----------------------------------------------------------------------------------- */

static bool node_is_choice(const ho_toml *node, const ho_choice *choice)
{
    switch (choice->type) {
    case HO_CHOICE_BOOL:
        return node->type == HO_TOML_BOOL && node->boolean == choice->boolean;
    case HO_CHOICE_INT:
        return node->type == HO_TOML_INT && node->integer == choice->integer;
    case HO_CHOICE_FLOAT:
        return node->type == HO_TOML_FLOAT && node->real == choice->real;
    default:
        return node->type == HO_TOML_STRING && strcmp(node->text, choice->text) == 0;
    }
}

/* The choice of the parameter that equals node, or -1. */
static int choice_of(const ho_param *param, const ho_toml *node)
{
    for (int i = 0; i < param->choice_count; i++) {
        if (node_is_choice(node, &param->choice[i])) {
            return i;
        }
    }
    return -1;
}

/* A key that is not searched: the condition holds always (dropped) or never (an error). */
static ho_status when_fixed(const ho_loader *l, const ho_toml *node, const char *name)
{
    ho_key key = ho_setting_find(name), differs;
    const ho_settings *s = l->study->settings;
    const ho_toml *item = node->type == HO_TOML_ARRAY ? node->child : node;
    int count = node->type == HO_TOML_ARRAY ? node->count : 1;
    ho_status rc = HO_OK;
    bool holds = false;
    if (key == HO_KEY_COUNT) {
        return ho_loader_at_key(l, node, "\"%s\" is neither searched nor a setting", name);
    }
    ho_settings *other = ho_settings_copy(s);
    if (!other) {
        return ho_err_set(l->err, HO_ENOMEM, "out of memory");
    }
    for (int i = 0; i < count && rc == HO_OK; i++) {
        rc = ho_loader_place(l, &item[i], ho_loader_set(l, other, key, &item[i]));
        holds = holds || (rc == HO_OK && ho_settings_diff(s, other, &differs, 1) == 0);
    }
    ho_settings_destroy(&other);
    if (rc == HO_OK && !holds) {
        char value[256];
        (void)ho_settings_print(s, key, value, sizeof value);
        rc = ho_loader_at_key(l, node, "this `when` can never hold: %s is %s and not searched",
                              name, value);
    }
    return rc;
}

static ho_status add_when(const ho_loader *l, const ho_toml *node, const char *name,
                          ho_param *param)
{
    const ho_space *space = &l->study->space;
    int parent = ho_space_find(space, name);
    const ho_toml *item = node->type == HO_TOML_ARRAY ? node->child : node;
    int count = node->type == HO_TOML_ARRAY ? node->count : 1;
    uint64_t mask = 0;
    if (parent < 0) {
        return when_fixed(l, node, name);
    }
    const ho_param *p = &space->param[parent];
    if (p->kind != HO_PARAM_CHOICE) {
        return ho_loader_at_key(l, node, "`when` needs a choice, and %s is a range", name);
    }
    if (p->choice_count > PARENT_CHOICES_MAX) {
        return ho_loader_at_key(l, node, "%s has more than %d choices, too many for `when`", name,
                                PARENT_CHOICES_MAX);
    }
    if (p == param) {
        return ho_loader_at_key(l, node, "%s cannot depend on itself", name);
    }
    if (param->when_count == HO_WHEN_MAX) {
        return ho_loader_at_key(l, node, "at most %d conditions in a `when`", HO_WHEN_MAX);
    }
    for (int i = 0; i < count; i++) {
        int choice = choice_of(p, &item[i]);
        char text[256];
        (void)ho_toml_print(&item[i], text, sizeof text);
        if (choice < 0) {
            return ho_loader_at(l, &item[i],
                                "this `when` can never hold: %s (%s) is no choice of %s", text,
                                ho_toml_type_name(item[i].type), name);
        }
        mask |= UINT64_C(1) << choice;
    }
    if (mask == 0) {
        return ho_loader_at(l, node, "this `when` can never hold: the list is empty");
    }
    param->when[param->when_count++] = (ho_when){parent, mask};
    return HO_OK;
}

static ho_status read_when(const ho_loader *l, const ho_toml *table, const char *prefix,
                           ho_param *param)
{
    if (table->type != HO_TOML_TABLE) {
        return ho_loader_at(l, table, "when wants { \"key\" = value }, not %s",
                            ho_toml_type_name(table->type));
    }
    for (int i = 0; i < table->count; i++) {
        const ho_toml *node = &table->child[i];
        char name[HO_PARAM_NAME_MAX];
        if (!ho_loader_join(prefix, node->key, name, sizeof name)) {
            return ho_loader_at_key(l, node, "this name is too long");
        }
        ho_status rc = node->type == HO_TOML_TABLE ? read_when(l, node, name, param)
                                                   : add_when(l, node, name, param);
        if (rc != HO_OK) {
            return rc;
        }
    }
    return HO_OK;
}

/* dqn.* binds only a DQN agent and ppo.* only a PPO agent, said or not. */
static ho_status add_implied(const ho_loader *l, ho_param *param)
{
    ho_space *space = &l->study->space;
    int parent = ho_space_find(space, "agent.algorithm");
    const char *algorithm = strncmp(param->name, "dqn.", 4) == 0   ? "dqn"
                            : strncmp(param->name, "ppo.", 4) == 0 ? "ppo"
                                                                   : NULL;
    if (!algorithm || param->key < 0) {
        return HO_OK;
    }
    if (parent < 0) {
        const char *fixed = ho_settings_str(l->study->settings, HO_KEY_AGENT_ALGORITHM);
        if (strcmp(fixed, algorithm) == 0) {
            return HO_OK;
        }
        return ho_err_set(l->err, HO_ECONFIG,
                          "%s:%d:%d: %s is searched, but agent.algorithm is \"%s\", which never "
                          "reads it: remove it, or search agent.algorithm",
                          l->study->source, param->line, param->column, param->name, fixed);
    }
    uint64_t mask = 0;
    for (int c = 0; c < space->param[parent].choice_count; c++) {
        mask |= (uint64_t)(strcmp(space->param[parent].choice[c].text, algorithm) == 0) << c;
    }
    for (int w = 0; w < param->when_count; w++) {
        if (param->when[w].param == parent) {
            param->when[w].mask &= mask;
            return HO_OK; /* a mask of 0 is found by check_reachable */
        }
    }
    if (param->when_count == HO_WHEN_MAX) {
        return HO_OK;
    }
    param->when[param->when_count++] = (ho_when){parent, mask};
    return HO_OK;
}

/* ---- order and reachability ----------------------------------------------------------------- */

/* Stable: of the parameters whose parents are placed, the first of the file comes next. */
static ho_status sort_params(const ho_loader *l)
{
    ho_space *space = &l->study->space;
    int n = space->count, placed = 0;
    int *order = (int *)calloc((size_t)n + 1, sizeof *order); /* new place -> old place */
    int *place = (int *)calloc((size_t)n + 1, sizeof *place); /* old place -> new place, or -1 */
    ho_param *sorted = (ho_param *)calloc((size_t)n + 1, sizeof *sorted);
    ho_status rc =
        order && place && sorted ? HO_OK : ho_err_set(l->err, HO_ENOMEM, "out of memory");
    for (int i = 0; i < n && rc == HO_OK; i++) {
        place[i] = -1;
    }
    while (placed < n && rc == HO_OK) {
        int before = placed;
        for (int i = 0; i < n && placed == before; i++) {
            bool ready = place[i] < 0;
            for (int w = 0; w < space->param[i].when_count; w++) {
                ready = ready && place[space->param[i].when[w].param] >= 0;
            }
            if (ready) {
                place[i] = placed;
                order[placed++] = i;
            }
        }
        for (int i = 0; i < n && placed == before; i++) {
            if (place[i] < 0) {
                rc = ho_err_set(l->err, HO_ECONFIG,
                                "%s:%d:%d: the conditions of %s go round in a circle",
                                l->study->source, space->param[i].line, space->param[i].column,
                                space->param[i].name);
                break;
            }
        }
        if (placed == before) {
            break;
        }
    }
    for (int i = 0; i < n && rc == HO_OK; i++) {
        sorted[i] = space->param[order[i]];
        for (int w = 0; w < sorted[i].when_count; w++) {
            sorted[i].when[w].param = place[sorted[i].when[w].param];
        }
    }
    if (rc == HO_OK) {
        memcpy(space->param, sorted, (size_t)n * sizeof *sorted);
    }
    free(sorted);
    free(place);
    free(order);
    return rc;
}

/* All conditions above a parameter must be able to hold at once: each is a set of choices of one
 * parent, so it is enough that no parent is left without a choice. masks: [P, P], row i holds the
 * choices of each parent with which parameter i can be active. */
static ho_status check_reachable(const ho_loader *l)
{
    const ho_space *space = &l->study->space;
    size_t P = (size_t)space->count;
    uint64_t *masks = (uint64_t *)malloc((P * P + 1) * sizeof *masks);
    ho_status rc = masks ? HO_OK : ho_err_set(l->err, HO_ENOMEM, "out of memory");
    for (size_t i = 0; i < P && rc == HO_OK; i++) {
        const ho_param *param = &space->param[i];
        uint64_t *mask = masks + i * P;
        memset(mask, 0xff, P * sizeof *mask);
        for (int w = 0; w < param->when_count; w++) {
            const uint64_t *above = masks + (size_t)param->when[w].param * P;
            for (size_t p = 0; p < i; p++) {
                mask[p] &= above[p];
            }
            mask[param->when[w].param] &= param->when[w].mask;
        }
        for (size_t p = 0; p < i && rc == HO_OK; p++) {
            if (mask[p] == 0) {
                rc = ho_err_set(l->err, HO_ECONFIG,
                                "%s:%d:%d: the `when` of %s can never hold: its conditions on %s "
                                "exclude one another",
                                l->study->source, param->line, param->column, param->name,
                                space->param[p].name);
            }
        }
    }
    free(masks);
    return rc;
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
        rc = when ? read_when(l, when, "", &space->param[i]) : HO_OK;
        rc = rc == HO_OK ? add_implied(l, &space->param[i]) : rc;
    }
    rc = rc == HO_OK ? sort_params(l) : rc;
    rc = rc == HO_OK ? check_reachable(l) : rc;
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

/* ---- [[enqueue]] ---------------------------------------------------------------------------- */

static ho_status enqueue_value(const ho_loader *l, const ho_toml *node, const char *name,
                               double *config)
{
    const ho_space *space = &l->study->space;
    int i = ho_space_find(space, name);
    if (i < 0) {
        return ho_loader_at_key(l, node, "\"%s\" is not searched, so it cannot be enqueued", name);
    }
    const ho_param *param = &space->param[i];
    if (param->kind == HO_PARAM_CHOICE) {
        int choice = choice_of(param, node);
        char text[256];
        (void)ho_toml_print(node, text, sizeof text);
        if (choice < 0) {
            return ho_loader_at(l, node, "%s (%s) is no choice of %s", text,
                                ho_toml_type_name(node->type), name);
        }
        config[i] = choice;
        return HO_OK;
    }
    if (node->type != HO_TOML_INT && (node->type != HO_TOML_FLOAT || param->kind == HO_PARAM_INT)) {
        return ho_loader_at(l, node, "%s wants %s, not %s", name,
                            param->kind == HO_PARAM_INT ? "a whole number" : "a number",
                            ho_toml_type_name(node->type));
    }
    char text[HO_TEXT_NUMBER];
    (void)ho_toml_print(node, text, sizeof text);
    return ho_loader_place(l, node, ho_param_parse(param, text, &config[i], l->err));
}

static ho_status enqueue_table(const ho_loader *l, const ho_toml *table, const char *prefix,
                               double *config)
{
    for (int i = 0; i < table->count; i++) {
        const ho_toml *node = &table->child[i];
        char name[HO_PARAM_NAME_MAX];
        if (!ho_loader_join(prefix, node->key, name, sizeof name)) {
            return ho_loader_at_key(l, node, "this name is too long");
        }
        ho_status rc = node->type == HO_TOML_TABLE ? enqueue_table(l, node, name, config)
                                                   : enqueue_value(l, node, name, config);
        if (rc != HO_OK) {
            return rc;
        }
    }
    return HO_OK;
}

/* A given value whose condition is given, too, and does not hold. */
static ho_status check_inactive(const ho_loader *l, const ho_toml *item, const double *config)
{
    const ho_space *space = &l->study->space;
    for (int i = 0; i < space->count; i++) {
        const ho_param *param = &space->param[i];
        for (int w = 0; w < param->when_count && !isnan(config[i]); w++) {
            double parent = config[param->when[w].param];
            if (!isnan(parent) && !((param->when[w].mask >> (int)parent) & 1)) {
                return ho_loader_at(l, item, "%s has a value here, but is not active with this %s",
                                    param->name, space->param[param->when[w].param].name);
            }
        }
    }
    return HO_OK;
}

ho_status ho_loader_enqueue(ho_loader *l, const ho_toml *list)
{
    ho_study *study = l->study;
    size_t P = (size_t)study->space.count;
    if (list->type != HO_TOML_ARRAY) {
        return ho_loader_at_key(l, list, "enqueue is a list: write [[enqueue]]");
    }
    study->enqueue = (double *)calloc((size_t)list->count * P + 1, sizeof *study->enqueue);
    if (!study->enqueue) {
        return ho_err_set(l->err, HO_ENOMEM, "out of memory");
    }
    for (int i = 0; i < list->count; i++) {
        double *config = study->enqueue + (size_t)i * P;
        const ho_toml *item = &list->child[i];
        if (item->type != HO_TOML_TABLE) {
            return ho_loader_at(l, item, "enqueue is a list of tables: write [[enqueue]]");
        }
        for (size_t p = 0; p < P; p++) {
            config[p] = NAN;
        }
        ho_status rc = enqueue_table(l, item, "", config);
        rc = rc == HO_OK ? check_inactive(l, item, config) : rc;
        if (rc != HO_OK) {
            return rc;
        }
        bool whole = true;
        for (int p = 0; p < (int)P; p++) {
            whole = whole && (!isnan(config[p]) || !ho_space_active(&study->space, config, p));
        }
        rc = whole ? ho_require_check(study->space.require, &study->space, config, l->err) : HO_OK;
        if (rc != HO_OK) {
            return ho_loader_place(l, item, rc);
        }
        study->enqueue_count = i + 1;
    }
    return HO_OK;
}
