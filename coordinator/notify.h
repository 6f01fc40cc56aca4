/* SPDX-License-Identifier: Apache-2.0
 * Webhook notices (notify.url): one JSON object a POST, on a new best trial, a failed trial and the
 * end of the study. A thread of its own sends them, so that a slow or absent receiver never slows a
 * run; a notice is tried three times, then dropped with a warning in the log. */
#ifndef HO_COORDINATOR_NOTIFY_H
#define HO_COORDINATOR_NOTIFY_H

#include <stdint.h>

#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_notify ho_notify;

/* HO_ECONFIG: not an http or https URL. */
ho_status ho_notify_start(ho_notify **out, const char *url, const char *study, ho_err *err);

/* Sends what is queued for at most wait_ms, then stops. */
void ho_notify_stop(ho_notify **notify, int wait_ms);

/* event: "new_best", "trial_failed", "study_end". text: for people. trial < 0: none. value NaN:
 * none. Accepts NULL. Notices past the 256 that wait are dropped. */
void ho_notify_post(ho_notify *notify, const char *event, int64_t trial, double value,
                    const char *text);

#ifdef __cplusplus
}
#endif
#endif
