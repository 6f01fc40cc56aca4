/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "study/status.h"

static void every_code_has_a_name_and_a_text(void **state)
{
    (void)state;
#define CHECK_ROW(name, value, text)                                                               \
    assert_string_equal(ho_status_name(HO_##name), #name);                                         \
    assert_string_equal(ho_status_text(HO_##name), text);
    HO_STATUS_MAP(CHECK_ROW)
    assert_string_equal(ho_status_name(HO_OK), "OK");
    assert_string_equal(ho_status_name((ho_status)-9999), "EUNKNOWN");
}

static void a_long_message_is_cut_not_overrun(void **state)
{
    (void)state;
    ho_err err;
    char long_text[2 * HO_ERR_TEXT];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    CHECK_STATUS(ho_err_set(&err, HO_EDATA, "%s", long_text), HO_EDATA);
    assert_int_equal(strlen(err.text), HO_ERR_TEXT - 1);
    CHECK_STATUS(ho_err_prefix(&err, "%s", long_text), HO_EDATA);
    assert_int_equal(strlen(err.text), HO_ERR_TEXT - 1);
}

static void a_prefix_names_the_place(void **state)
{
    (void)state;
    ho_err err;
    ho_err_set(&err, HO_EDATA, "line %d", 7);
    ho_err_prefix(&err, "%s", "a.csv");
    assert_string_equal(err.text, "a.csv: line 7");
    CHECK_STATUS(ho_err_set(NULL, HO_EIO, "x"), HO_EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_a_name_and_a_text),
        cmocka_unit_test(a_long_message_is_cut_not_overrun),
        cmocka_unit_test(a_prefix_names_the_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
