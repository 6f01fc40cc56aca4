/* SPDX-License-Identifier: Apache-2.0
 * Learning curves, equity by fold beside the baselines, and the worker timeline. See report.h. */
#include "coordinator/report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SQL_MAX = 1024, FOLDS_MAX = 256 };

/* ---- learning curves ------------------------------------------------------------------------ */

typedef struct curve_rows {
    ho_json_out *out;
    sqlite3 *db;
    ho_err *err;
    ho_status rc;
} curve_rows;

static void put_value(sqlite3_stmt *stmt, void *user)
{
    ho_report_column(user, stmt, 0, NULL);
}

/* One column of a trial's reports in order of their step. */
static ho_status put_reports(sqlite3 *db, ho_json_out *out, const char *column, int64_t trial,
                             ho_err *err)
{
    char sql[SQL_MAX];

    snprintf(sql, sizeof sql, "SELECT %s FROM report WHERE trial = %lld ORDER BY step", column,
             (long long)trial);
    ho_json_begin(out, column, '[');
    ho_status rc = ho_report_query(db, sql, put_value, out, err);
    ho_json_end(out, ']');
    return rc;
}

static void put_curve(sqlite3_stmt *stmt, void *user)
{
    curve_rows *c = user;
    int64_t trial = sqlite3_column_int64(stmt, 0);

    if (c->rc != HO_OK) {
        return;
    }
    ho_json_begin(c->out, NULL, '{');
    ho_json_integer(c->out, "trial", trial);
    c->rc = put_reports(c->db, c->out, "step", trial, c->err);
    if (c->rc == HO_OK) {
        c->rc = put_reports(c->db, c->out, "value", trial, c->err);
    }
    ho_json_end(c->out, '}');
}

static ho_status put_curves(sqlite3 *db, ho_json_out *out, ho_err *err)
{
    curve_rows rows = {out, db, err, HO_OK};
    char sql[SQL_MAX];

    snprintf(sql, sizeof sql,
             "SELECT trial FROM leaderboard l WHERE rank <= %d AND EXISTS (SELECT 1 FROM report r "
             "WHERE r.trial = l.trial) ORDER BY rank",
             HO_REPORT_CURVES);
    ho_json_begin(out, "curves", '[');
    ho_status rc = ho_report_query(db, sql, put_curve, &rows, err);
    ho_json_end(out, ']');
    return rc == HO_OK ? rows.rc : rc;
}

/* ---- equity --------------------------------------------------------------------------------- */

/* Session returns of one (fold, policy), one row a seed. */
typedef struct series {
    int rows, sessions;
    double *value; /* [rows, sessions] */
} series;

static void series_free(series *s)
{
    free(s->value);
    memset(s, 0, sizeof *s);
}

static void add_series(sqlite3_stmt *stmt, void *user)
{
    series *s = user;
    int sessions = sqlite3_column_bytes(stmt, 0) / (int)sizeof(double);
    const void *blob = sqlite3_column_blob(stmt, 0);

    if (!blob || sessions == 0 || (s->rows > 0 && sessions != s->sessions)) {
        return; /* a row of another length belongs to another revision of the folds */
    }
    size_t n = (size_t)sessions;
    double *grown = realloc(s->value, ((size_t)s->rows + 1) * n * sizeof *grown);
    if (grown) {
        memcpy(grown + (size_t)s->rows * n, blob, n * sizeof *grown);
        s->value = grown;
        s->sessions = sessions;
        s->rows++;
    }
}

