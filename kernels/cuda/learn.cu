/* SPDX-License-Identifier: Apache-2.0
 * One update, by the path the cohort runs on, and the pass over new experience. */
#include "kernels/cuda/fused_layout.h"
#include "kernels/cuda/learn.h"

int ho_fused_fits(const ho_device_net *net, int batch, int bf16)
{
    return bf16 && net->dueling && net->branches.count == 1 && net->actions == HO_ACTIONS &&
           net->atoms == 1 && !net->noisy && net->layer[0].out == 256 && net->layer[1].out == 256 &&
           net->head == 128 && batch % HO_FUSED_ROWS == 0;
}

static ho_status td(const ho_learn_view *v, cudaStream_t stream)
{
    return v->net.atoms > 1 ? ho_learn_td_atoms(v, stream) : ho_learn_td(v, stream);
}

ho_status ho_learn_update(const ho_learn_view *v, int update, cudaStream_t stream)
{
    const int few = v->fused && v->lanes <= HO_FUSED_FEW;
    ho_status rc = ho_priority_draw_batch(v, update, stream);
    if (v->fused) {
        rc = rc == HO_OK ? ho_fused_forward_backward(v, update, stream) : rc;
        rc = rc == HO_OK ? ho_fused_gradient(v, stream) : rc;
    } else {
        rc = rc == HO_OK ? ho_noise_renew(v, update, stream) : rc;
        rc = rc == HO_OK ? ho_learn_gather(v, update, stream) : rc;
        rc = rc == HO_OK ? ho_learn_forward(v, stream) : rc;
        rc = rc == HO_OK ? td(v, stream) : rc;
        rc = rc == HO_OK ? ho_learn_backward(v, stream) : rc;
        rc = rc == HO_OK ? ho_learn_gradient(v, stream) : rc;
        rc = rc == HO_OK ? ho_noise_gradient(v, stream) : rc;
    }
    if (rc == HO_OK) {
        rc = few ? ho_fused_few_gate(v, stream) : ho_learn_gate(v, stream);
    }
    if (rc == HO_OK) {
        rc = few ? ho_fused_few_adam(v, stream) : ho_learn_adam(v, stream);
    }
    return rc == HO_OK ? ho_priority_write(v, stream) : rc;
}

ho_status ho_learn_first_priorities(const ho_learn_view *v, cudaStream_t stream)
{
    ho_status rc = HO_OK;
    if (v->priority.shape.kind == HO_REPLAY_UNIFORM) {
        return rc;
    }
    if (v->new_td) {
        rc = ho_fused_new_td(v, stream);
        rc = rc == HO_OK ? ho_priority_enter(v, stream) : rc;
        return rc == HO_OK ? ho_priority_open(v, stream) : rc;
    }
    ho_learn_view pass = *v;
    pass.first_new = 0;
    rc = ho_noise_none(&pass, stream);
    for (; pass.first_new < v->new_rows && rc == HO_OK; pass.first_new += v->batch) {
        rc = ho_learn_gather(&pass, 0, stream);
        rc = rc == HO_OK ? ho_learn_forward(&pass, stream) : rc;
        rc = rc == HO_OK ? td(&pass, stream) : rc;
    }
    return rc == HO_OK ? ho_priority_open(v, stream) : rc;
}
