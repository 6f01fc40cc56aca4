/* SPDX-License-Identifier: Apache-2.0
 * The fused second half on sm_90a: weight gradients dW = D^T H of all layers and lanes. A block
 * owns 128 outputs x NW inputs of one layer and sums over the whole batch: no split, no partial
 * sums, so the bits do not depend on how many lanes share the GPU. Bias gradients come from one
 * more product with a vector of ones. Gradients go to memory row-major in float32, where the gate
 * and Adam (update.cu) of the portable path find them.
 *
 * A producer warp streams 64 rows of D and of H a stage; two warpgroups multiply 64 outputs each.
 * NW is 128, or 32 where few lanes would leave multiprocessors idle; equal bits. */
#include "kernels/cuda/device.h"
#include "kernels/cuda/early_launch.cuh"
#include "kernels/cuda/fused_layout.h"
#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/learn.h"
#include "kernels/cuda/wgmma.cuh"

enum {
    GRADIENT_THREADS = 384, /* 2 computing warpgroups, 1 with the producer */
    GRADIENT_CONSUMERS = 256,
    GRADIENT_SLOTS = 6,
    GRADIENT_STAGE = 32768, /* 64 rows: D in the first half, H in the second */
    GRADIENT_ROWS = 64,
    GRADIENT_ONES = GRADIENT_SLOTS * GRADIENT_STAGE,
    GRADIENT_BARRIERS = GRADIENT_ONES + 256,
    GRADIENT_BYTES = GRADIENT_BARRIERS + 128,
    TILES_WIDE = 12, /* of a lane, NW = 128: 4 + 4 of L2 and L3, 2 of L1, 2 of L4 */
    TILES_NARROW = 40,
};

/* What a warpgroup computes: 64 outputs x `width` inputs of a layer. */
typedef struct gradient_tile {
    int layer;
    const uint8_t *d, *h; /* first row group of the block's operands */
    int d_cores, h_cores; /* core matrices a row group has there */
    int d_core, h_core;   /* first of the warpgroup's part */
    int block;            /* of 64 outputs */
    int input0, width;
    int sums_bias; /* the same in both warpgroups: the product is a collective of the warp */
    int owns_bias; /* this one stores it */
} gradient_tile;

#if FUSED_CODE

/* Tile b of a lane, part w of it. L2, L3: 2 halves of outputs x inputs by NW. L1: 2 halves x
 * inputs by `small`. L4 has 48 outputs: both warpgroups take the same outputs, other inputs. */
template <int NW>
static __device__ __forceinline__ gradient_tile tile_of(const uint8_t *lane, int batch, int b,
                                                        int w)
{
    constexpr int across = 256 / NW, small = NW == 32 ? 32 : 64, small_across = 64 / small;
    const int64_t half = (int64_t)batch * HO_FUSED_HALF_ROW;
    gradient_tile t;
    if (b < 4 * across + 2 * small_across) {
        const bool first = b >= 4 * across;
        const int at = first ? b - 4 * across : b % (2 * across);
        const int out_half = at / (first ? small_across : across);
        t.layer = first ? 0 : 1 + b / (2 * across);
        t.width = first ? small : NW;
        t.input0 = at % (first ? small_across : across) * t.width;
        t.d = lane + ho_fused_d_at(t.layer, batch) + out_half * half;
        t.d_cores = 16;
        t.d_core = w * 8;
        t.h = first ? lane : lane + ho_fused_h_at(t.layer - 1, batch) + t.input0 / 128 * half;
        t.h_cores = first ? 8 : 16;
        t.block = out_half * 2 + w;
        t.sums_bias = t.input0 == 0;
        t.owns_bias = t.sums_bias;
    } else {
        const int at = b - 4 * across - 2 * small_across;
        t.layer = 3;
        t.width = small;
        t.input0 = (at * 2 + w) * small;
        t.d = lane + ho_fused_dq_at(batch);
        t.d_cores = 8;
        t.d_core = 0;
        t.h = lane + ho_fused_h_at(2, batch) + at * 2 * small / 128 * half;
        t.h_cores = 16;
        t.block = 0;
        t.sums_bias = at == 0;
        t.owns_bias = at == 0 && w == 0;
    }
    t.h_core = t.input0 % 128 / 8;
    return t;
}

