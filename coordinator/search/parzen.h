/* SPDX-License-Identifier: Apache-2.0
 * A Parzen estimator over configurations: a mixture of one kernel a row and a prior, each a product
 * over parameters (Bergstra et al. 2011; multivariate form: Falkner et al. 2018; bandwidth by the
 * neighbour rule: spec/search.md 3.1 items 6-9). Works on [0, 1] per numeric parameter, so that the
 * prior's density is near 1 and a kernel too far away to matter may underflow.
 *
 * A numeric kernel is a normal truncated to [0, 1]. Its width sigma is the larger gap to its
 * neighbours, at least 1 / min(100, sharpness (K + 1)) with K kernels and the prior. On a stepped
 * parameter the score uses sigma^2 + cell^2 / 12, which is the kernel spread over its cell, in
 * place of the exact mass of each cell. A parameter that is inactive in a kernel's row has the
 * prior there. A choice matches with (K+1)/(K+C), else 1/(K+C), where the count of rows behind K is
 * divided by choice_prior.
 *
 * Adding and removing a row moves O(P n) bytes of order and recomputes the widths and normalisers
 * of its neighbours only; while kernels are few and the least width still depends on their number,
 * ho_parzen_refresh recomputes all. */
#ifndef HO_COORDINATOR_SEARCH_PARZEN_H
#define HO_COORDINATOR_SEARCH_PARZEN_H

#include "coordinator/search/dim.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_parzen {
    int params;        /* P */
    const ho_dim *dim; /* [P] */
    int64_t count, room;
    int64_t *row;     /* [room] slot -> history row */
    double *at;       /* [P, room] unit position or choice index; NaN: inactive */
    double *sigma;    /* [P, room] width by the neighbour rule */
    float *mean;      /* [P, room] at, 0 where inactive */
    float *inverse;   /* [P, room] 1 / scoring width; 0: prior */
    float *log_norm;  /* [P, room] log normaliser of the scoring kernel */
    double *factor;   /* [room] log of weight and normalisers, set by refresh */
    int64_t *order;   /* [P, room] slots with the parameter active, by at */
    int64_t *active;  /* [P] how many */
    double prior;     /* weight of the prior, all weights summing to 1 */
    double *log_miss; /* [P] log of mismatch / match, choices */
    double sharpness, choice_prior;
    bool *stale; /* [P] every width has to be recomputed */
} ho_parzen;

ho_status ho_parzen_init(ho_parzen *parzen, int params, const ho_dim *dim, double sharpness,
                         double choice_prior, ho_err *err);
void ho_parzen_free(ho_parzen *parzen);

ho_status ho_parzen_add(ho_parzen *parzen, int64_t row, const double *config, ho_err *err);
/* The row must be in. */
void ho_parzen_remove(ho_parzen *parzen, int64_t row);

/* Widths, normalisers and weights. weight [count] by slot, or NULL: all 1; the prior weighs 1. */
void ho_parzen_refresh(ho_parzen *parzen, const double *weight);

/* log density of n candidates: parameter p of candidate c at unit[p * stride + c], NaN: inactive.
 * Refresh first. */
void ho_parzen_log_density(const ho_parzen *parzen, const double *unit, int stride, int n,
                           double *out);

/* Draws parameter p of a kernel (slot, or -1 for the prior) on the unit scale or as an index. */
double ho_parzen_draw(const ho_parzen *parzen, int p, int64_t slot, ho_draw *draw);

#ifdef __cplusplus
}
#endif
#endif
