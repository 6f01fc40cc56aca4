/* SPDX-License-Identifier: Apache-2.0
 * The feature table and the run over it: the series that columns share, then every column block by
 * block, so that the rows being written stay in the cache. See features.h. */
#include "market/features.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "market/feature_run.h"
#include "market/rolling.h"

#define R(name, k)                                                                                 \
    {                                                                                              \
        name, "sum of r over " #k " bars / (sd_60(r) * sqrt(" #k "))", ho_col_ret, k,              \
            (k) > 60 ? (k) : 60                                                                    \
    }

const ho_feature ho_feature_table[HO_MARKET_FEATURES] = {
    R("ret_1", 1),
    R("ret_2", 2),
    R("ret_3", 3),
    R("ret_5", 5),
    R("ret_8", 8),
    R("ret_13", 13),
    R("ret_21", 21),
    R("ret_34", 34),
    R("ret_55", 55),
    {"body", "(c - o) / (h - l)", ho_col_body, 0, 1},
    {"upper_wick", "(h - max(o, c)) / (h - l)", ho_col_wick, 1, 1},
    {"lower_wick", "(min(o, c) - l) / (h - l)", ho_col_wick, -1, 1},
    {"range_z", "z_240(log((h - l) / c))", ho_col_range_z, 240, 240},
    {"gap", "log(o / previous c) / sd_60(r)", ho_col_gap, 0, 60},
    {"vol_10", "log(sd_10(r) / sd_W(r))", ho_col_vol, 10, 0},
    {"vol_20", "log(sd_20(r) / sd_W(r))", ho_col_vol, 20, 0},
    {"vol_60", "log(sd_60(r) / sd_W(r))", ho_col_vol, 60, 0},
    {"vol_240", "log(sd_240(r) / sd_W(r))", ho_col_vol, 240, 0},
    {"parkinson_20", "log(sqrt(mean_20(log(h / l)^2) / (4 log 2)) / sd_W(r))", ho_col_estimator, 0,
     0},
    {"garman_klass_20",
     "log(sqrt(mean_20(log(h / l)^2 / 2 - (2 log 2 - 1) log(c / o)^2)) / sd_W(r))",
     ho_col_estimator, 1, 0},
    {"atr_14", "z_W(ATR_14 / c)", ho_col_atr, 0, 0},
    {"rsi_7", "(RSI_7 - 50) / 25", ho_col_rsi, 7, 7},
    {"rsi_14", "(RSI_14 - 50) / 25", ho_col_rsi, 14, 14},
    {"stoch_k_14", "(K_14 - 50) / 25", ho_col_stoch_k, 14, 14},
    {"stoch_d_3", "(mean_3(K_14) - 50) / 25", ho_col_stoch_d, 14, 16},
    {"macd_hist", "(MACD(12, 26) - EMA_9(MACD)) / ATR_14", ho_col_macd, 0, 26},
    {"boll_pos_20", "(c - mean_20(c)) / (2 sd_20(c))", ho_col_boll_pos, 20, 20},
    {"boll_width_20", "z_240(sd_20(c) / mean_20(c))", ho_col_boll_width, 240, 260},
    {"ema_9", "(c - EMA_9) / (ATR_14 * sqrt(9) / 4)", ho_col_ema, 9, 14},
    {"ema_21", "(c - EMA_21) / (ATR_14 * sqrt(21) / 4)", ho_col_ema, 21, 21},
    {"ema_50", "(c - EMA_50) / (ATR_14 * sqrt(50) / 4)", ho_col_ema, 50, 50},
    {"ema_200", "(c - EMA_200) / (ATR_14 * sqrt(200) / 4)", ho_col_ema, 200, 200},
    {"cci_20", "CCI_20 / 100", ho_col_cci, 20, 20},
    {"adx_14", "(ADX_14 - 25) / 25", ho_col_adx, 0, 28},
    {"di_plus", "(DI+_14 - 25) / 25", ho_col_adx, 1, 14},
    {"di_minus", "(DI-_14 - 25) / 25", ho_col_adx, -1, 14},
    {"high_55", "(c - highest h of 55) / ATR_14", ho_col_high, 55, 55},
    {"low_55", "(c - lowest l of 55) / ATR_14", ho_col_low, 55, 55},
    {"drawdown_240", "(c / highest c of 240 - 1) / (sd_60(r) * sqrt(240))", ho_col_drawdown, 240,
     240},
    {"autocorr_1", "correlation of r with r one bar before, over 60", ho_col_autocorr, 1, 61},
    {"autocorr_5", "correlation of r with r five bars before, over 60", ho_col_autocorr, 5, 65},
    {"skew_60", "skewness of r over 60", ho_col_skew, 60, 60},
    {"kurt_60", "excess kurtosis of r over 60 / 3", ho_col_kurt, 60, 60},
    {"volume_z", "z_240(log(1 + v))", ho_col_volume_z, 240, 240},
    {"volume_trend", "log(mean_10(v) / mean_60(v))", ho_col_volume_trend, 0, 60},
    {"vwap_dev", "(c - VWAP of the session so far) / ATR_14", ho_col_vwap, 0, 14},
    {"mfi_14", "(MFI_14 - 50) / 25", ho_col_mfi, 14, 15},
    {"tod_sin", "sin of the time of day at the bar's open, session zone", ho_col_time_of_day, 0, 1},
    {"tod_cos", "cos of the time of day at the bar's open, session zone", ho_col_time_of_day, 1, 1},
    {"dow_sin", "sin of the weekday, session zone", ho_col_weekday, 0, 1},
    {"dow_cos", "cos of the weekday, session zone", ho_col_weekday, 1, 1},
};

