/* SPDX-License-Identifier: Apache-2.0
 * See load_file.h. */
#include "market/load_file.h"

#include <stdlib.h>

typedef struct word {
    const char *name;
    int value;
} word;

static const word words[] = {
    {"auto", 0},
    {"refuse", HO_DIRT_REFUSE},
    {"drop", HO_DIRT_DROP},
    {"keep", HO_DIRT_KEEP},
    {"dmy", HO_DATE_DMY},
    {"mdy", HO_DATE_MDY},
    {"ymd", HO_DATE_YMD},
    {"s", HO_EPOCH_S},
    {"ms", HO_EPOCH_MS},
    {"us", HO_EPOCH_US},
    {"ns", HO_EPOCH_NS},
    {"open", HO_LABEL_OPEN},
    {"close", HO_LABEL_CLOSE},
    {"fill", HO_GAPS_FILL},
    {"split", HO_GAPS_SPLIT},
    {"yes", HO_YES},
    {"no", HO_NO},
    {"base", HO_VOLUME_BASE},
    {"quote", HO_VOLUME_QUOTE},
    {"ticks", HO_VOLUME_TICKS},
    {"none", HO_VOLUME_NONE},
    {"bid", HO_QUOTE_BID},
    {"ask", HO_QUOTE_ASK},
    {"back", HO_ADJUST_BACK},
    {"ratio", HO_ADJUST_RATIO},
    {"merge", HO_DUPLICATES_MERGE},
};

static int word_value(const char *key, const char *name)
{
    if (strcmp(key, "duplicates") == 0 || strcmp(key, "dst") == 0) {
        return strcmp(name, "first") == 0                               ? 1
               : strcmp(name, "last") == 0                              ? 2
               : strcmp(name, "second") == 0                            ? 2
               : strcmp(name, "merge") == 0                             ? 3
               : strcmp(key, "dst") == 0 && strcmp(name, "refuse") == 0 ? HO_DST_REFUSE
                                                                        : 0;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; ++i) {
        if (strcmp(words[i].name, name) == 0) {
            return words[i].value;
        }
    }
    fail_msg("no word %s", name);
    return 0;
}

#define TEXT_KEY(k)                                                                                \
    if (strcmp(key, #k) == 0) {                                                                    \
        (void)snprintf(o->k, sizeof o->k, "%s", value);                                            \
        return;                                                                                    \
    }
#define WORD_KEY(k)                                                                                \
    if (strcmp(key, #k) == 0) {                                                                    \
        o->k = word_value(key, value);                                                             \
        return;                                                                                    \
    }
#define BOOL_KEY(k)                                                                                \
    if (strcmp(key, #k) == 0) {                                                                    \
        o->k = strcmp(value, "true") == 0;                                                         \
        return;                                                                                    \
    }
#define REAL_KEY(k)                                                                                \
    if (strcmp(key, #k) == 0) {                                                                    \
        o->k = atof(value);                                                                        \
        return;                                                                                    \
    }

static void set_key(ho_data_options *o, const char *key, const char *value)
{
    TEXT_KEY(symbol)
    TEXT_KEY(start)
    TEXT_KEY(end)
    TEXT_KEY(bar)
    TEXT_KEY(timezone)
    TEXT_KEY(session_timezone)
    TEXT_KEY(session_start)
    TEXT_KEY(session_end)
    TEXT_KEY(separator)
    TEXT_KEY(decimal)
    TEXT_KEY(columns)
    TEXT_KEY(contract_column)
    TEXT_KEY(funding_column)
    TEXT_KEY(max_gap)
    WORD_KEY(label)
    WORD_KEY(dst)
    WORD_KEY(date_order)
    WORD_KEY(epoch_unit)
    WORD_KEY(header)
    WORD_KEY(volume)
    WORD_KEY(quote)
    WORD_KEY(duplicates)
    WORD_KEY(empty_rows)
    WORD_KEY(contradictions)
    WORD_KEY(non_positive)
    WORD_KEY(zero_volume)
    WORD_KEY(spikes)
    WORD_KEY(off_tick)
    WORD_KEY(gaps)
    WORD_KEY(adjust)
    BOOL_KEY(adjusted)
    BOOL_KEY(close_only)
    BOOL_KEY(sort)
    REAL_KEY(price_scale)
    REAL_KEY(tick_size)
    REAL_KEY(sessions_per_year)
    REAL_KEY(spike_mad)
    if (strcmp(key, "publisher") == 0) {
        o->publisher = atoi(value);
        return;
    }
    fail_msg("no key %s", key);
}

void set_keys(ho_data_options *options, const char *keys)
{
    char text[512], *rest = text, *item = NULL;
    (void)snprintf(text, sizeof text, "%s", keys);
    while ((item = strsep(&rest, " "))) {
        char *equals = strchr(item, '=');
        if (item[0] == '\0') {
            continue;
        }
        assert_non_null(equals);
        *equals = '\0';
        set_key(options, item, equals + 1);
    }
}

loaded load_file(const char *path, const char *keys)
{
    loaded l;
    ho_data_options options;
    memset(&l, 0, sizeof l);
    ho_data_options_defaults(&options);
    set_keys(&options, keys);
    options.path = &path;
    options.path_count = 1;
    l.rc = ho_bars_load(&options, &l.bars, &l.report, &l.err);
    return l;
}

loaded load_bytes(const char *name, const void *bytes, size_t size, const char *keys)
{
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    return load_file(name, keys);
}

loaded load_text(const char *text, const char *keys)
{
    return load_bytes("test-input", text, strlen(text), keys);
}

loaded load_good(const char *text, const char *keys)
{
    loaded l = load_text(text, keys);
    CHECK_OK(l.rc, &l.err);
    return l;
}

void check_refused(const char *text, const char *keys, const char *part)
{
    loaded l = load_text(text, keys);
    if (l.rc == HO_OK) {
        fail_msg("loaded, but should say: %s", part);
    }
    CHECK_CONTAINS(l.err.text, part);
    assert_null(l.bars.ohlcv);
    loaded_free(&l);
}

void loaded_free(loaded *l)
{
    ho_bars_free(&l->bars);
}

double open_s(const loaded *l, int64_t t)
{
    return (double)l->bars.open_ns[t] / 1e9;
}

int64_t found(const loaded *l, ho_dirt kind)
{
    return l->report.finding[kind].count;
}

bool has_note(const loaded *l, const char *part)
{
    for (int i = 0; i < l->report.note_count; ++i) {
        if (strstr(l->report.note[i].text, part)) {
            return true;
        }
    }
    return false;
}

void check_same_bars(const ho_bars *got, const ho_bars *want, const char *name)
{
    if (got->count != want->count || got->interval_ns != want->interval_ns) {
        fail_msg("%s: %lld bars of %lld ns, want %lld of %lld", name, (long long)got->count,
                 (long long)got->interval_ns, (long long)want->count, (long long)want->interval_ns);
    }
    for (int64_t t = 0; t < got->count; ++t) {
        if (got->open_ns[t] != want->open_ns[t]) {
            fail_msg("%s: bar %lld opens at %lld ns, want %lld", name, (long long)t,
                     (long long)got->open_ns[t], (long long)want->open_ns[t]);
        }
        for (int k = 0; k < 5; ++k) {
            double a = got->ohlcv[5 * t + k], b = want->ohlcv[5 * t + k];
            if (memcmp(&a, &b, sizeof a) != 0) {
                fail_msg("%s: bar %lld column %d is %.17g, want %.17g", name, (long long)t, k, a,
                         b);
            }
        }
    }
}
