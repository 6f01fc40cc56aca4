/* SPDX-License-Identifier: Apache-2.0
 * kernels/cuda/ptx.cuh for the emulator: the same functions in C++. Fragments lie in a warp's
 * registers as the PTX ISA says (m16n8k16: lane l holds rows l / 4 and l / 4 + 8, columns 2 (l % 4)
 * and the next). The product sums k in order, in float32; tensor cores order and round otherwise.
 */
#ifndef HO_CUDA_PTX_CUH
#define HO_CUDA_PTX_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

static inline uint32_t shared_address(const void *p)
{
    return ho_emu::shared_address(p);
}

/* ---- asynchronous copies ---- */

static inline void copy16_async(void *dst, const void *src)
{
    ho_emu::copy_later(ho_emu::shared_pointer(shared_address(dst), 16), src);
}

static inline void copy16_async(void *dst, const void *src, bool valid)
{
    ho_emu::copy_later(ho_emu::shared_pointer(shared_address(dst), 16), valid ? src : NULL);
}

static inline void copy8_async(void *dst, const void *src)
{
    ho_emu::copy_later(ho_emu::shared_pointer(shared_address(dst), 8), src, 8);
}

static inline void copies_commit(void)
{
    ho_emu::copies_close();
}

template <int PENDING> static inline void copies_wait(void)
{
    ho_emu::copies_wait(PENDING);
}

/* ---- fragments ---- */

namespace ho_emu
{
struct matrix_load {
    const uint16_t *row; /* of matrix lane / 8, row lane % 8 */
    uint32_t *r;
    bool transposed;
};

static inline void load_matrices(uint32_t (&r)[4], uint32_t address, bool transposed)
{
    matrix_load mine = {(const uint16_t *)shared_pointer(address, 16), r, transposed};
    touch(mine.row, 16);
    if (address % 16 != 0) {
        fault("ldmatrix: address %u is no multiple of 16", address);
    }
    join(0xffffffffu, transposed ? "ldmatrix.trans" : "ldmatrix", &mine, [](void *const lane[32]) {
        for (int l = 0; l < 32; l++) {
            if (!lane[l]) {
                fault("ldmatrix: lane %d has returned", l);
            }
        }
        for (int l = 0; l < 32; l++) {
            const matrix_load *to = (const matrix_load *)lane[l];
            for (int m = 0; m < 4; m++) {
                uint32_t pair = 0;
                for (int i = 0; i < 2; i++) {
                    const int row = to->transposed ? l % 4 * 2 + i : l / 4;
                    const int column = to->transposed ? l / 4 : l % 4 * 2 + i;
                    const matrix_load *from = (const matrix_load *)lane[m * 8 + row];
                    pair |= (uint32_t)from->row[column] << (16 * i);
                }
                to->r[m] = pair;
            }
        }
    });
}

/* What the products take: bfloat16, or float16 as on sm_75. */
static inline float short_value(uint32_t bits)
{
#ifdef HO_EMULATED_SM75
    return half_value((uint16_t)bits);
#else
    return bf16_value((uint16_t)bits);
#endif
}

struct product {
    float *d;
    uint32_t a[4], b[2];
};

static inline void multiply_fragments(void *const lane[32])
{
    float a[16][16], b[16][8], d[16][8];
    for (int l = 0; l < 32; l++) {
        const product *p = (const product *)lane[l];
        if (!p) {
            fault("mma: lane %d has returned", l);
        }
        const int g = l / 4, t = l % 4 * 2;
        for (int i = 0; i < 2; i++) {
            for (int r = 0; r < 4; r++) {
                a[g + r % 2 * 8][t + i + r / 2 * 8] = short_value(p->a[r] >> 16 * i);
                d[g + r / 2 * 8][t + r % 2] = p->d[r];
            }
            b[t + i][g] = short_value(p->b[0] >> 16 * i);
            b[t + i + 8][g] = short_value(p->b[1] >> 16 * i);
        }
    }
    for (int m = 0; m < 16; m++) {
        for (int k = 0; k < 16; k++) {
            for (int n = 0; n < 8; n++) {
                d[m][n] += a[m][k] * b[k][n];
            }
        }
    }
    for (int l = 0; l < 32; l++) {
        for (int r = 0; r < 4; r++) {
            ((const product *)lane[l])->d[r] = d[l / 4 + r / 2 * 8][l % 4 * 2 + r % 2];
        }
    }
}
} // namespace ho_emu

static inline void load_matrix4(uint32_t (&r)[4], uint32_t address)
{
    ho_emu::load_matrices(r, address, false);
}

static inline void load_matrix4_transposed(uint32_t (&r)[4], uint32_t address)
{
    ho_emu::load_matrices(r, address, true);
}

template <int THREADS, int ID> static inline void barrier_of_first(void)
{
    ho_emu::partial_barrier(ID, THREADS, __FILE__, __LINE__);
}

static inline int warp_number(void)
{
    return (int)threadIdx.x / 32;
}

template <int THREADS, int ID> static inline void barrier_of_roles(void)
{
    ho_emu::partial_barrier(ID, THREADS, __FILE__, __LINE__);
}

/* ---- the product ---- */

static inline void mma_16x8x16(float (&d)[4], const uint4 &a, uint32_t b0, uint32_t b1)
{
    ho_emu::product mine = {d, {a.x, a.y, a.z, a.w}, {b0, b1}};
    ho_emu::join(0xffffffffu, "mma", &mine, ho_emu::multiply_fragments);
}

/* ---- over a warp ---- */

static inline uint32_t warp_max_u32(uint32_t x)
{
    for (int step = 16; step > 0; step >>= 1) {
        const uint32_t other = __shfl_xor_sync(0xffffffffu, x, step);
        x = other > x ? other : x;
    }
    return x;
}

/* ---- loads ---- */

static inline uint4 shared_load16(uint32_t address)
{
    return *(const uint4 *)ho_emu::shared_pointer(address, 16);
}

static inline int thread_anew(void)
{
    return (int)threadIdx.x;
}

#endif
