/* SPDX-License-Identifier: Apache-2.0
 * NVTX ranges: what a profiler's timeline calls the host's phases (docs/gpu.md, "How to profile").
 * They nest; without a profiler a call costs some nanoseconds. Inside a graph they show nothing:
 * HYPEROPT_CUDA_GRAPH=0 launches an epoch's kernels one by one, each within its phase. */
#ifndef HO_CUDA_RANGE_H
#define HO_CUDA_RANGE_H

#include <nvtx3/nvToolsExt.h>

#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline void ho_range_begin(const char *name)
{
    nvtxRangePushA(name);
}

/* Ends the innermost range. Returns rc. */
static inline ho_status ho_range_end(ho_status rc)
{
    nvtxRangePop();
    return rc;
}

#ifdef __cplusplus
}
#endif
#endif
