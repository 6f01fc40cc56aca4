/* SPDX-License-Identifier: Apache-2.0
 * Keys -> options of the loader and the features; see study_data.h. */
#include "market/study_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "market/bars_cache.h"
#include "study/log.h"
#include "study/sha256.h"

/* The items of a list key; *out points into settings and is the caller's to free. */
static ho_status list_of(const ho_settings *s, ho_key key, const char ***out, int *count,
                         ho_err *err)
{
    *count = ho_settings_list_count(s, key);
    *out = calloc((size_t)*count + 1, sizeof **out);
    if (!*out) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    for (int i = 0; i < *count; i++) {
        (*out)[i] = ho_settings_list_str(s, key, i);
    }
    return HO_OK;
}

enum { FOLDER_SIZE = 4096 };

#define COPY(field, key) snprintf(o->field, sizeof o->field, "%s", ho_settings_str(s, key))

/* A duration as the loader writes it; "" without a value. */
static void copy_seconds(const ho_settings *s, ho_key key, char *out, size_t room)
{
    out[0] = '\0';
    if (ho_settings_has(s, key) && !ho_settings_is_auto(s, key)) {
        snprintf(out, room, "%.0fs", ho_settings_f64(s, key));
    }
}

static void scalars(const ho_settings *s, ho_data_options *o)
{
    COPY(symbol, HO_KEY_DATA_SYMBOL);
    COPY(start, HO_KEY_DATA_START);
    COPY(end, HO_KEY_DATA_END);
    copy_seconds(s, HO_KEY_DATA_BAR, o->bar, sizeof o->bar);
    o->publisher = (int)ho_settings_i64(s, HO_KEY_DATA_PUBLISHER);
    COPY(timezone, HO_KEY_DATA_TIMEZONE);
    COPY(session_timezone, HO_KEY_DATA_SESSION_TIMEZONE);
    COPY(session_start, HO_KEY_DATA_SESSION_START);
    COPY(session_end, HO_KEY_DATA_SESSION_END);
    o->sessions_per_year = ho_settings_f64(s, HO_KEY_INSTRUMENT_SESSIONS_PER_YEAR);
    o->label = ho_settings_choice(s, HO_KEY_DATA_LABEL);
    o->dst = ho_settings_choice(s, HO_KEY_DATA_DST);
    o->date_order = ho_settings_choice(s, HO_KEY_DATA_DATE_ORDER);
    o->epoch_unit = ho_settings_choice(s, HO_KEY_DATA_EPOCH_UNIT);
    COPY(separator, HO_KEY_DATA_SEPARATOR);
    COPY(decimal, HO_KEY_DATA_DECIMAL);
    o->header = ho_settings_choice(s, HO_KEY_DATA_HEADER);
    COPY(columns, HO_KEY_DATA_COLUMNS);
    o->price_scale = ho_settings_f64(s, HO_KEY_DATA_PRICE_SCALE);
    o->volume = ho_settings_choice(s, HO_KEY_DATA_VOLUME);
    o->quote = ho_settings_choice(s, HO_KEY_DATA_QUOTE);
    o->adjusted = ho_settings_bool(s, HO_KEY_DATA_ADJUSTED);
    o->close_only = ho_settings_bool(s, HO_KEY_DATA_CLOSE_ONLY);
    COPY(contract_column, HO_KEY_DATA_CONTRACT_COLUMN);
    COPY(funding_column, HO_KEY_DATA_FUNDING_COLUMN);
    o->sort = ho_settings_bool(s, HO_KEY_DATA_SORT);
    o->duplicates = ho_settings_choice(s, HO_KEY_DATA_DUPLICATES);
    o->empty_rows = ho_settings_choice(s, HO_KEY_DATA_EMPTY_ROWS);
    o->contradictions = ho_settings_choice(s, HO_KEY_DATA_CONTRADICTIONS);
    o->non_positive = ho_settings_choice(s, HO_KEY_DATA_NON_POSITIVE);
    o->zero_volume = ho_settings_choice(s, HO_KEY_DATA_ZERO_VOLUME);
    o->spikes = ho_settings_choice(s, HO_KEY_DATA_SPIKES);
    o->spike_mad = ho_settings_f64(s, HO_KEY_DATA_SPIKE_MAD);
    o->off_tick = ho_settings_choice(s, HO_KEY_DATA_OFF_TICK);
    o->tick_size = ho_settings_f64(s, HO_KEY_INSTRUMENT_TICK_SIZE);
    o->gaps = ho_settings_choice(s, HO_KEY_DATA_GAPS);
    copy_seconds(s, HO_KEY_DATA_MAX_GAP, o->max_gap, sizeof o->max_gap);
    o->adjust = ho_settings_choice(s, HO_KEY_DATA_ADJUST);
}

/* A rate a day on every bar, by the time to the next one. */
static ho_status fixed_funding(const ho_settings *s, ho_bars *bars, ho_err *err)
{
    const double day_ns = 86400e9;
    double rate = ho_settings_f64(s, HO_KEY_INSTRUMENT_FUNDING_BPS_PER_DAY) * 1e-4;
    if (rate == 0.0 || bars->funding) {
        return HO_OK;
    }
    bars->funding = calloc((size_t)bars->count, sizeof *bars->funding);
    if (!bars->funding) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for the funding rates");
    }
    for (int64_t t = 0; t < bars->count; t++) {
        int64_t until =
            t + 1 < bars->count ? bars->open_ns[t + 1] - bars->open_ns[t] : bars->interval_ns;
        bars->funding[t] = rate * ((double)until / day_ns);
    }
    return HO_OK;
}

