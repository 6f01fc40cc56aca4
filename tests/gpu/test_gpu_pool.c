/* SPDX-License-Identifier: Apache-2.0
 * Device memory through the backend's pool: what a study leaves behind, what is kept, and that
 * where memory comes from decides nothing. */
#include <cuda_runtime.h>
#include <stdlib.h>

#include "agents/world.h"
#include "check.h"
#include "gpu/run.h"
#include "gpu/sizes.h"
#include "kernels/cuda/cuda_backend.h"

enum { BARS = 2000 };

static world *open_world(void)
{
    ho_backend_options options = ho_backend_defaults();
    options.kind = HO_BACKEND_CUDA;
    return world_new_on(WORLD_SIGNAL, BARS, 4, WORLD_FEATURES, &options);
}

static uint64_t pool_bytes(const world *w, enum cudaMemPoolAttr attribute)
{
    uint64_t bytes = 0;
    const cuda_backend *b = (const cuda_backend *)w->backend;
    assert_int_equal(cudaMemPoolGetAttribute(b->pool.pool, attribute, &bytes), cudaSuccess);
    return bytes;
}

/* One lane through an epoch and a backtest; returns the final equity. */
static double train_and_score(world *w, int replay_capacity)
{
    ho_err err;
    ho_cohort *c;
    ho_epoch_stat stat;
    ho_backtest_result r;
    ho_cohort_key key = world_key(w, HO_DQN);
    key.updates = gpu_size(20, 2);
    key.replay_capacity = replay_capacity;
    CHECK_OK(ho_cohort_create(w->backend, w->market, &key, 1, &c, &err), &err);
    ho_lane_config lane = world_lane(w, &key, 3);
    lane.agent.learn_start = 1;
    CHECK_OK(ho_lane_start(c, 0, &lane, &err), &err);
    CHECK_OK(ho_cohort_run_epoch(c, &stat, &err), &err);
    assert_int_equal(stat.updates, key.updates);
    const ho_backtest_request request = {.policy = HO_POLICY_GREEDY,
                                         .slot_count = 1,
                                         .window = {0, gpu_size(BARS, 40)},
                                         .want = HO_WANT_BARS | HO_WANT_TRADES};
    CHECK_OK(ho_backtest(w->market, c, &request, 1, &r, &err), &err);
    const double equity = r.final_equity;
    ho_backtest_free(&r);
    CHECK_OK(ho_cuda_cohort_check_guards(c, &err), &err);
    ho_cohort_destroy(&c);
    return equity;
}

static int has_pool(const world *w)
{
    return ((const cuda_backend *)w->backend)->pool.pool != NULL;
}

/* ray 23971: memory kept by finished trials. */
static void a_finished_study_holds_no_memory(void **state)
{
    (void)state;
    world *w = open_world();
    if (!has_pool(w)) {
        world_free(&w);
        skip(); /* a device without pools */
    }
    (void)train_and_score(w, 2000);
    assert_true(pool_bytes(w, cudaMemPoolAttrUsedMemCurrent) > 0); /* the market */
    ho_market_unload(&w->market);
    assert_true(pool_bytes(w, cudaMemPoolAttrUsedMemCurrent) == 0);
    assert_true(pool_bytes(w, cudaMemPoolAttrReservedMemCurrent) == 0);
    world_free(&w);
}

/* The driver hands memory out in pieces of 32 MB: one more than what may be kept. */
static void a_large_cohort_does_not_stay_in_the_pool(void **state)
{
    (void)state;
    world *w = open_world();
    if (!has_pool(w)) {
        world_free(&w);
        skip();
    }
    const uint64_t before = pool_bytes(w, cudaMemPoolAttrUsedMemCurrent);
    for (int trial = 0; trial < 3; trial++) {
        (void)train_and_score(w, gpu_size(4 << 20, 1 << 20) >> trial); /* 100s of MB */
        const uint64_t reserved = pool_bytes(w, cudaMemPoolAttrReservedMemCurrent);
        print_message("reserved after trial %d: %llu MB\n", trial,
                      (unsigned long long)(reserved >> 20));
        assert_true(pool_bytes(w, cudaMemPoolAttrUsedMemCurrent) >= before);
        assert_true(reserved <= before + 2 * HO_POOL_KEPT_BYTES);
    }
    world_free(&w);
}

static void too_much_is_refused_and_nothing_else_suffers(void **state)
{
    (void)state;
    for (int plain = 0; plain < 2; plain++) {
        void *p = &p;
        assert_int_equal(setenv("HYPEROPT_CUDA_POOL", plain ? "0" : "1", 1), 0);
        world *w = open_world();
        ho_device_pool *pool = &((cuda_backend *)w->backend)->pool;
        assert_int_equal(ho_device_pool_take(pool, &p, (size_t)1 << 46, NULL, "too much"),
                         HO_ENOMEM);
        assert_null(p);
        assert_true(train_and_score(w, 2000) > 0.0);
        world_free(&w);
    }
    assert_int_equal(unsetenv("HYPEROPT_CUDA_POOL"), 0);
}

static void without_pools_the_bits_are_the_same(void **state)
{
    (void)state;
    double equity[2];
    for (int plain = 0; plain < 2; plain++) {
        assert_int_equal(setenv("HYPEROPT_CUDA_POOL", plain ? "0" : "1", 1), 0);
        world *w = open_world();
        assert_true(!plain || !has_pool(w));
        equity[plain] = train_and_score(w, 2000);
        world_free(&w);
    }
    assert_int_equal(unsetenv("HYPEROPT_CUDA_POOL"), 0);
    assert_true(equity[0] == equity[1] && equity[0] > 0.0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_finished_study_holds_no_memory),
        cmocka_unit_test(a_large_cohort_does_not_stay_in_the_pool),
        cmocka_unit_test(too_much_is_refused_and_nothing_else_suffers),
        cmocka_unit_test(without_pools_the_bits_are_the_same),
    };
    return GPU_TESTS_RUN(tests, argc, argv);
}
