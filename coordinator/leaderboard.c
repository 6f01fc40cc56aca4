/* SPDX-License-Identifier: Apache-2.0
 * See leaderboard.h. */
#include "coordinator/leaderboard.h"

#include "coordinator/front.h"
#include "coordinator/overfit_study.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/output.h"

static int64_t count_of(ho_store *store, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    int64_t n = -1;
    if (sqlite3_prepare_v2(ho_store_db(store), sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_type(statement, 0) != SQLITE_NULL) {
        n = sqlite3_column_int64(statement, 0);
    }
    (void)sqlite3_finalize(statement);
    return n;
}

/* A [command] study: its trials are not backtests, and have no folds. */
static bool is_command(ho_store *store)
{
    return count_of(store, "SELECT count(*) FROM fold") == 0;
}

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

/* ---- the table ------------------------------------------------------------------------------ */

/* Of a [command] study: the values alone. */
static ho_status print_commands(FILE *out, ho_store *store, int count, ho_err *err)
{
    char sql[300];
    (void)snprintf(sql, sizeof sql,
                   "SELECT CAST(rank AS TEXT) AS rank, 'trial ' || trial AS who, value, epochs, "
                   "train_s AS seconds FROM leaderboard WHERE rank <= %d",
                   count);
    return ho_output_query(out, ho_store_db(store), sql, HO_OUTPUT_TABLE, NULL, err);
}

static ho_status print_backtests(FILE *out, ho_store *store, int count, ho_err *err)
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
    return ho_output_query(out, ho_store_db(store), sql, HO_OUTPUT_TABLE, NULL, err);
}

ho_status ho_leaderboard_print(FILE *out, ho_store *store, int count, ho_err *err)
{
    ho_status rc = is_command(store) ? print_commands(out, store, count, err)
                                     : print_backtests(out, store, count, err);
    if (rc == HO_OK) {
        rc = ho_front_print(out, store, err);
    }
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

    if (!is_command(store) && ho_overfit_read(store, &row, NULL) == HO_OK) {
        ho_overfit_sentence(&row, text, sizeof text);
        (void)fprintf(out, "luck: %s\n", text);
    }
}

/* "name value", or nothing when the value is not known. */
static void print_known(FILE *out, const char *name, int decimals, double value)
{
    if (!isnan(value)) {
        (void)fprintf(out, "  %-36s %.*f\n", name, decimals, value);
    }
}

void ho_overfit_print(FILE *out, ho_store *store)
{
    ho_overfit_row row;
    char text[700];

    if (is_command(store) || ho_overfit_read(store, &row, NULL) != HO_OK) {
        return;
    }
    ho_overfit_sentence(&row, text, sizeof text);
    (void)fprintf(out, "\nHow much may be luck (trial %lld, %lld tries):\n", (long long)row.trial,
                  (long long)row.configurations);
    print_known(out, "Sharpe ratio a session", 4, row.sharpe);
    print_known(out, "expected best without skill", 4, row.sharpe_zero);
    print_known(out, "PSR, probability that it is above 0", 4, row.psr);
    print_known(out, "DSR, above the best without skill", 4, row.dsr);
    print_known(out, "minimum track record, sessions", 0, row.min_track_sessions);
    print_known(out, "PBO, best lands in the worse half", 4, row.pbo);
    print_known(out, "p of the null test", 4, row.null_p);
    (void)fprintf(out, "%s\n", text);
    if (row.notes[0] && !isnan(row.dsr)) {
        (void)fprintf(out, "Notes: %s.\n", row.notes);
    }
}

/* One line a cause: how many trials it ended, and the first one's reason. */
static void print_failures(FILE *out, ho_store *store)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(ho_store_db(store),
                           "SELECT coalesce(fail_class, 'failed'), count(*), min(number), "
                           "fail_reason FROM trial WHERE state = 'FAILED' GROUP BY fail_class "
                           "ORDER BY count(*) DESC, min(number)",
                           -1, &statement, NULL) == SQLITE_OK) {
        while (sqlite3_step(statement) == SQLITE_ROW) {
            const char *reason = (const char *)sqlite3_column_text(statement, 3);
            (void)fprintf(out, "  %s: %lld; the first, trial %lld%s%s\n",
                          sqlite3_column_text(statement, 0),
                          (long long)sqlite3_column_int64(statement, 1),
                          (long long)sqlite3_column_int64(statement, 2), reason ? ": " : "",
                          reason ? reason : "");
        }
    }
    (void)sqlite3_finalize(statement);
}

