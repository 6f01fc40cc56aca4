/* SPDX-License-Identifier: Apache-2.0
 * Time of the way from a file to features, on one core: the file read and checked, the 51 features
 * computed, and the cache hit. One line a figure; peak memory of the process as a share of the
 * tensor. usage: bench_market FILE [REPEATS] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "market/cache.h"
#include "market/load.h"

enum { REPEATS_MAX = 100 };

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_times(const char *name, double *seconds, int n, const ho_features *f)
{
    qsort(seconds, (size_t)n, sizeof *seconds, compare);
    printf("%-16s bars=%lld columns=%d median_s=%.4f best_s=%.4f bars_per_s=%.3g\n", name,
           (long long)f->T, f->F, seconds[n / 2], seconds[0], (double)f->T / seconds[n / 2]);
}

static double peak_bytes(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss * 1024.0;
}

int main(int argc, char **argv)
{
    double load[REPEATS_MAX], compute[REPEATS_MAX], whole[REPEATS_MAX], hit[REPEATS_MAX];
    ho_data_options options;
    ho_feature_options wanted;
    ho_err err = {0};
    ho_features features;
    char folder[] = "/tmp/bench_market.XXXXXX", command[64];
    int repeats = argc > 2 ? atoi(argv[2]) : 5;
    if (argc < 2 || repeats < 1 || repeats > REPEATS_MAX || !mkdtemp(folder)) {
        (void)fprintf(stderr, "usage: bench_market FILE [REPEATS]\n");
        return 1;
    }
    const char *path = argv[1];
    ho_data_options_defaults(&options);
    ho_feature_options_defaults(&wanted);
    options.path = &path;
    options.path_count = 1;
    for (int i = 0; i <= repeats; ++i) { /* the first warms up */
        int at = i > 0 ? i - 1 : 0;
        ho_bars bars;
        double begin = now_s();
        if (ho_bars_load(&options, &bars, NULL, &err) != HO_OK) {
            (void)fprintf(stderr, "%s\n", err.text);
            return 2;
        }
        double loaded = now_s();
        if (ho_features_compute(&bars, &wanted, &features, &err) != HO_OK) {
            (void)fprintf(stderr, "%s\n", err.text);
            return 2;
        }
        double done = now_s();
        load[at] = loaded - begin;
        compute[at] = done - loaded;
        whole[at] = done - begin;
        ho_features_free(&features);
        ho_bars_free(&bars);
    }
    double peak = peak_bytes(); /* before the mapped file counts, too */
    ho_bars bars;
    ho_cache_result result = HO_CACHE_OFF;
    if (ho_bars_load(&options, &bars, NULL, &err) != HO_OK) {
        return 2;
    }
    for (int i = 0; i <= repeats + 1; ++i) { /* the first stores, the second warms up */
        double begin = now_s();
        if (ho_features_load(&bars, &wanted, folder, &features, &result, &err) != HO_OK) {
            (void)fprintf(stderr, "%s\n", err.text);
            return 2;
        }
        hit[i > 1 ? i - 2 : 0] = now_s() - begin;
        if (i > 0 && result != HO_CACHE_HIT) {
            (void)fprintf(stderr, "the cache was not hit\n");
            return 2;
        }
        if (i <= repeats) {
            ho_features_free(&features);
        }
    }
    print_times("read_and_check", load, repeats, &features);
    print_times("features", compute, repeats, &features);
    print_times("both", whole, repeats, &features);
    print_times("cache_hit", hit, repeats, &features);
    double tensor = (double)features.T * features.F * sizeof(float);
    printf("%-16s bytes=%.0f tensor_bytes=%.0f share=%.2f\n", "peak_memory", peak, tensor,
           peak / tensor);
    ho_features_free(&features);
    ho_bars_free(&bars);
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) == 0 ? 0 : 2;
}
