/* SPDX-License-Identifier: Apache-2.0
 * What kernels that work on a row with one warp share: a number into an array of the network's
 * type, sums and maxima over the warp in one order, by halves. */
#ifndef HO_CUDA_ROW_OPS_CUH
#define HO_CUDA_ROW_OPS_CUH

#include "kernels/cuda/short_float.cuh"

static __device__ __forceinline__ void put(float *to, float x)
{
    *to = x;
}

static __device__ __forceinline__ void put(__nv_bfloat16 *to, float x)
{
    *to = short_of(x);
}

/* The gradient x of an output. */
template <typename T> static __device__ __forceinline__ void put_delta(T *to, float x)
{
    put(to, delta_scale<T>() * x);
}

static __device__ __forceinline__ float warp_sum(float x)
{
    for (int step = 16; step > 0; step >>= 1) {
        x += __shfl_xor_sync(0xffffffffu, x, step);
    }
    return x;
}

static __device__ __forceinline__ float warp_max(float x)
{
    for (int step = 16; step > 0; step >>= 1) {
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    }
    return x;
}

#endif
