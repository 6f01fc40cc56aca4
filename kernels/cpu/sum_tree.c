/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/sum_tree.h"

int64_t ho_sum_tree_leaves(int64_t capacity)
{
    int64_t n = 1;
    while (n < capacity) {
        n *= 2;
    }
    return n;
}

void ho_sum_tree_set(ho_sum_tree *t, int64_t i, uint32_t value)
{
    int64_t n = t->leaves + i;
    const uint64_t change = (uint64_t)value - t->node[n]; /* modulo 2^64: may stand for a fall */
    for (; n >= 1; n /= 2) {
        t->node[n] += change;
    }
}

int64_t ho_sum_tree_find(const ho_sum_tree *t, uint64_t mass)
{
    int64_t n = 1;
    while (n < t->leaves) {
        n *= 2;
        if (mass >= t->node[n]) {
            mass -= t->node[n];
            n++;
        }
    }
    return n - t->leaves;
}

void ho_sum_tree_rebuild(ho_sum_tree *t)
{
    for (int64_t n = t->leaves - 1; n >= 1; n--) {
        t->node[n] = t->node[2 * n] + t->node[2 * n + 1];
    }
}
