/* SPDX-License-Identifier: Apache-2.0
 * bfloat16 for the emulator: storage, and conversions that round to nearest, ties to even. */
#ifndef HO_EMULATOR_CUDA_BF16_H
#define HO_EMULATOR_CUDA_BF16_H

#include "cuda_runtime.h"

namespace ho_emu
{
static inline uint16_t bf16_bits(float x)
{
    const uint32_t u = bits_as<uint32_t>(x);
    if ((u & 0x7fffffffu) > 0x7f800000u) {
        return 0x7fff; /* NaN */
    }
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

static inline float bf16_value(uint16_t bits)
{
    return bits_as<float>((uint32_t)bits << 16);
}
} // namespace ho_emu

struct __nv_bfloat16 {
    uint16_t bits;

    __nv_bfloat16() = default;
    __nv_bfloat16(float x) : bits(ho_emu::bf16_bits(x))
    {
    }
    operator float() const
    {
        return ho_emu::bf16_value(bits);
    }
};

struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
};

static inline __nv_bfloat16 __float2bfloat16(float x)
{
    return __nv_bfloat16(x);
}

static inline __nv_bfloat16 __float2bfloat16_rn(float x)
{
    return __nv_bfloat16(x);
}

static inline float __bfloat162float(__nv_bfloat16 x)
{
    return ho_emu::bf16_value(x.bits);
}

static inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y)
{
    return {__nv_bfloat16(x), __nv_bfloat16(y)};
}

static inline __nv_bfloat162 __float22bfloat162_rn(float2 v)
{
    return __floats2bfloat162_rn(v.x, v.y);
}

static inline __nv_bfloat162 __float2bfloat162_rn(float x)
{
    return __floats2bfloat162_rn(x, x);
}

static inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y)
{
    return {x, y};
}

static inline float2 __bfloat1622float2(__nv_bfloat162 v)
{
    return {__bfloat162float(v.x), __bfloat162float(v.y)};
}

static inline float __low2float(__nv_bfloat162 v)
{
    return __bfloat162float(v.x);
}

static inline float __high2float(__nv_bfloat162 v)
{
    return __bfloat162float(v.y);
}

static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x)
{
    return x.bits;
}

static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits)
{
    __nv_bfloat16 x;
    x.bits = bits;
    return x;
}

#endif
