/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/bf16.h"

#include "kernels/cpu/features.h"
#include "kernels/cpu/simd.h"

extern const ho_bf16_set ho_bf16_portable;
#ifdef HO_SIMD_X86
extern const ho_bf16_set ho_bf16_avx2, ho_bf16_avx512, ho_bf16_avx512bf16;
#endif

int ho_bf16_all(const ho_bf16_set **out)
{
    int n = 0;
#ifdef HO_SIMD_X86
    if (ho_cpu_has_avx512_bf16()) {
        out[n++] = &ho_bf16_avx512bf16;
    }
    if (ho_cpu_has_avx512()) {
        out[n++] = &ho_bf16_avx512;
    }
    if (ho_cpu_has_avx2()) {
        out[n++] = &ho_bf16_avx2;
    }
#endif
    out[n++] = &ho_bf16_portable;
    return n;
}

const ho_bf16_set *ho_bf16_get(void)
{
    const ho_bf16_set *all[HO_SIMD_SETS_MAX];
    (void)ho_bf16_all(all);
    return all[0];
}
