/* SPDX-License-Identifier: Apache-2.0
 * Dense layers of the portable path, all lanes in one launch: forward of the passes, backward
 * through the activations, weight gradients with bias gradients and squared norms.
 * Every output element is computed by one block in a fixed order. */
#include "kernels/cuda/dense_tile.cuh"
#include "kernels/cuda/device.h"
#include "kernels/cuda/learn.h"
#include "kernels/cuda/sampling.cuh"

enum { FORWARD_M = 128, BACKWARD_M = 64, GRADIENT_M = 64 };

#define LEAKY_SLOPE 0.01f

static __device__ __forceinline__ float leaky(float x)
{
    return x > 0.0f ? x : LEAKY_SLOPE * x;
}

static __device__ __forceinline__ void store2(float *to, float a, float b)
{
    *(float2 *)to = make_float2(a, b);
}

static __device__ __forceinline__ void store2(bf16 *to, float a, float b)
{
    *(__nv_bfloat162 *)to = shorts_of(a, b);
}

/* The float32 parameters that layer l computes with. */
static __device__ __forceinline__ const float *parameters(const ho_learn_view &v, int k,
                                                          bool target, int l)
{
    if (v.net.noisy && l >= HO_NOISY_LAYERS) {
        return (target ? v.noisy_target : v.noisy_online) + (size_t)k * v.net.means;
    }
    return (target ? v.target : v.online) + (size_t)k * v.net.params;
}

/* The matrices of a lane in the type of the products. */
template <typename T>
static __device__ __forceinline__ const T *matrices(const ho_learn_view &v, int k, bool target,
                                                    int l);

template <>
__device__ __forceinline__ const float *matrices<float>(const ho_learn_view &v, int k, bool target,
                                                        int l)
{
    return parameters(v, k, target, l);
}

template <>
__device__ __forceinline__ const bf16 *matrices<bf16>(const ho_learn_view &v, int k, bool target,
                                                      int)
{
    return (const bf16 *)(target ? v.target_copy : v.online_copy) + (size_t)k * v.net.weights;
}

/* grid (out / 64, passes * row tiles, lanes) */
template <typename T, bool LAST>
static __global__ void __launch_bounds__(TILE_THREADS)
    dense_forward(const __grid_constant__ ho_learn_view v, int l)
{
    typedef tile<T, FORWARD_M> shape;
    extern __shared__ __align__(128) char shared[];
    const int k = (int)blockIdx.z;
    if (!ho_lane_takes_part(v, k)) {
        return;
    }
    const ho_device_dense layer = v.net.layer[l];
    const int row_tiles = (v.batch + FORWARD_M - 1) / FORWARD_M;
    const int pass = (int)blockIdx.y / row_tiles;
    const int row0 = (int)blockIdx.y % row_tiles * FORWARD_M, column0 = (int)blockIdx.x * TILE_N;
    const size_t rows = (size_t)v.batch;
    if (v.rows && row0 >= v.rows[k]) {
        return;
    }
    const bool target = v.passes > 1 && pass == v.passes - 1;
    const T *x = l == 0 ? (const T *)v.state + ((size_t)k * v.states + (pass > 0)) * rows * layer.in
                        : (const T *)v.hidden[l == 0 ? 0 : l - 1] +
                              ((size_t)k * v.passes + pass) * rows * layer.in;
    /* of a block-diagonal layer the inputs of the outputs' own block: the others' weights are 0 */
    const int block = ho_device_net_half(&v.net, l, v.net.half[l], column0, TILE_N);
    const int inputs = block < 0 ? layer.in : v.net.half[l - 1], in0 = block == 1 ? inputs : 0;
    const operand<T> a = {x + in0, layer.in, row0, v.batch, inputs};
    const operand<T> b = {matrices<T>(v, k, target, l) + layer.weight + in0, layer.in, column0,
                          layer.out, inputs};
    const float *bias = parameters(v, k, target, l) + layer.bias;
    typename shape::accumulator acc;
    shape::template multiply<true, true>(acc, a, b, shared, [](const T *, int, int) {});
    const size_t first = ((size_t)k * v.passes + pass) * rows * layer.out;
    shape::visit(acc, [&](int m, int n, float y0, float y1) {
        const int row = row0 + m, column = column0 + n;
        if (row >= v.batch || column >= layer.out) {
            return;
        }
        y0 += bias[column];
        y1 += bias[column + 1];
        const size_t at = first + (size_t)row * layer.out + column;
        if (LAST) {
            store2(v.output + at, y0, y1);
        } else {
            store2((T *)v.hidden[LAST ? 0 : l] + at, leaky(y0), leaky(y1));
        }
    });
}

