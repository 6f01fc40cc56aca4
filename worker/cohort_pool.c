/* SPDX-License-Identifier: Apache-2.0
 * Trials, slots and turns; see cohort_pool.h. Cohorts are made in cohort_room.c, windows are scored
 * in lane_score.c. */
#include "worker/cohort_pool_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "study/log.h"
#include "worker/checkpoint.h"
#include "worker/lane_score.h"

static int64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

/* Threads for initial weights: beside a GPU all processors but the one that drives it. */
static int spare_threads(const ho_pool *pool)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    return pool->cpu ? pool->threads : processors > 1 ? (int)processors - 1 : 1;
}

ho_status ho_pool_create(ho_pool **out, const ho_pool_options *options, ho_err *err)
{
    *out = NULL;
    ho_device_info info;
    ho_status rc = ho_backend_info(options->backend, &info, err);
    if (rc != HO_OK) {
        return rc;
    }
    ho_pool *pool = calloc(1, sizeof *pool);
    if (!pool) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for the lanes");
    }
    pool->options = *options;
    pool->cpu = info.sm == 0;
    pool->threads = info.processors > 0 ? info.processors : 1;
    rc = ho_preparer_create(&pool->preparer, spare_threads(pool), err);
    if (rc != HO_OK) {
        free(pool);
        return rc;
    }
    *out = pool;
    return HO_OK;
}

/* ---- trials -------------------------------------------------------------------------------- */

ho_status ho_pool_add(ho_pool *pool, ho_trial_plan **plan, ho_err *err)
{
    ho_trial_run *run = NULL;
    for (int i = 0; i < pool->entries; i++) {
        const ho_trial_plan *held = pool->entry[i].run->plan;
        if (held->number == (*plan)->number && held->attempt == (*plan)->attempt) {
            ho_trial_plan_destroy(plan);
            return ho_err_set(err, HO_EINVAL, "trial %lld attempt %d is here already",
                              (long long)held->number, held->attempt);
        }
    }
    if (pool->entries == pool->room) {
        int room = pool->room > 0 ? 2 * pool->room : 16;
        struct entry *grown = realloc(pool->entry, (size_t)room * sizeof *grown);
        if (!grown) {
            ho_trial_plan_destroy(plan);
            return ho_err_set(err, HO_ENOMEM, "out of memory for a trial");
        }
        pool->entry = grown;
        pool->room = room;
    }
    ho_status rc = ho_trial_run_create(&run, plan, err);
    if (rc == HO_OK) {
        pool->entry[pool->entries++] = (struct entry){.run = run};
    }
    return rc;
}

ho_status ho_pool_resume(ho_pool *pool, ho_trial_plan **plan, const void *blob, size_t size,
                         ho_err *err)
{
    ho_err torn = {0};
    ho_status rc = ho_pool_add(pool, plan, err);
    if (rc != HO_OK) {
        return rc;
    }
    ho_trial_run *run = pool->entry[pool->entries - 1].run;
    if (ho_checkpoint_load(run, blob, size, &torn) != HO_OK) {
        ho_log(HO_LOG_WARN, "cohort", "trial=%lld starts anew: %s", (long long)run->plan->number,
               torn.text);
    }
    return HO_OK;
}

ho_status ho_pool_checkpoint(ho_pool *pool, int64_t number, int32_t attempt, bool replay,
                             void **blob, size_t *size, ho_err *err)
{
    for (int i = 0; i < pool->entries; i++) {
        const struct entry *entry = &pool->entry[i];
        if (entry->run->plan->number == number && entry->run->plan->attempt == attempt &&
            entry->cohort) {
            return ho_checkpoint_save(entry->run, entry->cohort->cohort, replay, blob, size, err);
        }
    }
    return ho_err_set(err, HO_ENOTFOUND, "trial %lld is not running here", (long long)number);
}

ho_status ho_pool_pause(ho_pool *pool, int64_t number, int32_t attempt, int32_t epoch, void **blob,
                        size_t *size, ho_err *err)
{
    for (int i = 0; i < pool->entries; i++) {
        ho_trial_run *run = pool->entry[i].run;
        if (run->plan->number == number && run->plan->attempt == attempt) {
            ho_trial_run_tell_again(run, epoch);
        }
    }
    return ho_pool_checkpoint(pool, number, attempt, true, blob, size, err);
}

