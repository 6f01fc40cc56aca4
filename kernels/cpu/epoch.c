/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/lane.h"

void ho_lane_epoch(ho_work *w)
{
    ho_lane *lane = w->lane;
    ho_lane_collect(w);
    if (w->shape->key.algorithm == HO_PPO) {
        ho_lane_learn_ppo(w);
    } else {
        ho_lane_learn_dqn(w);
    }
    if (w->shape->key.curiosity && (lane->n.epoch + 1) % lane->config.agent.curiosity_every == 0) {
        ho_lane_train_curiosity(w);
    }
    ho_lane_pack_acting(w->shape, lane);
    lane->n.epoch++;
    w->stat->state = lane->n.state;
    w->stat->guard = lane->n.guard;
    w->stat->guard_update = lane->n.guard_update;
    w->stat->epoch = lane->n.epoch;
    w->stat->kelly_share = lane->env.config.kelly_share;
    w->stat->curiosity_loss = lane->n.curiosity_loss;
}
