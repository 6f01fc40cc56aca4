/* SPDX-License-Identifier: Apache-2.0
 * How the CPU backtest asks a network: the acting side of a CPU cohort, implemented by the agents
 * (kernels/cpu), used by backtest.c. Evaluation only: no noise, no exploration. */
#ifndef HO_KERNELS_CPU_POLICY_H
#define HO_KERNELS_CPU_POLICY_H

#include <stdint.h>

#include "kernels/backend_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Acts for n states of one slot.
 *   state  [n, S]: market features [F], then the 9 (or 3) portfolio columns
 *   step   decision index since the window's begin (counter of sampled policies)
 *   score  [n, 45], or NULL: one score a composed action in the order of preference: Q-values
 *          (branching: the sum of the branches' Q), PPO: log-probabilities
 *   action [n]: composed actions in [0, 45); lowest index on ties; with the exposure5 set the
 *          composed index of (exposure, market, aggressive)
 * Row i's outputs depend on row i alone, bit for bit, whatever n is.
 * Called from several threads at once with the same cohort; scratch is the thread's own. */
typedef ho_status (*ho_act_fn)(const ho_cohort *cohort, int slot, const float *state, int n,
                               uint32_t step, float *score, uint8_t *action, void *scratch);

/* First member of the CPU cohort. */
typedef struct ho_cpu_acting {
    ho_cohort base;
    ho_act_fn act;
    size_t (*scratch_size)(const ho_cohort *cohort, int n); /* bytes that act needs for n states */
    /* NULL for a free slot */
    const ho_lane_config *(*lane_config)(const ho_cohort *cohort, int slot);
} ho_cpu_acting;

#ifdef __cplusplus
}
#endif
#endif
