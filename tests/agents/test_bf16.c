/* SPDX-License-Identifier: Apache-2.0
 * bf16 products: rounding, sums against double, the same bits in every set this processor has, and
 * gradients of whole networks beside those in float32. */
#include <stdlib.h>

#include "agents/world.h"
#include "check.h"
#include "kernels/cpu/dqn_loss.h"
#include "kernels/cpu/init.h"
#include "kernels/cpu/simd.h"

enum { ROOM = 160 * 320 };
static ho_bf16 a[ROOM];
static ho_bf16_pair b[ROOM];
static float c[ROOM], first[ROOM], bias[ROOM];
static ho_bf16 rounded[ROOM], first_rounded[ROOM];
static const float GUARD = -123.5f;

static uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static float from_bits(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static uint32_t random_bits(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 32);
}

/* ---- rounding ---- */

static void rounding_goes_to_the_nearest_and_on_ties_to_even(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++) {
        const float x = ho_bf16_float((ho_bf16)h), magnitude = fabsf(x);
        if (isnan(x)) {
            assert_true(isnan(ho_bf16_float(ho_bf16_of(x))));
        } else if (magnitude < 0x1p-126f) {
            assert_int_equal(ho_bf16_of(x), h & 0x8000); /* below the normal numbers: zero */
        } else {
            assert_int_equal(ho_bf16_of(x), h);
        }
        if (magnitude >= 0x1p-126f && magnitude < INFINITY) {
            const uint32_t low = h << 16, even = h + (h & 1);
            assert_int_equal(ho_bf16_of(from_bits(low + 0x7fff)), h);
            assert_int_equal(ho_bf16_of(from_bits(low + 0x8000)), even);
            assert_int_equal(ho_bf16_of(from_bits(low + 0x8001)), h + 1);
        }
    }
    assert_true(isinf(ho_bf16_float(ho_bf16_of(3.4e38f)))); /* beyond the last finite one */
    assert_true(isnan(ho_bf16_float(ho_bf16_of(from_bits(0x7f800001)))));
}

static void every_set_prepares_inputs_alike(void **state)
{
    (void)state;
    const ho_bf16_set *sets[HO_SIMD_SETS_MAX];
    const int n = ho_bf16_all(sets);
    enum { N = 1037 };
    static float x[N], dx[N];
    static ho_bf16 even[N], odd[N], out[N + 1];
    static ho_bf16_pair pairs[N + 1];
    uint64_t seed = 3;
    for (int i = 0; i < N; i++) {
        x[i] = from_bits(random_bits(&seed)); /* NaN, infinities and tiny ones among them */
        even[i] = (ho_bf16)random_bits(&seed);
        odd[i] = (ho_bf16)random_bits(&seed);
    }
    for (int s = 0; s < n; s++) {
        out[N] = 7;
        pairs[N] = 7;
        sets[s]->round(out, x, N);
        for (int i = 0; i < N; i++) {
            assert_int_equal(out[i], ho_bf16_of(x[i]));
            dx[i] = (float)i;
        }
        sets[s]->pair(pairs, even, odd, N);
        for (int i = 0; i < N; i++) {
            assert_int_equal(pairs[i], (uint32_t)even[i] | (uint32_t)odd[i] << 16);
        }
        sets[s]->pair(pairs, even, NULL, N);
        for (int i = 0; i < N; i++) {
            assert_int_equal(pairs[i], even[i]);
        }
        sets[s]->leaky_backward(dx, even, 0.5f, N);
        for (int i = 0; i < N; i++) {
            assert_true(dx[i] == (float)i * (ho_bf16_float(even[i]) > 0.0f ? 0.5f : 0.005f));
        }
        assert_int_equal(out[N], 7);
        assert_int_equal(pairs[N], 7);
    }
}

/* ---- products ---- */

static void fill(uint64_t seed)
{
    for (int i = 0; i < ROOM; i++) {
        a[i] = ho_bf16_of((float)world_normal(&seed));
        b[i] = (uint32_t)ho_bf16_of((float)world_normal(&seed)) |
               (uint32_t)ho_bf16_of((float)world_normal(&seed)) << 16;
        bias[i] = (float)world_normal(&seed);
    }
}

static double half_of(ho_bf16_pair pair, int which)
{
    return (double)ho_bf16_float((ho_bf16)(which ? pair >> 16 : pair));
}

