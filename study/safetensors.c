/* SPDX-License-Identifier: Apache-2.0
 * See safetensors.h. Little-endian machines only, as everything this project runs on. */
#include "study/safetensors.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

enum { LENGTH_BYTES = 8, HEADER_MAX = 16 << 20 };

const char *ho_safetensors_meta(const ho_safetensors *st, const char *key)
{
    for (int i = 0; i < st->meta_count; i++) {
        if (strcmp(st->key[i], key) == 0) {
            return st->value[i];
        }
    }
    return NULL;
}

ho_status ho_safetensors_add_meta(ho_safetensors *st, const char *key, const char *value)
{
    int i = st->meta_count;
    if (i >= HO_SAFETENSORS_META_MAX) {
        return HO_ENOMEM;
    }
    st->key[i] = strdup(key);
    st->value[i] = strdup(value);
    if (!st->key[i] || !st->value[i]) {
        free(st->key[i]);
        free(st->value[i]);
        return HO_ENOMEM;
    }
    st->meta_count++;
    return HO_OK;
}

void ho_safetensors_free(ho_safetensors *st)
{
    for (int i = 0; i < st->meta_count; i++) {
        free(st->key[i]);
        free(st->value[i]);
    }
    for (int i = 0; i < st->tensors.count; i++) {
        free(st->tensors.tensor[i].data);
    }
    free(st->tensors.tensor);
    *st = (ho_safetensors){0};
}

static size_t tensor_bytes(const ho_tensor *t)
{
    size_t count = 1;
    for (int d = 0; d < t->ndim; d++) {
        count *= (size_t)t->shape[d];
    }
    return count * sizeof(float);
}

/* ---- writing --------------------------------------------------------------------------------- */

static cJSON *header_of(const ho_safetensors *st)
{
    cJSON *header = cJSON_CreateObject(), *meta = cJSON_CreateObject();
    size_t at = 0;
    bool good = header && meta && cJSON_AddItemToObject(header, "__metadata__", meta);
    if (!good) {
        cJSON_Delete(meta);
    }
    for (int i = 0; good && i < st->meta_count; i++) {
        good = cJSON_AddStringToObject(meta, st->key[i], st->value[i]) != NULL;
    }
    for (int i = 0; good && i < st->tensors.count; i++) {
        const ho_tensor *t = &st->tensors.tensor[i];
        cJSON *row = cJSON_AddObjectToObject(header, t->name);
        cJSON *shape = row && cJSON_AddStringToObject(row, "dtype", "F32")
                           ? cJSON_AddArrayToObject(row, "shape")
                           : NULL;
        cJSON *offsets = shape ? cJSON_AddArrayToObject(row, "data_offsets") : NULL;
        good = offsets != NULL;
        for (int d = 0; good && d < t->ndim; d++) {
            good = cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)t->shape[d]));
        }
        good = good && cJSON_AddItemToArray(offsets, cJSON_CreateNumber((double)at));
        at += tensor_bytes(t);
        good = good && cJSON_AddItemToArray(offsets, cJSON_CreateNumber((double)at));
    }
    if (!good) {
        cJSON_Delete(header);
        return NULL;
    }
    return header;
}

