/* SPDX-License-Identifier: Apache-2.0
 * What can be written: each ho_store_put_* makes rows, a statement with its values copied, and puts
 * them behind the queue. Contracts: store.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/store_rows.h"

/* ---- a row being made ------------------------------------------------------------------------ */

static ho_row_value *draft_next(ho_row_draft *d, ho_row_type type)
{
    ho_row_value *v = &d->values[d->count++];
    *v = (ho_row_value){.type = type};
    return v;
}

static void put_null(ho_row_draft *d)
{
    (void)draft_next(d, HO_ROW_NULL);
}

static void put_int(ho_row_draft *d, int64_t whole)
{
    draft_next(d, HO_ROW_INT)->as.whole = whole;
}

/* NaN and infinities are undefined: NULL. */
static void put_real(ho_row_draft *d, double real)
{
    if (isfinite(real)) {
        draft_next(d, HO_ROW_REAL)->as.real = real;
    } else {
        put_null(d);
    }
}

static void put_bytes(ho_row_draft *d, ho_row_type type, const void *bytes, size_t size)
{
    if (!bytes) {
        put_null(d);
        return;
    }
    d->bytes[d->count] = bytes;
    draft_next(d, type)->size = size;
}

static void put_text(ho_row_draft *d, const char *text)
{
    put_bytes(d, HO_ROW_TEXT, text, text ? strlen(text) : 0);
}

/* -1 stands for none. */
static void put_id(ho_row_draft *d, int64_t id)
{
    if (id < 0) {
        put_null(d);
    } else {
        put_int(d, id);
    }
}
/* ---- puts ----------------------------------------------------------------------------------- */

ho_status ho_store_put_trial(ho_store *store, const ho_space *space, const ho_trial_new *trial)
{
    ho_row_draft d = {.statement = HO_STATEMENT_TRIAL};
    put_int(&d, trial->number);
    put_text(&d, ho_trial_source_name(trial->source));
    put_id(&d, trial->parent);
    put_int(&d, trial->seeds);
    put_int(&d, (int64_t)ho_space_hash(space, trial->config));
    put_int(&d, trial->asked_after);
    put_id(&d, trial->bracket);
    put_int(&d, trial->now_ns);
    put_text(&d, trial->why);
    ho_status rc = ho_store_row_put(store, &d);
    for (int i = 0; i < space->count && rc == HO_OK; i++) {
        if (!isnan(trial->config[i])) {
            ho_row_draft p = {.statement = HO_STATEMENT_PARAM};
            put_int(&p, trial->number);
            put_int(&p, i);
            put_real(&p, trial->config[i]);
            rc = ho_store_row_put(store, &p);
        }
    }
    return rc;
}

ho_status ho_store_put_lease(ho_store *store, int64_t number, int64_t attempt, int64_t worker,
                             int64_t now_ns)
{
    ho_row_draft d = {.statement = HO_STATEMENT_LEASE};
    put_int(&d, number);
    put_int(&d, attempt);
    put_id(&d, worker);
    put_int(&d, now_ns);
    return ho_store_row_put(store, &d);
}

ho_status ho_store_put_requeue(ho_store *store, int64_t number, ho_trial_state state,
                               const char *fail_class, const char *reason)
{
    ho_row_draft d = {.statement = HO_STATEMENT_REQUEUE};
    put_int(&d, number);
    put_text(&d, ho_trial_state_name(state));
    put_text(&d, fail_class);
    put_text(&d, reason);
    return ho_store_row_put(store, &d);
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

static ho_status put_window(ho_store *store, ho_row_draft *d, const ho_window_result *window)
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
    put_bytes(d, HO_ROW_BLOB, window->session_return,
              (size_t)(window->sessions > 0 ? window->sessions : 0) * sizeof(double));
    return ho_store_row_put(store, d);
}

