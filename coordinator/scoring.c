/* SPDX-License-Identifier: Apache-2.0
 * See scoring.h. */
#include "coordinator/scoring.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "market/study_data.h"
#include "study/objective.h"

/* The folds that are scored, ascending. */
typedef struct fold_list {
    int count;
    int fold[HO_FOLDS_MAX];
} fold_list;

static fold_list all_folds(const ho_setup *setup)
{
    fold_list list = {.count = setup->folds.count};
    for (int f = 0; f < list.count; f++) {
        list.fold[f] = f;
    }
    return list;
}

static bool is_raced(const ho_setup *setup)
{
    return ho_settings_i64(setup->study->settings, HO_KEY_STUDY_RACE_FOLDS) > 0;
}

static int seed_count(const ho_setup *setup)
{
    return (int)ho_settings_i64(setup->study->settings, HO_KEY_STUDY_SEEDS);
}

/* The window of (fold, seed) among those of one policy, or NULL. */
static const ho_scored_window *find(const ho_scored_window *window, int count, const char *policy,
                                    int fold, int seed)
{
    for (int i = 0; i < count; i++) {
        if (window[i].fold == fold && window[i].seed == seed &&
            strcmp(window[i].policy, policy) == 0) {
            return &window[i];
        }
    }
    return NULL;
}

static ho_window_result as_stored(const ho_scored_window *w)
{
    return (ho_window_result){
        .fold = w->fold,
        .seed = w->seed < 0 ? 0 : w->seed,
        .metrics = w->result.metrics,
        .random_percentile = w->random_percentile,
        .sessions = w->result.session_return ? w->result.sessions : 0,
        .session_return = w->result.session_return,
    };
}

/* A seed's test windows as one out-of-sample series, as far as sessions and the windows' own
 * figures say it. */
static ho_status join(const ho_setup *setup, const fold_list *folds,
                      const ho_scored_window *const *part, ho_metric_set *out, ho_err *err)
{
    static const double ns_per_year = 365.25 * 86400e9;
    const ho_bars *bars = &setup->bars;
    const ho_backtest_result *window[HO_FOLDS_MAX];
    ho_backtest_result joined;
    ho_stitch_input in = {.window = window,
                          .count = folds->count,
                          .sessions_per_year = bars->sessions_per_year,
                          .multiplier = ho_study_multiplier(setup->study->settings, bars)};
    for (int f = 0; f < in.count; f++) {
        ho_window w = setup->folds.fold[folds->fold[f]].test;
        window[f] = &part[f]->result;
        in.years +=
            (double)(bars->open_ns[w.end - 1] + bars->interval_ns - bars->open_ns[w.begin]) /
            ns_per_year;
        if (!(window[f]->initial_capital > 0.0)) {
            return ho_err_set(err, HO_EPROTO, "a window without capital");
        }
    }
    if (ho_stitch(&in, &joined, err) != HO_OK) {
        err->code = err->code == HO_ENOMEM ? HO_ENOMEM : HO_EPROTO; /* the peer's window */
        return err->code;
    }
    *out = joined.metrics;
    free(joined.session_return);
    free(joined.session_id);
    return HO_OK;
}

/* Puts a seed's windows into out [folds] and their joined series behind: out[folds]. */
static ho_status score_seed(const ho_setup *setup, const fold_list *folds,
                            const ho_scored_window *window, int count, const char *policy, int seed,
                            ho_window_result *out, ho_err *err)
{
    const ho_scored_window *part[HO_FOLDS_MAX];
    for (int f = 0; f < folds->count; f++) {
        if (!(part[f] = find(window, count, policy, folds->fold[f], seed))) {
            return ho_err_set(err, HO_EPROTO, "the result lacks fold %d of seed %d", folds->fold[f],
                              seed);
        }
        out[f] = as_stored(part[f]);
    }
    out[folds->count] =
        (ho_window_result){.fold = -1, .seed = seed < 0 ? 0 : seed, .random_percentile = NAN};
    const ho_scored_window *joined = find(window, count, policy, -1, seed);
    if (joined && (policy[0] || !is_raced(setup))) { /* the worker saw every bar and trade of it */
        out[folds->count].metrics = joined->result.metrics;
        return HO_OK;
    }
    return join(setup, folds, part, &out[folds->count].metrics, err);
}

