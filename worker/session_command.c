/* SPDX-License-Identifier: Apache-2.0
 * A session that serves a [command] study: programs instead of agents, no market. */
#include <stdio.h>

#include "study/log.h"
#include "worker/report.h"
#include "worker/session_internal.h"

enum { RUNS_MAX = 4096, POLL_MS = 50 };

static void complain(const char *what, const ho_err *err)
{
    ho_log(HO_LOG_ERROR, "worker", "%s: %s", what, err->text);
}

static void on_report(void *user, int64_t trial, int32_t attempt, int32_t epoch,
                      const double *values, int count)
{
    ho_session *session = user;
    ho_err err = {0};
    if (ho_report_command_epoch(session->link, trial, attempt, epoch, values, count, &err) !=
        HO_OK) {
        complain("report", &err);
    }
}

static void on_finished(void *user, int64_t trial, int32_t attempt, int32_t epochs, double seconds,
                        const double *values, int count)
{
    ho_session *session = user;
    ho_err err = {0};
    ho_log(HO_LOG_INFO, "worker", "finished trial=%lld attempt=%d seconds=%.1f", (long long)trial,
           attempt, seconds);
    if (ho_report_command_result(session->link, trial, attempt, epochs, seconds, values, count,
                                 &err) != HO_OK) {
        complain("result", &err);
    }
}

static void on_failed(void *user, int64_t trial, int32_t attempt, ho_fail_class class_id,
                      const char *reason)
{
    ho_session *session = user;
    ho_err err = {0};
    ho_log(HO_LOG_WARN, "worker", "failed trial=%lld attempt=%d reason=\"%s\"", (long long)trial,
           attempt, reason);
    if (ho_report_refusal(session->link, trial, attempt, class_id, reason, &err) != HO_OK) {
        complain("failure", &err);
    }
}

ho_status ho_session_open_commands(ho_session *session, ho_err *err)
{
    const ho_study *study = session->loaded->study;
    const ho_commands_sink sink = {session, on_report, on_finished, on_failed};
    bool local = session->options->parent > 0;
    if (!local && !session->options->allow_command) {
        return ho_err_set(err, HO_EUSAGE,
                          "study %s runs commands; a remote worker must be started with "
                          "--allow-command for that",
                          study->name);
    }
    int slots = ho_settings_is_auto(study->settings, HO_KEY_WORKERS_LANES)
                    ? 1
                    : (int)ho_settings_i64(study->settings, HO_KEY_WORKERS_LANES);
    /* the study's own folder, where this machine has it */
    return ho_commands_create(&session->commands, study, slots, local ? study->folder : NULL, &sink,
                              err);
}

void ho_session_start_commands(ho_session *session, const ho_msg_trials *trials)
{
    for (int32_t i = 0; i < trials->count; i++) {
        ho_err err = {0};
        const ho_trial_order *order = &trials->order[i];
        if (ho_commands_add(session->commands, order, &err) != HO_OK) {
            on_failed(session, order->trial, order->attempt, HO_FAIL_CONFIG, err.text);
        }
    }
}

void ho_session_hand_back_commands(ho_session *session, const char *reason, bool all)
{
    static ho_command_state state[RUNS_MAX];
    ho_err err = {0};
    int n = session->commands ? ho_commands_list(session->commands, state, RUNS_MAX) : 0;
    for (int i = n - 1; i >= 0; i--) {
        if (all || !state[i].started) {
            (void)ho_commands_drop(session->commands, state[i].trial, state[i].attempt);
            (void)ho_report_refusal(session->link, state[i].trial, state[i].attempt,
                                    HO_FAIL_CANCELLED, reason, &err);
        }
    }
}

void ho_session_say_ready_for_commands(ho_session *session)
{
    static ho_command_state state[RUNS_MAX];
    ho_err err = {0};
    ho_message m = ho_message_make(HO_MSG_READY);
    const ho_settings *settings = session->loaded->study->settings;
    m.ready.lanes = ho_settings_is_auto(settings, HO_KEY_WORKERS_LANES)
                        ? 1
                        : (int32_t)ho_settings_i64(settings, HO_KEY_WORKERS_LANES);
    m.ready.active_lanes = ho_commands_running(session->commands);
    int held = ho_commands_list(session->commands, state, RUNS_MAX);
    m.ready.slots = m.ready.lanes + 1 > held ? m.ready.lanes + 1 - held : 0;
    if (!session->say_ready && session->said.slots == m.ready.slots) {
        return;
    }
    if (ho_link_send(session->link, &m, &err) == HO_OK) {
        session->say_ready = false;
        session->said = m.ready;
    } else {
        complain("ready", &err);
    }
}

bool ho_session_step_commands(ho_session *session)
{
    return ho_commands_step(session->commands, POLL_MS);
}
