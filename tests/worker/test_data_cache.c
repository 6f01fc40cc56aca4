/* SPDX-License-Identifier: Apache-2.0
 * Data files by content: found, transferred, resumed, refused, evicted. */
#include "check.h"

#include <stdlib.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "worker/data_cache.h"

enum { BYTES = 200000, CHUNK = 65536 };

static unsigned char content[BYTES];
static char hash[HO_SHA256_HEX];
static char folder[] = "cache-XXXXXX";
static ho_data_cache *cache;
static ho_err err;

static void write_file(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static int setup(void **state)
{
    (void)state;
    ho_err_clear(&err);
    memcpy(folder, "cache-XXXXXX", sizeof folder);
    if (!mkdtemp(folder)) {
        return -1;
    }
    for (int i = 0; i < BYTES; i++) {
        content[i] = (unsigned char)(i * 31 + i / 256);
    }
    write_file("source.csv", content, sizeof content);
    CHECK_OK(ho_data_cache_hash("source.csv", hash, &err), &err);
    CHECK_OK(ho_data_cache_open(&cache, folder, 0, &err), &err);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    char command[64];
    ho_data_cache_close(&cache);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static void reopen(uint64_t limit)
{
    ho_data_cache_close(&cache);
    CHECK_OK(ho_data_cache_open(&cache, folder, limit, &err), &err);
}

/* Sends chunks from `from` on until `until`; true when the file is complete. */
static bool transfer(uint64_t from, uint64_t until)
{
    bool complete = false;
    while (from < until) {
        size_t n = until - from < CHUNK ? (size_t)(until - from) : CHUNK;
        CHECK_OK(ho_data_cache_write(cache, hash, from, content + from, n, &complete, &err), &err);
        from += n;
    }
    return complete;
}

static void the_hash_is_sha256(void **state)
{
    (void)state;
    char out[HO_SHA256_HEX];
    write_file("abc", "abc", 3);
    CHECK_OK(ho_data_cache_hash("abc", out, &err), &err);
    assert_string_equal(out, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK_STATUS(ho_data_cache_hash("no such file", out, &err), HO_EIO);
    CHECK_CONTAINS(err.text, "no such file");
}

static void a_path_is_used_only_when_its_hash_matches(void **state)
{
    (void)state;
    char found[HO_CACHE_PATH];
    CHECK_OK(ho_data_cache_find(cache, hash, "source.csv", found, &err), &err);
    assert_string_equal(found, "source.csv");
    write_file("source.csv", content, sizeof content - 1);
    CHECK_STATUS(ho_data_cache_find(cache, hash, "source.csv", found, &err), HO_ENOTFOUND);
    CHECK_STATUS(ho_data_cache_find(cache, hash, NULL, found, &err), HO_ENOTFOUND);
    CHECK_STATUS(ho_data_cache_find(cache, "../../etc/passwd", NULL, found, &err), HO_EINVAL);
}

static void a_transfer_makes_the_file(void **state)
{
    (void)state;
    uint64_t offset = 1;
    char found[HO_CACHE_PATH];
    CHECK_OK(ho_data_cache_begin(cache, hash, BYTES, &offset, &err), &err);
    assert_int_equal(offset, 0);
    assert_true(transfer(0, BYTES));
    CHECK_OK(ho_data_cache_find(cache, hash, NULL, found, &err), &err);
    CHECK_CONTAINS(found, hash);
}

static void a_broken_transfer_goes_on_where_it_stopped(void **state)
{
    (void)state;
    uint64_t offset = 0;
    char found[HO_CACHE_PATH];
    CHECK_OK(ho_data_cache_begin(cache, hash, BYTES, &offset, &err), &err);
    assert_false(transfer(0, 2 * CHUNK));
    reopen(0);
    CHECK_STATUS(ho_data_cache_find(cache, hash, NULL, found, &err), HO_ENOTFOUND);
    CHECK_OK(ho_data_cache_begin(cache, hash, BYTES, &offset, &err), &err);
    assert_int_equal(offset, 2 * CHUNK);
    assert_true(transfer(offset, BYTES));
}

static void repeated_late_and_foreign_chunks_are_left_out(void **state)
{
    (void)state;
    uint64_t offset = 0;
    bool complete = true;
    CHECK_STATUS(ho_data_cache_write(cache, hash, 0, content, 10, &complete, &err), HO_EAGAIN);
    CHECK_OK(ho_data_cache_begin(cache, hash, BYTES, &offset, &err), &err);
    assert_false(transfer(0, CHUNK));
    CHECK_STATUS(ho_data_cache_write(cache, hash, 0, content, CHUNK, &complete, &err), HO_EAGAIN);
    CHECK_STATUS(ho_data_cache_write(cache, hash, BYTES, content, 1, &complete, &err), HO_EAGAIN);
    CHECK_STATUS(ho_data_cache_write(cache, hash, CHUNK, content, BYTES, &complete, &err),
                 HO_EAGAIN);
    char other[HO_SHA256_HEX];
    memset(other, 'a', sizeof other - 1);
    other[sizeof other - 1] = '\0';
    CHECK_STATUS(ho_data_cache_write(cache, other, CHUNK, content, 1, &complete, &err), HO_EAGAIN);
    assert_true(transfer(CHUNK, BYTES));
}

static void a_file_with_another_hash_is_thrown_away(void **state)
{
    (void)state;
    uint64_t offset = 0;
    bool complete = true;
    content[BYTES / 2] ^= 1;
    CHECK_OK(ho_data_cache_begin(cache, hash, BYTES, &offset, &err), &err);
    assert_false(transfer(0, BYTES - 1));
    CHECK_STATUS(
        ho_data_cache_write(cache, hash, BYTES - 1, content + BYTES - 1, 1, &complete, &err),
        HO_EDATA);
    assert_false(complete);
    CHECK_CONTAINS(err.text, hash);
    CHECK_OK(ho_data_cache_begin(cache, hash, BYTES, &offset, &err), &err);
    assert_int_equal(offset, 0);
}

static void a_damaged_cached_file_is_not_used(void **state)
{
    (void)state;
    uint64_t offset = 0;
    char found[HO_CACHE_PATH], path[HO_CACHE_PATH];
    CHECK_OK(ho_data_cache_begin(cache, hash, BYTES, &offset, &err), &err);
    assert_true(transfer(0, BYTES));
    snprintf(path, sizeof path, "%s/%s", folder, hash);
    write_file(path, "torn", 4);
    CHECK_STATUS(ho_data_cache_find(cache, hash, NULL, found, &err), HO_ENOTFOUND);
    assert_int_equal(access(path, F_OK), -1);
}

static void two_workers_do_not_fetch_the_same_file(void **state)
{
    (void)state;
    uint64_t offset = 0;
    ho_data_cache *other = NULL;
    CHECK_OK(ho_data_cache_open(&other, folder, 0, &err), &err);
    CHECK_OK(ho_data_cache_begin(cache, hash, BYTES, &offset, &err), &err);
    CHECK_STATUS(ho_data_cache_begin(other, hash, BYTES, &offset, &err), HO_ELOCKED);
    ho_data_cache_close(&other);
}

static void the_least_recently_used_file_goes(void **state)
{
    (void)state;
    char old_hash[HO_SHA256_HEX], path[HO_CACHE_PATH], found[HO_CACHE_PATH];
    uint64_t offset = 0;
    write_file("old.csv", content, 1000);
    CHECK_OK(ho_data_cache_hash("old.csv", old_hash, &err), &err);
    snprintf(path, sizeof path, "%s/%s", folder, old_hash);
    write_file(path, content, 1000);
    struct timespec past[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    assert_int_equal(utimensat(AT_FDCWD, path, past, 0), 0);
    reopen(BYTES + 500);
    CHECK_OK(ho_data_cache_begin(cache, hash, BYTES, &offset, &err), &err);
    assert_true(transfer(0, BYTES));
    CHECK_STATUS(ho_data_cache_find(cache, old_hash, NULL, found, &err), HO_ENOTFOUND);
    CHECK_OK(ho_data_cache_find(cache, hash, NULL, found, &err), &err);
}

static void a_folder_that_cannot_be_made_is_named(void **state)
{
    (void)state;
    ho_data_cache *none = NULL;
    CHECK_STATUS(ho_data_cache_open(&none, "source.csv/cache", 0, &err), HO_EIO);
    CHECK_CONTAINS(err.text, "source.csv");
    assert_null(none);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(the_hash_is_sha256),
        T(a_path_is_used_only_when_its_hash_matches),
        T(a_transfer_makes_the_file),
        T(a_broken_transfer_goes_on_where_it_stopped),
        T(repeated_late_and_foreign_chunks_are_left_out),
        T(a_file_with_another_hash_is_thrown_away),
        T(a_damaged_cached_file_is_not_used),
        T(two_workers_do_not_fetch_the_same_file),
        T(the_least_recently_used_file_goes),
        T(a_folder_that_cannot_be_made_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
