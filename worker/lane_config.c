/* SPDX-License-Identifier: Apache-2.0
 * Settings -> numbers; see lane_config.h. Defaults live in the settings table, formulas of sizes in
 * kernels/env/sizing.h; here is only what goes where. */
#include "worker/lane_config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/agents/agent_check.h"
#include "kernels/auto_batch.h"
#include "kernels/env/config_check.h"
#include "kernels/env/rng.h"
#include "kernels/env/sizing.h"
#include "market/load.h"
#include "market/study_data.h"

static int32_t i32(const ho_settings *s, ho_key key)
{
    return (int32_t)ho_settings_i64(s, key);
}

/* ---- shape --------------------------------------------------------------------------------- */

static ho_status dqn_key(const ho_settings *s, int32_t auto_batch, ho_cohort_key *out, ho_err *err)
{
    double collected = (double)out->episodes * out->episode_length;
    out->dueling = ho_settings_bool(s, HO_KEY_DQN_DUELING);
    out->branching = ho_settings_bool(s, HO_KEY_DQN_BRANCHING);
    out->noisy = ho_settings_bool(s, HO_KEY_DQN_NOISY);
    if (ho_settings_bool(s, HO_KEY_DQN_DISTRIBUTIONAL)) {
        out->atoms = i32(s, HO_KEY_DQN_ATOMS);
    }
    out->replay = ho_settings_choice(s, HO_KEY_DQN_REPLAY);
    out->replay_capacity = i32(s, HO_KEY_DQN_REPLAY_CAPACITY);
    out->batch = auto_batch;
    if (!ho_settings_is_auto(s, HO_KEY_DQN_BATCH)) {
        out->batch = i32(s, HO_KEY_DQN_BATCH);
    } else if (auto_batch == 0) {
        return ho_err_set(err, HO_ECONFIG,
                          "dqn.batch = \"auto\" has not been measured for this "
                          "study; give a number, e.g. dqn.batch = 512");
    }
    double updates =
        floor(ho_settings_f64(s, HO_KEY_DQN_REPLAY_RATIO) * collected / out->batch + 0.5);
    if (updates > INT32_MAX) {
        return ho_err_set(err, HO_ECONFIG,
                          "dqn.replay_ratio, env.episodes, env.episode_length and dqn.batch give "
                          "%.3g updates an epoch; make the ratio smaller",
                          updates);
    }
    out->updates = updates < 1.0 ? 1 : (int32_t)updates;
    if (out->branching && out->action_set == HO_ACTIONS_EXPOSURE5) {
        return ho_err_set(err, HO_ECONFIG,
                          "dqn.branching = true needs env.actions = \"full45\": exposure5 has one "
                          "branch");
    }
    return HO_OK;
}

static ho_status ppo_key(const ho_settings *s, ho_cohort_key *out, ho_err *err)
{
    out->rollout = i32(s, HO_KEY_PPO_ROLLOUT);
    out->ppo_epochs = i32(s, HO_KEY_PPO_EPOCHS);
    out->ppo_factored = ho_settings_bool(s, HO_KEY_PPO_FACTORED);
    out->ppo_separate = ho_settings_bool(s, HO_KEY_PPO_SEPARATE);
    int64_t steps = (int64_t)out->episodes * out->rollout;
    int64_t minibatch = ho_settings_i64(s, HO_KEY_PPO_MINIBATCH);
    out->batch = (int32_t)(minibatch < steps ? minibatch : steps);
    if (out->ppo_factored && out->action_set == HO_ACTIONS_EXPOSURE5) {
        return ho_err_set(err, HO_ECONFIG,
                          "ppo.factored = true needs env.actions = \"full45\": exposure5 has one "
                          "factor");
    }
    return HO_OK;
}

