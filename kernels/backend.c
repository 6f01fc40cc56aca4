/* SPDX-License-Identifier: Apache-2.0
 * The public functions of backend.h: argument checks that every backend shares, then a call
 * through its table. Objects carry their table, so a build with CUDA holds both side by side. */
#include "kernels/backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/agents/agent_check.h"
#include "kernels/agents/net_layout.h"
#include "kernels/backend_ops.h"
#include "kernels/cpu/init.h"
#include "kernels/env/config_check.h"

static ho_status unsupported(const ho_backend_ops *ops, const char *what, ho_err *err)
{
    return ho_err_set(err, HO_EUNSUPPORTED, "the %s backend cannot %s", ops->name, what);
}

/* ---- backend ------------------------------------------------------------------------------- */

ho_backend_options ho_backend_defaults(void)
{
    return (ho_backend_options){.kind = HO_BACKEND_CPU};
}

int ho_backend_gpu_count(void)
{
#ifdef HO_HAVE_CUDA
    return ho_cuda_device_count();
#else
    return 0;
#endif
}

ho_status ho_backend_open(ho_backend **out, const ho_backend_options *options, ho_err *err)
{
    *out = NULL;
    const ho_backend_ops *ops = &ho_cpu_ops;
    if (options->kind == HO_BACKEND_CUDA) {
#ifdef HO_HAVE_CUDA
        ops = &ho_cuda_ops;
#else
        return ho_err_set(err, HO_EUNSUPPORTED,
                          "this build has no CUDA backend; build with nvcc "
                          "(HYPEROPT_CUDA=ON) or choose the CPU");
#endif
    }
    ho_status rc = ops->open(options, out, err);
    if (rc == HO_OK) {
        (*out)->ops = ops;
    }
    return rc;
}

void ho_backend_close(ho_backend **backend)
{
    if (*backend) {
        (*backend)->ops->close(*backend);
        *backend = NULL;
    }
}

ho_status ho_backend_info(ho_backend *backend, ho_device_info *out, ho_err *err)
{
    memset(out, 0, sizeof *out);
    return backend->ops->info(backend, out, err);
}

/* ---- market -------------------------------------------------------------------------------- */

ho_status ho_market_load(ho_backend *backend, const ho_market_data *data, ho_market **out,
                         ho_err *err)
{
    *out = NULL;
    ho_market_host *host = NULL;
    ho_status rc = ho_market_host_create(data, &host, err);
    if (rc == HO_OK) {
        rc = backend->ops->market_load(backend, host, out, err);
    }
    if (rc != HO_OK) {
        ho_market_host_destroy(&host);
        return rc;
    }
    (*out)->ops = backend->ops;
    (*out)->backend = backend;
    (*out)->host = host;
    return HO_OK;
}

void ho_market_unload(ho_market **market)
{
    if (*market) {
        ho_market_host *host = (*market)->host;
        (*market)->ops->market_unload(*market);
        ho_market_host_destroy(&host);
        *market = NULL;
    }
}

/* ---- cohort -------------------------------------------------------------------------------- */

ho_status ho_cohort_memory(ho_backend *backend, const ho_cohort_key *key, size_t *per_lane,
                           size_t *fixed, ho_err *err)
{
    *per_lane = 0;
    *fixed = 0;
    if (!backend->ops->cohort_memory) {
        return unsupported(backend->ops, "train", err);
    }
    return backend->ops->cohort_memory(backend, key, per_lane, fixed, err);
}

ho_status ho_cohort_create(ho_backend *backend, ho_market *market, const ho_cohort_key *key,
                           int capacity, ho_cohort **out, ho_err *err)
{
    *out = NULL;
    if (!backend->ops->cohort_create) {
        return unsupported(backend->ops, "train", err);
    }
    if (capacity < 1) {
        return ho_err_set(err, HO_EINVAL, "cohort: capacity %d", capacity);
    }
    ho_status rc = backend->ops->cohort_create(backend, market, key, capacity, out, err);
    if (rc == HO_OK) {
        (*out)->ops = backend->ops;
        (*out)->backend = backend;
        (*out)->market = market;
        (*out)->key = *key;
        (*out)->capacity = capacity;
    }
    return rc;
}

void ho_cohort_destroy(ho_cohort **cohort)
{
    if (*cohort) {
        (*cohort)->ops->cohort_destroy(*cohort);
        *cohort = NULL;
    }
}

static ho_status check_quiet(const ho_cohort *cohort, ho_err *err)
{
    return cohort->launched == 0
               ? HO_OK
               : ho_err_set(err, HO_EINVAL, "an epoch of this cohort is under way");
}

static ho_status check_slot(const ho_cohort *cohort, int slot, ho_err *err)
{
    if (slot < 0 || slot >= cohort->capacity) {
        return ho_err_set(err, HO_EINVAL, "lane slot %d of a cohort of %d", slot, cohort->capacity);
    }
    return check_quiet(cohort, err);
}

