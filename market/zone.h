/* SPDX-License-Identifier: Apache-2.0
 * Time zones by name, read from the system's tz database (TZif files, RFC 8536). Does not look at
 * TZ and does not touch the C library's time zone state, so it is thread safe and the same
 * everywhere. Built in without the database: "", "UTC", and fixed offsets such as "+05:30". */
#ifndef HO_MARKET_ZONE_H
#define HO_MARKET_ZONE_H

#include <stddef.h>
#include <stdint.h>

#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_zone ho_zone;

/* IANA name, e.g. "America/Chicago". HO_EINVAL: not in the database, or no database; err says
 * which and the mend. Free with ho_zone_free. */
ho_status ho_zone_load(const char *name, ho_zone **out, ho_err *err);

/* The same from the bytes of a TZif file. HO_EDATA: damaged. */
ho_status ho_zone_parse(const uint8_t *bytes, size_t size, ho_zone **out, ho_err *err);

void ho_zone_free(ho_zone **zone);

/* Seconds east of UTC at a UTC second. */
int32_t ho_zone_offset(const ho_zone *zone, int64_t utc_s);

/* UTC seconds that show local_s on the wall: returns 0 (the hour that is skipped), 1, or 2 (the
 * hour that repeats; utc_s[0] is the earlier). */
int ho_zone_from_local(const ho_zone *zone, int64_t local_s, int64_t utc_s[2]);

/* Days since 1970-01-01 of a date of the Gregorian calendar, and back. */
int64_t ho_days_from_civil(int64_t year, int month, int day);
void ho_civil_from_days(int64_t days, int64_t *year, int *month, int *day);

/* 0 Monday .. 6 Sunday. */
int ho_weekday(int64_t days);

/* Quotient rounded down, for negative a too; b > 0. */
static inline int64_t ho_floor_div(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return q - (a % b < 0);
}

#ifdef __cplusplus
}
#endif
#endif
