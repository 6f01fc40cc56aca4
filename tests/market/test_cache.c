/* SPDX-License-Identifier: Apache-2.0
 * The feature cache: a hit gives the same bytes, anything else that differs is a miss, and a file
 * that is damaged, half-written or in a folder that cannot be written costs nothing but time. */
#include "check.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "market/cache.h"
#include "market/make_bars.h"

/* A fresh folder in the working directory. */
static char *fresh_folder(char *out)
{
    (void)strcpy(out, "cache-XXXXXX");
    assert_non_null(mkdtemp(out));
    return out;
}

/* The only file of the folder that is not hidden; the number of files. */
static int only_file(const char *folder, char *out, size_t size)
{
    int n = 0;
    DIR *dir = opendir(folder);
    struct dirent *entry = NULL;
    assert_non_null(dir);
    while ((entry = readdir(dir))) {
        if (entry->d_name[0] != '.') {
            (void)snprintf(out, size, "%s/%s", folder, entry->d_name);
            ++n;
        }
    }
    (void)closedir(dir);
    return n;
}

static ho_cache_result load(const ho_bars *bars, const ho_feature_options *options,
                            const char *folder, ho_features *out)
{
    ho_cache_result result = HO_CACHE_OFF;
    ho_err err = {0};
    CHECK_OK(ho_features_load(bars, options, folder, out, &result, &err), &err);
    return result;
}

static void a_hit_gives_the_bytes_that_were_stored(void **state)
{
    (void)state;
    char folder[32], file[512];
    ho_feature_options options;
    ho_features first, second, none;
    ho_feature_options_defaults(&options);
    ho_bars bars = make_bars(3000, 100.0, 1);
    bars.split = calloc(3000, 1);
    bars.split[1600] = 1;
    (void)fresh_folder(folder);
    assert_int_equal(load(&bars, &options, folder, &first), HO_CACHE_STORED);
    assert_int_equal(only_file(folder, file, sizeof file), 1);
    assert_int_equal(load(&bars, &options, folder, &second), HO_CACHE_HIT);
    assert_non_null(second.map);
    assert_int_equal(first.T, second.T);
    assert_int_equal(first.F, second.F);
    assert_int_equal(first.warmup, second.warmup);
    assert_memory_equal(first.values, second.values,
                        (size_t)first.T * (size_t)first.F * sizeof(float));
    assert_memory_equal(first.split, second.split, 3000);
    assert_memory_equal(first.name, second.name, (size_t)first.F * HO_FEATURE_NAME);
    assert_string_equal(first.key, second.key);
    assert_int_equal(load(&bars, &options, "", &none), HO_CACHE_OFF);
    assert_string_equal(first.key, none.key);
    ho_features_free(&first);
    ho_features_free(&second);
    ho_features_free(&none);
    ho_bars_free(&bars);
}

static void anything_that_shapes_the_tensor_is_in_the_key(void **state)
{
    (void)state;
    static const char *const some[] = {"ret_1", "body"}, *const turned[] = {"body", "ret_1"};
    char folder[32], keys[12][65];
    int n = 0;
    ho_feature_options options;
    ho_features f;
    (void)fresh_folder(folder);
    for (int variant = 0; variant < 10; ++variant) {
        ho_bars bars = make_bars(3000, 100.0, 2);
        ho_feature_options_defaults(&options);
        switch (variant) {
        case 1:
            options.long_window = 300;
            break;
        case 2:
            options.use = some;
            options.use_count = 2;
            break;
        case 3:
            options.use = turned;
            options.use_count = 2;
            break;
        case 4:
            bars.sha256[0] = 'f';
            break;
        case 5:
            bars.settings[0] = 'f';
            break;
        case 6:
            bars.ohlcv[5 * 2999 + 3] += 0.01;
            break; /* permuted or edited bars */
        case 7:
            (void)strcpy(bars.timezone, "Asia/Tokyo");
            break;
        case 8:
            bars.has_volume = false;
            break;
        case 9:
            bars.session[2999] += 1;
            break;
        default:
            break;
        }
        assert_int_equal(load(&bars, &options, folder, &f), HO_CACHE_STORED);
        (void)strcpy(keys[n++], f.key);
        for (int i = 0; i < n - 1; ++i) {
            assert_string_not_equal(keys[i], f.key);
        }
        ho_features_free(&f);
        ho_bars_free(&bars);
    }
}

