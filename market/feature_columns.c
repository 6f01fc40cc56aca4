/* SPDX-License-Identifier: Apache-2.0
 * The column functions of the feature table; the formulas stand in features.c. Each writes rows
 * [begin, end) and reads rows [run->first, end) only. Indicators with memory (Wilder averages,
 * EMAs) keep it in run->carry between blocks. Sources: J. W. Wilder, New Concepts in Technical
 * Trading Systems (1978): RSI, ATR, DI, ADX; Parkinson (1980); Garman and Klass (1980). */
#include <math.h>

#include "market/feature_run.h"
#include "market/rolling.h"

#define BAR(series, t) ((series) + (t)*HO_BAR_COLUMNS)

static void fill_zero(int64_t begin, int64_t end, float *out, int stride)
{
    for (int64_t t = begin; t < end; ++t) {
        out[(t - begin) * stride] = 0.0f;
    }
}

/* z-score of x over n. */
static void z_score(ho_feature_run *run, const double *x, int64_t n, int64_t begin, int64_t end,
                    float *out, int stride)
{
    ho_rolling_moments(x, run->first, begin, end, n, run->a, run->b);
    for (int64_t i = 0; i < end - begin; ++i) {
        out[i * stride] = (float)ho_feature_ratio(x[begin + i] - run->a[i], run->b[i]);
    }
}

static double log_ratio(double x, double y)
{
    return x > 0.0 && y > 0.0 ? log(x / y) : 0.0;
}

void ho_col_ret(ho_feature_run *run, int arg, int64_t begin, int64_t end, float *out, int stride)
{
    double root = sqrt((double)arg);
    ho_rolling_sum(run->r, run->first, begin, end, arg, run->a);
    for (int64_t t = begin; t < end; ++t) {
        out[(t - begin) * stride] = (float)ho_feature_ratio(run->a[t - begin], run->sd60[t] * root);
    }
}

void ho_col_body(ho_feature_run *run, int arg, int64_t begin, int64_t end, float *out, int stride)
{
    (void)arg;
    for (int64_t t = begin; t < end; ++t) {
        const double *x = BAR(run->raw, t);
        out[(t - begin) * stride] =
            (float)ho_feature_ratio(x[HO_CLOSE] - x[HO_OPEN], x[HO_HIGH] - x[HO_LOW]);
    }
}

/* arg 1 upper, -1 lower. */
void ho_col_wick(ho_feature_run *run, int arg, int64_t begin, int64_t end, float *out, int stride)
{
    for (int64_t t = begin; t < end; ++t) {
        const double *x = BAR(run->raw, t);
        double upper = x[HO_HIGH] - fmax(x[HO_OPEN], x[HO_CLOSE]);
        double lower = fmin(x[HO_OPEN], x[HO_CLOSE]) - x[HO_LOW];
        out[(t - begin) * stride] =
            (float)ho_feature_ratio(arg > 0 ? upper : lower, x[HO_HIGH] - x[HO_LOW]);
    }
}

void ho_col_range_z(ho_feature_run *run, int arg, int64_t begin, int64_t end, float *out,
                    int stride)
{
    z_score(run, run->range, arg, begin, end, out, stride);
    for (int64_t t = begin; t < end; ++t) { /* the bar's own logarithm does not exist */
        const double *x = BAR(run->raw, t);
        if (!(x[HO_HIGH] > x[HO_LOW] && x[HO_CLOSE] > 0.0)) {
            out[(t - begin) * stride] = 0.0f;
        }
    }
}

void ho_col_gap(ho_feature_run *run, int arg, int64_t begin, int64_t end, float *out, int stride)
{
    (void)arg;
    for (int64_t t = begin; t < end; ++t) {
        double gap = 0.0;
        if (t > run->first) {
            double jump = run->bars->roll_jump ? run->bars->roll_jump[t] : 0.0;
            gap = log_ratio(BAR(run->raw, t)[HO_OPEN], BAR(run->raw, t - 1)[HO_CLOSE] + jump);
        }
        out[(t - begin) * stride] = (float)ho_feature_ratio(gap, run->sd60[t]);
    }
}

