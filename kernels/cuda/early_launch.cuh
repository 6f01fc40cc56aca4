/* SPDX-License-Identifier: Apache-2.0
 * Launches with programmatic stream serialization: the kernel may start while the one before it
 * still runs, up to its grid_wait (hopper.cuh). */
#ifndef HO_CUDA_EARLY_LAUNCH_CUH
#define HO_CUDA_EARLY_LAUNCH_CUH

#include <cuda_runtime.h>

/* early: 0 is an ordinary launch. */
template <typename... parameter>
static cudaError_t launch_early(void (*kernel)(parameter...), dim3 grid, unsigned threads,
                                size_t bytes, cudaStream_t stream, int early,
                                parameter... arguments)
{
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = bytes;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = early ? 1 : 0;
    return cudaLaunchKernelEx(&config, kernel, arguments...);
}

#endif
