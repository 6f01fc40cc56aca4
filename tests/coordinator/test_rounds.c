/* SPDX-License-Identifier: Apache-2.0
 * Results of the rounds of raced trials: joined, kept over a restart, and refused when torn. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "coordinator/rounds.h"
#include "fixture.h"

enum { SESSIONS = 3 };

/* A round's result: one window of a fold. */
static ho_message make_result(int64_t trial, int32_t fold)
{
    ho_message m = ho_message_make(HO_MSG_RESULT);
    m.trial = trial;
    m.attempt = fold + 1;
    m.result.epochs = 4;
    m.result.experiences = 100;
    m.result.updates = 10;
    m.result.train_s = 0.5;
    m.result.window = (ho_scored_window *)calloc(1, sizeof *m.result.window);
    assert_non_null(m.result.window);
    m.result.window_count = 1;
    m.result.window->fold = fold;
    m.result.window->random_percentile = NAN;
    m.result.window->result.initial_capital = 1000.0;
    m.result.window->result.metrics.value[HO_METRIC_SHARPE] = 1.0 + fold;
    m.result.window->result.sessions = SESSIONS;
    m.result.window->result.session_return = (double *)calloc(SESSIONS, sizeof(double));
    assert_non_null(m.result.window->result.session_return);
    m.result.window->result.session_return[1] = 0.01 * (fold + 1);
    return m;
}

static void check_joined(const ho_rounds *rounds, int64_t trial, int32_t earlier)
{
    ho_err err = {0};
    ho_message last = make_result(trial, earlier), joined;
    CHECK_OK(ho_rounds_join(rounds, &last, &joined, &err), &err);
    assert_int_equal(joined.result.window_count, earlier + 1);
    assert_int_equal(joined.result.epochs, 4 * (earlier + 1));
    assert_int_equal(joined.result.experiences, 100 * (earlier + 1));
    assert_int_equal(joined.result.updates, 10 * (earlier + 1));
    CHECK_NEAR(joined.result.train_s, 0.5 * (earlier + 1), 0.0);
    for (int32_t i = 0; i <= earlier; i++) {
        const ho_scored_window *w = &joined.result.window[i];
        assert_int_equal(w->fold, i);
        CHECK_NEAR(w->result.metrics.value[HO_METRIC_SHARPE], 1.0 + i, 0.0);
        CHECK_NEAR(w->result.session_return[1], 0.01 * (i + 1), 0.0);
    }
    free(joined.result.window);
    ho_message_clear(&last);
}

static void keep(ho_rounds *rounds, int64_t trial, int32_t fold)
{
    ho_err err = {0};
    ho_message m = make_result(trial, fold);
    CHECK_OK(ho_rounds_keep(rounds, &m, &err), &err);
    assert_null(m.result.window); /* taken */
}

static ho_store *make_store(char *path, size_t room, ho_study **study)
{
    *study = fixture_study(fixture_toml);
    fixture_path(path, room);
    return fixture_store(path, *study, 20);
}

static void a_result_is_joined_with_those_of_its_trial_alone(void **state)
{
    (void)state;
    char path[64];
    ho_err err = {0};
    ho_study *study = NULL;
    ho_rounds *rounds = NULL;
    ho_store *store = make_store(path, sizeof path, &study);
    CHECK_OK(ho_rounds_create(&rounds, store, &err), &err);
    keep(rounds, 7, 0);
    keep(rounds, 8, 0);
    keep(rounds, 7, 1);
    check_joined(rounds, 7, 2);
    check_joined(rounds, 8, 1);
    check_joined(rounds, 9, 0);
    ho_rounds_forget(rounds, 7);
    check_joined(rounds, 7, 0);
    check_joined(rounds, 8, 1);
    ho_rounds_destroy(&rounds);
    ho_store_close(&store);
    ho_study_free(&study);
}

/* Two rounds of trial 0 into the store; cut: bytes left out at the end of the second. */
static void put_rounds(ho_store *store, const ho_study *study, size_t cut)
{
    const double config[3] = {1.0, 20.0, 0.2};
    ho_err err = {0};
    ho_trial_new trial = {.parent = -1, .now_ns = 5, .seeds = 1, .bracket = -1, .config = config};
    assert_int_equal(ho_store_put_trial(store, &study->space, &trial), HO_OK);
    for (int32_t r = 0; r < 2; r++) {
        ho_message m = make_result(0, r);
        uint8_t *bytes = NULL;
        size_t size = 0;
        CHECK_OK(ho_rounds_pack(&m, &bytes, &size, &err), &err);
        ho_race_row row = {.round = r,
                           .attempt = r + 1,
                           .now_ns = 9,
                           .folds = r + 1,
                           .epochs = 4 * (r + 1),
                           .against = -1,
                           .verdict = "next",
                           .why = "test",
                           .result = bytes,
                           .result_size = size - (r == 1 ? cut : 0)};
        assert_int_equal(ho_store_put_race(store, &row), HO_OK);
        free(bytes);
        ho_message_clear(&m);
    }
    fixture_flush(store);
}

static void rounds_are_read_back_until_their_trial_ends(void **state)
{
    (void)state;
    char path[64];
    ho_err err = {0};
    ho_study *study = NULL;
    ho_rounds *rounds = NULL;
    ho_store *store = make_store(path, sizeof path, &study);
    put_rounds(store, study, 0);
    CHECK_OK(ho_rounds_create(&rounds, store, &err), &err);
    check_joined(rounds, 0, 2);
    ho_rounds_destroy(&rounds);
    assert_int_equal(ho_store_put_race_ended(store, 0), HO_OK);
    fixture_flush(store);
    CHECK_OK(ho_rounds_create(&rounds, store, &err), &err);
    check_joined(rounds, 0, 0);
    assert_int_equal(fixture_count(store, "SELECT count(*) FROM race"), 2);
    ho_rounds_destroy(&rounds);
    ho_store_close(&store);
    ho_study_free(&study);
}

static void a_torn_round_is_named_and_refused(void **state)
{
    (void)state;
    static const size_t cuts[] = {1, 9, 40};
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        char path[64];
        ho_err err = {0};
        ho_study *study = NULL;
        ho_rounds *rounds = NULL;
        ho_store *store = make_store(path, sizeof path, &study);
        put_rounds(store, study, cuts[i]);
        CHECK_STATUS(ho_rounds_create(&rounds, store, &err), HO_ESTORE);
        assert_null(rounds);
        CHECK_CONTAINS(err.text, "race.result of trial 0, round 1");
        ho_store_close(&store);
        ho_study_free(&study);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_result_is_joined_with_those_of_its_trial_alone),
        cmocka_unit_test(rounds_are_read_back_until_their_trial_ends),
        cmocka_unit_test(a_torn_round_is_named_and_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
