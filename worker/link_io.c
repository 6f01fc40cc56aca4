/* SPDX-License-Identifier: Apache-2.0
 * The I/O thread of link.h: sockets, the states of the connection, what arrives and what leaves. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "study/log.h"
#include "worker/link_internal.h"

enum {
    TICK_MS = 200, /* how often silence and the parent are looked at */
    BACKOFF_MAX_MS = 10000,
    STOP_NOW_MS = 5000, /* the compute thread has this long to obey `stop now` */
    LINGER_MS = 3000,
    HIGH_WATER = 100000,
    OFFENCES_LOGGED = 20,
};

/* ---- to and from the compute thread -------------------------------------------------------- */

static void deliver(ho_link *link, ho_message *message)
{
    ho_parcel *parcel = malloc(sizeof *parcel);
    if (!parcel) {
        ho_log(HO_LOG_ERROR, "link", "out of memory, a message is lost type=%s",
               ho_message_name(message->type));
        ho_message_clear(message);
        return;
    }
    parcel->next = NULL;
    parcel->message = *message;
    parcel->study = link->study;
    pthread_mutex_lock(&link->lock);
    *link->inbox_tail = parcel;
    link->inbox_tail = &parcel->next;
    pthread_cond_signal(&link->arrived);
    pthread_mutex_unlock(&link->lock);
}

static void collect_letters(ho_link *link)
{
    pthread_mutex_lock(&link->lock);
    ho_letter *letter = link->letters;
    link->letters = NULL;
    link->letters_tail = &link->letters;
    pthread_mutex_unlock(&link->lock);
    while (letter) {
        ho_letter *next = letter->next;
        bool fleeting = !letter->label.keep && !letter->label.lasting;
        bool other = letter->study != link->study && letter->label.type != HO_MSG_BYE;
        bool stale = other || (fleeting && link->state != HO_LINK_JOINED);
        if (stale) {
            zmsg_destroy(&letter->bytes);
        } else {
            ho_outbox_add(link->outbox, &letter->label, &letter->bytes);
        }
        free(letter);
        letter = next;
    }
}

static void set_joined(ho_link *link, bool joined)
{
    pthread_mutex_lock(&link->lock);
    link->joined = joined;
    pthread_mutex_unlock(&link->lock);
}

/* ---- the connection ------------------------------------------------------------------------ */

static void disconnect(ho_link *link, const char *why)
{
    if (!link->socket) {
        return;
    }
    bool was_joined = link->state == HO_LINK_JOINED;
    zsock_destroy(&link->socket);
    zsock_destroy(&link->monitor);
    link->state = HO_LINK_CONNECTING;
    link->connect_at_ms = ho_link_now_ms() + link->backoff_ms;
    link->backoff_ms =
        2 * link->backoff_ms < BACKOFF_MAX_MS ? 2 * link->backoff_ms : BACKOFF_MAX_MS;
    ho_outbox_rewind(link->outbox);
    link->flow = (ho_flow){0};
    set_joined(link, false);
    ho_log(was_joined ? HO_LOG_WARN : HO_LOG_DEBUG, "link", "disconnected reason=\"%s\" held=%d",
           why, ho_outbox_held_count(link->outbox));
}

