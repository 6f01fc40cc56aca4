/* SPDX-License-Identifier: Apache-2.0
 * See hub.h. The handshake's keys are checked by a ZAP handler in this thread (RFC 27), so that the
 * allow-list is read anew for every newcomer and each refusal is logged with its key. */
#include "coordinator/hub.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "coordinator/offences.h"
#include "study/log.h"

enum {
    IPC_PATH_MAX = 107, /* bytes of sockaddr_un.sun_path, without the end */
    QUEUE_MESSAGES = 1000,
    LINGER_MS = 1000,
    BACKLOG_CONNECTIONS = 1024,
    BIND_TRIES = 20, /* for an address that is in use, this far apart: 2 s */
    BIND_PAUSE_US = 100000,
    YOUNG_S = 60, /* a folder of this age is left alone */
};

struct ho_hub {
    char folder[IPC_PATH_MAX + 1]; /* empty: none made */
    char endpoint[IPC_PATH_MAX + 16];
    char listening[256];
    char keys[4096]; /* folder; empty: no CURVE */
    zsock_t *local, *remote, *zap;
    bool remote_first;    /* whose turn it is */
    ho_offences refusals; /* of keys, for the log */
};

bool ho_peer_same(const ho_peer *a, const ho_peer *b)
{
    return a->local == b->local && a->size == b->size && memcmp(a->id, b->id, a->size) == 0 &&
           strcmp(a->curve_key, b->curve_key) == 0; /* a routing id is bound to its key */
}

/* ---- ipc ------------------------------------------------------------------------------------ */

/* Whether nobody listens on the socket at this path any more. */
static bool is_deserted(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    bool deserted = false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && strlen(path) < sizeof address.sun_path) {
        memcpy(address.sun_path, path, strlen(path) + 1);
        deserted = connect(fd, (const struct sockaddr *)&address, sizeof address) != 0 &&
                   (errno == ECONNREFUSED || errno == ENOENT);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return deserted;
}

/* Removes folders that killed coordinators of this user left behind. A young one may be in the
 * making. */