ho_status ho_store_put_windows(ho_store *store, int64_t number, const ho_window_result *window,
                               int windows)
{
    ho_status rc = HO_OK;
    for (int i = 0; i < windows && rc == HO_OK; i++) {
        ho_row_draft w = {.statement = HO_STATEMENT_FOLD_RESULT};
        put_int(&w, number);
        rc = put_window(store, &w, &window[i]);
    }
    return rc;
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
    ho_row_draft d = {.statement = HO_STATEMENT_RESULT};
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
    rc = ho_store_row_put(store, &d);
    for (int i = 0; i < result->objectives && rc == HO_OK; i++) {
        ho_row_draft v = {.statement = HO_STATEMENT_VALUE};
        put_int(&v, result->number);
        put_int(&v, i);
        put_real(&v, result->value[i]);
        put_text(&v, result->value_reason[i]);
        rc = ho_store_row_put(store, &v);
    }
    return rc == HO_OK
               ? ho_store_put_windows(store, result->number, result->window, result->windows)
               : rc;
}

ho_status ho_store_put_race(ho_store *store, const ho_race_row *row)
{
    ho_row_draft d = {.statement = HO_STATEMENT_RACE};
    bool compared = row->against >= 0;
    put_int(&d, row->number);
    put_int(&d, row->round);
    put_int(&d, row->attempt);
    put_int(&d, row->now_ns);
    put_int(&d, row->folds);
    put_int(&d, row->epochs);
    put_id(&d, row->against);
    put_id(&d, compared ? row->common : -1);
    put_real(&d, compared ? row->p : NAN);
    put_real(&d, compared ? row->threshold : NAN);
    put_real(&d, compared ? row->mean_gap : NAN);
    put_text(&d, row->verdict);
    put_text(&d, row->why);
    put_bytes(&d, HO_ROW_BLOB, row->result, row->result_size);
    return ho_store_row_put(store, &d);
}

ho_status ho_store_put_race_ended(ho_store *store, int64_t number)
{
    ho_row_draft d = {.statement = HO_STATEMENT_RACE_ENDED};
    put_int(&d, number);
    return ho_store_row_put(store, &d);
}

ho_status ho_store_put_report(ho_store *store, const ho_report_row *row)
{
    ho_row_draft d = {.statement = HO_STATEMENT_REPORT};
    put_int(&d, row->number);
    put_int(&d, row->step);
    put_real(&d, row->value[0]);
    put_int(&d, row->now_ns);
    put_id(&d, row->decided ? row->rung : -1);
    put_id(&d, row->decided ? row->competitors : -1);
    put_real(&d, row->decided ? row->threshold : NAN);
    put_text(&d, row->decided ? row->verdict : NULL);
    put_text(&d, row->decided ? row->why : NULL);
    ho_status rc = ho_store_row_put(store, &d);
    for (int i = 1; i < row->objectives && rc == HO_OK; i++) {
        ho_row_draft v = {.statement = HO_STATEMENT_REPORT_VALUE};
        put_int(&v, row->number);
        put_int(&v, row->step);
        put_int(&v, i);
        put_real(&v, row->value[i]);
        rc = ho_store_row_put(store, &v);
    }
    for (int i = 0; i < row->folds && rc == HO_OK; i++) {
        ho_row_draft f = {.statement = HO_STATEMENT_FOLD_REPORT};
        put_int(&f, row->number);
        put_int(&f, row->step);
        put_int(&f, i);
        put_real(&f, row->fold_value[i]);
        rc = ho_store_row_put(store, &f);
    }
    return rc;
}

ho_status ho_store_put_evolution(ho_store *store, int64_t trial, int64_t step, int64_t parent,
                                 const double *config, int params)
{
    ho_row_draft d = {.statement = HO_STATEMENT_EVOLUTION};
    put_int(&d, trial);
    put_int(&d, step);
    put_int(&d, parent);
    ho_status rc = ho_store_row_put(store, &d);
    for (int i = 0; i < params && rc == HO_OK; i++) {
        if (isfinite(config[i])) {
            ho_row_draft p = {.statement = HO_STATEMENT_EVOLUTION_PARAM};
            put_int(&p, trial);
            put_int(&p, step);
            put_int(&p, i);
            put_real(&p, config[i]);
            rc = ho_store_row_put(store, &p);
        }
    }
    return rc;
}

ho_status ho_store_put_importance(ho_store *store, int position, const char *method, double share,
                                  int64_t trials)
{
    ho_row_draft d = {.statement = HO_STATEMENT_IMPORTANCE};
    put_int(&d, position);
    put_text(&d, method);
    put_real(&d, share);
    put_int(&d, trials);
    return ho_store_row_put(store, &d);
}

