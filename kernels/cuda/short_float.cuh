/* SPDX-License-Identifier: Apache-2.0
 * The 16-bit float that products take: bfloat16 or, where the tensor cores have none (before
 * sm_80), float16 in the same place. The type is __nv_bfloat16 in either case and stands for 16
 * bits: whoever reads or writes one does it through these functions.
 *
 * float16 ends at 65,504, beyond which a value is infinite and the guard stops its lane, and below
 * 6.1e-5 it loses digits. Gradients of outputs, which are a batch's mean, would lie there: in
 * float16 they are kept times HO_DELTA_SCALE through the backward pass, a power of two that
 * dense_gradient takes out again. Weights, activations and moments need none. */
#ifndef HO_CUDA_SHORT_FLOAT_CUH
#define HO_CUDA_SHORT_FLOAT_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

/* HO_EMULATED_SM75: the emulator as such a device. */
#if (defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800) || defined(HO_EMULATED_SM75)
#define HO_SHORT_IS_FLOAT16 1
#else
#define HO_SHORT_IS_FLOAT16 0
#endif

#define HO_DELTA_SCALE 1024.0f

static __device__ __forceinline__ __nv_bfloat16 short_of(float x)
{
#if HO_SHORT_IS_FLOAT16
    return __ushort_as_bfloat16(__half_as_ushort(__float2half_rn(x)));
#else
    return __float2bfloat16(x);
#endif
}

static __device__ __forceinline__ __nv_bfloat162 shorts_of(float x, float y)
{
#if HO_SHORT_IS_FLOAT16
    return __halves2bfloat162(short_of(x), short_of(y));
#else
    return __floats2bfloat162_rn(x, y);
#endif
}

static __device__ __forceinline__ float float_of(__nv_bfloat16 x)
{
#if HO_SHORT_IS_FLOAT16
    return __half2float(__ushort_as_half(__bfloat16_as_ushort(x)));
#else
    return __bfloat162float(x);
#endif
}

static __device__ __forceinline__ float float_of(float x)
{
    return x;
}

/* What deltas of type T are kept times. */
template <typename T> static __device__ __forceinline__ constexpr float delta_scale(void)
{
    return sizeof(T) == 2 && HO_SHORT_IS_FLOAT16 ? HO_DELTA_SCALE : 1.0f;
}

#endif
