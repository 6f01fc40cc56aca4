/* SPDX-License-Identifier: Apache-2.0
 * See stamp.h. One cursor walks the text: date, then time of day, then zone; all of it must be
 * used. */
#include "market/stamp.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

enum { DAY_S = 86400, YEAR_MIN = 1850, YEAR_MAX = 2139 };
/* 290 years, so that the difference of any two stamps fits into int64 nanoseconds */

typedef struct cursor {
    const char *p, *end;
} cursor;

static bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

static void skip_spaces(cursor *at)
{
    while (at->p < at->end && (*at->p == ' ' || *at->p == '\t')) {
        ++at->p;
    }
}

/* Up to `most` digits; returns how many. */
static int read_digits(cursor *at, int most, int *out)
{
    int n = 0, value = 0;
    while (at->p < at->end && n < most && is_digit(*at->p)) {
        value = value * 10 + (*at->p++ - '0');
        ++n;
    }
    *out = value;
    return n;
}

static int digits_ahead(const cursor *at)
{
    const char *p = at->p;
    while (p < at->end && is_digit(*p)) {
        ++p;
    }
    return (int)(p - at->p < 1000 ? p - at->p : 1000);
}

static bool accept(cursor *at, char c)
{
    if (at->p < at->end && *at->p == c) {
        ++at->p;
        return true;
    }
    return false;
}

static bool accept_word(cursor *at, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(at->end - at->p) >= n && strncasecmp(at->p, word, n) == 0) {
        at->p += n;
        return true;
    }
    return false;
}

/* "Jan", "january": 1..12, or 0. */
static int read_month_name(cursor *at)
{
    static const char *const names[] = {"january",   "february", "march",    "april",
                                        "may",       "june",     "july",     "august",
                                        "september", "october",  "november", "december"};
    for (int i = 0; i < 12; ++i) {
        if (accept_word(at, names[i])) {
            return i + 1;
        }
    }
    for (int i = 0; i < 12; ++i) {
        if ((size_t)(at->end - at->p) >= 3 && strncasecmp(at->p, names[i], 3) == 0) {
            at->p += 3;
            return i + 1;
        }
    }
    return 0;
}

