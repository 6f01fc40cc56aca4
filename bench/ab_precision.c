/* SPDX-License-Identifier: Apache-2.0
 * Does a precision change what agents learn? The same study twice: 20 seeds, every one trained and
 * scored with both, on one market with a learnable signal. Prints the mean Sharpe ratio of each on
 * the bars after those of training, its standard error, the relative move, and whether the move is
 * below 5 %, which is what an option must show to be accepted.
 * usage: ab_precision [--cpu] [--small] [--seeds N] [--epochs N] [A B]
 *   A B      two of f32, bf16, fp8 (default bf16 fp8)
 *   --cpu    on the CPU backend (default: on the GPU where there is one)
 *   --small  64 -> 64 -> 32 instead of the reference network 256 -> 256 -> 128: minutes on a CPU
 * Exit status: 0 accepted, 2 not accepted, 1 could not run.
 *
 * Market: 20,000 bars; half a deviation of the next return has the sign of feature 0, the rest is
 * noise, as are the 50 other features. All seeds of a precision are lanes of one cohort. Seed k has
 * the same initial weights, episodes and random numbers on both sides, so the moves are paired. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/agents/agent_check.h"
#include "kernels/backend.h"
#include "kernels/env/config_check.h"
#include "kernels/env/rng.h"

enum { BARS = 20000, FEATURES = HO_MARKET_FEATURES, SEEDS_MAX = 1024 };
static const double MOVE = 0.002, ACCEPTED = 0.05;

static ho_err err;

static void check(ho_status rc, const char *what)
{
    if (rc != HO_OK) {
        fprintf(stderr, "ab_precision: %s: %s: %s\n", what, ho_status_name(rc), err.text);
        exit(1);
    }
}

static void *zeroed(size_t n, size_t size)
{
    void *p = calloc(n, size);
    if (!p) {
        fprintf(stderr, "ab_precision: out of memory\n");
        exit(1);
    }
    return p;
}

/* A sum of twelve uniform numbers: near enough to normal. */
static double normal(uint64_t *state)
{
    double sum = -6.0;
    for (int i = 0; i < 12; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        sum += (double)(*state >> 11) / 9007199254740992.0;
    }
    return sum;
}

static ho_market *make_market(ho_backend *backend)
{
    float *features = zeroed((size_t)BARS * FEATURES, sizeof *features);
    double *bars = zeroed((size_t)BARS * HO_BAR_COLUMNS, sizeof *bars);
    int64_t *open_ns = zeroed(BARS, sizeof *open_ns);
    int32_t *session = zeroed(BARS, sizeof *session);
    uint64_t state = 20;
    double close = 100.0;
    for (int64_t t = 0; t < BARS; t++) {
        double *bar = bars + t * HO_BAR_COLUMNS;
        const double told = t > 0 ? (double)features[(t - 1) * FEATURES] : 0.0;
        bar[HO_OPEN] = close;
        close *= exp(MOVE * (0.5 * (told > 0.0 ? 1.0 : -1.0) + normal(&state)));
        bar[HO_HIGH] = fmax(bar[HO_OPEN], close);
        bar[HO_LOW] = fmin(bar[HO_OPEN], close);
        bar[HO_CLOSE] = close;
        bar[HO_VOLUME] = 1e6;
        for (int i = 0; i < FEATURES; i++) {
            features[t * FEATURES + i] = (float)normal(&state);
        }
        open_ns[t] = t * 60000000000;
        session[t] = (int32_t)(t / 100);
    }
    const ho_market_data data = {.T = BARS,
                                 .F = FEATURES,
                                 .features = features,
                                 .bars = bars,
                                 .open_ns = open_ns,
                                 .interval_ns = 60000000000,
                                 .session = session,
                                 .has_volume = 1};
    ho_market *market;
    check(ho_market_load(backend, &data, &market, &err), "market");
    free(features);
    free(bars);
    free(open_ns);
    free(session);
    return market;
}

typedef struct plan {
    int small, seeds, epochs;
} plan;

static ho_cohort_key key_of(const plan *p, ho_precision precision)
{
    ho_cohort_key key = ho_cohort_key_defaults(HO_DQN);
    key.precision = precision;
    key.market_features = FEATURES;
    key.episodes = 64;
    key.episode_length = 100;
    key.replay_capacity = 65536;
    key.batch = 256;
    key.updates = 100;
    if (p->small) {
        key.hidden1 = key.hidden2 = 64;
        key.head = 32;
    }
    return key;
}

static ho_lane_config lane_of(const plan *p, uint64_t seed)
{
    ho_lane_config lane = {.env = ho_env_config_defaults(),
                           .agent = ho_agent_config_defaults(HO_DQN),
                           .train = {0, BARS / 2}};
    lane.env.max_lots = 1000; /* of 1 unit at 100: the whole capital */
    lane.env.sigma_ref = MOVE;
    lane.env.impact_coef = 0.0;
    lane.env.spread_bps = 0.5;
    lane.env.fee_bps[0] = lane.env.fee_bps[1] = lane.env.fee_bps[2] = 0.5;
    lane.agent.gamma = 0.9;
    lane.agent.n_step = 1;
    lane.agent.tau = 0.01;
    lane.agent.learning_rate = 1e-3;
    lane.agent.schedule = HO_SCHEDULE_LINEAR;
    lane.agent.learn_start = 1000;
    lane.agent.epochs = p->epochs;
    ho_rng_key(7, seed, 0, 0, lane.rng_key);
    return lane;
}

