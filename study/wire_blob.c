/* SPDX-License-Identifier: Apache-2.0
 * See wire_blob.h. One function per type moves a value in the direction of the blob, so writer and
 * reader cannot drift apart. */
#include "study/wire_blob.h"

#include <stdlib.h>
#include <string.h>

static void fail(ho_blob *b, ho_status rc, const char *what)
{
    if (b->rc == HO_OK) {
        b->rc = rc;
        b->what = what;
    }
}

static bool reserve(ho_blob *b, size_t more)
{
    if (b->room - b->size >= more) {
        return true;
    }
    size_t room = b->room * 2 + more + 4096;
    uint8_t *grown = (uint8_t *)realloc(b->data, room);
    if (!grown) {
        fail(b, HO_ENOMEM, "out of memory");
        return false;
    }
    b->data = grown;
    b->room = room;
    return true;
}

/* n bytes of the value `bits`, lowest first. */
static void bytes(ho_blob *b, uint64_t *bits, size_t n)
{
    if (b->rc != HO_OK) {
        return;
    }
    if (b->writing) {
        if (reserve(b, n)) {
            for (size_t i = 0; i < n; i++) {
                b->data[b->size++] = (uint8_t)(*bits >> (8 * i));
            }
        }
    } else if (b->size - b->at < n) {
        fail(b, HO_EPROTO, "the binary part is too short");
    } else {
        *bits = 0;
        for (size_t i = 0; i < n; i++) {
            *bits |= (uint64_t)b->data[b->at++] << (8 * i);
        }
    }
}

static void u8(ho_blob *b, uint8_t *x)
{
    uint64_t bits = *x;
    bytes(b, &bits, 1);
    *x = (uint8_t)bits;
}

static void i32(ho_blob *b, int32_t *x)
{
    uint64_t bits = (uint32_t)*x;
    bytes(b, &bits, 4);
    *x = (int32_t)(uint32_t)bits;
}

static void i64(ho_blob *b, int64_t *x)
{
    uint64_t bits = (uint64_t)*x;
    bytes(b, &bits, 8);
    *x = (int64_t)bits;
}

static void f64(ho_blob *b, double *x)
{
    uint64_t bits;
    memcpy(&bits, x, sizeof bits);
    bytes(b, &bits, 8);
    memcpy(x, &bits, sizeof bits);
}

static void f64s(ho_blob *b, double *x, int64_t n)
{
    for (int64_t i = 0; i < n && b->rc == HO_OK; i++) {
        f64(b, &x[i]);
    }
}

static void i64s(ho_blob *b, int64_t *x, int64_t n)
{
    for (int64_t i = 0; i < n && b->rc == HO_OK; i++) {
        i64(b, &x[i]);
    }
}

/* Says whether an optional array of n items follows and, reading, allocates it; item_bytes is what
 * one takes in the blob. */
static bool array(ho_blob *b, void **x, int64_t n, size_t item_size, size_t item_bytes)
{
    uint8_t present = *x != NULL;
    u8(b, &present);
    if (b->rc != HO_OK || b->writing) {
        return b->rc == HO_OK && present;
    }
    if (!present) {
        return false;
    }
    if (present != 1 || n < 0 || (uint64_t)n > (b->size - b->at) / item_bytes) {
        fail(b, HO_EPROTO, "an array is longer than the message");
        return false;
    }
    *x = calloc((size_t)n + 1, item_size);
    if (!*x) {
        fail(b, HO_ENOMEM, "out of memory");
    }
    return *x != NULL;
}

static void count(ho_blob *b, int64_t *n)
{
    i64(b, n);
    if (b->rc == HO_OK && (*n < 0 || *n > INT32_MAX)) {
        fail(b, HO_EPROTO, "a count is out of range");
        *n = 0;
    }
}

static void metrics(ho_blob *b, ho_metric_set *m)
{
    int32_t known = HO_METRIC_COUNT, flags = (int32_t)m->flags;
    i32(b, &known);
    if (known != HO_METRIC_COUNT) {
        fail(b, HO_EPROTO, "another number of metrics");
    }
    f64s(b, m->value, HO_METRIC_COUNT);
    for (int i = 0; i < HO_METRIC_COUNT; i++) {
        u8(b, &m->reason[i]);
        if (m->reason[i] > HO_REASON_RUINED) {
            fail(b, HO_EPROTO, "an unknown reason of an undefined metric");
            m->reason[i] = 0;
        }
    }
    i32(b, &flags);
    m->flags = (unsigned)flags;
}

static void trade(ho_blob *b, ho_trade *t)
{
    i64(b, &t->entry_bar);
    i64(b, &t->exit_bar);
    f64(b, &t->entry_price);
    f64(b, &t->exit_price);
    i32(b, &t->side);
    i32(b, &t->reason);
    f64(b, &t->quantity);
    f64(b, &t->max_quantity);
    f64(b, &t->pnl);
    f64(b, &t->fees);
    f64(b, &t->net);
    if (b->rc == HO_OK && (t->reason < 0 || t->reason >= HO_EXIT_REASONS)) {
        fail(b, HO_EPROTO, "an unknown reason of a trade's end");
    }
}