static ho_status check_lane(const ho_cohort *cohort, int slot, const ho_lane_config *config,
                            ho_err *err)
{
    ho_status rc = check_slot(cohort, slot, err);
    if (rc == HO_OK) {
        rc = ho_env_config_check(&config->env, err);
    }
    if (rc == HO_OK) {
        rc = ho_market_host_check_window(cohort->market->host, "train window", config->train, 1,
                                         err);
    }
    if (rc != HO_OK) {
        return rc;
    }
    const ho_market_host *host = cohort->market->host;
    for (int64_t t = config->train.begin; t + 1 < config->train.end; t++) {
        if (!(host->bar_flags[t] & HO_BAR_SPLIT_NEXT)) {
            return HO_OK;
        }
    }
    return ho_err_set(err, HO_EINVAL, "train window [%lld, %lld) has no two bars without a split",
                      (long long)config->train.begin, (long long)config->train.end);
}

ho_status ho_lane_prepare(const ho_cohort_key *key, const ho_lane_config *config, float **weights,
                          ho_err *err)
{
    *weights = NULL;
    ho_status rc = ho_cohort_key_check(key, err);
    if (rc != HO_OK) {
        return rc;
    }
    const ho_net_layout layout = ho_net_layout_of(key);
    const uint32_t random_key[2] = {(uint32_t)config->rng_key[0], (uint32_t)config->rng_key[1]};
    float *made = malloc((size_t)layout.size * sizeof *made);
    if (!made || ho_net_init(&layout, config->agent.init, config->agent.noisy_sigma0, random_key, 0,
                             made) != HO_OK) {
        free(made);
        return ho_err_set(err, HO_ENOMEM, "out of memory for a lane's weights");
    }
    *weights = made;
    return HO_OK;
}

ho_status ho_lane_start(ho_cohort *cohort, int slot, const ho_lane_config *config, ho_err *err)
{
    ho_status rc = check_lane(cohort, slot, config, err);
    return rc == HO_OK ? cohort->ops->lane_start(cohort, slot, config, err) : rc;
}

ho_status ho_lane_stop(ho_cohort *cohort, int slot)
{
    ho_status rc = check_slot(cohort, slot, NULL);
    return rc == HO_OK ? cohort->ops->lane_stop(cohort, slot) : rc;
}

ho_status ho_cohort_run_epoch(ho_cohort *cohort, ho_epoch_stat *stats, ho_err *err)
{
    ho_status rc = check_quiet(cohort, err);
    rc = rc == HO_OK ? ho_cohort_launch_epoch(cohort, err) : rc;
    return rc == HO_OK ? ho_cohort_collect_epoch(cohort, stats, err) : rc;
}

int ho_cohort_depth(const ho_cohort *cohort)
{
    return cohort->ops->launch_epoch ? HO_COHORT_DEPTH : 1;
}

ho_status ho_cohort_launch_epoch(ho_cohort *cohort, ho_err *err)
{
    if (cohort->launched == ho_cohort_depth(cohort)) {
        return ho_err_set(err, HO_EINVAL, "%d epochs of this cohort are under way",
                          cohort->launched);
    }
    ho_status rc = cohort->ops->launch_epoch ? cohort->ops->launch_epoch(cohort, err) : HO_OK;
    cohort->launched += rc == HO_OK;
    return rc;
}

ho_status ho_cohort_collect_epoch(ho_cohort *cohort, ho_epoch_stat *stats, ho_err *err)
{
    memset(stats, 0, (size_t)cohort->capacity * sizeof *stats);
    if (cohort->launched == 0) {
        return ho_err_set(err, HO_EINVAL, "no epoch of this cohort is under way");
    }
    cohort->launched--;
    return cohort->ops->launch_epoch ? cohort->ops->collect_epoch(cohort, stats, err)
                                     : cohort->ops->run_epoch(cohort, stats, err);
}

/* ---- backtest ------------------------------------------------------------------------------ */

static int is_network_policy(ho_policy policy)
{
    return policy <= HO_POLICY_CONFIDENCE;
}

static ho_status check_targets(const ho_backtest_request *r, ho_err *err)
{
    int64_t steps = r->window.end - r->window.begin - 1;
    if (r->policy == HO_POLICY_ACTIONS) {
        if (!r->actions) {
            return ho_err_set(err, HO_EINVAL, "actions are missing");
        }
        for (int64_t i = 0; i < steps; i++) {
            if (r->actions[i] >= HO_ACTIONS) {
                return ho_err_set(err, HO_EINVAL, "action %lld is %d; actions are 0 to %d",
                                  (long long)i, r->actions[i], HO_ACTIONS - 1);
            }
        }
    }
    if (r->policy == HO_POLICY_TARGETS) {
        if (!r->targets) {
            return ho_err_set(err, HO_EINVAL, "targets are missing");
        }
        for (int64_t i = 0; i < steps; i++) {
            if (!(r->targets[i] >= -1.0f && r->targets[i] <= 1.0f)) {
                return ho_err_set(err, HO_EINVAL, "target %lld is %g; exposures are -1 to 1",
                                  (long long)i, (double)r->targets[i]);
            }
        }
    }
    return HO_OK;
}

