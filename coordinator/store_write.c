/* SPDX-License-Identifier: Apache-2.0
 * The writer's queue: ho_store_flush runs the rows in order in one transaction. Rows leave the
 * queue only after COMMIT, so a full disk or a failed write loses nothing. What the rows are is in
 * store_put.c. Contracts: store.h. */
#include "coordinator/store_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "study/log.h"

_Static_assert((int)HO_STATEMENT_COUNT <= (int)HO_STORE_STATEMENTS, "grow HO_STORE_STATEMENTS");

static const char *const statement_text[] = {
#define STATEMENT_TEXT(name, transition, text) text,
    HO_STORE_STATEMENT_MAP(STATEMENT_TEXT)
#undef STATEMENT_TEXT
};
static const bool statement_counts[] = {
#define STATEMENT_COUNTS(name, transition, text) transition,
    HO_STORE_STATEMENT_MAP(STATEMENT_COUNTS)
#undef STATEMENT_COUNTS
};
/* One allocation: the values, then the bytes of texts and blobs. */
struct ho_store_row {
    ho_store_row *next;
    int statement;
    int count;
    ho_row_value values[];
};
ho_status ho_store_row_put(ho_store *store, const ho_row_draft *d)
{
    size_t head = sizeof(ho_store_row) + (size_t)d->count * sizeof(ho_row_value), tail = 0;
    for (int i = 0; i < d->count; i++) {
        tail += d->values[i].size;
    }
    ho_store_row *row = (ho_store_row *)malloc(head + tail);
    if (!row) {
        store->failed_alloc = true;
        return HO_ENOMEM;
    }
    row->next = NULL;
    row->statement = d->statement;
    row->count = d->count;
    memcpy(row->values, d->values, (size_t)d->count * sizeof(ho_row_value));
    for (int i = 0; i < d->count; i++) {
        if (d->values[i].type == HO_ROW_TEXT || d->values[i].type == HO_ROW_BLOB) {
            row->values[i].as.offset = head;
            if (d->values[i].size > 0) {
                memcpy((char *)row + head, d->bytes[i], d->values[i].size);
            }
            head += d->values[i].size;
        }
    }
    if (store->last) {
        store->last->next = row;
    } else {
        store->first = row;
        store->oldest_ns = 0;
    }
    store->last = row;
    store->queued++;
    store->transitions += statement_counts[d->statement];
    return HO_OK;
}
/* ---- commit --------------------------------------------------------------------------------- */

int64_t ho_store_queued(const ho_store *store)
{
    return store->queued;
}

int64_t ho_store_committed(const ho_store *store)
{
    return store->committed;
}

const char *ho_store_paused(const ho_store *store)
{
    return store->paused[0] ? store->paused : NULL;
}

int64_t ho_store_due_in(const ho_store *store, int64_t now_ns)
{
    int64_t due = 0;
    if (!store->first) {
        return -1;
    }
    if (store->paused[0]) {
        due = store->retry_at_ns;
    } else if (store->transitions < store->options.group_max && store->oldest_ns > 0) {
        due = store->oldest_ns + store->options.group_ns;
    } else if (store->transitions < store->options.group_max) {
        due = now_ns + store->options.group_ns;
    }
    return due > now_ns ? due - now_ns : 0;
}

static int bind_row(sqlite3_stmt *statement, const ho_store_row *row)
{
    int rc = SQLITE_OK;
    for (int i = 0; i < row->count && rc == SQLITE_OK; i++) {
        const ho_row_value *v = &row->values[i];
        bool tail = v->type == HO_ROW_TEXT || v->type == HO_ROW_BLOB;
        const char *bytes = tail ? (const char *)row + v->as.offset : NULL;
        switch (v->type) {
        case HO_ROW_NULL:
            rc = sqlite3_bind_null(statement, i + 1);
            break;
        case HO_ROW_INT:
            rc = sqlite3_bind_int64(statement, i + 1, v->as.whole);
            break;
        case HO_ROW_REAL:
            rc = sqlite3_bind_double(statement, i + 1, v->as.real);
            break;
        case HO_ROW_TEXT:
            rc = sqlite3_bind_text(statement, i + 1, bytes, (int)v->size, SQLITE_STATIC);
            break;
        case HO_ROW_BLOB:
            rc = sqlite3_bind_blob(statement, i + 1, bytes, (int)v->size, SQLITE_STATIC);
            break;
        }
    }
    return rc;
}

