/* SPDX-License-Identifier: Apache-2.0
 * See dbn.h. Sizes and offsets: spec/data-formats.md 4.3; definition records as in Databento's
 * documentation of the definition schema. Everything is read through bounds-checked helpers: the
 * bytes may be anything. */
#include "market/dbn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "market/clean.h"
#include "market/zone.h"

enum {
    PRELUDE = 8,
    METADATA_MIN = 100,
    HEADER = 16,
    OHLCV = 56,
    RTYPE_OHLCV = 0x11, /* early files: the bar size is that of the schema */
    RTYPE_DEFINITION = 0x13,
    RTYPE_MAPPING = 0x16,
    RTYPE_1S = 0x20,
    RTYPE_EOD = 0x24,
    SCHEMA_1S = 5,
    SCHEMA_1D = 8,
    SCHEMA_DEFINITION = 9,
    SCHEMA_EOD = 13,
    SCHEMA_MIXED = 0xffff,
    SYMBOL_V1 = 22,
    IDS_MAX = 256,
};

static const int64_t SECOND_NS = 1000000000LL;
static const int64_t UNDEFINED = INT64_MAX;
static const int64_t LAST_NS = 5364662400000000000LL; /* 2140-01-01, as for text stamps */

/* On these days the symbol is that instrument. */
typedef struct mapping {
    char symbol[72];
    int64_t first_day, end_day; /* days since 1970, end exclusive */
    uint32_t id;
} mapping;

typedef struct dbn {
    const char *path;
    const uint8_t *bytes;
    size_t size, records; /* offset of the first record */
    int version;
    char dataset[17];
    int schema;
    size_t symbol_size; /* of a symbol in metadata and mapping records */
    mapping *map;
    size_t maps;
} dbn;

static uint16_t le16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t le32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t le64(const uint8_t *p)
{
    return (uint64_t)le32(p) | (uint64_t)le32(p + 4) << 32;
}

bool ho_dbn_is(const char *bytes, size_t size)
{
    return size >= 4 && memcmp(bytes, "DBN", 3) == 0;
}

static bool is_rtype(uint8_t rtype)
{
    return rtype <= 0x0a || (rtype >= 0x11 && rtype <= 0x18) ||
           (rtype >= RTYPE_1S && rtype <= RTYPE_EOD) || rtype >= 0xa0;
}

bool ho_dbn_is_fragment(const char *bytes, size_t size)
{
    const uint8_t *b = (const uint8_t *)bytes;
    size_t at = 0;
    int records = 0;
    while (at + HEADER <= size && records < 4) {
        size_t length = (size_t)b[at] * 4;
        if (length < HEADER || !is_rtype(b[at + 1]) || length > size - at) {
            return false;
        }
        at += length;
        ++records;
    }
    return records >= 2;
}

bool ho_dbn_is_definitions(const char *bytes, size_t size)
{
    return ho_dbn_is(bytes, size) && size >= PRELUDE + 18 &&
           le16((const uint8_t *)bytes + PRELUDE + 16) == SCHEMA_DEFINITION;
}

static const char *schema_name(int schema)
{
    static const char *const names[] = {
        "mbo",      "mbp-1",    "mbp-10",     "tbbo",       "trades", "ohlcv-1s",  "ohlcv-1m",
        "ohlcv-1h", "ohlcv-1d", "definition", "statistics", "status", "imbalance", "ohlcv-eod"};
    return schema >= 0 && schema < (int)(sizeof names / sizeof names[0]) ? names[schema]
                                                                         : "of an unknown kind";
}

/* Bar length of a record type; 0x11 has that of the schema; 0: not a bar. */
static int64_t bar_ns(const dbn *d, int rtype)
{
    static const int64_t seconds[] = {1, 60, 3600, 86400, 86400};
    if (rtype >= RTYPE_1S && rtype <= RTYPE_EOD) {
        return seconds[rtype - RTYPE_1S] * SECOND_NS;
    }
    if (rtype == RTYPE_OHLCV && d->schema >= SCHEMA_1S && d->schema <= SCHEMA_1D) {
        return seconds[d->schema - SCHEMA_1S] * SECOND_NS;
    }
    return 0;
}

