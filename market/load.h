/* SPDX-License-Identifier: Apache-2.0
 * Bars from the files people have: [data] of a study file -> ho_bars and a report of what was
 * found. Formats: CSV in many dialects, Databento DBN, JSON lists; plain, gz, zst or zip.
 * Nothing is repaired silently: each kind of dirt is counted, shown with its first places, and
 * refused, dropped or kept as its key says. docs/data.md is the user's page of the same. */
#ifndef HO_MARKET_LOAD_H
#define HO_MARKET_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "market/bars.h"
#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Values of the choice keys, in the order in which the key's words are listed beside the field. */
typedef enum ho_gap_policy { HO_GAPS_KEEP, HO_GAPS_FILL, HO_GAPS_SPLIT } ho_gap_policy;
typedef enum ho_volume_kind {
    HO_VOLUME_AUTO, /* base; ticks where the base column is empty or 0 throughout */
    HO_VOLUME_BASE,
    HO_VOLUME_QUOTE,
    HO_VOLUME_TICKS,
    HO_VOLUME_NONE,
} ho_volume_kind;
typedef enum ho_bar_label { HO_LABEL_AUTO, HO_LABEL_OPEN, HO_LABEL_CLOSE } ho_bar_label;
typedef enum ho_duplicate_policy {
    HO_DUPLICATES_REFUSE,
    HO_DUPLICATES_FIRST,
    HO_DUPLICATES_LAST,
    HO_DUPLICATES_MERGE, /* first open, highest high, lowest low, last close, sum of volume */
} ho_duplicate_policy;
typedef enum ho_dirt_policy {
    HO_DIRT_AUTO, /* keep; contradictions: refused above 5 % of the rows */
    HO_DIRT_REFUSE,
    HO_DIRT_DROP,
    HO_DIRT_KEEP,
} ho_dirt_policy;
typedef enum ho_auto_bool { HO_AUTO, HO_YES, HO_NO } ho_auto_bool;
typedef enum ho_date_order {
    HO_DATE_AUTO,
    HO_DATE_YMD,
    HO_DATE_DMY,
    HO_DATE_MDY,
} ho_date_order;
typedef enum ho_epoch_unit {
    HO_EPOCH_AUTO,
    HO_EPOCH_S,
    HO_EPOCH_MS,
    HO_EPOCH_US,
    HO_EPOCH_NS,
} ho_epoch_unit;
typedef enum ho_dst_policy {
    HO_DST_ORDER, /* a repeated hour by the order of the rows */
    HO_DST_FIRST,
    HO_DST_SECOND,
    HO_DST_REFUSE,
} ho_dst_policy;
typedef enum ho_roll_adjust { HO_ADJUST_NONE, HO_ADJUST_BACK, HO_ADJUST_RATIO } ho_roll_adjust;
typedef enum ho_quote_side { HO_QUOTE_MID, HO_QUOTE_BID, HO_QUOTE_ASK } ho_quote_side;

/* The [data] section; the key's name is the field's unless said. Strings: "" is absent. Lists are
 * borrowed for the call. Paths are as fopen takes them (relative to the study: resolved before). */
