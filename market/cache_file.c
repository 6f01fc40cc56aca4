/* SPDX-License-Identifier: Apache-2.0
 * See cache_file.h. */
#include "market/cache_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

/* The finaliser of MurmurHash3 (Appleby): a bijection in which every bit reaches every other. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 33) * 0xff51afd7ed558ccdULL;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53ULL;
    return x ^ x >> 33;
}

uint64_t ho_cache_checksum(const void *bytes, size_t size)
{
    enum { LANES = 8 };
    uint64_t a[LANES] = {0}, b[LANES] = {0}, word[LANES], sum = size;
    const unsigned char *p = bytes;
    for (; size >= sizeof word; size -= sizeof word, p += sizeof word) {
        memcpy(word, p, sizeof word);
        for (int i = 0; i < LANES; ++i) {
            a[i] += word[i];
            b[i] += a[i];
        }
    }
    memset(word, 0, sizeof word);
    memcpy(word, p, size);
    for (int i = 0; i < LANES; ++i) {
        a[i] += word[i];
        b[i] += a[i];
        sum = mix(sum ^ a[i]); /* mixed: the top bits of a and b must not cancel each other */
        sum = mix(sum ^ b[i]);
    }
    return sum;
}

bool ho_cache_make_folder(const char *path)
{
    char part[PATH_SIZE];
    struct stat status;
    (void)snprintf(part, sizeof part, "%s", path);
    for (char *p = part + 1; *p; ++p) {
        if (*p == '/') {
            *p = '\0';
            (void)mkdir(part, 0755);
            *p = '/';
        }
    }
    (void)mkdir(part, 0755);
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

bool ho_cache_write(int fd, const void *bytes, size_t size)
{
    const char *p = bytes;
    while (size > 0) {
        ssize_t n = write(fd, p, size < (1U << 30) ? size : (1U << 30));
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
