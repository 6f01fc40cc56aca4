/* SPDX-License-Identifier: Apache-2.0
 * See number.h. The fast path is Clinger's (How to read floating point numbers accurately, 1990):
 * a mantissa below 2^53 times or over a power of ten up to 10^22 is one correctly rounded
 * operation. All else goes to strtod under the C locale. */
#include "market/number.h"

#include <ctype.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NUMBER_TEXT = 128, EXACT_POWER = 22 };

static const double power_of_ten[EXACT_POWER + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                     1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                     1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static locale_t c_locale;
static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;

static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

static bool is_word_for_nothing(const char *text, size_t length)
{
    static const char *const words[] = {"nan", "null", "na", "n/a", "none", "-", "--", "nil"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; ++i) {
        if (strlen(words[i]) == length && strncasecmp(words[i], text, length) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_infinity(const char *text, size_t length)
{
    if (length > 0 && (*text == '+' || *text == '-')) {
        ++text;
        --length;
    }
    return (length == 3 && strncasecmp(text, "inf", 3) == 0) ||
           (length == 8 && strncasecmp(text, "infinity", 8) == 0);
}

/* text is [+-]digits[.digits][e..] with '.' and no grouping; checked by the caller. */
static ho_number_kind slow_parse(const char *text, double *out)
{
    (void)pthread_once(&c_locale_once, make_c_locale);
    char *end = NULL;
    double value = c_locale ? strtod_l(text, &end, c_locale) : strtod(text, &end);
    if (*end != '\0') {
        return HO_NUMBER_BAD;
    }
    if (!isfinite(value)) {
        return HO_NUMBER_INFINITE;
    }
    *out = value;
    return HO_NUMBER_OK;
}

/* The field once more as plain text for strtod; grouping checked and taken out. */
static ho_number_kind general_parse(const char *text, size_t length, char decimal, char thousands,
                                    double *out)
{
    char plain[NUMBER_TEXT];
    size_t n = 0, i = 0, digits = 0, group = 0;
    bool grouped = false, fraction = false;
    if (length >= sizeof plain) {
        return HO_NUMBER_BAD;
    }
    if (i < length && (text[i] == '+' || text[i] == '-')) {
        plain[n++] = text[i++];
    }
    for (; i < length; ++i) {
        char c = text[i];
        if (isdigit((unsigned char)c)) {
            plain[n++] = c;
            ++digits;
            ++group;
            if (grouped && !fraction && group > 3) {
                return HO_NUMBER_BAD;
            }
        } else if (c == decimal && !fraction) {
            if (grouped && group != 3) {
                return HO_NUMBER_BAD;
            }
            plain[n++] = '.';
            fraction = true;
        } else if (thousands && c == thousands && !fraction) {
            if (group == 0 || group > 3 || (grouped && group != 3)) {
                return HO_NUMBER_BAD;
            }
            grouped = true;
            group = 0;
        } else {
            break;
        }
    }
    if (digits == 0 || (grouped && !fraction && group != 3)) {
        return HO_NUMBER_BAD;
    }
    if (i < length && (text[i] == 'e' || text[i] == 'E')) {
        size_t exponent = 0;
        plain[n++] = text[i++];
        if (i < length && (text[i] == '+' || text[i] == '-')) {
            plain[n++] = text[i++];
        }
        for (; i < length && isdigit((unsigned char)text[i]); ++i, ++exponent) {
            plain[n++] = text[i];
        }
        if (exponent == 0) {
            return HO_NUMBER_BAD;
        }
    }
    if (i != length) {
        return HO_NUMBER_BAD;
    }
    plain[n] = '\0';
    return slow_parse(plain, out);
}

ho_number_kind ho_number_parse(const char *text, size_t length, char decimal, char thousands,
                               double *out)
{
    const char *p = text, *end = text + length;
    uint64_t mantissa = 0;
    int digits = 0, places = 0;
    bool negative = false;
    if (length == 0) {
        return HO_NUMBER_EMPTY;
    }
    if (*p == '+' || *p == '-') {
        negative = *p++ == '-';
    }
    const char *first = p;
    while (p < end && (unsigned char)(*p - '0') < 10) {
        mantissa = mantissa * 10 + (uint64_t)(*p++ - '0');
    }
    digits = (int)(p - first < 100 ? p - first : 100);
    if (p < end && *p == decimal) {
        const char *point = ++p;
        while (p < end && (unsigned char)(*p - '0') < 10) {
            mantissa = mantissa * 10 + (uint64_t)(*p++ - '0');
        }
        places = (int)(p - point < 100 ? p - point : 100);
        digits += places;
    }
    if (p == end && digits > 0 && digits <= 18 && mantissa < (1ULL << 53) &&
        places <= EXACT_POWER) {
        double value = (double)mantissa / power_of_ten[places];
        *out = negative ? -value : value;
        return HO_NUMBER_OK;
    }
    if (is_word_for_nothing(text, length)) {
        return HO_NUMBER_EMPTY;
    }
    if (is_infinity(text, length)) {
        return HO_NUMBER_INFINITE;
    }
    return general_parse(text, length, decimal, thousands, out);
}

ho_number_kind ho_number_parse_scaled(const char *text, size_t length, char decimal, char thousands,
                                      double *out)
{
    static const char letters[] = "KMBT";
    static const double scale[] = {1e3, 1e6, 1e9, 1e12};
    if (length > 1) {
        const char *letter = strchr(letters, toupper((unsigned char)text[length - 1]));
        if (letter && *letter) {
            ho_number_kind kind = ho_number_parse(text, length - 1, decimal, thousands, out);
            if (kind == HO_NUMBER_OK) {
                *out *= scale[letter - letters];
            }
            return kind == HO_NUMBER_EMPTY ? HO_NUMBER_BAD : kind;
        }
    }
    return ho_number_parse(text, length, decimal, thousands, out);
}

int ho_number_parse_digits(const char *text, size_t length, int64_t *out)
{
    int64_t value = 0;
    if (length == 0 || length > 18) {
        return 0;
    }
    for (size_t i = 0; i < length; ++i) {
        if (!isdigit((unsigned char)text[i])) {
            return 0;
        }
        value = value * 10 + (text[i] - '0');
    }
    *out = value;
    return 1;
}
