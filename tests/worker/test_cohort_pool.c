/* SPDX-License-Identifier: Apache-2.0
 * Continuous batching against a scripted backend: who starts when, what leaves, what is reported.
 */
#include "pool_fixture.h"

#include <stdlib.h>

#include "study/log.h"

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
        T(a_repeated_attempt_is_refused),
        T(two_thousand_trials_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
