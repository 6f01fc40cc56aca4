/* SPDX-License-Identifier: Apache-2.0
 * Which of the instruction sets that kernels/cpu is compiled for this processor has. Header only,
 * so that `hyperopt check` can say it without linking the backend. */
#ifndef HO_KERNELS_CPU_FEATURES_H
#define HO_KERNELS_CPU_FEATURES_H

#if defined(__x86_64__)
static inline int ho_cpu_has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static inline int ho_cpu_has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
}

static inline int ho_cpu_has_avx512_bf16(void)
{
    return ho_cpu_has_avx512() && __builtin_cpu_supports("avx512bf16");
}
#else
static inline int ho_cpu_has_avx2(void)
{
    return 0;
}

static inline int ho_cpu_has_avx512(void)
{
    return 0;
}

static inline int ho_cpu_has_avx512_bf16(void)
{
    return 0;
}
#endif

#endif
