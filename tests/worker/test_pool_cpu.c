/* SPDX-License-Identifier: Apache-2.0
 * The pool on a backend (backend_choice.h): real agents, small. A trial's numbers must not depend
 * on its neighbours, its slots, an interruption or what runs beside it. */
#include "backend_choice.h"
#include "check.h"

#include <stdlib.h>

#include "kernels/env/config_check.h"
#include "kernels/env/rng.h"
#include "study/log.h"
#include "worker/cohort_pool.h"

enum { T = 3000, F = 8, LOG_ROOM = 1 << 16 };

static ho_backend *backend;
static ho_market *market;
static ho_pool *pool;
static ho_err err;

/* Everything trial 1 said, as text with all digits. */
static char said[LOG_ROOM];
static size_t said_length;

static void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(said + said_length, LOG_ROOM - said_length, format, args);
    va_end(args);
    said_length += (size_t)n;
    assert_true(said_length < LOG_ROOM);
}

static void on_epoch(void *user, const ho_trial_run *run, const ho_trial_epoch *row)
{
    (void)user;
    if (run->plan->number == 1) {
        say("epoch %d value %a loss %a reward %a q %a steps %lld\n", row->epoch, row->value[0],
            row->stat.loss_mean, row->stat.reward_mean, row->stat.q_mean,
            (long long)row->stat.experiences);
    }
}

static void on_finished(void *user, ho_trial_run *run)
{
    int *finished = user;
    (*finished)++;
    for (int i = 0; run->plan->number == 1 && i < run->plan->folds * run->plan->seeds; i++) {
        say("test %d pnl %a steps %lld trades %lld\n", i,
            run->test[i].metrics.value[HO_METRIC_TOTAL_PNL], (long long)run->test[i].steps,
            (long long)run->test[i].trades_closed);
    }
}

static void on_failed(void *user, const ho_trial_run *run, const ho_trial_failure *failure)
{
    (void)user;
    fail_msg("trial %lld: %s", (long long)run->plan->number, failure->reason);
}

static int finished;
static bool one_by_one; /* a GPU waits for the host, too */

static void open_pool(int lanes)
{
    ho_pool_options options = {
        .backend = backend, .market = market, .lanes = lanes, .overlap = !one_by_one};
    options.sink = (ho_pool_sink){&finished, on_epoch, on_finished, on_failed, NULL};
    CHECK_OK(ho_pool_create(&pool, &options, &err), &err);
    finished = 0;
}

/* A price that walks, with features that see a little of it. */
static int load_market(void **state)
{
    (void)state;
    static double bars[T][5];
    static float features[T][F];
    static int64_t open_ns[T];
    static int32_t session[T];
    double price = 100.0;
    uint64_t x = 1;
    ho_log_set_level(HO_LOG_ERROR);
    for (int t = 0; t < T; t++) {
        x = ho_splitmix64(x);
        double step = ((double)(x >> 40) / (double)(1 << 24) - 0.5) * 0.2;
        bars[t][HO_OPEN] = price;
        price += step;
        bars[t][HO_CLOSE] = price;
        bars[t][HO_HIGH] = fmax(price, price - step) + 0.02;
        bars[t][HO_LOW] = fmin(price, price - step) - 0.02;
        bars[t][HO_VOLUME] = 1000.0;
        for (int f = 0; f < F; f++) {
            features[t][f] = (float)(step * (f + 1) * 5.0);
        }
        open_ns[t] = (int64_t)t * 60000000000;
        session[t] = t / 300;
    }
    ho_backend_options options = test_backend_options(2);
    ho_market_data data = {.T = T,
                           .F = F,
                           .features = &features[0][0],
                           .bars = &bars[0][0],
                           .open_ns = open_ns,
                           .interval_ns = 60000000000,
                           .session = session,
                           .has_volume = 1};
    if (ho_backend_open(&backend, &options, &err) != HO_OK ||
        ho_market_load(backend, &data, &market, &err) != HO_OK) {
        print_error("%s\n", err.text);
        return -1;
    }
    return 0;
}

