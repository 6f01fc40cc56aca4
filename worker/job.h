/* SPDX-License-Identifier: Apache-2.0
 * Jobs: one command of the coordinator that needs a network or the market (evaluate, verify,
 * holdout, reproduce, null-test), run by a local worker on its compute thread between epochs.
 * A job is a name and arguments as JSON; see ho_msg_job and ho_msg_done. To add one: write
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
#include "study/wire.h"

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
    int32_t auto_batch; /* measured for dqn.batch = "auto"; 0: not measured */
} ho_job_context;

/* What a job gives back: a JSON object and scored windows, as ho_msg_done carries them. Files go by
 * path: jobs run on the coordinator's machine. */
typedef struct ho_job_reply {
    struct cJSON *body; /* or NULL */
    int32_t window_count;
    ho_scored_window *window; /* malloc'ed */
} ho_job_reply;

void ho_job_reply_clear(ho_job_reply *reply);

/* Runs one job. arguments: a JSON object or NULL, not to be kept. reply is empty on entry; on
 * failure the caller clears what is in it, and err's text goes back as the job's failure. */
typedef ho_status ho_job_fn(const ho_job_context *context, const struct cJSON *arguments,
                            ho_job_reply *reply, ho_err *err);

/* name on the wire, function: ho_job_<function> */
#define HO_JOB_MAP(X)                                                                              \
    X("devices", devices)                                                                          \
    X("auto_batch", auto_batch)                                                                    \
    X("train", train)                                                                              \
    X("evaluate", evaluate)                                                                        \
    X("verify", verify)

#define HO_JOB_DECLARE(name, function) ho_job_fn ho_job_##function;
HO_JOB_MAP(HO_JOB_DECLARE)
#undef HO_JOB_DECLARE

/* HO_ENOTFOUND: no job of this name. */
/* The argument "fold", a list of ascending folds of the study (of a trial that was raced and has
 * not run all): into fold [HO_FOLDS_MAX], *count of them; 0 where there is none. HO_EINVAL: not
 * that. */
ho_status ho_job_folds(const struct cJSON *arguments, int32_t *fold, int32_t *count, ho_err *err);

ho_status ho_job_run(const char *name, const ho_job_context *context, const struct cJSON *arguments,
                     ho_job_reply *reply, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
