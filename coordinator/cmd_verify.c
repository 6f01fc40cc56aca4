/* SPDX-License-Identifier: Apache-2.0
 * hyperopt verify DB N */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/commands.h"
#include "coordinator/evaluate_print.h"
#include "coordinator/rerun.h"
#include "kernels/metrics/metric_table.h"

/* What the replay of one window says of the stored one. */
typedef struct verdict {
    bool stored;
    bool same_returns; /* of every session, bit for bit */
    int bits;          /* metrics that differ in any bit */
    int numbers;       /* of these, by more than 1e-9 relative, or in being defined */
    int first;         /* the first of these */
} verdict;

static bool close_to(double a, double b)
{
    return fabs(a - b) <= 1e-9 * (fabs(b) > 1.0 ? fabs(b) : 1.0);
}

static verdict judge(sqlite3_stmt *row, const ho_backtest_result *result)
{
    verdict v = {.stored = true, .first = -1};
    size_t size = (size_t)result->sessions * sizeof(double);
    const void *blob = sqlite3_column_blob(row, HO_METRIC_COUNT);
    v.same_returns = (size_t)sqlite3_column_bytes(row, HO_METRIC_COUNT) == size &&
                     (size == 0 || (blob && memcmp(blob, result->session_return, size) == 0));
    for (int i = 0; i < HO_METRIC_COUNT; i++) {
        bool undefined = sqlite3_column_type(row, i) == SQLITE_NULL;
        double was = sqlite3_column_double(row, i), is = result->metrics.value[i];
        bool same = undefined ? isnan(is) : was == is;
        v.bits += !same;
        if (!same && (undefined || !close_to(is, was))) {
            v.first = v.numbers == 0 ? i : v.first;
            v.numbers++;
        }
    }
    return v;
}

static ho_status prepare(ho_store *store, sqlite3_stmt **row, ho_err *err)
{
    char sql[2048] = "SELECT ";
    for (int i = 0; i < HO_METRIC_COUNT; i++) {
        (void)strcat(strcat(sql, ho_metric_name((ho_metric)i)), ", ");
    }
    (void)strcat(sql, "returns FROM fold_result WHERE trial = ?1 AND fold = ?2 AND seed = ?3");
    if (sqlite3_prepare_v2(ho_store_db(store), sql, -1, row, NULL) != SQLITE_OK) {
        return ho_err_set(err, HO_ESTORE, "%s: %s", ho_store_path(store),
                          sqlite3_errmsg(ho_store_db(store)));
    }
    return HO_OK;
}

static void print_verdict(const ho_scored_window *w, const verdict *v)
{
    (void)printf("%4d  %4d  %7.0f  %14.6f  ", w->fold, w->seed,
                 w->result.metrics.value[HO_METRIC_TRADES],
                 w->result.metrics.value[HO_METRIC_TOTAL_PNL]);
    if (!v->stored) {
        (void)printf("not stored\n");
    } else if (v->same_returns && v->bits == 0) {
        (void)printf("the same bits\n");
    } else if (v->same_returns && v->numbers == 0) {
        (void)printf("the same money; %d metrics differ in their last bits\n", v->bits);
    } else {
        (void)printf("DIFFERS: %s%s%s\n", v->same_returns ? "" : "session returns",
                     v->same_returns || v->numbers == 0 ? "" : ", ",
                     v->numbers > 0 ? ho_metric_name((ho_metric)v->first) : "");
    }
}

