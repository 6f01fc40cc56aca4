/* SPDX-License-Identifier: Apache-2.0
 * Walks a finite space one configuration after the other, parameters as digits, branches as the
 * conditions say. Used by `grid`, and by every sampler when only few configurations are left. */
#ifndef HO_COORDINATOR_SEARCH_WALK_H
#define HO_COORDINATOR_SEARCH_WALK_H

#include "coordinator/search/dim.h"
#include "coordinator/search/history.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_walk {
    const ho_space *space;
    const ho_dim *dim; /* [P] */
    int64_t *digit;    /* [P] current digit; -1: inactive */
    int64_t *offset;   /* [P] digit 0 stands for this grid point */
    double *config;    /* [P] the configuration of the digits */
    uint64_t seed;     /* of the points that stand for a continuous parameter */
    bool started, ended;
} ho_walk;

/* shuffled: each digit starts at a random point of its range; else at its first. */
ho_status ho_walk_init(ho_walk *walk, const ho_space *space, const ho_dim *dim, uint64_t seed,
                       bool shuffled, ho_err *err);
void ho_walk_free(ho_walk *walk);

/* Back to the first configuration. */
void ho_walk_restart(ho_walk *walk);

/* Stops at the first configuration, from the current one on, that is legal and was not seen, and
 * copies it to config [P]. HO_EDONE: there is none (err says whether the walk was cut short). */
ho_status ho_walk_next_unseen(ho_walk *walk, const ho_history *history, double *config,
                              ho_err *err);

/* Number of configurations of an unconditional reading of the space, requirements not counted;
 * INFINITY with a continuous parameter. */
double ho_walk_size(const ho_space *space);

#ifdef __cplusplus
}
#endif
#endif
