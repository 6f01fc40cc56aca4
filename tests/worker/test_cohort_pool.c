/* SPDX-License-Identifier: Apache-2.0
 * Continuous batching against a scripted backend: who starts when, what leaves, what is reported.
 */
#include "check.h"

#include <stdlib.h>

#include "scripted_backend.h"
#include "study/log.h"
#include "worker/cohort_pool.h"

enum { MAX_EVENTS = 4096 };

struct event {
    char kind; /* 'e' epoch, 'r' result, 'f' failure */
    int64_t trial;
    int epoch;
    bool scored;
    double value, loss;
    ho_failure_kind failure;
    int lane;
    char reason[256];
    double test[16];
    int tests;
};

static struct event event[MAX_EVENTS];
static int events;

static void on_epoch(void *user, const ho_trial_run *run, const ho_trial_epoch *row)
{
    (void)user;
    event[events++] = (struct event){.kind = 'e',
                                     .trial = run->plan->number,
                                     .epoch = row->epoch,
                                     .scored = row->scored,
                                     .value = row->value[0],
                                     .loss = row->stat.loss_mean};
}

static void on_finished(void *user, ho_trial_run *run)
{
    (void)user;
    struct event *e = &event[events++];
    *e = (struct event){.kind = 'r', .trial = run->plan->number};
    e->tests = run->plan->folds * run->plan->seeds;
    for (int i = 0; i < e->tests && i < 16; i++) {
        e->test[i] = run->test[i].metrics.value[HO_METRIC_SHARPE];
        assert_int_equal(run->test[i].sessions, 2);
        assert_non_null(run->test[i].actions);
        CHECK_NEAR(run->test[i].equity[4], e->test[i], 0);
        CHECK_NEAR(run->test[i].trades[0].net, e->test[i], 0);
    }
    for (int i = 0; i < run->plan->lanes; i++) {
        assert_int_equal(run->lane[i].weights.count, 1);
    }
}

static void on_failed(void *user, const ho_trial_run *run, const ho_trial_failure *failure)
{
    (void)user;
    struct event *e = &event[events++];
    *e = (struct event){.kind = 'f',
                        .trial = run->plan->number,
                        .failure = failure->kind,
                        .lane = failure->lane,
                        .epoch = failure->epoch};
    snprintf(e->reason, sizeof e->reason, "%s", failure->reason);
}

static ho_backend *backend;
static ho_market *market;
static ho_pool *pool;

static bool overlap; /* of the pools opened next */
static int together;

static void open_pool(int lanes)
{
    ho_err err = {0};
    ho_backend_options options = ho_backend_defaults();
    CHECK_OK(ho_backend_open(&backend, &options, &err), &err);
    CHECK_OK(ho_market_load(backend, NULL, &market, &err), &err);
    ho_pool_options po = {.backend = backend,
                          .market = market,
                          .lanes = lanes,
                          .together = together,
                          .overlap = overlap,
                          .clock_ns = script_clock_ns};
    po.sink.epoch = on_epoch;
    po.sink.finished = on_finished;
    po.sink.failed = on_failed;
    CHECK_OK(ho_pool_create(&pool, &po, &err), &err);
    events = 0;
}

static int setup(void **state)
{
    (void)state;
    script_reset();
    overlap = false;
    together = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ho_pool_destroy(&pool);
    ho_market_unload(&market);
    ho_backend_close(&backend);
    /* a cohort or a job left behind fails the test, and a lane touched while an epoch ran */
    return script.cohorts + script.jobs + script.intrusions;
}

struct shape {
    int folds, seeds, epochs, hidden;
};

static ho_trial_plan *plan_of(int64_t number, struct shape shape)
{
    ho_err err = {0};
    ho_trial_plan *plan = NULL;
    CHECK_OK(ho_trial_plan_create(&plan, shape.folds, shape.folds, shape.seeds, &err), &err);
    plan->number = number;
    plan->attempt = 1;
    plan->key.hidden1 = shape.hidden;
    plan->epochs = shape.epochs;
    plan->eval_every = 2;
    plan->objectives = 1;
    plan->objective[0] = HO_METRIC_SHARPE;
    for (int i = 0; i < plan->lanes; i++) {
        plan->lane[i].rng_key[0] = (uint64_t)(number * 100 + i + 1);
    }
    for (int f = 0; f < shape.folds; f++) {
        plan->validation[f] = (ho_window){.begin = 100 * f, .end = 100 * f + 50};
        plan->test[f] = (ho_window){.begin = 100 * f + 50, .end = 100 * f + 100};
    }
    return plan;
}

static void add(int64_t number, struct shape shape)
{
    ho_err err = {0};
    ho_trial_plan *plan = plan_of(number, shape);
    CHECK_OK(ho_pool_add(pool, &plan, &err), &err);
    assert_null(plan);
}

static bool step(void)
{
    ho_err err = {0};
    bool worked = false;
    CHECK_OK(ho_pool_step(pool, &worked, &err), &err);
    return worked;
}

