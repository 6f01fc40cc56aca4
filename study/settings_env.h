/* SPDX-License-Identifier: Apache-2.0
 * Rows of the settings table: the trading environment (fields of kernels/env/config.h).
 * See settings_table.h for the columns. */
#ifndef HO_STUDY_SETTINGS_ENV_H
#define HO_STUDY_SETTINGS_ENV_H

#define HO_SETTINGS_ENV(X)                                                                         \
    X(ENV_INITIAL_CAPITAL, "env.initial_capital", FLOAT, FACT, 0, 1e-6, 1e15, "1000000", "",       \
      "money", "equity before the first bar")                                                      \
    X(ENV_MAX_POSITION, "env.max_position", FLOAT, SEARCHABLE, AUTO, 1e-12, 1e15, "auto", "",      \
      "units", "position at exposure 1; auto: max_exposure x capital at the train window's start") \
    X(ENV_MAX_EXPOSURE, "env.max_exposure", FLOAT, SEARCHABLE, 0, 1e-6, 100, "1", "", "x capital", \
      "notional of the automatic position")                                                        \
    X(ENV_MAX_LEVERAGE, "env.max_leverage", FLOAT, SEARCHABLE, 0, 0.01, 1000, "10", "",            \
      "x equity", "largest notional of a trade that grows the position")                           \
    X(ENV_CASH_RESERVE, "env.cash_reserve", FLOAT, SEARCHABLE, 0, 0, 0.99, "0", "", "share",       \
      "share of equity that carries no position")                                                  \
    X(ENV_MARGIN_PER_LOT, "env.margin_per_lot", FLOAT, FACT, 0, 0, 1e15, "0", "", "money",         \
      "margin of one lot, replaces max_leverage; 0: not used")                                     \
    X(ENV_COOLDOWN, "env.cooldown", INT, SEARCHABLE, 0, 0, 1000000, "0", "", "bars",               \
      "no growing trade for this long after a stop")                                               \
    X(ENV_SPREAD_BPS, "env.spread_bps", FLOAT, FACT, 0, 0, 10000, "1", "", "bps",                  \
      "full bid-ask spread")                                                                       \
    X(ENV_SPREAD_TICKS, "env.spread_ticks", FLOAT, FACT, 0, 0, 100000, "0", "", "ticks",           \
      "full spread in ticks, replaces spread_bps; 0: not used")                                    \
    X(ENV_IMPACT_COEF, "env.impact_coef", FLOAT, FACT, AUTO, 0, 1000, "auto", "", "",              \
      "square-root market impact; auto: 0.5 where there is volume, else 0")                        \
    X(ENV_FEE_BPS_TAKER, "env.fee_bps.taker", FLOAT, FACT, 0, -100, 10000, "1.5", "", "bps",       \
      "fee of market orders, on absolute notional")                                                \
    X(ENV_FEE_BPS_MAKER, "env.fee_bps.maker", FLOAT, FACT, 0, -100, 10000, "0.5", "", "bps",       \
      "fee of resting limit orders; negative: a rebate")                                           \
    X(ENV_FEE_BPS_IOC, "env.fee_bps.ioc", FLOAT, FACT, 0, -100, 10000, "1.0", "", "bps",           \
      "fee of immediate-or-cancel orders")                                                         \
    X(ENV_FEE_PER_UNIT, "env.fee_per_unit", FLOAT, FACT, 0, -1e9, 1e9, "0", "", "money",           \
      "fee per unit traded, on top")                                                               \
    X(ENV_URGENCY_PATIENT, "env.urgency_fraction.patient", FLOAT, SEARCHABLE, 0, 0.01, 1, "0.34",  \
      "", "share", "share of the wanted change traded in a bar, patient")                          \
    X(ENV_URGENCY_NORMAL, "env.urgency_fraction.normal", FLOAT, SEARCHABLE, 0, 0.01, 1, "0.67",    \
      "", "share", "the same, normal")                                                             \
    X(ENV_URGENCY_AGGRESSIVE, "env.urgency_fraction.aggressive", FLOAT, SEARCHABLE, 0, 0.01, 1,    \
      "1.0", "", "share", "the same, aggressive")                                                  \
    X(ENV_LIMIT_OFFSET, "env.limit_offset", FLOAT, SEARCHABLE, 0, 0, 1000, "1", "",                \
      "half-spreads", "how far behind the close a limit order rests")                              \
    X(ENV_IOC_BAND, "env.ioc_band", FLOAT, SEARCHABLE, 0, 0, 1, "0.005", "", "share",              \
      "an ioc order fills only this near to the close")                                            \
    X(ENV_IOC_PARTICIPATION, "env.ioc_participation", FLOAT, SEARCHABLE, 0, 0, 1, "0.1", "",       \
      "share", "an ioc order takes at most this share of the bar's volume")                        \
    X(ENV_FILL, "env.fill", CHOICE, FACT, 0, 0, 0, "next_open", "next_open|close", "",             \
      "where market orders fill; close is optimistic and every report says so")                    \
    X(ENV_FLAT_AT_SESSION_END, "env.flat_at_session_end", BOOL, SEARCHABLE, 0, 0, 0, "false", "",  \
      "", "leave every position at the last close of a session")                                   \
    X(ENV_SIGMA_WINDOW, "env.sigma_window", INT, SEARCHABLE, 0, 20, 100000, "60", "", "bars",      \
      "window of the rolling deviation of returns")                                                \
    X(ENV_STATE, "env.state", CHOICE, SEARCHABLE, 0, 0, 0, "full", "full|seed54", "",              \
      "portfolio columns of the state: all nine, or the original three")                           \
    X(ENV_ACTIONS, "env.actions", CHOICE, SEARCHABLE, 0, 0, 0, "full45", "full45|exposure5", "",   \
      "exposure, order and urgency, or exposure alone")                                            \
    X(ENV_EPISODES, "env.episodes", INT, SEARCHABLE, 0, 1, 65536, "128", "", "episodes",           \
      "episodes of an agent side by side in an epoch")                                             \
    X(ENV_EPISODE_LENGTH, "env.episode_length", INT, SEARCHABLE, 0, 2, 1000000, "500", "", "bars", \
      "steps of an episode")                                                                       \
    X(ENV_RECYCLE, "env.recycle", BOOL, SEARCHABLE, 0, 0, 0, "true", "", "",                       \
      "a finished episode starts anew in the same epoch")                                          \
    X(ENV_RANDOM_START, "env.random_start", FLOAT, SEARCHABLE, 0, 0, 1, "0.5", "", "probability",  \
      "an episode starts with a random exposure")                                                  \
    X(ENV_RUIN_FRACTION, "env.ruin_fraction", FLOAT, SEARCHABLE, 0, 0, 0.99, "0.5", "", "share",   \
      "an episode ends when equity falls to this share of the capital")                            \
    X(ENV_END_ON_BARRIER, "env.end_on_barrier", BOOL, SEARCHABLE, 0, 0, 0, "false", "", "",        \
      "a barrier ends the episode")                                                                \
    X(ENV_BARRIER_TERMINAL, "env.barrier_terminal", BOOL, SEARCHABLE, 0, 0, 0, "false", "", "",    \
      "an episode ended by a barrier does not bootstrap")                                          \
    X(ENV_RESET_FLAGS, "env.reset_flags", FLAGS, FIXED, 0, 0, 0, "",                               \
      "portfolio|dsr|volatility|kelly|diversity", "", "what starts anew with every epoch")         \
    X(SIZING_KIND, "sizing.kind", CHOICE, SEARCHABLE, 0, 0, 0, "fixed", "fixed|volatility|kelly",  \
      "", "how the size at exposure 1 follows the market")                                         \
    X(SIZING_TARGET_VOL, "sizing.target_vol", FLOAT, SEARCHABLE, AUTO, 1e-9, 1, "auto", "",        \
      "deviation of a bar", "volatility: the deviation aimed at; auto: the train window's")        \
    X(SIZING_VOL_CAP, "sizing.vol_cap", FLOAT, SEARCHABLE, 0, 0.01, 100, "1", "", "x size",        \
      "volatility: largest size")                                                                  \
    X(SIZING_RESIZE_BAND, "sizing.resize_band", FLOAT, SEARCHABLE, 0, 0, 10, "0.2", "", "share",   \
      "volatility: smallest change that resizes")                                                  \
    X(SIZING_KELLY_FRACTION, "sizing.kelly_fraction", FLOAT, SEARCHABLE, 0, 0, 10, "0.5", "", "",  \
      "kelly: share of mean / variance of closed-trade returns")                                   \
    X(SIZING_KELLY_MIN_TRADES, "sizing.kelly_min_trades", INT, SEARCHABLE, 0, 2, 1000000, "30",    \
      "", "trades", "kelly: full size until this many trades")                                     \
    X(BARRIERS_PROFIT_TARGET, "barriers.profit_target", FLOAT, SEARCHABLE, 0, 0, 1e6, "40", "",    \
      "unit", "distance of the profit target; 0: off")                                             \
    X(BARRIERS_STOP_LOSS, "barriers.stop_loss", FLOAT, SEARCHABLE, 0, 0, 1e6, "40", "", "unit",    \
      "distance of the stop; 0: off")                                                              \
    X(BARRIERS_UNIT, "barriers.unit", CHOICE, SEARCHABLE, 0, 0, 0, "bps", "bps|sigma", "",         \
      "unit of both: basis points of the entry, or deviations of a bar")                           \
    X(BARRIERS_MAX_HOLDING, "barriers.max_holding", INT, SEARCHABLE, 0, 0, 1000000, "60", "",      \
      "bars", "a position leaves after this long; 0: off")

