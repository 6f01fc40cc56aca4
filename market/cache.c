/* SPDX-License-Identifier: Apache-2.0
 * See cache.h. File: a header of one page, the names [F], the splits [T] or nothing, zeros up to
 * the next page, the tensor. Numbers are those of the machine; the magic word tells another byte
 * order. */
#include "market/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <sodium.h>

#include "market/cache_file.h"
#include "study/log.h"

enum { PAGE = 4096, PATH_SIZE = 4096, DATA_DIGITS = 16, FORMAT = 2 };

static const uint64_t MAGIC = 0x31544145464f48ULL; /* "HOFEAT1" */

typedef struct header {
    uint64_t magic, format, T, F, warmup, has_split, tensor_offset;
    uint64_t side_sum, tensor_sum; /* of names and splits; of the tensor */
    char key[72];
    uint64_t header_sum; /* of all before it */
} header;

static uint64_t header_sum(const header *h)
{
    return ho_cache_checksum(h, offsetof(header, header_sum));
}

/* ---- key ------------------------------------------------------------------------------------- */

static void put(crypto_hash_sha256_state *state, const void *bytes, size_t size)
{
    (void)crypto_hash_sha256_update(state, bytes, size);
}

/* The columns and windows come from what ho_features_compute would use, so that "all" and the
 * whole list by name are one key. */
static ho_status make_key(const ho_bars *bars, const ho_feature_options *options, char key[65],
                          ho_err *err)
{
    unsigned char hash[crypto_hash_sha256_BYTES];
    crypto_hash_sha256_state state;
    if (sodium_init() < 0) {
        return ho_err_set(err, HO_EIO, "libsodium does not start");
    }
    int64_t number[] = {
        FORMAT,           HO_FEATURES_VERSION,  bars->count,          bars->interval_ns,
        bars->has_volume, options->extra_delay, options->long_window, bars->extra_count};
    size_t T = (size_t)bars->count;
    uint64_t sum[] = {
        ho_cache_checksum(bars->open_ns, T * sizeof *bars->open_ns),
        ho_cache_checksum(bars->ohlcv, T * HO_BAR_COLUMNS * sizeof *bars->ohlcv),
        ho_cache_checksum(bars->session, T * sizeof *bars->session),
        bars->roll_jump ? ho_cache_checksum(bars->roll_jump, T * sizeof *bars->roll_jump) : 0,
        bars->split ? ho_cache_checksum(bars->split, T) : 0,
        bars->extra
            ? ho_cache_checksum(bars->extra, T * (size_t)bars->extra_count * sizeof *bars->extra)
            : 0};
    (void)crypto_hash_sha256_init(&state);
    put(&state, number, sizeof number);
    put(&state, sum, sizeof sum);
    put(&state, bars->sha256, sizeof bars->sha256);
    put(&state, bars->settings, sizeof bars->settings);
    put(&state, bars->timezone, strlen(bars->timezone) + 1);
    int count = options->use_count > 0 ? options->use_count : HO_MARKET_FEATURES;
    for (int i = 0; i < count; ++i) {
        const char *name = options->use_count > 0 ? options->use[i] : ho_feature_table[i].name;
        put(&state, name, strlen(name) + 1);
    }
    for (int e = 0; e < bars->extra_count; ++e) {
        put(&state, bars->extra_name[e], strlen(bars->extra_name[e]) + 1);
    }
    (void)crypto_hash_sha256_final(&state, hash);
    (void)sodium_bin2hex(key, 65, hash, sizeof hash);
    return HO_OK;
}

/* ---- places ---------------------------------------------------------------------------------- */

bool ho_cache_folder(char *out, size_t size)
{
    const char *own = getenv("HYPEROPT_FEATURE_CACHE"), *base = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    int n = -1;
    if (own && own[0]) {
        n = strcmp(own, "off") == 0 ? -1 : snprintf(out, size, "%s", own);
    } else if (base && base[0] == '/') {
        n = snprintf(out, size, "%s/hyperopt/features", base);
    } else if (home && home[0] == '/') {
        n = snprintf(out, size, "%s/.cache/hyperopt/features", home);
    }
    if (n <= 0 || (size_t)n >= size) {
        out[0] = '\0';
        return false;
    }
    return true;
}

