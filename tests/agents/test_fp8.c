/* SPDX-License-Identifier: Apache-2.0
 * precision = "fp8": the rounding against the format's own table, the networks it is for, and what
 * it must leave as bf16 has it. */
#include <stdlib.h>

#include "agents/world.h"
#include "check.h"
#include "kernels/agents/e4m3.h"
#include "kernels/cpu/init.h"
#include "kernels/cpu/net.h"
#include "kernels/cpu/simd.h"

/* ---- the rounding ---- */

/* The value of a code by the definition: S.EEEE.MMM, bias 7, no infinity, S.1111.111 is NaN. */
static double value_of(int code)
{
    const int e = code >> 3 & 15, m = code & 7;
    const double magnitude = e == 0 ? ldexp(m, -9) : ldexp(8 + m, e - 10);
    return code & 0x80 ? -magnitude : magnitude;
}
enum { LAST = 0x7e }; /* 448, the largest code of a number */

/* The nearest code of a magnitude, the even one of two, with saturation. */
static int nearest_code(double magnitude)
{
    int best = 0;
    for (int c = 1; c <= LAST; c++) {
        const double off = fabs(value_of(c) - magnitude), least = fabs(value_of(best) - magnitude);
        best = off < least || (off == least && c % 2 == 0) ? c : best;
    }
    return best;
}

static void every_number_of_the_format_stays_as_it_is(void **state)
{
    (void)state;
    assert_true(value_of(LAST) == 448.0 && value_of(1) == ldexp(1.0, -9));
    for (int scale = -HO_E4M3_SCALE_LIMIT; scale <= HO_E4M3_SCALE_LIMIT; scale++) {
        for (int c = 0; c <= LAST; c++) {
            const float x = (float)ldexp(value_of(c), scale);
            assert_true(ho_e4m3_of(x, scale) == x && ho_e4m3_of(-x, scale) == -x);
            assert_int_equal(ho_e4m3_bits(x) & 0xffffu, 0); /* exact in bf16 */
        }
    }
}

static void rounding_goes_to_the_nearest_and_on_ties_to_even(void **state)
{
    (void)state;
    static const int scales[] = {0, HO_E4M3_ACTIVATION, 17};
    for (size_t s = 0; s < sizeof scales / sizeof scales[0]; s++) {
        for (uint32_t h = 0; h < 0x7f80; h++) { /* every finite bf16 magnitude */
            const float x = ho_e4m3_float(h << 16);
            const double want =
                ldexp(value_of(nearest_code(ldexp((double)x, -scales[s]))), scales[s]);
            if ((double)ho_e4m3_of(x, scales[s]) != want ||
                (double)ho_e4m3_of(-x, scales[s]) != -want) {
                fail_msg("%g at scale %d: %g, want %g", (double)x, scales[s],
                         (double)ho_e4m3_of(x, scales[s]), want);
            }
        }
        for (int c = 0; c < LAST; c++) { /* and what bf16 cannot tell from a tie */
            const float tie = (float)ldexp((value_of(c) + value_of(c + 1)) / 2, scales[s]);
            const float above = nextafterf(tie, INFINITY), below = nextafterf(tie, 0.0f);
            assert_true((double)ho_e4m3_of(above, scales[s]) == ldexp(value_of(c + 1), scales[s]));
            assert_true((double)ho_e4m3_of(below, scales[s]) == ldexp(value_of(c), scales[s]));
        }
    }
}

static void every_instruction_set_rounds_alike(void **state)
{
    (void)state;
    enum { ALL = 0x10000, GUARD = 0x1234 };
    const ho_bf16_set *set[HO_SIMD_SETS_MAX];
    ho_bf16 *x = malloc((ALL + 1) * sizeof *x);
    const int sets = ho_bf16_all(set);
    for (int s = 0; s < sets; s++) {
        for (int scale = -HO_E4M3_SCALE_LIMIT; scale <= HO_E4M3_SCALE_LIMIT; scale += 3) {
            for (int cut = 0; cut < 2; cut++) { /* whole vectors, and a rest */
                const int n = ALL - 7 * cut;
                for (int i = 0; i < ALL; i++) {
                    x[i] = (ho_bf16)i;
                }
                x[n] = GUARD;
                set[s]->e4m3(x, n, scale);
                assert_int_equal(x[n], GUARD);
                for (int i = 0; i < n; i++) {
                    const float want = ho_e4m3_of(ho_e4m3_float((uint32_t)i << 16), scale);
                    const float got = ho_bf16_float(x[i]);
                    if (isnan(want) ? !isnan(got) : x[i] != ho_e4m3_bits(want) >> 16) {
                        fail_msg("%s, scale %d: %04x becomes %04x", set[s]->name, scale, i, x[i]);
                    }
                }
            }
        }
    }
    free(x);
}

