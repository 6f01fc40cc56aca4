/* SPDX-License-Identifier: Apache-2.0
 * Completion for bash and zsh. See reference.h. Both know the commands, each one's options, the
 * words of choices, keys of the settings table after --set and help, and example queries. */
#include "coordinator/reference.h"

#include <string.h>

#include "coordinator/examples.h"
#include "study/settings.h"

/* What a command's arguments are, by the words of its usage. */
static const char *file_pattern(const ho_usage *u)
{
    if (strncmp(u->arguments, "STUDY.toml", 10) == 0) {
        return "toml";
    }
    return strncmp(u->arguments, "DB", 2) == 0 ? "db" : NULL;
}

static void put_settings(FILE *out, const char *after, const char *between)
{
    for (int i = 0; i < HO_KEY_COUNT; i++) {
        (void)fprintf(out, "%s%s%s", i ? between : "", ho_setting((ho_key)i)->name, after);
    }
}

static void put_commands(const ho_usage *u, const char *summary, void *user)
{
    (void)summary;
    (void)fprintf((FILE *)user, "%s ", u->name);
}

/* "a|b|c" with spaces instead. */
static void put_words(FILE *out, const char *words)
{
    for (const char *p = words; *p; p++) {
        (void)fputc(*p == '|' ? ' ' : *p, out);
    }
}

/* ---- bash ----------------------------------------------------------------------------------- */

static void bash_options(FILE *out, const ho_option *option, int count)
{
    for (int i = 0; i < count; i++) {
        (void)fprintf(out, "--%s ", option[i].name);
    }
}

static void bash_command(const ho_usage *u, const char *summary, void *user)
{
    FILE *out = (FILE *)user;
    (void)summary;
    (void)fprintf(out, "    %s)\n        options=\"", u->name);
    bash_options(out, u->option, u->option_count);
    bash_options(out, ho_common_option, HO_COMMON_OPTIONS);
    (void)fputs("\"\n", out);
    if (file_pattern(u)) {
        (void)fprintf(out, "        ending=%s\n", file_pattern(u));
    }
    (void)fputs("        case $prev in\n", out);
    for (int i = 0; i < u->option_count; i++) {
        const ho_option *o = &u->option[i];
        if (o->kind == HO_OPTION_FLAG) {
            continue;
        }
        (void)fprintf(out, "        --%s", o->name);
        if (o->letter) {
            (void)fprintf(out, "|-%c", o->letter);
        }
        if (o->kind == HO_OPTION_CHOICE) {
            (void)fputs(") words=\"", out);
            put_words(out, o->value);
            (void)fputs("\" ;;\n", out);
        } else if (strcmp(o->name, "set") == 0) {
            (void)fputs(") words=$settings ;;\n", out);
        } else {
            (void)fputs(") files=yes ;;\n", out);
        }
    }
    (void)fputs("        --log-level) words=\"error warn info debug\" ;;\n        esac\n", out);
    if (strcmp(u->name, "sql") == 0) {
        (void)fputs("        [[ $word == @* ]] && words=\"", out);
        for (int i = 0; i < ho_example_count(); i++) {
            (void)fprintf(out, "@%s ", ho_example_at(i)->name);
        }
        (void)fputs("\"\n", out);
    }
    const char *word = strchr(u->arguments, ' '); /* "DB csv|config|optuna|model" */
    if (word && strchr(word, '|') && !strchr(word, '[')) {
        (void)fputs("        [[ ${#typed[@]} -gt 3 ]] && words=\"", out);
        put_words(out, word + 1);
        (void)fputs("\"\n", out);
    } else if (!word && strchr(u->arguments, '|')) {
        (void)fputs("        words=\"", out);
        put_words(out, u->arguments);
        (void)fputs("\"\n", out);
    }
    (void)fputs("        ;;\n", out);
}

void ho_completion_bash(FILE *out)
{
    (void)fputs(
        "# bash completion for hyperopt, printed by `hyperopt completion bash`.\n"
        "_hyperopt() {\n"
        "    local line=${COMP_LINE:0:COMP_POINT} word prev options= words= files= ending=\n"
        "    local -a typed\n"
        "    read -ra typed <<< \"$line\"\n"
        "    [[ $line == *[[:space:]] ]] && typed+=(\"\")\n"
        "    word=${typed[${#typed[@]}-1]}\n"
        "    prev=${typed[${#typed[@]}-2]}\n"
        "    local settings=\"",
        out);
    put_settings(out, "=", " ");
    (void)fputs("\"\n    COMPREPLY=()\n    if [[ ${#typed[@]} -le 2 ]]; then\n        words=\"",
                out);
    ho_commands_visit(put_commands, out);
    (void)fputs("help --help --version\"\n    else\n    case ${typed[1]} in\n"
                "    help)\n        words=\"commands man ${settings//=/} settings ",
                out);
    ho_commands_visit(put_commands, out);
    (void)fputs("\"\n        ;;\n", out);
    ho_commands_visit(bash_command, out);
    (void)fputs(
        "    esac\n    fi\n"
        "    [[ -z $words && $word == -* ]] && words=$options\n"
        "    if [[ -n $words ]]; then\n"
        "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
        "        [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n"
        "    elif [[ -n $ending && -z $files ]]; then\n"
        "        compopt -o filenames\n"
        "        local path\n"
        "        while IFS= read -r path; do\n"
        "            [[ -d $path || $path == *.\"$ending\" ]] && COMPREPLY+=(\"$path\")\n"
        "        done < <(compgen -f -- \"$word\")\n"
        "    else\n"
        "        compopt -o filenames\n"
        "        COMPREPLY=($(compgen -f -- \"$word\"))\n"
        "    fi\n"
        "    # readline replaces only what follows the last of its break characters\n"
        "    local held=${word%\"${word##*[=:]}\"} i\n"
        "    if [[ -n $held && $COMP_WORDBREAKS == *\"${held: -1}\"* ]]; then\n"
        "        for i in \"${!COMPREPLY[@]}\"; do COMPREPLY[i]=${COMPREPLY[i]#\"$held\"}; done\n"
        "    fi\n"
        "}\n"
        "complete -F _hyperopt hyperopt\n",
        out);
}

