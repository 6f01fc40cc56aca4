/* SPDX-License-Identifier: Apache-2.0
 * Trials that are programs: arguments, JSON lines, results, ends of every kind. */
#include "check.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "study/log.h"
#include "worker/commands.h"

static ho_study *study;
static ho_commands *commands;
static ho_err err;
static char said[8192];

static void say(const char *format, ...)
{
    size_t at = strlen(said);
    va_list args;
    va_start(args, format);
    vsnprintf(said + at, sizeof said - at, format, args);
    va_end(args);
}

static void on_report(void *user, int64_t trial, int32_t attempt, int32_t epoch,
                      const double *values, int count)
{
    (void)user, (void)attempt;
    say("[%lld epoch %d: %g", (long long)trial, epoch, values[0]);
    say(count > 1 ? " %g]" : "]", values[count - 1]);
}

static void on_finished(void *user, int64_t trial, int32_t attempt, int32_t epochs, double seconds,
                        const double *values, int count)
{
    (void)user, (void)attempt;
    assert_true(seconds >= 0.0);
    say("[%lld result after %d: %g", (long long)trial, epochs, values[0]);
    say(count > 1 ? " %g]" : "]", values[count - 1]);
}

static void on_failed(void *user, int64_t trial, int32_t attempt, ho_fail_class class_id,
                      const char *reason)
{
    (void)user, (void)attempt;
    say("[%lld %s: %s]", (long long)trial, ho_fail_class_name(class_id), reason);
}

/* script: for sh -c, with {x} and {kind}; more: other lines of the study. */
static void open_study(const char *script, const char *more, int slots)
{
    char text[4096];
    const ho_commands_sink sink = {NULL, on_report, on_finished, on_failed};
    snprintf(text, sizeof text,
             "[study]\n%s\n[command]\nrun = [\"sh\", \"-c\", '''%s''', \"{x}\", \"{kind}\"]\n"
             "timeout = \"2s\"\n%s\n[search]\nx = { float = [0, 1], step = 0.25 }\n"
             "kind = { choice = [\"a b\", \"c\"] }\n",
             more[0] == 'o' ? more : "objective = [\"loss\"]", script,
             more[0] == 'o' ? "direction = [\"minimize\", \"maximize\"]"
                            : "direction = [\"minimize\"]");
    CHECK_OK(ho_study_parse(text, strlen(text), "c.toml", ".", &study, &err), &err);
    CHECK_OK(ho_commands_create(&commands, study, slots, NULL, &sink, &err), &err);
}

static void add(int64_t trial, double x, double kind)
{
    double config[] = {x, kind};
    ho_trial_order order = {
        .trial = trial, .attempt = 1, .seed = 42, .param_count = 2, .config = config};
    CHECK_OK(ho_commands_add(commands, &order, &err), &err);
}

static void run_all(void)
{
    do {
    } while (ho_commands_step(commands, 20));
}

static int setup(void **state)
{
    (void)state;
    said[0] = '\0';
    ho_err_clear(&err);
    ho_log_set_level(HO_LOG_ERROR);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ho_commands_destroy(&commands);
    ho_study_free(&study);
    return 0;
}

static void parameters_are_arguments_and_lines_are_reports(void **state)
{
    (void)state;
    open_study("echo starting; echo '{\"epoch\": 1, \"value\": '$0'}'; "
               "test \"$1\" = 'a b' && echo '{\"epoch\": 2, \"value\": 7}'; "
               "echo '{\"result\": '$HYPEROPT_TRIAL'.5}'",
               "", 1);
    add(3, 0.75, 0);
    run_all();
    assert_string_equal(said, "[3 epoch 1: 0.75][3 epoch 2: 7][3 result after 2: 3.5]");
}

static void several_objectives_come_as_list_or_by_name(void **state)
{
    (void)state;
    static const char several[] = "objective = [\"loss\", \"speed\"]";
    open_study("echo '{\"epoch\": 1, \"values\": [1, null]}'; "
               "echo '{\"result\": {\"speed\": 9, \"loss\": 2}}'",
               several, 1);
    add(3, 0, 1);
    run_all();
    assert_string_equal(said, "[3 epoch 1: 1 nan][3 result after 1: 2 9]");
}

/* Python's json.dumps writes NaN and Infinity. */
static void undefined_values_of_python_are_undefined(void **state)
{
    (void)state;
    static const char several[] = "objective = [\"loss\", \"speed\"]";
    open_study("echo '{\"note\": \"NaN\", \"epoch\": 1, \"values\": [NaN, -Infinity]}'; "
               "echo '{\"epoch\": 2, \"values\": [1e999, 3]}'; "
               "echo '{\"result\": {\"speed\": Infinity, \"loss\":NaN}}'",
               several, 1);
    add(3, 0, 1);
    run_all();
    assert_string_equal(said, "[3 epoch 1: nan nan][3 epoch 2: nan 3][3 result after 2: nan nan]");
}

static void a_result_that_is_no_json_is_shown(void **state)
{
    (void)state;
    open_study("echo '{\"result\": 1,5}'", "", 1);
    add(3, 0, 0);
    run_all();
    CHECK_CONTAINS(said, "[3 command: the command gave no usable result: its line is no JSON: "
                         "{\"result\": 1,5}");
}

static void a_program_that_fails_is_a_failed_trial_with_its_words(void **state)
{
    (void)state;
    open_study("echo 'no such device' >&2; exit 4", "", 1);
    add(3, 0, 0);
    run_all();
    assert_string_equal(said, "[3 command: the command exited with 4: no such device]");
}

