/* SPDX-License-Identifier: Apache-2.0
 * The replay ring and its priorities: exact sums, draws of the stated probabilities, weights. */
#include <stdlib.h>

#include "check.h"
#include "kernels/agents/priority.h"
#include "kernels/cpu/replay.h"
#include "kernels/env/rng.h"

static const uint32_t key[2] = {11, 12};

static ho_replay *open_replay(int32_t kind, int32_t capacity)
{
    const ho_cohort_key shape = {.replay = kind, .replay_capacity = capacity};
    ho_replay measured = {0};
    ho_carve carve = {NULL, 0};
    ho_replay *r = calloc(1, sizeof *r);
    ho_replay_carve(&measured, &shape, 3, &carve);
    carve.base = aligned_alloc(HO_CARVE_ALIGN, carve.used);
    assert_true(r && carve.base);
    memset(carve.base, 0, carve.used);
    carve.used = 0;
    ho_replay_carve(r, &shape, 3, &carve);
    return r;
}

static void close_replay(ho_replay *r)
{
    free(r->bar); /* the first array: the block */
    free(r);
}

static void push(ho_replay *r, int32_t i, double td, double alpha)
{
    const float before[3] = {(float)i, 1.0f, 2.0f}, after[3] = {(float)i + 0.5f, 3.0f, 4.0f};
    const ho_transition t = {i, 1 + i % 3, i % 45, (float)i, 0.5f, before, after};
    (void)ho_replay_push(r, &t, td, alpha);
}

static void ring_wraps_without_losing_a_transition(void **state)
{
    (void)state;
    for (int kind = HO_REPLAY_UNIFORM; kind <= HO_REPLAY_PER_RANK; kind++) {
        ho_replay *r = open_replay(kind, 7);
        for (int32_t i = 0; i < 1000; i++) {
            push(r, i, 1.0, 0.6);
            assert_int_equal(r->fill, i < 6 ? i + 1 : 7);
            for (int32_t back = 0; back < r->fill; back++) {
                const int32_t at = (r->head + 6 - back) % 7, want = i - back;
                assert_int_equal(r->bar[at], want);
                assert_int_equal(r->steps[at], 1 + want % 3);
                assert_int_equal(r->action[at], want % 45);
                assert_true(r->reward[at] == (float)want && r->before[3 * at] == (float)want &&
                            r->after[3 * at] == (float)want + 0.5f);
            }
        }
        close_replay(r);
    }
}

/* flashbax 52: a float sum tree drifts from its leaves. */
static void sum_tree_is_exact_after_ten_million_updates(void **state)
{
    (void)state;
    enum { LEAVES = 1 << 17, UPDATES = 10000000 };
    ho_sum_tree t = {ho_sum_tree_leaves(LEAVES - 5), calloc(2 * LEAVES, sizeof(uint64_t))};
    assert_non_null(t.node);
    assert_int_equal(t.leaves, LEAVES);
    uint64_t x = 1, total = 0;
    for (int i = 0; i < UPDATES; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        const int64_t leaf = (int64_t)(x >> 40) % (LEAVES - 5);
        const uint32_t value = (uint32_t)(x >> (8 + i % 24)); /* from tiny to 2^32 - 1 */
        total += value - ho_sum_tree_leaf(&t, leaf);
        ho_sum_tree_set(&t, leaf, value);
        assert_true(ho_sum_tree_leaf(&t, leaf) == value);
    }
    assert_true(ho_sum_tree_total(&t) == total);
    for (int64_t n = LEAVES - 1; n >= 1; n--) {
        assert_true(t.node[n] == t.node[2 * n] + t.node[2 * n + 1]);
    }
    /* the mass's ends belong to the right leaves, and none beyond the last */
    uint64_t below = 0;
    for (int64_t i = 0; i < LEAVES; i += 977) {
        below = 0;
        for (int64_t k = 0; k < i; k++) {
            below += ho_sum_tree_leaf(&t, k);
        }
        if (ho_sum_tree_leaf(&t, i) > 0) {
            assert_int_equal(ho_sum_tree_find(&t, below), i);
            assert_int_equal(ho_sum_tree_find(&t, below + ho_sum_tree_leaf(&t, i) - 1), i);
        }
    }
    assert_true(ho_sum_tree_find(&t, total - 1) < LEAVES - 5);
    free(t.node);
}

static void a_draw_never_reaches_the_total(void **state)
{
    (void)state;
    const uint64_t totals[] = {1, 7, 511, 512, 513, 1000003, UINT64_C(1) << 49};
    for (int k = 0; k < 7; k++) {
        for (int32_t batch = 1; batch <= 512; batch = batch * 3 + 1) {
            uint64_t last = 0;
            for (int32_t i = 0; i < batch; i++) {
                const uint64_t low = ho_priority_draw(totals[k], i, batch, 0);
                const uint64_t high = ho_priority_draw(totals[k], i, batch, UINT64_MAX);
                assert_true(low <= high && high < totals[k] && low >= last);
                last = low;
            }
        }
    }
}

