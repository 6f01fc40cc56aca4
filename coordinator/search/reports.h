/* SPDX-License-Identifier: Apache-2.0
 * What pruners compare: the reports of every trial in the order they arrived, and what a kind of
 * pruner is. A kind is one file that fills one ho_pruner_kind, and a row in the table of pruner.c;
 * it reads the reports and decides, and has no state of its own.
 * Losses are minimised whatever the user's direction; NaN is kept. */
#ifndef HO_COORDINATOR_SEARCH_REPORTS_H
#define HO_COORDINATOR_SEARCH_REPORTS_H

#include "coordinator/search/pruner.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_reported {
    int64_t number;
    ho_told_state state; /* PENDING while it runs */
    bool paused;         /* asha with promote */
    int64_t count, room; /* reports, in order of arrival; steps increase */
    int64_t *step;       /* [count] */
    double *loss;        /* [count, M] */
    double *best;        /* [count] smallest first loss up to here, NaN ignored */
    double *fold;        /* first loss by fold of all reports, one after the other */
    int64_t *fold_end;   /* [count] end of each report's values in fold */
    int64_t fold_room;
} ho_reported;

typedef struct ho_reports {
    ho_pruner_options options;
    int64_t count, room;
    ho_reported *trial; /* [count] in order of first report */
    int64_t *index;     /* [index_room] trial number -> position, or -1 */
    int64_t index_room;
    double *score; /* [room + 1] scratch: one score a competitor, own last */
    double *loss;  /* [room + 1, M] scratch */
} ho_reports;

typedef struct ho_pruner_kind {
    const char *name;
    const char *help;
    /* NULL, or says what is wrong with the options. */
    ho_status (*check)(const ho_pruner_options *options, ho_err *err);
    /* Decides at the last report of `own`. *out comes cleared: CONTINUE, not compared. */
    void (*decide)(ho_reports *reports, ho_reported *own, ho_decision *out);
    /* NULL, or as ho_pruner_promote. */
    ho_status (*promote)(ho_reports *reports, int64_t *number, ho_decision *out, ho_err *err);
    bool steps_are_folds; /* unless reports carry values by fold */
} ho_pruner_kind;

extern const ho_pruner_kind ho_prune_none, ho_prune_median, ho_prune_percentile, ho_prune_asha,
    ho_prune_hyperband, ho_prune_wilcoxon, ho_prune_threshold, ho_prune_patient;

/* The kind of this name, or NULL. */
const ho_pruner_kind *ho_pruner_find(const char *name);

/* Whether `other` may be compared with `own`: not itself, not failed or cancelled, and under
 * deterministic order old enough. */
bool ho_reports_comparable(const ho_reports *reports, const ho_reported *own,
                           const ho_reported *other);

/* Position of the first report at `step` or later, or -1; of the report exactly there, or -1. */
int64_t ho_reports_from(const ho_reported *trial, int64_t step);
int64_t ho_reports_at(const ho_reported *trial, int64_t step);

/* Losses [M] of report i. */
const double *ho_reports_loss(const ho_reports *reports, const ho_reported *trial, int64_t i);

/* Losses by fold of report i; *folds: how many, 0 when they are not known. */
const double *ho_reports_fold(const ho_reported *trial, int64_t i, int *folds);

/* Turns the n vectors in reports->loss into reports->score [n], smaller is better: the loss itself
 * with one objective, the non-domination rank with several. NaN becomes +infinity. */
void ho_reports_score(ho_reports *reports, int64_t n);

/* Appends to out->why; cut at the end. */
void ho_decision_add(ho_decision *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#ifdef __cplusplus
}
#endif
#endif
