/* SPDX-License-Identifier: Apache-2.0
 * See checkpoints.h. */
#include "worker/checkpoints.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "study/log.h"
#include "worker/report.h"

enum { TRIALS_MAX = 4096, BLOB_MAX_MB = 16384 };

/* A running trial: when it was saved last. */
struct saved {
    int64_t trial;
    int32_t attempt;
    int32_t epoch; /* of the last save */
    int64_t at_ms; /* of the last save, or of its first epoch */
    bool due;
};

/* An order whose checkpoint is on its way. */
struct expected {
    ho_trial_order order;
    uint8_t *blob;
    uint64_t got, total;
    int64_t heard_ms;
};

struct ho_checkpoints {
    int every;
    int64_t interval_ms;
    bool replay;
    struct saved *saved;
    int saved_count;
    int turn; /* of saved: whose save comes next, if it is due */
    struct expected *expected;
    int expected_count;
};

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

ho_checkpoints *ho_checkpoints_create(int every, int64_t interval_ms, bool replay)
{
    ho_checkpoints *c = calloc(1, sizeof *c);
    if (c) {
        c->every = every;
        c->interval_ms = interval_ms;
        c->replay = replay;
    }
    return c;
}

static void remove_expected(ho_checkpoints *c, int i)
{
    free(c->expected[i].blob);
    free(c->expected[i].order.config);
    c->expected_count--;
    memmove(&c->expected[i], &c->expected[i + 1],
            (size_t)(c->expected_count - i) * sizeof c->expected[0]);
}

void ho_checkpoints_destroy(ho_checkpoints **checkpoints)
{
    if (!checkpoints || !*checkpoints) {
        return;
    }
    while ((*checkpoints)->expected_count > 0) {
        remove_expected(*checkpoints, (*checkpoints)->expected_count - 1);
    }
    free((*checkpoints)->expected);
    free((*checkpoints)->saved);
    free(*checkpoints);
    *checkpoints = NULL;
}

/* ---- saving -------------------------------------------------------------------------------- */

static struct saved *saved_of(ho_checkpoints *c, const ho_trial_run *run)
{
    const ho_trial_plan *plan = run->plan;
    for (int i = 0; i < c->saved_count; i++) {
        if (c->saved[i].trial == plan->number && c->saved[i].attempt == plan->attempt) {
            return &c->saved[i];
        }
    }
    struct saved *grown = realloc(c->saved, (size_t)(c->saved_count + 1) * sizeof *grown);
    if (!grown) {
        return NULL;
    }
    c->saved = grown;
    c->saved[c->saved_count] =
        (struct saved){.trial = plan->number, .attempt = plan->attempt, .at_ms = now_ms()};
    return &c->saved[c->saved_count++];
}

void ho_checkpoints_note(ho_checkpoints *c, const ho_trial_run *run, int epoch)
{
    if (c->every == 0 || epoch >= run->plan->epochs) {
        return;
    }
    struct saved *saved = saved_of(c, run);
    if (saved && epoch - saved->epoch >= c->every && now_ms() - saved->at_ms >= c->interval_ms) {
        saved->due = true;
        saved->epoch = epoch;
        saved->at_ms = now_ms();
    }
}

void ho_checkpoints_send(const ho_checkpoints *c, ho_pool *pool, ho_link *link, int64_t trial,
                         int32_t attempt)
{
    ho_err err = {0};
    void *blob = NULL;
    size_t size = 0;
    ho_status rc = ho_pool_settle(pool, trial, &err);
    rc = rc == HO_OK ? ho_pool_checkpoint(pool, trial, attempt, c->replay, &blob, &size, &err) : rc;
    if (rc == HO_OK) {
        rc = ho_report_file(link, HO_CHUNK_CHECKPOINT, trial, attempt, "checkpoint", blob, size,
                            &err);
        ho_log(HO_LOG_DEBUG, "worker", "checkpoint trial=%lld attempt=%d bytes=%zu",
               (long long)trial, attempt, size);
    }
    if (rc != HO_OK && rc != HO_ENOTFOUND) {
        ho_log(HO_LOG_WARN, "worker", "no checkpoint of trial=%lld: %s", (long long)trial,
               err.text);
    }
    free(blob);
}

