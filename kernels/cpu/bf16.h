/* SPDX-License-Identifier: Apache-2.0
 * Products of bf16 numbers summed in float32, and what prepares their inputs; compiled once per
 * instruction set (bf16_kernels.c) and chosen at run time. All are single-threaded.
 *
 * Numbers go in pairs, so K counts pairs. An output of ho_bf16 gemm is one chain over the pairs in
 * ascending order, each taking its second product first:
 *     acc = flush(acc + a[2k + 1] * b[2k + 1]);  acc = flush(acc + a[2k] * b[2k])
 * every line rounded once to nearest even; flush makes a result below 2^-126 in magnitude a zero of
 * its sign. That is what VDPBF16PS (AVX512_BF16) computes, and the portable form gives the same
 * bits, NaN's payload aside. A row's result depends on that row alone. */
#ifndef HO_KERNELS_CPU_BF16_H
#define HO_KERNELS_CPU_BF16_H

#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint16_t ho_bf16;
/* Two neighbours, the first in the low half; also how two consecutive ho_bf16 are read. */
typedef uint32_t ho_bf16_pair __attribute__((may_alias));

/* To nearest even; what is below 2^-126 becomes a zero, NaN a quiet NaN (as VCVTNEPS2BF16). */
static inline ho_bf16 ho_bf16_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    const uint32_t magnitude = u & 0x7fffffffu;
    const uint32_t nearest = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    const uint32_t quiet = (u >> 16) | 0x40u;
    const uint32_t zero = (u >> 16) & 0x8000u;
    return (ho_bf16)(magnitude > 0x7f800000u ? quiet : magnitude < 0x00800000u ? zero : nearest);
}

static inline float ho_bf16_float(ho_bf16 x)
{
    const uint32_t u = (uint32_t)x << 16;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* C[M, N] (+)= A * B, then optionally bias and LeakyReLU(0.01), in float32.
 * Pair k of row m of A is a[m * a_row + k * a_col]. B comes in panels of HO_GEMM_COLUMNS columns:
 * pair k of column n is b[(n / 32) * b_panel + k * b_row + n % 32]; its last panel is whole.
 * Inputs are ho_bf16_of of something. The result goes to c, or rounded to `rounded`; both are
 * row-major, c_row apart, and only N columns are written. */
typedef struct ho_bf16_gemm {
    int32_t M, N, K;
    const ho_bf16_pair *a;
    int64_t a_row, a_col;
    const ho_bf16_pair *b;
    int64_t b_row, b_panel;
    float *c; /* NULL: the result is wanted rounded */
    ho_bf16 *rounded;
    int64_t c_row;
    int32_t accumulate; /* add to c */
    int32_t leaky;      /* LeakyReLU after the bias */
    const float *bias;  /* [N padded to 32], or NULL */
} ho_bf16_gemm;

typedef struct ho_bf16_set {
    const char *name;
    int native; /* the processor's own bf16 products */
    void (*gemm)(const ho_bf16_gemm *g);
    /* out[i] = ho_bf16_of(x[i]) */
    void (*round)(ho_bf16 *out, const float *x, int64_t n);
    /* x[i] = ho_e4m3_of(x[i], scale), which is exact in bf16 (kernels/agents/e4m3.h) */
    void (*e4m3)(ho_bf16 *x, int64_t n, int32_t scale);
    /* out[i] = (first[i], second[i]); second NULL: zeros */
    void (*pair)(ho_bf16_pair *out, const ho_bf16 *first, const ho_bf16 *second, int64_t n);
    /* dx[i] *= y[i] > 0 ? scale : 0.01 * scale: back through LeakyReLU by its rounded output y */
    void (*leaky_backward)(float *dx, const ho_bf16 *y, float scale, int64_t n);
} ho_bf16_set;

/* The best set this processor runs. */
const ho_bf16_set *ho_bf16_get(void);

/* All sets that it runs, best first, into out[HO_SIMD_SETS_MAX]; returns how many. For tests. */
int ho_bf16_all(const ho_bf16_set **out);

#ifdef __cplusplus
}
#endif
#endif
