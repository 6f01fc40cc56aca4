/* SPDX-License-Identifier: Apache-2.0
 * Rows of the settings table: the agents (fields of kernels/agent_config.h).
 * See settings_table.h for the columns. */
#ifndef HO_STUDY_SETTINGS_AGENT_H
#define HO_STUDY_SETTINGS_AGENT_H

#define HO_SETTINGS_AGENT(X)                                                                       \
    X(AGENT_ALGORITHM, "agent.algorithm", CHOICE, SEARCHABLE, 0, 0, 0, "dqn", "dqn|ppo", "",       \
      "the learning algorithm")                                                                    \
    X(AGENT_HIDDEN1, "agent.hidden1", INT, SEARCHABLE, 0, 1, 4096, "256", "", "units",             \
      "width of the first layer")                                                                  \
    X(AGENT_HIDDEN2, "agent.hidden2", INT, SEARCHABLE, 0, 1, 4096, "256", "", "units",             \
      "width of the second layer")                                                                 \
    X(AGENT_HEAD, "agent.head", INT, SEARCHABLE, 0, 1, 4096, "128", "", "units",                   \
      "width of the heads' layer")                                                                 \
    X(AGENT_INIT, "agent.init", CHOICE, SEARCHABLE, 0, 0, 0, "orthogonal", "orthogonal|he", "",    \
      "how weights begin")                                                                         \
    X(AGENT_EPOCHS, "agent.epochs", INT, SEARCHABLE, 0, 1, 1000000, "40", "", "epochs",            \
      "length of a trial")                                                                         \
    X(AGENT_EVAL_EVERY, "agent.eval_every", INT, FIXED, 0, 1, 1000000, "5", "", "epochs",          \
      "epochs between validation reports")                                                         \
    X(AGENT_SELECT, "agent.select", CHOICE, SEARCHABLE, 0, 0, 0, "last", "last|best_validation",   \
      "", "which weights are scored on the test window")                                           \
    X(AGENT_PRECISION, "agent.precision", CHOICE, SEARCHABLE, 0, 0, 0, "f32", "f32|bf16|fp8", "",  \
      "inputs of the networks' products; sums and weights are f32; fp8: of acting in training, "   \
      "else bf16")                                                                                 \
    X(CURIOSITY_EVERY, "curiosity.every", INT, SEARCHABLE, 0, 1, 1000000, "4", "", "epochs",       \
      "epochs between trainings of the forward model")                                             \
    X(CURIOSITY_LEARNING_RATE, "curiosity.learning_rate", FLOAT, SEARCHABLE, 0, 1e-9, 1, "0.001",  \
      "", "", "learning rate of the forward model")

