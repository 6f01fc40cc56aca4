/* SPDX-License-Identifier: Apache-2.0
 * What each column of a CSV file holds: by names (the header's or data.columns), or by the values
 * where there are none; then the order of day and month, and fixed-point prices. See csv.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "market/csv_detector.h"
#include "market/number.h"

/* ---- names -------------------------------------------------------------------------------- */

/* Header of yfinance: Price,Close,High.. / Ticker,AAPL,AAPL.. / Date,,,.. becomes Date,Close,.. or
 * Date,AAPL:Close,MSFT:Close,.. */
static bool yfinance_names(ho_csv_detector *s)
{
    int price = -1, ticker = -1, index = -1;
    ho_csv_field names[HO_CSV_FIELDS], tickers[HO_CSV_FIELDS];
    for (int i = 0; i < s->data_line; ++i) {
        char first[48];
        (void)ho_csv_sample_split(s, i);
        ho_csv_field_copy(&s->field[0], first, sizeof first);
        price = strcasecmp(first, "Price") == 0 ? i : price;
        ticker = strcasecmp(first, "Ticker") == 0 ? i : ticker;
        index = strncasecmp(first, "Date", 4) == 0 ? i : index;
    }
    if (price < 0 || ticker < 0) {
        return false;
    }
    int n = ho_csv_sample_split(s, price);
    memcpy(names, s->field, sizeof names);
    int m = ho_csv_sample_split(s, ticker);
    memcpy(tickers, s->field, sizeof tickers);
    bool several = false;
    for (int k = 2; k < n && k < m; ++k) {
        several |= tickers[k].length != tickers[1].length ||
                   memcmp(tickers[k].text, tickers[1].text, tickers[1].length) != 0;
    }
    for (int k = 0; k < n; ++k) {
        if (k == 0) {
            (void)strcpy(s->d->name[0], index >= 0 ? "Date" : "");
        } else if (several && k < m) {
            (void)snprintf(s->d->name[k], sizeof s->d->name[k], "%.*s:%.*s",
                           (int)(tickers[k].length < 20 ? tickers[k].length : 20), tickers[k].text,
                           (int)(names[k].length < 20 ? names[k].length : 20), names[k].text);
        } else {
            ho_csv_field_copy(&names[k], s->d->name[k], sizeof s->d->name[k]);
        }
    }
    s->d->fields = n;
    s->d->known_as = "yfinance";
    return true;
}

/* Names of the columns from the header, with the mends for headers that do not match the rows. */
static ho_status header_names(ho_csv_detector *s)
{
    ho_csv_dialect *d = s->d;
    int names = ho_csv_sample_split(s, s->header_line);
    if (names < 0) {
        return ho_err_set(s->err, HO_EDATA, "%s:%lld: the header has an open quote", s->path,
                          (long long)s->line[s->header_line].number);
    }
    if (!yfinance_names(s)) {
        (void)ho_csv_sample_split(s, s->header_line);
        for (int k = 0; k < names; ++k) {
            ho_csv_field_copy(&s->field[k], d->name[k], sizeof d->name[k]);
        }
        d->fields = names;
    }
    names = d->fields;
    int fields = ho_csv_sample_split(s, s->data_line);
    bool trailing = fields > 1 && s->field[fields - 1].length == 0;
    if (names > 1 && d->name[names - 1][0] == '\0' && fields != names) {
        --names; /* the header ends with a separator */
    }
    if (fields == names + 1 && !trailing) {
        bool has_time = false;
        for (int k = 0; k < names; ++k) {
            has_time |= ho_csv_role_of(d->name[k]) == HO_CSV_TIME;
        }
        int64_t number = 0;
        bool clock = !has_time && ho_stamp_is_clock(s->field[1].text, s->field[1].length);
        bool index = ho_number_parse_digits(s->field[0].text, s->field[0].length, &number) &&
                     !ho_csv_is_stamp(s, &s->field[0]);
        if (!clock && !index) {
            return ho_err_set(s->err, HO_EDATA,
                              "%s:%lld: the row has %d columns and the header %d; write "
                              "data.columns with a name for each",
                              s->path, (long long)s->line[s->data_line].number, fields, names);
        }
        int at = clock ? 1 : 0;
        memmove(d->name + at + 1, d->name + at, (size_t)(names - at) * sizeof d->name[0]);
        (void)strcpy(d->name[at], clock ? "time" : "-");
        ho_report_note(s->report, false,
                       clock ? "the header has one name less than the rows: date and time are two "
                               "columns"
                             : "the first column has no name and counts the rows: not used");
        ++names;
    }
    d->fields = names;
    return HO_OK;
}

