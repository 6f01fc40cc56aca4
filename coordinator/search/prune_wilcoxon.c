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

/* Mean of the first loss, over the reports; INFINITY with an undefined one. */
static double mean_loss(const ho_reports *r, const ho_reported *trial)
{
    double sum = 0.0;

    for (int64_t i = 0; i < trial->count; i++) {
        sum += *ho_reports_loss(r, trial, i);
    }
    return isfinite(sum) && trial->count > 0 ? sum / (double)trial->count : INFINITY;
}

static const ho_reported *best_complete(const ho_reports *r, const ho_reported *own)
{
    const ho_reported *best = NULL;
    double least = INFINITY;

    for (int64_t i = 0; i < r->count; i++) {
        const ho_reported *other = &r->trial[i];

        if (other->state != HO_TOLD_COMPLETE || !ho_reports_comparable(r, own, other)) {
            continue;
        }
        if (mean_loss(r, other) < least) {
            least = mean_loss(r, other);
            best = other;
        }
    }
    return best;
}

/* Own minus best on one fold: positive is worse. */
static double fold_difference(const ho_reports *r, const double *own, const double *best)
{
    int objectives = r->options.objectives;

    if (objectives == 1) {
        return *own - *best;
    }
    return ho_pareto_dominates(best, own, objectives) - ho_pareto_dominates(own, best, objectives);
}

static void wilcoxon_decide(ho_reports *r, ho_reported *own, ho_decision *out)
{
    const ho_reported *best = best_complete(r, own);
    double *difference, sum = 0.0, p;
    int64_t n = 0;

    if (!best) {
        ho_decision_add(out, "wilcoxon: no complete trial to compare with");
        return;
    }
    if (!(difference = malloc((size_t)own->count * sizeof *difference))) {
        ho_decision_add(out, "wilcoxon: out of memory, goes on");
        return;
    }
    for (int64_t i = 0; i < own->count; i++) {
        for (int64_t j = 0; j < best->count; j++) {
            if (best->step[j] == own->step[i]) {
                difference[n] =
                    fold_difference(r, ho_reports_loss(r, own, i), ho_reports_loss(r, best, j));
                sum += difference[n++];
            }
        }
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
    .help = "races folds against the best trial by the signed-rank test",
    .check = wilcoxon_check,
    .decide = wilcoxon_decide,
};
