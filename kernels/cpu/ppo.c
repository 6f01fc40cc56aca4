/* SPDX-License-Identifier: Apache-2.0
 * PPO on a lane: advantages of the rollout, then shuffled minibatches over all of it. */
#include <math.h>
#include <string.h>

#include "kernels/agents/permutation.h"
#include "kernels/agents/ppo.h"
#include "kernels/cpu/lane.h"

/* ---- advantages ---- */

/* V of the state after each step, before any reset: the next row's own value, or one more forward
 * pass where the episode or the rollout ends. */
static void next_values(ho_work *w)
{
    const ho_lane_shape *s = w->shape;
    ho_rollout *r = &w->scratch->rollout;
    const int32_t N = s->key.episodes;
#pragma omp parallel for schedule(dynamic, 1) num_threads(w->threads)
    for (int32_t k = 0; k < s->slot_blocks; k++) {
        ho_collect_block *b = &w->scratch->collect[k];
        const int32_t first = k * HO_SLOT_BLOCK;
        const int32_t n = N - first < HO_SLOT_BLOCK ? N - first : HO_SLOT_BLOCK;
        for (int32_t step = 0; step < s->steps; step++) {
            int32_t ended[HO_SLOT_BLOCK], count = 0;
            for (int32_t i = 0; i < n; i++) {
                const int64_t at = (int64_t)step * N + first + i;
                if (!(r->flags[at] & HO_STEP_VALID)) {
                    continue;
                }
                if (step + 1 < s->steps &&
                    !(r->flags[at] & (HO_STEP_TERMINAL | HO_STEP_TRUNCATED))) {
                    w->scratch->value_next[at] = r->value[at + N];
                    continue;
                }
                ho_state_row(w, r->bar[at] + 1, r->after + at * s->portfolio,
                             b->x + (int64_t)count * b->rows.x_row, b->rows.x_row);
                ended[count++] = i;
            }
            if (count == 0) {
                continue;
            }
            ho_net_forward(&s->net, &w->lane->acting, b->x, count, HO_NET_VALUE, &b->rows);
            for (int32_t i = 0; i < count; i++) {
                w->scratch->value_next[(int64_t)step * N + first + ended[i]] =
                    b->rows.act[HO_LAYER_VALUE1][(int64_t)i * b->rows.row[HO_LAYER_VALUE1]];
            }
        }
    }
}

static void advantages(ho_work *w)
{
    const ho_rollout *r = &w->scratch->rollout;
    const ho_agent_config *agent = &w->lane->config.agent;
    const int32_t N = w->shape->key.episodes;
    for (int32_t slot = 0; slot < N; slot++) {
        float next = 0.0f;
        for (int32_t step = w->shape->steps - 1; step >= 0; step--) {
            const int64_t at = (int64_t)step * N + slot;
            if (!(r->flags[at] & HO_STEP_VALID)) {
                continue;
            }
            next = ho_gae_step(r->reward[at], r->value[at], w->scratch->value_next[at],
                               r->flags[at] & HO_STEP_TERMINAL,
                               r->flags[at] & (HO_STEP_TERMINAL | HO_STEP_TRUNCATED), next,
                               (float)agent->gamma, (float)agent->gae_lambda);
            w->scratch->advantage[at] = next;
            w->scratch->value_target[at] = next + r->value[at];
        }
    }
}

/* 1 - variance of (target - value) / variance of target; 0 where the target does not vary. */
static double explained_variance(const ho_work *w, const int32_t *index, int32_t rows)
{
    double target = 0.0, target_square = 0.0, left = 0.0, left_square = 0.0;
    for (int32_t i = 0; i < rows; i++) {
        const double t = (double)w->scratch->value_target[index[i]];
        const double e = t - (double)w->scratch->rollout.value[index[i]];
        target += t;
        target_square += t * t;
        left += e;
        left_square += e * e;
    }
    const double n = rows, variance = target_square / n - target / n * (target / n);
    return variance > 0.0 ? 1.0 - (left_square / n - left / n * (left / n)) / variance : 0.0;
}

/* ---- minibatches ---- */