static ho_status key_names(ho_csv_detector *s)
{
    char list[sizeof s->options->columns], *rest = list, *name = NULL;
    int n = 0;
    (void)snprintf(list, sizeof list, "%s", s->options->columns);
    while ((name = strsep(&rest, ",")) && n < HO_CSV_FIELDS) {
        while (*name == ' ') {
            ++name;
        }
        (void)snprintf(s->d->name[n++], sizeof s->d->name[0], "%s", name);
    }
    int fields = ho_csv_sample_split_trimmed(s, s->data_line);
    if (fields < n) {
        return ho_err_set(s->err, HO_EDATA,
                          "%s:%lld: data.columns names %d columns, the row has %d", s->path,
                          (long long)s->line[s->data_line].number, n, fields);
    }
    s->d->fields = fields;
    return HO_OK;
}

/* ---- roles ----------------------------------------------------------------------------------- */

/* Better names for the stamp are lower. */
static int stamp_rank(const char *name)
{
    static const char *const best[] = {"ts_event",      "open_time", "opentime", "ts_utc",
                                       "timestamp_utc", "timestamp", "datetime"};
    for (int i = 0; i < (int)(sizeof best / sizeof best[0]); ++i) {
        if (strcasecmp(name, best[i]) == 0) {
            return i;
        }
    }
    return 100;
}

/* Where "BTC:open", "BTC_open", "open BTC" keeps its role: sets role and asset. */
static ho_csv_role wide_role(const char *name, char *asset, size_t size)
{
    static const char separators[] = ":_./- ";
    for (const char *p = name; *p; ++p) {
        if (!strchr(separators, *p)) {
            continue;
        }
        char left[48];
        (void)snprintf(left, sizeof left, "%.*s", (int)(p - name), name);
        ho_csv_role right_role = ho_csv_role_of(p + 1), left_role = ho_csv_role_of(left);
        bool right = right_role >= HO_CSV_OPEN && right_role <= HO_CSV_ADJ_VOLUME;
        bool before = left_role >= HO_CSV_OPEN && left_role <= HO_CSV_ADJ_VOLUME;
        if (right && left[0]) {
            (void)snprintf(asset, size, "%s", left);
            return right_role;
        }
        if (before && p[1]) {
            (void)snprintf(asset, size, "%s", p + 1);
            return left_role;
        }
    }
    return HO_CSV_SKIP;
}

/* A file with one block of columns per instrument: keeps the block of data.symbol. */
static ho_status wide_roles(ho_csv_detector *s, ho_csv_role *role)
{
    char asset[HO_CSV_FIELDS][48], list[400] = "";
    int assets = 0;
    for (int k = 0; k < s->d->fields; ++k) {
        char name[48] = "";
        if (role[k] == HO_CSV_SKIP && wide_role(s->d->name[k], name, sizeof name)) {
            int i = 0;
            while (i < assets && strcasecmp(asset[i], name) != 0) {
                ++i;
            }
            if (i == assets) {
                (void)strcpy(asset[assets++], name);
                if (strlen(list) + strlen(name) + 3 < sizeof list) {
                    (void)strcat(strcat(list, assets > 1 ? ", " : ""), name);
                }
            }
        }
    }
    if (assets == 0) {
        return HO_OK;
    }
    const char *chosen = assets == 1 ? asset[0] : NULL;
    for (int i = 0; i < assets; ++i) {
        if (strcasecmp(asset[i], s->options->symbol) == 0) {
            chosen = asset[i];
        }
    }
    if (!chosen) {
        return ho_err_set(s->err, HO_EDATA,
                          "%s:%lld: the file has several instruments side by side; write "
                          "data.symbol = one of: %s",
                          s->path, (long long)s->line[s->header_line].number, list);
    }
    (void)snprintf(s->d->symbol, sizeof s->d->symbol, "%.47s", chosen);
    for (int k = 0; k < s->d->fields; ++k) {
        char name[48] = "";
        ho_csv_role wide =
            role[k] == HO_CSV_SKIP ? wide_role(s->d->name[k], name, sizeof name) : HO_CSV_SKIP;
        if (wide && strcasecmp(name, chosen) == 0) {
            role[k] = wide;
        }
    }
    return HO_OK;
}

