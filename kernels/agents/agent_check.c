/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/agents/agent_check.h"

#include <math.h>

#include "kernels/env/config.h"
#include "kernels/shapes.h"

ho_cohort_key ho_cohort_key_defaults(ho_algorithm algorithm)
{
    ho_cohort_key k = {
        .algorithm = algorithm,
        .hidden1 = 256,
        .hidden2 = 256,
        .head = 128,
        .state_form = HO_STATE_FULL,
        .action_set = HO_ACTIONS_FULL45,
        .market_features = HO_MARKET_FEATURES,
        .dueling = 1,
        .replay = HO_REPLAY_UNIFORM,
        .replay_capacity = 262144,
        .episodes = 128,
        .episode_length = 500,
        .rollout = 128,
        .batch = algorithm == HO_PPO ? 4096 : 512,
        .ppo_epochs = 4,
        .precision = HO_PRECISION_F32,
    };
    if (algorithm == HO_DQN) {
        k.updates = k.episodes * k.episode_length / k.batch;
    }
    return k;
}

double ho_default_v_max(double gamma)
{
    return 3.0 / sqrt(1.0 - gamma * gamma);
}

ho_agent_config ho_agent_config_defaults(ho_algorithm algorithm)
{
    ho_agent_config a = {
        .learning_rate = 3e-4,
        .adam_beta1 = 0.9,
        .adam_beta2 = 0.999,
        .adam_eps = 1e-5,
        .max_grad_norm = algorithm == HO_PPO ? 0.5 : 10.0,
        .schedule = algorithm == HO_PPO ? HO_SCHEDULE_LINEAR : HO_SCHEDULE_CONSTANT,
        .init = HO_INIT_ORTHOGONAL,
        .gamma = 0.99,
        .double_q = 1,
        .n_step = 3,
        .huber_delta = 1.0,
        .tau = 0.005,
        .target_every = 1000,
        .learn_start = 20 * 512,
        .noisy_sigma0 = 0.5,
        .eps_start = 1.0,
        .eps_end = 0.02,
        .eps_share = 0.5,
        .explore_hold = 8.0,
        .per_alpha = 0.6,
        .per_beta_start = 0.4,
        .per_beta_end = 1.0,
        .gae_lambda = 0.95,
        .clip = 0.2,
        .vf_coef = 0.5,
        .ent_coef = 0.01,
        .target_kl = 0.02,
        .curiosity_every = 4,
        .curiosity_lr = 1e-3,
        .loss_ceiling = 1e4,
        .q_ceiling = 1e3,
        .grad_patience = 100,
        .epochs = 40,
    };
    a.v_max = ho_default_v_max(a.gamma);
    return a;
}

int32_t ho_epoch_steps(const ho_cohort_key *key)
{
    return key->algorithm == HO_PPO ? key->rollout : key->episode_length;
}

int32_t ho_epoch_updates(const ho_cohort_key *key)
{
    if (key->algorithm == HO_DQN) {
        return key->updates;
    }
    const int64_t rows = (int64_t)key->episodes * key->rollout;
    return (int32_t)(key->ppo_epochs * ((rows + key->batch - 1) / key->batch));
}

typedef struct range {
    const char *name;
    double value, low, high;
} range;

static ho_status check_ranges(const range *r, int n, ho_err *err)
{
    for (int i = 0; i < n; i++) {
        if (!(r[i].value >= r[i].low && r[i].value <= r[i].high)) {
            return ho_err_set(err, HO_EINVAL, "%s = %g is outside [%g, %g]", r[i].name, r[i].value,
                              r[i].low, r[i].high);
        }
    }
    return HO_OK;
}

