/* SPDX-License-Identifier: Apache-2.0
 * The messages between coordinator and worker as typed structs, and their bytes. The meaning, the
 * order and the states are in protocol.txt beside this file; sockets are not known here.
 *
 * A message is one JSON frame and then binary frames, each at most HO_WIRE_FRAME_MAX bytes. In
 * JSON, 64-bit numbers are strings, doubles are exact ("nan", "inf", "-inf" are strings), choices
 * are indexes. Bulk (windows, file parts, the study's text) is in the binary frames, little-endian.
 *
 * Decoding accepts any bytes: it returns HO_OK with a message that respects every limit below, or
 * HO_EPROTO with the reason and nothing to free. */
#ifndef HO_STUDY_WIRE_H
#define HO_STUDY_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/backend.h"
#include "study/folds.h"
#include "study/settings.h"
#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HO_WIRE_VERSION = 2,
    HO_WIRE_FRAME_MAX = 1 << 20, /* bytes of a frame */
    HO_WIRE_FRAMES_MAX = 256,    /* frames of a message */
    HO_WIRE_CHUNK = 512 << 10,   /* payload of a chunk, at most */
    HO_WIRE_DEPTH_MAX = 12,      /* nesting of JSON */
    HO_WIRE_DEVICES_MAX = 64,
    HO_WIRE_FILES_MAX = 4096,  /* data files of a study, or cached by a worker */
    HO_WIRE_HELD_MAX = 65536,  /* trials a worker holds */
    HO_WIRE_KEYS_MAX = 256,    /* cohort keys a worker holds */
    HO_WIRE_TRIALS_MAX = 1024, /* of one `trials` message */
    HO_WIRE_PARAMS_MAX = 1024,
    HO_WIRE_VALUES_MAX = 8,      /* objectives */
    HO_WIRE_WINDOWS_MAX = 16384, /* (fold, seed) of a result */
    HO_WIRE_NAME = 128,          /* host, worker, artifact names */
    HO_WIRE_TEXT = 1024,         /* reasons */
    HO_WIRE_PATH = 4096,
};

/* id, name on the wire, sent by the worker (W), the coordinator (C) or both (B) */
#define HO_MESSAGE_MAP(X)                                                                          \
    X(HELLO, "hello", W)                                                                           \
    X(READY, "ready", W)                                                                           \
    X(REPORT, "report", W)                                                                         \
    X(RESULT, "result", W)                                                                         \
    X(BASELINE, "baseline", W)                                                                     \
    X(FAIL, "fail", W)                                                                             \
    X(WANT, "want", W)                                                                             \
    X(PONG, "pong", W)                                                                             \
    X(BYE, "bye", W)                                                                               \
    X(DONE, "done", W)                                                                             \
    X(CHUNK, "chunk", B)                                                                           \
    X(GOT, "got", B)                                                                               \
    X(STUDY, "study", C)                                                                           \
    X(TRIALS, "trials", C)                                                                         \
    X(PRUNE, "prune", C)                                                                           \
    X(PAUSE, "pause", C)                                                                           \
    X(ACK, "ack", C)                                                                               \
    X(KEEP, "keep", C)                                                                             \
    X(DROP, "drop", C)                                                                             \
    X(FETCH, "fetch", C)                                                                           \
    X(JOB, "job", C)                                                                               \
    X(PING, "ping", C)                                                                             \
    X(STOP, "stop", C)                                                                             \
    X(REFUSE, "refuse", C)

typedef enum ho_message_type {
#define HO_MESSAGE_ENUM(id, name, sender) HO_MSG_##id,
    HO_MESSAGE_MAP(HO_MESSAGE_ENUM)
#undef HO_MESSAGE_ENUM
        HO_MSG_COUNT
} ho_message_type;

const char *ho_message_name(ho_message_type type);
bool ho_message_from_worker(ho_message_type type);
bool ho_message_from_coordinator(ho_message_type type);

/* ---- parts ---------------------------------------------------------------------------------- */

typedef struct ho_held_trial {
    int64_t trial;
    int32_t attempt;
    int32_t epoch; /* epochs done */
    bool finished; /* a result or failure waits for its ack */
} ho_held_trial;

typedef struct ho_data_file {
    char sha256[65];
    uint64_t size;
    char path[HO_WIRE_PATH]; /* where the coordinator reads it; used when the hash matches there */
} ho_data_file;

typedef struct ho_trial_order {
    int64_t trial;
    int32_t attempt;
    uint64_t seed;              /* study seed of the trial's random keys (a retest has another) */
    double lease_s;             /* 0: as long as the worker answers */
    int32_t param_count;        /* P, equal for all trials of a message */
    double *config;             /* [P] as space.h */
    char resume[65];            /* sha256 of a checkpoint to start from; "" */
    int32_t fold_count;         /* folds to run; 0: all */
    int32_t fold[HO_FOLDS_MAX]; /* [fold_count] ascending */
} ho_trial_order;

/* One backtest: of a lane (policy ""), or of a rule policy. fold -1: the seed's test windows joined
 * (ho_stitch). Of `result` the scalars and those arrays travel that are not NULL. */
