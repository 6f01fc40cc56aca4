/* SPDX-License-Identifier: Apache-2.0
 * See job.h. */
#include "coordinator/job.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/gpus.h"
#include "coordinator/hub.h"
#include "coordinator/local.h"
#include "coordinator/server.h"
#include "study/log.h"

enum { ROUND_MS = 200, LEAVE_MS = 3000 };

typedef struct call {
    const ho_job_request *request;
    ho_job_answer *answer;
    ho_hub *hub;
    ho_local *local;
    ho_peer peer;
    bool greeted, sent, done;
    int64_t pinged_ns;
    char bye[HO_WIRE_TEXT];
    ho_status status; /* the job's */
} call;

static ho_status start_worker(call *c, ho_err *err)
{
    ho_settings *defaults = c->request->setup ? NULL : ho_settings_create();
    const ho_settings *settings = defaults ? defaults : c->request->setup->study->settings;
    ho_local_options options = ho_local_defaults();
    ho_local_devices devices;
    ho_status rc = ho_local_devices_find(settings, c->request->cpu, &devices, err);
    if (rc == HO_OK) {
        options.endpoint = ho_hub_endpoint(c->hub);
        options.gpu = devices.cpu ? NULL : devices.gpu_list;
        options.give_up = 1;
        options.log_level = ho_log_level_name(ho_log_get_level());
        rc = ho_local_create(&c->local, &options, ho_clock_ns(), err);
    }
    ho_settings_destroy(&defaults);
    return rc;
}

static ho_status send_job(call *c, ho_err *err)
{
    ho_message message = ho_message_make(HO_MSG_JOB);
    ho_status rc = HO_OK;
    message.job.job = 1;
    (void)snprintf(message.job.command, sizeof message.job.command, "%s", c->request->command);
    if (c->request->arguments) {
        char *text = cJSON_PrintUnformatted(c->request->arguments);
        message.job.body = text ? strdup(text) : NULL; /* cleared with free */
        cJSON_free(text);
        if (!message.job.body) {
            return ho_err_set(err, HO_ENOMEM, "out of memory");
        }
    }
    rc = ho_hub_send(c->hub, &c->peer, &message, err);
    c->sent = rc == HO_OK;
    ho_message_clear(&message);
    return rc == HO_EAGAIN ? HO_OK : rc;
}

static ho_status send_study(call *c, ho_err *err)
{
    ho_message message;
    ho_status rc = HO_OK;
    if (!c->request->setup) {
        return send_job(c, err);
    }
    if ((rc = ho_setup_message(c->request->setup, "job", &message, err)) == HO_OK) {
        rc = ho_hub_send(c->hub, &c->peer, &message, err);
        ho_message_clear(&message);
    }
    return rc;
}

static ho_status take_done(call *c, ho_msg_done *m, ho_err *err)
{
    c->done = true;
    c->status = (ho_status)m->status;
    if (m->status != HO_OK) {
        return ho_err_set(err, (ho_status)m->status, "%s",
                          m->reason[0] ? m->reason : ho_status_text((ho_status)m->status));
    }
    if (m->body && !(c->answer->body = cJSON_Parse(m->body))) {
        return ho_err_set(err, HO_EPROTO, "the worker's answer is not JSON");
    }
    c->answer->window_count = m->window_count;
    c->answer->window = m->window;
    m->window = NULL; /* taken */
    m->window_count = 0;
    return HO_OK;
}

static ho_status handle(call *c, const ho_peer *from, ho_message *m, ho_err *err)
{
    switch (m->type) {
    case HO_MSG_HELLO:
        c->peer = *from;
        c->greeted = true;
        return send_study(c, err);
    case HO_MSG_READY:
        return c->sent ? HO_OK : send_job(c, err);
    case HO_MSG_DONE:
        return take_done(c, &m->done, err);
    case HO_MSG_BYE:
        (void)snprintf(c->bye, sizeof c->bye, "%s", m->bye.reason);
        return HO_OK;
    default:
        return HO_OK; /* baselines of the study, pongs */
    }
}

static ho_status check_worker(call *c, ho_err *err)
{
    ho_local_death death;
    if (!ho_local_reap(c->local, ho_clock_ns(), &death)) {
        return HO_OK;
    }
    ho_status rc = death.code == HO_EXIT_DATA ? HO_EDATA : HO_ENOWORKER;
    return ho_err_set(err, rc, "the worker ended before it answered: %s%s%s", death.reason,
                      c->bye[0] ? ": " : "", c->bye);
}

static void ping(call *c, int64_t now_ns)
{
    if (c->greeted && now_ns - c->pinged_ns > 1000000000) {
        ho_message message = ho_message_make(HO_MSG_PING);
        c->pinged_ns = now_ns;
        (void)ho_hub_send(c->hub, &c->peer, &message, NULL);
    }
}

static ho_status serve(call *c, ho_err *err)
{
    int64_t start_ns = ho_clock_ns();
    ho_status rc = HO_OK;
    while (rc == HO_OK && !c->done) {
        zmq_pollitem_t items[HO_HUB_SOCKETS];
        int n = ho_hub_poll_items(c->hub, items);
        ho_peer from;
        ho_message message;
        (void)zmq_poll(items, n, ROUND_MS);
        while (rc == HO_OK && !c->done) {
            ho_status got = ho_hub_receive(c->hub, &from, &message, err);
            if (got == HO_EAGAIN) {
                break;
            }
            if (got == HO_OK) {
                rc = handle(c, &from, &message, err);
                ho_message_clear(&message);
            } else {
                ho_log(HO_LOG_WARN, "job", "message dropped: %s", err->text);
                ho_err_clear(err);
            }
        }
        if (rc == HO_OK && !c->done) {
            rc = check_worker(c, err);
        }
        ping(c, ho_clock_ns());
        if (c->request->waiting) {
            c->request->waiting((double)(ho_clock_ns() - start_ns) * 1e-9, c->request->user);
        }
    }
    if (c->greeted) {
        ho_message stop = ho_message_make(HO_MSG_STOP);
        stop.stop.mode = HO_STOP_NOW;
        (void)ho_hub_send(c->hub, &c->peer, &stop, NULL);
    }
    return rc;
}

ho_status ho_job_call(const ho_job_request *request, ho_job_answer *out, ho_err *err)
{
    call c = {.request = request, .answer = out};
    ho_status rc = HO_OK;

    memset(out, 0, sizeof *out);
    if ((rc = ho_hub_create(&c.hub, err)) == HO_OK && (rc = start_worker(&c, err)) == HO_OK) {
        rc = serve(&c, err);
    }
    ho_local_destroy(&c.local, LEAVE_MS);
    ho_hub_destroy(&c.hub);
    if (rc != HO_OK) {
        ho_job_answer_free(out);
    }
    return rc;
}

void ho_job_answer_free(ho_job_answer *answer)
{
    cJSON_Delete(answer->body);
    if (answer->window) { /* the message knows how its parts are freed */
        ho_message message = ho_message_make(HO_MSG_DONE);
        message.done.window_count = answer->window_count;
        message.done.window = answer->window;
        ho_message_clear(&message);
    }
    memset(answer, 0, sizeof *answer);
}