static bool file_path(const char *folder, const ho_bars *bars, const char *key, char *out)
{
    int n = snprintf(out, PATH_SIZE, "%s/%.*s-%s.features", folder, DATA_DIGITS, bars->sha256, key);
    return n > 0 && n < PATH_SIZE;
}

/* A miss: names a file of the same data under another key, so that a difference of settings
 * between the machine that filled the cache and this one can be seen. */
static void log_miss(const char *folder, const ho_bars *bars, const char *key)
{
    char other[65] = "none";
    DIR *dir = opendir(folder);
    struct dirent *entry = NULL;
    while (dir && (entry = readdir(dir))) {
        const char *name = entry->d_name;
        if (strncmp(name, bars->sha256, DATA_DIGITS) == 0 && name[DATA_DIGITS] == '-' &&
            strlen(name) == DATA_DIGITS + 1 + 64 + strlen(".features")) {
            (void)snprintf(other, sizeof other, "%.64s", name + DATA_DIGITS + 1);
            break;
        }
    }
    if (dir) {
        (void)closedir(dir);
    }
    ho_log(HO_LOG_INFO, "features", "cache miss key=%s other_key_of_this_data=%s folder=%s", key,
           other, folder);
}

/* ---- reading --------------------------------------------------------------------------------- */

static size_t side_size(const header *h)
{
    return (size_t)h->F * HO_FEATURE_NAME + (h->has_split ? (size_t)h->T : 0);
}

/* Everything of the header that could lead outside the file. */
static const char *header_fault(const header *h, const char *key, const ho_bars *bars, size_t size)
{
    if (h->magic != MAGIC || h->format != FORMAT || h->header_sum != header_sum(h)) {
        return "bad header";
    }
    if (strncmp(h->key, key, sizeof h->key) != 0) {
        return "another key inside";
    }
    if (h->T != (uint64_t)bars->count || h->F < 1 || h->F > 64 || h->warmup >= h->T ||
        h->has_split > 1) {
        return "another shape";
    }
    size_t tensor = (size_t)h->T * (size_t)h->F * sizeof(float);
    if (h->tensor_offset % PAGE != 0 || h->tensor_offset < PAGE + side_size(h) ||
        h->tensor_offset > size || size - h->tensor_offset != tensor) {
        return "another size";
    }
    return NULL;
}

