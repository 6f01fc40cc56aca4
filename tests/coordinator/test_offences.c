/* SPDX-License-Identifier: Apache-2.0
 * Peers that are refused and come back, and how much of them is logged. */
#include "check.h"

#include "coordinator/offences.h"

static const int64_t second_ns = 1000000000;

static void an_address_is_known_until_it_has_been_quiet(void **state)
{
    (void)state;
    ho_offences o = {0};
    assert_false(ho_offences_known(&o, "10.0.0.1", 0));
    ho_offences_refuse(&o, "10.0.0.1", 0);
    assert_true(ho_offences_known(&o, "10.0.0.1", 500 * second_ns)); /* renewed */
    assert_true(ho_offences_known(&o, "10.0.0.1", 1000 * second_ns));
    assert_false(ho_offences_known(&o, "10.0.0.10", 1000 * second_ns));
    assert_false(ho_offences_known(&o, "10.0.0.1", 1600 * second_ns));
    ho_offences_refuse(&o, "10.0.0.1", 1700 * second_ns); /* it does not change */
    assert_true(ho_offences_known(&o, "10.0.0.1", 1701 * second_ns));
}

static void local_peers_are_not_remembered(void **state)
{
    (void)state;
    ho_offences o = {0};
    ho_offences_refuse(&o, "", 0);
    assert_false(ho_offences_known(&o, "", 1));
}

static void the_address_that_was_quiet_longest_gives_way(void **state)
{
    (void)state;
    ho_offences o = {0};
    char address[32];
    for (int i = 0; i <= HO_OFFENDERS_MAX; i++) {
        (void)snprintf(address, sizeof address, "10.0.1.%d", i);
        ho_offences_refuse(&o, address, i + 1);
        assert_true(i == 0 || ho_offences_known(&o, "10.0.1.0", i + 1)); /* it is not quiet */
    }
    assert_true(ho_offences_known(&o, "10.0.1.0", 100));
    assert_false(ho_offences_known(&o, "10.0.1.1", 100));
    assert_true(ho_offences_known(&o, address, 100));
}

static void lines_are_limited_and_what_is_left_out_is_counted(void **state)
{
    (void)state;
    ho_offences o = {0};
    int64_t unlogged = -1, now_ns = 1000 * second_ns;
    int logged = 0;
    for (int i = 0; i < HO_OFFENCE_LINES + 50; i++) {
        logged += ho_offences_may_log(&o, now_ns, &unlogged);
    }
    assert_int_equal(logged, HO_OFFENCE_LINES);
    now_ns += HO_OFFENCE_LINE_S * second_ns;
    assert_true(ho_offences_may_log(&o, now_ns, &unlogged));
    assert_int_equal(unlogged, 50);
    assert_false(ho_offences_may_log(&o, now_ns, &unlogged));
    now_ns += 1000000 * second_ns; /* a long calm: as at the start, not more */
    logged = 0;
    for (int i = 0; i < 2 * HO_OFFENCE_LINES; i++) {
        logged += ho_offences_may_log(&o, now_ns, &unlogged);
    }
    assert_int_equal(logged, HO_OFFENCE_LINES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_is_known_until_it_has_been_quiet),
        cmocka_unit_test(local_peers_are_not_remembered),
        cmocka_unit_test(the_address_that_was_quiet_longest_gives_way),
        cmocka_unit_test(lines_are_limited_and_what_is_left_out_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
