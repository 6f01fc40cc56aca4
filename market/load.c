/* SPDX-License-Identifier: Apache-2.0
 * The loader: each file is read, its format found, its rows appended; then the steps of cleaning,
 * then bars. See load.h. */
#include "market/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <sodium.h>

#include "kernels/shapes.h"
#include "market/calendar.h"
#include "market/clean.h"
#include "market/csv.h"
#include "market/dbn.h"
#include "market/json_list.h"
#include "market/resample.h"
#include "market/roll.h"
#include "market/rows.h"
#include "market/source.h"
#include "market/zone.h"

/* Raise with every change that can alter the bars of a file: part of bars.settings. */
enum { READER_VERSION = 1 };

void ho_data_options_defaults(ho_data_options *options)
{
    *options = (ho_data_options){.spike_mad = 50.0};
}

/* ---- findings -------------------------------------------------------------------------------- */

typedef struct dirt_row {
    const char *name, *text;
    bool warning;
} dirt_row;

static const dirt_row dirt_table[HO_DIRT_COUNT] = {
#define HO_DIRT_ROW(id, name, text, warning) {name, text, warning},
    HO_DIRT_MAP(HO_DIRT_ROW)
#undef HO_DIRT_ROW
};

const char *ho_dirt_name(ho_dirt kind)
{
    return dirt_table[kind].name;
}

const char *ho_dirt_text(ho_dirt kind)
{
    return dirt_table[kind].text;
}

bool ho_dirt_is_warning(ho_dirt kind)
{
    return dirt_table[kind].warning;
}

bool ho_data_report_has_warnings(const ho_data_report *report)
{
    for (int kind = 0; kind < HO_DIRT_COUNT; ++kind) {
        if (report->finding[kind].count > 0 && dirt_table[kind].warning) {
            return true;
        }
    }
    for (int i = 0; i < report->note_count; ++i) {
        if (report->note[i].warning) {
            return true;
        }
    }
    return false;
}

/* ---- settings -------------------------------------------------------------------------------- */

void ho_data_options_hash(const ho_data_options *o, char hex[65])
{
    unsigned char hash[crypto_hash_sha256_BYTES];
    char text[2048];
    crypto_hash_sha256_state state;
    (void)crypto_hash_sha256_init(&state);
    int n = snprintf(
        text, sizeof text,
        "v%d|%s|%s|%s|%s|%d|%s|%s|%s|%s|%.17g|%d|%d|%d|%d|%s|%s|%d|%s|%.17g|%d|%d|%d|%d|%s|%s|"
        "%d|%d|%d|%d|%d|%d|%d|%d|%.17g|%.17g|%d|%s|%d",
        READER_VERSION, o->symbol, o->start, o->end, o->bar, o->publisher, o->timezone,
        o->session_timezone, o->session_start, o->session_end, o->sessions_per_year, o->label,
        o->dst, o->date_order, o->epoch_unit, o->separator, o->decimal, o->header, o->columns,
        o->price_scale, o->volume, o->quote, o->adjusted, o->close_only, o->contract_column,
        o->funding_column, o->sort, o->duplicates, o->empty_rows, o->contradictions,
        o->non_positive, o->zero_volume, o->spikes, o->off_tick, o->spike_mad, o->tick_size,
        o->gaps, o->max_gap, o->adjust);
    (void)crypto_hash_sha256_update(&state, (const unsigned char *)text, (size_t)n);
    for (int i = 0; i < o->extra_count; ++i) {
        (void)crypto_hash_sha256_update(&state, (const unsigned char *)o->extra[i],
                                        strlen(o->extra[i]) + 1);
    }
    (void)crypto_hash_sha256_update(&state, (const unsigned char *)"|rolls", 6);
    for (int i = 0; i < o->roll_count; ++i) {
        (void)crypto_hash_sha256_update(&state, (const unsigned char *)o->rolls[i],
                                        strlen(o->rolls[i]) + 1);
    }
    (void)crypto_hash_sha256_final(&state, hash);
    (void)sodium_bin2hex(hex, 65, hash, sizeof hash);
}

