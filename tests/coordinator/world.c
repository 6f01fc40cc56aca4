/* SPDX-License-Identifier: Apache-2.0
 * See world.h. */
#include "world.h"

#include <stdlib.h>

#include "check.h"
#include "coordinator/search_options.h"

static void note(sent *list, int *count, int64_t worker, int64_t number, int64_t attempt)
{
    assert_true(*count < WORLD_MAX);
    list[(*count)++] = (sent){worker, number, attempt};
}

static void on_lease(void *user, int64_t worker, const ho_lease *lease)
{
    world *w = (world *)user;
    assert_int_equal(ho_space_check(&w->study->space, lease->config, NULL), HO_OK);
    note(w->lease, &w->leases, worker, lease->number, lease->attempt);
    w->leased_folds[w->leases - 1] = lease->folds;
    for (int i = 0; i < lease->folds; i++) {
        assert_true(i == 0 || lease->fold[i] > lease->fold[i - 1]);
        w->leased_fold[w->leases - 1][i] = lease->fold[i];
    }
}

static void on_prune(void *user, int64_t worker, int64_t number, int64_t attempt)
{
    world *w = (world *)user;
    note(w->prune, &w->prunes, worker, number, attempt);
}

static void on_pause(void *user, int64_t worker, int64_t number, int64_t attempt, int64_t epoch)
{
    world *w = (world *)user;
    assert_true(epoch > 0);
    note(w->pause, &w->pauses, worker, number, attempt);
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

static void on_round_over(void *user, int64_t number)
{
    (void)number;
    ((world *)user)->rounds_over++;
}

static int64_t unix_now(void *user)
{
    const world *w = (const world *)user;
    return w->now + w->clock_error + 1700000000 * second;
}

void world_start(world *w)
{
    ho_err err = {0};
    ho_sampler_options sampler = ho_search_sampler_options(w->study, w->config.trials);
    ho_pruner_options pruner = ho_search_pruner_options(w->study, w->config.trials);
    ho_dispatch_io io = {w,      on_lease, on_prune, on_pause,     on_verdict,
                         on_ack, NULL,     unix_now, on_round_over};
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

world *world_make_of(const char *toml, int64_t trials)
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

world *world_make(int64_t trials)
{
    world *w = world_make_of(fixture_toml, trials);
    world_start(w);
    return w;
}

void world_stop(world *w)
{
    ho_dispatch_destroy(&w->d);
    ho_sampler_destroy(&w->sampler);
    ho_pruner_destroy(&w->pruner);
}

void world_free(world *w)
{
    world_stop(w);
    ho_store_close(&w->store);
    ho_study_free(&w->study);
    free(w);
}

void world_crash_and_restart(world *w)
{
    ho_err err = {0};
    ho_store_options options = ho_store_defaults();
    world_stop(w);
    ho_store_close(&w->store);
    CHECK_OK(ho_store_open(&w->store, w->path, &options, &err), &err);
    w->leases = w->acks = w->prunes = w->pauses = w->drops = w->keeps = 0;
    world_start(w);
}

void world_tick(world *w)
{
    ho_err err = {0};
    for (int half = 0; half < 2; half++) {
        w->now += second / 20;
        CHECK_OK(ho_dispatch_tick(w->d, w->now, &err), &err);
    }
}

int64_t world_join_with(world *w, int slots, const sent *held, int held_count)
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

int64_t world_join(world *w, int slots)
{
    return world_join_with(w, slots, NULL, 0);
}

ho_status world_deliver(world *w, const sent *lease, double value)
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

ho_status world_give_up(world *w, const sent *lease, ho_cause cause)
{
    ho_err err = {0};
    return ho_dispatch_fail(w->d, lease->worker, lease->number, lease->attempt, cause, "test",
                            w->now, &err);
}

ho_status world_report(world *w, const sent *lease, int64_t step, double value)
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

void world_finish(world *w, int from)
{
    for (int round = 0; round < 10000 && !ho_dispatch_done(w->d); round++) {
        world_tick(w);
        for (; from < w->leases; from++) {
            assert_int_equal(world_deliver(w, &w->lease[from], (double)w->lease[from].number),
                             HO_OK);
        }
    }
    assert_true(ho_dispatch_done(w->d));
}

int64_t world_trials_in(world *w, const char *state)
{
    char sql[120];
    (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM trial WHERE state = '%s'", state);
    return fixture_count(w->store, sql);
}

int64_t world_events_of(world *w, const char *kind)
{
    char sql[120];
    (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM event WHERE kind = '%s'", kind);
    return fixture_count(w->store, sql);
}
