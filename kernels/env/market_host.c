/* SPDX-License-Identifier: Apache-2.0
 * Host tables of a market. All float64, plain loops in a fixed order: computed once and shared by
 * the backends. */
#include "kernels/env/market_host.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"

static const char *const column_name[HO_BAR_COLUMNS] = {"open", "high", "low", "close", "volume"};

static ho_status check(const ho_market_data *data, ho_err *err)
{
    if (!data->bars || !data->open_ns || !data->session || (data->F > 0 && !data->features)) {
        return ho_err_set(err, HO_EINVAL, "market: bars, open_ns, session and features are needed");
    }
    if (data->T < 2 || data->T >= INT32_MAX || data->F < 0) {
        return ho_err_set(err, HO_EINVAL, "market: %lld bars of %d features; at least 2 bars",
                          (long long)data->T, data->F);
    }
    if (data->warmup < 0 || data->warmup >= data->T || data->interval_ns <= 0) {
        return ho_err_set(err, HO_EINVAL, "market: warmup %lld of %lld bars, interval %lld ns",
                          (long long)data->warmup, (long long)data->T,
                          (long long)data->interval_ns);
    }
    for (int64_t i = data->warmup * data->F; i < data->T * data->F; i++) {
        if (!isfinite(data->features[i])) {
            return ho_err_set(err, HO_EINVAL, "market: feature %lld of bar %lld is not finite",
                              (long long)(i % data->F), (long long)(i / data->F));
        }
    }
    for (int64_t t = 0; t < data->T; t++) {
        for (int c = 0; c < HO_BAR_COLUMNS; c++) {
            if (!isfinite(data->bars[t * HO_BAR_COLUMNS + c])) {
                return ho_err_set(err, HO_EINVAL, "market: bar %lld has a %s that is not finite",
                                  (long long)t, column_name[c]);
            }
        }
        if (data->bars[t * HO_BAR_COLUMNS + HO_VOLUME] < 0.0) {
            return ho_err_set(err, HO_EINVAL, "market: bar %lld has a negative volume",
                              (long long)t);
        }
        if ((data->roll_jump && !isfinite(data->roll_jump[t])) ||
            (data->funding && !isfinite(data->funding[t])) ||
            (data->sigma && !(data->sigma[t] >= 0.0 && isfinite(data->sigma[t])))) {
            return ho_err_set(err, HO_EINVAL,
                              "market: bar %lld: roll, funding or sigma is not a finite number",
                              (long long)t);
        }
        if (t > 0 && data->session[t] < data->session[t - 1]) {
            return ho_err_set(err, HO_EINVAL, "market: session of bar %lld is before that of %lld",
                              (long long)t, (long long)(t - 1));
        }
    }
    return HO_OK;
}

/* Copies count * size bytes; NULL in gives NULL out. *failed is set when memory is short. */
static void *copy(const void *from, int64_t count, size_t size, int *failed)
{
    if (!from || count == 0) {
        return NULL;
    }
    void *to = malloc((size_t)count * size);
    if (!to) {
        *failed = 1;
        return NULL;
    }
    memcpy(to, from, (size_t)count * size);
    return to;
}

static void fill_mean_volume(ho_market_host *h)
{
    for (int64_t t = 0; t < h->T; t++) {
        int64_t first = t >= HO_IMPACT_VOLUME_BARS - 1 ? t - (HO_IMPACT_VOLUME_BARS - 1) : 0;
        double sum = 0.0;
        for (int64_t i = first; i <= t; i++) {
            sum += h->bars[i * HO_BAR_COLUMNS + HO_VOLUME];
        }
        h->mean_volume[t] = sum / (double)(t - first + 1);
    }
}

