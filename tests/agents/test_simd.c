/* SPDX-License-Identifier: Apache-2.0
 * The inner loops of every instruction set that this processor has, against plain loops in double,
 * at sizes on and off their tiles; and nothing outside the output is written. */
#include <stdlib.h>

#include "agents/world.h"
#include "check.h"
#include "kernels/agents/value.h"
#include "kernels/cpu/simd.h"

enum { ROOM = 160 * 320 };
static float a[ROOM], b[ROOM], c[ROOM], bias[ROOM];
static const float GUARD = -123.5f;

static void fill(float *x, int n, uint64_t seed)
{
    for (int i = 0; i < n; i++) {
        x[i] = (float)world_normal(&seed);
    }
}

/* form 0: C = leaky(A B + bias), B packed; 1: C += A' B, both plain */
static void check_gemm(const ho_simd *s, int form, int M, int N, int K)
{
    const int c_row = N + 3, panels = (N + 31) / 32, a_row = form == 0 ? K + 1 : M + 1;
    ho_gemm g = {.M = M, .N = N, .K = K, .a = a, .b = b, .c = c, .c_row = c_row};
    if (form == 0) {
        g.a_row = a_row;
        g.a_col = 1;
        g.b_row = 32;
        g.b_panel = 32 * K;
        g.leaky = 1;
        g.bias = bias;
    } else {
        g.a_row = 1;
        g.a_col = a_row;
        g.b_row = 32 * panels;
        g.b_panel = 32;
        g.accumulate = 1;
    }
    for (int i = 0; i < M * c_row; i++) {
        c[i] = i % c_row < N && form == 1 ? 0.25f : GUARD;
    }
    s->gemm(&g);
    for (int m = 0; m < M; m++) {
        for (int n = 0; n < c_row; n++) {
            const double got = (double)c[m * c_row + n];
            if (n >= N) {
                assert_true(c[m * c_row + n] == GUARD);
                continue;
            }
            double want = form == 0 ? (double)bias[n] : 0.25, size = 1.0;
            for (int k = 0; k < K; k++) {
                const double x = (double)a[m * g.a_row + k * g.a_col];
                const double y = (double)b[n / 32 * g.b_panel + k * g.b_row + n % 32];
                want += x * y;
                size += fabs(x * y);
            }
            want = form == 0 && want < 0.0 ? 0.01 * want : want;
            /* K roundings of partial sums no larger than the sum of magnitudes */
            if (!(fabs(got - want) <= 1.2e-7 * (K + 4) * size)) {
                fail_msg("%s: form %d %dx%dx%d at (%d, %d): %.9g, want %.9g", s->name, form, M, N,
                         K, m, n, got, want);
            }
        }
    }
}

static void every_set_multiplies_right_at_all_edges(void **state)
{
    (void)state;
    const ho_simd *sets[HO_SIMD_SETS_MAX];
    const int n = ho_simd_all(sets);
    const int sizes[] = {1, 2, 3, 7, 8, 9, 31, 32, 33, 60, 64, 65};
    fill(a, ROOM, 1);
    fill(b, ROOM, 2);
    fill(bias, ROOM, 3);
    for (int i = 0; i < n; i++) {
        for (int x = 0; x < 12; x++) {
            for (int y = 0; y < 12; y++) {
                for (int form = 0; form < 2; form++) {
                    check_gemm(sets[i], form, sizes[x], sizes[y], sizes[(x + y) % 12]);
                }
            }
        }
        check_gemm(sets[i], 0, 130, 128, 257);
        check_gemm(sets[i], 1, 128, 96, 150);
    }
}

static void a_rows_product_does_not_depend_on_the_other_rows(void **state)
{
    (void)state;
    const ho_simd *sets[HO_SIMD_SETS_MAX];
    const int n = ho_simd_all(sets);
    static float alone[64];
    fill(a, ROOM, 1);
    fill(b, ROOM, 2);
    for (int i = 0; i < n; i++) {
        ho_gemm g = {.M = 45,
                     .N = 61,
                     .K = 77,
                     .a = a,
                     .a_row = 80,
                     .a_col = 1,
                     .b = b,
                     .b_row = 32,
                     .b_panel = 32 * 77,
                     .c = c,
                     .c_row = 64,
                     .bias = bias};
        sets[i]->gemm(&g);
        for (int m = 0; m < 45; m++) {
            ho_gemm one = g;
            one.M = 1;
            one.a = a + m * 80;
            one.c = alone;
            sets[i]->gemm(&one);
            assert_memory_equal(alone, c + m * 64, 61 * sizeof(float));
        }
    }
}

static void the_small_loops_agree_with_the_shared_formulas(void **state)
{
    (void)state;
    const ho_simd *sets[HO_SIMD_SETS_MAX];
    const int n = ho_simd_all(sets);
    const ho_agent_config agent = {
        .adam_beta1 = 0.9, .adam_beta2 = 0.999, .adam_eps = 1e-5, .weight_decay = 0.01};
    const ho_adam adam = ho_adam_of(&agent, 1e-2, 3, 0.5);
    enum { N = 1037 };
    for (int i = 0; i < n; i++) {
        static float g[N], p[N], m[N], v[N], t[N], p2[N], m2[N], v2[N], x[N], y[N];
        double square = 0.0;
        fill(g, N, 4);
        fill(p, N, 5);
        fill(m, N, 6);
        fill(t, N, 7);
        for (int k = 0; k < N; k++) {
            v[k] = p[k] * p[k];
            p2[k] = p[k];
            m2[k] = m[k];
            v2[k] = v[k];
            x[k] = g[k];
            y[k] = p[k];
            square += (double)g[k] * (double)g[k];
        }
        CHECK_CLOSE(sets[i]->square_sum(g, N), square, 1e-12);
        static float target[N];
        memcpy(target, t, sizeof t);
        sets[i]->adam(&adam, g, p, m, v, target, 0.25f, N);
        for (int k = 0; k < N; k++) {
            ho_adam_step(&adam, g[k], &p2[k], &m2[k], &v2[k]);
            CHECK_CLOSE((double)p[k], (double)p2[k], 1e-6);
            CHECK_CLOSE((double)v[k], (double)v2[k], 1e-6);
            CHECK_CLOSE((double)target[k], (double)(t[k] + 0.25f * (p[k] - t[k])), 1e-6);
        }
        sets[i]->add(x, y, N);
        for (int k = 0; k < N; k++) {
            assert_true(x[k] == g[k] + y[k]);
        }
        memcpy(x, g, sizeof x);
        sets[i]->leaky_backward(x, y, 0.5f, N);
        for (int k = 0; k < N; k++) {
            CHECK_CLOSE((double)x[k], (double)g[k] * (y[k] > 0 ? 0.5 : 0.005), 1e-7);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_set_multiplies_right_at_all_edges),
        cmocka_unit_test(a_rows_product_does_not_depend_on_the_other_rows),
        cmocka_unit_test(the_small_loops_agree_with_the_shared_formulas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
