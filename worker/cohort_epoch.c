/* SPDX-License-Identifier: Apache-2.0
 * Epochs, scores and what is told of them; see cohort_pool.h. A device is given its next work
 * before the host looks at what the last gave, as far as nobody's turn depends on it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "study/log.h"
#include "worker/cohort_pool_internal.h"

/* ---- failures ------------------------------------------------------------------------------ */

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
            ho_pool_fail_with(pool, &pool->entry[i], rc, -1, err);
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

/* Trials whose lanes a score was for. */
static void fail_scored(ho_pool *pool, const ho_score *score, ho_status rc, const ho_err *err)
{
    for (int i = 0; i < pool->entries; i++) {
        bool meant = rc == HO_EGPU;
        for (int k = 0; k < score->n && !meant; k++) {
            meant = score->ref[k].run == pool->entry[i].run;
        }
        if (meant) {
            ho_pool_fail_with(pool, &pool->entry[i], rc, -1, err);
        }
    }
}

/* ---- scores -------------------------------------------------------------------------------- */

static bool is_validation_epoch(const ho_trial_plan *plan, int epoch, int lane)
{
    const ho_window *w = &plan->validation[lane / plan->seeds];
    return w->end > w->begin && (epoch % plan->eval_every == 0 || epoch == plan->epochs);
}

/* Waits for score i and gives its values to its trials; they fail if it did. */
static ho_status collect_score(ho_pool *pool, int i, ho_err *err)
{
    ho_score *score = pool->score[i];
    int64_t since = ho_pool_now_ns();
    ho_status rc = ho_score_collect(score, err);
    ho_pool_spend(&pool->times.scoring_ns, &since);
    if (rc != HO_OK) {
        ho_log(HO_LOG_ERROR, "cohort", "scores failed: %s", err->text);
        fail_scored(pool, score, rc, err);
    }
    for (int c = 0; c < pool->cohorts; c++) {
        pool->cohort[c]->judged = true;
    }
    ho_score_drop(&score);
    pool->scores--;
    memmove(&pool->score[i], &pool->score[i + 1],
            (size_t)(pool->scores - i) * sizeof pool->score[0]);
    return rc;
}

static ho_status collect_scores(ho_pool *pool, ho_err *err)
{
    ho_status rc = HO_OK;
    while (rc != HO_EGPU && pool->scores > 0) {
        rc = collect_score(pool, 0, err);
    }
    return rc == HO_EGPU ? rc : HO_OK;
}

/* Those that are there. */
static ho_status look_at_scores(ho_pool *pool, ho_err *err)
{
    ho_status rc = HO_OK;
    for (int i = 0; rc != HO_EGPU && i < pool->scores;) {
        if (ho_score_ready(pool->score[i])) {
            rc = collect_score(pool, i, err);
        } else {
            i++;
        }
    }
    return rc == HO_EGPU ? rc : HO_OK;
}

/* Scores n lanes of a cohort, beside what follows or, with `now`, at once. A device that has no
 * room for the windows beside those under way scores them one after the other. */
static ho_status score(ho_pool *pool, struct cohort *cohort, const ho_lane_ref *ref, int n,
                       bool tests, bool now, ho_err *err)
{
    if (pool->scores == pool->score_room) {
        int room = pool->score_room > 0 ? 2 * pool->score_room : 16;
        ho_score **grown = realloc(pool->score, (size_t)room * sizeof(ho_score *));
        if (!grown) {
            return ho_err_set(err, HO_ENOMEM, "out of memory for a score");
        }
        pool->score = grown;
        pool->score_room = room;
    }
    ho_score *begun = NULL;
    int64_t since = ho_pool_now_ns();
    ho_status rc = ho_score_begin(pool->options.market, cohort->cohort, ref, n, tests, &begun, err);
    ho_pool_spend(&pool->times.scoring_ns, &since);
    if (rc == HO_ENOMEM && pool->scores > 0) {
        rc = collect_scores(pool, err);
        rc = rc == HO_OK
                 ? ho_score_begin(pool->options.market, cohort->cohort, ref, n, tests, &begun, err)
                 : rc;
    }
    if (rc == HO_OK) {
        pool->score[pool->scores++] = begun;
        rc = now || !pool->overlap ? collect_score(pool, pool->scores - 1, err) : HO_OK;
    }
    return rc;
}