typedef struct ho_scored_window {
    char policy[16];
    int32_t fold, seed;       /* -1 where none is meant */
    double random_percentile; /* of the agent among random policies; NaN: not measured */
    ho_backtest_result result;
} ho_scored_window;

/* ---- worker to coordinator ------------------------------------------------------------------ */

typedef struct ho_msg_hello {
    char program[32];        /* version of the program */
    char name[HO_WIRE_NAME]; /* of the worker, for people */
    char uuid[40];           /* of this process; the same after a reconnect */
    char study[40];          /* uuid of the study that the held trials are of; "" */
    char token[72];          /* given by the coordinator that started it; "" */
    char host[HO_WIRE_NAME];
    int64_t pid;
    int32_t lanes;      /* agents trained at once; 0: not known before the first cohort */
    bool allow_command; /* started with --allow-command */
    int32_t device_count;
    ho_device_info *device; /* [device_count] */
    int32_t cached_count;
    char (*cached)[65]; /* sha256 of data files in the cache */
    int32_t held_count;
    ho_held_trial *held;
} ho_msg_hello;

typedef struct ho_msg_ready {
    int32_t slots;        /* trials it would take now */
    int32_t active_lanes; /* training */
    int32_t waiting_lanes;
    int32_t lanes; /* agents trained at once */
    int32_t key_count;
    ho_cohort_key *key; /* cohorts held */
} ho_msg_ready;

/* One epoch of a trial, its lanes merged. */
typedef struct ho_msg_report {
    int32_t epoch;
    bool scored; /* a validation epoch: values hold */
    int32_t value_count;
    double value[HO_WIRE_VALUES_MAX]; /* objectives on the validation windows; NaN: undefined */
    int32_t fold_count;
    double *fold_value; /* [fold_count] first objective; NaN: undefined */
    ho_epoch_stat stat;
    int64_t parent; /* population: the trial whose agents it took over since the last report; -1 */
    int32_t config_count;
    double *config; /* [P] population: what it trains on with; NULL without a parent */
} ho_msg_report;

typedef struct ho_msg_result {
    int32_t epochs;
    int64_t experiences, updates;
    double train_s;
    int32_t value_count; /* of a [command] study: its objectives; else 0 */
    double value[HO_WIRE_VALUES_MAX];
    int32_t window_count;
    ho_scored_window *window; /* every (fold, seed) once */
} ho_msg_result;

typedef struct ho_msg_baseline {
    int32_t window_count;
    ho_scored_window *window; /* policy names each */
} ho_msg_baseline;

/* class, name, whether another worker may have better luck */
#define HO_FAIL_MAP(X)                                                                             \
    X(CONFIG, "config", false)     /* this configuration can never run */                          \
    X(DIVERGED, "diverged", false) /* the guard stopped a lane */                                  \
    X(OOM, "oom", true)            /* not even one lane fits */                                    \
    X(DEVICE, "device", true)      /* the device is gone */                                        \
    X(DATA, "data", false)         /* the market data cannot be loaded */                          \
    X(COMMAND, "command", false)   /* the user's command failed */                                 \
    X(TIMEOUT, "timeout", false)                                                                   \
    X(CANCELLED, "cancelled", true) /* the worker stops; nothing is wrong with the trial */        \
    X(INTERNAL, "internal", true)

typedef enum ho_fail_class {
#define HO_FAIL_ENUM(id, name, retryable) HO_FAIL_##id,
    HO_FAIL_MAP(HO_FAIL_ENUM)
#undef HO_FAIL_ENUM
        HO_FAIL_COUNT
} ho_fail_class;

const char *ho_fail_class_name(ho_fail_class class_id);
bool ho_fail_class_retryable(ho_fail_class class_id);

typedef struct ho_msg_fail {
    ho_fail_class class_id;
    bool retryable;
    int32_t lane, fold, seed; /* -1 where none is meant */
    int32_t epoch;            /* epochs done by that lane */
    int64_t update;           /* at which the guard tripped; -1 otherwise */
    char reason[HO_WIRE_TEXT];
} ho_msg_fail;

/* The worker lacks a data file and has `offset` bytes of it. */
typedef struct ho_msg_want {
    char sha256[65];
    uint64_t offset;
} ho_msg_want;

typedef struct ho_msg_pong {
    int64_t sequence; /* of the ping */
    int32_t running;  /* trials held */
    int32_t active_lanes;
    double steps_per_s;  /* experiences, all lanes, since the last pong */
    double memory_share; /* of the device in use; NaN: unknown */
} ho_msg_pong;

typedef struct ho_msg_bye {
    char reason[HO_WIRE_TEXT];
} ho_msg_bye;

/* Answer to a job. */
typedef struct ho_msg_done {
    int64_t job;
    int32_t status; /* ho_status */
    char reason[HO_WIRE_TEXT];
    char *body; /* JSON text of the answer, or NULL; at most half a frame */
    int32_t window_count;
    ho_scored_window *window;
} ho_msg_done;

