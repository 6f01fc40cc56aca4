/* SPDX-License-Identifier: Apache-2.0
 * See rows.h. */
#include "market/rows.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTRACTS_MAX = 4096 };

static bool grow(void **array, int64_t capacity, size_t size)
{
    void *grown = realloc(*array, (size_t)capacity * size);
    if (grown) {
        *array = grown;
    }
    return grown != NULL;
}

static bool rows_grow(ho_rows *rows)
{
    int64_t n = rows->capacity ? rows->capacity + rows->capacity / 2 : 4096;
    bool ok = grow((void **)&rows->stamp_ns, n, sizeof *rows->stamp_ns) &&
              grow((void **)&rows->ohlcv, n, 5 * sizeof *rows->ohlcv) &&
              grow((void **)&rows->line, n, sizeof *rows->line) &&
              grow((void **)&rows->file, n, sizeof *rows->file) &&
              (!rows->want_contract || grow((void **)&rows->contract, n, sizeof *rows->contract)) &&
              (!rows->want_funding || grow((void **)&rows->funding, n, sizeof *rows->funding)) &&
              (rows->extra_count == 0 ||
               grow((void **)&rows->extra, n, (size_t)rows->extra_count * sizeof *rows->extra));
    if (ok) {
        rows->capacity = n;
    }
    return ok;
}

int64_t ho_rows_add(ho_rows *rows)
{
    int64_t i = rows->count;
    if (i == rows->capacity && !rows_grow(rows)) {
        return -1;
    }
    rows->stamp_ns[i] = 0;
    memset(rows->ohlcv + 5 * i, 0, 5 * sizeof *rows->ohlcv);
    rows->line[i] = 0;
    rows->file[i] = 0;
    if (rows->contract) {
        rows->contract[i] = 0;
    }
    if (rows->funding) {
        rows->funding[i] = 0.0;
    }
    for (int e = 0; e < rows->extra_count; ++e) {
        rows->extra[i * rows->extra_count + e] = 0.0;
    }
    ++rows->count;
    return i;
}

int ho_rows_contract(ho_rows *rows, const char *name, size_t length)
{
    length = length < sizeof *rows->contract_name ? length : sizeof *rows->contract_name - 1;
    for (int i = rows->contract_count - 1; i >= 0; --i) { /* the last one is the likely one */
        if (strncmp(rows->contract_name[i], name, length) == 0 &&
            rows->contract_name[i][length] == '\0') {
            return i;
        }
    }
    if (rows->contract_count == CONTRACTS_MAX ||
        !grow((void **)&rows->contract_name, rows->contract_count + 1,
              sizeof *rows->contract_name)) {
        return -1;
    }
    char *slot = rows->contract_name[rows->contract_count];
    memcpy(slot, name, length);
    slot[length] = '\0';
    return rows->contract_count++;
}

void ho_rows_free(ho_rows *rows)
{
    if (rows) {
        free(rows->stamp_ns);
        free(rows->ohlcv);
        free(rows->line);
        free(rows->file);
        free(rows->contract);
        free(rows->funding);
        free(rows->extra);
        free(rows->contract_name);
        memset(rows, 0, sizeof *rows);
    }
}

void ho_report_find(ho_data_report *report, ho_dirt kind, int file, int64_t line, int64_t ns)
{
    ho_data_finding *finding = &report->finding[kind];
    if (finding->places < HO_DATA_PLACES) {
        finding->place[finding->places++] = (ho_data_place){file, line, ns};
    }
    ++finding->count;
}

void ho_report_note(ho_data_report *report, bool warning, const char *format, ...)
{
    va_list args;
    if (report->note_count == HO_DATA_NOTES) {
        return;
    }
    ho_data_note *note = &report->note[report->note_count++];
    note->warning = warning;
    va_start(args, format);
    (void)vsnprintf(note->text, sizeof note->text, format, args);
    va_end(args);
}