ho_status ho_lane_config_key(const ho_settings *s, int32_t market_features, int32_t auto_batch,
                             ho_cohort_key *out, ho_err *err)
{
    memset(out, 0, sizeof *out);
    out->algorithm = ho_settings_choice(s, HO_KEY_AGENT_ALGORITHM);
    out->hidden1 = i32(s, HO_KEY_AGENT_HIDDEN1);
    out->hidden2 = i32(s, HO_KEY_AGENT_HIDDEN2);
    out->head = i32(s, HO_KEY_AGENT_HEAD);
    out->state_form = ho_settings_choice(s, HO_KEY_ENV_STATE);
    out->action_set = ho_settings_choice(s, HO_KEY_ENV_ACTIONS);
    out->market_features = market_features;
    out->episodes = i32(s, HO_KEY_ENV_EPISODES);
    out->episode_length = i32(s, HO_KEY_ENV_EPISODE_LENGTH);
    /* the original formula always has its curiosity term */
    out->curiosity = ho_settings_f64(s, HO_KEY_REWARD_CURIOSITY_WEIGHT) > 0.0 ||
                     ho_settings_choice(s, HO_KEY_REWARD_PRESET) == HO_PRESET_ORIGINAL;
    out->precision = ho_settings_choice(s, HO_KEY_AGENT_PRECISION);
    return out->algorithm == HO_DQN ? dqn_key(s, auto_batch, out, err) : ppo_key(s, out, err);
}

/* ---- the agent ----------------------------------------------------------------------------- */

static ho_status dqn_agent(const ho_settings *s, const ho_cohort_key *key, ho_agent_config *out,
                           ho_err *err)
{
    out->learning_rate = ho_settings_f64(s, HO_KEY_DQN_LEARNING_RATE);
    if (ho_settings_is_auto(s, HO_KEY_DQN_BATCH)) {
        out->learning_rate = ho_auto_batch_learning_rate(out->learning_rate, key->batch);
    }
    out->adam_beta1 = ho_settings_f64(s, HO_KEY_DQN_ADAM_BETA1);
    out->adam_beta2 = ho_settings_f64(s, HO_KEY_DQN_ADAM_BETA2);
    out->adam_eps = ho_settings_f64(s, HO_KEY_DQN_ADAM_EPS);
    out->weight_decay = ho_settings_f64(s, HO_KEY_DQN_WEIGHT_DECAY);
    out->max_grad_norm = ho_settings_f64(s, HO_KEY_DQN_MAX_GRAD_NORM);
    out->schedule = ho_settings_choice(s, HO_KEY_DQN_SCHEDULE);
    out->warmup_updates = i32(s, HO_KEY_DQN_WARMUP);
    out->gamma = ho_settings_f64(s, HO_KEY_DQN_GAMMA);
    out->double_q = ho_settings_bool(s, HO_KEY_DQN_DOUBLE);
    out->n_step = i32(s, HO_KEY_DQN_N_STEP);
    out->huber_delta = ho_settings_f64(s, HO_KEY_DQN_HUBER_DELTA);
    out->tau = ho_settings_f64(s, HO_KEY_DQN_TAU);
    out->target_every = i32(s, HO_KEY_DQN_TARGET_EVERY);
    out->v_max = ho_settings_is_auto(s, HO_KEY_DQN_V_MAX)
                     ? 3.0 / sqrt(1.0 - out->gamma * out->gamma)
                     : ho_settings_f64(s, HO_KEY_DQN_V_MAX);
    out->noisy_sigma0 = ho_settings_f64(s, HO_KEY_DQN_NOISY_SIGMA0);
    /* noise replaces epsilon */
    out->eps_start = key->noisy ? 0.0 : ho_settings_f64(s, HO_KEY_DQN_EPS_START);
    out->eps_end = key->noisy ? 0.0 : ho_settings_f64(s, HO_KEY_DQN_EPS_END);
    out->eps_share = ho_settings_f64(s, HO_KEY_DQN_EPS_SHARE);
    out->explore_hold = ho_settings_f64(s, HO_KEY_DQN_EXPLORE_HOLD);
    out->count_bonus = ho_settings_f64(s, HO_KEY_DQN_COUNT_BONUS);
    out->per_alpha = ho_settings_f64(s, HO_KEY_DQN_PER_ALPHA);
    out->per_beta_start = ho_settings_f64(s, HO_KEY_DQN_PER_BETA);
    out->per_beta_end = ho_settings_f64(s, HO_KEY_DQN_PER_BETA_END);

    int64_t start = 20 * (int64_t)key->batch;
    if (!ho_settings_is_auto(s, HO_KEY_DQN_LEARN_START)) {
        start = ho_settings_i64(s, HO_KEY_DQN_LEARN_START);
        if (start > key->replay_capacity) {
            return ho_err_set(err, HO_ECONFIG,
                              "dqn.learn_start = %lld is more than dqn.replay_capacity = %d holds; "
                              "the agent would never learn",
                              (long long)start, key->replay_capacity);
        }
    } else if (start > key->replay_capacity) {
        start = key->replay_capacity;
    }
    int64_t collected = (int64_t)key->episodes * key->episode_length * out->epochs;
    if (start > collected) {
        return ho_err_set(err, HO_ECONFIG,
                          "dqn.learn_start = %lld transitions is more than the %lld that "
                          "agent.epochs x env.episodes x env.episode_length collect; the agent "
                          "would never learn",
                          (long long)start, (long long)collected);
    }
    out->learn_start = (int32_t)start;
    return HO_OK;
}

