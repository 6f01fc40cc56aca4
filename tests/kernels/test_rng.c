/* SPDX-License-Identifier: Apache-2.0
 * Philox against Random123's header and its published known answers; the key and the helpers. */
#include <Random123/philox.h>

#include "check.h"
#include "kernels/env/rng.h"

static void check_words(ho_rng4 got, const uint32_t want[4])
{
    for (int i = 0; i < 4; i++) {
        assert_int_equal(got.v[i], want[i]);
    }
}

/* kat_vectors of Random123: philox4x32 10 */
static void known_answers_of_random123_hold(void **state)
{
    (void)state;
    const uint32_t zeros[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    const uint32_t ones[4] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
    const uint32_t pi[4] = {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};
    check_words(ho_philox(0, 0, 0, 0, 0, 0), zeros);
    check_words(ho_philox(~0u, ~0u, ~0u, ~0u, ~0u, ~0u), ones);
    check_words(ho_philox(0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0),
                pi);
}

static void every_counter_agrees_with_random123s_header(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 10000; i++) {
        uint64_t a = ho_splitmix64(i), b = ho_splitmix64(a), c = ho_splitmix64(b);
        philox4x32_ctr_t counter = {
            {(uint32_t)a, (uint32_t)(a >> 32), (uint32_t)b, (uint32_t)(b >> 32)}};
        philox4x32_key_t key = {{(uint32_t)c, (uint32_t)(c >> 32)}};
        philox4x32_ctr_t want = philox4x32(counter, key);
        check_words(
            ho_philox(counter.v[0], counter.v[1], counter.v[2], counter.v[3], key.v[0], key.v[1]),
            want.v);
    }
}

/* The published sequence of splitmix64 from state 0. */
static void splitmix64_gives_the_published_numbers(void **state)
{
    (void)state;
    assert_true(ho_splitmix64(0) == 0xE220A8397B1DCDAFu);
    assert_true(ho_splitmix64(0x9E3779B97F4A7C15u) == 0x6E789E6AA1B965F4u);
}

static void keys_differ_in_every_part(void **state)
{
    (void)state;
    uint64_t base[2], other[2];
    ho_rng_key(42, 7, 3, 1, base);
    for (int part = 0; part < 4; part++) {
        ho_rng_key(42 + (part == 0), 7 + (part == 1), 3 + (part == 2), 1 + (part == 3), other);
        assert_true(base[0] != other[0] && base[1] != other[1]);
        assert_true((uint32_t)base[0] != (uint32_t)other[0]);
    }
    ho_rng_key(42, 3, 7, 1, other);
    assert_true(base[0] != other[0]);
}

static void purpose_and_draw_are_parts_of_the_counter(void **state)
{
    (void)state;
    const uint32_t key[2] = {1, 2};
    ho_rng4 a = ho_rng(key, 5, 6, 7, HO_RNG_EPSILON, 3);
    check_words(a, ho_philox(5, 6, 7, (3u << 24) | 3u, 1, 2).v);
}

static void uniforms_stay_in_their_range(void **state)
{
    (void)state;
    assert_true(ho_rng_float(0) == 0.0f && ho_rng_float(~0u) < 1.0f);
    assert_true(ho_rng_double(0, 0) == 0.0 && ho_rng_double(~0u, ~0u) < 1.0);
    assert_int_equal(ho_rng_below(0, 10), 0);
    assert_int_equal(ho_rng_below(~0u, 10), 9);
    double sum = 0.0, square = 0.0, normal = 0.0, normal2 = 0.0;
    const uint32_t key[2] = {3, 4};
    enum { N = 40000 };
    for (uint32_t i = 0; i < N; i++) {
        ho_rng4 r = ho_rng(key, i, 0, 0, HO_RNG_NOISE, 0);
        double u = ho_rng_double(r.v[0], r.v[1]);
        float z = ho_rng_normal(r.v[2], r.v[3]);
        sum += u;
        square += u * u;
        normal += z;
        normal2 += z * z;
    }
    CHECK_NEAR(sum / N, 0.5, 0.01); /* six deviations of the mean */
    CHECK_NEAR(square / N, 1.0 / 3.0, 0.01);
    CHECK_NEAR(normal / N, 0.0, 0.03);
    CHECK_NEAR(normal2 / N, 1.0, 0.05);
    assert_true(isfinite(ho_rng_normal(0, 0)) && isfinite(ho_rng_normal(~0u, ~0u)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers_of_random123_hold),
        cmocka_unit_test(every_counter_agrees_with_random123s_header),
        cmocka_unit_test(splitmix64_gives_the_published_numbers),
        cmocka_unit_test(keys_differ_in_every_part),
        cmocka_unit_test(purpose_and_draw_are_parts_of_the_counter),
        cmocka_unit_test(uniforms_stay_in_their_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
