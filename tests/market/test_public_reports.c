/* SPDX-License-Identifier: Apache-2.0
 * Faults that users of other programs reported, each as its whole kind: named for what must hold
 * here. The report that stands for the kind is named beside each test. */
#include "market/load_file.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "market/features.h"

#define HEAD "time,open,high,low,close,volume\n"

static int64_t days_from(int y, int m, int d)
{
    struct tm parts = {.tm_year = y - 1900, .tm_mon = m - 1, .tm_mday = d};
    return (int64_t)timegm(&parts);
}

/* Wall-clock rows of New York by the step around a date, from UTC, with stdlib's own zone. */
static char *wall_clock_rows(int64_t from_s, int64_t to_s, int64_t step_s)
{
    char *text = malloc(1 << 21);
    assert_non_null(text);
    size_t used = (size_t)snprintf(text, 1 << 21, HEAD);
    (void)setenv("TZ", "America/New_York", 1);
    tzset();
    for (int64_t s = from_s; s < to_s; s += step_s) {
        time_t t = (time_t)s;
        struct tm parts;
        char stamp[40];
        (void)localtime_r(&t, &parts);
        (void)strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M:%S", &parts);
        double price = 100.0 + (double)(s % 977) * 0.01;
        used +=
            (size_t)snprintf(text + used, (1 << 21) - used, "%s,%.2f,%.2f,%.2f,%.2f,%d\n", stamp,
                             price, price + 1.0, price - 1.0, price + 0.5, (int)(s % 97));
    }
    (void)unsetenv("TZ");
    tzset();
    return text;
}

/* QuantConnect/Lean 4630, 4925: the hour that comes twice gave duplicates or bars out of order. */
static void a_repeated_hour_is_two_hours_in_order(void **state)
{
    (void)state;
    int64_t november = days_from(2024, 11, 2), march = days_from(2024, 3, 9);
    static const int64_t steps[] = {60, 300, 3600};
    for (size_t i = 0; i < 3; ++i) {
        int64_t starts[] = {november, march};
        for (int k = 0; k < 2; ++k) {
            int64_t from = starts[k], to = starts[k] + 3 * 86400;
            char *text = wall_clock_rows(from, to, steps[i]);
            loaded l = load_good(text, "timezone=America/New_York");
            assert_int_equal(l.bars.count, 3 * 86400 / steps[i]);
            for (int64_t t = 0; t < l.bars.count; ++t) {
                CHECK_NEAR(open_s(&l, t), (double)(from + t * steps[i]), 0.0);
            }
            assert_int_equal(found(&l, HO_DIRT_DUPLICATE) + found(&l, HO_DIRT_CONFLICT), 0);
            assert_int_equal(found(&l, HO_DIRT_DST_HOUR), k == 0 ? 7200 / steps[i] : 0);
            loaded_free(&l);
            free(text);
        }
    }
    char *text = wall_clock_rows(november, november + 3 * 86400, 3600);
    check_refused(text, "timezone=America/New_York dst=refuse", "comes twice on that day");
    free(text);
    /* an identical row repeated inside that hour is a duplicate all the same */
    loaded l = load_good(HEAD "2024-11-03 00:30:00,1,2,1,2,3\n2024-11-03 01:00:00,1,2,1,2,4\n"
                              "2024-11-03 01:00:00,1,2,1,2,4\n2024-11-03 01:30:00,1,2,1,2,5\n"
                              "2024-11-03 01:00:00,1,2,1,2,6\n2024-11-03 01:30:00,1,2,1,2,7\n"
                              "2024-11-03 02:00:00,1,2,1,2,8\n",
                         "timezone=America/New_York");
    assert_int_equal(l.bars.count, 6);
    assert_int_equal(found(&l, HO_DIRT_DUPLICATE), 1);
    CHECK_NEAR(open_s(&l, 1), 1730610000.0, 0.0); /* the first 01:00 */
    CHECK_NEAR(open_s(&l, 3), 1730613600.0, 0.0); /* the second */
    loaded_free(&l);
}

