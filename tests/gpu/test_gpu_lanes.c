/* SPDX-License-Identifier: Apache-2.0
 * Lanes on the GPU at the reference shape: what decides their bits and what must not, guard zones,
 * memory, several GPUs. Every test runs on the path the device takes and on the portable one; under
 * the emulator (sizes.h) these are one. */
#include <stdlib.h>

#include "agents/world.h"
#include "check.h"
#include "gpu/run.h"
#include "gpu/sizes.h"
#include "kernels/cuda/cuda_backend.h"

enum { BARS = 2000, CROWD = 128 };

/* 0: the path the device takes and then the portable one; 1: the portable one */
static int first_path(void)
{
    return gpu_size(0, 1);
}

static world *open_world(int portable, int device)
{
    ho_backend_options options = ho_backend_defaults();
    options.kind = HO_BACKEND_CUDA;
    options.force_portable = portable;
    options.device = device;
    return world_new_on(WORLD_SIGNAL, BARS, 4, HO_MARKET_FEATURES, &options);
}

static ho_cohort_key reference_key(const world *w)
{
    ho_cohort_key key = world_key(w, HO_DQN);
    key.hidden1 = key.hidden2 = gpu_size(256, 64);
    key.head = gpu_size(128, 32);
    key.batch = gpu_size(256, 96);
    key.updates = gpu_size(30, 4);
    key.episodes = gpu_size(24, 9);
    key.episode_length = gpu_size(key.episode_length, 17);
    key.replay_capacity = 2000;
    key.precision = HO_PRECISION_BF16;
    return key;
}

static ho_lane_config lane_of(const world *w, const ho_cohort_key *key, uint64_t trial)
{
    ho_lane_config lane = world_lane(w, key, trial);
    lane.agent.eps_start = 0.3;
    lane.agent.max_grad_norm = 0.05; /* the clip is at work: the norm's order matters */
    lane.env.diversity_penalty = 0.1;
    lane.env.reset_flags = 0;
    return lane;
}

static void one_lane_has_one_hash(void **state)
{
    (void)state;
    ho_epoch_stat *stat = calloc(CROWD, sizeof *stat);
    for (int portable = first_path(); portable < 2; portable++) {
        world *w = open_world(portable, 0);
        const ho_cohort_key key = reference_key(w);
        const ho_lane_config lane = lane_of(w, &key, 11);
        ho_cohort *alone = world_cohort(w, &key, 1);
        world_start(alone, 0, &lane);
        world_run(alone, 4, stat);
        const uint64_t want = world_hash(alone, 0);
        assert_true(stat[0].updates == key.updates && stat[0].grad_norm > 0.05);
        ho_cohort_destroy(&alone);
        static const int sizes[] = {1, 3, 33, CROWD};
        for (int i = 0; i < gpu_size(4, 2); i++) {
            ho_cohort *c = world_cohort(w, &key, sizes[i]);
            const int slot = sizes[i] / 2;
            for (int k = 0; k < sizes[i]; k++) {
                ho_lane_config other = lane_of(w, &key, 100 + (uint64_t)k);
                other.agent.learning_rate = 1e-3;
                other.agent.tau = 0.0;
                world_start(c, k, k == slot ? &lane : &other);
            }
            world_run(c, 4, stat);
            const uint64_t got = world_hash(c, slot);
            print_message("portable %d, %d lanes: %016llx\n", portable, sizes[i],
                          (unsigned long long)got);
            if (got != want) {
                fail_msg("portable %d, among %d lanes: another hash", portable, sizes[i]);
            }
            ho_cohort_destroy(&c);
        }
        world_free(&w);
    }
    free(stat);
}

static void many_repeats_have_one_hash(void **state)
{
    (void)state;
    ho_epoch_stat stat[8];
    world *w = open_world(0, 0);
    ho_cohort_key key = reference_key(w);
    key.updates = gpu_size(60, 4);
    const ho_lane_config lane = lane_of(w, &key, 11);
    for (int lanes = 1; lanes <= gpu_size(6, 1);
         lanes += 5) { /* the split and the streaming form */
        uint64_t want = 0;
        for (int repeat = 0; repeat < gpu_size(12, 2); repeat++) {
            ho_cohort *c = world_cohort(w, &key, lanes);
            for (int k = 0; k < lanes; k++) {
                world_start(c, k, &lane);
            }
            world_run(c, 2, stat);
            for (int k = 0; k < lanes; k++) {
                const uint64_t got = world_hash(c, k);
                want = want ? want : got;
                if (got != want) {
                    fail_msg("%d lanes, repeat %d, slot %d: another hash", lanes, repeat, k);
                }
            }
            ho_cohort_destroy(&c);
        }
    }
    world_free(&w);
}

