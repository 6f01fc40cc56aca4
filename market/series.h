/* SPDX-License-Identifier: Apache-2.0
 * One column of numbers from a text file, with time stamps where there are some: returns, an equity
 * curve, trades, target exposures, actions. The file may be packed (gz, zst, zip); separators
 * , ; tab | and a header are found. Nothing is guessed silently: a field that is no number is an
 * error with its line, and a column that cannot be told is asked for. */
#ifndef HO_MARKET_SERIES_H
#define HO_MARKET_SERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_series {
    int64_t count;
    double *value; /* [count]; NaN where the field is empty or says nan */
    int64_t
        *time_ns;    /* [count] non-decreasing, UTC (stamps without a zone are read as UTC); NULL */
    bool has_clock;  /* some stamp has a time of day */
    int64_t empty;   /* values that are NaN */
    char column[64]; /* name of the column; "" in a file without header */
} ho_series;

/* column: the wanted column by name (case ignored) or number from 1; NULL: the first of `names`
 * (NULL-terminated) that the header has, or the only column that is not a stamp.
 * HO_EIO: cannot be read. HO_EDATA: err says file, line and column. *out is empty on failure. */
ho_status ho_series_read(const char *path, const char *column, const char *const *names,
                         ho_series *out, ho_err *err);
void ho_series_free(ho_series *series);

#ifdef __cplusplus
}
#endif
#endif
