/* SPDX-License-Identifier: Apache-2.0
 * Compiled once per instruction set, with HO_SIMD_TABLE naming the table it defines and contraction
 * on: network arithmetic may fuse, money never comes here. */
#include <string.h>

#include "kernels/agents/value.h"
#include "kernels/cpu/simd.h"

#define LEAK ((ho_real)0.01)

extern const ho_simd HO_SIMD_TABLE;

/* Lanes of one vector register, and rows of a tile so that the accumulators stay in registers. */
#if defined(__AVX512F__)
enum { VECTOR_BYTES = 64, TILE_ROWS = 8 };
#elif defined(__AVX2__)
enum { VECTOR_BYTES = 32, TILE_ROWS = 3 };
#else
enum { VECTOR_BYTES = 16, TILE_ROWS = 1 };
#endif
enum { LANES = VECTOR_BYTES / sizeof(ho_real), VECTORS = HO_GEMM_COLUMNS / LANES };

typedef ho_real vec __attribute__((vector_size(VECTOR_BYTES)));
typedef __typeof__((vec){0} > (vec){0}) mask;
typedef ho_real loose
    __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(ho_real)), may_alias));

static inline vec load(const ho_real *p)
{
    return (vec)(*(const loose *)p);
}

static inline void store(ho_real *p, vec x)
{
    *(loose *)p = (loose)x;
}

/* One tile of `rows` x `vectors`, both constants after inlining. */
static inline __attribute__((always_inline)) void tile(const ho_gemm *g, const int rows,
                                                       const int vectors, int32_t m, int32_t n)
{
    const ho_real *a = g->a + m * g->a_row;
    const ho_real *b = g->b + (int64_t)(n / HO_GEMM_COLUMNS) * g->b_panel;
    vec acc[TILE_ROWS][VECTORS];
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < vectors; j++) {
            acc[i][j] = (vec){0};
        }
    }
    for (int32_t k = 0; k < g->K; k++) {
        const ho_real *ak = a + k * g->a_col;
        const ho_real *bk = b + k * g->b_row;
        vec bv[VECTORS];
#pragma GCC unroll 16
        for (int j = 0; j < vectors; j++) {
            bv[j] = load(bk + j * LANES);
        }
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            const ho_real x = ak[i * g->a_row];
#pragma GCC unroll 16
            for (int j = 0; j < vectors; j++) {
                acc[i][j] += x * bv[j];
            }
        }
    }
    const int32_t left = g->N - n;
    for (int i = 0; i < rows; i++) {
        ho_real *c = g->c + (m + i) * g->c_row + n;
        ho_real edge[HO_GEMM_COLUMNS];
        if (left < HO_GEMM_COLUMNS) {
            for (int j = 0; j < HO_GEMM_COLUMNS; j++) {
                edge[j] = g->accumulate && j < left ? c[j] : 0;
            }
        }
        ho_real *out = left < HO_GEMM_COLUMNS ? edge : c;
#pragma GCC unroll 16
        for (int j = 0; j < vectors; j++) {
            vec x = acc[i][j];
            if (g->accumulate) {
                x += load(out + j * LANES);
            }
            if (g->bias) {
                x += load(g->bias + n + j * LANES);
            }
            if (g->leaky) {
                const vec small = x * LEAK;
                const mask above = x > 0;
                x = (vec)((above & (mask)x) | (~above & (mask)small));
            }
            store(out + j * LANES, x);
        }
        if (left < HO_GEMM_COLUMNS) {
            memcpy(c, edge, (size_t)left * sizeof *c);
        }
    }
}

/* The rows of one panel. */
static inline __attribute__((always_inline)) void panel(const ho_gemm *g, const int vectors,
                                                        int32_t n)
{
    int32_t m = 0;
    for (; m + TILE_ROWS <= g->M; m += TILE_ROWS) {
        tile(g, TILE_ROWS, vectors, m, n);
    }
    if (TILE_ROWS > 4 && m + 4 <= g->M) {
        tile(g, TILE_ROWS > 4 ? 4 : 1, vectors, m, n);
        m += 4;
    }
    for (; m < g->M; m++) {
        tile(g, 1, vectors, m, n);
    }
}

static void gemm(const ho_gemm *g)
{
    for (int32_t n = 0; n < g->N; n += HO_GEMM_COLUMNS) {
        if (g->N - n <= HO_GEMM_COLUMNS / 2) { /* a last panel that is half empty */
            panel(g, VECTORS / 2, n);
        } else {
            panel(g, VECTORS, n);
        }
    }
}

static void add(ho_real *x, const ho_real *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        x[i] += y[i];
    }
}

static double square_sum(const ho_real *x, int64_t n)
{
    double part[8] = {0}; /* fixed partial sums, so that the loop is parallel and the order fixed */
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        for (int j = 0; j < 8; j++) {
            part[j] += (double)x[i + j] * (double)x[i + j];
        }
    }
    for (; i < n; i++) {
        part[0] += (double)x[i] * (double)x[i];
    }
    return ((part[0] + part[1]) + (part[2] + part[3])) +
           ((part[4] + part[5]) + (part[6] + part[7]));
}

static void leaky_backward(ho_real *dx, const ho_real *y, ho_real scale, int64_t n)
{
    const ho_real leak = LEAK * scale;
    for (int64_t i = 0; i < n; i++) {
        dx[i] *= y[i] > 0 ? scale : leak;
    }
}

static void adam(const ho_adam *a, const ho_real *gradient, ho_real *parameter, ho_real *m,
                 ho_real *v, ho_real *target, ho_real share, int64_t n)
{
    const ho_adam s = *a;
    for (int64_t i = 0; i < n; i++) {
        ho_adam_step(&s, gradient[i], &parameter[i], &m[i], &v[i]);
    }
    if (target && share > 0) {
        for (int64_t i = 0; i < n; i++) {
            target[i] = ho_target_mix(target[i], parameter[i], share);
        }
    }
}

static void c51_project(ho_real *out, const ho_real *probability, int32_t atoms, ho_real v_max,
                        ho_real reward, ho_real discount)
{
    ho_c51_project(out, probability, atoms, v_max, reward, discount);
}

#define NAME_OF(x) #x
#define NAME(x)    NAME_OF(x)
const ho_simd HO_SIMD_TABLE = {
    .name = NAME(HO_SIMD_TABLE),
    .gemm = gemm,
    .add = add,
    .square_sum = square_sum,
    .leaky_backward = leaky_backward,
    .adam = adam,
    .c51_project = c51_project,
};
