/* SPDX-License-Identifier: Apache-2.0
 * See json_out.h. */
#include "coordinator/json_out.h"

#include <inttypes.h>
#include <math.h>

#include "study/text.h"

static void put_string(FILE *file, const char *text)
{
    fputc('"', file);
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p == '"' || *p == '\\') {
            fprintf(file, "\\%c", *p);
        } else if (*p < 0x20) {
            fprintf(file, "\\u%04x", *p);
        } else if (*p == '/' && p > (const unsigned char *)text && p[-1] == '<') {
            fputs("\\/", file);
        } else {
            fputc(*p, file);
        }
    }
    fputc('"', file);
}

static void before(ho_json_out *out, const char *key)
{
    if (out->need_comma) {
        fputc(',', out->file);
    }
    out->need_comma = true;
    if (key) {
        put_string(out->file, key);
        fputc(':', out->file);
    }
}

void ho_json_begin(ho_json_out *out, const char *key, char bracket)
{
    before(out, key);
    fputc(bracket, out->file);
    out->need_comma = false;
}

void ho_json_end(ho_json_out *out, char bracket)
{
    fputc(bracket, out->file);
    out->need_comma = true;
}

void ho_json_number(ho_json_out *out, const char *key, double value)
{
    before(out, key);
    if (!isfinite(value)) {
        fputs("null", out->file);
        return;
    }
    char text[HO_TEXT_NUMBER];
    (void)ho_text_number(value, text, sizeof text);
    fputs(text, out->file);
}

void ho_json_integer(ho_json_out *out, const char *key, int64_t value)
{
    before(out, key);
    fprintf(out->file, "%" PRId64, value);
}

void ho_json_bool(ho_json_out *out, const char *key, bool value)
{
    before(out, key);
    fputs(value ? "true" : "false", out->file);
}

void ho_json_text(ho_json_out *out, const char *key, const char *value)
{
    before(out, key);
    if (value) {
        put_string(out->file, value);
    } else {
        fputs("null", out->file);
    }
}

void ho_json_raw(ho_json_out *out, const char *key, const char *json)
{
    before(out, key);
    fputs(json ? json : "null", out->file);
}