/* ---- objective and constraints -------------------------------------------------------------- */

static void note_reason(ho_scored_trial *out, const char *metric, const ho_metric_set *metrics,
                        int id)
{
    static const char *const names[] = {
#define REASON_NAME(name_id, name) name,
        HO_METRIC_REASON_MAP(REASON_NAME)
#undef REASON_NAME
    };
    if (!out->reason[0] && metrics->reason[id] < sizeof names / sizeof names[0]) {
        (void)snprintf(out->reason, sizeof out->reason, "%s is undefined: %s", metric,
                       names[metrics->reason[id]]);
    }
}

static void score_objective(const ho_setup *setup, int folds, ho_scored_trial *out, int o)
{
    const ho_objective *objective = &setup->study->objective[o];
    ho_aggregate how =
        (ho_aggregate)ho_settings_choice(setup->study->settings, HO_KEY_STUDY_AGGREGATE);
    int seeds = seed_count(setup);
    double sum = 0.0, value[HO_FOLDS_MAX];

    for (int s = 0; s < seeds; s++) {
        const ho_window_result *window = out->window + (size_t)s * (size_t)(folds + 1);
        for (int f = 0; f <= folds; f++) {
            bool counts = (f == folds) == (how == HO_AGGREGATE_STITCHED);
            double v = window[f].metrics.value[objective->metric];
            value[f < folds ? f : 0] = f < folds || how == HO_AGGREGATE_STITCHED ? v : value[0];
            if (counts && !isfinite(v)) {
                note_reason(out, objective->name, &window[f].metrics, objective->metric);
            }
        }
        sum += how == HO_AGGREGATE_STITCHED
                   ? window[folds].metrics.value[objective->metric]
                   : ho_aggregate_folds(how, value, folds, objective->direction);
    }
    out->result.value[o] = isfinite(sum) ? sum / seeds : NAN;
    out->result.value_reason[o] = isfinite(sum) ? NULL : out->reason;
}

/* First objective by fold. */
static void score_folds(const ho_setup *setup, const fold_list *folds, ho_scored_trial *out)
{
    int metric = setup->study->objective[0].metric, seeds = seed_count(setup);
    out->folds = folds->count;
    for (int f = 0; f < HO_FOLDS_MAX; f++) {
        out->fold_value[f] = NAN;
    }
    for (int f = 0; f < folds->count; f++) {
        double sum = 0.0;
        for (int s = 0; s < seeds; s++) {
            sum += out->window[(size_t)s * (size_t)(folds->count + 1) + (size_t)f]
                       .metrics.value[metric];
        }
        out->fold_value[folds->fold[f]] = sum / seeds;
    }
}

static void score_constraints(const ho_setup *setup, int folds, ho_scored_trial *out)
{
    const ho_study *study = setup->study;
    int seeds = seed_count(setup);
    out->result.violation = study->constraint_count > 0 ? 0.0 : NAN;
    for (int c = 0; c < study->constraint_count; c++) {
        double worst = 0.0;
        for (int s = 0; s < seeds; s++) {
            const ho_metric_set *joined =
                &out->window[(size_t)s * (size_t)(folds + 1) + (size_t)folds].metrics;
            double v = ho_constraint_violation(&study->constraint[c],
                                               joined->value[study->constraint[c].metric]);
            worst = v > worst ? v : worst;
        }
        /* the store and samplers take numbers: an undefined value is further off than any other */
        out->constraint[c] = isfinite(worst) ? worst : 1e300;
        out->result.violation += out->constraint[c];
    }
    out->result.constraints = study->constraint_count;
    out->result.constraint = out->constraint;
}

/* A [command] study: the objectives are what the user's program said. */
static ho_status score_command(const ho_setup *setup, const ho_message *message,
                               ho_scored_trial *out, ho_err *err)
{
    const ho_msg_result *m = &message->result;
    int n = setup->study->objective_count;

    if (m->value_count != n || m->window_count != 0) {
        return ho_err_set(err, HO_EPROTO, "a result of %d values and %d windows, want %d values",
                          m->value_count, m->window_count, n);
    }
    out->result = (ho_trial_result){
        .number = message->trial,
        .attempt = message->attempt,
        .state = HO_TRIAL_COMPLETE,
        .objectives = n,
        .violation = NAN,
        .epochs = m->epochs,
        .train_s = m->train_s,
    };
    for (int o = 0; o < HO_STORE_OBJECTIVES_MAX; o++) {
        out->result.value[o] = o < n ? m->value[o] : NAN;
    }
    for (int o = 0; o < n; o++) {
        if (isnan(m->value[o])) {
            out->result.value_reason[o] = "undefined_by_the_command";
        }
    }
    return HO_OK;
}

