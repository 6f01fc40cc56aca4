/* SPDX-License-Identifier: Apache-2.0
 * Environment steps per second and core (training form and backtest), and the metrics of 1,000
 * series of 100,000 returns (bench/numpy_metrics.py does the same with numpy).
 * usage: bench_env [--json]     median and best of five runs, one thread, processor time */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/backend.h"
#include "kernels/env/config_check.h"
#include "kernels/env/market_host.h"
#include "kernels/env/step.h"
#include "kernels/metrics/metrics.h"

enum { BARS = 100000, EPISODES = 128, STEPS = 500, SERIES = 1000, RETURNS = 100000, RUNS = 5 };

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* of this core: neighbours do not count */
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts seconds. */
static void print_rate(int json, const char *name, double units, const char *unit, double *seconds)
{
    qsort(seconds, RUNS, sizeof *seconds, ascending);
    double median = seconds[RUNS / 2], best = seconds[0];
    if (json) {
        printf("{\"bench\":\"%s\",\"unit\":\"%s/s\",\"median\":%.6g,\"best\":%.6g,"
               "\"seconds\":%.6g}\n",
               name, unit, units / median, units / best, median);
    } else {
        printf("%-34s %12.4g %s/s median, %.4g best (%.3f s), one core\n", name, units / median,
               unit, units / best, median);
    }
}

static ho_market_data make_data(double *bars, int64_t *open_ns, int32_t *session)
{
    const uint32_t key[2] = {1, 2};
    double close = 4000.0;
    for (int32_t t = 0; t < BARS; t++) {
        ho_rng4 r = ho_rng(key, (uint32_t)t, 0, 0, HO_RNG_NOISE, 0);
        double *bar = bars + (int64_t)t * HO_BAR_COLUMNS;
        bar[HO_OPEN] = close;
        close += ho_rng_normal(r.v[0], r.v[1]);
        bar[HO_CLOSE] = close;
        bar[HO_HIGH] = fmax(bar[HO_OPEN], close) + 0.5 * ho_rng_float(r.v[2]);
        bar[HO_LOW] = fmin(bar[HO_OPEN], close) - 0.5 * ho_rng_float(r.v[3]);
        bar[HO_VOLUME] = 100.0 + (double)(r.v[2] % 900);
        open_ns[t] = (int64_t)t * 60000000000;
        session[t] = t / 1380;
    }
    return (ho_market_data){.T = BARS,
                            .bars = bars,
                            .open_ns = open_ns,
                            .interval_ns = 60000000000,
                            .session = session,
                            .has_volume = 1};
}

static ho_env_config settings(void)
{
    ho_env_config c = ho_env_config_defaults();
    c.tick_size = 0.25;
    c.multiplier = 50.0;
    c.max_lots = 4;
    c.initial_capital = 1e6;
    c.stop_loss = 40.0;
    c.profit_target = 40.0;
    c.max_holding = 60;
    c.diversity_penalty = 0.1;
    return c;
}

/* One epoch of a lane: 128 episodes of 500 steps, states included, random actions. */
static double train_epoch(const ho_env_lane *lane, const ho_market_view *m, ho_env *env,
                          uint32_t *rings, uint32_t epoch)
{
    double sum = 0.0;
    float p[HO_PORTFOLIO_FEATURES];
    for (uint32_t slot = 0; slot < EPISODES; slot++) {
        ho_ring ring = {rings + (size_t)slot * HO_RING_WORDS_MAX, 1};
        ho_env_epoch_begin(lane, m, &env[slot], slot, epoch, NULL);
        for (uint32_t s = 0; s < STEPS; s++) {
            ho_step_out out;
            ho_rng4 r = ho_rng(lane->key, s, slot, epoch, HO_RNG_ACTION, 0);
            ho_order order = ho_order_from_action((int32_t)ho_rng_below(r.v[0], HO_ACTIONS));
            ho_env_portfolio(lane, m, &env[slot], p);
            ho_env_step(lane, m, &env[slot], ring, &order, 0.0f, NULL, &out);
            sum += out.reward + p[0];
            if (out.end) {
                ho_env_next(lane, m, &env[slot], &out, s + 1, slot, epoch, NULL);
            }
        }
    }
    return sum;
}

