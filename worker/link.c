/* SPDX-License-Identifier: Apache-2.0
 * The I/O thread; see link.h. Only this thread touches sockets and the outbox; `lock` guards what
 * both threads see: the inbox, the messages handed over, the load and a few flags. */
#include "worker/link.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <czmq.h>

#include "study/log.h"
#include "worker/outbox.h"

enum {
    TICK_MS = 200,        /* how often silence and the parent are looked at */
    BACKOFF_MIN_MS = 250, /* between two connections */
    BACKOFF_MAX_MS = 10000,
    GREETING_MS = 5000, /* patience with a hello that nobody answers; doubles up to the timeout */
    STOP_NOW_MS = 5000, /* the compute thread has this long to obey `stop now` */
    LINGER_MS = 3000,
    HIGH_WATER = 100000,
    OFFENCES_LOGGED = 20,
};

typedef enum link_state { LINK_CONNECTING, LINK_GREETING, LINK_JOINED } link_state;

/* A message for the compute thread. */
struct parcel {
    struct parcel *next;
    ho_message message;
};

/* A message from the compute thread. */
struct letter {
    struct letter *next;
    ho_outbox_label label;
    zmsg_t *bytes;
};

struct ho_link {
    zactor_t *actor;
    /* shared, under lock */
    pthread_mutex_t lock;
    pthread_cond_t arrived;
    struct parcel *inbox, **inbox_tail;
    struct letter *letters, **letters_tail;
    ho_link_load load;
    bool joined;
    bool idle;    /* everything handed over was sent */
    bool settled; /* no trial is held */
    /* the I/O thread's own */
    char *endpoint;
    zcert_t *cert;
    char server_key[41];
    ho_msg_hello hello;
    int64_t parent;
    void (*abandon)(const char *reason);
    double interval_s, timeout_s;
    ho_outbox *outbox;
    zsock_t *socket, *monitor;
    link_state state;
    int64_t heard_ms, greeted_ms, connect_at_ms, stop_by_ms;
    int backoff_ms, greeting_ms;
    bool refused;
    int64_t offences;
};

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static zmsg_t *encode(const ho_message *message, ho_err *err)
{
    ho_frames *frames = malloc(sizeof *frames);
    zmsg_t *bytes = NULL;
    if (!frames) {
        (void)ho_err_set(err, HO_ENOMEM, "out of memory for a message");
        return NULL;
    }
    if (ho_wire_encode(message, frames, err) == HO_OK) {
        bytes = zmsg_new();
        for (int i = 0; i < frames->count; i++) {
            zmsg_addmem(bytes, frames->frame[i].data, frames->frame[i].size);
        }
        ho_frames_clear(frames);
    }
    free(frames);
    return bytes;
}

/* ---- to and from the compute thread -------------------------------------------------------- */

static void deliver(ho_link *link, ho_message *message)
{
    struct parcel *parcel = malloc(sizeof *parcel);
    if (!parcel) {
        ho_log(HO_LOG_ERROR, "link", "out of memory, a message is lost type=%s",
               ho_message_name(message->type));
        ho_message_clear(message);
        return;
    }
    parcel->next = NULL;
    parcel->message = *message;
    pthread_mutex_lock(&link->lock);
    *link->inbox_tail = parcel;
    link->inbox_tail = &parcel->next;
    pthread_cond_signal(&link->arrived);
    pthread_mutex_unlock(&link->lock);
}

