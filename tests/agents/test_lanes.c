/* SPDX-License-Identifier: Apache-2.0
 * Lanes through backend.h: what decides their bits and what does not, checkpoints, copies, the
 * guard, the statistics. Every algorithm and form runs through the same checks. */
#include <stdlib.h>

#include "agents/world.h"
#include "backend_choice.h"
#include "check.h"
#include "gpu/sizes.h"

enum { BARS = 400 };

typedef struct form {
    const char *name;
    ho_algorithm algorithm;
    int32_t dueling, branching, noisy, atoms, replay, curiosity, factored, separate, bf16;
} form;

static const form forms[] = {
    {.name = "dqn", .algorithm = HO_DQN, .dueling = 1},
    {.name = "dqn, plain head", .algorithm = HO_DQN},
    {.name = "branching, per", .algorithm = HO_DQN, .dueling = 1, .branching = 1, .replay = 1},
    {.name = "rainbow", .algorithm = HO_DQN, .dueling = 1, .noisy = 1, .atoms = 11, .replay = 1},
    {.name = "all, rank",
     .algorithm = HO_DQN,
     .dueling = 1,
     .branching = 1,
     .noisy = 1,
     .atoms = 11,
     .replay = 2,
     .curiosity = 1},
    {.name = "ppo", .algorithm = HO_PPO},
    {.name = "ppo, factored and separate",
     .algorithm = HO_PPO,
     .factored = 1,
     .separate = 1,
     .curiosity = 1},
    {.name = "dqn, bf16", .algorithm = HO_DQN, .dueling = 1, .bf16 = 1},
    {.name = "all, bf16",
     .algorithm = HO_DQN,
     .dueling = 1,
     .branching = 1,
     .noisy = 1,
     .atoms = 11,
     .replay = 1,
     .bf16 = 1},
    {.name = "ppo, bf16", .algorithm = HO_PPO, .factored = 1, .separate = 1, .bf16 = 1},
};
enum { FORMS = sizeof forms / sizeof forms[0] };

/* Under the emulator every third form; tests/gpu has the others. Where a sanitizer makes it slow
 * every second of those: the plain tests have the others. */
static int form_step(void)
{
    return gpu_size(1, 3) * (getenv("HYPEROPT_TEST_QUICK") ? 2 : 1);
}

static ho_cohort_key key_of(const world *w, const form *f)
{
    ho_cohort_key key = world_key(w, f->algorithm);
    key.dueling = f->dueling;
    key.branching = f->branching;
    key.noisy = f->noisy;
    key.atoms = f->atoms;
    key.replay = f->replay;
    key.curiosity = f->curiosity;
    key.ppo_factored = f->factored;
    key.ppo_separate = f->separate;
    key.precision = f->bf16 ? HO_PRECISION_BF16 : HO_PRECISION_F32;
    key.episodes = gpu_size(key.episodes, 5);
    key.episode_length = gpu_size(key.episode_length, 13);
    key.rollout = gpu_size(key.rollout, 12);
    key.replay_capacity = gpu_size(key.replay_capacity, 150);
    key.batch = gpu_size(key.batch, f->algorithm == HO_PPO ? 30 : 33);
    key.updates = gpu_size(key.updates, f->algorithm == HO_PPO ? 0 : 1);
    return key;
}

static world *open_world(int threads)
{
    return world_new(WORLD_SIGNAL, BARS, 3, HO_CURIOSITY_FEATURES, threads);
}

/* Forms that the backend under test does not have yet are said and left out. */
static int supported(const form *f)
{
    ho_err err = {0};
    size_t lane, fixed;
    world *w = open_world(1);
    const ho_cohort_key key = key_of(w, f);
    const ho_status rc = ho_cohort_memory(w->backend, &key, &lane, &fixed, &err);
    world_free(&w);
    if (rc == HO_EUNSUPPORTED) {
        print_message("%s: %s\n", f->name, err.text);
    }
    return rc != HO_EUNSUPPORTED;
}

