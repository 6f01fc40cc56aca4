/* SPDX-License-Identifier: Apache-2.0
 * What every kind of sampler must hold: legal values, no repeats, replay, order, learning. The
 * edges of spaces and histories are in test_sampler_edges.c. */
#include "search/asking.h"

static const char *const LEARNING[] = {"tpe", "cmaes", "gp", "nsga2"};
enum { LEARNING_COUNT = sizeof LEARNING / sizeof LEARNING[0] };

static void every_kind_proposes_legal_new_values_that_learn(void **state)
{
    ho_space space = rich_space();

    (void)state;
    for (int k = 0; k < ho_sampler_kind_count(); k++) {
        ho_sampler_options options = kind(ho_sampler_kind_name(k), 3);
        double config[64][PARAMS];
        ho_sampler *sampler;
        ho_err err;

        if (strcmp(options.kind, "grid") == 0) {
            continue;
        }
        sampler = make(&space, &options);
        for (int64_t n = 0; n < 64; n++) {
            char why[HO_WHY_MAX] = "";

            CHECK_OK(ho_sampler_ask(sampler, n, config[n], why, &err), &err);
            CHECK_OK(ho_space_check(&space, config[n], &err), &err);
            CHECK_CONTAINS(why, options.kind);
            for (int64_t m = 0; m < n; m++) {
                assert_true(ho_space_hash(&space, config[m]) != ho_space_hash(&space, config[n]));
            }
            tell(sampler, n, rich_loss(config[n]));
        }
        assert_int_equal(ho_sampler_pending(sampler), 0);
        ho_sampler_destroy(&sampler);
        assert_null(sampler);
    }
}

static void unknown_kind_lists_the_kinds(void **state)
{
    ho_space space = rich_space();
    ho_sampler_options options = kind("tbe", 0);
    ho_sampler *sampler;
    ho_err err;

    (void)state;
    CHECK_STATUS(ho_sampler_create(&sampler, &space, &options, &err), HO_ECONFIG);
    CHECK_CONTAINS(err.text, "tbe");
    CHECK_CONTAINS(err.text, "tpe");
    options = kind("grid", 0);
    CHECK_STATUS(ho_sampler_create(&sampler, &space, &options, &err), HO_ECONFIG);
    CHECK_CONTAINS(err.text, "lr");
    options = kind("tpe", 0);
    options.objectives = HO_OBJECTIVES_MAX + 1;
    CHECK_STATUS(ho_sampler_create(&sampler, &space, &options, &err), HO_ECONFIG);
    options = kind("gp", 0);
    options.cost = true;
    CHECK_STATUS(ho_sampler_create(&sampler, &space, &options, &err), HO_ECONFIG);
    options = kind("cmaes", 0);
    options.objectives = 2;
    CHECK_STATUS(ho_sampler_create(&sampler, &space, &options, &err), HO_ECONFIG);
    assert_null(sampler);
}

/* optuna 1547, hyperopt 608: parallel workers get the same configuration. */
static void eight_workers_never_get_the_same_configuration(void **state)
{
    static ho_choice c[3];
    static ho_param p[3];
    ho_space space = {.count = 3, .param = p};

    (void)state;
    p[0] = spaces_int("a", 1, 6);
    p[1] = spaces_choice("b", c, 3);
    p[2] = spaces_int("c", 0, 4);
    for (int k = 0; k < ho_sampler_kind_count(); k++) {
        ho_sampler_options options = kind(ho_sampler_kind_name(k), 4);
        ho_sampler *sampler = make(&space, &options);
        bool seen[90] = {false};
        double x[90][3];
        ho_err err;

        for (int64_t n = 0; n < 90; n++) { /* the whole space */
            int index;

            ask(sampler, n, x[n]);
            index = (int)(x[n][0] - 1.0) * 15 + (int)x[n][1] * 5 + (int)x[n][2];
            assert_false(seen[index]);
            seen[index] = true;
            if (n >= 8) {
                tell(sampler, n - 8, x[n - 8][0] + x[n - 8][1]);
            }
        }
        CHECK_STATUS(ho_sampler_ask(sampler, 90, x[0], NULL, &err), HO_EDONE);
        CHECK_CONTAINS(err.text, "tried");
        ho_sampler_destroy(&sampler);
    }
}

