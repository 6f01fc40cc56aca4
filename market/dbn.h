/* SPDX-License-Identifier: Apache-2.0
 * Databento Binary Encoding, versions 1 to 3: OHLCV records of one instrument become rows; tick
 * size and multiplier come from definition records where there are any. Other records are skipped
 * by their length. spec/data-formats.md 4.3 has the layout. Private to market/. */
#ifndef HO_MARKET_DBN_H
#define HO_MARKET_DBN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "market/load.h"
#include "market/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

/* True if the bytes begin as a DBN file of any version. */
bool ho_dbn_is(const char *bytes, size_t size);

/* True if they begin as records without the header. */
bool ho_dbn_is_fragment(const char *bytes, size_t size);

/* True if the file holds instrument definitions and no bars. */
bool ho_dbn_is_definitions(const char *bytes, size_t size);

/* Appends the bars of data.symbol (which may be absent where the file has one instrument only). A
 * continuous symbol brings rows->contract: the instrument behind it. */
ho_status ho_dbn_read(const char *path, int file, const char *bytes, size_t size,
                      const ho_data_options *options, ho_rows *rows, ho_data_report *report,
                      ho_err *err);

/* Takes tick size and multiplier of the instruments read so far from definition records. */
ho_status ho_dbn_read_definitions(const char *path, const char *bytes, size_t size, ho_rows *rows,
                                  ho_data_report *report, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
