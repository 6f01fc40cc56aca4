/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/auto_batch.h"

#include <time.h>

enum { RUNS = 3, ROWS = 8192, STEPS_MAX = 16, GAIN_PERCENT = 5 };

int32_t ho_auto_batch_choose(const double *rows_per_s, int n, int32_t least)
{
    int32_t batch = least;
    for (int i = 1; i < n; i++) {
        if (!(rows_per_s[i] >= rows_per_s[i - 1] * (1.0 + GAIN_PERCENT / 100.0))) {
            break;
        }
        batch *= 2;
    }
    return batch;
}

double ho_auto_batch_learning_rate(double learning_rate, int32_t batch)
{
    return batch > 4 * HO_BATCH_DEFAULT ? learning_rate * (double)batch / HO_BATCH_DEFAULT
                                        : learning_rate;
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Shortest time of an epoch after a first one that warms up. */
static ho_status time_epoch(ho_cohort *cohort, double *seconds, ho_err *err)
{
    ho_epoch_stat stat;
    ho_status rc = HO_OK;
    for (int i = 0; i <= RUNS && rc == HO_OK; i++) {
        const double start = now_s();
        rc = ho_cohort_run_epoch(cohort, &stat, err);
        const double took = now_s() - start;
        *seconds = i == 1 || (i > 1 && took < *seconds) ? took : *seconds;
    }
    return rc;
}

/* Transitions a second of updates of `key`; 0 when it does not fit. */
static ho_status measure(ho_backend *backend, ho_market *market, ho_cohort_key key,
                         const ho_lane_config *lane, double *rows_per_s, ho_err *err)
{
    ho_cohort *cohort = NULL;
    ho_status rc = ho_cohort_create(backend, market, &key, 1, &cohort, err);
    double with = 0.0;
    *rows_per_s = 0.0;
    if (rc == HO_ENOMEM) {
        return HO_OK;
    }
    if (rc == HO_OK && (rc = ho_lane_start(cohort, 0, lane, err)) == HO_OK) {
        rc = time_epoch(cohort, &with, err);
    }
    if (rc == HO_OK && with > 0.0) {
        *rows_per_s = (double)key.updates * key.batch / with;
    }
    ho_cohort_destroy(&cohort);
    return rc;
}

ho_status ho_auto_batch_measure(ho_backend *backend, ho_market *market, const ho_cohort_key *key,
                                const ho_lane_config *lane, int32_t most, int32_t *out, ho_err *err)
{
    double rows_per_s[32];
    int n = 0;
    ho_lane_config quick = *lane;
    *out = 0;
    if (key->algorithm != HO_DQN) {
        return ho_err_set(err, HO_EINVAL, "an automatic batch is DQN's");
    }
    quick.agent.learn_start = 1;
    quick.agent.learning_rate = 0.0; /* time is asked for, not learning */
    for (int64_t batch = HO_AUTO_BATCH_LEAST; batch <= most && n < 32; batch *= 2) {
        ho_cohort_key shape = *key;
        if (n > 0 && batch > key->replay_capacity) {
            break;
        }
        /* little collection beside the updates */
        shape.episodes = shape.episodes < 8 ? shape.episodes : 8;
        shape.episode_length = shape.episode_length < 16 ? shape.episode_length : 16;
        shape.batch = (int32_t)batch;
        shape.updates = batch * STEPS_MAX <= ROWS * 2 ? (int32_t)(ROWS * 2 / batch) : STEPS_MAX;
        ho_status rc = measure(backend, market, shape, &quick, &rows_per_s[n], err);
        if (rc != HO_OK) {
            return rc;
        }
        n++;
        if (rows_per_s[n - 1] <= 0.0 ||
            (n > 1 && ho_auto_batch_choose(rows_per_s, n, 1) < 1 << (n - 1))) {
            break;
        }
    }
    if (n == 0 || rows_per_s[0] <= 0.0) {
        return ho_err_set(err, HO_ENOMEM, "automatic batch: not even %d transitions fit",
                          HO_AUTO_BATCH_LEAST);
    }
    *out = ho_auto_batch_choose(rows_per_s, n, HO_AUTO_BATCH_LEAST);
    return HO_OK;
}
