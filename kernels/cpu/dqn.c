/* SPDX-License-Identifier: Apache-2.0
 * DQN on a lane: n-step transitions into the ring, their first priorities, the updates. */
#include <math.h>
#include <string.h>

#include "kernels/agents/priority.h"
#include "kernels/agents/value.h"
#include "kernels/cpu/init.h"
#include "kernels/cpu/lane.h"

/* ---- transitions ---- */

/* The transition that starts at (step, slot): the rewards up to n steps, the episode's end or the
 * epoch's end, whichever comes first. */
static ho_transition make_transition(const ho_work *w, int32_t step, int32_t slot)
{
    const ho_rollout *r = &w->scratch->rollout;
    const ho_agent_config *agent = &w->lane->config.agent;
    const int32_t N = w->shape->key.episodes, P = w->shape->portfolio;
    const int64_t first = (int64_t)step * N + slot;
    ho_nstep sum = {0.0, 1.0};
    int64_t at = first;
    int32_t m = 0;
    for (;;) {
        ho_nstep_push(&sum, (double)r->reward[at], agent->gamma);
        m++;
        if ((r->flags[at] & (HO_STEP_TERMINAL | HO_STEP_TRUNCATED)) || m == agent->n_step ||
            step + m == w->shape->steps) {
            break;
        }
        at += N;
    }
    ho_transition t;
    t.bar = r->bar[first];
    t.steps = m;
    t.action = r->action[first];
    t.reward = (float)sum.reward;
    t.discount = r->flags[at] & HO_STEP_TERMINAL ? 0.0f : (float)sum.discount;
    t.before = r->before + first * P;
    t.after = r->after + at * P;
    return t;
}

/* Returns how many transitions were stored. */
static int64_t store_rollout(ho_work *w)
{
    const int32_t N = w->shape->key.episodes;
    int64_t stored = 0;
    for (int32_t step = 0; step < w->shape->steps; step++) {
        for (int32_t slot = 0; slot < N; slot++) {
            if (w->scratch->rollout.flags[(int64_t)step * N + slot] & HO_STEP_VALID) {
                const ho_transition t = make_transition(w, step, slot);
                ho_replay_push(&w->lane->replay, &t, 0.0, w->lane->config.agent.per_alpha);
                stored++;
            }
        }
    }
    return stored;
}

/* ---- one block of transitions ---- */

/* Fills the block from ring slots index[0..n). */
static void gather(const ho_work *w, ho_learn_block *b, const int32_t *index, int32_t n)
{
    const ho_replay *r = &w->lane->replay;
    const int32_t row = b->online.x_row, P = r->columns;
    for (int32_t i = 0; i < n; i++) {
        const int64_t at = index[i];
        ho_state_row(w, r->bar[at], r->before + at * P, b->x + (int64_t)i * row, row);
        ho_state_row(w, r->bar[at] + r->steps[at], r->after + at * P, b->x_next + (int64_t)i * row,
                     row);
        ho_branches_choice(&w->shape->net.branches, r->action[at],
                           b->choice + (int64_t)i * HO_BRANCHES_MAX);
        b->reward[i] = r->reward[at];
        b->discount[i] = r->discount[at];
    }
}

/* Targets, values and losses of the block; with deltas, its gradient as well. batch: rows the loss
 * is the mean over. */
static void evaluate(const ho_work *w, ho_learn_block *b, const ho_net_pack *online,
                     const ho_net_pack *target, const float *weight, int32_t n, int32_t batch,
                     int with_gradient)
{
    const ho_net_layout *net = &w->shape->net;
    const ho_agent_config *agent = &w->lane->config.agent;
    const float v_max = (float)agent->v_max;
    ho_net_rows *selector = &b->other;
    ho_net_forward(net, target, b->x_next, n, HO_NET_BOTH, &b->other);
    ho_dqn_values(net, n, v_max, &b->other);
    if (agent->double_q) {
        selector = &b->selector;
        ho_net_forward(net, online, b->x_next, n, HO_NET_BOTH, selector);
        ho_dqn_values(net, n, v_max, selector);
    }
    ho_dqn_targets(net, n, v_max, b->reward, b->discount, selector, &b->other, b->target);
    ho_net_forward(net, online, b->x, n, HO_NET_BOTH, &b->online);
    ho_dqn_values(net, n, v_max, &b->online);
    const ho_dqn_loss_spec spec = {batch, (float)agent->huber_delta, v_max};
    ho_dqn_loss(net, &spec, n, b->choice, b->target, weight, &b->online, b->row);
    if (with_gradient) {
        ho_net_backward(net, online, b->x, n, ho_dqn_trunk_scale(net), &b->online, b->gradient);
    }
}

static int32_t block_rows(const ho_work *w, int32_t block, int32_t total)
{
    const int32_t left = total - block * w->shape->learn_rows;
    return left < w->shape->learn_rows ? left : w->shape->learn_rows;
}

/* ---- priorities of new experience ---- */

/* Gives the `count` newest transitions the td error of the mean weights as priority. */
static void first_priorities(ho_work *w, int64_t count)
{
    ho_replay *r = &w->lane->replay;
    const int32_t batch = w->shape->key.batch;
    count = count < r->fill ? count : r->fill;
    ho_net_pack_fill(&w->scratch->online, &w->shape->net, w->lane->online, NULL);
    ho_net_pack_fill(&w->scratch->target, &w->shape->net, w->lane->target, NULL);
    for (int64_t done = 0; done < count; done += batch) {
        const int32_t n = (int32_t)(count - done < batch ? count - done : batch);
        for (int32_t i = 0; i < n; i++) {
            const int64_t back = count - done - i; /* pushes ago */
            w->scratch->index[i] = (int32_t)((r->head - back + r->capacity) % r->capacity);
        }
        const int32_t blocks = (n + w->shape->learn_rows - 1) / w->shape->learn_rows;
#pragma omp parallel for schedule(dynamic, 1) num_threads(w->threads)
        for (int32_t k = 0; k < blocks; k++) {
            ho_learn_block *b = &w->scratch->learn[k];
            const int32_t first = k * w->shape->learn_rows, rows = block_rows(w, k, n);
            gather(w, b, w->scratch->index + first, rows);
            evaluate(w, b, &w->scratch->online, &w->scratch->target, NULL, rows, batch, 0);
            for (int32_t i = 0; i < rows; i++) {
                w->scratch->td[first + i] = b->row[i].td;
            }
        }
        ho_replay_update(r, w->scratch->index, w->scratch->td, n, w->lane->config.agent.per_alpha);
    }
}