static void tell_rows(const ho_pool *pool, const struct entry *entry)
{
    ho_trial_epoch row;
    while (!entry->failed && ho_trial_run_next_row(entry->run, &row)) {
        pool->options.sink.epoch(pool->options.sink.user, entry->run, &row);
    }
}

/* ---- after an epoch ------------------------------------------------------------------------ */

/* Notes the epoch's statistics; ref [capacity] gets the lanes whose validation window is due. */
static ho_status note_epoch(struct cohort *cohort, ho_lane_ref *ref, int *n, bool *now, ho_err *err)
{
    ho_status rc = HO_OK;
    for (int i = 0; rc == HO_OK && i < cohort->capacity; i++) {
        const struct slot *s = &cohort->slot[i];
        if (!s->run) {
            continue;
        }
        if (!is_validation_epoch(s->run->plan, s->run->lane[s->lane].epoch + 1, s->lane)) {
            rc = ho_trial_run_note(s->run, s->lane, &cohort->stats[i], NULL, err);
            continue;
        }
        rc = ho_trial_run_await(s->run, s->lane, &cohort->stats[i], err);
        ref[(*n)++] = (ho_lane_ref){.run = s->run, .lane = s->lane};
        *now = *now || s->run->plan->select_best;
    }
    return rc;
}

/* Remembers the weights of the best validation epoch, for select = "best_validation". */
static ho_status keep_best(const struct cohort *cohort, const ho_lane_ref *ref, int n, ho_err *err)
{
    ho_status rc = HO_OK;
    for (int i = 0; rc == HO_OK && i < n; i++) {
        ho_lane_run *lane = &ref[i].run->lane[ref[i].lane];
        if (ref[i].run->plan->select_best && lane->best_epoch == lane->epoch) {
            ho_tensors_free(&lane->best_weights);
            rc = ho_lane_export(cohort->cohort, lane->slot, &lane->best_weights, err);
        }
    }
    return rc;
}

/* Begins to score the test windows of lanes that have done their last epoch, and frees their
 * slots. */
static ho_status finish_lanes(ho_pool *pool, struct cohort *cohort, ho_lane_ref *ref, ho_err *err)
{
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
        rc = score(pool, cohort, ref, n, true, false, err);
    }
    for (int i = 0; rc == HO_OK && i < n; i++) {
        ho_lane_run *state = &ref[i].run->lane[ref[i].lane];
        rc = ho_lane_export(cohort->cohort, state->slot, &state->weights, err);
        ho_pool_free_slot(cohort, state->slot);
        state->slot = -1;
        state->phase = HO_LANE_FINISHED;
        ho_tensors_free(&state->best_weights);
    }
    return rc;
}

static void fail_diverged(ho_pool *pool, const struct slot *slot, const ho_epoch_stat *stat)
{
    char reason[256];
    ho_err err = {0};
    struct entry *entry = entry_of(pool, slot->run);
    const ho_trial_plan *plan = slot->run->plan;
    snprintf(reason, sizeof reason, "diverged in fold %d, seed %d, epoch %d, update %lld: %s",
             plan->fold[slot->lane / plan->seeds], slot->lane % plan->seeds, stat->epoch,
             (long long)stat->guard_update, guard_text(stat->guard));
    if (slot->run->awaited > 0) {
        (void)collect_scores(pool, &err); /* what it has earned is told before its failure */
    }
    if (!slot->run) {
        return; /* that failed, and it with it */
    }
    tell_rows(pool, entry);
    ho_pool_fail_entry(pool, entry,
                       (ho_trial_failure){.kind = HO_FAILURE_DIVERGED,
                                          .lane = slot->lane,
                                          .update = stat->guard_update,
                                          .reason = reason});
}

