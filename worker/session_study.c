/* SPDX-License-Identifier: Apache-2.0
 * A session's study: its data and market, the orders, and what the pool says of them. */
#include <stdlib.h>
#include <string.h>

#include "study/log.h"
#include "worker/report.h"
#include "worker/session_internal.h"

enum {
    WANT_AGAIN_MS = 5000, /* data that does not come is asked for again, in case the coordinator */
    WANT_AGAIN_MAX_MS = 80000, /* could not read it; twice as late each time */
    RESUME_MS = 60000,         /* patience with a checkpoint that is on its way */
    GATE_MS = 5000,            /* an incomplete population waits this long for more members */
};

/* ---- what the pool says -------------------------------------------------------------------- */

static void complain(const char *what, const ho_err *err)
{
    ho_log(HO_LOG_ERROR, "worker", "%s: %s", what, err->text);
}

static void on_epoch(void *user, const ho_trial_run *run, const ho_trial_epoch *row)
{
    ho_session *session = user;
    ho_err err = {0};
    session->load_steps += row->stat.experiences;
    ho_checkpoints_note(session->checkpoints, run, row->epoch);
    ho_evolution_note(session->evolution, run, row);
    int64_t parent = -1;
    const double *config = NULL;
    (void)ho_evolution_origin(session->evolution, run->plan->number, &parent, &config);
    if (ho_report_epoch(session->link, run, row, parent, config,
                        session->loaded->study->space.count, &err) != HO_OK) {
        complain("report", &err);
    }
}

static void on_ending(void *user, ho_trial_run *run)
{
    ho_session *session = user;
    ho_err err = {0};
    if (ho_report_ending(run, session->loaded->market, session->loaded->seed, &err) != HO_OK) {
        complain("random policies", &err);
    }
}

static void on_finished(void *user, ho_trial_run *run)
{
    ho_session *session = user;
    ho_err err = {0};
    ho_evolution_leave(session->evolution, run->plan->number);
    ho_log(HO_LOG_INFO, "worker", "finished trial=%lld attempt=%d seconds=%.1f",
           (long long)run->plan->number, run->plan->attempt,
           (double)(run->ended_ns - run->started_ns) * 1e-9);
    const ho_loaded_study *loaded = session->loaded;
    if (ho_report_weights(session->link, run, loaded->study, &loaded->bars, &loaded->features,
                          &err) != HO_OK ||
        ho_report_result(session->link, run, &loaded->bars, &err) != HO_OK) {
        complain("result", &err);
        (void)ho_report_refusal(session->link, run->plan->number, run->plan->attempt,
                                HO_FAIL_INTERNAL, err.text, &err);
    }
}

static void on_failed(void *user, const ho_trial_run *run, const ho_trial_failure *failure)
{
    ho_session *session = user;
    ho_err err = {0};
    ho_evolution_leave(session->evolution, run->plan->number);
    ho_log(HO_LOG_WARN, "worker", "failed trial=%lld attempt=%d reason=\"%s\"",
           (long long)run->plan->number, run->plan->attempt, failure->reason);
    if (ho_report_failure(session->link, run->plan->number, run->plan->attempt, failure, &err) !=
        HO_OK) {
        complain("failure", &err);
    }
}

/* ---- orders -------------------------------------------------------------------------------- */

static ho_status add_trial(ho_session *session, const ho_trial_order *order, const void *blob,
                           size_t size, ho_err *err)
{
    ho_trial_plan *plan = NULL;
    ho_lane_context context = ho_loaded_study_context(session->loaded);
    if (order->param_count != context.study->space.count) {
        return ho_err_set(err, HO_EINVAL, "%d parameters came for a space of %d",
                          order->param_count, context.study->space.count);
    }
    ho_lane_trial asked = {.number = order->trial,
                           .attempt = order->attempt,
                           .seed = order->seed,
                           .config = order->config,
                           .fold_count = order->fold_count,
                           .fold = order->fold};
    ho_status rc = ho_lane_config_plan(&context, &asked, &plan, err);
    if (rc == HO_OK) {
        rc = blob ? ho_pool_resume(session->pool, &plan, blob, size, err)
                  : ho_pool_add(session->pool, &plan, err);
    }
    if (rc == HO_OK) {
        rc = ho_evolution_join(session->evolution, &context, order->trial, order->config, err);
    }
    return rc;
}

