/* SPDX-License-Identifier: Apache-2.0
 * The tiled matrix product under every dense layer of the portable path: one block computes a
 * BM x 64 tile of C = A B, in short floats on tensor cores (mma.sync) or in float32
 * with fused multiply-adds. 256 threads.
 *
 * An operand is stored with its summed dimension contiguous (`K_MAJOR`: rows [m or n][k]) or with
 * the other one contiguous ([k][m or n]); both feed the same product.
 * The sum over k runs from 0 to K in one order that depends on nothing but K, so a tile has the
 * same bits wherever it is computed. There is no split over k. */
#ifndef HO_CUDA_DENSE_TILE_CUH
#define HO_CUDA_DENSE_TILE_CUH

#include <cuda_bf16.h>
#include <stdint.h>

#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/short_float.cuh"

typedef __nv_bfloat16 bf16;

enum { TILE_THREADS = 256, TILE_N = 64 };

/* A matrix operand: `rows` of the outer dimension from `first`, `k` summed elements. */
template <typename T> struct operand {
    const T *data;
    int stride; /* elements between stored rows */
    int first;  /* first row (m or n) of the tile */
    int rows;   /* rows there are: the tile's part beyond is zero */
    int k;      /* multiple of 8 */
};

/* ---- bfloat16 -------------------------------------------------------------------------------- */

enum { BF16_K = 32, BF16_STAGES = 3, BF16_SKEW = 8 /* rows on different banks for ldmatrix */ };

template <int ROWS, bool K_MAJOR> struct bf16_stage {
    static constexpr int stored_rows = K_MAJOR ? ROWS : BF16_K;
    static constexpr int width = K_MAJOR ? BF16_K : ROWS;
    static constexpr int pitch = width + BF16_SKEW;
    static constexpr int elements = stored_rows * pitch;
};

template <int ROWS, bool K_MAJOR>
static __device__ __forceinline__ void bf16_load_stage(bf16 *stage, const operand<bf16> &x, int k0)
{
    typedef bf16_stage<ROWS, K_MAJOR> shape;
    constexpr int chunks_row = shape::width / 8;
    constexpr int chunks = shape::stored_rows * chunks_row;
#pragma unroll
    for (int i = 0; i < (chunks + TILE_THREADS - 1) / TILE_THREADS; i++) {
        const int chunk = i * TILE_THREADS + (int)threadIdx.x;
        if (chunks % TILE_THREADS != 0 && chunk >= chunks) {
            break;
        }
        const int row = chunk / chunks_row;
        const int column = chunk % chunks_row * 8;
        const int outer = x.first + (K_MAJOR ? row : column);
        const int k = k0 + (K_MAJOR ? column : row);
        const bool valid = outer < x.rows && k < x.k;
        const size_t at = K_MAJOR ? (size_t)outer * x.stride + k : (size_t)k * x.stride + outer;
        copy16_async(stage + row * shape::pitch + column, valid ? x.data + at : x.data, valid);
    }
}

/* The A fragment of 16 rows at `m` and 16 summed elements at `k`. */
template <int ROWS, bool K_MAJOR>
static __device__ __forceinline__ void bf16_load_a(uint32_t (&a)[4], const bf16 *stage, int m,
                                                   int k)
{
    typedef bf16_stage<ROWS, K_MAJOR> shape;
    const int l = (int)threadIdx.x & 31;
    if (K_MAJOR) {
        load_matrix4(a, shared_address(stage + (m + (l & 15)) * shape::pitch + k + (l >> 4) * 8));
    } else {
        const int row = k + (l & 7) + (l >> 4) * 8;
        load_matrix4_transposed(
            a, shared_address(stage + row * shape::pitch + m + ((l >> 3) & 1) * 8));
    }
}

/* The B fragments of two groups of 8 columns at `n`: b[0..1] the first, b[2..3] the second. */
template <int ROWS, bool K_MAJOR>
static __device__ __forceinline__ void bf16_load_b(uint32_t (&b)[4], const bf16 *stage, int n,
                                                   int k)
{
    typedef bf16_stage<ROWS, K_MAJOR> shape;
    const int l = (int)threadIdx.x & 31;
    if (K_MAJOR) {
        const int row = n + (l & 7) + (l >> 4) * 8;
        load_matrix4(b, shared_address(stage + row * shape::pitch + k + ((l >> 3) & 1) * 8));
    } else {
        const int row = k + (l & 7) + ((l >> 3) & 1) * 8;
        load_matrix4_transposed(b, shared_address(stage + row * shape::pitch + n + (l >> 4) * 8));
    }
}

