/* SPDX-License-Identifier: Apache-2.0
 * See overfit_study.h. */
#include "coordinator/overfit_study.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/metrics/overfit.h"

/* Joined out-of-sample session returns of one trial: folds in order, mean over its seeds. */
typedef struct joined {
    int64_t n, room;
    double *value; /* [n] */
} joined;

static ho_status query_failed(ho_store *store, ho_err *err)
{
    return ho_err_set(err, HO_ESTORE, "%s: %s", ho_store_path(store),
                      sqlite3_errmsg(ho_store_db(store)));
}

/* Adds one row's blob to the fold that begins at `begin`; a first seed appends, later ones add. */
static ho_status add_fold(joined *j, int64_t begin, const double *returns, int64_t n, bool first)
{
    if (first && begin + n > j->room) {
        int64_t room = 2 * (begin + n);
        double *grown = (double *)realloc(j->value, (size_t)room * sizeof *grown);
        if (!grown) {
            return HO_ENOMEM;
        }
        j->value = grown;
        j->room = room;
    }
    for (int64_t i = 0; i < n; i++) {
        double r;
        memcpy(&r, returns + i, sizeof r); /* a blob need not be aligned */
        j->value[begin + i] = (first ? 0 : j->value[begin + i]) + r;
    }
    return HO_OK;
}

/* statement: SELECT fold, returns FROM fold_result WHERE trial = ?1 ... ORDER BY fold, seed. */
static ho_status read_joined(sqlite3_stmt *statement, int64_t trial, joined *j)
{
    ho_status rc = HO_OK;
    int64_t begin = 0, length = 0;
    int fold = -1, seeds = 0;

    j->n = 0;
    (void)sqlite3_reset(statement);
    (void)sqlite3_bind_int64(statement, 1, trial);
    while (rc == HO_OK && sqlite3_step(statement) == SQLITE_ROW) {
        int64_t n = sqlite3_column_bytes(statement, 1) / (int64_t)sizeof(double);
        bool first = sqlite3_column_int(statement, 0) != fold;
        if (first) {
            for (int64_t i = begin; i < begin + length; i++) {
                j->value[i] /= seeds;
            }
            begin += length;
            length = n;
            seeds = 0;
            fold = sqlite3_column_int(statement, 0);
        }
        if (n == length) {
            rc = add_fold(j, begin, (const double *)sqlite3_column_blob(statement, 1), n, first);
            seeds++;
        }
    }
    for (int64_t i = begin; i < begin + length && seeds > 0; i++) {
        j->value[i] /= seeds;
    }
    j->n = begin + length;
    return rc;
}

static const char joined_sql[] =
    "SELECT fold, returns FROM fold_result WHERE trial = ?1 AND fold >= 0 AND returns IS NOT NULL "
    "ORDER BY fold, seed";

/* Adds "text; " to the notes. */
static void note(ho_overfit_row *out, const char *text)
{
    size_t n = strlen(out->notes);
    (void)snprintf(out->notes + n, sizeof out->notes - n, "%s%s", n ? "; " : "", text);
}

/* ---- the best trial against all ------------------------------------------------------------- */

static ho_status measure_best(ho_store *store, ho_overfit_row *out, ho_err *err)
{
    sqlite3_stmt *statement = NULL;
    joined j = {0};
    ho_status rc = HO_OK;

    if (sqlite3_prepare_v2(ho_store_db(store), joined_sql, -1, &statement, NULL) != SQLITE_OK) {
        return query_failed(store, err);
    }
    if ((rc = read_joined(statement, out->trial, &j)) != HO_OK) {
        rc = ho_err_set(err, rc, "out of memory");
        goto out;
    }
    ho_sharpe_moments m = ho_sharpe_moments_of(j.value, j.n, 0);
    out->sharpe = m.sharpe;
    if (isnan(m.sharpe)) {
        note(out, "the best trial's returns have no variation");
        goto out;
    }
    out->psr = ho_psr(&m, 0);
    out->min_track_sessions = ho_min_track_record(&m, 0, 0.95);
    if (isinf(out->min_track_sessions)) {
        out->min_track_sessions = NAN;
        note(out, "no minimum track record: the best Sharpe ratio is not above 0");
    }
    if (isnan(out->sharpe_std)) {
        note(out, "no DSR: fewer than two trials have a Sharpe ratio");
        goto out;
    }
    double variance = out->sharpe_std * out->sharpe_std;
    out->sharpe_zero = ho_expected_max_sharpe(out->configurations, variance);
    out->dsr = ho_dsr(&m, out->configurations, variance);
out:
    free(j.value);
    (void)sqlite3_finalize(statement);
    return rc;
}

/* ---- PBO ------------------------------------------------------------------------------------ */

/* Takes every k-th finished trial, so that at most HO_PBO_TRIALS_MAX columns stand; those that
 * never varied and those of other folds (another number of sessions) are left out. */
