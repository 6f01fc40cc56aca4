/* SPDX-License-Identifier: Apache-2.0
 * See notify.h. */
#include "coordinator/notify.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coordinator/json_out.h"
#include "study/log.h"

enum { QUEUE_MAX = 256, TRIES = 3, CONNECT_S = 5, TOTAL_S = 10 };

struct ho_notify {
    char *url, *study;
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    char *queue[QUEUE_MAX]; /* JSON texts, a ring */
    int head, count;
    bool stop;
    struct timespec deadline; /* with stop: give up after it */
};

static size_t swallow(char *data, size_t size, size_t count, void *user)
{
    (void)data;
    (void)user;
    return size * count;
}

static bool past(const struct timespec *deadline)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec > deadline->tv_sec ||
           (now.tv_sec == deadline->tv_sec && now.tv_nsec >= deadline->tv_nsec);
}

/* Aborts a transfer when the process is to end and has waited enough. */
static int watch(void *user, curl_off_t down, curl_off_t down_now, curl_off_t up, curl_off_t up_now)
{
    ho_notify *n = user;

    (void)down;
    (void)down_now;
    (void)up;
    (void)up_now;
    pthread_mutex_lock(&n->lock);
    bool abort_now = n->stop && past(&n->deadline);
    pthread_mutex_unlock(&n->lock);
    return abort_now;
}

static void send_one(ho_notify *n, const char *json)
{
    char error[CURL_ERROR_SIZE] = "";
    long status = 0;
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");

    for (int i = 0; i < TRIES; i++) {
        CURL *curl = curl_easy_init();
        if (!curl) {
            break;
        }
        curl_easy_setopt(curl, CURLOPT_URL, n->url);
#if LIBCURL_VERSION_NUM >= 0x075500
        curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
        curl_easy_setopt(curl, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
        curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, json);
        curl_easy_setopt(curl, CURLOPT_USERAGENT, "hyperopt/" HYPEROPT_VERSION);
        curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
        curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)TOTAL_S);
        curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, swallow);
        curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error);
        curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
        curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, watch);
        curl_easy_setopt(curl, CURLOPT_XFERINFODATA, n);
        CURLcode rc = curl_easy_perform(curl);
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
        curl_easy_cleanup(curl);
        if (rc == CURLE_OK && status >= 200 && status < 300) {
            curl_slist_free_all(headers);
            return;
        }
        if (rc == CURLE_ABORTED_BY_CALLBACK || (status >= 400 && status < 500)) {
            break; /* trying again would not change the answer */
        }
    }
    curl_slist_free_all(headers);
    ho_log(HO_LOG_WARN, "notify", "a notice was not delivered status=%ld %s", status, error);
}

static void *run(void *user)
{
    ho_notify *n = user;

    pthread_mutex_lock(&n->lock);
    for (;;) {
        while (n->count == 0 && !n->stop) {
            (void)pthread_cond_wait(&n->wake, &n->lock);
        }
        if (n->count == 0 || (n->stop && past(&n->deadline))) {
            break;
        }
        char *json = n->queue[n->head];
        n->head = (n->head + 1) % QUEUE_MAX;
        n->count--;
        pthread_mutex_unlock(&n->lock);
        send_one(n, json);
        free(json);
        pthread_mutex_lock(&n->lock);
    }
    pthread_mutex_unlock(&n->lock);
    return NULL;
}

ho_status ho_notify_start(ho_notify **out, const char *url, const char *study, ho_err *err)
{
    *out = NULL;
    if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0) {
        return ho_err_set(err, HO_ECONFIG, "notify.url = \"%.200s\": expected http:// or https://",
                          url);
    }
    ho_notify *n = calloc(1, sizeof *n);
    if (!n) {
        return ho_err_set(err, HO_ENOMEM, "notify: out of memory");
    }
    (void)pthread_mutex_init(&n->lock, NULL);
    (void)pthread_cond_init(&n->wake, NULL);
    n->url = strdup(url);
    n->study = strdup(study);
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    n->started = n->url && n->study && pthread_create(&n->thread, NULL, run, n) == 0;
    if (!n->started) {
        ho_notify_stop(&n, 0);
        return ho_err_set(err, HO_ENOMEM, "notify: the sending thread did not start");
    }
    *out = n;
    return HO_OK;
}

void ho_notify_stop(ho_notify **notify, int wait_ms)
{
    if (!notify || !*notify) {
        return;
    }
    ho_notify *n = *notify;
    if (n->started) {
        pthread_mutex_lock(&n->lock);
        (void)clock_gettime(CLOCK_REALTIME, &n->deadline);
        n->deadline.tv_sec += wait_ms / 1000;
        n->stop = true;
        (void)pthread_cond_signal(&n->wake);
        pthread_mutex_unlock(&n->lock);
        (void)pthread_join(n->thread, NULL);
    }
    for (int i = 0; i < n->count; i++) {
        free(n->queue[(n->head + i) % QUEUE_MAX]);
    }
    (void)pthread_mutex_destroy(&n->lock);
    (void)pthread_cond_destroy(&n->wake);
    free(n->url);
    free(n->study);
    free(n);
    *notify = NULL;
}

void ho_notify_post(ho_notify *n, const char *event, int64_t trial, double value, const char *text)
{
    char *json = NULL;
    size_t size = 0;

    if (!n) {
        return;
    }
    FILE *file = open_memstream(&json, &size);
    if (!file) {
        return;
    }
    ho_json_out out = {.file = file};
    ho_json_begin(&out, NULL, '{');
    ho_json_text(&out, "event", event);
    ho_json_text(&out, "study", n->study);
    if (trial >= 0) {
        ho_json_integer(&out, "trial", trial);
    }
    ho_json_number(&out, "value", value);
    ho_json_text(&out, "text", text);
    ho_json_end(&out, '}');
    if (fclose(file) != 0 || !json) {
        free(json);
        return;
    }
    pthread_mutex_lock(&n->lock);
    bool room = n->count < QUEUE_MAX && !n->stop;
    if (room) {
        n->queue[(n->head + n->count++) % QUEUE_MAX] = json;
        (void)pthread_cond_signal(&n->wake);
    }
    pthread_mutex_unlock(&n->lock);
    if (!room) {
        free(json);
    }
}
