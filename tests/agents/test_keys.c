/* SPDX-License-Identifier: Apache-2.0
 * Every number of an agent is alive: changing it changes what a lane becomes. And a number outside
 * its range is refused by name. */
#include <stdlib.h>

#include "agents/world.h"
#include "check.h"

/* A field, another value for it, and the setting in which it matters. */
typedef struct field {
    const char *name;
    size_t offset;
    int is_int;
    double value;
    ho_algorithm algorithm;
    void (*setting)(ho_cohort_key *key, ho_lane_config *lane); /* NULL: the plain one */
} field;

static void with_hard_target(ho_cohort_key *key, ho_lane_config *lane)
{
    (void)key;
    lane->agent.tau = 0.0;
    lane->agent.target_every = 1000;
}

static void with_c51(ho_cohort_key *key, ho_lane_config *lane)
{
    (void)lane;
    key->atoms = 11;
}

static void with_noise(ho_cohort_key *key, ho_lane_config *lane)
{
    (void)lane;
    key->noisy = 1;
}

static void with_priorities(ho_cohort_key *key, ho_lane_config *lane)
{
    (void)lane;
    key->replay = HO_REPLAY_PER;
}

static void with_curiosity(ho_cohort_key *key, ho_lane_config *lane)
{
    key->curiosity = 1;
    lane->env.curiosity_weight = 0.01;
    lane->env.curiosity_max = 10.0;
    lane->agent.curiosity_every = 1;
}

static void with_grad_floor(ho_cohort_key *key, ho_lane_config *lane)
{
    (void)key;
    lane->agent.grad_floor = 1e9;
    lane->agent.grad_patience = 1000;
}

static void with_little_patience(ho_cohort_key *key, ho_lane_config *lane)
{
    (void)key;
    lane->agent.grad_patience = 2; /* of the 48 updates that a lane makes here */
}

static void without_kl_stop(ho_cohort_key *key, ho_lane_config *lane)
{
    (void)key;
    lane->agent.target_kl = 0.0;
    lane->agent.learning_rate = 3e-3;
}

#define REAL(f, value, algorithm, setting)                                                         \
    {                                                                                              \
#f, offsetof(ho_agent_config, f), 0, value, algorithm, setting                             \
    }
#define WHOLE(f, value, algorithm, setting)                                                        \
    {                                                                                              \
#f, offsetof(ho_agent_config, f), 1, value, algorithm, setting                             \
    }

static const field fields[] = {
    REAL(learning_rate, 1e-3, HO_DQN, NULL),
    REAL(adam_beta1, 0.5, HO_DQN, NULL),
    REAL(adam_beta2, 0.9, HO_DQN, NULL),
    REAL(adam_eps, 1e-2, HO_DQN, NULL),
    REAL(weight_decay, 0.1, HO_DQN, NULL),
    REAL(max_grad_norm, 0.01, HO_DQN, NULL),
    WHOLE(schedule, HO_SCHEDULE_COSINE, HO_DQN, NULL),
    WHOLE(warmup_updates, 100, HO_DQN, NULL),
    WHOLE(init, HO_INIT_HE, HO_DQN, NULL),
    REAL(gamma, 0.5, HO_DQN, NULL),
    WHOLE(double_q, 0, HO_DQN, NULL),
    WHOLE(n_step, 1, HO_DQN, NULL),
    REAL(huber_delta, 0.01, HO_DQN, NULL),
    REAL(tau, 0.5, HO_DQN, NULL),
    WHOLE(target_every, 5, HO_DQN, with_hard_target),
    WHOLE(learn_start, 1500, HO_DQN, NULL),
    REAL(v_max, 5.0, HO_DQN, with_c51),
    REAL(noisy_sigma0, 0.1, HO_DQN, with_noise),
    REAL(eps_start, 0.5, HO_DQN, NULL),
    REAL(eps_end, 0.5, HO_DQN, NULL),
    REAL(eps_share, 0.1, HO_DQN, NULL),
    REAL(explore_hold, 1.0, HO_DQN, NULL),
    REAL(count_bonus, 5.0, HO_DQN, NULL),
    REAL(per_alpha, 0.1, HO_DQN, with_priorities),
    REAL(per_beta_start, 1.0, HO_DQN, with_priorities),
    REAL(per_beta_end, 0.0, HO_DQN, with_priorities),
    REAL(gae_lambda, 0.2, HO_PPO, NULL),
    REAL(clip, 0.01, HO_PPO, without_kl_stop),
    REAL(value_clip, 0.001, HO_PPO, without_kl_stop),
    REAL(vf_coef, 0.1, HO_PPO, NULL),
    REAL(ent_coef, 0.5, HO_PPO, NULL),
    REAL(target_kl, 1e-9, HO_PPO, NULL),
    WHOLE(ppo_sample_eval, 1, HO_PPO, NULL),
    WHOLE(curiosity_every, 3, HO_DQN, with_curiosity),
    REAL(curiosity_lr, 0.1, HO_DQN, with_curiosity),
    REAL(loss_ceiling, 1e-9, HO_DQN, NULL),
    REAL(q_ceiling, 1e-9, HO_DQN, NULL),
    REAL(grad_floor, 1e9, HO_DQN, with_little_patience),
    WHOLE(grad_patience, 2, HO_DQN, with_grad_floor),
    WHOLE(epochs, 2, HO_DQN, NULL),
};
enum { FIELDS = sizeof fields / sizeof fields[0], EPOCHS = 4 };

