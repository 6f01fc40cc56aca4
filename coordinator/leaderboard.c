/* SPDX-License-Identifier: Apache-2.0
 * See leaderboard.h. */
#include "coordinator/leaderboard.h"

#include "coordinator/overfit_study.h"

#include <math.h>
#include <stdio.h>

#include "coordinator/output.h"

static ho_status print_retest(FILE *out, ho_store *store, ho_err *err)
{
    sqlite3_stmt *statement = NULL;
    ho_status rc = HO_OK;
    bool any = sqlite3_prepare_v2(ho_store_db(store), "SELECT 1 FROM retest", -1, &statement,
                                  NULL) == SQLITE_OK &&
               sqlite3_step(statement) == SQLITE_ROW;
    (void)sqlite3_finalize(statement);
    if (any) {
        rc = ho_output_query(out, ho_store_db(store), "SELECT * FROM retest", HO_OUTPUT_TABLE,
                             "\nThe best again, with fresh seeds:", err);
    }
    return rc;
}

ho_status ho_leaderboard_print(FILE *out, ho_store *store, int count, ho_err *err)
{
    char sql[1200];
    (void)snprintf(
        sql, sizeof sql,
        "SELECT rank, who, value, sharpe, total_return AS \"return\", max_drawdown AS drawdown, "
        "trades, CASE feasible WHEN 0 THEN 'violates a constraint' ELSE '' END AS note FROM ("
        "SELECT 0 AS part, CAST(rank AS TEXT) AS rank, 'trial ' || trial AS who, value, sharpe, "
        "total_return, max_drawdown, trades, feasible, rank AS place FROM leaderboard WHERE rank "
        "<= %d "
        "UNION ALL "
        "SELECT 1, '', replace(policy, '_', '-'), NULL, sharpe, total_return, max_drawdown, "
        "trades, NULL, CASE policy WHEN 'buy_and_hold' THEN 1 WHEN 'flat' THEN 2 WHEN 'random' "
        "THEN 3 "
        "ELSE 4 END FROM baseline_total) ORDER BY part, place",
        count);
    ho_status rc = ho_output_query(out, ho_store_db(store), sql, HO_OUTPUT_TABLE, NULL, err);
    return rc == HO_OK ? print_retest(out, store, err) : rc;
}

static double column_real(sqlite3_stmt *statement, int column)
{
    return sqlite3_column_type(statement, column) == SQLITE_NULL
               ? NAN
               : sqlite3_column_double(statement, column);
}

static void print_overfitting(FILE *out, ho_store *store)
{
    ho_overfit_row row;
    char text[700];

    if (ho_overfit_read(store, &row, NULL) == HO_OK) {
        ho_overfit_sentence(&row, text, sizeof text);
        (void)fprintf(out, "luck: %s\n", text);
    }
}

ho_status ho_summary_print(FILE *out, ho_store *store, ho_err *err)
{
    sqlite3_stmt *statement = NULL;
    ho_status rc = HO_OK;
    char busy[40], span[40];
    if (sqlite3_prepare_v2(
            ho_store_db(store),
            "SELECT name, state, reason, asked, proposed, complete, pruned, failed, running, "
            "waiting, train_s, (last_finish_ns - first_start_ns) * 1e-9, (SELECT metric FROM "
            "objective WHERE id = 0), (SELECT aggregate FROM objective WHERE id = 0) "
            "FROM study_progress",
            -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW) {
        rc = ho_err_set(err, HO_ESTORE, "%s: %s", ho_store_path(store),
                        sqlite3_errmsg(ho_store_db(store)));
        goto out;
    }
    const char *reason = (const char *)sqlite3_column_text(statement, 2);
    ho_output_duration(column_real(statement, 10), busy, sizeof busy);
    ho_output_duration(column_real(statement, 11), span, sizeof span);
    (void)fprintf(out, "study %s: %s%s%s%s\n", sqlite3_column_text(statement, 0),
                  sqlite3_column_text(statement, 1), reason ? " (" : "", reason ? reason : "",
                  reason ? ")" : "");
    (void)fprintf(out, "trials: %lld of %lld asked for; %lld complete, %lld pruned, %lld failed",
                  (long long)sqlite3_column_int64(statement, 4),
                  (long long)sqlite3_column_int64(statement, 3),
                  (long long)sqlite3_column_int64(statement, 5),
                  (long long)sqlite3_column_int64(statement, 6),
                  (long long)sqlite3_column_int64(statement, 7));
    if (sqlite3_column_int64(statement, 8) + sqlite3_column_int64(statement, 9) > 0) {
        (void)fprintf(out, ", %lld running, %lld waiting",
                      (long long)sqlite3_column_int64(statement, 8),
                      (long long)sqlite3_column_int64(statement, 9));
    }
    (void)fprintf(out, "\nobjective: %s (%s over folds, mean over seeds)",
                  sqlite3_column_text(statement, 12), sqlite3_column_text(statement, 13));
    if (!isnan(column_real(statement, 11))) {
        (void)fprintf(out, "; %s from first start to last end, %s of training", span, busy);
    }
    (void)fprintf(out, "\n");
    print_overfitting(out, store);
out:
    (void)sqlite3_finalize(statement);
    return rc;
}

void ho_next_commands_print(FILE *out, const char *study, const char *database, bool any_complete)
{
    (void)fprintf(out, "\nNext:\n");
    if (any_complete) {
        (void)fprintf(out, "  hyperopt best %s               # its parameters, ready to paste\n",
                      database);
        (void)fprintf(out, "  hyperopt sql %s @best-by-fold   # your own questions\n", database);
    } else {
        (void)fprintf(out, "  hyperopt sql %s @failures       # why trials failed\n", database);
    }
    if (study) {
        (void)fprintf(out, "  hyperopt run %s --trials 20     # 20 trials more\n", study);
    }
}
