/* SPDX-License-Identifier: Apache-2.0
 * From a study's settings to the numbers of a trial: shapes, updates, sizes, windows, keys. */
#include "check.h"

#include <stdlib.h>

#include "kernels/agents/agent_check.h"
#include "kernels/env/rng.h"
#include "worker/lane_config.h"

enum { T = 400 };

static ho_study *study;
static ho_fold_plan folds;
static ho_bars bars;
static double ohlcv[T][5];
static ho_lane_context context;
static ho_trial_plan *plan;
static ho_err err;

/* A close of 100 that goes up and down by 1. */
static int setup(void **state)
{
    (void)state;
    ho_err_clear(&err);
    memset(&bars, 0, sizeof bars);
    memset(&folds, 0, sizeof folds);
    for (int t = 0; t < T; t++) {
        double close = 100.0 + t % 2;
        double row[5] = {close, close, close, close, 10.0};
        memcpy(ohlcv[t], row, sizeof row);
    }
    bars.count = T;
    bars.ohlcv = &ohlcv[0][0];
    bars.sessions_per_year = 252;
    bars.has_volume = true;
    folds.count = 2;
    folds.T = T;
    for (int f = 0; f < 2; f++) {
        folds.fold[f].train = (ho_window){.begin = 100 * f, .end = 100 * f + 80};
        folds.fold[f].validation = (ho_window){.begin = 100 * f + 85, .end = 100 * f + 95};
        folds.fold[f].test = (ho_window){.begin = 100 * f + 200, .end = 100 * f + 300};
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ho_trial_plan_destroy(&plan);
    ho_study_free(&study);
    return 0;
}

static ho_status make(const char *toml, const double *config)
{
    char text[2048];
    snprintf(text, sizeof text, "[data]\npath = \"x.csv\"\n%s", toml);
    CHECK_OK(ho_study_parse(text, strlen(text), "test.toml", ".", &study, &err), &err);
    context =
        (ho_lane_context){.study = study, .folds = &folds, .bars = &bars, .market_features = 51};
    ho_lane_trial asked = {.number = 9, .attempt = 2, .seed = 42, .config = config};
    return ho_lane_config_plan(&context, &asked, &plan, &err);
}

static void defaults_are_those_of_the_specification(void **state)
{
    (void)state;
    CHECK_OK(make("", NULL), &err);
    assert_int_equal(plan->number, 9);
    assert_int_equal(plan->attempt, 2);
    assert_int_equal(plan->lanes, 2);
    assert_int_equal(plan->key.algorithm, HO_DQN);
    assert_int_equal(plan->key.hidden1, 256);
    assert_int_equal(plan->key.head, 128);
    assert_int_equal(plan->key.market_features, 51);
    assert_int_equal(plan->key.batch, 512);
    assert_int_equal(plan->key.updates, 125); /* 1.0 x 128 episodes x 500 steps / 512 */
    assert_int_equal(plan->key.dueling, 1);
    assert_int_equal(plan->key.atoms, 0);
    assert_int_equal(plan->key.curiosity, 0);
    assert_int_equal(plan->lane[0].agent.learn_start, 20 * 512);
    CHECK_CLOSE(plan->lane[0].agent.v_max, 3.0 / sqrt(1.0 - 0.99 * 0.99), 1e-12);
    assert_int_equal(plan->objective[0], HO_METRIC_SHARPE);
    assert_int_equal(plan->lane[1].train.begin, 100);
    assert_int_equal(plan->test[1].begin, 300);
    assert_int_equal(plan->validation[0].end, 95);
}

static void every_lane_has_its_own_random_key(void **state)
{
    (void)state;
    CHECK_OK(make("[study]\nseeds = 2\n", NULL), &err);
    assert_int_equal(plan->lanes, 4);
    for (int i = 0; i < 4; i++) {
        uint64_t key[2];
        ho_rng_key(42, 9, (uint64_t)(i / 2), (uint64_t)(i % 2), key);
        assert_memory_equal(plan->lane[i].rng_key, key, sizeof key);
    }
}

static void a_configuration_changes_what_its_keys_name(void **state)
{
    (void)state;
    double config[] = {2e-3, 120};
    CHECK_OK(make("[search]\n\"dqn.learning_rate\" = { float = [1e-5, 3e-3], log = true }\n"
                  "\"barriers.max_holding\" = { int = [10, 240], step = 10 }\n",
                  config),
             &err);
    CHECK_NEAR(plan->lane[0].agent.learning_rate, 2e-3, 0);
    assert_int_equal(plan->lane[1].env.max_holding, 120);
}

static void sizes_follow_the_train_window(void **state)
{
    (void)state;
    CHECK_OK(make("[env]\ninitial_capital = 10_000\n[instrument]\nlot = 1\n", NULL), &err);
    assert_int_equal(plan->lane[0].env.max_lots, 100); /* 10,000 buy 100 units at 100 */
    /* the close moves by 1 a bar: 100 units are 1 % of the capital */
    CHECK_CLOSE(plan->lane[0].env.sigma_ref, 0.01, 0.02);
    CHECK_CLOSE(plan->lane[0].env.target_vol, 0.01, 0.02);
}

static void tick_volume_moves_no_price(void **state)
{
    (void)state;
    CHECK_OK(make("", NULL), &err);
    assert_int_equal(plan->lane[0].env.has_volume, 1);
    CHECK_NEAR(plan->lane[0].env.impact_coef, 0.5, 0);
    teardown(NULL);
    CHECK_OK(make("volume = \"ticks\"\n", NULL), &err);
    assert_int_equal(plan->lane[0].env.has_volume, 0);
    CHECK_NEAR(plan->lane[0].env.impact_coef, 0.0, 0);
}

static void ppo_has_its_own_shape(void **state)
{
    (void)state;
    CHECK_OK(make("[agent]\nalgorithm = \"ppo\"\n[env]\nepisodes = 8\n[ppo]\nrollout = 16\n"
                  "factored = true\n",
                  NULL),
             &err);
    assert_int_equal(plan->key.algorithm, HO_PPO);
    assert_int_equal(plan->key.rollout, 16);
    assert_int_equal(plan->key.batch, 128); /* a minibatch is at most the rollout */
    assert_int_equal(plan->key.updates, 0);
    assert_int_equal(plan->key.replay_capacity, 0);
    assert_int_equal(plan->key.ppo_factored, 1);
}

static void the_original_reward_needs_its_curiosity(void **state)
{
    (void)state;
    CHECK_OK(make("[reward]\npreset = \"original\"\n", NULL), &err);
    assert_int_equal(plan->key.curiosity, 1);
    assert_int_equal(plan->lane[0].env.reward_preset, HO_PRESET_ORIGINAL);
}

static void refit_once_trains_one_agent_a_seed(void **state)
{
    (void)state;
    CHECK_OK(make("[folds]\nrefit = \"once\"\n[study]\nseeds = 3\n", NULL), &err);
    assert_int_equal(plan->lanes, 3);
    assert_int_equal(plan->folds, 2);
    assert_int_equal(ho_trial_plan_test_count(plan), 2);
    assert_int_equal(plan->lane[2].train.begin, 0);
}

static void without_validation_pruning_on_test_is_asked_for(void **state)
{
    (void)state;
    folds.fold[0].validation = (ho_window){.begin = 80, .end = 80};
    CHECK_OK(make("", NULL), &err);
    assert_true(plan->validation[0].end == plan->validation[0].begin);
    teardown(NULL);
    CHECK_OK(make("[folds]\nvalidation = \"0\"\nprune_on_test = true\n", NULL), &err);
    assert_int_equal(plan->validation[0].begin, plan->test[0].begin);
}

static void what_cannot_run_is_named(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"[env]\nactions = \"exposure5\"\n[dqn]\nbranching = true\n", "dqn.branching"},
        {"[env]\nactions = \"exposure5\"\n[agent]\nalgorithm = \"ppo\"\n[ppo]\nfactored = true\n",
         "ppo.factored"},
        {"[dqn]\nbatch = \"auto\"\n", "dqn.batch"},
        {"[env]\ninitial_capital = 10\n[instrument]\nlot = 1\n", "buys no lot"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_not_equal(make(bad[i][0], NULL), HO_OK);
        assert_null(plan);
        CHECK_CONTAINS(err.text, bad[i][1]);
        teardown(NULL);
    }
}

