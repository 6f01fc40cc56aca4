/* SPDX-License-Identifier: Apache-2.0
 * Reads one column; see series.h. Splitting, numbers and stamps are the loader's. */
#include "market/series.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "market/csv.h"
#include "market/number.h"
#include "market/source.h"
#include "market/stamp.h"

/* How the file is laid out. */
typedef struct layout {
    const char *path;
    char separator; /* 0: one column */
    char decimal;
    bool header;
    int fields;
    int column, stamp; /* field indexes; stamp -1: none */
} layout;

typedef struct reader {
    const char *p, *end;
    int64_t line; /* of the row last returned, from 1 */
} reader;

/* The next row that is neither empty nor a comment; false at the end. */
static bool next_row(reader *r, const char **row)
{
    while (r->p < r->end) {
        const char *start = r->p, *stop = ho_csv_line_end(start, r->end);
        r->p = stop < r->end ? stop + 1 : stop;
        r->line++;
        const char *first = start;
        while (first < stop && isspace((unsigned char)*first)) {
            first++;
        }
        if (first < stop && *first != '#') {
            *row = start;
            return true;
        }
    }
    return false;
}

static char find_separator(const char *row, const char *end)
{
    static const char candidates[] = {';', '\t', '|', ','};
    const char *stop = ho_csv_line_end(row, end);
    for (size_t i = 0; i < sizeof candidates; i++) {
        if (memchr(row, candidates[i], (size_t)(stop - row))) {
            return candidates[i];
        }
    }
    return 0;
}

static ho_csv_field trimmed(ho_csv_field f)
{
    while (f.length > 0 && isspace((unsigned char)f.text[0])) {
        f.text++;
        f.length--;
    }
    while (f.length > 0 && isspace((unsigned char)f.text[f.length - 1])) {
        f.length--;
    }
    return f;
}

/* Splits and trims a row; -1 as ho_csv_split. */
static int split(const layout *l, const char *row, const char *end, ho_csv_field *field)
{
    const char *stop = ho_csv_line_end(row, end);
    int n = ho_csv_split(row, stop, l->separator ? l->separator : '\x1f', field);
    for (int i = 0; i < n; i++) {
        field[i] = trimmed(field[i]);
    }
    return n;
}

/* "1.5%" is 0.015. */
static ho_number_kind parse_value(ho_csv_field f, char decimal, double *out)
{
    bool percent = f.length > 0 && f.text[f.length - 1] == '%';
    ho_number_kind kind = ho_number_parse(f.text, f.length - percent, decimal, '\0', out);
    if (kind == HO_NUMBER_OK && percent) {
        *out /= 100.0;
    }
    return kind;
}

static bool is_number(ho_csv_field f, char decimal)
{
    double value;
    ho_number_kind kind = parse_value(f, decimal, &value);
    return kind == HO_NUMBER_OK || kind == HO_NUMBER_EMPTY;
}

static bool is_stamp(ho_csv_field f)
{
    ho_stamp stamp;
    ho_stamp_result result =
        ho_stamp_parse(f.text, f.length, HO_STAMP_ORDER_UNKNOWN, 0, (int64_t)time(NULL), &stamp);
    return result == HO_STAMP_OK || result == HO_STAMP_AMBIGUOUS;
}

static bool named(ho_csv_field f, const char *name)
{
    return strlen(name) == f.length && strncasecmp(f.text, name, f.length) == 0;
}

static int find_name(const ho_csv_field *header, int n, const char *name)
{
    for (int i = 0; i < n; i++) {
        if (named(header[i], name)) {
            return i;
        }
    }
    return -1;
}

static void list_columns(const ho_csv_field *header, int n, char *out, size_t room)
{
    size_t used = 0;
    out[0] = 0;
    for (int i = 0; i < n && used + header[i].length + 3 < room; i++) {
        used += (size_t)snprintf(out + used, room - used, "%s%.*s", i > 0 ? ", " : "",
                                 (int)header[i].length, header[i].text);
    }
}

/* The wanted column, by name or number. */
static ho_status pick_asked(layout *l, const char *column, const ho_csv_field *header, ho_err *err)
{
    char columns[512];
    int64_t number;
    l->column = l->header ? find_name(header, l->fields, column) : -1;
    if (l->column < 0 && ho_number_parse_digits(column, strlen(column), &number) && number >= 1 &&
        number <= l->fields) {
        l->column = (int)number - 1;
    }
    if (l->column >= 0) {
        return HO_OK;
    }
    list_columns(header, l->header ? l->fields : 0, columns, sizeof columns);
    return ho_err_set(err, HO_EDATA, "%s: there is no column \"%s\" among %d%s%s", l->path, column,
                      l->fields, columns[0] ? ": " : "", columns);
}

