/* SPDX-License-Identifier: Apache-2.0
 * A dispatch with a fake clock and workers that are lists of leases, for its tests. Every function
 * fails the test on an error. */
#ifndef HO_TESTS_COORDINATOR_WORLD_H
#define HO_TESTS_COORDINATOR_WORLD_H

#include "coordinator/dispatch.h"
#include "fixture.h"

enum { WORLD_MAX = 4096, WORLD_FOLDS = 16 };
static const int64_t second = 1000000000; /* ns */

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
    sent lease[WORLD_MAX], ack[WORLD_MAX], prune[WORLD_MAX], pause[WORLD_MAX], drop[WORLD_MAX],
        keep[WORLD_MAX];
    int leases, acks, prunes, pauses, drops, keeps, rounds_over;
    int leased_folds[WORLD_MAX], leased_fold[WORLD_MAX][WORLD_FOLDS]; /* as lease; 0: all */
} world;

/* Makes sampler, pruner and dispatch from w->config, and resumes from the store. */
void world_start(world *w);
/* A world that is not started: change w->config, then world_start. */
world *world_make_of(const char *toml, int64_t trials);
/* The fixture study, started. */
world *world_make(int64_t trials);
void world_stop(world *w);
void world_free(world *w);
/* The coordinator is killed (nothing more is written) and started again. */
void world_crash_and_restart(world *w);
/* A tenth of a second: what is leased in its first half is committed and sent in the second. */
void world_tick(world *w);
/* A worker appears, holding these trials, with room for `slots`. Its id. */
int64_t world_join_with(world *w, int slots, const sent *held, int held_count);
int64_t world_join(world *w, int slots);
/* What a worker says of a lease. */
ho_status world_deliver(world *w, const sent *lease, double value);
ho_status world_give_up(world *w, const sent *lease, ho_cause cause);
ho_status world_report(world *w, const sent *lease, int64_t step, double value);
/* Delivers every lease from `from` on, until the study is done. */
void world_finish(world *w, int from);
/* Rows of the store. */
int64_t world_trials_in(world *w, const char *state);
int64_t world_events_of(world *w, const char *kind);

#endif
