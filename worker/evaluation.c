/* SPDX-License-Identifier: Apache-2.0
 * See evaluation.h. */
#include "worker/evaluation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/env/rng.h"
#include "market/study_data.h"
#include "study/objective.h"
#include "worker/lane_config.h"

#define NS_A_YEAR (365.25 * 86400e9)

enum { AUTO_BATCH = 512 };

/* ---- opening --------------------------------------------------------------------------------- */

static ho_status load_models(ho_evaluation *e, const ho_evaluation_options *o, ho_err *err)
{
    e->model = calloc((size_t)o->model_count + 1, sizeof *e->model);
    if (!e->model) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    for (int i = 0; i < o->model_count; i++) {
        ho_status rc = ho_model_load(o->model[i], &e->model[i], err);
        if (rc != HO_OK) {
            return rc;
        }
        e->model_count++;
    }
    return HO_OK;
}

/* Features are those of the agents; without agents there are none, and no warm-up. */
static ho_status load_market(ho_evaluation *e, const ho_evaluation_options *o, ho_err *err)
{
    const ho_settings *s = e->model_count > 0 ? e->model[0].settings : o->settings;
    ho_status rc = ho_study_bars_load(o->settings, o->path, o->path_count, &e->bars, NULL, err);
    if (rc == HO_OK && e->model_count > 0) {
        rc = ho_study_features(s, &e->bars, &e->features, err);
    }
    for (int i = 0; i < e->model_count && rc == HO_OK; i++) {
        rc = ho_model_check_features(&e->model[i], &e->features, err);
        if (rc != HO_OK) {
            ho_err_prefix(err, "%s: ", o->model[i]);
        }
    }
    if (rc != HO_OK) {
        return rc;
    }
    ho_market_data data = {
        .T = e->bars.count,
        .F = e->features.F,
        .features = e->features.values,
        .warmup = e->features.warmup,
        .bars = e->bars.ohlcv,
        .open_ns = e->bars.open_ns,
        .interval_ns = e->bars.interval_ns,
        .session = e->bars.session,
        .roll_jump = e->bars.roll_jump,
        .split = e->features.split ? e->features.split : e->bars.split,
        .funding = e->bars.funding,
        .has_volume = e->bars.has_volume,
    };
    return ho_market_load(e->backend, &data, &e->market, err);
}

/* The windows given, or equal parts of what may be traded. */
static ho_status choose_windows(ho_evaluation *e, const ho_evaluation_options *o, ho_err *err)
{
    int64_t first = e->features.warmup, T = e->bars.count;
    int count = o->window_count > 0 ? o->window_count : 1;
    if (count > HO_EVALUATION_WINDOWS_MAX) {
        return ho_err_set(err, HO_EUSAGE, "%d windows; at most %d", count,
                          HO_EVALUATION_WINDOWS_MAX);
    }
    if ((T - first) / count < 2) {
        return ho_err_set(err, HO_EDATA,
                          "%lld bars, of which %lld are warm-up, are too few for %d windows",
                          (long long)T, (long long)first, count);
    }
    for (int i = 0; i < count; i++) {
        e->window[i] =
            o->window ? o->window[i]
                      : (ho_evaluation_window){.test = {first + (T - first) * i / count,
                                                        first + (T - first) * (i + 1) / count}};
    }
    e->window_count = count;
    return HO_OK;
}

static ho_status resolve_sizes(ho_evaluation *e, const ho_settings *s, ho_err *err)
{
    for (int i = 0; i < e->window_count; i++) {
        const ho_evaluation_window *w = &e->window[i];
        bool own = w->train.end - w->train.begin < 2;
        ho_status rc = ho_lane_config_env(s, &e->bars, own ? w->test : w->train, &e->env[i], err);
        if (rc != HO_OK) {
            ho_err_prefix(err, "window %d: ", i);
            return rc;
        }
        if (e->model_count > 0) {
            ho_model_apply(&e->model[0], &e->env[i]);
        }
    }
    return HO_OK;
}

/* Slots that only act: no replay to speak of, one episode. */
static void shrink(ho_cohort_key *key, ho_agent_config *agent)
{
    key->episodes = 1;
    key->updates = key->updates > 0 ? 1 : 0;
    key->replay = HO_REPLAY_UNIFORM;
    key->replay_capacity = key->replay_capacity > 0 ? key->episode_length + key->batch : 0;
    key->curiosity = 0;
    if (agent->learn_start > key->replay_capacity) {
        agent->learn_start = key->replay_capacity;
    }
}

