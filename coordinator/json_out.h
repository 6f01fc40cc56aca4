/* SPDX-License-Identifier: Apache-2.0
 * Writes JSON to a stream, value after value, without holding it in memory (cJSON is for messages).
 * key: NULL inside an array. NaN and infinity are written as null. "</" is written as "<\/", so
 * that the text may stand in an HTML script element. */
#ifndef HO_COORDINATOR_JSON_OUT_H
#define HO_COORDINATOR_JSON_OUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_json_out {
    FILE *file;
    bool need_comma;
} ho_json_out;

void ho_json_begin(ho_json_out *out, const char *key, char bracket); /* '{' or '[' */
void ho_json_end(ho_json_out *out, char bracket);                    /* '}' or ']' */
void ho_json_number(ho_json_out *out, const char *key, double value);
void ho_json_integer(ho_json_out *out, const char *key, int64_t value);
void ho_json_bool(ho_json_out *out, const char *key, bool value);
void ho_json_text(ho_json_out *out, const char *key, const char *value); /* NULL: null */
/* A value that is JSON already. NULL: null. */
void ho_json_raw(ho_json_out *out, const char *key, const char *json);

#ifdef __cplusplus
}
#endif
#endif
