/* SPDX-License-Identifier: Apache-2.0
 * Sums of fixed-point priorities (kernels/agents/priority.h). All sums are of integers, so they are
 * exact however often a leaf changes. Memory is the caller's: 2 * leaves words. */
#ifndef HO_KERNELS_CPU_SUM_TREE_H
#define HO_KERNELS_CPU_SUM_TREE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* node[1] is the sum of all; node[leaves + i] is leaf i; node[n] = node[2n] + node[2n + 1]. */
typedef struct ho_sum_tree {
    int64_t leaves; /* a power of two */
    uint64_t *node; /* [2 * leaves] */
} ho_sum_tree;

/* The least power of two >= capacity. */
int64_t ho_sum_tree_leaves(int64_t capacity);

static inline uint64_t ho_sum_tree_total(const ho_sum_tree *t)
{
    return t->node[1];
}

static inline uint64_t ho_sum_tree_leaf(const ho_sum_tree *t, int64_t i)
{
    return t->node[t->leaves + i];
}

void ho_sum_tree_set(ho_sum_tree *t, int64_t i, uint32_t value);

/* The leaf in which the running sum passes mass; mass < total, so its priority is not 0. */
int64_t ho_sum_tree_find(const ho_sum_tree *t, uint64_t mass);

/* Recomputes all inner nodes from the leaves. */
void ho_sum_tree_rebuild(ho_sum_tree *t);

#ifdef __cplusplus
}
#endif
#endif
