/* SPDX-License-Identifier: Apache-2.0
 * Population-based training (Jaderberg et al. 2017, "Population Based Training of Neural
 * Networks", section 3): at epochs that are multiples of `every`, a member in the worst share of
 * what the population had at that epoch takes weights and moments of a member of the best share
 * (exploit), and its numbers are perturbed or drawn anew (explore).
 * Here are the decisions; copying lanes is ho_pool_copy's business. Decisions depend on the
 * values, the epoch and the member's random key only. */
#ifndef HO_WORKER_POPULATION_H
#define HO_WORKER_POPULATION_H

#include "study/study.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_population ho_population;

typedef struct ho_population_options {
    int size;        /* members; a ranking needs at least two */
    int every;       /* epochs between exploits */
    int direction;   /* of the first objective: +1 more is better */
    double quantile; /* share that copies, and share that is copied */
    double perturb;  /* factor of explore */
    double resample; /* probability of drawing a parameter anew */
    uint64_t seed;   /* of the study */
} ho_population_options;

/* HO_ENOMEM. The space outlives the population. */
ho_status ho_population_create(ho_population **out, const ho_population_options *options,
                               const ho_space *space, ho_err *err);
void ho_population_destroy(ho_population **population);

/* A member joins with its configuration [P]; may_change [P]: parameters that a running agent can
 * take. A trial that is known already keeps what it has. */
ho_status ho_population_join(ho_population *population, int64_t trial, const double *config,
                             const bool *may_change, ho_err *err);
void ho_population_leave(ho_population *population, int64_t trial);

/* A member's value at an epoch (NaN: undefined, the worst). */
void ho_population_note(ho_population *population, int64_t trial, int epoch, double value);

/* The next member that has reached a boundary and has to copy: *parent is whom, *epoch where,
 * *config [P] its new numbers (borrowed until the next call). Call until false; members are looked
 * at in the order of their numbers. A member that has left is nobody's parent. */
bool ho_population_next(ho_population *population, int64_t *trial, int64_t *parent, int *epoch,
                        const double **config);

/* Explores: each parameter that may change is drawn anew with probability `resample`, else
 * multiplied or divided by `perturb` (ints move by one at least; choices stay), kept legal. */
void ho_population_explore(const ho_space *space, const ho_population_options *options,
                           const bool *may_change, int64_t trial, int epoch, double *config);

#ifdef __cplusplus
}
#endif
#endif
