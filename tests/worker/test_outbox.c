/* SPDX-License-Identifier: Apache-2.0
 * What a worker keeps until it is believed, and which orders it takes. */
#include "check.h"

#include <stdlib.h>

#include "worker/outbox.h"

static ho_outbox *outbox;

static int setup(void **state)
{
    (void)state;
    outbox = ho_outbox_create();
    return outbox ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    ho_outbox_destroy(&outbox);
    return 0;
}

static void add(ho_message_type type, int64_t trial, int32_t attempt, const char *text)
{
    ho_message m = ho_message_make(type);
    m.trial = trial;
    m.attempt = attempt;
    if (type == HO_MSG_REPORT) {
        m.report.epoch = atoi(text);
    } else if (type == HO_MSG_CHUNK) {
        m.chunk.kind = text[0] == 'a' ? HO_CHUNK_ARTIFACT : HO_CHUNK_CHECKPOINT;
    }
    ho_outbox_label label = ho_outbox_label_of(&m);
    zmsg_t *bytes = zmsg_new();
    zmsg_addstr(bytes, text);
    ho_outbox_add(outbox, &label, &bytes);
    assert_null(bytes);
}

/* Sends everything; the texts, joined by blanks. */
static const char *send_all(void)
{
    static char text[512];
    text[0] = '\0';
    for (zmsg_t *bytes = ho_outbox_next(outbox); bytes; bytes = ho_outbox_next(outbox)) {
        zframe_t *frame = zmsg_first(bytes);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%.*s", text[0] ? " " : "",
                 (int)zframe_size(frame), (const char *)zframe_data(frame));
        ho_outbox_sent(outbox);
    }
    assert_true(ho_outbox_idle(outbox));
    return text;
}

static void messages_leave_in_order(void **state)
{
    (void)state;
    assert_true(ho_outbox_hold(outbox, 7, 1));
    add(HO_MSG_READY, -1, 0, "ready");
    add(HO_MSG_REPORT, 7, 1, "1");
    add(HO_MSG_CHUNK, 7, 1, "artifact");
    add(HO_MSG_RESULT, 7, 1, "result");
    assert_string_equal(send_all(), "ready 1 artifact result");
    assert_string_equal(send_all(), "");
}

static void what_is_not_acked_is_sent_again(void **state)
{
    (void)state;
    assert_true(ho_outbox_hold(outbox, 7, 1));
    assert_true(ho_outbox_hold(outbox, 8, 2));
    add(HO_MSG_REPORT, 7, 1, "1");
    add(HO_MSG_READY, -1, 0, "ready");
    add(HO_MSG_REPORT, 8, 2, "2");
    add(HO_MSG_RESULT, 7, 1, "result");
    (void)send_all();
    add(HO_MSG_READY, -1, 0, "stale");
    add(HO_MSG_CHUNK, 8, 2, "checkpoint");
    add(HO_MSG_DONE, -1, 0, "done");
    ho_outbox_rewind(outbox);
    assert_string_equal(send_all(), "1 2 result done");
    ho_outbox_rewind(outbox);
    assert_string_equal(send_all(), "1 2 result");
    assert_true(ho_outbox_forget(outbox, 7, 1));
    ho_outbox_rewind(outbox);
    assert_string_equal(send_all(), "2");
}

static void an_ack_of_another_attempt_forgets_nothing(void **state)
{
    (void)state;
    assert_true(ho_outbox_hold(outbox, 7, 2));
    add(HO_MSG_RESULT, 7, 2, "result");
    assert_false(ho_outbox_forget(outbox, 7, 1));
    assert_false(ho_outbox_forget(outbox, 8, 2));
    assert_string_equal(send_all(), "result");
    assert_int_equal(ho_outbox_held_count(outbox), 1);
}

static void what_a_dropped_trial_says_is_dropped(void **state)
{
    (void)state;
    assert_true(ho_outbox_hold(outbox, 7, 1));
    add(HO_MSG_REPORT, 7, 1, "1");
    assert_true(ho_outbox_forget(outbox, 7, 1));
    add(HO_MSG_RESULT, 7, 1, "late");
    assert_string_equal(send_all(), "");
}

static void repeated_and_stale_orders_are_not_taken(void **state)
{
    (void)state;
    assert_true(ho_outbox_hold(outbox, 7, 2));
    assert_false(ho_outbox_hold(outbox, 7, 2));
    assert_false(ho_outbox_hold(outbox, 7, 1));
    assert_true(ho_outbox_forget(outbox, 7, 2)); /* acked */
    assert_false(ho_outbox_hold(outbox, 7, 2));  /* a replayed message */
    assert_true(ho_outbox_hold(outbox, 7, 3));
}

static void a_newer_attempt_replaces_the_older(void **state)
{
    (void)state;
    assert_true(ho_outbox_hold(outbox, 7, 1));
    add(HO_MSG_REPORT, 7, 1, "1");
    assert_true(ho_outbox_hold(outbox, 7, 2));
    add(HO_MSG_REPORT, 7, 1, "2");
    add(HO_MSG_REPORT, 7, 2, "3");
    assert_string_equal(send_all(), "3");
}