/* form 0: leaky(A B + bias) by rows; 1: C += A' B, A read by columns; 2: form 0 rounded. */
static ho_bf16_gemm product(int form, int M, int N, int K)
{
    const int panels = (N + 31) / 32;
    ho_bf16_gemm g = {.M = M,
                      .N = N,
                      .K = K,
                      .a = (const ho_bf16_pair *)(const void *)a,
                      .b = b,
                      .c = form == 2 ? NULL : c,
                      .rounded = form == 2 ? rounded : NULL,
                      .c_row = N + 3};
    if (form == 1) {
        g.a_row = 1;
        g.a_col = M + 1;
        g.b_row = 32 * panels;
        g.b_panel = 32;
        g.accumulate = 1;
    } else {
        g.a_row = K + 1;
        g.a_col = 1;
        g.b_row = 32;
        g.b_panel = 32 * K;
        g.leaky = 1;
        g.bias = bias;
    }
    return g;
}

static void clear(int form, const ho_bf16_gemm *g)
{
    for (int i = 0; i < g->M * (int)g->c_row; i++) {
        c[i] = i % (int)g->c_row < g->N && form == 1 ? 0.25f : GUARD;
        rounded[i] = 0x1234;
    }
}

static void check_product(const ho_bf16_set *s, int form, int M, int N, int K)
{
    const ho_bf16_gemm g = product(form, M, N, K);
    clear(form, &g);
    s->gemm(&g);
    for (int m = 0; m < M; m++) {
        for (int n = 0; n < (int)g.c_row; n++) {
            const int at = m * (int)g.c_row + n;
            if (n >= N) {
                assert_true(c[at] == GUARD && rounded[at] == 0x1234);
                continue;
            }
            double want = form == 1 ? 0.25 : (double)bias[n], size = 1.0 + fabs(want);
            for (int k = 0; k < K; k++) {
                const ho_bf16_pair x = g.a[m * g.a_row + k * g.a_col];
                const ho_bf16_pair y = g.b[n / 32 * g.b_panel + k * g.b_row + n % 32];
                for (int i = 0; i < 2; i++) {
                    want += half_of(x, i) * half_of(y, i);
                    size += fabs(half_of(x, i) * half_of(y, i));
                }
            }
            want = form != 1 && want < 0.0 ? 0.01 * want : want;
            const double got = form == 2 ? (double)ho_bf16_float(rounded[at]) : (double)c[at];
            /* 2 K roundings of partial sums no larger than the sum of magnitudes, then half an ulp
             * of bf16 */
            const double bound = 1.2e-7 * (2 * K + 4) * size + (form == 2 ? fabs(want) / 256 : 0.0);
            if (!(fabs(got - want) <= bound)) {
                fail_msg("%s: form %d %dx%dx%d at (%d, %d): %.9g, want %.9g", s->name, form, M, N,
                         K, m, n, got, want);
            }
        }
    }
}

static void every_set_multiplies_right_at_all_edges(void **state)
{
    (void)state;
    const ho_bf16_set *sets[HO_SIMD_SETS_MAX];
    const int n = ho_bf16_all(sets);
    const int sizes[] = {1, 2, 3, 7, 8, 11, 12, 13, 31, 32, 33, 45, 65};
    enum { SIZES = sizeof sizes / sizeof sizes[0] };
    fill(1);
    for (int i = 0; i < n; i++) {
        for (int x = 0; x < SIZES; x++) {
            for (int y = 0; y < SIZES; y++) {
                for (int form = 0; form < 3; form++) {
                    check_product(sets[i], form, sizes[x], sizes[y], sizes[(x + y) % SIZES]);
                }
            }
        }
        check_product(sets[i], 0, 130, 128, 129);
        check_product(sets[i], 1, 128, 96, 75);
    }
}

/* The bits of a float32 sum; NaN are all alike. */
static int same_sum(float x, float y)
{
    return bits_of(x) == bits_of(y) || (isnan(x) && isnan(y));
}

static void check_all_alike(const char *what, int form, int M, int N, int K)
{
    const ho_bf16_set *sets[HO_SIMD_SETS_MAX];
    const int n = ho_bf16_all(sets);
    const ho_bf16_gemm g = product(form, M, N, K);
    for (int i = 0; i < n; i++) {
        clear(form, &g);
        sets[i]->gemm(&g);
        if (i == 0) {
            memcpy(first, c, sizeof c);
            memcpy(first_rounded, rounded, sizeof rounded);
        }
        for (int at = 0; at < M * (int)g.c_row; at++) {
            if (!same_sum(first[at], c[at]) ||
                !same_sum(ho_bf16_float(first_rounded[at]), ho_bf16_float(rounded[at]))) {
                fail_msg("%s: %s and %s differ at %d: %a, %a", what, sets[0]->name, sets[i]->name,
                         at, (double)first[at], (double)c[at]);
            }
        }
    }
}

