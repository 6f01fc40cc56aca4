/* SPDX-License-Identifier: Apache-2.0
 * See session.h. */
#include "worker/session.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cjson/cJSON.h>
#include <sodium.h>

#include "study/log.h"
#include "worker/checkpoints.h"
#include "worker/cohort_pool.h"
#include "worker/job.h"
#include "worker/loaded_study.h"
#include "worker/report.h"

enum {
    IDLE_MS = 200,        /* how long a wait for messages lasts without work */
    WANT_AGAIN_MS = 5000, /* a chunk that does not come is asked for again */
    DELIVER_MS = 60000,   /* a leaving worker waits this long for its last acks */
    POOL_TRIALS_MAX = 4096,
    CHECKPOINT_GAP_MS = 30000, /* a lost worker may cost this much of a trial at least */
    RESUME_MS = 60000,         /* patience with a checkpoint that is on its way */
};

typedef enum leaving { STAYS, DRAINS, LEAVES } leaving;

struct ho_session {
    const ho_worker_options *options;
    ho_backend *backend;
    ho_device_info device;
    ho_msg_hello hello;
    ho_data_cache *cache;
    ho_link *link; /* borrowed while running */
    ho_loaded_study *loaded;
    ho_pool *pool;               /* NULL until the study's market is open */
    ho_checkpoints *checkpoints; /* lives with the pool */
    ho_message *order;           /* `trials` that came before the market was open */
    int order_count;
    int64_t want_at_ms; /* when to look for data again; 0: nothing is wanted */
    leaving leaving;
    bool say_ready;                 /* whatever the figures are */
    ho_msg_ready said;              /* the last ready, without keys */
    int64_t load_at_ms, load_steps; /* since when, experiences since then */
    int exit_code;
    ho_err *err;
};

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- create and destroy -------------------------------------------------------------------- */

static ho_status open_backend(ho_session *session, ho_err *err)
{
    const ho_worker_options *o = session->options;
    ho_backend_options options = ho_backend_defaults();
    int gpus = ho_backend_gpu_count();
    options.kind = !o->cpu && (o->gpu || gpus > 0) ? HO_BACKEND_CUDA : HO_BACKEND_CPU;
    options.threads = o->threads;
    if (o->gpu && strspn(o->gpu, "0123456789") == strlen(o->gpu)) {
        options.device = atoi(o->gpu);
    } else {
        options.gpu_uuid = o->gpu;
    }
    ho_status rc = ho_backend_open(&session->backend, &options, err);
    if (rc != HO_OK) {
        return o->gpu ? ho_err_prefix(err, "--gpu %s", o->gpu) : rc;
    }
    return ho_backend_info(session->backend, &session->device, err);
}

static ho_status open_cache(ho_session *session, ho_err *err)
{
    char folder[HO_CACHE_PATH];
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (session->options->cache) {
        snprintf(folder, sizeof folder, "%s", session->options->cache);
    } else if (base && base[0] == '/') {
        snprintf(folder, sizeof folder, "%s/hyperopt/data", base);
    } else if (home && home[0] == '/') {
        snprintf(folder, sizeof folder, "%s/.cache/hyperopt/data", home);
    } else {
        snprintf(folder, sizeof folder, "/tmp/hyperopt-%ld/data", (long)geteuid());
    }
    return ho_data_cache_open(&session->cache, folder, session->options->cache_limit, err);
}

static void fill_hello(ho_session *session)
{
    ho_msg_hello *hello = &session->hello;
    unsigned char random[16];
    const char *token = getenv("HYPEROPT_WORKER_TOKEN");
    randombytes_buf(random, sizeof random);
    sodium_bin2hex(hello->uuid, sizeof hello->uuid, random, sizeof random);
    snprintf(hello->program, sizeof hello->program, "%s", HYPEROPT_VERSION);
    snprintf(hello->token, sizeof hello->token, "%s", token ? token : "");
    if (gethostname(hello->host, sizeof hello->host - 1) != 0) {
        snprintf(hello->host, sizeof hello->host, "unknown");
    }
    hello->pid = getpid();
    if (session->options->name) {
        snprintf(hello->name, sizeof hello->name, "%s", session->options->name);
    } else {
        snprintf(hello->name, sizeof hello->name, "%.100s:%ld", hello->host, (long)getpid());
    }
    hello->allow_command = session->options->allow_command;
    hello->device_count = 1;
    hello->device = &session->device;
}

