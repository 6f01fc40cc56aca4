/* SPDX-License-Identifier: Apache-2.0
 * A lane's state in and out of its slot: start, weights, checkpoints, copies. All calls happen
 * between epochs. What they do is ordered by the cohort's stream, where the next epoch follows
 * without a wait; host memory here is pageable, so a copy is done with it when it returns.
 *
 * Weights travel as the flat vector of kernels/agents/net_layout.h; device memory holds them as
 * device_net.h says. A checkpoint is a header, then plain arrays; it is read back only where the
 * cohort key is equal and the checksum holds, and every index in it is checked. */
#include <stdlib.h>
#include <string.h>

#include "kernels/agents/agent_check.h"
#include "kernels/cpu/curiosity.h"
#include "kernels/cpu/init.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/env/step.h"

static ho_status check_used(const cuda_cohort *c, int slot, ho_err *err)
{
    return c->used[slot] ? HO_OK : ho_err_set(err, HO_EINVAL, "lane slot %d is free", slot);
}

static cuda_backend *backend_of(const cuda_cohort *c)
{
    return (cuda_backend *)c->base.backend;
}

/* ---- copies of one lane's part of a slice ---- */

static uint8_t *lane_part(const cuda_cohort *c, int id, int slot)
{
    return c->block + c->memory.at[id] + c->memory.lane_bytes[id] * (size_t)slot;
}

static ho_status put(const cuda_cohort *c, int id, int slot, const void *from, size_t bytes)
{
    return ho_cuda_status(
        cudaMemcpyAsync(lane_part(c, id, slot), from, bytes, cudaMemcpyHostToDevice, c->stream),
        "copy to a lane");
}

static ho_status get(const cuda_cohort *c, int id, int slot, void *to, size_t bytes)
{
    return ho_cuda_status(
        cudaMemcpyAsync(to, lane_part(c, id, slot), bytes, cudaMemcpyDeviceToHost, c->stream),
        "copy from a lane");
}

static ho_status zero(const cuda_cohort *c, int id, int slot)
{
    return ho_cuda_status(
        cudaMemsetAsync(lane_part(c, id, slot), 0, c->memory.lane_bytes[id], c->stream),
        "clear a lane");
}

static ho_status put_lane(const cuda_cohort *c, int slot, const ho_lane_device *lane)
{
    return put(c, HO_SLICE_LANE, slot, lane, sizeof *lane);
}

static ho_status get_lane(const cuda_cohort *c, int slot, ho_lane_device *lane)
{
    return get(c, HO_SLICE_LANE, slot, lane, sizeof *lane);
}

/* After the float32 weights changed. */
static ho_status refresh(const cuda_cohort *c, int slot)
{
    ho_status rc = ho_learn_copies(&c->learn, slot, c->stream);
    return rc == HO_OK
               ? ho_policy_pack(&c->experience.policy, c->learn.online, c->net.params,
                                (uint8_t *)lane_part(c, HO_SLICE_PACKED, 0), slot, 1, c->stream)
               : rc;
}

/* ---- flat vector <-> device layout ---- */

/* One layer of the vector and where its block lies in a device matrix. */
typedef struct block_map {
    int layer_id; /* ho_layer_id */
    int layer;    /* of the device network */
    int row, column;
} block_map;

static int block_maps(const ho_device_net *net, block_map *out)
{
    int n = 0;
    out[n++] = {HO_LAYER_TRUNK0, 0, 0, 0};
    out[n++] = {HO_LAYER_TRUNK1, 1, 0, 0};
    out[n++] = {HO_LAYER_MAIN0, 2, 0, 0};
    out[n++] = {HO_LAYER_MAIN1, 3, 0, 0};
    if (net->dueling) {
        out[n++] = {HO_LAYER_VALUE0, 2, net->half[2], net->separate ? net->half[1] : 0};
        out[n++] = {HO_LAYER_VALUE1, 3, net->values, net->half[2]};
    }
    if (net->separate) {
        out[n++] = {HO_LAYER_VALUE_TRUNK0, 0, net->half[0], 0};
        out[n++] = {HO_LAYER_VALUE_TRUNK1, 1, net->half[1], net->half[0]};
    }
    return n;
}

