/* SPDX-License-Identifier: Apache-2.0
 * Dispatch: pruning, ends, a full disk, reproducing; with a fake clock (world.h). */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "world.h"

/* ---- pruning -------------------------------------------------------------------------------- */

static const char pruning_toml[] = "[study]\nname = \"fixture\"\n[data]\npath = \"bars.csv\"\n"
                                   "[agent]\nepochs = 9\n[sampler]\nkind = \"random\"\n"
                                   "[pruner]\nkind = \"threshold\"\nlower = 0.0\nmin_epochs = 1\n"
                                   "[search]\n\"barriers.stop_loss\" = { float = [10, 80] }\n";

static void a_pruned_trial_ends_at_once_with_its_last_value(void **state)
{
    (void)state;
    world *w = world_make_of(pruning_toml, 2);
    world_start(w);
    (void)world_join(w, 1);
    world_tick(w);
    assert_int_equal(world_report(w, &w->lease[0], 3, 0.5), HO_OK);
    assert_int_equal(w->prunes, 0);
    assert_int_equal(world_report(w, &w->lease[0], 6, -0.5), HO_OK);
    assert_int_equal(w->prunes, 1);
    assert_int_equal(world_report(w, &w->lease[0], 9, 7.0), HO_OK); /* crossed the prune */
    assert_int_equal(world_deliver(w, &w->lease[0], 7.0), HO_OK);
    ho_dispatch_ready(w->d, w->lease[0].worker, 1, 1, w->now);
    world_finish(w, 1);
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

static const char promote_toml[] =
    "[study]\nname = \"fixture\"\n[data]\npath = \"bars.csv\"\n"
    "[agent]\nepochs = 9\n[sampler]\nkind = \"random\"\n"
    "[pruner]\nkind = \"asha\"\nmin_epochs = 1\nreduction = 3\npromote = true\n"
    "[search]\n\"barriers.stop_loss\" = { float = [10, 80] }\n";

/* asha with promote: a trial is paused at a rung, and goes on when the rung shows it belongs to the
 * best; what is never promoted ends as pruned. */
static void paused_trials_are_promoted_or_end_as_pruned(void **state)
{
    (void)state;
    world *w = world_make_of(promote_toml, 9);
    w->config.in_flight = 3;
    world_start(w);
    int64_t worker = world_join(w, 3);
    int done = 0, promoted = 0;
    for (int round = 0; round < 500 && !ho_dispatch_done(w->d); round++) {
        world_tick(w);
        for (; done < w->leases; done++) {
            const sent *lease = &w->lease[done];
            int pauses = w->pauses;
            promoted += lease->attempt > 1;
            for (int64_t epoch = 1; epoch <= 9 && w->pauses == pauses;
                 epoch++) { /* earlier trials are better */
                assert_int_equal(
                    world_report(w, lease, epoch, 0.01 * (double)epoch - (double)lease->number),
                    HO_OK);
            }
            assert_int_equal(w->pauses == pauses ? world_deliver(w, lease, (double)lease->number)
                                                 : world_give_up(w, lease, HO_CAUSE_PREEMPTED),
                             HO_OK);
            ho_dispatch_ready(w->d, worker, 3, 1, w->now);
        }
    }
    assert_true(ho_dispatch_done(w->d));
    assert_int_equal(fixture_count(w->store, "SELECT count(*) FROM trial"), 9);
    assert_int_equal(world_trials_in(w, "COMPLETE") + world_trials_in(w, "PRUNED"), 9);
    assert_true(promoted > 0);
    assert_true(world_trials_in(w, "PRUNED") > 0);
    assert_int_equal(w->prunes, 0);
    assert_int_equal(
        fixture_count(w->store, "SELECT count(*) FROM report WHERE verdict = 'pause'") > 0, 1);
    world_free(w);
}

/* A promoted trial whose worker is lost waits for another one, also when the coordinator is
 * restarted meanwhile: it does not have to be promoted once more. */
static void a_promoted_trial_stays_promoted_over_a_restart(void **state)
{
    (void)state;
    static const char toml[] =
        "[study]\nname = \"fixture\"\n[data]\npath = \"bars.csv\"\n[agent]\nepochs = 9\n"
        "[sampler]\nkind = \"random\"\n[pruner]\nkind = \"asha\"\nmin_epochs = 1\n"
        "reduction = 2\npromote = true\n[search]\n\"barriers.stop_loss\" = { float = [10, 80] }\n";
    static const double value[] = {1.0, 0.5, 0.1, 0.05};
    ho_err err = {0};
    world *w = world_make_of(toml, 4);
    world_start(w);
    int64_t worker = world_join(w, 4);
    world_tick(w);
    assert_int_equal(w->leases, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(world_report(w, &w->lease[i], 1, value[i]), HO_OK);
    }
    assert_int_equal(w->pauses, 3); /* trial 1 is among the best 2 of 4 by now */
    for (int i = 1; i < 4; i++) {
        assert_int_equal(world_give_up(w, &w->lease[i], HO_CAUSE_PREEMPTED), HO_OK);
    }
    world_tick(w);
    assert_int_equal(w->leases, 5);
    assert_int_equal(w->lease[4].number, 1);
    assert_int_equal(world_events_of(w, "promote"), 1);
    ho_dispatch_leave(w->d, worker, HO_CAUSE_LOST, "test", w->now);
    CHECK_OK(ho_store_flush(w->store, w->now, true, &err), &err);
    world_crash_and_restart(w);
    (void)world_join(w, 4);
    world_tick(w);
    assert_int_equal(w->leases, 2); /* trials 0 and 1; 2 and 3 are paused as before */
    assert_int_equal(w->lease[1].number, 1);
    assert_int_equal(w->lease[1].attempt, 3);
    assert_int_equal(world_events_of(w, "promote"), 1);
    world_free(w);
}

/* optuna 3450. Ranks need every objective, after a restart as before it. */
static void pruning_with_several_objectives_survives_a_restart(void **state)
{
    (void)state;
    static const char toml[] =
        "[study]\nname = \"fixture\"\nobjective = [\"sharpe\", \"max_drawdown\"]\n"
        "[data]\npath = \"bars.csv\"\n[agent]\nepochs = 9\n[sampler]\nkind = \"random\"\n"
        "[pruner]\nkind = \"asha\"\nmin_epochs = 1\nreduction = 2\n"
        "[search]\n\"barriers.stop_loss\" = { float = [10, 80] }\n";
    static const double value[4][2] = {{1.0, -0.9}, {0.1, -0.1}, {0.5, -0.5}, {0.0, -0.95}};
    ho_err err = {0};
    world *w = world_make_of(toml, 4);
    w->config.objectives = 2;
    w->config.direction[1] = 1;
    w->config.adopt_ns = 0;
    world_start(w);
    (void)world_join(w, 4);
    world_tick(w);
    assert_int_equal(w->leases, 4);
    sent lease[4];
    memcpy(lease, w->lease, sizeof lease);
    for (int i = 0; i < 4; i++) {
        ho_report_in r = {.parent = -1, .number = i, .attempt = 1, .step = 1, .scored = true};
        memcpy(r.value, value[i], sizeof value[i]);
        if (i == 2) {
            CHECK_OK(ho_store_flush(w->store, w->now, true, &err), &err);
            world_crash_and_restart(w);
            int64_t worker = world_join_with(w, 4, lease, 4);
            for (int k = 0; k < 4; k++) {
                lease[k].worker = worker;
            }
        }
        CHECK_OK(ho_dispatch_report(w->d, lease[i].worker, &r, w->now, &err), &err);
        assert_int_equal(w->prunes, i == 3); /* the first three do not dominate each other */
    }
    CHECK_OK(ho_store_flush(w->store, w->now, true, &err), &err);
    assert_int_equal(fixture_count(w->store,
                                   "SELECT count(*) FROM report_value WHERE objective = 1 "
                                   "AND value IN (-0.9, -0.1, -0.5, -0.95)"),
                     4);
    assert_int_equal(fixture_count(w->store, "SELECT count(*) FROM report WHERE trial = 3 AND "
                                             "verdict = 'prune' AND competitors = 3"),
                     1);
    world_free(w);
}

/* Six trials at the first rung, of which two go on: the best at once; the second, trial 1, is
 * promoted while the worker that paused it has not sent its checkpoint yet. */
static world *world_with_a_promotion(int64_t *worker)
{
    world *w = world_make_of(promote_toml, 6);
    w->config.in_flight = 6;
    world_start(w);
    *worker = world_join(w, 6);
    world_tick(w);
    assert_int_equal(w->leases, 6);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(world_report(w, &w->lease[i], 1, (double)-i), HO_OK);
    }
    assert_int_equal(w->pauses, 5);
    for (int i = 2; i < 6; i++) {
        assert_int_equal(world_give_up(w, &w->lease[i], HO_CAUSE_PREEMPTED), HO_OK);
    }
    assert_int_equal(world_deliver(w, &w->lease[0], 1.0), HO_OK);
    ho_dispatch_ready(w->d, *worker, 6, 1, w->now);
    world_tick(w);
    world_tick(w);
    assert_int_equal(world_events_of(w, "promote"), 1);
    assert_int_equal(w->leases, 6);
    assert_int_equal(w->acks, 5);
    assert_false(ho_dispatch_done(w->d));
    return w;
}

