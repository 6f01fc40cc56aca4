/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "study/space.h"
#include "study/study.h"

static ho_param stepped(double low, double high, double step, int decimals)
{
    ho_param p = {.key = -1, .kind = HO_PARAM_FLOAT, .low = low, .high = high, .step = step};
    p.step_decimals = decimals;
    (void)snprintf(p.name, sizeof p.name, "x");
    return p;
}

static ho_study *search(const char *lines)
{
    char text[2048];
    ho_err err;
    ho_study *s = NULL;
    (void)snprintf(text, sizeof text, "[data]\npath = \"a\"\n[search]\n%s\n", lines);
    CHECK_OK(ho_study_parse(text, strlen(text), "s.toml", ".", &s, &err), &err);
    return s;
}

/* optuna 391 */
static void a_step_range_keeps_its_end(void **state)
{
    (void)state;
    char text[32];
    ho_param p = stepped(0.8, 1.0, 0.1, 1);
    assert_int_equal(ho_param_cardinality(&p), 3);
    CHECK_NEAR(ho_param_grid_value(&p, 1), 0.9, 0);
    CHECK_NEAR(ho_param_grid_value(&p, 2), 1.0, 0);
    ho_param_print(&p, ho_param_grid_value(&p, 1), text, sizeof text);
    assert_string_equal(text, "0.9");
    p = stepped(0, 0.5, 0.05, 2);
    assert_int_equal(ho_param_cardinality(&p), 11);
    for (int i = 0; i < 11; i++) {
        double want = (double)(5 * i) / 100;
        CHECK_NEAR(ho_param_grid_value(&p, i), want, 0);
        CHECK_NEAR(ho_param_snap(&p, want + 0.02), want, 0);
    }
    ho_study *s = search("\"dqn.tau\" = { float = [0.1, 0.75], step = 0.2 }");
    CHECK_NEAR(s->space.param[0].high, 0.7, 0); /* off-grid high: the last point */
    assert_int_equal(ho_param_cardinality(&s->space.param[0]), 4);
    ho_study_free(&s);
}

/* optuna 5457: exp(log(1e-5)) lies 2 ulp below 1e-5. */
static void a_log_bound_is_not_an_ulp_out_of_range(void **state)
{
    (void)state;
    ho_err err;
    ho_param p = {.kind = HO_PARAM_FLOAT, .log = true, .low = 1e-5, .high = 1e3};
    ho_space space = {1, &p, NULL};
    double x = exp(log(1e-5));
    assert_true(x < 1e-5);
    CHECK_STATUS(ho_space_check(&space, &x, &err), HO_EINVAL);
    x = ho_param_snap(&p, x);
    CHECK_NEAR(x, 1e-5, 0);
    CHECK_OK(ho_space_check(&space, &x, &err), &err);
    x = ho_param_snap(&p, nextafter(1e3, 1e4));
    CHECK_NEAR(x, 1e3, 0);
}

/* optuna 2467 */
static void an_int_step_stays_on_the_grid(void **state)
{
    (void)state;
    ho_err err;
    ho_study *s = search("\"barriers.max_holding\" = { int = [5, 100], step = 10 }");
    ho_param *p = &s->space.param[0];
    CHECK_NEAR(p->high, 95, 0);
    assert_int_equal(ho_param_cardinality(p), 10);
    for (double v = -3; v < 200; v += 0.37) {
        double x = ho_param_snap(p, v);
        assert_true(x >= 5 && x <= 95 && fmod(x - 5, 10) == 0);
        CHECK_OK(ho_space_check(&s->space, &x, &err), &err);
    }
    CHECK_NEAR(ho_param_snap(p, 10), 15, 0); /* half away from the low end */
    double off = 10;
    CHECK_STATUS(ho_space_check(&s->space, &off, &err), HO_EINVAL);
    CHECK_CONTAINS(err.text, "in steps of 10, which leave out 10");
    off = 15.5;
    CHECK_STATUS(ho_space_check(&s->space, &off, &err), HO_EINVAL);
    ho_study_free(&s);
}

static void printing_and_parsing_are_inverse(void **state)
{
    (void)state;
    ho_err err;
    char text[64];
    double back = 0;
    ho_param p = {.kind = HO_PARAM_FLOAT, .low = -1e300, .high = 1e300};
    const double values[] = {0.1, 1.0 / 3, 1e-5, -2.5e-300, 3, 0.1 + 0.2};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        int length = ho_param_print(&p, values[i], text, sizeof text);
        assert_int_equal(length, strlen(text));
        CHECK_OK(ho_param_parse(&p, text, &back, &err), &err);
        assert_memory_equal(&back, &values[i], sizeof back);
    }
    for (int decimals = 1; decimals < 7; decimals++) {
        ho_param grid = stepped(-1, 1, pow(10, -decimals), decimals);
        int64_t n = ho_param_cardinality(&grid);
        for (int64_t i = 0; i < n; i += 1 + n / 997) {
            double v = ho_param_grid_value(&grid, i);
            ho_param_print(&grid, v, text, sizeof text);
            assert_int_equal(strlen(strchr(text, '.') + 1), decimals);
            CHECK_OK(ho_param_parse(&grid, text, &back, &err), &err);
            assert_memory_equal(&back, &v, sizeof back);
        }
    }
    CHECK_STATUS(ho_param_parse(&p, "nan", &back, &err), HO_EINVAL);
    CHECK_STATUS(ho_param_parse(&p, "0.5x", &back, &err), HO_EINVAL);
    p.kind = HO_PARAM_INT;
    p.step = 1;
    CHECK_STATUS(ho_param_parse(&p, "1.0", &back, &err), HO_EINVAL);
}