ho_status ho_store_put_epochs_deleted(ho_store *store, int64_t trial)
{
    ho_row_draft d = {.statement = HO_STATEMENT_EPOCHS_DELETED};
    put_int(&d, trial);
    return ho_store_row_put(store, &d);
}

ho_status ho_store_put_epoch(ho_store *store, int64_t number, int fold, int seed,
                             const ho_epoch_stat *stat, double validation)
{
    ho_row_draft d = {.statement = HO_STATEMENT_EPOCH};
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
    return ho_store_row_put(store, &d);
}

ho_status ho_store_put_baseline(ho_store *store, const char *policy, const ho_window_result *window)
{
    ho_row_draft d = {.statement = HO_STATEMENT_BASELINE};
    put_text(&d, policy);
    return put_window(store, &d, window);
}

ho_status ho_store_put_worker(ho_store *store, const ho_worker_row *row)
{
    ho_row_draft d = {.statement = HO_STATEMENT_WORKER};
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
    return ho_store_row_put(store, &d);
}

ho_status ho_store_put_worker_lanes(ho_store *store, int64_t id, int64_t lanes)
{
    ho_row_draft d = {.statement = HO_STATEMENT_WORKER_LANES};
    put_int(&d, id);
    put_int(&d, lanes);
    return ho_store_row_put(store, &d);
}

ho_status ho_store_put_worker_left(ho_store *store, int64_t id, const char *reason,
                                   int64_t finished, int64_t now_ns)
{
    ho_row_draft d = {.statement = HO_STATEMENT_WORKER_LEFT};
    put_int(&d, id);
    put_int(&d, now_ns);
    put_text(&d, reason);
    put_int(&d, finished);
    return ho_store_row_put(store, &d);
}

ho_status ho_store_put_event(ho_store *store, int64_t now_ns, const char *kind, int64_t trial,
                             int64_t attempt, int64_t worker, const char *text)
{
    ho_row_draft d = {.statement = HO_STATEMENT_EVENT};
    put_int(&d, now_ns);
    put_text(&d, kind);
    put_id(&d, trial);
    put_id(&d, trial >= 0 ? attempt : -1);
    put_id(&d, worker);
    put_text(&d, text);
    return ho_store_row_put(store, &d);
}

ho_status ho_store_put_overfit(ho_store *store, const ho_overfit_row *row)
{
    ho_row_draft d = {.statement = HO_STATEMENT_OVERFIT};
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
    return ho_store_row_put(store, &d);
}

ho_status ho_store_put_prior_trials(ho_store *store, int64_t trials)
{
    ho_row_draft d = {.statement = HO_STATEMENT_PRIOR};
    put_int(&d, trials);
    return ho_store_row_put(store, &d);
}

ho_status ho_store_put_look(ho_store *store, const ho_look_row *row)
{
    ho_row_draft d = {.statement = HO_STATEMENT_LOOK};
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
    put_bytes(&d, HO_ROW_BLOB, row->session_return, (size_t)row->sessions * sizeof(double));
    return ho_store_row_put(store, &d);
}

ho_status ho_store_put_artifact(ho_store *store, const ho_artifact_row *row)
{
    ho_row_draft d = {.statement = HO_STATEMENT_ARTIFACT};
    put_int(&d, row->trial);
    put_id(&d, row->fold);
    put_id(&d, row->seed);
    put_text(&d, row->kind);
    put_int(&d, row->attempt);
    put_text(&d, row->path);
    put_int(&d, row->size);
    put_text(&d, row->sha256);
    put_int(&d, row->now_ns);
    return ho_store_row_put(store, &d);
}

ho_status ho_store_put_artifact_deleted(ho_store *store, const char *path, int64_t now_ns)
{
    ho_row_draft d = {.statement = HO_STATEMENT_ARTIFACT_DELETED};
    put_text(&d, path);
    put_int(&d, now_ns);
    return ho_store_row_put(store, &d);
}

ho_status ho_store_put_study_state(ho_store *store, const char *state, const char *reason,
                                   int64_t trials, int64_t now_ns)
{
    ho_row_draft d = {.statement = HO_STATEMENT_STUDY};
    put_text(&d, state);
    put_text(&d, reason);
    put_int(&d, trials);
    put_int(&d, now_ns);
    return ho_store_row_put(store, &d);
}

int64_t ho_store_next_worker_id(ho_store *store)
{
    return store->next_worker++;
}