static void a_promoted_trial_waits_until_its_checkpoint_is_back(void **state)
{
    (void)state;
    int64_t worker = -1;
    world *w = world_with_a_promotion(&worker);
    /* its artifacts are still welcome, and an epoch that crossed the pause changes nothing */
    assert_true(ho_dispatch_holds(w->d, worker, w->lease[1].number, 1));
    assert_int_equal(world_report(w, &w->lease[1], 2, 5.0), HO_OK);
    assert_int_equal(world_give_up(w, &w->lease[1], HO_CAUSE_PREEMPTED), HO_OK);
    world_tick(w);
    assert_int_equal(w->acks, 6);
    assert_int_equal(w->leases, 7);
    assert_int_equal(w->lease[6].number, w->lease[1].number);
    assert_int_equal(w->lease[6].attempt, 2);
    assert_false(ho_dispatch_holds(w->d, worker, w->lease[1].number, 1));
    world_finish(w, 6);
    assert_int_equal(world_trials_in(w, "PRUNED"), 4);
    world_free(w);
}

static void a_promoted_trial_goes_on_when_its_worker_dies(void **state)
{
    (void)state;
    int64_t worker = -1;
    world *w = world_with_a_promotion(&worker);
    ho_dispatch_leave(w->d, worker, HO_CAUSE_CRASH, "test", w->now);
    (void)world_join(w, 6);
    world_tick(w);
    assert_int_equal(w->leases, 7);
    assert_int_equal(w->lease[6].number, w->lease[1].number);
    world_finish(w, 6);
    world_free(w);
}

