/* SPDX-License-Identifier: Apache-2.0
 * Experience: every block of episode slots runs the whole epoch by itself, its states in one batch
 * a step. Nothing here changes what another block sees: counts, Kelly's share and the forward model
 * are constant within an epoch and merged at its end, in slot order. */
#include <math.h>
#include <string.h>

#include "kernels/agents/explore.h"
#include "kernels/cpu/init.h"
#include "kernels/cpu/lane.h"

void ho_state_row(const ho_work *w, int32_t bar, const float *portfolio, float *row,
                  int32_t row_width)
{
    const int32_t F = w->market->F, P = w->shape->portfolio;
    memcpy(row, w->market->features + (int64_t)bar * F, (size_t)F * sizeof *row);
    memcpy(row + F, portfolio, (size_t)P * sizeof *row);
    memset(row + F + P, 0, (size_t)(row_width - F - P) * sizeof *row);
}

/* Counter of one slot's draws in this epoch. */
typedef struct draw_at {
    const uint32_t *key;
    uint32_t step, slot, epoch;
} draw_at;

static int32_t random_below(const draw_at *at, int branch, int32_t n)
{
    const ho_rng4 r =
        ho_rng(at->key, at->step, at->slot, at->epoch, HO_RNG_ACTION, (uint32_t)branch);
    return (int32_t)ho_rng_below(r.v[0], (uint32_t)n);
}

/* The choice of one branch: held, random and then held, or the best (q: the branch's values). */
static int32_t choose(const ho_agent_config *agent, const draw_at *at, int branch, double epsilon,
                      const float *q, int32_t n, ho_hold *hold)
{
    if (hold->left[branch] > 0) {
        hold->left[branch]--;
        return hold->choice[branch];
    }
    if (epsilon > 0.0) {
        const ho_rng4 r =
            ho_rng(at->key, at->step, at->slot, at->epoch, HO_RNG_EPSILON, (uint32_t)branch);
        if (ho_rng_double(r.v[0], r.v[1]) < epsilon) {
            hold->choice[branch] = random_below(at, branch, n);
            hold->left[branch] =
                ho_hold_length(agent->explore_hold, ho_rng_double(r.v[2], r.v[3])) - 1;
            return hold->choice[branch];
        }
    }
    return ho_argmax(q, n);
}

static void choose_dqn(const ho_work *w, const draw_at *at, double epsilon, float *q, ho_hold *hold,
                       int32_t choice[HO_BRANCHES_MAX])
{
    const ho_branches *b = &w->shape->net.branches;
    const ho_agent_config *agent = &w->lane->config.agent;
    if (agent->count_bonus > 0.0) {
        for (int32_t i = 0; i < b->outputs; i++) {
            q[i] += ho_count_bonus(agent->count_bonus, w->lane->n.count[i]);
        }
    }
    for (int d = 0; d < b->count; d++) {
        choice[d] = choose(agent, at, d, epsilon, q + b->first[d], b->size[d], hold);
    }
}

/* Keeps what the first priorities need of a state's values (those without the count bonus). */
static void keep_values(const ho_work *w, int64_t at, const float *q, const int32_t *chosen)
{
    const ho_branches *b = &w->shape->net.branches;
    int32_t best[HO_BRANCHES_MAX] = {0};
    for (int d = 0; d < b->count; d++) {
        best[d] = ho_argmax(q + b->first[d], b->size[d]);
        w->scratch->rollout.q[at * HO_BRANCHES_MAX + d] = q[b->first[d] + chosen[d]];
    }
    w->scratch->rollout.greedy[at] = (uint8_t)ho_branches_action(b, best);
}

static void choose_ppo(const ho_work *w, const draw_at *at, const float *log_p,
                       int32_t choice[HO_BRANCHES_MAX])
{
    double u[HO_BRANCHES_MAX] = {0};
    for (int d = 0; d < w->shape->net.branches.count; d++) {
        const ho_rng4 r =
            ho_rng(at->key, at->step, at->slot, at->epoch, HO_RNG_ACTION, (uint32_t)d);
        u[d] = ho_rng_double(r.v[0], r.v[1]);
    }
    ho_ppo_sample(&w->shape->net, log_p, u, choice);
}