static void remove_deserted(const char *base)
{
    DIR *dir = opendir(base);
    struct dirent *entry = NULL;
    while (dir && (entry = readdir(dir))) {
        char folder[PATH_MAX], path[PATH_MAX + 8];
        struct stat info;
        if (strncmp(entry->d_name, "hyperopt-", 9) != 0 || strlen(entry->d_name) != 15 ||
            snprintf(folder, sizeof folder, "%s/%s", base, entry->d_name) >= (int)sizeof folder ||
            lstat(folder, &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != geteuid() ||
            time(NULL) - info.st_mtime < YOUNG_S) {
            continue;
        }
        (void)snprintf(path, sizeof path, "%s/s", folder);
        if (is_deserted(path)) {
            (void)unlink(path);
            (void)rmdir(folder); /* only when nothing else is in it */
        }
    }
    if (dir) {
        (void)closedir(dir);
    }
}

static bool make_folder(ho_hub *hub, const char *base)
{
    if (!base || snprintf(hub->folder, sizeof hub->folder, "%s/hyperopt-XXXXXX", base) >=
                     (int)sizeof hub->folder - 4) { /* room for "/s" */
        hub->folder[0] = '\0';
        return false;
    }
    remove_deserted(base);
    if (!mkdtemp(hub->folder)) { /* mode 0700 */
        hub->folder[0] = '\0';
        return false;
    }
    return true;
}

static zsock_t *router(void)
{
    zsock_t *socket = zsock_new(ZMQ_ROUTER);
    if (socket) {
        zsock_set_router_mandatory(socket, 1);
        zsock_set_linger(socket, LINGER_MS);
        zsock_set_sndtimeo(socket, 0);
        zsock_set_rcvtimeo(socket, 0);
        zsock_set_sndhwm(socket, QUEUE_MESSAGES);
        zsock_set_rcvhwm(socket, QUEUE_MESSAGES);
        zsock_set_backlog(socket, BACKLOG_CONNECTIONS);
        zsock_set_maxmsgsize(socket, HO_WIRE_FRAME_MAX); /* a larger frame ends the connection */
        zsock_set_tcp_keepalive(socket, 1);
        zsock_set_tcp_keepalive_idle(socket, 60);
    }
    return socket;
}

ho_status ho_hub_create(ho_hub **out, ho_err *err)
{
    ho_hub *hub = (ho_hub *)calloc(1, sizeof *hub);
    ho_status rc = HO_OK;

    *out = NULL;
    if (!hub) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    zsys_handler_set(NULL); /* signals are the server's */
    if (!make_folder(hub, getenv("XDG_RUNTIME_DIR")) && !make_folder(hub, "/tmp")) {
        rc = ho_err_set(
            err, HO_EIO,
            "cannot make a folder for the workers' socket in XDG_RUNTIME_DIR or /tmp: %s",
            strerror(errno));
        goto out;
    }
    (void)snprintf(hub->endpoint, sizeof hub->endpoint, "ipc://%s/s", hub->folder);
    if (!(hub->local = router()) || zsock_bind(hub->local, "%s", hub->endpoint) < 0) {
        rc =
            ho_err_set(err, HO_EIO, "cannot bind %s: %s", hub->endpoint, zmq_strerror(zmq_errno()));
        goto out;
    }
    *out = hub;
    hub = NULL;
out:
    ho_hub_destroy(&hub);
    return rc;
}

void ho_hub_destroy(ho_hub **hub)
{
    ho_hub *h = *hub;
    char path[IPC_PATH_MAX + 8];
    if (!h) {
        return;
    }
    zsock_destroy(&h->local);
    zsock_destroy(&h->remote);
    zsock_destroy(&h->zap);
    if (h->folder[0]) {
        (void)snprintf(path, sizeof path, "%s/s", h->folder);
        (void)unlink(path);
        (void)rmdir(h->folder);
    }
    free(h);
    *hub = NULL;
}

const char *ho_hub_endpoint(const ho_hub *hub)
{
    return hub->endpoint;
}

const char *ho_hub_listening(const ho_hub *hub)
{
    return hub->listening;
}

/* ---- tcp and CURVE -------------------------------------------------------------------------- */

static bool is_loopback(const char *endpoint)
{
    return strncmp(endpoint, "tcp://127.", 10) == 0 ||
           strncmp(endpoint, "tcp://localhost:", 16) == 0 ||
           strncmp(endpoint, "tcp://[::1]:", 12) == 0;
}

static ho_status set_curve(ho_hub *hub, const char *keys, ho_err *err)
{
    char path[sizeof hub->keys + 32];
    zcert_t *cert = NULL;
    if (snprintf(hub->keys, sizeof hub->keys, "%s", keys) >= (int)sizeof hub->keys) {
        return ho_err_set(err, HO_EUSAGE, "%s: the path is too long", keys);
    }
    (void)snprintf(path, sizeof path, "%s/coordinator.key", keys);
    cert = access(path, R_OK) == 0 ? zcert_load(path) : NULL;
    if (!cert || strspn(zcert_secret_txt(cert), "0") == strlen(zcert_secret_txt(cert))) {
        zcert_destroy(&cert);
        return ho_err_set(err, HO_EUSAGE,
                          "%s: no secret key of the coordinator there; `hyperopt keygen %s` makes "
                          "the keys",
                          path, keys);
    }
    hub->zap = zsock_new(ZMQ_REP);
    if (!hub->zap || zsock_bind(hub->zap, "inproc://zeromq.zap.01") < 0) {
        zcert_destroy(&cert);
        return ho_err_set(err, HO_EIO, "cannot start the CURVE authenticator: %s",
                          zmq_strerror(zmq_errno()));
    }
    zcert_apply(cert, hub->remote);
    zsock_set_curve_server(hub->remote, 1);
    zsock_set_zap_domain(hub->remote, "hyperopt");
    zcert_destroy(&cert);
    return HO_OK;
}

ho_status ho_hub_listen(ho_hub *hub, const char *endpoint, const char *keys, bool insecure,
                        ho_err *err)
{
    ho_status rc = HO_OK;
    if (strncmp(endpoint, "tcp://", 6) != 0) {
        return ho_err_set(err, HO_EUSAGE,
                          "%s: not an endpoint for remote workers; it looks like tcp://*:5555",
                          endpoint);
    }
    if (!keys && !is_loopback(endpoint)) {
        if (!insecure) {
            return ho_err_set(err, HO_EUSAGE,
                              "%s: anyone on the network could send trials' results; give "
                              "coordinator.curve (see `hyperopt keygen --help`), or --insecure on "
                              "a network you trust",
                              endpoint);
        }
        ho_log(HO_LOG_WARN, "hub", "INSECURE: %s takes any worker, and nothing is encrypted",
               endpoint);
        (void)fprintf(stderr, "hyperopt: INSECURE: %s takes any worker, and nothing is encrypted\n",
                      endpoint);
    }
    if (!(hub->remote = router())) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    zsock_set_handshake_ivl(hub->remote, 10000);
    if (keys && (rc = set_curve(hub, keys, err)) != HO_OK) {
        return rc;
    }
    /* that of the study before in `serve` is closed in the background */
    int port = -1;
    for (int tries = 0; (port = zsock_bind(hub->remote, "%s", endpoint)) < 0 &&
                        zmq_errno() == EADDRINUSE && tries < BIND_TRIES;
         tries++) {
        (void)usleep(BIND_PAUSE_US);
    }
    if (port < 0) {
        return ho_err_set(err, HO_EIO, "cannot listen on %s: %s", endpoint,
                          zmq_strerror(zmq_errno()));
    }
    (void)snprintf(hub->listening, sizeof hub->listening, "%s", zsock_endpoint(hub->remote));
    ho_log(HO_LOG_INFO, "hub", "listening endpoint=%s curve=%s", hub->listening,
           keys ? "yes" : "no");
    return HO_OK;
}

/* Whether allowed/ holds this public key, in any file. */
static bool is_allowed(const ho_hub *hub, const char *key)
{
    char folder[sizeof hub->keys + 16], path[sizeof folder + 256];
    bool allowed = false;
    (void)snprintf(folder, sizeof folder, "%s/allowed", hub->keys);
    DIR *dir = opendir(folder);
    struct dirent *entry = NULL;
    while (dir && !allowed && (entry = readdir(dir))) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        zcert_t *cert = zcert_load(path);
        allowed = cert && strcmp(zcert_public_txt(cert), key) == 0;
        zcert_destroy(&cert);
    }
    if (dir) {
        (void)closedir(dir);
    }
    return allowed;
}

