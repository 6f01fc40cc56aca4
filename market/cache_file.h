/* SPDX-License-Identifier: Apache-2.0
 * What the caches of features and of bars share: folders, whole writes, checksums. Private to
 * market/. */
#ifndef HO_MARKET_CACHE_FILE_H
#define HO_MARKET_CACHE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Fletcher sums in eight lanes of 64 bits: at memory speed, and any change of one word or order
 * of words shows. Not against forgery; the key is. */
uint64_t ho_cache_checksum(const void *bytes, size_t size);

/* mkdir -p; true if the folder is there. */
bool ho_cache_make_folder(const char *path);

/* All bytes, or false with errno. */
bool ho_cache_write(int fd, const void *bytes, size_t size);

#ifdef __cplusplus
}
#endif
#endif
