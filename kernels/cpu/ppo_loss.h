/* SPDX-License-Identifier: Apache-2.0
 * The policy and value heads of PPO over a block of rows: log-probabilities, choices, and the loss
 * with its gradient on the raw outputs. Factored heads: log-probabilities and entropies are summed
 * over the branches before the exponential. */
#ifndef HO_KERNELS_CPU_PPO_LOSS_H
#define HO_KERNELS_CPU_PPO_LOSS_H

#include "kernels/cpu/net.h"

#ifdef __cplusplus
extern "C" {
#endif

/* After ho_net_forward: act[MAIN1] becomes log-probabilities, branch by branch. */
void ho_ppo_log_probabilities(const ho_net_layout *net, int32_t n, ho_net_rows *rows);

/* log p of one row's choice; log_p: the row of act[MAIN1]. */
ho_real ho_ppo_choice_log_p(const ho_net_layout *net, const ho_real *log_p,
                            const int32_t choice[HO_BRANCHES_MAX]);

/* The choice whose cumulative probability passes u in [0, 1), per branch. */
void ho_ppo_sample(const ho_net_layout *net, const ho_real *log_p, const double u[HO_BRANCHES_MAX],
                   int32_t choice[HO_BRANCHES_MAX]);

typedef struct ho_ppo_loss_spec {
    int32_t batch; /* rows of the minibatch: losses are their means */
    ho_real clip, value_clip /* 0 = off */, vf_coef, ent_coef;
} ho_ppo_loss_spec;

/* [n] each */
typedef struct ho_ppo_batch {
    const int32_t *choice; /* [n, HO_BRANCHES_MAX] */
    const ho_real *log_p_old, *advantage, *value_old, *value_target;
} ho_ppo_batch;

/* Sums over rows, in row order. */
typedef struct ho_ppo_sums {
    double policy_loss, value_loss, entropy, kl;
    int64_t clipped;
} ho_ppo_sums;

/* rows hold log-probabilities and act[VALUE1]; fills the deltas, adds to sums. The minibatch's loss
 * is (policy_loss + vf_coef * value_loss - ent_coef * entropy) / batch. */
void ho_ppo_loss(const ho_net_layout *net, const ho_ppo_loss_spec *spec, int32_t n,
                 const ho_ppo_batch *batch, ho_net_rows *rows, ho_ppo_sums *sums);

#ifdef __cplusplus
}
#endif
#endif