/* d_hidden[l - 1] from the gradient of layer l's output; grid (in / 64, row tiles, lanes) */
template <typename T>
static __global__ void __launch_bounds__(TILE_THREADS)
    dense_backward(const __grid_constant__ ho_learn_view v, int l)
{
    typedef tile<T, BACKWARD_M> shape;
    extern __shared__ __align__(128) char shared[];
    const int k = (int)blockIdx.z;
    if (!ho_lane_takes_part(v, k)) {
        return;
    }
    const ho_device_dense layer = v.net.layer[l];
    const int row0 = (int)blockIdx.y * BACKWARD_M, column0 = (int)blockIdx.x * TILE_N;
    const size_t rows = (size_t)v.batch;
    const T *dy = l == HO_DEVICE_LAYERS - 1
                      ? (const T *)v.d_output + (size_t)k * rows * layer.out
                      : (const T *)v.d_hidden[l == HO_DEVICE_LAYERS - 1 ? 0 : l] +
                            (size_t)k * rows * layer.out;
    const int block = ho_device_net_half(&v.net, l, v.net.half[l - 1], column0, TILE_N);
    const int outputs = block < 0 ? layer.out : v.net.half[l], out0 = block == 1 ? outputs : 0;
    const operand<T> a = {dy + out0, layer.out, row0, v.batch, outputs};
    const operand<T> b = {matrices<T>(v, k, false, l) + layer.weight + (size_t)out0 * layer.in,
                          layer.in, column0, layer.in, outputs};
    const float scale = l == HO_NOISY_LAYERS ? v.net.trunk_scale : 1.0f;
    typename shape::accumulator acc;
    shape::template multiply<true, false>(acc, a, b, shared, [](const T *, int, int) {});
    const T *h = (const T *)v.hidden[l - 1] + (size_t)k * v.passes * rows * layer.in;
    T *dx = (T *)v.d_hidden[l - 1] + (size_t)k * rows * layer.in;
    shape::visit(acc, [&](int m, int n, float g0, float g1) {
        const int row = row0 + m, column = column0 + n;
        if (row >= v.batch || column >= layer.in) {
            return;
        }
        const size_t at = (size_t)row * layer.in + column;
        g0 *= scale;
        g1 *= scale;
        store2(dx + at, float_of(h[at]) > 0.0f ? g0 : LEAKY_SLOPE * g0,
               float_of(h[at + 1]) > 0.0f ? g1 : LEAKY_SLOPE * g1);
    });
}

static __host__ __device__ __forceinline__ int gradient_tiles(const ho_device_dense &layer)
{
    return (layer.out + GRADIENT_M - 1) / GRADIENT_M * ((layer.in + TILE_N - 1) / TILE_N);
}

/* Adds a value of every thread; thread 0 gets the sum. Fixed order: inside a warp by halves, then
 * the warps one after the other. */
static __device__ float block_sum(float value)
{
    __shared__ float warp_sum[TILE_THREADS / 32];
    for (int step = 16; step > 0; step >>= 1) {
        value += __shfl_xor_sync(0xffffffffu, value, step);
    }
    if (threadIdx.x % 32 == 0) {
        warp_sum[threadIdx.x / 32] = value;
    }
    __syncthreads();
    float sum = 0.0f;
    if (threadIdx.x == 0) {
        for (int w = 0; w < TILE_THREADS / 32; w++) {
            sum += warp_sum[w];
        }
    }
    return sum;
}

/* dW = dY^T X over the whole batch, all layers; grid (tiles of all layers, lanes) */
template <typename T>
static __global__ void __launch_bounds__(TILE_THREADS)
    dense_gradient(const __grid_constant__ ho_learn_view v)
{
    typedef tile<T, GRADIENT_M> shape;
    extern __shared__ __align__(128) char shared[];
    const int k = (int)blockIdx.y;
    if (!ho_lane_takes_part(v, k)) {
        return;
    }
    int l = 0, at = (int)blockIdx.x;
    while (at >= gradient_tiles(v.net.layer[l])) {
        at -= gradient_tiles(v.net.layer[l]);
        l++;
    }
    const ho_device_dense layer = v.net.layer[l];
    const int column_tiles = (layer.in + TILE_N - 1) / TILE_N;
    const int out0 = at / column_tiles * GRADIENT_M, in0 = at % column_tiles * TILE_N;
    const size_t rows = (size_t)v.batch;
    const bool last = l == HO_DEVICE_LAYERS - 1;
    const T *dy = (last ? (const T *)v.d_output : (const T *)v.d_hidden[last ? 0 : l]) +
                  (size_t)k * rows * layer.out;
    const T *x =
        l == 0 ? (const T *)v.state + (size_t)k * v.states * rows * layer.in
               : (const T *)v.hidden[l == 0 ? 0 : l - 1] + (size_t)k * v.passes * rows * layer.in;
    /* off a block diagonal nothing is summed; biases belong to the first tile that is on it */
    const int below = l > 0 ? v.net.half[l - 1] : 0;
    const int of_out = ho_device_net_half(&v.net, l, v.net.half[l], out0, GRADIENT_M);
    const int of_in = ho_device_net_half(&v.net, l, below, in0, TILE_N);
    const int summed = of_out >= 0 && of_in >= 0 && of_out != of_in ? 0 : v.batch;
    const operand<T> a = {dy, layer.out, out0, layer.out, summed};
    const operand<T> b = {x, layer.in, in0, layer.in, summed};
    constexpr int stage_k = sizeof(T) == 2 ? (int)BF16_K : (int)F32_K;
    const int bias_in0 = of_out == 1 ? below / TILE_N * TILE_N : 0;
    const bool sums_bias = in0 == bias_in0 && threadIdx.x < GRADIENT_M;
    float bias_sum = 0.0f;
    typename shape::accumulator acc;
    shape::template multiply<false, false>(acc, a, b, shared, [&](const T *stage, int pitch, int) {
        if (sums_bias) {
#pragma unroll
            for (int i = 0; i < stage_k; i++) {
                bias_sum += float_of(stage[i * pitch + (int)threadIdx.x]);
            }
        }
    });
    const float unscaled = 1.0f / delta_scale<T>();
    float *gradient = v.gradient + (size_t)k * v.net.params;
    float square = 0.0f;
    shape::visit(acc, [&](int m, int n, float g0, float g1) {
        const int row = out0 + m, column = in0 + n;
        if (row >= layer.out || column >= layer.in) {
            return;
        }
        g0 = ho_device_net_has(&v.net, l, row, column) ? unscaled * g0 : 0.0f;
        g1 = ho_device_net_has(&v.net, l, row, column + 1) ? unscaled * g1 : 0.0f;
        store2(gradient + layer.weight + (size_t)row * layer.in + column, g0, g1);
        square = fmaf(g0, g0, square);
        square = fmaf(g1, g1, square);
    });
    bias_sum *= unscaled;
    if (sums_bias && out0 + (int)threadIdx.x < layer.out) {
        gradient[layer.bias + out0 + (int)threadIdx.x] = bias_sum;
        square = fmaf(bias_sum, bias_sum, square);
    }
    square = block_sum(square);
    if (threadIdx.x == 0) {
        v.norm_part[(size_t)k * v.norm_parts + blockIdx.x] = square;
    }
}

