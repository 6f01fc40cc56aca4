/* SPDX-License-Identifier: Apache-2.0
 * What arrives from workers: hello with what they hold, reports, results, failures, goodbyes.
 * Contracts: dispatch.h. */
#include "coordinator/dispatch_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A worker that held the newest attempt goes on with it, whatever the trial's state became here. */
static bool adopt(ho_dispatch *d, ho_seat *seat, int64_t number, int64_t attempt)
{
    ho_slot *slot = ho_dispatch_slot(d, number);
    if (!slot || attempt < 1 || slot->attempt != attempt || slot->state >= HO_TRIAL_COMPLETE ||
        slot->paused || slot->race_attempt == attempt) {
        return false;
    }
    ho_dispatch_release(d, slot);
    slot->state = HO_TRIAL_RUNNING;
    slot->worker = seat->id;
    slot->adopt_by_ns = 0;
    seat->assigned++;
    d->running++;
    ho_dispatch_event(d, "adopt", number, attempt, seat->id, "the worker still holds it");
    return ho_store_put_lease(d->store, number, attempt, seat->id, d->io.unix_ns(d->io.user)) ==
           HO_OK;
}

static bool is_held(const ho_hello *hello, int64_t number, int64_t attempt)
{
    for (int h = 0; h < hello->held; h++) {
        if (hello->held_number[h] == number && hello->held_attempt[h] == attempt) {
            return true;
        }
    }
    return false;
}

/* Leases that never arrived: the worker came back without them. */
static ho_status requeue_unheld(ho_dispatch *d, int64_t worker, const ho_hello *hello,
                                int64_t now_ns, ho_err *err)
{
    ho_status rc = HO_OK;
    for (int64_t i = d->open_count - 1; i >= 0 && rc == HO_OK; i--) {
        int64_t number = d->open[i];
        ho_slot *slot = &d->slot[number];
        if (slot->worker != worker || is_held(hello, number, slot->attempt)) {
            continue;
        }
        ho_dispatch_handed_back(slot);
        if (slot->state == HO_TRIAL_RUNNING) {
            rc = ho_dispatch_requeue(d, number, HO_CAUSE_PREEMPTED,
                                     "the worker came back without it", now_ns, err);
        }
    }
    return rc;
}

static ho_status new_seat(ho_dispatch *d, const ho_hello *hello, int64_t now_ns, int64_t *worker,
                          ho_err *err)
{
    if (d->seats == d->seat_room) {
        int64_t room = d->seat_room ? 2 * d->seat_room : 16;
        ho_seat *bigger = (ho_seat *)realloc(d->seat, (size_t)room * sizeof *bigger);
        if (!bigger) {
            return ho_err_set(err, HO_ENOMEM, "out of memory");
        }
        d->seat = bigger;
        d->seat_room = room;
    }
    int64_t id = ho_store_next_worker_id(d->store);
    if (d->first_worker < 0) {
        d->first_worker = id;
    }
    ho_seat *seat = &d->seat[d->seats++];
    *seat = (ho_seat){.id = id,
                      .lanes = hello->lanes > 0 ? hello->lanes : 1,
                      .here = true,
                      .local = hello->local,
                      .heard_ns = now_ns};
    ho_worker_row row = {
        .id = id,
        .name = hello->name,
        .host = hello->host,
        .device = hello->device,
        .device_uuid = hello->device_uuid,
        .backend = hello->backend,
        .version = hello->version,
        .curve_key = hello->curve_key,
        .pid = hello->pid,
        .lanes = seat->lanes,
        .now_ns = d->io.unix_ns(d->io.user),
        .local = hello->local,
    };
    *worker = id;
    ho_status rc = ho_store_put_worker(d->store, &row);
    return rc == HO_OK ? HO_OK : ho_err_set(err, rc, "out of memory");
}

/* A worker comes back with a trial that is paused: it may not have heard so, or its checkpoint may
 * not have come. */
static bool pause_again(ho_dispatch *d, int64_t worker, int64_t number, int64_t attempt)
{
    ho_slot *slot = ho_dispatch_slot(d, number);
    if (!slot || attempt < 1 || slot->attempt != attempt || !slot->paused) {
        return false;
    }
    slot->worker = worker;
    slot->handing = true;
    return true;
}

