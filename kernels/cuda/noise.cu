/* SPDX-License-Identifier: Apache-2.0
 * Noisy networks while learning: one draw of noise an update and network, the effective weights the
 * products read, the gradient of the sigmas. The optimiser's state is means and sigmas; effective
 * weights are scratch. */
#include "kernels/cpu/init.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/learn.h"
#include "kernels/cuda/noise.cuh"
#include "kernels/cuda/sampling.cuh"
#include "kernels/cuda/short_float.cuh"

enum { THREADS = 256, PART = 2048 /* sigmas whose squares one block sums */ };

int ho_noise_parts(const ho_device_net *net)
{
    return (net->params - net->means + PART - 1) / PART;
}

/* noise [K, 2, noise_size]: online, target; grid (2, lanes) */
static __global__ void __launch_bounds__(THREADS)
    noise_draw(const __grid_constant__ ho_learn_view v, int update)
{
    const int k = (int)blockIdx.y, target = (int)blockIdx.x;
    if (!ho_lane_takes_part(v, k)) {
        return;
    }
    const ho_lane_device *lane = &v.lane[k];
    float *noise = v.noise + ((size_t)k * 2 + target) * v.net.noise_size;
    const uint32_t user = target ? HO_NOISE_TARGET : HO_NOISE_ONLINE;
    for (int i = (int)threadIdx.x; i < v.net.noise_size; i += THREADS) {
        noise[i] =
            noise_entry(v.net, lane->env.key, (uint32_t)update, (uint32_t)lane->epoch, user, i);
    }
}

/* Layer, row and column of parameter `at` of the last two layers; column -1: a bias. */
typedef struct noisy_place {
    int layer, row, column;
} noisy_place;

static __device__ __forceinline__ noisy_place place_of(const ho_device_net &net, int at)
{
    noisy_place p;
    p.layer = at >= net.layer[3].weight ? 3 : 2;
    if (at >= net.weights) {
        p.layer = at >= net.layer[3].bias ? 3 : 2;
        p.row = at - net.layer[p.layer].bias;
        p.column = -1;
        return p;
    }
    const int in_layer = at - net.layer[p.layer].weight;
    p.row = in_layer / net.layer[p.layer].in;
    p.column = in_layer % net.layer[p.layer].in;
    return p;
}

/* The product of a parameter's noise. */
static __device__ __forceinline__ float factor_of(const ho_device_net &net, const float *noise,
                                                  int at)
{
    const noisy_place p = place_of(net, at);
    const float out = noise_out(net, noise, p.layer, p.row);
    return p.column < 0 ? out : out * noise_in(net, noise, p.layer, p.row, p.column);
}

/* The i-th parameter that has a sigma, which is parameter net.means + i. */
static __device__ __forceinline__ int noisy_parameter(const ho_device_net &net, int i)
{
    const int matrices = net.weights - net.layer[HO_NOISY_LAYERS].weight;
    return i < matrices ? net.layer[HO_NOISY_LAYERS].weight + i
                        : net.layer[HO_NOISY_LAYERS].bias + i - matrices;
}

/* Effective weights of both networks; mean: without noise; grid (sigmas / 256, lanes, 2) */
static __global__ void __launch_bounds__(THREADS)
    noise_apply(const __grid_constant__ ho_learn_view v, int mean)
{
    const int k = (int)blockIdx.y, target = (int)blockIdx.z;
    const int i = (int)(blockIdx.x * THREADS + threadIdx.x);
    if (i >= v.net.params - v.net.means || !ho_lane_takes_part(v, k)) {
        return;
    }
    const float *parameter = (target ? v.target : v.online) + (size_t)k * v.net.params;
    const int at = noisy_parameter(v.net, i);
    float w = parameter[at];
    if (!mean) {
        const float *noise = v.noise + ((size_t)k * 2 + target) * v.net.noise_size;
        w += parameter[v.net.means + i] * factor_of(v.net, noise, at);
    }
    (target ? v.noisy_target : v.noisy_online)[(size_t)k * v.net.means + at] = w;
    if (v.bf16 && at < v.net.weights) {
        __nv_bfloat16 *copy = (__nv_bfloat16 *)(target ? v.target_copy : v.online_copy);
        copy[(size_t)k * v.net.weights + at] = short_of(w);
    }
}

/* d sigma = d weight * noise, and its squares' sums; grid (noise parts, lanes) */
static __global__ void __launch_bounds__(THREADS)
    sigma_gradient(const __grid_constant__ ho_learn_view v)
{
    __shared__ float warp_square[THREADS / 32];
    const int k = (int)blockIdx.y;
    if (!ho_lane_takes_part(v, k)) {
        return;
    }
    float *gradient = v.gradient + (size_t)k * v.net.params;
    const float *noise = v.noise + (size_t)k * 2 * v.net.noise_size;
    float square = 0.0f;
    for (int r = 0; r < PART / THREADS; r++) {
        const int i = (int)blockIdx.x * PART + r * THREADS + (int)threadIdx.x;
        if (i < v.net.params - v.net.means) {
            const int at = noisy_parameter(v.net, i);
            const float g = gradient[at] * factor_of(v.net, noise, at);
            gradient[v.net.means + i] = g;
            square = fmaf(g, g, square);
        }
    }
    for (int step = 16; step > 0; step >>= 1) {
        square += __shfl_xor_sync(0xffffffffu, square, step);
    }
    if (threadIdx.x % 32 == 0) {
        warp_square[threadIdx.x / 32] = square;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < THREADS / 32; w++) {
            square += warp_square[w];
        }
        v.norm_part[(size_t)k * v.norm_parts + v.norm_parts - gridDim.x + blockIdx.x] = square;
    }
}

/* ---- launchers ---- */

static ho_status apply(const ho_learn_view *v, int mean, cudaStream_t stream)
{
    const int sigmas = v->net.params - v->net.means;
    noise_apply<<<dim3((unsigned)((sigmas + THREADS - 1) / THREADS), (unsigned)v->lanes, 2),
                  THREADS, 0, stream>>>(*v, mean);
    return ho_cuda_status(cudaGetLastError(), "noise_apply");
}

ho_status ho_noise_renew(const ho_learn_view *v, int update, cudaStream_t stream)
{
    if (!v->net.noisy) {
        return HO_OK;
    }
    noise_draw<<<dim3(2, (unsigned)v->lanes), THREADS, 0, stream>>>(*v, update);
    const ho_status rc = ho_cuda_status(cudaGetLastError(), "noise_draw");
    return rc == HO_OK ? apply(v, 0, stream) : rc;
}

ho_status ho_noise_none(const ho_learn_view *v, cudaStream_t stream)
{
    return v->net.noisy ? apply(v, 1, stream) : HO_OK;
}

ho_status ho_noise_gradient(const ho_learn_view *v, cudaStream_t stream)
{
    if (!v->net.noisy) {
        return HO_OK;
    }
    sigma_gradient<<<dim3((unsigned)ho_noise_parts(&v->net), (unsigned)v->lanes), THREADS, 0,
                     stream>>>(*v);
    return ho_cuda_status(cudaGetLastError(), "sigma_gradient");
}
