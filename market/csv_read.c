/* SPDX-License-Identifier: Apache-2.0
 * Reads the rows of a CSV file by its dialect. Each cell is parsed whole or refused with file, line
 * and column; stamps without a zone become instants at the end, in the order of time. See csv.h. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "market/csv.h"
#include "market/number.h"

enum { SYMBOLS_SHOWN = 16 };

static const int64_t SECOND_NS = 1000000000LL;

typedef struct reader {
    const char *path;
    int file;
    const ho_data_options *options;
    const ho_zone *zone;
    const ho_csv_dialect *d;
    ho_rows *rows;
    ho_data_report *report;
    ho_err *err;
    int64_t now_s;
    int64_t line;      /* number of the present line */
    const char *begin; /* of the present line */
    int volume_column;
    double divisor;    /* prices are divided by this: exact for fixed point */
    int unit;          /* of the epochs so far, or 0 */
    bool local, zoned; /* kinds of stamps seen */
    bool clock;        /* some stamp has a time of day */
    ho_csv_field field[HO_CSV_FIELDS];
    char symbol[SYMBOLS_SHOWN][72]; /* values of the symbol column */
    int symbols;
} reader;

static ho_status refuse(reader *s, const char *at, const char *what, const ho_csv_field *field,
                        const char *mend)
{
    return ho_err_set(s->err, HO_EDATA, "%s:%lld:%lld: %s \"%.*s\"%s", s->path, (long long)s->line,
                      (long long)(at - s->begin + 1), what,
                      (int)(field->length < 40 ? field->length : 40), field->text, mend);
}

/* ---- cells ----------------------------------------------------------------------------------- */

/* A price of one of the roles; *empty is set when there is none. */
static ho_status read_price(reader *s, ho_csv_role role, double *out, bool *empty)
{
    const ho_csv_field *f = &s->field[s->d->column[role]];
    char what[64];
    *empty = false;
    switch (ho_number_parse(f->text, f->length, s->d->decimal, s->d->thousands, out)) {
    case HO_NUMBER_OK:
        *out /= s->divisor;
        if (isfinite(*out)) {
            return HO_OK;
        }
        break;
    case HO_NUMBER_EMPTY:
        *empty = true;
        return HO_OK;
    case HO_NUMBER_INFINITE:
        break;
    case HO_NUMBER_BAD:
        (void)snprintf(what, sizeof what, "%s is not a number:", ho_csv_role_name(role));
        return refuse(s, f->text, what, f,
                      "; write data.decimal or data.columns if the columns are mistaken");
    }
    (void)snprintf(what, sizeof what, "%s is not finite:", ho_csv_role_name(role));
    return refuse(s, f->text, what, f, "");
}

/* The four prices of one family of roles (open.., bid_open.., ask_open..). */
static ho_status read_four(reader *s, ho_csv_role first, double out[4], int *empties)
{
    int last_empty = 0;
    *empties = 0;
    for (int k = 0; k < 4; ++k) {
        bool empty = false;
        ho_status rc = read_price(s, (ho_csv_role)((int)first + k), &out[k], &empty);
        if (rc != HO_OK) {
            return rc;
        }
        *empties += empty;
        last_empty = empty ? k : last_empty;
    }
    if (*empties > 0 && *empties < 4) {
        ho_csv_role role = (ho_csv_role)((int)first + last_empty);
        const ho_csv_field *f = &s->field[s->d->column[role]];
        char what[64];
        (void)snprintf(what, sizeof what, "%s is missing:", ho_csv_role_name(role));
        return refuse(s, f->text, what, f, " (the bar's other prices are there)");
    }
    return HO_OK;
}

static ho_status read_prices(reader *s, double out[4], int *empties)
{
    if (s->d->column[HO_CSV_OPEN] >= 0) {
        return read_four(s, HO_CSV_OPEN, out, empties);
    }
    if (s->options->quote != HO_QUOTE_MID) {
        return read_four(s, s->options->quote == HO_QUOTE_BID ? HO_CSV_BID_OPEN : HO_CSV_ASK_OPEN,
                         out, empties);
    }
    double ask[4];
    int ask_empties = 0;
    ho_status rc = read_four(s, HO_CSV_BID_OPEN, out, empties);
    if (rc != HO_OK || (rc = read_four(s, HO_CSV_ASK_OPEN, ask, &ask_empties)) != HO_OK) {
        return rc;
    }
    *empties = *empties || ask_empties ? 4 : 0; /* a side alone is no bar */
    for (int k = 0; k < 4; ++k) {
        out[k] = 0.5 * (out[k] + ask[k]);
    }
    return HO_OK;
}