/* Few episodes a block have warps that work out offers, fetch bars and finish records beside the
 * network: of a slot's own block, of blocks of up to four, of more. Episodes begin in between. */
static void helping_warps_change_no_bits(void **state)
{
    (void)state;
    ho_epoch_stat stat;
    static const int episodes[] = {5, 400, 1100};
    world *w = open_world(1, 0);
    for (int i = 0; i < gpu_size(3, 1); i++) {
        ho_cohort_key key = reference_key(w);
        key.hidden1 = key.hidden2 = 256;
        key.head = 128;
        key.updates = 1;
        key.batch = 32;
        key.episodes = gpu_size(episodes[i], 12);
        key.episode_length = 7;
        uint64_t hash[2];
        for (int helpers = 0; helpers < 2; helpers++) {
            ho_lane_config lane = lane_of(w, &key, 11);
            lane.env.end_on_barrier = 1; /* so that episodes begin at any step */
            lane.env.stop_loss = 5.0;
            ho_cohort *c = world_cohort(w, &key, 1);
            ho_experience_view *view = &((cuda_cohort *)(void *)c)->experience;
            view->helpers = helpers;
            assert_int_equal(ho_experience_prepare(view, NULL), HO_OK);
            world_start(c, 0, &lane);
            world_run(c, gpu_size(6, 3), &stat);
            hash[helpers] = world_hash(c, 0);
            ho_cohort_destroy(&c);
        }
        if (hash[0] != hash[1]) {
            fail_msg("%d episodes: helpers change bits", key.episodes);
        }
    }
    world_free(&w);
}

/* HYPEROPT_CUDA_GRAPH=0, as profilers want it: the same launches in the same order. */
static void an_epoch_without_its_graph_has_the_same_bits(void **state)
{
    (void)state;
    ho_epoch_stat stat;
    uint64_t hash[2];
    for (int portable = first_path(); portable < 2; portable++) {
        world *w = open_world(portable, 0);
        const ho_cohort_key key = reference_key(w);
        const ho_lane_config lane = lane_of(w, &key, 11);
        for (int graph = 0; graph < 2; graph++) {
            assert_int_equal(setenv("HYPEROPT_CUDA_GRAPH", graph ? "1" : "0", 1), 0);
            ho_cohort *c = world_cohort(w, &key, 1);
            assert_int_equal(((cuda_cohort *)(void *)c)->without_graph, !graph);
            world_start(c, 0, &lane);
            world_run(c, 3, &stat);
            hash[graph] = world_hash(c, 0);
            ho_cohort_destroy(&c);
        }
        assert_int_equal(unsetenv("HYPEROPT_CUDA_GRAPH"), 0);
        assert_true(stat.updates == key.updates && hash[0] == hash[1]);
        world_free(&w);
    }
}

static void resuming_in_another_slot_is_bit_identical(void **state)
{
    (void)state;
    ho_err err;
    ho_epoch_stat stat[5];
    for (int portable = first_path(); portable < 2; portable++) {
        world *w = open_world(portable, 0);
        const ho_cohort_key key = reference_key(w);
        const ho_lane_config lane = lane_of(w, &key, 11);
        ho_cohort *first = world_cohort(w, &key, 1), *second = world_cohort(w, &key, 5);
        void *blob;
        size_t size;
        world_start(first, 0, &lane);
        world_run(first, 3, stat);
        CHECK_OK(ho_lane_save(first, 0, 1, &blob, &size, &err), &err);
        CHECK_OK(ho_lane_restore(second, 3, &lane, blob, size, &err), &err);
        free(blob);
        world_run(first, 3, stat);
        world_run(second, 3, stat);
        assert_true(world_hash(first, 0) == world_hash(second, 3));
        ho_cohort_destroy(&first);
        ho_cohort_destroy(&second);
        world_free(&w);
    }
}