ho_status ho_dispatch_join(ho_dispatch *d, const ho_hello *hello, int64_t now_ns, int64_t *worker,
                           ho_err *err)
{
    ho_status rc = HO_OK;
    ho_seat *seat = ho_dispatch_seat(d, *worker);

    if (seat) {
        seat->heard_ns = now_ns;
        seat->ready = false;
        rc = requeue_unheld(d, *worker, hello, now_ns, err);
    } else {
        rc = new_seat(d, hello, now_ns, worker, err);
    }
    if (rc != HO_OK) {
        return rc;
    }
    seat = ho_dispatch_seat(d, *worker);
    for (int i = 0; i < hello->held; i++) {
        int64_t number = hello->held_number[i], attempt = hello->held_attempt[i];
        const ho_slot *slot = ho_dispatch_slot(d, number);
        bool has = slot && slot->attempt == attempt && slot->state == HO_TRIAL_RUNNING &&
                   slot->worker == *worker;
        bool paused = pause_again(d, *worker, number, attempt);
        d->io.verdict(d->io.user, *worker, number, attempt,
                      has || paused || adopt(d, seat, number, attempt));
        if (paused) {
            d->io.pause(d->io.user, *worker, number, attempt, slot->last_step - slot->race_epochs);
        }
    }
    return HO_OK;
}

void ho_dispatch_ready(ho_dispatch *d, int64_t worker, int slots, int lanes, int64_t now_ns)
{
    ho_seat *seat = ho_dispatch_seat(d, worker);
    if (seat) {
        seat->ready = true;
        seat->slots = slots;
        if (lanes > 0 && lanes != seat->lanes) {
            seat->lanes = lanes;
            (void)ho_store_put_worker_lanes(d->store, worker, lanes);
        }
        seat->heard_ns = now_ns;
    }
}

void ho_dispatch_heard(ho_dispatch *d, int64_t worker, int64_t now_ns)
{
    ho_seat *seat = ho_dispatch_seat(d, worker);
    if (seat) {
        seat->heard_ns = now_ns;
    }
}

void ho_dispatch_leave(ho_dispatch *d, int64_t worker, ho_cause cause, const char *reason,
                       int64_t now_ns)
{
    ho_seat *seat = ho_dispatch_seat(d, worker);
    if (!seat) {
        return;
    }
    for (int64_t i = d->open_count - 1; i >= 0; i--) {
        int64_t number = d->open[i];
        if (d->slot[number].worker != worker) {
            continue;
        }
        ho_dispatch_handed_back(&d->slot[number]);
        if (d->slot[number].state == HO_TRIAL_RUNNING) {
            /* a failure here is out of memory, and shows at the next flush */
            (void)ho_dispatch_requeue(d, number, cause, reason, now_ns, NULL);
        }
    }
    seat = ho_dispatch_seat(d, worker);
    seat->here = false;
    seat->ready = false;
    (void)ho_store_put_worker_left(d->store, worker, reason, seat->finished,
                                   d->io.unix_ns(d->io.user));
    ho_dispatch_event(d, cause == HO_CAUSE_PREEMPTED ? "bye" : ho_cause_name(cause), -1, 0, worker,
                      "%s", reason);
}

ho_standing ho_dispatch_standing(ho_dispatch *d, int64_t worker, int64_t number, int64_t attempt)
{
    const ho_slot *slot = ho_dispatch_slot(d, number);
    if (!slot || attempt < 1 || attempt > slot->attempt) {
        return HO_STANDING_NONSENSE;
    }
    if (attempt == slot->race_attempt) {
        return HO_STANDING_ENDED; /* its round was taken */
    }
    if (attempt < slot->attempt) {
        return HO_STANDING_LATE;
    }
    if (slot->state >= HO_TRIAL_COMPLETE) {
        return HO_STANDING_ENDED;
    }
    if (slot->state == HO_TRIAL_WAITING && !slot->paused) { /* given up, and not leased anew */
        ho_seat *seat = ho_dispatch_seat(d, worker);
        if (!seat || !adopt(d, seat, number, attempt)) {
            return HO_STANDING_LATE;
        }
    }
    return slot->worker == worker ? HO_STANDING_HOLDER : HO_STANDING_LATE;
}

