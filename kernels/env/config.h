/* SPDX-License-Identifier: Apache-2.0
 * Settings of the trading environment, one plain struct per lane, the same on host and device.
 * Field by field this is spec/environment.md; the study keys are named beside each field.
 * Contents are resolved: "auto" sizes are numbers here (see env/sizing.h). */
#ifndef HO_KERNELS_ENV_CONFIG_H
#define HO_KERNELS_ENV_CONFIG_H

#include <stdint.h>

typedef enum ho_sizing { HO_SIZING_FIXED, HO_SIZING_VOLATILITY, HO_SIZING_KELLY } ho_sizing;
typedef enum ho_fill { HO_FILL_NEXT_OPEN, HO_FILL_CLOSE } ho_fill;
typedef enum ho_barrier_unit { HO_BARRIER_BPS, HO_BARRIER_SIGMA } ho_barrier_unit;
typedef enum ho_reward_base { HO_REWARD_RET, HO_REWARD_LOG, HO_REWARD_DSR } ho_reward_base;
typedef enum ho_reward_preset { HO_PRESET_DEFAULT, HO_PRESET_ORIGINAL } ho_reward_preset;
typedef enum ho_state_form { HO_STATE_FULL, HO_STATE_SEED54 } ho_state_form;
typedef enum ho_action_set { HO_ACTIONS_FULL45, HO_ACTIONS_EXPOSURE5 } ho_action_set;

/* What persists from one epoch to the next in an episode slot (env.reset_flags). */
enum {
    HO_RESET_PORTFOLIO = 1,  /* every epoch starts new episodes */
    HO_RESET_DSR = 2,        /* DSR's A and B start at 0 */
    HO_RESET_VOLATILITY = 4, /* the volatility EMA starts anew */
    HO_RESET_KELLY = 8,      /* closed-trade statistics start anew */
    HO_RESET_DIVERSITY = 16, /* the category window is cleared (it always is at a new episode) */
};

enum { HO_ORDER_MARKET = 0, HO_ORDER_LIMIT = 1, HO_ORDER_IOC = 2 }; /* decides the fee, too */
enum { HO_FEE_TAKER = 0, HO_FEE_MAKER = 1, HO_FEE_IOC = 2 };

typedef struct ho_env_config {
    /* instrument: facts */
    double tick_size;    /* instrument.tick_size, price units; 0 = none */
    double lot;          /* instrument.lot, units per lot */
    double multiplier;   /* instrument.multiplier, money per price unit per unit of position */
    int32_t allow_short; /* instrument.allow_short */
    int32_t has_volume;  /* the data has volume */
    double sessions_per_year;

    /* account and size */
    double initial_capital; /* env.initial_capital, money */
    int32_t max_lots;       /* size at exposure 1, whole lots, > 0 */
    int32_t sizing;         /* ho_sizing */
    double target_vol;      /* sizing.target_vol, deviation of one bar's return on the price */
    double vol_cap;         /* sizing.vol_cap */
    double resize_band;     /* sizing.resize_band, relative change */
    double kelly_fraction;  /* sizing.kelly_fraction */
    int32_t kelly_min_trades;
    double kelly_share;    /* share of max_lots in force with Kelly sizing: 1 until there are
                              kelly_min_trades, then set by the lane at each epoch's end */
    int32_t cooldown;      /* env.cooldown, bars after a stop */
    double max_leverage;   /* env.max_leverage */
    double cash_reserve;   /* env.cash_reserve, share of equity */
    double margin_per_lot; /* env.margin_per_lot, money; 0 = leverage limit */

    /* fills */
    double spread_bps;   /* env.spread_bps, full spread */
    double spread_ticks; /* env.spread_ticks, full spread in ticks; > 0 replaces spread_bps */
    double impact_coef;  /* env.impact_coef */
    double fee_bps[3];   /* env.fee_bps.taker, .maker, .ioc */
    double fee_per_unit; /* env.fee_per_unit, money per unit traded */
    double urgency_fraction[3];
    double limit_offset;      /* env.limit_offset, half-spreads behind the close */
    double ioc_band;          /* env.ioc_band, share of the close */
    double ioc_participation; /* env.ioc_participation, share of the bar's volume */
    int32_t fill;             /* ho_fill */
    int32_t flat_at_session_end;

    /* barriers */
    int32_t barrier_unit;     /* ho_barrier_unit */
    int32_t max_holding;      /* barriers.max_holding, bars; 0 = off */
    double profit_target;     /* barriers.profit_target, bps or sigma_t; 0 = off */
    double stop_loss;         /* barriers.stop_loss, bps or sigma_t; 0 = off */
    int32_t end_on_barrier;   /* env.end_on_barrier */
    int32_t barrier_terminal; /* env.barrier_terminal */

    /* scale */
    double sigma_ref;     /* deviation of one bar's return on equity at full size; > 0 */
    int32_t sigma_window; /* env.sigma_window, bars */

    /* reward */
    int32_t reward_preset; /* ho_reward_preset */
    int32_t reward_base;   /* ho_reward_base */
    double reward_scale;
    double reward_clip;
    double barrier_scale;
    double risk_threshold;
    double risk_weight;
    double diversity_min_entropy; /* bits */
    double diversity_penalty;     /* 0 = off */
    int32_t diversity_window;     /* <= HO_DIVERSITY_MAX */
    int32_t diversity_warmup;
    double curiosity_weight; /* 0 = off */
    double curiosity_max;
    double dsr_eta;

    /* episodes */
    int32_t state_form;   /* ho_state_form */
    int32_t action_set;   /* ho_action_set */
    int32_t recycle;      /* env.recycle */
    uint32_t reset_flags; /* HO_RESET_* */
    double random_start;  /* probability of a random exposure at the start */
    double ruin_fraction; /* equity <= this share of initial capital is terminal; 0 in evaluation */
} ho_env_config;

enum { HO_DIVERSITY_MAX = 1024 };

#endif
