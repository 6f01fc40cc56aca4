/* SPDX-License-Identifier: Apache-2.0
 * See device_pool.h. The driver returns unused memory of a pool above its release threshold when a
 * stream is waited for, so a release is followed by a wait. */
#include "kernels/cuda/device_pool.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/device.h"

/* HYPEROPT_CUDA_POOL=0: plain cudaMalloc, for tests and for comparing. */
static int pool_wanted(void)
{
    const char *variable = getenv("HYPEROPT_CUDA_POOL");
    return !variable || strcmp(variable, "0") != 0;
}

ho_status ho_device_pool_create(ho_device_pool *out, int device)
{
    int supported = 0;
    uint64_t kept = HO_POOL_KEPT_BYTES;
    memset(out, 0, sizeof *out);
    ho_status rc =
        ho_cuda_status(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, device),
                       "memory pools");
    if (rc != HO_OK || !supported || !pool_wanted()) {
        return rc;
    }
    cudaMemPoolProps props;
    memset(&props, 0, sizeof props);
    props.allocType = cudaMemAllocationTypePinned; /* of a device: not migrated */
    props.handleTypes = cudaMemHandleTypeNone;
    props.location.type = cudaMemLocationTypeDevice;
    props.location.id = device;
    rc = ho_cuda_status(cudaMemPoolCreate(&out->pool, &props), "memory pool");
    if (rc != HO_OK) {
        out->pool = NULL;
        return rc;
    }
    rc = ho_cuda_status(cudaMemPoolSetAttribute(out->pool, cudaMemPoolAttrReleaseThreshold, &kept),
                        "threshold of the memory pool");
    if (rc != HO_OK) {
        ho_device_pool_destroy(out);
    }
    return rc;
}

void ho_device_pool_destroy(ho_device_pool *pool)
{
    if (pool->pool) {
        cudaMemPoolDestroy(pool->pool);
    }
    pool->pool = NULL;
}

ho_status ho_device_pool_take(ho_device_pool *pool, void **out, size_t bytes, cudaStream_t stream,
                              const char *what)
{
    *out = NULL;
    if (bytes == 0) { /* a market without features */
        return HO_OK;
    }
    if (!pool->pool) {
        return ho_cuda_status(cudaMalloc(out, bytes), what);
    }
    ho_status rc = ho_cuda_status(cudaMallocFromPoolAsync(out, bytes, pool->pool, stream), what);
    if (rc != HO_OK) {
        *out = NULL;
        return rc;
    }
    rc = ho_cuda_status(cudaStreamSynchronize(stream), what);
    if (rc != HO_OK) {
        ho_device_pool_release(pool, out, stream);
    }
    return rc;
}

void ho_device_pool_release(ho_device_pool *pool, void **memory, cudaStream_t stream)
{
    if (*memory && pool->pool) {
        cudaFreeAsync(*memory, stream);
        cudaStreamSynchronize(stream);
    } else if (*memory) {
        cudaFree(*memory);
    }
    *memory = NULL;
}

void ho_device_pool_trim(ho_device_pool *pool)
{
    if (pool->pool) {
        cudaMemPoolTrimTo(pool->pool, 0);
    }
}
