/* SPDX-License-Identifier: Apache-2.0
 * The numbers under the samplers: normal tails (values by mpmath with 60 digits), fronts,
 * hypervolume, the Parzen estimator against a direct sum, latent scales. */
#include "check.h"

#include <stdlib.h>

#include "coordinator/search/dim.h"
#include "coordinator/search/gauss.h"
#include "coordinator/search/pareto.h"
#include "coordinator/search/parzen.h"
#include "search/spaces.h"

typedef struct known {
    double x, y;
} known;

static void log_cdf_holds_its_digits_in_both_tails(void **state)
{
    static const known K[] = {{-40, -804.60844201375379},  {-20.5, -214.0667289632638},
                              {-19.5, -194.0169657774975}, {-5, -15.064998393988726},
                              {0, -0.69314718055994531},   {3, -0.0013508099647481938},
                              {8, -6.2209605742717861e-16}};

    (void)state;
    for (size_t i = 0; i < sizeof K / sizeof K[0]; i++) {
        CHECK_NEAR(ho_gauss_log_cdf(K[i].x), K[i].y, 1e-14 * fabs(K[i].y));
    }
    CHECK_NEAR(ho_gauss_log_mass(-40, -39), -765.08315656437754, 1e-11);
    CHECK_NEAR(ho_gauss_log_mass(5, 6), -15.068446096529453, 1e-13);
    CHECK_NEAR(ho_gauss_log_mass(30, 31), -454.32124395634325, 1e-11);
    CHECK_NEAR(ho_gauss_log_mass(-1, 2), -0.20016629432446258, 1e-15);
    CHECK_NEAR(ho_gauss_mass(-1, 2), exp(-0.20016629432446258), 1e-15);
    assert_true(isinf(ho_gauss_log_mass(3, 3)));
}

static void quantile_inverts_the_cdf(void **state)
{
    static const known K[] = {{1e-300, -37.0470962993612},
                              {1e-12, -7.034483825301131},
                              {0.01, -2.3263478740408408},
                              {0.3, -0.5244005127080409},
                              {0.975, 1.959963984540054}};

    (void)state;
    for (size_t i = 0; i < sizeof K / sizeof K[0]; i++) {
        CHECK_NEAR(ho_gauss_quantile(K[i].x), K[i].y, 1e-13 * fabs(K[i].y));
    }
    assert_true(isinf(ho_gauss_quantile(0.0)) && isinf(ho_gauss_quantile(1.0)));
    for (double u = 0.0; u <= 1.0; u += 0.125) {
        double deep = ho_gauss_truncated_quantile(u, 38.0, 50.0);
        double wide = ho_gauss_truncated_quantile(u, -1.0, 2.0);

        assert_true(deep >= 38.0 && deep <= 50.0 && wide >= -1.0 && wide <= 2.0);
        if (u < 1.0) {
            CHECK_NEAR(exp(ho_gauss_log_mass(38.0, deep) - ho_gauss_log_mass(38.0, 50.0)), u, 1e-9);
        }
        CHECK_NEAR(ho_gauss_mass(-1.0, wide) / ho_gauss_mass(-1.0, 2.0), u, 1e-12);
    }
}

static void log_expected_improvement_has_no_cliff(void **state)
{
    static const known K[] = {
        {3, 1.0987396653277078},     {0, -0.91893853320467274},    {-0.5, -1.6205162643873199},
        {-1.5, -3.5299359208057099}, {-5, -16.74430116266099},     {-19, -187.31604760112667},
        {-25, -319.86146358149595},  {-1000, -500014.73445209116}, {-1e6, -500000000028.54996}};
    double last = -INFINITY;

    (void)state;
    for (size_t i = 0; i < sizeof K / sizeof K[0]; i++) {
        CHECK_NEAR(ho_gauss_log_ei(K[i].x), K[i].y, 1e-11 * fabs(K[i].y));
    }
    for (double z = -200.0; z < 5.0; z += 0.01) { /* rises everywhere, over the seams too */
        assert_true(ho_gauss_log_ei(z) > last);
        last = ho_gauss_log_ei(z);
    }
}

static void fronts_match_a_direct_count(void **state)
{
    enum { N = 200, M = 3 };
    static double loss[N * M];
    int rank[N];

    (void)state;
    for (int i = 0; i < N; i++) {
        ho_draw draw = ho_draw_start(6, i, HO_DRAW_PROPOSE, 0);

        for (int m = 0; m < M; m++) {
            loss[i * M + m] = (double)ho_draw_below(&draw, 6);
        }
    }
    loss[5] = NAN;
    assert_int_equal(ho_pareto_rank(loss, N, M, rank), HO_OK);
    for (int i = 0; i < N; i++) { /* rank = 1 + the largest rank among what dominates it */
        int want = 0;

        for (int j = 0; j < N; j++) {
            if (ho_pareto_dominates(&loss[j * M], &loss[i * M], M)) {
                want = rank[j] + 1 > want ? rank[j] + 1 : want;
            }
        }
        assert_int_equal(rank[i], want);
    }
    assert_int_equal(ho_pareto_rank(loss, 0, M, rank), HO_OK);
}

static void hypervolume_matches_known_boxes(void **state)
{
    double two[6] = {1, 3, 2, 2, 3, 1}, ref2[2] = {4, 4};
    double three[9] = {1, 1, 3, 2, 2, 2, 3, 3, 1}, ref3[3] = {4, 4, 4},
           same[6] = {1, 1, 1, 1, 1, 1};

    (void)state;
    CHECK_NEAR(ho_pareto_hypervolume(two, 3, 2, ref2), 6.0, 1e-12);
    /* 9 + 8 + 3 of the boxes, less 4 + 1 + 2 of pairs, plus 1 of all three */
    CHECK_NEAR(ho_pareto_hypervolume(three, 3, 3, ref3), 14.0, 1e-12);
    CHECK_NEAR(ho_pareto_hypervolume(same, 2, 3, ref3), 27.0, 1e-12);
    CHECK_NEAR(ho_pareto_hypervolume(two, 0, 2, ref2), 0.0, 0.0);
}