void ho_col_vol(ho_feature_run *run, int arg, int64_t begin, int64_t end, float *out, int stride)
{
    ho_rolling_moments(run->r, run->first, begin, end, arg, run->a, run->b);
    for (int64_t t = begin; t < end; ++t) {
        out[(t - begin) * stride] = (float)log_ratio(run->b[t - begin], run->sd_long[t]);
    }
}

/* arg 0 Parkinson, 1 Garman-Klass. */
void ho_col_estimator(ho_feature_run *run, int arg, int64_t begin, int64_t end, float *out,
                      int stride)
{
    enum { N = 20 };
    int64_t low = begin - N + 1 > run->first ? begin - N + 1 : run->first;
    double *term = run->a;
    for (int64_t t = low; t < end; ++t) {
        const double *x = BAR(run->raw, t);
        double hl = log_ratio(x[HO_HIGH], x[HO_LOW]), co = log_ratio(x[HO_CLOSE], x[HO_OPEN]);
        term[t - low] =
            arg == 0 ? hl * hl / (4.0 * M_LN2) : 0.5 * hl * hl - (2.0 * M_LN2 - 1.0) * co * co;
    }
    for (int64_t t = begin; t < end; ++t) {
        int64_t from = t - N + 1 > low ? t - N + 1 : low;
        double sum = 0.0;
        for (int64_t i = from; i <= t; ++i) {
            sum += term[i - low];
        }
        double mean = sum / (double)(t - from + 1);
        out[(t - begin) * stride] =
            mean > 0.0 ? (float)log_ratio(sqrt(mean), run->sd_long[t]) : 0.0f;
    }
}

void ho_col_atr(ho_feature_run *run, int arg, int64_t begin, int64_t end, float *out, int stride)
{
    (void)arg;
    z_score(run, run->atr_share, run->W, begin, end, out, stride);
}

/* carry: average gain, average loss. */
void ho_col_rsi(ho_feature_run *run, int arg, int64_t begin, int64_t end, float *out, int stride)
{
    double up = run->carry[0], down = run->carry[1];
    for (int64_t t = begin; t < end; ++t) {
        int64_t k = t - run->first; /* changes so far */
        if (k > 0) {
            double n = k < arg ? (double)k : (double)arg;
            double change = BAR(run->diff, t)[HO_CLOSE] - BAR(run->diff, t - 1)[HO_CLOSE];
            up += (fmax(change, 0.0) - up) / n;
            down += (fmax(-change, 0.0) - down) / n;
        }
        double rsi = up + down > 0.0 ? 100.0 * up / (up + down) : 50.0;
        out[(t - begin) * stride] = (float)((rsi - 50.0) / 25.0);
    }
    run->carry[0] = up;
    run->carry[1] = down;
}

/* %K of rows [low, end) into k[t - low]; 50 where the range is 0. */
static void stochastic(ho_feature_run *run, int n, int64_t low, int64_t end, double *k)
{
    ho_rolling_extreme(run->diff + HO_HIGH, HO_BAR_COLUMNS, 1, run->first, low, end, n, run->b);
    ho_rolling_extreme(run->diff + HO_LOW, HO_BAR_COLUMNS, -1, run->first, low, end, n, run->c);
    for (int64_t t = low; t < end; ++t) {
        double range = run->b[t - low] - run->c[t - low];
        double above = BAR(run->diff, t)[HO_CLOSE] - run->c[t - low];
        k[t - low] = range > 0.0 ? 100.0 * above / range : 50.0;
    }
}

void ho_col_stoch_k(ho_feature_run *run, int arg, int64_t begin, int64_t end, float *out,
                    int stride)
{
    stochastic(run, arg, begin, end, run->a);
    for (int64_t t = begin; t < end; ++t) {
        out[(t - begin) * stride] = (float)((run->a[t - begin] - 50.0) / 25.0);
    }
}