static struct entry *entry_numbered(ho_pool *pool, int64_t number)
{
    for (int i = 0; i < pool->entries; i++) {
        if (pool->entry[i].run->plan->number == number) {
            return &pool->entry[i];
        }
    }
    return NULL;
}

ho_status ho_pool_copy(ho_pool *pool, int64_t dst, int64_t src, const ho_agent_config *agent,
                       const double *config, ho_err *err)
{
    const struct entry *to = entry_numbered(pool, dst), *from = entry_numbered(pool, src);
    bool together = to && from && to->cohort && to->cohort == from->cohort &&
                    to->run->plan->lanes == from->run->plan->lanes;
    for (int i = 0; together && i < to->run->plan->lanes; i++) {
        together = to->run->lane[i].phase == HO_LANE_RUNNING &&
                   from->run->lane[i].phase == HO_LANE_RUNNING;
    }
    if (!together) {
        return ho_err_set(err, HO_EINVAL, "trials %lld and %lld do not train side by side",
                          (long long)dst, (long long)src);
    }
    ho_cohort *cohort = to->cohort->cohort;
    ho_status rc = HO_OK;
    for (int i = 0; rc == HO_OK && i < to->run->plan->lanes; i++) { /* refuses before it changes */
        rc = ho_lane_set_agent(cohort, to->run->lane[i].slot, agent, err);
    }
    for (int i = 0; rc == HO_OK && i < to->run->plan->lanes; i++) {
        to->run->plan->lane[i].agent = *agent;
        rc = ho_lane_copy(cohort, to->run->lane[i].slot, from->run->lane[i].slot, err);
    }
    if (rc == HO_OK && to->run->plan->parameters > 0) {
        memcpy(to->run->plan->config, config, (size_t)to->run->plan->parameters * sizeof *config);
    }
    return rc;
}

/* Frees the slots of a trial's running lanes. */
static void stop_lanes(struct entry *entry)
{
    for (int i = 0; entry->cohort && i < entry->run->plan->lanes; i++) {
        ho_lane_run *lane = &entry->run->lane[i];
        if (lane->phase == HO_LANE_RUNNING) {
            (void)ho_lane_stop(entry->cohort->cohort, lane->slot);
            entry->cohort->slot[lane->slot].run = NULL;
            entry->cohort->active--;
            lane->slot = -1;
            lane->phase = HO_LANE_FINISHED;
        }
    }
}

static void remove_entry(ho_pool *pool, int i)
{
    stop_lanes(&pool->entry[i]);
    ho_trial_run_destroy(&pool->entry[i].run);
    pool->entries--;
    memmove(&pool->entry[i], &pool->entry[i + 1],
            (size_t)(pool->entries - i) * sizeof pool->entry[0]);
}

void ho_pool_destroy(ho_pool **pool)
{
    if (!pool || !*pool) {
        return;
    }
    while ((*pool)->entries > 0) {
        remove_entry(*pool, (*pool)->entries - 1);
    }
    while ((*pool)->cohorts > 0) {
        ho_pool_remove_cohort(*pool, (*pool)->cohorts - 1);
    }
    ho_preparer_destroy(&(*pool)->preparer);
    free((*pool)->entry);
    free(*pool);
    *pool = NULL;
}

bool ho_pool_drop(ho_pool *pool, int64_t number, int32_t attempt)
{
    for (int i = 0; i < pool->entries; i++) {
        const ho_trial_plan *plan = pool->entry[i].run->plan;
        if (plan->number == number && (attempt == 0 || plan->attempt == attempt)) {
            remove_entry(pool, i);
            return true;
        }
    }
    return false;
}

static void fail_entry(ho_pool *pool, struct entry *entry, ho_trial_failure failure)
{
    if (entry->failed) {
        return; /* the first lane's reason stands */
    }
    entry->failed = true;
    if (failure.lane >= 0) {
        failure.fold = entry->run->plan->fold[failure.lane / entry->run->plan->seeds];
        failure.seed = failure.lane % entry->run->plan->seeds;
        failure.epoch = entry->run->lane[failure.lane].epoch;
    }
    stop_lanes(entry);
    pool->options.sink.failed(pool->options.sink.user, entry->run, &failure);
}

