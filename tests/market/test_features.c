/* SPDX-License-Identifier: Apache-2.0
 * The features against a slow reference, and that none looks ahead. */
#include "check.h"

#include "market/feature_reference.h"
#include "market/features.h"
#include "market/make_bars.h"

static ho_features compute(const ho_bars *bars, const ho_feature_options *options)
{
    ho_features features;
    ho_err err = {0};
    CHECK_OK(ho_features_compute(bars, options, &features, &err), &err);
    return features;
}

static double clip(double x)
{
    return x > 5.0 ? 5.0 : x < -5.0 ? -5.0 : x;
}

/* Every column at many bars, block borders among them. */
static void check_against_reference(int64_t T, double price, int64_t W, uint64_t seed)
{
    ho_bars bars = make_bars(T, price, seed);
    ho_feature_options options;
    ho_feature_options_defaults(&options);
    options.long_window = W;
    ho_features features = compute(&bars, &options);
    assert_int_equal(features.F, HO_MARKET_FEATURES);
    int64_t at[] = {features.warmup, 1077, 1083, 2999, 4095, 4096, 4097, 4999, T - 1};
    for (size_t i = 0; i < sizeof at / sizeof at[0]; ++i) {
        for (int f = 0; f < HO_MARKET_FEATURES; ++f) {
            double want = clip(reference_feature(&bars, ho_feature_table[f].name, at[i], W));
            double got = (double)features.values[at[i] * features.F + f];
            if (!(fabs(got - want) <= 1e-6 * fmax(1.0, fabs(want)))) {
                fail_msg("%s at bar %lld: %.9g, want %.9g", ho_feature_table[f].name,
                         (long long)at[i], got, want);
            }
        }
    }
    ho_features_free(&features);
    ho_bars_free(&bars);
}

static void columns_equal_their_definitions(void **state)
{
    (void)state;
    check_against_reference(6000, 100.0, 240, 1);
    check_against_reference(6000, 42000.0, 1000, 2);
}

static void a_long_series_ends_as_exact_as_it_began(void **state)
{
    (void)state;
    enum { T = 1000000, TAIL = 6000 };
    /* columns with bounded memory depend on the tail only: the same bars, read apart */
    static const char *const names[] = {"ret_55",  "range_z",       "vol_240",      "boll_pos_20",
                                        "cci_20",  "boll_width_20", "volume_z",     "high_55",
                                        "skew_60", "volume_trend",  "parkinson_20", "autocorr_5"};
    enum { NAMES = sizeof names / sizeof names[0] };
    ho_bars bars = make_bars(T, 30000.0, 3);
    ho_feature_options options;
    ho_feature_options_defaults(&options);
    options.long_window = 1440;
    options.use = names;
    options.use_count = NAMES;
    ho_features whole = compute(&bars, &options);
    for (int k = 0; k < NAMES; ++k) {
        if (strcmp(names[k], "high_55") == 0) {
            continue; /* over ATR, which remembers */
        }
        for (int64_t t = T - 1; t > T - 3000; t -= 613) {
            double want = clip(reference_feature(&bars, names[k], t, 1440));
            double got = (double)whole.values[t * whole.F + k];
            if (!(fabs(got - want) <= 1e-6 * fmax(1.0, fabs(want)))) {
                fail_msg("%s at bar %lld: %.9g, want %.9g", names[k], (long long)t, got, want);
            }
        }
    }
    ho_features_free(&whole);
    ho_bars_free(&bars);
}

/* The tensor of the first n bars is that of all bars, bit for bit, whatever follows. */
static void check_same_before(const ho_features *a, const ho_features *b, int64_t n)
{
    for (int64_t i = 0; i < n * a->F; ++i) {
        if (memcmp(&a->values[i], &b->values[i], sizeof(float)) != 0) {
            fail_msg("%s at bar %lld changes with later bars: %.9g, %.9g", a->name[i % a->F],
                     (long long)(i / a->F), (double)a->values[i], (double)b->values[i]);
        }
    }
}

