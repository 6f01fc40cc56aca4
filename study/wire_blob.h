/* SPDX-License-Identifier: Apache-2.0
 * The binary part of messages: little-endian, each value described once for writing and reading.
 * Reading never passes the end and allocates only what the bytes at hand can fill. */
#ifndef HO_STUDY_WIRE_BLOB_H
#define HO_STUDY_WIRE_BLOB_H

#include "study/wire.h"

typedef struct ho_blob {
    bool writing;
    uint8_t *data;
    size_t size;  /* bytes written, or to be read */
    size_t room;  /* writing: allocated */
    size_t at;    /* reading */
    ho_status rc; /* the first failure; every later call does nothing */
    const char *what;
} ho_blob;

/* Reads or writes, as blob->writing says. */
void ho_blob_windows(ho_blob *blob, ho_scored_window *window, int32_t count);
void ho_blob_plan(ho_blob *blob, ho_fold_plan *plan);

/* Reading: HO_EPROTO unless everything was read and nothing is left. */
ho_status ho_blob_finish(ho_blob *blob, ho_err *err);

void ho_scored_window_clear(ho_scored_window *window);

#endif
