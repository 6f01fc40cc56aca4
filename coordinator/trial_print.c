/* SPDX-License-Identifier: Apache-2.0
 * See trial_print.h. */
#include "coordinator/trial_print.h"

#include <string.h>

#include "coordinator/output.h"
#include "study/text.h"

static ho_status prepare(ho_store *store, const char *sql, int64_t number, sqlite3_stmt **out,
                         ho_err *err)
{
    if (sqlite3_prepare_v2(ho_store_db(store), sql, -1, out, NULL) != SQLITE_OK ||
        (sqlite3_bind_parameter_count(*out) > 0 &&
         sqlite3_bind_int64(*out, 1, number) != SQLITE_OK)) {
        return ho_err_set(err, HO_ESTORE, "%s: %s", ho_store_path(store),
                          sqlite3_errmsg(ho_store_db(store)));
    }
    return HO_OK;
}

static ho_status print_rows(FILE *out, ho_store *store, const char *sql, int64_t number,
                            const char *title, ho_err *err)
{
    sqlite3_stmt *statement = NULL;
    ho_status rc = prepare(store, sql, number, &statement, err);
    if (rc == HO_OK) {
        bool any = sqlite3_step(statement) == SQLITE_ROW;
        (void)sqlite3_reset(statement);
        if (any) {
            (void)fprintf(out, "\n%s\n", title);
            rc = ho_output_rows(out, statement, HO_OUTPUT_TABLE, err);
        }
    }
    (void)sqlite3_finalize(statement);
    return rc;
}

ho_status ho_trial_best(ho_store *store, int64_t *number, ho_err *err)
{
    sqlite3_stmt *statement = NULL;
    ho_status rc = prepare(store, "SELECT trial FROM best_trial", 0, &statement, err);
    if (rc == HO_OK && sqlite3_step(statement) == SQLITE_ROW) {
        *number = sqlite3_column_int64(statement, 0);
    } else if (rc == HO_OK) {
        rc = ho_err_set(err, HO_ENOTFOUND, "%s: no trial is complete yet", ho_store_path(store));
    }
    (void)sqlite3_finalize(statement);
    return rc;
}

ho_status ho_trial_print_head(FILE *out, ho_store *store, int64_t number, ho_err *err)
{
    sqlite3_stmt *statement = NULL;
    ho_status rc = prepare(
        store,
        "SELECT t.state, t.attempt, t.source, t.epochs, t.train_s, t.fail_class, t.fail_reason, "
        "(SELECT name FROM worker w WHERE w.id = t.worker), "
        "datetime(t.finished_ns / 1000000000, 'unixepoch'), t.violation, "
        "(SELECT rank FROM leaderboard l WHERE l.trial = t.number), t.seeds "
        "FROM trial t WHERE t.number = ?",
        number, &statement, err);
    if (rc != HO_OK) {
        goto out;
    }
    if (sqlite3_step(statement) != SQLITE_ROW) {
        rc = ho_err_set(err, HO_ENOTFOUND, "%s: there is no trial %lld", ho_store_path(store),
                        (long long)number);
        goto out;
    }
    (void)fprintf(out, "trial %lld: %s", (long long)number, sqlite3_column_text(statement, 0));
    if (sqlite3_column_type(statement, 10) != SQLITE_NULL) {
        (void)fprintf(out, ", rank %d", sqlite3_column_int(statement, 10));
    }
    (void)fprintf(out, ", attempt %d, from %s", sqlite3_column_int(statement, 1),
                  sqlite3_column_text(statement, 2));
    if (sqlite3_column_type(statement, 7) != SQLITE_NULL) {
        (void)fprintf(out, ", worker %s", sqlite3_column_text(statement, 7));
    }
    if (sqlite3_column_type(statement, 4) != SQLITE_NULL) {
        char time[40];
        ho_output_duration(sqlite3_column_double(statement, 4), time, sizeof time);
        (void)fprintf(out, ", %d epochs in %s", sqlite3_column_int(statement, 3), time);
    }
    if (sqlite3_column_type(statement, 8) != SQLITE_NULL) {
        (void)fprintf(out, ", ended %s UTC", sqlite3_column_text(statement, 8));
    }
    (void)fprintf(out, "\n");
    if (sqlite3_column_type(statement, 6) != SQLITE_NULL) {
        const char *class_name = (const char *)sqlite3_column_text(statement, 5);
        (void)fprintf(out, "reason: %s%s%s\n", class_name ? class_name : "", class_name ? ": " : "",
                      sqlite3_column_text(statement, 6));
    }
    if (sqlite3_column_double(statement, 9) > 0.0) {
        (void)fprintf(out, "constraints are violated by %g\n", sqlite3_column_double(statement, 9));
    }
    (void)sqlite3_finalize(statement);
    statement = NULL;
    if ((rc = prepare(store,
                      "SELECT o.metric, v.value, v.reason FROM trial_value v JOIN objective o ON "
                      "o.id = v.objective WHERE v.trial = ? ORDER BY o.id",
                      number, &statement, err)) == HO_OK) {
        while (sqlite3_step(statement) == SQLITE_ROW) {
            if (sqlite3_column_type(statement, 1) == SQLITE_NULL) {
                const char *reason = (const char *)sqlite3_column_text(statement, 2);
                (void)fprintf(out, "%s: undefined%s%s%s\n", sqlite3_column_text(statement, 0),
                              reason ? " (" : "", reason ? reason : "", reason ? ")" : "");
            } else {
                (void)fprintf(out, "%s: %.6g\n", sqlite3_column_text(statement, 0),
                              sqlite3_column_double(statement, 1));
            }
        }
    }
out:
    (void)sqlite3_finalize(statement);
    return rc;
}

