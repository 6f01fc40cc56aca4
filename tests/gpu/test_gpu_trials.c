/* SPDX-License-Identifier: Apache-2.0
 * Whole trials on the GPU: a small study's objective against the CPU's, td errors of new experience
 * against a plain evaluation, device memory over many trials and epochs. */
#include <cuda_runtime.h>
#include <stdlib.h>

#include "agents/world.h"
#include "check.h"
#include "gpu/run.h"
#include "gpu/sizes.h"
#include "kernels/cuda/cuda_backend.h"

enum { SEEDS = 20, BARS = 2000 };

static world *open_path(ho_backend_kind kind, int F, int portable)
{
    ho_backend_options options = ho_backend_defaults();
    options.kind = kind;
    options.force_portable = portable;
    options.threads = 4;
    return world_new_on(WORLD_SIGNAL, BARS, 4, F, &options);
}

static world *open_world(ho_backend_kind kind, int F)
{
    return open_path(kind, F, 0);
}

/* ---- the objective ---- */

/* Sharpe ratios of SEEDS agents, trained and scored. */
static void study(ho_backend_kind kind, ho_precision precision, double score[SEEDS])
{
    ho_epoch_stat stat[SEEDS];
    world *w = open_world(kind, WORLD_FEATURES);
    ho_cohort_key key = world_key(w, HO_DQN);
    key.updates = 40;
    key.precision = precision;
    ho_cohort *c = world_cohort(w, &key, SEEDS);
    for (int k = 0; k < SEEDS; k++) {
        ho_err err;
        ho_lane_config lane = world_lane(w, &key, (uint64_t)k);
        CHECK_OK(ho_lane_start(c, k, &lane, &err), &err);
    }
    world_run(c, 12, stat);
    for (int k = 0; k < SEEDS; k++) {
        ho_backtest_result r;
        world_score(w, c, k, NULL, NULL, &r);
        assert_int_equal(stat[k].updates, 40);
        score[k] = r.metrics.value[HO_METRIC_SHARPE];
        ho_backtest_free(&r);
    }
    ho_cohort_destroy(&c);
    world_free(&w);
}

static double mean_of(const double *x, double *error)
{
    double sum = 0.0, square = 0.0;
    for (int i = 0; i < SEEDS; i++) {
        sum += x[i];
    }
    for (int i = 0; i < SEEDS; i++) {
        square += (x[i] - sum / SEEDS) * (x[i] - sum / SEEDS);
    }
    *error = sqrt(square / (SEEDS - 1) / SEEDS);
    return sum / SEEDS;
}

static void the_mean_objective_of_20_seeds_is_the_cpus(void **state)
{
    (void)state;
    double cpu[SEEDS], gpu[SEEDS], cpu_error, gpu_error;
    study(HO_BACKEND_CPU, HO_PRECISION_F32, cpu);
    const double want = mean_of(cpu, &cpu_error);
    for (int bf16 = 0; bf16 < 2; bf16++) {
        study(HO_BACKEND_CUDA, bf16 ? HO_PRECISION_BF16 : HO_PRECISION_F32, gpu);
        const double got = mean_of(gpu, &gpu_error);
        const double bound = 2.0 * sqrt(cpu_error * cpu_error + gpu_error * gpu_error);
        print_message("Sharpe of %d seeds: CPU %.3f +- %.3f, CUDA %s %.3f +- %.3f\n", SEEDS, want,
                      cpu_error, bf16 ? "bf16" : "f32", got, gpu_error);
        CHECK_NEAR(got, want, bound);
    }
}

/* ---- td errors of new experience ---- */