static void a_cancelled_configuration_may_come_again(void **state)
{
    static ho_param p[1];
    ho_space space = {.count = 1, .param = p};
    ho_sampler_options options = kind("grid", 4);
    ho_sampler *sampler;
    double x;
    ho_err err;

    (void)state;
    p[0] = spaces_int("a", 1, 2);
    sampler = make(&space, &options);
    ask(sampler, 0, &x);
    ask(sampler, 1, &x);
    tell_state(sampler, 0, HO_TOLD_CANCELLED, NAN);
    ask(sampler, 2, &x);
    CHECK_NEAR(x, 1.0, 0.0);
    CHECK_STATUS(ho_sampler_ask(sampler, 3, &x, NULL, &err), HO_EDONE);
    ho_sampler_destroy(&sampler);
}

static void replicates_share_a_configuration_on_purpose(void **state)
{
    ho_space space = rich_space();
    ho_sampler_options options = kind("tpe", 2);
    ho_sampler *sampler;
    double first[PARAMS], again[PARAMS];

    (void)state;
    options.replicates = 3;
    sampler = make(&space, &options);
    for (int64_t n = 0; n < 60; n++) {
        ask(sampler, n, n % 3 == 0 ? first : again);
        if (n % 3 != 0) {
            assert_int_equal(ho_space_hash(&space, first), ho_space_hash(&space, again));
        }
        tell(sampler, n, rich_loss(first) + (double)(n % 3));
    }
    ho_sampler_destroy(&sampler);
}

static void replay_and_resume_give_identical_proposals(void **state)
{
    ho_space space = rich_space();
    double a[60 * PARAMS], b[60 * PARAMS], c[60 * PARAMS], other[60 * PARAMS];

    (void)state;
    for (int k = 0; k < ho_sampler_kind_count(); k++) {
        ho_sampler_options options = kind(ho_sampler_kind_name(k), 12);

        if (strcmp(options.kind, "grid") == 0) {
            continue;
        }
        run_study(&space, &options, -1, a);
        run_study(&space, &options, -1, b);
        run_study(&space, &options, 37, c);
        options.seed++;
        run_study(&space, &options, -1, other);
        assert_memory_equal(a, b, sizeof a);
        assert_memory_equal(a, c, sizeof a);
        assert_memory_not_equal(a, other, sizeof a);
    }
}

/* deterministic: the order in which workers answer changes nothing. */
static void deterministic_order_ignores_who_answers_first(void **state)
{
    ho_space space = rich_space();
    ho_sampler_options options = kind("tpe", 21);
    double a[40][PARAMS], b[40][PARAMS];
    ho_err err;

    (void)state;
    options.deterministic = true;
    options.parallel = 4;
    for (int pass = 0; pass < 2; pass++) {
        double(*config)[PARAMS] = pass ? b : a;
        ho_sampler *sampler = make(&space, &options);

        for (int64_t n = 0; n < 40; n += 4) { /* four at a time, answered forwards or backwards */
            for (int64_t i = 0; i < 4; i++) {
                ask(sampler, n + i, config[n + i]);
            }
            if (n == 0) {
                CHECK_STATUS(ho_sampler_ask(sampler, 5, config[5], NULL, &err), HO_EAGAIN);
            }
            for (int64_t i = 0; i < 4; i++) {
                int64_t m = n + (pass ? 3 - i : i);

                tell(sampler, m, rich_loss(config[m]));
            }
        }
        ho_sampler_destroy(&sampler);
    }
    assert_memory_equal(a, b, sizeof a);
}

static void misuse_is_refused_and_changes_nothing(void **state)
{
    ho_space space = rich_space();
    ho_sampler_options options = kind("tpe", 2);
    ho_sampler *sampler = make(&space, &options);
    ho_told told = {.state = HO_TOLD_COMPLETE};
    double config[PARAMS];
    ho_err err;

    (void)state;
    CHECK_STATUS(ho_sampler_tell(sampler, 0, &told, &err), HO_EINVAL);
    ask(sampler, 0, config);
    CHECK_STATUS(ho_sampler_ask(sampler, 0, config, NULL, &err), HO_EINVAL);
    CHECK_STATUS(ho_sampler_ask(sampler, -5, config, NULL, &err), HO_EINVAL);
    tell(sampler, 0, 1.0);
    CHECK_STATUS(ho_sampler_tell(sampler, 0, &told, &err), HO_EINVAL);
    config[0] = 7.0;
    CHECK_STATUS(ho_sampler_resume(sampler, 1, config, &err), HO_EINVAL);
    CHECK_STATUS(ho_sampler_enqueue(sampler, config, &err), HO_EINVAL);
    CHECK_CONTAINS(err.text, "lr");
    assert_int_equal(ho_sampler_pending(sampler), 0);
    ho_sampler_destroy(&sampler);
}

