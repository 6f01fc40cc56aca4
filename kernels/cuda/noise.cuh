/* SPDX-License-Identifier: Apache-2.0
 * Factorised noise (Fortunato 2018) as the kernels read it. One draw is a vector [net.noise_size]:
 *   out2 [heads] | in3 [heads] | out3 [outputs] | in2 of the advantage head [hidden2] | in2 of the
 *   value head [hidden2]
 * all widths padded, padding 0. Columns of the last layer belong to one head each, so in3 needs no
 * second copy. The numbers are those of ho_net_noise (kernels/cpu/init.c), entry for entry. */
#ifndef HO_CUDA_NOISE_CUH
#define HO_CUDA_NOISE_CUH

#include "kernels/agents/explore.h"
#include "kernels/cuda/device_net.h"
#include "kernels/env/rng.h"

/* First entries of the parts of a draw. */
static __device__ __forceinline__ int noise_in3(const ho_device_net &net)
{
    return net.layer[2].out;
}

static __device__ __forceinline__ int noise_out3(const ho_device_net &net)
{
    return 2 * net.layer[2].out;
}

static __device__ __forceinline__ int noise_in2(const ho_device_net &net, int value_head)
{
    return 2 * net.layer[2].out + net.layer[3].out + value_head * net.layer[2].in;
}

/* Which number of the CPU's vector entry `at` of a draw is; -1: padding. */
static __device__ __forceinline__ int noise_index(const ho_device_net &net, int at)
{
    const int heads = net.layer[2].out;
    if (at < 2 * heads) { /* out2, in3: a unit of a head */
        const int unit = at % heads, value = unit >= net.head_pad;
        const int in_head = unit - value * net.head_pad;
        if (in_head >= net.head) {
            return -1;
        }
        return at < heads ? net.noise_from[value * 2] + net.hidden2 + in_head
                          : net.noise_from[value * 2 + 1] + in_head;
    }
    at -= 2 * heads;
    if (at < net.layer[3].out) {
        const int value = at >= net.values;
        return at >= net.outputs
                   ? -1
                   : net.noise_from[value * 2 + 1] + net.head + at - value * net.values;
    }
    at -= net.layer[3].out;
    const int value = at >= net.layer[2].in, column = at - value * net.layer[2].in;
    return column >= net.hidden2 || (value && !net.dueling) ? -1
                                                            : net.noise_from[value * 2] + column;
}

/* Entry `at` of the draw for one acting step or update of one epoch. */
static __device__ __forceinline__ float noise_entry(const ho_device_net &net, const uint32_t key[2],
                                                    uint32_t step, uint32_t epoch, uint32_t user,
                                                    int at)
{
    const int i = noise_index(net, at);
    if (i < 0) {
        return 0.0f;
    }
    const ho_rng4 r = ho_rng(key, step, user, epoch, HO_RNG_NOISE, (uint32_t)(i / 2));
    return ho_noise_shape(i % 2 ? ho_rng_normal(r.v[2], r.v[3]) : ho_rng_normal(r.v[0], r.v[1]));
}

/* The factors of a weight of layer 2 or 3. */
static __device__ __forceinline__ float noise_out(const ho_device_net &net, const float *noise,
                                                  int layer, int row)
{
    return noise[layer == 2 ? row : noise_out3(net) + row];
}

static __device__ __forceinline__ float noise_in(const ho_device_net &net, const float *noise,
                                                 int layer, int row, int column)
{
    return noise[(layer == 2 ? noise_in2(net, row >= net.head_pad) : noise_in3(net)) + column];
}

#endif
