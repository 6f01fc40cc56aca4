/* SPDX-License-Identifier: Apache-2.0
 * hyperopt holdout DB N: the one look at data that no trial saw, and its record. */
#include <inttypes.h>
#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coordinator/commands.h"
#include "coordinator/json_out.h"
#include "coordinator/output.h"
#include "coordinator/rerun.h"
#include "coordinator/server.h"

static const char *user_name(void)
{
    const struct passwd *entry = getpwuid(getuid());
    return entry ? entry->pw_name : "unknown";
}

static int64_t count_looks(ho_store *store)
{
    sqlite3_stmt *statement = NULL;
    int64_t looks = -1;
    if (sqlite3_prepare_v2(ho_store_db(store), "SELECT count(DISTINCT at_ns) FROM holdout_look", -1,
                           &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
        looks = sqlite3_column_int64(statement, 0);
    }
    (void)sqlite3_finalize(statement);
    return looks;
}

/* Every metric as JSON, malloc'ed. NULL: out of memory. */
static char *metrics_text(const ho_metric_set *metrics)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    if (!file) {
        return NULL;
    }
    ho_json_out out = {.file = file};
    ho_json_begin(&out, NULL, '{');
#define PUT_METRIC(id, name, direction, unit, convention)                                          \
    ho_json_number(&out, name, metrics->value[HO_METRIC_##id]);
    HO_METRIC_MAP(PUT_METRIC)
#undef PUT_METRIC
    ho_json_end(&out, '}');
    if (fclose(file) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static ho_status record(ho_store *store, const ho_rerun_trial *trial, bool refit,
                        const ho_job_answer *answer, ho_err *err)
{
    int64_t now_ns = ho_clock_unix_ns();
    ho_status rc = HO_OK;
    for (int i = 0; rc == HO_OK && i < answer->window_count; i++) {
        const ho_backtest_result *r = &answer->window[i].result;
        char *metrics = metrics_text(&r->metrics);
        ho_look_row row = {
            .now_ns = now_ns,
            .trial = trial->number,
            .seed = answer->window[i].seed,
            .refit = refit,
            .user = user_name(),
            .metrics = &r->metrics,
            .metrics_json = metrics,
            .sessions = r->sessions,
            .session_return = r->session_return,
        };
        rc = metrics ? ho_store_put_look(store, &row) : ho_err_set(err, HO_ENOMEM, "out of memory");
        free(metrics);
    }
    return rc == HO_OK ? ho_store_flush(store, ho_clock_ns(), true, err) : rc;
}

static ho_status print_looks(ho_store *store, int64_t before, int64_t trial, ho_err *err)
{
    char sql[512];
    (void)snprintf(
        sql, sizeof sql,
        "SELECT seed, sharpe, total_return AS \"return\", max_drawdown AS drawdown, trades "
        "FROM holdout_look WHERE trial = %" PRId64 " AND at_ns = (SELECT max(at_ns) FROM "
        "holdout_look) ORDER BY seed",
        trial);
    ho_status rc = ho_output_query(stdout, ho_store_db(store), sql, HO_OUTPUT_TABLE, NULL, err);
    if (rc == HO_OK && before > 0) {
        (void)printf("\nThis is look number %" PRId64
                     " at this holdout. Each further look makes it "
                     "more like data that was searched on: the first one is the honest one.\n",
                     before + 1);
        rc = ho_output_query(
            stdout, ho_store_db(store),
            "SELECT datetime(at_ns / 1000000000, 'unixepoch') AS utc, user, trial, "
            "refit, avg(sharpe) AS sharpe FROM holdout_look GROUP BY at_ns ORDER BY "
            "at_ns",
            HO_OUTPUT_TABLE, "\nAll looks:", err);
    } else if (rc == HO_OK) {
        (void)printf("\nThis was the first look at this holdout. It is recorded.\n");
    }
    return rc;
}

int ho_cmd_holdout(int argc, char **argv)
{
    bool cpu = false, refit = false;
    ho_arguments args;
    ho_err err = {0};
    ho_store_options store_options = ho_store_defaults();
    ho_store *store = NULL;
    ho_job_answer answer = {0};
    ho_rerun_trial trial;
    int64_t number = -1;
    const ho_option option[] = {
        {"refit", 0, HO_OPTION_FLAG, &refit, NULL,
         "train new agents on all bars before the holdout instead of the last fold's", 0, 0},
        {"cpu", 0, HO_OPTION_FLAG, &cpu, NULL, "use the CPU backend even where there is a GPU", 0,
         0},
    };
    const ho_usage usage = {
        .name = "holdout",
        .arguments = "DB N",
        .about =
            "Scores trial N on the holdout, the data's end that `run` never touches, and records\n"
            "who looked and when. The agents are those of the last fold, trained again from\n"
            "the database (bit for bit the same).\n",
        .examples = "  hyperopt holdout es-dqn.db 41\n  hyperopt holdout es-dqn.db 41 --refit\n",
        .option = option,
        .option_count = sizeof option / sizeof option[0],
        .min_arguments = 2,
        .max_arguments = 2,
    };
    ho_status rc = ho_usage_parse(&usage, argc, argv, &args);
    if (rc != HO_OK) {
        return ho_exit_code(rc);
    }
    if (ho_usage_trial(&usage, args.item[1], &number) != HO_OK) {
        return HO_EXIT_USAGE;
    }
    /* opened for writing first: a look that cannot be recorded must not happen */
    if ((rc = ho_store_open(&store, args.item[0], &store_options, &err)) != HO_OK) {
        (void)ho_exit_report(&err);
        return HO_EXIT_STORE;
    }
    int64_t before = count_looks(store);
    rc = ho_rerun(store, number, refit ? HO_RERUN_REFIT : HO_RERUN_HOLDOUT, cpu, &trial, &answer,
                  &err);
    if (rc == HO_OK && (rc = record(store, &trial, refit, &answer, &err)) == HO_OK) {
        const ho_window *h = &trial.folds.holdout;
        (void)printf("Trial %" PRId64 " on the holdout, bars [%" PRId64 ", %" PRId64 ")%s:\n\n",
                     number, h->begin, h->end, refit ? ", trained on all before it" : "");
        rc = print_looks(store, before, number, &err);
    }
    ho_job_answer_free(&answer);
    ho_store_close(&store);
    return rc == HO_OK ? HO_EXIT_OK : ho_exit_report(&err);
}
