/* SPDX-License-Identifier: Apache-2.0
 * The CUDA backend against the CPU backend on the same data. Exact: the market (equity, trades,
 * labels, counts, metrics), random numbers, the experience of random actions. Bounded: values,
 * gradients and Adam steps; each bound carries its reason. */
#include <stdlib.h>

#include "agents/world.h"
#include "check.h"
#include "gpu/pair.h"
#include "gpu/run.h"
#include "gpu/sizes.h"
#include "kernels/env/rng.h"

enum { BARS = 3000 };

/* ---- the market ---- */

static ho_backtest_result run_one(world *w, const ho_backtest_request *request)
{
    ho_err err;
    ho_backtest_result r;
    CHECK_OK(ho_backtest(w->market, NULL, request, 1, &r, &err), &err);
    return r;
}

/* Every field and array, bit for bit. */
static void check_results_equal(const char *what, const ho_backtest_result *a,
                                const ho_backtest_result *b)
{
    assert_int_equal(a->bars, b->bars);
    for (int64_t i = 0; i <= a->bars; i++) {
        if (a->equity[i] != b->equity[i]) {
            fail_msg("%s: equity %lld: %.17g on the CPU, %.17g on the GPU", what, (long long)i,
                     a->equity[i], b->equity[i]);
        }
    }
    assert_memory_equal(a->bar_return, b->bar_return, (size_t)a->bars * sizeof(double));
    assert_int_equal(a->trade_count, b->trade_count);
    for (int64_t i = 0; i < a->trade_count; i++) {
        const ho_trade *x = &a->trades[i], *y = &b->trades[i];
        if (x->entry_bar != y->entry_bar || x->exit_bar != y->exit_bar || x->side != y->side ||
            x->reason != y->reason || x->entry_price != y->entry_price ||
            x->exit_price != y->exit_price || x->quantity != y->quantity ||
            x->max_quantity != y->max_quantity || x->net != y->net) {
            fail_msg("%s: trade %lld differs", what, (long long)i);
        }
    }
    assert_int_equal(a->sessions, b->sessions);
    assert_memory_equal(a->session_return, b->session_return, (size_t)a->sessions * sizeof(double));
    assert_memory_equal(a->session_id, b->session_id, (size_t)a->sessions * sizeof(int32_t));
    assert_memory_equal(a->action_count, b->action_count, sizeof a->action_count);
    assert_memory_equal(a->exit_count, b->exit_count, sizeof a->exit_count);
    assert_int_equal(a->ambiguous_bars, b->ambiguous_bars);
    assert_int_equal(a->position_changes, b->position_changes);
    assert_int_equal(a->ruined, b->ruined);
    assert_true(a->fees == b->fees && a->spread == b->spread && a->impact == b->impact &&
                a->rounding == b->rounding && a->realised == b->realised &&
                a->traded == b->traded && a->open_pnl == b->open_pnl);
    for (int m = 0; m < HO_METRIC_COUNT; m++) {
        assert_int_equal(a->metrics.reason[m], b->metrics.reason[m]);
        if (a->metrics.reason[m] == HO_REASON_DEFINED &&
            a->metrics.value[m] != b->metrics.value[m]) {
            fail_msg("%s: metric %d: %.17g on the CPU, %.17g on the GPU", what, m,
                     a->metrics.value[m], b->metrics.value[m]);
        }
    }
    assert_int_equal(a->metrics.flags, b->metrics.flags);
}

/* Settings that between them reach every branch of the step. */
static ho_env_config setting(const world *w, int which)
{
    ho_env_config env = world_env(w, 2.0, 1.5);
    env.max_lots = 7;
    env.lot = 100.0;
    env.impact_coef = which % 2 ? 0.5 : 0.0;
    env.tick_size = which == 2 || which == 5 ? 0.01 : 0.0;
    if (which >= 1) {
        env.profit_target = 30.0;
        env.stop_loss = 20.0;
        env.max_holding = 12;
        env.cooldown = which == 4 ? 3 : 0;
    }
    if (which == 3) {
        env.barrier_unit = HO_BARRIER_SIGMA;
        env.profit_target = 2.0;
        env.stop_loss = 1.5;
        env.sizing = HO_SIZING_VOLATILITY;
        env.target_vol = w->move * 0.7;
    }
    if (which == 4) {
        env.reward_base = HO_REWARD_DSR;
        env.dsr_eta = 0.02;
        env.diversity_penalty = 0.1;
        env.flat_at_session_end = 1;
    }
    if (which == 5) {
        env.fill = HO_FILL_CLOSE;
        env.allow_short = 0;
        env.spread_ticks = 2.0;
    }
    return env;
}
enum { SETTINGS = 6 };

