/* SPDX-License-Identifier: Apache-2.0
 * The link against a coordinator that answers, is silent, lies, vanishes and comes back. */
#include "check.h"

#include <stdlib.h>

#include "fake_coordinator.h"
#include "study/flow.h"
#include "study/log.h"
#include "worker/link.h"

static fake_coordinator fake;
static ho_link *link_;
static ho_msg_hello hello;
static ho_err err;

static void abandon(const char *reason)
{
    fail_msg("abandoned: %s", reason);
}

static ho_status open_link(const char *endpoint)
{
    ho_link_options options = {.endpoint = endpoint,
                               .hello = &hello,
                               .heartbeat_interval_s = 0.2,
                               .heartbeat_timeout_s = 1.0,
                               .abandon = abandon};
    return ho_link_create(&link_, &options, &err);
}

static int setup(void **state)
{
    (void)state;
    ho_err_clear(&err);
    fake.slow = false;
    snprintf(hello.name, sizeof hello.name, "w0");
    snprintf(hello.uuid, sizeof hello.uuid, "0123456789abcdef");
    fake_start(&fake, "ipc://fake.sock");
    CHECK_OK(open_link(fake.endpoint), &err);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ho_link_destroy(&link_);
    fake_stop(&fake);
    return 0;
}

/* hello, study, and the study at the compute thread's side. */
static int greet_with_study(const char *uuid, double heartbeat_timeout_s)
{
    ho_message m = fake_receive_type(&fake, HO_MSG_HELLO);
    int held = m.hello.held_count;
    assert_string_equal(m.hello.name, "w0");
    ho_message_clear(&m);
    fake_send_study(&fake, uuid, NULL, heartbeat_timeout_s);
    assert_true(ho_link_receive(link_, 20000, &m));
    assert_int_equal(m.type, HO_MSG_STUDY);
    ho_message_clear(&m);
    assert_true(ho_link_joined(link_));
    return held;
}

static int greet_with(double heartbeat_timeout_s)
{
    return greet_with_study("study-1", heartbeat_timeout_s);
}

static int greet(void)
{
    return greet_with(1.0);
}

static void order(int64_t trial, int32_t attempt)
{
    ho_message m = ho_message_make(HO_MSG_TRIALS);
    m.trials.count = 1;
    m.trials.order = calloc(1, sizeof *m.trials.order);
    m.trials.order[0] = (ho_trial_order){.trial = trial, .attempt = attempt, .param_count = 1};
    m.trials.order[0].config = calloc(1, sizeof(double));
    fake_send(&fake, &m);
    ho_message_clear(&m);
}

static void take_order(int64_t trial, int32_t attempt)
{
    ho_message m;
    assert_true(ho_link_receive(link_, 20000, &m));
    assert_int_equal(m.type, HO_MSG_TRIALS);
    assert_int_equal(m.trials.count, 1);
    assert_int_equal(m.trials.order[0].trial, trial);
    assert_int_equal(m.trials.order[0].attempt, attempt);
    ho_message_clear(&m);
}

static void say(ho_message_type type, int64_t trial, int32_t attempt)
{
    ho_message m = ho_message_make(type);
    m.trial = trial;
    m.attempt = attempt;
    if (type == HO_MSG_REPORT) {
        m.report.epoch = 1;
        m.report.parent = -1;
    } else if (type == HO_MSG_FAIL) {
        m.fail.class_id = HO_FAIL_INTERNAL;
        m.fail.lane = m.fail.fold = m.fail.seed = -1;
        m.fail.update = -1;
    }
    CHECK_OK(ho_link_send(link_, &m, &err), &err);
}

static void expect(ho_message_type type, int64_t trial)
{
    ho_message m = fake_receive(&fake);
    assert_int_equal(m.type, type);
    assert_int_equal(m.trial, trial);
    ho_message_clear(&m);
}

static void pings_are_answered_without_the_compute_thread(void **state)
{
    (void)state;
    greet();
    for (int i = 1; i <= 3; i++) {
        ho_message m = ho_message_make(HO_MSG_PING);
        m.ping.sequence = i;
        fake_send(&fake, &m);
        m = fake_receive_type(&fake, HO_MSG_PONG);
        assert_int_equal(m.pong.sequence, i);
        ho_message_clear(&m);
    }
}