void ho_col_stoch_d(ho_feature_run *run, int arg, int64_t begin, int64_t end, float *out,
                    int stride)
{
    int64_t low = begin - 2 > run->first ? begin - 2 : run->first;
    stochastic(run, arg, low, end, run->a);
    for (int64_t t = begin; t < end; ++t) {
        int64_t from = t - 2 > low ? t - 2 : low;
        double sum = 0.0;
        for (int64_t i = from; i <= t; ++i) {
            sum += run->a[i - low];
        }
        out[(t - begin) * stride] = (float)((sum / (double)(t - from + 1) - 50.0) / 25.0);
    }
}

/* The next value of an EMA of span n. */
static double ema_next(double ema, double x, int n)
{
    return ema + (x - ema) * (2.0 / (n + 1.0));
}

/* carry: EMA_12, EMA_26, signal. */
void ho_col_macd(ho_feature_run *run, int arg, int64_t begin, int64_t end, float *out, int stride)
{
    double fast = run->carry[0], slow = run->carry[1], signal = run->carry[2];
    (void)arg;
    for (int64_t t = begin; t < end; ++t) {
        double close = BAR(run->diff, t)[HO_CLOSE];
        fast = t == run->first ? close : ema_next(fast, close, 12);
        slow = t == run->first ? close : ema_next(slow, close, 26);
        signal = t == run->first ? 0.0 : ema_next(signal, fast - slow, 9);
        out[(t - begin) * stride] = (float)ho_feature_ratio(fast - slow - signal, run->atr[t]);
    }
    run->carry[0] = fast;
    run->carry[1] = slow;
    run->carry[2] = signal;
}

void ho_col_boll_pos(ho_feature_run *run, int arg, int64_t begin, int64_t end, float *out,
                     int stride)
{
    int64_t low = begin - arg + 1 > run->first ? begin - arg + 1 : run->first;
    double *close = run->a;
    for (int64_t t = low; t < end; ++t) {
        close[t - low] = BAR(run->diff, t)[HO_CLOSE];
    }
    ho_rolling_moments(close, 0, begin - low, end - low, arg, run->b, run->c);
    for (int64_t t = begin; t < end; ++t) {
        out[(t - begin) * stride] =
            (float)ho_feature_ratio(close[t - low] - run->b[t - begin], 2.0 * run->c[t - begin]);
    }
}

void ho_col_boll_width(ho_feature_run *run, int arg, int64_t begin, int64_t end, float *out,
                       int stride)
{
    z_score(run, run->width, arg, begin, end, out, stride);
}

/* carry: the EMA. */
void ho_col_ema(ho_feature_run *run, int arg, int64_t begin, int64_t end, float *out, int stride)
{
    double ema = run->carry[0], scale = sqrt((double)arg) / 4.0;
    for (int64_t t = begin; t < end; ++t) {
        double close = BAR(run->diff, t)[HO_CLOSE];
        ema = t == run->first ? close : ema_next(ema, close, arg);
        out[(t - begin) * stride] = (float)ho_feature_ratio(close - ema, run->atr[t] * scale);
    }
    run->carry[0] = ema;
}

void ho_col_cci(ho_feature_run *run, int arg, int64_t begin, int64_t end, float *out, int stride)
{
    int64_t low = begin - arg + 1 > run->first ? begin - arg + 1 : run->first;
    double *typical = run->a;
    for (int64_t t = low; t < end; ++t) {
        const double *x = BAR(run->diff, t);
        typical[t - low] = (x[HO_HIGH] + x[HO_LOW] + x[HO_CLOSE]) / 3.0;
    }
    ho_rolling_moments(typical, 0, begin - low, end - low, arg, run->b, run->c);
    for (int64_t t = begin; t < end; ++t) {
        int64_t from = t - arg + 1 > low ? t - arg + 1 : low;
        double mean = run->b[t - begin], sum = 0.0;
        for (int64_t i = from; i <= t; ++i) {
            sum += fabs(typical[i - low] - mean);
        }
        double spread = run->c[t - begin] > 0.0 ? sum / (double)(t - from + 1) : 0.0;
        out[(t - begin) * stride] =
            (float)(ho_feature_ratio(typical[t - low] - mean, 0.015 * spread) / 100.0);
    }
}