static void the_same_actions_give_the_same_bits(void **state)
{
    (void)state;
    pair p = open_pair(BARS, 0, WORLD_FEATURES);
    uint8_t *actions = malloc(BARS);
    const uint32_t key[2] = {5, 6};
    int32_t action = 0;
    for (int i = 0; i < BARS - 1; i++) {
        const ho_rng4 r = ho_rng(key, (uint32_t)i, 0, 0, HO_RNG_ACTION, 0);
        action = ho_rng_float(r.v[0]) < 0.4f ? (int32_t)ho_rng_below(r.v[1], HO_ACTIONS) : action;
        actions[i] = (uint8_t)action;
    }
    for (int which = 0; which < SETTINGS; which++) {
        char what[32];
        const ho_env_config env = setting(p.cpu, which);
        const ho_backtest_request request = {.policy = HO_POLICY_ACTIONS,
                                             .window = {0, BARS},
                                             .env = &env,
                                             .actions = actions,
                                             .want = 15};
        ho_backtest_result a = run_one(p.cpu, &request), b = run_one(p.gpu, &request);
        snprintf(what, sizeof what, "setting %d", which);
        check_results_equal(what, &a, &b);
        assert_true(a.trade_count > 100);
        print_message("%s: %lld trades, equal\n", what, (long long)a.trade_count);
        ho_backtest_free(&a);
        ho_backtest_free(&b);
    }
    free(actions);
    close_pair(&p);
}

static void rule_policies_give_the_same_bits(void **state)
{
    (void)state;
    pair p = open_pair(BARS, 0, WORLD_FEATURES);
    float *targets = malloc(BARS * sizeof *targets);
    for (int i = 0; i < BARS - 1; i++) {
        targets[i] = (float)((i * 7919) % 201 - 100) / 100.0f;
    }
    for (int policy = HO_POLICY_TARGETS; policy <= HO_POLICY_RANDOM; policy++) {
        char what[32];
        const ho_env_config env = setting(p.cpu, 1);
        ho_backtest_request request = {.policy = (ho_policy)policy,
                                       .window = {100, BARS - 57},
                                       .env = &env,
                                       .targets = targets,
                                       .momentum_bars = 20,
                                       .random_turnover = 0.1,
                                       .random_exposure = 0.6,
                                       .want = 15};
        ho_rng_key(1, 2, 3, 4, request.rng_key);
        ho_backtest_result a = run_one(p.cpu, &request), b = run_one(p.gpu, &request);
        snprintf(what, sizeof what, "policy %d", policy);
        check_results_equal(what, &a, &b);
        ho_backtest_free(&a);
        ho_backtest_free(&b);
    }
    free(targets);
    close_pair(&p);
}

/* ---- lanes ---- */

/* Random actions only, so that no rounding of a network decides anything. */
static ho_lane_config random_lane(const world *w, const ho_cohort_key *key)
{
    ho_lane_config lane = world_lane(w, key, 3);
    lane.agent.eps_start = lane.agent.eps_end = 1.0;
    lane.agent.explore_hold = 4.0;
    lane.agent.learn_start = 1;
    lane.env.random_start = 0.5;
    lane.env.profit_target = 30.0;
    lane.env.stop_loss = 20.0;
    lane.env.max_holding = 9;
    lane.env.diversity_penalty = 0.1;
    return lane;
}

/* The one whose second layer a block's registers hold. */
static void reference_network(ho_cohort_key *key)
{
    key->hidden1 = key->hidden2 = 256;
    key->head = 128;
    key->precision = HO_PRECISION_BF16;
}

