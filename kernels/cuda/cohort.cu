/* SPDX-License-Identifier: Apache-2.0
 * A cohort on the device: its memory, the views kernels get, and its epoch as one CUDA graph. The
 * graph holds pointers and shapes only; every number that differs between lanes or epochs is read
 * from device memory, so it is captured once and never again. */
#include <stdlib.h>
#include <string.h>

#include "kernels/agents/agent_check.h"
#include "kernels/cuda/backtest_kernels.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/curiosity.h"
#include "kernels/cuda/range.h"
#include "kernels/cuda/trace_rows.h"
#include "kernels/env/diversity.h"

static ho_status check_key(const cuda_backend *b, const ho_cohort_key *key, ho_err *err)
{
    ho_status rc = ho_cohort_key_check(key, err);
    if (rc != HO_OK) {
        return rc;
    }
    if (ho_state_width(key) > HO_STATE_PAD) {
        return ho_err_set(err, HO_EUNSUPPORTED, "a state of %d columns; the GPU takes at most %d",
                          ho_state_width(key), HO_STATE_PAD);
    }
    if (key->precision == HO_PRECISION_FP8 && b->image < 80) {
        return ho_err_set(err, HO_EUNSUPPORTED,
                          "precision fp8 needs compute capability 8.0; this GPU has f32 and bf16, "
                          "whose products are of float16 there");
    }
    return HO_OK;
}

/* All but float32: with fp8 only an epoch's acting differs from bf16. */
static int key_bf16(const ho_cohort_key *key)
{
    return key->precision != HO_PRECISION_F32;
}

static ho_cohort_plan plan_memory(const cuda_backend *b, const ho_cohort_key *key, int capacity,
                                  ho_device_net *net, int *fused)
{
    *net = ho_device_net_of(key);
    *fused = b->fused && key->algorithm == HO_DQN && ho_fused_fits(net, key->batch, key_bf16(key));
    return ho_cohort_plan_of(key, net, key_bf16(key), *fused, capacity);
}

ho_status ho_cuda_cohort_memory(ho_backend *backend, const ho_cohort_key *key, size_t *per_lane,
                                size_t *fixed, ho_err *err)
{
    ho_status rc = check_key((const cuda_backend *)backend, key, err);
    if (rc == HO_OK) {
        ho_device_net net;
        int fused;
        const ho_cohort_plan one = plan_memory((const cuda_backend *)backend, key, 1, &net, &fused);
        *per_lane = one.per_lane;
        *fixed = one.total - one.per_lane;
    }
    return rc;
}

/* A slice of the cohort's memory, or NULL when the path does not use it. */
static void *slice(const cuda_cohort *c, int id)
{
    return c->memory.lane_bytes[id] ? c->block + c->memory.at[id] : NULL;
}