/* Sharpe ratios of all seeds, trained on the first half and scored on the second. */
static void study(ho_backend *backend, ho_market *market, const plan *p, ho_precision precision,
                  double *sharpe)
{
    const ho_cohort_key key = key_of(p, precision);
    ho_epoch_stat *stat = zeroed((size_t)p->seeds, sizeof *stat);
    ho_backtest_request *request = zeroed((size_t)p->seeds, sizeof *request);
    ho_backtest_result *result = zeroed((size_t)p->seeds, sizeof *result);
    ho_cohort *cohort;
    check(ho_cohort_create(backend, market, &key, p->seeds, &cohort, &err), "cohort");
    for (int k = 0; k < p->seeds; k++) {
        const ho_lane_config lane = lane_of(p, (uint64_t)k);
        check(ho_lane_start(cohort, k, &lane, &err), "lane");
        request[k].policy = HO_POLICY_GREEDY;
        request[k].slots[0] = k;
        request[k].slot_count = 1;
        request[k].window.begin = BARS / 2;
        request[k].window.end = BARS;
    }
    for (int i = 0; i < p->epochs; i++) {
        check(ho_cohort_run_epoch(cohort, stat, &err), "epoch");
    }
    check(ho_backtest(market, cohort, request, p->seeds, result, &err), "backtest");
    for (int k = 0; k < p->seeds; k++) {
        if (stat[k].state != HO_LANE_ACTIVE ||
            result[k].metrics.reason[HO_METRIC_SHARPE] != HO_REASON_DEFINED) {
            fprintf(stderr, "ab_precision: seed %d has no Sharpe ratio\n", k);
            exit(1);
        }
        sharpe[k] = result[k].metrics.value[HO_METRIC_SHARPE];
        ho_backtest_free(&result[k]);
    }
    free(stat);
    free(request);
    free(result);
    ho_cohort_destroy(&cohort);
}

/* Mean of n numbers and its standard error. */
static double mean_of(const double *x, int n, double *error)
{
    double sum = 0.0, square = 0.0;
    for (int i = 0; i < n; i++) {
        sum += x[i];
    }
    for (int i = 0; i < n; i++) {
        square += (x[i] - sum / n) * (x[i] - sum / n);
    }
    *error = sqrt(square / (n - 1) / n);
    return sum / n;
}

static int usage(void)
{
    fprintf(stderr, "usage: ab_precision [--cpu] [--small] [--seeds N] [--epochs N] [A B]\n"
                    "A, B: f32, bf16 or fp8; N from 2 to 1024\n");
    return 1;
}

static const char *const names[] = {"f32", "bf16", "fp8"}; /* by ho_precision */

/* -1: no such precision */
static int precision_of(const char *name)
{
    for (int i = 0; i < 3; i++) {
        if (strcmp(names[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

/* 0: not a number in [2, SEEDS_MAX] */
static int count_of(const char *text)
{
    char *end;
    const long n = text ? strtol(text, &end, 10) : 0;
    return n >= 2 && n <= SEEDS_MAX && *end == '\0' ? (int)n : 0;
}

int main(int argc, char **argv)
{
    plan p = {.small = 0, .seeds = 20, .epochs = 30};
    int side[2] = {HO_PRECISION_BF16, HO_PRECISION_FP8}, sides = 0;
    ho_backend_options options = ho_backend_defaults();
    options.kind = ho_backend_gpu_count() > 0 ? HO_BACKEND_CUDA : HO_BACKEND_CPU;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--cpu") == 0) {
            options.kind = HO_BACKEND_CPU;
        } else if (strcmp(argv[i], "--small") == 0) {
            p.small = 1;
        } else if (strcmp(argv[i], "--seeds") == 0 || strcmp(argv[i], "--epochs") == 0) {
            int *count = strcmp(argv[i], "--seeds") == 0 ? &p.seeds : &p.epochs;
            if (!(*count = count_of(argv[++i]))) {
                return usage();
            }
        } else if (sides == 2 || (side[sides++] = precision_of(argv[i])) < 0) {
            return usage();
        }
    }
    if (sides == 1) {
        return usage();
    }
    ho_backend *backend;
    ho_device_info info;
    double *sharpe[2], *moved = zeroed((size_t)p.seeds, sizeof *moved), mean[2], error[2];
    check(ho_backend_open(&backend, &options, &err), "backend");
    check(ho_backend_info(backend, &info, &err), "info");
    ho_market *market = make_market(backend);
    printf("%s, %s network, %d seeds of %d epochs: Sharpe ratio\n", info.name,
           p.small ? "small" : "reference", p.seeds, p.epochs);
    for (int s = 0; s < 2; s++) {
        sharpe[s] = zeroed((size_t)p.seeds, sizeof **sharpe);
        study(backend, market, &p, (ho_precision)side[s], sharpe[s]);
        mean[s] = mean_of(sharpe[s], p.seeds, &error[s]);
        printf("%-4s %9.4f +- %.4f\n", names[side[s]], mean[s], error[s]);
        fflush(stdout);
    }
    for (int k = 0; k < p.seeds; k++) {
        moved[k] = sharpe[1][k] - sharpe[0][k];
    }
    double moved_error;
    const double move = mean_of(moved, p.seeds, &moved_error) / fabs(mean[0]);
    const int accepted = fabs(move) < ACCEPTED;
    printf("mean moved by %+.2f %% +- %.2f %% (paired); below %.0f %%: %s\n", 100.0 * move,
           100.0 * moved_error / fabs(mean[0]), 100.0 * ACCEPTED,
           accepted ? "accepted" : "not accepted");
    free(sharpe[0]);
    free(sharpe[1]);
    free(moved);
    ho_market_unload(&market);
    ho_backend_close(&backend);
    return accepted ? 0 : 2;
}