/* ---- zsh ------------------------------------------------------------------------------------ */

/* Inside '...': a quote ends it and starts again; brackets and colons are escaped for _arguments.
 */
static void zsh_text(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'') {
            (void)fputs("'\\''", out);
        } else if (strchr("[]:\\", *text)) {
            (void)fprintf(out, "\\%c", *text);
        } else {
            (void)fputc(*text, out);
        }
    }
}

static void zsh_option(FILE *out, const ho_option *o)
{
    char letter[4] = {'-', o->letter, '\0'};
    for (int form = o->letter ? 0 : 1; form < 2; form++) {
        (void)fprintf(out, " \\\n            '%s%s%s[", o->kind == HO_OPTION_LIST ? "*" : "",
                      form == 0 ? letter : "--", form == 0 ? "" : o->name);
        zsh_text(out, o->help);
        (void)fputc(']', out);
        if (o->kind != HO_OPTION_FLAG) {
            (void)fputc(':', out);
            zsh_text(out, o->kind == HO_OPTION_CHOICE ? o->name : o->value);
            if (o->kind == HO_OPTION_CHOICE || strchr(o->value, '|')) {
                (void)fputs(":(", out);
                put_words(out, o->value);
                (void)fputc(')', out);
            } else if (strcmp(o->name, "set") == 0) {
                (void)fputs(":_hyperopt_settings", out);
            } else {
                (void)fputs(o->kind == HO_OPTION_STRING ? ":_files" : ":", out);
            }
        }
        (void)fputc('\'', out);
    }
}

static void zsh_command(const ho_usage *u, const char *summary, void *user)
{
    FILE *out = (FILE *)user;
    const char *word = strchr(u->arguments, ' ');
    (void)summary;
    (void)fprintf(out, "    %s)\n        _arguments -s", u->name);
    for (int i = 0; i < u->option_count; i++) {
        zsh_option(out, &u->option[i]);
    }
    for (int i = 0; i < HO_COMMON_OPTIONS; i++) {
        zsh_option(out, &ho_common_option[i]);
    }
    if (strcmp(u->name, "sql") == 0) {
        (void)fputs(" \\\n            '1:file:_files -g \"*.db\"' '2:query:(", out);
        for (int i = 0; i < ho_example_count(); i++) {
            (void)fprintf(out, "@%s ", ho_example_at(i)->name);
        }
        (void)fputs(")'", out);
    } else if (word && strchr(word, '|') && !strchr(word, '[')) {
        (void)fputs(" \\\n            '1:file:_files -g \"*.db\"' '2:form:(", out);
        put_words(out, word + 1);
        (void)fputs(")'", out);
    } else if (!word && strchr(u->arguments, '|')) {
        (void)fputs(" \\\n            '1:word:(", out);
        put_words(out, u->arguments);
        (void)fputs(")'", out);
    } else if (file_pattern(u)) {
        (void)fprintf(out, " \\\n            '*:file:_files -g \"*.%s\"'", file_pattern(u));
    } else if (u->max_arguments > 0) {
        (void)fputs(" \\\n            '*:file:_files'", out);
    }
    (void)fputs("\n        ;;\n", out);
}

static void zsh_summary(const ho_usage *u, const char *summary, void *user)
{
    (void)fprintf((FILE *)user, "        '%s:", u->name);
    zsh_text((FILE *)user, summary);
    (void)fputs("'\n", (FILE *)user);
}

void ho_completion_zsh(FILE *out)
{
    (void)fputs("#compdef hyperopt\n"
                "# zsh completion for hyperopt, printed by `hyperopt completion zsh`.\n"
                "_hyperopt_settings() {\n    compadd -S '=' -- ",
                out);
    put_settings(out, "", " ");
    (void)fputs("\n}\n_hyperopt() {\n    local -a commands=(\n", out);
    ho_commands_visit(zsh_summary, out);
    (void)fputs("        'help:explain a command, a section of the settings or a key'\n    )\n"
                "    if (( CURRENT == 2 )); then\n"
                "        _describe -t commands command commands\n        return\n    fi\n"
                "    shift words\n    (( CURRENT-- ))\n    case $words[1] in\n"
                "    help)\n        compadd -- commands man settings ${commands%%:*} ",
                out);
    put_settings(out, "", " ");
    (void)fputs("\n        ;;\n", out);
    ho_commands_visit(zsh_command, out);
    (void)fputs("    esac\n}\n"
                "if [ \"$funcstack[1]\" = _hyperopt ]; then\n    _hyperopt \"$@\"\nelse\n"
                "    compdef _hyperopt hyperopt\nfi\n",
                out);
}