enum { TRADE_BYTES = 9 * 8 + 2 * 4 };

static void result_arrays(ho_blob *b, ho_backtest_result *r)
{
    count(b, &r->sessions);
    if (array(b, (void **)&r->session_return, r->sessions, sizeof(double), 8)) {
        f64s(b, r->session_return, r->sessions);
    }
    if (array(b, (void **)&r->session_id, r->sessions, sizeof(int32_t), 4)) {
        for (int64_t i = 0; i < r->sessions; i++) {
            i32(b, &r->session_id[i]);
        }
    }
    count(b, &r->bars);
    if (array(b, (void **)&r->equity, r->bars + 1, sizeof(double), 8)) {
        f64s(b, r->equity, r->bars + 1);
    }
    if (array(b, (void **)&r->bar_return, r->bars, sizeof(double), 8)) {
        f64s(b, r->bar_return, r->bars);
    }
    if (array(b, (void **)&r->actions, r->bars, 1, 1)) {
        for (int64_t i = 0; i < r->bars; i++) {
            u8(b, &r->actions[i]);
        }
    }
    count(b, &r->trade_count);
    if (array(b, (void **)&r->trades, r->trade_count, sizeof(ho_trade), TRADE_BYTES)) {
        for (int64_t i = 0; i < r->trade_count; i++) {
            trade(b, &r->trades[i]);
        }
    }
}

static void result(ho_blob *b, ho_backtest_result *r)
{
    double *const money[] = {
        &r->initial_capital, &r->final_equity, &r->realised, &r->unrealised, &r->fees,  &r->spread,
        &r->impact,          &r->rounding,     &r->funding,  &r->open_pnl,   &r->traded};
    int64_t *const counts[] = {&r->steps, &r->trades_closed, &r->ambiguous_bars,
                               &r->position_changes};
    metrics(b, &r->metrics);
    for (size_t i = 0; i < sizeof money / sizeof *money; i++) {
        f64(b, money[i]);
    }
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        i64(b, counts[i]);
    }
    i32(b, &r->ruined);
    i64s(b, r->action_count, HO_ACTIONS);
    i64s(b, r->exit_count, HO_EXIT_REASONS);
    result_arrays(b, r);
}

void ho_blob_windows(ho_blob *b, ho_scored_window *window, int32_t n)
{
    for (int32_t w = 0; w < n && b->rc == HO_OK; w++) {
        for (size_t i = 0; i < sizeof window[w].policy; i++) {
            u8(b, (uint8_t *)&window[w].policy[i]);
        }
        if (b->rc == HO_OK && !memchr(window[w].policy, 0, sizeof window[w].policy)) {
            fail(b, HO_EPROTO, "a policy's name does not end");
        }
        i32(b, &window[w].fold);
        i32(b, &window[w].seed);
        if (b->rc == HO_OK && (window[w].fold < -1 || window[w].fold >= HO_FOLDS_MAX ||
                               window[w].seed < -1 || window[w].seed > 4096)) {
            fail(b, HO_EPROTO, "a fold or seed is out of range");
        }
        f64(b, &window[w].random_percentile);
        result(b, &window[w].result);
    }
}

static void window(ho_blob *b, ho_window *w)
{
    i64(b, &w->begin);
    i64(b, &w->end);
    if (b->rc == HO_OK && (w->begin < 0 || w->end < w->begin)) {
        fail(b, HO_EPROTO, "a fold's window ends before it begins");
    }
}

void ho_blob_plan(ho_blob *b, ho_fold_plan *plan)
{
    int32_t folds = plan->count;
    i32(b, &folds);
    if (b->rc == HO_OK && (folds < 0 || folds > HO_FOLDS_MAX)) {
        fail(b, HO_EPROTO, "too many folds");
    }
    plan->count = b->rc == HO_OK ? folds : 0;
    i64(b, &plan->purge);
    i64(b, &plan->step);
    i64(b, &plan->first);
    i64(b, &plan->T);
    window(b, &plan->holdout);
    for (int k = 0; k < plan->count; k++) {
        window(b, &plan->fold[k].train);
        window(b, &plan->fold[k].validation);
        window(b, &plan->fold[k].test);
    }
}

ho_status ho_blob_finish(ho_blob *b, ho_err *err)
{
    if (b->rc == HO_OK && !b->writing && b->at != b->size) {
        fail(b, HO_EPROTO, "the binary part is too long");
    }
    return b->rc == HO_OK ? HO_OK : ho_err_set(err, b->rc, "%s", b->what);
}

void ho_scored_window_clear(ho_scored_window *window)
{
    free(window->result.session_return);
    free(window->result.session_id);
    free(window->result.equity);
    free(window->result.bar_return);
    free(window->result.actions);
    free(window->result.trades);
    memset(window, 0, sizeof *window);
}
