/* SPDX-License-Identifier: Apache-2.0
 * Time stamps as text: epochs, ISO, compact, day or month first, month names, AM/PM, offsets.
 * Parsing is apart from resolving: a stamp without a zone is local until a zone and the rows
 * before it settle which instant it is (a wall clock shows one hour twice a year). */
#ifndef HO_MARKET_STAMP_H
#define HO_MARKET_STAMP_H

#include <stddef.h>
#include <stdint.h>

#include "market/zone.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ho_stamp_kind {
    HO_STAMP_EPOCH, /* a number; unit says of what */
    HO_STAMP_UTC,   /* a date and time with Z or an offset */
    HO_STAMP_LOCAL, /* a date and time without */
    HO_STAMP_DATE,  /* a date alone */
} ho_stamp_kind;

/* Which of the first two numbers of 01/02/2024 is the day. */
typedef enum ho_stamp_order {
    HO_STAMP_ORDER_UNKNOWN,
    HO_STAMP_ORDER_YMD,
    HO_STAMP_ORDER_DMY,
    HO_STAMP_ORDER_MDY,
} ho_stamp_order;

typedef struct ho_stamp {
    ho_stamp_kind kind;
    int64_t s;         /* seconds since 1970 (UTC), or of the wall clock */
    int32_t ns;        /* [0, 1e9) */
    int unit;          /* HO_STAMP_EPOCH: 1 s, 2 ms, 3 us, 4 ns, as ho_epoch_unit */
    int first, second; /* day-month candidates as written, 0 if the order is plain */
} ho_stamp;

typedef enum ho_stamp_result {
    HO_STAMP_OK,
    HO_STAMP_EMPTY,
    HO_STAMP_BAD,       /* not a time stamp */
    HO_STAMP_AMBIGUOUS, /* day or month first? first and second are set */
    HO_STAMP_RANGE,     /* a number that no unit makes a date from 1980 to tomorrow */
} ho_stamp_result;

/* unit: 0 by magnitude (< 1e11 s, < 1e14 ms, < 1e17 us, else ns), or forced. now_s bounds epochs
 * to [1980, now + 1 day]. */
ho_stamp_result ho_stamp_parse(const char *text, size_t length, ho_stamp_order order, int unit,
                               int64_t now_s, ho_stamp *out);

/* The same with date and time of day in two fields. */
ho_stamp_result ho_stamp_parse_split(const char *date, size_t date_length, const char *time,
                                     size_t time_length, ho_stamp_order order, ho_stamp *out);

/* True if the text is a time of day (09:30, 93000, 09:30:00.5 PM). */
int ho_stamp_is_clock(const char *text, size_t length);

#ifdef __cplusplus
}
#endif
#endif
