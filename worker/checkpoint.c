/* SPDX-License-Identifier: Apache-2.0
 * See checkpoint.h. One description of the layout serves both directions: `pass_*` functions move
 * bytes between memory and the blob, and the direction is the pass's. */
#include "worker/checkpoint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

enum {
    CHECKPOINT_VERSION = 2,
    ELEMENTS_MAX = 1 << 30, /* of one array; more is a damaged length */
    TENSORS_MAX = 256,
};
static const char magic[8] = "HOTRIAL";

/* 1. saving: bytes [0, at) are written, room grows.  2. loading: at <= size, never past it.
 * After the first failure (ok false) passes do nothing. */
struct pass {
    bool saving, ok;
    uint8_t *bytes;
    size_t at, size;
};

static void pass_bytes(struct pass *p, void *data, size_t size)
{
    if (!p->ok || size == 0) {
        return;
    }
    if (p->saving && p->size - p->at < size) {
        size_t room = 2 * p->size + size + 4096;
        uint8_t *grown = realloc(p->bytes, room);
        if (!grown) {
            p->ok = false;
            return;
        }
        p->bytes = grown;
        p->size = room;
    }
    if (p->size - p->at < size) {
        p->ok = false;
        return;
    }
    if (p->saving) {
        memcpy(p->bytes + p->at, data, size);
    } else {
        memcpy(data, p->bytes + p->at, size);
    }
    p->at += size;
}

#define PASS(p, field) pass_bytes(p, &(field), sizeof(field))

/* What was saved must be what is expected here. */
static void pass_same(struct pass *p, const void *expected, size_t size)
{
    uint8_t found[512];
    if (size > sizeof found) {
        p->ok = false;
        return;
    }
    memcpy(found, expected, size);
    pass_bytes(p, found, size);
    if (memcmp(found, expected, size) != 0) {
        p->ok = false;
    }
}

/* An array of *count elements; loading allocates it. NULL stands for no array. */
static void pass_array(struct pass *p, void **data, int64_t *count, size_t element)
{
    uint8_t present = *data != NULL;
    PASS(p, present);
    PASS(p, *count);
    if (!p->ok || !present) {
        return;
    }
    if (*count < 0 || *count > ELEMENTS_MAX ||
        (!p->saving && (size_t)*count > (p->size - p->at) / element)) {
        p->ok = false;
        return;
    }
    size_t bytes = (size_t)*count * element;
    if (!p->saving) {
        *data = malloc(bytes > 0 ? bytes : 1);
        p->ok = *data != NULL;
    }
    pass_bytes(p, *data, bytes);
}

static void pass_tensors(struct pass *p, ho_tensors *tensors)
{
    int32_t count = tensors->count;
    PASS(p, count);
    if (!p->ok || count < 0 || count > TENSORS_MAX) {
        p->ok = false;
        return;
    }
    if (!p->saving && count > 0) {
        tensors->tensor = calloc((size_t)count, sizeof *tensors->tensor);
        p->ok = tensors->tensor != NULL;
        tensors->count = p->ok ? count : 0;
    }
    for (int i = 0; p->ok && i < count; i++) {
        ho_tensor *t = &tensors->tensor[i];
        int64_t elements = 1;
        PASS(p, t->name);
        PASS(p, t->ndim);
        PASS(p, t->shape);
        for (int d = 0; p->ok && d < 4 && d < t->ndim; d++) {
            bool sane = t->shape[d] >= 0 && t->shape[d] <= ELEMENTS_MAX;
            elements = sane ? elements * t->shape[d] : -1;
            p->ok = sane && elements <= ELEMENTS_MAX;
        }
        p->ok = p->ok && t->ndim >= 0 && t->ndim <= 4;
        t->name[sizeof t->name - 1] = '\0';
        int64_t saved = elements;
        void *data = t->data;
        pass_array(p, &data, &saved, sizeof *t->data);
        t->data = data;
        p->ok = p->ok && saved == elements && data;
    }
}

