/* SPDX-License-Identifier: Apache-2.0
 * Rolling statistics over a block of rows. Each call anchors itself at `begin` by summing the
 * window directly and slides from there, so errors cannot build up over a long series and a value
 * depends only on rows of its window and of its own block before it.
 *
 * x is indexed by the absolute row; rows before `first` do not exist (windows are shorter there);
 * results for row t go to out[t - begin]. */
#ifndef HO_MARKET_ROLLING_H
#define HO_MARKET_ROLLING_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Mean and deviation (divided by the count) of the last n rows. Exactly 0 deviation where all
 * values of the window are equal. Sums are taken around a value of the window and anew whenever
 * the variance has fallen a million times below the largest since: relative error below 1e-8. */
void ho_rolling_moments(const double *x, int64_t first, int64_t begin, int64_t end, int64_t n,
                        double *mean, double *sd);

enum { HO_ROLLING_EXTREME_MAX = 255 };

/* Highest (sign = 1) or lowest (sign = -1) of the last n <= HO_ROLLING_EXTREME_MAX rows; x has the
 * row stride given. */
void ho_rolling_extreme(const double *x, int stride, int sign, int64_t first, int64_t begin,
                        int64_t end, int n, double *out);

/* Sum of the last n rows. */
void ho_rolling_sum(const double *x, int64_t first, int64_t begin, int64_t end, int64_t n,
                    double *sum);

#ifdef __cplusplus
}
#endif
#endif
