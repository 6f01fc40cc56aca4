/* SPDX-License-Identifier: Apache-2.0
 * A lane's state in and out: named tensors, whole checkpoints, copies between slots.
 *
 * A checkpoint is a header, then the sections of walk_state in order, each a plain array. It is
 * read back only where the cohort key is equal and the checksum holds, and every index inside is
 * checked before it is used. Integers and floats are in the machine's order: a checkpoint is
 * resumed on the kind of machine that wrote it, as its bits depend on it anyway. */
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/cohort.h"

/* ---- tensors ---- */

ho_status ho_cpu_lane_export(ho_cohort *cohort, int slot, ho_tensors *out, ho_err *err)
{
    const ho_net_layout *net = &ho_cpu_cohort_of(cohort)->shape.net;
    ho_net_tensor table[HO_NET_TENSORS_MAX];
    ho_lane *lane;
    ho_status rc = ho_cpu_cohort_lane(cohort, slot, &lane, err);
    if (rc != HO_OK) {
        return rc;
    }
    const int n = ho_net_layout_tensors(net, table);
    if (!(out->tensor = calloc((size_t)n, sizeof *out->tensor))) {
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
        if (!(t->data = malloc((size_t)table[i].count * sizeof(float)))) {
            rc = ho_err_set(err, HO_ENOMEM, "export: out of memory");
            goto out;
        }
        memcpy(t->data, lane->online + table[i].offset, (size_t)table[i].count * sizeof(float));
    }
out:
    if (rc != HO_OK) {
        ho_tensors_free(out);
    }
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

ho_status ho_cpu_lane_import(ho_cohort *cohort, int slot, const ho_tensors *weights, ho_err *err)
{
    const ho_lane_shape *shape = &ho_cpu_cohort_of(cohort)->shape;
    ho_net_tensor table[HO_NET_TENSORS_MAX];
    ho_lane *lane;
    ho_status rc = ho_cpu_cohort_lane(cohort, slot, &lane, err);
    if (rc != HO_OK) {
        return rc;
    }
    const int n = ho_net_layout_tensors(&shape->net, table);
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
            return ho_err_set(err, HO_EINVAL, "weights: %s is [%lld, %lld], wanted [%lld, %lld]",
                              t->name, (long long)t->shape[0],
                              (long long)(t->ndim == 2 ? t->shape[1] : 1),
                              (long long)table[i].shape[0], (long long)table[i].shape[1]);
        }
    }
    for (int i = 0; i < n; i++) {
        const ho_tensor *t = find_tensor(weights, table[i].name);
        memcpy(lane->online + table[i].offset, t->data, (size_t)table[i].count * sizeof(float));
    }
    memcpy(lane->target, lane->online, (size_t)shape->net.size * sizeof(float));
    ho_lane_pack_acting(shape, lane);
    return HO_OK;
}

/* ---- population ---- */

ho_status ho_cpu_lane_copy(ho_cohort *cohort, int dst, int src, ho_err *err)
{
    const ho_lane_shape *shape = &ho_cpu_cohort_of(cohort)->shape;
    const size_t bytes = (size_t)shape->net.size * sizeof(float);
    ho_lane *to, *from;
    ho_status rc = ho_cpu_cohort_lane(cohort, dst, &to, err);
    if (rc != HO_OK || (rc = ho_cpu_cohort_lane(cohort, src, &from, err)) != HO_OK) {
        return rc;
    }
    if (from->n.state != HO_LANE_ACTIVE) {
        return ho_err_set(err, HO_EINVAL, "lane slot %d has diverged: nothing to copy", src);
    }
    if (to == from) {
        return HO_OK;
    }
    memcpy(to->online, from->online, bytes);
    memcpy(to->target, from->target, bytes);
    memcpy(to->m, from->m, bytes);
    memcpy(to->v, from->v, bytes);
    to->n.updates = from->n.updates; /* the moments' bias correction goes with them */
    to->n.low_gradients = from->n.low_gradients;
    if (shape->key.curiosity) {
        const size_t size = HO_CURIOSITY_SIZE * sizeof(float);
        memcpy(to->curiosity.parameter, from->curiosity.parameter, size);
        memcpy(to->curiosity.m, from->curiosity.m, size);
        memcpy(to->curiosity.v, from->curiosity.v, size);
        to->n.curiosity_updates = from->n.curiosity_updates;
        ho_curiosity_pack(&to->curiosity);
    }
    if (to->n.state != HO_LANE_ACTIVE) { /* revived by the copy */
        to->n.state = HO_LANE_ACTIVE;
        to->n.guard = HO_GUARD_NONE;
        to->n.epoch = from->n.epoch;
    }
    ho_lane_pack_acting(shape, to);
    return HO_OK;
}