ho_status ho_safetensors_encode(const ho_safetensors *st, void **bytes, size_t *size, ho_err *err)
{
    *bytes = NULL;
    *size = 0;
    cJSON *header = header_of(st);
    char *text = header ? cJSON_PrintUnformatted(header) : NULL;
    cJSON_Delete(header);
    size_t length = text ? (strlen(text) + 7) / 8 * 8 : 0, total = LENGTH_BYTES + length;
    for (int i = 0; i < st->tensors.count; i++) {
        total += tensor_bytes(&st->tensors.tensor[i]);
    }
    uint8_t *out = text ? malloc(total) : NULL;
    if (!out) {
        free(text);
        return ho_err_set(err, HO_ENOMEM, "weights: out of memory");
    }
    uint64_t little = length;
    memcpy(out, &little, LENGTH_BYTES);
    memset(out + LENGTH_BYTES, ' ', length); /* the format pads the header with spaces */
    memcpy(out + LENGTH_BYTES, text, strlen(text));
    free(text);
    size_t at = LENGTH_BYTES + length;
    for (int i = 0; i < st->tensors.count; i++) {
        size_t n = tensor_bytes(&st->tensors.tensor[i]);
        memcpy(out + at, st->tensors.tensor[i].data, n);
        at += n;
    }
    *bytes = out;
    *size = total;
    return HO_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

static ho_status bad(const char *name, const char *what, ho_err *err)
{
    return ho_err_set(err, HO_EDATA, "%s: not a safetensors file of weights: %s", name, what);
}

/* A whole number in [0, limit]; -1 otherwise. */
static int64_t whole(const cJSON *item, double limit)
{
    double x = cJSON_IsNumber(item) ? item->valuedouble : -1.0;
    return x >= 0.0 && x <= limit && floor(x) == x ? (int64_t)x : -1;
}

static ho_status read_meta(const char *name, const cJSON *meta, ho_safetensors *out, ho_err *err)
{
    const cJSON *item;
    if (!cJSON_IsObject(meta)) {
        return bad(name, "__metadata__ is no object", err);
    }
    cJSON_ArrayForEach(item, meta)
    {
        if (!cJSON_IsString(item)) {
            return bad(name, "metadata that is no text", err);
        }
        if (ho_safetensors_add_meta(out, item->string, item->valuestring) != HO_OK) {
            return bad(name, "too much metadata", err);
        }
    }
    return HO_OK;
}

static ho_status read_tensor(const char *name, const cJSON *row, const uint8_t *data, size_t size,
                             ho_safetensors *out, ho_err *err)
{
    ho_tensor *t = &out->tensors.tensor[out->tensors.count];
    const cJSON *dtype = cJSON_GetObjectItemCaseSensitive(row, "dtype");
    const cJSON *shape = cJSON_GetObjectItemCaseSensitive(row, "shape");
    const cJSON *offsets = cJSON_GetObjectItemCaseSensitive(row, "data_offsets");
    int64_t begin = whole(cJSON_GetArrayItem(offsets, 0), (double)size);
    int64_t end = whole(cJSON_GetArrayItem(offsets, 1), (double)size);
    if (!cJSON_IsString(dtype) || strcmp(dtype->valuestring, "F32") != 0) {
        return bad(name, "a tensor that is not F32", err);
    }
    if (!cJSON_IsArray(shape) || cJSON_GetArraySize(shape) > 4 || !cJSON_IsArray(offsets) ||
        cJSON_GetArraySize(offsets) != 2 || begin < 0 || end < begin ||
        strlen(row->string) >= sizeof t->name) {
        return bad(name, "a tensor with a bad name, shape or place", err);
    }
    size_t bytes = sizeof(float);
    memset(t, 0, sizeof *t);
    t->ndim = cJSON_GetArraySize(shape);
    for (int d = 0; d < t->ndim; d++) {
        t->shape[d] = whole(cJSON_GetArrayItem(shape, d), (double)size);
        if (t->shape[d] <= 0 || bytes > size / (size_t)t->shape[d]) {
            return bad(name, "a shape that its bytes do not hold", err);
        }
        bytes *= (size_t)t->shape[d];
    }
    if (bytes != (size_t)(end - begin)) {
        return bad(name, "a shape that its bytes do not hold", err);
    }
    t->data = malloc(bytes);
    if (!t->data) {
        return ho_err_set(err, HO_ENOMEM, "%s: out of memory", name);
    }
    snprintf(t->name, sizeof t->name, "%s", row->string);
    memcpy(t->data, data + begin, bytes);
    out->tensors.count++;
    return HO_OK;
}

static ho_status read_header(const char *name, const cJSON *header, const uint8_t *data,
                             size_t size, ho_safetensors *out, ho_err *err)
{
    const cJSON *row;
    int count = cJSON_GetArraySize(header);
    ho_status rc = HO_OK;
    if (!cJSON_IsObject(header) || count > HO_SAFETENSORS_TENSORS_MAX) {
        return bad(name, "the header is no object, or has too many tensors", err);
    }
    out->tensors.tensor = calloc((size_t)count + 1, sizeof *out->tensors.tensor);
    if (!out->tensors.tensor) {
        return ho_err_set(err, HO_ENOMEM, "%s: out of memory", name);
    }
    cJSON_ArrayForEach(row, header)
    {
        if (rc == HO_OK) {
            rc = strcmp(row->string, "__metadata__") == 0
                     ? read_meta(name, row, out, err)
                     : read_tensor(name, row, data, size, out, err);
        }
    }
    return rc;
}

ho_status ho_safetensors_decode(const char *name, const void *bytes, size_t size,
                                ho_safetensors *out, ho_err *err)
{
    uint64_t length = 0;
    *out = (ho_safetensors){0};
    if (size < LENGTH_BYTES) {
        return bad(name, "it is too short", err);
    }
    memcpy(&length, bytes, LENGTH_BYTES);
    if (length > HEADER_MAX || length > size - LENGTH_BYTES) {
        return bad(name, "it is cut short, or something else", err);
    }
    const char *text = (const char *)bytes + LENGTH_BYTES;
    cJSON *header = cJSON_ParseWithLength(text, (size_t)length);
    if (!header) {
        return bad(name, "its header is not JSON", err);
    }
    ho_status rc = read_header(name, header, (const uint8_t *)text + length,
                               size - LENGTH_BYTES - (size_t)length, out, err);
    cJSON_Delete(header);
    if (rc != HO_OK) {
        ho_safetensors_free(out);
    }
    return rc;
}

ho_status ho_safetensors_read(const char *path, ho_safetensors *out, ho_err *err)
{
    FILE *file = fopen(path, "rb");
    char *bytes = NULL;
    long size = -1;
    *out = (ho_safetensors){0};
    if (file && fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) >= 0) {
        rewind(file);
        bytes = malloc((size_t)size + 1);
    }
    bool whole_file = bytes && fread(bytes, 1, (size_t)size, file) == (size_t)size;
    int code = errno;
    if (file) {
        (void)fclose(file);
    }
    ho_status rc = whole_file ? ho_safetensors_decode(path, bytes, (size_t)size, out, err)
                              : ho_err_set(err, HO_EIO, "%s: %s", path, strerror(code));
    free(bytes);
    return rc;
}
