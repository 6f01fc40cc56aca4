/* SPDX-License-Identifier: Apache-2.0
 * See messages.h. */
#include "study/messages.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void hash(char *out, char digit)
{
    memset(out, digit, 64);
    out[64] = '\0';
}

static double *doubles(int n)
{
    static const double values[] = {0.1, 1.0 / 3, -0.0, 1e-300, 5e-324, 1e300, NAN, INFINITY};
    double *x = (double *)calloc((size_t)n + 1, sizeof *x);
    for (int i = 0; i < n; i++) {
        x[i] = values[i % 8];
    }
    return x;
}

static void fill_stat(ho_epoch_stat *s)
{
    s->epoch = 7;
    s->guard_update = -1;
    s->experiences = INT64_C(9007199254740993);
    s->exposure_count[4] = 12;
    s->reward_mean = 0.1 + 0.2;
    s->q_max = NAN;
    s->loss_mean = INFINITY;
    s->curiosity_loss = -INFINITY;
}

static ho_scored_window *windows(int n, int full)
{
    ho_scored_window *w = (ho_scored_window *)calloc((size_t)n + 1, sizeof *w);
    for (int i = 0; i < n; i++) {
        ho_backtest_result *r = &w[i].result;
        (void)snprintf(w[i].policy, sizeof w[i].policy, "%s", i % 2 ? "flat" : "");
        w[i].fold = i - 1;
        w[i].random_percentile = 0.75;
        for (int m = 0; m < HO_METRIC_COUNT; m++) {
            r->metrics.value[m] = m * 0.1;
        }
        r->metrics.value[HO_METRIC_SHARPE] = NAN;
        r->metrics.reason[HO_METRIC_SHARPE] = HO_REASON_FLAT;
        r->metrics.flags = HO_FLAG_CENSORED;
        r->initial_capital = 1e6;
        r->traded = 1.5e7;
        r->steps = 100;
        r->action_count[44] = 3;
        r->exit_count[HO_EXIT_END] = 1;
        r->sessions = 5;
        r->session_return = doubles(5);
        r->session_id = (int32_t *)calloc(5, sizeof(int32_t));
        r->session_id[4] = 4;
        if (full) {
            r->bars = 9;
            r->equity = doubles(10);
            r->bar_return = doubles(9);
            r->actions = (uint8_t *)calloc(9, 1);
            r->actions[8] = 44;
            r->trade_count = 1;
            r->trades = (ho_trade *)calloc(1, sizeof(ho_trade));
            r->trades[0].side = -1;
            r->trades[0].reason = HO_EXIT_STOP;
            r->trades[0].net = -12.5;
        }
    }
    return w;
}

static void fill_hello(ho_msg_hello *h, int variant)
{
    (void)snprintf(h->program, sizeof h->program, "0.1.0");
    (void)snprintf(h->name, sizeof h->name, "w0 \xc3\xa4 \"q\"");
    (void)snprintf(h->uuid, sizeof h->uuid, "6f1c");
    (void)snprintf(h->study, sizeof h->study, "9a02");
    (void)snprintf(h->host, sizeof h->host, "node-1");
    h->pid = 4711;
    h->lanes = 128;
    h->allow_command = true;
    if (variant == 1) {
        return;
    }
    h->device_count = 2;
    h->device = (ho_device_info *)calloc(2, sizeof *h->device);
    (void)snprintf(h->device[1].uuid, sizeof h->device[1].uuid, "GPU-1");
    h->device[1].memory_total = (size_t)80 << 30;
    h->cached_count = 2;
    h->cached = (char(*)[65])calloc(2, sizeof *h->cached);
    hash(h->cached[0], 'a');
    hash(h->cached[1], '0');
    h->held_count = 1;
    h->held = (ho_held_trial *)calloc(1, sizeof *h->held);
    h->held[0] = (ho_held_trial){.trial = 12, .attempt = 2, .epoch = 3, .finished = true};
}

static void fill_study(ho_msg_study *s, int variant)
{
    static const char text[] = "[data]\npath = \"a.csv\"\n";
    (void)snprintf(s->name, sizeof s->name, "es");
    (void)snprintf(s->source, sizeof s->source, "dir/es.toml");
    s->size = sizeof text - 1;
    s->text = strdup(text);
    s->settings = ho_settings_create();
    s->folds = (ho_fold_plan *)calloc(1, sizeof *s->folds);
    s->seed = UINT64_MAX;
    if (variant == 1) {
        return;
    }
    (void)ho_settings_set_text(s->settings, HO_KEY_DQN_GAMMA, "0.123456789012345678", NULL);
    s->folds->count = 1;
    s->folds->T = 1000;
    s->folds->fold[0].test = (ho_window){500, 600};
    s->file_count = 1;
    s->file = (ho_data_file *)calloc(1, sizeof *s->file);
    hash(s->file[0].sha256, 'f');
    s->file[0].size = UINT64_C(41200000);
    (void)snprintf(s->file[0].path, sizeof s->file[0].path, "/data/a.csv");
}