/* data.adjusted: the adjusted columns, or all prices by the ratio of the closes. */
static ho_status adjust_prices(reader *s, double price[4])
{
    bool empty = false;
    double close = 0.0;
    if (s->d->column[HO_CSV_ADJ_CLOSE] < 0) {
        return ho_err_set(s->err, HO_EDATA,
                          "%s: data.adjusted = true, but no column is called Adj Close", s->path);
    }
    ho_status rc = read_price(s, HO_CSV_ADJ_CLOSE, &close, &empty);
    if (rc != HO_OK) {
        return rc;
    }
    if (empty || price[3] == 0.0) {
        const ho_csv_field *f = &s->field[s->d->column[HO_CSV_ADJ_CLOSE]];
        return refuse(s, f->text, "adj_close is missing:", f, "");
    }
    for (int k = 0; k < 3; ++k) {
        ho_csv_role role = (ho_csv_role)(HO_CSV_ADJ_OPEN + k);
        if (s->d->column[role] < 0) {
            price[k] *= close / price[3];
        } else if ((rc = read_price(s, role, &price[k], &empty)) != HO_OK) {
            return rc;
        }
    }
    price[3] = close;
    return HO_OK;
}

static ho_status read_volume(reader *s, double *out)
{
    *out = 0.0;
    if (s->volume_column < 0) {
        return HO_OK;
    }
    const ho_csv_field *f = &s->field[s->volume_column];
    switch (ho_number_parse_scaled(f->text, f->length, s->d->decimal, s->d->thousands, out)) {
    case HO_NUMBER_OK:
        return HO_OK;
    case HO_NUMBER_EMPTY:
        *out = 0.0;
        return HO_OK;
    case HO_NUMBER_INFINITE:
        return refuse(s, f->text, "volume is not finite:", f, "");
    case HO_NUMBER_BAD:
        break;
    }
    return refuse(s, f->text, "volume is not a number:", f,
                  "; write data.volume = \"none\" to do without");
}

static ho_status read_optional(reader *s, int64_t i)
{
    ho_rows *rows = s->rows;
    for (int e = 0; e < rows->extra_count; ++e) {
        const ho_csv_field *f = &s->field[s->d->extra[e]];
        double *cell = &rows->extra[i * rows->extra_count + e];
        ho_number_kind kind =
            ho_number_parse(f->text, f->length, s->d->decimal, s->d->thousands, cell);
        if (kind == HO_NUMBER_EMPTY) {
            *cell = i > 0 ? rows->extra[(i - 1) * rows->extra_count + e] : 0.0;
            ho_report_find(s->report, HO_DIRT_EXTRA_MISSING, s->file, s->line, 0);
        } else if (kind != HO_NUMBER_OK) {
            return refuse(s, f->text, "extra column is not a finite number:", f, "");
        }
    }
    if (rows->contract) {
        const ho_csv_field *f = &s->field[s->d->column[HO_CSV_CONTRACT]];
        int number = ho_rows_contract(rows, f->text, f->length);
        if (number < 0) {
            return ho_err_set(s->err, HO_EDATA,
                              "%s:%lld: too many contracts: is this the contract column?", s->path,
                              (long long)s->line);
        }
        rows->contract[i] = (int16_t)number;
    }
    if (rows->funding) {
        const ho_csv_field *f = &s->field[s->d->column[HO_CSV_FUNDING]];
        ho_number_kind kind =
            ho_number_parse(f->text, f->length, s->d->decimal, s->d->thousands, &rows->funding[i]);
        if (kind != HO_NUMBER_OK && kind != HO_NUMBER_EMPTY) {
            return refuse(s, f->text, "funding is not a finite number:", f, "");
        }
    }
    return HO_OK;
}

/* ---- stamps ---------------------------------------------------------------------------------- */