/* The rows in the order of pass `pass`. */
static void shuffle(const ho_work *w, uint32_t pass, const int32_t *row, int32_t rows,
                    int32_t *index)
{
    const ho_permutation p =
        ho_permutation_of(w->lane->env.key, pass, (uint32_t)w->lane->n.epoch, (uint32_t)rows);
    for (int32_t i = 0; i < rows; i++) {
        index[i] = row[ho_permutation_at(&p, (uint32_t)i)];
    }
}

/* Mean and 1 / (deviation + 1e-8) of a minibatch's advantages; {0, 1} for one row or no deviation
 * (ddof 1, as torch's std). */
static void normalise(const ho_work *w, const int32_t *index, int32_t rows, double *mean,
                      double *scale)
{
    double sum = 0.0, square = 0.0;
    *mean = 0.0;
    *scale = 1.0;
    for (int32_t i = 0; i < rows; i++) {
        sum += (double)w->scratch->advantage[index[i]];
    }
    for (int32_t i = 0; i < rows; i++) {
        const double d = (double)w->scratch->advantage[index[i]] - sum / rows;
        square += d * d;
    }
    if (rows > 1 && square > 0.0) {
        *mean = sum / rows;
        *scale = 1.0 / (sqrt(square / (rows - 1)) + 1e-8);
    }
}

typedef struct minibatch {
    const int32_t *index;
    int32_t rows;
    double mean, scale; /* of the advantages */
} minibatch;

static void gather(const ho_work *w, const minibatch *m, ho_learn_block *b, int32_t first,
                   int32_t rows)
{
    const ho_rollout *r = &w->scratch->rollout;
    for (int32_t i = 0; i < rows; i++) {
        const int64_t at = m->index[first + i];
        ho_state_row(w, r->bar[at], r->before + at * w->shape->portfolio,
                     b->x + (int64_t)i * b->online.x_row, b->online.x_row);
        ho_branches_choice(&w->shape->net.branches, r->action[at],
                           b->choice + (int64_t)i * HO_BRANCHES_MAX);
        b->log_p_old[i] = r->log_p[at];
        b->value_old[i] = r->value[at];
        b->value_target[i] = w->scratch->value_target[at];
        b->advantage[i] = (float)(((double)w->scratch->advantage[at] - m->mean) * m->scale);
    }
}

static void learn_block(const ho_work *w, const minibatch *m, int32_t k)
{
    const ho_net_layout *net = &w->shape->net;
    const ho_agent_config *agent = &w->lane->config.agent;
    ho_learn_block *b = &w->scratch->learn[k];
    const int32_t first = k * w->shape->learn_rows, left = m->rows - first;
    const int32_t rows = left < w->shape->learn_rows ? left : w->shape->learn_rows;
    gather(w, m, b, first, rows);
    ho_net_forward(net, &w->scratch->online, b->x, rows, HO_NET_BOTH, &b->online);
    b->q_min = b->q_max = (double)b->online.act[HO_LAYER_VALUE1][0];
    for (int32_t i = 0; i < rows; i++) {
        const double v =
            (double)b->online.act[HO_LAYER_VALUE1][(int64_t)i * b->online.row[HO_LAYER_VALUE1]];
        b->q_min = v < b->q_min || isnan(v) ? v : b->q_min;
        b->q_max = v > b->q_max || isnan(v) ? v : b->q_max;
    }
    ho_ppo_log_probabilities(net, rows, &b->online);
    const ho_ppo_loss_spec spec = {m->rows, (float)agent->clip, (float)agent->value_clip,
                                   (float)agent->vf_coef, (float)agent->ent_coef};
    const ho_ppo_batch batch = {b->choice, b->log_p_old, b->advantage, b->value_old,
                                b->value_target};
    memset(&b->sums, 0, sizeof b->sums);
    ho_ppo_loss(net, &spec, rows, &batch, &b->online, &b->sums);
    ho_net_backward(net, &w->scratch->online, b->x, rows, 1.0f, &b->online, b->gradient);
}

/* Sums over the epoch's minibatches. */
typedef struct learn_sums {
    double loss, kl, clipped, entropy;
    int64_t batches;
} learn_sums;

