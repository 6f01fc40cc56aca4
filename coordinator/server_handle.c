/* SPDX-License-Identifier: Apache-2.0
 * What each message of a worker does. A message that makes no sense is an offence: it is logged
 * with its peer and dropped, and after HO_OFFENCES_MAX the peer is refused. */
#include "coordinator/server_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/scoring.h"
#include "study/log.h"

static void fail_run(ho_server *s, ho_status rc, const ho_err *err)
{
    if (s->fatal == HO_OK) {
        s->fatal = rc;
        s->fatal_err = *err;
        s->fatal_err.code = rc;
        if (!s->fatal_err.text[0]) {
            (void)ho_err_set(&s->fatal_err, rc, "%s", ho_status_text(rc));
        }
    }
}

static void refuse(ho_server *s, ho_client *client, const char *reason)
{
    ho_message message = ho_message_make(HO_MSG_REFUSE);
    (void)snprintf(message.refuse.reason, sizeof message.refuse.reason, "%s", reason);
    ho_server_send(s, client, &message);
}

void ho_server_drop(ho_server *s, ho_client *client, ho_cause cause, const char *reason,
                    int64_t now_ns)
{
    if (client->worker >= 0) {
        ho_dispatch_leave(s->dispatch, client->worker, cause, reason, now_ns);
        s->lost += cause == HO_CAUSE_LOST || cause == HO_CAUSE_CRASH;
    }
    client->worker = -1;
    client->gone = true;
}

static void log_offence(ho_server *s, const ho_client *client, const ho_peer *from,
                        const char *reason, int64_t now_ns)
{
    int64_t unlogged = 0;
    if (!ho_offences_may_log(&s->offences, now_ns, &unlogged)) {
        return;
    }
    char more[64] = "";
    if (unlogged > 0) {
        (void)snprintf(more, sizeof more, " (%lld more before it)", (long long)unlogged);
    }
    ho_log(HO_LOG_WARN, "server", "bad message peer=%s address=%s offence=%d: %s%s%s",
           ho_server_client_name(client), from->address[0] ? from->address : "local",
           client->offences, reason,
           client->offences >= HO_OFFENCES_MAX ? "; refused from now on" : "", more);
}

void ho_server_offence(ho_server *s, const ho_peer *from, const char *reason, int64_t now_ns)
{
    ho_client *client = ho_server_client(s, from);
    if (!client && !(client = ho_server_add_client(s, from, now_ns))) {
        return;
    }
    if (client->refused) {
        return;
    }
    if (client->offences == 0 && ho_offences_known(&s->offences, from->address, now_ns)) {
        client->offences = HO_OFFENCES_MAX - 1; /* it was refused on another connection */
    }
    client->offences++;
    log_offence(s, client, from, reason, now_ns);
    if (client->worker < 0 || client->offences >= HO_OFFENCES_MAX) {
        refuse(s, client, reason);
    }
    if (client->offences >= HO_OFFENCES_MAX) {
        ho_offences_refuse(&s->offences, from->address, now_ns);
        if (client->worker >= 0) {
            ho_dispatch_leave(s->dispatch, client->worker, HO_CAUSE_LOST,
                              "refused: it sent nonsense", now_ns);
            client->worker = -1;
        }
        client->refused = true;
    }
}

/* ---- hello ---------------------------------------------------------------------------------- */

/* The same process under an older connection. */
static ho_client *former_self(ho_server *s, const ho_client *client)
{
    for (int i = 0; i < s->clients; i++) {
        ho_client *other = s->client[i];
        if (other != client && !other->gone && other->greeted && client->hello.uuid[0] &&
            strcmp(other->hello.uuid, client->hello.uuid) == 0) {
            return other;
        }
    }
    return NULL;
}

/* Gives the client a seat; held: what its hello says it has. */
static ho_status join(ho_server *s, ho_client *client, const ho_held_trial *held, int held_count,
                      int64_t now_ns, ho_err *err)
{
    const ho_msg_hello *m = &client->hello;
    ho_hello hello = {
        .name = m->name,
        .host = m->host,
        .device = client->device0.name[0] ? client->device0.name : "cpu",
        .device_uuid = client->device0.uuid[0] ? client->device0.uuid : NULL,
        .backend = client->device0.sm > 0 ? "cuda" : "cpu",
        .version = m->program,
        .curve_key = client->peer.curve_key[0] ? client->peer.curve_key : NULL,
        .pid = m->pid,
        .lanes = m->lanes,
        .local = client->peer.local,
        .held = held_count,
    };
    int64_t *number = (int64_t *)calloc(2 * (size_t)held_count + 1, sizeof *number);
    if (!number) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    for (int i = 0; i < held_count; i++) {
        number[i] = held[i].trial;
        number[held_count + i] = held[i].attempt;
    }
    hello.held_number = number;
    hello.held_attempt = number + held_count;
    ho_status rc = ho_dispatch_join(s->dispatch, &hello, now_ns, &client->worker, err);
    free(number);
    return rc;
}

