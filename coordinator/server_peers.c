/* SPDX-License-Identifier: Apache-2.0
 * The table of peers: finding, sending with a queue of their own, transfers of data files. */
#include "coordinator/server_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "study/log.h"

const char *ho_server_client_name(const ho_client *client)
{
    return client->greeted ? client->hello.name : "?";
}

ho_client *ho_server_client(ho_server *s, const ho_peer *peer)
{
    for (int i = 0; i < s->clients; i++) {
        if (ho_peer_same(&s->client[i]->peer, peer) && !s->client[i]->gone) {
            return s->client[i];
        }
    }
    return NULL;
}

ho_client *ho_server_client_of(ho_server *s, int64_t worker)
{
    for (int i = 0; i < s->clients; i++) {
        if (s->client[i]->worker == worker && !s->client[i]->gone) {
            return s->client[i];
        }
    }
    return NULL;
}

ho_worker_load ho_server_load(const ho_server *s)
{
    ho_worker_load load = {.lost = s->lost, .memory_share = NAN};

    for (int i = 0; i < s->clients; i++) {
        const ho_client *client = s->client[i];
        if (client->worker < 0 || client->gone) {
            continue;
        }
        load.lanes += client->lanes;
        load.active_lanes += client->pong.active_lanes;
        load.steps_per_s += client->pong.steps_per_s;
        load.memory_share = fmax(load.memory_share, client->pong.memory_share);
    }
    return load;
}

/* NULL: no memory, or too many connections that never said hello. */
ho_client *ho_server_add_client(ho_server *s, const ho_peer *peer, int64_t now_ns)
{
    int ungreeted = 0;
    for (int i = 0; i < s->clients; i++) {
        ungreeted += !s->client[i]->greeted;
    }
    if (ungreeted >= HO_PEERS_UNGREETED) {
        return NULL;
    }
    if (s->clients == s->client_room) {
        int room = s->client_room ? 2 * s->client_room : 16;
        ho_client **bigger = (ho_client **)realloc(s->client, (size_t)room * sizeof(*bigger));
        if (!bigger) {
            return NULL;
        }
        s->client = bigger;
        s->client_room = room;
    }
    ho_client *client = (ho_client *)calloc(1, sizeof *client);
    if (!client) {
        return NULL;
    }
    client->peer = *peer;
    client->worker = -1;
    client->pong.memory_share = NAN;
    client->seen_ns = client->pinged_ns = now_ns;
    s->client[s->clients++] = client;
    return client;
}

static void transfer_end(ho_transfer **at)
{
    ho_transfer *t = *at;
    *at = t->next;
    (void)close(t->fd);
    free(t);
}

void ho_server_send_file(ho_client *client, const ho_transfer *file)
{
    ho_transfer **at = &client->transfer;
    while (*at) {
        if (file->kind == HO_CHUNK_DATA && (*at)->kind == HO_CHUNK_DATA) {
            transfer_end(at); /* it asks anew, from where it is */
        } else {
            at = &(*at)->next;
        }
    }
    ho_transfer *t = (ho_transfer *)malloc(sizeof *t);
    if (!t) {
        (void)close(file->fd); /* it asks again, or starts the trial anew */
        return;
    }
    *t = *file;
    t->next = NULL;
    *at = t;
}

void ho_server_client_free(ho_client *client)
{
    while (client->first) {
        ho_pending *next = client->first->next;
        ho_message_clear(&client->first->message);
        free(client->first);
        client->first = next;
    }
    while (client->transfer) {
        transfer_end(&client->transfer);
    }
    free(client);
}

void ho_server_sweep(ho_server *s)
{
    int kept = 0;
    for (int i = 0; i < s->clients; i++) {
        if (s->client[i]->gone) {
            ho_server_client_free(s->client[i]);
        } else {
            s->client[kept++] = s->client[i];
        }
    }
    s->clients = kept;
}

static void keep(ho_client *client, ho_message *message)
{
    ho_pending *pending = (ho_pending *)malloc(sizeof *pending);
    if (!pending || client->pending >= HO_PENDING_MAX) {
        free(pending);
        ho_message_clear(message); /* its lease runs out, or it asks again */
        return;
    }
    *pending = (ho_pending){.message = *message};
    *message = (ho_message){0};
    if (client->last) {
        client->last->next = pending;
    } else {
        client->first = pending;
    }
    client->last = pending;
    client->pending++;
}