/* One minibatch; 0 when the guard or target_kl stops the epoch's rest. */
static int update(ho_work *w, const minibatch *m, learn_sums *sums)
{
    const ho_agent_config *agent = &w->lane->config.agent;
    const int32_t blocks = (m->rows + w->shape->learn_rows - 1) / w->shape->learn_rows;
    ho_epoch_stat *out = w->stat;
    ho_net_pack_fill(&w->scratch->online, &w->shape->net, w->lane->online, NULL);
#pragma omp parallel for schedule(dynamic, 1) num_threads(w->threads)
    for (int32_t k = 0; k < blocks; k++) {
        learn_block(w, m, k);
    }
    ho_ppo_sums total = {0};
    double low = w->scratch->learn[0].q_min, high = w->scratch->learn[0].q_max;
    for (int32_t k = 0; k < blocks; k++) {
        const ho_learn_block *b = &w->scratch->learn[k];
        total.policy_loss += b->sums.policy_loss;
        total.value_loss += b->sums.value_loss;
        total.entropy += b->sums.entropy;
        total.kl += b->sums.kl;
        total.clipped += b->sums.clipped;
        low = b->q_min < low || isnan(b->q_min) ? b->q_min : low;
        high = b->q_max > high || isnan(b->q_max) ? b->q_max : high;
    }
    const double n = m->rows;
    const ho_judged judged = {
        (total.policy_loss + agent->vf_coef * total.value_loss - agent->ent_coef * total.entropy) /
            n,
        fabs(low) > fabs(high) || isnan(low) ? fabs(low) : fabs(high)};
    sums->loss += judged.loss;
    sums->kl += total.kl / n;
    sums->clipped += (double)total.clipped / n;
    sums->entropy += total.entropy / n;
    sums->batches++;
    out->loss_last = judged.loss;
    out->q_min = out->updates == 0 || low < out->q_min ? low : out->q_min;
    out->q_max = out->updates == 0 || high > out->q_max ? high : out->q_max;
    if (agent->target_kl > 0.0 && total.kl / n > agent->target_kl) {
        return 0;
    }
    return ho_lane_optimise(w, blocks, &judged, NULL, NULL);
}

/* Mean and deviation of V over the rollout. */
static void value_stat(ho_work *w, const int32_t *index, int32_t rows)
{
    double sum = 0.0, square = 0.0;
    for (int32_t i = 0; i < rows; i++) {
        const double v = (double)w->scratch->rollout.value[index[i]];
        sum += v;
        square += v * v;
    }
    const double mean = sum / rows, variance = square / rows - mean * mean;
    w->stat->q_mean = mean;
    w->stat->q_std = variance > 0.0 ? sqrt(variance) : 0.0;
}

void ho_lane_learn_ppo(ho_work *w)
{
    const ho_cohort_key *key = &w->shape->key;
    const int32_t all = w->shape->steps * key->episodes;
    int32_t *row = w->scratch->position, *index = w->scratch->index, rows = 0;
    learn_sums sums = {0};
    next_values(w);
    advantages(w);
    for (int32_t i = 0; i < all; i++) {
        if (w->scratch->rollout.flags[i] & HO_STEP_VALID) {
            row[rows++] = i;
        }
    }
    if (rows == 0) {
        return;
    }
    w->stat->explained_variance = explained_variance(w, row, rows);
    value_stat(w, row, rows);
    int going = 1;
    for (int32_t pass = 0; going && pass < key->ppo_epochs; pass++) {
        shuffle(w, (uint32_t)pass, row, rows, index);
        for (int32_t first = 0; going && first < rows; first += key->batch) {
            minibatch m = {.index = index + first,
                           .rows = rows - first < key->batch ? rows - first : key->batch};
            normalise(w, m.index, m.rows, &m.mean, &m.scale);
            going = update(w, &m, &sums);
        }
    }
    const double n = (double)sums.batches;
    w->stat->loss_mean = sums.loss / n;
    w->stat->kl = sums.kl / n;
    w->stat->clip_fraction = sums.clipped / n;
    w->stat->entropy = sums.entropy / n;
}
