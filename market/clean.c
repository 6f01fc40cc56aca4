/* SPDX-License-Identifier: Apache-2.0
 * See clean.h. */
#include "market/clean.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "market/stamp.h"

static const int64_t SECOND_NS = 1000000000LL;
static const int64_t DAY_NS = 86400LL * 1000000000LL;
static const int64_t TEN_YEARS_S = 316224000;

static const char *path_of(const ho_clean *s, int64_t i)
{
    return s->options->path[s->rows->file[i]];
}

static void find(ho_clean *s, ho_dirt kind, int64_t i)
{
    ho_report_find(s->report, kind, s->rows->file[i], s->rows->line[i], s->rows->stamp_ns[i]);
}

/* ---- moving rows ----------------------------------------------------------------------------- */

/* Row `to` becomes row `from`. */
static void copy_row(ho_rows *rows, int64_t to, int64_t from)
{
    rows->stamp_ns[to] = rows->stamp_ns[from];
    memcpy(rows->ohlcv + 5 * to, rows->ohlcv + 5 * from, 5 * sizeof *rows->ohlcv);
    rows->line[to] = rows->line[from];
    rows->file[to] = rows->file[from];
    if (rows->contract) {
        rows->contract[to] = rows->contract[from];
    }
    if (rows->funding) {
        rows->funding[to] = rows->funding[from];
    }
    int E = rows->extra_count;
    for (int e = 0; e < E; ++e) {
        rows->extra[to * E + e] = rows->extra[from * E + e];
    }
}

/* Array of n items of the size becomes the one in order of index. */
static bool gather(void *array, size_t size, const int64_t *index, int64_t n)
{
    char *old = malloc((size_t)n * size), *items = array;
    if (!old) {
        return false;
    }
    memcpy(old, items, (size_t)n * size);
    for (int64_t i = 0; i < n; ++i) {
        memcpy(items + (size_t)i * size, old + (size_t)index[i] * size, size);
    }
    free(old);
    return true;
}

static bool gather_rows(ho_rows *rows, const int64_t *index)
{
    int64_t n = rows->count;
    return gather(rows->stamp_ns, sizeof *rows->stamp_ns, index, n) &&
           gather(rows->ohlcv, 5 * sizeof *rows->ohlcv, index, n) &&
           gather(rows->line, sizeof *rows->line, index, n) &&
           gather(rows->file, sizeof *rows->file, index, n) &&
           (!rows->contract || gather(rows->contract, sizeof *rows->contract, index, n)) &&
           (!rows->funding || gather(rows->funding, sizeof *rows->funding, index, n)) &&
           (!rows->extra_count ||
            gather(rows->extra, (size_t)rows->extra_count * sizeof *rows->extra, index, n));
}

/* ---- order ----------------------------------------------------------------------------------- */

typedef struct sort_key {
    int64_t ns, index;
} sort_key;

static int compare_keys(const void *a, const void *b)
{
    const sort_key *x = a, *y = b;
    if (x->ns != y->ns) {
        return x->ns < y->ns ? -1 : 1;
    }
    return x->index < y->index ? -1 : x->index > y->index;
}

/* reverse: newest first, so that equal stamps keep the order of time. */
static ho_status sort_rows(ho_clean *s, bool reverse)
{
    ho_rows *rows = s->rows;
    int64_t n = rows->count;
    ho_status rc = HO_OK;
    sort_key *key = malloc((size_t)n * sizeof *key);
    int64_t *index = malloc((size_t)n * sizeof *index);
    if (!key || !index) {
        rc = ho_err_set(s->err, HO_ENOMEM, "no memory to sort %lld rows", (long long)n);
        goto out;
    }
    for (int64_t i = 0; i < n; ++i) {
        key[i] = (sort_key){rows->stamp_ns[i], reverse ? n - 1 - i : i};
    }
    qsort(key, (size_t)n, sizeof *key, compare_keys);
    for (int64_t i = 0; i < n; ++i) {
        index[i] = reverse ? n - 1 - key[i].index : key[i].index;
    }
    if (!gather_rows(rows, index)) {
        rc = ho_err_set(s->err, HO_ENOMEM, "no memory to sort %lld rows", (long long)n);
    }
out:
    free(key);
    free(index);
    return rc;
}

