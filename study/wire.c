/* SPDX-License-Identifier: Apache-2.0
 * See wire.h: the tables of every message's JSON members, and encoding and decoding by them. What
 * travels in binary frames is in wire_blob.c. */
#include "study/wire.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "study/wire_blob.h"
#include "study/wire_fields.h"

/* ---- names ---------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    char sender;
} messages[HO_MSG_COUNT] = {
#define MESSAGE_ROW(id, name, sender) {name, #sender[0]},
    HO_MESSAGE_MAP(MESSAGE_ROW)
#undef MESSAGE_ROW
};

const char *ho_message_name(ho_message_type type)
{
    return messages[type].name;
}

bool ho_message_from_worker(ho_message_type type)
{
    return messages[type].sender != 'C';
}

bool ho_message_from_coordinator(ho_message_type type)
{
    return messages[type].sender != 'W';
}

static const struct {
    const char *name;
    bool retryable;
} failures[HO_FAIL_COUNT] = {
#define FAIL_ROW(id, name, retryable) {name, retryable},
    HO_FAIL_MAP(FAIL_ROW)
#undef FAIL_ROW
};

const char *ho_fail_class_name(ho_fail_class class_id)
{
    return failures[class_id].name;
}

bool ho_fail_class_retryable(ho_fail_class class_id)
{
    return failures[class_id].retryable;
}

/* ---- tables --------------------------------------------------------------------------------- */

