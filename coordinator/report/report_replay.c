/* SPDX-License-Identifier: Apache-2.0
 * The best trial's recorded actions replayed: its trades, and the same decisions at other costs.
 * See report.h. */
#include "coordinator/report/report.h"

#include <cjson/cJSON.h>

#include "coordinator/rerun.h"
#include "kernels/metrics/metric_table.h"

static const double factors[] = {0.0, 0.5, 1.0, 2.0, 4.0};

static void put_costs(ho_json_out *out, const cJSON *rows)
{
    static const ho_metric shown[] = {HO_METRIC_TOTAL_RETURN, HO_METRIC_SHARPE,
                                      HO_METRIC_MAX_DRAWDOWN, HO_METRIC_TRADES};
    const cJSON *row;

    ho_json_begin(out, "costs", '[');
    cJSON_ArrayForEach(row, rows)
    {
        const cJSON *values = cJSON_GetObjectItemCaseSensitive(row, "values");
        const cJSON *factor = cJSON_GetObjectItemCaseSensitive(row, "factor");
        ho_json_begin(out, NULL, '{');
        ho_json_number(out, "factor", cJSON_GetNumberValue(factor));
        for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++) {
            const cJSON *value = cJSON_GetArrayItem(values, shown[i]);
            if (cJSON_IsNumber(value)) {
                ho_json_number(out, ho_metric_name(shown[i]), value->valuedouble);
            } else {
                ho_json_text(out, ho_metric_name(shown[i]), NULL);
            }
        }
        ho_json_end(out, '}');
    }
    ho_json_end(out, ']');
}

/* A row: the numbers of worker/job_verify.c, in their order. */
static void put_trades(ho_json_out *out, const cJSON *rows)
{
    const cJSON *row, *value;

    ho_json_begin(out, "trades", '[');
    cJSON_ArrayForEach(row, rows)
    {
        ho_json_begin(out, NULL, '[');
        cJSON_ArrayForEach(value, row)
        {
            ho_json_number(out, NULL, cJSON_GetNumberValue(value));
        }
        ho_json_end(out, ']');
    }
    ho_json_end(out, ']');
}

static void put_number(sqlite3_stmt *stmt, void *user)
{
    *(int64_t *)user = sqlite3_column_int64(stmt, 0);
}

ho_status ho_report_replay(ho_store *store, ho_json_out *out, ho_err *err)
{
    ho_job_answer answer = {0};
    ho_rerun_trial trial;
    int64_t best = -1;
    ho_status rc =
        ho_report_query(ho_store_db(store), "SELECT trial FROM best_trial", put_number, &best, err);

    if (rc != HO_OK || best < 0) {
        return rc;
    }
    rc = ho_rerun_actions(store, best, factors, sizeof factors / sizeof factors[0],
                          HO_REPORT_TRADES, &trial, &answer, err);
    if (rc == HO_OK) {
        put_costs(out, cJSON_GetObjectItemCaseSensitive(answer.body, "costs"));
        put_trades(out, cJSON_GetObjectItemCaseSensitive(answer.body, "trades"));
        ho_json_number(
            out, "trade_total",
            cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(answer.body, "trade_total")));
    }
    ho_job_answer_free(&answer);
    return rc;
}
