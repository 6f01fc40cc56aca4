/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdlib.h>

#include "check.h"
#include "study/messages.h"

static bool frames_equal(const ho_frames *a, const ho_frames *b)
{
    for (int i = 0; i < a->count && a->count == b->count; i++) {
        if (a->frame[i].size != b->frame[i].size ||
            memcmp(a->frame[i].data, b->frame[i].data, a->frame[i].size) != 0) {
            return false;
        }
    }
    return a->count == b->count;
}

static void every_message_survives_the_wire(void **state)
{
    (void)state;
    ho_frames *first = malloc(sizeof *first), *second = malloc(sizeof *second);
    for (int type = 0; type < HO_MSG_COUNT; type++) {
        for (int variant = 0; variant < 2; variant++) {
            ho_err err;
            ho_message m = ho_test_message((ho_message_type)type, variant), back;
            CHECK_OK(ho_wire_encode(&m, first, &err), &err);
            CHECK_OK(ho_wire_decode(first->frame, first->count, &back, &err), &err);
            assert_int_equal(back.type, type);
            CHECK_OK(ho_wire_encode(&back, second, &err), &err);
            if (!frames_equal(first, second)) {
                fail_msg("%s changed: %.*s / %.*s", ho_message_name(m.type),
                         (int)first->frame[0].size, (const char *)first->frame[0].data,
                         (int)second->frame[0].size, (const char *)second->frame[0].data);
            }
            ho_frames_clear(first);
            ho_frames_clear(second);
            ho_message_clear(&m);
            ho_message_clear(&back);
        }
    }
    free(first);
    free(second);
}

static void doubles_and_long_numbers_arrive_to_the_bit(void **state)
{
    (void)state;
    ho_err err;
    ho_frames *f = malloc(sizeof *f);
    ho_message m = ho_test_message(HO_MSG_TRIALS, 0), back;
    CHECK_OK(ho_wire_encode(&m, f, &err), &err);
    CHECK_OK(ho_wire_decode(f->frame, f->count, &back, &err), &err);
    assert_int_equal(back.trials.count, 3);
    for (int i = 0; i < 6; i++) {
        assert_memory_equal(&back.trials.order[2].config[i], &m.trials.order[2].config[i], 8);
    }
    CHECK_NAN(back.trials.order[2].config[6]);
    assert_true(isinf(back.trials.order[2].config[7]));
    assert_int_equal(back.trials.order[0].fold_count, 0);
    assert_int_equal(back.trials.order[2].fold_count, 2);
    assert_int_equal(back.trials.order[2].fold[1], 3);
    ho_message_clear(&m);
    ho_message_clear(&back);
    ho_frames_clear(f);

    m = ho_test_message(HO_MSG_STUDY, 0);
    CHECK_OK(ho_wire_encode(&m, f, &err), &err);
    CHECK_OK(ho_wire_decode(f->frame, f->count, &back, &err), &err);
    assert_true(back.study.seed == UINT64_MAX);
    assert_int_equal(ho_settings_diff(m.study.settings, back.study.settings, NULL, 0), 0);
    assert_int_equal(back.study.folds->fold[0].test.end, 600);
    assert_string_equal(back.study.text, m.study.text);
    ho_message_clear(&m);
    ho_message_clear(&back);
    ho_frames_clear(f);

    m = ho_test_message(HO_MSG_RESULT, 0);
    CHECK_OK(ho_wire_encode(&m, f, &err), &err);
    CHECK_OK(ho_wire_decode(f->frame, f->count, &back, &err), &err);
    const ho_backtest_result *r = &back.result.window[2].result;
    CHECK_NAN(r->metrics.value[HO_METRIC_SHARPE]);
    assert_int_equal(r->metrics.reason[HO_METRIC_SHARPE], HO_REASON_FLAT);
    assert_int_equal(r->sessions, 5);
    assert_memory_equal(r->session_return, m.result.window[2].result.session_return, 40);
    assert_int_equal(r->actions[8], 44);
    assert_int_equal(r->trades[0].reason, HO_EXIT_STOP);
    ho_message_clear(&m);
    ho_message_clear(&back);
    ho_frames_clear(f);
    free(f);
}

