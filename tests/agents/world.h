/* SPDX-License-Identifier: Apache-2.0
 * Small markets with a known best policy, and lanes on them, for the tests of agents. Bars open at
 * the last close, so that what an action decided at t earns is the return of bar t + 1. */
#ifndef HO_TESTS_AGENTS_WORLD_H
#define HO_TESTS_AGENTS_WORLD_H

#include "kernels/agents/agent_check.h"
#include "kernels/backend.h"
#include "kernels/env/config_check.h"

enum { WORLD_FEATURES = 4 };

typedef enum world_kind {
    WORLD_ALTERNATING, /* +a, -a, +a, ...; feature 0: the last return */
    WORLD_REVERTING,   /* log price = AR(1) around its mean; feature 0: the distance */
    WORLD_SIGNAL,      /* feature 0 foretells part of the next return */
    WORLD_NOISE,       /* independent returns, features of noise */
} world_kind;

typedef struct world {
    int64_t T;
    double *bars;    /* [T, 5] */
    float *features; /* [T, F] */
    int F;
    double move; /* typical return of a bar */
    ho_backend *backend;
    ho_market *market;
} world;

/* F >= WORLD_FEATURES columns; those beyond are noise. Fails the test on an error. */
world *world_new(world_kind kind, int64_t T, uint64_t seed, int F, int threads);
/* On a backend of one's choice: the same bars and features. */
world *world_new_on(world_kind kind, int64_t T, uint64_t seed, int F,
                    const ho_backend_options *options);
void world_free(world **w);

/* Costs, sizes and scales that fit the world; no impact. */
ho_env_config world_env(const world *w, double spread_bps, double fee_bps);

/* A small network on the world: 32-32-16, 16 episodes of 50 steps, batch 64. */
ho_cohort_key world_key(const world *w, ho_algorithm algorithm);

/* The lane of (trial, 0, 0): trains on all bars. */
ho_lane_config world_lane(const world *w, const ho_cohort_key *key, uint64_t trial);

/* Final log equity ratio of a backtest over the second half of the bars
 * (actions: [T], NULL: the
 * slot's greedy policy); the whole result in *result when not NULL
 * (the caller frees it). */
double world_score(world *w, ho_cohort *cohort, int slot, const ho_env_config *env,
                   const uint8_t *actions, ho_backtest_result *result);

/* A cohort on the world, a lane in its slot, epochs: a failure fails the test. stat: [capacity]. */
ho_cohort *world_cohort(world *w, const ho_cohort_key *key, int capacity);
void world_start(ho_cohort *c, int slot, const ho_lane_config *lane);
void world_run(ho_cohort *c, int epochs, ho_epoch_stat *stat);

/* FNV-1a of all of a lane's state, replay and priorities included. */
uint64_t world_hash(ho_cohort *c, int slot);

/* Standard normal numbers of the tests' own generator. */
double world_normal(uint64_t *state);

#endif
