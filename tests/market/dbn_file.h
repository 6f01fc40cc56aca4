/* SPDX-License-Identifier: Apache-2.0
 * An encoder of DBN files for tests, versions 1 to 3, as spec/data-formats.md 4.3 describes them.
 */
#ifndef HO_TESTS_MARKET_DBN_FILE_H
#define HO_TESTS_MARKET_DBN_FILE_H

#include <stddef.h>
#include <stdint.h>

enum { DBN_FILE_MAX = 1 << 16 };

/* On these days (yyyymmdd, end exclusive) the symbol is that instrument. */
typedef struct dbn_interval {
    const char *symbol;
    uint32_t first, end, id;
} dbn_interval;

typedef struct dbn_file {
    int version, schema;
    uint8_t bytes[DBN_FILE_MAX];
    size_t size;
} dbn_file;

/* Prelude and metadata: dataset GLBX.MDP3, [start, end), stype raw symbol to instrument id; one
 * symbol table entry and one mapping entry a distinct symbol of the intervals (in order). */
void dbn_begin(dbn_file *f, int version, int schema, uint64_t start_ns, uint64_t end_ns,
               const dbn_interval *intervals, int n);

/* One OHLCV record; prices in units of 1e-9. */
void dbn_bar(dbn_file *f, int rtype, uint32_t id, uint64_t ns, const int64_t price[4],
             uint64_t volume);

/* A definition record with its tick, its tick's worth and its unit (units of 1e-9). */
void dbn_definition(dbn_file *f, uint32_t id, uint64_t ns, int64_t tick, int64_t worth,
                    int64_t unit);

/* Any record: header and zeros to the length. */
void dbn_other(dbn_file *f, int rtype, uint32_t id, uint64_t ns, size_t length);

#endif
