/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cuda/policy.h"

#include "kernels/agents/e4m3.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/short_float.cuh"

enum { PACK_THREADS = 256, PACK_WARPS = PACK_THREADS / 32 };

/* Rows of the matrices that are packed as fragments. */
static int fragment_rows(const ho_policy_net *p)
{
    int rows = 0;
    for (int l = 0; l < HO_DEVICE_LAYERS; l++) {
        rows += p->layer[l].floats ? 0 : p->layer[l].out;
    }
    return rows;
}

ho_policy_net ho_policy_net_of(const ho_device_net *net, ho_precision precision)
{
    const int bf16 = precision != HO_PRECISION_F32;
    ho_policy_net p = {};
    const int whole = net->atoms > 1; /* the value head, too */
    p.net = *net;
    p.branches = net->branches;
    p.actions = net->actions;
    p.outputs = whole ? net->outputs : net->actions;
    p.atoms = net->atoms;
    p.noise_size = net->noise_size;
    p.bf16 = bf16;
    p.fp8 = precision == HO_PRECISION_FP8;
    int at = 0;
    for (int l = 0; l < HO_DEVICE_LAYERS; l++) {
        ho_policy_layer *layer = &p.layer[l];
        const int noisy = net->noisy && l >= HO_NOISY_LAYERS;
        layer->in = l == 0 || (l == 3 && whole) ? net->layer[l].in : net->half[l - 1];
        layer->out = l == 2 && whole ? net->layer[l].out : net->half[l];
        layer->weight = net->layer[l].weight;
        layer->stride = net->layer[l].in;
        layer->bias_from = net->layer[l].bias;
        layer->floats = noisy || !bf16;
        layer->matrix = at;
        layer->matrix_bytes = layer->in * layer->out * (layer->floats ? 4 : 2);
        at += layer->matrix_bytes;
        if (noisy) {
            layer->sigma = at;
            at += layer->matrix_bytes;
        }
        if (!layer->floats) {
            p.fragment_bytes = at;
        }
        if (l < HO_DEVICE_LAYERS - 1 && layer->out > p.hidden_max) {
            p.hidden_max = layer->out;
        }
    }
    p.bias_at = at;
    for (int l = 0; l < HO_DEVICE_LAYERS; l++) {
        p.layer[l].bias = at;
        at += p.layer[l].out * 4;
        if (p.layer[l].sigma) {
            p.layer[l].sigma_bias = at;
            at += p.layer[l].out * 4;
        }
    }
    p.bias_bytes = at - p.bias_at;
    p.scale_at = at;
    at += p.fp8 ? 4 * fragment_rows(&p) : 0;
    p.bytes = (at + 127) / 128 * 128;
    return p;
}

ho_status ho_policy_too_large(const ho_policy_net *policy, ho_err *err)
{
    return ho_err_set(
        err, HO_EUNSUPPORTED,
        "a network of width %d with %d outputs does not fit this GPU's shared memory; "
        "make agent.hidden1, hidden2, head or atoms smaller",
        (int)policy->hidden_max, (int)policy->outputs);
}

/* Which parameter the float at `byte` of a packed policy is. */
static __device__ int float_parameter(const ho_policy_net &p, int byte)
{
    const int sigma_weight = ho_device_net_sigma_weight(&p.net);
    const int sigma_bias = ho_device_net_sigma_bias(&p.net);
    for (int l = 0; l < HO_DEVICE_LAYERS; l++) {
        const ho_policy_layer &layer = p.layer[l];
        const int first[2] = {layer.matrix, layer.sigma};
        const int first_bias[2] = {layer.bias, layer.sigma_bias};
        for (int sigma = 0; sigma < 1 + (layer.sigma != 0); sigma++) {
            const int i = (byte - first[sigma]) / 4, b = (byte - first_bias[sigma]) / 4;
            if (layer.floats && byte >= first[sigma] && i < layer.in * layer.out) {
                return layer.weight + i % layer.out * layer.stride + i / layer.out +
                       sigma * sigma_weight;
            }
            if (byte >= first_bias[sigma] && b < layer.out) {
                return layer.bias_from + b + sigma * sigma_bias;
            }
        }
    }
    return 0; /* not reached: the floats are these and no others */
}