/* ---- metadata -------------------------------------------------------------------------------- */

static ho_status corrupt(const dbn *d, const char *what, ho_err *err)
{
    return ho_err_set(err, HO_EDATA, "%s: the DBN metadata is damaged (%s)", d->path, what);
}

static int64_t day_of(uint32_t yyyymmdd)
{
    return ho_days_from_civil(yyyymmdd / 10000, (int)(yyyymmdd / 100 % 100), (int)(yyyymmdd % 100));
}

/* u32 count, then so many symbols. */
static bool skip_symbols(const dbn *d, size_t *at, size_t end)
{
    if (*at > end || end - *at < 4) {
        return false;
    }
    size_t n = le32(d->bytes + *at);
    *at += 4;
    if (n > (end - *at) / d->symbol_size) {
        return false;
    }
    *at += n * d->symbol_size;
    return true;
}

static void copy_symbol(const uint8_t *from, size_t size, char out[72])
{
    size = size < 71 ? size : 71;
    memcpy(out, from, size);
    out[size] = '\0';
}

static ho_status read_mappings(dbn *d, size_t at, size_t end, ho_err *err)
{
    if (end - at < 4) {
        return corrupt(d, "symbol mappings", err);
    }
    size_t n = le32(d->bytes + at), capacity = 0;
    at += 4;
    for (size_t i = 0; i < n; ++i) {
        char symbol[72];
        if (end - at < d->symbol_size + 4) {
            return corrupt(d, "symbol mappings", err);
        }
        copy_symbol(d->bytes + at, d->symbol_size, symbol);
        at += d->symbol_size;
        size_t intervals = le32(d->bytes + at);
        at += 4;
        if (intervals > (end - at) / (8 + d->symbol_size)) {
            return corrupt(d, "symbol mappings", err);
        }
        for (size_t k = 0; k < intervals; ++k, at += 8 + d->symbol_size) {
            char id[72], *stop = NULL;
            copy_symbol(d->bytes + at + 8, d->symbol_size, id);
            unsigned long number = strtoul(id, &stop, 10);
            if (id[0] < '0' || id[0] > '9' || *stop != '\0' || number > UINT32_MAX) {
                continue; /* mapped to a symbol, not to an instrument id */
            }
            if (d->maps == capacity) {
                capacity = capacity ? 2 * capacity : 16;
                mapping *grown = realloc(d->map, capacity * sizeof *grown);
                if (!grown) {
                    return ho_err_set(err, HO_ENOMEM, "%s: no memory for the symbols", d->path);
                }
                d->map = grown;
            }
            mapping *m = &d->map[d->maps++];
            memcpy(m->symbol, symbol, sizeof symbol);
            m->first_day = day_of(le32(d->bytes + at));
            m->end_day = day_of(le32(d->bytes + at + 4));
            m->id = (uint32_t)number;
        }
    }
    return HO_OK;
}

