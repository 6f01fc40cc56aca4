/* SPDX-License-Identifier: Apache-2.0
 * Proposing, leasing, ending and requeueing trials, and the clock. What arrives from workers is in
 * dispatch_worker.c, resuming in dispatch_resume.c. Contracts: dispatch.h. */
#include "coordinator/dispatch_internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/search/racing.h"
#include "study/folds.h"
#include "study/log.h"

enum {
    BACKLOG = 1
}; /* trials queued on a worker beyond its lanes, so that it never waits for us */

static const char *const cause_names[HO_CAUSE_COUNT] = {
    "lost", "crash",  "oom",    "diverged", "timeout",
    "data", "config", "metric", "command",  "preempted",
};

const char *ho_cause_name(ho_cause cause)
{
    return cause_names[cause];
}

ho_cause ho_cause_find(const char *name)
{
    int i = 0;
    while (i < HO_CAUSE_COUNT && strcmp(cause_names[i], name) != 0) {
        i++;
    }
    return (ho_cause)i;
}

ho_status ho_dispatch_create(ho_dispatch **out, const ho_dispatch_config *config,
                             const ho_dispatch_io *io, ho_store *store, ho_sampler *sampler,
                             ho_pruner *pruner, const ho_space *space, int64_t now_ns, ho_err *err)
{
    ho_dispatch *d = (ho_dispatch *)calloc(1, sizeof *d);

    *out = NULL;
    if (!d || !(d->scratch = (double *)calloc((size_t)space->count + 1, sizeof *d->scratch))) {
        free(d);
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    d->config = *config;
    d->io = *io;
    d->store = store;
    d->sampler = sampler;
    d->pruner = pruner;
    d->space = space;
    d->start_ns = now_ns;
    d->best_number = -1;
    d->best_value = NAN;
    d->first_worker = -1;
    *out = d;
    if (config->race_folds > 0) {
        d->race_order = (int *)calloc((size_t)config->folds, sizeof *d->race_order);
        if (!d->race_order) {
            ho_dispatch_destroy(out);
            return ho_err_set(err, HO_ENOMEM, "out of memory");
        }
        ho_race_order(config->seed, config->folds, d->race_order);
    }
    return HO_OK;
}

void ho_dispatch_destroy(ho_dispatch **dispatch)
{
    ho_dispatch *d = *dispatch;
    if (!d) {
        return;
    }
    for (int64_t i = 0; i < d->proposed; i++) {
        free(d->slot[i].config);
        free(d->slot[i].fold_value);
    }
    free(d->race_order);
    free(d->slot);
    free(d->open);
    free(d->seat);
    free(d->out);
    free(d->scratch);
    free(d);
    *dispatch = NULL;
}

/* Makes room for one more element. */
static ho_status grow(void **array, int64_t count, int64_t *room, size_t size, ho_err *err)
{
    if (count < *room) {
        return HO_OK;
    }
    int64_t wanted = *room ? 2 * *room : 64;
    void *bigger = realloc(*array, (size_t)wanted * size);
    if (!bigger) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    *array = bigger;
    *room = wanted;
    return HO_OK;
}

ho_slot *ho_dispatch_slot(ho_dispatch *d, int64_t number)
{
    return number >= 0 && number < d->proposed ? &d->slot[number] : NULL;
}

ho_seat *ho_dispatch_seat(ho_dispatch *d, int64_t worker)
{
    int64_t i = worker - d->first_worker;
    return d->first_worker >= 0 && i >= 0 && i < d->seats && d->seat[i].here ? &d->seat[i] : NULL;
}

void ho_dispatch_event(ho_dispatch *d, const char *kind, int64_t number, int64_t attempt,
                       int64_t worker, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    ho_log(HO_LOG_INFO, "dispatch", "%s: %s trial=%lld attempt=%lld worker=%lld", kind, text,
           (long long)number, (long long)attempt, (long long)worker);
    (void)ho_store_put_event(d->store, d->io.unix_ns(d->io.user), kind, number, attempt, worker,
                             text); /* out of memory shows at the next flush */
}

ho_status ho_dispatch_send_later(ho_dispatch *d, ho_out_kind kind, int64_t worker, int64_t number,
                                 int64_t attempt)
{
    ho_status rc = grow((void **)&d->out, d->out_count, &d->out_room, sizeof *d->out, NULL);
    if (rc == HO_OK) {
        d->out[d->out_count++] = (ho_out){kind, worker, number, attempt, ho_store_queued(d->store)};
    }
    return rc;
}

ho_status ho_dispatch_add(ho_dispatch *d, const double *config, int64_t parent, ho_slot **out,
                          ho_err *err)
{
    size_t bytes = (size_t)d->space->count * sizeof(double);
    ho_status rc = HO_OK;
    ho_slot *slot = NULL;

    if ((rc = grow((void **)&d->slot, d->proposed, &d->room, sizeof *d->slot, err)) != HO_OK ||
        (rc = grow((void **)&d->open, d->open_count, &d->open_room, sizeof *d->open, err)) !=
            HO_OK) {
        return rc;
    }
    slot = &d->slot[d->proposed];
    *slot = (ho_slot){0};
    slot->state = HO_TRIAL_WAITING;
    slot->worker = -1;
    slot->shunned_worker = -1;
    slot->parent = parent;
    slot->ask = parent >= 0 ? -1 : d->asked;
    slot->fits = true;
    slot->seeds = d->config.seeds;
    slot->violation = NAN;
    for (int i = 0; i < HO_OBJECTIVES_MAX; i++) {
        slot->value[i] = NAN;
    }
    if (!(slot->config = (double *)malloc(bytes + sizeof(double)))) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    memcpy(slot->config, config, bytes);
    d->open[d->open_count++] = d->proposed++;
    d->asked += parent < 0;
    *out = slot;
    return HO_OK;
}

/* ---- proposing ------------------------------------------------------------------------------ */

static int64_t workers_here(const ho_dispatch *d, bool ready_only)
{
    int64_t n = 0;
    for (int64_t i = 0; i < d->seats; i++) {
        n += d->seat[i].here && (!ready_only || (d->seat[i].ready && !d->seat[i].no_data));
    }
    return n;
}

static int64_t in_flight_limit(const ho_dispatch *d)
{
    if (d->config.deterministic) {
        return d->config.parallel;
    }
    if (d->config.in_flight > 0) {
        return d->config.in_flight;
    }
    int64_t workers = workers_here(d, true), tenth = d->config.trials / 10;
    return workers > tenth ? workers : tenth > 0 ? tenth : 1;
}

/* Compares two finished trials: feasible first, then smaller violation, then the value. */
static bool is_better(const ho_dispatch *d, const ho_slot *slot)
{
    double violation = isnan(slot->violation) ? 0.0 : slot->violation;
    if (slot->state != HO_TRIAL_COMPLETE || isnan(slot->value[0])) {
        return false;
    }
    if (d->best_number < 0 || violation != d->best_violation) {
        return d->best_number < 0 || violation < d->best_violation;
    }
    return (slot->value[0] - d->best_value) * d->config.direction[0] > 0.0;
}

void ho_dispatch_weigh(ho_dispatch *d, int64_t number)
{
    const ho_slot *slot = &d->slot[number];
    if (slot->ask < 0) {
        return; /* a retest is no new trial */
    }
    if (is_better(d, slot)) {
        d->best_number = number;
        d->best_value = slot->value[0];
        d->best_violation = isnan(slot->violation) ? 0.0 : slot->violation;
        d->since_best = 0;
    } else {
        d->since_best++;
    }
}

static void stop_for(ho_dispatch *d, const char *reason)
{
    if (!d->reason[0]) {
        (void)snprintf(d->reason, sizeof d->reason, "%s", reason);
    }
    d->draining = true;
}

/* Patience is over. A deterministic study looks at exactly proposals 0 .. n-1-parallel. */
static bool patience_over(ho_dispatch *d)
{
    if (d->config.deterministic) { /* all retests so far lie before the next proposal */
        int64_t upto = d->proposed - d->config.parallel;
        while (d->weighed < upto && d->weighed < d->prefix) {
            ho_dispatch_weigh(d, d->weighed++);
        }
    }
    return d->config.patience > 0 && d->best_number >= 0 && d->since_best >= d->config.patience;
}

static ho_trial_source source_of(const ho_dispatch *d, int64_t ask)
{
    int64_t configuration = ask / d->config.replicates;
    if (ask % d->config.replicates != 0) {
        return HO_SOURCE_REPLICATE;
    }
    return configuration < d->config.enqueued ? HO_SOURCE_ENQUEUE : HO_SOURCE_SAMPLER;
}

/* Asks for one more trial. *asked is false when there is to be none now. */
static ho_status propose(ho_dispatch *d, bool *asked, ho_err *err)
{
    int64_t number = d->proposed, ask = d->asked, retests = number - ask;
    char why[HO_WHY_MAX] = "";
    ho_slot *slot = NULL;
    ho_status rc = HO_OK;

    *asked = false;
    if (d->draining || d->no_more || ask >= d->config.trials || ho_dispatch_held(d)) {
        return HO_OK;
    }
    if (d->config.deterministic && d->prefix - retests < ask - d->config.parallel) {
        return HO_OK;
    }
    if (!d->config.deterministic && d->running + d->waiting >= in_flight_limit(d)) {
        return HO_OK;
    }
    if (patience_over(d)) {
        d->no_more = "patience";
        return HO_OK;
    }
    rc = ho_sampler_ask(d->sampler, ask, d->scratch, why, err);
    if (rc == HO_EDONE) {
        d->no_more = "exhausted";
        ho_dispatch_event(d, "exhausted", -1, 0, -1,
                          "the search space is exhausted after %lld trials", (long long)ask);
        return HO_OK;
    }
    if (rc == HO_EAGAIN) {
        return HO_OK;
    }
    if (rc != HO_OK || (rc = ho_dispatch_add(d, d->scratch, -1, &slot, err)) != HO_OK) {
        return rc;
    }
    ho_trial_source source = source_of(d, ask);
    ho_trial_new row = {
        .number = number,
        .parent = source == HO_SOURCE_REPLICATE ? number - ask % d->config.replicates : -1,
        .asked_after = d->told,
        .now_ns = d->io.unix_ns(d->io.user),
        .source = source,
        .seeds = slot->seeds,
        .bracket = -1,
        .config = slot->config,
        .why = why[0] ? why : NULL,
    };
    d->waiting++;
    *asked = true;
    return ho_store_put_trial(d->store, d->space, &row);
}

/* ---- leasing -------------------------------------------------------------------------------- */

static int64_t room_of(const ho_seat *seat)
{
    return seat->here && seat->ready && !seat->no_data && !seat->alone ? seat->slots : 0;
}

/* A trial that is about to fail for a dying worker is tried alone, so that the guilty one is found
 * and those beside it are spared. */
static bool is_suspect(const ho_dispatch *d, const ho_slot *slot)
{
    return slot->strikes[HO_CAUSE_CRASH] > 0 &&
           slot->strikes[HO_CAUSE_CRASH] >= d->config.max_attempts - 1;
}

static ho_seat *pick_seat(ho_dispatch *d, const ho_slot *slot)
{
    ho_seat *best = NULL;
    for (int64_t i = 0; i < d->seats; i++) {
        ho_seat *seat = &d->seat[i];
        if (room_of(seat) <= 0 || seat->id == slot->shunned_worker ||
            (is_suspect(d, slot) && seat->assigned > 0)) {
            continue;
        }
        if (!best || seat->assigned * best->lanes < best->assigned * seat->lanes) {
            best = seat;
        }
    }
    return best;
}

static ho_status lease(ho_dispatch *d, int64_t number, ho_seat *seat)
{
    ho_slot *slot = &d->slot[number];
    ho_status rc = HO_OK;

    slot->state = HO_TRIAL_RUNNING;
    slot->attempt++;
    slot->worker = seat->id;
    seat->assigned++;
    seat->slots--;
    seat->alone = is_suspect(d, slot);
    d->waiting--;
    d->running++;
    rc = ho_store_put_lease(d->store, number, slot->attempt, seat->id, d->io.unix_ns(d->io.user));
    if (rc == HO_OK) {
        rc = ho_dispatch_send_later(d, HO_OUT_LEASE, seat->id, number, slot->attempt);
    }
    return rc;
}

static bool any_room(const ho_dispatch *d)
{
    for (int64_t i = 0; i < d->seats; i++) {
        if (room_of(&d->seat[i]) > 0) {
            return true;
        }
    }
    return false;
}

/* Leases what waits, oldest first. */
static ho_status lease_waiting(ho_dispatch *d, int64_t now_ns)
{
    ho_status rc = HO_OK;
    if (d->draining || ho_dispatch_held(d)) {
        return HO_OK;
    }
    for (int64_t i = 0; i < d->open_count && d->waiting > 0 && rc == HO_OK; i++) {
        ho_slot *slot = &d->slot[d->open[i]];
        if (slot->state == HO_TRIAL_WAITING && !slot->paused && slot->not_before_ns <= now_ns) {
            ho_seat *seat = pick_seat(d, slot);
            if (seat) {
                rc = lease(d, d->open[i], seat);
            } else if (!any_room(d)) {
                break;
            }
        }
    }
    return rc;
}

/* Paused trials (asha with promote) whose rung was won go on. */
static ho_status promote(ho_dispatch *d, ho_err *err)
{
    int64_t number = -1;
    ho_decision decision;
    ho_status rc = HO_OK;
    while (any_room(d) && (rc = ho_pruner_promote(d->pruner, &number, &decision, err)) == HO_OK) {
        ho_slot *slot = ho_dispatch_slot(d, number);
        if (slot && slot->paused && !slot->promoted) {
            slot->paused = slot->promoted = slot->handing;
            d->waiting++;
            ho_dispatch_event(d, "promote", number, slot->attempt, -1, "%s", decision.why);
        }
    }
    return rc == HO_EDONE || rc == HO_OK ? HO_OK : rc;
}

/* ---- ending --------------------------------------------------------------------------------- */

static void remove_open(ho_dispatch *d, int64_t number)
{
    for (int64_t i = 0; i < d->open_count; i++) {
        if (d->open[i] == number) {
            memmove(&d->open[i], &d->open[i + 1],
                    (size_t)(d->open_count - i - 1) * sizeof *d->open);
            d->open_count--;
            return;
        }
    }
}

void ho_dispatch_release(ho_dispatch *d, ho_slot *slot)
{
    ho_seat *seat = ho_dispatch_seat(d, slot->worker);
    if (slot->state == HO_TRIAL_RUNNING) {
        d->running--;
        if (seat && seat->assigned > 0) {
            seat->assigned--;
            seat->slots++; /* until its next `ready` says so */
            seat->alone = seat->alone && seat->assigned > 0;
        }
    } else if (slot->state == HO_TRIAL_WAITING && (!slot->paused || slot->promoted)) {
        d->waiting--;
    }
    slot->paused = slot->handing = slot->promoted = false;
}

void ho_dispatch_handed_back(ho_slot *slot)
{
    if (slot->promoted) { /* counted as waiting when it was */
        slot->paused = false;
    }
    slot->handing = slot->promoted = false;
}

ho_status ho_dispatch_end(ho_dispatch *d, ho_trial_result *result, int64_t now_ns, ho_err *err)
{
    int64_t number = result->number;
    ho_slot *slot = &d->slot[number];
    ho_told told = {.violation = isnan(result->violation) ? 0.0 : result->violation};
    ho_status rc = HO_OK;

    (void)now_ns;
    ho_dispatch_release(d, slot);
    remove_open(d, number);
    slot->state = result->state;
    slot->violation = result->violation;
    memcpy(slot->value, result->value, sizeof slot->value);
    told.state = result->state == HO_TRIAL_COMPLETE ? HO_TOLD_COMPLETE
                 : result->state == HO_TRIAL_PRUNED ? HO_TOLD_PRUNED
                                                    : HO_TOLD_FAILED;
    memcpy(told.value, result->value, sizeof told.value);
    told.step = result->epochs;
    told.seconds = result->train_s;
    d->complete += result->state == HO_TRIAL_COMPLETE;
    d->pruned += result->state == HO_TRIAL_PRUNED;
    d->failed += result->state == HO_TRIAL_FAILED;
    d->finished_here++;
    if (slot->fits && slot->ask >= 0) {
        if ((rc = ho_sampler_tell(d->sampler, slot->ask, &told, err)) != HO_OK ||
            (slot->reported &&
             (rc = ho_pruner_finish(d->pruner, number, told.state, err)) != HO_OK)) {
            return rc;
        }
    }
    result->told_order = slot->ask >= 0 ? ++d->told : 0;
    while (d->prefix < d->proposed && d->slot[d->prefix].state >= HO_TRIAL_COMPLETE) {
        d->prefix++;
    }
    if (!d->config.deterministic) {
        ho_dispatch_weigh(d, number);
    }
    result->finished_ns = d->io.unix_ns(d->io.user);
    if ((rc = ho_store_put_result(d->store, result)) != HO_OK) {
        return ho_err_set(err, rc, "out of memory while keeping a result");
    }
    if (slot->rounds > 0 && (rc = ho_store_put_race_ended(d->store, number)) != HO_OK) {
        return ho_err_set(err, rc, "out of memory while keeping a result");
    }
    if (slot->state != HO_TRIAL_COMPLETE) { /* compared with no more */
        free(slot->fold_value);
        slot->fold_value = NULL;
    }
    slot->acked_seq = ho_store_queued(d->store);
    if (d->io.finished) {
        d->io.finished(d->io.user, result);
    }
    return HO_OK;
}

/* Attempts a cause allows; 0: none more. */
static int attempts_allowed(const ho_dispatch *d, ho_cause cause)
{
    switch (cause) {
    case HO_CAUSE_LOST:
    case HO_CAUSE_CRASH:
        return d->config.max_attempts;
    case HO_CAUSE_OOM:
        return d->config.max_attempts < 2 ? d->config.max_attempts : 2;
    case HO_CAUSE_DATA:
        return d->config.max_attempts;
    case HO_CAUSE_PREEMPTED:
        return INT16_MAX;
    default:
        return 0;
    }
}

ho_status ho_dispatch_requeue(ho_dispatch *d, int64_t number, ho_cause cause, const char *reason,
                              int64_t now_ns, ho_err *err)
{
    ho_slot *slot = &d->slot[number];
    int64_t pause = 0;

    slot->strikes[cause]++;
    if (slot->strikes[cause] >= attempts_allowed(d, cause)) {
        char text[600];
        ho_trial_result result = {.number = number, .attempt = slot->attempt};
        (void)snprintf(text, sizeof text, "%s%s", reason,
                       slot->strikes[cause] > 1 ? " (attempts are used up)" : "");
        result.state = HO_TRIAL_FAILED;
        result.violation = NAN;
        result.worker = slot->worker;
        result.epochs = slot->last_step;
        result.train_s = NAN;
        result.fail_class = ho_cause_name(cause);
        result.fail_reason = text;
        for (int i = 0; i < HO_OBJECTIVES_MAX; i++) {
            result.value[i] = NAN;
        }
        return ho_dispatch_end(d, &result, now_ns, err);
    }
    if (cause == HO_CAUSE_CRASH || cause == HO_CAUSE_OOM) {
        int doubling = slot->strikes[cause] - 1;
        pause = d->config.backoff_ns << (doubling < 6 ? doubling : 6);
    }
    if (cause == HO_CAUSE_DATA) {
        slot->shunned_worker = slot->worker;
    }
    ho_dispatch_release(d, slot);
    slot->state = HO_TRIAL_WAITING;
    slot->adopt_by_ns = 0;
    slot->not_before_ns = now_ns + pause;
    d->waiting++;
    ho_dispatch_event(d, "requeue", number, slot->attempt, slot->worker, "%s: %s",
                      ho_cause_name(cause), reason);
    return ho_store_put_requeue(d->store, number, HO_TRIAL_WAITING,
                                cause == HO_CAUSE_PREEMPTED ? NULL : ho_cause_name(cause), reason);
}

/* ---- the clock ------------------------------------------------------------------------------ */

static ho_status expire(ho_dispatch *d, int64_t now_ns, ho_err *err)
{
    ho_status rc = HO_OK;
    for (int64_t i = 0; i < d->seats; i++) {
        ho_seat *seat = &d->seat[i];
        if (seat->here && now_ns - seat->heard_ns > d->config.heartbeat_timeout_ns) {
            ho_dispatch_leave(d, seat->id, HO_CAUSE_LOST,
                              "silent for longer than heartbeat_timeout", now_ns);
        }
    }
    for (int64_t i = d->open_count - 1; i >= 0 && rc == HO_OK; i--) {
        int64_t number = d->open[i];
        ho_slot *slot = &d->slot[number];
        if (slot->adopt_by_ns > 0 && slot->adopt_by_ns <= now_ns) {
            slot->adopt_by_ns = 0;
            if (slot->state == HO_TRIAL_RUNNING) {
                rc =
                    ho_dispatch_requeue(d, number, HO_CAUSE_PREEMPTED,
                                        "no worker came back with it after a restart", now_ns, err);
            }
        }
    }
    return rc;
}

static void send_committed(ho_dispatch *d)
{
    int64_t committed = ho_store_committed(d->store), sent = 0;
    while (sent < d->out_count && d->out[sent].seq <= committed) {
        const ho_out *out = &d->out[sent++];
        ho_slot *slot = ho_dispatch_slot(d, out->number);
        if (out->kind == HO_OUT_ACK) {
            d->io.ack(d->io.user, out->worker, out->number, out->attempt);
        } else if (slot->state == HO_TRIAL_RUNNING && slot->attempt == out->attempt &&
                   slot->worker == out->worker) {
            int fold[HO_FOLDS_MAX];
            ho_lease message = {.number = out->number,
                                .attempt = out->attempt,
                                .seeds = slot->seeds,
                                .config = slot->config,
                                .folds = ho_dispatch_next_folds(d, slot, fold),
                                .fold = fold};
            d->io.lease(d->io.user, out->worker, &message);
        }
    }
    if (sent > 0) {
        memmove(d->out, d->out + sent, (size_t)(d->out_count - sent) * sizeof *d->out);
        d->out_count -= sent;
    }
}

/* When nothing runs any more, trials still paused will never be promoted: they end as pruned. */
static ho_status end_paused(ho_dispatch *d, int64_t now_ns, ho_err *err)
{
    ho_status rc = HO_OK;
    bool more = !d->draining && !d->no_more && d->asked < d->config.trials;
    if (more || d->running > 0 || d->waiting > 0) {
        return HO_OK;
    }
    for (int64_t i = d->open_count - 1; i >= 0 && rc == HO_OK; i--) {
        int64_t number = d->open[i];
        ho_slot *slot = &d->slot[number];
        if (slot->paused) {
            if (slot->handing) { /* its checkpoint is of no use any more */
                d->io.prune(d->io.user, slot->worker, number, slot->attempt);
            }
            ho_trial_result result = {.number = number, .attempt = slot->attempt};
            result.state = HO_TRIAL_PRUNED;
            result.objectives = d->config.objectives;
            memcpy(result.value, slot->value, sizeof slot->value);
            result.violation = NAN;
            result.worker = slot->worker;
            result.epochs = slot->last_step;
            result.train_s = NAN;
            rc = ho_dispatch_end(d, &result, now_ns, err);
        }
    }
    return rc;
}

ho_status ho_dispatch_tick(ho_dispatch *d, int64_t now_ns, ho_err *err)
{
    ho_status rc = HO_OK;
    bool asked = true;

    if (d->config.timeout_ns > 0 && now_ns - d->start_ns >= d->config.timeout_ns && !d->draining) {
        stop_for(d, "timeout");
    }
    if ((rc = expire(d, now_ns, err)) != HO_OK || (rc = promote(d, err)) != HO_OK ||
        (rc = lease_waiting(d, now_ns)) != HO_OK) {
        goto out;
    }
    while (asked && (d->config.deterministic || any_room(d))) {
        if ((rc = propose(d, &asked, err)) != HO_OK) {
            goto out;
        }
        if (asked && (rc = lease_waiting(d, now_ns)) != HO_OK) {
            goto out;
        }
    }
    if ((rc = end_paused(d, now_ns, err)) != HO_OK) {
        goto out;
    }
    if (!d->reason[0] && d->running == 0 && d->waiting == 0 && d->proposed > 0 &&
        (d->no_more || d->asked >= d->config.trials)) {
        bool again = false;
        if ((rc = ho_dispatch_retest(d, &again, err)) != HO_OK) {
            goto out;
        }
        if (!again) {
            stop_for(d, d->no_more ? d->no_more : "trials");
        }
    }
    rc = ho_store_flush(d->store, now_ns, d->reason[0] && d->running == 0, err);
    if (rc == HO_EAGAIN) {
        rc = HO_OK; /* paused: kept in memory */
    }
    send_committed(d);
out:
    if (rc != HO_OK && err && err->code == HO_OK) {
        (void)ho_err_set(err, rc, "%s", ho_status_text(rc));
    }
    return rc;
}

int64_t ho_dispatch_next_ns(const ho_dispatch *d, int64_t now_ns)
{
    int64_t next = now_ns + 1000000000;
    int64_t due = ho_store_due_in(d->store, now_ns);
    if (due >= 0 && now_ns + due < next) {
        next = now_ns + due;
    }
    for (int64_t i = 0; i < d->seats; i++) {
        if (d->seat[i].here) {
            int64_t end = d->seat[i].heard_ns + d->config.heartbeat_timeout_ns + 1;
            next = end < next ? end : next;
        }
    }
    for (int64_t i = 0; i < d->open_count; i++) {
        const ho_slot *slot = &d->slot[d->open[i]];
        if (slot->state == HO_TRIAL_WAITING && slot->not_before_ns > now_ns &&
            slot->not_before_ns < next) {
            next = slot->not_before_ns;
        }
    }
    return next > now_ns ? next : now_ns;
}

void ho_dispatch_hold(ho_dispatch *d, const char *reason)
{
    (void)snprintf(d->held, sizeof d->held, "%s", reason ? reason : "");
}

const char *ho_dispatch_held(const ho_dispatch *d)
{
    const char *paused = ho_store_paused(d->store);
    return paused ? paused : d->held[0] ? d->held : NULL;
}

void ho_dispatch_drain(ho_dispatch *d, const char *reason)
{
    stop_for(d, reason);
}

ho_status ho_dispatch_interrupt(ho_dispatch *d, const char *reason, int64_t now_ns, ho_err *err)
{
    ho_status rc = HO_OK;
    stop_for(d, reason);
    for (int64_t i = 0; i < d->open_count && rc == HO_OK; i++) {
        ho_slot *slot = &d->slot[d->open[i]];
        if (slot->state != HO_TRIAL_INTERRUPTED) {
            ho_dispatch_release(d, slot);
            slot->state = HO_TRIAL_INTERRUPTED;
            rc = ho_store_put_requeue(d->store, d->open[i], HO_TRIAL_INTERRUPTED, NULL, reason);
        }
    }
    for (int64_t i = 0; i < d->seats && rc == HO_OK; i++) {
        if (d->seat[i].here) {
            d->seat[i].here = false;
            rc = ho_store_put_worker_left(d->store, d->seat[i].id, "the coordinator ended",
                                          d->seat[i].finished, d->io.unix_ns(d->io.user));
        }
    }
    return rc == HO_OK ? ho_dispatch_flush(d, now_ns, err) : rc;
}

ho_status ho_dispatch_flush(ho_dispatch *d, int64_t now_ns, ho_err *err)
{
    ho_status rc = ho_store_flush(d->store, now_ns, true, err);
    if (rc == HO_OK) {
        send_committed(d);
    }
    return rc;
}

bool ho_dispatch_done(const ho_dispatch *d)
{
    return d->reason[0] && d->running == 0 && d->out_count == 0 &&
           ho_store_committed(d->store) == ho_store_queued(d->store);
}

const char *ho_dispatch_reason(const ho_dispatch *d)
{
    return d->reason[0] ? d->reason : NULL;
}

void ho_dispatch_look(const ho_dispatch *d, ho_dispatch_view *out)
{
    *out = (ho_dispatch_view){
        .target = d->config.trials + d->proposed - d->asked,
        .proposed = d->proposed,
        .waiting = d->waiting,
        .running = d->running,
        .complete = d->complete,
        .pruned = d->pruned,
        .failed = d->failed,
        .workers = workers_here(d, false),
        .ready_workers = workers_here(d, true),
        .best_number = d->best_number,
        .best_value = d->best_value,
        .finished_here = d->finished_here,
        .draining = d->draining,
        .paused = ho_dispatch_held(d),
    };
    /* a deterministic study weighs late; people want to see what is there */
    if (d->config.deterministic) {
        ho_dispatch copy = *d;
        for (int64_t i = d->weighed; i < d->proposed; i++) {
            if (d->slot[i].state >= HO_TRIAL_COMPLETE) {
                ho_dispatch_weigh(&copy, i);
            }
        }
        out->best_number = copy.best_number;
        out->best_value = copy.best_value;
    }
}
