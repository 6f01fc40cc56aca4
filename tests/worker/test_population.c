/* SPDX-License-Identifier: Apache-2.0
 * Exploit and explore: who copies whom, and what a copy's numbers may be. */
#include "check.h"

#include <stdlib.h>

#include "worker/population.h"

enum { P = 4 };

static ho_study *study;
static ho_population *population;
static ho_population_options options;
static ho_err err;

/* learning rate, n_step, double, hidden1 (a shape: must not change) */
static const double start[P] = {1e-3, 3, 1, 64};
static const bool may_change[P] = {true, true, true, false};

static int setup(void **state)
{
    (void)state;
    static const char toml[] = "[data]\npath = \"x.csv\"\n[search]\n"
                               "\"dqn.learning_rate\" = { float = [1e-5, 3e-3], log = true }\n"
                               "\"dqn.n_step\" = { int = [1, 8] }\n"
                               "\"dqn.double\" = { choice = [true, false] }\n"
                               "\"agent.hidden1\" = { int = [32, 128], step = 32 }\n";
    ho_err_clear(&err);
    CHECK_OK(ho_study_parse(toml, sizeof toml - 1, "test.toml", ".", &study, &err), &err);
    options = (ho_population_options){.size = 4,
                                      .every = 5,
                                      .direction = 1,
                                      .quantile = 0.25,
                                      .perturb = 1.2,
                                      .resample = 0.25,
                                      .seed = 7};
    CHECK_OK(ho_population_create(&population, &options, &study->space, &err), &err);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ho_population_destroy(&population);
    ho_study_free(&study);
    return 0;
}

static void join(int64_t trial, double learning_rate)
{
    double config[P];
    memcpy(config, start, sizeof config);
    config[0] = learning_rate;
    CHECK_OK(ho_population_join(population, trial, config, may_change, &err), &err);
}

/* "3<1" for every copy, joined by blanks. */
static const char *decide(void)
{
    static char text[256];
    int64_t trial = 0, parent = 0;
    int epoch = 0;
    const double *config = NULL;
    text[0] = '\0';
    while (ho_population_next(population, &trial, &parent, &epoch, &config)) {
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%lld<%lld", text[0] ? " " : "",
                 (long long)trial, (long long)parent);
        CHECK_OK(ho_space_check(&study->space, config, &err), &err);
        CHECK_NEAR(config[3], 64, 0);
    }
    return text;
}

static void the_worst_share_copies_the_best(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        join(i, 1e-3);
        ho_population_note(population, i, 5, i == 2 ? 9.0 : i);
    }
    assert_string_equal(decide(), "0<2");
    assert_string_equal(decide(), ""); /* once a boundary */
}

static void less_may_be_better(void **state)
{
    (void)state;
    options.direction = -1;
    ho_population_destroy(&population);
    CHECK_OK(ho_population_create(&population, &options, &study->space, &err), &err);
    for (int i = 0; i < 4; i++) {
        join(i, 1e-3);
        ho_population_note(population, i, 5, i);
    }
    assert_string_equal(decide(), "3<0");
}

static void an_undefined_value_is_the_worst(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        join(i, 1e-3);
        ho_population_note(population, i, 5, i == 3 ? NAN : -i);
    }
    assert_string_equal(decide(), "3<0");
}

static void epochs_between_boundaries_decide_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        join(i, 1e-3);
        ho_population_note(population, i, 4, i);
    }
    assert_string_equal(decide(), "");
}

static void a_member_that_left_is_nobodys_parent(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        join(i, 1e-3);
        ho_population_note(population, i, 5, i);
    }
    ho_population_leave(population, 3);
    assert_string_equal(decide(), "");
}

static void a_late_member_is_ranked_among_what_others_had(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        join(i, 1e-3);
    }
    for (int i = 0; i < 3; i++) {
        ho_population_note(population, i, 5, 10 + i);
    }
    assert_string_equal(decide(), "0<2");
    for (int i = 0; i < 3; i++) {
        ho_population_note(population, i, 10, 100 + i);
    }
    ho_population_note(population, 3, 5, 1.0); /* the worst of epoch 5 */
    const char *text = decide();
    CHECK_CONTAINS(text, "0<2");
    CHECK_CONTAINS(text, "3<2");
}

static void a_copy_starts_from_its_parents_numbers(void **state)
{
    (void)state;
    int64_t trial = 0, parent = 0;
    int epoch = 0;
    const double *config = NULL;
    options.resample = 0.0;
    ho_population_destroy(&population);
    CHECK_OK(ho_population_create(&population, &options, &study->space, &err), &err);
    for (int i = 0; i < 4; i++) {
        join(i, i == 3 ? 1e-4 : 2e-3);
        ho_population_note(population, i, 5, i);
    }
    assert_true(ho_population_next(population, &trial, &parent, &epoch, &config));
    assert_true(fabs(config[0] - 1.2e-4) < 1e-12 || fabs(config[0] - 1e-4 / 1.2) < 1e-12);
    assert_true(config[1] == 4 || config[1] == 2); /* ints move by one at least */
    CHECK_NEAR(config[2], 1, 0);                   /* choices stay */
}

static void exploring_stays_legal_and_repeats(void **state)
{
    (void)state;
    double highest = 0.0, lowest = 1.0;
    for (int epoch = 5; epoch <= 2000; epoch += 5) {
        double config[P], again[P];
        memcpy(config, start, sizeof config);
        memcpy(again, start, sizeof again);
        ho_population_explore(&study->space, &options, may_change, 1, epoch, config);
        ho_population_explore(&study->space, &options, may_change, 1, epoch, again);
        assert_memory_equal(config, again, sizeof config);
        CHECK_OK(ho_space_check(&study->space, config, &err), &err);
        highest = fmax(highest, config[0]);
        lowest = fmin(lowest, config[0]);
    }
    assert_true(highest > 2e-3 && lowest < 5e-5); /* some are drawn anew over the whole range */
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(the_worst_share_copies_the_best),        T(less_may_be_better),
        T(an_undefined_value_is_the_worst),        T(epochs_between_boundaries_decide_nothing),
        T(a_member_that_left_is_nobodys_parent),   T(a_late_member_is_ranked_among_what_others_had),
        T(a_copy_starts_from_its_parents_numbers), T(exploring_stays_legal_and_repeats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
