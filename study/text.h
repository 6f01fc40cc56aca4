/* SPDX-License-Identifier: Apache-2.0
 * Numbers to text and back, exactly, and the nearness of two names. A leaf like status.h.
 * Parsers take the whole text: trailing rubbish is a failure. All expect the C numeric locale. */
#ifndef HO_STUDY_TEXT_H
#define HO_STUDY_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { HO_TEXT_NUMBER = 40 }; /* room for any number printed here */

/* Shortest text that reads back to the same bits, with a point or an exponent so that it stays a
 * float in TOML ("3.0", "1e-05", "nan", "-inf"). Returns the length, as snprintf. */
int ho_text_f64(double value, char *out, size_t room);
/* The same as the integer it is when value is integral and below 2^53 ("3"). */
int ho_text_number(double value, char *out, size_t room);

/* Decimals of the shortest text: 2 for 0.25, 5 for 1e-05, 0 for 3.0 and 1e20. */
int ho_text_decimals(double value);

/* Decimal integers with an optional sign; underscores between digits are allowed, as in TOML. */
bool ho_text_parse_i64(const char *text, int64_t *out);
/* Digits alone. */
bool ho_text_parse_u64(const char *text, uint64_t *out);
/* Decimal floats, inf and nan; no hexadecimal, no spaces. */
bool ho_text_parse_f64(const char *text, double *out);

/* Insertions, deletions, substitutions and swaps of neighbours that lead from a to b. */
int ho_text_distance(const char *a, const char *b);

/* The text in quotes as a TOML basic string. Returns the length, as snprintf. */
int ho_text_quote(const char *text, char *out, size_t room);

/* strdup that survives NULL (gives NULL). NULL also when memory is out. */
char *ho_text_copy(const char *text);

#ifdef __cplusplus
}
#endif
#endif