static void a_running_agent_can_take_numbers_of_its_learning_only(void **state)
{
    (void)state;
    double config[] = {1e-3, 0.99, 40, 64, 1};
    bool may_change[5];
    CHECK_OK(make("[search]\n\"dqn.learning_rate\" = { float = [1e-5, 3e-3], log = true }\n"
                  "\"dqn.gamma\" = { float = [0.9, 0.999] }\n"
                  "\"barriers.stop_loss\" = { float = [10, 80] }\n"
                  "\"agent.hidden1\" = { int = [32, 128], step = 32 }\n"
                  "\"dqn.replay_ratio\" = { float = [0.5, 2] }\n",
                  config),
             &err);
    CHECK_OK(ho_lane_config_may_change(&context, config, may_change, &err), &err);
    assert_true(may_change[0] && may_change[1]);
    assert_false(may_change[2]);
    assert_false(may_change[3]);
    assert_false(may_change[4]); /* updates an epoch are part of the shape */
    ho_agent_config agent;
    config[1] = 0.95;
    CHECK_OK(ho_lane_config_agent_of(&context, config, &agent, &err), &err);
    CHECK_NEAR(agent.gamma, 0.95, 0);
}

/* Raced folds: a fold run alone draws the same numbers and sees the same windows as among all. */
static void a_fold_run_alone_is_the_fold_among_all(void **state)
{
    (void)state;
    const int32_t one[] = {1}, bad[][2] = {{1, 0}, {0, 0}, {0, 2}, {-1, 0}};
    ho_trial_plan *alone = NULL;
    ho_lane_trial asked = {.number = 9, .attempt = 3, .seed = 42, .fold_count = 1, .fold = one};
    CHECK_OK(make("[study]\nseeds = 2\n", NULL), &err);
    assert_int_equal(plan->study_folds, 2);
    assert_int_equal(plan->fold[1], 1);
    CHECK_OK(ho_lane_config_plan(&context, &asked, &alone, &err), &err);
    assert_int_equal(alone->folds, 1);
    assert_int_equal(alone->study_folds, 2);
    assert_int_equal(alone->fold[0], 1);
    assert_int_equal(alone->lanes, 2);
    assert_memory_equal(alone->test, &plan->test[1], sizeof *alone->test);
    assert_memory_equal(alone->validation, &plan->validation[1], sizeof *alone->validation);
    assert_memory_equal(alone->lane, &plan->lane[2], 2 * sizeof *alone->lane);
    ho_trial_plan_destroy(&alone);
    asked.fold_count = 2;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        asked.fold = bad[i];
        CHECK_STATUS(ho_lane_config_plan(&context, &asked, &alone, &err), HO_EINVAL);
        CHECK_CONTAINS(err.text, "cannot be run alone");
        assert_null(alone);
    }
}