static void fail_with(ho_pool *pool, struct entry *entry, ho_status rc, int lane, const ho_err *err)
{
    ho_failure_kind kind = HO_FAILURE_INTERNAL;
    if (rc == HO_EGPU) {
        kind = HO_FAILURE_DEVICE;
    } else if (rc == HO_ENOMEM) {
        kind = HO_FAILURE_OOM;
    } else if (rc == HO_EINVAL || rc == HO_ECONFIG || rc == HO_EUNSUPPORTED) {
        kind = HO_FAILURE_CONFIG;
    }
    fail_entry(pool, entry,
               (ho_trial_failure){.kind = kind,
                                  .lane = lane,
                                  .fold = -1,
                                  .seed = -1,
                                  .update = -1,
                                  .reason = err->text[0] ? err->text : ho_status_text(rc)});
}

static void sweep_failed(ho_pool *pool)
{
    for (int i = pool->entries - 1; i >= 0; i--) {
        if (pool->entry[i].failed) {
            remove_entry(pool, i);
        }
    }
}

/* ---- admission ----------------------------------------------------------------------------- */

static int waiting_lanes(const ho_trial_run *run)
{
    int n = 0;
    for (int i = 0; i < run->plan->lanes; i++) {
        n += run->lane[i].phase == HO_LANE_WAITING;
    }
    return n;
}

int ho_pool_active_lanes(const ho_pool *pool)
{
    int n = 0;
    for (int i = 0; i < pool->cohorts; i++) {
        n += pool->cohort[i]->active;
    }
    return n;
}

int ho_pool_waiting_lanes(const ho_pool *pool)
{
    int n = 0;
    for (int i = 0; i < pool->entries; i++) {
        n += pool->entry[i].failed ? 0 : waiting_lanes(pool->entry[i].run);
    }
    return n;
}

/* Lanes that must start in one epoch: the trial, or a fold of it, or one. */
static int group_size(const ho_trial_plan *plan, int capacity)
{
    if (plan->lanes <= capacity) {
        return plan->lanes;
    }
    return plan->seeds <= capacity ? plan->seeds : 1;
}

static ho_status start_lane(struct cohort *cohort, ho_trial_run *run, int lane, ho_err *err)
{
    ho_lane_run *state = &run->lane[lane];
    int slot = 0;
    while (cohort->slot[slot].run) {
        slot++;
    }
    ho_status rc = HO_OK;
    if (state->blob) {
        rc = ho_lane_restore(cohort->cohort, slot, &run->plan->lane[lane], state->blob,
                             state->blob_size, err);
        free(state->blob);
        state->blob = NULL;
    } else {
        ho_lane_config config = run->plan->lane[lane];
        config.weights = state->prepared ? ho_prepared_wait(state->prepared) : NULL;
        rc = ho_lane_start(cohort->cohort, slot, &config, err);
        ho_prepared_drop(&state->prepared);
    }
    if (rc != HO_OK) {
        return rc;
    }
    cohort->slot[slot] = (struct slot){.run = run, .lane = lane};
    cohort->active++;
    state->slot = slot;
    state->phase = HO_LANE_RUNNING;
    if (run->started_ns == 0) {
        run->started_ns = monotonic_ns();
    }
    return HO_OK;
}

/* Asks for the initial weights of all lanes that wait. */
static void prepare(ho_pool *pool)
{
    for (int i = 0; i < pool->entries; i++) {
        ho_trial_run *run = pool->entry[i].run;
        for (int k = 0; !pool->entry[i].prepared && k < run->plan->lanes; k++) {
            ho_lane_run *lane = &run->lane[k];
            if (lane->phase == HO_LANE_WAITING && !lane->blob) {
                lane->prepared =
                    ho_preparer_add(pool->preparer, &run->plan->key, &run->plan->lane[k]);
            }
        }
        pool->entry[i].prepared = true;
    }
}

enum admission { ADMITTED, WAITS_FOR_SLOTS, WAITS_FOR_DEVICE };

