/* SPDX-License-Identifier: Apache-2.0
 * See zone.h. TZif: RFC 8536; the footer's rule: POSIX TZ with the extensions of RFC 8536 3.3.1.
 * Calendar arithmetic: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms". */
#include "market/zone.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TZIF_HEADER = 44, TZIF_MAX_BYTES = 1 << 20, DAY_S = 86400 };

/* A change date of a POSIX rule. */
typedef struct rule_date {
    char kind; /* 'M' month.week.day, 'J' day 1-365 without 29 February, '0' day 0-365 */
    int month, week, day;
    int32_t at_s; /* local seconds after midnight */
} rule_date;

typedef struct rule {
    bool present, has_dst;
    int32_t std_offset, dst_offset;
    rule_date start, end;
} rule;

/* 1. transition ascends.  2. offset[i] holds in [transition[i], transition[i+1]).
 * 3. before transition[0] `first` holds; from the last on the rule does, if there is one. */
struct ho_zone {
    int32_t first;
    int64_t count;
    int64_t *transition;
    int32_t *offset;
    rule after;
};

int64_t ho_days_from_civil(int64_t year, int month, int day)
{
    year -= month <= 2;
    int64_t era = ho_floor_div(year, 400);
    int64_t yoe = year - era * 400;
    int64_t doy = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    return era * 146097 + doe - 719468;
}

void ho_civil_from_days(int64_t days, int64_t *year, int *month, int *day)
{
    days += 719468;
    int64_t era = ho_floor_div(days, 146097);
    int64_t doe = days - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;
    *day = (int)(doy - (153 * mp + 2) / 5 + 1);
    *month = (int)(mp < 10 ? mp + 3 : mp - 9);
    *year = yoe + era * 400 + (*month <= 2);
}

int ho_weekday(int64_t days)
{
    int64_t d = (days + 3) % 7;
    return (int)(d < 0 ? d + 7 : d);
}

/* ---- the rule in the footer ------------------------------------------------------------------ */

/* "CST" or "<-03>". */
static bool skip_name(const char **p)
{
    if (**p == '<') {
        const char *end = strchr(*p, '>');
        if (!end) {
            return false;
        }
        *p = end + 1;
        return true;
    }
    const char *begin = *p;
    while (isalpha((unsigned char)**p)) {
        ++*p;
    }
    return *p - begin >= 3;
}

/* [+-]h[h][:mm[:ss]], up to 167 hours; seconds. */
static bool read_clock(const char **p, int32_t *out)
{
    int sign = 1, part[3] = {0, 0, 0};
    if (**p == '+' || **p == '-') {
        sign = **p == '-' ? -1 : 1;
        ++*p;
    }
    for (int i = 0; i < 3; ++i) {
        int digits = 0;
        while (isdigit((unsigned char)**p) && digits < 3) {
            part[i] = part[i] * 10 + (**p - '0');
            ++*p;
            ++digits;
        }
        if (!digits) {
            return false;
        }
        if (**p != ':') {
            break;
        }
        ++*p;
    }
    if (part[0] > 167 || part[1] > 59 || part[2] > 59) {
        return false;
    }
    *out = sign * (part[0] * 3600 + part[1] * 60 + part[2]);
    return true;
}

static bool read_int(const char **p, int low, int high, int *out)
{
    char *end = NULL;
    if (!isdigit((unsigned char)**p)) {
        return false;
    }
    long value = strtol(*p, &end, 10);
    if (value < low || value > high) {
        return false;
    }
    *p = end;
    *out = (int)value;
    return true;
}

/* ",M3.2.0/2" */
static bool read_rule_date(const char **p, rule_date *out)
{
    if (**p != ',') {
        return false;
    }
    ++*p;
    out->at_s = 7200;
    if (**p == 'M') {
        out->kind = 'M';
        ++*p;
        if (!read_int(p, 1, 12, &out->month) || *(*p)++ != '.' || !read_int(p, 1, 5, &out->week) ||
            *(*p)++ != '.' || !read_int(p, 0, 6, &out->day)) {
            return false;
        }
    } else if (**p == 'J') {
        out->kind = 'J';
        ++*p;
        if (!read_int(p, 1, 365, &out->day)) {
            return false;
        }
    } else {
        out->kind = '0';
        if (!read_int(p, 0, 365, &out->day)) {
            return false;
        }
    }
    if (**p == '/') {
        ++*p;
        return read_clock(p, &out->at_s);
    }
    return true;
}