static void run_all(void)
{
    for (int i = 0; step(); i++) {
        assert_true(i < 1000);
    }
}

static const struct event *find(char kind, int64_t trial)
{
    for (int i = 0; i < events; i++) {
        if (event[i].kind == kind && event[i].trial == trial) {
            return &event[i];
        }
    }
    fail_msg("no event '%c' of trial %lld", kind, (long long)trial);
    return event;
}

static int count(char kind, int64_t trial)
{
    int n = 0;
    for (int i = 0; i < events; i++) {
        n += event[i].kind == kind && event[i].trial == trial;
    }
    return n;
}

static void a_trial_reports_every_epoch_and_one_result(void **state)
{
    (void)state;
    open_pool(8);
    add(3, (struct shape){.folds = 2, .seeds = 2, .epochs = 5, .hidden = 32});
    run_all();
    assert_int_equal(count('e', 3), 5);
    assert_int_equal(count('r', 3), 1);
    const struct event *r = find('r', 3);
    assert_int_equal(r->tests, 4);
    for (int i = 0; i < 4; i++) { /* lane fold * seeds + seed scores test window fold */
        ho_window test = {.begin = 100 * (i / 2) + 50};
        CHECK_NEAR(r->test[i], script_value((uint64_t)(301 + i), 5, test), 0);
    }
    /* epochs 2 and 4 by eval_every, 5 because it is the last */
    bool scored[] = {false, true, false, true, true};
    for (int e = 0; e < 5; e++) {
        assert_int_equal(event[e].epoch, e + 1);
        assert_int_equal(event[e].scored, scored[e]);
    }
    double sum = 0.0;
    for (int i = 0; i < 4; i++) {
        sum += script_value((uint64_t)(301 + i), 2, (ho_window){.begin = 100 * (i / 2)});
    }
    CHECK_NEAR(event[1].value, sum / 4, 0);
    assert_int_equal(ho_pool_active_lanes(pool), 0);
}

static void finished_lanes_leave_and_queued_trials_enter(void **state)
{
    (void)state;
    open_pool(4);
    for (int t = 0; t < 6; t++) {
        add(t, (struct shape){.folds = 2, .seeds = 1, .epochs = 1 + t % 3, .hidden = 32});
    }
    assert_true(step());
    assert_int_equal(script.lanes_started, 4);
    assert_true(step()); /* trial 0 left after its one epoch, trial 2 entered beside trial 1 */
    assert_int_equal(script.lanes_started, 6);
    run_all();
    for (int t = 0; t < 6; t++) {
        assert_int_equal(count('r', t), 1);
        assert_int_equal(count('e', t), 1 + t % 3);
    }
    assert_int_equal(script.cohorts_created, 1);
    assert_true(script.most_lanes_held <= 4);
}

static void what_a_trial_reports_does_not_depend_on_the_slots(void **state)
{
    (void)state;
    struct shape shape = {.folds = 3, .seeds = 2, .epochs = 4, .hidden = 32};
    static struct event wide[64];
    open_pool(64);
    add(5, shape);
    run_all();
    int n = events;
    memcpy(wide, event, (size_t)n * sizeof *event);
    for (int lanes = 1; lanes <= 6; lanes++) {
        teardown(NULL);
        script_reset();
        open_pool(lanes);
        add(4, shape);
        add(5, shape);
        run_all();
        int at = 0;
        for (int i = 0; i < events; i++) {
            if (event[i].trial == 5) {
                assert_memory_equal(&event[i], &wide[at], sizeof event[i]);
                at++;
            }
        }
        assert_int_equal(at, n);
    }
}

static void a_trial_larger_than_the_cohort_runs_fold_by_fold(void **state)
{
    (void)state;
    open_pool(5);
    add(1, (struct shape){.folds = 4, .seeds = 2, .epochs = 2, .hidden = 32});
    assert_true(step());
    assert_int_equal(script.lanes_started, 4); /* two folds of two seeds, not five lanes */
    run_all();
    assert_int_equal(count('r', 1), 1);
    assert_int_equal(count('e', 1), 2);
}

static void trials_of_other_shapes_take_turns(void **state)
{
    (void)state;
    open_pool(8);
    add(1, (struct shape){.folds = 2, .seeds = 1, .epochs = 3, .hidden = 32});
    add(2, (struct shape){.folds = 2, .seeds = 1, .epochs = 3, .hidden = 64});
    assert_true(step());
    assert_true(step());
    assert_int_equal(count('e', 1), 1);
    assert_int_equal(count('e', 2), 1);
    const ho_cohort_key *key[4];
    assert_int_equal(ho_pool_keys(pool, key, 4), 2);
    run_all();
    assert_int_equal(count('r', 1) + count('r', 2), 2);
}

