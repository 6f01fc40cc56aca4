/* SPDX-License-Identifier: Apache-2.0
 * Bringing an older file to the present schema. Every table of the schema is made anew and filled
 * from the old one, column by column by name, in one transaction and after a backup copy; so a file
 * gets the very tables a new one has, constraints and order of columns included. What cannot be
 * taken over by name is said in `fills`. Tables that the schema does not know are left alone, views
 * are made anew by the caller. Contracts: store_internal.h. */
#include "coordinator/store_internal.h"

#include <stdio.h>
#include <string.h>

#include "study/log.h"

extern const char ho_sql_schema[];

/* What a column is filled with when a file of a version up to `until` is migrated. */
typedef struct fill {
    int until;
    const char *table, *column;
    const char *sql; /* over the old row; the other old tables are old_NAME */
    bool always;     /* false: only when the old table lacks the column */
} fill;

static const fill fills[] = {
    {1, "trial", "seeds",
     "coalesce((SELECT json_extract(settings, '$.values.\"study.seeds\"') FROM old_study), 1)",
     false},
    {1, "holdout_look", "refit", "0", false},
    {1, "baseline", "policy", "CASE policy WHEN 'buy_hold' THEN 'buy_and_hold' ELSE policy END",
     true},
};

int64_t ho_store_number(sqlite3 *db, const char *sql, int64_t fallback)
{
    sqlite3_stmt *statement = NULL;
    int64_t value = fallback;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
        value = sqlite3_column_int64(statement, 0);
    }
    (void)sqlite3_finalize(statement);
    return value;
}

static ho_status backup(sqlite3 *db, const char *path, int version, ho_err *err)
{
    char copy[PATH_MAX];
    sqlite3 *to = NULL;
    sqlite3_backup *job = NULL;
    ho_status rc = HO_OK;

    if (snprintf(copy, sizeof copy, "%s.v%d.bak", path, version) >= (int)sizeof copy) {
        return ho_err_set(err, HO_ESTORE, "%s: the path is too long", path);
    }
    if (sqlite3_open_v2(copy, &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) != SQLITE_OK ||
        !(job = sqlite3_backup_init(to, "main", db, "main"))) {
        rc = ho_err_set(err, HO_ESTORE, "%s: cannot write the backup copy: %s", copy,
                        sqlite3_errmsg(to));
        goto out;
    }
    (void)sqlite3_backup_step(job, -1);
    if (sqlite3_backup_finish(job) != SQLITE_OK) {
        rc = ho_err_set(err, HO_ESTORE, "%s: cannot write the backup copy: %s", copy,
                        sqlite3_errmsg(to));
    } else {
        ho_log(HO_LOG_INFO, "store", "backup before migration path=%s", copy);
    }
out:
    (void)sqlite3_close(to);
    return rc;
}

/* The database being migrated, and an empty one of the new schema to learn its tables from. */
typedef struct migration {
    sqlite3 *db, *fresh;
    int version; /* of the file */
} migration;

