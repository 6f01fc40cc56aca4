/* SPDX-License-Identifier: Apache-2.0
 * Markets for the tests of the environment: cases in market_ref.py's JSON, and markets made in
 * place. A test_market owns its arrays and holds the loaded market of a CPU backend. */
#ifndef HO_TESTS_KERNELS_CASES_H
#define HO_TESTS_KERNELS_CASES_H

#include <cjson/cJSON.h>

#include "kernels/backend.h"
#include "kernels/env/config_check.h"

typedef struct test_market {
    int64_t T;
    double *bars;      /* [T, 5] */
    int64_t *open_ns;  /* [T], a minute apart */
    int32_t *session;  /* [T] */
    double *roll_jump; /* [T] or NULL */
    double *funding;   /* [T] or NULL */
    double *sigma;     /* [T] or NULL */
    uint8_t *split;    /* [T] or NULL */
    ho_env_config config;
    uint8_t *actions; /* [T - 1] */
    int64_t action_count;
    ho_backend *backend;
    ho_market *market;
} test_market;

/* T bars of one session, all zero, and the defaults of market_ref.py: no impact, 5 lots. */
test_market *test_market_new(int64_t T);
void test_market_free(test_market *m);

/* A seeded random walk from `price` with gaps; every bar consistent. Prices on the tick when
 * tick > 0. */
void test_market_walk(test_market *m, uint64_t seed, double price, double step, double tick);

void test_market_bar(test_market *m, int64_t t, double open, double high, double low, double close,
                     double volume);

/* Loads the arrays into the backend (anew when it was loaded). */
void test_market_load(test_market *m);

/* Random actions of the whole window. */
void test_market_random_actions(test_market *m, uint64_t seed);

/* Reads a CASE.json of market_ref.py, loaded. */
test_market *test_market_from_json(const char *path);

/* Runs the case's actions over all bars (or of any policy), everything wanted; fails the test on
 * an error. Free with ho_backtest_free. */
ho_backtest_result test_market_run(test_market *m);
ho_backtest_result test_market_policy(test_market *m, ho_policy policy);

cJSON *test_read_json(const char *path);

#endif
