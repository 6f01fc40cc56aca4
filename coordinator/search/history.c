/* SPDX-License-Identifier: Apache-2.0
 * The told history: growable arrays, a map by trial number, and a hash set of configurations. */
#include "coordinator/search/history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int64_t NUMBER_LIMIT = 1000000000;

static ho_status no_memory(ho_err *err)
{
    return ho_err_set(err, HO_ENOMEM, "out of memory for the search history");
}

ho_status ho_history_init(ho_history *history, const ho_space *space,
                          const ho_sampler_options *options, ho_err *err)
{
    memset(history, 0, sizeof *history);
    history->space = space;
    history->params = space->count;
    history->objectives = options->objectives;
    history->replicates = options->replicates;
    memcpy(history->direction, options->direction, sizeof history->direction);
    history->seen_room = 64;
    history->seen = malloc((size_t)history->seen_room * sizeof *history->seen);
    if (!history->seen) {
        return no_memory(err);
    }
    memset(history->seen, 0xff, (size_t)history->seen_room * sizeof *history->seen);
    return HO_OK;
}

void ho_history_free(ho_history *history)
{
    free(history->row);
    free(history->config);
    free(history->loss);
    free(history->number_row);
    free(history->number_told);
    free(history->seen);
    memset(history, 0, sizeof *history);
}

int64_t ho_history_row_of(const ho_history *history, int64_t number)
{
    return number >= 0 && number < history->number_room ? history->number_row[number] : -1;
}

static bool same_config(const ho_history *history, const double *a, const double *b)
{
    for (int p = 0; p < history->params; p++) {
        if (isnan(a[p]) ? !isnan(b[p]) : a[p] != b[p]) {
            return false;
        }
    }
    return true;
}

/* Slot of the configuration, or the free slot where it would go. */
static int64_t seen_slot(const ho_history *history, const double *config)
{
    int64_t mask = history->seen_room - 1;
    int64_t slot = (int64_t)(ho_space_hash(history->space, config) & (uint64_t)mask);

    while (history->seen[slot] >= 0 &&
           !same_config(history, ho_history_config(history, history->seen[slot]), config)) {
        slot = (slot + 1) & mask;
    }
    return slot;
}

bool ho_history_seen(const ho_history *history, const double *config)
{
    int64_t row = history->seen[seen_slot(history, config)];

    return row >= 0 && history->row[row].state != HO_TOLD_CANCELLED;
}

static ho_status seen_grow(ho_history *history, ho_err *err)
{
    int64_t old_room = history->seen_room, *old = history->seen;
    int64_t *grown = malloc((size_t)old_room * 2 * sizeof *grown);

    if (!grown) {
        return no_memory(err);
    }
    memset(grown, 0xff, (size_t)old_room * 2 * sizeof *grown);
    history->seen = grown;
    history->seen_room = old_room * 2;
    for (int64_t i = 0; i < old_room; i++) {
        if (old[i] >= 0) {
            grown[seen_slot(history, ho_history_config(history, old[i]))] = old[i];
        }
    }
    free(old);
    return HO_OK;
}

static ho_status rows_grow(ho_history *history, ho_err *err)
{
    int64_t room = history->room ? history->room * 2 : 64;
    size_t params = history->params > 0 ? (size_t)history->params : 1;
    ho_row *row;
    double *config, *loss;

    if (!(row = realloc(history->row, (size_t)room * sizeof *row))) {
        return no_memory(err);
    }
    history->row = row;
    if (!(config = realloc(history->config, (size_t)room * params * sizeof *config))) {
        return no_memory(err);
    }
    history->config = config;
    if (!(loss = realloc(history->loss, (size_t)(room * history->objectives) * sizeof *loss))) {
        return no_memory(err);
    }
    history->loss = loss;
    history->room = room;
    return HO_OK;
}

static ho_status numbers_grow(ho_history *history, int64_t number, ho_err *err)
{
    int64_t room = history->number_room ? history->number_room : 64, *map;
    bool *told;

    if (number < 0 || number > NUMBER_LIMIT) {
        return ho_err_set(err, HO_EINVAL, "trial number %lld is out of range", (long long)number);
    }
    if (number < history->number_room) {
        return HO_OK;
    }
    while (room <= number) {
        room *= 2;
    }
    if (!(map = realloc(history->number_row, (size_t)room * sizeof *map))) {
        return no_memory(err);
    }
    history->number_row = map;
    if (!(told = realloc(history->number_told, (size_t)room * sizeof *told))) {
        return no_memory(err);
    }
    history->number_told = told;
    for (int64_t i = history->number_room; i < room; i++) {
        map[i] = -1;
        told[i] = false;
    }
    history->number_room = room;
    return HO_OK;
}

