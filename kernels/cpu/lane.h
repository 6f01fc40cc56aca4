/* SPDX-License-Identifier: Apache-2.0
 * One lane of the CPU backend: everything an agent keeps from epoch to epoch, in one block of
 * memory; and the scratch that whoever advances a lane works in. Internal to kernels/cpu.
 *
 * A lane's bits depend on its config alone: work is cut into blocks of a fixed size that depends on
 * the cohort key only, blocks draw from counters, and their results are merged in block order. */
#ifndef HO_KERNELS_CPU_LANE_H
#define HO_KERNELS_CPU_LANE_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/agents/agent_check.h"
#include "kernels/backend.h"
#include "kernels/cpu/curiosity.h"
#include "kernels/cpu/dqn_loss.h"
#include "kernels/cpu/net.h"
#include "kernels/cpu/ppo_loss.h"
#include "kernels/cpu/replay.h"
#include "kernels/env/step.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HO_SLOT_BLOCK = 32,      /* episode slots advanced together */
    HO_LEARN_ROWS_MAX = 512, /* rows of a learn block */
    HO_NEXT_ROWS = 64,       /* of them, next states evaluated together: they stay in the cache */
    HO_CHUNK = 8192,         /* parameters reduced and stepped together */
};

/* What follows from the cohort key alone. */
typedef struct ho_lane_shape {
    ho_cohort_key key;
    ho_net_layout net;
    int32_t keeps_q;      /* collection keeps its values for the first priorities */
    int32_t portfolio;    /* portfolio columns of a state */
    int32_t steps;        /* environment steps of a slot in an epoch */
    int32_t slot_blocks;  /* ceil(N / HO_SLOT_BLOCK) */
    int32_t learn_rows;   /* rows of a learn block */
    int32_t learn_blocks; /* blocks of a batch */
    int64_t chunks;       /* ceil(net.size / HO_CHUNK) */
} ho_lane_shape;

ho_lane_shape ho_lane_shape_of(const ho_cohort_key *key);

/* A held random action of one episode slot, per branch. */
typedef struct ho_hold {
    int32_t left[HO_BRANCHES_MAX]; /* bars it still holds */
    int32_t choice[HO_BRANCHES_MAX];
} ho_hold;

/* The plain numbers of a lane that a resume needs. */
typedef struct ho_lane_counters {
    int32_t state;         /* ho_lane_state */
    int32_t guard;         /* ho_guard_reason */
    int64_t guard_update;  /* update at which it tripped */
    int32_t epoch;         /* epochs done */
    int32_t low_gradients; /* updates in a row below grad_floor */
    int64_t updates;       /* gradient steps done */
    int64_t curiosity_updates;
    double curiosity_loss;     /* of the last training */
    ho_moments kelly;          /* closed trades of all epochs so far */
    int64_t count[HO_ACTIONS]; /* uses of each output (branch, choice), for the bonus */
} ho_lane_counters;

typedef struct ho_lane {
    ho_lane_config config;
    ho_env_lane env;
    ho_lane_counters n;
    float *online, *target, *m, *v; /* [net.size] */
    ho_net_pack acting;             /* of the mean weights, as of the last epoch's end */
    ho_net_pack acting_e4m3;        /* the same for the steps of an epoch, with fp8 */
    ho_curiosity curiosity;
    ho_env *slot;        /* [N] */
    uint32_t *ring;      /* [N, HO_RING_WORDS_MAX] */
    ho_hold *hold;       /* [N] */
    ho_ledger *ledger;   /* [N], used with Kelly sizing */
    ho_moments *moments; /* [N] */
    ho_replay replay;
    void *block; /* all of the above */
    size_t size;
} ho_lane;

/* Bytes of a lane's block. */
size_t ho_lane_size(const ho_lane_shape *shape);

/* HO_ENOMEM. sigma: the market's table for config->env.sigma_window. */
ho_status ho_lane_create(const ho_lane_shape *shape, const ho_lane_config *config,
                         const double *sigma, ho_lane **out);
void ho_lane_destroy(ho_lane **lane);

/* After the online weights changed outside of an epoch. */
void ho_lane_pack_acting(const ho_lane_shape *shape, ho_lane *lane);

/* What a slot's steps add up to in an epoch; merged in slot order. */
typedef struct ho_slot_stat {
    int64_t steps;
    double reward, reward_square, reward_min, reward_max;
    double ret, ret_square;
    int64_t exposure[HO_EXPOSURES], order[HO_ORDERS], urgency[HO_URGENCIES];
    int64_t ended[HO_END_LENGTH + 1]; /* by ho_episode_end */
    int64_t exits[HO_EXIT_REASONS];
    int64_t count[HO_ACTIONS]; /* outputs used */
} ho_slot_stat;

enum { HO_STEP_VALID = 1, HO_STEP_TERMINAL = 2, HO_STEP_TRUNCATED = 4 };

