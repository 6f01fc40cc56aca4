/* SPDX-License-Identifier: Apache-2.0
 * `hyperopt metrics` from file to output: both kinds of series, sessions by day, the calendar,
 * undefined values, exit codes. */
#include <cjson/cJSON.h>
#include <fcntl.h>
#include <stdlib.h>

#include "check.h"
#include "coordinator/commands.h"
#include "kernels/fixtures.h"

static char output[65536];

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    (void)fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* Runs the command with standard output and error in `output`; returns its exit code. */
static int run(int argc, const char *const *argv)
{
    char *copy[16] = {NULL};
    int keep_out = dup(1), keep_err = dup(2);
    int file = open("out.txt", O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(file >= 0 && argc < 16);
    for (int i = 0; i < argc; i++) {
        copy[i] = strdup(argv[i]);
    }
    (void)fflush(stdout);
    dup2(file, 1);
    dup2(file, 2);
    int code = ho_cmd_metrics(argc, copy);
    (void)fflush(stdout);
    dup2(keep_out, 1);
    dup2(keep_err, 2);
    close(keep_out);
    close(keep_err);
    ssize_t n = pread(file, output, sizeof output - 1, 0);
    output[n > 0 ? n : 0] = 0;
    close(file);
    for (int i = 0; i < argc; i++) {
        free(copy[i]);
    }
    return code;
}

#define RUN(...)                                                                                   \
    run((int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)),                        \
        (const char *const[]){__VA_ARGS__})

static double metric(const cJSON *json, const char *name)
{
    const cJSON *row = cJSON_GetObjectItem(cJSON_GetObjectItem(json, "metrics"), name);
    const cJSON *value = cJSON_GetObjectItem(row, "value");
    assert_non_null(value);
    return cJSON_IsNull(value) ? NAN : value->valuedouble;
}

static const char *reason(const cJSON *json, const char *name)
{
    const cJSON *row = cJSON_GetObjectItem(cJSON_GetObjectItem(json, "metrics"), name);
    return cJSON_GetStringValue(cJSON_GetObjectItem(row, "reason"));
}

static void write_returns(const char *path, const double *r, int n)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs("returns\n", file);
    for (int i = 0; i < n; i++) {
        (void)fprintf(file, "%.17g\n", r[i]);
    }
    assert_int_equal(fclose(file), 0);
}

static void fixture_b_in_json(void **state)
{
    (void)state;
    write_returns("b.csv", fixture_b, 24);
    assert_int_equal(RUN("metrics", "b.csv", "-p", "12", "--json"), 0);
    cJSON *json = cJSON_Parse(output);
    assert_non_null(json);
    CHECK_NEAR(metric(json, "sharpe"), 0.7883202548144859, 1e-12);
    CHECK_NEAR(metric(json, "sortino"), 1.3592165786838633, 1e-12);
    CHECK_NEAR(metric(json, "max_drawdown"), -0.144672955739218, 1e-12);
    CHECK_NAN(metric(json, "cagr"));
    assert_string_equal(reason(json, "cagr"), "no_time");
    assert_string_equal(reason(json, "trades"), "no_data");
    assert_null(reason(json, "sharpe"));
    const cJSON *luck = cJSON_GetObjectItem(json, "luck");
    CHECK_NEAR(cJSON_GetObjectItem(luck, "psr")->valuedouble, 0.8580412025548032, 1e-12);
    CHECK_NEAR(cJSON_GetObjectItem(luck, "min_track_record")->valuedouble, 55.1937, 5e-5);
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(luck, "dsr")));
    cJSON_Delete(json);
}

static void an_equity_curve_and_its_trades(void **state)
{
    (void)state;
    write_file("e.csv", "nav\n100\n110\n99\n104.5\n115.5\n103.95\n100.485\n112\n120\n118\n");
    write_file("t.csv", "id,net\n1,120\n2,-80\n3,200\n4,-50\n5,0\n6,-100\n7,60\n");
    assert_int_equal(RUN("metrics", "e.csv", "--trades", "t.csv", "--json"), 0);
    cJSON *json = cJSON_Parse(output);
    CHECK_NEAR(metric(json, "max_drawdown"), -0.13, 1e-14);
    CHECK_NEAR(metric(json, "drawdown_duration"), 4, 0.0);
    CHECK_NEAR(metric(json, "total_pnl"), 18.0, 1e-12);
    CHECK_NEAR(metric(json, "trades"), 7, 0.0);
    CHECK_NEAR(metric(json, "profit_factor"), 1.6521739130434783, 1e-14);
    CHECK_NAN(metric(json, "exposure"));
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(json, "kind")), "equity");
    cJSON_Delete(json);
}