static ho_status read_matrix(ho_store *store, int64_t sessions, double **matrix, int64_t *columns,
                             ho_err *err)
{
    sqlite3_stmt *trials = NULL, *statement = NULL;
    joined j = {0};
    ho_status rc = HO_OK;
    double *by_trial = (double *)malloc((size_t)sessions * HO_PBO_TRIALS_MAX * sizeof *by_trial);

    *matrix = NULL;
    *columns = 0;
    if (!by_trial) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    if (sqlite3_prepare_v2(
            ho_store_db(store),
            "SELECT number FROM (SELECT number, row_number() OVER (ORDER BY number) - 1 AS i, "
            "count(*) OVER () AS n FROM trial WHERE state = 'COMPLETE') WHERE i % ((n + ?1 - 1) / "
            "?1) = 0",
            -1, &trials, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(ho_store_db(store), joined_sql, -1, &statement, NULL) != SQLITE_OK) {
        rc = query_failed(store, err);
        goto out;
    }
    (void)sqlite3_bind_int(trials, 1, HO_PBO_TRIALS_MAX);
    while (rc == HO_OK && sqlite3_step(trials) == SQLITE_ROW && *columns < HO_PBO_TRIALS_MAX) {
        if ((rc = read_joined(statement, sqlite3_column_int64(trials, 0), &j)) != HO_OK) {
            rc = ho_err_set(err, rc, "out of memory");
        } else if (j.n == sessions && !isnan(ho_sharpe_moments_of(j.value, j.n, 0).sharpe)) {
            memcpy(by_trial + *columns * sessions, j.value, (size_t)sessions * sizeof *by_trial);
            ++*columns;
        }
    }
    if (rc == HO_OK && *columns > 0) { /* [T, N], as the formula wants it */
        *matrix = (double *)malloc((size_t)(*columns * sessions) * sizeof **matrix);
        if (!*matrix) {
            rc = ho_err_set(err, HO_ENOMEM, "out of memory");
            goto out;
        }
        for (int64_t t = 0; t < sessions; t++) {
            for (int64_t n = 0; n < *columns; n++) {
                (*matrix)[t * *columns + n] = by_trial[n * sessions + t];
            }
        }
    }
out:
    free(j.value);
    free(by_trial);
    (void)sqlite3_finalize(trials);
    (void)sqlite3_finalize(statement);
    return rc;
}

static ho_status measure_pbo(ho_store *store, ho_overfit_row *out, ho_err *err)
{
    sqlite3_stmt *statement = NULL;
    joined j = {0};
    double *matrix = NULL;
    int64_t columns = 0;
    ho_pbo pbo = {0};
    ho_err reason = {0};
    ho_status rc = HO_OK;

    if (sqlite3_prepare_v2(ho_store_db(store), joined_sql, -1, &statement, NULL) != SQLITE_OK) {
        return query_failed(store, err);
    }
    rc = read_joined(statement, out->trial, &j);
    int64_t sessions = j.n;
    free(j.value);
    (void)sqlite3_finalize(statement);
    if (rc != HO_OK) {
        return ho_err_set(err, rc, "out of memory");
    }
    int blocks = sessions >= 4 * HO_PBO_BLOCKS ? HO_PBO_BLOCKS : 8;
    if (sessions < 4 * blocks) {
        note(out, "no PBO: fewer than 32 sessions out of sample");
        return HO_OK;
    }
    if ((rc = read_matrix(store, sessions, &matrix, &columns, err)) != HO_OK) {
        return rc;
    }
    if (columns < 2) {
        note(out, "no PBO: fewer than two trials whose returns vary");
    } else if (ho_pbo_cscv(matrix, sessions, columns, blocks, &pbo, &reason) == HO_OK) {
        out->pbo = pbo.pbo;
        out->pbo_splits = pbo.splits;
        if (columns == HO_PBO_TRIALS_MAX) {
            note(out, "PBO over a sample of 1000 trials");
        }
    } else {
        char text[200];
        (void)snprintf(text, sizeof text, "no PBO: %.180s", reason.text);
        note(out, text);
    }
    ho_pbo_free(&pbo);
    free(matrix);
    return HO_OK;
}

static const char null_note[] = "the null test is of an earlier best trial";

/* ---- all of it ------------------------------------------------------------------------------ */

static double real_or_nan(sqlite3_stmt *statement, int i)
{
    return sqlite3_column_type(statement, i) == SQLITE_NULL ? NAN
                                                            : sqlite3_column_double(statement, i);
}

static ho_overfit_row empty_row(int64_t now_ns)
{
    return (ho_overfit_row){.now_ns = now_ns,
                            .trial = -1,
                            .sharpe = NAN,
                            .sharpe_std = NAN,
                            .sharpe_zero = NAN,
                            .psr = NAN,
                            .dsr = NAN,
                            .min_track_sessions = NAN,
                            .pbo = NAN,
                            .null_p = NAN};
}

ho_status ho_overfit_tried(ho_store *store, int64_t *out, ho_err *err)
{
    sqlite3_stmt *statement = NULL;
    ho_status rc = HO_OK;

    *out = 0;
    if (sqlite3_prepare_v2(
            ho_store_db(store),
            "SELECT (SELECT prior_trials FROM study) + coalesce((SELECT sum(seeds) FROM trial "
            "WHERE state IN ('COMPLETE', 'PRUNED') OR (state = 'FAILED' AND started_ns IS NOT "
            "NULL)), 0)",
            -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
        *out = sqlite3_column_int64(statement, 0);
    } else {
        rc = query_failed(store, err);
    }
    (void)sqlite3_finalize(statement);
    return rc;
}

ho_status ho_overfit_read(ho_store *store, ho_overfit_row *out, ho_err *err)
{
    sqlite3_stmt *statement = NULL;
    ho_status rc = HO_OK;

    *out = empty_row(0);
    if (sqlite3_prepare_v2(
            ho_store_db(store),
            "SELECT at_ns, trial, trials, sharpe, sharpe_std, sharpe_zero, psr, dsr, "
            "min_track_sessions, pbo, pbo_splits, null_p, notes FROM overfit ORDER BY "
            "id DESC LIMIT 1",
            -1, &statement, NULL) != SQLITE_OK) {
        rc = query_failed(store, err);
    } else if (sqlite3_step(statement) != SQLITE_ROW) {
        rc = HO_ENOTFOUND;
    } else {
        out->now_ns = sqlite3_column_int64(statement, 0);
        out->trial = sqlite3_column_type(statement, 1) == SQLITE_NULL
                         ? -1
                         : sqlite3_column_int64(statement, 1);
        out->configurations = sqlite3_column_int64(statement, 2);
        out->sharpe = real_or_nan(statement, 3);
        out->sharpe_std = real_or_nan(statement, 4);
        out->sharpe_zero = real_or_nan(statement, 5);
        out->psr = real_or_nan(statement, 6);
        out->dsr = real_or_nan(statement, 7);
        out->min_track_sessions = real_or_nan(statement, 8);
        out->pbo = real_or_nan(statement, 9);
        out->pbo_splits = sqlite3_column_int64(statement, 10);
        out->null_p = real_or_nan(statement, 11);
        const char *notes = (const char *)sqlite3_column_text(statement, 12);
        (void)snprintf(out->notes, sizeof out->notes, "%s", notes ? notes : "");
    }
    (void)sqlite3_finalize(statement);
    return rc;
}

void ho_overfit_keep_null(ho_store *store, ho_overfit_row *out)
{
    ho_overfit_row before;
    if (ho_overfit_read(store, &before, NULL) != HO_OK || isnan(before.null_p)) {
        return;
    }
    out->null_p = before.null_p;
    if (before.trial != out->trial || strstr(before.notes, null_note)) {
        note(out, null_note);
    }
}

ho_status ho_overfit_measure(ho_store *store, int64_t now_ns, ho_overfit_row *out, ho_err *err)
{
    sqlite3_stmt *statement = NULL;
    ho_status rc = HO_OK;

    *out = empty_row(now_ns);
    /* the deviation by the two-pass form: Sharpe ratios a session are small numbers */
    if (sqlite3_prepare_v2(
            ho_store_db(store),
            "WITH s AS (SELECT avg(sharpe) / sqrt((SELECT sessions_per_year FROM study)) AS x FROM "
            "fold_result WHERE fold = -1 AND sharpe IS NOT NULL GROUP BY trial) "
            "SELECT (SELECT trial FROM best_trial), (SELECT CASE WHEN count(*) > 1 "
            "THEN sqrt(sum((x - (SELECT avg(x) FROM s)) * (x - (SELECT avg(x) FROM s))) / "
            "(count(*) - 1)) END FROM s)",
            -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW) {
        rc = query_failed(store, err);
        (void)sqlite3_finalize(statement);
        return rc;
    }
    if (sqlite3_column_type(statement, 0) != SQLITE_NULL) {
        out->trial = sqlite3_column_int64(statement, 0);
    }
    out->sharpe_std = real_or_nan(statement, 1);
    (void)sqlite3_finalize(statement);
    if ((rc = ho_overfit_tried(store, &out->configurations, err)) != HO_OK) {
        return rc;
    }
    if (out->trial < 0) {
        note(out, "no trial has a defined objective");
        return HO_OK;
    }
    if ((rc = measure_best(store, out, err)) == HO_OK) {
        rc = measure_pbo(store, out, err);
    }
    return rc;
}

void ho_overfit_sentence(const ho_overfit_row *row, char *out, size_t room)
{
    if (isnan(row->dsr)) {
        (void)snprintf(out, room, "How much of the best is luck cannot be said: %s.",
                       row->notes[0] ? row->notes : "too few results");
        return;
    }
    int n =
        snprintf(out, room,
                 "After %lld tries, the probability that the best one's Sharpe ratio beats what "
                 "luck alone would have found is %.1f %% (deflated Sharpe ratio)%s.",
                 (long long)row->configurations, 100 * row->dsr,
                 row->dsr > 0.95 ? "" : ", short of the usual 95 %");
    if (!isnan(row->pbo) && n >= 0 && (size_t)n < room) {
        (void)snprintf(out + n, room - (size_t)n,
                       " Chosen on half of the sessions, the best trial lands in the worse half on "
                       "the others in %.0f %% of the splits (PBO).",
                       100 * row->pbo);
    }
}