/* All folds of the study; those that the result has where they are raced. */
static fold_list folds_of(const ho_setup *setup, const ho_msg_result *m)
{
    fold_list list = {0};
    if (!is_raced(setup)) {
        return all_folds(setup);
    }
    for (int f = 0; f < setup->folds.count; f++) {
        if (find(m->window, m->window_count, "", f, 0)) {
            list.fold[list.count++] = f;
        }
    }
    return list;
}

ho_status ho_score_trial(const ho_setup *setup, const ho_message *message, ho_scored_trial *out,
                         ho_err *err)
{
    const ho_msg_result *m = &message->result;
    int seeds = seed_count(setup);
    ho_status rc = HO_OK;

    memset(out, 0, sizeof *out);
    if (setup->study->command) {
        return score_command(setup, message, out, err);
    }
    fold_list list = folds_of(setup, m);
    int folds = list.count, joined = 0;
    for (int i = 0; i < m->window_count; i++) {
        joined += m->window[i].fold < 0;
    }
    if (folds == 0 || m->window_count - joined != folds * seeds ||
        (joined > 0 && joined != seeds && !is_raced(setup))) {
        return ho_err_set(err, HO_EPROTO,
                          "a result of %d windows, the study has %d folds and %d seeds",
                          m->window_count, setup->folds.count, seeds);
    }
    out->window =
        (ho_window_result *)calloc((size_t)(folds + 1) * (size_t)seeds, sizeof *out->window);
    if (!out->window) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    for (int s = 0; s < seeds && rc == HO_OK; s++) {
        rc = score_seed(setup, &list, m->window, m->window_count, "", s,
                        out->window + (size_t)s * (size_t)(folds + 1), err);
    }
    if (rc != HO_OK) {
        ho_scored_trial_free(out);
        return rc;
    }
    out->result = (ho_trial_result){
        .number = message->trial,
        .attempt = message->attempt,
        .state = HO_TRIAL_COMPLETE,
        .objectives = setup->study->objective_count,
        .epochs = m->epochs,
        .experiences = m->experiences,
        .updates = m->updates,
        .train_s = m->train_s,
        .windows = (folds + 1) * seeds,
        .window = out->window,
    };
    for (int o = 0; o < HO_STORE_OBJECTIVES_MAX; o++) {
        out->result.value[o] = NAN;
    }
    for (int o = 0; o < setup->study->objective_count; o++) {
        score_objective(setup, folds, out, o);
    }
    score_constraints(setup, folds, out);
    score_folds(setup, &list, out);
    out->result.fail_reason = out->reason[0] ? out->reason : NULL;
    return HO_OK;
}

void ho_scored_trial_free(ho_scored_trial *scored)
{
    free(scored->window);
    scored->window = NULL;
}

ho_status ho_score_baselines(const ho_setup *setup, const ho_msg_baseline *m, ho_store *store,
                             ho_err *err)
{
    fold_list list = all_folds(setup);
    int folds = list.count;
    ho_window_result *window = (ho_window_result *)calloc((size_t)folds + 1, sizeof *window);
    ho_status rc = window ? HO_OK : ho_err_set(err, HO_ENOMEM, "out of memory");

    for (int i = 0; i < m->window_count && rc == HO_OK; i++) {
        const ho_scored_window *first = &m->window[i];
        if (first->fold != 0) {
            continue; /* each series is told from its first fold */
        }
        rc = score_seed(setup, &list, m->window, m->window_count, first->policy, first->seed,
                        window, err);
        for (int f = 0; f <= folds && rc == HO_OK; f++) {
            rc = ho_store_put_baseline(store, first->policy, &window[f]);
        }
    }
    free(window);
    return rc;
}
