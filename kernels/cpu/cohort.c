/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/cohort.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/threads.h"

ho_status ho_cpu_cohort_memory(ho_backend *backend, const ho_cohort_key *key, size_t *per_lane,
                               size_t *fixed, ho_err *err)
{
    ho_status rc = ho_cohort_key_check(key, err);
    if (rc == HO_OK) {
        const ho_lane_shape shape = ho_lane_shape_of(key);
        *per_lane = sizeof(ho_lane) + ho_lane_size(&shape);
        *fixed = (size_t)ho_cpu_threads(backend) * ho_scratch_size(&shape);
    }
    return rc;
}

static const ho_lane_config *lane_config(const ho_cohort *cohort, int slot)
{
    const ho_lane *lane = ((const ho_cpu_cohort *)(const void *)cohort)->lane[slot];
    return lane ? &lane->config : NULL;
}

ho_status ho_cpu_cohort_create(ho_backend *backend, ho_market *market, const ho_cohort_key *key,
                               int capacity, ho_cohort **out, ho_err *err)
{
    ho_cpu_cohort *c = NULL;
    ho_device_info info = {0};
    size_t per_lane = 0, fixed = 0;
    ho_status rc = ho_cpu_cohort_memory(backend, key, &per_lane, &fixed, err);
    if (rc == HO_OK && key->market_features != market->host->F) {
        rc = ho_err_set(err, HO_EINVAL, "cohort: %d market features, the market has %d",
                        key->market_features, market->host->F);
    }
    if (rc != HO_OK || (rc = ho_backend_info(backend, &info, err)) != HO_OK) {
        goto out;
    }
    const int threads = ho_cpu_threads(backend);
    const int scratches = threads < capacity ? threads : capacity;
    const size_t need = (size_t)capacity * per_lane + fixed / (size_t)threads * (size_t)scratches;
    if (need > info.memory_free) {
        rc = ho_err_set(err, HO_ENOMEM, "cohort: %d lanes need %zu MB, %zu MB are free", capacity,
                        need >> 20, info.memory_free >> 20);
        goto out;
    }
    rc = ho_err_set(err, HO_ENOMEM, "cohort: out of memory for %d lanes", capacity);
    if (!(c = calloc(1, sizeof *c)) || !(c->lane = calloc((size_t)capacity, sizeof *c->lane)) ||
        !(c->scratch = calloc((size_t)scratches, sizeof *c->scratch))) {
        goto out;
    }
    c->shape = ho_lane_shape_of(key);
    c->host = market->host;
    c->capacity = capacity;
    c->threads = threads;
    c->acting.act = ho_cpu_act;
    c->acting.scratch_size = ho_cpu_act_scratch;
    c->acting.lane_config = lane_config;
    for (; c->scratches < scratches; c->scratches++) {
        if ((rc = ho_scratch_create(&c->shape, &c->scratch[c->scratches])) != HO_OK) {
            goto out;
        }
    }
    rc = HO_OK;
    *out = &c->acting.base;
out:
    if (rc != HO_OK) {
        ho_cpu_cohort_destroy(c ? &c->acting.base : NULL);
    }
    return rc;
}

void ho_cpu_cohort_destroy(ho_cohort *cohort)
{
    if (!cohort) {
        return;
    }
    ho_cpu_cohort *c = ho_cpu_cohort_of(cohort);
    for (int i = 0; c->lane && i < c->capacity; i++) {
        ho_lane_destroy(&c->lane[i]);
    }
    for (int i = 0; i < c->scratches; i++) {
        ho_scratch_destroy(&c->scratch[i]);
    }
    free(c->lane);
    free(c->scratch);
    free(c);
}

ho_status ho_cpu_cohort_lane(ho_cohort *cohort, int slot, ho_lane **out, ho_err *err)
{
    *out = ho_cpu_cohort_of(cohort)->lane[slot];
    return *out ? HO_OK : ho_err_set(err, HO_EINVAL, "lane slot %d is free", slot);
}

ho_status ho_cpu_lane_start(ho_cohort *cohort, int slot, const ho_lane_config *config, ho_err *err)
{
    ho_cpu_cohort *c = ho_cpu_cohort_of(cohort);
    const double *sigma = NULL;
    if (c->lane[slot]) {
        return ho_err_set(err, HO_EINVAL, "lane slot %d is taken", slot);
    }
    if (config->env.state_form != c->shape.key.state_form ||
        config->env.action_set != c->shape.key.action_set) {
        return ho_err_set(err, HO_EINVAL,
                          "lane slot %d: state form or action set differs from the cohort's", slot);
    }
    ho_status rc = ho_agent_config_check(&c->shape.key, &config->agent, err);
    if (rc == HO_OK) {
        /* the table is kept in the market; only its own thread calls this */
        rc = ho_market_host_sigma(cohort->market->host, config->env.sigma_window, &sigma, err);
    }
    if (rc == HO_OK && (rc = ho_lane_create(&c->shape, config, sigma, &c->lane[slot])) != HO_OK) {
        ho_err_set(err, rc, "lane slot %d: out of memory", slot);
    }
    return rc;
}

ho_status ho_cpu_lane_stop(ho_cohort *cohort, int slot)
{
    ho_lane_destroy(&ho_cpu_cohort_of(cohort)->lane[slot]);
    return HO_OK;
}

static void advance(ho_cpu_cohort *c, int slot, ho_scratch *scratch, int threads,
                    ho_epoch_stat *stat)
{
    ho_work w = {.shape = &c->shape,
                 .market = &c->host->view,
                 .lane = c->lane[slot],
                 .scratch = scratch,
                 .threads = threads,
                 .stat = stat};
    ho_lane_epoch(&w);
}

ho_status ho_cpu_run_epoch(ho_cohort *cohort, ho_epoch_stat *stats, ho_err *err)
{
    ho_cpu_cohort *c = ho_cpu_cohort_of(cohort);
    int active = 0;
    (void)err;
    for (int i = 0; i < c->capacity; i++) {
        if (c->lane[i]) {
            stats[i].state = c->lane[i]->n.state;
            stats[i].guard = c->lane[i]->n.guard;
            stats[i].guard_update = c->lane[i]->n.guard_update;
            stats[i].epoch = c->lane[i]->n.epoch;
            stats[i].kelly_share = c->lane[i]->config.env.kelly_share;
            active += c->lane[i]->n.state == HO_LANE_ACTIVE;
        }
    }
    /* a lane a thread, or one lane after the other with its blocks shared out: the bits are the
     * same either way */
    if (active >= c->scratches && c->scratches > 1) {
#pragma omp parallel for schedule(dynamic, 1) num_threads(c->scratches)
        for (int i = 0; i < c->capacity; i++) {
            if (stats[i].state == HO_LANE_ACTIVE) {
                advance(c, i, c->scratch[omp_get_thread_num()], 1, &stats[i]);
            }
        }
    } else {
        for (int i = 0; i < c->capacity; i++) {
            if (stats[i].state == HO_LANE_ACTIVE) {
                advance(c, i, c->scratch[0], c->threads, &stats[i]);
            }
        }
    }
    return HO_OK;
}
