/* SPDX-License-Identifier: Apache-2.0
 * See feature_reference.h. */
#include "market/feature_reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/shapes.h"

typedef double series(const ho_bars *bars, int64_t t);

static double price(const ho_bars *bars, int64_t t, int column)
{
    return bars->ohlcv[t * HO_BAR_COLUMNS + column];
}

static double r(const ho_bars *b, int64_t t)
{
    if (t == 0 || price(b, t, HO_CLOSE) <= 0.0 || price(b, t - 1, HO_CLOSE) <= 0.0) {
        return 0.0;
    }
    return log(price(b, t, HO_CLOSE) / price(b, t - 1, HO_CLOSE));
}

static double close_of(const ho_bars *b, int64_t t)
{
    return price(b, t, HO_CLOSE);
}

static double volume(const ho_bars *b, int64_t t)
{
    return price(b, t, HO_VOLUME);
}

static double typical(const ho_bars *b, int64_t t)
{
    return (price(b, t, HO_HIGH) + price(b, t, HO_LOW) + price(b, t, HO_CLOSE)) / 3.0;
}

static double log_volume(const ho_bars *b, int64_t t)
{
    return log1p(volume(b, t));
}

/* Stands at its last value where the logarithm does not exist. */
static double log_range(const ho_bars *b, int64_t t)
{
    for (; t >= 0; --t) {
        double range = price(b, t, HO_HIGH) - price(b, t, HO_LOW);
        if (range > 0.0 && price(b, t, HO_CLOSE) > 0.0) {
            return log(range / price(b, t, HO_CLOSE));
        }
    }
    return 0.0;
}

static double mean(const ho_bars *b, series *x, int64_t t, int64_t n)
{
    double sum = 0.0;
    for (int64_t i = t - n + 1; i <= t; ++i) {
        sum += x(b, i);
    }
    return sum / (double)n;
}

static double moment(const ho_bars *b, series *x, int64_t t, int64_t n, int power)
{
    double m = mean(b, x, t, n), sum = 0.0;
    bool same = true;
    for (int64_t i = t - n + 1; i <= t; ++i) {
        sum += pow(x(b, i) - m, power);
        same &= x(b, i) == x(b, t);
    }
    return same ? 0.0 : sum / (double)n;
}

static double sd(const ho_bars *b, series *x, int64_t t, int64_t n)
{
    return sqrt(moment(b, x, t, n, 2));
}

static double over(double x, double y)
{
    return y != 0.0 ? x / y : 0.0;
}

static double log_over(double x, double y)
{
    return x > 0.0 && y > 0.0 ? log(x / y) : 0.0;
}

static double true_range(const ho_bars *b, int64_t t)
{
    double range = price(b, t, HO_HIGH) - price(b, t, HO_LOW);
    if (t == 0) {
        return range;
    }
    double before = close_of(b, t - 1);
    return fmax(range,
                fmax(fabs(price(b, t, HO_HIGH) - before), fabs(price(b, t, HO_LOW) - before)));
}

/* Wilder: mean of the first n values, then (n - 1 of it + the new one) / n; from bar `first`. */
static double wilder(const ho_bars *b, series *x, int64_t first, int64_t t, int n)
{
    double average = 0.0;
    for (int64_t i = first; i <= t; ++i) {
        int64_t k = i - first + 1;
        average = k <= n ? (average * (double)(k - 1) + x(b, i)) / (double)k
                         : (average * (n - 1) + x(b, i)) / n;
    }
    return average;
}

static double atr(const ho_bars *b, int64_t t)
{
    return wilder(b, true_range, 0, t, 14);
}

static double gain(const ho_bars *b, int64_t t)
{
    return fmax(close_of(b, t) - close_of(b, t - 1), 0.0);
}

static double loss(const ho_bars *b, int64_t t)
{
    return fmax(close_of(b, t - 1) - close_of(b, t), 0.0);
}

