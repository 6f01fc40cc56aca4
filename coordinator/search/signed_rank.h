/* SPDX-License-Identifier: Apache-2.0
 * Wilcoxon's signed-rank test (1945), one-sided, exact for the ranks at hand. */
#ifndef HO_COORDINATOR_SEARCH_SIGNED_RANK_H
#define HO_COORDINATOR_SEARCH_SIGNED_RANK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* P(W+ >= observed) when the signs of difference [n] are fair coins: small when the differences
 * are mostly and largely positive. Zeros are ranked and left out of the sum on both sides (Pratt
 * 1959); ties get mid-ranks. Exact by counting sign patterns up to n = 60, with a normal
 * approximation above. 1 when n = 0 or all are zero; NaN with a NaN or on lack of memory. */
double ho_signed_rank_p(const double *difference, int64_t n);

#ifdef __cplusplus
}
#endif
#endif