static void open_socket(ho_link *link)
{
    static atomic_uint monitors; /* a name is free only some time after its socket closed */
    char address[64];
    link->connect_at_ms = ho_link_now_ms() + link->backoff_ms;
    link->socket = zsock_new(ZMQ_DEALER);
    link->monitor = zsock_new(ZMQ_PAIR);
    if (!link->socket || !link->monitor) {
        zsock_destroy(&link->socket);
        zsock_destroy(&link->monitor);
        ho_log(HO_LOG_ERROR, "link", "no socket: %s", zmq_strerror(errno));
        return;
    }
    zsock_set_linger(link->socket, 0);
    zsock_set_sndtimeo(link->socket, 0);
    zsock_set_sndhwm(link->socket, HIGH_WATER);
    zsock_set_rcvhwm(link->socket, HIGH_WATER);
    zsock_set_immediate(link->socket, 1); /* nothing is queued for a peer that is not there */
    zsock_set_maxmsgsize(link->socket, HO_WIRE_FRAME_MAX);
    if (link->cert) {
        zcert_apply(link->cert, link->socket);
        zsock_set_curve_serverkey(link->socket, link->server_key);
    }
    snprintf(address, sizeof address, "inproc://link-monitor-%u", atomic_fetch_add(&monitors, 1));
    int events = ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH |
                 ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL;
    if (zmq_socket_monitor(zsock_resolve(link->socket), address, events) != 0 ||
        zsock_connect(link->monitor, "%s", address) != 0 ||
        zsock_connect(link->socket, "%s", link->endpoint) != 0) {
        ho_log(HO_LOG_ERROR, "link", "cannot connect to %s: %s", link->endpoint,
               zmq_strerror(errno));
        zsock_destroy(&link->socket);
        zsock_destroy(&link->monitor);
        return;
    }
    link->state = HO_LINK_CONNECTING;
    link->heard_ms = ho_link_now_ms();
}

/* Sends one message, which stays the caller's. false: no room, or nobody there. */
static bool send_copy(ho_link *link, zmsg_t *bytes)
{
    zmsg_t *copy = zmsg_dup(bytes);
    if (copy && zmsg_send(&copy, link->socket) == 0) {
        return true;
    }
    zmsg_destroy(&copy);
    return false;
}

static void greet(ho_link *link)
{
    ho_err err = {0};
    ho_message hello = ho_message_make(HO_MSG_HELLO);
    hello.hello = link->hello;
    hello.hello.held_count = ho_outbox_held(link->outbox, &hello.hello.held);
    zmsg_t *bytes = ho_link_encode(&hello, &err);
    free(hello.hello.held); /* the rest is the link's own */
    if (!bytes) {
        ho_log(HO_LOG_ERROR, "link", "hello: %s", err.text);
        return;
    }
    if (send_copy(link, bytes)) {
        link->state = HO_LINK_GREETING;
        link->greeted_ms = ho_link_now_ms();
        ho_log(HO_LOG_DEBUG, "link", "hello sent endpoint=%s held=%d", link->endpoint,
               ho_outbox_held_count(link->outbox));
    }
    zmsg_destroy(&bytes);
}

static void read_monitor(ho_link *link)
{
    zmsg_t *event = zmsg_recv(link->monitor);
    zframe_t *frame = event ? zmsg_first(event) : NULL;
    uint16_t id = 0;
    if (frame && zframe_size(frame) >= sizeof id) {
        memcpy(&id, zframe_data(frame), sizeof id);
    }
    zmsg_destroy(&event);
    if (id == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH) {
        ho_log(HO_LOG_WARN, "link",
               "%s does not accept this worker's key; add it to the "
               "coordinator's allow-list",
               link->endpoint);
    } else if (id == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL ||
               id == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL) {
        ho_log(HO_LOG_WARN, "link",
               "%s speaks with other security: give --key and --server-key "
               "exactly when the coordinator uses CURVE",
               link->endpoint);
    }
    if (id != 0 && link->state != HO_LINK_CONNECTING) {
        disconnect(link, "connection lost");
    }
}

/* ---- what arrives -------------------------------------------------------------------------- */

static void answer_ping(ho_link *link, int64_t sequence)
{
    ho_err err = {0};
    ho_message pong = ho_message_make(HO_MSG_PONG);
    pong.pong.sequence = sequence;
    pong.pong.running = ho_outbox_held_count(link->outbox);
    pthread_mutex_lock(&link->lock);
    pong.pong.active_lanes = link->load.active_lanes;
    pong.pong.steps_per_s = link->load.steps_per_s;
    pong.pong.memory_share = link->load.memory_share;
    pthread_mutex_unlock(&link->lock);
    zmsg_t *bytes = ho_link_encode(&pong, &err);
    if (bytes) {
        (void)send_copy(link, bytes); /* a full socket will have a later pong */
        zmsg_destroy(&bytes);
    }
}

