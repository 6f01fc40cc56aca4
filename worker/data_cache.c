/* SPDX-License-Identifier: Apache-2.0
 * The cache folder of data files; see data_cache.h. */
#include "worker/data_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "study/log.h"

/* 1. part_fd < 0: no transfer.  2. else it is locked and `written` bytes of `size` are in it. */
struct ho_data_cache {
    char folder[HO_CACHE_PATH - 128];
    uint64_t limit;
    int part_fd;
    char part_sha256[HO_SHA256_HEX];
    uint64_t written, size;
};

static bool is_hash(const char *sha256)
{
    return sha256 && strlen(sha256) == HO_SHA256_HEX - 1 &&
           strspn(sha256, "0123456789abcdef") == HO_SHA256_HEX - 1;
}

/* mkdir -p, the last folder for the owner only. */
static ho_status make_folder(const char *folder, ho_err *err)
{
    char path[HO_CACHE_PATH];
    snprintf(path, sizeof path, "%s", folder);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0755) != 0 && errno != EEXIST) {
            return ho_err_set(err, HO_EIO, "%s: %s", path, strerror(errno));
        }
        *slash = '/';
    }
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        return ho_err_set(err, HO_EIO, "%s: %s", path, strerror(errno));
    }
    return HO_OK;
}

ho_status ho_data_cache_open(ho_data_cache **out, const char *folder, uint64_t limit_bytes,
                             ho_err *err)
{
    *out = NULL;
    ho_data_cache *cache = calloc(1, sizeof *cache);
    if (!cache) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for the data cache");
    }
    cache->part_fd = -1;
    cache->limit = limit_bytes;
    ho_status rc = HO_OK;
    if (snprintf(cache->folder, sizeof cache->folder, "%s", folder) >= (int)sizeof cache->folder) {
        rc = ho_err_set(err, HO_EIO, "the path of the cache folder is too long");
    } else {
        rc = make_folder(cache->folder, err);
    }
    if (rc != HO_OK) {
        ho_data_cache_close(&cache);
        return rc;
    }
    *out = cache;
    return HO_OK;
}

static void end_transfer(ho_data_cache *cache)
{
    if (cache->part_fd >= 0) {
        close(cache->part_fd); /* drops the lock */
        cache->part_fd = -1;
    }
}

void ho_data_cache_close(ho_data_cache **cache)
{
    if (cache && *cache) {
        end_transfer(*cache);
        free(*cache);
        *cache = NULL;
    }
}

static ho_status hash_fd(int fd, const char *path, char out[HO_SHA256_HEX], ho_err *err)
{
    enum { BLOCK = 1 << 16 };
    unsigned char block[BLOCK], digest[crypto_hash_sha256_BYTES];
    crypto_hash_sha256_state state;
    crypto_hash_sha256_init(&state);
    for (off_t at = 0;;) {
        ssize_t n = pread(fd, block, sizeof block, at);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return ho_err_set(err, HO_EIO, "%s: %s", path, strerror(errno));
        }
        if (n == 0) {
            break;
        }
        crypto_hash_sha256_update(&state, block, (unsigned long long)n);
        at += n;
    }
    crypto_hash_sha256_final(&state, digest);
    sodium_bin2hex(out, HO_SHA256_HEX, digest, sizeof digest);
    return HO_OK;
}

ho_status ho_data_cache_hash(const char *path, char out[HO_SHA256_HEX], ho_err *err)
{
    out[0] = '\0';
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return ho_err_set(err, HO_EIO, "%s: %s", path, strerror(errno));
    }
    ho_status rc = hash_fd(fd, path, out, err);
    close(fd);
    return rc;
}

ho_status ho_data_cache_find(ho_data_cache *cache, const char *sha256, const char *path,
                             char out[HO_CACHE_PATH], ho_err *err)
{
    char found[HO_SHA256_HEX];
    ho_err ignored = {0};
    out[0] = '\0';
    if (!is_hash(sha256)) {
        return ho_err_set(err, HO_EINVAL, "not a SHA-256: %.80s", sha256 ? sha256 : "(none)");
    }
    if (path && strlen(path) < HO_CACHE_PATH &&
        ho_data_cache_hash(path, found, &ignored) == HO_OK) {
        if (strcmp(found, sha256) == 0) {
            snprintf(out, HO_CACHE_PATH, "%s", path);
            return HO_OK;
        }
        ho_log(HO_LOG_WARN, "data", "%s is another file here, its hash differs", path);
    }
    snprintf(out, HO_CACHE_PATH, "%s/%s", cache->folder, sha256);
    if (ho_data_cache_hash(out, found, &ignored) == HO_OK) {
        if (strcmp(found, sha256) == 0) {
            utimensat(AT_FDCWD, out, NULL, 0); /* used now */
            return HO_OK;
        }
        ho_log(HO_LOG_WARN, "data", "damaged file in the cache removed: %s", out);
        unlink(out);
    }
    out[0] = '\0';
    return ho_err_set(err, HO_ENOTFOUND, "no file with the hash %s here", sha256);
}

static void part_path(const ho_data_cache *cache, const char *sha256, char out[HO_CACHE_PATH])
{
    snprintf(out, HO_CACHE_PATH, "%s/%s.part", cache->folder, sha256);
}

