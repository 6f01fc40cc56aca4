/* SPDX-License-Identifier: Apache-2.0
 * Resuming: the store's trials become slots, and sampler and pruner are told again what they were
 * told before, in the recorded order (trial.asked_after, trial.told_order). Contracts: dispatch.h.
 */
#include "coordinator/dispatch_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What must be retold of one trial, besides its slot. */
typedef struct record {
    int64_t number, asked_after, told_order, epochs, finished_ns;
    double train_s;
    ho_trial_state state;
} record;

typedef struct loading {
    ho_dispatch *d;
    record *record; /* [count] by number */
    int64_t count, room;
    int64_t now_ns;
    ho_err *err;
} loading;

static ho_status load_trial(const ho_stored_trial *t, void *user)
{
    loading *l = (loading *)user;
    ho_dispatch *d = l->d;
    ho_slot *slot = NULL;
    ho_status rc = HO_OK;

    if (t->number != d->proposed) {
        return ho_err_set(l->err, HO_ESTORE, "%s: trial %lld is missing", ho_store_path(d->store),
                          (long long)d->proposed);
    }
    if (l->count == l->room) {
        int64_t room = l->room ? 2 * l->room : 256;
        record *bigger = (record *)realloc(l->record, (size_t)room * sizeof *bigger);
        if (!bigger) {
            return ho_err_set(l->err, HO_ENOMEM, "out of memory");
        }
        l->record = bigger;
        l->room = room;
    }
    l->record[l->count++] = (record){t->number,      t->asked_after, t->told_order, t->epochs,
                                     t->finished_ns, t->train_s,     t->state};
    if ((rc = ho_dispatch_add(d, t->config, t->source == HO_SOURCE_RETEST ? t->parent : -1, &slot,
                              l->err)) != HO_OK) {
        return rc;
    }
    slot->attempt = t->attempt;
    slot->seeds = t->seeds;
    slot->fits = t->fits;
    slot->violation = t->violation;
    slot->last_step = t->epochs;
    memcpy(slot->value, t->value, sizeof slot->value);
    slot->state = t->state;
    switch (t->state) {
    case HO_TRIAL_WAITING:
    case HO_TRIAL_INTERRUPTED:
        slot->state = HO_TRIAL_WAITING;
        d->waiting++;
        break;
    case HO_TRIAL_RUNNING:
        slot->adopt_by_ns = l->now_ns + d->config.adopt_ns;
        slot->adopt_by_ns += slot->adopt_by_ns == 0; /* 0 means: not waiting */
        d->running++;
        break;
    case HO_TRIAL_COMPLETE:
    case HO_TRIAL_PRUNED:
    case HO_TRIAL_FAILED:
        d->complete += t->state == HO_TRIAL_COMPLETE;
        d->pruned += t->state == HO_TRIAL_PRUNED;
        d->failed += t->state == HO_TRIAL_FAILED;
        d->open_count--; /* it was added last */
        break;
    }
    if (t->told_order > d->told) {
        d->told = t->told_order;
    }
    return HO_OK;
}

/* A trial that is still to run but no longer legal in the changed space is given up. */
static ho_status drop_misfits(ho_dispatch *d, int64_t now_ns, ho_err *err)
{
    ho_status rc = HO_OK;
    for (int64_t i = d->open_count - 1; i >= 0 && rc == HO_OK; i--) {
        int64_t number = d->open[i];
        if (!d->slot[number].fits) {
            rc = ho_dispatch_requeue(d, number, HO_CAUSE_CONFIG,
                                     "its parameters are not legal in the changed search space",
                                     now_ns, err);
        }
    }
    return rc;
}

static int by_told_order(const void *a, const void *b)
{
    const record *x = *(const record *const *)a, *y = *(const record *const *)b;
    return (x->told_order > y->told_order) - (x->told_order < y->told_order);
}

static ho_status retell(ho_dispatch *d, const record *r, ho_err *err)
{
    const ho_slot *slot = &d->slot[r->number];
    ho_told told = {.violation = isnan(slot->violation) ? 0.0 : slot->violation};
    if (!slot->fits || slot->ask < 0) {
        return HO_OK;
    }
    told.state = r->state == HO_TRIAL_COMPLETE ? HO_TOLD_COMPLETE
                 : r->state == HO_TRIAL_PRUNED ? HO_TOLD_PRUNED
                                               : HO_TOLD_FAILED;
    memcpy(told.value, slot->value, sizeof told.value);
    told.step = r->epochs;
    told.seconds = r->train_s;
    return ho_sampler_tell(d->sampler, slot->ask, &told, err);
}

/* Asks in the order of numbers; before each, the tells it had seen. */
static ho_status retell_sampler(ho_dispatch *d, const loading *l, const record **told,
                                int64_t told_count, ho_err *err)
{
    ho_status rc = HO_OK;
    int64_t next = 0;
    for (int64_t n = 0; n < l->count && rc == HO_OK; n++) {
        while (next < told_count && told[next]->told_order <= l->record[n].asked_after &&
               told[next]->number < n && rc == HO_OK) {
            rc = retell(d, told[next++], err);
        }
        if (rc == HO_OK && d->slot[n].fits && d->slot[n].ask >= 0) {
            rc = ho_sampler_resume(d->sampler, d->slot[n].ask, d->slot[n].config, err);
        }
    }
    while (next < told_count && rc == HO_OK) {
        rc = retell(d, told[next++], err);
    }
    return rc;
}