static void held_trials_say_how_far_they_are(void **state)
{
    (void)state;
    ho_held_trial *held = NULL;
    assert_true(ho_outbox_hold(outbox, 7, 1));
    assert_true(ho_outbox_hold(outbox, 8, 3));
    add(HO_MSG_REPORT, 7, 1, "5");
    add(HO_MSG_FAIL, 8, 3, "fail");
    assert_int_equal(ho_outbox_held(outbox, &held), 2);
    assert_int_equal(held[0].trial, 7);
    assert_int_equal(held[0].epoch, 5);
    assert_false(held[0].finished);
    assert_int_equal(held[1].attempt, 3);
    assert_true(held[1].finished);
    free(held);
}

/* What the disk at the coordinator refused is sent once more, and what came behind it. */
static void artifacts_and_result_are_sent_again_when_asked(void **state)
{
    (void)state;
    assert_true(ho_outbox_hold(outbox, 7, 1));
    assert_true(ho_outbox_hold(outbox, 8, 1));
    add(HO_MSG_REPORT, 7, 1, "1");
    add(HO_MSG_CHUNK, 7, 1, "a7");
    add(HO_MSG_CHUNK, 8, 1, "a8");
    assert_string_equal(send_all(), "1 a7 a8");
    add(HO_MSG_RESULT, 7, 1, "result7");
    add(HO_MSG_RESULT, 8, 1, "result8");
    ho_outbox_again(outbox, 7, 2); /* another attempt */
    ho_outbox_again(outbox, 7, 1);
    assert_string_equal(send_all(), "result8 a7 result7");
    ho_outbox_again(outbox, 8, 1);
    add(HO_MSG_READY, -1, 0, "ready");
    assert_string_equal(send_all(), "a8 result8 ready");
    ho_outbox_rewind(outbox);
    assert_string_equal(send_all(), "1 a7 result7 a8 result8");
    assert_true(ho_outbox_forget(outbox, 7, 1));
    ho_outbox_again(outbox, 7, 1);
    assert_true(ho_outbox_forget(outbox, 8, 1));
    assert_string_equal(send_all(), "");
    add(HO_MSG_READY, -1, 0, "ready");
    assert_string_equal(send_all(), "ready");
}

static void another_study_begins_with_nothing(void **state)
{
    (void)state;
    assert_true(ho_outbox_hold(outbox, 7, 1));
    assert_true(ho_outbox_hold(outbox, 8, 1));
    add(HO_MSG_REPORT, 7, 1, "1");
    (void)send_all();
    add(HO_MSG_RESULT, 7, 1, "result");
    add(HO_MSG_CHUNK, 7, 1, "checkpoint");
    assert_true(ho_outbox_forget(outbox, 8, 1));
    ho_outbox_forget_all(outbox);
    assert_int_equal(ho_outbox_held_count(outbox), 0);
    assert_int_equal(ho_outbox_checkpoint_parts(outbox), 0);
    assert_true(ho_outbox_idle(outbox));
    add(HO_MSG_RESULT, 7, 1, "late");
    assert_string_equal(send_all(), "");
    assert_true(ho_outbox_hold(outbox, 8, 1)); /* the other study's trial 8 is a new one */
    add(HO_MSG_RESULT, 8, 1, "its own");
    assert_string_equal(send_all(), "its own");
}

static void parts_of_checkpoints_are_counted_until_they_are_sent_or_dropped(void **state)
{
    (void)state;
    assert_true(ho_outbox_hold(outbox, 7, 1));
    add(HO_MSG_CHUNK, 7, 1, "checkpoint");
    add(HO_MSG_CHUNK, 7, 1, "artifact");
    add(HO_MSG_CHUNK, 7, 1, "checkpoint");
    assert_int_equal(ho_outbox_checkpoint_parts(outbox), 2);
    ho_outbox_sent(outbox);
    assert_int_equal(ho_outbox_checkpoint_parts(outbox), 1);
    ho_outbox_rewind(outbox);
    assert_int_equal(ho_outbox_checkpoint_parts(outbox), 0);
    add(HO_MSG_CHUNK, 7, 1, "checkpoint");
    assert_true(ho_outbox_forget(outbox, 7, 1));
    assert_int_equal(ho_outbox_checkpoint_parts(outbox), 0);
}

static void a_chunk_is_known_by_its_ticket(void **state)
{
    (void)state;
    assert_int_equal(ho_outbox_next_ticket(outbox), 0);
    assert_true(ho_outbox_hold(outbox, 7, 1));
    ho_message m = ho_message_make(HO_MSG_CHUNK);
    m.chunk.ticket = 99;
    ho_outbox_label label = ho_outbox_label_of(&m);
    zmsg_t *bytes = zmsg_new();
    ho_outbox_add(outbox, &label, &bytes);
    add(HO_MSG_READY, -1, 0, "ready");
    assert_int_equal(ho_outbox_next_ticket(outbox), 99);
    ho_outbox_sent(outbox);
    assert_int_equal(ho_outbox_next_ticket(outbox), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(messages_leave_in_order),
        T(what_is_not_acked_is_sent_again),
        T(an_ack_of_another_attempt_forgets_nothing),
        T(what_a_dropped_trial_says_is_dropped),
        T(repeated_and_stale_orders_are_not_taken),
        T(a_newer_attempt_replaces_the_older),
        T(held_trials_say_how_far_they_are),
        T(artifacts_and_result_are_sent_again_when_asked),
        T(another_study_begins_with_nothing),
        T(parts_of_checkpoints_are_counted_until_they_are_sent_or_dropped),
        T(a_chunk_is_known_by_its_ticket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