static ho_status read_metadata(dbn *d, ho_err *err)
{
    if (d->size < PRELUDE + METADATA_MIN) {
        return ho_err_set(err, HO_EDATA, "%s: the DBN file is cut short in its header", d->path);
    }
    d->version = d->bytes[3];
    if (d->version < 1 || d->version > 3) {
        return ho_err_set(err, HO_EDATA,
                          "%s: DBN version %d is not read, only 1 to 3; write the file again with "
                          "an older version (dbn tool: --version 3)",
                          d->path, d->version);
    }
    size_t length = le32(d->bytes + 4);
    if (length < METADATA_MIN || length > d->size - PRELUDE) {
        return ho_err_set(err, HO_EDATA, "%s: the DBN file is cut short in its header", d->path);
    }
    const uint8_t *m = d->bytes + PRELUDE;
    memcpy(d->dataset, m, 16);
    d->schema = le16(m + 16);
    d->symbol_size = d->version == 1 ? SYMBOL_V1 : le16(m + 45);
    if (d->symbol_size < 2 || d->symbol_size > 4096) {
        return corrupt(d, "length of symbols", err);
    }
    d->records = PRELUDE + length;
    if (length < METADATA_MIN + 4) {
        return HO_OK; /* no symbol tables */
    }
    size_t at = PRELUDE + METADATA_MIN + 4, end = d->records;
    if (le32(m + METADATA_MIN) != 0) {
        return corrupt(d, "a schema definition, which no version has", err);
    }
    for (int list = 0; list < 3; ++list) { /* symbols, partial, not found */
        if (!skip_symbols(d, &at, end)) {
            return corrupt(d, "symbols", err);
        }
    }
    return read_mappings(d, at, end, err);
}

/* ---- records --------------------------------------------------------------------------------- */

typedef struct record {
    const uint8_t *bytes;
    size_t length;
    int rtype, publisher;
    uint32_t id;
    int64_t ns;
} record;

/* HO_EDONE at the end; *partial says that bytes of a cut record are left. */
static ho_status next_record(const dbn *d, size_t *at, int64_t number, record *out, bool *partial,
                             ho_err *err)
{
    size_t left = d->size - *at;
    *partial = false;
    if (left == 0) {
        return HO_EDONE;
    }
    const uint8_t *p = d->bytes + *at;
    size_t length = (size_t)p[0] * 4;
    if (length < HEADER) {
        return ho_err_set(err, HO_EDATA, "%s: record %lld has a length of %zu bytes: damaged",
                          d->path, (long long)number, length);
    }
    if (length > left) {
        *partial = true;
        return HO_EDONE;
    }
    *out = (record){.bytes = p,
                    .length = length,
                    .rtype = p[1],
                    .publisher = le16(p + 2),
                    .id = le32(p + 4),
                    .ns = (int64_t)le64(p + 8)};
    *at += length;
    return HO_OK;
}

static bool is_bar(const dbn *d, const record *r)
{
    return bar_ns(d, r->rtype) > 0 && r->length >= OHLCV;
}

/* ---- which instrument ------------------------------------------------------------------------ */

/* What a pass over the records finds. */
typedef struct survey {
    uint32_t id[IDS_MAX];
    int ids;
    bool more; /* than IDS_MAX */
} survey;

typedef struct choice {
    const char *symbol; /* of the mappings, or NULL: by ids */
    uint32_t id[IDS_MAX];
    int ids;
} choice;

static bool has_id(const uint32_t *list, int n, uint32_t id)
{
    for (int i = n - 1; i >= 0; --i) {
        if (list[i] == id) {
            return true;
        }
    }
    return false;
}

static bool is_chosen(const dbn *d, const choice *c, const record *r)
{
    if (c->symbol) {
        int64_t day = ho_floor_div(r->ns, 86400 * SECOND_NS);
        for (size_t i = 0; i < d->maps; ++i) {
            if (d->map[i].id == r->id && day >= d->map[i].first_day && day < d->map[i].end_day &&
                strcasecmp(d->map[i].symbol, c->symbol) == 0) {
                return true;
            }
        }
        return false;
    }
    return has_id(c->id, c->ids, r->id);
}

static const char *symbol_of(const dbn *d, uint32_t id)
{
    for (size_t i = 0; i < d->maps; ++i) {
        if (d->map[i].id == id) {
            return d->map[i].symbol;
        }
    }
    return NULL;
}