/* A result of 16 folds with 100,000 bars each: many frames, none above the limit. */
static void large_results_are_cut_into_frames(void **state)
{
    (void)state;
    enum { WINDOWS = 16, BARS = 100000 };
    ho_err err;
    ho_frames *f = malloc(sizeof *f);
    ho_message m = ho_test_message(HO_MSG_RESULT, 1), back;
    free(m.result.window);
    m.result.window_count = WINDOWS;
    m.result.window = calloc(WINDOWS, sizeof *m.result.window);
    for (int w = 0; w < WINDOWS; w++) {
        m.result.window[w].result.bars = BARS;
        m.result.window[w].result.bar_return = calloc(BARS, sizeof(double));
        m.result.window[w].result.bar_return[BARS - 1] = w;
    }
    CHECK_OK(ho_wire_encode(&m, f, &err), &err);
    assert_true(f->count > 12);
    for (int i = 0; i < f->count; i++) {
        assert_true(f->frame[i].size <= HO_WIRE_FRAME_MAX);
    }
    CHECK_OK(ho_wire_decode(f->frame, f->count, &back, &err), &err);
    CHECK_NEAR(back.result.window[15].result.bar_return[BARS - 1], 15, 0);
    ho_message_clear(&back);
    CHECK_STATUS(ho_wire_decode(f->frame, f->count - 1, &back, &err), HO_EPROTO);
    CHECK_CONTAINS(err.text, "message result");
    ho_message_clear(&m);
    ho_frames_clear(f);
    free(f);
}

static ho_status decode(const char *json, ho_message *out, ho_err *err)
{
    ho_frame frame = {(uint8_t *)strdup(json), strlen(json)};
    ho_status rc = ho_wire_decode(&frame, 1, out, err);
    free(frame.data);
    return rc;
}

static void hostile_messages_are_refused_with_a_reason(void **state)
{
    (void)state;
#define HEAD "{\"v\":2,\"type\":"
    static const struct {
        const char *json, *part;
    } cases[] = {
        {"", "no JSON object"},
        {"{", "no JSON object"},
        {"[]", "no JSON object"},
        {"{} x", "no JSON object"},
        {"{}{}", "no JSON object"},
        {"{}", "no version or type"},
        {"{\"v\":2}", "no version or type"},
        {"{\"v\":\"1\",\"type\":\"ping\"}", "no version or type"},
        {"{\"v\":1,\"type\":\"ping\",\"sequence\":\"1\"}",
         "the peer speaks protocol version 1, this program 2"},
        {"{\"v\":3,\"type\":\"pink\"}", "the peer speaks protocol version 3, this program 2"},
        {HEAD "\"got\"}", "message got: ticket is missing"},
        {HEAD "\"got\",\"ticket\":7}", "no 64-bit number as a text"},
        {HEAD "\"got\",\"ticket\":\"18446744073709551616\"}", "no 64-bit number"},
        {HEAD "\"chunk\",\"trial\":\"-1\",\"attempt\":0,\"kind\":0,\"name\":\"a\",\"sha256\":\"\","
              "\"offset\":\"0\",\"total\":\"0\"}",
         "ticket is missing"},
        {HEAD "\"pink\"}", "unknown type \"pink\""},
        {HEAD "\"ping\"}", "message ping: sequence is missing"},
        {HEAD "\"ping\",\"sequence\":1}", "no 64-bit number as a text"},
        {HEAD "\"ping\",\"sequence\":\"-1\"}", "out of range"},
        {HEAD "\"ping\",\"sequence\":\"9223372036854775808\"}", "no 64-bit number"},
        {HEAD "\"ping\",\"sequence\":\"1 \"}", "no 64-bit number"},
        {HEAD "\"stop\",\"mode\":2}", "out of range"},
        {HEAD "\"stop\",\"mode\":0.5}", "no whole number"},
        {HEAD "\"stop\",\"mode\":1e999}", "no whole number"},
        {HEAD "\"ack\"}", "trial is missing"},
        {HEAD "\"ack\",\"trial\":\"-1\",\"attempt\":1}", "no trial or attempt"},
        {HEAD "\"ack\",\"trial\":\"1\",\"attempt\":0}", "no trial or attempt"},
        {HEAD "\"bye\",\"reason\":3}", "no text, or too long"},
        {HEAD "\"bye\",\"reason\":\"\xff\"}", "reason is not UTF-8"},
        {HEAD "\"bye\",\"reason\":\"\xed\xa0\x80\"}", "reason is not UTF-8"},
        {HEAD "\"want\",\"sha256\":\"abc\",\"offset\":\"0\"}", "no SHA-256"},
        {HEAD "\"want\",\"sha256\":\"\",\"offset\":\"-1\"}", "no 64-bit number"},
        {HEAD "\"result\",\"trial\":\"1\",\"attempt\":1,\"epochs\":1,\"experiences\":\"1\","
              "\"updates\":\"1\","
              "\"train_s\":1,\"value\":[],\"window_count\":16000}",
         "the binary part is too short"},
        {HEAD "\"chunk\",\"trial\":\"-1\",\"attempt\":0,\"kind\":0,\"name\":\"a\",\"sha256\":\"\","
              "\"offset\":\"0\","
              "\"total\":\"0\",\"ticket\":\"1\"}",
         "does not lie in the file"},
        {HEAD "\"study\",\"uuid\":\"\",\"name\":\"\",\"source\":\"\",\"seed\":\"0\",\"auto_batch\":"
              "0,\"file\":[]}",
         "a study has three frames"},
        {HEAD "\"trials\",\"order\":{}}", "order is no list"},
        {HEAD "\"trials\",\"order\":[1]}", "an object is expected"},
        {HEAD "\"trials\",\"order\":[{\"trial\":\"1\",\"attempt\":1,\"seed\":\"1\",\"lease_s\":0,"
              "\"config\":[],\"resume\":\"\",\"fold\":3}]}",
         "fold is no list, or too long"},
        {HEAD "\"trials\",\"order\":[{\"trial\":\"1\",\"attempt\":1,\"seed\":\"1\",\"lease_s\":0,"
              "\"config\":[],\"resume\":\"\",\"fold\":[0.5]}]}",
         "fold is no list of whole numbers"},
        {HEAD "\"trials\",\"order\":[{\"trial\":\"1\",\"attempt\":1,\"seed\":\"1\",\"lease_s\":0,"
              "\"config\":[],\"resume\":\"\",\"fold\":[256]}]}",
         "out of range"},
        {"[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]", "nested too deeply"},
    };
#undef HEAD
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ho_err err;
        ho_message m;
        ho_status rc = decode(cases[i].json, &m, &err);
        if (rc != HO_EPROTO || !strstr(err.text, cases[i].part)) {
            fail_msg("%s gave %s \"%s\", want \"%s\"", cases[i].json, ho_status_name(rc),
                     rc ? err.text : "", cases[i].part);
        }
    }
    ho_message m;
    ho_err err;
    ho_frame none = {NULL, 0};
    CHECK_STATUS(ho_wire_decode(&none, 0, &m, &err), HO_EPROTO);
    CHECK_STATUS(ho_wire_decode(&none, 1, &m, &err), HO_EPROTO);
    ho_frame nul = {(uint8_t *)strdup("{}"), 3};
    CHECK_STATUS(ho_wire_decode(&nul, 1, &m, &err), HO_EPROTO);
    CHECK_CONTAINS(err.text, "NUL");
    free(nul.data);
}

