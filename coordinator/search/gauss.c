/* SPDX-License-Identifier: Apache-2.0
 * The standard normal distribution. */
#include "coordinator/search/gauss.h"

#include <math.h>

static const double LOG_SQRT_2PI = 0.91893853320467274178;
static const double SQRT_HALF = 0.70710678118654752440;

double ho_gauss_pdf(double x)
{
    return exp(-0.5 * x * x - LOG_SQRT_2PI);
}

double ho_gauss_cdf(double x)
{
    return 0.5 * erfc(-x * SQRT_HALF);
}

double ho_gauss_log_cdf(double x)
{
    double inverse, term = 1.0, sum = 1.0;

    if (x > 0.0) {
        return log1p(-0.5 * erfc(x * SQRT_HALF));
    }
    if (x > -20.0) {
        return log(0.5 * erfc(-x * SQRT_HALF));
    }
    inverse = 1.0 / (x * x);
    for (int k = 1; k < 20 && fabs(term) > 1e-17; k++) {
        term *= -(2 * k - 1) * inverse;
        sum += term;
    }
    return -0.5 * x * x - log(-x) - LOG_SQRT_2PI + log(sum);
}

double ho_log_add(double a, double b)
{
    double high = fmax(a, b), low = fmin(a, b);

    return isinf(high) ? high : high + log1p(exp(low - high));
}

double ho_log_sub(double a, double b)
{
    double gap = b - a;

    if (!(gap < 0.0)) {
        return -INFINITY;
    }
    return a + (gap > -0.69314718055994531 ? log(-expm1(gap)) : log1p(-exp(gap)));
}

double ho_gauss_mass(double a, double b)
{
    if (a > 0.0) {
        return ho_gauss_mass(-b, -a);
    }
    if (b > 0.0) {
        return 1.0 - ho_gauss_cdf(a) - ho_gauss_cdf(-b);
    }
    return ho_gauss_cdf(b) - ho_gauss_cdf(a);
}

double ho_gauss_log_mass(double a, double b)
{
    if (a > 0.0) {
        return ho_gauss_log_mass(-b, -a);
    }
    if (b > 0.0) {
        return log1p(-ho_gauss_cdf(a) - ho_gauss_cdf(-b));
    }
    return ho_log_sub(ho_gauss_log_cdf(b), ho_gauss_log_cdf(a));
}

/* Acklam (2003), relative error 1.15e-9. */
static double quantile_start(double p)
{
    static const double A[] = {-3.969683028665376e+01, 2.209460984245205e+02,
                               -2.759285104469687e+02, 1.383577518672690e+02,
                               -3.066479806614716e+01, 2.506628277459239e+00};
    static const double B[] = {-5.447609879822406e+01, 1.615858368580409e+02,
                               -1.556989798598866e+02, 6.680131188771972e+01,
                               -1.328068155288572e+01};
    static const double C[] = {-7.784894002430293e-03, -3.223964580411365e-01,
                               -2.400758277161838e+00, -2.549732539343734e+00,
                               4.374664141464968e+00,  2.938163982698783e+00};
    static const double D[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                               3.754408661907416e+00};
    double q = p - 0.5, r = q * q;

    if (p < 0.02425) {
        q = sqrt(-2.0 * log(p));
        return (((((C[0] * q + C[1]) * q + C[2]) * q + C[3]) * q + C[4]) * q + C[5]) /
               ((((D[0] * q + D[1]) * q + D[2]) * q + D[3]) * q + 1.0);
    }
    return (((((A[0] * r + A[1]) * r + A[2]) * r + A[3]) * r + A[4]) * r + A[5]) * q /
           (((((B[0] * r + B[1]) * r + B[2]) * r + B[3]) * r + B[4]) * r + 1.0);
}

double ho_gauss_quantile(double p)
{
    double x, error, step;

    if (!(p > 0.0)) {
        return -INFINITY;
    }
    if (!(p < 1.0)) {
        return INFINITY;
    }
    if (p > 0.5) {
        return -ho_gauss_quantile(1.0 - p);
    }
    x = quantile_start(p);
    error = ho_gauss_cdf(x) - p;
    step = error / ho_gauss_pdf(x);
    return x - step / (1.0 + 0.5 * x * step);
}

double ho_gauss_truncated_quantile(double u, double a, double b)
{
    double x;

    if (a > 0.0) {
        return -ho_gauss_truncated_quantile(1.0 - u, -b, -a);
    }
    if (ho_gauss_log_cdf(fmin(b, 0.0)) < -600.0) { /* the whole interval is deep in the tail */
        double high = ho_gauss_log_cdf(b);
        double target = high + log(u + (1.0 - u) * exp(ho_gauss_log_cdf(a) - high));

        x = -sqrt(fmax(-2.0 * (target + LOG_SQRT_2PI), 1.0));
        for (int i = 0; i < 50; i++) { /* Newton on the log cdf */
            double log_cdf = ho_gauss_log_cdf(x);
            double slope = exp(-0.5 * x * x - LOG_SQRT_2PI - log_cdf);
            double step = (log_cdf - target) / slope;

            x -= step;
            if (fabs(step) <= 1e-12 * fabs(x)) {
                break;
            }
        }
    } else {
        double low = ho_gauss_cdf(a);

        x = ho_gauss_quantile(low + u * ho_gauss_mass(a, b));
    }
    return fmin(fmax(x, a), b);
}

double ho_gauss_log_ei(double z)
{
    double ratio;

    if (z > -1.0) {
        return log(ho_gauss_pdf(z) + z * ho_gauss_cdf(z));
    }
    if (z < -1e5) {
        return -0.5 * z * z - LOG_SQRT_2PI - 2.0 * log(-z);
    }
    /* h(z) = pdf(z) (1 - |z| cdf(z) / pdf(z)), the ratio in logs */
    ratio = log(-z) + ho_gauss_log_cdf(z) + 0.5 * z * z + LOG_SQRT_2PI;
    if (z < -20.0) { /* 1 - |z| Mills(z) = 1/z^2 - 3/z^4 + 15/z^6 - ... */
        double inverse = 1.0 / (z * z), term = inverse, sum = inverse;

        for (int k = 1; k < 12; k++) {
            term *= -(2 * k + 1) * inverse;
            sum += term;
        }
        return -0.5 * z * z - LOG_SQRT_2PI + log(sum);
    }
    return -0.5 * z * z - LOG_SQRT_2PI + log(-expm1(ratio));
}