static void a_program_without_a_result_is_a_failed_trial(void **state)
{
    (void)state;
    open_study("case $0 in 0.00) echo done;; 0.25) echo '{\"result\": \"good\"}';; "
               "0.50) kill -9 $$;; *) exit 9;; esac",
               "", 1);
    add(0, 0, 0);
    add(1, 0.25, 0);
    add(2, 0.5, 0);
    run_all();
    CHECK_CONTAINS(said, "[0 command: the command ended without a line");
    CHECK_CONTAINS(said, "[1 command: the command gave no usable result");
    CHECK_CONTAINS(said, "[2 command: the command was ended by signal 9");
}

static void a_program_that_does_not_exist_is_named(void **state)
{
    (void)state;
    static const char text[] = "[study]\nobjective = [\"loss\"]\n[command]\n"
                               "run = [\"no-such-program\", \"{x}\"]\n"
                               "direction = [\"minimize\"]\n[search]\nx = { float = [0, 1] }\n";
    const ho_commands_sink sink = {NULL, on_report, on_finished, on_failed};
    double config[] = {0.5};
    ho_trial_order order = {.trial = 3, .attempt = 1, .param_count = 1, .config = config};
    CHECK_OK(ho_study_parse(text, strlen(text), "c.toml", ".", &study, &err), &err);
    CHECK_OK(ho_commands_create(&commands, study, 1, NULL, &sink, &err), &err);
    CHECK_OK(ho_commands_add(commands, &order, &err), &err);
    run_all();
    CHECK_CONTAINS(said, "[3 command: the command exited with 127: no-such-program: No such file");
}

static void a_program_out_of_time_is_ended_with_its_children(void **state)
{
    (void)state;
    open_study("sleep 60 & echo $! > child.pid; echo '{\"epoch\": 1, \"value\": 1}'; sleep 60", "",
               1);
    add(3, 0, 0);
    run_all();
    CHECK_CONTAINS(said, "[3 timeout: the command ran longer than 2 s");
    FILE *file = fopen("child.pid", "r");
    long pid = 0;
    assert_int_equal(fscanf(file, "%ld", &pid), 1);
    fclose(file);
    for (int i = 0; i < 500; i++) { /* a zombie until its new parent reaps it */
        char path[64], line[256] = "";
        snprintf(path, sizeof path, "/proc/%ld/stat", pid);
        file = fopen(path, "r");
        bool gone = !file || !fgets(line, sizeof line, file) || strstr(line, ") Z ");
        if (file) {
            fclose(file);
        }
        if (gone) {
            return;
        }
        usleep(10000);
    }
    fail_msg("the child lives on");
}

static void a_pruned_program_is_ended_and_its_slot_is_free(void **state)
{
    (void)state;
    open_study("test $0 = 1.00 && sleep 60; echo '{\"result\": 1}'", "", 1);
    add(3, 1, 0);
    add(4, 0, 0);
    assert_true(ho_commands_step(commands, 20));
    assert_int_equal(ho_commands_running(commands), 1);
    assert_false(ho_commands_drop(commands, 3, 2));
    assert_true(ho_commands_drop(commands, 3, 1));
    run_all();
    assert_string_equal(said, "[4 result after 0: 1]");
}

static void floods_and_long_lines_change_nothing(void **state)
{
    (void)state;
    open_study("head -c 300000 /dev/zero | tr '\\0' x; echo; yes '{\"epoch\": ' | head -20000; "
               "echo '{\"epoch\": -1, \"value\": 1}'; echo '{\"epoch\": 2, \"value\": \"x\"}'; "
               "printf '{\"result\": 5}'",
               "", 1);
    add(3, 0, 0);
    run_all();
    assert_string_equal(said, "[3 result after 0: 5]");
}

static void at_most_slots_programs_run_at_once(void **state)
{
    (void)state;
    open_study("sleep 0.05; echo '{\"result\": 1}'", "", 2);
    for (int i = 0; i < 5; i++) {
        add(i, 0, 0);
    }
    int most = 0;
    while (ho_commands_step(commands, 5)) {
        int n = ho_commands_running(commands);
        most = n > most ? n : most;
    }
    assert_int_equal(most, 2);
    for (int i = 0; i < 5; i++) {
        char want[32];
        snprintf(want, sizeof want, "[%d result", i);
        CHECK_CONTAINS(said, want);
    }
}

static void a_configuration_outside_the_space_is_refused(void **state)
{
    (void)state;
    open_study("true", "", 1);
    double config[] = {3, 0};
    ho_trial_order order = {.trial = 3, .attempt = 1, .param_count = 2, .config = config};
    CHECK_STATUS(ho_commands_add(commands, &order, &err), HO_EINVAL);
    CHECK_CONTAINS(err.text, "x");
    order.param_count = 1;
    CHECK_STATUS(ho_commands_add(commands, &order, &err), HO_EINVAL);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(parameters_are_arguments_and_lines_are_reports),
        T(several_objectives_come_as_list_or_by_name),
        T(undefined_values_of_python_are_undefined),
        T(a_result_that_is_no_json_is_shown),
        T(a_program_that_fails_is_a_failed_trial_with_its_words),
        T(a_program_without_a_result_is_a_failed_trial),
        T(a_program_that_does_not_exist_is_named),
        T(a_program_out_of_time_is_ended_with_its_children),
        T(a_pruned_program_is_ended_and_its_slot_is_free),
        T(floods_and_long_lines_change_nothing),
        T(at_most_slots_programs_run_at_once),
        T(a_configuration_outside_the_space_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