void ho_hub_authenticate(ho_hub *hub)
{
    while (hub->zap && (zsock_events(hub->zap) & ZMQ_POLLIN)) {
        zmsg_t *request = zmsg_recv(hub->zap);
        if (!request) {
            return;
        }
        char *version = zmsg_popstr(request), *sequence = zmsg_popstr(request);
        char *domain = zmsg_popstr(request), *address = zmsg_popstr(request);
        char *identity = zmsg_popstr(request), *mechanism = zmsg_popstr(request);
        zframe_t *client = zmsg_pop(request);
        char key[HO_CURVE_KEY_TEXT] = "";
        bool allowed = false;
        if (mechanism && strcmp(mechanism, "CURVE") == 0 && client && zframe_size(client) == 32) {
            (void)zmq_z85_encode(key, zframe_data(client), 32);
            allowed = is_allowed(hub, key);
        }
        int64_t unlogged = 0;
        if (!allowed && ho_offences_may_log(&hub->refusals, zclock_mono() * 1000000, &unlogged)) {
            ho_log(HO_LOG_WARN, "hub", "refused: unknown key=%s address=%s unlogged=%lld", key,
                   address ? address : "?", (long long)unlogged);
        }
        (void)zstr_sendx(hub->zap, "1.0", sequence ? sequence : "", allowed ? "200" : "400",
                         allowed ? "OK" : "this key is not allowed", allowed ? key : "", "", NULL);
        zstr_free(&version);
        zstr_free(&sequence);
        zstr_free(&domain);
        zstr_free(&address);
        zstr_free(&identity);
        zstr_free(&mechanism);
        zframe_destroy(&client);
        zmsg_destroy(&request);
    }
}

/* ---- messages ------------------------------------------------------------------------------- */

int ho_hub_poll_items(ho_hub *hub, zmq_pollitem_t *items)
{
    zsock_t *sockets[HO_HUB_SOCKETS] = {hub->local, hub->remote, hub->zap};
    int n = 0;
    for (int i = 0; i < HO_HUB_SOCKETS; i++) {
        if (sockets[i]) {
            items[n++] =
                (zmq_pollitem_t){.socket = zsock_resolve(sockets[i]), .events = ZMQ_POLLIN};
        }
    }
    return n;
}