void ho_feature_options_defaults(ho_feature_options *options)
{
    *options = (ho_feature_options){.extra_delay = 1};
}

int ho_feature_find(const char *name)
{
    for (int i = 0; i < HO_MARKET_FEATURES; ++i) {
        if (strcmp(ho_feature_table[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

/* ---- the columns in use ---------------------------------------------------------------------- */

/* Length of the common beginning, as a cheap nearness. */
static size_t common_prefix(const char *a, const char *b)
{
    size_t n = 0;
    while (a[n] && a[n] == b[n]) {
        ++n;
    }
    return n;
}

static ho_status choose(const ho_feature_options *options, int *column, int *count, ho_err *err)
{
    *count = options->use_count > 0 ? options->use_count : HO_MARKET_FEATURES;
    if (*count > HO_MARKET_FEATURES) {
        return ho_err_set(err, HO_EINVAL, "features.use has %d names; there are %d features",
                          *count, HO_MARKET_FEATURES);
    }
    for (int i = 0; i < *count; ++i) {
        column[i] = options->use_count > 0 ? ho_feature_find(options->use[i]) : i;
        if (column[i] < 0) {
            int best = 0;
            for (int k = 1; k < HO_MARKET_FEATURES; ++k) {
                if (common_prefix(options->use[i], ho_feature_table[k].name) >
                    common_prefix(options->use[i], ho_feature_table[best].name)) {
                    best = k;
                }
            }
            return ho_err_set(
                err, HO_EINVAL,
                "features.use: there is no feature \"%s\"; the nearest name is \"%s\"",
                options->use[i], ho_feature_table[best].name);
        }
        for (int k = 0; k < i; ++k) {
            if (column[k] == column[i]) {
                return ho_err_set(err, HO_EINVAL, "features.use names \"%s\" twice",
                                  options->use[i]);
            }
        }
    }
    return HO_OK;
}

static int64_t long_window(const ho_bars *bars, const ho_feature_options *options)
{
    static const int64_t hour_ns = 3600LL * 1000000000LL;
    if (options->long_window != 0) {
        return options->long_window;
    }
    return bars->interval_ns < hour_ns ? 1440 : 240;
}

static int64_t longest_window(const int *column, int count, int64_t W, int extra_delay)
{
    int64_t longest = extra_delay;
    for (int i = 0; i < count; ++i) {
        int64_t window = ho_feature_table[column[i]].window;
        window = window == 0 ? W : window;
        longest = window > longest ? window : longest;
    }
    return longest;
}

/* ---- shared series --------------------------------------------------------------------------- */

static void run_free(ho_feature_run *run)
{
    if (run) {
        ho_zone_free(&run->zone);
        free(run->diff_owned);
        free(run->jumped);
        free(run->r);
        free(run->mean60);
        free(run->sd60);
        free(run->sd_long);
        free(run->atr);
        free(run->range);
        free(run->atr_share);
        free(run->log_volume);
        free(run->width);
        free(run);
    }
}

static bool series_allocate(ho_feature_run *run, int64_t T)
{
    double **all[] = {&run->r,     &run->mean60,    &run->sd60,       &run->sd_long, &run->atr,
                      &run->range, &run->atr_share, &run->log_volume, &run->width};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) {
        if (!(*all[i] = malloc((size_t)T * sizeof(double)))) {
            return false;
        }
    }
    return true;
}

/* Prices less the jumps so far: an earlier bar and a later one then differ by what was traded. */
static bool roll_prices(ho_feature_run *run)
{
    const ho_bars *bars = run->bars;
    double sum = 0.0;
    run->raw = run->diff = bars->ohlcv;
    if (!bars->roll_jump) {
        return true;
    }
    run->diff_owned = malloc((size_t)bars->count * HO_BAR_COLUMNS * sizeof(double));
    run->jumped = malloc((size_t)bars->count * sizeof(double));
    if (!run->diff_owned || !run->jumped) {
        return false;
    }
    for (int64_t t = 0; t < bars->count; ++t) {
        sum += bars->roll_jump[t];
        run->jumped[t] = sum;
        for (int k = 0; k < HO_BAR_COLUMNS; ++k) {
            run->diff_owned[t * HO_BAR_COLUMNS + k] =
                bars->ohlcv[t * HO_BAR_COLUMNS + k] - (k == HO_VOLUME ? 0.0 : sum);
        }
    }
    run->diff = run->diff_owned;
    return true;
}

/* r, range, ATR and log volume of the segment [first, end). */
static void segment_bars(ho_feature_run *run, int64_t end)
{
    double previous = 0.0, last_range = 0.0, last_share = 0.0;
    for (int64_t t = run->first; t < end; ++t) {
        const double *x = run->raw + t * HO_BAR_COLUMNS, *d = run->diff + t * HO_BAR_COLUMNS;
        double range = x[HO_HIGH] - x[HO_LOW];
        double true_range = range;
        run->r[t] = 0.0;
        if (t > run->first) {
            double before = d[HO_CLOSE - HO_BAR_COLUMNS];
            double up = fabs(d[HO_HIGH] - before), down = fabs(d[HO_LOW] - before);
            double jump = run->bars->roll_jump ? run->bars->roll_jump[t] : 0.0;
            true_range = up > true_range ? up : true_range;
            true_range = down > true_range ? down : true_range;
            if (x[HO_CLOSE] > 0.0 && previous + jump > 0.0) {
                run->r[t] = log(x[HO_CLOSE] / (previous + jump));
            }
        }
        previous = x[HO_CLOSE];
        int64_t k = t - run->first;
        double smooth = k < 14 ? (double)(k + 1) : 14.0;
        run->atr[t] =
            k == 0 ? true_range : run->atr[t - 1] + (true_range - run->atr[t - 1]) / smooth;
        if (range > 0.0 && x[HO_CLOSE] > 0.0) {
            last_range = log(range / x[HO_CLOSE]);
        }
        if (x[HO_CLOSE] > 0.0) {
            last_share = run->atr[t] / x[HO_CLOSE];
        }
        run->range[t] = last_range;
        run->atr_share[t] = last_share;
        run->log_volume[t] = run->bars->has_volume ? log1p(x[HO_VOLUME]) : 0.0;
    }
}

/* Deviations of r and the Bollinger width of the segment. */
static void segment_moments(ho_feature_run *run, int64_t end)
{
    double *close = run->b;
    for (int64_t t = run->first; t < end; t += FEATURE_BLOCK) {
        int64_t stop = t + FEATURE_BLOCK < end ? t + FEATURE_BLOCK : end;
        ho_rolling_moments(run->r, run->first, t, stop, 60, run->mean60 + t, run->sd60 + t);
        ho_rolling_moments(run->r, run->first, t, stop, run->W, run->a, run->sd_long + t);
        int64_t low = t - 19 > run->first ? t - 19 : run->first;
        for (int64_t i = low; i < stop; ++i) {
            close[i - low] = run->diff[i * HO_BAR_COLUMNS + HO_CLOSE];
        }
        ho_rolling_moments(close, 0, t - low, stop - low, 20, run->c, run->d);
        for (int64_t i = t; i < stop; ++i) {
            double mean = run->c[i - t] + (run->jumped ? run->jumped[i] : 0.0);
            run->width[i] = ho_feature_ratio(run->d[i - t], mean);
        }
    }
}

/* ---- the run --------------------------------------------------------------------------------- */

static void extra_columns(const ho_bars *bars, int64_t first, int64_t begin, int64_t end, int delay,
                          float *out, int stride)
{
    int E = bars->extra_count;
    for (int64_t t = begin; t < end; ++t) {
        for (int e = 0; e < E; ++e) {
            out[(t - begin) * stride + e] =
                t - delay >= first ? (float)bars->extra[(t - delay) * E + e] : 0.0f;
        }
    }
}

/* Every `step`-th column from `begin` on of the segment [run.first, end), by one thread. */
typedef struct column_share {
    ho_feature_run *run; /* with its own scratch */
    const int *column;
    int begin, step, count;
    int64_t end;
    ho_features *out;
} column_share;

static void *share_columns(void *user)
{
    const column_share *share = (const column_share *)user;
    ho_feature_run *run = share->run;
    double carry[HO_MARKET_FEATURES][FEATURE_CARRY] = {{0}};
    int F = share->out->F;
    for (int64_t t = run->first; t < share->end; t += FEATURE_BLOCK) {
        int64_t stop = t + FEATURE_BLOCK < share->end ? t + FEATURE_BLOCK : share->end;
        float *rows = share->out->values + t * F;
        for (int i = share->begin; i < share->count; i += share->step) {
            const ho_feature *feature = &ho_feature_table[share->column[i]];
            run->carry = carry[i];
            feature->fn(run, feature->arg, t, stop, rows + i, F);
            for (float *x = rows + i; x < rows + (stop - t) * F; x += F) {
                *x = *x > 5.0f ? 5.0f : *x < -5.0f ? -5.0f : *x;
            }
        }
    }
    return NULL;
}

/* Columns of the segment [run->first, end): no column reads another, so of a long segment threads
 * make some each (2 s of one processor for 902,880 bars). Where a thread cannot be had, its share
 * is made here. */
static void segment_columns(ho_feature_run *run, const int *column, int count, int delay,
                            int64_t end, ho_features *out)
{
    enum { THREADS_MAX = 16, LONG = 1 << 16 };
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int threads = end - run->first < LONG    ? 1
                  : processors < 1           ? 1
                  : processors > THREADS_MAX ? THREADS_MAX
                                             : (int)processors;
    column_share share[THREADS_MAX];
    ho_feature_run *copy[THREADS_MAX] = {run};
    pthread_t thread[THREADS_MAX];
    bool started[THREADS_MAX] = {false};
    for (int i = 1; i < threads && (copy[i] = malloc(sizeof *run)); ++i) {
        *copy[i] = *run;
    }
    for (int i = 0; i < threads; ++i) {
        share[i] = (column_share){.run = copy[i] ? copy[i] : run,
                                  .column = column,
                                  .begin = i,
                                  .step = threads,
                                  .count = count,
                                  .end = end,
                                  .out = out};
        started[i] =
            i > 0 && copy[i] && pthread_create(&thread[i], NULL, share_columns, &share[i]) == 0;
    }
    for (int i = 0; i < threads; ++i) {
        if (!started[i]) {
            (void)share_columns(&share[i]);
        }
    }
    for (int i = 1; i < threads; ++i) {
        if (started[i]) {
            (void)pthread_join(thread[i], NULL);
        }
        free(copy[i]);
    }
    extra_columns(run->bars, run->first, run->first, end, delay,
                  out->values + run->first * out->F + count, out->F);
}

static void widen_splits(const ho_bars *bars, int64_t warmup, uint8_t *split)
{
    int64_t until = 0;
    for (int64_t t = 0; t < bars->count; ++t) {
        if (bars->split[t]) {
            until = t + warmup + 1;
        }
        split[t] = t > 0 && t < until;
    }
}

ho_status ho_features_compute(const ho_bars *bars, const ho_feature_options *options,
                              ho_features *out, ho_err *err)
{
    ho_status rc = HO_OK;
    ho_feature_run *run = NULL;
    int column[HO_MARKET_FEATURES], count = 0;
    int64_t T = bars->count, W = long_window(bars, options);
    memset(out, 0, sizeof *out);
    if (W < 2 || W > 1000000) {
        return ho_err_set(err, HO_EINVAL, "features.long_window must lie in [2, 1000000], not %lld",
                          (long long)W);
    }
    if (options->extra_delay < 0 || options->extra_delay > 100000) {
        return ho_err_set(err, HO_EINVAL, "features.extra_delay must lie in [0, 100000], not %d",
                          options->extra_delay);
    }
    if ((rc = choose(options, column, &count, err)) != HO_OK) {
        return rc;
    }
    out->T = T;
    out->F = count + bars->extra_count;
    out->warmup = longest_window(column, count, W, bars->extra_count ? options->extra_delay : 0);
    if (out->F > 64 - HO_PORTFOLIO_FEATURES) {
        rc = ho_err_set(err, HO_EINVAL,
                        "%d features and %d extra columns are more than %d; shorten features.use",
                        count, bars->extra_count, 64 - HO_PORTFOLIO_FEATURES);
        goto out;
    }
    if (T <= out->warmup) {
        rc = ho_err_set(err, HO_EDATA,
                        "%lld bars are not more than the %lld that the features need to warm up; "
                        "give more data, or set features.long_window lower",
                        (long long)T, (long long)out->warmup);
        goto out;
    }
    rc = HO_ENOMEM;
    if (!(run = calloc(1, sizeof *run))) {
        goto out;
    }
    run->bars = bars;
    run->W = W;
    if (!(out->values = malloc((size_t)T * (size_t)out->F * sizeof(float))) ||
        !(out->name = calloc((size_t)out->F, sizeof *out->name)) || !series_allocate(run, T) ||
        !roll_prices(run) || (bars->split && !(out->split = malloc((size_t)T)))) {
        goto out;
    }
    if ((rc = ho_zone_load(bars->timezone, &run->zone, err)) != HO_OK) {
        goto out;
    }
    for (int i = 0; i < out->F; ++i) {
        const char *name =
            i < count ? ho_feature_table[column[i]].name : bars->extra_name[i - count];
        strncpy(out->name[i], name, HO_FEATURE_NAME - 1);
    }
    for (int64_t end = 0; end < T;) {
        run->first = end++;
        while (end < T && !(bars->split && bars->split[end])) {
            ++end;
        }
        segment_bars(run, end);
        segment_moments(run, end);
        segment_columns(run, column, count, options->extra_delay, end, out);
    }
    if (bars->split) {
        widen_splits(bars, out->warmup, out->split);
    }
out:
    run_free(run);
    if (rc == HO_ENOMEM) {
        (void)ho_err_set(err, rc, "no memory for %lld x %d features", (long long)T, out->F);
    }
    if (rc != HO_OK) {
        ho_features_free(out);
    }
    return rc;
}

void ho_features_free(ho_features *features)
{
    if (features) {
        if (features->map) {
            (void)munmap(features->map, features->map_bytes);
        } else {
            free(features->values);
        }
        free(features->name);
        free(features->split);
        memset(features, 0, sizeof *features);
    }
}
