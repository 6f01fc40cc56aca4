/* SPDX-License-Identifier: Apache-2.0
 * The number type of networks and losses: float, on both backends. HO_REAL_F64 makes it double:
 * the tests compile the same sources so, since finite differences mean little in float32. */
#ifndef HO_KERNELS_AGENTS_REAL_H
#define HO_KERNELS_AGENTS_REAL_H

#include <math.h>

#ifdef HO_REAL_F64
typedef double ho_real;
#define ho_real_exp  exp
#define ho_real_log  log
#define ho_real_sqrt sqrt
#define ho_real_abs  fabs
#else
typedef float ho_real;
#define ho_real_exp  expf
#define ho_real_log  logf
#define ho_real_sqrt sqrtf
#define ho_real_abs  fabsf
#endif

#endif
