/* SPDX-License-Identifier: Apache-2.0
 * Kinds of bugs that users of other libraries reported, each a test of what must hold here. */
#include <stdlib.h>
#include <sys/resource.h>

#include "agents/world.h"
#include "check.h"
#include "kernels/agents/value.h"
#include "kernels/cpu/cohort.h"
#include "kernels/cpu/init.h"

/* A lane with its scratch, advanced step by step by the test. */
typedef struct bench {
    world *w;
    ho_cohort *cohort;
    ho_epoch_stat stat;
    ho_work work;
} bench;

static void open_bench(bench *b, const ho_cohort_key *key, const ho_lane_config *lane, world *w)
{
    ho_err err;
    memset(b, 0, sizeof *b);
    b->w = w;
    CHECK_OK(ho_cohort_create(w->backend, w->market, key, 1, &b->cohort, &err), &err);
    CHECK_OK(ho_lane_start(b->cohort, 0, lane, &err), &err);
    ho_cpu_cohort *c = ho_cpu_cohort_of(b->cohort);
    b->work = (ho_work){.shape = &c->shape,
                        .market = &c->host->view,
                        .lane = c->lane[0],
                        .scratch = c->scratch[0],
                        .threads = 1,
                        .stat = &b->stat};
}

static void close_bench(bench *b)
{
    ho_cohort_destroy(&b->cohort);
    world_free(&b->w);
}

static const int ENDED = HO_STEP_TERMINAL | HO_STEP_TRUNCATED;

/* rsl_rl 151: a time-out bootstraps from the state after the reset. */
static void a_truncated_step_bootstraps_from_the_state_before_the_reset(void **state)
{
    (void)state;
    world *w = world_new(WORLD_SIGNAL, 300, 3, WORLD_FEATURES, 1);
    ho_cohort_key key = world_key(w, HO_PPO);
    key.episode_length = 7;
    const ho_lane_config lane = world_lane(w, &key, 2);
    bench b;
    open_bench(&b, &key, &lane, w);
    ho_lane_collect(&b.work);
    ho_lane_learn_ppo(&b.work);
    const ho_lane_shape *s = b.work.shape;
    const ho_rollout *r = &b.work.scratch->rollout;
    const ho_lane_shape shape = *s;
    int ended = 0, went_on = 0;
    /* the rollout was made by the initial weights: an identical lane still has them */
    bench fresh;
    open_bench(&fresh, &key, &lane, world_new(WORLD_SIGNAL, 300, 3, WORLD_FEATURES, 1));
    for (int32_t at = 0; at + key.episodes < shape.steps * key.episodes; at++) {
        const float *after = r->after + (int64_t)at * shape.portfolio;
        const float *next = r->before + (int64_t)(at + key.episodes) * shape.portfolio;
        if (!(r->flags[at] & ENDED)) {
            assert_memory_equal(after, next, (size_t)shape.portfolio * sizeof *after);
            assert_int_equal(r->bar[at + key.episodes], r->bar[at] + 1);
            went_on++;
            continue;
        }
        ho_collect_block *c = &fresh.work.scratch->collect[0];
        ho_state_row(&b.work, r->bar[at] + 1, after, c->x, c->rows.x_row);
        ho_net_forward(&shape.net, &fresh.work.lane->acting, c->x, 1, HO_NET_VALUE, &c->rows);
        assert_true(b.work.scratch->value_next[at] == c->rows.act[HO_LAYER_VALUE1][0]);
        assert_true(b.work.scratch->value_next[at] != r->value[at + key.episodes]);
        ended++;
    }
    assert_true(ended >= 50 && went_on > 300);
    close_bench(&fresh);
    close_bench(&b);
}

