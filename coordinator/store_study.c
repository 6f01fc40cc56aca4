/* SPDX-License-Identifier: Apache-2.0
 * The study's own rows: written when it is created or its file is changed, read when a run resumes.
 * Contracts: store.h. */
#include "coordinator/store_internal.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A statement that is run once: the values are bound in order, then it is stepped. */
typedef struct once {
    ho_store *store;
    sqlite3_stmt *statement;
    int bound;
    int code;
} once;

static once once_prepare(ho_store *store, const char *sql)
{
    once o = {.store = store};
    o.code = sqlite3_prepare_v2(store->db, sql, -1, &o.statement, NULL);
    return o;
}

static void once_int(once *o, int64_t value)
{
    if (o->code == SQLITE_OK) {
        o->code = sqlite3_bind_int64(o->statement, ++o->bound, value);
    }
}

static void once_real(once *o, double value)
{
    if (o->code == SQLITE_OK) {
        o->bound++;
        o->code = isfinite(value) ? sqlite3_bind_double(o->statement, o->bound, value)
                                  : sqlite3_bind_null(o->statement, o->bound);
    }
}

static void once_text(once *o, const char *value)
{
    if (o->code == SQLITE_OK) {
        o->code = sqlite3_bind_text(o->statement, ++o->bound, value, -1, SQLITE_TRANSIENT);
    }
}

static ho_status once_run(once *o, const char *what, ho_err *err)
{
    if (o->code == SQLITE_OK) {
        o->code = sqlite3_step(o->statement);
    }
    ho_status rc = o->code == SQLITE_DONE || o->code == SQLITE_ROW
                       ? HO_OK
                       : ho_store_fail(o->store, what, err);
    (void)sqlite3_finalize(o->statement);
    o->statement = NULL;
    return rc;
}

