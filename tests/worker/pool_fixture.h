/* SPDX-License-Identifier: Apache-2.0
 * A pool on the scripted backend and what it said, for the tests of scheduling. */
#ifndef HO_TESTS_WORKER_POOL_FIXTURE_H
#define HO_TESTS_WORKER_POOL_FIXTURE_H

#include "check.h"
#include "scripted_backend.h"
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

struct shape {
    int folds, seeds, epochs, hidden;
};

extern struct event event[MAX_EVENTS];
extern int events;
extern ho_pool *pool;
/* Of the pools opened next; false and 0 at the start of each test. */
extern bool overlap;
extern int together;

void open_pool(int lanes);
int setup(void **state);
/* Closes the pool. Not 0: a cohort or a job was left behind, or a lane touched while an epoch ran.
 */
int teardown(void **state);

/* Trial `number` of this shape; validation every two epochs. */
ho_trial_plan *plan_of(int64_t number, struct shape shape);
void add(int64_t number, struct shape shape);
bool step(void);
void run_all(void);

/* The first event of this kind and trial, which there must be; how many there are. */
const struct event *find(char kind, int64_t trial);
int count(char kind, int64_t trial);

#endif