/* ---- pruner: reports and ends, merged by time ----------------------------------------------- */

typedef struct telling {
    ho_dispatch *d;
    const record **told; /* by told_order */
    int64_t told_count, next;
    ho_err *err;
} telling;

static ho_status finish_next(telling *t)
{
    const record *r = t->told[t->next++];
    if (!t->d->slot[r->number].fits || !t->d->slot[r->number].reported) {
        return HO_OK;
    }
    return ho_pruner_finish(t->d->pruner, r->number,
                            r->state == HO_TRIAL_COMPLETE ? HO_TOLD_COMPLETE
                            : r->state == HO_TRIAL_PRUNED ? HO_TOLD_PRUNED
                                                          : HO_TOLD_FAILED,
                            t->err);
}

static ho_status retell_report(const ho_stored_report *report, void *user)
{
    telling *t = (telling *)user;
    ho_slot *slot = ho_dispatch_slot(t->d, report->trial);
    ho_decision decision;
    ho_status rc = HO_OK;

    while (t->next < t->told_count && t->told[t->next]->finished_ns < report->at_ns &&
           rc == HO_OK) {
        rc = finish_next(t);
    }
    if (rc != HO_OK || !slot || !slot->fits || slot->ask < 0) {
        return rc;
    }
    if (report->step > slot->last_step && slot->state < HO_TRIAL_COMPLETE) {
        slot->last_step = report->step;
        memcpy(slot->value, report->value, sizeof slot->value);
    }
    slot->reported = true;
    rc = ho_pruner_report_folds(t->d->pruner, report->trial, report->step, report->value,
                                report->fold_value, report->folds, &decision, t->err);
    if (rc == HO_OK && decision.verdict == HO_VERDICT_PAUSE) {
        slot->pauses++;
        slot->paused = slot->state == HO_TRIAL_WAITING;
    }
    return rc;
}

/* A trial that was promoted after its last pause is not paused, whether it runs again already or
 * not. */
static ho_status retell_promoted(int64_t trial, int64_t times, void *user)
{
    telling *t = (telling *)user;
    ho_slot *slot = ho_dispatch_slot(t->d, trial);

    if (!slot || slot->pauses == 0 || times < slot->pauses || slot->state >= HO_TRIAL_COMPLETE) {
        return HO_OK;
    }
    slot->paused = false;
    return ho_pruner_unpause(t->d->pruner, trial, t->err);
}

static ho_status retell_pruner(ho_dispatch *d, const record **told, int64_t told_count, ho_err *err)
{
    telling t = {.d = d, .told = told, .told_count = told_count, .err = err};
    ho_status rc = ho_store_each_report(d->store, retell_report, &t, err);
    while (rc == HO_OK && t.next < told_count) {
        rc = finish_next(&t);
    }
    if (rc == HO_OK) {
        rc = ho_store_each_promoted(d->store, retell_promoted, &t, err);
    }
    d->waiting = 0;
    for (int64_t i = 0; i < d->open_count; i++) {
        const ho_slot *slot = &d->slot[d->open[i]];
        d->waiting += slot->state == HO_TRIAL_WAITING && !slot->paused;
    }
    return rc;
}

ho_status ho_dispatch_resume(ho_dispatch *d, int64_t now_ns, ho_err *err)
{
    loading l = {.d = d, .now_ns = now_ns, .err = err};
    const record **told = NULL;
    int64_t told_count = 0;
    ho_status rc = ho_store_each_trial(d->store, d->space, load_trial, &l, err);

    if (rc != HO_OK) {
        goto out;
    }
    told = (const record **)calloc((size_t)l.count + 1, sizeof *told);
    if (!told) {
        rc = ho_err_set(err, HO_ENOMEM, "out of memory");
        goto out;
    }
    for (int64_t i = 0; i < l.count; i++) {
        if (l.record[i].told_order > 0) {
            told[told_count++] = &l.record[i];
        }
    }
    qsort(told, (size_t)told_count, sizeof *told, by_told_order);
    if ((rc = retell_sampler(d, &l, told, told_count, err)) != HO_OK ||
        (rc = retell_pruner(d, told, told_count, err)) != HO_OK ||
        (rc = ho_dispatch_resume_race(d, err)) != HO_OK) {
        goto out;
    }
    if (!d->config.deterministic) {
        for (int64_t i = 0; i < told_count; i++) {
            ho_dispatch_weigh(d, told[i]->number);
        }
    }
    while (d->prefix < d->proposed && d->slot[d->prefix].state >= HO_TRIAL_COMPLETE) {
        d->prefix++;
    }
    rc = drop_misfits(d, now_ns, err);
out:
    free(l.record);
    free(told);
    return rc;
}