/* Says that a chunk of the coordinator's was taken. */
static void answer_chunk(ho_link *link, uint64_t ticket)
{
    ho_err err = {0};
    ho_message got = ho_message_make(HO_MSG_GOT);
    got.got.ticket = ticket;
    zmsg_t *bytes = ho_link_encode(&got, &err);
    if (bytes) {
        (void)send_copy(link, bytes); /* fails only with the connection, and the window with it */
        zmsg_destroy(&bytes);
    }
}

static void take_got(ho_link *link, uint64_t ticket)
{
    if (ho_flow_got(&link->flow, ticket)) {
        pthread_mutex_lock(&link->lock);
        link->moved++;
        pthread_mutex_unlock(&link->lock);
    }
}

static void join(ho_link *link)
{
    link->state = HO_LINK_JOINED;
    link->backoff_ms = HO_LINK_BACKOFF_MIN_MS;
    link->greeting_ms = HO_LINK_GREETING_MS;
    set_joined(link, true);
}

static void take_study(ho_link *link, ho_message *message)
{
    if (message->study.settings) {
        link->interval_s =
            ho_settings_f64(message->study.settings, HO_KEY_COORDINATOR_HEARTBEAT_INTERVAL);
        link->timeout_s =
            ho_settings_f64(message->study.settings, HO_KEY_COORDINATOR_HEARTBEAT_TIMEOUT);
    }
    if (strcmp(link->hello.study, message->study.uuid) != 0) {
        int held = ho_outbox_held_count(link->outbox);
        if (held > 0) {
            ho_log(HO_LOG_WARN, "link", "another study, or a changed one: %d trials are forgotten",
                   held);
        }
        ho_outbox_forget_all(link->outbox);
        snprintf(link->hello.study, sizeof link->hello.study, "%s", message->study.uuid);
        link->study++;
    }
    ho_log(HO_LOG_INFO, "link", "joined endpoint=%s study=%s", link->endpoint, message->study.name);
    join(link);
    deliver(link, message);
}

/* Leaves only the orders that are new here; a repeated or stale one is dropped. */
static void take_trials(ho_link *link, ho_message *message)
{
    ho_msg_trials *trials = &message->trials;
    int kept = 0;
    for (int i = 0; i < trials->count; i++) {
        if (ho_outbox_hold(link->outbox, trials->order[i].trial, trials->order[i].attempt)) {
            ho_trial_order order = trials->order[kept];
            trials->order[kept++] = trials->order[i];
            trials->order[i] = order;
        } else {
            ho_log(HO_LOG_WARN, "link", "repeated order dropped trial=%lld attempt=%d",
                   (long long)trials->order[i].trial, trials->order[i].attempt);
        }
    }
    /* what was not kept is behind; decoded lists are freed by their count, so free it here */
    for (int i = kept; i < trials->count; i++) {
        free(trials->order[i].config);
    }
    trials->count = kept;
    deliver(link, message);
}

