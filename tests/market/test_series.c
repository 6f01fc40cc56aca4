/* SPDX-License-Identifier: Apache-2.0
 * One column from text files: headers, separators, stamps, and what is refused. */
#include <stdlib.h>

#include "check.h"
#include "market/series.h"

static const char *const names[] = {"returns", "equity", NULL};

static const char *file_of(const char *text)
{
    static const char path[] = "series.csv";
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    (void)fputs(text, file);
    assert_int_equal(fclose(file), 0);
    return path;
}

static ho_series read_ok(const char *text, const char *column)
{
    ho_series s;
    ho_err err = {0};
    CHECK_OK(ho_series_read(file_of(text), column, names, &s, &err), &err);
    return s;
}

static void check_refused(const char *text, const char *column, const char *part)
{
    ho_series s;
    ho_err err = {0};
    CHECK_STATUS(ho_series_read(file_of(text), column, names, &s, &err), HO_EDATA);
    CHECK_CONTAINS(err.text, part);
    assert_null(s.value);
}

static void one_column_without_a_header(void **state)
{
    (void)state;
    ho_series s = read_ok("\xef\xbb\xbf# a comment\n\n0.5\n-1e-3\r\n\nnan\n2%", NULL);
    assert_int_equal(s.count, 4);
    CHECK_NEAR(s.value[0], 0.5, 0.0);
    CHECK_NEAR(s.value[1], -0.001, 0.0);
    CHECK_NAN(s.value[2]);
    CHECK_NEAR(s.value[3], 0.02, 1e-18);
    assert_int_equal(s.empty, 1);
    assert_null(s.time_ns);
    ho_series_free(&s);
}

static void a_header_names_the_column(void **state)
{
    (void)state;
    const char *text = "Date;Equity;other\n2024-01-02;1,5;7\n2024-01-03;2,5;8\n";
    ho_series s = read_ok(text, NULL);
    assert_string_equal(s.column, "Equity");
    CHECK_NEAR(s.value[1], 2.5, 0.0);
    assert_true(s.time_ns[0] == INT64_C(1704153600) * 1000000000);
    assert_false(s.has_clock);
    ho_series_free(&s);
    s = read_ok(text, "OTHER");
    CHECK_NEAR(s.value[0], 7.0, 0.0);
    ho_series_free(&s);
    s = read_ok(text, "3");
    CHECK_NEAR(s.value[1], 8.0, 0.0);
    ho_series_free(&s);
}

static void stamps_may_be_epochs_with_a_clock(void **state)
{
    (void)state;
    ho_series s = read_ok("1704153660,0.1\n1704153720,0.2\n", NULL);
    assert_int_equal(s.count, 2);
    assert_true(s.time_ns[1] - s.time_ns[0] == INT64_C(60000000000));
    assert_true(s.has_clock);
    ho_series_free(&s);
    s = read_ok("1704153660,0.1\n1704153720,0.2\n", "1"); /* the stamps themselves as values */
    CHECK_NEAR(s.value[0], 1704153660.0, 0.0);
    assert_null(s.time_ns);
    ho_series_free(&s);
}

static void what_cannot_be_told_is_asked_for(void **state)
{
    (void)state;
    check_refused("a,b\n1,2\n", NULL, "which of its 2 columns");
    check_refused("a,b\n1,2\n", "c", "no column \"c\" among 2: a, b");
    check_refused("1,2\n", "3", "no column \"3\"");
    check_refused("1,2\n", "0", "no column \"0\"");
}

static void bad_fields_are_refused_by_line(void **state)
{
    (void)state;
    check_refused("", NULL, "empty");
    check_refused("# only\n\n", NULL, "nothing in it");
    check_refused("returns\n", NULL, "no rows");
    check_refused("returns\n0.1\nx\n", NULL, ":3: column 1: \"x\" is not a number");
    check_refused("returns\n0.1\n1e999\n", NULL, ":3: column 1: \"1e999\" is not a finite number");
    check_refused("t,returns\n2024-01-02,1\n2024-01-03\n", NULL, ":3: 1 columns");
    check_refused("t,returns\n2024-01-02,1\n2024-01-01,1\n", NULL, ":3: time goes backwards");
    check_refused("t,returns\n2024-01-02,1\nsoon,1\n", NULL, ":3: \"soon\" is not a time stamp");
    check_refused("t,returns\n01/02/2024,1\n", NULL, "day or month first?");
    check_refused("returns\n\"0.1\n", NULL, "quote is not closed");
}

static void a_missing_file_is_named(void **state)
{
    (void)state;
    ho_series s;
    ho_err err = {0};
    CHECK_STATUS(ho_series_read("nowhere.csv", NULL, names, &s, &err), HO_EIO);
    CHECK_CONTAINS(err.text, "nowhere.csv");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_column_without_a_header),
        cmocka_unit_test(a_header_names_the_column),
        cmocka_unit_test(stamps_may_be_epochs_with_a_clock),
        cmocka_unit_test(what_cannot_be_told_is_asked_for),
        cmocka_unit_test(bad_fields_are_refused_by_line),
        cmocka_unit_test(a_missing_file_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