#define HO_SETTINGS_REWARD(X)                                                                      \
    X(REWARD_PRESET, "reward.preset", CHOICE, SEARCHABLE, 0, 0, 0, "default", "default|original",  \
      "", "the reward in units of a bar's deviation, or the original formula")                     \
    X(REWARD_BASE, "reward.base", CHOICE, SEARCHABLE, 0, 0, 0, "ret", "ret|log|dsr", "",           \
      "simple return, log return or differential Sharpe ratio")                                    \
    X(REWARD_SCALE, "reward.scale", FLOAT, SEARCHABLE, 0, 1e-9, 1e9, "1", "", "",                  \
      "factor on the whole reward")                                                                \
    X(REWARD_CLIP, "reward.clip", FLOAT, SEARCHABLE, 0, 1e-9, 1e9, "10", "", "",                   \
      "the reward is kept within plus and minus this")                                             \
    X(REWARD_BARRIER_SCALE, "reward.barrier_scale", FLOAT, SEARCHABLE, 0, 0, 1000, "0", "", "",    \
      "bonus at a target, malus at a stop; 0: off")                                                \
    X(REWARD_RISK_THRESHOLD, "reward.risk_threshold", FLOAT, SEARCHABLE, 0, 0, 1, "0.8", "",       \
      "share", "exposure above which risk is penalised")                                           \
    X(REWARD_RISK_WEIGHT, "reward.risk_weight", FLOAT, SEARCHABLE, 0, 0, 1000, "0", "", "",        \
      "penalty on exposure above the threshold; 0: off")                                           \
    X(REWARD_DIVERSITY_MIN_ENTROPY, "reward.diversity_min_entropy", FLOAT, SEARCHABLE, 0, 0,       \
      1.585, "1", "", "bits", "entropy of recent positions below which the penalty counts")        \
    X(REWARD_DIVERSITY_PENALTY, "reward.diversity_penalty", FLOAT, SEARCHABLE, 0, 0, 1000, "0",    \
      "", "", "penalty for one-sided behaviour; 0: off")                                           \
    X(REWARD_DIVERSITY_WINDOW, "reward.diversity_window", INT, SEARCHABLE, 0, 2, 1024, "100", "",  \
      "bars", "window of the entropy")                                                             \
    X(REWARD_DIVERSITY_WARMUP, "reward.diversity_warmup", INT, SEARCHABLE, 0, 0, 1024, "30", "",   \
      "bars", "no penalty before this many bars of an episode")                                    \
    X(REWARD_CURIOSITY_WEIGHT, "reward.curiosity_weight", FLOAT, SEARCHABLE, 0, 0, 1000, "0", "",  \
      "", "bonus on the forward model's error; 0: off")                                            \
    X(REWARD_CURIOSITY_MAX, "reward.curiosity_max", FLOAT, SEARCHABLE, 0, 0, 1000, "0.1", "", "",  \
      "largest curiosity bonus of a step")                                                         \
    X(REWARD_DSR_ETA, "reward.dsr_eta", FLOAT, SEARCHABLE, 0, 1e-6, 1, "0.01", "", "",             \
      "decay of the differential Sharpe ratio")

#endif
