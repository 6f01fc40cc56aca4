/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/lane.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/init.h"

ho_lane_shape ho_lane_shape_of(const ho_cohort_key *key)
{
    ho_lane_shape s = {.key = *key, .net = ho_net_layout_of(key)};
    s.keeps_q = key->algorithm == HO_DQN && key->replay != HO_REPLAY_UNIFORM && s.net.atoms == 1 &&
                s.net.noise_size == 0 && key->precision != HO_PRECISION_FP8;
    s.portfolio = ho_portfolio_width(key->state_form);
    s.steps = ho_epoch_steps(key);
    s.slot_blocks = (key->episodes + HO_SLOT_BLOCK - 1) / HO_SLOT_BLOCK;
    /* a quarter of a batch keeps a block's products large; its gradient is summed four times */
    s.learn_rows = (key->batch + 3) / 4;
    s.learn_rows = s.learn_rows < 64
                       ? 64
                       : (s.learn_rows > HO_LEARN_ROWS_MAX ? HO_LEARN_ROWS_MAX : s.learn_rows);
    s.learn_blocks = (key->batch + s.learn_rows - 1) / s.learn_rows;
    s.chunks = (s.net.size + HO_CHUNK - 1) / HO_CHUNK;
    return s;
}

static void carve_lane(const ho_lane_shape *s, ho_lane *l, ho_carve *carve)
{
    const size_t n = (size_t)s->key.episodes, size = (size_t)s->net.size;
    l->online = ho_carve_take(carve, size, sizeof(float));
    l->target = ho_carve_take(carve, size, sizeof(float));
    l->m = ho_carve_take(carve, size, sizeof(float));
    l->v = ho_carve_take(carve, size, sizeof(float));
    ho_net_pack_carve(&l->acting, &s->net, 0, carve);
    if (s->key.precision == HO_PRECISION_FP8) {
        ho_net_pack_carve(&l->acting_e4m3, &s->net, 0, carve);
        l->acting_e4m3.e4m3 = 1;
    }
    if (s->key.curiosity) {
        ho_curiosity_carve(&l->curiosity, carve);
    }
    l->slot = ho_carve_take(carve, n, sizeof *l->slot);
    l->ring = ho_carve_take(carve, n * HO_RING_WORDS_MAX, sizeof *l->ring);
    l->hold = ho_carve_take(carve, n, sizeof *l->hold);
    l->ledger = ho_carve_take(carve, n, sizeof *l->ledger);
    l->moments = ho_carve_take(carve, n, sizeof *l->moments);
    if (s->key.algorithm == HO_DQN) {
        ho_replay_carve(&l->replay, &s->key, s->portfolio, carve);
    }
}

/* calloc aligned to the carve's grain */
static void *zeroed(size_t size)
{
    void *block = aligned_alloc(HO_CARVE_ALIGN, size);
    if (block) {
        memset(block, 0, size);
    }
    return block;
}

size_t ho_lane_size(const ho_lane_shape *shape)
{
    ho_lane lane = {0};
    ho_carve carve = {NULL, 0};
    carve_lane(shape, &lane, &carve);
    return carve.used;
}

ho_status ho_lane_create(const ho_lane_shape *shape, const ho_lane_config *config,
                         const double *sigma, ho_lane **out)
{
    ho_status rc = HO_ENOMEM;
    ho_lane *l = calloc(1, sizeof *l);
    *out = NULL;
    if (!l) {
        return rc;
    }
    l->size = ho_lane_size(shape);
    if (!(l->block = zeroed(l->size))) {
        goto out;
    }
    ho_carve carve = {l->block, 0};
    carve_lane(shape, l, &carve);
    l->config = *config;
    l->config.env.kelly_share = 1.0; /* until there are enough trades */
    l->env = ho_env_lane_make(&l->config.env, config->train, shape->key.episode_length, 0,
                              config->rng_key, sigma);
    l->n.state = HO_LANE_ACTIVE;
    if (config->weights) {
        memcpy(l->online, config->weights, (size_t)shape->net.size * sizeof(float));
        l->config.weights = NULL; /* read now and no more */
        rc = HO_OK;
    } else if ((rc = ho_net_init(&shape->net, config->agent.init, config->agent.noisy_sigma0,
                                 l->env.key, 0, l->online)) != HO_OK) {
        goto out;
    }
    memcpy(l->target, l->online, (size_t)shape->net.size * sizeof(float));
    if (shape->key.curiosity && (rc = ho_curiosity_init(&l->curiosity, l->env.key)) != HO_OK) {
        goto out;
    }
    for (int32_t i = 0; i < shape->key.episodes; i++) {
        ho_env_clear(&l->slot[i]);
    }
    ho_lane_pack_acting(shape, l);
    *out = l;
out:
    if (rc != HO_OK) {
        ho_lane_destroy(&l);
    }
    return rc;
}