static double dm_plus(const ho_bars *b, int64_t t)
{
    double up = price(b, t, HO_HIGH) - price(b, t - 1, HO_HIGH);
    double down = price(b, t - 1, HO_LOW) - price(b, t, HO_LOW);
    return up > down && up > 0.0 ? up : 0.0;
}

static double dm_minus(const ho_bars *b, int64_t t)
{
    double up = price(b, t, HO_HIGH) - price(b, t - 1, HO_HIGH);
    double down = price(b, t - 1, HO_LOW) - price(b, t, HO_LOW);
    return down > up && down > 0.0 ? down : 0.0;
}

static double ema(const ho_bars *b, int64_t t, int n)
{
    double value = close_of(b, 0), alpha = 2.0 / (n + 1.0);
    for (int64_t i = 1; i <= t; ++i) {
        value = (1.0 - alpha) * value + alpha * close_of(b, i);
    }
    return value;
}

static double highest(const ho_bars *b, int64_t t, int n, int column, int sign)
{
    double best = price(b, t, column);
    for (int64_t i = t - n + 1; i <= t; ++i) {
        best = sign * price(b, i, column) > sign * best ? price(b, i, column) : best;
    }
    return best;
}

static double stochastic(const ho_bars *b, int64_t t)
{
    double top = highest(b, t, 14, HO_HIGH, 1), low = highest(b, t, 14, HO_LOW, -1);
    return top > low ? 100.0 * (close_of(b, t) - low) / (top - low) : 50.0;
}

static double macd_hist(const ho_bars *b, int64_t t)
{
    double fast = close_of(b, 0), slow = fast, signal = 0.0;
    for (int64_t i = 1; i <= t; ++i) {
        fast += 2.0 / 13.0 * (close_of(b, i) - fast);
        slow += 2.0 / 27.0 * (close_of(b, i) - slow);
        signal += 2.0 / 10.0 * (fast - slow - signal);
    }
    return over(fast - slow - signal, atr(b, t));
}

/* z-score over n of a series given by its last n values. */
static double z_of(const double *x, int64_t n)
{
    double m = 0.0, s = 0.0;
    bool same = true;
    for (int64_t i = 0; i < n; ++i) {
        m += x[i] / (double)n;
        same &= x[i] == x[n - 1];
    }
    for (int64_t i = 0; i < n; ++i) {
        s += (x[i] - m) * (x[i] - m) / (double)n;
    }
    return same ? 0.0 : over(x[n - 1] - m, sqrt(s));
}

static double z_series(const ho_bars *b, series *x, int64_t t, int64_t n)
{
    double *values = malloc((size_t)n * sizeof *values);
    for (int64_t i = 0; i < n; ++i) {
        values[i] = x(b, t - n + 1 + i);
    }
    double z = z_of(values, n);
    free(values);
    return z;
}

static double width(const ho_bars *b, int64_t t)
{
    return over(sd(b, close_of, t, 20), mean(b, close_of, t, 20));
}

/* ATR / c of bars t - n + 1 .. t in one walk. */
static double z_atr(const ho_bars *b, int64_t t, int64_t n)
{
    double *values = malloc((size_t)n * sizeof *values), average = 0.0;
    for (int64_t i = 0; i <= t; ++i) {
        int64_t k = i + 1;
        average = k <= 14 ? (average * (double)(k - 1) + true_range(b, i)) / (double)k
                          : (average * 13.0 + true_range(b, i)) / 14.0;
        if (i > t - n) {
            values[i - (t - n + 1)] = average / close_of(b, i);
        }
    }
    double z = z_of(values, n);
    free(values);
    return z;
}

