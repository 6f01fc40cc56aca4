/* SPDX-License-Identifier: Apache-2.0
 * Options and help of one command, from its ho_usage (commands.h). getopt_long does the splitting;
 * values are converted here, with ranges. */
#include "coordinator/commands.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/reference.h"
#include "coordinator/store.h"
#include "study/log.h"
#include "study/text.h"

static void (*usage_visit)(const ho_usage *usage, void *user);
static void *usage_user;

/* Printed by print_usage and taken by ho_usage_parse for every command. */
const ho_option ho_common_option[HO_COMMON_OPTIONS] = {
    {"log-level", 0, HO_OPTION_STRING, NULL, "LEVEL", "error, warn, info or debug (to stderr)", 0,
     0},
    {"log-json", 0, HO_OPTION_FLAG, NULL, NULL, "log lines as JSON objects", 0, 0},
    {"help", 'h', HO_OPTION_FLAG, NULL, NULL, "this text", 0, 0},
};

enum { OPTIONS_MAX = 64, CODE_BASE = 1000, CODE_HELP = 900, CODE_LEVEL = 901, CODE_JSON = 902 };

void ho_usage_set_visit(void (*visit)(const ho_usage *usage, void *user), void *user)
{
    usage_visit = visit;
    usage_user = user;
}

static void print_option(const ho_option *o)
{
    char left[96];
    char letter[8] = "    ";
    if (o->letter) {
        (void)snprintf(letter, sizeof letter, "-%c, ", o->letter);
    }
    (void)snprintf(left, sizeof left, "%s--%s%s%s", letter, o->name,
                   o->kind == HO_OPTION_FLAG ? "" : " ", o->kind == HO_OPTION_FLAG ? "" : o->value);
    (void)printf(strlen(left) > 26 ? "  %s\n  %26s  %s\n" : "  %-26s%s  %s\n", left, "", o->help);
}

static void print_usage(const ho_usage *u)
{
    (void)printf("usage: hyperopt %s %s%s[OPTIONS]\n\n%s\n", u->name, u->arguments,
                 u->arguments[0] ? " " : "", u->about);
    (void)printf("\nOptions:\n");
    for (int i = 0; i < u->option_count; i++) {
        print_option(&u->option[i]);
    }
    for (int i = 0; i < HO_COMMON_OPTIONS; i++) {
        print_option(&ho_common_option[i]);
    }
    if (u->examples) {
        (void)printf("\nExamples:\n%s", u->examples);
    }
    (void)printf(
        "\nExit codes: 0 done; 1 usage or study error; 2 data error; 3 no worker could run;\n"
        "4 database error; 5 usable with warnings; 130 interrupted (run again to resume).\n");
}

ho_status ho_option_duration(const char *text, double *seconds)
{
    static const struct {
        const char *unit;
        double seconds;
    } unit[] = {{"", 1.0}, {"s", 1.0}, {"m", 60.0}, {"h", 3600.0}, {"d", 86400.0}, {"ms", 1e-3}};
    char *end = NULL;
    errno = 0;
    double amount = strtod(text, &end);
    if (end == text || errno == ERANGE || !isfinite(amount) || amount < 0.0) {
        return HO_EUSAGE;
    }
    for (size_t i = 0; i < sizeof unit / sizeof unit[0]; i++) {
        if (strcmp(end, unit[i].unit) == 0) {
            *seconds = amount * unit[i].seconds;
            return HO_OK;
        }
    }
    return HO_EUSAGE;
}

/* Index of word in "a|b|c", or -1. */
static int word_index(const char *words, const char *word)
{
    size_t n = strlen(word);
    int index = 0;
    for (const char *p = words; p; index++) {
        const char *bar = strchr(p, '|');
        size_t length = bar ? (size_t)(bar - p) : strlen(p);
        if (length == n && strncmp(p, word, n) == 0) {
            return index;
        }
        p = bar ? bar + 1 : NULL;
    }
    return -1;
}

