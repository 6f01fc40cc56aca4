/* SPDX-License-Identifier: Apache-2.0
 * The sender's window of chunks that nobody has answered. */
#include "check.h"

#include <sodium.h>

#include "study/flow.h"

static void a_full_window_is_closed_until_an_answer_comes(void **state)
{
    (void)state;
    ho_flow flow = {0};
    uint64_t first = 0;
    for (int i = 0; i < HO_FLOW_CHUNKS; i++) {
        uint64_t ticket = ho_flow_ticket();
        first = i == 0 ? ticket : first;
        assert_true(ho_flow_is_open(&flow, HO_FLOW_CHUNKS));
        ho_flow_sent(&flow, ticket);
    }
    assert_false(ho_flow_is_open(&flow, HO_FLOW_CHUNKS));
    assert_false(ho_flow_is_open(&flow, 1000)); /* no wish widens it */
    assert_true(ho_flow_got(&flow, first));
    assert_true(ho_flow_is_open(&flow, HO_FLOW_CHUNKS));
    assert_int_equal(flow.count, HO_FLOW_CHUNKS - 1);
}

static void a_smaller_limit_closes_it_sooner(void **state)
{
    (void)state;
    ho_flow flow = {0};
    assert_true(ho_flow_is_open(&flow, 1));
    assert_false(ho_flow_is_open(&flow, 0));
    ho_flow_sent(&flow, 5);
    assert_false(ho_flow_is_open(&flow, 1));
    assert_true(ho_flow_is_open(&flow, 2));
}

static void an_answer_stands_for_all_chunks_before_it(void **state)
{
    (void)state;
    ho_flow flow = {0};
    for (uint64_t ticket = 11; ticket <= 15; ticket++) {
        ho_flow_sent(&flow, ticket);
    }
    assert_true(ho_flow_got(&flow, 13));
    assert_int_equal(flow.count, 2);
    assert_false(ho_flow_got(&flow, 12)); /* it has been answered */
    assert_true(ho_flow_got(&flow, 15));
    assert_int_equal(flow.count, 0);
}

static void a_ticket_that_was_not_sent_opens_nothing(void **state)
{
    (void)state;
    ho_flow flow = {0};
    assert_false(ho_flow_got(&flow, 0));
    for (int i = 0; i < HO_FLOW_CHUNKS; i++) {
        ho_flow_sent(&flow, ho_flow_ticket());
    }
    for (uint64_t guess = 0; guess < 1000; guess++) {
        (void)ho_flow_got(&flow, guess); /* right with a chance of 8000 in 2^64 */
    }
    assert_int_equal(flow.count, HO_FLOW_CHUNKS);
}

static void tickets_differ_and_are_never_0(void **state)
{
    (void)state;
    uint64_t seen[256];
    for (int i = 0; i < 256; i++) {
        seen[i] = ho_flow_ticket();
        assert_true(seen[i] != 0);
        for (int k = 0; k < i; k++) {
            assert_true(seen[k] != seen[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_window_is_closed_until_an_answer_comes),
        cmocka_unit_test(a_smaller_limit_closes_it_sooner),
        cmocka_unit_test(an_answer_stands_for_all_chunks_before_it),
        cmocka_unit_test(a_ticket_that_was_not_sent_opens_nothing),
        cmocka_unit_test(tickets_differ_and_are_never_0),
    };
    return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