ho_status ho_clean_order(ho_clean *s)
{
    ho_rows *rows = s->rows;
    int64_t rises = 0, falls = 0, wrong = -1;
    for (int64_t i = 1; i < rows->count; ++i) {
        rises += rows->stamp_ns[i] > rows->stamp_ns[i - 1];
        falls += rows->stamp_ns[i] < rows->stamp_ns[i - 1];
    }
    if (falls == 0) {
        return HO_OK;
    }
    bool newest_first = falls > rises;
    for (int64_t i = 1; i < rows->count; ++i) {
        bool fall = rows->stamp_ns[i] < rows->stamp_ns[i - 1];
        bool rise = rows->stamp_ns[i] > rows->stamp_ns[i - 1];
        if (newest_first ? rise : fall) {
            wrong = wrong < 0 ? i : wrong;
            find(s, HO_DIRT_OUT_OF_ORDER, i);
        }
    }
    if (wrong >= 0 && !s->options->sort) {
        return ho_err_set(s->err, HO_EDATA,
                          "%s:%u: the row is out of order (%lld such steps); write data.sort = "
                          "true to put the rows in order%s",
                          path_of(s, wrong), rows->line[wrong],
                          (long long)s->report->finding[HO_DIRT_OUT_OF_ORDER].count,
                          s->options->path_count > 1 ? ", or list the files in order of time" : "");
    }
    if (newest_first) {
        ho_report_note(s->report, false, "the newest row stands first: order turned round");
    }
    return sort_rows(s, newest_first);
}

/* ---- duplicates ------------------------------------------------------------------------------ */

static bool same_row(const ho_rows *rows, int64_t a, int64_t b)
{
    return memcmp(rows->ohlcv + 5 * a, rows->ohlcv + 5 * b, 5 * sizeof *rows->ohlcv) == 0 &&
           (!rows->contract || rows->contract[a] == rows->contract[b]);
}

static void merge_row(ho_rows *rows, int64_t into, int64_t from)
{
    double *a = rows->ohlcv + 5 * into;
    const double *b = rows->ohlcv + 5 * from;
    a[1] = b[1] > a[1] ? b[1] : a[1];
    a[2] = b[2] < a[2] ? b[2] : a[2];
    a[3] = b[3];
    a[4] += b[4];
}

ho_status ho_clean_duplicates(ho_clean *s)
{
    ho_rows *rows = s->rows;
    int policy = s->options->duplicates;
    int64_t kept = 0, group = 0; /* rows [group, kept) have the present stamp */
    for (int64_t i = 0; i < rows->count; ++i) {
        if (kept == 0 || rows->stamp_ns[i] != rows->stamp_ns[kept - 1]) {
            group = kept;
            copy_row(rows, kept++, i);
            continue;
        }
        bool same = false;
        for (int64_t k = group; k < kept && !same; ++k) {
            same = same_row(rows, k, i);
        }
        find(s, same ? HO_DIRT_DUPLICATE : HO_DIRT_CONFLICT, i);
        ++s->report->finding[same ? HO_DIRT_DUPLICATE : HO_DIRT_CONFLICT].dropped;
        if (same && policy != HO_DUPLICATES_MERGE) {
            continue;
        }
        switch (same ? HO_DUPLICATES_FIRST : policy) {
        case HO_DUPLICATES_REFUSE:
            return ho_err_set(s->err, HO_EDATA,
                              "%s:%u: the same time as line %u with other values; write "
                              "data.duplicates = \"first\", \"last\" or \"merge\" (one bar of "
                              "both), or choose one data.symbol or data.publisher",
                              path_of(s, i), rows->line[i], rows->line[kept - 1]);
        case HO_DUPLICATES_LAST:
            copy_row(rows, kept - 1, i);
            break;
        case HO_DUPLICATES_MERGE:
            merge_row(rows, kept - 1, i);
            break;
        default:
            break;
        }
    }
    rows->count = kept;
    return HO_OK;
}

