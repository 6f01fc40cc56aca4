/* SPDX-License-Identifier: Apache-2.0
 * Adam, target and bf16 copies of a lane, 8 parameters a thread: two quads of 4 neighbouring
 * columns. A warp owns 8 rows x 32 columns, and each of its loads and stores covers whole 32-byte
 * sectors, in every order that copies have. */
#ifndef HO_CUDA_ADAM_ROWS_CUH
#define HO_CUDA_ADAM_ROWS_CUH

#include "kernels/agents/optim.h"
#include "kernels/cuda/fused_layout.h"
#include "kernels/cuda/learn.h"
#include "kernels/cuda/short_float.cuh"

enum { ADAM_THREADS = 256, QUAD = 4, GROUP = 2 * QUAD /* parameters a thread owns */ };

/* Where the quads of a thread lie: in a matrix in the same columns, 4 rows apart. */
typedef struct param_group {
    int at[2]; /* first parameter of each; -1: none, past the last bias */
    int layer; /* of the matrix; -1: biases */
    int row, column;
} param_group;

/* Eight threads own 64 parameters: 8 rows x 8 columns, which run through all rows of 8 before the
 * next columns, or 64 biases. */
static __device__ __forceinline__ param_group group_of(const ho_device_net &net, int thread)
{
    const int first = thread / 8 * 8 * GROUP, i = thread % 8;
    param_group g = {{first + i * QUAD, first + (8 + i) * QUAD}, -1, 0, 0};
    if (first >= net.weights) {
        for (int q = 0; q < 2; q++) {
            g.at[q] = g.at[q] < net.params ? g.at[q] : -1;
        }
        return g;
    }
    for (int l = 0; l < HO_DEVICE_LAYERS; l++) {
        const int tile = (first - net.layer[l].weight) / (8 * GROUP);
        const int tiles_row = net.layer[l].in / 8;
        if (first >= net.layer[l].weight && tile < net.layer[l].out / 8 * tiles_row) {
            g.layer = l;
            g.row = tile / tiles_row * 8 + i / 2;
            g.column = tile % tiles_row * 8 + i % 2 * QUAD;
            g.at[0] = net.layer[l].weight + g.row * net.layer[l].in + g.column;
            g.at[1] = g.at[0] + 4 * net.layer[l].in;
        }
    }
    return g;
}

/* Zeros where there is no quad. */
static __device__ __forceinline__ void load_quads(float (&x)[GROUP], const float *from,
                                                  const param_group &g)
{
#pragma unroll
    for (int q = 0; q < 2; q++) {
        const float4 a = g.at[q] < 0 ? make_float4(0, 0, 0, 0) : *(const float4 *)(from + g.at[q]);
        x[q * QUAD] = a.x, x[q * QUAD + 1] = a.y, x[q * QUAD + 2] = a.z, x[q * QUAD + 3] = a.w;
    }
}

static __device__ __forceinline__ void store_quads(float *to, const param_group &g,
                                                   const float (&x)[GROUP])
{
#pragma unroll
    for (int q = 0; q < 2; q++) {
        if (g.at[q] >= 0) {
            *(float4 *)(to + g.at[q]) =
                make_float4(x[q * QUAD], x[q * QUAD + 1], x[q * QUAD + 2], x[q * QUAD + 3]);
        }
    }
}

static __device__ __forceinline__ uint2 pack_quad(const float *x)
{
    uint2 r;
    __nv_bfloat162 *p = (__nv_bfloat162 *)&r;
    p[0] = shorts_of(x[0], x[1]);
    p[1] = shorts_of(x[2], x[3]);
    return r;
}

/* The bf16 copies of quads of a matrix. */
static __device__ __forceinline__ void store_copies(const ho_learn_view &v, int k,
                                                    const param_group &g,
                                                    const float (&online)[GROUP],
                                                    const float (&target)[GROUP], bool target_too)
{
    if (g.layer < 0 || !v.bf16) {
        return;
    }
#pragma unroll
    for (int q = 0; q < 2; q++) {
        const uint2 o = pack_quad(online + q * QUAD), t = pack_quad(target + q * QUAD);
        if (!v.fused) {
            const size_t at = (size_t)k * v.net.weights + g.at[q];
            *(uint2 *)((__nv_bfloat16 *)v.online_copy + at) = o;
            if (target_too) {
                *(uint2 *)((__nv_bfloat16 *)v.target_copy + at) = t;
            }
            continue;
        }
        const int row = g.row + q * 4;
        uint8_t *w = v.fused_weights + (size_t)k * 2 * HO_FUSED_WEIGHT_BYTES +
                     ho_fused_weight_at(g.layer, row, g.column);
        *(uint2 *)w = o;
        if (target_too) {
            *(uint2 *)(w + HO_FUSED_WEIGHT_BYTES) = t;
        }
        if (g.layer == 1 || g.layer == 2) {
            uint8_t *b = v.fused_backward + (size_t)k * HO_FUSED_BACKWARD_BYTES;
            *(uint2 *)(b + ho_fused_backward_at(g.layer, row, g.column)) = o;
        }
    }
}

/* What a step of 8 parameters reads beside the gradient. */
typedef struct adam_state {
    float p[GROUP], m[GROUP], s[GROUP], t[GROUP];
} adam_state;

static __device__ __forceinline__ void
adam_read(const ho_learn_view &v, int k, const param_group &g, bool target_too, adam_state *a)
{
    const size_t at = (size_t)k * v.net.params;
    load_quads(a->p, v.online + at, g);
    load_quads(a->m, v.moment1 + at, g);
    load_quads(a->s, v.moment2 + at, g);
#pragma unroll
    for (int i = 0; i < GROUP; i++) {
        a->t[i] = 0.0f;
    }
    if (target_too) {
        load_quads(a->t, v.target + at, g);
    }
}

static __device__ __forceinline__ void adam_apply(const ho_learn_view &v, int k,
                                                  const param_group &g, const ho_update_gate &gate,
                                                  adam_state *a)
{
    const ho_adam adam = {gate.beta1, gate.beta2, gate.step, gate.inv_bias2,
                          gate.eps,   gate.keep,  gate.clip};
    const size_t at = (size_t)k * v.net.params;
    float d[GROUP];
    load_quads(d, v.gradient + at, g);
#pragma unroll
    for (int i = 0; i < GROUP; i++) {
        ho_adam_step(&adam, d[i], &a->p[i], &a->m[i], &a->s[i]);
        a->t[i] = ho_target_mix(a->t[i], a->p[i], gate.target_share);
    }
    store_quads(v.online + at, g, a->p);
    store_quads(v.moment1 + at, g, a->m);
    store_quads(v.moment2 + at, g, a->s);
    const bool target_too = gate.target_share > 0.0f;
    if (target_too) {
        store_quads(v.target + at, g, a->t);
    }
    store_copies(v, k, g, a->p, a->t, target_too);
}

/* Threads of a lane: all groups of 64 parameters, the last perhaps in part. */
static inline __host__ __device__ int adam_threads(const ho_device_net &net)
{
    return (net.params + 8 * GROUP - 1) / (8 * GROUP) * 8;
}

static inline unsigned adam_blocks(const ho_learn_view *v)
{
    return (unsigned)((adam_threads(v->net) + ADAM_THREADS - 1) / ADAM_THREADS);
}

#endif