/* blob: a checkpoint to go on from, or NULL. A trial that cannot run is a failed trial. */
static void start_order(ho_session *session, const ho_trial_order *order, const void *blob,
                        size_t size)
{
    ho_err err = {0}, ignored = {0};
    ho_status rc = add_trial(session, order, blob, size, &err);
    if (rc != HO_OK) {
        ho_log(HO_LOG_WARN, "worker", "refused trial=%lld reason=\"%s\"", (long long)order->trial,
               err.text);
        (void)ho_pool_drop(session->pool, order->trial, order->attempt);
        (void)ho_report_refusal(session->link, order->trial, order->attempt,
                                rc == HO_ENOMEM ? HO_FAIL_OOM : HO_FAIL_CONFIG, err.text, &ignored);
    }
}

static void start_orders(ho_session *session, ho_msg_trials *trials)
{
    for (int32_t i = 0; i < trials->count; i++) {
        ho_err err = {0};
        ho_trial_order *order = &trials->order[i];
        if (order->resume[0] == '\0' ||
            ho_checkpoints_expect(session->checkpoints, order, &err) != HO_OK) {
            start_order(session, order, NULL, 0);
        }
    }
}

void ho_session_take_trials(ho_session *session, ho_message *message)
{
    if (session->leaving != STAYS) {
        ho_err err = {0};
        for (int32_t i = 0; i < message->trials.count; i++) {
            (void)ho_report_refusal(session->link, message->trials.order[i].trial,
                                    message->trials.order[i].attempt, HO_FAIL_CANCELLED,
                                    "the worker drains", &err);
        }
        return;
    }
    /* members of a population wait for each other: they start in the same epoch, so that what they
     * are compared with does not hang on the network */
    session->gate_at_ms = ho_session_now_ms() + GATE_MS;
    if (session->pool && !session->evolution) {
        start_orders(session, &message->trials);
        return;
    }
    if (session->commands) {
        ho_session_start_commands(session, &message->trials);
        return;
    }
    ho_message *grown = realloc(session->order, (size_t)(session->order_count + 1) * sizeof *grown);
    if (!grown) {
        ho_log(HO_LOG_ERROR, "worker", "out of memory for orders");
        return;
    }
    session->order = grown;
    session->order[session->order_count++] = *message;
    *message = ho_message_make(HO_MSG_TRIALS); /* moved */
}

void ho_session_start_resumed(ho_session *session)
{
    ho_trial_order order;
    void *blob = NULL;
    size_t size = 0;
    while (ho_checkpoints_next(session->checkpoints, RESUME_MS, &order, &blob, &size)) {
        if (!blob) {
            ho_log(HO_LOG_WARN, "worker", "checkpoint did not come, trial=%lld starts anew",
                   (long long)order.trial);
        }
        if (blob) {
            ho_log(HO_LOG_INFO, "worker",
                   "goes on from a checkpoint trial=%lld attempt=%d bytes=%zu",
                   (long long)order.trial, order.attempt, size);
        }
        start_order(session, &order, blob, size);
        free(order.config);
        free(blob);
    }
}

void ho_session_hand_back_orders(ho_session *session, const char *reason)
{
    ho_err err = {0};
    for (int i = 0; i < session->order_count; i++) {
        const ho_msg_trials *trials = &session->order[i].trials;
        for (int32_t k = 0; k < trials->count; k++) {
            (void)ho_report_refusal(session->link, trials->order[k].trial, trials->order[k].attempt,
                                    HO_FAIL_CANCELLED, reason, &err);
        }
        ho_message_clear(&session->order[i]);
    }
    session->order_count = 0;
}

/* Stops a trial wherever it stands: training, ordered, waiting for its checkpoint. false: it is not
 * here (any more). */
