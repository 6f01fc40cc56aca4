/* SPDX-License-Identifier: Apache-2.0
 * Prioritised replay on the device (formulas: kernels/agents/priority.h).
 *
 * Proportional: a leaf of 32 fixed-point bits a transition and a 64-bit sum over every block of
 * leaves. Integers: the sums are exact whatever the order of their changes, and with equal leaves
 * the draws are the CPU's sum tree's, number for number.
 * Rank-based: a leaf is the bits of |td|; every HO_RANK_SORT_EVERY updates a stable radix sort of
 * the leaves gives the order (ties by slot), and running sums of the ranks' masses are searched.
 * Nothing is allocated here; launchers return at once. */
#ifndef HO_CUDA_PRIORITY_H
#define HO_CUDA_PRIORITY_H

#include <cuda_runtime.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/agent_config.h"
#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HO_PRIORITY_BLOCKS_MAX = 2048, /* sums that one block searches in shared memory */
    HO_PRIORITY_BLOCK_MIN = 256,   /* leaves under a sum */
    HO_PRIORITY_DRAWS = 64,        /* draws of one block */
    HO_RANK_TILE = 2048,           /* transitions that one block of the sort takes */
    HO_RANK_DIGITS = 256,
};

/* Sizes that follow from the ring's capacity and the batch. */
typedef struct ho_priority_shape {
    int32_t kind;       /* ho_replay_kind */
    int32_t block;      /* leaves under a sum: a power of two */
    int32_t blocks;     /* sums */
    int32_t leaves;     /* blocks * block >= capacity; those beyond the ring are 0 */
    int32_t tiles;      /* of the sort */
    int32_t draw_parts; /* blocks that draw a batch */
    int32_t mass_room;  /* words of a lane's running sums: capacity + 1, made even */
} ho_priority_shape;

ho_priority_shape ho_priority_shape_of(const ho_cohort_key *key);

/* The most transitions of one epoch that the ring still holds at its end. */
int32_t ho_epoch_new_rows(const ho_cohort_key *key);

/* Arrays with a leading lane axis [K]; NULL where the kind has no use for them. */
typedef struct ho_priority_view {
    ho_priority_shape shape;
    uint32_t *leaf;        /* [leaves] */
    uint64_t *sum;         /* proportional: [blocks]; rank-based: [tiles], work */
    uint64_t *mass;        /* [mass_room] running sums of the ranks' masses, from 0 */
    uint32_t *rank_key[2]; /* [capacity] work of the sort */
    int32_t *rank_slot[2]; /* [capacity]; [1]: slots by falling |td| */
    uint32_t *rank_count;  /* [HO_RANK_DIGITS, tiles] */
    int32_t *index;        /* [B] slots drawn */
    float *weight;         /* [B] (N P)^-beta */
    float *weight_part;    /* [draw_parts] largest weight of each block of draws */
    float *td;             /* [B] |td| of the update's rows */
} ho_priority_view;

#ifdef __cplusplus
}
#endif
#endif