static ho_lane_config lane_of(const world *w, const ho_cohort_key *key, uint64_t trial)
{
    ho_lane_config lane = world_lane(w, key, trial);
    lane.env.curiosity_weight = key->curiosity ? 0.05 : 0.0;
    lane.agent.curiosity_every = 2;
    lane.env.reset_flags = 0; /* episodes go on from epoch to epoch */
    lane.env.sizing = HO_SIZING_KELLY;
    lane.env.kelly_min_trades = 5;
    lane.env.diversity_penalty = 0.1;
    return lane;
}

/* A lane's whole state, replay included. */
typedef struct blob {
    void *data;
    size_t size;
} blob;

static blob save(ho_cohort *c, int slot, int replay)
{
    ho_err err;
    blob b;
    CHECK_OK(ho_lane_save(c, slot, replay, &b.data, &b.size, &err), &err);
    return b;
}

static void check_same(const char *form_name, const char *what, blob a, blob b)
{
    if (a.size != b.size || memcmp(a.data, b.data, a.size) != 0) {
        fail_msg("%s: %s: states differ", form_name, what);
    }
}

static void a_lane_has_the_same_bits_alone_in_any_slot_and_beside_others(void **state)
{
    (void)state;
    ho_epoch_stat stat[8];
    for (int f = 0; f < FORMS; f += form_step()) {
        if (!supported(&forms[f])) {
            continue;
        }
        world *one = open_world(1), *four = open_world(4);
        const ho_cohort_key key = key_of(one, &forms[f]);
        const ho_lane_config lane = lane_of(one, &key, 11);
        ho_cohort *alone = world_cohort(one, &key, 1);
        ho_cohort *wide = world_cohort(four, &key, 1); /* its blocks over four threads */
        ho_cohort *crowd = world_cohort(four, &key, 8);
        world_start(alone, 0, &lane);
        world_start(wide, 0, &lane);
        for (int slot = 0; slot < 7; slot++) {
            ho_lane_config other = lane_of(one, &key, slot == 5 ? 11 : 100 + (uint64_t)slot);
            other.agent.learning_rate = slot == 5 ? lane.agent.learning_rate : 1e-3;
            world_start(crowd, slot, &other);
        }
        world_run(alone, 4, stat);
        world_run(wide, 4, stat);
        world_run(crowd, 2, stat);
        CHECK_STATUS(ho_lane_stop(crowd, 2), HO_OK); /* neighbours come and go */
        world_start(crowd, 7, &lane);
        world_run(crowd, 2, stat);
        blob a = save(alone, 0, 1), b = save(wide, 0, 1), c = save(crowd, 5, 1);
        check_same(forms[f].name, "threads", a, b);
        check_same(forms[f].name, "neighbours", a, c);
        free(a.data);
        free(b.data);
        free(c.data);
        ho_cohort_destroy(&alone);
        ho_cohort_destroy(&wide);
        ho_cohort_destroy(&crowd);
        world_free(&one);
        world_free(&four);
    }
}

static void weights_made_ahead_are_those_of_the_start(void **state)
{
    (void)state;
    ho_epoch_stat stat[2];
    for (int f = 0; f < FORMS; f += form_step()) {
        if (!supported(&forms[f])) {
            continue;
        }
        ho_err err;
        float *weights = NULL;
        world *w = open_world(1);
        const ho_cohort_key key = key_of(w, &forms[f]);
        ho_cohort *c = world_cohort(w, &key, 2);
        ho_lane_config lane = lane_of(w, &key, 5);
        world_start(c, 0, &lane);
        CHECK_OK(ho_lane_prepare(&key, &lane, &weights, &err), &err);
        lane.weights = weights;
        world_start(c, 1, &lane);
        memset(weights, 0xff, sizeof *weights); /* they are read at the start and never again */
        free(weights);
        world_run(c, 1, stat);
        blob a = save(c, 0, 1), b = save(c, 1, 1);
        check_same(forms[f].name, "made ahead", a, b);
        free(a.data);
        free(b.data);
        ho_cohort_destroy(&c);
        world_free(&w);
    }
    ho_err err;
    float *weights = NULL;
    const ho_cohort_key nothing = {0};
    CHECK_STATUS(ho_lane_prepare(&nothing, &(ho_lane_config){0}, &weights, &err), HO_EINVAL);
    assert_null(weights);
}

