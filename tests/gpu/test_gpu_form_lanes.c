/* SPDX-License-Identifier: Apache-2.0
 * Lanes of every form of agent on the GPU: what decides their bits and what must not, one lane's
 * NaN, guard zones, weights and checkpoints in and out. On the portable path, which all forms run
 * on, and the fused one, where the device has it, for the forms of the reference shape. */
#include <stdlib.h>

#include "check.h"
#include "gpu/forms.h"
#include "gpu/run.h"
#include "kernels/cuda/cuda_backend.h"

enum { BARS = 800, CROWD = 80 /* so many that blocks carry more slots than alone */ };

static world *open_world(const form *f)
{
    ho_backend_options options = ho_backend_defaults();
    options.kind = HO_BACKEND_CUDA;
    options.force_portable = !f->reference;
    return world_new_on(WORLD_SIGNAL, BARS, 4, HO_CURIOSITY_FEATURES, &options);
}

/* A ring that is smaller than two epochs, so that it wraps. */
static ho_cohort_key key_of(const world *w, const form *f)
{
    ho_cohort_key key = world_key(w, f->ppo ? HO_PPO : HO_DQN);
    key.hidden1 = gpu_size(40, 20);
    key.hidden2 = gpu_size(48, 17);
    key.head = gpu_size(20, 9);
    key.batch = gpu_size(40, 18);
    key.updates = f->ppo ? 0 : gpu_size(30, 2);
    key.episodes = gpu_size(9, 4);
    key.episode_length = key.rollout = gpu_size(30, 7);
    form_key(f, &key);
    key.atoms = f->atoms > gpu_size(51, 11) ? gpu_size(51, 11) : f->atoms;
    key.replay_capacity = 5 * key.episodes * key.episode_length / 3;
    return key;
}

static ho_lane_config lane_of(const world *w, const ho_cohort_key *key, const form *f,
                              uint64_t trial)
{
    ho_lane_config lane = world_lane(w, key, trial);
    form_agent(f, &lane.agent);
    lane.agent.eps_start = 0.3;
    lane.agent.learn_start = 1;
    lane.agent.max_grad_norm = 0.05; /* the clip is at work: the norm's order matters */
    lane.agent.target_kl = 0.0;      /* every update is taken */
    lane.agent.curiosity_every = 1;
    lane.env.curiosity_weight = f->curiosity ? 0.05 : 0.0;
    lane.env.diversity_penalty = 0.1;
    lane.env.reset_flags = 0;
    return lane;
}

static void one_lane_has_one_hash(void **state)
{
    (void)state;
    ho_epoch_stat stat[CROWD];
    for (int i = 0; i < ALL_FORMS; i++) {
        const form *f = form_at(i);
        if (!f->sample && gpu_size(0, 1)) {
            continue;
        }
        world *w = open_world(f);
        const ho_cohort_key key = key_of(w, f);
        const ho_lane_config lane = lane_of(w, &key, f, 11);
        uint64_t want = 0;
        /* alone, alone again, among others in another slot */
        const int sizes[] = {1, 1, gpu_size(CROWD, 3)};
        for (int s = 0; s < 3; s++) {
            ho_cohort *c = world_cohort(w, &key, sizes[s]);
            const int slot = sizes[s] / 2;
            for (int k = 0; k < sizes[s]; k++) {
                ho_lane_config other = lane_of(w, &key, f, 100 + (uint64_t)k);
                other.agent.learning_rate = 1e-2;
                other.agent.tau = 0.0;
                other.agent.per_alpha = 0.9;
                world_start(c, k, k == slot ? &lane : &other);
            }
            world_run(c, gpu_size(3, 2), stat);
            assert_int_equal(stat[slot].state, HO_LANE_ACTIVE);
            assert_int_equal(stat[slot].updates, ho_epoch_updates(&key));
            const uint64_t got = world_hash(c, slot);
            want = s == 0 ? got : want;
            if (got != want) {
                fail_msg("%s, %d lanes, slot %d: another hash", f->name, sizes[s], slot);
            }
            ho_cohort_destroy(&c);
        }
        print_message("%s: %016llx\n", f->name, (unsigned long long)want);
        world_free(&w);
    }
}