/* A TOML string; control characters as \u00XX. */
static void put_toml_string(FILE *out, const char *text)
{
    (void)fputc('"', out);
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p == '"' || *p == '\\') {
            (void)fprintf(out, "\\%c", *p);
        } else if (*p < 0x20 || *p == 0x7f) {
            (void)fprintf(out, "\\u%04X", *p);
        } else {
            (void)fputc(*p, out);
        }
    }
    (void)fputc('"', out);
}

/* kind, value, type and atom of a choice: the value as it stands in a study file. */
static void put_toml_value(FILE *out, sqlite3_stmt *statement)
{
    const char *kind = (const char *)sqlite3_column_text(statement, 1);
    const char *type = (const char *)sqlite3_column_text(statement, 3);
    char number[HO_TEXT_NUMBER];
    if (strcmp(kind, "choice") == 0) {
        if (type && strcmp(type, "text") == 0) {
            put_toml_string(out, (const char *)sqlite3_column_text(statement, 4));
        } else if (type && (strcmp(type, "true") == 0 || strcmp(type, "false") == 0)) {
            (void)fputs(type, out);
        } else if (type && strcmp(type, "real") == 0) {
            (void)ho_text_f64(sqlite3_column_double(statement, 4), number, sizeof number);
            (void)fputs(number, out);
        } else {
            (void)fprintf(out, "%lld", (long long)sqlite3_column_int64(statement, 4));
        }
    } else if (strcmp(kind, "int") == 0) {
        (void)fprintf(out, "%lld", (long long)sqlite3_column_double(statement, 2));
    } else {
        (void)ho_text_f64(sqlite3_column_double(statement, 2), number, sizeof number);
        (void)fputs(number, out);
    }
}

ho_status ho_trial_print_toml(FILE *out, ho_store *store, int64_t number, ho_err *err)
{
    sqlite3_stmt *statement = NULL;
    char table[128] = "";
    ho_status rc =
        prepare(store,
                "SELECT s.name, s.kind, p.value, j.type, j.atom FROM param p JOIN param_space s ON "
                "s.id = p.param LEFT JOIN json_each(s.choices) j ON s.kind = 'choice' AND "
                "j.key = CAST(p.value AS INTEGER) WHERE p.trial = ? ORDER BY "
                "substr(s.name, 1, instr(s.name, '.')), s.name",
                number, &statement, err);
    while (rc == HO_OK && sqlite3_step(statement) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(statement, 0);
        const char *dot = strchr(name, '.');
        size_t length = dot ? (size_t)(dot - name) : 0;
        if (strlen(table) != length || strncmp(table, name, length) != 0) {
            (void)snprintf(table, sizeof table, "%.*s", (int)length, name);
            (void)fprintf(out, "[%s]\n", table);
        }
        (void)fprintf(out, "%s = ", dot ? dot + 1 : name);
        put_toml_value(out, statement);
        (void)fprintf(out, "\n");
    }
    (void)sqlite3_finalize(statement);
    return rc;
}

