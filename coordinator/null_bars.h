/* SPDX-License-Identifier: Apache-2.0
 * Bars without an edge, for `hyperopt null-test`: the moves of real bars in another order. Blocks
 * of consecutive bars are shuffled, so that the distribution of moves, their volatility within a
 * block and the volumes stay, and what could be predicted from block to block goes. */
#ifndef HO_COORDINATOR_NULL_BARS_H
#define HO_COORDINATOR_NULL_BARS_H

#include "market/bars.h"
#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fills ohlcv [T, 5]: bar 0 stays, the moves of bars 1 .. T-1 (ratios to the close before, or
 * differences where a price is not positive) follow in shuffled blocks of `block` bars, each with
 * its own open, high, low, close and volume. A roll's jump is no move and is left out. The same
 * (seed, study) gives the same bars. */
ho_status ho_null_bars(const ho_bars *bars, int64_t block, uint64_t seed, int64_t study,
                       double *ohlcv, ho_err *err);

/* The bars as a CSV file: time of the open in epoch nanoseconds, open, high, low, close, volume,
 * and the user's own columns as they were. HO_EIO. */
ho_status ho_null_write(const ho_bars *bars, const double *ohlcv, const char *path, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