static void fill_learn_view(cuda_cohort *c, const cuda_backend *b, const cuda_market *market,
                            int fused)
{
    ho_learn_view *v = &c->learn;
    v->net = c->net;
    v->lanes = c->capacity;
    v->batch = ho_cohort_batch(&c->key);
    v->passes = c->key.algorithm == HO_PPO ? 1 : HO_PASSES;
    v->states = c->key.algorithm == HO_PPO ? 1 : 2;
    v->bf16 = key_bf16(&c->key);
    v->fused = fused;
    v->processors = b->processors;
    v->replay_capacity = c->key.replay_capacity;
    v->loss_parts = c->memory.loss_parts;
    v->norm_parts = c->memory.norm_parts;
    v->features = v->bf16 ? market->features_bf16 : (const void *)market->features_f32;
    v->lane = (ho_lane_device *)slice(c, HO_SLICE_LANE);
    v->gate = (ho_update_gate *)slice(c, HO_SLICE_GATE);
    v->replay = (ho_replay_record *)slice(c, HO_SLICE_REPLAY);
    v->online = (float *)slice(c, HO_SLICE_ONLINE);
    v->target = (float *)slice(c, HO_SLICE_TARGET);
    v->moment1 = (float *)slice(c, HO_SLICE_MOMENT1);
    v->moment2 = (float *)slice(c, HO_SLICE_MOMENT2);
    v->gradient = (float *)slice(c, HO_SLICE_GRADIENT);
    v->online_copy = slice(c, HO_SLICE_ONLINE_COPY);
    v->target_copy = slice(c, HO_SLICE_TARGET_COPY);
    v->fused_weights = (uint8_t *)slice(c, HO_SLICE_FUSED_WEIGHTS);
    v->fused_backward = (uint8_t *)slice(c, HO_SLICE_FUSED_BACKWARD);
    v->fused_activations = (uint8_t *)slice(c, HO_SLICE_FUSED_ACTIVATIONS);
    v->sample = (ho_sample *)slice(c, HO_SLICE_SAMPLE);
    v->state = slice(c, HO_SLICE_STATE);
    for (int l = 0; l < HO_DEVICE_LAYERS - 1; l++) {
        v->hidden[l] = slice(c, HO_SLICE_HIDDEN1 + l);
        v->d_hidden[l] = slice(c, HO_SLICE_D_HIDDEN1 + l);
    }
    v->output = (float *)slice(c, HO_SLICE_OUTPUT);
    v->d_output = slice(c, HO_SLICE_D_OUTPUT);
    v->loss_part = (ho_loss_part *)slice(c, HO_SLICE_LOSS_PART);
    v->norm_part = (float *)slice(c, HO_SLICE_NORM_PART);
    v->new_td = (float *)slice(c, HO_SLICE_NEW_TD);
    v->new_greedy = (uint8_t *)slice(c, HO_SLICE_NEW_GREEDY);
    v->new_list = (int32_t *)slice(c, HO_SLICE_NEW_LIST);
    v->new_rows = ho_epoch_new_rows(&c->key);
}

/* What only some forms have: priorities, noise. */
static void fill_form_view(cuda_cohort *c)
{
    ho_learn_view *v = &c->learn;
    ho_priority_view *p = &v->priority;
    v->first_new = -1;
    v->noise = (float *)slice(c, HO_SLICE_NOISE);
    v->noisy_online = (float *)slice(c, HO_SLICE_NOISY_ONLINE);
    v->noisy_target = (float *)slice(c, HO_SLICE_NOISY_TARGET);
    p->shape = ho_priority_shape_of(&c->key);
    p->leaf = (uint32_t *)slice(c, HO_SLICE_PRIORITY);
    p->sum = (uint64_t *)slice(c, HO_SLICE_PRIORITY_SUM);
    p->mass = (uint64_t *)slice(c, HO_SLICE_RANK_MASS);
    p->rank_count = (uint32_t *)slice(c, HO_SLICE_RANK_COUNT);
    for (int i = 0; i < 2; i++) {
        p->rank_key[i] = (uint32_t *)slice(c, HO_SLICE_RANK_KEY0 + i);
        p->rank_slot[i] = (int32_t *)slice(c, HO_SLICE_RANK_SLOT0 + i);
    }
    p->index = (int32_t *)slice(c, HO_SLICE_DRAW_INDEX);
    p->weight = (float *)slice(c, HO_SLICE_DRAW_WEIGHT);
    p->weight_part = (float *)slice(c, HO_SLICE_DRAW_PART);
    p->td = (float *)slice(c, HO_SLICE_DRAW_TD);
}

static void fill_experience_view(cuda_cohort *c, const cuda_backend *b, const cuda_market *market)
{
    ho_experience_view *v = &c->experience;
    v->policy = ho_policy_net_of(&c->net, (ho_precision)c->key.precision);
    v->market = market->view;
    v->lanes = c->capacity;
    v->episodes = c->key.episodes;
    v->steps = ho_epoch_steps(&c->key);
    v->state_columns = c->net.portfolio;
    v->market_columns = c->net.market;
    v->ring_words = HO_RING_WORDS_MAX;
    v->batch = c->key.batch;
    v->replay_capacity = c->key.replay_capacity;
    v->samples = c->key.algorithm == HO_PPO;
    v->features = v->policy.fp8 ? market->features_e4m3 : c->learn.features;
    v->features_f32 = market->features_f32;
    v->curiosity = (const float *)slice(c, HO_SLICE_CURIOSITY);
    v->lane = c->learn.lane;
    v->packed = (const uint8_t *)slice(c, HO_SLICE_PACKED);
    v->slot = (ho_slot_device *)slice(c, HO_SLICE_SLOT);
    v->ring = (uint32_t *)slice(c, HO_SLICE_RING);
    v->ledger = (ho_ledger *)slice(c, HO_SLICE_LEDGER);
    v->moments = (ho_moments *)slice(c, HO_SLICE_MOMENTS);
    v->trace = (ho_trace_step *)slice(c, HO_SLICE_TRACE);
    v->active_steps = (int32_t *)slice(c, HO_SLICE_ACTIVE_STEPS);
    v->slot_stat = (ho_slot_stat *)slice(c, HO_SLICE_SLOT_STAT);
    v->replay = c->learn.replay;
    v->stat = (ho_epoch_stat *)slice(c, HO_SLICE_STAT);
    v->processors = b->processors;
    v->shared_limit = b->shared_limit;
    v->racecheck = ho_cuda_racecheck();
#ifdef HO_CUDA_EMULATED
    v->helpers = 1;
#else
    v->helpers = b->fused; /* they need registers that change hands */
#endif
}

