/* SPDX-License-Identifier: Apache-2.0
 * How a network's outputs map to the environment's 45 actions (spec/environment.md "Action").
 * One branch of 45 (or 5), or three of 5 + 3 + 3: exposure, order, urgency. The environment
 * always sees the composed index e * 9 + o * 3 + u.
 * Everything that walks heads uses this table; the split is nowhere written a second time. */
#ifndef HO_KERNELS_AGENTS_BRANCHES_H
#define HO_KERNELS_AGENTS_BRANCHES_H

#include "kernels/agent_config.h"
#include "kernels/agents/real.h"
#include "kernels/env/config.h"
#include "kernels/hd.h"
#include "kernels/shapes.h"

enum {
    HO_BRANCHES_MAX = 3,
    HO_MARKET_AGGRESSIVE = 2, /* order 0, urgency 2: what "exposure5" means by an exposure */
};

typedef struct ho_branches {
    int32_t count;                  /* D */
    int32_t size[HO_BRANCHES_MAX];  /* choices of each branch */
    int32_t first[HO_BRANCHES_MAX]; /* its first output */
    int32_t outputs;                /* sum of size */
} ho_branches;

static inline HO_HD ho_branches ho_branches_of(const ho_cohort_key *key)
{
    ho_branches b = {1, {HO_ACTIONS, 0, 0}, {0, 0, 0}, HO_ACTIONS};
    const int split = key->algorithm == HO_PPO ? key->ppo_factored : key->branching;
    if (key->action_set == HO_ACTIONS_EXPOSURE5) {
        b.size[0] = HO_EXPOSURES;
        b.outputs = HO_EXPOSURES;
    } else if (split) {
        b.count = 3;
        b.size[0] = HO_EXPOSURES;
        b.size[1] = HO_ORDERS;
        b.size[2] = HO_URGENCIES;
        b.first[1] = HO_EXPOSURES;
        b.first[2] = HO_EXPOSURES + HO_ORDERS;
        b.outputs = HO_EXPOSURES + HO_ORDERS + HO_URGENCIES;
    }
    return b;
}

/* The environment's action of one choice per branch. */
static inline HO_HD int32_t ho_branches_action(const ho_branches *b,
                                               const int32_t choice[HO_BRANCHES_MAX])
{
    if (b->count == 3) {
        return choice[0] * 9 + choice[1] * 3 + choice[2];
    }
    return b->outputs == HO_EXPOSURES ? choice[0] * 9 + HO_MARKET_AGGRESSIVE : choice[0];
}

/* The inverse of ho_branches_action; unused branches are 0. */
static inline HO_HD void ho_branches_choice(const ho_branches *b, int32_t action,
                                            int32_t choice[HO_BRANCHES_MAX])
{
    choice[0] = b->outputs == HO_ACTIONS ? action : action / 9;
    choice[1] = b->count == 3 ? action / 3 % 3 : 0;
    choice[2] = b->count == 3 ? action % 3 : 0;
}

/* Index of the largest of n values; ties go to the lowest index. */
static inline HO_HD int32_t ho_argmax(const ho_real *value, int32_t n)
{
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++) {
        if (value[i] > value[best]) {
            best = i;
        }
    }
    return best;
}

#endif