/* Starts what fits of one trial. */
static enum admission admit_entry(ho_pool *pool, struct entry *entry)
{
    ho_err err = {0};
    ho_trial_run *run = entry->run;
    int waiting = waiting_lanes(run);
    if (waiting == 0 || entry->failed) {
        return ADMITTED;
    }
    int active = ho_pool_active_lanes(pool);
    int budget = ho_pool_lane_capacity(pool, run->plan->lanes);
    if (active > 0 && active + group_size(run->plan, budget) > budget) {
        return WAITS_FOR_DEVICE;
    }
    if (!entry->cohort) {
        ho_status rc =
            ho_pool_cohort_for(pool, &run->plan->key, run->plan->lanes, &entry->cohort, &err);
        if (rc == HO_EAGAIN) {
            return WAITS_FOR_DEVICE;
        }
        if (rc != HO_OK) {
            fail_with(pool, entry, rc, -1, &err);
            return ADMITTED;
        }
    }
    struct cohort *cohort = entry->cohort;
    int group = group_size(run->plan, cohort->capacity);
    for (int lane = 0; lane < run->plan->lanes && waiting > 0; lane++) {
        if (run->lane[lane].phase != HO_LANE_WAITING) {
            continue;
        }
        int left = min_int(group, waiting);
        if (cohort->capacity - cohort->active < left) {
            return WAITS_FOR_SLOTS;
        }
        for (int i = 0; i < left; i++, lane++) {
            ho_status rc = start_lane(cohort, run, lane, &err);
            if (rc != HO_OK) {
                fail_with(pool, entry, rc, lane, &err);
                return ADMITTED;
            }
        }
        waiting -= left;
        lane--;
    }
    return ADMITTED;
}

/* First come, first served: behind a trial that waits for slots nobody of its key may slip in,
 * behind one that waits for the device nobody at all. */
static void admit(ho_pool *pool)
{
    for (int i = 0; i < pool->entries; i++) {
        struct entry *entry = &pool->entry[i];
        entry->waits = false;
        for (int k = 0; k < i && !entry->waits; k++) {
            entry->waits =
                pool->entry[k].waits && memcmp(&pool->entry[k].run->plan->key,
                                               &entry->run->plan->key, sizeof(ho_cohort_key)) == 0;
        }
        if (entry->waits) {
            continue;
        }
        enum admission admission = admit_entry(pool, entry);
        entry->waits = admission != ADMITTED;
        if (admission == WAITS_FOR_DEVICE) {
            break;
        }
    }
}

/* ---- one epoch ----------------------------------------------------------------------------- */

static struct entry *entry_of(ho_pool *pool, const ho_trial_run *run)
{
    for (int i = 0; i < pool->entries; i++) {
        if (pool->entry[i].run == run) {
            return &pool->entry[i];
        }
    }
    return NULL;
}

static void fail_cohort(ho_pool *pool, const struct cohort *cohort, ho_status rc, const ho_err *err)
{
    for (int i = 0; i < pool->entries; i++) {
        if (pool->entry[i].cohort == cohort || rc == HO_EGPU) {
            fail_with(pool, &pool->entry[i], rc, -1, err);
        }
    }
}

static const char *guard_text(int guard)
{
    switch (guard) {
    case HO_GUARD_LOSS:
        return "the loss was not finite or above loss_ceiling";
    case HO_GUARD_GRADIENT:
        return "the gradient was not finite";
    case HO_GUARD_VANISHED:
        return "the gradient stayed below grad_floor";
    case HO_GUARD_Q:
        return "|Q| exceeded q_ceiling";
    default:
        return "the guard stopped it";
    }
}

static void fail_diverged(ho_pool *pool, const struct slot *slot, const ho_epoch_stat *stat)
{
    char reason[256];
    const ho_trial_plan *plan = slot->run->plan;
    snprintf(reason, sizeof reason, "diverged in fold %d, seed %d, epoch %d, update %lld: %s",
             plan->fold[slot->lane / plan->seeds], slot->lane % plan->seeds, stat->epoch,
             (long long)stat->guard_update, guard_text(stat->guard));
    fail_entry(pool, entry_of(pool, slot->run),
               (ho_trial_failure){.kind = HO_FAILURE_DIVERGED,
                                  .lane = slot->lane,
                                  .update = stat->guard_update,
                                  .reason = reason});
}

