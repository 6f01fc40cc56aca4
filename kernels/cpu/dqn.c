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

/* Stores the rollout in order of steps, then slots. */
static void store_rollout(ho_work *w)
{
    const int32_t N = w->shape->key.episodes;
    const float *td = w->scratch->first_td;
    for (int32_t step = 0; step < w->shape->steps; step++) {
        for (int32_t slot = 0; slot < N; slot++) {
            const int64_t at = (int64_t)step * N + slot;
            if (w->scratch->rollout.flags[at] & HO_STEP_VALID) {
                const ho_transition t = make_transition(w, step, slot);
                ho_replay_push(&w->lane->replay, &t, td ? (double)td[at] : 0.0,
                               w->lane->config.agent.per_alpha);
            }
        }
    }
}

/* ---- one block of transitions ---- */

/* A draw's places are all over memory: they are asked for this many rows before they are read. */
enum { SLOT_AHEAD = 24, ROW_AHEAD = 8, CACHE_LINE = 64 };

static void prefetch_slot(const ho_replay *r, int64_t at)
{
    __builtin_prefetch(r->bar + at);
    __builtin_prefetch(r->steps + at);
    __builtin_prefetch(r->before + at * r->columns);
    __builtin_prefetch(r->after + at * r->columns);
    __builtin_prefetch(r->action + at);
    __builtin_prefetch(r->reward + at);
    __builtin_prefetch(r->discount + at);
}

static void prefetch_market_row(const ho_work *w, int32_t bar)
{
    const char *row = (const char *)(w->market->features + (int64_t)bar * w->market->F);
    const char *end = row + (size_t)w->market->F * sizeof(float);
    for (; row < end; row += CACHE_LINE) {
        __builtin_prefetch(row);
    }
}