static void epochs_launched_ahead_are_those_of_run_epoch(void **state)
{
    (void)state;
    ho_err err;
    ho_epoch_stat stat[2], want[6][2];
    for (int f = 0; f < FORMS; f += form_step()) {
        if (!supported(&forms[f])) {
            continue;
        }
        world *w = open_world(1);
        const ho_cohort_key key = key_of(w, &forms[f]);
        ho_cohort *late = world_cohort(w, &key, 2), *soon = world_cohort(w, &key, 2);
        const ho_lane_config lane = lane_of(w, &key, 5);
        world_start(late, 1, &lane);
        world_start(soon, 1, &lane);
        for (int e = 0; e < 6; e++) {
            world_run(soon, 1, want[e]);
        }
        const int depth = ho_cohort_depth(late);
        for (int e = 0; e < 6 + depth - 1; e++) {
            if (e < 6) {
                CHECK_OK(ho_cohort_launch_epoch(late, &err), &err);
            }
            if (e >= depth - 1) {
                CHECK_OK(ho_cohort_collect_epoch(late, stat, &err), &err);
                assert_memory_equal(stat, want[e - depth + 1], sizeof stat);
            }
        }
        blob a = save(late, 1, 1), b = save(soon, 1, 1);
        check_same(forms[f].name, "launched ahead", a, b);
        free(a.data);
        free(b.data);
        ho_cohort_destroy(&late);
        ho_cohort_destroy(&soon);
        world_free(&w);
    }
}

static void nothing_but_the_next_epoch_goes_beside_an_epoch(void **state)
{
    (void)state;
    ho_err err;
    ho_epoch_stat stat[2];
    ho_tensors weights;
    ho_backtest_job *job = NULL;
    void *data = NULL;
    size_t size = 0;
    world *w = open_world(1);
    const ho_cohort_key key = key_of(w, &forms[0]);
    ho_cohort *c = world_cohort(w, &key, 2);
    const ho_lane_config lane = lane_of(w, &key, 5);
    world_start(c, 0, &lane);
    CHECK_STATUS(ho_cohort_collect_epoch(c, stat, &err), HO_EINVAL);
    for (int i = 0; i < ho_cohort_depth(c); i++) {
        CHECK_OK(ho_cohort_launch_epoch(c, &err), &err);
    }
    CHECK_STATUS(ho_cohort_launch_epoch(c, &err), HO_EINVAL);
    CHECK_STATUS(ho_cohort_run_epoch(c, stat, &err), HO_EINVAL);
    CHECK_STATUS(ho_lane_start(c, 1, &lane, &err), HO_EINVAL);
    CHECK_STATUS(ho_lane_save(c, 0, 1, &data, &size, &err), HO_EINVAL);
    CHECK_STATUS(ho_lane_export(c, 0, &weights, &err), HO_EINVAL);
    assert_int_equal(ho_lane_stop(c, 0), HO_EINVAL);
    const ho_backtest_request request = {.slot_count = 1, .window = {.begin = 10, .end = 60}};
    CHECK_STATUS(ho_backtest_begin(w->market, c, &request, 1, &job, &err), HO_EINVAL);
    assert_null(job);
    for (int i = 0; i < ho_cohort_depth(c); i++) {
        CHECK_OK(ho_cohort_collect_epoch(c, stat, &err), &err);
        assert_int_equal(stat[0].epoch, i + 1);
    }
    CHECK_OK(ho_lane_start(c, 1, &lane, &err), &err);
    CHECK_OK(ho_cohort_launch_epoch(c, &err), &err);
    ho_cohort_destroy(&c); /* an epoch under way goes with it */
    world_free(&w);
}

