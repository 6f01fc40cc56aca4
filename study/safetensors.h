/* SPDX-License-Identifier: Apache-2.0
 * Weights on disk: the safetensors container (8 bytes of header length, a JSON header, the data),
 * float32 tensors and text metadata. Any other reader of the format reads them, too. */
#ifndef HO_STUDY_SAFETENSORS_H
#define HO_STUDY_SAFETENSORS_H

#include <stddef.h>

#include "kernels/backend.h"
#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HO_SAFETENSORS_META_MAX = 64, HO_SAFETENSORS_TENSORS_MAX = 1024 };

typedef struct ho_safetensors {
    int meta_count;
    char *key[HO_SAFETENSORS_META_MAX]; /* owned, as the values */
    char *value[HO_SAFETENSORS_META_MAX];
    ho_tensors tensors; /* owned */
} ho_safetensors;

/* NULL when the file has no such metadata. */
const char *ho_safetensors_meta(const ho_safetensors *st, const char *key);

/* Copies both texts. HO_ENOMEM: also when there are too many. */
ho_status ho_safetensors_add_meta(ho_safetensors *st, const char *key, const char *value);

/* The file's bytes: malloc'ed, the caller's. The same content gives the same bytes. HO_ENOMEM. */
ho_status ho_safetensors_encode(const ho_safetensors *st, void **bytes, size_t *size, ho_err *err);

/* Any bytes may come. HO_EDATA: not such a file, cut short, or tensors other than float32 of at
 * most 4 dimensions; `name` stands in err. *out is empty on failure. */
ho_status ho_safetensors_decode(const char *name, const void *bytes, size_t size,
                                ho_safetensors *out, ho_err *err);

/* HO_EIO, or as decode. */
ho_status ho_safetensors_read(const char *path, ho_safetensors *out, ho_err *err);

void ho_safetensors_free(ho_safetensors *st);

#ifdef __cplusplus
}
#endif
#endif
