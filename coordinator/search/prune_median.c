/* SPDX-License-Identifier: Apache-2.0
 * `median` and `percentile`: a trial stops when its best value so far is outside the best p % of
 * what the complete trials had reached by the same epoch. Like is compared with like, best so far
 * on both sides; Optuna compares best so far with the value at the step (optuna#3331). With several
 * objectives there is no best so far: the values at the step are ranked by non-domination. */
#include <math.h>
#include <stdlib.h>

#include "coordinator/search/reports.h"

static ho_status percentile_check(const ho_pruner_options *o, ho_err *err)
{
    if (!(o->percentile >= 0.0 && o->percentile <= 100.0)) {
        return ho_err_set(err, HO_ECONFIG, "pruner.percentile: 0 to 100, not %g", o->percentile);
    }
    if (o->interval < 1) {
        return ho_err_set(err, HO_ECONFIG, "pruner.interval: at least 1, not %lld",
                          (long long)o->interval);
    }
    return HO_OK;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* Quantile by linear interpolation between order statistics; infinities allowed. */
static double quantile(double *x, int64_t n, double share)
{
    double place = share * (double)(n - 1);
    int64_t low = (int64_t)floor(place);
    int64_t high = low + 1 < n ? low + 1 : low;
    double part = place - (double)low;

    qsort(x, (size_t)n, sizeof *x, by_value);
    if (part <= 0.0 || x[low] == x[high]) {
        return x[low];
    }
    return x[low] + part * (x[high] - x[low]);
}

/* Whether an earlier report already lies in the interval of the last one. */
static bool window_checked(const ho_pruner_options *o, const ho_reported *own)
{
    int64_t step = own->step[own->count - 1];
    int64_t start = o->min_epochs + (step - o->min_epochs) / o->interval * o->interval;

    return own->count > 1 && own->step[own->count - 2] >= start;
}

/* Position of the last report at or before `step`, if the trial went at least that far; or -1. */
static int64_t last_until(const ho_reported *trial, int64_t step)
{
    int64_t i = ho_reports_from(trial, step);

    if (i < 0) {
        return -1;
    }
    return trial->step[i] == step ? i : i - 1;
}

static void decide(ho_reports *r, ho_reported *own, ho_decision *out, const char *name,
                   double percentile)
{
    const ho_pruner_options *o = &r->options;
    int64_t last = own->count - 1, step = own->step[last], complete = 0, n = 0;
    double threshold;

    for (int64_t i = 0; i < r->count; i++) {
        const ho_reported *other = &r->trial[i];
        int64_t at;

        if (other->state != HO_TOLD_COMPLETE || !ho_reports_comparable(r, own, other)) {
            continue;
        }
        complete++;
        at = last_until(other, step);
        if (at < 0 || (o->objectives == 1 && isnan(other->best[at]))) {
            continue;
        }
        for (int m = 0; m < o->objectives; m++) {
            r->loss[n * o->objectives + m] =
                o->objectives == 1 ? other->best[at] : ho_reports_loss(r, other, at)[m];
        }
        n++;
    }
    out->competitors = n;
    if (step < o->min_epochs || complete < o->startup || n < 1 || n < o->min_trials) {
        ho_decision_add(out, "%s: %lld complete trials, %lld with epoch %lld; too early", name,
                        (long long)complete, (long long)n, (long long)step);
        return;
    }
    if (window_checked(o, own)) {
        ho_decision_add(out, "%s: checked once every %lld epochs", name, (long long)o->interval);
        return;
    }
    for (int m = 0; m < o->objectives; m++) {
        r->loss[n * o->objectives + m] =
            o->objectives == 1 ? own->best[last] : ho_reports_loss(r, own, last)[m];
    }
    ho_reports_score(r, n + 1);
    out->compared = true;
    out->score = r->score[n];
    threshold = quantile(r->score, n, percentile / 100.0);
    out->threshold = threshold;
    out->verdict = out->score > threshold ? HO_VERDICT_PRUNE : HO_VERDICT_CONTINUE;
    if (o->objectives == 1) { /* as the user reads values */
        out->score *= -o->direction[0];
        out->threshold *= -o->direction[0];
    }
    ho_decision_add(out, "%s: epoch %lld, %s %.6g against %.6g (best %.4g %% of %lld): %s", name,
                    (long long)step, o->objectives == 1 ? "best so far" : "rank", out->score,
                    out->threshold, percentile, (long long)n,
                    out->verdict == HO_VERDICT_PRUNE ? "pruned" : "goes on");
}

static void median_decide(ho_reports *reports, ho_reported *own, ho_decision *out)
{
    decide(reports, own, out, "median", 50.0);
}

static void percentile_decide(ho_reports *reports, ho_reported *own, ho_decision *out)
{
    decide(reports, own, out, "percentile", reports->options.percentile);
}

const ho_pruner_kind ho_prune_median = {
    .name = "median",
    .help = "stops what is behind the median of complete trials at the same epoch",
    .check = percentile_check,
    .decide = median_decide,
};

const ho_pruner_kind ho_prune_percentile = {
    .name = "percentile",
    .help = "stops what is not among the best p % of complete trials at the same epoch",
    .check = percentile_check,
    .decide = percentile_decide,
};