/* An epoch's experience; index step * N + slot. */
typedef struct ho_rollout {
    int32_t *bar;    /* [L, N] of the state */
    float *before;   /* [L, N, portfolio] */
    float *after;    /* [L, N, portfolio], before any reset */
    float *reward;   /* [L, N] */
    uint8_t *action; /* [L, N] composed */
    uint8_t *flags;  /* [L, N] HO_STEP_* */
    float *log_p;    /* [L, N] PPO */
    float *value;    /* [L, N] PPO */
    float *q; /* [L, N, HO_BRANCHES_MAX] values of the taken choices; DQN that needs priorities
                 and whose acting weights are the mean ones (ho_lane_shape.keeps_q) */
    uint8_t *greedy; /* [L, N] composed greedy action, likewise */
} ho_rollout;

/* Of one block of episode slots while collecting. */
typedef struct ho_collect_block {
    float *x; /* [HO_SLOT_BLOCK, x_row] */
    ho_net_rows rows;
    ho_net_pack noisy; /* noisy networks: this step's weights */
    float *noise;
    ho_curiosity_rows curiosity;
} ho_collect_block;

/* Of one block of a batch while learning. */
typedef struct ho_learn_block {
    float *x, *x_next;           /* [learn_rows, x_row] */
    ho_net_rows online;          /* with deltas */
    ho_net_rows selector, other; /* [HO_NEXT_ROWS] of the next states, forward only; DQN */
    float *target;               /* [learn_rows, atoms] */
    float *reward, *discount;    /* [learn_rows] */
    int32_t *next;   /* [learn_rows] rollout position of the next state; -1: the episode ended */
    int32_t *choice; /* [learn_rows, HO_BRANCHES_MAX] */
    ho_dqn_row *row; /* [learn_rows] */
    float *log_p_old, *advantage, *value_old, *value_target; /* [learn_rows] PPO */
    ho_ppo_sums sums;
    double q_min, q_max;
    float *gradient; /* [net.size] */
} ho_learn_block;

typedef struct ho_scratch {
    ho_rollout rollout;
    ho_slot_stat *stat;        /* [N] */
    ho_collect_block *collect; /* [slot_blocks] */
    ho_learn_block *learn;     /* [learn_blocks] */
    ho_net_pack online;        /* with noise where the network has it */
    ho_net_pack target;
    float *noise_online, *noise_target; /* [noise_size] */
    int32_t *index;    /* [batch] sampled slots of the ring; PPO: [N * rollout] shuffled rows */
    float *weight;     /* [batch] */
    float *td;         /* [batch] */
    double *norm;      /* [chunks] */
    int32_t *position; /* [L, N] rows of the rollout that hold a step; PPO, DQN with priorities */
    float *first_td;   /* [L, N] DQN with priorities: see first_priorities */
    float *advantage, *value_target; /* [L, N] PPO */
    float *value_next;               /* [L, N] PPO */
    ho_curiosity_rows *curiosity;    /* [HO_CURIOSITY_BLOCKS], with deltas; NULL when off */
    void *block;
} ho_scratch;

size_t ho_scratch_size(const ho_lane_shape *shape);
ho_status ho_scratch_create(const ho_lane_shape *shape, ho_scratch **out);
void ho_scratch_destroy(ho_scratch **scratch);

/* Everything one lane's epoch works with; threads >= 1 share its blocks out. */
typedef struct ho_work {
    const ho_lane_shape *shape;
    const ho_market_view *market;
    ho_lane *lane;
    ho_scratch *scratch;
    int threads;
    ho_epoch_stat *stat; /* filled */
} ho_work;

/* collect.c: runs the epoch's steps of every slot; fills scratch->rollout and the stat's part. */
void ho_lane_collect(ho_work *w);

/* Puts a state into a row of a block: market features, then portfolio columns, then zeros. */
void ho_state_row(const ho_work *w, int32_t bar, const float *portfolio, float *row,
                  int32_t row_width);

/* dqn.c: the rollout into the ring, then the updates. */
void ho_lane_learn_dqn(ho_work *w);

/* ppo.c: advantages, then minibatches. */
void ho_lane_learn_ppo(ho_work *w);

/* What the guard judges of one update besides the gradient. */
typedef struct ho_judged {
    double loss;
    double q_largest; /* |Q| */
} ho_judged;

/* optimise.c: sums the learn blocks' gradients in block order, lets the guard judge, then takes
 * one Adam step and moves the target (NULL: none). Returns 1, or 0 when the lane was stopped.
 * noise: of this update's online network, or NULL. */
int ho_lane_optimise(ho_work *w, int32_t blocks, const ho_judged *judged, const float *noise,
                     float *target);

/* curiosity.c: trains the forward model on the rollout. */
void ho_lane_train_curiosity(ho_work *w);

/* One epoch of an active lane. */
void ho_lane_epoch(ho_work *w);

#ifdef __cplusplus
}
#endif
#endif