/* ---- dirt ------------------------------------------------------------------------------------ */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double change(const ho_rows *rows, int64_t i)
{
    double before = rows->ohlcv[5 * (i - 1) + 3], now = rows->ohlcv[5 * i + 3];
    return before != 0.0 ? (now - before) / fabs(before) : 0.0;
}

/* Median size of the changes of the close that are not 0; of at most 65,536, evenly taken. */
static double median_change(const ho_rows *rows)
{
    enum { MOST = 1 << 16 };
    int64_t n = 0, step = rows->count / MOST + 1;
    double median = 0.0, *size = malloc(MOST * sizeof *size);
    if (!size) {
        return INFINITY; /* no spikes are told without it */
    }
    for (int64_t i = 1; i < rows->count && n < MOST; i += step) {
        double r = fabs(change(rows, i));
        if (r > 0.0) {
            size[n++] = r;
        }
    }
    if (n > 0) {
        qsort(size, (size_t)n, sizeof *size, compare_doubles);
        median = size[n / 2];
    }
    free(size);
    return n > 0 ? median : INFINITY;
}

static bool is_spike(const ho_rows *rows, int64_t i, double limit)
{
    const double *x = rows->ohlcv + 5 * i;
    double body_top = fmax(x[0], x[3]), body_low = fmin(x[0], x[3]), scale = fabs(x[3]);
    if (scale > 0.0 && ((x[1] - body_top) / scale > limit || (body_low - x[2]) / scale > limit)) {
        return true; /* a wick */
    }
    if (i == 0 || i + 1 >= rows->count) {
        return false;
    }
    double before = rows->ohlcv[5 * (i - 1) + 3], after = rows->ohlcv[5 * (i + 1) + 3];
    return fabs(change(rows, i)) > limit && fabs(after - before) < 0.25 * fabs(x[3] - before);
}

static bool off_tick(const double *x, double tick)
{
    for (int k = 0; k < 4; ++k) {
        double ticks = x[k] / tick;
        if (fabs(ticks - nearbyint(ticks)) > 1e-6 * fmax(1.0, fabs(ticks) * 1e-6)) {
            return true;
        }
    }
    return false;
}

typedef struct dirt_rule {
    ho_dirt kind;
    const char *key;
    int policy;
} dirt_rule;

/* Counts row i for the kind and acts by its policy. *drop is set where it goes. */
static ho_status apply_rule(ho_clean *s, const dirt_rule *rule, int64_t i, bool *drop)
{
    find(s, rule->kind, i);
    if (rule->policy == HO_DIRT_REFUSE) {
        return ho_err_set(s->err, HO_EDATA,
                          "%s:%u: %s, and data.%s = \"refuse\"; write \"drop\" or \"keep\"",
                          path_of(s, i), s->rows->line[i], ho_dirt_text(rule->kind), rule->key);
    }
    if (rule->policy == HO_DIRT_DROP) {
        ++s->report->finding[rule->kind].dropped;
        *drop = true;
    }
    return HO_OK;
}

