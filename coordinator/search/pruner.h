/* SPDX-License-Identifier: Apache-2.0
 * Pruners: whether a running trial is worth its next epochs. One interface for all kinds
 * (spec/search.md).
 *
 * The caller reports each validation value in the order it arrives and says when a trial ends; the
 * verdict depends only on that order. Resuming is reporting the stored values again, in order. With
 * several objectives "better" means a better non-domination rank among the competitors.
 * A step is the number of epochs done (>= 1); for `wilcoxon` without values by fold it is the fold
 * (>= 0).
 * One pruner belongs to one thread; nothing here blocks. */
#ifndef HO_COORDINATOR_SEARCH_PRUNER_H
#define HO_COORDINATOR_SEARCH_PRUNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coordinator/search/sampler.h"
#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ho_verdict {
    HO_VERDICT_CONTINUE,
    HO_VERDICT_PRUNE,
    HO_VERDICT_PAUSE, /* asha with promote: keep a checkpoint, give the slot back */
} ho_verdict;

typedef struct ho_pruner_options {
    const char *kind;
    const char *inner; /* patient: the pruner that speaks once patience is spent */
    uint64_t seed;
    int objectives;
    int direction[HO_OBJECTIVES_MAX]; /* +1 more is better, -1 less is better */
    int64_t max_epochs;               /* of a whole trial: hyperband's R, asha's last rung */
    int64_t min_epochs;  /* never pruned before this many; asha, hyperband: first rung */
    int reduction;       /* asha, hyperband: eta >= 2 */
    bool promote;        /* asha: pause and promote instead of stopping */
    double percentile;   /* percentile: the share that stays, 0 ... 100 */
    int startup;         /* median, percentile: complete trials before the first cut */
    int64_t interval;    /* median, percentile: epochs between checks, >= 1 */
    int64_t min_trials;  /* median, percentile: values needed for a comparison */
    int64_t bootstrap;   /* asha, hyperband: values a rung holds before any passes */
    double p;            /* wilcoxon: prune below this p-value */
    double lower, upper; /* threshold: legal range of the first objective */
    int64_t patience;    /* patient: reports without improvement */
    double min_delta;    /* patient: what counts as an improvement */
    bool deterministic;  /* trial n is compared with 0 ... n-1-parallel only */
    int parallel;
} ho_pruner_options;

/* kind "none", reduction 3, min_epochs 1, max_epochs 1, percentile 50, startup 5, interval 1, p
 * 0.1, bounds at infinity, patience 5; one objective to maximise. */
ho_pruner_options ho_pruner_defaults(void);

int ho_pruner_kind_count(void);
const char *ho_pruner_kind_name(int i);
const char *ho_pruner_kind_help(int i);

/* What `show --why` and the report table need of one decision. */
typedef struct ho_decision {
    ho_verdict verdict;
    bool compared;       /* false: nothing to compare with yet, or not a step to decide at */
    int rung;            /* asha, hyperband: rung index; others: -1 */
    int bracket;         /* hyperband: bracket; others: -1 */
    int64_t competitors; /* values compared with, own not counted */
    double score;        /* own value (or rank) that was compared */
    double threshold;    /* what it had to reach; NaN when nothing was compared */
    char why[HO_WHY_MAX];
} ho_decision;

typedef struct ho_pruner ho_pruner;

/* HO_ECONFIG: unknown kind (err lists the kinds) or an option out of range. */
ho_status ho_pruner_create(ho_pruner **out, const ho_pruner_options *options, ho_err *err);
void ho_pruner_destroy(ho_pruner **pruner);

/* Records value [objectives] of a trial at a step and decides. A second report of the same step is
 * ignored: CONTINUE, "reported before". NaN counts as worst; a NaN alone prunes where the kind
 * compares single values, and never ends a racing trial. */
ho_status ho_pruner_report(ho_pruner *pruner, int64_t number, int64_t step, const double *value,
                           ho_decision *out, ho_err *err);

/* As ho_pruner_report, with the first objective by fold [folds] as well (NaN: not run); `wilcoxon`
 * compares those at the same step. folds <= 1 or NULL: not known by fold. */
ho_status ho_pruner_report_folds(ho_pruner *pruner, int64_t number, int64_t step,
                                 const double *value, const double *fold_value, int folds,
                                 ho_decision *out, ho_err *err);

/* What stands for a trial that is ended now: its last values; where each report is of another fold
 * (`wilcoxon` without values by fold) their mean. value [objectives]; left as it is for a trial
 * that has not reported. */
void ho_pruner_value(const ho_pruner *pruner, int64_t number, double *value);

/* The trial ended; reports of it may still be compared with. PENDING and unknown numbers are
 * HO_EINVAL. FAILED and CANCELLED trials stop being competitors. */
ho_status ho_pruner_finish(ho_pruner *pruner, int64_t number, ho_told_state state, ho_err *err);

/* The trial is running though its last verdict was PAUSE: after a resume, for a trial that had been
 * promoted and has not reported since. HO_EINVAL: no such trial. */
ho_status ho_pruner_unpause(ho_pruner *pruner, int64_t number, ho_err *err);

/* asha with promote: the paused trial that should go on next, best rung first. HO_EDONE: none. A
 * promoted trial is no longer paused. */
ho_status ho_pruner_promote(ho_pruner *pruner, int64_t *number, ho_decision *out, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
