/* SPDX-License-Identifier: Apache-2.0
 * Samplers at the edges of spaces and histories: bounds, steps, choices, requirements, failures,
 * spaces of one parameter, of none, or exhausted; draws. */
#include "search/asking.h"

#include "study/require.h"

static const char *const LEARNING[] = {"tpe", "cmaes", "gp", "nsga2"};
enum { LEARNING_COUNT = sizeof LEARNING / sizeof LEARNING[0] };

/* optuna 391: a step range loses its end. 2467: an int step leaves the grid. */
static void step_range_keeps_its_end_and_its_grid(void **state)
{
    static ho_param p[2];
    ho_space space = {.count = 2, .param = p};
    ho_sampler_options options = kind("random", 1);
    ho_sampler *sampler;
    bool drop[3] = {false}, batch[4] = {false};

    (void)state;
    p[0] = spaces_float("drop", 0.8, 1.0);
    p[0].step = 0.1;
    p[0].step_decimals = 1;
    p[1] = spaces_int("batch", 5, 14); /* 5, 8, 11, 14 of a range to 16 */
    p[1].step = 3;
    sampler = make(&space, &options);
    for (int64_t n = 0; n < 12; n++) { /* all of them, since none repeats */
        double c[2];

        ask(sampler, n, c);
        drop[0] |= c[0] == 0.8;
        drop[1] |= c[0] == 0.9;
        drop[2] |= c[0] == 1.0;
        batch[(int)(c[1] - 5.0) / 3] = true;
        assert_true(c[1] == 5.0 || c[1] == 8.0 || c[1] == 11.0 || c[1] == 14.0);
    }
    assert_true(drop[0] && drop[1] && drop[2]);
    assert_true(batch[0] && batch[1] && batch[2] && batch[3]);
    ho_sampler_destroy(&sampler);
}

/* optuna 5457: exp(log(1e-5)) is two ulp below 1e-5. */
static void log_bounds_hold_to_the_last_bit(void **state)
{
    static ho_param p[2];
    ho_space space = {.count = 2, .param = p};

    (void)state;
    p[0] = spaces_float("lr", 1e-5, 1e-4);
    p[1] = spaces_float("size", 999.9999999, 1e3);
    p[0].log = p[1].log = true;
    for (int k = 0; k < ho_sampler_kind_count(); k++) {
        ho_sampler_options options = kind(ho_sampler_kind_name(k), 9);
        ho_sampler *sampler;

        if (strcmp(options.kind, "grid") == 0) {
            continue;
        }
        sampler = make(&space, &options);
        for (int64_t n = 0; n < 60; n++) {
            double c[2];

            ask(sampler, n, c);
            assert_true(c[0] >= 1e-5 && c[0] <= 1e-4 && c[1] >= 999.9999999 && c[1] <= 1e3);
            tell(sampler, n, c[0] - c[1]); /* pushes into the corner */
        }
        ho_sampler_destroy(&sampler);
    }
}

/* optuna 3129: choices 1, "1", 1.0 and true are four choices. Indexes keep them apart. */
static void mixed_type_choices_stay_apart(void **state)
{
    static char one[] = "1", yes[] = "true", empty[] = "";
    static ho_choice c[6] = {
        {.type = HO_CHOICE_INT, .integer = 1},   {.type = HO_CHOICE_STRING, .text = one},
        {.type = HO_CHOICE_FLOAT, .real = 1.0},  {.type = HO_CHOICE_BOOL, .boolean = true},
        {.type = HO_CHOICE_STRING, .text = yes}, {.type = HO_CHOICE_STRING, .text = empty}};
    static ho_param p[1];
    ho_space space = {.count = 1, .param = p};
    int seen = 0;

    (void)state;
    p[0] = spaces_choice("x", c, 6);
    for (int k = 0; k < ho_sampler_kind_count(); k++) {
        ho_sampler_options options = kind(ho_sampler_kind_name(k), 2);
        ho_sampler *sampler = make(&space, &options);
        ho_err err;
        double x;

        seen = 0;
        for (int64_t n = 0; n < 6; n++) {
            ask(sampler, n, &x);
            seen |= 1 << (int)x;
            tell(sampler, n, x);
        }
        assert_int_equal(seen, 63);
        CHECK_STATUS(ho_sampler_ask(sampler, 6, &x, NULL, &err), HO_EDONE);
        ho_sampler_destroy(&sampler);
    }
}