ho_status ho_session_create(ho_session **out, const ho_worker_options *options, ho_err *err)
{
    *out = NULL;
    ho_session *session = calloc(1, sizeof *session);
    if (!session) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    session->options = options;
    ho_status rc = open_backend(session, err);
    if (rc == HO_OK) {
        rc = open_cache(session, err);
    }
    if (rc != HO_OK) {
        ho_session_destroy(&session);
        return rc;
    }
    fill_hello(session);
    ho_log(HO_LOG_INFO, "worker", "device name=\"%s\" uuid=%s processors=%d memory_mb=%zu",
           session->device.name, session->device.uuid, session->device.processors,
           session->device.memory_total >> 20);
    *out = session;
    return HO_OK;
}

static void close_study(ho_session *session)
{
    for (int i = 0; i < session->order_count; i++) {
        ho_message_clear(&session->order[i]);
    }
    free(session->order);
    session->order = NULL;
    session->order_count = 0;
    ho_pool_destroy(&session->pool);
    ho_checkpoints_destroy(&session->checkpoints);
    ho_loaded_study_destroy(&session->loaded);
}

void ho_session_destroy(ho_session **session)
{
    if (!session || !*session) {
        return;
    }
    close_study(*session);
    ho_data_cache_close(&(*session)->cache);
    ho_backend_close(&(*session)->backend);
    free(*session);
    *session = NULL;
}

const ho_msg_hello *ho_session_hello(const ho_session *session)
{
    return &session->hello;
}

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
    if (ho_report_epoch(session->link, run, row, &err) != HO_OK) {
        complain("report", &err);
    }
}

static void on_finished(void *user, ho_trial_run *run)
{
    ho_session *session = user;
    ho_err err = {0};
    ho_log(HO_LOG_INFO, "worker", "finished trial=%lld attempt=%d seconds=%.1f",
           (long long)run->plan->number, run->plan->attempt,
           (double)(run->ended_ns - run->started_ns) * 1e-9);
    if (ho_report_result(session->link, run, &err) != HO_OK) {
        complain("result", &err);
        (void)ho_report_refusal(session->link, run->plan->number, run->plan->attempt,
                                HO_FAIL_INTERNAL, err.text, &err);
    }
}

static void on_failed(void *user, const ho_trial_run *run, const ho_trial_failure *failure)
{
    ho_session *session = user;
    ho_err err = {0};
    ho_log(HO_LOG_WARN, "worker", "failed trial=%lld attempt=%d reason=\"%s\"",
           (long long)run->plan->number, run->plan->attempt, failure->reason);
    if (ho_report_failure(session->link, run->plan->number, run->plan->attempt, failure, &err) !=
        HO_OK) {
        complain("failure", &err);
    }
}

/* ---- the study ----------------------------------------------------------------------------- */

static void leave(ho_session *session, int exit_code, const ho_err *why)
{
    session->leaving = LEAVES;
    session->exit_code = exit_code;
    if (why) {
        *session->err = *why;
    }
}