/* Mean over rows, thinned by compounding runs of `thin` sessions into one. */
static void put_mean(ho_json_out *out, const char *key, const series *s, int thin)
{
    if (s->rows == 0) {
        ho_json_text(out, key, NULL);
        return;
    }
    ho_json_begin(out, key, '[');
    for (int i = 0; i < s->sessions; i += thin) {
        double growth = 1;
        for (int k = i; k < i + thin && k < s->sessions; k++) {
            double sum = 0;
            for (int r = 0; r < s->rows; r++) {
                sum += s->value[(size_t)r * (size_t)s->sessions + (size_t)k];
            }
            growth *= 1 + sum / s->rows;
        }
        ho_json_number(out, NULL, growth - 1);
    }
    ho_json_end(out, ']');
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Growth of 1 at the 5 % and 95 % rank over rows, at the same points as the thinned mean. */
static ho_status put_band(ho_json_out *out, const series *s, int thin, ho_err *err)
{
    static const char *const key[] = {"random_low", "random_high"};
    static const double rank[] = {0.05, 0.95};

    if (s->rows < 5) {
        ho_json_text(out, key[0], NULL);
        ho_json_text(out, key[1], NULL);
        return HO_OK;
    }
    double *growth = malloc(2 * (size_t)s->rows * sizeof *growth);
    if (!growth) {
        return ho_err_set(err, HO_ENOMEM, "report: out of memory");
    }
    double *sorted = growth + s->rows;
    for (int side = 0; side < 2; side++) {
        for (int r = 0; r < s->rows; r++) {
            growth[r] = 1;
        }
        ho_json_begin(out, key[side], '[');
        ho_json_number(out, NULL, 1);
        for (int k = 0; k < s->sessions; k++) {
            for (int r = 0; r < s->rows; r++) {
                growth[r] *= 1 + s->value[(size_t)r * (size_t)s->sessions + (size_t)k];
            }
            if ((k + 1) % thin == 0 || k + 1 == s->sessions) {
                memcpy(sorted, growth, (size_t)s->rows * sizeof *sorted);
                qsort(sorted, (size_t)s->rows, sizeof *sorted, by_value);
                ho_json_number(out, NULL, sorted[(int)(rank[side] * (s->rows - 1) + 0.5)]);
            }
        }
        ho_json_end(out, ']');
    }
    free(growth);
    return HO_OK;
}

/* from: "table WHERE ..." without the fold. */
static ho_status read_series(sqlite3 *db, const char *from, int fold, series *out, ho_err *err)
{
    char sql[SQL_MAX];

    memset(out, 0, sizeof *out);
    snprintf(sql, sizeof sql, "SELECT returns FROM %s AND fold = %d ORDER BY seed", from, fold);
    return ho_report_query(db, sql, add_series, out, err);
}

typedef struct fold_list {
    int count;
    int id[FOLDS_MAX];
    int64_t begin_ns[FOLDS_MAX], end_ns[FOLDS_MAX];
} fold_list;

static void add_fold(sqlite3_stmt *stmt, void *user)
{
    fold_list *list = user;

    if (list->count < FOLDS_MAX) {
        list->id[list->count] = sqlite3_column_int(stmt, 0);
        list->begin_ns[list->count] = sqlite3_column_int64(stmt, 1);
        list->end_ns[list->count++] = sqlite3_column_int64(stmt, 2);
    }
}

static ho_status put_fold_equity(sqlite3 *db, ho_json_out *out, const fold_list *folds, int i,
                                 ho_err *err)
{
    series best, hold = {0}, random = {0};
    ho_status rc = read_series(db, "fold_result WHERE trial = (SELECT trial FROM best_trial)",
                               folds->id[i], &best, err);

    if (rc == HO_OK && best.rows > 0) {
        int thin = (best.sessions + HO_REPORT_SESSIONS - 1) / HO_REPORT_SESSIONS;
        if ((rc = read_series(db, "baseline WHERE policy = 'buy_and_hold'", folds->id[i], &hold,
                              err)) == HO_OK &&
            (rc = read_series(db, "baseline WHERE policy = 'random'", folds->id[i], &random,
                              err)) == HO_OK) {
            ho_json_begin(out, NULL, '{');
            ho_json_integer(out, "fold", folds->id[i]);
            ho_json_integer(out, "begin_ns", folds->begin_ns[i]);
            ho_json_integer(out, "end_ns", folds->end_ns[i]);
            put_mean(out, "best", &best, thin);
            put_mean(out, "buy_and_hold", &hold, thin);
            rc = put_band(out, &random, thin, err);
            ho_json_end(out, '}');
        }
    }
    series_free(&best);
    series_free(&hold);
    series_free(&random);
    return rc;
}

ho_status ho_report_series(sqlite3 *db, ho_json_out *out, ho_err *err)
{
    fold_list folds = {0};
    ho_status rc = put_curves(db, out, err);

    if (rc == HO_OK) {
        rc = ho_report_query(
            db, "SELECT id, test_begin_ns, test_end_ns FROM fold WHERE id >= 0 ORDER BY id",
            add_fold, &folds, err);
    }
    ho_json_begin(out, "equity", '[');
    for (int i = 0; rc == HO_OK && i < folds.count; i++) {
        rc = put_fold_equity(db, out, &folds, i, err);
    }
    ho_json_end(out, ']');
    return rc;
}

/* ---- workers -------------------------------------------------------------------------------- */

typedef struct worker_rows {
    ho_json_out *out;
    int64_t open; /* id of the worker whose object is open; -1: none */
    int spans;
} worker_rows;

static void put_span(sqlite3_stmt *stmt, void *user)
{
    worker_rows *w = user;
    int64_t id = sqlite3_column_int64(stmt, 0);

    if (id != w->open) {
        if (w->open >= 0) {
            ho_json_end(w->out, ']');
            ho_json_end(w->out, '}');
        }
        w->open = id;
        ho_json_begin(w->out, NULL, '{');
        ho_report_column(w->out, stmt, 1, "name");
        ho_json_begin(w->out, "span", '[');
    }
    w->spans++;
    ho_json_begin(w->out, NULL, '[');
    for (int i = 2; i < 6; i++) {
        ho_report_column(w->out, stmt, i, NULL);
    }
    ho_json_end(w->out, ']');
}

ho_status ho_report_workers(sqlite3 *db, ho_json_out *out, ho_err *err)
{
    worker_rows rows = {.out = out, .open = -1};
    char sql[SQL_MAX];

    snprintf(
        sql, sizeof sql,
        "SELECT w.id, w.name, t.started_ns, t.finished_ns, t.number, t.state FROM (SELECT * FROM "
        "trial WHERE finished_ns IS NOT NULL AND started_ns IS NOT NULL AND worker IS NOT NULL "
        "ORDER BY finished_ns DESC LIMIT %d) t JOIN worker w ON w.id = t.worker ORDER BY w.id, "
        "t.started_ns",
        HO_REPORT_SPANS);
    ho_json_begin(out, "workers", '[');
    ho_status rc = ho_report_query(db, sql, put_span, &rows, err);
    if (rows.open >= 0) {
        ho_json_end(out, ']');
        ho_json_end(out, '}');
    }
    ho_json_end(out, ']');
    ho_json_bool(out, "spans_cut", rows.spans == HO_REPORT_SPANS);
    return rc;
}