static void bench_steps(int json, ho_market_host *host)
{
    const uint64_t key[2] = {3, 4};
    const double *sigma = NULL;
    double seconds[RUNS], sum = 0.0;
    ho_env_config c = settings();
    ho_env *env = calloc(EPISODES, sizeof *env);
    uint32_t *rings = calloc((size_t)EPISODES * HO_RING_WORDS_MAX, sizeof *rings);
    if (!env || !rings || ho_market_host_sigma(host, c.sigma_window, &sigma, NULL) != HO_OK) {
        exit(1);
    }
    ho_env_lane lane = ho_env_lane_make(&c, (ho_window){0, BARS}, STEPS, 0, key, sigma);
    for (int i = 0; i < EPISODES; i++) {
        ho_env_clear(&env[i]);
    }
    for (uint32_t run = 0; run < RUNS; run++) {
        double start = now_s();
        for (uint32_t e = 0; e < 20; e++) {
            sum += train_epoch(&lane, &host->view, env, rings, run * 20 + e);
        }
        seconds[run] = now_s() - start;
    }
    if (!isfinite(sum)) {
        exit(1);
    }
    print_rate(json, "env step, states included", 20.0 * EPISODES * STEPS, "steps", seconds);
    free(env);
    free(rings);
}

static void bench_backtest(int json, const ho_market_data *data)
{
    ho_err err = {0};
    ho_backend *backend;
    ho_market *market;
    ho_backend_options options = ho_backend_defaults();
    ho_env_config c = settings();
    uint8_t *actions = malloc(BARS);
    double seconds[RUNS];
    const uint32_t key[2] = {5, 6};
    options.threads = 1;
    if (!actions || ho_backend_open(&backend, &options, &err) != HO_OK ||
        ho_market_load(backend, data, &market, &err) != HO_OK) {
        fprintf(stderr, "bench_env: %s\n", err.text);
        exit(1);
    }
    for (uint32_t t = 0; t < BARS; t++) {
        actions[t] = (uint8_t)ho_rng_below(ho_rng(key, t, 0, 0, HO_RNG_ACTION, 0).v[0], HO_ACTIONS);
    }
    ho_backtest_request request = {
        .policy = HO_POLICY_ACTIONS, .window = {0, BARS}, .env = &c, .actions = actions};
    for (int run = 0; run < RUNS; run++) {
        ho_backtest_result result;
        double start = now_s();
        for (int i = 0; i < 10; i++) {
            if (ho_backtest(market, NULL, &request, 1, &result, &err) != HO_OK) {
                fprintf(stderr, "bench_env: %s\n", err.text);
                exit(1);
            }
            ho_backtest_free(&result);
        }
        seconds[run] = now_s() - start;
    }
    print_rate(json, "backtest of actions, metrics too", 10.0 * BARS, "bars", seconds);
    ho_market_unload(&market);
    ho_backend_close(&backend);
    free(actions);
}

static void bench_metrics(int json)
{
    double *r = malloc((size_t)RETURNS * sizeof *r), seconds[RUNS], sum = 0.0;
    const uint32_t key[2] = {7, 8};
    for (uint32_t i = 0; r && i < RETURNS; i++) {
        ho_rng4 u = ho_rng(key, i, 0, 0, HO_RNG_NOISE, 0);
        r[i] = 1e-5 + 1e-3 * ho_rng_normal(u.v[0], u.v[1]);
    }
    for (int run = 0; r && run < RUNS; run++) {
        double start = now_s();
        for (int s = 0; s < SERIES; s++) {
            ho_bar_stats bars;
            ho_metric_set set;
            ho_metrics_input in = ho_metrics_input_defaults();
            double equity = 1e6;
            ho_bar_stats_begin(&bars, equity);
            for (int64_t i = 0; i < RETURNS; i++) {
                equity *= 1.0 + r[i];
                ho_bar_stats_add(&bars, equity, r[i], 1);
            }
            in.initial_capital = 1e6;
            in.bars = &bars;
            in.sessions = r;
            in.session_count = RETURNS;
            in.years = 1.0;
            if (ho_metrics_compute(&in, &set) != HO_OK) {
                exit(1);
            }
            sum += set.value[HO_METRIC_SHARPE];
        }
        seconds[run] = now_s() - start;
    }
    if (!r || !isfinite(sum)) {
        exit(1);
    }
    print_rate(json, "metrics of 1,000 x 100,000 returns", (double)SERIES * RETURNS, "returns",
               seconds);
    free(r);
}

int main(int argc, char **argv)
{
    int json = argc > 1 && strcmp(argv[1], "--json") == 0;
    double *bars = malloc((size_t)BARS * HO_BAR_COLUMNS * sizeof *bars);
    int64_t *open_ns = malloc(BARS * sizeof *open_ns);
    int32_t *session = malloc(BARS * sizeof *session);
    ho_market_host *host = NULL;
    ho_err err = {0};
    if (!bars || !open_ns || !session) {
        return 1;
    }
    ho_market_data data = make_data(bars, open_ns, session);
    if (ho_market_host_create(&data, &host, &err) != HO_OK) {
        fprintf(stderr, "bench_env: %s\n", err.text);
        return 1;
    }
    bench_steps(json, host);
    bench_backtest(json, &data);
    bench_metrics(json);
    ho_market_host_destroy(&host);
    free(bars);
    free(open_ns);
    free(session);
    return 0;
}