static ho_status read_stamp(reader *s, int64_t *ns)
{
    const ho_csv_dialect *d = s->d;
    ho_stamp stamp;
    ho_stamp_result result = HO_STAMP_OK;
    const ho_csv_field *f =
        &s->field[d->column[HO_CSV_STAMP] >= 0 ? d->column[HO_CSV_STAMP] : d->column[HO_CSV_DATE]];
    if (d->day_s >= 0) {
        int64_t ms = 0;
        if (!ho_number_parse_digits(f->text, f->length, &ms) || ms >= 86400000) {
            return refuse(s, f->text, "not milliseconds of a day:", f, "");
        }
        s->local = s->clock = true;
        *ns = d->day_s * SECOND_NS + ms * 1000000;
        return HO_OK;
    }
    if (d->column[HO_CSV_STAMP] >= 0) {
        result = ho_stamp_parse(f->text, f->length, d->order, d->epoch_unit, s->now_s, &stamp);
    } else {
        const ho_csv_field *clock = &s->field[d->column[HO_CSV_TIME]];
        result =
            ho_stamp_parse_split(f->text, f->length, clock->text, clock->length, d->order, &stamp);
    }
    switch (result) {
    case HO_STAMP_OK:
        break;
    case HO_STAMP_EMPTY:
        return refuse(s, f->text, "the time is missing:", f, "");
    case HO_STAMP_RANGE:
        return refuse(s, f->text,
                      "this epoch is not between 1980 and tomorrow in s, ms, us or ns:", f,
                      "; write data.epoch_unit if it is another unit than its size says");
    case HO_STAMP_AMBIGUOUS:
    case HO_STAMP_BAD:
        return refuse(s, f->text, "not a date and time:", f, "");
    }
    if (stamp.kind == HO_STAMP_EPOCH && stamp.unit != s->unit) {
        if (s->unit != 0) {
            ho_report_find(s->report, HO_DIRT_UNIT_CHANGE, s->file, s->line,
                           stamp.s * SECOND_NS + stamp.ns);
        }
        s->unit = stamp.unit;
    }
    bool naive = stamp.kind == HO_STAMP_LOCAL || stamp.kind == HO_STAMP_DATE;
    s->clock |= stamp.kind != HO_STAMP_DATE;
    if (naive ? s->zoned : s->local) {
        return refuse(s, f->text, "some stamps have a zone and this has not, or the reverse:", f,
                      "");
    }
    *(naive ? &s->local : &s->zoned) = true;
    *ns = stamp.s * SECOND_NS + stamp.ns;
    return HO_OK;
}

