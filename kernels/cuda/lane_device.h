/* SPDX-License-Identifier: Apache-2.0
 * The scalars of one lane in device memory. Kernels read hyperparameters here and nowhere else, so
 * a captured graph freezes none of them. The host writes a lane's struct when the lane starts, is
 * restored or gets new numbers; between epochs only.
 *
 * Who writes what on the device: `epoch_open` the epoch's derived numbers; `replay_advance` the
 * ring's head and fill and `learning` (PPO: `ppo_open`, `ppo_gate`); `update_gate` and `ppo_gate`
 * the guard, the counters and sums of updates; `curiosity_train` its own counter and loss;
 * `epoch_close` the epoch, the counts and Kelly's share; nobody else anything. */
#ifndef HO_CUDA_LANE_DEVICE_H
#define HO_CUDA_LANE_DEVICE_H

#include <stdint.h>

#include "kernels/agent_config.h"
#include "kernels/agents/branches.h"
#include "kernels/env/kelly.h"
#include "kernels/env/lane.h"
#include "kernels/env/state.h"
#include "kernels/shapes.h"

/* Sums over the updates of one epoch, in update order. */
typedef struct ho_update_sums {
    int64_t updates;                                  /* applied */
    double loss, loss_last, grad_norm, learning_rate; /* the last three: of the last update */
    double td_abs, q, q_square, q_min, q_max;         /* over rows; of the taken actions */
    int64_t rows;
} ho_update_sums;

typedef struct ho_lane_device {
    ho_agent_config agent;
    ho_env_lane env;         /* its sigma is a device pointer */
    int32_t active;          /* the slot holds a lane that runs */
    int32_t learning;        /* its replay holds learn_start transitions: this epoch updates */
    int32_t guard;           /* ho_guard_reason; not 0: masked */
    int32_t small_gradients; /* updates in a row with a norm below grad_floor */
    int64_t guard_update;    /* updates done when it tripped */
    int64_t updates;         /* gradient steps done */
    int64_t total_updates;   /* of the trial, for the schedules */
    int32_t epoch;           /* epochs done */
    int32_t replay_head;     /* slot of the next transition */
    int32_t replay_fill;     /* whole transitions in the ring */
    int32_t stored_before;   /* the head before this epoch's transitions */
    int32_t stored;          /* transitions of this epoch in the ring, the newest before the head */
    double epsilon;          /* of this epoch */
    ho_moments kelly;        /* closed trades of all epochs so far */
    int64_t count[HO_ACTIONS]; /* uses of each output, for the bonus */
    float bonus[HO_ACTIONS];   /* of this epoch */
    int32_t has_bonus;
    int64_t curiosity_updates; /* of the forward model */
    double curiosity_loss;     /* of its last training */
    ho_update_sums sums;
} ho_lane_device;

/* What one Adam step of a lane needs; written by update_gate before each. */
typedef struct ho_update_gate {
    float beta1, beta2, step, inv_bias2, eps, keep, clip; /* as ho_adam */
    float target_share;                                   /* of the online weights */
    int32_t apply;                                        /* 0: leave the lane as it is */
} ho_update_gate;

/* A transition in the replay ring: the market half of both states is read from the feature tensor.
 * 96 bytes; both states would be 480. */
typedef struct ho_replay_record {
    int32_t bar, next_bar; /* rows of the feature tensor */
    int32_t action;        /* composed */
    float reward;          /* n-step */
    float discount;        /* gamma^m * (1 - terminal) */
    int32_t later;         /* so many transitions later the next state is the state; 0: in no
                              transition of this epoch */
    float portfolio[HO_PORTFOLIO_FEATURES];
    float next_portfolio[HO_PORTFOLIO_FEATURES];
} ho_replay_record;

/* One step of one episode slot, as the experience kernel leaves it. */
typedef struct ho_trace_step {
    int32_t bar; /* of the state */
    float reward;
    double ret;
    uint8_t action; /* composed */
    uint8_t pad;
    uint8_t valid;                      /* 0: the slot was idle */
    uint8_t end, terminal;              /* ho_episode_end */
    uint8_t exit_count, exit_reason[2]; /* an order and a barrier in one bar at most */
    float before[HO_PORTFOLIO_FEATURES];
    float after[HO_PORTFOLIO_FEATURES]; /* before any reset */
} ho_trace_step;

/* What an episode slot keeps between steps and epochs. */
typedef struct ho_slot_device {
    ho_env env;
    int32_t hold_left[HO_BRANCHES_MAX]; /* bars a random choice is still held, by branch */
    int32_t hold_choice[HO_BRANCHES_MAX];
} ho_slot_device;

/* The part of a sampled transition that the td error needs. */
typedef struct ho_sample {
    int32_t action;
    float reward, discount;
} ho_sample;

#endif