ho_status ho_cpu_lane_set_agent(ho_cohort *cohort, int slot, const ho_agent_config *agent,
                                ho_err *err)
{
    ho_lane *lane;
    ho_status rc = ho_cpu_cohort_lane(cohort, slot, &lane, err);
    if (rc == HO_OK) {
        rc = ho_agent_config_check(&ho_cpu_cohort_of(cohort)->shape.key, agent, err);
    }
    if (rc == HO_OK) {
        lane->config.agent = *agent;
    }
    return rc;
}

/* ---- checkpoints ---- */

enum { STATE_VERSION = 1 };
static const char state_magic[8] = "HOLANE\n";

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

typedef void (*visit_fn)(void *arg, void *data, size_t bytes);

/* Visits every array of the state in the order of the blob; fill: transitions of the ring, or 0. */
static void walk_state(const ho_lane_shape *s, ho_lane *l, int32_t fill, visit_fn visit, void *arg)
{
    const size_t n = (size_t)s->key.episodes, net = (size_t)s->net.size * sizeof(float);
    visit(arg, &l->n, sizeof l->n);
    visit(arg, l->online, net);
    visit(arg, l->target, net);
    visit(arg, l->m, net);
    visit(arg, l->v, net);
    if (s->key.curiosity) {
        visit(arg, l->curiosity.parameter, HO_CURIOSITY_SIZE * sizeof(float));
        visit(arg, l->curiosity.m, HO_CURIOSITY_SIZE * sizeof(float));
        visit(arg, l->curiosity.v, HO_CURIOSITY_SIZE * sizeof(float));
    }
    visit(arg, l->slot, n * sizeof *l->slot);
    visit(arg, l->ring, n * HO_RING_WORDS_MAX * sizeof *l->ring);
    visit(arg, l->hold, n * sizeof *l->hold);
    visit(arg, l->ledger, n * sizeof *l->ledger);
    visit(arg, l->moments, n * sizeof *l->moments);
    if (fill > 0) {
        ho_replay *r = &l->replay;
        const size_t rows = (size_t)fill, row = (size_t)r->columns * sizeof(float);
        visit(arg, r->bar, rows * sizeof *r->bar);
        visit(arg, r->reward, rows * sizeof *r->reward);
        visit(arg, r->discount, rows * sizeof *r->discount);
        visit(arg, r->before, rows * row);
        visit(arg, r->after, rows * row);
        visit(arg, r->action, rows * sizeof *r->action);
        visit(arg, r->steps, rows * sizeof *r->steps);
        if (r->kind == HO_REPLAY_PER) {
            visit(arg, r->tree.node + r->tree.leaves, rows * sizeof *r->tree.node);
        } else if (r->kind == HO_REPLAY_PER_RANK) {
            visit(arg, r->td, rows * sizeof *r->td);
        }
    }
}

static void measure(void *arg, void *data, size_t bytes)
{
    (void)data;
    *(size_t *)arg += bytes;
}

static void write_out(void *arg, void *data, size_t bytes)
{
    unsigned char **at = arg;
    memcpy(*at, data, bytes);
    *at += bytes;
}

static void read_in(void *arg, void *data, size_t bytes)
{
    const unsigned char **at = arg;
    memcpy(data, *at, bytes);
    *at += bytes;
}

ho_status ho_cpu_lane_save(ho_cohort *cohort, int slot, int replay, void **blob, size_t *size,
                           ho_err *err)
{
    const ho_lane_shape *shape = &ho_cpu_cohort_of(cohort)->shape;
    ho_lane *lane;
    ho_status rc = ho_cpu_cohort_lane(cohort, slot, &lane, err);
    if (rc != HO_OK) {
        return rc;
    }
    state_header h;
    memset(&h, 0, sizeof h);
    memcpy(h.magic, state_magic, sizeof h.magic);
    h.version = STATE_VERSION;
    h.replay = replay != 0;
    h.key = shape->key;
    h.head = replay ? lane->replay.head : 0;
    h.fill = replay ? lane->replay.fill : 0;
    size_t total = sizeof h;
    walk_state(shape, lane, h.fill, measure, &total);
    h.size = total;
    unsigned char *bytes = malloc(total);
    if (!bytes) {
        return ho_err_set(err, HO_ENOMEM, "checkpoint: out of memory");
    }
    unsigned char *at = bytes + sizeof h;
    walk_state(shape, lane, h.fill, write_out, &at);
    h.checksum = fnv1a(bytes + sizeof h, total - sizeof h);
    memcpy(bytes, &h, sizeof h);
    *blob = bytes;
    *size = total;
    return HO_OK;
}