static ho_status check_request(const ho_market *market, const ho_cohort *cohort,
                               const ho_backtest_request *r, ho_err *err)
{
    ho_status rc = HO_OK;
    if (r->policy < HO_POLICY_GREEDY || r->policy > HO_POLICY_RANDOM) {
        return ho_err_set(err, HO_EINVAL, "no policy %d", (int)r->policy);
    }
    if (is_network_policy(r->policy)) {
        if (!cohort || r->slot_count < 1 || r->slot_count > 64) {
            return ho_err_set(err, HO_EINVAL, "a network policy needs a cohort and 1 to 64 slots");
        }
        for (int i = 0; i < r->slot_count && rc == HO_OK; i++) {
            rc = check_slot(cohort, r->slots[i], err);
        }
    } else if (!r->env) {
        return ho_err_set(err, HO_EINVAL, "a policy without a network needs an environment");
    }
    if (rc == HO_OK && r->env) {
        rc = ho_env_config_check(r->env, err);
    }
    if (rc == HO_OK) {
        rc = ho_market_host_check_window(market->host, "window", r->window, 0, err);
    }
    if (rc == HO_OK) {
        rc = check_targets(r, err);
    }
    if (rc == HO_OK && r->policy == HO_POLICY_MOMENTUM && r->momentum_bars < 1) {
        rc = ho_err_set(err, HO_EINVAL, "momentum over %d bars", r->momentum_bars);
    }
    if (rc == HO_OK && r->policy == HO_POLICY_RANDOM &&
        !(r->random_turnover >= 0.0 && r->random_turnover <= 1.0 && r->random_exposure >= 0.0 &&
          r->random_exposure <= 1.0)) {
        rc = ho_err_set(err, HO_EINVAL, "random policy: turnover %g and exposure %g must be 0 to 1",
                        r->random_turnover, r->random_exposure);
    }
    return rc;
}

static ho_status check_requests(const ho_market *market, const ho_cohort *cohort,
                                const ho_backtest_request *requests, int n, ho_err *err)
{
    if (!market->ops->backtest) {
        return unsupported(market->ops, "run a backtest", err);
    }
    for (int i = 0; i < n; i++) {
        ho_status rc = check_request(market, cohort, &requests[i], err);
        if (rc != HO_OK) {
            ho_err_prefix(err, "backtest %d: ", i);
            return rc;
        }
    }
    return HO_OK;
}

ho_status ho_backtest(ho_market *market, ho_cohort *cohort_or_null,
                      const ho_backtest_request *requests, int n, ho_backtest_result *results,
                      ho_err *err)
{
    memset(results, 0, (size_t)n * sizeof *results);
    ho_status rc = check_requests(market, cohort_or_null, requests, n, err);
    if (rc != HO_OK) {
        return rc;
    }
    rc = market->ops->backtest(market, cohort_or_null, requests, n, results, err);
    if (rc != HO_OK) {
        for (int i = 0; i < n; i++) {
            ho_backtest_free(&results[i]);
        }
    }
    return rc;
}

/* A job of a backend that does the work at once. */
static ho_status begin_and_end(ho_market *market, ho_cohort *cohort_or_null,
                               const ho_backtest_request *requests, int n, ho_backtest_job **out,
                               ho_err *err)
{
    ho_backtest_job *job = calloc(1, sizeof *job);
    if (job) {
        job->results = calloc((size_t)n + 1, sizeof *job->results);
    }
    if (!job || !job->results) {
        free(job);
        return ho_err_set(err, HO_ENOMEM, "backtest: out of memory");
    }
    ho_status rc = market->ops->backtest(market, cohort_or_null, requests, n, job->results, err);
    job->n = n;
    if (rc != HO_OK) {
        ho_backtest_drop(&job);
    }
    *out = job;
    return rc;
}

ho_status ho_backtest_begin(ho_market *market, ho_cohort *cohort_or_null,
                            const ho_backtest_request *requests, int n, ho_backtest_job **out,
                            ho_err *err)
{
    *out = NULL;
    ho_status rc = check_requests(market, cohort_or_null, requests, n, err);
    if (rc != HO_OK) {
        return rc;
    }
    rc = market->ops->backtest_begin
             ? market->ops->backtest_begin(market, cohort_or_null, requests, n, out, err)
             : begin_and_end(market, cohort_or_null, requests, n, out, err);
    if (rc == HO_OK) {
        (*out)->ops = market->ops;
        (*out)->n = n;
    }
    return rc;
}

