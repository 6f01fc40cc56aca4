/* SPDX-License-Identifier: Apache-2.0
 * How much a GPU test does on a device and how much under the emulator (tests/emulator, which sets
 * HYPEROPT_TEST_EMULATED=1): the same kernels and checks, fewer lanes, rows and repeats. */
#ifndef HO_TEST_GPU_SIZES_H
#define HO_TEST_GPU_SIZES_H

#include <stdlib.h>

static inline int gpu_size(int on_device, int emulated)
{
    return getenv("HYPEROPT_TEST_EMULATED") ? emulated : on_device;
}

#endif