static void pass_result(struct pass *p, ho_backtest_result *r)
{
    ho_backtest_result plain = *r;
    plain.session_return = NULL;
    plain.session_id = NULL;
    plain.equity = NULL;
    plain.bar_return = NULL;
    plain.trades = NULL;
    plain.actions = NULL;
    PASS(p, plain);
    const struct {
        size_t element;
        int64_t count; /* what the scalars say; an array that is there has so many */
    } array[] = {
        {sizeof *r->session_return, plain.sessions}, {sizeof *r->session_id, plain.sessions},
        {sizeof *r->equity, plain.bars + 1},         {sizeof *r->bar_return, plain.bars},
        {sizeof *r->trades, plain.trade_count},      {sizeof *r->actions, plain.bars},
    };
    void *data[] = {NULL, NULL, NULL, NULL, NULL, NULL};
    if (p->saving) {
        void *given[] = {r->session_return, r->session_id, r->equity,
                         r->bar_return,     r->trades,     r->actions};
        memcpy(data, given, sizeof data);
    }
    for (size_t i = 0; p->ok && i < sizeof array / sizeof *array; i++) {
        int64_t count = array[i].count;
        pass_array(p, &data[i], &count, array[i].element);
        p->ok = p->ok && (count == array[i].count || !data[i]);
    }
    if (!p->saving) {
        *r = plain;
        r->session_return = data[0];
        r->session_id = data[1];
        r->equity = data[2];
        r->bar_return = data[3];
        r->trades = data[4];
        r->actions = data[5];
    }
}

static void pass_lane(struct pass *p, ho_trial_run *run, int lane, ho_cohort *cohort, bool replay,
                      ho_err *err)
{
    ho_lane_run *state = &run->lane[lane];
    int32_t phase = (int32_t)state->phase;
    PASS(p, phase);
    PASS(p, state->epoch);
    PASS(p, state->best);
    PASS(p, state->best_epoch);
    pass_tensors(p, &state->best_weights);
    if (p->ok && (phase < HO_LANE_WAITING || phase > HO_LANE_FINISHED || state->epoch < 0 ||
                  state->epoch > run->plan->epochs)) {
        p->ok = false;
    }
    if (p->ok && phase == HO_LANE_FINISHED) {
        pass_tensors(p, &state->weights);
        int first = ho_trial_plan_first_test(run->plan, lane);
        for (int f = first; p->ok && f < first + ho_trial_plan_test_count(run->plan); f++) {
            pass_result(p, &run->test[f * run->plan->seeds + lane % run->plan->seeds]);
        }
        if (!p->saving) {
            state->phase = HO_LANE_FINISHED;
            run->finished++;
        }
    }
    if (p->ok && phase == HO_LANE_RUNNING) {
        void *blob = NULL;
        size_t size = 0;
        if (p->saving && ho_lane_save(cohort, state->slot, replay, &blob, &size, err) != HO_OK) {
            p->ok = false;
            return;
        }
        int64_t count = (int64_t)size;
        pass_array(p, &blob, &count, 1);
        if (p->saving) {
            free(blob);
        } else {
            state->blob = blob;
            state->blob_size = (size_t)count;
        }
    }
}

/* Rows that lanes have begun and not all have passed. */
static void pass_rows(struct pass *p, ho_trial_run *run)
{
    size_t lanes = (size_t)run->plan->lanes, values = lanes * (size_t)run->plan->objectives;
    PASS(p, run->rows_out);
    if (p->ok && (run->rows_out < 0 || run->rows_out > run->plan->epochs)) {
        p->ok = false;
    }
    for (int e = run->rows_out; p->ok && e < run->plan->epochs; e++) {
        uint8_t present = run->row[e] != NULL;
        PASS(p, present);
        if (!p->ok || !present) {
            continue;
        }
        ho_epoch_row *row = ho_trial_run_row(run, e);
        if (!row) {
            p->ok = false;
            return;
        }
        PASS(p, row->noted);
        PASS(p, row->scored);
        pass_bytes(p, row->stat, lanes * sizeof *row->stat);
        pass_bytes(p, row->value, values * sizeof *row->value);
        p->ok = p->ok && row->noted >= 0 && row->noted <= run->plan->lanes;
    }
}