/* ---- the tile of one block --------------------------------------------------------------------
 * tile<T, BM>::multiply fills an accumulator; ::visit walks it as pairs of neighbouring columns,
 * f(row, column, v0, v1), with row and column inside the tile. */
template <typename T, int BM> struct tile;

template <int BM> struct tile<bf16, BM> {
    static constexpr int warps_m = BM / 32, warps_n = 8 / warps_m;
    static constexpr int mt = 2, nt = TILE_N / warps_n / 8;
    typedef float accumulator[mt][nt][4];

    template <bool A_K, bool B_K> static constexpr int shared_bytes(void)
    {
        return BF16_STAGES * 2 *
               (bf16_stage<BM, A_K>::elements + bf16_stage<TILE_N, B_K>::elements);
    }

    /* per_stage(A's stage, its pitch, k0) runs on every thread for each 32 summed elements. */
    template <bool A_K, bool B_K, typename F>
    static __device__ __forceinline__ void multiply(accumulator &acc, const operand<bf16> &a,
                                                    const operand<bf16> &b, void *shared,
                                                    F per_stage)
    {
        typedef bf16_stage<BM, A_K> shape_a;
        typedef bf16_stage<TILE_N, B_K> shape_b;
        bf16 *stage_a = (bf16 *)shared;
        bf16 *stage_b = stage_a + BF16_STAGES * shape_a::elements;
        const int warp = (int)threadIdx.x >> 5;
        const int m0 = warp / warps_n * 32, n0 = warp % warps_n * (nt * 8);
        const int steps = (a.k + BF16_K - 1) / BF16_K;
#pragma unroll
        for (int i = 0; i < mt; i++) {
#pragma unroll
            for (int j = 0; j < nt; j++) {
#pragma unroll
                for (int c = 0; c < 4; c++) {
                    acc[i][j][c] = 0.0f;
                }
            }
        }
#pragma unroll
        for (int s = 0; s < BF16_STAGES - 1; s++) {
            if (s < steps) {
                bf16_load_stage<BM, A_K>(stage_a + s * shape_a::elements, a, s * BF16_K);
                bf16_load_stage<TILE_N, B_K>(stage_b + s * shape_b::elements, b, s * BF16_K);
            }
            copies_commit();
        }
        for (int s = 0; s < steps; s++) {
            copies_wait<BF16_STAGES - 2>();
            __syncthreads();
            const int ahead = s + BF16_STAGES - 1;
            if (ahead < steps) {
                const int slot = ahead % BF16_STAGES;
                bf16_load_stage<BM, A_K>(stage_a + slot * shape_a::elements, a, ahead * BF16_K);
                bf16_load_stage<TILE_N, B_K>(stage_b + slot * shape_b::elements, b, ahead * BF16_K);
            }
            copies_commit();
            const bf16 *now_a = stage_a + s % BF16_STAGES * shape_a::elements;
            const bf16 *now_b = stage_b + s % BF16_STAGES * shape_b::elements;
#pragma unroll
            for (int k = 0; k < BF16_K; k += 16) {
                uint32_t fa[mt][4], fb[nt / 2][4];
#pragma unroll
                for (int i = 0; i < mt; i++) {
                    bf16_load_a<BM, A_K>(fa[i], now_a, m0 + i * 16, k);
                }
#pragma unroll
                for (int j = 0; j < nt / 2; j++) {
                    bf16_load_b<TILE_N, B_K>(fb[j], now_b, n0 + j * 16, k);
                }
#pragma unroll
                for (int i = 0; i < mt; i++) {
#pragma unroll
                    for (int j = 0; j < nt; j++) {
                        const uint4 a16 = make_uint4(fa[i][0], fa[i][1], fa[i][2], fa[i][3]);
                        mma_16x8x16(acc[i][j], a16, fb[j / 2][j % 2 * 2], fb[j / 2][j % 2 * 2 + 1]);
                    }
                }
            }
            per_stage(now_a, (int)shape_a::pitch, s * BF16_K);
        }
        copies_wait<0>();
    }

    template <typename F> static __device__ __forceinline__ void visit(accumulator &acc, F f)
    {
        const int warp = (int)threadIdx.x >> 5, l = (int)threadIdx.x & 31;
        const int m0 = warp / warps_n * 32 + (l >> 2), n0 = warp % warps_n * (nt * 8) + l % 4 * 2;
#pragma unroll
        for (int i = 0; i < mt; i++) {
#pragma unroll
            for (int j = 0; j < nt; j++) {
                f(m0 + i * 16, n0 + j * 8, acc[i][j][0], acc[i][j][1]);
                f(m0 + i * 16 + 8, n0 + j * 8, acc[i][j][2], acc[i][j][3]);
            }
        }
    }
};

