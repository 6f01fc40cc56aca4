/* SPDX-License-Identifier: Apache-2.0
 * `hyperopt data FILE...`: what is in a data file and what the loader does with it. A study file in
 * the place of the data gives its [data] and [features]; --set gives single keys. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coordinator/commands.h"
#include "coordinator/json_out.h"
#include "kernels/shapes.h"
#include "market/study_data.h"
#include "study/log.h"
#include "study/study.h"

enum { FILES_MAX = 4096, STAMP_SIZE = 40, PATH_SIZE = 4096 };

typedef struct data_command {
    bool json, features, gaps;
    const char *cache; /* NULL: the user's folder */
    ho_option_list set;
    ho_study *study;       /* NULL: data files were given */
    ho_settings *settings; /* of the study, or own */
    ho_settings *own;
    int paths;
    char **path; /* [paths], each allocated */
    ho_bars bars;
    ho_data_report report;
    ho_features tensor;
    ho_cache_result cache_result;
    bool have_tensor;
} data_command;

/* ---- what to load ---------------------------------------------------------------------------- */

static ho_status add_path(data_command *c, const char *path, ho_err *err)
{
    if (!(c->path[c->paths] = strdup(path))) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    ++c->paths;
    return HO_OK;
}

/* "data.timezone=America/Chicago", or without "data.". */
static ho_status set_key(ho_settings *settings, const char *text, ho_err *err)
{
    char name[128];
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || equals - text > 100) {
        return ho_err_set(err, HO_EUSAGE,
                          "--set %s: write key=value, for instance "
                          "data.timezone=America/Chicago",
                          text);
    }
    (void)snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
    ho_key key = ho_setting_find(name);
    if (key == HO_KEY_COUNT) {
        (void)snprintf(name, sizeof name, "data.%.*s", (int)(equals - text), text);
        key = ho_setting_find(name);
    }
    if (key == HO_KEY_COUNT) {
        return ho_err_set(err, HO_EUSAGE, "--set %s: there is no key %.*s; the nearest is %s", text,
                          (int)(equals - text), text, ho_setting(ho_setting_nearest(name))->name);
    }
    ho_status rc = ho_setting(key)->type == HO_TYPE_STRINGS
                       ? ho_settings_set_list(settings, key, &(const char *){equals + 1}, 1, err)
                       : ho_settings_set_text(settings, key, equals + 1, err);
    return rc == HO_OK ? rc : ho_err_prefix(err, "--set %s", text);
}

static bool is_study(const char *path)
{
    size_t n = strlen(path);
    return n > 5 && strcmp(path + n - 5, ".toml") == 0;
}

static ho_status prepare(data_command *c, const ho_arguments *files, ho_err *err)
{
    ho_status rc = HO_OK;
    if (!(c->path = calloc(FILES_MAX, sizeof *c->path))) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    if (is_study(files->item[0])) {
        char path[PATH_SIZE];
        if (files->count > 1) {
            return ho_err_set(err, HO_EUSAGE, "give one study file, or data files");
        }
        if ((rc = ho_study_load(files->item[0], &c->study, err)) != HO_OK) {
            return rc;
        }
        c->settings = c->study->settings;
        int n = ho_settings_list_count(c->settings, HO_KEY_DATA_PATH);
        for (int i = 0; i < n && rc == HO_OK; ++i) {
            rc = ho_study_path(c->study, ho_settings_list_str(c->settings, HO_KEY_DATA_PATH, i),
                               path, sizeof path, err);
            rc = rc == HO_OK ? add_path(c, path, err) : rc;
        }
    } else {
        if (!(c->own = ho_settings_create())) {
            return ho_err_set(err, HO_ENOMEM, "out of memory");
        }
        c->settings = c->own;
        for (int i = 0; i < files->count && rc == HO_OK; ++i) {
            rc = add_path(c, files->item[i], err);
        }
    }
    for (int i = 0; i < c->set.count && rc == HO_OK; ++i) {
        rc = set_key(c->settings, c->set.item[i], err);
    }
    return rc;
}

/* ---- text ------------------------------------------------------------------------------------ */

