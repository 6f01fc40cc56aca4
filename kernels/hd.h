/* SPDX-License-Identifier: Apache-2.0
 * HO_HD marks a function that compiles as C for the CPU backend and as CUDA for host and device.
 * Money code in such functions uses only + - * / sqrt floor ceil and is compiled without
 * contraction (-ffp-contract=off, --fmad=false), so both backends give the same bits. */
#ifndef HO_KERNELS_HD_H
#define HO_KERNELS_HD_H

#ifdef __CUDACC__
#define HO_HD __host__ __device__
#else
#define HO_HD
#endif

#endif
