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

/* cpu: asked for on the command line. HO_ENOWORKER: the program cannot be started, or a GPU that
 * the study names is not there. */
ho_status ho_local_devices_find(const ho_settings *settings, bool cpu, ho_local_devices *out,
                                ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