static void take(ho_link *link, ho_message *message)
{
    switch (message->type) {
    case HO_MSG_PING:
        answer_ping(link, message->ping.sequence);
        break;
    case HO_MSG_STUDY:
        take_study(link, message);
        return;
    case HO_MSG_JOB: /* a coordinator that has no study gives one command instead */
        if (link->state != HO_LINK_JOINED) {
            join(link);
        }
        deliver(link, message);
        return;
    case HO_MSG_TRIALS:
        take_trials(link, message);
        return;
    case HO_MSG_ACK:
        if (!ho_outbox_forget(link->outbox, message->trial, message->attempt)) {
            ho_log(HO_LOG_DEBUG, "link", "ack of a trial that is not here trial=%lld",
                   (long long)message->trial);
        }
        break;
    case HO_MSG_PRUNE:
    case HO_MSG_DROP:
        if (ho_outbox_forget(link->outbox, message->trial, message->attempt)) {
            deliver(link, message);
            return;
        }
        break;
    case HO_MSG_KEEP:
        break; /* nothing changes */
    case HO_MSG_GOT:
        take_got(link, message->got.ticket);
        break;
    case HO_MSG_CHUNK:
        if (message->chunk.kind == HO_CHUNK_CHECKPOINT) {
            answer_chunk(link, message->chunk.ticket);
        }
        deliver(link, message);
        return;
    case HO_MSG_STOP:
        if (message->stop.mode == HO_STOP_NOW && link->stop_by_ms == 0) {
            link->stop_by_ms = ho_link_now_ms() + STOP_NOW_MS;
        }
        deliver(link, message);
        return;
    case HO_MSG_REFUSE:
        link->refused = true;
        deliver(link, message);
        return;
    case HO_MSG_FETCH:
        if (message->fetch.kind != HO_FETCH_CHECKPOINT) {
            ho_log(HO_LOG_INFO, "link", "artifacts are asked for again trial=%lld attempt=%d",
                   (long long)message->trial, message->attempt);
            ho_outbox_again(link->outbox, message->trial, message->attempt);
            break;
        }
        deliver(link, message);
        return;
    default:
        deliver(link, message); /* pause */
        return;
    }
    ho_message_clear(message);
}

static void offend(ho_link *link, const char *what)
{
    if (++link->offences <= OFFENCES_LOGGED) {
        ho_log(HO_LOG_WARN, "link", "message dropped peer=%s reason=\"%s\"%s", link->endpoint, what,
               link->offences == OFFENCES_LOGGED ? " (no more of these are logged)" : "");
    }
}

static void read_socket(ho_link *link)
{
    ho_err err = {0};
    ho_message message;
    ho_frame frame[HO_WIRE_FRAMES_MAX];
    int count = 0;
    zmsg_t *bytes = zmsg_recv(link->socket);
    if (!bytes) {
        return;
    }
    link->heard_ms = ho_link_now_ms();
    if (zmsg_size(bytes) > HO_WIRE_FRAMES_MAX) {
        offend(link, "too many frames");
        zmsg_destroy(&bytes);
        return;
    }
    for (zframe_t *f = zmsg_first(bytes); f; f = zmsg_next(bytes)) {
        frame[count++] = (ho_frame){.data = zframe_data(f), .size = zframe_size(f)};
    }
    if (ho_wire_decode(frame, count, &message, &err) != HO_OK) {
        offend(link, err.text);
    } else if (!ho_message_from_coordinator(message.type)) {
        offend(link, ho_message_name(message.type));
        ho_message_clear(&message);
    } else if (link->state != HO_LINK_JOINED && message.type != HO_MSG_STUDY &&
               message.type != HO_MSG_REFUSE && message.type != HO_MSG_PING &&
               message.type != HO_MSG_STOP && message.type != HO_MSG_KEEP &&
               message.type != HO_MSG_DROP && message.type != HO_MSG_ACK &&
               message.type != HO_MSG_JOB) {
        offend(link, "not joined yet");
        ho_message_clear(&message);
    } else {
        take(link, &message);
    }
    zmsg_destroy(&bytes);
}

/* ---- the loop ------------------------------------------------------------------------------ */

