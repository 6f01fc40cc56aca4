/* SPDX-License-Identifier: Apache-2.0
 * The emulator has no sm_90a: the fused kernels are not there, as in a build without 90a, and the
 * backend never asks for them. */
#include "kernels/cuda/learn.h"

ho_status ho_fused_forward_prepare(int lanes)
{
    (void)lanes;
    return HO_EUNSUPPORTED;
}

ho_status ho_fused_gradient_prepare(int lanes)
{
    (void)lanes;
    return HO_EUNSUPPORTED;
}

ho_status ho_fused_forward_backward(const ho_learn_view *v, int update, cudaStream_t stream)
{
    (void)v;
    (void)update;
    (void)stream;
    return HO_EUNSUPPORTED;
}

ho_status ho_fused_gradient(const ho_learn_view *v, cudaStream_t stream)
{
    (void)v;
    (void)stream;
    return HO_EUNSUPPORTED;
}

ho_status ho_fused_few_gate(const ho_learn_view *v, cudaStream_t stream)
{
    (void)v;
    (void)stream;
    return HO_EUNSUPPORTED;
}

ho_status ho_fused_few_adam(const ho_learn_view *v, cudaStream_t stream)
{
    (void)v;
    (void)stream;
    return HO_EUNSUPPORTED;
}

ho_status ho_fused_new_td_prepare(void)
{
    return HO_EUNSUPPORTED;
}

ho_status ho_fused_new_td(const ho_learn_view *v, cudaStream_t stream)
{
    (void)v;
    (void)stream;
    return HO_EUNSUPPORTED;
}