static void a_damaged_file_is_made_again(void **state)
{
    (void)state;
    char folder[32], file[512];
    ho_feature_options options;
    ho_features good, again;
    ho_feature_options_defaults(&options);
    ho_bars bars = make_bars(2000, 100.0, 3);
    (void)fresh_folder(folder);
    assert_int_equal(load(&bars, &options, folder, &good), HO_CACHE_STORED);
    assert_int_equal(only_file(folder, file, sizeof file), 1);
    struct stat status;
    assert_int_equal(stat(file, &status), 0);
    /* one bit at places in the header, the names, the tensor's begin, middle and end */
    off_t at[] = {
        0, 8, 16, 30, 40, 60, 80, 4096, 4200, 8300, status.st_size / 2, status.st_size - 1};
    for (size_t i = 0; i < sizeof at / sizeof at[0]; ++i) {
        FILE *f = fopen(file, "r+b");
        assert_non_null(f);
        (void)fseek(f, (long)at[i], SEEK_SET);
        int c = fgetc(f);
        (void)fseek(f, (long)at[i], SEEK_SET);
        (void)fputc(c ^ 1, f);
        assert_int_equal(fclose(f), 0);
        assert_int_equal(load(&bars, &options, folder, &again), HO_CACHE_STORED);
        assert_memory_equal(good.values, again.values,
                            (size_t)good.T * (size_t)good.F * sizeof(float));
        ho_features_free(&again);
        assert_int_equal(load(&bars, &options, folder, &again), HO_CACHE_HIT);
        ho_features_free(&again);
    }
    off_t sizes[] = {0, 1, 4095, 4096, 9000, status.st_size - 1, status.st_size + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
        assert_int_equal(truncate(file, sizes[i]), 0);
        assert_int_equal(load(&bars, &options, folder, &again), HO_CACHE_STORED);
        ho_features_free(&again);
    }
    ho_features_free(&good);
    ho_bars_free(&bars);
}

static void a_folder_that_cannot_be_written_costs_nothing(void **state)
{
    (void)state;
    char folder[32], below[64];
    ho_feature_options options;
    ho_features f;
    ho_feature_options_defaults(&options);
    ho_bars bars = make_bars(2000, 100.0, 4);
    (void)fresh_folder(folder);
    (void)snprintf(below, sizeof below, "%s/file", folder);
    FILE *file = fopen(below, "w");
    assert_non_null(file);
    (void)fclose(file);
    assert_int_equal(load(&bars, &options, below, &f), HO_CACHE_FAILED); /* a file, not a folder */
    assert_int_equal(f.T, 2000);
    ho_features_free(&f);
    assert_int_equal(load(&bars, &options, "/dev/full/x", &f), HO_CACHE_FAILED);
    ho_features_free(&f);
    (void)snprintf(below, sizeof below, "%s/a/b/c", folder); /* made as needed */
    assert_int_equal(load(&bars, &options, below, &f), HO_CACHE_STORED);
    ho_features_free(&f);
    ho_bars_free(&bars);
}

static void processes_that_store_at_once_do_not_harm_each_other(void **state)
{
    (void)state;
    enum { PROCESSES = 6 };
    char folder[32], file[512];
    ho_feature_options options;
    ho_features f;
    pid_t child[PROCESSES];
    ho_feature_options_defaults(&options);
    ho_bars bars = make_bars(3000, 100.0, 5);
    (void)fresh_folder(folder);
    for (int i = 0; i < PROCESSES; ++i) {
        if ((child[i] = fork()) == 0) {
            ho_cache_result result = HO_CACHE_OFF;
            bool good = true;
            for (int k = 0; k < 5 && good; ++k) {
                good = ho_features_load(&bars, &options, folder, &f, &result, NULL) == HO_OK &&
                       (result == HO_CACHE_HIT || result == HO_CACHE_STORED);
                ho_features_free(&f);
            }
            _exit(good ? 0 : 1);
        }
    }
    for (int i = 0; i < PROCESSES; ++i) {
        int status = 0;
        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    assert_int_equal(only_file(folder, file, sizeof file), 1); /* no half-written file is left */
    assert_int_equal(load(&bars, &options, folder, &f), HO_CACHE_HIT);
    ho_features_free(&f);
    ho_bars_free(&bars);
}

static void the_users_folder_follows_the_environment(void **state)
{
    (void)state;
    char out[256];
    (void)setenv("HYPEROPT_FEATURE_CACHE", "/x/y", 1);
    assert_true(ho_cache_folder(out, sizeof out));
    assert_string_equal(out, "/x/y");
    (void)setenv("HYPEROPT_FEATURE_CACHE", "off", 1);
    assert_false(ho_cache_folder(out, sizeof out));
    (void)unsetenv("HYPEROPT_FEATURE_CACHE");
    (void)setenv("XDG_CACHE_HOME", "/c", 1);
    assert_true(ho_cache_folder(out, sizeof out));
    assert_string_equal(out, "/c/hyperopt/features");
    (void)unsetenv("XDG_CACHE_HOME");
    (void)setenv("HOME", "/h", 1);
    assert_true(ho_cache_folder(out, sizeof out));
    assert_string_equal(out, "/h/.cache/hyperopt/features");
    (void)unsetenv("HOME");
    assert_false(ho_cache_folder(out, sizeof out));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hit_gives_the_bytes_that_were_stored),
        cmocka_unit_test(anything_that_shapes_the_tensor_is_in_the_key),
        cmocka_unit_test(a_damaged_file_is_made_again),
        cmocka_unit_test(a_folder_that_cannot_be_written_costs_nothing),
        cmocka_unit_test(processes_that_store_at_once_do_not_harm_each_other),
        cmocka_unit_test(the_users_folder_follows_the_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
