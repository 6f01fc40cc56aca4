/* SPDX-License-Identifier: Apache-2.0
 * [[enqueue]] of a study file becomes configurations of its space. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "study/require.h"
#include "study/study_internal.h"
#include "study/text.h"

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
        int choice = ho_loader_choice(param, node);
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