static void what_was_not_acked_comes_again_after_a_restart(void **state)
{
    (void)state;
    greet();
    order(7, 1);
    take_order(7, 1);
    order(8, 1);
    take_order(8, 1);
    say(HO_MSG_REPORT, 7, 1);
    say(HO_MSG_FAIL, 7, 1);
    expect(HO_MSG_REPORT, 7);
    expect(HO_MSG_FAIL, 7);
    char endpoint[128];
    snprintf(endpoint, sizeof endpoint, "%s", fake.endpoint);
    fake_stop(&fake); /* before its ack */
    say(HO_MSG_REPORT, 8, 1);
    fake_start(&fake, endpoint);
    assert_int_equal(greet(), 2); /* it tells that it holds both */
    expect(HO_MSG_REPORT, 7);
    expect(HO_MSG_FAIL, 7);
    expect(HO_MSG_REPORT, 8);
    fake_send_about(&fake, HO_MSG_ACK, 7, 1);
    fake_stop(&fake);
    fake_start(&fake, endpoint);
    int held = greet();
    if (held == 2) { /* the ack was lost with the connection */
        expect(HO_MSG_REPORT, 7);
        expect(HO_MSG_FAIL, 7);
    }
    expect(HO_MSG_REPORT, 8);
}

static void a_silent_coordinator_is_greeted_again(void **state)
{
    (void)state;
    greet();
    /* no ping for longer than the timeout: half-open, or stopped */
    ho_message m = fake_receive_type(&fake, HO_MSG_HELLO);
    assert_int_equal(m.hello.held_count, 0);
    ho_message_clear(&m);
}

static void a_repeated_order_is_taken_once(void **state)
{
    (void)state;
    ho_message m;
    greet();
    order(7, 1);
    order(7, 1);
    order(7, 2);
    take_order(7, 1);
    assert_true(ho_link_receive(link_, 20000, &m)); /* nothing is left of the repeated one */
    assert_int_equal(m.trials.count, 0);
    ho_message_clear(&m);
    take_order(7, 2);
}

static void a_pruned_trial_is_forgotten(void **state)
{
    (void)state;
    ho_message m;
    greet();
    order(7, 1);
    take_order(7, 1);
    fake_send_about(&fake, HO_MSG_PRUNE, 7, 9); /* of another attempt: nothing happens */
    fake_send_about(&fake, HO_MSG_PRUNE, 7, 1);
    assert_true(ho_link_receive(link_, 20000, &m));
    assert_int_equal(m.type, HO_MSG_PRUNE);
    assert_int_equal(m.attempt, 1);
    ho_message_clear(&m);
    say(HO_MSG_REPORT, 7, 1); /* the compute thread was in the middle of an epoch */
    assert_false(fake_hears(&fake, HO_MSG_REPORT, 300));
}

static void send_chunk(ho_chunk_kind kind, int64_t trial, int number)
{
    uint8_t byte = 0;
    ho_message m = ho_message_make(HO_MSG_CHUNK);
    m.trial = trial;
    m.attempt = 1;
    m.chunk.kind = kind;
    m.chunk.offset = (uint64_t)number;
    m.chunk.total = 1000;
    m.chunk.count = 1;
    m.chunk.bytes = &byte;
    CHECK_OK(ho_link_send(link_, &m, &err), &err);
}

/* The next chunk must be this one; its ticket. */
static uint64_t take_chunk(int number)
{
    ho_message m = fake_receive_type(&fake, HO_MSG_CHUNK);
    uint64_t ticket = m.chunk.ticket;
    assert_int_equal(m.chunk.offset, number);
    assert_true(ticket != 0);
    ho_message_clear(&m);
    return ticket;
}

static void ping(int64_t sequence)
{
    ho_message m = ho_message_make(HO_MSG_PING);
    m.ping.sequence = sequence;
    fake_send(&fake, &m);
}

/* Nothing but the pong comes: the link has had its turn and sent no chunk. */
static void expect_only_a_pong(int64_t sequence)
{
    ping(sequence);
    ho_message m;
    do {
        m = fake_receive_any(&fake);
        assert_int_equal(m.type, HO_MSG_PONG);
    } while (m.pong.sequence != sequence);
}

static void no_more_chunks_are_under_way_than_the_window_holds(void **state)
{
    (void)state;
    enum { CHUNKS = 3 * HO_FLOW_CHUNKS };
    uint64_t ticket[CHUNKS];
    greet_with(60.0);
    order(7, 1);
    take_order(7, 1);
    fake.slow = true;
    for (int i = 0; i < CHUNKS; i++) {
        send_chunk(HO_CHUNK_ARTIFACT, 7, i);
    }
    say(HO_MSG_FAIL, 7, 1);
    for (int i = 0; i < HO_FLOW_CHUNKS; i++) {
        ticket[i] = take_chunk(i);
    }
    fake_send_got(&fake, 12345); /* not a ticket of this connection */
    expect_only_a_pong(1);
    fake_send_got(&fake, ticket[2]); /* and with it those before */
    for (int i = HO_FLOW_CHUNKS; i < HO_FLOW_CHUNKS + 3; i++) {
        ticket[i] = take_chunk(i);
    }
    expect_only_a_pong(2);
    assert_false(ho_link_flush(link_, 100)); /* the rest has not left */
    for (int i = 3; i < CHUNKS; i++) {
        fake_send_got(&fake, ticket[i]);
        if (i + HO_FLOW_CHUNKS < CHUNKS) {
            ticket[i + HO_FLOW_CHUNKS] = take_chunk(i + HO_FLOW_CHUNKS);
        }
    }
    expect(HO_MSG_FAIL, 7);
    assert_true(ho_link_flush(link_, 20000));
}

