/* SPDX-License-Identifier: Apache-2.0
 * The writer's queue: each ho_store_put_* becomes one row, a statement with its values copied;
 * ho_store_flush runs the rows in order in one transaction. Rows leave the queue only after COMMIT,
 * so a full disk or a failed write loses nothing. Contracts: store.h. */
#include "coordinator/store_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "study/log.h"

/* name, counts as a transition, text. Order of values as the put function binds them. */
#define METRIC_NAMES(id, name, direction, unit, convention) ", " name
#define METRIC_MARKS(id, name, direction, unit, convention) ", ?"
#define STATEMENTS(X)                                                                              \
    X(TRIAL, 1,                                                                                    \
      "INSERT INTO trial (number, state, source, parent, seeds, config_hash, asked_after, "        \
      "bracket, created_ns, why) VALUES (?, 'WAITING', ?, ?, ?, ?, ?, ?, ?, ?)")                   \
    X(PARAM, 0,                                                                                    \
      "INSERT INTO param (trial, param, value) VALUES "                                            \
      "(?1, (SELECT id FROM param_space WHERE active = 1 AND position = ?2), ?3)")                 \
    X(LEASE, 1,                                                                                    \
      "UPDATE trial SET state = 'RUNNING', attempt = ?2, worker = ?3, started_ns = ?4 "            \
      "WHERE number = ?1")                                                                         \
    X(REQUEUE, 1,                                                                                  \
      "UPDATE trial SET state = ?2, fail_class = ?3, fail_reason = ?4 WHERE number = ?1")          \
    X(RESULT, 1,                                                                                   \
      "UPDATE trial SET state = ?2, attempt = ?3, told_order = ?4, worker = ?5, "                  \
      "finished_ns = ?6, violation = ?7, constraints = ?8, epochs = ?9, experiences = ?10, "       \
      "updates = ?11, train_s = ?12, fail_class = ?13, fail_reason = ?14 WHERE number = ?1")       \
    X(VALUE, 0,                                                                                    \
      "INSERT OR REPLACE INTO trial_value (trial, objective, value, reason) VALUES (?, ?, ?, ?)")  \
    X(FOLD_RESULT, 0,                                                                              \
      "INSERT OR REPLACE INTO fold_result (trial, fold, seed" HO_METRIC_MAP(                       \
          METRIC_NAMES) ", flags, reasons, random_percentile, returns) VALUES (?, ?, "             \
                        "?" HO_METRIC_MAP(METRIC_MARKS) ", ?, ?, ?, ?)")                           \
    X(BASELINE, 0,                                                                                 \
      "INSERT OR REPLACE INTO baseline (policy, fold, seed" HO_METRIC_MAP(                         \
          METRIC_NAMES) ", flags, reasons, random_percentile, returns) VALUES (?, ?, "             \
                        "?" HO_METRIC_MAP(METRIC_MARKS) ", ?, ?, ?, ?)")                           \
    X(REPORT, 1,                                                                                   \
      "INSERT OR REPLACE INTO report (trial, step, value, at_ns, rung, competitors, threshold, "   \
      "verdict, why) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")                                          \
    X(EVOLUTION, 1, "INSERT OR REPLACE INTO evolution (trial, step, parent) VALUES (?, ?, ?)")     \
    X(EVOLUTION_PARAM, 0,                                                                          \
      "INSERT OR REPLACE INTO evolution_param (trial, step, param, value) VALUES "                 \
      "(?1, ?2, (SELECT id FROM param_space WHERE active = 1 AND position = ?3), ?4)")             \
    X(IMPORTANCE, 1,                                                                               \
      "INSERT OR REPLACE INTO importance (objective, param, method, value, trials) VALUES "        \
      "(0, (SELECT id FROM param_space WHERE active = 1 AND position = ?1), ?2, ?3, ?4)")          \
    X(EPOCHS_DELETED, 1, "DELETE FROM epoch_stat WHERE trial = ?")                                 \
    X(FOLD_REPORT, 0,                                                                              \
      "INSERT OR REPLACE INTO fold_report (trial, step, fold, value) VALUES (?, ?, ?, ?)")         \
    X(EPOCH, 0,                                                                                    \
      "INSERT OR REPLACE INTO epoch_stat (trial, fold, seed, epoch, experiences, updates, "        \
      "reward_mean, reward_std, sharpe, loss, grad_norm, q_mean, td_error, epsilon, "              \
      "learning_rate, kl, entropy, explained_variance, curiosity_loss, replay_fill, validation, "  \
      "guard) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")          \
    X(WORKER, 1,                                                                                   \
      "INSERT INTO worker (id, name, host, pid, device, device_uuid, backend, version, lanes, "    \
      "local, curve_key, joined_ns) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")                  \
    X(WORKER_LANES, 1, "UPDATE worker SET lanes = ?2 WHERE id = ?1")                               \
    X(WORKER_LEFT, 1,                                                                              \
      "UPDATE worker SET left_ns = ?2, leave_reason = ?3, finished = ?4 WHERE id = ?1")            \
    X(EVENT, 0,                                                                                    \
      "INSERT INTO event (at_ns, kind, trial, attempt, worker, text) VALUES (?, ?, ?, ?, ?, ?)")   \
    X(ARTIFACT, 1,                                                                                 \
      "INSERT INTO artifact (trial, fold, seed, kind, attempt, path, size, sha256, created_ns) "   \
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")                                                        \
    X(ARTIFACT_DELETED, 1,                                                                         \
      "UPDATE artifact SET deleted_ns = ?2 WHERE path = ?1 AND deleted_ns IS NULL")                \
    X(LOOK, 0,                                                                                     \
      "INSERT INTO holdout_look (at_ns, trial, seed, refit, user, sharpe, total_return, "          \
      "max_drawdown, trades, metrics, returns) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")          \
    X(OVERFIT, 0,                                                                                  \
      "INSERT INTO overfit (at_ns, trial, trials, sharpe, sharpe_std, sharpe_zero, psr, dsr, "     \
      "min_track_sessions, pbo, pbo_splits, null_p, notes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, " \
      "?, ?, ?)")                                                                                  \
    X(PRIOR, 0, "UPDATE study SET prior_trials = ?1 WHERE id = 1")                                 \
    X(STUDY, 1,                                                                                    \
      "UPDATE study SET state = ?1, reason = ?2, trials = ?3, changed_ns = ?4 WHERE id = 1")

enum {
#define STATEMENT_ENUM(name, transition, text) STATEMENT_##name,
    STATEMENTS(STATEMENT_ENUM)
#undef STATEMENT_ENUM
        STATEMENT_COUNT
};
_Static_assert((int)STATEMENT_COUNT <= (int)HO_STORE_STATEMENTS, "grow HO_STORE_STATEMENTS");

static const char *const statement_text[] = {
#define STATEMENT_TEXT(name, transition, text) text,
    STATEMENTS(STATEMENT_TEXT)
#undef STATEMENT_TEXT
};
static const bool statement_counts[] = {
#define STATEMENT_COUNTS(name, transition, text) transition,
    STATEMENTS(STATEMENT_COUNTS)
#undef STATEMENT_COUNTS
};

typedef enum value_type { VALUE_NULL, VALUE_INT, VALUE_REAL, VALUE_TEXT, VALUE_BLOB } value_type;

typedef struct value {
    value_type type;
    union {
        int64_t whole;
        double real;
        size_t offset; /* of text or bytes, in the row's tail */
    } as;
    size_t size;
} value;

/* One allocation: the values, then the bytes of texts and blobs. */
struct ho_store_row {
    ho_store_row *next;
    int statement;
    int count;
    value values[];
};

enum { ROW_VALUES_MAX = 48 };

/* A row being made, on the stack; texts are borrowed until row_put copies them. */
typedef struct draft {
    int statement;
    int count;
    value values[ROW_VALUES_MAX];
    const void *bytes[ROW_VALUES_MAX];
} draft;

static value *draft_next(draft *d, value_type type)
{
    value *v = &d->values[d->count++];
    *v = (value){.type = type};
    return v;
}

static void put_null(draft *d)
{
    (void)draft_next(d, VALUE_NULL);
}

static void put_int(draft *d, int64_t whole)
{
    draft_next(d, VALUE_INT)->as.whole = whole;
}

/* NaN and infinities are undefined: NULL. */
static void put_real(draft *d, double real)
{
    if (isfinite(real)) {
        draft_next(d, VALUE_REAL)->as.real = real;
    } else {
        put_null(d);
    }
}

static void put_bytes(draft *d, value_type type, const void *bytes, size_t size)
{
    if (!bytes) {
        put_null(d);
        return;
    }
    d->bytes[d->count] = bytes;
    draft_next(d, type)->size = size;
}

static void put_text(draft *d, const char *text)
{
    put_bytes(d, VALUE_TEXT, text, text ? strlen(text) : 0);
}

/* -1 stands for none. */
static void put_id(draft *d, int64_t id)
{
    if (id < 0) {
        put_null(d);
    } else {
        put_int(d, id);
    }
}

static ho_status row_put(ho_store *store, const draft *d)
{
    size_t head = sizeof(ho_store_row) + (size_t)d->count * sizeof(value), tail = 0;
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
    memcpy(row->values, d->values, (size_t)d->count * sizeof(value));
    for (int i = 0; i < d->count; i++) {
        if (d->values[i].type == VALUE_TEXT || d->values[i].type == VALUE_BLOB) {
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

/* ---- puts ----------------------------------------------------------------------------------- */

ho_status ho_store_put_trial(ho_store *store, const ho_space *space, const ho_trial_new *trial)
{
    draft d = {.statement = STATEMENT_TRIAL};
    put_int(&d, trial->number);
    put_text(&d, ho_trial_source_name(trial->source));
    put_id(&d, trial->parent);
    put_int(&d, trial->seeds);
    put_int(&d, (int64_t)ho_space_hash(space, trial->config));
    put_int(&d, trial->asked_after);
    put_id(&d, trial->bracket);
    put_int(&d, trial->now_ns);
    put_text(&d, trial->why);
    ho_status rc = row_put(store, &d);
    for (int i = 0; i < space->count && rc == HO_OK; i++) {
        if (!isnan(trial->config[i])) {
            draft p = {.statement = STATEMENT_PARAM};
            put_int(&p, trial->number);
            put_int(&p, i);
            put_real(&p, trial->config[i]);
            rc = row_put(store, &p);
        }
    }
    return rc;
}

ho_status ho_store_put_lease(ho_store *store, int64_t number, int64_t attempt, int64_t worker,
                             int64_t now_ns)
{
    draft d = {.statement = STATEMENT_LEASE};
    put_int(&d, number);
    put_int(&d, attempt);
    put_id(&d, worker);
    put_int(&d, now_ns);
    return row_put(store, &d);
}

ho_status ho_store_put_requeue(ho_store *store, int64_t number, ho_trial_state state,
                               const char *fail_class, const char *reason)
{
    draft d = {.statement = STATEMENT_REQUEUE};
    put_int(&d, number);
    put_text(&d, ho_trial_state_name(state));
    put_text(&d, fail_class);
    put_text(&d, reason);
    return row_put(store, &d);
}

/* {"calmar":"no_drawdown",...} of the undefined metrics; empty text when all are defined. */
static void reasons_json(const ho_metric_set *metrics, char *out, size_t room)
{
    static const char *const metric_name[] = {
#define METRIC_NAME(id, name, direction, unit, convention) name,
        HO_METRIC_MAP(METRIC_NAME)
#undef METRIC_NAME
    };
    static const char *const reason_name[] = {
#define REASON_NAME(id, name) name,
        HO_METRIC_REASON_MAP(REASON_NAME)
#undef REASON_NAME
    };
    enum { REASONS = sizeof reason_name / sizeof reason_name[0] };
    size_t n = 0;
    out[0] = '\0';
    for (int i = 0; i < HO_METRIC_COUNT; i++) {
        if (!isfinite(metrics->value[i]) && n < room) {
            int reason = metrics->reason[i] < REASONS ? metrics->reason[i] : 0;
            n += (size_t)snprintf(out + n, room - n, "%s\"%s\":\"%s\"", n ? "," : "{",
                                  metric_name[i], reason_name[reason]);
        }
    }
    if (n > 0 && n + 2 < room) {
        (void)snprintf(out + n, room - n, "}");
    }
}

static ho_status put_window(ho_store *store, draft *d, const ho_window_result *window)
{
    char reasons[64 * HO_METRIC_COUNT];
    put_int(d, window->fold);
    put_int(d, window->seed);
    for (int i = 0; i < HO_METRIC_COUNT; i++) {
        put_real(d, window->metrics.value[i]);
    }
    put_int(d, window->metrics.flags);
    reasons_json(&window->metrics, reasons, sizeof reasons);
    put_text(d, reasons[0] ? reasons : NULL);
    put_real(d, window->random_percentile);
    put_bytes(d, VALUE_BLOB, window->session_return,
              (size_t)(window->sessions > 0 ? window->sessions : 0) * sizeof(double));
    return row_put(store, d);
}

static void constraints_json(const ho_trial_result *result, char *out, size_t room)
{
    size_t n = (size_t)snprintf(out, room, "[");
    for (int i = 0; i < result->constraints && n + 40 < room; i++) {
        n += isfinite(result->constraint[i])
                 ? (size_t)snprintf(out + n, room - n, "%s%.17g", i ? "," : "",
                                    result->constraint[i])
                 : (size_t)snprintf(out + n, room - n, "%snull", i ? "," : "");
    }
    (void)snprintf(out + n, room - n, "]");
}

ho_status ho_store_put_result(ho_store *store, const ho_trial_result *result)
{
    draft d = {.statement = STATEMENT_RESULT};
    char constraints[2048];
    ho_status rc = HO_OK;

    constraints_json(result, constraints, sizeof constraints);
    put_int(&d, result->number);
    put_text(&d, ho_trial_state_name(result->state));
    put_int(&d, result->attempt);
    put_id(&d, result->told_order > 0 ? result->told_order : -1);
    put_id(&d, result->worker);
    put_int(&d, result->finished_ns);
    put_real(&d, result->violation);
    put_text(&d, result->constraints > 0 ? constraints : NULL);
    put_int(&d, result->epochs);
    put_int(&d, result->experiences);
    put_int(&d, result->updates);
    put_real(&d, result->train_s);
    put_text(&d, result->fail_class);
    put_text(&d, result->fail_reason);
    rc = row_put(store, &d);
    for (int i = 0; i < result->objectives && rc == HO_OK; i++) {
        draft v = {.statement = STATEMENT_VALUE};
        put_int(&v, result->number);
        put_int(&v, i);
        put_real(&v, result->value[i]);
        put_text(&v, result->value_reason[i]);
        rc = row_put(store, &v);
    }
    for (int i = 0; i < result->windows && rc == HO_OK; i++) {
        draft w = {.statement = STATEMENT_FOLD_RESULT};
        put_int(&w, result->number);
        rc = put_window(store, &w, &result->window[i]);
    }
    return rc;
}

ho_status ho_store_put_report(ho_store *store, const ho_report_row *row)
{
    draft d = {.statement = STATEMENT_REPORT};
    put_int(&d, row->number);
    put_int(&d, row->step);
    put_real(&d, row->value);
    put_int(&d, row->now_ns);
    put_id(&d, row->decided ? row->rung : -1);
    put_id(&d, row->decided ? row->competitors : -1);
    put_real(&d, row->decided ? row->threshold : NAN);
    put_text(&d, row->decided ? row->verdict : NULL);
    put_text(&d, row->decided ? row->why : NULL);
    ho_status rc = row_put(store, &d);
    for (int i = 0; i < row->folds && rc == HO_OK; i++) {
        draft f = {.statement = STATEMENT_FOLD_REPORT};
        put_int(&f, row->number);
        put_int(&f, row->step);
        put_int(&f, i);
        put_real(&f, row->fold_value[i]);
        rc = row_put(store, &f);
    }
    return rc;
}

ho_status ho_store_put_evolution(ho_store *store, int64_t trial, int64_t step, int64_t parent,
                                 const double *config, int params)
{
    draft d = {.statement = STATEMENT_EVOLUTION};
    put_int(&d, trial);
    put_int(&d, step);
    put_int(&d, parent);
    ho_status rc = row_put(store, &d);
    for (int i = 0; i < params && rc == HO_OK; i++) {
        if (isfinite(config[i])) {
            draft p = {.statement = STATEMENT_EVOLUTION_PARAM};
            put_int(&p, trial);
            put_int(&p, step);
            put_int(&p, i);
            put_real(&p, config[i]);
            rc = row_put(store, &p);
        }
    }
    return rc;
}

ho_status ho_store_put_importance(ho_store *store, int position, const char *method, double share,
                                  int64_t trials)
{
    draft d = {.statement = STATEMENT_IMPORTANCE};
    put_int(&d, position);
    put_text(&d, method);
    put_real(&d, share);
    put_int(&d, trials);
    return row_put(store, &d);
}

ho_status ho_store_put_epochs_deleted(ho_store *store, int64_t trial)
{
    draft d = {.statement = STATEMENT_EPOCHS_DELETED};
    put_int(&d, trial);
    return row_put(store, &d);
}

ho_status ho_store_put_epoch(ho_store *store, int64_t number, int fold, int seed,
                             const ho_epoch_stat *stat, double validation)
{
    draft d = {.statement = STATEMENT_EPOCH};
    put_int(&d, number);
    put_int(&d, fold);
    put_int(&d, seed);
    put_int(&d, stat->epoch);
    put_int(&d, stat->experiences);
    put_int(&d, stat->updates);
    put_real(&d, stat->reward_mean);
    put_real(&d, stat->reward_std);
    put_real(&d, stat->sharpe);
    put_real(&d, stat->loss_mean);
    put_real(&d, stat->grad_norm);
    put_real(&d, stat->q_mean);
    put_real(&d, stat->td_error_mean);
    put_real(&d, stat->epsilon);
    put_real(&d, stat->learning_rate);
    put_real(&d, stat->kl);
    put_real(&d, stat->entropy);
    put_real(&d, stat->explained_variance);
    put_real(&d, stat->curiosity_loss);
    put_int(&d, stat->replay_fill);
    put_real(&d, validation);
    put_int(&d, stat->guard);
    return row_put(store, &d);
}

ho_status ho_store_put_baseline(ho_store *store, const char *policy, const ho_window_result *window)
{
    draft d = {.statement = STATEMENT_BASELINE};
    put_text(&d, policy);
    return put_window(store, &d, window);
}

ho_status ho_store_put_worker(ho_store *store, const ho_worker_row *row)
{
    draft d = {.statement = STATEMENT_WORKER};
    put_int(&d, row->id);
    put_text(&d, row->name);
    put_text(&d, row->host);
    put_int(&d, row->pid);
    put_text(&d, row->device);
    put_text(&d, row->device_uuid);
    put_text(&d, row->backend);
    put_text(&d, row->version);
    put_int(&d, row->lanes);
    put_int(&d, row->local);
    put_text(&d, row->curve_key);
    put_int(&d, row->now_ns);
    return row_put(store, &d);
}

ho_status ho_store_put_worker_lanes(ho_store *store, int64_t id, int64_t lanes)
{
    draft d = {.statement = STATEMENT_WORKER_LANES};
    put_int(&d, id);
    put_int(&d, lanes);
    return row_put(store, &d);
}

ho_status ho_store_put_worker_left(ho_store *store, int64_t id, const char *reason,
                                   int64_t finished, int64_t now_ns)
{
    draft d = {.statement = STATEMENT_WORKER_LEFT};
    put_int(&d, id);
    put_int(&d, now_ns);
    put_text(&d, reason);
    put_int(&d, finished);
    return row_put(store, &d);
}

ho_status ho_store_put_event(ho_store *store, int64_t now_ns, const char *kind, int64_t trial,
                             int64_t attempt, int64_t worker, const char *text)
{
    draft d = {.statement = STATEMENT_EVENT};
    put_int(&d, now_ns);
    put_text(&d, kind);
    put_id(&d, trial);
    put_id(&d, trial >= 0 ? attempt : -1);
    put_id(&d, worker);
    put_text(&d, text);
    return row_put(store, &d);
}

ho_status ho_store_put_overfit(ho_store *store, const ho_overfit_row *row)
{
    draft d = {.statement = STATEMENT_OVERFIT};
    put_int(&d, row->now_ns);
    put_id(&d, row->trial);
    put_int(&d, row->configurations);
    put_real(&d, row->sharpe);
    put_real(&d, row->sharpe_std);
    put_real(&d, row->sharpe_zero);
    put_real(&d, row->psr);
    put_real(&d, row->dsr);
    put_real(&d, row->min_track_sessions);
    put_real(&d, row->pbo);
    put_id(&d, isnan(row->pbo) ? -1 : row->pbo_splits);
    put_real(&d, row->null_p);
    put_text(&d, row->notes[0] ? row->notes : NULL);
    return row_put(store, &d);
}

ho_status ho_store_put_prior_trials(ho_store *store, int64_t trials)
{
    draft d = {.statement = STATEMENT_PRIOR};
    put_int(&d, trials);
    return row_put(store, &d);
}

ho_status ho_store_put_look(ho_store *store, const ho_look_row *row)
{
    draft d = {.statement = STATEMENT_LOOK};
    put_int(&d, row->now_ns);
    put_int(&d, row->trial);
    put_int(&d, row->seed);
    put_int(&d, row->refit);
    put_text(&d, row->user);
    put_real(&d, row->metrics->value[HO_METRIC_SHARPE]);
    put_real(&d, row->metrics->value[HO_METRIC_TOTAL_RETURN]);
    put_real(&d, row->metrics->value[HO_METRIC_MAX_DRAWDOWN]);
    put_real(&d, row->metrics->value[HO_METRIC_TRADES]);
    put_text(&d, row->metrics_json);
    put_bytes(&d, VALUE_BLOB, row->session_return, (size_t)row->sessions * sizeof(double));
    return row_put(store, &d);
}

ho_status ho_store_put_artifact(ho_store *store, const ho_artifact_row *row)
{
    draft d = {.statement = STATEMENT_ARTIFACT};
    put_int(&d, row->trial);
    put_id(&d, row->fold);
    put_id(&d, row->seed);
    put_text(&d, row->kind);
    put_int(&d, row->attempt);
    put_text(&d, row->path);
    put_int(&d, row->size);
    put_text(&d, row->sha256);
    put_int(&d, row->now_ns);
    return row_put(store, &d);
}

ho_status ho_store_put_artifact_deleted(ho_store *store, const char *path, int64_t now_ns)
{
    draft d = {.statement = STATEMENT_ARTIFACT_DELETED};
    put_text(&d, path);
    put_int(&d, now_ns);
    return row_put(store, &d);
}

ho_status ho_store_put_study_state(ho_store *store, const char *state, const char *reason,
                                   int64_t trials, int64_t now_ns)
{
    draft d = {.statement = STATEMENT_STUDY};
    put_text(&d, state);
    put_text(&d, reason);
    put_int(&d, trials);
    put_int(&d, now_ns);
    return row_put(store, &d);
}

int64_t ho_store_next_worker_id(ho_store *store)
{
    return store->next_worker++;
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
        const value *v = &row->values[i];
        bool tail = v->type == VALUE_TEXT || v->type == VALUE_BLOB;
        const char *bytes = tail ? (const char *)row + v->as.offset : NULL;
        switch (v->type) {
        case VALUE_NULL:
            rc = sqlite3_bind_null(statement, i + 1);
            break;
        case VALUE_INT:
            rc = sqlite3_bind_int64(statement, i + 1, v->as.whole);
            break;
        case VALUE_REAL:
            rc = sqlite3_bind_double(statement, i + 1, v->as.real);
            break;
        case VALUE_TEXT:
            rc = sqlite3_bind_text(statement, i + 1, bytes, (int)v->size, SQLITE_STATIC);
            break;
        case VALUE_BLOB:
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
