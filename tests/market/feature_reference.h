/* SPDX-License-Identifier: Apache-2.0
 * The features of spec/features.md once more, slow and direct: each value from its definition by
 * loops over the window (indicators with memory: from bar 0), with no running sums. */
#ifndef HO_TESTS_MARKET_FEATURE_REFERENCE_H
#define HO_TESTS_MARKET_FEATURE_REFERENCE_H

#include "market/bars.h"

/* Value of the named feature at bar t of bars without splits and rolls, before the clipping, with
 * W as the long window. */
double reference_feature(const ho_bars *bars, const char *name, int64_t t, int64_t W);

#endif
