/* SPDX-License-Identifier: Apache-2.0
 * See shortest.h. std::to_chars finds the digits many times faster than printing with 15, 16 and 17
 * digits and reading back, which a table of millions of numbers feels. */
#include "study/shortest.h"

#include <charconv>

int ho_shortest_digits(double value, char *digits, int *exponent)
{
    char text[32];
    std::to_chars_result end =
        std::to_chars(text, text + sizeof text, value, std::chars_format::scientific);
    int count = 0;
    const char *at = text;
    for (; at < end.ptr && *at != 'e'; at++) {
        if (*at >= '0' && *at <= '9') {
            digits[count++] = *at;
        }
    }
    *exponent = 0;
    if (at < end.ptr) {
        at += at[1] == '+' ? 2 : 1; /* from_chars takes a minus only */
        (void)std::from_chars(at, end.ptr, *exponent);
    }
    return count;
}
