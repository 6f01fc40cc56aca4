/* SPDX-License-Identifier: Apache-2.0
 * Dispatch: exactly once, silence and return, causes; with a fake clock (world.h). */
#include <stdlib.h>

#include "check.h"
#include "world.h"

/* ---- exactly once --------------------------------------------------------------------------- */

/* optuna 1883: 20 asked, 8 workers: exactly 20. */
static void exactly_the_trials_asked_for_with_many_workers(void **state)
{
    (void)state;
    world *w = world_make(20);
    for (int i = 0; i < 8; i++) {
        (void)world_join(w, 8);
    }
    world_finish(w, 0);
    assert_int_equal(w->leases, 20);
    assert_int_equal(w->acks, 20);
    assert_int_equal(world_trials_in(w, "COMPLETE"), 20);
    assert_string_equal(ho_dispatch_reason(w->d), "trials");
    world_free(w);
}

/* optuna 982: enqueued configurations run exactly once: 50 enqueued, 16 workers. */
static void each_enqueued_configuration_runs_once(void **state)
{
    (void)state;
    static char toml[16384];
    size_t n = (size_t)snprintf(toml, sizeof toml, "%s", fixture_toml);
    for (int i = 0; i < 50; i++) {
        n += (size_t)snprintf(toml + n, sizeof toml - n,
                              "[[enqueue]]\n\"barriers.stop_loss\" = %d.5\n", 11 + i);
    }
    world *w = world_make_of(toml, 60);
    world_start(w);
    for (int i = 0; i < 16; i++) {
        (void)world_join(w, 2);
    }
    for (int i = 0; i < 3; i++) {
        world_tick(w);
    }
    world_crash_and_restart(w); /* some are leased, none is delivered */
    for (int i = 0; i < 16; i++) {
        (void)world_join(w, 2);
    }
    w->now += 31 * second; /* the leases of the old life run out */
    for (int64_t i = 0; i < 16; i++) {
        ho_dispatch_heard(w->d, i + 17, w->now);
    }
    world_finish(w, 0);
    assert_int_equal(
        fixture_count(w->store,
                      "SELECT count(DISTINCT \"barriers.stop_loss\") FROM trial_wide WHERE "
                      "source = 'enqueue' AND \"barriers.stop_loss\" * 2 % 2 = 1"),
        50);
    assert_int_equal(fixture_count(w->store, "SELECT count(*) FROM trial WHERE source = 'enqueue'"),
                     50);
    assert_int_equal(world_trials_in(w, "COMPLETE"), 60);
    world_free(w);
}

static void a_repeated_result_is_acknowledged_and_changes_nothing(void **state)
{
    (void)state;
    world *w = world_make(2);
    (void)world_join(w, 1);
    world_tick(w);
    assert_int_equal(w->leases, 1);
    assert_int_equal(world_deliver(w, &w->lease[0], 1.5), HO_OK);
    assert_int_equal(world_deliver(w, &w->lease[0], 99.0), HO_OK);
    assert_int_equal(w->acks, 0); /* nothing is committed yet */
    world_tick(w);
    world_tick(w);
    assert_int_equal(world_deliver(w, &w->lease[0], 99.0), HO_OK);
    world_tick(w);
    assert_int_equal(w->acks, 3);
    assert_int_equal(fixture_count(w->store, "SELECT count(*) FROM trial_value WHERE value = 1.5"),
                     1);
    assert_int_equal(fixture_count(w->store, "SELECT count(*) FROM trial_value WHERE value = 99"),
                     0);
    world_free(w);
}