/* Base and quote volume among two or more volume columns: quote = base * price. */
static void sort_volumes(ho_csv_detector *s, ho_csv_role *role)
{
    int column[8], n = 0, price = -1;
    for (int k = 0; k < s->d->fields; ++k) {
        if (role[k] == HO_CSV_VOLUME && n < 8) {
            column[n++] = k;
        }
        price = role[k] == HO_CSV_CLOSE ? k : price;
    }
    if (n < 2 || price < 0) {
        return;
    }
    int base = -1, quote = -1;
    for (int i = s->data_line; i < s->lines && base < 0; ++i) {
        int fields = ho_csv_sample_split(s, i);
        for (int a = 0; a < n && base < 0; ++a) {
            for (int b = 0; b < n && base < 0; ++b) {
                double x = 0.0, y = 0.0, c = 0.0;
                if (a != b && column[a] < fields && column[b] < fields && price < fields &&
                    ho_number_parse(s->field[column[a]].text, s->field[column[a]].length,
                                    s->d->decimal, s->d->thousands, &x) == HO_NUMBER_OK &&
                    ho_number_parse(s->field[column[b]].text, s->field[column[b]].length,
                                    s->d->decimal, s->d->thousands, &y) == HO_NUMBER_OK &&
                    ho_number_parse(s->field[price].text, s->field[price].length, s->d->decimal,
                                    s->d->thousands, &c) == HO_NUMBER_OK &&
                    x > 0.0 && c > 0.0 && y / (x * c) > 0.8 && y / (x * c) < 1.25) {
                    base = column[a];
                    quote = column[b];
                }
            }
        }
    }
    for (int i = 0; i < n; ++i) {
        if (base >= 0) {
            role[column[i]] = column[i] == base    ? HO_CSV_VOLUME
                              : column[i] == quote ? HO_CSV_QUOTE_VOLUME
                                                   : HO_CSV_SKIP;
        } else if (i > 0) {
            role[column[i]] = HO_CSV_SKIP; /* the first named volume is the volume */
        }
    }
}

/* Dates, clocks and stamps: which column or two columns hold the time. */
static void choose_time(ho_csv_detector *s, ho_csv_role *role)
{
    int date = -1, clock = -1, stamp = -1;
    for (int k = 0; k < s->d->fields; ++k) {
        const char *name = s->d->name[k];
        if (role[k] == HO_CSV_STAMP &&
            (stamp < 0 || stamp_rank(name) < stamp_rank(s->d->name[stamp]))) {
            stamp = k;
        }
        date = role[k] == HO_CSV_DATE && date < 0 ? k : date;
        clock = role[k] == HO_CSV_TIME && clock < 0 ? k : clock;
    }
    (void)ho_csv_sample_split(s, s->data_line);
    if (stamp < 0 && date >= 0 && clock >= 0 &&
        !ho_stamp_is_clock(s->field[clock].text, s->field[clock].length)) {
        stamp = ho_csv_is_stamp(s, &s->field[clock]) ? clock : date; /* both are whole stamps */
    } else if (stamp < 0 && (date < 0 || clock < 0)) {
        stamp = date >= 0 ? date : clock;
    }
    if (stamp < 0 && date < 0 && s->d->fields > 0 && s->d->name[0][0] == '\0') {
        stamp = 0; /* unnamed index column */
    }
    for (int k = 0; k < s->d->fields; ++k) {
        if (role[k] == HO_CSV_STAMP || (stamp >= 0 && (k == date || k == clock))) {
            role[k] = HO_CSV_SKIP;
        }
    }
    if (stamp >= 0) {
        role[stamp] = HO_CSV_STAMP;
        size_t length = strlen(s->d->name[stamp]);
        s->d->utc_by_name = length >= 3 && strcasecmp(s->d->name[stamp] + length - 3, "utc") == 0;
        s->d->utc_by_name |= strcasecmp(s->d->name[stamp], "Gmt time") == 0;
    }
}

