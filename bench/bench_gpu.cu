/* SPDX-License-Identifier: Apache-2.0
 * The reference workload on one GPU: collect, learn, epoch and backtest at K = 1, 32, 128 lanes,
 * one line a figure, with the share of the physical limit; the same as JSON in bench_gpu.json.
 * usage: bench_gpu [OUT.json [K [PART]]]
 *   K     that many lanes only (0: 1, 32 and 128); 32: the other forms of DQN, too
 *   PART  lanes, learn (of lanes), fp8, backtest, ppo, forms or epoch only
 *
 * Workload: 60 -> 256 -> 256 -> {128 -> 1, 128 -> 45}, bf16, 1,000,000 bars of 51 features, market
 * orders, diversity on. collect: 128 episodes x 500 steps a lane. learn: 341 updates of batch 1024.
 * PPO: 128 x 128 steps, 4 passes in minibatches of 4,096; once more with curiosity.
 * epoch: 2,048 x 100 steps + 341 updates. backtest: 8 windows x 100,000 bars a lane, greedy,
 * metrics included. Times are medians; [best]. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/agents/agent_check.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/curiosity.h"
#include "kernels/env/config_check.h"
#include "kernels/env/rng.h"

enum { BARS = 1000000, FEATURES = 51, UPDATES = 341, BATCH = 1024, REPEATS_MAX = 32 };

/* Floating-point operations of an update and of an experience, and the bf16 rate measured with a
 * large product on the H200. */
#define UPDATE_FLOP     1.5521e9
#define EXPERIENCE_FLOP 0.6064e6
#define BF16_RATE       790e12

static ho_err err;

static void check(ho_status rc, const char *what)
{
    if (rc != HO_OK) {
        ho_cuda_err(rc, &err);
        fprintf(stderr, "%s: %s: %s\n", what, ho_status_name(rc), err.text);
        exit(1);
    }
}

static void check_cuda(cudaError_t rc, const char *what)
{
    if (rc != cudaSuccess) {
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(rc));
        exit(1);
    }
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct timing {
    double median, best; /* ms */
} timing;

static timing summarise(double *ms, int n)
{
    qsort(ms, (size_t)n, sizeof *ms, by_value);
    const timing t = {ms[n / 2], ms[0]};
    return t;
}

/* ---- the market ---- */

static ho_market *make_market(ho_backend *backend)
{
    float *features = (float *)malloc((size_t)BARS * FEATURES * sizeof *features);
    double *bars = (double *)malloc((size_t)BARS * 5 * sizeof *bars);
    int64_t *open_ns = (int64_t *)malloc(BARS * sizeof *open_ns);
    int32_t *session = (int32_t *)malloc(BARS * sizeof *session);
    uint64_t state = 1;
    double close = 4000.0;
    for (int64_t t = 0; t < BARS; t++) {
        for (int i = 0; i < FEATURES; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            features[t * FEATURES + i] = (float)((double)(state >> 11) / 4503599627370496.0 - 1.0);
        }
        state = state * 6364136223846793005u + 1442695040888963407u;
        const double move = ((double)(state >> 11) / 4503599627370496.0 - 1.0) * 1e-3;
        const double open = close;
        close *= 1.0 + move;
        bars[t * 5 + HO_OPEN] = open;
        bars[t * 5 + HO_HIGH] = fmax(open, close) * 1.0002;
        bars[t * 5 + HO_LOW] = fmin(open, close) * 0.9998;
        bars[t * 5 + HO_CLOSE] = close;
        bars[t * 5 + HO_VOLUME] = 1000.0;
        open_ns[t] = t * 60000000000;
        session[t] = (int32_t)(t / 1380);
    }
    ho_market_data data = {};
    data.T = BARS;
    data.F = FEATURES;
    data.features = features;
    data.bars = bars;
    data.open_ns = open_ns;
    data.interval_ns = 60000000000;
    data.session = session;
    data.has_volume = 1;
    ho_market *market;
    check(ho_market_load(backend, &data, &market, &err), "market");
    free(features);
    free(bars);
    free(open_ns);
    free(session);
    return market;
}

static ho_cohort_key reference_key(int episodes, int length, int updates)
{
    ho_cohort_key key = ho_cohort_key_defaults(HO_DQN);
    key.market_features = FEATURES;
    key.episodes = episodes;
    key.episode_length = length;
    key.replay_capacity = 204800;
    key.batch = BATCH;
    key.updates = updates;
    key.precision = HO_PRECISION_BF16;
    return key;
}

