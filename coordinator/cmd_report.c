/* SPDX-License-Identifier: Apache-2.0
 * `hyperopt report DB -o FILE`: one self-contained HTML page. The page is coordinator/report/
 * page.html with the style, the scripts and the data of report.h put in; the file appears whole or
 * not at all. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coordinator/commands.h"
#include "coordinator/overfit_study.h"
#include "coordinator/report/report.h"
#include "coordinator/store.h"

extern const char ho_report_page[], ho_report_style[], ho_report_chart[], ho_report_sections[];

static ho_status put_data(ho_store *store, bool replay, FILE *file, ho_err *err)
{
    ho_json_out out = {.file = file};
    sqlite3 *db = ho_store_db(store);
    ho_overfit_row luck;
    char sentence[700];
    ho_status rc = ho_overfit_read(store, &luck, err);

    if (rc == HO_OK) {
        ho_overfit_sentence(&luck, sentence, sizeof sentence);
    } else if (rc != HO_ENOTFOUND) {
        return rc;
    }
    ho_json_begin(&out, NULL, '{');
    ho_json_text(&out, "sentence", rc == HO_OK ? sentence : NULL);
    if ((rc = ho_report_study(db, &out, err)) == HO_OK &&
        (rc = ho_report_trials(db, &out, err)) == HO_OK &&
        (rc = ho_report_params(db, &out, err)) == HO_OK &&
        (rc = ho_report_series(db, &out, err)) == HO_OK) {
        rc = ho_report_workers(db, &out, err);
    }
    if (rc == HO_OK && replay) {
        rc = ho_report_replay(store, &out, err);
    }
    ho_json_end(&out, '}');
    return rc;
}

/* Copies the page, each @@NAME@@ replaced by what it stands for. */
static ho_status put_page(ho_store *store, bool replay, FILE *file, ho_err *err)
{
    const char *rest = ho_report_page;
    ho_status rc = HO_OK;

    for (const char *mark; rc == HO_OK && (mark = strstr(rest, "@@")) != NULL;) {
        (void)fwrite(rest, 1, (size_t)(mark - rest), file);
        if (strncmp(mark, "@@STYLE@@", 9) == 0) {
            (void)fputs(ho_report_style, file);
        } else if (strncmp(mark, "@@DATA@@", 8) == 0) {
            rc = put_data(store, replay, file, err);
        } else {
            (void)fputs(ho_report_chart, file);
            (void)fputs(ho_report_sections, file);
        }
        rest = strstr(mark + 2, "@@") + 2;
    }
    (void)fputs(rest, file);
    return rc;
}

static ho_status write_report(const char *db_path, bool replay, const char *path, ho_err *err)
{
    ho_store *store = NULL;
    FILE *file = NULL;
    char *part = NULL;
    ho_status rc;

    if (asprintf(&part, "%s.part", path) < 0) {
        return ho_err_set(err, HO_ENOMEM, "report: out of memory");
    }
    if ((rc = ho_store_open_read(&store, db_path, err)) != HO_OK) {
        goto out;
    }
    file = fopen(part, "w");
    if (!file) {
        rc = ho_err_set(err, HO_EIO, "%s: %s; choose another place with -o", part, strerror(errno));
        goto out;
    }
    rc = put_page(store, replay, file, err);
    int bad = ferror(file);
    bad |= fclose(file);
    file = NULL;
    if (rc == HO_OK && (bad || rename(part, path) != 0)) {
        rc = ho_err_set(err, HO_EIO, "%s: %s", path, strerror(errno));
    }
out:
    if (rc != HO_OK) {
        (void)unlink(part);
    }
    free(part);
    ho_store_close(&store);
    return rc;
}

int ho_cmd_report(int argc, char **argv)
{
    const char *path = NULL;
    bool replay = false;
    const ho_option option[] = {
        {.name = "output",
         .letter = 'o',
         .kind = HO_OPTION_STRING,
         .target = &path,
         .value = "FILE",
         .help = "the page to write; default: the database's name with .html"},
        {.name = "replay",
         .letter = 'r',
         .kind = HO_OPTION_FLAG,
         .target = &replay,
         .help = "replay the best trial's recorded actions: its trades, and other costs"},
    };
    const ho_usage usage = {
        .name = "report",
        .arguments = "DB",
        .about =
            "Writes a report of a study as one HTML page that needs no network: leaderboard and\n"
            "baselines, objective over trials, equity by fold, parameter importance, learning\n"
            "curves, how much may be luck, worker timeline, settings. Works while the study\n"
            "runs.\n",
        .examples = "  hyperopt report es-dqn.db\n"
                    "  hyperopt report es-dqn.db -o /tmp/es.html\n",
        .option = option,
        .option_count = sizeof option / sizeof option[0],
        .min_arguments = 1,
        .max_arguments = 1,
    };
    ho_arguments arguments;
    char *made = NULL;
    ho_err err;

    switch (ho_usage_parse(&usage, argc, argv, &arguments)) {
    case HO_OK:
        break;
    case HO_EDONE:
        return HO_EXIT_OK;
    default:
        return HO_EXIT_USAGE;
    }
    if (!path) {
        const char *db = arguments.item[0], *dot = strrchr(db, '.');
        int stem = dot && !strchr(dot, '/') ? (int)(dot - db) : (int)strlen(db);
        if (asprintf(&made, "%.*s.html", stem, db) < 0) {
            ho_err_set(&err, HO_ENOMEM, "report: out of memory");
            return ho_exit_report(&err);
        }
        path = made;
    }
    int code = HO_EXIT_OK;
    if (write_report(arguments.item[0], replay, path, &err) != HO_OK) {
        code = ho_exit_report(&err);
    } else {
        (void)printf("%s\n", path);
    }
    free(made);
    return code;
}
