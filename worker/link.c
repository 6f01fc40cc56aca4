/* SPDX-License-Identifier: Apache-2.0
 * The compute thread's side of link.h; the I/O thread is in link_io.c. */
#include "worker/link.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "study/log.h"
#include "worker/link_internal.h"

int64_t ho_link_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

zmsg_t *ho_link_encode(const ho_message *message, ho_err *err)
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
    link->backoff_ms = HO_LINK_BACKOFF_MIN_MS;
    link->greeting_ms = HO_LINK_GREETING_MS;
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
        link->actor = zactor_new(ho_link_io, link);
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
        ho_parcel *next = l->inbox->next;
        ho_message_clear(&l->inbox->message);
        free(l->inbox);
        l->inbox = next;
    }
    while (l->letters) {
        ho_letter *next = l->letters->next;
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
    ho_letter *letter = calloc(1, sizeof *letter);
    if (!letter) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for a message");
    }
    ho_message stamped = *message; /* what it owns is the caller's */
    if (message->type == HO_MSG_CHUNK) {
        stamped.chunk.ticket = ho_flow_ticket();
    }
    letter->label = ho_outbox_label_of(&stamped);
    letter->bytes = ho_link_encode(&stamped, err);
    if (!letter->bytes) {
        free(letter);
        return err ? err->code : HO_EINVAL;
    }
    pthread_mutex_lock(&link->lock);
    letter->study = link->study_taken;
    *link->letters_tail = letter;
    link->letters_tail = &letter->next;
    link->idle = false;
    link->settled = false;
    link->saving = link->saving || (message->type == HO_MSG_CHUNK && !letter->label.keep);
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
    ho_parcel *parcel = link->inbox;
    if (parcel) {
        link->inbox = parcel->next;
        link->study_taken = parcel->study;
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

bool ho_link_saving(ho_link *link)
{
    pthread_mutex_lock(&link->lock);
    bool saving = link->saving;
    pthread_mutex_unlock(&link->lock);
    return saving;
}

bool ho_link_flush(ho_link *link, int timeout_ms)
{
    int64_t until = ho_link_now_ms() + timeout_ms, moved = -1;
    for (;;) {
        pthread_mutex_lock(&link->lock);
        bool done = link->idle && !link->letters && link->joined;
        if (link->moved != moved) {
            moved = link->moved;
            until = ho_link_now_ms() + timeout_ms;
        }
        pthread_mutex_unlock(&link->lock);
        if (done || ho_link_now_ms() >= until) {
            return done;
        }
        usleep(20000);
    }
}