static void experience_of_random_actions_is_equal(void **state)
{
    (void)state;
    static const int episodes[] = {1, 31, 32, 257};
    for (int i = 0; i < gpu_size(4, 3); i++) {
        /* the last form takes long under the emulator */
        const int forms = episodes[i] == 1 ? 5 : gpu_size(5, 4);
        for (int form = 0; form < forms; form++) {
            pair p = open_pair(BARS, 0, WORLD_FEATURES);
            ho_cohort_key key = world_key(p.cpu, HO_DQN);
            ho_epoch_stat cpu, gpu;
            if (form == 4) {
                reference_network(&key);
            }
            key.episodes = episodes[i];
            key.episode_length = 61;
            key.replay_capacity = form == 1 ? 50 : 20000; /* a ring smaller than an epoch */
            key.action_set = form == 2 ? HO_ACTIONS_EXPOSURE5 : HO_ACTIONS_FULL45;
            key.state_form = form == 3 ? HO_STATE_SEED54 : HO_STATE_FULL;
            ho_lane_config lane = random_lane(p.cpu, &key);
            lane.agent.learn_start = 1000000; /* no updates */
            if (form == 1) {
                lane.env.recycle = 0;
                lane.env.end_on_barrier = 1;
            }
            if (form == 2) {
                lane.env.sizing = HO_SIZING_KELLY;
                lane.env.kelly_min_trades = 5;
                lane.env.reset_flags = 0;
            }
            lanes l = open_lanes(&p, &key, &lane);
            for (int epoch = 0; epoch < 3; epoch++) {
                run_both(&l, &cpu, &gpu);
                check_experience_equal(&cpu, &gpu);
            }
            close_lanes(&l);
            close_pair(&p);
        }
    }
}

typedef struct shape {
    int hidden1, hidden2, head, batch, dueling, bf16, portable, updates;
    double bound;      /* of the change of the weights */
    double loss_bound; /* relative */
} shape;

/* Adam with eps 1 is nearly lr * gradient after one step, so the change of the weights is the
 * gradient. float32: products differ in the order of sums only (seen: 2e-6). bf16: weights, inputs,
 * activations and deltas are rounded to 8 bits, and the incoherent sums of a small batch show it
 * (seen: 4e-2). */
static const shape shapes[] = {
    {32, 32, 16, 64, 1, 0, 1, 1, 1e-4, 1e-5},
    {32, 32, 16, 1, 1, 0, 1, 1, 1e-4, 1e-5},
    {33, 17, 9, 31, 1, 0, 1, 1, 1e-4, 1e-5},
    {48, 40, 24, 257, 0, 0, 1, 1, 1e-4, 1e-5},
    {256, 256, 128, 1024, 1, 0, 1, 1, 1e-4, 1e-5},
    {32, 32, 16, 64, 1, 1, 1, 1, 8e-2, 2e-2},
    {33, 17, 9, 31, 1, 1, 1, 1, 8e-2, 2e-2},
    {48, 40, 24, 257, 0, 1, 1, 1, 8e-2, 2e-2},
    {256, 256, 128, 1024, 1, 1, 1, 1, 8e-2, 1e-2},
    {256, 256, 128, 1024, 1, 1, 0, 1, 8e-2, 1e-2}, /* fused where there is sm_90a */
    {256, 256, 128, 128, 1, 1, 0, 1, 8e-2, 1e-2},
    {64, 64, 32, 128, 1, 0, 1, 20, 2e-2, 1e-3}, /* drift of a whole epoch, usual Adam */
};