static bool in_range(const ho_option *o, double value)
{
    return (o->low == 0.0 && o->high == 0.0) || (value >= o->low && value <= o->high);
}

static ho_status set_integer(const ho_option *o, const char *text)
{
    char *end = NULL;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno == ERANGE || !in_range(o, (double)value)) {
        return HO_EUSAGE;
    }
    *(int64_t *)o->target = value;
    return HO_OK;
}

static ho_status set_number(const ho_option *o, const char *text)
{
    char *end = NULL;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || errno == ERANGE || !isfinite(value) || !in_range(o, value)) {
        return HO_EUSAGE;
    }
    *(double *)o->target = value;
    return HO_OK;
}

static ho_status set_value(const ho_usage *u, const ho_option *o, const char *text)
{
    ho_status rc = HO_OK;
    switch (o->kind) {
    case HO_OPTION_FLAG:
        *(bool *)o->target = true;
        return HO_OK;
    case HO_OPTION_STRING:
        *(const char **)o->target = text;
        return HO_OK;
    case HO_OPTION_INTEGER:
        rc = set_integer(o, text);
        break;
    case HO_OPTION_NUMBER:
        rc = set_number(o, text);
        break;
    case HO_OPTION_DURATION:
        rc = ho_option_duration(text, (double *)o->target);
        break;
    case HO_OPTION_CHOICE: {
        int index = word_index(o->value, text);
        rc = index < 0 ? HO_EUSAGE : HO_OK;
        if (rc == HO_OK) {
            *(int *)o->target = index;
        }
        break;
    }
    case HO_OPTION_LIST: {
        ho_option_list *list = (ho_option_list *)o->target;
        if (list->count == HO_OPTION_LIST_MAX) {
            (void)fprintf(stderr, "hyperopt %s: --%s is given more than %d times\n", u->name,
                          o->name, HO_OPTION_LIST_MAX);
            return HO_EUSAGE;
        }
        list->item[list->count++] = text;
        return HO_OK;
    }
    }
    if (rc != HO_OK) {
        (void)fprintf(stderr, "hyperopt %s: --%s %s: expected %s", u->name, o->name, text,
                      o->kind == HO_OPTION_DURATION  ? "a length of time such as 90s, 5m, 8h or 2d"
                      : o->kind == HO_OPTION_CHOICE  ? "one of "
                      : o->kind == HO_OPTION_INTEGER ? "a whole number"
                                                     : "a number");
        if (o->kind == HO_OPTION_CHOICE) {
            (void)fprintf(stderr, "%s", o->value);
        } else if (o->kind != HO_OPTION_DURATION && (o->low != 0.0 || o->high != 0.0)) {
            (void)fprintf(stderr, " from %g to %g", o->low, o->high);
        }
        (void)fprintf(stderr, "\n");
    }
    return rc;
}

static ho_status set_log_level(const ho_usage *u, const char *text)
{
    ho_log_level level = HO_LOG_WARN;
    if (!ho_log_parse_level(text, &level)) {
        (void)fprintf(stderr, "hyperopt %s: --log-level %s: expected error, warn, info or debug\n",
                      u->name, text);
        return HO_EUSAGE;
    }
    ho_log_set_level(level);
    return HO_OK;
}

/* Long options and the string of short ones, as getopt_long takes them. */
static void build_tables(const ho_usage *u, struct option *longs, char *shorts)
{
    int n = 0;
    size_t s = 0;
    shorts[s++] = ':'; /* a missing value is told apart from an unknown option */
    shorts[s++] = 'h';
    for (int i = 0; i < u->option_count; i++) {
        const ho_option *o = &u->option[i];
        int takes = o->kind == HO_OPTION_FLAG ? no_argument : required_argument;
        longs[n++] = (struct option){o->name, takes, NULL, CODE_BASE + i};
        if (o->letter) {
            shorts[s++] = o->letter;
            if (takes == required_argument) {
                shorts[s++] = ':';
            }
        }
    }
    longs[n++] = (struct option){"help", no_argument, NULL, CODE_HELP};
    longs[n++] = (struct option){"log-level", required_argument, NULL, CODE_LEVEL};
    longs[n++] = (struct option){"log-json", no_argument, NULL, CODE_JSON};
    longs[n] = (struct option){NULL, 0, NULL, 0};
    shorts[s] = '\0';
}

