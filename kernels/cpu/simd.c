/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/simd.h"

#include "kernels/cpu/features.h"

extern const ho_simd ho_simd_portable;
#ifdef HO_SIMD_X86
extern const ho_simd ho_simd_avx2, ho_simd_avx512;
#endif

int ho_simd_all(const ho_simd **out)
{
    int n = 0;
#ifdef HO_SIMD_X86
    if (ho_cpu_has_avx512()) {
        out[n++] = &ho_simd_avx512;
    }
    if (ho_cpu_has_avx2()) {
        out[n++] = &ho_simd_avx2;
    }
#endif
    out[n++] = &ho_simd_portable;
    return n;
}

const ho_simd *ho_simd_get(void)
{
    const ho_simd *all[HO_SIMD_SETS_MAX];
    (void)ho_simd_all(all);
    return all[0];
}
