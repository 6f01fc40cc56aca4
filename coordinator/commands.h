/* SPDX-License-Identifier: Apache-2.0
 * The commands of `hyperopt`, one row each, and what they share: exit codes, options, help.
 *
 * A command is `int ho_cmd_<name>(int argc, char **argv)` in a file cmd_<name>.c: argv[0] is the
 * command's name, the result is an exit code. It describes itself by a ho_usage, from which both
 * the parsing and `--help` come. To add one: write the file, add a row to HO_COMMAND_MAP. */
#ifndef HO_COORDINATOR_COMMANDS_H
#define HO_COORDINATOR_COMMANDS_H

#include <stdbool.h>
#include <stdint.h>

#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Exit codes: spec/study-toml.md, "Exit codes". */
enum {
    HO_EXIT_OK = 0,
    HO_EXIT_USAGE = 1,    /* usage or study error */
    HO_EXIT_DATA = 2,     /* market data */
    HO_EXIT_WORKER = 3,   /* no worker could run */
    HO_EXIT_STORE = 4,    /* database */
    HO_EXIT_WARNINGS = 5, /* usable with warnings (`data`, `check --strict`) */
    HO_EXIT_INTERRUPTED = 130,
};

/* name, function, one line of help */
#define HO_COMMAND_MAP(X)                                                                          \
    X("run", ho_cmd_run, "run or resume a study")                                                  \
    X("check", ho_cmd_check, "validate a study: data, folds, space, plan; runs nothing")           \
    X("status", ho_cmd_status, "one screen: progress, best, workers, rate, time left")             \
    X("best", ho_cmd_best, "the best trial: parameters as TOML, folds, baselines")                 \
    X("show", ho_cmd_show, "one trial whole")                                                      \
    X("sql", ho_cmd_sql, "read-only SQL on a study's file")                                        \
    X("data", ho_cmd_data, "what is in a data file: dialect, bars, gaps, dirt")                    \
    X("export", ho_cmd_export, "a study as csv, Optuna file, study file or model")                 \
    X("holdout", ho_cmd_holdout, "score a trial on data no trial saw; recorded")                   \
    X("reproduce", ho_cmd_reproduce, "train a trial again and compare, bit for bit")               \
    X("null-test", ho_cmd_null_test, "the same search where there is nothing to find")             \
    X("slurm", ho_cmd_slurm, "the submission of a study to Slurm")                                 \
    X("report", ho_cmd_report, "write a study as one HTML page")                                   \
    X("evaluate", ho_cmd_evaluate, "backtest agents, signals or rules on any bars")                \
    X("verify", ho_cmd_verify, "replay a stored trial's actions on the CPU, bit for bit")          \
    X("replay", ho_cmd_replay, "ask the sampler again and compare, bit for bit")                   \
    X("metrics", ho_cmd_metrics, "every metric of a series of returns or equity")                  \
    X("serve", ho_cmd_serve, "run the studies of a folder on the same workers")                    \
    X("keygen", ho_cmd_keygen, "CURVE keys for remote workers")                                    \
    X("completion", ho_cmd_completion, "print completion for bash or zsh")

#define HO_COMMAND_DECLARE(name, function, summary) int function(int argc, char **argv);
HO_COMMAND_MAP(HO_COMMAND_DECLARE)
#undef HO_COMMAND_DECLARE

/* The exit code that tells a caller of the shell what kind of failure `status` was. */
int ho_exit_code(ho_status status);

/* Prints "hyperopt: text" to standard error and returns ho_exit_code(err->code). */
int ho_exit_report(const ho_err *err);

typedef enum ho_option_kind {
    HO_OPTION_FLAG,     /* target: bool */
    HO_OPTION_STRING,   /* target: const char * (points into argv) */
    HO_OPTION_INTEGER,  /* target: int64_t, within [low, high] */
    HO_OPTION_NUMBER,   /* target: double, within [low, high] */
    HO_OPTION_DURATION, /* target: double, seconds: "90", "90s", "5m", "8h", "2d" */
    HO_OPTION_CHOICE,   /* target: int, index of the word in `value` ("table|csv|json") */
    HO_OPTION_LIST,     /* target: ho_option_list, may be repeated */
} ho_option_kind;

enum { HO_OPTION_LIST_MAX = 64 };
typedef struct ho_option_list {
    int count;
    const char *item[HO_OPTION_LIST_MAX]; /* pointing into argv */
} ho_option_list;

typedef struct ho_option {
    const char *name; /* long name without dashes */
    char letter;      /* short name, or 0 */
    ho_option_kind kind;
    void *target;      /* keeps its value (the default) when the option is absent */
    const char *value; /* placeholder in the help ("N"), or the words of a choice */
    const char *help;
    double low, high; /* numbers; both 0: no limits */
} ho_option;

typedef struct ho_usage {
    const char *name;        /* "run" */
    const char *arguments;   /* "STUDY.toml", as printed */
    const char *about;       /* what it does; a paragraph or two, lines <= 80 columns */
    const char *examples;    /* whole lines, each ending in a line break; or NULL */
    const ho_option *option; /* [option_count] */
    int option_count;
    int min_arguments, max_arguments;
} ho_usage;

typedef struct ho_arguments {
    int count;
    char **item; /* positional arguments, pointing into argv */
} ho_arguments;

/* Parses long and short options anywhere among the arguments ("--" ends them). Every command also
 * takes --help, --log-level and --log-json. HO_OK: go on. HO_EDONE: help was printed, leave with 0.
 * HO_EUSAGE: the message was printed to standard error, leave with HO_EXIT_USAGE. */
ho_status ho_usage_parse(const ho_usage *usage, int argc, char **argv, ho_arguments *out);

/* Lets ho_usage_parse hand the usage to `visit` and return HO_EDONE, until visit is NULL again: so
 * a command describes itself without running. */
void ho_usage_set_visit(void (*visit)(const ho_usage *usage, void *user), void *user);

/* An argument that is a trial's number. HO_EUSAGE: the message was printed. */
ho_status ho_usage_trial(const ho_usage *usage, const char *text, int64_t *number);

struct ho_store;
/* DB N of a command: reads its arguments, opens the study for reading. false: the program ends with
 * *code; what is wrong was printed. */
bool ho_usage_open_trial(const ho_usage *usage, int argc, char **argv, int64_t *number,
                         struct ho_store **store, int *code);

/* "90", "90s", "5m", "8h", "2d" as seconds. HO_EUSAGE for anything else or a negative length. */
ho_status ho_option_duration(const char *text, double *seconds);

/* The whole program: finds the command and runs it. */
int ho_commands_run(int argc, char **argv);

#ifdef __cplusplus
}
#endif
#endif