/* Adds the mapping that a live capture carries as a record. */
static ho_status add_live_mapping(dbn *d, const record *r, ho_err *err)
{
    size_t size = d->version == 1 ? SYMBOL_V1 : d->symbol_size;
    size_t at = HEADER + (d->version == 1 ? 0 : 1); /* in: [type] symbol, out: [type] symbol */
    if (r->length < at + size) {
        return HO_OK;
    }
    mapping *grown = realloc(d->map, (d->maps + 1) * sizeof *grown);
    if (!grown) {
        return ho_err_set(err, HO_ENOMEM, "%s: no memory for the symbols", d->path);
    }
    d->map = grown;
    mapping *m = &d->map[d->maps++];
    copy_symbol(r->bytes + at, size, m->symbol);
    m->first_day = INT32_MIN;
    m->end_day = INT32_MAX;
    m->id = r->id;
    return HO_OK;
}

static ho_status survey_ids(dbn *d, const ho_data_options *o, survey *s, ho_err *err)
{
    size_t at = d->records;
    record r = {0};
    bool partial = false;
    ho_status rc = HO_OK;
    for (int64_t n = 1; (rc = next_record(d, &at, n, &r, &partial, err)) == HO_OK; ++n) {
        if (r.rtype == RTYPE_MAPPING && (rc = add_live_mapping(d, &r, err)) != HO_OK) {
            return rc;
        }
        if (!is_bar(d, &r) || (o->publisher && r.publisher != o->publisher) ||
            has_id(s->id, s->ids, r.id)) {
            continue;
        }
        s->more |= s->ids == IDS_MAX;
        if (s->ids < IDS_MAX) {
            s->id[s->ids++] = r.id;
        }
    }
    return rc == HO_EDONE ? HO_OK : rc;
}

/* Names for messages: the symbols of the ids, or the numbers. */
static void list_instruments(const dbn *d, const survey *s, char *out, size_t size)
{
    out[0] = '\0';
    for (int i = 0; i < s->ids && i < 20; ++i) {
        char number[16];
        const char *name = symbol_of(d, s->id[i]);
        (void)snprintf(number, sizeof number, "%u", s->id[i]);
        name = name ? name : number;
        if (strlen(out) + strlen(name) + 8 < size) {
            (void)strcat(strcat(out, i ? ", " : ""), name);
        }
    }
    if (s->ids > 20) {
        (void)strcat(out, ", ...");
    }
}

static ho_status choose(dbn *d, const ho_data_options *o, const survey *s, choice *c, ho_err *err)
{
    char list[600], *stop = NULL;
    *c = (choice){0};
    if (o->symbol[0]) {
        for (size_t i = 0; i < d->maps; ++i) {
            if (strcasecmp(d->map[i].symbol, o->symbol) == 0) {
                c->symbol = d->map[i].symbol;
                return HO_OK;
            }
        }
        unsigned long id = strtoul(o->symbol, &stop, 10);
        if (o->symbol[0] >= '0' && o->symbol[0] <= '9' && *stop == '\0' &&
            has_id(s->id, s->ids, (uint32_t)id)) {
            c->id[c->ids++] = (uint32_t)id;
            return HO_OK;
        }
        if (s->ids == 1 && d->maps == 0) {
            c->id[c->ids++] = s->id[0]; /* the file does not name its one instrument */
            return HO_OK;
        }
        list_instruments(d, s, list, sizeof list);
        return ho_err_set(err, HO_EDATA,
                          "%s: there is no instrument \"%s\" in the file; write data.symbol = one "
                          "of: %s",
                          d->path, o->symbol, list);
    }
    bool one_symbol = s->ids > 0;
    const char *first = s->ids ? symbol_of(d, s->id[0]) : NULL;
    for (int i = 1; i < s->ids && one_symbol; ++i) {
        const char *other = symbol_of(d, s->id[i]);
        one_symbol = first && other && strcmp(first, other) == 0;
    }
    if (s->ids > 1 && (!one_symbol || s->more)) {
        list_instruments(d, s, list, sizeof list);
        return ho_err_set(err, HO_EDATA,
                          "%s: the file has several instruments; write data.symbol = one of: %s",
                          d->path, list);
    }
    c->symbol = s->ids > 1 ? first : NULL; /* a continuous symbol: several contracts */
    if (s->ids == 1) {
        c->id[c->ids++] = s->id[0];
    }
    return HO_OK;
}

