/* SPDX-License-Identifier: Apache-2.0
 * The search space, a sample of configurations, importance, and the best configuration.
 * See report.h. */
#include "coordinator/report/report.h"

#include <stdio.h>

enum { SQL_MAX = 2048, PARAMS_MAX = 256 };

typedef struct param_list {
    ho_json_out *out;
    int count;
    int64_t id[PARAMS_MAX];
} param_list;

static void put_param(sqlite3_stmt *stmt, void *user)
{
    param_list *list = user;

    if (list->count == PARAMS_MAX) {
        return; /* a page cannot show more axes */
    }
    list->id[list->count] = sqlite3_column_int64(stmt, 0);
    ho_json_begin(list->out, NULL, '{');
    ho_json_integer(list->out, "index", list->count++);
    for (int i = 1; i <= 5; i++) {
        ho_report_column(list->out, stmt, i, sqlite3_column_name(stmt, i));
    }
    ho_json_raw(list->out, "choices", (const char *)sqlite3_column_text(stmt, 6));
    ho_json_end(list->out, '}');
}

typedef struct sample_rows {
    ho_json_out *out;
    const param_list *params;
    sqlite3_stmt *values; /* ?1: the trial */
} sample_rows;

static void put_sample(sqlite3_stmt *stmt, void *user)
{
    sample_rows *s = user;
    double value[PARAMS_MAX];
    bool active[PARAMS_MAX] = {false};

    (void)sqlite3_reset(s->values);
    (void)sqlite3_bind_int64(s->values, 1, sqlite3_column_int64(stmt, 0));
    while (sqlite3_step(s->values) == SQLITE_ROW) {
        int64_t id = sqlite3_column_int64(s->values, 0);
        for (int i = 0; i < s->params->count; i++) {
            if (s->params->id[i] == id) {
                value[i] = sqlite3_column_double(s->values, 1);
                active[i] = true;
            }
        }
    }
    ho_json_begin(s->out, NULL, '[');
    for (int i = 0; i < s->params->count; i++) {
        if (active[i]) {
            ho_json_number(s->out, NULL, value[i]);
        } else {
            ho_json_text(s->out, NULL, NULL);
        }
    }
    ho_json_end(s->out, ']');
}

static void put_first(sqlite3_stmt *stmt, void *user)
{
    ho_report_column(user, stmt, 0, NULL);
}

/* The sampled trials: the best half of HO_REPORT_SAMPLE, the rest spread by a multiplicative hash
 * of the number, so that the choice repeats. Ordered by number. */
static int sample_sql(char *sql, const char *columns)
{
    return snprintf(
        sql, SQL_MAX,
        "WITH v AS (SELECT t.number AS number, v.value AS value, row_number() OVER (ORDER BY "
        "v.value * o.direction DESC, t.number) AS rank FROM objective o CROSS JOIN trial t "
        "CROSS JOIN trial_value v ON v.trial = t.number AND v.objective = o.id WHERE o.id = 0 AND "
        "v.value IS NOT NULL AND t.state = 'COMPLETE'), s AS (SELECT number, value FROM (SELECT * "
        "FROM v WHERE rank <= %d "
        "UNION ALL SELECT * FROM (SELECT * FROM v WHERE rank > %d ORDER BY (number * 2654435761) "
        "%% "
        "4294967296 LIMIT %d)) ORDER BY number) SELECT %s FROM s",
        HO_REPORT_SAMPLE / 2, HO_REPORT_SAMPLE / 2, HO_REPORT_SAMPLE / 2, columns);
}

static ho_status put_sample_array(sqlite3 *db, ho_json_out *out, const char *key,
                                  const char *column, ho_err *err)
{
    char sql[SQL_MAX];

    (void)sample_sql(sql, column);
    ho_json_begin(out, key, '[');
    ho_status rc = ho_report_query(db, sql, put_first, out, err);
    ho_json_end(out, ']');
    return rc;
}

ho_status ho_report_params(sqlite3 *db, ho_json_out *out, ho_err *err)
{
    param_list params = {.out = out};
    sample_rows rows = {.out = out, .params = &params};
    char sql[SQL_MAX];
    ho_status rc;

    ho_json_begin(out, "params", '[');
    rc = ho_report_query(db,
                         "SELECT id, name, kind, log, low, high, choices FROM param_space WHERE "
                         "active = 1 ORDER BY position",
                         put_param, &params, err);
    ho_json_end(out, ']');
    if (rc != HO_OK) {
        return rc;
    }
    ho_json_begin(out, "sample", '{');
    if ((rc = put_sample_array(db, out, "trial", "number", err)) != HO_OK ||
        (rc = put_sample_array(db, out, "value", "value", err)) != HO_OK) {
        return rc;
    }
    if (sqlite3_prepare_v2(db, "SELECT param, value FROM param WHERE trial = ?1", -1, &rows.values,
                           NULL) != SQLITE_OK) {
        return ho_err_set(err, HO_ESTORE, "report: %s", sqlite3_errmsg(db));
    }
    (void)sample_sql(sql, "number");
    ho_json_begin(out, "row", '[');
    rc = ho_report_query(db, sql, put_sample, &rows, err);
    ho_json_end(out, ']');
    ho_json_end(out, '}');
    (void)sqlite3_finalize(rows.values);
    if (rc != HO_OK) {
        return rc;
    }
    if ((rc = ho_report_rows(db, out, "importance",
                             "SELECT s.name AS param, i.method, i.value FROM importance i JOIN "
                             "param_space s ON s.id = i.param WHERE i.objective = 0 AND i.value IS "
                             "NOT NULL",
                             err)) != HO_OK) {
        return rc;
    }
    return ho_report_rows(
        db, out, "best_params",
        "SELECT s.name, CASE s.kind WHEN 'choice' THEN CASE json_type(s.choices, '$[' || "
        "CAST(p.value AS INTEGER) || ']') WHEN 'text' THEN json_quote(json_extract(s.choices, '$[' "
        "|| CAST(p.value AS INTEGER) || ']')) WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' "
        "ELSE "
        "CAST(json_extract(s.choices, '$[' || CAST(p.value AS INTEGER) || ']') AS TEXT) END WHEN "
        "'int' THEN CAST(CAST(p.value AS INTEGER) AS TEXT) ELSE CAST(p.value AS TEXT) END AS text "
        "FROM param p JOIN param_space s ON s.id = p.param WHERE p.trial = (SELECT trial FROM "
        "best_trial) ORDER BY s.position",
        err);
}