static const char *stamp_text(int64_t ns, char out[STAMP_SIZE])
{
    int64_t nanos = ns % 1000000000LL;
    nanos += nanos < 0 ? 1000000000LL : 0;
    time_t s = (time_t)((ns - nanos) / 1000000000LL);
    struct tm parts;
    (void)gmtime_r(&s, &parts);
    size_t n = strftime(out, STAMP_SIZE, "%Y-%m-%dT%H:%M:%S", &parts);
    if (nanos) {
        n += (size_t)snprintf(out + n, STAMP_SIZE - n, ".%09" PRId64, nanos);
    }
    (void)snprintf(out + n, STAMP_SIZE - n, "Z");
    return out;
}

/* 60 s as "1m". */
static const char *length_text(int64_t ns, char out[STAMP_SIZE])
{
    static const struct {
        int64_t s;
        char unit;
    } units[] = {{604800, 'w'}, {86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
    int64_t s = ns / 1000000000LL;
    for (size_t i = 0; s > 0 && ns % 1000000000LL == 0 && i < sizeof units / sizeof units[0]; ++i) {
        if (s % units[i].s == 0) {
            (void)snprintf(out, STAMP_SIZE, "%" PRId64 "%c", s / units[i].s, units[i].unit);
            return out;
        }
    }
    (void)snprintf(out, STAMP_SIZE, "%g s", (double)ns / 1e9);
    return out;
}

/* A stretch of time: "2d 3h", "45m". */
static const char *stretch_text(int64_t ns, char out[STAMP_SIZE])
{
    int64_t minutes = ns / 60000000000LL, d = minutes / 1440, h = minutes / 60 % 24;
    if (d > 0) {
        (void)snprintf(out, STAMP_SIZE, "%" PRId64 "d %" PRId64 "h", d, h);
    } else if (h > 0) {
        (void)snprintf(out, STAMP_SIZE, "%" PRId64 "h %" PRId64 "m", h, minutes % 60);
    } else {
        return length_text(ns, out);
    }
    return out;
}

static void print_places(const data_command *c, const ho_data_finding *f)
{
    char stamp[STAMP_SIZE];
    for (int i = 0; i < f->places; ++i) {
        const ho_data_place *p = &f->place[i];
        printf(i ? ", " : "  first: ");
        if (c->paths > 1 && p->line) {
            printf("%s ", c->path[p->file]);
        }
        if (p->line) {
            printf("line %" PRId64, p->line);
        }
        if (p->ns) {
            printf(p->line ? " (%s)" : "%s", stamp_text(p->ns, stamp));
        }
    }
}

static void print_findings(const data_command *c)
{
    for (int kind = 0; kind < HO_DIRT_COUNT; ++kind) {
        const ho_data_finding *f = &c->report.finding[kind];
        if (f->count == 0) {
            continue;
        }
        printf("  %-8s %-16s %8" PRId64 "  %s%s\n           ",
               ho_dirt_is_warning((ho_dirt)kind) ? "warning" : "note", ho_dirt_name((ho_dirt)kind),
               f->count, ho_dirt_text((ho_dirt)kind),
               f->dropped == f->count ? " (dropped)"
               : f->dropped           ? " (some dropped)"
                                      : "");
        print_places(c, f);
        printf("\n");
    }
    for (int i = 0; i < c->report.note_count; ++i) {
        printf("  %-8s %s\n", c->report.note[i].warning ? "warning" : "note",
               c->report.note[i].text);
    }
}

static void print_instrument(const ho_instrument *instrument)
{
    if (instrument->symbol[0]) {
        printf("  %-12s %s", "instrument", instrument->symbol);
        if (instrument->tick_size > 0.0) {
            printf(", tick %.10g", instrument->tick_size);
        }
        if (instrument->multiplier > 0.0) {
            printf(", multiplier %.10g", instrument->multiplier);
        }
        printf("\n");
    }
}

static bool is_listed(const ho_bars *b, int64_t t)
{
    return b->gap && (b->gap[t] == HO_GAP_MISSING || b->gap[t] == HO_GAP_HOLE);
}

/* Bars absent between t-1 and t. */
static int64_t absent(const ho_bars *b, int64_t t)
{
    return (b->open_ns[t] - b->open_ns[t - 1] - 1) / b->interval_ns;
}

static void print_gaps(const ho_bars *b)
{
    char from[STAMP_SIZE], to[STAMP_SIZE];
    printf("  gaps: last bar before, first bar after, bars absent\n");
    for (int64_t t = 1; t < b->count; ++t) {
        if (is_listed(b, t)) {
            printf("    %s  %s  %8" PRId64 "%s\n", stamp_text(b->open_ns[t - 1], from),
                   stamp_text(b->open_ns[t], to), absent(b, t),
                   b->gap[t] == HO_GAP_HOLE ? "  hole" : "");
        }
    }
}

static void print_text(const data_command *c, bool warnings)
{
    char from[STAMP_SIZE], to[STAMP_SIZE], length[STAMP_SIZE];
    const ho_bars *b = &c->bars;
    const ho_data_report *r = &c->report;
    for (int i = 0; i < c->paths; ++i) {
        printf("%s\n", c->path[i]);
    }
    printf("  %-12s %s (%s)\n", "format", r->dialect, r->container);
    printf("  %-12s %s\n", "columns", r->columns);
    printf("  %-12s %s; a stamp marks the %s of its bar%s\n", "time", r->time_form, r->label,
           r->label_assumed ? " (assumed: neither the file nor data.label says so)" : "");
    print_instrument(&b->instrument);
    printf("  %-12s %" PRId64 " of %s, %s to %s%s\n", "bars", b->count,
           length_text(b->interval_ns, length), stamp_text(b->open_ns[0], from),
           stamp_text(b->open_ns[b->count - 1], to), b->has_volume ? "" : ", no volume");
    printf("  %-12s %" PRId64 " rows read", "rows", r->rows);
    if (r->filled) {
        printf(", %" PRId64 " bars filled", r->filled);
    }
    if (r->segments > 1) {
        printf(", %" PRId64 " segments", r->segments);
    }
    printf("\n  %-12s %s; %d of them, %g bars in the median one, %.0f bars a year\n", "sessions",
           r->session, b->session[b->count - 1] + 1, r->bars_per_session, r->bars_per_year);
    if (r->longest_gap_ns) {
        printf("  %-12s longest %s after %s, %" PRId64 " bars absent inside sessions\n", "gaps",
               stretch_text(r->longest_gap_ns, length), stamp_text(r->longest_gap_at_ns, from),
               r->missing_bars);
    }
    printf("  %-12s %s\n", "sha256", b->sha256);
    print_findings(c);
    if (c->have_tensor) {
        printf("  %-12s %d columns, %" PRId64 " bars of warm-up, %s, key %s\n", "features",
               c->tensor.F, c->tensor.warmup,
               c->cache_result == HO_CACHE_HIT      ? "found in the cache"
               : c->cache_result == HO_CACHE_STORED ? "stored in the cache"
                                                    : "not cached",
               c->tensor.key);
    }
    if (c->gaps) {
        print_gaps(b);
    }
    printf("%s\n", warnings ? "usable, with warnings" : "clean");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void json_findings(const data_command *c, ho_json_out *out)
{
    char stamp[STAMP_SIZE];
    ho_json_begin(out, "findings", '[');
    for (int kind = 0; kind < HO_DIRT_COUNT; ++kind) {
        const ho_data_finding *f = &c->report.finding[kind];
        if (f->count == 0) {
            continue;
        }
        ho_json_begin(out, NULL, '{');
        ho_json_text(out, "kind", ho_dirt_name((ho_dirt)kind));
        ho_json_text(out, "text", ho_dirt_text((ho_dirt)kind));
        ho_json_bool(out, "warning", ho_dirt_is_warning((ho_dirt)kind));
        ho_json_integer(out, "count", f->count);
        ho_json_integer(out, "dropped", f->dropped);
        ho_json_begin(out, "first", '[');
        for (int i = 0; i < f->places; ++i) {
            ho_json_begin(out, NULL, '{');
            if (f->place[i].line) {
                ho_json_text(out, "file", c->path[f->place[i].file]);
                ho_json_integer(out, "line", f->place[i].line);
            }
            if (f->place[i].ns) {
                ho_json_text(out, "time", stamp_text(f->place[i].ns, stamp));
            }
            ho_json_end(out, '}');
        }
        ho_json_end(out, ']');
        ho_json_end(out, '}');
    }
    ho_json_end(out, ']');
    ho_json_begin(out, "notes", '[');
    for (int i = 0; i < c->report.note_count; ++i) {
        ho_json_begin(out, NULL, '{');
        ho_json_bool(out, "warning", c->report.note[i].warning);
        ho_json_text(out, "text", c->report.note[i].text);
        ho_json_end(out, '}');
    }
    ho_json_end(out, ']');
}

static void json_bars(const data_command *c, ho_json_out *out)
{
    char stamp[STAMP_SIZE];
    const ho_bars *b = &c->bars;
    const ho_data_report *r = &c->report;
    ho_json_integer(out, "bars", b->count);
    ho_json_number(out, "bar_seconds", (double)b->interval_ns / 1e9);
    ho_json_text(out, "first", stamp_text(b->open_ns[0], stamp));
    ho_json_text(out, "last", stamp_text(b->open_ns[b->count - 1], stamp));
    ho_json_bool(out, "has_volume", b->has_volume);
    ho_json_text(out, "symbol", b->instrument.symbol[0] ? b->instrument.symbol : NULL);
    ho_json_number(out, "tick_size", b->instrument.tick_size);
    ho_json_number(out, "multiplier", b->instrument.multiplier);
    ho_json_text(out, "sha256", b->sha256);
    ho_json_text(out, "label", r->label);
    ho_json_bool(out, "label_assumed", r->label_assumed);
    ho_json_text(out, "session_timezone", b->timezone[0] ? b->timezone : "UTC");
    ho_json_text(out, "session", r->session);
    ho_json_integer(out, "sessions", b->session[b->count - 1] + 1);
    ho_json_number(out, "sessions_per_year", b->sessions_per_year);
    ho_json_number(out, "bars_per_session", r->bars_per_session);
    ho_json_number(out, "bars_per_year", r->bars_per_year);
    ho_json_integer(out, "filled", r->filled);
    ho_json_integer(out, "segments", r->segments);
    ho_json_integer(out, "missing_bars", r->missing_bars);
    ho_json_number(out, "longest_gap_seconds", (double)r->longest_gap_ns / 1e9);
    if (c->have_tensor) {
        ho_json_begin(out, "features", '{');
        ho_json_integer(out, "columns", c->tensor.F);
        ho_json_integer(out, "warmup", c->tensor.warmup);
        ho_json_text(out, "key", c->tensor.key);
        ho_json_bool(out, "cache_hit", c->cache_result == HO_CACHE_HIT);
        ho_json_bool(out, "cached",
                     c->cache_result == HO_CACHE_HIT || c->cache_result == HO_CACHE_STORED);
        ho_json_end(out, '}');
    }
}

static void json_gaps(const ho_bars *b, ho_json_out *out)
{
    char stamp[STAMP_SIZE];
    ho_json_begin(out, "gaps", '[');
    for (int64_t t = 1; t < b->count; ++t) {
        if (is_listed(b, t)) {
            ho_json_begin(out, NULL, '{');
            ho_json_text(out, "before", stamp_text(b->open_ns[t - 1], stamp));
            ho_json_text(out, "after", stamp_text(b->open_ns[t], stamp));
            ho_json_integer(out, "absent", absent(b, t));
            ho_json_bool(out, "hole", b->gap[t] == HO_GAP_HOLE);
            ho_json_end(out, '}');
        }
    }
    ho_json_end(out, ']');
}

static void print_json(const data_command *c, const char *status, const ho_err *err)
{
    ho_json_out out = {.file = stdout};
    const ho_data_report *r = &c->report;
    ho_json_begin(&out, NULL, '{');
    ho_json_text(&out, "status", status);
    ho_json_text(&out, "error", err ? err->text : NULL);
    ho_json_begin(&out, "files", '[');
    for (int i = 0; i < c->paths; ++i) {
        ho_json_text(&out, NULL, c->path[i]);
    }
    ho_json_end(&out, ']');
    ho_json_text(&out, "dialect", r->dialect);
    ho_json_text(&out, "container", r->container);
    ho_json_text(&out, "columns", r->columns);
    ho_json_text(&out, "time", r->time_form);
    ho_json_integer(&out, "rows", r->rows);
    json_findings(c, &out);
    if (!err) {
        json_bars(c, &out);
    }
    if (!err && c->gaps) {
        json_gaps(&c->bars, &out);
    }
    ho_json_end(&out, '}');
    printf("\n");
}

/* ---- the command ----------------------------------------------------------------------------- */

static void clean_up(data_command *c)
{
    ho_features_free(&c->tensor);
    ho_bars_free(&c->bars);
    ho_study_free(&c->study);
    ho_settings_destroy(&c->own);
    for (int i = 0; i < c->paths; ++i) {
        free(c->path[i]);
    }
    free(c->path);
    free(c);
}

int ho_cmd_data(int argc, char **argv)
{
    ho_err err = {0};
    ho_arguments files;
    data_command *c = calloc(1, sizeof *c);
    if (!c) {
        (void)ho_err_set(&err, HO_ENOMEM, "out of memory");
        return ho_exit_report(&err);
    }
    const ho_option options[] = {
        {"json", 0, HO_OPTION_FLAG, &c->json, NULL, "print one JSON object", 0, 0},
        {"features", 0, HO_OPTION_FLAG, &c->features, NULL,
         "compute the features and keep them in the cache", 0, 0},
        {"gaps", 0, HO_OPTION_FLAG, &c->gaps, NULL, "list every gap inside sessions and every hole",
         0, 0},
        {"cache", 0, HO_OPTION_STRING, &c->cache, "DIR",
         "folder of the feature cache (default: the user's)", 0, 0},
        {"set", 's', HO_OPTION_LIST, &c->set, "KEY=VALUE",
         "a key of [data], [instrument] or [features]; may be repeated", 0, 0},
    };
    const ho_usage usage = {
        .name = "data",
        .arguments = "FILE...|STUDY.toml",
        .about =
            "Shows what is in a data file: dialect, instrument, bar size, period, dirt with its\n"
            "first places, gaps, and what the loader does with them. Several files are\n"
            "concatenated. A study file stands for its own data and settings.",
        .examples = "  hyperopt data es-1m.csv.zst --set timezone=America/Chicago\n"
                    "  hyperopt data study.toml --features --cache /data/features\n",
        .option = options,
        .option_count = (int)(sizeof options / sizeof options[0]),
        .min_arguments = 1,
        .max_arguments = FILES_MAX,
    };
    int code = HO_EXIT_OK;
    ho_status rc = ho_usage_parse(&usage, argc, argv, &files);
    if (rc != HO_OK) {
        code = rc == HO_EDONE ? HO_EXIT_OK : HO_EXIT_USAGE;
        goto out;
    }
    if ((rc = prepare(c, &files, &err)) != HO_OK) {
        code = ho_exit_report(&err);
        goto out;
    }
    rc = ho_study_bars_load(c->settings, (const char *const *)c->path, c->paths, &c->bars,
                            &c->report, &err);
    if (rc == HO_OK && c->features) {
        rc = ho_study_features_cached(c->settings, &c->bars, c->cache, &c->tensor, &c->cache_result,
                                      &err);
        c->have_tensor = rc == HO_OK;
    }
    if (rc != HO_OK) {
        /* a data file that cannot be read is refused data, whatever the reason */
        code = rc == HO_EINVAL ? HO_EXIT_USAGE : HO_EXIT_DATA;
        if (c->json) {
            print_json(c, "refused", &err);
        } else {
            (void)fprintf(stderr, "hyperopt: %s\n", err.text);
        }
        goto out;
    }
    bool warnings = ho_data_report_has_warnings(&c->report);
    code = warnings ? HO_EXIT_WARNINGS : HO_EXIT_OK;
    if (c->json) {
        print_json(c, warnings ? "warnings" : "clean", NULL);
    } else {
        print_text(c, warnings);
    }
out:
    clean_up(c);
    return code;
}