static void a_result_that_crossed_the_pause_counts(void **state)
{
    (void)state;
    int64_t worker = -1;
    world *w = world_with_a_promotion(&worker);
    assert_int_equal(world_deliver(w, &w->lease[1], 7.0), HO_OK);
    world_finish(w, 6);
    assert_int_equal(w->leases, 6);
    assert_int_equal(world_trials_in(w, "COMPLETE"), 2);
    world_free(w);
}

/* A restart between the pause and the checkpoint: the worker is told once more. */
static void a_pause_is_told_again_after_a_restart(void **state)
{
    (void)state;
    world *w = world_make_of(promote_toml, 9);
    w->config.in_flight = 2;
    world_start(w);
    (void)world_join(w, 2);
    world_tick(w);
    assert_int_equal(world_report(w, &w->lease[0], 1, 0.0), HO_OK);
    assert_int_equal(world_report(w, &w->lease[1], 1, -9.0), HO_OK);
    assert_int_equal(w->pauses, 1);
    sent held = w->lease[1];
    fixture_flush(w->store);
    world_crash_and_restart(w);
    held.worker = world_join_with(w, 0, &held, 1);
    assert_int_equal(w->keeps, 1);
    assert_int_equal(w->pauses, 1);
    assert_true(ho_dispatch_holds(w->d, held.worker, held.number, held.attempt));
    assert_int_equal(world_give_up(w, &held, HO_CAUSE_PREEMPTED), HO_OK);
    world_tick(w);
    assert_int_equal(w->acks, 1);
    world_free(w);
}

static void nothing_new_is_leased_while_dispatch_is_held(void **state)
{
    (void)state;
    world *w = world_make(4);
    ho_dispatch_view view;
    ho_dispatch_hold(w->d, "no room");
    (void)world_join(w, 4);
    world_tick(w);
    assert_int_equal(w->leases, 0);
    ho_dispatch_look(w->d, &view);
    assert_string_equal(view.paused, "no room");
    ho_dispatch_hold(w->d, NULL);
    world_finish(w, 0);
    assert_int_equal(world_trials_in(w, "COMPLETE"), 4);
    world_free(w);
}

