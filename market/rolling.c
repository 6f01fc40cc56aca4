/* SPDX-License-Identifier: Apache-2.0
 * See rolling.h. */
#include "market/rolling.h"

#include <math.h>

/* Sums around `shift` of the window's values. */
typedef struct moments {
    double shift, s1, s2;
    double peak; /* largest s2 since the sums were taken directly */
} moments;

static void take_directly(moments *m, const double *x, int64_t low, int64_t high)
{
    double sum = 0.0, least = x[low], most = x[low];
    int64_t count = high - low + 1;
    for (int64_t i = low; i <= high; ++i) {
        sum += x[i];
        least = x[i] < least ? x[i] : least;
        most = x[i] > most ? x[i] : most;
    }
    *m = (moments){.shift = least == most ? least : sum / (double)count};
    for (int64_t i = low; i <= high; ++i) {
        double d = x[i] - m->shift;
        m->s1 += d;
        m->s2 += d * d;
    }
    m->peak = m->s2;
}

void ho_rolling_moments(const double *x, int64_t first, int64_t begin, int64_t end, int64_t n,
                        double *mean, double *sd)
{
    static const double fall = 1e-6;
    moments m = {0};
    for (int64_t t = begin; t < end; ++t) {
        int64_t low = t - n + 1 > first ? t - n + 1 : first;
        double count = (double)(t - low + 1);
        if (t == begin) {
            take_directly(&m, x, low, t);
        } else {
            double in = x[t] - m.shift;
            m.s1 += in;
            m.s2 += in * in;
            if (t - n >= first) {
                double gone = x[t - n] - m.shift;
                m.s1 -= gone;
                m.s2 -= gone * gone;
            }
            m.peak = m.s2 > m.peak ? m.s2 : m.peak;
        }
        double spread = m.s2 - m.s1 * m.s1 / count; /* sum of squared deviations */
        if (spread < fall * m.peak) {
            take_directly(&m, x, low, t);
            spread = m.s2 - m.s1 * m.s1 / count;
        }
        mean[t - begin] = m.shift + m.s1 / count;
        sd[t - begin] = spread > 0.0 ? sqrt(spread / count) : 0.0;
    }
}

void ho_rolling_extreme(const double *x, int stride, int sign, int64_t first, int64_t begin,
                        int64_t end, int n, double *out)
{
    /* Rows that can still become the extreme, their values falling: head .. tail - 1. */
    enum { RING = HO_ROLLING_EXTREME_MAX + 1 };
    int64_t row[RING];
    double value[RING];
    unsigned head = 0, tail = 0;
    int64_t start = begin - n + 1 > first ? begin - n + 1 : first;
    for (int64_t t = start; t < end; ++t) {
        double v = sign * x[t * stride];
        while (tail != head && value[(tail - 1) % RING] <= v) {
            --tail;
        }
        row[tail % RING] = t;
        value[tail % RING] = v;
        ++tail;
        if (row[head % RING] <= t - n) {
            ++head;
        }
        if (t >= begin) {
            out[t - begin] = sign * value[head % RING];
        }
    }
}

void ho_rolling_sum(const double *x, int64_t first, int64_t begin, int64_t end, int64_t n,
                    double *sum)
{
    double s = 0.0;
    for (int64_t i = begin - n + 1 > first ? begin - n + 1 : first; i <= begin; ++i) {
        s += x[i];
    }
    sum[0] = s;
    for (int64_t t = begin + 1; t < end; ++t) {
        s += x[t];
        if (t - n >= first) {
            s -= x[t - n];
        }
        sum[t - begin] = s;
    }
}
