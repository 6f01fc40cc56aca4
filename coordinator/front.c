/* SPDX-License-Identifier: Apache-2.0
 * See front.h. */
#include "coordinator/front.h"

#include <stdlib.h>

#include "coordinator/output.h"
#include "coordinator/search/pareto.h"

enum { FRONT_SHOWN = 20 };

/* Feasible complete trials with their losses. */
typedef struct scored {
    int64_t *number; /* [count] */
    double *loss;    /* [count, objectives] */
    int64_t count, room;
} scored;

static ho_status add_scored(scored *s, int objectives, ho_err *err)
{
    if (s->count < s->room) {
        return HO_OK;
    }
    int64_t room = s->room ? 2 * s->room : 256;
    int64_t *number = (int64_t *)realloc(s->number, (size_t)room * sizeof *number);
    s->number = number ? number : s->number;
    double *loss = (double *)realloc(s->loss, (size_t)(room * objectives) * sizeof *loss);
    s->loss = loss ? loss : s->loss;
    if (!number || !loss) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    s->room = room;
    return HO_OK;
}

static ho_status read_scored(ho_store *store, int objectives, scored *out, ho_err *err)
{
    sqlite3_stmt *statement = NULL;
    ho_status rc = HO_OK;
    if (sqlite3_prepare_v2(
            ho_store_db(store),
            "SELECT t.number, v.objective, -v.value * o.direction FROM trial t JOIN trial_value v "
            "ON v.trial = t.number JOIN objective o ON o.id = v.objective WHERE t.state = "
            "'COMPLETE' AND coalesce(t.violation, 0) <= 0 AND t.source <> 'retest' "
            "ORDER BY t.number, v.objective",
            -1, &statement, NULL) != SQLITE_OK) {
        rc = ho_err_set(err, HO_ESTORE, "%s: %s", ho_store_path(store),
                        sqlite3_errmsg(ho_store_db(store)));
    }
    while (rc == HO_OK && sqlite3_step(statement) == SQLITE_ROW) {
        int64_t number = sqlite3_column_int64(statement, 0), k = sqlite3_column_int64(statement, 1);
        if ((k == 0 && (rc = add_scored(out, objectives, err)) != HO_OK) || k >= objectives) {
            break;
        }
        if (k == 0) {
            out->number[out->count++] = number;
        }
        out->loss[(out->count - 1) * objectives + k] = sqlite3_column_double(statement, 2);
    }
    (void)sqlite3_finalize(statement);
    return rc;
}

typedef struct metric_text {
    char text[64];
} metric_text;

static metric_text metric_name(ho_store *store, int objective)
{
    metric_text name = {""};
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(ho_store_db(store), "SELECT metric FROM objective WHERE id = ?", -1,
                           &statement, NULL) == SQLITE_OK &&
        sqlite3_bind_int(statement, 1, objective) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
        (void)snprintf(name.text, sizeof name.text, "%s", sqlite3_column_text(statement, 0));
    }
    (void)sqlite3_finalize(statement);
    return name;
}

static ho_status print_front(FILE *out, ho_store *store, int objectives, ho_err *err)
{
    scored s = {0};
    int *rank = NULL;
    int64_t front = 0, shown = 0;
    ho_status rc = read_scored(store, objectives, &s, err);
    sqlite3_str *sql = sqlite3_str_new(ho_store_db(store));

    rank = (int *)calloc((size_t)s.count + 1, sizeof *rank);
    if (rc == HO_OK && !rank) {
        rc = ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    if (rc != HO_OK || s.count == 0 ||
        (rc = ho_pareto_rank(s.loss, s.count, objectives, rank)) != HO_OK) {
        goto out;
    }
    sqlite3_str_appendall(sql, "SELECT 'trial ' || t.number AS who");
    for (int k = 0; k < objectives; k++) {
        sqlite3_str_appendf(sql,
                            ", (SELECT value FROM trial_value v WHERE v.trial = t.number AND "
                            "v.objective = %d) AS \"%w\"",
                            k, metric_name(store, k).text);
    }
    sqlite3_str_appendall(sql, " FROM trial t WHERE t.number IN (");
    for (int64_t i = 0; i < s.count; i++) {
        front += rank[i] == 0;
        if (rank[i] == 0 && shown < FRONT_SHOWN) {
            sqlite3_str_appendf(sql, "%s%lld", shown++ > 0 ? ", " : "", (long long)s.number[i]);
        }
    }
    sqlite3_str_appendall(sql, ") ORDER BY (SELECT -v.value * o.direction FROM trial_value v JOIN "
                               "objective o ON o.id = 0 WHERE v.trial = t.number AND "
                               "v.objective = 0)");
    char title[120];
    (void)snprintf(
        title, sizeof title,
        "\nThe front: %lld of %lld trials are dominated by no other%s:", (long long)front,
        (long long)s.count, front > shown ? "; the first of them" : "");
    if (sqlite3_str_value(sql)) {
        rc = ho_output_query(out, ho_store_db(store), sqlite3_str_value(sql), HO_OUTPUT_TABLE,
                             title, err);
    }
out:
    sqlite3_free(sqlite3_str_finish(sql));
    free(rank);
    free(s.number);
    free(s.loss);
    return rc;
}

ho_status ho_front_print(FILE *out, ho_store *store, ho_err *err)
{
    sqlite3_stmt *statement = NULL;
    int objectives = 0;
    if (sqlite3_prepare_v2(ho_store_db(store), "SELECT count(*) FROM objective", -1, &statement,
                           NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
        objectives = sqlite3_column_int(statement, 0);
    }
    (void)sqlite3_finalize(statement);
    return objectives > 1 ? print_front(out, store, objectives, err) : HO_OK;
}
