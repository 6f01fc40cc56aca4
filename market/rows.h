/* SPDX-License-Identifier: Apache-2.0
 * Rows as a reader finds them, before cleaning: what CSV, DBN and JSON readers fill and clean.c
 * takes. Private to market/. */
#ifndef HO_MARKET_ROWS_H
#define HO_MARKET_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "market/load.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HO_ROWS_IDS = 256 };

/* 1. The first count entries of each array are set.  2. ohlcv is finite, but for rows that the
 * reader marked empty, which it does not store.  3. contract is NULL or [count], indexes into
 * contract_name.  4. line is the line (text) or the record (DBN) in its file, from 1. */
typedef struct ho_rows {
    int64_t count, capacity;
    int64_t *stamp_ns;
    double *ohlcv; /* [count, 5] */
    uint32_t *line;
    uint16_t *file;
    int16_t *contract;
    double *funding;
    int extra_count;
    double *extra; /* [count, extra_count] */
    int contract_count;
    char (*contract_name)[72];
    bool want_contract, want_funding; /* which optional arrays exist */

    /* facts that a reader may learn */
    bool has_volume;
    bool dates_only;     /* no stamp has a time of day */
    bool naive;          /* stamps had no zone */
    int label;           /* ho_bar_label the format states, or HO_LABEL_AUTO */
    int64_t interval_ns; /* bar length the format states, or 0 */
    char venue_zone[64]; /* session zone that the venue implies, or "" */
    ho_instrument instrument;
    uint32_t instrument_id[HO_ROWS_IDS]; /* DBN instruments read, for definitions that follow */
    int instrument_ids;
} ho_rows;

/* Makes room for one more row, zeroed, and returns its index; -1 without memory. The caller fills
 * it and keeps count as it is, or takes it back with --rows->count. */
int64_t ho_rows_add(ho_rows *rows);

/* Number of the contract of that name, added if new; -1: too many, or no memory. */
int ho_rows_contract(ho_rows *rows, const char *name, size_t length);

void ho_rows_free(ho_rows *rows);

/* Report helpers, used by readers and cleaning alike. */
void ho_report_find(ho_data_report *report, ho_dirt kind, int file, int64_t line, int64_t ns);
void ho_report_note(ho_data_report *report, bool warning, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#ifdef __cplusplus
}
#endif
#endif