static void no_feature_sees_a_later_bar(void **state)
{
    (void)state;
    enum { T = 9000 };
    static const int64_t cuts[] = {1700, 4095, 4096, 4097, 5432, 8191, 8999};
    ho_feature_options options;
    ho_feature_options_defaults(&options);
    ho_bars bars = make_bars(T, 100.0, 4);
    ho_features before = compute(&bars, &options);
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; ++i) {
        ho_bars other = make_bars(T, 100.0, 4);
        for (int64_t k = cuts[i] * 5; k < T * 5; ++k) { /* other prices */
            other.ohlcv[k] = 3.0 * other.ohlcv[k] + 1.0;
        }
        ho_features perturbed = compute(&other, &options);
        check_same_before(&before, &perturbed, cuts[i]);
        ho_features_free(&perturbed);
        for (int64_t k = cuts[i] * 5; k < T * 5; ++k) { /* poison */
            other.ohlcv[k] = NAN;
        }
        ho_features poisoned = compute(&other, &options);
        check_same_before(&before, &poisoned, cuts[i]);
        ho_features_free(&poisoned);
        other.count = cuts[i]; /* nothing follows */
        ho_features shorter = compute(&other, &options);
        check_same_before(&before, &shorter, cuts[i]);
        ho_features_free(&shorter);
        ho_bars_free(&other);
    }
    ho_features_free(&before);
    ho_bars_free(&bars);
}

static void a_perturbed_bar_is_seen_at_once(void **state)
{
    (void)state;
    enum { T = 6000, AT = 4500 };
    ho_feature_options options;
    ho_feature_options_defaults(&options);
    ho_bars bars = make_bars(T, 100.0, 5), other = make_bars(T, 100.0, 5);
    for (int k = 0; k < 4; ++k) {
        other.ohlcv[AT * 5 + k] *= 1.01;
    }
    other.ohlcv[AT * 5 + HO_HIGH] *= 1.01;
    other.ohlcv[AT * 5 + HO_LOW] *= 0.97;
    ho_features a = compute(&bars, &options), b = compute(&other, &options);
    int changed = 0;
    for (int f = 0; f < a.F; ++f) {
        changed += a.values[AT * a.F + f] != b.values[AT * a.F + f];
    }
    assert_true(changed > 35); /* the test above can fail */
    ho_features_free(&a);
    ho_features_free(&b);
    ho_bars_free(&bars);
    ho_bars_free(&other);
}

static void all_values_are_finite_and_clipped(void **state)
{
    (void)state;
    ho_feature_options options;
    ho_feature_options_defaults(&options);
    ho_bars bars = make_bars(5000, 1.0, 6);
    for (int64_t t = 2000; t < 2100; ++t) { /* WTI, April 2020 */
        for (int k = 0; k < 4; ++k) {
            bars.ohlcv[5 * t + k] -= 1.05;
        }
    }
    ho_features features = compute(&bars, &options);
    for (int64_t i = 0; i < features.T * features.F; ++i) {
        if (!(fabsf(features.values[i]) <= 5.0f)) {
            fail_msg("%s at bar %lld is %g", features.name[i % features.F],
                     (long long)(i / features.F), (double)features.values[i]);
        }
    }
    ho_features_free(&features);
    ho_bars_free(&bars);
}

static void a_flat_market_has_features_of_zero(void **state)
{
    (void)state;
    ho_feature_options options;
    ho_feature_options_defaults(&options);
    options.long_window = 240;
    ho_bars bars = make_bars(3000, 100.0, 7);
    for (int64_t t = 100; t < 3000; ++t) {
        for (int k = 0; k < 4; ++k) {
            bars.ohlcv[5 * t + k] = bars.ohlcv[5 * 100 + 3];
        }
    }
    ho_features features = compute(&bars, &options);
    static const char *const zero[] = {
        "ret_1",  "ret_55",  "body",       "range_z",      "gap",     "vol_10",  "boll_pos_20",
        "cci_20", "skew_60", "autocorr_1", "parkinson_20", "high_55", "kurt_60", "drawdown_240"};
    for (size_t k = 0; k < sizeof zero / sizeof zero[0]; ++k) {
        int f = ho_feature_find(zero[k]);
        double got = (double)features.values[2999 * features.F + f];
        CHECK_NEAR(got, 0.0, strcmp(zero[k], "high_55") == 0 ? 1e-6 : 0.0);
    }
    ho_features_free(&features);
    ho_bars_free(&bars);
}