static void what_is_too_large_saturates_and_nan_stays(void **state)
{
    (void)state;
    assert_true(ho_e4m3_of(464.0f, 0) == 448.0f && ho_e4m3_of(1e30f, 0) == 448.0f);
    assert_true(ho_e4m3_of(INFINITY, 0) == 448.0f && ho_e4m3_of(-INFINITY, 0) == -448.0f);
    assert_true(ho_e4m3_of(100.0f, HO_E4M3_ACTIVATION) == 56.0f);
    for (int scale = -HO_E4M3_SCALE_LIMIT; scale <= HO_E4M3_SCALE_LIMIT; scale++) {
        assert_true(isnan(ho_e4m3_of(NAN, scale)) && isnan(ho_e4m3_of(-NAN, scale)));
    }
}

static void a_rows_scale_is_the_least_that_holds_its_largest(void **state)
{
    (void)state;
    for (int e = -HO_E4M3_SCALE_LIMIT; e <= HO_E4M3_SCALE_LIMIT; e++) {
        const float top = ldexpf(448.0f, e);
        assert_int_equal(ho_e4m3_scale(ho_e4m3_bits(top)), e);
        const int next = e < HO_E4M3_SCALE_LIMIT ? e + 1 : e; /* clamped: it saturates there */
        assert_int_equal(ho_e4m3_scale(ho_e4m3_bits(nextafterf(top, INFINITY))), next);
    }
    assert_int_equal(ho_e4m3_scale(0), 0);
    assert_int_equal(ho_e4m3_scale(ho_e4m3_bits(INFINITY)), 0);
    assert_int_equal(ho_e4m3_scale(ho_e4m3_bits(NAN)), 0);
    assert_int_equal(ho_e4m3_scale(1), -HO_E4M3_SCALE_LIMIT);
}

/* ---- a network ---- */

enum { ROWS = 21 };

typedef struct network {
    ho_net_layout net;
    ho_net_pack pack;
    ho_net_rows rows;
    float *parameters, *x;
    void *block;
} network;

static void carve(network *n, ho_carve *c)
{
    ho_net_pack_carve(&n->pack, &n->net, 0, c);
    ho_net_rows_carve(&n->rows, &n->net, ROWS, 0, c);
    n->x = ho_carve_take(c, ROWS * (size_t)n->rows.x_row, sizeof(float));
    n->parameters = ho_carve_take(c, (size_t)n->net.size, sizeof(float));
}

static void open_network(network *n)
{
    const uint32_t key[2] = {3, 4};
    uint64_t seed = 7;
    ho_cohort_key shape = ho_cohort_key_defaults(HO_DQN);
    shape.hidden1 = 47;
    shape.hidden2 = 40;
    shape.head = 33;
    shape.precision = HO_PRECISION_FP8;
    n->net = ho_net_layout_of(&shape);
    ho_carve measured = {NULL, 0};
    carve(n, &measured);
    n->block = aligned_alloc(HO_CARVE_ALIGN, measured.used);
    memset(n->block, 0xff, measured.used); /* NaN wherever something is read unwritten */
    ho_carve taken = {n->block, 0};
    carve(n, &taken);
    n->pack.e4m3 = 1;
    CHECK_STATUS(ho_net_init(&n->net, HO_INIT_ORTHOGONAL, 0.5, key, 0, n->parameters), HO_OK);
    for (int64_t i = 0; i < ROWS * (int64_t)n->rows.x_row; i++) {
        n->x[i] = i % n->rows.x_row < n->net.state ? 3.0f * (float)world_normal(&seed) : 0.0f;
    }
    n->x[0] = 1000.0f; /* saturates */
    ho_net_pack_fill(&n->pack, &n->net, n->parameters, NULL);
}

static float half_of(const ho_net_rows *rows, int layer, int32_t r, int32_t i)
{
    return layer < 0 ? ho_bf16_float(rows->x_half[(int64_t)r * rows->x_row + i])
                     : ho_bf16_float(rows->half[layer][(int64_t)r * rows->row[layer] + i]);
}

/* The weight of output o from input i as the products read it. */
static float packed_weight(const network *n, int layer, int32_t o, int32_t i)
{
    enum { C = HO_GEMM_COLUMNS };
    const int32_t pairs = (n->net.layer[layer].in + 1) / 2;
    const ho_bf16_pair p =
        n->pack.forward_pair[layer][((int64_t)(o / C) * pairs + i / 2) * C + o % C];
    return ho_bf16_float((ho_bf16)(i % 2 ? p >> 16 : p));
}