/* A bf16 number with an exponent in [low, low + span): rounded, so never below 2^-126. */
static ho_bf16 with_exponent(uint64_t *seed, uint32_t low, uint32_t span)
{
    const uint32_t r = random_bits(seed);
    return (ho_bf16)((r & 0x807fu) | (low + (r >> 16) % span) << 7);
}

/* AVX512_BF16 is the definition where the processor has it; bf16.h says it in words. */
static void every_set_gives_the_same_bits(void **state)
{
    (void)state;
    static const struct range {
        const char *name;
        uint32_t low, span;
    } ranges[] = {
        {"usual numbers", 110, 24},
        {"sums about 2^-126", 50, 30},
        {"products far below", 1, 40},
        {"sums beyond the largest", 180, 60},
        {"everything, infinities and NaN too", 1, 255},
    };
    for (size_t r = 0; r < sizeof ranges / sizeof ranges[0]; r++) {
        uint64_t seed = 11 + r;
        for (int i = 0; i < ROOM; i++) {
            a[i] = with_exponent(&seed, ranges[r].low, ranges[r].span);
            b[i] = with_exponent(&seed, ranges[r].low, ranges[r].span) |
                   (uint32_t)with_exponent(&seed, ranges[r].low, ranges[r].span) << 16;
            bias[i] = 0.0f;
        }
        for (int form = 0; form < 3; form++) {
            check_all_alike(ranges[r].name, form, 67, 61, 45);
            check_all_alike(ranges[r].name, form, 40, 33, 1);
        }
    }
}

/* One pair at a time against the words of bf16.h, written with the library's fma. */
static float chain(float acc, ho_bf16_pair x, ho_bf16_pair y)
{
    for (int i = 1; i >= 0; i--) {
        const double sum = (double)acc + half_of(x, i) * half_of(y, i);
        acc = fmaf((float)half_of(x, i), (float)half_of(y, i), acc);
        acc = fabs(sum) < 0x1p-126 ? copysignf(0.0f, acc) : acc;
    }
    return acc;
}

static void a_sum_takes_the_second_of_a_pair_first_and_flushes_tiny_results(void **state)
{
    (void)state;
    const ho_bf16_set *sets[HO_SIMD_SETS_MAX];
    const int n = ho_bf16_all(sets);
    enum { PAIRS = 40 };
    for (int trial = 0; trial < 400; trial++) {
        uint64_t seed = (uint64_t)trial + 1;
        static ho_bf16_pair x[PAIRS], y[PAIRS * 32];
        const uint32_t low = trial % 2 ? 116 : 55;
        for (int i = 0; i < PAIRS * 32; i++) {
            y[i] = with_exponent(&seed, low, 12) | (uint32_t)with_exponent(&seed, low, 12) << 16;
            x[i % PAIRS] = with_exponent(&seed, low, 12) | (uint32_t)with_exponent(&seed, low, 12)
                                                               << 16;
        }
        for (int s = 0; s < n; s++) {
            const ho_bf16_gemm g = {.M = 1,
                                    .N = 32,
                                    .K = PAIRS,
                                    .a = x,
                                    .a_row = PAIRS,
                                    .a_col = 1,
                                    .b = y,
                                    .b_row = 32,
                                    .b_panel = 32 * PAIRS,
                                    .c = c,
                                    .c_row = 32};
            sets[s]->gemm(&g);
            for (int j = 0; j < 32; j++) {
                float want = 0.0f;
                for (int k = 0; k < PAIRS; k++) {
                    want = chain(want, x[k], y[k * 32 + j]);
                }
                if (bits_of(want) != bits_of(c[j])) {
                    fail_msg("%s: trial %d: %a, want %a", sets[s]->name, trial, (double)c[j],
                             (double)want);
                }
            }
        }
    }
}

static void a_rows_product_does_not_depend_on_the_other_rows(void **state)
{
    (void)state;
    const ho_bf16_set *sets[HO_SIMD_SETS_MAX];
    const int n = ho_bf16_all(sets);
    static float alone[64];
    fill(5);
    for (int i = 0; i < n; i++) {
        ho_bf16_gemm g = product(0, 45, 61, 39);
        g.c_row = 64;
        sets[i]->gemm(&g);
        for (int m = 0; m < 45; m++) {
            ho_bf16_gemm one = g;
            one.M = 1;
            one.a = g.a + m * g.a_row;
            one.c = alone;
            sets[i]->gemm(&one);
            assert_memory_equal(alone, c + m * 64, 61 * sizeof(float));
        }
    }
}