static void without_volume_its_columns_are_zero(void **state)
{
    (void)state;
    static const char *const names[] = {"volume_z", "volume_trend", "vwap_dev", "mfi_14"};
    ho_feature_options options;
    ho_feature_options_defaults(&options);
    ho_bars bars = make_bars(3000, 100.0, 8);
    bars.has_volume = false;
    ho_features features = compute(&bars, &options);
    for (int k = 0; k < 4; ++k) {
        for (int64_t t = 0; t < 3000; ++t) {
            assert_true(features.values[t * features.F + ho_feature_find(names[k])] == 0.0f);
        }
    }
    ho_features_free(&features);
    ho_bars_free(&bars);
}

static void chosen_columns_are_those_of_the_whole_table(void **state)
{
    (void)state;
    static const char *const names[] = {"dow_cos", "rsi_14", "ret_1"};
    ho_feature_options options;
    ho_feature_options_defaults(&options);
    ho_bars bars = make_bars(3000, 100.0, 9);
    ho_features all = compute(&bars, &options);
    options.use = names;
    options.use_count = 3;
    ho_features some = compute(&bars, &options);
    assert_int_equal(some.F, 3);
    assert_int_equal(some.warmup, 60);
    assert_int_equal(all.warmup, 1440);
    for (int k = 0; k < 3; ++k) {
        assert_string_equal(some.name[k], names[k]);
        for (int64_t t = 0; t < 3000; ++t) {
            float a = all.values[t * all.F + ho_feature_find(names[k])];
            assert_memory_equal(&a, &some.values[t * 3 + k], sizeof a);
        }
    }
    ho_features_free(&all);
    ho_features_free(&some);
    ho_bars_free(&bars);
}

static void an_extra_column_lags_by_its_delay(void **state)
{
    (void)state;
    static const char *const names[] = {"ret_1"};
    ho_feature_options options;
    ho_feature_options_defaults(&options);
    options.use = names;
    options.use_count = 1;
    ho_bars bars = make_bars(500, 100.0, 10);
    bars.extra_count = 1;
    bars.extra_name = calloc(1, sizeof *bars.extra_name);
    strcpy(bars.extra_name[0], "signal");
    bars.extra = malloc(500 * sizeof *bars.extra);
    for (int t = 0; t < 500; ++t) {
        bars.extra[t] = 0.001 * t;
    }
    for (int delay = 0; delay < 3; ++delay) {
        options.extra_delay = delay;
        ho_features features = compute(&bars, &options);
        assert_int_equal(features.F, 2);
        assert_string_equal(features.name[1], "signal");
        assert_true(features.values[400 * 2 + 1] == (float)bars.extra[400 - delay]);
        ho_features_free(&features);
    }
    ho_bars_free(&bars);
}

static void no_window_crosses_a_split(void **state)
{
    (void)state;
    enum { T = 7000, AT = 5000 };
    ho_feature_options options;
    ho_feature_options_defaults(&options);
    options.long_window = 240;
    ho_bars bars = make_bars(T, 100.0, 11), tail = make_bars(T, 100.0, 11);
    bars.split = calloc(T, 1);
    bars.split[AT] = 1;
    memmove(tail.ohlcv, tail.ohlcv + 5 * AT, (T - AT) * 5 * sizeof(double));
    memmove(tail.open_ns, tail.open_ns + AT, (T - AT) * sizeof(int64_t));
    memmove(tail.session, tail.session + AT, (T - AT) * sizeof(int32_t));
    tail.count = T - AT;
    ho_features whole = compute(&bars, &options), apart = compute(&tail, &options);
    assert_memory_equal(whole.values + AT * whole.F, apart.values,
                        (size_t)(T - AT) * (size_t)whole.F * sizeof(float));
    assert_int_equal(whole.split[AT - 1], 0);
    for (int64_t t = AT; t <= AT + whole.warmup; ++t) {
        assert_int_equal(whole.split[t], 1); /* no two bars of the warm-up may be traded */
    }
    assert_int_equal(whole.split[AT + whole.warmup + 1], 0);
    ho_features_free(&whole);
    ho_features_free(&apart);
    ho_bars_free(&bars);
    ho_bars_free(&tail);
}

