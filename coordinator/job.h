/* SPDX-License-Identifier: Apache-2.0
 * One command that needs a network or the market, run by a local worker: the coordinator starts a
 * worker, gives it the study, one `job` message, and takes its answer. Used by evaluate, verify,
 * holdout, reproduce and the like; the worker's side is worker/job.h. */
#ifndef HO_COORDINATOR_JOB_H
#define HO_COORDINATOR_JOB_H

#include "coordinator/setup.h"
#include "study/wire.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;

typedef struct ho_job_request {
    const char *command;           /* name of a row of the worker's HO_JOB_MAP */
    const struct cJSON *arguments; /* an object, or NULL */
    const ho_setup *setup;         /* the study whose market the job needs; NULL: none */
    bool cpu;                      /* on the CPU backend even where there is a GPU */
    /* Called while waiting, at least once a second; may be NULL. */
    void (*waiting)(double seconds, void *user);
    void *user;
} ho_job_request;

typedef struct ho_job_answer {
    struct cJSON *body; /* object; NULL when the job gave none */
    int window_count;
    ho_scored_window *window; /* [window_count] */
} ho_job_answer;

/* Blocks until the answer is there. The status of a job that failed is the worker's, with its
 * reason in err. HO_ENOWORKER: no worker could be started, or it died (err says how).
 * Cleared on entry; free with ho_job_answer_free. */
ho_status ho_job_call(const ho_job_request *request, ho_job_answer *out, ho_err *err);
void ho_job_answer_free(ho_job_answer *answer);

#ifdef __cplusplus
}
#endif
#endif
