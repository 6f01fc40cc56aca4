/* SPDX-License-Identifier: Apache-2.0
 * The CPU backend's table and the backend object: how many threads, what the machine is. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/backend_ops.h"
#include "kernels/cpu/backtest.h"
#include "kernels/cpu/cohort.h"
#include "kernels/cpu/threads.h"

typedef struct cpu_backend {
    ho_backend base;
    int threads;
    size_t memory_limit; /* 0: what is free */
} cpu_backend;

int ho_cpu_threads(const ho_backend *backend)
{
    return ((const cpu_backend *)(const void *)backend)->threads;
}

static ho_status backend_open(const ho_backend_options *options, ho_backend **out, ho_err *err)
{
    if (options->threads < 0) {
        return ho_err_set(err, HO_EINVAL, "%d threads", options->threads);
    }
    cpu_backend *b = calloc(1, sizeof *b);
    if (!b) {
        return ho_err_set(err, HO_ENOMEM, "backend: out of memory");
    }
    b->threads = options->threads > 0 ? options->threads : omp_get_num_procs();
#ifdef __SANITIZE_THREAD__
    b->threads = 1; /* libgomp's barriers are invisible to the sanitizer: all would be a race */
#endif
    b->memory_limit = options->memory_limit;
    *out = &b->base;
    return HO_OK;
}

static void backend_close(ho_backend *backend)
{
    free(backend);
}

/* "model name : ..." of /proc/cpuinfo; leaves name as it is where there is none. */
static void read_cpu_name(char *name, size_t room)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[512];
    while (file && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon) {
            snprintf(name, room, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
            break;
        }
    }
    if (file) {
        fclose(file);
    }
}

/* Bytes a program can still get: MemAvailable counts the page cache, which free pages leave out. */
static size_t available_memory(size_t page)
{
    FILE *file = fopen("/proc/meminfo", "r");
    char line[256];
    unsigned long long kilobytes = 0;
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "MemAvailable:", 13) == 0) {
            kilobytes = strtoull(line + 13, NULL, 10);
            break;
        }
    }
    if (file) {
        fclose(file);
    }
    return kilobytes > 0 ? (size_t)kilobytes << 10 : (size_t)sysconf(_SC_AVPHYS_PAGES) * page;
}

static ho_status backend_info(ho_backend *backend, ho_device_info *out, ho_err *err)
{
    (void)err;
    const cpu_backend *b = (const cpu_backend *)(const void *)backend;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    snprintf(out->name, sizeof out->name, "CPU");
    read_cpu_name(out->name, sizeof out->name);
    snprintf(out->uuid, sizeof out->uuid, "cpu");
    out->processors = b->threads;
    out->memory_total = (size_t)sysconf(_SC_PHYS_PAGES) * page;
    out->memory_free = available_memory(page);
    if (b->memory_limit > 0 && b->memory_limit < out->memory_free) {
        out->memory_free = b->memory_limit;
    }
    return HO_OK;
}

const ho_backend_ops ho_cpu_ops = {
    .name = "cpu",
    .open = backend_open,
    .close = backend_close,
    .info = backend_info,
    .market_load = ho_cpu_market_load,
    .market_unload = ho_cpu_market_unload,
    .cohort_memory = ho_cpu_cohort_memory,
    .cohort_create = ho_cpu_cohort_create,
    .cohort_destroy = ho_cpu_cohort_destroy,
    .lane_start = ho_cpu_lane_start,
    .lane_stop = ho_cpu_lane_stop,
    .run_epoch = ho_cpu_run_epoch,
    .backtest = ho_cpu_backtest,
    .lane_export = ho_cpu_lane_export,
    .lane_import = ho_cpu_lane_import,
    .lane_save = ho_cpu_lane_save,
    .lane_restore = ho_cpu_lane_restore,
    .lane_copy = ho_cpu_lane_copy,
    .lane_set_agent = ho_cpu_lane_set_agent,
};
