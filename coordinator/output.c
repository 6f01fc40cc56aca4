/* SPDX-License-Identifier: Apache-2.0
 * See output.h. */
#include "coordinator/output.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "study/text.h"

enum { COLUMNS_MAX = 2000, CELL_MAX = 60 };

/* A growing list of cells, row after row. */
typedef struct cells {
    char **text;
    bool *number;
    int64_t count, room;
} cells;

static void cells_free(cells *c)
{
    for (int64_t i = 0; i < c->count; i++) {
        free(c->text[i]);
    }
    free(c->text);
    free(c->number);
}

static bool cells_add(cells *c, const char *text, bool number)
{
    if (c->count == c->room) {
        int64_t room = c->room ? 2 * c->room : 256;
        char **bigger = (char **)realloc(c->text, (size_t)room * sizeof(*bigger));
        if (bigger) {
            c->text = bigger;
        }
        bool *flags = (bool *)realloc(c->number, (size_t)room * sizeof *flags);
        if (flags) {
            c->number = flags;
        }
        if (!bigger || !flags) {
            return false;
        }
        c->room = room;
    }
    if (!(c->text[c->count] = strdup(text))) {
        return false;
    }
    c->number[c->count++] = number;
    return true;
}

/* Characters a terminal shows, for UTF-8. */
static size_t width_of(const char *text)
{
    size_t n = 0;
    for (const char *p = text; *p; p++) {
        n += (*p & 0xc0) != 0x80;
    }
    return n;
}

/* A value for a table: short, one line, without control characters. */
static void table_cell(sqlite3_stmt *statement, int column, char *out, size_t room)
{
    switch (sqlite3_column_type(statement, column)) {
    case SQLITE_NULL:
        out[0] = '\0';
        break;
    case SQLITE_INTEGER:
        (void)snprintf(out, room, "%lld", (long long)sqlite3_column_int64(statement, column));
        break;
    case SQLITE_FLOAT:
        (void)snprintf(out, room, "%.6g", sqlite3_column_double(statement, column));
        break;
    case SQLITE_BLOB:
        (void)snprintf(out, room, "(%d bytes)", sqlite3_column_bytes(statement, column));
        break;
    default: {
        const char *text = (const char *)sqlite3_column_text(statement, column);
        size_t n = 0, shown = 0;
        for (const char *p = text ? text : ""; *p && n + 5 < room; p++) {
            bool starts = (*p & 0xc0) != 0x80;
            if (starts && shown == CELL_MAX - 1 && width_of(p) > 1) {
                n += (size_t)snprintf(out + n, room - n, "...");
                break;
            }
            shown += starts;
            out[n++] = (unsigned char)*p < 0x20 || *p == 0x7f ? ' ' : *p;
        }
        out[n] = '\0';
        break;
    }
    }
}

static void put_repeated(FILE *out, char c, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        (void)fputc(c, out);
    }
}

static void put_padded(FILE *out, const char *text, size_t width, bool right, bool last)
{
    size_t space = width > width_of(text) ? width - width_of(text) : 0;
    if (right) {
        put_repeated(out, ' ', space);
    }
    (void)fputs(text, out);
    if (!right && !last) {
        put_repeated(out, ' ', space);
    }
}

static ho_status print_table(FILE *out, sqlite3_stmt *statement, bool markdown, int *code,
                             ho_err *err)
{
    int columns = sqlite3_column_count(statement);
    cells c = {0};
    size_t *width = (size_t *)calloc((size_t)columns + 1, sizeof *width);
    ho_status rc = width ? HO_OK : ho_err_set(err, HO_ENOMEM, "out of memory");
    char text[1024];

    for (int i = 0; i < columns && rc == HO_OK; i++) {
        rc = cells_add(&c, sqlite3_column_name(statement, i), false) ? HO_OK : HO_ENOMEM;
    }
    while (rc == HO_OK && (*code = sqlite3_step(statement)) == SQLITE_ROW) {
        for (int i = 0; i < columns && rc == HO_OK; i++) {
            int type = sqlite3_column_type(statement, i);
            table_cell(statement, i, text, sizeof text);
            rc = cells_add(&c, text, type == SQLITE_INTEGER || type == SQLITE_FLOAT) ? HO_OK
                                                                                     : HO_ENOMEM;
        }
    }
    for (int64_t i = 0; i < c.count && rc == HO_OK; i++) {
        size_t w = width_of(c.text[i]);
        width[i % columns] = w > width[i % columns] ? w : width[i % columns];
    }
    for (int64_t i = 0; i < c.count && rc == HO_OK; i++) {
        int column = (int)(i % columns);
        bool last = column + 1 == columns;
        /* a heading stands over its column as the first value does */
        bool right = i < columns ? i + columns < c.count && c.number[i + columns] : c.number[i];
        (void)fputs(markdown ? (column ? " | " : "| ") : column ? "  " : "", out);
        put_padded(out, c.text[i], width[column], right, last && !markdown);
        (void)fputs(last ? (markdown ? " |\n" : "\n") : "", out);
        if (last && i < columns) {
            for (int k = 0; k < columns; k++) {
                (void)fputs(markdown ? (k ? "|" : "|") : k ? "  " : "", out);
                put_repeated(out, '-', width[k] + (markdown ? 2 : 0));
            }
            (void)fputs(markdown ? "|\n" : "\n", out);
        }
    }
    cells_free(&c);
    free(width);
    return rc;
}

/* One thread writes: the stream's lock would cost as much as the writing. */
static void put_hex(FILE *out, const unsigned char *bytes, int count)
{
    for (int i = 0; i < count; i++) {
        (void)fprintf(out, "%02x", bytes[i]);
    }
}

