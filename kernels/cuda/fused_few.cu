/* SPDX-License-Identifier: Apache-2.0
 * Gate and Adam of the fused path for few lanes, where an update is a chain of short kernels: each
 * starts while the one before still runs (programmatic dependent launch) and does what does not
 * depend on it. Equal to update_gate and adam_rows (update.cu). */
#include "kernels/cuda/adam_rows.cuh"
#include "kernels/cuda/device.h"
#include "kernels/cuda/early_launch.cuh"
#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/learn_gate.cuh"

/* The numbers of the step, whose powers take longest, while the gradients are summed; the last step
 * ended before those began. */
static __global__ void few_gate(const __grid_constant__ ho_learn_view v)
{
#if FUSED_CODE
    const int k = (int)blockIdx.x;
    const ho_lane_device *lane = &v.lane[k];
    gate_step step;
    grid_launch();
    __threadfence();
    if (threadIdx.x == 0) {
        step = learn_step_of(lane);
    }
    __syncwarp();
    grid_wait();
    if (!lane->learning || lane->guard != 0) {
        if (threadIdx.x == 0) {
            v.gate[k].apply = 0;
        }
        return;
    }
    const learn_totals totals = learn_totals_of(v, k);
    if (threadIdx.x == 0) {
        learn_gate(v, k, &totals, &step);
    }
#endif
}

/* The optimiser's state is read while the gradients are summed. grid (threads / 256, lanes) */
static __global__ void __launch_bounds__(ADAM_THREADS)
    few_adam(const __grid_constant__ ho_learn_view v)
{
#if FUSED_CODE
    const int k = (int)blockIdx.y;
    const int thread = (int)(blockIdx.x * ADAM_THREADS + threadIdx.x);
    const bool has = thread < adam_threads(v.net);
    param_group g = {};
    adam_state a;
    grid_launch();
    __threadfence();
    if (has) {
        g = group_of(v.net, thread);
        adam_read(v, k, g, v.lane[k].agent.tau > 0.0, &a);
    }
    grid_wait();
    const ho_update_gate gate = v.gate[k];
    if (gate.apply && has) {
        adam_apply(v, k, g, gate, &a);
    }
#endif
}

ho_status ho_fused_few_gate(const ho_learn_view *v, cudaStream_t stream)
{
    const cudaError_t rc = launch_early(few_gate, dim3((unsigned)v->lanes), 32, 0, stream, 1, *v);
    return ho_cuda_status(rc, "few_gate");
}

ho_status ho_fused_few_adam(const ho_learn_view *v, cudaStream_t stream)
{
    const dim3 grid(adam_blocks(v), (unsigned)v->lanes);
    return ho_cuda_status(launch_early(few_adam, grid, ADAM_THREADS, 0, stream, 1, *v), "few_adam");
}