static void fill_ppo_view(cuda_cohort *c)
{
    ho_ppo_view *v = &c->ppo;
    v->learn = c->learn;
    v->experience = c->experience;
    v->passes = c->key.ppo_epochs;
    v->lane = (ho_ppo_lane *)slice(c, HO_SLICE_PPO);
    v->row = (int32_t *)slice(c, HO_SLICE_ROW);
    v->row_count = (int32_t *)slice(c, HO_SLICE_ROW_COUNT);
    v->ended = (int32_t *)slice(c, HO_SLICE_PPO_ENDED);
    v->ended_count = (int32_t *)slice(c, HO_SLICE_PPO_ENDED_COUNT);
    v->rows = (int32_t *)slice(c, HO_SLICE_PPO_ROWS);
    v->value = (float *)slice(c, HO_SLICE_PPO_VALUE);
    v->next = (float *)slice(c, HO_SLICE_PPO_NEXT);
    v->log_p = (float *)slice(c, HO_SLICE_PPO_LOG_P);
    v->advantage = (float *)slice(c, HO_SLICE_PPO_ADVANTAGE);
    v->index = (int32_t *)slice(c, HO_SLICE_PPO_BATCH);
    v->part = (ho_ppo_part *)slice(c, HO_SLICE_PPO_PART);
}

#ifdef HO_CUDA_EMULATED
/* Nothing but the runtime may touch what lies between two slices. */
static void guard_slices(const cuda_cohort *c)
{
    for (int i = 0; i < HO_SLICE_COUNT; i++) {
        const size_t end = i + 1 < HO_SLICE_COUNT ? c->memory.at[i + 1] : c->memory.total;
        const size_t used = c->memory.at[i] + c->memory.lane_bytes[i] * (size_t)c->capacity;
        ho_emulator_guard(c->block + used, end - used);
    }
}
#endif

/* Everything zero, guard zones marked. HYPEROPT_CUDA_POISON=1 fills what kernels must write before
 * they read it with NaN instead, for tests. */
static ho_status clear_memory(cuda_cohort *c)
{
    ho_status rc =
        ho_cuda_status(cudaMemsetAsync(c->block, 0, c->memory.total, c->stream), "clear a cohort");
    const char *poison = getenv("HYPEROPT_CUDA_POISON");
    for (int i = 0; poison && strcmp(poison, "0") != 0 && i < HO_SLICE_COUNT && rc == HO_OK; i++) {
        if (ho_cohort_slice_is_scratch(i)) {
            rc = ho_cuda_status(cudaMemsetAsync(c->block + c->memory.at[i], 0xff,
                                                c->memory.lane_bytes[i] * (size_t)c->capacity,
                                                c->stream),
                                "poison a slice");
        }
    }
    for (int i = 0; i < HO_SLICE_COUNT && rc == HO_OK; i++) {
        const size_t end = i + 1 < HO_SLICE_COUNT ? c->memory.at[i + 1] : c->memory.total;
        rc = ho_cuda_status(cudaMemsetAsync(c->block + end - HO_GUARD_BYTES, HO_GUARD_VALUE,
                                            HO_GUARD_BYTES, c->stream),
                            "mark a guard zone");
    }
#ifdef HO_CUDA_EMULATED
    guard_slices(c);
#endif
    return rc == HO_OK ? ho_cuda_wait(c->stream, "clear a cohort") : rc;
}