static void ppo_agent(const ho_settings *s, ho_agent_config *out)
{
    out->learning_rate = ho_settings_f64(s, HO_KEY_PPO_LEARNING_RATE);
    out->adam_beta1 = ho_settings_f64(s, HO_KEY_PPO_ADAM_BETA1);
    out->adam_beta2 = ho_settings_f64(s, HO_KEY_PPO_ADAM_BETA2);
    out->adam_eps = ho_settings_f64(s, HO_KEY_PPO_ADAM_EPS);
    out->weight_decay = ho_settings_f64(s, HO_KEY_PPO_WEIGHT_DECAY);
    out->max_grad_norm = ho_settings_f64(s, HO_KEY_PPO_MAX_GRAD_NORM);
    out->schedule = ho_settings_choice(s, HO_KEY_PPO_SCHEDULE);
    out->warmup_updates = i32(s, HO_KEY_PPO_WARMUP);
    out->gamma = ho_settings_f64(s, HO_KEY_PPO_GAMMA);
    out->n_step = 1;
    out->explore_hold = 1.0;
    out->gae_lambda = ho_settings_f64(s, HO_KEY_PPO_GAE_LAMBDA);
    out->clip = ho_settings_f64(s, HO_KEY_PPO_CLIP);
    out->value_clip = ho_settings_f64(s, HO_KEY_PPO_VALUE_CLIP);
    out->vf_coef = ho_settings_f64(s, HO_KEY_PPO_VF_COEF);
    out->ent_coef = ho_settings_f64(s, HO_KEY_PPO_ENT_COEF);
    out->target_kl = ho_settings_f64(s, HO_KEY_PPO_TARGET_KL);
    out->ppo_sample_eval = ho_settings_bool(s, HO_KEY_PPO_SAMPLE_EVAL);
}

ho_status ho_lane_config_agent(const ho_settings *s, const ho_cohort_key *key, ho_agent_config *out,
                               ho_err *err)
{
    *out = ho_agent_config_defaults((ho_algorithm)key->algorithm); /* what the other one uses */
    out->init = ho_settings_choice(s, HO_KEY_AGENT_INIT);
    out->epochs = i32(s, HO_KEY_AGENT_EPOCHS);
    out->curiosity_every = i32(s, HO_KEY_CURIOSITY_EVERY);
    out->curiosity_lr = ho_settings_f64(s, HO_KEY_CURIOSITY_LEARNING_RATE);
    out->loss_ceiling = ho_settings_f64(s, HO_KEY_GUARD_LOSS_CEILING);
    out->q_ceiling = ho_settings_f64(s, HO_KEY_GUARD_Q_CEILING);
    out->grad_floor = ho_settings_f64(s, HO_KEY_GUARD_GRAD_FLOOR);
    out->grad_patience = i32(s, HO_KEY_GUARD_GRAD_PATIENCE);
    if (key->algorithm == HO_DQN) {
        return dqn_agent(s, key, out, err);
    }
    ppo_agent(s, out);
    return HO_OK;
}

