/* SPDX-License-Identifier: Apache-2.0
 * See pool_fixture.h. */
#include "pool_fixture.h"

#include <stdlib.h>

struct event event[MAX_EVENTS];
int events;

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
ho_pool *pool;

bool overlap;
int together;

void open_pool(int lanes)
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

int setup(void **state)
{
    (void)state;
    script_reset();
    overlap = false;
    together = 0;
    return 0;
}

int teardown(void **state)
{
    (void)state;
    ho_pool_destroy(&pool);
    ho_market_unload(&market);
    ho_backend_close(&backend);
    /* a cohort or a job left behind fails the test, and a lane touched while an epoch ran */
    return script.cohorts + script.jobs + script.intrusions;
}

ho_trial_plan *plan_of(int64_t number, struct shape shape)
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

void add(int64_t number, struct shape shape)
{
    ho_err err = {0};
    ho_trial_plan *plan = plan_of(number, shape);
    CHECK_OK(ho_pool_add(pool, &plan, &err), &err);
    assert_null(plan);
}

bool step(void)
{
    ho_err err = {0};
    bool worked = false;
    CHECK_OK(ho_pool_step(pool, &worked, &err), &err);
    return worked;
}

void run_all(void)
{
    for (int i = 0; step(); i++) {
        assert_true(i < 1000);
    }
}

const struct event *find(char kind, int64_t trial)
{
    for (int i = 0; i < events; i++) {
        if (event[i].kind == kind && event[i].trial == trial) {
            return &event[i];
        }
    }
    fail_msg("no event '%c' of trial %lld", kind, (long long)trial);
    return event;
}

int count(char kind, int64_t trial)
{
    int n = 0;
    for (int i = 0; i < events; i++) {
        n += event[i].kind == kind && event[i].trial == trial;
    }
    return n;
}