static void latent_scale_goes_there_and_back(void **state)
{
    ho_param p = spaces_float("x", 1e-5, 0.1), q = spaces_int("n", 1, 6);
    ho_dim dim, steps;
    double low, high;

    (void)state;
    p.log = true;
    dim = ho_dim_of(&p);
    steps = ho_dim_of(&q);
    CHECK_NEAR(ho_dim_from_unit(&dim, 0.0), 1e-5, 0.0);
    CHECK_NEAR(ho_dim_from_unit(&dim, 1.0), 0.1, 0.0);
    CHECK_NEAR(ho_dim_unit(&dim, 1e-3), 0.5, 1e-12);
    for (int i = 1; i <= 6; i++) { /* each grid point owns a sixth */
        ho_dim_cell(&steps, i, &low, &high);
        CHECK_NEAR(high - low, 1.0, 1e-12);
        CHECK_NEAR(ho_dim_from_unit(&steps, (i - 0.5) / 6.0), i, 0.0);
        CHECK_NEAR(ho_dim_from_unit(&steps, (i - 0.999) / 6.0), i, 0.0);
    }
}

/* The mixture summed directly from the definition. */
static double direct_density(const double *at, int n, double x)
{
    double sum =
        exp(-0.5 * (x - 0.5) * (x - 0.5)) / (2.5066282746310002 * ho_gauss_mass(-0.5, 0.5));

    for (int i = 0; i < n; i++) { /* at is sorted */
        double left = i > 0 ? at[i] - at[i - 1] : at[i];
        double right = i + 1 < n ? at[i + 1] - at[i] : 1.0 - at[i];
        double sigma = i == 0 && n > 1 ? right : i == n - 1 && n > 1 ? left : fmax(left, right);

        sigma = fmin(fmax(sigma, 1.0 / fmin(100.0, n + 2.0)), 1.0);
        sum += ho_gauss_pdf((x - at[i]) / sigma) / sigma /
               ho_gauss_mass(-at[i] / sigma, (1.0 - at[i]) / sigma);
    }
    return log(sum / (n + 1));
}

static void parzen_matches_its_definition_after_adds_and_removes(void **state)
{
    enum { N = 300 };
    ho_param p = spaces_float("x", 0.0, 1.0);
    ho_dim dim = ho_dim_of(&p);
    double sorted[N], unit[3] = {0.1, 0.5, 0.93}, out[3];
    ho_parzen parzen;
    ho_err err;

    (void)state;
    CHECK_OK(ho_parzen_init(&parzen, 1, &dim, 1.0, 1.0, &err), &err);
    for (int round = 0; round < 3; round++) { /* grows past the cap, shrinks below it, grows */
        int n = round == 1 ? 20 : N;

        for (int i = (int)parzen.count; i < n; i++) {
            ho_draw draw = ho_draw_start(1, i, HO_DRAW_PROPOSE, round);
            double x = ho_draw_unit(&draw);

            CHECK_OK(ho_parzen_add(&parzen, i, &x, &err), &err);
        }
        for (int i = N - 1; i >= n; i--) {
            ho_parzen_remove(&parzen, i);
        }
        ho_parzen_refresh(&parzen, NULL);
        for (int i = 0; i < n; i++) {
            sorted[i] = parzen.at[parzen.order[i]];
        }
        for (int i = 1; i < n; i++) {
            assert_true(sorted[i] >= sorted[i - 1]);
        }
        ho_parzen_log_density(&parzen, unit, 3, 3, out);
        for (int c = 0; c < 3; c++) {
            CHECK_NEAR(out[c], direct_density(sorted, n, unit[c]), 2e-5);
        }
    }
    ho_parzen_free(&parzen);
}

static void parzen_density_integrates_to_one(void **state)
{
    enum { CELLS = 2000 };
    static double unit[CELLS], out[CELLS];
    ho_param p = spaces_float("x", 0.0, 1.0);
    ho_dim dim = ho_dim_of(&p);
    ho_parzen parzen;
    double sum = 0.0, x[4] = {0.0, 0.02, 0.6, 1.0};
    ho_err err;

    (void)state;
    CHECK_OK(ho_parzen_init(&parzen, 1, &dim, 2.0, 1.0, &err), &err);
    for (int i = 0; i < 4; i++) {
        CHECK_OK(ho_parzen_add(&parzen, i, &x[i], &err), &err);
    }
    ho_parzen_refresh(&parzen, NULL);
    for (int i = 0; i < CELLS; i++) {
        unit[i] = (i + 0.5) / CELLS;
    }
    ho_parzen_log_density(&parzen, unit, CELLS, CELLS, out);
    for (int i = 0; i < CELLS; i++) {
        sum += exp(out[i]) / CELLS;
    }
    CHECK_NEAR(sum, 1.0, 1e-4);
    ho_parzen_free(&parzen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_cdf_holds_its_digits_in_both_tails),
        cmocka_unit_test(quantile_inverts_the_cdf),
        cmocka_unit_test(log_expected_improvement_has_no_cliff),
        cmocka_unit_test(fronts_match_a_direct_count),
        cmocka_unit_test(hypervolume_matches_known_boxes),
        cmocka_unit_test(latent_scale_goes_there_and_back),
        cmocka_unit_test(parzen_matches_its_definition_after_adds_and_removes),
        cmocka_unit_test(parzen_density_integrates_to_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
