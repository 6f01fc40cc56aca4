/* SPDX-License-Identifier: Apache-2.0 */
#include "agents/world.h"

#include <math.h>
#include <stdlib.h>

#include "backend_choice.h"
#include "check.h"
#include "kernels/env/rng.h"

double world_normal(uint64_t *state)
{
    double sum = -6.0; /* of twelve uniform numbers: near enough to normal */
    for (int i = 0; i < 12; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        sum += (double)(*state >> 11) / 9007199254740992.0;
    }
    return sum;
}

/* Log prices and feature 0 of each kind. */
static void make_series(world *w, world_kind kind, uint64_t *state, double *log_price)
{
    double level = 0.0, sign = 1.0;
    for (int64_t t = 0; t < w->T; t++) {
        float *f = w->features + t * w->F;
        for (int i = 0; i < w->F; i++) {
            f[i] = (float)world_normal(state);
        }
        if (kind == WORLD_ALTERNATING) {
            level += sign * w->move;
            f[0] = (float)sign;
            sign = -sign;
        } else if (kind == WORLD_REVERTING) {
            level = 0.9 * level + w->move * world_normal(state);
            f[0] = (float)(level / w->move);
        } else if (kind == WORLD_SIGNAL) {
            const double told = t > 0 ? (double)w->features[(t - 1) * w->F] : 0.0;
            level += w->move * (0.5 * (told > 0.0 ? 1.0 : -1.0) + world_normal(state));
        } else {
            level += w->move * world_normal(state);
        }
        log_price[t] = level;
    }
}

world *world_new(world_kind kind, int64_t T, uint64_t seed, int F, int threads)
{
    const ho_backend_options options = test_backend_options(threads);
    return world_new_on(kind, T, seed, F, &options);
}

world *world_new_on(world_kind kind, int64_t T, uint64_t seed, int F,
                    const ho_backend_options *options)
{
    ho_err err;
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->T = T;
    w->F = F;
    w->move = 0.002;
    w->bars = calloc((size_t)T * 5, sizeof(double));
    w->features = calloc((size_t)(T * F), sizeof(float));
    double *log_price = calloc((size_t)T, sizeof(double));
    int64_t *open_ns = calloc((size_t)T, sizeof(int64_t));
    int32_t *session = calloc((size_t)T, sizeof(int32_t));
    assert_true(w->bars && w->features && log_price && open_ns && session);
    uint64_t state = seed * 2654435761u + 1;
    make_series(w, kind, &state, log_price);
    for (int64_t t = 0; t < T; t++) {
        double *bar = w->bars + t * 5;
        const double close = 100.0 * exp(log_price[t]);
        const double open = t > 0 ? w->bars[(t - 1) * 5 + HO_CLOSE] : close;
        bar[HO_OPEN] = open;
        bar[HO_HIGH] = fmax(open, close);
        bar[HO_LOW] = fmin(open, close);
        bar[HO_CLOSE] = close;
        bar[HO_VOLUME] = 1e6;
        open_ns[t] = t * 60000000000;
        session[t] = (int32_t)(t / 100);
    }
    CHECK_OK(ho_backend_open(&w->backend, options, &err), &err);
    const ho_market_data data = {.T = T,
                                 .F = F,
                                 .features = w->features,
                                 .bars = w->bars,
                                 .open_ns = open_ns,
                                 .interval_ns = 60000000000,
                                 .session = session,
                                 .has_volume = 1};
    CHECK_OK(ho_market_load(w->backend, &data, &w->market, &err), &err);
    free(log_price);
    free(open_ns);
    free(session);
    return w;
}

void world_free(world **w)
{
    ho_market_unload(&(*w)->market);
    ho_backend_close(&(*w)->backend);
    free((*w)->bars);
    free((*w)->features);
    free(*w);
    *w = NULL;
}

ho_env_config world_env(const world *w, double spread_bps, double fee_bps)
{
    ho_env_config env = ho_env_config_defaults();
    env.max_lots = 1000; /* of 1 unit at 100: the whole capital */
    env.sigma_ref = w->move;
    env.impact_coef = 0.0;
    env.spread_bps = spread_bps;
    env.fee_bps[0] = env.fee_bps[1] = env.fee_bps[2] = fee_bps;
    return env;
}

ho_cohort_key world_key(const world *w, ho_algorithm algorithm)
{
    ho_cohort_key key = ho_cohort_key_defaults(algorithm);
    key.hidden1 = 32;
    key.hidden2 = 32;
    key.head = 16;
    key.market_features = w->F;
    key.replay_capacity = 4096;
    key.episodes = 16;
    key.episode_length = 50;
    key.rollout = 40;
    key.batch = algorithm == HO_PPO ? 160 : 64;
    key.updates = algorithm == HO_PPO ? 0 : 12;
    key.ppo_epochs = 2;
    return key;
}

ho_lane_config world_lane(const world *w, const ho_cohort_key *key, uint64_t trial)
{
    ho_lane_config lane = {.env = world_env(w, 0.5, 0.5),
                           .agent = ho_agent_config_defaults((ho_algorithm)key->algorithm),
                           .train = {0, w->T}};
    lane.env.state_form = key->state_form;
    lane.env.action_set = key->action_set;
    lane.agent.learn_start = 100;
    lane.agent.epochs = 10;
    ho_rng_key(7, trial, 0, 0, lane.rng_key);
    return lane;
}

double world_score(world *w, ho_cohort *cohort, int slot, const ho_env_config *env,
                   const uint8_t *actions, ho_backtest_result *result)
{
    ho_err err;
    ho_backtest_result own;
    ho_backtest_request request = {.policy = actions ? HO_POLICY_ACTIONS : HO_POLICY_GREEDY,
                                   .slots = {slot},
                                   .slot_count = actions ? 0 : 1,
                                   .window = {w->T / 2, w->T},
                                   .env = env,
                                   .actions = actions ? actions + w->T / 2 : NULL,
                                   .want = HO_WANT_TRADES | HO_WANT_BARS};
    CHECK_OK(ho_backtest(w->market, cohort, &request, 1, &own, &err), &err);
    const double score = log(own.final_equity / own.initial_capital);
    if (result) {
        *result = own;
    } else {
        ho_backtest_free(&own);
    }
    return score;
}

ho_cohort *world_cohort(world *w, const ho_cohort_key *key, int capacity)
{
    ho_err err;
    ho_cohort *c;
    CHECK_OK(ho_cohort_create(w->backend, w->market, key, capacity, &c, &err), &err);
    return c;
}

void world_start(ho_cohort *c, int slot, const ho_lane_config *lane)
{
    ho_err err;
    CHECK_OK(ho_lane_start(c, slot, lane, &err), &err);
}

void world_run(ho_cohort *c, int epochs, ho_epoch_stat *stat)
{
    ho_err err;
    for (int i = 0; i < epochs; i++) {
        CHECK_OK(ho_cohort_run_epoch(c, stat, &err), &err);
    }
}

uint64_t world_hash(ho_cohort *c, int slot)
{
    ho_err err;
    void *blob;
    size_t size;
    uint64_t h = 0xcbf29ce484222325u;
    CHECK_OK(ho_lane_save(c, slot, 1, &blob, &size, &err), &err);
    for (size_t i = 0; i < size; i++) {
        h = (h ^ ((const unsigned char *)blob)[i]) * 0x100000001b3u;
    }
    free(blob);
    return h;
}
