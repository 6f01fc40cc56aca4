/* SPDX-License-Identifier: Apache-2.0
 * Proximal policy optimisation (Schulman 2017) and generalised advantage estimation (Schulman
 * 2016). Truncation keeps its bootstrap, V of the state before the reset, and cuts the recursion;
 * termination has no bootstrap. */
#ifndef HO_KERNELS_AGENTS_PPO_H
#define HO_KERNELS_AGENTS_PPO_H

#include "kernels/agents/real.h"
#include "kernels/hd.h"

/* A_t from A_{t+1}; next_value is V of the state before any reset. */
static inline HO_HD ho_real ho_gae_step(ho_real reward, ho_real value, ho_real next_value,
                                        int terminal, int end, ho_real next_advantage,
                                        ho_real gamma, ho_real lambda)
{
    const ho_real delta = reward + (terminal ? 0 : gamma * next_value) - value;
    return delta + (end ? 0 : gamma * lambda * next_advantage);
}

/* One sample's clipped surrogate max(-A ratio, -A clip(ratio)) and its slope on log p. */
typedef struct ho_ppo_term {
    ho_real loss, slope;
    ho_real ratio;
    int clipped; /* |ratio - 1| > clip */
} ho_ppo_term;

static inline HO_HD ho_ppo_term ho_ppo_surrogate(ho_real logp, ho_real logp_old, ho_real advantage,
                                                 ho_real clip)
{
    ho_ppo_term t;
    t.ratio = ho_real_exp(logp - logp_old);
    const ho_real low = 1 - clip, high = 1 + clip;
    const ho_real cut = t.ratio < low ? low : (t.ratio > high ? high : t.ratio);
    const ho_real plain = -advantage * t.ratio, bounded = -advantage * cut;
    t.loss = plain >= bounded ? plain : bounded;
    t.slope = plain >= bounded ? plain : 0; /* d ratio / d log p = ratio */
    t.clipped = t.ratio < low || t.ratio > high;
    return t;
}

/* 0.5 (v - R)^2, or with clip > 0 the larger of it and the same for the clipped v; slope on v. */
static inline HO_HD ho_real ho_ppo_value_loss(ho_real value, ho_real value_old, ho_real target,
                                              ho_real clip, ho_real *slope)
{
    const ho_real e = value - target;
    const ho_real plain = (ho_real)0.5 * e * e;
    *slope = e;
    if (clip <= 0) {
        return plain;
    }
    ho_real move = value - value_old;
    const int inside = move >= -clip && move <= clip;
    move = move < -clip ? -clip : (move > clip ? clip : move);
    const ho_real c = value_old + move - target;
    const ho_real bounded = (ho_real)0.5 * c * c;
    if (plain >= bounded) {
        return plain;
    }
    *slope = inside ? c : 0;
    return bounded;
}

/* The low-variance estimator of KL(old || new) from one sample (Schulman 2020, "k3"). */
static inline HO_HD ho_real ho_ppo_kl(ho_real logp, ho_real logp_old)
{
    const ho_real d = logp - logp_old;
    return ho_real_exp(d) - 1 - d;
}

#endif
