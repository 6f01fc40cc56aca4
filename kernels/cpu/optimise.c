/* SPDX-License-Identifier: Apache-2.0
 * What every update ends with: one gradient out of the blocks', the guard, Adam, the target. */
#include <math.h>

#include "kernels/cpu/lane.h"

/* Adds the blocks' gradients into the first block's, chunk by chunk, always in block order, and
 * returns the sum's norm. */
static double reduce_gradient(ho_work *w, int32_t blocks, const float *noise)
{
    const ho_lane_shape *s = w->shape;
    ho_learn_block *const learn = w->scratch->learn;
    float *const sum = learn[0].gradient;
#pragma omp parallel for schedule(static) num_threads(w->threads)
    for (int64_t c = 0; c < s->chunks; c++) {
        const int64_t at = c * HO_CHUNK;
        const int64_t n = s->net.size - at < HO_CHUNK ? s->net.size - at : HO_CHUNK;
        for (int32_t b = 1; b < blocks; b++) {
            ho_simd_get()->add(sum + at, learn[b].gradient + at, n);
        }
    }
    if (noise) {
        ho_net_noise_gradient(&s->net, noise, sum);
    }
    double square = 0.0;
#pragma omp parallel for schedule(static) num_threads(w->threads)
    for (int64_t c = 0; c < s->chunks; c++) {
        const int64_t at = c * HO_CHUNK;
        const int64_t n = s->net.size - at < HO_CHUNK ? s->net.size - at : HO_CHUNK;
        w->scratch->norm[c] = ho_simd_get()->square_sum(sum + at, n);
    }
    for (int64_t c = 0; c < s->chunks; c++) {
        square += w->scratch->norm[c];
    }
    return sqrt(square);
}

/* The comparisons are written so that NaN trips them. */
static ho_guard_reason judge(ho_lane *lane, const ho_judged *judged, double norm)
{
    const ho_agent_config *a = &lane->config.agent;
    if (!(fabs(judged->loss) <= a->loss_ceiling)) {
        return HO_GUARD_LOSS;
    }
    if (!isfinite(norm)) {
        return HO_GUARD_GRADIENT;
    }
    if (!(judged->q_largest <= a->q_ceiling)) {
        return HO_GUARD_Q;
    }
    lane->n.low_gradients = norm < a->grad_floor ? lane->n.low_gradients + 1 : 0;
    return a->grad_floor > 0.0 && lane->n.low_gradients >= a->grad_patience ? HO_GUARD_VANISHED
                                                                            : HO_GUARD_NONE;
}

int ho_lane_optimise(ho_work *w, int32_t blocks, const ho_judged *judged, const float *noise,
                     float *target)
{
    const ho_lane_shape *s = w->shape;
    const ho_agent_config *a = &w->lane->config.agent;
    ho_lane *lane = w->lane;
    const double norm = reduce_gradient(w, blocks, noise);
    w->stat->grad_norm = norm;
    const ho_guard_reason reason = judge(lane, judged, norm);
    if (reason != HO_GUARD_NONE) {
        lane->n.state = HO_LANE_DIVERGED;
        lane->n.guard = reason;
        lane->n.guard_update = lane->n.updates;
        return 0;
    }
    const int64_t total = (int64_t)a->epochs * ho_epoch_updates(&s->key);
    const double rate =
        ho_learning_rate(a->learning_rate, a->schedule, a->warmup_updates, lane->n.updates, total);
    const ho_adam adam =
        ho_adam_of(a, rate, lane->n.updates + 1, ho_clip_scale(norm, a->max_grad_norm));
    const float share = ho_target_share(a->tau, a->target_every, lane->n.updates + 1);
    w->stat->learning_rate = rate;
#pragma omp parallel for schedule(static) num_threads(w->threads)
    for (int64_t c = 0; c < s->chunks; c++) {
        const int64_t at = c * HO_CHUNK;
        const int64_t n = s->net.size - at < HO_CHUNK ? s->net.size - at : HO_CHUNK;
        ho_simd_get()->adam(&adam, w->scratch->learn[0].gradient + at, lane->online + at,
                            lane->m + at, lane->v + at, target ? target + at : NULL, share, n);
    }
    lane->n.updates++;
    w->stat->updates++;
    return 1;
}
