/* SPDX-License-Identifier: Apache-2.0
 * What a run tells the outside while it runs: the Prometheus text (coordinator.metrics) and webhook
 * notices (notify.url). Both are off unless the study file names them. Called from the event loop;
 * nothing here blocks it. */
#ifndef HO_COORDINATOR_OBSERVE_H
#define HO_COORDINATOR_OBSERVE_H

#include <stdio.h>

#include "coordinator/dispatch.h"
#include "coordinator/store.h"
#include "study/settings.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sums over the workers that are here. */
typedef struct ho_worker_load {
    int64_t lanes, active_lanes; /* agents trained at once, agents training */
    double steps_per_s;          /* environment steps, from the last pongs */
    double memory_share;         /* largest share of a device's memory in use; NaN: unknown */
    int64_t lost;                /* workers given up in this run */
} ho_worker_load;

typedef struct ho_totals {
    double experiences, updates, train_s; /* of the trials that ended in this run */
} ho_totals;

/* Writes the exposition: one HELP, TYPE and value a metric. Labels: study, objective. */
void ho_observe_write(FILE *out, const char *study, const char *objective,
                      const ho_dispatch_view *view, const ho_worker_load *load,
                      const ho_totals *totals, const ho_store_health *health);

typedef struct ho_observer ho_observer;

/* *out is NULL with HO_OK when neither is asked for; every function accepts NULL. */
ho_status ho_observer_create(ho_observer **out, const ho_settings *settings, const char *study,
                             const char *objective, ho_err *err);
/* Waits at most three seconds for notices on their way. */
void ho_observer_destroy(ho_observer **observer);

/* Publishes, at most once a second. */
void ho_observer_look(ho_observer *observer, const ho_dispatch_view *view,
                      const ho_worker_load *load, const ho_store_health *health, int64_t now_ns);
void ho_observer_trial(ho_observer *observer, const ho_trial_result *result);
void ho_observer_end(ho_observer *observer, const ho_dispatch_view *view, const char *reason);

#ifdef __cplusplus
}
#endif
#endif
