/* SPDX-License-Identifier: Apache-2.0
 * See search_options.h. */
#include "coordinator/search_options.h"

#include <math.h>

int64_t ho_search_parallel(const ho_study *study, int64_t trials)
{
    if (!ho_settings_is_auto(study->settings, HO_KEY_STUDY_PARALLEL)) {
        return ho_settings_i64(study->settings, HO_KEY_STUDY_PARALLEL);
    }
    /* of the file, not of --trials: what is added later must not change what was proposed */
    int64_t tenth = ho_settings_i64(study->settings, HO_KEY_STUDY_TRIALS) / 10;
    (void)trials;
    return tenth < 1 ? 1 : tenth > 16 ? 16 : tenth;
}

ho_sampler_options ho_search_sampler_options(const ho_study *study, int64_t trials)
{
    const ho_settings *s = study->settings;
    ho_sampler_options o = ho_sampler_defaults();
    o.kind = ho_settings_str(s, HO_KEY_SAMPLER_KIND);
    o.seed = (uint64_t)ho_settings_i64(s, HO_KEY_STUDY_SEED);
    o.objectives = study->objective_count;
    for (int i = 0; i < study->objective_count; i++) {
        o.direction[i] = study->objective[i].direction;
    }
    o.startup = ho_settings_is_set(s, HO_KEY_SAMPLER_STARTUP)
                    ? (int)ho_settings_i64(s, HO_KEY_SAMPLER_STARTUP)
                    : -1;
    o.candidates = ho_settings_is_set(s, HO_KEY_SAMPLER_CANDIDATES)
                       ? (int)ho_settings_i64(s, HO_KEY_SAMPLER_CANDIDATES)
                       : -1;
    o.population = ho_settings_is_auto(s, HO_KEY_SAMPLER_POPULATION)
                       ? -1
                       : (int)ho_settings_i64(s, HO_KEY_SAMPLER_POPULATION);
    o.sigma0 = ho_settings_f64(s, HO_KEY_SAMPLER_SIGMA0);
    o.crossover = ho_settings_f64(s, HO_KEY_SAMPLER_CROSSOVER);
    o.mutation = ho_settings_is_auto(s, HO_KEY_SAMPLER_MUTATION)
                     ? -1.0
                     : ho_settings_f64(s, HO_KEY_SAMPLER_MUTATION);
    o.cost = ho_settings_bool(s, HO_KEY_SAMPLER_COST);
    o.replicates = (int)ho_settings_i64(s, HO_KEY_STUDY_REPLICATES);
    o.deterministic = ho_settings_bool(s, HO_KEY_STUDY_DETERMINISTIC);
    o.parallel = (int)ho_search_parallel(study, trials);
    return o;
}

/* Rounds of a trial that is raced to its end: its epochs count over all of them. */
static int64_t race_rounds(const ho_settings *s)
{
    int64_t folds = ho_settings_i64(s, HO_KEY_STUDY_RACE_FOLDS);
    return folds > 0 ? (ho_settings_i64(s, HO_KEY_FOLDS_COUNT) + folds - 1) / folds : 1;
}

ho_pruner_options ho_search_pruner_options(const ho_study *study, int64_t trials)
{
    const ho_settings *s = study->settings;
    ho_pruner_options o = ho_pruner_defaults();
    o.kind = ho_settings_str(s, HO_KEY_PRUNER_KIND);
    o.inner = ho_settings_str(s, HO_KEY_PRUNER_INNER);
    o.seed = (uint64_t)ho_settings_i64(s, HO_KEY_STUDY_SEED);
    o.objectives = study->objective_count;
    for (int i = 0; i < study->objective_count; i++) {
        o.direction[i] = study->objective[i].direction;
    }
    o.max_epochs = ho_settings_i64(s, HO_KEY_AGENT_EPOCHS) * race_rounds(s);
    o.min_epochs = ho_settings_i64(s, HO_KEY_PRUNER_MIN_EPOCHS);
    o.reduction = (int)ho_settings_i64(s, HO_KEY_PRUNER_REDUCTION);
    o.promote = ho_settings_bool(s, HO_KEY_PRUNER_PROMOTE);
    o.percentile = ho_settings_f64(s, HO_KEY_PRUNER_PERCENTILE);
    o.startup = (int)ho_settings_i64(s, HO_KEY_PRUNER_STARTUP);
    o.interval = ho_settings_i64(s, HO_KEY_PRUNER_INTERVAL);
    o.min_trials = ho_settings_i64(s, HO_KEY_PRUNER_MIN_TRIALS);
    o.bootstrap = ho_settings_i64(s, HO_KEY_PRUNER_BOOTSTRAP);
    o.p = ho_settings_f64(s, HO_KEY_PRUNER_P_THRESHOLD);
    o.lower = ho_settings_has(s, HO_KEY_PRUNER_LOWER) ? ho_settings_f64(s, HO_KEY_PRUNER_LOWER)
                                                      : -INFINITY;
    o.upper = ho_settings_has(s, HO_KEY_PRUNER_UPPER) ? ho_settings_f64(s, HO_KEY_PRUNER_UPPER)
                                                      : INFINITY;
    o.patience = ho_settings_i64(s, HO_KEY_PRUNER_PATIENCE);
    o.min_delta = ho_settings_f64(s, HO_KEY_PRUNER_MIN_DELTA);
    o.deterministic = ho_settings_bool(s, HO_KEY_STUDY_DETERMINISTIC);
    o.parallel = (int)ho_search_parallel(study, trials);
    return o;
}