static bool end_trial(ho_session *session, int64_t trial, int32_t attempt)
{
    if (session->commands && ho_commands_drop(session->commands, trial, attempt)) {
        return true;
    }
    for (int i = 0; i < session->order_count; i++) {
        ho_msg_trials *trials = &session->order[i].trials;
        for (int32_t k = 0; k < trials->count; k++) {
            if (trials->order[k].trial == trial && trials->order[k].attempt == attempt) {
                free(trials->order[k].config);
                trials->order[k] = trials->order[--trials->count];
                return true;
            }
        }
    }
    if (session->pool && (ho_pool_drop(session->pool, trial, attempt) ||
                          ho_checkpoints_forget(session->checkpoints, trial, attempt))) {
        ho_evolution_leave(session->evolution, trial);
        return true;
    }
    return false;
}

void ho_session_take_end(ho_session *session, const ho_message *m)
{
    if (end_trial(session, m->trial, m->attempt)) {
        ho_log(HO_LOG_INFO, "worker", "%s trial=%lld attempt=%d", ho_message_name(m->type),
               (long long)m->trial, m->attempt);
    }
}

void ho_session_take_pause(ho_session *session, const ho_message *m)
{
    ho_err err = {0};
    void *blob = NULL;
    size_t size = 0;
    ho_status rc = HO_ENOTFOUND; /* nothing to save: not started, or a command */
    if (session->pool) {
        (void)ho_pool_settle(session->pool, m->trial, &err);
        rc = ho_pool_pause(session->pool, m->trial, m->attempt, m->pause.epoch, &blob, &size, &err);
    }
    if (rc == HO_OK) {
        rc = ho_report_file(session->link, HO_CHUNK_ARTIFACT, m->trial, m->attempt, "checkpoint",
                            blob, size, &err);
    }
    if (rc != HO_OK && rc != HO_ENOTFOUND) {
        ho_log(HO_LOG_WARN, "worker", "paused trial=%lld will start anew: %s", (long long)m->trial,
               err.text);
    }
    free(blob);
    if (end_trial(session, m->trial, m->attempt)) {
        ho_log(HO_LOG_INFO, "worker", "paused trial=%lld attempt=%d epoch=%d checkpoint=%zu",
               (long long)m->trial, m->attempt, m->pause.epoch, size);
        if (ho_report_refusal(session->link, m->trial, m->attempt, HO_FAIL_CANCELLED, "paused",
                              &err) != HO_OK) {
            complain("pause", &err);
        }
    }
}

void ho_session_evolve(ho_session *session)
{
    ho_lane_context context = ho_loaded_study_context(session->loaded);
    ho_evolution_turn(session->evolution, session->pool, &context);
}

/* ---- the study ----------------------------------------------------------------------------- */

/* Where the worker's time with a study went: what a device waited for, in seconds. */
static void log_times(const ho_session *session)
{
    if (!session->pool) {
        return;
    }
    ho_pool_times t = ho_pool_spent(session->pool);
    double all = (double)(ho_session_now_ns() - session->opened_ns) * 1e-9;
    ho_log(HO_LOG_INFO, "worker",
           "time study=%.1f device_busy=%.1f waiting=%.1f entering=%.1f scoring=%.1f telling=%.1f "
           "saving=%.1f reading_before=%.1f epochs=%lld lane_epochs=%lld",
           all, (double)t.device_ns * 1e-9, (double)t.waiting_ns * 1e-9,
           (double)t.entering_ns * 1e-9, (double)t.scoring_ns * 1e-9, (double)t.telling_ns * 1e-9,
           (double)session->saving_ns * 1e-9, (double)session->reading_ns * 1e-9,
           (long long)t.epochs, (long long)t.lane_epochs);
}

void ho_session_close_study(ho_session *session)
{
    log_times(session);
    for (int i = 0; i < session->order_count; i++) {
        ho_message_clear(&session->order[i]);
    }
    free(session->order);
    session->order = NULL;
    session->order_count = 0;
    ho_backtest_drop(&session->baselines);
    ho_pool_destroy(&session->pool);
    ho_commands_destroy(&session->commands);
    ho_checkpoints_destroy(&session->checkpoints);
    ho_evolution_destroy(&session->evolution);
    ho_loaded_study_destroy(&session->loaded);
}

