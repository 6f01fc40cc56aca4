/* SPDX-License-Identifier: Apache-2.0
 * float16 for the emulator: storage, and conversions that round to nearest, ties to even. */
#ifndef HO_EMULATOR_CUDA_FP16_H
#define HO_EMULATOR_CUDA_FP16_H

#include "cuda_runtime.h"

namespace ho_emu
{
static inline float half_value(uint16_t bits)
{
    const uint32_t sign = (uint32_t)(bits & 0x8000u) << 16, exponent = bits >> 10 & 31u;
    const uint32_t fraction = bits & 0x3ffu;
    if (exponent == 31) { /* infinity, NaN */
        return bits_as<float>(sign | 0x7f800000u | fraction << 13);
    }
    if (exponent == 0) { /* fraction * 2^-24, exactly */
        const float x = (float)fraction * 5.9604644775390625e-8f;
        return sign ? -x : x;
    }
    return bits_as<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

static inline uint16_t half_bits(float x)
{
    const uint32_t u = bits_as<uint32_t>(x), magnitude = u & 0x7fffffffu;
    const uint16_t sign = (uint16_t)(u >> 16 & 0x8000u);
    if (magnitude > 0x7f800000u) {
        return 0x7fff; /* NaN */
    }
    if (magnitude >= 0x477ff000u) { /* rounds to 65,536 or more */
        return sign | 0x7c00u;
    }
    if (magnitude < 0x38800000u) { /* below 2^-14: adding 0.5 leaves the bits in units of 2^-24 */
        const float rounded = bits_as<float>(magnitude) + 0.5f;
        return sign | (uint16_t)(bits_as<uint32_t>(rounded) - 0x3f000000u);
    }
    const uint32_t odd = magnitude >> 13 & 1u;
    return sign | (uint16_t)((magnitude - 0x38000000u + 0xfffu + odd) >> 13);
}
} // namespace ho_emu

struct __half {
    uint16_t bits;
};

static inline __half __float2half_rn(float x)
{
    return {ho_emu::half_bits(x)};
}

static inline float __half2float(__half x)
{
    return ho_emu::half_value(x.bits);
}

static inline unsigned short __half_as_ushort(__half x)
{
    return x.bits;
}

static inline __half __ushort_as_half(unsigned short bits)
{
    return {bits};
}

#endif