static void a_new_connection_has_a_window_of_its_own(void **state)
{
    (void)state;
    char endpoint[128];
    greet_with(60.0);
    order(7, 1);
    take_order(7, 1);
    fake.slow = true;
    for (int i = 0; i < HO_FLOW_CHUNKS + 1; i++) {
        send_chunk(HO_CHUNK_ARTIFACT, 7, i);
    }
    for (int i = 0; i < HO_FLOW_CHUNKS; i++) {
        (void)take_chunk(i);
    }
    snprintf(endpoint, sizeof endpoint, "%s", fake.endpoint);
    fake_stop(&fake); /* nothing was answered */
    fake_start(&fake, endpoint);
    assert_int_equal(greet_with(60.0), 1);
    fake.slow = false;
    for (int i = 0; i < HO_FLOW_CHUNKS + 1; i++) { /* all of them again, from the first on */
        (void)take_chunk(i);
    }
}

static void a_checkpoint_that_waits_for_the_line_is_told(void **state)
{
    (void)state;
    greet_with(60.0);
    assert_false(ho_link_saving(link_));
    order(7, 1);
    take_order(7, 1);
    fake.slow = true;
    for (int i = 0; i < HO_FLOW_CHUNKS + 2; i++) {
        send_chunk(HO_CHUNK_CHECKPOINT, 7, i);
    }
    assert_true(ho_link_saving(link_));
    uint64_t ticket = 0;
    for (int i = 0; i < HO_FLOW_CHUNKS; i++) {
        ticket = take_chunk(i);
    }
    expect_only_a_pong(1);
    assert_true(ho_link_saving(link_));
    fake.slow = false;
    fake_send_got(&fake, ticket);
    (void)take_chunk(HO_FLOW_CHUNKS);
    (void)take_chunk(HO_FLOW_CHUNKS + 1);
    assert_true(ho_link_flush(link_, 20000));
    assert_false(ho_link_saving(link_));
}

/* Parts of a checkpoint are answered by the link, since the compute thread may be in an epoch;
 * those of a data file by whoever has written them. */
static void chunks_of_a_checkpoint_are_answered_by_the_link(void **state)
{
    (void)state;
    greet_with(60.0);
    uint8_t byte = 0;
    ho_message m = ho_message_make(HO_MSG_CHUNK);
    m.chunk.total = m.chunk.count = 1;
    m.chunk.bytes = &byte;
    m.chunk.kind = HO_CHUNK_DATA;
    m.chunk.ticket = 41;
    fake_send(&fake, &m);
    m.trial = m.attempt = 1;
    m.chunk.kind = HO_CHUNK_CHECKPOINT;
    m.chunk.ticket = 42;
    fake_send(&fake, &m);
    m = fake_receive_type(&fake, HO_MSG_GOT);
    assert_int_equal(m.got.ticket, 42);
    for (int i = 0; i < 2; i++) { /* the compute thread finds both */
        assert_true(ho_link_receive(link_, 20000, &m));
        assert_int_equal(m.type, HO_MSG_CHUNK);
        assert_int_equal(m.chunk.ticket, 41 + i);
        ho_message_clear(&m);
    }
    m = ho_message_make(HO_MSG_GOT);
    m.got.ticket = 41;
    CHECK_OK(ho_link_send(link_, &m, &err), &err);
    m = fake_receive_type(&fake, HO_MSG_GOT);
    assert_int_equal(m.got.ticket, 41);
}

/* Numbers of trials begin at 0 in each study: what belongs to one must never reach another. */
static void another_study_gets_nothing_of_the_one_before(void **state)
{
    (void)state;
    char endpoint[128];
    greet_with(60.0);
    order(7, 1);
    take_order(7, 1);
    say(HO_MSG_REPORT, 7, 1);
    expect(HO_MSG_REPORT, 7);
    snprintf(endpoint, sizeof endpoint, "%s", fake.endpoint);
    fake_stop(&fake);
    say(HO_MSG_FAIL, 7, 1);
    fake_start(&fake, endpoint);
    ho_message m = fake_receive_type(&fake, HO_MSG_HELLO);
    assert_string_equal(m.hello.study, "study-1"); /* the coordinator sees what it holds */
    assert_int_equal(m.hello.held_count, 1);
    ho_message_clear(&m);
    fake_send_study(&fake, "study-2", NULL, 60.0);
    order(7, 1); /* the new study's trial of that name */
    while (!ho_link_joined(link_)) {
        zclock_sleep(5);
    }
    say(HO_MSG_REPORT, 7, 1); /* the compute thread has not taken the new study: of the old one */
    expect_only_a_pong(1);
    assert_true(ho_link_receive(link_, 20000, &m));
    assert_int_equal(m.type, HO_MSG_STUDY);
    assert_string_equal(m.study.uuid, "study-2");
    ho_message_clear(&m);
    take_order(7, 1);
    say(HO_MSG_FAIL, 7, 1);
    expect(HO_MSG_FAIL, 7);
    expect_only_a_pong(2);
}