static void fill_trials(ho_msg_trials *t, int variant)
{
    t->count = variant == 1 ? 0 : 3;
    t->order = (ho_trial_order *)calloc((size_t)t->count + 1, sizeof *t->order);
    for (int i = 0; i < t->count; i++) {
        t->order[i] = (ho_trial_order){.trial = i, .attempt = 1, .seed = 42, .lease_s = 0.5};
        t->order[i].param_count = 8;
        t->order[i].config = doubles(8);
        for (int f = 0; f < i; f++) { /* the first runs all folds */
            t->order[i].fold[t->order[i].fold_count++] = 3 * f;
        }
    }
}

static void fill_texts(ho_message *m)
{
    switch (m->type) {
    case HO_MSG_FAIL:
        m->fail.class_id = HO_FAIL_DIVERGED;
        m->fail.lane = m->fail.fold = m->fail.seed = -1;
        m->fail.update = 12345678901;
        (void)snprintf(m->fail.reason, sizeof m->fail.reason, "loss is nan");
        break;
    case HO_MSG_WANT:
        hash(m->want.sha256, '9');
        m->want.offset = UINT64_C(1) << 40;
        break;
    case HO_MSG_PONG:
        m->pong.sequence = 9;
        m->pong.memory_share = NAN;
        break;
    case HO_MSG_BYE:
        (void)snprintf(m->bye.reason, sizeof m->bye.reason, "drained");
        break;
    case HO_MSG_PAUSE:
        m->pause.epoch = 27;
        break;
    case HO_MSG_FETCH:
        m->fetch.kind = HO_FETCH_ACTIONS;
        m->fetch.fold = m->fetch.seed = -1;
        break;
    case HO_MSG_JOB:
        m->job.job = 3;
        (void)snprintf(m->job.command, sizeof m->job.command, "evaluate");
        m->job.body = strdup("{\"trial\": 3}");
        break;
    case HO_MSG_GOT:
        m->got.ticket = UINT64_C(1) << 63;
        break;
    case HO_MSG_PING:
        m->ping.sequence = 9;
        break;
    case HO_MSG_STOP:
        m->stop.mode = HO_STOP_NOW;
        break;
    case HO_MSG_REFUSE:
        (void)snprintf(m->refuse.reason, sizeof m->refuse.reason, "unknown key");
        break;
    default:
        break;
    }
}

static void fill_bulk(ho_message *m, int variant)
{
    int n = variant == 1 ? 0 : 3;
    switch (m->type) {
    case HO_MSG_RESULT:
        m->result.epochs = 40;
        m->result.train_s = 12.5;
        m->result.value_count = 2;
        m->result.value[0] = NAN;
        m->result.value[1] = 0.1;
        m->result.window_count = n;
        m->result.window = windows(n, 1);
        break;
    case HO_MSG_BASELINE:
        m->baseline.window_count = n;
        m->baseline.window = windows(n, 0);
        break;
    case HO_MSG_DONE:
        m->done.status = HO_EDATA;
        m->done.body = variant == 1 ? NULL : strdup("{}");
        m->done.window_count = n;
        m->done.window = windows(n, 1);
        break;
    case HO_MSG_CHUNK:
        m->chunk.kind = HO_CHUNK_ARTIFACT;
        (void)snprintf(m->chunk.name, sizeof m->chunk.name, "fold-3-seed-0.safetensors");
        hash(m->chunk.sha256, '7');
        m->chunk.total = 100;
        m->chunk.count = variant == 1 ? 0 : 50;
        m->chunk.offset = 50;
        m->chunk.ticket = UINT64_MAX;
        m->chunk.bytes = (uint8_t *)calloc(51, 1);
        break;
    default:
        break;
    }
}

ho_message ho_test_message(ho_message_type type, int variant)
{
    ho_message m = ho_message_make(type);
    m.trial = 12;
    m.attempt = 1;
    switch (type) {
    case HO_MSG_HELLO:
        fill_hello(&m.hello, variant);
        break;
    case HO_MSG_READY:
        m.ready.slots = 4;
        m.ready.key_count = variant == 1 ? 0 : 2;
        m.ready.key = (ho_cohort_key *)calloc(2, sizeof *m.ready.key);
        m.ready.key[1].batch = 512;
        break;
    case HO_MSG_REPORT:
        m.report.epoch = 7;
        m.report.scored = variant == 0;
        m.report.value_count = variant == 1 ? 0 : 2;
        m.report.value[1] = NAN;
        m.report.fold_count = variant == 1 ? 0 : 8;
        m.report.fold_value = doubles(m.report.fold_count);
        fill_stat(&m.report.stat);
        m.report.parent = variant == 1 ? -1 : 12;
        m.report.config_count = variant == 1 ? 0 : 5;
        m.report.config = doubles(m.report.config_count);
        break;
    case HO_MSG_STUDY:
        fill_study(&m.study, variant);
        break;
    case HO_MSG_TRIALS:
        fill_trials(&m.trials, variant);
        break;
    default:
        fill_texts(&m);
        fill_bulk(&m, variant);
        break;
    }
    return m;
}
