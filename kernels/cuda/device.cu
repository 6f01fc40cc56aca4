/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cuda/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static thread_local char last_failure[512];

ho_status ho_cuda_status(cudaError_t error, const char *what)
{
    if (error == cudaSuccess) {
        return HO_OK;
    }
    snprintf(last_failure, sizeof last_failure, "%s: %s (%s)", what, cudaGetErrorString(error),
             cudaGetErrorName(error));
    (void)cudaGetLastError(); /* a failure that is not sticky must not be met again */
    return error == cudaErrorMemoryAllocation ? HO_ENOMEM : HO_EGPU;
}

ho_status ho_cuda_err(ho_status status, ho_err *err)
{
    if (status != HO_OK && last_failure[0]) {
        ho_err_set(err, status, "GPU: %s", last_failure);
        last_failure[0] = 0;
    }
    return status;
}

static long waits;

ho_status ho_cuda_wait(cudaStream_t stream, const char *what)
{
    waits++;
    return ho_cuda_status(cudaStreamSynchronize(stream), what);
}

ho_status ho_cuda_wait_event(cudaEvent_t event, const char *what)
{
    waits++;
    return ho_cuda_status(cudaEventSynchronize(event), what);
}

long ho_cuda_wait_count(void)
{
    return waits;
}

int ho_cuda_racecheck(void)
{
    const char *wanted = getenv("HYPEROPT_CUDA_RACECHECK");
    return wanted && strcmp(wanted, "0") != 0;
}
