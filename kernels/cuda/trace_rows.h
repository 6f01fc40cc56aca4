/* SPDX-License-Identifier: Apache-2.0
 * Lists of an epoch's steps, made on the device: who works through the trace row by row needs the
 * valid ones without gaps, in the CPU backend's order. */
#ifndef HO_CUDA_TRACE_ROWS_H
#define HO_CUDA_TRACE_ROWS_H

#include "kernels/cuda/experience.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ho_trace_choice {
    HO_TRACE_VALID, /* every step of a slot that was not idle */
    HO_TRACE_ENDED, /* of them those whose next state is not the slot's next row: the episode or the
                       epoch ends there */
} ho_trace_choice;

/* row [K, L * N]: positions step * N + slot, ascending; count [K]: how many. A masked lane has 0.
 */
ho_status ho_trace_rows(const ho_experience_view *v, ho_trace_choice choice, int32_t *row,
                        int32_t *count, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