/* wilcoxon compares folds with folds, once a trial, also after a restart. */
static void a_trial_that_is_worse_on_every_fold_is_pruned(void **state)
{
    (void)state;
    static const char toml[] =
        "[study]\nname = \"fixture\"\n[data]\npath = \"bars.csv\"\n[agent]\nepochs = 9\n"
        "[sampler]\nkind = \"random\"\n[pruner]\nkind = \"wilcoxon\"\nmin_epochs = 2\n"
        "[search]\n\"barriers.stop_loss\" = { float = [10, 80] }\n";
    double good[8], bad[8];
    ho_err err = {0};
    world *w = world_make_of(toml, 3);
    w->config.in_flight = 1;
    world_start(w);
    int64_t worker = world_join(w, 1);
    for (int f = 0; f < 8; f++) {
        good[f] = 1.0 + 0.1 * f;
        bad[f] = good[f] - 0.5 - 0.01 * f;
    }
    for (int i = 0; i < 2; i++) {
        world_tick(w);
        assert_int_equal(w->leases, 1);
        ho_report_in r = {.parent = -1, .number = i, .attempt = 1, .scored = true, .folds = 8};
        r.fold_value = i == 0 ? good : bad;
        for (r.step = 1; r.step <= 3 && w->prunes == 0; r.step++) {
            CHECK_OK(ho_dispatch_report(w->d, worker, &r, w->now, &err), &err);
            assert_int_equal(w->prunes, i == 1 && r.step == 2);
        }
        if (i == 0) {
            assert_int_equal(world_deliver(w, &w->lease[0], 1.0), HO_OK);
            CHECK_OK(ho_store_flush(w->store, w->now, true, &err), &err);
            world_crash_and_restart(w); /* the comparison must survive it */
            worker = world_join(w, 1);
        }
    }
    world_tick(w);
    assert_int_equal(world_trials_in(w, "PRUNED"), 1);
    world_free(w);
}

/* ---- stopping ------------------------------------------------------------------------------- */

