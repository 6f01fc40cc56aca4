/* SPDX-License-Identifier: Apache-2.0
 * Every worked value of the overfitting statistics in spec/metrics.md section 2. */
#include <stdlib.h>

#include "check.h"
#include "kernels/fixtures.h"
#include "kernels/metrics/overfit.h"

static ho_sharpe_moments given(double sharpe, int64_t n, double skew, double kurtosis)
{
    return (ho_sharpe_moments){.n = n, .sharpe = sharpe, .skew = skew, .kurtosis = kurtosis};
}

static void normal_quantile_inverts_the_cdf(void **state)
{
    (void)state;
    for (double p = 1e-12; p < 1.0; p = p < 0.01 ? p * 3.0 : p + 0.01) {
        CHECK_NEAR(ho_normal_cdf(ho_normal_quantile(p)) / p, 1.0, 1e-11); /* erfc near 0 */
    }
    CHECK_NEAR(ho_normal_quantile(0.975), 1.959963984540054, 1e-14);
    CHECK_NEAR(ho_normal_quantile(1e-20), -9.262340089798408, 1e-12);
    CHECK_NEAR(ho_normal_quantile(0.5), 0.0, 0.0);
    assert_true(isinf(ho_normal_quantile(0.0)) && isinf(ho_normal_quantile(1.0)));
    CHECK_NAN(ho_normal_quantile(-0.1));
    CHECK_NAN(ho_normal_quantile(NAN));
}

static void psr_of_the_paper_and_of_fixture_b(void **state)
{
    (void)state;
    ho_sharpe_moments paper = given(0.458, 24, -2.448, 10.164), normal = given(0.458, 24, 0, 3);
    CHECK_NEAR(ho_psr(&paper, 0.0), 0.913361, 1e-6);
    CHECK_NEAR(ho_psr(&normal, 0.0), 0.981675, 1e-6);
    ho_sharpe_moments b = ho_sharpe_moments_of(fixture_b, 24, 0.0);
    CHECK_NEAR(b.sharpe, 0.22756845566, 1e-11);
    CHECK_NEAR(b.skew, -0.08256245520856802, 1e-12);
    CHECK_NEAR(b.kurtosis, 2.432453794107874, 1e-12);
    CHECK_NEAR(ho_psr(&b, 0.0), 0.8580412025548032, 1e-12);
    CHECK_NEAR(ho_psr(&b, 0.5 / sqrt(12.0)), 0.6524385492153144, 1e-12);
}

/* Lean 9533 */
static void psr_uses_the_rate_that_sharpe_uses(void **state)
{
    (void)state;
    ho_sharpe_moments with = ho_sharpe_moments_of(fixture_b, 24, 0.002);
    double shifted[24];
    for (int i = 0; i < 24; i++) {
        shifted[i] = fixture_b[i] - 0.002;
    }
    ho_sharpe_moments same = ho_sharpe_moments_of(shifted, 24, 0.0);
    CHECK_NEAR(ho_psr(&with, 0.0), ho_psr(&same, 0.0), 1e-14);
    ho_sharpe_moments without = ho_sharpe_moments_of(fixture_b, 24, 0.0);
    assert_true(ho_psr(&with, 0.0) < ho_psr(&without, 0.0));
}

static void flat_series_have_no_psr_and_no_dsr(void **state)
{
    (void)state;
    double flat[50];
    for (int i = 0; i < 50; i++) {
        flat[i] = 0.001;
    }
    ho_sharpe_moments m = ho_sharpe_moments_of(flat, 50, 0.0);
    CHECK_NAN(m.sharpe);
    CHECK_NAN(ho_psr(&m, 0.0));
    CHECK_NAN(ho_dsr(&m, 10, 0.01));
    m = ho_sharpe_moments_of(flat, 1, 0.0);
    CHECK_NAN(ho_psr(&m, 0.0));
    ho_sharpe_moments impossible = given(2.0, 100, 3.0, 1.0); /* variance term below zero */
    CHECK_NAN(ho_psr(&impossible, 0.0));
}

static void expected_max_sharpe_of_null_trials(void **state)
{
    (void)state;
    const struct {
        int64_t n;
        double want;
    } rows[] = {{1, 0.0},       {2, 0.519755},   {5, 1.192594},    {10, 1.574598},
                {45, 2.235640}, {100, 2.530603}, {1000, 3.255122}, {10000, 3.860665}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_NEAR(ho_expected_max_sharpe(rows[i].n, 1.0), rows[i].want, 5e-7);
    }
}