static void resuming_in_another_slot_is_bit_identical(void **state)
{
    (void)state;
    ho_err err;
    ho_epoch_stat stat[3];
    for (int i = 0; i < ALL_FORMS; i++) {
        const form *f = form_at(i);
        if (!f->sample && gpu_size(0, 1)) {
            continue;
        }
        world *w = open_world(f);
        const ho_cohort_key key = key_of(w, f);
        const ho_lane_config lane = lane_of(w, &key, f, 11);
        ho_cohort *first = world_cohort(w, &key, 1), *second = world_cohort(w, &key, 3);
        void *blob;
        size_t size;
        world_start(first, 0, &lane);
        world_run(first, gpu_size(2, 1), stat);
        CHECK_OK(ho_lane_save(first, 0, 1, &blob, &size, &err), &err);
        CHECK_STATUS(ho_lane_restore(second, 2, &lane, blob, size - 1, &err), HO_EINVAL);
        CHECK_OK(ho_lane_restore(second, 2, &lane, blob, size, &err), &err);
        free(blob);
        world_run(first, gpu_size(2, 1), stat);
        world_run(second, gpu_size(2, 1), stat);
        if (world_hash(first, 0) != world_hash(second, 2)) {
            fail_msg("%s: another hash after a resume", f->name);
        }
        ho_cohort_destroy(&first);
        ho_cohort_destroy(&second);
        world_free(&w);
    }
}

/* rsl_rl 33: one lane's NaN must not spread. */
static void one_lane_driven_to_nan_leaves_the_others_equal(void **state)
{
    (void)state;
    enum { LANES = 3, SICK = 1 };
    ho_err err;
    ho_epoch_stat stat[LANES];
    for (int i = 0; i < ALL_FORMS; i++) {
        const form *f = form_at(i);
        if (!f->sample && gpu_size(0, 1)) {
            continue;
        }
        world *w = open_world(f);
        const ho_cohort_key key = key_of(w, f);
        ho_cohort *sick = world_cohort(w, &key, LANES), *well = world_cohort(w, &key, LANES);
        for (int k = 0; k < LANES; k++) {
            const ho_lane_config lane = lane_of(w, &key, f, (uint64_t)k);
            world_start(sick, k, &lane);
            if (k != SICK) {
                world_start(well, k, &lane);
            }
        }
        world_run(sick, 1, stat);
        world_run(well, 1, stat);
        ho_tensors weights;
        CHECK_OK(ho_lane_export(sick, SICK, &weights, &err), &err);
        weights.tensor[1].data[0] = NAN;
        CHECK_OK(ho_lane_import(sick, SICK, &weights, &err), &err);
        ho_tensors_free(&weights);
        world_run(well, gpu_size(2, 1), stat);
        world_run(sick, gpu_size(2, 1), stat);
        if (stat[SICK].state != HO_LANE_DIVERGED || stat[SICK].guard == HO_GUARD_NONE) {
            fail_msg("%s: NaN weights did not trip the guard", f->name);
        }
        for (int k = 0; k < LANES; k++) {
            if (k != SICK && world_hash(sick, k) != world_hash(well, k)) {
                fail_msg("%s: lane %d differs", f->name, k);
            }
        }
        CHECK_OK(ho_cuda_cohort_check_guards(sick, &err), &err);
        ho_cohort_destroy(&sick);
        ho_cohort_destroy(&well);
        world_free(&w);
    }
}

static void check_tensors_equal(const form *f, const ho_tensors *a, const ho_tensors *b)
{
    assert_int_equal(a->count, b->count);
    for (int i = 0; i < a->count; i++) {
        const ho_tensor *t = &a->tensor[i];
        const size_t n = (size_t)(t->shape[0] * (t->ndim == 2 ? t->shape[1] : 1));
        assert_string_equal(t->name, b->tensor[i].name);
        if (memcmp(t->data, b->tensor[i].data, n * sizeof(float)) != 0) {
            fail_msg("%s: %s differs", f->name, t->name);
        }
    }
}

/* Every tensor of every form, sigmas included, out and into another lane, and from slot to slot. */
static void weights_travel_whole(void **state)
{
    (void)state;
    ho_err err;
    ho_epoch_stat stat[3];
    for (int i = 0; i < ALL_FORMS; i++) {
        const form *f = form_at(i);
        if (!f->sample && gpu_size(0, 1)) {
            continue;
        }
        world *w = open_world(f);
        const ho_cohort_key key = key_of(w, f);
        ho_tensors a, b, copied;
        ho_cohort *c = world_cohort(w, &key, 3);
        for (int k = 0; k < 3; k++) {
            const ho_lane_config lane = lane_of(w, &key, f, (uint64_t)k);
            world_start(c, k, &lane);
        }
        world_run(c, 1, stat);
        CHECK_OK(ho_lane_export(c, 0, &a, &err), &err);
        CHECK_OK(ho_lane_import(c, 1, &a, &err), &err);
        CHECK_OK(ho_lane_copy(c, 2, 0, &err), &err);
        CHECK_OK(ho_lane_export(c, 1, &b, &err), &err);
        CHECK_OK(ho_lane_export(c, 2, &copied, &err), &err);
        check_tensors_equal(f, &a, &b);
        check_tensors_equal(f, &a, &copied);
        int sigmas = 0;
        for (int t = 0; t < a.count; t++) {
            sigmas += strstr(a.tensor[t].name, "sigma") != NULL;
        }
        assert_true((sigmas > 0) == (f->noisy != 0));
        world_run(c, 1, stat); /* and both go on */
        assert_int_equal(stat[1].updates, ho_epoch_updates(&key));
        assert_int_equal(stat[2].updates, ho_epoch_updates(&key));
        ho_tensors_free(&a);
        ho_tensors_free(&b);
        ho_tensors_free(&copied);
        ho_cohort_destroy(&c);
        world_free(&w);
    }
}

