/* SPDX-License-Identifier: Apache-2.0
 * See scripted_backend.h. */
#include "scripted_backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

ho_script script;

struct ho_backend {
    int unused;
};
struct ho_market {
    int64_t T;
};
struct ho_lane {
    int active, epoch;
    ho_lane_config config;
    float weight; /* of the whole network: the epoch it stands for */
};
struct ho_cohort {
    int capacity, launched;
    struct ho_lane *lane;
};
/* Requests as they were at the begin, and what each will give. */
struct ho_backtest_job {
    int n, polls;
    ho_backtest_result *result;
};

void script_reset(void)
{
    memset(&script, 0, sizeof script);
    script.processors = 2;
    script.memory = (size_t)1 << 30;
    script.lane_bytes = (size_t)1 << 20;
}

double script_value(uint64_t key, int epoch, ho_window window)
{
    return (double)(key % 1000) + 0.01 * epoch + 1e-7 * (double)window.begin;
}

ho_backend_options ho_backend_defaults(void)
{
    return (ho_backend_options){0};
}

int ho_backend_gpu_count(void)
{
    return script.gpu;
}

ho_status ho_backend_open(ho_backend **out, const ho_backend_options *options, ho_err *err)
{
    (void)options;
    *out = calloc(1, sizeof **out);
    return *out ? HO_OK : ho_err_set(err, HO_ENOMEM, "out of memory");
}

void ho_backend_close(ho_backend **backend)
{
    free(*backend);
    *backend = NULL;
}

ho_status ho_backend_info(ho_backend *backend, ho_device_info *out, ho_err *err)
{
    (void)backend, (void)err;
    memset(out, 0, sizeof *out);
    out->sm = script.gpu ? 90 : 0;
    out->processors = script.processors;
    out->memory_total = script.memory;
    out->memory_free = script.memory;
    return HO_OK;
}

ho_status ho_market_load(ho_backend *backend, const ho_market_data *data, ho_market **out,
                         ho_err *err)
{
    (void)backend;
    *out = calloc(1, sizeof **out);
    if (!*out) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    (*out)->T = data ? data->T : 0;
    return HO_OK;
}

void ho_market_unload(ho_market **market)
{
    free(*market);
    *market = NULL;
}

ho_status ho_cohort_memory(ho_backend *backend, const ho_cohort_key *key, size_t *per_lane,
                           size_t *fixed, ho_err *err)
{
    (void)backend, (void)key, (void)err;
    *per_lane = script.lane_bytes;
    *fixed = 0;
    return HO_OK;
}

ho_status ho_cohort_create(ho_backend *backend, ho_market *market, const ho_cohort_key *key,
                           int capacity, ho_cohort **out, ho_err *err)
{
    (void)backend, (void)market, (void)key;
    *out = NULL;
    if (script.create_limit > 0 && script.lanes_held + capacity > script.create_limit) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    ho_cohort *cohort = calloc(1, sizeof *cohort);
    cohort->lane = calloc((size_t)capacity, sizeof *cohort->lane);
    cohort->capacity = capacity;
    script.cohorts++;
    script.cohorts_created++;
    script.lanes_held += capacity;
    if (script.lanes_held > script.most_lanes_held) {
        script.most_lanes_held = script.lanes_held;
    }
    *out = cohort;
    return HO_OK;
}

void ho_cohort_destroy(ho_cohort **cohort)
{
    if (*cohort) {
        script.cohorts--;
        script.lanes_held -= (*cohort)->capacity;
        free((*cohort)->lane);
        free(*cohort);
        *cohort = NULL;
    }
}

ho_status ho_lane_prepare(const ho_cohort_key *key, const ho_lane_config *config, float **weights,
                          ho_err *err)
{
    (void)key;
    *weights = malloc(sizeof **weights);
    if (!*weights) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    **weights = script_weight(config->rng_key[0]);
    return HO_OK;
}

float script_weight(uint64_t key)
{
    return (float)(key % 1000) * 0.5f;
}

