/* SPDX-License-Identifier: Apache-2.0
 * NVTX for the emulator: no profiler listens. */
#ifndef HO_EMULATOR_NVTX_H
#define HO_EMULATOR_NVTX_H

static inline int nvtxRangePushA(const char *name)
{
    (void)name;
    return 0;
}

static inline int nvtxRangePop(void)
{
    return 0;
}

#endif
