/* SPDX-License-Identifier: Apache-2.0
 * A Gaussian process with a Matern-5/2 kernel, one length scale a column (ARD), constant mean 0 and
 * noise, fitted by maximum a posteriori. Inputs on [0, 1]; a categorical column counts as equal or
 * not. LAPACK does the algebra. Priors on the inverse squared length scales, scale and noise as in
 * Optuna (spec/search.md 3.2). */
#ifndef HO_COORDINATOR_SEARCH_GP_MODEL_H
#define HO_COORDINATOR_SEARCH_GP_MODEL_H

#include <stdbool.h>

#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_gp {
    int columns; /* D */
    int n, room;
    const bool *categorical; /* [D] the caller's */
    double *x;               /* [n, D] */
    double *y;               /* [n] standardised */
    double *theta;           /* [D + 2] log inverse squared length scales, log scale, log noise */
    double *chol;            /* [n, n] lower factor of K + noise, row-major */
    double *alpha;           /* [n] (K + noise)^-1 y */
    double *work;            /* scratch */
} ho_gp;

ho_status ho_gp_init(ho_gp *gp, int columns, const bool *categorical, ho_err *err);
void ho_gp_free(ho_gp *gp);

/* Replaces the data, x [n, D], y [n], and keeps theta. */
ho_status ho_gp_set(ho_gp *gp, const double *x, const double *y, int n, ho_err *err);

/* Moves theta uphill on the log posterior by at most `steps` steps of resilient propagation (Rprop:
 * Riedmiller, Braun 1993). Call ho_gp_factor after. */
void ho_gp_fit(ho_gp *gp, int steps);

/* Factors the kernel matrix at theta. HO_EINVAL when it is not positive definite. */
ho_status ho_gp_factor(ho_gp *gp);

/* Posterior mean and variance (without noise) at one point [D]; work [n] is the caller's. */
void ho_gp_predict(const ho_gp *gp, const double *point, double *work, double *mean,
                   double *variance);

#ifdef __cplusplus
}
#endif
#endif
