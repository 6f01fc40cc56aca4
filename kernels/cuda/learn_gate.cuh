/* SPDX-License-Identifier: Apache-2.0
 * The gate of a DQN update: sums of losses and squared gradients over the blocks that left them, in
 * order, and what they decide. One warp a lane. */
#ifndef HO_CUDA_LEARN_GATE_CUH
#define HO_CUDA_LEARN_GATE_CUH

#include "kernels/cuda/gate.cuh"
#include "kernels/cuda/learn.h"

/* Of one update of a lane. */
typedef struct learn_totals {
    double loss, td, q, q_square, q_min, q_max, norm;
} learn_totals;

static __device__ __forceinline__ gate_step learn_step_of(const ho_lane_device *lane)
{
    return gate_step_of(
        lane, ho_target_share(lane->agent.tau, lane->agent.target_every, lane->updates + 1));
}

/* On every thread of the warp. fmax and fmin drop NaN; the sums keep it, and the guard looks at the
 * loss first. */
static __device__ __forceinline__ learn_totals learn_totals_of(const ho_learn_view &v, int k)
{
    const int l = (int)threadIdx.x % 32;
    learn_totals t = {0, 0, 0, 0, INFINITY, -INFINITY, 0};
    for (int i = l; i < v.loss_parts; i += 32) {
        const ho_loss_part p = v.loss_part[(size_t)k * v.loss_parts + i];
        t.loss += p.loss;
        t.td += p.td_abs;
        t.q += p.q;
        t.q_square += p.q_square;
        t.q_min = fmin(t.q_min, (double)p.q_min);
        t.q_max = fmax(t.q_max, (double)p.q_max);
    }
    double square = 0;
    for (int i = l; i < v.norm_parts; i += 32) {
        square += v.norm_part[(size_t)k * v.norm_parts + i];
    }
    t.loss = gate_sum(t.loss) / v.batch;
    t.td = gate_sum(t.td);
    t.q = gate_sum(t.q);
    t.q_square = gate_sum(t.q_square);
    t.q_min = gate_extreme(t.q_min, false);
    t.q_max = gate_extreme(t.q_max, true);
    t.norm = sqrt(gate_sum(square));
    __syncwarp(); /* all have read of the lane what one writes now */
    return t;
}

/* By one thread: the lane's sums of the epoch, the guard, the gate. */
static __device__ void learn_gate(const ho_learn_view &v, int k, const learn_totals *t,
                                  const gate_step *step)
{
    ho_lane_device *lane = &v.lane[k];
    ho_update_sums *s = &lane->sums;
    s->loss += t->loss;
    s->loss_last = t->loss;
    s->grad_norm = t->norm;
    s->td_abs += t->td;
    s->q += t->q;
    s->q_square += t->q_square;
    s->q_min = fmin(s->q_min, t->q_min);
    s->q_max = fmax(s->q_max, t->q_max);
    s->rows += v.batch;
    gate_decide(lane, &v.gate[k], t->loss, t->norm, fmax(fabs(t->q_min), fabs(t->q_max)), step);
}

#endif