/* "CST6CDT,M3.2.0,M11.1.0". */
static bool parse_rule(const char *text, rule *out)
{
    const char *p = text;
    int32_t west = 0;
    memset(out, 0, sizeof *out);
    if (!skip_name(&p) || !read_clock(&p, &west)) {
        return false;
    }
    out->present = true;
    out->std_offset = -west;
    if (*p == '\0') {
        return true;
    }
    out->has_dst = true;
    out->dst_offset = out->std_offset + 3600;
    if (!skip_name(&p)) {
        return false;
    }
    if (*p && *p != ',') {
        if (!read_clock(&p, &west)) {
            return false;
        }
        out->dst_offset = -west;
    }
    return read_rule_date(&p, &out->start) && read_rule_date(&p, &out->end) && *p == '\0';
}

/* Local seconds (in the offset before the change) at which the change of that year is. */
static int64_t rule_local_s(const rule_date *date, int64_t year)
{
    int64_t day = 0;
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    int64_t january = ho_days_from_civil(year, 1, 1);
    if (date->kind == 'M') {
        int64_t first = ho_days_from_civil(year, date->month, 1);
        int64_t next = date->month == 12 ? ho_days_from_civil(year + 1, 1, 1)
                                         : ho_days_from_civil(year, date->month + 1, 1);
        int sunday_based = (ho_weekday(first) + 1) % 7; /* 0 Sunday, as POSIX counts */
        day = first + (date->day - sunday_based + 7) % 7 + 7 * (date->week - 1);
        if (day >= next) {
            day -= 7;
        }
    } else if (date->kind == 'J') {
        day = january + date->day - 1 + (leap && date->day >= 60);
    } else {
        day = january + date->day;
    }
    return day * DAY_S + date->at_s;
}

static int32_t rule_offset(const rule *r, int64_t utc_s)
{
    int64_t year = 0;
    int month = 0, day = 0;
    if (!r->has_dst) {
        return r->std_offset;
    }
    ho_civil_from_days(ho_floor_div(utc_s + r->std_offset, DAY_S), &year, &month, &day);
    int64_t start = rule_local_s(&r->start, year) - r->std_offset;
    int64_t end = rule_local_s(&r->end, year) - r->dst_offset;
    bool dst = start < end ? utc_s >= start && utc_s < end : utc_s >= start || utc_s < end;
    return dst ? r->dst_offset : r->std_offset;
}

/* ---- TZif ------------------------------------------------------------------------------------ */

static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int64_t be64(const uint8_t *p)
{
    return (int64_t)((uint64_t)be32(p) << 32 | be32(p + 4));
}

typedef struct tzif_counts {
    size_t isut, isstd, leap, time, type, chars;
} tzif_counts;

static bool read_header(const uint8_t *bytes, size_t size, int *version, tzif_counts *out)
{
    if (size < TZIF_HEADER || memcmp(bytes, "TZif", 4) != 0) {
        return false;
    }
    *version = bytes[4] == '\0' ? 1 : bytes[4] - '0';
    *out = (tzif_counts){be32(bytes + 20), be32(bytes + 24), be32(bytes + 28),
                         be32(bytes + 32), be32(bytes + 36), be32(bytes + 40)};
    return out->isut <= size && out->isstd <= size && out->leap <= size && out->time <= size &&
           out->type <= size && out->chars <= size && out->type > 0;
}

static size_t body_size(const tzif_counts *n, size_t time_size)
{
    return n->time * time_size + n->time + n->type * 6 + n->chars + n->leap * (time_size + 4) +
           n->isstd + n->isut;
}

