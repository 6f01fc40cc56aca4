/* SPDX-License-Identifier: Apache-2.0
 * SHA-256 in hex, of bytes and of files. */
#ifndef HO_STUDY_SHA256_H
#define HO_STUDY_SHA256_H

#include <stddef.h>
#include <stdint.h>

#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HO_SHA256_TEXT = 65 }; /* 64 hex digits and the end */

void ho_sha256_bytes(const void *bytes, size_t size, char out[HO_SHA256_TEXT]);

/* size: bytes of the file; NULL when not wanted. HO_EIO: err names the path. */
ho_status ho_sha256_file(const char *path, char out[HO_SHA256_TEXT], uint64_t *size, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
