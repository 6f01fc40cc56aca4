/* SPDX-License-Identifier: Apache-2.0
 * CUDA errors as statuses. Every CUDA call goes through one of these, every launch is followed by
 * ho_cuda_status(cudaGetLastError(), "kernel"). */
#ifndef HO_CUDA_DEVICE_H
#define HO_CUDA_DEVICE_H

#include <cuda_runtime.h>

#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* HO_OK, HO_ENOMEM (out of device memory), else HO_EGPU. Keeps the text of a failure of this thread
 * for ho_cuda_err. */
ho_status ho_cuda_status(cudaError_t error, const char *what);

/* Fills err from this thread's last failed ho_cuda_status; returns status. */
ho_status ho_cuda_err(ho_status status, ho_err *err);

/* Waits for a stream; counted, so that the bench can show how often an epoch makes the host wait.
 */
ho_status ho_cuda_wait(cudaStream_t stream, const char *what);
ho_status ho_cuda_wait_event(cudaEvent_t event, const char *what);
long ho_cuda_wait_count(void);

/* HYPEROPT_CUDA_RACECHECK=1: blocks whose parts meet apart have two barriers where all of them
 * meet. One gives the order, but racecheck loses sight of it where a part met in between
 * (docs/gpu.md). */
int ho_cuda_racecheck(void);

#ifdef __cplusplus
}
#endif
#endif