static ho_status compare(ho_store *store, int64_t number, const ho_job_answer *answer, int *differ,
                         ho_err *err)
{
    sqlite3_stmt *row = NULL;
    ho_status rc = prepare(store, &row, err);
    *differ = 0;
    if (rc != HO_OK) {
        return rc;
    }
    (void)printf("fold  seed   trades       total pnl  replay against what is stored\n");
    for (int i = 0; i < answer->window_count; i++) {
        const ho_scored_window *w = &answer->window[i];
        verdict v = {0};
        (void)sqlite3_reset(row);
        (void)sqlite3_bind_int64(row, 1, number);
        (void)sqlite3_bind_int(row, 2, w->fold);
        (void)sqlite3_bind_int(row, 3, w->seed);
        if (sqlite3_step(row) == SQLITE_ROW) {
            v = judge(row, &w->result);
        }
        print_verdict(w, &v);
        *differ += !(v.stored && v.same_returns && v.numbers == 0);
    }
    (void)sqlite3_finalize(row);
    return HO_OK;
}

/* The same decisions at other costs. */
static void print_costs(const cJSON *body)
{
    static const ho_metric shown[] = {HO_METRIC_TOTAL_RETURN, HO_METRIC_SHARPE,
                                      HO_METRIC_MAX_DRAWDOWN, HO_METRIC_TRADES};
    enum { SHOWN = sizeof shown / sizeof shown[0] };
    const cJSON *rows = cJSON_GetObjectItemCaseSensitive(body, "costs"), *row;
    if (cJSON_GetArraySize(rows) > 0) {
        (void)printf("\nthe same decisions at other costs, joined over folds, mean over seeds:\n"
                     "%6s",
                     "costs");
        for (int i = 0; i < SHOWN; i++) {
            (void)printf("  %14s", ho_metric_name(shown[i]));
        }
        (void)printf("\n");
    }
    cJSON_ArrayForEach(row, rows)
    {
        const cJSON *values = cJSON_GetObjectItemCaseSensitive(row, "values");
        const cJSON *factor = cJSON_GetObjectItemCaseSensitive(row, "factor");
        (void)printf("x %4g", cJSON_IsNumber(factor) ? factor->valuedouble : NAN);
        for (int i = 0; i < SHOWN; i++) {
            const cJSON *value = cJSON_GetArrayItem(values, shown[i]);
            if (cJSON_IsNumber(value)) {
                (void)printf("  %14.6g", value->valuedouble);
            } else {
                (void)printf("  %14s", "undefined");
            }
        }
        (void)printf("\n");
    }
}

int ho_cmd_verify(int argc, char **argv)
{
    ho_err err = {0};
    ho_store *store = NULL;
    ho_job_answer answer = {0};
    ho_rerun_trial trial;
    int64_t number = -1;
    int differ = 0, cost_count = 0;
    double cost[HO_RERUN_COSTS_MAX];
    const char *costs = "0,0.5,1,2,4";
    const ho_option option[] = {
        {"costs", 0, HO_OPTION_STRING, &costs, "LIST",
         "cost factors at which the actions are replayed, too; 0,0.5,1,2,4", 0, 0},
    };
    const ho_usage usage = {
        .name = "verify",
        .arguments = "DB N",
        .about = "Replays the recorded actions of trial N in float64 on the CPU, from the market\n"
                 "data, and compares every fold and seed with what is stored: session returns bit\n"
                 "for bit, metrics to 1e-9. It trains nothing. Exit code 0: the same; 5: "
                 "different.\n",
        .examples = "  hyperopt verify quickstart.db 8\n",
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
    rc = ho_costs_parse(costs, cost, HO_RERUN_COSTS_MAX, &cost_count, &err);
    rc = rc == HO_OK ? ho_rerun_actions(store, number, cost, cost_count, 0, &trial, &answer, &err)
                     : rc;
    rc = rc == HO_OK ? compare(store, number, &answer, &differ, &err) : rc;
    if (rc == HO_OK) {
        (void)printf(differ == 0 ? "Trial %" PRId64 " is verified.\n"
                                 : "Trial %" PRId64 " does not match its recorded actions.\n",
                     number);
        print_costs(answer.body);
    }
    ho_job_answer_free(&answer);
    ho_store_close(&store);
    if (rc != HO_OK) {
        return ho_exit_report(&err);
    }
    return differ == 0 ? HO_EXIT_OK : HO_EXIT_WARNINGS;
}