static void nobody_of_its_key_passes_a_waiting_trial(void **state)
{
    (void)state;
    open_pool(4);
    add(1, (struct shape){.folds = 3, .seeds = 1, .epochs = 3, .hidden = 32});
    add(2, (struct shape){.folds = 4, .seeds = 1, .epochs = 1, .hidden = 32});
    add(3, (struct shape){.folds = 1, .seeds = 1, .epochs = 1, .hidden = 32});
    run_all();
    assert_true(find('r', 2) < find('r', 3));
}

static void a_pruned_trial_frees_its_slots_at_once(void **state)
{
    (void)state;
    open_pool(2);
    add(1, (struct shape){.folds = 2, .seeds = 1, .epochs = 50, .hidden = 32});
    add(2, (struct shape){.folds = 2, .seeds = 1, .epochs = 1, .hidden = 32});
    assert_true(step());
    assert_false(ho_pool_drop(pool, 1, 9)); /* another attempt is another trial */
    assert_true(ho_pool_drop(pool, 1, 1));
    assert_false(ho_pool_drop(pool, 1, 1));
    run_all();
    assert_int_equal(count('r', 1), 0);
    assert_int_equal(count('r', 2), 1);
    assert_int_equal(count('e', 1), 1);
}

static void a_diverged_lane_fails_its_trial_alone(void **state)
{
    (void)state;
    open_pool(8);
    script.diverge_key = 103; /* trial 1, lane 2: fold 1, seed 0 */
    script.diverge_epoch = 2;
    add(1, (struct shape){.folds = 2, .seeds = 2, .epochs = 4, .hidden = 32});
    add(2, (struct shape){.folds = 2, .seeds = 2, .epochs = 4, .hidden = 32});
    run_all();
    assert_int_equal(count('f', 1), 1);
    assert_int_equal(count('r', 1), 0);
    assert_int_equal(count('r', 2), 1);
    const struct event *f = find('f', 1);
    assert_int_equal(f->failure, HO_FAILURE_DIVERGED);
    assert_int_equal(f->lane, 2);
    CHECK_CONTAINS(f->reason, "fold 1, seed 0, epoch 2, update 7");
    CHECK_CONTAINS(f->reason, "loss");
}

static void a_trial_that_cannot_start_is_a_failed_trial(void **state)
{
    (void)state;
    open_pool(8);
    script.refuse_key = 102;
    add(1, (struct shape){.folds = 2, .seeds = 1, .epochs = 2, .hidden = 32});
    add(2, (struct shape){.folds = 2, .seeds = 1, .epochs = 2, .hidden = 32});
    run_all();
    assert_int_equal(find('f', 1)->failure, HO_FAILURE_CONFIG);
    CHECK_CONTAINS(find('f', 1)->reason, "dqn.gamma");
    assert_int_equal(count('r', 2), 1);
    assert_int_equal(ho_pool_active_lanes(pool), 0);
}

static void out_of_memory_halves_the_cohort(void **state)
{
    (void)state;
    open_pool(16);
    script.create_limit = 5; /* 16 and 8 fail, 4 works */
    for (int t = 0; t < 4; t++) {
        add(t, (struct shape){.folds = 2, .seeds = 1, .epochs = 2, .hidden = 32});
    }
    run_all();
    for (int t = 0; t < 4; t++) {
        assert_int_equal(count('r', t), 1);
    }
    assert_int_equal(script.most_lanes_held, 4);
}

static void an_idle_cohort_makes_room_for_another_shape(void **state)
{
    (void)state;
    open_pool(4);
    script.create_limit = 4;
    add(1, (struct shape){.folds = 4, .seeds = 1, .epochs = 2, .hidden = 32});
    add(2, (struct shape){.folds = 4, .seeds = 1, .epochs = 2, .hidden = 64});
    run_all();
    assert_int_equal(count('r', 1), 1);
    assert_int_equal(count('r', 2), 1);
    assert_int_equal(script.most_lanes_held, 4);
}

static void a_lane_that_never_fits_fails_as_out_of_memory(void **state)
{
    (void)state;
    open_pool(4);
    script.lane_bytes = (size_t)2 << 30;
    add(1, (struct shape){.folds = 1, .seeds = 1, .epochs = 2, .hidden = 32});
    run_all();
    assert_int_equal(find('f', 1)->failure, HO_FAILURE_OOM);
}

static void a_lost_device_fails_every_trial_and_ends_the_pool(void **state)
{
    (void)state;
    ho_err err = {0};
    bool worked = false;
    open_pool(4);
    script.epochs_until_lost = 2;
    add(1, (struct shape){.folds = 4, .seeds = 1, .epochs = 5, .hidden = 32});
    add(2, (struct shape){.folds = 1, .seeds = 1, .epochs = 5, .hidden = 64});
    assert_true(step());
    CHECK_STATUS(ho_pool_step(pool, &worked, &err), HO_EGPU);
    assert_int_equal(find('f', 1)->failure, HO_FAILURE_DEVICE);
    assert_int_equal(find('f', 2)->failure, HO_FAILURE_DEVICE);
    CHECK_CONTAINS(find('f', 1)->reason, "illegal memory access");
}

