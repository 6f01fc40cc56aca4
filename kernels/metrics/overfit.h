/* SPDX-License-Identifier: Apache-2.0
 * Overfitting statistics. All Sharpe ratios are per period, not annualised; moments are population
 * moments; kurtosis is raw (normal = 3). spec/metrics.md section 2; Bailey and Lopez de Prado
 * (2012, 2014), Bailey et al. (2017), Lo (2002). Undefined values are NaN. */
#ifndef HO_KERNELS_METRICS_OVERFIT_H
#define HO_KERNELS_METRICS_OVERFIT_H

#include <stdint.h>

#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What PSR needs of a return series. */
typedef struct ho_sharpe_moments {
    int64_t n;
    double sharpe;   /* mean / deviation (ddof 1), per period; NaN when flat or n < 2 */
    double skew;     /* population */
    double kurtosis; /* population, raw */
} ho_sharpe_moments;

/* risk_free: per period, taken off each return before anything else, so that Sharpe and PSR use
 * the same one. */
ho_sharpe_moments ho_sharpe_moments_of(const double *returns, int64_t n, double risk_free);

double ho_normal_cdf(double x);
double ho_normal_quantile(double p); /* p in (0, 1); -inf and +inf at the ends */

/* Probability that the true Sharpe ratio exceeds the benchmark. */
double ho_psr(const ho_sharpe_moments *m, double benchmark);

/* Expected largest of N independent Sharpe ratios without skill, whose variance is V; 0 for
 * N <= 1. */
double ho_expected_max_sharpe(int64_t trials, double variance);

/* PSR against the expected largest of all trials tried; NaN for a flat series. */
double ho_dsr(const ho_sharpe_moments *m, int64_t trials, double variance);

/* Observations needed for the Sharpe ratio to exceed the benchmark with this confidence; +inf when
 * it does not exceed it. */
double ho_min_track_record(const ho_sharpe_moments *m, double benchmark, double confidence);

/* Lo's factor that annualises a Sharpe ratio with autocorrelations rho[1..q-1] (rho[0] unused):
 * q / sqrt(q + 2 sum (q - k) rho_k); sqrt(q) without correlation. */
double ho_lo_eta(const double *rho, int64_t q);
/* The same with rho_k = rho^k. */
double ho_lo_eta_ar1(double rho, int64_t q);

typedef struct ho_pbo {
    int64_t splits; /* C(blocks, blocks / 2) */
    double pbo;     /* share of splits with lambda <= 0 */
    double loss;    /* share of splits in which the in-sample winner loses out of sample */
    double slope;   /* OLS of the out-of-sample performance on the in-sample one */
    double intercept;
    double *lambda;     /* [splits] logits, owned */
    double *in_sample;  /* [splits] performance of the winner, owned */
    double *out_sample; /* [splits], owned */
} ho_pbo;

/* Probability of backtest overfitting by combinatorially symmetric cross-validation.
 *   returns [T, N] of every configuration, row-major
 *   blocks  even, 2..20, at most T; rows past a multiple of blocks are left out
 * Performance is the per-period Sharpe ratio (ddof 1). Ties share the average rank; among equal
 * winners the rank is the average of theirs, so the order of columns does not matter.
 * HO_EINVAL: N < 2, bad blocks, NaN, or a column without variation in some split (err names it). */
ho_status ho_pbo_cscv(const double *returns, int64_t T, int64_t N, int blocks, ho_pbo *out,
                      ho_err *err);
void ho_pbo_free(ho_pbo *pbo);

#ifdef __cplusplus
}
#endif
#endif