static bool date_to_days(int year, int month, int day, int64_t *days)
{
    static const int length[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (year < YEAR_MIN || year > YEAR_MAX || month < 1 || month > 12 || day < 1) {
        return false;
    }
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    if (day > length[month - 1] + (month == 2 && leap)) {
        return false;
    }
    *days = ho_days_from_civil(year, month, day);
    return true;
}

static int full_year(int year, int digits)
{
    return digits == 2 ? year + (year < 70 ? 2000 : 1900) : year;
}

/* Jan 02, 2024 */
static ho_stamp_result read_name_first(cursor *at, int64_t *days)
{
    int day = 0, year = 0, month = read_month_name(at);
    if (!month) {
        return HO_STAMP_BAD;
    }
    skip_spaces(at);
    if (!read_digits(at, 2, &day)) {
        return HO_STAMP_BAD;
    }
    (void)accept(at, ',');
    skip_spaces(at);
    if (read_digits(at, 4, &year) != 4 || !date_to_days(year, month, day, days)) {
        return HO_STAMP_BAD;
    }
    return HO_STAMP_OK;
}

static ho_stamp_result read_date(cursor *at, ho_stamp_order order, ho_stamp *out, int64_t *days)
{
    int a = 0, b = 0, c = 0, named = 0;
    int n = digits_ahead(at);
    if (n == 0) {
        return read_name_first(at, days);
    }
    if (n == 8) {
        (void)read_digits(at, 4, &a);
        (void)read_digits(at, 2, &b);
        (void)read_digits(at, 2, &c);
        return date_to_days(a, b, c, days) ? HO_STAMP_OK : HO_STAMP_BAD;
    }
    if (n != 1 && n != 2 && n != 4) {
        return HO_STAMP_BAD;
    }
    int na = read_digits(at, 4, &a);
    char separator = at->p < at->end ? *at->p : '\0';
    if (separator == '\0' || !strchr("-/. ", separator)) {
        return HO_STAMP_BAD;
    }
    ++at->p;
    if (!read_digits(at, 2, &b) && !(named = read_month_name(at))) {
        return HO_STAMP_BAD;
    }
    if (separator == ' ' && !named) {
        return HO_STAMP_BAD;
    }
    if (!accept(at, separator)) {
        return HO_STAMP_BAD;
    }
    int nc = digits_ahead(at);
    if (nc > 4 || read_digits(at, 4, &c) != nc || nc == 0 || nc == 3) {
        return HO_STAMP_BAD;
    }
    if (named) { /* 02-Jan-2024, 2024-Jan-02 */
        bool year_first = na == 4;
        return date_to_days(year_first ? a : full_year(c, nc), named, year_first ? c : a, days)
                   ? HO_STAMP_OK
                   : HO_STAMP_BAD;
    }
    if (na == 4) {
        return nc <= 2 && date_to_days(a, b, c, days) ? HO_STAMP_OK : HO_STAMP_BAD;
    }
    if (nc != 4 && nc != 2) {
        return HO_STAMP_BAD;
    }
    if (nc == 2 && order == HO_STAMP_ORDER_YMD) {
        return date_to_days(full_year(a, na), b, c, days) ? HO_STAMP_OK : HO_STAMP_BAD;
    }
    out->first = a;
    out->second = b;
    if (order != HO_STAMP_ORDER_DMY && order != HO_STAMP_ORDER_MDY) {
        return HO_STAMP_AMBIGUOUS;
    }
    int day = order == HO_STAMP_ORDER_DMY ? a : b, month = order == HO_STAMP_ORDER_DMY ? b : a;
    return date_to_days(full_year(c, nc), month, day, days) ? HO_STAMP_OK : HO_STAMP_BAD;
}

/* 09:30[:15[.123456789]], 0930, 093015, 93015, 9; then [ -]AM or PM. */
static bool read_clock(cursor *at, int *seconds, int32_t *ns)
{
    int h = 0, m = 0, s = 0, n = digits_ahead(at);
    *ns = 0;
    if (n == 0 || n > 6) {
        return false;
    }
    if (n <= 2) {
        (void)read_digits(at, 2, &h);
        if (accept(at, ':')) {
            if (read_digits(at, 2, &m) != 2) {
                return false;
            }
            if (accept(at, ':') && read_digits(at, 2, &s) != 2) {
                return false;
            }
        }
    } else {
        int hour_digits = n % 2 == 0 ? 2 : 1; /* leading zeros are lost in some exports */
        (void)read_digits(at, hour_digits, &h);
        (void)read_digits(at, 2, &m);
        if (n >= 5) {
            (void)read_digits(at, 2, &s);
        }
    }
    if (at->p < at->end && (*at->p == '.' || *at->p == ',') && at->p + 1 < at->end &&
        is_digit(at->p[1])) {
        int32_t unit = 100000000;
        for (++at->p; at->p < at->end && is_digit(*at->p); ++at->p) {
            *ns += (*at->p - '0') * unit;
            unit /= 10;
        }
    }
    const char *before = at->p;
    skip_spaces(at);
    (void)accept(at, '-');
    bool am = accept_word(at, "AM"), pm = !am && accept_word(at, "PM");
    if (am || pm) {
        if (h < 1 || h > 12) {
            return false;
        }
        h = h % 12 + (pm ? 12 : 0);
    } else {
        at->p = before;
    }
    if (h > 24 || m > 59 || s > 60 || (h == 24 && (m || s || *ns))) {
        return false;
    }
    *seconds = h * 3600 + m * 60 + s;
    return true;
}

/* Z, UTC, GMT, +05:30, -0500, +05, GMT-0500. */
static bool read_zone(cursor *at, bool *present, int *offset_s)
{
    skip_spaces(at);
    *present = false;
    *offset_s = 0;
    if (at->p == at->end) {
        return true;
    }
    *present = true;
    if (accept(at, 'Z') || accept(at, 'z')) {
        return at->p == at->end;
    }
    if (accept_word(at, "UTC") || accept_word(at, "GMT")) {
        if (at->p == at->end) {
            return true;
        }
    }
    int sign = accept(at, '+') ? 1 : accept(at, '-') ? -1 : 0;
    int hours = 0, minutes = 0;
    if (sign == 0 || read_digits(at, 2, &hours) != 2) {
        return false;
    }
    (void)accept(at, ':');
    if (at->p < at->end && read_digits(at, 2, &minutes) != 2) {
        return false;
    }
    if (hours > 15 || minutes > 59) {
        return false;
    }
    *offset_s = sign * (hours * 3600 + minutes * 60);
    return at->p == at->end;
}

/* ---- epochs ---------------------------------------------------------------------------------- */

static ho_stamp_result read_epoch(const cursor *text, int unit, int64_t now_s, ho_stamp *out)
{
    static const int64_t per_second[] = {0, 1, 1000, 1000000, 1000000000};
    static const int64_t year_1980_s = 315532800;
    const char *p = text->p;
    uint64_t whole = 0;
    for (; p < text->end && is_digit(*p); ++p) {
        if (p - text->p >= 19) {
            return HO_STAMP_RANGE;
        }
        whole = whole * 10 + (uint64_t)(*p - '0');
    }
    if (whole > INT64_MAX) {
        return HO_STAMP_RANGE;
    }
    if (unit == 0) {
        unit = whole < 100000000000ULL         ? 1
               : whole < 100000000000000ULL    ? 2
               : whole < 100000000000000000ULL ? 3
                                               : 4;
    }
    int64_t per = per_second[unit];
    out->kind = HO_STAMP_EPOCH;
    out->unit = unit;
    out->s = (int64_t)whole / per;
    int64_t ns = ((int64_t)whole % per) * (1000000000 / per);
    if (p < text->end) { /* a fraction of the unit: 1325317920.5 */
        int64_t place = 1000000000 / per;
        for (++p; p < text->end; ++p) {
            place /= 10;
            ns += (*p - '0') * place;
        }
    }
    out->ns = (int32_t)ns;
    return out->s >= year_1980_s && out->s <= now_s + DAY_S ? HO_STAMP_OK : HO_STAMP_RANGE;
}

/* Digits with at most one point, as an epoch must be. */
static bool is_plain_number(const cursor *text)
{
    int points = 0, digits = 0;
    for (const char *p = text->p; p < text->end; ++p) {
        if (*p == '.' && digits > 0) {
            ++points;
        } else if (!is_digit(*p)) {
            return false;
        } else {
            ++digits;
        }
    }
    return digits > 0 && points <= 1;
}

/* yyyymmdd, yyyymmddHHMM, yyyymmddHHMMSS. */
static bool read_compact(const cursor *text, ho_stamp *out)
{
    cursor at = *text;
    int n = digits_ahead(&at), year = 0, month = 0, day = 0, h = 0, m = 0, s = 0;
    int64_t days = 0;
    if (at.p + n != at.end || (n != 8 && n != 12 && n != 14)) {
        return false;
    }
    (void)read_digits(&at, 4, &year);
    (void)read_digits(&at, 2, &month);
    (void)read_digits(&at, 2, &day);
    if (n >= 12) {
        (void)read_digits(&at, 2, &h);
        (void)read_digits(&at, 2, &m);
        (void)read_digits(&at, 2, &s);
    }
    if (year < 1900 || year > 2100 || h > 23 || m > 59 || s > 59 ||
        !date_to_days(year, month, day, &days)) {
        return false;
    }
    out->kind = n == 8 ? HO_STAMP_DATE : HO_STAMP_LOCAL;
    out->s = days * DAY_S + h * 3600 + m * 60 + s;
    return true;
}

/* ---- whole stamps ---------------------------------------------------------------------------- */

static void trim(cursor *at)
{
    skip_spaces(at);
    while (at->end > at->p && (at->end[-1] == ' ' || at->end[-1] == '\t')) {
        --at->end;
    }
}

ho_stamp_result ho_stamp_parse(const char *text, size_t length, ho_stamp_order order, int unit,
                               int64_t now_s, ho_stamp *out)
{
    cursor at = {text, text + length};
    int64_t days = 0;
    int clock_s = 0, offset_s = 0;
    bool zoned = false;
    *out = (ho_stamp){0};
    trim(&at);
    if (at.p == at.end) {
        return HO_STAMP_EMPTY;
    }
    if (is_plain_number(&at)) {
        if (unit == 0 && read_compact(&at, out)) {
            return HO_STAMP_OK;
        }
        return read_epoch(&at, unit, now_s, out);
    }
    ho_stamp_result date = read_date(&at, order, out, &days);
    if (date == HO_STAMP_BAD) {
        return date;
    }
    out->kind = HO_STAMP_DATE;
    bool joined = accept(&at, 'T') || accept(&at, 't') || accept(&at, '_') || accept(&at, ',');
    skip_spaces(&at);
    if (at.p < at.end && is_digit(*at.p)) {
        if (!read_clock(&at, &clock_s, &out->ns)) {
            return HO_STAMP_BAD;
        }
        out->kind = HO_STAMP_LOCAL;
    } else if (joined) {
        return HO_STAMP_BAD;
    }
    if (!read_zone(&at, &zoned, &offset_s) || (zoned && out->kind == HO_STAMP_DATE)) {
        return HO_STAMP_BAD;
    }
    if (zoned) {
        out->kind = HO_STAMP_UTC;
    }
    out->s = days * DAY_S + clock_s - offset_s;
    return date;
}

ho_stamp_result ho_stamp_parse_split(const char *date, size_t date_length, const char *time,
                                     size_t time_length, ho_stamp_order order, ho_stamp *out)
{
    cursor at = {date, date + date_length}, clock = {time, time + time_length};
    int64_t days = 0;
    int clock_s = 0, offset_s = 0;
    bool zoned = false;
    *out = (ho_stamp){0};
    trim(&at);
    trim(&clock);
    if (at.p == at.end) {
        return HO_STAMP_EMPTY;
    }
    ho_stamp_result result = read_date(&at, order, out, &days);
    if (result == HO_STAMP_BAD || at.p != at.end || !read_clock(&clock, &clock_s, &out->ns) ||
        !read_zone(&clock, &zoned, &offset_s)) {
        return HO_STAMP_BAD;
    }
    out->kind = zoned ? HO_STAMP_UTC : HO_STAMP_LOCAL;
    out->s = days * DAY_S + clock_s - offset_s;
    return result;
}

int ho_stamp_is_clock(const char *text, size_t length)
{
    cursor at = {text, text + length};
    int seconds = 0;
    int32_t ns = 0;
    trim(&at);
    return at.end - at.p >= 3 && read_clock(&at, &seconds, &ns) && at.p == at.end;
}