bool ho_store_has_study(ho_store *store)
{
    sqlite3_stmt *statement = NULL;
    bool has =
        sqlite3_prepare_v2(store->db, "SELECT 1 FROM study", -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW;
    (void)sqlite3_finalize(statement);
    return has;
}

/* ---- the space ------------------------------------------------------------------------------ */

/* JSON array of a choice's values with their types; malloc'ed by cJSON, or NULL. */
static char *choices_json(const ho_param *param)
{
    cJSON *array = cJSON_CreateArray();
    char *text = NULL;
    for (int i = 0; i < param->choice_count && array; i++) {
        const ho_choice *c = &param->choice[i];
        char number[40];
        cJSON *item = NULL;
        switch (c->type) {
        case HO_CHOICE_BOOL:
            item = cJSON_CreateBool(c->boolean);
            break;
        case HO_CHOICE_INT:
            (void)snprintf(number, sizeof number, "%lld", (long long)c->integer);
            item = cJSON_CreateRaw(number);
            break;
        case HO_CHOICE_FLOAT:
            (void)snprintf(number, sizeof number, "%.17g", c->real);
            item = isfinite(c->real) ? cJSON_CreateRaw(number) : cJSON_CreateString(number);
            break;
        case HO_CHOICE_STRING:
            item = cJSON_CreateString(c->text);
            break;
        }
        if (!item || !cJSON_AddItemToArray(array, item)) {
            cJSON_Delete(item);
            cJSON_Delete(array);
            return NULL;
        }
    }
    text = array ? cJSON_PrintUnformatted(array) : NULL;
    cJSON_Delete(array);
    return text;
}

/* "agent.algorithm in [dqn, ppo]; ..." of a parameter's `when`; empty without one. */
static void condition_text(const ho_space *space, const ho_param *param, char *out, size_t room)
{
    size_t n = 0;
    out[0] = '\0';
    for (int i = 0; i < param->when_count && n < room; i++) {
        const ho_param *parent = &space->param[param->when[i].param];
        const char *comma = "";
        n += (size_t)snprintf(out + n, room - n, "%s%s in [", i ? "; " : "", parent->name);
        for (int c = 0; c < parent->choice_count && c < 64 && n < room; c++) {
            if (param->when[i].mask >> c & 1) {
                n += (size_t)snprintf(out + n, room - n, "%s%s", comma, parent->choice[c].text);
                comma = ", ";
            }
        }
        if (n < room) {
            n += (size_t)snprintf(out + n, room - n, "]");
        }
    }
}

/* An active row of the same name and distribution: the position is set, and the row is kept. */
static ho_status keep_param(ho_store *store, const ho_param *p, const char *choices,
                            const char *condition, int position, bool *kept, ho_err *err)
{
    static const char *const kinds[] = {"float", "int", "choice"};
    once o = once_prepare(
        store, "UPDATE param_space SET position = ?, active = 1, condition = ? WHERE id = (SELECT "
               "max(id) FROM "
               "param_space WHERE name = ? AND kind = ? AND log = ? AND low IS ? AND high IS ? AND "
               "step IS ? AND choices IS ?)");
    bool choice = p->kind == HO_PARAM_CHOICE;
    once_int(&o, position);
    once_text(&o, condition);
    once_text(&o, p->name);
    once_text(&o, kinds[p->kind]);
    once_int(&o, p->log);
    once_real(&o, choice ? NAN : p->low);
    once_real(&o, choice ? NAN : p->high);
    once_real(&o, choice || p->step == 0.0 ? NAN : p->step);
    once_text(&o, choices);
    ho_status rc = once_run(&o, "cannot write the search space", err);
    *kept = rc == HO_OK && sqlite3_changes(store->db) > 0;
    return rc;
}

static ho_status write_space(ho_store *store, const ho_space *space, ho_err *err)
{
    static const char *const kinds[] = {"float", "int", "choice"};
    ho_status rc = ho_store_exec(store, "UPDATE param_space SET active = 0",
                                 "cannot write the search space", err);
    for (int i = 0; i < space->count && rc == HO_OK; i++) {
        const ho_param *p = &space->param[i];
        bool choice = p->kind == HO_PARAM_CHOICE, kept = false;
        char *choices = choice ? choices_json(p) : NULL;
        char condition[1024];
        if (choice && !choices) {
            return ho_err_set(err, HO_ENOMEM, "out of memory");
        }
        condition_text(space, p, condition, sizeof condition);
        rc = keep_param(store, p, choices, condition[0] ? condition : NULL, i, &kept, err);
        if (rc == HO_OK && !kept) {
            once o = once_prepare(
                store,
                "INSERT INTO param_space (id, name, kind, log, low, high, step, choices, "
                "condition, "
                "position, active) VALUES ((SELECT coalesce(max(id), -1) + 1 FROM param_space), "
                "?, ?, ?, ?, ?, ?, ?, ?, ?, 1)");
            once_text(&o, p->name);
            once_text(&o, kinds[p->kind]);
            once_int(&o, p->log);
            once_real(&o, choice ? NAN : p->low);
            once_real(&o, choice ? NAN : p->high);
            once_real(&o, choice || p->step == 0.0 ? NAN : p->step);
            once_text(&o, choices);
            once_text(&o, condition[0] ? condition : NULL);
            once_int(&o, i);
            rc = once_run(&o, "cannot write the search space", err);
        }
        cJSON_free(choices);
    }
    return rc;
}

/* ---- folds, objectives, the study ------------------------------------------------------------ */

static ho_status write_fold(ho_store *store, const ho_store_study *s, int id, const ho_fold *fold,
                            ho_err *err)
{
    once o = once_prepare(store, "INSERT INTO fold VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
    once_int(&o, id);
    if (id >= 0) {
        once_int(&o, fold->train.begin);
        once_int(&o, fold->train.end);
        once_int(&o, fold->validation.begin);
        once_int(&o, fold->validation.end);
    } else {
        o.bound += 4; /* NULL */
    }
    once_int(&o, fold->test.begin);
    once_int(&o, fold->test.end);
    once_int(&o, s->open_ns[fold->test.begin]);
    once_int(&o, s->open_ns[fold->test.end - 1]);
    return once_run(&o, "cannot write the folds", err);
}

static ho_status write_folds(ho_store *store, const ho_store_study *s, ho_err *err)
{
    ho_status rc = ho_store_exec(store, "DELETE FROM fold", "cannot write the folds", err);
    for (int i = 0; i < s->folds->count && rc == HO_OK; i++) {
        rc = write_fold(store, s, i, &s->folds->fold[i], err);
    }
    if (rc == HO_OK && s->folds->holdout.end > s->folds->holdout.begin) {
        ho_fold holdout = {.test = s->folds->holdout};
        rc = write_fold(store, s, -1, &holdout, err);
    }
    return rc;
}

static ho_status write_goals(ho_store *store, const ho_store_study *s, ho_err *err)
{
    ho_status rc = HO_OK;
    for (int i = 0; i < s->objectives && rc == HO_OK; i++) {
        once o = once_prepare(store, "INSERT INTO objective VALUES (?, ?, ?, ?)");
        once_int(&o, i);
        once_text(&o, s->metric[i]);
        once_int(&o, s->direction[i]);
        once_text(&o, s->aggregate);
        rc = once_run(&o, "cannot write the objectives", err);
    }
    if (rc == HO_OK) {
        rc = ho_store_exec(store, "DELETE FROM study_constraint", "cannot write the constraints",
                           err);
    }
    for (int i = 0; i < s->constraints && rc == HO_OK; i++) {
        once o = once_prepare(store, "INSERT INTO study_constraint VALUES (?, ?)");
        once_int(&o, i);
        once_text(&o, s->constraint[i]);
        rc = once_run(&o, "cannot write the constraints", err);
    }
    return rc;
}

static ho_status commit(ho_store *store, ho_status rc, const char *what, ho_err *err)
{
    if (rc == HO_OK) {
        rc = ho_store_exec(store, "COMMIT", what, err);
    }
    if (rc != HO_OK) {
        (void)sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    }
    return rc;
}

ho_status ho_store_create_study(ho_store *store, const ho_store_study *s, ho_err *err)
{
    const char *what = "cannot write the study";
    ho_status rc = ho_store_exec(store, "BEGIN IMMEDIATE", what, err);
    if (rc != HO_OK) {
        return rc;
    }
    once o = once_prepare(
        store,
        "INSERT INTO study (id, name, uuid, program, created_ns, changed_ns, state, seed, trials, "
        "deterministic, toml, toml_path, settings, data_path, data_sha256, bars, first_bar_ns, "
        "last_bar_ns, sessions_per_year, initial_capital) "
        "VALUES (1, ?, ?, ?, ?, ?, 'new', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    once_text(&o, s->name);
    once_text(&o, s->uuid);
    once_text(&o, HYPEROPT_VERSION);
    once_int(&o, s->now_ns);
    once_int(&o, s->now_ns);
    once_int(&o, (int64_t)s->seed);
    once_int(&o, s->trials);
    once_int(&o, s->deterministic);
    once_text(&o, s->toml);
    once_text(&o, s->toml_path);
    once_text(&o, s->settings_json);
    once_text(&o, s->data_path);
    once_text(&o, s->data_sha256);
    once_int(&o, s->bars);
    once_int(&o, s->first_bar_ns);
    once_int(&o, s->last_bar_ns);
    once_real(&o, s->sessions_per_year);
    once_real(&o, s->initial_capital);
    rc = once_run(&o, what, err);
    if (rc == HO_OK && (rc = write_goals(store, s, err)) == HO_OK &&
        (rc = write_folds(store, s, err)) == HO_OK) {
        rc = write_space(store, s->space, err);
    }
    if (rc == HO_OK) { /* who sees the study can ask about it */
        rc = ho_store_put_views(store, err);
    }
    return commit(store, rc, what, err);
}

/* What unfinished trials have told so far: under other settings it says nothing. */
static ho_status forget_unfinished(ho_store *store, const char *what, ho_err *err)
{
    static const char *const table[] = {"fold_result",     "race",      "epoch_stat",
                                        "evolution_param", "evolution", "fold_report",
                                        "report_value",    "report"};
    static const char *const unfinished =
        "(SELECT number FROM trial WHERE state IN ('WAITING', 'RUNNING', 'INTERRUPTED'))";
    char sql[256];
    ho_status rc = HO_OK;
    for (size_t i = 0; i < sizeof table / sizeof *table && rc == HO_OK; i++) {
        (void)snprintf(sql, sizeof sql, "DELETE FROM %s WHERE trial IN %s", table[i], unfinished);
        rc = ho_store_exec(store, sql, what, err);
    }
    if (rc == HO_OK) { /* a pause that is forgotten was not ended by a promotion */
        (void)snprintf(sql, sizeof sql, "DELETE FROM event WHERE kind = 'promote' AND trial IN %s",
                       unfinished);
        rc = ho_store_exec(store, sql, what, err);
    }
    return rc;
}

ho_status ho_store_change_study(ho_store *store, const ho_store_study *s, const char *difference,
                                bool restart, ho_err *err)
{
    const char *what = "cannot write the changed study";
    ho_status rc = ho_store_exec(store, "BEGIN IMMEDIATE", what, err);
    if (rc != HO_OK) {
        return rc;
    }
    if (restart && (rc = forget_unfinished(store, what, err)) != HO_OK) {
        return commit(store, rc, what, err);
    }
    once o = once_prepare(
        store,
        "UPDATE study SET uuid = ?, program = ?, changed_ns = ?, trials = ?, deterministic = ?, "
        "toml = ?, "
        "toml_path = ?, settings = ?, data_path = ?, data_sha256 = ?, bars = ?, first_bar_ns = ?, "
        "last_bar_ns = ?, sessions_per_year = ?, initial_capital = ?, revision = revision + 1 "
        "WHERE id = 1");
    once_text(&o, s->uuid);
    once_text(&o, HYPEROPT_VERSION);
    once_int(&o, s->now_ns);
    once_int(&o, s->trials);
    once_int(&o, s->deterministic);
    once_text(&o, s->toml);
    once_text(&o, s->toml_path);
    once_text(&o, s->settings_json);
    once_text(&o, s->data_path);
    once_text(&o, s->data_sha256);
    once_int(&o, s->bars);
    once_int(&o, s->first_bar_ns);
    once_int(&o, s->last_bar_ns);
    once_real(&o, s->sessions_per_year);
    once_real(&o, s->initial_capital);
    rc = once_run(&o, what, err);
    if (rc == HO_OK && (rc = write_folds(store, s, err)) == HO_OK &&
        (rc = write_space(store, s->space, err)) == HO_OK) {
        once e =
            once_prepare(store, "INSERT INTO event (at_ns, kind, text) VALUES (?, 'change', ?)");
        once_int(&e, s->now_ns);
        once_text(&e, difference);
        rc = once_run(&e, what, err);
    }
    return commit(store, rc, what, err);
}

ho_status ho_store_put_auto_batch(ho_store *store, int64_t batch, ho_err *err)
{
    once o = once_prepare(store, "UPDATE study SET auto_batch = ? WHERE id = 1");
    once_int(&o, batch);
    return once_run(&o, "cannot write the measured batch", err);
}

/* ---- reading -------------------------------------------------------------------------------- */

static char *copy_column(sqlite3_stmt *statement, int column)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);
    return strdup(text ? text : "");
}

ho_status ho_store_read_info(ho_store *store, ho_store_info *out, ho_err *err)
{
    sqlite3_stmt *statement = NULL;
    ho_status rc = HO_OK;
    char **text[] = {&out->name,          &out->uuid,      &out->state,
                     &out->reason,        &out->toml,      &out->toml_path,
                     &out->settings_json, &out->data_path, &out->data_sha256};

    *out = (ho_store_info){0};
    if (sqlite3_prepare_v2(
            store->db,
            "SELECT name, uuid, state, reason, toml, toml_path, settings, data_path, "
            "data_sha256, trials, created_ns, changed_ns, revision, seed, auto_batch, "
            "(SELECT coalesce(sum(train_s), 0) FROM trial) FROM study",
            -1, &statement, NULL) != SQLITE_OK) {
        return ho_store_fail(store, "cannot read the study", err);
    }
    if (sqlite3_step(statement) != SQLITE_ROW) {
        rc = ho_err_set(err, HO_ENOTFOUND, "%s: holds no study yet", store->path);
        goto out;
    }
    for (int i = 0; i < (int)(sizeof text / sizeof text[0]); i++) {
        if (!(*text[i] = copy_column(statement, i))) {
            rc = ho_err_set(err, HO_ENOMEM, "out of memory");
            goto out;
        }
    }
    out->trials = sqlite3_column_int64(statement, 9);
    out->created_ns = sqlite3_column_int64(statement, 10);
    out->changed_ns = sqlite3_column_int64(statement, 11);
    out->revision = sqlite3_column_int64(statement, 12);
    out->seed = (uint64_t)sqlite3_column_int64(statement, 13);
    out->auto_batch = sqlite3_column_int64(statement, 14);
    out->spent_s = sqlite3_column_double(statement, 15);
out:
    (void)sqlite3_finalize(statement);
    if (rc != HO_OK) {
        ho_store_info_free(out);
    }
    return rc;
}

void ho_store_info_free(ho_store_info *info)
{
    free(info->name);
    free(info->uuid);
    free(info->state);
    free(info->reason);
    free(info->toml);
    free(info->toml_path);
    free(info->settings_json);
    free(info->data_path);
    free(info->data_sha256);
    *info = (ho_store_info){0};
}
