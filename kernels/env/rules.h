/* SPDX-License-Identifier: Apache-2.0
 * Rule policies of a backtest (ho_policy without a network): what they order next. The same code on
 * both backends; spec/environment.md "Backtest". */
#ifndef HO_KERNELS_ENV_RULES_H
#define HO_KERNELS_ENV_RULES_H

#include <stdint.h>

#include "kernels/backend.h"
#include "kernels/env/step.h"
#include "kernels/hd.h"

/* A request's rule. Pointers: host or device, whichever it runs on. */
typedef struct ho_rule {
    int32_t policy; /* ho_policy */
    int32_t momentum_bars;
    double random_turnover, random_exposure;
    const uint8_t *actions; /* HO_POLICY_ACTIONS */
    const float *targets;   /* HO_POLICY_TARGETS */
    double held_exposure;   /* HO_POLICY_RANDOM: the exposure in force */
} ho_rule;

/* Buy-and-hold and always-short: the same costs, no barriers, constant size. */
static inline HO_HD void ho_rule_settings(int32_t policy, ho_env_config *c)
{
    if (policy == HO_POLICY_BUY_HOLD || policy == HO_POLICY_SHORT) {
        c->profit_target = 0.0;
        c->stop_loss = 0.0;
        c->max_holding = 0;
        c->sizing = HO_SIZING_FIXED;
    }
}

/* Sign of the price change over the last bars to t, rolls taken out; 0 before there are enough. */
static inline HO_HD int32_t ho_rule_momentum(const ho_rule *rule, const ho_market_view *m,
                                             int64_t t)
{
    int64_t from = t - rule->momentum_bars;
    if (from < 0) {
        return 0;
    }
    double change =
        m->bars[t * HO_BAR_COLUMNS + HO_CLOSE] - m->bars[from * HO_BAR_COLUMNS + HO_CLOSE];
    for (int64_t i = from + 1; m->roll_jump && i <= t; i++) {
        change -= m->roll_jump[i];
    }
    return ho_sign(change);
}

/* A chain over the exposures that may be held: with probability rho a bar draws anew from the
 * stationary distribution (flat 1 - x, the others x / m each), rho so that the exposure changes
 * with the wanted probability: rho * (1 - sum of squares) = turnover. */
static inline HO_HD double ho_rule_random(ho_rule *rule, const ho_env_lane *lane, int64_t step)
{
    int choices = lane->config.allow_short ? 4 : 2;
    double x = rule->random_exposure;
    double differs = 1.0 - (1.0 - x) * (1.0 - x) - x * x / choices;
    double rho = differs > 0.0 ? rule->random_turnover / differs : 0.0;
    ho_rng4 u = ho_rng(lane->key, (uint32_t)step, 0, 0, HO_RNG_POLICY, 0);
    if (step == 0 || ho_rng_double(u.v[0], u.v[1]) < rho) {
        ho_rng4 v = ho_rng(lane->key, (uint32_t)step, 0, 0, HO_RNG_POLICY, 1);
        int held = ho_rng_double(v.v[0], v.v[1]) < x;
        int which = (int)ho_rng_below(v.v[2], (uint32_t)choices);
        double exposure = which % 2 == 0 ? 0.5 : 1.0; /* 0.5, 1, -0.5, -1 */
        rule->held_exposure = !held ? 0.0 : which < 2 ? exposure : -exposure;
    }
    return rule->held_exposure;
}

/* The order of decision `step` of the pass. *action: the composed index, or -1 where there is
 * none. */
static inline HO_HD ho_order ho_rule_order(ho_rule *rule, const ho_env_lane *lane,
                                           const ho_market_view *m, const ho_env *e, int64_t step,
                                           int32_t *action)
{
    double exposure = 0.0;
    int32_t hold = 0;
    switch (rule->policy) {
    case HO_POLICY_ACTIONS:
        *action = rule->actions[step];
        return ho_order_from_action(*action);
    case HO_POLICY_TARGETS:
        *action = -1;
        return ho_order_target(rule->targets[step]);
    case HO_POLICY_BUY_HOLD:
    case HO_POLICY_SHORT:
        exposure = rule->policy == HO_POLICY_SHORT ? -1.0 : 1.0;
        hold = e->account.lots != 0; /* again only after something closed the position */
        break;
    case HO_POLICY_MOMENTUM:
        exposure = ho_rule_momentum(rule, m, e->t);
        break;
    case HO_POLICY_RANDOM:
        exposure = ho_rule_random(rule, lane, step);
        break;
    default: /* flat */
        break;
    }
    ho_order order = ho_order_target(exposure);
    order.hold = hold;
    *action = ho_action_from_exposure((int32_t)(exposure * 2.0) + 2);
    return order;
}

#endif
