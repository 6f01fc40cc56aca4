/* SPDX-License-Identifier: Apache-2.0
 * See evaluate_print.h. */
#include "coordinator/evaluate_print.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include <cjson/cJSON.h>

#include "coordinator/json_out.h"
#include "coordinator/metrics_print.h"
#include "kernels/shapes.h"
#include "kernels/trade.h"

static const char *const exit_name[HO_EXIT_REASONS] = {"none", "signal",  "stop", "profit",
                                                       "time", "session", "end"};

/* Columns of the table, in the order of questions people ask. */
static const ho_metric shown[] = {
    HO_METRIC_TOTAL_RETURN, HO_METRIC_SHARPE,        HO_METRIC_SORTINO,
    HO_METRIC_MAX_DRAWDOWN, HO_METRIC_CALMAR,        HO_METRIC_TRADES,
    HO_METRIC_WIN_RATE,     HO_METRIC_PROFIT_FACTOR, HO_METRIC_EXPOSURE};
enum { SHOWN = sizeof shown / sizeof shown[0] };

static double number(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

static bool metrics_of(const cJSON *result, ho_metric_set *out)
{
    const cJSON *values = cJSON_GetObjectItemCaseSensitive(result, "values");
    const cJSON *reasons = cJSON_GetObjectItemCaseSensitive(result, "reasons");
    if (cJSON_GetArraySize(values) != HO_METRIC_COUNT ||
        cJSON_GetArraySize(reasons) != HO_METRIC_COUNT) {
        return false;
    }
    for (int i = 0; i < HO_METRIC_COUNT; i++) {
        const cJSON *value = cJSON_GetArrayItem(values, i);
        out->value[i] = cJSON_IsNumber(value) ? value->valuedouble : NAN;
        out->reason[i] = (unsigned char)cJSON_GetArrayItem(reasons, i)->valueint;
    }
    double flags = number(result, "flags");
    out->flags = flags >= 0.0 && flags < 1e6 ? (unsigned)flags : 0;
    return true;
}

static ho_status bad_answer(ho_err *err)
{
    return ho_err_set(err, HO_EPROTO, "the worker's answer is not that of an evaluation");
}

static void print_date(FILE *out, double seconds)
{
    time_t s = (time_t)seconds;
    struct tm tm;
    char text[32] = "?";
    if (isfinite(seconds) && gmtime_r(&s, &tm)) {
        (void)strftime(text, sizeof text, "%Y-%m-%d %H:%M", &tm);
    }
    (void)fputs(text, out);
}

static void print_heads(FILE *out)
{
    (void)fprintf(out, "%-14s %8s", "", "window");
    for (int i = 0; i < SHOWN; i++) {
        (void)fprintf(out, " %13s", ho_metric_name(shown[i]));
    }
    (void)fputc('\n', out);
}

static bool print_row(FILE *out, const char *name, const char *window, const cJSON *result)
{
    ho_metric_set set;
    if (!metrics_of(result, &set)) {
        return false;
    }
    (void)fprintf(out, "%-14s %8s", name, window);
    for (int i = 0; i < SHOWN; i++) {
        char text[32] = "-";
        if (!isnan(set.value[shown[i]])) {
            (void)snprintf(text, sizeof text, "%.4g", set.value[shown[i]]);
        }
        (void)fprintf(out, " %13s", text);
    }
    (void)fputc('\n', out);
    return true;
}

static bool print_runs(FILE *out, const cJSON *runs)
{
    const cJSON *run, *window;
    print_heads(out);
    cJSON_ArrayForEach(run, runs)
    {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(run, "name"));
        const cJSON *windows = cJSON_GetObjectItemCaseSensitive(run, "windows");
        int i = 0;
        cJSON_ArrayForEach(window, windows)
        {
            char number_text[16];
            (void)snprintf(number_text, sizeof number_text, "%d", i++);
            if (cJSON_GetArraySize(windows) > 1 &&
                !print_row(out, name ? name : "?", number_text, window)) {
                return false;
            }
        }
        if (!print_row(out, name ? name : "?", "total",
                       cJSON_GetObjectItemCaseSensitive(run, "total"))) {
            return false;
        }
    }
    return true;
}

/* Where the first run's result came from. */
static void print_parts(FILE *out, const cJSON *run)
{
    const cJSON *total = cJSON_GetObjectItemCaseSensitive(run, "total"), *item;
    const cJSON *exits = cJSON_GetObjectItemCaseSensitive(total, "exits");
    (void)fprintf(out,
                  "\n%s: realised %.2f, fees %.2f, funding %.2f; inside realised: spread %.2f, "
                  "impact %.2f, rounding %.2f; open at the end %.2f\nexits:",
                  cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(run, "name")),
                  number(total, "realised"), number(total, "fees"), number(total, "funding"),
                  number(total, "spread"), number(total, "impact"), number(total, "rounding"),
                  number(total, "open_pnl"));
    int i = 0;
    cJSON_ArrayForEach(item, exits)
    {
        if (i < HO_EXIT_REASONS && item->valuedouble > 0.0) {
            (void)fprintf(out, " %s %.0f", exit_name[i], item->valuedouble);
        }
        i++;
    }
    (void)fputc('\n', out);
}

