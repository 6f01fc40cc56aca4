/* SPDX-License-Identifier: Apache-2.0
 * The answer of the worker's "evaluate" job (worker/job_evaluate.c) for people and for programs. */
#ifndef HO_COORDINATOR_EVALUATE_PRINT_H
#define HO_COORDINATOR_EVALUATE_PRINT_H

#include <stdio.h>

#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;

/* HO_EPROTO: the answer has not the form it should have. */
ho_status ho_evaluate_print(FILE *out, const struct cJSON *answer, ho_err *err);

/* The same as JSON: every metric by name with value, reason, unit and convention. */
ho_status ho_evaluate_print_json(FILE *out, const struct cJSON *answer, ho_err *err);

/* "0,0.5,1": the list of --costs, here and in `verify`. HO_EUSAGE: not numbers from 0 to 1000, or
 * more than room. */
ho_status ho_costs_parse(const char *text, double *out, int room, int *count, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