static double adx(const ho_bars *b, int64_t t, int which)
{
    double plus = 0.0, minus = 0.0, range = 0.0, value = 0.0;
    for (int64_t i = 1; i <= t; ++i) {
        double n = i < 14 ? (double)i : 14.0;
        plus = (plus * (n - 1.0) + dm_plus(b, i)) / n;
        minus = (minus * (n - 1.0) + dm_minus(b, i)) / n;
        range = (range * (n - 1.0) + true_range(b, i)) / n;
        double di_plus = 100.0 * over(plus, range), di_minus = 100.0 * over(minus, range);
        value =
            (value * (n - 1.0) + 100.0 * over(fabs(di_plus - di_minus), di_plus + di_minus)) / n;
    }
    return which == 0 ? value : 100.0 * over(which > 0 ? plus : minus, range);
}

static double correlation(const ho_bars *b, int64_t t, int lag)
{
    double mx = mean(b, r, t, 60), my = mean(b, r, t - lag, 60), sum = 0.0;
    for (int64_t i = t - 59; i <= t; ++i) {
        sum += (r(b, i) - mx) * (r(b, i - lag) - my) / 60.0;
    }
    return over(sum, sd(b, r, t, 60) * sd(b, r, t - lag, 60));
}

static double estimator(const ho_bars *b, int64_t t, bool garman_klass)
{
    double sum = 0.0;
    for (int64_t i = t - 19; i <= t; ++i) {
        double hl = log(price(b, i, HO_HIGH) / price(b, i, HO_LOW));
        double co = log(price(b, i, HO_CLOSE) / price(b, i, HO_OPEN));
        sum += garman_klass ? 0.5 * hl * hl - (2.0 * log(2.0) - 1.0) * co * co
                            : hl * hl / (4.0 * log(2.0));
    }
    return sum > 0.0 ? sqrt(sum / 20.0) : 0.0;
}

static double vwap(const ho_bars *b, int64_t t)
{
    double money = 0.0, amount = 0.0;
    for (int64_t i = t; i >= 0 && b->session[i] == b->session[t]; --i) {
        money += typical(b, i) * volume(b, i);
        amount += volume(b, i);
    }
    return amount > 0.0 ? money / amount : close_of(b, t);
}

static double money_flow(const ho_bars *b, int64_t t)
{
    double in = 0.0, out = 0.0;
    for (int64_t i = t - 13; i <= t; ++i) {
        double now = price(b, i, HO_HIGH) + price(b, i, HO_LOW) + price(b, i, HO_CLOSE);
        double before =
            price(b, i - 1, HO_HIGH) + price(b, i - 1, HO_LOW) + price(b, i - 1, HO_CLOSE);
        double flow = typical(b, i) * volume(b, i);
        in += now > before ? flow : 0.0;
        out += now < before ? flow : 0.0;
    }
    return in + out > 0.0 ? 100.0 * in / (in + out) : 50.0;
}