static void a_refusal_is_understood_whatever_its_version(void **state)
{
    (void)state;
    ho_err err;
    ho_message m;
    CHECK_OK(decode("{\"v\":9,\"type\":\"refuse\",\"reason\":\"old \\u001b[31m\"}", &m, &err),
             &err);
    assert_string_equal(m.refuse.reason, "old ?[31m"); /* nothing a terminal would obey */
}

static void unknown_members_are_ignored(void **state)
{
    (void)state;
    ho_err err;
    ho_message m;
    CHECK_OK(decode("{\"v\":2,\"type\":\"ping\",\"new\":[1],\"sequence\":\"7\"}", &m, &err), &err);
    assert_int_equal(m.ping.sequence, 7);
}

static void names_of_files_cannot_leave_their_folder(void **state)
{
    (void)state;
    static const char *const bad[] = {"../x", "a/b", "/etc/passwd", ".hidden", "a b", "a\\b"};
    ho_frames *f = malloc(sizeof *f);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ho_err err;
        ho_message m = ho_test_message(HO_MSG_CHUNK, 0), back;
        (void)snprintf(m.chunk.name, sizeof m.chunk.name, "%s", bad[i]);
        CHECK_OK(ho_wire_encode(&m, f, &err), &err);
        CHECK_STATUS(ho_wire_decode(f->frame, f->count, &back, &err), HO_EPROTO);
        CHECK_CONTAINS(err.text, "no plain file name");
        ho_message_clear(&m);
        ho_frames_clear(f);
    }
    free(f);
}

static void limits_bind_the_sender_too(void **state)
{
    (void)state;
    ho_err err;
    ho_frames *f = malloc(sizeof *f);
    ho_message m = ho_test_message(HO_MSG_CHUNK, 0);
    m.chunk.count = HO_WIRE_CHUNK + 1;
    CHECK_STATUS(ho_wire_encode(&m, f, &err), HO_EINVAL);
    assert_int_equal(f->count, 0);
    m.chunk.count = 50;
    ho_message_clear(&m);
    m = ho_test_message(HO_MSG_REPORT, 0);
    m.report.value_count = HO_WIRE_VALUES_MAX + 1;
    CHECK_STATUS(ho_wire_encode(&m, f, &err), HO_EINVAL);
    CHECK_CONTAINS(err.text, "message report: value has 9 items");
    ho_message_clear(&m);
    m = ho_test_message(HO_MSG_STOP, 0);
    m.stop.mode = (ho_stop_mode)5;
    CHECK_STATUS(ho_wire_encode(&m, f, &err), HO_EINVAL);
    m = ho_test_message(HO_MSG_JOB, 0);
    free(m.job.body);
    m.job.body = malloc(HO_WIRE_FRAME_MAX);
    memset(m.job.body, 'x', HO_WIRE_FRAME_MAX - 1);
    m.job.body[HO_WIRE_FRAME_MAX - 1] = '\0';
    CHECK_STATUS(ho_wire_encode(&m, f, &err), HO_EINVAL);
    ho_message_clear(&m);
    free(f);
}