static ho_status check_header(const ho_lane_shape *s, ho_lane *lane, const void *blob, size_t size,
                              state_header *h, ho_err *err)
{
    if (size < sizeof *h || memcmp(blob, state_magic, sizeof h->magic) != 0) {
        return ho_err_set(err, HO_EINVAL, "checkpoint: not a lane's state");
    }
    memcpy(h, blob, sizeof *h);
    if (h->version != STATE_VERSION) {
        return ho_err_set(err, HO_EINVAL, "checkpoint: version %d, this program reads %d",
                          h->version, STATE_VERSION);
    }
    if (memcmp(&h->key, &s->key, sizeof h->key) != 0) {
        return ho_err_set(err, HO_EINVAL, "checkpoint: of a cohort of another shape");
    }
    const int32_t capacity = s->key.algorithm == HO_DQN ? s->key.replay_capacity : 0;
    if (h->fill < 0 || h->fill > capacity || h->head < 0 || (h->head > 0 && h->head >= capacity)) {
        return ho_err_set(err, HO_EINVAL, "checkpoint: damaged (replay of %d)", h->fill);
    }
    size_t total = sizeof *h;
    walk_state(s, lane, h->fill, measure, &total);
    if (h->size != total || size != total) {
        return ho_err_set(err, HO_EINVAL, "checkpoint: %zu bytes, wanted %zu: torn", size, total);
    }
    if (h->checksum != fnv1a((const unsigned char *)blob + sizeof *h, size - sizeof *h)) {
        return ho_err_set(err, HO_EINVAL, "checkpoint: checksum does not match: damaged");
    }
    return HO_OK;
}

/* Everything that is later used as an index. */
static int indices_hold(const ho_lane_shape *s, const ho_lane *l, const ho_market_host *host)
{
    for (int32_t i = 0; i < s->key.episodes; i++) {
        const ho_env *e = &l->slot[i];
        const int32_t total = ho_category_total(e);
        if (e->active && (e->t < l->env.begin || ho_is_last_bar(&l->env, &host->view, e->t))) {
            return 0;
        }
        if (e->ring_head < 0 || e->ring_head >= l->env.config.diversity_window || total < 0 ||
            total > l->env.config.diversity_window || e->category_count[0] < 0 ||
            e->category_count[1] < 0 || e->category_count[2] < 0 || l->ledger[i].closed_count < 0 ||
            l->ledger[i].closed_count > HO_CLOSED_MAX) {
            return 0;
        }
        for (int d = 0; d < s->net.branches.count; d++) {
            const int32_t choice = l->hold[i].choice[d];
            if (choice < 0 || choice >= s->net.branches.size[d]) {
                return 0;
            }
        }
    }
    for (int32_t i = 0; i < l->replay.fill; i++) {
        const int64_t bar = l->replay.bar[i];
        if (bar < 0 || bar + l->replay.steps[i] >= host->T || l->replay.action[i] >= HO_ACTIONS) {
            return 0;
        }
    }
    return l->n.epoch >= 0 && l->n.updates >= 0;
}

ho_status ho_cpu_lane_restore(ho_cohort *cohort, int slot, const ho_lane_config *config,
                              const void *blob, size_t size, ho_err *err)
{
    ho_cpu_cohort *c = ho_cpu_cohort_of(cohort);
    state_header h;
    ho_status rc = ho_cpu_lane_start(cohort, slot, config, err);
    if (rc != HO_OK) {
        return rc;
    }
    ho_lane *lane = c->lane[slot];
    if ((rc = check_header(&c->shape, lane, blob, size, &h, err)) != HO_OK) {
        goto out;
    }
    const unsigned char *at = (const unsigned char *)blob + sizeof h;
    walk_state(&c->shape, lane, h.fill, read_in, &at);
    lane->replay.head = h.head;
    lane->replay.fill = h.fill;
    if (!indices_hold(&c->shape, lane, c->host)) {
        rc = ho_err_set(err, HO_EINVAL,
                        "checkpoint: does not fit this lane's window or environment");
        goto out;
    }
    if (c->shape.key.algorithm == HO_DQN && lane->replay.kind == HO_REPLAY_PER) {
        ho_sum_tree_rebuild(&lane->replay.tree);
    }
    if (c->shape.key.curiosity) {
        ho_curiosity_pack(&lane->curiosity);
    }
    if (lane->n.epoch > 0 && config->env.sizing == HO_SIZING_KELLY) {
        lane->env.config.kelly_share = ho_kelly_share(&lane->env.config, &lane->n.kelly);
        lane->config.env.kelly_share = lane->env.config.kelly_share;
    }
    ho_lane_pack_acting(&c->shape, lane);
out:
    if (rc != HO_OK) {
        ho_cpu_lane_stop(cohort, slot);
    }
    return rc;
}
