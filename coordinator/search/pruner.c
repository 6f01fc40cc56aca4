/* SPDX-License-Identifier: Apache-2.0
 * The frame round every kind of pruner: the table of kinds, the reports, promotion. */
#include "coordinator/search/pruner.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/search/pareto.h"
#include "coordinator/search/reports.h"

static const ho_pruner_kind *const KINDS[] = {
    &ho_prune_none,      &ho_prune_median,   &ho_prune_percentile, &ho_prune_asha,
    &ho_prune_hyperband, &ho_prune_wilcoxon, &ho_prune_threshold,  &ho_prune_patient,
};
enum { KIND_COUNT = sizeof KINDS / sizeof KINDS[0] };
static const int64_t NUMBER_LIMIT = 1000000000;

struct ho_pruner {
    ho_reports reports;
    const ho_pruner_kind *kind;
};

ho_pruner_options ho_pruner_defaults(void)
{
    ho_pruner_options options = {.kind = "none",
                                 .inner = "median",
                                 .objectives = 1,
                                 .direction = {1, 1, 1, 1, 1, 1, 1, 1},
                                 .max_epochs = 1,
                                 .min_epochs = 1,
                                 .reduction = 3,
                                 .percentile = 50.0,
                                 .startup = 5,
                                 .interval = 1,
                                 .min_trials = 1,
                                 .p = 0.1,
                                 .lower = -INFINITY,
                                 .upper = INFINITY,
                                 .patience = 5,
                                 .parallel = 1};
    return options;
}

int ho_pruner_kind_count(void)
{
    return KIND_COUNT;
}

const char *ho_pruner_kind_name(int i)
{
    return KINDS[i]->name;
}

const char *ho_pruner_kind_help(int i)
{
    return KINDS[i]->help;
}

const ho_pruner_kind *ho_pruner_find(const char *name)
{
    for (int i = 0; i < KIND_COUNT; i++) {
        if (name && strcmp(name, KINDS[i]->name) == 0) {
            return KINDS[i];
        }
    }
    return NULL;
}

static ho_status unknown_kind(const char *key, const char *name, ho_err *err)
{
    char names[256] = "";
    size_t used = 0;

    for (int i = 0; i < KIND_COUNT && used < sizeof names; i++) {
        int n = snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", KINDS[i]->name);

        used += n > 0 ? (size_t)n : 0;
    }
    return ho_err_set(err, HO_ECONFIG, "%s: there is no \"%s\"; there are %s", key,
                      name ? name : "", names);
}

static ho_status check_options(const ho_pruner_options *options, ho_err *err)
{
    if (options->objectives < 1 || options->objectives > HO_OBJECTIVES_MAX) {
        return ho_err_set(err, HO_ECONFIG, "study.objective: 1 to %d objectives, not %d",
                          HO_OBJECTIVES_MAX, options->objectives);
    }
    for (int m = 0; m < options->objectives; m++) {
        if (options->direction[m] != 1 && options->direction[m] != -1) {
            return ho_err_set(err, HO_ECONFIG, "study.objective: objective %d has no direction", m);
        }
    }
    if (options->min_epochs < 1) {
        return ho_err_set(err, HO_ECONFIG, "pruner.min_epochs: at least 1, not %lld",
                          (long long)options->min_epochs);
    }
    if (options->deterministic && options->parallel < 1) {
        return ho_err_set(err, HO_ECONFIG, "study.parallel: at least 1, not %d", options->parallel);
    }
    return HO_OK;
}

ho_status ho_pruner_create(ho_pruner **out, const ho_pruner_options *options, ho_err *err)
{
    ho_status rc;
    ho_pruner *p = NULL;
    const ho_pruner_kind *kind = ho_pruner_find(options->kind);

    *out = NULL;
    if (!kind) {
        return unknown_kind("pruner.kind", options->kind, err);
    }
    if ((rc = check_options(options, err)) != HO_OK) {
        return rc;
    }
    if (kind->check && (rc = kind->check(options, err)) != HO_OK) {
        return rc;
    }
    if (!(p = calloc(1, sizeof *p))) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for the pruner");
    }
    p->kind = kind;
    p->reports.options = *options;
    *out = p;
    return HO_OK;
}

void ho_pruner_destroy(ho_pruner **pruner)
{
    ho_pruner *p = *pruner;

    if (!p) {
        return;
    }
    for (int64_t i = 0; i < p->reports.count; i++) {
        free(p->reports.trial[i].step);
        free(p->reports.trial[i].loss);
        free(p->reports.trial[i].best);
        free(p->reports.trial[i].fold);
        free(p->reports.trial[i].fold_end);
    }
    free(p->reports.trial);
    free(p->reports.index);
    free(p->reports.score);
    free(p->reports.loss);
    free(p);
    *pruner = NULL;
}

bool ho_reports_comparable(const ho_reports *reports, const ho_reported *own,
                           const ho_reported *other)
{
    if (other->number == own->number || other->state == HO_TOLD_FAILED ||
        other->state == HO_TOLD_CANCELLED) {
        return false;
    }
    return !reports->options.deterministic ||
           other->number < own->number - reports->options.parallel;
}