static float rounded(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Values of the 45 actions by a plain walk over the layers, rounded to bf16 where the kernels
 * round. weights: [params] in the device's layout, rounded already. */
static void values_of(const ho_device_net *net, const float *weights, const float *features,
                      const float *portfolio, float *q)
{
    float in[512] = {0}, out[512];
    for (int i = 0; i < net->market + net->portfolio; i++) {
        in[i] = rounded(i < net->market ? features[i] : portfolio[i - net->market]);
    }
    for (int l = 0; l < HO_DEVICE_LAYERS; l++) {
        const ho_device_dense *d = &net->layer[l];
        for (int o = 0; o < d->out; o++) {
            float sum = 0.0f;
            for (int i = 0; i < d->in; i++) {
                sum += weights[d->weight + o * d->in + i] * in[i];
            }
            sum += weights[d->bias + o];
            out[o] = l == HO_DEVICE_LAYERS - 1 ? sum : rounded(sum > 0.0f ? sum : 0.01f * sum);
        }
        memcpy(in, out, sizeof in);
    }
    float mean = 0.0f;
    for (int a = 0; a < HO_ACTIONS; a++) {
        mean += out[a] / HO_ACTIONS;
    }
    for (int a = 0; a < HO_ACTIONS; a++) {
        q[a] = out[HO_ACTIONS] + out[a] - mean;
    }
}

static void *fetched(const void *device, size_t bytes)
{
    void *host = malloc(bytes);
    assert_int_equal(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
    return host;
}

/* A lane's parameters with its matrices rounded to bf16. */
static float *fetched_weights(const ho_device_net *net, const float *device)
{
    float *w = fetched(device, (size_t)net->params * sizeof *w);
    for (int i = 0; i < net->weights; i++) {
        w[i] = rounded(w[i]);
    }
    return w;
}

static void new_experience_gets_its_td_error(void **state)
{
    (void)state;
    enum { LANES = 3, LANE = 1 };
    ho_epoch_stat stat[LANES];
    world *w = open_world(HO_BACKEND_CUDA, HO_MARKET_FEATURES);
    for (int capacity = 500; capacity <= 4000; capacity += 3500) { /* wraps, and does not */
        ho_cohort_key key = world_key(w, HO_DQN);
        key.hidden1 = key.hidden2 = 256;
        key.head = 128;
        key.batch = 128;
        key.updates = 5;
        key.episodes = 19;
        key.replay_capacity = capacity;
        key.precision = HO_PRECISION_BF16;
        cuda_cohort *c = (cuda_cohort *)world_cohort(w, &key, LANES);
        if (!c->learn.fused) {
            ho_cohort *base = &c->base;
            ho_cohort_destroy(&base);
            world_free(&w);
            skip(); /* no sm_90a */
        }
        const size_t rows = (size_t)c->learn.new_rows;
        float *errors;
        uint8_t *greedy;
        int32_t *list;
        assert_int_equal(cudaMalloc((void **)&errors, LANES * rows * sizeof *errors), cudaSuccess);
        assert_int_equal(cudaMalloc((void **)&greedy, LANES * rows), cudaSuccess);
        assert_int_equal(
            cudaMalloc((void **)&list, LANES * sizeof *list * ho_new_list_room(c->learn.new_rows)),
            cudaSuccess);
        c->learn.new_td = errors;
        c->learn.new_greedy = greedy;
        c->learn.new_list = list;
        assert_int_equal(ho_fused_new_td_prepare(), HO_OK);
        for (int k = 0; k < LANES; k++) {
            ho_err err;
            ho_lane_config lane = world_lane(w, &key, (uint64_t)k);
            lane.agent.eps_start = 0.3;
            lane.agent.n_step = 1 + k;
            lane.agent.tau = 0.0; /* the target network is another one */
            lane.agent.learn_start = 1;
            CHECK_OK(ho_lane_start(&c->base, k, &lane, &err), &err);
        }
        world_run(&c->base, 3, stat);
        assert_int_equal(ho_fused_new_td(&c->learn, c->stream), HO_OK);
        assert_int_equal(ho_cuda_wait(c->stream, "td errors"), HO_OK);
        const ho_device_net *net = &c->net;
        const size_t at = (size_t)LANE * (size_t)net->params;
        float *online = fetched_weights(net, c->learn.online + at);
        float *target = fetched_weights(net, c->learn.target + at);
        float *got = fetched(errors + LANE * rows, rows * sizeof *got);
        ho_lane_device *lane = fetched(c->learn.lane + LANE, sizeof *lane);
        ho_replay_record *ring = fetched(c->learn.replay + (size_t)LANE * (size_t)capacity,
                                         (size_t)capacity * sizeof *ring);
        const int made = key.episodes * key.episode_length;
        assert_int_equal(lane->stored, made < capacity ? made : capacity);
        double worst = 0.0, sum = 0.0;
        int far = 0;
        for (int i = 0; i < lane->stored; i++) {
            float q[HO_ACTIONS], next[HO_ACTIONS], next_target[HO_ACTIONS];
            const ho_replay_record *r = &ring[ho_new_slot(lane, i, capacity)];
            values_of(net, online, w->features + (int64_t)r->bar * w->F, r->portfolio, q);
            values_of(net, online, w->features + (int64_t)r->next_bar * w->F, r->next_portfolio,
                      next);
            values_of(net, target, w->features + (int64_t)r->next_bar * w->F, r->next_portfolio,
                      next_target);
            const float y = r->reward + r->discount * next_target[ho_argmax(next, HO_ACTIONS)];
            const double error = fabs((double)got[i] - fabs((double)(q[r->action] - y)));
            sum += error;
            worst = error > worst ? error : worst;
            far += error > 0.02; /* two actions that the sums' order decides between */
        }
        print_message("ring of %d: %d td errors, mean distance %.2e, worst %.2e, far %d\n",
                      capacity, lane->stored, sum / lane->stored, worst, far);
        assert_true(sum / lane->stored < 2e-3 && far <= lane->stored / 50);
        free(online);
        free(target);
        free(got);
        free(lane);
        free(ring);
        c->learn.new_td = NULL;
        c->learn.new_greedy = NULL;
        c->learn.new_list = NULL;
        assert_int_equal(cudaFree(errors), cudaSuccess);
        assert_int_equal(cudaFree(greedy), cudaSuccess);
        assert_int_equal(cudaFree(list), cudaSuccess);
        ho_cohort *base = &c->base;
        ho_cohort_destroy(&base);
    }
    world_free(&w);
}

/* ---- prioritised replay, fused ---- */

typedef struct per_run {
    ho_epoch_stat stat;
    float *td; /* [rows] of new experience; NULL: not asked for */
    int fused;
} per_run;

/* One epoch of random actions, so that both paths store the same transitions; with updates == 0
 * the leaves are those of new experience. */
static per_run run_per(int portable, ho_replay_kind replay, int updates, int rows)
{
    ho_err err;
    per_run r = {.td = NULL};
    world *w = open_path(HO_BACKEND_CUDA, HO_MARKET_FEATURES, portable);
    ho_cohort_key key = world_key(w, HO_DQN);
    key.hidden1 = key.hidden2 = 256;
    key.head = 128;
    key.batch = 256;
    key.updates = updates > 0 ? updates : 1;
    key.episodes = 19;
    key.replay_capacity = 2000;
    key.replay = replay;
    key.precision = HO_PRECISION_BF16;
    cuda_cohort *c = (cuda_cohort *)world_cohort(w, &key, 1);
    ho_lane_config lane = world_lane(w, &key, 5);
    lane.agent.eps_start = lane.agent.eps_end = 1.0;
    lane.agent.learn_start = updates > 0 ? 1 : 1 << 20;
    CHECK_OK(ho_lane_start(&c->base, 0, &lane, &err), &err);
    world_run(&c->base, 1, &r.stat);
    r.fused = c->learn.fused;
    if (updates == 0) {
        r.td = fetched(c->learn.priority.leaf, (size_t)rows * sizeof *r.td);
    }
    CHECK_OK(ho_cuda_cohort_check_guards(&c->base, &err), &err);
    ho_cohort *base = &c->base;
    ho_cohort_destroy(&base);
    world_free(&w);
    return r;
}

static void prioritised_replay_is_alike_on_both_paths(void **state)
{
    (void)state;
    enum { ROWS = 19 * 50 };
    per_run a = run_per(0, HO_REPLAY_PER_RANK, 0, ROWS); /* its leaves are the errors' bits */
    if (!a.fused) {
        free(a.td);
        skip(); /* no sm_90a */
    }
    per_run b = run_per(1, HO_REPLAY_PER_RANK, 0, ROWS);
    int far = 0;
    for (int i = 0; i < ROWS; i++) {
        far += !(fabsf(a.td[i] - b.td[i]) <= 0.02f);
    }
    print_message("first priorities: %d of %d far apart\n", far, (int)ROWS);
    assert_true(far <= ROWS / 50);
    free(a.td);
    free(b.td);
    for (int rank = 0; rank < 2; rank++) {
        const ho_replay_kind kind = rank ? HO_REPLAY_PER_RANK : HO_REPLAY_PER;
        a = run_per(0, kind, 3, ROWS);
        b = run_per(1, kind, 3, ROWS);
        print_message("rank %d: loss %.6f %.6f td %.6f %.6f norm %.5f %.5f q %.5f %.5f\n", rank,
                      a.stat.loss_mean, b.stat.loss_mean, a.stat.td_error_mean,
                      b.stat.td_error_mean, a.stat.grad_norm, b.stat.grad_norm, a.stat.q_mean,
                      b.stat.q_mean);
        assert_true(a.stat.updates == 3 && b.stat.updates == 3);
        /* a leaf that differs in its last bits may move a draw to its neighbour */
        CHECK_CLOSE(a.stat.loss_mean, b.stat.loss_mean, 0.15);
        CHECK_CLOSE(a.stat.td_error_mean, b.stat.td_error_mean, 0.1);
        CHECK_CLOSE(a.stat.grad_norm, b.stat.grad_norm, 0.3);
    }
}

/* ---- memory ---- */

static size_t free_memory(world *w)
{
    ho_err err;
    ho_device_info info;
    CHECK_OK(ho_backend_info(w->backend, &info, &err), &err);
    return info.memory_free;
}

/* HYPEROPT_TEST_TRIALS: fewer where time is short. */
static void memory_is_flat_over_2000_short_trials(void **state)
{
    (void)state;
    const char *wanted = getenv("HYPEROPT_TEST_TRIALS");
    const int trials = wanted ? atoi(wanted) : gpu_size(2000, 20), first = trials / 10;
    ho_epoch_stat stat[4];
    world *w = open_world(HO_BACKEND_CUDA, WORLD_FEATURES);
    size_t early = 0, least = SIZE_MAX;
    for (int trial = 0; trial < trials; trial++) {
        ho_err err;
        ho_cohort_key key = world_key(w, HO_DQN);
        key.hidden1 = 16 * (1 + trial % 7);
        key.hidden2 = trial % 3 ? 48 : 32;
        key.head = trial % 2 ? 32 : 16;
        key.batch = 32 << trial % 3;
        key.episodes = 8 + trial % 5;
        key.episode_length = 10 + trial % 9;
        key.updates = 2;
        key.precision = trial % 5 ? HO_PRECISION_BF16 : HO_PRECISION_F32;
        ho_cohort *c = world_cohort(w, &key, 1 + trial % 4);
        ho_lane_config lane = world_lane(w, &key, (uint64_t)trial);
        lane.agent.learn_start = 1;
        CHECK_OK(ho_lane_start(c, 0, &lane, &err), &err);
        world_run(c, 1, stat);
        assert_int_equal(stat[0].updates, 2);
        ho_cohort_destroy(&c);
        if (trial >= first) {
            const size_t left = free_memory(w);
            early = trial == first ? left : early;
            least = left < least ? left : least;
        }
    }
    print_message("free after %d trials %zu MB, least of %d trials %zu MB\n", first + 1,
                  early >> 20, trials, least >> 20);
    assert_true(least + (64u << 20) >= early);
    world_free(&w);
}

static void memory_is_flat_over_200_epochs(void **state)
{
    (void)state;
    ho_err err;
    ho_epoch_stat stat;
    world *w = open_world(HO_BACKEND_CUDA, WORLD_FEATURES);
    ho_cohort_key key = world_key(w, HO_DQN);
    key.updates = 4;
    ho_cohort *c = world_cohort(w, &key, 1);
    const ho_lane_config lane = world_lane(w, &key, 1);
    CHECK_OK(ho_lane_start(c, 0, &lane, &err), &err);
    world_run(c, 5, &stat);
    const size_t early = free_memory(w);
    world_run(c, gpu_size(195, 5), &stat);
    assert_int_equal(stat.epoch, gpu_size(200, 10));
    assert_int_equal(free_memory(w), early);
    ho_cohort_destroy(&c);
    world_free(&w);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_experience_gets_its_td_error),
        cmocka_unit_test(prioritised_replay_is_alike_on_both_paths),
        cmocka_unit_test(the_mean_objective_of_20_seeds_is_the_cpus),
        cmocka_unit_test(memory_is_flat_over_200_epochs),
        cmocka_unit_test(memory_is_flat_over_2000_short_trials),
    };
    return GPU_TESTS_RUN(tests, argc, argv);
}
