/* SPDX-License-Identifier: Apache-2.0
 * Column names of CSV files and what they mean, and the splitting of a line. See csv.h. */
#include <ctype.h>
#include <string.h>

#include "market/csv.h"

typedef struct alias {
    const char *name; /* lower case, letters and digits only */
    ho_csv_role role;
} alias;

/* clang-format off */
static const alias aliases[] = {
    {"timestamp", HO_CSV_STAMP}, {"datetime", HO_CSV_STAMP}, {"ts", HO_CSV_STAMP},
    {"tsevent", HO_CSV_STAMP}, {"opentime", HO_CSV_STAMP}, {"klineopentime", HO_CSV_STAMP},
    {"tsutc", HO_CSV_STAMP}, {"timestamputc", HO_CSV_STAMP}, {"dateutc", HO_CSV_STAMP},
    {"datetimeutc", HO_CSV_STAMP}, {"timeutc", HO_CSV_STAMP}, {"gmttime", HO_CSV_STAMP},
    {"localtime", HO_CSV_STAMP}, {"etcutc", HO_CSV_STAMP}, {"unix", HO_CSV_STAMP},
    {"unixtime", HO_CSV_STAMP}, {"unixtimestamp", HO_CSV_STAMP}, {"epoch", HO_CSV_STAMP},
    {"timestampms", HO_CSV_STAMP}, {"opentimestamp", HO_CSV_STAMP}, {"starttime", HO_CSV_STAMP},
    {"bartime", HO_CSV_STAMP}, {"windowstart", HO_CSV_STAMP}, {"t", HO_CSV_STAMP},
    {"date", HO_CSV_DATE}, {"day", HO_CSV_DATE}, {"tradedate", HO_CSV_DATE},
    {"time", HO_CSV_TIME}, {"timeofday", HO_CSV_TIME},
    {"open", HO_CSV_OPEN}, {"o", HO_CSV_OPEN}, {"openprice", HO_CSV_OPEN}, {"first", HO_CSV_OPEN},
    {"high", HO_CSV_HIGH}, {"h", HO_CSV_HIGH}, {"highprice", HO_CSV_HIGH}, {"max", HO_CSV_HIGH},
    {"low", HO_CSV_LOW}, {"l", HO_CSV_LOW}, {"lowprice", HO_CSV_LOW}, {"min", HO_CSV_LOW},
    {"close", HO_CSV_CLOSE}, {"c", HO_CSV_CLOSE}, {"closeprice", HO_CSV_CLOSE},
    {"last", HO_CSV_PRICE}, {"price", HO_CSV_PRICE}, {"value", HO_CSV_PRICE},
    {"settle", HO_CSV_PRICE}, {"lastprice", HO_CSV_PRICE}, {"closelast", HO_CSV_PRICE},
    {"volume", HO_CSV_VOLUME}, {"vol", HO_CSV_VOLUME}, {"v", HO_CSV_VOLUME},
    {"basevolume", HO_CSV_VOLUME}, {"volumebase", HO_CSV_VOLUME}, {"totalvolume", HO_CSV_VOLUME},
    {"quotevolume", HO_CSV_QUOTE_VOLUME}, {"quoteassetvolume", HO_CSV_QUOTE_VOLUME},
    {"volumecurrency", HO_CSV_QUOTE_VOLUME}, {"volumequote", HO_CSV_QUOTE_VOLUME},
    {"turnover", HO_CSV_QUOTE_VOLUME}, {"quoteav", HO_CSV_QUOTE_VOLUME},
    {"tickvol", HO_CSV_TICK_VOLUME}, {"tickvolume", HO_CSV_TICK_VOLUME},
    {"adjopen", HO_CSV_ADJ_OPEN}, {"adjhigh", HO_CSV_ADJ_HIGH}, {"adjlow", HO_CSV_ADJ_LOW},
    {"adjclose", HO_CSV_ADJ_CLOSE}, {"adjustedclose", HO_CSV_ADJ_CLOSE},
    {"adjvolume", HO_CSV_ADJ_VOLUME},
    {"bidopen", HO_CSV_BID_OPEN}, {"bidhigh", HO_CSV_BID_HIGH}, {"bidlow", HO_CSV_BID_LOW},
    {"bidclose", HO_CSV_BID_CLOSE}, {"openbid", HO_CSV_BID_OPEN}, {"highbid", HO_CSV_BID_HIGH},
    {"lowbid", HO_CSV_BID_LOW}, {"closebid", HO_CSV_BID_CLOSE},
    {"askopen", HO_CSV_ASK_OPEN}, {"askhigh", HO_CSV_ASK_HIGH}, {"asklow", HO_CSV_ASK_LOW},
    {"askclose", HO_CSV_ASK_CLOSE}, {"openask", HO_CSV_ASK_OPEN}, {"highask", HO_CSV_ASK_HIGH},
    {"lowask", HO_CSV_ASK_LOW}, {"closeask", HO_CSV_ASK_CLOSE},
    {"closetime", HO_CSV_CLOSE_TIME}, {"endtime", HO_CSV_CLOSE_TIME},
    {"symbol", HO_CSV_SYMBOL}, {"ticker", HO_CSV_SYMBOL}, {"instrument", HO_CSV_SYMBOL},
    {"tic", HO_CSV_SYMBOL}, {"pair", HO_CSV_SYMBOL}, {"rawsymbol", HO_CSV_SYMBOL},
    {"contract", HO_CSV_CONTRACT}, {"expiry", HO_CSV_CONTRACT},
    {"fundingrate", HO_CSV_FUNDING},
};
/* clang-format on */