/* What a backtest says, as far as it tells two apart. */
static void check_results(const char *form_name, const ho_backtest_result *a,
                          const ho_backtest_result *b)
{
    if (a->final_equity != b->final_equity || a->bars != b->bars || a->sessions != b->sessions ||
        memcmp(a->actions, b->actions, (size_t)a->bars) != 0 ||
        memcmp(a->session_return, b->session_return,
               (size_t)a->sessions * sizeof *a->session_return) != 0 ||
        memcmp(&a->metrics, &b->metrics, sizeof a->metrics) != 0) {
        fail_msg("%s: the backtests differ", form_name);
    }
}

static void a_backtest_job_plays_what_the_lanes_were_when_it_began(void **state)
{
    (void)state;
    enum { N = 3 };
    ho_err err;
    ho_epoch_stat stat[4];
    for (int f = 0; f < FORMS; f += form_step()) {
        if (!supported(&forms[f])) {
            continue;
        }
        world *w = open_world(1);
        const ho_cohort_key key = key_of(w, &forms[f]);
        ho_cohort *c = world_cohort(w, &key, 4);
        ho_backtest_request request[N];
        ho_backtest_result want[N], got[N];
        ho_backtest_job *job = NULL, *dropped = NULL;
        for (int slot = 1; slot < 4; slot += 2) {
            const ho_lane_config lane = lane_of(w, &key, 5 + (uint64_t)slot);
            world_start(c, slot, &lane);
        }
        world_run(c, 2, stat);
        memset(request, 0, sizeof request);
        for (int i = 0; i < N; i++) {
            request[i].slots[0] = i == 1 ? 1 : 3;
            request[i].slot_count = 1;
            request[i].window = (ho_window){.begin = 20 + 40 * i, .end = 160 + 40 * i};
            request[i].want = HO_WANT_SESSIONS | HO_WANT_ACTIONS;
        }
        CHECK_OK(ho_backtest(w->market, c, request, N, want, &err), &err);
        CHECK_OK(ho_backtest_begin(w->market, c, request, N, &job, &err), &err);
        CHECK_OK(ho_backtest_begin(w->market, c, request, N, &dropped, &err), &err);
        memset(request, 0xff, sizeof request); /* read at the begin and never again */
        CHECK_OK(ho_lane_stop(c, 1), &err);
        world_run(c, 1, stat); /* slot 3 trains on */
        CHECK_OK(ho_lane_stop(c, 3), &err);
        ho_cohort_destroy(&c);
        ho_backtest_drop(&dropped);
        assert_null(dropped);
        CHECK_OK(ho_backtest_collect(&job, got, &err), &err);
        assert_null(job);
        for (int i = 0; i < N; i++) {
            check_results(forms[f].name, &want[i], &got[i]);
            ho_backtest_free(&want[i]);
            ho_backtest_free(&got[i]);
        }
        world_free(&w);
    }
}

static void a_lane_among_a_hundred_has_the_bits_it_has_alone(void **state)
{
    (void)state;
    enum { LANES = 100, SLOT = 73 };
    if (test_on_gpu()) {
        skip(); /* test_gpu_lanes has a crowd of its own */
    }
    ho_epoch_stat stat[LANES];
    for (int f = 0; f < FORMS; f++) {
        const int plain = strcmp(forms[f].name, "dqn") == 0, bf16 = forms[f].bf16;
        if ((!plain && !bf16) || !supported(&forms[f])) {
            continue;
        }
        world *w = open_world(2);
        ho_cohort_key key = key_of(w, &forms[f]);
        key.episode_length = key.rollout = 20;
        key.replay_capacity = 512;
        const ho_lane_config lane = lane_of(w, &key, 11);
        ho_cohort *alone = world_cohort(w, &key, 1), *crowd = world_cohort(w, &key, LANES);
        world_start(alone, 0, &lane);
        for (int slot = 0; slot < LANES; slot++) {
            const ho_lane_config other = lane_of(w, &key, slot == SLOT ? 11 : 100 + (uint64_t)slot);
            world_start(crowd, slot, &other);
        }
        world_run(alone, 2, stat);
        world_run(crowd, 2, stat);
        blob a = save(alone, 0, 1), b = save(crowd, SLOT, 1);
        check_same(forms[f].name, "among a hundred", a, b);
        free(a.data);
        free(b.data);
        ho_cohort_destroy(&alone);
        ho_cohort_destroy(&crowd);
        world_free(&w);
    }
}