/* optuna 6798: a NaN never equals itself, and looking for it never ends. */
static void nan_in_a_request_is_filled_and_ends(void **state)
{
    ho_space space = rich_space();
    ho_sampler_options options = kind("tpe", 2);
    ho_sampler *sampler = make(&space, &options);
    double config[PARAMS], open[PARAMS];
    ho_err err;

    (void)state;
    for (int p = 0; p < PARAMS; p++) {
        open[p] = NAN;
    }
    CHECK_OK(ho_sampler_enqueue(sampler, open, &err), &err);
    ask(sampler, 0, config);
    CHECK_OK(ho_space_check(&space, config, &err), &err);
    tell(sampler, 0, NAN); /* counts as failed */
    ask(sampler, 1, config);
    ho_sampler_destroy(&sampler);
}

static void requirements_hold_in_every_proposal(void **state)
{
    static ho_param p[2];
    ho_err err;

    (void)state;
    p[0] = spaces_int("fast", 2, 50);
    p[1] = spaces_int("slow", 2, 50);
    for (int k = 0; k < ho_sampler_kind_count(); k++) {
        ho_sampler_options options = kind(ho_sampler_kind_name(k), 8);
        ho_space space = {.count = 2, .param = p};
        ho_sampler *sampler;

        CHECK_OK(ho_require_add(&space, NULL, "slow > fast * 3", &err), &err);
        sampler = make(&space, &options);
        for (int64_t n = 0; n < 80; n++) {
            double c[2];

            ask(sampler, n, c);
            assert_true(c[1] > 3.0 * c[0]);
            tell(sampler, n, fabs(c[1] - 20.0) - c[0]);
        }
        ho_sampler_destroy(&sampler);
        ho_require_free(&space.require);
    }
}

static void impossible_requirement_exhausts_the_space(void **state)
{
    static ho_param p[2];
    ho_space space = {.count = 2, .param = p};
    ho_sampler_options options = kind("tpe", 8);
    ho_sampler *sampler;
    double c[2];
    ho_err err;

    (void)state;
    p[0] = spaces_int("fast", 2, 50);
    p[1] = spaces_float("slow", 2, 50);
    CHECK_OK(ho_require_add(&space, NULL, "slow > fast + 100", &err), &err);
    sampler = make(&space, &options);
    CHECK_STATUS(ho_sampler_ask(sampler, 0, c, NULL, &err), HO_EDONE);
    ho_sampler_destroy(&sampler);
    ho_require_free(&space.require);
}

static void failures_steer_away(void **state)
{
    static ho_param p[2];
    ho_space space = {.count = 2, .param = p};

    (void)state;
    p[0] = spaces_float("x", 0.0, 1.0);
    p[1] = spaces_float("y", 0.0, 1.0);
    for (int k = 0; k < LEARNING_COUNT;
         k++) { /* half of the space fails; the value does not say so */
        ho_sampler_options options = kind(LEARNING[k], 5);
        ho_sampler *sampler = make(&space, &options);
        int failed = 0;

        for (int64_t n = 0; n < 120; n++) {
            double c[2];

            ask(sampler, n, c);
            if (c[0] > 0.5) {
                tell_state(sampler, n, HO_TOLD_FAILED, NAN);
                failed += n >= 60;
            } else {
                tell(sampler, n, fabs(c[1] - 0.5));
            }
        }
        assert_true(failed <= 12); /* of 60; random would fail 30 */
        ho_sampler_destroy(&sampler);
    }
}

static void edge_histories_end_and_stay_legal(void **state)
{
    static const double VALUE[] = {1.0, INFINITY, -INFINITY, NAN};
    ho_space space = rich_space();
    ho_err err;

    (void)state;
    for (int k = 0; k < LEARNING_COUNT; k++) {
        for (int mode = 0; mode < 6; mode++) { /* 0-3: all alike; 4: all failed; 5: a mix */
            ho_sampler_options options = kind(LEARNING[k], 5);
            ho_sampler *sampler = make(&space, &options);

            for (int64_t n = 0; n < 60; n++) {
                double c[PARAMS], value = VALUE[mode < 4 ? mode : n % 4];

                ask(sampler, n, c);
                CHECK_OK(ho_space_check(&space, c, &err), &err);
                if (mode == 4 || (mode == 5 && n % 5 == 0)) {
                    tell_state(sampler, n, HO_TOLD_FAILED, NAN);
                } else {
                    tell_state(sampler, n, n % 3 == 2 ? HO_TOLD_PRUNED : HO_TOLD_COMPLETE, value);
                }
            }
            ho_sampler_destroy(&sampler);
        }
    }
}