bool ho_dispatch_is_here(ho_dispatch *d, int64_t worker)
{
    return ho_dispatch_seat(d, worker) != NULL;
}

bool ho_dispatch_holds(ho_dispatch *d, int64_t worker, int64_t number, int64_t attempt)
{
    return ho_dispatch_standing(d, worker, number, attempt) == HO_STANDING_HOLDER;
}

static ho_status nonsense(int64_t number, int64_t attempt, ho_err *err)
{
    return ho_err_set(err, HO_EINVAL, "trial %lld attempt %lld was never given out",
                      (long long)number, (long long)attempt);
}

static ho_status end_by_pruner(ho_dispatch *d, int64_t worker, const ho_report_in *report,
                               int64_t step, int64_t now_ns, ho_err *err)
{
    ho_trial_result result = {.number = report->number, .attempt = report->attempt};
    result.state = HO_TRIAL_PRUNED;
    result.objectives = d->config.objectives;
    memcpy(result.value, report->value, sizeof result.value);
    ho_pruner_value(d->pruner, report->number, result.value);
    result.violation = NAN;
    result.worker = worker;
    result.epochs = step;
    result.train_s = NAN;
    ho_status rc = ho_dispatch_end(d, &result, now_ns, err);
    d->io.prune(d->io.user, worker, report->number, report->attempt);
    return rc;
}

static ho_status pause_trial(ho_dispatch *d, int64_t worker, const ho_report_in *report)
{
    ho_slot *slot = &d->slot[report->number];
    ho_dispatch_release(d, slot);
    slot->state = HO_TRIAL_WAITING;
    slot->paused = slot->handing = true;
    d->io.pause(d->io.user, worker, report->number, report->attempt, report->step);
    return ho_store_put_requeue(d->store, report->number, HO_TRIAL_WAITING, NULL,
                                "paused by the pruner");
}

ho_status ho_dispatch_report(ho_dispatch *d, int64_t worker, const ho_report_in *report,
                             int64_t now_ns, ho_err *err)
{
    static const char *const verdicts[] = {"keep", "prune", "pause"};
    ho_decision decision = {.verdict = HO_VERDICT_CONTINUE};
    ho_status rc = HO_OK;

    ho_dispatch_heard(d, worker, now_ns);
    switch (ho_dispatch_standing(d, worker, report->number, report->attempt)) {
    case HO_STANDING_NONSENSE:
        return nonsense(report->number, report->attempt, err);
    case HO_STANDING_LATE:
        d->io.verdict(d->io.user, worker, report->number, report->attempt, false);
        return HO_OK;
    case HO_STANDING_ENDED:
        return HO_OK; /* crossed our prune on the way */
    case HO_STANDING_HOLDER:
        break;
    }
    ho_slot *slot = &d->slot[report->number];
    /* epochs count over the rounds of a raced trial, so that trials at one step have met the same
     * folds */
    ho_epoch_stat stat = report->stat ? *report->stat : (ho_epoch_stat){0};
    int64_t step = report->step + slot->race_epochs;
    stat.epoch += (int32_t)slot->race_epochs;
    if (report->parent >= 0 && report->config && ho_dispatch_slot(d, report->parent)) {
        /* copied before the epoch that this report tells */
        rc = ho_store_put_evolution(d->store, report->number, step - 1, report->parent,
                                    report->config, d->space->count);
        if (rc != HO_OK) {
            return rc;
        }
    }
    if (report->stat && !d->config.no_epochs) {
        double value = report->scored ? report->value[0] : NAN;
        if ((rc = ho_store_put_epoch(d->store, report->number, -1, -1, &stat, value)) != HO_OK) {
            return rc;
        }
    }
    /* a report that crossed our pause decides nothing: it is told again when the trial goes on */
    if (!report->scored || step <= 0 || slot->state != HO_TRIAL_RUNNING) {
        return HO_OK;
    }
    if (slot->fits && slot->ask >= 0) { /* a retest runs to its end */
        slot->reported = true;
        rc = ho_pruner_report_folds(d->pruner, report->number, step, report->value,
                                    report->fold_value, report->folds, &decision, err);
        if (rc != HO_OK) {
            return rc;
        }
    }
    if (step > slot->last_step) {
        slot->last_step = step;
        memcpy(slot->value, report->value, sizeof slot->value);
    }
    ho_report_row row = {
        .number = report->number,
        .step = step,
        .now_ns = d->io.unix_ns(d->io.user),
        .objectives = d->config.objectives,
        .folds = report->folds,
        .fold_value = report->fold_value,
        .decided = decision.compared,
        .rung = decision.rung,
        .competitors = decision.competitors,
        .threshold = decision.threshold,
        .verdict = verdicts[decision.verdict],
        .why = decision.why,
    };
    memcpy(row.value, report->value, sizeof row.value);
    if ((rc = ho_store_put_report(d->store, &row)) != HO_OK) {
        return rc;
    }
    if (decision.verdict == HO_VERDICT_PRUNE) {
        return end_by_pruner(d, worker, report, step, now_ns, err);
    }
    return decision.verdict == HO_VERDICT_PAUSE ? pause_trial(d, worker, report) : HO_OK;
}