/* clang-format off */
#define BOOL(S, m)          {#m, HO_FIELD_BOOL, offsetof(S, m), 0, 0, 0, 0, 0, NULL}
#define INT(S, m, lo, hi)   {#m, HO_FIELD_INT, offsetof(S, m), lo, hi, 0, 0, 0, NULL}
#define COUNT(S, m)         INT(S, m, 0, 2147483647)
#define I64(S, m, lo)       {#m, HO_FIELD_I64, offsetof(S, m), lo, 9.3e18, 0, 0, 0, NULL}
#define U64(S, m)           {#m, HO_FIELD_U64, offsetof(S, m), 0, 0, 0, 0, 0, NULL}
#define F64(S, m)           {#m, HO_FIELD_F64, offsetof(S, m), 0, 0, 0, 0, 0, NULL}
#define TEXT(S, m)          {#m, HO_FIELD_TEXT, offsetof(S, m), 0, 0, sizeof ((S *)0)->m, 0, 0, NULL}
#define HASH(S, m)          {#m, HO_FIELD_HASH, offsetof(S, m), 0, 0, 65, 0, 0, NULL}
#define BODY(S, m)          {#m, HO_FIELD_BODY, offsetof(S, m), 0, 0, 0, 0, 0, NULL}
#define F64S(S, m, n, max)  {#m, HO_FIELD_F64S, offsetof(S, m), 0, 0, max, offsetof(S, n), 0, NULL}
#define VALS(S, m, n, max)  {#m, HO_FIELD_VALS, offsetof(S, m), 0, 0, max, offsetof(S, n), 0, NULL}
#define INTS(S, m, n, lo, hi, max) \
    {#m, HO_FIELD_INTS, offsetof(S, m), lo, hi, max, offsetof(S, n), 0, NULL}
#define I64S(S, m, n)       {#m, HO_FIELD_I64S, offsetof(S, m), 0, 0, n, 0, 0, NULL}
#define HASHES(S, m, n, max) \
    {#m, HO_FIELD_HASHES, offsetof(S, m), 0, 0, max, offsetof(S, n), 0, NULL}
#define LIST(S, m, n, max, table) \
    {#m, HO_FIELD_LIST, offsetof(S, m), 0, 0, max, offsetof(S, n), sizeof *((S *)0)->m, &table}
#define PART(S, m, table)   {#m, HO_FIELD_PART, offsetof(S, m), 0, 0, 0, 0, 0, &table}
#define TABLE(name)         \
    static const ho_fields name##_table = {name##_rows, sizeof name##_rows / sizeof *name##_rows}

static_assert(sizeof(size_t) == sizeof(uint64_t) && sizeof(int) == sizeof(int32_t) &&
              sizeof(ho_fail_class) == sizeof(int32_t), "rows name the sizes of members");

static const ho_field device_rows[] = {
    TEXT(ho_device_info, name), TEXT(ho_device_info, uuid), COUNT(ho_device_info, sm),
    COUNT(ho_device_info, processors), U64(ho_device_info, memory_total),
    U64(ho_device_info, memory_free), TEXT(ho_device_info, toolkit), TEXT(ho_device_info, driver),
};
TABLE(device);

static const ho_field held_rows[] = {
    I64(ho_held_trial, trial, 0), INT(ho_held_trial, attempt, 1, 1e9),
    COUNT(ho_held_trial, epoch), BOOL(ho_held_trial, finished),
};
TABLE(held);

static const ho_field hello_rows[] = {
    TEXT(ho_msg_hello, program), TEXT(ho_msg_hello, name), TEXT(ho_msg_hello, uuid),
    TEXT(ho_msg_hello, study), TEXT(ho_msg_hello, token), TEXT(ho_msg_hello, host), I64(ho_msg_hello, pid, 0),
    COUNT(ho_msg_hello, lanes), BOOL(ho_msg_hello, allow_command),
    LIST(ho_msg_hello, device, device_count, HO_WIRE_DEVICES_MAX, device_table),
    HASHES(ho_msg_hello, cached, cached_count, HO_WIRE_FILES_MAX),
    LIST(ho_msg_hello, held, held_count, HO_WIRE_HELD_MAX, held_table),
};
TABLE(hello);

static const ho_field key_rows[] = {
    COUNT(ho_cohort_key, algorithm), COUNT(ho_cohort_key, hidden1), COUNT(ho_cohort_key, hidden2),
    COUNT(ho_cohort_key, head), COUNT(ho_cohort_key, state_form), COUNT(ho_cohort_key, action_set),
    COUNT(ho_cohort_key, market_features), COUNT(ho_cohort_key, dueling),
    COUNT(ho_cohort_key, branching), COUNT(ho_cohort_key, noisy), COUNT(ho_cohort_key, atoms),
    COUNT(ho_cohort_key, replay), COUNT(ho_cohort_key, replay_capacity),
    COUNT(ho_cohort_key, episodes), COUNT(ho_cohort_key, episode_length),
    COUNT(ho_cohort_key, rollout), COUNT(ho_cohort_key, batch), COUNT(ho_cohort_key, updates),
    COUNT(ho_cohort_key, ppo_epochs), COUNT(ho_cohort_key, ppo_factored),
    COUNT(ho_cohort_key, ppo_separate), COUNT(ho_cohort_key, curiosity),
    COUNT(ho_cohort_key, precision),
};
TABLE(key);
static_assert(sizeof key_rows / sizeof *key_rows == sizeof(ho_cohort_key) / sizeof(int32_t),
              "a row for each field of the key");

static const ho_field ready_rows[] = {
    COUNT(ho_msg_ready, slots), COUNT(ho_msg_ready, active_lanes),
    COUNT(ho_msg_ready, waiting_lanes), COUNT(ho_msg_ready, lanes),
    LIST(ho_msg_ready, key, key_count, HO_WIRE_KEYS_MAX, key_table),
};
TABLE(ready);

static const ho_field stat_rows[] = {
    COUNT(ho_epoch_stat, state), COUNT(ho_epoch_stat, guard), I64(ho_epoch_stat, guard_update, -1),
    COUNT(ho_epoch_stat, epoch), I64(ho_epoch_stat, experiences, 0), I64(ho_epoch_stat, updates, 0),
    I64(ho_epoch_stat, replay_fill, 0), F64(ho_epoch_stat, reward_mean),
    F64(ho_epoch_stat, reward_std), F64(ho_epoch_stat, reward_min), F64(ho_epoch_stat, reward_max),
    F64(ho_epoch_stat, sharpe), I64S(ho_epoch_stat, exposure_count, HO_EXPOSURES),
    I64S(ho_epoch_stat, order_count, HO_ORDERS), I64S(ho_epoch_stat, urgency_count, HO_URGENCIES),
    I64(ho_epoch_stat, ended_ruin, 0), I64(ho_epoch_stat, ended_window, 0),
    I64(ho_epoch_stat, ended_length, 0), I64(ho_epoch_stat, ended_barrier, 0),
    I64(ho_epoch_stat, exit_profit, 0), I64(ho_epoch_stat, exit_stop, 0),
    I64(ho_epoch_stat, exit_time, 0), I64(ho_epoch_stat, exit_session, 0),
    I64(ho_epoch_stat, exit_signal, 0), F64(ho_epoch_stat, kelly_share),
    F64(ho_epoch_stat, loss_mean), F64(ho_epoch_stat, loss_last), F64(ho_epoch_stat, grad_norm),
    F64(ho_epoch_stat, q_mean), F64(ho_epoch_stat, q_std), F64(ho_epoch_stat, q_min),
    F64(ho_epoch_stat, q_max), F64(ho_epoch_stat, epsilon), F64(ho_epoch_stat, td_error_mean),
    F64(ho_epoch_stat, learning_rate), F64(ho_epoch_stat, kl), F64(ho_epoch_stat, clip_fraction),
    F64(ho_epoch_stat, entropy), F64(ho_epoch_stat, explained_variance),
    F64(ho_epoch_stat, curiosity_loss),
};
TABLE(stat);

static const ho_field report_rows[] = {
    COUNT(ho_msg_report, epoch), BOOL(ho_msg_report, scored),
    VALS(ho_msg_report, value, value_count, HO_WIRE_VALUES_MAX),
    F64S(ho_msg_report, fold_value, fold_count, HO_FOLDS_MAX), PART(ho_msg_report, stat, stat_table),
    I64(ho_msg_report, parent, -1),
    F64S(ho_msg_report, config, config_count, HO_WIRE_PARAMS_MAX),
};
TABLE(report);

static const ho_field result_rows[] = {
    COUNT(ho_msg_result, epochs), I64(ho_msg_result, experiences, 0),
    I64(ho_msg_result, updates, 0), F64(ho_msg_result, train_s),
    VALS(ho_msg_result, value, value_count, HO_WIRE_VALUES_MAX),
    INT(ho_msg_result, window_count, 0, HO_WIRE_WINDOWS_MAX),
};
TABLE(result);

static const ho_field baseline_rows[] = {
    INT(ho_msg_baseline, window_count, 0, HO_WIRE_WINDOWS_MAX),
};
TABLE(baseline);

static const ho_field fail_rows[] = {
    {"class", HO_FIELD_INT, offsetof(ho_msg_fail, class_id), 0, HO_FAIL_COUNT - 1, 0, 0, 0, NULL},
    BOOL(ho_msg_fail, retryable), INT(ho_msg_fail, lane, -1, 2147483647),
    INT(ho_msg_fail, fold, -1, HO_FOLDS_MAX), INT(ho_msg_fail, seed, -1, 4096),
    COUNT(ho_msg_fail, epoch), I64(ho_msg_fail, update, -1), TEXT(ho_msg_fail, reason),
};
TABLE(fail);

static const ho_field want_rows[] = {HASH(ho_msg_want, sha256), U64(ho_msg_want, offset)};
TABLE(want);

static const ho_field pong_rows[] = {
    I64(ho_msg_pong, sequence, 0), COUNT(ho_msg_pong, running), COUNT(ho_msg_pong, active_lanes),
    F64(ho_msg_pong, steps_per_s), F64(ho_msg_pong, memory_share),
};
TABLE(pong);

static const ho_field bye_rows[] = {TEXT(ho_msg_bye, reason)};
TABLE(bye);

static const ho_field done_rows[] = {
    I64(ho_msg_done, job, 0), INT(ho_msg_done, status, -1000, 0), TEXT(ho_msg_done, reason),
    BODY(ho_msg_done, body), INT(ho_msg_done, window_count, 0, HO_WIRE_WINDOWS_MAX),
};
TABLE(done);

static const ho_field chunk_rows[] = {
    INT(ho_msg_chunk, kind, 0, HO_CHUNK_ARTIFACT), TEXT(ho_msg_chunk, name),
    HASH(ho_msg_chunk, sha256), U64(ho_msg_chunk, offset), U64(ho_msg_chunk, total),
    U64(ho_msg_chunk, ticket),
};
TABLE(chunk);

static const ho_field got_rows[] = {U64(ho_msg_got, ticket)};
TABLE(got);

static const ho_field file_rows[] = {
    HASH(ho_data_file, sha256), U64(ho_data_file, size), TEXT(ho_data_file, path),
};
TABLE(file);

static const ho_field study_rows[] = {
    TEXT(ho_msg_study, uuid), TEXT(ho_msg_study, name), TEXT(ho_msg_study, source),
    U64(ho_msg_study, seed), COUNT(ho_msg_study, auto_batch),
    LIST(ho_msg_study, file, file_count, HO_WIRE_FILES_MAX, file_table),
};
TABLE(study);

static const ho_field order_rows[] = {
    I64(ho_trial_order, trial, 0), INT(ho_trial_order, attempt, 1, 1e9), U64(ho_trial_order, seed),
    F64(ho_trial_order, lease_s), F64S(ho_trial_order, config, param_count, HO_WIRE_PARAMS_MAX),
    HASH(ho_trial_order, resume),
    INTS(ho_trial_order, fold, fold_count, 0, HO_FOLDS_MAX - 1, HO_FOLDS_MAX),
};
TABLE(order);

static const ho_field trials_rows[] = {
    LIST(ho_msg_trials, order, count, HO_WIRE_TRIALS_MAX, order_table),
};
TABLE(trials);

static const ho_field pause_rows[] = {INT(ho_msg_pause, epoch, 0, 1e9)};
TABLE(pause);

static const ho_field fetch_rows[] = {
    INT(ho_msg_fetch, kind, 0, HO_FETCH_BARS), INT(ho_msg_fetch, fold, -1, HO_FOLDS_MAX),
    INT(ho_msg_fetch, seed, -1, 4096),
};
TABLE(fetch);

static const ho_field job_rows[] = {
    I64(ho_msg_job, job, 0), TEXT(ho_msg_job, command), BODY(ho_msg_job, body),
};
TABLE(job);

static const ho_field ping_rows[] = {I64(ho_msg_ping, sequence, 0)};
TABLE(ping);
static const ho_field stop_rows[] = {INT(ho_msg_stop, mode, 0, HO_STOP_NOW)};
TABLE(stop);
static const ho_field refuse_rows[] = {TEXT(ho_msg_refuse, reason)};
TABLE(refuse);

static const ho_field trial_rows[] = {
    I64(ho_message, trial, -1), INT(ho_message, attempt, 0, 1e9),
};
TABLE(trial);
static const ho_fields no_table = {NULL, 0};

/* The body of a message is the union's member; trial: whether trial and attempt are meant. */
static const struct {
    const ho_fields *body;
    bool trial;
} layout[HO_MSG_COUNT] = {
    [HO_MSG_HELLO] = {&hello_table, false},       [HO_MSG_READY] = {&ready_table, false},
    [HO_MSG_REPORT] = {&report_table, true},      [HO_MSG_RESULT] = {&result_table, true},
    [HO_MSG_BASELINE] = {&baseline_table, false}, [HO_MSG_FAIL] = {&fail_table, true},
    [HO_MSG_WANT] = {&want_table, false},         [HO_MSG_PONG] = {&pong_table, false},
    [HO_MSG_BYE] = {&bye_table, false},           [HO_MSG_DONE] = {&done_table, false},
    [HO_MSG_CHUNK] = {&chunk_table, true},        [HO_MSG_STUDY] = {&study_table, false},
    [HO_MSG_TRIALS] = {&trials_table, false},     [HO_MSG_PRUNE] = {&no_table, true},
    [HO_MSG_PAUSE] = {&pause_table, true},        [HO_MSG_GOT] = {&got_table, false},
    [HO_MSG_ACK] = {&no_table, true},             [HO_MSG_KEEP] = {&no_table, true},
    [HO_MSG_DROP] = {&no_table, true},            [HO_MSG_FETCH] = {&fetch_table, true},
    [HO_MSG_JOB] = {&job_table, false},           [HO_MSG_PING] = {&ping_table, false},
    [HO_MSG_STOP] = {&stop_table, false},         [HO_MSG_REFUSE] = {&refuse_table, false},
};
/* clang-format on */

static const size_t body_at = offsetof(ho_message, hello);

/* ---- life ----------------------------------------------------------------------------------- */

ho_message ho_message_make(ho_message_type type)
{
    ho_message m;
    memset(&m, 0, sizeof m);
    m.type = type;
    m.trial = -1;
    return m;
}

/* The windows of a message, if its type has some. */
static ho_scored_window **windows_of(ho_message *m, int32_t **count)
{
    switch (m->type) {
    case HO_MSG_RESULT:
        *count = &m->result.window_count;
        return &m->result.window;
    case HO_MSG_BASELINE:
        *count = &m->baseline.window_count;
        return &m->baseline.window;
    case HO_MSG_DONE:
        *count = &m->done.window_count;
        return &m->done.window;
    default:
        return NULL;
    }
}

void ho_message_clear(ho_message *message)
{
    int32_t *count = NULL;
    ho_scored_window **window = windows_of(message, &count);
    for (int32_t i = 0; window && *window && i < *count; i++) {
        ho_scored_window_clear(&(*window)[i]);
    }
    if (window) {
        free(*window);
    }
    if (message->type == HO_MSG_CHUNK) {
        free(message->chunk.bytes);
    } else if (message->type == HO_MSG_STUDY) {
        free(message->study.text);
        free(message->study.folds);
        ho_settings_destroy(&message->study.settings);
    }
    ho_fields_free(layout[message->type].body, (char *)message + body_at);
    *message = ho_message_make(message->type);
}

void ho_frames_clear(ho_frames *frames)
{
    for (int i = 0; i < frames->count; i++) {
        free(frames->frame[i].data);
    }
    memset(frames, 0, sizeof *frames);
}

/* ---- encoding ------------------------------------------------------------------------------- */

static ho_status add_frame(ho_frames *out, const void *data, size_t size, ho_err *err)
{
    if (out->count == HO_WIRE_FRAMES_MAX || size > HO_WIRE_FRAME_MAX) {
        return ho_err_set(err, HO_EINVAL, "the message is too large");
    }
    uint8_t *copy = (uint8_t *)malloc(size + 1);
    if (!copy) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    if (size > 0) {
        memcpy(copy, data, size);
    }
    out->frame[out->count++] = (ho_frame){copy, size};
    return HO_OK;
}

/* Cuts a blob into frames and frees it. */
static ho_status add_blob(ho_frames *out, ho_blob *blob, ho_err *err)
{
    ho_status rc = ho_blob_finish(blob, err);
    for (size_t at = 0; rc == HO_OK && at < blob->size; at += HO_WIRE_FRAME_MAX) {
        size_t left = blob->size - at;
        rc = add_frame(out, blob->data + at, left < HO_WIRE_FRAME_MAX ? left : HO_WIRE_FRAME_MAX,
                       err);
    }
    free(blob->data);
    return rc;
}

static ho_status add_payload(const ho_message *m, ho_frames *out, ho_err *err)
{
    ho_blob blob = {.writing = true};
    switch (m->type) {
    case HO_MSG_RESULT:
        ho_blob_windows(&blob, m->result.window, m->result.window_count);
        return add_blob(out, &blob, err);
    case HO_MSG_BASELINE:
        ho_blob_windows(&blob, m->baseline.window, m->baseline.window_count);
        return add_blob(out, &blob, err);
    case HO_MSG_DONE:
        ho_blob_windows(&blob, m->done.window, m->done.window_count);
        return add_blob(out, &blob, err);
    case HO_MSG_CHUNK:
        if (m->chunk.count > HO_WIRE_CHUNK) {
            return ho_err_set(err, HO_EINVAL, "a chunk of %zu bytes", m->chunk.count);
        }
        return add_frame(out, m->chunk.bytes, m->chunk.count, err);
    case HO_MSG_STUDY: {
        ho_status rc = add_frame(out, m->study.text, m->study.size, err);
        if (rc == HO_OK) {
            ho_blob_plan(&blob, m->study.folds);
            rc = add_blob(out, &blob, err);
        }
        return rc;
    }
    default:
        return HO_OK;
    }
}

static ho_status write_json(const ho_message *m, cJSON *json, ho_err *err)
{
    ho_status rc = HO_OK;
    if (!cJSON_AddNumberToObject(json, "v", HO_WIRE_VERSION) ||
        !cJSON_AddStringToObject(json, "type", messages[m->type].name)) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    if (layout[m->type].trial) {
        rc = ho_fields_write(&trial_table, m, json, err);
    }
    if (rc == HO_OK) {
        rc = ho_fields_write(layout[m->type].body, (const char *)m + body_at, json, err);
    }
    if (rc == HO_OK && m->type == HO_MSG_STUDY) {
        cJSON *settings = ho_settings_to_json(m->study.settings);
        if (!settings || !cJSON_AddItemToObject(json, "settings", settings)) {
            cJSON_Delete(settings);
            rc = ho_err_set(err, HO_ENOMEM, "out of memory");
        }
    }
    return rc;
}

ho_status ho_wire_encode(const ho_message *message, ho_frames *out, ho_err *err)
{
    cJSON *json = cJSON_CreateObject();
    char *text = NULL;
    memset(out, 0, sizeof *out);
    ho_status rc =
        json ? write_json(message, json, err) : ho_err_set(err, HO_ENOMEM, "out of memory");
    if (rc != HO_OK) {
        goto out;
    }
    text = cJSON_PrintUnformatted(json);
    rc = text ? add_frame(out, text, strlen(text), err)
              : ho_err_set(err, HO_ENOMEM, "out of memory");
    if (rc == HO_OK) {
        rc = add_payload(message, out, err);
    }
out:
    cJSON_free(text);
    cJSON_Delete(json);
    if (rc != HO_OK) {
        ho_frames_clear(out);
        (void)ho_err_prefix(err, "message %s", messages[message->type].name);
    }
    return rc;
}

/* ---- decoding ------------------------------------------------------------------------------- */

static ho_status check_depth(const ho_frame *frame, ho_err *err)
{
    int depth = 0;
    bool string = false;
    for (size_t i = 0; i < frame->size; i++) {
        uint8_t c = frame->data[i];
        if (string) {
            i += c == '\\';
            string = c != '"';
        } else if (c == '"') {
            string = true;
        } else if (c == '[' || c == '{') {
            depth++;
        } else if (c == ']' || c == '}') {
            depth--;
        } else if (c == '\0') {
            return ho_err_set(err, HO_EPROTO, "a NUL byte in JSON");
        }
        if (depth > HO_WIRE_DEPTH_MAX) {
            return ho_err_set(err, HO_EPROTO, "JSON nested too deeply");
        }
    }
    return HO_OK;
}

static ho_status read_type(const cJSON *json, ho_message_type *type, ho_err *err)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(json, "v");
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(json, "type");
    if (!cJSON_IsNumber(v) || !cJSON_IsString(name)) {
        return ho_err_set(err, HO_EPROTO, "no version or type");
    }
    for (int i = 0; i < HO_MSG_COUNT; i++) {
        if (strcmp(messages[i].name, name->valuestring) == 0) {
            *type = (ho_message_type)i;
            /* the reason of a refusal may be just the version */
            if (v->valuedouble == HO_WIRE_VERSION || i == HO_MSG_REFUSE) {
                return HO_OK;
            }
        }
    }
    if (v->valuedouble != HO_WIRE_VERSION) {
        return ho_err_set(err, HO_EPROTO,
                          "the peer speaks protocol version %g, this program %d: use the same "
                          "release on both sides",
                          v->valuedouble, HO_WIRE_VERSION);
    }
    return ho_err_set(err, HO_EPROTO, "unknown type \"%.40s\"", name->valuestring);
}

/* Frames from `first` on as one piece of memory. */
static ho_status join(const ho_frame *frame, int first, int count, ho_blob *out, ho_err *err)
{
    size_t size = 0;
    for (int i = first; i < count; i++) {
        size += frame[i].size;
    }
    *out = (ho_blob){.data = (uint8_t *)malloc(size + 1)};
    if (!out->data) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    for (int i = first; i < count; i++) {
        if (frame[i].size > 0) {
            memcpy(out->data + out->size, frame[i].data, frame[i].size);
        }
        out->size += frame[i].size;
    }
    return HO_OK;
}

static ho_status read_windows(ho_message *m, const ho_frame *frame, int count, ho_err *err)
{
    enum { WINDOW_BYTES = 800 }; /* fewer than any window takes */
    int32_t *windows = NULL;
    ho_blob blob;
    ho_scored_window **out = windows_of(m, &windows);
    ho_status rc = join(frame, 1, count, &blob, err);
    if (rc != HO_OK) {
        return rc;
    }
    if ((size_t)*windows > blob.size / WINDOW_BYTES) {
        *windows = 0;
        rc = ho_err_set(err, HO_EPROTO, "the binary part is too short");
    }
    if (rc == HO_OK) {
        *out = (ho_scored_window *)calloc((size_t)*windows + 1, sizeof **out);
        rc = *out ? HO_OK : ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    if (rc == HO_OK) {
        ho_blob_windows(&blob, *out, *windows);
        rc = ho_blob_finish(&blob, err);
    }
    free(blob.data);
    return rc;
}

/* A file's name that can be joined to any folder. */
static bool plain_name(const char *name)
{
    static const char legal[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    return name[0] != '.' && strspn(name, legal) == strlen(name);
}

static ho_status read_chunk(ho_message *m, const ho_frame *frame, int count, ho_err *err)
{
    ho_msg_chunk *c = &m->chunk;
    if (count != 2 || frame[1].size > HO_WIRE_CHUNK || c->total > (UINT64_C(1) << 62) ||
        c->offset > c->total || frame[1].size > c->total - c->offset) {
        return ho_err_set(err, HO_EPROTO, "the part does not lie in the file");
    }
    if (!plain_name(c->name)) {
        return ho_err_set(err, HO_EPROTO, "name is no plain file name");
    }
    c->bytes = (uint8_t *)malloc(frame[1].size + 1);
    if (!c->bytes) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    c->count = frame[1].size;
    if (c->count > 0) {
        memcpy(c->bytes, frame[1].data, c->count);
    }
    return HO_OK;
}

static ho_status read_study(ho_message *m, const cJSON *json, const ho_frame *frame, int count,
                            ho_err *err)
{
    ho_msg_study *s = &m->study;
    ho_blob blob;
    if (count != 3) {
        return ho_err_set(err, HO_EPROTO, "a study has three frames");
    }
    ho_status rc = ho_settings_from_json(cJSON_GetObjectItemCaseSensitive(json, "settings"),
                                         &s->settings, err);
    if (rc != HO_OK) {
        return rc;
    }
    s->folds = (ho_fold_plan *)calloc(1, sizeof *s->folds);
    s->text = (char *)malloc(frame[1].size + 1);
    if (!s->folds || !s->text) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    if (frame[1].size > 0) {
        memcpy(s->text, frame[1].data, frame[1].size);
    }
    s->text[frame[1].size] = '\0';
    s->size = frame[1].size;
    rc = join(frame, 2, 3, &blob, err);
    if (rc == HO_OK) {
        ho_blob_plan(&blob, s->folds);
        rc = ho_blob_finish(&blob, err);
        free(blob.data);
    }
    return rc;
}

/* All trials of a message have a value for each parameter of the one space. */
static ho_status check_trials(const ho_msg_trials *t, ho_err *err)
{
    for (int32_t i = 1; i < t->count; i++) {
        if (t->order[i].param_count != t->order[0].param_count) {
            return ho_err_set(err, HO_EPROTO, "trials of different spaces");
        }
    }
    return HO_OK;
}

static ho_status read_payload(ho_message *m, const cJSON *json, const ho_frame *frame, int count,
                              ho_err *err)
{
    int32_t *windows = NULL;
    if (windows_of(m, &windows)) {
        return read_windows(m, frame, count, err);
    }
    if (m->type == HO_MSG_CHUNK) {
        return read_chunk(m, frame, count, err);
    }
    if (m->type == HO_MSG_STUDY) {
        return read_study(m, json, frame, count, err);
    }
    if (count != 1) {
        return ho_err_set(err, HO_EPROTO, "more frames than expected");
    }
    return m->type == HO_MSG_TRIALS ? check_trials(&m->trials, err) : HO_OK;
}

/* Trial and attempt: where they are meant they are there; a data chunk alone has none. */
static ho_status read_trial(const cJSON *json, ho_message *m, ho_err *err)
{
    if (!layout[m->type].trial) {
        return HO_OK;
    }
    ho_status rc = ho_fields_read(&trial_table, json, m, err);
    bool none = m->trial < 0 || m->attempt < 1;
    if (rc == HO_OK && none && m->type != HO_MSG_CHUNK) {
        return ho_err_set(err, HO_EPROTO, "no trial or attempt");
    }
    return rc;
}

ho_status ho_wire_decode(const ho_frame *frame, int count, ho_message *out, ho_err *err)
{
    ho_message_type type = HO_MSG_COUNT;
    cJSON *json = NULL;
    const char *end = NULL;
    ho_status rc = HO_OK;
    *out = ho_message_make(HO_MSG_PING);
    if (count < 1 || count > HO_WIRE_FRAMES_MAX) {
        return ho_err_set(err, HO_EPROTO, "a message of %d frames", count);
    }
    for (int i = 0; i < count; i++) {
        if (frame[i].size > HO_WIRE_FRAME_MAX) {
            return ho_err_set(err, HO_EPROTO, "a frame of %zu bytes", frame[i].size);
        }
    }
    if ((rc = check_depth(&frame[0], err)) != HO_OK) {
        return rc;
    }
    json = cJSON_ParseWithLengthOpts((const char *)frame[0].data, frame[0].size, &end, 0);
    if (!cJSON_IsObject(json) || end != (const char *)frame[0].data + frame[0].size) {
        rc = ho_err_set(err, HO_EPROTO, "the first frame is no JSON object");
        goto out;
    }
    if ((rc = read_type(json, &type, err)) != HO_OK) {
        goto out;
    }
    *out = ho_message_make(type);
    rc = read_trial(json, out, err);
    if (rc == HO_OK) {
        rc = ho_fields_read(layout[type].body, json, (char *)out + body_at, err);
    }
    if (rc == HO_OK) {
        rc = read_payload(out, json, frame, count, err);
    }
out:
    cJSON_Delete(json);
    if (rc != HO_OK) {
        ho_message_clear(out);
        rc = rc == HO_ENOMEM ? rc : HO_EPROTO;
        if (type != HO_MSG_COUNT) {
            (void)ho_err_prefix(err, "message %s", messages[type].name);
        }
        if (err) {
            err->code = rc;
        }
    }
    return rc;
}
