/* SPDX-License-Identifier: Apache-2.0
 * The log: one line an event, to standard error. A line is
 *     2026-01-31T09:30:00.123Z info  worker: joined name=w0 pid=4711
 * or, with ho_log_json(true), one JSON object with the fields time, level, area, event.
 * Thread safe: a line is one write. */
#ifndef HO_STUDY_LOG_H
#define HO_STUDY_LOG_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ho_log_level {
    HO_LOG_ERROR = 0,
    HO_LOG_WARN = 1,
    HO_LOG_INFO = 2,
    HO_LOG_DEBUG = 3,
} ho_log_level;

/* Lines above this level are dropped. Default HO_LOG_WARN. */
void ho_log_set_level(ho_log_level level);
ho_log_level ho_log_get_level(void);

/* "error", "warn", "info", "debug". */
const char *ho_log_level_name(ho_log_level level);
/* The level of such a name; false for anything else. */
bool ho_log_parse_level(const char *name, ho_log_level *out);

void ho_log_set_json(bool json);
bool ho_log_get_json(void);

/* Called before and after each line, so that a progress display can step aside. NULL: none. */
void ho_log_set_hook(void (*hook)(bool before, void *user), void *user);

/* area: the module ("store", "dispatch"). Text after it: what happened, then name=value pairs. */
void ho_log(ho_log_level level, const char *area, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#ifdef __cplusplus
}
#endif
#endif
