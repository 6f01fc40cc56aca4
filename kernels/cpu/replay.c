/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/agents/priority.h"
#include "kernels/env/rng.h"

void ho_replay_carve(ho_replay *r, const ho_cohort_key *key, int32_t columns, ho_carve *carve)
{
    const size_t n = (size_t)key->replay_capacity;
    r->kind = key->replay;
    r->capacity = key->replay_capacity;
    r->columns = columns;
    r->bar = ho_carve_take(carve, n, sizeof *r->bar);
    r->reward = ho_carve_take(carve, n, sizeof *r->reward);
    r->discount = ho_carve_take(carve, n, sizeof *r->discount);
    r->before = ho_carve_take(carve, n * (size_t)columns, sizeof *r->before);
    r->after = ho_carve_take(carve, n * (size_t)columns, sizeof *r->after);
    r->action = ho_carve_take(carve, n, sizeof *r->action);
    r->steps = ho_carve_take(carve, n, sizeof *r->steps);
    if (r->kind == HO_REPLAY_PER) {
        r->tree.leaves = ho_sum_tree_leaves(r->capacity);
        r->tree.node = ho_carve_take(carve, 2 * (size_t)r->tree.leaves, sizeof *r->tree.node);
    } else if (r->kind == HO_REPLAY_PER_RANK) {
        r->td = ho_carve_take(carve, n, sizeof *r->td);
        r->order = ho_carve_take(carve, n, sizeof *r->order);
        r->mass = ho_carve_take(carve, n + 1, sizeof *r->mass);
        r->work = ho_carve_take(carve, n, sizeof *r->work);
    }
}

static void set_priority(ho_replay *r, int32_t slot, double td, double alpha)
{
    if (r->kind == HO_REPLAY_PER) {
        ho_sum_tree_set(&r->tree, slot, ho_priority_leaf(td, alpha));
    } else if (r->kind == HO_REPLAY_PER_RANK) {
        r->td[slot] = fabsf((float)td);
    }
}

int32_t ho_replay_push(ho_replay *r, const ho_transition *t, double td, double alpha)
{
    const int32_t at = r->head;
    const size_t row = (size_t)at * (size_t)r->columns, bytes = (size_t)r->columns * sizeof(float);
    r->bar[at] = t->bar;
    r->steps[at] = (uint8_t)t->steps;
    r->action[at] = (uint8_t)t->action;
    r->reward[at] = t->reward;
    r->discount[at] = t->discount;
    memcpy(r->before + row, t->before, bytes);
    memcpy(r->after + row, t->after, bytes);
    set_priority(r, at, td, alpha);
    r->head = at + 1 < r->capacity ? at + 1 : 0;
    r->fill += r->fill < r->capacity;
    return at;
}

static int compare_words(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

void ho_replay_sort(ho_replay *r, double alpha)
{
    for (int32_t i = 0; i < r->fill; i++) {
        uint32_t bits; /* of a float >= 0: ordered as the float is */
        memcpy(&bits, &r->td[i], sizeof bits);
        r->work[i] = (uint64_t)~bits << 32 | (uint32_t)i;
    }
    qsort(r->work, (size_t)r->fill, sizeof *r->work, compare_words);
    for (int32_t i = 0; i < r->fill; i++) {
        r->order[i] = (int32_t)(uint32_t)r->work[i];
    }
    r->ranked = r->fill;
    if (alpha != r->mass_alpha) {
        r->massed = 0;
        r->mass_alpha = alpha;
    }
    for (; r->massed < r->ranked; r->massed++) {
        r->mass[r->massed + 1] = r->mass[r->massed] + ho_priority_rank_mass(r->massed, alpha);
    }
}

/* The rank whose running mass passes `mass`. */
static int32_t find_rank(const ho_replay *r, uint64_t mass)
{
    int32_t low = 0, high = r->ranked;
    while (high - low > 1) {
        const int32_t mid = low + (high - low) / 2;
        if (r->mass[mid] <= mass) {
            low = mid;
        } else {
            high = mid;
        }
    }
    return low;
}

void ho_replay_sample(const ho_replay *r, const uint32_t key[2], uint32_t update, uint32_t epoch,
                      int32_t batch, double beta, int32_t *slot, float *weight)
{
    const uint64_t total = r->kind == HO_REPLAY_PER        ? ho_sum_tree_total(&r->tree)
                           : r->kind == HO_REPLAY_PER_RANK ? r->mass[r->ranked]
                                                           : 0;
    const int64_t n = r->kind == HO_REPLAY_PER_RANK ? r->ranked : r->fill;
    float largest = 0.0f;
    for (int32_t i = 0; i < batch; i++) {
        const ho_rng4 random = ho_rng(key, update, (uint32_t)i, epoch, HO_RNG_REPLAY, 0);
        if (r->kind == HO_REPLAY_UNIFORM) {
            slot[i] = (int32_t)ho_rng_below(random.v[0], (uint32_t)r->fill);
            weight[i] = 1.0f;
            continue;
        }
        const uint64_t mass =
            ho_priority_draw(total, i, batch, (uint64_t)random.v[0] << 32 | random.v[1]);
        uint64_t share;
        if (r->kind == HO_REPLAY_PER) {
            slot[i] = (int32_t)ho_sum_tree_find(&r->tree, mass);
            share = ho_sum_tree_leaf(&r->tree, slot[i]);
        } else {
            const int32_t rank = find_rank(r, mass);
            slot[i] = r->order[rank];
            share = r->mass[rank + 1] - r->mass[rank];
        }
        weight[i] = (float)ho_priority_weight((double)share / (double)total, n, beta);
        largest = weight[i] > largest ? weight[i] : largest;
    }
    for (int32_t i = 0; r->kind != HO_REPLAY_UNIFORM && i < batch; i++) {
        weight[i] /= largest;
    }
}

void ho_replay_update(ho_replay *r, const int32_t *slot, const float *td, int32_t batch,
                      double alpha)
{
    for (int32_t i = 0; i < batch; i++) {
        set_priority(r, slot[i], (double)td[i], alpha);
    }
}