static void garbage_changes_nothing(void **state)
{
    (void)state;
    ho_log_set_level(HO_LOG_ERROR);
    greet();
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "{\"v\":2}",
        "{\"v\":99,\"type\":\"ping\",\"sequence\":\"1\"}",
        "{\"v\":2,\"type\":\"hello\"}",
        "{\"v\":2,\"type\":\"trials\",\"order\":7}",
        "\xff\xfe\x00",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fake_send_bytes(&fake, bad[i], strlen(bad[i]));
    }
    static char large[900000];
    memset(large, '[', sizeof large);
    fake_send_bytes(&fake, large, sizeof large);
    order(7, 1);
    take_order(7, 1);
}

static void a_frame_above_the_limit_costs_the_connection_only(void **state)
{
    (void)state;
    greet();
    order(7, 1);
    take_order(7, 1);
    static char large[HO_WIRE_FRAME_MAX + 10];
    fake_send_bytes(&fake, large, sizeof large);
    assert_int_equal(greet(), 1); /* it comes back and still holds its trial */
}

static void orders_before_the_study_are_not_taken(void **state)
{
    (void)state;
    ho_log_set_level(HO_LOG_ERROR);
    ho_message m = fake_receive_type(&fake, HO_MSG_HELLO);
    ho_message_clear(&m);
    order(7, 1);
    assert_false(ho_link_receive(link_, 300, &m));
    fake_send_study(&fake, "study-1", NULL, 30.0);
    assert_true(ho_link_receive(link_, 20000, &m));
    assert_int_equal(m.type, HO_MSG_STUDY);
    ho_message_clear(&m);
    order(7, 1);
    take_order(7, 1);
}

static void a_refused_worker_does_not_come_again(void **state)
{
    (void)state;
    ho_message m = fake_receive_type(&fake, HO_MSG_HELLO);
    ho_message_clear(&m);
    m = ho_message_make(HO_MSG_REFUSE);
    snprintf(m.refuse.reason, sizeof m.refuse.reason, "protocol version 1, not 2");
    fake_send(&fake, &m);
    assert_true(ho_link_receive(link_, 20000, &m));
    assert_int_equal(m.type, HO_MSG_REFUSE);
    CHECK_CONTAINS(m.refuse.reason, "version 1");
    ho_message_clear(&m);
    assert_false(fake_hears(&fake, HO_MSG_HELLO, 1500));
}

static void a_bad_endpoint_is_named(void **state)
{
    (void)state;
    ho_link_destroy(&link_);
    CHECK_STATUS(open_link("head:5555"), HO_EUSAGE);
    CHECK_CONTAINS(err.text, "head:5555");
    assert_null(link_);
    CHECK_STATUS(open_link("tcp://"), HO_EUSAGE);
}

static void a_missing_key_file_is_named(void **state)
{
    (void)state;
    ho_link_destroy(&link_);
    ho_link_options options = {.endpoint = fake.endpoint,
                               .hello = &hello,
                               .key = "no-such.key",
                               .server_key = "no-such.pub",
                               .abandon = abandon};
    CHECK_STATUS(ho_link_create(&link_, &options, &err), HO_EUSAGE);
    CHECK_CONTAINS(err.text, "no-such.key");
}

int main(void)
{
    zsys_init();
    zsys_handler_set(NULL);
    zsys_set_pipehwm(0);
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(pings_are_answered_without_the_compute_thread),
        T(what_was_not_acked_comes_again_after_a_restart),
        T(a_silent_coordinator_is_greeted_again),
        T(a_repeated_order_is_taken_once),
        T(a_pruned_trial_is_forgotten),
        T(no_more_chunks_are_under_way_than_the_window_holds),
        T(a_new_connection_has_a_window_of_its_own),
        T(a_checkpoint_that_waits_for_the_line_is_told),
        T(chunks_of_a_checkpoint_are_answered_by_the_link),
        T(another_study_gets_nothing_of_the_one_before),
        T(garbage_changes_nothing),
        T(a_frame_above_the_limit_costs_the_connection_only),
        T(orders_before_the_study_are_not_taken),
        T(a_refused_worker_does_not_come_again),
        T(a_bad_endpoint_is_named),
        T(a_missing_key_file_is_named),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    zsys_shutdown();
    return failed;
}
