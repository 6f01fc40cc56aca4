/* SPDX-License-Identifier: Apache-2.0
 * Samplers: which configuration is tried next. One interface for all kinds (spec/search.md).
 *
 * The caller asks for a configuration per trial number and tells what became of it. A proposal
 * depends only on (space, options, number, the asks and tells before it in their order): never on
 * time, threads or workers. So a study is replayed by repeating its asks and tells in order, and
 * resumed by ho_sampler_resume in place of the asks. Replay holds for the same build and machine
 * kind; a sampler has no other state to save.
 *
 * What every kind gets from here: a repeat of a pending or finished configuration is never proposed
 * (draw again, then perturb, then walk the space; then HO_EDONE), `require` holds, enqueued
 * configurations come first, replicates share one configuration, `deterministic` holds tells back.
 * One sampler belongs to one thread; nothing here blocks. */
#ifndef HO_COORDINATOR_SEARCH_SAMPLER_H
#define HO_COORDINATOR_SEARCH_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "study/space.h"
#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HO_OBJECTIVES_MAX = 8, HO_WHY_MAX = 512 };

typedef enum ho_told_state {
    HO_TOLD_PENDING,   /* asked, not yet told */
    HO_TOLD_COMPLETE,  /* value is final */
    HO_TOLD_PRUNED,    /* value is the one of the last report, at `step` */
    HO_TOLD_FAILED,    /* ran and could not be scored: the region is avoided */
    HO_TOLD_CANCELLED, /* never ran to a verdict (interrupted): as if it had not been asked */
} ho_told_state;

typedef struct ho_told {
    ho_told_state state;
    double value[HO_OBJECTIVES_MAX]; /* as the user reads them; NaN in one: told as failed */
    double violation;                /* sum of positive constraint violations; 0: feasible */
    int64_t step;                    /* pruned: epochs done */
    double seconds;                  /* cost of the trial; NaN or <= 0: unknown */
} ho_told;

typedef struct ho_sampler_options {
    const char *kind;                 /* a name of ho_sampler_kind_name */
    uint64_t seed;                    /* the study's seed */
    int objectives;                   /* 1 ... HO_OBJECTIVES_MAX */
    int direction[HO_OBJECTIVES_MAX]; /* +1 more is better, -1 less is better */
    int startup;                      /* trials before the model speaks; -1: the kind's own */
    int candidates;                   /* tpe: draws per proposal; -1: 24 */
    int population;                   /* cmaes, nsga2; -1: the kind's own */
    double sigma0;                    /* cmaes: first deviation, as a share of each range */
    double crossover;                 /* nsga2: probability of a second parent */
    double mutation;                  /* nsga2: probability per parameter; < 0: 1 / parameters */
    bool cost;                        /* tpe: prefer cheap configurations per expected gain */
    int replicates;                   /* trials per configuration, >= 1; trials k R ... k R + R-1 */
    bool deterministic;               /* proposal n sees exactly the tells of 0 ... n-1-parallel */
    int parallel;                     /* with deterministic */
} ho_sampler_options;

/* kind "tpe", one objective to maximise, startup/candidates/population -1, replicates 1. */
ho_sampler_options ho_sampler_defaults(void);

/* The table of kinds, for help and for checking the study file. */
int ho_sampler_kind_count(void);
const char *ho_sampler_kind_name(int i);
const char *ho_sampler_kind_help(int i);

typedef struct ho_sampler ho_sampler;

/* The space stays the caller's and must outlive the sampler. HO_ECONFIG: an unknown kind (err lists
 * the kinds), a kind that cannot search this space or these objectives, an option out of range. */
ho_status ho_sampler_create(ho_sampler **out, const ho_space *space,
                            const ho_sampler_options *options, ho_err *err);
void ho_sampler_destroy(ho_sampler **sampler);

/* Proposes the configuration of trial `number` into config [P] and remembers it as pending. why
 * [HO_WHY_MAX] or NULL gets one line for `hyperopt show --why`.
 * HO_EDONE: the space is exhausted, config untouched. HO_EAGAIN (deterministic only): trial
 * number-1-parallel has not been told yet. HO_EINVAL: the number was asked before. */
ho_status ho_sampler_ask(ho_sampler *sampler, int64_t number, double *config, char *why,
                         ho_err *err);

/* In place of an ask whose answer is known (resume, replay past this point, a user's own trial).
 * Leaves the sampler as the ask would have. */
ho_status ho_sampler_resume(ho_sampler *sampler, int64_t number, const double *config, ho_err *err);

/* What became of a trial. HO_EINVAL: never asked, or told before (nothing changes). */
ho_status ho_sampler_tell(ho_sampler *sampler, int64_t number, const ho_told *told, ho_err *err);

/* Puts a configuration in front of the queue's end; the next asks take them in order. A NaN in
 * an active parameter is filled by the sampler. HO_EINVAL: an illegal value, named in err. Enqueued
 * configurations may repeat earlier ones: the user asked for them. */
ho_status ho_sampler_enqueue(ho_sampler *sampler, const double *config, ho_err *err);

/* A finished trial of another study over the same parameters: the model learns from it, but the
 * configuration may be proposed again and it is no trial of this study. */
ho_status ho_sampler_warm(ho_sampler *sampler, const double *config, const ho_told *told,
                          ho_err *err);

/* Trials asked and not yet told. */
int64_t ho_sampler_pending(const ho_sampler *sampler);

#ifdef __cplusplus
}
#endif
#endif
