/* SPDX-License-Identifier: Apache-2.0
 * Numbers, stamps and time zones by themselves. */
#include "check.h"

#include <stdlib.h>
#include <time.h>

#include "market/number.h"
#include "market/stamp.h"
#include "market/zone.h"

static void numbers_are_read_to_the_last_bit(void **state)
{
    (void)state;
    static const char *const good[] = {"0",
                                       "-0",
                                       "1",
                                       "+1.5",
                                       ".5",
                                       "5.",
                                       "4512.25",
                                       "0.00002820",
                                       "31.950000762939453",
                                       "9007199254740993",
                                       "1e-7",
                                       "1.5E+10",
                                       "123456789012345678901234567890",
                                       "0.1",
                                       "1e308",
                                       "5e-324"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; ++i) {
        double got = NAN, want = strtod(good[i], NULL);
        assert_int_equal(ho_number_parse(good[i], strlen(good[i]), '.', ',', &got), HO_NUMBER_OK);
        assert_memory_equal(&got, &want, sizeof got);
    }
}

static void words_for_nothing_and_infinity_are_told_from_rubbish(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        ho_number_kind kind;
    } cases[] = {{"", HO_NUMBER_EMPTY},
                 {"NaN", HO_NUMBER_EMPTY},
                 {"null", HO_NUMBER_EMPTY},
                 {"N/A", HO_NUMBER_EMPTY},
                 {"-", HO_NUMBER_EMPTY},
                 {"inf", HO_NUMBER_INFINITE},
                 {"-Infinity", HO_NUMBER_INFINITE},
                 {"1e309", HO_NUMBER_INFINITE},
                 {"1x", HO_NUMBER_BAD},
                 {"1.2.3", HO_NUMBER_BAD},
                 {"0x10", HO_NUMBER_BAD},
                 {"1e", HO_NUMBER_BAD},
                 {"--1", HO_NUMBER_BAD},
                 {"1 2", HO_NUMBER_BAD},
                 {"e5", HO_NUMBER_BAD},
                 {".", HO_NUMBER_BAD},
                 {"nan5", HO_NUMBER_BAD},
                 {"infx", HO_NUMBER_BAD}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        double got = 0.0;
        if (ho_number_parse(cases[i].text, strlen(cases[i].text), '.', ',', &got) !=
            cases[i].kind) {
            fail_msg("\"%s\"", cases[i].text);
        }
    }
}

static void thousands_must_be_groups_of_three(void **state)
{
    (void)state;
    double got = 0.0;
    assert_int_equal(ho_number_parse("1,234,567.5", 11, '.', ',', &got), HO_NUMBER_OK);
    CHECK_NEAR(got, 1234567.5, 0.0);
    assert_int_equal(ho_number_parse("1.234.567,5", 11, ',', '.', &got), HO_NUMBER_OK);
    CHECK_NEAR(got, 1234567.5, 0.0);
    static const char *const bad[] = {"1,23",   "12,34,567", "1234,567", ",123",
                                      "1,,234", "1,234,",    "1,2345"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        assert_int_equal(ho_number_parse(bad[i], strlen(bad[i]), '.', ',', &got), HO_NUMBER_BAD);
    }
    assert_int_equal(ho_number_parse("1,234", 5, '.', '\0', &got), HO_NUMBER_BAD);
    assert_int_equal(ho_number_parse_scaled("1.5M", 4, '.', ',', &got), HO_NUMBER_OK);
    CHECK_NEAR(got, 1.5e6, 0.0);
    assert_int_equal(ho_number_parse_scaled("M", 1, '.', ',', &got), HO_NUMBER_BAD);
}

typedef struct stamp_case {
    const char *text;
    ho_stamp_order order;
    ho_stamp_kind kind;
    int64_t s;
    int32_t ns;
} stamp_case;

