/* SPDX-License-Identifier: Apache-2.0
 * Dispatch with a fake clock and workers that are lists of leases: what must hold whatever workers
 * do. */
#include <stdlib.h>

#include "check.h"
#include "coordinator/dispatch.h"
#include "coordinator/search_options.h"
#include "fixture.h"

enum { MAX = 4096 };
static const int64_t second = 1000000000;

typedef struct sent {
    int64_t worker, number, attempt;
} sent;

typedef struct world {
    ho_study *study;
    ho_store *store;
    ho_sampler *sampler;
    ho_pruner *pruner;
    ho_dispatch *d;
    ho_dispatch_config config;
    char path[64];
    int64_t now, clock_error;
    sent lease[MAX], ack[MAX], prune[MAX], drop[MAX], keep[MAX];
    int leases, acks, prunes, drops, keeps;
} world;

static void note(sent *list, int *count, int64_t worker, int64_t number, int64_t attempt)
{
    assert_true(*count < MAX);
    list[(*count)++] = (sent){worker, number, attempt};
}

static void on_lease(void *user, int64_t worker, const ho_lease *lease)
{
    world *w = (world *)user;
    assert_int_equal(ho_space_check(&w->study->space, lease->config, NULL), HO_OK);
    note(w->lease, &w->leases, worker, lease->number, lease->attempt);
}

static void on_prune(void *user, int64_t worker, int64_t number, int64_t attempt)
{
    world *w = (world *)user;
    note(w->prune, &w->prunes, worker, number, attempt);
}

static void on_verdict(void *user, int64_t worker, int64_t number, int64_t attempt, bool keep)
{
    world *w = (world *)user;
    note(keep ? w->keep : w->drop, keep ? &w->keeps : &w->drops, worker, number, attempt);
}

static void on_ack(void *user, int64_t worker, int64_t number, int64_t attempt)
{
    world *w = (world *)user;
    note(w->ack, &w->acks, worker, number, attempt);
}

static int64_t unix_now(void *user)
{
    const world *w = (const world *)user;
    return w->now + w->clock_error + 1700000000 * second;
}

static void start(world *w)
{
    ho_err err = {0};
    ho_sampler_options sampler = ho_search_sampler_options(w->study, w->config.trials);
    ho_pruner_options pruner = ho_search_pruner_options(w->study, w->config.trials);
    ho_dispatch_io io = {w, on_lease, on_prune, on_verdict, on_ack, NULL, unix_now};
    sampler.deterministic = pruner.deterministic = w->config.deterministic;
    sampler.parallel = pruner.parallel = (int)w->config.parallel;
    sampler.replicates = w->config.replicates;
    CHECK_OK(ho_sampler_create(&w->sampler, &w->study->space, &sampler, &err), &err);
    CHECK_OK(ho_pruner_create(&w->pruner, &pruner, &err), &err);
    for (int i = 0; i < w->study->enqueue_count; i++) {
        CHECK_OK(
            ho_sampler_enqueue(w->sampler, w->study->enqueue + i * w->study->space.count, &err),
            &err);
    }
    CHECK_OK(ho_dispatch_create(&w->d, &w->config, &io, w->store, w->sampler, w->pruner,
                                &w->study->space, w->now, &err),
             &err);
    CHECK_OK(ho_dispatch_resume(w->d, w->now, &err), &err);
}

static world *world_make_of(const char *toml, int64_t trials)
{
    world *w = (world *)calloc(1, sizeof *w);
    assert_non_null(w);
    w->now = second;
    w->study = fixture_study(toml);
    fixture_path(w->path, sizeof w->path);
    w->store = fixture_store(w->path, w->study, trials);
    w->config = (ho_dispatch_config){.trials = trials,
                                     .max_attempts = 3,
                                     .heartbeat_timeout_ns = 30 * second,
                                     .adopt_ns = 30 * second,
                                     .backoff_ns = second,
                                     .in_flight = 64,
                                     .parallel = 1,
                                     .replicates = 1,
                                     .seeds = 1,
                                     .objectives = 1,
                                     .direction = {1},
                                     .enqueued = w->study->enqueue_count};
    return w;
}

static world *world_make(int64_t trials)
{
    world *w = world_make_of(fixture_toml, trials);
    start(w);
    return w;
}

static void stop(world *w)
{
    ho_dispatch_destroy(&w->d);
    ho_sampler_destroy(&w->sampler);
    ho_pruner_destroy(&w->pruner);
}

