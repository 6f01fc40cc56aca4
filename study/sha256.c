/* SPDX-License-Identifier: Apache-2.0
 * See sha256.h. */
#include "study/sha256.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1 << 16 };

_Static_assert(HO_SHA256_TEXT == 2 * crypto_hash_sha256_BYTES + 1, "size of a hex digest");

void ho_sha256_bytes(const void *bytes, size_t size, char out[HO_SHA256_TEXT])
{
    unsigned char digest[crypto_hash_sha256_BYTES];
    (void)crypto_hash_sha256(digest, (const unsigned char *)bytes, size);
    (void)sodium_bin2hex(out, HO_SHA256_TEXT, digest, sizeof digest);
}

ho_status ho_sha256_file(const char *path, char out[HO_SHA256_TEXT], uint64_t *size, ho_err *err)
{
    unsigned char digest[crypto_hash_sha256_BYTES];
    unsigned char *block = (unsigned char *)malloc(BLOCK);
    crypto_hash_sha256_state state;
    ho_status rc = HO_OK;
    uint64_t total = 0;
    size_t n = 0;
    FILE *file = fopen(path, "rb");

    if (!file || !block) {
        rc = ho_err_set(err, file ? HO_ENOMEM : HO_EIO, "%s: %s", path, strerror(errno));
        goto out;
    }
    (void)crypto_hash_sha256_init(&state);
    while ((n = fread(block, 1, BLOCK, file)) > 0) {
        (void)crypto_hash_sha256_update(&state, block, n);
        total += n;
    }
    if (ferror(file)) {
        rc = ho_err_set(err, HO_EIO, "%s: cannot read: %s", path, strerror(errno));
        goto out;
    }
    (void)crypto_hash_sha256_final(&state, digest);
    (void)sodium_bin2hex(out, HO_SHA256_TEXT, digest, sizeof digest);
    if (size) {
        *size = total;
    }
out:
    if (file) {
        (void)fclose(file);
    }
    free(block);
    return rc;
}