/* The loader's options; the lists are the caller's to free. */
typedef struct bar_options {
    ho_data_options data;
    const char **extra, **rolls;
} bar_options;

static ho_status bar_options_of(const ho_settings *s, bar_options *o, ho_err *err)
{
    *o = (bar_options){0};
    ho_data_options_defaults(&o->data);
    scalars(s, &o->data);
    ho_status rc = list_of(s, HO_KEY_FEATURES_EXTRA, &o->extra, &o->data.extra_count, err);
    rc = rc == HO_OK ? list_of(s, HO_KEY_DATA_ROLLS, &o->rolls, &o->data.roll_count, err) : rc;
    o->data.extra = o->extra;
    o->data.rolls = o->rolls;
    return rc;
}

static void bar_options_free(bar_options *o)
{
    free(o->rolls);
    free(o->extra);
}

ho_status ho_study_bars_load(const ho_settings *s, const char *const *path, int path_count,
                             ho_bars *out, ho_data_report *report, ho_err *err)
{
    bar_options o;
    ho_status rc = bar_options_of(s, &o, err);
    if (rc == HO_OK) {
        o.data.path = path;
        o.data.path_count = path_count;
        rc = ho_bars_load(&o.data, out, report, err);
    }
    if (rc == HO_OK && (rc = fixed_funding(s, out, err)) != HO_OK) {
        ho_bars_free(out);
    }
    bar_options_free(&o);
    return rc;
}

/* Of bars: the file, what shaped them, and the funding that is added. */
static ho_status bars_key(const ho_settings *s, const char *sha256, char key[65], ho_err *err)
{
    char text[256], shape[65];
    bar_options o;
    ho_status rc = bar_options_of(s, &o, err);
    if (rc == HO_OK && sodium_init() < 0) {
        rc = ho_err_set(err, HO_EIO, "libsodium does not start");
    }
    if (rc == HO_OK) {
        ho_data_options_hash(&o.data, shape);
        int n = snprintf(text, sizeof text, "%s|%s|%s|%.17g", HYPEROPT_VERSION, sha256, shape,
                         ho_settings_f64(s, HO_KEY_INSTRUMENT_FUNDING_BPS_PER_DAY));
        ho_sha256_bytes(text, (size_t)n, key);
    }
    bar_options_free(&o);
    return rc;
}

ho_status ho_study_bars_cached(const ho_settings *s, const char *const *path,
                               const char *const *sha256, int path_count, ho_bars *out,
                               ho_data_report *report, ho_err *err)
{
    char folder[FOLDER_SIZE], key[65];
    if (path_count != 1 || !ho_cache_folder(folder, sizeof folder)) {
        return ho_study_bars_load(s, path, path_count, out, report, err);
    }
    ho_status rc = bars_key(s, sha256[0], key, err);
    if (rc == HO_OK && !report && ho_bars_cache_get(folder, key, out)) {
        ho_log(HO_LOG_INFO, "bars", "cache hit bars=%lld", (long long)out->count);
        return HO_OK;
    }
    if (rc != HO_OK) {
        return rc;
    }
    rc = ho_study_bars_load(s, path, path_count, out, report, err);
    if (rc == HO_OK && strcmp(out->sha256, sha256[0]) == 0) { /* else it changed meanwhile */
        ho_bars_cache_put(folder, key, out);
    }
    return rc;
}

/* A fact of the study file, else of the data file. */
static double fact(const ho_settings *s, ho_key key, double of_file)
{
    return !ho_settings_is_set(s, key) && of_file > 0.0 ? of_file : ho_settings_f64(s, key);
}

double ho_study_tick_size(const ho_settings *s, const ho_bars *bars)
{
    return fact(s, HO_KEY_INSTRUMENT_TICK_SIZE, bars->instrument.tick_size);
}

double ho_study_multiplier(const ho_settings *s, const ho_bars *bars)
{
    return fact(s, HO_KEY_INSTRUMENT_MULTIPLIER, bars->instrument.multiplier);
}

ho_status ho_study_features(const ho_settings *s, const ho_bars *bars, ho_features *out,
                            ho_err *err)
{
    return ho_study_features_cached(s, bars, NULL, out, NULL, err);
}

ho_status ho_study_features_cached(const ho_settings *s, const ho_bars *bars, const char *folder,
                                   ho_features *out, ho_cache_result *result, ho_err *err)
{
    ho_feature_options options;
    const char **use = NULL;
    ho_feature_options_defaults(&options);
    ho_status rc = list_of(s, HO_KEY_FEATURES_USE, &use, &options.use_count, err);
    if (rc == HO_OK) {
        options.use = use;
        options.extra_delay = (int)ho_settings_i64(s, HO_KEY_FEATURES_EXTRA_DELAY);
        options.long_window = ho_settings_i64(s, HO_KEY_FEATURES_LONG_WINDOW);
        rc = ho_features_load(bars, &options, folder, out, result, err);
    }
    free(use);
    return rc;
}
