/* SPDX-License-Identifier: Apache-2.0
 * Successive halving, asynchronous. */
#include "coordinator/search/rungs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/search/draw.h"

enum { RUNGS_MAX = 64, BRACKETS_MAX = 64 };

int ho_rungs_brackets(int64_t min_epochs, int64_t max_epochs, int64_t eta)
{
    int count = 1;

    for (int64_t x = min_epochs; x <= max_epochs / eta && count < BRACKETS_MAX; x *= eta) {
        count++;
    }
    return count;
}

int ho_rungs_bracket(uint64_t seed, int64_t number, int brackets, int64_t eta)
{
    ho_draw draw = ho_draw_start(seed, number, HO_DRAW_BRACKET, 0);
    double share[BRACKETS_MAX], total = 0.0, u;

    for (int b = 0; b < brackets; b++) {
        share[b] = ceil(brackets * pow((double)eta, brackets - 1 - b) / (brackets - b));
        total += share[b];
    }
    u = ho_draw_unit(&draw) * total;
    for (int b = 0; b < brackets; b++) {
        if (u < share[b]) {
            return b;
        }
        u -= share[b];
    }
    return brackets - 1;
}

static bool competes(const ho_reports *r, const ho_reported *trial, const ho_rungs *rungs)
{
    return rungs->bracket < 0 || ho_rungs_bracket(r->options.seed, trial->number, rungs->brackets,
                                                  rungs->eta) == rungs->bracket;
}

/* Epochs of rung k, or -1 when there is no such rung. */
static int64_t rung_step(const ho_rungs *rungs, int k)
{
    int64_t step = rungs->first;

    for (int i = 0; i < k; i++) {
        if (step > rungs->end / rungs->eta) {
            return -1;
        }
        step *= rungs->eta;
    }
    return step < rungs->end ? step : -1;
}

