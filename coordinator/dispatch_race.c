/* SPDX-License-Identifier: Apache-2.0
 * Racing over folds (study.race_folds): a trial runs some folds at a time, in one shuffled order
 * for the whole study, and after each round the signed-rank test against the best complete trial,
 * on the folds both have, says whether it runs further ones. Each round is a lease of its own, so
 * that fencing, loss and resuming are those of any lease. What is decided depends on the order of
 * results alone (with `deterministic` on numbers), as for the pruners. Contracts: dispatch.h. */
#include "coordinator/dispatch_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/search/racing.h"

bool ho_dispatch_races(ho_dispatch *d, int64_t number)
{
    const ho_slot *slot = ho_dispatch_slot(d, number);
    return d->race_order && slot && slot->ask >= 0; /* a retest runs all folds */
}

static int by_number(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return x < y ? -1 : x > y;
}

/* How many folds the trial has run after its next round. */
static int next_end(const ho_dispatch *d, const ho_slot *slot)
{
    int end = slot->raced + d->config.race_folds;
    return end < d->config.folds ? end : d->config.folds;
}

int ho_dispatch_next_folds(const ho_dispatch *d, const ho_slot *slot, int *fold)
{
    if (!d->race_order || slot->ask < 0) {
        return 0;
    }
    int n = next_end(d, slot) - slot->raced;
    memcpy(fold, d->race_order + slot->raced, (size_t)n * sizeof *fold);
    qsort(fold, (size_t)n, sizeof *fold, by_number);
    return n;
}

/* Whether slot beats the best so far: feasible first, then the first objective; the older wins. */
static bool beats(const ho_dispatch *d, const ho_slot *slot, const ho_slot *best)
{
    return !best || (slot->value[0] - best->value[0]) * d->config.direction[0] > 0.0;
}

/* The best complete and feasible trial that `number` may be compared with; -1: none yet. */
static int64_t rival_of(const ho_dispatch *d, int64_t number)
{
    int64_t end = d->config.deterministic ? number - d->config.parallel : d->proposed, best = -1;

    for (int64_t i = 0; i < end; i++) {
        const ho_slot *slot = &d->slot[i];
        if (i != number && slot->state == HO_TRIAL_COMPLETE && slot->fold_value && slot->fits &&
            !(slot->violation > 0.0) && !isnan(slot->value[0]) &&
            beats(d, slot, best >= 0 ? &d->slot[best] : NULL)) {
            best = i;
        }
    }
    return best;
}

/* Decides on the folds run so far; fills the row's comparison and verdict. why [room]. */
static void decide(const ho_dispatch *d, int64_t number, ho_race_row *row, char *why, size_t room)
{
    const ho_slot *slot = &d->slot[number];
    int folds = d->config.folds;

    row->why = why;
    row->against = -1;
    if (slot->raced == folds) {
        row->verdict = "end";
        (void)snprintf(why, room, "race: all %d folds are run", folds);
        return;
    }
    row->verdict = "next";
    row->against = rival_of(d, number);
    if (row->against < 0) {
        (void)snprintf(why, room,
                       "race: %d of %d folds, no complete trial to compare with: goes on",
                       slot->raced, folds);
        return;
    }
    ho_race_verdict v = ho_race_decide(slot->fold_value, d->slot[row->against].fold_value, folds,
                                       d->config.direction[0], d->config.race_p);
    row->common = v.common;
    row->p = v.p;
    row->threshold = d->config.race_p;
    row->mean_gap = v.mean_gap;
    row->verdict = v.drop ? "drop" : "next";
    if (isnan(v.p)) {
        (void)snprintf(why, room,
                       "race: %d of %d folds, nothing defined to compare with trial %lld: goes on",
                       slot->raced, folds, (long long)row->against);
        return;
    }
    (void)snprintf(why, room,
                   "race: %d of %d folds, against trial %lld on %d common folds %s by %.6g on "
                   "average, p = %.4g (limit %.4g): %s",
                   slot->raced, folds, (long long)row->against, v.common,
                   v.mean_gap * d->config.direction[0] < 0.0 ? "worse" : "not worse",
                   fabs(v.mean_gap), v.p, d->config.race_p, v.drop ? "dropped" : "goes on");
}

/* The joined series stands for all folds: that of some is not kept. Leaves the windows of folds in
 * kept [windows] and makes them the result's. */
static void leave_out_joined(ho_trial_result *result, ho_window_result *kept)
{
    int n = 0;
    for (int i = 0; i < result->windows; i++) {
        if (result->window[i].fold >= 0) {
            kept[n++] = result->window[i];
        }
    }
    result->window = kept;
    result->windows = n;
}