/* Data or study cannot be used: every trial that was given fails, and the worker leaves. */
static void refuse_study(ho_session *session, ho_status rc, const ho_err *err)
{
    ho_err ignored = {0};
    ho_log(HO_LOG_ERROR, "worker", "the study cannot run here: %s", err->text);
    for (int i = 0; i < session->order_count; i++) {
        const ho_msg_trials *trials = &session->order[i].trials;
        for (int32_t k = 0; k < trials->count; k++) {
            (void)ho_report_refusal(session->link, trials->order[k].trial, trials->order[k].attempt,
                                    HO_FAIL_DATA, err->text, &ignored);
        }
    }
    for (int i = 0; i < session->order_count; i++) {
        ho_message_clear(&session->order[i]);
    }
    session->order_count = 0;
    int code = rc == HO_EGPU     ? HO_WORKER_EXIT_DEVICE
               : rc == HO_EUSAGE ? HO_WORKER_EXIT_USAGE
                                 : HO_WORKER_EXIT_DATA;
    ho_session_leave(session, code, err);
}

static ho_status open_pool(ho_session *session, ho_err *err)
{
    const ho_settings *settings = session->loaded->study->settings;
    ho_pool_options options = {
        .backend = session->backend,
        .market = session->loaded->market,
        .sink = {session, on_epoch, on_finished, on_failed, on_ending},
        .overlap = ho_settings_i64(settings, HO_KEY_POPULATION_SIZE) == 0,
    };
    if (!ho_settings_is_auto(settings, HO_KEY_WORKERS_LANES)) {
        options.lanes = (int)ho_settings_i64(settings, HO_KEY_WORKERS_LANES);
    }
    int folds = session->loaded->folds->count;
    bool once = ho_settings_choice(settings, HO_KEY_FOLDS_REFIT) == 1;
    options.together = (int)ho_settings_i64(settings, HO_KEY_POPULATION_SIZE) * (once ? 1 : folds) *
                       (int)ho_settings_i64(settings, HO_KEY_STUDY_SEEDS);
    session->checkpoints = ho_checkpoints_create(
        (int)ho_settings_i64(settings, HO_KEY_CHECKPOINT_EVERY),
        (int64_t)(ho_settings_f64(settings, HO_KEY_CHECKPOINT_INTERVAL) * 1000),
        ho_settings_bool(settings, HO_KEY_CHECKPOINT_REPLAY));
    if (!session->checkpoints) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for the study");
    }
    ho_status rc = ho_evolution_create(&session->evolution, session->loaded->study, err);
    return rc == HO_OK ? ho_pool_create(&session->pool, &options, err) : rc;
}

/* The study is open: what was ordered meanwhile starts. */
static void begin(ho_session *session)
{
    for (int i = 0; i < session->order_count; i++) {
        if (session->commands) {
            ho_session_start_commands(session, &session->order[i].trials);
        } else {
            start_orders(session, &session->order[i].trials);
        }
        ho_message_clear(&session->order[i]);
    }
    session->order_count = 0;
}

int ho_session_queued(const ho_session *session)
{
    int n = 0;
    for (int i = 0; i < session->order_count; i++) {
        n += session->order[i].trials.count;
    }
    return n;
}

void ho_session_open_gate(ho_session *session)
{
    int queued = ho_session_queued(session);
    if (queued > 0 && (queued >= ho_evolution_size(session->evolution) ||
                       ho_session_now_ms() >= session->gate_at_ms)) {
        begin(session);
    }
}

void ho_session_begin_baselines(ho_session *session)
{
    ho_err err = {0};
    session->baselines_due = false;
    ho_lane_context context = ho_loaded_study_context(session->loaded);
    if (ho_report_baselines_begin(session->loaded->market, &context, &session->baselines, &err) !=
        HO_OK) {
        complain("baselines", &err);
    }
}

void ho_session_send_baselines(ho_session *session, bool wait)
{
    ho_err err = {0};
    if (!session->baselines || (!wait && !ho_backtest_ready(session->baselines))) {
        return;
    }
    if (ho_report_baselines(session->link, &session->baselines, session->loaded->folds->count,
                            &err) != HO_OK) {
        complain("baselines", &err);
    }
}

