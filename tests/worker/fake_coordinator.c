/* SPDX-License-Identifier: Apache-2.0
 * See fake_coordinator.h. */
#include "fake_coordinator.h"

#include "check.h"

#include <stdlib.h>

enum { PATIENCE_MS = 20000 };

void fake_start(fake_coordinator *fake, const char *endpoint)
{
    fake->router = zsock_new(ZMQ_ROUTER);
    assert_non_null(fake->router);
    zsock_set_linger(fake->router, 0);
    int port = -1;
    for (int tries = 0; port == -1 && tries < 100; tries++) {
        port = zsock_bind(fake->router, "%s", endpoint);
        zclock_sleep(port == -1 ? 50 : 0); /* the socket before it closes in the background */
    }
    assert_int_not_equal(port, -1);
    snprintf(fake->endpoint, sizeof fake->endpoint, "%s", zsock_endpoint(fake->router));
}

void fake_stop(fake_coordinator *fake)
{
    zsock_destroy(&fake->router);
    zframe_destroy(&fake->peer);
}

/* false: nothing came in time. */
static bool receive(fake_coordinator *fake, int ms, ho_message *out)
{
    ho_err err = {0};
    ho_frame frame[HO_WIRE_FRAMES_MAX];
    int count = 0;
    zsock_set_rcvtimeo(fake->router, ms);
    zmsg_t *bytes = zmsg_recv(fake->router);
    if (!bytes) {
        return false;
    }
    zframe_destroy(&fake->peer);
    fake->peer = zmsg_pop(bytes);
    for (zframe_t *f = zmsg_first(bytes); f; f = zmsg_next(bytes)) {
        frame[count++] = (ho_frame){.data = zframe_data(f), .size = zframe_size(f)};
    }
    CHECK_OK(ho_wire_decode(frame, count, out, &err), &err);
    zmsg_destroy(&bytes);
    if (out->type == HO_MSG_CHUNK && !fake->slow) {
        fake_send_got(fake, out->chunk.ticket);
    }
    return true;
}

ho_message fake_receive_any(fake_coordinator *fake)
{
    ho_message m = ho_message_make(HO_MSG_PING);
    if (!receive(fake, PATIENCE_MS, &m)) {
        fail_msg("nothing came");
    }
    return m;
}

ho_message fake_receive(fake_coordinator *fake)
{
    for (;;) {
        ho_message m = fake_receive_any(fake);
        if (m.type != HO_MSG_PONG && m.type != HO_MSG_READY) {
            return m;
        }
        ho_message_clear(&m);
    }
}

ho_message fake_receive_type(fake_coordinator *fake, ho_message_type type)
{
    for (int others = 0; others < 10000; others++) {
        ho_message m;
        if (!receive(fake, PATIENCE_MS, &m)) {
            fail_msg("no %s came", ho_message_name(type));
        }
        if (m.type == type) {
            return m;
        }
        ho_message_clear(&m);
    }
    fail_msg("everything but a %s came", ho_message_name(type));
    return ho_message_make(type);
}

bool fake_hears(fake_coordinator *fake, ho_message_type type, int ms)
{
    ho_message m;
    int64_t until = zclock_mono() + ms;
    while (zclock_mono() < until) {
        if (receive(fake, 20, &m)) {
            bool same = m.type == type;
            ho_message_clear(&m);
            if (same) {
                return true;
            }
        }
    }
    return false;
}

void fake_send(fake_coordinator *fake, const ho_message *message)
{
    ho_err err = {0};
    static ho_frames frames;
    CHECK_OK(ho_wire_encode(message, &frames, &err), &err);
    zmsg_t *bytes = zmsg_new();
    zframe_t *peer = zframe_dup(fake->peer);
    zmsg_append(bytes, &peer);
    for (int i = 0; i < frames.count; i++) {
        zmsg_addmem(bytes, frames.frame[i].data, frames.frame[i].size);
    }
    ho_frames_clear(&frames);
    assert_int_equal(zmsg_send(&bytes, fake->router), 0);
}

void fake_send_bytes(fake_coordinator *fake, const void *bytes, size_t size)
{
    zmsg_t *message = zmsg_new();
    zframe_t *peer = zframe_dup(fake->peer);
    zmsg_append(message, &peer);
    zmsg_addmem(message, bytes, size);
    assert_int_equal(zmsg_send(&message, fake->router), 0);
}

void fake_send_got(fake_coordinator *fake, uint64_t ticket)
{
    ho_message m = ho_message_make(HO_MSG_GOT);
    m.got.ticket = ticket;
    fake_send(fake, &m);
}

void fake_send_about(fake_coordinator *fake, ho_message_type type, int64_t trial, int32_t attempt)
{
    ho_message m = ho_message_make(type);
    m.trial = trial;
    m.attempt = attempt;
    fake_send(fake, &m);
}

void fake_send_study(fake_coordinator *fake, const char *uuid, const char *text,
                     double heartbeat_timeout_s)
{
    ho_err err = {0};
    ho_message m = ho_message_make(HO_MSG_STUDY);
    snprintf(m.study.uuid, sizeof m.study.uuid, "%s", uuid);
    snprintf(m.study.name, sizeof m.study.name, "test");
    snprintf(m.study.source, sizeof m.study.source, "test.toml");
    m.study.text = strdup(text ? text : "[data]\npath = \"x.csv\"\n");
    m.study.size = strlen(m.study.text);
    m.study.settings = ho_settings_create();
    m.study.folds = calloc(1, sizeof *m.study.folds);
    CHECK_OK(ho_settings_set_f64(m.study.settings, HO_KEY_COORDINATOR_HEARTBEAT_TIMEOUT,
                                 heartbeat_timeout_s, &err),
             &err);
    fake_send(fake, &m);
    ho_message_clear(&m);
}
