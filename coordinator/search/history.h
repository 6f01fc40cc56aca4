/* SPDX-License-Identifier: Apache-2.0
 * What a sampler knows: configurations in the order they were asked, and what became of them.
 * A row is a configuration; with replicates several trials share one. Losses are minimised whatever
 * the user's direction. Rows are never removed: a cancelled one only changes its state.
 *
 * 1. rows [0, count) are whole.  2. number_row maps a trial number to its row, or -1.
 * 3. seen holds a row of each distinct configuration that must not be proposed again. */
#ifndef HO_COORDINATOR_SEARCH_HISTORY_H
#define HO_COORDINATOR_SEARCH_HISTORY_H

#include "coordinator/search/sampler.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_row {
    int64_t number;      /* first trial of the row; -1: a warm start */
    ho_told_state state; /* PENDING until the last replicate was told */
    ho_told_state best;  /* best outcome among the replicates told so far */
    int asked, told;     /* replicates */
    int finished;        /* replicates behind the values: those of that outcome */
    double violation;    /* mean over them */
    double seconds;      /* mean over them; NaN: unknown */
    int64_t step;        /* the largest of them */
} ho_row;

typedef struct ho_history {
    const ho_space *space;
    int params, objectives;           /* P, M */
    int direction[HO_OBJECTIVES_MAX]; /* as ho_sampler_options */
    int replicates;
    int64_t count, room;
    ho_row *row;      /* [count] */
    double *config;   /* [count, P] */
    double *loss;     /* [count, M] */
    int64_t pending;  /* trials, not rows */
    int64_t complete; /* rows by state */
    int64_t pruned;   /* rows */
    int64_t failed;   /* rows */
    int64_t *number_row;
    bool *number_told;
    int64_t number_room;
    int64_t *seen; /* open addressing, row or -1 */
    int64_t seen_room, seen_count;
} ho_history;

ho_status ho_history_init(ho_history *history, const ho_space *space,
                          const ho_sampler_options *options, ho_err *err);
void ho_history_free(ho_history *history);

static inline double *ho_history_config(const ho_history *history, int64_t row)
{
    return &history->config[row * history->params];
}

static inline double *ho_history_loss(const ho_history *history, int64_t row)
{
    return &history->loss[row * history->objectives];
}

/* The row of a trial number, or -1. */
int64_t ho_history_row_of(const ho_history *history, int64_t number);

/* Whether this configuration is pending or finished in this study. */
bool ho_history_seen(const ho_history *history, const double *config);

/* Appends a pending row for trial `number` (-1: warm). */
ho_status ho_history_add(ho_history *history, int64_t number, const double *config, int64_t *row,
                         ho_err *err);

/* Adds a further replicate of `row`. */
ho_status ho_history_join(ho_history *history, int64_t number, int64_t row, ho_err *err);

/* Records a tell. *row is the row, *finished whether its last replicate has now been told. */
ho_status ho_history_tell(ho_history *history, int64_t number, const ho_told *told, int64_t *row,
                          bool *finished, ho_err *err);

/* As tell, for a row without a number (warm start). */
void ho_history_settle(ho_history *history, int64_t row, const ho_told *told);

#ifdef __cplusplus
}
#endif
#endif