static ho_status name_roles(ho_csv_detector *s)
{
    ho_csv_role role[HO_CSV_FIELDS];
    const ho_data_options *o = s->options;
    bool prices = false;
    for (int k = 0; k < s->d->fields; ++k) {
        role[k] = s->d->name[k][0] ? ho_csv_role_of(s->d->name[k]) : HO_CSV_SKIP;
        if (o->contract_column[0] && role[k] == HO_CSV_CONTRACT) {
            role[k] = HO_CSV_SKIP;
        }
        if (o->contract_column[0] && strcasecmp(s->d->name[k], o->contract_column) == 0) {
            role[k] = HO_CSV_CONTRACT;
        }
        if (o->funding_column[0] && strcasecmp(s->d->name[k], o->funding_column) == 0) {
            role[k] = HO_CSV_FUNDING;
        }
        prices |= role[k] == HO_CSV_CLOSE || role[k] == HO_CSV_OPEN || role[k] == HO_CSV_PRICE ||
                  role[k] == HO_CSV_BID_CLOSE;
    }
    if (!prices) {
        ho_status rc = wide_roles(s, role);
        if (rc != HO_OK) {
            return rc;
        }
    }
    choose_time(s, role);
    sort_volumes(s, role);
    for (int k = s->d->fields - 1; k >= 0; --k) { /* the first column of a role wins */
        s->d->column[role[k]] = k;
    }
    s->d->column[HO_CSV_SKIP] = -1;
    return HO_OK;
}

/* ---- without a header ------------------------------------------------------------------------ */

static bool row_numbers(ho_csv_detector *s, int i, int first, int n, double *out)
{
    int fields = ho_csv_sample_split(s, i);
    for (int k = 0; k < n; ++k) {
        if (first + k >= fields ||
            ho_number_parse(s->field[first + k].text, s->field[first + k].length, s->d->decimal,
                            s->d->thousands, &out[k]) != HO_NUMBER_OK) {
            return false;
        }
    }
    return true;
}

/* Share of sample rows, in percent, in which the order (indexes of o, h, l, c) makes a bar. */
static int order_fits(ho_csv_detector *s, int first, const int order[4])
{
    int rows = 0, fit = 0;
    for (int i = s->data_line; i < s->lines; ++i) {
        double x[4];
        if (row_numbers(s, i, first, 4, x)) {
            double o = x[order[0]], h = x[order[1]], l = x[order[2]], c = x[order[3]];
            ++rows;
            fit += h >= o && h >= c && l <= o && l <= c;
        }
    }
    return rows ? 100 * fit / rows : 0;
}

static ho_status guess_prices(ho_csv_detector *s, int first)
{
    static const struct {
        const char *name;
        int order[4];
    } orders[] = {
        {"open, high, low, close", {0, 1, 2, 3}}, {"open, close, low, high", {0, 3, 2, 1}},
        {"open, close, high, low", {0, 2, 3, 1}}, {"open, low, high, close", {0, 2, 1, 3}},
        {"low, high, open, close", {2, 1, 0, 3}}, {"high, low, open, close", {2, 0, 1, 3}},
    };
    int needed = 95;
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; ++i, needed = 99) {
        if (order_fits(s, first, orders[i].order) >= needed) {
            for (int k = 0; k < 4; ++k) {
                s->d->column[HO_CSV_OPEN + k] = first + orders[i].order[k];
            }
            if (i > 0) {
                ho_report_note(s->report, true,
                               "no header, and only the column order %s makes bars: read so; "
                               "write data.columns to say it yourself",
                               orders[i].name);
            }
            return HO_OK;
        }
    }
    return ho_err_set(s->err, HO_EDATA,
                      "%s:%lld: no header, and no known order of the columns makes bars (high on "
                      "top, low below); write data.columns, for instance \"time,open,high,low,"
                      "close,volume\"",
                      s->path, (long long)s->line[s->data_line].number);
}