ho_status ho_lane_start(ho_cohort *cohort, int slot, const ho_lane_config *config, ho_err *err)
{
    struct ho_lane *lane = &cohort->lane[slot];
    if (cohort->launched > 0) {
        return ho_err_set(err, HO_EINVAL, "an epoch of this cohort is under way");
    }
    if (slot < 0 || slot >= cohort->capacity || lane->active) {
        return ho_err_set(err, HO_EINVAL, "slot %d is taken or out of range", slot);
    }
    if (script.refuse_key != 0 && config->rng_key[0] == script.refuse_key) {
        return ho_err_set(err, HO_EINVAL, "dqn.gamma is out of range");
    }
    if (config->weights && *config->weights == script_weight(config->rng_key[0])) {
        script.lanes_prepared++;
    }
    *lane = (struct ho_lane){.active = 1, .config = *config};
    script.lanes_active++;
    script.lanes_started++;
    return HO_OK;
}

ho_status ho_lane_stop(ho_cohort *cohort, int slot)
{
    if (cohort->launched > 0) {
        script.intrusions++;
        return HO_EINVAL;
    }
    script.lanes_active -= cohort->lane[slot].active;
    cohort->lane[slot].active = 0;
    return HO_OK;
}

int ho_cohort_depth(const ho_cohort *cohort)
{
    (void)cohort;
    return script.gpu ? 2 : 1;
}

ho_status ho_cohort_launch_epoch(ho_cohort *cohort, ho_err *err)
{
    if (cohort->launched == ho_cohort_depth(cohort)) {
        return ho_err_set(err, HO_EINVAL, "too many epochs are under way");
    }
    cohort->launched++;
    script.launches++;
    script.most_launched =
        cohort->launched > script.most_launched ? cohort->launched : script.most_launched;
    return HO_OK;
}

int64_t script_clock_ns(void)
{
    return 1 + (int64_t)(script.clock_s * 1e9);
}

ho_status ho_cohort_collect_epoch(ho_cohort *cohort, ho_epoch_stat *stats, ho_err *err)
{
    if (cohort->launched == 0) {
        return ho_err_set(err, HO_EINVAL, "no epoch is under way");
    }
    cohort->launched--;
    script.epochs_run++;
    if (script.epochs_until_lost > 0 && script.epochs_run >= script.epochs_until_lost) {
        return ho_err_set(err, HO_EGPU, "an illegal memory access was encountered");
    }
    if (script.lane_epochs_per_s) {
        int active = 0;
        for (int i = 0; i < cohort->capacity; i++) {
            active += cohort->lane[i].active;
        }
        script.clock_s += active / script.lane_epochs_per_s[(script.lanes_active + 63) / 64];
    }
    for (int i = 0; i < cohort->capacity; i++) {
        struct ho_lane *lane = &cohort->lane[i];
        memset(&stats[i], 0, sizeof stats[i]);
        if (!lane->active) {
            continue;
        }
        lane->epoch++;
        lane->weight = (float)lane->epoch;
        uint64_t key = lane->config.rng_key[0];
        stats[i].state = HO_LANE_ACTIVE;
        stats[i].epoch = lane->epoch;
        stats[i].experiences = 100;
        stats[i].updates = 10;
        stats[i].loss_mean = (double)(key % 1000) * 0.1 + 1.0 / lane->epoch;
        stats[i].reward_min = -(double)key;
        stats[i].reward_max = (double)key;
        if (script.diverge_key != 0 && key == script.diverge_key &&
            lane->epoch == script.diverge_epoch) {
            stats[i].state = HO_LANE_DIVERGED;
            stats[i].guard = HO_GUARD_LOSS;
            stats[i].guard_update = 7;
        }
    }
    return HO_OK;
}

ho_status ho_backtest_begin(ho_market *market, ho_cohort *cohort,
                            const ho_backtest_request *requests, int n, ho_backtest_job **out,
                            ho_err *err)
{
    *out = NULL;
    if (cohort && cohort->launched > 0) {
        return ho_err_set(err, HO_EINVAL, "an epoch of this cohort is under way");
    }
    if (script.jobs_limit > 0 && script.jobs >= script.jobs_limit) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for a backtest");
    }
    ho_backtest_job *job = calloc(1, sizeof *job);
    job->n = n;
    job->polls = script.job_polls;
    job->result = calloc((size_t)n + 1, sizeof *job->result);
    (void)ho_backtest(market, cohort, requests, n, job->result, err);
    script.jobs++;
    *out = job;
    return HO_OK;
}

int ho_backtest_ready(const ho_backtest_job *job)
{
    return --((ho_backtest_job *)(uintptr_t)job)->polls < 0;
}

