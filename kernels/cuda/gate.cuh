/* SPDX-License-Identifier: Apache-2.0
 * What the gates of all updates share: sums over a warp in one order, the guard, and the numbers of
 * the Adam step. A gate is one warp a lane and alone writes the lane's counters. */
#ifndef HO_CUDA_GATE_CUH
#define HO_CUDA_GATE_CUH

#include "kernels/agents/optim.h"
#include "kernels/backend.h"
#include "kernels/cuda/lane_device.h"

static __device__ __forceinline__ double gate_sum(double x)
{
    for (int step = 16; step > 0; step >>= 1) {
        x += __shfl_xor_sync(0xffffffffu, x, step);
    }
    return x;
}

static __device__ __forceinline__ double gate_extreme(double x, bool largest)
{
    for (int step = 16; step > 0; step >>= 1) {
        const double y = __shfl_xor_sync(0xffffffffu, x, step);
        x = largest ? fmax(x, y) : fmin(x, y);
    }
    return x;
}

/* The comparisons are written so that NaN trips them. */
static __device__ int gate_judge(ho_lane_device *lane, double loss, double norm, double q_largest)
{
    const ho_agent_config *agent = &lane->agent;
    if (!(fabs(loss) <= agent->loss_ceiling)) {
        return HO_GUARD_LOSS;
    }
    if (!isfinite(norm)) {
        return HO_GUARD_GRADIENT;
    }
    if (!(q_largest <= agent->q_ceiling)) {
        return HO_GUARD_Q;
    }
    lane->small_gradients = norm < agent->grad_floor ? lane->small_gradients + 1 : 0;
    return agent->grad_floor > 0.0 && lane->small_gradients >= agent->grad_patience
               ? HO_GUARD_VANISHED
               : HO_GUARD_NONE;
}

/* The numbers of a lane's next Adam step but for the clip, which waits for the norm. */
typedef struct gate_step {
    ho_update_gate gate; /* clip 1, apply 1 */
    double rate;         /* the learning rate */
} gate_step;

/* target_share: of the online weights. */
static __device__ __forceinline__ gate_step gate_step_of(const ho_lane_device *lane,
                                                         float target_share)
{
    const ho_agent_config *agent = &lane->agent;
    gate_step s;
    s.rate = ho_learning_rate(agent->learning_rate, agent->schedule, agent->warmup_updates,
                              lane->updates, lane->total_updates);
    const ho_adam adam = ho_adam_of(agent, s.rate, lane->updates + 1, 1.0);
    const ho_update_gate g = {adam.beta1,     adam.beta2,   adam.step,
                              adam.inv_bias2, adam.eps,     adam.keep,
                              adam.clip,      target_share, 1};
    s.gate = g;
    return s;
}

/* Lets the guard judge, then opens the gate for one Adam step; by one thread, after the sums of the
 * epoch took this update in. largest: |Q| or |V|. */
static __device__ void gate_decide(ho_lane_device *lane, ho_update_gate *gate, double loss,
                                   double norm, double largest, const gate_step *step)
{
    const int guard = gate_judge(lane, loss, norm, largest);
    if (guard != HO_GUARD_NONE) {
        lane->guard = guard;
        lane->guard_update = lane->updates;
        gate->apply = 0;
        return;
    }
    *gate = step->gate;
    gate->clip = (float)ho_clip_scale(norm, lane->agent.max_grad_norm);
    lane->updates++;
    lane->sums.updates++;
    lane->sums.learning_rate = step->rate;
}

#endif