/* Bid and ask in ten columns, as Lean writes quotes. */
static bool guess_quotes(ho_csv_detector *s, int first)
{
    static const int plain[4] = {0, 1, 2, 3};
    double x[9];
    if (!row_numbers(s, s->data_line, first, 9, x) || order_fits(s, first, plain) < 95 ||
        order_fits(s, first + 5, plain) < 95 || !(x[8] >= x[3] && x[8] < 1.05 * x[3])) {
        return false;
    }
    for (int k = 0; k < 4; ++k) {
        s->d->column[HO_CSV_BID_OPEN + k] = first + k;
        s->d->column[HO_CSV_ASK_OPEN + k] = first + 5 + k;
    }
    s->d->known_as = "Lean quotes";
    return true;
}

/* Eight digits at the start of a zip member's name: the day of its rows. */
static int64_t day_in_name(const char *member)
{
    ho_stamp stamp;
    const char *base = strrchr(member, '/');
    base = base ? base + 1 : member;
    return strlen(base) > 8 &&
                   ho_stamp_parse(base, 8, HO_STAMP_ORDER_YMD, 0, 0, &stamp) == HO_STAMP_OK &&
                   stamp.kind == HO_STAMP_DATE
               ? stamp.s
               : -1;
}

static ho_status guess_roles(ho_csv_detector *s, const char *member)
{
    ho_csv_dialect *d = s->d;
    int64_t of_day = 0;
    int n = ho_csv_sample_split_trimmed(s, s->data_line), at = 0, first = 0;
    ho_status rc = HO_OK;
    d->fields = n;
    d->day_s = -1;
    if (n > 4 && day_in_name(member) >= 0 &&
        ho_number_parse_digits(s->field[0].text, s->field[0].length, &of_day) &&
        of_day < 86400000) {
        d->day_s = day_in_name(member);
        d->column[HO_CSV_STAMP] = 0;
        d->known_as = "Lean minute file";
        first = 1;
    } else {
        while (at < n && at < 3 && !ho_csv_is_stamp(s, &s->field[at])) {
            ++at; /* ticker and period may stand before */
        }
        if (at == n || at == 3) {
            return ho_err_set(s->err, HO_EDATA,
                              "%s:%lld: no header, and none of the first columns is a time; write "
                              "data.columns, for instance \"time,open,high,low,close,volume\"",
                              s->path, (long long)s->line[s->data_line].number);
        }
        ho_stamp stamp;
        (void)ho_csv_parse_stamp(s, &s->field[at], &stamp);
        if (stamp.kind == HO_STAMP_DATE && at + 1 < n &&
            ho_stamp_is_clock(s->field[at + 1].text, s->field[at + 1].length) && n - at >= 6) {
            d->column[HO_CSV_DATE] = at;
            d->column[HO_CSV_TIME] = at + 1;
            first = at + 2;
        } else {
            d->column[HO_CSV_STAMP] = at;
            first = at + 1;
        }
    }
    int numbers = n - first;
    if (numbers == 1) {
        d->column[HO_CSV_PRICE] = first;
        return HO_OK;
    }
    if (numbers < 4) {
        return ho_err_set(s->err, HO_EDATA,
                          "%s:%lld: no header, and %d columns behind the time are neither one "
                          "price nor open, high, low, close; write data.columns",
                          s->path, (long long)s->line[s->data_line].number, numbers);
    }
    if (numbers == 10 && guess_quotes(s, first)) {
        return HO_OK;
    }
    if ((rc = guess_prices(s, first)) != HO_OK) {
        return rc;
    }
    if (numbers >= 5) {
        d->column[HO_CSV_VOLUME] = first + 4;
    }
    (void)ho_csv_sample_split(s, s->data_line);
    if (numbers == 11 && ho_csv_is_stamp(s, &s->field[first + 5])) {
        d->column[HO_CSV_CLOSE_TIME] = first + 5;
        d->column[HO_CSV_QUOTE_VOLUME] = first + 6;
        d->known_as = "Binance klines";
    }
    return HO_OK;
}