static void an_update_agrees_with_the_cpu(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const shape *s = &shapes[i];
        if (s->batch > gpu_size(1024, 257) || (!s->portable && gpu_size(0, 1))) {
            continue; /* under the emulator: a second of each, and no fused path */
        }
        ho_err err;
        pair p = open_pair(BARS, s->portable, HO_MARKET_FEATURES);
        ho_cohort_key key = world_key(p.cpu, HO_DQN);
        ho_epoch_stat cpu, gpu;
        ho_tensors before, a, b;
        key.hidden1 = s->hidden1;
        key.hidden2 = s->hidden2;
        key.head = s->head;
        key.batch = s->batch;
        key.dueling = s->dueling;
        key.updates = s->updates;
        key.precision = s->bf16 ? HO_PRECISION_BF16 : HO_PRECISION_F32;
        ho_lane_config lane = random_lane(p.cpu, &key);
        lane.agent.adam_eps = s->updates == 1 ? 1.0 : 1e-5;
        lane.agent.learning_rate = s->updates == 1 ? 0.1 : 1e-3;
        lanes l = open_lanes(&p, &key, &lane);
        CHECK_OK(ho_lane_export(l.gpu, 0, &before, &err), &err);
        run_both(&l, &cpu, &gpu);
        check_experience_equal(&cpu, &gpu);
        CHECK_OK(ho_lane_export(l.cpu, 0, &a, &err), &err);
        CHECK_OK(ho_lane_export(l.gpu, 0, &b, &err), &err);
        const double error = relative_error(&before, &a, &b);
        print_message("%dx%dx%d batch %d dueling %d bf16 %d portable %d updates %d: change %.2e "
                      "loss %.7f %.7f norm %.6f %.6f q %.6f %.6f td %.6f %.6f\n",
                      s->hidden1, s->hidden2, s->head, s->batch, s->dueling, s->bf16, s->portable,
                      s->updates, error, cpu.loss_last, gpu.loss_last, cpu.grad_norm, gpu.grad_norm,
                      cpu.q_mean, gpu.q_mean, cpu.td_error_mean, gpu.td_error_mean);
        assert_int_equal(gpu.updates, s->updates);
        if (!(error <= s->bound)) {
            fail_msg("the weights' change differs by %.3e, bound %.1e", error, s->bound);
        }
        CHECK_CLOSE(gpu.loss_last, cpu.loss_last, s->loss_bound);
        CHECK_CLOSE(gpu.td_error_mean, cpu.td_error_mean, s->loss_bound);
        CHECK_NEAR(gpu.grad_norm, cpu.grad_norm, s->loss_bound * 3.0 * cpu.grad_norm);
        CHECK_NEAR(gpu.q_mean, cpu.q_mean, s->loss_bound * cpu.q_std + 1e-6);
        assert_true(gpu.learning_rate == cpu.learning_rate && gpu.epsilon == cpu.epsilon);
        ho_tensors_free(&before);
        ho_tensors_free(&a);
        ho_tensors_free(&b);
        close_lanes(&l);
        close_pair(&p);
    }
}

/* n windows of `bars` bars of a network and of its actions alone: what blocks work out ahead while
 * a network decides changes no bit. Adds up the quiet bars and the trades. */
static void check_own_actions(pair *p, const ho_cohort_key *key, const ho_lane_config *lane, int n,
                              int bars, int64_t *quiet, int64_t *trades)
{
    ho_err err;
    char what[32];
    lanes l = open_lanes(p, key, lane);
    ho_backtest_request *request = calloc((size_t)n, sizeof *request);
    ho_backtest_result *a = calloc((size_t)n, sizeof *a), *b = calloc((size_t)n, sizeof *b);
    for (int k = 0; k < n; k++) {
        const int64_t begin = k * 37 % (BARS - bars);
        request[k] = (ho_backtest_request){.policy = HO_POLICY_GREEDY,
                                           .slot_count = 1,
                                           .window = {begin, begin + bars - k % 5},
                                           .want = 15};
    }
    CHECK_OK(ho_backtest(p->gpu->market, l.gpu, request, n, a, &err), &err);
    for (int k = 0; k < n; k++) {
        request[k].policy = HO_POLICY_ACTIONS;
        request[k].env = &lane->env;
        request[k].actions = a[k].actions;
    }
    CHECK_OK(ho_backtest(p->gpu->market, l.gpu, request, n, b, &err), &err);
    for (int k = 0; k < n; k++) {
        snprintf(what, sizeof what, "%d windows, window %d", n, k);
        check_results_equal(what, &a[k], &b[k]);
        *quiet += a[k].bars - a[k].position_changes;
        *trades += a[k].trade_count;
        ho_backtest_free(&a[k]);
        ho_backtest_free(&b[k]);
    }
    free(request);
    free(a);
    free(b);
    close_lanes(&l);
}

/* With few windows a block, under the emulator 2 and 4, and with many. */
static void the_actions_of_a_network_give_its_bits(void **state)
{
    (void)state;
    enum { COUNTS = 3 };
    const int counts[COUNTS] = {30, 55, gpu_size(600, 100)};
    pair p = open_pair(BARS, 0, HO_MARKET_FEATURES);
    for (int i = 0; i < COUNTS * SETTINGS; i++) {
        const int which = i / COUNTS;
        int64_t quiet = 0, trades = 0;
        ho_cohort_key key = world_key(p.cpu, HO_DQN);
        key.state_form = which == 1 ? HO_STATE_SEED54 : HO_STATE_FULL;
        ho_lane_config lane = random_lane(p.cpu, &key);
        lane.env = setting(p.cpu, which);
        lane.env.state_form = key.state_form;
        if (which == 0) { /* seldom a trade, so that sessions end with quiet bars */
            lane.env.flat_at_session_end = 1;
            lane.env.max_lots = 1;
        }
        check_own_actions(&p, &key, &lane, counts[i % COUNTS], 150, &quiet, &trades);
        assert_true(quiet > 0 && trades > 0);
    }
    close_pair(&p);
}