/* Drops notes of trials that have left the pool. */
static void forget_gone(ho_checkpoints *c, const ho_pool *pool)
{
    const ho_trial_run **run = calloc(TRIALS_MAX, sizeof *run);
    int n = run ? ho_pool_trials(pool, run, TRIALS_MAX) : 0, kept = 0;
    for (int i = 0; run && i < c->saved_count; i++) {
        bool here = false;
        for (int k = 0; k < n && !here; k++) {
            here = run[k]->plan->number == c->saved[i].trial &&
                   run[k]->plan->attempt == c->saved[i].attempt;
        }
        if (here) {
            c->saved[kept++] = c->saved[i];
        }
    }
    c->saved_count = run ? kept : c->saved_count;
    free(run);
}

void ho_checkpoints_send_due(ho_checkpoints *c, ho_pool *pool, ho_link *link)
{
    bool any = false;
    if (ho_link_saving(link)) {
        return; /* a slow line: the next ones would pile up behind those that wait for it */
    }
    for (int i = 0; i < c->saved_count && !any; i++) {
        struct saved *saved = &c->saved[(c->turn + i) % c->saved_count];
        if (saved->due) {
            saved->due = false;
            any = true;
            c->turn = (c->turn + i + 1) % c->saved_count;
            ho_checkpoints_send(c, pool, link, saved->trial, saved->attempt);
        }
    }
    if (any || c->saved_count > TRIALS_MAX) {
        forget_gone(c, pool);
    }
}

void ho_checkpoints_send_all(ho_checkpoints *c, ho_pool *pool, ho_link *link)
{
    ho_err err = {0};
    const ho_trial_run **run = calloc(TRIALS_MAX, sizeof *run);
    ho_status rc =
        ho_pool_settle(pool, -1, &err); /* trials end here, not while they are gone through */
    int n = run && rc == HO_OK ? ho_pool_trials(pool, run, TRIALS_MAX) : 0;
    for (int i = 0; i < n; i++) {
        if (run[i]->started_ns != 0) {
            ho_checkpoints_send(c, pool, link, run[i]->plan->number, run[i]->plan->attempt);
        }
    }
    free(run);
}

/* ---- resuming ------------------------------------------------------------------------------ */

ho_status ho_checkpoints_expect(ho_checkpoints *c, ho_trial_order *order, ho_err *err)
{
    struct expected *grown = realloc(c->expected, (size_t)(c->expected_count + 1) * sizeof *grown);
    if (!grown) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for an order");
    }
    c->expected = grown;
    c->expected[c->expected_count++] = (struct expected){.order = *order, .heard_ms = now_ms()};
    order->config = NULL;
    order->param_count = 0;
    return HO_OK;
}

void ho_checkpoints_chunk(ho_checkpoints *c, const ho_message *m)
{
    const ho_msg_chunk *chunk = &m->chunk;
    for (int i = 0; i < c->expected_count; i++) {
        struct expected *e = &c->expected[i];
        if (e->order.trial != m->trial || e->order.attempt != m->attempt ||
            strcmp(e->order.resume, chunk->sha256) != 0) {
            continue;
        }
        e->heard_ms = now_ms();
        if (chunk->offset == 0 && chunk->total <= (uint64_t)BLOB_MAX_MB << 20) {
            free(e->blob); /* from the start, or again from the start */
            e->blob = malloc(chunk->total > 0 ? (size_t)chunk->total : 1);
            e->total = e->blob ? chunk->total : 0;
            e->got = 0;
        }
        if (e->blob && chunk->offset == e->got && chunk->total == e->total &&
            chunk->count <= e->total - e->got) {
            memcpy(e->blob + e->got, chunk->bytes, chunk->count);
            e->got += chunk->count;
        }
        return;
    }
}

bool ho_checkpoints_forget(ho_checkpoints *c, int64_t trial, int32_t attempt)
{
    for (int i = 0; i < c->expected_count; i++) {
        if (c->expected[i].order.trial == trial && c->expected[i].order.attempt == attempt) {
            remove_expected(c, i);
            return true;
        }
    }
    return false;
}

bool ho_checkpoints_next(ho_checkpoints *c, int64_t patience_ms, ho_trial_order *order, void **blob,
                         size_t *size)
{
    *blob = NULL;
    *size = 0;
    for (int i = 0; i < c->expected_count; i++) {
        struct expected *e = &c->expected[i];
        bool complete = e->blob && e->got == e->total;
        if (!complete && now_ms() - e->heard_ms < patience_ms) {
            continue;
        }
        if (complete) {
            *blob = e->blob;
            *size = (size_t)e->total;
            e->blob = NULL;
        }
        *order = e->order;
        e->order.config = NULL;
        remove_expected(c, i);
        return true;
    }
    return false;
}

int ho_checkpoints_waiting(const ho_checkpoints *c)
{
    return c->expected_count;
}
