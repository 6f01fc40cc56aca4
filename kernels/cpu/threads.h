/* SPDX-License-Identifier: Apache-2.0
 * The number of OpenMP threads a CPU backend was opened with. */
#ifndef HO_KERNELS_CPU_THREADS_H
#define HO_KERNELS_CPU_THREADS_H

#include "kernels/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

int ho_cpu_threads(const ho_backend *backend);

#ifdef __cplusplus
}
#endif
#endif
