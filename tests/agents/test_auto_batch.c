/* SPDX-License-Identifier: Apache-2.0 */
#include "agents/world.h"
#include "check.h"
#include "kernels/auto_batch.h"

static void the_largest_batch_that_still_gains_is_chosen(void **state)
{
    (void)state;
    const double rising[] = {100, 190, 350, 500, 520, 900};
    assert_int_equal(ho_auto_batch_choose(rising, 6, 64), 512); /* 520 is under 5 % more */
    const double full[] = {100, 0};
    assert_int_equal(ho_auto_batch_choose(full, 2, 64), 64); /* twice as much does not fit */
    assert_int_equal(ho_auto_batch_choose(rising, 1, 64), 64);
    const double nan[] = {100, NAN, 1e9};
    assert_int_equal(ho_auto_batch_choose(nan, 3, 64), 64);
}

static void the_linear_rule_begins_beyond_four_times_the_default(void **state)
{
    (void)state;
    CHECK_NEAR(ho_auto_batch_learning_rate(3e-4, 512), 3e-4, 0.0);
    CHECK_NEAR(ho_auto_batch_learning_rate(3e-4, 2048), 3e-4, 0.0);
    CHECK_NEAR(ho_auto_batch_learning_rate(3e-4, 4096), 8 * 3e-4, 1e-15);
}

static void a_measurement_gives_a_power_of_two_that_trains(void **state)
{
    (void)state;
    ho_err err;
    int32_t batch = 0;
    world *w = world_new(WORLD_SIGNAL, 300, 3, WORLD_FEATURES, 1);
    ho_cohort_key key = world_key(w, HO_DQN);
    const ho_lane_config lane = world_lane(w, &key, 1);
    CHECK_OK(ho_auto_batch_measure(w->backend, w->market, &key, &lane, 512, &batch, &err), &err);
    assert_true(batch >= 64 && batch <= 512 && (batch & (batch - 1)) == 0);
    ho_cohort *c;
    ho_epoch_stat stat;
    key.batch = batch;
    CHECK_OK(ho_cohort_create(w->backend, w->market, &key, 1, &c, &err), &err);
    CHECK_OK(ho_lane_start(c, 0, &lane, &err), &err);
    CHECK_OK(ho_cohort_run_epoch(c, &stat, &err), &err);
    assert_int_equal(stat.updates, key.updates);
    ho_cohort_destroy(&c);
    key.algorithm = HO_PPO;
    CHECK_STATUS(ho_auto_batch_measure(w->backend, w->market, &key, &lane, 512, &batch, &err),
                 HO_EINVAL);
    world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_batch_that_still_gains_is_chosen),
        cmocka_unit_test(the_linear_rule_begins_beyond_four_times_the_default),
        cmocka_unit_test(a_measurement_gives_a_power_of_two_that_trains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