static const ho_option *option_of_code(const ho_usage *u, int code)
{
    if (code >= CODE_BASE && code < CODE_BASE + u->option_count) {
        return &u->option[code - CODE_BASE];
    }
    for (int i = 0; i < u->option_count; i++) {
        if (u->option[i].letter && u->option[i].letter == code) {
            return &u->option[i];
        }
    }
    return NULL;
}

ho_status ho_usage_parse(const ho_usage *usage, int argc, char **argv, ho_arguments *out)
{
    struct option longs[OPTIONS_MAX + 4];
    char shorts[2 * OPTIONS_MAX + 4];
    int code = 0;

    *out = (ho_arguments){0};
    if (usage_visit) {
        usage_visit(usage, usage_user);
        return HO_EDONE;
    }
    if (usage->option_count > OPTIONS_MAX) {
        return HO_EUSAGE;
    }
    build_tables(usage, longs, shorts);
    optind = 0; /* GNU: start afresh, permuting */
    opterr = 0;
    while ((code = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
        const ho_option *o = NULL;
        if (code == CODE_HELP || code == 'h') {
            print_usage(usage);
            return HO_EDONE;
        }
        if (code == '?' || code == ':') {
            (void)fprintf(stderr, "hyperopt %s: %s %s; `hyperopt %s --help` lists the options\n",
                          usage->name, code == ':' ? "a value is missing after" : "unknown option",
                          argv[optind - 1], usage->name);
            return HO_EUSAGE;
        }
        if (code == CODE_LEVEL || code == CODE_JSON) {
            if (code == CODE_JSON) {
                ho_log_set_json(true);
            } else if (set_log_level(usage, optarg) != HO_OK) {
                return HO_EUSAGE;
            }
            continue;
        }
        o = option_of_code(usage, code);
        if (!o || set_value(usage, o, optarg) != HO_OK) {
            return HO_EUSAGE;
        }
    }
    out->count = argc - optind;
    out->item = argv + optind;
    if (out->count < usage->min_arguments || out->count > usage->max_arguments) {
        (void)fprintf(stderr, "hyperopt %s: %s; usage: hyperopt %s %s [OPTIONS]\n", usage->name,
                      out->count < usage->min_arguments ? "an argument is missing"
                                                        : "too many arguments",
                      usage->name, usage->arguments);
        return HO_EUSAGE;
    }
    return HO_OK;
}

ho_status ho_usage_trial(const ho_usage *usage, const char *text, int64_t *number)
{
    if (ho_text_parse_i64(text, number) && *number >= 0) {
        return HO_OK;
    }
    (void)fprintf(stderr, "hyperopt %s: %s: expected a trial's number\n", usage->name, text);
    return HO_EUSAGE;
}

bool ho_usage_open_trial(const ho_usage *usage, int argc, char **argv, int64_t *number,
                         struct ho_store **store, int *code)
{
    ho_arguments args;
    ho_err err = {0};
    ho_status rc = ho_usage_parse(usage, argc, argv, &args);
    if (rc != HO_OK) {
        *code = ho_exit_code(rc);
        return false;
    }
    if (ho_usage_trial(usage, args.item[1], number) != HO_OK) {
        *code = HO_EXIT_USAGE;
        return false;
    }
    if (ho_store_open_read(store, args.item[0], &err) != HO_OK) {
        (void)ho_exit_report(&err);
        *code = HO_EXIT_STORE;
        return false;
    }
    return true;
}
