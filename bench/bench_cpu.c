/* SPDX-License-Identifier: Apache-2.0
 * The reference workload of docs on the CPU backend, one line a figure: collect (experiences a
 * second, the td error of every transition included), learn (double-DQN updates of 1,024 a second)
 * and greedy backtests (bars a second). bench/peers/torch_eager.py does collect, learn and the
 * backtest in PyTorch eager; bench/cpu_side_by_side.sh runs both, one after the other.
 * usage: bench_cpu [--json] [--threads N] [--runs N] [--cpu-time] [--precision f32|bf16|fp8]
 * Median and best of N runs [5]; --cpu-time counts processor time, which on a busy machine says
 * more than the clock on the wall (with one thread: the waits of several are counted too). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/agents/agent_check.h"
#include "kernels/backend.h"
#include "kernels/env/config_check.h"
#include "kernels/env/rng.h"

enum { BARS = 200000, RUNS_MAX = 64, LEARN_UPDATES = 20, WINDOWS = 8, WINDOW_BARS = 2000 };

static const char *const precision_names[] = {"f32", "bf16", "fp8"}; /* by ho_precision */

/* 0: no such precision */
static int precision_of(const char *name, ho_precision *out)
{
    for (int i = 0; i < 3; i++) {
        if (strcmp(name, precision_names[i]) == 0) {
            *out = (ho_precision)i;
            return 1;
        }
    }
    return 0;
}

typedef struct bench {
    int json, runs, threads;
    ho_precision precision;
    ho_backend *backend;
    ho_market *market;
    ho_err err;
} bench;

static clockid_t clock_id = CLOCK_MONOTONIC;