#define HO_SETTINGS_DQN(X)                                                                         \
    X(DQN_LEARNING_RATE, "dqn.learning_rate", FLOAT, SEARCHABLE, 0, 1e-9, 1, "3e-4", "", "",       \
      "Adam's step size")                                                                          \
    X(DQN_ADAM_BETA1, "dqn.adam_beta1", FLOAT, SEARCHABLE, 0, 0, 0.99999, "0.9", "", "",           \
      "Adam's decay of the mean")                                                                  \
    X(DQN_ADAM_BETA2, "dqn.adam_beta2", FLOAT, SEARCHABLE, 0, 0, 0.9999999, "0.999", "", "",       \
      "Adam's decay of the square")                                                                \
    X(DQN_ADAM_EPS, "dqn.adam_eps", FLOAT, SEARCHABLE, 0, 1e-15, 1, "1e-5", "", "",                \
      "Adam's denominator floor")                                                                  \
    X(DQN_WEIGHT_DECAY, "dqn.weight_decay", FLOAT, SEARCHABLE, 0, 0, 10, "0", "", "",              \
      "decoupled weight decay")                                                                    \
    X(DQN_SCHEDULE, "dqn.schedule", CHOICE, SEARCHABLE, 0, 0, 0, "constant",                       \
      "constant|cosine|linear", "", "course of the learning rate over the trial")                  \
    X(DQN_WARMUP, "dqn.warmup", INT, SEARCHABLE, 0, 0, 1e9, "0", "", "updates",                    \
      "linear warm-up of the learning rate")                                                       \
    X(DQN_MAX_GRAD_NORM, "dqn.max_grad_norm", FLOAT, SEARCHABLE, 0, 0, 1e9, "10", "", "",          \
      "gradient clipping; 0: off")                                                                 \
    X(DQN_GAMMA, "dqn.gamma", FLOAT, SEARCHABLE, 0, 0, 0.999999, "0.99", "", "",                   \
      "discount of a bar")                                                                         \
    X(DQN_N_STEP, "dqn.n_step", INT, SEARCHABLE, 0, 1, 64, "3", "", "bars",                        \
      "bars of reward before the bootstrap")                                                       \
    X(DQN_DOUBLE, "dqn.double", BOOL, SEARCHABLE, 0, 0, 0, "true", "", "",                         \
      "double DQN: the online network chooses, the target network values")                         \
    X(DQN_DUELING, "dqn.dueling", BOOL, SEARCHABLE, 0, 0, 0, "true", "", "",                       \
      "value and advantage heads")                                                                 \
    X(DQN_BRANCHING, "dqn.branching", BOOL, SEARCHABLE, 0, 0, 0, "false", "", "",                  \
      "three heads 5 + 3 + 3 instead of one of 45")                                                \
    X(DQN_NOISY, "dqn.noisy", BOOL, SEARCHABLE, 0, 0, 0, "false", "", "",                          \
      "noisy heads instead of epsilon")                                                            \
    X(DQN_NOISY_SIGMA0, "dqn.noisy_sigma0", FLOAT, SEARCHABLE, 0, 0, 10, "0.5", "", "",            \
      "first deviation of the noise")                                                              \
    X(DQN_DISTRIBUTIONAL, "dqn.distributional", BOOL, SEARCHABLE, 0, 0, 0, "false", "", "",        \
      "C51: learn the distribution of the return")                                                 \
    X(DQN_ATOMS, "dqn.atoms", INT, SEARCHABLE, 0, 2, 255, "51", "", "atoms",                       \
      "C51: points of the distribution")                                                           \
    X(DQN_V_MAX, "dqn.v_max", FLOAT, SEARCHABLE, AUTO, 1e-6, 1e9, "auto", "", "",                  \
      "C51: support is -v_max .. v_max; auto: 3 / sqrt(1 - gamma^2)")                              \
    X(DQN_HUBER_DELTA, "dqn.huber_delta", FLOAT, SEARCHABLE, 0, 0, 1e9, "1", "", "",               \
      "Huber loss; 0: mean squared error")                                                         \
    X(DQN_TAU, "dqn.tau", FLOAT, SEARCHABLE, 0, 0, 1, "0.005", "", "share",                        \
      "soft target step per update; 0: hard copies")                                               \
    X(DQN_TARGET_EVERY, "dqn.target_every", INT, SEARCHABLE, 0, 1, 1e9, "1000", "", "updates",     \
      "updates between hard copies, with tau = 0")                                                 \
    X(DQN_REPLAY, "dqn.replay", CHOICE, SEARCHABLE, 0, 0, 0, "uniform", "uniform|per|per_rank",    \
      "", "how transitions are drawn")                                                             \
    X(DQN_REPLAY_CAPACITY, "dqn.replay_capacity", INT, SEARCHABLE, 0, 16, 268435456, "262144", "", \
      "transitions", "replay ring of one agent")                                                   \
    X(DQN_LEARN_START, "dqn.learn_start", INT, SEARCHABLE, AUTO, 1, 1e9, "auto", "",               \
      "transitions", "collected before the first update; auto: 20 x batch")                        \
    X(DQN_PER_ALPHA, "dqn.per_alpha", FLOAT, SEARCHABLE, 0, 0, 2, "0.6", "", "",                   \
      "prioritised replay: exponent of the priority")                                              \
    X(DQN_PER_BETA, "dqn.per_beta", FLOAT, SEARCHABLE, 0, 0, 1, "0.4", "", "",                     \
      "prioritised replay: importance exponent at the start")                                      \
    X(DQN_PER_BETA_END, "dqn.per_beta_end", FLOAT, SEARCHABLE, 0, 0, 1, "1", "", "",               \
      "prioritised replay: importance exponent at the end")                                        \
    X(DQN_BATCH, "dqn.batch", INT, SEARCHABLE, AUTO, 1, 65536, "512", "", "transitions",           \
      "transitions of an update; auto: measured once per study")                                   \
    X(DQN_REPLAY_RATIO, "dqn.replay_ratio", FLOAT, SEARCHABLE, 0, 0.0001, 1024, "1", "", "",       \
      "transitions sampled per transition collected")                                              \
    X(DQN_EPS_START, "dqn.eps_start", FLOAT, SEARCHABLE, 0, 0, 1, "1", "", "probability",          \
      "exploration at the start")                                                                  \
    X(DQN_EPS_END, "dqn.eps_end", FLOAT, SEARCHABLE, 0, 0, 1, "0.02", "", "probability",           \
      "exploration at the end")                                                                    \
    X(DQN_EPS_SHARE, "dqn.eps_share", FLOAT, SEARCHABLE, 0, 0, 1, "0.5", "", "share of epochs",    \
      "epochs over which exploration falls")                                                       \
    X(DQN_EXPLORE_HOLD, "dqn.explore_hold", FLOAT, SEARCHABLE, 0, 1, 100000, "8", "", "bars",      \
      "mean bars a random action is held")                                                         \
    X(DQN_COUNT_BONUS, "dqn.count_bonus", FLOAT, SEARCHABLE, 0, 0, 1e6, "0", "", "",               \
      "bonus on rarely chosen actions when acting; 0: off")