static void patience_ends_a_study_without_a_new_best(void **state)
{
    (void)state;
    world *w = world_make_of(fixture_toml, 100);
    w->config.patience = 5;
    w->config.in_flight = 1;
    world_start(w);
    (void)world_join(w, 1);
    int done = 0;
    for (int i = 0; i < 100 && !ho_dispatch_done(w->d); i++) {
        world_tick(w);
        for (; done < w->leases; done++) {
            assert_int_equal(world_deliver(w, &w->lease[done], done == 3 ? 10.0 : 1.0), HO_OK);
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
    world_start(w);
    int64_t worker = world_join(w, 2);
    world_tick(w);
    assert_int_equal(w->leases, 2);
    w->now += 11 * second;
    ho_dispatch_heard(w->d, worker, w->now);
    world_finish(w, 0);
    assert_string_equal(ho_dispatch_reason(w->d), "timeout");
    assert_int_equal(w->leases, 2);
    assert_int_equal(world_trials_in(w, "COMPLETE"), 2);
    world_free(w);
}

static void a_finite_space_ends_the_study(void **state)
{
    (void)state;
    static const char toml[] =
        "[study]\nname = \"fixture\"\n[data]\npath = \"bars.csv\"\n[sampler]\nkind = \"grid\"\n"
        "[pruner]\nkind = \"none\"\n[search]\n\"dqn.n_step\" = { int = [1, 5] }\n";
    world *w = world_make_of(toml, 100);
    world_start(w);
    (void)world_join(w, 2);
    world_finish(w, 0);
    assert_string_equal(ho_dispatch_reason(w->d), "exhausted");
    assert_int_equal(world_trials_in(w, "COMPLETE"), 5);
    world_free(w);
}

static void the_best_are_run_again_at_the_end_and_only_once(void **state)
{
    (void)state;
    world *w = world_make_of(fixture_toml, 6);
    w->config.retest = 2;
    w->config.retest_times = 3;
    world_start(w);
    (void)world_join(w, 4);
    world_finish(w, 0); /* a trial's value is its number */
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
    world_crash_and_restart(w);
    (void)world_join(w, 4);
    world_finish(w, 0);
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
    (void)world_join(w, 3);
    world_tick(w);
    assert_int_equal(world_deliver(w, &w->lease[0], 1.0), HO_OK);
    CHECK_OK(ho_dispatch_interrupt(w->d, "interrupted", w->now, &err), &err);
    assert_int_equal(world_trials_in(w, "RUNNING"), 0);
    assert_int_equal(world_trials_in(w, "INTERRUPTED"), 2);
    assert_int_equal(world_trials_in(w, "COMPLETE"), 1);
    world_crash_and_restart(w);
    (void)world_join(w, 3);
    world_finish(w, 0);
    assert_int_equal(world_trials_in(w, "COMPLETE"), 6);
    assert_int_equal(fixture_count(w->store, "SELECT count(*) FROM trial"), 6);
    world_free(w);
}

static void a_drain_starts_nothing_new(void **state)
{
    (void)state;
    world *w = world_make(10);
    (void)world_join(w, 2);
    world_tick(w);
    int leases = w->leases;
    ho_dispatch_drain(w->d, "interrupted");
    world_finish(w, 0);
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
    int64_t worker = world_join(w, 4);
    world_tick(w);
    (void)snprintf(pragma, sizeof pragma, "PRAGMA max_page_count = %lld",
                   (long long)fixture_count(w->store, "PRAGMA page_count"));
    (void)fixture_count(w->store, pragma);
    int done = 0;
    for (int i = 0; i < 200 && !ho_store_paused(w->store); i++) {
        for (; done < w->leases; done++) {
            assert_int_equal(world_deliver(w, &w->lease[done], (double)done), HO_OK);
        }
        world_tick(w);
        ho_dispatch_heard(w->d, worker, w->now);
    }
    if (ho_store_paused(w->store)) {
        int leases = w->leases, acks = w->acks;
        for (; done < w->leases; done++) {
            assert_int_equal(world_deliver(w, &w->lease[done], (double)done), HO_OK);
        }
        for (int i = 0; i < 50; i++) {
            world_tick(w);
            ho_dispatch_heard(w->d, worker, w->now);
        }
        assert_int_equal(w->leases, leases);
        assert_int_equal(w->acks, acks);
    }
    (void)fixture_count(w->store, "PRAGMA max_page_count = 100000");
    world_finish(w, done);
    assert_int_equal(world_trials_in(w, "COMPLETE"), 40);
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
    for (int run = 0; run < 2; run++) {
        world *w = world_make_of(toml, 24);
        w->config.deterministic = true;
        w->config.parallel = 4;
        world_start(w);
        for (int i = 0; i < (run ? 3 : 1); i++) {
            (void)world_join(w, run ? 2 : 4);
        }
        int done[24] = {0};
        for (int round = 0; round < 1000 && !ho_dispatch_done(w->d); round++) {
            world_tick(w);
            for (int k = 0; k < w->leases; k++) { /* forwards, or the newest first */
                int i = run ? w->leases - 1 - k : k;
                if (!done[w->lease[i].number]) {
                    double x = sin(12.0 * (double)w->lease[i].number);
                    done[w->lease[i].number] = 1;
                    assert_int_equal(world_deliver(w, &w->lease[i], x), HO_OK);
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
    for (int run = 0; run < 2; run++) {
        world *w = world_make_of(toml, 20);
        w->config.in_flight = 1;
        world_start(w);
        (void)world_join(w, 1);
        int done = 0, finished = 0;
        for (int round = 0; round < 1000 && !ho_dispatch_done(w->d); round++) {
            world_tick(w);
            for (; done < w->leases; done++, finished++) {
                assert_int_equal(
                    world_deliver(w, &w->lease[done], cos(7.0 * (double)w->lease[done].number)),
                    HO_OK);
            }
            if (run && finished % 6 == 5 && w->leases > 0) {
                world_tick(w);
                world_tick(w);          /* the results are committed */
                if (w->leases > done) { /* what is leased is lost with the coordinator */
                    finished++;
                }
                world_crash_and_restart(w);
                done = 0;
                w->now += 31 * second;
                (void)world_join(w, 1);
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
        cmocka_unit_test(a_pruned_trial_ends_at_once_with_its_last_value),
        cmocka_unit_test(a_promoted_trial_stays_promoted_over_a_restart),
        cmocka_unit_test(pruning_with_several_objectives_survives_a_restart),
        cmocka_unit_test(a_trial_that_is_worse_on_every_fold_is_pruned),
        cmocka_unit_test(paused_trials_are_promoted_or_end_as_pruned),
        cmocka_unit_test(a_promoted_trial_waits_until_its_checkpoint_is_back),
        cmocka_unit_test(a_promoted_trial_goes_on_when_its_worker_dies),
        cmocka_unit_test(a_result_that_crossed_the_pause_counts),
        cmocka_unit_test(a_pause_is_told_again_after_a_restart),
        cmocka_unit_test(nothing_new_is_leased_while_dispatch_is_held),
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