typedef struct ho_data_options {
    /* which bars */
    const char *const *path; /* one or several files, concatenated in this order */
    int path_count;
    char symbol[72]; /* instrument of a file with several; raw, continuous or instrument id */
    char start[40];  /* ISO date or stamp, inclusive, in the session zone unless it has one */
    char end[40];    /* inclusive: a date includes its whole day */
    char bar[16];    /* "5m": resample; "" as in the file. s, m, h, d, w */
    int publisher;   /* DBN publisher id; 0 any */

    /* time */
    char timezone[64];         /* IANA name: zone of stamps without one; "" UTC */
    char session_timezone[64]; /* zone of the session calendar; "" timezone, or the venue's */
    char session_start[8];     /* "17:00": a trading day begins here; "" found from the gaps */
    char session_end[8];       /* "16:00": with session_start, bars outside are dropped */
    double sessions_per_year;  /* 0: 252, or 365 round the clock */
    int label;                 /* ho_bar_label: auto | open | close */
    int dst;                   /* ho_dst_policy: order | first | second | refuse */
    int date_order;            /* ho_date_order: auto | ymd | dmy | mdy */
    int epoch_unit;            /* ho_epoch_unit: auto | s | ms | us | ns */

    /* CSV dialect, found when absent */
    char separator[8];        /* "," ";" "|" "tab" */
    char decimal[4];          /* "." or "," */
    int header;               /* ho_auto_bool: auto | yes | no */
    char columns[512];        /* names by position for a file without (or with a wrong) header:
                               * "time,open,close,low,high,volume,-" ; "-" skips */
    double price_scale;       /* prices are multiplied by this; 0: found (fixed-point dialects) */
    int volume;               /* ho_volume_kind: auto | base | quote | ticks | none */
    int quote;                /* ho_quote_side: mid | bid | ask, of a file with both */
    bool adjusted;            /* use the adjusted prices (Adj Close) */
    bool close_only;          /* accept a file with one price: open = high = low = close */
    char contract_column[64]; /* column naming the futures contract; "" found by name */
    char funding_column[64];  /* column with the funding rate at the close; "" none */
    const char *const *extra; /* features.extra: the user's own columns by name */
    int extra_count;

    /* cleaning */
    bool sort;                /* put rows that are out of order into order */
    int duplicates;           /* ho_duplicate_policy: refuse | first | last | merge */
    int empty_rows;           /* ho_dirt_policy: no prices in the row. auto = drop */
    int contradictions;       /* ho_dirt_policy: high or low on the wrong side, negative volume */
    int non_positive;         /* ho_dirt_policy: a price <= 0 */
    int zero_volume;          /* ho_dirt_policy */
    int spikes;               /* ho_dirt_policy: a jump that the next bar takes back */
    int off_tick;             /* ho_dirt_policy: a price off the tick grid */
    double spike_mad;         /* a spike is this many median absolute deviations */
    double tick_size;         /* instrument.tick_size; 0: the file's, or no tick check */
    int gaps;                 /* ho_gap_policy: keep | fill | split */
    char max_gap[16];         /* "4h": longer is a hole: never filled; split here. "" auto */
    int adjust;               /* ho_roll_adjust: none | back | ratio */
    const char *const *rolls; /* stamps of the first bar of each new contract; without: found */
    int roll_count;
} ho_data_options;

/* Every field at its default; no path. */
void ho_data_options_defaults(ho_data_options *options);

/* Hash of what shapes the bars beside the files' bytes: of the settings and of the reader's
 * version. sodium_init before. */
void ho_data_options_hash(const ho_data_options *options, char hex[65]);

/* Kinds of finding: id, name, text, 1 if it is a warning (0: normal in good data). */
#define HO_DIRT_MAP(X)                                                                             \
    X(DUPLICATE, "duplicate_rows", "rows repeated exactly", 1)                                     \
    X(CONFLICT, "conflicting_rows", "rows with the same stamp and other values", 1)                \
    X(OUT_OF_ORDER, "out_of_order", "rows out of time order", 1)                                   \
    X(EMPTY_ROW, "empty_rows", "rows without prices", 1)                                           \
    X(CONTRADICTION, "contradictions", "high or low on the wrong side of open or close", 1)        \
    X(NON_POSITIVE, "non_positive", "prices at or below zero", 1)                                  \
    X(ZERO_VOLUME, "zero_volume", "bars without volume", 1)                                        \
    X(FLAT, "flat", "bars with open = high = low = close", 0)                                      \
    X(SPIKE, "spikes", "jumps that the next bar takes back", 1)                                    \
    X(JUMP, "jumps", "closes more than a third away from the last: a split or a roll?", 1)         \
    X(OFF_TICK, "off_tick", "prices off the tick grid", 1)                                         \
    X(UNIT_CHANGE, "unit_changes", "changes of the epoch unit", 1)                                 \
    X(DST_HOUR, "dst_hours", "stamps in a repeated hour, told apart by order", 0)                  \
    X(TRUNCATED, "truncated", "incomplete record at the end of the file", 1)                       \
    X(OTHER_RECORD, "other_records", "records that are not bars, skipped", 0)                      \
    X(EXTRA_MISSING, "extra_missing", "empty cells of extra columns, carried forward", 1)          \
    X(OUTSIDE, "outside_session", "bars outside the session hours, dropped", 0)                    \
    X(HOLE, "holes", "stretches without bars, longer than max_gap", 1)                             \
    X(GAP, "gaps", "gaps inside sessions", 1)                                                      \
    X(CLOSURE, "closures", "nights, weekends and breaks", 0)                                       \
    X(ROLL, "rolls", "contract rolls", 0)

