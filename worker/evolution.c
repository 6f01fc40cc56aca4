/* SPDX-License-Identifier: Apache-2.0
 * See evolution.h. */
#include "worker/evolution.h"

#include <stdlib.h>
#include <string.h>

#include "study/log.h"

/* A copy that no report has told yet. */
struct origin {
    int64_t trial, parent;
    double *config; /* [P] */
};

struct ho_evolution {
    ho_population *population;
    int parameters; /* P */
    int size;
    struct origin *origin;
    int origins;
    struct origin told; /* the last one taken out; owns what the caller borrows */
};

ho_status ho_evolution_create(ho_evolution **out, const ho_study *study, ho_err *err)
{
    *out = NULL;
    const ho_settings *s = study->settings;
    ho_population_options options = {
        .size = (int)ho_settings_i64(s, HO_KEY_POPULATION_SIZE),
        .every = (int)ho_settings_i64(s, HO_KEY_POPULATION_EVERY),
        .direction = study->objective[0].direction,
        .quantile = ho_settings_f64(s, HO_KEY_POPULATION_QUANTILE),
        .perturb = ho_settings_f64(s, HO_KEY_POPULATION_PERTURB),
        .resample = ho_settings_f64(s, HO_KEY_POPULATION_RESAMPLE),
        .seed = (uint64_t)ho_settings_i64(s, HO_KEY_STUDY_SEED),
    };
    if (options.size < 2) {
        return HO_OK;
    }
    ho_evolution *evolution = calloc(1, sizeof *evolution);
    if (!evolution) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for the population");
    }
    evolution->parameters = study->space.count;
    evolution->size = options.size;
    ho_status rc = ho_population_create(&evolution->population, &options, &study->space, err);
    if (rc != HO_OK) {
        ho_evolution_destroy(&evolution);
    }
    *out = evolution;
    return rc;
}

void ho_evolution_destroy(ho_evolution **evolution)
{
    if (evolution && *evolution) {
        ho_population_destroy(&(*evolution)->population);
        for (int i = 0; i < (*evolution)->origins; i++) {
            free((*evolution)->origin[i].config);
        }
        free((*evolution)->origin);
        free((*evolution)->told.config);
        free(*evolution);
        *evolution = NULL;
    }
}

int ho_evolution_size(const ho_evolution *evolution)
{
    return evolution ? evolution->size : 0;
}

ho_status ho_evolution_join(ho_evolution *evolution, const ho_lane_context *context, int64_t trial,
                            const double *config, ho_err *err)
{
    if (!evolution) {
        return HO_OK;
    }
    bool *may_change = calloc((size_t)evolution->parameters + 1, sizeof *may_change);
    if (!may_change) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for the population");
    }
    ho_status rc = ho_lane_config_may_change(context, config, may_change, err);
    if (rc == HO_OK) {
        rc = ho_population_join(evolution->population, trial, config, may_change, err);
    }
    free(may_change);
    return rc;
}

void ho_evolution_leave(ho_evolution *evolution, int64_t trial)
{
    if (evolution) {
        ho_population_leave(evolution->population, trial);
    }
}

void ho_evolution_note(ho_evolution *evolution, const ho_trial_run *run, const ho_trial_epoch *row)
{
    if (evolution && row->scored && row->epoch < run->plan->epochs) {
        ho_population_note(evolution->population, run->plan->number, row->epoch, row->value[0]);
    }
}

static void note_origin(ho_evolution *e, int64_t trial, int64_t parent, const double *config)
{
    size_t bytes = (size_t)e->parameters * sizeof *config;
    struct origin *grown = realloc(e->origin, (size_t)(e->origins + 1) * sizeof *grown);
    double *copy = malloc(bytes + 1);
    if (grown) {
        e->origin = grown;
    }
    if (!grown || !copy) {
        free(copy);
        ho_log(HO_LOG_ERROR, "population", "out of memory, the origin of trial=%lld is not told",
               (long long)trial);
        return;
    }
    memcpy(copy, config, bytes);
    e->origin[e->origins++] = (struct origin){.trial = trial, .parent = parent, .config = copy};
}

void ho_evolution_turn(ho_evolution *evolution, ho_pool *pool, const ho_lane_context *context)
{
    int64_t trial = 0, parent = 0;
    int epoch = 0;
    const double *config = NULL;
    while (evolution &&
           ho_population_next(evolution->population, &trial, &parent, &epoch, &config)) {
        ho_err err = {0};
        ho_agent_config agent;
        ho_status rc = ho_lane_config_agent_of(context, config, &agent, &err);
        if (rc == HO_OK) {
            rc = ho_pool_copy(pool, trial, parent, &agent, config, &err);
        }
        if (rc != HO_OK) {
            ho_log(HO_LOG_WARN, "population", "trial=%lld goes on as it is: %s", (long long)trial,
                   err.text);
            continue;
        }
        ho_log(HO_LOG_INFO, "population", "copied trial=%lld parent=%lld epoch=%d",
               (long long)trial, (long long)parent, epoch);
        note_origin(evolution, trial, parent, config);
    }
}

bool ho_evolution_origin(ho_evolution *evolution, int64_t trial, int64_t *parent,
                         const double **config)
{
    *parent = -1;
    *config = NULL;
    for (int i = 0; evolution && i < evolution->origins; i++) {
        if (evolution->origin[i].trial == trial) {
            free(evolution->told.config);
            evolution->told = evolution->origin[i];
            evolution->origin[i] = evolution->origin[--evolution->origins];
            *parent = evolution->told.parent;
            *config = evolution->told.config;
            return true;
        }
    }
    return false;
}
