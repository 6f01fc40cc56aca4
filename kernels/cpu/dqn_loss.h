/* SPDX-License-Identifier: Apache-2.0
 * From a network's raw outputs to action values, targets, losses and the gradient on the outputs,
 * for a block of rows and every form: dueling or not, branching, C51. Rows are independent. */
#ifndef HO_KERNELS_CPU_DQN_LOSS_H
#define HO_KERNELS_CPU_DQN_LOSS_H

#include "kernels/cpu/net.h"

#ifdef __cplusplus
extern "C" {
#endif

/* After ho_net_forward(..., HO_NET_BOTH): rows->q = action values; with C51 act[MAIN1] becomes the
 * probabilities of each output's atoms. */
void ho_dqn_values(const ho_net_layout *net, int32_t n, ho_real v_max, ho_net_rows *rows);

/* The targets of n transitions: y [n], or with C51 projected distributions [n, atoms].
 * selector chooses the next action of each branch (online: double DQN), evaluator values it; both
 * hold ho_dqn_values of s'. They may be the same. */
void ho_dqn_targets(const ho_net_layout *net, int32_t n, ho_real v_max, const ho_real *reward,
                    const ho_real *discount, const ho_net_rows *selector,
                    const ho_net_rows *evaluator, ho_real *target);

typedef struct ho_dqn_loss_spec {
    int32_t batch;       /* rows of the whole batch: the loss is their mean */
    ho_real huber_delta; /* 0 = half squared error */
    ho_real v_max;       /* C51 */
} ho_dqn_loss_spec;

/* What one row says: td is the mean |q - y| over branches, or the cross-entropy with C51; it is
 * the row's priority and is not weighted. q: value of the taken action, mean over branches. */
typedef struct ho_dqn_row {
    ho_real loss; /* weighted, not yet divided by the batch */
    ho_real td, q;
} ho_dqn_row;

/* online holds ho_dqn_values of s. choice: [n, HO_BRANCHES_MAX]; weight: [n] or NULL for ones.
 * Fills out [n] and, where rows have deltas, the gradient on the raw outputs. */
void ho_dqn_loss(const ho_net_layout *net, const ho_dqn_loss_spec *spec, int32_t n,
                 const int32_t *choice, const ho_real *target, const ho_real *weight,
                 ho_net_rows *online, ho_dqn_row *out);

/* The factor of the trunk's gradient: 1 / (D + 1) with branches, else 1. */
ho_real ho_dqn_trunk_scale(const ho_net_layout *net);

#ifdef __cplusplus
}
#endif
#endif