/* ---- the environment ----------------------------------------------------------------------- */

static double f64_or(const ho_settings *s, ho_key key, double automatic)
{
    return ho_settings_is_auto(s, key) ? automatic : ho_settings_f64(s, key);
}

static void env_market(const ho_settings *s, const ho_bars *bars, ho_env_config *e)
{
    e->tick_size = ho_study_tick_size(s, bars);
    e->multiplier = ho_study_multiplier(s, bars);
    e->allow_short = ho_settings_bool(s, HO_KEY_INSTRUMENT_ALLOW_SHORT);
    /* ticks are not units: they cannot bound what trades, nor what a trade moves */
    e->has_volume =
        bars->has_volume && ho_settings_choice(s, HO_KEY_DATA_VOLUME) != HO_VOLUME_TICKS;
    e->sessions_per_year = bars->sessions_per_year;
    e->initial_capital = ho_settings_f64(s, HO_KEY_ENV_INITIAL_CAPITAL);
    e->cooldown = i32(s, HO_KEY_ENV_COOLDOWN);
    e->max_leverage = ho_settings_f64(s, HO_KEY_ENV_MAX_LEVERAGE);
    e->cash_reserve = ho_settings_f64(s, HO_KEY_ENV_CASH_RESERVE);
    e->margin_per_lot = ho_settings_f64(s, HO_KEY_ENV_MARGIN_PER_LOT);
    e->spread_bps = ho_settings_f64(s, HO_KEY_ENV_SPREAD_BPS);
    e->spread_ticks = ho_settings_f64(s, HO_KEY_ENV_SPREAD_TICKS);
    e->impact_coef = f64_or(s, HO_KEY_ENV_IMPACT_COEF, e->has_volume ? 0.5 : 0.0);
    e->fee_bps[HO_FEE_TAKER] = ho_settings_f64(s, HO_KEY_ENV_FEE_BPS_TAKER);
    e->fee_bps[HO_FEE_MAKER] = ho_settings_f64(s, HO_KEY_ENV_FEE_BPS_MAKER);
    e->fee_bps[HO_FEE_IOC] = ho_settings_f64(s, HO_KEY_ENV_FEE_BPS_IOC);
    e->fee_per_unit = ho_settings_f64(s, HO_KEY_ENV_FEE_PER_UNIT);
    e->urgency_fraction[0] = ho_settings_f64(s, HO_KEY_ENV_URGENCY_PATIENT);
    e->urgency_fraction[1] = ho_settings_f64(s, HO_KEY_ENV_URGENCY_NORMAL);
    e->urgency_fraction[2] = ho_settings_f64(s, HO_KEY_ENV_URGENCY_AGGRESSIVE);
    e->limit_offset = ho_settings_f64(s, HO_KEY_ENV_LIMIT_OFFSET);
    e->ioc_band = ho_settings_f64(s, HO_KEY_ENV_IOC_BAND);
    e->ioc_participation = ho_settings_f64(s, HO_KEY_ENV_IOC_PARTICIPATION);
    e->fill = ho_settings_choice(s, HO_KEY_ENV_FILL);
    e->flat_at_session_end = ho_settings_bool(s, HO_KEY_ENV_FLAT_AT_SESSION_END);
}

static void env_trade(const ho_settings *s, ho_env_config *e)
{
    e->sizing = ho_settings_choice(s, HO_KEY_SIZING_KIND);
    e->vol_cap = ho_settings_f64(s, HO_KEY_SIZING_VOL_CAP);
    e->resize_band = ho_settings_f64(s, HO_KEY_SIZING_RESIZE_BAND);
    e->kelly_fraction = ho_settings_f64(s, HO_KEY_SIZING_KELLY_FRACTION);
    e->kelly_min_trades = i32(s, HO_KEY_SIZING_KELLY_MIN_TRADES);
    e->barrier_unit = ho_settings_choice(s, HO_KEY_BARRIERS_UNIT);
    e->max_holding = i32(s, HO_KEY_BARRIERS_MAX_HOLDING);
    e->profit_target = ho_settings_f64(s, HO_KEY_BARRIERS_PROFIT_TARGET);
    e->stop_loss = ho_settings_f64(s, HO_KEY_BARRIERS_STOP_LOSS);
    e->end_on_barrier = ho_settings_bool(s, HO_KEY_ENV_END_ON_BARRIER);
    e->barrier_terminal = ho_settings_bool(s, HO_KEY_ENV_BARRIER_TERMINAL);
    e->sigma_window = i32(s, HO_KEY_ENV_SIGMA_WINDOW);
}

