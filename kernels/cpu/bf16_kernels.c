/* SPDX-License-Identifier: Apache-2.0
 * Compiled once per instruction set, with HO_SIMD_TABLE naming the table it defines. Three forms of
 * the same chain (bf16.h): VDPBF16PS; fused multiply-adds that flush by the processor's mode; and
 * plain C in double, where a product and its sum with a float are rounded once to float (53 bits
 * hold at least twice 24 and 2 more: Figueroa 1995). */
#include "kernels/agents/e4m3.h"
#include "kernels/cpu/bf16.h"
#include "kernels/cpu/simd.h"

#if defined(__AVX512BF16__) || defined(__FMA__)
#include <immintrin.h>
#else
#include <math.h>
#endif

#define LEAK 0.01f

extern const ho_bf16_set HO_SIMD_TABLE;

/* Lanes of one vector register, and rows of a tile so that the accumulators stay in registers. */
#if defined(__AVX512F__)
enum { VECTOR_BYTES = 64, TILE_ROWS = 12 };
#elif defined(__AVX2__)
enum { VECTOR_BYTES = 32, TILE_ROWS = 2 };
#else
enum { VECTOR_BYTES = 16, TILE_ROWS = 1 };
#endif
enum { LANES = VECTOR_BYTES / sizeof(float), VECTORS = HO_GEMM_COLUMNS / LANES };

typedef float vec __attribute__((vector_size(VECTOR_BYTES)));
typedef uint32_t bits __attribute__((vector_size(VECTOR_BYTES)));
typedef ho_bf16 half __attribute__((vector_size(VECTOR_BYTES / 2)));
typedef __typeof__((vec){0} > (vec){0}) mask;
typedef float loose_vec
    __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(float)), may_alias));
typedef uint32_t loose_bits
    __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(uint32_t)), may_alias));
typedef ho_bf16 loose_half
    __attribute__((vector_size(VECTOR_BYTES / 2), aligned(sizeof(ho_bf16)), may_alias));

static inline vec load(const float *p)
{
    return (vec)(*(const loose_vec *)p);
}

/* ---- one step of the chain ---- */

#if defined(__AVX512BF16__)
static inline vec step(vec acc, ho_bf16_pair a, bits b)
{
    return (vec)_mm512_dpbf16_ps((__m512)acc, (__m512bh)_mm512_set1_epi32((int)a), (__m512bh)b);
}

static inline uint32_t flush_begin(void)
{
    return 0; /* the instruction flushes by itself */
}

static inline void flush_end(uint32_t mode)
{
    (void)mode;
}

#elif defined(__FMA__)
static inline vec step(vec acc, ho_bf16_pair a, bits b)
{
    const bits high = b & 0xffff0000u, low = b << 16;
    acc += ho_bf16_float((ho_bf16)(a >> 16)) * (vec)high;
    return acc + ho_bf16_float((ho_bf16)a) * (vec)low;
}

static inline uint32_t flush_begin(void)
{
    const uint32_t mode = _mm_getcsr();
    _mm_setcsr(mode | _MM_FLUSH_ZERO_ON);
    return mode;
}

static inline void flush_end(uint32_t mode)
{
    _mm_setcsr(mode);
}

/* a sum is finished before the mode is set back */
#define SETTLE(x) __asm__ volatile("" : "+v"(x))

#else
/* acc + x * y. The bound is half an ulp below 2^-126: from there on a sum rounds to 2^-126. */
static inline float fused(float acc, float x, float y)
{
    const double sum = (double)acc + (double)x * (double)y;
    const float rounded = (float)sum;
    uint32_t u;
    memcpy(&u, &rounded, sizeof u);
    u &= fabs(sum) < 0x1p-126 - 0x1p-151 ? 0x80000000u : 0xffffffffu;
    float out;
    memcpy(&out, &u, sizeof out);
    return out;
}