static __device__ void stream_operands(const gradient_tile &t, int batch, uint32_t base,
                                       uint32_t full, uint32_t empty)
{
    const int d_bytes = t.d_cores * 1024, h_bytes = t.h_cores * 1024; /* 8 row groups of cores */
    int slot = 0, phase = 0;
    for (int stage = 0; stage < batch / GRADIENT_ROWS; stage++) {
        barrier_wait(empty + 8 * slot, phase ^ 1);
        if (threadIdx.x % 32 == 0) {
            const uint32_t to = base + slot * GRADIENT_STAGE, on = full + 8 * slot;
            barrier_expect(on, d_bytes + h_bytes);
            bulk_load(to, t.d + (int64_t)stage * d_bytes, d_bytes, on);
            bulk_load(to + GRADIENT_STAGE / 2, t.h + (int64_t)stage * h_bytes, h_bytes, on);
        }
        __syncwarp();
        if (++slot == GRADIENT_SLOTS) {
            slot = 0;
            phase ^= 1;
        }
    }
}

static __device__ __forceinline__ float warp_sum(float x)
{
    for (int step = 16; step > 0; step >>= 1) {
        x += __shfl_xor_sync(0xffffffffu, x, step);
    }
    return x;
}

/* Norm part of a unit of 64 outputs (fused_layout.h), this warp's 16 of them. */
static __device__ __forceinline__ void store_square(const ho_learn_view &v, int k, int unit,
                                                    float square)
{
    square = warp_sum(square);
    if (threadIdx.x % 32 == 0) {
        v.norm_part[(size_t)k * v.norm_parts + unit * 4 + threadIdx.x / 32 % 4] = square;
    }
}

static __device__ __forceinline__ int first_unit(int layer)
{
    return layer == 0   ? HO_FUSED_UNIT_L1
           : layer == 1 ? HO_FUSED_UNIT_L2
           : layer == 2 ? HO_FUSED_UNIT_L3
                        : HO_FUSED_UNIT_L4;
}

/* Multiplies and stores one warpgroup's 64 x N part. */
template <int N>
static __device__ void multiply_tile(const ho_learn_view &v, int k, const gradient_tile &t,
                                     uint32_t base, uint32_t full, uint32_t empty, uint32_t ones)
{
    const int warp = (int)threadIdx.x / 32 % 4;
    const int g = (int)threadIdx.x % 32 / 4, q = (int)threadIdx.x % 4;
    float acc[N / 2], bias[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    int slot = 0, phase = 0, previous = 0;
    const uint64_t one = matrix_descriptor(ones, 128, 128);
#pragma unroll 1
    for (int stage = 0; stage < v.batch / GRADIENT_ROWS; stage++) {
        barrier_wait(full + 8 * slot, phase);
        const uint32_t at = base + slot * GRADIENT_STAGE;
        const uint64_t a = matrix_descriptor(at + t.d_core * 128, t.d_cores * 128, 128);
        const uint64_t b =
            matrix_descriptor(at + GRADIENT_STAGE / 2 + t.h_core * 128, t.h_cores * 128, 128);
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < 4; i++) {
            wgmma_ss<1, 1>(acc, a + descriptor_offset(i * t.d_cores * 256),
                           b + descriptor_offset(i * t.h_cores * 256), stage | i);
        }
        if (t.sums_bias) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                wgmma_ss<1, 1>(bias, a + descriptor_offset(i * t.d_cores * 256), one, 1);
            }
        }
        wgmma_commit();
        if (stage > 0) {
            wgmma_wait<1>();
            if (threadIdx.x % 32 == 0) {
                barrier_arrive(empty + 8 * previous);
            }
        }
        previous = slot;
        if (++slot == GRADIENT_SLOTS) {
            slot = 0;
            phase ^= 1;
        }
    }
    wgmma_wait<0>();

    const ho_device_dense layer = v.net.layer[t.layer];
    float *gradient = v.gradient + (size_t)k * v.net.params;
    int row[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        row[h] = ho_fused_column(t.block * 8 + warp * 2 + h, g);
    }
    const bool last = t.layer == HO_DEVICE_LAYERS - 1;
    const int unit0 = first_unit(t.layer) + t.block * (layer.in / 32) + t.input0 / 32;