ho_status ho_cuda_cohort_check_guards(ho_cohort *cohort, ho_err *err)
{
    cuda_cohort *c = (cuda_cohort *)cohort;
    unsigned char zone[HO_GUARD_BYTES];
    ho_status rc = ho_cuda_wait(c->stream, "read the guard zones");
    for (int i = 0; i < HO_SLICE_COUNT && rc == HO_OK; i++) {
        const size_t end = i + 1 < HO_SLICE_COUNT ? c->memory.at[i + 1] : c->memory.total;
        rc = ho_cuda_status(cudaMemcpy(zone, c->block + end - HO_GUARD_BYTES, HO_GUARD_BYTES,
                                       cudaMemcpyDeviceToHost),
                            "read a guard zone");
        for (int k = 0; rc == HO_OK && k < HO_GUARD_BYTES; k++) {
            if (zone[k] != HO_GUARD_VALUE) {
                return ho_err_set(err, HO_EGPU, "byte %d after slice %s was overwritten", k,
                                  ho_cohort_slice_name(i));
            }
        }
    }
    return ho_cuda_err(rc, err);
}

static ho_status create_on_device(cuda_cohort *c, cuda_backend *b, const cuda_market *market,
                                  int fused)
{
    ho_status rc = ho_cuda_status(cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking),
                                  "stream of a cohort");
    rc = rc == HO_OK ? ho_cuda_status(
                           cudaMallocHost((void **)&c->stat,
                                          HO_COHORT_DEPTH * (size_t)c->capacity * sizeof *c->stat),
                           "pinned statistics")
                     : rc;
    for (int i = 0; i < HO_COHORT_DEPTH && rc == HO_OK; i++) {
        rc = ho_cuda_status(cudaEventCreateWithFlags(&c->done[i], cudaEventDisableTiming),
                            "event of an epoch");
    }
    rc = rc == HO_OK ? ho_device_pool_take(&b->pool, (void **)&c->block, c->memory.total, c->stream,
                                           "memory of a cohort")
                     : rc;
    if (rc == HO_OK) {
        fill_learn_view(c, b, market, fused);
        fill_form_view(c);
        fill_experience_view(c, b, market);
        fill_ppo_view(c);
        rc = clear_memory(c);
        rc = rc == HO_OK && c->key.curiosity ? ho_curiosity_prepare() : rc;
        rc = rc == HO_OK && fused ? ho_fused_forward_prepare(c->capacity) : rc;
        rc = rc == HO_OK && fused ? ho_fused_gradient_prepare(c->capacity) : rc;
        rc = rc == HO_OK && c->learn.new_td ? ho_fused_new_td_prepare() : rc;
    }
    return rc;
}

ho_status ho_cuda_cohort_create(ho_backend *backend, ho_market *market, const ho_cohort_key *key,
                                int capacity, ho_cohort **out, ho_err *err)
{
    cuda_backend *b = (cuda_backend *)backend;
    size_t device_free = 0, device_total = 0;
    int fused = 0;
    const char *graph = getenv("HYPEROPT_CUDA_GRAPH");
    ho_status rc = ho_cuda_enter(b, err);
    rc = rc == HO_OK ? check_key(b, key, err) : rc;
    if (rc != HO_OK) {
        return rc;
    }
    if (key->market_features != market->host->F) {
        return ho_err_set(err, HO_EINVAL, "cohort: %d market features, the market has %d",
                          key->market_features, market->host->F);
    }
    cuda_cohort *c = (cuda_cohort *)calloc(1, sizeof *c);
    if (!c || !(c->config = (ho_lane_config *)calloc((size_t)capacity, sizeof *c->config)) ||
        !(c->used = (int *)calloc((size_t)capacity, sizeof *c->used))) {
        rc = ho_err_set(err, HO_ENOMEM, "cohort: out of memory for %d lanes", capacity);
        goto out;
    }
    c->base.backend = backend; /* destroy needs it */
    c->base.market = market;
    c->key = *key;
    c->capacity = capacity;
    c->without_graph = graph && strcmp(graph, "0") == 0;
    c->layout = ho_net_layout_of(key);
    c->memory = plan_memory(b, key, capacity, &c->net, &fused);
    rc = ho_cuda_status(cudaMemGetInfo(&device_free, &device_total), "cudaMemGetInfo");
    if (rc != HO_OK) {
        ho_cuda_leave(b, rc, err);
        goto out;
    }
    if (b->memory_limit > 0 && b->memory_limit < device_free) {
        device_free = b->memory_limit;
    }
    if (c->memory.total > device_free) {
        rc = ho_err_set(err, HO_ENOMEM, "cohort: %d lanes need %zu MB, %zu MB are free", capacity,
                        c->memory.total >> 20, device_free >> 20);
        goto out;
    }
    rc = key->precision == HO_PRECISION_FP8 ? ho_cuda_market_e4m3((cuda_market *)market) : HO_OK;
    rc = rc == HO_OK ? create_on_device(c, b, (const cuda_market *)market, fused) : rc;
    if (rc != HO_OK) {
        ho_cuda_leave(b, rc, err);
        goto out;
    }
    rc = ho_experience_prepare(&c->experience, err);
    rc = rc == HO_OK ? ho_cuda_backtest_check(&c->experience.policy, b->shared_limit, err) : rc;
    *out = &c->base;
out:
    if (rc != HO_OK) {
        *out = NULL;
        ho_cuda_cohort_destroy(c ? &c->base : NULL);
    }
    return rc;
}