/* The other half of the kind: a time that the clock jumps over does not exist. */
static void a_skipped_hour_is_refused_with_the_mend(void **state)
{
    (void)state;
    static const char text[] = HEAD "2024-03-10 01:30:00,1,2,1,2,3\n2024-03-10 02:30:00,1,2,1,2,3\n"
                                    "2024-03-10 03:30:00,1,2,1,2,3\n";
    check_refused(text, "timezone=America/New_York",
                  "test-input:3: 2024-03-10 02:30 does not exist in America/New_York");
    check_refused(text, "timezone=America/New_York", "write \"-05:00\"");
    loaded l = load_good(text, "timezone=-05:00"); /* as HistData stamps: no daylight saving */
    CHECK_NEAR(open_s(&l, 1), 1710055800.0 + 0.0, 0.0);
    loaded_free(&l);
}

/* Lean 4630: daily bars over a clock change came twice. */
static void days_over_a_clock_change_come_once(void **state)
{
    (void)state;
    int64_t starts[] = {days_from(2024, 11, 1), days_from(2024, 3, 8)};
    for (int k = 0; k < 2; ++k) {
        char *text = wall_clock_rows(starts[k] + 4 * 3600 + 3600 * (k == 1), /* local midnight */
                                     starts[k] + 7 * 86400, 1800);
        loaded l = load_good(text, "timezone=America/New_York bar=1d");
        assert_true(l.bars.count >= 6);
        for (int64_t t = 1; t < l.bars.count; ++t) {
            int64_t hours = (l.bars.open_ns[t] - l.bars.open_ns[t - 1]) / 3600000000000LL;
            assert_true(hours >= 23 && hours <= 25);
            assert_int_equal(l.bars.session[t], l.bars.session[t - 1] + 1);
        }
        loaded_free(&l);
        free(text);
    }
}

/* TorchTrade 10, nautilus_trader 1591: a longer bar was seen before it closed. */
static void a_feature_of_longer_bars_does_not_change_with_later_bars(void **state)
{
    (void)state;
    enum { MINUTES = 9000 };
    static const char *const lengths[] = {"bar=5m", "bar=15m", "bar=1h"};
    double price[MINUTES];
    uint64_t seed = 5;
    char *text = malloc(1 << 20);
    for (int variant = 0; variant < 3; ++variant) {
        int64_t cut = 7003;
        ho_features first = {0};
        loaded kept = {0};
        for (int run = 0; run < 2; ++run) {
            seed = 5;
            double p = 100.0;
            size_t used = (size_t)snprintf(text, 1 << 20, HEAD);
            for (int i = 0; i < MINUTES; ++i) {
                seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
                p += 0.01 * (double)((int)(seed >> 60) - 7);
                price[i] = run == 1 && i >= cut ? 3.0 * p : p; /* another future */
                used +=
                    (size_t)snprintf(text + used, (1 << 20) - used, "%d,%.2f,%.2f,%.2f,%.2f,%d\n",
                                     1704067200 + 60 * i, price[i], price[i] + 0.5, price[i] - 0.5,
                                     price[i] + 0.1, (int)(seed >> 58));
            }
            loaded l = load_good(text, lengths[variant]);
            ho_feature_options options;
            ho_features features;
            ho_err err = {0};
            ho_feature_options_defaults(&options);
            options.long_window = 60;
            static const char *const names[] = {"ret_1", "body", "vol_10", "rsi_14", "atr_14"};
            options.use = names;
            options.use_count = 5;
            CHECK_OK(ho_features_compute(&l.bars, &options, &features, &err), &err);
            if (run == 0) {
                first = features;
                kept = l;
                continue;
            }
            int64_t cut_ns = (1704067200LL + 60 * cut) * 1000000000LL;
            int64_t same = 0;
            while (same < l.bars.count && l.bars.open_ns[same] + l.bars.interval_ns <= cut_ns) {
                ++same; /* closed by the moment of the change: may be used then */
            }
            assert_true(same > 100);
            assert_memory_equal(first.values, features.values,
                                (size_t)same * (size_t)features.F * sizeof(float));
            assert_memory_equal(kept.bars.ohlcv, l.bars.ohlcv, (size_t)same * 5 * sizeof(double));
            /* the bar that holds the change opened before it, and differs: it must not be used
             * before its close */
            assert_true(l.bars.open_ns[same] < cut_ns);
            assert_true(l.bars.ohlcv[5 * same + 3] != kept.bars.ohlcv[5 * same + 3]);
            ho_features_free(&features);
            loaded_free(&l);
        }
        ho_features_free(&first);
        loaded_free(&kept);
    }
    free(text);
}

