/* SPDX-License-Identifier: Apache-2.0
 * Trains the forward model on an epoch's experience: one pass in collection order, in batches of
 * HO_CURIOSITY_BLOCKS blocks, AdamW with the agent's betas and weight decay. */
#include "kernels/cpu/lane.h"

enum { BATCH = HO_CURIOSITY_BATCH };

/* Rows of the rollout [first, first + BATCH) that hold a step; returns how many. */
static int32_t collect_rows(const ho_work *w, int64_t *first, int64_t *row)
{
    const int64_t all = (int64_t)w->shape->steps * w->shape->key.episodes;
    int32_t n = 0;
    for (; *first < all && n < BATCH; (*first)++) {
        if (w->scratch->rollout.flags[*first] & HO_STEP_VALID) {
            row[n++] = *first;
        }
    }
    return n;
}

static double train_block(const ho_work *w, ho_curiosity_rows *r, const int64_t *row, int32_t n,
                          int32_t batch)
{
    const ho_rollout *rollout = &w->scratch->rollout;
    const float *next[HO_CURIOSITY_ROWS];
    double loss = 0.0;
    for (int32_t i = 0; i < n; i++) {
        const int64_t bar = rollout->bar[row[i]];
        const float *features = w->market->features + bar * w->market->F;
        ho_curiosity_input(r, i, features, ho_order_from_action(rollout->action[row[i]]).category);
        next[i] = features + w->market->F;
    }
    ho_curiosity_forward(&w->lane->curiosity, n, r);
    for (int32_t i = 0; i < n; i++) {
        loss += (double)ho_curiosity_error(r, i, next[i]);
    }
    ho_curiosity_backward(&w->lane->curiosity, n, batch, next, r);
    return loss;
}

void ho_lane_train_curiosity(ho_work *w)
{
    ho_lane *lane = w->lane;
    ho_curiosity *c = &lane->curiosity;
    ho_curiosity_rows *blocks = w->scratch->curiosity;
    int64_t row[BATCH], first = 0, rows = 0;
    double loss = 0.0;
    for (int32_t n; (n = collect_rows(w, &first, row)) > 0;) {
        for (int32_t at = 0, k = 0; at < n; at += HO_CURIOSITY_ROWS, k++) {
            const int32_t left = n - at;
            loss += train_block(w, &blocks[k], row + at,
                                left < HO_CURIOSITY_ROWS ? left : HO_CURIOSITY_ROWS, n);
            if (k > 0) {
                ho_simd_get()->add(blocks[0].gradient, blocks[k].gradient, HO_CURIOSITY_SIZE);
            }
        }
        rows += n;
        const ho_adam adam = ho_adam_of(&lane->config.agent, lane->config.agent.curiosity_lr,
                                        ++lane->n.curiosity_updates, 1.0);
        ho_simd_get()->adam(&adam, blocks[0].gradient, c->parameter, c->m, c->v, NULL, 0.0f,
                            HO_CURIOSITY_SIZE);
        ho_curiosity_pack(c);
    }
    lane->n.curiosity_loss = rows > 0 ? loss / (double)rows : 0.0;
}
