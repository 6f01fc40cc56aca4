/* SPDX-License-Identifier: Apache-2.0
 * A backend that follows a script instead of training: it implements kernels/backend.h for the
 * tests of the worker's scheduling, which must not depend on how an agent learns. A lane's numbers
 * are a function of its random key and epoch; what fails, and when, is the script's. */
#ifndef HO_TESTS_WORKER_SCRIPTED_BACKEND_H
#define HO_TESTS_WORKER_SCRIPTED_BACKEND_H

#include "kernels/backend.h"

typedef struct ho_script {
    int gpu;           /* what ho_backend_info says: 1 a GPU, 0 a CPU */
    int processors;    /* likewise */
    size_t memory;     /* bytes free at the start */
    size_t lane_bytes; /* of one lane, whatever its shape */
    int create_limit;  /* lanes all cohorts may hold before ho_cohort_create runs out; 0: none */
    int epochs_until_lost;           /* the device is gone at this epoch; 0: never */
    int jobs_until_lost;             /* likewise at the collect of this backtest job */
    int jobs_limit;                  /* backtest jobs that fit the device side by side; 0: all */
    int job_polls;                   /* how often a job says that it is not ready */
    const double *lane_epochs_per_s; /* [lanes that train / 64, rounded up]; NULL: takes no time */
    double clock_s;
    int lanes_active;     /* of all cohorts */
    uint64_t diverge_key; /* rng_key[0] of the lane that diverges; 0: none */
    int diverge_epoch;    /* in which epoch of its own */
    uint64_t refuse_key;  /* rng_key[0] of a lane that ho_lane_start refuses; 0: none */
    /* what happened */
    int cohorts, cohorts_created, epochs_run, lanes_started, lanes_held, most_lanes_held;
    int lanes_restored, backtests, imports, exports;
    int launches, most_launched; /* epochs; of one cohort under way */
    int jobs;                    /* backtests under way */
    int intrusions;              /* lanes stopped while an epoch was under way */
    int lanes_prepared;          /* started with the weights that ho_lane_prepare made for them */
} ho_script;

extern ho_script script;

/* The time of the script's device, which an epoch moves on. */
int64_t script_clock_ns(void);

/* Clears the script: a CPU of two threads with 1 GiB, lanes of 1 MiB, nothing fails. */
void script_reset(void);

/* The one weight that ho_lane_prepare makes for a lane of this key. */
float script_weight(uint64_t key);

/* What a backtest of this key after `epoch` epochs on window gives for every metric. */
double script_value(uint64_t key, int epoch, ho_window window);

#endif