static void resuming_is_bit_identical_to_not_having_stopped(void **state)
{
    (void)state;
    ho_err err;
    ho_epoch_stat through, resumed;
    for (int f = 0; f < FORMS; f += form_step()) {
        if (!supported(&forms[f])) {
            continue;
        }
        world *w = open_world(2);
        const ho_cohort_key key = key_of(w, &forms[f]);
        const ho_lane_config lane = lane_of(w, &key, 5);
        ho_cohort *first = world_cohort(w, &key, 1), *second = world_cohort(w, &key, 1);
        world_start(first, 0, &lane);
        world_run(first, 5, &through); /* the ring has wrapped, targets and counters have moved */
        blob saved = save(first, 0, 1);
        CHECK_OK(ho_lane_restore(second, 0, &lane, saved.data, saved.size, &err), &err);
        world_run(first, 3, &through);
        world_run(second, 3, &resumed);
        blob a = save(first, 0, 1), b = save(second, 0, 1);
        check_same(forms[f].name, "resume", a, b);
        assert_memory_equal(&through, &resumed, sizeof through);
        free(saved.data);
        free(a.data);
        free(b.data);
        ho_cohort_destroy(&first);
        ho_cohort_destroy(&second);
        world_free(&w);
    }
}

static void a_lane_driven_to_nan_fails_alone(void **state)
{
    (void)state;
    ho_epoch_stat stat[3];
    for (int f = 0; f < FORMS; f += form_step()) {
        if (!supported(&forms[f])) {
            continue;
        }
        world *w = open_world(2);
        const ho_cohort_key key = key_of(w, &forms[f]);
        const ho_lane_config good = lane_of(w, &key, 5);
        ho_lane_config bad = lane_of(w, &key, 6);
        bad.agent.learning_rate = 1e30;
        bad.agent.schedule = HO_SCHEDULE_CONSTANT;
        bad.agent.target_kl = 0.0;
        bad.agent.max_grad_norm = 0.0;
        ho_cohort *pair = world_cohort(w, &key, 3), *alone = world_cohort(w, &key, 3);
        world_start(pair, 0, &bad);
        world_start(pair, 1, &good);
        world_start(alone, 1, &good);
        world_run(pair, 3, stat);
        assert_int_equal(stat[0].state, HO_LANE_DIVERGED);
        assert_int_not_equal(stat[0].guard, HO_GUARD_NONE);
        assert_true(stat[0].guard_update >= 1 && stat[0].guard_update < 40);
        assert_int_equal(stat[1].state, HO_LANE_ACTIVE);
        assert_int_equal(stat[2].state, HO_LANE_FREE);
        world_run(alone, 3, stat);
        blob a = save(pair, 1, 1), b = save(alone, 1, 1);
        check_same(forms[f].name, "beside NaN", a, b);
        free(a.data);
        free(b.data);
        ho_cohort_destroy(&pair);
        ho_cohort_destroy(&alone);
        world_free(&w);
    }
}

