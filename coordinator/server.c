/* SPDX-License-Identifier: Apache-2.0
 * The event loop of server.h: sockets, signals, children and the clock. What messages do is in
 * server_handle.c, the table of peers in server_peers.c. */
#include "coordinator/server_internal.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "study/log.h"

enum {
    MESSAGES_PER_ROUND = 256, /* then the clock and the disk have their turn */
    ROUND_MS = 1000,          /* a round lasts at most so long, */
    BUSY_MS = 5,              /* or so long when something waits to be sent */
    LEAVE_MS = 10000,         /* workers have this long to leave after a run */
    LEAVE_NOW_MS = 3000,      /* after a second signal */
};

int64_t ho_clock_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t ho_clock_unix_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* How long a worker that was given up may speak again without a hello. */
static const int64_t LOST_KEPT_NS = 3600000000000;

static const int watched[] = {SIGINT, SIGTERM, SIGUSR1, SIGCHLD};
enum { WATCHED = sizeof watched / sizeof watched[0] };
static pthread_t watcher;

static void watched_signals(sigset_t *set)
{
    (void)sigemptyset(set);
    for (int i = 0; i < WATCHED; i++) {
        (void)sigaddset(set, watched[i]);
    }
}

/* Runs in a thread that does not block the signal: the kernel may give it to any of those. OpenBLAS
 * starts such threads before main. */
static void pass_on(int signal_number)
{
    (void)pthread_kill(watcher, signal_number);
}

void ho_server_block_signals(void)
{
    struct sigaction action = {.sa_handler = pass_on, .sa_flags = SA_RESTART};
    sigset_t set;
    watched_signals(&set);
    watcher = pthread_self();
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    (void)sigemptyset(&action.sa_mask);
    for (int i = 0; i < WATCHED; i++) {
        (void)sigaction(watched[i], &action, NULL);
    }
}

ho_status ho_server_create(ho_server **out, const ho_server_options *options, ho_err *err)
{
    ho_server *s = (ho_server *)calloc(1, sizeof *s);
    sigset_t set;
    ho_status rc = HO_OK;

    *out = NULL;
    if (!s) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    s->options = *options;
    watched_signals(&set);
    ho_server_block_signals();
    (void)signal(SIGPIPE, SIG_IGN);
    s->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (s->signal_fd < 0) {
        rc = ho_err_set(err, HO_EIO, "cannot watch signals: %s", strerror(errno));
        goto out;
    }
    if ((rc = ho_rounds_create(&s->rounds, options->store, err)) == HO_OK) {
        rc = ho_artifacts_create(&s->artifacts, options->artifacts, options->store, err);
    }
out:
    if (rc != HO_OK) {
        ho_server_destroy(&s);
    }
    *out = s;
    return rc;
}

void ho_server_destroy(ho_server **server)
{
    ho_server *s = *server;
    if (!s) {
        return;
    }
    for (int i = 0; i < s->clients; i++) {
        ho_server_client_free(s->client[i]);
    }
    free(s->client);
    ho_server_forget_lost(s);
    ho_artifacts_destroy(&s->artifacts);
    ho_rounds_destroy(&s->rounds);
    if (s->signal_fd >= 0) {
        (void)close(s->signal_fd);
    }
    free(s);
    *server = NULL;
}

/* ---- what dispatch wants sent --------------------------------------------------------------- */

static void send_about(ho_server *s, int64_t worker, ho_message_type type, int64_t number,
                       int64_t attempt)
{
    ho_client *client = ho_server_client_of(s, worker);
    if (client) {
        ho_message message = ho_message_make(type);
        message.trial = number;
        message.attempt = (int32_t)attempt;
        ho_server_send(s, client, &message);
    }
}