static void the_best_validation_weights_are_scored_when_asked(void **state)
{
    (void)state;
    ho_err err = {0};
    open_pool(4);
    ho_trial_plan *plan = plan_of(1, (struct shape){.folds = 1, .seeds = 1, .epochs = 5});
    plan->select_best = true;
    plan->objective[0] = HO_METRIC_VOLATILITY; /* less is better: epoch 2 beats 4 and 5 */
    CHECK_OK(ho_pool_add(pool, &plan, &err), &err);
    run_all();
    CHECK_NEAR(find('r', 1)->test[0], script_value(101, 2, (ho_window){.begin = 50}), 0);
    assert_int_equal(script.imports, 1);
}

static void one_agent_can_serve_all_folds(void **state)
{
    (void)state;
    ho_err err = {0};
    ho_trial_plan *plan = NULL;
    open_pool(4);
    CHECK_OK(ho_trial_plan_create(&plan, 3, 1, 2, &err), &err);
    plan->number = 1;
    plan->attempt = 1;
    plan->epochs = 2;
    plan->eval_every = 1;
    plan->objectives = 1;
    for (int i = 0; i < 2; i++) {
        plan->lane[i].rng_key[0] = (uint64_t)(101 + i);
    }
    for (int f = 0; f < 3; f++) {
        plan->test[f] = (ho_window){.begin = 100 * f, .end = 100 * f + 100};
    }
    CHECK_OK(ho_pool_add(pool, &plan, &err), &err);
    run_all();
    const struct event *r = find('r', 1);
    assert_int_equal(r->tests, 6);
    for (int i = 0; i < 6; i++) {
        ho_window w = {.begin = 100 * (i / 2)};
        CHECK_NEAR(r->test[i], script_value((uint64_t)(101 + i % 2), 2, w), 0);
    }
    assert_int_equal(script.lanes_started, 2);
}

static void automatic_lanes_hold_whole_trials_that_fill_the_threads(void **state)
{
    (void)state;
    open_pool(0);
    script.processors = 2;
    assert_int_equal(ho_pool_lane_capacity(pool, 3), 6);
    assert_int_equal(ho_pool_lane_capacity(pool, 6), 6);
    assert_int_equal(ho_pool_lane_capacity(pool, 1), 2);
    assert_int_equal(ho_pool_lane_capacity(pool, 31), 31);
}

/* Interrupts a trial after `steps` epochs of its cohort, resumes it in another pool, and expects
 * the events of an undisturbed run. */
static void check_resume(int lanes, int steps, struct shape shape)
{
    static struct event calm[64];
    void *blob = NULL;
    size_t size = 0;
    ho_err err = {0};
    open_pool(lanes);
    add(5, shape);
    run_all();
    int n = events;
    memcpy(calm, event, (size_t)n * sizeof *event);
    teardown(NULL);
    open_pool(lanes);
    add(5, shape);
    for (int i = 0; i < steps; i++) {
        assert_true(step());
    }
    CHECK_OK(ho_pool_checkpoint(pool, 5, 1, true, &blob, &size, &err), &err);
    int before = events;
    teardown(NULL);
    open_pool(lanes);
    events = before; /* go on behind the events of the first half */
    ho_trial_plan *plan = plan_of(5, shape);
    plan->attempt = 2;
    CHECK_OK(ho_pool_resume(pool, &plan, blob, size, &err), &err);
    free(blob);
    run_all();
    assert_int_equal(events, n);
    for (int i = 0; i < n; i++) {
        assert_memory_equal(&event[i], &calm[i], sizeof event[i]);
    }
}

static void a_resumed_trial_reports_what_it_would_have(void **state)
{
    (void)state;
    struct shape shape = {.folds = 3, .seeds = 2, .epochs = 4, .hidden = 32};
    for (int lanes = 2; lanes <= 6; lanes += 2) { /* fold by fold, two folds, all at once */
        int epochs = (6 + lanes - 1) / lanes * shape.epochs;
        for (int steps = 1; steps < epochs; steps++) {
            check_resume(lanes, steps, shape);
            teardown(NULL);
        }
    }
    assert_true(script.lanes_restored > 0);
}

