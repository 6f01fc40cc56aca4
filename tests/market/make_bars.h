/* SPDX-License-Identifier: Apache-2.0
 * Bars made for tests: a repeatable random walk with the awkward places of real files (flat runs,
 * bars without volume, a large move), as arrays of a ho_bars. */
#ifndef HO_TESTS_MARKET_MAKE_BARS_H
#define HO_TESTS_MARKET_MAKE_BARS_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "market/bars.h"

/* splitmix64, as a double in [0, 1). */
static inline double make_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/* T one-minute bars from 2024-01-01, around `price`, on a grid of 0.01. Free with ho_bars_free. */
static inline ho_bars make_bars(int64_t T, double price, uint64_t seed)
{
    ho_bars bars;
    uint64_t state = seed;
    double close = price;
    memset(&bars, 0, sizeof bars);
    bars.count = T;
    bars.interval_ns = 60000000000LL;
    bars.has_volume = true;
    bars.sessions_per_year = 365.0;
    bars.open_ns = malloc((size_t)T * sizeof *bars.open_ns);
    bars.ohlcv = malloc((size_t)T * 5 * sizeof *bars.ohlcv);
    bars.session = malloc((size_t)T * sizeof *bars.session);
    strcpy(bars.timezone, "UTC");
    memset(bars.sha256, 'a', 64);
    memset(bars.settings, 'b', 64);
    for (int64_t t = 0; t < T; ++t) {
        double *x = bars.ohlcv + 5 * t;
        bool flat = t % 997 < 80 && t > 997;
        double scale = flat ? 0.0 : price * 1e-3 * (t % 1500 == 1499 ? 40.0 : 1.0);
        double open = close + 0.1 * scale * (make_random(&state) - 0.5);
        close = open + scale * (make_random(&state) - 0.5);
        close = close < 0.2 * price ? 0.2 * price : close;
        double top = fmax(open, close) + scale * make_random(&state) * 0.5;
        double low = fmin(open, close) - scale * make_random(&state) * 0.5;
        x[0] = round(open * 100.0) / 100.0;
        x[1] = round(top * 100.0) / 100.0;
        x[2] = round(low * 100.0) / 100.0;
        x[3] = round(close * 100.0) / 100.0;
        close = x[3];
        x[4] = flat || t % 7 == 0 ? 0.0 : floor(1e6 * make_random(&state));
        bars.open_ns[t] = 1704067200000000000LL + t * bars.interval_ns;
        bars.session[t] = (int32_t)(t / 1440);
    }
    return bars;
}

#endif
