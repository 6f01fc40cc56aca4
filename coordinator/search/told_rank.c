/* SPDX-License-Identifier: Apache-2.0
 * The order of told trials. */
#include "coordinator/search/told_rank.h"

#include <stdlib.h>
#include <string.h>

#include "coordinator/search/pareto.h"

typedef enum row_class { CLASS_COMPLETE, CLASS_PRUNED, CLASS_INFEASIBLE, CLASS_FAILED } row_class;

/* What a row is sorted by; front and crowding with several objectives only. */
typedef struct sort_key {
    int64_t row;
    row_class class;
    int front;
    double crowding;
    const ho_row *told;
    double loss; /* the first */
} sort_key;

void ho_told_rank_free(ho_told_rank *rank)
{
    free(rank->row);
    memset(rank, 0, sizeof *rank);
}

static row_class class_of(const ho_row *r)
{
    if (r->state == HO_TOLD_FAILED) {
        return CLASS_FAILED;
    }
    if (r->violation > 0.0) {
        return CLASS_INFEASIBLE;
    }
    return r->state == HO_TOLD_PRUNED ? CLASS_PRUNED : CLASS_COMPLETE;
}

static sort_key key_of(const ho_history *history, int64_t row)
{
    sort_key key = {.row = row,
                    .class = class_of(&history->row[row]),
                    .told = &history->row[row],
                    .loss = *ho_history_loss(history, row)};

    return key;
}

static int compare(const void *a, const void *b)
{
    const sort_key *x = a, *y = b;

    if (x->class != y->class) {
        return x->class < y->class ? -1 : 1;
    }
    if (x->front != y->front) {
        return x->front < y->front ? -1 : 1;
    }
    if (x->crowding != y->crowding) {
        return x->crowding > y->crowding ? -1 : 1;
    }
    if (x->class == CLASS_INFEASIBLE && x->told->violation != y->told->violation) {
        return x->told->violation < y->told->violation ? -1 : 1;
    }
    if (x->class == CLASS_PRUNED && x->told->step != y->told->step) {
        return x->told->step > y->told->step ? -1 : 1;
    }
    if (x->class != CLASS_FAILED && x->loss != y->loss) {
        return x->loss < y->loss ? -1 : 1;
    }
    return x->row < y->row ? -1 : 1;
}

/* Ranks all rows by fronts. */
static ho_status sort_fronts(ho_told_rank *rank, const ho_history *history)
{
    ho_status rc = HO_ENOMEM;
    int objectives = history->objectives;
    size_t n = (size_t)rank->count;
    sort_key *key = malloc(n * sizeof *key);
    double *loss = malloc(n * (size_t)objectives * sizeof *loss);
    double *crowding = malloc(n * sizeof *crowding);
    int *front = malloc(n * sizeof *front);
    int64_t complete = 0, begin = 0;

    if (!key || !loss || !crowding || !front) {
        goto out;
    }
    for (size_t i = 0; i < n; i++) {
        key[i] = key_of(history, rank->row[i]);
    }
    qsort(key, n, sizeof *key, compare); /* complete ones first */
    while (complete < rank->count && key[complete].class == CLASS_COMPLETE) {
        memcpy(&loss[complete * objectives], ho_history_loss(history, key[complete].row),
               (size_t)objectives * sizeof *loss);
        complete++;
    }
    if (ho_pareto_rank(loss, complete, objectives, front) != HO_OK) {
        goto out;
    }
    for (int64_t i = 0; i < complete; i++) {
        key[i].front = front[i];
    }
    qsort(key, (size_t)complete, sizeof *key, compare);
    for (int64_t end = 1; end <= complete; end++) { /* one front at a time */
        if (end < complete && key[end].front == key[begin].front) {
            continue;
        }
        for (int64_t i = begin; i < end; i++) {
            memcpy(&loss[(i - begin) * objectives], ho_history_loss(history, key[i].row),
                   (size_t)objectives * sizeof *loss);
        }
        if (ho_pareto_crowding(loss, end - begin, objectives, crowding) != HO_OK) {
            goto out;
        }
        for (int64_t i = begin; i < end; i++) {
            key[i].crowding = crowding[i - begin];
        }
        begin = end;
    }
    qsort(key, (size_t)complete, sizeof *key, compare);
    for (size_t i = 0; i < n; i++) {
        rank->row[i] = key[i].row;
    }
    rc = HO_OK;
out:
    free(key);
    free(loss);
    free(crowding);
    free(front);
    return rc;
}

ho_status ho_told_rank_insert(ho_told_rank *rank, const ho_history *history, int64_t row,
                              ho_err *err)
{
    sort_key own = key_of(history, row);
    int64_t low = 0, high = rank->count;

    if (rank->count == rank->room) {
        int64_t room = rank->room ? 2 * rank->room : 64;
        int64_t *grown = realloc(rank->row, (size_t)room * sizeof *grown);

        if (!grown) {
            return ho_err_set(err, HO_ENOMEM, "out of memory for ranking trials");
        }
        rank->row = grown;
        rank->room = room;
    }
    if (own.class != CLASS_FAILED) {
        rank->scored++;
    }
    if (history->objectives > 1) {
        rank->row[rank->count++] = row;
        return sort_fronts(rank, history) == HO_OK
                   ? HO_OK
                   : ho_err_set(err, HO_ENOMEM, "out of memory for ranking trials");
    }
    while (low < high) {
        int64_t middle = (low + high) / 2;
        sort_key other = key_of(history, rank->row[middle]);

        if (compare(&other, &own) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    memmove(&rank->row[low + 1], &rank->row[low], (size_t)(rank->count - low) * sizeof *rank->row);
    rank->row[low] = row;
    rank->count++;
    return HO_OK;
}