static ho_lane_config reference_lane(uint64_t trial, int soft_target)
{
    ho_lane_config lane = {};
    lane.env = ho_env_config_defaults();
    lane.env.max_lots = 5;
    lane.env.multiplier = 50.0;
    lane.env.initial_capital = 1e6;
    lane.env.sigma_ref = 6e-4;
    lane.env.profit_target = 40.0;
    lane.env.stop_loss = 30.0;
    lane.env.max_holding = 60;
    lane.env.diversity_penalty = 0.1;
    lane.agent = ho_agent_config_defaults(HO_DQN);
    lane.agent.eps_start = lane.agent.eps_end = 0.05;
    lane.agent.learn_start = 1000;
    lane.agent.learning_rate = 1e-4;
    if (!soft_target) {
        lane.agent.tau = 0.0;
        lane.agent.target_every = 100;
    }
    lane.train.begin = 100;
    lane.train.end = BARS;
    ho_rng_key(1, trial, 0, 0, lane.rng_key);
    return lane;
}

/* weights: all lanes begin with them; NULL: each with its own, which take tens of milliseconds. */
static cuda_cohort *make_cohort_with(ho_backend *b, ho_market *m, const ho_cohort_key *key,
                                     int lanes, int soft_target, const float *weights)
{
    ho_cohort *c;
    check(ho_cohort_create(b, m, key, lanes, &c, &err), "cohort");
    for (int k = 0; k < lanes; k++) {
        ho_lane_config lane = reference_lane((uint64_t)k, soft_target);
        lane.weights = weights;
        check(ho_lane_start(c, k, &lane, &err), "lane");
    }
    return (cuda_cohort *)c;
}

static cuda_cohort *make_cohort(ho_backend *b, ho_market *m, const ho_cohort_key *key, int lanes,
                                int soft_target)
{
    return make_cohort_with(b, m, key, lanes, soft_target, NULL);
}

static void destroy_cohort(cuda_cohort *c)
{
    ho_cohort *base = &c->base;
    ho_cohort_destroy(&base);
}

/* ---- timing with events ---- */

typedef ho_status (*enqueue_fn)(cuda_cohort *c);

/* Captures what `enqueue` launches, warms up, times `repeats` launches. */
static timing time_graph(cuda_cohort *c, enqueue_fn enqueue, int repeats)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaEvent_t from, to;
    double ms[REPEATS_MAX];
    check_cuda(cudaStreamBeginCapture(c->stream, cudaStreamCaptureModeThreadLocal), "capture");
    check(enqueue(c), "enqueue");
    check_cuda(cudaStreamEndCapture(c->stream, &graph), "capture");
    check_cuda(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
    check_cuda(cudaEventCreate(&from), "event");
    check_cuda(cudaEventCreate(&to), "event");
    for (int i = -2; i < repeats; i++) {
        float t;
        check_cuda(cudaEventRecord(from, c->stream), "event");
        check_cuda(cudaGraphLaunch(exec, c->stream), "launch");
        check_cuda(cudaEventRecord(to, c->stream), "event");
        check_cuda(cudaEventSynchronize(to), "wait");
        check_cuda(cudaEventElapsedTime(&t, from, to), "elapsed");
        if (i >= 0) {
            ms[i] = t;
        }
    }
    cudaEventDestroy(from);
    cudaEventDestroy(to);
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    return summarise(ms, repeats);
}

static ho_status enqueue_collect(cuda_cohort *c)
{
    const ho_experience_view *e = &c->experience;
    ho_status rc = ho_epoch_open(e, c->stream);
    rc = rc == HO_OK ? ho_policy_pack(&e->policy, c->learn.online, c->net.params,
                                      (uint8_t *)e->packed, 0, c->capacity, c->stream)
                     : rc;
    rc = rc == HO_OK ? ho_experience_run(e, c->stream) : rc;
    rc = rc == HO_OK ? ho_experience_store(e, c->stream) : rc;
    return rc == HO_OK ? ho_experience_stats(e, c->stream) : rc;
}

static ho_status enqueue_rollout(cuda_cohort *c)
{
    return ho_experience_run(&c->experience, c->stream);
}

static ho_status enqueue_store(cuda_cohort *c)
{
    const ho_status rc = ho_experience_store(&c->experience, c->stream);
    return rc == HO_OK ? ho_experience_stats(&c->experience, c->stream) : rc;
}

