/* SPDX-License-Identifier: Apache-2.0
 * See text.h. */
#include "study/text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "study/shortest.h"

enum { DISTANCE_MAX = 128 }; /* longer names are compared by their beginning */

/* As "%.15g", or with 16 or 17 digits where it takes them. out [HO_TEXT_NUMBER]. Returns the
 * length; *whole: neither a point nor an exponent. */
static size_t print_shortest(double value, char *out, bool *whole)
{
    char digit[HO_SHORTEST_DIGITS];
    int exponent = 0, n = ho_shortest_digits(value, digit, &exponent);
    char *at = out;

    *whole = false;
    if (signbit(value)) {
        *at++ = '-';
    }
    if (exponent < -4 || exponent >= (n > 15 ? n : 15)) {
        *at++ = digit[0];
        if (n > 1) {
            *at++ = '.';
            memcpy(at, digit + 1, (size_t)n - 1);
            at += n - 1;
        }
        return (size_t)(at - out) + (size_t)snprintf(at, 8, "e%+03d", exponent);
    }
    if (exponent < 0) {
        *at++ = '0';
        *at++ = '.';
        for (int i = exponent + 1; i < 0; i++) {
            *at++ = '0';
        }
    }
    for (int i = 0; i < n || i <= exponent; i++) {
        if (i == exponent + 1 && i > 0) {
            *at++ = '.';
        }
        *at++ = i < n ? digit[i] : '0';
    }
    *at = '\0';
    *whole = n <= exponent + 1;
    return (size_t)(at - out);
}

int ho_text_f64(double value, char *out, size_t room)
{
    char text[HO_TEXT_NUMBER + 2];
    bool whole = false;
    if (isnan(value)) {
        return snprintf(out, room, "nan");
    }
    if (isinf(value)) {
        return snprintf(out, room, value > 0 ? "inf" : "-inf");
    }
    size_t length = print_shortest(value, text, &whole);
    if (whole) {
        memcpy(text + length, ".0", 3);
        length += 2;
    }
    if (room > 0) {
        size_t n = length < room ? length : room - 1;
        memcpy(out, text, n);
        out[n] = '\0';
    }
    return (int)length;
}

int ho_text_number(double value, char *out, size_t room)
{
    if (fabs(value) < 9007199254740992.0 && value == floor(value)) {
        return snprintf(out, room, "%" PRId64, (int64_t)value);
    }
    return ho_text_f64(value, out, room);
}

int ho_text_decimals(double value)
{
    char text[HO_TEXT_NUMBER];
    bool whole = false;
    (void)print_shortest(value, text, &whole);
    const char *point = strchr(text, '.'), *exponent = strchr(text, 'e');
    int decimals = point ? (int)strspn(point + 1, "0123456789") : 0;
    decimals -= exponent ? atoi(exponent + 1) : 0;
    return decimals > 0 ? decimals : 0;
}

/* Copies text without the underscores that stand between two digits; false: no number. */
static bool digits_only(const char *text, char *out, size_t room)
{
    size_t n = 0;
    for (size_t i = 0; text[i]; i++) {
        if (text[i] == '_') {
            if (i == 0 || !isdigit((unsigned char)text[i - 1]) ||
                !isdigit((unsigned char)text[i + 1])) {
                return false;
            }
            continue;
        }
        if (n + 1 >= room) {
            return false;
        }
        out[n++] = text[i];
    }
    out[n] = '\0';
    return n > 0;
}

bool ho_text_parse_i64(const char *text, int64_t *out)
{
    char digits[64];
    char *end = NULL;
    if (!text || !digits_only(text, digits, sizeof digits) ||
        strspn(digits, "+-0123456789") != strlen(digits)) {
        return false;
    }
    errno = 0;
    long long value = strtoll(digits, &end, 10);
    if (errno || end == digits || *end) {
        return false;
    }
    *out = value;
    return true;
}

bool ho_text_parse_u64(const char *text, uint64_t *out)
{
    char *end = NULL;
    if (!text || !isdigit((unsigned char)*text)) {
        return false;
    }
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || *end) {
        return false;
    }
    *out = value;
    return true;
}

bool ho_text_parse_f64(const char *text, double *out)
{
    char digits[400];
    char *end = NULL;
    if (!text || !digits_only(text, digits, sizeof digits)) {
        return false;
    }
    const char *body = digits + (digits[0] == '+' || digits[0] == '-');
    bool word = strcmp(body, "inf") == 0 || strcmp(body, "nan") == 0;
    if (!word && strspn(digits, "+-0123456789.eE") != strlen(digits)) {
        return false;
    }
    double value = strtod(digits, &end);
    if (end == digits || *end || (isinf(value) && !word)) {
        return false;
    }
    *out = value;
    return true;
}

/* Optimal string alignment. */
int ho_text_distance(const char *a, const char *b)
{
    int n = (int)strnlen(a, DISTANCE_MAX), m = (int)strnlen(b, DISTANCE_MAX);
    int row[3][DISTANCE_MAX + 1];
    for (int j = 0; j <= m; j++) {
        row[0][j] = j;
    }
    for (int i = 1; i <= n; i++) {
        int *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            int best = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (last[j] + 1 < best) {
                best = last[j] + 1;
            }
            if (now[j - 1] + 1 < best) {
                best = now[j - 1] + 1;
            }
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < best) {
                best = before[j - 2] + 1;
            }
            now[j] = best;
        }
    }
    return row[n % 3][m];
}

int ho_text_quote(const char *text, char *out, size_t room)
{
    size_t n = 0;
    const char *p = text;
    for (bool first = true, last = false; !last; first = false) {
        char one[8];
        if (first || *p == '\0') {
            (void)snprintf(one, sizeof one, "\"");
            last = !first;
        } else if (*p == '"' || *p == '\\') {
            (void)snprintf(one, sizeof one, "\\%c", *p++);
        } else if ((unsigned char)*p < 0x20 || *p == 0x7f) {
            (void)snprintf(one, sizeof one, "\\u%04x", (unsigned)(unsigned char)*p++);
        } else {
            (void)snprintf(one, sizeof one, "%c", *p++);
        }
        if (n < room) {
            (void)snprintf(out + n, room - n, "%s", one);
        }
        n += strlen(one);
    }
    return (int)n;
}

char *ho_text_copy(const char *text)
{
    return text ? strdup(text) : NULL;
}
