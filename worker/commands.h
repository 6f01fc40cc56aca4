/* SPDX-License-Identifier: Apache-2.0
 * Trials of a [command] study: each is a run of the user's program, told its parameters by its
 * argument list and telling its progress by JSON lines on standard output:
 *
 *     {"epoch": 3, "value": 0.71}            a report (several objectives: "values": [0.71, 12])
 *     {"result": 0.84}                       the end ("result": [0.84, 12], or {"name": 0.84, ...})
 *
 * Other lines are the program's own business. It succeeds when it has given a result and exits with
 * 0. The environment has HYPEROPT_TRIAL, HYPEROPT_ATTEMPT and HYPEROPT_SEED. A program runs in a
 * process group of its own, which is ended when the trial is pruned, dropped or out of time.
 * One thread. */
#ifndef HO_WORKER_COMMANDS_H
#define HO_WORKER_COMMANDS_H

#include "study/study.h"
#include "study/wire.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_commands ho_commands;

/* values: [count], count is the number of objectives. */
typedef struct ho_commands_sink {
    void *user;
    void (*report)(void *user, int64_t trial, int32_t attempt, int32_t epoch, const double *values,
                   int count);
    void (*finished)(void *user, int64_t trial, int32_t attempt, int32_t epochs, double seconds,
                     const double *values, int count);
    void (*failed)(void *user, int64_t trial, int32_t attempt, ho_fail_class class_id,
                   const char *reason);
} ho_commands_sink;

/* slots: programs at once. folder: where they run, NULL for the current one. The study outlives
 * the object. */
ho_status ho_commands_create(ho_commands **out, const ho_study *study, int slots,
                             const char *folder, const ho_commands_sink *sink, ho_err *err);
/* Ends every program. */
void ho_commands_destroy(ho_commands **commands);

/* HO_EINVAL: not a configuration of the study's space. */
ho_status ho_commands_add(ho_commands *commands, const ho_trial_order *order, ho_err *err);
/* Ends the program; the sink hears nothing. false: no such trial and attempt. */
bool ho_commands_drop(ho_commands *commands, int64_t trial, int32_t attempt);

/* Starts what waits, reads what came within timeout_ms, notes ends. true: trials are left. */
bool ho_commands_step(ho_commands *commands, int timeout_ms);

int ho_commands_running(const ho_commands *commands);
/* Trials held, oldest first: [room]; returns their number. started: whether its program runs. */
typedef struct ho_command_state {
    int64_t trial;
    int32_t attempt;
    bool started;
} ho_command_state;
int ho_commands_list(const ho_commands *commands, ho_command_state *out, int room);

#ifdef __cplusplus
}
#endif
#endif
