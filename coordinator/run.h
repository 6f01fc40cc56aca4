/* SPDX-License-Identifier: Apache-2.0
 * One run of a study, from its file to the end: opens or makes the database, resumes, serves, and
 * leaves the study's row saying how it ended. cmd_run.c and cmd_serve.c call it. */
#ifndef HO_COORDINATOR_RUN_H
#define HO_COORDINATOR_RUN_H

#include "coordinator/commands.h"
#include "coordinator/setup.h"
#include "coordinator/store.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_run_options {
    const char *study;    /* path of the study file */
    const char *database; /* NULL: the study says */
    int64_t more_trials;  /* on top of what the study has; 0: none */
    const ho_option_list *set;
    const char *listen, *curve; /* NULL: the study says */
    bool insecure, no_local, cpu, allow_change, quiet;
    bool linger;     /* stay after the end until a signal, for those who restart what exits */
    int64_t workers; /* local ones; 0: the study says */
    /* Asked now and then while it runs; true: let running trials end, then stop, to be resumed
     * later (`serve`). May be NULL. */
    bool (*yield)(void *user);
    /* Asked at the end, `yielded` as in ho_run_end: whether another study follows on the same
     * address, for which remote workers stay. NULL: none does. */
    bool (*follows)(bool yielded, void *user);
    /* Changes settings after the file and `set`, before the data is loaded (null-test); or NULL. */
    ho_setup_adjust *adjust;
    void *user;
} ho_run_options;

typedef struct ho_run_end {
    char database[4096];
    char reason[64];    /* why it ended: "trials", "interrupted", ... */
    bool nothing_to_do; /* it had ended before */
    bool yielded;
    int64_t complete, finished_here;
} ho_run_end;

/* HO_OK: the study has ended. HO_ECANCELLED: interrupted, resumable. Else as the parts fail. */
ho_status ho_run(const ho_run_options *options, ho_run_end *end, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