static inline vec step(vec acc, ho_bf16_pair a, bits b)
{
    const float high = ho_bf16_float((ho_bf16)(a >> 16)), low = ho_bf16_float((ho_bf16)a);
    for (int i = 0; i < LANES; i++) {
        acc[i] = fused(acc[i], high, ho_bf16_float((ho_bf16)(b[i] >> 16)));
    }
    for (int i = 0; i < LANES; i++) {
        acc[i] = fused(acc[i], low, ho_bf16_float((ho_bf16)b[i]));
    }
    return acc;
}

static inline uint32_t flush_begin(void)
{
    return 0;
}

static inline void flush_end(uint32_t mode)
{
    (void)mode;
}
#endif

#ifndef SETTLE
#define SETTLE(x) (void)(x)
#endif

/* ---- the product ---- */

static inline half round_vector(vec x)
{
#if defined(__AVX512BF16__)
    return (half)_mm512_cvtneps_pbh((__m512)x);
#else
    half out;
    for (int i = 0; i < LANES; i++) {
        out[i] = ho_bf16_of(x[i]);
    }
    return out;
#endif
}

static inline vec finish(const ho_bf16_gemm *g, vec x, int32_t n)
{
    if (g->bias) {
        x += load(g->bias + n);
    }
    if (g->leaky) {
        const vec small = x * LEAK;
        const mask above = x > 0;
        x = (vec)((above & (mask)x) | (~above & (mask)small));
    }
    return x;
}

/* Writes one row of a tile: a whole one, or the `left` columns that B still has. */
static inline __attribute__((always_inline)) void put_row(const ho_bf16_gemm *g, const vec *acc,
                                                          const int vectors, int32_t m, int32_t n)
{
    const int32_t left = g->N - n < HO_GEMM_COLUMNS ? g->N - n : HO_GEMM_COLUMNS;
    const int64_t at = m * g->c_row + n;
    if (g->rounded) {
        ho_bf16 edge[HO_GEMM_COLUMNS];
        ho_bf16 *out = left < HO_GEMM_COLUMNS ? edge : g->rounded + at;
#pragma GCC unroll 16
        for (int j = 0; j < vectors; j++) {
            *(loose_half *)(out + j * LANES) =
                (loose_half)round_vector(finish(g, acc[j], n + j * LANES));
        }
        if (left < HO_GEMM_COLUMNS) {
            memcpy(g->rounded + at, edge, (size_t)left * sizeof *edge);
        }
        return;
    }
    float edge[HO_GEMM_COLUMNS];
    if (left < HO_GEMM_COLUMNS) {
        for (int j = 0; j < HO_GEMM_COLUMNS; j++) {
            edge[j] = g->accumulate && j < left ? g->c[at + j] : 0;
        }
    }
    float *out = left < HO_GEMM_COLUMNS ? edge : g->c + at;
#pragma GCC unroll 16
    for (int j = 0; j < vectors; j++) {
        const vec x = g->accumulate ? acc[j] + load(out + j * LANES) : acc[j];
        *(loose_vec *)(out + j * LANES) = (loose_vec)finish(g, x, n + j * LANES);
    }
    if (left < HO_GEMM_COLUMNS) {
        memcpy(g->c + at, edge, (size_t)left * sizeof *edge);
    }
}

/* One tile of `rows` x `vectors`, both constants after inlining. */
static inline __attribute__((always_inline)) void tile(const ho_bf16_gemm *g, const int rows,
                                                       const int vectors, int32_t m, int32_t n)
{
    const ho_bf16_pair *a = g->a + m * g->a_row;
    const ho_bf16_pair *b = g->b + (int64_t)(n / HO_GEMM_COLUMNS) * g->b_panel;
    vec acc[TILE_ROWS][VECTORS];
    const uint32_t mode = flush_begin();
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < vectors; j++) {
            acc[i][j] = (vec){0};
        }
    }
    for (int32_t k = 0; k < g->K; k++) {
        const ho_bf16_pair *ak = a + k * g->a_col;
        const ho_bf16_pair *bk = b + k * g->b_row;
        bits bv[VECTORS];
#pragma GCC unroll 16
        for (int j = 0; j < vectors; j++) {
            bv[j] = (bits)(*(const loose_bits *)(bk + j * LANES));
        }
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            const ho_bf16_pair x = ak[i * g->a_row];
#pragma GCC unroll 16
            for (int j = 0; j < vectors; j++) {
                acc[i][j] = step(acc[i][j], x, bv[j]);
            }
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 16
        for (int j = 0; j < vectors; j++) {
            SETTLE(acc[i][j]);
        }
    }
    flush_end(mode);
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
        put_row(g, acc[i], vectors, m + i, n);
    }
}