static void stamps_of_every_form_are_read(void **state)
{
    (void)state;
    enum { T = 1704205800 }; /* 2024-01-02T14:30:00 */
    static const stamp_case cases[] = {
        {"1704205800", 0, HO_STAMP_EPOCH, T, 0},
        {"1704205800.25", 0, HO_STAMP_EPOCH, T, 250000000},
        {"1704205800123", 0, HO_STAMP_EPOCH, T, 123000000},
        {"1704205800123456", 0, HO_STAMP_EPOCH, T, 123456000},
        {"1704205800123456789", 0, HO_STAMP_EPOCH, T, 123456789},
        {"2024-01-02T14:30:00Z", 0, HO_STAMP_UTC, T, 0},
        {"2024-01-02 14:30:00 UTC", 0, HO_STAMP_UTC, T, 0},
        {"2024-01-02T09:30:00-05:00", 0, HO_STAMP_UTC, T, 0},
        {"2024-01-02T20:00:00+0530", 0, HO_STAMP_UTC, T, 0},
        {"2024-01-02T15:30+01", 0, HO_STAMP_UTC, T, 0},
        {"2024-01-02T14:30:00.123456789Z", 0, HO_STAMP_UTC, T, 123456789},
        {"2024-01-02 14:30:00.1", 0, HO_STAMP_LOCAL, T, 100000000},
        {"2024-01-02 14:30", 0, HO_STAMP_LOCAL, T, 0},
        {"2024/01/02 14:30:00", 0, HO_STAMP_LOCAL, T, 0},
        {"2024.01.02 14:30", 0, HO_STAMP_LOCAL, T, 0},
        {"20240102 143000", 0, HO_STAMP_LOCAL, T, 0},
        {"20240102  14:30:00", 0, HO_STAMP_LOCAL, T, 0},
        {"20240102143000", 0, HO_STAMP_LOCAL, T, 0},
        {"202401021430", 0, HO_STAMP_LOCAL, T, 0},
        {"20240102", 0, HO_STAMP_DATE, T - 52200, 0},
        {"2024-01-02", 0, HO_STAMP_DATE, T - 52200, 0},
        {"2024-01-02 02:30 PM", 0, HO_STAMP_LOCAL, T, 0},
        {"2024-01-02 02-PM", 0, HO_STAMP_LOCAL, T - 1800, 0},
        {"2024-01-02 12:00 AM", 0, HO_STAMP_LOCAL, T - 52200, 0},
        {"02.01.2024 14:30:00.000", HO_STAMP_ORDER_DMY, HO_STAMP_LOCAL, T, 0},
        {"02.01.2024 15:30:00.000 GMT+0100", HO_STAMP_ORDER_DMY, HO_STAMP_UTC, T, 0},
        {"1/2/2024 2:30 PM", HO_STAMP_ORDER_MDY, HO_STAMP_LOCAL, T, 0},
        {"02-Jan-2024 14:30", 0, HO_STAMP_LOCAL, T, 0},
        {"Jan 02, 2024", 0, HO_STAMP_DATE, T - 52200, 0},
        {"2 January 2024", 0, HO_STAMP_DATE, T - 52200, 0},
        {"2024-01-01 24:00", 0, HO_STAMP_LOCAL, T - 52200, 0},
        {"1900-01-01", 0, HO_STAMP_DATE, -2208988800, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        ho_stamp got;
        ho_stamp_result result = ho_stamp_parse(cases[i].text, strlen(cases[i].text),
                                                cases[i].order, 0, 1800000000, &got);
        if (result != HO_STAMP_OK || got.kind != cases[i].kind || got.s != cases[i].s ||
            got.ns != cases[i].ns) {
            fail_msg("\"%s\": result %d kind %d s %lld ns %d", cases[i].text, result, got.kind,
                     (long long)got.s, got.ns);
        }
    }
}

static void what_is_no_stamp_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"2024-13-01",
                                      "2024-02-30",
                                      "2023-02-29",
                                      "2024-01-02T",
                                      "2024-01-02 25:00",
                                      "2024-01-02 10:60",
                                      "2024-01-02 10:00 EST",
                                      "2024-01-02Z",
                                      "2024-01",
                                      "hello",
                                      "2024-01-02 14:30:00 +99",
                                      "13:00",
                                      "2024-01-02 13:00 PM",
                                      "2024-01-02 24:01",
                                      "-5"};
    ho_stamp got;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        if (ho_stamp_parse(bad[i], strlen(bad[i]), HO_STAMP_ORDER_YMD, 0, 1800000000, &got) ==
            HO_STAMP_OK) {
            fail_msg("\"%s\" is read as %lld", bad[i], (long long)got.s);
        }
    }
    assert_int_equal(ho_stamp_parse("1/2/2024", 8, HO_STAMP_ORDER_UNKNOWN, 0, 1800000000, &got),
                     HO_STAMP_AMBIGUOUS);
    assert_int_equal(ho_stamp_parse("99999999999999999999", 20, 0, 0, 1800000000, &got),
                     HO_STAMP_RANGE);
    assert_int_equal(ho_stamp_parse("1900000000", 10, 0, 0, 1800000000, &got), HO_STAMP_RANGE);
}