/* backtesting.py (resampled days): Saturdays and Sundays became bars, empty or of one trade. */
static void no_bar_is_made_where_nothing_traded(void **state)
{
    (void)state;
    enum { WEEK_H = 168 };
    char *text = malloc(1 << 20);
    assert_non_null(text);
    size_t used = (size_t)snprintf(text, 1 << 20, HEAD);
    for (int hour = 0; hour < 6 * WEEK_H; ++hour) { /* from Sunday 22:00 to Friday 22:00 UTC */
        if (hour % WEEK_H < 120) {
            used += (size_t)snprintf(text + used, (1 << 20) - used, "%d,1,2,1,2,3\n",
                                     1704664800 + 3600 * hour);
        }
    }
    static const char *const bars[] = {"bar=1d", "bar=4h", "bar=1w", ""};
    static const int64_t count[] = {6 * 5, 6 * 35 - 1, 5, 6 * 120}; /* the last: not over */
    for (int i = 0; i < 4; ++i) {
        loaded l = load_good(text, bars[i]);
        assert_int_equal(l.bars.count, count[i]);
        for (int64_t t = 0; t < l.bars.count; ++t) {
            assert_true(l.bars.ohlcv[5 * t + 4] >= 3.0);
            assert_true(i != 0 || l.bars.ohlcv[5 * t + 4] == 72.0);
        }
        loaded_free(&l);
    }
    free(text);
}

/* rotki 7114, ccxt 8379: seconds taken for milliseconds and the reverse. */
static void an_epoch_in_any_unit_is_the_same_instant(void **state)
{
    (void)state;
    static const char *const units[] = {"", "000", "000000", "000000000"};
    float *want = NULL;
    size_t bytes = 0;
    char *text = malloc(1 << 20);
    for (int u = 0; u < 4; ++u) {
        size_t used = (size_t)snprintf(text, 1 << 20, HEAD);
        for (int i = 0; i < 2000; ++i) {
            double p = 100.0 + (double)(i * 7919 % 613) * 0.01;
            used +=
                (size_t)snprintf(text + used, (1 << 20) - used, "%d%s,%.2f,%.2f,%.2f,%.2f,%d\n",
                                 1704205800 + 60 * i, units[u], p, p + 1, p - 1, p + 0.5, i % 7);
        }
        loaded l = load_good(text, "");
        CHECK_NEAR(open_s(&l, 0), 1704205800.0, 0.0); /* 2024-01-02T14:30Z */
        ho_feature_options options;
        ho_features features;
        ho_err err = {0};
        ho_feature_options_defaults(&options);
        CHECK_OK(ho_features_compute(&l.bars, &options, &features, &err), &err);
        bytes = (size_t)features.T * (size_t)features.F * sizeof(float);
        if (!want) {
            want = malloc(bytes);
            memcpy(want, features.values, bytes);
        }
        assert_memory_equal(features.values, want, bytes);
        ho_features_free(&features);
        loaded_free(&l);
    }
    free(want);
    free(text);
    check_refused(HEAD "1704205800,1,2,1,2,3\n1704205860,1,2,1,2,3\n", "epoch_unit=ms",
                  "data.epoch_unit");
    check_refused(HEAD "17042058,1,2,1,2,3\n17042118,1,2,1,2,3\n", "", "not between 1980 and");
    check_refused(HEAD "99999999999,1,2,1,2,3\n99999999999,1,2,1,2,3\n", "", "not between 1980");
    /* Binance, 2025-01-01: the unit changes inside a concatenation; converted, and said */
    loaded l = load_good("1735689540000,1,2,1,2,3\n1735689600000000,1,2,1,2,3\n"
                         "1735689660000000,1,2,1,2,3\n",
                         "");
    assert_int_equal(l.bars.interval_ns, 60000000000LL);
    assert_int_equal(found(&l, HO_DIRT_UNIT_CHANGE), 1);
    assert_int_equal(l.report.finding[HO_DIRT_UNIT_CHANGE].place[0].line, 2);
    assert_true(ho_data_report_has_warnings(&l.report));
    loaded_free(&l);
}

