/* SPDX-License-Identifier: Apache-2.0
 * See metrics_http.h. */
#include "coordinator/metrics_http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 32, CLIENT_TIMEOUT_S = 10 };
static const int64_t stale_ns = 60 * INT64_C(1000000000);

struct ho_metrics_http {
    struct MHD_Daemon *daemon;
    int port;
    pthread_mutex_t lock; /* guards what follows */
    char *text;
    bool ready;
    int64_t published_ns; /* monotonic; 0: never */
};

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *type,
                              const char *text)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
    if (!response) {
        return MHD_NO;
    }
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result handle(void *user, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **state)
{
    static const char plain[] = "text/plain; charset=utf-8";
    ho_metrics_http *http = user;
    struct timespec now;
    enum MHD_Result result;

    (void)version;
    (void)upload;
    (void)upload_size;
    (void)state;
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
        return answer(connection, MHD_HTTP_METHOD_NOT_ALLOWED, plain, "GET only\n");
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    pthread_mutex_lock(&http->lock);
    int64_t now_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    bool alive = http->published_ns != 0 && now_ns - http->published_ns < stale_ns;
    if (strcmp(url, "/metrics") == 0) {
        result = answer(connection, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8",
                        http->text ? http->text : "");
    } else if (strcmp(url, "/livez") == 0 || strcmp(url, "/readyz") == 0) {
        bool good = alive && (url[1] == 'l' || http->ready);
        result = answer(connection, good ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, plain,
                        good    ? "ok\n"
                        : alive ? "not ready\n"
                                : "stalled\n");
    } else {
        result = answer(connection, MHD_HTTP_NOT_FOUND, plain, "/metrics, /livez, /readyz\n");
    }
    pthread_mutex_unlock(&http->lock);
    return result;
}

/* A listening socket on "host:port". */
static ho_status listen_on(const char *address, int *out, int *port, ho_err *err)
{
    char host[256];
    const char *colon = strrchr(address, ':');
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    int fd = -1, on = 1;

    if (!colon || colon[1] == '\0' || (size_t)(colon - address) >= sizeof host) {
        return ho_err_set(err, HO_ECONFIG,
                          "coordinator.metrics = \"%.100s\": expected HOST:PORT, e.g. "
                          "\"127.0.0.1:9464\"",
                          address);
    }
    bool bracketed = address[0] == '[' && colon > address + 1 && colon[-1] == ']';
    snprintf(host, sizeof host, "%.*s", (int)(colon - address) - (bracketed ? 2 : 0),
             address + (bracketed ? 1 : 0));
    int rc = getaddrinfo(host[0] ? host : NULL, colon + 1, &hints, &list);
    if (rc != 0) {
        return ho_err_set(err, HO_ECONFIG, "coordinator.metrics = \"%.100s\": %s", address,
                          gai_strerror(rc));
    }
    for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
        if (fd < 0) {
            continue;
        }
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (bind(fd, a->ai_addr, a->ai_addrlen) != 0 || listen(fd, CONNECTIONS_MAX) != 0) {
            int keep = errno;
            (void)close(fd);
            errno = keep;
            fd = -1;
        }
    }
    freeaddrinfo(list);
    if (fd < 0) {
        return ho_err_set(err, HO_EIO, "coordinator.metrics = \"%.100s\": cannot listen there: %s",
                          address, strerror(errno));
    }
    struct sockaddr_storage bound;
    socklen_t size = sizeof bound;
    *port = 0;
    if (getsockname(fd, (struct sockaddr *)&bound, &size) == 0) {
        *port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                                  : ((struct sockaddr_in *)&bound)->sin_port);
    }
    *out = fd;
    return HO_OK;
}

ho_status ho_metrics_http_start(ho_metrics_http **out, const char *address, ho_err *err)
{
    int fd = -1, port = 0;

    *out = NULL;
    ho_status rc = listen_on(address, &fd, &port, err);
    if (rc != HO_OK) {
        return rc;
    }
    ho_metrics_http *http = calloc(1, sizeof *http);
    if (!http) {
        (void)close(fd);
        return ho_err_set(err, HO_ENOMEM, "metrics endpoint: out of memory");
    }
    http->port = port;
    (void)pthread_mutex_init(&http->lock, NULL);
    http->daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO, 0, NULL, NULL, handle, http,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX,
        MHD_OPTION_CONNECTION_TIMEOUT, CLIENT_TIMEOUT_S, MHD_OPTION_END);
    if (!http->daemon) {
        (void)close(fd);
        ho_metrics_http_stop(&http);
        return ho_err_set(err, HO_EIO, "coordinator.metrics: the HTTP server did not start");
    }
    *out = http;
    return HO_OK;
}

void ho_metrics_http_stop(ho_metrics_http **http)
{
    if (!http || !*http) {
        return;
    }
    if ((*http)->daemon) {
        MHD_stop_daemon((*http)->daemon);
    }
    (void)pthread_mutex_destroy(&(*http)->lock);
    free((*http)->text);
    free(*http);
    *http = NULL;
}

int ho_metrics_http_port(const ho_metrics_http *http)
{
    return http->port;
}

void ho_metrics_http_publish(ho_metrics_http *http, const char *text, bool ready, int64_t now_ns)
{
    char *copy = strdup(text);

    pthread_mutex_lock(&http->lock);
    if (copy) {
        free(http->text);
        http->text = copy;
    }
    http->ready = ready;
    http->published_ns = now_ns;
    pthread_mutex_unlock(&http->lock);
}
