/* SPDX-License-Identifier: Apache-2.0
 * See wire_fields.h. */
#include "study/wire_fields.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "study/text.h"

enum { BODY_MAX = HO_WIRE_FRAME_MAX / 2 };

/* Members stand at byte offsets of tables made by offsetof. */
static const void *member(const void *of, size_t at)
{
    return (const char *)of + at;
}

static void *member_of(void *of, size_t at)
{
    return (char *)of + at;
}

static int32_t count_of(const ho_field *f, const void *of)
{
    int32_t count;
    memcpy(&count, member(of, f->count_at), sizeof count);
    return count;
}

static void set_count(const ho_field *f, void *of, int32_t count)
{
    memcpy(member_of(of, f->count_at), &count, sizeof count);
}

/* ---- writing -------------------------------------------------------------------------------- */

static cJSON *number_json(double x)
{
    char text[HO_TEXT_NUMBER];
    (void)ho_text_f64(x, text, sizeof text);
    return isfinite(x) ? cJSON_CreateRaw(text) : cJSON_CreateString(text);
}

static cJSON *i64_json(int64_t x)
{
    char text[HO_TEXT_NUMBER];
    (void)snprintf(text, sizeof text, "%" PRId64, x);
    return cJSON_CreateString(text);
}

static cJSON *doubles_json(const double *x, int32_t count)
{
    cJSON *list = cJSON_CreateArray();
    for (int32_t i = 0; list && i < count; i++) {
        if (!cJSON_AddItemToArray(list, number_json(x[i]))) {
            cJSON_Delete(list);
            return NULL;
        }
    }
    return list;
}

static ho_status list_json(const ho_field *f, const void *from, cJSON **out, ho_err *err)
{
    const char *item;
    ho_status rc = HO_OK;
    memcpy(&item, member(from, f->at), sizeof item);
    *out = cJSON_CreateArray();
    for (int32_t i = 0; *out && i < count_of(f, from) && rc == HO_OK; i++) {
        cJSON *json = f->type == HO_FIELD_LIST ? cJSON_CreateObject()
                                               : cJSON_CreateString(item + (size_t)i * 65);
        if (!json || !cJSON_AddItemToArray(*out, json)) {
            return ho_err_set(err, HO_ENOMEM, "out of memory");
        }
        if (f->type == HO_FIELD_LIST) {
            rc = ho_fields_write(f->items, item + (size_t)i * f->item_size, json, err);
        }
    }
    return rc;
}

/* Limits of the receiver are limits of the sender. */
static ho_status check_limits(const ho_field *f, const void *from, ho_err *err)
{
    int32_t i = 0;
    int64_t l = 0;
    bool counted = f->type == HO_FIELD_F64S || f->type == HO_FIELD_VALS ||
                   f->type == HO_FIELD_INTS || f->type == HO_FIELD_HASHES ||
                   f->type == HO_FIELD_LIST;
    if (counted && (count_of(f, from) < 0 || (size_t)count_of(f, from) > f->room)) {
        return ho_err_set(err, HO_EINVAL, "%s has %d items, at most %zu are possible", f->name,
                          (int)count_of(f, from), f->room);
    }
    if (f->type == HO_FIELD_INT) {
        memcpy(&i, member(from, f->at), sizeof i);
        l = i;
    } else if (f->type == HO_FIELD_I64) {
        memcpy(&l, member(from, f->at), sizeof l);
    } else {
        return HO_OK;
    }
    if ((double)l < f->low || (double)l > f->high) {
        return ho_err_set(err, HO_EINVAL, "%s is out of range", f->name);
    }
    return HO_OK;
}

