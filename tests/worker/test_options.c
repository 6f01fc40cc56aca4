/* SPDX-License-Identifier: Apache-2.0
 * The command line of hyperopt-worker. */
#include "check.h"

#include "worker/options.h"

static ho_worker_options options;
static ho_err err;

static ho_status parse(const char *line)
{
    static char buffer[256];
    char *argv[16] = {"hyperopt-worker"};
    int argc = 1;
    snprintf(buffer, sizeof buffer, "%s", line);
    for (char *word = strtok(buffer, " "); word; word = strtok(NULL, " ")) {
        argv[argc++] = word;
    }
    ho_err_clear(&err);
    return ho_worker_options_parse(argc, argv, &options, &err);
}

static void options_are_read(void **state)
{
    (void)state;
    CHECK_OK(parse("--connect tcp://head:5555 --gpu GPU-12 --name w0 --log-level debug"), &err);
    assert_string_equal(options.connect, "tcp://head:5555");
    assert_string_equal(options.gpu, "GPU-12");
    assert_string_equal(options.name, "w0");
    assert_int_equal(options.log_level, HO_LOG_DEBUG);
    assert_int_equal(options.parent, 0);
    assert_int_equal(options.signal_code, 0);
    CHECK_OK(parse("--connect=tcp://h:1 --signal-code 75"), &err);
    assert_int_equal(options.signal_code, 75);
    CHECK_OK(parse("--connect=ipc:///tmp/x --cpu --threads 2 --parent 41 --cache-limit 2"), &err);
    assert_true(options.cpu);
    assert_int_equal(options.threads, 2);
    assert_int_equal(options.parent, 41);
    assert_true(options.cache_limit == (uint64_t)2 << 30);
    CHECK_OK(parse("--devices"), &err);
    CHECK_OK(parse("--help"), &err);
}

static void bad_lines_are_named(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"", "--connect"},
        {"--connect", "--connect"},
        {"--connect tcp://a:1 --frobnicate", "--frobnicate"},
        {"--connect tcp://a:1 more", "more"},
        {"--connect tcp://a:1 --threads 0", "--threads 0"},
        {"--connect tcp://a:1 --threads 2x", "--threads 2x"},
        {"--connect tcp://a:1 --threads 99999999999999999999", "--threads"},
        {"--connect tcp://a:1 --log-level loud", "loud"},
        {"--connect tcp://a:1 --cpu --gpu 0", "exclude"},
        {"--connect tcp://a:1 --key k", "--server-key"},
        {"--connect tcp://a:1 --name a\"b", "--name"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_STATUS(parse(bad[i][0]), HO_EUSAGE);
        CHECK_CONTAINS(err.text, bad[i][1]);
    }
}

static void help_names_every_option(void **state)
{
    (void)state;
    static const char *const name[] = {"--connect",   "--gpu",           "--cpu",
                                       "--devices",   "--name",          "--key",
                                       "--log-level", "--allow-command", "--version"};
    char text[8192] = "";
    FILE *file = fmemopen(text, sizeof text, "w");
    assert_non_null(file);
    ho_worker_options_help(file);
    fclose(file);
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        CHECK_CONTAINS(text, name[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_read),
        cmocka_unit_test(bad_lines_are_named),
        cmocka_unit_test(help_names_every_option),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