double reference_feature(const ho_bars *b, const char *name, int64_t t, int64_t W)
{
    double o = price(b, t, HO_OPEN), h = price(b, t, HO_HIGH), l = price(b, t, HO_LOW);
    double c = close_of(b, t), s60 = sd(b, r, t, 60);
    int64_t minute = b->open_ns[t] / 60000000000LL % 1440;
    int64_t day = (b->open_ns[t] / 86400000000000LL + 3) % 7; /* 1970-01-01 was a Thursday */
    const char *number = strrchr(name, '_');
    int n = number ? atoi(number + 1) : 0;
    if (strncmp(name, "ret_", 4) == 0) {
        return over(mean(b, r, t, n) * n, s60 * sqrt(n));
    }
    if (strcmp(name, "body") == 0) {
        return over(c - o, h - l);
    }
    if (strcmp(name, "upper_wick") == 0) {
        return over(h - fmax(o, c), h - l);
    }
    if (strcmp(name, "lower_wick") == 0) {
        return over(fmin(o, c) - l, h - l);
    }
    if (strcmp(name, "range_z") == 0) {
        return h > l ? z_series(b, log_range, t, 240) : 0.0;
    }
    if (strcmp(name, "gap") == 0) {
        return over(log_over(o, close_of(b, t - 1)), s60);
    }
    if (strncmp(name, "vol_", 4) == 0) {
        return log_over(sd(b, r, t, n), sd(b, r, t, W));
    }
    if (strcmp(name, "parkinson_20") == 0 || strcmp(name, "garman_klass_20") == 0) {
        return log_over(estimator(b, t, name[0] == 'g'), sd(b, r, t, W));
    }
    if (strcmp(name, "atr_14") == 0) {
        return z_atr(b, t, W);
    }
    if (strncmp(name, "rsi_", 4) == 0) {
        double up = wilder(b, gain, 1, t, n), down = wilder(b, loss, 1, t, n);
        return up + down > 0.0 ? (100.0 * up / (up + down) - 50.0) / 25.0 : 0.0;
    }
    if (strcmp(name, "stoch_k_14") == 0) {
        return (stochastic(b, t) - 50.0) / 25.0;
    }
    if (strcmp(name, "stoch_d_3") == 0) {
        return ((stochastic(b, t) + stochastic(b, t - 1) + stochastic(b, t - 2)) / 3.0 - 50.0) /
               25.0;
    }
    if (strcmp(name, "macd_hist") == 0) {
        return macd_hist(b, t);
    }
    if (strcmp(name, "boll_pos_20") == 0) {
        return over(c - mean(b, close_of, t, 20), 2.0 * sd(b, close_of, t, 20));
    }
    if (strcmp(name, "boll_width_20") == 0) {
        return z_series(b, width, t, 240);
    }
    if (strncmp(name, "ema_", 4) == 0) {
        return over(c - ema(b, t, n), atr(b, t) * sqrt(n) / 4.0);
    }
    if (strcmp(name, "cci_20") == 0) {
        double m = mean(b, typical, t, 20), deviation = 0.0;
        for (int64_t i = t - 19; i <= t; ++i) {
            deviation += fabs(typical(b, i) - m) / 20.0;
        }
        return sd(b, typical, t, 20) > 0.0 ? (typical(b, t) - m) / (0.015 * deviation) / 100.0
                                           : 0.0;
    }
    if (strcmp(name, "adx_14") == 0 || strncmp(name, "di_", 3) == 0) {
        int which = name[0] == 'a' ? 0 : name[3] == 'p' ? 1 : -1;
        return (adx(b, t, which) - 25.0) / 25.0;
    }
    if (strcmp(name, "high_55") == 0) {
        return over(c - highest(b, t, 55, HO_HIGH, 1), atr(b, t));
    }
    if (strcmp(name, "low_55") == 0) {
        return over(c - highest(b, t, 55, HO_LOW, -1), atr(b, t));
    }
    if (strcmp(name, "drawdown_240") == 0) {
        return over(c / highest(b, t, 240, HO_CLOSE, 1) - 1.0, s60 * sqrt(240.0));
    }
    if (strncmp(name, "autocorr_", 9) == 0) {
        return correlation(b, t, n);
    }
    if (strcmp(name, "skew_60") == 0) {
        return over(moment(b, r, t, 60, 3), s60 * s60 * s60);
    }
    if (strcmp(name, "kurt_60") == 0) {
        return s60 > 0.0 ? (moment(b, r, t, 60, 4) / (s60 * s60 * s60 * s60) - 3.0) / 3.0 : 0.0;
    }
    if (strcmp(name, "volume_z") == 0) {
        return z_series(b, log_volume, t, 240);
    }
    if (strcmp(name, "volume_trend") == 0) {
        return log_over(mean(b, volume, t, 10), mean(b, volume, t, 60));
    }
    if (strcmp(name, "vwap_dev") == 0) {
        return over(c - vwap(b, t), atr(b, t));
    }
    if (strcmp(name, "mfi_14") == 0) {
        return (money_flow(b, t) - 50.0) / 25.0;
    }
    double angle =
        2.0 * acos(-1.0) * (name[0] == 't' ? (double)minute / 1440.0 : (double)day / 7.0);
    return strcmp(name + 3, "_sin") == 0 ? sin(angle) : cos(angle);
}