/* blob: a checkpoint to go on from, or NULL. */
static void start_order(ho_session *session, const ho_trial_order *order, const void *blob,
                        size_t size)
{
    ho_err err = {0};
    ho_trial_plan *plan = NULL;
    ho_lane_context context = ho_loaded_study_context(session->loaded);
    ho_status rc = HO_EINVAL;
    if (order->param_count != context.study->space.count) {
        (void)ho_err_set(&err, HO_EINVAL, "%d parameters came for a space of %d",
                         order->param_count, context.study->space.count);
    } else {
        rc = ho_lane_config_plan(&context, order->trial, order->attempt, order->seed, order->config,
                                 &plan, &err);
    }
    if (rc == HO_OK) {
        rc = blob ? ho_pool_resume(session->pool, &plan, blob, size, &err)
                  : ho_pool_add(session->pool, &plan, &err);
    }
    if (rc != HO_OK) {
        ho_log(HO_LOG_WARN, "worker", "refused trial=%lld reason=\"%s\"", (long long)order->trial,
               err.text);
        ho_err ignored = {0};
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

/* Starts the trials whose checkpoints have come. */
static void start_resumed(ho_session *session)
{
    ho_trial_order order;
    void *blob = NULL;
    size_t size = 0;
    while (ho_checkpoints_next(session->checkpoints, RESUME_MS, &order, &blob, &size)) {
        if (!blob) {
            ho_log(HO_LOG_WARN, "worker", "checkpoint did not come, trial=%lld starts anew",
                   (long long)order.trial);
        }
        start_order(session, &order, blob, size);
        free(order.config);
        free(blob);
    }
}

/* Keeps orders for the time when the market is open. Takes the message. */
static void queue_orders(ho_session *session, ho_message *message)
{
    ho_message *grown = realloc(session->order, (size_t)(session->order_count + 1) * sizeof *grown);
    if (!grown) {
        ho_log(HO_LOG_ERROR, "worker", "out of memory for orders");
        ho_message_clear(message);
        return;
    }
    session->order = grown;
    session->order[session->order_count++] = *message;
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
    leave(session, rc == HO_EGPU ? HO_WORKER_EXIT_DEVICE : HO_WORKER_EXIT_DATA, err);
}

static void open_market(ho_session *session)
{
    ho_err err = {0};
    ho_loaded_study *loaded = session->loaded;
    ho_status rc = ho_loaded_study_open(loaded, session->backend, &err);
    ho_pool_options options = {
        .backend = session->backend,
        .market = loaded->market,
        .sink = {session, on_epoch, on_finished, on_failed},
    };
    const ho_settings *settings = loaded->study->settings;
    if (!ho_settings_is_auto(settings, HO_KEY_WORKERS_LANES)) {
        options.lanes = (int)ho_settings_i64(settings, HO_KEY_WORKERS_LANES);
    }
    if (rc == HO_OK) {
        session->checkpoints = ho_checkpoints_create(
            (int)ho_settings_i64(settings, HO_KEY_CHECKPOINT_EVERY), CHECKPOINT_GAP_MS,
            ho_settings_bool(settings, HO_KEY_CHECKPOINT_REPLAY));
        rc = session->checkpoints ? ho_pool_create(&session->pool, &options, &err)
                                  : ho_err_set(&err, HO_ENOMEM, "out of memory");
    }
    if (rc != HO_OK) {
        refuse_study(session, rc, &err);
        return;
    }
    ho_log(HO_LOG_INFO, "worker", "market open bars=%lld features=%d folds=%d",
           (long long)loaded->bars.count, loaded->features.F, loaded->folds->count);
    session->say_ready = true;
    for (int i = 0; i < session->order_count; i++) {
        start_orders(session, &session->order[i].trials);
        ho_message_clear(&session->order[i]);
    }
    session->order_count = 0;
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
        session->want_at_ms = now_ms() + WANT_AGAIN_MS;
        if (ho_link_send(session->link, &want, &err) != HO_OK) {
            complain("want", &err);
        }
    } else if (rc == HO_ELOCKED) {
        session->want_at_ms = now_ms() + 1000;
    } else {
        refuse_study(session, rc, &err);
    }
}

static void take_study(ho_session *session, ho_message *message)
{
    ho_err err = {0};
    session->say_ready = true;
    if (session->loaded && strcmp(session->loaded->uuid, message->study.uuid) == 0) {
        if (!session->pool) {
            find_data(session);
        }
        return; /* joined again */
    }
    close_study(session);
    ho_status rc = ho_loaded_study_create(&session->loaded, &message->study, &err);
    if (rc != HO_OK) {
        refuse_study(session, rc, &err);
        return;
    }
    find_data(session);
}

static void take_chunk(ho_session *session, const ho_message *message)
{
    ho_err err = {0};
    bool next = false;
    if (message->chunk.kind == HO_CHUNK_CHECKPOINT && session->pool) {
        ho_checkpoints_chunk(session->checkpoints, message);
        return;
    }
    if (message->chunk.kind != HO_CHUNK_DATA || !session->loaded || session->pool) {
        return;
    }
    session->want_at_ms = now_ms() + WANT_AGAIN_MS;
    ho_status rc =
        ho_loaded_study_chunk(session->loaded, session->cache, &message->chunk, &next, &err);
    if (rc != HO_OK) {
        refuse_study(session, rc, &err);
    } else if (next) {
        find_data(session);
    }
}

/* ---- other messages ------------------------------------------------------------------------ */

static void take_job(ho_session *session, const ho_msg_job *job)
{
    ho_err err = {0};
    ho_job_reply reply = {0};
    ho_message done = ho_message_make(HO_MSG_DONE);
    ho_job_context context = {.backend = session->backend};
    if (session->pool) {
        context.market = session->loaded->market;
        context.study = session->loaded->study;
        context.bars = &session->loaded->bars;
        context.features = &session->loaded->features;
        context.folds = session->loaded->folds;
    }
    cJSON *arguments = job->body ? cJSON_Parse(job->body) : NULL;
    ho_status rc = ho_job_run(job->command, &context, arguments, &reply, &err);
    cJSON_Delete(arguments);
    done.done.job = job->job;
    done.done.status = rc;
    snprintf(done.done.reason, sizeof done.done.reason, "%s", err.text);
    done.done.body = reply.body ? cJSON_PrintUnformatted(reply.body) : NULL;
    done.done.window_count = reply.window_count;
    done.done.window = reply.window;
    if (ho_link_send(session->link, &done, &err) != HO_OK) {
        complain("done", &err);
    }
    free(done.done.body);
    ho_job_reply_clear(&reply);
}

/* Trials whose lanes have not started are handed back; the others end here. */
static void drain(ho_session *session)
{
    static const ho_trial_run *run[POOL_TRIALS_MAX];
    ho_err err = {0};
    session->leaving = DRAINS;
    int n = session->pool ? ho_pool_trials(session->pool, run, POOL_TRIALS_MAX) : 0;
    for (int i = n - 1; i >= 0; i--) {
        if (run[i]->started_ns == 0) {
            int64_t number = run[i]->plan->number;
            int32_t attempt = run[i]->plan->attempt;
            (void)ho_report_refusal(session->link, number, attempt, HO_FAIL_CANCELLED,
                                    "the worker drains", &err);
            (void)ho_pool_drop(session->pool, number, attempt);
        }
    }
}

static void take(ho_session *session, ho_message *m)
{
    ho_err err = {0};
    switch (m->type) {
    case HO_MSG_STUDY:
        take_study(session, m);
        break;
    case HO_MSG_TRIALS:
        if (session->pool) {
            start_orders(session, &m->trials);
        } else {
            queue_orders(session, m);
            return;
        }
        break;
    case HO_MSG_PRUNE:
    case HO_MSG_DROP:
        if (session->pool && (ho_pool_drop(session->pool, m->trial, m->attempt) ||
                              ho_checkpoints_forget(session->checkpoints, m->trial, m->attempt))) {
            ho_log(HO_LOG_INFO, "worker", "%s trial=%lld attempt=%d", ho_message_name(m->type),
                   (long long)m->trial, m->attempt);
        }
        break;
    case HO_MSG_CHUNK:
        take_chunk(session, m);
        break;
    case HO_MSG_JOB:
        take_job(session, &m->job);
        break;
    case HO_MSG_STOP:
        ho_log(HO_LOG_INFO, "worker", "stop mode=%s",
               m->stop.mode == HO_STOP_NOW ? "now" : "drain");
        if (m->stop.mode == HO_STOP_NOW) {
            leave(session, HO_WORKER_EXIT_OK, NULL);
        } else if (session->leaving == STAYS) {
            drain(session);
        }
        break;
    case HO_MSG_REFUSE:
        (void)ho_err_set(&err, HO_EUSAGE, "refused by the coordinator: %s", m->refuse.reason);
        leave(session, HO_WORKER_EXIT_USAGE, &err);
        break;
    default:
        ho_log(HO_LOG_WARN, "worker", "message not understood type=%s", ho_message_name(m->type));
        break;
    }
    ho_message_clear(m);
}

/* ---- what the worker says by itself -------------------------------------------------------- */

/* Lanes of one trial of this study. */
static int trial_lanes(const ho_loaded_study *loaded)
{
    const ho_settings *settings = loaded->study->settings;
    bool once = ho_settings_choice(settings, HO_KEY_FOLDS_REFIT) == 1;
    return (once ? 1 : loaded->folds->count) * (int)ho_settings_i64(settings, HO_KEY_STUDY_SEEDS);
}

/* Tells the coordinator how many trials it may send: those that fill the lanes, and a few beyond so
 * that a freed slot never waits for the network. */
static void say_ready(ho_session *session)
{
    ho_err err = {0};
    const ho_cohort_key *key[HO_WIRE_KEYS_MAX];
    static const ho_trial_run *run[POOL_TRIALS_MAX];
    if (!session->pool || session->leaving != STAYS || !ho_link_joined(session->link)) {
        return;
    }
    ho_pool *pool = session->pool;
    int lanes = trial_lanes(session->loaded);
    ho_message m = ho_message_make(HO_MSG_READY);
    m.ready.lanes = ho_pool_lane_capacity(pool, lanes);
    m.ready.active_lanes = ho_pool_active_lanes(pool);
    m.ready.waiting_lanes = ho_pool_waiting_lanes(pool);
    int abreast = m.ready.lanes > lanes ? m.ready.lanes / lanes : 1;
    int target = abreast + (abreast > 4 ? abreast / 4 : 1);
    int held =
        ho_pool_trials(pool, run, POOL_TRIALS_MAX) + ho_checkpoints_waiting(session->checkpoints);
    m.ready.slots = target > held ? target - held : 0;
    int keys = ho_pool_keys(pool, key, HO_WIRE_KEYS_MAX);
    if (!session->say_ready && session->said.slots == m.ready.slots &&
        session->said.lanes == m.ready.lanes && session->said.key_count == keys) {
        return;
    }
    m.ready.key = calloc((size_t)keys + 1, sizeof *m.ready.key);
    for (int i = 0; m.ready.key && i < keys; i++) {
        m.ready.key[m.ready.key_count++] = *key[i];
    }
    if (ho_link_send(session->link, &m, &err) == HO_OK) {
        session->say_ready = false;
        session->said = m.ready;
        session->said.key = NULL;
    } else {
        complain("ready", &err);
    }
    ho_message_clear(&m);
}

/* Figures for pongs, a few times a second. */
static void update_load(ho_session *session)
{
    int64_t now = now_ms(), passed = now - session->load_at_ms;
    if (passed < 1000) {
        return;
    }
    ho_err err = {0};
    ho_device_info info = session->device;
    ho_link_load load = {.memory_share = NAN};
    load.active_lanes = session->pool ? ho_pool_active_lanes(session->pool) : 0;
    load.steps_per_s = (double)session->load_steps * 1000.0 / (double)passed;
    if (ho_backend_info(session->backend, &info, &err) == HO_OK && info.memory_total > 0) {
        load.memory_share = 1.0 - (double)info.memory_free / (double)info.memory_total;
    }
    ho_link_set_load(session->link, &load);
    session->load_at_ms = now;
    session->load_steps = 0;
}

/* Gives every trial back, with a checkpoint when `save`, and says goodbye. */
static void say_bye(ho_session *session, const char *reason, bool save)
{
    static const ho_trial_run *run[POOL_TRIALS_MAX];
    ho_err err = {0};
    int n = session->pool ? ho_pool_trials(session->pool, run, POOL_TRIALS_MAX) : 0;
    if (n > 0 && save) {
        ho_checkpoints_send_all(session->checkpoints, session->pool, session->link);
    }
    for (int i = n - 1; i >= 0; i--) {
        (void)ho_report_refusal(session->link, run[i]->plan->number, run[i]->plan->attempt,
                                HO_FAIL_CANCELLED, reason, &err);
    }
    ho_message bye = ho_message_make(HO_MSG_BYE);
    snprintf(bye.bye.reason, sizeof bye.bye.reason, "%s", reason);
    if (ho_link_send(session->link, &bye, &err) != HO_OK) {
        complain("bye", &err);
    }
    (void)ho_link_flush(session->link, 3000);
}

/* One turn: messages, data that is due, one epoch. */
static void turn(ho_session *session, bool *worked)
{
    ho_message message;
    int wait_ms = *worked ? 0 : IDLE_MS;
    while (session->leaving != LEAVES && ho_link_receive(session->link, wait_ms, &message)) {
        take(session, &message);
        wait_ms = 0;
    }
    *worked = false;
    if (session->leaving == LEAVES) {
        return;
    }
    if (session->loaded && !session->pool && session->want_at_ms > 0 &&
        now_ms() >= session->want_at_ms) {
        find_data(session);
    }
    say_ready(session);
    if (session->pool) {
        ho_err err = {0};
        start_resumed(session);
        if (ho_pool_step(session->pool, worked, &err) == HO_EGPU) {
            leave(session, HO_WORKER_EXIT_DEVICE, &err);
            return;
        }
        ho_checkpoints_send_due(session->checkpoints, session->pool, session->link);
    }
    update_load(session);
}

int ho_session_run(ho_session *session, ho_link *link, const volatile int *hand_back, ho_err *err)
{
    session->link = link;
    session->err = err;
    session->load_at_ms = now_ms();
    int64_t drained_ms = 0;
    bool worked = false;
    while (session->leaving != LEAVES && !*hand_back) {
        turn(session, &worked);
        if (session->leaving == DRAINS && !worked) {
            /* all trained; the last acks are due */
            drained_ms = drained_ms == 0 ? now_ms() : drained_ms;
            if (ho_link_settled(link) || now_ms() - drained_ms > DELIVER_MS) {
                break;
            }
        }
    }
    say_bye(session,
            *hand_back     ? "stopped by a signal"
            : err->text[0] ? err->text
                           : "stopped",
            session->exit_code == HO_WORKER_EXIT_OK);
    close_study(session);
    session->link = NULL;
    return session->exit_code;
}