ho_status ho_summary_print(FILE *out, ho_store *store, ho_err *err)
{
    sqlite3_stmt *statement = NULL;
    ho_status rc = HO_OK;
    char busy[40], span[40];
    if (sqlite3_prepare_v2(
            ho_store_db(store),
            "SELECT name, state, reason, asked, proposed, complete, pruned, failed, running, "
            "waiting, train_s, (last_finish_ns - first_start_ns) * 1e-9, (SELECT "
            "group_concat(metric, ', ') FROM objective), (SELECT aggregate FROM objective WHERE id "
            "= 0) "
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
    (void)fprintf(out, "\n");
    print_failures(out, store);
    const char *objectives = (const char *)sqlite3_column_text(statement, 12);
    (void)fprintf(out, "objective%s: %s", strchr(objectives, ',') ? "s" : "", objectives);
    if (!is_command(store)) {
        (void)fprintf(out, " (%s over folds, mean over seeds)", sqlite3_column_text(statement, 13));
    }
    if (!isnan(column_real(statement, 11))) {
        (void)fprintf(out, "; %s from first start to last end, %s of training", span, busy);
    }
    (void)fprintf(out, "\n");
    print_overfitting(out, store);
out:
    (void)sqlite3_finalize(statement);
    return rc;
}

/* "+3.2 %", or "an undefined return". */
static void return_text(sqlite3_stmt *statement, int column, char out[40])
{
    double value = column_real(statement, column);
    if (isnan(value)) {
        (void)snprintf(out, 40, "an undefined return");
    } else {
        (void)snprintf(out, 40, "%+.2f %%", 100.0 * value);
    }
}

ho_status ho_verdict_print(FILE *out, ho_store *store, ho_err *err)
{
    sqlite3_stmt *statement = NULL;
    char made[40];
    bool any = false, feasible = true;
    ho_status rc = HO_OK;

    if (is_command(store)) {
        return HO_OK;
    }
    if (sqlite3_prepare_v2(
            ho_store_db(store),
            "SELECT l.trial, l.total_return, l.sharpe, l.feasible, replace(b.policy, '_', '-'), "
            "b.total_return, b.sharpe FROM leaderboard l LEFT JOIN baseline_total b ON b.policy IN "
            "('buy_and_hold', 'random') WHERE l.rank = 1 ORDER BY b.policy",
            -1, &statement, NULL) != SQLITE_OK) {
        rc = ho_err_set(err, HO_ESTORE, "%s: %s", ho_store_path(store),
                        sqlite3_errmsg(ho_store_db(store)));
    }
    while (rc == HO_OK && sqlite3_step(statement) == SQLITE_ROW) {
        double sharpe = column_real(statement, 2), base = column_real(statement, 6);
        if (!any) {
            feasible = sqlite3_column_int(statement, 3) != 0;
            return_text(statement, 1, made);
            (void)fprintf(out, "Out of sample and after costs, trial %lld made %s (Sharpe %.2f)",
                          (long long)sqlite3_column_int64(statement, 0), made, sharpe);
        }
        if (sqlite3_column_type(statement, 4) != SQLITE_NULL) {
            return_text(statement, 5, made);
            (void)fprintf(out, "%s %s %s", any ? "," : ";", sqlite3_column_text(statement, 4),
                          made);
            if (!isnan(base) && !isnan(sharpe)) {
                (void)fprintf(out, " (%.2f, %s)", base, sharpe > base ? "beaten" : "not beaten");
            }
        }
        any = true;
    }
    if (any) {
        (void)fprintf(out, ".%s\n", feasible ? "" : " No trial satisfies every constraint.");
    }
    (void)sqlite3_finalize(statement);
    return rc;
}

void ho_next_commands_print(FILE *out, ho_store *store, const char *study)
{
    const char *database = ho_store_path(store);
    int64_t best = count_of(store, "SELECT trial FROM best_trial");
    (void)fprintf(out, "\nNext:\n");
    if (best >= 0) {
        (void)fprintf(out, "  hyperopt best %s               # its parameters, ready to paste\n",
                      database);
        (void)fprintf(out, "  hyperopt report %s             # everything as one page\n", database);
        (void)fprintf(out, "  hyperopt sql %s %-15s # your own questions\n", database,
                      is_command(store) ? "@parameters" : "@best-by-fold");
    }
    if (count_of(store, "SELECT count(*) FROM trial WHERE state = 'FAILED'") > 0) {
        (void)fprintf(out, "  hyperopt sql %s @failures       # why trials failed\n", database);
    }
    if (study && best >= 0 && !is_command(store)) {
        (void)fprintf(out,
                      "  hyperopt null-test %s --compare %s  # the same where there is no edge\n",
                      study, database);
    }
    if (study) {
        (void)fprintf(out, "  hyperopt run %s --trials 20     # 20 trials more\n", study);
    }
    if (best >= 0 && count_of(store, "SELECT count(*) FROM fold WHERE id = -1") > 0 &&
        count_of(store, "SELECT count(*) FROM holdout_look") == 0) {
        (void)fprintf(out,
                      "  hyperopt holdout %s %lld        # at the very end: the one honest look\n",
                      database, (long long)best);
    }
}