static void move_floats(float *device, float *flat, int n, int to_device)
{
    memcpy(to_device ? device : flat, to_device ? flat : device, (size_t)n * sizeof(float));
}

/* to_device: flat -> device (padding zero), else device -> flat. */
static void map_parameters(const cuda_cohort *c, float *device, float *flat, int to_device)
{
    block_map map[HO_LAYERS];
    const int n = block_maps(&c->net, map);
    if (to_device) {
        memset(device, 0, (size_t)c->net.params * sizeof(float));
    }
    for (int i = 0; i < n; i++) {
        const ho_layer_layout *from = &c->layout.layer[map[i].layer_id];
        const ho_device_dense *to = &c->net.layer[map[i].layer];
        for (int row = 0; row < from->out; row++) {
            const int weight = to->weight + (map[i].row + row) * to->in + map[i].column;
            const int bias = to->bias + map[i].row + row;
            move_floats(device + weight, flat + from->weight + (size_t)row * from->in, from->in,
                        to_device);
            move_floats(device + bias, flat + from->bias + row, 1, to_device);
            if (from->noisy) {
                move_floats(device + weight + ho_device_net_sigma_weight(&c->net),
                            flat + from->weight_sigma + (size_t)row * from->in, from->in,
                            to_device);
                move_floats(device + bias + ho_device_net_sigma_bias(&c->net),
                            flat + from->bias_sigma + row, 1, to_device);
            }
        }
    }
}

/* Two host buffers: one of the device layout, one flat. */
typedef struct weight_buffers {
    float *device, *flat;
} weight_buffers;

static ho_status buffers_create(const cuda_cohort *c, weight_buffers *b, ho_err *err)
{
    b->device = (float *)calloc((size_t)c->net.params, sizeof(float));
    b->flat = (float *)calloc((size_t)c->layout.size, sizeof(float));
    return b->device && b->flat ? HO_OK : ho_err_set(err, HO_ENOMEM, "weights: out of memory");
}

static void buffers_destroy(weight_buffers *b)
{
    free(b->device);
    free(b->flat);
    memset(b, 0, sizeof *b);
}

/* ---- start and stop ---- */

/* Fresh weights: online and target alike, moments 0; the forward model likewise. */
static ho_status put_fresh_weights(cuda_cohort *c, int slot, const float *device,
                                   const uint32_t key[2])
{
    float *curiosity = NULL;
    ho_status rc = put(c, HO_SLICE_ONLINE, slot, device, c->memory.lane_bytes[HO_SLICE_ONLINE]);
    rc = rc == HO_OK ? put(c, HO_SLICE_TARGET, slot, device, c->memory.lane_bytes[HO_SLICE_TARGET])
                     : rc;
    rc = rc == HO_OK ? zero(c, HO_SLICE_MOMENT1, slot) : rc;
    rc = rc == HO_OK ? zero(c, HO_SLICE_MOMENT2, slot) : rc;
    if (rc != HO_OK || !c->key.curiosity) {
        return rc;
    }
    if (!(curiosity = (float *)calloc(HO_CURIOSITY_STATE, sizeof *curiosity))) {
        return HO_ENOMEM;
    }
    rc = ho_curiosity_parameters(key, curiosity);
    rc = rc == HO_OK
             ? put(c, HO_SLICE_CURIOSITY, slot, curiosity, HO_CURIOSITY_STATE * sizeof *curiosity)
             : rc;
    free(curiosity);
    return rc;
}

static ho_status fill_lane(cuda_cohort *c, const ho_lane_config *config, ho_lane_device *lane,
                           ho_err *err)
{
    const double *sigma = NULL;
    if (config->env.state_form != c->key.state_form ||
        config->env.action_set != c->key.action_set) {
        return ho_err_set(err, HO_EINVAL,
                          "lane: state form or action set differs from the cohort's");
    }
    ho_status rc = ho_agent_config_check(&c->key, &config->agent, err);
    rc = rc == HO_OK ? ho_cuda_market_sigma((cuda_market *)c->base.market, c->base.market->host,
                                            config->env.sigma_window, &sigma, err)
                     : rc;
    if (rc != HO_OK) {
        return rc;
    }
    memset(lane, 0, sizeof *lane);
    ho_env_config env = config->env;
    env.kelly_share = 1.0; /* until there are enough trades */
    lane->agent = config->agent;
    lane->env =
        ho_env_lane_make(&env, config->train, c->key.episode_length, 0, config->rng_key, sigma);
    lane->active = 1;
    lane->total_updates = (int64_t)config->agent.epochs * ho_epoch_updates(&c->key);
    return HO_OK;
}