static void count_step(const ho_branches *b, int32_t action, const int32_t *choice,
                       const ho_step_out *out, ho_slot_stat *s)
{
    const double r = (double)out->reward;
    s->reward_min = s->steps == 0 || r < s->reward_min ? r : s->reward_min;
    s->reward_max = s->steps == 0 || r > s->reward_max ? r : s->reward_max;
    s->steps++;
    s->reward += r;
    s->reward_square += r * r;
    s->ret += out->ret;
    s->ret_square += out->ret * out->ret;
    s->exposure[action / 9]++;
    s->order[action / 3 % 3]++;
    s->urgency[action % 3]++;
    s->ended[out->end]++;
    for (int i = 0; i < out->exit_count; i++) {
        s->exits[out->exit_reason[i]]++;
    }
    for (int d = 0; d < b->count; d++) {
        s->count[b->first[d] + choice[d]]++;
    }
}

/* One block of slots and what they share. */
typedef struct block_run {
    const ho_work *w;
    ho_collect_block *scratch;
    const ho_net_pack *pack; /* this step's weights */
    int32_t first, n;        /* slots [first, first + n) */
    double epsilon;
    int kelly;   /* ledgers are kept */
    int curious; /* the forward model's error enters the reward */
} block_run;

static void load_states(const block_run *b, int32_t step)
{
    const ho_work *w = b->w;
    ho_rollout *r = &w->scratch->rollout;
    const int32_t P = w->shape->portfolio, row = b->scratch->rows.x_row;
    for (int32_t i = 0; i < b->n; i++) {
        const ho_env *e = &w->lane->slot[b->first + i];
        const int64_t at = (int64_t)step * w->shape->key.episodes + b->first + i;
        float *before = r->before + at * P;
        r->flags[at] = 0;
        r->bar[at] = e->t;
        if (e->active) {
            ho_env_portfolio(&w->lane->env, w->market, e, before);
            ho_state_row(w, e->t, before, b->scratch->x + (int64_t)i * row, row);
            r->flags[at] = HO_STEP_VALID;
        }
    }
}

/* Values or log-probabilities of the block's states, in act[MAIN1] or q. */
static void evaluate(const block_run *b)
{
    const ho_net_layout *net = &b->w->shape->net;
    ho_net_rows *rows = &b->scratch->rows;
    if (b->w->shape->key.algorithm == HO_PPO) {
        ho_net_forward(net, b->pack, b->scratch->x, b->n, HO_NET_BOTH, rows);
        ho_ppo_log_probabilities(net, b->n, rows);
    } else if (net->atoms > 1 || b->w->shape->keeps_q) {
        ho_net_forward(net, b->pack, b->scratch->x, b->n, HO_NET_BOTH, rows);
        ho_dqn_values(net, b->n, (float)b->w->lane->config.agent.v_max, rows);
    } else { /* the best advantage is the best value */
        ho_net_forward(net, b->pack, b->scratch->x, b->n, HO_NET_MAIN, rows);
    }
}