/* arg 0 ADX, 1 DI+, -1 DI-. carry: +DM, -DM, TR, ADX. */
void ho_col_adx(ho_feature_run *run, int arg, int64_t begin, int64_t end, float *out, int stride)
{
    enum { N = 14 };
    double plus = run->carry[0], minus = run->carry[1], range = run->carry[2], adx = run->carry[3];
    for (int64_t t = begin; t < end; ++t) {
        int64_t k = t - run->first;
        if (k > 0) {
            const double *x = BAR(run->diff, t), *y = BAR(run->diff, t - 1);
            double n = k < N ? (double)k : (double)N;
            double up = x[HO_HIGH] - y[HO_HIGH], down = y[HO_LOW] - x[HO_LOW];
            double tr = fmax(x[HO_HIGH] - x[HO_LOW],
                             fmax(fabs(x[HO_HIGH] - y[HO_CLOSE]), fabs(x[HO_LOW] - y[HO_CLOSE])));
            plus += ((up > down && up > 0.0 ? up : 0.0) - plus) / n;
            minus += ((down > up && down > 0.0 ? down : 0.0) - minus) / n;
            range += (tr - range) / n;
            adx += (100.0 * ho_feature_ratio(fabs(plus - minus), plus + minus) - adx) / n;
        }
        double value = arg == 0 ? adx : 100.0 * ho_feature_ratio(arg > 0 ? plus : minus, range);
        out[(t - begin) * stride] = (float)((value - 25.0) / 25.0);
    }
    run->carry[0] = plus;
    run->carry[1] = minus;
    run->carry[2] = range;
    run->carry[3] = adx;
}

void ho_col_high(ho_feature_run *run, int arg, int64_t begin, int64_t end, float *out, int stride)
{
    ho_rolling_extreme(run->diff + HO_HIGH, HO_BAR_COLUMNS, 1, run->first, begin, end, arg, run->a);
    for (int64_t t = begin; t < end; ++t) {
        out[(t - begin) * stride] =
            (float)ho_feature_ratio(BAR(run->diff, t)[HO_CLOSE] - run->a[t - begin], run->atr[t]);
    }
}

void ho_col_low(ho_feature_run *run, int arg, int64_t begin, int64_t end, float *out, int stride)
{
    ho_rolling_extreme(run->diff + HO_LOW, HO_BAR_COLUMNS, -1, run->first, begin, end, arg, run->a);
    for (int64_t t = begin; t < end; ++t) {
        out[(t - begin) * stride] =
            (float)ho_feature_ratio(BAR(run->diff, t)[HO_CLOSE] - run->a[t - begin], run->atr[t]);
    }
}

void ho_col_drawdown(ho_feature_run *run, int arg, int64_t begin, int64_t end, float *out,
                     int stride)
{
    double root = sqrt((double)arg);
    ho_rolling_extreme(run->diff + HO_CLOSE, HO_BAR_COLUMNS, 1, run->first, begin, end, arg,
                       run->a);
    for (int64_t t = begin; t < end; ++t) {
        double top = run->a[t - begin], below = BAR(run->diff, t)[HO_CLOSE] - top;
        double level = top + (run->jumped ? run->jumped[t] : 0.0);
        out[(t - begin) * stride] =
            (float)ho_feature_ratio(level > 0.0 ? below / level : 0.0, run->sd60[t] * root);
    }
}

