/* SPDX-License-Identifier: Apache-2.0 */
#include <cjson/cJSON.h>
#include <stdlib.h>

#include "check.h"
#include "study/settings.h"
#include "study/text.h"

static void every_row_is_whole(void **state)
{
    (void)state;
    for (int i = 0; i < HO_KEY_COUNT; i++) {
        const ho_setting_row *row = ho_setting((ho_key)i);
        assert_int_equal(row->key, i);
        assert_int_equal(ho_setting_find(row->name), i);
        assert_non_null(strchr(row->name, '.'));
        assert_true(row->help[0] != '\0');
        assert_true(strlen(row->name) < HO_PARAM_NAME_MAX);
        bool choices = row->type == HO_TYPE_CHOICE || row->type == HO_TYPE_FLAGS;
        assert_true(choices == (row->choices[0] != '\0'));
        if (row->type == HO_TYPE_INT || row->type == HO_TYPE_FLOAT) {
            assert_true(row->low < row->high);
        }
        if (row->role != HO_ROLE_FIXED) {
            assert_true(row->type == HO_TYPE_BOOL || row->type == HO_TYPE_INT ||
                        row->type == HO_TYPE_FLOAT || row->type == HO_TYPE_CHOICE);
        }
    }
    assert_int_equal(ho_setting_find("study.nothing"), HO_KEY_COUNT);
}

static void every_key_has_a_legal_default_but_those_said_to_have_none(void **state)
{
    (void)state;
    ho_settings *s = ho_settings_create();
    assert_non_null(s);
    for (int i = 0; i < HO_KEY_COUNT; i++) {
        const ho_setting_row *row = ho_setting((ho_key)i);
        assert_true(ho_settings_has(s, (ho_key)i) == (row->default_text != NULL));
        assert_false(ho_settings_is_set(s, (ho_key)i));
    }
    CHECK_NEAR(ho_settings_f64(s, HO_KEY_DQN_LEARNING_RATE), 3e-4, 0);
    CHECK_NEAR(ho_settings_f64(s, HO_KEY_ENV_FEE_BPS_TAKER), 1.5, 0);
    assert_int_equal(ho_settings_i64(s, HO_KEY_DQN_REPLAY_CAPACITY), 262144);
    assert_true(ho_settings_bool(s, HO_KEY_DQN_DOUBLE));
    assert_true(ho_settings_is_auto(s, HO_KEY_FOLDS_TEST));
    assert_int_equal(ho_settings_span(s, HO_KEY_FOLDS_HOLDOUT).unit, HO_SPAN_SHARE);
    CHECK_NEAR(ho_settings_span(s, HO_KEY_FOLDS_HOLDOUT).amount, 0.15, 0);
    CHECK_NEAR(ho_settings_f64(s, HO_KEY_COORDINATOR_HEARTBEAT_TIMEOUT), 30, 0);
    assert_int_equal(ho_settings_list_count(s, HO_KEY_STUDY_OBJECTIVE), 1);
    assert_string_equal(ho_settings_list_str(s, HO_KEY_STUDY_OBJECTIVE, 0), "sharpe");
    assert_int_equal(ho_settings_flags(s, HO_KEY_ENV_RESET_FLAGS), 0);
    ho_settings_destroy(&s);
    assert_null(s);
}

