/* SPDX-License-Identifier: Apache-2.0
 * Learning that means something: small markets whose best policy is known, five seeds each, 64-wide
 * networks. Agents train on the first half of the bars; a score is the log of final over initial
 * equity of the greedy policy on the second half, a share is relative to the best known policy's
 * score on the same bars with the same costs. */
#include <stdlib.h>

#include "agents/world.h"
#include "check.h"

enum { BARS = 4000, NOISE_BARS = 40000, SEEDS = 5 };

/* Actions that go to `exposure` (0 .. 4) at the market, aggressively. */
static uint8_t to_exposure(int exposure)
{
    return (uint8_t)(exposure * 9 + 2);
}

/* The best policy of a world: score on all bars. */
static double best_score(world *w, world_kind kind, const ho_env_config *env)
{
    uint8_t *action = malloc((size_t)w->T);
    double best = 0.0; /* staying flat */
    assert_non_null(action);
    if (kind == WORLD_REVERTING) {
        /* long below -x, short above x, left at y (y = -x: turned at once): the form that is
         * optimal for an AR(1) with proportional costs; the best x and y of a grid */
        for (int x = 0; x <= 12; x++) {
            for (int y = -x; y <= x; y++) {
                int held = 2;
                for (int64_t t = 0; t + 1 < w->T; t++) {
                    const double d = (double)w->features[t * w->F];
                    const double enter = 0.25 * x, leave = 0.25 * y;
                    held = (held == 4 && d > -leave) || (held == 0 && d < leave) ? 2 : held;
                    held = d < -enter ? 4 : (d > enter ? 0 : held);
                    action[t] = to_exposure(held);
                }
                const double score = world_score(w, NULL, 0, env, action, NULL);
                best = score > best ? score : best;
            }
        }
    } else if (kind == WORLD_ALTERNATING || kind == WORLD_SIGNAL) {
        for (int64_t t = 0; t + 1 < w->T; t++) {
            const int up = (w->features[t * w->F] > 0.0f) == (kind == WORLD_SIGNAL);
            action[t] = to_exposure(up ? 4 : 0);
        }
        best = world_score(w, NULL, 0, env, action, NULL);
    }
    free(action);
    return best;
}

typedef struct lesson {
    const char *name;
    world_kind kind;
    double spread_bps, fee_bps;
    ho_precision precision;
} lesson;

static const lesson alternating = {"alternating", WORLD_ALTERNATING, 1.0, 1.0, HO_PRECISION_F32};
static const lesson reverting = {"reverting", WORLD_REVERTING, 2.0, 2.0, HO_PRECISION_F32};
static const lesson planted = {"signal", WORLD_SIGNAL, 1.0, 1.0, HO_PRECISION_F32};
static const lesson reverting_bf16 = {"reverting, bf16", WORLD_REVERTING, 2.0, 2.0,
                                      HO_PRECISION_BF16};
static const lesson planted_bf16 = {"signal, bf16", WORLD_SIGNAL, 1.0, 1.0, HO_PRECISION_BF16};
static const lesson noise = {"noise", WORLD_NOISE, 10.0, 10.0, HO_PRECISION_F32};

/* Trains one agent and returns its greedy score; turnover: share of size it traded a bar, when not
 * NULL. */
static double train(world *w, const lesson *l, ho_algorithm algorithm, int seed, int epochs,
                    double *turnover)
{
    ho_err err;
    ho_cohort *c;
    ho_epoch_stat stat;
    ho_cohort_key key = world_key(w, algorithm);
    key.hidden1 = key.hidden2 = 64;
    key.head = 64;
    key.action_set = HO_ACTIONS_EXPOSURE5;
    key.episodes = 32;
    key.episode_length = 100;
    key.rollout = 64;
    key.replay_capacity = 32768;
    key.batch = algorithm == HO_PPO ? 256 : 128;
    key.updates = algorithm == HO_PPO ? 0 : 100;
    key.ppo_epochs = 4;
    key.precision = l->precision;
    ho_lane_config lane = world_lane(w, &key, (uint64_t)seed);
    lane.env = world_env(w, l->spread_bps, l->fee_bps);
    lane.env.action_set = key.action_set;
    lane.train.end = w->T / 2;
    lane.agent.epochs = epochs;
    lane.agent.gamma = 0.9;
    lane.agent.n_step = 1;
    lane.agent.tau = 0.01;
    lane.agent.learning_rate = 1e-3;
    lane.agent.schedule = HO_SCHEDULE_LINEAR;
    lane.agent.learn_start = 1000;
    CHECK_OK(ho_cohort_create(w->backend, w->market, &key, 1, &c, &err), &err);
    CHECK_OK(ho_lane_start(c, 0, &lane, &err), &err);
    for (int i = 0; i < epochs; i++) {
        CHECK_OK(ho_cohort_run_epoch(c, &stat, &err), &err);
    }
    assert_int_equal(stat.state, HO_LANE_ACTIVE);
    ho_backtest_result result;
    const double score = world_score(w, c, 0, NULL, NULL, &result);
    if (turnover) {
        *turnover = 0.0;
        for (int64_t i = 0; i < result.trade_count; i++) {
            *turnover += 2.0 * result.trades[i].quantity / lane.env.max_lots / (double)result.bars;
        }
    }
    ho_backtest_free(&result);
    ho_cohort_destroy(&c);
    return score;
}

