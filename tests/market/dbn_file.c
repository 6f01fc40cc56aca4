/* SPDX-License-Identifier: Apache-2.0
 * See dbn_file.h. */
#include "market/dbn_file.h"

#include <stdio.h>
#include <string.h>

static void put(dbn_file *f, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; ++i) {
        f->bytes[f->size++] = (uint8_t)(value >> (8 * i));
    }
}

static void put_text(dbn_file *f, const char *text, size_t width)
{
    memset(f->bytes + f->size, 0, width);
    memcpy(f->bytes + f->size, text, strlen(text));
    f->size += width;
}

void dbn_begin(dbn_file *f, int version, int schema, uint64_t start_ns, uint64_t end_ns,
               const dbn_interval *intervals, int n)
{
    size_t width = version == 1 ? 22 : 71;
    int symbols = 0;
    memset(f, 0, sizeof *f);
    f->version = version;
    f->schema = schema;
    put_text(f, "DBN", 3);
    put(f, (uint64_t)version, 1);
    put(f, 0, 4); /* the length, at the end */
    put_text(f, "GLBX.MDP3", 16);
    put(f, (uint64_t)schema, 2);
    put(f, start_ns, 8);
    put(f, end_ns, 8);
    put(f, 0, 8);
    if (version == 1) {
        put(f, UINT64_MAX, 8);
    }
    put(f, 1, 1); /* raw symbol */
    put(f, 0, 1); /* instrument id */
    put(f, 0, 1);
    if (version > 1) {
        put(f, width, 2);
    }
    f->size = 8 + 100;
    put(f, 0, 4);
    for (int i = 0; i < n; ++i) {
        symbols += i == 0 || strcmp(intervals[i].symbol, intervals[i - 1].symbol) != 0;
    }
    put(f, (uint64_t)symbols, 4);
    for (int i = 0; i < n; ++i) {
        if (i == 0 || strcmp(intervals[i].symbol, intervals[i - 1].symbol) != 0) {
            put_text(f, intervals[i].symbol, width);
        }
    }
    put(f, 0, 4); /* partial */
    put(f, 0, 4); /* not found */
    put(f, (uint64_t)symbols, 4);
    for (int i = 0; i < n;) {
        int k = i + 1;
        while (k < n && strcmp(intervals[k].symbol, intervals[i].symbol) == 0) {
            ++k;
        }
        put_text(f, intervals[i].symbol, width);
        put(f, (uint64_t)(k - i), 4);
        for (; i < k; ++i) {
            char id[16];
            (void)snprintf(id, sizeof id, "%u", intervals[i].id);
            put(f, intervals[i].first, 4);
            put(f, intervals[i].end, 4);
            put_text(f, id, width);
        }
    }
    while (version == 3 && (f->size - 8) % 8 != 0) {
        put(f, 0, 1);
    }
    size_t size = f->size;
    f->size = 4;
    put(f, size - 8, 4);
    f->size = size;
}

static void header(dbn_file *f, size_t length, int rtype, uint32_t id, uint64_t ns)
{
    put(f, length / 4, 1);
    put(f, (uint64_t)rtype, 1);
    put(f, 1, 2);
    put(f, id, 4);
    put(f, ns, 8);
}

void dbn_bar(dbn_file *f, int rtype, uint32_t id, uint64_t ns, const int64_t price[4],
             uint64_t volume)
{
    header(f, 56, rtype, id, ns);
    for (int k = 0; k < 4; ++k) {
        put(f, (uint64_t)price[k], 8);
    }
    put(f, volume, 8);
}

void dbn_definition(dbn_file *f, uint32_t id, uint64_t ns, int64_t tick, int64_t worth,
                    int64_t unit)
{
    size_t begin = f->size, length = f->version == 1 ? 360 : f->version == 2 ? 400 : 520;
    header(f, length, 0x13, id, ns);
    put(f, ns, 8);
    put(f, (uint64_t)tick, 8);
    for (int i = 0; i < (f->version == 3 ? 6 : 7); ++i) { /* up to unit_of_measure_qty */
        put(f, INT64_MAX, 8);
    }
    put(f, (uint64_t)unit, 8);
    put(f, (uint64_t)worth, 8);
    memset(f->bytes + f->size, 0, begin + length - f->size);
    f->size = begin + length;
}

void dbn_other(dbn_file *f, int rtype, uint32_t id, uint64_t ns, size_t length)
{
    size_t begin = f->size;
    header(f, length, rtype, id, ns);
    memset(f->bytes + f->size, 0, length - 16);
    f->size = begin + length;
}