static void collect_letters(ho_link *link)
{
    pthread_mutex_lock(&link->lock);
    struct letter *letter = link->letters;
    link->letters = NULL;
    link->letters_tail = &link->letters;
    pthread_mutex_unlock(&link->lock);
    while (letter) {
        struct letter *next = letter->next;
        bool stale = !letter->label.keep && !letter->label.lasting && link->state != LINK_JOINED;
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
    bool was_joined = link->state == LINK_JOINED;
    zsock_destroy(&link->socket);
    zsock_destroy(&link->monitor);
    link->state = LINK_CONNECTING;
    link->connect_at_ms = now_ms() + link->backoff_ms;
    link->backoff_ms =
        2 * link->backoff_ms < BACKOFF_MAX_MS ? 2 * link->backoff_ms : BACKOFF_MAX_MS;
    ho_outbox_rewind(link->outbox);
    set_joined(link, false);
    ho_log(was_joined ? HO_LOG_WARN : HO_LOG_DEBUG, "link", "disconnected reason=\"%s\" held=%d",
           why, ho_outbox_held_count(link->outbox));
}

static void open_socket(ho_link *link)
{
    static atomic_uint monitors; /* a name is free only some time after its socket closed */
    char address[64];
    link->connect_at_ms = now_ms() + link->backoff_ms;
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
    link->state = LINK_CONNECTING;
    link->heard_ms = now_ms();
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
    zmsg_t *bytes = encode(&hello, &err);
    free(hello.hello.held); /* the rest is the link's own */
    if (!bytes) {
        ho_log(HO_LOG_ERROR, "link", "hello: %s", err.text);
        return;
    }
    if (send_copy(link, bytes)) {
        link->state = LINK_GREETING;
        link->greeted_ms = now_ms();
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
    if (id != 0 && link->state != LINK_CONNECTING) {
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
    zmsg_t *bytes = encode(&pong, &err);
    if (bytes) {
        (void)send_copy(link, bytes); /* a full socket will have a later pong */
        zmsg_destroy(&bytes);
    }
}

static void join(ho_link *link)
{
    link->state = LINK_JOINED;
    link->backoff_ms = BACKOFF_MIN_MS;
    link->greeting_ms = GREETING_MS;
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
        if (link->state != LINK_JOINED) {
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
    case HO_MSG_STOP:
        if (message->stop.mode == HO_STOP_NOW && link->stop_by_ms == 0) {
            link->stop_by_ms = now_ms() + STOP_NOW_MS;
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
        deliver(link, message); /* pause, chunk */
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
    link->heard_ms = now_ms();
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
    } else if (link->state != LINK_JOINED && message.type != HO_MSG_STUDY &&
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

static void pump(ho_link *link)
{
    zmsg_t *bytes = NULL;
    while (link->socket && link->state == LINK_JOINED && (bytes = ho_outbox_next(link->outbox))) {
        if (!send_copy(link, bytes)) {
            break;
        }
        ho_outbox_sent(link->outbox);
    }
    pthread_mutex_lock(&link->lock);
    link->idle = !link->letters && ho_outbox_idle(link->outbox);
    link->settled = link->idle && ho_outbox_held_count(link->outbox) == 0;
    pthread_mutex_unlock(&link->lock);
}

/* Silence, the parent, a `stop now` that nobody obeys, the next connection. */
static void look_at_clock(ho_link *link)
{
    int64_t now = now_ms();
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
    if (link->state == LINK_CONNECTING) {
        greet(link);
    } else if (link->state == LINK_GREETING && now - link->greeted_ms > link->greeting_ms) {
        link->greeting_ms = 2 * link->greeting_ms;
        if (link->greeting_ms > (int)(link->timeout_s * 1000)) {
            link->greeting_ms = (int)(link->timeout_s * 1000);
        }
        disconnect(link, "no answer to hello");
    } else if (link->state == LINK_JOINED &&
               (double)(now - link->heard_ms) > link->timeout_s * 1000) {
        disconnect(link, "the coordinator is silent");
    }
}

static void run(zsock_t *pipe, void *argument)
{
    ho_link *link = argument;
    zsock_signal(pipe, 0);
    for (bool alive = true; alive;) {
        look_at_clock(link);
        collect_letters(link);
        pump(link);
        zmq_pollitem_t item[3] = {{.socket = zsock_resolve(pipe), .events = ZMQ_POLLIN}};
        int items = 1;
        if (link->socket) {
            item[1] =
                (zmq_pollitem_t){.socket = zsock_resolve(link->monitor), .events = ZMQ_POLLIN};
            item[2] = (zmq_pollitem_t){.socket = zsock_resolve(link->socket), .events = ZMQ_POLLIN};
            if (link->state == LINK_JOINED && !ho_outbox_idle(link->outbox)) {
                item[2].events |= ZMQ_POLLOUT;
            }
            items = 3;
        }
        /* a peer that is not there yet gives no event: look again soon */
        int wait = link->state == LINK_CONNECTING ? TICK_MS / 4 : TICK_MS;
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
    pump(link);
    if (link->socket) {
        zsock_set_linger(link->socket, LINGER_MS);
    }
    zsock_destroy(&link->socket);
    zsock_destroy(&link->monitor);
}

/* ---- the compute thread's side ------------------------------------------------------------- */

static ho_status load_keys(ho_link *link, const ho_link_options *options, ho_err *err)
{
    if (!options->key) {
        return HO_OK;
    }
    zcert_t *server = zcert_load(options->server_key);
    link->cert = zcert_load(options->key);
    ho_status rc = HO_OK;
    if (!link->cert || zcert_secret_txt(link->cert)[0] == '\0') {
        rc = ho_err_set(err, HO_EUSAGE, "--key %s: not a CURVE key pair (made by hyperopt keygen)",
                        options->key);
    } else if (!server) {
        rc = ho_err_set(err, HO_EUSAGE, "--server-key %s: not a CURVE public key",
                        options->server_key);
    } else {
        snprintf(link->server_key, sizeof link->server_key, "%s", zcert_public_txt(server));
    }
    zcert_destroy(&server);
    return rc;
}

static ho_status copy_hello(ho_link *link, const ho_msg_hello *hello)
{
    size_t devices = (size_t)hello->device_count, cached = (size_t)hello->cached_count;
    link->hello = *hello;
    link->hello.held_count = 0;
    link->hello.held = NULL;
    link->hello.device = calloc(devices + 1, sizeof *hello->device);
    link->hello.cached = calloc(cached + 1, sizeof *hello->cached);
    if (!link->hello.device || !link->hello.cached) {
        return HO_ENOMEM;
    }
    if (devices > 0) {
        memcpy(link->hello.device, hello->device, devices * sizeof *hello->device);
    }
    if (cached > 0) {
        memcpy(link->hello.cached, hello->cached, cached * sizeof *hello->cached);
    }
    return HO_OK;
}

/* An endpoint that zmq would refuse at every try is a mistake of the command line. */
static ho_status check_endpoint(const char *endpoint, ho_err *err)
{
    zsock_t *probe = zsock_new(ZMQ_DEALER);
    int rc = probe ? zsock_connect(probe, "%s", endpoint) : -1;
    int error = errno;
    zsock_destroy(&probe);
    if (rc != 0) {
        return ho_err_set(err, HO_EUSAGE, "--connect %s: %s (e.g. tcp://head:5555)", endpoint,
                          zmq_strerror(error));
    }
    return HO_OK;
}

/* czmq waits for a thread's word without looking again after an interrupt: a signal at the wrong
 * moment would let it go on while the thread still runs. The I/O thread keeps the mask. */
static void hold_signals(sigset_t *before)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, before);
}

ho_status ho_link_create(ho_link **out, const ho_link_options *options, ho_err *err)
{
    *out = NULL;
    ho_link *link = calloc(1, sizeof *link);
    if (!link) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for the connection");
    }
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&link->lock, NULL);
    pthread_cond_init(&link->arrived, &attributes);
    pthread_condattr_destroy(&attributes);
    link->inbox_tail = &link->inbox;
    link->letters_tail = &link->letters;
    link->parent = options->parent;
    link->abandon = options->abandon;
    link->interval_s = options->heartbeat_interval_s;
    link->timeout_s = options->heartbeat_timeout_s;
    link->backoff_ms = BACKOFF_MIN_MS;
    link->greeting_ms = GREETING_MS;
    link->load.memory_share = NAN;
    link->endpoint = strdup(options->endpoint);
    link->outbox = ho_outbox_create();
    ho_status rc = HO_OK;
    if (!link->endpoint || !link->outbox || copy_hello(link, options->hello) != HO_OK) {
        rc = ho_err_set(err, HO_ENOMEM, "out of memory for the connection");
    }
    if (rc == HO_OK) {
        rc = check_endpoint(options->endpoint, err);
    }
    if (rc == HO_OK) {
        rc = load_keys(link, options, err);
    }
    if (rc == HO_OK) {
        sigset_t before;
        hold_signals(&before);
        link->actor = zactor_new(run, link);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        rc = link->actor ? HO_OK : ho_err_set(err, HO_EIO, "cannot start the I/O thread");
    }
    if (rc != HO_OK) {
        ho_link_destroy(&link);
    }
    *out = link;
    return rc;
}

void ho_link_destroy(ho_link **link)
{
    if (!link || !*link) {
        return;
    }
    ho_link *l = *link;
    sigset_t before;
    hold_signals(&before);
    zactor_destroy(&l->actor);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    while (l->inbox) {
        struct parcel *next = l->inbox->next;
        ho_message_clear(&l->inbox->message);
        free(l->inbox);
        l->inbox = next;
    }
    while (l->letters) {
        struct letter *next = l->letters->next;
        zmsg_destroy(&l->letters->bytes);
        free(l->letters);
        l->letters = next;
    }
    ho_outbox_destroy(&l->outbox);
    zcert_destroy(&l->cert);
    free(l->hello.device);
    free(l->hello.cached);
    free(l->endpoint);
    pthread_cond_destroy(&l->arrived);
    pthread_mutex_destroy(&l->lock);
    free(l);
    *link = NULL;
}

ho_status ho_link_send(ho_link *link, const ho_message *message, ho_err *err)
{
    struct letter *letter = calloc(1, sizeof *letter);
    if (!letter) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for a message");
    }
    letter->label = ho_outbox_label_of(message);
    letter->bytes = encode(message, err);
    if (!letter->bytes) {
        free(letter);
        return err ? err->code : HO_EINVAL;
    }
    pthread_mutex_lock(&link->lock);
    *link->letters_tail = letter;
    link->letters_tail = &letter->next;
    link->idle = false;
    link->settled = false;
    pthread_mutex_unlock(&link->lock);
    zstr_send(link->actor, "letters");
    return HO_OK;
}

static struct timespec deadline_after(int timeout_ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += timeout_ms / 1000;
    t.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

bool ho_link_receive(ho_link *link, int timeout_ms, ho_message *out)
{
    struct timespec deadline = deadline_after(timeout_ms);
    pthread_mutex_lock(&link->lock);
    while (!link->inbox && timeout_ms > 0 &&
           pthread_cond_timedwait(&link->arrived, &link->lock, &deadline) == 0) {}
    struct parcel *parcel = link->inbox;
    if (parcel) {
        link->inbox = parcel->next;
        if (!link->inbox) {
            link->inbox_tail = &link->inbox;
        }
    }
    pthread_mutex_unlock(&link->lock);
    if (!parcel) {
        return false;
    }
    *out = parcel->message;
    free(parcel);
    return true;
}

bool ho_link_joined(ho_link *link)
{
    pthread_mutex_lock(&link->lock);
    bool joined = link->joined;
    pthread_mutex_unlock(&link->lock);
    return joined;
}

bool ho_link_settled(ho_link *link)
{
    pthread_mutex_lock(&link->lock);
    bool settled = link->settled;
    pthread_mutex_unlock(&link->lock);
    return settled;
}

void ho_link_set_load(ho_link *link, const ho_link_load *load)
{
    pthread_mutex_lock(&link->lock);
    link->load = *load;
    pthread_mutex_unlock(&link->lock);
}

bool ho_link_flush(ho_link *link, int timeout_ms)
{
    int64_t until = now_ms() + timeout_ms;
    for (;;) {
        pthread_mutex_lock(&link->lock);
        bool done = link->idle && !link->letters && link->joined;
        pthread_mutex_unlock(&link->lock);
        if (done || now_ms() >= until) {
            return done;
        }
        usleep(20000);
    }
}