/* Two epochs, a copy between slots, networks alone and in ensembles. A test a form, so that each
 * ends within seconds under compute-sanitizer. */
static void a_short_run(void **state)
{
    const form *f = form_at(*(const int *)*state);
    ho_err err;
    ho_epoch_stat stat[3];
    ho_backtest_result r[3];
    if (form_skipped(f)) {
        skip();
    }
    world *w = open_world(f);
    ho_cohort_key key = key_of(w, f);
    key.batch = f->reference ? 128 : 33;
    key.episodes = 5;
    key.episode_length = key.rollout = 6;
    key.updates = f->ppo ? 0 : 2;
    key.atoms = f->atoms > 11 ? 11 : f->atoms;
    key.replay_capacity = 35;
    ho_cohort *c = world_cohort(w, &key, 3);
    for (int k = 1; k < 3; k++) {
        const ho_lane_config lane = lane_of(w, &key, f, (uint64_t)k);
        world_start(c, k, &lane);
    }
    world_run(c, 1, stat);
    CHECK_OK(ho_lane_copy(c, 2, 1, &err), &err);
    world_run(c, 1, stat);
    assert_int_equal(stat[0].state, HO_LANE_FREE);
    assert_int_equal(stat[1].updates, ho_epoch_updates(&key));
    assert_int_equal(stat[2].updates, ho_epoch_updates(&key));
    assert_true((stat[1].curiosity_loss > 0.0) == (f->curiosity != 0));
    const ho_backtest_request request[4] = {
        {.policy = HO_POLICY_GREEDY, .slots = {1}, .slot_count = 1, .window = {0, 12}},
        {.policy = HO_POLICY_VOTE, .slots = {1, 2}, .slot_count = 2, .window = {9, 15}},
        {.policy = HO_POLICY_MEAN_Q, .slots = {2, 1}, .slot_count = 2, .window = {3, 9}},
        {.policy = HO_POLICY_CONFIDENCE, .slots = {2, 1}, .slot_count = 2, .window = {3, 9}}};
    CHECK_OK(ho_backtest(w->market, c, request, 1, r, &err), &err);
    assert_int_equal(r[0].bars, 11);
    ho_backtest_free(&r[0]);
    CHECK_OK(ho_backtest(w->market, c, request + 1, 3, r, &err), &err);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(r[i].bars, 5);
        ho_backtest_free(&r[i]);
    }
    CHECK_OK(ho_cuda_cohort_check_guards(c, &err), &err);
    ho_cohort_destroy(&c);
    world_free(&w);
}

/* A block holds all raw outputs of 8 states: 46 x 255 of them do not fit. */
static void a_distribution_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    ho_err err;
    ho_cohort *c;
    const form f = {.name = "c51, 255 atoms", .atoms = 255};
    world *w = open_world(&f);
    ho_cohort_key key = key_of(w, &f);
    key.atoms = f.atoms;
    CHECK_STATUS(ho_cohort_create(w->backend, w->market, &key, 1, &c, &err), HO_EUNSUPPORTED);
    CHECK_CONTAINS(err.text, "atoms");
    assert_null(c);
    key.branching = 1; /* 12 x 255 do */
    c = world_cohort(w, &key, 1);
    ho_cohort_destroy(&c);
    world_free(&w);
}

/* --short-runs: the names of those that run_all.sh runs under compute-sanitizer. */
int main(int argc, char **argv)
{
    static char name[ALL_FORMS][64];
    static int index[ALL_FORMS];
    const int list = argc > 1 && strcmp(argv[1], "--short-runs") == 0;
    struct CMUnitTest tests[5 + ALL_FORMS] = {
        cmocka_unit_test(one_lane_has_one_hash),
        cmocka_unit_test(resuming_in_another_slot_is_bit_identical),
        cmocka_unit_test(one_lane_driven_to_nan_leaves_the_others_equal),
        cmocka_unit_test(weights_travel_whole),
        cmocka_unit_test(a_distribution_that_does_not_fit_is_refused),
    };
    for (int i = 0; i < ALL_FORMS; i++) {
        index[i] = i;
        snprintf(name[i], sizeof name[i], "a_short_run: %s", form_at(i)->name);
        const struct CMUnitTest test = {name[i], a_short_run, NULL, NULL, &index[i]};
        memcpy(&tests[5 + i], &test, sizeof test);
        if (list && !form_at(i)->reference) {
            puts(name[i]);
        }
    }
    if (list) {
        return 0;
    }
    return GPU_TESTS_RUN(tests, argc, argv);
}
