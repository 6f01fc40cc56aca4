/* SPDX-License-Identifier: Apache-2.0
 * Backtests of saved agents, of signals and actions from files, and of rule policies on any bars,
 * window by window and joined. Everything `hyperopt evaluate` shows is computed here. */
#ifndef HO_WORKER_EVALUATION_H
#define HO_WORKER_EVALUATION_H

#include "market/bars.h"
#include "market/features.h"
#include "study/settings.h"
#include "worker/model.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HO_EVALUATION_WINDOWS_MAX = 256, HO_EVALUATION_MODELS_MAX = 64 };

/* One test window and the window that sizes come from. */
typedef struct ho_evaluation_window {
    ho_window train; /* empty: sizes come from the test window itself */
    ho_window test;
} ho_evaluation_window;

typedef struct ho_evaluation {
    ho_backend *backend; /* borrowed */
    ho_bars bars;
    ho_features features; /* empty without models */
    ho_market *market;
    int model_count;
    ho_model *model; /* [model_count] */
    ho_cohort *cohort;
    int window_count;
    ho_evaluation_window window[HO_EVALUATION_WINDOWS_MAX];
    ho_env_config env[HO_EVALUATION_WINDOWS_MAX];
} ho_evaluation;

typedef struct ho_evaluation_options {
    ho_backend *backend;
    const ho_settings *settings; /* of the study, of the first model, or the defaults */
    const char *const *path;     /* [path_count] data files */
    int path_count;
    const char *const *model; /* [model_count] files */
    int model_count;
    const ho_evaluation_window *window; /* [window_count]; NULL: `window_count` equal parts of the
                                           bars that may be traded (0: one) */
    int window_count;
} ho_evaluation_options;

/* Loads bars, models and their features, resolves sizes. HO_EDATA, HO_ECONFIG, HO_EIO: err says
 * what. out is empty on failure. */
ho_status ho_evaluation_open(ho_evaluation *out, const ho_evaluation_options *options, ho_err *err);
void ho_evaluation_close(ho_evaluation *evaluation);

/* Scores this window alone; its size is resolved anew. HO_EDATA: shorter than two bars. */
ho_status ho_evaluation_restrict(ho_evaluation *evaluation, const ho_settings *settings,
                                 ho_window window, ho_err *err);

/* Multiplies spread, fees and impact. */
void ho_evaluation_scale_costs(ho_env_config *env, double factor);

/* One policy over all windows. */
typedef struct ho_evaluation_run {
    int count;
    ho_backtest_result *window; /* [count] with bars, sessions, trades and (networks) actions */
    ho_backtest_result total;   /* joined */
} ho_evaluation_run;

/* What a run plays. actions and targets: [T] by bar, entry t decided at the close of bar t. */
typedef struct ho_evaluation_policy {
    ho_policy policy;
    const uint8_t *actions;
    const float *targets;
    int momentum_bars;
    double cost_factor; /* spread, fees and impact are multiplied by it; 1 */
} ho_evaluation_policy;

ho_status ho_evaluation_play(ho_evaluation *evaluation, const ho_evaluation_policy *policy,
                             ho_evaluation_run *out, ho_err *err);
void ho_evaluation_run_free(ho_evaluation_run *run);

/* Random policies with the turnover and exposure of `agent` in each window: total returns [n] of
 * the joined series, ascending (undefined ones never occur: random policies have returns). */
ho_status ho_evaluation_random(ho_evaluation *evaluation, const ho_evaluation_run *agent, int n,
                               double *total_return, double *turnover, double *exposure,
                               ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
