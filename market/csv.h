/* SPDX-License-Identifier: Apache-2.0
 * CSV files of many dialects. First the dialect is found (or taken from the keys), then the rows
 * are read by it, strictly: a row that does not fit is an error with its line and column, never a
 * guess. Private to market/. */
#ifndef HO_MARKET_CSV_H
#define HO_MARKET_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "market/load.h"
#include "market/rows.h"
#include "market/stamp.h"
#include "market/zone.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HO_CSV_FIELDS = 512, HO_CSV_EXTRA = 64 };

/* What a column holds. */
typedef enum ho_csv_role {
    HO_CSV_SKIP,
    HO_CSV_STAMP,
    HO_CSV_DATE, /* with HO_CSV_TIME: stamp in two columns */
    HO_CSV_TIME,
    HO_CSV_OPEN,
    HO_CSV_HIGH,
    HO_CSV_LOW,
    HO_CSV_CLOSE,
    HO_CSV_VOLUME,
    HO_CSV_QUOTE_VOLUME,
    HO_CSV_TICK_VOLUME,
    HO_CSV_ADJ_OPEN,
    HO_CSV_ADJ_HIGH,
    HO_CSV_ADJ_LOW,
    HO_CSV_ADJ_CLOSE,
    HO_CSV_ADJ_VOLUME,
    HO_CSV_BID_OPEN,
    HO_CSV_BID_HIGH,
    HO_CSV_BID_LOW,
    HO_CSV_BID_CLOSE,
    HO_CSV_ASK_OPEN,
    HO_CSV_ASK_HIGH,
    HO_CSV_ASK_LOW,
    HO_CSV_ASK_CLOSE,
    HO_CSV_PRICE, /* the only price */
    HO_CSV_CLOSE_TIME,
    HO_CSV_SYMBOL,
    HO_CSV_CONTRACT,
    HO_CSV_FUNDING,
    HO_CSV_ROLES
} ho_csv_role;

/* A field of a row, quotes taken off. */
typedef struct ho_csv_field {
    const char *text;
    size_t length;
} ho_csv_field;

typedef struct ho_csv_dialect {
    char separator;
    char decimal, thousands;
    bool quoted;        /* some field of the sample is in quotes */
    size_t data_offset; /* first byte after header lines */
    int64_t data_line;  /* its line number, from 1 */
    int fields;         /* in a data row */
    bool fields_vary;   /* trailing separators come and go */
    bool header;
    int column[HO_CSV_ROLES];     /* field index of a role, or -1 */
    int extra[HO_CSV_EXTRA];      /* field index of options->extra[k] */
    char name[HO_CSV_FIELDS][48]; /* as written, or "" */
    char symbol[72];              /* the symbol chosen of a wide file, or "" */
    ho_stamp_order order;
    int epoch_unit;       /* forced by the key, or 0 */
    double price_scale;   /* factor of prices, 1 as a rule */
    int64_t day_s;        /* >= 0: stamps are milliseconds of this day (Lean zip members) */
    bool utc_by_name;     /* the stamp column is called ..._utc */
    const char *known_as; /* name of the dialect, or "" */
} ho_csv_dialect;

/* Splits the line at `line` (to '\n' or end) into at most HO_CSV_FIELDS fields; returns the number
 * of fields, or -1: an open quote, or more fields. Trailing '\r' is not part of the line. */
int ho_csv_split(const char *line, const char *end, char separator, ho_csv_field *field);

/* The end of the line that begins at p: its '\n', or end. */
const char *ho_csv_line_end(const char *p, const char *end);

/* Finds the dialect of text [size] (zero-terminated). */
ho_status ho_csv_detect(const char *path, const char *member, const char *text, size_t size,
                        const ho_data_options *options, ho_csv_dialect *out, ho_data_report *report,
                        ho_err *err);

/* Appends all rows. `file` is the index for places. */
ho_status ho_csv_read(const char *path, int file, const char *text, size_t size,
                      const ho_data_options *options, const ho_zone *zone,
                      const ho_csv_dialect *dialect, ho_rows *rows, ho_data_report *report,
                      ho_err *err);

/* Role of a column name ("<TICKVOL>", "Adj Close"), HO_CSV_SKIP if it has none. */
ho_csv_role ho_csv_role_of(const char *name);
const char *ho_csv_role_name(ho_csv_role role);

#ifdef __cplusplus
}
#endif
#endif
