/* SPDX-License-Identifier: Apache-2.0
 * Adam, target and bf16 copies of a lane, 8 parameters a thread; a warp owns 8 rows x 32 columns,
 * so that every copy, whatever its order, is written in whole 32-byte sectors. */
#ifndef HO_CUDA_ADAM_ROWS_CUH
#define HO_CUDA_ADAM_ROWS_CUH

#include "kernels/agents/optim.h"
#include "kernels/cuda/fused_layout.h"
#include "kernels/cuda/learn.h"
#include "kernels/cuda/short_float.cuh"

enum { ADAM_THREADS = 256, GROUP = 8 /* parameters a thread owns */ };

/* Where the 8 parameters of a thread lie: 8 neighbouring columns of one row, or 8 biases. */
typedef struct param_group {
    int at;    /* first parameter */
    int layer; /* of the matrix; -1: biases */
    int row, column;
} param_group;

/* Groups run through 8 rows before the next 8 columns. */
static __device__ __forceinline__ param_group group_of(const ho_device_net &net, int group)
{
    param_group g = {group * GROUP, -1, 0, 0};
    if (g.at >= net.weights) {
        return g;
    }
    for (int l = 0; l < HO_DEVICE_LAYERS; l++) {
        const int first = net.layer[l].weight / GROUP;
        const int in_layer = group - first;
        const int groups_row = net.layer[l].in / GROUP;
        if (in_layer >= 0 && in_layer < net.layer[l].out * groups_row) {
            const int tile = in_layer / 8;
            g.layer = l;
            g.row = tile / groups_row * 8 + in_layer % 8;
            g.column = tile % groups_row * GROUP;
            g.at = net.layer[l].weight + g.row * net.layer[l].in + g.column;
        }
    }
    return g;
}

static __device__ __forceinline__ void load8(float (&x)[GROUP], const float *from)
{
    const float4 a = ((const float4 *)from)[0], b = ((const float4 *)from)[1];
    x[0] = a.x, x[1] = a.y, x[2] = a.z, x[3] = a.w;
    x[4] = b.x, x[5] = b.y, x[6] = b.z, x[7] = b.w;
}

static __device__ __forceinline__ void store8(float *to, const float (&x)[GROUP])
{
    ((float4 *)to)[0] = make_float4(x[0], x[1], x[2], x[3]);
    ((float4 *)to)[1] = make_float4(x[4], x[5], x[6], x[7]);
}

static __device__ __forceinline__ uint4 pack8(const float (&x)[GROUP])
{
    uint4 r;
    __nv_bfloat162 *p = (__nv_bfloat162 *)&r;
#pragma unroll
    for (int i = 0; i < GROUP / 2; i++) {
        p[i] = shorts_of(x[2 * i], x[2 * i + 1]);
    }
    return r;
}

/* The bf16 copies of one group of a matrix. */
static __device__ __forceinline__ void store_copies(const ho_learn_view &v, int k,
                                                    const param_group &g,
                                                    const float (&online)[GROUP],
                                                    const float (&target)[GROUP], bool target_too)
{
    if (g.layer < 0 || !v.bf16) {
        return;
    }
    const uint4 o = pack8(online), t = pack8(target);
    if (v.fused) {
        uint8_t *w = v.fused_weights + (size_t)k * 2 * HO_FUSED_WEIGHT_BYTES;
        const int at = ho_fused_weight_at(g.layer, g.row, g.column);
        *(uint4 *)(w + at) = o;
        if (target_too) {
            *(uint4 *)(w + HO_FUSED_WEIGHT_BYTES + at) = t;
        }
        if (g.layer == 1 || g.layer == 2) {
            uint8_t *b = v.fused_backward + (size_t)k * HO_FUSED_BACKWARD_BYTES;
            *(uint4 *)(b + ho_fused_backward_at(g.layer, g.row, g.column)) = o;
        }
        return;
    }
    *(uint4 *)((__nv_bfloat16 *)v.online_copy + (size_t)k * v.net.weights + g.at) = o;
    if (target_too) {
        *(uint4 *)((__nv_bfloat16 *)v.target_copy + (size_t)k * v.net.weights + g.at) = t;
    }
}

/* What a step of 8 parameters reads beside the gradient. */
typedef struct adam_state {
    float p[GROUP], m[GROUP], s[GROUP], t[GROUP];
} adam_state;

static __device__ __forceinline__ void
adam_read(const ho_learn_view &v, int k, const param_group &g, bool target_too, adam_state *a)
{
    const size_t at = (size_t)k * v.net.params + g.at;
    load8(a->p, v.online + at);
    load8(a->m, v.moment1 + at);
    load8(a->s, v.moment2 + at);
#pragma unroll
    for (int i = 0; i < GROUP; i++) {
        a->t[i] = 0.0f;
    }
    if (target_too) {
        load8(a->t, v.target + at);
    }
}

static __device__ __forceinline__ void adam_apply(const ho_learn_view &v, int k,
                                                  const param_group &g, const ho_update_gate &gate,
                                                  adam_state *a)
{
    const ho_adam adam = {gate.beta1, gate.beta2, gate.step, gate.inv_bias2,
                          gate.eps,   gate.keep,  gate.clip};
    const size_t at = (size_t)k * v.net.params + g.at;
    float d[GROUP];
    load8(d, v.gradient + at);
#pragma unroll
    for (int i = 0; i < GROUP; i++) {
        ho_adam_step(&adam, d[i], &a->p[i], &a->m[i], &a->s[i]);
        a->t[i] = ho_target_mix(a->t[i], a->p[i], gate.target_share);
    }
    store8(v.online + at, a->p);
    store8(v.moment1 + at, a->m);
    store8(v.moment2 + at, a->s);
    const bool target_too = gate.target_share > 0.0f;
    if (target_too) {
        store8(v.target + at, a->t);
    }
    store_copies(v, k, g, a->p, a->t, target_too);
}

static inline unsigned adam_blocks(const ho_learn_view *v)
{
    return (unsigned)((v->net.params / GROUP + ADAM_THREADS - 1) / ADAM_THREADS);
}

#endif