static void env_reward(const ho_settings *s, ho_env_config *e)
{
    e->reward_preset = ho_settings_choice(s, HO_KEY_REWARD_PRESET);
    e->reward_base = ho_settings_choice(s, HO_KEY_REWARD_BASE);
    e->reward_scale = ho_settings_f64(s, HO_KEY_REWARD_SCALE);
    e->reward_clip = ho_settings_f64(s, HO_KEY_REWARD_CLIP);
    e->barrier_scale = ho_settings_f64(s, HO_KEY_REWARD_BARRIER_SCALE);
    e->risk_threshold = ho_settings_f64(s, HO_KEY_REWARD_RISK_THRESHOLD);
    e->risk_weight = ho_settings_f64(s, HO_KEY_REWARD_RISK_WEIGHT);
    e->diversity_min_entropy = ho_settings_f64(s, HO_KEY_REWARD_DIVERSITY_MIN_ENTROPY);
    e->diversity_penalty = ho_settings_f64(s, HO_KEY_REWARD_DIVERSITY_PENALTY);
    e->diversity_window = i32(s, HO_KEY_REWARD_DIVERSITY_WINDOW);
    e->diversity_warmup = i32(s, HO_KEY_REWARD_DIVERSITY_WARMUP);
    e->curiosity_weight = ho_settings_f64(s, HO_KEY_REWARD_CURIOSITY_WEIGHT);
    e->curiosity_max = ho_settings_f64(s, HO_KEY_REWARD_CURIOSITY_MAX);
    e->dsr_eta = ho_settings_f64(s, HO_KEY_REWARD_DSR_ETA);
    e->state_form = ho_settings_choice(s, HO_KEY_ENV_STATE);
    e->action_set = ho_settings_choice(s, HO_KEY_ENV_ACTIONS);
    e->recycle = ho_settings_bool(s, HO_KEY_ENV_RECYCLE);
    e->reset_flags = ho_settings_flags(s, HO_KEY_ENV_RESET_FLAGS);
    e->random_start = ho_settings_f64(s, HO_KEY_ENV_RANDOM_START);
    e->ruin_fraction = ho_settings_f64(s, HO_KEY_ENV_RUIN_FRACTION);
}

/* Deviation of one bar's simple return on the price over a window, for sizing.target_vol. */
static double price_deviation(const ho_bars *bars, ho_window window)
{
    ho_moments m = {0, 0.0, 0.0};
    for (int64_t t = window.begin + 1; t < window.end; t++) {
        double before = bars->ohlcv[(t - 1) * HO_BAR_COLUMNS + HO_CLOSE];
        double jump = bars->roll_jump ? bars->roll_jump[t] : 0.0;
        if (before > 0.0 && !(bars->split && bars->split[t])) {
            ho_moments_add(&m,
                           (bars->ohlcv[t * HO_BAR_COLUMNS + HO_CLOSE] - before - jump) / before);
        }
    }
    return m.n >= 2 ? ho_moments_deviation(&m) : 0.0;
}