static ho_status enqueue_learn(cuda_cohort *c)
{
    ho_status rc = HO_OK;
    for (int u = 0; u < UPDATES && rc == HO_OK; u++) {
        rc = ho_learn_update(&c->learn, u, c->stream);
    }
    return rc;
}

enum { PHASE_REPEATS = 20 };

static ho_status enqueue_first_half(cuda_cohort *c)
{
    ho_status rc = HO_OK;
    for (int u = 0; u < PHASE_REPEATS && rc == HO_OK; u++) {
        if (c->learn.fused) {
            rc = ho_fused_forward_backward(&c->learn, u, c->stream);
            continue;
        }
        rc = ho_learn_gather(&c->learn, u, c->stream);
        rc = rc == HO_OK ? ho_learn_forward(&c->learn, c->stream) : rc;
        rc = rc == HO_OK ? ho_learn_td(&c->learn, c->stream) : rc;
        rc = rc == HO_OK ? ho_learn_backward(&c->learn, c->stream) : rc;
    }
    return rc;
}

static ho_status enqueue_gradient(cuda_cohort *c)
{
    ho_status rc = HO_OK;
    for (int u = 0; u < PHASE_REPEATS && rc == HO_OK; u++) {
        rc = c->learn.fused ? ho_fused_gradient(&c->learn, c->stream)
                            : ho_learn_gradient(&c->learn, c->stream);
    }
    return rc;
}

static ho_status enqueue_adam(cuda_cohort *c)
{
    ho_status rc = HO_OK;
    for (int u = 0; u < PHASE_REPEATS && rc == HO_OK; u++) {
        if (c->learn.fused && c->learn.lanes <= HO_FUSED_FEW) {
            rc = ho_fused_few_gate(&c->learn, c->stream);
            rc = rc == HO_OK ? ho_fused_few_adam(&c->learn, c->stream) : rc;
            continue;
        }
        rc = ho_learn_gate(&c->learn, c->stream);
        rc = rc == HO_OK ? ho_learn_adam(&c->learn, c->stream) : rc;
    }
    return rc;
}

static ho_status enqueue_td(cuda_cohort *c)
{
    return ho_fused_new_td(&c->learn, c->stream);
}

static ho_status enqueue_collect_td(cuda_cohort *c)
{
    const ho_status rc = enqueue_collect(c);
    return rc == HO_OK ? enqueue_td(c) : rc;
}

/* ---- figures ---- */

static FILE *json;
static int json_lines;

static void report(const char *name, int lanes, timing t, double rate, const char *unit,
                   double share)
{
    printf("%-28s K=%3d %10.3f ms [%10.3f] %14.1f %-16s", name, lanes, t.median, t.best, rate,
           unit);
    if (share > 0.0) {
        printf(" %5.1f %% of the limit", 100.0 * share);
    }
    printf("\n");
    fflush(stdout);
    fprintf(json,
            "%s\n  {\"name\": \"%s\", \"lanes\": %d, \"median_ms\": %.4f, \"best_ms\": %.4f, "
            "\"rate\": %.1f, \"unit\": \"%s\", \"share\": %.4f}",
            json_lines++ ? "," : "", name, lanes, t.median, t.best, rate, unit, share);
}

/* The td errors of all new experience, as prioritised replay enters them. */
static void bench_td(cuda_cohort *c, int lanes)
{
    const double steps = 64000.0 * lanes;
    check_cuda(cudaMalloc((void **)&c->learn.new_td, (size_t)steps * sizeof(float)), "td errors");
    check_cuda(cudaMalloc((void **)&c->learn.new_greedy, (size_t)steps), "td errors");
    check_cuda(cudaMalloc((void **)&c->learn.new_list,
                          ho_new_list_room(c->learn.new_rows) * (size_t)lanes * sizeof(int32_t)),
               "td errors");
    check(ho_fused_new_td_prepare(), "td errors");
    const timing td = time_graph(c, enqueue_td, 5);
    report("  td error of new experience", lanes, td, steps / td.median * 1e-3, "M exp/s", 0);
    const timing all = time_graph(c, enqueue_collect_td, 5);
    report("collect, td error included", lanes, all, steps / all.median * 1e-3, "M exp/s",
           steps / (all.median * 1e-3) * EXPERIENCE_FLOP / BF16_RATE);
    check_cuda(cudaFree(c->learn.new_td), "td errors");
    check_cuda(cudaFree(c->learn.new_greedy), "td errors");
    check_cuda(cudaFree(c->learn.new_list), "td errors");
    c->learn.new_td = NULL;
    c->learn.new_greedy = NULL;
    c->learn.new_list = NULL;
}