static void dsr_of_the_paper_and_of_ten_trials(void **state)
{
    (void)state;
    double v = 0.5 / 250.0, sharpe = 2.5 / sqrt(250.0);
    ho_sharpe_moments m = given(sharpe, 1250, -3.0, 10.0);
    CHECK_NEAR(ho_expected_max_sharpe(100, v), 0.1131720, 5e-8);
    CHECK_NEAR(ho_dsr(&m, 100, v), 0.9003968, 5e-8);
    CHECK_NEAR(ho_dsr(&m, 46, v), 0.9505017, 5e-8);
    CHECK_NEAR(ho_dsr(&m, 88, v), 0.9101530, 5e-8);
    const double trials[10] = {.10, .02, -.05, .07, 0, .04, -.02, .12, .03, -.01};
    double mean = 0.0, variance = 0.0;
    for (int i = 0; i < 10; i++) {
        mean += trials[i] / 10.0;
    }
    for (int i = 0; i < 10; i++) {
        variance += (trials[i] - mean) * (trials[i] - mean) / 9.0;
    }
    CHECK_NEAR(variance, 0.00291111, 5e-9);
    CHECK_NEAR(ho_expected_max_sharpe(10, variance), 0.0849570, 5e-8);
    ho_sharpe_moments best = given(0.12, 500, 0.0, 3.0);
    CHECK_NEAR(ho_dsr(&best, 10, variance), 0.78230407983, 1e-11); /* printed as 0.7823040 */
    CHECK_NEAR(ho_psr(&best, 0.0), 0.9962187, 5e-8);
}

static void minimum_track_records(void **state)
{
    (void)state;
    const struct {
        double periods, want;
    } rows[] = {{250, 682.797}, {52, 147.099}, {12, 38.878}};
    for (int i = 0; i < 3; i++) {
        double scale = sqrt(rows[i].periods);
        ho_sharpe_moments m = given(2.0 / scale, 0, 0.0, 3.0);
        CHECK_NEAR(ho_min_track_record(&m, 1.0 / scale, 0.95), rows[i].want, 5e-4);
    }
    ho_sharpe_moments b = ho_sharpe_moments_of(fixture_b, 24, 0.0);
    CHECK_NEAR(ho_min_track_record(&b, 0.0, 0.95), 55.1937, 5e-5);
    ho_sharpe_moments a = ho_sharpe_moments_of(fixture_a, 10, 0.0);
    CHECK_NEAR(ho_min_track_record(&a, 0.0, 0.95), 83.48, 5e-3);
    assert_true(isinf(ho_min_track_record(&b, 1.0, 0.95)));
}

static void lo_factor_with_serial_correlation(void **state)
{
    (void)state;
    CHECK_NEAR(ho_lo_eta_ar1(0.1, 252), 14.3648, 5e-5);
    CHECK_NEAR(ho_lo_eta_ar1(-0.1, 252), 17.5429, 5e-5);
    CHECK_NEAR(ho_lo_eta_ar1(0.2, 12), 2.8788, 5e-5);
    CHECK_NEAR(ho_lo_eta_ar1(0.0, 252), sqrt(252.0), 1e-12);
    const double rho[12] = {1.0, 0.2, 0.04, 0.008, 0.0016};
    CHECK_NEAR(ho_lo_eta(rho, 12), 2.8788, 5e-4);
}

static const double worked[16][4] = {{2, -1, 1, 0}, {1, 2, -1, 1}, {-1, 1, 2, -2}, {3, 0, -1, 1},
                                     {-2, 1, 1, 2}, {0, -1, 2, 1}, {-1, 2, -2, 3}, {1, 1, 0, -1},
                                     {1, -2, 3, 0}, {-2, 1, 1, 2}, {2, 0, -1, 1},  {0, 1, 1, -2},
                                     {-1, 3, 0, 1}, {1, -1, 1, 2}, {-3, 2, 1, -1}, {2, 1, -2, 2}};

static void fill_worked(double *out, int N, const int *column)
{
    for (int t = 0; t < 16; t++) {
        for (int n = 0; n < N; n++) {
            out[t * N + n] = worked[t][column[n]] * 0.01;
        }
    }
}

static void pbo_of_the_worked_example(void **state)
{
    (void)state;
    /* splits in the order of masks: {01} {02} {12} {03} {13} {23} */
    const double lambda[6] = {0.405465, -1.386294, 0.405465, -0.405465, -1.386294, 0.405465};
    double m[64];
    ho_pbo pbo;
    ho_err err = {0};
    fill_worked(m, 4, (const int[]){0, 1, 2, 3});
    CHECK_OK(ho_pbo_cscv(m, 16, 4, 4, &pbo, &err), &err);
    assert_int_equal(pbo.splits, 6);
    for (int i = 0; i < 6; i++) {
        CHECK_NEAR(pbo.lambda[i], lambda[i], 5e-7);
    }
    CHECK_NEAR(pbo.pbo, 0.5, 0.0);
    CHECK_NEAR(pbo.loss, 1.0 / 6.0, 1e-15);
    ho_pbo_free(&pbo);
}

