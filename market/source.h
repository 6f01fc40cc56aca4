/* SPDX-License-Identifier: Apache-2.0
 * A data file's bytes in memory: read whole, hashed, taken out of gz, zst or zip by their magic
 * numbers (never by the name). */
#ifndef HO_MARKET_SOURCE_H
#define HO_MARKET_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_source {
    char *bytes; /* [size + 1], a zero behind the last */
    size_t size;
    char container[8]; /* "plain", "gz", "zst", "zip" */
    char member[256];  /* name inside a zip, or "" */
    char sha256[65];   /* of the file as it lies on disk */
} ho_source;

/* Reads a file. Of a zip with several files, `pick` (data.symbol) must occur in exactly one name.
 * HO_EIO: cannot be read (err: path and reason). HO_EDATA: damaged, cut short, or of a kind that
 * is refused by name (Parquet, Feather, xz, a web page ...), err with the mend. */
ho_status ho_source_read(const char *path, const char *pick, ho_source *out, ho_err *err);

/* The same from memory; `path` is for messages; no more than max_bytes come out. */
ho_status ho_source_decode(const char *path, const char *pick, const void *bytes, size_t size,
                           size_t max_bytes, ho_source *out, ho_err *err);

void ho_source_free(ho_source *source);

#ifdef __cplusplus
}
#endif
#endif