static void a_roll_is_no_return(void **state)
{
    (void)state;
    enum { T = 4000, AT = 3000 };
    static const char *const names[] = {"ret_1",     "ret_55", "gap",     "vol_60",  "ema_50",
                                        "high_55",   "cci_20", "di_plus", "rsi_14",  "stoch_k_14",
                                        "macd_hist", "low_55", "mfi_14",  "vwap_dev"};
    enum { NAMES = sizeof names / sizeof names[0] };
    ho_feature_options options;
    ho_feature_options_defaults(&options);
    options.use = names;
    options.use_count = NAMES;
    ho_bars plain = make_bars(T, 100.0, 12), rolled = make_bars(T, 100.0, 12);
    rolled.roll_jump = calloc(T, sizeof *rolled.roll_jump);
    rolled.roll_jump[AT] = 0.5;
    for (int64_t t = AT; t < T; ++t) { /* the new contract trades half a point higher */
        for (int k = 0; k < 4; ++k) {
            rolled.ohlcv[5 * t + k] += 0.5;
        }
    }
    ho_features a = compute(&plain, &options), b = compute(&rolled, &options);
    for (int64_t t = AT; t < T; ++t) {
        for (int k = 0; k < NAMES; ++k) {
            double want = (double)a.values[t * a.F + k], got = (double)b.values[t * b.F + k];
            if (!(fabs(got - want) <= 0.02 * fmax(1.0, fabs(want)))) { /* 0.5 in 100: level only */
                fail_msg("%s at bar %lld: %g, without the roll %g", names[k], (long long)t, got,
                         want);
            }
        }
    }
    ho_features_free(&a);
    ho_features_free(&b);
    ho_bars_free(&plain);
    ho_bars_free(&rolled);
}

static void bad_settings_are_refused_by_name(void **state)
{
    (void)state;
    static const char *const unknown[] = {"rsi_15"};
    static const char *const twice[] = {"body", "body"};
    ho_feature_options options;
    ho_features features;
    ho_err err = {0};
    ho_bars bars = make_bars(1440, 100.0, 13);
    ho_feature_options_defaults(&options);
    CHECK_STATUS(ho_features_compute(&bars, &options, &features, &err), HO_EDATA);
    CHECK_CONTAINS(err.text, "1440 bars are not more than");
    options.use = unknown;
    options.use_count = 1;
    CHECK_STATUS(ho_features_compute(&bars, &options, &features, &err), HO_EINVAL);
    CHECK_CONTAINS(err.text, "nearest name is \"rsi_14\"");
    options.use = twice;
    options.use_count = 2;
    CHECK_STATUS(ho_features_compute(&bars, &options, &features, &err), HO_EINVAL);
    CHECK_CONTAINS(err.text, "twice");
    ho_feature_options_defaults(&options);
    options.long_window = 1;
    CHECK_STATUS(ho_features_compute(&bars, &options, &features, &err), HO_EINVAL);
    options.long_window = 240;
    options.extra_delay = -1;
    CHECK_STATUS(ho_features_compute(&bars, &options, &features, &err), HO_EINVAL);
    ho_bars_free(&bars);
}

static void the_table_is_that_of_the_specification(void **state)
{
    (void)state;
    static const char *const first[] = {"ret_1", "ret_2", "ret_3", "ret_5", "ret_8"};
    for (int i = 0; i < 5; ++i) {
        assert_string_equal(ho_feature_table[i].name, first[i]);
    }
    assert_string_equal(ho_feature_table[31].name, "ema_200");
    assert_string_equal(ho_feature_table[50].name, "dow_cos");
    for (int i = 0; i < HO_MARKET_FEATURES; ++i) {
        assert_int_equal(ho_feature_find(ho_feature_table[i].name), i);
        assert_true(strlen(ho_feature_table[i].formula) > 5);
    }
    assert_int_equal(ho_feature_find("nothing"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_that_of_the_specification),
        cmocka_unit_test(columns_equal_their_definitions),
        cmocka_unit_test(a_long_series_ends_as_exact_as_it_began),
        cmocka_unit_test(no_feature_sees_a_later_bar),
        cmocka_unit_test(a_perturbed_bar_is_seen_at_once),
        cmocka_unit_test(all_values_are_finite_and_clipped),
        cmocka_unit_test(a_flat_market_has_features_of_zero),
        cmocka_unit_test(without_volume_its_columns_are_zero),
        cmocka_unit_test(chosen_columns_are_those_of_the_whole_table),
        cmocka_unit_test(an_extra_column_lags_by_its_delay),
        cmocka_unit_test(no_window_crosses_a_split),
        cmocka_unit_test(a_roll_is_no_return),
        cmocka_unit_test(bad_settings_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