/* ---- networks ---- */

typedef struct network {
    ho_net_layout net;
    ho_net_pack pack;
    ho_net_rows rows;
    float *x, *gradient;
    void *block;
} network;

enum { ROWS = 37, ATOMS = 11 };
static float parameters[1 << 16], noise[4096], inputs[ROWS * 128], slopes[ROWS * 1024];

static void lay_out(network *f, ho_carve *carve)
{
    ho_net_pack_carve(&f->pack, &f->net, 1, carve);
    ho_net_rows_carve(&f->rows, &f->net, ROWS, 1, carve);
    f->x = ho_carve_take(carve, ROWS * (size_t)f->rows.x_row, sizeof(float));
    f->gradient = ho_carve_take(carve, (size_t)f->net.size, sizeof(float));
}

/* A network of `key` whose whole memory was `dirt` before it was used. */
static void open_network(network *f, const ho_cohort_key *key, int dirt)
{
    memset(f, 0, sizeof *f);
    f->net = ho_net_layout_of(key);
    ho_carve carve = {NULL, 0};
    lay_out(f, &carve);
    f->block = aligned_alloc(HO_CARVE_ALIGN, carve.used);
    assert_non_null(f->block);
    memset(f->block, dirt, carve.used);
    carve = (ho_carve){f->block, 0};
    lay_out(f, &carve);
    memset(f->gradient, 0, (size_t)f->net.size * sizeof(float));
    assert_true(f->net.size <= 1 << 16 && f->net.noise_size <= 4096 && f->net.state <= 128);
    for (int r = 0; r < ROWS; r++) {
        memcpy(f->x + r * f->rows.x_row, inputs + r * 128, (size_t)f->net.state * sizeof(float));
    }
}

/* Forward, then back from given slopes on the outputs. */
static void pass(network *f, const float *layer_noise)
{
    ho_net_pack_fill(&f->pack, &f->net, parameters, layer_noise);
    ho_net_forward(&f->net, &f->pack, f->x, ROWS, HO_NET_BOTH, &f->rows);
    for (int l = 0, at = 0; l < HO_LAYERS; l++) {
        if (l == HO_LAYER_MAIN1 || (l == HO_LAYER_VALUE1 && f->net.has_value)) {
            const int out = f->net.layer[l].out;
            for (int r = 0; r < ROWS; r++) {
                memcpy(f->rows.delta[l] + r * f->rows.row[l], slopes + at + r * out,
                       (size_t)out * sizeof(float));
            }
            at += ROWS * out;
        }
    }
    ho_net_backward(&f->net, &f->pack, f->x, ROWS, ho_dqn_trunk_scale(&f->net), &f->rows,
                    f->gradient);
    if (layer_noise) {
        ho_net_noise_gradient(&f->net, layer_noise, f->gradient);
    }
}

/* |x - y| / |y| over n numbers. */
static double apart(const float *x, const float *y, int64_t n)
{
    double difference = 0.0, size = 0.0;
    for (int64_t i = 0; i < n; i++) {
        difference += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
        size += (double)y[i] * (double)y[i];
    }
    return sqrt(difference / size);
}

/* Biases so large that no hidden unit's slope is the small one, however its sum is rounded. */
static void lift(const network *f)
{
    for (int l = 0; l < HO_LAYERS; l++) {
        const float bias_of_depth = l == HO_LAYER_TRUNK0 || l == HO_LAYER_VALUE_TRUNK0   ? 20.0f
                                    : l == HO_LAYER_TRUNK1 || l == HO_LAYER_VALUE_TRUNK1 ? 150.0f
                                                                                         : 1000.0f;
        for (int o = 0; o < f->net.layer[l].out; o++) {
            if (l != HO_LAYER_MAIN1 && l != HO_LAYER_VALUE1) {
                parameters[f->net.layer[l].bias + o] = bias_of_depth;
            }
        }
    }
}

