/* SPDX-License-Identifier: Apache-2.0
 * Device memory of a backend: one stream-ordered pool (cudaMallocAsync) that cohorts, backtests and
 * the market take theirs from. What lies unused beyond HO_POOL_KEPT_BYTES goes back to the device
 * at the next release, so finished trials hold nothing, and short calls reuse what is kept. A
 * device without pools (cudaDevAttrMemoryPoolsSupported) gets cudaMalloc, as HYPEROPT_CUDA_POOL=0
 * does. Belongs to one thread at a time, as the backend. */
#ifndef HO_CUDA_DEVICE_POOL_H
#define HO_CUDA_DEVICE_POOL_H

#include <cuda_runtime.h>
#include <stddef.h>

#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HO_POOL_KEPT_BYTES = 32 << 20 };

typedef struct ho_device_pool {
    cudaMemPool_t pool; /* NULL: cudaMalloc */
} ho_device_pool;

/* Of the current device. */
ho_status ho_device_pool_create(ho_device_pool *out, int device);
/* After every allocation was released. */
void ho_device_pool_destroy(ho_device_pool *pool);

/* Memory for any stream; waits for `stream` (0: the default one). 0 bytes: NULL. HO_ENOMEM: *out is
 * NULL, the device is well. */
ho_status ho_device_pool_take(ho_device_pool *pool, void **out, size_t bytes, cudaStream_t stream,
                              const char *what);
/* Gives *memory back once the work of `stream`, the last that used it, is done; waits for it. Sets
 * *memory to NULL, and accepts NULL there. */
void ho_device_pool_release(ho_device_pool *pool, void **memory, cudaStream_t stream);

/* Gives everything unused back to the device: at the end of a study. */
void ho_device_pool_trim(ho_device_pool *pool);

#ifdef __cplusplus
}
#endif
#endif
