/* SPDX-License-Identifier: Apache-2.0
 * The end of an update, shared by the portable and the fused path.
 * update_gate: one warp a lane adds the block sums of losses and squared gradients, in order,
 *   decides whether the lane trips the guard, and prepares the numbers of the Adam step. It alone
 *   writes the lane's counters.
 * adam_rows: moments, parameters, target and the bf16 copies of both; a warp owns 8 rows x 32
 *   columns, so that every copy, whatever its order, is written in whole 32-byte sectors.
 * A lane that tripped keeps its state from before the update. */
#include "kernels/agents/optim.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/fused_layout.h"
#include "kernels/cuda/gate.cuh"
#include "kernels/cuda/learn.h"
#include "kernels/cuda/short_float.cuh"

enum { ADAM_THREADS = 256, GROUP = 8 /* parameters a thread owns */ };

/* fmax and fmin drop NaN; the sums keep it, and the guard looks at the loss first. */
static __global__ void update_gate(const __grid_constant__ ho_learn_view v)
{
    const int k = (int)blockIdx.x, l = (int)threadIdx.x;
    ho_lane_device *lane = &v.lane[k];
    ho_update_gate *gate = &v.gate[k];
    if (!lane->learning || lane->guard != 0) {
        if (l == 0) {
            gate->apply = 0;
        }
        return;
    }
    double loss = 0, td = 0, q = 0, q2 = 0, low = INFINITY, high = -INFINITY;
    for (int i = l; i < v.loss_parts; i += 32) {
        const ho_loss_part p = v.loss_part[(size_t)k * v.loss_parts + i];
        loss += p.loss;
        td += p.td_abs;
        q += p.q;
        q2 += p.q_square;
        low = fmin(low, (double)p.q_min);
        high = fmax(high, (double)p.q_max);
    }
    double square = 0;
    for (int i = l; i < v.norm_parts; i += 32) {
        square += v.norm_part[(size_t)k * v.norm_parts + i];
    }
    loss = gate_sum(loss) / v.batch;
    td = gate_sum(td);
    q = gate_sum(q);
    q2 = gate_sum(q2);
    low = gate_extreme(low, false);
    high = gate_extreme(high, true);
    const double norm = sqrt(gate_sum(square));
    if (l != 0) {
        return;
    }
    ho_update_sums *s = &lane->sums;
    s->loss += loss;
    s->loss_last = loss;
    s->grad_norm = norm;
    s->td_abs += td;
    s->q += q;
    s->q_square += q2;
    s->q_min = fmin(s->q_min, low);
    s->q_max = fmax(s->q_max, high);
    s->rows += v.batch;
    gate_decide(lane, gate, loss, norm, fmax(fabs(low), fabs(high)),
                ho_target_share(lane->agent.tau, lane->agent.target_every, lane->updates + 1));
}

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

/* grid (groups / 256, lanes) */
static __global__ void __launch_bounds__(ADAM_THREADS)
    adam_rows(const __grid_constant__ ho_learn_view v)
{
    const int k = (int)blockIdx.y;
    const int group = (int)(blockIdx.x * ADAM_THREADS + threadIdx.x);
    const ho_update_gate gate = v.gate[k];
    if (!gate.apply || group >= v.net.params / GROUP) {
        return;
    }
    const ho_adam adam = {gate.beta1, gate.beta2, gate.step, gate.inv_bias2,
                          gate.eps,   gate.keep,  gate.clip};
    const param_group g = group_of(v.net, group);
    const size_t at = (size_t)k * v.net.params + g.at;
    float p[GROUP], m[GROUP], s[GROUP], d[GROUP], t[GROUP] = {0};
    load8(p, v.online + at);
    load8(m, v.moment1 + at);
    load8(s, v.moment2 + at);
    load8(d, v.gradient + at);
    const bool target_too = gate.target_share > 0.0f;
    if (target_too) {
        load8(t, v.target + at);
    }
#pragma unroll
    for (int i = 0; i < GROUP; i++) {
        ho_adam_step(&adam, d[i], &p[i], &m[i], &s[i]);
        t[i] = ho_target_mix(t[i], p[i], gate.target_share);
    }
    store8(v.online + at, p);
    store8(v.moment1 + at, m);
    store8(v.moment2 + at, s);
    if (target_too) {
        store8(v.target + at, t);
    }
    store_copies(v, k, g, p, t, target_too);
}

static __global__ void __launch_bounds__(ADAM_THREADS)
    refresh_copies(const __grid_constant__ ho_learn_view v, int k)
{
    const int group = (int)(blockIdx.x * ADAM_THREADS + threadIdx.x);
    if (group >= v.net.params / GROUP) {
        return;
    }
    const param_group g = group_of(v.net, group);
    const size_t at = (size_t)k * v.net.params + g.at;
    float p[GROUP], t[GROUP] = {0};
    load8(p, v.online + at);
    if (v.target) {
        load8(t, v.target + at);
    }
    store_copies(v, k, g, p, t, v.target != NULL);
}

static unsigned group_blocks(const ho_learn_view *v)
{
    return (unsigned)((v->net.params / GROUP + ADAM_THREADS - 1) / ADAM_THREADS);
}

ho_status ho_learn_gate(const ho_learn_view *v, cudaStream_t stream)
{
    update_gate<<<(unsigned)v->lanes, 32, 0, stream>>>(*v);
    return ho_cuda_status(cudaGetLastError(), "update_gate");
}

ho_status ho_learn_adam(const ho_learn_view *v, cudaStream_t stream)
{
    adam_rows<<<dim3(group_blocks(v), (unsigned)v->lanes), ADAM_THREADS, 0, stream>>>(*v);
    return ho_cuda_status(cudaGetLastError(), "adam_rows");
}

ho_status ho_learn_copies(const ho_learn_view *v, int lane, cudaStream_t stream)
{
    if (!v->bf16) {
        return HO_OK;
    }
    refresh_copies<<<group_blocks(v), ADAM_THREADS, 0, stream>>>(*v, lane);
    return ho_cuda_status(cudaGetLastError(), "refresh_copies");
}