/* Instants of the rows from `first`, whose stamps are wall clock so far. */
static ho_status resolve_local(reader *s, int64_t first)
{
    static const int64_t never = INT64_MIN;
    ho_rows *rows = s->rows;
    int64_t falls = 0, rises = 0, before = never, before_local = never;
    for (int64_t i = first + 1; i < rows->count; ++i) {
        rises += rows->stamp_ns[i] > rows->stamp_ns[i - 1];
        falls += rows->stamp_ns[i] < rows->stamp_ns[i - 1];
    }
    int64_t n = rows->count - first, step = falls > rises ? -1 : 1;
    int64_t i = step > 0 ? first : rows->count - 1;
    for (int64_t k = 0; k < n; ++k, i += step) {
        int64_t utc_s[2];
        int64_t local = rows->stamp_ns[i], local_s = ho_floor_div(local, SECOND_NS);
        int found = ho_zone_from_local(s->zone, local_s, utc_s);
        if (found == 0) {
            int64_t year = 0;
            int month = 0, day = 0;
            int64_t of_day = local_s - ho_floor_div(local_s, 86400) * 86400;
            ho_civil_from_days(ho_floor_div(local_s, 86400), &year, &month, &day);
            return ho_err_set(s->err, HO_EDATA,
                              "%s:%u: %04lld-%02d-%02d %02d:%02d does not exist in %s, where the "
                              "clock jumps over it: data.timezone is not this file's zone (for US "
                              "Eastern without daylight saving write \"-05:00\")",
                              s->path, rows->line[i], (long long)year, month, day,
                              (int)(of_day / 3600), (int)(of_day / 60 % 60), s->options->timezone);
        }
        int pick = 0;
        if (found == 2) {
            int64_t first_ns = utc_s[0] * SECOND_NS + (local - local_s * SECOND_NS);
            ho_report_find(s->report, HO_DIRT_DST_HOUR, s->file, rows->line[i], first_ns);
            if (s->options->dst == HO_DST_REFUSE) {
                return ho_err_set(s->err, HO_EDATA,
                                  "%s:%u: this hour comes twice on that day in %s, and data.dst = "
                                  "\"refuse\"; write \"order\", \"first\" or \"second\"",
                                  s->path, rows->line[i], s->options->timezone);
            }
            bool again =
                local == before_local && i != first &&
                memcmp(rows->ohlcv + 5 * i, rows->ohlcv + 5 * (i - step), 5 * sizeof(double)) == 0;
            pick = s->options->dst == HO_DST_SECOND ||
                   (s->options->dst == HO_DST_ORDER && before != never && first_ns <= before &&
                    !(again && first_ns == before));
        }
        rows->stamp_ns[i] = utc_s[pick] * SECOND_NS + (local - local_s * SECOND_NS);
        before = rows->stamp_ns[i];
        before_local = local;
    }
    return HO_OK;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* False: the row belongs to another symbol. */
static bool is_wanted(reader *s)
{
    int column = s->d->column[HO_CSV_SYMBOL];
    if (column < 0) {
        return true;
    }
    const ho_csv_field *f = &s->field[column];
    bool known = false;
    for (int i = 0; i < s->symbols && !known; ++i) {
        known =
            strlen(s->symbol[i]) == f->length && strncasecmp(s->symbol[i], f->text, f->length) == 0;
    }
    if (!known && s->symbols < SYMBOLS_SHOWN && f->length < sizeof s->symbol[0]) {
        memcpy(s->symbol[s->symbols], f->text, f->length);
        s->symbol[s->symbols++][f->length] = '\0';
    }
    return !s->options->symbol[0] || s->d->symbol[0] ||
           (strlen(s->options->symbol) == f->length &&
            strncasecmp(s->options->symbol, f->text, f->length) == 0);
}

static ho_status check_symbols(reader *s, int64_t first)
{
    char list[500] = "";
    bool several = s->symbols > 1 && !s->options->symbol[0] && !s->d->symbol[0];
    bool none = s->rows->count == first && s->symbols > 0;
    if (!several && !none) {
        if (s->symbols > 0 && !s->rows->instrument.symbol[0]) {
            (void)snprintf(s->rows->instrument.symbol, sizeof s->rows->instrument.symbol, "%s",
                           s->options->symbol[0] ? s->options->symbol : s->symbol[0]);
        }
        return HO_OK;
    }
    for (int i = 0; i < s->symbols; ++i) {
        if (strlen(list) + strlen(s->symbol[i]) + 3 < sizeof list) {
            (void)strcat(strcat(list, i ? ", " : ""), s->symbol[i]);
        }
    }
    return ho_err_set(s->err, HO_EDATA, "%s: %s; write data.symbol = one of: %s%s", s->path,
                      several ? "the file has several instruments"
                              : "no row has the symbol that data.symbol names",
                      list, s->symbols == SYMBOLS_SHOWN ? ", ..." : "");
}

static ho_status read_row(reader *s, int fields)
{
    const ho_csv_dialect *d = s->d;
    ho_status rc = HO_OK;
    int64_t ns = 0;
    double price[4];
    int empties = 0;
    if (fields != d->fields && !(fields == d->fields + 1 && s->field[fields - 1].length == 0)) {
        return ho_err_set(s->err, HO_EDATA, "%s:%lld: the row has %d columns, the others have %d%s",
                          s->path, (long long)s->line, fields < 0 ? 0 : fields, d->fields,
                          fields < 0 ? " (a quote is left open, or there are too many)" : "");
    }
    if (!is_wanted(s)) {
        return HO_OK;
    }
    if ((rc = read_stamp(s, &ns)) != HO_OK || (rc = read_prices(s, price, &empties)) != HO_OK) {
        return rc;
    }
    if (empties == 4) {
        ho_report_find(s->report, HO_DIRT_EMPTY_ROW, s->file, s->line, s->zoned ? ns : 0);
        if (s->options->empty_rows == HO_DIRT_REFUSE) {
            return ho_err_set(s->err, HO_EDATA,
                              "%s:%lld: the row has no prices; write data.empty_rows = \"drop\" "
                              "to leave such rows out",
                              s->path, (long long)s->line);
        }
        ++s->report->finding[HO_DIRT_EMPTY_ROW].dropped;
        return HO_OK;
    }
    if (s->options->adjusted && (rc = adjust_prices(s, price)) != HO_OK) {
        return rc;
    }
    int64_t i = ho_rows_add(s->rows);
    if (i < 0) {
        return ho_err_set(s->err, HO_ENOMEM, "%s: no memory for the rows", s->path);
    }
    s->rows->stamp_ns[i] = ns;
    s->rows->line[i] = (uint32_t)s->line;
    s->rows->file[i] = (uint16_t)s->file;
    memcpy(s->rows->ohlcv + 5 * i, price, sizeof price);
    if ((rc = read_volume(s, &s->rows->ohlcv[5 * i + 4])) != HO_OK) {
        return rc;
    }
    return read_optional(s, i);
}

/* True if the column has a value other than 0 somewhere. */
static bool column_is_used(reader *s, const char *text, const char *end, int column)
{
    for (const char *p = text; p < end;) {
        const char *stop = ho_csv_line_end(p, end);
        double value = 0.0;
        int n = ho_csv_split(p, stop, s->d->separator, s->field);
        if (n > column &&
            ho_number_parse_scaled(s->field[column].text, s->field[column].length, s->d->decimal,
                                   s->d->thousands, &value) == HO_NUMBER_OK &&
            value != 0.0) {
            return true;
        }
        p = stop + 1;
    }
    return false;
}

static ho_status choose_volume(reader *s, const char *text, const char *end)
{
    static const char *const words[] = {"auto", "base", "quote", "ticks", "none"};
    const int *column = s->d->column;
    int base = column[HO_CSV_VOLUME], ticks = column[HO_CSV_TICK_VOLUME];
    switch (s->options->volume) {
    case HO_VOLUME_BASE:
        s->volume_column = base;
        break;
    case HO_VOLUME_QUOTE:
        s->volume_column = column[HO_CSV_QUOTE_VOLUME];
        break;
    case HO_VOLUME_TICKS:
        s->volume_column = ticks;
        break;
    case HO_VOLUME_NONE:
        s->volume_column = -1;
        return HO_OK;
    default:
        s->volume_column = base >= 0 ? base : ticks;
        if (base >= 0 && ticks >= 0 && !column_is_used(s, text, end, base)) {
            s->volume_column = ticks;
            ho_report_note(s->report, false, "the volume column is 0 throughout: tick volume used");
        }
        return HO_OK;
    }
    if (s->volume_column < 0) {
        return ho_err_set(s->err, HO_EDATA,
                          "%s: data.volume = \"%s\", but the file has no such column", s->path,
                          words[s->options->volume]);
    }
    return HO_OK;
}

/* True if nothing but space is left. */
static bool is_blank(const char *p, const char *end)
{
    while (p < end && isspace((unsigned char)*p)) {
        ++p;
    }
    return p >= end;
}

static void describe_time(reader *s)
{
    static const char *const units[] = {"", "s", "ms", "us", "ns"};
    ho_data_report *r = s->report;
    if (s->unit) {
        (void)snprintf(r->time_form, sizeof r->time_form, "epoch %s", units[s->unit]);
    } else if (s->zoned) {
        (void)snprintf(r->time_form, sizeof r->time_form, "date and time with zone");
    } else {
        const char *zone = s->options->timezone[0] ? s->options->timezone : "UTC";
        (void)snprintf(r->time_form, sizeof r->time_form, "%s, no zone: %s",
                       s->clock ? "date and time" : "date", zone);
        s->rows->naive |= s->clock && !s->d->utc_by_name;
    }
}

ho_status ho_csv_read(const char *path, int file, const char *text, size_t size,
                      const ho_data_options *options, const ho_zone *zone,
                      const ho_csv_dialect *dialect, ho_rows *rows, ho_data_report *report,
                      ho_err *err)
{
    ho_status rc = HO_OK;
    const char *end = text + size, *p = text + dialect->data_offset;
    int64_t first = rows->count;
    reader *s = calloc(1, sizeof *s);
    if (!s) {
        return ho_err_set(err, HO_ENOMEM, "%s: no memory", path);
    }
    *s = (reader){.path = path,
                  .file = file,
                  .options = options,
                  .zone = zone,
                  .d = dialect,
                  .rows = rows,
                  .report = report,
                  .err = err,
                  .now_s = (int64_t)time(NULL),
                  .line = dialect->data_line - 1,
                  .divisor = dialect->price_scale < 1.0 ? round(1.0 / dialect->price_scale)
                                                        : 1.0 / dialect->price_scale};
    if ((rc = choose_volume(s, p, end)) != HO_OK) {
        goto out;
    }
    while (p < end) {
        const char *stop = ho_csv_line_end(p, end), *q = p;
        s->begin = p;
        ++s->line;
        p = stop + 1;
        while (q < stop && isspace((unsigned char)*q)) {
            ++q;
        }
        if (q == stop || *q == '#') {
            continue;
        }
        int fields = ho_csv_split(s->begin, stop, dialect->separator, s->field);
        if (fields == 1 && dialect->fields > 2 && !isdigit((unsigned char)*q) && is_blank(p, end)) {
            ho_report_note(report, false, "line %lld behind the data is not used: text",
                           (long long)s->line);
            break;
        }
        ++report->rows;
        if ((rc = read_row(s, fields)) != HO_OK) {
            goto out;
        }
    }
    if ((rc = check_symbols(s, first)) != HO_OK) {
        goto out;
    }
    describe_time(s);
    if (s->local && (rc = resolve_local(s, first)) != HO_OK) {
        goto out;
    }
    rows->dates_only = !s->clock;
    if (dialect->column[HO_CSV_CLOSE_TIME] >= 0) {
        rows->label = HO_LABEL_OPEN;
    }
out:
    free(s);
    return rc;
}