void ho_server_send(ho_server *s, ho_client *client, ho_message *message)
{
    ho_err err = {0};
    ho_status rc =
        client->first ? HO_EAGAIN : ho_hub_send(s->options.hub, &client->peer, message, &err);
    if (rc == HO_EAGAIN) {
        keep(client, message);
        return;
    }
    if (rc != HO_OK) {
        ho_log(rc == HO_ENOTFOUND ? HO_LOG_DEBUG : HO_LOG_ERROR, "server",
               "cannot send %s to %s: %s", ho_message_name(message->type),
               ho_server_client_name(client), err.text[0] ? err.text : "not connected");
    }
    ho_message_clear(message);
}

/* One part of the first file on its way. */
static ho_status send_part(ho_server *s, ho_client *client)
{
    ho_transfer *t = client->transfer;
    ho_message message = ho_message_make(HO_MSG_CHUNK);
    ho_status rc = HO_OK;

    if (t->kind == HO_CHUNK_CHECKPOINT) {
        message.trial = t->trial;
        message.attempt = t->attempt;
    }
    message.chunk.kind = t->kind;
    memcpy(message.chunk.sha256, t->sha256, sizeof message.chunk.sha256);
    message.chunk.offset = t->offset;
    message.chunk.total = t->total;
    message.chunk.ticket = ho_flow_ticket();
    message.chunk.bytes = (uint8_t *)malloc(HO_WIRE_CHUNK);
    ssize_t n = message.chunk.bytes
                    ? pread(t->fd, message.chunk.bytes, HO_WIRE_CHUNK, (off_t)t->offset)
                    : -1;
    if (n < 0 || (n == 0 && t->offset < t->total)) {
        ho_log(HO_LOG_ERROR, "server", "a file cannot be read for worker=%s: %s",
               ho_server_client_name(client), n == 0 ? "it became shorter" : strerror(errno));
        ho_message_clear(&message);
        transfer_end(&client->transfer);
        return HO_OK;
    }
    message.chunk.count = (size_t)n;
    rc = ho_hub_send(s->options.hub, &client->peer, &message, NULL);
    if (rc == HO_OK) {
        ho_flow_sent(&client->flow, message.chunk.ticket);
        t->offset += (uint64_t)n;
        if (t->offset >= t->total) {
            ho_log(HO_LOG_INFO, "server", "file sent worker=%s sha256=%.12s bytes=%llu",
                   ho_server_client_name(client), t->sha256, (unsigned long long)t->total);
            transfer_end(&client->transfer);
        }
    } else if (rc != HO_EAGAIN) {
        transfer_end(&client->transfer);
    }
    ho_message_clear(&message);
    return rc;
}

bool ho_server_send_kept(ho_server *s, ho_client *client)
{
    ho_status rc = HO_OK;
    while (client->first) {
        ho_pending *pending = client->first;
        if (ho_hub_send(s->options.hub, &client->peer, &pending->message, NULL) == HO_EAGAIN) {
            return true;
        }
        /* sent, or one that cannot be sent at all, which must not hold up the rest */
        client->first = pending->next;
        client->last = client->first ? client->last : NULL;
        client->pending--;
        ho_message_clear(&pending->message);
        free(pending);
    }
    while (client->transfer && rc == HO_OK && ho_flow_is_open(&client->flow, s->window)) {
        rc = send_part(s, client);
    }
    return client->transfer && rc == HO_EAGAIN; /* else `got` wakes us */
}

void ho_server_share_window(ho_server *s)
{
    int busy = 0;
    for (int i = 0; i < s->clients; i++) {
        busy += s->client[i]->transfer || s->client[i]->flow.count > 0;
    }
    s->window = busy > HO_CHUNKS_UNDER_WAY ? 1 : HO_CHUNKS_UNDER_WAY / (busy > 0 ? busy : 1);
}

bool ho_server_is_sending(const ho_client *client, const char *sha256)
{
    const ho_transfer *t = client->transfer;
    while (t && (t->kind != HO_CHUNK_DATA || strcmp(t->sha256, sha256) != 0)) {
        t = t->next;
    }
    return t || client->flow.count > 0;
}