/* Chi-square of the counts against the expected ones; the 99.9 % point of k degrees of freedom by
 * Wilson and Hilferty. */
static void check_counts(const char *what, const int64_t *count, const double *expected, int n)
{
    double chi = 0.0;
    for (int i = 0; i < n; i++) {
        assert_true(expected[i] >= 5.0);
        chi += ((double)count[i] - expected[i]) * ((double)count[i] - expected[i]) / expected[i];
    }
    const double k = n - 1, h = 2.0 / (9.0 * k);
    const double limit = k * pow(1.0 - h + 3.09 * sqrt(h), 3.0);
    if (!(chi <= limit)) {
        fail_msg("%s: chi-square %.1f with %d degrees of freedom, limit %.1f", what, chi, n - 1,
                 limit);
    }
}

enum { SLOTS = 200, BATCH = 50, DRAWS = 4000 };

static void draws_follow_the_stated_probabilities(void **state)
{
    (void)state;
    const char *const names[] = {"uniform", "proportional", "rank-based"};
    for (int kind = HO_REPLAY_UNIFORM; kind <= HO_REPLAY_PER_RANK; kind++) {
        ho_replay *r = open_replay(kind, SLOTS);
        double td[SLOTS], p[SLOTS], sum = 0.0;
        int64_t count[SLOTS] = {0};
        for (int32_t i = 0; i < SLOTS; i++) {
            td[i] = 0.05 + 3.0 * ((i * 37) % SLOTS) / SLOTS; /* all different */
            push(r, i, td[i], 0.7);
        }
        if (kind == HO_REPLAY_PER_RANK) {
            ho_replay_sort(r, 0.7);
        }
        for (int32_t i = 0; i < SLOTS; i++) {
            const int rank = SLOTS - (i * 37) % SLOTS; /* largest td: 1 */
            p[i] = kind == HO_REPLAY_UNIFORM ? 1.0
                   : kind == HO_REPLAY_PER   ? pow(td[i] + 1e-3, 0.7)
                                             : pow(rank, -0.7);
            sum += p[i];
        }
        int32_t slot[BATCH];
        float weight[BATCH];
        for (uint32_t d = 0; d < DRAWS; d++) {
            ho_replay_sample(r, key, d, 3, BATCH, 0.5, slot, weight);
            double least = INFINITY;
            for (int i = 0; i < BATCH; i++) {
                count[slot[i]]++;
                least = fmin(least, p[slot[i]]);
            }
            for (int i = 0; i < BATCH; i++) { /* (N P)^-beta over the batch's largest */
                CHECK_NEAR((double)weight[i], pow(p[slot[i]] / least, -0.5), 1e-4);
            }
        }
        for (int i = 0; i < SLOTS; i++) {
            p[i] *= (double)DRAWS * BATCH / sum;
        }
        check_counts(names[kind], count, p, SLOTS);
        close_replay(r);
    }
}

static void a_slot_drawn_twice_keeps_the_last_priority(void **state)
{
    (void)state;
    ho_replay *r = open_replay(HO_REPLAY_PER, 8);
    for (int32_t i = 0; i < 8; i++) {
        push(r, i, 1.0, 1.0);
    }
    const int32_t slot[3] = {2, 5, 2};
    const float td[3] = {9.0f, 4.0f, 0.5f};
    ho_replay_update(r, slot, td, 3, 1.0);
    assert_true(ho_sum_tree_leaf(&r->tree, 2) == ho_priority_leaf(0.5, 1.0));
    assert_true(ho_sum_tree_leaf(&r->tree, 5) == ho_priority_leaf(4.0, 1.0));
    assert_true(ho_sum_tree_leaf(&r->tree, 3) == ho_priority_leaf(1.0, 1.0));
    close_replay(r);
}

static void the_exponent_is_on_the_sum_and_nothing_is_undrawable(void **state)
{
    (void)state;
    const double one = (double)(1 << HO_PRIORITY_BITS);
    CHECK_NEAR(ho_priority_leaf(0.5, 0.6), pow(0.501, 0.6) * one, 1.0);
    CHECK_NEAR(ho_priority_leaf(-0.5, 0.6), pow(0.501, 0.6) * one, 1.0);
    assert_true(ho_priority_leaf(0.0, 2.0) >= 1);
    assert_true(ho_priority_leaf(1e300, 2.0) == UINT32_MAX);
    CHECK_NEAR(ho_priority_beta(0.4, 1.0, 50, 100), 0.7, 1e-12);
    CHECK_NEAR(ho_priority_beta(0.4, 1.0, 200, 100), 1.0, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ring_wraps_without_losing_a_transition),
        cmocka_unit_test(sum_tree_is_exact_after_ten_million_updates),
        cmocka_unit_test(a_draw_never_reaches_the_total),
        cmocka_unit_test(draws_follow_the_stated_probabilities),
        cmocka_unit_test(a_slot_drawn_twice_keeps_the_last_priority),
        cmocka_unit_test(the_exponent_is_on_the_sum_and_nothing_is_undrawable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