static void a_refused_value_changes_nothing_and_says_what_is_legal(void **state)
{
    (void)state;
    ho_err err;
    ho_settings *s = ho_settings_create();
    const struct {
        ho_key key;
        const char *text, *part;
    } cases[] = {
        {HO_KEY_DQN_GAMMA, "1.5", "dqn.gamma is a number from 0 to 0.999999, not 1.5"},
        {HO_KEY_DQN_GAMMA, "nan", "not nan"},
        {HO_KEY_DQN_GAMMA, "0.9x", "not 0.9x"},
        {HO_KEY_DQN_GAMMA, "", "dqn.gamma"},
        {HO_KEY_DQN_BATCH, "0", "1 to 65536 or \"auto\""},
        {HO_KEY_DQN_BATCH, "1.0", "whole number"},
        {HO_KEY_DQN_BATCH, "99999999999999999999", "whole number"},
        {HO_KEY_DQN_DOUBLE, "yes", "true or false"},
        {HO_KEY_PRUNER_KIND, "none2", "one of none|median"},
        {HO_KEY_STUDY_TIMEOUT, "8 hours", "8h"},
        {HO_KEY_STUDY_TIMEOUT, "-8h", "8h"},
        {HO_KEY_STUDY_TIMEOUT, "0s", "1 s to"},
        {HO_KEY_DATA_START, "2018-02-30", "a day such as"},
        {HO_KEY_DATA_START, "2018-1-1", "a day such as"},
        {HO_KEY_DATA_START, "2018-01-01T25:00", "a day such as"},
        {HO_KEY_DATA_START, "2018-01-01T05:00:00.", "a day such as"},
        {HO_KEY_FOLDS_TEST, "20x", "a length is bars"},
        {HO_KEY_FOLDS_TEST, "120%", "a length is bars"},
        {HO_KEY_FOLDS_HOLDOUT, "auto", "folds.holdout"},
        {HO_KEY_STUDY_OBJECTIVE, "", "1 to 8 items"},
        {HO_KEY_ENV_RESET_FLAGS, "dsr,all", "a list of portfolio|"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char before[256], after[256];
        ho_settings_print(s, cases[i].key, before, sizeof before);
        CHECK_STATUS(ho_settings_set_text(s, cases[i].key, cases[i].text, &err), HO_EINVAL);
        CHECK_CONTAINS(err.text, cases[i].part);
        ho_settings_print(s, cases[i].key, after, sizeof after);
        assert_string_equal(before, after);
        assert_false(ho_settings_is_set(s, cases[i].key));
    }
    CHECK_STATUS(ho_settings_set_bool(s, HO_KEY_DQN_GAMMA, true, &err), HO_EINVAL);
    CHECK_STATUS(ho_settings_set_f64(s, HO_KEY_DQN_N_STEP, 2.5, &err), HO_EINVAL);
    CHECK_STATUS(ho_settings_set_f64(s, HO_KEY_DQN_DOUBLE, 1, &err), HO_EINVAL);
    CHECK_STATUS(ho_settings_set_i64(s, HO_KEY_DATA_LABEL, 1, &err), HO_EINVAL);
    CHECK_STATUS(ho_settings_set_list(s, HO_KEY_DQN_GAMMA, NULL, 0, &err), HO_EINVAL);
    ho_settings_destroy(&s);
}

static void values_are_read_as_written(void **state)
{
    (void)state;
    ho_err err;
    char text[256];
    ho_settings *s = ho_settings_create();
    const struct {
        ho_key key;
        const char *text, *toml;
    } cases[] = {
        {HO_KEY_STUDY_SEED, "9007199254740993", "9007199254740993"},
        {HO_KEY_ENV_INITIAL_CAPITAL, "1_000_000", "1000000.0"},
        {HO_KEY_DQN_GAMMA, "0.1", "0.1"},
        {HO_KEY_DQN_BATCH, "auto", "\"auto\""},
        {HO_KEY_STUDY_TIMEOUT, "1.5h", "\"1.5h\""},
        {HO_KEY_DATA_START, "2020-02-29T09:30:00.25+02:00", "2020-02-29T09:30:00.25+02:00"},
        {HO_KEY_ENV_RESET_FLAGS, "dsr, kelly", "[\"dsr\", \"kelly\"]"},
        {HO_KEY_STUDY_NAME, "a \"b\"\n", "\"a \\\"b\\\"\\u000a\""},
        {HO_KEY_PRUNER_KIND, "wilcoxon", "\"wilcoxon\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_OK(ho_settings_set_text(s, cases[i].key, cases[i].text, &err), &err);
        assert_int_equal(ho_settings_print(s, cases[i].key, text, sizeof text),
                         strlen(cases[i].toml));
        assert_string_equal(text, cases[i].toml);
        assert_true(ho_settings_is_set(s, cases[i].key));
    }
    assert_int_equal(ho_settings_i64(s, HO_KEY_STUDY_SEED), INT64_C(9007199254740993));
    CHECK_NEAR(ho_settings_f64(s, HO_KEY_STUDY_TIMEOUT), 5400, 0);
    assert_int_equal(ho_settings_flags(s, HO_KEY_ENV_RESET_FLAGS), 2 | 8);
    assert_int_equal(ho_settings_choice(s, HO_KEY_PRUNER_KIND), 5);
    assert_int_equal(ho_settings_print(s, HO_KEY_STUDY_NAME, text, 4), 15);
    assert_string_equal(text, "\"a ");
    ho_settings_reset(s, HO_KEY_PRUNER_KIND);
    assert_false(ho_settings_is_set(s, HO_KEY_PRUNER_KIND));
    assert_string_equal(ho_settings_str(s, HO_KEY_PRUNER_KIND), "asha");
    ho_settings_destroy(&s);
}

static void a_mistyped_key_finds_its_neighbour(void **state)
{
    (void)state;
    assert_int_equal(ho_setting_nearest("dqn.learing_rate"), HO_KEY_DQN_LEARNING_RATE);
    assert_int_equal(ho_setting_nearest("env.initail_capital"), HO_KEY_ENV_INITIAL_CAPITAL);
    assert_int_equal(ho_setting_nearest("agent.n_step"), HO_KEY_DQN_N_STEP);
    assert_int_equal(ho_setting_nearest("zzz.qqqqqqqqqqqqq"), HO_KEY_COUNT);
}

static void json_brings_back_every_bit(void **state)
{
    (void)state;
    ho_err err;
    ho_settings *a = ho_settings_create(), *b = NULL;
    CHECK_OK(ho_settings_set_i64(a, HO_KEY_STUDY_SEED, INT64_C(9199999999999999999), &err), &err);
    CHECK_OK(ho_settings_set_f64(a, HO_KEY_DQN_GAMMA, 0.1 + 0.2, &err), &err);
    CHECK_OK(ho_settings_set_text(a, HO_KEY_DATA_PATH, "a.csv, b.csv", &err), &err);
    struct cJSON *json = ho_settings_to_json(a);
    char *text = cJSON_PrintUnformatted(json);
    cJSON_Delete(json);
    json = cJSON_Parse(text);
    CHECK_OK(ho_settings_from_json(json, &b, &err), &err);
    assert_int_equal(ho_settings_diff(a, b, NULL, 0), 0);
    for (int i = 0; i < HO_KEY_COUNT; i++) {
        assert_true(ho_settings_is_set(a, (ho_key)i) == ho_settings_is_set(b, (ho_key)i));
    }
    CHECK_NEAR(ho_settings_f64(b, HO_KEY_DQN_GAMMA), 0.1 + 0.2, 0);
    cJSON_Delete(json);
    cJSON_free(text);
    ho_settings_destroy(&a);
    ho_settings_destroy(&b);
}

static void hostile_json_is_refused(void **state)
{
    (void)state;
    const char *const cases[] = {
        "null",
        "[]",
        "{}",
        "{\"values\":[],\"set\":[]}",
        "{\"values\":{},\"set\":{}}",
        "{\"values\":{\"no.such\":\"1\"},\"set\":[]}",
        "{\"values\":{\"dqn.gamma\":0.5},\"set\":[]}",
        "{\"values\":{\"dqn.gamma\":\"2\"},\"set\":[]}",
        "{\"values\":{\"dqn.gamma\":[\"0.5\"]},\"set\":[]}",
        "{\"values\":{\"data.path\":[1]},\"set\":[]}",
        "{\"values\":{\"data.path\":[]},\"set\":[]}",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ho_err err;
        ho_settings *s = NULL;
        struct cJSON *json = cJSON_Parse(cases[i]);
        assert_non_null(json);
        CHECK_STATUS(ho_settings_from_json(json, &s, &err), HO_EPROTO);
        assert_null(s);
        cJSON_Delete(json);
    }
}

static void a_difference_is_of_values_not_of_spelling(void **state)
{
    (void)state;
    ho_err err;
    ho_key keys[4];
    ho_settings *a = ho_settings_create(), *b = ho_settings_copy(a);
    CHECK_OK(ho_settings_set_text(a, HO_KEY_STUDY_TIMEOUT, "8h", &err), &err);
    CHECK_OK(ho_settings_set_text(b, HO_KEY_STUDY_TIMEOUT, "480m", &err), &err);
    assert_int_equal(ho_settings_diff(a, b, keys, 4), 0);
    CHECK_OK(ho_settings_set_text(b, HO_KEY_DQN_GAMMA, "0.5", &err), &err);
    CHECK_OK(ho_settings_set_text(b, HO_KEY_STUDY_OBJECTIVE, "sharpe,calmar", &err), &err);
    assert_int_equal(ho_settings_diff(a, b, keys, 4), 2);
    assert_int_equal(keys[0], HO_KEY_STUDY_OBJECTIVE);
    assert_int_equal(keys[1], HO_KEY_DQN_GAMMA);
    assert_int_equal(ho_settings_diff(a, b, keys, 1), 2);
    ho_settings_destroy(&a);
    ho_settings_destroy(&b);
}

/* Mend: build/debug/bin/hyperopt help settings > docs/settings.md */
static void the_page_of_settings_is_current(void **state)
{
    (void)state;
    char *printed = NULL, *page = NULL;
    size_t size = 0, room = 0;
    FILE *out = open_memstream(&printed, &size);
    assert_true(ho_settings_print_topic("settings", out));
    (void)fclose(out);
    FILE *file = fopen(HO_SOURCE_DIR "/docs/settings.md", "rb");
    assert_non_null(file);
    ssize_t length = getdelim(&page, &room, '\0', file);
    (void)fclose(file);
    assert_int_equal(length, size);
    assert_string_equal(page, printed);
    free(page);
    free(printed);
}

static void help_is_of_a_key_or_a_section(void **state)
{
    (void)state;
    char *printed = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&printed, &size);
    assert_true(ho_settings_print_topic("dqn.gamma", out));
    assert_false(ho_settings_print_topic("dqn.gam", out));
    assert_false(ho_settings_print_topic("", out));
    (void)fclose(out);
    assert_string_equal(printed, "dqn.gamma\n  discount of a bar\n  type     float\n"
                                 "  values   0 to 0.999999\n  default  0.99\n"
                                 "  role     searchable\n");
    free(printed);
    out = open_memstream(&printed, &size);
    assert_true(ho_settings_print_topic("env.fee_bps", out));
    (void)fclose(out);
    CHECK_CONTAINS(printed, "env.fee_bps.ioc");
    free(printed);
}

static void numbers_print_short_and_read_back_whole(void **state)
{
    (void)state;
    const double cases[] = {0.1,    1.0 / 3, 3,    1e-5,     -0.0,      1e300,
                            5e-324, 1e15,    1e16, 1e17 + 2, 0.1 + 0.2, 123456789.123456789};
    char text[HO_TEXT_NUMBER];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double back = NAN;
        ho_text_f64(cases[i], text, sizeof text);
        assert_true(ho_text_parse_f64(text, &back));
        assert_memory_equal(&back, &cases[i], sizeof back);
        assert_non_null(strpbrk(text, ".e"));
    }
    for (uint64_t i = 0, bits = 88172645463325252u; i < 20000;
         i++) { /* as printf would, in the end */
        char want[HO_TEXT_NUMBER];
        double value = (double)(bits % 1000000) / 1000.0;
        bits ^= bits << 13, bits ^= bits >> 7, bits ^= bits << 17;
        if (i % 2 == 0) {
            memcpy(&value, &bits, sizeof value);
        }
        if (!isnormal(value)) {
            continue;
        }
        for (int digits = 15; digits <= 17; digits++) {
            (void)snprintf(want, sizeof want, "%.*g", digits, value);
            if (strtod(want, NULL) == value) {
                break;
            }
        }
        (void)snprintf(want + strlen(want), 3, "%s", strpbrk(want, ".e") ? "" : ".0");
        assert_int_equal(ho_text_f64(value, text, sizeof text), strlen(want));
        assert_string_equal(text, want);
    }
    double ignored;
    const char *const bad[] = {"",         " 1",    "1 ", "0x10", "1e",
                               "infinity", "1e999", "_1", "1__0", "--1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (ho_text_parse_f64(bad[i], &ignored)) {
            fail_msg("\"%s\" was read as a number", bad[i]);
        }
    }
    assert_int_equal(ho_text_distance("kitten", "sitting"), 3);
    assert_int_equal(ho_text_distance("abcd", "abdc"), 1);
    assert_int_equal(ho_text_distance("", "abc"), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_whole),
        cmocka_unit_test(every_key_has_a_legal_default_but_those_said_to_have_none),
        cmocka_unit_test(a_refused_value_changes_nothing_and_says_what_is_legal),
        cmocka_unit_test(values_are_read_as_written),
        cmocka_unit_test(a_mistyped_key_finds_its_neighbour),
        cmocka_unit_test(json_brings_back_every_bit),
        cmocka_unit_test(hostile_json_is_refused),
        cmocka_unit_test(a_difference_is_of_values_not_of_spelling),
        cmocka_unit_test(the_page_of_settings_is_current),
        cmocka_unit_test(help_is_of_a_key_or_a_section),
        cmocka_unit_test(numbers_print_short_and_read_back_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