/* rsl_rl 33: one lane's NaN must not spread. */
static void lane_7_of_64_driven_to_nan_leaves_63_equal(void **state)
{
    (void)state;
    enum { LANES = 64 };
    const int lanes = gpu_size(LANES, 9);
    ho_err err;
    ho_epoch_stat stat[LANES];
    for (int portable = first_path(); portable < 2; portable++) {
        world *w = open_world(portable, 0);
        ho_cohort_key key = reference_key(w);
        key.updates = gpu_size(10, 1);
        ho_cohort *sick = world_cohort(w, &key, lanes), *well = world_cohort(w, &key, lanes);
        for (int k = 0; k < lanes; k++) {
            const ho_lane_config lane = lane_of(w, &key, (uint64_t)k);
            world_start(sick, k, &lane);
            if (k != 7) {
                world_start(well, k, &lane);
            }
        }
        world_run(sick, 1, stat);
        world_run(well, 1, stat);
        ho_tensors weights;
        CHECK_OK(ho_lane_export(sick, 7, &weights, &err), &err);
        weights.tensor[1].data[0] = NAN;
        CHECK_OK(ho_lane_import(sick, 7, &weights, &err), &err);
        ho_tensors_free(&weights);
        world_run(well, 2, stat);
        world_run(sick, 2, stat);
        assert_int_equal(stat[7].state, HO_LANE_DIVERGED);
        assert_int_not_equal(stat[7].guard, HO_GUARD_NONE);
        for (int k = 0; k < lanes; k++) {
            if (k != 7) {
                assert_int_equal(stat[k].state, HO_LANE_ACTIVE);
                if (world_hash(sick, k) != world_hash(well, k)) {
                    fail_msg("portable %d: lane %d differs", portable, k);
                }
            }
        }
        ho_cohort_destroy(&sick);
        ho_cohort_destroy(&well);
        world_free(&w);
    }
}

/* burn 5779: a graph must not freeze the learning rate. */
static void a_captured_epoch_follows_changed_hyperparameters(void **state)
{
    (void)state;
    ho_err err;
    ho_epoch_stat stat;
    world *w = open_world(0, 0);
    const ho_cohort_key key = reference_key(w);
    ho_lane_config lane = lane_of(w, &key, 11);
    ho_cohort *c = world_cohort(w, &key, 1);
    ho_tensors before, after;
    world_start(c, 0, &lane);
    world_run(c, 2, &stat);
    assert_true(stat.learning_rate == lane.agent.learning_rate);
    lane.agent.learning_rate = 1e-12;
    CHECK_OK(ho_lane_set_agent(c, 0, &lane.agent, &err), &err);
    CHECK_OK(ho_lane_export(c, 0, &before, &err), &err);
    world_run(c, 1, &stat);
    CHECK_OK(ho_lane_export(c, 0, &after, &err), &err);
    assert_true(stat.learning_rate == 1e-12);
    for (int i = 0; i < before.count; i++) {
        const ho_tensor *t = &before.tensor[i];
        const int64_t n = t->shape[0] * (t->ndim == 2 ? t->shape[1] : 1);
        for (int64_t k = 0; k < n; k++) {
            CHECK_NEAR(after.tensor[i].data[k], t->data[k], 1e-7);
        }
    }
    ho_tensors_free(&before);
    ho_tensors_free(&after);
    ho_cohort_destroy(&c);
    world_free(&w);
}

/* llm.c PR 597: not the same random numbers at every launch. */
static void every_epoch_draws_new_numbers(void **state)
{
    (void)state;
    ho_epoch_stat a, b;
    world *w = open_world(0, 0);
    const ho_cohort_key key = reference_key(w);
    ho_lane_config lane = lane_of(w, &key, 11);
    lane.agent.eps_start = lane.agent.eps_end = 1.0;
    ho_cohort *c = world_cohort(w, &key, 1);
    world_start(c, 0, &lane);
    world_run(c, 1, &a);
    world_run(c, 1, &b);
    assert_true(a.reward_mean != b.reward_mean);
    assert_memory_not_equal(a.exposure_count, b.exposure_count, sizeof a.exposure_count);
    ho_cohort_destroy(&c);
    world_free(&w);
}

static void no_kernel_writes_outside_its_slice(void **state)
{
    (void)state;
    static const int sizes[] = {1, 31, 32, 257};
    ho_err err;
    ho_epoch_stat stat[3];
    for (int portable = first_path(); portable < 2; portable++) {
        for (int i = 0; i < gpu_size(4, 3); i++) {
            world *w = open_world(portable, 0);
            ho_cohort_key key = reference_key(w);
            key.batch = portable ? sizes[i] : 128 * (1 + i);
            key.episodes = sizes[i];
            key.updates = 3;
            ho_cohort *c = world_cohort(w, &key, 3);
            ho_lane_config lane = lane_of(w, &key, 1);
            lane.agent.learn_start = 1;
            world_start(c, 0, &lane);
            world_start(c, 2, &lane);
            world_run(c, 2, stat);
            assert_int_equal(stat[0].updates, 3);
            assert_int_equal(stat[1].state, HO_LANE_FREE);
            CHECK_OK(ho_cuda_cohort_check_guards(c, &err), &err);
            ho_cohort_destroy(&c);
            world_free(&w);
        }
    }
}

