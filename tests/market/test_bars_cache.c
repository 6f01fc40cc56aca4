/* SPDX-License-Identifier: Apache-2.0
 * Bars on disk: the same that were put there, or none at all. */
#include "check.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "market/bars_cache.h"
#include "market/study_data.h"
#include "study/log.h"
#include "study/sha256.h"

enum { T = 37, EXTRA = 2 };

static const char key[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
static char folder[64], path[160];

static void *numbers(size_t bytes, int seed)
{
    unsigned char *p = malloc(bytes);
    assert_non_null(p);
    for (size_t i = 0; i < bytes; i++) {
        p[i] = (unsigned char)(i * 31 + (size_t)seed * 7);
    }
    return p;
}

/* full: every optional array, too. */
static ho_bars make_bars(bool full)
{
    ho_bars b = {.count = T,
                 .open_ns = numbers(T * sizeof(int64_t), 1),
                 .ohlcv = numbers(T * 5 * sizeof(double), 2),
                 .session = numbers(T * sizeof(int32_t), 3),
                 .interval_ns = 60000000000,
                 .has_volume = true,
                 .sessions_per_year = 365,
                 .timezone = "UTC",
                 .instrument = {.symbol = "X", .tick_size = 0.25, .multiplier = 50}};
    memset(b.sha256, 'a', 64);
    memset(b.settings, 'b', 64);
    if (full) {
        b.roll_jump = numbers(T * sizeof(double), 4);
        b.split = numbers(T, 5);
        b.gap = numbers(T, 6);
        b.funding = numbers(T * sizeof(double), 7);
        b.extra_count = EXTRA;
        b.extra_name = numbers(EXTRA * sizeof *b.extra_name, 8);
        b.extra = numbers(T * EXTRA * sizeof(double), 9);
    }
    return b;
}

static void check_array(const void *a, const void *b, size_t bytes)
{
    assert_int_equal(a != NULL, b != NULL);
    if (a) {
        assert_memory_equal(a, b, bytes);
    }
}

static void check_same(const ho_bars *a, const ho_bars *b)
{
    assert_int_equal(a->count, b->count);
    check_array(a->open_ns, b->open_ns, T * sizeof *a->open_ns);
    check_array(a->ohlcv, b->ohlcv, T * 5 * sizeof *a->ohlcv);
    check_array(a->session, b->session, T * sizeof *a->session);
    check_array(a->roll_jump, b->roll_jump, T * sizeof *a->roll_jump);
    check_array(a->split, b->split, T);
    check_array(a->gap, b->gap, T);
    check_array(a->funding, b->funding, T * sizeof *a->funding);
    assert_int_equal(a->extra_count, b->extra_count);
    check_array(a->extra_name, b->extra_name, EXTRA * sizeof *a->extra_name);
    check_array(a->extra, b->extra, T * EXTRA * sizeof *a->extra);
    assert_int_equal(a->interval_ns, b->interval_ns);
    assert_int_equal(a->has_volume, b->has_volume);
    CHECK_NEAR(a->sessions_per_year, b->sessions_per_year, 0);
    assert_string_equal(a->timezone, b->timezone);
    assert_string_equal(a->sha256, b->sha256);
    assert_string_equal(a->settings, b->settings);
    assert_memory_equal(&a->instrument, &b->instrument, sizeof a->instrument);
}

static void bars_come_back_as_they_were_put(void **state)
{
    (void)state;
    for (int full = 0; full < 2; full++) {
        ho_bars in = make_bars(full), out;
        assert_false(ho_bars_cache_get(folder, key, &out));
        ho_bars_cache_put(folder, key, &in);
        assert_true(ho_bars_cache_get(folder, key, &out));
        check_same(&in, &out);
        ho_bars_free(&out);
        char other[65];
        memcpy(other, key, sizeof other);
        other[63] = '0';
        assert_false(ho_bars_cache_get(folder, other, &out));
        ho_bars_free(&in);
        assert_int_equal(unlink(path), 0);
    }
}

static void a_damaged_file_is_not_believed(void **state)
{
    (void)state;
    ho_bars in = make_bars(true), out;
    ho_log_set_level(HO_LOG_ERROR);
    ho_bars_cache_put(folder, key, &in);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    long size = (long)info.st_size;
    for (long at = 0; at < size; at += at < 900 ? 1 : 37) { /* the header byte by byte */
        FILE *f = fopen(path, "r+b");
        assert_non_null(f);
        assert_int_equal(fseek(f, at, SEEK_SET), 0);
        int was = fgetc(f);
        assert_int_equal(fseek(f, at, SEEK_SET), 0);
        fputc(was ^ 0x40, f);
        fclose(f);
        if (ho_bars_cache_get(folder, key, &out)) {
            fail_msg("byte %ld of %ld", at, size);
        }
        assert_null(out.ohlcv);
        f = fopen(path, "r+b");
        assert_non_null(f);
        assert_int_equal(fseek(f, at, SEEK_SET), 0);
        fputc(was, f);
        fclose(f);
    }
    assert_true(ho_bars_cache_get(folder, key, &out));
    ho_bars_free(&out);
    for (long cut = 0; cut < size; cut += 61) {
        assert_int_equal(truncate(path, cut), 0);
        assert_false(ho_bars_cache_get(folder, key, &out));
        assert_int_equal(unlink(path), 0);
        ho_bars_cache_put(folder, key, &in);
    }
    assert_int_equal(truncate(path, size + 1), 0);
    assert_false(ho_bars_cache_get(folder, key, &out));
    ho_bars_free(&in);
}

static void a_folder_that_takes_nothing_harms_nobody(void **state)
{
    (void)state;
    ho_bars in = make_bars(false), out;
    ho_log_set_level(HO_LOG_ERROR);
    ho_bars_cache_put("/dev/full/x", key, &in);
    assert_false(ho_bars_cache_get("/dev/full/x", key, &out));
    ho_bars_free(&in);
}

static void a_workers_bars_are_those_of_the_file_and_of_the_settings(void **state)
{
    (void)state;
    static const char *file[] = {HO_SOURCE_DIR "/configs/data/eurusd-1h-2017.csv"};
    ho_err err = {0};
    char sha256[HO_SHA256_TEXT];
    const char *hash[] = {sha256};
    ho_bars parsed, first, second;
    ho_data_report report;
    ho_settings *s = ho_settings_create();
    assert_int_equal(setenv("HYPEROPT_FEATURE_CACHE", folder, 1), 0);
    CHECK_OK(ho_sha256_file(file[0], sha256, NULL, &err), &err);
    CHECK_OK(ho_study_bars_load(s, file, 1, &parsed, NULL, &err), &err);
    CHECK_OK(ho_study_bars_cached(s, file, hash, 1, &first, &report, &err), &err); /* puts */
    assert_true(report.rows > 0);
    static const char *gone[] = {"no-such-file.csv"}; /* so it can only come from the cache */
    CHECK_OK(ho_study_bars_cached(s, gone, hash, 1, &second, NULL, &err), &err);
    assert_int_equal(second.count, parsed.count);
    assert_memory_equal(second.ohlcv, parsed.ohlcv, (size_t)parsed.count * 5 * sizeof(double));
    assert_memory_equal(second.open_ns, parsed.open_ns, (size_t)parsed.count * sizeof(int64_t));
    ho_bars_free(&second);
    CHECK_OK(ho_settings_set_text(s, HO_KEY_INSTRUMENT_FUNDING_BPS_PER_DAY, "3", &err), &err);
    CHECK_STATUS(ho_study_bars_cached(s, gone, hash, 1, &second, NULL, &err), HO_EIO);
    CHECK_OK(ho_settings_set_text(s, HO_KEY_INSTRUMENT_FUNDING_BPS_PER_DAY, "0", &err), &err);
    CHECK_OK(ho_settings_set_text(s, HO_KEY_DATA_BAR, "2h", &err), &err);
    CHECK_STATUS(ho_study_bars_cached(s, gone, hash, 1, &second, NULL, &err), HO_EIO);
    ho_bars_free(&parsed);
    ho_bars_free(&first);
    ho_settings_destroy(&s);
}

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "bars-XXXXXX");
    if (!mkdtemp(folder)) {
        return -1;
    }
    snprintf(path, sizeof path, "%s/%s.bars", folder, key);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(bars_come_back_as_they_were_put),
        TEST(a_damaged_file_is_not_believed),
        TEST(a_folder_that_takes_nothing_harms_nobody),
        TEST(a_workers_bars_are_those_of_the_file_and_of_the_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