static void weights_and_layers_are_rounded_and_sums_are_not(void **state)
{
    (void)state;
    static const int below[HO_LAYERS] = {
        -1, HO_LAYER_TRUNK0, HO_LAYER_TRUNK1, HO_LAYER_MAIN0, HO_LAYER_TRUNK1, HO_LAYER_VALUE0};
    network n;
    open_network(&n);
    ho_net_forward(&n.net, &n.pack, n.x, ROWS, HO_NET_BOTH, &n.rows);
    for (int32_t i = 0; i < n.net.state; i++) {
        const float x = ho_bf16_float(ho_bf16_of(n.x[i]));
        assert_true(half_of(&n.rows, -1, 0, i) == ho_e4m3_of(x, HO_E4M3_ACTIVATION));
    }
    assert_true(half_of(&n.rows, -1, 0, 0) == 56.0f);
    for (int l = 0; l <= HO_LAYER_VALUE1; l++) {
        const ho_layer_layout *layer = &n.net.layer[l];
        const int last = l == HO_LAYER_MAIN1 || l == HO_LAYER_VALUE1;
        for (int32_t o = 0; o < layer->out; o++) {
            const float *w = n.parameters + layer->weight + (int64_t)o * layer->in;
            float largest = 0.0f;
            for (int32_t i = 0; i < layer->in; i++) {
                largest = fmaxf(largest, fabsf(ho_bf16_float(ho_bf16_of(w[i]))));
            }
            const int32_t scale = ho_e4m3_scale(ho_e4m3_bits(largest));
            for (int32_t i = 0; i < layer->in; i++) {
                const float rounded = ho_bf16_float(ho_bf16_of(w[i]));
                assert_true(packed_weight(&n, l, o, i) == ho_e4m3_of(rounded, scale));
            }
            for (int32_t r = 0; r < ROWS; r++) {
                double sum = (double)n.parameters[layer->bias + o];
                for (int32_t i = 0; i < layer->in; i++) {
                    sum += (double)packed_weight(&n, l, o, i) *
                           (double)half_of(&n.rows, below[l], r, i);
                }
                if (last) { /* float32 sums of some 40 terms of order 1 */
                    CHECK_NEAR(n.rows.act[l][(int64_t)r * n.rows.row[l] + o], sum, 2e-5);
                    continue;
                }
                const float y = half_of(&n.rows, l, r, o);
                assert_true(ho_e4m3_of(y, HO_E4M3_ACTIVATION) == y);
                const double leaky = sum > 0.0 ? sum : 0.01 * sum;
                /* half a step of E4M3, and a 16th of it for bf16 before */
                CHECK_NEAR(y, leaky > 56.0 ? 56.0 : leaky, 0.0665 * fabs(leaky) + ldexp(1.1, -13));
            }
        }
    }
    free(n.block);
}

static void a_row_has_the_same_bits_beside_any_others(void **state)
{
    (void)state;
    network n;
    open_network(&n);
    ho_net_forward(&n.net, &n.pack, n.x, ROWS, HO_NET_BOTH, &n.rows);
    const int32_t row = n.rows.row[HO_LAYER_MAIN1], out = n.net.layer[HO_LAYER_MAIN1].out;
    float *all = malloc(ROWS * (size_t)row * sizeof *all);
    memcpy(all, n.rows.act[HO_LAYER_MAIN1], ROWS * (size_t)row * sizeof *all);
    for (int32_t r = 0; r < ROWS; r++) {
        ho_net_forward(&n.net, &n.pack, n.x + (int64_t)r * n.rows.x_row, 1, HO_NET_BOTH, &n.rows);
        assert_memory_equal(n.rows.act[HO_LAYER_MAIN1], all + (int64_t)r * row,
                            (size_t)out * sizeof(float));
    }
    free(all);
    free(n.block);
}

/* ---- lanes ---- */

/* One lane after some epochs. */
typedef struct trained {
    ho_cohort *cohort;
    ho_epoch_stat stat;
} trained;

static trained train(world *w, ho_cohort_key key, ho_precision precision,
                     const ho_lane_config *lane, int epochs)
{
    ho_err err;
    trained t;
    key.precision = precision;
    CHECK_OK(ho_cohort_create(w->backend, w->market, &key, 1, &t.cohort, &err), &err);
    CHECK_OK(ho_lane_start(t.cohort, 0, lane, &err), &err);
    for (int i = 0; i < epochs; i++) {
        CHECK_OK(ho_cohort_run_epoch(t.cohort, &t.stat, &err), &err);
    }
    return t;
}

