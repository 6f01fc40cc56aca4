/* SPDX-License-Identifier: Apache-2.0
 * Artifacts that arrive, and those that the disk refused: a worker keeps what it sent of a trial
 * until the trial is acked, so a result whose artifacts could not be written is not taken yet, and
 * when there is room again the worker is asked to send all of it once more. Meanwhile nothing new
 * is leased, which bounds what the workers keep. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/server_internal.h"
#include "study/log.h"

enum { PROBE_S = 1, ASK_AGAIN_S = 30 };
static const int64_t second_ns = 1000000000;

/* A file that could not be written. */
struct ho_lost {
    ho_lost *next;
    int64_t worker, trial;
    int32_t attempt;
    ho_chunk_kind kind;
    char name[HO_WIRE_NAME];
    uint64_t total;
    int64_t asked_ns; /* 0: not asked for since it was refused */
};

void ho_server_forget_lost(ho_server *s)
{
    while (s->lost_files) {
        ho_lost *next = s->lost_files->next;
        free(s->lost_files);
        s->lost_files = next;
    }
}

/* A newer checkpoint stands for an older one, however it was sent. */
static ho_lost **find(ho_server *s, const ho_message *m)
{
    ho_lost **at = &s->lost_files;
    while (*at && ((*at)->trial != m->trial || (*at)->attempt != m->attempt ||
                   strcmp((*at)->name, m->chunk.name) != 0)) {
        at = &(*at)->next;
    }
    return at;
}

static void remove_at(ho_lost **at)
{
    ho_lost *gone = *at;
    *at = gone->next;
    free(gone);
}

static void note_lost(ho_server *s, const ho_client *client, const ho_message *m, const char *why)
{
    ho_lost **at = find(s, m);
    if (!s->lost_files) {
        char reason[HO_ERR_TEXT + 64];
        ho_log(HO_LOG_ERROR, "server",
               "paused, artifacts and their results wait at the workers until there is room: %s",
               why);
        (void)snprintf(reason, sizeof reason, "artifacts cannot be written: %s", why);
        ho_dispatch_hold(s->dispatch, reason);
    }
    if (!*at && !(*at = (ho_lost *)calloc(1, sizeof **at))) {
        ho_log(HO_LOG_ERROR, "server", "out of memory: an artifact is lost: %s", why);
        return;
    }
    ho_lost *next = (*at)->next;
    **at = (ho_lost){.next = next,
                     .worker = client->worker,
                     .trial = m->trial,
                     .attempt = m->attempt,
                     .kind = m->chunk.kind,
                     .total = m->chunk.total};
    (void)snprintf((*at)->name, sizeof(*at)->name, "%s", m->chunk.name);
}

void ho_server_take_chunk(ho_server *s, ho_client *client, const ho_message *m, int64_t now_ns)
{
    ho_err err = {0};
    if (m->chunk.kind == HO_CHUNK_DATA) {
        ho_server_offence(s, &client->peer, "workers do not send data files", now_ns);
        return;
    }
    if (!ho_dispatch_holds(s->dispatch, client->worker, m->trial, m->attempt)) {
        return; /* late: the trial was given up or has ended */
    }
    ho_status rc =
        ho_artifacts_chunk(s->artifacts, m->trial, m->attempt, &m->chunk, ho_clock_unix_ns(), &err);
    if (rc == HO_EPROTO) {
        ho_server_offence(s, &client->peer, err.text, now_ns);
    } else if (rc == HO_OK) {
        ho_lost **at = find(s, m);
        if (*at && m->chunk.offset + m->chunk.count == m->chunk.total) {
            remove_at(at);
        } else if (*at && (*at)->asked_ns > 0) {
            (*at)->asked_ns = now_ns; /* it comes, over a slow line perhaps */
        }
    } else if (rc != HO_OK && rc != HO_EAGAIN) {
        note_lost(s, client, m, err.text);
    }
}

bool ho_server_awaits(const ho_server *s, const ho_client *client, const ho_message *m)
{
    for (const ho_lost *l = s->lost_files; l; l = l->next) {
        if (l->worker == client->worker && l->trial == m->trial && l->attempt == m->attempt &&
            l->kind == HO_CHUNK_ARTIFACT) {
            return true;
        }
    }
    return false;
}

/* Asks for what the trial of *first lacks; its other files are marked as asked for, too. */
static void ask_again(ho_server *s, ho_lost *first, int64_t now_ns)
{
    ho_client *client = ho_server_client_of(s, first->worker);
    ho_message fetch = ho_message_make(HO_MSG_FETCH);
    for (ho_lost *l = first; l; l = l->next) {
        if (l->trial == first->trial && l->attempt == first->attempt && l->kind == first->kind) {
            l->asked_ns = now_ns;
        }
    }
    fetch.trial = first->trial;
    fetch.attempt = first->attempt;
    fetch.fetch.fold = fetch.fetch.seed = -1;
    fetch.fetch.kind = first->kind == HO_CHUNK_CHECKPOINT ? HO_FETCH_CHECKPOINT : HO_FETCH_WEIGHTS;
    if (client) {
        ho_server_send(s, client, &fetch);
    }
}

void ho_server_tend_lost(ho_server *s, int64_t now_ns)
{
    uint64_t largest = 0;
    ho_err err = {0};
    if (!s->lost_known && !s->lost_files) {
        return;
    }
    s->lost_known = true;
    for (ho_lost **at = &s->lost_files; *at;) {
        bool asked_once = (*at)->kind == HO_CHUNK_CHECKPOINT && (*at)->asked_ns > 0;
        if (asked_once || !ho_dispatch_is_here(s->dispatch, (*at)->worker) ||
            !ho_dispatch_holds(s->dispatch, (*at)->worker, (*at)->trial, (*at)->attempt)) {
            remove_at(at); /* the next one comes by itself; the trial or its worker is gone */
            continue;
        }
        largest = (*at)->total > largest ? (*at)->total : largest;
        at = &(*at)->next;
    }
    if (!s->lost_files) {
        s->lost_known = false;
        ho_dispatch_hold(s->dispatch, NULL);
        ho_log(HO_LOG_INFO, "server", "artifacts are written again");
        return;
    }
    if (now_ns < s->probe_ns) {
        return;
    }
    s->probe_ns = now_ns + PROBE_S * second_ns;
    if (ho_artifacts_room(s->artifacts, largest, &err) != HO_OK) {
        return;
    }
    for (ho_lost *l = s->lost_files; l; l = l->next) {
        if (l->asked_ns == 0 || now_ns - l->asked_ns > ASK_AGAIN_S * second_ns) {
            ask_again(s, l, now_ns);
        }
    }
}
