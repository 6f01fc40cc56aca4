/* SPDX-License-Identifier: Apache-2.0
 * See metrics_print.h. */
#include "coordinator/metrics_print.h"

#include <math.h>
#include <stdio.h>

static const struct {
    unsigned flag;
    const char *name, *text;
} flags_table[] = {
    {HO_FLAG_RUINED, "ruined", "equity reached zero; the series ends there"},
    {HO_FLAG_CENSORED, "censored",
     "the deepest drawdown had not recovered; its times run to the last bar"},
    {HO_FLAG_TAIL_TOO_SMALL, "tail_too_small", "fewer than 5 returns in the 5 % tail of VaR"},
    {HO_FLAG_SHORT_SAMPLE, "short_sample", "under 30 days: CAGR and Calmar explode"},
    {HO_FLAG_NAN_DROPPED, "nan_dropped", "returns without a value were left out"},
    {HO_FLAG_OPEN_POSITION, "open_position",
     "a position was open at the last bar; its exit is inside the last return"},
};

void ho_metrics_print_table(FILE *out, const ho_metric_set *set)
{
    for (int i = 0; i < HO_METRIC_COUNT; i++) {
        ho_metric metric = (ho_metric)i;
        char value[48];
        if (isnan(set->value[i])) {
            (void)snprintf(value, sizeof value, "- (%s)", ho_metric_reason_name(set->reason[i]));
        } else {
            (void)snprintf(value, sizeof value, "%.6g", set->value[i]);
        }
        (void)fprintf(out, "%-18s %18s  %-13s %s\n", ho_metric_name(metric), value,
                      ho_metric_unit(metric), ho_metric_convention(metric));
    }
}

void ho_metrics_print_flags(FILE *out, unsigned flags)
{
    for (size_t i = 0; i < sizeof flags_table / sizeof flags_table[0]; i++) {
        if (flags & flags_table[i].flag) {
            (void)fprintf(out, "note: %s\n", flags_table[i].text);
        }
    }
}

void ho_metrics_json(ho_json_out *out, const char *key, const ho_metric_set *set)
{
    ho_json_begin(out, key, '{');
    for (int i = 0; i < HO_METRIC_COUNT; i++) {
        ho_metric metric = (ho_metric)i;
        ho_json_begin(out, ho_metric_name(metric), '{');
        ho_json_number(out, "value", set->value[i]);
        ho_json_text(out, "reason", set->reason[i] ? ho_metric_reason_name(set->reason[i]) : NULL);
        ho_json_text(out, "unit", ho_metric_unit(metric));
        ho_json_text(out, "convention", ho_metric_convention(metric));
        ho_json_end(out, '}');
    }
    ho_json_end(out, '}');
}

void ho_metrics_json_flags(ho_json_out *out, const char *key, unsigned flags)
{
    ho_json_begin(out, key, '[');
    for (size_t i = 0; i < sizeof flags_table / sizeof flags_table[0]; i++) {
        if (flags & flags_table[i].flag) {
            ho_json_text(out, NULL, flags_table[i].name);
        }
    }
    ho_json_end(out, ']');
}