static ho_status put_fresh_slots(cuda_cohort *c, int slot)
{
    const size_t n = (size_t)c->key.episodes;
    ho_slot_device *slots = (ho_slot_device *)calloc(n, sizeof *slots);
    if (!slots) {
        return HO_ENOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        ho_env_clear(&slots[i].env);
    }
    ho_status rc = put(c, HO_SLICE_SLOT, slot, slots, n * sizeof *slots);
    rc = rc == HO_OK ? zero(c, HO_SLICE_RING, slot) : rc;
    rc = rc == HO_OK ? zero(c, HO_SLICE_LEDGER, slot) : rc;
    rc = rc == HO_OK ? zero(c, HO_SLICE_MOMENTS, slot) : rc;
    free(slots);
    return rc;
}

ho_status ho_cuda_lane_start(ho_cohort *cohort, int slot, const ho_lane_config *config, ho_err *err)
{
    cuda_cohort *c = (cuda_cohort *)cohort;
    ho_lane_device lane;
    weight_buffers w = {};
    if (c->used[slot]) {
        return ho_err_set(err, HO_EINVAL, "lane slot %d is taken", slot);
    }
    ho_status rc = ho_cuda_enter(backend_of(c), err);
    rc = rc == HO_OK ? fill_lane(c, config, &lane, err) : rc;
    rc = rc == HO_OK ? buffers_create(c, &w, err) : rc;
    if (rc != HO_OK) {
        goto out;
    }
    if (config->weights) {
        memcpy(w.flat, config->weights, (size_t)c->layout.size * sizeof(float));
    } else {
        rc = ho_net_init(&c->layout, config->agent.init, config->agent.noisy_sigma0, lane.env.key,
                         0, w.flat);
    }
    if (rc != HO_OK) {
        ho_err_set(err, rc, "lane slot %d: out of memory", slot);
        goto out;
    }
    map_parameters(c, w.device, w.flat, 1);
    rc = put_fresh_weights(c, slot, w.device, lane.env.key);
    rc = rc == HO_OK ? zero(c, HO_SLICE_PRIORITY, slot) : rc;
    rc = rc == HO_OK ? put_fresh_slots(c, slot) : rc;
    rc = rc == HO_OK ? put_lane(c, slot, &lane) : rc;
    rc = rc == HO_OK ? refresh(c, slot) : rc;
    if (rc != HO_OK) {
        ho_cuda_leave(backend_of(c), rc, err);
        goto out;
    }
    c->config[slot] = *config;
    c->config[slot].weights = NULL; /* read now and no more */
    c->used[slot] = 1;
out:
    buffers_destroy(&w);
    return rc;
}

ho_status ho_cuda_lane_stop(ho_cohort *cohort, int slot)
{
    cuda_cohort *c = (cuda_cohort *)cohort;
    ho_lane_device none;
    memset(&none, 0, sizeof none);
    ho_status rc = ho_cuda_enter(backend_of(c), NULL);
    rc = rc == HO_OK ? put_lane(c, slot, &none) : rc;
    c->used[slot] = 0;
    return rc;
}

/* ---- weights ---- */