static ho_status write_field(const ho_field *f, const void *from, cJSON *json, ho_err *err)
{
    const void *at = member(from, f->at);
    const char *text = NULL;
    const double *doubles = NULL;
    cJSON *item = NULL;
    ho_status rc = check_limits(f, from, err);
    if (rc != HO_OK) {
        return rc;
    }
    switch (f->type) {
    case HO_FIELD_BOOL:
        item = cJSON_CreateBool(*(const bool *)at);
        break;
    case HO_FIELD_INT: {
        int32_t x;
        memcpy(&x, at, sizeof x);
        item = cJSON_CreateNumber(x);
        break;
    }
    case HO_FIELD_I64: {
        int64_t x;
        memcpy(&x, at, sizeof x);
        item = i64_json(x);
        break;
    }
    case HO_FIELD_U64: {
        char digits[HO_TEXT_NUMBER];
        uint64_t x;
        memcpy(&x, at, sizeof x);
        (void)snprintf(digits, sizeof digits, "%" PRIu64, x);
        item = cJSON_CreateString(digits);
        break;
    }
    case HO_FIELD_F64: {
        double x;
        memcpy(&x, at, sizeof x);
        item = number_json(x);
        break;
    }
    case HO_FIELD_TEXT:
    case HO_FIELD_HASH:
        item = cJSON_CreateString((const char *)at);
        break;
    case HO_FIELD_BODY:
        memcpy(&text, at, sizeof text);
        if (text && strlen(text) > BODY_MAX) {
            return ho_err_set(err, HO_EINVAL, "%s is longer than half a frame", f->name);
        }
        item = text ? cJSON_CreateString(text) : cJSON_CreateNull();
        break;
    case HO_FIELD_F64S:
        memcpy(&doubles, at, sizeof doubles);
        item = doubles_json(doubles, count_of(f, from));
        break;
    case HO_FIELD_VALS:
        item = doubles_json((const double *)at, count_of(f, from));
        break;
    case HO_FIELD_INTS:
        if (count_of(f, from) == 0) {
            return HO_OK;
        }
        item = cJSON_CreateIntArray((const int32_t *)at, count_of(f, from));
        break;
    case HO_FIELD_I64S:
        item = cJSON_CreateArray();
        for (size_t i = 0; item && i < f->room; i++) {
            (void)cJSON_AddItemToArray(item, i64_json(((const int64_t *)at)[i]));
        }
        break;
    case HO_FIELD_HASHES:
    case HO_FIELD_LIST:
        rc = list_json(f, from, &item, err);
        break;
    case HO_FIELD_PART:
        item = cJSON_CreateObject();
        rc = item ? ho_fields_write(f->items, at, item, err) : HO_OK;
        break;
    }
    if (!item || !cJSON_AddItemToObject(json, f->name, item)) {
        cJSON_Delete(item);
        return rc != HO_OK ? rc : ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    return rc;
}

ho_status ho_fields_write(const ho_fields *fields, const void *from, cJSON *json, ho_err *err)
{
    ho_status rc = HO_OK;
    for (int i = 0; i < fields->count && rc == HO_OK; i++) {
        rc = write_field(&fields->field[i], from, json, err);
    }
    return rc;
}

/* ---- reading -------------------------------------------------------------------------------- */

static ho_status bad(const ho_field *f, const char *what, ho_err *err)
{
    return ho_err_set(err, HO_EPROTO, "%s %s", f->name, what);
}

static bool read_number(const cJSON *json, double *out)
{
    if (cJSON_IsNumber(json) && isfinite(json->valuedouble)) {
        *out = json->valuedouble;
        return true;
    }
    return cJSON_IsString(json) && ho_text_parse_f64(json->valuestring, out) && !isfinite(*out);
}

/* Length of the UTF-8 character at p (RFC 3629: no overlong form, no surrogate), 0: none. */
static size_t utf8_length(const unsigned char *p)
{
    unsigned lead = p[0];
    size_t n = lead < 0x80                   ? 1
               : lead >= 0xc2 && lead < 0xe0 ? 2
               : lead >= 0xe0 && lead < 0xf0 ? 3
               : lead >= 0xf0 && lead < 0xf5 ? 4
                                             : 0;
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    if ((lead == 0xe0 && p[1] < 0xa0) || (lead == 0xed && p[1] > 0x9f) ||
        (lead == 0xf0 && p[1] < 0x90) || (lead == 0xf4 && p[1] > 0x8f)) {
        return 0;
    }
    return n;
}

static bool valid_utf8(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    while (*p) {
        size_t n = utf8_length(p);
        if (n == 0) {
            return false;
        }
        p += n;
    }
    return true;
}

static ho_status read_text(const ho_field *f, const cJSON *json, char *to, ho_err *err)
{
    if (!cJSON_IsString(json) || strlen(json->valuestring) >= f->room) {
        return bad(f, "is no text, or too long", err);
    }
    if (!valid_utf8(json->valuestring)) {
        return bad(f, "is not UTF-8", err);
    }
    (void)snprintf(to, f->room, "%s", json->valuestring);
    for (char *p = to; *p; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7f) {
            *p = '?'; /* it may be printed on a terminal */
        }
    }
    return HO_OK;
}