void ho_lane_destroy(ho_lane **lane)
{
    if (*lane) {
        free((*lane)->block);
        free(*lane);
        *lane = NULL;
    }
}

void ho_lane_pack_acting(const ho_lane_shape *shape, ho_lane *lane)
{
    ho_net_pack_fill(&lane->acting, &shape->net, lane->online, NULL);
    if (shape->key.precision == HO_PRECISION_FP8) {
        ho_net_pack_fill(&lane->acting_e4m3, &shape->net, lane->online, NULL);
    }
}

/* ---- scratch ---- */

static void carve_rollout(const ho_lane_shape *s, ho_rollout *r, ho_carve *carve)
{
    const size_t n = (size_t)s->steps * (size_t)s->key.episodes, p = (size_t)s->portfolio;
    r->bar = ho_carve_take(carve, n, sizeof *r->bar);
    r->before = ho_carve_take(carve, n * p, sizeof *r->before);
    r->after = ho_carve_take(carve, n * p, sizeof *r->after);
    r->reward = ho_carve_take(carve, n, sizeof *r->reward);
    r->action = ho_carve_take(carve, n, sizeof *r->action);
    r->flags = ho_carve_take(carve, n, sizeof *r->flags);
    if (s->key.algorithm == HO_PPO) {
        r->log_p = ho_carve_take(carve, n, sizeof *r->log_p);
        r->value = ho_carve_take(carve, n, sizeof *r->value);
    }
    if (s->keeps_q) {
        r->q = ho_carve_take(carve, n * HO_BRANCHES_MAX, sizeof *r->q);
        r->greedy = ho_carve_take(carve, n, sizeof *r->greedy);
    }
}

static void carve_collect(const ho_lane_shape *s, ho_collect_block *b, ho_carve *carve)
{
    ho_net_rows_carve(&b->rows, &s->net, HO_SLOT_BLOCK, 0, carve);
    b->x = ho_carve_take(carve, HO_SLOT_BLOCK * (size_t)b->rows.x_row, sizeof(float));
    if (s->net.noise_size) {
        ho_net_pack_carve(&b->noisy, &s->net, 0, carve);
        b->noisy.e4m3 = s->key.precision == HO_PRECISION_FP8;
        b->noise = ho_carve_take(carve, (size_t)s->net.noise_size, sizeof(float));
    }
    if (s->key.curiosity) {
        ho_curiosity_rows_carve(&b->curiosity, HO_SLOT_BLOCK, 0, carve);
    }
}

static void carve_learn(const ho_lane_shape *s, ho_learn_block *b, ho_carve *carve)
{
    const size_t rows = (size_t)s->learn_rows;
    ho_net_rows_carve(&b->online, &s->net, s->learn_rows, 1, carve);
    b->x = ho_carve_take(carve, rows * (size_t)b->online.x_row, sizeof(float));
    b->choice = ho_carve_take(carve, rows * HO_BRANCHES_MAX, sizeof *b->choice);
    b->gradient = ho_carve_take(carve, (size_t)s->net.size, sizeof(float));
    if (s->key.algorithm == HO_DQN) {
        b->x_next = ho_carve_take(carve, rows * (size_t)b->online.x_row, sizeof(float));
        ho_net_rows_carve(&b->selector, &s->net, HO_NEXT_ROWS, 0, carve);
        ho_net_rows_carve(&b->other, &s->net, HO_NEXT_ROWS, 0, carve);
        b->target = ho_carve_take(carve, rows * (size_t)s->net.atoms, sizeof(float));
        b->reward = ho_carve_take(carve, rows, sizeof(float));
        b->discount = ho_carve_take(carve, rows, sizeof(float));
        b->row = ho_carve_take(carve, rows, sizeof *b->row);
        b->next = ho_carve_take(carve, rows, sizeof *b->next);
    } else {
        b->log_p_old = ho_carve_take(carve, rows, sizeof(float));
        b->advantage = ho_carve_take(carve, rows, sizeof(float));
        b->value_old = ho_carve_take(carve, rows, sizeof(float));
        b->value_target = ho_carve_take(carve, rows, sizeof(float));
    }
}

