/* SPDX-License-Identifier: Apache-2.0
 * Defaults and range checks of ho_env_config, walked as tables. */
#include "kernels/env/config_check.h"

#include <math.h>
#include <stddef.h>

ho_env_config ho_env_config_defaults(void)
{
    return (ho_env_config){
        .lot = 1.0,
        .multiplier = 1.0,
        .allow_short = 1,
        .has_volume = 1,
        .sessions_per_year = 252.0,
        .initial_capital = 100000.0,
        .max_lots = 1,
        .target_vol = 0.001,
        .vol_cap = 1.0,
        .resize_band = 0.2,
        .kelly_fraction = 0.5,
        .kelly_min_trades = 30,
        .kelly_share = 1.0,
        .max_leverage = 10.0,
        .spread_bps = 1.0,
        .impact_coef = 0.5,
        .fee_bps = {1.5, 0.5, 1.0},
        .urgency_fraction = {0.34, 0.67, 1.0},
        .limit_offset = 1.0,
        .ioc_band = 0.005,
        .ioc_participation = 0.1,
        .sigma_ref = 0.001,
        .sigma_window = 60,
        .reward_scale = 1.0,
        .reward_clip = 10.0,
        .risk_threshold = 0.8,
        .diversity_min_entropy = 1.0,
        .diversity_window = 100,
        .diversity_warmup = 30,
        .curiosity_max = 0.1,
        .dsr_eta = 0.01,
        .recycle = 1,
        .reset_flags = HO_RESET_PORTFOLIO | HO_RESET_DIVERSITY,
        .random_start = 0.5,
        .ruin_fraction = 0.5,
    };
}

typedef struct range {
    const char *key;
    size_t offset;
    double low, high; /* inclusive */
    int open_low;     /* low itself is not allowed */
} range;

#define REAL(field, key, low, high)                                                                \
    {                                                                                              \
        key, offsetof(ho_env_config, field), low, high, 0                                          \
    }
#define POSITIVE(field, key, high)                                                                 \
    {                                                                                              \
        key, offsetof(ho_env_config, field), 0.0, high, 1                                          \
    }

static const range reals[] = {
    REAL(tick_size, "instrument.tick_size", 0.0, 1e12),
    POSITIVE(lot, "instrument.lot", 1e12),
    POSITIVE(multiplier, "instrument.multiplier", 1e12),
    POSITIVE(sessions_per_year, "instrument.sessions_per_year", 1e6),
    POSITIVE(initial_capital, "env.initial_capital", 1e18),
    POSITIVE(target_vol, "sizing.target_vol", 1e3),
    POSITIVE(vol_cap, "sizing.vol_cap", 1e3),
    REAL(resize_band, "sizing.resize_band", 0.0, 1e3),
    REAL(kelly_fraction, "sizing.kelly_fraction", 0.0, 1e3),
    REAL(kelly_share, "sizing.kelly_share", 0.0, 1.0),
    POSITIVE(max_leverage, "env.max_leverage", 1e6),
    REAL(cash_reserve, "env.cash_reserve", 0.0, 1.0),
    REAL(margin_per_lot, "env.margin_per_lot", 0.0, 1e18),
    REAL(spread_bps, "env.spread_bps", 0.0, 1e4),
    REAL(spread_ticks, "env.spread_ticks", 0.0, 1e6),
    REAL(impact_coef, "env.impact_coef", 0.0, 1e6),
    REAL(fee_bps[0], "env.fee_bps.taker", -1e4, 1e4),
    REAL(fee_bps[1], "env.fee_bps.maker", -1e4, 1e4),
    REAL(fee_bps[2], "env.fee_bps.ioc", -1e4, 1e4),
    REAL(fee_per_unit, "env.fee_per_unit", -1e9, 1e9),
    REAL(urgency_fraction[0], "env.urgency_fraction", 0.0, 1.0),
    REAL(urgency_fraction[1], "env.urgency_fraction", 0.0, 1.0),
    REAL(urgency_fraction[2], "env.urgency_fraction", 0.0, 1.0),
    REAL(limit_offset, "env.limit_offset", 0.0, 1e6),
    REAL(ioc_band, "env.ioc_band", 0.0, 1e6),
    REAL(ioc_participation, "env.ioc_participation", 0.0, 1e6),
    REAL(profit_target, "barriers.profit_target", 0.0, 1e6),
    REAL(stop_loss, "barriers.stop_loss", 0.0, 1e6),
    POSITIVE(sigma_ref, "sigma_ref", 1e6),
    REAL(reward_scale, "reward.scale", -1e9, 1e9),
    POSITIVE(reward_clip, "reward.clip", 1e9),
    REAL(barrier_scale, "reward.barrier_scale", -1e6, 1e6),
    REAL(risk_threshold, "reward.risk_threshold", 0.0, 1e6),
    REAL(risk_weight, "reward.risk_weight", -1e6, 1e6),
    REAL(diversity_min_entropy, "reward.diversity_min_entropy", 0.0, 2.0),
    REAL(diversity_penalty, "reward.diversity_penalty", -1e6, 1e6),
    REAL(curiosity_weight, "reward.curiosity_weight", 0.0, 1e6),
    REAL(curiosity_max, "reward.curiosity_max", 0.0, 1e6),
    POSITIVE(dsr_eta, "reward.dsr_eta", 1.0),
    REAL(random_start, "env.random_start", 0.0, 1.0),
    REAL(ruin_fraction, "env.ruin_fraction", 0.0, 1.0),
};

