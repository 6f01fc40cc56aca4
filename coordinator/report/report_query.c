/* SPDX-License-Identifier: Apache-2.0
 * SQL rows as JSON. See report.h. */
#include "coordinator/report/report.h"

ho_status ho_report_query(sqlite3 *db, const char *sql, void (*row)(sqlite3_stmt *stmt, void *user),
                          void *user, ho_err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);

    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(stmt);
        if (rc == SQLITE_ROW) {
            row(stmt, user);
        }
    }
    if (rc != SQLITE_DONE) {
        ho_err_set(err, HO_ESTORE, "report: %s, in: %.200s", sqlite3_errmsg(db), sql);
    }
    (void)sqlite3_finalize(stmt);
    return rc == SQLITE_DONE ? HO_OK : HO_ESTORE;
}

void ho_report_column(ho_json_out *out, sqlite3_stmt *stmt, int i, const char *key)
{
    switch (sqlite3_column_type(stmt, i)) {
    case SQLITE_INTEGER:
        ho_json_integer(out, key, sqlite3_column_int64(stmt, i));
        break;
    case SQLITE_FLOAT:
        ho_json_number(out, key, sqlite3_column_double(stmt, i));
        break;
    case SQLITE_TEXT:
        ho_json_text(out, key, (const char *)sqlite3_column_text(stmt, i));
        break;
    default:
        ho_json_text(out, key, NULL);
        break;
    }
}

static void put_row(sqlite3_stmt *stmt, void *user)
{
    ho_json_out *out = user;

    ho_json_begin(out, NULL, '{');
    for (int i = 0; i < sqlite3_column_count(stmt); i++) {
        ho_report_column(out, stmt, i, sqlite3_column_name(stmt, i));
    }
    ho_json_end(out, '}');
}

ho_status ho_report_rows(sqlite3 *db, ho_json_out *out, const char *key, const char *sql,
                         ho_err *err)
{
    ho_json_begin(out, key, '[');
    ho_status rc = ho_report_query(db, sql, put_row, out, err);
    ho_json_end(out, ']');
    return rc;
}
