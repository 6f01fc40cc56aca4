/* SPDX-License-Identifier: Apache-2.0
 * Training of the curiosity reward's forward model on the device; acting asks it inside the
 * experience kernel (curiosity_block.cuh). One float vector a lane: parameters, first and second
 * moments, HO_CURIOSITY_SIZE each (kernels/agents/curiosity_net.h), float32 in any precision. */
#ifndef HO_CUDA_CURIOSITY_H
#define HO_CUDA_CURIOSITY_H

#include "kernels/agents/curiosity_net.h"
#include "kernels/cuda/experience.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Asks for the shared memory of the kernel. */
ho_status ho_curiosity_prepare(void);

/* One pass over the epoch's steps in collection order, in batches of HO_CURIOSITY_BATCH, AdamW with
 * the agent's betas and weight decay; in every curiosity_every-th epoch of a lane, else nothing.
 * row, row_count: ho_trace_rows' valid steps. state: [K, HO_CURIOSITY_STATE]. */
ho_status ho_curiosity_train(const ho_experience_view *v, const int32_t *row,
                             const int32_t *row_count, float *state, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
