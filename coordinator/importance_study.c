/* SPDX-License-Identifier: Apache-2.0
 * See importance_study.h. */
#include "coordinator/importance_study.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/search/importance.h"

enum { TRIALS_MIN = 10 };
static const double good_share = 0.1; /* of the trials: what PED-ANOVA calls the good ones */

typedef struct table {
    double *config; /* [count, P] */
    double *value;  /* [count] */
    int64_t count, room;
    int params;
    ho_err *err;
} table;

static ho_status collect(const ho_stored_trial *trial, void *user)
{
    table *t = (table *)user;
    if (trial->state != HO_TRIAL_COMPLETE || trial->source == HO_SOURCE_RETEST || !trial->fits ||
        isnan(trial->value[0])) {
        return HO_OK;
    }
    if (t->count == t->room) {
        int64_t room = t->room ? 2 * t->room : 256;
        double *value = (double *)realloc(t->value, (size_t)room * sizeof *value);
        if (value) {
            t->value = value;
        }
        double *config =
            (double *)realloc(t->config, (size_t)room * (size_t)t->params * sizeof *config);
        if (config) {
            t->config = config;
        }
        if (!value || !config) {
            return ho_err_set(t->err, HO_ENOMEM, "out of memory");
        }
        t->room = room;
    }
    memcpy(t->config + t->count * t->params, trial->config, (size_t)t->params * sizeof *t->config);
    t->value[t->count++] = trial->value[0];
    return HO_OK;
}

static ho_status put(ho_store *store, const ho_space *space, const ho_importance *importance)
{
    ho_status rc = HO_OK;
    for (int i = 0; i < space->count && rc == HO_OK; i++) {
        const ho_importance *v = &importance[i];
        if ((rc = ho_store_put_importance(store, i, "ped_anova", v->share, v->trials)) == HO_OK &&
            !isnan(v->spearman)) {
            rc = ho_store_put_importance(store, i, "spearman", v->spearman, v->trials);
        }
        if (rc == HO_OK && !isnan(v->kendall)) {
            rc = ho_store_put_importance(store, i, "kendall", v->kendall, v->trials);
        }
    }
    return rc;
}

ho_status ho_importance_study(ho_store *store, const ho_space *space, int direction, ho_err *err)
{
    table t = {.params = space->count, .err = err};
    ho_importance *importance = NULL;
    ho_status rc = HO_OK;

    if (space->count == 0) {
        return HO_OK;
    }
    if ((rc = ho_store_each_trial(store, space, collect, &t, err)) != HO_OK ||
        t.count < TRIALS_MIN) {
        goto out;
    }
    if (!(importance = (ho_importance *)calloc((size_t)space->count, sizeof *importance))) {
        rc = ho_err_set(err, HO_ENOMEM, "out of memory");
        goto out;
    }
    if ((rc = ho_importance_compute(space, t.config, t.value, t.count, direction, good_share,
                                    importance, err)) == HO_OK) {
        rc = put(store, space, importance);
    }
out:
    free(importance);
    free(t.config);
    free(t.value);
    return rc;
}
