/* SPDX-License-Identifier: Apache-2.0
 * PSR, DSR, MinTRL and Lo's factor. PBO is in pbo.c. */
#include "kernels/metrics/overfit.h"

#include <math.h>

#include "kernels/metrics/metrics.h"

#define EULER_GAMMA 0.5772156649015329
#define EULER       2.718281828459045

ho_sharpe_moments ho_sharpe_moments_of(const double *returns, int64_t n, double risk_free)
{
    ho_sharpe_moments out = {.n = n, .sharpe = NAN, .skew = NAN, .kurtosis = NAN};
    ho_moments m = {0, 0.0, 0.0};
    ho_sum third = {0.0, 0.0}, fourth = {0.0, 0.0};
    double min = INFINITY, max = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        double r = returns[i] - risk_free;
        ho_moments_add(&m, r);
        min = r < min ? r : min;
        max = r > max ? r : max;
    }
    if (n < 2 || ho_is_flat(&m, min, max)) {
        return out;
    }
    for (int64_t i = 0; i < n; i++) {
        double d = returns[i] - risk_free - m.mean;
        ho_sum_add(&third, d * d * d);
        ho_sum_add(&fourth, d * d * d * d);
    }
    double variance = m.m2 / (double)n; /* population */
    out.sharpe = m.mean / ho_moments_deviation(&m);
    out.skew = ho_sum_value(&third) / (double)n / (variance * sqrt(variance));
    out.kurtosis = ho_sum_value(&fourth) / (double)n / (variance * variance);
    return out;
}

double ho_normal_cdf(double x)
{
    return 0.5 * erfc(-x * 0.70710678118654752440);
}

/* p[7] r^7 + ... + p[0] */
static double polynomial(const double p[8], double r)
{
    double sum = p[7];
    for (int i = 6; i >= 0; i--) {
        sum = sum * r + p[i];
    }
    return sum;
}

/* Wichura (1988), algorithm AS 241, PPND16: relative error about 1e-16. */
double ho_normal_quantile(double p)
{
    static const double a[8] = {3.3871328727963666080e0,  1.3314166789178437745e+2,
                                1.9715909503065514427e+3, 1.3731693765509461125e+4,
                                4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                3.3430575583588128105e+4, 2.5090809287301226727e+3};
    static const double b[8] = {1.0,
                                4.2313330701600911252e+1,
                                6.8718700749205790830e+2,
                                5.3941960214247511077e+3,
                                2.1213794301586595867e+4,
                                3.9307895800092710610e+4,
                                2.8729085735721942674e+4,
                                5.2264952788528545610e+3};
    static const double c[8] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                5.76949722146069140550e0,  3.64784832476320460504e0,
                                1.27045825245236838258e0,  2.41780725177450611770e-1,
                                2.27238449892691845833e-2, 7.74545014278341407640e-4};
    static const double d[8] = {1.0,
                                2.05319162663775882187e0,
                                1.67638483018380384940e0,
                                6.89767334985100004550e-1,
                                1.48103976427480074590e-1,
                                1.51986665636164571966e-2,
                                5.47593808499534494600e-4,
                                1.05075007164441684324e-9};
    static const double e[8] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                                1.78482653991729133580e0,  2.96560571828504891230e-1,
                                2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                2.71155556874348757815e-5, 2.01033439929228813265e-7};
    static const double f[8] = {1.0,
                                5.99832206555887937690e-1,
                                1.36929880922735805310e-1,
                                1.48753612908506148525e-2,
                                7.86869131145613259100e-4,
                                1.84631831751005468180e-5,
                                1.42151175831644588870e-7,
                                2.04426310338993978564e-15};
    if (!(p > 0.0 && p < 1.0)) {
        return p == 0.0 ? -INFINITY : p == 1.0 ? INFINITY : NAN;
    }
    double q = p - 0.5;
    if (fabs(q) <= 0.425) {
        double r = 0.180625 - q * q;
        return q * polynomial(a, r) / polynomial(b, r);
    }
    double r = sqrt(-log(q < 0.0 ? p : 1.0 - p));
    double x = r <= 5.0 ? polynomial(c, r - 1.6) / polynomial(d, r - 1.6)
                        : polynomial(e, r - 5.0) / polynomial(f, r - 5.0);
    return q < 0.0 ? -x : x;
}

/* 1 - skew * SR + (kurtosis - 1) / 4 * SR^2; NaN when it is not positive */
static double sharpe_variance(const ho_sharpe_moments *m)
{
    double v = 1.0 - m->skew * m->sharpe + (m->kurtosis - 1.0) / 4.0 * m->sharpe * m->sharpe;
    return v > 0.0 ? v : NAN;
}

double ho_psr(const ho_sharpe_moments *m, double benchmark)
{
    return ho_normal_cdf((m->sharpe - benchmark) * sqrt((double)(m->n - 1)) /
                         sqrt(sharpe_variance(m)));
}

double ho_expected_max_sharpe(int64_t trials, double variance)
{
    if (trials <= 1) {
        return 0.0;
    }
    double n = (double)trials;
    return sqrt(variance) * ((1.0 - EULER_GAMMA) * ho_normal_quantile(1.0 - 1.0 / n) +
                             EULER_GAMMA * ho_normal_quantile(1.0 - 1.0 / (n * EULER)));
}

double ho_dsr(const ho_sharpe_moments *m, int64_t trials, double variance)
{
    return ho_psr(m, ho_expected_max_sharpe(trials, variance));
}

double ho_min_track_record(const ho_sharpe_moments *m, double benchmark, double confidence)
{
    double above = m->sharpe - benchmark;
    if (above <= 0.0) {
        return INFINITY;
    }
    double z = ho_normal_quantile(confidence) / above;
    return 1.0 + sharpe_variance(m) * z * z;
}

double ho_lo_eta(const double *rho, int64_t q)
{
    ho_sum sum = {0.0, 0.0};
    for (int64_t k = 1; k < q; k++) {
        ho_sum_add(&sum, (double)(q - k) * rho[k]);
    }
    return (double)q / sqrt((double)q + 2.0 * ho_sum_value(&sum));
}

double ho_lo_eta_ar1(double rho, int64_t q)
{
    ho_sum sum = {0.0, 0.0};
    double power = 1.0;
    for (int64_t k = 1; k < q; k++) {
        power *= rho;
        ho_sum_add(&sum, (double)(q - k) * power);
    }
    return (double)q / sqrt((double)q + 2.0 * ho_sum_value(&sum));
}
