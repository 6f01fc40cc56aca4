/* SPDX-License-Identifier: Apache-2.0
 * The one interface to the computation, with the lane axis from the start. A worker includes only
 * this header; the CPU backend (kernels/cpu) and the CUDA backend (kernels/cuda) implement it.
 *
 * Objects nest: backend > market > cohort > lane. A backend belongs to one thread at a time.
 * Calls block until the work is done; ho_cohort_run_epoch is the only long one.
 * A lane is one agent: one (trial, fold, seed). Its bits depend on its own config alone, never on
 * its slot, its neighbours or the number of threads.
 * After HO_EGPU the device context is gone: every later call fails with HO_EGPU; close and leave.
 */
#ifndef HO_KERNELS_BACKEND_H
#define HO_KERNELS_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/agent_config.h"
#include "kernels/env/config.h"
#include "kernels/metrics/metric_table.h"
#include "kernels/shapes.h"
#include "kernels/trade.h"
#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_backend ho_backend;
typedef struct ho_market ho_market;
typedef struct ho_cohort ho_cohort;

/* ---- backend ------------------------------------------------------------------------------- */

typedef enum ho_backend_kind { HO_BACKEND_CPU, HO_BACKEND_CUDA } ho_backend_kind;

typedef struct ho_backend_options {
    ho_backend_kind kind;
    int device;           /* CUDA ordinal */
    const char *gpu_uuid; /* chooses the device by UUID when not NULL */
    int threads;          /* CPU: OpenMP threads; 0 = all cores */
    size_t memory_limit;  /* bytes the backend may use; 0 = what is free */
    int force_portable;   /* CUDA: take the portable kernels even on sm_90 (for tests) */
} ho_backend_options;

typedef struct ho_device_info {
    char name[128];
    char uuid[48];  /* "GPU-..." or "cpu" */
    int sm;         /* 90 for compute capability 9.0; 0 on the CPU */
    int image;      /* 80: the kernels compiled for 8.0 run; 0 on the CPU */
    int processors; /* multiprocessors, or threads */
    size_t memory_total, memory_free;
    char toolkit[32], driver[32];
} ho_device_info;

ho_backend_options ho_backend_defaults(void);

/* Devices this build can use; 0 without a GPU or without CUDA. Never fails. */
int ho_backend_gpu_count(void);

/* HO_EUNSUPPORTED: CUDA asked of a build without it. HO_EGPU: no such device. */
ho_status ho_backend_open(ho_backend **out, const ho_backend_options *options, ho_err *err);
void ho_backend_close(ho_backend **backend);
ho_status ho_backend_info(ho_backend *backend, ho_device_info *out, ho_err *err);

/* ---- market: uploaded once, shared by all lanes -----------------------------------------------
 */

typedef struct ho_market_data {
    int64_t T;
    int F;                   /* market features, <= 64 - portfolio features */
    const float *features;   /* [T, F]; rows before `warmup` are not used */
    int64_t warmup;          /* first bar that may be traded */
    const double *bars;      /* [T, 5] open, high, low, close, volume */
    const int64_t *open_ns;  /* [T] UTC nanoseconds at which each bar opens */
    int64_t interval_ns;     /* nominal bar length */
    const int32_t *session;  /* [T] trading-day index, non-decreasing */
    const double *roll_jump; /* [T] price jump on entering bar t from a contract roll; or NULL */
    const uint8_t *split;    /* [T] 1: no episode or window may cross from t-1 to t; or NULL */
    const double *funding;   /* [T] rate on notional at the close of t; or NULL */
    const double *sigma;     /* [T] volatility to use instead of the rolling one; or NULL */
    int has_volume;
} ho_market_data;

/* Copies what it needs; the arrays may go after the call. HO_EINVAL: T < 2, NULL, NaN in a bar or
 * feature. */
ho_status ho_market_load(ho_backend *backend, const ho_market_data *data, ho_market **out,
                         ho_err *err);
void ho_market_unload(ho_market **market);

/* ---- cohort: slots of one shape ------------------------------------------------------------- */

/* Bytes one lane of this shape takes, and those a cohort takes once. */
ho_status ho_cohort_memory(ho_backend *backend, const ho_cohort_key *key, size_t *per_lane,
                           size_t *fixed, ho_err *err);

/* The market must outlive the cohort. HO_ENOMEM: capacity does not fit (halve it and try again). */
ho_status ho_cohort_create(ho_backend *backend, ho_market *market, const ho_cohort_key *key,
                           int capacity, ho_cohort **out, ho_err *err);
void ho_cohort_destroy(ho_cohort **cohort);

typedef struct ho_lane_config {
    ho_env_config env;
    ho_agent_config agent;
    ho_window train;      /* episodes start and stay inside; features before it are visible */
    uint64_t rng_key[2];  /* env/rng.h ho_rng_key(study seed, trial, fold, seed index) */
    const float *weights; /* what ho_lane_prepare made for this lane, read while it starts; or NULL:
                             the start makes them itself */
} ho_lane_config;

