/* SPDX-License-Identifier: Apache-2.0
 * `hyperopt data` as a process: its exit codes, its JSON, and the cache that it fills for workers.
 */
#include "check.h"

#include <stdlib.h>
#include <sys/wait.h>

#include <cjson/cJSON.h>

static char output[1 << 18];

/* Runs the program with the arguments; its exit code. Both streams to `output`. */
static int run(const char *arguments)
{
    char command[2048];
    (void)snprintf(command, sizeof command, "%s/bin/hyperopt data %s 2>&1", HO_BINARY_DIR,
                   arguments);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t n = fread(output, 1, sizeof output - 1, pipe);
    output[n] = '\0';
    int status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

#define TWIN(name) HO_SOURCE_DIR "/tests/data/twins/" name

static void exit_codes_tell_clean_refused_and_usable(void **state)
{
    (void)state;
    assert_int_equal(run(TWIN("plain.csv")), 0);
    CHECK_CONTAINS(output, "40 of 1m, 2024-01-02T14:30:00Z to 2024-01-02T15:09:00Z");
    CHECK_CONTAINS(output, "clean");
    assert_int_equal(run(TWIN("kaggle-btc.csv")), 5);
    CHECK_CONTAINS(output, "usable, with warnings");
    CHECK_CONTAINS(output, "empty_rows");
    assert_int_equal(run(TWIN("wide.csv")), 2);
    CHECK_CONTAINS(output, "data.symbol = one of: ES, NQ");
    assert_int_equal(run(TWIN("wide.csv") " --set symbol=ES"), 0);
    assert_int_equal(run(TWIN("wide.csv") " --set data.symbol=ES"), 0);
    assert_int_equal(run("no-such-file.csv"), 2);
    assert_int_equal(run(""), 1);
    assert_int_equal(run(TWIN("plain.csv") " --set sumbol=ES"), 1);
    CHECK_CONTAINS(output, "the nearest is data.symbol");
    assert_int_equal(run(TWIN("plain.csv") " --set gaps=some"), 1);
    assert_int_equal(run(TWIN("plain.csv") " --set timezone=Nowhere"), 1);
    assert_int_equal(run("--help"), 0);
    CHECK_CONTAINS(output, "--features");
}

static void json_says_the_same(void **state)
{
    (void)state;
    assert_int_equal(run(TWIN("kaggle-btc.csv") " --json"), 5);
    cJSON *json = cJSON_Parse(output);
    assert_non_null(json);
    assert_string_equal(cJSON_GetObjectItem(json, "status")->valuestring, "warnings");
    CHECK_NEAR(cJSON_GetObjectItem(json, "bars")->valuedouble, 40.0, 0.0);
    CHECK_NEAR(cJSON_GetObjectItem(json, "bar_seconds")->valuedouble, 60.0, 0.0);
    cJSON *finding = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "findings"), 0);
    assert_string_equal(cJSON_GetObjectItem(finding, "kind")->valuestring, "empty_rows");
    cJSON *first = cJSON_GetArrayItem(cJSON_GetObjectItem(finding, "first"), 0);
    CHECK_NEAR(cJSON_GetObjectItem(first, "line")->valuedouble, 42.0, 0.0);
    cJSON_Delete(json);
    assert_int_equal(run(TWIN("wide.csv") " --json"), 2);
    json = cJSON_Parse(output);
    assert_non_null(json);
    assert_string_equal(cJSON_GetObjectItem(json, "status")->valuestring, "refused");
    CHECK_CONTAINS(cJSON_GetObjectItem(json, "error")->valuestring, "data.symbol");
    cJSON_Delete(json);
}

static void every_gap_is_listed_when_asked_for(void **state)
{
    (void)state;
    FILE *file = fopen("gappy.csv", "w");
    assert_non_null(file);
    (void)fputs("time,open,high,low,close,volume\n", file);
    for (int minute = 0; minute < 60; ++minute) {
        if (minute % 10 != 3 && minute % 10 != 4) {
            (void)fprintf(file, "%d,1,2,1,2,3\n", 1704205800 + 60 * minute);
        }
    }
    assert_int_equal(fclose(file), 0);
    assert_int_equal(run("gappy.csv --gaps"), 5);
    CHECK_CONTAINS(output, "2024-01-02T14:32:00Z  2024-01-02T14:35:00Z         2\n");
    CHECK_CONTAINS(output, "2024-01-02T15:22:00Z  2024-01-02T15:25:00Z         2\n");
    assert_int_equal(run("gappy.csv --gaps --json"), 5);
    cJSON *json = cJSON_Parse(output);
    assert_non_null(json);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "gaps")), 6);
    cJSON_Delete(json);
}

static void features_are_precomputed_and_found_again(void **state)
{
    (void)state;
    char folder[] = "features-XXXXXX", arguments[512];
    assert_non_null(mkdtemp(folder));
    (void)snprintf(arguments, sizeof arguments,
                   HO_SOURCE_DIR "/configs/data/eurusd-1h-2017.csv --features --cache %s", folder);
    assert_int_equal(run(arguments), 0);
    CHECK_CONTAINS(output, "51 columns, 260 bars of warm-up, stored in the cache");
    assert_int_equal(run(arguments), 0);
    CHECK_CONTAINS(output, "found in the cache");
    (void)strcat(arguments, " --set features.long_window=300"); /* another key: a miss */
    assert_int_equal(run(arguments), 0);
    CHECK_CONTAINS(output, "stored in the cache");
    assert_int_equal(run(TWIN("plain.csv") " --features"), 2);
    CHECK_CONTAINS(output, "40 bars are not more than the 1440");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exit_codes_tell_clean_refused_and_usable),
        cmocka_unit_test(json_says_the_same),
        cmocka_unit_test(every_gap_is_listed_when_asked_for),
        cmocka_unit_test(features_are_precomputed_and_found_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