/* tensorflow/agents 939: n-step returns run over the end of an episode. */
static void an_n_step_return_stops_at_the_episodes_end(void **state)
{
    (void)state;
    world *w = world_new(WORLD_SIGNAL, 300, 3, WORLD_FEATURES, 1);
    ho_cohort_key key = world_key(w, HO_DQN);
    key.episode_length = 23;
    key.updates = 0;
    ho_lane_config lane = world_lane(w, &key, 2);
    lane.agent.n_step = 5;
    lane.agent.gamma = 0.9;
    lane.env.end_on_barrier = 1;
    lane.env.barrier_terminal = 1; /* terminal and truncated ends, both */
    lane.env.stop_loss = lane.env.profit_target = 40.0;
    bench b;
    open_bench(&b, &key, &lane, w);
    ho_lane_collect(&b.work);
    ho_lane_learn_dqn(&b.work);
    const ho_rollout *r = &b.work.scratch->rollout;
    const ho_replay *ring = &b.work.lane->replay;
    const int32_t N = key.episodes, L = key.episode_length;
    int shortened = 0, terminal = 0;
    assert_int_equal(ring->fill, N * L);
    for (int32_t i = 0; i < ring->fill; i++) { /* in order of steps, then slots */
        double sum = 0.0, weight = 1.0;
        int32_t m = 0, at = i;
        for (; m < 5; m++, at += N) {
            sum += weight * (double)r->reward[at];
            weight *= 0.9;
            if ((r->flags[at] & ENDED) || at + N >= N * L) {
                m++;
                break;
            }
        }
        at = i + (m - 1) * N;
        const int dead = r->flags[at] & HO_STEP_TERMINAL;
        assert_int_equal(ring->steps[i], m);
        assert_int_equal(ring->bar[i] + m, r->bar[at] + 1);
        CHECK_NEAR((double)ring->reward[i], sum, 1e-5);
        CHECK_NEAR((double)ring->discount[i], dead ? 0.0 : weight, 1e-6);
        assert_memory_equal(ring->after + (int64_t)i * ring->columns,
                            r->after + (int64_t)at * ring->columns,
                            (size_t)ring->columns * sizeof(float));
        shortened += m < 5;
        terminal += dead != 0;
    }
    assert_true(shortened > 100 && terminal > 10);
    close_bench(&b);
}

/* stable-baselines3 1373: the target's period changes after save and load. */
static void the_target_is_copied_at_the_same_updates_after_save_and_load(void **state)
{
    (void)state;
    ho_err err;
    ho_epoch_stat stat[2];
    world *w = world_new(WORLD_SIGNAL, 300, 3, WORLD_FEATURES, 1);
    const ho_cohort_key key = world_key(w, HO_DQN); /* 12 updates an epoch */
    ho_lane_config lane = world_lane(w, &key, 2);
    lane.agent.tau = 0.0;
    lane.agent.target_every = 8;
    ho_cohort *c;
    void *blob;
    size_t size;
    CHECK_OK(ho_cohort_create(w->backend, w->market, &key, 2, &c, &err), &err);
    ho_cpu_cohort *lanes = ho_cpu_cohort_of(c);
    const size_t bytes = (size_t)lanes->shape.net.size * sizeof(float);
    CHECK_OK(ho_lane_start(c, 0, &lane, &err), &err);
    CHECK_OK(ho_cohort_run_epoch(c, stat, &err), &err); /* 12 updates: copied at 8 */
    CHECK_OK(ho_lane_save(c, 0, 1, &blob, &size, &err), &err);
    CHECK_OK(ho_lane_restore(c, 1, &lane, blob, size, &err), &err);
    for (int epoch = 2; epoch <= 6; epoch++) {
        CHECK_OK(ho_cohort_run_epoch(c, stat, &err), &err);
        assert_memory_equal(lanes->lane[0]->target, lanes->lane[1]->target, bytes);
        const int copied_last = epoch * 12 % 8 == 0; /* the last update of the epoch copies */
        const int equal = memcmp(lanes->lane[1]->target, lanes->lane[1]->online, bytes) == 0;
        assert_int_equal(equal, copied_last);
    }
    free(blob);
    ho_cohort_destroy(&c);
    world_free(&w);
}

