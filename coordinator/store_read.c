/* SPDX-License-Identifier: Apache-2.0
 * Trials and reports read back when a run resumes. A parameter's value is mapped into the space of
 * the running revision by the parameter's name and, for a choice, by the choice itself; a trial
 * that does not map, or is not legal there, keeps fits = false. Contracts: store.h. */
#include "coordinator/store_internal.h"
#include "study/folds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const state_names[] = {"WAITING",  "RUNNING", "INTERRUPTED",
                                          "COMPLETE", "PRUNED",  "FAILED"};
static const char *const source_names[] = {"sampler", "enqueue", "replicate", "retest",
                                           "population"};

const char *ho_trial_state_name(ho_trial_state state)
{
    return state_names[state];
}

const char *ho_trial_source_name(ho_trial_source source)
{
    return source_names[source];
}

static int name_index(const char *const *names, int count, const char *name)
{
    for (int i = 0; name && i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

/* How a stored parameter id reads in the running space. */
typedef struct mapping {
    int position; /* in the space; -1: no such parameter any more */
    int choice_count;
    int choice[64]; /* stored index -> index in the space; -1: gone */
} mapping;

typedef struct reader {
    ho_store *store;
    const ho_space *space;
    mapping *map;
    int map_count;
    double *config;
    sqlite3_stmt *params, *trials;
    bool params_at_row;
} reader;

/* Fills a choice's map from the stored JSON array, by comparing the texts of the values. */
static ho_status map_choices(reader *r, mapping *m, const char *json, ho_err *err)
{
    const ho_param *p = &r->space->param[m->position];
    sqlite3_stmt *statement = NULL;
    ho_status rc = HO_OK;
    if (sqlite3_prepare_v2(r->store->db, "SELECT key, type, atom FROM json_each(?)", -1, &statement,
                           NULL) != SQLITE_OK ||
        sqlite3_bind_text(statement, 1, json, -1, SQLITE_STATIC) != SQLITE_OK) {
        rc = ho_store_fail(r->store, "cannot read the search space", err);
    }
    while (rc == HO_OK && sqlite3_step(statement) == SQLITE_ROW) {
        int key = sqlite3_column_int(statement, 0);
        const char *type = (const char *)sqlite3_column_text(statement, 1);
        if (key < 0 || key >= 64) {
            continue;
        }
        m->choice[key] = -1;
        m->choice_count = key + 1;
        for (int i = 0; i < p->choice_count && type; i++) {
            const ho_choice *c = &p->choice[i];
            bool same = false;
            switch (c->type) {
            case HO_CHOICE_BOOL:
                same = strcmp(type, c->boolean ? "true" : "false") == 0;
                break;
            case HO_CHOICE_INT:
                same = strcmp(type, "integer") == 0 &&
                       sqlite3_column_int64(statement, 2) == c->integer;
                break;
            case HO_CHOICE_FLOAT:
                same = (strcmp(type, "real") == 0 || strcmp(type, "integer") == 0) &&
                       sqlite3_column_double(statement, 2) == c->real;
                break;
            case HO_CHOICE_STRING:
                same = strcmp(type, "text") == 0 &&
                       strcmp((const char *)sqlite3_column_text(statement, 2), c->text) == 0;
                break;
            }
            if (same) {
                m->choice[key] = i;
                break;
            }
        }
    }
    (void)sqlite3_finalize(statement);
    return rc;
}

static ho_status load_mappings(reader *r, ho_err *err)
{
    static const char *const kinds[] = {"float", "int", "choice"};
    sqlite3_stmt *statement = NULL;
    ho_status rc = HO_OK;
    if (sqlite3_prepare_v2(r->store->db,
                           "SELECT id, name, kind, choices, (SELECT max(id) FROM param_space) "
                           "FROM param_space ORDER BY id",
                           -1, &statement, NULL) != SQLITE_OK) {
        return ho_store_fail(r->store, "cannot read the search space", err);
    }
    while (rc == HO_OK && sqlite3_step(statement) == SQLITE_ROW) {
        int id = sqlite3_column_int(statement, 0);
        if (!r->map) {
            r->map_count = sqlite3_column_int(statement, 4) + 1;
            r->map = (mapping *)calloc((size_t)r->map_count, sizeof *r->map);
            if (!r->map) {
                rc = ho_err_set(err, HO_ENOMEM, "out of memory");
                break;
            }
        }
        mapping *m = &r->map[id];
        m->position = ho_space_find(r->space, (const char *)sqlite3_column_text(statement, 1));
        if (m->position >= 0) {
            int kind = name_index(kinds, 3, (const char *)sqlite3_column_text(statement, 2));
            bool was_choice = kind == HO_PARAM_CHOICE;
            if (was_choice != (r->space->param[m->position].kind == HO_PARAM_CHOICE)) {
                m->position = -1;
            } else if (was_choice) {
                rc = map_choices(r, m, (const char *)sqlite3_column_text(statement, 3), err);
            }
        }
    }
    (void)sqlite3_finalize(statement);
    return rc;
}

/* Reads the parameters of trial `number` into r->config; false when one does not map. */
static bool read_config(reader *r, int64_t number)
{
    bool fits = true;
    for (int i = 0; i < r->space->count; i++) {
        r->config[i] = NAN;
    }
    while (r->params_at_row && sqlite3_column_int64(r->params, 0) <= number) {
        if (sqlite3_column_int64(r->params, 0) == number) {
            int id = sqlite3_column_int(r->params, 1);
            double value = sqlite3_column_double(r->params, 2);
            const mapping *m = id >= 0 && id < r->map_count ? &r->map[id] : NULL;
            if (!m || m->position < 0) {
                fits = false;
            } else if (m->choice_count > 0) {
                int index = value >= 0.0 && value < m->choice_count ? m->choice[(int)value] : -1;
                fits = fits && index >= 0;
                r->config[m->position] = index;
            } else {
                r->config[m->position] = value;
            }
        }
        r->params_at_row = sqlite3_step(r->params) == SQLITE_ROW;
    }
    return fits && ho_space_check(r->space, r->config, NULL) == HO_OK;
}

static double real_or_nan(sqlite3_stmt *statement, int column)
{
    return sqlite3_column_type(statement, column) == SQLITE_NULL
               ? NAN
               : sqlite3_column_double(statement, column);
}

static void read_values(sqlite3_stmt *values, bool *at_row, int64_t number, double *value)
{
    for (int i = 0; i < HO_STORE_OBJECTIVES_MAX; i++) {
        value[i] = NAN;
    }
    while (*at_row && sqlite3_column_int64(values, 0) <= number) {
        int objective = sqlite3_column_int(values, 1);
        if (sqlite3_column_int64(values, 0) == number && objective >= 0 &&
            objective < HO_STORE_OBJECTIVES_MAX) {
            value[objective] = real_or_nan(values, 2);
        }
        *at_row = sqlite3_step(values) == SQLITE_ROW;
    }
}

ho_status ho_store_each_trial(ho_store *store, const ho_space *space,
                              ho_status (*visit)(const ho_stored_trial *trial, void *user),
                              void *user, ho_err *err)
{
    reader r = {.store = store, .space = space};
    sqlite3_stmt *values = NULL;
    ho_status rc = HO_OK;

    r.config = (double *)calloc((size_t)space->count + 1, sizeof *r.config);
    if (!r.config) {
        rc = ho_err_set(err, HO_ENOMEM, "out of memory");
        goto out;
    }
    if ((rc = load_mappings(&r, err)) != HO_OK) {
        goto out;
    }
    if (sqlite3_prepare_v2(
            store->db,
            "SELECT number, state, attempt, source, parent, seeds, asked_after, "
            "told_order, created_ns, started_ns, finished_ns, epochs, violation, train_s "
            "FROM trial ORDER BY number",
            -1, &r.trials, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(store->db, "SELECT trial, param, value FROM param ORDER BY trial, param",
                           -1, &r.params, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(
            store->db, "SELECT trial, objective, value FROM trial_value ORDER BY trial, objective",
            -1, &values, NULL) != SQLITE_OK) {
        rc = ho_store_fail(store, "cannot read the trials", err);
        goto out;
    }
    r.params_at_row = sqlite3_step(r.params) == SQLITE_ROW;
    bool values_at_row = sqlite3_step(values) == SQLITE_ROW;
    int code = SQLITE_ROW;
    while (rc == HO_OK && (code = sqlite3_step(r.trials)) == SQLITE_ROW) {
        sqlite3_stmt *s = r.trials;
        ho_stored_trial t = {0};
        t.number = sqlite3_column_int64(s, 0);
        int state = name_index(state_names, 6, (const char *)sqlite3_column_text(s, 1));
        int source = name_index(source_names, 5, (const char *)sqlite3_column_text(s, 3));
        t.state = (ho_trial_state)(state < 0 ? HO_TRIAL_FAILED : state);
        t.source = (ho_trial_source)(source < 0 ? HO_SOURCE_SAMPLER : source);
        t.attempt = sqlite3_column_int64(s, 2);
        t.parent = sqlite3_column_type(s, 4) == SQLITE_NULL ? -1 : sqlite3_column_int64(s, 4);
        t.seeds = sqlite3_column_int(s, 5);
        t.asked_after = sqlite3_column_int64(s, 6);
        t.told_order = sqlite3_column_int64(s, 7);
        t.created_ns = sqlite3_column_int64(s, 8);
        t.started_ns = sqlite3_column_int64(s, 9);
        t.finished_ns = sqlite3_column_int64(s, 10);
        t.epochs = sqlite3_column_int64(s, 11);
        t.violation = real_or_nan(s, 12);
        t.train_s = real_or_nan(s, 13);
        t.fits = read_config(&r, t.number);
        t.config = r.config;
        read_values(values, &values_at_row, t.number, t.value);
        rc = visit(&t, user);
    }
    if (rc == HO_OK && code != SQLITE_DONE) {
        rc = ho_store_fail(store, "cannot read the trials", err);
    }
out:
    (void)sqlite3_finalize(r.trials);
    (void)sqlite3_finalize(r.params);
    (void)sqlite3_finalize(values);
    free(r.config);
    free(r.map);
    return rc;
}

/* The values of a statement bound to (trial, step), in order; how many, at most room. */
static int values_at(sqlite3_stmt *statement, int64_t trial, int64_t step, double *value, int room)
{
    int n = 0;

    (void)sqlite3_reset(statement);
    (void)sqlite3_bind_int64(statement, 1, trial);
    (void)sqlite3_bind_int64(statement, 2, step);
    while (n < room && sqlite3_step(statement) == SQLITE_ROW) {
        value[n++] = real_or_nan(statement, 0);
    }
    return n;
}

ho_status ho_store_each_report(ho_store *store,
                               ho_status (*visit)(const ho_stored_report *report, void *user),
                               void *user, ho_err *err)
{
    sqlite3_stmt *statement = NULL, *folds = NULL, *further = NULL;
    double fold_value[HO_FOLDS_MAX];
    ho_status rc = HO_OK;
    int code = SQLITE_ROW;

    if (sqlite3_prepare_v2(
            store->db, "SELECT trial, step, value, at_ns FROM report ORDER BY at_ns, trial, step",
            -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(
            store->db, "SELECT value FROM fold_report WHERE trial = ?1 AND step = ?2 ORDER BY fold",
            -1, &folds, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(store->db,
                           "SELECT value FROM report_value WHERE trial = ?1 AND step = ?2 "
                           "ORDER BY objective",
                           -1, &further, NULL) != SQLITE_OK) {
        rc = ho_store_fail(store, "cannot read the reports", err);
    }
    while (rc == HO_OK && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        ho_stored_report r = {.trial = sqlite3_column_int64(statement, 0),
                              .step = sqlite3_column_int64(statement, 1),
                              .at_ns = sqlite3_column_int64(statement, 3),
                              .fold_value = fold_value};
        for (int i = 0; i < HO_STORE_OBJECTIVES_MAX; i++) {
            r.value[i] = i == 0 ? real_or_nan(statement, 2) : NAN;
        }
        (void)values_at(further, r.trial, r.step, r.value + 1, HO_STORE_OBJECTIVES_MAX - 1);
        r.folds = values_at(folds, r.trial, r.step, fold_value, HO_FOLDS_MAX);
        rc = visit(&r, user);
    }
    if (rc == HO_OK && code != SQLITE_DONE) {
        rc = ho_store_fail(store, "cannot read the reports", err);
    }
    (void)sqlite3_finalize(further);
    (void)sqlite3_finalize(folds);
    (void)sqlite3_finalize(statement);
    return rc;
}

ho_status ho_store_each_promoted(ho_store *store,
                                 ho_status (*visit)(int64_t trial, int64_t times, void *user),
                                 void *user, ho_err *err)
{
    sqlite3_stmt *statement = NULL;
    ho_status rc = HO_OK;
    int code = SQLITE_ROW;

    if (sqlite3_prepare_v2(
            store->db, "SELECT trial, count(*) FROM event WHERE kind = 'promote' GROUP BY trial",
            -1, &statement, NULL) != SQLITE_OK) {
        return ho_store_fail(store, "cannot read the events", err);
    }
    while (rc == HO_OK && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        rc = visit(sqlite3_column_int64(statement, 0), sqlite3_column_int64(statement, 1), user);
    }
    if (rc == HO_OK && code != SQLITE_DONE) {
        rc = ho_store_fail(store, "cannot read the events", err);
    }
    (void)sqlite3_finalize(statement);
    return rc;
}

ho_status ho_store_each_round(ho_store *store,
                              ho_status (*visit)(const ho_race_row *round, void *user), void *user,
                              ho_err *err)
{
    sqlite3_stmt *s = NULL;
    ho_status rc = HO_OK;
    int code = SQLITE_ROW;

    if (sqlite3_prepare_v2(store->db,
                           "SELECT trial, round, attempt, at_ns, folds, epochs, against, common, "
                           "p, threshold, mean_gap, verdict, why, result FROM race "
                           "ORDER BY trial, round",
                           -1, &s, NULL) != SQLITE_OK) {
        return ho_store_fail(store, "cannot read the rounds", err);
    }
    while (rc == HO_OK && (code = sqlite3_step(s)) == SQLITE_ROW) {
        ho_race_row row = {
            .number = sqlite3_column_int64(s, 0),
            .round = sqlite3_column_int64(s, 1),
            .attempt = sqlite3_column_int64(s, 2),
            .now_ns = sqlite3_column_int64(s, 3),
            .folds = sqlite3_column_int64(s, 4),
            .epochs = sqlite3_column_int64(s, 5),
            .against = sqlite3_column_type(s, 6) == SQLITE_NULL ? -1 : sqlite3_column_int64(s, 6),
            .common = sqlite3_column_int64(s, 7),
            .p = real_or_nan(s, 8),
            .threshold = real_or_nan(s, 9),
            .mean_gap = real_or_nan(s, 10),
            .verdict = (const char *)sqlite3_column_text(s, 11),
            .why = (const char *)sqlite3_column_text(s, 12),
            .result = sqlite3_column_blob(s, 13),
            .result_size = (size_t)sqlite3_column_bytes(s, 13),
        };
        rc = visit(&row, user);
    }
    if (rc == HO_OK && code != SQLITE_DONE) {
        rc = ho_store_fail(store, "cannot read the rounds", err);
    }
    (void)sqlite3_finalize(s);
    return rc;
}

ho_status ho_store_fold_values(ho_store *store, int64_t trial, const char *metric, int folds,
                               double *value, ho_err *err)
{
    sqlite3_stmt *s = NULL;
    char *sql = sqlite3_mprintf("SELECT fold, \"%w\" FROM fold_result WHERE trial = ?1 AND "
                                "fold >= 0 ORDER BY fold, seed",
                                metric);
    ho_status rc = sql ? HO_OK : ho_err_set(err, HO_ENOMEM, "out of memory");
    int64_t seeds = 0, last = -1;

    for (int f = 0; f < folds; f++) {
        value[f] = NAN;
    }
    if (rc == HO_OK && (sqlite3_prepare_v2(store->db, sql, -1, &s, NULL) != SQLITE_OK ||
                        sqlite3_bind_int64(s, 1, trial) != SQLITE_OK)) {
        rc = ho_store_fail(store, "cannot read the folds", err);
    }
    while (rc == HO_OK && sqlite3_step(s) == SQLITE_ROW) {
        int64_t fold = sqlite3_column_int64(s, 0);
        if (fold >= folds) {
            continue;
        }
        if (fold != last && last >= 0) {
            value[last] /= (double)seeds;
        }
        value[fold] = (fold == last ? value[fold] : 0.0) + real_or_nan(s, 1);
        seeds = fold == last ? seeds + 1 : 1;
        last = fold;
    }
    if (last >= 0) {
        value[last] /= (double)seeds;
    }
    (void)sqlite3_finalize(s);
    sqlite3_free(sql);
    return rc;
}