ho_status ho_data_cache_begin(ho_data_cache *cache, const char *sha256, uint64_t size,
                              uint64_t *offset, ho_err *err)
{
    char path[HO_CACHE_PATH];
    struct stat st;
    *offset = 0;
    if (!is_hash(sha256)) {
        return ho_err_set(err, HO_EINVAL, "not a SHA-256: %.80s", sha256 ? sha256 : "(none)");
    }
    end_transfer(cache);
    part_path(cache, sha256, path);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        return ho_err_set(err, HO_EIO, "%s: %s", path, strerror(errno));
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        close(fd);
        return ho_err_set(err, HO_ELOCKED, "another worker fetches %s", sha256);
    }
    if (fstat(fd, &st) != 0 || (uint64_t)st.st_size > size) {
        st.st_size = 0; /* a longer one is of another make: start over */
        if (ftruncate(fd, 0) != 0) {
            close(fd);
            return ho_err_set(err, HO_EIO, "%s: %s", path, strerror(errno));
        }
    }
    cache->part_fd = fd;
    snprintf(cache->part_sha256, sizeof cache->part_sha256, "%s", sha256);
    cache->written = (uint64_t)st.st_size;
    cache->size = size;
    *offset = cache->written;
    return HO_OK;
}

/* ---- eviction ------------------------------------------------------------------------------ */

struct cached {
    char name[HO_SHA256_HEX];
    uint64_t size;
    struct timespec used;
};

static int by_use(const void *a, const void *b)
{
    const struct cached *x = a, *y = b;
    if (x->used.tv_sec != y->used.tv_sec) {
        return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    }
    return (x->used.tv_nsec > y->used.tv_nsec) - (x->used.tv_nsec < y->used.tv_nsec);
}

/* Removes the least recently used whole files, but not `keep`, until the limit holds. */
static void evict(const ho_data_cache *cache, const char *keep)
{
    enum { ROOM = 4096 };
    struct cached *file = cache->limit > 0 ? calloc(ROOM, sizeof *file) : NULL;
    DIR *dir = file ? opendir(cache->folder) : NULL;
    if (!dir) {
        free(file);
        return;
    }
    size_t n = 0;
    uint64_t total = 0;
    for (struct dirent *entry = readdir(dir); entry && n < ROOM; entry = readdir(dir)) {
        struct stat st;
        if (!is_hash(entry->d_name) || fstatat(dirfd(dir), entry->d_name, &st, 0) != 0) {
            continue;
        }
        snprintf(file[n].name, sizeof file[n].name, "%.64s", entry->d_name);
        file[n].size = (uint64_t)st.st_size;
        file[n].used = st.st_mtim;
        total += file[n++].size;
    }
    qsort(file, n, sizeof *file, by_use);
    for (size_t i = 0; i < n && total > cache->limit; i++) {
        if (strcmp(file[i].name, keep) != 0 && unlinkat(dirfd(dir), file[i].name, 0) == 0) {
            ho_log(HO_LOG_INFO, "data", "removed from the cache: %s", file[i].name);
            total -= file[i].size;
        }
    }
    closedir(dir);
    free(file);
}

static ho_status complete_transfer(ho_data_cache *cache, ho_err *err)
{
    char part[HO_CACHE_PATH], whole[HO_CACHE_PATH], found[HO_SHA256_HEX];
    part_path(cache, cache->part_sha256, part);
    snprintf(whole, sizeof whole, "%s/%s", cache->folder, cache->part_sha256);
    ho_status rc = hash_fd(cache->part_fd, part, found, err);
    if (rc == HO_OK && strcmp(found, cache->part_sha256) != 0) {
        rc = ho_err_set(err, HO_EDATA, "the file that came has the hash %s, not %s", found,
                        cache->part_sha256);
        unlink(part);
    } else if (rc == HO_OK && (fsync(cache->part_fd) != 0 || rename(part, whole) != 0)) {
        rc = ho_err_set(err, HO_EIO, "%s: %s", whole, strerror(errno));
    }
    end_transfer(cache);
    if (rc == HO_OK) {
        evict(cache, cache->part_sha256);
    }
    return rc;
}

ho_status ho_data_cache_write(ho_data_cache *cache, const char *sha256, uint64_t offset,
                              const void *data, size_t size, bool *complete, ho_err *err)
{
    *complete = false;
    if (cache->part_fd < 0 || strcmp(sha256, cache->part_sha256) != 0 || offset != cache->written ||
        size > cache->size - cache->written) {
        return ho_err_set(err, HO_EAGAIN, "a chunk at %llu that is not due",
                          (unsigned long long)offset);
    }
    for (size_t done = 0; done < size;) {
        ssize_t n =
            pwrite(cache->part_fd, (const char *)data + done, size - done, (off_t)(cache->written));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            ho_status rc = ho_err_set(err, HO_EIO, "%s/%s.part: %s", cache->folder, sha256,
                                      strerror(n < 0 ? errno : ENOSPC));
            end_transfer(cache);
            return rc;
        }
        done += (size_t)n;
        cache->written += (uint64_t)n;
    }
    if (cache->written < cache->size) {
        return HO_OK;
    }
    ho_status rc = complete_transfer(cache, err);
    *complete = rc == HO_OK;
    return rc;
}