/* The trial waits for a worker that runs its next folds. */
static ho_status go_on(ho_dispatch *d, int64_t worker, const ho_trial_result *result,
                       const char *why)
{
    ho_slot *slot = &d->slot[result->number];
    ho_seat *seat = ho_dispatch_seat(d, worker);
    ho_status rc = HO_OK;

    if (seat) {
        seat->finished++;
    }
    ho_dispatch_release(d, slot);
    slot->state = HO_TRIAL_WAITING;
    slot->not_before_ns = 0;
    d->waiting++;
    if (d->io.round_over) {
        d->io.round_over(d->io.user, result->number);
    }
    if ((rc = ho_store_put_windows(d->store, result->number, result->window, result->windows)) !=
            HO_OK ||
        (rc = ho_store_put_requeue(d->store, result->number, HO_TRIAL_WAITING, NULL, why)) !=
            HO_OK) {
        return rc;
    }
    return ho_dispatch_send_later(d, HO_OUT_ACK, worker, result->number, result->attempt);
}

ho_status ho_dispatch_round(ho_dispatch *d, int64_t worker, const ho_round_in *in, bool *goes_on,
                            int64_t now_ns, ho_err *err)
{
    ho_trial_result *result = in->result;
    size_t bytes = (size_t)d->config.folds * sizeof(double);
    char why[HO_WHY_MAX];
    ho_status rc = HO_OK;

    *goes_on = false;
    ho_dispatch_heard(d, worker, now_ns);
    ho_standing standing = ho_dispatch_standing(d, worker, result->number, result->attempt);
    if (standing != HO_STANDING_HOLDER) {
        return ho_dispatch_answer_stale(d, standing, worker, result->number, result->attempt, err);
    }
    ho_slot *slot = &d->slot[result->number];
    if (in->folds != next_end(d, slot)) {
        return ho_err_set(err, HO_EINVAL, "trial %lld: a round of other folds than were leased",
                          (long long)result->number);
    }
    if (!slot->fold_value && !(slot->fold_value = (double *)malloc(bytes))) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    memcpy(slot->fold_value, in->fold_value, bytes);
    slot->raced = in->folds;
    slot->race_attempt = result->attempt;
    slot->race_epochs = result->epochs;
    ho_race_row row = {.number = result->number,
                       .round = slot->rounds++,
                       .attempt = result->attempt,
                       .now_ns = d->io.unix_ns(d->io.user),
                       .folds = slot->raced,
                       .epochs = result->epochs};
    decide(d, result->number, &row, why, sizeof why);
    *goes_on = strcmp(row.verdict, "next") == 0;
    row.result = *goes_on ? in->message : NULL;
    row.result_size = *goes_on ? in->message_size : 0;
    if ((rc = ho_store_put_race(d->store, &row)) != HO_OK) {
        return ho_err_set(err, rc, "out of memory");
    }
    if (strcmp(row.verdict, "end") == 0) {
        return ho_dispatch_take_result(d, worker, result, now_ns, err);
    }
    ho_window_result *kept =
        (ho_window_result *)malloc(((size_t)result->windows + 1) * sizeof *kept);
    if (!kept) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    leave_out_joined(result, kept);
    if (*goes_on) {
        rc = go_on(d, worker, result, why);
    } else {
        result->state = HO_TRIAL_PRUNED;
        result->fail_reason = why;
        rc = ho_dispatch_take_result(d, worker, result, now_ns, err);
    }
    result->window = NULL; /* nobody reads them from here on */
    result->windows = 0;
    free(kept);
    return rc;
}

/* ---- resuming ------------------------------------------------------------------------------- */

static ho_status load_round(const ho_race_row *row, void *user)
{
    ho_slot *slot = ho_dispatch_slot((ho_dispatch *)user, row->number);

    if (slot) {
        slot->raced = (int)row->folds;
        slot->rounds = row->round + 1;
        slot->race_attempt = row->attempt;
        slot->race_epochs = row->epochs;
    }
    return HO_OK;
}

ho_status ho_dispatch_resume_race(ho_dispatch *d, ho_err *err)
{
    int folds = d->config.folds;
    ho_status rc = ho_store_each_round(d->store, load_round, d, err);

    for (int64_t i = 0; rc == HO_OK && d->race_order && i < d->proposed; i++) {
        ho_slot *slot = &d->slot[i];
        if (slot->raced == 0 || slot->state == HO_TRIAL_PRUNED || slot->state == HO_TRIAL_FAILED) {
            continue;
        }
        if (slot->raced > folds) {
            return ho_err_set(err, HO_ESTORE, "%s: trial %lld has run %d of %d folds",
                              ho_store_path(d->store), (long long)i, slot->raced, folds);
        }
        if (!(slot->fold_value = (double *)malloc((size_t)folds * sizeof(double)))) {
            return ho_err_set(err, HO_ENOMEM, "out of memory");
        }
        rc = ho_store_fold_values(d->store, i, d->config.metric, folds, slot->fold_value, err);
    }
    return rc;
}