/* Chooses for every active slot: rollout.action, and choice [n, HO_BRANCHES_MAX]. */
static void choose_all(const block_run *b, int32_t step, int32_t *choice)
{
    const ho_work *w = b->w;
    ho_rollout *r = &w->scratch->rollout;
    ho_net_rows *rows = &b->scratch->rows;
    for (int32_t i = 0; i < b->n; i++) {
        const int32_t slot = b->first + i;
        const int64_t at = (int64_t)step * w->shape->key.episodes + slot;
        int32_t *chosen = choice + i * HO_BRANCHES_MAX;
        const draw_at draw = {w->lane->env.key, (uint32_t)step, (uint32_t)slot,
                              (uint32_t)w->lane->n.epoch};
        if (!r->flags[at]) {
            continue;
        }
        if (w->shape->key.algorithm == HO_PPO) {
            const float *log_p = rows->act[HO_LAYER_MAIN1] + (int64_t)i * rows->row[HO_LAYER_MAIN1];
            choose_ppo(w, &draw, log_p, chosen);
        } else {
            float *q = rows->q + (int64_t)i * rows->q_row;
            float plain[HO_ACTIONS];
            if (w->shape->keeps_q) {
                memcpy(plain, q, (size_t)w->shape->net.branches.outputs * sizeof *q);
            }
            choose_dqn(w, &draw, b->epsilon, q, &w->lane->hold[slot], chosen);
            if (w->shape->keeps_q) {
                keep_values(w, at, plain, chosen);
            }
        }
        r->action[at] = (uint8_t)ho_branches_action(&w->shape->net.branches, chosen);
    }
}

/* log p and V of the steps as the updates will see them: with fp8 that is a pass in bf16. */
static void keep_policy(const block_run *b, int32_t step, const int32_t *choice)
{
    const ho_work *w = b->w;
    const ho_net_layout *net = &w->shape->net;
    ho_rollout *r = &w->scratch->rollout;
    ho_net_rows *rows = &b->scratch->rows;
    if (w->shape->key.precision == HO_PRECISION_FP8) {
        ho_net_forward(net, &w->lane->acting, b->scratch->x, b->n, HO_NET_BOTH, rows);
        ho_ppo_log_probabilities(net, b->n, rows);
    }
    for (int32_t i = 0; i < b->n; i++) {
        const int64_t at = (int64_t)step * w->shape->key.episodes + b->first + i;
        if (r->flags[at]) {
            const float *log_p = rows->act[HO_LAYER_MAIN1] + (int64_t)i * rows->row[HO_LAYER_MAIN1];
            r->log_p[at] = ho_ppo_choice_log_p(net, log_p, choice + i * HO_BRANCHES_MAX);
            r->value[at] = rows->act[HO_LAYER_VALUE1][(int64_t)i * rows->row[HO_LAYER_VALUE1]];
        }
    }
}

/* Predictions of the forward model for the chosen categories. */
static void predict(const block_run *b, int32_t step)
{
    const ho_work *w = b->w;
    for (int32_t i = 0; i < b->n; i++) {
        const int64_t at = (int64_t)step * w->shape->key.episodes + b->first + i;
        const ho_order order = ho_order_from_action(w->scratch->rollout.action[at]);
        const int64_t bar = w->scratch->rollout.flags[at] ? w->scratch->rollout.bar[at] : 0;
        ho_curiosity_input(&b->scratch->curiosity, i, w->market->features + bar * w->market->F,
                           order.category);
    }
    ho_curiosity_forward(&w->lane->curiosity, b->n, &b->scratch->curiosity);
}

static void step_slot(const block_run *b, int32_t step, int32_t i, const int32_t *choice)
{
    const ho_work *w = b->w;
    ho_lane *lane = w->lane;
    ho_rollout *r = &w->scratch->rollout;
    const int32_t slot = b->first + i;
    const int64_t at = (int64_t)step * w->shape->key.episodes + slot;
    const ho_order order = ho_order_from_action(r->action[at]);
    const ho_ring ring = {lane->ring + (int64_t)slot * HO_RING_WORDS_MAX, 1};
    ho_ledger *ledger = b->kelly ? &lane->ledger[slot] : NULL;
    ho_env *e = &lane->slot[slot];
    const float *next = w->market->features + ((int64_t)e->t + 1) * w->market->F;
    const float surprise = b->curious ? ho_curiosity_error(&b->scratch->curiosity, i, next) : 0.0f;
    ho_step_out out;
    ho_env_step(&lane->env, w->market, e, ring, &order, surprise, ledger, &out);
    r->reward[at] = out.reward;
    ho_env_portfolio(&lane->env, w->market, e, r->after + at * w->shape->portfolio);
    if (out.terminal) {
        r->flags[at] |= HO_STEP_TERMINAL;
    }
    if (out.truncated) {
        r->flags[at] |= HO_STEP_TRUNCATED;
    }
    count_step(&w->shape->net.branches, r->action[at], choice, &out, &w->scratch->stat[slot]);
    if (ledger) {
        ho_moments_add_closed(&lane->env.config, &lane->moments[slot], ledger);
    }
    if (out.end != HO_END_NONE) {
        memset(&lane->hold[slot], 0, sizeof lane->hold[slot]);
        ho_env_next(&lane->env, w->market, e, &out, (uint32_t)step + 1, (uint32_t)slot,
                    (uint32_t)lane->n.epoch, ledger);
    }
}

