/* SPDX-License-Identifier: Apache-2.0
 * See commands.h. */
#include "coordinator/commands.h"

#include <stdio.h>
#include <string.h>

#include "coordinator/reference.h"
#include "study/settings.h"

typedef struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} command;

static const command commands[] = {
#define COMMAND_ROW(name, function, summary) {name, function, summary},
    HO_COMMAND_MAP(COMMAND_ROW)
#undef COMMAND_ROW
        {NULL, NULL, NULL},
};

int ho_exit_code(ho_status status)
{
    switch (status) {
    case HO_OK:
    case HO_EDONE:
        return HO_EXIT_OK;
    case HO_EDATA:
        return HO_EXIT_DATA;
    case HO_ENOWORKER:
    case HO_EGPU:
    case HO_EPROTO:
        return HO_EXIT_WORKER;
    case HO_ESTORE:
    case HO_ELOCKED:
    case HO_EIO:
    case HO_ENOMEM:
        return HO_EXIT_STORE;
    case HO_ECANCELLED:
        return HO_EXIT_INTERRUPTED;
    default:
        return HO_EXIT_USAGE;
    }
}

int ho_exit_report(const ho_err *err)
{
    (void)fprintf(stderr, "hyperopt: %s\n", err->text[0] ? err->text : ho_status_text(err->code));
    return ho_exit_code(err->code);
}

static void print_help(FILE *out)
{
    (void)fputs(
        "usage: hyperopt COMMAND [ARGUMENTS] [OPTIONS]\n\n"
        "Tunes trading agents (DQN, PPO) and their environment on OHLCV bars, scores every\n"
        "trial out of sample on walk-forward folds, keeps every result in one SQLite file.\n\n"
        "Commands:\n",
        out);
    for (const command *c = commands; c->name; c++) {
        (void)fprintf(out, "  %-10s %s\n", c->name, c->summary);
    }
    (void)fputs(
        "\n`hyperopt COMMAND --help` explains one command; --version prints the version.\n"
        "`hyperopt help settings` lists every key of a study file; `hyperopt help KEY` explains\n"
        "one, e.g. dqn.gamma; `hyperopt help commands` is all of them as one page.\n\n"
        "Exit codes: 0 done; 1 usage or study error; 2 data error; 3 no worker could run;\n"
        "4 database error; 5 usable with warnings; 130 interrupted (run again to resume).\n",
        out);
}

static const command *find_command(const char *name)
{
    for (const command *c = commands; c->name; c++) {
        if (strcmp(c->name, name) == 0) {
            return c;
        }
    }
    return NULL;
}

typedef struct described {
    void (*visit)(const ho_usage *usage, const char *summary, void *user);
    const char *summary;
    void *user;
} described;

static void describe(const ho_usage *usage, void *user)
{
    described *d = (described *)user;
    d->visit(usage, d->summary, d->user);
}

void ho_commands_visit(void (*visit)(const ho_usage *usage, const char *summary, void *user),
                       void *user)
{
    described d = {.visit = visit, .user = user};
    ho_usage_set_visit(describe, &d);
    for (const command *c = commands; c->name; c++) {
        char name[32];
        char *argv[] = {name, NULL};
        (void)snprintf(name, sizeof name, "%s", c->name);
        d.summary = c->summary;
        (void)c->run(1, argv);
    }
    ho_usage_set_visit(NULL, NULL);
}

/* Topics of `hyperopt help` that are neither a command nor a setting. */
static bool print_reference(const char *topic)
{
    if (strcmp(topic, "commands") == 0) {
        ho_reference_markdown(stdout);
    } else if (strcmp(topic, "man") == 0) {
        ho_reference_man(stdout);
    } else {
        return false;
    }
    return true;
}

int ho_commands_run(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";

    if (argc < 2) {
        print_help(stderr);
        return HO_EXIT_USAGE;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 ||
        (strcmp(name, "help") == 0 && argc == 2)) {
        print_help(stdout);
        return HO_EXIT_OK;
    }
    if (strcmp(name, "--version") == 0) {
        (void)printf("hyperopt %s\n", HYPEROPT_VERSION);
        return HO_EXIT_OK;
    }
    if (strcmp(name, "help") == 0) { /* `hyperopt help run` is `hyperopt run --help` */
        char flag[] = "--help";
        const command *c = find_command(argv[2]);
        if (c) {
            char *help_argv[] = {argv[2], flag, NULL};
            return c->run(2, help_argv);
        }
        if (print_reference(argv[2]) || ho_settings_print_topic(argv[2], stdout)) {
            return HO_EXIT_OK;
        }
        name = argv[2];
    } else {
        const command *c = find_command(name);
        if (c) {
            return c->run(argc - 1, argv + 1);
        }
    }
    (void)fprintf(stderr, "hyperopt: there is no command \"%s\"; `hyperopt --help` lists them\n",
                  name);
    return HO_EXIT_USAGE;
}
