/* SPDX-License-Identifier: Apache-2.0
 * The optimiser: Adam (Kingma and Ba 2015, algorithm 1) with decoupled weight decay (Loshchilov and
 * Hutter 2019, algorithm 2), global-norm clipping, learning-rate schedules, target updates. */
#ifndef HO_KERNELS_AGENTS_OPTIM_H
#define HO_KERNELS_AGENTS_OPTIM_H

#include <stdint.h>

#include "kernels/agent_config.h"
#include "kernels/agents/real.h"
#include "kernels/hd.h"

/* The learning rate of update `update` (from 0) of `total`: a linear warm-up, then the schedule
 * over what is left; cosine and linear end at 0. */
static inline HO_HD double ho_learning_rate(double base, int32_t schedule, int32_t warmup,
                                            int64_t update, int64_t total)
{
    if (update < warmup) {
        return base * (double)(update + 1) / (double)warmup;
    }
    if (schedule == HO_SCHEDULE_CONSTANT) {
        return base;
    }
    double x = total > warmup ? (double)(update - warmup) / (double)(total - warmup) : 1.0;
    x = x > 1.0 ? 1.0 : x;
    if (schedule == HO_SCHEDULE_COSINE) {
        return base * 0.5 * (1.0 + cos(3.14159265358979323846 * x));
    }
    return base * (1.0 - x);
}

/* Factor on the gradient so that its norm is at most max_norm (0 = off). */
static inline HO_HD double ho_clip_scale(double norm, double max_norm)
{
    return max_norm > 0.0 && norm > max_norm ? max_norm / norm : 1.0;
}

/* What one Adam step needs, the same for every parameter of a lane. */
typedef struct ho_adam {
    ho_real beta1, beta2;
    ho_real step;      /* learning rate / (1 - beta1^t) */
    ho_real inv_bias2; /* 1 / sqrt(1 - beta2^t) */
    ho_real eps;
    ho_real keep; /* 1 - learning rate * weight decay */
    ho_real clip; /* factor on the gradient */
} ho_adam;

/* t counts from 1. */
static inline HO_HD ho_adam ho_adam_of(const ho_agent_config *agent, double learning_rate,
                                       int64_t t, double clip)
{
    ho_adam a;
    a.beta1 = (ho_real)agent->adam_beta1;
    a.beta2 = (ho_real)agent->adam_beta2;
    a.step = (ho_real)(learning_rate / (1.0 - pow(agent->adam_beta1, (double)t)));
    a.inv_bias2 = (ho_real)(1.0 / sqrt(1.0 - pow(agent->adam_beta2, (double)t)));
    a.eps = (ho_real)agent->adam_eps;
    a.keep = (ho_real)(1.0 - learning_rate * agent->weight_decay);
    a.clip = (ho_real)clip;
    return a;
}

static inline HO_HD void ho_adam_step(const ho_adam *a, ho_real gradient, ho_real *parameter,
                                      ho_real *m, ho_real *v)
{
    const ho_real g = gradient * a->clip;
    *m = a->beta1 * *m + (1 - a->beta1) * g;
    *v = a->beta2 * *v + (1 - a->beta2) * g * g;
    *parameter = a->keep * *parameter - a->step * *m / (ho_real_sqrt(*v) * a->inv_bias2 + a->eps);
}

/* Share of the online weights that enters the target after update `update` (from 1): tau, or with
 * tau = 0 a whole copy every target_every updates. The count is of the lane's own updates. */
static inline HO_HD ho_real ho_target_share(double tau, int32_t target_every, int64_t update)
{
    if (tau > 0.0) {
        return (ho_real)tau;
    }
    return target_every > 0 && update % target_every == 0 ? (ho_real)1 : (ho_real)0;
}

static inline HO_HD ho_real ho_target_mix(ho_real target, ho_real online, ho_real share)
{
    return share >= (ho_real)1 ? online : target + share * (online - target);
}

#endif