typedef enum ho_dirt {
#define HO_DIRT_ENUM(id, name, text, warning) HO_DIRT_##id,
    HO_DIRT_MAP(HO_DIRT_ENUM)
#undef HO_DIRT_ENUM
        HO_DIRT_COUNT
} ho_dirt;

const char *ho_dirt_name(ho_dirt kind);
const char *ho_dirt_text(ho_dirt kind);
bool ho_dirt_is_warning(ho_dirt kind);

enum { HO_DATA_PLACES = 5, HO_DATA_NOTES = 24, HO_DATA_NOTE_TEXT = 256 };

typedef struct ho_data_place {
    int file;     /* index into path */
    int64_t line; /* text files: from 1; DBN: record from 1 */
    int64_t ns;   /* stamp of the bar, or 0 */
} ho_data_place;

typedef struct ho_data_finding {
    int64_t count;
    int64_t dropped; /* of these, bars left out */
    int places;      /* the first ones */
    ho_data_place place[HO_DATA_PLACES];
} ho_data_finding;

typedef struct ho_data_note {
    bool warning;
    char text[HO_DATA_NOTE_TEXT];
} ho_data_note;

/* What the loader found and did. Filled as far as it came when the load fails. */
typedef struct ho_data_report {
    char dialect[160];  /* "CSV, ';' separated, no header" */
    char container[16]; /* "plain", "gz", "zst", "zip" */
    char time_form[96]; /* "epoch ms", "ISO, no zone, read as UTC" */
    char columns[256];  /* as understood: "open_time>time, open>open, ..." */
    char label[16];     /* "open", "close" */
    bool label_assumed; /* neither a key nor the data says so */
    char session[160];  /* the calendar in words */
    int64_t rows;       /* data rows read, before cleaning */
    int64_t bars;       /* delivered */
    int64_t filled;     /* of these, made by gaps = "fill" */
    int64_t segments;   /* stretches between splits; 1 without */
    int64_t longest_gap_ns;
    int64_t longest_gap_at_ns; /* stamp of the bar before it */
    int64_t missing_bars;      /* absent inside sessions */
    double bars_per_session;   /* median */
    double bars_per_year;
    ho_data_finding finding[HO_DIRT_COUNT];
    int note_count;
    ho_data_note note[HO_DATA_NOTES];
} ho_data_report;

/* True if a finding or a note is a warning: "usable with warnings". */
bool ho_data_report_has_warnings(const ho_data_report *report);

/* Reads, checks and cleans. Fills *out (free with ho_bars_free) and *report (may be NULL).
 * HO_EDATA: the data is refused; err says file, line, column, what is wrong and which key mends
 * it. HO_EIO: a file cannot be read. HO_EINVAL: an option is out of its range (err names the key).
 * On failure *out is empty. Thread safe; the result does not depend on TZ or the locale. */
ho_status ho_bars_load(const ho_data_options *options, ho_bars *out, ho_data_report *report,
                       ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