/* ---- float32 --------------------------------------------------------------------------------- */

enum { F32_K = 16, F32_SKEW = 4 };

/* Stores the stage as [k][row], whatever the order in memory. */
template <int ROWS, bool K_MAJOR>
static __device__ __forceinline__ void f32_load_stage(float *stage, const operand<float> &x, int k0)
{
#pragma unroll
    for (int i = 0; i < ROWS * F32_K / TILE_THREADS; i++) {
        const int at = i * TILE_THREADS + (int)threadIdx.x;
        const int row = K_MAJOR ? at / F32_K : at % ROWS;
        const int k = K_MAJOR ? at % F32_K : at / ROWS;
        const int outer = x.first + row;
        float v = 0.0f;
        if (outer < x.rows && k0 + k < x.k) {
            v = K_MAJOR ? x.data[(size_t)outer * x.stride + k0 + k]
                        : x.data[(size_t)(k0 + k) * x.stride + outer];
        }
        stage[k * (ROWS + F32_SKEW) + row] = v;
    }
}

template <int BM> struct tile<float, BM> {
    static constexpr int rows = BM / 16, columns = 4;
    typedef float accumulator[rows][columns];

    template <bool A_K, bool B_K> static constexpr int shared_bytes(void)
    {
        return F32_K * (BM + F32_SKEW + TILE_N + F32_SKEW) * 4;
    }

    template <bool A_K, bool B_K, typename F>
    static __device__ __forceinline__ void multiply(accumulator &acc, const operand<float> &a,
                                                    const operand<float> &b, void *shared,
                                                    F per_stage)
    {
        float *stage_a = (float *)shared;
        float *stage_b = stage_a + F32_K * (BM + F32_SKEW);
        const int m0 = (int)threadIdx.x / 16 * rows, n0 = (int)threadIdx.x % 16 * columns;
#pragma unroll
        for (int i = 0; i < rows; i++) {
#pragma unroll
            for (int j = 0; j < columns; j++) {
                acc[i][j] = 0.0f;
            }
        }
        for (int k0 = 0; k0 < a.k; k0 += F32_K) {
            __syncthreads();
            f32_load_stage<BM, A_K>(stage_a, a, k0);
            f32_load_stage<TILE_N, B_K>(stage_b, b, k0);
            __syncthreads();
#pragma unroll
            for (int k = 0; k < F32_K; k++) {
                float va[rows], vb[columns];
#pragma unroll
                for (int i = 0; i < rows; i++) {
                    va[i] = stage_a[k * (BM + F32_SKEW) + m0 + i];
                }
#pragma unroll
                for (int j = 0; j < columns; j++) {
                    vb[j] = stage_b[k * (TILE_N + F32_SKEW) + n0 + j];
                }
#pragma unroll
                for (int i = 0; i < rows; i++) {
#pragma unroll
                    for (int j = 0; j < columns; j++) {
                        acc[i][j] = fmaf(va[i], vb[j], acc[i][j]);
                    }
                }
            }
            per_stage(stage_a, BM + F32_SKEW, k0);
        }
    }

    template <typename F> static __device__ __forceinline__ void visit(accumulator &acc, F f)
    {
        const int m0 = (int)threadIdx.x / 16 * rows, n0 = (int)threadIdx.x % 16 * columns;
#pragma unroll
        for (int i = 0; i < rows; i++) {
#pragma unroll
            for (int j = 0; j < columns; j += 2) {
                f(m0 + i, n0 + j, acc[i][j], acc[i][j + 1]);
            }
        }
    }
};

#endif