/* Every kernel once or a few times and no more: what compute-sanitizer can finish. */
static void a_short_run_of_everything(void **state)
{
    (void)state;
    ho_err err;
    ho_epoch_stat stat[2];
    for (int portable = first_path(); portable < 2; portable++) {
        ho_backtest_result r[2];
        world *w = open_world(portable, 0);
        ho_cohort_key key = reference_key(w);
        key.hidden1 = key.hidden2 = 256;
        key.head = 128;
        key.batch = 128;
        key.episodes = 9;
        key.episode_length = 6;
        key.updates = 2;
        ho_cohort *c = world_cohort(w, &key, 2);
        ho_lane_config lane = lane_of(w, &key, 1);
        lane.agent.learn_start = 1;
        world_start(c, 1, &lane);
        world_run(c, 1, stat);
        assert_int_equal(stat[1].updates, 2);
        const ho_backtest_request request[2] = {
            {.policy = HO_POLICY_GREEDY, .slots = {1}, .slot_count = 1, .window = {0, 12}},
            {.policy = HO_POLICY_VOTE, .slots = {1, 1}, .slot_count = 2, .window = {9, 20}}};
        CHECK_OK(ho_backtest(w->market, c, request, 2, r, &err), &err);
        assert_int_equal(r[0].bars, 11);
        ho_backtest_free(&r[0]);
        ho_backtest_free(&r[1]);
        CHECK_OK(ho_cuda_cohort_check_guards(c, &err), &err);
        ho_cohort_destroy(&c);
        world_free(&w);
    }
}

/* Both forms of the fused update and the pass over new experience, for compute-sanitizer. */
static void the_fused_kernels_run_briefly(void **state)
{
    (void)state;
    ho_err err;
    ho_epoch_stat stat[5];
    for (int lanes = 1; lanes <= 5; lanes += 4) { /* the split and the streaming form */
        world *w = open_world(0, 0);
        ho_cohort_key key = reference_key(w);
        key.hidden1 = key.hidden2 = 256;
        key.head = 128;
        key.batch = 128;
        key.episodes = 9;
        key.episode_length = 6;
        key.updates = 1;
        key.replay = HO_REPLAY_PER;
        ho_cohort *c = world_cohort(w, &key, lanes);
        if (!((cuda_cohort *)c)->learn.fused) {
            ho_cohort_destroy(&c);
            world_free(&w);
            skip(); /* no sm_90a */
        }
        ho_lane_config lane = lane_of(w, &key, 1);
        lane.agent.learn_start = 1;
        world_start(c, lanes - 1, &lane);
        world_run(c, 1, stat);
        assert_int_equal(stat[lanes - 1].updates, 1);
        CHECK_OK(ho_cuda_cohort_check_guards(c, &err), &err);
        ho_cohort_destroy(&c);
        world_free(&w);
    }
}

static size_t free_memory(world *w)
{
    ho_err err;
    ho_device_info info;
    CHECK_OK(ho_backend_info(w->backend, &info, &err), &err);
    return info.memory_free;
}

/* warp 1429, pytorch 99196, ray 23971: memory of graphs, workspaces and finished trials. */
static void memory_is_flat_over_trials_of_changing_shapes(void **state)
{
    (void)state;
    const int trials = gpu_size(200, 14);
    ho_err err;
    ho_epoch_stat stat[4];
    world *w = open_world(0, 0);
    size_t after_first = 0;
    for (int trial = 0; trial < trials; trial++) {
        ho_cohort_key key = world_key(w, HO_DQN);
        key.hidden1 = 32 * (1 + trial % 8);
        key.hidden2 = trial % 3 ? 256 : 64;
        key.head = trial % 2 ? 128 : 48;
        key.batch = 64 << trial % 3;
        key.updates = gpu_size(4, 1);
        key.episodes = gpu_size(key.episodes, 5);
        key.episode_length = gpu_size(key.episode_length, 11);
        key.precision = trial % 5 ? HO_PRECISION_BF16 : HO_PRECISION_F32;
        ho_lane_config lane = lane_of(w, &key, (uint64_t)trial);
        lane.env.sigma_window = 30 + trial % 4;
        ho_cohort *c = world_cohort(w, &key, 1 + trial % 4);
        world_start(c, 0, &lane);
        world_run(c, 2, stat);
        ho_backtest_result r;
        const ho_backtest_request request = {
            .policy = HO_POLICY_GREEDY, .slot_count = 1, .window = {0, gpu_size(200, 20)}};
        CHECK_OK(ho_backtest(w->market, c, &request, 1, &r, &err), &err);
        ho_backtest_free(&r);
        ho_cohort_destroy(&c);
        if (trial == 9) { /* modules are loaded, sigma tables are up */
            after_first = free_memory(w);
        }
    }
    const size_t end = free_memory(w);
    print_message("free after 10 trials %zu MB, after %d %zu MB\n", after_first >> 20, trials,
                  end >> 20);
    assert_true(end + (64u << 20) >= after_first);
    world_free(&w);
}