static ho_status read_hash(const ho_field *f, const cJSON *json, char *to, ho_err *err)
{
    const char *text = cJSON_IsString(json) ? json->valuestring : "x";
    size_t n = strlen(text);
    if ((n != 0 && n != 64) || strspn(text, "0123456789abcdef") != n) {
        return bad(f, "is no SHA-256", err);
    }
    memcpy(to, text, n + 1);
    return HO_OK;
}

static ho_status read_doubles(const ho_field *f, const cJSON *json, double *to, ho_err *err)
{
    const cJSON *child = NULL;
    int32_t i = 0;
    cJSON_ArrayForEach(child, json)
    {
        if (!read_number(child, &to[i++])) {
            return bad(f, "is no list of numbers", err);
        }
    }
    return HO_OK;
}

/* Checks the length of a list and allocates it. */
static ho_status open_list(const ho_field *f, const cJSON *json, void *to, size_t item_size,
                           void **list, ho_err *err)
{
    int n = cJSON_IsArray(json) ? cJSON_GetArraySize(json) : -1;
    *list = NULL;
    if (n < 0 || (size_t)n > f->room) {
        return bad(f, "is no list, or too long", err);
    }
    *list = calloc((size_t)n + 1, item_size);
    if (!*list) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    memcpy(member_of(to, f->at), list, sizeof *list);
    set_count(f, to, n);
    return HO_OK;
}

static ho_status read_list(const ho_field *f, const cJSON *json, void *to, ho_err *err)
{
    size_t item_size = f->type == HO_FIELD_LIST   ? f->item_size
                       : f->type == HO_FIELD_F64S ? sizeof(double)
                                                  : 65;
    const cJSON *child = NULL;
    void *list = NULL;
    char *item = NULL;
    ho_status rc = open_list(f, json, to, item_size, &list, err);
    if (rc != HO_OK) {
        return rc;
    }
    if (f->type == HO_FIELD_F64S) {
        return read_doubles(f, json, (double *)list, err);
    }
    item = (char *)list;
    cJSON_ArrayForEach(child, json)
    {
        rc = f->type == HO_FIELD_LIST ? ho_fields_read(f->items, child, item, err)
                                      : read_hash(f, child, item, err);
        if (rc != HO_OK) {
            return rc;
        }
        item += item_size;
    }
    return HO_OK;
}

static ho_status read_integer(const ho_field *f, const cJSON *json, void *at, ho_err *err)
{
    int64_t wide = 0;
    double x = cJSON_IsNumber(json) ? json->valuedouble : NAN;
    if (f->type == HO_FIELD_INT) {
        if (!(x >= f->low && x <= f->high) || x != floor(x)) {
            return bad(f, "is no whole number, or out of range", err);
        }
        int32_t narrow = (int32_t)x;
        memcpy(at, &narrow, sizeof narrow);
        return HO_OK;
    }
    if (!cJSON_IsString(json) || !ho_text_parse_i64(json->valuestring, &wide) ||
        (double)wide < f->low || (double)wide > f->high) {
        return bad(f, "is no 64-bit number as a text, or out of range", err);
    }
    memcpy(at, &wide, sizeof wide);
    return HO_OK;
}

static ho_status read_i64s(const ho_field *f, const cJSON *json, int64_t *to, ho_err *err)
{
    const cJSON *child = NULL;
    if (!cJSON_IsArray(json) || (size_t)cJSON_GetArraySize(json) != f->room) {
        return bad(f, "has another number of items", err);
    }
    cJSON_ArrayForEach(child, json)
    {
        if (!cJSON_IsString(child) || !ho_text_parse_i64(child->valuestring, to++)) {
            return bad(f, "is no list of 64-bit numbers as texts", err);
        }
    }
    return HO_OK;
}

