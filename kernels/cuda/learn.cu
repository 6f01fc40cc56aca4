/* SPDX-License-Identifier: Apache-2.0
 * One update, by the path the cohort runs on. */
#include "kernels/cuda/fused_layout.h"
#include "kernels/cuda/learn.h"

int ho_fused_fits(const ho_device_net *net, int batch, int bf16)
{
    return bf16 && net->dueling && net->actions == HO_ACTIONS && net->layer[0].out == 256 &&
           net->layer[1].out == 256 && net->head == 128 && batch % HO_FUSED_ROWS == 0;
}

ho_status ho_learn_update(const ho_learn_view *v, int update, cudaStream_t stream)
{
    ho_status rc;
    if (v->fused) {
        rc = ho_fused_forward_backward(v, update, stream);
        rc = rc == HO_OK ? ho_fused_gradient(v, stream) : rc;
    } else {
        rc = ho_learn_gather(v, update, stream);
        rc = rc == HO_OK ? ho_learn_forward(v, stream) : rc;
        rc = rc == HO_OK ? ho_learn_td(v, stream) : rc;
        rc = rc == HO_OK ? ho_learn_backward(v, stream) : rc;
        rc = rc == HO_OK ? ho_learn_gradient(v, stream) : rc;
    }
    rc = rc == HO_OK ? ho_learn_gate(v, stream) : rc;
    return rc == HO_OK ? ho_learn_adam(v, stream) : rc;
}