static void print_actions(FILE *out, const cJSON *run)
{
    static const char *const exposure[HO_EXPOSURES] = {"-1", "-0.5", "0", "+0.5", "+1"};
    static const char *const order[HO_ORDERS] = {"market", "limit", "ioc"};
    const cJSON *total = cJSON_GetObjectItemCaseSensitive(run, "total");
    const cJSON *actions = cJSON_GetObjectItemCaseSensitive(total, "actions"), *item;
    double by_exposure[HO_EXPOSURES] = {0}, by_order[HO_ORDERS] = {0}, all = 0.0;
    int a = 0;
    cJSON_ArrayForEach(item, actions)
    {
        if (a < HO_ACTIONS) {
            by_exposure[a / 9] += item->valuedouble;
            by_order[a / 3 % 3] += item->valuedouble;
            all += item->valuedouble;
        }
        a++;
    }
    if (all == 0.0) {
        return;
    }
    (void)fputs("actions:", out);
    for (int e = 0; e < HO_EXPOSURES; e++) {
        (void)fprintf(out, " %s %.1f %%,", exposure[e], 100.0 * by_exposure[e] / all);
    }
    for (int o = 0; o < HO_ORDERS; o++) {
        (void)fprintf(out, " %s %.1f %%%s", order[o], 100.0 * by_order[o] / all,
                      o + 1 < HO_ORDERS ? "," : "\n");
    }
}

static bool print_costs(FILE *out, const cJSON *costs)
{
    const cJSON *row;
    if (cJSON_GetArraySize(costs) > 0) {
        (void)fputs("\nthe same decisions at other costs:\n", out);
    }
    cJSON_ArrayForEach(row, costs)
    {
        char name[32];
        (void)snprintf(name, sizeof name, "costs x %g", number(row, "factor"));
        if (!print_row(out, name, "total", row)) {
            return false;
        }
    }
    return true;
}

static void print_random(FILE *out, const cJSON *random)
{
    if (random) {
        (void)fprintf(out,
                      "\namong %.0f random policies with its turnover (%.3g of the bars) and "
                      "exposure (%.3g): percentile %.1f\ntheir total returns: %.4g to %.4g, median "
                      "%.4g\n",
                      number(random, "count"), number(random, "turnover"),
                      number(random, "exposure"), 100.0 * number(random, "percentile"),
                      number(random, "total_return_min"), number(random, "total_return_max"),
                      number(random, "total_return_median"));
    }
}

ho_status ho_evaluate_print(FILE *out, const cJSON *answer, ho_err *err)
{
    const cJSON *data = cJSON_GetObjectItemCaseSensitive(answer, "data"), *row;
    const cJSON *runs = cJSON_GetObjectItemCaseSensitive(answer, "runs");
    const cJSON *first = cJSON_GetArrayItem(runs, 0);
    int i = 0;
    (void)fprintf(out, "%.0f bars of %g s, %g sessions a year; %.0f warm-up\n",
                  number(data, "bars"), number(data, "interval_s"),
                  number(data, "sessions_per_year"), number(data, "warmup"));
    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(data, "optimistic_fill"))) {
        (void)fputs(
            "note: env.fill = \"close\": orders fill at the close they are decided on, which "
            "is optimistic\n",
            out);
    }
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(answer, "windows"))
    {
        (void)fprintf(out, "window %d: ", i++);
        print_date(out, number(row, "begin_s"));
        (void)fputs(" to ", out);
        print_date(out, number(row, "end_s"));
        (void)fprintf(out, " (bars %.0f to %.0f), at +1: %g units, notional %.2f, leverage %.3g\n",
                      number(row, "begin"), number(row, "end") - 1, number(row, "quantity"),
                      number(row, "notional"), number(row, "leverage"));
    }
    (void)fputc('\n', out);
    if (!first || !print_runs(out, runs)) {
        return bad_answer(err);
    }
    print_parts(out, first);
    print_actions(out, first);
    ho_metric_set set;
    if (metrics_of(cJSON_GetObjectItemCaseSensitive(first, "total"), &set)) {
        ho_metrics_print_flags(out, set.flags);
    }
    if (!print_costs(out, cJSON_GetObjectItemCaseSensitive(answer, "costs"))) {
        return bad_answer(err);
    }
    print_random(out, cJSON_GetObjectItemCaseSensitive(answer, "random"));
    return HO_OK;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_json(ho_json_out *out, const char *key, const cJSON *item);

/* Everything of a result but its values and reasons, which become named metrics. */
static void put_result(ho_json_out *out, const cJSON *result, const ho_metric_set *set)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, result)
    {
        if (strcmp(item->string, "values") == 0) {
            ho_metrics_json(out, "metrics", set);
        } else if (strcmp(item->string, "flags") == 0) {
            ho_metrics_json_flags(out, "flags", set->flags);
        } else if (strcmp(item->string, "reasons") != 0) {
            put_json(out, item->string, item);
        }
    }
}

static void put_json(ho_json_out *out, const char *key, const cJSON *item)
{
    const cJSON *child;
    ho_metric_set set;
    if (cJSON_IsObject(item) || cJSON_IsArray(item)) {
        char open = cJSON_IsObject(item) ? '{' : '[';
        ho_json_begin(out, key, open);
        if (cJSON_IsObject(item) && metrics_of(item, &set)) {
            put_result(out, item, &set);
        } else {
            cJSON_ArrayForEach(child, item)
            {
                put_json(out, cJSON_IsObject(item) ? child->string : NULL, child);
            }
        }
        ho_json_end(out, open == '{' ? '}' : ']');
    } else if (cJSON_IsBool(item)) {
        ho_json_bool(out, key, cJSON_IsTrue(item));
    } else if (cJSON_IsString(item)) {
        ho_json_text(out, key, item->valuestring);
    } else {
        ho_json_number(out, key, cJSON_IsNumber(item) ? item->valuedouble : NAN);
    }
}

ho_status ho_evaluate_print_json(FILE *out, const cJSON *answer, ho_err *err)
{
    ho_json_out json = {.file = out};
    if (!cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(answer, "runs"), 0)) {
        return bad_answer(err);
    }
    put_json(&json, NULL, answer);
    (void)fputc('\n', out);
    return HO_OK;
}
