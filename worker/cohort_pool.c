/* SPDX-License-Identifier: Apache-2.0
 * Trials, slots and admission; see cohort_pool.h. Epochs run in cohort_epoch.c, cohorts are made in
 * cohort_room.c, windows are scored in lane_score.c. */
#include "worker/cohort_pool_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "study/log.h"
#include "worker/checkpoint.h"

int64_t ho_pool_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void ho_pool_spend(int64_t *sum, int64_t *since)
{
    int64_t now = ho_pool_now_ns();
    *sum += now - *since;
    *since = now;
}

ho_pool_times ho_pool_spent(const ho_pool *pool)
{
    return pool->times;
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
    pool->overlap = options->overlap && !pool->cpu;
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

/* Nothing of it is under way: neither epochs nor scores. */
static bool settled(const struct entry *entry)
{
    const ho_trial_run *run = entry->run;
    int left = 0;
    for (int i = 0; i < run->plan->lanes; i++) {
        left += run->lane[i].phase == HO_LANE_FINISHED;
    }
    return entry->cohort->launched == 0 && run->awaited == 0 && run->finished == left;
}

ho_status ho_pool_checkpoint(ho_pool *pool, int64_t number, int32_t attempt, bool replay,
                             void **blob, size_t *size, ho_err *err)
{
    for (int i = 0; i < pool->entries; i++) {
        const struct entry *entry = &pool->entry[i];
        if (entry->run->plan->number == number && entry->run->plan->attempt == attempt &&
            entry->cohort) {
            if (!settled(entry)) {
                return ho_err_set(err, HO_EAGAIN, "an epoch of trial %lld is under way",
                                  (long long)number);
            }
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
    if (!settled(to) || !settled(from)) {
        return ho_err_set(err, HO_EAGAIN, "an epoch of trial %lld is under way", (long long)dst);
    }
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

/* Frees the slots of a trial's running lanes; those of a cohort under way when its epochs have
 * ended. What is being scored of it is no longer asked for. */
static void stop_lanes(ho_pool *pool, struct entry *entry)
{
    for (int i = 0; i < pool->scores; i++) {
        ho_score_forget(pool->score[i], entry->run);
    }
    for (int i = 0; entry->cohort && i < entry->run->plan->lanes; i++) {
        ho_lane_run *lane = &entry->run->lane[i];
        if (lane->phase == HO_LANE_RUNNING) {
            ho_pool_free_slot(entry->cohort, lane->slot);
            lane->slot = -1;
            lane->phase = HO_LANE_FINISHED;
        }
    }
}

void ho_pool_free_slot(struct cohort *cohort, int slot)
{
    cohort->slot[slot].run = NULL;
    cohort->active--;
    if (cohort->launched > 0) {
        cohort->slot[slot].leaves = true;
    } else {
        (void)ho_lane_stop(cohort->cohort, slot);
    }
}

/* Lanes that had to wait for the end of an epoch. */
static void stop_leavers(ho_pool *pool)
{
    for (int c = 0; c < pool->cohorts; c++) {
        struct cohort *cohort = pool->cohort[c];
        for (int i = 0; cohort->launched == 0 && i < cohort->capacity; i++) {
            if (cohort->slot[i].leaves) {
                (void)ho_lane_stop(cohort->cohort, i);
                cohort->slot[i].leaves = false;
            }
        }
    }
}

void ho_pool_remove_entry(ho_pool *pool, int i)
{
    stop_lanes(pool, &pool->entry[i]);
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
    while ((*pool)->scores > 0) {
        ho_score_drop(&(*pool)->score[--(*pool)->scores]);
    }
    free((*pool)->score);
    while ((*pool)->entries > 0) {
        ho_pool_remove_entry(*pool, (*pool)->entries - 1);
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
            ho_pool_remove_entry(pool, i);
            return true;
        }
    }
    return false;
}

void ho_pool_fail_entry(ho_pool *pool, struct entry *entry, ho_trial_failure failure)
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
    stop_lanes(pool, entry);
    pool->options.sink.failed(pool->options.sink.user, entry->run, &failure);
}

void ho_pool_fail_with(ho_pool *pool, struct entry *entry, ho_status rc, int lane,
                       const ho_err *err)
{
    ho_failure_kind kind = HO_FAILURE_INTERNAL;
    if (rc == HO_EGPU) {
        kind = HO_FAILURE_DEVICE;
    } else if (rc == HO_ENOMEM) {
        kind = HO_FAILURE_OOM;
    } else if (rc == HO_EINVAL || rc == HO_ECONFIG || rc == HO_EUNSUPPORTED) {
        kind = HO_FAILURE_CONFIG;
    }
    ho_pool_fail_entry(pool, entry,
                       (ho_trial_failure){.kind = kind,
                                          .lane = lane,
                                          .fold = -1,
                                          .seed = -1,
                                          .update = -1,
                                          .reason = err->text[0] ? err->text : ho_status_text(rc)});
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
        run->started_ns = ho_pool_now_ns();
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
    if (!entry->cohort || waiting == run->plan->lanes) { /* nothing ties it to a cohort yet */
        ho_status rc =
            ho_pool_cohort_for(pool, &run->plan->key, run->plan->lanes, &entry->cohort, &err);
        if (rc == HO_EAGAIN) {
            return WAITS_FOR_DEVICE;
        }
        if (rc != HO_OK) {
            ho_pool_fail_with(pool, entry, rc, -1, &err);
            return ADMITTED;
        }
    }
    struct cohort *cohort = entry->cohort;
    int group = group_size(run->plan, cohort->capacity);
    if (cohort->launched > 0) { /* lanes enter between two epochs */
        cohort->expects |= cohort->capacity - cohort->active >= min_int(group, waiting);
        return WAITS_FOR_SLOTS;
    }
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
                ho_pool_fail_with(pool, entry, rc, lane, &err);
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
    for (int i = 0; i < pool->cohorts; i++) {
        pool->cohort[i]->expects = false;
    }
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

/* ---- one step ------------------------------------------------------------------------------ */

static void sweep_failed(ho_pool *pool)
{
    for (int i = pool->entries - 1; i >= 0; i--) {
        if (pool->entry[i].failed) {
            ho_pool_remove_entry(pool, i);
        }
    }
}

ho_status ho_pool_step(ho_pool *pool, bool *worked, ho_err *err)
{
    int64_t now = ho_pool_now_ns();
    *worked = false;
    stop_leavers(pool);
    prepare(pool);
    admit(pool);
    sweep_failed(pool);
    ho_pool_spend(&pool->times.entering_ns, &now);
    ho_status rc = ho_pool_run(pool, worked, err);
    sweep_failed(pool);
    return rc == HO_EGPU ? rc : HO_OK;
}

ho_status ho_pool_settle(ho_pool *pool, int64_t trial, ho_err *err)
{
    const struct entry *entry = trial >= 0 ? entry_numbered(pool, trial) : NULL;
    if (trial >= 0 && !entry) {
        return HO_OK;
    }
    ho_status rc = ho_pool_run_out(pool, entry, err);
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