ho_status ho_lane_config_env(const ho_settings *s, const ho_bars *bars, ho_window train,
                             ho_env_config *out, ho_err *err)
{
    *out = ho_env_config_defaults();
    env_market(s, bars, out);
    env_trade(s, out);
    env_reward(s, out);
    ho_size_request request = {
        .capital = out->initial_capital,
        .multiplier = out->multiplier,
        .lot = f64_or(s, HO_KEY_INSTRUMENT_LOT, 0.0),
        .max_position = f64_or(s, HO_KEY_ENV_MAX_POSITION, 0.0),
        .max_exposure = ho_settings_f64(s, HO_KEY_ENV_MAX_EXPOSURE),
    };
    ho_size size = {0};
    double sigma_ref = 0.0;
    double close = bars->ohlcv[train.begin * HO_BAR_COLUMNS + HO_CLOSE];
    ho_status rc = ho_size_resolve(&request, close, &size, err);
    if (rc == HO_OK) {
        rc = ho_sigma_ref(bars->ohlcv, bars->roll_jump, bars->split, train, size.quantity,
                          out->multiplier, out->initial_capital, &sigma_ref, err);
    }
    if (rc != HO_OK) {
        return rc;
    }
    ho_size_apply(&size, sigma_ref, out);
    out->target_vol = f64_or(s, HO_KEY_SIZING_TARGET_VOL, price_deviation(bars, train));
    return ho_env_config_check(out, err);
}

/* ---- the plan ------------------------------------------------------------------------------ */

static ho_status fill_plan(const ho_lane_context *context, const ho_settings *s, uint64_t seed,
                           ho_trial_plan *plan, ho_err *err)
{
    const ho_fold_plan *folds = context->folds;
    ho_agent_config agent;
    ho_status rc =
        ho_lane_config_key(s, context->market_features, context->auto_batch, &plan->key, err);
    if (rc != HO_OK || (rc = ho_lane_config_agent(s, &plan->key, &agent, err)) != HO_OK) {
        return rc;
    }
    bool on_test = ho_settings_bool(s, HO_KEY_FOLDS_PRUNE_ON_TEST);
    for (int f = 0; f < plan->agent_folds; f++) {
        const ho_fold *fold = &folds->fold[plan->fold[f]];
        ho_env_config env;
        rc = ho_lane_config_env(s, context->bars, fold->train, &env, err);
        if (rc != HO_OK) {
            ho_err_prefix(err, "fold %d", plan->fold[f]);
            return rc;
        }
        bool without = fold->validation.end <= fold->validation.begin;
        plan->validation[f] = without && on_test ? fold->test : fold->validation;
        for (int i = 0; i < plan->seeds; i++) {
            ho_lane_config *lane = &plan->lane[f * plan->seeds + i];
            lane->env = env;
            lane->agent = agent;
            lane->train = fold->train;
            ho_rng_key(seed, (uint64_t)plan->number, (uint64_t)plan->fold[f], (uint64_t)i,
                       lane->rng_key);
        }
    }
    for (int f = 0; f < plan->folds; f++) {
        plan->test[f] = folds->fold[plan->fold[f]].test;
    }
    plan->epochs = agent.epochs;
    plan->eval_every = i32(s, HO_KEY_AGENT_EVAL_EVERY);
    plan->may_pause = ho_settings_bool(s, HO_KEY_PRUNER_PROMOTE);
    plan->select_best = ho_settings_choice(s, HO_KEY_AGENT_SELECT) == 1;
    plan->objectives = context->study->objective_count;
    for (int i = 0; i < plan->objectives; i++) {
        plan->objective[i] = context->study->objective[i].metric;
    }
    return HO_OK;
}

/* Some folds instead of all. */
static ho_status check_folds(const ho_lane_trial *asked, int study_folds, bool once, ho_err *err)
{
    for (int i = 0; i < asked->fold_count; i++) {
        int32_t fold = asked->fold[i], before = i > 0 ? asked->fold[i - 1] : -1;
        if (once || fold <= before || fold >= study_folds) {
            return ho_err_set(err, HO_EINVAL, "fold %d cannot be run alone", (int)fold);
        }
    }
    return HO_OK;
}