ho_status ho_clean_dirt(ho_clean *s)
{
    const ho_data_options *o = s->options;
    ho_rows *rows = s->rows;
    const dirt_rule wrong = {HO_DIRT_CONTRADICTION, "contradictions", o->contradictions};
    const dirt_rule low = {HO_DIRT_NON_POSITIVE, "non_positive", o->non_positive};
    const dirt_rule quiet = {HO_DIRT_ZERO_VOLUME, "zero_volume", o->zero_volume};
    const dirt_rule spike = {HO_DIRT_SPIKE, "spikes", o->spikes};
    const dirt_rule grid = {HO_DIRT_OFF_TICK, "off_tick", o->off_tick};
    double tick = o->tick_size > 0.0 ? o->tick_size : rows->instrument.tick_size;
    double limit = fmax(o->spike_mad * median_change(rows), 0.01);
    int64_t kept = 0;
    ho_status rc = HO_OK;
    uint8_t *drop = calloc((size_t)rows->count + 1, 1);
    if (!drop) {
        return ho_err_set(s->err, HO_ENOMEM, "no memory to check the rows");
    }
    rows->has_volume = false;
    for (int64_t i = 0; i < rows->count && !rows->has_volume; ++i) {
        rows->has_volume = rows->ohlcv[5 * i + 4] != 0.0;
    }
    for (int64_t i = 0; i < rows->count; ++i) {
        const double *x = rows->ohlcv + 5 * i;
        bool go = false;
        if (x[4] < 0.0 && wrong.policy != HO_DIRT_DROP) {
            rc = ho_err_set(s->err, HO_EDATA,
                            "%s:%u: the volume is negative; write data.contradictions = \"drop\" "
                            "or data.volume = \"none\"",
                            path_of(s, i), rows->line[i]);
            goto out;
        }
        if ((!(x[1] >= x[0] && x[1] >= x[3] && x[2] <= x[0] && x[2] <= x[3]) || x[4] < 0.0) &&
            (rc = apply_rule(s, &wrong, i, &go)) != HO_OK) {
            goto out;
        }
        if (!(x[0] > 0.0 && x[1] > 0.0 && x[2] > 0.0 && x[3] > 0.0) &&
            (rc = apply_rule(s, &low, i, &go)) != HO_OK) {
            goto out;
        }
        if (rows->has_volume && x[4] == 0.0 && (rc = apply_rule(s, &quiet, i, &go)) != HO_OK) {
            goto out;
        }
        bool spiky = is_spike(rows, i, limit);
        if (spiky && (rc = apply_rule(s, &spike, i, &go)) != HO_OK) {
            goto out;
        }
        if (i > 0 && !spiky && fabs(change(rows, i)) > 1.0 / 3.0) {
            find(s, HO_DIRT_JUMP, i);
        }
        if (tick > 0.0 && off_tick(x, tick) && (rc = apply_rule(s, &grid, i, &go)) != HO_OK) {
            goto out;
        }
        if (x[0] == x[1] && x[1] == x[2] && x[2] == x[3]) {
            find(s, HO_DIRT_FLAT, i);
        }
        drop[i] = go;
    }
    const ho_data_finding *found = &s->report->finding[HO_DIRT_CONTRADICTION];
    if (wrong.policy == HO_DIRT_AUTO && found->count * 20 > rows->count) {
        rc = ho_err_set(s->err, HO_EDATA,
                        "%s:%lld: in %lld of %lld rows high or low lie on the wrong side of open "
                        "or close; are the columns in another order? Write data.columns, or "
                        "data.contradictions = \"keep\" or \"drop\"",
                        o->path[found->place[0].file], (long long)found->place[0].line,
                        (long long)found->count, (long long)rows->count);
        goto out;
    }
    for (int64_t i = 0; i < rows->count; ++i) {
        if (!drop[i]) {
            if (kept != i) {
                copy_row(rows, kept, i);
            }
            ++kept;
        }
    }
    rows->count = kept;
out:
    free(drop);
    return rc;
}

/* ---- bar length ------------------------------------------------------------------------------ */

typedef struct step_count {
    int64_t ns, count;
} step_count;