/* Of the same kind: the machine's own zone came into the stamps. */
static void the_machines_zone_changes_nothing(void **state)
{
    (void)state;
    static const char *const zones[] = {"UTC", "Asia/Tokyo", "America/New_York"};
    char *text = wall_clock_rows(days_from(2024, 10, 30), days_from(2024, 11, 6), 300);
    loaded want = {0};
    ho_features first = {0};
    ho_feature_options options;
    ho_err err = {0};
    ho_feature_options_defaults(&options);
    for (int i = 0; i < 3; ++i) {
        (void)setenv("TZ", zones[i], 1);
        tzset();
        loaded l = load_good(text, "timezone=America/New_York start=2024-10-30");
        ho_features features;
        CHECK_OK(ho_features_compute(&l.bars, &options, &features, &err), &err);
        if (i == 0) {
            want = l;
            first = features;
            continue;
        }
        check_same_bars(&l.bars, &want.bars, zones[i]);
        assert_memory_equal(l.bars.session, want.bars.session,
                            (size_t)l.bars.count * sizeof(int32_t));
        assert_memory_equal(features.values, first.values,
                            (size_t)features.T * (size_t)features.F * sizeof(float));
        ho_features_free(&features);
        loaded_free(&l);
    }
    (void)unsetenv("TZ");
    tzset();
    ho_features_free(&first);
    loaded_free(&want);
    free(text);
}