ho_status ho_cuda_lane_export(ho_cohort *cohort, int slot, ho_tensors *out, ho_err *err)
{
    cuda_cohort *c = (cuda_cohort *)cohort;
    ho_net_tensor table[HO_NET_TENSORS_MAX];
    weight_buffers w = {};
    const int n = ho_net_layout_tensors(&c->layout, table);
    ho_status rc = check_used(c, slot, err);
    rc = rc == HO_OK ? ho_cuda_enter(backend_of(c), err) : rc;
    rc = rc == HO_OK ? buffers_create(c, &w, err) : rc;
    if (rc != HO_OK) {
        goto out;
    }
    rc = get(c, HO_SLICE_ONLINE, slot, w.device, c->memory.lane_bytes[HO_SLICE_ONLINE]);
    if (rc != HO_OK) {
        ho_cuda_leave(backend_of(c), rc, err);
        goto out;
    }
    map_parameters(c, w.device, w.flat, 0);
    if (!(out->tensor = (ho_tensor *)calloc((size_t)n, sizeof *out->tensor))) {
        rc = ho_err_set(err, HO_ENOMEM, "export: out of memory");
        goto out;
    }
    out->count = n;
    for (int i = 0; i < n; i++) {
        ho_tensor *t = &out->tensor[i];
        memcpy(t->name, table[i].name, sizeof t->name);
        t->ndim = table[i].ndim;
        t->shape[0] = table[i].shape[0];
        t->shape[1] = table[i].shape[1];
        if (!(t->data = (float *)malloc((size_t)table[i].count * sizeof(float)))) {
            rc = ho_err_set(err, HO_ENOMEM, "export: out of memory");
            goto out;
        }
        memcpy(t->data, w.flat + table[i].offset, (size_t)table[i].count * sizeof(float));
    }
out:
    if (rc != HO_OK) {
        ho_tensors_free(out);
    }
    buffers_destroy(&w);
    return rc;
}

static const ho_tensor *find_tensor(const ho_tensors *all, const char *name)
{
    for (int i = 0; i < all->count; i++) {
        if (strcmp(all->tensor[i].name, name) == 0) {
            return &all->tensor[i];
        }
    }
    return NULL;
}

static ho_status check_tensors(const ho_tensors *weights, const ho_net_tensor *table, int n,
                               ho_err *err)
{
    if (weights->count != n) {
        return ho_err_set(err, HO_EINVAL, "weights: %d tensors, this network has %d",
                          weights->count, n);
    }
    for (int i = 0; i < n; i++) {
        const ho_tensor *t = find_tensor(weights, table[i].name);
        if (!t) {
            return ho_err_set(err, HO_EINVAL, "weights: no tensor %s", table[i].name);
        }
        if (t->ndim != table[i].ndim || t->shape[0] != table[i].shape[0] ||
            (t->ndim == 2 && t->shape[1] != table[i].shape[1])) {
            return ho_err_set(err, HO_EINVAL, "weights: the shape of %s differs", t->name);
        }
    }
    return HO_OK;
}

ho_status ho_cuda_lane_import(ho_cohort *cohort, int slot, const ho_tensors *weights, ho_err *err)
{
    cuda_cohort *c = (cuda_cohort *)cohort;
    ho_net_tensor table[HO_NET_TENSORS_MAX];
    weight_buffers w = {};
    const int n = ho_net_layout_tensors(&c->layout, table);
    ho_status rc = check_used(c, slot, err);
    rc = rc == HO_OK ? check_tensors(weights, table, n, err) : rc;
    rc = rc == HO_OK ? ho_cuda_enter(backend_of(c), err) : rc;
    rc = rc == HO_OK ? buffers_create(c, &w, err) : rc;
    if (rc != HO_OK) {
        goto out;
    }
    for (int i = 0; i < n; i++) {
        memcpy(w.flat + table[i].offset, find_tensor(weights, table[i].name)->data,
               (size_t)table[i].count * sizeof(float));
    }
    map_parameters(c, w.device, w.flat, 1);
    rc = put(c, HO_SLICE_ONLINE, slot, w.device, c->memory.lane_bytes[HO_SLICE_ONLINE]);
    rc = rc == HO_OK
             ? put(c, HO_SLICE_TARGET, slot, w.device, c->memory.lane_bytes[HO_SLICE_TARGET])
             : rc;
    rc = rc == HO_OK ? refresh(c, slot) : rc;
    if (rc != HO_OK) {
        ho_cuda_leave(backend_of(c), rc, err);
    }
out:
    buffers_destroy(&w);
    return rc;
}

/* ---- population ---- */