/* The initial weights of a lane, which depend on key and config alone: tens of milliseconds of a
 * processor for orthogonal ones, so a worker makes them before a slot is free. Any thread, beside
 * any other call. *weights is the caller's to free. HO_EINVAL: not a key. HO_ENOMEM. */
ho_status ho_lane_prepare(const ho_cohort_key *key, const ho_lane_config *config, float **weights,
                          ho_err *err);

/* Puts a fresh agent into a free slot: initial weights, empty replay, epoch 0.
 * HO_EINVAL: slot taken or out of range, window outside the market or shorter than an episode
 * needs, a number outside its range (err names it). */
ho_status ho_lane_start(ho_cohort *cohort, int slot, const ho_lane_config *config, ho_err *err);
ho_status ho_lane_stop(ho_cohort *cohort, int slot);

typedef enum ho_lane_state { HO_LANE_FREE, HO_LANE_ACTIVE, HO_LANE_DIVERGED } ho_lane_state;

/* What the guard saw when it stopped a lane. */
typedef enum ho_guard_reason {
    HO_GUARD_NONE,
    HO_GUARD_LOSS,     /* loss not finite or above loss_ceiling */
    HO_GUARD_GRADIENT, /* gradient norm not finite */
    HO_GUARD_VANISHED, /* gradient norm below grad_floor for grad_patience updates */
    HO_GUARD_Q,        /* |Q| above q_ceiling */
} ho_guard_reason;

/* One small struct per lane and epoch (spec/agents.md, "Epoch summary"). */
typedef struct ho_epoch_stat {
    int32_t state;        /* ho_lane_state after the epoch */
    int32_t guard;        /* ho_guard_reason */
    int64_t guard_update; /* update at which it tripped */
    int32_t epoch;        /* epochs done, from 1 */
    int64_t experiences;  /* environment steps of this epoch */
    int64_t updates;      /* gradient steps of this epoch */
    int64_t replay_fill;
    double reward_mean, reward_std, reward_min, reward_max;
    double sharpe; /* mean / deviation of the epoch's step returns on equity */
    int64_t exposure_count[HO_EXPOSURES], order_count[HO_ORDERS], urgency_count[HO_URGENCIES];
    int64_t ended_ruin, ended_window, ended_length, ended_barrier;        /* episodes */
    int64_t exit_profit, exit_stop, exit_time, exit_session, exit_signal; /* closed trades */
    double kelly_share; /* share of size that the next epoch uses (env.kelly_share) */
    double loss_mean, loss_last, grad_norm;
    double q_mean, q_std, q_min, q_max;
    double epsilon, td_error_mean, learning_rate;
    double kl, clip_fraction, entropy, explained_variance; /* PPO */
    double curiosity_loss;
} ho_epoch_stat;

/* All active lanes advance one epoch together. stats: [capacity], filled for every slot.
 * HO_OK also when lanes diverged: that is in their state. */
ho_status ho_cohort_run_epoch(ho_cohort *cohort, ho_epoch_stat *stats, ho_err *err);

/* The same in two halves, so that a device never waits for its host. launch begins the next epoch
 * behind those under way and returns; collect waits for the oldest and gives its statistics, the
 * same as run_epoch would have. At most ho_cohort_depth epochs are under way: 2 on a GPU; 1 on the
 * CPU, where collect does the work. While one is, every other call on the cohort but destroy
 * answers HO_EINVAL; so do launch beyond the depth and collect without launch. */
ho_status ho_cohort_launch_epoch(ho_cohort *cohort, ho_err *err);
ho_status ho_cohort_collect_epoch(ho_cohort *cohort, ho_epoch_stat *stats, ho_err *err);
int ho_cohort_depth(const ho_cohort *cohort);

/* ---- backtest ------------------------------------------------------------------------------- */

typedef enum ho_policy {
    HO_POLICY_GREEDY, /* the network of slots[0] */
    HO_POLICY_MEAN_Q, /* ensemble over slots[0..slot_count) */
    HO_POLICY_VOTE,
    HO_POLICY_CONFIDENCE,
    HO_POLICY_ACTIONS, /* actions[] */
    HO_POLICY_TARGETS, /* targets[]: exposures in [-1, 1], market orders, aggressive */
    HO_POLICY_FLAT,
    HO_POLICY_BUY_HOLD, /* +1 at the first bar, barriers off, same costs */
    HO_POLICY_SHORT,    /* -1 likewise */
    HO_POLICY_MOMENTUM, /* sign of the return over momentum_bars */
    HO_POLICY_RANDOM,   /* seeded; turnover and exposure as given */
} ho_policy;

enum {
    HO_WANT_SESSIONS = 1, /* per-session returns */
    HO_WANT_BARS = 2,     /* per-bar equity and returns */
    HO_WANT_TRADES = 4,
    HO_WANT_ACTIONS = 8,
};