static void one_parameter_and_no_parameter_work(void **state)
{
    static ho_param p[1];
    ho_space one = {.count = 1, .param = p}, none = {.count = 0};

    (void)state;
    p[0] = spaces_float("x", -1.0, 1.0);
    for (int k = 0; k < ho_sampler_kind_count(); k++) {
        ho_sampler_options options = kind(ho_sampler_kind_name(k), 1);
        ho_sampler *sampler;
        double x = NAN;
        ho_err err;

        if (strcmp(options.kind, "grid") != 0) {
            sampler = make(&one, &options);
            for (int64_t n = 0; n < 50; n++) {
                ask(sampler, n, &x);
                assert_true(x >= -1.0 && x <= 1.0);
                tell(sampler, n, x * x);
            }
            ho_sampler_destroy(&sampler);
        }
        sampler = make(&none, &options); /* one configuration: nothing to choose */
        CHECK_OK(ho_sampler_ask(sampler, 0, &x, NULL, &err), &err);
        tell(sampler, 0, 1.0);
        CHECK_STATUS(ho_sampler_ask(sampler, 1, &x, NULL, &err), HO_EDONE);
        ho_sampler_destroy(&sampler);
    }
}

static void grid_walks_every_branch_once(void **state)
{
    static ho_choice c[2];
    static ho_param p[3];
    ho_space space = {.count = 3, .param = p};
    ho_sampler_options options = kind("grid", 1);
    ho_sampler *sampler;
    double x[3], first[3];
    ho_err err;
    int64_t n = 0;

    (void)state;
    p[0] = spaces_choice("algo", c, 2);
    p[1] = spaces_int("a", 1, 3);
    spaces_when(&p[1], 0, 1);
    p[2] = spaces_int("b", 1, 4);
    spaces_when(&p[2], 0, 2);
    sampler = make(&space, &options);
    ask(sampler, n++, first);
    CHECK_NEAR(first[1], 1.0, 0.0);
    CHECK_NAN(first[2]);
    while (ho_sampler_ask(sampler, n, x, NULL, &err) == HO_OK) {
        n++;
    }
    assert_int_equal(n, 7); /* 3 + 4 */
    ho_sampler_destroy(&sampler);
}

static void sobol_fills_every_stratum(void **state)
{
    static ho_param p[40];
    ho_space space = {.count = 40, .param = p};
    ho_sampler_options options = kind("sobol", 77);
    ho_sampler *sampler;
    bool seen[40][64] = {{false}};

    (void)state;
    for (int d = 0; d < 40; d++) {
        p[d] = spaces_float("x", 0.0, 1.0);
    }
    sampler = make(&space, &options);
    for (int64_t n = 0; n < 64; n++) { /* 64 points: one in each 64th of each dimension */
        double x[40];

        ask(sampler, n, x);
        for (int d = 0; d < 40; d++) {
            assert_false(seen[d][(int)(x[d] * 64.0)]);
            seen[d][(int)(x[d] * 64.0)] = true;
        }
    }
    ho_sampler_destroy(&sampler);
}

static void draws_are_named_by_seed_number_and_purpose(void **state)
{
    ho_draw a = ho_draw_start(1, 2, HO_DRAW_PROPOSE, 0);
    ho_draw b = ho_draw_start(1, 2, HO_DRAW_PROPOSE, 0);
    ho_draw c = ho_draw_start(1, 3, HO_DRAW_PROPOSE, 0);
    ho_draw d = ho_draw_start(1, 2, HO_DRAW_PROPOSE, 1);
    philox4x32_ctr_t zero = {{0, 0, 0, 0}};
    philox4x32_key_t key = {{0, 0}};

    (void)state;
    /* Random123's known answer for philox4x32-10 of zero */
    assert_int_equal(philox4x32(zero, key).v[0], 0x6627e8d5);
    for (int i = 0; i < 100; i++) {
        uint32_t x = ho_draw_u32(&a);

        assert_int_equal(x, ho_draw_u32(&b));
        assert_int_not_equal(x, ho_draw_u32(&c));
        assert_int_not_equal(x, ho_draw_u32(&d));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(step_range_keeps_its_end_and_its_grid),
        cmocka_unit_test(log_bounds_hold_to_the_last_bit),
        cmocka_unit_test(mixed_type_choices_stay_apart),
        cmocka_unit_test(nan_in_a_request_is_filled_and_ends),
        cmocka_unit_test(requirements_hold_in_every_proposal),
        cmocka_unit_test(impossible_requirement_exhausts_the_space),
        cmocka_unit_test(failures_steer_away),
        cmocka_unit_test(edge_histories_end_and_stay_legal),
        cmocka_unit_test(one_parameter_and_no_parameter_work),
        cmocka_unit_test(grid_walks_every_branch_once),
        cmocka_unit_test(sobol_fills_every_stratum),
        cmocka_unit_test(draws_are_named_by_seed_number_and_purpose),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