/* Gathers what competes with own at a rung, own last, and scores it. Returns how many in all. */
static int64_t gather(ho_reports *r, const ho_reported *own, const ho_rungs *rungs, int64_t step,
                      int64_t own_at)
{
    size_t bytes = (size_t)r->options.objectives * sizeof(double);
    int64_t n = 0;

    for (int64_t i = 0; i < r->count; i++) {
        const ho_reported *other = &r->trial[i];
        int64_t at = ho_reports_from(other, step);

        if (at < 0 || !ho_reports_comparable(r, own, other) || !competes(r, other, rungs)) {
            continue;
        }
        memcpy(&r->loss[n++ * r->options.objectives], ho_reports_loss(r, other, at), bytes);
    }
    memcpy(&r->loss[n++ * r->options.objectives], ho_reports_loss(r, own, own_at), bytes);
    ho_reports_score(r, n);
    return n;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* The keep-th smallest of score [n]: what a trial has to reach. Uses r->loss as scratch. */
static double worst_kept(ho_reports *r, int64_t n, int64_t keep)
{
    memcpy(r->loss, r->score, (size_t)n * sizeof *r->score);
    qsort(r->loss, (size_t)n, sizeof *r->loss, by_value);
    return r->loss[keep - 1];
}

/* As the user reads it: the value, or the rank with several objectives. */
static double readable(const ho_reports *r, double score)
{
    return r->options.objectives == 1 ? -r->options.direction[0] * score : score;
}

void ho_rungs_decide(ho_reports *r, ho_reported *own, const ho_rungs *rungs, ho_decision *out)
{
    int64_t last = own->count - 1, step = own->step[last];
    int64_t before = last > 0 ? own->step[last - 1] : -1;
    int64_t at, next = -1;

    out->bracket = rungs->bracket;
    for (int k = 0; (at = rung_step(rungs, k)) >= 0; k++) {
        int64_t n, keep;
        double score, threshold;

        if (at > step) {
            next = at;
            break;
        }
        if (before >= at) {
            continue;
        } /* decided when it got there */
        n = gather(r, own, rungs, at, last);
        keep = n / rungs->eta > 1 ? n / rungs->eta : 1;
        score = r->score[n - 1];
        threshold = worst_kept(r, n, keep);
        out->rung = k;
        out->competitors = n - 1;
        out->score = readable(r, score);
        out->threshold = readable(r, threshold);
        if (n - 1 < r->options.bootstrap || score > threshold ||
            isnan(*ho_reports_loss(r, own, last))) {
            out->verdict = r->options.promote ? HO_VERDICT_PAUSE : HO_VERDICT_PRUNE;
        }
        ho_decision_add(out, "%s%s: ", out->compared ? "; " : "", rungs->name);
        out->compared = true;
        if (rungs->bracket >= 0) {
            ho_decision_add(out, "bracket %d of %d, ", rungs->bracket, rungs->brackets);
        }
        ho_decision_add(
            out, "rung %d (epoch %lld), %s %.6g, needs %.6g to be in the best %lld of %lld: %s", k,
            (long long)at, r->options.objectives == 1 ? "value" : "rank", out->score,
            out->threshold, (long long)keep, (long long)n,
            out->verdict == HO_VERDICT_PRUNE   ? "pruned"
            : out->verdict == HO_VERDICT_PAUSE ? "paused"
                                               : "goes on");
        if (out->verdict != HO_VERDICT_CONTINUE) {
            return;
        }
    }
    if (!out->compared && next >= 0) {
        ho_decision_add(out, "%s: the next rung is at epoch %lld", rungs->name, (long long)next);
    } else if (!out->compared) {
        ho_decision_add(out, "%s: no rung ahead, runs to its end", rungs->name);
    }
}

/* The highest rung a trial has reached, or -1. */
static int highest_rung(const ho_reported *trial, const ho_rungs *rungs)
{
    int64_t step = trial->count > 0 ? trial->step[trial->count - 1] : -1, at;
    int k = 0;

    while ((at = rung_step(rungs, k)) >= 0 && at <= step) {
        k++;
    }
    return k - 1;
}

ho_status ho_rungs_promote(ho_reports *r, const ho_rungs *rungs, int64_t *number, ho_decision *out,
                           ho_err *err)
{
    for (int k = RUNGS_MAX - 1; k >= 0; k--) {
        int64_t step = rung_step(rungs, k), n = 0, keep;
        ho_reported *best = NULL;
        double best_score = INFINITY, threshold;

        if (step < 0) {
            continue;
        }
        for (int64_t i = 0; i < r->count; i++) {
            const ho_reported *trial = &r->trial[i];
            int64_t at = ho_reports_from(trial, step);

            if (at < 0 || trial->state == HO_TOLD_FAILED || trial->state == HO_TOLD_CANCELLED) {
                continue;
            }
            memcpy(&r->loss[n++ * r->options.objectives], ho_reports_loss(r, trial, at),
                   (size_t)r->options.objectives * sizeof(double));
        }
        keep = n / rungs->eta;
        if (keep < 1) {
            continue;
        }
        ho_reports_score(r, n);
        threshold = worst_kept(r, n, keep);
        n = 0;
        for (int64_t i = 0; i < r->count; i++) { /* the same trials in the same order */
            ho_reported *trial = &r->trial[i];

            if (ho_reports_from(trial, step) < 0 || trial->state == HO_TOLD_FAILED ||
                trial->state == HO_TOLD_CANCELLED) {
                continue;
            }
            if (trial->paused && highest_rung(trial, rungs) == k && r->score[n] <= threshold &&
                r->score[n] < best_score) {
                best = trial;
                best_score = r->score[n];
            }
            n++;
        }
        if (!best) {
            continue;
        }
        best->paused = false;
        *number = best->number;
        out->compared = true;
        out->rung = k;
        out->competitors = n - 1;
        out->score = readable(r, best_score);
        out->threshold = readable(r, threshold);
        ho_decision_add(out, "%s: promoted from rung %d, in the best %lld of %lld", rungs->name, k,
                        (long long)keep, (long long)n);
        return HO_OK;
    }
    return ho_err_set(err, HO_EDONE, "%s: nothing to promote", rungs->name);
}