/* grid (rows / PACK_WARPS, lanes); a warp finds the scale of one row of the fragments. */
static __global__ void __launch_bounds__(PACK_THREADS)
    scale_rows(const __grid_constant__ ho_policy_net p, const float *__restrict__ parameters,
               int params, uint8_t *__restrict__ packed, int first)
{
    const int k = first + (int)blockIdx.y;
    const int at = (int)(blockIdx.x * PACK_WARPS + threadIdx.x / 32);
    int row = at, l = 0;
    while (l < HO_DEVICE_LAYERS && (p.layer[l].floats || row >= p.layer[l].out)) {
        row -= p.layer[l].floats ? 0 : p.layer[l].out;
        l++;
    }
    if (l == HO_DEVICE_LAYERS) {
        return;
    }
    const ho_policy_layer layer = p.layer[l];
    const float *w = parameters + (size_t)k * params + layer.weight + (size_t)row * layer.stride;
    uint32_t largest = 0;
    for (int i = (int)threadIdx.x % 32; i < layer.in; i += 32) {
        const uint32_t bits = ho_e4m3_bits(__bfloat162float(__float2bfloat16(w[i]))) & 0x7fffffffu;
        largest = bits > largest ? bits : largest;
    }
    largest = warp_max_u32(largest);
    if (threadIdx.x % 32 == 0) {
        ((int32_t *)(packed + (size_t)k * p.bytes + p.scale_at))[at] = ho_e4m3_scale(largest);
    }
}

static __device__ __forceinline__ float round_weight(float w, int32_t scale)
{
    return ho_e4m3_of(__bfloat162float(__float2bfloat16(w)), scale);
}

/* grid (blocks, lanes); one thread an output word: 8 weights of a fragment, or one float */
static __global__ void __launch_bounds__(PACK_THREADS)
    pack_policy(const __grid_constant__ ho_policy_net p, const float *__restrict__ parameters,
                int params, uint8_t *__restrict__ packed, int first)
{
    const int k = first + (int)blockIdx.y;
    const float *w = parameters + (size_t)k * params;
    uint8_t *to = packed + (size_t)k * p.bytes;
    const int at = (int)(blockIdx.x * PACK_THREADS + threadIdx.x);
    const int fragments = p.fragment_bytes / 16;
    if (at >= fragments) {
        const int byte = p.fragment_bytes + (at - fragments) * 4;
        if (byte < p.bias_at + p.bias_bytes) {
            *(float *)(to + byte) = w[float_parameter(p, byte)];
        }
        return;
    }
    const int byte = at * 16;
    int l = 0, rows = 0; /* of the layers before */
    while (byte >= p.layer[l].matrix + p.layer[l].matrix_bytes) {
        rows += p.layer[l++].out;
    }
    const ho_policy_layer layer = p.layer[l];
    const float *from = w + layer.weight;
    const int word = (byte - layer.matrix) / 16, thread = word % 32;
    const int step = word / 32 % (layer.in / 16), tile = word / 32 / (layer.in / 16);
    const int g = thread / 4, t = thread % 4;
    __nv_bfloat162 fragment[4];
#pragma unroll
    for (int r = 0; r < 4; r++) {
        const int row = tile * 16 + 2 * g + (r & 1), column = step * 16 + 2 * t + (r >> 1) * 8;
        const float *pair = from + (size_t)row * layer.stride + column;
        float w0 = pair[0], w1 = pair[1];
        if (p.fp8) {
            const int32_t scale = ((const int32_t *)(to + p.scale_at))[rows + row];
            w0 = round_weight(w0, scale);
            w1 = round_weight(w1, scale);
        }
        fragment[r] = shorts_of(w0, w1);
    }
    *(uint4 *)(to + byte) = *(const uint4 *)fragment;
}

ho_status ho_policy_pack(const ho_policy_net *policy, const float *parameters, int params,
                         uint8_t *packed, int first, int lanes, cudaStream_t stream)
{
    const int items = policy->fragment_bytes / 16 +
                      (policy->bias_at + policy->bias_bytes - policy->fragment_bytes) / 4;
    const dim3 grid((unsigned)((items + PACK_THREADS - 1) / PACK_THREADS), (unsigned)lanes);
    if (policy->fp8) {
        const int rows = fragment_rows(policy);
        const dim3 warps((unsigned)((rows + PACK_WARPS - 1) / PACK_WARPS), (unsigned)lanes);
        scale_rows<<<warps, PACK_THREADS, 0, stream>>>(*policy, parameters, params, packed, first);
        const ho_status rc = ho_cuda_status(cudaGetLastError(), "scale_rows");
        if (rc != HO_OK) {
            return rc;
        }
    }
    pack_policy<<<grid, PACK_THREADS, 0, stream>>>(*policy, parameters, params, packed, first);
    return ho_cuda_status(cudaGetLastError(), "pack_policy");
}