static void run_block(block_run *b)
{
    const ho_work *w = b->w;
    ho_lane *lane = w->lane;
    const ho_net_layout *net = &w->shape->net;
    int32_t choice[HO_SLOT_BLOCK * HO_BRANCHES_MAX] = {0};
    for (int32_t slot = b->first; slot < b->first + b->n; slot++) {
        memset(&w->scratch->stat[slot], 0, sizeof w->scratch->stat[slot]);
        ho_env_epoch_begin(&lane->env, w->market, &lane->slot[slot], (uint32_t)slot,
                           (uint32_t)lane->n.epoch, b->kelly ? &lane->ledger[slot] : NULL);
        if (lane->slot[slot].steps == 0) {
            memset(&lane->hold[slot], 0, sizeof lane->hold[slot]);
        }
    }
    if (net->noise_size) {
        ho_net_pack_fill(&b->scratch->noisy, net, lane->online, NULL);
    }
    for (int32_t step = 0; step < w->shape->steps; step++) {
        load_states(b, step);
        if (net->noise_size) {
            ho_net_noise(net, lane->env.key, (uint32_t)step, (uint32_t)lane->n.epoch, HO_NOISE_ACT,
                         b->scratch->noise);
            ho_net_pack_renoise(&b->scratch->noisy, net, lane->online, b->scratch->noise);
        }
        evaluate(b);
        choose_all(b, step, choice);
        if (w->shape->key.algorithm == HO_PPO) {
            keep_policy(b, step, choice);
        }
        if (b->curious) {
            predict(b, step);
        }
        for (int32_t i = 0; i < b->n; i++) {
            const int64_t at = (int64_t)step * w->shape->key.episodes + b->first + i;
            if (w->scratch->rollout.flags[at]) {
                step_slot(b, step, i, choice + i * HO_BRANCHES_MAX);
            }
        }
    }
}