ho_status ho_cuda_lane_copy(ho_cohort *cohort, int dst, int src, ho_err *err)
{
    static const int slices[] = {HO_SLICE_ONLINE, HO_SLICE_TARGET, HO_SLICE_MOMENT1,
                                 HO_SLICE_MOMENT2, HO_SLICE_CURIOSITY};
    cuda_cohort *c = (cuda_cohort *)cohort;
    ho_lane_device from, to;
    ho_status rc = check_used(c, dst, err);
    rc = rc == HO_OK ? check_used(c, src, err) : rc;
    rc = rc == HO_OK ? ho_cuda_enter(backend_of(c), err) : rc;
    if (rc != HO_OK || dst == src) {
        return rc;
    }
    rc = get_lane(c, src, &from);
    rc = rc == HO_OK ? get_lane(c, dst, &to) : rc;
    if (rc == HO_OK && from.guard != 0) {
        return ho_err_set(err, HO_EINVAL, "lane slot %d has diverged: nothing to copy", src);
    }
    for (size_t i = 0; i < sizeof slices / sizeof slices[0] && rc == HO_OK; i++) {
        rc = ho_cuda_status(
            cudaMemcpyAsync(lane_part(c, slices[i], dst), lane_part(c, slices[i], src),
                            c->memory.lane_bytes[slices[i]], cudaMemcpyDeviceToDevice, c->stream),
            "copy between lanes");
    }
    to.updates = from.updates; /* the moments' bias correction goes with them */
    to.small_gradients = from.small_gradients;
    to.curiosity_updates = from.curiosity_updates;
    if (to.guard != 0) { /* revived by the copy */
        to.guard = 0;
        to.epoch = from.epoch;
    }
    rc = rc == HO_OK ? put_lane(c, dst, &to) : rc;
    rc = rc == HO_OK ? refresh(c, dst) : rc;
    return ho_cuda_leave(backend_of(c), rc, err);
}

ho_status ho_cuda_lane_set_agent(ho_cohort *cohort, int slot, const ho_agent_config *agent,
                                 ho_err *err)
{
    cuda_cohort *c = (cuda_cohort *)cohort;
    ho_lane_device lane;
    ho_status rc = check_used(c, slot, err);
    rc = rc == HO_OK ? ho_agent_config_check(&c->key, agent, err) : rc;
    rc = rc == HO_OK ? ho_cuda_enter(backend_of(c), err) : rc;
    if (rc != HO_OK) {
        return rc;
    }
    rc = get_lane(c, slot, &lane);
    if (rc == HO_OK) {
        lane.agent = *agent;
        lane.total_updates = (int64_t)agent->epochs * ho_epoch_updates(&c->key);
        c->config[slot].agent = *agent;
        rc = put_lane(c, slot, &lane);
    }
    return ho_cuda_leave(backend_of(c), rc, err);
}

/* ---- checkpoints ---- */

enum { STATE_VERSION = 2 };
static const char state_magic[8] = "HOCUDA\n";

typedef struct state_header {
    char magic[8];
    int32_t version, replay; /* replay: the ring follows */
    ho_cohort_key key;
    int32_t head, fill; /* of the ring */
    uint64_t size;      /* of the whole blob */
    uint64_t checksum;  /* FNV-1a of everything after the header */
} state_header;

static uint64_t fnv1a(const unsigned char *p, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++) {
        h = (h ^ p[i]) * 0x100000001b3u;
    }
    return h;
}

/* Arrays of a checkpoint after the lane's struct, in order. */
static const int state_slices[] = {HO_SLICE_ONLINE,  HO_SLICE_TARGET,  HO_SLICE_MOMENT1,
                                   HO_SLICE_MOMENT2, HO_SLICE_SLOT,    HO_SLICE_RING,
                                   HO_SLICE_LEDGER,  HO_SLICE_MOMENTS, HO_SLICE_CURIOSITY};
enum { STATE_SLICES = sizeof state_slices / sizeof state_slices[0] };

/* Of a transition's priority. */
static size_t leaf_bytes(const cuda_cohort *c)
{
    return c->learn.priority.leaf ? sizeof(uint32_t) : 0;
}

static size_t state_size(const cuda_cohort *c, int fill)
{
    size_t bytes = sizeof(state_header) + sizeof(ho_lane_device);
    for (int i = 0; i < STATE_SLICES; i++) {
        bytes += c->memory.lane_bytes[state_slices[i]];
    }
    return bytes + (size_t)fill * (sizeof(ho_replay_record) + leaf_bytes(c));
}