static void world_free(world *w)
{
    stop(w);
    ho_store_close(&w->store);
    ho_study_free(&w->study);
    free(w);
}

/* The coordinator is killed (nothing more is written) and started again. */
static void crash_and_restart(world *w)
{
    ho_err err = {0};
    ho_store_options options = ho_store_defaults();
    stop(w);
    ho_store_close(&w->store);
    CHECK_OK(ho_store_open(&w->store, w->path, &options, &err), &err);
    w->leases = w->acks = w->prunes = w->drops = w->keeps = 0;
    start(w);
}

/* A tenth of a second: what is leased in its first half is committed and sent in the second. */
static void tick(world *w)
{
    ho_err err = {0};
    for (int half = 0; half < 2; half++) {
        w->now += second / 20;
        CHECK_OK(ho_dispatch_tick(w->d, w->now, &err), &err);
    }
}

static int64_t join_with(world *w, int slots, const sent *held, int held_count)
{
    ho_err err = {0};
    int64_t worker = -1, number[64], attempt[64];
    for (int i = 0; i < held_count; i++) {
        number[i] = held[i].number;
        attempt[i] = held[i].attempt;
    }
    ho_hello hello = {.name = "w",
                      .host = "h",
                      .device = "cpu",
                      .backend = "cpu",
                      .version = "0",
                      .pid = 1,
                      .lanes = 1,
                      .held = held_count,
                      .held_number = number,
                      .held_attempt = attempt};
    CHECK_OK(ho_dispatch_join(w->d, &hello, w->now, &worker, &err), &err);
    ho_dispatch_ready(w->d, worker, slots, 1, w->now);
    return worker;
}

static int64_t join(world *w, int slots)
{
    return join_with(w, slots, NULL, 0);
}

static ho_status deliver(world *w, const sent *lease, double value)
{
    ho_err err = {0};
    ho_trial_result r = {.number = lease->number,
                         .attempt = lease->attempt,
                         .state = HO_TRIAL_COMPLETE,
                         .objectives = 1,
                         .value = {value},
                         .violation = NAN,
                         .epochs = 4,
                         .train_s = 1};
    return ho_dispatch_result(w->d, lease->worker, &r, w->now, &err);
}

static ho_status give_up(world *w, const sent *lease, ho_cause cause)
{
    ho_err err = {0};
    return ho_dispatch_fail(w->d, lease->worker, lease->number, lease->attempt, cause, "test",
                            w->now, &err);
}

static ho_status report(world *w, const sent *lease, int64_t step, double value)
{
    ho_err err = {0};
    ho_report_in r = {.parent = -1,
                      .number = lease->number,
                      .attempt = lease->attempt,
                      .step = step,
                      .value = {value},
                      .scored = true};
    return ho_dispatch_report(w->d, lease->worker, &r, w->now, &err);
}

/* Delivers every lease not yet delivered, until the study is done. */
static void finish(world *w, int from)
{
    for (int round = 0; round < 10000 && !ho_dispatch_done(w->d); round++) {
        tick(w);
        for (; from < w->leases; from++) {
            assert_int_equal(deliver(w, &w->lease[from], (double)w->lease[from].number), HO_OK);
        }
    }
    assert_true(ho_dispatch_done(w->d));
}

