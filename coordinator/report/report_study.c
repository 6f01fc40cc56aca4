/* SPDX-License-Identifier: Apache-2.0
 * The parts of the report that are about the study as a whole. See report.h. */
#include "coordinator/report/report.h"

#include <stdio.h>

static void put_members(sqlite3_stmt *stmt, void *user)
{
    ho_json_out *out = user;

    for (int i = 0; i < sqlite3_column_count(stmt); i++) {
        ho_report_column(out, stmt, i, sqlite3_column_name(stmt, i));
    }
}

/* The one row of a query as an object under key; without a row, null. */
static ho_status put_object(sqlite3 *db, ho_json_out *out, const char *key, const char *sql,
                            ho_err *err)
{
    ho_json_begin(out, key, '{');
    ho_status rc = ho_report_query(db, sql, put_members, out, err);
    ho_json_end(out, '}');
    return rc;
}

static void put_fold(sqlite3_stmt *stmt, void *user)
{
    static const char *const window[] = {"train", "validation", "test"};
    ho_json_out *out = user;

    ho_json_begin(out, NULL, '{');
    ho_report_column(out, stmt, 0, "id");
    for (int w = 0; w < 3; w++) {
        int64_t begin = sqlite3_column_int64(stmt, 1 + 2 * w);
        int64_t end = sqlite3_column_int64(stmt, 2 + 2 * w);
        if (sqlite3_column_type(stmt, 1 + 2 * w) == SQLITE_NULL || begin == end) {
            ho_json_text(out, window[w], NULL);
            continue;
        }
        ho_json_begin(out, window[w], '[');
        ho_json_integer(out, NULL, begin);
        ho_json_integer(out, NULL, end);
        ho_json_end(out, ']');
    }
    ho_report_column(out, stmt, 7, "begin_ns");
    ho_report_column(out, stmt, 8, "end_ns");
    ho_json_end(out, '}');
}

static void put_total(sqlite3_stmt *stmt, void *user)
{
    ho_report_column(user, stmt, 0, sqlite3_column_name(stmt, 0));
}

ho_status ho_report_study(sqlite3 *db, ho_json_out *out, ho_err *err)
{
    ho_status rc;

    if ((rc = put_object(db, out, "study",
                         "SELECT name, state, reason, seed, trials, uuid, program, data_path, "
                         "data_sha256, bars, first_bar_ns, last_bar_ns, sessions_per_year, "
                         "initial_capital, toml FROM study",
                         err)) != HO_OK ||
        (rc = ho_report_rows(db, out, "objective",
                             "SELECT metric, direction, aggregate FROM objective ORDER BY id",
                             err)) != HO_OK ||
        (rc = put_object(db, out, "progress",
                         "SELECT complete, pruned, failed, running, waiting FROM study_progress",
                         err)) != HO_OK ||
        (rc = ho_report_rows(db, out, "baselines",
                             "SELECT b.policy, b.sharpe, b.total_return, b.max_drawdown, b.trades, "
                             "CASE o.metric WHEN 'sharpe' THEN b.sharpe WHEN 'total_return' THEN "
                             "b.total_return WHEN 'total_pnl' THEN b.total_pnl WHEN 'max_drawdown' "
                             "THEN b.max_drawdown END AS value "
                             "FROM baseline_total b JOIN objective o ON o.id = 0 ORDER BY b.policy",
                             err)) != HO_OK) {
        return rc;
    }
    ho_json_begin(out, "folds", '[');
    rc = ho_report_query(db,
                         "SELECT id, train_begin, train_end, validation_begin, validation_end, "
                         "test_begin, test_end, test_begin_ns, test_end_ns FROM fold WHERE id >= 0 "
                         "ORDER BY id",
                         put_fold, out, err);
    ho_json_end(out, ']');
    if (rc != HO_OK) {
        return rc;
    }
    ho_json_text(out, "conventions",
                 "Sharpe: session returns, ddof 1, annualised by the sessions of a year, risk-free "
                 "rate 0. Drawdown: per bar, the initial capital counts as a peak.");
    if ((rc = ho_report_query(db, "SELECT count(*) AS looks FROM holdout_look", put_total, out,
                              err)) != HO_OK) {
        return rc;
    }
    return ho_report_query(db, "SELECT coalesce(max(seeds), 1) AS seeds FROM trial", put_total, out,
                           err);
}
