/* SPDX-License-Identifier: Apache-2.0
 * See warm_start.h. */
#include "coordinator/warm_start.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/overfit_study.h"
#include "coordinator/store.h"
#include "study/log.h"

typedef struct old_trial {
    ho_told told;
    double *config; /* [P] */
} old_trial;

typedef struct collection {
    old_trial *trial; /* [count] */
    int64_t count, room, skipped;
    int params, objectives, direction;
    ho_err *err;
} collection;

static void collection_free(collection *c)
{
    for (int64_t i = 0; i < c->count; i++) {
        free(c->trial[i].config);
    }
    free(c->trial);
}

static ho_status collect(const ho_stored_trial *t, void *user)
{
    collection *c = (collection *)user;
    size_t bytes = (size_t)(c->params + 1) * sizeof(double);
    if (t->state != HO_TRIAL_COMPLETE && t->state != HO_TRIAL_PRUNED) {
        return HO_OK;
    }
    if (!t->fits || isnan(t->value[0])) {
        c->skipped++;
        return HO_OK;
    }
    if (c->count == c->room) {
        int64_t room = c->room ? 2 * c->room : 64;
        old_trial *bigger = (old_trial *)realloc(c->trial, (size_t)room * sizeof *bigger);
        if (!bigger) {
            return ho_err_set(c->err, HO_ENOMEM, "out of memory");
        }
        c->trial = bigger;
        c->room = room;
    }
    old_trial *o = &c->trial[c->count];
    memset(o, 0, sizeof *o);
    if (!(o->config = (double *)malloc(bytes))) {
        return ho_err_set(c->err, HO_ENOMEM, "out of memory");
    }
    memcpy(o->config, t->config, bytes - sizeof(double));
    o->told.state = t->state == HO_TRIAL_COMPLETE ? HO_TOLD_COMPLETE : HO_TOLD_PRUNED;
    memcpy(o->told.value, t->value, sizeof o->told.value);
    o->told.violation = isnan(t->violation) ? 0.0 : t->violation;
    o->told.step = t->epochs;
    o->told.seconds = t->train_s;
    c->count++;
    return HO_OK;
}

/* Best first: complete before pruned, feasible before not, then the first objective. */
static int by_rank(const void *a, const void *b, void *user)
{
    const ho_told *x = &((const old_trial *)a)->told, *y = &((const old_trial *)b)->told;
    const collection *c = (const collection *)user;
    if (x->state != y->state) {
        return x->state == HO_TOLD_COMPLETE ? -1 : 1;
    }
    if (x->violation != y->violation) {
        return x->violation < y->violation ? -1 : 1;
    }
    double gain = (x->value[0] - y->value[0]) * c->direction;
    return (gain < 0.0) - (gain > 0.0);
}

/* The other study must measure what this one measures. */
static ho_status check_goals(ho_store *store, const ho_study *study, const ho_warm_start *warm,
                             ho_err *err)
{
    sqlite3_stmt *statement = NULL;
    ho_status rc = HO_OK;
    int n = 0;
    if (sqlite3_prepare_v2(
            ho_store_db(store),
            "SELECT (SELECT name FROM study), metric, direction FROM objective ORDER BY id", -1,
            &statement, NULL) != SQLITE_OK) {
        return ho_err_set(err, HO_ESTORE, "%s: %s", warm->database,
                          sqlite3_errmsg(ho_store_db(store)));
    }
    while (rc == HO_OK && sqlite3_step(statement) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(statement, 0);
        const char *metric = (const char *)sqlite3_column_text(statement, 1);
        if (warm->study[0] && (!name || strcmp(name, warm->study) != 0)) {
            rc =
                ho_err_set(err, HO_ECONFIG, "%s: warm_start: %s holds the study \"%s\", not \"%s\"",
                           study->source, warm->database, name ? name : "", warm->study);
        } else if (n >= study->objective_count || strcmp(metric, study->objective[n].name) != 0 ||
                   sqlite3_column_int(statement, 2) != study->objective[n].direction) {
            rc = ho_err_set(err, HO_ECONFIG, "%s: warm_start: %s has other objectives (%s)",
                            study->source, warm->database, metric);
        }
        n++;
    }
    (void)sqlite3_finalize(statement);
    if (rc == HO_OK && n != study->objective_count) {
        rc = ho_err_set(err, HO_ECONFIG, "%s: warm_start: %s has other objectives", study->source,
                        warm->database);
    }
    return rc;
}

static ho_status warm_from(ho_sampler *sampler, const ho_study *study, const ho_warm_start *warm,
                           int64_t *tried, ho_err *err)
{
    collection c = {.params = study->space.count,
                    .objectives = study->objective_count,
                    .direction = study->objective[0].direction,
                    .err = err};
    char path[PATH_MAX];
    ho_store *store = NULL;
    ho_status rc = HO_OK;

    if ((rc = ho_study_path(study, warm->database, path, sizeof path, err)) != HO_OK ||
        (rc = ho_store_open_read(&store, path, err)) != HO_OK) {
        (void)ho_err_prefix(err, "%s: warm_start", study->source);
        goto out;
    }
    if ((rc = check_goals(store, study, warm, err)) != HO_OK ||
        (rc = ho_store_each_trial(store, &study->space, collect, &c, err)) != HO_OK) {
        goto out;
    }
    if (warm->best > 0) {
        qsort_r(c.trial, (size_t)c.count, sizeof *c.trial, by_rank, &c);
    }
    int64_t take = warm->best > 0 && warm->best < c.count ? warm->best : c.count;
    for (int64_t i = 0; i < take && rc == HO_OK; i++) {
        rc = ho_sampler_warm(sampler, c.trial[i].config, &c.trial[i].told, err);
    }
    int64_t count = 0;
    if (rc == HO_OK && (rc = ho_overfit_tried(store, &count, err)) == HO_OK) {
        *tried += count;
    }
    ho_log(HO_LOG_INFO, "run", "warm start from=%s told=%lld unfit=%lld", path, (long long)take,
           (long long)c.skipped);
out:
    collection_free(&c);
    ho_store_close(&store);
    return rc;
}

ho_status ho_warm_start_tell(ho_sampler *sampler, const ho_study *study, int64_t *tried,
                             ho_err *err)
{
    ho_status rc = HO_OK;
    *tried = 0;
    for (int i = 0; i < study->warm_start_count && rc == HO_OK; i++) {
        rc = warm_from(sampler, study, &study->warm_start[i], tried, err);
    }
    return rc;
}