static void enqueued_configurations_come_first_and_in_order(void **state)
{
    ho_space space = rich_space();
    ho_sampler_options options = kind("tpe", 2);
    ho_sampler *sampler = make(&space, &options);
    double want[PARAMS], got[PARAMS];
    char why[HO_WHY_MAX];
    ho_err err;

    (void)state;
    for (int p = 0; p < PARAMS; p++) {
        want[p] = NAN;
    }
    for (int i = 0; i < 3; i++) {
        want[3] = 10.0 + 12.0 * i;
        want[4] = 1.0;
        CHECK_OK(ho_sampler_enqueue(sampler, want, &err), &err);
    }
    for (int64_t n = 0; n < 3; n++) {
        CHECK_OK(ho_sampler_ask(sampler, n, got, why, &err), &err);
        CHECK_NEAR(got[3], 10.0 + 12.0 * (double)n, 0.0);
        CHECK_NEAR(got[4], 1.0, 0.0);
        assert_false(isnan(got[6])); /* active through kind = 1 */
        CHECK_CONTAINS(why, "enqueued");
    }
    ask(sampler, 3, got);
    ho_sampler_destroy(&sampler);
}

static void warm_start_moves_the_first_proposals(void **state)
{
    static ho_param p[1];
    ho_space space = {.count = 1, .param = p};
    ho_sampler_options options = kind("tpe", 6);
    ho_sampler *sampler;
    double near = 0.0;
    ho_err err;

    (void)state;
    p[0] = spaces_float("x", 0.0, 1.0);
    sampler = make(&space, &options);
    for (int i = 0; i < 40; i++) {
        double x = (double)i / 40.0;
        ho_told told = {.state = HO_TOLD_COMPLETE, .value = {fabs(x - 0.75)}};

        CHECK_OK(ho_sampler_warm(sampler, &x, &told, &err), &err);
    }
    for (int64_t n = 0; n < 10; n++) {
        double x;

        ask(sampler, n, &x);
        near += fabs(x - 0.75) < 0.15;
        tell(sampler, n, fabs(x - 0.75));
    }
    assert_true(near >= 7.0);
    ho_sampler_destroy(&sampler);
}

static void infeasible_trials_come_after_feasible_ones(void **state)
{
    static ho_param p[1];
    ho_space space = {.count = 1, .param = p};

    (void)state;
    p[0] = spaces_float("x", 0.0, 1.0);
    for (int k = 0; k < LEARNING_COUNT; k++) { /* minimise x subject to x >= 0.6 */
        ho_sampler_options options = kind(LEARNING[k], 3);
        ho_sampler *sampler = make(&space, &options);
        int feasible = 0;
        ho_err err;

        for (int64_t n = 0; n < 120; n++) {
            double x;
            ho_told told = {.state = HO_TOLD_COMPLETE, .seconds = NAN};

            ask(sampler, n, &x);
            told.value[0] = x;
            told.violation = fmax(0.6 - x, 0.0);
            feasible += n >= 60 && x >= 0.6 && x < 0.75;
            CHECK_OK(ho_sampler_tell(sampler, n, &told, &err), &err);
        }
        assert_true(feasible >= 20); /* random: 9 of 60 */
        ho_sampler_destroy(&sampler);
    }
}

static void cost_prefers_the_cheap_half(void **state)
{
    static ho_param p[2];
    ho_space space = {.count = 2, .param = p};
    double spent[2] = {0.0};
    ho_err err;

    (void)state;
    p[0] = spaces_float("x", 0.0, 1.0);
    p[1] = spaces_float("size", 0.0, 1.0); /* costs much, brings nothing */
    for (int cost = 0; cost < 2; cost++) {
        for (uint64_t seed = 0; seed < 8; seed++) {
            ho_sampler_options options = kind("tpe", seed);
            ho_sampler *sampler;

            options.cost = cost == 1;
            sampler = make(&space, &options);
            for (int64_t n = 0; n < 100; n++) {
                double c[2];
                ho_told told = {.state = HO_TOLD_COMPLETE};

                ask(sampler, n, c);
                told.value[0] = fabs(c[0] - 0.3);
                told.seconds = exp(4.0 * c[1]);
                spent[cost] += told.seconds;
                CHECK_OK(ho_sampler_tell(sampler, n, &told, &err), &err);
            }
            ho_sampler_destroy(&sampler);
        }
    }
    assert_true(spent[1] < 0.5 * spent[0]);
}