ho_status ho_cuda_lane_save(ho_cohort *cohort, int slot, int replay, void **blob, size_t *size,
                            ho_err *err)
{
    cuda_cohort *c = (cuda_cohort *)cohort;
    ho_lane_device lane;
    ho_status rc = check_used(c, slot, err);
    rc = rc == HO_OK ? ho_cuda_enter(backend_of(c), err) : rc;
    if (rc != HO_OK) {
        return rc;
    }
    rc = get_lane(c, slot, &lane);
    if (rc != HO_OK) {
        return ho_cuda_leave(backend_of(c), rc, err);
    }
    if (!replay) {
        lane.replay_head = lane.replay_fill = 0;
    }
    lane.env.sigma = NULL; /* a device pointer means nothing elsewhere */
    state_header header;
    memset(&header, 0, sizeof header);
    memcpy(header.magic, state_magic, sizeof header.magic);
    header.version = STATE_VERSION;
    header.replay = replay != 0;
    header.key = c->key;
    header.head = lane.replay_head;
    header.fill = lane.replay_fill;
    header.size = state_size(c, lane.replay_fill);
    unsigned char *all = (unsigned char *)malloc(header.size);
    if (!all) {
        return ho_err_set(err, HO_ENOMEM, "checkpoint: out of memory for %zu MB",
                          (size_t)header.size >> 20);
    }
    unsigned char *at = all + sizeof header;
    memcpy(at, &lane, sizeof lane);
    at += sizeof lane;
    for (int i = 0; i < STATE_SLICES && rc == HO_OK; i++) {
        const size_t bytes = c->memory.lane_bytes[state_slices[i]];
        rc = get(c, state_slices[i], slot, at, bytes);
        at += bytes;
    }
    rc = rc == HO_OK ? get(c, HO_SLICE_REPLAY, slot, at,
                           (size_t)lane.replay_fill * sizeof(ho_replay_record))
                     : rc;
    at += (size_t)lane.replay_fill * sizeof(ho_replay_record);
    rc = rc == HO_OK ? get(c, HO_SLICE_PRIORITY, slot, at, (size_t)lane.replay_fill * leaf_bytes(c))
                     : rc;
    if (rc != HO_OK) {
        free(all);
        return ho_cuda_leave(backend_of(c), rc, err);
    }
    header.checksum = fnv1a(all + sizeof header, header.size - sizeof header);
    memcpy(all, &header, sizeof header);
    *blob = all;
    *size = header.size;
    return HO_OK;
}

/* Indices that kernels will follow, and proportional leaves, which are never 0. */
static ho_status check_state(const cuda_cohort *c, const ho_lane_config *config,
                             const state_header *header, const unsigned char *body, ho_err *err)
{
    size_t at = sizeof(ho_lane_device);
    ho_lane_device lane;
    memcpy(&lane, body, sizeof lane);
    int bad = lane.replay_head != header->head || lane.replay_fill != header->fill ||
              lane.epoch < 0 || lane.updates < 0;
    for (int i = 0; i < STATE_SLICES; i++) {
        const size_t bytes = c->memory.lane_bytes[state_slices[i]];
        for (int n = 0; state_slices[i] == HO_SLICE_SLOT && n < c->key.episodes; n++) {
            ho_slot_device s;
            memcpy(&s, body + at + (size_t)n * sizeof s, sizeof s);
            const ho_env *e = &s.env;
            bad |= e->active && (e->t < config->train.begin || e->t + 1 >= config->train.end);
            bad |= e->ring_head < 0 || e->ring_head >= config->env.diversity_window;
            for (int k = 0; k < 3; k++) {
                bad |=
                    e->category_count[k] < 0 || e->category_count[k] > config->env.diversity_window;
            }
            for (int d = 0; d < HO_BRANCHES_MAX; d++) {
                bad |= s.hold_choice[d] < 0 ||
                       (s.hold_choice[d] > 0 && s.hold_choice[d] >= c->net.branches.size[d]);
            }
        }
        at += bytes;
    }
    const int64_t T = c->base.market->host->T;
    for (int i = 0; i < header->fill; i++) {
        ho_replay_record r;
        memcpy(&r, body + at + (size_t)i * sizeof r, sizeof r);
        bad |= r.bar < 0 || r.bar >= T || r.next_bar < 0 || r.next_bar >= T || r.action < 0 ||
               r.action >= HO_ACTIONS;
    }
    at += (size_t)header->fill * sizeof(ho_replay_record);
    for (int i = 0; c->key.replay == HO_REPLAY_PER && i < header->fill; i++) {
        uint32_t leaf;
        memcpy(&leaf, body + at + (size_t)i * sizeof leaf, sizeof leaf);
        bad |= leaf == 0;
    }
    return bad ? ho_err_set(err, HO_EINVAL,
                            "checkpoint: does not fit this lane's window or environment")
               : HO_OK;
}

