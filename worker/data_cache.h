/* SPDX-License-Identifier: Apache-2.0
 * Data files by content. A file is used where the study says it lies when its SHA-256 matches;
 * else it lives in a cache folder under its hash, and is put together there from chunks that come
 * over the wire, in order, so that a broken transfer goes on where it stopped.
 *
 * In the folder: HASH the whole file, HASH.part a transfer under way. The least recently used
 * whole files go when the folder grows above its limit. Several workers may share the folder: a
 * file appears by rename, and a .part is locked by the worker that writes it. */
#ifndef HO_WORKER_DATA_CACHE_H
#define HO_WORKER_DATA_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HO_CACHE_PATH = 4096, HO_SHA256_HEX = 65 };

typedef struct ho_data_cache ho_data_cache;

/* folder is created (0700) when absent. limit_bytes: of whole files; 0 = no limit. HO_EIO. */
ho_status ho_data_cache_open(ho_data_cache **out, const char *folder, uint64_t limit_bytes,
                             ho_err *err);
/* A transfer under way stays on disk for later. */
void ho_data_cache_close(ho_data_cache **cache);

/* Hex SHA-256 of a file's bytes. HO_EIO: err names the path. */
ho_status ho_data_cache_hash(const char *path, char out[HO_SHA256_HEX], ho_err *err);

/* Where the file with this hash can be read: at `path` (may be NULL) when that is a readable file
 * with the hash, else in the cache. HO_ENOTFOUND: nowhere. HO_EINVAL: not a hash. */
ho_status ho_data_cache_find(ho_data_cache *cache, const char *sha256, const char *path,
                             char out[HO_CACHE_PATH], ho_err *err);

/* Begins or goes on with a transfer; *offset is where the next chunk starts. One transfer at a
 * time. HO_ELOCKED: another worker fetches the same file; look again later. */
ho_status ho_data_cache_begin(ho_data_cache *cache, const char *sha256, uint64_t size,
                              uint64_t *offset, ho_err *err);

/* Appends a chunk. A chunk that starts elsewhere, or is of another file, is left out with
 * HO_EAGAIN (a repeated or late message). *complete: the file is there and its hash matches.
 * HO_EDATA: it does not match, the transfer was thrown away. HO_EIO: disk full and the like; what
 * was written is kept for another begin. */
ho_status ho_data_cache_write(ho_data_cache *cache, const char *sha256, uint64_t offset,
                              const void *data, size_t size, bool *complete, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