static void tell_to_stop(ho_server *s, ho_client *client)
{
    ho_message stop = ho_message_make(HO_MSG_STOP);
    stop.stop.mode = HO_STOP_NOW;
    ho_server_send(s, client, &stop);
}

/* What it holds is of another study, or of this one before a change. */
static void drop_held(ho_server *s, ho_client *client, const ho_msg_hello *m)
{
    ho_log(HO_LOG_WARN, "server", "worker=%s holds %d trials of another study, or before a change",
           m->name, m->held_count);
    for (int32_t i = 0; i < m->held_count; i++) {
        ho_message drop = ho_message_make(HO_MSG_DROP);
        drop.trial = m->held[i].trial;
        drop.attempt = m->held[i].attempt;
        ho_server_send(s, client, &drop);
    }
}

static void handle_hello(ho_server *s, ho_client *client, const ho_msg_hello *m, int64_t now_ns)
{
    ho_err err = {0};
    ho_message study;
    ho_status rc = HO_OK;

    client->hello = *m;
    client->hello.device = NULL;
    client->hello.cached = NULL;
    client->hello.held = NULL;
    client->device0 = m->device_count > 0 ? m->device[0] : (ho_device_info){0};
    client->greeted = true;
    ho_client *former = former_self(s, client);
    if (former) { /* a reconnect: it keeps its place */
        if (former->peer.local != client->peer.local ||
            strcmp(former->peer.curve_key, client->peer.curve_key) != 0) {
            client->greeted = false;
            ho_server_offence(s, &client->peer, "another worker's uuid under another key", now_ns);
            return;
        }
        client->worker = former->worker;
        former->worker = -1;
        former->gone = true;
    }
    if (client->peer.local && s->local) {
        (void)ho_local_hello(s->local, (pid_t)m->pid);
    }
    if (s->stopping) {
        if (client->peer.local || !s->keep_remote) {
            tell_to_stop(s, client);
        }
        return;
    }
    if ((rc = ho_setup_message(s->options.setup, s->options.uuid, &study, &err)) != HO_OK) {
        fail_run(s, rc, &err);
        return;
    }
    ho_server_send(s, client, &study);
    bool of_this = strcmp(m->study, s->options.uuid) == 0;
    if (!of_this && m->held_count > 0) {
        drop_held(s, client, m);
    }
    if ((rc = join(s, client, m->held, of_this ? m->held_count : 0, now_ns, &err)) != HO_OK) {
        fail_run(s, rc, &err);
        return;
    }
    ho_log(HO_LOG_INFO, "server", "worker joined name=%s host=%s pid=%lld held=%d", m->name,
           m->host, (long long)m->pid, m->held_count);
}

/* A worker that was given up for its silence speaks again, on the connection it had. */
static bool rejoin(ho_server *s, ho_client *client, int64_t now_ns)
{
    ho_err err = {0};
    if (!client->greeted || s->stopping) {
        return false;
    }
    ho_status rc = join(s, client, NULL, 0, now_ns, &err);
    if (rc != HO_OK) {
        fail_run(s, rc, &err);
        return false;
    }
    ho_log(HO_LOG_INFO, "server", "worker is back name=%s", client->hello.name);
    if (client->lanes > 0) {
        ho_dispatch_ready(s->dispatch, client->worker, client->slots, client->lanes, now_ns);
    }
    return true;
}

/* ---- the rest ------------------------------------------------------------------------------- */

static void handle_report(ho_server *s, ho_client *client, const ho_message *m, int64_t now_ns)
{
    ho_err err = {0};
    ho_report_in report = {
        .number = m->trial,
        .attempt = m->attempt,
        .step = m->report.epoch,
        .scored = m->report.scored,
        .folds = m->report.fold_count,
        .fold_value = m->report.fold_value,
        .stat = &m->report.stat,
        .parent =
            m->report.config_count == s->options.setup->study->space.count ? m->report.parent : -1,
        .config = m->report.config,
    };
    for (int i = 0; i < HO_OBJECTIVES_MAX; i++) {
        report.value[i] = i < m->report.value_count ? m->report.value[i] : NAN;
    }
    ho_status rc = ho_dispatch_report(s->dispatch, client->worker, &report, now_ns, &err);
    if (rc == HO_EINVAL) {
        ho_server_offence(s, &client->peer, err.text, now_ns);
    } else if (rc != HO_OK) {
        fail_run(s, rc, &err);
    }
}