static void fill_flags(ho_market_host *h, const uint8_t *split)
{
    for (int64_t t = 0; t + 1 < h->T; t++) {
        uint8_t flags = 0;
        if (h->session[t + 1] != h->session[t]) {
            flags |= HO_BAR_SESSION_END;
        }
        if (split && split[t + 1]) {
            flags |= HO_BAR_SPLIT_NEXT;
        }
        h->bar_flags[t] = flags;
    }
    h->bar_flags[h->T - 1] = HO_BAR_SPLIT_NEXT; /* whether a session ends here is not known */
    for (int64_t t = h->T - 1; t >= 0; t--) {
        h->next_split[t] = h->bar_flags[t] & HO_BAR_SPLIT_NEXT ? (int32_t)t : h->next_split[t + 1];
    }
}

static void fill_n_log2_n(double *table)
{
    table[0] = 0.0;
    for (int n = 1; n <= HO_DIVERSITY_MAX; n++) {
        table[n] = (double)n * log2((double)n);
    }
}

ho_status ho_market_host_create(const ho_market_data *data, ho_market_host **out, ho_err *err)
{
    *out = NULL;
    ho_status rc = check(data, err);
    if (rc != HO_OK) {
        return rc;
    }
    ho_market_host *h = calloc(1, sizeof *h);
    if (!h) {
        return ho_err_set(err, HO_ENOMEM, "market: out of memory");
    }
    int failed = 0;
    size_t T = (size_t)data->T;
    h->T = data->T;
    h->F = data->F;
    h->warmup = data->warmup;
    h->interval_ns = data->interval_ns;
    h->has_volume = data->has_volume != 0;
    h->bars = copy(data->bars, data->T * HO_BAR_COLUMNS, sizeof(double), &failed);
    h->features = copy(data->features, data->T * data->F, sizeof(float), &failed);
    h->open_ns = copy(data->open_ns, data->T, sizeof(int64_t), &failed);
    h->session = copy(data->session, data->T, sizeof(int32_t), &failed);
    h->roll_jump = copy(data->roll_jump, data->T, sizeof(double), &failed);
    h->funding = copy(data->funding, data->T, sizeof(double), &failed);
    h->given_sigma = copy(data->sigma, data->T, sizeof(double), &failed);
    h->mean_volume = malloc(T * sizeof(double));
    h->bar_flags = malloc(T);
    h->next_split = malloc(T * sizeof(int32_t));
    h->n_log2_n = malloc((HO_DIVERSITY_MAX + 1) * sizeof(double));
    if (failed || !h->mean_volume || !h->bar_flags || !h->next_split || !h->n_log2_n) {
        ho_market_host_destroy(&h);
        return ho_err_set(err, HO_ENOMEM, "market: out of memory for %lld bars",
                          (long long)data->T);
    }
    fill_mean_volume(h);
    fill_flags(h, data->split);
    fill_n_log2_n(h->n_log2_n);
    h->view = (ho_market_view){.T = h->T,
                               .F = h->F,
                               .bars = h->bars,
                               .features = h->features,
                               .mean_volume = h->mean_volume,
                               .bar_flags = h->bar_flags,
                               .roll_jump = h->roll_jump,
                               .funding = h->funding,
                               .n_log2_n = h->n_log2_n};
    *out = h;
    return HO_OK;
}

void ho_market_host_destroy(ho_market_host **host)
{
    ho_market_host *h = *host;
    if (!h) {
        return;
    }
    for (int i = 0; i < h->sigma_count; i++) {
        free(h->sigma[i].value);
    }
    free(h->sigma);
    free(h->bars);
    free(h->features);
    free(h->open_ns);
    free(h->session);
    free(h->roll_jump);
    free(h->funding);
    free(h->given_sigma);
    free(h->mean_volume);
    free(h->bar_flags);
    free(h->next_split);
    free(h->n_log2_n);
    free(h);
    *host = NULL;
}

/* Simple return of bar t with a roll's jump taken out; NaN where it means nothing. */
static double bar_return(const ho_market_host *h, int64_t t)
{
    if (t == 0 || (h->bar_flags[t - 1] & HO_BAR_SPLIT_NEXT)) {
        return NAN;
    }
    double before = h->bars[(t - 1) * HO_BAR_COLUMNS + HO_CLOSE];
    double after = h->bars[t * HO_BAR_COLUMNS + HO_CLOSE] - (h->roll_jump ? h->roll_jump[t] : 0.0);
    return before > 0.0 ? after / before - 1.0 : NAN;
}