/* False: not there, or damaged (logged). */
static bool read_file(const char *path, const char *key, const ho_bars *bars, ho_features *out)
{
    struct stat status;
    const char *fault = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    if (fstat(fd, &status) != 0 || status.st_size < PAGE) {
        fault = "too short";
        goto out;
    }
    out->map_bytes = (size_t)status.st_size;
    out->map = mmap(NULL, out->map_bytes, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    if (out->map == MAP_FAILED) {
        out->map = NULL;
        fault = strerror(errno);
        goto out;
    }
    const header *h = out->map;
    const char *side = (const char *)out->map + PAGE;
    if ((fault = header_fault(h, key, bars, out->map_bytes))) {
        goto out;
    }
    size_t T = (size_t)h->T, F = (size_t)h->F;
    out->T = (int64_t)T;
    out->F = (int)F;
    out->warmup = (int64_t)h->warmup;
    out->values = (float *)((char *)out->map + h->tensor_offset);
    if (ho_cache_checksum(side, side_size(h)) != h->side_sum ||
        ho_cache_checksum(out->values, T * F * sizeof(float)) != h->tensor_sum) {
        fault = "bad checksum";
        goto out;
    }
    if (!(out->name = malloc(F * sizeof *out->name)) ||
        (h->has_split && !(out->split = malloc(T)))) {
        fault = "no memory";
        goto out;
    }
    memcpy(out->name, side, F * sizeof *out->name);
    if (h->has_split) {
        memcpy(out->split, side + F * sizeof *out->name, T);
    }
out:
    (void)close(fd);
    if (fault) {
        ho_log(HO_LOG_WARN, "features", "cache file is not used file=%s reason=\"%s\"", path,
               fault);
        ho_features_free(out);
    }
    return !fault;
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool write_file(const char *folder, const char *path, const char *key, const ho_features *f)
{
    char part[PATH_SIZE + 16], *side = NULL;
    size_t T = (size_t)f->T, F = (size_t)f->F;
    union {
        header h;
        char page[PAGE];
    } first;
    bool ok = false;
    memset(&first, 0, sizeof first);
    header *h = &first.h;
    *h = (header){.magic = MAGIC,
                  .format = FORMAT,
                  .T = T,
                  .F = F,
                  .warmup = (uint64_t)f->warmup,
                  .has_split = f->split != NULL};
    (void)snprintf(h->key, sizeof h->key, "%s", key);
    size_t pages = (side_size(h) + PAGE - 1) / PAGE;
    h->tensor_offset = PAGE * (pages + 1);
    (void)snprintf(part, sizeof part, "%s.XXXXXX", path);
    int fd = ho_cache_make_folder(folder) ? mkostemp(part, O_CLOEXEC) : -1;
    if (fd < 0 || !(side = calloc(pages, PAGE))) {
        goto out;
    }
    memcpy(side, f->name, F * sizeof *f->name);
    if (f->split) {
        memcpy(side + F * sizeof *f->name, f->split, T);
    }
    h->side_sum = ho_cache_checksum(side, side_size(h));
    h->tensor_sum = ho_cache_checksum(f->values, T * F * sizeof(float));
    h->header_sum = header_sum(h);
    /* not synced: a second of a disk for 184 MB that a reader's checksum makes good */
    ok = ho_cache_write(fd, &first, PAGE) && ho_cache_write(fd, side, pages * PAGE) &&
         ho_cache_write(fd, f->values, T * F * sizeof(float)) && fchmod(fd, 0644) == 0 &&
         rename(part, path) == 0;
out:
    if (!ok) {
        ho_log(HO_LOG_WARN, "features", "cache cannot be written file=%s reason=\"%s\"", path,
               strerror(errno));
        if (fd >= 0) {
            (void)unlink(part);
        }
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    free(side);
    return ok;
}

/* ---- the whole ------------------------------------------------------------------------------- */

ho_status ho_features_load(const ho_bars *bars, const ho_feature_options *options,
                           const char *folder, ho_features *out, ho_cache_result *result,
                           ho_err *err)
{
    char own[PATH_SIZE], path[PATH_SIZE], key[65];
    struct timespec begin, end;
    ho_cache_result unused;
    result = result ? result : &unused;
    *result = HO_CACHE_OFF;
    memset(out, 0, sizeof *out);
    if (!folder && !ho_cache_folder(own, sizeof own)) {
        folder = "";
    } else if (!folder) {
        folder = own;
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &begin);
    ho_status rc = make_key(bars, options, key, err);
    if (rc != HO_OK) {
        return rc;
    }
    bool cached = folder[0] && file_path(folder, bars, key, path);
    if (cached && read_file(path, key, bars, out)) {
        (void)clock_gettime(CLOCK_MONOTONIC, &end);
        double ms = (double)(end.tv_sec - begin.tv_sec) * 1e3 +
                    (double)(end.tv_nsec - begin.tv_nsec) * 1e-6;
        *result = HO_CACHE_HIT;
        (void)strcpy(out->key, key);
        ho_log(HO_LOG_INFO, "features", "cache hit key=%s bars=%lld columns=%d ms=%.1f", key,
               (long long)out->T, out->F, ms);
        return HO_OK;
    }
    if (cached) {
        log_miss(folder, bars, key);
    }
    rc = ho_features_compute(bars, options, out, err);
    if (rc != HO_OK) {
        return rc;
    }
    (void)strcpy(out->key, key);
    if (cached) {
        *result = write_file(folder, path, key, out) ? HO_CACHE_STORED : HO_CACHE_FAILED;
    }
    return HO_OK;
}