static void a_damaged_checkpoint_is_refused_and_leaves_the_slot_free(void **state)
{
    (void)state;
    ho_err err;
    ho_epoch_stat stat[2];
    world *w = open_world(1);
    const ho_cohort_key key = key_of(w, &forms[supported(&forms[2]) ? 2 : 0]);
    ho_cohort_key other_key = key;
    other_key.hidden1 = 16;
    const ho_lane_config lane = lane_of(w, &key, 5);
    ho_cohort *c = world_cohort(w, &key, 2), *other = world_cohort(w, &other_key, 1);
    world_start(c, 0, &lane);
    world_run(c, 2, stat);
    blob b = save(c, 0, 1);
    unsigned char *bytes = b.data;
    for (size_t cut = 0; cut < b.size; cut += 1 + b.size / 17) {
        CHECK_STATUS(ho_lane_restore(c, 1, &lane, bytes, cut, &err), HO_EINVAL);
    }
    for (size_t at = 0; at < b.size; at += 1 + b.size / 97) {
        bytes[at] ^= 0x40;
        CHECK_STATUS(ho_lane_restore(c, 1, &lane, bytes, b.size, &err), HO_EINVAL);
        bytes[at] ^= 0x40;
    }
    CHECK_STATUS(ho_lane_restore(other, 0, &lane, bytes, b.size, &err), HO_EINVAL);
    CHECK_CONTAINS(err.text, "another shape");
    ho_lane_config elsewhere = lane;
    elsewhere.train = (ho_window){BARS - 60, BARS};
    CHECK_STATUS(ho_lane_restore(c, 1, &elsewhere, bytes, b.size, &err), HO_EINVAL);
    CHECK_CONTAINS(err.text, "window");
    CHECK_OK(ho_lane_restore(c, 1, &lane, bytes, b.size, &err), &err);
    free(b.data);
    ho_cohort_destroy(&c);
    ho_cohort_destroy(&other);
    world_free(&w);
}

static int64_t tensor_count(const ho_tensor *t)
{
    return t->shape[0] * (t->ndim == 2 ? t->shape[1] : 1);
}

static void a_copied_lane_has_the_weights_and_moments_but_its_own_numbers(void **state)
{
    (void)state;
    ho_err err;
    ho_epoch_stat stat[2];
    for (int f = 0; f < FORMS; f += form_step()) {
        if (!supported(&forms[f])) {
            continue;
        }
        world *w = open_world(1);
        const ho_cohort_key key = key_of(w, &forms[f]);
        ho_lane_config a = lane_of(w, &key, 1), b = lane_of(w, &key, 2);
        a.env.sizing = b.env.sizing = HO_SIZING_FIXED; /* Kelly may stop both from trading */
        ho_cohort *c = world_cohort(w, &key, 2);
        ho_tensors from, to;
        world_start(c, 0, &a);
        world_start(c, 1, &b);
        world_run(c, 2, stat);
        CHECK_OK(ho_lane_copy(c, 1, 0, &err), &err);
        CHECK_OK(ho_lane_export(c, 0, &from, &err), &err);
        CHECK_OK(ho_lane_export(c, 1, &to, &err), &err);
        for (int i = 0; i < from.count; i++) {
            assert_memory_equal(from.tensor[i].data, to.tensor[i].data,
                                (size_t)tensor_count(&from.tensor[i]) * sizeof(float));
        }
        world_run(c, 1, stat);
        assert_true(stat[0].reward_mean != stat[1].reward_mean);
        ho_tensors_free(&from);
        ho_tensors_free(&to);
        ho_cohort_destroy(&c);
        world_free(&w);
    }
}

static void check_lanes_equal(const form *f, ho_cohort *c, const ho_epoch_stat stat[2])
{
    ho_err err;
    ho_tensors a, b;
    CHECK_OK(ho_lane_export(c, 0, &a, &err), &err);
    CHECK_OK(ho_lane_export(c, 1, &b, &err), &err);
    for (int i = 0; i < a.count; i++) {
        if (memcmp(a.tensor[i].data, b.tensor[i].data,
                   (size_t)tensor_count(&a.tensor[i]) * sizeof(float)) != 0) {
            fail_msg("%s: %s differs", f->name, a.tensor[i].name);
        }
    }
    assert_memory_equal(&stat[0], &stat[1], sizeof stat[0]);
    ho_tensors_free(&a);
    ho_tensors_free(&b);
}

/* Population-based training: after a copy and the source's hyperparameters nothing of the loser is
 * left, moments, target and forward model included. Lanes of one random key whose experience does
 * not depend on their past: random actions, or PPO's episodes begun anew each epoch. */
