/* SPDX-License-Identifier: Apache-2.0
 * hyperopt reproduce DB N */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/commands.h"
#include "coordinator/rerun.h"

static double stored_sharpe(sqlite3_stmt *row)
{
    return sqlite3_column_type(row, 0) == SQLITE_NULL ? NAN : sqlite3_column_double(row, 0);
}

/* Whether a new window has the stored one's session returns, bit for bit. */
static bool same_returns(sqlite3_stmt *row, const ho_backtest_result *result)
{
    size_t size = (size_t)result->sessions * sizeof(double);
    const void *blob = sqlite3_column_blob(row, 1);
    return (size_t)sqlite3_column_bytes(row, 1) == size &&
           (size == 0 || (blob && memcmp(blob, result->session_return, size) == 0));
}

static void print_number(double value)
{
    if (isnan(value)) {
        (void)printf("  %12s", "undefined");
    } else {
        (void)printf("  %12.6g", value);
    }
}

static ho_status compare(ho_store *store, int64_t number, const ho_job_answer *answer, int *differ,
                         ho_err *err)
{
    sqlite3_stmt *row = NULL;

    *differ = 0;
    if (sqlite3_prepare_v2(ho_store_db(store),
                           "SELECT sharpe, returns FROM fold_result WHERE trial = ?1 AND fold = ?2 "
                           "AND seed = ?3",
                           -1, &row, NULL) != SQLITE_OK) {
        return ho_err_set(err, HO_ESTORE, "%s: %s", ho_store_path(store),
                          sqlite3_errmsg(ho_store_db(store)));
    }
    (void)printf("fold  seed  stored sharpe    sharpe now  session returns\n");
    for (int i = 0; i < answer->window_count; i++) {
        const ho_scored_window *w = &answer->window[i];
        (void)sqlite3_reset(row);
        (void)sqlite3_bind_int64(row, 1, number);
        (void)sqlite3_bind_int(row, 2, w->fold);
        (void)sqlite3_bind_int(row, 3, w->seed);
        bool found = sqlite3_step(row) == SQLITE_ROW;
        bool same = found && same_returns(row, &w->result);
        (void)printf("%4d  %4d ", w->fold, w->seed);
        print_number(found ? stored_sharpe(row) : NAN);
        print_number(w->result.metrics.value[HO_METRIC_SHARPE]);
        (void)printf("  %s\n", same ? "the same bits" : found ? "DIFFER" : "not stored");
        *differ += !same;
    }
    (void)sqlite3_finalize(row);
    return HO_OK;
}

int ho_cmd_reproduce(int argc, char **argv)
{
    bool cpu = false;
    ho_err err = {0};
    ho_store *store = NULL;
    ho_job_answer answer = {0};
    ho_rerun_trial trial;
    int64_t number = -1;
    int differ = 0;
    const ho_option option[] = {
        {"cpu", 0, HO_OPTION_FLAG, &cpu, NULL, "use the CPU backend even where there is a GPU", 0,
         0},
    };
    const ho_usage usage = {
        .name = "reproduce",
        .arguments = "DB N",
        .about = "Trains trial N again from the database alone (settings, parameters, seeds, data\n"
                 "hash) and compares the session returns of every fold and seed, bit for bit.\n"
                 "They are the same on the same kind of device with the same build of hyperopt.\n"
                 "Exit code 0: the same; 5: different.\n",
        .examples = "  hyperopt reproduce quickstart.db 8\n",
        .option = option,
        .option_count = 1,
        .min_arguments = 2,
        .max_arguments = 2,
    };
    ho_status rc = HO_OK;
    int code = HO_EXIT_OK;
    if (!ho_usage_open_trial(&usage, argc, argv, &number, &store, &code)) {
        return code;
    }
    rc = ho_rerun(store, number, HO_RERUN_FOLDS, cpu, &trial, &answer, &err);
    if (rc == HO_OK) {
        rc = compare(store, number, &answer, &differ, &err);
    }
    if (rc == HO_OK && trial.state != HO_TRIAL_COMPLETE && differ > 0) {
        (void)printf("Trial %" PRId64 " is %s: it never came to a result that could be compared.\n",
                     number, ho_trial_state_name(trial.state));
    } else if (rc == HO_OK) {
        (void)printf(differ == 0 ? "Trial %" PRId64 " is reproduced.\n"
                                 : "Trial %" PRId64 " is not reproduced; was it made by another "
                                   "build or kind of device (hyperopt show)?\n",
                     number);
    }
    ho_job_answer_free(&answer);
    ho_store_close(&store);
    if (rc != HO_OK) {
        return ho_exit_report(&err);
    }
    return differ == 0 ? HO_EXIT_OK : HO_EXIT_WARNINGS;
}