/* The same of the reference network, so short that racecheck can watch it. */
static void a_short_run_of_the_reference_network(void **state)
{
    (void)state;
    pair p = open_pair(BARS, 0, HO_MARKET_FEATURES);
    ho_cohort_key key = world_key(p.cpu, HO_DQN);
    int64_t quiet = 0, trades = 0;
    reference_network(&key);
    const ho_lane_config lane = random_lane(p.cpu, &key);
    check_own_actions(&p, &key, &lane, 2, 16, &quiet, &trades);
    check_own_actions(&p, &key, &lane, gpu_size(700, 70), 9, &quiet, &trades);
    /* many blocks of one or two windows, under the emulator if the machine is wide */
    check_own_actions(&p, &key, &lane, gpu_size(150, 66), 30, &quiet, &trades);
    assert_true(quiet > 0 && trades > 0);
    ho_epoch_stat cpu, gpu;
    key.episodes = 3;
    key.episode_length = 7;
    ho_lane_config idle = lane;
    idle.agent.learn_start = 1000000; /* no updates */
    lanes l = open_lanes(&p, &key, &idle);
    run_both(&l, &cpu, &gpu);
    check_experience_equal(&cpu, &gpu);
    close_lanes(&l);
    close_pair(&p);
}

/* The greedy policy of the same weights: a few actions of thousands may differ by rounding. */
static void a_greedy_backtest_agrees_with_the_cpu(void **state)
{
    (void)state;
    for (int form = 0; form < 4; form++) { /* usual, bf16, seed54, seldom a trade */
        const int bf16 = form == 1;
        ho_err err;
        pair p = open_pair(BARS, 0, HO_MARKET_FEATURES);
        ho_cohort_key key = world_key(p.cpu, HO_DQN);
        reference_network(&key);
        key.precision = bf16 ? HO_PRECISION_BF16 : HO_PRECISION_F32;
        key.state_form = form == 2 ? HO_STATE_SEED54 : HO_STATE_FULL;
        ho_lane_config lane = random_lane(p.cpu, &key);
        if (form == 3) {
            lane.env.lot = 1000.0;
            lane.env.max_lots = 1;
            lane.env.allow_short = 0;
            lane.env.max_holding = 0;
            lane.env.stop_loss = lane.env.profit_target = 0.0;
        }
        lanes l = open_lanes(&p, &key, &lane);
        for (int policy = HO_POLICY_GREEDY; policy <= HO_POLICY_CONFIDENCE; policy++) {
            ho_backtest_result a, b;
            const ho_backtest_request request = {.policy = (ho_policy)policy,
                                                 .slots = {0, 0},
                                                 .slot_count = policy == HO_POLICY_GREEDY ? 1 : 2,
                                                 .window = {0, gpu_size(1000, 300)},
                                                 .want = 15};
            CHECK_OK(ho_backtest(p.cpu->market, l.cpu, &request, 1, &a, &err), &err);
            CHECK_OK(ho_backtest(p.gpu->market, l.gpu, &request, 1, &b, &err), &err);
            int64_t same = 0;
            for (int64_t i = 0; i < a.bars && i < b.bars; i++) {
                same += a.actions[i] == b.actions[i];
            }
            print_message("form %d policy %d: %lld of %lld actions alike\n", form, policy,
                          (long long)same, (long long)a.bars);
            assert_true((double)same >= (bf16 ? 0.97 : 0.999) * (double)a.bars);
            ho_backtest_free(&a);
            ho_backtest_free(&b);
        }
        close_lanes(&l);
        close_pair(&p);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_actions_give_the_same_bits),
        cmocka_unit_test(rule_policies_give_the_same_bits),
        cmocka_unit_test(experience_of_random_actions_is_equal),
        cmocka_unit_test(an_update_agrees_with_the_cpu),
        cmocka_unit_test(the_actions_of_a_network_give_its_bits),
        cmocka_unit_test(a_short_run_of_the_reference_network),
        cmocka_unit_test(a_greedy_backtest_agrees_with_the_cpu),
    };
    return GPU_TESTS_RUN(tests, argc, argv);
}