static void a_torn_or_foreign_checkpoint_starts_the_trial_anew(void **state)
{
    (void)state;
    void *blob = NULL;
    size_t size = 0;
    ho_err err = {0};
    struct shape shape = {.folds = 2, .seeds = 1, .epochs = 3, .hidden = 32};
    open_pool(2);
    add(5, shape);
    CHECK_STATUS(ho_pool_checkpoint(pool, 5, 1, true, &blob, &size, &err), HO_ENOTFOUND);
    assert_true(step());
    CHECK_OK(ho_pool_checkpoint(pool, 5, 1, true, &blob, &size, &err), &err);
    teardown(NULL);
    ho_log_set_level(HO_LOG_ERROR);
    for (int k = 0; k < 4; k++) {
        open_pool(2);
        script.lanes_restored = 0;
        ho_trial_plan *plan = plan_of(k == 0 ? 6 : 5, shape);
        size_t given = k == 1 ? size - 1 : k == 2 ? 3 : size;
        ((unsigned char *)blob)[size / 2] ^= k == 3;
        CHECK_OK(ho_pool_resume(pool, &plan, blob, given, &err), &err);
        run_all();
        assert_int_equal(script.lanes_restored, 0);
        assert_int_equal(count('e', k == 0 ? 6 : 5), 3);
        assert_int_equal(count('r', k == 0 ? 6 : 5), 1);
        teardown(NULL);
    }
    free(blob);
}

static void a_member_of_a_population_takes_over_anothers_agents(void **state)
{
    (void)state;
    ho_err err = {0};
    struct shape shape = {.folds = 2, .seeds = 1, .epochs = 4, .hidden = 32};
    ho_agent_config agent = {.learning_rate = 0.5};
    open_pool(8);
    add(1, shape);
    add(2, shape);
    CHECK_STATUS(ho_pool_copy(pool, 1, 2, &agent, NULL, &err), HO_EINVAL); /* not started */
    assert_true(step());
    CHECK_OK(ho_pool_copy(pool, 1, 2, &agent, NULL, &err), &err);
    CHECK_STATUS(ho_pool_copy(pool, 1, 3, &agent, NULL, &err), HO_EINVAL);
    const ho_trial_run *run[2];
    assert_int_equal(ho_pool_trials(pool, run, 2), 2);
    CHECK_NEAR(run[0]->plan->lane[1].agent.learning_rate, 0.5, 0);
    run_all();
    assert_int_equal(count('r', 1) + count('r', 2), 2);
}

static void every_fresh_lane_starts_with_weights_made_ahead(void **state)
{
    (void)state;
    open_pool(4);
    for (int t = 0; t < 9; t++) {
        add(t, (struct shape){.folds = 2, .seeds = 2, .epochs = 2, .hidden = 32});
    }
    assert_true(step()); /* asks for all, starts trial 0 */
    assert_int_equal(script.lanes_prepared, 4);
    assert_true(ho_pool_drop(pool, 3, 1)); /* its weights may be there, on their way or in line */
    assert_true(ho_pool_drop(pool, 8, 1));
    run_all();
    assert_int_equal(script.lanes_started, 7 * 4);
    assert_int_equal(script.lanes_prepared, script.lanes_started);
    add(20, (struct shape){.folds = 2, .seeds = 2, .epochs = 2, .hidden = 32});
    assert_true(step());
    add(21, (struct shape){.folds = 2, .seeds = 2, .epochs = 2, .hidden = 32});
    assert_true(step()); /* the pool goes with lanes that are prepared and lanes that run */
}

/* ---- a device that does not wait for its host ---- */

static void open_gpu_pool(int lanes, int job_polls)
{
    script.gpu = 1;
    script.job_polls = job_polls;
    overlap = true;
    open_pool(lanes);
}

/* Events of one trial, in order. */
static int events_of(int64_t trial, struct event *out)
{
    int n = 0;
    for (int i = 0; i < events; i++) {
        if (event[i].trial == trial) {
            out[n++] = event[i];
        }
    }
    return n;
}

static void what_a_trial_reports_does_not_depend_on_overlap(void **state)
{
    (void)state;
    enum { TRIALS = 7 };
    static struct event calm[TRIALS][64], now[64];
    int n[TRIALS];
    static const int lanes[] = {3, 6, 40};
    for (int run = 0; run < 1 + 3 * 4; run++) { /* the first run: one thing after the other */
        if (run == 0) {
            open_pool(4);
        } else {
            open_gpu_pool(lanes[(run - 1) % 3], (int[]){0, 1, 3, 50}[(run - 1) / 3]);
        }
        for (int t = 0; t < TRIALS; t++) {
            struct shape shape = {
                .folds = 1 + t % 3, .seeds = 1 + t % 2, .epochs = 3 + t, .hidden = 32 << t % 2};
            ho_err err = {0};
            ho_trial_plan *plan = plan_of(t, shape);
            plan->eval_every = 1 + t % 4;
            plan->select_best = t == 4;
            CHECK_OK(ho_pool_add(pool, &plan, &err), &err);
        }
        run_all();
        for (int t = 0; t < TRIALS; t++) {
            if (run == 0) {
                n[t] = events_of(t, calm[t]);
                assert_int_equal(n[t], 3 + t + 1);
            } else {
                assert_int_equal(events_of(t, now), n[t]);
                assert_memory_equal(now, calm[t], (size_t)n[t] * sizeof *now);
            }
        }
        assert_int_equal(teardown(NULL), 0);
        script_reset();
    }
    open_pool(1); /* for the teardown */
}

