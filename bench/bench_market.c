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

/* Wall clock and processor time: the work is single-threaded, so on a busy machine the second is
 * what one core takes. */
typedef struct moment {
    double wall_s, cpu_s;
} moment;

static double clock_s(clockid_t clock)
{
    struct timespec t;
    (void)clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static moment now(void)
{
    return (moment){clock_s(CLOCK_MONOTONIC), clock_s(CLOCK_PROCESS_CPUTIME_ID)};
}

static moment since(moment begin)
{
    moment end = now();
    return (moment){end.wall_s - begin.wall_s, end.cpu_s - begin.cpu_s};
}

static int compare(const void *a, const void *b)
{
    const moment *x = a, *y = b;
    return (x->wall_s > y->wall_s) - (x->wall_s < y->wall_s);
}

static void print_times(const char *name, moment *times, int n, const ho_features *f)
{
    qsort(times, (size_t)n, sizeof *times, compare);
    printf("%-16s bars=%lld columns=%d median_s=%.4f best_s=%.4f cpu_s=%.4f bars_per_cpu_s=%.3g\n",
           name, (long long)f->T, f->F, times[n / 2].wall_s, times[0].wall_s, times[n / 2].cpu_s,
           (double)f->T / times[n / 2].cpu_s);
}

static double peak_bytes(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss * 1024.0;
}

int main(int argc, char **argv)
{
    moment load[REPEATS_MAX], compute[REPEATS_MAX], whole[REPEATS_MAX], hit[REPEATS_MAX];
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
        moment begin = now();
        if (ho_bars_load(&options, &bars, NULL, &err) != HO_OK) {
            (void)fprintf(stderr, "%s\n", err.text);
            return 2;
        }
        load[at] = since(begin);
        moment loaded = now();
        if (ho_features_compute(&bars, &wanted, &features, &err) != HO_OK) {
            (void)fprintf(stderr, "%s\n", err.text);
            return 2;
        }
        compute[at] = since(loaded);
        whole[at] = since(begin);
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
        moment begin = now();
        if (ho_features_load(&bars, &wanted, folder, &features, &result, &err) != HO_OK) {
            (void)fprintf(stderr, "%s\n", err.text);
            return 2;
        }
        hit[i > 1 ? i - 2 : 0] = since(begin);
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
