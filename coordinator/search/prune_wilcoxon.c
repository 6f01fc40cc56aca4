/* SPDX-License-Identifier: Apache-2.0
 * `wilcoxon`: a trial stops when, over the folds it shares with the best complete trial, it is
 * worse by the signed-rank test at level p and worse on average. Steps are folds, not time. Noise
 * of a fold falls out of the comparison, since both trials have met it. With several objectives a
 * fold's difference is the sign of domination. */
#include <math.h>
#include <stdlib.h>

#include "coordinator/search/pareto.h"
#include "coordinator/search/reports.h"
#include "coordinator/search/signed_rank.h"

static ho_status wilcoxon_check(const ho_pruner_options *o, ho_err *err)
{
    if (!(o->p > 0.0 && o->p < 1.0)) {
        return ho_err_set(err, HO_ECONFIG, "pruner.p_threshold: between 0 and 1, not %g", o->p);
    }
    return HO_OK;
}

/* The first loss: the last report's when reports carry folds, else the mean over steps. INFINITY
 * when it is undefined. */
static double overall_loss(const ho_reports *r, const ho_reported *trial, bool by_fold)
{
    double sum = 0.0;

    if (trial->count == 0) {
        return INFINITY;
    }
    for (int64_t i = 0; i < trial->count; i++) {
        sum += *ho_reports_loss(r, trial, i);
    }
    sum = by_fold ? *ho_reports_loss(r, trial, trial->count - 1) : sum / (double)trial->count;
    return isfinite(sum) ? sum : INFINITY;
}

static const ho_reported *best_complete(const ho_reports *r, const ho_reported *own, bool by_fold)
{
    const ho_reported *best = NULL;
    double least = INFINITY;

    for (int64_t i = 0; i < r->count; i++) {
        const ho_reported *other = &r->trial[i];

        if (other->state != HO_TOLD_COMPLETE || !ho_reports_comparable(r, own, other)) {
            continue;
        }
        if (overall_loss(r, other, by_fold) < least) {
            least = overall_loss(r, other, by_fold);
            best = other;
        }
    }
    return best;
}

/* Own minus best at one step that is a fold: positive is worse. */
static double step_difference(const ho_reports *r, const double *own, const double *best)
{
    int objectives = r->options.objectives;

    if (objectives == 1) {
        return *own - *best;
    }
    return ho_pareto_dominates(best, own, objectives) - ho_pareto_dominates(own, best, objectives);
}

/* Differences of the last reports by fold into difference; how many folds both have. */
static int64_t by_folds(const ho_reported *own, const ho_reported *best, double *difference)
{
    int64_t last = own->count - 1, at = ho_reports_at(best, own->step[last]), n = 0;
    int own_folds, best_folds;
    const double *a = ho_reports_fold(own, last, &own_folds), *b;

    if (at < 0) {
        return 0;
    }
    b = ho_reports_fold(best, at, &best_folds);
    for (int f = 0; f < own_folds && f < best_folds; f++) {
        if (!isnan(a[f]) && !isnan(b[f])) {
            difference[n++] = a[f] - b[f];
        }
    }
    return n;
}

static int64_t by_steps(const ho_reports *r, const ho_reported *own, const ho_reported *best,
                        double *difference)
{
    int64_t n = 0;

    for (int64_t i = 0; i < own->count; i++) {
        for (int64_t j = 0; j < best->count; j++) {
            if (best->step[j] == own->step[i]) {
                difference[n++] =
                    step_difference(r, ho_reports_loss(r, own, i), ho_reports_loss(r, best, j));
            }
        }
    }
    return n;
}

static void wilcoxon_decide(ho_reports *r, ho_reported *own, ho_decision *out)
{
    const ho_reported *best;
    double *difference, sum = 0.0, p;
    int64_t room, n;
    bool by_fold;
    int folds;

    (void)ho_reports_fold(own, own->count - 1, &folds);
    by_fold = folds > 1;
    room = by_fold ? folds : own->count;
    best = best_complete(r, own, by_fold);

    if (by_fold && own->step[own->count - 1] < r->options.min_epochs) {
        ho_decision_add(out, "wilcoxon: speaks from epoch %lld on",
                        (long long)r->options.min_epochs);
        return;
    }
    if (!best) {
        ho_decision_add(out, "wilcoxon: no complete trial to compare with");
        return;
    }
    if (!(difference = malloc((size_t)room * sizeof *difference))) {
        ho_decision_add(out, "wilcoxon: out of memory, goes on");
        return;
    }
    n = by_fold ? by_folds(own, best, difference) : by_steps(r, own, best, difference);
    for (int64_t i = 0; i < n; i++) {
        sum += difference[i];
    }
    p = isfinite(sum) ? ho_signed_rank_p(difference, n) : NAN;
    free(difference);
    out->compared = n > 0;
    out->competitors = n;
    out->score = p;
    out->threshold = r->options.p;
    if (p < r->options.p && sum > 0.0) {
        out->verdict = HO_VERDICT_PRUNE;
    }
    ho_decision_add(out,
                    "wilcoxon: against trial %lld on %lld common folds, %s by %.6g on average, p = "
                    "%.4g (limit %.4g): %s",
                    (long long)best->number, (long long)n, sum > 0.0 ? "worse" : "not worse",
                    n > 0 ? fabs(sum) / (double)n : 0.0, p, r->options.p,
                    out->verdict == HO_VERDICT_PRUNE ? "pruned" : "goes on");
}

const ho_pruner_kind ho_prune_wilcoxon = {
    .name = "wilcoxon",
    .help = "compares folds with the best trial's by the signed-rank test",
    .check = wilcoxon_check,
    .decide = wilcoxon_decide,
    .steps_are_folds = true,
};
