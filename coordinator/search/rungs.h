/* SPDX-License-Identifier: Apache-2.0
 * Asynchronous successive halving (Li et al., MLSys 2020), shared by `asha` and `hyperband`: rung k
 * lies at first * eta^k epochs; at each rung a trial goes on when it is among the best 1/eta of all
 * that have reached it. */
#ifndef HO_COORDINATOR_SEARCH_RUNGS_H
#define HO_COORDINATOR_SEARCH_RUNGS_H

#include "coordinator/search/reports.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_rungs {
    const char *name; /* of the pruner, for explanations */
    int64_t first;    /* epochs of rung 0 */
    int64_t eta;      /* >= 2 */
    int64_t end;      /* no rung at or past this many epochs */
    int bracket;      /* hyperband: only trials of this bracket compete; -1: all do */
    int brackets;
} ho_rungs;

/* The bracket of a trial among `brackets` with reduction eta: share of bracket b in proportion to
 * ceil(B eta^(B-1-b) / (B-b)) (Li et al., JMLR 2018), drawn by number from the study's seed. */
int ho_rungs_bracket(uint64_t seed, int64_t number, int brackets, int64_t eta);

/* Number of brackets: 1 + the whole part of log_eta(R / r), by multiplication. */
int ho_rungs_brackets(int64_t min_epochs, int64_t max_epochs, int64_t eta);

/* Decides at the last report of own; every rung newly reached is a hurdle. */
void ho_rungs_decide(ho_reports *reports, ho_reported *own, const ho_rungs *rungs,
                     ho_decision *out);

/* The paused trial that is now among the best 1/eta of the highest rung that has one. */
ho_status ho_rungs_promote(ho_reports *reports, const ho_rungs *rungs, int64_t *number,
                           ho_decision *out, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