ho_status ho_cohort_key_check(const ho_cohort_key *k, ho_err *err)
{
    const int portfolio =
        k->state_form == HO_STATE_SEED54 ? HO_SEED54_FEATURES : HO_PORTFOLIO_FEATURES;
    const range r[] = {
        {"algorithm", k->algorithm, HO_DQN, HO_PPO},
        {"hidden1", k->hidden1, 1, HO_WIDTH_MAX},
        {"hidden2", k->hidden2, 1, HO_WIDTH_MAX},
        {"head", k->head, 1, HO_WIDTH_MAX},
        {"state form", k->state_form, HO_STATE_FULL, HO_STATE_SEED54},
        {"action set", k->action_set, HO_ACTIONS_FULL45, HO_ACTIONS_EXPOSURE5},
        {"market features", k->market_features, 1, 64 - portfolio},
        {"dueling", k->dueling, 0, 1},
        {"branching", k->branching, 0, 1},
        {"noisy", k->noisy, 0, 1},
        {"atoms", k->atoms, 0, HO_ATOMS_MAX},
        {"replay", k->replay, HO_REPLAY_UNIFORM, HO_REPLAY_PER_RANK},
        {"episodes", k->episodes, 1, 1 << 20},
        {"episode length", k->episode_length, 1, 1 << 20},
        {"batch", k->batch, 1, HO_BATCH_MAX},
        {"curiosity", k->curiosity, 0, 1},
        {"precision", k->precision, HO_PRECISION_F32, HO_PRECISION_FP8},
    };
    ho_status rc = check_ranges(r, (int)(sizeof r / sizeof r[0]), err);
    if (rc == HO_OK && k->atoms == 1) {
        rc = ho_err_set(err, HO_EINVAL, "atoms = 1: C51 needs at least 2; 0 turns it off");
    }
    if (rc == HO_OK && (int64_t)k->episodes * ho_epoch_steps(k) > 1 << 28) {
        rc = ho_err_set(err, HO_EINVAL, "%d episodes of %d steps are more than 2^28 an epoch",
                        k->episodes, ho_epoch_steps(k));
    }
    if (rc == HO_OK && k->curiosity && k->market_features < HO_CURIOSITY_FEATURES) {
        rc = ho_err_set(err, HO_EINVAL, "curiosity needs %d market features, there are %d",
                        HO_CURIOSITY_FEATURES, k->market_features);
    }
    if (rc == HO_OK && k->algorithm == HO_DQN) {
        const range dqn[] = {
            {"replay capacity", k->replay_capacity, 1, 1 << 26},
            {"updates", k->updates, 0, 1 << 20},
        };
        rc = check_ranges(dqn, 2, err);
    }
    if (rc == HO_OK && k->algorithm == HO_PPO) {
        const range ppo[] = {
            {"rollout", k->rollout, 1, 1 << 20},
            {"ppo epochs", k->ppo_epochs, 1, 1000},
            {"factored", k->ppo_factored, 0, 1},
            {"separate", k->ppo_separate, 0, 1},
        };
        rc = check_ranges(ppo, 4, err);
    }
    return rc;
}

ho_status ho_agent_config_check(const ho_cohort_key *key, const ho_agent_config *a, ho_err *err)
{
    const double large = 1e30;
    const range r[] = {
        {"learning_rate", a->learning_rate, 0, large},
        {"adam_beta1", a->adam_beta1, 0, 0.9999999},
        {"adam_beta2", a->adam_beta2, 0, 0.9999999},
        {"adam_eps", a->adam_eps, 0, 1},
        {"weight_decay", a->weight_decay, 0, 1e6},
        {"max_grad_norm", a->max_grad_norm, 0, large},
        {"schedule", a->schedule, HO_SCHEDULE_CONSTANT, HO_SCHEDULE_LINEAR},
        {"warmup_updates", a->warmup_updates, 0, 1 << 30},
        {"init", a->init, HO_INIT_ORTHOGONAL, HO_INIT_HE},
        {"gamma", a->gamma, 0, 1},
        {"double", a->double_q, 0, 1},
        {"n_step", a->n_step, 1, HO_NSTEP_MAX},
        {"huber_delta", a->huber_delta, 0, large},
        {"tau", a->tau, 0, 1},
        {"target_every", a->target_every, a->tau > 0.0 ? 0 : 1, 1 << 30},
        {"learn_start", a->learn_start, 0, 1 << 30},
        {"noisy_sigma0", a->noisy_sigma0, 0, 100},
        {"eps_start", a->eps_start, 0, 1},
        {"eps_end", a->eps_end, 0, 1},
        {"eps_share", a->eps_share, 0, 1},
        {"explore_hold", a->explore_hold, 1, 1e6},
        {"count_bonus", a->count_bonus, 0, large},
        {"per_alpha", a->per_alpha, 0, 2},
        {"per_beta_start", a->per_beta_start, 0, 1},
        {"per_beta_end", a->per_beta_end, 0, 1},
        {"gae_lambda", a->gae_lambda, 0, 1},
        {"clip", a->clip, 0, large},
        {"value_clip", a->value_clip, 0, large},
        {"vf_coef", a->vf_coef, 0, large},
        {"ent_coef", a->ent_coef, 0, large},
        {"target_kl", a->target_kl, 0, large},
        {"ppo_sample_eval", a->ppo_sample_eval, 0, 1},
        {"curiosity_every", a->curiosity_every, 1, 1 << 30},
        {"curiosity_lr", a->curiosity_lr, 0, large},
        {"loss_ceiling", a->loss_ceiling, 0, large},
        {"q_ceiling", a->q_ceiling, 0, large},
        {"grad_floor", a->grad_floor, 0, large},
        {"grad_patience", a->grad_patience, 1, 1 << 30},
        {"epochs", a->epochs, 1, 1 << 30},
    };
    ho_status rc = check_ranges(r, (int)(sizeof r / sizeof r[0]), err);
    if (rc == HO_OK && key->atoms && !(a->v_max > 0.0 && a->v_max <= large)) {
        rc = ho_err_set(err, HO_EINVAL, "v_max = %g must be positive", a->v_max);
    }
    return rc;
}