static void several_objectives_spread_along_the_front(void **state)
{
    static const char *const KIND[] = {"tpe", "nsga2"};
    static ho_param p[2];
    ho_space space = {.count = 2, .param = p};
    ho_err err;

    (void)state;
    p[0] = spaces_float("x", 0.0, 1.0);
    p[1] = spaces_float("y", 0.0, 1.0);
    for (int k = 0; k < 2; k++) { /* the front is y = 0 */
        ho_sampler_options options = kind(KIND[k], 3);
        ho_sampler *sampler;
        int near = 0, left = 0, right = 0;

        options.objectives = 2;
        options.direction[0] = options.direction[1] = -1;
        options.population = 20;
        sampler = make(&space, &options);
        for (int64_t n = 0; n < 150; n++) {
            double c[2];
            ho_told told = {.state = HO_TOLD_COMPLETE};

            ask(sampler, n, c);
            told.value[0] = c[0] + c[1];
            told.value[1] = 1.0 - c[0] + c[1];
            CHECK_OK(ho_sampler_tell(sampler, n, &told, &err), &err);
            if (n >= 75 && c[1] < 0.1) {
                near++;
                left += c[0] < 0.5;
                right += c[0] >= 0.5;
            }
        }
        assert_true(near >= 25 && left >= 5 && right >= 5); /* random: 7 near */
        ho_sampler_destroy(&sampler);
    }
}

/* Two branches: one has a good value that is found at once, the other a better one, and much worse
 * ones around it. A model of all trials believes after a while that it knows the second branch. */
static double branches_loss(const double *c)
{
    double a, b, k;

    if (c[0] == 0.0) {
        return 1.0 + (log10(c[1]) + 1.5) * (log10(c[1]) + 1.5);
    }
    a = (c[2] - 0.2) / 0.1;
    b = (c[3] - 0.95) / 0.05;
    k = (c[4] - 8.0) / 5.0;
    return a * a + b * b + k * k;
}

static void gp_leaves_a_branch_that_only_looked_better(void **state)
{
    enum { SEEDS = 10, TRIALS = 60 };
    static ho_choice c[2];
    static ho_param p[5];
    ho_space space = {.count = 5, .param = p};
    int found = 0;

    (void)state;
    p[0] = spaces_choice("algorithm", c, 2);
    p[1] = spaces_float("epsilon", 1e-3, 1.0);
    p[1].log = true;
    spaces_when(&p[1], 0, 1);
    p[2] = spaces_float("clip", 0.05, 0.4);
    spaces_when(&p[2], 0, 2);
    p[3] = spaces_float("lambda", 0.8, 1.0);
    spaces_when(&p[3], 0, 2);
    p[4] = spaces_int("epochs", 1, 20);
    spaces_when(&p[4], 0, 2);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        ho_sampler_options options = kind("gp", seed);
        ho_sampler *sampler = make(&space, &options);
        double best = INFINITY;

        for (int64_t n = 0; n < TRIALS; n++) {
            double config[5], loss;

            ask(sampler, n, config);
            loss = branches_loss(config);
            best = fmin(best, loss);
            tell(sampler, n, loss);
        }
        found += best < 0.5;
        ho_sampler_destroy(&sampler);
    }
    print_message("gp: the better branch in %d of %d studies\n", found, SEEDS);
    assert_true(found >= SEEDS - 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_proposes_legal_new_values_that_learn),
        cmocka_unit_test(unknown_kind_lists_the_kinds),
        cmocka_unit_test(eight_workers_never_get_the_same_configuration),
        cmocka_unit_test(a_cancelled_configuration_may_come_again),
        cmocka_unit_test(replicates_share_a_configuration_on_purpose),
        cmocka_unit_test(replay_and_resume_give_identical_proposals),
        cmocka_unit_test(deterministic_order_ignores_who_answers_first),
        cmocka_unit_test(misuse_is_refused_and_changes_nothing),
        cmocka_unit_test(enqueued_configurations_come_first_and_in_order),
        cmocka_unit_test(warm_start_moves_the_first_proposals),
        cmocka_unit_test(infeasible_trials_come_after_feasible_ones),
        cmocka_unit_test(cost_prefers_the_cheap_half),
        cmocka_unit_test(several_objectives_spread_along_the_front),
        cmocka_unit_test(gp_leaves_a_branch_that_only_looked_better),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