static void a_dominating_strategy_has_no_pbo(void **state)
{
    (void)state;
    double m[64];
    ho_pbo pbo;
    ho_err err = {0};
    fill_worked(m, 4, (const int[]){0, 1, 2, 3});
    for (int t = 0; t < 16; t++) {
        m[t * 4 + 2] = 0.05 + 0.001 * (t % 3);
    }
    CHECK_OK(ho_pbo_cscv(m, 16, 4, 4, &pbo, &err), &err);
    CHECK_NEAR(pbo.pbo, 0.0, 0.0);
    for (int i = 0; i < 6; i++) {
        CHECK_NEAR(pbo.lambda[i], 1.386294, 5e-7);
    }
    ho_pbo_free(&pbo);
}

static void the_order_of_columns_does_not_change_pbo(void **state)
{
    (void)state;
    double m[16 * 6];
    ho_pbo a, b;
    ho_err err = {0};
    fill_worked(m, 6, (const int[]){0, 1, 2, 3, 0, 3}); /* with duplicates */
    CHECK_OK(ho_pbo_cscv(m, 16, 6, 4, &a, &err), &err);
    fill_worked(m, 6, (const int[]){3, 0, 1, 0, 3, 2});
    CHECK_OK(ho_pbo_cscv(m, 16, 6, 4, &b, &err), &err);
    CHECK_NEAR(a.pbo, b.pbo, 0.0);
    for (int i = 0; i < 6; i++) {
        CHECK_NEAR(a.lambda[i], b.lambda[i], 1e-12);
    }
    ho_pbo_free(&a);
    ho_pbo_free(&b);
}

static void splits_count_and_the_tail_is_dropped(void **state)
{
    (void)state;
    ho_pbo pbo;
    ho_err err = {0};
    double *m = malloc(250 * 3 * sizeof *m);
    for (int i = 0; i < 250 * 3; i++) {
        m[i] = sin(i * 1.7) * 0.01;
    }
    for (int blocks = 8; blocks <= 16; blocks += 2) {
        const int64_t want[] = {70, 252, 924, 3432, 12870};
        CHECK_OK(ho_pbo_cscv(m, 250, 3, blocks, &pbo, &err), &err);
        assert_int_equal(pbo.splits, want[blocks / 2 - 4]);
        ho_pbo_free(&pbo);
    }
    ho_pbo whole, cut;
    CHECK_OK(ho_pbo_cscv(m, 250, 3, 8, &whole, &err), &err);
    CHECK_OK(ho_pbo_cscv(m, 248, 3, 8, &cut, &err), &err);
    CHECK_NEAR(whole.slope, cut.slope, 0.0);
    ho_pbo_free(&whole);
    ho_pbo_free(&cut);
    free(m);
}

static void bad_matrices_are_refused_by_name(void **state)
{
    (void)state;
    double m[64];
    ho_pbo pbo;
    ho_err err = {0};
    fill_worked(m, 4, (const int[]){0, 1, 2, 3});
    CHECK_STATUS(ho_pbo_cscv(m, 16, 1, 4, &pbo, &err), HO_EINVAL);
    CHECK_STATUS(ho_pbo_cscv(m, 16, 4, 5, &pbo, &err), HO_EINVAL);
    CHECK_STATUS(ho_pbo_cscv(m, 16, 4, 22, &pbo, &err), HO_EINVAL);
    CHECK_STATUS(ho_pbo_cscv(m, 6, 4, 4, &pbo, &err), HO_EINVAL);
    m[5] = NAN;
    CHECK_STATUS(ho_pbo_cscv(m, 16, 4, 4, &pbo, &err), HO_EINVAL);
    CHECK_CONTAINS(err.text, "configuration 1");
    for (int t = 0; t < 16; t++) {
        m[t * 4 + 1] = 0.01;
    }
    CHECK_STATUS(ho_pbo_cscv(m, 16, 4, 4, &pbo, &err), HO_EINVAL);
    CHECK_CONTAINS(err.text, "configuration 1 does not vary");
    assert_null(pbo.lambda);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normal_quantile_inverts_the_cdf),
        cmocka_unit_test(psr_of_the_paper_and_of_fixture_b),
        cmocka_unit_test(psr_uses_the_rate_that_sharpe_uses),
        cmocka_unit_test(flat_series_have_no_psr_and_no_dsr),
        cmocka_unit_test(expected_max_sharpe_of_null_trials),
        cmocka_unit_test(dsr_of_the_paper_and_of_ten_trials),
        cmocka_unit_test(minimum_track_records),
        cmocka_unit_test(lo_factor_with_serial_correlation),
        cmocka_unit_test(pbo_of_the_worked_example),
        cmocka_unit_test(a_dominating_strategy_has_no_pbo),
        cmocka_unit_test(the_order_of_columns_does_not_change_pbo),
        cmocka_unit_test(splits_count_and_the_tail_is_dropped),
        cmocka_unit_test(bad_matrices_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