static void job_free(ho_backtest_job **job)
{
    free((*job)->result);
    free(*job);
    *job = NULL;
    script.jobs--;
}

ho_status ho_backtest_collect(ho_backtest_job **job, ho_backtest_result *results, ho_err *err)
{
    if (script.jobs_until_lost > 0 && --script.jobs_until_lost == 0) {
        ho_backtest_drop(job);
        return ho_err_set(err, HO_EGPU, "an illegal memory access was encountered");
    }
    memcpy(results, (*job)->result, (size_t)(*job)->n * sizeof *results);
    job_free(job);
    return HO_OK;
}

void ho_backtest_drop(ho_backtest_job **job)
{
    if (job && *job) {
        for (int i = 0; i < (*job)->n; i++) {
            ho_backtest_free(&(*job)->result[i]);
        }
        job_free(job);
    }
}

ho_status ho_backtest(ho_market *market, ho_cohort *cohort, const ho_backtest_request *requests,
                      int n, ho_backtest_result *results, ho_err *err)
{
    (void)market, (void)err;
    for (int i = 0; i < n; i++) {
        memset(&results[i], 0, sizeof results[i]);
        script.backtests++;
        double value = 0.0;
        if (requests[i].policy == HO_POLICY_GREEDY) {
            const struct ho_lane *lane = &cohort->lane[requests[i].slots[0]];
            value = script_value(lane->config.rng_key[0], (int)lane->weight, requests[i].window);
        }
        for (int m = 0; m < HO_METRIC_COUNT; m++) {
            results[i].metrics.value[m] = value;
        }
        if (requests[i].want & HO_WANT_SESSIONS) {
            results[i].sessions = 2;
            results[i].session_return = calloc(2, sizeof(double));
            results[i].session_id = calloc(2, sizeof(int32_t));
        }
        if (requests[i].want & HO_WANT_ACTIONS) {
            results[i].bars = 4;
            results[i].actions = calloc(4, 1);
        }
        if (requests[i].want & HO_WANT_BARS) {
            results[i].bars = 4;
            results[i].equity = calloc(5, sizeof(double));
            results[i].bar_return = calloc(4, sizeof(double));
            results[i].equity[4] = value;
        }
        if (requests[i].want & HO_WANT_TRADES) {
            results[i].trade_count = 1;
            results[i].trades = calloc(1, sizeof(ho_trade));
            results[i].trades[0].net = value;
        }
    }
    return HO_OK;
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
    (void)err;
    script.exports++;
    out->count = 1;
    out->tensor = calloc(1, sizeof *out->tensor);
    out->tensor[0] = (ho_tensor){.name = "weight", .ndim = 1, .shape = {1}};
    out->tensor[0].data = malloc(sizeof(float));
    out->tensor[0].data[0] = cohort->lane[slot].weight;
    return HO_OK;
}

ho_status ho_lane_import(ho_cohort *cohort, int slot, const ho_tensors *weights, ho_err *err)
{
    (void)err;
    script.imports++;
    cohort->lane[slot].weight = weights->tensor[0].data[0];
    return HO_OK;
}

ho_status ho_lane_save(ho_cohort *cohort, int slot, int replay, void **blob, size_t *size,
                       ho_err *err)
{
    (void)replay, (void)err;
    *size = sizeof(struct ho_lane);
    *blob = malloc(*size);
    memcpy(*blob, &cohort->lane[slot], *size);
    return HO_OK;
}

ho_status ho_lane_restore(ho_cohort *cohort, int slot, const ho_lane_config *config,
                          const void *blob, size_t size, ho_err *err)
{
    if (size != sizeof(struct ho_lane)) {
        return ho_err_set(err, HO_EINVAL, "not a checkpoint of this shape");
    }
    memcpy(&cohort->lane[slot], blob, size);
    cohort->lane[slot].config = *config;
    script.lanes_active++;
    script.lanes_restored++;
    return HO_OK;
}

ho_status ho_lane_copy(ho_cohort *cohort, int dst, int src, ho_err *err)
{
    (void)err;
    cohort->lane[dst].weight = cohort->lane[src].weight;
    return HO_OK;
}

ho_status ho_lane_set_agent(ho_cohort *cohort, int slot, const ho_agent_config *agent, ho_err *err)
{
    (void)err;
    cohort->lane[slot].config.agent = *agent;
    return HO_OK;
}
