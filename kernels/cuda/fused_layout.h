/* SPDX-License-Identifier: Apache-2.0
 * Orders in which the fused kernels (sm_90a, 64 -> 256 -> 256 -> 2 x 128 -> 48) keep weights,
 * activations and deltas. Everything is made of 8 x 8 core matrices of 128 bytes (8 rows of 16
 * bytes), the unit of wgmma's unswizzled operands, so that one stored tile serves as K-major
 * operand (forward) and as MN-major operand (backward, weight gradient). Bytes, from the lane's
 * start; row = output unit, column = input unit. */
#ifndef HO_FUSED_LAYOUT_H
#define HO_FUSED_LAYOUT_H

#include <stdint.h>

#include "kernels/hd.h"

enum {
    HO_FUSED_W1 = 0,                           /* [8 column groups][32 row groups] cores */
    HO_FUSED_W2 = HO_FUSED_W1 + 64 * 256 * 2,  /* [32][32] */
    HO_FUSED_W3 = HO_FUSED_W2 + 256 * 256 * 2, /* [32][32] */
    HO_FUSED_W4 = HO_FUSED_W3 + 256 * 256 * 2, /* [32][6] */
    HO_FUSED_WEIGHT_BYTES = HO_FUSED_W4 + 256 * 48 * 2,
    HO_FUSED_BACKWARD_BYTES = 2 * 256 * 256 * 2, /* W2, W3 as [4 slices of 64 rows][32][8] */
};

/* Byte of weight (row, column), column a multiple of 8 for a whole row of a core matrix. */
static inline HO_HD int ho_fused_weight_at(int layer, int row, int column)
{
    const int first = layer == 0   ? HO_FUSED_W1
                      : layer == 1 ? HO_FUSED_W2
                      : layer == 2 ? HO_FUSED_W3
                                   : HO_FUSED_W4;
    const int row_groups = layer == 3 ? 6 : 32;
    return first + (column / 8 * row_groups + row / 8) * 128 + row % 8 * 16 + column % 8 * 2;
}

/* Likewise in the copy the backward pass streams: 64 output rows are contiguous. Layers 1, 2. */
static inline HO_HD int ho_fused_backward_at(int layer, int row, int column)
{
    return (layer - 1) * 131072 + row / 64 * 32768 + column / 8 * 1024 + row / 8 % 8 * 128 +
           row % 8 * 16 + column % 8 * 2;
}

/* Activations and deltas of one lane's batch of B rows, B a multiple of 128:
 *   X [B / 8][8] cores; then H1, H2, H3, D1, D2, D3, each two halves of 128 columns,
 *   [B / 8][16] cores; then dQ [B / 8][8] cores (48 columns used).
 * Columns of H, D and dQ are permuted inside groups of 32, so that a thread stores 16 bytes at
 * once: position 32 j + 8 t + 2 i + e holds column 32 j + 8 i + 2 t + e. */
enum {
    HO_FUSED_ROWS = 128,     /* the batch is a multiple of this */
    HO_FUSED_X_ROW = 128,    /* bytes of X a row */
    HO_FUSED_HALF_ROW = 256, /* bytes of a half of H or D a row */
    HO_FUSED_H_ROW = 512,    /* bytes of both halves */
};

static inline HO_HD int64_t ho_fused_h_at(int layer, int batch)
{
    return (int64_t)batch * (HO_FUSED_X_ROW + layer * HO_FUSED_H_ROW);
}

static inline HO_HD int64_t ho_fused_d_at(int layer, int batch)
{
    return ho_fused_h_at(3 + layer, batch);
}

static inline HO_HD int64_t ho_fused_dq_at(int batch)
{
    return ho_fused_h_at(6, batch);
}

static inline HO_HD int64_t ho_fused_activation_bytes(int batch)
{
    return ho_fused_dq_at(batch) + (int64_t)batch * HO_FUSED_X_ROW;
}

/* Column of a position in a permuted group of 32, and its core matrix's first two of eight. */
static inline HO_HD int ho_fused_column(int core, int in_core)
{
    return core / 4 * 32 + in_core / 2 * 8 + core % 4 * 2 + in_core % 2;
}

/* Squared gradients are summed per warp, 64 outputs x 32 inputs (or biases) at a time, so that the
 * norm's order does not depend on the tile shape. Units: L1 4 x 2, L2 and L3 4 x 8, L4 1 x 8, then
 * the biases of the 4 + 4 + 4 + 1 blocks of 64 outputs. */
enum {
    HO_FUSED_UNIT_L1 = 0,
    HO_FUSED_UNIT_L2 = 8,
    HO_FUSED_UNIT_L3 = 40,
    HO_FUSED_UNIT_L4 = 72,
    HO_FUSED_UNIT_BIAS = 80, /* + 4 * layer + block */
    HO_FUSED_UNITS = 93,
};

#endif