static const range integers[] = {
    REAL(max_lots, "env.max_position (in lots)", 1, 1000000000),
    REAL(sizing, "sizing.kind", HO_SIZING_FIXED, HO_SIZING_KELLY),
    REAL(kelly_min_trades, "sizing.kelly_min_trades", 2, 1000000000),
    REAL(cooldown, "env.cooldown", 0, 1000000000),
    REAL(fill, "env.fill", HO_FILL_NEXT_OPEN, HO_FILL_CLOSE),
    REAL(barrier_unit, "barriers.unit", HO_BARRIER_BPS, HO_BARRIER_SIGMA),
    REAL(max_holding, "barriers.max_holding", 0, 1000000000),
    REAL(sigma_window, "env.sigma_window", 2, 1000000),
    REAL(reward_preset, "reward.preset", HO_PRESET_DEFAULT, HO_PRESET_ORIGINAL),
    REAL(reward_base, "reward.base", HO_REWARD_RET, HO_REWARD_DSR),
    REAL(diversity_window, "reward.diversity_window", 1, HO_DIVERSITY_MAX),
    REAL(diversity_warmup, "reward.diversity_warmup", 0, 1000000000),
    REAL(state_form, "env.state", HO_STATE_FULL, HO_STATE_SEED54),
    REAL(action_set, "env.actions", HO_ACTIONS_FULL45, HO_ACTIONS_EXPOSURE5),
};

static ho_status check_one(const range *r, double value, ho_err *err)
{
    if (value >= r->low && value <= r->high && !(r->open_low && value == r->low)) {
        return HO_OK;
    }
    return ho_err_set(err, HO_EINVAL, "%s = %.17g is outside %s%g, %g]", r->key, value,
                      r->open_low ? "(" : "[", r->low, r->high);
}

ho_status ho_env_config_check(const ho_env_config *config, ho_err *err)
{
    const char *base = (const char *)config;
    ho_status rc = HO_OK;
    for (size_t i = 0; i < sizeof reals / sizeof reals[0] && rc == HO_OK; i++) {
        rc = check_one(&reals[i], *(const double *)(const void *)(base + reals[i].offset), err);
    }
    for (size_t i = 0; i < sizeof integers / sizeof integers[0] && rc == HO_OK; i++) {
        int32_t value = *(const int32_t *)(const void *)(base + integers[i].offset);
        rc = check_one(&integers[i], (double)value, err);
    }
    return rc;
}