ho_status ho_zone_parse(const uint8_t *bytes, size_t size, ho_zone **out, ho_err *err)
{
    ho_status rc = HO_OK;
    ho_zone *zone = NULL;
    tzif_counts n;
    int version = 0;
    size_t time_size = 4;
    const uint8_t *p = bytes + TZIF_HEADER;
    *out = NULL;
    if (size > TZIF_MAX_BYTES || !read_header(bytes, size, &version, &n)) {
        return ho_err_set(err, HO_EDATA, "not a tz database file");
    }
    size_t left = size - TZIF_HEADER;
    if (version >= 2) { /* the second block has 64-bit times; the first is for old readers */
        size_t skip = body_size(&n, 4);
        if (skip > left || !read_header(p + skip, left - skip, &version, &n)) {
            return ho_err_set(err, HO_EDATA, "tz database file is damaged");
        }
        p += skip + TZIF_HEADER;
        left -= skip + TZIF_HEADER;
        time_size = 8;
    }
    if (body_size(&n, time_size) > left) {
        return ho_err_set(err, HO_EDATA, "tz database file is cut short");
    }
    if (!(zone = calloc(1, sizeof *zone)) ||
        !(zone->transition = calloc(n.time + 1, sizeof *zone->transition)) ||
        !(zone->offset = calloc(n.time + 1, sizeof *zone->offset))) {
        rc = ho_err_set(err, HO_ENOMEM, "no memory for a time zone");
        goto out;
    }
    const uint8_t *index = p + n.time * time_size;
    const uint8_t *types = index + n.time;
    zone->count = (int64_t)n.time;
    zone->first = (int32_t)be32(types);
    for (size_t i = 0; i < n.time; ++i) {
        int64_t at = time_size == 8 ? be64(p + 8 * i) : (int32_t)be32(p + 4 * i);
        if (index[i] >= n.type || (i > 0 && at <= zone->transition[i - 1])) {
            rc = ho_err_set(err, HO_EDATA, "tz database file is damaged");
            goto out;
        }
        zone->transition[i] = at;
        zone->offset[i] = (int32_t)be32(types + 6 * index[i]);
    }
    for (size_t i = 0; i < n.type; ++i) {
        int32_t offset = (int32_t)be32(types + 6 * i);
        if (offset < -26 * 3600 || offset > 26 * 3600) {
            rc = ho_err_set(err, HO_EDATA, "tz database file is damaged");
            goto out;
        }
    }
    const uint8_t *foot = p + body_size(&n, time_size);
    left -= body_size(&n, time_size);
    if (version >= 2 && left >= 2 && foot[0] == '\n') {
        const uint8_t *stop = memchr(foot + 1, '\n', left - 1);
        char text[128];
        size_t length = stop ? (size_t)(stop - foot - 1) : sizeof text;
        if (length < sizeof text) {
            memcpy(text, foot + 1, length);
            text[length] = '\0';
            if (length > 0 && !parse_rule(text, &zone->after)) {
                rc = ho_err_set(err, HO_EDATA, "tz database file has a rule not understood: %s",
                                text);
                goto out;
            }
        }
    }
    *out = zone;
    zone = NULL;
out:
    ho_zone_free(&zone);
    return rc;
}