static bool is_validation_epoch(const ho_trial_plan *plan, int epoch, int lane)
{
    const ho_window *w = &plan->validation[lane / plan->seeds];
    return w->end > w->begin && (epoch % plan->eval_every == 0 || epoch == plan->epochs);
}

/* Slots of the cohort whose lane has just done an epoch that is scored on validation. */
static ho_status score_validation(ho_pool *pool, struct cohort *cohort, double *value, ho_err *err)
{
    ho_lane_ref *ref = calloc((size_t)cohort->capacity, sizeof *ref);
    int *where = calloc((size_t)cohort->capacity, sizeof *where);
    double *scored = calloc((size_t)cohort->capacity * HO_PLAN_OBJECTIVES, sizeof *scored);
    ho_status rc = ref && where && scored ? HO_OK : ho_err_set(err, HO_ENOMEM, "out of memory");
    int n = 0;
    for (int i = 0; rc == HO_OK && i < cohort->capacity; i++) {
        struct slot *s = &cohort->slot[i];
        if (s->run && is_validation_epoch(s->run->plan, s->run->lane[s->lane].epoch + 1, s->lane)) {
            ref[n] = (ho_lane_ref){.run = s->run, .lane = s->lane};
            where[n++] = i;
        }
    }
    if (rc == HO_OK && n > 0) {
        rc = ho_score_validation(pool->options.market, cohort->cohort, ref, n, scored, err);
    }
    for (int i = 0; rc == HO_OK && i < n; i++) {
        memcpy(value + (size_t)where[i] * HO_PLAN_OBJECTIVES,
               scored + (size_t)i * HO_PLAN_OBJECTIVES, HO_PLAN_OBJECTIVES * sizeof *value);
    }
    free(scored);
    free(where);
    free(ref);
    return rc;
}

/* Remembers the weights of the best validation epoch, for select = "best_validation". */
static ho_status keep_best(struct cohort *cohort, ho_trial_run *run, int lane, double value,
                           ho_err *err)
{
    ho_lane_run *state = &run->lane[lane];
    if (!ho_objective_better(run->plan->objective[0], value, state->best)) {
        return HO_OK;
    }
    state->best = value;
    state->best_epoch = state->epoch;
    if (!run->plan->select_best) {
        return HO_OK;
    }
    ho_tensors_free(&state->best_weights);
    return ho_lane_export(cohort->cohort, state->slot, &state->best_weights, err);
}

static ho_status note_epoch(ho_pool *pool, struct cohort *cohort, ho_err *err)
{
    size_t values = (size_t)cohort->capacity * HO_PLAN_OBJECTIVES;
    double *value = malloc(values * sizeof *value);
    if (!value) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < values; i++) {
        value[i] = NAN;
    }
    ho_status rc = score_validation(pool, cohort, value, err);
    for (int i = 0; rc == HO_OK && i < cohort->capacity; i++) {
        struct slot *s = &cohort->slot[i];
        if (!s->run) {
            continue;
        }
        int epoch = s->run->lane[s->lane].epoch + 1;
        const double *row = value + (size_t)i * HO_PLAN_OBJECTIVES;
        bool scored = is_validation_epoch(s->run->plan, epoch, s->lane);
        rc = ho_trial_run_note(s->run, s->lane, &cohort->stats[i], scored ? row : NULL, err);
        if (rc == HO_OK && scored) {
            rc = keep_best(cohort, s->run, s->lane, row[0], err);
        }
    }
    free(value);
    return rc;
}

