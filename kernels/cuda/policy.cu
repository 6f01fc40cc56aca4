/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cuda/policy.h"

#include <cuda_bf16.h>

#include "kernels/cuda/device.h"

enum { PACK_THREADS = 256 };

ho_policy_net ho_policy_net_of(const ho_device_net *net, int bf16)
{
    ho_policy_net p = {};
    p.branches = net->branches;
    p.actions = net->actions;
    p.bf16 = bf16;
    int at = 0;
    for (int l = 0; l < HO_DEVICE_LAYERS; l++) {
        ho_policy_layer *layer = &p.layer[l];
        layer->in = l == 0 ? net->layer[0].in : net->half[l - 1];
        layer->out = net->half[l];
        layer->weight = net->layer[l].weight;
        layer->stride = net->layer[l].in;
        layer->bias_from = net->layer[l].bias;
        layer->matrix = at;
        layer->matrix_bytes = layer->in * layer->out * (bf16 ? 2 : 4);
        at += layer->matrix_bytes;
        if (l < HO_DEVICE_LAYERS - 1 && layer->out > p.hidden_max) {
            p.hidden_max = layer->out;
        }
    }
    p.bias_at = at;
    for (int l = 0; l < HO_DEVICE_LAYERS; l++) {
        p.layer[l].bias = at;
        at += p.layer[l].out * 4;
    }
    p.bias_bytes = at - p.bias_at;
    p.bytes = (at + 127) / 128 * 128;
    return p;
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
    const int words = p.bf16 ? p.bias_at / 16 : p.bias_at / 4;
    if (at >= words + p.bias_bytes / 4) {
        return;
    }
    if (at >= words) {
        const int byte = p.bias_at + (at - words) * 4;
        for (int l = 0; l < HO_DEVICE_LAYERS; l++) {
            const int i = (byte - p.layer[l].bias) / 4;
            if (byte >= p.layer[l].bias && i < p.layer[l].out) {
                *(float *)(to + byte) = w[p.layer[l].bias_from + i];
            }
        }
        return;
    }
    const int byte = at * (p.bf16 ? 16 : 4);
    int l = 0;
    while (byte >= p.layer[l].matrix + p.layer[l].matrix_bytes) {
        l++;
    }
    const ho_policy_layer layer = p.layer[l];
    const float *from = w + layer.weight;
    if (!p.bf16) {
        const int i = (byte - layer.matrix) / 4;
        *(float *)(to + byte) = from[(size_t)(i % layer.out) * layer.stride + i / layer.out];
        return;
    }
    const int word = (byte - layer.matrix) / 16, thread = word % 32;
    const int step = word / 32 % (layer.in / 16), tile = word / 32 / (layer.in / 16);
    const int g = thread / 4, t = thread % 4;
    __nv_bfloat162 fragment[4];
#pragma unroll
    for (int r = 0; r < 4; r++) {
        const int row = tile * 16 + 2 * g + (r & 1), column = step * 16 + 2 * t + (r >> 1) * 8;
        const float *pair = from + (size_t)row * layer.stride + column;
        fragment[r] = __floats2bfloat162_rn(pair[0], pair[1]);
    }
    *(uint4 *)(to + byte) = *(const uint4 *)fragment;
}

ho_status ho_policy_pack(const ho_policy_net *policy, const float *parameters, int params,
                         uint8_t *packed, int first, int lanes, cudaStream_t stream)
{
    const int items = policy->bias_at / (policy->bf16 ? 16 : 4) + policy->bias_bytes / 4;
    const dim3 grid((unsigned)((items + PACK_THREADS - 1) / PACK_THREADS), (unsigned)lanes);
    pack_policy<<<grid, PACK_THREADS, 0, stream>>>(*policy, parameters, params, packed, first);
    return ho_cuda_status(cudaGetLastError(), "pack_policy");
}