int64_t ho_reports_from(const ho_reported *trial, int64_t step)
{
    int64_t low = 0, high = trial->count;

    while (low < high) {
        int64_t middle = (low + high) / 2;

        if (trial->step[middle] < step) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < trial->count ? low : -1;
}

int64_t ho_reports_at(const ho_reported *trial, int64_t step)
{
    int64_t i = ho_reports_from(trial, step);

    return i >= 0 && trial->step[i] == step ? i : -1;
}

const double *ho_reports_loss(const ho_reports *reports, const ho_reported *trial, int64_t i)
{
    return &trial->loss[i * reports->options.objectives];
}

const double *ho_reports_fold(const ho_reported *trial, int64_t i, int *folds)
{
    int64_t begin = i > 0 ? trial->fold_end[i - 1] : 0;

    *folds = (int)(trial->fold_end[i] - begin);
    return trial->fold + begin;
}

void ho_reports_score(ho_reports *reports, int64_t n)
{
    int objectives = reports->options.objectives;
    int *rank = objectives > 1 ? malloc((size_t)(n > 0 ? n : 1) * sizeof *rank) : NULL;

    if (rank && ho_pareto_rank(reports->loss, n, objectives, rank) == HO_OK) {
        for (int64_t i = 0; i < n; i++) {
            reports->score[i] = rank[i];
        }
    } else {
        for (int64_t i = 0; i < n; i++) {
            reports->score[i] = reports->loss[i * objectives];
        }
    }
    for (int64_t i = 0; i < n; i++) {
        bool broken = false;

        for (int m = 0; m < objectives; m++) {
            broken = broken || isnan(reports->loss[i * objectives + m]);
        }
        if (broken) {
            reports->score[i] = INFINITY;
        }
    }
    free(rank);
}

void ho_decision_add(ho_decision *out, const char *format, ...)
{
    size_t used = strlen(out->why);
    va_list args;

    if (used >= sizeof out->why - 1) {
        return;
    }
    va_start(args, format);
    vsnprintf(out->why + used, sizeof out->why - used, format, args);
    va_end(args);
}

static void clear_decision(ho_decision *out)
{
    memset(out, 0, sizeof *out);
    out->verdict = HO_VERDICT_CONTINUE;
    out->rung = out->bracket = -1;
    out->score = out->threshold = NAN;
}

static ho_status no_memory(ho_err *err)
{
    return ho_err_set(err, HO_ENOMEM, "out of memory for the pruner's reports");
}

static ho_status index_grow(ho_reports *r, int64_t number, ho_err *err)
{
    int64_t room = r->index_room ? r->index_room : 64, *index;

    if (number < 0 || number > NUMBER_LIMIT) {
        return ho_err_set(err, HO_EINVAL, "trial number %lld is out of range", (long long)number);
    }
    if (number < r->index_room) {
        return HO_OK;
    }
    while (room <= number) {
        room *= 2;
    }
    if (!(index = realloc(r->index, (size_t)room * sizeof *index))) {
        return no_memory(err);
    }
    for (int64_t i = r->index_room; i < room; i++) {
        index[i] = -1;
    }
    r->index = index;
    r->index_room = room;
    return HO_OK;
}

static ho_status trials_grow(ho_reports *r, ho_err *err)
{
    int64_t room = r->room ? 2 * r->room : 64;
    ho_reported *trial;
    double *score, *loss;

    if (!(trial = realloc(r->trial, (size_t)room * sizeof *trial))) {
        return no_memory(err);
    }
    r->trial = trial;
    if (!(score = realloc(r->score, (size_t)(room + 1) * sizeof *score))) {
        return no_memory(err);
    }
    r->score = score;
    if (!(loss = realloc(r->loss, (size_t)((room + 1) * r->options.objectives) * sizeof *loss))) {
        return no_memory(err);
    }
    r->loss = loss;
    r->room = room;
    return HO_OK;
}

static ho_status find_or_add(ho_reports *r, int64_t number, ho_reported **out, ho_err *err)
{
    ho_status rc;

    if ((rc = index_grow(r, number, err)) != HO_OK) {
        return rc;
    }
    if (r->index[number] < 0) {
        if (r->count == r->room && (rc = trials_grow(r, err)) != HO_OK) {
            return rc;
        }
        memset(&r->trial[r->count], 0, sizeof *r->trial);
        r->trial[r->count].number = number;
        r->index[number] = r->count++;
    }
    *out = &r->trial[r->index[number]];
    return HO_OK;
}

static ho_status append_folds(const ho_reports *r, ho_reported *trial, const double *value,
                              int folds, ho_err *err)
{
    int64_t begin = trial->count > 0 ? trial->fold_end[trial->count - 1] : 0;

    if (begin + folds > trial->fold_room) {
        int64_t room = 2 * trial->fold_room + folds;
        double *fold = realloc(trial->fold, (size_t)room * sizeof *fold);

        if (!fold) {
            return no_memory(err);
        }
        trial->fold = fold;
        trial->fold_room = room;
    }
    for (int f = 0; f < folds; f++) {
        trial->fold[begin + f] = -r->options.direction[0] * value[f];
    }
    trial->fold_end[trial->count] = begin + folds;
    return HO_OK;
}

static ho_status append_report(const ho_reports *r, ho_reported *trial, int64_t step,
                               const double *value, const double *fold_value, int folds,
                               ho_err *err)
{
    ho_status rc;
    int objectives = r->options.objectives;
    double *loss;

    if (trial->count == trial->room) {
        int64_t room = trial->room ? 2 * trial->room : 8, *steps, *ends;
        double *best;

        if (!(steps = realloc(trial->step, (size_t)room * sizeof *steps))) {
            return no_memory(err);
        }
        trial->step = steps;
        if (!(loss = realloc(trial->loss, (size_t)(room * objectives) * sizeof *loss))) {
            return no_memory(err);
        }
        trial->loss = loss;
        if (!(best = realloc(trial->best, (size_t)room * sizeof *best))) {
            return no_memory(err);
        }
        trial->best = best;
        if (!(ends = realloc(trial->fold_end, (size_t)room * sizeof *ends))) {
            return no_memory(err);
        }
        trial->fold_end = ends;
        trial->room = room;
    }
    rc = append_folds(r, trial, fold_value, fold_value && folds > 1 ? folds : 0, err);
    if (rc != HO_OK) {
        return rc;
    }
    loss = &trial->loss[trial->count * objectives];
    for (int m = 0; m < objectives; m++) {
        loss[m] = -r->options.direction[m] * value[m];
    }
    trial->step[trial->count] = step;
    trial->best[trial->count] =
        trial->count > 0 ? fmin(trial->best[trial->count - 1], loss[0]) : loss[0];
    trial->count++;
    return HO_OK;
}

ho_status ho_pruner_report(ho_pruner *pruner, int64_t number, int64_t step, const double *value,
                           ho_decision *out, ho_err *err)
{
    return ho_pruner_report_folds(pruner, number, step, value, NULL, 0, out, err);
}

ho_status ho_pruner_report_folds(ho_pruner *pruner, int64_t number, int64_t step,
                                 const double *value, const double *fold_value, int folds,
                                 ho_decision *out, ho_err *err)
{
    ho_reports *r = &pruner->reports;
    ho_reported *own;
    ho_status rc;

    clear_decision(out);
    if (step < 0) {
        return ho_err_set(err, HO_EINVAL, "trial %lld: step %lld is negative", (long long)number,
                          (long long)step);
    }
    if ((rc = find_or_add(r, number, &own, err)) != HO_OK) {
        return rc;
    }
    if (own->count > 0 && own->step[own->count - 1] >= step) {
        ho_decision_add(out, "%s: step %lld or a later one was reported before", pruner->kind->name,
                        (long long)step);
        return HO_OK;
    }
    if ((rc = append_report(r, own, step, value, fold_value, folds, err)) != HO_OK) {
        return rc;
    }
    own->paused = false;
    pruner->kind->decide(r, own, out);
    own->paused = out->verdict == HO_VERDICT_PAUSE;
    return HO_OK;
}

void ho_pruner_value(const ho_pruner *pruner, int64_t number, double *value)
{
    const ho_reports *r = &pruner->reports;
    int folds;

    if (number < 0 || number >= r->index_room || r->index[number] < 0) {
        return;
    }
    const ho_reported *own = &r->trial[r->index[number]];
    (void)ho_reports_fold(own, own->count - 1, &folds);
    int64_t first = pruner->kind->steps_are_folds && folds <= 1 ? 0 : own->count - 1;
    for (int m = 0; m < r->options.objectives; m++) {
        double sum = 0.0;

        for (int64_t i = first; i < own->count; i++) {
            sum += ho_reports_loss(r, own, i)[m];
        }
        value[m] = -r->options.direction[m] * sum / (double)(own->count - first);
    }
}

ho_status ho_pruner_finish(ho_pruner *pruner, int64_t number, ho_told_state state, ho_err *err)
{
    ho_reports *r = &pruner->reports;

    if (state == HO_TOLD_PENDING || number < 0 || number >= r->index_room || r->index[number] < 0) {
        return ho_err_set(err, HO_EINVAL, "trial %lld has no reports to finish", (long long)number);
    }
    r->trial[r->index[number]].state = state;
    r->trial[r->index[number]].paused = false;
    return HO_OK;
}

ho_status ho_pruner_unpause(ho_pruner *pruner, int64_t number, ho_err *err)
{
    ho_reports *r = &pruner->reports;

    if (number < 0 || number >= r->index_room || r->index[number] < 0) {
        return ho_err_set(err, HO_EINVAL, "trial %lld has no reports", (long long)number);
    }
    r->trial[r->index[number]].paused = false;
    return HO_OK;
}

ho_status ho_pruner_promote(ho_pruner *pruner, int64_t *number, ho_decision *out, ho_err *err)
{
    clear_decision(out);
    if (!pruner->kind->promote) {
        return ho_err_set(err, HO_EDONE, "%s promotes nothing", pruner->kind->name);
    }
    return pruner->kind->promote(&pruner->reports, number, out, err);
}
