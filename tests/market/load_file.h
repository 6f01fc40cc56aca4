/* SPDX-License-Identifier: Apache-2.0
 * Loading in tests: from a file or from text, with keys of [data] as "key=value key=value". */
#ifndef HO_TESTS_MARKET_LOAD_FILE_H
#define HO_TESTS_MARKET_LOAD_FILE_H

#include "check.h"

#include "market/load.h"

typedef struct loaded {
    ho_status rc;
    ho_bars bars;
    ho_data_report report;
    ho_err err;
} loaded;

/* Sets "sort=true symbol=ES bar=5m" on the options; fails the test on a key it does not know. */
void set_keys(ho_data_options *options, const char *keys);

/* Loads the file with the keys. Free with loaded_free. */
loaded load_file(const char *path, const char *keys);

/* Writes the bytes to a file in the working directory and loads it. */
loaded load_bytes(const char *name, const void *bytes, size_t size, const char *keys);
loaded load_text(const char *text, const char *keys);

/* As load_text, and demands success. */
loaded load_good(const char *text, const char *keys);

/* Demands a refusal whose text has the part. */
void check_refused(const char *text, const char *keys, const char *part);

void loaded_free(loaded *l);

/* Seconds since 1970 at which bar t opens. */
double open_s(const loaded *l, int64_t t);

int64_t found(const loaded *l, ho_dirt kind);

/* True if a note has the part. */
bool has_note(const loaded *l, const char *part);

/* Same stamps and values, bit for bit. */
void check_same_bars(const ho_bars *got, const ho_bars *want, const char *name);

#endif
