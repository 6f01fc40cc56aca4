/* SPDX-License-Identifier: Apache-2.0
 * Memory that runs out at the n-th allocation, for every n: the call fails with HO_ENOMEM, leaks
 * nothing and crashes nothing. The allocator is replaced for this program, which the sanitizers do
 * not allow: there it is a skip. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "check.h"
#include "study/messages.h"
#include "study/objective.h"
#include "study/study.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)

int main(void)
{
    (void)fputs("skipped: the allocator cannot be replaced under a sanitizer\n", stderr);
    return HO_TEST_SKIPPED;
}

#else

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void __libc_free(void *memory);

static bool armed;
static long left;    /* allocations that still succeed */
static long balance; /* allocated and not freed while armed */

static bool fails(void)
{
    if (!armed) {
        return false;
    }
    if (left == 0) {
        errno = ENOMEM;
        return true;
    }
    left--;
    balance++;
    return false;
}

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    if (fails()) {
        return NULL;
    }
    balance -= armed && old;
    return __libc_realloc(old, size);
}

void free(void *memory)
{
    balance -= armed && memory;
    __libc_free(memory);
}

static void arm(long n)
{
    left = n;
    balance = 0;
    armed = true;
}

/* Runs `step` with n = 0, 1, ... allocations until it succeeds. */
static void starve(ho_status (*step)(void *of), void *of, const char *what)
{
    for (long n = 0; n < 1000000; n++) {
        arm(n);
        ho_status rc = step(of);
        armed = false;
        if (balance != 0) {
            fail_msg("%s with %ld allocations leaves %ld behind", what, n, balance);
        }
        if (rc == HO_OK) {
            return;
        }
        if (rc != HO_ENOMEM) {
            fail_msg("%s with %ld allocations: %s", what, n, ho_status_name(rc));
        }
    }
    fail_msg("%s never succeeds", what);
}

static ho_status settings_step(void *of)
{
    ho_settings *s = ho_settings_create(), *copy = s ? ho_settings_copy(s) : NULL;
    struct cJSON *json = copy ? ho_settings_to_json(copy) : NULL;
    ho_status rc = json ? HO_OK : HO_ENOMEM;
    (void)of;
    ho_settings_destroy(&s);
    ho_settings_destroy(&copy);
    if (json) { /* freed as a part of a message elsewhere; here by hand */
        ho_message m = ho_message_make(HO_MSG_STUDY);
        ho_err err;
        rc = ho_settings_from_json(json, &m.study.settings, &err);
        ho_message_clear(&m);
    }
    cJSON_Delete(json);
    return rc;
}

static void settings_survive_any_failure(void **state)
{
    (void)state;
    starve(settings_step, NULL, "settings");
}

typedef struct wire {
    ho_message message;
    ho_frames frames;
} wire;

static ho_status encode_step(void *of)
{
    static ho_frames out;
    ho_err err;
    ho_status rc = ho_wire_encode(&((wire *)of)->message, &out, &err);
    ho_frames_clear(&out);
    return rc;
}

static ho_status decode_step(void *of)
{
    ho_message back;
    ho_err err;
    const wire *w = (const wire *)of;
    ho_status rc = ho_wire_decode(w->frames.frame, w->frames.count, &back, &err);
    ho_message_clear(&back);
    /* cJSON says only that it failed, so the first frame may be taken for bad JSON */
    return rc == HO_EPROTO && strstr(err.text, "no JSON object") ? HO_ENOMEM : rc;
}

static void messages_survive_any_failure(void **state)
{
    (void)state;
    static wire w;
    for (int type = 0; type < HO_MSG_COUNT; type++) {
        ho_err err;
        w.message = ho_test_message((ho_message_type)type, 0);
        CHECK_OK(ho_wire_encode(&w.message, &w.frames, &err), &err);
        starve(encode_step, &w, ho_message_name(w.message.type));
        starve(decode_step, &w, ho_message_name(w.message.type));
        ho_message_clear(&w.message);
        ho_frames_clear(&w.frames);
    }
}

static const char study_text[] =
    "[data]\npath = [\"a\", \"b\"]\n[study]\nconstraints = [\"trades >= 1\"]\n[search]\n"
    "require = \"dqn.n_step > 1 or dqn.replay == 'per'\"\n"
    "\"dqn.n_step\" = { int = [1, 8], when = { \"dqn.replay\" = \"per\" } }\n"
    "\"dqn.replay\" = { choice = [\"uniform\", \"per\"] }\n"
    "[[enqueue]]\n\"dqn.replay\" = \"per\"\n[[warm_start]]\ndatabase = \"a\"\n"
    "[agent]\neval_every = 5\n[folds]\nvalidation = 0\n[pruner]\nkind = \"asha\"\n";

static ho_status study_step(void *of)
{
    ho_err err;
    ho_study *study = NULL;
    (void)of;
    ho_status rc = ho_study_parse(study_text, sizeof study_text - 1, "s.toml", ".", &study, &err);
    ho_study_free(&study);
    return rc;
}

static void a_study_survives_any_failure(void **state)
{
    (void)state;
    starve(study_step, NULL, "study");
}

static ho_status stitch_step(void *of)
{
    ho_err err;
    ho_backtest_result out;
    ho_status rc = ho_stitch((const ho_stitch_input *)of, &out, &err);
    free(out.session_return);
    free(out.session_id);
    return rc;
}

static void joining_survives_any_failure(void **state)
{
    (void)state;
    double returns[] = {0.01, -0.02, 0.03};
    int32_t ids[] = {0, 1, 2};
    ho_backtest_result window = {.initial_capital = 1, .sessions = 3};
    window.session_return = returns;
    window.session_id = ids;
    const ho_backtest_result *const windows[] = {&window};
    ho_stitch_input in = {windows, 1, 252, 1, 1};
    starve(stitch_step, &in, "stitch");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_survive_any_failure),
        cmocka_unit_test(messages_survive_any_failure),
        cmocka_unit_test(a_study_survives_any_failure),
        cmocka_unit_test(joining_survives_any_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