static ho_status seat_models(ho_evaluation *e, const ho_evaluation_options *o, ho_err *err)
{
    ho_cohort_key key, other;
    ho_agent_config agent;
    ho_status rc = HO_OK;
    for (int i = 0; i < e->model_count && rc == HO_OK; i++) {
        const ho_settings *s = e->model[i].settings;
        rc = ho_lane_config_key(s, e->features.F, AUTO_BATCH, &other, err);
        if (rc == HO_OK) {
            rc = ho_lane_config_agent(s, &other, &agent, err);
        }
        if (rc != HO_OK) {
            break;
        }
        shrink(&other, &agent);
        if (i == 0) {
            key = other;
            rc = ho_cohort_create(e->backend, e->market, &key, e->model_count, &e->cohort, err);
        } else if (memcmp(&key, &other, sizeof key) != 0) {
            rc = ho_err_set(err, HO_ECONFIG,
                            "%s and %s are networks of different shapes; an ensemble needs one",
                            o->model[0], o->model[i]);
        }
        ho_lane_config lane = {.env = e->env[0], .agent = agent, .train = e->window[0].test};
        const ho_model_info *info = &e->model[i].info; /* a policy that samples draws as it did */
        ho_rng_key((uint64_t)ho_settings_i64(s, HO_KEY_STUDY_SEED), (uint64_t)info->trial,
                   (uint64_t)info->fold, (uint64_t)info->seed, lane.rng_key);
        rc = rc == HO_OK ? ho_lane_start(e->cohort, i, &lane, err) : rc;
        rc = rc == HO_OK ? ho_lane_import(e->cohort, i, &e->model[i].file.tensors, err) : rc;
        if (rc != HO_OK) {
            ho_err_prefix(err, "%s: ", o->model[i]);
        }
    }
    return rc;
}

ho_status ho_evaluation_open(ho_evaluation *e, const ho_evaluation_options *o, ho_err *err)
{
    *e = (ho_evaluation){.backend = o->backend};
    ho_status rc = load_models(e, o, err);
    rc = rc == HO_OK ? load_market(e, o, err) : rc;
    rc = rc == HO_OK ? choose_windows(e, o, err) : rc;
    rc = rc == HO_OK ? resolve_sizes(e, o->settings, err) : rc;
    rc = rc == HO_OK ? seat_models(e, o, err) : rc;
    if (rc != HO_OK) {
        ho_evaluation_close(e);
    }
    return rc;
}

ho_status ho_evaluation_restrict(ho_evaluation *e, const ho_settings *settings, ho_window window,
                                 ho_err *err)
{
    if (window.begin < 0 || window.end > e->bars.count || window.end - window.begin < 2) {
        return ho_err_set(err, HO_EDATA, "bars %lld to %lld are too few to score",
                          (long long)window.begin, (long long)window.end - 1);
    }
    e->window[0] = (ho_evaluation_window){.test = window};
    e->window_count = 1;
    return resolve_sizes(e, settings, err);
}

void ho_evaluation_close(ho_evaluation *e)
{
    ho_cohort_destroy(&e->cohort);
    ho_market_unload(&e->market);
    for (int i = 0; i < e->model_count; i++) {
        ho_model_free(&e->model[i]);
    }
    free(e->model);
    ho_features_free(&e->features);
    ho_bars_free(&e->bars);
    *e = (ho_evaluation){0};
}

/* ---- playing --------------------------------------------------------------------------------- */

void ho_evaluation_scale_costs(ho_env_config *env, double factor)
{
    env->spread_bps *= factor;
    env->spread_ticks *= factor;
    env->impact_coef *= factor;
    env->fee_per_unit *= factor;
    for (int i = 0; i < 3; i++) {
        env->fee_bps[i] *= factor;
    }
}

static double years_of(const ho_evaluation *e)
{
    double ns = 0.0;
    for (int i = 0; i < e->window_count; i++) {
        ho_window w = e->window[i].test;
        ns += (double)(e->bars.open_ns[w.end - 1] + e->bars.interval_ns -
                       e->bars.open_ns[w.begin + 1]);
    }
    return ns / NS_A_YEAR;
}

static ho_status join(const ho_evaluation *e, const ho_backtest_result *result,
                      ho_backtest_result *out, ho_err *err)
{
    const ho_backtest_result *window[HO_EVALUATION_WINDOWS_MAX];
    for (int i = 0; i < e->window_count; i++) {
        window[i] = &result[i];
    }
    ho_stitch_input in = {.window = window,
                          .count = e->window_count,
                          .sessions_per_year = e->bars.sessions_per_year,
                          .years = years_of(e),
                          .multiplier = e->env[0].multiplier};
    return ho_stitch(&in, out, err);
}