/* vectorbt 510: prices at or below zero (WTI in April 2020, spreads) were an error or NaN. */
static void prices_at_or_below_zero_are_bars_like_others(void **state)
{
    (void)state;
    char *text = malloc(1 << 20);
    size_t used = (size_t)snprintf(text, 1 << 20, HEAD);
    for (int i = 0; i < 600; ++i) {
        double p = 20.0 * sin(i * 0.05) + (double)(i % 5) * 0.1;
        used += (size_t)snprintf(text + used, (1 << 20) - used, "%d,%.2f,%.2f,%.2f,%.2f,%d\n",
                                 1577836800 + 3600 * i, p, p + 1, p - 1, i % 50 ? p + 0.5 : 0.0,
                                 1 + i % 9);
    }
    loaded l = load_good(text, "contradictions=keep");
    ho_feature_options options;
    ho_features features;
    ho_err err = {0};
    assert_true(found(&l, HO_DIRT_NON_POSITIVE) > 200);
    assert_int_equal(l.bars.count, 600);
    assert_true(ho_data_report_has_warnings(&l.report));
    ho_feature_options_defaults(&options);
    CHECK_OK(ho_features_compute(&l.bars, &options, &features, &err), &err);
    for (int64_t i = 0; i < features.T * features.F; ++i) {
        assert_true(fabsf(features.values[i]) <= 5.0f);
    }
    ho_features_free(&features);
    loaded_free(&l);
    free(text);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* vectorbt 797: memory many times the data's. */
static void memory_stays_below_twice_the_tensor(void **state)
{
    (void)state;
    enum { ROWS = 400000 };
    if (SANITIZED) {
        skip(); /* shadow memory is counted, too */
    }
    const char *path = "large.csv";
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs(HEAD, file);
    for (int i = 0; i < ROWS; ++i) {
        double p = 100.0 + (double)((int64_t)i * 7919 % 613) * 0.01;
        (void)fprintf(file, "%d,%.2f,%.2f,%.2f,%.2f,%d\n", 1600000020 + 60 * i, p, p + 1, p - 1,
                      p + 0.5, i % 7);
    }
    assert_int_equal(fclose(file), 0);
    pid_t child = fork(); /* so that the peak is that of this work alone */
    if (child == 0) {
        struct rusage before, after;
        ho_data_options options;
        ho_feature_options wanted;
        ho_bars bars;
        ho_features features;
        (void)getrusage(RUSAGE_SELF, &before);
        ho_data_options_defaults(&options);
        ho_feature_options_defaults(&wanted);
        options.path = &path;
        options.path_count = 1;
        if (ho_bars_load(&options, &bars, NULL, NULL) != HO_OK ||
            ho_features_compute(&bars, &wanted, &features, NULL) != HO_OK) {
            _exit(2);
        }
        (void)getrusage(RUSAGE_SELF, &after);
        double peak = (double)(after.ru_maxrss - before.ru_maxrss) * 1024.0;
        double tensor = (double)features.T * features.F * sizeof(float);
        if (peak > 2.0 * tensor) {
            (void)fprintf(stderr, "peak %.0f bytes, tensor %.0f\n", peak, tensor);
        }
        _exit(peak <= 2.0 * tensor ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    (void)unlink(path);
}

/* backtesting.py: rows that are not bars (NaN, unsorted, repeated) reached the strategy. */
static void nothing_but_finite_ascending_bars_leaves_the_loader(void **state)
{
    (void)state;
    static const char *const texts[] = {
        HEAD "2024-01-02,1,2,1,nan,3\n2024-01-03,1,2,1,2,3\n",
        HEAD "2024-01-02,1,inf,1,2,3\n2024-01-03,1,2,1,2,3\n",
        HEAD "2024-01-03,1,2,1,2,3\n2024-01-02,1,2,1,2,3\n2024-01-04,1,2,1,2,3\n",
        HEAD "2024-01-02,1,2,1,2,3\n2024-01-02,1,2,1,1,3\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; ++i) {
        check_refused(texts[i], "", "test-input:");
    }
    loaded l =
        load_good(HEAD "2024-01-02,1,2,1,2,3\n2024-01-03,,,,,\n2024-01-04,1,2,1,2,nan\n", "");
    assert_int_equal(l.bars.count, 2);
    for (int64_t i = 0; i < 5 * l.bars.count; ++i) {
        assert_true(isfinite(l.bars.ohlcv[i]));
    }
    loaded_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_repeated_hour_is_two_hours_in_order),
        cmocka_unit_test(a_skipped_hour_is_refused_with_the_mend),
        cmocka_unit_test(days_over_a_clock_change_come_once),
        cmocka_unit_test(a_feature_of_longer_bars_does_not_change_with_later_bars),
        cmocka_unit_test(no_bar_is_made_where_nothing_traded),
        cmocka_unit_test(an_epoch_in_any_unit_is_the_same_instant),
        cmocka_unit_test(the_machines_zone_changes_nothing),
        cmocka_unit_test(prices_at_or_below_zero_are_bars_like_others),
        cmocka_unit_test(memory_stays_below_twice_the_tensor),
        cmocka_unit_test(nothing_but_finite_ascending_bars_leaves_the_loader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
