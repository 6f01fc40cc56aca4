/* SPDX-License-Identifier: Apache-2.0
 * Rows of the writer's queue: the statements there are, and a row being made. store_put.c makes
 * them, store_write.c keeps and runs them. */
#ifndef HO_COORDINATOR_STORE_ROWS_H
#define HO_COORDINATOR_STORE_ROWS_H

#include <stddef.h>

#include "coordinator/store_internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* name, counts as a transition, text. Order of values as the put function binds them. */
#define HO_STATEMENT_METRIC_NAMES(id, name, direction, unit, convention) ", " name
#define HO_STATEMENT_METRIC_MARKS(id, name, direction, unit, convention) ", ?"
#define HO_STORE_STATEMENT_MAP(X)                                                                  \
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
          HO_STATEMENT_METRIC_NAMES) ", flags, reasons, random_percentile, returns) VALUES (?, "   \
                                     "?, "                                                         \
                                     "?" HO_METRIC_MAP(HO_STATEMENT_METRIC_MARKS) ", ?, ?, ?, ?)") \
    X(BASELINE, 0,                                                                                 \
      "INSERT OR REPLACE INTO baseline (policy, fold, seed" HO_METRIC_MAP(                         \
          HO_STATEMENT_METRIC_NAMES) ", flags, reasons, random_percentile, returns) VALUES (?, "   \
                                     "?, "                                                         \
                                     "?" HO_METRIC_MAP(HO_STATEMENT_METRIC_MARKS) ", ?, ?, ?, ?)") \
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
    X(REPORT_VALUE, 0,                                                                             \
      "INSERT OR REPLACE INTO report_value (trial, step, objective, value) VALUES (?, ?, ?, ?)")   \
    X(RACE, 1,                                                                                     \
      "INSERT OR REPLACE INTO race (trial, round, attempt, at_ns, folds, epochs, against, "        \
      "common, p, threshold, mean_gap, verdict, why, result) "                                     \
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")                                         \
    X(RACE_ENDED, 1, "UPDATE race SET result = NULL WHERE trial = ? AND result IS NOT NULL")       \
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
#define STATEMENT_ENUM(name, transition, text) HO_STATEMENT_##name,
    HO_STORE_STATEMENT_MAP(STATEMENT_ENUM)
#undef STATEMENT_ENUM
        HO_STATEMENT_COUNT
};

typedef enum ho_row_type {
    HO_ROW_NULL,
    HO_ROW_INT,
    HO_ROW_REAL,
    HO_ROW_TEXT,
    HO_ROW_BLOB
} ho_row_type;

typedef struct ho_row_value {
    ho_row_type type;
    union {
        int64_t whole;
        double real;
        size_t offset; /* of text or bytes, in the row's tail */
    } as;
    size_t size;
} ho_row_value;
enum { HO_ROW_VALUES_MAX = 48 };

/* A row being made, on the stack; texts are borrowed until row_put copies them. */
typedef struct ho_row_draft {
    int statement;
    int count;
    ho_row_value values[HO_ROW_VALUES_MAX];
    const void *bytes[HO_ROW_VALUES_MAX];
} ho_row_draft;

/* Copies the row behind the queue. HO_ENOMEM: also noted in the store, which refuses to flush. */
ho_status ho_store_row_put(ho_store *store, const ho_row_draft *d);

#ifdef __cplusplus
}
#endif
#endif