#pragma unroll
    for (int group = 0; group < N / 32; group++) { /* 32 inputs */
        const int in0 = t.input0 + group * 32;
        float square = 0.0f;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float x[8];
#pragma unroll
            for (int n = 0; n < 4; n++) {
                const int j = (group * 4 + n) * 4 + h * 2;
                x[2 * n] = acc[j];
                x[2 * n + 1] = acc[j + 1];
            }
            if (row[h] >= layer.out) {
                continue;
            }
            float *to = gradient + layer.weight + (size_t)row[h] * layer.in + in0;
            if (last) {
                /* a head's inputs are half of the layer: the whole group belongs to one head */
                const float keep =
                    ho_device_net_has(&v.net, HO_DEVICE_LAYERS - 1, row[h], in0) ? 1.0f : 0.0f;
#pragma unroll
                for (int i = 0; i < 8; i++) {
                    x[i] *= keep;
                }
            }
#pragma unroll
            for (int i = 0; i < 8; i++) {
                square = fmaf(x[i], x[i], square);
            }
            if (t.layer == 0) { /* X is not permuted */
#pragma unroll
                for (int n = 0; n < 4; n++) {
                    *(float2 *)(to + n * 8 + 2 * q) = make_float2(x[2 * n], x[2 * n + 1]);
                }
            } else {
                *(float4 *)(to + 8 * q) = make_float4(x[0], x[1], x[2], x[3]);
                *(float4 *)(to + 8 * q + 4) = make_float4(x[4], x[5], x[6], x[7]);
            }
        }
        store_square(v, k, unit0 + group, square);
    }
    if (t.owns_bias) {
        float square = 0.0f;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            if (q == 0 && row[h] < layer.out) {
                gradient[layer.bias + row[h]] = bias[h * 2];
                square = fmaf(bias[h * 2], bias[h * 2], square);
            }
        }
        store_square(v, k, HO_FUSED_UNIT_BIAS + 4 * t.layer + t.block, square);
    }
}

#endif

/* grid: tiles of all lanes. The lanes run backwards: the first half wrote the last ones last, and
 * their activations are still in L2. */
template <int NW>
static __global__ void __launch_bounds__(GRADIENT_THREADS, 1)
    fused_gradient(const __grid_constant__ ho_learn_view v)
{
#if FUSED_CODE
    extern __shared__ __align__(1024) uint8_t shared[];
    constexpr int tiles = NW == 128 ? TILES_WIDE : TILES_NARROW;
    const int k = v.lanes - 1 - (int)blockIdx.x / tiles;
    const uint32_t base = shared_u32(shared), ones = base + GRADIENT_ONES;
    const uint32_t full = base + GRADIENT_BARRIERS, empty = full + 8 * GRADIENT_SLOTS;
    if (threadIdx.x == 0) {
        for (int i = 0; i < GRADIENT_SLOTS; i++) {
            barrier_init(full + 8 * i, 1);
            barrier_init(empty + 8 * i, GRADIENT_CONSUMERS / 32);
        }
        barrier_init_fence();
    }
    if (threadIdx.x < 64) {
        ((uint32_t *)(shared + GRADIENT_ONES))[threadIdx.x] = 0x3f803f80u; /* bf16 1, 1 */
    }
    proxy_fence();
    __syncthreads();
    grid_wait();
    grid_launch();
    if (!v.lane[k].learning || v.lane[k].guard != 0) {
        return;
    }
    const gradient_tile t =
        tile_of<NW>(v.fused_activations + (size_t)k * ho_fused_activation_bytes(v.batch), v.batch,
                    (int)blockIdx.x % tiles, (int)threadIdx.x / 128 % 2);
    if (threadIdx.x >= GRADIENT_CONSUMERS) {
        registers_give<24>();
        if (threadIdx.x < GRADIENT_CONSUMERS + 32) {
            stream_operands(t, v.batch, base, full, empty);
        }
    } else {
        registers_take<240>();
        constexpr int small = NW == 32 ? 32 : 64;
        if (t.width == NW) {
            multiply_tile<NW>(v, k, t, base, full, empty, ones);
        } else {
            multiply_tile<small>(v, k, t, base, full, empty, ones);
        }
    }
#endif
}

ho_status ho_fused_gradient(const ho_learn_view *v, cudaStream_t stream)
{
    const int few = v->lanes <= HO_FUSED_FEW;
    const dim3 grid((unsigned)(v->lanes * (few ? TILES_NARROW : TILES_WIDE)));
    const cudaError_t rc = launch_early(few ? fused_gradient<32> : fused_gradient<128>, grid,
                                        GRADIENT_THREADS, GRADIENT_BYTES, stream, few, *v);
    return ho_cuda_status(rc, "fused_gradient");
}

ho_status ho_fused_gradient_prepare(int lanes)
{
    const cudaFuncAttribute attribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
    return ho_cuda_status(
        lanes <= HO_FUSED_FEW
            ? cudaFuncSetAttribute(fused_gradient<32>, attribute, GRADIENT_BYTES)
            : cudaFuncSetAttribute(fused_gradient<128>, attribute, GRADIENT_BYTES),
        "shared memory of fused_gradient");
}