/* ---- either way ----------------------------------------------------------------------------- */

typedef enum ho_chunk_kind {
    HO_CHUNK_DATA,       /* a data file, by sha256; coordinator to worker */
    HO_CHUNK_CHECKPOINT, /* a trial's state; either way */
    HO_CHUNK_ARTIFACT,   /* weights, actions, per-bar returns of a trial; worker to coordinator */
} ho_chunk_kind;

/* A part of a file. Parts are sent in order; the last one has offset + count == total. */
typedef struct ho_msg_chunk {
    ho_chunk_kind kind;
    char name[HO_WIRE_NAME]; /* "fold-3-seed-0.safetensors": no folder, no leading dot; "" */
    char sha256[65];         /* of the whole file */
    uint64_t offset, total;
    uint64_t ticket; /* sent back by `got`; see flow.h */
    size_t count;    /* bytes here, at most HO_WIRE_CHUNK */
    uint8_t *bytes;
} ho_msg_chunk;

/* The chunk with this ticket was taken. */
typedef struct ho_msg_got {
    uint64_t ticket;
} ho_msg_got;

/* ---- coordinator to worker ------------------------------------------------------------------ */

typedef struct ho_msg_study {
    char uuid[40]; /* another one after a change that matters for results */
    char name[HO_WIRE_NAME];
    char source[HO_WIRE_PATH]; /* path of the study file, for messages */
    char *text;                /* the study file; ho_study_parse takes it */
    size_t size;
    ho_settings *settings; /* effective: with options of the command line */
    ho_fold_plan *folds;
    uint64_t seed;
    int32_t auto_batch; /* measured batch of dqn.batch = "auto"; 0: not measured yet */
    int32_t file_count;
    ho_data_file *file; /* in order of data.path */
} ho_msg_study;

typedef struct ho_msg_trials {
    int32_t count;
    ho_trial_order *order;
} ho_msg_trials;

typedef enum ho_fetch_kind {
    HO_FETCH_WEIGHTS,
    HO_FETCH_CHECKPOINT,
    HO_FETCH_ACTIONS,
    HO_FETCH_BARS, /* per-bar returns */
} ho_fetch_kind;

typedef struct ho_msg_pause {
    int32_t epoch; /* of the report that it answers */
} ho_msg_pause;

typedef struct ho_msg_fetch {
    ho_fetch_kind kind;
    int32_t fold, seed; /* -1: all */
} ho_msg_fetch;

typedef struct ho_msg_job {
    int64_t job;
    char command[32]; /* "evaluate", "verify", "holdout", "reproduce", "null-test" */
    char *body;       /* JSON text of its arguments, or NULL; at most half a frame */
} ho_msg_job;

typedef struct ho_msg_ping {
    int64_t sequence;
} ho_msg_ping;

typedef enum ho_stop_mode { HO_STOP_DRAIN, HO_STOP_NOW } ho_stop_mode;

typedef struct ho_msg_stop {
    ho_stop_mode mode;
} ho_msg_stop;

typedef struct ho_msg_refuse {
    char reason[HO_WIRE_TEXT];
} ho_msg_refuse;

/* ---- messages ------------------------------------------------------------------------------- */

typedef struct ho_message {
    ho_message_type type;
    int64_t trial; /* report, result, fail, chunk, prune, pause, ack, keep, drop, fetch; else -1 */
    int32_t attempt; /* likewise, from 1; else 0 */
    union {
        ho_msg_hello hello;
        ho_msg_ready ready;
        ho_msg_report report;
        ho_msg_result result;
        ho_msg_baseline baseline;
        ho_msg_fail fail;
        ho_msg_want want;
        ho_msg_pong pong;
        ho_msg_bye bye;
        ho_msg_done done;
        ho_msg_chunk chunk;
        ho_msg_got got;
        ho_msg_study study;
        ho_msg_trials trials;
        ho_msg_pause pause;
        ho_msg_fetch fetch;
        ho_msg_job job;
        ho_msg_ping ping;
        ho_msg_stop stop;
        ho_msg_refuse refuse;
    };
} ho_message;

/* An empty message: zeros, trial -1. Fill it, encode it, clear it. */
ho_message ho_message_make(ho_message_type type);

/* Frees what the message owns (lists, texts, settings; each malloc'ed) and empties it. */
void ho_message_clear(ho_message *message);

typedef struct ho_frame {
    uint8_t *data; /* malloc'ed */
    size_t size;
} ho_frame;

typedef struct ho_frames {
    int count;
    ho_frame frame[HO_WIRE_FRAMES_MAX];
} ho_frames;

/* Cleared on entry. HO_EINVAL: a limit is passed (err names the field); HO_ENOMEM. On failure there
 * is nothing to free. */
ho_status ho_wire_encode(const ho_message *message, ho_frames *out, ho_err *err);
void ho_frames_clear(ho_frames *frames);

/* frame: [count] borrowed. HO_EPROTO: not a message of this protocol. */
ho_status ho_wire_decode(const ho_frame *frame, int count, ho_message *out, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