/* bound: on the distance of each tensor's gradient from float32's, of its size. */
static void check_network(const char *form, ho_cohort_key key, int lifted, double bound)
{
    network exact, half, dirty;
    ho_net_tensor tensor[HO_NET_TENSORS_MAX];
    const uint32_t random_key[2] = {3, 4};
    uint64_t seed = 7;
    for (int i = 0; i < ROWS * 128; i++) {
        inputs[i] = (float)world_normal(&seed);
    }
    for (int i = 0; i < ROWS * 1024; i++) {
        slopes[i] = 0.1f * (float)world_normal(&seed);
    }
    key.precision = HO_PRECISION_F32;
    open_network(&exact, &key, 0);
    key.precision = HO_PRECISION_BF16;
    open_network(&half, &key, 0);
    open_network(&dirty, &key, 0xff); /* NaN wherever something is read that was not written */
    CHECK_STATUS(ho_net_init(&exact.net, HO_INIT_ORTHOGONAL, 0.5, random_key, 0, parameters),
                 HO_OK);
    if (lifted) {
        lift(&exact);
    }
    const float *layer_noise = NULL;
    if (exact.net.noise_size) {
        ho_net_noise(&exact.net, random_key, 1, 2, HO_NOISE_ONLINE, noise);
        layer_noise = noise;
    }
    pass(&exact, layer_noise);
    pass(&half, layer_noise);
    pass(&dirty, layer_noise);
    const int n = ho_net_layout_tensors(&exact.net, tensor);
    double worst = 0.0;
    for (int t = 0; t < n; t++) {
        const float *got = half.gradient + tensor[t].offset;
        const double off = apart(got, exact.gradient + tensor[t].offset, tensor[t].count);
        worst = off > worst ? off : worst;
        if (!(off <= bound)) {
            fail_msg("%s: %s is %.4f of its size off", form, tensor[t].name, off);
        }
        if (memcmp(got, dirty.gradient + tensor[t].offset, (size_t)tensor[t].count * 4) != 0) {
            fail_msg("%s: %s depends on what memory held before", form, tensor[t].name);
        }
    }
    printf("%s%s: gradients at most %.4f off\n", form, lifted ? ", one slope" : "", worst);
    assert_true(worst > 1e-5); /* it did round */
    free(exact.block);
    free(half.block);
    free(dirty.block);
}

static void check_forms(int lifted, double bound)
{
    ho_cohort_key key = ho_cohort_key_defaults(HO_DQN);
    key.hidden1 = 64;
    key.hidden2 = 64;
    key.head = 32;
    check_network("dueling", key, lifted, bound);
    key.hidden1 = 33; /* odd everywhere: pairs with nothing */
    key.hidden2 = 47;
    key.head = 19;
    key.market_features = 4;
    check_network("odd", key, lifted, bound);
    key.dueling = 0;
    check_network("plain", key, lifted, bound);
    key.dueling = 1;
    key.branching = 1;
    check_network("branching", key, lifted, bound);
    key.noisy = 1;
    key.atoms = ATOMS;
    check_network("branching, noisy, C51", key, lifted, bound);
    key.branching = 0;
    check_network("noisy, C51", key, lifted, bound);
    key = ho_cohort_key_defaults(HO_PPO);
    key.hidden1 = 64;
    key.hidden2 = 33;
    key.head = 32;
    check_network("ppo", key, lifted, bound);
    key.ppo_factored = 1;
    key.ppo_separate = 1;
    check_network("ppo, factored and separate", key, lifted, bound);
}

/* Every number that enters a product is off by at most 2^-9 of itself, and a signal passes at most
 * eight such roundings. */
static void gradients_in_bf16_are_near_those_in_float32(void **state)
{
    (void)state;
    check_forms(1, 8.0 / 512);
}

/* A hidden unit whose sum is nearer to zero than its error has the other of its two slopes: half a
 * per cent of units that a layer turns cost the root of that, a tenth, in the mean of squares. */
static void gradients_in_bf16_differ_where_an_activation_turns(void **state)
{
    (void)state;
    check_forms(0, 0.2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounding_goes_to_the_nearest_and_on_ties_to_even),
        cmocka_unit_test(every_set_prepares_inputs_alike),
        cmocka_unit_test(every_set_multiplies_right_at_all_edges),
        cmocka_unit_test(every_set_gives_the_same_bits),
        cmocka_unit_test(a_sum_takes_the_second_of_a_pair_first_and_flushes_tiny_results),
        cmocka_unit_test(a_rows_product_does_not_depend_on_the_other_rows),
        cmocka_unit_test(gradients_in_bf16_are_near_those_in_float32),
        cmocka_unit_test(gradients_in_bf16_differ_where_an_activation_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