static void send_lease(void *user, int64_t worker, const ho_lease *lease)
{
    ho_server *s = (ho_server *)user;
    ho_client *client = ho_server_client_of(s, worker);
    const ho_study *study = s->options.setup->study;
    int P = study->space.count;

    if (!client) {
        return; /* its end is noticed soon, and requeues the trial */
    }
    ho_message message = ho_message_make(HO_MSG_TRIALS);
    ho_trial_order *order = (ho_trial_order *)calloc(1, sizeof *order);
    double *config = (double *)malloc((size_t)(P + 1) * sizeof *config);
    if (!order || !config) {
        free(order);
        free(config);
        ho_log(HO_LOG_ERROR, "server", "out of memory: trial %lld is not sent",
               (long long)lease->number);
        return;
    }
    memcpy(config, lease->config, (size_t)P * sizeof *config);
    order->trial = lease->number;
    order->attempt = (int32_t)lease->attempt;
    order->seed = (uint64_t)ho_settings_i64(study->settings, HO_KEY_STUDY_SEED);
    order->param_count = P;
    order->config = config;
    order->fold_count = lease->folds;
    for (int i = 0; i < lease->folds; i++) {
        order->fold[i] = lease->fold[i];
    }
    ho_transfer checkpoint = {.kind = HO_CHUNK_CHECKPOINT,
                              .trial = lease->number,
                              .attempt = (int32_t)lease->attempt,
                              .fd = -1};
    if (lease->attempt > 1 &&
        ho_artifacts_open_checkpoint(s->artifacts, lease->number, &checkpoint.fd, &checkpoint.total,
                                     checkpoint.sha256, NULL) == HO_OK) {
        memcpy(order->resume, checkpoint.sha256, sizeof order->resume);
    }
    message.trials.count = 1;
    message.trials.order = order;
    ho_server_send(s, client, &message);
    if (checkpoint.fd >= 0) {
        ho_server_send_file(client, &checkpoint);
    }
}

static void send_prune(void *user, int64_t worker, int64_t number, int64_t attempt)
{
    send_about((ho_server *)user, worker, HO_MSG_PRUNE, number, attempt);
}

static void send_pause(void *user, int64_t worker, int64_t number, int64_t attempt, int64_t epoch)
{
    ho_server *s = (ho_server *)user;
    ho_client *client = ho_server_client_of(s, worker);
    if (client) {
        ho_message message = ho_message_make(HO_MSG_PAUSE);
        message.trial = number;
        message.attempt = (int32_t)attempt;
        message.pause.epoch = (int32_t)epoch;
        ho_server_send(s, client, &message);
    }
}

static void send_verdict(void *user, int64_t worker, int64_t number, int64_t attempt, bool keep)
{
    send_about((ho_server *)user, worker, keep ? HO_MSG_KEEP : HO_MSG_DROP, number, attempt);
}

static void send_ack(void *user, int64_t worker, int64_t number, int64_t attempt)
{
    send_about((ho_server *)user, worker, HO_MSG_ACK, number, attempt);
}

static void trial_ended(void *user, const ho_trial_result *result)
{
    ho_server *s = (ho_server *)user;
    ho_artifacts_delete(s->artifacts, result->number, false, ho_clock_unix_ns());
    ho_rounds_forget(s->rounds, result->number);
    if (s->options.trial_ended) {
        s->options.trial_ended(result, s->options.user);
    }
}

/* A checkpoint is of the round that made it. */
static void round_over(void *user, int64_t number)
{
    ho_artifacts_delete(((ho_server *)user)->artifacts, number, false, ho_clock_unix_ns());
}

static int64_t utc(void *user)
{
    (void)user;
    return ho_clock_unix_ns();
}

ho_dispatch_io ho_server_io(ho_server *server)
{
    return (ho_dispatch_io){
        .user = server,
        .lease = send_lease,
        .prune = send_prune,
        .pause = send_pause,
        .verdict = send_verdict,
        .ack = send_ack,
        .finished = trial_ended,
        .unix_ns = utc,
        .round_over = round_over,
    };
}

void ho_server_set_dispatch(ho_server *server, ho_dispatch *dispatch)
{
    server->dispatch = dispatch;
}

struct ho_artifacts *ho_server_artifacts(ho_server *server)
{
    return server->artifacts;
}

void ho_server_set_local(ho_server *server, ho_local *local)
{
    server->local = local;
}

static void tell_to_stop(ho_server *s, ho_client *client, ho_stop_mode mode)
{
    if (client->greeted && !client->gone) {
        ho_message stop = ho_message_make(HO_MSG_STOP);
        stop.stop.mode = mode;
        ho_server_send(s, client, &stop);
    }
}

/* ---- signals and children ------------------------------------------------------------------- */

/* now: without draining first */
static void note_interrupt(ho_server *s, bool now)
{
    s->interrupts += now && s->interrupts == 0 ? 2 : 1;
    if (s->options.leave_workers && s->interrupts <= 2) {
        s->interrupts = 2;
        ho_log(HO_LOG_WARN, "server", "leaving; the workers train on for the next coordinator");
    } else if (s->interrupts == 1) {
        ho_log(HO_LOG_WARN, "server",
               "draining: running trials end, nothing new starts; once more stops now");
        if (s->dispatch) {
            ho_dispatch_drain(s->dispatch, "interrupted");
        }
        if (s->local) {
            ho_local_stop_restarts(s->local);
        }
        for (int i = 0; i < s->clients; i++) {
            tell_to_stop(s, s->client[i], HO_STOP_DRAIN); /* hands back what has not begun */
        }
    } else if (s->interrupts == 2) {
        ho_log(HO_LOG_WARN, "server", "stopping now; once more kills");
    } else if (s->local) {
        ho_local_signal(s->local, SIGKILL);
    }
}