static void a_copied_lane_goes_on_as_its_source(void **state)
{
    (void)state;
    ho_err err;
    ho_epoch_stat stat[2];
    for (int f = 0; f < FORMS; f += form_step()) {
        if (!supported(&forms[f]) || forms[f].noisy || forms[f].replay != HO_REPLAY_UNIFORM) {
            continue; /* their experience or their replay is their own */
        }
        world *w = open_world(1);
        const ho_cohort_key key = key_of(w, &forms[f]);
        ho_lane_config winner = lane_of(w, &key, 1);
        winner.env = world_env(w, 0.5, 0.5);
        winner.env.curiosity_weight = key.curiosity ? 0.05 : 0.0;
        winner.agent.eps_start = winner.agent.eps_end = 1.0;
        winner.agent.target_kl = 0.0;
        ho_lane_config loser = winner;
        loser.agent.learning_rate *= 3.0;
        loser.agent.curiosity_lr *= 3.0;
        loser.agent.tau = 0.5;
        loser.agent.weight_decay = 0.1;
        ho_cohort *c = world_cohort(w, &key, 2);
        world_start(c, 0, &winner);
        world_start(c, 1, &loser);
        world_run(c, 3, stat);
        assert_true(stat[0].loss_mean != stat[1].loss_mean);
        CHECK_OK(ho_lane_copy(c, 1, 0, &err), &err);
        CHECK_OK(ho_lane_set_agent(c, 1, &winner.agent, &err), &err);
        world_run(c, 3, stat);
        check_lanes_equal(&forms[f], c, stat);

        ho_tensors weights;
        CHECK_OK(ho_lane_export(c, 1, &weights, &err), &err);
        weights.tensor[1].data[0] = NAN;
        CHECK_OK(ho_lane_import(c, 1, &weights, &err), &err);
        ho_tensors_free(&weights);
        world_run(c, 1, stat);
        assert_int_equal(stat[1].state, HO_LANE_DIVERGED);
        CHECK_STATUS(ho_lane_copy(c, 0, 1, &err), HO_EINVAL);
        CHECK_CONTAINS(err.text, "diverged");
        CHECK_OK(ho_lane_copy(c, 1, 0, &err), &err); /* revives it */
        world_run(c, 1, stat);
        assert_int_equal(stat[1].state, HO_LANE_ACTIVE);
        assert_int_equal(stat[1].epoch, stat[0].epoch);
        ho_agent_config bad = winner.agent;
        bad.gamma = 2.0;
        CHECK_STATUS(ho_lane_set_agent(c, 1, &bad, &err), HO_EINVAL);
        CHECK_CONTAINS(err.text, "gamma");
        ho_cohort_destroy(&c);
        world_free(&w);
    }
}

static void exported_weights_act_alike_in_another_lane(void **state)
{
    (void)state;
    ho_err err;
    ho_epoch_stat stat[2];
    for (int f = 0; f < FORMS; f += form_step()) {
        if (!supported(&forms[f])) {
            continue;
        }
        world *w = open_world(1);
        const ho_cohort_key key = key_of(w, &forms[f]);
        const ho_lane_config a = lane_of(w, &key, 1), b = lane_of(w, &key, 2);
        ho_cohort *c = world_cohort(w, &key, 2);
        ho_tensors weights;
        ho_backtest_result first, second;
        world_start(c, 0, &a);
        world_start(c, 1, &b);
        world_run(c, 2, stat);
        CHECK_OK(ho_lane_export(c, 0, &weights, &err), &err);
        CHECK_OK(ho_lane_import(c, 1, &weights, &err), &err);
        const ho_env_config env = world_env(w, 0.5, 0.5);
        (void)world_score(w, c, 0, &env, NULL, &first);
        (void)world_score(w, c, 1, &env, NULL, &second);
        assert_memory_equal(first.action_count, second.action_count, sizeof first.action_count);
        assert_true(first.final_equity == second.final_equity);
        weights.tensor[0].shape[0]++;
        CHECK_STATUS(ho_lane_import(c, 1, &weights, &err), HO_EINVAL);
        CHECK_CONTAINS(err.text, weights.tensor[0].name);
        weights.tensor[0].shape[0]--;
        weights.tensor[0].name[0] = 'x';
        CHECK_STATUS(ho_lane_import(c, 1, &weights, &err), HO_EINVAL);
        ho_backtest_free(&first);
        ho_backtest_free(&second);
        ho_tensors_free(&weights);
        ho_cohort_destroy(&c);
        world_free(&w);
    }
}