ho_status ho_history_add(ho_history *history, int64_t number, const double *config, int64_t *row,
                         ho_err *err)
{
    ho_status rc;
    ho_row *r;
    int64_t slot;

    if (number >= 0 && (rc = numbers_grow(history, number, err)) != HO_OK) {
        return rc;
    }
    if (history->count == history->room && (rc = rows_grow(history, err)) != HO_OK) {
        return rc;
    }
    if (history->seen_count * 2 >= history->seen_room && (rc = seen_grow(history, err)) != HO_OK) {
        return rc;
    }
    *row = history->count++;
    r = &history->row[*row];
    memset(r, 0, sizeof *r);
    r->number = number;
    r->seconds = NAN;
    if (history->params > 0) {
        memcpy(ho_history_config(history, *row), config, (size_t)history->params * sizeof *config);
    }
    for (int m = 0; m < history->objectives; m++) {
        ho_history_loss(history, *row)[m] = NAN;
    }
    if (number < 0) {
        return HO_OK;
    }
    r->asked = 1;
    history->number_row[number] = *row;
    history->pending++;
    slot = seen_slot(history, config);
    if (history->seen[slot] < 0) {
        history->seen_count++;
    }
    history->seen[slot] = *row; /* the newest row speaks for a configuration asked again */
    return HO_OK;
}

ho_status ho_history_join(ho_history *history, int64_t number, int64_t row, ho_err *err)
{
    ho_status rc = numbers_grow(history, number, err);

    if (rc != HO_OK) {
        return rc;
    }
    history->number_row[number] = row;
    history->row[row].asked++;
    history->pending++;
    return HO_OK;
}

/* A scored replicate outranks a pruned one, that a failed one, that a cancelled one. */
static int state_rank(ho_told_state state)
{
    switch (state) {
    case HO_TOLD_COMPLETE:
        return 4;
    case HO_TOLD_PRUNED:
        return 3;
    case HO_TOLD_FAILED:
        return 2;
    case HO_TOLD_CANCELLED:
        return 1;
    case HO_TOLD_PENDING:
        break;
    }
    return 0;
}

/* Folds one outcome into a row whose best outcome so far is `best`; returns the new best. */
static ho_told_state fold_outcome(ho_history *history, int64_t row, const ho_told *told,
                                  ho_told_state best)
{
    ho_row *r = &history->row[row];
    double *loss = ho_history_loss(history, row), share;
    ho_told_state state = told->state;

    for (int m = 0; m < history->objectives && state != HO_TOLD_CANCELLED; m++) {
        if (isnan(told->value[m])) {
            state = HO_TOLD_FAILED;
        }
    }
    if (state_rank(state) < state_rank(best)) {
        return best;
    }
    if (state_rank(state) > state_rank(best)) {
        r->finished = 0;
    }
    r->finished++;
    share = 1.0 / r->finished;
    for (int m = 0; m < history->objectives; m++) {
        double value = -history->direction[m] * told->value[m];

        if (r->finished == 1) {
            loss[m] = value;
        } else {
            loss[m] = loss[m] * (1.0 - share) + value * share; /* keeps infinities, no inf - inf */
        }
    }
    r->violation = r->finished == 1
                       ? fmax(told->violation, 0.0)
                       : r->violation * (1.0 - share) + fmax(told->violation, 0.0) * share;
    if (told->seconds > 0.0) {
        r->seconds = r->finished == 1 || isnan(r->seconds)
                         ? told->seconds
                         : r->seconds * (1.0 - share) + told->seconds * share;
    }
    if (r->finished == 1 || told->step > r->step) {
        r->step = told->step;
    }
    return state;
}

static void count_state(ho_history *history, ho_told_state state)
{
    history->complete += state == HO_TOLD_COMPLETE;
    history->pruned += state == HO_TOLD_PRUNED;
    history->failed += state == HO_TOLD_FAILED;
}

ho_status ho_history_tell(ho_history *history, int64_t number, const ho_told *told, int64_t *row,
                          bool *finished, ho_err *err)
{
    ho_row *r;

    *finished = false;
    *row = ho_history_row_of(history, number);
    if (*row < 0) {
        return ho_err_set(err, HO_EINVAL, "trial %lld was never asked", (long long)number);
    }
    if (history->number_told[number]) {
        return ho_err_set(err, HO_EINVAL, "trial %lld was told before", (long long)number);
    }
    if (told->state == HO_TOLD_PENDING) {
        return ho_err_set(err, HO_EINVAL, "trial %lld: a pending trial has no outcome",
                          (long long)number);
    }
    r = &history->row[*row];
    history->number_told[number] = true;
    history->pending--;
    r->told++;
    r->best = fold_outcome(history, *row, told, r->best);
    if (r->told < r->asked || r->asked < history->replicates) {
        return HO_OK;
    }
    r->state = r->best;
    count_state(history, r->state);
    *finished = true;
    return HO_OK;
}

void ho_history_settle(ho_history *history, int64_t row, const ho_told *told)
{
    ho_row *r = &history->row[row];

    r->best = fold_outcome(history, row, told, HO_TOLD_PENDING);
    r->state = r->best;
    count_state(history, r->state);
}