/* learn_only: no acting, no portable path, and the lanes begin alike */
static void bench_lanes(ho_backend *b, ho_backend *portable, ho_market *m, ho_market *pm, int lanes,
                        int learn_only)
{
    const double steps = 64000.0 * lanes;
    ho_epoch_stat *stat = (ho_epoch_stat *)calloc((size_t)lanes, sizeof *stat);
    const ho_cohort_key key = reference_key(128, 500, UPDATES);
    float *weights = NULL;
    if (learn_only) {
        const ho_lane_config lane = reference_lane(0, 0);
        check(ho_lane_prepare(&key, &lane, &weights, &err), "weights");
    }
    for (int soft = 0; soft < 2; soft++) {
        cuda_cohort *c = make_cohort_with(b, m, &key, lanes, soft, weights);
        check(ho_cohort_run_epoch(&c->base, stat, &err), "epoch");
        for (int k = 0; k < lanes; k++) {
            if (stat[k].state != HO_LANE_ACTIVE || stat[k].updates != UPDATES) {
                fprintf(stderr, "lane %d: state %d guard %d updates %lld\n", k, stat[k].state,
                        stat[k].guard, (long long)stat[k].updates);
                exit(1);
            }
        }
        if (soft && !learn_only) {
            const timing all = time_graph(c, enqueue_collect, 5);
            report("collect", lanes, all, steps / all.median * 1e-3, "M exp/s",
                   steps / (all.median * 1e-3) * EXPERIENCE_FLOP / BF16_RATE);
            const timing roll = time_graph(c, enqueue_rollout, 5);
            report("  rollout kernel alone", lanes, roll, steps / roll.median * 1e-3, "M exp/s", 0);
            const timing store = time_graph(c, enqueue_store, 5);
            report("  replay and statistics", lanes, store, steps / store.median * 1e-3, "M exp/s",
                   0);
            if (c->learn.fused) {
                bench_td(c, lanes);
            }
            check(enqueue_collect(c), "collect"); /* `learning` is set again */
        }
        const timing learn = time_graph(c, enqueue_learn, lanes == 1 ? 15 : 5);
        const double rate = UPDATES * lanes / (learn.median * 1e-3);
        report(soft ? "learn, soft target" : "learn, hard target", lanes, learn, rate, "updates/s",
               rate * UPDATE_FLOP / BF16_RATE);
        if (soft) {
            timing t = time_graph(c, enqueue_first_half, 5);
            report("  forward, td, backward", lanes, t, t.median * 1e3 / PHASE_REPEATS, "us", 0);
            t = time_graph(c, enqueue_gradient, 5);
            report("  weight gradients", lanes, t, t.median * 1e3 / PHASE_REPEATS, "us", 0);
            t = time_graph(c, enqueue_adam, 5);
            report("  gate, Adam, target", lanes, t, t.median * 1e3 / PHASE_REPEATS, "us", 0);
        }
        destroy_cohort(c);
    }
    free(weights);
    if (learn_only) {
        free(stat);
        return;
    }
    cuda_cohort *p = make_cohort(portable, pm, &key, lanes, 1);
    check(ho_cohort_run_epoch(&p->base, stat, &err), "epoch");
    const timing learn = time_graph(p, enqueue_learn, 3);
    const double rate = UPDATES * lanes / (learn.median * 1e-3);
    report("learn, portable path", lanes, learn, rate, "updates/s", rate * UPDATE_FLOP / BF16_RATE);
    destroy_cohort(p);
    free(stat);
}

/* The rollout of the same agents acting in bf16 and in fp8. */
static void bench_fp8(ho_backend *b, ho_market *m, int lanes)
{
    const double steps = 64000.0 * lanes;
    ho_cohort_key key = reference_key(128, 500, UPDATES);
    ho_epoch_stat *stat = (ho_epoch_stat *)calloc((size_t)lanes, sizeof *stat);
    for (int fp8 = 0; fp8 < 2; fp8++) {
        key.precision = fp8 ? HO_PRECISION_FP8 : HO_PRECISION_BF16;
        cuda_cohort *c = make_cohort(b, m, &key, lanes, 1);
        check(ho_cohort_run_epoch(&c->base, stat, &err), "epoch");
        const timing roll = time_graph(c, enqueue_rollout, 9);
        report(fp8 ? "rollout, acting in fp8" : "rollout, acting in bf16", lanes, roll,
               steps / roll.median * 1e-3, "M exp/s", 0);
        destroy_cohort(c);
    }
    free(stat);
}