static void the_next_epoch_is_launched_before_the_last_is_looked_at(void **state)
{
    (void)state;
    ho_err err = {0};
    open_gpu_pool(4, 0);
    ho_trial_plan *plan = plan_of(1, (struct shape){.folds = 2, .seeds = 1, .epochs = 12});
    plan->eval_every = 4;
    CHECK_OK(ho_pool_add(pool, &plan, &err), &err);
    assert_true(step());
    assert_int_equal(script.launches, 2); /* one is collected, one under way */
    assert_int_equal(events, 0);          /* told while the next epochs run */
    assert_true(step());
    assert_int_equal(script.launches, 3);
    assert_int_equal(count('e', 1), 1);
    run_all();
    assert_int_equal(script.most_launched, 2);
    assert_int_equal(script.epochs_run, 12); /* none beyond a boundary */
    assert_int_equal(count('e', 1), 12);
}

static void nothing_runs_ahead_of_a_boundary(void **state)
{
    (void)state;
    ho_err err = {0};
    open_gpu_pool(4, 0);
    ho_trial_plan *plan = plan_of(1, (struct shape){.folds = 2, .seeds = 1, .epochs = 9});
    plan->eval_every = 1; /* every epoch is scored */
    CHECK_OK(ho_pool_add(pool, &plan, &err), &err);
    run_all();
    assert_int_equal(script.most_launched, 1);
    assert_int_equal(count('e', 1), 9);
}

static void windows_are_scored_beside_the_epochs_that_follow(void **state)
{
    (void)state;
    ho_err err = {0};
    open_gpu_pool(2, 2);
    ho_trial_plan *plan = plan_of(1, (struct shape){.folds = 2, .seeds = 1, .epochs = 4});
    CHECK_OK(ho_pool_add(pool, &plan, &err), &err); /* scored after epochs 2 and 4 */
    add(2, (struct shape){.folds = 2, .seeds = 1, .epochs = 4});
    while (script.jobs == 0) {
        assert_true(step());
    }
    assert_int_equal(script.epochs_run, 2);
    assert_true(step());
    assert_int_equal(script.jobs, 1); /* not ready yet */
    assert_int_equal(script.epochs_run, 3);
    assert_int_equal(count('e', 1), 1); /* its row waits for the value */
    while (script.lanes_started < 4) {
        assert_true(step());
    }
    assert_true(script.jobs > 0); /* the tests of trial 1, while trial 2 trains in its slots */
    assert_int_equal(count('r', 1), 0);
    run_all();
    assert_int_equal(count('r', 1) + count('r', 2), 2);
}

static void cohorts_of_other_shapes_are_under_way_together(void **state)
{
    (void)state;
    open_gpu_pool(8, 0);
    for (int t = 0; t < 3; t++) {
        add(t, (struct shape){.folds = 1, .seeds = 1, .epochs = 1, .hidden = 32 << t});
    }
    assert_true(step());
    assert_int_equal(script.launches, 3);
    assert_int_equal(script.epochs_run, 1);
    run_all();
    assert_int_equal(count('r', 0) + count('r', 1) + count('r', 2), 3);
}

static void a_trial_pruned_while_an_epoch_runs_leaves_at_its_end(void **state)
{
    (void)state;
    open_gpu_pool(2, 3);
    for (int steps = 1; steps < 9; steps++) {
        int64_t gone = 10 * steps, next = 10 * steps + 1;
        add(gone, (struct shape){.folds = 2, .seeds = 1, .epochs = 8, .hidden = 32});
        add(next, (struct shape){.folds = 2, .seeds = 1, .epochs = 1, .hidden = 32});
        for (int i = 0; i < steps; i++) {
            assert_true(step());
        }
        assert_true(ho_pool_drop(pool, gone, 1));
        int told = events;
        run_all();
        for (int i = told; i < events; i++) {
            assert_int_equal(event[i].trial, next);
        }
        assert_int_equal(count('r', next), 1);
        assert_int_equal(ho_pool_active_lanes(pool), 0);
    }
}

static void a_diverged_lane_is_seen_behind_the_epoch_launched_ahead(void **state)
{
    (void)state;
    open_gpu_pool(8, 1);
    script.diverge_key = 103;
    script.diverge_epoch = 3;
    add(1, (struct shape){.folds = 2, .seeds = 2, .epochs = 6, .hidden = 32});
    add(2, (struct shape){.folds = 2, .seeds = 2, .epochs = 6, .hidden = 32});
    run_all();
    assert_int_equal(count('f', 1), 1);
    assert_int_equal(count('e', 1), 2); /* the scores of epoch 2 are told first */
    assert_true(find('e', 1) < find('f', 1));
    CHECK_CONTAINS(find('f', 1)->reason, "fold 1, seed 0, epoch 3, update 7");
    assert_int_equal(count('r', 2), 1);
    assert_int_equal(count('e', 2), 6);
}

