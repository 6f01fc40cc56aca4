/* SPDX-License-Identifier: Apache-2.0
 * Settings for people: one value as TOML, help of a key, the table as Markdown. See settings.h. */
#include <string.h>

#include "study/settings.h"
#include "study/text.h"

/* Appends formatted text at *at; counts what would not fit, as snprintf does. */
static void add(char *out, size_t room, size_t *at, const char *text)
{
    size_t n = strlen(text);
    if (*at + 1 < room) {
        size_t fit = room - *at - 1 < n ? room - *at - 1 : n;
        memcpy(out + *at, text, fit);
        out[*at + fit] = '\0';
    }
    *at += n;
}

static void add_quoted(char *out, size_t room, size_t *at, const char *text)
{
    bool fits = *at < room;
    *at += (size_t)ho_text_quote(text, fits ? out + *at : NULL, fits ? room - *at : 0);
}

int ho_settings_print(const ho_settings *s, ho_key key, char *out, size_t room)
{
    ho_setting_type type = ho_setting(key)->type;
    size_t at = 0;
    if (room > 0) {
        out[0] = '\0';
    }
    if (!ho_settings_has(s, key)) {
        return 0;
    }
    if (type == HO_TYPE_STRINGS || type == HO_TYPE_FLAGS) {
        add(out, room, &at, "[");
        for (int i = 0; i < ho_settings_list_count(s, key); i++) {
            add(out, room, &at, i ? ", " : "");
            add_quoted(out, room, &at, ho_settings_list_str(s, key, i));
        }
        add(out, room, &at, "]");
    } else if (!ho_settings_is_auto(s, key) && (type == HO_TYPE_BOOL || type == HO_TYPE_INT ||
                                                type == HO_TYPE_FLOAT || type == HO_TYPE_DATE)) {
        add(out, room, &at, ho_settings_str(s, key));
    } else {
        add_quoted(out, room, &at, ho_settings_str(s, key));
    }
    return (int)at;
}

static bool is_number(const ho_setting_row *row)
{
    return row->type == HO_TYPE_INT || row->type == HO_TYPE_FLOAT || row->type == HO_TYPE_DURATION;
}

/* "1 to 64", "a, b, c", ...: what is legal beside the type; empty when anything is. */
static void legal_values(const ho_setting_row *row, char *out, size_t room)
{
    char low[HO_TEXT_NUMBER], high[HO_TEXT_NUMBER], choice[64];
    size_t at = 0;
    out[0] = '\0';
    if (is_number(row)) {
        (void)ho_text_number(row->low, low, sizeof low);
        (void)ho_text_number(row->high, high, sizeof high);
        add(out, room, &at, low);
        add(out, room, &at, " to ");
        add(out, room, &at, high);
    }
    for (int i = 0; ho_setting_choice(row, i, choice, sizeof choice); i++) {
        add(out, room, &at, i ? ", " : "");
        add(out, room, &at, choice);
    }
    if (row->type == HO_TYPE_SPAN) {
        add(out, room, &at, "bars, \"20d\", \"15%\"");
    }
    if (row->flags & HO_SETTING_AUTO) {
        add(out, room, &at, at ? ", auto" : "auto");
    }
}

void ho_setting_print_help(const ho_setting_row *row, FILE *out)
{
    char legal[512];
    legal_values(row, legal, sizeof legal);
    (void)fprintf(out, "%s\n  %s\n  type     %s%s%s\n", row->name, row->help,
                  ho_setting_type_name(row->type), row->unit[0] ? ", in " : "", row->unit);
    if (legal[0]) {
        (void)fprintf(out, "  values   %s\n", legal);
    }
    (void)fprintf(out, "  default  %s\n",
                  !row->default_text          ? "none"
                  : row->default_text[0] == 0 ? "empty"
                                              : row->default_text);
    (void)fprintf(out, "  role     %s\n", ho_setting_role_name(row->role));
}

