/* SPDX-License-Identifier: Apache-2.0
 * hyperopt sql DB "SELECT ..." | @name */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coordinator/commands.h"
#include "coordinator/examples.h"
#include "coordinator/output.h"
#include "coordinator/store.h"

/* The first line of an example, without its dashes, says what it answers. */
static void list_examples(void)
{
    (void)printf("Example queries, by name:\n");
    for (int i = 0; i < ho_example_count(); i++) {
        const ho_example *e = ho_example_at(i);
        const char *about = e->sql + strspn(e->sql, "- ");
        (void)printf("  @%-18s %.*s\n", e->name, (int)strcspn(about, "\n"), about);
    }
    (void)printf(
        "\nViews: leaderboard, baseline_total, trial_wide, fold_wide, study_progress, "
        "worker_load,\n"
        "epoch_curve, param_effect, overfitting; `@tables` shows every table and column.\n");
}

static char *read_all(FILE *in)
{
    size_t used = 0, room = 1 << 16;
    char *text = (char *)malloc(room);
    size_t n = 0;
    while (text && (n = fread(text + used, 1, room - used - 1, in)) > 0) {
        used += n;
        if (used + 1 == room) {
            char *bigger = (char *)realloc(text, 2 * room);
            if (!bigger) {
                free(text);
                return NULL;
            }
            text = bigger;
            room *= 2;
        }
    }
    if (text) {
        text[used] = '\0';
    }
    return text;
}

static ho_status refused(ho_store *store, const char *near, ho_err *err)
{
    sqlite3 *db = ho_store_db(store);
    int code = sqlite3_errcode(db) & 0xff;
    bool write = code == SQLITE_AUTH || code == SQLITE_READONLY;
    return ho_err_set(err, HO_EUSAGE, "%s%s%s%.40s%s", sqlite3_errmsg(db),
                      write ? ": `hyperopt sql` only reads" : "", near ? ", near \"" : "",
                      near ? near : "", near ? "\"" : "");
}

/* Every statement of the text, one after the other. */
static ho_status run_all(ho_store *store, const char *sql, ho_output_format format, ho_err *err)
{
    const char *rest = sql;
    ho_status rc = HO_OK;
    bool any = false;
    while (rc == HO_OK && rest && rest[strspn(rest, " \t\r\n;")] != '\0') {
        sqlite3_stmt *statement = NULL;
        const char *next = NULL;
        if (sqlite3_prepare_v2(ho_store_db(store), rest, -1, &statement, &next) != SQLITE_OK) {
            int at = sqlite3_error_offset(ho_store_db(store));
            rc = refused(store, at >= 0 ? rest + at : NULL, err);
        } else if (statement) {
            if (any && format != HO_OUTPUT_CSV) {
                (void)printf("\n");
            }
            if ((rc = ho_output_rows(stdout, statement, format, err)) == HO_ESTORE) {
                rc = refused(store, NULL, err);
            }
            any = true;
        }
        (void)sqlite3_finalize(statement);
        rest = next;
    }
    return rc;
}

int ho_cmd_sql(int argc, char **argv)
{
    int format = HO_OUTPUT_TABLE;
    ho_arguments args;
    ho_err err = {0};
    ho_store *store = NULL;
    char *text = NULL;
    const ho_option option[] = {
        {"format", 'f', HO_OPTION_CHOICE, &format, HO_OUTPUT_WORDS, "how rows are printed (table)",
         0, 0},
    };
    const ho_usage usage = {
        .name = "sql",
        .arguments = "DB [\"SELECT ...\" | @NAME | -]",
        .about =
            "Runs SQL on a study's file, read-only, also while the study runs. @NAME runs an\n"
            "example query; without a query the examples are listed; - reads SQL from standard\n"
            "input.",
        .examples =
            "  hyperopt sql quickstart.db\n"
            "  hyperopt sql quickstart.db @best-by-fold\n"
            "  hyperopt sql quickstart.db \"SELECT * FROM leaderboard LIMIT 5\"\n"
            "  hyperopt sql quickstart.db \"SELECT * FROM trial_wide\" --format csv > trials.csv\n",
        .option = option,
        .option_count = 1,
        .min_arguments = 1,
        .max_arguments = 2,
    };
    ho_status rc = ho_usage_parse(&usage, argc, argv, &args);
    if (rc != HO_OK) {
        return ho_exit_code(rc);
    }
    if ((rc = ho_store_open_read(&store, args.item[0], &err)) != HO_OK) {
        (void)ho_exit_report(&err);
        return HO_EXIT_STORE;
    }
    if (args.count == 1) {
        list_examples();
    } else if (args.item[1][0] == '@') {
        const ho_example *e = ho_example_find(args.item[1] + 1);
        rc = e ? run_all(store, e->sql, (ho_output_format)format, &err)
               : ho_err_set(&err, HO_EUSAGE,
                            "there is no example \"%s\"; `hyperopt sql %s` lists them",
                            args.item[1], args.item[0]);
    } else if (strcmp(args.item[1], "-") == 0) {
        text = read_all(stdin);
        rc = text ? run_all(store, text, (ho_output_format)format, &err)
                  : ho_err_set(&err, HO_ENOMEM, "out of memory");
    } else {
        rc = run_all(store, args.item[1], (ho_output_format)format, &err);
    }
    free(text);
    ho_store_close(&store);
    return rc == HO_OK ? HO_EXIT_OK : ho_exit_report(&err);
}
