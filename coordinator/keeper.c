/* SPDX-License-Identifier: Apache-2.0
 * See keeper.h. */
#include "coordinator/keeper.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct kept {
    int64_t number;
    double value, violation;
} kept;

struct ho_keeper {
    ho_store *store;
    ho_artifacts *artifacts;
    kept *best; /* [count] best first */
    int64_t count, limit;
    int direction;
    bool drop_epochs;
};

static bool better(const ho_keeper *k, const kept *a, const kept *b)
{
    if (a->violation != b->violation) {
        return a->violation < b->violation;
    }
    double gain = (a->value - b->value) * k->direction;
    return gain > 0.0 || (gain == 0.0 && a->number < b->number);
}

/* The number that falls out of the best ones when this comes in; -1: none. */
static int64_t insert(ho_keeper *k, kept trial)
{
    int64_t at = k->count;
    while (at > 0 && better(k, &trial, &k->best[at - 1])) {
        at--;
    }
    if (at >= k->limit) {
        return trial.number;
    }
    int64_t out = k->count == k->limit ? k->best[k->limit - 1].number : -1;
    int64_t moved = (k->count < k->limit ? k->count : k->limit - 1) - at;
    memmove(&k->best[at + 1], &k->best[at], (size_t)moved * sizeof *k->best);
    k->best[at] = trial;
    k->count += k->count < k->limit;
    return out;
}

ho_status ho_keeper_create(ho_keeper **out, ho_store *store, ho_artifacts *artifacts, int64_t best,
                           int direction, bool drop_epochs, ho_err *err)
{
    ho_keeper *k = (ho_keeper *)calloc(1, sizeof *k);
    sqlite3_stmt *statement = NULL;
    ho_status rc = HO_OK;

    *out = NULL;
    if (!k || !(k->best = (kept *)calloc((size_t)best + 1, sizeof *k->best))) {
        free(k);
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    k->store = store;
    k->artifacts = artifacts;
    k->limit = best;
    k->direction = direction;
    k->drop_epochs = drop_epochs;
    if (sqlite3_prepare_v2(
            ho_store_db(store),
            "SELECT l.trial, l.value, coalesce(t.violation, 0) FROM leaderboard l JOIN "
            "trial t ON t.number = l.trial ORDER BY l.rank LIMIT ?",
            -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_bind_int64(statement, 1, best) != SQLITE_OK) {
        rc = ho_err_set(err, HO_ESTORE, "%s: %s", ho_store_path(store),
                        sqlite3_errmsg(ho_store_db(store)));
    }
    while (rc == HO_OK && sqlite3_step(statement) == SQLITE_ROW) {
        k->best[k->count++] =
            (kept){sqlite3_column_int64(statement, 0), sqlite3_column_double(statement, 1),
                   sqlite3_column_double(statement, 2)};
    }
    (void)sqlite3_finalize(statement);
    if (rc != HO_OK) {
        ho_keeper_destroy(&k);
    }
    *out = k;
    return rc;
}

void ho_keeper_destroy(ho_keeper **keeper)
{
    if (*keeper) {
        free((*keeper)->best);
        free(*keeper);
        *keeper = NULL;
    }
}

void ho_keeper_note(ho_keeper *k, const ho_trial_result *result, int64_t unix_ns)
{
    kept trial = {result->number, result->value[0],
                  isnan(result->violation) ? 0.0 : result->violation};
    bool ranked = result->state == HO_TRIAL_COMPLETE && !isnan(trial.value);
    int64_t out = ranked ? insert(k, trial) : trial.number;
    if (out >= 0) {
        ho_artifacts_delete(k->artifacts, out, true, unix_ns);
        if (k->drop_epochs) {
            (void)ho_store_put_epochs_deleted(k->store, out); /* memory: shows at the next flush */
        }
    }
}