static void check_lesson(const lesson *l, ho_algorithm algorithm, int epochs, double share)
{
    double sum = 0.0;
    for (int seed = 0; seed < SEEDS; seed++) {
        world *w = world_new(l->kind, BARS, (uint64_t)seed + 1, WORLD_FEATURES, 1);
        const ho_env_config env = world_env(w, l->spread_bps, l->fee_bps);
        const double best = best_score(w, l->kind, &env);
        const double score = train(w, l, algorithm, seed, epochs, NULL);
        printf("%s, seed %d: %.4f of %.4f\n", l->name, seed, score, best);
        sum += score / best / SEEDS;
        world_free(&w);
    }
    if (!(sum >= share)) {
        fail_msg("%s: mean share %.3f of the optimum over %d seeds, want %.2f", l->name, sum, SEEDS,
                 share);
    }
}

static void dqn_learns_the_alternating_series(void **state)
{
    (void)state;
    check_lesson(&alternating, HO_DQN, 30, 0.95);
}

static void ppo_learns_the_alternating_series(void **state)
{
    (void)state;
    check_lesson(&alternating, HO_PPO, 60, 0.95);
}

static void dqn_learns_to_wait_in_a_reverting_series_with_costs(void **state)
{
    (void)state;
    check_lesson(&reverting, HO_DQN, 40, 0.6);
}

static void ppo_learns_to_wait_in_a_reverting_series_with_costs(void **state)
{
    (void)state;
    check_lesson(&reverting, HO_PPO, 80, 0.8);
}

static void dqn_finds_the_planted_signal(void **state)
{
    (void)state;
    check_lesson(&planted, HO_DQN, 40, 0.8);
}

static void ppo_finds_the_planted_signal(void **state)
{
    (void)state;
    check_lesson(&planted, HO_PPO, 80, 0.9);
}

/* The same shares as in float32. */
static void dqn_learns_as_much_in_bf16(void **state)
{
    (void)state;
    check_lesson(&reverting_bf16, HO_DQN, 40, 0.6);
}

static void ppo_learns_as_much_in_bf16(void **state)
{
    (void)state;
    check_lesson(&planted_bf16, HO_PPO, 80, 0.9);
}

/* Nothing can be earned on noise, every trade costs: the greedy policy must all but stop trading.
 * A random policy of 5 exposures trades 0.8 of the bars and loses everything on the way. */
static void check_noise(ho_algorithm algorithm, int epochs)
{
    double loss = 0.0, turned = 0.0;
    for (int seed = 0; seed < SEEDS; seed++) {
        world *w = world_new(WORLD_NOISE, NOISE_BARS, (uint64_t)seed + 1, WORLD_FEATURES, 1);
        double turnover;
        const double score = train(w, &noise, algorithm, seed, epochs, &turnover);
        printf("noise, seed %d: score %.4f, %.4f of size traded a bar\n", seed, score, turnover);
        loss -= score / SEEDS;
        turned += turnover / SEEDS;
        world_free(&w);
    }
    if (!(turned <= 0.01)) {
        fail_msg("noise: %.4f of size traded a bar over %d seeds, want 0.01 at most", turned,
                 SEEDS);
    }
    CHECK_NEAR(loss, 0.0, 0.25);
}

static void dqn_ends_near_flat_on_noise(void **state)
{
    (void)state;
    check_noise(HO_DQN, 40);
}

static void ppo_ends_near_flat_on_noise(void **state)
{
    (void)state;
    check_noise(HO_PPO, 80);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dqn_learns_the_alternating_series),
        cmocka_unit_test(ppo_learns_the_alternating_series),
        cmocka_unit_test(dqn_learns_to_wait_in_a_reverting_series_with_costs),
        cmocka_unit_test(ppo_learns_to_wait_in_a_reverting_series_with_costs),
        cmocka_unit_test(dqn_finds_the_planted_signal),
        cmocka_unit_test(ppo_finds_the_planted_signal),
        cmocka_unit_test(dqn_learns_as_much_in_bf16),
        cmocka_unit_test(ppo_learns_as_much_in_bf16),
        cmocka_unit_test(dqn_ends_near_flat_on_noise),
        cmocka_unit_test(ppo_ends_near_flat_on_noise),
    };
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]); /* one lesson: test_learning 'dqn_ends*' */
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