/* A '|' would end the cell of a Markdown table. */
static void print_cell(FILE *out, const char *text)
{
    (void)fputs(" ", out);
    for (; *text; text++) {
        (void)fprintf(out, *text == '|' ? "\\%c" : "%c", *text);
    }
    (void)fputs(" |", out);
}

static void print_row(FILE *out, const ho_setting_row *row, size_t section)
{
    char legal[512], type[64];
    legal_values(row, legal, sizeof legal);
    (void)snprintf(type, sizeof type, "%s%s%s", ho_setting_type_name(row->type),
                   row->unit[0] ? ", " : "", row->unit);
    (void)fprintf(out, "| `%s` |", row->name + section + 1);
    print_cell(out, type);
    print_cell(out, legal);
    print_cell(out, row->default_text ? row->default_text : "");
    print_cell(out, ho_setting_role_name(row->role));
    print_cell(out, row->help);
    (void)fputs("\n", out);
}

void ho_settings_print_markdown(FILE *out)
{
    (void)fputs(
        "# Settings\n\n"
        "Every key of a study file. This page is printed from the table in the code\n"
        "(`study/settings_table.h`); `hyperopt help settings` prints it too.\n\n"
        "Roles: a *searchable* key may be moved to `[search]` under its dotted name; a\n"
        "*fact* is a fact of the market and is searched only with\n"
        "`study.allow_searching_facts = true`; a *fixed* key is never searched.\n"
        "Durations are written as \"90s\", \"20m\", \"8h\" or \"2d\"; their ranges are in\n"
        "seconds. A key without a default has no value until it is set.\n\n"
        "## [search], [[enqueue]], [[warm_start]]\n\n"
        "    [search]\n"
        "    \"dqn.learning_rate\" = { float = [1e-5, 3e-3], log = true }\n"
        "    \"barriers.max_holding\" = { int = [10, 240], step = 10 }\n"
        "    \"agent.algorithm\" = { choice = [\"dqn\", \"ppo\"] }\n"
        "    \"ppo.clip\" = { float = [0.1, 0.3], when = { \"agent.algorithm\" = \"ppo\" } }\n"
        "    require = [\"agent.hidden1 >= agent.hidden2\"]\n\n"
        "    [[enqueue]]              # tried first; what is left out is sampled\n"
        "    \"dqn.learning_rate\" = 3e-4\n\n"
        "    [[warm_start]]           # finished trials of another study\n"
        "    database = \"old.db\"\n"
        "    best = 20                # optional: only so many of the best\n\n"
        "A bound off the grid of `step` ends at the last grid point. A `when` takes one\n"
        "value or a list, names choices only, and must be able to hold; `dqn.*` and\n"
        "`ppo.*` keys depend on `agent.algorithm` by themselves when that is searched.\n"
        "Requirements take + - * /, comparisons, and, or, not, texts in quotes, and names\n"
        "of parameters and settings; one that names an inactive parameter holds.\n",
        out);
    const char *section = "";
    size_t length = 0;
    for (int i = 0; i < HO_KEY_COUNT; i++) {
        const ho_setting_row *row = ho_setting((ho_key)i);
        size_t n = strcspn(row->name, ".");
        if (n != length || strncmp(row->name, section, n) != 0) {
            section = row->name;
            length = n;
            (void)fprintf(
                out,
                "\n## [%.*s]\n\n| key | type, unit | values | default | role | meaning |\n"
                "|---|---|---|---|---|---|\n",
                (int)n, section);
        }
        print_row(out, row, n);
    }
}

bool ho_settings_print_topic(const char *topic, FILE *out)
{
    size_t n = strlen(topic);
    bool found = strcmp(topic, "settings") == 0;
    if (found) {
        ho_settings_print_markdown(out);
    }
    for (int i = 0; i < HO_KEY_COUNT && n > 0; i++) {
        const ho_setting_row *row = ho_setting((ho_key)i);
        if (strncmp(row->name, topic, n) == 0 && (row->name[n] == '.' || row->name[n] == '\0')) {
            ho_setting_print_help(row, out);
            found = true;
        }
    }
    return found;
}
