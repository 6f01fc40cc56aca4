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
#include "worker/job.h"
#include "worker/report.h"
#include "worker/session_internal.h"

enum {
    IDLE_MS = 200,       /* how long a wait for messages lasts without work */
    DELIVER_MS = 60000,  /* without a coordinator a leaving worker waits this long to deliver */
    BASELINES_MS = 2000, /* without a trial they begin so long after the market was opened */
    TRIALS_MAX = 4096,
};

int64_t ho_session_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t ho_session_now_ms(void)
{
    return ho_session_now_ns() / 1000000;
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

void ho_session_destroy(ho_session **session)
{
    if (!session || !*session) {
        return;
    }
    ho_session_close_study(*session);
    ho_data_cache_close(&(*session)->cache);
    ho_backend_close(&(*session)->backend);
    free(*session);
    *session = NULL;
}

const ho_msg_hello *ho_session_hello(const ho_session *session)
{
    return &session->hello;
}

void ho_session_leave(ho_session *session, int exit_code, const ho_err *why)
{
    session->leaving = LEAVES;
    session->exit_code = exit_code;
    if (why) {
        *session->err = *why;
    }
}

static void complain(const char *what, const ho_err *err)
{
    ho_log(HO_LOG_ERROR, "worker", "%s: %s", what, err->text);
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
        context.auto_batch = session->loaded->auto_batch;
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
    static const ho_trial_run *run[TRIALS_MAX];
    ho_err err = {0};
    session->leaving = DRAINS;
    ho_session_hand_back_orders(session, "the worker drains");
    ho_session_hand_back_commands(session, "the worker drains", false);
    int n = session->pool ? ho_pool_trials(session->pool, run, TRIALS_MAX) : 0;
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
        ho_session_take_study(session, m);
        break;
    case HO_MSG_TRIALS:
        ho_session_take_trials(session, m);
        break;
    case HO_MSG_PRUNE:
    case HO_MSG_DROP:
        ho_session_take_end(session, m);
        break;
    case HO_MSG_PAUSE:
        ho_session_take_pause(session, m);
        break;
    case HO_MSG_CHUNK:
        ho_session_take_chunk(session, m);
        break;
    case HO_MSG_FETCH:
        if (session->pool) { /* of a checkpoint; the link answers the others */
            ho_checkpoints_send(session->checkpoints, session->pool, session->link, m->trial,
                                m->attempt);
        }
        break;
    case HO_MSG_JOB:
        take_job(session, &m->job);
        break;
    case HO_MSG_STOP:
        ho_log(HO_LOG_INFO, "worker", "stop mode=%s",
               m->stop.mode == HO_STOP_NOW ? "now" : "drain");
        if (m->stop.mode == HO_STOP_NOW) {
            ho_session_leave(session, HO_WORKER_EXIT_OK, NULL);
        } else if (session->leaving == STAYS) {
            drain(session);
        }
        break;
    case HO_MSG_REFUSE:
        (void)ho_err_set(&err, HO_EUSAGE, "refused by the coordinator: %s", m->refuse.reason);
        ho_session_leave(session, HO_WORKER_EXIT_USAGE, &err);
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
    static const ho_trial_run *run[TRIALS_MAX];
    if (session->leaving != STAYS || !ho_link_joined(session->link)) {
        return;
    }
    if (session->commands) {
        ho_session_say_ready_for_commands(session);
    }
    if (!session->pool) {
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
    int held = ho_pool_trials(pool, run, TRIALS_MAX) +
               ho_checkpoints_waiting(session->checkpoints) + ho_session_queued(session);
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
    int64_t now = ho_session_now_ms(), passed = now - session->load_at_ms;
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
    static const ho_trial_run *run[TRIALS_MAX];
    ho_err err = {0};
    ho_session_hand_back_orders(session, reason);
    ho_session_hand_back_commands(session, reason, true);
    if (session->pool && save) {
        (void)ho_pool_settle(session->pool, -1, &err);
    }
    int n = session->pool ? ho_pool_trials(session->pool, run, TRIALS_MAX) : 0;
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

/* On a GPU baselines begin behind the first epochs: the driver loads a kernel at its first launch,
 * and waits for what runs to do so (0.6 s of random policies). */
static bool idle_since_open(const ho_session *session)
{
    return ho_session_now_ns() - session->opened_ns > (int64_t)BASELINES_MS * 1000000;
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
    ho_session_look_for_data(session);
    say_ready(session);
    if (session->commands) {
        *worked = ho_session_step_commands(session);
    }
    if (session->pool && session->baselines_due && session->device.sm == 0) {
        ho_session_begin_baselines(session); /* while the first orders are on their way */
    }
    if (session->pool) {
        ho_err err = {0};
        ho_session_open_gate(session);
        ho_session_start_resumed(session);
        if (ho_pool_step(session->pool, worked, &err) == HO_EGPU) {
            ho_session_leave(session, HO_WORKER_EXIT_DEVICE, &err);
            return;
        }
        if (session->baselines_due && (*worked || idle_since_open(session))) {
            ho_session_begin_baselines(session);
        }
        ho_session_send_baselines(session, !*worked);
        ho_session_evolve(session);
        int64_t since = ho_session_now_ns();
        ho_checkpoints_send_due(session->checkpoints, session->pool, session->link);
        session->saving_ns += ho_session_now_ns() - since;
    }
    update_load(session);
}

int ho_session_run(ho_session *session, ho_link *link, const volatile int *hand_back, ho_err *err)
{
    session->link = link;
    session->err = err;
    session->load_at_ms = ho_session_now_ms();
    int64_t drained_ms = 0;
    bool worked = false;
    while (session->leaving != LEAVES && !*hand_back) {
        turn(session, &worked);
        if (session->leaving == DRAINS && !worked) {
            /* all trained; the last acks are due */
            drained_ms = drained_ms == 0 ? ho_session_now_ms() : drained_ms;
            if (ho_link_settled(link) ||
                (!ho_link_joined(link) && ho_session_now_ms() - drained_ms > DELIVER_MS)) {
                break;
            }
        }
    }
    say_bye(session,
            *hand_back     ? "stopped by a signal"
            : err->text[0] ? err->text
                           : "stopped",
            session->exit_code == HO_WORKER_EXIT_OK);
    ho_session_close_study(session);
    session->link = NULL;
    return session->exit_code;
}