static const char *const role_names[HO_CSV_ROLES] = {
    "-",        "time",       "date",      "clock",        "open",        "high",
    "low",      "close",      "volume",    "quote_volume", "tick_volume", "adj_open",
    "adj_high", "adj_low",    "adj_close", "adj_volume",   "bid_open",    "bid_high",
    "bid_low",  "bid_close",  "ask_open",  "ask_high",     "ask_low",     "ask_close",
    "price",    "close_time", "symbol",    "contract",     "funding"};

const char *ho_csv_role_name(ho_csv_role role)
{
    return role_names[role];
}

ho_csv_role ho_csv_role_of(const char *name)
{
    char plain[48];
    size_t n = 0;
    for (; *name && n + 1 < sizeof plain; ++name) {
        if (isalnum((unsigned char)*name)) {
            plain[n++] = (char)tolower((unsigned char)*name);
        }
    }
    plain[n] = '\0';
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; ++i) {
        if (strcmp(aliases[i].name, plain) == 0) {
            return aliases[i].role;
        }
    }
    /* volume_(btc), volume_usdt: which of two is the base is settled by the numbers */
    return strncmp(plain, "volume", 6) == 0 ? HO_CSV_VOLUME : HO_CSV_SKIP;
}

const char *ho_csv_line_end(const char *p, const char *end)
{
    const char *stop = memchr(p, '\n', (size_t)(end - p));
    return stop ? stop : end;
}

/* A quoted field: p stands behind the opening quote. A doubled quote inside stays as it is, which
 * no number or stamp has. Returns what follows the closing quote, or NULL. */
static const char *quoted_field(const char *p, const char *stop, char separator,
                                ho_csv_field *field)
{
    const char *begin = p;
    while (p < stop) {
        if (*p == '"') {
            if (p + 1 < stop && p[1] == '"') {
                p += 2;
                continue;
            }
            *field = (ho_csv_field){begin, (size_t)(p - begin)};
            ++p;
            while (p < stop && *p == ' ') {
                ++p;
            }
            return p == stop || *p == separator ? p : NULL;
        }
        ++p;
    }
    return NULL;
}

int ho_csv_split(const char *line, const char *end, char separator, ho_csv_field *field)
{
    const char *p = line, *stop = end;
    int n = 0;
    if (stop > p && stop[-1] == '\r') {
        --stop;
    }
    while (n < HO_CSV_FIELDS) {
        while (p < stop && *p == ' ') {
            ++p;
        }
        if (p < stop && *p == '"') {
            if (!(p = quoted_field(p + 1, stop, separator, &field[n]))) {
                return -1;
            }
        } else {
            const char *begin = p;
            while (p < stop && *p != separator) {
                ++p;
            }
            size_t length = (size_t)(p - begin);
            while (length > 0 && begin[length - 1] == ' ') {
                --length;
            }
            field[n] = (ho_csv_field){begin, length};
        }
        if (field[n].length > 1 && field[n].text[0] == '$' &&
            (isdigit((unsigned char)field[n].text[1]) || field[n].text[1] == '.')) {
            ++field[n].text; /* a price as NASDAQ's site writes it */
            --field[n].length;
        }
        ++n;
        if (p == stop) {
            return n;
        }
        ++p;
    }
    return -1;
}