static int unload_market(void **state)
{
    (void)state;
    ho_market_unload(&market);
    ho_backend_close(&backend);
    return 0;
}

static int setup(void **state)
{
    (void)state;
    said_length = 0;
    said[0] = '\0';
    ho_err_clear(&err);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ho_pool_destroy(&pool);
    return 0;
}

/* Two folds of two seeds; trial 2 and others differ from trial 1 in numbers, not in shape. */
static ho_trial_plan *plan_of(int64_t number, int epochs)
{
    ho_trial_plan *plan = NULL;
    CHECK_OK(ho_trial_plan_create(&plan, 2, 2, 2, &err), &err);
    plan->number = number;
    plan->attempt = 1;
    plan->key = (ho_cohort_key){
        .algorithm = HO_DQN,
        .hidden1 = 16,
        .hidden2 = 16,
        .head = 8,
        .market_features = F,
        .dueling = 1,
        .replay_capacity = 2048,
        .episodes = 8,
        .episode_length = 32,
        .batch = 32,
        .updates = 8,
    };
    for (int i = 0; i < plan->lanes; i++) {
        int fold = i / 2;
        ho_lane_config *lane = &plan->lane[i];
        lane->env = ho_env_config_defaults();
        lane->env.max_lots = 10;
        lane->agent = (ho_agent_config){.learning_rate = 1e-3 * (double)number,
                                        .adam_beta1 = 0.9,
                                        .adam_beta2 = 0.999,
                                        .adam_eps = 1e-5,
                                        .max_grad_norm = 10,
                                        .gamma = 0.95,
                                        .double_q = 1,
                                        .n_step = 2,
                                        .huber_delta = 1,
                                        .tau = 0.01,
                                        .target_every = 1,
                                        .learn_start = 64,
                                        .v_max = 10,
                                        .eps_start = 1,
                                        .eps_end = 0.05,
                                        .eps_share = 0.5,
                                        .explore_hold = 4,
                                        .per_alpha = 0.6,
                                        .per_beta_start = 0.4,
                                        .per_beta_end = 1,
                                        .noisy_sigma0 = 0.5,
                                        .gae_lambda = 0.95,
                                        .clip = 0.2,
                                        .vf_coef = 0.5,
                                        .curiosity_every = 4,
                                        .curiosity_lr = 1e-3,
                                        .loss_ceiling = 1e4,
                                        .q_ceiling = 1e3,
                                        .grad_patience = 100,
                                        .epochs = epochs};
        lane->train = (ho_window){.begin = 100 + 700 * fold, .end = 1100 + 700 * fold};
        ho_rng_key(42, (uint64_t)number, (uint64_t)fold, (uint64_t)(i % 2), lane->rng_key);
    }
    const int quick = getenv("HYPEROPT_TEST_QUICK") != NULL; /* where a sanitizer makes it slow */
    const int64_t validation = quick ? 60 : 180, test = quick ? 190 : 580;
    for (int f = 0; f < 2; f++) {
        const int64_t begin = 1120 + 700 * f;
        plan->validation[f] = (ho_window){.begin = begin, .end = begin + validation};
        plan->test[f] = (ho_window){.begin = begin + 200, .end = begin + 200 + test};
    }
    plan->epochs = epochs;
    plan->eval_every = 2;
    plan->objectives = 1;
    plan->objective[0] = HO_METRIC_TOTAL_RETURN;
    return plan;
}

static void add(int64_t number, int epochs)
{
    ho_trial_plan *plan = plan_of(number, epochs);
    CHECK_OK(ho_pool_add(pool, &plan, &err), &err);
}

static void run_all(void)
{
    for (bool worked = true; worked;) {
        CHECK_OK(ho_pool_step(pool, &worked, &err), &err);
    }
}

static char *alone(int lanes)
{
    open_pool(lanes);
    add(1, 5);
    run_all();
    assert_int_equal(finished, 1);
    char *text = strdup(said);
    teardown(NULL);
    setup(NULL);
    return text;
}