static void set(const field *f, ho_agent_config *agent, double value)
{
    unsigned char *at = (unsigned char *)agent + f->offset;
    if (f->is_int) {
        const int32_t whole = (int32_t)value;
        memcpy(at, &whole, sizeof whole);
    } else {
        memcpy(at, &value, sizeof value);
    }
}

/* What a lane has become: its weights, its state and what it does. */
typedef struct outcome {
    uint64_t weights;
    int32_t state;
    int64_t actions[HO_ACTIONS];
} outcome;

static outcome run_lane(world *w, const ho_cohort_key *key, const ho_lane_config *lane)
{
    ho_err err;
    ho_cohort *c;
    ho_epoch_stat stat;
    ho_tensors weights;
    ho_backtest_result result;
    outcome out;
    memset(&out, 0, sizeof out);
    CHECK_OK(ho_cohort_create(w->backend, w->market, key, 1, &c, &err), &err);
    CHECK_OK(ho_lane_start(c, 0, lane, &err), &err);
    for (int i = 0; i < EPOCHS; i++) {
        CHECK_OK(ho_cohort_run_epoch(c, &stat, &err), &err);
    }
    CHECK_OK(ho_lane_export(c, 0, &weights, &err), &err);
    for (int i = 0; i < weights.count; i++) {
        const ho_tensor *t = &weights.tensor[i];
        const int64_t n = t->shape[0] * (t->ndim == 2 ? t->shape[1] : 1);
        for (int64_t k = 0; k < n; k++) {
            uint32_t bits;
            memcpy(&bits, &t->data[k], sizeof bits);
            out.weights = (out.weights ^ bits) * 0x100000001b3u;
        }
    }
    (void)world_score(w, c, 0, NULL, NULL, &result);
    memcpy(out.actions, result.action_count, sizeof out.actions);
    out.state = stat.state;
    ho_backtest_free(&result);
    ho_tensors_free(&weights);
    ho_cohort_destroy(&c);
    return out;
}

static void every_number_of_an_agent_is_alive(void **state)
{
    (void)state;
    world *w = world_new(WORLD_SIGNAL, 400, 3, HO_CURIOSITY_FEATURES, 1);
    for (int i = 0; i < FIELDS; i++) {
        const field *f = &fields[i];
        ho_cohort_key key = world_key(w, f->algorithm);
        ho_lane_config lane = world_lane(w, &key, 9);
        if (f->setting) {
            f->setting(&key, &lane);
        }
        const outcome before = run_lane(w, &key, &lane);
        const outcome again = run_lane(w, &key, &lane);
        set(f, &lane.agent, f->value);
        const outcome after = run_lane(w, &key, &lane);
        assert_memory_equal(&before, &again, sizeof before);
        if (memcmp(&before, &after, sizeof before) == 0) {
            fail_msg("%s = %g changes nothing", f->name, f->value);
        }
    }
    world_free(&w);
}

/* The table above covers the struct: every byte of it belongs to a field (or pads one). */
static void no_number_of_an_agent_is_left_out(void **state)
{
    (void)state;
    unsigned char covered[sizeof(ho_agent_config)] = {0};
    for (int i = 0; i < FIELDS; i++) {
        memset(covered + fields[i].offset, 1, fields[i].is_int ? sizeof(int32_t) : sizeof(double));
    }
    for (size_t at = 0; at < sizeof covered; at += 8) {
        if (!covered[at]) {
            fail_msg("byte %zu of ho_agent_config belongs to no tested field", at);
        }
    }
}