static double now_s(void)
{
    struct timespec t;
    clock_gettime(clock_id, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_rate(const bench *b, const char *name, double units, const char *unit,
                       double *seconds)
{
    qsort(seconds, (size_t)b->runs, sizeof *seconds, ascending);
    const double median = seconds[b->runs / 2], best = seconds[0];
    if (b->json) {
        printf("{\"bench\":\"%s\",\"unit\":\"%s/s\",\"median\":%.6g,\"best\":%.6g,\"seconds\":%.6g,"
               "\"threads\":%d,\"precision\":\"%s\"}\n",
               name, unit, units / median, units / best, median, b->threads,
               precision_names[b->precision]);
    } else {
        printf("%-34s %12.4g %s/s median, %.4g best (%.3f s), %s, %d threads\n", name,
               units / median, unit, units / best, median, precision_names[b->precision],
               b->threads);
    }
    fflush(stdout);
}

static void must(bench *b, ho_status rc)
{
    if (rc != HO_OK) {
        fprintf(stderr, "bench_cpu: %s: %s\n", ho_status_name(rc), b->err.text);
        exit(1);
    }
}

static void open_market(bench *b)
{
    const uint32_t key[2] = {1, 2};
    const int F = HO_MARKET_FEATURES;
    float *features = malloc((size_t)BARS * (size_t)F * sizeof *features);
    double *bars = malloc((size_t)BARS * HO_BAR_COLUMNS * sizeof *bars), close = 4000.0;
    int64_t *open_ns = malloc((size_t)BARS * sizeof *open_ns);
    int32_t *session = malloc((size_t)BARS * sizeof *session);
    if (!features || !bars || !open_ns || !session) {
        exit(1);
    }
    for (int32_t t = 0; t < BARS; t++) {
        double *bar = bars + (int64_t)t * HO_BAR_COLUMNS;
        for (int i = 0; i < F; i++) {
            const ho_rng4 r = ho_rng(key, (uint32_t)t, (uint32_t)i, 0, HO_RNG_NOISE, 0);
            features[(int64_t)t * F + i] = ho_rng_normal(r.v[0], r.v[1]);
        }
        bar[HO_OPEN] = close;
        close += (double)features[(int64_t)t * F];
        bar[HO_CLOSE] = close;
        bar[HO_HIGH] = fmax(bar[HO_OPEN], close) + 0.5;
        bar[HO_LOW] = fmin(bar[HO_OPEN], close) - 0.5;
        bar[HO_VOLUME] = 500.0;
        open_ns[t] = (int64_t)t * 60000000000;
        session[t] = t / 1380;
    }
    ho_backend_options options = ho_backend_defaults();
    options.kind = HO_BACKEND_CPU;
    options.threads = b->threads;
    must(b, ho_backend_open(&b->backend, &options, &b->err));
    const ho_market_data data = {.T = BARS,
                                 .F = F,
                                 .features = features,
                                 .bars = bars,
                                 .open_ns = open_ns,
                                 .interval_ns = 60000000000,
                                 .session = session,
                                 .has_volume = 1};
    must(b, ho_market_load(b->backend, &data, &b->market, &b->err));
    ho_device_info info;
    must(b, ho_backend_info(b->backend, &info, &b->err));
    b->threads = info.processors;
    free(features);
    free(bars);
    free(open_ns);
    free(session);
}

/* The reference lane: market orders (exposure5 would shrink the head, so all 45), curiosity and
 * diversity on. */
static ho_cohort *open_lane(bench *b, ho_cohort_key key)
{
    ho_cohort *c;
    ho_lane_config lane = {.env = ho_env_config_defaults(),
                           .agent = ho_agent_config_defaults(HO_DQN),
                           .train = {0, BARS}};
    lane.env.multiplier = 50.0;
    lane.env.max_lots = 4;
    lane.env.initial_capital = 1e6;
    lane.env.diversity_penalty = 0.1;
    lane.env.curiosity_weight = 0.1;
    lane.agent.n_step = 1;
    lane.agent.learn_start = 1;
    lane.agent.curiosity_every = 1 << 20;
    lane.agent.eps_start = lane.agent.eps_end = 0.1;
    ho_rng_key(1, 0, 0, 0, lane.rng_key);
    must(b, ho_cohort_create(b->backend, b->market, &key, 1, &c, &b->err));
    must(b, ho_lane_start(c, 0, &lane, &b->err));
    return c;
}

static ho_cohort_key reference_key(const bench *b, int episodes)
{
    ho_cohort_key key = ho_cohort_key_defaults(HO_DQN);
    key.replay_capacity = 204800;
    key.batch = 1024;
    key.episodes = episodes;
    key.curiosity = 1;
    key.updates = 0;
    key.precision = b->precision;
    return key;
}

static double epoch_s(bench *b, ho_cohort *c)
{
    ho_epoch_stat stat;
    const double start = now_s();
    must(b, ho_cohort_run_epoch(c, &stat, &b->err));
    if (stat.state != HO_LANE_ACTIVE) {
        fprintf(stderr, "bench_cpu: the lane diverged\n");
        exit(1);
    }
    return now_s() - start;
}

static void bench_collect(bench *b, int episodes, const char *name)
{
    double seconds[RUNS_MAX];
    ho_cohort_key key = reference_key(b, episodes);
    key.replay = HO_REPLAY_PER; /* its first priorities are the td errors */
    ho_cohort *c = open_lane(b, key);
    (void)epoch_s(b, c);
    for (int i = 0; i < b->runs; i++) {
        seconds[i] = epoch_s(b, c);
    }
    print_rate(b, name, (double)key.episodes * key.episode_length, "experiences", seconds);
    ho_cohort_destroy(&c);
}

/* The difference of epochs with and without updates. */
static void bench_learn(bench *b)
{
    double seconds[RUNS_MAX];
    ho_cohort_key key = reference_key(b, 128);
    ho_cohort *without = open_lane(b, key);
    key.updates = LEARN_UPDATES;
    ho_cohort *with = open_lane(b, key);
    for (int i = 0; i < 2; i++) {
        (void)epoch_s(b, without);
        (void)epoch_s(b, with);
    }
    for (int i = 0; i < b->runs; i++) {
        const double collect = epoch_s(b, without);
        seconds[i] = epoch_s(b, with) - collect;
    }
    print_rate(b, "learn, updates of 1,024", LEARN_UPDATES, "updates", seconds);
    ho_cohort_destroy(&without);
    ho_cohort_destroy(&with);
}

static void bench_backtest(bench *b)
{
    double seconds[RUNS_MAX];
    ho_cohort *c = open_lane(b, reference_key(b, 8));
    ho_backtest_request request[WINDOWS];
    ho_backtest_result result[WINDOWS];
    memset(request, 0, sizeof request);
    for (int i = 0; i < WINDOWS; i++) {
        request[i].slot_count = 1;
        request[i].window = (ho_window){i * WINDOW_BARS, (i + 1) * WINDOW_BARS};
    }
    for (int i = 0; i < b->runs; i++) {
        const double start = now_s();
        must(b, ho_backtest(b->market, c, request, WINDOWS, result, &b->err));
        seconds[i] = now_s() - start;
        for (int k = 0; k < WINDOWS; k++) {
            ho_backtest_free(&result[k]);
        }
    }
    print_rate(b, "backtest, 8 windows, greedy", (double)WINDOWS * WINDOW_BARS, "bars", seconds);
    ho_cohort_destroy(&c);
}

int main(int argc, char **argv)
{
    bench b = {.runs = 5};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            b.json = 1;
        } else if (strcmp(argv[i], "--cpu-time") == 0) {
            clock_id = CLOCK_PROCESS_CPUTIME_ID;
        } else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc) {
            b.threads = atoi(argv[++i]);
        } else if (strcmp(argv[i], "--runs") == 0 && i + 1 < argc) {
            b.runs = atoi(argv[++i]);
        } else if (strcmp(argv[i], "--precision") == 0 && i + 1 < argc &&
                   precision_of(argv[i + 1], &b.precision)) {
            i++;
        } else {
            fprintf(stderr, "usage: bench_cpu [--json] [--threads N] [--runs N] [--cpu-time] "
                            "[--precision f32|bf16|fp8]\n");
            return 2;
        }
    }
    if (b.runs < 1 || b.runs > RUNS_MAX) {
        fprintf(stderr, "bench_cpu: 1 to %d runs\n", RUNS_MAX);
        return 2;
    }
    open_market(&b);
    bench_collect(&b, 128, "collect, 128 episodes");
    bench_collect(&b, 8, "collect, 8 episodes");
    bench_learn(&b);
    bench_backtest(&b);
    ho_market_unload(&b.market);
    ho_backend_close(&b.backend);
    return 0;
}
