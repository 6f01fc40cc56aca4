/* SPDX-License-Identifier: Apache-2.0
 * The trials over time, the best of them, and their Sharpe ratios. See report.h. */
#include "coordinator/report/report.h"

#include <stdio.h>

enum { SQL_MAX = 1024 };

static void put_value(sqlite3_stmt *stmt, void *user)
{
    ho_report_column(user, stmt, 0, NULL);
}

static void put_pair(sqlite3_stmt *stmt, void *user)
{
    ho_json_out *out = user;

    ho_json_begin(out, NULL, '[');
    ho_report_column(out, stmt, 0, NULL);
    ho_report_column(out, stmt, 1, NULL);
    ho_json_end(out, ']');
}

static void put_members_of_row(sqlite3_stmt *stmt, void *user)
{
    for (int i = 0; i < sqlite3_column_count(stmt); i++) {
        ho_report_column(user, stmt, i, sqlite3_column_name(stmt, i));
    }
}

/* One column of the drawn trials as an array. Drawn: every k-th ended trial, so that at most
 * HO_REPORT_POINTS are. */
static ho_status put_column(sqlite3 *db, ho_json_out *out, const char *key, const char *expression,
                            ho_err *err)
{
    char sql[SQL_MAX];

    snprintf(sql, sizeof sql,
             "SELECT %s FROM trial t LEFT JOIN trial_value v ON v.trial = t.number AND v.objective "
             "= 0 WHERE t.state IN ('COMPLETE', 'PRUNED', 'FAILED') AND t.number %% max(1, (SELECT "
             "(count(*) + %d) / %d FROM trial)) = 0 ORDER BY t.number",
             expression, HO_REPORT_POINTS - 1, HO_REPORT_POINTS);
    ho_json_begin(out, key, '[');
    ho_status rc = ho_report_query(db, sql, put_value, out, err);
    ho_json_end(out, ']');
    return rc;
}

static void put_named(sqlite3_stmt *stmt, void *user)
{
    ho_report_column(user, stmt, 0, sqlite3_column_name(stmt, 0));
}

static ho_status put_array(sqlite3 *db, ho_json_out *out, const char *key, const char *sql,
                           void (*row)(sqlite3_stmt *stmt, void *user), ho_err *err)
{
    ho_json_begin(out, key, '[');
    ho_status rc = ho_report_query(db, sql, row, out, err);
    ho_json_end(out, ']');
    return rc;
}

/* The steps of the best value so far over feasible, complete trials in order of their number. */
static const char best_sql[] =
    "WITH v AS (SELECT t.number AS n, v.value AS value, o.direction AS d, max(v.value * "
    "o.direction)"
    " OVER (ORDER BY t.number ROWS UNBOUNDED PRECEDING) AS best FROM objective o CROSS JOIN trial "
    "t "
    "CROSS JOIN trial_value v ON v.trial = t.number AND v.objective = o.id WHERE o.id = 0 AND "
    "t.state = 'COMPLETE' AND v.value IS NOT NULL AND coalesce(t.violation, 0) <= 0)"
    " SELECT min(n), best * d FROM v GROUP BY best ORDER BY 1";

ho_status ho_report_trials(sqlite3 *db, ho_json_out *out, ho_err *err)
{
    char sql[SQL_MAX];
    ho_status rc;

    ho_json_begin(out, "trials", '{');
    if ((rc = ho_report_query(db, "SELECT count(*) AS total FROM trial", put_named, out, err)) !=
            HO_OK ||
        (rc = put_column(db, out, "number", "t.number", err)) != HO_OK ||
        (rc = put_column(db, out, "state", "t.state", err)) != HO_OK ||
        (rc = put_column(db, out, "value", "v.value", err)) != HO_OK ||
        (rc = put_array(db, out, "best", best_sql, put_pair, err)) != HO_OK) {
        return rc;
    }
    ho_json_end(out, '}');
    snprintf(sql, sizeof sql,
             "SELECT rank, trial, value, feasible, sharpe, total_return, max_drawdown, trades FROM "
             "leaderboard WHERE rank <= %d ORDER BY rank",
             HO_REPORT_LEADERS);
    if ((rc = ho_report_rows(db, out, "leaderboard", sql, err)) != HO_OK) {
        return rc;
    }
    if ((rc = put_array(db, out, "sharpes",
                        "SELECT avg(f.sharpe) / sqrt((SELECT sessions_per_year FROM study)) FROM "
                        "fold_result f WHERE f.fold = -1 AND f.sharpe IS NOT NULL GROUP BY f.trial",
                        put_value, err)) != HO_OK) {
        return rc;
    }
    ho_json_begin(out, "overfit", '{');
    rc = ho_report_query(db, "SELECT * FROM overfitting", put_members_of_row, out, err);
    ho_json_end(out, '}');
    return rc;
}