/* ---- checks on the roles --------------------------------------------------------------------- */

static ho_status check_prices(ho_csv_detector *s)
{
    static const char *const names[] = {"open", "high", "low", "close"};
    ho_csv_dialect *d = s->d;
    int *column = d->column;
    bool quotes = true;
    int64_t line = s->line[s->header_line >= 0 ? s->header_line : s->data_line].number;
    if (column[HO_CSV_CLOSE] < 0 && column[HO_CSV_PRICE] >= 0 && column[HO_CSV_OPEN] >= 0) {
        column[HO_CSV_CLOSE] = column[HO_CSV_PRICE]; /* investing.com calls the close Price */
        column[HO_CSV_PRICE] = -1;
    }
    for (int k = 0; k < 4; ++k) {
        quotes &= column[HO_CSV_BID_OPEN + k] >= 0 && column[HO_CSV_ASK_OPEN + k] >= 0;
    }
    if (column[HO_CSV_STAMP] < 0 && column[HO_CSV_DATE] < 0) {
        return ho_err_set(s->err, HO_EDATA,
                          "%s:%lld: no column is called time, date, timestamp or the like; write "
                          "data.columns with a name for each column (time, open, high, low, close, "
                          "volume, or - for one that is not used)",
                          s->path, (long long)line);
    }
    if (quotes && column[HO_CSV_OPEN] < 0) {
        return HO_OK;
    }
    int found = 0, missing = -1;
    for (int k = 0; k < 4; ++k) {
        found += column[HO_CSV_OPEN + k] >= 0;
        missing = column[HO_CSV_OPEN + k] < 0 && missing < 0 ? k : missing;
    }
    if (found == 4) {
        return HO_OK;
    }
    int only = column[HO_CSV_PRICE] >= 0 ? column[HO_CSV_PRICE] : column[HO_CSV_CLOSE];
    if (only >= 0 && column[HO_CSV_OPEN] < 0 && column[HO_CSV_HIGH] < 0) {
        if (!s->options->close_only) {
            return ho_err_set(s->err, HO_EDATA,
                              "%s:%lld: the file has one price a row and no open, high and low; "
                              "write data.close_only = true to take it for all four (stops and "
                              "limits then see closes only)",
                              s->path, (long long)line);
        }
        for (int k = 0; k < 4; ++k) {
            column[HO_CSV_OPEN + k] = only;
        }
        return HO_OK;
    }
    if (missing < 0) {
        missing = 0;
    }
    return ho_err_set(s->err, HO_EDATA,
                      "%s:%lld: no column is called %s; write data.columns with a name for each "
                      "column (time, open, high, low, close, volume, or - for one not used)",
                      s->path, (long long)line, names[missing]);
}

static ho_status check_extra(ho_csv_detector *s)
{
    for (int e = 0; e < s->options->extra_count; ++e) {
        s->d->extra[e] = -1;
        for (int k = 0; k < s->d->fields; ++k) {
            if (strcasecmp(s->d->name[k], s->options->extra[e]) == 0) {
                s->d->extra[e] = k;
            }
        }
        if (s->d->extra[e] < 0) {
            return ho_err_set(s->err, HO_EDATA, "%s: features.extra: no column is called \"%s\"",
                              s->path, s->options->extra[e]);
        }
    }
    if (s->options->funding_column[0] && s->d->column[HO_CSV_FUNDING] < 0) {
        return ho_err_set(s->err, HO_EDATA, "%s: data.funding_column: no column is called \"%s\"",
                          s->path, s->options->funding_column);
    }
    if (s->options->contract_column[0] && s->d->column[HO_CSV_CONTRACT] < 0) {
        return ho_err_set(s->err, HO_EDATA, "%s: data.contract_column: no column is called \"%s\"",
                          s->path, s->options->contract_column);
    }
    return HO_OK;
}