static void open_market(ho_session *session)
{
    ho_err err = {0};
    ho_loaded_study *loaded = session->loaded;
    int64_t since = ho_session_now_ns();
    ho_status rc = ho_loaded_study_open(loaded, session->backend, &err);
    session->opened_ns = ho_session_now_ns();
    session->reading_ns = session->opened_ns - since;
    session->saving_ns = 0;
    if (rc == HO_OK) {
        rc = open_pool(session, &err);
    }
    if (rc != HO_OK) {
        refuse_study(session, rc, &err);
        return;
    }
    ho_log(HO_LOG_INFO, "worker", "market open bars=%lld features=%d folds=%d",
           (long long)loaded->bars.count, loaded->features.F, loaded->folds->count);
    session->baselines_due = true;
    session->say_ready = true;
    if (!session->evolution) {
        begin(session);
    }
}

static void open_commands(ho_session *session)
{
    ho_err err = {0};
    ho_status rc = ho_session_open_commands(session, &err);
    if (rc != HO_OK) {
        refuse_study(session, rc, &err);
        return;
    }
    session->say_ready = true;
    begin(session);
}

/* Looks for the data; opens the market when it is complete, asks for what is missing else. */
static void find_data(ho_session *session)
{
    ho_err err = {0};
    ho_message want = ho_message_make(HO_MSG_WANT);
    session->want_at_ms = 0;
    ho_status rc = ho_loaded_study_find(session->loaded, session->cache, &want.want, &err);
    if (rc == HO_OK) {
        open_market(session);
    } else if (rc == HO_EAGAIN) {
        session->want_at_ms = ho_session_now_ms() + session->want_pause_ms;
        if (ho_link_send(session->link, &want, &err) != HO_OK) {
            complain("want", &err);
        }
    } else if (rc == HO_ELOCKED) {
        session->want_at_ms = ho_session_now_ms() + 1000;
    } else {
        refuse_study(session, rc, &err);
    }
}

void ho_session_look_for_data(ho_session *session)
{
    if (session->loaded && !session->pool && session->want_at_ms > 0 &&
        ho_session_now_ms() >= session->want_at_ms) {
        if (session->want_pause_ms < WANT_AGAIN_MAX_MS) {
            session->want_pause_ms *= 2;
        }
        find_data(session);
    }
}

void ho_session_take_study(ho_session *session, ho_message *message)
{
    ho_err err = {0};
    session->say_ready = true;
    if (session->loaded && strcmp(session->loaded->uuid, message->study.uuid) == 0) {
        if (!session->pool && !session->commands) {
            find_data(session); /* joined again in the middle of a transfer */
        }
        return;
    }
    ho_session_close_study(session);
    session->want_pause_ms = WANT_AGAIN_MS;
    ho_status rc = ho_loaded_study_create(&session->loaded, &message->study, &err);
    if (rc != HO_OK) {
        refuse_study(session, rc, &err);
        return;
    }
    if (session->loaded->study->command) {
        open_commands(session);
    } else {
        find_data(session);
    }
}

/* What came is written, or is of no use: the next may come. */
static void say_got(ho_session *session, uint64_t ticket)
{
    ho_err err = {0};
    ho_message got = ho_message_make(HO_MSG_GOT);
    got.got.ticket = ticket;
    if (ho_link_send(session->link, &got, &err) != HO_OK) {
        complain("got", &err);
    }
}

static void take_data(ho_session *session, const ho_msg_chunk *chunk)
{
    ho_err err = {0};
    bool next = false, wanted = session->loaded && !session->pool;
    ho_status rc =
        wanted ? ho_loaded_study_chunk(session->loaded, session->cache, chunk, &next, &err) : HO_OK;
    say_got(session, chunk->ticket); /* before what is wanted next, which would be taken for a
                                      * repetition while chunks are under way */
    if (rc != HO_OK) {
        refuse_study(session, rc, &err);
    } else if (next) {
        find_data(session);
    } else if (wanted) {
        session->want_pause_ms = WANT_AGAIN_MS; /* the line is alive */
        session->want_at_ms = ho_session_now_ms() + WANT_AGAIN_MS;
    }
}

void ho_session_take_chunk(ho_session *session, const ho_message *message)
{
    if (message->chunk.kind == HO_CHUNK_DATA) {
        take_data(session, &message->chunk);
    } else if (message->chunk.kind == HO_CHUNK_CHECKPOINT && session->pool) {
        ho_checkpoints_chunk(session->checkpoints, message);
    }
}