/* The rows of one panel. */
static inline __attribute__((always_inline)) void panel(const ho_bf16_gemm *g, const int vectors,
                                                        int32_t n)
{
    int32_t m = 0;
    for (; m + TILE_ROWS <= g->M; m += TILE_ROWS) {
        tile(g, TILE_ROWS, vectors, m, n);
    }
    for (; TILE_ROWS > 4 && m + 4 <= g->M; m += 4) {
        tile(g, TILE_ROWS > 4 ? 4 : 1, vectors, m, n);
    }
    for (; m < g->M; m++) {
        tile(g, 1, vectors, m, n);
    }
}

static void gemm(const ho_bf16_gemm *g)
{
    for (int32_t n = 0; n < g->N; n += HO_GEMM_COLUMNS) {
        if (g->N - n <= HO_GEMM_COLUMNS / 2) { /* a last panel that is half empty */
            panel(g, VECTORS / 2, n);
        } else {
            panel(g, VECTORS, n);
        }
    }
}

/* ---- its inputs ---- */

static void round_all(ho_bf16 *out, const float *x, int64_t n)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        *(loose_half *)(out + i) = (loose_half)round_vector(load(x + i));
    }
    for (; i < n; i++) {
        out[i] = ho_bf16_of(x[i]);
    }
}

/* a where m, else b */
static inline bits select_bits(mask m, bits a, bits b)
{
    return ((bits)m & a) | (~(bits)m & b);
}

/* ho_e4m3_of, a vector at a time. */
static void e4m3(ho_bf16 *x, int64_t n, int32_t scale)
{
    const vec largest = (vec){0} + ho_e4m3_of(INFINITY, scale);
    const bits least = (bits){0} + ((uint32_t)(127 + HO_E4M3_LEAST_EXPONENT + scale) << 23);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const half narrow = (half)(*(const loose_half *)(x + i));
        bits y = __builtin_convertvector(narrow, bits) << 16;
        y = select_bits((vec)y < -largest, (bits)-largest, y);
        y = select_bits((vec)y > largest, (bits)largest, y);
        const bits binade = y & 0x7f800000u;
        const vec rounder =
            (vec)((select_bits((mask)(binade > least), binade, least) + (20u << 23)) | 0x400000u);
        const bits rounded = (bits)(((vec)y + rounder) - rounder);
        *(loose_half *)(x + i) = (loose_half) __builtin_convertvector(rounded >> 16, half);
    }
    for (; i < n; i++) {
        x[i] = (ho_bf16)(ho_e4m3_bits(ho_e4m3_of(ho_bf16_float(x[i]), scale)) >> 16);
    }
}

static void pair(ho_bf16_pair *out, const ho_bf16 *first, const ho_bf16 *second, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        out[i] = (uint32_t)first[i] | (second ? (uint32_t)second[i] << 16 : 0u);
    }
}

static void leaky_backward(float *dx, const ho_bf16 *y, float scale, int64_t n)
{
    const float leak = LEAK * scale;
    for (int64_t i = 0; i < n; i++) {
        dx[i] *= ho_bf16_float(y[i]) > 0 ? scale : leak;
    }
}

#define NAME_OF(x) #x
#define NAME(x)    NAME_OF(x)
const ho_bf16_set HO_SIMD_TABLE = {
    .name = NAME(HO_SIMD_TABLE),
#if defined(__AVX512BF16__)
    .native = 1,
#endif
    .gemm = gemm,
    .round = round_all,
    .e4m3 = e4m3,
    .pair = pair,
    .leaky_backward = leaky_backward,
};
