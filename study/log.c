/* SPDX-License-Identifier: Apache-2.0
 * See log.h. */
#include "study/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ho_log_level max_level = HO_LOG_WARN;
static bool as_json;
static void (*line_hook)(bool before, void *user);
static void *line_hook_user;

static const char *const level_names[] = {"error", "warn", "info", "debug"};

void ho_log_set_level(ho_log_level level)
{
    pthread_mutex_lock(&lock);
    max_level = level;
    pthread_mutex_unlock(&lock);
}

ho_log_level ho_log_get_level(void)
{
    pthread_mutex_lock(&lock);
    ho_log_level level = max_level;
    pthread_mutex_unlock(&lock);
    return level;
}

const char *ho_log_level_name(ho_log_level level)
{
    return level_names[level];
}

bool ho_log_parse_level(const char *name, ho_log_level *out)
{
    for (int i = HO_LOG_ERROR; i <= HO_LOG_DEBUG; i++) {
        if (strcmp(name, level_names[i]) == 0) {
            *out = (ho_log_level)i;
            return true;
        }
    }
    return false;
}

void ho_log_set_json(bool json)
{
    pthread_mutex_lock(&lock);
    as_json = json;
    pthread_mutex_unlock(&lock);
}

bool ho_log_get_json(void)
{
    pthread_mutex_lock(&lock);
    bool json = as_json;
    pthread_mutex_unlock(&lock);
    return json;
}

void ho_log_set_hook(void (*hook)(bool before, void *user), void *user)
{
    pthread_mutex_lock(&lock);
    line_hook = hook;
    line_hook_user = user;
    pthread_mutex_unlock(&lock);
}

/* Copies text, cut to fit, with line breaks made harmless and, for JSON, quotes escaped. */
static size_t put_text(char *out, size_t room, const char *text, bool json)
{
    size_t n = 0;
    for (const unsigned char *p = (const unsigned char *)text; *p && n + 7 < room; p++) {
        if (json && (*p == '"' || *p == '\\')) {
            out[n++] = '\\';
            out[n++] = (char)*p;
        } else if (*p < 0x20 || *p == 0x7f) {
            n += (size_t)snprintf(out + n, room - n, json ? "\\u%04x" : "\\x%02x", *p);
        } else {
            out[n++] = (char)*p;
        }
    }
    out[n] = '\0';
    return n;
}

void ho_log(ho_log_level level, const char *area, const char *format, ...)
{
    char text[LINE_MAX_BYTES / 2];
    char line[LINE_MAX_BYTES];
    struct timespec now;
    struct tm utc;
    char stamp[40];
    va_list args;

    if (level > ho_log_get_level()) {
        return;
    }
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &utc);
    size_t s = strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &utc);
    (void)snprintf(stamp + s, sizeof stamp - s, ".%03ldZ", now.tv_nsec / 1000000);

    pthread_mutex_lock(&lock);
    int head = snprintf(line, sizeof line,
                        as_json ? "{\"time\":\"%s\",\"level\":\"%s\",\"area\":\"%s\",\"event\":\""
                                : "%s %-5s %s: ",
                        stamp, level_names[level], area);
    size_t n = (size_t)head;
    n += put_text(line + n, sizeof line - n - 4, text, as_json);
    n += (size_t)snprintf(line + n, sizeof line - n, as_json ? "\"}\n" : "\n");
    if (line_hook) {
        line_hook(true, line_hook_user);
    }
    ssize_t written = write(STDERR_FILENO, line, n); /* a full disk must not stop the work */
    (void)written;
    if (line_hook) {
        line_hook(false, line_hook_user);
    }
    pthread_mutex_unlock(&lock);
}