/* Deviation of the returns of `window` bars up to t; NaN: too few of them. */
static double deviation(int64_t t, int32_t window, const double *ret)
{
    int need = window < HO_SIGMA_MIN_RETURNS ? window : HO_SIGMA_MIN_RETURNS;
    int64_t first = t >= window - 1 ? t - (window - 1) : 0;
    double sum = 0.0, square = 0.0;
    int n = 0;
    for (int64_t i = first; i <= t; i++) {
        if (!isnan(ret[i])) {
            sum += ret[i];
            n++;
        }
    }
    if (n < need) {
        return NAN;
    }
    double mean = sum / n;
    for (int64_t i = first; i <= t; i++) {
        if (!isnan(ret[i])) {
            square += (ret[i] - mean) * (ret[i] - mean);
        }
    }
    return sqrt(square / (n - 1));
}

/* Bars side by side: a window of 1,000 on 902,880 bars is seconds of one processor, while a device
 * waits for its first lane. Where a bar has too few returns the last deviation is carried on. */
static void fill_sigma(const ho_market_host *h, int32_t window, const double *ret, double *sigma)
{
    double carried = 0.0;
#ifndef __SANITIZE_THREAD__ /* libgomp's barriers are invisible to it, see cpu/ops.c */
#pragma omp parallel for schedule(static)
#endif
    for (int64_t t = 0; t < h->T; t++) {
        sigma[t] = deviation(t, window, ret);
    }
    for (int64_t t = 0; t < h->T; t++) {
        carried = isnan(sigma[t]) ? carried : sigma[t];
        sigma[t] = carried;
    }
}

ho_status ho_market_host_sigma(ho_market_host *host, int32_t window, const double **out,
                               ho_err *err)
{
    *out = NULL;
    if (host->given_sigma) {
        *out = host->given_sigma;
        return HO_OK;
    }
    if (window < 2) {
        return ho_err_set(err, HO_EINVAL, "env.sigma_window = %d: at least 2 bars", (int)window);
    }
    for (int i = 0; i < host->sigma_count; i++) {
        if (host->sigma[i].window == window) {
            *out = host->sigma[i].value;
            return HO_OK;
        }
    }
    size_t T = (size_t)host->T;
    double *ret = malloc(T * sizeof(double));
    double *value = malloc(T * sizeof(double));
    ho_sigma_table *grown =
        realloc(host->sigma, (size_t)(host->sigma_count + 1) * sizeof(ho_sigma_table));
    if (grown) {
        host->sigma = grown;
    }
    if (!ret || !value || !grown) {
        free(ret);
        free(value);
        return ho_err_set(err, HO_ENOMEM, "market: out of memory for the volatility of %lld bars",
                          (long long)host->T);
    }
    for (int64_t t = 0; t < host->T; t++) {
        ret[t] = bar_return(host, t);
    }
    fill_sigma(host, window, ret, value);
    free(ret);
    host->sigma[host->sigma_count++] = (ho_sigma_table){.window = window, .value = value};
    *out = value;
    return HO_OK;
}

ho_status ho_market_host_check_window(const ho_market_host *host, const char *what,
                                      ho_window window, int splits_allowed, ho_err *err)
{
    if (window.begin < 0 || window.end > host->T || window.end - window.begin < 2) {
        return ho_err_set(err, HO_EINVAL, "%s [%lld, %lld) does not lie in the market's %lld bars",
                          what, (long long)window.begin, (long long)window.end, (long long)host->T);
    }
    const int64_t after_split = (int64_t)host->next_split[window.begin] + 1;
    if (!splits_allowed && after_split < window.end) {
        return ho_err_set(err, HO_EINVAL, "%s [%lld, %lld): the data are split before bar %lld",
                          what, (long long)window.begin, (long long)window.end,
                          (long long)after_split);
    }
    return HO_OK;
}