/* Reads a whole multipart message; frames past the limit are read and dropped. */
static ho_status read_frames(void *socket, ho_peer *from, ho_frame *frame, int *count, ho_err *err)
{
    zmq_msg_t part;
    bool first = true, more = true, too_many = false, no_memory = false;

    *count = 0;
    while (more) {
        (void)zmq_msg_init(&part);
        if (zmq_msg_recv(&part, socket, ZMQ_DONTWAIT) < 0) {
            (void)zmq_msg_close(&part);
            return first ? HO_EAGAIN : ho_err_set(err, HO_EPROTO, "a torn message");
        }
        size_t size = zmq_msg_size(&part);
        if (first) {
            from->size = (uint8_t)(size < HO_PEER_ID_MAX ? size : HO_PEER_ID_MAX);
            memcpy(from->id, zmq_msg_data(&part), from->size);
            first = false;
        } else if (*count == HO_WIRE_FRAMES_MAX) {
            too_many = true;
        } else {
            if (*count == 0) { /* the identity frame carries no properties of the connection */
                const char *user = zmq_msg_gets(&part, "User-Id");
                const char *address = zmq_msg_gets(&part, "Peer-Address");
                (void)snprintf(from->curve_key, sizeof from->curve_key, "%s", user ? user : "");
                (void)snprintf(from->address, sizeof from->address, "%s", address ? address : "");
            }
            uint8_t *data = (uint8_t *)malloc(size + 1);
            if (data) {
                memcpy(data, zmq_msg_data(&part), size);
                frame[(*count)++] = (ho_frame){data, size};
            } else {
                no_memory = true;
            }
        }
        more = zmq_msg_more(&part);
        (void)zmq_msg_close(&part);
    }
    if (no_memory) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    return too_many ? ho_err_set(err, HO_EPROTO, "more than %d frames", HO_WIRE_FRAMES_MAX) : HO_OK;
}

ho_status ho_hub_receive(ho_hub *hub, ho_peer *from, ho_message *out, ho_err *err)
{
    ho_frame frame[HO_WIRE_FRAMES_MAX];
    int count = 0;
    ho_status rc = HO_EAGAIN;

    hub->remote_first = !hub->remote_first;
    for (int turn = 0; turn < 2 && rc == HO_EAGAIN; turn++) {
        zsock_t *socket = (turn == 0) == hub->remote_first ? hub->remote : hub->local;
        if (socket) {
            memset(from, 0, sizeof *from);
            from->local = socket == hub->local;
            rc = read_frames(zsock_resolve(socket), from, frame, &count, err);
        }
    }
    if (rc == HO_OK) {
        rc = ho_wire_decode(frame, count, out, err);
        if (rc == HO_OK && !ho_message_from_worker(out->type)) {
            ho_message_type type = out->type;
            ho_message_clear(out);
            rc = ho_err_set(err, HO_EPROTO, "\"%s\" is not a worker's message",
                            ho_message_name(type));
        }
    }
    for (int i = 0; i < count; i++) {
        free(frame[i].data);
    }
    return rc;
}

ho_status ho_hub_send(ho_hub *hub, const ho_peer *to, const ho_message *message, ho_err *err)
{
    zsock_t *owner = to->local ? hub->local : hub->remote;
    ho_frames frames;
    ho_status rc = HO_OK;

    if (!owner) {
        return HO_ENOTFOUND;
    }
    if ((rc = ho_wire_encode(message, &frames, err)) != HO_OK) {
        return rc;
    }
    void *socket = zsock_resolve(owner);
    if (zmq_send(socket, to->id, to->size, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0) {
        int code = zmq_errno();
        rc = code == EHOSTUNREACH ? HO_ENOTFOUND : HO_EAGAIN;
        goto out;
    }
    for (int i = 0; i < frames.count; i++) {
        int flags = ZMQ_DONTWAIT | (i + 1 < frames.count ? ZMQ_SNDMORE : 0);
        if (zmq_send(socket, frames.frame[i].data, frames.frame[i].size, flags) < 0) {
            rc = ho_err_set(err, HO_EAGAIN, "cannot send: %s", zmq_strerror(zmq_errno()));
            goto out;
        }
    }
out:
    ho_frames_clear(&frames);
    return rc;
}
