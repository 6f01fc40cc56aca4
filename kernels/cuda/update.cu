/* SPDX-License-Identifier: Apache-2.0
 * The end of an update, shared by the portable and the fused path (of few lanes: fused_few.cu).
 * update_gate: one warp a lane adds the block sums of losses and squared gradients, in order,
 *   decides whether the lane trips the guard, and prepares the numbers of the Adam step. It alone
 *   writes the lane's counters.
 * adam_rows: moments, parameters, target and the bf16 copies of both.
 * A lane that tripped keeps its state from before the update. */
#include "kernels/cuda/adam_rows.cuh"
#include "kernels/cuda/device.h"
#include "kernels/cuda/learn.h"
#include "kernels/cuda/learn_gate.cuh"

static __global__ void update_gate(const __grid_constant__ ho_learn_view v)
{
    const int k = (int)blockIdx.x;
    const ho_lane_device *lane = &v.lane[k];
    if (!lane->learning || lane->guard != 0) {
        if (threadIdx.x == 0) {
            v.gate[k].apply = 0;
        }
        return;
    }
    const learn_totals totals = learn_totals_of(v, k);
    if (threadIdx.x == 0) {
        const gate_step step = learn_step_of(lane);
        learn_gate(v, k, &totals, &step);
    }
}

/* grid (threads / 256, lanes) */
static __global__ void __launch_bounds__(ADAM_THREADS)
    adam_rows(const __grid_constant__ ho_learn_view v)
{
    const int k = (int)blockIdx.y;
    const int thread = (int)(blockIdx.x * ADAM_THREADS + threadIdx.x);
    const ho_update_gate gate = v.gate[k];
    if (gate.apply && thread < adam_threads(v.net)) {
        const param_group g = group_of(v.net, thread);
        adam_state a;
        adam_read(v, k, g, gate.target_share > 0.0f, &a);
        adam_apply(v, k, g, gate, &a);
    }
}

static __global__ void __launch_bounds__(ADAM_THREADS)
    refresh_copies(const __grid_constant__ ho_learn_view v, int k)
{
    const int thread = (int)(blockIdx.x * ADAM_THREADS + threadIdx.x);
    if (thread >= adam_threads(v.net)) {
        return;
    }
    const param_group g = group_of(v.net, thread);
    const size_t at = (size_t)k * v.net.params;
    float p[GROUP] = {0}, t[GROUP] = {0};
    load_quads(p, v.online + at, g);
    if (v.target) {
        load_quads(t, v.target + at, g);
    }
    store_copies(v, k, g, p, t, v.target != NULL);
}

ho_status ho_learn_gate(const ho_learn_view *v, cudaStream_t stream)
{
    update_gate<<<(unsigned)v->lanes, 32, 0, stream>>>(*v);
    return ho_cuda_status(cudaGetLastError(), "update_gate");
}

ho_status ho_learn_adam(const ho_learn_view *v, cudaStream_t stream)
{
    adam_rows<<<dim3(adam_blocks(v), (unsigned)v->lanes), ADAM_THREADS, 0, stream>>>(*v);
    return ho_cuda_status(cudaGetLastError(), "adam_rows");
}

ho_status ho_learn_copies(const ho_learn_view *v, int lane, cudaStream_t stream)
{
    if (!v->bf16) {
        return HO_OK;
    }
    refresh_copies<<<adam_blocks(v), ADAM_THREADS, 0, stream>>>(*v, lane);
    return ho_cuda_status(cudaGetLastError(), "refresh_copies");
}
