/* SPDX-License-Identifier: Apache-2.0
 * hyperopt status DB */
#include <stdio.h>

#include "coordinator/commands.h"
#include "coordinator/leaderboard.h"
#include "coordinator/output.h"
#include "coordinator/store.h"
#include "coordinator/watch.h"

enum { SHOWN = 5 };

static ho_status print_rate(ho_store *store, ho_err *err)
{
    sqlite3_stmt *statement = NULL;
    char left[40];
    if (sqlite3_prepare_v2(ho_store_db(store),
                           "SELECT asked - complete - pruned - failed, complete + pruned + failed, "
                           "(last_finish_ns - first_start_ns) * 1e-9, state FROM study_progress",
                           -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW) {
        (void)sqlite3_finalize(statement);
        return ho_err_set(err, HO_ESTORE, "%s: %s", ho_store_path(store),
                          sqlite3_errmsg(ho_store_db(store)));
    }
    double remaining = sqlite3_column_double(statement, 0),
           done = sqlite3_column_double(statement, 1);
    double span = sqlite3_column_double(statement, 2);
    if (done > 0 && span > 0) {
        (void)printf("rate: %.3g trials/min", done / span * 60.0);
        if (remaining > 0) {
            ho_output_duration(remaining * span / done, left, sizeof left);
            (void)printf(", %s left at this rate", left);
        }
        (void)printf("\n");
    }
    (void)sqlite3_finalize(statement);
    return HO_OK;
}

int ho_cmd_status(int argc, char **argv)
{
    ho_arguments args;
    ho_err err = {0};
    ho_store *store = NULL;
    bool watch = false;
    double every_s = 1;
    const ho_option option[] = {
        {"watch", 'w', HO_OPTION_FLAG, &watch, NULL,
         "a full-screen view that follows the study; q ends it", 0, 0},
        {"every", 'e', HO_OPTION_DURATION, &every_s, "TIME", "watch: between two looks (1s)", 0, 0},
    };
    const ho_usage usage = {
        .name = "status",
        .arguments = "DB",
        .about =
            "One screen about a study: progress, the best trials beside the baselines, workers,\n"
            "rate and time left. Works while it runs.",
        .examples = "  hyperopt status quickstart.db\n"
                    "  hyperopt status quickstart.db --watch\n",
        .option = option,
        .option_count = sizeof option / sizeof option[0],
        .min_arguments = 1,
        .max_arguments = 1,
    };
    ho_status rc = ho_usage_parse(&usage, argc, argv, &args);
    if (rc != HO_OK) {
        return ho_exit_code(rc);
    }
    if ((rc = ho_store_open_read(&store, args.item[0], &err)) != HO_OK) {
        (void)ho_exit_report(&err);
        return HO_EXIT_STORE;
    }
    if (watch) {
        rc = ho_watch(store, every_s, &err);
        ho_store_close(&store);
        return rc == HO_OK ? HO_EXIT_OK : ho_exit_report(&err);
    }
    if ((rc = ho_summary_print(stdout, store, &err)) == HO_OK &&
        (rc = print_rate(store, &err)) == HO_OK) {
        (void)printf("\n");
        if ((rc = ho_leaderboard_print(stdout, store, SHOWN, &err)) == HO_OK) {
            rc = ho_output_query(
                stdout, ho_store_db(store),
                "SELECT name, device, lanes, running, finished, "
                "CASE here WHEN 1 THEN 'here' ELSE coalesce(leave_reason, 'left') END AS state "
                "FROM worker_load ORDER BY here DESC, id DESC LIMIT 16",
                HO_OUTPUT_TABLE, "\nWorkers:", &err);
        }
    }
    ho_store_close(&store);
    return rc == HO_OK ? HO_EXIT_OK : ho_exit_report(&err);
}
