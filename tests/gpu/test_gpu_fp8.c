/* SPDX-License-Identifier: Apache-2.0
 * precision = "fp8" on the CUDA backend: the CPU's roundings and choices; learning and scores are
 * bf16's; what decides a lane's bits and what must not, at the shape with held weights too. */
#include <cuda_runtime.h>
#include <stdlib.h>

#include "check.h"
#include "gpu/pair.h"
#include "gpu/run.h"
#include "gpu/sizes.h"
#include "kernels/agents/e4m3.h"
#include "kernels/cuda/cuda_backend.h"

enum { BARS = 1500, CROWD = 80 };

static ho_cohort_key key_of(const world *w, ho_precision precision)
{
    ho_cohort_key key = world_key(w, HO_DQN);
    key.hidden1 = key.hidden2 = gpu_size(256, 64);
    key.head = gpu_size(128, 32);
    key.batch = gpu_size(128, 48);
    key.updates = gpu_size(20, 3);
    key.episodes = gpu_size(24, 9);
    key.episode_length = gpu_size(40, 17);
    key.precision = precision;
    return key;
}

static ho_cohort *open_one(world *w, const ho_cohort_key *key, const ho_lane_config *lane)
{
    ho_err err;
    ho_cohort *c;
    CHECK_OK(ho_cohort_create(w->backend, w->market, key, 1, &c, &err), &err);
    CHECK_OK(ho_lane_start(c, 0, lane, &err), &err);
    return c;
}