ho_status ho_dispatch_answer_stale(ho_dispatch *d, ho_standing standing, int64_t worker,
                                   int64_t number, int64_t attempt, ho_err *err)
{
    if (standing == HO_STANDING_NONSENSE) {
        return nonsense(number, attempt, err);
    }
    if (standing == HO_STANDING_LATE) {
        ho_dispatch_event(d, "late", number, attempt, worker,
                          "a result of an attempt that was given up is dropped");
    } /* else its ack was lost, or our prune crossed it */
    return ho_dispatch_send_later(d, HO_OUT_ACK, worker, number, attempt);
}

ho_status ho_dispatch_take_result(ho_dispatch *d, int64_t worker, ho_trial_result *result,
                                  int64_t now_ns, ho_err *err)
{
    ho_status rc = HO_OK;
    ho_seat *seat = ho_dispatch_seat(d, worker);

    if (seat) {
        seat->finished++;
    }
    result->worker = worker;
    for (int i = 0; i < result->objectives && result->state == HO_TRIAL_COMPLETE; i++) {
        if (isnan(result->value[i])) { /* it ran, and cannot be compared */
            result->state = HO_TRIAL_FAILED;
            result->fail_class = ho_cause_name(HO_CAUSE_METRIC);
        }
    }
    if ((rc = ho_dispatch_end(d, result, now_ns, err)) != HO_OK) {
        return rc;
    }
    return ho_dispatch_send_later(d, HO_OUT_ACK, worker, result->number, result->attempt);
}

ho_status ho_dispatch_result(ho_dispatch *d, int64_t worker, ho_trial_result *result,
                             int64_t now_ns, ho_err *err)
{
    ho_dispatch_heard(d, worker, now_ns);
    ho_standing standing = ho_dispatch_standing(d, worker, result->number, result->attempt);
    if (standing != HO_STANDING_HOLDER) {
        return ho_dispatch_answer_stale(d, standing, worker, result->number, result->attempt, err);
    }
    return ho_dispatch_take_result(d, worker, result, now_ns, err);
}

ho_status ho_dispatch_fail(ho_dispatch *d, int64_t worker, int64_t number, int64_t attempt,
                           ho_cause cause, const char *reason, int64_t now_ns, ho_err *err)
{
    ho_status rc = HO_OK;

    ho_dispatch_heard(d, worker, now_ns);
    switch (ho_dispatch_standing(d, worker, number, attempt)) {
    case HO_STANDING_NONSENSE:
        return nonsense(number, attempt, err);
    case HO_STANDING_LATE:
    case HO_STANDING_ENDED:
        return ho_dispatch_send_later(d, HO_OUT_ACK, worker, number, attempt);
    case HO_STANDING_HOLDER:
        break;
    }
    ho_seat *seat = ho_dispatch_seat(d, worker);
    if (seat && cause == HO_CAUSE_DATA) {
        seat->no_data = true;
    }
    ho_dispatch_handed_back(&d->slot[number]);
    if (d->slot[number].state == HO_TRIAL_RUNNING &&
        (rc = ho_dispatch_requeue(d, number, cause, reason, now_ns, err)) != HO_OK) {
        return rc;
    }
    return ho_dispatch_send_later(d, HO_OUT_ACK, worker, number, attempt);
}
