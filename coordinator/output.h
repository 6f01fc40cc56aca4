/* SPDX-License-Identifier: Apache-2.0
 * Rows of a query as people and programs want them: aligned table, CSV (RFC 4180), JSON (an array
 * of objects) or a Markdown table. NULL is empty, in JSON null; blobs are their size in a table,
 * hex else. Tables round numbers to six digits, the others give every digit. */
#ifndef HO_COORDINATOR_OUTPUT_H
#define HO_COORDINATOR_OUTPUT_H

#include <sqlite3.h>
#include <stdio.h>

#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ho_output_format {
    HO_OUTPUT_TABLE,
    HO_OUTPUT_CSV,
    HO_OUTPUT_JSON,
    HO_OUTPUT_MARKDOWN,
} ho_output_format;

/* The words of the option --format, in the order of the enum. */
#define HO_OUTPUT_WORDS "table|csv|json|markdown"

/* Steps through the statement and prints its rows. HO_ESTORE: it failed; err has SQLite's text. */
ho_status ho_output_rows(FILE *out, sqlite3_stmt *statement, ho_output_format format, ho_err *err);

/* Runs one query and prints it. title: a line above a table when it has rows; NULL: none. */
ho_status ho_output_query(FILE *out, sqlite3 *db, const char *sql, ho_output_format format,
                          const char *title, ho_err *err);

/* "2 h 5 min", "41 s", "0.3 s"; "?" for NaN. */
void ho_output_duration(double seconds, char *out, size_t room);

#ifdef __cplusplus
}
#endif
#endif