/* Every message cut short and with bytes changed: refused or read, never a crash (run under the
 * sanitizers; tests/fuzz goes further). */
static void damaged_messages_do_no_harm(void **state)
{
    (void)state;
    uint64_t x = 88172645463325252u;
    ho_frames *f = malloc(sizeof *f);
    int refused = 0;
    for (int type = 0; type < HO_MSG_COUNT; type++) {
        ho_err err;
        ho_message m = ho_test_message((ho_message_type)type, 0), back;
        CHECK_OK(ho_wire_encode(&m, f, &err), &err);
        ho_message_clear(&m);
        for (int round = 0; round < 300; round++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17; /* xorshift64 (Marsaglia 2003) */
            ho_frame *frame = &f->frame[x % (uint64_t)f->count];
            size_t size = frame->size, at = size ? (x >> 16) % size : 0;
            uint8_t old = size ? frame->data[at] : 0;
            if (round % 3 == 0) {
                frame->size = at;
            } else if (size) {
                frame->data[at] = (uint8_t)(x >> 40);
            }
            ho_status rc = ho_wire_decode(f->frame, f->count, &back, &err);
            assert_true(rc == HO_OK || rc == HO_EPROTO);
            refused += rc != HO_OK;
            ho_message_clear(&back);
            frame->size = size;
            if (size) {
                frame->data[at] = old;
            }
        }
        ho_frames_clear(f);
    }
    assert_true(refused > 1000);
    free(f);
}

/* A fuzzer that starts from messages of another version, or lacks a type, tries little. */
static void each_type_has_a_seed_of_this_version(void **state)
{
    (void)state;
    for (int type = 0; type < HO_MSG_COUNT; type++) {
        char path[1024];
        uint8_t length[4];
        ho_frame frame[HO_WIRE_FRAMES_MAX];
        int count = 0;
        ho_err err = {0};
        ho_message m;
        (void)snprintf(path, sizeof path, HO_SOURCE_DIR "/tests/fuzz/seeds/fuzz_wire/%s",
                       ho_message_name((ho_message_type)type));
        FILE *file = fopen(path, "rb");
        if (!file) {
            fail_msg("%s is not there: make_wire_seeds writes it", path);
        }
        while (count < HO_WIRE_FRAMES_MAX && fread(length, 1, 4, file) == 4) {
            size_t size = (size_t)length[0] | (size_t)length[1] << 8 | (size_t)length[2] << 16;
            frame[count].data = malloc(size + 1);
            frame[count].size = size;
            assert_int_equal(fread(frame[count++].data, 1, size, file), size);
        }
        (void)fclose(file);
        CHECK_OK(ho_wire_decode(frame, count, &m, &err), &err);
        assert_int_equal(m.type, type);
        ho_message_clear(&m);
        for (int i = 0; i < count; i++) {
            free(frame[i].data);
        }
    }
}

static void each_type_has_a_sender(void **state)
{
    (void)state;
    for (int t = 0; t < HO_MSG_COUNT; t++) {
        ho_message_type type = (ho_message_type)t;
        assert_true(ho_message_from_worker(type) || ho_message_from_coordinator(type));
    }
    assert_false(ho_message_from_coordinator(HO_MSG_RESULT));
    assert_false(ho_message_from_worker(HO_MSG_STUDY));
    assert_true(ho_message_from_worker(HO_MSG_CHUNK) && ho_message_from_coordinator(HO_MSG_CHUNK));
    assert_false(ho_fail_class_retryable(HO_FAIL_DIVERGED));
    assert_true(ho_fail_class_retryable(HO_FAIL_DEVICE));
    assert_string_equal(ho_fail_class_name(HO_FAIL_OOM), "oom");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_message_survives_the_wire),
        cmocka_unit_test(doubles_and_long_numbers_arrive_to_the_bit),
        cmocka_unit_test(large_results_are_cut_into_frames),
        cmocka_unit_test(hostile_messages_are_refused_with_a_reason),
        cmocka_unit_test(a_refusal_is_understood_whatever_its_version),
        cmocka_unit_test(unknown_members_are_ignored),
        cmocka_unit_test(names_of_files_cannot_leave_their_folder),
        cmocka_unit_test(limits_bind_the_sender_too),
        cmocka_unit_test(damaged_messages_do_no_harm),
        cmocka_unit_test(each_type_has_a_seed_of_this_version),
        cmocka_unit_test(each_type_has_a_sender),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
