/* SPDX-License-Identifier: Apache-2.0
 * The pool on a device that does not wait for its host, against a scripted backend: what is under
 * way at once, what has to wait, and how many lanes it is given. */
#include "pool_fixture.h"

#include <stdlib.h>

#include "study/log.h"

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
        CHECK_OK(ho_pool_settle(pool, -1, &err), &err);
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

static void settling_one_trial_leaves_other_cohorts_under_way(void **state)
{
    (void)state;
    ho_err err = {0};
    void *blob = NULL;
    size_t size = 0;
    open_gpu_pool(8, 50);
    add(1, (struct shape){.folds = 2, .seeds = 1, .epochs = 9, .hidden = 32});
    add(2, (struct shape){.folds = 2, .seeds = 1, .epochs = 9, .hidden = 64});
    for (int i = 0; i < 8; i++) { /* both have scores that are not ready */
        assert_true(step());
    }
    int jobs = script.jobs;
    assert_true(jobs >= 2);
    CHECK_OK(ho_pool_settle(pool, 1, &err), &err);
    assert_int_equal(script.jobs, jobs / 2);
    CHECK_OK(ho_pool_checkpoint(pool, 1, 1, true, &blob, &size, &err), &err);
    free(blob);
    blob = NULL;
    CHECK_STATUS(ho_pool_checkpoint(pool, 2, 1, true, &blob, &size, &err), HO_EAGAIN);
    CHECK_OK(ho_pool_settle(pool, 3, &err), &err); /* no such trial: nothing to wait for */
    run_all();
    assert_int_equal(count('e', 1) + count('e', 2), 18);
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
    script.create_limit = 0; /* now there is room, and another shape gets all of its lanes */
    for (int t = 24; t < 56; t++) {
        add(t, (struct shape){.folds = 4, .seeds = 1, .epochs = 2, .hidden = 64});
    }
    run_all();
    assert_int_equal(script.most_lanes_held, 68 + 128);
    assert_int_equal(ho_pool_lane_capacity(pool, 4), 128);
    for (int t = 24; t < 56; t++) {
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

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(what_a_trial_reports_does_not_depend_on_overlap),
        T(the_next_epoch_is_launched_before_the_last_is_looked_at),
        T(nothing_runs_ahead_of_a_boundary),
        T(windows_are_scored_beside_the_epochs_that_follow),
        T(cohorts_of_other_shapes_are_under_way_together),
        T(a_trial_pruned_while_an_epoch_runs_leaves_at_its_end),
        T(a_diverged_lane_is_seen_behind_the_epoch_launched_ahead),
        T(a_checkpoint_needs_what_is_under_way_to_have_ended),
        T(settling_one_trial_leaves_other_cohorts_under_way),
        T(windows_that_do_not_fit_side_by_side_are_scored_in_turn),
        T(a_device_lost_while_windows_are_scored_fails_every_trial),
        T(lanes_of_one_shape_on_a_gpu_live_in_two_cohorts),
        T(a_population_shares_one_cohort),
        T(what_does_not_fit_in_memory_is_not_asked_for_again),
        T(more_lanes_are_trained_while_they_gain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
