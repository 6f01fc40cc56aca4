/* SPDX-License-Identifier: Apache-2.0
 * The standard normal distribution, careful in the tails: nothing here loses its digits by
 * subtracting two numbers near one. */
#ifndef HO_COORDINATOR_SEARCH_GAUSS_H
#define HO_COORDINATOR_SEARCH_GAUSS_H

#ifdef __cplusplus
extern "C" {
#endif

double ho_gauss_pdf(double x);
double ho_gauss_cdf(double x);

/* log of the cdf: erfc down to -20, the asymptotic series (Abramowitz and Stegun 26.2.12) below. */
double ho_gauss_log_cdf(double x);

/* Phi(b) - Phi(a), and its logarithm, for a <= b: worked in the left tail. */
double ho_gauss_mass(double a, double b);
double ho_gauss_log_mass(double a, double b);

/* The x with cdf(x) = p; p outside (0, 1) gives -+INFINITY. Acklam's rational start and one step of
 * Halley's method: 1e-15 relative. */
double ho_gauss_quantile(double p);

/* The x in [a, b] below which lies the share u in [0, 1] of the mass between a and b. */
double ho_gauss_truncated_quantile(double u, double a, double b);

/* log(exp(a) + exp(b)), log(exp(a) - exp(b)) for a >= b. */
double ho_log_add(double a, double b);
double ho_log_sub(double a, double b);

/* log h(z) with h(z) = pdf(z) + z cdf(z): log expected improvement of a unit normal (Ament et al.,
 * NeurIPS 2023, "Unexpected improvements to expected improvement", eq. 9). */
double ho_gauss_log_ei(double z);

#ifdef __cplusplus
}
#endif
#endif