static void read_signals(ho_server *s)
{
    struct signalfd_siginfo info;
    while (read(s->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo != SIGCHLD) {
            note_interrupt(s, info.ssi_signo == SIGUSR1);
        }
    }
}

static void reap(ho_server *s, int64_t now_ns)
{
    ho_local_death death;
    while (s->local && ho_local_reap(s->local, now_ns, &death)) {
        if (death.code == HO_EXIT_DATA && !s->data_failed) {
            s->data_failed = true;
            (void)snprintf(s->data_reason, sizeof s->data_reason, "%s", s->last_bye);
        }
        for (int i = 0; i < s->clients; i++) {
            ho_client *client = s->client[i];
            if (client->peer.local && client->greeted && client->hello.pid == death.pid &&
                !client->gone) {
                ho_server_drop(s, client, death.clean ? HO_CAUSE_PREEMPTED : HO_CAUSE_CRASH,
                               death.reason, now_ns);
            }
        }
    }
}

/* ---- rounds --------------------------------------------------------------------------------- */

static int wait_ms(ho_server *s, int64_t now_ns, bool busy)
{
    int64_t until = now_ns + (int64_t)ROUND_MS * 1000000;
    int64_t due = s->dispatch ? ho_dispatch_next_ns(s->dispatch, now_ns) : until;
    until = due < until ? due : until;
    if (s->local && ho_local_next_ns(s->local) < until) {
        until = ho_local_next_ns(s->local);
    }
    until = s->ping_due_ns < until ? s->ping_due_ns : until;
    int64_t ms =
        until > now_ns ? (until - now_ns + 999999) / 1000000 : 0; /* -1 would be for ever */
    return busy && ms > BUSY_MS ? BUSY_MS : (int)ms;
}

/* Waits for something to happen, then reads it. busy: something waits to be sent. */
static void poll_once(ho_server *s, bool busy)
{
    zmq_pollitem_t items[HO_HUB_SOCKETS + 1];
    int n = ho_hub_poll_items(s->options.hub, items);
    items[n++] = (zmq_pollitem_t){.fd = s->signal_fd, .events = ZMQ_POLLIN};
    (void)zmq_poll(items, n, wait_ms(s, ho_clock_ns(), busy));
    read_signals(s);
    ho_hub_authenticate(s->options.hub);
}

static void read_messages(ho_server *s)
{
    for (int i = 0; i < MESSAGES_PER_ROUND; i++) {
        ho_peer from;
        ho_message message;
        ho_err err = {0};
        ho_status rc = ho_hub_receive(s->options.hub, &from, &message, &err);
        if (rc == HO_EAGAIN) {
            return;
        }
        if (rc == HO_OK) {
            ho_server_handle(s, &from, &message, ho_clock_ns());
        } else if (rc == HO_EPROTO) {
            ho_server_offence(s, &from, err.text, ho_clock_ns());
        } else {
            ho_log(HO_LOG_ERROR, "server", "a message is lost: %s", err.text);
        }
    }
}

/* Pings, forgotten connections, kept messages. True when something still waits to be sent. */
static bool tend_clients(ho_server *s, int64_t now_ns)
{
    bool busy = false;
    s->ping_due_ns = INT64_MAX;
    ho_server_share_window(s);
    for (int i = 0; i < s->clients; i++) {
        ho_client *client = s->client[i];
        if (client->worker >= 0 && now_ns - client->pinged_ns >= s->options.ping_ns) {
            ho_message ping = ho_message_make(HO_MSG_PING);
            ping.ping.sequence = ++s->sequence;
            client->pinged_ns = now_ns;
            ho_server_send(s, client, &ping);
        }
        /* what dispatch has given up (silence) may speak again; what never said hello goes */
        if (client->worker >= 0 && !ho_dispatch_is_here(s->dispatch, client->worker)) {
            client->worker = -1;
        }
        int64_t due_ns = client->pinged_ns + s->options.ping_ns;
        if (client->worker >= 0 && due_ns < s->ping_due_ns) {
            s->ping_due_ns = due_ns;
        }
        if (client->worker < 0 &&
            now_ns - client->seen_ns > (client->greeted ? LOST_KEPT_NS : s->options.greet_ns)) {
            client->gone = true;
        }
        busy = (!client->gone && ho_server_send_kept(s, client)) || busy;
    }
    ho_server_sweep(s);
    return busy;
}