/* ---- updates ---- */

/* Sums over the epoch's updates. */
typedef struct learn_sums {
    double loss, td, q, q_square, q_min, q_max;
    int64_t rows;
} learn_sums;

static ho_judged sum_rows(const ho_work *w, learn_sums *sums)
{
    ho_judged judged = {0.0, 0.0};
    const int32_t batch = w->shape->key.batch;
    for (int32_t k = 0; k < w->shape->learn_blocks; k++) {
        const ho_learn_block *b = &w->scratch->learn[k];
        for (int32_t i = 0; i < block_rows(w, k, batch); i++) {
            const double q = (double)b->row[i].q;
            judged.loss += (double)b->row[i].loss / batch;
            judged.q_largest = fabs(q) > judged.q_largest || isnan(q) ? fabs(q) : judged.q_largest;
            sums->td += (double)b->row[i].td;
            sums->q += q;
            sums->q_square += q * q;
            sums->q_min = sums->rows == 0 || q < sums->q_min ? q : sums->q_min;
            sums->q_max = sums->rows == 0 || q > sums->q_max ? q : sums->q_max;
            sums->rows++;
            w->scratch->td[k * w->shape->learn_rows + i] = b->row[i].td;
        }
    }
    sums->loss += judged.loss;
    w->stat->loss_last = judged.loss;
    return judged;
}

/* One gradient step; 0 when the guard stopped the lane. */
static int update(ho_work *w, int32_t number, learn_sums *sums)
{
    ho_lane *lane = w->lane;
    ho_scratch *s = w->scratch;
    const ho_net_layout *net = &w->shape->net;
    const ho_agent_config *agent = &lane->config.agent;
    const int32_t batch = w->shape->key.batch;
    const int64_t total = (int64_t)agent->epochs * w->shape->key.updates;
    const uint32_t epoch = (uint32_t)lane->n.epoch;
    const float *noise = NULL, *target_noise = NULL;
    if (lane->replay.kind == HO_REPLAY_PER_RANK && number % HO_RANK_SORT_EVERY == 0) {
        ho_replay_sort(&lane->replay, agent->per_alpha);
    }
    const double beta =
        ho_priority_beta(agent->per_beta_start, agent->per_beta_end, lane->n.updates, total);
    ho_replay_sample(&lane->replay, lane->env.key, (uint32_t)number, epoch, batch, beta, s->index,
                     s->weight);
    if (net->noise_size) {
        ho_net_noise(net, lane->env.key, (uint32_t)number, epoch, HO_NOISE_ONLINE, s->noise_online);
        ho_net_noise(net, lane->env.key, (uint32_t)number, epoch, HO_NOISE_TARGET, s->noise_target);
        noise = s->noise_online;
        target_noise = s->noise_target;
    }
#pragma omp parallel for schedule(static, 1) num_threads(w->threads)
    for (int which = 0; which < 2; which++) {
        ho_net_pack_fill(which ? &s->target : &s->online, net, which ? lane->target : lane->online,
                         which ? target_noise : noise);
    }
#pragma omp parallel for schedule(dynamic, 1) num_threads(w->threads)
    for (int32_t k = 0; k < w->shape->learn_blocks; k++) {
        const int32_t first = k * w->shape->learn_rows, rows = block_rows(w, k, batch);
        gather(w, &s->learn[k], s->index + first, rows);
        evaluate(w, &s->learn[k], &s->online, &s->target,
                 lane->replay.kind == HO_REPLAY_UNIFORM ? NULL : s->weight + first, rows, batch, 1);
    }
    const ho_judged judged = sum_rows(w, sums);
    if (!ho_lane_optimise(w, w->shape->learn_blocks, &judged, noise, lane->target)) {
        return 0;
    }
    ho_replay_update(&lane->replay, s->index, s->td, batch, agent->per_alpha);
    return 1;
}

void ho_lane_learn_dqn(ho_work *w)
{
    ho_lane *lane = w->lane;
    ho_epoch_stat *out = w->stat;
    learn_sums sums = {0};
    const int64_t stored = store_rollout(w);
    out->replay_fill = lane->replay.fill;
    if (lane->replay.kind != HO_REPLAY_UNIFORM) {
        first_priorities(w, stored);
    }
    const int32_t updates =
        lane->replay.fill > 0 && lane->replay.fill >= lane->config.agent.learn_start
            ? w->shape->key.updates
            : 0;
    int32_t done = 0;
    while (done < updates && update(w, done, &sums)) {
        done++;
    }
    if (sums.rows > 0) {
        const double n = (double)sums.rows, mean = sums.q / n;
        const double variance = sums.q_square / n - mean * mean;
        out->loss_mean = sums.loss / (n / w->shape->key.batch);
        out->td_error_mean = sums.td / n;
        out->q_mean = mean;
        out->q_std = variance > 0.0 ? sqrt(variance) : 0.0;
        out->q_min = sums.q_min;
        out->q_max = sums.q_max;
    }
}
