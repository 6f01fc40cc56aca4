/* SPDX-License-Identifier: Apache-2.0
 * Views: those of sql/views.sql, those of sql/optuna.sql, and the wide ones whose columns are this
 * study's parameters and folds. All are dropped and made anew, in one transaction. Contracts:
 * store.h. */
#include "coordinator/store_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const char ho_sql_views[], ho_sql_optuna[];

/* %w inside "" quotes a name, %d and the id lists are numbers of ours. */
static bool append_params(ho_store *store, sqlite3_str *sql)
{
    sqlite3_stmt *statement = NULL;
    /* a name may have several rows, after changes of its distribution: coalesce over them */
    bool ok =
        sqlite3_prepare_v2(store->db,
                           "SELECT name, group_concat(id), min(kind = 'choice') FROM param_space "
                           "GROUP BY name ORDER BY max(active) DESC, min(position), name",
                           -1, &statement, NULL) == SQLITE_OK;
    int columns = 0;
    while (ok && sqlite3_step(statement) == SQLITE_ROW && columns++ < 900) {
        const char *name = (const char *)sqlite3_column_text(statement, 0);
        const char *ids = (const char *)sqlite3_column_text(statement, 1);
        if (sqlite3_column_int(statement, 2)) {
            sqlite3_str_appendf(
                sql,
                ",\n  (SELECT json_extract(s.choices, '$[' || CAST(p.value AS INTEGER) || ']')"
                " FROM param p JOIN param_space s ON s.id = p.param"
                " WHERE p.trial = t.number AND p.param IN (%s)) AS \"%w\"",
                ids, name);
        } else {
            sqlite3_str_appendf(sql,
                                ",\n  (SELECT p.value FROM param p WHERE p.trial = t.number"
                                " AND p.param IN (%s)) AS \"%w\"",
                                ids, name);
        }
    }
    (void)sqlite3_finalize(statement);
    return ok;
}

static bool append_objectives(ho_store *store, sqlite3_str *sql)
{
    sqlite3_stmt *statement = NULL;
    bool ok = sqlite3_prepare_v2(store->db, "SELECT id, metric FROM objective ORDER BY id", -1,
                                 &statement, NULL) == SQLITE_OK;
    while (ok && sqlite3_step(statement) == SQLITE_ROW) {
        int id = sqlite3_column_int(statement, 0);
        sqlite3_str_appendf(sql,
                            ",\n  (SELECT v.value FROM trial_value v WHERE v.trial = t.number AND "
                            "v.objective = %d) AS \"value_%w\"",
                            id, (const char *)sqlite3_column_text(statement, 1));
    }
    (void)sqlite3_finalize(statement);
    return ok;
}

static bool append_folds(ho_store *store, sqlite3_str *sql)
{
    sqlite3_stmt *statement = NULL;
    bool ok =
        sqlite3_prepare_v2(store->db,
                           "SELECT f.id, (SELECT metric FROM objective WHERE id = 0) FROM fold f "
                           "WHERE f.id >= 0 ORDER BY f.id",
                           -1, &statement, NULL) == SQLITE_OK;
    while (ok && sqlite3_step(statement) == SQLITE_ROW) {
        int fold = sqlite3_column_int(statement, 0);
        const char *metric = (const char *)sqlite3_column_text(statement, 1);
        sqlite3_str_appendf(
            sql,
            ",\n  (SELECT avg(r.\"%w\") FROM fold_result r WHERE r.trial = t.number AND "
            "r.fold = %d) AS fold_%d",
            metric, fold, fold);
    }
    (void)sqlite3_finalize(statement);
    return ok;
}

char *ho_store_wide_views(ho_store *store)
{
    sqlite3_str *sql = sqlite3_str_new(store->db);
    bool ok = true;
    sqlite3_str_appendall(
        sql, "CREATE VIEW trial_wide AS SELECT t.number AS trial, t.state, t.attempt, "
             "t.source, t.violation, t.epochs, t.train_s, t.fail_class, t.fail_reason");
    ok = append_objectives(store, sql) && append_params(store, sql);
    sqlite3_str_appendall(
        sql, "\nFROM trial t;\nCREATE VIEW fold_wide AS SELECT t.number AS trial, t.state");
    ok = ok && append_objectives(store, sql) && append_folds(store, sql);
    sqlite3_str_appendall(sql, "\nFROM trial t WHERE t.state = 'COMPLETE';");
    char *text = sqlite3_str_finish(sql);
    if (!ok) {
        sqlite3_free(text);
        text = NULL;
    }
    return text;
}

static ho_status drop_views(ho_store *store, ho_err *err)
{
    sqlite3_stmt *statement = NULL;
    sqlite3_str *sql = sqlite3_str_new(store->db);
    ho_status rc = HO_OK;
    if (sqlite3_prepare_v2(store->db, "SELECT name FROM sqlite_master WHERE type = 'view'", -1,
                           &statement, NULL) != SQLITE_OK) {
        rc = ho_store_fail(store, "cannot make the views", err);
    }
    while (rc == HO_OK && sqlite3_step(statement) == SQLITE_ROW) {
        sqlite3_str_appendf(sql, "DROP VIEW \"%w\";",
                            (const char *)sqlite3_column_text(statement, 0));
    }
    (void)sqlite3_finalize(statement);
    char *text = sqlite3_str_finish(sql);
    if (rc == HO_OK && text) {
        rc = ho_store_exec(store, text, "cannot make the views", err);
    }
    sqlite3_free(text);
    return rc;
}

ho_status ho_store_put_views(ho_store *store, ho_err *err)
{
    const char *what = "cannot make the views";
    char *wide = NULL;
    ho_status rc = HO_OK;
    if ((rc = drop_views(store, err)) == HO_OK &&
        (rc = ho_store_exec(store, ho_sql_views, what, err)) == HO_OK &&
        (rc = ho_store_exec(store, ho_sql_optuna, what, err)) == HO_OK) {
        wide = ho_store_wide_views(store);
        rc = wide ? ho_store_exec(store, wide, what, err)
                  : ho_err_set(err, HO_ENOMEM, "%s: %s", store->path, what);
    }
    sqlite3_free(wide);
    return rc;
}

ho_status ho_store_make_views(ho_store *store, ho_err *err)
{
    const char *what = "cannot make the views";
    ho_status rc = ho_store_exec(store, "BEGIN IMMEDIATE", what, err);
    if (rc != HO_OK) {
        return rc;
    }
    if ((rc = ho_store_put_views(store, err)) == HO_OK) {
        rc = ho_store_exec(store, "COMMIT", what, err);
    }
    if (rc != HO_OK) {
        (void)sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    }
    return rc;
}