static ho_status check_options(const ho_data_options *o, ho_err *err)
{
    if (o->path_count < 1 || !o->path) {
        return ho_err_set(err, HO_EINVAL, "data.path is missing: write the file with the bars");
    }
    if (o->path_count > UINT16_MAX) {
        return ho_err_set(err, HO_EINVAL, "data.path lists more than %d files", UINT16_MAX);
    }
    if (o->extra_count > HO_CSV_EXTRA) {
        return ho_err_set(err, HO_EINVAL, "features.extra names more than %d columns",
                          HO_CSV_EXTRA);
    }
    if (!(o->price_scale >= 0.0) || !(o->spike_mad > 0.0) || !(o->tick_size >= 0.0) ||
        !(o->sessions_per_year >= 0.0)) {
        return ho_err_set(err, HO_EINVAL,
                          "data.price_scale, tick_size and sessions_per_year must not be negative, "
                          "data.spike_mad must be above 0");
    }
    if (o->empty_rows == HO_DIRT_KEEP) {
        return ho_err_set(err, HO_EINVAL,
                          "data.empty_rows must be \"drop\" or \"refuse\": a row without prices "
                          "cannot be kept (data.gaps = \"fill\" puts a bar there)");
    }
    return HO_OK;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* The rows of one file of text. */
static ho_status read_text(const ho_data_options *options, int file, ho_source *source,
                           const ho_zone *zone, ho_rows *rows, ho_data_report *report, ho_err *err)
{
    const char *path = options->path[file];
    ho_status rc = HO_OK;
    bool json = ho_json_is(source->bytes, source->size);
    ho_csv_dialect *dialect = malloc(sizeof *dialect);
    if (!dialect) {
        return ho_err_set(err, HO_ENOMEM, "%s: no memory", path);
    }
    if (json && (rc = ho_json_to_csv(path, source->bytes, source->size, err)) != HO_OK) {
        goto out;
    }
    rc = ho_csv_detect(path, source->member, source->bytes, source->size, options, dialect, report,
                       err);
    if (rc != HO_OK) {
        goto out;
    }
    if (json) {
        (void)snprintf(report->dialect, sizeof report->dialect, "JSON list of rows");
    }
    bool contract = dialect->column[HO_CSV_CONTRACT] >= 0;
    bool funding = dialect->column[HO_CSV_FUNDING] >= 0;
    if (file == 0) {
        rows->want_contract = contract;
        rows->want_funding = funding;
    } else if (rows->want_contract != contract || rows->want_funding != funding) {
        rc = ho_err_set(err, HO_EDATA, "%s: has other columns than %s; load them apart", path,
                        options->path[0]);
        goto out;
    }
    rc = ho_csv_read(path, file, source->bytes, source->size, options, zone, dialect, rows, report,
                     err);
out:
    free(dialect);
    return rc;
}

/* definitions: the pass over files of instrument definitions, after that over all others. */
static ho_status read_file(const ho_data_options *options, int file, bool definitions,
                           const ho_zone *zone, ho_rows *rows, ho_data_report *report,
                           char sha256[65], ho_err *err)
{
    const char *path = options->path[file];
    ho_source source;
    ho_status rc = ho_source_read(path, options->symbol, &source, err);
    if (rc != HO_OK) {
        return rc;
    }
    bool only_facts = options->path_count > 1 && ho_dbn_is_definitions(source.bytes, source.size);
    (void)strcpy(sha256, source.sha256);
    if (only_facts) {
        rc = definitions
                 ? ho_dbn_read_definitions(path, source.bytes, source.size, rows, report, err)
                 : HO_OK;
    } else if (definitions) {
        rc = HO_OK;
    } else {
        (void)snprintf(report->container, sizeof report->container, "%s", source.container);
        if (ho_dbn_is(source.bytes, source.size)) {
            if (options->extra_count) {
                rc = ho_err_set(err, HO_EDATA, "%s: features.extra names columns, and DBN has none",
                                path);
            } else {
                rc = ho_dbn_read(path, file, source.bytes, source.size, options, rows, report, err);
            }
        } else if (ho_dbn_is_fragment(source.bytes, source.size)) {
            rc = ho_err_set(err, HO_EDATA,
                            "%s: is a fragment of DBN records without the header that says what "
                            "they are; take the whole file",
                            path);
        } else {
            rc = read_text(options, file, &source, zone, rows, report, err);
        }
    }
    ho_source_free(&source);
    return rc;
}

static ho_status read_files(const ho_data_options *options, const ho_zone *zone, ho_rows *rows,
                            ho_data_report *report, char sha256[65], ho_err *err)
{
    crypto_hash_sha256_state state;
    unsigned char hash[crypto_hash_sha256_BYTES];
    (void)crypto_hash_sha256_init(&state);
    for (int file = 0; file < options->path_count; ++file) {
        ho_status rc = read_file(options, file, false, zone, rows, report, sha256, err);
        if (rc != HO_OK) {
            return rc;
        }
        (void)crypto_hash_sha256_update(&state, (const unsigned char *)sha256, 64);
    }
    if (rows->count == 0) {
        return ho_err_set(err, HO_EDATA, "%s: there are no bars", options->path[0]);
    }
    if (rows->instrument_ids > 0 && options->path_count > 1) {
        for (int file = 0; file < options->path_count; ++file) {
            ho_status rc = read_file(options, file, true, zone, rows, report, sha256, err);
            if (rc != HO_OK) {
                return rc;
            }
        }
    }
    if (options->path_count > 1) {
        (void)crypto_hash_sha256_final(&state, hash);
        (void)sodium_bin2hex(sha256, 65, hash, sizeof hash);
    }
    return HO_OK;
}

/* ---- bars ------------------------------------------------------------------------------------ */

/* The rows' arrays become the bars'. */
static ho_status take_rows(const ho_data_options *options, ho_rows *rows, ho_bars *bars,
                           ho_err *err)
{
    bars->count = rows->count;
    bars->open_ns = rows->stamp_ns;
    bars->ohlcv = rows->ohlcv;
    bars->funding = rows->funding;
    bars->extra = rows->extra;
    bars->extra_count = rows->extra_count;
    bars->interval_ns = rows->interval_ns;
    bars->has_volume = rows->has_volume;
    bars->instrument = rows->instrument;
    rows->stamp_ns = NULL;
    rows->ohlcv = NULL;
    rows->funding = NULL;
    rows->extra = NULL;
    if (bars->extra_count &&
        !(bars->extra_name = calloc((size_t)bars->extra_count, sizeof *bars->extra_name))) {
        return ho_err_set(err, HO_ENOMEM, "no memory for the extra columns");
    }
    for (int e = 0; e < bars->extra_count; ++e) {
        (void)snprintf(bars->extra_name[e], sizeof bars->extra_name[e], "%s", options->extra[e]);
    }
    if (options->symbol[0] && !bars->instrument.symbol[0]) {
        (void)snprintf(bars->instrument.symbol, sizeof bars->instrument.symbol, "%s",
                       options->symbol);
    }
    return HO_OK;
}

/* Rows outside the session hours leave, before anything is made of them. */
static void drop_outside(const ho_calendar *calendar, ho_bars *bars, int16_t *contract,
                         ho_data_report *report)
{
    int64_t kept = 0;
    int E = bars->extra_count;
    if (calendar->end_s < 0) {
        return;
    }
    for (int64_t t = 0; t < bars->count; ++t) {
        if (!ho_calendar_is_inside(calendar, bars->open_ns[t])) {
            ho_report_find(report, HO_DIRT_OUTSIDE, 0, 0, bars->open_ns[t]);
            ++report->finding[HO_DIRT_OUTSIDE].dropped;
            continue;
        }
        bars->open_ns[kept] = bars->open_ns[t];
        memmove(bars->ohlcv + HO_BAR_COLUMNS * kept, bars->ohlcv + HO_BAR_COLUMNS * t,
                HO_BAR_COLUMNS * sizeof(double));
        if (contract) {
            contract[kept] = contract[t];
        }
        if (bars->funding) {
            bars->funding[kept] = bars->funding[t];
        }
        for (int e = 0; e < E; ++e) {
            bars->extra[kept * E + e] = bars->extra[t * E + e];
        }
        ++kept;
    }
    bars->count = kept;
}

ho_status ho_bars_load(const ho_data_options *options, ho_bars *out, ho_data_report *report,
                       ho_err *err)
{
    ho_status rc = HO_OK;
    ho_rows rows = {0};
    ho_zone *zone = NULL, *session_zone = NULL;
    ho_calendar calendar;
    ho_data_report *own = NULL;
    memset(out, 0, sizeof *out);
    if (!report) {
        if (!(report = own = malloc(sizeof *own))) {
            return ho_err_set(err, HO_ENOMEM, "no memory");
        }
    }
    memset(report, 0, sizeof *report);
    if (sodium_init() < 0) {
        rc = ho_err_set(err, HO_EIO, "libsodium does not start");
        goto out;
    }
    if ((rc = check_options(options, err)) != HO_OK ||
        (rc = ho_zone_load(options->timezone, &zone, err)) != HO_OK) {
        goto out;
    }
    rows.extra_count = options->extra_count;
    if ((rc = read_files(options, zone, &rows, report, out->sha256, err)) != HO_OK) {
        goto out;
    }
    const char *session_name = options->session_timezone[0] ? options->session_timezone
                               : options->timezone[0]       ? options->timezone
                                                            : rows.venue_zone;
    if ((rc = ho_zone_load(session_name, &session_zone, err)) != HO_OK) {
        goto out;
    }
    ho_clean clean = {.options = options,
                      .rows = &rows,
                      .report = report,
                      .session_zone = session_zone,
                      .err = err};
    if ((rc = ho_clean_order(&clean)) != HO_OK || (rc = ho_clean_interval(&clean)) != HO_OK ||
        (rc = ho_clean_duplicates(&clean)) != HO_OK || (rc = ho_clean_label(&clean)) != HO_OK ||
        (rc = ho_clean_period(&clean)) != HO_OK || (rc = ho_clean_dirt(&clean)) != HO_OK ||
        (rc = take_rows(options, &rows, out, err)) != HO_OK) {
        goto out;
    }
    if (rows.naive && !options->timezone[0]) {
        ho_report_note(report, true,
                       "the stamps have no zone and are read as UTC; write data.timezone = "
                       "\"UTC\", or the zone they are in");
    }
    (void)snprintf(out->timezone, sizeof out->timezone, "%s", session_name);
    ho_data_options_hash(options, out->settings);
    if ((rc = ho_calendar_find(options, session_zone, out->open_ns, out->count, out->interval_ns,
                               &calendar, err)) != HO_OK) {
        goto out;
    }
    drop_outside(&calendar, out, rows.contract, report);
    if (out->count == 0) {
        rc = ho_err_set(err, HO_EDATA, "%s: no bar is left after cleaning", options->path[0]);
        goto out;
    }
    if ((rc = ho_calendar_sessions(&calendar, out, err)) != HO_OK ||
        (rc = ho_roll_apply(options, rows.contract, session_zone, out, report, err)) != HO_OK ||
        (rc = ho_resample(options, &calendar, out, report, err)) != HO_OK ||
        (rc = ho_calendar_gaps(options, &calendar, out, report, err)) != HO_OK ||
        (rc = ho_calendar_year(options, &calendar, out, report, err)) != HO_OK) {
        goto out;
    }
    report->bars = out->count;
out:
    ho_rows_free(&rows);
    ho_zone_free(&zone);
    ho_zone_free(&session_zone);
    free(own);
    if (rc != HO_OK) {
        ho_bars_free(out);
    }
    return rc;
}