/* "", "UTC" and its names, "+05:30", "-0500". */
static bool fixed_offset(const char *name, int32_t *out)
{
    static const char *const utc[] = {"", "UTC", "Etc/UTC", "GMT", "Z", "utc"};
    for (size_t i = 0; i < sizeof utc / sizeof utc[0]; ++i) {
        if (strcmp(name, utc[i]) == 0) {
            *out = 0;
            return true;
        }
    }
    int hours = 0, minutes = 0, used = 0;
    if ((name[0] == '+' || name[0] == '-') && isdigit((unsigned char)name[1]) &&
        (sscanf(name + 1, "%2d:%2d%n", &hours, &minutes, &used) == 2 ||
         sscanf(name + 1, "%2d%2d%n", &hours, &minutes, &used) == 2) &&
        name[1 + used] == '\0' && hours >= 0 && hours <= 15 && minutes >= 0 && minutes <= 59) {
        *out = (name[0] == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
        return true;
    }
    return false;
}

static bool name_is_safe(const char *name)
{
    if (!isalpha((unsigned char)name[0]) || strstr(name, "..")) {
        return false;
    }
    for (const char *p = name; *p; ++p) {
        if (!isalnum((unsigned char)*p) && !strchr("/_+-", *p)) {
            return false;
        }
    }
    return true;
}

ho_status ho_zone_load(const char *name, ho_zone **out, ho_err *err)
{
    static const char *const folders[] = {"/usr/share/zoneinfo", "/usr/lib/zoneinfo",
                                          "/usr/share/lib/zoneinfo"};
    int32_t offset = 0;
    *out = NULL;
    if (fixed_offset(name, &offset)) {
        ho_zone *zone = calloc(1, sizeof *zone);
        if (!zone) {
            return ho_err_set(err, HO_ENOMEM, "no memory for a time zone");
        }
        zone->first = offset;
        *out = zone;
        return HO_OK;
    }
    if (!name_is_safe(name)) {
        return ho_err_set(err, HO_EINVAL,
                          "\"%s\" is not a time zone: write a name such as \"America/New_York\", "
                          "\"UTC\" or an offset such as \"-05:00\"",
                          name);
    }
    FILE *file = NULL;
    for (size_t i = 0; !file && i < sizeof folders / sizeof folders[0]; ++i) {
        char path[256];
        (void)snprintf(path, sizeof path, "%s/%s", folders[i], name);
        file = fopen(path, "rb");
    }
    if (!file) {
        FILE *any = fopen("/usr/share/zoneinfo/America/New_York", "rb");
        if (!any) {
            return ho_err_set(err, HO_EINVAL,
                              "time zone \"%s\": this machine has no tz database; install the "
                              "package tzdata",
                              name);
        }
        (void)fclose(any);
        return ho_err_set(err, HO_EINVAL,
                          "unknown time zone \"%s\": write a name such as \"America/New_York\" "
                          "(the files under /usr/share/zoneinfo), \"UTC\" or an offset such as "
                          "\"-05:00\"",
                          name);
    }
    ho_status rc = HO_OK;
    uint8_t *bytes = malloc(TZIF_MAX_BYTES);
    if (!bytes) {
        rc = ho_err_set(err, HO_ENOMEM, "no memory for a time zone");
    } else {
        size_t size = fread(bytes, 1, TZIF_MAX_BYTES, file);
        rc = ho_zone_parse(bytes, size, out, err);
        if (rc == HO_EDATA) {
            rc = HO_EINVAL;
            (void)ho_err_prefix(err, "time zone \"%s\"", name);
        }
    }
    free(bytes);
    (void)fclose(file);
    return rc;
}

void ho_zone_free(ho_zone **zone)
{
    if (zone && *zone) {
        free((*zone)->transition);
        free((*zone)->offset);
        free(*zone);
        *zone = NULL;
    }
}

int32_t ho_zone_offset(const ho_zone *zone, int64_t utc_s)
{
    if (zone->count == 0) {
        return zone->after.present ? rule_offset(&zone->after, utc_s) : zone->first;
    }
    if (utc_s < zone->transition[0]) {
        return zone->first;
    }
    if (utc_s >= zone->transition[zone->count - 1] && zone->after.present) {
        return rule_offset(&zone->after, utc_s);
    }
    int64_t low = 0, high = zone->count; /* transition[low] <= utc_s < transition[high] */
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (zone->transition[middle] <= utc_s) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return zone->offset[low];
}

int ho_zone_from_local(const ho_zone *zone, int64_t local_s, int64_t utc_s[2])
{
    /* A change moves the clock by at most a day: the offsets in force around are candidates. */
    int32_t before = ho_zone_offset(zone, local_s - 2 * DAY_S);
    int32_t after = ho_zone_offset(zone, local_s + 2 * DAY_S);
    int found = 0;
    int64_t first = local_s - (before > after ? before : after);
    int64_t second = local_s - (before > after ? after : before);
    if (first + ho_zone_offset(zone, first) == local_s) {
        utc_s[found++] = first;
    }
    if (second != first && second + ho_zone_offset(zone, second) == local_s) {
        utc_s[found++] = second;
    }
    return found;
}