/* Sends what there is to say, chunks only while the window is open. true: the socket is full. */
static bool pump(ho_link *link)
{
    zmsg_t *bytes = NULL;
    bool full = false;
    int64_t sent = 0;
    while (!full && link->socket && link->state == HO_LINK_JOINED &&
           (bytes = ho_outbox_next(link->outbox))) {
        uint64_t ticket = ho_outbox_next_ticket(link->outbox);
        if (ticket != 0 && !ho_flow_is_open(&link->flow, HO_FLOW_CHUNKS)) {
            break; /* `got` opens it */
        }
        full = !send_copy(link, bytes);
        if (!full) {
            if (ticket != 0) {
                ho_flow_sent(&link->flow, ticket);
            }
            ho_outbox_sent(link->outbox);
            sent++;
        }
    }
    bool under_way = link->flow.count > 0;
    pthread_mutex_lock(&link->lock);
    link->moved += sent;
    link->idle = !link->letters && ho_outbox_idle(link->outbox) && !under_way;
    link->settled = link->idle && ho_outbox_held_count(link->outbox) == 0;
    link->saving = (link->letters && link->saving) || ho_outbox_checkpoint_parts(link->outbox) > 0;
    pthread_mutex_unlock(&link->lock);
    return full;
}

/* Silence, the parent, a `stop now` that nobody obeys, the next connection. */
static void look_at_clock(ho_link *link)
{
    int64_t now = ho_link_now_ms();
    if (link->parent > 0 && getppid() != (pid_t)link->parent) {
        link->abandon("the coordinator that started this worker is gone");
    }
    if (link->stop_by_ms > 0 && now >= link->stop_by_ms) {
        link->abandon("stopped by the coordinator");
    }
    if (link->refused) {
        return;
    }
    if (!link->socket && now >= link->connect_at_ms) {
        open_socket(link);
    }
    if (!link->socket) {
        return;
    }
    if (link->state == HO_LINK_CONNECTING) {
        greet(link);
    } else if (link->state == HO_LINK_GREETING && now - link->greeted_ms > link->greeting_ms) {
        link->greeting_ms = 2 * link->greeting_ms;
        if (link->greeting_ms > (int)(link->timeout_s * 1000)) {
            link->greeting_ms = (int)(link->timeout_s * 1000);
        }
        disconnect(link, "no answer to hello");
    } else if (link->state == HO_LINK_JOINED &&
               (double)(now - link->heard_ms) > link->timeout_s * 1000) {
        disconnect(link, "the coordinator is silent");
    }
}

void ho_link_io(zsock_t *pipe, void *argument)
{
    ho_link *link = argument;
    zsock_signal(pipe, 0);
    for (bool alive = true; alive;) {
        look_at_clock(link);
        collect_letters(link);
        bool full = pump(link);
        zmq_pollitem_t item[3] = {{.socket = zsock_resolve(pipe), .events = ZMQ_POLLIN}};
        int items = 1;
        if (link->socket) {
            item[1] =
                (zmq_pollitem_t){.socket = zsock_resolve(link->monitor), .events = ZMQ_POLLIN};
            item[2] = (zmq_pollitem_t){.socket = zsock_resolve(link->socket), .events = ZMQ_POLLIN};
            if (full) {
                item[2].events |= ZMQ_POLLOUT;
            }
            items = 3;
        }
        /* a peer that is not there yet gives no event: look again soon */
        int wait = link->state == HO_LINK_CONNECTING ? TICK_MS / 4 : TICK_MS;
        if (zmq_poll(item, items, wait) < 0 && errno != EINTR) {
            break; /* the context is gone */
        }
        if (item[0].revents & ZMQ_POLLIN) {
            char *word = zstr_recv(pipe);
            alive = word && strcmp(word, "$TERM") != 0;
            zstr_free(&word);
        }
        if (items == 3 && (item[2].revents & ZMQ_POLLIN)) {
            read_socket(link);
        }
        if (link->socket && items == 3 && (item[1].revents & ZMQ_POLLIN)) {
            read_monitor(link);
        }
    }
    collect_letters(link);
    (void)pump(link);
    if (link->socket) {
        zsock_set_linger(link->socket, LINGER_MS);
    }
    zsock_destroy(&link->socket);
    zsock_destroy(&link->monitor);
}
