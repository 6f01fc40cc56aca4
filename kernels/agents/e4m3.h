/* SPDX-License-Identifier: Apache-2.0
 * What precision = "fp8" does to a number that enters a product of the acting network: the nearest
 * number of 8-bit E4M3 (OCP OFP8 1.0, section 5; Micikevicius et al. 2022, "FP8 Formats for Deep
 * Learning", section 3) times a power of two, on both backends with the same bits.
 *
 * E4M3: 3 bits of fraction, exponents -6 to 8, below that steps of 2^-9; largest 448, no infinity.
 * To nearest even; what is beyond 448 becomes 448 (saturation), NaN stays NaN. Scales are powers of
 * two, so they cost no rounding and a scaled number is exact in bf16: kernels carry it as bf16 and
 * multiply on the bf16 units; products and sums are those of E4M3 inputs with float32 sums.
 *
 * A row of weights (one output) has the least scale that holds its largest magnitude. States and
 * hidden layers have one fixed scale: what a row's own would need, a maximum over a layer before
 * the next, is a barrier more in the chain that bounds acting; E4M3 spans 18 powers of two, and a
 * state is clipped at 5 to 10. */
#ifndef HO_KERNELS_AGENTS_E4M3_H
#define HO_KERNELS_AGENTS_E4M3_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/hd.h"

enum {
    HO_E4M3_ACTIVATION = -3,    /* scale of states and hidden layers: up to 56 in steps of 2^-12 */
    HO_E4M3_SCALE_LIMIT = 96,   /* scales of weights lie in [-96, 96]: all stay normal in bf16 */
    HO_E4M3_LEAST_EXPONENT = -6 /* of a normal number */
};

static inline HO_HD uint32_t ho_e4m3_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline HO_HD float ho_e4m3_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* x as the nearest E4M3 number times 2^scale. Without branches, so that loops of it vectorise. */
static inline HO_HD float ho_e4m3_of(float x, int32_t scale)
{
    const float largest = ho_e4m3_float(((uint32_t)(127 + 8 + scale) << 23) | 0x600000u);
    const int32_t least = (127 + HO_E4M3_LEAST_EXPONENT + scale) << 23;
    const float above = x < -largest ? -largest : x; /* neither is taken for NaN */
    const float y = above > largest ? largest : above;
    const int32_t binade = (int32_t)(ho_e4m3_bits(y) & 0x7f800000u);
    /* 1.5 * 2^(e + 20), whose last place is 2^(e - 3): adding it rounds there */
    const float rounder =
        ho_e4m3_float(((uint32_t)(binade > least ? binade : least) + (20u << 23)) | 0x400000u);
    return (y + rounder) - rounder;
}

/* The scale of a row whose largest magnitude has these bits (the sign's is 0): the least s with
 * largest <= 448 * 2^s; 0 for a row of zeros, infinity or NaN. */
static inline HO_HD int32_t ho_e4m3_scale(uint32_t largest)
{
    const int32_t s = (int32_t)(largest >> 23) - 127 - 8 + ((largest & 0x7fffffu) > 0x600000u);
    if (largest == 0 || largest >= 0x7f800000u) {
        return 0;
    }
    return s < -HO_E4M3_SCALE_LIMIT  ? -HO_E4M3_SCALE_LIMIT
           : s > HO_E4M3_SCALE_LIMIT ? HO_E4M3_SCALE_LIMIT
                                     : s;
}

#endif
