/* SPDX-License-Identifier: Apache-2.0
 * See bars_cache.h. File: the header, then every array that is there, in the order of `arrays`.
 * Numbers are those of the machine; the magic word tells another byte order. */
#include "market/bars_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "market/cache_file.h"
#include "study/log.h"

enum { FORMAT = 1, ARRAYS = 9, EXTRA_MAX = 64 };

static const uint64_t MAGIC = 0x31535241424f48ULL; /* "HOBARS1" */

typedef struct header {
    uint64_t magic, format;
    char key[72];
    ho_bars facts;        /* its pointers are NULL, or not: which arrays follow */
    uint64_t sum[ARRAYS]; /* of each array */
    uint64_t header_sum;  /* of all before it */
} header;

typedef struct array {
    void **at;
    size_t bytes;
} array;

/* The arrays of bars with their sizes. */
static void arrays(ho_bars *b, array out[ARRAYS])
{
    size_t T = (size_t)b->count, E = (size_t)b->extra_count;
    const array all[ARRAYS] = {
        {(void **)&b->open_ns, T * sizeof *b->open_ns},
        {(void **)&b->ohlcv, T * 5 * sizeof *b->ohlcv},
        {(void **)&b->session, T * sizeof *b->session},
        {(void **)&b->roll_jump, T * sizeof *b->roll_jump},
        {(void **)&b->split, T},
        {(void **)&b->gap, T},
        {(void **)&b->funding, T * sizeof *b->funding},
        {(void **)&b->extra_name, E * sizeof *b->extra_name},
        {(void **)&b->extra, T * E * sizeof *b->extra},
    };
    memcpy(out, all, sizeof all);
}

static uint64_t header_sum(const header *h)
{
    return ho_cache_checksum(h, offsetof(header, header_sum));
}

static bool path_of(const char *folder, const char *key, char *out)
{
    int n = snprintf(out, PATH_MAX, "%s/%.64s.bars", folder, key);
    return n > 0 && n < PATH_MAX;
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool read_all(int fd, void *bytes, size_t size)
{
    char *p = bytes;
    while (size > 0) {
        ssize_t n = read(fd, p, size < (1U << 30) ? size : (1U << 30));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        p += n;
        size -= (size_t)n;
    }
    return true;
}

/* Whether the file is as long as its header says. */
static bool has_size(int fd, header *h)
{
    struct stat status;
    array part[ARRAYS];
    uint64_t want = sizeof *h;
    if (h->facts.count < 1 || h->facts.count > INT64_MAX / 4096 || h->facts.extra_count < 0 ||
        h->facts.extra_count > EXTRA_MAX || fstat(fd, &status) != 0) {
        return false;
    }
    arrays(&h->facts, part);
    for (int i = 0; i < ARRAYS; i++) {
        want += *part[i].at ? part[i].bytes : 0;
    }
    return (uint64_t)status.st_size == want;
}

static const char *read_bars(int fd, const char *key, ho_bars *out)
{
    header h;
    array part[ARRAYS];
    if (!read_all(fd, &h, sizeof h) || h.magic != MAGIC || h.format != FORMAT ||
        h.header_sum != header_sum(&h) || strncmp(h.key, key, sizeof h.key) != 0) {
        return "bad header";
    }
    if (!has_size(fd, &h)) {
        return "another size";
    }
    *out = h.facts;
    arrays(out, part);
    bool present[ARRAYS];
    for (int i = 0; i < ARRAYS; i++) {
        present[i] = *part[i].at != NULL;
        *part[i].at = NULL; /* an address of who wrote it */
    }
    for (int i = 0; i < ARRAYS; i++) {
        if (!present[i]) {
            continue;
        }
        if (!(*part[i].at = malloc(part[i].bytes + 1))) {
            return "no memory";
        }
        if (!read_all(fd, *part[i].at, part[i].bytes) ||
            ho_cache_checksum(*part[i].at, part[i].bytes) != h.sum[i]) {
            return "bad checksum";
        }
    }
    return NULL;
}

bool ho_bars_cache_get(const char *folder, const char *key, ho_bars *out)
{
    char path[PATH_MAX];
    memset(out, 0, sizeof *out);
    int fd = path_of(folder, key, path) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) {
        return false;
    }
    const char *fault = read_bars(fd, key, out);
    (void)close(fd);
    if (fault) {
        ho_log(HO_LOG_WARN, "bars", "cache file is not used file=%s reason=\"%s\"", path, fault);
        ho_bars_free(out);
    }
    return !fault;
}

/* ---- writing --------------------------------------------------------------------------------- */

void ho_bars_cache_put(const char *folder, const char *key, const ho_bars *bars)
{
    char path[PATH_MAX], temporary[PATH_MAX + 16];
    header h;
    array part[ARRAYS];
    if (!path_of(folder, key, path) || access(path, F_OK) == 0) {
        return;
    }
    memset(&h, 0, sizeof h);
    h.magic = MAGIC;
    h.format = FORMAT;
    (void)snprintf(h.key, sizeof h.key, "%s", key);
    h.facts = *bars;
    arrays(&h.facts, part);
    for (int i = 0; i < ARRAYS; i++) {
        h.sum[i] = *part[i].at ? ho_cache_checksum(*part[i].at, part[i].bytes) : 0;
    }
    h.header_sum = header_sum(&h);
    (void)snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    int fd = ho_cache_make_folder(folder) ? mkostemp(temporary, O_CLOEXEC) : -1;
    bool ok = fd >= 0 && ho_cache_write(fd, &h, sizeof h);
    for (int i = 0; i < ARRAYS && ok; i++) {
        ok = !*part[i].at || ho_cache_write(fd, *part[i].at, part[i].bytes);
    }
    ok = ok && fchmod(fd, 0644) == 0 && rename(temporary, path) == 0;
    if (!ok) {
        ho_log(HO_LOG_WARN, "bars", "cache cannot be written file=%s reason=\"%s\"", path,
               strerror(errno));
        if (fd >= 0) {
            (void)unlink(temporary);
        }
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}