/* Runs `sql` on the file and frees it; NULL: out of memory. */
static int run(const migration *m, sqlite3_str *text)
{
    char *sql = sqlite3_str_finish(text);
    int code = sql ? sqlite3_exec(m->db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    return code;
}

static bool has_table(sqlite3 *db, const char *prefix, const char *table)
{
    char *sql = sqlite3_mprintf("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name "
                                "= '%q%q'",
                                prefix, table);
    bool has = sql && ho_store_number(db, sql, 0) > 0;
    sqlite3_free(sql);
    return has;
}

static bool had_column(const migration *m, const char *table, const char *column)
{
    char *sql = sqlite3_mprintf("SELECT count(*) FROM pragma_table_info('old_%q') WHERE name = %Q",
                                table, column);
    bool has = sql && ho_store_number(m->db, sql, 0) > 0;
    sqlite3_free(sql);
    return has;
}

static const fill *fill_of(const migration *m, const char *table, const char *column)
{
    for (size_t i = 0; i < sizeof fills / sizeof fills[0]; i++) {
        if (m->version <= fills[i].until && strcmp(fills[i].table, table) == 0 &&
            strcmp(fills[i].column, column) == 0) {
            return &fills[i];
        }
    }
    return NULL;
}

/* Views, and the indices of our tables: their names are needed again. */
static int drop_dependents(const migration *m)
{
    sqlite3_stmt *statement = NULL;
    sqlite3_str *sql = sqlite3_str_new(m->db);
    int code = sqlite3_prepare_v2(m->db,
                                  "SELECT type, name, tbl_name FROM sqlite_master WHERE type = "
                                  "'view' OR (type = 'index' AND sql IS NOT NULL)",
                                  -1, &statement, NULL);
    while (code == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW) {
        bool view = strcmp((const char *)sqlite3_column_text(statement, 0), "view") == 0;
        if (view || has_table(m->fresh, "", (const char *)sqlite3_column_text(statement, 2))) {
            sqlite3_str_appendf(sql, "DROP %s \"%w\";", view ? "VIEW" : "INDEX",
                                (const char *)sqlite3_column_text(statement, 1));
        }
    }
    (void)sqlite3_finalize(statement);
    if (sqlite3_str_length(sql) == 0) {
        sqlite3_free(sqlite3_str_finish(sql));
        return code;
    }
    int ran = run(m, sql);
    return code == SQLITE_OK ? ran : code;
}

static int copy_table(const migration *m, const char *table)
{
    sqlite3_stmt *statement = NULL;
    sqlite3_str *to = sqlite3_str_new(m->db), *from = sqlite3_str_new(m->db);
    char *columns = sqlite3_mprintf("SELECT name FROM pragma_table_info(%Q)", table);
    int code = columns ? sqlite3_prepare_v2(m->fresh, columns, -1, &statement, NULL) : SQLITE_NOMEM;
    while (code == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(statement, 0);
        const fill *rule = fill_of(m, table, name);
        bool old = had_column(m, table, name);
        const char *comma = sqlite3_str_length(to) > 0 ? ", " : "";
        if (rule && (rule->always || !old)) {
            sqlite3_str_appendf(to, "%s\"%w\"", comma, name);
            sqlite3_str_appendf(from, "%s%s", comma, rule->sql);
        } else if (old) {
            sqlite3_str_appendf(to, "%s\"%w\"", comma, name);
            sqlite3_str_appendf(from, "%s\"%w\"", comma, name);
        }
    }
    (void)sqlite3_finalize(statement);
    sqlite3_free(columns);
    char *target = sqlite3_str_finish(to), *source = sqlite3_str_finish(from);
    if (code == SQLITE_OK && target && source) {
        sqlite3_str *sql = sqlite3_str_new(m->db);
        sqlite3_str_appendf(sql, "INSERT INTO \"%w\" (%s) SELECT %s FROM \"old_%w\"", table, target,
                            source, table);
        code = run(m, sql);
    }
    sqlite3_free(target);
    sqlite3_free(source);
    return code;
}

typedef enum step { STEP_RENAME, STEP_COPY, STEP_DROP } step;

/* Does one step with each table of the new schema that the file has. */
static int each_table(const migration *m, step what)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(m->fresh, "SELECT name FROM sqlite_master WHERE type = 'table'",
                                  -1, &statement, NULL);
    while (code == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW) {
        const char *table = (const char *)sqlite3_column_text(statement, 0);
        sqlite3_str *sql = NULL;
        if (!has_table(m->db, what == STEP_RENAME ? "" : "old_", table)) {
            continue;
        }
        if (what == STEP_COPY) {
            code = copy_table(m, table);
            continue;
        }
        sql = sqlite3_str_new(m->db);
        if (what == STEP_RENAME) {
            sqlite3_str_appendf(sql, "ALTER TABLE \"%w\" RENAME TO \"old_%w\"", table, table);
        } else {
            sqlite3_str_appendf(sql, "DROP TABLE \"old_%w\"", table);
        }
        code = run(m, sql);
    }
    (void)sqlite3_finalize(statement);
    return code;
}

/* Within a transaction. */
static int rebuild(const migration *m, const char *schema)
{
    int code = SQLITE_OK;
    if ((code = drop_dependents(m)) != SQLITE_OK ||
        (code = each_table(m, STEP_RENAME)) != SQLITE_OK ||
        (code = sqlite3_exec(m->db, schema, NULL, NULL, NULL)) != SQLITE_OK ||
        (code = each_table(m, STEP_COPY)) != SQLITE_OK ||
        (code = each_table(m, STEP_DROP)) != SQLITE_OK) {
        return code;
    }
    return ho_store_number(m->db, "SELECT count(*) FROM pragma_foreign_key_check", -1) == 0
               ? SQLITE_OK
               : SQLITE_CONSTRAINT_FOREIGNKEY;
}

ho_status ho_store_migrate(sqlite3 *db, const char *path, int target, bool *migrated, ho_err *err)
{
    migration m = {.db = db};
    ho_status rc = HO_OK;

    *migrated = false;
    m.version = (int)ho_store_number(db, "PRAGMA user_version", 0);
    if (m.version > target) {
        return ho_err_set(
            err, HO_ESTORE,
            "%s: written by a newer hyperopt (file version %d, this program knows %d); "
            "use that program",
            path, m.version, target);
    }
    if (m.version == target) {
        return HO_OK;
    }
    if (m.version < 1) {
        return ho_err_set(err, HO_ESTORE, "%s: file version %d is none that this program knows",
                          path, m.version);
    }
    if ((rc = backup(db, path, m.version, err)) != HO_OK) {
        return rc;
    }
    if (sqlite3_open(":memory:", &m.fresh) != SQLITE_OK ||
        sqlite3_exec(m.fresh, ho_sql_schema, NULL, NULL, NULL) != SQLITE_OK) {
        rc = ho_err_set(err, HO_ESTORE, "%s: cannot migrate: %s", path, sqlite3_errmsg(m.fresh));
        goto out;
    }
    /* legacy: a renamed table takes no reference to it along */
    if (sqlite3_exec(db,
                     "PRAGMA foreign_keys = OFF; PRAGMA legacy_alter_table = ON; BEGIN IMMEDIATE",
                     NULL, NULL, NULL) != SQLITE_OK ||
        rebuild(&m, ho_sql_schema) != SQLITE_OK ||
        sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK) {
        rc = ho_err_set(err, HO_ESTORE,
                        "%s: migration from version %d to %d failed, nothing was changed: %s", path,
                        m.version, target, sqlite3_errmsg(db));
        (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    } else {
        *migrated = true;
        ho_log(HO_LOG_INFO, "store", "migrated from=%d to=%d path=%s", m.version, target, path);
    }
    (void)sqlite3_exec(db, "PRAGMA legacy_alter_table = OFF; PRAGMA foreign_keys = ON", NULL, NULL,
                       NULL);
out:
    (void)sqlite3_close(m.fresh);
    return rc;
}
