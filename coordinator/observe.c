/* SPDX-License-Identifier: Apache-2.0
 * See observe.h. */
#include "coordinator/observe.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/metrics_http.h"
#include "coordinator/notify.h"
#include "study/log.h"

static const int64_t publish_every_ns = 1000000000;
enum { NOTICE_WAIT_MS = 3000 };

struct ho_observer {
    ho_metrics_http *http;
    ho_notify *notify;
    char *study, *objective;
    ho_totals totals;
    int64_t published_ns;
    int64_t best; /* trial named in the last new_best notice; -1: none */
};

/* ---- the exposition ------------------------------------------------------------------------- */

/* A label value: backslash, quote and line break are escaped. */
static void put_label(FILE *out, const char *name, const char *value)
{
    (void)fprintf(out, "%s=\"", name);
    for (const char *p = value; *p; p++) {
        if (*p == '\\' || *p == '"') {
            (void)fprintf(out, "\\%c", *p);
        } else if (*p == '\n') {
            (void)fputs("\\n", out);
        } else {
            (void)fputc(*p, out);
        }
    }
    (void)fputc('"', out);
}

typedef struct exposition {
    FILE *out;
    const char *study;
} exposition;

static void put_head(const exposition *e, const char *name, const char *type, const char *help)
{
    (void)fprintf(e->out, "# HELP hyperopt_%s %s\n# TYPE hyperopt_%s %s\n", name, help, name, type);
}

/* label: NULL, or the name of a second label with its value. */
static void put_sample(const exposition *e, const char *name, const char *label, const char *value,
                       double number)
{
    (void)fprintf(e->out, "hyperopt_%s{", name);
    put_label(e->out, "study", e->study);
    if (label) {
        (void)fputc(',', e->out);
        put_label(e->out, label, value);
    }
    if (isnan(number)) {
        (void)fputs("} NaN\n", e->out);
    } else {
        (void)fprintf(e->out, "} %.17g\n", number);
    }
}

static void put_one(const exposition *e, const char *name, const char *type, const char *help,
                    double number)
{
    put_head(e, name, type, help);
    put_sample(e, name, NULL, NULL, number);
}

void ho_observe_write(FILE *out, const char *study, const char *objective,
                      const ho_dispatch_view *view, const ho_worker_load *load,
                      const ho_totals *totals, const ho_store_health *health)
{
    const exposition e = {out, study};

    put_head(&e, "build_info", "gauge", "Version of the running program.");
    put_sample(&e, "build_info", "version", HYPEROPT_VERSION, 1);
    put_head(&e, "trials", "gauge", "Trials by state.");
    put_sample(&e, "trials", "state", "waiting", (double)view->waiting);
    put_sample(&e, "trials", "state", "running", (double)view->running);
    put_sample(&e, "trials", "state", "complete", (double)view->complete);
    put_sample(&e, "trials", "state", "pruned", (double)view->pruned);
    put_sample(&e, "trials", "state", "failed", (double)view->failed);
    put_one(&e, "trials_target", "gauge", "Trials asked for in all.", (double)view->target);
    int64_t open = view->target - view->complete - view->pruned - view->failed - view->running;
    put_one(&e, "queue_length", "gauge", "Trials that no worker has yet, proposed or still to be.",
            open > 0 ? (double)open : 0);
    put_head(&e, "best_value", "gauge", "Best objective so far; NaN before the first.");
    put_sample(&e, "best_value", "objective", objective,
               view->best_number < 0 ? NAN : view->best_value);
    put_one(&e, "best_trial", "gauge", "Number of the best trial; -1 before the first.",
            (double)view->best_number);
    put_one(&e, "workers", "gauge", "Workers connected.", (double)view->workers);
    put_one(&e, "workers_lost_total", "counter", "Workers given up in this run.",
            (double)load->lost);
    put_one(&e, "lanes", "gauge", "Agents that the workers can train at once.",
            (double)load->lanes);
    put_one(&e, "lanes_busy", "gauge", "Agents training now.", (double)load->active_lanes);
    put_one(&e, "experiences_per_second", "gauge", "Environment steps a second, all workers.",
            load->steps_per_s);
    put_one(&e, "experiences_total", "counter",
            "Environment steps of the trials that ended in this run.", totals->experiences);
    put_one(&e, "updates_total", "counter", "Gradient steps of the trials that ended in this run.",
            totals->updates);
    put_one(&e, "train_seconds_total", "counter",
            "Device seconds charged to the trials that ended in this run.", totals->train_s);
    put_one(&e, "device_memory_ratio", "gauge",
            "Largest share of a device's memory in use; NaN where unknown.", load->memory_share);
    put_one(&e, "database_commits_total", "counter", "Transactions written in this run.",
            (double)health->commits);
    put_one(&e, "database_commit_seconds_total", "counter", "Time spent in them.",
            health->commit_s);
    put_one(&e, "database_commit_seconds_max", "gauge", "The longest of them.",
            health->commit_max_s);
    put_one(&e, "database_paused", "gauge", "1 while the database or artifacts cannot be written.",
            view->paused ? 1 : 0);
    put_one(&e, "draining", "gauge", "1 after a first signal: no new trials are started.",
            view->draining ? 1 : 0);
}