ho_status ho_evaluation_play(ho_evaluation *e, const ho_evaluation_policy *p,
                             ho_evaluation_run *out, ho_err *err)
{
    size_t n = (size_t)e->window_count;
    ho_backtest_request *request = calloc(n, sizeof *request);
    ho_env_config *env = calloc(n, sizeof *env);
    *out = (ho_evaluation_run){.window = calloc(n, sizeof *out->window)};
    ho_status rc =
        request && env && out->window ? HO_OK : ho_err_set(err, HO_ENOMEM, "out of memory");
    for (size_t i = 0; i < n && rc == HO_OK; i++) {
        ho_window w = e->window[i].test;
        env[i] = e->env[i];
        ho_evaluation_scale_costs(&env[i], p->cost_factor);
        request[i] = (ho_backtest_request){
            .policy = p->policy,
            .window = w,
            .env = &env[i],
            .actions = p->actions ? p->actions + w.begin : NULL,
            .targets = p->targets ? p->targets + w.begin : NULL,
            .momentum_bars = p->momentum_bars,
            .want = HO_WANT_BARS | HO_WANT_SESSIONS | HO_WANT_TRADES | HO_WANT_ACTIONS,
        };
        request[i].slot_count = p->policy == HO_POLICY_GREEDY ? 1 : e->model_count;
        for (int k = 0; k < request[i].slot_count && k < 64; k++) {
            request[i].slots[k] = k;
        }
    }
    if (rc == HO_OK) {
        rc = ho_backtest(e->market, e->cohort, request, (int)n, out->window, err);
    }
    if (rc == HO_OK) {
        out->count = (int)n;
        rc = join(e, out->window, &out->total, err);
    }
    free(request);
    free(env);
    if (rc != HO_OK) {
        ho_evaluation_run_free(out);
    }
    return rc;
}

void ho_evaluation_run_free(ho_evaluation_run *run)
{
    for (int i = 0; i < run->count; i++) {
        ho_backtest_free(&run->window[i]);
    }
    free(run->window);
    ho_backtest_free(&run->total);
    *run = (ho_evaluation_run){0};
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

ho_status ho_evaluation_random(ho_evaluation *e, const ho_evaluation_run *agent, int n,
                               double *total_return, double *turnover, double *exposure,
                               ho_err *err)
{
    int windows = e->window_count, all = n * windows;
    ho_backtest_request *request = calloc((size_t)all + 1, sizeof *request);
    ho_backtest_result *result = calloc((size_t)all + 1, sizeof *result);
    ho_status rc = request && result ? HO_OK : ho_err_set(err, HO_ENOMEM, "out of memory");
    double steps = 0.0, changes = 0.0, held = 0.0;
    for (int w = 0; w < windows && rc == HO_OK; w++) {
        const ho_backtest_result *r = &agent->window[w];
        double bars = (double)r->steps;
        steps += bars;
        changes += (double)r->position_changes;
        held += r->metrics.value[HO_METRIC_EXPOSURE] * bars;
        for (int i = 0; i < n; i++) {
            ho_backtest_request *q = &request[i * windows + w];
            *q = (ho_backtest_request){
                .policy = HO_POLICY_RANDOM,
                .window = e->window[w].test,
                .env = &e->env[w],
                .random_turnover = (double)r->position_changes / bars,
                .random_exposure = r->metrics.value[HO_METRIC_EXPOSURE],
                .want = HO_WANT_SESSIONS,
            };
            ho_rng_key(0, (uint64_t)i, (uint64_t)w, 0, q->rng_key);
        }
    }
    if (rc == HO_OK) {
        rc = ho_backtest(e->market, NULL, request, all, result, err);
    }
    for (int i = 0; i < n && rc == HO_OK; i++) {
        double grown = 1.0;
        for (int w = 0; w < windows && grown > 0.0; w++) {
            const ho_backtest_result *r = &result[i * windows + w];
            grown *= r->final_equity / r->initial_capital;
        }
        total_return[i] = grown - 1.0;
    }
    for (int i = 0; result && i < all; i++) {
        ho_backtest_free(&result[i]);
    }
    free(request);
    free(result);
    if (rc == HO_OK) {
        *turnover = changes / steps;
        *exposure = held / steps;
        qsort(total_return, (size_t)n, sizeof *total_return, ascending);
    }
    return rc;
}