static int equal_weights(ho_cohort *a, ho_cohort *b)
{
    ho_err err;
    ho_tensors x, y;
    CHECK_OK(ho_lane_export(a, 0, &x, &err), &err);
    CHECK_OK(ho_lane_export(b, 0, &y, &err), &err);
    int equal = x.count == y.count;
    for (int i = 0; equal && i < x.count; i++) {
        const ho_tensor *t = &x.tensor[i];
        const int64_t n = t->shape[0] * (t->ndim == 2 ? t->shape[1] : 1);
        equal = memcmp(t->data, y.tensor[i].data, (size_t)n * sizeof(float)) == 0;
    }
    ho_tensors_free(&x);
    ho_tensors_free(&y);
    return equal;
}

static void learning_from_equal_experience_is_bf16s(void **state)
{
    (void)state;
    for (int form = 0; form < 3; form++) {
        world *w = world_new(WORLD_SIGNAL, 600, 3, WORLD_FEATURES, 2);
        ho_cohort_key key = world_key(w, HO_DQN);
        key.updates = 8;
        key.replay = form == 1 ? HO_REPLAY_PER : HO_REPLAY_UNIFORM;
        key.atoms = form == 2 ? 11 : 0;
        ho_lane_config lane = world_lane(w, &key, 9);
        lane.agent.eps_start = lane.agent.eps_end = 1.0; /* no network decides */
        trained fp8 = train(w, key, HO_PRECISION_FP8, &lane, 3);
        trained bf16 = train(w, key, HO_PRECISION_BF16, &lane, 3);
        assert_int_equal(fp8.stat.updates, 8);
        assert_true(fp8.stat.loss_mean == bf16.stat.loss_mean);
        assert_true(equal_weights(fp8.cohort, bf16.cohort));
        ho_cohort_destroy(&fp8.cohort);
        ho_cohort_destroy(&bf16.cohort);
        world_free(&w);
    }
}

static void a_trained_agent_is_scored_in_bf16(void **state)
{
    (void)state;
    ho_err err;
    ho_tensors weights;
    ho_backtest_result a, b;
    world *w = world_new(WORLD_SIGNAL, 600, 3, WORLD_FEATURES, 2);
    ho_cohort_key key = world_key(w, HO_DQN);
    key.updates = 8;
    const ho_lane_config lane = world_lane(w, &key, 9);
    trained fp8 = train(w, key, HO_PRECISION_FP8, &lane, 3);
    trained bf16 = train(w, key, HO_PRECISION_BF16, &lane, 1);
    CHECK_OK(ho_lane_export(fp8.cohort, 0, &weights, &err), &err);
    CHECK_OK(ho_lane_import(bf16.cohort, 0, &weights, &err), &err);
    const ho_backtest_request request = {
        .policy = HO_POLICY_GREEDY, .slot_count = 1, .window = {0, 600}, .want = HO_WANT_ACTIONS};
    CHECK_OK(ho_backtest(w->market, fp8.cohort, &request, 1, &a, &err), &err);
    CHECK_OK(ho_backtest(w->market, bf16.cohort, &request, 1, &b, &err), &err);
    assert_int_equal(a.bars, b.bars);
    assert_memory_equal(a.actions, b.actions, (size_t)a.bars);
    assert_true(a.final_equity == b.final_equity);
    ho_backtest_free(&a);
    ho_backtest_free(&b);
    ho_tensors_free(&weights);
    ho_cohort_destroy(&fp8.cohort);
    ho_cohort_destroy(&bf16.cohort);
    world_free(&w);
}

/* One minibatch of the whole rollout: its ratios are 1, although other numbers acted. */
static void the_first_ratios_of_ppo_are_one(void **state)
{
    (void)state;
    world *w = world_new(WORLD_SIGNAL, 600, 3, WORLD_FEATURES, 2);
    ho_cohort_key key = world_key(w, HO_PPO);
    key.ppo_epochs = 1;
    key.batch = key.episodes * key.rollout;
    const ho_lane_config lane = world_lane(w, &key, 9);
    trained t = train(w, key, HO_PRECISION_FP8, &lane, 2);
    assert_int_equal(t.stat.updates, 1);
    assert_true(t.stat.kl == 0.0 && t.stat.clip_fraction == 0.0);
    ho_cohort_destroy(&t.cohort);
    world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_of_the_format_stays_as_it_is),
        cmocka_unit_test(rounding_goes_to_the_nearest_and_on_ties_to_even),
        cmocka_unit_test(every_instruction_set_rounds_alike),
        cmocka_unit_test(what_is_too_large_saturates_and_nan_stays),
        cmocka_unit_test(a_rows_scale_is_the_least_that_holds_its_largest),
        cmocka_unit_test(weights_and_layers_are_rounded_and_sums_are_not),
        cmocka_unit_test(a_row_has_the_same_bits_beside_any_others),
        cmocka_unit_test(learning_from_equal_experience_is_bf16s),
        cmocka_unit_test(a_trained_agent_is_scored_in_bf16),
        cmocka_unit_test(the_first_ratios_of_ppo_are_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