static void an_ack_waits_for_the_commit(void **state)
{
    (void)state;
    world *w = world_make(1);
    (void)world_join(w, 1);
    world_tick(w);
    sqlite3 *other = NULL;
    assert_int_equal(sqlite3_open(w->path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(world_deliver(w, &w->lease[0], 1.0), HO_OK);
    for (int i = 0; i < 5; i++) {
        world_tick(w);
    }
    assert_int_equal(w->acks, 0);
    assert_false(ho_dispatch_done(w->d));
    assert_int_equal(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    (void)sqlite3_close(other);
    world_finish(w, 1);
    assert_int_equal(w->acks, 1);
    world_free(w);
}

/* ---- silence, death, return ----------------------------------------------------------------- */

/* optuna 485, katib 845: a dead worker's trial does not stay RUNNING for ever. */
static void a_silent_workers_trials_are_given_to_others(void **state)
{
    (void)state;
    world *w = world_make(4);
    (void)world_join(w, 2);
    world_tick(w);
    assert_int_equal(w->leases, 2);
    w->now += 31 * second;
    int64_t second_worker = world_join(w, 8);
    world_tick(w);
    assert_true(w->leases >= 4);
    assert_int_equal(w->lease[2].worker, second_worker);
    assert_int_equal(w->lease[2].attempt, 2);
    world_finish(w, 2);
    assert_int_equal(world_trials_in(w, "COMPLETE"), 4);
    assert_int_equal(world_events_of(w, "requeue"), 2);
    world_free(w);
}

/* optuna 4234: a late result of a superseded attempt is an event, not a crash and not a value. */
static void a_late_result_of_an_old_attempt_is_an_event(void **state)
{
    (void)state;
    world *w = world_make(1);
    (void)world_join(w, 1);
    world_tick(w);
    w->now += 31 * second;
    (void)world_join(w, 1);
    world_tick(w);
    assert_int_equal(w->leases, 2);
    int64_t back = world_join(w, 0); /* the silent one again, as a new worker */
    sent late = {back, w->lease[0].number, w->lease[0].attempt};
    assert_int_equal(world_deliver(w, &late, 99.0), HO_OK);
    world_tick(w);
    assert_int_equal(world_events_of(w, "late"), 1);
    assert_int_equal(w->acks, 1); /* so that it forgets it */
    world_finish(w, 1);
    assert_int_equal(fixture_count(w->store, "SELECT count(*) FROM trial_value WHERE value = 99"),
                     0);
    world_free(w);
}

static void a_late_result_is_taken_when_nobody_else_has_the_trial(void **state)
{
    (void)state;
    world *w = world_make(1);
    (void)world_join(w, 1);
    world_tick(w);
    w->now += 31 * second;
    world_tick(w); /* given up, no other worker */
    assert_int_equal(world_trials_in(w, "WAITING") +
                         (ho_store_committed(w->store) < ho_store_queued(w->store)),
                     1);
    int64_t back = world_join(w, 0);
    sent same = {back, 0, 1};
    assert_int_equal(world_deliver(w, &same, 2.0), HO_OK);
    world_finish(w, 1);
    assert_int_equal(fixture_count(w->store, "SELECT count(*) FROM trial_value WHERE value = 2"),
                     1);
    world_free(w);
}

static void reports_of_a_live_worker_extend_its_lease(void **state)
{
    (void)state;
    world *w = world_make(1);
    int64_t worker = world_join(w, 1);
    world_tick(w);
    for (int i = 0; i < 10; i++) {
        w->now += 20 * second;
        ho_dispatch_heard(w->d, worker, w->now);
        world_tick(w);
    }
    assert_int_equal(world_events_of(w, "requeue"), 0);
    world_finish(w, 0);
    world_free(w);
}

static void a_restarted_coordinator_adopts_running_trials(void **state)
{
    (void)state;
    world *w = world_make(3);
    (void)world_join(w, 3);
    world_tick(w);
    world_tick(w);
    assert_int_equal(w->leases, 3);
    assert_int_equal(world_deliver(w, &w->lease[0], 5.0), HO_OK);
    world_tick(w);
    world_tick(w);
    sent held[3] = {w->lease[0], w->lease[1], w->lease[2]};
    world_crash_and_restart(w);
    int64_t worker = world_join_with(w, 0, held, 3);
    assert_int_equal(w->keeps, 2);
    assert_int_equal(w->drops, 1); /* its result is stored: it may forget it */
    for (int i = 1; i < 3; i++) {
        sent s = {worker, held[i].number, held[i].attempt};
        assert_int_equal(world_deliver(w, &s, 1.0), HO_OK);
    }
    world_finish(w, 0);
    assert_int_equal(w->leases, 0);
    assert_int_equal(world_trials_in(w, "COMPLETE"), 3);
    assert_int_equal(fixture_count(w->store, "SELECT max(attempt) FROM trial"), 1);
    world_free(w);
}

static void what_nobody_brings_back_after_a_restart_is_requeued(void **state)
{
    (void)state;
    world *w = world_make(2);
    (void)world_join(w, 2);
    world_tick(w);
    world_tick(w);
    world_crash_and_restart(w);
    int64_t worker = world_join(w, 2);
    world_tick(w);
    assert_int_equal(w->leases, 0); /* their worker may still come */
    w->now += 31 * second;
    ho_dispatch_heard(w->d, worker, w->now);
    world_finish(w, 0);
    assert_int_equal(w->leases, 2);
    assert_int_equal(w->lease[0].attempt, 2);
    world_free(w);
}

/* ray 32579: a node that dies between grant and start hangs nothing. */
static void a_lease_that_never_arrived_is_given_again(void **state)
{
    (void)state;
    ho_err err = {0};
    world *w = world_make(1);
    int64_t worker = world_join(w, 1);
    world_tick(w);
    assert_int_equal(w->leases, 1);
    ho_hello hello = {
        .name = "w", .host = "h", .device = "cpu", .backend = "cpu", .version = "0", .lanes = 1};
    CHECK_OK(ho_dispatch_join(w->d, &hello, w->now, &worker, &err),
             &err); /* reconnected, holds nothing */
    ho_dispatch_ready(w->d, worker, 1, 1, w->now);
    world_finish(w, 1);
    assert_int_equal(w->leases, 2);
    assert_int_equal(w->lease[1].attempt, 2);
    world_free(w);
}

/* The wall clock may jump: leases and order do not depend on it. */
static void a_jump_of_the_clock_changes_nothing(void **state)
{
    (void)state;
    world *w = world_make_of(fixture_toml, 6);
    w->config.in_flight = 2;
    world_start(w);
    (void)world_join(w, 2);
    world_tick(w);
    w->clock_error = -7200 * second;
    assert_int_equal(world_deliver(w, &w->lease[0], 1.0), HO_OK);
    world_tick(w);
    w->clock_error = 86400 * second;
    assert_int_equal(world_deliver(w, &w->lease[1], 2.0), HO_OK);
    world_tick(w);
    w->clock_error = 0;
    world_crash_and_restart(w);
    (void)world_join(w, 2);
    w->now += 31 * second;
    ho_dispatch_heard(w->d, 2, w->now);
    world_finish(w, 0);
    assert_int_equal(world_events_of(w, "lost"), 0);
    assert_int_equal(world_trials_in(w, "COMPLETE"), 6);
    assert_int_equal(fixture_count(w->store, "SELECT told_order FROM trial WHERE number = 1"), 2);
    world_free(w);
}

/* ---- causes --------------------------------------------------------------------------------- */

/* optuna 6085: retries only for causes where they can help. */
static void each_cause_has_its_own_policy(void **state)
{
    (void)state;
    static const struct {
        ho_cause cause;
        int attempts; /* until it fails; 0: never */
    } policy[] = {
        {HO_CAUSE_LOST, 3},     {HO_CAUSE_CRASH, 3},   {HO_CAUSE_OOM, 2},
        {HO_CAUSE_DIVERGED, 1}, {HO_CAUSE_TIMEOUT, 1}, {HO_CAUSE_CONFIG, 1},
        {HO_CAUSE_METRIC, 1},   {HO_CAUSE_COMMAND, 1}, {HO_CAUSE_PREEMPTED, 0},
    };
    for (size_t i = 0; i < sizeof policy / sizeof policy[0]; i++) {
        world *w = world_make(1);
        (void)world_join(w, 1);
        int attempts = 0;
        for (; attempts < 6 && world_trials_in(w, "FAILED") == 0; attempts++) {
            for (int t = 0; t < 200 && w->leases == attempts; t++) {
                world_tick(w);
                ho_dispatch_heard(w->d, 1, w->now);
            }
            assert_int_equal(w->leases, attempts + 1);
            assert_int_equal(world_give_up(w, &w->lease[attempts], policy[i].cause), HO_OK);
            world_tick(w);
            world_tick(w);
        }
        assert_int_equal(attempts, policy[i].attempts ? policy[i].attempts : 6);
        if (policy[i].attempts) {
            char sql[120];
            (void)snprintf(
                sql, sizeof sql,
                "SELECT count(*) FROM trial WHERE fail_class = '%s' AND fail_reason != ''",
                ho_cause_name(policy[i].cause));
            assert_int_equal(fixture_count(w->store, sql), 1);
        }
        world_free(w);
    }
}

static void a_crash_is_tried_again_after_a_pause_that_doubles(void **state)
{
    (void)state;
    world *w = world_make(1);
    (void)world_join(w, 1);
    world_tick(w);
    assert_int_equal(world_give_up(w, &w->lease[0], HO_CAUSE_CRASH), HO_OK);
    world_tick(w);
    assert_int_equal(w->leases, 1);
    w->now += second;
    world_tick(w);
    assert_int_equal(w->leases, 2);
    assert_int_equal(world_give_up(w, &w->lease[1], HO_CAUSE_CRASH), HO_OK);
    w->now += second;
    world_tick(w);
    assert_int_equal(w->leases, 2);
    w->now += second;
    world_tick(w);
    assert_int_equal(w->leases, 3);
    world_free(w);
}

/* One poisonous trial must not take those beside it down with it. */
static void the_trial_that_kills_workers_is_found_and_its_neighbours_are_spared(void **state)
{
    (void)state;
    world *w = world_make(8);
    int64_t worker = world_join(w, 8);
    int done = 0;
    for (int round = 0; round < 400 && !ho_dispatch_done(w->d); round++) {
        world_tick(w);
        bool poison = false, any = w->leases > done;
        for (int i = done; i < w->leases; i++) {
            poison = poison || w->lease[i].number == 3;
        }
        if (!any) {
            w->now += second;
            ho_dispatch_heard(w->d, worker, w->now);
            continue;
        }
        if (poison) { /* all of this worker's trials die with it */
            ho_dispatch_leave(w->d, worker, HO_CAUSE_CRASH, "killed by signal 11", w->now);
            worker = world_join(w, 8);
        } else {
            for (int i = done; i < w->leases; i++) {
                assert_int_equal(world_deliver(w, &w->lease[i], 1.0), HO_OK);
            }
        }
        done = w->leases;
    }
    assert_true(ho_dispatch_done(w->d));
    assert_int_equal(world_trials_in(w, "COMPLETE"), 7);
    assert_int_equal(fixture_count(w->store, "SELECT number FROM trial WHERE state = 'FAILED'"), 3);
    world_free(w);
}

static void a_worker_without_the_data_gets_no_more_trials(void **state)
{
    (void)state;
    world *w = world_make(2);
    int64_t bad = world_join(w, 1);
    world_tick(w);
    assert_int_equal(world_give_up(w, &w->lease[0], HO_CAUSE_DATA), HO_OK);
    for (int i = 0; i < 5; i++) {
        world_tick(w);
    }
    assert_int_equal(w->leases, 1);
    int64_t good = world_join(w, 2);
    world_finish(w, 1);
    for (int i = 1; i < w->leases; i++) {
        assert_int_equal(w->lease[i].worker, good);
        assert_int_not_equal(w->lease[i].worker, bad);
    }
    world_free(w);
}

static void an_undefined_objective_is_a_failed_trial_with_a_reason(void **state)
{
    (void)state;
    world *w = world_make(1);
    (void)world_join(w, 1);
    world_tick(w);
    assert_int_equal(world_deliver(w, &w->lease[0], NAN), HO_OK);
    world_finish(w, 1);
    assert_int_equal(
        fixture_count(
            w->store,
            "SELECT count(*) FROM trial WHERE state = 'FAILED' AND fail_class = 'metric'"),
        1);
    world_free(w);
}

static void messages_about_trials_never_given_out_are_offences(void **state)
{
    (void)state;
    world *w = world_make(2);
    int64_t worker = world_join(w, 1);
    world_tick(w);
    sent strange[] = {
        {worker, 77, 1}, {worker, -1, 1}, {worker, 0, 9}, {worker, 0, 0}, {worker, 0, -5}};
    for (size_t i = 0; i < sizeof strange / sizeof strange[0]; i++) {
        assert_int_equal(world_deliver(w, &strange[i], 1.0), HO_EINVAL);
        assert_int_equal(world_give_up(w, &strange[i], HO_CAUSE_CRASH), HO_EINVAL);
        assert_int_equal(world_report(w, &strange[i], 1, 1.0), HO_EINVAL);
    }
    int64_t thief = world_join(w, 0);
    sent stolen = {thief, 0, 1};
    assert_int_equal(world_deliver(w, &stolen, 99.0), HO_OK); /* dropped as late: it is another's */
    world_finish(w, 0);
    assert_int_equal(fixture_count(w->store, "SELECT count(*) FROM trial_value WHERE value = 99"),
                     0);
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exactly_the_trials_asked_for_with_many_workers),
        cmocka_unit_test(each_enqueued_configuration_runs_once),
        cmocka_unit_test(a_repeated_result_is_acknowledged_and_changes_nothing),
        cmocka_unit_test(an_ack_waits_for_the_commit),
        cmocka_unit_test(a_silent_workers_trials_are_given_to_others),
        cmocka_unit_test(a_late_result_of_an_old_attempt_is_an_event),
        cmocka_unit_test(a_late_result_is_taken_when_nobody_else_has_the_trial),
        cmocka_unit_test(reports_of_a_live_worker_extend_its_lease),
        cmocka_unit_test(a_restarted_coordinator_adopts_running_trials),
        cmocka_unit_test(what_nobody_brings_back_after_a_restart_is_requeued),
        cmocka_unit_test(a_lease_that_never_arrived_is_given_again),
        cmocka_unit_test(a_jump_of_the_clock_changes_nothing),
        cmocka_unit_test(each_cause_has_its_own_policy),
        cmocka_unit_test(a_crash_is_tried_again_after_a_pause_that_doubles),
        cmocka_unit_test(the_trial_that_kills_workers_is_found_and_its_neighbours_are_spared),
        cmocka_unit_test(a_worker_without_the_data_gets_no_more_trials),
        cmocka_unit_test(an_undefined_objective_is_a_failed_trial_with_a_reason),
        cmocka_unit_test(messages_about_trials_never_given_out_are_offences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
