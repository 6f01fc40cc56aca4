/* SPDX-License-Identifier: Apache-2.0
 * Options of a command: every kind, its range, what is refused. */
#include "check.h"
#include "coordinator/commands.h"

typedef struct values {
    bool flag;
    const char *text;
    int64_t whole;
    double number, seconds;
    int format;
    ho_option_list list;
} values;

static ho_status parse(values *v, int argc, const char **argv, ho_arguments *out)
{
    const ho_option option[] = {
        {"flag", 'f', HO_OPTION_FLAG, &v->flag, NULL, "a flag", 0, 0},
        {"text", 0, HO_OPTION_STRING, &v->text, "TEXT", "a text", 0, 0},
        {"whole", 'n', HO_OPTION_INTEGER, &v->whole, "N", "a number", 1, 100},
        {"number", 0, HO_OPTION_NUMBER, &v->number, "X", "a number", 0, 0},
        {"time", 0, HO_OPTION_DURATION, &v->seconds, "TIME", "a time", 0, 0},
        {"format", 0, HO_OPTION_CHOICE, &v->format, "table|csv|json", "a word", 0, 0},
        {"item", 0, HO_OPTION_LIST, &v->list, "ITEM", "repeated", 0, 0},
    };
    const ho_usage usage = {"test", "FILE", "Tests.", NULL, option, 7, 0, 2};
    static char pool[16][64]; /* outlives the call: options point into it */
    static char *copy[17];
    memset(copy, 0, sizeof copy);
    for (int i = 0; i < argc && i < 16; i++) {
        (void)snprintf(pool[i], sizeof pool[i], "%s", argv[i]);
        copy[i] = pool[i];
    }
    return ho_usage_parse(&usage, argc, copy, out);
}

static void every_kind_is_parsed_among_the_arguments(void **state)
{
    (void)state;
    values v = {0};
    ho_arguments args;
    const char *argv[] = {"test",   "a.db", "-f",       "--text", "t",        "-n",     "7", "b",
                          "--time", "2m",   "--format", "json",   "--item=x", "--item", "y"};
    CHECK_STATUS(parse(&v, 15, argv, &args), HO_OK);
    assert_int_equal(args.count, 2);
    assert_string_equal(args.item[0], "a.db");
    assert_string_equal(args.item[1], "b");
    assert_true(v.flag);
    assert_string_equal(v.text, "t");
    assert_int_equal(v.whole, 7);
    CHECK_NEAR(v.seconds, 120.0, 0.0);
    assert_int_equal(v.format, 2);
    assert_int_equal(v.list.count, 2);
    assert_string_equal(v.list.item[1], "y");
}

static void what_is_out_of_range_or_rubbish_is_refused(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"-n", "0"},
        {"-n", "101"},
        {"-n", "7x"},
        {"-n", ""},
        {"--number", "nan"},
        {"--number", "1e999"},
        {"--time", "-1s"},
        {"--time", "5 parsecs"},
        {"--format", "xml"},
        {"--format", "tab"},
        {"--whole", "99999999999999999999"},
        {"--nonsense", "1"},
        {"--log-level", "loud"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        values v = {0};
        ho_arguments args;
        const char *argv[] = {"test", bad[i][0], bad[i][1]};
        if (parse(&v, 3, argv, &args) != HO_EUSAGE) {
            fail_msg("%s %s was taken", bad[i][0], bad[i][1]);
        }
    }
}

static void too_many_arguments_and_missing_values_are_refused(void **state)
{
    (void)state;
    values v = {0};
    ho_arguments args;
    const char *many[] = {"test", "a", "b", "c"};
    const char *missing[] = {"test", "--text"};
    CHECK_STATUS(parse(&v, 4, many, &args), HO_EUSAGE);
    CHECK_STATUS(parse(&v, 2, missing, &args), HO_EUSAGE);
}

static void each_kind_of_failure_has_its_exit_code(void **state)
{
    (void)state;
    assert_int_equal(ho_exit_code(HO_OK), 0);
    assert_int_equal(ho_exit_code(HO_ECONFIG), 1);
    assert_int_equal(ho_exit_code(HO_EDATA), 2);
    assert_int_equal(ho_exit_code(HO_ENOWORKER), 3);
    assert_int_equal(ho_exit_code(HO_ESTORE), 4);
    assert_int_equal(ho_exit_code(HO_ECANCELLED), 130);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_is_parsed_among_the_arguments),
        cmocka_unit_test(what_is_out_of_range_or_rubbish_is_refused),
        cmocka_unit_test(too_many_arguments_and_missing_values_are_refused),
        cmocka_unit_test(each_kind_of_failure_has_its_exit_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