static void *fetch(const void *device, size_t bytes)
{
    void *p = malloc(bytes);
    assert_int_equal(cudaMemcpy(p, device, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
    return p;
}

static float widened(uint16_t half)
{
    return ho_e4m3_float((uint32_t)half << 16);
}

static float rounded_bf16(float x)
{
    const uint32_t bits = ho_e4m3_bits(x);
    return ho_e4m3_float((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u);
}

/* Every weight of the packed policy (policy.h), and every feature. */
static void packed_weights_and_features_are_rounded(void **state)
{
    (void)state;
    ho_epoch_stat stat;
    pair p = open_pair(BARS, 0, HO_MARKET_FEATURES);
    const ho_cohort_key key = key_of(p.gpu, HO_PRECISION_FP8);
    ho_lane_config lane = world_lane(p.gpu, &key, 3);
    lane.agent.learn_start = 1000000; /* so that the weights are still those that were packed */
    cuda_cohort *c = (cuda_cohort *)open_one(p.gpu, &key, &lane);
    world_run(&c->base, 1, &stat);
    const ho_policy_net *policy = &c->experience.policy;
    uint8_t *packed = fetch(c->experience.packed, (size_t)policy->bytes);
    float *online = fetch(c->learn.online, (size_t)c->net.params * sizeof *online);
    for (int l = 0; l < HO_DEVICE_LAYERS; l++) {
        const ho_policy_layer *layer = &policy->layer[l];
        const int steps = layer->in / 16;
        for (int o = 0; o < layer->out; o++) {
            const float *w = online + layer->weight + (size_t)o * (size_t)layer->stride;
            float largest = 0.0f;
            for (int i = 0; i < layer->in; i++) {
                largest = fmaxf(largest, fabsf(rounded_bf16(w[i])));
            }
            const int32_t scale = ho_e4m3_scale(ho_e4m3_bits(largest));
            for (int i = 0; i < layer->in; i++) {
                const int g = o % 16 / 2, odd = o % 2, t = i % 8 / 2;
                const int word = (o / 16 * steps + i / 16) * 32 + g * 4 + t;
                const int half = (i % 16 / 8 * 2 + odd) * 2 + i % 2;
                const uint16_t got = ((const uint16_t *)(packed + layer->matrix))[word * 8 + half];
                assert_true(widened(got) == ho_e4m3_of(rounded_bf16(w[i]), scale));
            }
        }
    }
    const cuda_market *m = (const cuda_market *)p.gpu->market;
    const size_t n = (size_t)BARS * HO_STATE_PAD;
    uint16_t *features = fetch(m->features_e4m3, n * sizeof *features);
    for (size_t i = 0; i < n; i++) {
        const size_t column = i % HO_STATE_PAD;
        const float x = column < HO_MARKET_FEATURES
                            ? p.gpu->features[i / HO_STATE_PAD * HO_MARKET_FEATURES + column]
                            : 0.0f;
        assert_true(widened(features[i]) == ho_e4m3_of(rounded_bf16(x), HO_E4M3_ACTIVATION));
    }
    free(packed);
    free(online);
    free(features);
    ho_cohort *base = &c->base;
    ho_cohort_destroy(&base);
    close_pair(&p);
}

/* Slots of an epoch whose actions, bars and rewards are all the CPU's. */
static int slots_alike(const ho_cohort_key *key, const ho_trace_step *trace, const cpu_steps *cpu)
{
    int alike = 0;
    for (int n = 0; n < key->episodes; n++) {
        int same = 1;
        for (int step = 0; step < key->episode_length; step++) {
            const size_t at = (size_t)step * (size_t)key->episodes + (size_t)n;
            same = same && trace[at].valid == cpu_step_valid(cpu, at) &&
                   (!trace[at].valid ||
                    (trace[at].action == cpu->action[at] && trace[at].bar == cpu->bar[at] &&
                     trace[at].reward == cpu->reward[at]));
        }
        alike += same;
    }
    return alike;
}

/* Greedy steps. Sums differ in their order: a value within 1e-7 of where two roundings meet goes to
 * the other E4M3 number, with a chance of some 1e-6 a unit and step, and may then turn a choice,
 * after which the slot is another one. fp8 on one side and bf16 on the other must differ. */
static void steps_are_chosen_as_on_the_cpu(void **state)
{
    (void)state;
    for (int fp8 = 0; fp8 < 2; fp8++) {
        ho_epoch_stat stat;
        pair p = open_pair(BARS, 0, HO_MARKET_FEATURES);
        ho_cohort_key key = key_of(p.gpu, HO_PRECISION_FP8);
        ho_lane_config lane = world_lane(p.gpu, &key, 3);
        lane.agent.eps_start = lane.agent.eps_end = 0.0;
        lane.agent.learn_start = 1000000;
        cuda_cohort *gpu = (cuda_cohort *)open_one(p.gpu, &key, &lane);
        key.precision = fp8 ? HO_PRECISION_FP8 : HO_PRECISION_BF16;
        ho_cohort *cpu = open_one(p.cpu, &key, &lane);
        world_run(&gpu->base, 1, &stat);
        world_run(cpu, 1, &stat);
        const size_t rows = (size_t)key.episodes * (size_t)key.episode_length;
        ho_trace_step *trace = fetch(gpu->experience.trace, rows * sizeof *trace);
        const cpu_steps steps = cpu_steps_of(cpu);
        const int alike = slots_alike(&key, trace, &steps);
        print_message("%s on the CPU: %d of %d slots alike\n", fp8 ? "fp8" : "bf16", alike,
                      key.episodes);
        if (fp8) {
            assert_true(alike * 4 >= key.episodes * 3);
        } else {
            assert_true(alike * 2 < key.episodes);
        }
        free(trace);
        ho_cohort *base = &gpu->base;
        ho_cohort_destroy(&base);
        ho_cohort_destroy(&cpu);
        close_pair(&p);
    }
}

static int equal_weights(ho_cohort *a, ho_cohort *b)
{
    ho_err err;
    ho_tensors x, y;
    CHECK_OK(ho_lane_export(a, 0, &x, &err), &err);
    CHECK_OK(ho_lane_export(b, 0, &y, &err), &err);
    const int equal = tensors_equal(&x, &y);
    ho_tensors_free(&x);
    ho_tensors_free(&y);
    return equal;
}

/* Actions are random, so that both see the same experience. */
static void learning_and_scores_are_bf16s(void **state)
{
    (void)state;
    for (int portable = gpu_size(0, 1); portable < 2; portable++) {
        ho_err err;
        ho_epoch_stat stat;
        ho_backtest_result a, b;
        pair p = open_pair(BARS, portable, HO_MARKET_FEATURES);
        ho_cohort_key key = key_of(p.gpu, HO_PRECISION_FP8);
        ho_lane_config lane = world_lane(p.gpu, &key, 3);
        lane.agent.eps_start = lane.agent.eps_end = 1.0;
        lane.agent.learn_start = 1;
        ho_cohort *fp8 = open_one(p.gpu, &key, &lane);
        key.precision = HO_PRECISION_BF16;
        ho_cohort *bf16 = open_one(p.gpu, &key, &lane);
        world_run(fp8, 2, &stat);
        assert_int_equal(stat.updates, key.updates);
        world_run(bf16, 2, &stat);
        assert_true(equal_weights(fp8, bf16));
        const ho_backtest_request request = {.policy = HO_POLICY_GREEDY,
                                             .slot_count = 1,
                                             .window = {0, gpu_size(1000, 200)},
                                             .want = HO_WANT_ACTIONS};
        CHECK_OK(ho_backtest(p.gpu->market, fp8, &request, 1, &a, &err), &err);
        CHECK_OK(ho_backtest(p.gpu->market, bf16, &request, 1, &b, &err), &err);
        assert_int_equal(a.bars, b.bars);
        assert_memory_equal(a.actions, b.actions, (size_t)a.bars);
        assert_true(a.final_equity == b.final_equity);
        ho_backtest_free(&a);
        ho_backtest_free(&b);
        world_run(fp8, 1, &stat); /* and the backtest's weights are not what acts next */
        world_run(bf16, 1, &stat);
        assert_true(equal_weights(fp8, bf16));
        ho_cohort_destroy(&fp8);
        ho_cohort_destroy(&bf16);
        close_pair(&p);
    }
}

/* Mostly greedy, in blocks of 8 slots alone and of up to 64 in the crowd; after a backtest, too. */
static void one_lane_has_one_hash(void **state)
{
    (void)state;
    ho_epoch_stat stat[CROWD];
    pair p = open_pair(BARS, 0, HO_MARKET_FEATURES);
    const ho_cohort_key key = key_of(p.gpu, HO_PRECISION_FP8);
    const int sizes[] = {1, 1, 3, gpu_size(CROWD, 5)};
    uint64_t want = 0;
    for (int s = 0; s < 4; s++) {
        ho_err err;
        ho_cohort *c;
        const int slot = sizes[s] / 2;
        CHECK_OK(ho_cohort_create(p.gpu->backend, p.gpu->market, &key, sizes[s], &c, &err), &err);
        for (int k = 0; k < sizes[s]; k++) {
            ho_lane_config lane = world_lane(p.gpu, &key, k == slot ? 11 : 100 + (uint64_t)k);
            lane.agent.eps_start = 0.1;
            lane.agent.learn_start = 1;
            lane.env.reset_flags = 0;
            CHECK_OK(ho_lane_start(c, k, &lane, &err), &err);
        }
        world_run(c, 1, stat);
        if (s % 2) {
            ho_backtest_result r;
            const ho_backtest_request request = {
                .policy = HO_POLICY_GREEDY, .slots = {slot}, .slot_count = 1, .window = {0, 40}};
            CHECK_OK(ho_backtest(p.gpu->market, c, &request, 1, &r, &err), &err);
            ho_backtest_free(&r);
        }
        world_run(c, 2, stat);
        const uint64_t got = world_hash(c, slot);
        want = s == 0 ? got : want;
        print_message("%d lanes: %016llx\n", sizes[s], (unsigned long long)got);
        if (got != want) {
            fail_msg("among %d lanes: another hash", sizes[s]);
        }
        CHECK_OK(ho_cuda_cohort_check_guards(c, &err), &err);
        ho_cohort_destroy(&c);
    }
    close_pair(&p);
}

/* What compute-sanitizer can finish: the held kernel and the one of any shape. */
static void a_short_run(void **state)
{
    (void)state;
    for (int held = gpu_size(1, 0); held >= 0; held--) {
        ho_err err;
        ho_epoch_stat stat;
        pair p = open_pair(400, 1, HO_MARKET_FEATURES);
        ho_cohort_key key = key_of(p.gpu, HO_PRECISION_FP8);
        key.hidden1 = held ? 256 : 40;
        key.batch = 64;
        key.episodes = 9;
        key.episode_length = 6;
        key.updates = 1;
        ho_lane_config lane = world_lane(p.gpu, &key, 3);
        lane.agent.learn_start = 1;
        ho_cohort *c = open_one(p.gpu, &key, &lane);
        world_run(c, 2, &stat);
        assert_int_equal(stat.updates, 1);
        CHECK_OK(ho_cuda_cohort_check_guards(c, &err), &err);
        ho_cohort_destroy(&c);
        close_pair(&p);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_weights_and_features_are_rounded),
        cmocka_unit_test(steps_are_chosen_as_on_the_cpu),
        cmocka_unit_test(learning_and_scores_are_bf16s),
        cmocka_unit_test(one_lane_has_one_hash),
        cmocka_unit_test(a_short_run),
    };
    return GPU_TESTS_RUN(tests, argc, argv);
}