/* Otherwise one of the names, or the only column that is not a stamp. */
static ho_status pick_column(layout *l, const char *const *names, const ho_csv_field *header,
                             ho_err *err)
{
    char columns[512];
    for (int i = 0; l->header && names && names[i] && l->column < 0; i++) {
        l->column = find_name(header, l->fields, names[i]);
    }
    int others = l->fields - (l->stamp >= 0);
    if (l->column < 0 && others == 1) {
        l->column = l->stamp == 0 ? 1 : 0;
    }
    if (l->column >= 0) {
        return HO_OK;
    }
    list_columns(header, l->header ? l->fields : 0, columns, sizeof columns);
    return ho_err_set(err, HO_EDATA,
                      "%s: which of its %d columns? Name one by its header or number%s%s", l->path,
                      l->fields, columns[0] ? ": " : "", columns);
}

static ho_status find_layout(const char *path, const ho_source *source, const char *column,
                             const char *const *names, layout *l, reader *r, char *name,
                             size_t name_room, ho_err *err)
{
    static ho_csv_field none;
    const char *row = NULL;
    ho_csv_field *first = calloc(2 * HO_CSV_FIELDS, sizeof *first);
    ho_csv_field *second = first ? first + HO_CSV_FIELDS : NULL;
    ho_status rc = first ? HO_OK : ho_err_set(err, HO_ENOMEM, "%s: out of memory", path);
    *l = (layout){.path = path, .decimal = '.', .column = -1, .stamp = -1};
    *r = (reader){.p = source->bytes, .end = source->bytes + source->size};
    if (source->size >= 3 && memcmp(source->bytes, "\xef\xbb\xbf", 3) == 0) {
        r->p += 3;
    }
    if (rc == HO_OK && !next_row(r, &row)) {
        rc = ho_err_set(err, HO_EDATA, "%s: there is nothing in it", path);
    }
    if (rc != HO_OK) {
        free(first);
        return rc;
    }
    l->separator = find_separator(row, r->end);
    l->fields = split(l, row, r->end, first);
    if (l->fields < 1) {
        rc = ho_err_set(err, HO_EDATA, "%s:%lld: a quote is not closed", path, (long long)r->line);
    }
    reader ahead = *r;
    for (int i = 0; i < l->fields; i++) { /* a header has words that are no values */
        l->header |= first[i].length > 0 && !is_number(first[i], '.') &&
                     !is_number(first[i], ',') && !is_stamp(first[i]);
    }
    int data_fields = l->fields;
    if (l->header) {
        data_fields = next_row(&ahead, &row) ? split(l, row, r->end, second) : 0;
    } else {
        memcpy(second, first, (size_t)l->fields * sizeof *second);
        *r = (reader){.p = row, .end = r->end, .line = r->line - 1};
    }
    for (int i = 0; i < data_fields && rc == HO_OK && l->stamp < 0; i++) {
        double value;
        bool plain = parse_value(second[i], '.', &value) == HO_NUMBER_OK && fabs(value) < 1e7;
        l->stamp = !plain && is_stamp(second[i]) ? i : -1;
    }
    for (int i = 0; i < data_fields && l->separator != ','; i++) { /* 1,5 in a ; file */
        l->decimal = i != l->stamp && !is_number(second[i], '.') && is_number(second[i], ',')
                         ? ','
                         : l->decimal;
    }
    if (rc == HO_OK && column) {
        rc = pick_asked(l, column, l->header ? first : &none, err);
    } else if (rc == HO_OK) {
        rc = pick_column(l, names, l->header ? first : &none, err);
    }
    if (rc == HO_OK && l->stamp == l->column) {
        l->stamp = -1;
    }
    if (rc == HO_OK && l->header) {
        snprintf(name, name_room, "%.*s", (int)first[l->column].length, first[l->column].text);
    }
    free(first);
    return rc;
}