static int run_row(ho_store *store, const ho_store_row *row)
{
    sqlite3_stmt **statement = &store->statement[row->statement];
    int rc = SQLITE_OK;
    if (!*statement) {
        rc = sqlite3_prepare_v3(store->db, statement_text[row->statement], -1,
                                SQLITE_PREPARE_PERSISTENT, statement, NULL);
    }
    if (rc == SQLITE_OK && (rc = bind_row(*statement, row)) == SQLITE_OK) {
        rc = sqlite3_step(*statement);
        rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
    }
    if (*statement) {
        (void)sqlite3_reset(*statement);
        (void)sqlite3_clear_bindings(*statement);
    }
    return rc;
}

/* Whether a failure comes from the world (disk, lock, memory) and may pass. */
static bool may_pass(int code)
{
    switch (code & 0xff) {
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_NOMEM:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PROTOCOL:
        return true;
    default:
        return false;
    }
}

static void queue_clear(ho_store *store)
{
    while (store->first) {
        ho_store_row *next = store->first->next;
        free(store->first);
        store->first = next;
    }
    store->last = NULL;
    store->transitions = 0;
    store->oldest_ns = 0;
}

static ho_status note_failure(ho_store *store, int code, int64_t now_ns, ho_err *err)
{
    char text[sizeof store->paused];
    (void)snprintf(text, sizeof text, "%.600s: %.300s", store->path, sqlite3_errmsg(store->db));
    if ((code & 0xff) == SQLITE_FULL) {
        (void)snprintf(text, sizeof text, "%.600s: the disk is full", store->path);
    }
    (void)sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    if ((code & 0xff) == SQLITE_FULL) { /* what the log holds twice makes room */
        (void)sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    }
    if (!may_pass(code)) {
        ho_log(HO_LOG_ERROR, "store", "refused: %s", text);
        return ho_err_set(err, HO_ESTORE, "%s", text);
    }
    if (!store->paused[0]) {
        ho_log(HO_LOG_ERROR, "store", "paused, results are kept in memory: %s", text);
    }
    memcpy(store->paused, text, sizeof store->paused);
    store->retry_at_ns =
        now_ns + ((code & 0xff) == SQLITE_BUSY ? store->options.group_ns : store->options.retry_ns);
    return ho_err_set(err, HO_EAGAIN, "%s", text);
}

static void note_commit(ho_store *store, const struct timespec *begin)
{
    struct timespec end;

    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    double s = (double)(end.tv_sec - begin->tv_sec) + 1e-9 * (double)(end.tv_nsec - begin->tv_nsec);
    store->health.commits++;
    store->health.commit_s += s;
    if (s > store->health.commit_max_s) {
        store->health.commit_max_s = s;
    }
}

ho_store_health ho_store_get_health(const ho_store *store)
{
    return store->health;
}

ho_status ho_store_flush(ho_store *store, int64_t now_ns, bool force, ho_err *err)
{
    struct timespec begin;
    int code = SQLITE_OK;

    if (store->failed_alloc) {
        return ho_err_set(err, HO_ENOMEM, "out of memory while keeping results");
    }
    if (!store->first) {
        return HO_OK;
    }
    if (store->oldest_ns == 0) {
        store->oldest_ns = now_ns;
    }
    if (!force && ho_store_due_in(store, now_ns) > 0) {
        return store->paused[0] ? HO_EAGAIN : HO_OK;
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &begin);
    (void)sqlite3_busy_timeout(store->db, 0); /* serving workers goes on; the queue waits */
    if ((code = sqlite3_exec(store->db, "BEGIN IMMEDIATE", NULL, NULL, NULL)) != SQLITE_OK) {
        return note_failure(store, code, now_ns, err);
    }
    for (const ho_store_row *row = store->first; row; row = row->next) {
        if ((code = run_row(store, row)) != SQLITE_OK) {
            return note_failure(store, code, now_ns, err);
        }
    }
    if ((code = sqlite3_exec(store->db, "COMMIT", NULL, NULL, NULL)) != SQLITE_OK) {
        return note_failure(store, code, now_ns, err);
    }
    if (store->paused[0]) {
        ho_log(HO_LOG_WARN, "store", "writing again path=%s", store->path);
        store->paused[0] = '\0';
    }
    note_commit(store, &begin);
    store->committed = store->queued;
    queue_clear(store);
    return HO_OK;
}

void ho_store_queue_free(ho_store *store)
{
    queue_clear(store);
    for (int i = 0; i < HO_STORE_STATEMENTS; i++) {
        (void)sqlite3_finalize(store->statement[i]);
        store->statement[i] = NULL;
    }
}
