/* SPDX-License-Identifier: Apache-2.0
 * The reward of a step, in units of one bar's deviation at full size; spec/environment.md "Reward".
 * Float64 inside, so that both backends give the same bits (the log base excepted: its logarithm
 * is the library's); the caller rounds the result to float32. */
#ifndef HO_KERNELS_ENV_REWARD_H
#define HO_KERNELS_ENV_REWARD_H

#include <math.h>
#include <stdint.h>

#include "kernels/env/config.h"
#include "kernels/env/state.h"
#include "kernels/hd.h"

static inline HO_HD double ho_clip(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* A / sqrt(B - A^2): the exponential Sharpe ratio that the differential one is the change of;
 * 0 while the variance is not positive. */
static inline HO_HD double ho_dsr_ratio(const ho_env *e)
{
    double variance = e->dsr_b - e->dsr_a * e->dsr_a;
    return variance > 0.0 ? e->dsr_a / sqrt(variance) : 0.0;
}

/* Differential Sharpe ratio of the next return, then the moments move
 * (Moody and Saffell 2001, eq. 13 and 14). The first 1 / eta steps give ret / sigma_ref. */
static inline HO_HD double ho_dsr_step(const ho_env_config *c, ho_env *e, double ret)
{
    double delta_a = ret - e->dsr_a, delta_b = ret * ret - e->dsr_b;
    double variance = e->dsr_b - e->dsr_a * e->dsr_a;
    double value = ret / c->sigma_ref;
    if ((double)e->dsr_steps * c->dsr_eta >= 1.0) {
        value = variance > 0.0
                    ? (e->dsr_b * delta_a - 0.5 * e->dsr_a * delta_b) / (variance * sqrt(variance))
                    : 0.0;
    } else {
        e->dsr_steps++;
    }
    e->dsr_a += c->dsr_eta * delta_a;
    e->dsr_b += c->dsr_eta * delta_b;
    return value;
}

/* What the reward is made of besides the settings. */
typedef struct ho_reward_in {
    double ret;       /* return on equity */
    double dsr;       /* with base dsr: ho_dsr_step's value */
    double load;      /* |position'| / max_position */
    double entropy;   /* bits */
    double curiosity; /* mean squared error of the forward model; 0 when off */
    int32_t label;
    int32_t judged; /* categories so far >= diversity_warmup */
} ho_reward_in;

/* "original" preset, to the letter. */
static inline HO_HD double ho_reward_original(const ho_env_config *c, const ho_reward_in *in)
{
    double r = in->ret;
    r *= 1.0 + 0.5 * (double)in->label;
    if (in->load > 0.8) {
        r -= (in->load - 0.8) * 0.5;
    }
    if (in->entropy < 1.0) {
        r -= 0.1;
    }
    return r + (in->curiosity < c->curiosity_max ? in->curiosity : c->curiosity_max);
}

static inline HO_HD double ho_reward_before_terms(const ho_env_config *c, const ho_reward_in *in)
{
    if (c->reward_base == HO_REWARD_DSR) {
        return in->dsr;
    }
    if (c->reward_base == HO_REWARD_LOG) {
        /* a total loss has no logarithm: the clip decides */
        return in->ret > -1.0 ? log(1.0 + in->ret) / c->sigma_ref : -1e300;
    }
    return ho_quotient(in->ret, c->sigma_ref);
}

static inline HO_HD double ho_reward(const ho_env_config *c, const ho_reward_in *in)
{
    if (c->reward_preset == HO_PRESET_ORIGINAL) {
        return ho_reward_original(c, in);
    }
    double z = ho_reward_before_terms(c, in);
    z += c->barrier_scale * (double)in->label * fabs(z);
    if (in->load > c->risk_threshold) {
        z -= (in->load - c->risk_threshold) * c->risk_weight;
    }
    if (in->judged && in->entropy < c->diversity_min_entropy) {
        z -= c->diversity_penalty;
    }
    double bonus = in->curiosity * c->curiosity_weight;
    z += bonus < c->curiosity_max ? bonus : c->curiosity_max;
    return ho_clip(z * c->reward_scale, -c->reward_clip, c->reward_clip);
}

#endif
