/* SPDX-License-Identifier: Apache-2.0
 * The few inner loops that take the time, compiled once per instruction set (simd.c) and chosen at
 * run time. All are single-threaded.
 * An output of ho_gemm is one chain of additions over k in ascending order, whatever the tile it
 * falls into: a row's result depends on that row alone, bit for bit. */
#ifndef HO_KERNELS_CPU_SIMD_H
#define HO_KERNELS_CPU_SIMD_H

#include <stdint.h>

#include "kernels/agents/optim.h"
#include "kernels/agents/real.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Columns of a tile of ho_gemm: B and padded rows are multiples of it. */
enum { HO_GEMM_COLUMNS = 32 };

/* C[M, N] (+)= A * B, then optionally bias and LeakyReLU(0.01).
 * A(m, k) = a[m * a_row + k * a_col]. B comes in panels of HO_GEMM_COLUMNS columns: element (k, n)
 * is b[(n / 32) * b_panel + k * b_row + n % 32]; its last panel is whole (padding is read).
 * c: row-major, c_row apart; only N columns are written. */
typedef struct ho_gemm {
    int32_t M, N, K;
    const ho_real *a;
    int64_t a_row, a_col;
    const ho_real *b;
    int64_t b_row, b_panel;
    ho_real *c;
    int64_t c_row;
    int32_t accumulate;  /* add to C */
    int32_t leaky;       /* LeakyReLU after the bias */
    const ho_real *bias; /* [N padded to 32], or NULL */
} ho_gemm;

typedef struct ho_simd {
    const char *name;
    void (*gemm)(const ho_gemm *g);
    /* x[i] += y[i] */
    void (*add)(ho_real *x, const ho_real *y, int64_t n);
    /* sum of x[i]^2, in double */
    double (*square_sum)(const ho_real *x, int64_t n);
    /* dx[i] *= y[i] > 0 ? scale : 0.01 * scale: back through LeakyReLU by its output y */
    void (*leaky_backward)(ho_real *dx, const ho_real *y, ho_real scale, int64_t n);
    /* one Adam step of n parameters, then the target's share of them; target may be NULL */
    void (*adam)(const ho_adam *adam, const ho_real *gradient, ho_real *parameter, ho_real *m,
                 ho_real *v, ho_real *target, ho_real share, int64_t n);
    /* out = C51 projection of n atoms, as ho_c51_project */
    void (*c51_project)(ho_real *out, const ho_real *probability, int32_t atoms, ho_real v_max,
                        ho_real reward, ho_real discount);
} ho_simd;

enum { HO_SIMD_SETS_MAX = 4 };

/* The best set this processor runs. */
const ho_simd *ho_simd_get(void);

/* All sets that it runs, best first, into out[HO_SIMD_SETS_MAX]; returns how many. For tests. */
int ho_simd_all(const ho_simd **out);

#ifdef __cplusplus
}
#endif
#endif