/* Nobody is left who could work, and nobody will come. */
static ho_status check_hope(ho_server *s, ho_err *err)
{
    bool open = ho_hub_listening(s->options.hub)[0] != '\0';
    ho_dispatch_view view;
    ho_dispatch_look(s->dispatch, &view);
    if (s->data_failed && view.ready_workers == 0 && !open) {
        return ho_err_set(err, HO_EDATA, "the workers cannot use the data: %s", s->data_reason);
    }
    if (!open && s->local && ho_local_hopeless(s->local)) {
        return ho_err_set(err, HO_ENOWORKER,
                          "no worker could run: each ended at once, several times; "
                          "`hyperopt-worker --devices` shows why");
    }
    return HO_OK;
}

/* A local worker lives, or a remote one that is to leave has not said goodbye. */
static bool anybody_here(const ho_server *s)
{
    for (int i = 0; i < s->clients; i++) {
        const ho_client *client = s->client[i];
        if (client->worker >= 0 && !client->gone && (client->peer.local || !s->keep_remote)) {
            return true;
        }
    }
    return s->local && ho_local_alive(s->local) > 0;
}

/* Tells the workers to leave and waits for them, at most so long. */
static void send_home(ho_server *s, ho_stop_mode mode, int limit_ms)
{
    int64_t end = ho_clock_ns() + (int64_t)limit_ms * 1000000;
    int interrupts = s->interrupts;
    s->stopping = true;
    if (s->local) {
        ho_local_stop_restarts(s->local);
    }
    for (int i = 0; i < s->clients; i++) {
        if (s->client[i]->peer.local || !s->keep_remote) {
            tell_to_stop(s, s->client[i], mode);
        }
    }
    while (ho_clock_ns() < end && s->interrupts < 3 &&
           (s->interrupts == interrupts || interrupts > 1) && anybody_here(s)) {
        poll_once(s, true);
        read_messages(s);
        reap(s, ho_clock_ns());
        (void)tend_clients(s, ho_clock_ns());
    }
}

ho_status ho_server_run(ho_server *s, ho_err *err)
{
    ho_status rc = HO_OK;
    bool busy = false;

    while (rc == HO_OK && s->interrupts < 2) {
        int64_t now_ns = 0;
        poll_once(s, busy);
        read_messages(s);
        now_ns = ho_clock_ns();
        reap(s, now_ns);
        if (s->local) {
            ho_local_tick(s->local, now_ns);
        }
        if ((rc = s->fatal) != HO_OK) {
            *err = s->fatal_err;
            break;
        }
        ho_server_tend_lost(s, now_ns);
        if ((rc = ho_dispatch_tick(s->dispatch, now_ns, err)) != HO_OK) {
            break;
        }
        busy = tend_clients(s, now_ns);
        if (s->options.progress) {
            ho_dispatch_view view;
            ho_dispatch_look(s->dispatch, &view);
            s->options.progress(&view, now_ns, s->options.user);
        }
        if (ho_dispatch_done(s->dispatch)) {
            break;
        }
        rc = check_hope(s, err);
    }
    if (rc == HO_OK && s->interrupts >= 2) {
        rc = ho_err_set(err, HO_ECANCELLED, "interrupted");
    }
    s->keep_remote =
        s->interrupts == 0 && s->options.keep_remote && s->options.keep_remote(s->options.user);
    if (!s->options.leave_workers || s->interrupts == 0) {
        send_home(s, rc == HO_OK ? HO_STOP_DRAIN : HO_STOP_NOW,
                  rc == HO_OK          ? LEAVE_MS
                  : s->interrupts >= 3 ? 0
                                       : LEAVE_NOW_MS);
    }
    if (rc == HO_OK && s->interrupts > 0) {
        rc = ho_err_set(err, HO_ECANCELLED, "interrupted");
    }
    return rc;
}

void ho_server_linger(ho_server *s)
{
    int interrupts = s->interrupts;

    while (s->interrupts == interrupts) {
        int64_t now_ns = 0;
        poll_once(s, false);
        read_messages(s);
        now_ns = ho_clock_ns();
        reap(s, now_ns);
        (void)tend_clients(s, now_ns);
        if (s->options.progress) {
            ho_dispatch_view view;
            ho_dispatch_look(s->dispatch, &view);
            s->options.progress(&view, now_ns, s->options.user);
        }
    }
}