static void a_checkpoint_needs_what_is_under_way_to_have_ended(void **state)
{
    (void)state;
    static struct event calm[64], now[64];
    struct shape shape = {.folds = 3, .seeds = 2, .epochs = 6, .hidden = 32};
    ho_err err = {0};
    open_gpu_pool(4, 2);
    add(5, shape);
    run_all();
    int n = events_of(5, calm);
    for (int steps = 1;; steps++) {
        void *blob = NULL;
        size_t size = 0;
        assert_int_equal(teardown(NULL), 0);
        open_gpu_pool(4, 2);
        add(5, shape);
        for (int i = 0; i < steps; i++) {
            assert_true(step());
        }
        if (steps == 1) {
            CHECK_STATUS(ho_pool_checkpoint(pool, 5, 1, true, &blob, &size, &err), HO_EAGAIN);
        }
        CHECK_OK(ho_pool_settle(pool, &err), &err);
        assert_int_equal(script.jobs, 0);
        if (events > 0 && event[events - 1].kind == 'r') { /* it had come to its end */
            assert_true(steps > 10);
            break;
        }
        CHECK_OK(ho_pool_checkpoint(pool, 5, 1, true, &blob, &size, &err), &err);
        int before = events;
        assert_int_equal(teardown(NULL), 0);
        open_gpu_pool(4, 2);
        events = before;
        ho_trial_plan *plan = plan_of(5, shape);
        plan->attempt = 2;
        CHECK_OK(ho_pool_resume(pool, &plan, blob, size, &err), &err);
        free(blob);
        run_all();
        assert_int_equal(events_of(5, now), n);
        assert_memory_equal(now, calm, (size_t)n * sizeof *now);
    }
}

static void windows_that_do_not_fit_side_by_side_are_scored_in_turn(void **state)
{
    (void)state;
    open_gpu_pool(8, 100);
    script.jobs_limit = 1;
    for (int t = 0; t < 6; t++) {
        add(t, (struct shape){.folds = 1, .seeds = 1, .epochs = 3 + t % 2, .hidden = 32 << t % 3});
    }
    run_all();
    for (int t = 0; t < 6; t++) {
        assert_int_equal(count('r', t), 1);
    }
}

static void a_device_lost_while_windows_are_scored_fails_every_trial(void **state)
{
    (void)state;
    ho_err err = {0};
    bool worked = true;
    ho_status rc = HO_OK;
    open_gpu_pool(4, 1);
    script.jobs_until_lost = 1;
    add(1, (struct shape){.folds = 2, .seeds = 1, .epochs = 5, .hidden = 32});
    add(2, (struct shape){.folds = 1, .seeds = 1, .epochs = 5, .hidden = 64});
    ho_log_set_level(HO_LOG_ERROR);
    while (rc == HO_OK && worked) {
        rc = ho_pool_step(pool, &worked, &err);
    }
    assert_int_equal(rc, HO_EGPU);
    assert_int_equal(find('f', 1)->failure, HO_FAILURE_DEVICE);
    assert_int_equal(find('f', 2)->failure, HO_FAILURE_DEVICE);
}

static void lanes_of_one_shape_on_a_gpu_live_in_two_cohorts(void **state)
{
    (void)state;
    open_gpu_pool(0, 1);
    for (int t = 0; t < 20; t++) {
        add(t, (struct shape){.folds = 8, .seeds = 1, .epochs = 3 + t % 3, .hidden = 32});
    }
    assert_true(step());
    assert_int_equal(script.lanes_started, 128);
    assert_int_equal(script.cohorts, 2);
    assert_true(script.launches >= 2); /* of both */
    assert_int_equal(script.most_lanes_held, 128);
    run_all();
    for (int t = 0; t < 20; t++) {
        assert_int_equal(count('r', t), 1);
    }
    assert_int_equal(script.cohorts_created, 2);
}

static void a_population_shares_one_cohort(void **state)
{
    (void)state;
    together = 96;
    open_gpu_pool(0, 1);
    for (int t = 0; t < 12; t++) {
        add(t, (struct shape){.folds = 8, .seeds = 1, .epochs = 2, .hidden = 32});
    }
    run_all();
    assert_int_equal(script.cohorts_created, 1);
}

static void what_does_not_fit_in_memory_is_not_asked_for_again(void **state)
{
    (void)state;
    open_gpu_pool(0, 1);
    script.create_limit = 70; /* the second cohort of 64 gets 4 */
    for (int t = 0; t < 24; t++) {
        add(t, (struct shape){.folds = 4, .seeds = 1, .epochs = 2, .hidden = 32});
    }
    run_all();
    assert_int_equal(script.most_lanes_held, 68);
    assert_int_equal(ho_pool_lane_capacity(pool, 4), 68);
    for (int t = 0; t < 24; t++) {
        assert_int_equal(count('r', t), 1);
    }
}