static void pass_trial(struct pass *p, ho_trial_run *run, ho_cohort *cohort, bool replay,
                       ho_err *err)
{
    const ho_trial_plan *plan = run->plan;
    const int32_t shape[] = {CHECKPOINT_VERSION, plan->folds,  plan->agent_folds,
                             plan->seeds,        plan->epochs, plan->objectives};
    pass_same(p, magic, sizeof magic);
    pass_same(p, shape, sizeof shape);
    pass_same(p, &plan->number, sizeof plan->number);
    for (int f = 0; f < plan->folds; f++) {
        pass_same(p, &plan->fold[f], sizeof plan->fold[f]);
    }
    pass_same(p, &plan->key, sizeof plan->key);
    PASS(p, run->experiences);
    PASS(p, run->updates);
    pass_rows(p, run);
    for (int i = 0; p->ok && i < plan->lanes; i++) {
        pass_lane(p, run, i, cohort, replay, err);
    }
}

ho_status ho_checkpoint_save(const ho_trial_run *run, ho_cohort *cohort, bool replay, void **blob,
                             size_t *size, ho_err *err)
{
    struct pass p = {.saving = true, .ok = true};
    unsigned char digest[crypto_hash_sha256_BYTES];
    ho_trial_run view = *run; /* saving changes nothing; the passes serve both directions */
    *blob = NULL;
    *size = 0;
    pass_trial(&p, &view, cohort, replay, err);
    if (p.ok) {
        crypto_hash_sha256(digest, p.bytes, p.at);
        pass_bytes(&p, digest, sizeof digest);
    }
    if (!p.ok) {
        free(p.bytes);
        return err && err->text[0] ? err->code
                                   : ho_err_set(err, HO_ENOMEM, "out of memory for a checkpoint");
    }
    *blob = p.bytes;
    *size = p.at;
    return HO_OK;
}

/* The state of a run that has not started. */
static void reset(ho_trial_run *run)
{
    for (int i = 0; i < run->plan->lanes; i++) {
        ho_tensors_free(&run->lane[i].best_weights);
        ho_tensors_free(&run->lane[i].weights);
        free(run->lane[i].blob);
        run->lane[i] = (ho_lane_run){.slot = -1, .best = NAN};
    }
    for (int i = 0; i < run->plan->folds * run->plan->seeds; i++) {
        ho_backtest_free(&run->test[i]);
    }
    ho_trial_run_clear_rows(run);
    run->finished = 0;
    run->experiences = 0;
    run->updates = 0;
}

ho_status ho_checkpoint_load(ho_trial_run *run, const void *blob, size_t size, ho_err *err)
{
    unsigned char digest[crypto_hash_sha256_BYTES];
    if (size < sizeof digest) {
        return ho_err_set(err, HO_EINVAL, "the checkpoint is torn");
    }
    size_t body = size - sizeof digest;
    crypto_hash_sha256(digest, blob, body);
    if (memcmp(digest, (const uint8_t *)blob + body, sizeof digest) != 0) {
        return ho_err_set(err, HO_EINVAL, "the checkpoint is torn");
    }
    struct pass p = {.ok = true, .size = body};
    p.bytes = malloc(body > 0 ? body : 1);
    if (!p.bytes) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for a checkpoint");
    }
    memcpy(p.bytes, blob, body);
    pass_trial(&p, run, NULL, false, err);
    free(p.bytes);
    if (!p.ok || p.at != body) {
        reset(run);
        return ho_err_set(err, HO_EINVAL, "the checkpoint is of another trial or version");
    }
    return HO_OK;
}