/* ---- the other forms of DQN, on the portable path ---- */

enum { FORM_LANES = 32, FORM_UPDATES = 64 };

static ho_status enqueue_some_updates(cuda_cohort *c)
{
    ho_status rc = HO_OK;
    for (int u = 0; u < FORM_UPDATES && rc == HO_OK; u++) {
        rc = ho_learn_update(&c->learn, u, c->stream);
    }
    return rc;
}

static ho_status enqueue_first_priorities(cuda_cohort *c)
{
    return ho_learn_first_priorities(&c->learn, c->stream);
}

static void bench_form(ho_backend *portable, ho_market *pm, const char *name,
                       const ho_cohort_key *key)
{
    const double steps = 64000.0 * FORM_LANES;
    char line[64];
    ho_epoch_stat stat[FORM_LANES];
    cuda_cohort *c = make_cohort(portable, pm, key, FORM_LANES, 1);
    check(ho_cohort_run_epoch(&c->base, stat, &err), "epoch");
    if (stat[0].state != HO_LANE_ACTIVE || stat[0].updates != FORM_UPDATES) {
        fprintf(stderr, "%s: state %d guard %d updates %lld\n", name, stat[0].state, stat[0].guard,
                (long long)stat[0].updates);
        exit(1);
    }
    const timing learn = time_graph(c, enqueue_some_updates, 3);
    snprintf(line, sizeof line, "learn, %s", name);
    report(line, FORM_LANES, learn, FORM_UPDATES * FORM_LANES / (learn.median * 1e-3), "updates/s",
           0);
    if (key->noisy || key->atoms || key->branching) {
        const timing roll = time_graph(c, enqueue_rollout, 3);
        snprintf(line, sizeof line, "  rollout, %s", name);
        report(line, FORM_LANES, roll, steps / roll.median * 1e-3, "M exp/s", 0);
    }
    if (key->replay != HO_REPLAY_UNIFORM) {
        const timing first = time_graph(c, enqueue_first_priorities, 3);
        snprintf(line, sizeof line, "  new experience, %s", name);
        report(line, FORM_LANES, first, steps / first.median * 1e-3, "M exp/s", 0);
    }
    destroy_cohort(c);
}

/* Each part alone and all of them together: what they add to the portable path's updates; and
 * prioritised replay on the path the device takes. */
static void bench_forms(ho_backend *b, ho_market *m, ho_backend *portable, ho_market *pm)
{
    const ho_cohort_key base = reference_key(128, 500, FORM_UPDATES);
    ho_cohort_key key = base;
    key.dueling = 0;
    bench_form(portable, pm, "not dueling", &key);
    key = base;
    key.replay = HO_REPLAY_PER;
    bench_form(portable, pm, "per", &key);
    key.replay = HO_REPLAY_PER_RANK;
    bench_form(portable, pm, "per_rank", &key);
    bench_form(b, m, "per_rank, fused", &key);
    key.replay = HO_REPLAY_PER;
    bench_form(b, m, "per, fused", &key);
    key = base;
    key.branching = 1;
    bench_form(portable, pm, "branching", &key);
    key = base;
    key.noisy = 1;
    bench_form(portable, pm, "noisy", &key);
    key = base;
    key.atoms = 51;
    bench_form(portable, pm, "c51", &key);
    key.branching = key.noisy = 1;
    key.replay = HO_REPLAY_PER;
    bench_form(portable, pm, "all", &key);
}

/* ---- PPO and curiosity ---- */

enum { PPO_EPISODES = 128, PPO_ROLLOUT = 128, PPO_BATCH = 4096, PPO_PASSES = 4 };
/* Forward and backward of a row: gpu-guide's 0.877 MFLOP of the reference network. */
#define PPO_ROW_FLOP 0.877e6

static ho_status enqueue_ppo_rollout(cuda_cohort *c)
{
    return ho_ppo_rollout(&c->ppo, c->stream);
}