static void carve_scratch(const ho_lane_shape *s, ho_scratch *w, ho_carve *carve)
{
    const size_t steps = (size_t)s->steps * (size_t)s->key.episodes;
    const size_t batch = (size_t)s->key.batch;
    const int ppo = s->key.algorithm == HO_PPO;
    carve_rollout(s, &w->rollout, carve);
    w->stat = ho_carve_take(carve, (size_t)s->key.episodes, sizeof *w->stat);
    w->collect = ho_carve_take(carve, (size_t)s->slot_blocks, sizeof *w->collect);
    for (int32_t i = 0; i < s->slot_blocks; i++) {
        ho_collect_block measured;
        carve_collect(s, w->collect ? &w->collect[i] : &measured, carve);
    }
    w->learn = ho_carve_take(carve, (size_t)s->learn_blocks, sizeof *w->learn);
    for (int32_t i = 0; i < s->learn_blocks; i++) {
        ho_learn_block measured;
        carve_learn(s, w->learn ? &w->learn[i] : &measured, carve);
    }
    ho_net_pack_carve(&w->online, &s->net, 1, carve);
    if (!ppo) {
        ho_net_pack_carve(&w->target, &s->net, 0, carve);
    }
    w->noise_online = ho_carve_take(carve, (size_t)s->net.noise_size, sizeof(float));
    w->noise_target = ho_carve_take(carve, (size_t)s->net.noise_size, sizeof(float));
    w->index = ho_carve_take(carve, ppo ? steps : batch, sizeof *w->index);
    w->weight = ho_carve_take(carve, batch, sizeof(float));
    w->td = ho_carve_take(carve, batch, sizeof(float));
    w->norm = ho_carve_take(carve, (size_t)s->chunks, sizeof(double));
    if (!ppo && s->key.replay != HO_REPLAY_UNIFORM) {
        w->position = ho_carve_take(carve, steps, sizeof *w->position);
        w->first_td = ho_carve_take(carve, steps, sizeof *w->first_td);
    }
    if (ppo) {
        w->position = ho_carve_take(carve, steps, sizeof *w->position);
        w->advantage = ho_carve_take(carve, steps, sizeof(float));
        w->value_target = ho_carve_take(carve, steps, sizeof(float));
        w->value_next = ho_carve_take(carve, steps, sizeof(float));
    }
    if (s->key.curiosity) {
        w->curiosity = ho_carve_take(carve, HO_CURIOSITY_BLOCKS, sizeof *w->curiosity);
        for (int i = 0; i < HO_CURIOSITY_BLOCKS; i++) {
            ho_curiosity_rows measured;
            ho_curiosity_rows_carve(w->curiosity ? &w->curiosity[i] : &measured, HO_CURIOSITY_ROWS,
                                    1, carve);
        }
    }
}

size_t ho_scratch_size(const ho_lane_shape *shape)
{
    ho_scratch scratch = {0};
    ho_carve carve = {NULL, 0};
    carve_scratch(shape, &scratch, &carve);
    return carve.used;
}

ho_status ho_scratch_create(const ho_lane_shape *shape, ho_scratch **out)
{
    ho_scratch *w = calloc(1, sizeof *w);
    *out = NULL;
    if (!w || !(w->block = zeroed(ho_scratch_size(shape)))) {
        free(w);
        return HO_ENOMEM;
    }
    ho_carve carve = {w->block, 0};
    carve_scratch(shape, w, &carve);
    *out = w;
    return HO_OK;
}

void ho_scratch_destroy(ho_scratch **scratch)
{
    if (*scratch) {
        free((*scratch)->block);
        free(*scratch);
        *scratch = NULL;
    }
}