int ho_backtest_ready(const ho_backtest_job *job)
{
    return job->results || job->ops->backtest_ready(job);
}

ho_status ho_backtest_collect(ho_backtest_job **job, ho_backtest_result *results, ho_err *err)
{
    ho_backtest_job *j = *job;
    const int n = j->n;
    ho_status rc = HO_OK;
    *job = NULL;
    memset(results, 0, (size_t)n * sizeof *results);
    if (j->results) {
        memcpy(results, j->results, (size_t)n * sizeof *results);
        free(j->results);
        free(j);
    } else {
        rc = j->ops->backtest_collect(j, results, err);
    }
    for (int i = 0; rc != HO_OK && i < n; i++) {
        ho_backtest_free(&results[i]);
    }
    return rc;
}

void ho_backtest_drop(ho_backtest_job **job)
{
    ho_backtest_job *j = job ? *job : NULL;
    if (!j) {
        return;
    }
    *job = NULL;
    if (!j->results) {
        j->ops->backtest_drop(j);
        return;
    }
    for (int i = 0; i < j->n; i++) {
        ho_backtest_free(&j->results[i]);
    }
    free(j->results);
    free(j);
}

void ho_backtest_free(ho_backtest_result *result)
{
    free(result->session_return);
    free(result->session_id);
    free(result->equity);
    free(result->bar_return);
    free(result->trades);
    free(result->actions);
    memset(result, 0, sizeof *result);
}

/* ---- weights, checkpoints, population ------------------------------------------------------- */

void ho_tensors_free(ho_tensors *tensors)
{
    for (int i = 0; i < tensors->count; i++) {
        free(tensors->tensor[i].data);
    }
    free(tensors->tensor);
    memset(tensors, 0, sizeof *tensors);
}

ho_status ho_lane_export(ho_cohort *cohort, int slot, ho_tensors *out, ho_err *err)
{
    memset(out, 0, sizeof *out);
    ho_status rc = check_slot(cohort, slot, err);
    if (rc == HO_OK && !cohort->ops->lane_export) {
        rc = unsupported(cohort->ops, "export weights", err);
    }
    return rc == HO_OK ? cohort->ops->lane_export(cohort, slot, out, err) : rc;
}

ho_status ho_lane_import(ho_cohort *cohort, int slot, const ho_tensors *weights, ho_err *err)
{
    ho_status rc = check_slot(cohort, slot, err);
    if (rc == HO_OK && !cohort->ops->lane_import) {
        rc = unsupported(cohort->ops, "import weights", err);
    }
    return rc == HO_OK ? cohort->ops->lane_import(cohort, slot, weights, err) : rc;
}

ho_status ho_lane_save(ho_cohort *cohort, int slot, int replay, void **blob, size_t *size,
                       ho_err *err)
{
    *blob = NULL;
    *size = 0;
    ho_status rc = check_slot(cohort, slot, err);
    if (rc == HO_OK && !cohort->ops->lane_save) {
        rc = unsupported(cohort->ops, "save lanes", err);
    }
    return rc == HO_OK ? cohort->ops->lane_save(cohort, slot, replay, blob, size, err) : rc;
}

ho_status ho_lane_restore(ho_cohort *cohort, int slot, const ho_lane_config *config,
                          const void *blob, size_t size, ho_err *err)
{
    ho_status rc = check_lane(cohort, slot, config, err);
    if (rc == HO_OK && !cohort->ops->lane_restore) {
        rc = unsupported(cohort->ops, "restore lanes", err);
    }
    return rc == HO_OK ? cohort->ops->lane_restore(cohort, slot, config, blob, size, err) : rc;
}

ho_status ho_lane_copy(ho_cohort *cohort, int dst, int src, ho_err *err)
{
    ho_status rc = check_slot(cohort, dst, err);
    if (rc == HO_OK) {
        rc = check_slot(cohort, src, err);
    }
    if (rc == HO_OK && !cohort->ops->lane_copy) {
        rc = unsupported(cohort->ops, "copy lanes", err);
    }
    return rc == HO_OK ? cohort->ops->lane_copy(cohort, dst, src, err) : rc;
}

ho_status ho_lane_set_agent(ho_cohort *cohort, int slot, const ho_agent_config *agent, ho_err *err)
{
    ho_status rc = check_slot(cohort, slot, err);
    if (rc == HO_OK && !cohort->ops->lane_set_agent) {
        rc = unsupported(cohort->ops, "change a running lane", err);
    }
    return rc == HO_OK ? cohort->ops->lane_set_agent(cohort, slot, agent, err) : rc;
}