/* spec/metrics.md 1.1: three bars a day; primary figures are by session */
static void bars_of_a_day_are_one_session(void **state)
{
    (void)state;
    write_file("s.csv", "time,equity\n2024-01-01T23:00,100\n2024-01-02T09:00,100.5\n"
                        "2024-01-02T10:00,100.2\n2024-01-02T11:00,101\n2024-01-03T09:00,100.8\n"
                        "2024-01-03T10:00,101.5\n2024-01-03T11:00,101.2\n");
    assert_int_equal(RUN("metrics", "s.csv", "--json"), 0);
    cJSON *json = cJSON_Parse(output);
    CHECK_NEAR(metric(json, "sharpe"), 16.7682, 5e-5);
    CHECK_NEAR(metric(json, "bar_sharpe") * sqrt(756.0), 10.6090, 5e-5);
    CHECK_NEAR(cJSON_GetObjectItem(json, "sessions")->valuedouble, 2, 0.0);
    cJSON_Delete(json);
    assert_int_equal(RUN("metrics", "s.csv"), 0);
    CHECK_CONTAINS(output, "252 sessions a year (calendar)");
    CHECK_CONTAINS(output, "session returns, ddof 1");
    CHECK_CONTAINS(output, "note: under 30 days");
}

static void a_calendar_with_weekends_is_round_the_clock(void **state)
{
    (void)state;
    char text[8192] = "date,ret\n";
    for (int day = 1; day <= 28; day++) {
        char row[64];
        snprintf(row, sizeof row, "2024-02-%02d,%g\n", day, day % 2 ? 0.01 : -0.008);
        strcat(text, row);
    }
    write_file("w.csv", text);
    assert_int_equal(RUN("metrics", "w.csv", "--json"), 0);
    cJSON *json = cJSON_Parse(output);
    const cJSON *periods = cJSON_GetObjectItem(json, "sessions_per_year");
    CHECK_NEAR(cJSON_GetObjectItem(periods, "value")->valuedouble, 365.0, 0.0);
    CHECK_NEAR(cJSON_GetObjectItem(periods, "observed")->valuedouble, 365.25, 1e-9);
    cJSON_Delete(json);
    assert_int_equal(RUN("metrics", "w.csv", "-p", "252"), 0);
    CHECK_CONTAINS(output, "note: the stamps show 365.");
}

static void a_flat_series_has_no_sharpe_but_a_reason(void **state)
{
    (void)state;
    write_file("f.csv", "returns\n0\n0\n0\n");
    assert_int_equal(RUN("metrics", "f.csv"), 0);
    CHECK_CONTAINS(output, "- (flat)");
    CHECK_CONTAINS(output, "- (no_drawdown)");
    assert_null(strstr(output, "nan"));
}

static void ruin_freezes_the_series(void **state)
{
    (void)state;
    write_file("r.csv", "equity\n100\n50\n0\n80\n");
    assert_int_equal(RUN("metrics", "r.csv", "--json"), 0);
    cJSON *json = cJSON_Parse(output);
    assert_string_equal(reason(json, "sharpe"), "ruined");
    CHECK_NEAR(metric(json, "total_return"), -1.0, 0.0);
    CHECK_NEAR(metric(json, "max_drawdown"), -1.0, 0.0);
    cJSON_Delete(json);
}

static void deflation_needs_the_trials_variance(void **state)
{
    (void)state;
    write_returns("b.csv", fixture_b, 24);
    assert_int_equal(RUN("metrics", "b.csv", "--trials", "10"), HO_EXIT_USAGE);
    CHECK_CONTAINS(output, "--trial-variance");
    assert_int_equal(
        RUN("metrics", "b.csv", "-p", "12", "--trials", "10", "--trial-variance", "0.1"), 0);
    CHECK_CONTAINS(output, "dsr");
    assert_int_equal(RUN("metrics", "b.csv", "--risk-free", "0.02", "-p", "12"), 0);
    CHECK_CONTAINS(output, "risk-free rate 0.02 a year");
}

static void what_is_wrong_is_said_and_the_exit_code_tells(void **state)
{
    (void)state;
    assert_int_equal(RUN("metrics"), HO_EXIT_USAGE);
    assert_int_equal(RUN("metrics", "nowhere.csv"), HO_EXIT_STORE);
    write_file("u.csv", "x\n0.5\n0.7\n");
    assert_int_equal(RUN("metrics", "u.csv"), HO_EXIT_USAGE);
    CHECK_CONTAINS(output, "--kind returns or --kind equity");
    assert_int_equal(RUN("metrics", "u.csv", "--kind", "returns"), 0);
    write_file("u.csv", "equity\n-5\n0.7\n");
    assert_int_equal(RUN("metrics", "u.csv"), HO_EXIT_DATA);
    CHECK_CONTAINS(output, "must be above 0");
    write_file("u.csv", "equity\n5\nseven\n");
    assert_int_equal(RUN("metrics", "u.csv"), HO_EXIT_DATA);
    CHECK_CONTAINS(output, "u.csv:3");
    assert_int_equal(RUN("metrics", "b.csv", "--trades", "nowhere.csv"), HO_EXIT_STORE);
    assert_int_equal(RUN("metrics", "--help"), 0);
    CHECK_CONTAINS(output, "--sessions-per-year");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixture_b_in_json),
        cmocka_unit_test(an_equity_curve_and_its_trades),
        cmocka_unit_test(bars_of_a_day_are_one_session),
        cmocka_unit_test(a_calendar_with_weekends_is_round_the_clock),
        cmocka_unit_test(a_flat_series_has_no_sharpe_but_a_reason),
        cmocka_unit_test(ruin_freezes_the_series),
        cmocka_unit_test(deflation_needs_the_trials_variance),
        cmocka_unit_test(what_is_wrong_is_said_and_the_exit_code_tells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