/* Rainbow 2: the noise is drawn once and never again. */
static void noise_is_fresh_at_every_step_and_update_and_absent_in_evaluation(void **state)
{
    (void)state;
    world *w = world_new(WORLD_SIGNAL, 300, 3, WORLD_FEATURES, 1);
    ho_cohort_key key = world_key(w, HO_DQN);
    key.noisy = 1;
    const ho_lane_config lane = world_lane(w, &key, 2);
    bench b;
    open_bench(&b, &key, &lane, w);
    const ho_net_layout *net = &b.work.shape->net;
    const uint32_t *rng = b.work.lane->env.key;
    float noise[6][1024];
    assert_true(net->noise_size > 0 && net->noise_size <= 1024);
    ho_net_noise(net, rng, 0, 0, HO_NOISE_ACT, noise[0]);
    ho_net_noise(net, rng, 1, 0, HO_NOISE_ACT, noise[1]);
    ho_net_noise(net, rng, 0, 1, HO_NOISE_ACT, noise[2]);
    ho_net_noise(net, rng, 0, 0, HO_NOISE_ONLINE, noise[3]);
    ho_net_noise(net, rng, 0, 0, HO_NOISE_TARGET, noise[4]);
    ho_net_noise(net, rng, 0, 0, HO_NOISE_ACT, noise[5]);
    assert_memory_equal(noise[0], noise[5], (size_t)net->noise_size * sizeof(float));
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < i; k++) {
            for (int64_t at = 0; at < net->noise_size; at++) {
                assert_true(noise[i][at] != noise[k][at] || noise[i][at] == 0.0f);
            }
        }
    }
    /* evaluation: the mean weights, whatever sigma is */
    float state_row[64] = {0.3f, -0.2f, 0.5f, 1.0f}, score[2][HO_ACTIONS];
    uint8_t action;
    void *scratch = calloc(1, ho_cpu_act_scratch(b.cohort, 1));
    CHECK_STATUS(ho_cpu_act(b.cohort, 0, state_row, 1, 0, score[0], &action, scratch), HO_OK);
    for (int i = 0; i < HO_LAYERS; i++) {
        const ho_layer_layout *l = &net->layer[i];
        for (int64_t k = 0; l->noisy && k < (int64_t)l->in * l->out; k++) {
            b.work.lane->online[l->weight_sigma + k] = 100.0f;
        }
    }
    ho_lane_pack_acting(b.work.shape, b.work.lane);
    CHECK_STATUS(ho_cpu_act(b.cohort, 0, state_row, 1, 9, score[1], &action, scratch), HO_OK);
    assert_memory_equal(score[0], score[1], sizeof score[0]);
    free(scratch);
    close_bench(&b);
}

/* jax 31919: the result of a row depends on how many rows there are. */
static void a_states_values_do_not_depend_on_its_neighbours(void **state)
{
    (void)state;
    enum { STATES = 77 };
    for (int form = 0; form < 3; form++) {
        world *w = world_new(WORLD_SIGNAL, 300, 3, WORLD_FEATURES, 1);
        ho_cohort_key key = world_key(w, form == 1 ? HO_PPO : HO_DQN);
        key.atoms = form == 2 ? 11 : 0;
        key.branching = form == 2;
        const ho_lane_config lane = world_lane(w, &key, 2);
        bench b;
        open_bench(&b, &key, &lane, w);
        const int S = b.work.shape->net.state;
        float *states = calloc(STATES * 64, sizeof *states);
        static float all[STATES][HO_ACTIONS], one[HO_ACTIONS];
        uint8_t actions[STATES], action;
        uint64_t random = 5;
        for (int i = 0; i < STATES * S; i++) {
            states[i] = (float)world_normal(&random);
        }
        void *scratch = calloc(1, ho_cpu_act_scratch(b.cohort, STATES));
        CHECK_STATUS(ho_cpu_act(b.cohort, 0, states, STATES, 0, &all[0][0], actions, scratch),
                     HO_OK);
        for (int i = 0; i < STATES; i++) {
            CHECK_STATUS(
                ho_cpu_act(b.cohort, 0, states + (int64_t)i * S, 1, 0, one, &action, scratch),
                HO_OK);
            assert_memory_equal(one, all[i], sizeof one);
            assert_int_equal(action, actions[i]);
        }
        free(scratch);
        free(states);
        close_bench(&b);
    }
}

