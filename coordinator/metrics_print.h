/* SPDX-License-Identifier: Apache-2.0
 * A ho_metric_set for people and for programs: every metric with its unit and convention, an
 * undefined one with its reason. Shared by `metrics` and `evaluate`. */
#ifndef HO_COORDINATOR_METRICS_PRINT_H
#define HO_COORDINATOR_METRICS_PRINT_H

#include <stdio.h>

#include "coordinator/json_out.h"
#include "kernels/metrics/metric_table.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One line a metric: name, value or "- (reason)", unit, convention. */
void ho_metrics_print_table(FILE *out, const ho_metric_set *set);

/* "note: ..." for each flag. */
void ho_metrics_print_flags(FILE *out, unsigned flags);

/* "metrics": {"sharpe": {"value": 1.2, "reason": null, "unit": ..., "convention": ...}, ...} */
void ho_metrics_json(ho_json_out *out, const char *key, const ho_metric_set *set);

/* "flags": ["short_sample", ...] */
void ho_metrics_json_flags(ho_json_out *out, const char *key, unsigned flags);

#ifdef __cplusplus
}
#endif
#endif