/* Runs trials of 8 lanes, always enough of them, on a device that does lane_epochs_per_s
 * [lanes / 64]; gives the width that "auto" ends with. */
static int width_of(const double *lane_epochs_per_s)
{
    int64_t next = 0;
    script_reset();
    script.lane_epochs_per_s = lane_epochs_per_s;
    open_gpu_pool(0, 0);
    for (int i = 0; i < 3000; i++) {
        while (ho_pool_waiting_lanes(pool) < 64) {
            add(next++, (struct shape){.folds = 8, .seeds = 1, .epochs = 40, .hidden = 32});
        }
        assert_true(step());
        events = 0;
    }
    int width = ho_pool_lane_capacity(pool, 8);
    assert_true(ho_pool_active_lanes(pool) <= width);
    assert_int_equal(teardown(NULL), 0);
    return width;
}

static void more_lanes_are_trained_while_they_gain(void **state)
{
    (void)state;
    ho_log_set_level(HO_LOG_ERROR);
    const double level[9] = {0, 900, 1000, 1010, 1020, 1030, 1040, 1050, 1060};
    const double once[9] = {0, 900, 1000, 1100, 1110, 1120, 1130, 1140, 1150};
    const double always[9] = {0, 900, 1000, 1100, 1200, 1300, 1400, 1500, 1600};
    const double worse[9] = {0, 900, 1000, 800, 700, 600, 500, 400, 300};
    assert_int_equal(width_of(level), 128);
    assert_int_equal(width_of(once), 192);
    assert_int_equal(width_of(worse), 128);
    assert_int_equal(width_of(always), 8 * 64);
    open_pool(1); /* for the teardown */
}

static void a_repeated_attempt_is_refused(void **state)
{
    (void)state;
    ho_err err = {0};
    open_pool(4);
    struct shape shape = {.folds = 1, .seeds = 1, .epochs = 2, .hidden = 32};
    add(1, shape);
    ho_trial_plan *again = plan_of(1, shape);
    CHECK_STATUS(ho_pool_add(pool, &again, &err), HO_EINVAL);
    assert_null(again);
    run_all();
    assert_int_equal(count('r', 1), 1);
}

static void two_thousand_trials_leave_nothing_behind(void **state)
{
    (void)state;
    open_pool(16);
    int done = 0;
    for (int t = 0; t < 2000; t++) {
        add(t, (struct shape){.folds = 1 + t % 3, .seeds = 1, .epochs = 1, .hidden = 8 << t % 10});
        while (step()) {}
        done += count('r', t);
        events = 0;
    }
    assert_int_equal(done, 2000);
    assert_true(script.cohorts <= 8);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_trial_reports_every_epoch_and_one_result),
        T(finished_lanes_leave_and_queued_trials_enter),
        T(what_a_trial_reports_does_not_depend_on_the_slots),
        T(a_trial_larger_than_the_cohort_runs_fold_by_fold),
        T(trials_of_other_shapes_take_turns),
        T(nobody_of_its_key_passes_a_waiting_trial),
        T(a_pruned_trial_frees_its_slots_at_once),
        T(a_diverged_lane_fails_its_trial_alone),
        T(a_trial_that_cannot_start_is_a_failed_trial),
        T(out_of_memory_halves_the_cohort),
        T(an_idle_cohort_makes_room_for_another_shape),
        T(a_lane_that_never_fits_fails_as_out_of_memory),
        T(a_lost_device_fails_every_trial_and_ends_the_pool),
        T(the_best_validation_weights_are_scored_when_asked),
        T(one_agent_can_serve_all_folds),
        T(automatic_lanes_hold_whole_trials_that_fill_the_threads),
        T(a_resumed_trial_reports_what_it_would_have),
        T(a_torn_or_foreign_checkpoint_starts_the_trial_anew),
        T(a_member_of_a_population_takes_over_anothers_agents),
        T(every_fresh_lane_starts_with_weights_made_ahead),
        T(what_a_trial_reports_does_not_depend_on_overlap),
        T(the_next_epoch_is_launched_before_the_last_is_looked_at),
        T(nothing_runs_ahead_of_a_boundary),
        T(windows_are_scored_beside_the_epochs_that_follow),
        T(cohorts_of_other_shapes_are_under_way_together),
        T(a_trial_pruned_while_an_epoch_runs_leaves_at_its_end),
        T(a_diverged_lane_is_seen_behind_the_epoch_launched_ahead),
        T(a_checkpoint_needs_what_is_under_way_to_have_ended),
        T(windows_that_do_not_fit_side_by_side_are_scored_in_turn),
        T(a_device_lost_while_windows_are_scored_fails_every_trial),
        T(lanes_of_one_shape_on_a_gpu_live_in_two_cohorts),
        T(a_population_shares_one_cohort),
        T(what_does_not_fit_in_memory_is_not_asked_for_again),
        T(more_lanes_are_trained_while_they_gain),
        T(a_repeated_attempt_is_refused),
        T(two_thousand_trials_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