/* ---- the observer --------------------------------------------------------------------------- */

ho_status ho_observer_create(ho_observer **out, const ho_settings *settings, const char *study,
                             const char *objective, ho_err *err)
{
    ho_status rc = HO_OK;
    sigset_t all, before;

    *out = NULL;
    if (!ho_settings_has(settings, HO_KEY_COORDINATOR_METRICS) &&
        !ho_settings_has(settings, HO_KEY_NOTIFY_URL)) {
        return HO_OK;
    }
    ho_observer *o = calloc(1, sizeof *o);
    if (!o || !(o->study = strdup(study)) || !(o->objective = strdup(objective))) {
        rc = ho_err_set(err, HO_ENOMEM, "out of memory");
        goto out;
    }
    o->best = -1;
    /* the threads inherit this: a signal that one of them took would end the process at once */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    if (ho_settings_has(settings, HO_KEY_COORDINATOR_METRICS)) {
        if ((rc = ho_metrics_http_start(
                 &o->http, ho_settings_str(settings, HO_KEY_COORDINATOR_METRICS), err)) != HO_OK) {
            goto unmask;
        }
        ho_log(HO_LOG_INFO, "metrics", "serving /metrics port=%d", ho_metrics_http_port(o->http));
    }
    if (ho_settings_has(settings, HO_KEY_NOTIFY_URL)) {
        rc = ho_notify_start(&o->notify, ho_settings_str(settings, HO_KEY_NOTIFY_URL), study, err);
    }
unmask:
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
out:
    if (rc != HO_OK) {
        ho_observer_destroy(&o);
    }
    *out = o;
    return rc;
}

void ho_observer_destroy(ho_observer **observer)
{
    if (!observer || !*observer) {
        return;
    }
    ho_notify_stop(&(*observer)->notify, NOTICE_WAIT_MS);
    ho_metrics_http_stop(&(*observer)->http);
    free((*observer)->study);
    free((*observer)->objective);
    free(*observer);
    *observer = NULL;
}

void ho_observer_look(ho_observer *o, const ho_dispatch_view *view, const ho_worker_load *load,
                      const ho_store_health *health, int64_t now_ns)
{
    char *text = NULL;
    size_t size = 0;

    if (!o) {
        return;
    }
    if (view->best_number >= 0 && view->best_number != o->best) {
        char line[160];
        snprintf(line, sizeof line, "%s: new best %s %.6g, trial %lld", o->study, o->objective,
                 view->best_value, (long long)view->best_number);
        ho_notify_post(o->notify, "new_best", view->best_number, view->best_value, line);
        o->best = view->best_number;
    }
    if (!o->http || (o->published_ns != 0 && now_ns - o->published_ns < publish_every_ns)) {
        return;
    }
    FILE *out = open_memstream(&text, &size);
    if (!out) {
        return;
    }
    ho_observe_write(out, o->study, o->objective, view, load, &o->totals, health);
    if (fclose(out) == 0 && text) {
        ho_metrics_http_publish(o->http, text, !view->draining && !view->paused, now_ns);
        o->published_ns = now_ns;
    }
    free(text);
}

void ho_observer_trial(ho_observer *o, const ho_trial_result *result)
{
    if (!o) {
        return;
    }
    o->totals.experiences += (double)result->experiences;
    o->totals.updates += (double)result->updates;
    o->totals.train_s += isnan(result->train_s) ? 0 : result->train_s;
    if (result->state == HO_TRIAL_FAILED) {
        char line[400];
        snprintf(line, sizeof line, "%s: trial %lld failed: %s: %.300s", o->study,
                 (long long)result->number, result->fail_class ? result->fail_class : "unknown",
                 result->fail_reason ? result->fail_reason : "");
        ho_notify_post(o->notify, "trial_failed", result->number, NAN, line);
    }
}

void ho_observer_end(ho_observer *o, const ho_dispatch_view *view, const char *reason)
{
    char line[300];

    if (!o) {
        return;
    }
    snprintf(line, sizeof line,
             "%s ended (%.80s): %lld complete, %lld pruned, %lld failed of %lld trials", o->study,
             reason, (long long)view->complete, (long long)view->pruned, (long long)view->failed,
             (long long)view->target);
    ho_notify_post(o->notify, "study_end", view->best_number,
                   view->best_number < 0 ? NAN : view->best_value, line);
}