/* optuna 3050: memory grows with the number of trials. */
static void memory_does_not_grow_over_many_trials(void **state)
{
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* freed memory is kept in quarantine; leaks are found by the sanitizer itself */
#endif
    ho_err err;
    ho_epoch_stat stat[2];
    world *w = world_new(WORLD_SIGNAL, 300, 3, WORLD_FEATURES, 1);
    ho_cohort_key key = world_key(w, HO_DQN);
    key.updates = 2;
    ho_cohort *c;
    struct rusage use;
    long before_kb = 0;
    CHECK_OK(ho_cohort_create(w->backend, w->market, &key, 2, &c, &err), &err);
    for (int trial = 0; trial < 300; trial++) {
        const ho_lane_config lane = world_lane(w, &key, (uint64_t)trial);
        CHECK_OK(ho_lane_start(c, 0, &lane, &err), &err);
        CHECK_OK(ho_cohort_run_epoch(c, stat, &err), &err);
        CHECK_STATUS(ho_lane_stop(c, 0), HO_OK);
        if (trial == 50) {
            getrusage(RUSAGE_SELF, &use);
            before_kb = use.ru_maxrss;
        }
    }
    getrusage(RUSAGE_SELF, &use);
    /* 250 lanes of 0.5 MB would be 125 MB */
    assert_true(use.ru_maxrss - before_kb < 8192);
    ho_cohort_destroy(&c);
    world_free(&w);
}

/* mani-skill PR 1215: every reset starts from the same seed. */
static void every_reset_draws_a_new_start(void **state)
{
    (void)state;
    world *w = world_new(WORLD_SIGNAL, 4000, 3, WORLD_FEATURES, 1);
    ho_cohort_key key = world_key(w, HO_DQN);
    key.episode_length = 50;
    key.updates = 0;
    ho_lane_config lane = world_lane(w, &key, 2);
    bench b;
    open_bench(&b, &key, &lane, w);
    enum { STARTS_MAX = 64 };
    int32_t starts[STARTS_MAX];
    int count = 0, repeated = 0;
    for (int epoch = 0; epoch < 4; epoch++) {
        ho_lane_epoch(&b.work);
        for (int slot = 0; slot < key.episodes; slot++) {
            starts[count++] = b.work.scratch->rollout.bar[slot];
        }
    }
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < i; k++) {
            repeated += starts[i] == starts[k];
        }
    }
    /* 64 of 4,000 bars: 0.5 pairs are expected to meet by chance */
    assert_true(repeated <= 4);
    close_bench(&b);
}

/* ---- rsl_rl 33: one environment's NaN spreads over the batch into everything ---- */

enum { POISONED = 3 };

typedef struct nan_form {
    ho_algorithm algorithm;
    int32_t precision;
} nan_form;

static const nan_form nan_forms[] = {{HO_DQN, HO_PRECISION_F32},
                                     {HO_DQN, HO_PRECISION_BF16},
                                     {HO_PPO, HO_PRECISION_F32},
                                     {HO_PPO, HO_PRECISION_BF16}};
enum { NAN_FORMS = sizeof nan_forms / sizeof nan_forms[0] };

static ho_cohort_key nan_key(const world *w, const nan_form *f)
{
    ho_cohort_key key = world_key(w, f->algorithm);
    key.precision = f->precision;
    return key;
}

static ho_lane_config nan_lane(const world *w, const ho_cohort_key *key, uint64_t trial)
{
    ho_lane_config lane = world_lane(w, key, trial);
    lane.env.reset_flags = 0; /* the account goes on into the next epoch */
    return lane;
}

static void poison(ho_lane *lane)
{
    lane->slot[POISONED].equity = NAN;
    lane->slot[POISONED].account.cash = NAN;
}

/* Within a lane the network is shared, so a NaN must not come as far as an update: the other
 * episodes are what they would have been, the guard stops the lane, its weights stay finite. */