static ho_status enqueue_ppo_updates(cuda_cohort *c)
{
    ho_status rc = HO_OK;
    for (int first = 0; first < PPO_EPISODES * PPO_ROLLOUT && rc == HO_OK; first += PPO_BATCH) {
        rc = ho_ppo_update(&c->ppo, 0, first, c->stream);
    }
    return rc;
}

static ho_status enqueue_curiosity(cuda_cohort *c)
{
    return ho_curiosity_train(&c->experience, c->ppo.row, c->ppo.row_count,
                              (float *)c->experience.curiosity, c->stream);
}

/* An epoch of the default PPO: 128 x 128 steps, 4 passes in minibatches of 4,096. separate: the
 * value has a network of its own. curious: with the forward model, trained every epoch. */
static void bench_ppo(ho_backend *b, ho_market *m, int lanes, int separate, int curious)
{
    ho_cohort_key key = ho_cohort_key_defaults(HO_PPO);
    key.market_features = FEATURES;
    key.precision = HO_PRECISION_BF16;
    key.episodes = PPO_EPISODES;
    key.rollout = PPO_ROLLOUT;
    key.batch = PPO_BATCH;
    key.ppo_epochs = PPO_PASSES;
    key.ppo_separate = separate;
    key.curiosity = curious;
    const double steps = (double)PPO_EPISODES * PPO_ROLLOUT * lanes;
    const double updates = (double)PPO_EPISODES * PPO_ROLLOUT / PPO_BATCH * lanes;
    ho_epoch_stat *stat = (ho_epoch_stat *)calloc((size_t)lanes, sizeof *stat);
    ho_cohort *base;
    double ms[5];
    check(ho_cohort_create(b, m, &key, lanes, &base, &err), "cohort");
    cuda_cohort *c = (cuda_cohort *)base;
    for (int k = 0; k < lanes; k++) {
        ho_lane_config lane = reference_lane((uint64_t)k, 1);
        lane.agent = ho_agent_config_defaults(HO_PPO);
        lane.agent.target_kl = 0.0; /* every update is taken */
        lane.agent.curiosity_every = 1;
        lane.env.curiosity_weight = curious ? 0.01 : 0.0;
        check(ho_lane_start(base, k, &lane, &err), "lane");
    }
    for (int i = -1; i < 5; i++) {
        const double from = now_ms();
        check(ho_cohort_run_epoch(base, stat, &err), "epoch");
        if (i >= 0) {
            ms[i] = now_ms() - from;
        }
    }
    for (int k = 0; k < lanes; k++) {
        if (stat[k].state != HO_LANE_ACTIVE || stat[k].updates != ho_epoch_updates(&key)) {
            fprintf(stderr, "lane %d: state %d guard %d updates %lld\n", k, stat[k].state,
                    stat[k].guard, (long long)stat[k].updates);
            exit(1);
        }
    }
    timing t = summarise(ms, 5);
    report(separate  ? "PPO epoch, separate"
           : curious ? "PPO epoch, curious"
                     : "PPO epoch",
           lanes, t, steps / t.median * 1e-3, "M exp/s", 0);
    t = time_graph(c, enqueue_rollout, 5);
    report("  rollout kernel", lanes, t, steps / t.median * 1e-3, "M exp/s", 0);
    if (curious) {
        t = time_graph(c, enqueue_curiosity, 5);
        report("  forward model, one pass", lanes, t, steps / t.median * 1e-3, "M exp/s", 0);
    } else {
        t = time_graph(c, enqueue_ppo_rollout, 5);
        report("  values and advantages", lanes, t, steps / t.median * 1e-3, "M exp/s", 0);
        t = time_graph(c, enqueue_ppo_updates, 5);
        report("  minibatches of 4,096", lanes, t, updates / (t.median * 1e-3), "updates/s",
               updates * PPO_BATCH * PPO_ROW_FLOP / (t.median * 1e-3) / BF16_RATE);
    }
    free(stat);
    ho_cohort_destroy(&base);
}

static void bench_epoch(ho_backend *b, ho_market *m)
{
    const ho_cohort_key key = reference_key(2048, 100, UPDATES);
    cuda_cohort *c = make_cohort(b, m, &key, 1, 1);
    ho_epoch_stat stat;
    double ms[10];
    check(ho_cohort_run_epoch(&c->base, &stat, &err), "epoch");
    const long waits = ho_cuda_wait_count();
    for (int i = 0; i < 10; i++) {
        const double from = now_ms();
        check(ho_cohort_run_epoch(&c->base, &stat, &err), "epoch");
        ms[i] = now_ms() - from;
    }
    report("epoch 204,800 + 341 updates", 1, summarise(ms, 10), 0, "", 0);
    printf("host waits an epoch: %.1f, at its end; inside it: 0 (one graph launch)\n",
           (double)(ho_cuda_wait_count() - waits) / 10);
    destroy_cohort(c);
}

