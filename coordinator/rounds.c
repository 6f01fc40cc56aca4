/* SPDX-License-Identifier: Apache-2.0
 * See rounds.h. A packed message is its frames, each behind its length (64 bits, little-endian). */
#include "coordinator/rounds.h"

#include <stdlib.h>
#include <string.h>

struct ho_rounds {
    ho_message *kept; /* [count] results in the order they came */
    int count, room;
};

void ho_rounds_destroy(ho_rounds **rounds)
{
    ho_rounds *r = *rounds;
    if (!r) {
        return;
    }
    for (int i = 0; i < r->count; i++) {
        ho_message_clear(&r->kept[i]);
    }
    free(r->kept);
    free(r);
    *rounds = NULL;
}

ho_status ho_rounds_keep(ho_rounds *r, ho_message *result, ho_err *err)
{
    if (r->count == r->room) {
        int room = r->room ? 2 * r->room : 16;
        ho_message *bigger = (ho_message *)realloc(r->kept, (size_t)room * sizeof *bigger);
        if (!bigger) {
            return ho_err_set(err, HO_ENOMEM, "out of memory");
        }
        r->kept = bigger;
        r->room = room;
    }
    r->kept[r->count++] = *result;
    *result = ho_message_make(HO_MSG_RESULT);
    return HO_OK;
}

void ho_rounds_forget(ho_rounds *r, int64_t trial)
{
    int left = 0;
    for (int i = 0; i < r->count; i++) {
        if (r->kept[i].trial == trial) {
            ho_message_clear(&r->kept[i]);
        } else {
            r->kept[left++] = r->kept[i];
        }
    }
    r->count = left;
}

ho_status ho_rounds_join(const ho_rounds *r, const ho_message *result, ho_message *out, ho_err *err)
{
    size_t windows = (size_t)result->result.window_count, n = 0;
    for (int i = 0; i < r->count; i++) {
        windows += r->kept[i].trial == result->trial ? (size_t)r->kept[i].result.window_count : 0;
    }
    *out = *result;
    out->result.window = (ho_scored_window *)calloc(windows + 1, sizeof *out->result.window);
    out->result.window_count = (int32_t)windows;
    if (!out->result.window) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    for (int i = 0; i < r->count; i++) {
        const ho_msg_result *m = &r->kept[i].result;
        if (r->kept[i].trial != result->trial) {
            continue;
        }
        for (int32_t w = 0; w < m->window_count; w++) {
            out->result.window[n++] = m->window[w];
        }
        out->result.epochs += m->epochs;
        out->result.experiences += m->experiences;
        out->result.updates += m->updates;
        out->result.train_s += m->train_s;
    }
    for (int32_t w = 0; w < result->result.window_count; w++) {
        out->result.window[n++] = result->result.window[w];
    }
    return HO_OK;
}

/* ---- as bytes ------------------------------------------------------------------------------- */

enum { LENGTH = 8 };

ho_status ho_rounds_pack(const ho_message *result, uint8_t **bytes, size_t *size, ho_err *err)
{
    ho_frames frames;
    ho_status rc = ho_wire_encode(result, &frames, err);
    size_t at = 0;

    *bytes = NULL;
    *size = 0;
    if (rc != HO_OK) {
        return rc;
    }
    for (int i = 0; i < frames.count; i++) {
        *size += LENGTH + frames.frame[i].size;
    }
    if (!(*bytes = (uint8_t *)malloc(*size))) {
        rc = ho_err_set(err, HO_ENOMEM, "out of memory");
        goto out;
    }
    for (int i = 0; i < frames.count; i++) {
        for (int b = 0; b < LENGTH; b++) {
            (*bytes)[at++] = (uint8_t)((uint64_t)frames.frame[i].size >> (8 * b));
        }
        memcpy(*bytes + at, frames.frame[i].data, frames.frame[i].size);
        at += frames.frame[i].size;
    }
out:
    ho_frames_clear(&frames);
    return rc;
}

static ho_status unpack(const uint8_t *bytes, size_t size, ho_message *out, ho_err *err)
{
    ho_frame frame[HO_WIRE_FRAMES_MAX];
    size_t at = 0;
    int count = 0;

    while (at < size && count < HO_WIRE_FRAMES_MAX) {
        uint64_t length = 0;
        if (size - at < LENGTH) {
            return ho_err_set(err, HO_EPROTO, "torn");
        }
        for (int b = 0; b < LENGTH; b++) {
            length |= (uint64_t)bytes[at++] << (8 * b);
        }
        if (length > size - at) {
            return ho_err_set(err, HO_EPROTO, "torn");
        }
        frame[count++] = (ho_frame){(uint8_t *)(uintptr_t)(bytes + at), (size_t)length};
        at += (size_t)length;
    }
    return at == size ? ho_wire_decode(frame, count, out, err)
                      : ho_err_set(err, HO_EPROTO, "too many frames");
}

/* ---- from the store ------------------------------------------------------------------------- */

typedef struct loading {
    ho_rounds *rounds;
    const char *path;
    ho_err *err;
} loading;

static ho_status load(const ho_race_row *row, void *user)
{
    loading *l = (loading *)user;
    ho_message message;
    ho_err why = {0};

    if (!row->result) {
        return HO_OK;
    }
    ho_status rc = unpack((const uint8_t *)row->result, row->result_size, &message, &why);
    if (rc == HO_OK && (message.type != HO_MSG_RESULT || message.trial != row->number)) {
        ho_message_clear(&message);
        rc = ho_err_set(&why, HO_EPROTO, "not the result of that trial");
    }
    if (rc != HO_OK) {
        return ho_err_set(l->err, rc == HO_ENOMEM ? HO_ENOMEM : HO_ESTORE,
                          "%s: race.result of trial %lld, round %lld: %s", l->path,
                          (long long)row->number, (long long)row->round, why.text);
    }
    rc = ho_rounds_keep(l->rounds, &message, l->err);
    ho_message_clear(&message);
    return rc;
}

ho_status ho_rounds_create(ho_rounds **out, ho_store *store, ho_err *err)
{
    loading l = {.path = ho_store_path(store), .err = err};

    *out = (ho_rounds *)calloc(1, sizeof **out);
    if (!*out) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    l.rounds = *out;
    ho_status rc = ho_store_each_round(store, load, &l, err);
    if (rc != HO_OK) {
        ho_rounds_destroy(out);
    }
    return rc;
}
