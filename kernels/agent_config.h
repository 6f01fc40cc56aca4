/* SPDX-License-Identifier: Apache-2.0
 * The two structs an agent is made of (spec/agents.md).
 * ho_cohort_key: shape; lanes of one cohort share it, so launches can be shared.
 * ho_agent_config: numbers that differ from lane to lane and never decide a shape. */
#ifndef HO_KERNELS_AGENT_CONFIG_H
#define HO_KERNELS_AGENT_CONFIG_H

#include <stdint.h>

typedef enum ho_algorithm { HO_DQN, HO_PPO } ho_algorithm;
typedef enum ho_replay_kind { HO_REPLAY_UNIFORM, HO_REPLAY_PER, HO_REPLAY_PER_RANK } ho_replay_kind;
typedef enum ho_precision { HO_PRECISION_F32, HO_PRECISION_BF16, HO_PRECISION_FP8 } ho_precision;
typedef enum ho_schedule {
    HO_SCHEDULE_CONSTANT,
    HO_SCHEDULE_COSINE,
    HO_SCHEDULE_LINEAR
} ho_schedule;
typedef enum ho_init { HO_INIT_ORTHOGONAL, HO_INIT_HE } ho_init;

typedef struct ho_cohort_key {
    int32_t algorithm; /* ho_algorithm */
    int32_t hidden1, hidden2, head;
    int32_t state_form;      /* ho_state_form */
    int32_t action_set;      /* ho_action_set */
    int32_t market_features; /* F: columns of the market's feature tensor */
    int32_t dueling;
    int32_t branching; /* DQN: heads 5 + 3 + 3 */
    int32_t noisy;
    int32_t atoms;           /* C51; 0 = off */
    int32_t replay;          /* ho_replay_kind */
    int32_t replay_capacity; /* transitions a lane */
    int32_t episodes;        /* N */
    int32_t episode_length;  /* L; for PPO the rollout is `rollout` steps of each episode */
    int32_t rollout;         /* PPO */
    int32_t batch;           /* DQN batch, PPO minibatch */
    int32_t updates;         /* DQN gradient steps an epoch; PPO: derived, 0 */
    int32_t ppo_epochs;      /* PPO passes over a rollout */
    int32_t ppo_factored;    /* PPO heads 5 + 3 + 3 instead of 45 */
    int32_t ppo_separate;    /* PPO value network of its own */
    int32_t curiosity;       /* forward model on */
    int32_t precision;       /* ho_precision: inputs of the networks' products; fp8: of acting's in
                                an epoch (kernels/agents/e4m3.h), of all others bf16 */
} ho_cohort_key;

typedef struct ho_agent_config {
    /* optimiser */
    double learning_rate;
    double adam_beta1, adam_beta2, adam_eps;
    double weight_decay;    /* decoupled */
    double max_grad_norm;   /* 0 = off */
    int32_t schedule;       /* ho_schedule, over the trial's updates */
    int32_t warmup_updates; /* linear warm-up before the schedule */
    int32_t init;           /* ho_init */

    /* value learning */
    double gamma;
    int32_t double_q;
    int32_t n_step;
    double huber_delta;   /* 0 = mean squared error */
    double tau;           /* soft target share per update; 0 = hard copies */
    int32_t target_every; /* updates between hard copies, with tau = 0 */
    int32_t learn_start;  /* transitions before the first update */
    double v_max;         /* C51 support is [-v_max, v_max] */
    double noisy_sigma0;

    /* exploration */
    double eps_start, eps_end, eps_share; /* share of the trial's epochs */
    double explore_hold;                  /* mean bars a random action is held */
    double count_bonus;

    /* prioritised replay */
    double per_alpha, per_beta_start, per_beta_end;

    /* PPO */
    double gae_lambda, clip, value_clip /* 0 = off */, vf_coef, ent_coef, target_kl /* 0 = off */;
    int32_t ppo_sample_eval; /* evaluation samples instead of taking the mode */

    /* curiosity */
    int32_t curiosity_every; /* epochs */
    double curiosity_lr;

    /* guard */
    double loss_ceiling, q_ceiling, grad_floor;
    int32_t grad_patience;

    int32_t epochs; /* of the whole trial, for the schedules */
} ho_agent_config;

#endif