static void zones_agree_with_the_c_library(void **state)
{
    (void)state;
    static const char *const names[] = {"America/New_York",    "America/Chicago",   "Europe/London",
                                        "Europe/Dublin",       "Asia/Tokyo",        "Asia/Kolkata",
                                        "Australia/Lord_Howe", "America/Sao_Paulo", "Pacific/Apia",
                                        "Africa/Casablanca"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
        ho_zone *zone = NULL;
        ho_err err = {0};
        CHECK_OK(ho_zone_load(names[i], &zone, &err), &err);
        (void)setenv("TZ", names[i], 1);
        tzset();
        for (int64_t s = -1500000000; s < 4000000000; s += 987654) { /* 1922 to 2096 */
            time_t t = (time_t)s;
            struct tm parts;
            (void)localtime_r(&t, &parts);
            if (ho_zone_offset(zone, s) != parts.tm_gmtoff) {
                fail_msg("%s at %lld: %d, want %ld", names[i], (long long)s,
                         ho_zone_offset(zone, s), parts.tm_gmtoff);
            }
            int64_t utc_s[2] = {0, 0};
            int n = ho_zone_from_local(zone, s + parts.tm_gmtoff, utc_s);
            assert_true(n >= 1 && (utc_s[0] == s || (n == 2 && utc_s[1] == s)));
        }
        ho_zone_free(&zone);
    }
    (void)unsetenv("TZ");
    tzset();
}

static void the_repeated_and_the_skipped_hour_are_told(void **state)
{
    (void)state;
    ho_zone *zone = NULL;
    ho_err err = {0};
    int64_t utc_s[2];
    CHECK_OK(ho_zone_load("America/New_York", &zone, &err), &err);
    int64_t local = ho_days_from_civil(2024, 11, 3) * 86400 + 5400; /* 01:30 */
    assert_int_equal(ho_zone_from_local(zone, local, utc_s), 2);
    assert_int_equal(utc_s[0], 1730611800);
    assert_int_equal(utc_s[1], 1730615400);
    local = ho_days_from_civil(2024, 3, 10) * 86400 + 9000; /* 02:30 */
    assert_int_equal(ho_zone_from_local(zone, local, utc_s), 0);
    ho_zone_free(&zone);
    ho_zone_free(&zone);
    CHECK_OK(ho_zone_load("-05:00", &zone, &err), &err);
    assert_int_equal(ho_zone_from_local(zone, local, utc_s), 1);
    assert_int_equal(utc_s[0], local + 18000);
    ho_zone_free(&zone);
}

static void the_calendar_goes_there_and_back(void **state)
{
    (void)state;
    for (int64_t days = -200000; days < 200000; days += 37) {
        int64_t year = 0;
        int month = 0, day = 0;
        ho_civil_from_days(days, &year, &month, &day);
        assert_int_equal(ho_days_from_civil(year, month, day), days);
    }
    assert_int_equal(ho_weekday(0), 3);                                /* Thursday */
    assert_int_equal(ho_weekday(ho_days_from_civil(2024, 1, 1)), 0);   /* Monday */
    assert_int_equal(ho_weekday(ho_days_from_civil(1969, 12, 28)), 6); /* Sunday */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_read_to_the_last_bit),
        cmocka_unit_test(words_for_nothing_and_infinity_are_told_from_rubbish),
        cmocka_unit_test(thousands_must_be_groups_of_three),
        cmocka_unit_test(stamps_of_every_form_are_read),
        cmocka_unit_test(what_is_no_stamp_is_refused),
        cmocka_unit_test(zones_agree_with_the_c_library),
        cmocka_unit_test(the_repeated_and_the_skipped_hour_are_told),
        cmocka_unit_test(the_calendar_goes_there_and_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