/* Record type of the bars to take, where a file has several sizes. */
static ho_status choose_size(dbn *d, const ho_data_options *o, const choice *c, int *rtype,
                             ho_err *err)
{
    int64_t count[256] = {0}, wanted = 0, best = 0;
    size_t at = d->records;
    record r = {0};
    bool partial = false;
    ho_status rc = HO_OK;
    int kinds = 0;
    for (int64_t n = 1; (rc = next_record(d, &at, n, &r, &partial, err)) == HO_OK; ++n) {
        if (is_bar(d, &r) && is_chosen(d, c, &r)) {
            kinds += count[r.rtype]++ == 0;
            *rtype = r.rtype;
        }
    }
    if (rc != HO_EDONE || kinds <= 1) {
        return rc == HO_EDONE ? HO_OK : rc;
    }
    if (o->bar[0] && (rc = ho_span_ns_parse("data.bar", o->bar, &wanted, err)) != HO_OK) {
        return rc;
    }
    for (int k = 0; k < 256; ++k) {
        int64_t ns = count[k] ? bar_ns(d, k) : 0;
        if (ns > best && wanted && wanted % ns == 0) {
            best = ns;
            *rtype = k;
        }
    }
    if (best == 0) {
        return ho_err_set(err, HO_EDATA,
                          "%s: the file has bars of several sizes (%s%s%s%s); write data.bar",
                          d->path, count[0x20] ? "1s " : "", count[0x21] ? "1m " : "",
                          count[0x22] ? "1h " : "", count[0x23] || count[0x24] ? "1d" : "");
    }
    return HO_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

static const char *venue_zone(const char *dataset)
{
    static const struct {
        const char *start, *zone;
    } zones[] = {
        {"GLBX", "America/Chicago"},  {"XNAS", "America/New_York"}, {"XNYS", "America/New_York"},
        {"DBEQ", "America/New_York"}, {"EQUS", "America/New_York"}, {"ARCX", "America/New_York"},
        {"BATS", "America/New_York"}, {"OPRA", "America/New_York"}, {"IFUS", "America/New_York"},
        {"XCHI", "America/New_York"}, {"IEXG", "America/New_York"}, {"IFEU", "Europe/London"},
        {"NDEX", "Europe/Amsterdam"}, {"XEUR", "Europe/Berlin"},    {"XEEE", "Europe/Berlin"},
        {"IFLL", "Europe/London"}};
    for (size_t i = 0; i < sizeof zones / sizeof zones[0]; ++i) {
        if (strncmp(dataset, zones[i].start, 4) == 0) {
            return zones[i].zone;
        }
    }
    return "";
}

/* Tick size and multiplier of a definition record; unset fields are INT64_MAX. */
static void take_definition(const dbn *d, const record *r, ho_rows *rows)
{
    size_t quantity = d->version == 3 ? 80 : 88; /* unit_of_measure_qty; then the tick's worth */
    if (r->length < quantity + 16) {
        return;
    }
    int64_t tick = (int64_t)le64(r->bytes + 24), unit = (int64_t)le64(r->bytes + quantity);
    int64_t worth = (int64_t)le64(r->bytes + quantity + 8);
    if (tick > 0 && tick != UNDEFINED) {
        rows->instrument.tick_size = (double)tick / 1e9;
        if (worth > 0 && worth != UNDEFINED) {
            rows->instrument.multiplier = (double)worth / (double)tick;
            return;
        }
    }
    if (unit > 0 && unit != UNDEFINED) {
        rows->instrument.multiplier = (double)unit / 1e9;
    }
}

static ho_status add_bar(const dbn *d, const record *r, int64_t number, int file, ho_rows *rows,
                         ho_data_report *report, ho_err *err)
{
    int undefined = 0;
    ++report->rows;
    for (int k = 0; k < 4; ++k) {
        undefined += (int64_t)le64(r->bytes + HEADER + 8 * k) == UNDEFINED;
    }
    if (undefined == 4) {
        ho_report_find(report, HO_DIRT_EMPTY_ROW, file, number, r->ns);
        ++report->finding[HO_DIRT_EMPTY_ROW].dropped;
        return HO_OK;
    }
    if (undefined > 0) {
        return ho_err_set(err, HO_EDATA, "%s: record %lld: a price of the bar is undefined",
                          d->path, (long long)number);
    }
    if (r->ns <= 0 || r->ns > LAST_NS) {
        return ho_err_set(err, HO_EDATA, "%s: record %lld: the bar has no time", d->path,
                          (long long)number);
    }
    int64_t i = ho_rows_add(rows);
    if (i < 0) {
        return ho_err_set(err, HO_ENOMEM, "%s: no memory for the rows", d->path);
    }
    rows->stamp_ns[i] = r->ns;
    rows->line[i] = (uint32_t)number;
    rows->file[i] = (uint16_t)file;
    for (int k = 0; k < 4; ++k) {
        rows->ohlcv[5 * i + k] = (double)(int64_t)le64(r->bytes + HEADER + 8 * k) / 1e9;
    }
    rows->ohlcv[5 * i + 4] = (double)le64(r->bytes + HEADER + 32);
    if (rows->contract) {
        char name[16];
        (void)snprintf(name, sizeof name, "%u", r->id);
        int contract = ho_rows_contract(rows, name, strlen(name));
        if (contract < 0) {
            return ho_err_set(err, HO_EDATA, "%s: too many contracts", d->path);
        }
        rows->contract[i] = (int16_t)contract;
    }
    return HO_OK;
}

static void describe(const dbn *d, const choice *c, int rtype, ho_rows *rows,
                     ho_data_report *report)
{
    const char *symbol = c->symbol ? c->symbol : c->ids ? symbol_of(d, c->id[0]) : NULL;
    (void)snprintf(report->dialect, sizeof report->dialect, "Databento DBN version %d, %s, %s",
                   d->version, d->dataset,
                   d->schema == SCHEMA_MIXED ? "mixed" : schema_name(d->schema));
    (void)snprintf(report->time_form, sizeof report->time_form, "epoch ns");
    (void)snprintf(report->columns, sizeof report->columns, "OHLCV records of type 0x%02x", rtype);
    (void)snprintf(rows->venue_zone, sizeof rows->venue_zone, "%s", venue_zone(d->dataset));
    if (symbol) {
        (void)snprintf(rows->instrument.symbol, sizeof rows->instrument.symbol, "%s", symbol);
    }
    rows->label = HO_LABEL_OPEN;
}

static ho_status read_bars(dbn *d, int file, const choice *c, int rtype, const ho_data_options *o,
                           ho_rows *rows, ho_data_report *report, ho_err *err)
{
    size_t at = d->records;
    record r = {0};
    bool partial = false;
    ho_status rc = HO_OK;
    int64_t n = 1;
    for (; (rc = next_record(d, &at, n, &r, &partial, err)) == HO_OK; ++n) {
        if (r.rtype == RTYPE_DEFINITION && is_chosen(d, c, &r)) {
            take_definition(d, &r, rows);
        }
        if (!is_bar(d, &r)) {
            ho_report_find(report, HO_DIRT_OTHER_RECORD, file, n, r.ns);
        } else if (r.rtype == rtype && is_chosen(d, c, &r) &&
                   (!o->publisher || r.publisher == o->publisher)) {
            if ((rc = add_bar(d, &r, n, file, rows, report, err)) != HO_OK) {
                return rc;
            }
            if (!has_id(rows->instrument_id, rows->instrument_ids, r.id) &&
                rows->instrument_ids < HO_ROWS_IDS) {
                rows->instrument_id[rows->instrument_ids++] = r.id;
            }
        }
    }
    if (partial) {
        ho_report_find(report, HO_DIRT_TRUNCATED, file, n, 0);
    }
    return rc == HO_EDONE ? HO_OK : rc;
}

ho_status ho_dbn_read(const char *path, int file, const char *bytes, size_t size,
                      const ho_data_options *options, ho_rows *rows, ho_data_report *report,
                      ho_err *err)
{
    dbn d = {.path = path, .bytes = (const uint8_t *)bytes, .size = size};
    survey *s = calloc(1, sizeof *s);
    choice *c = calloc(1, sizeof *c);
    int rtype = 0;
    ho_status rc = HO_OK;
    if (!s || !c) {
        rc = ho_err_set(err, HO_ENOMEM, "%s: no memory", path);
        goto out;
    }
    if ((rc = read_metadata(&d, err)) != HO_OK) {
        goto out;
    }
    if (d.schema != SCHEMA_MIXED && d.schema != SCHEMA_EOD &&
        !(d.schema >= SCHEMA_1S && d.schema <= SCHEMA_1D)) {
        rc = ho_err_set(err, HO_EDATA,
                        "%s: the DBN file holds %s records, not bars; download schema ohlcv-1m "
                        "(or 1s, 1h, 1d)",
                        path, schema_name(d.schema));
        goto out;
    }
    if ((rc = survey_ids(&d, options, s, err)) != HO_OK ||
        (rc = choose(&d, options, s, c, err)) != HO_OK ||
        (rc = choose_size(&d, options, c, &rtype, err)) != HO_OK) {
        goto out;
    }
    if (rtype == 0) {
        rc = ho_err_set(err, HO_EDATA, "%s: the DBN file is whole but has no bars%s", path,
                        options->publisher ? " of data.publisher" : "");
        goto out;
    }
    if (rows->count == 0) {
        rows->want_contract = c->symbol != NULL;
    }
    int64_t interval = bar_ns(&d, rtype);
    if (rows->interval_ns && rows->interval_ns != interval) {
        rc = ho_err_set(err, HO_EDATA, "%s: bars of %lld s, but the files before have %lld s", path,
                        (long long)(interval / SECOND_NS),
                        (long long)(rows->interval_ns / SECOND_NS));
        goto out;
    }
    rows->interval_ns = interval;
    describe(&d, c, rtype, rows, report);
    rc = read_bars(&d, file, c, rtype, options, rows, report, err);
out:
    free(d.map);
    free(s);
    free(c);
    return rc;
}

ho_status ho_dbn_read_definitions(const char *path, const char *bytes, size_t size, ho_rows *rows,
                                  ho_data_report *report, ho_err *err)
{
    dbn d = {.path = path, .bytes = (const uint8_t *)bytes, .size = size};
    size_t at = 0;
    record r = {0};
    bool partial = false;
    ho_status rc = read_metadata(&d, err);
    if (rc == HO_OK) {
        at = d.records;
        for (int64_t n = 1; (rc = next_record(&d, &at, n, &r, &partial, err)) == HO_OK; ++n) {
            if (r.rtype == RTYPE_DEFINITION &&
                has_id(rows->instrument_id, rows->instrument_ids, r.id)) {
                take_definition(&d, &r, rows);
            }
        }
        rc = rc == HO_EDONE ? HO_OK : rc;
    }
    if (rc == HO_OK) {
        ho_report_note(report, false, "%s: tick size %g and multiplier %g from definitions", path,
                       rows->instrument.tick_size, rows->instrument.multiplier);
    }
    free(d.map);
    return rc;
}