/* A result of some folds of a raced trial. Takes *m when the trial goes on. */
static ho_status take_round(ho_server *s, ho_client *client, ho_message *m, int64_t now_ns,
                            ho_err *err)
{
    ho_scored_trial scored = {0};
    ho_message joined = {0};
    uint8_t *bytes = NULL;
    size_t size = 0;
    bool goes_on = false;
    ho_status rc = HO_OK;

    if (!ho_dispatch_holds(s->dispatch, client->worker, m->trial, m->attempt)) {
        ho_trial_result stale = {.number = m->trial, .attempt = m->attempt};
        return ho_dispatch_result(s->dispatch, client->worker, &stale, now_ns, err);
    }
    if ((rc = ho_rounds_join(s->rounds, m, &joined, err)) != HO_OK ||
        (rc = ho_score_trial(s->options.setup, &joined, &scored, err)) != HO_OK ||
        (rc = ho_rounds_pack(m, &bytes, &size, err)) != HO_OK) {
        goto out;
    }
    ho_round_in in = {.result = &scored.result,
                      .folds = scored.folds,
                      .fold_value = scored.fold_value,
                      .message = bytes,
                      .message_size = size};
    rc = ho_dispatch_round(s->dispatch, client->worker, &in, &goes_on, now_ns, err);
    if (rc == HO_OK && goes_on) {
        rc = ho_rounds_keep(s->rounds, m, err);
    }
out:
    ho_scored_trial_free(&scored);
    free(joined.result.window);
    free(bytes);
    return rc;
}

static ho_status take_result(ho_server *s, ho_client *client, const ho_message *m, int64_t now_ns,
                             ho_err *err)
{
    ho_scored_trial scored;
    ho_status rc = ho_score_trial(s->options.setup, m, &scored, err);
    if (rc == HO_OK) {
        rc = ho_dispatch_result(s->dispatch, client->worker, &scored.result, now_ns, err);
        ho_scored_trial_free(&scored);
    }
    return rc;
}

static void handle_result(ho_server *s, ho_client *client, ho_message *m, int64_t now_ns)
{
    ho_err err = {0};
    if (ho_server_awaits(s, client, m)) {
        return; /* it comes again with its artifacts */
    }
    ho_status rc = ho_dispatch_races(s->dispatch, m->trial)
                       ? take_round(s, client, m, now_ns, &err)
                       : take_result(s, client, m, now_ns, &err);
    if (rc == HO_EPROTO || rc == HO_EINVAL) {
        ho_server_offence(s, &client->peer, err.text, now_ns);
    } else if (rc != HO_OK) {
        fail_run(s, rc, &err);
    }
}

static ho_cause cause_of(ho_fail_class class_id)
{
    switch (class_id) {
    case HO_FAIL_CONFIG:
        return HO_CAUSE_CONFIG;
    case HO_FAIL_DIVERGED:
        return HO_CAUSE_DIVERGED;
    case HO_FAIL_OOM:
        return HO_CAUSE_OOM;
    case HO_FAIL_DATA:
        return HO_CAUSE_DATA;
    case HO_FAIL_COMMAND:
        return HO_CAUSE_COMMAND;
    case HO_FAIL_TIMEOUT:
        return HO_CAUSE_TIMEOUT;
    case HO_FAIL_CANCELLED:
        return HO_CAUSE_PREEMPTED;
    default:
        return HO_CAUSE_CRASH;
    }
}

static void handle_fail(ho_server *s, ho_client *client, const ho_message *m, int64_t now_ns)
{
    ho_err err = {0};
    ho_cause cause = cause_of(m->fail.class_id);
    if (cause == HO_CAUSE_PREEMPTED && ho_server_awaits(s, client, m)) {
        return; /* a paused trial: it comes again with its checkpoint */
    }
    if (cause == HO_CAUSE_DATA) {
        s->data_failed = true;
        (void)snprintf(s->data_reason, sizeof s->data_reason, "%s", m->fail.reason);
    }
    ho_status rc = ho_dispatch_fail(s->dispatch, client->worker, m->trial, m->attempt, cause,
                                    m->fail.reason, now_ns, &err);
    if (rc == HO_EINVAL) {
        ho_server_offence(s, &client->peer, err.text, now_ns);
    } else if (rc != HO_OK) {
        fail_run(s, rc, &err);
    }
}