ho_status ho_clean_interval(ho_clean *s)
{
    enum { SLOTS = 1024 };
    ho_rows *rows = s->rows;
    step_count table[SLOTS] = {{0, 0}};
    step_count best = {0, 0};
    int64_t steps = 0, multiples = 0;
    if (rows->interval_ns > 0) {
        return HO_OK;
    }
    for (int64_t i = 1; i < rows->count; ++i) {
        int64_t ns = rows->stamp_ns[i] - rows->stamp_ns[i - 1];
        if (ns <= 0) {
            continue;
        }
        ++steps;
        uint64_t slot = ((uint64_t)ns * 0x9e3779b97f4a7c15ULL) >> 54;
        for (int tries = 0; tries < 16; ++tries, slot = (slot + 1) % SLOTS) {
            if (table[slot].count == 0 || table[slot].ns == ns) {
                table[slot].ns = ns;
                ++table[slot].count;
                break;
            }
        }
    }
    for (int i = 0; i < SLOTS; ++i) {
        if (table[i].count > best.count ||
            (table[i].count == best.count && table[i].ns < best.ns)) {
            best = table[i];
        }
    }
    if (best.ns == 0 && !s->options->bar[0]) {
        return ho_err_set(s->err, HO_EDATA,
                          "%s: all rows have one time, so the length of a bar is not known; a "
                          "file needs two bars or more",
                          s->options->path[0]);
    }
    for (int64_t i = 1; best.ns > 0 && i < rows->count; ++i) {
        int64_t ns = rows->stamp_ns[i] - rows->stamp_ns[i - 1];
        multiples += ns > 0 && ns % best.ns == 0;
    }
    if (best.ns == 0 || (best.ns < DAY_NS && multiples * 100 < steps * 99)) {
        if (!s->options->bar[0]) {
            return ho_err_set(s->err, HO_EDATA,
                              "%s:%u: the stamps have no regular step: these are ticks or "
                              "irregular bars; write data.bar = \"1m\" (or longer) to make bars "
                              "of them, with data.duplicates = \"merge\" for equal stamps",
                              path_of(s, 0), rows->line[0]);
        }
        rows->interval_ns = 1;
        ho_report_note(s->report, false, "the stamps have no regular step: rows taken as ticks");
        return HO_OK;
    }
    rows->interval_ns = best.ns;
    return HO_OK;
}

/* ---- label ----------------------------------------------------------------------------------- */

/* Stretches without bars of an hour or more are closures; venues open and close at round times.
 * An open-stamped minute file then begins at 09:00 and ends at 15:59, a close-stamped one begins
 * at 09:01 and ends at 16:00. */
static int detect_label(const ho_rows *rows)
{
    const int64_t quarter = 900 * SECOND_NS, interval = rows->interval_ns;
    int64_t open = 0, close = 0, closures = 0;
    if (interval <= 1 || interval > 300 * SECOND_NS) {
        return HO_LABEL_AUTO;
    }
    for (int64_t i = 1; i < rows->count; ++i) {
        int64_t last = rows->stamp_ns[i - 1], first = rows->stamp_ns[i];
        if (first - last < 3600 * SECOND_NS) {
            continue;
        }
        ++closures;
        open += (first % quarter == 0) + ((last + interval) % quarter == 0);
        close += ((first - interval) % quarter == 0) + (last % quarter == 0);
    }
    int64_t votes = open + close;
    if (votes < 6 || votes * 10 < closures * 4) {
        return HO_LABEL_AUTO;
    }
    return open * 10 >= votes * 7    ? HO_LABEL_OPEN
           : close * 10 >= votes * 7 ? HO_LABEL_CLOSE
                                     : HO_LABEL_AUTO;
}