#define HO_SETTINGS_PPO(X)                                                                         \
    X(PPO_LEARNING_RATE, "ppo.learning_rate", FLOAT, SEARCHABLE, 0, 1e-9, 1, "3e-4", "", "",       \
      "Adam's step size")                                                                          \
    X(PPO_ADAM_BETA1, "ppo.adam_beta1", FLOAT, SEARCHABLE, 0, 0, 0.99999, "0.9", "", "",           \
      "Adam's decay of the mean")                                                                  \
    X(PPO_ADAM_BETA2, "ppo.adam_beta2", FLOAT, SEARCHABLE, 0, 0, 0.9999999, "0.999", "", "",       \
      "Adam's decay of the square")                                                                \
    X(PPO_ADAM_EPS, "ppo.adam_eps", FLOAT, SEARCHABLE, 0, 1e-15, 1, "1e-5", "", "",                \
      "Adam's denominator floor")                                                                  \
    X(PPO_WEIGHT_DECAY, "ppo.weight_decay", FLOAT, SEARCHABLE, 0, 0, 10, "0", "", "",              \
      "decoupled weight decay")                                                                    \
    X(PPO_SCHEDULE, "ppo.schedule", CHOICE, SEARCHABLE, 0, 0, 0, "linear",                         \
      "constant|cosine|linear", "", "course of the learning rate over the trial")                  \
    X(PPO_WARMUP, "ppo.warmup", INT, SEARCHABLE, 0, 0, 1e9, "0", "", "updates",                    \
      "linear warm-up of the learning rate")                                                       \
    X(PPO_MAX_GRAD_NORM, "ppo.max_grad_norm", FLOAT, SEARCHABLE, 0, 0, 1e9, "0.5", "", "",         \
      "gradient clipping; 0: off")                                                                 \
    X(PPO_GAMMA, "ppo.gamma", FLOAT, SEARCHABLE, 0, 0, 0.999999, "0.99", "", "",                   \
      "discount of a bar")                                                                         \
    X(PPO_GAE_LAMBDA, "ppo.gae_lambda", FLOAT, SEARCHABLE, 0, 0, 1, "0.95", "", "",                \
      "decay of the advantage estimate")                                                           \
    X(PPO_ROLLOUT, "ppo.rollout", INT, SEARCHABLE, 0, 2, 65536, "128", "", "bars",                 \
      "steps of each episode between updates")                                                     \
    X(PPO_EPOCHS, "ppo.epochs", INT, SEARCHABLE, 0, 1, 100, "4", "", "passes",                     \
      "passes over a rollout")                                                                     \
    X(PPO_MINIBATCH, "ppo.minibatch", INT, SEARCHABLE, 0, 1, 1048576, "4096", "", "steps",         \
      "steps of an update")                                                                        \
    X(PPO_CLIP, "ppo.clip", FLOAT, SEARCHABLE, 0, 1e-6, 10, "0.2", "", "",                         \
      "clipping of the probability ratio")                                                         \
    X(PPO_VALUE_CLIP, "ppo.value_clip", FLOAT, SEARCHABLE, 0, 0, 1e9, "0", "", "",                 \
      "clipping of the value's change; 0: off")                                                    \
    X(PPO_VF_COEF, "ppo.vf_coef", FLOAT, SEARCHABLE, 0, 0, 1000, "0.5", "", "",                    \
      "weight of the value loss")                                                                  \
    X(PPO_ENT_COEF, "ppo.ent_coef", FLOAT, SEARCHABLE, 0, 0, 1000, "0.01", "", "",                 \
      "weight of the entropy bonus")                                                               \
    X(PPO_TARGET_KL, "ppo.target_kl", FLOAT, SEARCHABLE, 0, 0, 1000, "0.02", "", "",               \
      "an agent's remaining minibatches stop above this; 0: off")                                  \
    X(PPO_FACTORED, "ppo.factored", BOOL, SEARCHABLE, 0, 0, 0, "false", "", "",                    \
      "policy heads 5 + 3 + 3 instead of one of 45")                                               \
    X(PPO_SEPARATE, "ppo.separate", BOOL, SEARCHABLE, 0, 0, 0, "false", "", "",                    \
      "a value network of its own")                                                                \
    X(PPO_SAMPLE_EVAL, "ppo.sample_eval", BOOL, SEARCHABLE, 0, 0, 0, "false", "", "",              \
      "evaluation draws actions instead of taking the likeliest")

#define HO_SETTINGS_GUARD(X)                                                                       \
    X(GUARD_LOSS_CEILING, "guard.loss_ceiling", FLOAT, FIXED, 0, 1e-9, 1e300, "1e4", "", "",       \
      "a loss above this, or not finite, fails the trial")                                         \
    X(GUARD_Q_CEILING, "guard.q_ceiling", FLOAT, FIXED, 0, 1e-9, 1e300, "1e3", "", "",             \
      "a |Q| above this fails the trial")                                                          \
    X(GUARD_GRAD_FLOOR, "guard.grad_floor", FLOAT, FIXED, 0, 0, 1e300, "0", "", "",                \
      "a gradient norm below this for grad_patience updates fails the trial; 0: off")              \
    X(GUARD_GRAD_PATIENCE, "guard.grad_patience", INT, FIXED, 0, 1, 1e9, "100", "", "updates",     \
      "see grad_floor")

#endif