static void steps_too_fine_for_decimals_still_end_at_high(void **state)
{
    (void)state;
    ho_param p = stepped(0, 1, 1.0 / 3, 16);
    assert_int_equal(ho_param_cardinality(&p), 4);
    CHECK_NEAR(ho_param_grid_value(&p, 3), 1, 0);
    CHECK_NEAR(ho_param_snap(&p, 0.99), 1, 0);
}

static const char tree[] = "\"dqn.replay\" = { choice = [\"uniform\", \"per\", \"per_rank\"] }\n"
                           "\"dqn.per_alpha\" = { float = [0.0, 1.0], "
                           "when = { \"dqn.replay\" = [\"per\", \"per_rank\"] } }\n"
                           "\"dqn.noisy\" = { choice = [true, false], when = { \"dqn.replay\" = "
                           "\"per\" } }\n"
                           "\"dqn.noisy_sigma0\" = { float = [0.1, 1.0], when = { dqn.noisy = "
                           "true } }\n";

static void inactive_parameters_are_nan(void **state)
{
    (void)state;
    ho_err err;
    ho_study *s = search(tree);
    double c[4] = {0, 0.5, 0, 0.2};
    ho_space_canonical(&s->space, c);
    CHECK_NEAR(c[0], 0, 0);
    CHECK_NAN(c[1]);
    CHECK_NAN(c[2]);
    CHECK_NAN(c[3]); /* its parent has a value, but is not active */
    CHECK_OK(ho_space_check(&s->space, c, &err), &err);
    double d[4] = {1, 7, 0, NAN};
    ho_space_canonical(&s->space, d);
    CHECK_NEAR(d[1], 1, 0);
    CHECK_NAN(d[3]);
    CHECK_STATUS(ho_space_check(&s->space, d, &err), HO_EINVAL);
    CHECK_CONTAINS(err.text, "dqn.noisy_sigma0 has no value");
    d[3] = 0.5;
    CHECK_OK(ho_space_check(&s->space, d, &err), &err);
    d[2] = 1;
    CHECK_STATUS(ho_space_check(&s->space, d, &err), HO_EINVAL);
    CHECK_CONTAINS(err.text, "dqn.noisy_sigma0 has a value, but is not active");
    d[2] = 2;
    CHECK_STATUS(ho_space_check(&s->space, d, &err), HO_EINVAL);
    CHECK_CONTAINS(err.text, "dqn.noisy has 2 choices, not number 2");
    ho_study_free(&s);
}

static void the_hash_tells_configurations_apart(void **state)
{
    (void)state;
    ho_study *s = search(tree);
    double a[4] = {0, NAN, NAN, NAN}, b[4] = {-0.0, -NAN, NAN, NAN}, c[4] = {1, 0, 1, NAN};
    assert_true(ho_space_hash(&s->space, a) == ho_space_hash(&s->space, b));
    assert_true(ho_space_hash(&s->space, a) != ho_space_hash(&s->space, c));
    c[1] = nextafter(0, 1);
    uint64_t h = ho_space_hash(&s->space, c);
    c[1] = 0;
    assert_true(h != ho_space_hash(&s->space, c));
    ho_study_free(&s);
}

static void an_empty_space_has_one_configuration(void **state)
{
    (void)state;
    ho_err err;
    ho_study *s = search("");
    double none = 0;
    assert_int_equal(s->space.count, 0);
    CHECK_OK(ho_space_check(&s->space, &none, &err), &err);
    assert_true(ho_space_hash(&s->space, &none) == ho_space_hash(&s->space, &none));
    assert_int_equal(ho_space_find(&s->space, "x"), -1);
    ho_study_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_range_keeps_its_end),
        cmocka_unit_test(a_log_bound_is_not_an_ulp_out_of_range),
        cmocka_unit_test(an_int_step_stays_on_the_grid),
        cmocka_unit_test(printing_and_parsing_are_inverse),
        cmocka_unit_test(steps_too_fine_for_decimals_still_end_at_high),
        cmocka_unit_test(inactive_parameters_are_nan),
        cmocka_unit_test(the_hash_tells_configurations_apart),
        cmocka_unit_test(an_empty_space_has_one_configuration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