void ho_cuda_cohort_destroy(ho_cohort *cohort)
{
    cuda_cohort *c = (cuda_cohort *)cohort;
    if (!c) {
        return;
    }
    cuda_backend *b = (cuda_backend *)c->base.backend;
    if (b) {
        cudaSetDevice(b->device);
        ho_device_pool_release(&b->pool, (void **)&c->block, c->stream);
    }
    if (c->epoch) {
        cudaGraphExecDestroy(c->epoch);
    }
    if (c->stream) {
        cudaStreamDestroy(c->stream);
    }
    for (int i = 0; i < HO_COHORT_DEPTH; i++) {
        if (c->done[i]) {
            cudaEventDestroy(c->done[i]);
        }
    }
    cudaFreeHost(c->stat);
    free(c->config);
    free(c->used);
    free(c);
}

/* ---- the epoch ------------------------------------------------------------------------------- */

/* The ring, then the updates. */
static ho_status enqueue_dqn(cuda_cohort *c)
{
    ho_range_begin("transitions");
    ho_status rc = ho_range_end(ho_experience_store(&c->experience, c->stream));
    ho_range_begin("priorities of new experience");
    rc = ho_range_end(rc == HO_OK ? ho_learn_first_priorities(&c->learn, c->stream) : rc);
    const int updates = ho_epoch_updates(&c->key);
    ho_range_begin("updates");
    for (int u = 0; u < updates && rc == HO_OK; u++) {
        rc = ho_learn_update(&c->learn, u, c->stream);
    }
    return ho_range_end(rc);
}

static ho_status enqueue_ppo(cuda_cohort *c)
{
    ho_range_begin("PPO: values, advantages, minibatches");
    return ho_range_end(ho_ppo_learn(&c->ppo, c->stream));
}

/* Masked lanes are the present ones, not those that learning stops. */
static ho_status enqueue_curiosity(cuda_cohort *c)
{
    const ho_experience_view *e = &c->experience;
    ho_range_begin("curiosity");
    const ho_status rc = ho_trace_rows(e, HO_TRACE_VALID, c->ppo.row, c->ppo.row_count, c->stream);
    return ho_range_end(rc == HO_OK
                            ? ho_curiosity_train(e, c->ppo.row, c->ppo.row_count,
                                                 (float *)slice(c, HO_SLICE_CURIOSITY), c->stream)
                            : rc);
}

/* The acting weights, the steps, their statistics. */
static ho_status enqueue_experience(cuda_cohort *c)
{
    const ho_experience_view *e = &c->experience;
    ho_range_begin("experience");
    ho_status rc = ho_epoch_open(e, c->stream);
    rc = rc == HO_OK
             ? ho_policy_pack(&e->policy, c->learn.online, c->net.params,
                              (uint8_t *)slice(c, HO_SLICE_PACKED), 0, c->capacity, c->stream)
             : rc;
    rc = rc == HO_OK ? ho_experience_run(e, c->stream) : rc;
    rc = ho_range_end(rc);
    ho_range_begin("statistics");
    return ho_range_end(rc == HO_OK ? ho_experience_stats(e, c->stream) : rc);
}

