/* SPDX-License-Identifier: Apache-2.0
 * The pages for people. See reference.h. */
#include "coordinator/reference.h"

#include <string.h>

static const char exit_codes[][2][60] = {
    {"0", "done"},
    {"1", "usage or study error"},
    {"2", "data error"},
    {"3", "no worker could run"},
    {"4", "database error"},
    {"5", "usable with warnings"},
    {"130", "interrupted; the same command resumes"},
};
enum { EXIT_CODES = sizeof exit_codes / sizeof exit_codes[0] };

/* ---- Markdown ------------------------------------------------------------------------------- */

static void markdown_option(FILE *out, const ho_option *o)
{
    (void)fputs("| ", out);
    if (o->letter) {
        (void)fprintf(out, "`-%c`, ", o->letter);
    }
    (void)fprintf(out, "`--%s", o->name);
    for (const char *p = o->kind == HO_OPTION_FLAG ? "" : o->value; *p; p++) {
        (void)fprintf(out, "%s%s%c", p == o->value ? " " : "", *p == '|' ? "\\" : "", *p);
    }
    (void)fputs("` | ", out);
    for (const char *p = o->help; *p; p++) {
        (void)fprintf(out, "%s%c", *p == '|' ? "\\" : "", *p);
    }
    (void)fputs(" |\n", out);
}

static void markdown_command(const ho_usage *u, const char *summary, void *user)
{
    FILE *out = (FILE *)user;
    (void)fprintf(out, "\n## hyperopt %s\n\n%s\n\n    hyperopt %s %s%s[OPTIONS]\n\n%s", u->name,
                  summary, u->name, u->arguments, u->arguments[0] ? " " : "", u->about);
    (void)fputs(u->about[strlen(u->about) - 1] == '\n' ? "" : "\n", out);
    if (u->option_count > 0) {
        (void)fputs("\n| option | meaning |\n|---|---|\n", out);
        for (int i = 0; i < u->option_count; i++) {
            markdown_option(out, &u->option[i]);
        }
    }
    if (u->examples) {
        (void)fputs("\n", out);
        for (const char *p = u->examples, *end; *p; p = end + 1) {
            end = strchr(p, '\n');
            (void)fprintf(out, "    %.*s\n", (int)(end - p) - 2, p + 2);
        }
    }
}

void ho_reference_markdown(FILE *out)
{
    (void)fputs(
        "# Commands\n\n"
        "This page is printed from the commands' own tables; `hyperopt help commands` prints\n"
        "it too, `hyperopt COMMAND --help` one command. Options may stand anywhere among the\n"
        "arguments; `--` ends them. `hyperopt completion bash` and `zsh` print completion\n"
        "scripts, `man/hyperopt.1` is the manual page.\n\n"
        "Every command takes:\n\n| option | meaning |\n|---|---|\n",
        out);
    for (int i = 0; i < HO_COMMON_OPTIONS; i++) {
        markdown_option(out, &ho_common_option[i]);
    }
    (void)fputs("\n| exit code | meaning |\n|---|---|\n", out);
    for (int i = 0; i < EXIT_CODES; i++) {
        (void)fprintf(out, "| %s | %s |\n", exit_codes[i][0], exit_codes[i][1]);
    }
    ho_commands_visit(markdown_command, out);
}

/* ---- the manual page ------------------------------------------------------------------------ */

/* Text in roff: a backslash is \e, a hyphen is \-, a leading dot or quote is shielded. */
static void roff(FILE *out, const char *text, size_t length)
{
    bool start = true;
    for (size_t i = 0; i < length; i++) {
        if (start && (text[i] == '.' || text[i] == '\'')) {
            (void)fputs("\\&", out);
        }
        start = text[i] == '\n';
        if (text[i] == '\\') {
            (void)fputs("\\e", out);
        } else if (text[i] == '-') {
            (void)fputs("\\-", out);
        } else {
            (void)fputc(text[i], out);
        }
    }
}

static void roff_text(FILE *out, const char *text)
{
    roff(out, text, strlen(text));
}

static void man_option(FILE *out, const ho_option *o)
{
    (void)fputs(".TP\n.B ", out);
    if (o->letter) {
        (void)fprintf(out, "\\-%c, ", o->letter);
    }
    (void)fputs("\\-\\-", out);
    roff_text(out, o->name);
    if (o->kind != HO_OPTION_FLAG) {
        (void)fputs(" ", out);
        roff_text(out, o->value);
    }
    (void)fputs("\n", out);
    roff_text(out, o->help);
    (void)fputs("\n", out);
}

static void man_command(const ho_usage *u, const char *summary, void *user)
{
    FILE *out = (FILE *)user;
    (void)summary;
    (void)fputs(".SS hyperopt ", out);
    roff_text(out, u->name);
    (void)fputs(" ", out);
    roff_text(out, u->arguments);
    (void)fputs("\n", out);
    size_t length = strlen(u->about);
    while (length > 0 && u->about[length - 1] == '\n') {
        length--;
    }
    if (strstr(u->about, "\n\n") || strstr(u->about, "  ")) { /* lines that are laid out */
        (void)fputs(".nf\n", out);
        roff(out, u->about, length);
        (void)fputs("\n.fi\n", out);
    } else {
        roff(out, u->about, length);
        (void)fputs("\n", out);
    }
    for (int i = 0; i < u->option_count; i++) {
        man_option(out, &u->option[i]);
    }
    if (u->examples) {
        (void)fputs(".PP\nExamples:\n.nf\n", out);
        roff_text(out, u->examples);
        (void)fputs(".fi\n", out);
    }
}

void ho_reference_man(FILE *out)
{
    (void)fputs(
        ".\\\" Printed by `hyperopt help man`.\n"
        ".TH HYPEROPT 1 \"\" \"hyperopt " HYPEROPT_VERSION "\" \"User Commands\"\n"
        ".SH NAME\nhyperopt \\- tune trading agents and the environment they trade in\n"
        ".SH SYNOPSIS\n.B hyperopt\n.I COMMAND\n[ARGUMENTS] [OPTIONS]\n"
        ".SH DESCRIPTION\n"
        "Tunes trading agents (DQN, PPO) and their environment on OHLCV bars, scores every\n"
        "trial out of sample on walk\\-forward folds, and keeps every result in one SQLite\n"
        "file. The keys of a study file:\n.B hyperopt help settings\n"
        ".SH OPTIONS OF EVERY COMMAND\n",
        out);
    for (int i = 0; i < HO_COMMON_OPTIONS; i++) {
        man_option(out, &ho_common_option[i]);
    }
    (void)fputs(".SH COMMANDS\n", out);
    ho_commands_visit(man_command, out);
    (void)fputs(".SH EXIT STATUS\n", out);
    for (int i = 0; i < EXIT_CODES; i++) {
        (void)fprintf(out, ".TP\n.B %s\n%s\n", exit_codes[i][0], exit_codes[i][1]);
    }
}