static void an_episodes_nan_changes_no_other_episode_and_no_weight(void **state)
{
    (void)state;
    for (int f = 0; f < NAN_FORMS; f++) {
        bench bad, good;
        world *w = world_new(WORLD_SIGNAL, 400, 3, WORLD_FEATURES, 1);
        const ho_cohort_key key = nan_key(w, &nan_forms[f]);
        const ho_lane_config lane = nan_lane(w, &key, 2);
        open_bench(&bad, &key, &lane, w);
        open_bench(&good, &key, &lane, world_new(WORLD_SIGNAL, 400, 3, WORLD_FEATURES, 1));
        ho_lane_epoch(&bad.work);
        ho_lane_epoch(&good.work);
        poison(bad.work.lane);
        ho_lane_collect(&bad.work);
        ho_lane_collect(&good.work);
        const ho_rollout *a = &bad.work.scratch->rollout, *b = &good.work.scratch->rollout;
        const size_t columns = (size_t)bad.work.shape->portfolio;
        int poisoned = 0;
        for (int32_t at = 0; at < bad.work.shape->steps * key.episodes; at++) {
            const size_t p = (size_t)at * columns;
            if (at % key.episodes == POISONED) {
                poisoned += isnan(a->before[p]);
                continue;
            }
            assert_int_equal(a->bar[at], b->bar[at]);
            assert_int_equal(a->action[at], b->action[at]);
            assert_int_equal(a->flags[at], b->flags[at]);
            assert_true(a->reward[at] == b->reward[at]);
            assert_memory_equal(a->before + p, b->before + p, columns * sizeof(float));
            assert_memory_equal(a->after + p, b->after + p, columns * sizeof(float));
        }
        assert_true(poisoned > 0); /* until its episode's end */
        if (key.algorithm == HO_PPO) {
            ho_lane_learn_ppo(&bad.work);
        } else {
            ho_lane_learn_dqn(&bad.work);
        }
        assert_int_equal(bad.work.lane->n.state, HO_LANE_DIVERGED);
        assert_int_not_equal(bad.work.lane->n.guard, HO_GUARD_NONE);
        for (int64_t i = 0; i < bad.work.shape->net.size; i++) {
            assert_true(isfinite(bad.work.lane->online[i]) && isfinite(bad.work.lane->m[i]));
        }
        close_bench(&bad);
        close_bench(&good);
    }
}

static void an_episodes_nan_stops_its_lane_and_no_other(void **state)
{
    (void)state;
    enum { LANES = 3, BAD = 1 };
    ho_err err;
    for (int f = 0; f < NAN_FORMS; f++) {
        world *w = world_new(WORLD_SIGNAL, 400, 3, WORLD_FEATURES, 2);
        const ho_cohort_key key = nan_key(w, &nan_forms[f]);
        ho_cohort *c[2];
        ho_epoch_stat stat[2][LANES];
        for (int i = 0; i < 2; i++) {
            CHECK_OK(ho_cohort_create(w->backend, w->market, &key, LANES, &c[i], &err), &err);
            for (int slot = 0; slot < LANES; slot++) {
                const ho_lane_config lane = nan_lane(w, &key, (uint64_t)slot);
                CHECK_OK(ho_lane_start(c[i], slot, &lane, &err), &err);
            }
            CHECK_OK(ho_cohort_run_epoch(c[i], stat[i], &err), &err);
        }
        poison(ho_cpu_cohort_of(c[0])->lane[BAD]);
        for (int i = 0; i < 2; i++) {
            CHECK_OK(ho_cohort_run_epoch(c[i], stat[i], &err), &err);
            CHECK_OK(ho_cohort_run_epoch(c[i], stat[i], &err), &err);
        }
        for (int slot = 0; slot < LANES; slot++) {
            void *blob[2];
            size_t size[2];
            if (slot == BAD) {
                assert_int_equal(stat[0][slot].state, HO_LANE_DIVERGED);
                assert_int_equal(stat[1][slot].state, HO_LANE_ACTIVE);
                continue;
            }
            for (int i = 0; i < 2; i++) {
                CHECK_OK(ho_lane_save(c[i], slot, 1, &blob[i], &size[i], &err), &err);
            }
            assert_int_equal(size[0], size[1]);
            assert_memory_equal(blob[0], blob[1], size[0]);
            free(blob[0]);
            free(blob[1]);
        }
        ho_cohort_destroy(&c[0]);
        ho_cohort_destroy(&c[1]);
        world_free(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_truncated_step_bootstraps_from_the_state_before_the_reset),
        cmocka_unit_test(an_n_step_return_stops_at_the_episodes_end),
        cmocka_unit_test(the_target_is_copied_at_the_same_updates_after_save_and_load),
        cmocka_unit_test(noise_is_fresh_at_every_step_and_update_and_absent_in_evaluation),
        cmocka_unit_test(a_states_values_do_not_depend_on_its_neighbours),
        cmocka_unit_test(memory_does_not_grow_over_many_trials),
        cmocka_unit_test(every_reset_draws_a_new_start),
        cmocka_unit_test(an_episodes_nan_changes_no_other_episode_and_no_weight),
        cmocka_unit_test(an_episodes_nan_stops_its_lane_and_no_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
