/* SPDX-License-Identifier: Apache-2.0
 * Jobs: one command of the coordinator that needs a network or the market (evaluate, verify,
 * holdout, reproduce, null-test), run by a local worker on its compute thread between epochs.
 * A job is a name, arguments as JSON and binary parts; so is its reply. To add one: write
 * ho_job_<name> in job_<name>.c and add a row to HO_JOB_MAP. */
#ifndef HO_WORKER_JOB_H
#define HO_WORKER_JOB_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/backend.h"
#include "market/bars.h"
#include "market/features.h"
#include "study/folds.h"
#include "study/study.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;

/* What the worker has loaded. Everything but the backend is NULL before a study came. */
typedef struct ho_job_context {
    ho_backend *backend;
    ho_market *market; /* of the study's bars and features, on the backend */
    const ho_study *study;
    const ho_bars *bars;
    const ho_features *features;
    const ho_fold_plan *folds;
} ho_job_context;

typedef struct ho_job_part {
    void *data;
    size_t size;
} ho_job_part;

typedef struct ho_job_parts {
    int count;
    ho_job_part *part; /* malloc'ed, each data too */
} ho_job_parts;

/* Appends a copy. HO_ENOMEM. */
ho_status ho_job_parts_add(ho_job_parts *parts, const void *data, size_t size, ho_err *err);
void ho_job_parts_free(ho_job_parts *parts);

/* Runs one job. arguments: a JSON object, not to be kept. *reply: a JSON object that the caller
 * deletes; out: cleared on entry, the caller frees it. A failure goes back to the coordinator as
 * the job's failure, with err's text. */
typedef ho_status ho_job_fn(const ho_job_context *context, const struct cJSON *arguments,
                            const ho_job_parts *in, struct cJSON **reply, ho_job_parts *out,
                            ho_err *err);

/* name: runs ho_job_<name> */
#define HO_JOB_MAP(X) X(devices)

#define HO_JOB_DECLARE(name) ho_job_fn ho_job_##name;
HO_JOB_MAP(HO_JOB_DECLARE)
#undef HO_JOB_DECLARE

/* HO_ENOTFOUND: no job of this name. */
ho_status ho_job_run(const char *name, const ho_job_context *context, const struct cJSON *arguments,
                     const ho_job_parts *in, struct cJSON **reply, ho_job_parts *out, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
