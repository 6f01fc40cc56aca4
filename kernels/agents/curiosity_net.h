/* SPDX-License-Identifier: Apache-2.0
 * Where the tensors of the curiosity reward's forward model lie, on both backends: 35 -> 64
 * LeakyReLU(0.01) -> 32 (spec/environment.md); weights row-major [out, in], then their biases. */
#ifndef HO_KERNELS_AGENTS_CURIOSITY_NET_H
#define HO_KERNELS_AGENTS_CURIOSITY_NET_H

#include "kernels/shapes.h"

enum {
    HO_CURIOSITY_IN = HO_CURIOSITY_FEATURES + 3,
    HO_CURIOSITY_HIDDEN = 64,
    HO_CURIOSITY_OUT = HO_CURIOSITY_FEATURES,
    HO_CURIOSITY_W1 = 0,
    HO_CURIOSITY_B1 = HO_CURIOSITY_W1 + HO_CURIOSITY_IN * HO_CURIOSITY_HIDDEN,
    HO_CURIOSITY_W2 = HO_CURIOSITY_B1 + HO_CURIOSITY_HIDDEN,
    HO_CURIOSITY_B2 = HO_CURIOSITY_W2 + HO_CURIOSITY_HIDDEN * HO_CURIOSITY_OUT,
    HO_CURIOSITY_SIZE = HO_CURIOSITY_B2 + HO_CURIOSITY_OUT,
    HO_CURIOSITY_STATE = 3 * HO_CURIOSITY_SIZE, /* parameters, first and second moments */
    HO_CURIOSITY_BATCH = 512,                   /* rows of one update */
};

#endif