static void handle_baseline(ho_server *s, const ho_msg_baseline *m)
{
    if (!s->options.want_baselines) {
        return;
    }
    ho_err err = {0};
    ho_status rc = ho_score_baselines(s->options.setup, m, s->options.store, &err);
    if (rc == HO_OK) {
        s->options.want_baselines = false;
    } else {
        ho_log(HO_LOG_WARN, "server", "baselines are not usable: %s", err.text);
    }
}

static void handle_want(ho_server *s, ho_client *client, const ho_msg_want *m, int64_t now_ns)
{
    const ho_setup *setup = s->options.setup;
    ho_transfer t = {.kind = HO_CHUNK_DATA, .offset = m->offset};
    int file = 0;
    while (file < setup->file_count && strcmp(setup->file[file].sha256, m->sha256) != 0) {
        file++;
    }
    if (file == setup->file_count || m->offset > setup->file[file].size) {
        ho_server_offence(s, &client->peer, "it wants a file that the study does not have", now_ns);
        return;
    }
    if (ho_server_is_sending(client, m->sha256)) {
        ho_log(HO_LOG_DEBUG, "server", "file wanted again while it is sent worker=%s offset=%llu",
               ho_server_client_name(client), (unsigned long long)m->offset);
        return;
    }
    t.total = setup->file[file].size;
    memcpy(t.sha256, setup->file[file].sha256, sizeof t.sha256);
    t.fd = open(setup->file[file].path, O_RDONLY | O_CLOEXEC);
    if (t.fd < 0) {
        ho_log(HO_LOG_ERROR, "server", "%s: cannot be opened for a worker: %s",
               setup->file[file].path, strerror(errno));
        return;
    }
    ho_log(HO_LOG_INFO, "server", "file wanted worker=%s sha256=%.12s offset=%llu",
           ho_server_client_name(client), t.sha256, (unsigned long long)t.offset);
    ho_server_send_file(client, &t);
}

/* What came is written, or is of no use: the next may come. */
static void say_got(ho_server *s, ho_client *client, uint64_t ticket)
{
    ho_message got = ho_message_make(HO_MSG_GOT);
    got.got.ticket = ticket;
    ho_server_send(s, client, &got);
}

void ho_server_handle(ho_server *s, const ho_peer *from, ho_message *m, int64_t now_ns)
{
    ho_client *client = ho_server_client(s, from);

    if (!client && !(client = ho_server_add_client(s, from, now_ns))) {
        int64_t unlogged = 0;
        if (ho_offences_may_log(&s->offences, now_ns, &unlogged)) {
            ho_log(HO_LOG_WARN, "server",
                   "too many connections without a hello: message dropped unlogged=%lld",
                   (long long)unlogged);
        }
        goto out;
    }
    if (client->refused) {
        goto out;
    }
    client->seen_ns = now_ns;
    if (m->type == HO_MSG_HELLO) {
        handle_hello(s, client, &m->hello, now_ns);
        goto out;
    }
    if (client->worker < 0 && (m->type == HO_MSG_BYE || !rejoin(s, client, now_ns))) {
        if (!client->greeted) {
            ho_server_offence(s, from, "not a hello", now_ns);
        }
        client->gone = m->type == HO_MSG_BYE;
        goto out;
    }
    ho_dispatch_heard(s->dispatch, client->worker, now_ns);
    switch (m->type) {
    case HO_MSG_READY:
        client->slots = m->ready.slots;
        client->lanes = m->ready.lanes > 0 ? m->ready.lanes : 1;
        ho_dispatch_ready(s->dispatch, client->worker, client->slots, client->lanes, now_ns);
        break;
    case HO_MSG_REPORT:
        handle_report(s, client, m, now_ns);
        break;
    case HO_MSG_RESULT:
        handle_result(s, client, m, now_ns);
        break;
    case HO_MSG_BASELINE:
        handle_baseline(s, &m->baseline);
        break;
    case HO_MSG_FAIL:
        handle_fail(s, client, m, now_ns);
        break;
    case HO_MSG_WANT:
        handle_want(s, client, &m->want, now_ns);
        break;
    case HO_MSG_CHUNK:
        ho_server_take_chunk(s, client, m, now_ns);
        say_got(s, client, m->chunk.ticket);
        break;
    case HO_MSG_GOT:
        (void)ho_flow_got(&client->flow, m->got.ticket);
        break;
    case HO_MSG_BYE:
        (void)snprintf(s->last_bye, sizeof s->last_bye, "%s", m->bye.reason);
        ho_server_drop(s, client, HO_CAUSE_PREEMPTED, m->bye.reason, now_ns);
        break;
    case HO_MSG_PONG:
        client->pong = m->pong;
        break;
    default:
        ho_server_offence(s, from, "not a message for a run", now_ns);
        break;
    }
out:
    ho_message_clear(m);
}