static int64_t trials_in(world *w, const char *state)
{
    char sql[120];
    (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM trial WHERE state = '%s'", state);
    return fixture_count(w->store, sql);
}

static int64_t events_of(world *w, const char *kind)
{
    char sql[120];
    (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM event WHERE kind = '%s'", kind);
    return fixture_count(w->store, sql);
}

static bool has_sampler(const char *kind)
{
    for (int i = 0; i < ho_sampler_kind_count(); i++) {
        if (strcmp(ho_sampler_kind_name(i), kind) == 0) {
            return true;
        }
    }
    return false;
}

static bool has_pruner(const char *kind)
{
    for (int i = 0; i < ho_pruner_kind_count(); i++) {
        if (strcmp(ho_pruner_kind_name(i), kind) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- exactly once --------------------------------------------------------------------------- */

/* optuna 1883: 20 asked, 8 workers: exactly 20. */
static void exactly_the_trials_asked_for_with_many_workers(void **state)
{
    (void)state;
    world *w = world_make(20);
    for (int i = 0; i < 8; i++) {
        (void)join(w, 8);
    }
    finish(w, 0);
    assert_int_equal(w->leases, 20);
    assert_int_equal(w->acks, 20);
    assert_int_equal(trials_in(w, "COMPLETE"), 20);
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
    start(w);
    for (int i = 0; i < 16; i++) {
        (void)join(w, 2);
    }
    for (int i = 0; i < 3; i++) {
        tick(w);
    }
    crash_and_restart(w); /* some are leased, none is delivered */
    for (int i = 0; i < 16; i++) {
        (void)join(w, 2);
    }
    w->now += 31 * second; /* the leases of the old life run out */
    for (int64_t i = 0; i < 16; i++) {
        ho_dispatch_heard(w->d, i + 17, w->now);
    }
    finish(w, 0);
    assert_int_equal(
        fixture_count(w->store,
                      "SELECT count(DISTINCT \"barriers.stop_loss\") FROM trial_wide WHERE "
                      "source = 'enqueue' AND \"barriers.stop_loss\" * 2 % 2 = 1"),
        50);
    assert_int_equal(fixture_count(w->store, "SELECT count(*) FROM trial WHERE source = 'enqueue'"),
                     50);
    assert_int_equal(trials_in(w, "COMPLETE"), 60);
    world_free(w);
}

static void a_repeated_result_is_acknowledged_and_changes_nothing(void **state)
{
    (void)state;
    world *w = world_make(2);
    (void)join(w, 1);
    tick(w);
    assert_int_equal(w->leases, 1);
    assert_int_equal(deliver(w, &w->lease[0], 1.5), HO_OK);
    assert_int_equal(deliver(w, &w->lease[0], 99.0), HO_OK);
    assert_int_equal(w->acks, 0); /* nothing is committed yet */
    tick(w);
    tick(w);
    assert_int_equal(deliver(w, &w->lease[0], 99.0), HO_OK);
    tick(w);
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
    (void)join(w, 1);
    tick(w);
    sqlite3 *other = NULL;
    assert_int_equal(sqlite3_open(w->path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(deliver(w, &w->lease[0], 1.0), HO_OK);
    for (int i = 0; i < 5; i++) {
        tick(w);
    }
    assert_int_equal(w->acks, 0);
    assert_false(ho_dispatch_done(w->d));
    assert_int_equal(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    (void)sqlite3_close(other);
    finish(w, 1);
    assert_int_equal(w->acks, 1);
    world_free(w);
}

/* ---- silence, death, return ----------------------------------------------------------------- */

/* optuna 485, katib 845: a dead worker's trial does not stay RUNNING for ever. */
static void a_silent_workers_trials_are_given_to_others(void **state)
{
    (void)state;
    world *w = world_make(4);
    (void)join(w, 2);
    tick(w);
    assert_int_equal(w->leases, 2);
    w->now += 31 * second;
    int64_t second_worker = join(w, 8);
    tick(w);
    assert_true(w->leases >= 4);
    assert_int_equal(w->lease[2].worker, second_worker);
    assert_int_equal(w->lease[2].attempt, 2);
    finish(w, 2);
    assert_int_equal(trials_in(w, "COMPLETE"), 4);
    assert_int_equal(events_of(w, "requeue"), 2);
    world_free(w);
}

/* optuna 4234: a late result of a superseded attempt is an event, not a crash and not a value. */
static void a_late_result_of_an_old_attempt_is_an_event(void **state)
{
    (void)state;
    world *w = world_make(1);
    (void)join(w, 1);
    tick(w);
    w->now += 31 * second;
    (void)join(w, 1);
    tick(w);
    assert_int_equal(w->leases, 2);
    int64_t back = join(w, 0); /* the silent one again, as a new worker */
    sent late = {back, w->lease[0].number, w->lease[0].attempt};
    assert_int_equal(deliver(w, &late, 99.0), HO_OK);
    tick(w);
    assert_int_equal(events_of(w, "late"), 1);
    assert_int_equal(w->acks, 1); /* so that it forgets it */
    finish(w, 1);
    assert_int_equal(fixture_count(w->store, "SELECT count(*) FROM trial_value WHERE value = 99"),
                     0);
    world_free(w);
}

static void a_late_result_is_taken_when_nobody_else_has_the_trial(void **state)
{
    (void)state;
    world *w = world_make(1);
    (void)join(w, 1);
    tick(w);
    w->now += 31 * second;
    tick(w); /* given up, no other worker */
    assert_int_equal(
        trials_in(w, "WAITING") + (ho_store_committed(w->store) < ho_store_queued(w->store)), 1);
    int64_t back = join(w, 0);
    sent same = {back, 0, 1};
    assert_int_equal(deliver(w, &same, 2.0), HO_OK);
    finish(w, 1);
    assert_int_equal(fixture_count(w->store, "SELECT count(*) FROM trial_value WHERE value = 2"),
                     1);
    world_free(w);
}

static void reports_of_a_live_worker_extend_its_lease(void **state)
{
    (void)state;
    world *w = world_make(1);
    int64_t worker = join(w, 1);
    tick(w);
    for (int i = 0; i < 10; i++) {
        w->now += 20 * second;
        ho_dispatch_heard(w->d, worker, w->now);
        tick(w);
    }
    assert_int_equal(events_of(w, "requeue"), 0);
    finish(w, 0);
    world_free(w);
}

static void a_restarted_coordinator_adopts_running_trials(void **state)
{
    (void)state;
    world *w = world_make(3);
    (void)join(w, 3);
    tick(w);
    tick(w);
    assert_int_equal(w->leases, 3);
    assert_int_equal(deliver(w, &w->lease[0], 5.0), HO_OK);
    tick(w);
    tick(w);
    sent held[3] = {w->lease[0], w->lease[1], w->lease[2]};
    crash_and_restart(w);
    int64_t worker = join_with(w, 0, held, 3);
    assert_int_equal(w->keeps, 2);
    assert_int_equal(w->drops, 1); /* its result is stored: it may forget it */
    for (int i = 1; i < 3; i++) {
        sent s = {worker, held[i].number, held[i].attempt};
        assert_int_equal(deliver(w, &s, 1.0), HO_OK);
    }
    finish(w, 0);
    assert_int_equal(w->leases, 0);
    assert_int_equal(trials_in(w, "COMPLETE"), 3);
    assert_int_equal(fixture_count(w->store, "SELECT max(attempt) FROM trial"), 1);
    world_free(w);
}

static void what_nobody_brings_back_after_a_restart_is_requeued(void **state)
{
    (void)state;
    world *w = world_make(2);
    (void)join(w, 2);
    tick(w);
    tick(w);
    crash_and_restart(w);
    int64_t worker = join(w, 2);
    tick(w);
    assert_int_equal(w->leases, 0); /* their worker may still come */
    w->now += 31 * second;
    ho_dispatch_heard(w->d, worker, w->now);
    finish(w, 0);
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
    int64_t worker = join(w, 1);
    tick(w);
    assert_int_equal(w->leases, 1);
    ho_hello hello = {
        .name = "w", .host = "h", .device = "cpu", .backend = "cpu", .version = "0", .lanes = 1};
    CHECK_OK(ho_dispatch_join(w->d, &hello, w->now, &worker, &err),
             &err); /* reconnected, holds nothing */
    ho_dispatch_ready(w->d, worker, 1, 1, w->now);
    finish(w, 1);
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
    start(w);
    (void)join(w, 2);
    tick(w);
    w->clock_error = -7200 * second;
    assert_int_equal(deliver(w, &w->lease[0], 1.0), HO_OK);
    tick(w);
    w->clock_error = 86400 * second;
    assert_int_equal(deliver(w, &w->lease[1], 2.0), HO_OK);
    tick(w);
    w->clock_error = 0;
    crash_and_restart(w);
    (void)join(w, 2);
    w->now += 31 * second;
    ho_dispatch_heard(w->d, 2, w->now);
    finish(w, 0);
    assert_int_equal(events_of(w, "lost"), 0);
    assert_int_equal(trials_in(w, "COMPLETE"), 6);
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
        (void)join(w, 1);
        int attempts = 0;
        for (; attempts < 6 && trials_in(w, "FAILED") == 0; attempts++) {
            for (int t = 0; t < 200 && w->leases == attempts; t++) {
                tick(w);
                ho_dispatch_heard(w->d, 1, w->now);
            }
            assert_int_equal(w->leases, attempts + 1);
            assert_int_equal(give_up(w, &w->lease[attempts], policy[i].cause), HO_OK);
            tick(w);
            tick(w);
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
    (void)join(w, 1);
    tick(w);
    assert_int_equal(give_up(w, &w->lease[0], HO_CAUSE_CRASH), HO_OK);
    tick(w);
    assert_int_equal(w->leases, 1);
    w->now += second;
    tick(w);
    assert_int_equal(w->leases, 2);
    assert_int_equal(give_up(w, &w->lease[1], HO_CAUSE_CRASH), HO_OK);
    w->now += second;
    tick(w);
    assert_int_equal(w->leases, 2);
    w->now += second;
    tick(w);
    assert_int_equal(w->leases, 3);
    world_free(w);
}

/* One poisonous trial must not take those beside it down with it. */
static void the_trial_that_kills_workers_is_found_and_its_neighbours_are_spared(void **state)
{
    (void)state;
    world *w = world_make(8);
    int64_t worker = join(w, 8);
    int done = 0;
    for (int round = 0; round < 400 && !ho_dispatch_done(w->d); round++) {
        tick(w);
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
            worker = join(w, 8);
        } else {
            for (int i = done; i < w->leases; i++) {
                assert_int_equal(deliver(w, &w->lease[i], 1.0), HO_OK);
            }
        }
        done = w->leases;
    }
    assert_true(ho_dispatch_done(w->d));
    assert_int_equal(trials_in(w, "COMPLETE"), 7);
    assert_int_equal(fixture_count(w->store, "SELECT number FROM trial WHERE state = 'FAILED'"), 3);
    world_free(w);
}

static void a_worker_without_the_data_gets_no_more_trials(void **state)
{
    (void)state;
    world *w = world_make(2);
    int64_t bad = join(w, 1);
    tick(w);
    assert_int_equal(give_up(w, &w->lease[0], HO_CAUSE_DATA), HO_OK);
    for (int i = 0; i < 5; i++) {
        tick(w);
    }
    assert_int_equal(w->leases, 1);
    int64_t good = join(w, 2);
    finish(w, 1);
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
    (void)join(w, 1);
    tick(w);
    assert_int_equal(deliver(w, &w->lease[0], NAN), HO_OK);
    finish(w, 1);
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
    int64_t worker = join(w, 1);
    tick(w);
    sent strange[] = {
        {worker, 77, 1}, {worker, -1, 1}, {worker, 0, 9}, {worker, 0, 0}, {worker, 0, -5}};
    for (size_t i = 0; i < sizeof strange / sizeof strange[0]; i++) {
        assert_int_equal(deliver(w, &strange[i], 1.0), HO_EINVAL);
        assert_int_equal(give_up(w, &strange[i], HO_CAUSE_CRASH), HO_EINVAL);
        assert_int_equal(report(w, &strange[i], 1, 1.0), HO_EINVAL);
    }
    int64_t thief = join(w, 0);
    sent stolen = {thief, 0, 1};
    assert_int_equal(deliver(w, &stolen, 99.0), HO_OK); /* dropped as late: it is another's */
    finish(w, 0);
    assert_int_equal(fixture_count(w->store, "SELECT count(*) FROM trial_value WHERE value = 99"),
                     0);
    world_free(w);
}

/* ---- pruning -------------------------------------------------------------------------------- */

static const char pruning_toml[] = "[study]\nname = \"fixture\"\n[data]\npath = \"bars.csv\"\n"
                                   "[agent]\nepochs = 9\n[sampler]\nkind = \"random\"\n"
                                   "[pruner]\nkind = \"threshold\"\nlower = 0.0\nmin_epochs = 1\n"
                                   "[search]\n\"barriers.stop_loss\" = { float = [10, 80] }\n";

static void a_pruned_trial_ends_at_once_with_its_last_value(void **state)
{
    (void)state;
    if (!has_pruner("threshold")) {
        skip();
    }
    world *w = world_make_of(pruning_toml, 2);
    start(w);
    (void)join(w, 1);
    tick(w);
    assert_int_equal(report(w, &w->lease[0], 3, 0.5), HO_OK);
    assert_int_equal(w->prunes, 0);
    assert_int_equal(report(w, &w->lease[0], 6, -0.5), HO_OK);
    assert_int_equal(w->prunes, 1);
    assert_int_equal(report(w, &w->lease[0], 9, 7.0), HO_OK); /* crossed the prune */
    assert_int_equal(deliver(w, &w->lease[0], 7.0), HO_OK);
    ho_dispatch_ready(w->d, w->lease[0].worker, 1, 1, w->now);
    finish(w, 1);
    assert_int_equal(
        fixture_count(w->store,
                      "SELECT count(*) FROM trial t JOIN trial_value v ON v.trial = t.number "
                      "WHERE t.state = 'PRUNED' AND v.value = -0.5 AND t.epochs = 6"),
        1);
    assert_int_equal(
        fixture_count(w->store, "SELECT count(*) FROM report WHERE verdict = 'prune' AND step = 6"),
        1);
    world_free(w);
}

/* asha with promote: a trial is paused at a rung, and goes on when the rung shows it belongs to the
 * best; what is never promoted ends as pruned. */
static void paused_trials_are_promoted_or_end_as_pruned(void **state)
{
    (void)state;
    static const char toml[] =
        "[study]\nname = \"fixture\"\n[data]\npath = \"bars.csv\"\n"
        "[agent]\nepochs = 9\n[sampler]\nkind = \"random\"\n"
        "[pruner]\nkind = \"asha\"\nmin_epochs = 1\nreduction = 3\npromote = true\n"
        "[search]\n\"barriers.stop_loss\" = { float = [10, 80] }\n";
    world *w = world_make_of(toml, 9);
    w->config.in_flight = 3;
    start(w);
    int64_t worker = join(w, 3);
    int done = 0, promoted = 0;
    for (int round = 0; round < 500 && !ho_dispatch_done(w->d); round++) {
        tick(w);
        for (; done < w->leases; done++) {
            const sent *lease = &w->lease[done];
            int pauses = w->prunes;
            promoted += lease->attempt > 1;
            for (int64_t epoch = 1; epoch <= 9 && w->prunes == pauses;
                 epoch++) { /* earlier trials are better */
                assert_int_equal(
                    report(w, lease, epoch, 0.01 * (double)epoch - (double)lease->number), HO_OK);
            }
            if (w->prunes == pauses) {
                assert_int_equal(deliver(w, lease, (double)lease->number), HO_OK);
            }
            ho_dispatch_ready(w->d, worker, 3, 1, w->now);
        }
    }
    assert_true(ho_dispatch_done(w->d));
    assert_int_equal(fixture_count(w->store, "SELECT count(*) FROM trial"), 9);
    assert_int_equal(trials_in(w, "COMPLETE") + trials_in(w, "PRUNED"), 9);
    assert_true(promoted > 0);
    assert_true(trials_in(w, "PRUNED") > 0);
    assert_int_equal(
        fixture_count(w->store, "SELECT count(*) FROM report WHERE verdict = 'pause'") > 0, 1);
    world_free(w);
}

/* ---- stopping ------------------------------------------------------------------------------- */

static void patience_ends_a_study_without_a_new_best(void **state)
{
    (void)state;
    world *w = world_make_of(fixture_toml, 100);
    w->config.patience = 5;
    w->config.in_flight = 1;
    start(w);
    (void)join(w, 1);
    int done = 0;
    for (int i = 0; i < 100 && !ho_dispatch_done(w->d); i++) {
        tick(w);
        for (; done < w->leases; done++) {
            assert_int_equal(deliver(w, &w->lease[done], done == 3 ? 10.0 : 1.0), HO_OK);
        }
    }
    assert_string_equal(ho_dispatch_reason(w->d), "patience");
    assert_int_equal(w->leases, 4 + 5);
    world_free(w);
}

static void a_timeout_lets_running_trials_end(void **state)
{
    (void)state;
    world *w = world_make_of(fixture_toml, 100);
    w->config.timeout_ns = 10 * second;
    start(w);
    int64_t worker = join(w, 2);
    tick(w);
    assert_int_equal(w->leases, 2);
    w->now += 11 * second;
    ho_dispatch_heard(w->d, worker, w->now);
    finish(w, 0);
    assert_string_equal(ho_dispatch_reason(w->d), "timeout");
    assert_int_equal(w->leases, 2);
    assert_int_equal(trials_in(w, "COMPLETE"), 2);
    world_free(w);
}

static void a_finite_space_ends_the_study(void **state)
{
    (void)state;
    static const char toml[] =
        "[study]\nname = \"fixture\"\n[data]\npath = \"bars.csv\"\n[sampler]\nkind = \"grid\"\n"
        "[pruner]\nkind = \"none\"\n[search]\n\"dqn.n_step\" = { int = [1, 5] }\n";
    world *w = world_make_of(toml, 100);
    start(w);
    (void)join(w, 2);
    finish(w, 0);
    assert_string_equal(ho_dispatch_reason(w->d), "exhausted");
    assert_int_equal(trials_in(w, "COMPLETE"), 5);
    world_free(w);
}

static void the_best_are_run_again_at_the_end_and_only_once(void **state)
{
    (void)state;
    world *w = world_make_of(fixture_toml, 6);
    w->config.retest = 2;
    w->config.retest_times = 3;
    start(w);
    (void)join(w, 4);
    finish(w, 0); /* a trial's value is its number */
    assert_int_equal(fixture_count(w->store, "SELECT count(*) FROM trial"), 12);
    assert_int_equal(
        fixture_count(w->store,
                      "SELECT count(*) FROM trial WHERE source = 'retest' AND parent IN (4, 5)"),
        6);
    assert_int_equal(fixture_count(w->store, "SELECT count(*) FROM leaderboard"), 6);
    assert_int_equal(fixture_count(w->store, "SELECT count(*) FROM retest WHERE retests = 3"), 2);
    assert_int_equal(fixture_count(w->store,
                                   "SELECT count(*) FROM trial WHERE source = 'retest' AND "
                                   "told_order IS NOT NULL"),
                     0);
    w->config.trials = 8; /* more trials: the sampler goes on where it was */
    crash_and_restart(w);
    (void)join(w, 4);
    finish(w, 0);
    assert_int_equal(fixture_count(w->store, "SELECT count(*) FROM trial WHERE source = 'sampler'"),
                     8);
    assert_int_equal(fixture_count(w->store, "SELECT count(DISTINCT config_hash) FROM trial"), 8);
    assert_int_equal(fixture_count(w->store, "SELECT count(*) FROM trial WHERE source = 'retest'"),
                     12);
    world_free(w);
}

/* optuna 5963: stopping now leaves no RUNNING row behind, and a resume runs those again. */
static void an_interrupted_study_has_no_running_rows_and_resumes(void **state)
{
    (void)state;
    ho_err err = {0};
    world *w = world_make(6);
    (void)join(w, 3);
    tick(w);
    assert_int_equal(deliver(w, &w->lease[0], 1.0), HO_OK);
    CHECK_OK(ho_dispatch_interrupt(w->d, "interrupted", w->now, &err), &err);
    assert_int_equal(trials_in(w, "RUNNING"), 0);
    assert_int_equal(trials_in(w, "INTERRUPTED"), 2);
    assert_int_equal(trials_in(w, "COMPLETE"), 1);
    crash_and_restart(w);
    (void)join(w, 3);
    finish(w, 0);
    assert_int_equal(trials_in(w, "COMPLETE"), 6);
    assert_int_equal(fixture_count(w->store, "SELECT count(*) FROM trial"), 6);
    world_free(w);
}

static void a_drain_starts_nothing_new(void **state)
{
    (void)state;
    world *w = world_make(10);
    (void)join(w, 2);
    tick(w);
    int leases = w->leases;
    ho_dispatch_drain(w->d, "interrupted");
    finish(w, 0);
    assert_int_equal(w->leases, leases);
    assert_string_equal(ho_dispatch_reason(w->d), "interrupted");
    world_free(w);
}

/* ---- a full disk ---------------------------------------------------------------------------- */

static void nothing_new_is_leased_while_the_store_is_paused(void **state)
{
    (void)state;
    char pragma[64];
    world *w = world_make(40);
    int64_t worker = join(w, 4);
    tick(w);
    (void)snprintf(pragma, sizeof pragma, "PRAGMA max_page_count = %lld",
                   (long long)fixture_count(w->store, "PRAGMA page_count"));
    (void)fixture_count(w->store, pragma);
    int done = 0;
    for (int i = 0; i < 200 && !ho_store_paused(w->store); i++) {
        for (; done < w->leases; done++) {
            assert_int_equal(deliver(w, &w->lease[done], (double)done), HO_OK);
        }
        tick(w);
        ho_dispatch_heard(w->d, worker, w->now);
    }
    if (ho_store_paused(w->store)) {
        int leases = w->leases, acks = w->acks;
        for (; done < w->leases; done++) {
            assert_int_equal(deliver(w, &w->lease[done], (double)done), HO_OK);
        }
        for (int i = 0; i < 50; i++) {
            tick(w);
            ho_dispatch_heard(w->d, worker, w->now);
        }
        assert_int_equal(w->leases, leases);
        assert_int_equal(w->acks, acks);
    }
    (void)fixture_count(w->store, "PRAGMA max_page_count = 100000");
    finish(w, done);
    assert_int_equal(trials_in(w, "COMPLETE"), 40);
    assert_int_equal(w->acks, 40);
    world_free(w);
}

/* ---- reproducible --------------------------------------------------------------------------- */

/* Proposals of a deterministic study are the same whatever order results come in. */
static void a_deterministic_study_proposes_the_same_in_any_order(void **state)
{
    (void)state;
    static const char toml[] = "[study]\nname = \"fixture\"\ndeterministic = true\nparallel = "
                               "4\n[data]\npath = \"b.csv\"\n"
                               "[sampler]\nkind = \"tpe\"\nstartup = 5\n[pruner]\nkind = \"none\"\n"
                               "[search]\n\"barriers.stop_loss\" = { float = [10, 80] }\n"
                               "\"dqn.gamma\" = { float = [0.9, 0.999] }\n";
    int64_t hash[2][24];
    if (!has_sampler("tpe")) {
        skip();
    }
    for (int run = 0; run < 2; run++) {
        world *w = world_make_of(toml, 24);
        w->config.deterministic = true;
        w->config.parallel = 4;
        start(w);
        for (int i = 0; i < (run ? 3 : 1); i++) {
            (void)join(w, run ? 2 : 4);
        }
        int done[24] = {0};
        for (int round = 0; round < 1000 && !ho_dispatch_done(w->d); round++) {
            tick(w);
            for (int k = 0; k < w->leases; k++) { /* forwards, or the newest first */
                int i = run ? w->leases - 1 - k : k;
                if (!done[w->lease[i].number]) {
                    double x = sin(12.0 * (double)w->lease[i].number);
                    done[w->lease[i].number] = 1;
                    assert_int_equal(deliver(w, &w->lease[i], x), HO_OK);
                    break;
                }
            }
        }
        assert_true(ho_dispatch_done(w->d));
        for (int i = 0; i < 24; i++) {
            char sql[80];
            (void)snprintf(sql, sizeof sql, "SELECT config_hash FROM trial WHERE number = %d", i);
            hash[run][i] = fixture_count(w->store, sql);
        }
        world_free(w);
    }
    assert_memory_equal(hash[0], hash[1], sizeof hash[0]);
}

/* A study that was interrupted at any point proposes what it would have proposed. */
static void a_resumed_study_proposes_what_it_would_have_proposed(void **state)
{
    (void)state;
    static const char toml[] = "[study]\nname = \"fixture\"\n[data]\npath = \"b.csv\"\n"
                               "[sampler]\nkind = \"tpe\"\nstartup = 5\n[pruner]\nkind = \"none\"\n"
                               "[search]\n\"barriers.stop_loss\" = { float = [10, 80] }\n"
                               "\"dqn.gamma\" = { float = [0.9, 0.999] }\n";
    int64_t hash[2][20];
    if (!has_sampler("tpe")) {
        skip();
    }
    for (int run = 0; run < 2; run++) {
        world *w = world_make_of(toml, 20);
        w->config.in_flight = 1;
        start(w);
        (void)join(w, 1);
        int done = 0, finished = 0;
        for (int round = 0; round < 1000 && !ho_dispatch_done(w->d); round++) {
            tick(w);
            for (; done < w->leases; done++, finished++) {
                assert_int_equal(
                    deliver(w, &w->lease[done], cos(7.0 * (double)w->lease[done].number)), HO_OK);
            }
            if (run && finished % 6 == 5 && w->leases > 0) {
                tick(w);
                tick(w);                /* the results are committed */
                if (w->leases > done) { /* what is leased is lost with the coordinator */
                    finished++;
                }
                crash_and_restart(w);
                done = 0;
                w->now += 31 * second;
                (void)join(w, 1);
            }
        }
        assert_true(ho_dispatch_done(w->d));
        for (int i = 0; i < 20; i++) {
            char sql[80];
            (void)snprintf(sql, sizeof sql, "SELECT config_hash FROM trial WHERE number = %d", i);
            hash[run][i] = fixture_count(w->store, sql);
        }
        world_free(w);
    }
    assert_memory_equal(hash[0], hash[1], sizeof hash[0]);
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
        cmocka_unit_test(a_pruned_trial_ends_at_once_with_its_last_value),
        cmocka_unit_test(paused_trials_are_promoted_or_end_as_pruned),
        cmocka_unit_test(patience_ends_a_study_without_a_new_best),
        cmocka_unit_test(a_timeout_lets_running_trials_end),
        cmocka_unit_test(a_finite_space_ends_the_study),
        cmocka_unit_test(the_best_are_run_again_at_the_end_and_only_once),
        cmocka_unit_test(an_interrupted_study_has_no_running_rows_and_resumes),
        cmocka_unit_test(a_drain_starts_nothing_new),
        cmocka_unit_test(nothing_new_is_leased_while_the_store_is_paused),
        cmocka_unit_test(a_deterministic_study_proposes_the_same_in_any_order),
        cmocka_unit_test(a_resumed_study_proposes_what_it_would_have_proposed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
