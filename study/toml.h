/* SPDX-License-Identifier: Apache-2.0
 * A TOML document as a tree of tagged values, each with its place in the file. The shim over toml++
 * (toml_shim.cpp) is the only C++ in the product; everything else sees this. */
#ifndef HO_STUDY_TOML_H
#define HO_STUDY_TOML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HO_TOML_BYTES_MAX = 512 << 10 }; /* a study file is a few KB; larger is a mistake */

typedef enum ho_toml_type {
    HO_TOML_INT,
    HO_TOML_FLOAT,
    HO_TOML_STRING,
    HO_TOML_BOOL,
    HO_TOML_DATE, /* date, time or both, in `text` as in RFC 3339 */
    HO_TOML_ARRAY,
    HO_TOML_TABLE,
} ho_toml_type;

/* A node. Children of a table stand in the order of the file. */
typedef struct ho_toml {
    ho_toml_type type;
    char *key; /* name in the parent table; NULL for items of an array and for the root */
    int64_t integer;
    double real;
    bool boolean;
    char *text; /* STRING (UTF-8, no NUL inside) and DATE */
    struct ho_toml *child;
    int count;
    int line, column;         /* of the value, from 1 */
    int key_line, key_column; /* of its key; of the value for items of an array */
} ho_toml;

/* Parses size bytes; name stands in messages. HO_ECONFIG: err is "name:line:column: what".
 * *out is NULL on failure. */
ho_status ho_toml_parse(const char *text, size_t size, const char *name, ho_toml **out,
                        ho_err *err);
void ho_toml_free(ho_toml **root);

/* The member of a table, or NULL. */
const ho_toml *ho_toml_get(const ho_toml *table, const char *key);

/* "a string", "an integer", ... for messages. */
const char *ho_toml_type_name(ho_toml_type type);

/* A scalar as it would stand in TOML, strings without quotes. Returns the length, as snprintf. */
int ho_toml_print(const ho_toml *node, char *out, size_t room);

#ifdef __cplusplus
}
#endif
#endif