/* Fills the block from ring slots index[0..n). */
static void gather(const ho_work *w, ho_learn_block *b, const int32_t *index, int32_t n)
{
    const ho_replay *r = &w->lane->replay;
    const int32_t row = b->online.x_row, P = r->columns;
    for (int32_t i = -SLOT_AHEAD; i < n; i++) {
        if (i + SLOT_AHEAD < n) {
            prefetch_slot(r, index[i + SLOT_AHEAD]);
        }
        if (i + ROW_AHEAD >= 0 && i + ROW_AHEAD < n) {
            const int64_t soon = index[i + ROW_AHEAD];
            prefetch_market_row(w, r->bar[soon]);
            prefetch_market_row(w, r->bar[soon] + r->steps[soon]);
        }
        if (i < 0) {
            continue;
        }
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

/* b->target of rows [first, first + n), n <= HO_NEXT_ROWS. */
static void evaluate_next(const ho_work *w, ho_learn_block *b, const ho_net_pack *online,
                          const ho_net_pack *target, int32_t first, int32_t n)
{
    const ho_net_layout *net = &w->shape->net;
    const ho_agent_config *agent = &w->lane->config.agent;
    const float v_max = (float)agent->v_max;
    const float *x = b->x_next + (int64_t)first * b->online.x_row;
    ho_net_rows *selector = &b->other;
    ho_net_forward(net, target, x, n, HO_NET_BOTH, &b->other);
    ho_dqn_values(net, n, v_max, &b->other);
    if (agent->double_q) {
        selector = &b->selector;
        if (net->atoms > 1) {
            ho_net_forward(net, online, x, n, HO_NET_BOTH, selector);
            ho_dqn_values(net, n, v_max, selector);
        } else { /* it only chooses: the best advantage is the best value */
            ho_net_forward(net, online, x, n, HO_NET_MAIN, selector);
        }
    }
    ho_dqn_targets(net, n, v_max, b->reward + first, b->discount + first, selector, &b->other,
                   b->target + (int64_t)first * net->atoms);
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
    for (int32_t first = 0; first < n; first += HO_NEXT_ROWS) {
        evaluate_next(w, b, online, target, first,
                      n - first < HO_NEXT_ROWS ? n - first : HO_NEXT_ROWS);
    }
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

/* ---- priorities of new experience: the n-step td error under the mean weights ---- */

/* Fills the block with the transitions that start at rollout positions [n]. */
static void load_rollout(const ho_work *w, ho_learn_block *b, const int32_t *position, int32_t n)
{
    const int32_t N = w->shape->key.episodes, row = b->online.x_row;
    for (int32_t i = 0; i < n; i++) {
        const ho_transition t = make_transition(w, position[i] / N, position[i] % N);
        ho_state_row(w, t.bar, t.before, b->x + (int64_t)i * row, row);
        ho_state_row(w, t.bar + t.steps, t.after, b->x_next + (int64_t)i * row, row);
        ho_branches_choice(&w->shape->net.branches, t.action,
                           b->choice + (int64_t)i * HO_BRANCHES_MAX);
        b->reward[i] = t.reward;
        b->discount[i] = t.discount;
        b->next[i] = position[i] + t.steps * N;
        if (b->next[i] >= w->shape->steps * N ||
            w->scratch->rollout.flags[b->next[i] - N] & (HO_STEP_TERMINAL | HO_STEP_TRUNCATED)) {
            b->next[i] = -1;
        }
    }
}

/* The greedy choices in the block's next states, as composed actions: those of the collection where
 * the episode went on, else of one more forward pass. */
static void greedy_next(const ho_work *w, ho_learn_block *b, const ho_net_pack *online, int32_t n,
                        uint8_t *greedy)
{
    const ho_branches *branches = &w->shape->net.branches;
    const int32_t row = b->online.x_row;
    int32_t ended = 0;
    for (int32_t i = 0; i < n; i++) {
        if (b->next[i] < 0) {
            memcpy(b->x + (int64_t)ended++ * row, b->x_next + (int64_t)i * row,
                   (size_t)row * sizeof(float));
        }
    }
    ho_net_forward(&w->shape->net, online, b->x, ended, HO_NET_BOTH, &b->selector);
    ho_dqn_values(&w->shape->net, ended, 0.0f, &b->selector);
    const float *q = b->selector.q;
    for (int32_t i = 0; i < n; i++) {
        if (b->next[i] >= 0) {
            greedy[i] = w->scratch->rollout.greedy[b->next[i]];
            continue;
        }
        int32_t best[HO_BRANCHES_MAX] = {0};
        for (int d = 0; d < branches->count; d++) {
            best[d] = ho_argmax(q + branches->first[d], branches->size[d]);
        }
        greedy[i] = (uint8_t)ho_branches_action(branches, best);
        q += b->selector.q_row;
    }
}

/* td errors from the values that collection kept: one pass of the target network is left.
 * n <= HO_NEXT_ROWS. */
static void kept_td(const ho_work *w, ho_learn_block *b, const ho_net_pack *online,
                    const ho_net_pack *target, const int32_t *position, int32_t n)
{
    const ho_branches *branches = &w->shape->net.branches;
    uint8_t greedy[HO_NEXT_ROWS];
    ho_net_forward(&w->shape->net, target, b->x_next, n, HO_NET_BOTH, &b->other);
    ho_dqn_values(&w->shape->net, n, 0.0f, &b->other);
    if (w->lane->config.agent.double_q) {
        greedy_next(w, b, online, n, greedy);
    }
    for (int32_t i = 0; i < n; i++) {
        const float *q = b->other.q + (int64_t)i * b->other.q_row;
        const float *taken = w->scratch->rollout.q + (int64_t)position[i] * HO_BRANCHES_MAX;
        const float share = 1.0f / (float)branches->count;
        int32_t best[HO_BRANCHES_MAX];
        float next = 0.0f, td = 0.0f;
        if (w->lane->config.agent.double_q) {
            ho_branches_choice(branches, greedy[i], best);
        }
        for (int d = 0; d < branches->count; d++) {
            if (!w->lane->config.agent.double_q) {
                best[d] = ho_argmax(q + branches->first[d], branches->size[d]);
            }
            next += share * q[branches->first[d] + best[d]];
        }
        const float y = ho_td_target(b->reward[i], b->discount[i], next);
        for (int d = 0; d < branches->count; d++) {
            td += share * fabsf(taken[d] - y);
        }
        b->row[i].td = td;
    }
}

/* scratch->first_td of every step of the rollout. */
static void first_priorities(ho_work *w)
{
    const ho_lane_shape *s = w->shape;
    const int32_t all = s->steps * s->key.episodes;
    int32_t *position = w->scratch->position, count = 0;
    for (int32_t at = 0; at < all; at++) {
        if (w->scratch->rollout.flags[at] & HO_STEP_VALID) {
            position[count++] = at;
        }
    }
    ho_net_pack_fill(&w->scratch->online, &s->net, w->lane->online, NULL);
    ho_net_pack_fill(&w->scratch->target, &s->net, w->lane->target, NULL);
    const int32_t block = s->keeps_q ? HO_NEXT_ROWS : s->learn_rows;
#pragma omp parallel for schedule(dynamic, 1) num_threads(w->threads)
    for (int32_t k = 0; k < s->learn_blocks; k++) { /* a block of scratch each */
        ho_learn_block *b = &w->scratch->learn[k];
        for (int32_t first = k * block; first < count; first += block * s->learn_blocks) {
            const int32_t rows = count - first < block ? count - first : block;
            load_rollout(w, b, position + first, rows);
            if (s->keeps_q) {
                kept_td(w, b, &w->scratch->online, &w->scratch->target, position + first, rows);
            } else {
                evaluate(w, b, &w->scratch->online, &w->scratch->target, NULL, rows, rows, 0);
            }
            for (int32_t i = 0; i < rows; i++) {
                w->scratch->first_td[position[first + i]] = b->row[i].td;
            }
        }
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
    if (lane->replay.kind != HO_REPLAY_UNIFORM) {
        first_priorities(w);
    }
    store_rollout(w);
    out->replay_fill = lane->replay.fill;
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
