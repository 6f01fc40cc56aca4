/* SPDX-License-Identifier: Apache-2.0
 * Which local workers a study gets: workers.gpus, workers.count, and the GPUs that this machine's
 * hyperopt-worker can use. The coordinator itself knows no CUDA: it asks the worker program. */
#ifndef HO_COORDINATOR_GPUS_H
#define HO_COORDINATOR_GPUS_H

#include "study/settings.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HO_LOCAL_GPUS_MAX = 64 };

typedef struct ho_local_devices {
    int workers; /* processes to start */
    bool cpu;    /* CPU backend; else gpu holds what to pass to each */
    char gpu[HO_LOCAL_GPUS_MAX][64];
    const char *gpu_list[HO_LOCAL_GPUS_MAX]; /* into gpu */
} ho_local_devices;

typedef struct ho_devices_question ho_devices_question;

/* Asks the worker program for this machine's devices without waiting for its answer, which takes a
 * GPU's driver some hundred milliseconds: as soon as the settings are known. NULL: nothing is to be
 * asked, or it could not be. */
ho_devices_question *ho_devices_ask(const ho_settings *settings, bool cpu);
/* Leaves the answer. NULL is fine. */
void ho_devices_forget(ho_devices_question **question);

/* question: its answer is waited for and it is ended; NULL: asked now. The rest as below. */
ho_status ho_local_devices_answered(const ho_settings *settings, bool cpu,
                                    ho_devices_question **question, ho_local_devices *out,
                                    ho_err *err);

/* cpu: asked for on the command line. HO_ENOWORKER: the program cannot be started, or a GPU that
 * the study names is not there. */
ho_status ho_local_devices_find(const ho_settings *settings, bool cpu, ho_local_devices *out,
                                ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