static void an_epoch_reports_what_happened(void **state)
{
    (void)state;
    ho_epoch_stat s;
    for (int f = 0; f < FORMS; f += form_step()) {
        if (!supported(&forms[f])) {
            continue;
        }
        world *w = open_world(2);
        const ho_cohort_key key = key_of(w, &forms[f]);
        const ho_lane_config lane = lane_of(w, &key, 1);
        ho_cohort *c = world_cohort(w, &key, 1);
        world_start(c, 0, &lane);
        world_run(c, 2, &s);
        const int64_t steps = (int64_t)ho_epoch_steps(&key) * key.episodes;
        assert_int_equal(s.epoch, 2);
        assert_int_equal(s.experiences, steps);
        int64_t exposures = 0, orders = 0, urgencies = 0;
        for (int i = 0; i < HO_EXPOSURES; i++) {
            exposures += s.exposure_count[i];
        }
        for (int i = 0; i < 3; i++) {
            orders += s.order_count[i];
            urgencies += s.urgency_count[i];
        }
        assert_int_equal(exposures, steps);
        assert_int_equal(orders, steps);
        assert_int_equal(urgencies, steps);
        assert_true(s.updates > 0 && s.updates <= ho_epoch_updates(&key));
        assert_true(s.reward_min <= s.reward_mean && s.reward_mean <= s.reward_max);
        assert_true(s.reward_std > 0.0 && s.grad_norm > 0.0);
        assert_true(s.q_min <= s.q_mean && s.q_mean <= s.q_max && s.q_std > 0.0);
        assert_true(s.ended_length + s.ended_window > 0);
        assert_true(isfinite(s.loss_mean) && isfinite(s.loss_last) && isfinite(s.sharpe));
        assert_true(s.learning_rate > 0.0);
        if (key.algorithm == HO_PPO) {
            assert_true(s.entropy > 3.0 && s.kl >= 0.0); /* log 45 = 3.8: still near uniform */
            assert_true(s.explained_variance < 1.0);
        } else {
            assert_int_equal(s.replay_fill,
                             steps * 2 < key.replay_capacity ? steps * 2 : key.replay_capacity);
            assert_true(s.td_error_mean > 0.0);
            CHECK_NEAR(s.epsilon, key.noisy ? 0.0 : 1.0 - 0.98 / 5.0, 1e-12);
        }
        assert_true(!key.curiosity || s.curiosity_loss > 0.0);
        ho_cohort_destroy(&c);
        world_free(&w);
    }
}

/* argv[1]: only the tests whose name matches, as the emulator runs some. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lane_has_the_same_bits_alone_in_any_slot_and_beside_others),
        cmocka_unit_test(weights_made_ahead_are_those_of_the_start),
        cmocka_unit_test(epochs_launched_ahead_are_those_of_run_epoch),
        cmocka_unit_test(nothing_but_the_next_epoch_goes_beside_an_epoch),
        cmocka_unit_test(a_backtest_job_plays_what_the_lanes_were_when_it_began),
        cmocka_unit_test(a_lane_among_a_hundred_has_the_bits_it_has_alone),
        cmocka_unit_test(resuming_is_bit_identical_to_not_having_stopped),
        cmocka_unit_test(a_lane_driven_to_nan_fails_alone),
        cmocka_unit_test(a_damaged_checkpoint_is_refused_and_leaves_the_slot_free),
        cmocka_unit_test(a_copied_lane_has_the_weights_and_moments_but_its_own_numbers),
        cmocka_unit_test(a_copied_lane_goes_on_as_its_source),
        cmocka_unit_test(exported_weights_act_alike_in_another_lane),
        cmocka_unit_test(an_epoch_reports_what_happened),
    };
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