ho_status ho_lane_config_plan(const ho_lane_context *context, const ho_lane_trial *asked,
                              ho_trial_plan **out, ho_err *err)
{
    *out = NULL;
    ho_settings *trial = NULL;
    ho_trial_plan *plan = NULL;
    ho_status rc = ho_study_trial_settings(context->study, asked->config, &trial, err);
    if (rc != HO_OK) {
        return rc;
    }
    int folds = asked->fold_count > 0 ? asked->fold_count : context->folds->count;
    int seeds = i32(trial, HO_KEY_STUDY_SEEDS);
    bool once = ho_settings_choice(trial, HO_KEY_FOLDS_REFIT) == 1;
    rc = check_folds(asked, context->folds->count, once, err);
    if (rc == HO_OK) {
        rc = ho_trial_plan_create(&plan, folds, once ? 1 : folds, seeds, err);
    }
    if (rc == HO_OK) {
        size_t parameters = (size_t)context->study->space.count;
        plan->study_folds = context->folds->count;
        for (int i = 0; i < asked->fold_count; i++) {
            plan->fold[i] = asked->fold[i];
        }
        plan->number = asked->number;
        plan->attempt = asked->attempt;
        plan->parameters = (int32_t)parameters;
        plan->config = malloc((parameters + 1) * sizeof *plan->config);
        if (plan->config && parameters > 0) {
            memcpy(plan->config, asked->config, parameters * sizeof *plan->config);
        }
        rc = plan->config ? fill_plan(context, trial, asked->seed, plan, err)
                          : ho_err_set(err, HO_ENOMEM, "out of memory for a trial");
    }
    if (rc != HO_OK) {
        ho_trial_plan_destroy(&plan);
    }
    ho_settings_destroy(&trial);
    *out = plan;
    return rc;
}

/* ---- population ---------------------------------------------------------------------------- */

static ho_status key_and_agent(const ho_lane_context *context, const double *config,
                               ho_cohort_key *key, ho_agent_config *agent, ho_err *err)
{
    ho_settings *s = NULL;
    ho_status rc = ho_study_trial_settings(context->study, config, &s, err);
    if (rc == HO_OK) {
        rc = ho_lane_config_key(s, context->market_features, context->auto_batch, key, err);
    }
    if (rc == HO_OK) {
        rc = ho_lane_config_agent(s, key, agent, err);
    }
    ho_settings_destroy(&s);
    return rc;
}

/* Sections whose keys become ho_agent_config or ho_cohort_key, nothing else. */
static bool is_of_learning(const char *name)
{
    return strncmp(name, "dqn.", 4) == 0 || strncmp(name, "ppo.", 4) == 0 ||
           strncmp(name, "curiosity.", 10) == 0;
}

/* Whether parameters hang on the choice of parameter i. */
static bool is_parent(const ho_space *space, int i)
{
    for (int k = 0; k < space->count; k++) {
        for (int w = 0; w < space->param[k].when_count; w++) {
            if (space->param[k].when[w].param == i) {
                return true;
            }
        }
    }
    return false;
}

ho_status ho_lane_config_may_change(const ho_lane_context *context, const double *config,
                                    bool *may_change, ho_err *err)
{
    const ho_space *space = &context->study->space;
    ho_cohort_key key, other;
    ho_agent_config agent;
    double *moved = malloc(((size_t)space->count + 1) * sizeof *moved);
    if (!moved) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    ho_status rc = key_and_agent(context, config, &key, &agent, err);
    for (int i = 0; rc == HO_OK && i < space->count; i++) {
        const ho_param *param = &space->param[i];
        double last = param->choice_count - 1.0;
        double ends[] = {param->kind == HO_PARAM_CHOICE ? 0.0 : param->low,
                         param->kind == HO_PARAM_CHOICE ? last : param->high};
        may_change[i] = !isnan(config[i]) && is_of_learning(param->name) && !is_parent(space, i);
        for (int k = 0; may_change[i] && k < 2; k++) {
            ho_err ignored = {0};
            memcpy(moved, config, (size_t)space->count * sizeof *moved);
            moved[i] = ends[k];
            may_change[i] = key_and_agent(context, moved, &other, &agent, &ignored) == HO_OK &&
                            memcmp(&key, &other, sizeof key) == 0;
        }
    }
    free(moved);
    return rc;
}

ho_status ho_lane_config_agent_of(const ho_lane_context *context, const double *config,
                                  ho_agent_config *out, ho_err *err)
{
    ho_cohort_key key;
    return key_and_agent(context, config, &key, out, err);
}