static void put_json_text(FILE *out, const char *text)
{
    (void)putc_unlocked('"', out);
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p == '"' || *p == '\\') {
            (void)fprintf(out, "\\%c", *p);
        } else if (*p < 0x20) {
            (void)fprintf(out, "\\u%04x", *p);
        } else {
            (void)putc_unlocked(*p, out);
        }
    }
    (void)putc_unlocked('"', out);
}

static void put_csv_text(FILE *out, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        (void)fputs_unlocked(text, out);
        return;
    }
    (void)putc_unlocked('"', out);
    for (const char *p = text; *p; p++) {
        if (*p == '"') {
            (void)putc_unlocked('"', out);
        }
        (void)putc_unlocked(*p, out);
    }
    (void)putc_unlocked('"', out);
}

static void put_value(FILE *out, sqlite3_stmt *statement, int i, bool json)
{
    char number[HO_TEXT_NUMBER];
    const char *text = NULL;
    switch (sqlite3_column_type(statement, i)) {
    case SQLITE_NULL:
        (void)fputs_unlocked(json ? "null" : "", out);
        break;
    case SQLITE_INTEGER:
        (void)fprintf(out, "%lld", (long long)sqlite3_column_int64(statement, i));
        break;
    case SQLITE_FLOAT: {
        double value = sqlite3_column_double(statement, i);
        (void)ho_text_f64(value, number, sizeof number);
        (void)fputs_unlocked(json && !isfinite(value) ? "null" : number, out);
        break;
    }
    case SQLITE_BLOB:
        (void)fputs_unlocked(json ? "\"" : "", out);
        put_hex(out, (const unsigned char *)sqlite3_column_blob(statement, i),
                sqlite3_column_bytes(statement, i));
        (void)fputs_unlocked(json ? "\"" : "", out);
        break;
    default:
        text = (const char *)sqlite3_column_text(statement, i);
        if (json) {
            put_json_text(out, text ? text : "");
        } else {
            put_csv_text(out, text ? text : "");
        }
        break;
    }
}

static void print_csv(FILE *out, sqlite3_stmt *statement, int *code)
{
    int columns = sqlite3_column_count(statement);
    for (int i = 0; i < columns; i++) {
        (void)fputs_unlocked(i ? "," : "", out);
        put_csv_text(out, sqlite3_column_name(statement, i));
    }
    (void)fputs_unlocked("\n", out);
    while ((*code = sqlite3_step(statement)) == SQLITE_ROW) {
        for (int i = 0; i < columns; i++) {
            (void)fputs_unlocked(i ? "," : "", out);
            put_value(out, statement, i, false);
        }
        (void)fputs_unlocked("\n", out);
    }
}

static void print_json(FILE *out, sqlite3_stmt *statement, int *code)
{
    int columns = sqlite3_column_count(statement);
    const char *comma = "";
    (void)fputs_unlocked("[", out);
    while ((*code = sqlite3_step(statement)) == SQLITE_ROW) {
        (void)fprintf(out, "%s\n  {", comma);
        for (int i = 0; i < columns; i++) {
            (void)fputs_unlocked(i ? ", " : "", out);
            put_json_text(out, sqlite3_column_name(statement, i));
            (void)fputs_unlocked(": ", out);
            put_value(out, statement, i, true);
        }
        (void)fputs_unlocked("}", out);
        comma = ",";
    }
    (void)fprintf(out, "%s]\n", comma[0] ? "\n" : "");
}

ho_status ho_output_rows(FILE *out, sqlite3_stmt *statement, ho_output_format format, ho_err *err)
{
    int code = SQLITE_DONE;
    ho_status rc = HO_OK;
    if (sqlite3_column_count(statement) == 0 || sqlite3_column_count(statement) > COLUMNS_MAX) {
        code = sqlite3_step(statement);
    } else if (format == HO_OUTPUT_CSV) {
        print_csv(out, statement, &code);
    } else if (format == HO_OUTPUT_JSON) {
        print_json(out, statement, &code);
    } else {
        rc = print_table(out, statement, format == HO_OUTPUT_MARKDOWN, &code, err);
    }
    if (rc == HO_OK && code != SQLITE_DONE) {
        rc = ho_err_set(err, HO_ESTORE, "%s", sqlite3_errmsg(sqlite3_db_handle(statement)));
    }
    return rc;
}

ho_status ho_output_query(FILE *out, sqlite3 *db, const char *sql, ho_output_format format,
                          const char *title, ho_err *err)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK) {
        return ho_err_set(err, HO_ESTORE, "%s", sqlite3_errmsg(db));
    }
    if (title) {
        (void)fprintf(out, "%s\n", title);
    }
    ho_status rc = ho_output_rows(out, statement, format, err);
    (void)sqlite3_finalize(statement);
    return rc;
}

void ho_output_duration(double seconds, char *out, size_t room)
{
    if (!isfinite(seconds) || seconds < 0.0) {
        (void)snprintf(out, room, "?");
    } else if (seconds < 10.0) {
        (void)snprintf(out, room, "%.1f s", seconds);
    } else if (seconds < 120.0) {
        (void)snprintf(out, room, "%.0f s", seconds);
    } else if (seconds < 7200.0) {
        (void)snprintf(out, room, "%d min %02d s", (int)(seconds / 60), (int)fmod(seconds, 60));
    } else if (seconds < 172800.0) {
        (void)snprintf(out, room, "%d h %02d min", (int)(seconds / 3600),
                       (int)fmod(seconds / 60, 60));
    } else {
        (void)snprintf(out, room, "%d d %02d h", (int)(seconds / 86400),
                       (int)fmod(seconds / 3600, 24));
    }
}