static ho_status read_ints(const ho_field *f, const cJSON *json, void *to, ho_err *err)
{
    int n = cJSON_IsArray(json) ? cJSON_GetArraySize(json) : -1, i = 0;
    int32_t *value = (int32_t *)member_of(to, f->at);
    const cJSON *child = NULL;

    if (n < 0 || (size_t)n > f->room) {
        return bad(f, "is no list, or too long", err);
    }
    cJSON_ArrayForEach(child, json)
    {
        double x = cJSON_IsNumber(child) ? child->valuedouble : NAN;
        if (!(x >= f->low && x <= f->high) || x != floor(x)) {
            return bad(f, "is no list of whole numbers, or out of range", err);
        }
        value[i++] = (int32_t)x;
    }
    set_count(f, to, n);
    return HO_OK;
}

static ho_status read_body(const ho_field *f, const cJSON *json, char **to, ho_err *err)
{
    if (cJSON_IsNull(json)) {
        return HO_OK;
    }
    if (!cJSON_IsString(json) || strlen(json->valuestring) > BODY_MAX ||
        !valid_utf8(json->valuestring)) {
        return bad(f, "is no text, or too long", err);
    }
    *to = ho_text_copy(json->valuestring);
    return *to ? HO_OK : ho_err_set(err, HO_ENOMEM, "out of memory");
}

static ho_status read_field(const ho_field *f, const cJSON *json, void *to, ho_err *err)
{
    void *at = member_of(to, f->at);
    double x = 0;
    uint64_t u = 0;
    switch (f->type) {
    case HO_FIELD_BOOL:
        if (!cJSON_IsBool(json)) {
            return bad(f, "is neither true nor false", err);
        }
        *(bool *)at = cJSON_IsTrue(json);
        return HO_OK;
    case HO_FIELD_INT:
    case HO_FIELD_I64:
        return read_integer(f, json, at, err);
    case HO_FIELD_U64:
        if (!cJSON_IsString(json) || !ho_text_parse_u64(json->valuestring, &u)) {
            return bad(f, "is no 64-bit number as a text", err);
        }
        memcpy(at, &u, sizeof u);
        return HO_OK;
    case HO_FIELD_F64:
        if (!read_number(json, &x)) {
            return bad(f, "is no number", err);
        }
        memcpy(at, &x, sizeof x);
        return HO_OK;
    case HO_FIELD_TEXT:
        return read_text(f, json, (char *)at, err);
    case HO_FIELD_HASH:
        return read_hash(f, json, (char *)at, err);
    case HO_FIELD_BODY:
        return read_body(f, json, (char **)at, err);
    case HO_FIELD_VALS:
        if (!cJSON_IsArray(json) || (size_t)cJSON_GetArraySize(json) > f->room) {
            return bad(f, "is no list, or too long", err);
        }
        set_count(f, to, cJSON_GetArraySize(json));
        return read_doubles(f, json, (double *)at, err);
    case HO_FIELD_INTS:
        return read_ints(f, json, to, err);
    case HO_FIELD_I64S:
        return read_i64s(f, json, (int64_t *)at, err);
    case HO_FIELD_PART:
        return ho_fields_read(f->items, json, at, err);
    default:
        return read_list(f, json, to, err);
    }
}

ho_status ho_fields_read(const ho_fields *fields, const cJSON *json, void *to, ho_err *err)
{
    if (!cJSON_IsObject(json)) {
        return ho_err_set(err, HO_EPROTO, "an object is expected");
    }
    for (int i = 0; i < fields->count; i++) {
        const ho_field *f = &fields->field[i];
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, f->name);
        ho_status rc = item                       ? read_field(f, item, to, err)
                       : f->type == HO_FIELD_INTS ? HO_OK
                                                  : bad(f, "is missing", err);
        if (rc != HO_OK) {
            return rc;
        }
    }
    return HO_OK;
}

void ho_fields_free(const ho_fields *fields, void *of)
{
    for (int i = 0; i < fields->count; i++) {
        const ho_field *f = &fields->field[i];
        char *owned = NULL;
        if (f->type == HO_FIELD_PART) {
            ho_fields_free(f->items, member_of(of, f->at));
        }
        if (f->type != HO_FIELD_BODY && f->type != HO_FIELD_F64S && f->type != HO_FIELD_HASHES &&
            f->type != HO_FIELD_LIST) {
            continue;
        }
        memcpy(&owned, member(of, f->at), sizeof owned);
        for (int32_t k = 0; f->type == HO_FIELD_LIST && owned && k < count_of(f, of); k++) {
            ho_fields_free(f->items, owned + (size_t)k * f->item_size);
        }
        free(owned);
    }
}
