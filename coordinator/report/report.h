/* SPDX-License-Identifier: Apache-2.0
 * The data behind `hyperopt report`: one JSON object, read from the store, sampled so that a study
 * of 100,000 trials stays a page that a browser can draw. page.html, chart.js and sections.js are
 * its only reader. */
#ifndef HO_COORDINATOR_REPORT_REPORT_H
#define HO_COORDINATOR_REPORT_REPORT_H

#include <sqlite3.h>

#include "coordinator/json_out.h"
#include "coordinator/store.h"
#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HO_REPORT_POINTS = 4000, /* trials drawn over time */
    HO_REPORT_SAMPLE = 1200, /* trials in parallel coordinates and slices: best half, random half */
    HO_REPORT_CURVES = 12,   /* learning curves */
    HO_REPORT_LEADERS = 20,  /* rows of the leaderboard */
    HO_REPORT_SPANS = 5000,  /* trials on the worker timeline */
    HO_REPORT_TRADES = 1000, /* rows of the trade list */
    HO_REPORT_SESSIONS = 800, /* points of an equity curve; longer ones are thinned */
};

/* Each writes its members into the open object. HO_ESTORE: a query failed, err says which. */
ho_status ho_report_study(sqlite3 *db, ho_json_out *out, ho_err *err);
ho_status ho_report_trials(sqlite3 *db, ho_json_out *out, ho_err *err);
ho_status ho_report_params(sqlite3 *db, ho_json_out *out, ho_err *err);
ho_status ho_report_series(sqlite3 *db, ho_json_out *out, ho_err *err);
ho_status ho_report_workers(sqlite3 *db, ho_json_out *out, ho_err *err);

/* Starts a local worker for some seconds. HO_ENOTFOUND: the actions of the best trial are not kept.
 * Without a complete trial it writes nothing. */
ho_status ho_report_replay(ho_store *store, ho_json_out *out, ho_err *err);

/* Calls row for each row of a query. row == NULL: at most one row is expected and none is read. */
ho_status ho_report_query(sqlite3 *db, const char *sql, void (*row)(sqlite3_stmt *stmt, void *user),
                          void *user, ho_err *err);
/* Writes column i under key with its SQL type; NULL as null. */
void ho_report_column(ho_json_out *out, sqlite3_stmt *stmt, int i, const char *key);
/* Each row as an object whose keys are the column names, in an array under key. */
ho_status ho_report_rows(sqlite3 *db, ho_json_out *out, const char *key, const char *sql,
                         ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