static void a_trial_trains_and_trades(void **state)
{
    (void)state;
    char *text = alone(4);
    CHECK_CONTAINS(text, "epoch 5 value");
    CHECK_CONTAINS(text, "test 3 pnl");
    CHECK_CONTAINS(text, "steps 1024\n"); /* 4 lanes x 8 episodes x 32 steps */
    free(text);
}

static void overlap_changes_no_bit(void **state)
{
    (void)state;
    char *text = alone(4);
    one_by_one = true;
    char *calm = alone(4);
    one_by_one = false;
    assert_string_equal(calm, text);
    free(calm);
    free(text);
}

static void slots_and_neighbours_change_no_bit(void **state)
{
    (void)state;
    char *text = alone(4);
    open_pool(12);
    add(2, 7);
    add(1, 5);
    add(3, 2);
    run_all();
    assert_int_equal(finished, 3);
    assert_string_equal(said, text);
    teardown(NULL);
    setup(NULL);
    char *narrow = alone(1); /* lane after lane */
    assert_string_equal(narrow, text);
    free(narrow);
    free(text);
}

static void a_resumed_trial_goes_on_bit_for_bit(void **state)
{
    (void)state;
    char *text = alone(4);
    bool worked = false;
    void *blob = NULL;
    size_t size = 0;
    open_pool(4);
    add(1, 5);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(ho_pool_step(pool, &worked, &err), &err);
    }
    CHECK_OK(ho_pool_settle(pool, -1, &err), &err);
    CHECK_OK(ho_pool_checkpoint(pool, 1, 1, true, &blob, &size, &err), &err);
    teardown(NULL);
    open_pool(6);
    add(4, 3); /* takes the first slots */
    ho_trial_plan *plan = plan_of(1, 5);
    CHECK_OK(ho_pool_resume(pool, &plan, blob, size, &err), &err);
    free(blob);
    run_all();
    assert_string_equal(said, text);
    free(text);
}

/* The decision on epoch 2 comes when the trial is two epochs further. What it told of those was not
 * heard; another worker tells it again, and ends where the trial would have ended. */
static void a_paused_trial_goes_on_elsewhere_bit_for_bit(void **state)
{
    (void)state;
    char *text = alone(4);
    for (int replay = 1; replay >= 0; replay--) {
        bool worked = false;
        void *blob = NULL;
        size_t size = 0, heard = 0;
        open_pool(4);
        ho_trial_plan *plan = plan_of(1, 5);
        plan->may_pause = true;
        CHECK_OK(ho_pool_add(pool, &plan, &err), &err);
        for (int i = 0; i < 4; i++) {
            CHECK_OK(ho_pool_step(pool, &worked, &err), &err);
        }
        CHECK_OK(ho_pool_settle(pool, -1, &err), &err);
        heard = (size_t)(strstr(said, "epoch 3 ") - said);
        if (replay) {
            CHECK_OK(ho_pool_pause(pool, 1, 1, 2, &blob, &size, &err), &err);
        } else { /* what it takes: without the ring the same agents learn something else */
            CHECK_OK(ho_pool_checkpoint(pool, 1, 1, false, &blob, &size, &err), &err);
        }
        assert_true(ho_pool_drop(pool, 1, 1));
        said_length = replay ? heard : said_length;
        said[said_length] = '\0';
        ho_pool_destroy(&pool);
        open_pool(6);
        add(4, 3); /* takes the first slots */
        plan = plan_of(1, 5);
        plan->attempt = 2;
        CHECK_OK(ho_pool_resume(pool, &plan, blob, size, &err), &err);
        free(blob);
        run_all();
        if (replay) {
            assert_string_equal(said, text);
        } else {
            assert_string_not_equal(said, text);
        }
        teardown(NULL);
        setup(NULL);
    }
    free(text);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_trial_trains_and_trades),
        TEST(overlap_changes_no_bit),
        TEST(slots_and_neighbours_change_no_bit),
        TEST(a_resumed_trial_goes_on_bit_for_bit),
        TEST(a_paused_trial_goes_on_elsewhere_bit_for_bit),
    };
    return cmocka_run_group_tests(tests, load_market, unload_market);
}