typedef struct ho_backtest_request {
    ho_policy policy;
    int slots[64];
    int slot_count;
    ho_window window;
    const ho_env_config *env; /* NULL: the config of slots[0] */
    const uint8_t *actions;   /* [end - begin - 1], action i decided at the close of begin + i */
    const float *targets;     /* [end - begin - 1] */
    int momentum_bars;
    uint64_t rng_key[2];    /* HO_POLICY_RANDOM */
    double random_turnover; /* HO_POLICY_RANDOM: probability a bar of changing exposure */
    double random_exposure; /* HO_POLICY_RANDOM: share of bars with a position */
    unsigned want;          /* HO_WANT_* */
} ho_backtest_request;

typedef struct ho_backtest_result {
    ho_metric_set metrics;
    double initial_capital, final_equity;
    /* parts: realised + unrealised - fees - funding = total P&L; spread, impact and rounding are
     * inside realised and unrealised and reported beside them. The window's end closes what is
     * open, so unrealised is 0 there; open_pnl keeps what it was */
    double realised, unrealised, fees, spread, impact, rounding, funding;
    double open_pnl; /* of the position that the window's end closed, at its last mark */
    double traded;   /* notional of all fills, money */
    int64_t steps, trades_closed, ambiguous_bars;
    int64_t position_changes; /* bars in which the position changed */
    int32_t ruined;
    int64_t action_count[HO_ACTIONS];
    int64_t exit_count[HO_EXIT_REASONS];
    /* arrays owned by the result, NULL unless wanted */
    int64_t sessions;
    double *session_return; /* [sessions] simple returns */
    int32_t *session_id;    /* [sessions] as in ho_market_data.session */
    int64_t bars;
    double *equity;     /* [bars + 1], equity[0] = initial capital */
    double *bar_return; /* [bars] */
    int64_t trade_count;
    ho_trade *trades;
    uint8_t *actions; /* [bars] */
} ho_backtest_result;

/* Runs n backtests, side by side where the backend can. results: [n], each cleared first.
 * One bad request fails the call and names it. Free each with ho_backtest_free. */
ho_status ho_backtest(ho_market *market, ho_cohort *cohort_or_null,
                      const ho_backtest_request *requests, int n, ho_backtest_result *results,
                      ho_err *err);
void ho_backtest_free(ho_backtest_result *result);

typedef struct ho_backtest_job ho_backtest_job;

/* The same beside other work: begin reads requests, weights and Kelly's shares as they are and
 * returns (a GPU; the CPU does the work here), so that the lanes may train on, stop, or be
 * destroyed with their cohort; the market stays until the job has ended. ready: collect will not
 * wait. collect gives what ho_backtest would have and ends the job, drop ends it without. */
ho_status ho_backtest_begin(ho_market *market, ho_cohort *cohort_or_null,
                            const ho_backtest_request *requests, int n, ho_backtest_job **out,
                            ho_err *err);
int ho_backtest_ready(const ho_backtest_job *job);
ho_status ho_backtest_collect(ho_backtest_job **job, ho_backtest_result *results, ho_err *err);
void ho_backtest_drop(ho_backtest_job **job);

/* ---- weights, checkpoints, population ----------------------------------------------------------
 */

typedef struct ho_tensor {
    char name[64]; /* "online.trunk.0.weight" */
    int ndim;
    int64_t shape[4]; /* row-major; weights are [out, in] */
    float *data;
} ho_tensor;

typedef struct ho_tensors {
    int count;
    ho_tensor *tensor;
} ho_tensors;

void ho_tensors_free(ho_tensors *tensors);

/* The acting network of a lane, float32, in a fixed order and with the names of docs/weights.md. */
ho_status ho_lane_export(ho_cohort *cohort, int slot, ho_tensors *out, ho_err *err);
/* Overwrites the acting (and target) network of an active lane. HO_EINVAL: names or shapes differ.
 */
ho_status ho_lane_import(ho_cohort *cohort, int slot, const ho_tensors *weights, ho_err *err);

/* All of a lane's state as one opaque blob (malloc'ed, the caller's): with `replay` resuming from
 * it is bit-identical to not having stopped. Restoring needs a slot of a cohort with an equal key.
 */
ho_status ho_lane_save(ho_cohort *cohort, int slot, int replay, void **blob, size_t *size,
                       ho_err *err);
ho_status ho_lane_restore(ho_cohort *cohort, int slot, const ho_lane_config *config,
                          const void *blob, size_t size, ho_err *err);

/* Population: dst takes src's weights, moments and target; dst keeps its own random key. */
ho_status ho_lane_copy(ho_cohort *cohort, int dst, int src, ho_err *err);
/* Changes the numbers of a running lane (population explore); the window and key stay. */
ho_status ho_lane_set_agent(ho_cohort *cohort, int slot, const ho_agent_config *agent, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
