/* SPDX-License-Identifier: Apache-2.0
 * Any text as a number, a stamp and a time zone file. What strtod reads as a plain decimal the
 * number parser must read to the same bits, and the reverse: no silent wrong number. */
#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "market/number.h"
#include "market/stamp.h"
#include "market/zone.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* [+-]digits[.digits][e[+-]digits], at least one digit before the exponent. */
static bool is_decimal(const char *p)
{
    int digits = 0;
    p += *p == '+' || *p == '-';
    for (; isdigit((unsigned char)*p); ++p, ++digits) {}
    p += *p == '.';
    for (; isdigit((unsigned char)*p); ++p, ++digits) {}
    if (digits > 0 && (*p == 'e' || *p == 'E')) {
        ++p;
        p += *p == '+' || *p == '-';
        if (!isdigit((unsigned char)*p)) {
            return false;
        }
        while (isdigit((unsigned char)*p)) {
            ++p;
        }
    }
    return digits > 0 && *p == '\0';
}

static void check_number(const char *text, size_t length)
{
    double got = 0.0, want = strtod(text, NULL);
    ho_number_kind kind = ho_number_parse(text, length, '.', '\0', &got);
    bool decimal = strlen(text) == length && is_decimal(text);
    if (kind == HO_NUMBER_OK && (!decimal || memcmp(&got, &want, sizeof got) != 0)) {
        (void)fprintf(stderr, "\"%s\" is read as %.17g, strtod says %.17g\n", text, got, want);
        abort();
    }
    if (decimal && length < 100 && isfinite(want) && kind != HO_NUMBER_OK) {
        (void)fprintf(stderr, "\"%s\" is not read\n", text);
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[256];
    double value = 0.0;
    ho_stamp stamp;
    ho_zone *zone = NULL;
    size_t length = size < sizeof text - 1 ? size : sizeof text - 1;
    memcpy(text, data, length);
    text[length] = '\0';
    check_number(text, length);
    (void)ho_number_parse(text, length, ',', '.', &value);
    (void)ho_number_parse_scaled(text, length, '.', ',', &value);
    for (int order = 0; order < 4; ++order) {
        if (ho_stamp_parse(text, length, (ho_stamp_order)order, 0, 1800000000, &stamp) ==
                HO_STAMP_OK &&
            (stamp.ns < 0 || stamp.ns >= 1000000000 || stamp.s < -9300000000 ||
             stamp.s > 9300000000)) {
            abort();
        }
    }
    size_t half = length / 2;
    (void)ho_stamp_parse_split(text, half, text + half, length - half, HO_STAMP_ORDER_DMY, &stamp);
    if (ho_zone_parse(data, size, &zone, NULL) == HO_OK) {
        for (int64_t s = -4000000000; s < 8000000000; s += 400000000) {
            int64_t utc_s[2];
            int n = ho_zone_from_local(zone, s, utc_s);
            for (int i = 0; i < n; ++i) {
                if (utc_s[i] + ho_zone_offset(zone, utc_s[i]) != s) {
                    abort();
                }
            }
        }
        ho_zone_free(&zone);
    }
    return 0;
}