static void every_shape_key_is_alive(void **state)
{
    (void)state;
    typedef struct shape {
        const char *name;
        size_t offset;
        int32_t value;
        ho_algorithm algorithm;
    } shape;
#define SHAPE(f, value, algorithm)                                                                 \
    {                                                                                              \
#f, offsetof(ho_cohort_key, f), value, algorithm                                           \
    }
    static const shape shapes[] = {
        SHAPE(algorithm, HO_PPO, HO_DQN),
        SHAPE(hidden1, 24, HO_DQN),
        SHAPE(hidden2, 24, HO_DQN),
        SHAPE(head, 24, HO_DQN),
        SHAPE(state_form, HO_STATE_SEED54, HO_DQN),
        SHAPE(action_set, HO_ACTIONS_EXPOSURE5, HO_DQN),
        SHAPE(dueling, 0, HO_DQN),
        SHAPE(branching, 1, HO_DQN),
        SHAPE(noisy, 1, HO_DQN),
        SHAPE(atoms, 11, HO_DQN),
        SHAPE(replay, HO_REPLAY_PER, HO_DQN),
        SHAPE(replay, HO_REPLAY_PER_RANK, HO_DQN),
        SHAPE(replay_capacity, 1000, HO_DQN),
        SHAPE(episodes, 8, HO_DQN),
        SHAPE(episode_length, 20, HO_DQN),
        SHAPE(batch, 32, HO_DQN),
        SHAPE(updates, 5, HO_DQN),
        SHAPE(rollout, 20, HO_PPO),
        SHAPE(batch, 100, HO_PPO),
        SHAPE(ppo_epochs, 1, HO_PPO),
        SHAPE(ppo_factored, 1, HO_PPO),
        SHAPE(ppo_separate, 1, HO_PPO),
        SHAPE(precision, HO_PRECISION_BF16, HO_DQN),
        SHAPE(precision, HO_PRECISION_BF16, HO_PPO),
        SHAPE(precision, HO_PRECISION_FP8, HO_DQN),
        SHAPE(precision, HO_PRECISION_FP8, HO_PPO),
    };
    world *w = world_new(WORLD_SIGNAL, 400, 3, WORLD_FEATURES, 1);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        ho_cohort_key key = world_key(w, shapes[i].algorithm);
        key.updates = 12;
        ho_lane_config lane = world_lane(w, &key, 9);
        const outcome before = run_lane(w, &key, &lane);
        memcpy((unsigned char *)&key + shapes[i].offset, &shapes[i].value, sizeof(int32_t));
        lane.env.state_form = key.state_form;
        lane.env.action_set = key.action_set;
        const outcome after = run_lane(w, &key, &lane);
        if (memcmp(&before, &after, sizeof before) == 0) {
            fail_msg("%s = %d changes nothing", shapes[i].name, shapes[i].value);
        }
    }
    world_free(&w);
}

static void a_number_outside_its_range_is_refused_by_name(void **state)
{
    (void)state;
    ho_err err;
    const ho_cohort_key key = ho_cohort_key_defaults(HO_DQN);
    for (int i = 0; i < FIELDS; i++) {
        const double bad[] = {-1.0, NAN};
        for (int k = 0; k < (fields[i].is_int ? 1 : 2); k++) {
            ho_agent_config agent = ho_agent_config_defaults(HO_DQN);
            ho_cohort_key c51 = key;
            c51.atoms = 51;
            set(&fields[i], &agent, bad[k]);
            CHECK_STATUS(ho_agent_config_check(&c51, &agent, &err), HO_EINVAL);
            /* "double_q" is called by its key, "double" */
            if (strncmp(fields[i].name, "double", 6) != 0) {
                CHECK_CONTAINS(err.text, fields[i].name);
            }
        }
    }
    ho_cohort_key wrong = key;
    wrong.atoms = 1;
    CHECK_STATUS(ho_cohort_key_check(&wrong, &err), HO_EINVAL);
    wrong = key;
    wrong.hidden1 = 0;
    CHECK_STATUS(ho_cohort_key_check(&wrong, &err), HO_EINVAL);
    CHECK_CONTAINS(err.text, "hidden1");
    wrong = key;
    wrong.curiosity = 1;
    wrong.market_features = 31;
    CHECK_STATUS(ho_cohort_key_check(&wrong, &err), HO_EINVAL);
    CHECK_OK(ho_cohort_key_check(&key, &err), &err);
    const ho_agent_config agent = ho_agent_config_defaults(HO_DQN);
    CHECK_OK(ho_agent_config_check(&key, &agent, &err), &err);
}

static void a_precision_that_does_not_exist_is_refused(void **state)
{
    (void)state;
    ho_err err;
    ho_cohort *c = NULL;
    world *w = world_new(WORLD_SIGNAL, 400, 3, WORLD_FEATURES, 1);
    ho_cohort_key key = world_key(w, HO_DQN);
    key.precision = HO_PRECISION_FP8 + 1;
    CHECK_STATUS(ho_cohort_create(w->backend, w->market, &key, 1, &c, &err), HO_EINVAL);
    CHECK_CONTAINS(err.text, "precision");
    assert_null(c);
    world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_of_an_agent_is_alive),
        cmocka_unit_test(no_number_of_an_agent_is_left_out),
        cmocka_unit_test(every_shape_key_is_alive),
        cmocka_unit_test(a_precision_that_does_not_exist_is_refused),
        cmocka_unit_test(a_number_outside_its_range_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