/* arg: the lag. Summed directly: 60 products a row cost less than guarding a sliding sum. */
void ho_col_autocorr(ho_feature_run *run, int arg, int64_t begin, int64_t end, float *out,
                     int stride)
{
    enum { N = 60 };
    for (int64_t t = begin; t < end; ++t) {
        double value = 0.0;
        if (t - arg - N + 1 >= run->first) {
            const double *x = run->r + t - N + 1, *y = x - arg;
            double mx = run->mean60[t], my = run->mean60[t - arg];
            double sum[4] = {0.0, 0.0, 0.0, 0.0};
            for (int i = 0; i < N; i += 4) {
                for (int j = 0; j < 4; ++j) {
                    sum[j] += (x[i + j] - mx) * (y[i + j] - my);
                }
            }
            value = ho_feature_ratio((sum[0] + sum[1] + sum[2] + sum[3]) / N,
                                     run->sd60[t] * run->sd60[t - arg]);
        }
        out[(t - begin) * stride] = (float)value;
    }
}

/* Central moment sums of r over the last n bars divided by sd^power. */
static double standard_moment(const ho_feature_run *run, int64_t t, int n, int power)
{
    int64_t low = t - n + 1 > run->first ? t - n + 1 : run->first;
    double mean = run->mean60[t], sum[4] = {0.0, 0.0, 0.0, 0.0};
    int64_t i = low;
    for (; i + 4 <= t + 1; i += 4) {
        for (int j = 0; j < 4; ++j) {
            double d = run->r[i + j] - mean, d2 = d * d;
            sum[j] += d2 * (power == 3 ? d : d2);
        }
    }
    for (; i <= t; ++i) {
        double d = run->r[i] - mean, d2 = d * d;
        sum[0] += d2 * (power == 3 ? d : d2);
    }
    double sd = run->sd60[t], sd2 = sd * sd;
    return ho_feature_ratio((sum[0] + sum[1] + sum[2] + sum[3]) / (double)(t - low + 1),
                            sd2 * (power == 3 ? sd : sd2));
}

void ho_col_skew(ho_feature_run *run, int arg, int64_t begin, int64_t end, float *out, int stride)
{
    for (int64_t t = begin; t < end; ++t) {
        out[(t - begin) * stride] = (float)standard_moment(run, t, arg, 3);
    }
}

void ho_col_kurt(ho_feature_run *run, int arg, int64_t begin, int64_t end, float *out, int stride)
{
    for (int64_t t = begin; t < end; ++t) {
        double kurtosis = standard_moment(run, t, arg, 4);
        out[(t - begin) * stride] = kurtosis != 0.0 ? (float)((kurtosis - 3.0) / 3.0) : 0.0f;
    }
}

void ho_col_volume_z(ho_feature_run *run, int arg, int64_t begin, int64_t end, float *out,
                     int stride)
{
    z_score(run, run->log_volume, arg, begin, end, out, stride);
}

void ho_col_volume_trend(ho_feature_run *run, int arg, int64_t begin, int64_t end, float *out,
                         int stride)
{
    enum { FAST = 10, SLOW = 60 };
    int64_t low = begin - SLOW + 1 > run->first ? begin - SLOW + 1 : run->first;
    double *volume = run->a, *fast = run->b, *slow = run->c;
    (void)arg;
    if (!run->bars->has_volume) {
        fill_zero(begin, end, out, stride);
        return;
    }
    for (int64_t t = low; t < end; ++t) {
        volume[t - low] = BAR(run->raw, t)[HO_VOLUME];
    }
    ho_rolling_moments(volume, 0, begin - low, end - low, FAST, fast, run->d);
    ho_rolling_moments(volume, 0, begin - low, end - low, SLOW, slow, run->d);
    for (int64_t i = 0; i < end - begin; ++i) {
        out[i * stride] = (float)log_ratio(fast[i], slow[i]);
    }
}

