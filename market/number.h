/* SPDX-License-Identifier: Apache-2.0
 * Numbers of text files: correctly rounded, whatever the locale, whole field or error. */
#ifndef HO_MARKET_NUMBER_H
#define HO_MARKET_NUMBER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ho_number_kind {
    HO_NUMBER_OK,
    HO_NUMBER_EMPTY,    /* nothing, or a word for nothing: nan, null, na, n/a, none, "-" */
    HO_NUMBER_INFINITE, /* inf, or too large for a double */
    HO_NUMBER_BAD,
} ho_number_kind;

/* Parses [+-]digits[.digits][e[+-]digits]. decimal is '.' or ','; thousands ('\0' for none, else
 * ',' '.' '\'' or ' ') may stand before groups of three digits. */
ho_number_kind ho_number_parse(const char *text, size_t length, char decimal, char thousands,
                               double *out);

/* As above, and K, M, B or T may follow (1.2M). */
ho_number_kind ho_number_parse_scaled(const char *text, size_t length, char decimal, char thousands,
                                      double *out);

/* Digits only, up to 18 of them. Returns 0 if the text is anything else. */
int ho_number_parse_digits(const char *text, size_t length, int64_t *out);

#ifdef __cplusplus
}
#endif
#endif
