/* SPDX-License-Identifier: Apache-2.0
 * Private to csv_detect.c (lines, separator, decimals, header) and csv_roles.c (what each column
 * holds): the detector and the helpers of both. */
#ifndef HO_MARKET_CSV_DETECTOR_H
#define HO_MARKET_CSV_DETECTOR_H

#include "market/csv.h"

enum { HO_CSV_SAMPLE = 200, HO_CSV_HEAD = 12 };

typedef struct ho_csv_line {
    const char *begin, *end;
    int64_t number;
} ho_csv_line;

typedef struct ho_csv_detector {
    const char *path;
    const char *text, *end;
    const ho_data_options *options;
    ho_csv_dialect *d;
    ho_data_report *report;
    ho_err *err;
    int64_t now_s;
    ho_csv_line line[HO_CSV_SAMPLE]; /* first lines that are not blank or comments */
    int lines;
    int header_line; /* index in line, or -1 */
    int data_line;   /* index of the first data line */
    ho_csv_field field[HO_CSV_FIELDS];
} ho_csv_detector;

/* Fields of sample line i into s->field; the number of them, or -1. Trimmed: without a trailing
 * empty one. */
int ho_csv_sample_split(ho_csv_detector *s, int i);
int ho_csv_sample_split_trimmed(ho_csv_detector *s, int i);

/* The field as a string, cut to the size. */
void ho_csv_field_copy(const ho_csv_field *field, char *out, size_t size);

bool ho_csv_is_number(const ho_csv_detector *s, const ho_csv_field *field);
ho_stamp_result ho_csv_parse_stamp(const ho_csv_detector *s, const ho_csv_field *field,
                                   ho_stamp *out);
bool ho_csv_is_stamp(const ho_csv_detector *s, const ho_csv_field *field);

/* The roles of the columns: by data.columns, by the header or, without one, by the values. Sets
 * d->fields, name, column, extra, order and price_scale. */
ho_status ho_csv_find_roles(ho_csv_detector *s, const char *member);

#endif