static void a_cohort_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    ho_err err;
    ho_cohort *c;
    size_t lane, fixed;
    world *w = open_world(0, 0);
    ho_cohort_key key = reference_key(w);
    key.replay_capacity = 1 << 22;
    CHECK_OK(ho_cohort_memory(w->backend, &key, &lane, &fixed, &err), &err);
    const int capacity = (int)(free_memory(w) / lane) + 2;
    CHECK_STATUS(ho_cohort_create(w->backend, w->market, &key, capacity, &c, &err), HO_ENOMEM);
    CHECK_CONTAINS(err.text, "MB");
    key.replay_capacity = 2000;
    c = world_cohort(w, &key, 2); /* and the device is well */
    ho_cohort_destroy(&c);
    key.precision = HO_PRECISION_FP8 + 1;
    CHECK_STATUS(ho_cohort_create(w->backend, w->market, &key, 1, &c, &err), HO_EINVAL);
    world_free(&w);
}

/* IsaacGymEnvs 129: device 0 assumed. */
static void the_second_gpu_gives_the_same_bits_and_leaves_the_first_alone(void **state)
{
    (void)state;
    ho_epoch_stat stat;
    if (ho_backend_gpu_count() < 2) {
        print_message("one GPU: skipped\n");
        skip();
    }
    uint64_t hash[2];
    world *first = open_world(0, 0);
    size_t before = 0;
    for (int device = 0; device < 2; device++) {
        world *w = open_world(0, device);
        const ho_cohort_key key = reference_key(w);
        const ho_lane_config lane = lane_of(w, &key, 11);
        before = free_memory(first);
        ho_cohort *c = world_cohort(w, &key, 1);
        world_start(c, 0, &lane);
        world_run(c, 2, &stat);
        hash[device] = world_hash(c, 0);
        if (device == 1) {
            assert_true(free_memory(first) == before);
        }
        ho_cohort_destroy(&c);
        world_free(&w);
    }
    assert_true(hash[0] == hash[1]);
    ho_err err;
    ho_backend *b;
    ho_device_info info;
    ho_backend_options options = ho_backend_defaults();
    CHECK_OK(ho_backend_info(first->backend, &info, &err), &err);
    options.kind = HO_BACKEND_CUDA;
    options.device = 1;
    options.gpu_uuid = info.uuid; /* the UUID decides, not the ordinal */
    CHECK_OK(ho_backend_open(&b, &options, &err), &err);
    ho_device_info found;
    CHECK_OK(ho_backend_info(b, &found, &err), &err);
    assert_string_equal(found.uuid, info.uuid);
    ho_backend_close(&b);
    world_free(&first);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_lane_has_one_hash),
        cmocka_unit_test(many_repeats_have_one_hash),
        cmocka_unit_test(helping_warps_change_no_bits),
        cmocka_unit_test(an_epoch_without_its_graph_has_the_same_bits),
        cmocka_unit_test(resuming_in_another_slot_is_bit_identical),
        cmocka_unit_test(lane_7_of_64_driven_to_nan_leaves_63_equal),
        cmocka_unit_test(a_captured_epoch_follows_changed_hyperparameters),
        cmocka_unit_test(every_epoch_draws_new_numbers),
        cmocka_unit_test(no_kernel_writes_outside_its_slice),
        cmocka_unit_test(a_short_run_of_everything),
        cmocka_unit_test(the_fused_kernels_run_briefly),
        cmocka_unit_test(memory_is_flat_over_trials_of_changing_shapes),
        cmocka_unit_test(a_cohort_that_does_not_fit_is_refused),
        cmocka_unit_test(the_second_gpu_gives_the_same_bits_and_leaves_the_first_alone),
    };
    return GPU_TESTS_RUN(tests, argc, argv);
}