/* Everything of an epoch on the cohort's stream, in order. */
static ho_status enqueue_epoch(cuda_cohort *c)
{
    ho_status rc = enqueue_experience(c);
    if (c->key.curiosity) {
        rc = rc == HO_OK ? enqueue_curiosity(c) : rc;
    }
    if (c->key.algorithm == HO_PPO) {
        rc = rc == HO_OK ? enqueue_ppo(c) : rc;
    } else {
        rc = rc == HO_OK ? enqueue_dqn(c) : rc;
    }
    rc = rc == HO_OK ? ho_epoch_close(&c->experience, c->stream) : rc;
    return rc == HO_OK && c->key.algorithm == HO_PPO ? ho_ppo_close(&c->ppo, c->stream) : rc;
}

static ho_status capture_epoch(cuda_cohort *c)
{
    cudaGraph_t graph = NULL;
    ho_status rc = ho_cuda_status(
        cudaStreamBeginCapture(c->stream, cudaStreamCaptureModeThreadLocal), "begin capture");
    if (rc != HO_OK) {
        return rc;
    }
    rc = enqueue_epoch(c);
    const ho_status ended = ho_cuda_status(cudaStreamEndCapture(c->stream, &graph), "end capture");
    rc = rc == HO_OK ? ended : rc;
    rc =
        rc == HO_OK ? ho_cuda_status(cudaGraphInstantiate(&c->epoch, graph, 0), "instantiate") : rc;
    if (graph) {
        cudaGraphDestroy(graph);
    }
    return rc;
}

/* The captured epoch; with HYPEROPT_CUDA_GRAPH=0 the same launches one by one. */
static ho_status launch(cuda_cohort *c)
{
    if (c->without_graph) {
        return enqueue_epoch(c);
    }
    ho_status rc = HO_OK;
    if (!c->epoch) {
        ho_range_begin("capture");
        rc = ho_range_end(capture_epoch(c));
    }
    return rc == HO_OK ? ho_cuda_status(cudaGraphLaunch(c->epoch, c->stream), "launch of an epoch")
                       : rc;
}

ho_status ho_cuda_launch_epoch(ho_cohort *cohort, ho_err *err)
{
    cuda_cohort *c = (cuda_cohort *)cohort;
    cuda_backend *b = (cuda_backend *)cohort->backend;
    const int at = (int)(c->epochs_launched % HO_COHORT_DEPTH);
    ho_status rc = ho_cuda_enter(b, err);
    if (rc != HO_OK) {
        return rc;
    }
    rc = launch(c);
    rc =
        rc == HO_OK
            ? ho_cuda_status(cudaMemcpyAsync(c->stat + (size_t)at * c->capacity, c->experience.stat,
                                             (size_t)c->capacity * sizeof *c->stat,
                                             cudaMemcpyDeviceToHost, c->stream),
                             "copy of statistics")
            : rc;
    rc = rc == HO_OK ? ho_cuda_status(cudaEventRecord(c->done[at], c->stream), "event of an epoch")
                     : rc;
    c->epochs_launched += rc == HO_OK;
    return ho_cuda_leave(b, rc, err);
}

ho_status ho_cuda_collect_epoch(ho_cohort *cohort, ho_epoch_stat *stats, ho_err *err)
{
    cuda_cohort *c = (cuda_cohort *)cohort;
    cuda_backend *b = (cuda_backend *)cohort->backend;
    const int at = (int)(c->epochs_collected % HO_COHORT_DEPTH);
    ho_status rc = ho_cuda_enter(b, err);
    if (rc != HO_OK) {
        return rc;
    }
    ho_range_begin("wait");
    rc = ho_range_end(ho_cuda_wait_event(c->done[at], "epoch"));
    if (rc != HO_OK) {
        return ho_cuda_leave(b, rc, err);
    }
    c->epochs_collected++;
    memcpy(stats, c->stat + (size_t)at * c->capacity, (size_t)c->capacity * sizeof *stats);
    return HO_OK;
}
