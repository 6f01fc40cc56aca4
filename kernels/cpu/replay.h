/* SPDX-License-Identifier: Apache-2.0
 * Replay ring of one lane in compact form: the market part of both states is looked up by bar, so
 * a transition stores the bar, m, both sets of portfolio columns, action, reward and discount.
 * 1. head < capacity. 2. fill <= capacity. 3. slots [0, fill) hold whole transitions. 4. `discount`
 * is gamma^m * (1 - terminal) and `after` is the state before any reset, so nothing of a transition
 * depends on its neighbours in the ring.
 * Priorities: proportional in the tree; rank-based in td, sorted into `order` by ho_replay_sort. */
#ifndef HO_KERNELS_CPU_REPLAY_H
#define HO_KERNELS_CPU_REPLAY_H

#include <stdint.h>

#include "kernels/agent_config.h"
#include "kernels/cpu/carve.h"
#include "kernels/cpu/sum_tree.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_transition {
    int32_t bar;   /* of the state */
    int32_t steps; /* m: the next state is at bar + m */
    int32_t action;
    float reward, discount;
    const float *before, *after; /* [columns] */
} ho_transition;

typedef struct ho_replay {
    int32_t kind; /* ho_replay_kind */
    int32_t capacity, columns;
    int32_t head, fill;
    int32_t *bar;     /* [capacity] */
    float *reward;    /* [capacity] */
    float *discount;  /* [capacity] */
    float *before;    /* [capacity, columns] */
    float *after;     /* [capacity, columns] */
    uint8_t *action;  /* [capacity] */
    uint8_t *steps;   /* [capacity] */
    ho_sum_tree tree; /* HO_REPLAY_PER */
    float *td;        /* [capacity] |td|, HO_REPLAY_PER_RANK */
    int32_t *order;   /* [capacity] slots by falling |td|, the first `ranked` of them */
    uint64_t *mass;   /* [capacity + 1] running sums of rank masses, for the first `massed` */
    uint64_t *work;   /* [capacity] */
    int32_t ranked, massed;
    double mass_alpha;
} ho_replay;

/* Lays the arrays out in the block being carved; a new ring is all zero but for these pointers. */
void ho_replay_carve(ho_replay *r, const ho_cohort_key *key, int32_t columns, ho_carve *carve);

/* Returns the slot, which holds the oldest transition when the ring is full. td: for the priority.
 */
int32_t ho_replay_push(ho_replay *r, const ho_transition *t, double td, double alpha);

/* Ranks all transitions anew: by |td|, ties by slot. */
void ho_replay_sort(ho_replay *r, double alpha);

/* Draws `batch` slots and their weights (N P)^-beta over the batch's largest; fill > 0.
 * key, update, epoch: the counter of the random numbers. Uniform: all weights 1.
 * Rank-based: ho_replay_sort must have been called since the first push. */
void ho_replay_sample(const ho_replay *r, const uint32_t key[2], uint32_t update, uint32_t epoch,
                      int32_t batch, double beta, int32_t *slot, float *weight);

/* New priorities of sampled slots, in order: a slot drawn twice keeps the last. */
void ho_replay_update(ho_replay *r, const int32_t *slot, const float *td, int32_t batch,
                      double alpha);

#ifdef __cplusplus
}
#endif
#endif