/* Day or month first, from every row of the column. */
static ho_status find_date_order(ho_csv_detector *s)
{
    ho_csv_dialect *d = s->d;
    int column = d->column[HO_CSV_STAMP] >= 0 ? d->column[HO_CSV_STAMP] : d->column[HO_CSV_DATE];
    int64_t number = d->data_line, first_line = 0, second_line = 0;
    bool ambiguous = false;
    d->order = (ho_stamp_order)s->options->date_order;
    if (d->order != HO_STAMP_ORDER_UNKNOWN || d->day_s >= 0) {
        return HO_OK;
    }
    for (const char *p = s->text + d->data_offset; p < s->end; ++number) {
        const char *stop = ho_csv_line_end(p, s->end);
        int n = ho_csv_split(p, stop, d->separator, s->field);
        ho_stamp stamp;
        if (n > column) {
            ho_stamp_result result = ho_csv_parse_stamp(s, &s->field[column], &stamp);
            if (result == HO_STAMP_OK && !ambiguous) {
                return HO_OK; /* a form that says its order */
            }
            if (result == HO_STAMP_AMBIGUOUS) {
                ambiguous = true;
                first_line = stamp.first > 12 && !first_line ? number : first_line;
                second_line = stamp.second > 12 && !second_line ? number : second_line;
            }
        }
        p = stop + 1;
    }
    if (!ambiguous) {
        return HO_OK; /* not a stamp: the reader says where */
    }
    if (first_line && second_line) {
        return ho_err_set(s->err, HO_EDATA,
                          "%s:%lld: the day stands first here, but second in line %lld; the "
                          "column mixes day.month and month.day",
                          s->path, (long long)first_line, (long long)second_line);
    }
    if (!first_line && !second_line) {
        return ho_err_set(s->err, HO_EDATA,
                          "%s:%lld: no date tells whether day or month stands first; write "
                          "data.date_order = \"dmy\" or \"mdy\"",
                          s->path, (long long)d->data_line);
    }
    d->order = first_line ? HO_STAMP_ORDER_DMY : HO_STAMP_ORDER_MDY;
    return HO_OK;
}

/* ---- fixed-point prices ---------------------------------------------------------------------- */

static void find_scale(ho_csv_detector *s)
{
    ho_csv_dialect *d = s->d;
    int open = d->column[HO_CSV_OPEN], integers = 0, hundreds = 0, rows = 0;
    int64_t least = INT64_MAX;
    d->price_scale = s->options->price_scale > 0.0 ? s->options->price_scale : 1.0;
    if (s->options->price_scale > 0.0 || open < 0) {
        return;
    }
    for (int i = s->data_line; i < s->lines; ++i) {
        int64_t value = 0;
        if (ho_csv_sample_split(s, i) > open && s->field[open].length > 0) {
            ++rows;
            if (ho_number_parse_digits(s->field[open].text, s->field[open].length, &value)) {
                ++integers;
                hundreds += value % 100 == 0;
                least = value < least ? value : least;
            }
        }
    }
    if (rows == 0 || integers != rows) {
        return;
    }
    int stamp = d->column[HO_CSV_STAMP];
    if (d->header && stamp >= 0 && strcasecmp(d->name[stamp], "ts_event") == 0 &&
        least >= 1000000) {
        d->price_scale = 1e-9;
        d->known_as = "Databento CSV";
        ho_report_note(s->report, false,
                       "integer prices are in units of 1e-9, as Databento writes them");
    } else if (!d->header && (d->day_s >= 0 || s->field[0].length == 14) && least >= 1000 &&
               hundreds * 10 >= rows * 9) {
        d->price_scale = 1e-4;
        d->known_as = "Lean";
        ho_report_note(s->report, true,
                       "integer prices are taken as 1/10000, as Lean writes equities; write "
                       "data.price_scale = 1 if they are whole");
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

ho_status ho_csv_find_roles(ho_csv_detector *s, const char *member)
{
    ho_status rc = HO_OK;
    bool named = s->options->columns[0] || s->header_line >= 0;
    if (s->options->columns[0]) {
        rc = key_names(s);
    } else if (named) {
        rc = header_names(s);
    }
    if (rc != HO_OK || (rc = named ? name_roles(s) : guess_roles(s, member)) != HO_OK ||
        (rc = check_prices(s)) != HO_OK || (rc = check_extra(s)) != HO_OK ||
        (rc = find_date_order(s)) != HO_OK) {
        return rc;
    }
    find_scale(s);
    return HO_OK;
}