static ho_status check_blob(const cuda_cohort *c, const ho_lane_config *config, const void *blob,
                            size_t size, state_header *header, ho_err *err)
{
    const unsigned char *all = (const unsigned char *)blob;
    if (size < sizeof *header || memcmp(blob, state_magic, sizeof state_magic) != 0) {
        return ho_err_set(err, HO_EINVAL, "checkpoint: not one of this backend's");
    }
    memcpy(header, blob, sizeof *header);
    if (header->version != STATE_VERSION) {
        return ho_err_set(err, HO_EINVAL, "checkpoint: version %d, this build reads %d",
                          header->version, STATE_VERSION);
    }
    if (memcmp(&header->key, &c->key, sizeof c->key) != 0) {
        return ho_err_set(err, HO_EINVAL, "checkpoint: of a cohort with another shape");
    }
    const int32_t capacity = c->key.algorithm == HO_PPO ? 0 : c->key.replay_capacity;
    if (header->fill < 0 || header->fill > capacity || header->head < 0 ||
        header->head > (capacity > 0 ? capacity - 1 : 0) || header->size != size ||
        size != state_size(c, header->fill)) {
        return ho_err_set(err, HO_EINVAL, "checkpoint: cut off or of the wrong size");
    }
    if (header->checksum != fnv1a(all + sizeof *header, size - sizeof *header)) {
        return ho_err_set(err, HO_EINVAL, "checkpoint: its checksum does not hold");
    }
    return check_state(c, config, header, all + sizeof *header, err);
}

ho_status ho_cuda_lane_restore(ho_cohort *cohort, int slot, const ho_lane_config *config,
                               const void *blob, size_t size, ho_err *err)
{
    cuda_cohort *c = (cuda_cohort *)cohort;
    state_header header;
    ho_lane_device lane, saved;
    if (c->used[slot]) {
        return ho_err_set(err, HO_EINVAL, "lane slot %d is taken", slot);
    }
    ho_status rc = ho_cuda_enter(backend_of(c), err);
    rc = rc == HO_OK ? check_blob(c, config, blob, size, &header, err) : rc;
    rc = rc == HO_OK ? fill_lane(c, config, &lane, err) : rc;
    if (rc != HO_OK) {
        return rc;
    }
    const unsigned char *at = (const unsigned char *)blob + sizeof header;
    memcpy(&saved, at, sizeof saved);
    at += sizeof saved;
    const double *sigma = lane.env.sigma;
    const double kelly_share = saved.env.config.kelly_share;
    const ho_agent_config agent = lane.agent;
    const ho_env_lane env = lane.env;
    const int64_t total = lane.total_updates;
    lane = saved; /* counters; the settings are the caller's */
    lane.agent = agent;
    lane.env = env;
    lane.env.sigma = sigma;
    lane.env.config.kelly_share = kelly_share;
    lane.total_updates = total;
    lane.active = 1;
    for (int i = 0; i < STATE_SLICES && rc == HO_OK; i++) {
        const size_t bytes = c->memory.lane_bytes[state_slices[i]];
        rc = put(c, state_slices[i], slot, at, bytes);
        at += bytes;
    }
    rc = rc == HO_OK
             ? put(c, HO_SLICE_REPLAY, slot, at, (size_t)header.fill * sizeof(ho_replay_record))
             : rc;
    at += (size_t)header.fill * sizeof(ho_replay_record);
    rc = rc == HO_OK ? zero(c, HO_SLICE_PRIORITY, slot) : rc;
    rc =
        rc == HO_OK ? put(c, HO_SLICE_PRIORITY, slot, at, (size_t)header.fill * leaf_bytes(c)) : rc;
    rc = rc == HO_OK ? put_lane(c, slot, &lane) : rc;
    rc = rc == HO_OK ? refresh(c, slot) : rc;
    if (rc == HO_OK) {
        c->config[slot] = *config;
        c->config[slot].weights = NULL;
        c->used[slot] = 1;
    }
    return ho_cuda_leave(backend_of(c), rc, err);
}