static void a_flat_train_window_is_bad_data(void **state)
{
    (void)state;
    for (int t = 100; t < 200; t++) {
        ohlcv[t][HO_CLOSE] = 100.0;
    }
    CHECK_STATUS(make("", NULL), HO_EDATA);
    CHECK_CONTAINS(err.text, "fold 1");
}

static void every_algorithm_passes_the_checks_of_the_backend(void **state)
{
    static const char *const form[] = {"algorithm = \"dqn\"\n", "algorithm = \"ppo\"\n",
                                       "noisy = true\n", "distributional = true\n",
                                       "branching = true\n"};
    (void)state;
    for (size_t i = 0; i < sizeof form / sizeof form[0]; i++) {
        char toml[128];
        snprintf(toml, sizeof toml, "[%s]\n%s", i < 2 ? "agent" : "dqn", form[i]);
        CHECK_OK(make(toml, NULL), &err);
        CHECK_OK(ho_cohort_key_check(&plan->key, &err), &err);
        CHECK_OK(ho_agent_config_check(&plan->key, &plan->lane[0].agent, &err), &err);
        CHECK_NEAR(plan->lane[0].agent.eps_start, plan->key.noisy ? 0.0 : 1.0, 0);
        ho_trial_plan_destroy(&plan);
        ho_study_free(&study);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(defaults_are_those_of_the_specification),
        TEST(every_lane_has_its_own_random_key),
        TEST(a_configuration_changes_what_its_keys_name),
        TEST(sizes_follow_the_train_window),
        TEST(tick_volume_moves_no_price),
        TEST(ppo_has_its_own_shape),
        TEST(the_original_reward_needs_its_curiosity),
        TEST(refit_once_trains_one_agent_a_seed),
        TEST(without_validation_pruning_on_test_is_asked_for),
        TEST(what_cannot_run_is_named),
        TEST(a_running_agent_can_take_numbers_of_its_learning_only),
        TEST(a_fold_run_alone_is_the_fold_among_all),
        TEST(a_flat_train_window_is_bad_data),
        TEST(every_algorithm_passes_the_checks_of_the_backend),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