static ho_status after_epoch(ho_pool *pool, struct cohort *cohort, ho_err *err)
{
    for (int i = 0; i < cohort->capacity; i++) {
        if (cohort->slot[i].run && cohort->stats[i].state == HO_LANE_DIVERGED) {
            fail_diverged(pool, &cohort->slot[i], &cohort->stats[i]);
        }
    }
    int n = 0;
    bool now = false;
    ho_lane_ref *ref = calloc((size_t)cohort->capacity, sizeof *ref);
    ho_status rc =
        ref ? note_epoch(cohort, ref, &n, &now, err) : ho_err_set(err, HO_ENOMEM, "out of memory");
    if (rc == HO_OK && n > 0) {
        rc = score(pool, cohort, ref, n, false, now, err);
        rc = rc == HO_OK && now ? keep_best(cohort, ref, n, err) : rc;
    }
    rc = rc == HO_OK ? finish_lanes(pool, cohort, ref, err) : rc;
    free(ref);
    return rc;
}

/* ---- what is told -------------------------------------------------------------------------- */

/* All windows of a trial are scored, all its rows are told: true when it has ended, too. */
static bool has_ended(ho_pool *pool, struct entry *entry, bool wait)
{
    const ho_pool_sink *sink = &pool->options.sink;
    ho_trial_run *run = entry->run;
    if (run->finished < run->plan->lanes || run->awaited > 0) {
        return false;
    }
    if (!entry->ending) {
        entry->ending = true;
        run->ended_ns = ho_pool_now_ns();
        if (sink->ending) {
            sink->ending(sink->user, run);
        }
    }
    return wait || !pool->overlap || !run->after || ho_backtest_ready(run->after);
}

/* Hands out complete rows and complete trials. */
static void emit(ho_pool *pool, bool wait)
{
    const ho_pool_sink *sink = &pool->options.sink;
    int64_t since = ho_pool_now_ns();
    for (int i = 0; i < pool->entries; i++) {
        struct entry *entry = &pool->entry[i];
        tell_rows(pool, entry);
        if (!entry->failed && has_ended(pool, entry, wait)) {
            sink->finished(sink->user, entry->run);
            ho_pool_remove_entry(pool, i--);
        }
    }
    ho_pool_spend(&pool->times.telling_ns, &since);
}

/* ---- launch and collect -------------------------------------------------------------------- */

/* Some trial's validation values are on their way, behind which it may be pruned. */
static bool verdict_due(const ho_pool *pool, const struct cohort *cohort)
{
    bool due = cohort->judged;
    for (int i = 0; i < pool->scores; i++) {
        due = due || !pool->score[i]->tests;
    }
    return due;
}

/* Whether the epoch behind the one under way depends on nothing that will be known after it: no
 * lane enters, leaves or is scored there, and no trial waits for a verdict on scores. */
static bool may_run_ahead(const ho_pool *pool, const struct cohort *cohort)
{
    if (!pool->overlap || cohort->launched >= ho_cohort_depth(cohort->cohort) || cohort->expects ||
        verdict_due(pool, cohort)) {
        return false;
    }
    for (int i = 0; i < cohort->capacity; i++) {
        const struct slot *s = &cohort->slot[i];
        if (s->leaves) {
            return false;
        }
        if (s->run) {
            int epoch = s->run->lane[s->lane].epoch + cohort->launched;
            if (epoch == s->run->plan->epochs ||
                is_validation_epoch(s->run->plan, epoch, s->lane)) {
                return false;
            }
        }
    }
    return true;
}

static ho_status launch(ho_pool *pool, struct cohort *cohort, ho_err *err)
{
    ho_status rc = ho_cohort_launch_epoch(cohort->cohort, err);
    if (rc == HO_OK) {
        cohort->launched++;
        if (pool->under_way++ == 0) {
            pool->under_way_ns = ho_pool_now_ns();
        }
    }
    return rc;
}

static ho_status epoch_failed(ho_pool *pool, const struct cohort *cohort, ho_status rc,
                              const ho_err *err)
{
    ho_log(HO_LOG_ERROR, "cohort", "epoch failed: %s", err->text);
    fail_cohort(pool, cohort, rc, err);
    return rc;
}