/* Scores the test windows of lanes that have done their last epoch, and frees their slots. */
static ho_status finish_lanes(ho_pool *pool, struct cohort *cohort, ho_err *err)
{
    ho_lane_ref *ref = calloc((size_t)cohort->capacity, sizeof *ref);
    if (!ref) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    int n = 0;
    ho_status rc = HO_OK;
    for (int i = 0; rc == HO_OK && i < cohort->capacity; i++) {
        struct slot *s = &cohort->slot[i];
        if (!s->run || s->run->lane[s->lane].epoch < s->run->plan->epochs) {
            continue;
        }
        ho_lane_run *state = &s->run->lane[s->lane];
        if (state->best_weights.count > 0 && state->best_epoch < state->epoch) {
            rc = ho_lane_import(cohort->cohort, i, &state->best_weights, err);
        }
        ref[n++] = (ho_lane_ref){.run = s->run, .lane = s->lane};
    }
    if (rc == HO_OK && n > 0) {
        rc = ho_score_tests(pool->options.market, cohort->cohort, ref, n, err);
    }
    for (int i = 0; rc == HO_OK && i < n; i++) {
        ho_lane_run *state = &ref[i].run->lane[ref[i].lane];
        rc = ho_lane_export(cohort->cohort, state->slot, &state->weights, err);
        (void)ho_lane_stop(cohort->cohort, state->slot);
        cohort->slot[state->slot].run = NULL;
        cohort->active--;
        state->slot = -1;
        state->phase = HO_LANE_FINISHED;
        ho_tensors_free(&state->best_weights);
        ref[i].run->finished++;
    }
    free(ref);
    return rc;
}

/* Hands out complete rows and complete trials of this cohort. */
static void emit(ho_pool *pool, const struct cohort *cohort)
{
    const ho_pool_sink *sink = &pool->options.sink;
    for (int i = 0; i < pool->entries; i++) {
        struct entry *entry = &pool->entry[i];
        if (entry->cohort != cohort || entry->failed) {
            continue;
        }
        ho_trial_epoch row;
        while (ho_trial_run_next_row(entry->run, &row)) {
            sink->epoch(sink->user, entry->run, &row);
        }
        if (entry->run->finished == entry->run->plan->lanes) {
            entry->run->ended_ns = monotonic_ns();
            sink->finished(sink->user, entry->run);
            remove_entry(pool, i--);
        }
    }
}

static ho_status run_cohort(ho_pool *pool, struct cohort *cohort, ho_err *err)
{
    ho_status rc = ho_cohort_run_epoch(cohort->cohort, cohort->stats, err);
    for (int i = 0; rc == HO_OK && i < cohort->capacity; i++) {
        if (cohort->slot[i].run && cohort->stats[i].state == HO_LANE_DIVERGED) {
            fail_diverged(pool, &cohort->slot[i], &cohort->stats[i]);
        }
    }
    if (rc == HO_OK) {
        rc = note_epoch(pool, cohort, err);
    }
    if (rc == HO_OK) {
        rc = finish_lanes(pool, cohort, err);
    }
    if (rc != HO_OK) {
        ho_log(HO_LOG_ERROR, "cohort", "epoch failed: %s", err->text);
        fail_cohort(pool, cohort, rc, err);
        return rc;
    }
    emit(pool, cohort);
    return HO_OK;
}

ho_status ho_pool_step(ho_pool *pool, bool *worked, ho_err *err)
{
    *worked = false;
    prepare(pool);
    admit(pool);
    sweep_failed(pool);
    ho_status rc = HO_OK;
    for (int i = 0; i < pool->cohorts; i++) {
        struct cohort *cohort = pool->cohort[(pool->turn + i) % pool->cohorts];
        if (cohort->active > 0) {
            pool->turn = (pool->turn + i + 1) % pool->cohorts;
            *worked = true;
            rc = run_cohort(pool, cohort, err);
            break;
        }
    }
    sweep_failed(pool);
    return rc == HO_EGPU ? rc : HO_OK;
}

/* ---- looking in ---------------------------------------------------------------------------- */

int ho_pool_trials(const ho_pool *pool, const ho_trial_run **run, int room)
{
    int n = min_int(pool->entries, room);
    for (int i = 0; i < n; i++) {
        run[i] = pool->entry[i].run;
    }
    return n;
}

int ho_pool_keys(const ho_pool *pool, const ho_cohort_key **key, int room)
{
    int n = min_int(pool->cohorts, room);
    for (int i = 0; i < n; i++) {
        key[i] = &pool->cohort[i]->key;
    }
    return n;
}
