/* SPDX-License-Identifier: Apache-2.0
 * Shape letters, which mean the same everywhere, and the fixed sizes of the problem.
 *
 *   K lanes (agents: one trial, fold, seed)     N episodes of a lane      L steps of an episode
 *   T bars       F market features              S state width             A actions
 *   H hidden     B batch                        W backtest windows
 *
 * Arrays are row-major and their shape is written beside them: [T, F] has F contiguous. */
#ifndef HO_KERNELS_SHAPES_H
#define HO_KERNELS_SHAPES_H

#include <stdint.h>

enum {
    HO_MARKET_FEATURES = 51,   /* columns of spec/features.md */
    HO_PORTFOLIO_FEATURES = 9, /* p0..p8 of spec/environment.md, "full" state form */
    HO_SEED54_FEATURES = 3,    /* p0..p2 of the "seed54" state form */
    HO_ACTIONS = 45,           /* 5 exposures x 3 orders x 3 urgencies */
    HO_EXPOSURES = 5,
    HO_ORDERS = 3,
    HO_URGENCIES = 3,
    HO_CURIOSITY_FEATURES = 32,
    HO_BAR_COLUMNS = 5, /* open, high, low, close, volume */
};

enum { HO_OPEN = 0, HO_HIGH = 1, HO_LOW = 2, HO_CLOSE = 3, HO_VOLUME = 4 };

/* Bars [begin, end). A backtest decides at closes begin .. end-2 and fills in begin+1 .. end-1. */
typedef struct ho_window {
    int64_t begin;
    int64_t end;
} ho_window;

#endif
