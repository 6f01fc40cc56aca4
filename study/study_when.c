/* SPDX-License-Identifier: Apache-2.0
 * Conditions of parameters: reading `when`, the order in which parents come first, and whether
 * every parameter can be active at all. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "study/study_internal.h"

enum { PARENT_CHOICES_MAX = 64 };

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

int ho_loader_choice(const ho_param *param, const ho_toml *node)
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
        int choice = ho_loader_choice(p, &item[i]);
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

ho_status ho_loader_when(ho_loader *l, const ho_toml *when, ho_param *param)
{
    ho_status rc = when ? read_when(l, when, "", param) : HO_OK;
    return rc == HO_OK ? add_implied(l, param) : rc;
}

ho_status ho_loader_order(ho_loader *l)
{
    ho_status rc = sort_params(l);
    return rc == HO_OK ? check_reachable(l) : rc;
}