ho_status ho_clean_label(ho_clean *s)
{
    ho_rows *rows = s->rows;
    int label = s->options->label;
    if (label == HO_LABEL_AUTO) {
        label = rows->label != HO_LABEL_AUTO ? rows->label : detect_label(rows);
        if (label == HO_LABEL_CLOSE && rows->label == HO_LABEL_AUTO) {
            ho_report_note(s->report, false,
                           "sessions begin one bar after a round time: stamps mark the close of "
                           "the bar");
        }
    }
    s->report->label_assumed = label == HO_LABEL_AUTO;
    (void)strcpy(s->report->label, label == HO_LABEL_CLOSE ? "close" : "open");
    if (label == HO_LABEL_CLOSE) {
        for (int64_t i = 0; i < rows->count; ++i) {
            rows->stamp_ns[i] -= rows->interval_ns;
        }
    }
    return HO_OK;
}

/* ---- period ---------------------------------------------------------------------------------- */

ho_status ho_moment_parse(const char *key, const char *text, const ho_zone *zone, bool behind,
                          int64_t *ns, ho_err *err)
{
    ho_stamp stamp;
    int64_t utc_s[2];
    if (ho_stamp_parse(text, strlen(text), HO_STAMP_ORDER_YMD, 0, INT64_MAX / 2, &stamp) !=
            HO_STAMP_OK ||
        stamp.kind == HO_STAMP_EPOCH) {
        return ho_err_set(err, HO_EINVAL,
                          "%s = \"%s\" is not a date or date and time; write 2024-01-31 or "
                          "2024-01-31T14:30:00",
                          key, text);
    }
    int64_t local_s = stamp.s + (behind && stamp.kind == HO_STAMP_DATE ? 86400 : 0);
    if (stamp.kind == HO_STAMP_UTC) {
        utc_s[0] = stamp.s;
    } else if (ho_zone_from_local(zone, local_s, utc_s) == 0) {
        utc_s[0] = local_s - ho_zone_offset(zone, local_s);
    }
    *ns = utc_s[0] * SECOND_NS + stamp.ns + (behind && stamp.kind != HO_STAMP_DATE ? 1 : 0);
    return HO_OK;
}

ho_status ho_clean_period(ho_clean *s)
{
    ho_rows *rows = s->rows;
    int64_t from = INT64_MIN, until = INT64_MAX, kept = 0;
    ho_status rc = HO_OK;
    if (s->options->start[0] &&
        (rc = ho_moment_parse("data.start", s->options->start, s->session_zone, false, &from,
                              s->err)) != HO_OK) {
        return rc;
    }
    if (s->options->end[0] && (rc = ho_moment_parse("data.end", s->options->end, s->session_zone,
                                                    true, &until, s->err)) != HO_OK) {
        return rc;
    }
    for (int64_t i = 0; i < rows->count; ++i) {
        if (rows->stamp_ns[i] >= from && rows->stamp_ns[i] < until) {
            if (kept != i) {
                copy_row(rows, kept, i);
            }
            ++kept;
        }
    }
    if (kept == 0 && rows->count > 0) {
        return ho_err_set(s->err, HO_EDATA,
                          "%s: no bar lies between data.start = \"%s\" and data.end = \"%s\"",
                          s->options->path[0], s->options->start, s->options->end);
    }
    rows->count = kept;
    return HO_OK;
}

ho_status ho_span_ns_parse(const char *key, const char *text, int64_t *ns, ho_err *err)
{
    static const char units[] = "smhdw";
    static const int64_t seconds[] = {1, 60, 3600, 86400, 7 * 86400};
    char *end = NULL;
    long long value = text[0] >= '0' && text[0] <= '9' ? strtoll(text, &end, 10) : 0;
    const char *unit = end && *end ? strchr(units, *end) : NULL;
    if (value < 1 || !unit || end[1] != '\0' || value > TEN_YEARS_S / seconds[unit - units]) {
        return ho_err_set(err, HO_EINVAL,
                          "%s = \"%s\" is not a length of time; write a number and s, m, h, d or "
                          "w (ten years at most), for instance \"5m\"",
                          key, text);
    }
    *ns = value * seconds[unit - units] * SECOND_NS;
    return HO_OK;
}