ho_status ho_trial_print_folds(FILE *out, ho_store *store, int64_t number, ho_err *err)
{
    return print_rows(
        out, store,
        "SELECT CASE fold WHEN -1 THEN 'joined' ELSE CAST(fold AS TEXT) END AS fold, who, sharpe, "
        "total_return AS \"return\", max_drawdown AS drawdown, trades, win_rate, total_pnl FROM ("
        "SELECT fold, 0 AS part, 'this, seed ' || seed AS who, sharpe, total_return, max_drawdown, "
        "trades, "
        "win_rate, total_pnl FROM fold_result WHERE trial = ?1 UNION ALL "
        "SELECT fold, 1, replace(policy, '_', '-'), avg(sharpe), avg(total_return), "
        "min(max_drawdown), avg(trades), "
        "avg(win_rate), avg(total_pnl) FROM baseline WHERE EXISTS (SELECT 1 FROM fold_result WHERE "
        "trial = ?1) "
        "GROUP BY fold, policy) ORDER BY CASE fold WHEN -1 THEN 1000000 ELSE fold END, part, who",
        number, "Out of sample, beside the baselines on the same windows:", err);
}

ho_status ho_trial_print_history(FILE *out, ho_store *store, int64_t number, ho_err *err)
{
    ho_status rc = print_rows(
        out, store,
        "SELECT step AS epoch, value, rung, competitors, threshold, verdict, why FROM report "
        "WHERE trial = ? ORDER BY step",
        number, "Validation reports:", err);
    if (rc == HO_OK) {
        rc = print_rows(out, store,
                        "SELECT round, attempt, folds, against, common, p, threshold, mean_gap, "
                        "verdict FROM race WHERE trial = ? ORDER BY round",
                        number, "Rounds of folds:", err);
    }
    if (rc == HO_OK) {
        rc = print_rows(
            out, store,
            "SELECT kind, fold, seed, size AS bytes, path FROM artifact WHERE trial = ? AND "
            "deleted_ns IS NULL ORDER BY kind, fold, seed",
            number, "Artifacts:", err);
    }
    if (rc == HO_OK) {
        rc = print_rows(
            out, store,
            "SELECT datetime(at_ns / 1000000000, 'unixepoch') AS utc, kind, attempt, worker, text "
            "FROM event WHERE trial = ? ORDER BY id",
            number, "Events:", err);
    }
    return rc;
}

/* What was decided of the trial while it ran, whole lines in the order of time. */
static ho_status print_decisions(FILE *out, ho_store *store, int64_t number, ho_err *err)
{
    sqlite3_stmt *statement = NULL;
    ho_status rc = prepare(
        store,
        "SELECT 'epoch ' || step, why, at_ns, 0 FROM report WHERE trial = ?1 AND why IS NOT NULL "
        "UNION ALL SELECT 'promoted', text, at_ns, 1 FROM event WHERE trial = ?1 AND kind = "
        "'promote' UNION ALL SELECT 'round ' || round, why, at_ns, 2 FROM race WHERE trial = ?1 "
        "ORDER BY 3, 4",
        number, &statement, err);
    while (rc == HO_OK && sqlite3_step(statement) == SQLITE_ROW) {
        (void)fprintf(out, "%s: %s\n", sqlite3_column_text(statement, 0),
                      sqlite3_column_text(statement, 1));
    }
    (void)sqlite3_finalize(statement);
    return rc;
}

ho_status ho_trial_print_why(FILE *out, ho_store *store, int64_t number, ho_err *err)
{
    sqlite3_stmt *statement = NULL;
    ho_status rc = prepare(
        store, "SELECT coalesce(why, 'the sampler did not say') FROM trial WHERE number = ?",
        number, &statement, err);
    if (rc == HO_OK && sqlite3_step(statement) == SQLITE_ROW) {
        (void)fprintf(out, "why: %s\n", sqlite3_column_text(statement, 0));
    }
    (void)sqlite3_finalize(statement);
    return rc == HO_OK ? print_decisions(out, store, number, err) : rc;
}
