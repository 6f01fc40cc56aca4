/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/simd.h"

extern const ho_simd ho_simd_portable;
#ifdef HO_SIMD_X86
extern const ho_simd ho_simd_avx2, ho_simd_avx512;
#endif

const ho_simd *ho_simd_get(void)
{
#ifdef HO_SIMD_X86
    if (__builtin_cpu_supports("avx512f")) {
        return &ho_simd_avx512;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        return &ho_simd_avx2;
    }
#endif
    return &ho_simd_portable;
}