/* ---- launchers ------------------------------------------------------------------------------- */

int ho_dense_gradient_tiles(const ho_device_net *net)
{
    int tiles = 0;
    for (int l = 0; l < HO_DEVICE_LAYERS; l++) {
        tiles += gradient_tiles(net->layer[l]);
    }
    return tiles;
}

static int tiles_of(int n, int size)
{
    return (n + size - 1) / size;
}

template <typename T> static ho_status forward(const ho_learn_view *v, cudaStream_t stream)
{
    constexpr int bytes = tile<T, FORWARD_M>::template shared_bytes<true, true>();
    ho_status rc = HO_OK;
    for (int l = 0; l < HO_DEVICE_LAYERS && rc == HO_OK; l++) {
        const bool last = l == HO_DEVICE_LAYERS - 1;
        const dim3 grid((unsigned)tiles_of(v->net.layer[l].out, TILE_N),
                        (unsigned)(v->passes * tiles_of(v->batch, FORWARD_M)), (unsigned)v->lanes);
        if (last) {
            dense_forward<T, true><<<grid, TILE_THREADS, bytes, stream>>>(*v, l);
        } else {
            dense_forward<T, false><<<grid, TILE_THREADS, bytes, stream>>>(*v, l);
        }
        rc = ho_cuda_status(cudaGetLastError(), "dense_forward");
    }
    return rc;
}

template <typename T> static ho_status backward(const ho_learn_view *v, cudaStream_t stream)
{
    constexpr int bytes = tile<T, BACKWARD_M>::template shared_bytes<true, false>();
    ho_status rc = HO_OK;
    for (int l = HO_DEVICE_LAYERS - 1; l > 0 && rc == HO_OK; l--) {
        const dim3 grid((unsigned)tiles_of(v->net.layer[l].in, TILE_N),
                        (unsigned)tiles_of(v->batch, BACKWARD_M), (unsigned)v->lanes);
        dense_backward<T><<<grid, TILE_THREADS, bytes, stream>>>(*v, l);
        rc = ho_cuda_status(cudaGetLastError(), "dense_backward");
    }
    return rc;
}

template <typename T> static ho_status gradient(const ho_learn_view *v, cudaStream_t stream)
{
    constexpr int bytes = tile<T, GRADIENT_M>::template shared_bytes<false, false>();
    const dim3 grid((unsigned)ho_dense_gradient_tiles(&v->net), (unsigned)v->lanes);
    dense_gradient<T><<<grid, TILE_THREADS, bytes, stream>>>(*v);
    return ho_cuda_status(cudaGetLastError(), "dense_gradient");
}

ho_status ho_learn_forward(const ho_learn_view *v, cudaStream_t stream)
{
    return v->bf16 ? forward<bf16>(v, stream) : forward<float>(v, stream);
}

ho_status ho_learn_backward(const ho_learn_view *v, cudaStream_t stream)
{
    return v->bf16 ? backward<bf16>(v, stream) : backward<float>(v, stream);
}

ho_status ho_learn_gradient(const ho_learn_view *v, cudaStream_t stream)
{
    return v->bf16 ? gradient<bf16>(v, stream) : gradient<float>(v, stream);
}