/* Gives a cohort its next epochs. */
static ho_status keep_busy(ho_pool *pool, struct cohort *cohort, ho_err *err)
{
    ho_status rc = HO_OK;
    bool ahead = cohort->launched > 0;
    if (cohort->launched == 0 && cohort->active > 0) {
        rc = launch(pool, cohort, err);
        ahead = rc == HO_OK;
    }
    if (ahead && cohort->active > 0 && may_run_ahead(pool, cohort)) {
        rc = launch(pool, cohort, err);
    }
    cohort->judged = false;
    return rc == HO_OK ? rc : epoch_failed(pool, cohort, rc, err);
}

static ho_status collect(ho_pool *pool, struct cohort *cohort, ho_err *err)
{
    ho_pool_times *times = &pool->times;
    int64_t since = ho_pool_now_ns();
    ho_status rc = ho_cohort_collect_epoch(cohort->cohort, cohort->stats, err);
    ho_pool_spend(&times->waiting_ns, &since);
    cohort->launched--;
    times->epochs++;
    times->lane_epochs += cohort->active;
    if (--pool->under_way == 0) {
        ho_pool_spend(&times->device_ns, &pool->under_way_ns);
    }
    if (rc == HO_OK) {
        ho_pool_measure_width(pool, cohort->active);
    }
    rc = rc == HO_OK ? after_epoch(pool, cohort, err) : rc;
    return rc == HO_OK ? rc : epoch_failed(pool, cohort, rc, err);
}

/* The next cohort that has lanes or epochs under way; NULL: none. */
static struct cohort *next_cohort(ho_pool *pool)
{
    for (int i = 0; i < pool->cohorts; i++) {
        struct cohort *cohort = pool->cohort[(pool->turn + i) % pool->cohorts];
        if (cohort->active > 0 || cohort->launched > 0) {
            pool->turn = (pool->turn + i + 1) % pool->cohorts;
            return cohort;
        }
    }
    return NULL;
}

ho_status ho_pool_run(ho_pool *pool, bool *worked, ho_err *err)
{
    struct cohort *cohort = next_cohort(pool);
    ho_status rc = HO_OK;
    for (int i = 0; i < pool->cohorts && rc != HO_EGPU; i++) {
        if (pool->overlap || pool->cohort[i] == cohort) {
            rc = keep_busy(pool, pool->cohort[i], err);
        }
    }
    emit(pool, !cohort); /* of the last step, while the device works */
    *worked = cohort || pool->scores > 0;
    if (rc != HO_EGPU && cohort && cohort->launched > 0) {
        rc = collect(pool, cohort, err);
    }
    if (rc != HO_EGPU) {
        rc = cohort ? look_at_scores(pool, err) : collect_scores(pool, err);
    }
    if (!pool->overlap || !cohort) {
        emit(pool, !cohort);
    }
    return rc;
}

static bool is_of(const ho_score *score, const ho_trial_run *run)
{
    for (int i = 0; i < score->n; i++) {
        if (score->ref[i].run == run) {
            return true;
        }
    }
    return false;
}

ho_status ho_pool_run_out(ho_pool *pool, const struct entry *entry, ho_err *err)
{
    const struct cohort *cohort = entry ? entry->cohort : NULL;
    const ho_trial_run *run = entry ? entry->run : NULL; /* entries move when one leaves */
    ho_status rc = HO_OK;
    for (int i = 0; i < pool->cohorts; i++) {
        while ((!run || pool->cohort[i] == cohort) && pool->cohort[i]->launched > 0 &&
               rc != HO_EGPU) {
            rc = collect(pool, pool->cohort[i], err);
        }
    }
    for (int i = 0; rc != HO_EGPU && i < pool->scores;) {
        if (!run || is_of(pool->score[i], run)) {
            rc = collect_score(pool, i, err);
        } else {
            i++;
        }
    }
    emit(pool, !run);
    return rc;
}