static void bench_backtest(ho_backend *b, ho_market *m, int lanes)
{
    const ho_cohort_key key = reference_key(8, 500, 1);
    cuda_cohort *c = make_cohort(b, m, &key, lanes, 1);
    const int n = 8 * lanes;
    ho_backtest_request *requests = (ho_backtest_request *)calloc((size_t)n, sizeof *requests);
    ho_backtest_result *results = (ho_backtest_result *)calloc((size_t)n, sizeof *results);
    double ms[3], bars = 0.0;
    for (int i = 0; i < n; i++) {
        requests[i].policy = HO_POLICY_GREEDY;
        requests[i].slots[0] = i / 8;
        requests[i].slot_count = 1;
        requests[i].window.begin = 1000 + (int64_t)(i % 8) * 110000;
        requests[i].window.end = requests[i].window.begin + 100000;
    }
    for (int r = 0; r < 3; r++) {
        const double from = now_ms();
        check(ho_backtest(m, &c->base, requests, n, results, &err), "backtest");
        ms[r] = now_ms() - from;
        bars = 0.0;
        for (int i = 0; i < n; i++) {
            bars += (double)results[i].bars;
            ho_backtest_free(&results[i]);
        }
    }
    const timing t = summarise(ms, 3);
    report("backtest 8 x 100,000 bars", lanes, t, bars / t.median * 1e-3, "M bars/s", 0);
    free(requests);
    free(results);
    destroy_cohort(c);
}

/* part: of the command line, or NULL for all */
static int wanted(const char *part, const char *name)
{
    return !part || strcmp(part, name) == 0;
}

int main(int argc, char **argv)
{
    static const int lanes[] = {1, 32, 128};
    ho_backend_options options = ho_backend_defaults();
    ho_backend *b, *portable;
    ho_device_info info;
    options.kind = HO_BACKEND_CUDA;
    if (ho_backend_gpu_count() == 0) {
        printf("no GPU: skipped\n");
        return 77;
    }
    check(ho_backend_open(&b, &options, &err), "backend");
    options.force_portable = 1;
    check(ho_backend_open(&portable, &options, &err), "backend");
    check(ho_backend_info(b, &info, &err), "info");
    if (!(json = fopen(argc > 1 ? argv[1] : "bench_gpu.json", "w"))) {
        perror("bench_gpu.json");
        return 1;
    }
    printf("%s, %s, driver %s\n", info.name, info.toolkit, info.driver);
    fprintf(json, "{\"device\": \"%s\", \"toolkit\": \"%s\", \"figures\": [", info.name,
            info.toolkit);
    ho_market *m = make_market(b), *pm = make_market(portable);
    const int only = argc > 2 ? atoi(argv[2]) : 0;
    const char *part = argc > 3 ? argv[3] : NULL;
    for (int i = 0; i < 3; i++) {
        if (only && only != lanes[i]) {
            continue;
        }
        if (wanted(part, "lanes") || wanted(part, "learn")) {
            bench_lanes(b, portable, m, pm, lanes[i], part && strcmp(part, "learn") == 0);
        }
        if (wanted(part, "fp8")) {
            bench_fp8(b, m, lanes[i]);
        }
        if (wanted(part, "backtest")) {
            bench_backtest(b, m, lanes[i]);
        }
        if (wanted(part, "ppo")) {
            bench_ppo(b, m, lanes[i], 0, 0);
            bench_ppo(b, m, lanes[i], 1, 0);
            bench_ppo(b, m, lanes[i], 0, 1);
        }
        if (lanes[i] == FORM_LANES && wanted(part, "forms")) {
            bench_forms(b, m, portable, pm);
        }
    }
    if (wanted(part, "epoch")) {
        bench_epoch(b, m);
    }
    fprintf(json, "\n]}\n");
    fclose(json);
    ho_market_unload(&m);
    ho_market_unload(&pm);
    ho_backend_close(&b);
    ho_backend_close(&portable);
    return 0;
}