/* carry: 1 once begun, session, base price, sum of v (typical - base), sum of v. */
void ho_col_vwap(ho_feature_run *run, int arg, int64_t begin, int64_t end, float *out, int stride)
{
    double *carry = run->carry;
    (void)arg;
    if (!run->bars->has_volume) {
        fill_zero(begin, end, out, stride);
        return;
    }
    for (int64_t t = begin; t < end; ++t) {
        const double *x = BAR(run->diff, t);
        if (carry[0] == 0.0 || carry[1] != (double)run->bars->session[t]) {
            carry[0] = 1.0;
            carry[1] = (double)run->bars->session[t];
            carry[2] = x[HO_OPEN];
            carry[3] = carry[4] = 0.0;
        }
        carry[3] += x[HO_VOLUME] * ((x[HO_HIGH] + x[HO_LOW] + x[HO_CLOSE]) / 3.0 - carry[2]);
        carry[4] += x[HO_VOLUME];
        double away = carry[4] > 0.0 ? x[HO_CLOSE] - carry[2] - carry[3] / carry[4] : 0.0;
        out[(t - begin) * stride] = (float)ho_feature_ratio(away, run->atr[t]);
    }
}

void ho_col_mfi(ho_feature_run *run, int arg, int64_t begin, int64_t end, float *out, int stride)
{
    int64_t low = begin - arg + 1 > run->first ? begin - arg + 1 : run->first;
    double *flow = run->a; /* positive when the typical price rose, negative when it fell */
    if (!run->bars->has_volume) {
        fill_zero(begin, end, out, stride);
        return;
    }
    for (int64_t t = low; t < end; ++t) {
        const double *x = BAR(run->raw, t), *d = BAR(run->diff, t);
        double typical = (x[HO_HIGH] + x[HO_LOW] + x[HO_CLOSE]) / 3.0;
        double change = 0.0;
        if (t > run->first) {
            const double *y = BAR(run->diff, t - 1);
            change =
                (d[HO_HIGH] + d[HO_LOW] + d[HO_CLOSE]) - (y[HO_HIGH] + y[HO_LOW] + y[HO_CLOSE]);
        }
        double amount = typical > 0.0 ? typical * x[HO_VOLUME] : 0.0;
        flow[t - low] = change > 0.0 ? amount : change < 0.0 ? -amount : 0.0;
    }
    for (int64_t t = begin; t < end; ++t) {
        double in = 0.0, gone = 0.0;
        for (int64_t i = t - arg + 1 > low ? t - arg + 1 : low; i <= t; ++i) {
            in += flow[i - low] > 0.0 ? flow[i - low] : 0.0;
            gone -= flow[i - low] < 0.0 ? flow[i - low] : 0.0;
        }
        double mfi = in + gone > 0.0 ? 100.0 * in / (in + gone) : 50.0;
        out[(t - begin) * stride] = (float)((mfi - 50.0) / 25.0);
    }
}

/* Seconds since 1970 on the wall of the session's zone. */
static int64_t local_seconds(const ho_feature_run *run, int64_t t)
{
    int64_t s = ho_floor_div(run->bars->open_ns[t], 1000000000LL);
    return s + ho_zone_offset(run->zone, s);
}

/* arg 0 sin, 1 cos. */
void ho_col_time_of_day(ho_feature_run *run, int arg, int64_t begin, int64_t end, float *out,
                        int stride)
{
    enum { DAY = 86400 };
    for (int64_t t = begin; t < end; ++t) {
        int64_t local = local_seconds(run, t);
        double angle = 2.0 * M_PI * (double)(local - ho_floor_div(local, DAY) * DAY) / DAY;
        out[(t - begin) * stride] = (float)(arg == 0 ? sin(angle) : cos(angle));
    }
}

/* arg 0 sin, 1 cos. */
void ho_col_weekday(ho_feature_run *run, int arg, int64_t begin, int64_t end, float *out,
                    int stride)
{
    float value[7];
    for (int day = 0; day < 7; ++day) {
        double angle = 2.0 * M_PI * day / 7.0;
        value[day] = (float)(arg == 0 ? sin(angle) : cos(angle));
    }
    for (int64_t t = begin; t < end; ++t) {
        out[(t - begin) * stride] = value[ho_weekday(ho_floor_div(local_seconds(run, t), 86400))];
    }
}