/* Sums the slots in order into the epoch's statistics and the lane's counters. */
static void merge_slots(ho_work *w)
{
    ho_lane *lane = w->lane;
    ho_epoch_stat *out = w->stat;
    ho_slot_stat sum = {0};
    for (int32_t slot = 0; slot < w->shape->key.episodes; slot++) {
        const ho_slot_stat *s = &w->scratch->stat[slot];
        if (s->steps == 0) {
            continue;
        }
        sum.reward_min =
            sum.steps == 0 || s->reward_min < sum.reward_min ? s->reward_min : sum.reward_min;
        sum.reward_max =
            sum.steps == 0 || s->reward_max > sum.reward_max ? s->reward_max : sum.reward_max;
        sum.steps += s->steps;
        sum.reward += s->reward;
        sum.reward_square += s->reward_square;
        sum.ret += s->ret;
        sum.ret_square += s->ret_square;
        for (int i = 0; i < HO_EXPOSURES; i++) {
            out->exposure_count[i] += s->exposure[i];
        }
        for (int i = 0; i < HO_ORDERS; i++) {
            out->order_count[i] += s->order[i];
        }
        for (int i = 0; i < HO_URGENCIES; i++) {
            out->urgency_count[i] += s->urgency[i];
        }
        for (int i = 0; i <= HO_END_LENGTH; i++) {
            sum.ended[i] += s->ended[i];
        }
        for (int i = 0; i < HO_EXIT_REASONS; i++) {
            sum.exits[i] += s->exits[i];
        }
        for (int i = 0; i < HO_ACTIONS; i++) {
            lane->n.count[i] += s->count[i];
        }
    }
    const double n = sum.steps > 0 ? (double)sum.steps : 1.0;
    const double variance = sum.reward_square / n - sum.reward / n * (sum.reward / n);
    const double ret_variance = sum.ret_square / n - sum.ret / n * (sum.ret / n);
    out->experiences = sum.steps;
    out->reward_mean = sum.reward / n;
    out->reward_std = variance > 0.0 ? sqrt(variance) : 0.0;
    out->reward_min = sum.reward_min;
    out->reward_max = sum.reward_max;
    out->sharpe = ret_variance > 0.0 ? sum.ret / n / sqrt(ret_variance) : 0.0;
    out->ended_ruin = sum.ended[HO_END_RUIN];
    out->ended_barrier = sum.ended[HO_END_BARRIER];
    out->ended_window = sum.ended[HO_END_WINDOW];
    out->ended_length = sum.ended[HO_END_LENGTH];
    out->exit_signal = sum.exits[HO_EXIT_SIGNAL];
    out->exit_stop = sum.exits[HO_EXIT_STOP];
    out->exit_profit = sum.exits[HO_EXIT_PROFIT];
    out->exit_time = sum.exits[HO_EXIT_TIME];
    out->exit_session = sum.exits[HO_EXIT_SESSION];
}

static void merge_kelly(ho_work *w)
{
    ho_lane *lane = w->lane;
    if (lane->env.config.sizing != HO_SIZING_KELLY) {
        return;
    }
    if (lane->env.config.reset_flags & HO_RESET_KELLY) {
        memset(&lane->n.kelly, 0, sizeof lane->n.kelly);
    }
    for (int32_t slot = 0; slot < w->shape->key.episodes; slot++) {
        ho_moments_merge(&lane->n.kelly, &lane->moments[slot]);
        memset(&lane->moments[slot], 0, sizeof lane->moments[slot]);
    }
    lane->env.config.kelly_share = ho_kelly_share(&lane->env.config, &lane->n.kelly);
    lane->config.env.kelly_share = lane->env.config.kelly_share; /* for the backtest */
}

void ho_lane_collect(ho_work *w)
{
    ho_lane *lane = w->lane;
    const ho_agent_config *agent = &lane->config.agent;
    const ho_env_config *env = &lane->env.config;
    const int dqn = w->shape->key.algorithm == HO_DQN;
    const int fp8 = w->shape->key.precision == HO_PRECISION_FP8;
    const double epsilon = dqn && !w->shape->net.noise_size
                               ? ho_epsilon(agent->eps_start, agent->eps_end, agent->eps_share,
                                            lane->n.epoch, agent->epochs)
                               : 0.0;
    w->stat->epsilon = epsilon;
#pragma omp parallel for schedule(dynamic, 1) num_threads(w->threads)
    for (int32_t i = 0; i < w->shape->slot_blocks; i++) {
        const int32_t first = i * HO_SLOT_BLOCK, left = w->shape->key.episodes - first;
        ho_collect_block *scratch = &w->scratch->collect[i];
        block_run b = {
            .w = w,
            .scratch = scratch,
            .pack = w->shape->net.noise_size ? &scratch->noisy
                    : fp8                    ? &lane->acting_e4m3
                                             : &lane->acting,
            .first = first,
            .n = left < HO_SLOT_BLOCK ? left : HO_SLOT_BLOCK,
            .epsilon = epsilon,
            .kelly = env->sizing == HO_SIZING_KELLY,
            .curious = w->shape->key.curiosity &&
                       (env->curiosity_weight != 0.0 || env->reward_preset == HO_PRESET_ORIGINAL),
        };
        run_block(&b);
    }
    merge_slots(w);
    merge_kelly(w);
    w->stat->kelly_share = env->kelly_share;
}
