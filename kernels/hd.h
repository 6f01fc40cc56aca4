/* SPDX-License-Identifier: Apache-2.0
 * HO_HD marks a function that compiles as C for the CPU backend and as CUDA for host and device.
 * Money code in such functions uses only + - * / sqrt floor ceil and is compiled without
 * contraction (-ffp-contract=off, --fmad=false), so both backends give the same bits. */
#ifndef HO_KERNELS_HD_H
#define HO_KERNELS_HD_H

#include <math.h>

#ifdef __CUDACC__
#define HO_HD __host__ __device__
#else
#define HO_HD
#endif

/* Of a struct's member: at a multiple of 16 bytes, so that a GPU loads and stores its neighbours at
 * once. */
#ifdef __cplusplus
#define HO_ALIGN16 alignas(16)
#else
#define HO_ALIGN16 _Alignas(16)
#endif

/* num / den. The device's division leaves its fast path for a numerator of zero, which a flat
 * position makes the usual one: there a division that takes the fast path is made instead, and a
 * zero of the right sign returned. The bits are those of num / den. The move keeps the compiler,
 * which sees that nobody reads that other quotient, from dividing the zero after all. */
static inline HO_HD double ho_quotient(double num, double den)
{
#ifdef __CUDA_ARCH__
    const int zero = num == 0.0 && den != 0.0 && fabs(den) <= 1.7976931348623157e308;
    double some;
    asm("mov.f64 %0, %1;" : "=d"(some) : "d"(zero ? 1.0 : num));
    const double q = some / den;
    return zero ? num * den : q;
#else
    return num / den;
#endif
}

#endif