static ho_status parse_stamp(const layout *l, const ho_csv_field *f, int64_t line, ho_series *out,
                             ho_err *err)
{
    ho_stamp stamp;
    int64_t i = out->count;
    ho_stamp_result result =
        ho_stamp_parse(f->text, f->length, HO_STAMP_ORDER_UNKNOWN, 0, (int64_t)time(NULL), &stamp);
    if (result == HO_STAMP_AMBIGUOUS) {
        return ho_err_set(err, HO_EDATA,
                          "%s:%lld: \"%.*s\": day or month first? Write dates as 2024-02-01",
                          l->path, (long long)line, (int)f->length, f->text);
    }
    if (result != HO_STAMP_OK) {
        return ho_err_set(err, HO_EDATA, "%s:%lld: \"%.*s\" is not a time stamp", l->path,
                          (long long)line, (int)(f->length < 40 ? f->length : 40), f->text);
    }
    out->time_ns[i] = stamp.s * 1000000000 + stamp.ns;
    out->has_clock |= stamp.s % 86400 != 0;
    if (i > 0 && out->time_ns[i] < out->time_ns[i - 1]) {
        return ho_err_set(err, HO_EDATA, "%s:%lld: time goes backwards; sort the rows by time",
                          l->path, (long long)line);
    }
    return HO_OK;
}

static ho_status add_row(const layout *l, const ho_csv_field *field, int n, int64_t line,
                         ho_series *out, ho_err *err)
{
    if (n <= l->column || n <= l->stamp) {
        return ho_err_set(err, HO_EDATA, "%s:%lld: %d columns, but column %d is wanted", l->path,
                          (long long)line, n, (l->column > l->stamp ? l->column : l->stamp) + 1);
    }
    const ho_csv_field *f = &field[l->column];
    double value = NAN;
    ho_number_kind kind = parse_value(*f, l->decimal, &value);
    if (kind == HO_NUMBER_BAD || kind == HO_NUMBER_INFINITE) {
        return ho_err_set(err, HO_EDATA, "%s:%lld: column %d: \"%.*s\" is not a%s number", l->path,
                          (long long)line, l->column + 1, (int)(f->length < 40 ? f->length : 40),
                          f->text, kind == HO_NUMBER_INFINITE ? " finite" : "");
    }
    if (l->stamp >= 0) {
        ho_status rc = parse_stamp(l, &field[l->stamp], line, out, err);
        if (rc != HO_OK) {
            return rc;
        }
    }
    out->empty += kind == HO_NUMBER_EMPTY;
    out->value[out->count++] = kind == HO_NUMBER_EMPTY ? NAN : value;
    return HO_OK;
}

static ho_status read_rows(const layout *l, reader r, ho_series *out, ho_err *err)
{
    const char *row;
    int64_t rows = 0;
    reader count = r;
    while (next_row(&count, &row)) {
        rows++;
    }
    ho_csv_field *field = calloc(HO_CSV_FIELDS, sizeof *field);
    out->value = malloc((size_t)(rows + 1) * sizeof(double));
    out->time_ns = l->stamp >= 0 ? malloc((size_t)(rows + 1) * sizeof(int64_t)) : NULL;
    ho_status rc = HO_OK;
    if (!field || !out->value || (l->stamp >= 0 && !out->time_ns)) {
        rc =
            ho_err_set(err, HO_ENOMEM, "%s: out of memory for %lld rows", l->path, (long long)rows);
    }
    while (rc == HO_OK && next_row(&r, &row)) {
        int n = split(l, row, r.end, field);
        rc = n < 0 ? ho_err_set(err, HO_EDATA, "%s:%lld: a quote is not closed", l->path,
                                (long long)r.line)
                   : add_row(l, field, n, r.line, out, err);
    }
    if (rc == HO_OK && out->count == 0) {
        rc = ho_err_set(err, HO_EDATA, "%s: a header, but no rows", l->path);
    }
    free(field);
    return rc;
}

ho_status ho_series_read(const char *path, const char *column, const char *const *names,
                         ho_series *out, ho_err *err)
{
    ho_source source;
    layout l;
    reader r;
    *out = (ho_series){0};
    ho_status rc = ho_source_read(path, "", &source, err);
    if (rc != HO_OK) {
        return rc;
    }
    rc = find_layout(path, &source, column, names, &l, &r, out->column, sizeof out->column, err);
    if (rc == HO_OK) {
        rc = read_rows(&l, r, out, err);
    }
    ho_source_free(&source);
    if (rc != HO_OK) {
        ho_series_free(out);
    }
    return rc;
}

void ho_series_free(ho_series *series)
{
    free(series->value);
    free(series->time_ns);
    *series = (ho_series){0};
}
