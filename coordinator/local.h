/* SPDX-License-Identifier: Apache-2.0
 * Local workers: child processes of this coordinator, one per GPU or on the CPU, each in its own
 * process group, so that a Ctrl-C of the terminal reaches only the coordinator. One that dies is
 * started again after a pause; one that keeps dying at once is given up. */
#ifndef HO_COORDINATOR_LOCAL_H
#define HO_COORDINATOR_LOCAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_local ho_local;

typedef struct ho_local_options {
    const char *program; /* hyperopt-worker's path; NULL: beside this program, else in PATH */
    const char *endpoint;
    const char *const *gpu; /* [workers] ordinal or UUID of each; NULL: CPU workers */
    int workers;
    int threads;           /* of each CPU worker; 0: its share of the cores */
    int64_t pause_ns;      /* before the first restart; doubles with each death without a hello */
    int give_up;           /* deaths in a row without a hello */
    const char *log_level; /* passed on */
    bool log_json;
} ho_local_options;

/* Defaults: one CPU worker, a second of pause, five deaths. */
ho_local_options ho_local_defaults(void);

/* Starts them. HO_ENOWORKER: the program is not found, or cannot be started. */
ho_status ho_local_create(ho_local **out, const ho_local_options *options, int64_t now_ns,
                          ho_err *err);
/* Ends what still lives: SIGTERM, then after grace_ms SIGKILL; waits for all. */
void ho_local_destroy(ho_local **local, int grace_ms);

/* A worker with this pid said hello: it counts as alive. False when it is none of ours. */
bool ho_local_hello(ho_local *local, pid_t pid);

typedef struct ho_local_death {
    pid_t pid;
    bool greeted;     /* it had said hello */
    bool clean;       /* exit code 0 */
    int code;         /* exit code; -1: killed */
    char reason[128]; /* "killed by signal 9 (Killed)", "exit code 3" */
} ho_local_death;

/* Collects one ended process; false: none. Call after SIGCHLD until it says false. */
bool ho_local_reap(ho_local *local, int64_t now_ns, ho_local_death *out);

/* Starts again those whose pause is over. */
void ho_local_tick(ho_local *local, int64_t now_ns);
/* When the next start is due; INT64_MAX: none. */
int64_t ho_local_next_ns(const ho_local *local);

/* No restarts from here on. */
void ho_local_stop_restarts(ho_local *local);
/* Sends a signal to every living worker. */
void ho_local_signal(ho_local *local, int signal);

int ho_local_alive(const ho_local *local);
/* All have been given up. */
bool ho_local_hopeless(const ho_local *local);

/* Path of a program beside this one ("hyperopt-worker"), or its bare name to be found in PATH. */
void ho_local_program(const char *name, char *out, size_t room);

#ifdef __cplusplus
}
#endif
#endif
