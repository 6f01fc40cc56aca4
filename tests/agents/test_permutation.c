/* SPDX-License-Identifier: Apache-2.0
 * The shuffle of PPO's minibatches: every row once, every place alike, another order each pass. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "kernels/agents/permutation.h"

static const uint32_t key[2] = {7, 11};

static void every_row_comes_once(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 2, 3, 4, 5, 31, 32, 257, 4096, 16384, 100003};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        const uint32_t n = sizes[s];
        uint8_t *seen = calloc(n, 1);
        const ho_permutation p = ho_permutation_of(key, 1, 2, n);
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t to = ho_permutation_at(&p, i);
            assert_true(to < n);
            assert_int_equal(seen[to], 0);
            seen[to] = 1;
        }
        free(seen);
    }
}

/* Chi-square of (place, row) over many passes: 20 x 20 cells, 361 degrees of freedom, deviation
 * 26.9. Counters decide the numbers, so this holds always or never. */
static void every_place_gets_every_row_alike(void **state)
{
    (void)state;
    enum { N = 20, PASSES = 20000 };
    static int count[N][N];
    for (uint32_t pass = 0; pass < PASSES; pass++) {
        const ho_permutation p = ho_permutation_of(key, pass, 0, N);
        for (uint32_t i = 0; i < N; i++) {
            count[i][ho_permutation_at(&p, i)]++;
        }
    }
    double chi = 0.0;
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < N; k++) {
            const double expected = (double)PASSES / N, d = count[i][k] - expected;
            chi += d * d / expected;
        }
    }
    CHECK_NEAR(chi, 361.0, 4.0 * 26.9);
}

/* Rows that lie side by side in the rollout are steps of one moment: the shuffle must part them.
 * The distance of two neighbours is n / 3 on average, deviation n / sqrt(18 n). */
static void neighbours_are_parted(void **state)
{
    (void)state;
    enum { N = 16384 };
    const ho_permutation p = ho_permutation_of(key, 0, 0, N);
    double sum = 0.0;
    for (uint32_t i = 0; i + 1 < N; i++) {
        sum += fabs((double)ho_permutation_at(&p, i) - (double)ho_permutation_at(&p, i + 1));
    }
    CHECK_NEAR(sum / (N - 1) / N, 1.0 / 3.0, 0.01);
}

static void passes_epochs_and_lanes_have_orders_of_their_own(void **state)
{
    (void)state;
    enum { N = 1000 };
    static const uint32_t other[2] = {7, 12};
    const ho_permutation p[4] = {ho_permutation_of(key, 0, 0, N), ho_permutation_of(key, 1, 0, N),
                                 ho_permutation_of(key, 0, 1, N),
                                 ho_permutation_of(other, 0, 0, N)};
    for (int a = 0; a < 4; a++) {
        for (int b = 0; b < a; b++) {
            int same = 0;
            for (uint32_t i = 0; i < N; i++) {
                same += ho_permutation_at(&p[a], i) == ho_permutation_at(&p[b], i);
            }
            assert_true(same < 10); /* one on average */
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_comes_once),
        cmocka_unit_test(every_place_gets_every_row_alike),
        cmocka_unit_test(neighbours_are_parted),
        cmocka_unit_test(passes_epochs_and_lanes_have_orders_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
