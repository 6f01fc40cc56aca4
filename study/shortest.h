/* SPDX-License-Identifier: Apache-2.0
 * The fewest decimal digits that read back to the same double. For text.h. */
#ifndef HO_STUDY_SHORTEST_H
#define HO_STUDY_SHORTEST_H

#ifdef __cplusplus
extern "C" {
#endif

enum { HO_SHORTEST_DIGITS = 17 };

/* |value| = d.ddd x 10^*exponent with the digits in digits [HO_SHORTEST_DIGITS], not terminated,
 * the first of them 0 only for zero. Returns how many. value must be finite. */
int ho_shortest_digits(double value, char *digits, int *exponent);

#ifdef __cplusplus
}
#endif
#endif
